"""The tagger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hf_xst.data.bio import bio_alphabet, span_kind, to_bio
from hf_xst.models.configuration import BOUNDARIES, CrfTaggerConfig
from hf_xst.models.modeling import Readable, Row, StructuredModel, StructuredOutput
from hf_xst.numerics import at_least_single
from hf_xst.structures import LinearChainCRF


class CrfTagger(StructuredModel):  # type: ignore[no-untyped-call, unused-ignore]
    """A tagger: words in, a distribution over tag sequences out.

    Inside, every sentence stands between a start and an end tag, so that a sentence of one word has two
    pairs. `scores` of its output are (B, N+1, T+2, T+2) as `LinearChainCRF` takes them, impossible pairs at
    -inf; gold `labels` are (B, N), without boundaries. Impossible are pairs that contradict the boundaries
    and, where the configuration names a scheme of tags, pairs that it does not have.
    """

    config_class = CrfTaggerConfig
    config: CrfTaggerConfig
    structure = LinearChainCRF
    leading, trailing = 1, 1
    label_column = "upos"
    special_names = BOUNDARIES
    structure_name = "tags"
    added_groups = (1, 1)

    def __init__(self, config: CrfTaggerConfig) -> None:
        super().__init__(config)
        tags = len(self.names)
        self.dropout = nn.Dropout1d(config.output_dropout)
        self.emissions = nn.Linear(self.encoder.output_size, tags)
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.post_init()  # type: ignore[no-untyped-call, unused-ignore]

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self:
            nn.init.uniform_(self.transitions, -1, 1)

    @property
    def scheme(self) -> str | None:
        """The scheme of the tags."""
        return self.config.scheme

    @property
    def main_metric(self) -> str:
        """F1 of the spans where the tags mark any, else the share of right tags."""
        return "accuracy" if self.scheme is None else "f1"

    @property
    def label_settings(self) -> dict[str, Any]:
        """The column and the scheme of the tags."""
        return {"column": self.config.column, "scheme": self.scheme}

    @classmethod
    def settings_from_rows(
        cls, rows: Iterable[Row], column: str | None = None, scheme: str | None = None
    ) -> dict[str, Any]:
        """Collect the names in gold rows; with a scheme `labels` are those that it has for the same spans."""
        found = super().settings_from_rows(rows, column)
        return found if scheme is None else found | {"labels": bio_alphabet(found["labels"])}

    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        """Name emissions and transitions."""
        return [
            (self.emissions, "weight", (0,)),
            (self.emissions, "bias", (0,)),
            (self, "transitions", (0, 1)),
        ]

    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Score pairs of neighbours: (B, N+1, T+2, T+2), transition and the second one's emission."""
        emissions = at_least_single(self.emissions(self.dropout(states.mT).mT))
        pairs = emissions[:, 1:, None, :] + self.transitions
        return pairs.masked_fill(~self._possible(lengths, pairs.shape[1]), -torch.inf)

    def _possible(self, lengths: Tensor, pairs: int) -> Tensor:
        """Say which pairs respect the boundaries and the scheme: bool (B, N+1, T+2, T+2)."""
        tags = len(self.names)
        start, end = tags - 2, tags - 1
        tag = torch.arange(tags, device=lengths.device)
        pair = torch.arange(pairs, device=lengths.device)
        is_word = tag < start
        previous = torch.where((pair == 0)[:, None], tag == start, is_word)  # (N+1, T+2)
        last = (pair == lengths[:, None])[..., None]
        following = torch.where(last, tag == end, is_word)  # (B, N+1, T+2)
        possible = previous[None, :, :, None] & following[:, :, None, :]
        return possible if self.scheme is None else possible & bio_pairs(self.names).to(lengths.device)

    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        """Negative log-likelihood of the gold sequence; unknown tags (-1) are summed over.

        Args:
            output: scores of a batch.
            labels: (B, N).

        Returns:
            (B,).
        """
        assert output.lengths is not None
        distribution = self.distribution(output)
        gold = self.gold_best(labels, output.lengths)
        alike = (gold[..., None] == torch.arange(len(self.names), device=gold.device)) | (gold < 0)[..., None]
        return -distribution.log_mass(alike[:, :-1, :, None] & alike[:, 1:, None, :])

    def units(self, labels: Tensor) -> Tensor:
        """Count each sentence once: (B,)."""
        return torch.ones_like(labels[:, 0])

    def distribution(self, output: StructuredOutput) -> LinearChainCRF:
        """Return the distribution over tag sequences, boundaries included."""
        assert output.scores is not None
        assert output.lengths is not None
        return LinearChainCRF(output.scores, output.lengths + 2)

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column that holds the tags."""
        return (self.config.column,)

    def candidate_parts(self, candidates: Tensor) -> dict[str, Tensor]:
        """Name the tag of the pair's second position: the i-th pair ends at the i-th word."""
        return {"tag": candidates % len(self.names)}

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """Name each word's allowed tags: those that an allowed pair ends in and another one goes on from."""
        tags = len(names)
        into = [{pair % tags for pair in group} for group in allowed[:-1]]
        onwards = [{pair // tags for pair in group} for group in allowed[1:]]
        both = [sorted(left & right) for left, right in zip(into, onwards, strict=True)]
        return {"allowed_tags": [[names[tag] for tag in found] for found in both]}

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Return (B, N): tag index of each word, -1 for padding and unknown tags.

        Where the tags mark spans, gold in another scheme is read as BIO, see `hf_xst.data.to_bio`.
        """
        index_of = {name: index for index, name in enumerate(names or self.names) if name not in BOUNDARIES}
        columns: list[Sequence[str | None]] = [row[self.config.column] for row in rows]
        if self.scheme is not None:
            columns = [to_bio(column) for column in columns]
        tags = [torch.tensor([index_of.get(tag or "", -1) for tag in column]) for column in columns]
        return nn.utils.rnn.pad_sequence(tags, batch_first=True, padding_value=-1)

    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Tensor:
        """Put the boundaries around: (B, N+2)."""
        alphabet = list(names or self.names)
        start, end = (alphabet.index(boundary) for boundary in BOUNDARIES)
        padded = nn.functional.pad(labels, (1, 1), value=-1)
        position = torch.arange(padded.shape[1], device=labels.device)
        padded = torch.where(position == 0, start, padded)
        return torch.where(position == (lengths + 1)[:, None], end, padded)

    def decode(
        self, best: Tensor, lengths: Tensor, names: Sequence[str] | None = None
    ) -> list[dict[str, list[Any]]]:
        """Return the tag column of each sentence, boundaries trimmed."""
        alphabet = names or self.names
        rows = best.tolist()
        return [
            {self.config.column: [alphabet[tag] if tag >= 0 else "_" for tag in rows[i][1 : n + 1]]}
            for i, n in enumerate(lengths.tolist())
        ]


def bio_pairs(names: Sequence[str]) -> Tensor:
    """Say which pairs of tags BIO has: what goes on with a span follows a tag of the same type.

    Args:
        names: the T tags; `O` and the boundaries are of no type.

    Returns:
        Bool (T, T): previous tag, next tag.
    """
    kinds = [span_kind(name) for name in names]
    kind = torch.tensor([kinds.index(each) for each in kinds])
    goes_on = torch.tensor([name.startswith("I-") for name in names])
    return ~goes_on | (kind[:, None] == kind)

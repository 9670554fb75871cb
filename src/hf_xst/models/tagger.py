"""The tagger: a linear-chain CRF over encoded words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hf_xst.data.labels import bio_alphabet, span_type, to_bio
from hf_xst.models.configuration import BOUNDARIES, CrfTaggerConfig
from hf_xst.models.modeling import Columns, Readable, Row, StructuredModel, StructuredOutput
from hf_xst.numerics import at_least_single
from hf_xst.structures import LinearChainCRF


class CrfTagger(StructuredModel):  # type: ignore[no-untyped-call, unused-ignore]
    """A tagger: words in, a distribution over tag sequences out.

    A start and an end tag are added around every sentence, so that a sentence of one word has two pairs. The
    output `scores` are (B, N+1, T+2, T+2) as `LinearChainCRF` takes them; gold `labels` are (B, N), without
    boundaries. Pairs that contradict the boundaries or the configured scheme of tags score -inf.
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
        """The scheme of the tags, if they mark spans."""
        return self.config.scheme

    @property
    def main_metric(self) -> str:
        """F1 of the spans if the tags mark spans, else the accuracy of the tags."""
        return "accuracy" if self.scheme is None else "f1"

    @property
    def label_settings(self) -> dict[str, Any]:
        """The column and the scheme of the tags."""
        return {"column": self.config.column, "scheme": self.scheme}

    @classmethod
    def settings_from_rows(
        cls, rows: Iterable[Row], column: str | None = None, scheme: str | None = None
    ) -> dict[str, Any]:
        """Collect the names in gold rows; with a scheme, `labels` are complete in that scheme."""
        settings = super().settings_from_rows(rows, column)
        return settings if scheme is None else settings | {"labels": bio_alphabet(settings["labels"])}

    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        """Return emissions and transitions."""
        return [
            (self.emissions, "weight", (0,)),
            (self.emissions, "bias", (0,)),
            (self, "transitions", (0, 1)),
        ]

    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Score adjacent pairs: (B, N+1, T+2, T+2), transition plus the emission of the second tag."""
        emissions = at_least_single(self.emissions(self.dropout(states.mT).mT))
        pairs = emissions[:, 1:, None, :] + self.transitions
        return pairs.masked_fill(~self._possible(lengths, pairs.shape[1]), -torch.inf)

    def _possible(self, lengths: Tensor, pairs: int) -> Tensor:
        """Return which pairs respect the boundaries and the scheme: bool (B, N+1, T+2, T+2)."""
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
        """Return the negative log-likelihood of gold tags (B, N), summed over unknown tags (-1): (B,)."""
        assert output.lengths is not None
        gold = self.gold_best(labels, output.lengths)
        tag = torch.arange(len(self.names), device=gold.device)
        agrees = (gold[..., None] == tag) | (gold < 0)[..., None]  # (B, N+2, T+2)
        return -self.distribution(output).log_mass(agrees[:, :-1, :, None] & agrees[:, 1:, None, :])

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
        """The column of the tags."""
        return (self.config.column,)

    def candidate_parts(self, candidates: Tensor) -> dict[str, Tensor]:
        """Return the second tag of each pair: the i-th pair ends at the i-th word."""
        return {"tag": candidates % len(self.names)}

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """List each word's allowed tags: those that end an allowed pair and begin another."""
        tags = len(names)
        ends = [{pair % tags for pair in group} for group in allowed[:-1]]
        begins = [{pair // tags for pair in group} for group in allowed[1:]]
        both = [sorted(left & right) for left, right in zip(ends, begins, strict=True)]
        return {"allowed_tags": [[names[tag] for tag in word] for word in both]}

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Return (B, N): tag index of each word, -1 for padding and unknown tags.

        With a scheme, gold in another scheme is converted to BIO, see `to_bio`.
        """
        index_of = {name: index for index, name in enumerate(names or self.names) if name not in BOUNDARIES}
        columns: list[Sequence[str | None]] = [row[self.config.column] for row in rows]
        if self.scheme is not None:
            columns = [to_bio(column) for column in columns]
        tags = [torch.tensor([index_of.get(tag or "", -1) for tag in column]) for column in columns]
        return nn.utils.rnn.pad_sequence(tags, batch_first=True, padding_value=-1)

    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Tensor:
        """Add the boundaries: (B, N+2)."""
        alphabet = list(names or self.names)
        start, end = (alphabet.index(boundary) for boundary in BOUNDARIES)
        padded = nn.functional.pad(labels, (1, 1), value=-1)
        position = torch.arange(padded.shape[1], device=labels.device)
        padded = torch.where(position == 0, start, padded)
        return torch.where(position == (lengths + 1)[:, None], end, padded)

    def decode(self, best: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> list[Columns]:
        """Return the tag column of each sentence, without boundaries."""
        alphabet = names or self.names
        return [
            {self.config.column: [alphabet[tag] if tag >= 0 else "_" for tag in row[1 : n + 1]]}
            for row, n in zip(best.tolist(), lengths.tolist(), strict=True)
        ]


def bio_pairs(names: Sequence[str]) -> Tensor:
    """Return which pairs of tags are valid in BIO: `I-X` only follows `B-X` or `I-X`.

    Args:
        names: the T tags; `O` and the boundaries have no type.

    Returns:
        Bool (T, T): previous tag, next tag.
    """
    types = [span_type(name) for name in names]
    type_id = torch.tensor([types.index(each) for each in types])
    is_inside = torch.tensor([name.startswith("I-") for name in names])
    return ~is_inside | (type_id[:, None] == type_id)

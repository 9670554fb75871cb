"""The tagger: a linear-chain CRF over encoded words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from hf_xst.data.labels import bio_alphabet
from hf_xst.models.columns import TagColumns, possible_pairs
from hf_xst.models.configuration import CrfTaggerConfig
from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput
from hf_xst.numerics import at_least_single
from hf_xst.structures import LinearChainCRF


class CrfTagger(TagColumns, StructuredModel):  # type: ignore[no-untyped-call, unused-ignore]
    """A tagger: words in, a distribution over tag sequences out.

    A start and an end tag are added around every sentence, so that a sentence of one word has two pairs. The
    output `scores` are (B, N+1, T+2, T+2) as `LinearChainCRF` takes them; gold `labels` are (B, N), without
    boundaries. Pairs that contradict the boundaries or the configured scheme of tags score -inf.
    """

    config_class = CrfTaggerConfig
    config: CrfTaggerConfig
    leading, trailing = 1, 1
    label_column = "upos"

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
        return pairs.masked_fill(
            ~possible_pairs(self.names, lengths, pairs.shape[1], self.scheme), -torch.inf
        )

    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        """Return the negative log-likelihood of gold tags (B, N), summed over unknown tags (-1): (B,)."""
        gold = self.gold_best(labels, output.lengths)
        tag = torch.arange(len(self.names), device=gold.device)
        agrees = (gold[..., None] == tag) | (gold < 0)[..., None]  # (B, N+2, T+2)
        return -self.distribution(output).log_mass(agrees[:, :-1, :, None] & agrees[:, 1:, None, :])

    def units(self, labels: Tensor) -> Tensor:
        """Count each sentence once: (B,)."""
        return torch.ones_like(labels[:, 0])

    def distribution(self, output: StructuredOutput) -> LinearChainCRF:
        """Return the distribution over tag sequences, boundaries included."""
        return LinearChainCRF(output.scores, output.lengths + 2)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the tags."""
        return (self.config.column,)

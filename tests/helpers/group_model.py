"""A structured model with one independent mark per word, which the method must run unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from helpers.categorical import IndependentGroups
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput, register


class GroupConfig(StructuredConfig):
    model_type = "test_independent_groups"


class GroupModel(StructuredModel):
    """Score marks (B, N, L) of words; gold labels are (B, N)."""

    config_class = GroupConfig
    structure = IndependentGroups
    leading, trailing = 0, 0
    label_column = "mark"
    main_metric = "share"

    def __init__(self, config: GroupConfig) -> None:
        super().__init__(config)
        self.output = nn.Linear(self.encoder.output_size, len(self.names))
        self.post_init()

    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        return [(self.output, "weight", (0,)), (self.output, "bias", (0,))]

    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        return self.output(states)

    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        log_probs = output.scores.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        return -torch.where(labels >= 0, log_probs, 0.0).sum(-1)

    def units(self, labels: Tensor) -> Tensor:
        return (labels >= 0).sum(-1)

    def distribution(self, output: StructuredOutput) -> IndependentGroups:
        return IndependentGroups(output.scores, output.lengths)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("mark",)

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        indices = {name: index for index, name in enumerate(names or self.names)}
        marks = [torch.tensor([indices.get(mark, -1) for mark in row["mark"]]) for row in rows]
        return nn.utils.rnn.pad_sequence(marks, batch_first=True, padding_value=-1)

    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Tensor:
        return labels

    def decode(
        self, best: Tensor, lengths: Tensor, names: Sequence[str] | None = None
    ) -> list[dict[str, list[Any]]]:
        alphabet = names or self.names
        return [
            {"mark": [alphabet[mark] if mark >= 0 else "_" for mark in marks[:length]]}
            for marks, length in zip(best.tolist(), lengths.tolist(), strict=True)
        ]


register(GroupConfig, GroupModel)  # so that it can be loaded from a folder

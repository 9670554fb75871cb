"""What a model's labels are called, and rows of parameters for more of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from hf_xst.models.configuration import StructuredConfig

Row = Mapping[str, Any]
_BLANK = "_"


class Labelled(ABC):
    """The labels of a structured model."""

    config: StructuredConfig
    label_column: ClassVar[str]
    special_names: ClassVar[tuple[str, ...]] = ()
    """Names that every model of the kind has beside its labels, such as those of boundaries."""

    @abstractmethod
    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        """Name the parameters that have rows for labels: module, attribute, and the axes that are labels."""

    @torch.no_grad()
    def add_labels(self, names: Sequence[str]) -> None:
        """Add output rows for further labels, freshly initialised, after the present labels.

        Args:
            names: labels that the model does not have.

        Raises:
            ValueError: the model has one of them already, or one is given twice.
        """
        known = sorted(set(names) & set(self.names))
        if known:
            raise ValueError(f"the model has labels {', '.join(known)} already")
        present = len(self.config.labels)
        self.config.set_labels([*self.config.labels, *names])
        for module, attribute, axes in self.label_parameters():
            old = module.get_parameter(attribute)
            value = old.detach()
            for axis in axes:
                before, after = value.tensor_split([present], dim=axis)
                shape = [*value.shape]
                shape[axis] = len(names)
                value = torch.cat([before, value.new_empty(shape).normal_(std=0.02), after], dim=axis)
            module.register_parameter(attribute, nn.Parameter(value, requires_grad=old.requires_grad))
            if isinstance(module, nn.Linear):
                module.out_features = module.weight.shape[0]

    @classmethod
    def settings_from_rows(
        cls, rows: Iterable[Row], column: str | None = None, scheme: str | None = None
    ) -> dict[str, Any]:
        """Collect the configuration fields that follow from gold rows: `labels` and `upos_names`.

        Where no word has a coarse tag, `uses_upos` is among them, too.

        Args:
            rows: prepared rows with gold. A blank (`_`) is no name.
            column: the column of labels where the model can predict any one.
            scheme: the scheme of the labels, for models that know any.
        """
        labels: set[str] = set()
        upos: set[str] = set()
        for row in rows:
            labels.update(row[column or cls.label_column])
            upos.update(row.get("upos") or ())
        names = sorted(upos - {_BLANK})
        return {"labels": sorted(labels - {_BLANK}), "upos_names": names} | (
            {} if names else {"uses_upos": False}
        )

    @property
    def names(self) -> list[str]:
        """Names along the structure's label axes, special labels last."""
        return [*self.config.labels, *self.special_names]

    @property
    def scheme(self) -> str | None:
        """The scheme by which the labels of neighbouring words belong together, if there is one."""
        return None

    @property
    def label_settings(self) -> dict[str, Any]:
        """Fields of the configuration that say what the labels are labels of.

        Charts tell them to new models.
        """
        return {}

    @property
    @abstractmethod
    def main_metric(self) -> str:
        """The score that stands for all others."""

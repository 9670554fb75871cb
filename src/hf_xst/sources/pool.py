"""Pool source models: their distributions over one label set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hf_xst.charts.alphabet import Relabelling
from hf_xst.models.cached_embeddings import EmbeddingSource, shared_encoders
from hf_xst.models.modeling import Row, StructuredModel
from hf_xst.models.running import run_rows
from hf_xst.sources.word_checks import warn_of_different_vectors
from hf_xst.structures.base import Structure


@dataclass
class Source:
    """A source model and how its labels map to those of the pool."""

    name: str
    model: StructuredModel
    relabelling: Relabelling
    states: EmbeddingSource | None = None
    dropped_mass: float = field(default=0.0, init=False)

    def distribution(self, rows: Sequence[Row]) -> Structure:
        """Return the model's distribution over structures that use the labels of the pool only.

        The expected number of candidates with dropped labels is added to `dropped_mass`.
        """
        own = self.model.distribution(run_rows(self.model, rows, self.states))
        if self.relabelling.is_identity:
            return own
        if self.relabelling.dropped:
            self.dropped_mass += float(self._mass_on_dropped(own))
        return own.with_scores(self.relabelling.scores(own.scores, -torch.inf))

    def _mass_on_dropped(self, own: Structure) -> Tensor:
        """Sum the marginals of candidates with at least one label that is dropped."""
        back = Relabelling(self.relabelling.new, self.relabelling.old, self.relabelling.label_axes)
        marginals = own.marginals()
        survives = back.scores(torch.ones_like(self.relabelling.scores(marginals, 0.0)), 0.0)
        return (marginals * (1 - survives)).sum()


class SourcePool:
    """Several source models of one kind over one label set.

    Args:
        models: the models by name, in the order in which they are pooled.
        names: labels of the pool; by default the union of the models' labels.
        states: cached embeddings by model name; by default models with the same frozen encoder run it once
            per batch.

    Raises:
        ValueError: the models are not all of one kind, or do not predict the same columns.
    """

    def __init__(
        self,
        models: Mapping[str, StructuredModel],
        names: Sequence[str] | None = None,
        states: Mapping[str, EmbeddingSource | None] | None = None,
    ) -> None:
        kinds = {model.config.model_type for model in models.values()}
        if len(kinds) != 1:
            found = ", ".join(f"{name}: {model.config.model_type}" for name, model in models.items())
            raise ValueError(f"the sources must all be models of one kind; found {found or 'none'}")
        fills = {name: " and ".join(model.columns) for name, model in models.items()}
        if len({(fills[name], model.scheme) for name, model in models.items()}) > 1:
            found = ", ".join(
                f"{name}: {fills[name]}" + (f" ({model.scheme})" if model.scheme else "")
                for name, model in models.items()
            )
            raise ValueError(f"the sources must all predict the same column; found {found}")
        warn_of_different_vectors(models)
        ready = shared_encoders(models) if states is None else states
        self.names = joint_names(list(models.values())) if names is None else list(names)
        self.sources = [
            Source(
                name, model, Relabelling.between(model.names, self.names, model.structure), ready.get(name)
            )
            for name, model in models.items()
        ]

    @property
    def source_names(self) -> list[str]:
        """Names of the sources, in order."""
        return [source.name for source in self.sources]

    def distributions(self, rows: Sequence[Row]) -> list[Structure]:
        """Return each source's distribution over the structures of a batch of rows, on one device."""
        return [source.distribution(rows) for source in self.sources]

    def gold_candidates(self, rows: Sequence[Row], like: Structure) -> Tensor:
        """Return the gold candidates of a batch over the labels of the pool: (B, G), -1 for unknown labels.

        Args:
            rows: B rows with gold.
            like: a distribution over the batch's structures.

        Raises:
            ValueError: the rows hold no gold.
        """
        model = self.sources[0].model
        missing = [column for column in model.columns if column not in rows[0]]
        if missing:
            raise ValueError(
                f"sentence {rows[0].get('sent_id', '?')} has no column {' and '.join(missing)}; expected "
                "rows with gold, as prepared from a treebank"
            )
        labels = model.encode_gold(rows, self.names).to(like.scores.device)
        lengths = torch.tensor([len(row["words"]) for row in rows], device=like.scores.device)
        return like.candidates(model.gold_best(labels, lengths, self.names))

    def weights(self, by_name: Mapping[str, float] | None) -> list[float] | None:
        """Return weights by name in the order of the sources.

        Raises:
            ValueError: a source has no weight, or a weight has no source.
        """
        if by_name is None:
            return None
        missing = sorted(set(self.source_names) - set(by_name))
        extra = sorted(set(by_name) - set(self.source_names))
        if missing or extra:
            raise ValueError(
                f"expected weights for exactly {', '.join(self.source_names)}; missing: "
                f"{', '.join(missing) or 'none'}; without a source: {', '.join(extra) or 'none'}"
            )
        return [by_name[name] for name in self.source_names]

    def take_dropped_mass(self) -> dict[str, float]:
        """Return the expected number of candidates with dropped labels by source, and reset it to zero."""
        mass = {}
        for source in self.sources:
            if source.relabelling.dropped:
                mass[source.name], source.dropped_mass = source.dropped_mass, 0.0
        return mass


def joint_names(models: Sequence[StructuredModel]) -> list[str]:
    """Return the union of several models' labels: the first model's order, then what others add.

    Special labels, which every model of a kind has, stay last.
    """
    labels: dict[str, None] = {}
    for model in models:
        labels |= dict.fromkeys(model.config.labels or [])
    return [*labels, *models[0].special_names]

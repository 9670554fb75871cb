"""Pool sources: their distributions over one label set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from hf_xst.charts.alphabet import Relabelling
from hf_xst.charts.chart import SourceDistributions
from hf_xst.models.cached_embeddings import share_encoders
from hf_xst.models.columns import Row, StructureColumns
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.running import EmbeddingSource, run_rows
from hf_xst.sources.base import LabelledTags, LabelledTrees, Source
from hf_xst.sources.stored import MarginalsStore
from hf_xst.sources.word_checks import warn_of_different_vectors
from hf_xst.structures.base import Structure

AnySource = StructuredModel | Source


@dataclass
class PooledSource:
    """A source and how its labels map to those of the pool; `kind` is the source itself for a model."""

    name: str
    source: AnySource
    kind: StructureColumns
    relabelling: Relabelling
    embeddings: EmbeddingSource | None = None
    dropped_mass: Tensor = field(default_factory=partial(torch.zeros, 0), init=False)
    """Expected number of candidates with dropped labels in each sentence of the latest batch, (B,)."""

    def distribution(self, rows: Sequence[Row], *, bf16: bool = False) -> Structure:
        """Return the distribution over structures that use the labels of the pool only."""
        if isinstance(self.source, StructuredModel):
            output = run_rows(self.source, rows, self.embeddings, bf16=bf16)
            own: Structure = self.source.distribution(output)
        else:
            own = self.source.distributions(rows)
            self._check(own, rows)
        if self.relabelling.is_identity:
            return self.kind.with_label_rules(own)
        if self.relabelling.dropped:
            self.dropped_mass = self._mass_on_dropped(own)
        scores = self.relabelling.scores(own.scores, -torch.inf)
        return self.kind.with_label_rules(own.with_scores(scores), self.relabelling.new)

    def _check(self, own: Structure, rows: Sequence[Row]) -> None:
        """Raise ValueError if the source returned something else than the structures of the rows."""
        kind, added = self.kind, sum(self.kind.added_groups)
        expected = [len(row["words"]) + added for row in rows], {len(kind.names)}
        found = own.lengths.tolist(), {own.scores.shape[axis] for axis in own.LABEL_AXES}
        if not isinstance(own, kind.structure) or found != expected:
            raise ValueError(
                f"the source {self.name} returned a {type(own).__name__} of the lengths {found[0]} over "
                f"{found[1]} labels; expected a {kind.structure.__name__} of the lengths {expected[0]} over "
                f"{expected[1]} labels, special ones included"
            )

    def _mass_on_dropped(self, own: Structure) -> Tensor:
        """Sum the marginals of candidates with at least one label that is dropped: (B,)."""
        back = Relabelling(self.relabelling.new, self.relabelling.old, self.relabelling.label_axes)
        marginals = own.marginals()
        survives = back.scores(torch.ones_like(self.relabelling.scores(marginals, 0.0)), 0.0)
        return (marginals * (1 - survives)).flatten(1).sum(1)


class SourcePool:
    """Several sources of one kind over one label set, in the order in which they are pooled.

    `read` takes distributions from `store`, if one is set, and adds those that it lacks.

    Args:
        sources: models and other sources by name.
        names: labels of the pool; by default the union of the sources' labels.
        states: cached embeddings by model name; by default equal frozen encoders run once per batch.
        bf16: run models in bfloat16.

    Raises:
        ValueError: the sources are not all of one kind, or do not predict the same columns.
    """

    def __init__(
        self,
        sources: Mapping[str, AnySource],
        names: Sequence[str] | None = None,
        states: Mapping[str, EmbeddingSource | None] | None = None,
        *,
        bf16: bool = False,
    ) -> None:
        kinds = {name: kind_of(source) for name, source in sources.items()}
        _check_kinds(kinds)
        models = {name: each for name, each in sources.items() if isinstance(each, StructuredModel)}
        warn_of_different_vectors(models)
        embeddings = share_encoders(models) if states is None else states
        self.names = joint_names(list(kinds.values())) if names is None else list(names)
        self.store: MarginalsStore | None = None
        self.bf16 = bf16
        self.sources = [
            PooledSource(
                name,
                source,
                kinds[name],
                Relabelling.between(kinds[name].names, self.names, kinds[name].structure),
                embeddings.get(name),
            )
            for name, source in sources.items()
        ]

    @property
    def kind(self) -> StructureColumns:
        """Structure and columns of the sources, to translate gold and best structures; pass it `names`."""
        return self.sources[0].kind

    @property
    def source_names(self) -> list[str]:
        """Names of the sources, in order."""
        return [source.name for source in self.sources]

    def distributions(self, rows: Sequence[Row]) -> list[Structure]:
        """Return each source's distribution over the structures of a batch of rows, on one device."""
        return [source.distribution(rows, bf16=self.bf16) for source in self.sources]

    def read(self, rows: Sequence[Row]) -> SourceDistributions:
        """Return the sources' distributions over a batch, from the store if it has all sentences."""
        if self.store is None:
            return SourceDistributions(self.distributions(rows))

        def run() -> tuple[SourceDistributions, Tensor]:
            found, none = SourceDistributions(self.distributions(rows)), torch.zeros(len(rows))
            masses = [
                source.dropped_mass.cpu() if source.relabelling.dropped else none for source in self.sources
            ]
            return found, torch.stack(masses)

        found, dropped = self.store.read(rows, run)
        for source, mass in zip(self.sources, dropped, strict=True):
            source.dropped_mass = mass
        return found

    def gold_candidates(self, rows: Sequence[Row], like: Structure) -> Tensor:
        """Return the gold candidates of a batch over the labels of the pool: (B, G), -1 for unknown labels.

        `like` is a distribution over the batch's structures.

        Raises:
            ValueError: the rows hold no gold.
        """
        missing = [column for column in self.kind.columns if column not in rows[0]]
        if missing:
            raise ValueError(
                f"sentence {rows[0].get('sent_id', '?')} has no column {' and '.join(missing)}; expected "
                "rows with gold, as prepared from a treebank"
            )
        labels = self.kind.encode_gold(rows, self.names).to(like.scores.device)
        lengths = torch.tensor([len(row["words"]) for row in rows], device=like.scores.device)
        return like.candidates(self.kind.gold_best(labels, lengths, self.names))

    def weights(self, by_name: Mapping[str, float] | None) -> list[float] | None:
        """Return weights by name in the order of the sources; raise ValueError unless each source has one."""
        if by_name is None:
            return None
        names = self.source_names
        missing, extra = sorted(set(names) - set(by_name)), sorted(set(by_name) - set(names))
        if missing or extra:
            raise ValueError(
                f"expected weights for exactly {', '.join(names)}; missing: {', '.join(missing) or 'none'}; "
                f"without a source: {', '.join(extra) or 'none'}"
            )
        return [by_name[name] for name in names]

    def dropped_mass(self) -> dict[str, float]:
        """Return the expected number of candidates with dropped labels in the latest batch, by source."""
        lossy = [source for source in self.sources if source.relabelling.dropped]
        return {source.name: float(source.dropped_mass.sum()) for source in lossy}


def kind_of(source: AnySource) -> StructureColumns:
    """Return the kind of structure and the columns of a source, from its columns if it does not say."""
    if isinstance(source, StructureColumns):
        return source
    if source.columns == LabelledTrees(()).columns:
        return LabelledTrees(source.names)
    return LabelledTags(source.names[: -len(LabelledTags.special_names)], *source.columns)


def _check_kinds(kinds: Mapping[str, StructureColumns]) -> None:
    if len({(kind.structure, kind.columns, kind.scheme) for kind in kinds.values()}) != 1:
        found = ", ".join(
            f"{name}: {' and '.join(kind.columns)}" + (f" ({kind.scheme})" if kind.scheme else "")
            for name, kind in kinds.items()
        )
        raise ValueError(f"the sources must all predict the same columns; found {found or 'none'}")


def joint_names(kinds: Sequence[StructureColumns]) -> list[str]:
    """Return the union of several label sets: the order of the first, then what others add.

    Special labels, which every member of a kind has, stay last.
    """
    labels: dict[str, None] = {}
    for kind in kinds:
        labels |= dict.fromkeys(kind.names[: len(kind.names) - len(kind.special_names)])
    return [*labels, *kinds[0].special_names]

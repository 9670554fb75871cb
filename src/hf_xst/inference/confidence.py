"""Decode a distribution over structures, with exact probabilities and the k best alternatives.

The probability of a word's claim (see `StructuredModel.candidate_parts`) is the mass of all candidates that
make it, a sum of marginals; that of a whole structure is exp(score - log Z).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from hf_xst.models.modeling import Columns, StructuredModel, StructuredOutput
from hf_xst.numerics import NEGATIVE_INFINITY
from hf_xst.structures.base import Structure

Decoding = Literal["best", "minimum-risk"]


class Ranked(NamedTuple):
    """One of the most probable structures of a sentence."""

    columns: Columns
    log_prob: float


@dataclass(frozen=True)
class Annotation:
    """The predictions for a sentence.

    Attributes:
        columns: one value per word, by the name of the column.
        log_probs: log-probability of the structure, by its name (`tree`, `tags`); only with confidence.
        probabilities: one probability per word, by the part of its claim (`head`, `tag` ...); only with
            confidence.
        ranked: the most probable structures, best first, if requested; fewer if there are not as many.
        skipped: why the sentence was not annotated, or None; then everything else is empty.
    """

    columns: Columns = field(default_factory=dict)
    log_probs: dict[str, float] = field(default_factory=dict)
    probabilities: dict[str, list[float]] = field(default_factory=dict)
    ranked: tuple[Ranked, ...] = ()
    skipped: str | None = None

    def followed_by(self, other: Annotation) -> Annotation:
        """Add the predictions of a later model."""
        return Annotation(
            self.columns | other.columns,
            self.log_probs | other.log_probs,
            self.probabilities | other.probabilities,
            other.ranked,
        )


@torch.no_grad()
def decode_output(
    model: StructuredModel,
    output: StructuredOutput,
    decoding: Decoding = "best",
    confidence: bool = False,
    kbest: int = 0,
) -> list[Annotation]:
    """Turn a model's output for a batch, without gold, into an annotation of each sentence.

    The decoding is the most probable structure ("best"), or the one with the largest expected number of
    correct candidates ("minimum-risk", Goodman 1996). `confidence` adds probabilities, `kbest` as many most
    probable structures.
    """
    distribution, lengths = model.distribution(output), output.lengths
    if decoding == "best" and not confidence and not kbest:
        return [Annotation(columns) for columns in model.decode(distribution.best(), lengths)]
    marginals, total = distribution.marginals_and_total()
    chosen = distribution.best() if decoding == "best" else minimum_risk(distribution, marginals)
    columns = model.decode(chosen, lengths)
    ranked: list[tuple[Ranked, ...]] = [()] * len(columns)
    if kbest:
        ranked = _ranked(model, distribution, total, lengths, kbest)
    if not confidence:
        return [Annotation(each, ranked=best) for each, best in zip(columns, ranked, strict=True)]
    log_probs = [{model.structure_name: value} for value in _log_probs(distribution, chosen, total)]
    claims = claim_probabilities(model, distribution, marginals, chosen)
    parts = [
        {part: values[index, :length].tolist() for part, values in claims.items()}
        for index, length in enumerate(lengths.tolist())
    ]
    return [Annotation(*each) for each in zip(columns, log_probs, parts, ranked, strict=True)]


def minimum_risk(distribution: Structure, marginals: Tensor) -> Any:
    """Return the best structures when candidates score their marginals, in the form of `best()`."""
    possible = distribution.valid_parts & (distribution.scores > NEGATIVE_INFINITY)
    return distribution.with_scores(marginals.masked_fill(~possible, NEGATIVE_INFINITY)).best()


def claim_probabilities(
    model: StructuredModel, distribution: Structure, marginals: Tensor, best: Any
) -> dict[str, Tensor]:
    """Return the probability of each word's claim, by part: (B, G), 0 without a candidate.

    `marginals` have the shape of the scores, `best` has the form of the structure's `best()`.
    """
    mass, candidates = distribution.group_view(marginals), distribution.candidates(best)
    every = torch.arange(mass.shape[2], device=mass.device)
    claimed = model.candidate_parts(candidates.clamp(min=0))
    result = {}
    for part, claims in model.candidate_parts(every).items():
        # (B, G, number of claims): the mass of all candidates with the same claim.
        shared = mass if torch.equal(claims, every) else mass @ one_hot(claims).to(mass.dtype)
        values = shared.gather(2, claimed[part].unsqueeze(2)).squeeze(2)
        result[part] = values.clamp(max=1).masked_fill(candidates < 0, 0)
    return result


def _log_probs(distribution: Structure, best: Any, total: Tensor) -> list[float]:
    """Return the log-probability of each sentence's structure, -inf if it has none."""
    candidates = distribution.candidates(best)
    complete = (candidates >= 0).sum(1) == distribution.group_lengths
    ratio = (distribution.score_of(candidates) - total).clamp(max=0)
    values: list[float] = ratio.masked_fill(~complete, NEGATIVE_INFINITY).tolist()
    return values


def _ranked(
    model: StructuredModel, distribution: Structure, total: Tensor, lengths: Tensor, k: int
) -> list[tuple[Ranked, ...]]:
    structures = distribution.topk(k)
    ranked: list[list[Ranked]] = [[] for _ in lengths]
    for rank in range(k):
        best = tuple(part[rank] for part in structures) if isinstance(structures, tuple) else structures[rank]
        columns, log_probs = model.decode(best, lengths), _log_probs(distribution, best, total)
        for results, each, log_prob in zip(ranked, columns, log_probs, strict=True):
            if log_prob > NEGATIVE_INFINITY:
                results.append(Ranked(each, log_prob))
    return [tuple(results) for results in ranked]

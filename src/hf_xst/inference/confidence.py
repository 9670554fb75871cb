"""What is read off a distribution over structures: the chosen one, how probable it is, and what comes next.

All probabilities are exact. A word's claims (see `StructuredModel.candidate_parts`) have the mass of the
candidates that make them, a sum of marginals; a whole structure has exp(score - log Z).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from hf_xst.models.modeling import StructuredModel, StructuredOutput
from hf_xst.numerics import NEGATIVE_INFINITY
from hf_xst.structures.base import Structure

Columns = dict[str, list[Any]]
Rule = Literal["best", "minimum-risk"]


@dataclass(frozen=True)
class Reading:
    """What is wanted of a distribution.

    Args:
        rule: the most probable structure ("best"), or the one with the most right candidates to be expected
            ("minimum-risk", Goodman 1996): the best one when candidates score their marginals.
        confidence: also the probability of each word's claims and of the whole structure.
        kbest: also so many most probable structures with their probabilities; 0 for none.

    Raises:
        ValueError: the rule is unknown, or `kbest` negative.
    """

    rule: Rule = "best"
    confidence: bool = False
    kbest: int = 0

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"decoding is {self.rule!r}; expected {' or '.join(get_args(Rule))}")
        if self.kbest < 0:
            raise ValueError(f"kbest is {self.kbest}; expected 0 (none) or how many structures are wanted")

    def without_ranks(self) -> Reading:
        """Return the same without the k best."""
        return replace(self, kbest=0)


class Ranked(NamedTuple):
    """One of the most probable structures of a sentence."""

    columns: Columns
    log_prob: float


@dataclass(frozen=True)
class Finding:
    """What a model says about a sentence.

    Attributes:
        columns: the chosen structure as the model's columns.
        log_prob: its log-probability, where confidence is wanted.
        probabilities: for each part of the words' claims one probability a word, where that is wanted.
        ranked: the most probable structures, best first, where they are wanted; fewer where there are fewer.
    """

    columns: Columns
    log_prob: float | None = None
    probabilities: dict[str, list[float]] = field(default_factory=dict)
    ranked: tuple[Ranked, ...] = ()


@torch.no_grad()
def findings(model: StructuredModel, output: StructuredOutput, reading: Reading) -> list[Finding]:
    """Read a model's output for a batch of sentences.

    Args:
        model: the model.
        output: its output without gold.
        reading: what is wanted.

    Returns:
        One finding for each sentence.
    """
    assert output.lengths is not None
    distribution, lengths = model.distribution(output), output.lengths
    if reading == Reading():
        return [Finding(columns) for columns in model.decode(distribution.best(), lengths)]
    marginals, total = distribution.marginals_and_total()
    chosen = distribution.best() if reading.rule == "best" else minimum_risk(distribution, marginals)
    found = [Finding(columns) for columns in model.decode(chosen, lengths)]
    if reading.confidence:
        log_probs = _log_probs(distribution, chosen, total)
        probabilities = claim_probabilities(model, distribution, marginals, chosen)
        sure = zip(found, log_probs, _by_sentence(probabilities, lengths), strict=True)
        found = [replace(one, log_prob=whole, probabilities=parts) for one, whole, parts in sure]
    if reading.kbest:
        ranked = _ranked(model, distribution, total, lengths, reading.kbest)
        found = [replace(one, ranked=rest) for one, rest in zip(found, ranked, strict=True)]
    return found


def minimum_risk(distribution: Structure, marginals: Tensor) -> Any:
    """Return the structures with the most right candidates to be expected, as `best()` does.

    Args:
        distribution: over structures.
        marginals: its marginals.
    """
    possible = distribution.valid_parts & (distribution.scores > NEGATIVE_INFINITY)
    return distribution.with_scores(marginals.masked_fill(~possible, NEGATIVE_INFINITY)).best()


def claim_probabilities(
    model: StructuredModel, distribution: Structure, marginals: Tensor, best: Any
) -> dict[str, Tensor]:
    """Return the probability of what a structure claims about each word, part by part.

    Args:
        model: says which candidates make the same claim.
        distribution: over structures.
        marginals: in the shape of its scores.
        best: a structure as `best()` returns it.

    Returns:
        For each part (B, G); 0 where there is no candidate.
    """
    mass, candidates = distribution.group_view(marginals), distribution.candidates(best)
    every = torch.arange(mass.shape[2], device=mass.device)
    own = model.candidate_parts(candidates.clamp(min=0))
    found = {}
    for part, claims in model.candidate_parts(every).items():
        shared = mass if torch.equal(claims, every) else mass @ one_hot(claims).to(mass.dtype)
        chosen = shared.gather(2, own[part].unsqueeze(2)).squeeze(2)
        found[part] = chosen.clamp(max=1).masked_fill(candidates < 0, 0)
    return found


def _log_probs(distribution: Structure, best: Any, total: Tensor) -> list[float]:
    """Return the log-probability of each sentence's structure, -inf where it has none."""
    candidates = distribution.candidates(best)
    complete = (candidates >= 0).sum(1) == distribution.group_lengths
    ratio = (distribution.score_of(candidates) - total).clamp(max=0)
    values: list[float] = ratio.masked_fill(~complete, NEGATIVE_INFINITY).tolist()
    return values


def _by_sentence(found: dict[str, Tensor], lengths: Tensor) -> list[dict[str, list[float]]]:
    rows = {part: values.tolist() for part, values in found.items()}
    return [
        {part: values[place][:length] for part, values in rows.items()}
        for place, length in enumerate(lengths.tolist())
    ]


def _ranked(
    model: StructuredModel, distribution: Structure, total: Tensor, lengths: Tensor, k: int
) -> list[tuple[Ranked, ...]]:
    structures = distribution.topk(k)
    found: list[list[Ranked]] = [[] for _ in lengths]
    for rank in range(k):
        one = tuple(part[rank] for part in structures) if isinstance(structures, tuple) else structures[rank]
        pairs = zip(model.decode(one, lengths), _log_probs(distribution, one, total), strict=True)
        for own, (columns, log_prob) in zip(found, pairs, strict=True):
            if log_prob > NEGATIVE_INFINITY:
                own.append(Ranked(columns, log_prob))
    return [tuple(own) for own in found]

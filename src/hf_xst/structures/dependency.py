"""Distributions over labelled dependency trees: projective or not, with one or several root words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor

from hf_xst.numerics import NEGATIVE_INFINITY, wide_logsumexp, working_dtype, zero_if_infinite
from hf_xst.structures.base import Structure, check_at_least_one, check_below, checked_below_infinity
from hf_xst.structures.elimination import tree_log_partition
from hf_xst.structures.projective import best_projective_heads, projective_log_partition
from hf_xst.structures.search import draw
from hf_xst.structures.spanning import best_heads, reaches_root

Tree = tuple[Tensor, Tensor]
"""Head and label of every word, (B, N) each; head 0 is the root symbol, -1 is padding."""


class DependencyTreeCRF(Structure[Tree]):
    """Trees over the words 1..n and the root symbol 0; a tree's score is the sum over its labelled arcs.

    Group g is word g+1 as a dependent, so G = N; a candidate is head * L + label, so C = (N+1) * L.

    Args:
        scores: (B, N+1, N+1, L): scores[b, h, d, l] is the arc from head h to dependent d with label l.
            Entries with d = 0, h = d or beyond the length never matter, NaN included.
        lengths: (B,) words of each sentence, 1..N; defaults to N.
        single_root: whether exactly one word is attached to the root symbol.
        projective: whether crossing arcs are excluded.
        root_label: the label that `best`, `topk`, `sample` and votes give to arcs from the root symbol and to
            no others, wherever the scores leave the choice; by default labels are free. Partition function
            and marginals do not depend on it.

    Raises:
        ValueError: scores, lengths or the root label have the wrong shape, type or range.
    """

    LABEL_AXES: ClassVar[tuple[int, ...]] = (-1,)

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        projective: bool = False,
        root_label: int | None = None,
    ) -> None:
        super().__init__(scores, lengths)
        if root_label is not None and not 0 <= root_label < scores.shape[3]:
            raise ValueError(
                f"root_label is {root_label}; expected the index of one of {scores.shape[3]} labels"
            )
        self.root_label = root_label
        self.single_root = single_root
        self.projective = projective

    @staticmethod
    def _positions(scores: Tensor) -> int:
        if scores.ndim != 4 or scores.shape[1] != scores.shape[2] or scores.shape[3] < 1:
            raise ValueError(f"scores must have shape (B, N+1, N+1, L), got {tuple(scores.shape)}")
        return scores.shape[1] - 1

    def with_root_label(self, root_label: int | None) -> Self:
        """Return the same distribution with another rule for labels; see the class."""
        twin = self.with_scores(self.scores)
        twin.root_label = root_label
        return twin

    def decodable(self) -> Self:
        """Return the distribution without arcs whose label breaks the rule of `root_label`, detached."""
        if self.root_label is None:
            return self
        scores = self.scores.detach().clone()
        as_root = scores[..., self.root_label].clone()  # (B, N+1, N+1)
        scores[..., self.root_label] = NEGATIVE_INFINITY
        otherwise = scores.amax(3)
        # The rule must not hide a NaN or +inf.
        strongest = torch.maximum(as_root, otherwise)
        checked_below_infinity(strongest.masked_fill(~self._valid_arcs(), NEGATIVE_INFINITY))
        scores[..., self.root_label] = as_root.masked_fill(otherwise > NEGATIVE_INFINITY, NEGATIVE_INFINITY)
        scores[:, 0].masked_fill_((as_root[:, 0] > NEGATIVE_INFINITY)[..., None], NEGATIVE_INFINITY)
        scores[:, 0, :, self.root_label] = as_root[:, 0]
        return self.with_scores(scores).with_root_label(None)

    @property
    def valid_parts(self) -> Tensor:
        """Bool (B, N+1, N+1, L): arcs between different nodes of the sentence, except into the root."""
        return self._valid_arcs().unsqueeze(3).expand(self.scores.shape)

    @property
    def group_lengths(self) -> Tensor:
        """(B,) words of each sentence."""
        return self.lengths

    def group_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, N+1, N+1, L) to (B, N, (N+1) * L)."""
        return x[:, :, 1:].transpose(1, 2).flatten(2)

    def part_view(self, x: Tensor) -> Tensor:
        """Rearrange (B, N, (N+1) * L) to (B, N+1, N+1, L), with 0 or false where d = 0."""
        batch, words, candidates = x.shape
        arcs = x.reshape(batch, words, words + 1, candidates // (words + 1)).transpose(1, 2)
        return torch.cat([torch.zeros_like(arcs[:, :, :1]), arcs], 2)

    def candidates(self, best: Tree) -> Tensor:
        """Return (B, N) head * L + label, -1 in padding and if head or label is negative."""
        heads, labels = best
        count = self.scores.shape[3]
        check_below(heads, self.scores.shape[1], "heads")
        check_below(labels, count, "labels")
        absent = (heads < 0) | (labels < 0) | ~self._inside()
        return (heads.long() * count + labels).masked_fill(absent, -1)

    def best_from_candidates(self, candidates: Tensor) -> Tree:
        """Return heads and labels, (..., B, N) each."""
        count = self.scores.shape[3]
        absent = candidates < 0
        return (candidates // count).masked_fill(absent, -1), (candidates % count).masked_fill(absent, -1)

    def contains(self, best: Tree) -> Tensor:
        """Return (bool, (B,)) which are trees of this space over all words, with a label for each arc."""
        heads, labels = best
        labelled = (((labels >= 0) & (labels < self.scores.shape[3])) | ~self._inside()).all(1)
        return labelled & is_tree(
            heads, self.lengths, single_root=self.single_root, projective=self.projective
        )

    def best(self) -> Tree:
        """Return the heads and labels of the best trees; ties go to lower heads and lower labels."""
        # Each arc takes its best label, so the best labelled tree is the best tree over max_l: (B, N+1, N+1)
        scores = self.decodable().scores.detach()
        strongest = scores.amax(3).to(working_dtype(scores.device))
        strongest = strongest.masked_fill(~self._valid_arcs(), NEGATIVE_INFINITY)
        checked_below_infinity(strongest)
        strongest -= zero_if_infinite(strongest.amax(1, keepdim=True))  # as in `_log_arcs`
        if self.projective:
            heads = best_projective_heads(strongest, self.lengths, self.single_root)
        else:
            arcs = self._with_idle_padding(strongest).double().cpu().numpy()
            heads = torch.from_numpy(best_heads(arcs, self.single_root)).to(strongest.device)
        heads = heads.masked_fill(~self._inside(), -1)
        return heads, _at_arcs(scores, heads).argmax(2).masked_fill(heads < 0, -1)

    def sample(self, k: int, *, generator: torch.Generator | None = None) -> Tree:
        """Draw k trees of each sentence: first heads, with the labels summed out, then each arc's label."""
        wide = self.decodable()._wide()
        unlabelled = wide.with_scores(wide._log_arcs()[0].unsqueeze(3))
        heads, _ = Structure.sample(unlabelled, k, generator=generator)
        return heads, draw(_at_arcs(wide.scores, heads), generator).masked_fill(heads < 0, -1)

    def topk(self, k: int) -> Tree:
        """Return the k best trees of each sentence, best first."""
        check_at_least_one(k)
        # The k best trees contain only the k best labels of each arc: (B, N+1, N+1, k)
        decodable = self.decodable()
        ranked = decodable.scores.detach().sort(dim=3, descending=True, stable=True)
        heads, ranks = Structure.topk(decodable.with_scores(ranked.values[..., :k]), k)
        labels = _at_arcs(ranked.indices, heads).gather(3, ranks.clamp(min=0).unsqueeze(3)).squeeze(3)
        return heads, labels.masked_fill(heads < 0, -1)

    def vote(self, ballots: Sequence[Tree]) -> Tree:
        """Return the tree with the most votes for its arcs; those from the root symbol have `root_label`."""
        label = self.root_label
        if label is not None:
            ballots = [
                (heads, labels.masked_fill((heads == 0) & (labels >= 0), label)) for heads, labels in ballots
            ]
        return super().vote(ballots)

    @classmethod
    def majority(
        cls,
        heads: Tensor,
        labels: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = True,
        projective: bool = False,
    ) -> Tree:
        """Return the trees with the most votes for their labelled arcs; see `vote`.

        Args:
            heads: (S, B, N) of S sources, each in the form of `best()`; -1 is an abstention.
            labels: (S, B, N), likewise.
            lengths: (B,) words of each sentence; defaults to N.
            single_root: whether exactly one word is attached to the root symbol.
            projective: whether crossing arcs are excluded.

        Raises:
            ValueError: the shapes differ or are not (S, B, N) with at least one source.
        """
        if heads.ndim != 3 or heads.shape != labels.shape or not len(heads):
            shapes = f"{tuple(heads.shape)} and {tuple(labels.shape)}"
            raise ValueError(f"heads and labels must both have shape (S, B, N), S at least 1, got {shapes}")
        _, batch, words = heads.shape
        count = max(int(labels.max()) if labels.numel() else 0, 0) + 1
        blank = torch.zeros(batch, words + 1, words + 1, count, device=heads.device)
        space = cls(blank, lengths, single_root=single_root, projective=projective)
        return space.vote(list(zip(heads, labels, strict=True)))

    def _log_partition(self) -> Tensor:
        arcs, best = self._log_arcs()
        if self.projective:
            return projective_log_partition(arcs, self.lengths, self.single_root) + best
        return tree_log_partition(self._with_idle_padding(arcs), self.single_root) + best

    def _log_arcs(self) -> tuple[Tensor, Tensor]:
        """Return the log weights of unlabelled arcs, log sum_l exp(scores[h, d, l] - best[d]): (B, N+1, N+1).

        And (B,) the sum of best[d], the highest score of each word, which keeps digits if words differ in
        scale.
        """
        arcs, best = wide_logsumexp(self.scores, self._valid_arcs(), 1)
        return checked_below_infinity(arcs), best.flatten(1).sum(1)

    def _valid_arcs(self) -> Tensor:
        """Bool (B, N+1, N+1)."""
        nodes = torch.arange(self.scores.shape[1], device=self.scores.device)
        inside = nodes <= self.lengths.unsqueeze(1)
        return inside[:, :, None] & (inside & (nodes > 0))[:, None, :] & (nodes[:, None] != nodes)

    def _with_idle_padding(self, arcs: Tensor) -> Tensor:
        """Attach the words beyond each end to word 1 with score 0, so that every sentence has N words."""
        first_word = torch.arange(arcs.shape[1], device=arcs.device) == 1
        beyond = torch.nn.functional.pad(~self._inside(), (1, 0))
        return arcs.masked_fill(first_word[:, None] & beyond[:, None, :], 0)


def _at_arcs(x: Tensor, heads: Tensor) -> Tensor:
    """Return (..., B, N, L), the entries x[b, heads[b, d], d] of x (B, N+1, N+1, L); head -1 reads 0."""
    sentences = torch.arange(x.shape[0], device=x.device).unsqueeze(1)
    dependents = torch.arange(1, x.shape[2], device=x.device)
    return x[sentences, heads.clamp(min=0), dependents]


def is_tree(heads: Tensor, lengths: Tensor, *, single_root: bool, projective: bool) -> Tensor:
    """Return, bool (B,), which heads (B, N) form a tree over all words of their sentence.

    Head 0 is the root; entries beyond a sentence's end do not matter. The other arguments are those of
    `DependencyTreeCRF`.
    """
    words = torch.arange(1, heads.shape[1] + 1, device=heads.device)
    inside = words <= lengths.unsqueeze(1)
    in_range = ~inside | ((heads >= 0) & (heads <= lengths.unsqueeze(1)))
    heads = heads.long().masked_fill(~inside | ~in_range, 0)
    valid = in_range.all(1) & reaches_root(heads)
    if single_root:
        valid &= ((heads == 0) & inside).sum(1) == 1
    if projective:
        valid &= ~_crosses(heads, words, inside)
    return valid


def _crosses(heads: Tensor, words: Tensor, inside: Tensor) -> Tensor:
    """Return (B,) whether any two arcs cross; with the root left of all words, this excludes projectivity."""
    left, right = torch.minimum(heads, words), torch.maximum(heads, words)
    starts_within = (left[:, :, None] < left[:, None, :]) & (left[:, None, :] < right[:, :, None])
    ends_beyond = right[:, None, :] > right[:, :, None]
    both = inside[:, :, None] & inside[:, None, :]
    return (starts_within & ends_beyond & both).flatten(1).any(1)

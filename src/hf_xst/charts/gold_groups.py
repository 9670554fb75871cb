"""Groups with a known correct candidate, from which weights are learned.

Sentences differ in their number of candidates, so groups are concatenated instead of padded: K candidates of
M groups by S sources. Groups without gold are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hf_xst.charts.pooling import check_log_marginals, with_floor

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class GoldGroups:
    """Groups with a gold candidate.

    Args:
        logs: (K, S), log-probabilities of candidates, the floor added; -inf is allowed.
        starts: (M,), where the candidates of each group begin.
        gold: (M,), where the right candidate of each group is, among all K.
        places: (M, 2), sentence and group.
    """

    logs: Array
    starts: Places
    gold: Places
    places: Places

    @classmethod
    def of(
        cls,
        log_marginals: Tensor,
        gold: Tensor,
        floor: float = 0.0,
        *,
        valid: Tensor | None = None,
        sentences: Sequence[int] | None = None,
    ) -> GoldGroups:
        """Take the groups with gold out of a batch.

        Args:
            log_marginals: (S, B, G, C), log-probabilities of S sources.
            gold: (B, G), index of the right candidate, -1 for none.
            floor: see `log_opinion_pool`.
            valid: bool (B, G, C), candidates that the pool may use; by default those that any source
                supports. The gold candidate always counts.
            sentences: numbers of the B sentences in place of 0 to B - 1.

        Raises:
            ValueError: the shapes do not fit, or a log-probability in a group with gold is NaN or +inf.
        """
        if log_marginals.dim() != 4 or tuple(gold.shape) != tuple(log_marginals.shape[1:3]):
            raise ValueError(
                f"expected log-marginals (S, B, G, C) and gold (B, G); found {tuple(log_marginals.shape)} "
                f"and {tuple(gold.shape)}"
            )
        chosen = gold >= 0
        raw = log_marginals.detach().permute(1, 2, 0, 3)[chosen].double()  # (M, S, C)
        check_log_marginals(raw)
        logs = with_floor(raw, floor)
        kept = (raw > -torch.inf).any(1) if valid is None else valid[chosen] & (logs > -torch.inf).any(1)
        kept = kept.scatter(-1, gold[chosen][:, None], True)
        sizes, rank = kept.sum(-1), kept.cumsum(-1) - 1
        starts = sizes.cumsum(0) - sizes
        places = torch.nonzero(chosen).numpy(force=True)
        if sentences is not None:
            places[:, 0] = np.asarray(sentences)[places[:, 0]]
        right = starts + rank.gather(-1, gold[chosen][:, None])[:, 0]
        return cls(
            logs.transpose(1, 2)[kept].numpy(force=True),
            starts.numpy(force=True),
            right.numpy(force=True),
            places,
        )

    @classmethod
    def joined(cls, parts: Sequence[GoldGroups]) -> GoldGroups:
        """Put the groups of several batches, at least one, one after another."""
        shifts = np.cumsum([0, *(len(part.logs) for part in parts)])[:-1]
        return cls(
            np.concatenate([part.logs for part in parts]),
            np.concatenate([part.starts + shift for part, shift in zip(parts, shifts, strict=True)]),
            np.concatenate([part.gold + shift for part, shift in zip(parts, shifts, strict=True)]),
            np.concatenate([part.places for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def sources(self) -> int:
        """S."""
        return int(self.logs.shape[1])

    @cached_property
    def owner(self) -> Places:
        """(K,), the group of each candidate."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts, append=len(self.logs)))

    def shared(self) -> GoldGroups:
        """Keep the candidates that every source supports, the only ones a pool of all sources can use."""
        return self.selected(np.asarray(np.isfinite(self.logs).all(1)), np.ones(len(self), dtype=bool))

    def selected(self, candidates: Mask, groups: Mask) -> GoldGroups:
        """Keep some candidates (K,) and some groups (M,), with the gold candidate of each of these."""
        before: Places = np.cumsum(candidates) - candidates  # (K,): how many are kept before each
        return GoldGroups(
            self.logs[candidates],
            before[self.starts[groups]],
            before[self.gold[groups]],
            self.places[groups],
        )

    def check(self, named: Callable[[int], str] = "sentence {}".format) -> None:
        """Raise ValueError unless a group has gold and every source gives all gold some probability.

        `named` returns the name of a sentence from its number.
        """
        if not len(self):
            raise ValueError("gold holds no candidate (all are -1); weights need labelled examples")
        impossible = self.places[(self.logs[self.gold] == -np.inf).any(1)].tolist()
        if impossible:
            shown = ", ".join(f"({named(sentence)}, group {group})" for sentence, group in impossible[:10])
            more = f" and {len(impossible) - 10} more" if len(impossible) > 10 else ""
            raise ValueError(
                f"a source gives the gold candidate probability 0 in {shown}{more}; "
                "use a floor such as 1e-9, or leave these out"
            )

    def pooled(self, weights: Array) -> Array:
        """Return each candidate's log-score in the pool, (K,), not normalised.

        Args:
            weights: (S,), or (M, S) where every group has its own. A source of weight 0 does not count.
        """
        spread = weights if weights.ndim == 1 else weights[self.owner]
        if weights.ndim == 1 and bool((weights > 0).all()):
            return np.asarray(self.logs @ weights)
        terms = np.zeros_like(self.logs)
        np.multiply(self.logs, spread, out=terms, where=np.broadcast_to(spread > 0, terms.shape))
        return np.asarray(terms.sum(1))

    def log_probs(self, weights: Array) -> Array:
        """Return each candidate's log-probability under the pool, (K,); `weights` as for `pooled`."""
        scores, owner = self.pooled(weights), self.owner
        top = np.maximum.reduceat(scores, self.starts)
        total = np.add.reduceat(np.exp(scores - top[owner]), self.starts)
        return np.asarray(scores - (top + np.log(total))[owner])

    def losses(self, weights: Array) -> Array:
        """Return minus the log-probability of each gold candidate, (M,); `weights` as for `pooled`."""
        return -self.log_probs(weights)[self.gold]

    def expected(self, probs: Array) -> Array:
        """Return each source's expected log-probability in each group, (M, S), under probabilities (K,)."""
        return np.asarray(np.add.reduceat(probs[:, None] * self.logs, self.starts))

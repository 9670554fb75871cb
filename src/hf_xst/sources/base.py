"""The interface of sources, and base classes for taggers and parsers of other packages.

Anything that gives a distribution over the structures of a sentence is a source. Taggers and parsers that
judge each word separately only have to return log-probabilities for each word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from hf_xst.models.columns import Row, StructureColumns, TagColumns, TreeColumns, possible_pairs
from hf_xst.models.configuration import check_names
from hf_xst.numerics import at_least_single
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure


@runtime_checkable
class Source(Protocol):
    """Anything that can annotate sentences.

    Attributes:
        names: its labels, along the label axes of its distributions; for taggers the two boundaries are last.
        columns: what it predicts, `("upos",)` or `("head", "deprel")`.
    """

    @property
    def names(self) -> Sequence[str]:
        """The labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The predicted columns."""

    def distributions(self, rows: Sequence[Row]) -> Structure:
        """Return the distribution over the structures of B rows with `words`, and `upos` if it reads them."""


class LabelledTags(TagColumns):
    """Tags by name, without the boundaries; with the scheme `"bio"` they mark spans."""

    def __init__(self, tags: Sequence[str], column: str = "upos", scheme: str | None = None) -> None:
        self._tags, self._column, self._scheme = list(tags), column, scheme
        check_names("labels", self.names)

    @property
    def names(self) -> list[str]:
        """The tags and the two boundaries."""
        return [*self._tags, *self.special_names]

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the tags."""
        return (self._column,)

    @property
    def scheme(self) -> str | None:
        """The scheme of the tags, if they mark spans."""
        return self._scheme


class LabelledTrees(TreeColumns):
    """Trees with relations by name."""

    def __init__(self, relations: Sequence[str]) -> None:
        self._relations = list(relations)
        check_names("labels", self.names)

    @property
    def names(self) -> list[str]:
        """The relations."""
        return self._relations


class OtherSource(StructureColumns, ABC):
    """Base of sources that are not models of this package."""

    kind = "other"
    """Kind of source, recorded with charts."""
    licence: str | None = None
    """Licence of the source, if known."""

    @abstractmethod
    def distributions(self, rows: Sequence[Row]) -> Structure:
        """Return the distribution over the structures of B sentences."""

    @abstractmethod
    def digest(self) -> str:
        """Return the SHA-256 of everything that the distributions depend on besides the sentences."""


class OtherTagger(LabelledTags, OtherSource):
    """A tagger that judges each word separately: pairs of tags have the product of their probabilities."""

    @abstractmethod
    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each tag for each word: (B, N, T), anything beyond the lengths."""

    def distributions(self, rows: Sequence[Row]) -> LinearChainCRF:
        """Return the distribution over tag sequences, boundaries included."""
        log_probs = self.log_probs(rows).to(inference_device())
        return tag_distribution(log_probs, _lengths(rows).to(log_probs.device), self.names, self.scheme)


class OtherParser(LabelledTrees, OtherSource):
    """A parser that judges the head and relation of each word."""

    @abstractmethod
    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each head (0 the root) and relation: (B, N, N+1, L)."""

    def distributions(self, rows: Sequence[Row]) -> DependencyTreeCRF:
        """Return the distribution over trees whose arcs have these probabilities as weights."""
        log_probs = self.log_probs(rows).to(inference_device())
        return tree_distribution(log_probs, _lengths(rows).to(log_probs.device))


def tag_distribution(
    log_probs: Tensor, lengths: Tensor, names: Sequence[str], scheme: str | None = None
) -> LinearChainCRF:
    """Return the distribution over tag sequences in which words are independent.

    Args:
        log_probs: (B, N, T), log-probabilities of the tags of each word.
        lengths: (B,) words of each sentence.
        names: the T tags and the two boundaries.
        scheme: `"bio"` to exclude invalid pairs, which ties neighbouring words.
    """
    log_probs = at_least_single(log_probs)
    boundary = torch.zeros_like(log_probs[:, :1])
    padded = torch.cat([log_probs, boundary], 1)  # (B, N+1, T): the pair before each word and the end
    emissions = torch.nn.functional.pad(padded, (0, 2))  # (B, N+1, T+2)
    inside = torch.arange(padded.shape[1], device=log_probs.device) < lengths[:, None]
    emissions = emissions.masked_fill(~inside[..., None], 0.0)
    pairs = emissions[:, :, None, :].expand(-1, -1, len(names), -1)  # (B, N+1, T+2, T+2)
    possible = possible_pairs(names, lengths, pairs.shape[1], scheme)
    return LinearChainCRF(pairs.masked_fill(~possible, -torch.inf), lengths + 2)


def tree_distribution(log_probs: Tensor, lengths: Tensor) -> DependencyTreeCRF:
    """Return the distribution over trees with these probabilities as weights of the arcs.

    Args:
        log_probs: (B, N, N+1, L), log-probabilities of head (0 the root) and label of each word.
        lengths: (B,) words of each sentence.
    """
    arcs = at_least_single(log_probs).transpose(1, 2)  # (B, N+1, N, L): head first
    return DependencyTreeCRF(torch.nn.functional.pad(arcs, (0, 0, 1, 0)), lengths)


def inference_device() -> torch.device:
    """Return the device on which sources run: the GPU if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _lengths(rows: Sequence[Row]) -> Tensor:
    return torch.tensor([len(row["words"]) for row in rows])

"""Translate between columns of rows and structures, by the names of labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from hf_xst.data.labels import span_type, to_bio
from hf_xst.models.configuration import BOUNDARIES
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

Row = Mapping[str, Any]
Columns = dict[str, list[Any]]
Readable = dict[str, list[list[str]]]


def column_of(row: Row, column: str, index: int) -> Sequence[Any]:
    """Return a column of the row at an index; ValueError unless it is a list with a value for each word."""
    values = row[column]
    words = row.get("words", values)
    if isinstance(values, str) or len(values) != len(words):
        raise ValueError(
            f"sentence {row.get('sent_id', index)}: found {len(values)} values of {column} for {len(words)} "
            "words; expected a list with one for each word"
        )
    return cast("Sequence[Any]", values)


class StructureColumns(ABC):
    """The columns of a kind of structure; models and other sources of distributions share it.

    Methods that take label names default to `self.names`.
    """

    structure: ClassVar[type[Structure]]
    structure_name: ClassVar[str] = "structure"
    """Name of a sentence's structure in outputs, as in `tree_log_prob`."""
    special_names: ClassVar[tuple[str, ...]] = ()
    """Labels that all members of the kind have beside their own, such as sentence boundaries."""
    added_groups: ClassVar[tuple[int, int]] = (0, 0)
    """Number of groups, at a sentence's start and end, that only tie its words to special words."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names along the structure's label axes, special labels last."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of a prepared row that are predicted."""

    @property
    def scheme(self) -> str | None:
        """The scheme of labels that mark spans, if any."""
        return None

    @property
    def label_settings(self) -> dict[str, Any]:
        """Fields of the configuration that define the labels; stored with charts, to build models from."""
        return {}

    def candidate_parts(self, candidates: Tensor) -> dict[str, Tensor]:
        """Split candidates, of any shape, into the properties that they predict, such as head and label.

        Group i of a sentence belongs to its i-th word. Each property is a tensor of the same shape, with
        equal numbers for equal values; the probability of a value is the mass of the candidates with it.
        """
        return {"label": candidates}

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """Write the allowed candidates of each group as columns of text, a list of strings for each word.

        The names of the columns are the same for every sentence, even an empty one.
        """
        labels = [list(dict.fromkeys(names[each % len(names)] for each in group)) for group in allowed]
        return {"allowed_labels": labels}

    def with_label_rules(self, distribution: Structure, names: Sequence[str] | None = None) -> Structure:
        """Return the distribution with the rules that the labels of its best structures obey."""
        return distribution

    @abstractmethod
    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Turn the gold columns of B prepared rows into `labels`; -1 for padding and unknown names."""

    @abstractmethod
    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Any:
        """Turn `labels` into the form of the structure's `best()`."""

    @abstractmethod
    def decode(self, best: Any, lengths: Tensor, names: Sequence[str] | None = None) -> list[Columns]:
        """Turn the `best()` of a batch into its columns, one mapping per sentence; `lengths` are (B,)."""


class TagColumns(StructureColumns):
    """Tag sequences, with a start and an end tag around every sentence."""

    structure, structure_name = LinearChainCRF, "tags"
    special_names = BOUNDARIES
    added_groups = (1, 1)

    @property
    def label_settings(self) -> dict[str, Any]:
        """The column and the scheme of the tags."""
        return {"column": self.columns[0], "scheme": self.scheme}

    def candidate_parts(self, candidates: Tensor) -> dict[str, Tensor]:
        """Return the second tag of each pair: the i-th pair ends at the i-th word."""
        return {"tag": candidates % len(self.names)}

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """List each word's allowed tags: those that end an allowed pair and begin another."""
        tags = len(names)
        ends = [{pair % tags for pair in group} for group in allowed[:-1]]
        begins = [{pair // tags for pair in group} for group in allowed[1:]]
        both = [sorted(left & right) for left, right in zip(ends, begins, strict=True)]
        return {"allowed_tags": [[names[tag] for tag in word] for word in both]}

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Return (B, N): tag index of each word, -1 for padding and unknown tags.

        With a scheme, gold in another scheme is converted to BIO, see `to_bio`.
        """
        index_of = {name: index for index, name in enumerate(names or self.names) if name not in BOUNDARIES}
        columns = [column_of(row, self.columns[0], index) for index, row in enumerate(rows)]
        if self.scheme is not None:
            columns = [to_bio(column) for column in columns]
        tags = [torch.tensor([index_of.get(tag or "", -1) for tag in column]) for column in columns]
        return nn.utils.rnn.pad_sequence(tags, batch_first=True, padding_value=-1)

    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Tensor:
        """Add the boundaries: (B, N+2)."""
        alphabet = list(names or self.names)
        start, end = (alphabet.index(boundary) for boundary in BOUNDARIES)
        padded = nn.functional.pad(labels, (1, 1), value=-1)
        position = torch.arange(padded.shape[1], device=labels.device)
        padded = torch.where(position == 0, start, padded)
        return torch.where(position == (lengths + 1)[:, None], end, padded)

    def decode(self, best: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> list[Columns]:
        """Return the tag column of each sentence, without boundaries."""
        alphabet = names or self.names
        return [
            {self.columns[0]: [alphabet[tag] if tag >= 0 else "_" for tag in row[1 : n + 1]]}
            for row, n in zip(best.tolist(), lengths.tolist(), strict=True)
        ]


class TreeColumns(StructureColumns):
    """Labelled dependency trees."""

    structure, structure_name = DependencyTreeCRF, "tree"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns `head` (int, 0 for the root) and `deprel`."""
        return ("head", "deprel")

    def candidate_parts(self, candidates: Tensor) -> dict[str, Tensor]:
        """Return head, label, and both together."""
        labels = len(self.names)
        return {"head": candidates // labels, "label": candidates % labels, "arc": candidates}

    def with_label_rules(self, distribution: Structure, names: Sequence[str] | None = None) -> Structure:
        """Let best trees have the relation `root`, if there is one, at head 0 and nowhere else."""
        assert isinstance(distribution, DependencyTreeCRF)
        alphabet = list(names or self.names)
        return distribution.with_root_label(alphabet.index("root") if "root" in alphabet else None)

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """List each word's allowed heads and, for each of them, the allowed labels."""
        nodes = ["0 (root)", *(f"{position} {word}" for position, word in enumerate(words, start=1))]
        columns: Readable = {"allowed_heads": [], "allowed_labels": []}
        for group in allowed:
            by_head: dict[int, list[str]] = {}
            for candidate in sorted(group):
                by_head.setdefault(candidate // len(names), []).append(names[candidate % len(names)])
            columns["allowed_heads"].append([nodes[head] for head in by_head])
            columns["allowed_labels"].append(["|".join(labels) for labels in by_head.values()])
        return columns

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        """Return (B, N, 2): head and label index of each word, -1 for padding and unknown relations.

        Raises:
            ValueError: a head is beyond the sentence, or a word is its own head.
        """
        index_of = {name: index for index, name in enumerate(names or self.names)}
        pairs = []
        for index, row in enumerate(rows):
            heads, relations = (column_of(row, name, index) for name in self.columns)
            numbers = [-1 if head is None else int(head) for head in heads]
            for word, head in enumerate(numbers, start=1):
                if head > len(numbers) or head == word:
                    raise ValueError(
                        f"sentence {row.get('sent_id', index)}: word {word} has the head {head}; expected 0 "
                        f"or another word up to {len(numbers)}"
                    )
            labels = [index_of.get(relation, -1) for relation in relations]
            pairs.append(torch.tensor([*zip(numbers, labels, strict=True)]).view(-1, 2))
        return nn.utils.rnn.pad_sequence(pairs, batch_first=True, padding_value=-1)

    def gold_best(
        self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return heads and labels, each (B, N)."""
        heads, relations = labels.unbind(-1)
        return heads, relations

    def decode(
        self, best: tuple[Tensor, Tensor], lengths: Tensor, names: Sequence[str] | None = None
    ) -> list[Columns]:
        """Return `head` and `deprel` of each sentence."""
        alphabet = names or self.names
        columns = zip(best[0].tolist(), best[1].tolist(), lengths.tolist(), strict=True)
        return [
            {
                "head": heads[:n],
                "deprel": [alphabet[label] if label >= 0 else "_" for label in labels[:n]],
            }
            for heads, labels, n in columns
        ]


def possible_pairs(names: Sequence[str], lengths: Tensor, pairs: int, scheme: str | None = None) -> Tensor:
    """Return which pairs of adjacent tags respect the boundaries and the scheme: bool (B, P, T+2, T+2).

    `names` are the T tags and the two boundaries, `lengths` (B,) the words of each sentence, and P, at least
    N+1, the number of pairs.
    """
    tags = len(names)
    start, end = tags - 2, tags - 1
    tag = torch.arange(tags, device=lengths.device)
    pair = torch.arange(pairs, device=lengths.device)
    is_word = tag < start
    previous = torch.where((pair == 0)[:, None], tag == start, is_word)  # (P, T+2)
    last = (pair == lengths[:, None])[..., None]
    following = torch.where(last, tag == end, is_word)  # (B, P, T+2)
    possible = previous[None, :, :, None] & following[:, :, None, :]
    return possible if scheme is None else possible & bio_pairs(names).to(lengths.device)


def bio_pairs(names: Sequence[str]) -> Tensor:
    """Return which pairs (previous, next) are valid, bool (T, T): `I-X` only follows `B-X` or `I-X`."""
    types = [span_type(name) for name in names]
    type_id = torch.tensor([types.index(each) for each in types])
    is_inside = torch.tensor([name.startswith("I-") for name in names])
    return ~is_inside | (type_id[:, None] == type_id)

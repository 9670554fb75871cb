"""Prepare treebank rows for training and annotation, and validate gold trees.

The prepared layout has exactly ``sent_id``, ``words``, ``upos`` and, with gold, ``head`` (integers, 0 for the
root) and ``deprel`` (without subtypes). Without gold, heads and relations are never read: they may be blank,
stale, broken or missing. Further label columns are added on request (`hf_xst.data.labels`).

Faults of gold are a head that is blank, not an integer, or beyond the sentence; a blank relation; a word that
heads itself; a cycle; no root; several roots, if one is required (``single_root``). Names of relations are
never a fault (head 0 with a relation other than ``root``, or the reverse): they are ordinary labels, and real
treebanks contain such words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
from datasets import Dataset, Features, List, Value

from hf_xst.data.conllu import read_conllu
from hf_xst.data.labels import LabelColumn, label_column
from hf_xst.data.layout import STRINGS, map_rows, sentences_to_dataset
from hf_xst.data.sentence import BLANK, head_number

_VERSION = 2  # part of the fingerprint of cached results
_MAX_NAMED = 3
_FAULT, _TOO_LONG = "hf_xst_fault", "hf_xst_too_long"


class GoldError(ValueError):
    """Sentences have unusable gold annotation."""


@dataclass(frozen=True)
class PreparationReport:
    """Counts of kept and dropped sentences.

    `too_long_ids` and `faulty_ids` name the first few dropped sentences; `limit` includes `added_tokens`.
    """

    sentences: int
    kept: int
    too_long: int
    faulty: int
    too_long_ids: tuple[str, ...]
    faulty_ids: tuple[str, ...]
    limit: int | None
    added_tokens: int

    def __str__(self) -> str:
        counts = [f"{self.kept} of {self.sentences} sentences kept"]
        if self.limit is not None:
            added = f" with {self.added_tokens} added" if self.added_tokens else ""
            counts.append(f"{self.too_long} over {self.limit} tokens{added}{_examples(self.too_long_ids)}")
        counts.append(f"{self.faulty} faulty{_examples(self.faulty_ids)}")
        return ", ".join(counts)


def prepared_features(*, gold: bool) -> Features:
    """Return the schema of the prepared layout."""
    annotation = {"head": List(Value("int32")), "deprel": STRINGS} if gold else {}
    return Features({"sent_id": Value("string"), "words": STRINGS, "upos": STRINGS, **annotation})


def prepare(
    dataset: Dataset,
    *,
    gold: bool,
    max_length: int | None = None,
    added_tokens: int = 0,
    strip_subtypes: bool = True,
    faulty: Literal["error", "skip"] = "error",
    single_root: bool = True,
    keep: Sequence[str] = (),
    labels: Sequence[str] = (),
    num_proc: int | None = None,
) -> tuple[Dataset, PreparationReport]:
    """Convert a data set to the prepared layout, dropping sentences that are too long or faulty.

    The length limit is checked first, in words: ``len(words) + added_tokens <= max_length``. A sentence
    without ``sent_id`` is named by its position. UPOS ``_`` stays ``_``.

    Args:
        dataset: One split in the treebank or prepared layout; without gold, any data set with a column
            ``words`` or ``tokens``.
        gold: Read heads and relations.
        max_length: Maximum number of tokens per sentence, or None.
        added_tokens: Tokens that the model adds to each sentence.
        strip_subtypes: Cut relations at the first colon.
        faulty: Raise at faulty sentences ("error"), or drop and count them ("skip").
        single_root: Require exactly one root in gold trees.
        keep: Further columns to copy.
        labels: Further columns with one label per word (``xpos``, ``ner_tags``), returned as strings. A
            sentence without any label is faulty.
        num_proc: Number of processes; the result does not depend on it.

    Returns:
        The prepared sentences, and a report of those dropped.

    Raises:
        GoldError: Faulty sentences, if `faulty` is "error"; the message names sentences and faults.
        ValueError: A column is missing, or `faulty` is unknown.
    """
    if faulty not in ("error", "skip"):
        raise ValueError(f"found faulty={faulty!r}, expected 'error' or 'skip'")
    words = "words" if "words" in dataset.features else "tokens"
    standard = [name for name in ("sent_id", "upos") if gold or name in dataset.features]
    columns = [words, *standard, *(("head", "deprel") if gold else ()), *keep]
    if missing := [name for name in columns if name not in dataset.features]:
        raise ValueError(
            f"found the columns {', '.join(dataset.features)}, expected also {', '.join(missing)}"
        )
    label_columns = [label_column(dataset, name) for name in labels]
    columns = list(dict.fromkeys([*columns, *(each.column for each in label_columns)]))
    features = prepared_features(gold=gold) | {name: dataset.features[name] for name in keep}
    features |= {name: STRINGS for name in labels}
    checked = map_rows(
        dataset.select_columns(columns),
        _prepare_row,
        Features({**features, _FAULT: Value("string"), _TOO_LONG: Value("bool")}),
        with_indices=True,
        fn_kwargs={
            "words_column": words,
            "upos": label_column(dataset, "upos") if "upos" in standard else None,
            "gold": gold,
            "labels": label_columns,
            "max_words": None if max_length is None else max_length - added_tokens,
            "strip_subtypes": strip_subtypes,
            "single_root": single_root,
            "version": _VERSION,
        },
        num_proc=num_proc,
    )
    table = checked.data.table  # memory-mapped; only a byte a sentence is read into memory
    is_long = np.asarray(table[_TOO_LONG], dtype=bool)
    is_faulty = np.asarray(pc.is_valid(table[_FAULT])) & ~is_long
    kept = np.flatnonzero(~is_long & ~is_faulty)
    first_long, first_faulty = (
        [checked[int(index)] for index in np.flatnonzero(each)[:_MAX_NAMED]] for each in (is_long, is_faulty)
    )
    report = PreparationReport(
        sentences=len(checked),
        kept=len(kept),
        too_long=int(is_long.sum()),
        faulty=int(is_faulty.sum()),
        too_long_ids=tuple(row["sent_id"] for row in first_long),
        faulty_ids=tuple(f"{row['sent_id']}: {row[_FAULT]}" for row in first_faulty),
        limit=max_length,
        added_tokens=added_tokens,
    )
    if report.faulty and faulty == "error":
        raise GoldError(
            f"{report.faulty} of {report.sentences} sentences cannot be used{_examples(report.faulty_ids)}; "
            "correct them, or drop them with faulty='skip' (--faulty skip)"
        )
    selected = checked if len(kept) == len(checked) else checked.select(kept)
    return selected.select_columns(list(features)), report


def hold_out(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """Split off a tenth of the rows at the end (rounded down, at least one); return both parts."""
    if len(dataset) < 2:
        raise ValueError(f"found {len(dataset)} sentences, expected at least 2 to hold one out")
    remaining = len(dataset) - max(1, len(dataset) // 10)
    return dataset.select(range(remaining)), dataset.select(range(remaining, len(dataset)))


def first_rows(dataset: Dataset, count: int) -> Dataset:
    """Return the first `count` rows, or all rows if there are fewer."""
    return dataset.select(range(min(count, len(dataset))))


def read_predictions(path: str, *, structure: bool, labels: Sequence[str] = ()) -> Dataset:
    """Read a CoNLL-U file of predictions in the prepared layout; heads may form any graph.

    A sentence without ``sent_id`` has none.
    """
    sentences = list(read_conllu(path))
    rows, _ = prepare(sentences_to_dataset(sentences), gold=False, labels=labels)
    rows = rows.remove_columns("sent_id").add_column("sent_id", [each.sent_id for each in sentences])
    if not structure:
        return rows
    rows = rows.add_column("head", [each.head_numbers for each in sentences])
    return rows.add_column("deprel", [each.deprels for each in sentences])


def gold_faults(
    heads: Sequence[str | int | None], deprels: Sequence[str | None], *, single_root: bool = True
) -> list[str]:
    """List the faults of a gold tree, given HEAD (text or integer) and DEPREL of each word."""
    return _value_faults(heads, deprels) or _tree_faults([int(str(head)) for head in heads], single_root)


def _prepare_row(
    row: Mapping[str, Any],
    index: int,
    *,
    words_column: str,
    upos: LabelColumn | None,
    gold: bool,
    labels: Sequence[LabelColumn],
    max_words: int | None,
    strip_subtypes: bool,
    single_root: bool,
    version: int,
) -> dict[str, Any]:
    words = row[words_column] or []
    tags = [BLANK] * len(words) if upos is None else upos.labels(row)
    result: dict[str, Any] = {
        "sent_id": row.get("sent_id") or f"sentence:{index + 1}",
        "words": words,
        "upos": tags,
        _TOO_LONG: max_words is not None and len(words) > max_words,
    }
    faults = [] if words else ["no words"]
    if len(tags) != len(words):
        faults.append(f"{len(tags)} upos for {len(words)} words")
    if gold:
        heads, deprels = row["head"] or [], row["deprel"] or []
        faults += gold_faults(heads, deprels, single_root=single_root)
        if len(heads) != len(words):
            faults.append(f"{len(heads)} heads for {len(words)} words")
        if strip_subtypes and not faults:
            deprels = [name.partition(":")[0] for name in deprels]
        result |= {"head": [], "deprel": []} if faults else {"head": list(map(int, heads)), "deprel": deprels}
    for column in labels:
        result[column.name] = column.labels(row)
        faults += column.faults(result[column.name], words) if words else []
    more = [f"{len(faults) - _MAX_NAMED} more"] if len(faults) > _MAX_NAMED else []
    return result | {_FAULT: "; ".join([*faults[:_MAX_NAMED], *more]) or None}


def _examples(names: Sequence[str]) -> str:
    return f" (first: {' | '.join(names)})" if names else ""


def _value_faults(heads: Sequence[str | int | None], deprels: Sequence[str | None]) -> list[str]:
    if len(heads) != len(deprels):
        return [f"{len(heads)} heads for {len(deprels)} relations"]
    if not heads:
        return ["no words"]
    faults = []
    for word, (head, deprel) in enumerate(zip(heads, deprels, strict=True), start=1):
        if head in (None, "", BLANK):
            faults.append(f"word {word}: HEAD is blank")
        elif (number := head_number(head)) is None:
            faults.append(f"word {word}: HEAD {head!r:.60} is not a non-negative integer")
        elif number > len(heads):
            faults.append(f"word {word}: HEAD {head} is beyond the {len(heads)} words")
        if deprel in (None, "", BLANK):
            faults.append(f"word {word}: DEPREL is blank")
    return faults


def _tree_faults(heads: Sequence[int], single_root: bool) -> list[str]:
    roots = [word for word, head in enumerate(heads, start=1) if head == 0]
    faults = [f"word {word} is its own head" for word, head in enumerate(heads, start=1) if head == word]
    faults += [f"words {', '.join(map(str, cycle))} form a cycle" for cycle in _cycles(heads)]
    if not roots:
        faults.append("no word has head 0")
    if len(roots) > 1 and single_root:
        faults.append(f"words {', '.join(map(str, roots))} have head 0, expected one root")
    return faults


def _cycles(heads: Sequence[int]) -> list[list[int]]:
    """Return the cycles of two or more words, visiting each word once."""
    cycles, visited_from = [], {0: 0}
    for start in range(1, len(heads) + 1):
        word = start
        while word not in visited_from:
            visited_from[word] = start
            word = heads[word - 1]
        if word and visited_from[word] == start and heads[word - 1] != word:
            cycle = [word]
            while (word := heads[word - 1]) != cycle[0]:
                cycle.append(word)
            cycles.append(sorted(cycle))
    return cycles

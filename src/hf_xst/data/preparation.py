"""From treebank rows to what is trained on and annotated: words, tags, and gold only where it is wanted.

The prepared layout has exactly ``sent_id``, ``words``, ``upos`` and, with gold, ``head`` (integers, 0 for the
root) and ``deprel`` (without subtypes). Without gold the columns of heads and relations are never read: they
may be blank, stale, broken or missing. Other columns of labels come on request (`hf_xst.data.label_columns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from datasets import Dataset, Features, List, Value

from hf_xst.data.conllu import read_conllu
from hf_xst.data.gold import gold_faults
from hf_xst.data.label_columns import LabelColumn, label_column
from hf_xst.data.layout import map_rows, sentences_to_dataset, tag_name, tag_names

_VERSION = 1  # part of the fingerprint by which `datasets` finds its cached results
_NAMED = 3
_FAULT, _TOO_LONG = "hf_xst_fault", "hf_xst_too_long"


class GoldError(ValueError):
    """Sentences whose gold annotation cannot be used."""


@dataclass(frozen=True)
class PreparationReport:
    """What became of the sentences.

    Attributes:
        sentences: sentences that came in.
        kept: sentences that are left.
        too_long: sentences dropped for their length.
        faulty: sentences dropped for their gold, or because they hold no word.
        too_long_ids: the first few of those dropped for length.
        faulty_ids: the first few of those dropped as faulty, with what is wrong.
        limit: the length limit, or None; it counts `added_tokens`.
        added_tokens: tokens that the model adds to a sentence.
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
        parts = [f"{self.kept} of {self.sentences} sentences kept"]
        if self.limit is not None:
            counted = f" with {self.added_tokens} added" if self.added_tokens else ""
            parts.append(f"{self.too_long} over {self.limit} tokens{counted}{_first(self.too_long_ids)}")
        parts.append(f"{self.faulty} faulty{_first(self.faulty_ids)}")
        return ", ".join(parts)


def prepared_features(*, gold: bool) -> Features:
    """The schema of the prepared layout."""
    strings = List(Value("string"))
    annotation = {"head": List(Value("int32")), "deprel": strings} if gold else {}
    return Features({"sent_id": Value("string"), "words": strings, "upos": strings, **annotation})


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
    """Bring a data set into the prepared layout, dropping what is too long or cannot be learned from.

    Length is judged first: ``len(words) + added_tokens <= max_length``, in words. `hf_xst.data.gold` says
    what makes gold faulty. A sentence without ``sent_id`` is called after its place in the data set. UPOS
    ``_`` stays ``_``.

    Args:
        dataset: one split in the treebank layout, or in the prepared layout. Without gold any data set of
            ``words`` or ``tokens`` will do; it need not have ``sent_id`` and ``upos``.
        gold: heads and relations are wanted; otherwise they are not even read.
        max_length: tokens a sentence may have, or None for no limit.
        added_tokens: tokens that the model adds to each sentence, counted by the limit.
        strip_subtypes: cut relations at the first colon.
        faulty: refuse the data set at a faulty sentence, or leave such sentences out and count them.
        single_root: gold must have exactly one root.
        keep: further columns to carry along.
        labels: further columns with one label a word (``xpos``, ``ner_tags``), wanted as strings. A sentence
            in which no word has a label is faulty.
        num_proc: processes that do the work; the result is the same for any number.

    Raises:
        GoldError: gold or labels are faulty and `faulty` is "error"; names sentences and faults.
        ValueError: a column is missing, or `faulty` is neither word.
    """
    if faulty not in ("error", "skip"):
        raise ValueError(f"found faulty={faulty!r}, expected 'error' or 'skip'")
    words = "words" if "words" in dataset.features else "tokens"
    always = [name for name in ("sent_id", "upos") if gold or name in dataset.features]
    columns = [words, *always, *(("head", "deprel") if gold else ()), *keep]
    _check_columns(dataset, columns)
    found = [label_column(dataset, name) for name in labels]
    columns = list(dict.fromkeys([*columns, *(each.place for each in found)]))
    features = prepared_features(gold=gold) | {name: dataset.features[name] for name in keep}
    features |= {name: features["words"] for name in labels}
    marked = map_rows(
        dataset.select_columns(columns),
        _prepare_row,
        Features({**features, _FAULT: Value("string"), _TOO_LONG: Value("bool")}),
        with_indices=True,
        fn_kwargs={
            "words_column": words,
            "tags": tag_names(dataset) if "upos" in always else None,
            "gold": gold,
            "labels": found,
            "room": None if max_length is None else max_length - added_tokens,
            "strip_subtypes": strip_subtypes,
            "single_root": single_root,
            "version": _VERSION,
        },
        num_proc=num_proc,
    )
    report, places = _judged(marked, max_length, added_tokens)
    if report.faulty and faulty == "error":
        raise GoldError(
            f"{report.faulty} of {report.sentences} sentences cannot be used{_first(report.faulty_ids)}; "
            "correct them, or leave them out with faulty='skip' (--faulty skip)"
        )
    kept = marked if len(places) == len(marked) else marked.select(places)
    return kept.select_columns(list(features)), report


def hold_out(dataset: Dataset, fraction: float = 0.1) -> tuple[Dataset, Dataset]:
    """Split off the end of a data set, for treebanks without a development part.

    Args:
        dataset: at least two rows.
        fraction: share of rows held out, rounded down, at least one row.

    Returns:
        What is left, and what is held out: the last rows, in order.

    Raises:
        ValueError: the fraction is not between 0 and 1, or nothing would be left.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"found fraction {fraction}, expected a number between 0 and 1")
    if len(dataset) < 2:
        raise ValueError(f"found {len(dataset)} sentences, expected at least 2 to hold one out")
    left = len(dataset) - max(1, int(len(dataset) * fraction))
    return dataset.select(range(left)), dataset.select(range(left, len(dataset)))


def first(dataset: Dataset, count: int) -> Dataset:
    """The first rows of a data set, all of them where there are fewer than `count`."""
    if count < 0:
        raise ValueError(f"found {count}, expected a number of rows")
    return dataset.select(range(min(count, len(dataset))))


def _check_columns(dataset: Dataset, needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in dataset.features]
    if missing:
        raise ValueError(
            f"found the columns {', '.join(dataset.features)}, expected also {', '.join(missing)}"
        )


def _prepare_row(
    row: Mapping[str, Any],
    place: int,
    *,
    words_column: str,
    tags: list[str] | None,
    gold: bool,
    labels: Sequence[LabelColumn],
    room: int | None,
    strip_subtypes: bool,
    single_root: bool,
    version: int,
) -> dict[str, Any]:
    words = row[words_column] or []
    upos = (row["upos"] or []) if "upos" in row else [None] * len(words)
    result: dict[str, Any] = {
        "sent_id": row.get("sent_id") or f"sentence:{place + 1}",
        "words": words,
        "upos": [tag_name(tag, tags) for tag in upos],
        _TOO_LONG: room is not None and len(words) > room,
    }
    faults = [] if words else ["no words"]
    if len(upos) != len(words):
        faults.append(f"{len(upos)} upos for {len(words)} words")
    if gold:
        heads, relations = row["head"] or [], row["deprel"] or []
        faults += gold_faults(heads, relations, single_root=single_root)
        if len(heads) != len(words):
            faults.append(f"{len(heads)} heads for {len(words)} words")
        result["head"] = [] if faults else [int(head) for head in heads]
        result["deprel"] = [] if faults else [_relation(name, strip_subtypes) for name in relations]
    for column in labels:
        result[column.name] = column.labels(row)
        faults += column.faults(result[column.name], words) if words else []
    return result | {_FAULT: "; ".join(faults) or None}


def _relation(name: str, strip_subtype: bool) -> str:
    return name.partition(":")[0] if strip_subtype else name


def _judged(marked: Dataset, limit: int | None, added_tokens: int) -> tuple[PreparationReport, list[int]]:
    kept, too_long, faulty = [], [], []
    judged = zip(marked["sent_id"], marked[_TOO_LONG], marked[_FAULT], strict=True)
    for place, (sent_id, is_long, fault) in enumerate(judged):
        if is_long:
            too_long.append(sent_id)
        elif fault:
            faulty.append(f"{sent_id}: {fault}")
        else:
            kept.append(place)
    report = PreparationReport(
        sentences=len(marked),
        kept=len(kept),
        too_long=len(too_long),
        faulty=len(faulty),
        too_long_ids=tuple(too_long[:_NAMED]),
        faulty_ids=tuple(faulty[:_NAMED]),
        limit=limit,
        added_tokens=added_tokens,
    )
    return report, kept


def _first(names: Sequence[str]) -> str:
    return f" (first: {' | '.join(names)})" if names else ""


def read_predictions(path: str, *, structure: bool, labels: Sequence[str] = ()) -> Dataset:
    """Read a CoNLL-U file of predictions in the prepared layout; a word's head may be any number.

    Args:
        path: the file.
        structure: heads and relations are wanted.
        labels: see `prepare`.

    Raises:
        ConlluError: the file is no CoNLL-U, or a head that is wanted is no number.
        GoldError: labels that are wanted are missing.
    """
    sentences = list(read_conllu(path))
    rows, _ = prepare(sentences_to_dataset(sentences), gold=False, labels=labels)
    if not structure:
        return rows
    for sentence in sentences:
        for number, head in enumerate(sentence.heads, start=1):
            if not head.isdecimal():
                raise sentence.error(f"word {number} has the head {head!r}; expected a number")
    rows = rows.add_column("head", [[int(head) for head in each.heads] for each in sentences])
    return rows.add_column("deprel", [each.deprels for each in sentences])

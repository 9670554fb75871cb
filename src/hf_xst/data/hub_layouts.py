"""The layouts in which Universal Dependencies stands on the Hub, brought into one.

Known are the current one (UPOS as class labels, heads as strings), its variants (UPOS as strings, heads as
integers), and that of the old loading script, which forks still hold: known by its column ``idx``, with rows
of ranges and empty nodes among the words, and FEATS, DEPS and MISC as Python literals.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from datasets import Dataset

from hf_xst.data.layout import (
    SENT_ID_MARKER,
    TEXT_MARKER,
    TREEBANK_FEATURES,
    UPOS_INDEX,
    UPOS_TAGS,
    Row,
    map_rows,
    tag_name,
    tag_names,
)
from hf_xst.data.sentence import BLANK

_LEGACY_COLUMN = "idx"
_NEEDED = ("tokens", "upos", "head", "deprel")
_LISTS = ("lemmas", "xpos", "feats", "head", "deprel", "deps", "misc")
_BLANKS = {"lemmas": BLANK, "head": BLANK, "deprel": BLANK}


def to_treebank_layout(dataset: Dataset, *, num_proc: int | None = None) -> Dataset:
    """Bring one split from any known layout into the treebank layout.

    The legacy layout keeps no IDs: ranges and empty nodes are left out, being the rows without a head.

    Args:
        dataset: a split as `datasets.load_dataset` gives it.
        num_proc: processes that do the work.

    Raises:
        ValueError: the layout is not known, or a row contradicts it.
    """
    if dataset.features == TREEBANK_FEATURES:
        return dataset
    missing = [name for name in _NEEDED if name not in dataset.features]
    if missing:
        raise ValueError(
            f"found the columns {', '.join(dataset.features)}, expected the Universal Dependencies layout, "
            f"of which {', '.join(missing)} is missing; CoNLL-U files of a repository are downloaded first "
            "and given as files"
        )
    return map_rows(
        dataset,
        _canonical_row,
        TREEBANK_FEATURES,
        fn_kwargs={"tags": tag_names(dataset), "legacy": _LEGACY_COLUMN in dataset.features},
        num_proc=num_proc,
    )


def _canonical_row(row: Row, tags: list[str] | None, legacy: bool) -> Row:
    if legacy:
        row = _without_other_rows(row)
    count = len(row["tokens"])
    result: Row = {
        "sent_id": row.get("sent_id"),
        "text": row.get("text"),
        "comments": _comments(row),
        "tokens": row["tokens"],
        "upos": [_tag_index(row, tag, tags) for tag in row["upos"]],
        "mwt": row.get("mwt") or [],
        "empty_nodes": row.get("empty_nodes") or [],
    }
    for name in _LISTS:
        blank = _BLANKS.get(name)
        values = row.get(name) or [None] * count
        if len(values) != count:
            raise ValueError(
                f"sentence {row.get('sent_id')}: found {len(values)} values of {name}, expected {count}"
            )
        result[name] = [blank if value is None else str(value) for value in values]
    return result


def _comments(row: Row) -> list[str]:
    if row.get("comments") is not None:
        return list(row["comments"])
    markers = {"sent_id": SENT_ID_MARKER, "text": TEXT_MARKER}
    return [marker for name, marker in markers.items() if row.get(name) is not None]


def _tag_index(row: Row, tag: int | str | None, tags: list[str] | None) -> int:
    name = tag_name(tag, tags)
    if name not in UPOS_INDEX:
        raise ValueError(
            f"sentence {row.get('sent_id')}: found UPOS {name!r}, "
            f"expected one of {' '.join(sorted(UPOS_TAGS))}"
        )
    return UPOS_INDEX[name]


def _without_other_rows(row: Row) -> Row:
    """A legacy row with its words only, its literals as CoNLL-U text, and its ``idx`` as ``sent_id``."""
    words = [place for place, head in enumerate(row["head"]) if head not in (None, "None")]
    if row["tokens"] and not words:
        raise ValueError(
            f"row idx {row[_LEGACY_COLUMN]}: found no head, expected heads, which tell words from ranges"
        )
    kept: Row = {"sent_id": str(row[_LEGACY_COLUMN]), "text": row.get("text")}
    for name in ("tokens", "upos", *_LISTS):
        if row.get(name) is not None:
            kept[name] = [row[name][place] for place in words]
    for name, convert in _LITERALS.items():
        if name in kept:
            kept[name] = [_from_literal(value, convert) for value in kept[name]]
    if "xpos" in kept:
        kept["xpos"] = [None if value in (None, "None", BLANK) else value for value in kept["xpos"]]
    return kept


def _from_literal(value: str | None, convert: Callable[[Any], str]) -> str | None:
    """CoNLL-U text of a Python literal; text that is no literal is kept as it is."""
    if value in (None, "None", BLANK, ""):
        return None
    try:
        literal = ast.literal_eval(str(value))
    except (ValueError, SyntaxError):
        return value
    return convert(literal) if literal else None


def _pairs(literal: dict[str, str | None]) -> str:
    return "|".join(key if value is None else f"{key}={value}" for key, value in literal.items())


def _relations(literal: list[tuple[str, Any]]) -> str:
    """Enhanced relations: heads of empty nodes stand as (8, '.', 1)."""
    heads = ("".join(map(str, head)) if isinstance(head, tuple) else str(head) for _, head in literal)
    return "|".join(f"{head}:{relation}" for head, (relation, _) in zip(heads, literal, strict=True))


_LITERALS: dict[str, Callable[[Any], str]] = {"feats": _pairs, "misc": _pairs, "deps": _relations}

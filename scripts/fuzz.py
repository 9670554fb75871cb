"""Fuzz the readers of files: valid and damaged inputs against slow checkers that decide what is right.

    python scripts/fuzz.py --kind conllu --executions 100000

Hypothesis draws a valid input; 40 versions of it have one or two random changes. An execution is one input
that a reader was given, and whose result was compared with that of the checker. A checker says what an input
means, from the documentation and without the package, or that it must be rejected (None). A reader has to
agree, and to reject with its own error only: one line, which begins with the file.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import logging
import math
import random
import re
import tempfile
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hf_xst import BiaffineParserConfig, CrfTaggerConfig
from hf_xst.charts.dataset import chart_features, check_rows, from_ragged
from hf_xst.data import read_conllu, read_vectors
from hf_xst.data.conllu import conllu_texts
from hf_xst.data.layout import STRINGS
from hf_xst.data.streams import InputError
from hf_xst.data.text import iterate_unlabelled, read_labelled_jsonl

VERSIONS, ROUND, MAX_FAULTS = 40, 500, 20  # of a valid input; valid inputs of a seed; until a kind ends
Row = dict[str, Any]

# Each ends at a `~`, so that white space counts.
_PIECES = (
    '\t~\n~\r~\r\n~\n\n~ ~  ~#~_~-~.~=~|~\\~"~0~1~2~3~10~-1~01~0.5~1e3~nan~inf~+1~1_0~99999~[~]~{~}~,~:~\0~'
    "\ufeff~\u2028~\x85~\u0661~\xa0~\u202e~e\u0301~\U0001f642~\x0b~\x1c~PK\x03\x04~1-2~2-3~1-1~0.1~1.1~2.1~"
    "# sent_id = a\n~#sent_id=b\r\n~# text = x\n~# global.columns = ID FORM\n~SpaceAfter=No~HeadProb=1~_\t_\t"
    '~root~"words"~"tokens"~"upos"~"a"~null~true~1e999~"\\ud800"~"\\n"~5 2\n~w 1 2\n~\n1\tx'
)
PIECES = [*(piece.encode() for piece in _PIECES.split("~")), b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1f\x8b"]
WHOLE = [partial(gzip.compress, mtime=0), bytes.strip, lambda data: data.replace(b"\n", b"\r\n")]


def pages(*pieces: str) -> st.SearchStrategy[bytes]:
    """Draw files of one to four of the pieces."""
    return st.lists(st.sampled_from(pieces), min_size=1, max_size=4).map("".join).map(str.encode)


def edited(data: bytes, draw: random.Random) -> bytes:
    """Change the whole, or insert a piece or a part of the data itself in place of a few bytes."""
    if draw.random() < 0.03:
        return draw.choice(WHOLE)(data)
    start, other = draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)
    piece = draw.choice(PIECES) if draw.random() < 0.9 else data[other : other + draw.randrange(40)]
    return data[:start] + piece + data[start + draw.choice((0, 0, 1, 2, 9)) :]


def text_of(data: bytes, encoding: str = "utf-8") -> str | None:
    """Return what a plain or gzipped file holds, None if it is binary or has another encoding."""
    try:
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        magic = rb"\x1f\x8b|PK\x03\x04|BZh9|\xfd7zXZ|\xff\xfe|\xfe\xff"
        is_binary = b"\0" in data.split(b"\n")[0] or re.match(magic, data)
        return None if is_binary else data.decode(encoding)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None


# CoNLL-U
_REST = "_\tNOUN\t_\t_\t0\troot\t_\tx=1|SpaceAfter=No\n"
CONLLU = pages(
    f"# x\n# sent_id = s\n1\tb c\t{_REST}\n",
    f"#text=a\n#\n1-2\tä\t{_REST}1\ta\t{_REST}2\t_\t{_REST}\n",
    f"0.1\t1\t{_REST}1\t#\t{_REST}1.1\ta\t{_REST}1.2\ta\t{_REST}\n\n",
    f"1-1\ta\t{_REST}1\ta\t{_REST}2-3\ta\t{_REST}2\ta\t{_REST}2.1\ta\t{_REST}3\ta\t{_REST}\r\n",
    "\n",
)
COLUMNS = "id form lemma upos xpos feats head deprel deps misc".split()


def right_conllu(data: bytes) -> list[Any] | None:
    """Return sent_id and words of each sentence."""
    text = text_of(data)
    lines = [line.removesuffix("\r") for line in (text or "").removeprefix("\ufeff").split("\n")]
    blocks = re.split(r"\n{2,}", "\n".join(lines).strip("\n"))
    sentences = [right_sentence(block.split("\n")) for block in blocks if block]
    return None if text is None or None in sentences or "\r" in "".join(lines) else sentences


def right_sentence(lines: list[str]) -> tuple[str | None, list[str]] | None:
    """Return sent_id and words of a sentence."""
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    comments = lines[: len(lines) - len(rows)]
    if any(line[0] != "#" for line in comments) or any(len(row) != 10 for row in rows):
        return None
    declared = [re.match(r"#\s*global\.columns\s*=(.*)", line, re.I | re.S) for line in comments]
    if any(match and match[1].lower().split() != COLUMNS for match in declared):
        return None
    words = [row[1] for row in rows if re.fullmatch("[0-9]+", row[0])]
    number = empty = covered = 0  # the last word, its empty nodes, and the last word of a range
    for row_id in [row[0] for row in rows]:
        first, _, last = row_id.partition("-")
        if row_id == f"{number}.{empty + 1}":
            empty += 1
        elif first != f"{number + 1}" or (last and not re.fullmatch("[1-9][0-9]*", last)):
            return None
        elif not last and row_id == first:
            number, empty = number + 1, 0
        elif not last or covered > number or not number < int(last) <= len(words):
            return None
        else:
            covered = int(last)
    named = [re.fullmatch(r"#[ \t]*sent_id[ \t]*=[ \t]*(.*?)[ \t]*", line, re.S) for line in comments]
    names = [match[1] for match in named if match and match[1]]
    is_valid = words and all(row[1] and row[3] for row in rows)
    return (names[0] if names else None, words) if is_valid else None


def read_words(data: bytes) -> list[Any]:
    """Read CoNLL-U; the sentences hold the whole file."""
    sentences = list(read_conllu(io.BytesIO(data)))
    text = text_of(data) if sentences else ""
    assert "".join(each.raw for each in sentences) == "".join(conllu_texts(sentences)) == text
    assert all(len(each.spaces) == len(each.words) for each in sentences)
    return [(each.sent_id, each.words) for each in sentences]


# Word vectors
VECTORS = pages(
    *("2 2\n", "1 9\n", "a 1 -2.5\n", "Haus 1e-3 .5 \n", "New York 3. +4\r\n", "0.5 1E5 -0\n", "3 0 1\n"),
    *("--  0.1 123456789\n", "x\ty 1 2\n", "\xa0 1 2\n", "\n", "b 1\n", "٣ 1\n", " 1\n"),
)
_INTEGER, _NUMBER = "[0-9]+", r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
_FOLDER = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)  # noqa: S108


def are(pattern: str, fields: list[str]) -> bool:
    """Return whether all fields match, and float32 can hold those that are numbers."""
    limit = float(np.finfo(np.float32).max) if pattern == _NUMBER else math.inf
    return all(re.fullmatch(pattern, field) and abs(float(field)) <= limit for field in fields)


def right_vectors(data: bytes) -> dict[str, list[float]] | None:
    """Return the numbers of each word."""
    content = (text_of(data, "latin-1") or "").removeprefix("ï»¿")
    lines = [line.rstrip(" \r").split(" ") for line in content.split("\n") if line.strip("\r")]
    width = len(lines[0]) - 1 if lines else 0
    if width == 1 and are(_INTEGER, lines[0]):
        announced, row = int(lines[0][1]), [*lines, []][1]
        if 0 < announced < len(row) and are(_NUMBER, row[-announced:]):
            width, lines = announced, lines[1:]
        elif len(row) != 2 or re.search(r"[\0-\x08\x0e-\x1b]", " ".join(row)):
            return None
    words: dict[bytes, list[float]] = {}
    for fields in lines:
        *before, last = fields[:-width] or [""]
        is_phrase = are(_INTEGER, [last]) and (are(_INTEGER, before) or not are(_INTEGER, fields[-width:]))
        has_too_many = before and re.fullmatch(_NUMBER, last) and not is_phrase
        word = " ".join([*before, last]).encode("latin-1")
        if width == 0 or len(fields) <= width or has_too_many:
            return None
        if word not in words:  # the first of duplicates counts
            if not are(_NUMBER, fields[-width:]):
                return None
            words[word] = [float(np.float32(field)) for field in fields[-width:]]
    try:
        return {word.decode(): row for word, row in words.items()} or None
    except UnicodeDecodeError:
        return None


def read_numbers(data: bytes) -> dict[str, list[float]]:
    """Read vectors."""
    path = Path(_FOLDER.name) / "x.vec"
    path.write_bytes(data)
    vectors = read_vectors(path)
    return dict(zip(vectors.words, vectors.matrix.tolist(), strict=True))


# JSON lines
JSON = pages(
    '{"words": ["a", "b c"], "upos": ["NOUN", "_"], "sent_id": 0}\n',
    '{"tokens": ["Ä\u2028"], "sent_id": "s", "text": "\\u00c4 b"}\r\n',
    '{"words": ["a", "b"], "head": [0, "1"], "a": ["x", "y"], "deprel": null}\n',
    '{"words": ["a"], "misc": ["x=1|y"], "id": [{}, 3], "upos": ["#"], "": 1e5}\n',
    " \n",
)


def right_json(data: bytes) -> list[Any] | None:
    """Return words and UPOS of each line; further columns are read if the size is odd."""
    text = text_of(data)
    lines = [line for line in (text or "").removeprefix("\ufeff").split("\n") if line.strip(" \r")]
    sentences = [right_row(line, is_labelled=len(data) % 2 == 1) for line in lines]
    return None if text is None or None in sentences else sentences


def right_row(line: str, *, is_labelled: bool) -> tuple[list[str], list[str]] | None:
    """Return words and UPOS of a line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    words = row.get("words", row.get("tokens")) if isinstance(row, dict) else None
    if not isinstance(words, list) or not words or not all(map(fits, words)):
        return None
    name, text = row.get("sent_id"), row.get("text")
    if not fits(f"{'' if name is None else name}" or "a") or not fits(f"{text}a", ""):
        return None
    columns = {"upos": row["upos"]} if row.get("upos") is not None else {}
    for key in [key for key in row if is_labelled and key not in ("words", "tokens", "id", "form")]:
        kinds = (str, int) if key == "head" else str
        if isinstance(row[key], list) and row[key] and all(isinstance(each, kinds) for each in row[key]):
            columns[key] = [*map(str, row[key])]
    for key, values in columns.items():
        is_cell = key in ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
        is_named = is_cell or (fits(key, "\t\n\r=|") and not any("|" in value for value in values))
        has_values = isinstance(values, list) and len(values) == len(words) and all(map(fits, values))
        if not is_named or not has_values:
            return None
    return words, columns.get("upos", ["_"] * len(words))


def fits(value: Any, limits: str = "\t\n\r") -> bool:
    """Return whether a value is text without the limits and without half of a surrogate pair."""
    return isinstance(value, str) and bool(re.fullmatch(f"[^\ud800-\udfff{limits}]+", value))


def read_json(data: bytes) -> list[Any]:
    """Read JSON lines, with further columns if the size is odd; CoNLL-U holds the sentences."""
    read = read_labelled_jsonl if len(data) % 2 else partial(iterate_unlabelled, format="jsonl")
    sentences = list(read(io.BytesIO(data)))
    again = read_conllu(io.BytesIO("".join(conllu_texts(sentences)).encode()))
    assert [each.raw for each in again] == [each.raw for each in sentences]
    return [(each.words, each.upos) for each in sentences]


# Model configurations
INTEGERS = [None, 0, 1, 2, 3, -1, -2, 1000, 1001, 2**31 - 1, -(2**31)]
FLOATS = [None, 0.0, 0.5, 1.0, -0.5, 1e-3, 1e-9, math.nan, math.inf, -math.inf]
WORDS = "bio raw mean pretrained upos form xpos ../x a 1 O B-X I-X </s>".split()
LISTS: list[Any] = [[], ["a"], ["a", "b"], ["a", "a"], ["a", 1], [None], ["B-X"], ["I-X"], [["a"]], ["<s>"]]
ODD = [True, False, *INTEGERS, *FLOATS, *WORDS, *LISTS, "", "\u2028", 10**9, 10**30, {}, {"a": 1}]
ANY: dict[type, list[Any]] = defaultdict(lambda: ODD)
_SIZE, _LAYERS, _NAME = "[1-9][0-9]{0,8}|10{9}", "[1-9][0-9]{0,2}|1000", '"[^", ]*"'
_RATES = "context_dropout word_dropout output_dropout upos_dropout".split()
RULES = {  # the valid values in JSON
    **dict.fromkeys("word_size key_size feed_forward_size upos_size arc_size label_size".split(), _SIZE),
    **{"max_pieces": _SIZE, "vocabulary_size": f"0|{_SIZE}", "max_distance": f"0|{_SIZE}"},
    **{"attention_heads": _LAYERS, "frozen_layers": f"-1|0|{_LAYERS}", "context_layers": f"null|0|{_LAYERS}"},
    **dict.fromkeys(_RATES, r"0(\.\d+)?|1e-\d+"),
    **dict.fromkeys("uses_upos freeze_word_vectors single_root projective".split(), "true|false"),
    **{"encoder": '"vectors"|"pretrained"', "piece_pooling": '"mean"|"first"', "scheme": 'null|"bio"'},
    **{"score_form": '"raw"|"log_softmax"', "vector_space": r"null|\{.*\}", "start_sha256": 'null|".*"'},
    "column": r'"(?!(id|form|lemma|head|deprel|deps|misc|words|tokens|text|sent_id|comments)")[^\W\d][\w-]*"',
    **dict.fromkeys(("labels", "upos_names"), rf"null|(?!.*({_NAME}).*\1)\[({_NAME}(, )?)*\]"),
}
_NAMES: Row = {"labels": ["O", "B-X", "I-X"], "upos_names": ["NOUN"], "vector_space": {"name": "x"}}
_FILLED = [BiaffineParserConfig(**_NAMES).to_dict(), CrfTaggerConfig(**_NAMES, scheme="bio").to_dict()]
_FIELDS = [{name: fields[name] for name in fields if name in RULES} for fields in _FILLED]
CONFIGURATIONS = st.sampled_from(_FIELDS)


def changed(value: Any, draw: random.Random, odd: dict[type, list[Any]] = ANY) -> Any:
    """Return a nested value with one part replaced (depending on its type), removed or repeated."""
    if isinstance(value, dict) and value:
        key = draw.choice([*value])
        return {**value, key: changed(value[key], draw, odd)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        index = draw.randrange(len(value))
        parts = draw.choice(([], [value[index]] * 2, [changed(value[index], draw, odd)]))
        return [*value[:index], *parts, *value[index + 1 :]]
    return draw.choice(odd[type(value)])


def right_configuration(fields: Row) -> bool | None:
    """Return True for a valid configuration."""
    if not all(re.fullmatch(RULES[name], json.dumps(value)) for name, value in fields.items()):
        return None
    labels, is_tagger = fields["labels"] or [], "column" in fields
    spans = [label for label in labels if label != "O"] if fields.get("scheme") else []
    is_bio = all(re.fullmatch("[BI]-.+", label) and f"B-{label[2:]}" in labels for label in spans)
    return (is_bio and not (is_tagger and {"<s>", "</s>"} & {*labels})) or None


def read_configuration(fields: Row) -> bool:
    """Read a configuration, write it and read it again."""
    kind: Any = CrfTaggerConfig if "column" in fields else BiaffineParserConfig
    content = json.dumps(kind.from_dict(fields).to_dict())  # NaN differs from itself
    assert json.dumps(kind.from_dict(json.loads(content)).to_dict()) == content
    return True


# Rows of charts
CHARTS = chart_features({"words": STRINGS, "sent_id": chart_features({})["words_hash"]})
CELL: dict[type, list[Any]] = defaultdict(lambda: [None, []])  # what a column of charts can hold
CELL |= {int: INTEGERS, float: FLOATS, str: [None, "", "b"], type(None): [None]}
_ROW: Row = {"words": ["a", "b"], "words_hash": "x", "sent_id": "s", "format_version": 1, "pool_best": [0, 1]}
_ROW |= {"candidates": [0, 2, 1], "offsets": [0, 2, 3], "source_best": [[0, 1], [2, -1]], "log_probs": []}
_SHORT: Row = {**_ROW, "words": ["a"], "candidates": [], "offsets": [0, 0], "pool_best": [4]}
_SHORT |= {"source_best": [[0], [1]]}
ROWS = st.sampled_from([_SHORT, _ROW, _ROW | {"log_probs": [-1.0, 0.0, -0.5]}])


def right_chart(row: Row) -> bool | None:
    """Return True for a consistent chart of two sources."""
    if any(row[name] is None for name in row if name != "sent_id") or row["format_version"] > 1:
        return None
    ends, kept, logs, count = row["offsets"], row["candidates"], row["log_probs"], len(row["words"])
    lists = [row["pool_best"], *row["source_best"]]
    if len(lists) != 3 or any(best is None or len(best) != count for best in lists) or count < 1:
        return None
    bests = [*itertools.chain(*lists)]
    if None in [*ends, *kept, *bests, *logs] or len(ends) != count + 1 or len(logs) not in (0, len(kept)):
        return None
    groups = [kept[first:last] for first, last in itertools.pairwise(ends)]
    is_split = ends[0] == 0 and ends == sorted(ends) and ends[-1] == len(kept)
    is_sorted = all(group == sorted({*group}) for group in groups) and min(kept, default=0) >= 0
    return (is_split and is_sorted and min(bests) >= -1 and all(log <= 0.01 for log in logs)) or None


def read_chart(row: Row) -> bool:
    """Check a chart between two others."""
    table = pa.Table.from_pylist([_SHORT, row, _SHORT], schema=CHARTS.arrow_schema)
    rows: Any = SimpleNamespace(features=CHARTS, data=SimpleNamespace(table=table))
    check_rows(rows, 2, "somewhere")
    assert len(from_ragged(table.to_pylist())) == len(row["candidates"])
    return True


KINDS = {  # valid inputs, a random change, the reader, the checker, and the share of the executions
    "conllu": (CONLLU, edited, read_words, right_conllu, 0.3),
    "vectors": (VECTORS, edited, read_numbers, right_vectors, 0.25),
    "json": (JSON, edited, read_json, right_json, 0.35),
    "configuration": (CONFIGURATIONS, changed, read_configuration, right_configuration, 0.05),
    "charts": (ROWS, partial(changed, odd=CELL), read_chart, right_chart, 0.05),
}


def compare(read: Callable[[Any], Any], right: Callable[[Any], Any], data: Any) -> tuple[bool, str]:
    """Return whether an input was accepted, and how the reader disagrees with the checker, if it does."""
    found, expected, problem = None, right(data), ""
    try:
        found = read(data)
    except Exception as error:
        is_own = isinstance(error, InputError if isinstance(data, bytes) else ValueError)
        names_file = not isinstance(error, InputError) or str(error).startswith(f"{error.path}:")
        is_right = is_own and names_file and "\n" not in str(error)
        problem = "" if is_right else f"{type(error).__name__}: {error}; "
    if found != expected:
        problem += f"found {found!r}, expected {expected!r}"
    return found is not None, problem and f"{data!r}: {problem}"


def fuzz(name: str, executions: int, first_seed: int = 0) -> list[str]:
    """Compare a reader with its checker and return the faults, also printed, as is progress."""
    valid, change, read, right, _ = KINDS[name]
    done, accepted, faults, began = 0, 0, [], time.monotonic()
    options = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}

    def check(original: Any, number: int) -> None:
        nonlocal done, accepted
        draw = random.Random(number)
        for version in range(VERSIONS + 1):
            data = original
            for _ in range(draw.choice((1, 1, 2)) if version else 0):
                data = change(data, draw)
            is_accepted, fault = compare(read, right, data)
            done, accepted = done + 1, accepted + is_accepted
            if fault and len(faults) < MAX_FAULTS:
                faults.append(fault)
                print(f"{name}: {fault:.2000}", flush=True)

    for number in itertools.count(first_seed):
        examples = min(ROUND, math.ceil((executions - done) / (VERSIONS + 1)))
        chosen = settings(max_examples=examples, phases=[Phase.generate], **options)
        seed(number)(chosen(given(valid, st.integers(0, 2**64))(check)))()
        figures = f"{done:,} executions, {accepted:,} accepted, {len(faults)} faults"
        print(f"{name}: seed {number}, {figures}, {time.monotonic() - began:.0f} s", flush=True)
        if done >= executions or len(faults) >= MAX_FAULTS:
            return faults


def main() -> None:
    """Fuzz all kinds, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--executions", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable()
    warnings.simplefilter("ignore")
    for name in [options.kind] if options.kind else KINDS:
        fuzz(name, math.ceil(options.executions * (1 if options.kind else KINDS[name][-1])), options.seed)


if __name__ == "__main__":
    main()

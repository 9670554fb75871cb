"""Fuzz the readers of files: random valid and damaged inputs against slow checkers that decide what is right.

    python scripts/fuzz.py --kind conllu --executions 100000

A checker says what an input means, from the documentation, or that it must be rejected. A reader has to
agree, and to reject with its own errors only, which name file and line.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hf_xst import BiaffineParser, BiaffineParserConfig, CrfTagger, CrfTaggerConfig
from hf_xst.charts.dataset import chart_features, check_rows, from_ragged
from hf_xst.console import console
from hf_xst.data import ConlluError, read_conllu, read_vectors
from hf_xst.data.conllu import conllu_texts
from hf_xst.data.layout import STRINGS
from hf_xst.data.streams import InputError
from hf_xst.data.text import TextError, iterate_unlabelled, read_labelled_jsonl
from hf_xst.data.vectors import VectorError

ROUND = 500  # examples of hypothesis with one seed
executions = 0

# -- damage -----------------------------------------------------------------------------------------------

Edits = list[tuple[int, int, bytes]]  # position, number of bytes removed, bytes inserted
# Each ends at a `~`, so that white space counts.
_PIECES = (
    '~\t~\n~\r~\r\n~\n\n~ ~  ~#~_~-~.~=~|~\\~"~0~1~2~3~10~-1~01~0.5~1e3~nan~inf~+1~1_0~99999~[~]~{~}~,~:~\0~'
    "\ufeff~\u2028~\x85~\u0661~\xa0~\u202e~e\u0301~\U0001f642~\x0b~\x1c~PK\x03\x04~1-2~2-3~1-1~0.1~1.1~2.1~"
    "# sent_id = a\n~#sent_id=b\r\n~# text = x\n~# global.columns = ID FORM\n~SpaceAfter=No~ArcProb=0.5~"
    'HeadProb=1~LabelProb=0.25~TagProb=0.75~root~_\t_\t~"words"~"tokens"~"upos"~"a"~null~true~1e999~'
    '"\\ud800"~"\\n"~5 2\n~w 1 2\n~\n1\tx'
)
PIECES = [*(piece.encode() for piece in _PIECES.split("~")), b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1f\x8b"]


def random_edits(seed: int) -> Edits:
    """Return 40 random edits; drawn one by one, they would take most of the time."""
    draw = random.Random(seed)
    return [(draw.randrange(10**6), draw.choice((0, 0, 1, 2, 9)), draw.choice(PIECES)) for _ in range(40)]


edits = st.integers(0, 2**32).map(random_edits)


def edited(data: bytes, damage: Edits) -> bytes:
    """Apply edits one after another."""
    for position, removed, inserted in damage:
        start = position % (len(data) + 1)
        data = data[:start] + inserted + data[start + removed :]
    return data


def versions(data: bytes, damage: Edits) -> Iterator[bytes]:
    """Yield the data, then the data with each one, two or three consecutive edits."""
    yield data
    for index in range(len(damage)):
        yield edited(data, damage[index : index + 1 + index % 3])


def content_of(data: bytes) -> bytes | None:
    """Return the bytes of a plain or gzipped text file, None if it is binary."""
    try:
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error):
        return None
    magic = rb"\x1f\x8b|PK\x03\x04|BZh9|\xfd7zXZ|7z\xbc\xaf|\(\xb5/\xfd|\xff\xfe|\xfe\xff"
    return None if b"\0" in data.split(b"\n")[0] or re.match(magic, data) else data


def text_of(data: bytes) -> str | None:
    """Return what a file in UTF-8 holds, None if it is not."""
    content = content_of(data)
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def outcome(read: Callable[[], Any], *errors: type[ValueError]) -> Any:
    """Return what a reader returns, or None if it rejects its input with one of the errors, in one line."""
    try:
        return read()
    except errors as error:
        message = str(error)
        path = error.path if isinstance(error, InputError) else ""
    assert len(message) > 15, message
    assert path is not None, message
    assert message.startswith(path), message
    return None


def agree(found: Any, expected: Any, data: Any) -> None:
    """Compare a reader with its checker."""
    global executions
    executions += 1
    assert found == expected, f"for {data!r}: found {found!r}, expected {expected!r}"


# -- CoNLL-U ----------------------------------------------------------------------------------------------

cells = st.sampled_from(["_", "a", "b c", "Ä", "", "#", "1", "NOUN", "x=1|SpaceAfter=No", "SpaceAfter=No"])


@st.composite
def conllu_pages(draw: st.DrawFn) -> bytes:
    """Draw valid CoNLL-U with ranges, empty nodes and all kinds of line ends."""
    page = draw(st.sampled_from(["", "", "\n", "\ufeff"]))
    for _ in range(draw(st.integers(1, 3))):
        page += "".join(
            draw(st.lists(st.sampled_from(["# x\n", "#\n", "# sent_id = s\n", "#text=a\n"]), max_size=2))
        )
        count = draw(st.integers(1, 3))
        for number in range(1, count + 1):
            extra = draw(
                st.sampled_from(["", "", "", f"{number}-{count}", f"{number}-{number}", f"{number}.1"])
            )
            ids = [f"{number}", extra] if extra.endswith(".1") else [extra, f"{number}"]
            for row_id in filter(None, ids):
                form, *rest = draw(st.tuples(*[cells] * 3))
                page += f"{row_id}\t{form or '_'}\t{rest[0]}\tNOUN\t_\t_\t0\troot\t_\t{rest[1]}\n"
        page += draw(st.sampled_from(["\n", "\n", "\n\n", "\r\n"]))
    page = page.replace("\n", "\r\n") if draw(st.integers(0, 7)) == 0 else page
    page = page.rstrip() if draw(st.integers(0, 7)) == 0 else page
    data = page.encode()
    return gzip.compress(data, 1) if draw(st.integers(0, 15)) == 0 else data


def right_conllu(data: bytes) -> list[tuple[str | None, list[str]]] | None:
    """Return sent_id and words of each sentence, or None if the file is not CoNLL-U."""
    text = text_of(data)
    if text is None:
        return None
    *lines, last = text.removeprefix("\ufeff").split("\n")
    lines = [line.removesuffix("\r") for line in (*lines, last)]
    if any("\r" in line for line in lines):
        return None
    blocks = [block.split("\n") for block in re.split(r"\n{2,}", "\n".join(lines).strip("\n"))]
    sentences = [right_sentence(block) for block in blocks if block != [""]]
    return None if None in sentences else sentences  # type: ignore[return-value]


def right_sentence(lines: list[str]) -> tuple[str | None, list[str]] | None:  # noqa: C901
    """Return sent_id and words of a sentence, or None if it is malformed."""
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    comments = lines[: len(lines) - len(rows)]
    if not all(line.startswith("#") for line in comments):
        return None
    if any(len(row) != 10 or not row[1] or not row[3] for row in rows):
        return None
    for line in comments:
        columns = re.match(r"#\s*global\.columns\s*=", line, re.IGNORECASE)
        names = "id form lemma upos xpos feats head deprel deps misc".split()
        if columns and line[columns.end() :].lower().split() != names:
            return None
    ids = [row[0] for row in rows]
    words = [index for index, each in enumerate(ids) if re.fullmatch("[1-9][0-9]*", each)]
    if not words or [ids[index] for index in words] != [str(n) for n in range(1, len(words) + 1)]:
        return None
    covered = 0  # the last word of the ranges so far
    for index, each in enumerate(ids):
        before = sum(word < index for word in words)
        if bounds := re.fullmatch("([1-9][0-9]*)-([1-9][0-9]*)", each):
            first, final = int(bounds[1]), int(bounds[2])
            if not covered < first == before + 1 <= final <= len(words):
                return None
            covered = final
        elif index not in words:
            same = [other for other in ids[:index] if other.partition(".")[0] == str(before) and "." in other]
            if each != f"{before}.{len(same) + 1}":
                return None
    named = [re.fullmatch(r"#[ \t]*sent_id[ \t]*=[ \t]*(.*?)[ \t]*", line, re.DOTALL) for line in comments]
    names = [match[1] for match in named if match and match[1]]
    return (names[0] if names else None, [rows[index][1] for index in words])


def check_conllu(case: tuple[bytes, Edits]) -> None:
    """Compare words and round trip of CoNLL-U with the checker."""
    for data in versions(*case):
        sentences = outcome(lambda data=data: list(read_conllu(io.BytesIO(data))), ConlluError)
        found = sentences if sentences is None else [(each.sent_id, each.words) for each in sentences]
        agree(found, right_conllu(data), data)
        if sentences:
            assert "".join(each.raw for each in sentences) == text_of(data), data
            assert "".join(conllu_texts(sentences)) == text_of(data), data
            assert [len(each.spaces) for each in sentences] == [len(each.words) for each in sentences], data


# -- word vectors -----------------------------------------------------------------------------------------

tokens = st.sampled_from(["a", "b", "Haus", "New York", "0.5", "3", "", "\xa0", "x\ty", "--", "1e5", "٣"])
numbers = st.sampled_from(["0", "1", "-2.5", "1e-3", ".5", "3.", "+4", "1E5", "-0", "0.1", "123456789"])


@st.composite
def vector_pages(draw: st.DrawFn) -> bytes:
    """Draw rows of word vectors, with or without a header."""
    width, count = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rows = [" ".join([draw(tokens), *(draw(numbers) for _ in range(width))]) for _ in range(count)]
    header = draw(st.sampled_from([[], [], [f"{count} {width}"], [f"{count + 1} {width}"], [f"{count} 9"]]))
    end = draw(st.sampled_from(["\n", "\n", " \n", "\r\n", "\n\n"]))
    return (draw(st.sampled_from(["", "", "\ufeff"])) + end.join([*header, *rows]) + end).encode()


def right_number(field: bytes) -> np.float32 | None:
    """Return a decimal number that float32 can hold; white space around it is ignored."""
    field = field if b"\r" in field else field.decode("latin-1").strip().encode("latin-1")
    if not re.fullmatch(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", field):
        return None
    value = float(field)
    return np.float32(value) if abs(value) < 2.0**128 - 2.0**103 else None


def right_vectors(data: bytes) -> tuple[list[str], list[list[float]]] | None:  # noqa: C901
    """Return words and numbers, or None if the file is malformed."""
    content = content_of(data)
    if content is None:
        return None
    lines = [
        line.rstrip(b" \r")
        for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if line.strip(b"\r")
    ]
    if not lines:
        return None
    header = re.fullmatch(rb"([0-9]+) ([0-9]+)", lines[0])
    width = lines[0].count(b" ")
    if header:
        announced = int(header[2])
        fields = lines[1].split(b" ") if len(lines) > 1 else []
        if 0 < announced < len(fields) and all(right_number(f) is not None for f in fields[-announced:]):
            width, lines = announced, lines[1:]
        elif len(fields) != 2 or re.search(rb"[\0-\x08\x0e-\x1b]", lines[1]):
            return None
    words: dict[bytes, list[float]] = {}
    for line in lines:
        fields = line.split(b" ")
        word, values = b" ".join(fields[:-width]), fields[-width:]
        if width == 0 or len(fields) <= width or has_too_many(fields[:-width], values):
            return None
        if word not in words:
            row = [right_number(value) for value in values]
            if None in row:
                return None
            words[word] = [float(value) for value in row if value is not None]
    try:
        return [word.decode() for word in words], [*words.values()]
    except UnicodeDecodeError:
        return None


def has_too_many(word: list[bytes], values: list[bytes]) -> bool:
    """Return whether a word ends in a further number of the same kind as its values."""
    if len(word) == 1:
        return False
    whole = all(re.fullmatch(rb"[0-9]+", each) for each in (word[-1], *values))
    phrase = all(re.fullmatch(rb"[0-9]+", each) for each in word)
    plain = re.fullmatch(rb"[0-9]+", word[-1])
    return bool(right_form(word[-1]) and not plain) or (whole and not phrase)


def right_form(field: bytes) -> bool:
    """Return whether a field is written as a decimal number, of any size."""
    return bool(re.fullmatch(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", field))


def check_vectors(case: tuple[bytes, Edits]) -> None:
    """Compare words and numbers of vectors with the checker."""
    path = scratch() / "x.vec"
    for data in versions(*case):
        path.write_bytes(data)
        vectors = outcome(lambda: read_vectors(path), VectorError)
        found = vectors if vectors is None else (vectors.words, vectors.matrix.tolist())
        is_doubtful = re.search(
            rb"[\t\x0b\x0c\x1c-\x1f\x85\xa0]", data
        )  # white space in numbers may be rejected
        agree(found, None if found is None and is_doubtful else right_vectors(data), data)


# -- JSON lines -------------------------------------------------------------------------------------------

texts = st.sampled_from(["a", "b c", "Ä", "", "\t", "\n", "\ud800", "\u2028", "_", "#", " x ", "1"])
values = st.recursive(
    st.one_of(texts, st.sampled_from([None, True, 0, 1, -3, 10**30, 0.5, math.nan, math.inf])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=6,
)
keys = st.sampled_from(
    [
        "words",
        "tokens",
        "upos",
        "sent_id",
        "text",
        "head",
        "deprel",
        "ner_tags",
        "id",
        "misc",
        "",
        "a=b",
        "a|b",
    ]
)


@st.composite
def json_pages(draw: st.DrawFn) -> bytes:
    """Draw JSON lines, most of them sentences."""
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        words = draw(st.lists(st.sampled_from(["a", "b c", "Ä", "_", "\u2028"]), min_size=1, max_size=3))
        row: dict[str, Any] = {draw(st.sampled_from(["words", "words", "tokens"])): words}
        row |= draw(st.sampled_from([{}, {"upos": ["NOUN"] * len(words)}, {"sent_id": "s"}, {"sent_id": 0}]))
        row |= draw(st.dictionaries(keys, values, max_size=1))
        rows.append(json.dumps(row, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass"))
    return draw(st.sampled_from([b"\n", b"\r\n", b"\n \n"])).join(rows)


def right_json(data: bytes, *, labels: bool) -> list[tuple[list[str], list[str]]] | None:
    """Return words and UPOS of each line, or None if a line is not a sentence."""
    text = text_of(data)
    if text is None:
        return None
    sentences = []
    for line in text.removeprefix("\ufeff").split("\n"):
        if line.strip(" \r"):
            sentence = right_row(line, labels=labels)
            if sentence is None:
                return None
            sentences.append(sentence)
    return sentences


def right_row(line: str, *, labels: bool) -> tuple[list[str], list[str]] | None:
    """Return words and UPOS of a line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    words = (row.get("words") if "words" in row else row.get("tokens")) if isinstance(row, dict) else None
    if not isinstance(words, list) or not words or not all(map(fits, words)):
        return None
    text = row.get("text")
    named = row.get("sent_id")
    if (named not in (None, "") and not fits(str(named))) or (isinstance(text, str) and has_surrogates(text)):
        return None
    upos = row.get("upos")
    upos = ["_"] * len(words) if upos is None else upos
    if not isinstance(upos, list) or len(upos) != len(words) or not all(map(fits, upos)):
        return None
    others = {key: value for key, value in row.items() if key not in ("words", "tokens", "id", "form")}
    for key, value in others.items() if labels else ():
        kinds = (str, int) if key == "head" else str
        if isinstance(value, list) and value and all(isinstance(each, kinds) for each in value):
            strings, is_misc = [str(each) for each in value], key not in CELLS
            if len(value) != len(words) or not all(map(fits, strings)):
                return None
            if is_misc and (not fits_key(key) or any("|" in each for each in strings)):
                return None
    return words, upos


CELLS = ("lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def fits(value: Any) -> bool:
    """Return whether CoNLL-U can hold a value."""
    return isinstance(value, str) and not has_surrogates(value) and value != "" and not {*value} & {*"\t\n\r"}


def fits_key(key: str) -> bool:
    """Return whether MISC can hold an attribute of a name."""
    return fits(key) and not {*key} & {*"|="}


def has_surrogates(value: str) -> bool:
    """Return whether a string holds half of a surrogate pair."""
    return any(0xD800 <= ord(letter) < 0xE000 for letter in value)


def check_json(case: tuple[bytes, Edits]) -> None:
    """Compare words and tags of JSON lines with the checker, and write them as CoNLL-U."""
    for index, data in enumerate(versions(*case)):
        labels = index % 2 == 1

        def read(data: bytes = data, labels: bool = labels) -> Any:
            stream = io.BytesIO(data)
            return list(read_labelled_jsonl(stream) if labels else iterate_unlabelled(stream, format="jsonl"))

        sentences = outcome(read, TextError)
        found = sentences if sentences is None else [(each.words, each.upos) for each in sentences]
        agree(found, right_json(data, labels=labels), data)
        if sentences:
            again = list(read_conllu(io.BytesIO("".join(conllu_texts(sentences)).encode())))
            assert [each.raw for each in again] == [each.raw for each in sentences], data


# -- model configuration ----------------------------------------------------------------------------------

SMALL = {
    **{
        "labels": ["a", "root"],
        "word_size": 4,
        "vocabulary_size": 3,
        "context_layers": 1,
        "attention_heads": 2,
    },
    **{"key_size": 2, "feed_forward_size": 3, "upos_size": 2, "vector_space": {"name": "x", "dimension": 4}},
}
PARSER = {"arc_size": 3, "label_size": 2, "upos_names": ["NOUN"]}
COUNTS = {
    **dict.fromkeys(["word_size", "attention_heads", "key_size", "feed_forward_size", "upos_size"], 1),
    **{"arc_size": 1, "label_size": 1, "max_pieces": 1, "vocabulary_size": 0, "max_distance": 0},
    **{"context_layers": 0, "frozen_layers": -1},
}
RATES = ("context_dropout", "word_dropout", "output_dropout", "upos_dropout")
SWITCHES = ("uses_upos", "freeze_word_vectors", "single_root", "projective")
CHOICES = {
    "encoder": ("vectors", "pretrained"),
    "piece_pooling": ("mean", "first"),
    "score_form": ("log_softmax", "raw"),
    "scheme": (None, "bio"),
}
FIELDS = [
    *COUNTS,
    *RATES,
    *SWITCHES,
    *CHOICES,
    *("labels", "upos_names", "column", "start_sha256", "vector_space"),
]
ODD = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        3,
        -1,
        -2,
        1000,
        1001,
        10**9,
        10**9 + 1,
        10**30,
        -(10**30),
        0.0,
        0.5,
        1.0,
        -0.5,
    ),
    *(
        math.nan,
        math.inf,
        1e-9,
        "",
        "a",
        "1",
        "bio",
        "raw",
        "mean",
        "pretrained",
        "vectors",
        "upos",
        "form",
        "xpos",
    ),
    *(
        [],
        ["a"],
        ["a", "b"],
        ["a", "a"],
        ["a", 1],
        [None],
        ["B-X", "I-X"],
        ["O", "I-X"],
        ["<s>"],
        [["a"]],
        {},
    ),
    *({"a": 1}, {"name": "x"}, {"0": "a"}, [{"name": "x"}], "\u2028", "../x", "pool", "union", "en"),
]
changes = st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(ODD)), max_size=8)


def right_field(name: str, value: Any, *, is_tagger: bool) -> bool:
    """Return whether a field of a configuration has a valid value, whatever the others are."""
    if name in COUNTS:
        limit = 1000 if re.search("layer|head", name) else 10**9
        return (value is None and name == "context_layers") or (
            type(value) is int and COUNTS[name] <= value <= limit
        )
    if name in RATES:
        return type(value) in (int, float) and 0 <= value < 1
    if name in SWITCHES:
        return isinstance(value, bool)
    if name in CHOICES:
        return value in CHOICES[name] if isinstance(value, str | None) else False
    if name in ("labels", "upos_names"):
        names = [] if value is None else value
        reserved = is_tagger and name == "labels" and isinstance(names, list) and "<s>" in names
        return is_strings(names) and len({*names}) == len(names) and not reserved
    if name == "column":
        words = "id form lemma head deprel deps misc words tokens text sent_id comments".split()
        return isinstance(value, str) and bool(re.fullmatch(r"[^\W\d][\w-]*", value)) and value not in words
    return value is None or isinstance(value, str if name == "start_sha256" else dict)


def is_strings(value: Any) -> bool:
    """Return whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def right_configuration(fields: dict[str, Any], *, is_tagger: bool) -> bool:
    """Return whether a configuration is valid."""
    if not all(right_field(name, value, is_tagger=is_tagger) for name, value in fields.items()):
        return False
    if is_tagger and fields.get("scheme") == "bio":
        labels = fields.get("labels") or []
        return all(
            label == "O" or label[:2] == "B-" or f"B-{label[2:]}" in labels for label in labels
        ) and all(label == "O" or re.fullmatch("[BI]-.+", label) for label in labels)
    return True


def check_configuration(case: tuple[bool, list[tuple[str, Any]]]) -> None:
    """Compare configurations with the checker; small valid ones make a model."""
    is_tagger, damage = case
    kind: Any = CrfTaggerConfig if is_tagger else BiaffineParserConfig
    own = (
        {"column", "scheme"}
        if is_tagger
        else {"arc_size", "label_size", "score_form", "single_root", "projective"}
    )
    others = {"column", "scheme", "arc_size", "label_size", "score_form", "single_root", "projective"} - own
    damage = [(name, value) for name, value in damage if name not in others]
    for end in range(len(damage) + 1):
        fields = {**SMALL, **({} if is_tagger else PARSER), **dict(damage[max(0, end - 1 - end % 2) : end])}
        config = outcome(lambda fields=fields: kind.from_dict(fields), ValueError)
        agree(config is not None, right_configuration(fields, is_tagger=is_tagger), fields)
        if config is None or not config.labels:  # without labels, there is no model
            continue
        again = kind.from_dict(json.loads(json.dumps(config.to_dict())))
        assert again.to_dict() == config.to_dict(), fields
        sizes = [value for value in fields.values() if type(value) is int]
        if config.labels and config.encoder == "vectors" and max(sizes) <= 16:
            (CrfTagger if is_tagger else BiaffineParser)(config)


# -- charts -----------------------------------------------------------------------------------------------

CHARTS = chart_features({"words": STRINGS, "sent_id": chart_features({})["words_hash"]})
CHART: dict[str, Any] = {
    **{"words": ["a", "b"], "sent_id": "s", "candidates": [0, 2, 1], "offsets": [0, 2, 3]},
    **{"source_best": [[0, 1], [2, 1]], "pool_best": [0, 1], "log_probs": [-1.0, -0.5, 0.0]},
    **{"words_hash": "x", "format_version": 1},
}
cuts = st.lists(
    st.tuples(
        st.sampled_from([name for name in CHART if name != "sent_id"]),
        st.integers(0, 8),
        st.sampled_from(["put", "put", "put", "insert", "remove", "none"]),
        st.sampled_from(
            [0, 1, 2, 3, -1, -2, 2**31 - 1, -(2**31), None, math.nan, math.inf, -math.inf, 0.5, 1e-3]
        ),
    ),
    max_size=6,
)


def damaged(row: dict[str, Any], name: str, index: int, how: str, value: Any) -> dict[str, Any]:
    """Return a chart row with one change that its column can hold."""
    is_list = isinstance(row[name], list)
    if how == "none" or not is_list:
        return {**row, name: value if name == "format_version" and type(value) is int else None}
    if name == "log_probs":
        value = value if value is None else float(value)
    elif name == "words":
        value = None if value is None else str(value)
    else:
        value = None if isinstance(value, float) else value
    values = json.loads(json.dumps(row[name]))
    inner = values[index % len(values)] if name == "source_best" and values else values
    if name == "source_best" and (index > 4 or not isinstance(inner, list)):
        inner, value = values, None if value is None else [value]
    position = index % (len(inner) + 1)
    inner[position : position + (how != "insert")] = [] if how == "remove" else [value]
    return {**row, name: values}


def right_chart(row: dict[str, Any]) -> bool:
    """Return whether a chart row of two sources is consistent."""
    words, ends, kept, logs = row["words"], row["offsets"], row["candidates"], row["log_probs"]
    if any(row[name] is None for name in CHART) or row["format_version"] > 1:
        return False
    groups = len(row["pool_best"])
    if groups < 1 or groups != len(words) or len(ends) != groups + 1 or len(row["source_best"]) != 2:
        return False
    numbers = [*ends, *kept, *row["pool_best"]]
    for best in row["source_best"]:
        if best is None or len(best) != groups:
            return False
        numbers += best
    if (
        any(number is None for number in numbers)
        or min(*row["pool_best"], *itertools.chain(*row["source_best"])) < -1
    ):
        return False
    if ends[0] != 0 or ends != sorted(ends) or ends[-1] != len(kept) or len(logs) not in (0, len(kept)):
        return False
    for first, last in itertools.pairwise(ends):
        group = kept[first:last]
        if group != sorted({*group}) or any(candidate < 0 for candidate in group):
            return False
    return all(log is not None and log <= 0.01 for log in logs)


def check_charts(damage: list[tuple[str, int, str, Any]]) -> None:
    """Compare chart rows, between undamaged ones, with the checker."""
    for start in range(len(damage) + 1):
        row = CHART
        for cut in damage[start : start + 1 + start % 2]:
            if isinstance(row[cut[0]], list | int):
                row = damaged(row, *cut)
        table = pa.Table.from_pylist([CHART, row, CHART], schema=CHARTS.arrow_schema)
        rows: Any = SimpleNamespace(features=CHARTS, data=SimpleNamespace(table=table))
        found = outcome(lambda rows=rows: check_rows(rows, 2, "somewhere") or True, ValueError)
        agree(found is not None, right_chart(row), row)
        if found:
            triples = from_ragged(table.to_pylist())
            assert len(triples) == 6 + len(row["candidates"]), row


# -- runs -------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """What is fuzzed: a strategy of inputs, the check of one, and the share of the executions."""

    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]
    share: float


KINDS = {
    "conllu": Kind(st.tuples(conllu_pages(), edits), check_conllu, 0.35),
    "vectors": Kind(st.tuples(vector_pages(), edits), check_vectors, 0.2),
    "json": Kind(st.tuples(json_pages(), edits), check_json, 0.35),
    "configuration": Kind(st.tuples(st.booleans(), changes), check_configuration, 0.05),
    "charts": Kind(cuts, check_charts, 0.05),
}
_folder: list[Any] = []


def scratch() -> Path:
    """Return a temporary folder that is removed at the end."""
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory())
    return Path(_folder[0].name)


def test_of(kind: Kind, examples: int, **changes: Any) -> Callable[[], None]:
    """Return a test of hypothesis over the inputs of a kind."""
    quiet = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    return settings(max_examples=examples, **(quiet | changes))(given(kind.inputs)(kind.check))


def main() -> None:
    """Fuzz all kinds, or one, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--executions", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console.quiet = True
    logging.disable()
    warnings.simplefilter("ignore")
    for name, kind in KINDS.items():
        if options.kind not in (None, name):
            continue
        share = 1 if options.kind else kind.share
        start, began, number, found = executions, time.monotonic(), options.seed, 0
        while executions - start < share * options.executions and found < 20:
            number += 1
            try:
                seed(number)(test_of(kind, ROUND, phases=[Phase.generate, Phase.shrink]))()
            except Exception as error:
                found += 1
                print(f"{name}: seed {number}: {type(error).__name__}: {error}"[:3000], flush=True)
        seconds = time.monotonic() - began
        print(f"{name}: {executions - start:,} executions, {found} found, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()

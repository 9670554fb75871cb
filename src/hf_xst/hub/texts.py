"""Read all text in the files that are pushed: cards, JSON, Parquet, the header of safetensors."""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet

from hf_xst.models.pretrained_words import TOKENIZER_FILES
from hf_xst.models.words import WORDS_FILE

WORD_LISTS = frozenset({WORDS_FILE, TOKENIZER_FILES[0]})
_MARKUP, _SEPARATORS = re.compile(r"<[^<>]*>"), (re.compile(r"[\t|,]| {2,}"), re.compile(r"\s+"))
_PNG, _DRAWN = b"\x89PNG\r\n\x1a\n", frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})


class Text(NamedTuple):
    """Text of a file.

    Attributes:
        content: the text.
        is_words: each line is a word of a list, which may be any name or path.
        is_reordered: parts of a text that was yielded before.
    """

    content: str
    is_words: bool = False
    is_reordered: bool = False


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the text of a file, each part in every order in which it can be read.

    Raises:
        ValueError: the content is not what the suffix says.
    """
    if path.suffix == ".safetensors":
        with path.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            if not 2 <= size <= path.stat().st_size - 8:
                raise ValueError("it lacks the header of safetensors")
            yield from _json_texts(stream.read(size), False)
    elif path.suffix == ".parquet":
        yield from _parquet_texts(path)
    elif path.suffix == ".json":
        yield from _json_texts(path.read_bytes(), path.name in WORD_LISTS)
    elif path.suffix != ".png":
        content = path.read_text(encoding="utf-8")
        yield Text(content)
        for column in (_MARKUP.sub(" ", content), *_columns(content)):
            yield Text(column, is_reordered=True)


def _columns(content: str) -> Iterator[str]:
    """Yield the columns of a table, such as the words of CoNLL-U."""
    for separator in _SEPARATORS:
        columns: dict[int, list[str]] = defaultdict(list)
        for line in content.splitlines():
            for number, value in enumerate(separator.split(line)):
                columns[number].append(value)
        yield from ("\n".join(values) for values in columns.values() if len(values) > 1)


def _json_texts(content: bytes, is_words: bool) -> Iterator[Text]:
    try:
        pairs = list(_strings(json.loads(content.decode("utf-8"), object_pairs_hook=tuple)))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    yield Text("\n".join(value for _, value in pairs), is_words)
    if not is_words:
        yield Text("\n".join(f'{key} = "{value}"' for key, value in pairs))
        by_key: dict[str, list[str]] = defaultdict(list)
        for key, value in pairs:
            by_key[key].append(value)
        for values in by_key.values():
            yield Text("\n".join(values), is_reordered=True)


def _strings(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings below a JSON value with their keys; objects are tuples, which keep duplicate keys."""
    if isinstance(content, str):
        yield key, content
    elif isinstance(content, list):
        for value in content:
            yield from _strings(value, key)
    elif isinstance(content, tuple | dict):
        for name, value in content.items() if isinstance(content, dict) else content:
            yield "", name
            yield from _strings(value, name)


def _parquet_texts(path: Path) -> Iterator[Text]:
    file = pyarrow.parquet.ParquetFile(path)
    for metadata in (file.metadata.metadata, file.schema_arrow.metadata):
        for key, value in (metadata or {}).items():
            if key != b"ARROW:schema":  # in base64; its content is also in the decoded metadata
                yield Text(f"{key.decode('utf-8', 'replace')}\n{value.decode('utf-8', 'replace')}")
    for batch in file.iter_batches():
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            if "string" in str(values.type):  # also in lists, structures and dictionaries
                strings = (value for _, value in _strings(values.to_pylist()))
                yield Text("\n".join(strings), is_words=column != "sent_id")


def drawn_part(content: bytes) -> bytes:
    """Return a PNG picture without text, metadata and whatever else is not required to draw it.

    Raises:
        ValueError: the picture is broken or holds hidden data.
    """
    kept, start = [_PNG], len(_PNG)
    pixels = zlib.decompressobj()
    while kept[-1][4:8] != b"IEND":
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        chunk, start = content[start:end], end
        if end > len(content) or zlib.crc32(chunk[4:-4]).to_bytes(4, "big") != chunk[-4:]:
            raise ValueError("a part of the picture is broken")
        if chunk[4:8] in _DRAWN:
            kept.append(chunk)
        if chunk[4:8] == b"IDAT":
            try:
                pixels.decompress(chunk[8:-4])
            except zlib.error as error:
                raise ValueError("a part of the picture is broken") from error
    if not content.startswith(_PNG) or not pixels.eof or pixels.unused_data:
        raise ValueError("it lacks pixels, or other data follows them")
    return b"".join(kept)

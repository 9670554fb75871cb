"""Map words to rows of word vectors."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from hf_xst.files import write_text

PADDING, UNKNOWN = 0, 1
_FORMAT_VERSION = 1
_RESERVED = 2
_DIGIT = re.compile(r"\d")


def lookup_forms(word: str) -> tuple[str, ...]:
    """Return the forms to look up: exact, lower-cased, digits as 0, both; then all in NFC and NFD.

    Lower-cased forms with Turkish letters, in which `I` is the capital of dotless `ı`, come last among the
    lower-cased ones. Python lowers `İ` to two characters, an `i` and a dot, which vectors rarely have.
    """
    undotted = word.replace("İ", "i")
    lowered = (word.lower(), undotted.lower(), undotted.replace("I", "ı").lower())
    forms = (word, *lowered, *(_DIGIT.sub("0", form) for form in (word, *lowered)))
    if word.isascii():
        return tuple(dict.fromkeys(forms))
    normalized = (unicodedata.normalize(way, form) for way in ("NFC", "NFD") for form in forms)
    return tuple(dict.fromkeys((*forms, *normalized)))


class WordTable:
    """Words in a fixed order. Index 0 is padding, 1 the unknown word, and special words follow from 2.

    Words of a text never get the index of a special word (a root symbol, sentence boundaries): a literal
    ``<root>`` in a text is an ordinary word or unknown.

    Args:
        words: Ordinary words, in the order of their vectors.
        specials: Special words, which precede them.

    Raises:
        ValueError: A duplicate word or special word.
    """

    def __init__(self, words: Iterable[str], specials: Sequence[str] = ()) -> None:
        self.words = tuple(words)
        self.specials = tuple(specials)
        self.first_word = _RESERVED + len(self.specials)
        self._index = _index(self.words, self.first_word, "word")
        self._special = _index(self.specials, _RESERVED, "special word")

    def __len__(self) -> int:
        """The number of indices including the reserved ones: the rows of an embedding matrix."""
        return self.first_word + len(self.words)

    def lookup(self, word: str) -> int:
        """Return the index of the first known form of a word (`lookup_forms`), or `UNKNOWN`."""
        index = self._index.get(word)
        if index is not None:
            return index
        for form in lookup_forms(word):
            if form in self._index:
                return self._index[form]
        return UNKNOWN

    def lookup_many(self, words: Iterable[str]) -> list[int]:
        """Return the index of each word."""
        return [self.lookup(word) for word in words]

    def special(self, name: str) -> int:
        """Return the index of a special word; raise KeyError if it does not exist."""
        if name not in self._special:
            raise KeyError(f"found special word {name!r}, expected one of {', '.join(self.specials)}")
        return self._special[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON, atomically."""
        content = {"format_version": _FORMAT_VERSION, "specials": self.specials, "words": self.words}
        write_text(path, json.dumps(content, ensure_ascii=False, indent=0) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordTable:
        """Read a table; raise ValueError if the file is not a table of this format version."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: not JSON in UTF-8 ({error}), expected a word table") from None
        version = content.get("format_version") if isinstance(content, dict) else None
        if version != _FORMAT_VERSION:
            raise ValueError(f"{path}: found format version {version!r}, expected {_FORMAT_VERSION}")
        for name in ("specials", "words"):
            values = content.get(name)
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise ValueError(f"{path}: {name} is not a list of strings")
        return cls(content["words"], content["specials"])


def _index(words: Sequence[str], start: int, kind: str) -> dict[str, int]:
    index = {word: number for number, word in enumerate(words, start=start)}
    if len(index) < len(words):
        duplicate = next(word for number, word in enumerate(words, start=start) if index[word] != number)
        raise ValueError(f"duplicate {kind} {duplicate!r}")
    return index

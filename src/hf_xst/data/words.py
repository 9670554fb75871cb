"""The word table: which row of the vectors a word has, saved as one JSON file."""

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
    """The forms a word is sought under: exact, lower-cased, digits as 0, lower-cased and digits as 0.

    Then the same with letters and accents composed, and decomposed: files of one language write either.
    """
    lowered = word.lower()
    forms = (word, lowered, _DIGIT.sub("0", word), _DIGIT.sub("0", lowered))
    if word.isascii():
        return tuple(dict.fromkeys(forms))
    others = (unicodedata.normalize(way, form) for way in ("NFC", "NFD") for form in forms)
    return tuple(dict.fromkeys((*forms, *others)))


class WordTable:
    """Words in a fixed order, with indices 0 for padding, 1 for the unknown word, and 2 on for special words.

    Special words (a root symbol, sentence boundaries) have indices of their own that no word of a text ever
    gets: a text may well hold ``<root>``, which is then an ordinary word or unknown.

    Args:
        words: ordinary words, in the order of their vectors.
        specials: special words, which come before them.

    Raises:
        ValueError: a word or a special word is there twice.
    """

    def __init__(self, words: Iterable[str], specials: Sequence[str] = ()) -> None:
        self.words = tuple(words)
        self.specials = tuple(specials)
        self.first_word = _RESERVED + len(self.specials)
        self._index = _indexed(self.words, self.first_word, "word")
        self._special = _indexed(self.specials, _RESERVED, "special word")

    def __len__(self) -> int:
        """Number of indices, the reserved ones included: rows of an embedding matrix."""
        return self.first_word + len(self.words)

    def lookup(self, word: str) -> int:
        """The index of a text's word: of the first of its `lookup_forms` there is, else `UNKNOWN`."""
        index = self._index.get(word)
        if index is not None:
            return index
        for form in lookup_forms(word):
            if form in self._index:
                return self._index[form]
        return UNKNOWN

    def lookup_many(self, words: Iterable[str]) -> list[int]:
        """The index of each word."""
        return [self.lookup(word) for word in words]

    def special(self, name: str) -> int:
        """The index of a special word.

        Raises:
            KeyError: there is no such special word.
        """
        if name not in self._special:
            raise KeyError(
                f"found special word {name!r}, expected one of {', '.join(self.specials) or 'none at all'}"
            )
        return self._special[name]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON, whole or not at all."""
        content = {"format_version": _FORMAT_VERSION, "specials": self.specials, "words": self.words}
        write_text(path, json.dumps(content, ensure_ascii=False, indent=0) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordTable:
        """Read a table.

        Raises:
            ValueError: the file is no word table, or one of another format version.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as problem:
            raise ValueError(f"{path}: found no JSON in UTF-8 ({problem}), expected a word table") from None
        version = content.get("format_version") if isinstance(content, dict) else None
        if version != _FORMAT_VERSION:
            raise ValueError(
                f"{path}: found format version {version!r}, expected a word table of {_FORMAT_VERSION}"
            )
        for name in ("specials", "words"):
            values = content.get(name)
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise ValueError(f"{path}: found {name} that are no list of strings")
        return cls(content["words"], content["specials"])


def _indexed(words: Sequence[str], start: int, kind: str) -> dict[str, int]:
    index: dict[str, int] = {}
    for place, word in enumerate(words, start=start):
        if word in index:
            raise ValueError(f"found {kind} {word!r} twice, expected each once")
        index[word] = place
    return index

"""Segment running text into sentences and words by Unicode properties, independent of the language.

For languages that require more (Chinese, Japanese and Thai have no spaces between words; many treebanks split
clitics), pass another function wherever a `Segmenter` is accepted.

Words:
    - White space and U+200B (zero-width space) end a word.
    - Letters, digits and combining marks form a word, also across an apostrophe, hyphen, full stop, middle
      dot, underscore, ``@`` or ``&`` between two of them, and across a comma, colon or slash between two
      digits: *don't*, *e-mail*, *3.14*, *10:30*.
    - A full stop belongs to an abbreviation of single letters: *U.S.*; a web or mail address is one word.
    - Any other character is a word; a run of one character, such as an ellipsis, is one word.
Sentences:
    - A blank line ends a sentence; any other line break is a space.
    - A mark such as ``. ! ? … ؟ । 。`` with any closing quotes and brackets ends a sentence if white space
      follows (optional after full-width marks) and then no lower-case letter.
    - A full stop does not end a sentence before a number, nor after a single capital letter, a number of at
      most two digits, or an abbreviation of single letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from hf_xst.data.sentence import BLANK, ConlluSentence

Segmenter = Callable[[str], Iterable[Sequence[str]]]
"""Maps a paragraph of text to its sentences, as lists of words."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_ADDRESS = re.compile(r"(?:https?://|ftp://|www\.)[^\s<>\"]+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_AFTER_ADDRESS = ".,;:!?)]}'\"»”’"
_ABBREVIATION = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
# Matches strings of one letter per character, its class (see `_character_class`).
_WORD = re.compile(r"[LDMJ]+(?:(?:[-'.](?=[LD])|(?<=D),(?=D))[LDMJ]+)*|RR?|P(?:M|JP)+|[^ ]")
_VISIBLE = re.compile("[^ ]")
_JOINING = {
    character: name
    for characters, name in (("'’＇׳״", "'"), ("-‐‑·_‿@&", "-"), (",:/٫٬", ","), (".", "."))
    for character in characters
}
_ZERO_WIDTH_SPACES = "\u200b\ufeff"
_WIDE_ENDS = frozenset("。！？｡︒﹖﹗")
_ENDS = frozenset(".!?…؟۔।॥։።፧‼‽⁇⁈⁉") | _WIDE_ENDS
_CLOSING = frozenset("\"'”’»")


class _Span(NamedTuple):
    """The position of a word in its text."""

    start: int
    end: int


def segment(text: str) -> list[list[str]]:
    """Segment a paragraph into sentences and words (see the module)."""
    return [[text[word.start : word.end] for word in sentence] for sentence in _sentences(text)]


def paragraphs(text: str) -> Iterator[str]:
    """Split text at blank lines, skipping paragraphs of white space."""
    for paragraph in _BLANK_LINE.split(text.replace("\r\n", "\n")):
        if paragraph.strip():
            yield paragraph


def paragraph_sentences(paragraph: str, segmenter: Segmenter = segment) -> Iterator[ConlluSentence]:
    """Segment a paragraph into CoNLL-U sentences; raise ValueError at words that CoNLL-U cannot hold.

    The original text becomes a comment and ``SpaceAfter=No``, as far as the segmenter's words occur in it.
    """
    position: int | None = 0
    for words in segmenter(paragraph):
        sentence = ConlluSentence.from_words(words)
        spans = None if position is None else _align(words, paragraph, position)
        if spans is None:
            position, text = None, " ".join(words)
        else:
            position, text = spans[-1].end, paragraph[spans[0].start : spans[-1].end]
            following = [*(span.start for span in spans[1:]), _skip_spaces(paragraph, position)]
            misc = ["SpaceAfter=No" if s.end == n else BLANK for s, n in zip(spans, following, strict=True)]
            sentence = sentence.with_columns({"misc": misc})
        yield sentence.with_comments([f"# text = {' '.join(text.split())}"])


def _align(words: Sequence[str], text: str, position: int) -> list[_Span] | None:
    """Locate consecutive words separated by white space only; None if they do not occur."""
    spans = []
    for word in words:
        start = _skip_spaces(text, position)
        if not text.startswith(word, start):
            return None
        position = start + len(word)
        spans.append(_Span(start, position))
    return spans


def _skip_spaces(text: str, position: int) -> int:
    """Return the next position without white space; the end of the text counts as white space."""
    while position < len(text) and _CLASSES[ord(text[position])] == " ":
        position += 1
    return position if position < len(text) else len(text) + 1


def _character_class(character: str) -> str:
    """Return L (letter), D (digit), M (mark), J (joiner), R (half a flag), a joining class, P or a space."""
    if character in _JOINING:
        return _JOINING[character]
    category = unicodedata.category(character)
    if character.isspace() or character in _ZERO_WIDTH_SPACES or category in ("Cc", "Zl", "Zp", "Zs"):
        return " "
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return "R"
    if category[0] == "M" or "\U0001f3fb" <= character <= "\U0001f3ff":  # skin tones modify an emoji
        return "M"
    if category == "Cf":
        return "J"
    return {"L": "L", "N": "D", "C": "L"}.get(category[0], "P")


class _ClassTable(dict[int, str]):
    """The classes of characters by code point, for `str.translate`, computed on first use."""

    def __missing__(self, code: int) -> str:
        self[code] = name = _character_class(chr(code))
        return name


_CLASSES = _ClassTable()  # a cache of a pure function


def _words(text: str) -> Iterator[_Span]:
    classes = text.translate(_CLASSES)
    addresses = {m.start(): len(m[0].rstrip(_AFTER_ADDRESS)) for m in _ADDRESS.finditer(text)}
    position = 0
    while visible := _VISIBLE.search(classes, position):
        start = visible.start()
        if start in addresses:
            yield _Span(start, position := start + addresses[start])
            continue
        match = _WORD.match(classes, start)
        assert match is not None  # any visible character begins a word
        position = match.end()
        if classes[start] in "LDMJR":
            if text.startswith(".", position) and _ABBREVIATION.fullmatch(text, start, position):
                position += 1
        elif position == start + 1:
            while text.startswith(text[start], position):
                position += 1
        yield _Span(start, position)


def _sentences(text: str) -> Iterator[list[_Span]]:
    words = list(_words(text))
    begin = stop = 0
    for index, word in enumerate(words):
        # Every mark before `stop` leads to the same `stop`.
        if index >= stop and text[word.start] in _ENDS and _may_end(text, words, index):
            stop = _skip_closing(text, words, index + 1)
            if stop == len(words) or _may_begin(text, words, stop):
                yield words[begin:stop]
                begin = stop
    if begin < len(words):
        yield words[begin:]


def _may_end(text: str, words: Sequence[_Span], index: int) -> bool:
    """Return whether a mark may end a sentence, judging by the preceding word."""
    start, end = words[index]
    if text[start:end] != "." or index == 0 or words[index - 1].end != start:
        return True
    before = text[words[index - 1].start : start]
    is_initial = len(before) == 1 and before.isupper()
    return not (is_initial or (before.isdigit() and len(before) <= 2))


def _skip_closing(text: str, words: Sequence[_Span], index: int) -> int:
    """Skip end marks and closing marks that follow without a space."""
    while index < len(words) and words[index].start == words[index - 1].end:
        first = text[words[index].start]
        if not (first in _CLOSING or first in _ENDS or unicodedata.category(first) in ("Pe", "Pf")):
            break
        index += 1
    return index


def _may_begin(text: str, words: Sequence[_Span], index: int) -> bool:
    """Return whether a sentence may begin at a word that follows a possible end."""
    before, word = words[index - 1], words[index]
    has_gap = word.start > before.end or text[before.end - 1] in _WIDE_ENDS
    first, is_stop = text[word.start], text[before.start : before.end] == "."
    return has_gap and not first.islower() and not (is_stop and first.isdigit())

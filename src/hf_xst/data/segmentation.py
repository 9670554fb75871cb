"""A simple segmentation of running text into sentences and words, by what Unicode says about characters.

It knows no language. For a language that needs more (Chinese, Japanese, Thai, ... are written without spaces
between words, and clitics are split in many treebanks), give a function of your own wherever a `Segmenter` is
taken.

Words:
    - White space ends a word, U+200B (zero-width space) too.
    - Letters, digits and combining marks hold together, also across an apostrophe, hyphen, full stop, middle
      dot, underscore, ``@`` or ``&`` between two of them, and across a comma, colon or slash between two
      digits: *don't*, *e-mail*, *3.14*, *10:30*.
    - A full stop belongs to an abbreviation of single letters: *U.S.*; a web or mail address is one word.
    - Any other character is a word; a run of one and the same, such as an ellipsis, is one word.
Sentences:
    - A blank line ends a sentence; any other line break is a space.
    - So does a mark such as ``. ! ? … ؟ । 。`` with closing quotes and brackets behind it, if white space
      follows (after full-width marks it need not) and then no lower-case letter.
    - A full stop does not end one before a number, nor after a single capital letter, a number of at most two
      digits, or an abbreviation of single letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from hf_xst.data.sentence import BLANK, ConlluSentence

Segmenter = Callable[[str], Iterable[Sequence[str]]]
"""Takes a paragraph of text, gives its sentences as lists of words."""

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_ADDRESS = re.compile(r"(?:https?://|ftp://|www\.)[^\s<>\"]+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_AFTER_ADDRESS = ".,;:!?)]}'\"»”’"
_ABBREVIATION = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
# Runs on one letter a character, its kind, see `_kind`.
_WORD = re.compile(r"[LDMJ]+(?:(?:[-'.](?=[LD])|(?<=D),(?=D))[LDMJ]+)*|RR?|P(?:M|JP)+|[^ ]")
_SPECIAL = {
    letter: kind
    for letters, kind in (("'’＇׳״", "'"), ("-‐‑·_‿@&", "-"), (",:/٫٬", ","), (".", "."))
    for letter in letters
}
_SPACES = "\u200b\ufeff"
_WIDE_ENDS = frozenset("。！？｡︒﹖﹗")
_ENDS = frozenset(".!?…؟۔।॥։።፧‼‽⁇⁈⁉") | _WIDE_ENDS
_CLOSING = frozenset("\"'”’»")


class _Word(NamedTuple):
    """A word's place in its text."""

    start: int
    end: int


def segment(text: str) -> list[list[str]]:
    """Cut a paragraph into sentences and words; see the module."""
    return [[text[word.start : word.end] for word in sentence] for sentence in _sentences(text)]


def paragraphs(text: str) -> Iterator[str]:
    """Cut text at its blank lines; what holds nothing but white space is left out."""
    for part in _BLANK_LINE.split(text.replace("\r\n", "\n")):
        if part.strip():
            yield part


def paragraph_sentences(paragraph: str, segmenter: Segmenter = segment) -> Iterator[ConlluSentence]:
    """Give a paragraph's sentences, with their text and what was written without a space.

    The text is kept as a comment and in ``SpaceAfter=No`` as far as the segmenter's words are found in it.

    Args:
        paragraph: running text.
        segmenter: cuts it up.

    Raises:
        ValueError: a sentence without words, or a word that CoNLL-U cannot hold.
    """
    place: int | None = 0
    for words in segmenter(paragraph):
        bare = ConlluSentence.from_words(words)
        found = None if place is None else _aligned(words, paragraph, place)
        if found is None:
            place, text = None, " ".join(words)
        else:
            place, text = found[-1].end, paragraph[found[0].start : found[-1].end]
            following = [*(word.start for word in found[1:]), _next_word(paragraph, place)]
            bare = bare.replaced({"misc": list(map(_spacing, found, following))})
        yield bare.commented([f"# text = {' '.join(text.split())}"])


def _spacing(word: _Word, following: int) -> str:
    return "SpaceAfter=No" if word.end == following else BLANK


def _aligned(words: Sequence[str], text: str, place: int) -> list[_Word] | None:
    """Find words in the text, nothing but white space between them; None if they are not there."""
    found = []
    for word in words:
        start = _next_word(text, place)
        if not text.startswith(word, start):
            return None
        place = start + len(word)
        found.append(_Word(start, place))
    return found


def _next_word(text: str, place: int) -> int:
    """Return the next place that is no white space; one beyond the end where there is none.

    What follows the end is another paragraph, so the end counts as white space.
    """
    while place < len(text) and _KINDS[ord(text[place])] == " ":
        place += 1
    return place if place < len(text) else len(text) + 1


def _kind(letter: str) -> str:
    """Say what a character is to words: L letter, D digit, M mark, J joiner, R half a flag, P other."""
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    category = unicodedata.category(letter)
    if letter.isspace() or letter in _SPACES or category in ("Cc", "Zl", "Zp", "Zs"):
        return " "
    if "\U0001f1e6" <= letter <= "\U0001f1ff":
        return "R"
    if category[0] == "M" or "\U0001f3fb" <= letter <= "\U0001f3ff":  # skin tones are marks of an emoji
        return "M"
    if category == "Cf":
        return "J"
    return {"L": "L", "N": "D", "C": "L"}.get(category[0], "P")


class _Kinds(dict[int, str]):
    """The kinds of characters by code point, for `str.translate`; found out when they are first met."""

    def __missing__(self, code: int) -> str:
        self[code] = kind = _kind(chr(code))
        return kind


_KINDS = _Kinds()  # a cache of a pure function


def _words(text: str) -> Iterator[_Word]:
    kinds = text.translate(_KINDS)
    addresses = {found.start(): len(found[0].rstrip(_AFTER_ADDRESS)) for found in _ADDRESS.finditer(text)}
    place = 0
    while found := _WORD.search(kinds, place):
        start, place = found.span()
        if start in addresses:
            place = start + addresses[start]
        elif kinds[start] in "LDMJR":
            if text.startswith(".", place) and _ABBREVIATION.fullmatch(text, start, place):
                place += 1
        elif place == start + 1:
            while text.startswith(text[start], place):
                place += 1
        yield _Word(start, place)


def _sentences(text: str) -> Iterator[list[_Word]]:
    words = list(_words(text))
    begin = 0
    for place, word in enumerate(words):
        if text[word.start] in _ENDS and place >= begin and _may_end(text, words, place):
            stop = _after_closing(text, words, place + 1)
            if stop == len(words) or _may_begin(text, words, stop):
                yield words[begin:stop]
                begin = stop
    if begin < len(words):
        yield words[begin:]


def _may_end(text: str, words: Sequence[_Word], place: int) -> bool:
    """Say whether a mark may end a sentence, by what stands before it."""
    start, end = words[place]
    if text[start:end] != "." or place == 0 or words[place - 1].end != start:
        return True
    before = text[words[place - 1].start : start]
    is_initial = len(before) == 1 and before.isupper()
    return not (is_initial or (before.isdigit() and len(before) <= 2))


def _after_closing(text: str, words: Sequence[_Word], place: int) -> int:
    """Pass over marks that end or close something and are written without a space."""
    while place < len(words) and words[place].start == words[place - 1].end:
        first = text[words[place].start]
        closes = first in _CLOSING or unicodedata.category(first) in ("Pe", "Pf")
        if not (closes or first in _ENDS):
            break
        place += 1
    return place


def _may_begin(text: str, words: Sequence[_Word], place: int) -> bool:
    """Say whether a sentence may begin with a word, given that one may end before it."""
    before, word = words[place - 1], words[place]
    has_gap = word.start > before.end or text[before.end - 1] in _WIDE_ENDS
    first, is_stop = text[word.start], text[before.start : before.end] == "."
    return has_gap and not first.islower() and not (is_stop and first.isdigit())

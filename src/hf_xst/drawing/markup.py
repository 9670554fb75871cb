"""Write SVG: elements and text, the frame of a picture with captions and legend, text direction and width."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from hf_xst.console import printable

FONTS = "system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif"
# The palette of Okabe and Ito, distinguishable with any kind of colour vision.
BLUE, SKY, GREY, ORANGE, VERMILION, GREEN = "#0072B2", "#56B4E9", "#8A8A8A", "#E69F00", "#D55E00", "#009E73"
WORD, LABEL, TAG = 16.0, 12.0, 11.0  # font sizes
LINE = 22.0  # height of a line below the sentence
GAP = 16.0  # between two words
_SWATCH = 26.0
_STYLE = (
    "svg{color:#1b1b1b;background:#ffffff}"
    "@media (prefers-color-scheme:dark){svg{color:#ececec;background:#16181d}}"
)
_NARROW = frozenset("iljftrI.,:;'!|()[]{}/\\-`\"")
_BROAD = frozenset("mwMWQ@%&ÆŒæœ")


@dataclass(frozen=True)
class Look:
    """Line style of an arc, a box or a pair; `name` is its meaning, `weight` that of the label's font."""

    name: str = ""
    colour: str = "currentColor"
    width: float = 1.4
    dash: str | None = None
    opacity: float | None = None
    weight: str | None = None

    @property
    def stroke(self) -> dict[str, str | float | None]:
        """Return the attributes of a line in this style, without its opacity."""
        return {"stroke": self.colour, "stroke_width": self.width, "stroke_dasharray": self.dash}


# -- text: what can be shown, its direction, its width ---------------------------------------------------


def legal(text: str) -> str:
    """Replace all characters that XML forbids by `�`: control characters, surrogates, non-characters."""
    return "".join(
        "�" if "\ud800" <= letter <= "\udfff" or letter in "\ufffe\uffff" else letter
        for letter in printable(text)
    )


def is_right_to_left(words: Iterable[str]) -> bool:
    """Decide by the first strongly directional letter of each word; the majority counts."""
    votes = [_direction(word) for word in words]
    return votes.count("R") > votes.count("L")


def _direction(word: str) -> str:
    """Return L or R for the first letter with a direction, or "" if no letter has one."""
    for letter in word:
        kind = unicodedata.bidirectional(letter)
        if kind in ("L", "R", "AL"):
            return "L" if kind == "L" else "R"
    return ""


def has_right_to_left(text: str) -> bool:
    """Check whether any letter runs from right to left."""
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)


def display_width(text: str) -> int:
    """Count terminal cells: 2 for wide East Asian characters, 0 for combining ones."""
    return sum(map(_cells, text))


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf") or "\u1160" <= letter <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def text_width(text: str, size: float) -> float:
    """Estimate the width of one line in a sans-serif font; the estimate errs on the wide side."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    cells = _cells(letter)
    if cells != 1:
        return 0.55 * cells
    if letter in _NARROW:
        return 0.4
    if letter in _BROAD:
        return 1.0
    return 0.72 if letter.isupper() or ord(letter) >= 0x900 else 0.62


# -- elements --------------------------------------------------------------------------------------------


def element(name: str, *content: str, **attributes: str | float | None) -> str:
    """Write an element; its content is already markup.

    Values of attributes are escaped, and None omits one; `_` becomes a hyphen, and a trailing `_` is dropped
    (`class_`).
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_value(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(content)
    return f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>"


def _value(value: str | float) -> str:
    return legal(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def text(content: str, x: float, y: float, size: float, **attributes: str | float | None) -> str:
    """Write a line of text, centred at x, its base line at y."""
    return element("text", escape(legal(content)), x=x, y=y, font_size=size, **attributes)


def tooltip(content: str) -> str:
    """Write the text shown while the pointer rests on the parent element."""
    return element("title", escape(legal(content)))


def unique_id(*contents: object) -> str:
    """Hash what a picture shows into an id, so that pictures of one page do not share ids."""
    return "x" + hashlib.sha256(repr(contents).encode("utf-8", "surrogatepass")).hexdigest()[:12]


# -- whole pictures --------------------------------------------------------------------------------------


def picture(
    width: float, height: float, parts: Iterable[str], *, title: str, description: str, kind: str
) -> str:
    """Write an `<svg>` element in the colour of the surrounding text.

    `description` is the content in words, for screen readers; `kind` a class for style sheets.
    """
    return element(
        "svg",
        tooltip(title),
        element("desc", escape(legal(description))),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"hf-xst {kind}",
        role="img",
        aria_label=legal(title),
        width=width,
        height=height,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        font_family=FONTS,
        fill="currentColor",
        text_anchor="middle",
        direction="ltr",  # independent of the page; right-to-left words carry their own direction
    )


def standalone(svg: str) -> str:
    """Turn an `<svg>` element into a file with colours that follow the reader's light or dark setting."""
    start = svg.index(">") + 1
    return f"{svg[:start]}{element('style', _STYLE)}{svg[start:]}\n"


def foot_width(captions: Sequence[str], legend: Sequence[Look]) -> float:
    """Return the width that captions and legend require, margins included."""
    return 2 * GAP + max([_legend_width(legend), *(text_width(caption, LABEL) for caption in captions)])


def draw_foot(
    captions: Sequence[str], legend: Sequence[Look], width: float, bottom: float
) -> tuple[list[str], float]:
    """Draw each caption, then the legend, centred on its own line below `bottom`.

    Returns:
        The markup, and the y where it ends.
    """
    parts = []
    for caption in captions:
        bottom += LINE
        parts.append(text(caption, width / 2, bottom - 6, LABEL, class_="caption"))
    if legend:
        bottom += LINE
        parts.append(_draw_legend(legend, (width - _legend_width(legend)) / 2, bottom - 6))
    return parts, bottom


def _legend_width(looks: Sequence[Look]) -> float:
    return sum(_SWATCH + text_width(look.name, TAG) + 14 for look in looks)


def _draw_legend(looks: Sequence[Look], x: float, y: float) -> str:
    parts = []
    for look in looks:
        width = text_width(look.name, TAG)
        line = f"M{x:.1f} {y - 4:.1f}h{_SWATCH - 6}"
        parts += [
            element("path", d=line, **look.stroke, opacity=look.opacity),
            text(look.name, x + _SWATCH + width / 2, y, TAG),
        ]
        x += _SWATCH + width + 14
    return element("g", *parts, class_="legend")

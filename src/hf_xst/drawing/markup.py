"""The little XML that drawings need: elements, escaping, and the frame around a picture."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from hf_xst.drawing.arcs import GAP, Look
from hf_xst.drawing.script import printable, text_width

FONTS = "system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif"
# Colours of Okabe and Ito, which people with any kind of colour vision can tell apart.
BLUE, SKY, GREY, ORANGE, VERMILION, GREEN = "#0072B2", "#56B4E9", "#8A8A8A", "#E69F00", "#D55E00", "#009E73"
_STYLE = (
    "svg{color:#1b1b1b;background:#ffffff}"
    "@media (prefers-color-scheme:dark){svg{color:#ececec;background:#16181d}}"
)


def legal(text: str) -> str:
    """Return the text with `�` for what XML cannot hold: control characters, surrogates, non-characters."""
    return "".join(
        "�" if "\ud800" <= letter <= "\udfff" or letter in "\ufffe\uffff" else letter
        for letter in printable(text)
    )


def element(name: str, *content: str, **attributes: str | float | None) -> str:
    """Write an element.

    Args:
        name: its name.
        content: its content, which is markup already.
        attributes: values are escaped, `None` leaves one out; `_` stands for the hyphen of a name, and one at
            the end is dropped (`class_`).
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_value(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(content)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def text(content: str, x: float, y: float, size: float, **attributes: str | float | None) -> str:
    """Write a line of text, its middle at x and its base line at y."""
    return element("text", escape(legal(content)), x=x, y=y, font_size=size, **attributes)


def tooltip(content: str) -> str:
    """Write what is shown where the pointer rests."""
    return element("title", escape(legal(content)))


def picture(
    width: float, height: float, parts: Iterable[str], *, title: str, description: str, kind: str
) -> str:
    """Frame a picture: lines and letters in the colour of the surrounding text, described for screen readers.

    Args:
        width: of the picture.
        height: of the picture.
        parts: markup.
        title: what the picture shows.
        description: the same content in words.
        kind: a class by which a style sheet may find the picture.
    """
    body = "".join(parts)
    return element(
        "svg",
        element("title", escape(legal(title))),
        element("desc", escape(legal(description))),
        body,
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
        direction="ltr",  # whatever the page's is; words that run the other way say so
    )


def own_name(*contents: object) -> str:
    """Return an id that differs between pictures of one page: a hash of what a picture shows."""
    return "x" + hashlib.sha256(repr(contents).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def standalone(svg: str) -> str:
    """Give a picture that is a file of its own colours that follow the reader's light or dark setting."""
    start = svg.index(">") + 1
    return f"{svg[:start]}{element('style', _STYLE)}{svg[start:]}\n"


def _value(value: str | float) -> str:
    return legal(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


LABEL, TAG = 12.0, 11.0  # sizes of letters
LINE = 22.0  # height of a line


def foot_width(captions: Sequence[str], legend: Sequence[Look]) -> float:
    """Return how wide a picture must be for what stands below it, margins included."""
    return 2 * GAP + max([_legend_width(legend), *(text_width(caption, LABEL) for caption in captions)])


def draw_foot(
    captions: Sequence[str], legend: Sequence[Look], width: float, bottom: float
) -> tuple[list[str], float]:
    """Draw captions and legend, each in the middle of a line of its own.

    Args:
        captions: lines of text.
        legend: the looks to be explained, if any.
        width: of the picture.
        bottom: where what is above ends.

    Returns:
        The markup, and where it ends.
    """
    parts = []
    for caption in captions:
        bottom += LINE
        parts.append(text(caption, width / 2, bottom - 6, LABEL, class_="caption"))
    if legend:
        bottom += LINE
        parts.append(_draw_legend(legend, (width - _legend_width(legend)) / 2, bottom - 6))
    return parts, bottom


_SWATCH = 26.0


def _legend_width(looks: Sequence[Look]) -> float:
    return sum(_SWATCH + text_width(look.name, TAG) + 14 for look in looks)


def _draw_legend(looks: Sequence[Look], x: float, y: float) -> str:
    parts = []
    for look in looks:
        width = text_width(look.name, TAG)
        parts.append(
            element(
                "path",
                d=f"M{x:.1f} {y - 4:.1f}h{_SWATCH - 6}",
                stroke=look.colour,
                stroke_width=look.width,
                stroke_dasharray=look.dash,
                opacity=look.opacity,
            )
        )
        parts.append(text(look.name, x + _SWATCH + width / 2, y, TAG))
        x += _SWATCH + width + 14
    return element("g", *parts, class_="legend")

"""What stands below a picture: captions, and a legend of the looks that it uses."""

from __future__ import annotations

from collections.abc import Sequence

from hf_xst.drawing.arcs import GAP, Look
from hf_xst.drawing.markup import element, text
from hf_xst.drawing.script import text_width

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

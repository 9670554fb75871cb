"""Hold a drawing in both forms: a picture for notebooks and pages, text for a shell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from hf_xst.drawing.arcs import dependency_svg
from hf_xst.drawing.markup import FONTS, element, is_right_to_left, standalone
from hf_xst.drawing.text import tree_text
from hf_xst.files import write_text


@dataclass(frozen=True)
class Drawing:
    """A picture of a sentence in both forms.

    Attributes:
        svg: the picture.
        text: the same for a terminal.
        right_to_left: whether a picture wider than the page shows its right end first.
    """

    svg: str
    text: str
    right_to_left: bool = False

    @classmethod
    def tree(
        cls,
        words: Sequence[str],
        heads: Sequence[int],
        labels: Sequence[str],
        *,
        upos: Sequence[str] | None = None,
        confidence: Sequence[float] | None = None,
        title: str | None = None,
    ) -> Drawing:
        """Draw a dependency tree; see `dependency_svg` and `tree_text`.

        Raises:
            ValueError: if the columns differ in length or the heads do not form a tree.
        """
        text = tree_text(words, heads, labels, upos)
        svg = dependency_svg(words, heads, labels, upos=upos, confidence=confidence, title=title)
        return cls(svg, text, is_right_to_left(words))

    def _repr_html_(self) -> str:
        return scrolling(self.svg, self.right_to_left)

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture as an SVG file with its own colours, for light and dark pages."""
        write_text(path, standalone(self.svg))


def scrolling(svg: str, right_to_left: bool = False) -> str:
    """Wrap a picture in a box that scrolls sideways on narrow pages."""
    return element("div", svg, style="overflow-x:auto;max-width:100%", dir="rtl" if right_to_left else "ltr")


def html_page(drawings: Iterable[tuple[str, Drawing]], title: str) -> str:
    """Write an HTML page with a heading and a picture for each drawing."""
    sections = "".join(
        f"<section><h2>{escape(name)}</h2>{drawing._repr_html_()}</section>\n" for name, drawing in drawings
    )
    style = (
        f":root{{color-scheme:light dark;font-family:{FONTS}}}body{{margin:1.5rem}}"
        "h1{font-size:1.2rem}h2{font-size:.9rem;font-weight:normal;opacity:.75}"
    )
    return (
        "<!doctype html>\n<!-- written by hf-xst show -->\n<html>\n"
        f'<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n{sections}</body>\n</html>\n"
    )

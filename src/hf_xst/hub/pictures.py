"""The pictures of a card: a sentence as the model annotates it, and a table of scores or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hf_xst.data import read_conllu
from hf_xst.data.sentence import BLANK
from hf_xst.drawing import chain_chart_svg, dependency_svg, tree_chart_svg
from hf_xst.drawing.markup import BLUE, element, picture, standalone, text
from hf_xst.drawing.script import text_width
from hf_xst.drawing.svg import arc_diagram
from hf_xst.hub.facts import Facts
from hf_xst.hub.records import Records
from hf_xst.inference.annotation import annotator_beside, load_annotator
from hf_xst.sources.pool import load_model

TREE, TABLE = "tree.svg", "table.svg"
_SIZE, _LINE, _GAP, _BAR = 13.0, 26.0, 16.0, 180.0


class Line(NamedTuple):
    """A line of a table: what it is about, what it says, and how much of a whole that is."""

    name: str
    value: str
    share: float | None = None


def sentence_picture(example: Example, facts: Facts) -> str:
    """Draw an annotated sentence: a tree if there are heads, else the labels below the words.

    Returns:
        An SVG file's content.
    """
    upos = example.columns.get("upos")
    if facts.task == "parser" and example.heads:
        labels = example.columns["deprel"]
        return standalone(dependency_svg(example.words, example.heads, labels, upos=upos))
    shown = example.columns.get(facts.column, upos)
    title = f"Labels of: {' '.join(example.words)}"
    return standalone(arc_diagram(example.words, [], upos=shown, title=title, kind="tags"))


def chart_picture(facts: Facts) -> str:
    """Draw what a chart is, on an invented sentence: its structure, and other candidates that are allowed.

    Returns:
        An SVG file's content.
    """
    words, heads = INVENTED.words, INVENTED.heads
    title = f"A chart of the invented sentence {' '.join(words)}"
    if facts.task == "tagger":
        tags = INVENTED.columns["upos"]
        allowed = [list(dict.fromkeys([tag, other])) for tag, other in zip(tags, _OTHERS, strict=True)]
        pairs = [{(one, two) for one in first for two in second} for first, second in pairwise(allowed)]
        return standalone(chain_chart_svg(words, pairs, best=tags, title=title))
    if facts.task != "parser":
        return standalone(arc_diagram(words, [], title=title, kind="tags"))
    best = list(zip(heads, INVENTED.columns["deprel"], strict=True))
    further = [{2}, {5}, set(), {2}, {6}, set(), set()]
    arcs = [
        [arc, *((head, "nmod" if head < 6 else "ccomp") for head in others)]
        for arc, others in zip(best, further, strict=True)
    ]
    return standalone(tree_chart_svg(words, arcs, best=best, title=title))


_OTHERS = ("PROPN", "NOUN", "SCONJ", "ADJ", "NOUN", "VERB", "PUNCT")


def table_picture(title: str, lines: Sequence[Line]) -> str:
    """Draw a table with a bar for each line that is a share of a whole.

    Returns:
        An SVG file's content.
    """
    left = max((text_width(line.name, _SIZE) for line in lines), default=0) + _GAP
    bars = _BAR + _GAP if any(line.share is not None for line in lines) else 0.0
    right = max((text_width(line.value, _SIZE) for line in lines), default=0)
    width = max(left + bars + right + 2 * _GAP, text_width(title, _SIZE) + 2 * _GAP)
    parts = [text(title, width / 2, _LINE - 8, _SIZE, font_weight="bold")]
    for place, line in enumerate(lines, start=1):
        base = _LINE * (place + 1) - 8
        parts.append(text(line.name, _GAP, base, _SIZE, text_anchor="start"))
        if line.share is not None:
            box = {"x": left + _GAP, "y": base - 11, "height": 14.0}
            parts.append(element("rect", fill="currentColor", fill_opacity="0.12", width=_BAR, **box))
            parts.append(element("rect", fill=BLUE, width=_BAR * min(1.0, max(0.0, line.share)), **box))
        parts.append(text(line.value, left + bars + _GAP, base, _SIZE, text_anchor="start"))
    said = "; ".join(f"{line.name}: {line.value}" for line in lines)
    height = _LINE * (len(lines) + 1) + 4
    return standalone(picture(width, height, parts, title=title, description=said, kind="table"))


def score_lines(facts: Facts) -> list[Line]:
    """Give the lines of the table of scores."""
    return [
        Line(f"{scores.name}, {scores.split}: {metric.title}", f"{metric.value:.2f} %", metric.value / 100)
        for scores in facts.scores
        for metric in scores.metrics
    ]


def count_lines(facts: Facts) -> list[Line]:
    """Give the lines of the table of a chart data set's counts."""
    counts = facts.records.provenance.get("counts", {})
    groups, kept, sentences = (counts.get(key, 0) for key in ("groups", "kept", "sentences"))
    lines = [Line("sentences", f"{sentences:,}"), Line("groups of candidates", f"{groups:,}")]
    if groups:
        bare = counts.get("without_support", 0)
        lines.append(Line("candidates kept per group", f"{kept / groups:.2f}"))
        lines.append(Line("groups without common support", f"{bare:,}"))
    return lines


@dataclass(frozen=True)
class Example:
    """A sentence with annotation.

    Attributes:
        words: the words.
        columns: by the name of the column one value a word.
        origin: whether it is invented and only shows the form, is as its author gave it, or was predicted by
            the model.
        predicted_by: the fingerprint of the model that predicted it.
    """

    words: list[str]
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    origin: Literal["invented", "given", "predicted"] = "given"
    predicted_by: str | None = None

    @property
    def heads(self) -> list[int]:
        """The heads, empty where there are none."""
        found = [str(head) for head in self.columns.get("head", [])]
        return [int(head) for head in found] if all(head.isdigit() for head in found) else []


# A sentence in the demonstration's target language, which nobody speaks.
INVENTED = Example(
    ["hahta", "čiledive", "zy", "gatmyve", "dokasčak", "momes", "."],
    {
        "upos": ["NOUN", "NOUN", "SCONJ", "NOUN", "VERB", "VERB", "PUNCT"],
        "head": [6, 6, 5, 5, 2, 0, 6],
        "deprel": ["nsubj", "obj", "mark", "obj", "acl", "root", "punct"],
    },
    "invented",
)


def read_example(text: str) -> Example:
    """Read what a person gives as an example.

    Args:
        text: words with spaces between them, or a CoNLL-U file, of which the first sentence counts.

    Raises:
        ValueError: there is no word.
    """
    if text.endswith((".conllu", ".conllu.gz")):
        sentence = next(iter(read_conllu(Path(text))), None)
        if sentence is None:
            raise ValueError(f"{text} holds no sentence; expected one for the card's picture")
        columns = {name: sentence.column(name) for name in ("upos", "head", "deprel")}
        told = {name: values for name, values in columns.items() if BLANK not in values}
        return Example(sentence.words, told)
    if not text.split():
        raise ValueError("the example has no words; give words with spaces between them, or a CoNLL-U file")
    return Example(text.split())


def example_of(records: Records) -> Example:
    """Give the example of a folder, predicted by its model if a person gave the sentence.

    Raises:
        ValueError: the model cannot be asked; the message says why.
    """
    if not records.example:
        return INVENTED
    given = Example(**records.example)
    if records.kind == "charts" or records.fingerprint in (None, given.predicted_by):
        return given
    return _predicted(given, records)


def _predicted(given: Example, records: Records) -> Example:
    model = load_model(str(records.folder))
    row: dict[str, Any] = {"sent_id": "the example", "words": given.words, **given.columns}
    if model.annotation_column in model.input_columns and model.annotation_column not in row:
        beside = annotator_beside(str(records.folder))
        if beside is None:
            raise ValueError(
                "the model reads coarse tags (UPOS): give --example as a CoNLL-U file with tags, or put a "
                f"tagger into {records.folder / 'tagger'}"
            )
        row |= load_annotator(beside).predict([row])[0]
    columns = {key: row[key] for key in ("upos",) if key in row} | model.predict([row])[0]
    return Example(given.words, columns, "predicted", records.fingerprint)

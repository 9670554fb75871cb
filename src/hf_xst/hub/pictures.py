"""Draw the pictures of a card: an example sentence or chart, and a table of scores or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hf_xst.data import read_conllu
from hf_xst.data.sentence import BLANK, head_number
from hf_xst.drawing import chain_chart_svg, dependency_svg, tree_chart_svg
from hf_xst.drawing.arcs import arc_diagram
from hf_xst.drawing.markup import BLUE, element, picture, standalone, text, text_width
from hf_xst.hub.facts import Facts
from hf_xst.hub.run_records import EXAMPLE, METRICS, RunRecords
from hf_xst.inference.annotation import find_tagger, load_tagger
from hf_xst.records import from_mapping
from hf_xst.sources.loading import load_model

TREE, TABLE = "tree.svg", "table.svg"
_SIZE, _LINE, _GAP, _BAR = 13.0, 26.0, 16.0, 180.0


@dataclass(frozen=True)
class Example:
    """An annotated sentence.

    Attributes:
        words: the words.
        columns: one value per word, by the name of the column.
        origin: invented to illustrate the format, annotated by the author, or predicted by the model.
        predicted_by: fingerprint of the model that predicted the annotation.
    """

    words: list[str]
    columns: Mapping[str, list[Any]] = field(default_factory=dict)
    origin: Literal["invented", "given", "predicted"] = "given"
    predicted_by: str | None = None

    @property
    def heads(self) -> list[int]:
        """The heads; empty if the sentence has no complete tree."""
        heads = [head_number(head) for head in self.columns.get("head", [])]
        known = [head for head in heads if head is not None]
        return known if len(known) == len(heads) else []


# A sentence in the invented target language of the demo.
INVENTED = Example(
    ["hahta", "čiledive", "zy", "gatmyve", "dokasčak", "momes", "."],
    {
        "upos": ["NOUN", "NOUN", "SCONJ", "NOUN", "VERB", "VERB", "PUNCT"],
        "head": [6, 6, 5, 5, 2, 0, 6],
        "deprel": ["nsubj", "obj", "mark", "obj", "acl", "root", "punct"],
    },
    "invented",
)
# Further candidates in the drawing of a chart.
_OTHER_TAGS = ("PROPN", "NOUN", "SCONJ", "ADJ", "NOUN", "VERB", "PUNCT")
_OTHER_ARCS: list[list[tuple[int, str]]]
_OTHER_ARCS = [[(2, "nmod")], [(5, "nmod")], [], [(2, "nmod")], [(6, "ccomp")], [], []]


def read_example(text: str) -> Example:
    """Read an example: words separated by spaces, or the first sentence of a CoNLL-U file.

    Raises:
        ValueError: there is no sentence.
    """
    if text.endswith((".conllu", ".conllu.gz")):
        sentence = next(iter(read_conllu(Path(text))), None)
        if sentence is None:
            raise ValueError(f"{text} is empty; expected a sentence for the picture of the card")
        columns = {name: sentence.column(name) for name in ("upos", "head", "deprel")}
        columns = {name: column for name, column in columns.items() if BLANK not in column}
        return Example(sentence.words, columns)
    if not text.split():
        raise ValueError("the example is empty; pass words separated by spaces, or a CoNLL-U file")
    return Example(text.split())


def example_of(records: RunRecords) -> Example:
    """Return the example of a folder; a sentence that a person gave is annotated by the model.

    Raises:
        ValueError: the model cannot annotate the sentence.
    """
    if not records.example:
        return INVENTED
    example = from_mapping(Example, records.example, EXAMPLE)
    if records.kind == "charts" or records.fingerprint in (None, example.predicted_by):
        return example
    model = load_model(str(records.folder))
    row: dict[str, Any] = {"sent_id": "the example", "words": example.words, **example.columns}
    if model.annotation_column in model.input_columns and model.annotation_column not in row:
        tagger = find_tagger(str(records.folder))
        if tagger is None:
            raise ValueError(
                "the model reads UPOS tags: pass --example a CoNLL-U file with tags, or save a tagger in "
                f"{records.folder / 'tagger'}"
            )
        row |= load_tagger(tagger).predict([row])[0]
    columns = {key: row[key] for key in ("upos",) if key in row} | model.predict([row])[0]
    return Example(example.words, columns, "predicted", records.fingerprint)


def card_pictures(facts: Facts, example: Example) -> dict[str, str]:
    """Return the SVG pictures of a card by file name."""
    if facts.records.kind == "charts":
        return {TREE: _chart_picture(facts), TABLE: _table_picture("Charts", count_rows(facts))}
    rows = [
        TableRow(f"{scores.name}, {scores.split}: {METRICS[key][1]}", f"{value:.2f} %", value / 100)
        for scores in facts.records.all_scores()
        for key, value in scores.metrics.items()
    ]
    pictures = {TREE: _sentence_picture(facts, example)}
    return pictures | ({TABLE: _table_picture("Scores", rows)} if rows else {})


def _sentence_picture(facts: Facts, example: Example) -> str:
    upos = example.columns.get("upos")
    if facts.task == "parser" and example.heads:
        return standalone(dependency_svg(example.words, example.heads, example.columns["deprel"], upos=upos))
    tags = example.columns.get(facts.column, upos)
    title = f"Labels of: {' '.join(example.words)}"
    return standalone(arc_diagram(example.words, [], upos=tags, title=title, kind="tags"))


def _chart_picture(facts: Facts) -> str:
    """Draw the chart of an invented sentence: its structure and further allowed candidates."""
    words = INVENTED.words
    title = f"A chart of the invented sentence {' '.join(words)}"
    if facts.task == "tagger":
        tags = INVENTED.columns["upos"]
        allowed = [dict.fromkeys(pair) for pair in zip(tags, _OTHER_TAGS, strict=True)]
        pairs = [{(one, two) for one in first for two in second} for first, second in pairwise(allowed)]
        return standalone(chain_chart_svg(words, pairs, best=tags, title=title))
    if facts.task != "parser":
        return standalone(arc_diagram(words, [], title=title, kind="tags"))
    best = list(zip(INVENTED.heads, INVENTED.columns["deprel"], strict=True))
    arcs = [[arc, *others] for arc, others in zip(best, _OTHER_ARCS, strict=True)]
    return standalone(tree_chart_svg(words, arcs, best=best, title=title))


class TableRow(NamedTuple):
    """A row of a drawn table, with a bar for its fraction of the maximum, if it has one."""

    name: str
    value: str
    fraction: float | None = None


def count_rows(facts: Facts) -> list[TableRow]:
    """Return the rows of the table of a chart data set's counts."""
    if facts.records.charts is None:
        return []
    counts = facts.records.charts.counts
    rows = [TableRow("sentences", f"{counts.sentences:,}"), TableRow("groups", f"{counts.groups:,}")]
    if counts.groups:
        rows.append(TableRow("candidates kept per group", f"{counts.kept / counts.groups:.2f}"))
        rows.append(TableRow("groups without common support", f"{counts.without_support:,}"))
    return rows


def _table_picture(title: str, rows: Sequence[TableRow]) -> str:
    left = max((text_width(row.name, _SIZE) for row in rows), default=0) + _GAP
    bars = _BAR + _GAP if any(row.fraction is not None for row in rows) else 0.0
    right = max((text_width(row.value, _SIZE) for row in rows), default=0)
    width = max(left + bars + right + 2 * _GAP, text_width(title, _SIZE) + 2 * _GAP)
    content = [text(title, width / 2, _LINE - 8, _SIZE, font_weight="bold")]
    for number, row in enumerate(rows, start=1):
        base = _LINE * (number + 1) - 8
        content.append(text(row.name, _GAP, base, _SIZE, text_anchor="start"))
        if row.fraction is not None:
            box = {"x": left + _GAP, "y": base - 11, "height": 14.0}
            content.append(element("rect", fill="currentColor", fill_opacity="0.12", width=_BAR, **box))
            content.append(element("rect", fill=BLUE, width=_BAR * min(1.0, max(0.0, row.fraction)), **box))
        content.append(text(row.value, left + bars + _GAP, base, _SIZE, text_anchor="start"))
    description = "; ".join(f"{row.name}: {row.value}" for row in rows)
    height = _LINE * (len(rows) + 1) + 4
    return standalone(picture(width, height, content, title=title, description=description, kind="table"))

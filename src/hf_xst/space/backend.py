"""What the app answers, apart from how it is asked: pictures of every step for any sentence and setting."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hf_xst.data import ConlluSentence
from hf_xst.drawing import ChartView, Drawing
from hf_xst.drawing.arcs import arc_diagram
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.drawing.notebook import scrolling
from hf_xst.drawing.tables import distribution_svg
from hf_xst.drawing.text import isolated
from hf_xst.space.sentences import gold_of, upos_of
from hf_xst.space.steps import Reading, Steps, TaskModels, steps

TITLES = {"parser": "dependency tree", "tagger": "tags"}


@dataclass(frozen=True)
class Answer:
    """What follows from the marginals, as HTML.

    Attributes:
        pool: the pooled probabilities.
        chart: the allowed candidates, and how many structures they make.
        best: the best structure as a picture and as text.
        download: the sentence with it in CoNLL-U, and a link to save that.
    """

    pool: str
    chart: str
    best: str
    download: str


class Backend:
    """Parsers and taggers, ready to be asked about sentences.

    Args:
        tasks: source models by task, `parser` or `tagger`.

    Raises:
        ValueError: there is none.
    """

    def __init__(self, tasks: Mapping[str, TaskModels]) -> None:
        if not tasks:
            raise ValueError("there are neither parsers nor taggers; give at least one source model")
        self.tasks = dict(tasks)

    @property
    def sources(self) -> list[str]:
        """The names of all sources of all tasks."""
        return list(dict.fromkeys(name for models in self.tasks.values() for name in models.sources))

    def reading(self, task: str, sentence: ConlluSentence) -> tuple[Reading, list[str] | None]:
        """Ask the models of a task about a sentence, or remember what they said.

        Tags that they read and the sentence lacks are predicted by the pool of the taggers.

        Returns:
            What they said, and the tags of the sentence or the predicted ones.

        Raises:
            ValueError: the sentence cannot be read; the message says why.
        """
        models, tags = self.tasks[task], upos_of(sentence)
        if tags is None and "upos" in models.input_columns:
            if "tagger" not in self.tasks:
                raise ValueError("these parsers read tags: type word/TAG, or start the app with taggers")
            (tags,) = self.tasks["tagger"].predicted(sentence.words).values()
        return models.reading(sentence.words, **({} if tags is None else {"upos": tags})), tags

    def marginals(self, task: str, sentence: ConlluSentence, sources: Sequence[str]) -> str:
        """Draw what each of some sources says.

        Raises:
            ValueError: the sentence cannot be read, or no source is chosen.
        """
        reading, _ = self.reading(task, sentence)
        gold = gold_of(sentence, self.tasks[task].columns)
        figures = [
            f"<figure><figcaption>{escape(name)}</figcaption>"
            f"{_table(reading, reading.marginals(name), gold, f'What {name} says')}</figure>"
            for name in reading.of(sources).sources
        ]
        return f'<div class="sources">{"".join(figures)}</div>'

    def answer(
        self,
        task: str,
        sentence: ConlluSentence,
        sources: Sequence[str],
        weights: Mapping[str, float],
        sigma: float,
    ) -> Answer:
        """Pool, threshold and decode; no model runs where it has read the sentence before.

        Args:
            task: `parser` or `tagger`.
            sentence: the sentence.
            sources: names of those that take part.
            weights: a weight for each of them.
            sigma: the mass to be kept.

        Raises:
            ValueError: the sentence cannot be read, or a setting is out of range.
        """
        models = self.tasks[task]
        reading, tags = self.reading(task, sentence)
        found = steps(reading.of(sources), weights, sigma)
        gold = gold_of(sentence, models.columns)
        best = models.columns_of(reading, found.best)
        chart = ChartView(
            reading.space, reading.names, found.kept, sentence.words, tags, gold, best, found.pooled
        )
        written = sentence.with_columns(({} if tags is None else {"upos": tags}) | best)
        return Answer(
            _table(reading, found.pooled, gold, "The pool", found),
            chart.drawing()._repr_html_(),
            _as_picture_and_text(_best_drawing(sentence.words, tags, best, found)),
            _download(written),
        )


def _table(
    reading: Reading,
    shares: Any,
    gold: Mapping[str, Sequence[Any]] | None,
    title: str,
    found: Steps | None = None,
) -> str:
    words = reading.row["words"]
    kept = None if found is None else found.kept
    svg = distribution_svg(reading.space, reading.names, shares, words, kept=kept, gold=gold, title=title)
    return scrolling(svg, is_right_to_left(words))


def _best_drawing(
    words: Sequence[str], tags: Sequence[str] | None, best: Mapping[str, Sequence[Any]], found: Steps
) -> Drawing:
    if "head" in best:
        sure = [min(1.0, value) for value in found.confidence()][: len(words)]
        return Drawing.tree(words, best["head"], best["deprel"], upos=tags, confidence=sure)
    (predicted,) = best.values()
    svg = arc_diagram(words, [], upos=predicted, title=f"Tags: {' '.join(words)}", kind="tags")
    text = " ".join(f"{isolated(word)}/{tag}" for word, tag in zip(words, predicted, strict=True))
    return Drawing(svg, text, is_right_to_left(words))


def _as_picture_and_text(drawing: Drawing) -> str:
    return f'{drawing._repr_html_()}<pre class="drawn" dir="ltr">{escape(drawing.text)}</pre>'


def _download(sentence: ConlluSentence) -> str:
    # The link holds the file itself: nothing is kept on the server.
    content = sentence.raw.strip("\n") + "\n\n"
    address = f"data:text/plain;charset=utf-8;base64,{b64encode(content.encode()).decode()}"
    return (
        f'<a class="download" download="sentence.conllu" href="{address}">Download CoNLL-U</a>'
        f'<pre class="conllu" dir="ltr">{escape(content.strip())}</pre>'
    )

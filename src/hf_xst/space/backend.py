"""Read sentences, and draw the result of each step for any sentence and settings."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hf_xst.data import UPOS_TAGS, ConlluSentence, iterate_unlabelled
from hf_xst.data.segmentation import segment
from hf_xst.data.sentence import BLANK, head_number
from hf_xst.drawing import ChartView, Drawing
from hf_xst.drawing.arcs import arc_diagram
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.drawing.tables import distribution_svg
from hf_xst.drawing.text import isolated
from hf_xst.drawing.views import scrolling
from hf_xst.space.steps import SentenceDistributions, Steps, TaskModels, run_steps

TITLES = {"parser": "Dependency tree", "tagger": "Tags"}
MOST_UPLOADED = 200
MAX_TEXT, MAX_UPLOAD = 2000, 1_000_000
"""Most characters of a typed text, and most bytes of an uploaded file, also when it is unzipped."""
_TAGGED = re.compile(r"(?P<word>.+)/(?P<tag>[A-Z]+)")


class Answer(NamedTuple):
    """HTML of pool, chart, best structure, and the annotated sentence in CoNLL-U."""

    pool: str
    chart: str
    best: str
    download: str


class Backend:
    """Draw results of source models by task, `parser` or `tagger`; at least one is required."""

    def __init__(self, tasks: Mapping[str, TaskModels]) -> None:
        self.tasks = dict(tasks)

    @property
    def sources(self) -> list[str]:
        """The names of all sources of all tasks."""
        return list(dict.fromkeys(name for models in self.tasks.values() for name in models.sources))

    def _run(self, task: str, sentence: ConlluSentence) -> tuple[SentenceDistributions, list[str] | None]:
        """Return the models' distributions, and UPOS tags: the sentence's, or predicted if required."""
        models, tags = self.tasks[task], upos_of(sentence)
        if tags is None and "upos" in models.input_columns:
            if "tagger" not in self.tasks:
                raise ValueError("these parsers read tags: type word/TAG, or start the app with taggers")
            (tags,) = self.tasks["tagger"].predict(sentence.words).values()
        return models.distributions(sentence.words, **({} if tags is None else {"upos": tags})), tags

    def marginals(self, task: str, sentence: ConlluSentence, sources: Sequence[str]) -> str:
        """Draw the marginal probabilities of each selected source; raise ValueError as `answer` does."""
        result, _ = self._run(task, sentence)
        gold = gold_of(sentence, self.tasks[task].columns)
        figures = [
            f"<figure><figcaption>{escape(name)}</figcaption>"
            f"{_table(result, result.marginals(name), gold, f'Probabilities of {name}')}</figure>"
            for name in result.select(sources).sources
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
        """Pool the selected sources, threshold and decode; models run only for new sentences.

        Raises:
            ValueError: The models cannot read the sentence, or a setting is out of range.
        """
        models = self.tasks[task]
        result, tags = self._run(task, sentence)
        steps = run_steps(result.select(sources), weights, sigma)
        gold, best = gold_of(sentence, models.columns), models.decode(result, steps.best)
        chart = ChartView(
            result.space, result.names, steps.kept, sentence.words, tags, gold, best, steps.pooled
        )
        drawing = _draw_best(sentence.words, tags, best, steps)
        return Answer(
            _table(result, steps.pooled, gold, "The pool", steps),
            chart.drawing()._repr_html_(),
            f'{drawing._repr_html_()}<pre class="drawn" dir="ltr">{escape(drawing.text)}</pre>',
            _download(sentence.with_columns(({} if tags is None else {"upos": tags}) | best)),
        )


def _table(
    result: SentenceDistributions,
    probabilities: Any,
    gold: Mapping[str, Sequence[Any]] | None,
    title: str,
    steps: Steps | None = None,
) -> str:
    words, kept = result.row["words"], None if steps is None else steps.kept
    svg = distribution_svg(
        result.space, result.names, probabilities, words, kept=kept, gold=gold, title=title
    )
    return scrolling(svg, is_right_to_left(words))


def _draw_best(
    words: Sequence[str], tags: Sequence[str] | None, best: Mapping[str, Sequence[Any]], steps: Steps
) -> Drawing:
    if "head" in best:
        confidence = [min(1.0, value) for value in steps.confidence()][: len(words)]
        return Drawing.tree(words, best["head"], best["deprel"], upos=tags, confidence=confidence)
    (predicted,) = best.values()
    svg = arc_diagram(words, [], upos=predicted, title=f"Tags: {' '.join(words)}", kind="tags")
    text = " ".join(f"{isolated(word)}/{tag}" for word, tag in zip(words, predicted, strict=True))
    return Drawing(svg, text, is_right_to_left(words))


def _download(sentence: ConlluSentence) -> str:
    # The link contains the file: nothing is stored on the server.
    content = sentence.raw.strip("\n") + "\n\n"
    address = f"data:text/plain;charset=utf-8;base64,{b64encode(content.encode()).decode()}"
    return (
        f'<a class="download" download="sentence.conllu" href="{address}">Download CoNLL-U</a>'
        f'<pre class="conllu" dir="ltr">{escape(content.strip())}</pre>'
    )


def typed_sentence(text: str) -> ConlluSentence:
    """Read a typed sentence: running text, or words that all end in `/TAG`.

    Raises:
        ValueError: There is no word, or the text is too long.
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"the text has {len(text):,} characters; expected at most {MAX_TEXT:,}")
    tokens = text.split()
    if not tokens:
        raise ValueError("type at least one word")
    tagged = [match for token in tokens if (match := _TAGGED.fullmatch(token)) and match["tag"] in UPOS_TAGS]
    if len(tagged) < len(tokens):
        words = [word for sentence in segment(text) for word in sentence]
        return ConlluSentence.from_words(words, sent_id="typed")
    columns = {"upos": [match["tag"] for match in tagged]}
    return ConlluSentence.from_words([match["word"] for match in tagged], sent_id="typed", columns=columns)


def uploaded_sentences(path: str) -> list[ConlluSentence]:
    """Read the first sentences of a CoNLL-U, tokenised (.txt) or JSON lines file.

    Raises:
        ValueError: The file cannot be read, is empty, or its first sentences are too large.
    """
    sentences: list[ConlluSentence] = []
    size = 0
    try:
        for sentence in islice(iterate_unlabelled(path), MOST_UPLOADED):
            sentences.append(sentence)
            size += len(sentence.raw)
            if size > MAX_UPLOAD:
                raise ValueError(f"{path} holds more than {MAX_UPLOAD:,} characters; upload a part")
    except (ValueError, OSError) as error:  # visitors see names, never folders of the server
        raise ValueError(str(error).replace(f"{Path(path).parent}{os.sep}", "")) from None
    if not sentences:
        raise ValueError(f"{Path(path).name} contains no sentences")
    return sentences


def upos_of(sentence: ConlluSentence) -> list[str] | None:
    """Return the UPOS tags, or None if the sentence is not tagged."""
    return None if set(sentence.upos) == {BLANK} else sentence.upos


def gold_of(sentence: ConlluSentence, columns: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Return the columns of an annotated sentence, relations without subtypes; otherwise None."""
    gold = {column: sentence.column(column) for column in columns}
    if any(BLANK in values for values in gold.values()):
        return None
    if None in map(head_number, gold.get("head", [])):
        return None
    if "deprel" in gold:
        gold["deprel"] = [label.partition(":")[0] for label in gold["deprel"]]
    return gold

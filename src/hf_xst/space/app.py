"""The app: a sentence, source models and sliders in, every step of the method out."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from hf_xst.data import ConlluSentence, read_conllu
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.extras import import_optional
from hf_xst.space.backend import TITLES, Backend
from hf_xst.space.sentences import typed_sentence, uploaded_sentences

TITLE = "Structures from other people's models"
ABOUT = (
    "Source models read a sentence of a language that none of them was trained on. Their opinions are "
    "pooled, unlikely candidates are cut off, and what is left is a chart: a set of structures from which a "
    "model for the new language can learn, without source data and without labels."
)
CSS = """
.sources { display: flex; flex-wrap: wrap; gap: 1rem }
.sources figure { margin: 0; max-width: 100%; min-width: 0 }
.sources figcaption { font-weight: 600 }
.drawn, .conllu { overflow-x: auto; font: 13px/1.25 'DejaVu Sans Mono', monospace }
.download { text-decoration: underline }
"""
SIGMAS = (0.05, 1.0)
Outputs = list[Any]


def build(
    backend: Backend, examples: Sequence[ConlluSentence], *, title: str = TITLE, about: str = ABOUT
) -> Any:
    """Lay out the app.

    Args:
        backend: the models.
        examples: sentences to choose from, at least one.
        title: of the page.
        about: what a visitor is told, in Markdown.

    Returns:
        A `gradio.Blocks`, to be started by `launch`.

    Raises:
        ImportError: gradio is not installed.
        ValueError: there is no example.
    """
    if not examples:
        raise ValueError("there is no sentence to begin with; give at least one example")
    gradio = import_optional("gradio", "demo")
    with gradio.Blocks(title=title, analytics_enabled=False) as blocks:
        gradio.Markdown(f"# {title}\n{about}")
        page = _Page(gradio, backend, examples)
        page.connect(blocks)
    return blocks


def launch(blocks: Any, **settings: Any) -> Any:
    """Start an app with our looks; nothing is fetched from elsewhere, no link is shared.

    Args:
        blocks: what `build` returned.
        settings: for `gradio.Blocks.launch`.
    """
    gradio = import_optional("gradio", "demo")
    fonts = [gradio.themes.Font(name) for name in ("system-ui", "sans-serif")]
    mono = [gradio.themes.Font(name) for name in ("ui-monospace", "monospace")]
    theme = gradio.themes.Base(font=fonts, font_mono=mono)
    return blocks.launch(
        theme=theme, css=CSS, **({"share": False, "footer_links": ["gradio", "settings"]} | settings)
    )


class _Page:
    """The app's parts and what happens between them."""

    def __init__(self, gradio: Any, backend: Backend, examples: Sequence[ConlluSentence]) -> None:
        self._gradio, self._backend = gradio, backend
        raws = [sentence.raw for sentence in examples]
        self.known = gradio.State(raws)
        self.current = gradio.State(raws[0])
        with gradio.Row():
            with gradio.Column(scale=3):
                self._ask_for_a_sentence(examples)
            with gradio.Column(scale=2):
                self._ask_for_models()
        gradio.Markdown("### 1 · What each source says: its marginal probabilities")
        self.marginals = gradio.HTML(elem_id="marginals")
        gradio.Markdown("### 2 · The logarithmic opinion pool: their weighted geometric mean")
        with gradio.Row():
            self.weights = [
                gradio.Slider(0, 1, value=1, step=0.05, label=f"weight of {name}", elem_id=f"weight-{place}")
                for place, name in enumerate(backend.sources)
            ]
        self.pool = gradio.HTML(elem_id="pool")
        gradio.Markdown(
            "### 3 · The chart: of each word the likeliest candidates that reach σ together, and every "
            "source's best structure"
        )
        label = "σ, the mass to keep"
        self.sigma = gradio.Slider(*SIGMAS, value=0.95, step=0.01, label=label, elem_id="sigma")
        self.chart = gradio.HTML(elem_id="chart")
        gradio.Markdown("### 4 · The best structure of the chart")
        self.best = gradio.HTML(elem_id="best")
        self.download = gradio.HTML(elem_id="conllu")

    def _ask_for_a_sentence(self, examples: Sequence[ConlluSentence]) -> None:
        gradio, words = self._gradio, examples[0].words
        self.choice = gradio.Dropdown(_choices(examples), value=0, label="A sentence", elem_id="choice")
        self.text = gradio.Textbox(
            " ".join(words),
            label="or your own (word/TAG word/TAG, if you know the tags)",
            rtl=is_right_to_left(words),
            elem_id="sentence",
        )
        with gradio.Row():
            self.read = gradio.Button("Read the sentence", variant="primary", elem_id="read")
            kinds = [".conllu", ".txt", ".jsonl"]
            self.upload = gradio.UploadButton("Upload CoNLL-U", file_types=kinds, elem_id="upload")

    def _ask_for_models(self) -> None:
        gradio, tasks = self._gradio, self._backend.tasks
        first = next(iter(tasks))
        choices = [(TITLES[name], name) for name in tasks]
        self.task = gradio.Radio(choices, value=first, label="What is wanted", elem_id="task")
        names = tasks[first].sources
        self.sources = gradio.CheckboxGroup(names, value=names, label="Source models", elem_id="sources")

    def connect(self, blocks: Any) -> None:
        """Say what happens when."""
        gradio, private = self._gradio, {"api_visibility": "private"}
        settings = [self.task, self.current, self.sources, self.sigma, *self.weights]
        answers = [self.pool, self.chart, self.best, self.download]
        # One at a time and in order, so that no late answer covers a newer one.
        in_turn = private | {"concurrency_id": "answers", "concurrency_limit": 1}
        everything = in_turn | {
            "fn": self._show_all,
            "inputs": settings,
            "outputs": [self.marginals, *answers],
        }
        blocks.load(**everything)
        taken = [self.current, self.text]
        self.choice.input(self._choose, [self.choice, self.known], taken, **private).success(**everything)
        typed = {"fn": self._type, "inputs": [self.text, self.current], "outputs": [self.choice, *taken]}
        gradio.on([self.read.click, self.text.submit], **typed, **private).success(**everything)
        uploaded = [self.known, self.choice, *taken]
        self.upload.upload(self._upload, [self.upload], uploaded, **private).success(**everything)
        self.task.input(self._change_task, [self.task], [self.sources], **private).success(**everything)
        self.sources.input(**everything)
        moved = in_turn | {"fn": self._show_answer, "inputs": settings, "outputs": answers}
        sliders = [self.sigma, *self.weights]
        # While a slider moves some of its values may be passed over; where it comes to rest counts.
        for events, mode in (
            ([slider.change for slider in sliders], "always_last"),
            ([slider.release for slider in sliders], "multiple"),
        ):
            gradio.on(events, **moved, show_progress="hidden", trigger_mode=mode)

    # -- what is asked ------------------------------------------------------------------------------------

    def _choose(self, number: int, known: list[str]) -> Outputs:
        return self._taken(_sentence(known[number]))

    def _type(self, text: str, current: str) -> Outputs:
        present = _sentence(current)
        if text.split() == [part for word in present.words for part in word.split()]:
            # What the sentence says beside its words is kept.
            return [self._gradio.skip(), *self._taken(present)]
        return [None, *self._taken(self._tell(typed_sentence, text))]

    def _upload(self, path: str) -> Outputs:
        found = self._tell(uploaded_sentences, path)
        choice = self._gradio.Dropdown(_choices(found), value=0)
        return [[sentence.raw for sentence in found], choice, *self._taken(found[0])]

    def _taken(self, sentence: ConlluSentence) -> Outputs:
        words = sentence.words
        return [sentence.raw, self._gradio.Textbox(" ".join(words), rtl=is_right_to_left(words))]

    def _change_task(self, task: str) -> Any:
        names = self._backend.tasks[task].sources
        return self._gradio.CheckboxGroup(names, value=names)

    # -- what is answered ---------------------------------------------------------------------------------

    def _show_all(self, task: str, raw: str, sources: list[str], sigma: float, *weights: float) -> Outputs:
        marginals = self._tell(self._backend.marginals, task, _sentence(raw), sources)
        return [marginals, *self._show_answer(task, raw, sources, sigma, *weights)]

    def _show_answer(self, task: str, raw: str, sources: list[str], sigma: float, *weights: float) -> Outputs:
        by_name = dict(zip(self._backend.sources, weights, strict=True))
        # A number that is half typed may lie outside.
        mass = min(max(sigma, SIGMAS[0]), SIGMAS[1])
        found = self._tell(self._backend.answer, task, _sentence(raw), sources, by_name, mass)
        return [found.pool, found.chart, found.best, found.download]

    def _tell(self, ask: Callable[..., Any], *question: Any) -> Any:
        """Ask, and show the visitor what is wrong with the question."""
        try:
            return ask(*question)
        except ValueError as problem:
            raise self._gradio.Error(escape(str(problem)), print_exception=False) from problem


def _choices(sentences: Sequence[ConlluSentence]) -> list[tuple[str, int]]:
    return [(" ".join(sentence.words)[:90], place) for place, sentence in enumerate(sentences)]


def _sentence(raw: str) -> ConlluSentence:
    return next(read_conllu(io.StringIO(raw)))

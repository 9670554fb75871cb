"""Lay out the app: a sentence, source models and sliders as input, every step of the method as output."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from html import escape
from threading import Condition
from typing import Any

from hf_xst.data import ConlluSentence, read_conllu
from hf_xst.drawing.markup import is_right_to_left
from hf_xst.extras import import_optional
from hf_xst.space.backend import MAX_TEXT, MAX_UPLOAD, TITLES, Backend, typed_sentence, uploaded_sentences

TITLE = "Structures from other people's models"
ABOUT = (
    "Source models annotate a sentence of a language that none of them was trained on. Their distributions "
    "are pooled and improbable candidates are removed. The result is a chart: a set of structures on which a "
    "model for the new language can be trained, without source data and without labels."
)
CSS = """
.sources { display: flex; flex-wrap: wrap; gap: 1rem }
.sources figure { margin: 0; max-width: 100%; min-width: 0 }
.sources figcaption { font-weight: 600 }
.drawn, .conllu { overflow-x: auto; font: 13px/1.25 'DejaVu Sans Mono', monospace }
.download { text-decoration: underline }
"""
SIGMAS = (0.05, 1.0)
FILES_AGE = 3600  # seconds until uploaded files are deleted
MAX_QUEUE, MAX_SESSIONS, VISITORS_AT_ONCE = 100, 1000, 8
Outputs = list[Any]


def build(backend: Backend, examples: Sequence[ConlluSentence]) -> Any:
    """Return the app as a `gradio.Blocks` for `launch`, with at least one example sentence.

    Raises:
        ImportError: gradio is not installed.
    """
    gradio = import_optional("gradio", "demo")
    cache = (FILES_AGE, FILES_AGE)
    with gradio.Blocks(title=TITLE, analytics_enabled=False, delete_cache=cache) as blocks:
        gradio.Markdown(f"# {TITLE}\n{ABOUT}")
        _Page(gradio, backend, examples).connect(blocks)
    return blocks.queue(max_size=MAX_QUEUE)


def launch(blocks: Any, **settings: Any) -> Any:
    """Start an app with local fonts and without a public link; `settings` are passed to gradio."""
    gradio = import_optional("gradio", "demo")
    fonts = [gradio.themes.Font(name) for name in ("system-ui", "sans-serif")]
    mono = [gradio.themes.Font(name) for name in ("ui-monospace", "monospace")]
    theme = gradio.themes.Base(font=fonts, font_mono=mono)
    defaults = {"share": False, "footer_links": ["gradio", "settings"]}
    defaults |= {"max_file_size": MAX_UPLOAD, "state_session_capacity": MAX_SESSIONS}
    return blocks.launch(theme=theme, css=CSS, **(defaults | settings))


class Turn:
    """Lets one request of a visitor run, and the newest of the others wait; gradio has one queue for all."""

    def __init__(self) -> None:
        self._changed, self._running, self._newest = Condition(), False, object()

    def __deepcopy__(self, memo: Any) -> Turn:
        return Turn()  # gradio copies the value of a state for each visitor

    def run(self, function: Callable[[], Any], superseded: Any) -> Any:
        """Call a function after the running one; return `superseded` at once if a newer request arrives."""
        with self._changed:
            ticket = self._newest = object()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running or self._newest is not ticket)
            if self._newest is not ticket:
                return superseded
            self._running = True
        try:
            return function()
        finally:
            with self._changed:
                self._running = False
                self._changed.notify_all()


class _Page:
    """Components of the app and their event handlers."""

    def __init__(self, gradio: Any, backend: Backend, examples: Sequence[ConlluSentence]) -> None:
        self._gradio, self._backend = gradio, backend
        raws = [sentence.raw for sentence in examples]
        self.known = gradio.State(raws)
        self.current = gradio.State(raws[0])
        self.turns = [gradio.State(Turn()), gradio.State(Turn())]  # for the marginals, for the results
        with gradio.Row():
            with gradio.Column(scale=3):
                self._add_sentence_inputs(examples)
            with gradio.Column(scale=2):
                self._add_model_inputs()
        gradio.Markdown("### 1 · Marginal probabilities of each source")
        self.marginals = gradio.HTML(elem_id="marginals")
        gradio.Markdown("### 2 · The logarithmic opinion pool: the weighted geometric mean of the sources")
        with gradio.Row():
            self.weights = [
                gradio.Slider(0, 1, value=1, step=0.05, label=f"Weight of {name}", elem_id=f"weight-{index}")
                for index, name in enumerate(backend.sources)
            ]
        self.pool = gradio.HTML(elem_id="pool")
        gradio.Markdown(
            "### 3 · The chart: the most probable candidates up to mass σ, and each source's best structure"
        )
        label = "σ, the probability mass to keep"
        self.sigma = gradio.Slider(*SIGMAS, value=0.95, step=0.01, label=label, elem_id="sigma")
        self.chart = gradio.HTML(elem_id="chart")
        gradio.Markdown("### 4 · The best structure in the chart")
        self.best = gradio.HTML(elem_id="best")
        self.download = gradio.HTML(elem_id="conllu")

    def _add_sentence_inputs(self, examples: Sequence[ConlluSentence]) -> None:
        gradio, words = self._gradio, examples[0].words
        self.choice = gradio.Dropdown(_choices(examples), value=0, label="Example sentence", elem_id="choice")
        self.text = gradio.Textbox(
            " ".join(words),
            label="Or your own: plain text, or word/TAG word/TAG",
            rtl=is_right_to_left(words),
            max_length=MAX_TEXT,
            elem_id="sentence",
        )
        with gradio.Row():
            self.read = gradio.Button("Annotate", variant="primary", elem_id="read")
            kinds = [".conllu", ".txt", ".jsonl"]
            self.upload = gradio.UploadButton("Upload CoNLL-U", file_types=kinds, elem_id="upload")

    def _add_model_inputs(self) -> None:
        gradio, tasks = self._gradio, self._backend.tasks
        first = next(iter(tasks))
        choices = [(TITLES[name], name) for name in tasks]
        self.task = gradio.Radio(choices, value=first, label="Task", elem_id="task")
        names = tasks[first].sources
        self.sources = gradio.CheckboxGroup(names, value=names, label="Source models", elem_id="sources")

    def connect(self, blocks: Any) -> None:
        """Connect the components to their handlers."""
        gradio, private = self._gradio, {"api_visibility": "private"}
        results = [self.pool, self.chart, self.best, self.download]
        selection = [self.task, self.current, self.sources]
        in_turn = private | {"concurrency_id": "results", "concurrency_limit": VISITORS_AT_ONCE}
        marginals = in_turn | {
            "fn": self._show_marginals,
            "inputs": [self.turns[0], *selection],
            "outputs": [self.marginals],
        }
        pooled = in_turn | {
            "fn": self._show_results,
            "inputs": [self.turns[1], *selection, self.sigma, *self.weights],
            "outputs": results,
        }
        selected = [self.current, self.text]
        chosen = self.choice.input(self._choose, [self.choice, self.known], selected, **private)
        typed = {"fn": self._type, "inputs": [self.text, self.current], "outputs": [self.choice, *selected]}
        read = gradio.on([self.read.click, self.text.submit], **typed, **private)
        uploaded = self.upload.upload(
            self._upload, [self.upload], [self.known, self.choice, *selected], **private
        )
        task = self.task.input(self._change_task, [self.task], [self.sources], **private)
        for change in (chosen, read, uploaded, task):
            change.success(**marginals).success(**pooled)
        blocks.load(**marginals).success(**pooled)
        self.sources.input(**marginals).success(**pooled)
        sliders = [self.sigma, *self.weights]
        # Values may be skipped while a slider moves, but not the one where it is released.
        for events, mode in (
            ([slider.change for slider in sliders], "always_last"),
            ([slider.release for slider in sliders], "multiple"),
        ):
            gradio.on(events, **pooled, show_progress="hidden", trigger_mode=mode)

    def _choose(self, number: int, known: list[str]) -> Outputs:
        return self._selected(_sentence(known[number]))

    def _type(self, text: str, current: str) -> Outputs:
        sentence = _sentence(current)
        if text.split() == " ".join(sentence.words).split():
            # Keep the annotation of an unchanged sentence.
            return [self._gradio.skip(), *self._selected(sentence)]
        return [None, *self._selected(self._call(typed_sentence, text))]

    def _upload(self, path: str) -> Outputs:
        sentences = self._call(uploaded_sentences, path)
        choice = self._gradio.Dropdown(_choices(sentences), value=0)
        return [[sentence.raw for sentence in sentences], choice, *self._selected(sentences[0])]

    def _selected(self, sentence: ConlluSentence) -> Outputs:
        words = sentence.words
        return [sentence.raw, self._gradio.Textbox(" ".join(words), rtl=is_right_to_left(words))]

    def _change_task(self, task: str) -> Any:
        names = self._backend.tasks[task].sources
        return self._gradio.CheckboxGroup(names, value=names)

    def _show_marginals(self, turn: Turn, task: str, raw: str, sources: list[str]) -> Any:
        arguments = task, _sentence(raw), sources
        return turn.run(lambda: self._call(self._backend.marginals, *arguments), self._gradio.skip())

    def _show_results(self, turn: Turn, task: str, raw: str, sources: list[str], *settings: float) -> Any:
        sigma, *weights = settings
        by_name = dict(zip(self._backend.sources, weights, strict=True))
        # A partly typed number may be out of range.
        mass = min(max(sigma, SIGMAS[0]), SIGMAS[1])
        arguments = task, _sentence(raw), sources, by_name, mass
        skipped = [self._gradio.skip()] * 4
        return turn.run(lambda: list(self._call(self._backend.answer, *arguments)), skipped)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function and show its ValueErrors to the visitor."""
        try:
            return function(*arguments)
        except ValueError as error:
            raise self._gradio.Error(escape(str(error)), print_exception=False) from error


def _choices(sentences: Sequence[ConlluSentence]) -> list[tuple[str, int]]:
    return [(" ".join(sentence.words)[:90], index) for index, sentence in enumerate(sentences)]


def _sentence(raw: str) -> ConlluSentence:
    return next(read_conllu(io.StringIO(raw)))

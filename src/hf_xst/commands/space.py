"""The app in one's own browser, over the invented languages or over any source models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hf_xst.commands.options import VectorArguments, option
from hf_xst.commands.sentences import read_word_vectors
from hf_xst.console import say
from hf_xst.data import ConlluSentence
from hf_xst.demo.small_models import example_sentences, small_sources
from hf_xst.extras import import_optional
from hf_xst.sources.loading import SourceSpec, load_sources
from hf_xst.space.app import build, launch
from hf_xst.space.backend import Backend
from hf_xst.space.publish import SpaceContent, push_space
from hf_xst.space.sentences import typed_sentence, uploaded_sentences
from hf_xst.space.steps import TaskModels


@dataclass(kw_only=True)
class SpaceArguments(VectorArguments):
    """See the method step by step in the browser."""

    sources: list[str] = option(
        "Parsers to pool, NAME=PATH_OR_ID[@REVISION] ...; invented languages without any models.", []
    )
    taggers: list[str] = option("Taggers to pool, likewise; parsers that read tags need some.", [])
    sentences: str | None = option("Sentences to choose from: CoNLL-U, tokenised lines (.txt) or JSON lines.")
    host: str = option("Address to listen on.", "127.0.0.1")
    port: int | None = option("Port to listen on; the first free one from 7860 without it.")
    open: bool = option("Open the page in the browser.", False)
    push: str | None = option("Do not start the app but make it a Space on the Hub, user/name.")
    public: bool = option("With --push: a new Space is there for everybody.", False)
    requirement: str = option(
        "With --push: the line of requirements.txt that installs this package.", "hf_xst[demo]"
    )


def space(arguments: SpaceArguments) -> None:
    """Start the app and keep it up until it is stopped, or push it as a Space.

    Args:
        arguments: see the class.

    Raises:
        ValueError: the models or sentences do not fit, or the Hub refuses the Space.
    """
    if arguments.push is not None:
        told = {"vectors": arguments.vectors, "sentences": arguments.sentences}
        named = [f"--{name}" for name, value in told.items() if value is not None]
        if named:
            raise ValueError(
                f"a pushed Space has what its models bring alone: leave out {' and '.join(named)}, and take "
                "models that read the text's language by themselves"
            )
        content = SpaceContent(arguments.sources, arguments.taggers, arguments.requirement)
        say(f"pushed: {push_space(arguments.push, content, public=arguments.public)}")
        return
    if arguments.port is not None and not 0 < arguments.port < 65536:
        raise ValueError(f"--port is {arguments.port}; expected a number from 1 to 65535")
    blocks = app(arguments)
    _, address, _ = launch(
        blocks,
        server_name=arguments.host,
        server_port=arguments.port,
        inbrowser=arguments.open,
        prevent_thread_lock=True,
        quiet=True,
    )
    say(f"the app is at {address} (Ctrl-C stops it)")
    blocks.block_thread()


def app(arguments: SpaceArguments | None = None) -> Any:
    """Build the app: over given models, or over small ones of invented languages, which are trained first.

    Raises:
        ImportError: gradio is not installed.
        ValueError: the models or sentences do not fit.
    """
    import_optional("gradio", "demo")  # before models are trained
    told = arguments or SpaceArguments()
    sentences = [] if told.sentences is None else uploaded_sentences(told.sentences)
    if not told.sources and not told.taggers:
        backend = Backend({task: TaskModels(models) for task, models in small_sources().items()})
        return build(backend, sentences or example_sentences())
    vectors = read_word_vectors(told)
    tasks = {
        task: TaskModels(load_sources(specs, vectors))
        for task, specs in (("parser", _specs(told.sources)), ("tagger", _specs(told.taggers)))
        if specs
    }
    return build(Backend(tasks), sentences or _first_sentence(vectors))


def _specs(texts: Sequence[str]) -> list[SourceSpec]:
    return SourceSpec.parse_all(texts) if texts else []


def _first_sentence(vectors: Any) -> list[ConlluSentence]:
    """Return something to begin with, where no sentences are given: frequent words, or nonsense."""
    return [typed_sentence("saya makan nasi" if vectors is None else " ".join(vectors.words[:6]))]

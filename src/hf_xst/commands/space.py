"""Start the step-by-step app, on invented languages or any source models, or push it as a Space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hf_xst.commands.options import VectorArguments
from hf_xst.commands.sentences import read_word_vectors
from hf_xst.console import say
from hf_xst.demo.small_models import example_sentences, small_sources
from hf_xst.extras import import_optional
from hf_xst.records import option
from hf_xst.sources.loading import load_sources
from hf_xst.space.app import build, launch
from hf_xst.space.backend import Backend, typed_sentence, uploaded_sentences
from hf_xst.space.publish import push_space, space_files
from hf_xst.space.steps import TaskModels


@dataclass(frozen=True, kw_only=True)
class SpaceArguments(VectorArguments):
    """Show the method step by step in the browser."""

    sources: list[str] = option(
        "Source parsers: NAME=PATH_OR_ID[@REVISION] ...; defaults to small ones of invented languages.",
        [],
    )
    taggers: list[str] = option("Source taggers, likewise; required by parsers that read tags.", [])
    sentences: str | None = option("Example sentences: CoNLL-U, tokenised lines (.txt) or JSON lines.")
    host: str = option("Address to listen on.", "127.0.0.1")
    port: int | None = option("Port to listen on; defaults to the first free one from 7860.")
    open: bool = option("Open the page in the browser.", False)
    push: str | None = option("Push the app as a Space, user/name, instead of starting it.")
    public: bool = option("With --push: make a new Space public.", False)
    overwrite: bool = option("With --push: replace another app in an existing Space.", False)
    requirement: str = option(
        "With --push: line of requirements.txt that installs this package.", "hf_xst[demo]"
    )


def space(arguments: SpaceArguments) -> None:
    """Run the app until it is stopped, or push it as a Space.

    Raises:
        ValueError: The models or sentences cannot be used, or the Hub rejects the Space.
    """
    if arguments.push is not None:
        local = {"--vectors": arguments.vectors, "--sentences": arguments.sentences}
        flags = [flag for flag, value in local.items() if value is not None]
        if flags:
            raise ValueError(
                f"a pushed Space contains no local files: leave out {' and '.join(flags)}, and use models "
                "that know the words of the language"
            )
        files = space_files(arguments.sources, arguments.taggers, arguments.requirement)
        url = push_space(arguments.push, files, public=arguments.public, overwrite=arguments.overwrite)
        say(f"pushed: {url}")
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
    """Build the app on the given models, or on small ones of invented languages, which are trained first.

    Raises:
        ImportError: gradio is not installed.
        ValueError: The models or sentences cannot be used.
    """
    import_optional("gradio", "demo")  # before models are trained
    options = arguments or SpaceArguments()
    vectors = read_word_vectors(options)
    sentences = [] if options.sentences is None else uploaded_sentences(options.sentences)
    if not options.sources and not options.taggers:
        backend = Backend({task: TaskModels(models) for task, models in small_sources().items()})
        return build(backend, sentences or example_sentences())
    tasks = {
        task: TaskModels(load_sources(texts, vectors))
        for task, texts in (("parser", options.sources), ("tagger", options.taggers))
        if texts
    }
    example = "saya makan nasi" if vectors is None else " ".join(vectors.words[:6])  # the most frequent words
    return build(Backend(tasks), sentences or [typed_sentence(example)])

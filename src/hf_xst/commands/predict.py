"""Annotate sentences with a model, as a stream; what is written of them is for the caller to say."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import IO, Any

from hf_xst.commands.options import PredictArguments
from hf_xst.commands.sentences import read_word_vectors
from hf_xst.console import progress, say
from hf_xst.data import ConlluSentence, WordVectors, iterate_unlabelled
from hf_xst.files import check_output_path
from hf_xst.inference.annotation import (
    BLOCK,
    Annotated,
    AnnotationSettings,
    Annotator,
    Form,
    annotator_beside,
    load_annotator,
    model_identity,
)
from hf_xst.inference.confidence import Reading
from hf_xst.inference.outputs import FORMS
from hf_xst.inference.resuming import BlockFile
from hf_xst.models.modeling import StructuredModel
from hf_xst.remote import split_revision
from hf_xst.sources.pool import ready_model
from hf_xst.sources.word_checks import tell_of_unknown_words

STREAM, NO_ANNOTATOR = "-", "none"
_NAMED = 3
# Arguments by which the output is another one.
_OF_OUTPUT = ("format", "decoding", "confidence", "kbest", "max_words", "too_long")


@dataclass
class Counts:
    """What has been done, for the person and for a later run."""

    sentences: int = 0
    words: int = 0
    left_out: int = 0
    left_out_ids: list[str] = field(default_factory=list)
    input_sha256: str = ""

    def add(self, block: Sequence[Annotated]) -> None:
        """Count a block."""
        self.sentences += len(block)
        self.words += sum(len(sentence.word_rows) for sentence, _ in block)
        left = [sentence.identifier for sentence, found in block if found.left_out is not None]
        self.left_out += len(left)
        self.left_out_ids = [*self.left_out_ids, *left][:_NAMED]


class _Input:
    """Sentences as they are read, and a digest of those that have been.

    Args:
        sentences: the stream.
    """

    def __init__(self, sentences: Iterator[ConlluSentence]) -> None:
        self.sentences, self.digest = sentences, hashlib.sha256()
        self.last: ConlluSentence | None = None

    def __iter__(self) -> Iterator[ConlluSentence]:
        for sentence in self.sentences:
            self.digest.update(sentence.raw.encode())
            self.last = sentence
            yield sentence

    def skip(self, counts: Counts) -> None:
        """Pass over the sentences of an interrupted run.

        Raises:
            ValueError: they are not those that it has read.
        """
        stream = iter(self)
        for _ in range(counts.sentences):
            if next(stream, None) is None:
                break
        if self.digest.hexdigest() != counts.input_sha256:
            raise ValueError(
                f"the first {counts.sentences} sentences of the input are not those that the interrupted run "
                "has read; give it the same input, or remove what it has left to start anew"
            )


def predict(arguments: PredictArguments) -> None:
    """Write the input's sentences with the models' columns filled in; everything else stays as it was.

    Args:
        arguments: see the class.

    Raises:
        ValueError: the model reads tags, the input has none, and no tagger is at hand; a sentence is too long
            and that is an error; or the output is left of another interrupted run.
    """
    if not _is_stream(arguments.output):
        check_output_path(arguments.output, *arguments.input)
    vectors = read_word_vectors(arguments)
    path, revision = split_revision(arguments.model)
    model = ready_model(path, revision, vectors)
    models = [*_annotators(arguments.tagger, model, path, revision, vectors), model]
    reading = Reading(arguments.decoding, arguments.confidence, arguments.kbest)
    settings = AnnotationSettings(reading, arguments.batch_words, arguments.max_words, arguments.too_long)
    annotator = Annotator(models, settings)
    form = FORMS[_form_name(arguments)](annotator)
    sentences = _Input(_sentences(arguments))
    if _is_stream(arguments.output):
        if arguments.resume:
            raise ValueError("--resume goes on with a file: give --output")
        with _stream(arguments.output) as stream:
            _to_stream(annotator, sentences, form, stream)
    else:
        file = BlockFile(arguments.output, _identity(arguments, annotator, vectors), resume=arguments.resume)
        _to_file(annotator, sentences, form, file)


def _annotators(
    chosen: str | None,
    model: StructuredModel,
    path: str,
    revision: str | None,
    vectors: WordVectors | None,
) -> list[StructuredModel]:
    if chosen == NO_ANNOTATOR:
        return []
    if chosen is None and model.annotation_column in model.input_columns:
        chosen = annotator_beside(path, revision)
    return [] if chosen is None else [load_annotator(chosen, vectors)]


def _form_name(arguments: PredictArguments) -> str:
    suffix = PurePath(arguments.output.removesuffix(".gz")).suffix
    return arguments.to or {".jsonl": "jsonl", ".txt": "trees"}.get(suffix, "conllu")


def _sentences(arguments: PredictArguments) -> Iterator[ConlluSentence]:
    for name in arguments.input:
        if name == STREAM:
            yield from iterate_unlabelled(sys.stdin.buffer, format=arguments.format or "conllu")
        else:
            yield from iterate_unlabelled(name, format=arguments.format)


def _identity(
    arguments: PredictArguments, annotator: Annotator, vectors: WordVectors | None
) -> Mapping[str, Any]:
    models = [model_identity(model, vectors) for model in annotator.models]
    return {
        "version": version("hf_xst"),
        "models": hashlib.sha256(repr(models).encode()).hexdigest(),
        "to": _form_name(arguments),
        **{name: vars(arguments)[name] for name in _OF_OUTPUT},
        "batch_words": annotator.batch_words,
        "block": BLOCK,
    }


def _blocks(
    annotator: Annotator, sentences: _Input, advance: Callable[[int], None]
) -> Iterator[list[Annotated]]:
    for number, block in enumerate(annotator.blocks(sentences, annotator.row, advance)):
        if number == 0:
            tell_of_unknown_words(annotator.models[-1], (sentence.words for sentence, _ in block))
        yield block


def _to_stream(annotator: Annotator, sentences: _Input, form: Form, stream: IO[bytes]) -> None:
    counts, before = Counts(), None
    with progress("predicting", None) as advance:
        for block in _blocks(annotator, sentences, advance):
            stream.write(form(block, before).encode())
            stream.flush()
            before = block[-1][0]
            counts.add(block)
    _tell_left_out(counts, annotator)


def _to_file(annotator: Annotator, sentences: _Input, form: Form, file: BlockFile) -> None:
    counts = Counts(**file.progress)
    done, begin = counts.words, time.perf_counter()
    if counts.sentences:
        sentences.skip(counts)
        say(f"{file.part} holds {counts.sentences} sentences already; going on behind them")
    before = sentences.last
    try:
        with file, progress("predicting", None) as advance:
            for block in _blocks(annotator, sentences, advance):
                counts.add(block)
                counts.input_sha256 = sentences.digest.hexdigest()
                file.add(form(block, before), asdict(counts))
                before = block[-1][0]
    except BaseException:
        if file.progress:
            held = file.progress["sentences"]
            say(f"{file.part} holds the first {held} sentences; --resume goes on behind them", "yellow")
        raise
    rate = (counts.words - done) / max(1e-9, time.perf_counter() - begin)
    say(f"{file.path}: {counts.sentences} sentences, {counts.words} words ({rate:,.0f} words/s)")
    _tell_left_out(counts, annotator)


def _tell_left_out(counts: Counts, annotator: Annotator) -> None:
    if counts.left_out:
        say(
            f"{counts.left_out} sentences have more than {annotator.settings.max_words} words and were left "
            f"without annotation (first: {', '.join(counts.left_out_ids)}); --max-words raises the limit, "
            "--too-long error stops at such a sentence",
            "yellow",
        )


def _is_stream(output: str) -> bool:
    """Say whether the output cannot be put in its place when it is complete: stdout, a pipe, a device."""
    path = Path(output)
    return output == STREAM or (path.exists() and not path.is_file() and not path.is_dir())


@contextmanager
def _stream(output: str) -> Iterator[IO[bytes]]:
    if output == STREAM:
        yield sys.stdout.buffer
    else:
        with Path(output).open("wb") as stream:
            yield stream

"""Annotate a stream of sentences with a model, and write them as CoNLL-U, JSON lines or drawn trees."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from hf_xst.commands.options import PredictArguments, takes_options
from hf_xst.commands.sentences import read_word_vectors
from hf_xst.console import progress, say
from hf_xst.data import ConlluSentence, iterate_unlabelled
from hf_xst.files import is_stream, name_in_errors, protect_inputs
from hf_xst.inference.annotation import BLOCK, Annotator, choose_tagger, load_tagger, read_blocks
from hf_xst.inference.outputs import WRITERS, Writer
from hf_xst.inference.resuming import ResumableFile, partial_path, state_path
from hf_xst.processes import alone, from_main, process_count, process_index, share
from hf_xst.sources.loading import model_digest, ready_model
from hf_xst.sources.word_checks import warn_of_unknown_words

STREAM = "-"
_NAMED = 3
# Arguments that change the output.
_IDENTITY = ("format", "decoding", "confidence", "kbest", "max_words", "too_long", "bf16")


@dataclass(frozen=True)
class Counts:
    """Progress of a run, or a block of it, for reports and for a later run that resumes."""

    sentences: int = 0
    words: int = 0
    skipped: int = 0
    skipped_ids: list[str] = field(default_factory=list)  # the first ones
    input_sha256: str = ""  # of the input up to the end

    def __add__(self, block: Counts) -> Counts:
        return Counts(
            self.sentences + block.sentences,
            self.words + block.words,
            self.skipped + block.skipped,
            [*self.skipped_ids, *block.skipped_ids][:_NAMED],
            block.input_sha256,
        )


class _Input:
    """Iterate over sentences, and keep the last one and a digest of all sentences read."""

    def __init__(self, sentences: Iterator[ConlluSentence]) -> None:
        self._sentences, self._digest = sentences, hashlib.sha256()
        self.last: ConlluSentence | None = None

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[ConlluSentence]:
        for sentence in self._sentences:
            self._digest.update(f"{sentence.raw}{sentence.extra or ''}".encode(errors="surrogatepass"))
            self.last = sentence
            yield sentence

    def skip(self, counts: Counts) -> None:
        """Skip the sentences of an interrupted run; raise ValueError unless they are those that it read."""
        stream = iter(self)
        for _ in range(counts.sentences):
            next(stream, None)
        if counts.sentences and self.sha256 != counts.input_sha256:
            raise ValueError(
                f"the first {counts.sentences} sentences of the input differ from those of the interrupted "
                "run; pass the same input, or remove the partial output to start over"
            )


@takes_options(PredictArguments)
def predict(arguments: PredictArguments) -> None:
    """Write the sentences of the input with the columns that the model predicts, otherwise unchanged.

    Raises:
        ValueError: if the model reads tags but the input has none and there is no tagger, a sentence is too
            long and `too_long` is "error", or the output exists or belongs to another interrupted run.
    """
    to_stream, partial = is_stream(arguments.output), partial_path(arguments.output)
    if to_stream and arguments.resume:
        raise ValueError("--resume continues a file: pass --output")
    if not to_stream:
        protect_inputs(arguments, arguments.output, partial, state_path(partial))
    vectors = read_word_vectors(arguments)
    model = ready_model(arguments.model, vectors=vectors)
    tagger = choose_tagger(arguments.tagger, model, arguments.model)
    annotator = Annotator([*([] if tagger is None else [load_tagger(tagger, vectors)]), model], arguments)
    write, sentences = WRITERS[_format(arguments)](annotator), _Input(_read(arguments))
    if STREAM in arguments.input and process_count() > 1:
        raise ValueError("several processes cannot share stdin: pass --input a file")
    file = None
    if not to_stream and process_index() == 0:
        settings = {name: vars(arguments)[name] for name in ("resume", "overwrite")}
        file = ResumableFile(arguments.output, _identity(arguments, annotator), **settings)
    counts = from_main(lambda: Counts() if file is None else Counts(**file.progress))
    done, begin = counts.words, time.perf_counter()
    if counts.sentences:
        sentences.skip(counts)
        say(f"{partial} has {counts.sentences} sentences; continuing after them")
    with _output(arguments.output, file) as add, progress("predicting", None) as advance:
        for text, block in _blocks(annotator, sentences, write, advance):
            counts += block
            add(text, counts)
    if file is not None:
        rate = (counts.words - done) / max(1e-9, time.perf_counter() - begin)
        say(f"{file.path}: {counts.sentences} sentences, {counts.words} words ({rate:,.0f} words/s)")
    if counts.skipped:
        say(
            f"{counts.skipped} sentences have more than {arguments.max_words} words and were not annotated "
            f"(first: {', '.join(counts.skipped_ids)}); --max-words raises the limit, --too-long error stops "
            "at such a sentence",
            "yellow",
        )


def _format(arguments: PredictArguments) -> str:
    suffix = PurePath(arguments.output.removesuffix(".gz")).suffix
    return arguments.to or {".jsonl": "jsonl", ".txt": "trees"}.get(suffix, "conllu")


def _read(arguments: PredictArguments) -> Iterator[ConlluSentence]:
    for name in arguments.input:
        if name == STREAM:
            yield from iterate_unlabelled(sys.stdin.buffer, format=arguments.format or "conllu")
        else:
            yield from iterate_unlabelled(name, format=arguments.format)


def _identity(arguments: PredictArguments, annotator: Annotator) -> dict[str, Any]:
    return {
        "version": version("hf_xst"),
        "models": [model_digest(model) for model in annotator.models],
        "to": _format(arguments),
        **{name: vars(arguments)[name] for name in _IDENTITY},
        "batch_words": annotator.batch_words,
        "block": BLOCK,
    }


Block = tuple[int, list[ConlluSentence], ConlluSentence | None, str]
"""Its number, its sentences, the sentence before them, and the digest of the input up to their end."""


def _blocks(
    annotator: Annotator, sentences: _Input, write: Writer, advance: Callable[[int], None]
) -> Iterator[tuple[str, Counts]]:
    """Annotate all blocks, in order; yield the text of each and its counts.

    Each process annotates and writes whole blocks as long as there is one for each; they share the rest.
    """

    def read() -> Iterator[Block]:
        before = sentences.last
        for number, lines in enumerate(read_blocks(sentences)):
            yield number, lines, before, sentences.sha256
            before = lines[-1]

    def annotate(block: Block) -> tuple[str, Counts]:
        number, lines, before, digest = block
        annotated = annotator.annotate_block(lines, advance, warns=number == 0)
        if number == 0:
            warn_of_unknown_words(annotator.models[-1], (sentence.words for sentence in lines))
        words = sum(len(sentence.word_rows) for sentence in lines)
        skipped = [sentence.identifier for sentence, each in annotated if each.skipped is not None]
        return write(annotated, before), Counts(len(lines), words, len(skipped), skipped, digest)

    blocks = read()
    while turn := list(islice(blocks, process_count())):
        is_full = len(turn) == process_count()
        yield from share(turn, alone()(annotate)) if is_full else map(annotate, turn)


@contextmanager
def _output(path: str, file: ResumableFile | None) -> Iterator[Callable[[str, Counts], None]]:
    """Open the output; yield a function that adds a block, with the progress up to its end."""
    if process_index():  # only the main process writes
        yield lambda text, counts: None
    elif file is None:
        opened = nullcontext(sys.stdout.buffer) if path == STREAM else Path(path).open("wb")
        with name_in_errors("stdout" if path == STREAM else path), opened as stream:

            def write(text: str, counts: Counts) -> None:
                stream.write(text.encode())
                stream.flush()

            yield write
    else:
        try:
            with file:
                yield lambda text, counts: file.add(text, asdict(counts))
        except BaseException:
            if file.progress:
                done = file.progress["sentences"]
                say(f"{file.partial} has the first {done} sentences; --resume continues after them", "yellow")
            raise

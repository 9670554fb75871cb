"""Options of the commands as data classes; the same names serve flags, YAML files and Python.

`None` means that the preset, the charts or the task decide; see `hf_xst.commands.presets`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypeVar

from hf_xst.charts.chart import FLOOR, Rule
from hf_xst.files import sole_owner
from hf_xst.inference.annotation import BF16, AnnotationSettings
from hf_xst.models.running import BATCH_WORDS
from hf_xst.processes import shared_work, wait_for_all
from hf_xst.records import checked_options, option, required
from hf_xst.sources.agreement import Measure
from hf_xst.sources.loading import OtherSourceSettings, SourceSettings, Task
from hf_xst.sources.stored import LOST_MASS

Options = TypeVar("Options")
Result = TypeVar("Result")


def shared_options(options: Any, kind: type[Any]) -> dict[str, Any]:
    """Return the values of those options that another command has too, by name."""
    return {name: value for name, value in vars(options).items() if name in kind.__dataclass_fields__}


def takes_options(kind: type[Options]) -> Callable[[Callable[[Options], Result]], Callable[..., Result]]:
    """Let the function of a command take its options as a data class or as keyword arguments.

    The command owns its output before it reads anything. The processes of a launcher share its work, see
    `hf_xst.processes`; the main one owns the output.
    """

    def decorate(command: Callable[[Options], Result]) -> Callable[..., Result]:
        name = command.__name__.replace("_", "-")

        @wraps(command)
        def run(options: Options | None = None, /, **fields: Any) -> Result:
            if options is not None and fields:
                raise TypeError(f"pass a {kind.__name__} or keyword arguments, not both")
            options = checked_options(kind(**fields) if options is None else options)
            output = vars(options)["output" if hasattr(options, "output") else "folder"]
            is_main = os.environ.get("RANK", "0") == "0"
            with sole_owner(output, name) if is_main else nullcontext(), shared_work():
                result = command(options)
                wait_for_all()  # the main process has written what a next command reads
                return result

        return run

    return decorate


_OWN_TAGGER = (
    "Tagger to run first; defaults to the one in MODEL/tagger if the model reads tags; `none` uses the tags "
    "of the input."
)
_TREEBANK = (
    "Treebank: a language code (id, fr:GSD+Sequoia), a UD_... folder, a .conllu file, SPLIT=PATH,..., or a "
    "data set on the Hub."
)
_BATCH_WORDS = "Words per batch, padding included."
_WEIGHTS = (
    "YAML file with a weight per source name; `uniform` (paper); or `agreement` (recommended): larger "
    "weights for sources that agree with the pool of the others."
)


@dataclass(frozen=True, kw_only=True)
class OutputArguments:
    """Output."""

    output: str = required("Output folder; after training, `from_pretrained` loads it.")
    seed: int = option("Random seed.", 42)


@dataclass(frozen=True, kw_only=True)
class SentenceArguments:
    """Sentences."""

    data: list[str] = option("Folders that contain UD_... folders, searched for language codes.", [])
    split: str = option("Split of the treebank, e.g. train, dev, dev[:500], train[90%:].", "train")
    tagger: str | None = option("Tagger (PATH_OR_ID[@REVISION]) whose tags replace those of the input.")


@dataclass(frozen=True, kw_only=True)
class GoldArguments(SentenceArguments):
    """Sentences with gold annotation."""

    treebank: str = required(_TREEBANK)


@dataclass(frozen=True, kw_only=True)
class TextArguments(SentenceArguments):
    """Sentences without annotation."""

    treebank: str | None = option(_TREEBANK)
    text: str | None = option(
        "Text instead of --treebank: a file of CoNLL-U, one tokenised sentence per line (.txt), or JSON "
        "lines; or a data set on the Hub (OWNER/NAME[:CONFIG][@REVISION]) with a column words, tokens or "
        "text, of which --split is streamed."
    )


@dataclass(frozen=True, kw_only=True)
class VectorArguments:
    """Word vectors."""

    vectors: str | None = option(
        "Word vectors of the language (.vec, .txt, .gz), for models that read words by vectors."
    )
    vector_rows: int | None = option("Read only the first N vectors.")


@dataclass(frozen=True, kw_only=True)
class SourceArguments(SourceSettings):
    """Sources."""

    sources: list[str] = required(
        "Sources as NAME=PLACE[@REVISION] ...; PLACE is a model of this package or a transformers model for "
        "token classification (folder or Hub id), a spaCy pipeline (spacy:PACKAGE, or a folder), or a "
        "CoNLL-U file with predictions for the same sentences."
    )
    marginals_cache: str | None = option(
        "Folder where the marginals of the sources are stored for other runs, also of other commands; "
        "sources run only for sentences that it lacks."
    )
    lost_mass: float = option(
        "Probability of each group that the stored marginals of a source may lose.", LOST_MASS
    )
    floor: float = option(
        "Added to each marginal probability before the logarithm is taken, in logarithmic pools.", FLOOR
    )
    batch_words: int = option(_BATCH_WORDS, BATCH_WORDS)
    bf16: bool = option(BF16, False)


@dataclass(frozen=True, kw_only=True)
class LabelledArguments(OutputArguments, SourceArguments, GoldArguments, VectorArguments):
    """Sources and sentences with gold annotation."""

    max_length: int | None = option(
        "Longest sentence, added tokens included; defaults to 30 (parser) or 60 (tagger) words without them."
    )


@dataclass(frozen=True, kw_only=True)
class LoopArguments:
    """Training loop."""

    epochs: float | None = option("Passes over the data; --max-steps takes precedence.")
    max_steps: int | None = option("Number of updates; takes precedence over --epochs.")
    batch_size: int | None = option("Sentences per batch and process.")
    learning_rate: float | None = option(
        "Learning rate of Adam; defaults to the published one, from scratch to 5e-4."
    )
    trainer: list[str] = option("Further fields of transformers.TrainingArguments as KEY=VALUE.", [])
    cache_embeddings: bool = option(
        "Compute the output of a frozen encoder once and keep it in memory (2 bytes per number).", True
    )
    embedding_cache: str | None = option("Folder where these outputs are cached for other runs.")


@dataclass(frozen=True, kw_only=True)
class NewModelArguments(VectorArguments):
    """New model."""

    encoder: str | None = option("Pretrained encoder (PATH_OR_ID[@REVISION]) instead of word vectors.")
    encoder_layers: int | None = option(
        "Keep only the first N layers of the encoder; defaults to all, on charts to half of them."
    )
    model: list[str] = option("Fields of the model configuration as KEY=VALUE, e.g. context_layers=2.", [])


@dataclass(frozen=True, kw_only=True)
class TrainSourceArguments(OutputArguments, GoldArguments, NewModelArguments, LoopArguments):
    """Train a source model on a treebank."""

    task: Task = option("Kind of model.", "parser")
    dev_split: str = option(
        "Split for development scores; if it does not exist, the last 10 % of --split.", "dev"
    )
    dev_treebank: str | None = option("Take the development split from this treebank instead.")
    max_length: int = option("Longest training sentence, tokens added by the model included.", 100)
    faulty: Literal["error", "skip"] = option(
        "Stop at a sentence whose gold tree is invalid, or skip it.", "skip"
    )
    init_from: str | None = option(
        "Fine-tune this model (PATH_OR_ID[@REVISION]) with its encoder, configuration and labels; `--model "
        "frozen_layers=N` changes how much of its encoder is trained. Sources fine-tuned from the same model "
        "can be averaged, see `transfer`."
    )
    epochs: float | None = option("Maximum number of epochs; --max-steps takes precedence.", 1000.0)
    batch_size: int | None = option("Sentences per batch and process.", 80)
    patience: int = option("Stop after N epochs without a better development score.", 50)
    plateau: int = option("Halve the learning rate after N epochs without a better score.", 10)


@dataclass(frozen=True, kw_only=True)
class PresetArguments:
    """Charts."""

    preset: Literal["recommended", "paper"] | None = option(
        "Defaults for all unset options, here and in transfer. `paper` is the published method. "
        "`recommended` initialises from the average of sources that were fine-tuned from one model, "
        "otherwise from the source that agrees most with the rest; it weights sources by agreement, accepts "
        "longer sentences, and also trains on the pool itself. Defaults to recommended for such sources and "
        "for parsers, to paper for taggers and for --rule union or linear."
    )
    temperature: float = option(
        "Divide each source's scores by this before its marginals are computed; above 1 softens them, e.g. "
        "those of overconfident spaCy pipelines.",
        1.0,
    )


@dataclass(frozen=True, kw_only=True)
class BuildChartsArguments(OutputArguments, SourceArguments, TextArguments, VectorArguments, PresetArguments):
    """Make charts for unlabelled sentences from sources."""

    exclude: list[str] = option(
        "Files whose sentences are left out of the text, compared by words, such as test files.", []
    )
    init_from: str | None = option(
        "Name of the source from which training will be initialised; defaults to the first one "
        "(recommended: the average of the sources, or the one that agrees most with the rest)."
    )
    select: int | None = option("Use only the N sources that rank highest for this text.")
    select_by: Measure = option(
        "Ranking measure, computed without labels: agreement with the pool of the other sources, that "
        "pool's divergence from the source, the source's entropy, or the size of its charts.",
        "agreement",
    )
    labels: Literal["initial", "union"] = option(
        "Labels of the charts: those of the initial model, or of all sources.", "initial"
    )
    rule: Rule = option("Logarithmic opinion pool, union (PPTX), or linear opinion pool.", "pool")
    sigma: float | None = option(
        "Probability mass kept in each group of candidates; defaults to 0.95 (recommended: 0.999, of which "
        "transfer uses 0.95)."
    )
    weights: str | None = option(_WEIGHTS)
    max_length: int | None = option(
        "Longest sentence, added tokens included; defaults to 30 (parser) or 60 (tagger) words without them "
        "(recommended: 61)."
    )
    keep_log_probs: bool | None = option(
        "Also store the pooled log-probabilities of the kept candidates (recommended: yes)."
    )


@dataclass(frozen=True, kw_only=True)
class TransferArguments(OutputArguments, NewModelArguments, SentenceArguments, LoopArguments):
    """Train a target model on charts."""

    charts: str = required("Charts: a folder written by build-charts, or a data set on the Hub.")
    init_from: str | None = option(
        "Initial model: PATH_OR_ID[@REVISION]; `average` of the charts' sources, if they were fine-tuned "
        "from one model (train-source --init-from); or `scratch`. Defaults to the choice recorded with the "
        "charts."
    )
    like: str | None = option("With --init-from scratch: a model whose configuration is used.")
    l2: float | None = option(
        "Strength of the pull to the initial parameters; defaults to the published one."
    )
    train_words: bool = option("Also train the word vectors, as published.", False)
    best: Literal["sources", "pool", "none"] | None = option(
        "Best structures added to the charts: of each source (paper), of the pool (recommended), or none. "
        "This and the next two default to the preset recorded with the charts."
    )
    sigma: float | None = option(
        "Narrow charts made with --keep-log-probs and a larger sigma to this mass (recommended: 0.95; paper: "
        "not at all). With 0 only the best structures remain."
    )
    soft: float | None = option(
        "Share of the loss that is the cross-entropy against the pool (requires --keep-log-probs); the rest "
        "is the chart loss (recommended: 0.5; paper: 0)."
    )
    max_steps: int | None = option(
        "Number of updates; takes precedence over --epochs; defaults to 800 (recommended: 200), from scratch "
        "over --encoder to 1000."
    )
    batch_size: int | None = option(
        "Sentences per batch and process; defaults to 80 (recommended, or from scratch: 20)."
    )
    treebank: str | None = option("Treebank for development curves; never trained on.")
    split: str = option("Split of that treebank.", "dev")
    eval_every: int = option("Updates between development scores.", 100)


@dataclass(frozen=True, kw_only=True)
class EvaluateArguments(OutputArguments, GoldArguments, VectorArguments):
    """Score a model, or a file of predictions, on a treebank."""

    model: str | None = option("The model: PATH_OR_ID[@REVISION].")
    predictions: str | None = option(
        "CoNLL-U file of predictions for the same sentences, instead of a model."
    )
    columns: list[str] = option("With --predictions: the columns to score.", ["head", "deprel"])
    scheme: Literal["bio"] | None = option(
        "With --predictions: the scheme of labels that mark spans, which are then scored as well."
    )
    split: str = option("Split of the treebank.", "test")
    tagger: str | None = option(_OWN_TAGGER)
    faulty: Literal["error", "skip"] = option(
        "Stop at a sentence whose gold cannot be used, or skip it.", "error"
    )
    batch_words: int = option(_BATCH_WORDS, BATCH_WORDS)


@dataclass(frozen=True, kw_only=True)
class PredictArguments(VectorArguments, AnnotationSettings):
    """Annotate sentences with a model."""

    model: str = required("The model: PATH_OR_ID[@REVISION].")
    input: list[str] = required(
        "Files of CoNLL-U, tokenised lines (.txt), JSON lines or, with --format raw, running text, plain or "
        "gzipped; - for stdin."
    )
    output: str = option(
        "Output file, gzipped if its name ends in .gz; - for stdout. Until complete it is called "
        "NAME.part.SUFFIX.",
        "-",
    )
    to: Literal["conllu", "jsonl", "trees"] | None = option(
        "Output format: CoNLL-U, JSON lines, or trees drawn in characters; defaults to the suffix of the "
        "output (.jsonl, .txt), otherwise CoNLL-U."
    )
    format: Literal["conllu", "text", "jsonl", "raw"] | None = option(
        "Input format, if the suffix does not say; conllu for stdin."
    )
    tagger: str | None = option(_OWN_TAGGER)
    resume: bool = option("Continue the output of an interrupted run.", False)
    overwrite: bool = option("Replace an existing output.", False)


VoteRule = Literal["majority", "pool", "linear"]


@dataclass(frozen=True, kw_only=True)
class VoteArguments(OutputArguments, SourceArguments, TextArguments, VectorArguments):
    """Combine sources without training."""

    rule: VoteRule = option(
        "Majority vote, or the best structure of the logarithmic or linear opinion pool.", "majority"
    )
    weights: str | None = option("For pool and linear: YAML file with a weight per source name.")
    split: str = option("Split of the treebank.", "test")


@dataclass(frozen=True, kw_only=True)
class AdaptArguments(OutputArguments, NewModelArguments, OtherSourceSettings, PresetArguments, LoopArguments):
    """Make a tagger and a parser for a language from text and sources."""

    text: str = required(
        "Text of the language: CoNLL-U, one tokenised sentence per line (.txt), JSON lines or, with --format "
        "raw, running text."
    )
    format: Literal["conllu", "text", "jsonl", "raw"] | None = option(
        "Format of the text, if the suffix does not say."
    )
    taggers: list[str] = option(
        "Source taggers as NAME=PLACE[@REVISION] ..., see --sources of build-charts.", []
    )
    parsers: list[str] = option(
        "Source parsers as NAME=PLACE[@REVISION] ...; they read the tags of the new tagger, or without "
        "--taggers those of the text.",
        [],
    )
    tagger_weights: str | None = option(f"Weights of the source taggers: {_WEIGHTS}")
    parser_weights: str | None = option("Weights of the source parsers, in the same form.")
    gold: str | None = option(
        "CoNLL-U file with gold annotation; the report then scores sources, vote, pool and the new models."
    )

"""What each command can be told, as data classes; the same names serve flags, YAML and Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def option(help_text: str, default: Any = None, **kwargs: Any) -> Any:
    """Declare an argument with its help."""
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata={"help": help_text, **kwargs})
    return field(default=default, metadata={"help": help_text, **kwargs})


def required(help_text: str) -> Any:
    """Declare an argument that must be given."""
    return field(metadata={"help": help_text})


@dataclass(kw_only=True)
class OutputArguments:
    """Where results go."""

    output: str = required("Folder for the result; of training, what `from_pretrained` reads.")
    seed: int = option("Seed of everything that is drawn.", 42)


@dataclass(kw_only=True)
class SentenceArguments:
    """Which sentences are read."""

    treebank: str | None = option(
        "A treebank: a language code (id, fr:GSD+Sequoia), a UD_... folder, a .conllu file, "
        "SPLIT=PATH,..., or a data set on the Hub."
    )
    data: list[str] = option("Folders that hold UD_... folders, for language codes.", [])
    split: str = option("Which part of the treebank, e.g. train, dev, dev[:500], train[90%:].", "train")
    tagger: str | None = option("A tagger (folder or Hub id) whose tags replace those of the input.")


@dataclass(kw_only=True)
class TextArguments(SentenceArguments):
    """Sentences without annotation."""

    text: str | None = option(
        "A file in place of --treebank: CoNLL-U, one tokenised sentence a line (.txt), or JSON lines."
    )


@dataclass(kw_only=True)
class VectorArguments:
    """Word vectors."""

    vectors: str | None = option(
        "Word vectors of the language (.vec, .txt, .gz), for models that read by vectors."
    )
    vector_rows: int | None = option("Read only the first so many vectors.")


@dataclass(kw_only=True)
class LoopArguments:
    """The training loop."""

    epochs: float | None = option("Passes over the data (unless --updates is given).", 5.0)
    updates: int | None = option("Number of updates, in place of --epochs.")
    batch_size: int | None = option("Sentences of a batch, on each process.", 80)
    learning_rate: float | None = option("Step size of Adam; by default the published one.")
    trainer: list[str] = option("Any other field of transformers.TrainingArguments as KEY=VALUE.", [])
    keep_states: bool = option(
        "Compute the word states of a frozen encoder once and keep them in memory (2 bytes a number).", True
    )
    states: str | None = option("Folder where word states of a frozen encoder are kept for other runs.")


@dataclass(kw_only=True)
class TrainSourceArguments(OutputArguments, SentenceArguments, VectorArguments, LoopArguments):
    """Train a source model on a treebank."""

    task: Literal["parser", "tagger"] = option("What to train.", "parser")
    dev_split: str = option("Part for development scores; if there is none, the last 10 % of --split.", "dev")
    dev_treebank: str | None = option("Take the development part from this treebank instead.")
    max_length: int = option("Longest training sentence, tokens added by the model counted.", 100)
    faulty: Literal["error", "skip"] = option(
        "What to do with gold that is no tree: refuse it, or leave it out.", "skip"
    )
    start: str | None = option(
        "Go on from this model (folder or Hub id) with its encoder, configuration and labels (`--model "
        "frozen_layers=N` trains more of its encoder, or less). Sources that were fine-tuned from one start "
        "have a mean, see transfer."
    )
    start_revision: str | None = option("Revision of the start on the Hub.")
    encoder: str | None = option("A pretrained encoder (folder or Hub id) in place of word vectors.")
    encoder_revision: str | None = option("Revision of the encoder on the Hub.")
    encoder_layers: int | None = option("Keep only the first so many layers of the encoder.")
    model: list[str] = option("Fields of the model's configuration as KEY=VALUE, e.g. context_layers=2.", [])
    epochs: float | None = option("Most passes over the data.", 1000.0)
    patience: int = option("Stop after so many epochs without a better development score.", 50)
    plateau: int = option("Halve the learning rate after so many epochs without a better score.", 10)


@dataclass(kw_only=True)
class BuildChartsArguments(OutputArguments, TextArguments, VectorArguments):
    """Make charts for unlabelled sentences from source models."""

    sources: list[str] = required("Source models: NAME=PATH_OR_ID[@REVISION] ...")
    recipe: Literal["recommended", "published"] | None = option(
        "Defaults of everything that is not set, here and in transfer: `published` is the paper's method; "
        "`recommended` starts from the mean of sources that were fine-tuned from one start, else from the "
        "source that agrees best with the others, weighs sources by agreement, takes longer sentences, and "
        "stores the pool itself, which is half of the loss. By default recommended for such sources and for "
        "parsers, published for taggers and with --rule union or linear."
    )
    start: str | None = option(
        "Name of the source that training will start from; without it the first one (recommended: the "
        "sources' mean, or the one that agrees best with the others)."
    )
    select: int | None = option("Use only so many of the sources: those that suit the text best.")
    select_by: Literal["agreement", "divergence", "entropy", "chart_size"] = option(
        "What sources are chosen by, without labels: agreement with the pool of the others, that pool's "
        "divergence from the source, the source's entropy, or the size of its charts.",
        "agreement",
    )
    labels: Literal["start", "union"] = option("Labels of the charts: the start's, or all sources'.", "start")
    rule: Literal["pool", "union", "linear"] = option(
        "Logarithmic opinion pool, union (PPTX), or linear opinion pool.", "pool"
    )
    sigma: float | None = option(
        "Probability mass that is kept of each group of candidates; 0.95 without it (recommended: 0.999, of "
        "which transfer takes 0.95)."
    )
    floor: float = option("Added to every marginal probability before the logarithm.", 1e-9)
    weights: str | None = option(
        "YAML file with a weight for each source by name; `uniform` (published); or `agreement` "
        "(recommended): weights without labels, larger for sources that agree with the pool of the others."
    )
    max_length: int | None = option(
        "Longest sentence, added tokens counted; without it 30 (parser) or 60 (tagger) (recommended: 61)."
    )
    keep_log_probs: bool | None = option(
        "Also store the pooled log-probabilities of the kept candidates (recommended: yes)."
    )
    temperature: float = option(
        "Divide each source's scores by this before its marginals are taken; above 1 it softens them.", 1.0
    )
    batch_words: int = option("Words of a batch, padding included.", 2000)


@dataclass(kw_only=True)
class TransferArguments(OutputArguments, VectorArguments, LoopArguments):
    """Train a target model on charts."""

    charts: str = required("The charts: a folder that build-charts wrote, or a data set on the Hub.")
    start: str | None = option(
        "The starting model (folder or Hub id); without it the one that the charts were made for; `mean` "
        "for the mean of the charts' sources, if they were fine-tuned from one start (train-source --start); "
        "`none` for a fresh one (--l2 0)."
    )
    start_revision: str | None = option("Revision of the start on the Hub.")
    like: str | None = option("With --start none: a model whose configuration the fresh one takes.")
    encoder: str | None = option(
        "With --start none: a pretrained encoder (folder or Hub id) in place of --vectors."
    )
    l2: float | None = option(
        "Strength of the pull to the starting parameters; without it the published one."
    )
    train_words: bool = option("Also train the word vectors, as published.", False)
    best: Literal["sources", "pool", "none"] | None = option(
        "Whose best structures join the charts: each source's (published), the pool's (recommended), or "
        "nobody's. This and the next two are by default as in the recipe that the charts were made by."
    )
    sigma: float | None = option(
        "Narrow the charts to this mass, for charts made with --keep_log_probs and a larger sigma "
        "(recommended: 0.95; published: not at all). With 0 only the best structures are left."
    )
    soft: float | None = option(
        "Share of the loss that is the cross-entropy against the pool itself (needs --keep_log_probs); "
        "the rest is the chart loss (recommended: 0.5; published: 0)."
    )
    epochs: float | None = option("Passes over the charts, in place of --updates.")
    updates: int | None = option("Number of updates; without it 800 (recommended: 200).")
    batch_size: int | None = option("Sentences of a batch, on each process; without it 80 (recommended: 20).")
    treebank: str | None = option("A treebank whose gold gives development curves; never trained on.")
    data: list[str] = option("Folders that hold UD_... folders, for language codes.", [])
    split: str = option("Part of that treebank.", "dev")
    tagger: str | None = option("A tagger whose tags replace the development sentences'.")
    eval_every: int = option("Updates between development scores.", 100)


@dataclass(kw_only=True)
class EvaluateArguments(OutputArguments, SentenceArguments, VectorArguments):
    """Score a model, or a file of predictions, on a treebank."""

    model: str | None = option("The model: a folder or Hub id.")
    revision: str | None = option("Revision of the model on the Hub.")
    predictions: str | None = option(
        "CoNLL-U file of predictions for the same sentences, in place of a model."
    )
    columns: list[str] = option("With --predictions: the columns to score.", ["head", "deprel"])
    scheme: Literal["bio"] | None = option(
        "With --predictions: the scheme of labels that mark spans, which are then scored as well."
    )
    split: str = option("Which part of the treebank.", "test")
    faulty: Literal["error", "skip"] = option("What to do with sentences whose gold cannot be used.", "error")
    batch_words: int = option("Words of a batch, padding included.", 2000)


@dataclass(kw_only=True)
class PredictArguments(VectorArguments):
    """Annotate sentences with a model."""

    model: str = required("The model: a folder or Hub id.")
    input: list[str] = required(
        "Files of CoNLL-U, tokenised lines (.txt), JSON lines or, with --format raw, running text; gzipped "
        "or not; - for stdin."
    )
    output: str = option(
        "The file, gzipped by its name; - for stdout. Until it is complete it is called NAME.part.SUFFIX.",
        "-",
    )
    to: Literal["conllu", "jsonl", "trees"] | None = option(
        "What is written: CoNLL-U, JSON lines, or trees drawn in characters; by default by the output's name "
        "(.jsonl, .txt), else CoNLL-U."
    )
    revision: str | None = option("Revision of the model on the Hub.")
    format: Literal["conllu", "text", "jsonl", "raw"] | None = option(
        "Format of the input, if its name does not say it; of stdin conllu."
    )
    tagger: str | None = option(
        "A tagger to run first; without it the one in MODEL/tagger, if the model needs it; `none` takes the "
        "input's tags."
    )
    decoding: Literal["best", "minimum-risk"] = option(
        "The most probable structure, or that with the most right parts to be expected.", "best"
    )
    confidence: bool = option(
        "Also write probabilities: in MISC (HeadProb, LabelProb, ArcProb, TagProb), of the whole as comment.",
        False,
    )
    kbest: int = option("Also write the K most probable structures, as comments or in JSON.", 0)
    max_words: int = option(
        "Longest sentence that is annotated; memory grows with its square, from about 1 GB for 1000 words.",
        1000,
    )
    too_long: Literal["skip", "error"] = option(
        "Leave longer sentences without annotation, with a comment, or stop.", "skip"
    )
    resume: bool = option("Go on with what an interrupted run has left of the output.", False)
    batch_words: int | None = option("Words of a batch, padding included; without it 2000, on a GPU 8000.")


@dataclass(kw_only=True)
class VoteArguments(OutputArguments, TextArguments, VectorArguments):
    """Combine source models without training."""

    sources: list[str] = required("Source models: NAME=PATH_OR_ID[@REVISION] ...")
    rule: Literal["majority", "pool", "linear", "grouped", "truth"] = option(
        "Majority vote; the best structure of the logarithmic pool, of the linear one, or of the logarithmic "
        "one with weights by group; or truth inference over the labels of all words.",
        "majority",
    )
    floor: float = option(
        "For logarithmic pools: added to every marginal probability before the logarithm.", 1e-9
    )
    weights: str | None = option("For pool and linear: YAML file with a weight for each source by name.")
    grouped_weights: str | None = option("For grouped: the file that learn-weights --grouped wrote.")
    split: str = option("Which part of the treebank.", "test")
    batch_words: int = option("Words of a batch, padding included.", 2000)

"""The command `hf-xst vote`: combine source models without training."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from datasets import Dataset

from hf_xst.charts.chart import FLOOR
from hf_xst.commands.options import VoteArguments, VoteRule, takes_options
from hf_xst.commands.runs import SCORES, RunFolder, summary
from hf_xst.commands.sentences import (
    annotate,
    gold_rows,
    read_text,
    read_word_vectors,
    source_pool,
    split_of,
    unlabelled_rows,
)
from hf_xst.console import say
from hf_xst.data import (
    TREEBANK_FEATURES,
    dataset_to_sentences,
    is_hub_text,
    iterate_unlabelled,
    write_conllu,
)
from hf_xst.data.sentence import ConlluSentence
from hf_xst.files import PREDICTIONS
from hf_xst.inference.confidence import Annotation
from hf_xst.inference.outputs import ConlluWriter
from hf_xst.metrics import score
from hf_xst.models.modeling import Columns, Row
from hf_xst.models.running import BATCH_WORDS, in_batches
from hf_xst.records import checked
from hf_xst.sources.agreement import read_weights
from hf_xst.sources.loading import load_sources
from hf_xst.sources.pool import SourcePool
from hf_xst.sources.word_checks import check_text


@takes_options(VoteArguments)
def vote(options: VoteArguments) -> dict[str, Any]:
    """Combine, fill in the input as OUTPUT/predictions.conllu, and return scores, empty for unlabelled text.

    Raises:
        ValueError: the sources, their weights or the sentences do not fit each other or the rule.
    """
    folder = RunFolder(options.output, options, PREDICTIONS, SCORES)
    if options.weights is not None and options.rule == "majority":
        raise ValueError(
            "--weights requires --rule pool or linear, found majority: leave it out, or choose another rule"
        )
    vectors = read_word_vectors(options)
    models = load_sources(options.sources, vectors, options)
    sources = source_pool(options, models)
    weights = sources.weights(read_weights(options.weights) if options.weights else None)
    model = sources.kind
    if options.text is None and options.treebank is not None:
        gold, note = gold_rows(options.treebank, options.split, options.data, model.columns)
    else:
        gold, note = unlabelled_rows(options)
    rows = annotate(gold, options.tagger, vectors)
    check_text(models, rows)
    predictions: Iterable[Columns]
    predictions = combine(sources, rows, options.rule, weights, options.floor, options.batch_words)
    if options.text is None:
        predictions = list(predictions)
    folder.begin()
    output = folder.path / PREDICTIONS
    writer, tagged = ConlluWriter([model]), ["upos"] if options.tagger else []
    if folder.is_main:
        write_conllu(
            (
                writer.sentence(sentence, Annotation({name: row[name] for name in tagged} | columns))
                for sentence, row, columns in zip(_sentences(options), rows, predictions, strict=True)
            ),
            output,
        )
    if options.text is not None:
        deque(predictions, maxlen=0)  # other processes share the work
        say(f"predictions are in {output}")
        return {}
    scores: dict[str, Any] = score(list(predictions), gold, model.columns, model.scheme)
    folder.write_json("scores.json", {"data": note, **scores})
    summary(f"{options.rule} of {', '.join(models)}", scores)
    return scores


def combine(
    sources: SourcePool,
    rows: Dataset | Sequence[Row],
    rule: VoteRule = "majority",
    weights: Sequence[float] | None = None,
    floor: float = FLOOR,
    batch_words: int = BATCH_WORDS,
    temperature: float = 1.0,
) -> Iterator[Columns]:
    """Yield the structure of the ensemble for each row as columns; memory does not grow with the rows.

    The rule is `"majority"` (votes on substructures), or `"pool"` or `"linear"` (best structure under the
    pooled marginals, with weights in the order of the sources); for the rest see `ChartSettings`.

    Raises:
        ValueError: the rule is unknown.
    """
    checked(VoteRule, rule, "rule")

    def run(batch: list[Row]) -> list[Columns]:
        distributions = sources.read(batch).softened(temperature)
        if rule == "majority":
            best = distributions.voted()
        else:
            best = distributions.with_pooled(distributions.pooled(rule, weights, floor)).best()
        lengths = torch.tensor([len(row["words"]) for row in batch])
        return sources.kind.decode(best, lengths, sources.names)

    return in_batches(rows, run, batch_words)


def _sentences(options: VoteArguments) -> Iterator[ConlluSentence]:
    """Iterate over the complete sentences of the input, in the order of the rows, which lack none."""
    if options.text is not None and is_hub_text(options.text):
        rows = read_text(options.text, options.split)
        return (ConlluSentence.from_words(row["words"], sent_id=row["sent_id"]) for row in rows)
    if options.text is not None:
        return iterate_unlabelled(options.text)
    assert options.treebank is not None
    whole = split_of(options.treebank, options.split, options.data)
    if whole.features == TREEBANK_FEATURES:
        return dataset_to_sentences(whole)
    words = "words" if "words" in whole.features else "tokens"
    return (ConlluSentence.from_words(row[words], sent_id=row.get("sent_id")) for row in whole)

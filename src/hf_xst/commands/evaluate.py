"""The command `hf-xst evaluate`: score a model or a file of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hf_xst.commands.options import EvaluateArguments, takes_options
from hf_xst.commands.runs import SCORES, RunFolder, summary
from hf_xst.commands.sentences import (
    annotate,
    gold_rows,
    needs_structure,
    other_labels,
    prepare_gold,
    read_word_vectors,
    report_crossing,
    split_of,
)
from hf_xst.data.pairing import pair_sentences
from hf_xst.data.preparation import read_predictions
from hf_xst.data.treebank_facts import treebank_facts
from hf_xst.inference.annotation import choose_tagger
from hf_xst.metrics import score
from hf_xst.models.modeling import Row
from hf_xst.models.running import predict_rows
from hf_xst.sources.loading import ready_model
from hf_xst.sources.word_checks import check_text

_NUMBER = "hf_xst_number"


@takes_options(EvaluateArguments)
def evaluate(options: EvaluateArguments) -> dict[str, Any]:
    """Score, write OUTPUT/run/scores.json and return the scores; OUTPUT may be the folder of the model.

    Raises:
        ValueError: not exactly one of model and predictions is given.
    """
    folder = RunFolder(options.output, options, SCORES, alone=False, prefix="evaluate-")
    if (options.model is None) == (options.predictions is None):
        raise ValueError("give either --model or --predictions")
    compared = _compare_file(options) if options.model is None else _compare_model(options)
    predictions, gold, columns, note, scheme, tags = compared
    scores: dict[str, Any] = score(predictions, gold, columns, scheme)
    folder.begin()
    treebanks = treebank_facts(options.treebank, options.split, options.data)
    facts = {"data": note, "sentences": len(gold), "treebanks": treebanks, "columns": list(columns)}
    folder.write_json("scores.json", facts | {"tags": tags} | scores)
    summary(f"{options.model or options.predictions} on {note}{'' if tags is None else f', {tags}'}", scores)
    return scores


Compared = tuple[Sequence[Row], Dataset, tuple[str, ...], str, str | None, str | None]


def _compare_file(options: EvaluateArguments) -> Compared:
    assert options.predictions is not None
    if options.vectors or options.vector_rows or options.tagger:
        raise ValueError("--vectors, --vector-rows and --tagger are for --model: leave them out")
    wanted = tuple(options.columns)
    whole = split_of(options.treebank, options.split, options.data)
    numbered = whole.add_column(_NUMBER, list(range(len(whole))))
    name = f"{options.treebank} {options.split}"
    gold, note = prepare_gold(numbered, name, wanted, faulty=options.faulty, keep=[_NUMBER])
    rows = read_predictions(
        options.predictions, labels=other_labels(wanted), structure=needs_structure(wanted)
    )
    found = list(zip(rows["sent_id"], rows["words"], strict=True))
    if len(rows) == len(whole):
        words = whole["words" if "words" in whole.features else "tokens"]
        pairs = pair_sentences(found, list(zip(whole["sent_id"], words, strict=True)), options.predictions)
        rows = rows.select([pairs[number] for number in gold[_NUMBER]])
    elif len(rows) == len(gold):
        named = list(zip(gold["sent_id"], gold["words"], strict=True))
        rows = rows.select(pair_sentences(found, named, options.predictions))
    return rows.select_columns(list(wanted)), gold, wanted, note, options.scheme, None


def _compare_model(options: EvaluateArguments) -> Compared:
    assert options.model is not None
    vectors = read_word_vectors(options)
    model = ready_model(options.model, vectors=vectors)
    gold, note = gold_rows(
        options.treebank, options.split, options.data, model.columns, faulty=options.faulty
    )
    report_crossing(model, gold, "gold")
    tagger = choose_tagger(options.tagger, model, options.model)
    rows = annotate(gold, tagger, vectors)
    check_text({options.model: model}, rows)
    found = list(predict_rows(model, rows, batch_words=options.batch_words))
    tags = None
    if model.annotation_column in model.input_columns:
        by = "the tagger saved with the model" if options.tagger is None else tagger
        tags = "tags of the treebank" if tagger is None else f"tags by {by}"
    return found, gold, model.columns, note, model.scheme, tags

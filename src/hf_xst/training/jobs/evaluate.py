"""Score a model or a file of predictions."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from hf_xst.console import console
from hf_xst.data import prepare, read_conllu
from hf_xst.data.layout import sentences_to_dataset
from hf_xst.metrics import score

from ..arguments import EvaluateArguments
from ..inference import predict_rows
from ..runs import RunFolder, summary
from ..sentences import annotate, gold_rows, read_word_vectors
from ..sources import load_model


def evaluate(arguments: EvaluateArguments) -> dict[str, Any]:
    """Score and write OUTPUT/scores.json.

    Args:
        arguments: see the class.

    Returns:
        The scores.

    Raises:
        ValueError: no treebank, or not exactly one of model and predictions is given.
    """
    if arguments.treebank is None:
        raise ValueError("give --treebank: scores need gold annotation")
    if (arguments.model is None) == (arguments.predictions is None):
        raise ValueError("give either --model or --predictions")
    gold, note = gold_rows(arguments.treebank, arguments.split, arguments.data)
    console.print(note)
    found, columns = _predicted(arguments, gold)
    scores: dict[str, Any] = score(found, gold, columns)
    folder = RunFolder(arguments.output, arguments)
    folder.write_json("scores.json", {"data": note, "columns": list(columns), **scores})
    summary(f"{arguments.model or arguments.predictions} on {note}", scores)
    return scores


def _predicted(arguments: EvaluateArguments, gold: Dataset) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    if arguments.predictions is not None:
        wanted = tuple(arguments.columns)
        needs_gold = any(column not in ("words", "upos", "sent_id") for column in wanted)
        rows, _ = prepare(
            sentences_to_dataset(read_conllu(arguments.predictions)), gold=needs_gold, single_root=False
        )
        return [{column: row[column] for column in wanted} for row in rows], wanted
    assert arguments.model is not None
    vectors = read_word_vectors(arguments)
    model = load_model(arguments.model, arguments.revision, vectors)
    rows = annotate(gold, arguments.tagger, vectors)
    return list(predict_rows(model, rows, batch_words=arguments.batch_words)), model.columns

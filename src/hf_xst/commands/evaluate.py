"""The command `hf-xst evaluate`: score a model or a file of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hf_xst.commands.options import EvaluateArguments, takes_options
from hf_xst.commands.runs import RunFolder, check_one_process, check_output, summary
from hf_xst.commands.sentences import (
    annotate,
    gold_rows,
    needs_structure,
    other_labels,
    read_word_vectors,
    split_of,
)
from hf_xst.console import say
from hf_xst.data.preparation import read_predictions
from hf_xst.data.treebank_facts import treebank_facts
from hf_xst.metrics import score
from hf_xst.models.modeling import Row
from hf_xst.models.running import predict_rows
from hf_xst.sources.loading import ready_model
from hf_xst.sources.word_checks import warn_of_unknown_words


@takes_options(EvaluateArguments)
def evaluate(options: EvaluateArguments) -> dict[str, Any]:
    """Score and write OUTPUT/run/scores.json; the output may be the folder of the model.

    Args:
        options: the data class, or its fields as keyword arguments.

    Returns:
        The scores.

    Raises:
        ValueError: no treebank, or not exactly one of model and predictions is given.
    """
    check_one_process("evaluate")
    check_output(options, alone=False)
    if options.treebank is None:
        raise ValueError("give --treebank: scores need gold annotation")
    if (options.model is None) == (options.predictions is None):
        raise ValueError("give either --model or --predictions")
    compared = _compare_file(options) if options.model is None else _compare_model(options)
    predictions, gold, columns, note, scheme = compared
    scores: dict[str, Any] = score(predictions, gold, columns, scheme)
    folder = RunFolder(options.output, options, prefix="evaluate-")
    folder.begin()
    treebanks = treebank_facts(options.treebank, options.split, options.data)
    folder.write_json(
        "scores.json", {"data": note, "treebanks": treebanks, "columns": list(columns), **scores}
    )
    summary(f"{options.model or options.predictions} on {note}", scores)
    return scores


Compared = tuple[Sequence[Row], Dataset, tuple[str, ...], str, str | None]


def _compare_file(options: EvaluateArguments) -> Compared:
    assert options.predictions is not None
    wanted = tuple(options.columns)
    gold, note = _gold(options, wanted)
    rows = read_predictions(
        options.predictions, labels=other_labels(wanted), structure=needs_structure(wanted)
    )
    if len(rows) != len(gold):
        assert options.treebank is not None
        whole = split_of(options.treebank, options.split, options.data)
        if len(rows) == len(whole):
            rows = rows.select(_kept_sentences(whole, gold))
    _check_words(rows, gold, options.predictions)
    return rows.select_columns(list(wanted)), gold, wanted, note, options.scheme


def _kept_sentences(whole: Dataset, gold: Dataset) -> list[int]:
    """Return the indices of the sentences of a split that were kept when faulty gold was left out."""
    kept: list[int] = []
    words = "words" if "words" in whole.features else "tokens"
    wanted = zip(gold["sent_id"], gold["words"], strict=True)
    name, sentence = next(wanted, (None, None))
    for place, (found, row) in enumerate(zip(whole["sent_id"], whole[words], strict=True)):
        if row == sentence and found in (name, None):  # a sentence without a name is named after its index
            kept.append(place)
            name, sentence = next(wanted, (None, None))
    return kept


def _check_words(found: Dataset, gold: Dataset, file: str) -> None:
    """Check that predictions are for the same words as gold; the number of sentences is checked by `score`.

    Raises:
        ValueError: a sentence has other words, e.g. because of another order or release.
    """
    for place, (ours, theirs, name) in enumerate(
        zip(found["words"], gold["words"], gold["sent_id"], strict=False)
    ):
        if ours != theirs:
            first = next(
                (i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]),
                min(len(ours), len(theirs)),
            )
            raise ValueError(
                f"{file}: sentence {place + 1} differs from the gold sentence {name} from word "
                f"{first + 1} on: found {' '.join(ours[first : first + 5])!r}, expected "
                f"{' '.join(theirs[first : first + 5])!r}; score predictions on the file they were made for"
            )


def _compare_model(options: EvaluateArguments) -> Compared:
    assert options.model is not None
    vectors = read_word_vectors(options)
    model = ready_model(options.model, vectors=vectors)
    gold, note = _gold(options, model.columns)
    rows = annotate(gold, options.tagger, vectors)
    warn_of_unknown_words(model, rows["words"])
    found = list(predict_rows(model, rows, batch_words=options.batch_words))
    return found, gold, model.columns, note, model.scheme


def _gold(options: EvaluateArguments, columns: Sequence[str]) -> tuple[Dataset, str]:
    assert options.treebank is not None
    gold, note = gold_rows(options.treebank, options.split, options.data, columns, faulty=options.faulty)
    say(note)
    return gold, note

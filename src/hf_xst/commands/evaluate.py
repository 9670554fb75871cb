"""Score a model or a file of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hf_xst.commands.options import EvaluateArguments
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
from hf_xst.sources.pool import ready_model
from hf_xst.sources.word_checks import tell_of_unknown_words


def evaluate(arguments: EvaluateArguments) -> dict[str, Any]:
    """Score and write OUTPUT/run/scores.json; a model's own folder may be the output.

    Args:
        arguments: see the class.

    Returns:
        The scores.

    Raises:
        ValueError: no treebank, or not exactly one of model and predictions is given.
    """
    check_one_process("evaluate")
    check_output(arguments.output, alone=False)
    if arguments.treebank is None:
        raise ValueError("give --treebank: scores need gold annotation")
    if (arguments.model is None) == (arguments.predictions is None):
        raise ValueError("give either --model or --predictions")
    compared = _of_file(arguments) if arguments.model is None else _of_model(arguments)
    found, gold, columns, note, scheme = compared
    scores: dict[str, Any] = score(found, gold, columns, scheme)
    folder = RunFolder(arguments.output, arguments, prefix="evaluate-")
    folder.begin()
    treebanks = treebank_facts(arguments.treebank, arguments.split, arguments.data)
    folder.write_json(
        "scores.json", {"data": note, "treebanks": treebanks, "columns": list(columns), **scores}
    )
    summary(f"{arguments.model or arguments.predictions} on {note}", scores)
    return scores


Compared = tuple[Sequence[Row], Dataset, tuple[str, ...], str, str | None]


def _of_file(arguments: EvaluateArguments) -> Compared:
    assert arguments.predictions is not None
    wanted = tuple(arguments.columns)
    gold, note = _gold(arguments, wanted)
    rows = read_predictions(
        arguments.predictions, labels=other_labels(wanted), structure=needs_structure(wanted)
    )
    if len(rows) != len(gold):
        assert arguments.treebank is not None
        whole = split_of(arguments.treebank, arguments.split, arguments.data)
        if len(rows) == len(whole):
            rows = rows.select(_kept_of(whole, gold))
    _check_words(rows, gold, arguments.predictions)
    return rows.select_columns(list(wanted)), gold, wanted, note, arguments.scheme


def _kept_of(whole: Dataset, gold: Dataset) -> list[int]:
    """Say which sentences of a part were kept when faulty gold was left out."""
    kept: list[int] = []
    words = "words" if "words" in whole.features else "tokens"
    wanted = zip(gold["sent_id"], gold["words"], strict=True)
    name, sentence = next(wanted, (None, None))
    for place, (found, row) in enumerate(zip(whole["sent_id"], whole[words], strict=True)):
        if row == sentence and found in (name, None):  # without a name it was called after its place
            kept.append(place)
            name, sentence = next(wanted, (None, None))
    return kept


def _check_words(found: Dataset, gold: Dataset, file: str) -> None:
    """See that predictions are of the sentences they are scored on; their number is checked where they are.

    Raises:
        ValueError: a sentence has other words; of another order, or of another release.
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
                f"{file}: sentence {place + 1} has other words than the gold sentence {name} from word "
                f"{first + 1} on: found {' '.join(ours[first : first + 5])!r}, expected "
                f"{' '.join(theirs[first : first + 5])!r}; score predictions on the file they are of"
            )


def _of_model(arguments: EvaluateArguments) -> Compared:
    assert arguments.model is not None
    vectors = read_word_vectors(arguments)
    model = ready_model(arguments.model, arguments.revision, vectors)
    gold, note = _gold(arguments, model.columns)
    rows = annotate(gold, arguments.tagger, vectors)
    tell_of_unknown_words(model, rows["words"])
    found = list(predict_rows(model, rows, batch_words=arguments.batch_words))
    return found, gold, model.columns, note, model.scheme


def _gold(arguments: EvaluateArguments, columns: Sequence[str]) -> tuple[Dataset, str]:
    assert arguments.treebank is not None
    gold, note = gold_rows(
        arguments.treebank, arguments.split, arguments.data, columns, faulty=arguments.faulty
    )
    say(note)
    return gold, note

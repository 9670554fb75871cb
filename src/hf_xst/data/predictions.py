"""Files of predictions, which need not be what gold must be."""

from __future__ import annotations

from collections.abc import Sequence

from datasets import Dataset

from hf_xst.data.conllu import read_conllu
from hf_xst.data.layout import sentences_to_dataset
from hf_xst.data.preparation import prepare


def read_predictions(path: str, *, structure: bool, labels: Sequence[str] = ()) -> Dataset:
    """Read a CoNLL-U file of predictions in the prepared layout; a word's head may be any number.

    Args:
        path: the file.
        structure: heads and relations are wanted.
        labels: see `prepare`.

    Raises:
        ConlluError: the file is no CoNLL-U, or a head that is wanted is no number.
        GoldError: labels that are wanted are missing.
    """
    sentences = list(read_conllu(path))
    rows, _ = prepare(sentences_to_dataset(sentences), gold=False, labels=labels)
    if not structure:
        return rows
    for sentence in sentences:
        for number, head in enumerate(sentence.heads, start=1):
            if not head.isdecimal():
                raise sentence.error(f"word {number} has the head {head!r}; expected a number")
    rows = rows.add_column("head", [[int(head) for head in each.heads] for each in sentences])
    return rows.add_column("deprel", [each.deprels for each in sentences])

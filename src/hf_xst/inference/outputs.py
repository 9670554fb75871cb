"""Annotated sentences as CoNLL-U, as dictionaries or JSON lines, and as drawn trees.

What a CoNLL-U column holds goes there; other columns go to MISC under their own name. Probabilities go to
MISC as well:

- ``HeadProb``: that the head is right, whatever the label;
- ``LabelProb``: that the label is right, whatever the head;
- ``ArcProb``: that both are;
- ``TagProb``: that the tag is right;

and comments hold the log-probability of the whole tree (``# tree_log_prob``) or tag sequence
(``# tags_log_prob``), the k best (``# kbest 1 = {JSON}``), and why a sentence was left out
(``# not_annotated``; its predicted columns are then blank). All these are replaced where a sentence has them
already; everything else of the sentence stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from hf_xst.data import ConlluSentence
from hf_xst.data.conllu import conllu_texts
from hf_xst.data.sentence import BLANK, COLUMNS
from hf_xst.drawing import tree_text
from hf_xst.inference.annotation import Annotated, Annotation, Annotator, Form
from hf_xst.models.modeling import StructuredModel

_DIGITS = 4
_KBEST, _LEFT_OUT = "# kbest ", "# not_annotated = "


def probability_key(part: str) -> str:
    """Return the key in MISC of the probability of a part of a word's claims."""
    return f"{part.capitalize()}Prob"


class ConlluWriter:
    """Puts annotations into CoNLL-U sentences.

    Args:
        models: the models that annotate.
    """

    def __init__(self, models: Sequence[StructuredModel]) -> None:
        nothing = torch.empty(0, dtype=torch.long)
        parts = {part for model in models for part in model.candidate_parts(nothing)}
        columns = tuple(column for model in models for column in model.columns)
        self._columns = tuple(column for column in columns if column in COLUMNS)
        self._keys = {probability_key(part) for part in parts} | set(columns) - set(self._columns)
        self._comments = (*(f"# {model.whole}_log_prob =" for model in models), _KBEST, _LEFT_OUT)

    def sentence(self, sentence: ConlluSentence, annotation: Annotation) -> ConlluSentence:
        """Return the sentence with the annotation in it."""
        blank = [BLANK] * len(sentence.word_rows)
        columns: dict[str, Any] = {**dict.fromkeys(self._columns, blank), **annotation.columns}
        for part, values in annotation.probabilities.items():
            columns[probability_key(part)] = [f"{value:.{_DIGITS}f}" for value in values]
        found = sentence.annotated(columns, instead_of=self._keys)
        return found.commented(_comments(annotation), instead_of=self._comments)


def _comments(annotation: Annotation) -> list[str]:
    comments = [f"# {whole}_log_prob = {_fixed(value)}" for whole, value in annotation.log_probs.items()]
    for rank, (columns, log_prob) in enumerate(annotation.ranked, start=1):
        content = {"log_prob": _rounded(log_prob), **columns}
        comments.append(f"{_KBEST}{rank} = {json.dumps(content, ensure_ascii=False)}")
    if annotation.left_out is not None:
        comments.append(f"{_LEFT_OUT}{annotation.left_out}")
    return comments


def as_dict(sentence: ConlluSentence, annotation: Annotation) -> dict[str, Any]:
    """Return what is known of a sentence and was found out about it.

    Returns:
        `words`; `sent_id`, `text` and `upos` as far as the sentence has them; each predicted column; with
        confidence `confidence` (a list of probabilities for each part of the words' claims) and `log_prob`
        (by the name of what is whole); the k best as `kbest`; and `not_annotated`, the reason, where a
        sentence was left out.
    """
    given = {"sent_id": sentence.sent_id, "text": sentence.text}
    found: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    found["words"] = sentence.words
    if annotation.left_out is None and any(tag != BLANK for tag in sentence.upos):
        found["upos"] = sentence.upos
    found |= annotation.columns
    if annotation.log_probs:
        found |= {"confidence": annotation.probabilities, "log_prob": annotation.log_probs}
    if annotation.ranked:
        found["kbest"] = [{**each.columns, "log_prob": each.log_prob} for each in annotation.ranked]
    if annotation.left_out is not None:
        found["not_annotated"] = annotation.left_out
    return found


def drawing(sentence: ConlluSentence, annotation: Annotation) -> str:
    """Return the tree in characters under the sentence's comments, the k best below one another."""
    given = [comment for comment in sentence.comments if comment.startswith(("# sent_id", "# text"))]
    lines = [*given, *_comments(replace(annotation, ranked=()))]
    upos = annotation.columns.get("upos", sentence.upos)
    tags = upos if any(tag != BLANK for tag in upos) else None
    for rank, (columns, log_prob) in enumerate(annotation.ranked, start=1):
        lines.append(f"{_KBEST}{rank}, log_prob = {_fixed(log_prob)}")
        lines.append(tree_text(sentence.words, columns["head"], columns["deprel"], tags))
    if annotation.columns and not annotation.ranked:
        lines.append(
            tree_text(sentence.words, annotation.columns["head"], annotation.columns["deprel"], tags)
        )
    return "\n".join(lines) + "\n"


# -- what `hf-xst predict` writes -----------------------------------------------------------------------


def conllu_form(annotator: Annotator) -> Form:
    """Return what writes CoNLL-U."""
    writer = ConlluWriter(annotator.models)

    def write(block: Sequence[Annotated], before: ConlluSentence | None) -> str:
        return "".join(conllu_texts((writer.sentence(*each) for each in block), before))

    return write


def json_form(annotator: Annotator) -> Form:
    """Return what writes JSON lines, numbers rounded."""

    def write(block: Sequence[Annotated], before: ConlluSentence | None) -> str:
        rows = ({"sent_id": sentence.identifier, **as_dict(sentence, found)} for sentence, found in block)
        return "".join(json.dumps(_rounded(row), ensure_ascii=False) + "\n" for row in rows)

    return write


def drawing_form(annotator: Annotator) -> Form:
    """Return what draws trees, an empty line between them.

    Raises:
        ValueError: the models predict no trees.
    """
    check_parses(annotator.columns, "drawn trees")

    def write(block: Sequence[Annotated], before: ConlluSentence | None) -> str:
        return "".join(f"{drawing(*each)}\n" for each in block)

    return write


FORMS: Mapping[str, Callable[[Annotator], Form]] = {
    "conllu": conllu_form,
    "jsonl": json_form,
    "trees": drawing_form,
}


def check_parses(columns: Sequence[str], what: str) -> None:
    """Raise ValueError unless there are heads and relations among the columns."""
    if not {"head", "deprel"} <= set(columns):
        raise ValueError(f"{what} need a parser; the model predicts {' and '.join(columns)}")


def _fixed(value: float) -> str:
    return f"{_rounded(value):.{_DIGITS}f}"


def _rounded(value: Any) -> Any:
    """Round all numbers in nested lists and mappings; no minus before a zero."""
    if isinstance(value, float):
        return round(value, _DIGITS) + 0.0
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value

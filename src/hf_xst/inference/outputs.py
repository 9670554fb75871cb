"""Write annotated sentences as CoNLL-U, dictionaries, JSON lines, drawn trees and spaCy documents.

CoNLL-U columns hold what they are meant for; other columns go to MISC under their own name, and so do
probabilities:

- ``HeadProb``: of the head, whatever the label;
- ``LabelProb``: of the label, whatever the head;
- ``ArcProb``: of both together;
- ``TagProb``: of the tag.

Comments hold the log-probability of the whole tree (``# tree_log_prob``) or tag sequence
(``# tags_log_prob``), the k best (``# kbest 1 = {JSON}``), and why a sentence was skipped
(``# not_annotated``; its predicted columns are blank). Earlier entries of these kinds are replaced; the rest
of the sentence is unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from hf_xst.data import ConlluSentence
from hf_xst.data.conllu import conllu_texts
from hf_xst.data.sentence import BLANK, COLUMNS
from hf_xst.drawing import tree_text
from hf_xst.extras import import_optional
from hf_xst.inference.annotation import Annotator
from hf_xst.inference.confidence import Annotation
from hf_xst.models.columns import StructureColumns

Annotated = tuple[ConlluSentence, Annotation]
Writer = Callable[[Sequence[Annotated], ConlluSentence | None], str]
"""Writes a block of annotated sentences, given the sentence before them in the file, if any."""
_DIGITS = 4
_KBEST, _SKIPPED = "# kbest ", "# not_annotated = "
_JSON_KEYS = ("not_annotated", "confidence", "log_prob", "kbest")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPACY_COLUMNS = {"upos": "pos", "xpos": "tags", "deprel": "deps"}


class ConlluWriter:
    """Write annotations into CoNLL-U sentences; `models` predict the columns."""

    def __init__(self, models: Sequence[StructureColumns]) -> None:
        nothing = torch.empty(0, dtype=torch.long)
        parts = {part for model in models for part in model.candidate_parts(nothing)}
        columns = tuple(column for model in models for column in model.columns)
        self._columns = tuple(column for column in columns if column in COLUMNS)
        self._keys = {_probability_key(part) for part in parts} | set(columns) - set(self._columns)
        self._comments = (*(f"# {model.structure_name}_log_prob =" for model in models), _KBEST, _SKIPPED)

    def sentence(self, sentence: ConlluSentence, annotation: Annotation) -> ConlluSentence:
        """Return the sentence with its annotation."""
        blank = [BLANK] * len(sentence.word_rows)
        columns: dict[str, Any] = {**dict.fromkeys(self._columns, blank), **annotation.columns}
        for part, values in annotation.probabilities.items():
            columns[_probability_key(part)] = [f"{value:.{_DIGITS}f}" for value in values]
        annotated = sentence.with_annotation(columns, drop=self._keys)
        return annotated.with_comments(_comments(annotation), drop=self._comments)


def _probability_key(part: str) -> str:
    """Return the key in MISC of the probability of a part of a word's claim."""
    return f"{part.capitalize()}Prob"


def _comments(annotation: Annotation) -> list[str]:
    comments = [f"# {name}_log_prob = {_fixed(value)}" for name, value in annotation.log_probs.items()]
    for rank, (columns, log_prob) in enumerate(annotation.ranked, start=1):
        content = {"log_prob": _rounded(log_prob), **columns}
        comments.append(f"{_KBEST}{rank} = {json.dumps(content, ensure_ascii=False)}")
    return comments + ([] if annotation.skipped is None else [f"{_SKIPPED}{annotation.skipped}"])


def as_dict(sentence: ConlluSentence, annotation: Annotation) -> dict[str, Any]:
    """Return a sentence and its annotation as a dictionary.

    Returns:
        `words`; `sent_id`, `text` and `upos` if the sentence has them; each predicted column; with
        confidence `confidence` (probabilities by the part of a word's claim) and `log_prob` (by the name of
        the structure); the k best as `kbest`; and `not_annotated`, the reason why a sentence was skipped.
    """
    known = {"sent_id": sentence.sent_id, "text": sentence.text}
    result: dict[str, Any] = {key: value for key, value in known.items() if value is not None}
    result["words"] = sentence.words
    if annotation.skipped is not None:
        return result | {"not_annotated": annotation.skipped}
    if any(tag != BLANK for tag in sentence.upos):
        result["upos"] = sentence.upos
    result |= annotation.columns
    if annotation.log_probs:
        result |= {"confidence": annotation.probabilities, "log_prob": annotation.log_probs}
    if annotation.ranked:
        result["kbest"] = [{**each.columns, "log_prob": each.log_prob} for each in annotation.ranked]
    return result


def drawing(sentence: ConlluSentence, annotation: Annotation) -> str:
    """Draw the tree, or the k best trees, for a terminal, below the comments of the sentence."""
    comments = [comment for comment in sentence.comments if comment.startswith(("# sent_id", "# text"))]
    lines = [*comments, *_comments(replace(annotation, ranked=()))]
    upos = annotation.columns.get("upos", sentence.upos)
    tags = upos if any(tag != BLANK for tag in upos) else None
    trees = [
        (f"{_KBEST}{rank}, log_prob = {_fixed(each.log_prob)}", each.columns)
        for rank, each in enumerate(annotation.ranked, start=1)
    ]
    if annotation.columns and not trees:
        trees = [("", annotation.columns)]
    for heading, columns in trees:
        lines += [heading] if heading else []
        lines.append(tree_text(sentence.words, columns["head"], columns["deprel"], tags))
    return "\n".join(lines) + "\n"


def check_parses(columns: Sequence[str], output: str) -> None:
    """Raise ValueError unless heads and relations are predicted."""
    if not {"head", "deprel"} <= set(columns):
        raise ValueError(f"{output} requires a parser; the model predicts {' and '.join(columns)}")


def _fixed(value: float) -> str:
    return f"{_rounded(value):.{_DIGITS}f}"


def _rounded(value: Any) -> Any:
    """Round all numbers in nested lists and mappings, without negative zeros."""
    if isinstance(value, float):
        return round(value, _DIGITS) + 0.0
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value


# -- formats of `hf-xst predict` -------------------------------------------------------------------------


def _conllu_writer(annotator: Annotator) -> Writer:
    writer = ConlluWriter(annotator.models)
    return lambda block, before: "".join(conllu_texts((writer.sentence(*each) for each in block), before))


def _json_writer(annotator: Annotator) -> Writer:
    replaced = {*annotator.columns, *_JSON_KEYS}

    def line(sentence: ConlluSentence, annotation: Annotation) -> str:
        row = _rounded({"sent_id": sentence.identifier, **as_dict(sentence, annotation)})
        for key, value in sentence.extra.items():
            if key not in replaced and (key not in row or value not in (None, "")):
                row[key] = value
        text = json.dumps(row, ensure_ascii=False)
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"

    return lambda block, before: "".join(line(*each) for each in block)


def _tree_writer(annotator: Annotator) -> Writer:
    check_parses(annotator.columns, "--to trees")
    return lambda block, before: "".join(f"{drawing(*each)}\n" for each in block)


WRITERS: Mapping[str, Callable[[Annotator], Writer]] = {
    "conllu": _conllu_writer,
    "jsonl": _json_writer,
    "trees": _tree_writer,
}
"""Writers by the name of their format; they raise ValueError if the models do not suit the format."""


# -- spaCy -----------------------------------------------------------------------------------------------


def spacy_doc(sentences: Sequence[Annotated], vocab: Any = None) -> Any:
    """Return one spaCy `Doc` of all sentences, with the known tags, heads and relations.

    Confidences are in `doc.user_data["hf_xst"]`, one dictionary for each sentence. The vocabulary is that of
    the spaCy pipeline that the document is for; it defaults to a blank one.
    """
    doc_class = import_optional("spacy.tokens", "spacy").Doc
    vocab = import_optional("spacy.vocab", "spacy").Vocab() if vocab is None else vocab
    columns: dict[str, list[Any]] = {
        "words": [word for sentence, _ in sentences for word in sentence.words],
        "spaces": [space for sentence, _ in sentences for space in sentence.spaces],
    }
    for column, name in _SPACY_COLUMNS.items():
        values = [value for each in sentences for value in _values(column, *each)]
        if any(values):
            columns[name] = values
    if "deps" in columns:
        columns["heads"] = _absolute_heads(sentences)
    else:
        columns["sent_starts"] = [index == 0 for each in sentences for index in range(len(each[0].word_rows))]
    doc = doc_class(vocab, **columns)
    doc.user_data["hf_xst"] = [
        {"confidence": each.probabilities, "log_prob": each.log_probs} for _, each in sentences
    ]
    return doc


def _values(column: str, sentence: ConlluSentence, annotation: Annotation) -> list[str]:
    """Return a predicted column, or else the tags of the sentence; "" for blanks."""
    present = [BLANK] * len(sentence.word_rows) if column == "deprel" else sentence.column(column)
    return ["" if value == BLANK else value for value in annotation.columns.get(column, present)]


def _absolute_heads(sentences: Sequence[Annotated]) -> list[int]:
    """Return the index of each word's head in the text; that of the word itself for a root."""
    heads: list[int] = []
    for sentence, annotation in sentences:
        first = len(heads)
        flat = [0, *[1] * (len(sentence.word_rows) - 1)]  # for a skipped sentence
        for index, head in enumerate(annotation.columns.get("head", flat)):
            heads.append(first + (head - 1 if head else index))
    return heads

"""Annotated sentences as objects of spaCy and of NLTK; both are extras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hf_xst.data import ConlluSentence
from hf_xst.data.sentence import BLANK
from hf_xst.extras import import_optional
from hf_xst.inference.annotation import Annotated, Annotation

_TAG_COLUMNS = ("upos", "xpos")
_SPACY_COLUMNS = {"upos": "pos", "xpos": "tags", "deprel": "deps"}
_BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-", " ": "_"})


def spacy_doc(sentences: Sequence[Annotated], vocab: Any = None) -> Any:
    """Return one spaCy `Doc` of all sentences, with tags, heads and relations as far as they are known.

    Confidences are in `doc.user_data["hf_xst"]`, one dictionary for each sentence.

    Args:
        sentences: the sentences of a text.
        vocab: the vocabulary of the spaCy pipeline that the document is for; a blank one by default.

    Raises:
        ImportError: spaCy is not installed.
    """
    doc_class = import_optional("spacy.tokens", "spacy").Doc
    vocab = import_optional("spacy.vocab", "spacy").Vocab() if vocab is None else vocab
    columns: dict[str, list[Any]] = {
        "words": [word for sentence, _ in sentences for word in sentence.words],
        "spaces": [
            "SpaceAfter=No" not in cell.split("|")
            for sentence, _ in sentences
            for cell in sentence.column("misc")
        ],
    }
    for column, name in _SPACY_COLUMNS.items():
        values = [value for each in sentences for value in _values(column, *each)]
        if any(values):
            columns[name] = values
    if "deps" in columns:
        columns["heads"] = _absolute_heads(sentences)
    else:
        columns["sent_starts"] = [place == 0 for each in sentences for place in range(len(each[0].word_rows))]
    doc = doc_class(vocab, **columns)
    doc.user_data["hf_xst"] = [
        {"confidence": found.probabilities, "log_prob": found.log_probs} for _, found in sentences
    ]
    return doc


def _values(column: str, sentence: ConlluSentence, annotation: Annotation) -> list[str]:
    """Return a column as predicted, or a tag column as given; "" where there is nothing."""
    given = sentence.column(column) if column in _TAG_COLUMNS else [BLANK] * len(sentence.word_rows)
    return ["" if value == BLANK else value for value in annotation.columns.get(column, given)]


def _absolute_heads(sentences: Sequence[Annotated]) -> list[int]:
    """Return for each word of a text the place of its head in the text; its own place for a root."""
    places: list[int] = []
    for sentence, found in sentences:
        first = len(places)
        flat = [0, *[1] * (len(sentence.word_rows) - 1)]  # of a sentence that was left out
        heads = found.columns.get("head", flat)
        places += [first + (place if head == 0 else head - 1) for place, head in enumerate(heads)]
    return places


def nltk_graph(sentence: ConlluSentence, annotation: Annotation) -> Any:
    """Return a sentence's tree as an NLTK `DependencyGraph`.

    Raises:
        ImportError: NLTK is not installed.
        ValueError: the sentence was left out.
    """
    return _graph(sentence, annotation, sentence.words)


def nltk_tags(sentence: ConlluSentence, annotation: Annotation, column: str) -> list[tuple[str, str]]:
    """Return a sentence's words with their tags, as NLTK keeps tagged text; nothing is needed for it."""
    tags = annotation.columns.get(column) or sentence.column(column)
    return list(zip(sentence.words, tags, strict=True))


def nltk_tree(sentence: ConlluSentence, annotation: Annotation) -> Any:
    """Return a sentence's tree as an NLTK `Tree` of words, each above its dependents; see `nltk_graph`."""
    return nltk_graph(sentence, annotation).tree()


def nltk_brackets(sentence: ConlluSentence, annotation: Annotation) -> str:
    """Return a sentence's tree in brackets on one line, as `nltk.Tree.fromstring` reads it.

    Brackets in words become ``-LRB-`` and ``-RRB-``, spaces become underscores; see `nltk_graph`.
    """
    words = [word.translate(_BRACKETS) for word in sentence.words]
    text: str = _graph(sentence, annotation, words).tree().pformat(margin=sum(map(len, words)) * 10 + 100)
    return text if text.startswith("(") else f"({text})"


def _graph(sentence: ConlluSentence, annotation: Annotation, words: Sequence[str]) -> Any:
    if annotation.left_out is not None:
        raise ValueError(f"sentence {sentence.identifier} has no tree: it has {annotation.left_out}")
    graph_class = import_optional("nltk.parse.dependencygraph", "nltk").DependencyGraph
    heads, relations = annotation.columns["head"], annotation.columns["deprel"]
    tags = annotation.columns.get("upos", sentence.upos)
    kept = (sentence.column(name) for name in ("lemma", "xpos", "feats"))
    rows = [
        f"{place}\t{word}\t{lemma}\t{tag}\t{xpos}\t{feats}\t{head}\t{relation}\t_\t_"
        for place, (word, tag, head, relation, lemma, xpos, feats) in enumerate(
            zip(words, tags, heads, relations, *kept, strict=True), start=1
        )
    ]
    root = relations[heads.index(0)]
    return graph_class("\n".join(rows), cell_separator="\t", top_relation_label=root)

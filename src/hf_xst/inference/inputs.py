"""What pipelines take: running text, words, CoNLL-U, or rows of data sets."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, NamedTuple, cast

import datasets
from torch.utils.data import Dataset

from hf_xst.data import ConlluSentence, read_conllu
from hf_xst.data.layout import TREEBANK_FEATURES, dataset_to_sentences
from hf_xst.data.segmentation import Segmenter, paragraph_sentences, paragraphs, segment
from hf_xst.data.sentence import COLUMNS
from hf_xst.data.streams import BYTE_ORDER_MARK

_EXPECTED = (
    "expected text, a list of words, CoNLL-U (a string or a ConlluSentence), or a mapping with words, tokens "
    "or text"
)


class Given(NamedTuple):
    """The sentences of one input; text may hold any number, everything else holds one."""

    sentences: list[ConlluSentence]
    is_text: bool


def is_single(inputs: Any, split_into_words: bool | None) -> bool:
    """Say whether something is one input, and not several.

    A list of strings is the words of one sentence, unless `split_into_words` is false: then it is a list of
    texts.

    Raises:
        ValueError: a list of strings holds white space and nothing says whether they are words or texts.
    """
    if isinstance(inputs, (str, Mapping, ConlluSentence)):
        return True
    strings = isinstance(inputs, (list, tuple)) and inputs and all(isinstance(item, str) for item in inputs)
    if not strings or split_into_words is False:
        return False
    if split_into_words is None:
        spaced = next((item for item in inputs if len(item.split()) > 1), None)
        if spaced is not None:
            raise ValueError(
                f"found {spaced[:40]!r} in a list of strings: are these texts, or the words of a sentence? "
                "Say is_split_into_words=False for texts, is_split_into_words=True for words"
            )
    return True


def several(inputs: Any) -> Iterator[Any]:
    """Give the inputs that something holds; the rows of a treebank come with all that CoNLL-U holds.

    Raises:
        ValueError: it is nothing of the kind.
    """
    if isinstance(inputs, datasets.Dataset) and inputs.features == TREEBANK_FEATURES:
        return dataset_to_sentences(inputs)
    if isinstance(inputs, Iterable):
        return iter(inputs)
    if isinstance(inputs, Dataset):
        return (inputs[place] for place in range(len(cast("Sized", inputs))))
    raise ValueError(
        f"found {str(inputs)[:60]!r} ({type(inputs).__name__}); {_EXPECTED}, or several of these"
    )


def given(item: Any, segmenter: Segmenter = segment, place: int = 1) -> Given:
    """Read one input.

    Args:
        item: see the module.
        segmenter: cuts text into sentences and words.
        place: the input's place among others, for messages.

    Raises:
        ValueError: it cannot be read, or is nothing of the kind.
    """
    if isinstance(item, ConlluSentence):
        return Given([item], is_text=False)
    if isinstance(item, Mapping) and not {"words", "tokens"} & set(item):
        item = item.get("text", item)
    if isinstance(item, str):
        found = list(_of_text(item, segmenter))
    elif isinstance(item, Mapping):
        found = [_of_row(item)]
    else:
        found = [ConlluSentence.from_words(_words(item))]
    named = [replace(each, path=f"<input {place}>", number=number) for number, each in enumerate(found, 1)]
    return Given(named, isinstance(item, str))


def _of_text(text: str, segmenter: Segmenter) -> Iterator[ConlluSentence]:
    text = text.removeprefix(BYTE_ORDER_MARK)
    rows = (line for line in text.split("\n") if line.strip() and not line.startswith("#"))
    if next(rows, "").count("\t") == len(COLUMNS) - 1:
        yield from read_conllu(io.StringIO(text))
    else:
        for paragraph in paragraphs(text):
            yield from paragraph_sentences(paragraph, segmenter)


def _of_row(row: Mapping[str, Any]) -> ConlluSentence:
    words = _words(row.get("words", row.get("tokens")))
    name, upos = row.get("sent_id"), row.get("upos")
    name = None if name in (None, "") else str(name)
    if upos is not None and not all(isinstance(tag, str) for tag in upos):
        raise ValueError(f"found upos {str(upos)[:60]}; expected names of tags, one for each word")
    return ConlluSentence.from_words(words, sent_id=name, columns=None if upos is None else {"upos": upos})


def _words(item: Any) -> Sequence[str]:
    if isinstance(item, (list, tuple)) and item and all(isinstance(word, str) for word in item):
        return item
    raise ValueError(f"found {str(item)[:60]!r} ({type(item).__name__}); {_EXPECTED}")

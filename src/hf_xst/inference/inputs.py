"""Read the inputs of pipelines: running text, words, CoNLL-U, or rows of data sets."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, NamedTuple, cast

import datasets
from torch.utils.data import Dataset

from hf_xst.data import ConlluSentence, read_conllu
from hf_xst.data.layout import TREEBANK_FEATURES, dataset_to_sentences
from hf_xst.data.segmentation import Segmenter, paragraph_sentences, paragraphs, segment
from hf_xst.data.sentence import BLANK, COLUMNS
from hf_xst.data.streams import BYTE_ORDER_MARK

_EXPECTED = (
    "expected text, a list of words, CoNLL-U (a string or a ConlluSentence), or a mapping with words, tokens "
    "or text"
)

_BREAK = re.compile(r"\r\n?|\n")
_FIRST_ID = re.compile(r"(1|1-[0-9]+|0\.1)\s")
_COMMENT = re.compile(r"#\s*(sent_id|text|newdoc|newpar|global\.columns)\b")


class Input(NamedTuple):
    """The sentences of one input: any number for text, one for everything else."""

    sentences: list[ConlluSentence]
    is_text: bool


def as_list(inputs: Any) -> Any:
    """Return arrays and series (NumPy, pandas, Polars, Arrow) as lists, other inputs unchanged.

    Raises:
        ValueError: if the input is a table of these libraries, which iterates over its columns.
    """
    if all(hasattr(inputs, name) for name in ("columns", "shape")):
        raise ValueError(f"found a table ({type(inputs).__name__}); pass a column: list(table['text'])")
    names = () if isinstance(inputs, datasets.Dataset) else ("tolist", "to_list")
    return next((getattr(inputs, name)() for name in names if hasattr(inputs, name)), inputs)


def is_single(inputs: Any, split_into_words: bool | None) -> bool:
    """Decide whether a pipeline got one input or several.

    A list of strings is the words of one sentence, unless `split_into_words` is false: then it is a list of
    texts.

    Raises:
        ValueError: if the strings contain white space and `split_into_words` is not set.
    """
    if isinstance(inputs, (str, Mapping, ConlluSentence)):
        return True
    is_strings = (
        isinstance(inputs, (list, tuple)) and inputs and all(isinstance(each, str) for each in inputs)
    )
    if not is_strings or split_into_words is False:
        return False
    spaced = next((each for each in inputs if len(each.split()) > 1), None)
    if split_into_words is None and spaced is not None:
        raise ValueError(
            f"found {spaced[:40]!r} in a list of strings: pass is_split_into_words=False if these are texts, "
            "is_split_into_words=True if they are the words of a sentence"
        )
    return True


def iterate_inputs(inputs: Any) -> Iterator[Any]:
    """Iterate over inputs, or raise ValueError; rows of a treebank become complete CoNLL-U sentences."""
    if isinstance(inputs, datasets.Dataset) and inputs.features == TREEBANK_FEATURES:
        return dataset_to_sentences(inputs)
    if isinstance(inputs, Iterable):
        return iter(inputs)
    if isinstance(inputs, Dataset):
        return (inputs[index] for index in range(len(cast("Sized", inputs))))
    raise _unexpected(inputs, ", or several of these")


def read_input(item: Any, segmenter: Segmenter = segment, number: int = 1) -> Input:
    """Read one input, or raise ValueError; `number` names it in messages."""
    item = as_list(item)
    if isinstance(item, ConlluSentence):
        return Input([item], is_text=False)
    if isinstance(item, Mapping) and not {"words", "tokens"} & set(item):
        item = item.get("text", item)
    if isinstance(item, str):
        sentences = list(_read_text(item, segmenter))
    elif isinstance(item, Mapping):
        sentences = [_read_row(item)]
    else:
        sentences = [ConlluSentence.from_words(_words(item))]
    named = [replace(each, path=f"<input {number}>", number=i) for i, each in enumerate(sentences, start=1)]
    return Input(named, isinstance(item, str))


def _read_text(text: str, segmenter: Segmenter) -> Iterator[ConlluSentence]:
    text = text.removeprefix(BYTE_ORDER_MARK)
    if _looks_like_conllu([line for line in _BREAK.split(text) if line.strip()]):
        yield from read_conllu(io.StringIO(text))
    else:
        for paragraph in paragraphs(text):
            yield from paragraph_sentences(paragraph, segmenter)


def _looks_like_conllu(lines: Sequence[str]) -> bool:
    """Return whether text is CoNLL-U, well-formed or not, rather than running text."""
    row = next((line for line in lines if not line.startswith("#")), "")
    columns = row.split("\t")
    if _FIRST_ID.match(row):  # tabs may have become spaces
        return len(columns) > 2 or (len(row.split()) >= len(COLUMNS) - 2 and BLANK in row.split())
    return len(columns) == len(COLUMNS) or bool(lines and _COMMENT.match(lines[0]))


def _read_row(row: Mapping[str, Any]) -> ConlluSentence:
    words = _words(row.get("words", row.get("tokens")))
    name, upos = row.get("sent_id"), row.get("upos")
    name = None if name in (None, "") else str(name)
    if upos is not None and not all(isinstance(tag, str) for tag in upos):
        raise ValueError(f"found upos {str(upos)[:60]}; expected names of tags, one for each word")
    return ConlluSentence.from_words(words, sent_id=name, columns=None if upos is None else {"upos": upos})


def _words(item: Any) -> Sequence[str]:
    if isinstance(item, (list, tuple)) and item and all(isinstance(word, str) for word in item):
        return item
    raise _unexpected(item)


def _unexpected(item: Any, more: str = "") -> ValueError:
    return ValueError(f"found {str(item)[:60]!r} ({type(item).__name__}); {_EXPECTED}{more}")

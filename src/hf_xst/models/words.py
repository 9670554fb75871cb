"""The words of encoder A: a table of word vectors that can be replaced by another language's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hf_xst.data.vectors import WordVectors, example_file_name, lookup_forms
from hf_xst.files import write_text
from hf_xst.models.configuration import StructuredConfig
from hf_xst.records import check_format, read_json

WORDS_FILE = "words.json"
PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
_FORMAT_VERSION = 1


class WordTable:
    """Distinct words in the order of their vectors, from index `FIRST_WORD`; 0 is padding, 1 unknown."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._index = {word: number for number, word in enumerate(self.words, start=FIRST_WORD)}
        if len(self._index) < len(self.words):
            numbered = enumerate(self.words, start=FIRST_WORD)
            duplicate = next(word for number, word in numbered if self._index[word] != number)
            raise ValueError(f"duplicate word {duplicate!r}")

    def lookup(self, word: str) -> int:
        """Return the index of the first known form of a word (`lookup_forms`), or `UNKNOWN`."""
        index = self._index.get(word)
        if index is not None:
            return index
        for form in lookup_forms(word):
            if form in self._index:
                return self._index[form]
        return UNKNOWN

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as JSON, atomically."""
        content = {"format_version": _FORMAT_VERSION, "specials": [], "words": self.words}
        write_text(path, json.dumps(content, ensure_ascii=False, indent=0) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordTable:
        """Read a table; raise ValueError if the file is not a table of this format version."""
        content = read_json(Path(path))
        check_format(content, _FORMAT_VERSION, str(path))
        words = content.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{path}: words is not a list of strings")
        return cls(words)


class VectorTable(nn.Module):
    """Word vectors, looked up by form (exact, lower-cased, digits as 0); zeros for unknown words.

    Frozen vectors are a buffer and may share memory with the `WordVectors` they came from, so several models
    over one file hold it once; trained vectors are a parameter and a copy. Models may also share the module
    (`one.encoder.words = other.encoder.words`): each is saved with all of it, and gets its own copy when
    loaded.

    Args:
        config: number of words, their width and space, and whether the vectors are trained.
    """

    asset_names = (WORDS_FILE,)
    """Files beside the weights."""
    vectors: Tensor

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        self.table = WordTable([])
        self.space: dict[str, Any] | None = config.vector_space
        self._set_vectors(torch.zeros(config.vocabulary_size, config.word_size), config.freeze_word_vectors)

    def reset_parameters(self) -> None:
        """Set all vectors to zero: if a checkpoint lacks them, every word is unknown."""
        nn.init.zeros_(self.vectors)

    @property
    def is_frozen(self) -> bool:
        """Whether the vectors are a buffer."""
        return "vectors" in self._buffers

    def freeze(self, frozen: bool = True) -> None:
        """Turn the vectors into a buffer (frozen) or a trainable parameter."""
        if frozen != self.is_frozen:
            self._set_vectors(self.vectors.detach(), frozen)

    def _set_vectors(self, vectors: Tensor, frozen: bool) -> None:
        """Store the vectors as a buffer or a parameter; both have the same name in saved files."""
        self._parameters.pop("vectors", None)
        self._buffers.pop("vectors", None)
        if frozen:
            self.register_buffer("vectors", vectors)
        else:
            self.register_parameter("vectors", nn.Parameter(vectors.clone()))

    def replace(self, vectors: WordVectors) -> None:
        """Replace the table, keeping dtype and device; raise ValueError if space or width differ."""
        width = self.vectors.shape[1]
        space = {"name": vectors.name, "dimension": vectors.dimension, "sha256": vectors.sha256}
        expected = self.space["name"] if self.space is not None else vectors.name
        if (expected, width) != (vectors.name, vectors.dimension):
            hint = f", or rename the file to {example_file_name(str(expected))} if they already are"
            raise ValueError(
                f"the model reads vectors of the space {expected!r} ({width} dimensions), found "
                f"{vectors.name!r} ({vectors.dimension} dimensions); align them first "
                "(scripts/align_vectors.py)" + (hint if width == vectors.dimension else "")
            )
        matrix = torch.from_numpy(np.require(vectors.matrix, np.float32, ["C", "W"]))
        self.table = WordTable(vectors.words)
        self.space = space
        self._set_vectors(matrix.to(self.vectors), self.is_frozen)

    def featurise(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Look up B lists of words: `word_ids` (B, N), 0 padding, 1 unknown, else 2 + row of the table."""
        rows = [
            torch.tensor([self.table.lookup(word) for word in words], dtype=torch.long) for words in sentences
        ]
        return {"word_ids": nn.utils.rnn.pad_sequence(rows, batch_first=True)}

    def forward(self, lengths: Tensor, word_ids: Tensor) -> Tensor:
        """Return embeddings (B, N, D), zeros for padding and unknown words."""
        if not self.vectors.shape[0]:
            return self.vectors.new_zeros(*word_ids.shape, self.vectors.shape[1])
        embeddings = nn.functional.embedding((word_ids - FIRST_WORD).clamp(min=0), self.vectors)
        return embeddings.masked_fill((word_ids < FIRST_WORD)[..., None], 0)

    def write_settings(self, config: StructuredConfig) -> None:
        """Write the fields that rebuild this table to a configuration."""
        config.vocabulary_size = self.vectors.shape[0]
        config.vector_space = self.space
        config.freeze_word_vectors = self.is_frozen

    def describe(self) -> str:
        """Return everything besides the vectors that the embeddings depend on: the words."""
        return "\n".join(self.table.words)

    def save_assets(self, folder: Path) -> None:
        """Write the word list."""
        self.table.save(folder / WORDS_FILE)

    def load_assets(self, files: dict[str, str]) -> None:
        """Read the word list from local paths by `asset_names`; raise ValueError if its length is wrong."""
        path = files[WORDS_FILE]
        self.table = WordTable.load(path)
        if len(self.table.words) != self.vectors.shape[0]:
            raise ValueError(
                f"{path} lists {len(self.table.words)} words, but the weights hold {self.vectors.shape[0]} "
                "vectors; the folder mixes two models"
            )

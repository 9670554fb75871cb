"""Encoder A's words: a table of word vectors that can be exchanged for another language's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hf_xst.data.vectors import WordVectors, file_in
from hf_xst.data.words import WordTable
from hf_xst.models.configuration import StructuredConfig

WORDS_FILE = "words.json"


class VectorTable(nn.Module):
    """Word vectors looked up by form (exact, lower-cased, digits as 0); unknown words have no state (zeros).

    Frozen vectors are a buffer and may share memory with the `WordVectors` they came from, so that several
    models over one file hold it once. Vectors that are trained are a parameter, and a copy. Models may also
    share the whole module (`one.encoder.words = other.encoder.words`): each is saved with all of it, and
    loaded again they have a copy each.

    Args:
        config: gives the number of words, their width and space, and whether the vectors are trained.
    """

    vectors: Tensor

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        self.table = WordTable([])
        self.space: dict[str, Any] | None = config.vector_space
        self._set_vectors(torch.zeros(config.vocabulary_size, config.word_size), config.freeze_word_vectors)

    def reset_parameters(self) -> None:
        """Clear the vectors: where a checkpoint lacks them, every word is unknown."""
        nn.init.zeros_(self.vectors)

    @property
    def is_frozen(self) -> bool:
        """Whether the vectors are a buffer."""
        return "vectors" in self._buffers

    def freeze(self, frozen: bool = True) -> None:
        """Turn the vectors into a buffer (frozen) or a trainable parameter, unless they are already."""
        if frozen != self.is_frozen:
            self._set_vectors(self.vectors.detach(), frozen)

    def _set_vectors(self, vectors: Tensor, frozen: bool) -> None:
        """Keep the vectors as a buffer or a parameter of the same name, so that files are alike."""
        self._parameters.pop("vectors", None)
        self._buffers.pop("vectors", None)
        if frozen:
            self.register_buffer("vectors", vectors)
        else:
            self.register_parameter("vectors", nn.Parameter(vectors.clone()))

    def replace(self, vectors: WordVectors) -> None:
        """Put all rows of `vectors` in place of the present table, in its dtype and on its device.

        Raises:
            ValueError: the vectors are of another space or width.
        """
        width = self.vectors.shape[1]
        found = {"name": vectors.name, "dimension": vectors.dimension, "sha256": vectors.sha256}
        expected = self.space["name"] if self.space is not None else found["name"]
        if (expected, width) != (found["name"], found["dimension"]):
            named = f", or, if they are, call the file {file_in(str(expected))}"
            raise ValueError(
                f"the model reads vectors of the space {expected!r} ({width} numbers); found "
                f"{found['name']!r} ({found['dimension']} numbers). Vectors of one space are needed: align "
                "them first (hf-xst align-vectors)" + (named if width == found["dimension"] else "")
            )
        matrix = torch.from_numpy(np.require(vectors.matrix, np.float32, ["C", "W"]))
        self.table = WordTable(vectors.words)
        self.space = found
        self._set_vectors(matrix.to(self.vectors), self.is_frozen)

    def featurise(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Look words up.

        Args:
            sentences: B lists of words.

        Returns:
            `word_ids` (B, N): 0 padding, 1 unknown, else 2 + row of the table.
        """
        rows = [torch.tensor(self.table.lookup_many(words), dtype=torch.long) for words in sentences]
        return {"word_ids": nn.utils.rnn.pad_sequence(rows, batch_first=True)}

    def forward(self, lengths: Tensor, word_ids: Tensor) -> Tensor:
        """Return states (B, N, D), zeros for padding and unknown words."""
        first = self.table.first_word
        if not self.vectors.shape[0]:
            return self.vectors.new_zeros(*word_ids.shape, self.vectors.shape[1])
        states = nn.functional.embedding((word_ids - first).clamp(min=0), self.vectors)
        return states.masked_fill((word_ids < first)[..., None], 0)

    def describe_in(self, config: StructuredConfig) -> None:
        """Write into a configuration what is needed to build this table again."""
        config.vocabulary_size = self.vectors.shape[0]
        config.vector_space = self.space
        config.freeze_word_vectors = self.is_frozen

    def save_assets(self, folder: Path) -> None:
        """Write the word list beside the weights."""
        self.table.save(folder / WORDS_FILE)

    def load_assets(self, files: dict[str, str | None]) -> None:
        """Read the word list; `files` maps `asset_names` to local paths.

        Raises:
            ValueError: the list is missing, or does not go with the vectors.
        """
        path = files[WORDS_FILE]
        if path is None:
            raise ValueError(f"the model's folder has no {WORDS_FILE}; save it again with save_pretrained")
        self.table = WordTable.load(path)
        if len(self.table.words) != self.vectors.shape[0]:
            raise ValueError(
                f"{path} names {len(self.table.words)} words, the weights hold {self.vectors.shape[0]} "
                "vectors; the folder mixes two models"
            )

    @staticmethod
    def asset_names() -> tuple[str, ...]:
        """Files beside the weights."""
        return (WORDS_FILE,)

"""Encoder A's words: a table of word vectors that can be exchanged for another language's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from hf_xst.data.vectors import WordVectors
from hf_xst.data.words import WordTable

from .configuration import StructuredConfig

WORDS_FILE = "words.json"
# Indices of a WordTable without special words: padding, unknown, then the vectors' rows.
FIRST_ROW = 2


class VectorTable(nn.Module):
    """Word vectors looked up by form (exact, lower-cased, digits as 0); unknown words have no state (zeros).

    Args:
        config: gives the number of words, their width, and whether the vectors are trained.
    """

    vectors: Tensor

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        self.table = WordTable([])
        self._set_vectors(torch.zeros(config.vocabulary_size, config.word_size), config.freeze_word_vectors)

    def _set_vectors(self, vectors: Tensor, frozen: bool) -> None:
        """Keep the vectors as a buffer or a parameter of the same name, so that files are alike."""
        if "vectors" in self._parameters:
            del self._parameters["vectors"]
        if "vectors" in self._buffers:
            del self._buffers["vectors"]
        if frozen:
            self.register_buffer("vectors", vectors.detach())
        else:
            self.register_parameter("vectors", nn.Parameter(vectors.detach()))

    def freeze(self, frozen: bool = True) -> None:
        """Turn the vectors into a buffer (frozen) or a trainable parameter."""
        self._set_vectors(self.vectors, frozen)

    def replace(self, vectors: WordVectors, *, frozen: bool) -> None:
        """Put all rows of `vectors` in the place of the present table."""
        self.table = WordTable(vectors.words)
        matrix = torch.as_tensor(vectors.matrix, dtype=torch.float32)
        self._set_vectors(matrix.to(self.vectors.device), frozen)

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
        known = word_ids >= FIRST_ROW
        if not self.vectors.shape[0]:
            return self.vectors.new_zeros(*word_ids.shape, self.vectors.shape[1])
        states = nn.functional.embedding((word_ids - FIRST_ROW).clamp(min=0), self.vectors)
        return torch.where(known[..., None], states, states.new_zeros(()))

    def save_assets(self, folder: Path) -> None:
        """Write the word list beside the weights."""
        self.table.save(folder / WORDS_FILE)

    def load_assets(self, files: dict[str, str | None]) -> None:
        """Read the word list; `files` maps `asset_names` to local paths."""
        path = files[WORDS_FILE]
        if path is None:
            raise ValueError(f"the model's folder has no {WORDS_FILE}; save it again with save_pretrained")
        self.table = WordTable.load(path)
        if len(self.table) - FIRST_ROW != self.vectors.shape[0]:
            raise ValueError(
                f"{path} names {len(self.table) - FIRST_ROW} words, the weights hold {self.vectors.shape[0]} "
                "vectors; the folder mixes two models"
            )

    @staticmethod
    def asset_names() -> tuple[str, ...]:
        """Files beside the weights."""
        return (WORDS_FILE,)

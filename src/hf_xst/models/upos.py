"""Embed UPOS tags as part of a model's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

UNKNOWN, SPECIAL = 0, 1
_FIRST_NAMED = 2
_BLANK = "_"


class UposEmbeddings(nn.Module):
    """Embeddings of UPOS tags: row 0 for unknown tags, row 1 for special words, then the named tags.

    Args:
        names: the tags that have an embedding of their own.
        size: width E of an embedding.
        dropout: rate at which a tag is replaced by the unknown tag in training. If positive, the unknown tag
            is trained, and sentences without tags are accepted.

    Raises:
        ValueError: `names` is empty.
    """

    def __init__(self, names: Sequence[str], size: int, dropout: float) -> None:
        super().__init__()
        if not names:
            raise ValueError(
                "uses_upos=True requires upos_names=[...]; set uses_upos=False for a model of words only"
            )
        self.index_of = {name: index for index, name in enumerate(names, start=_FIRST_NAMED)}
        self.dropout = dropout
        self.embeddings = nn.Embedding(_FIRST_NAMED + len(names), size)

    @torch.no_grad()
    def zero_untrained(self) -> None:
        """Set the unknown tag's embedding to zero if no dropout trains it."""
        if self.dropout == 0:
            self.embeddings.weight[UNKNOWN].zero_()

    def featurise(self, rows: Sequence[Mapping[str, Any]]) -> Tensor:
        """Return the indices of the tags of B rows, (B, N), 0 for unknown tags and padding.

        Raises:
            ValueError: a sentence has no tags although the model requires them, or a wrong number of tags.
        """
        ids = []
        for index, row in enumerate(rows):
            name, count, tags = row.get("sent_id", index), len(row["words"]), row.get("upos")
            if tags is None or all(tag == _BLANK for tag in tags):
                if self.dropout == 0:
                    raise ValueError(
                        f"sentence {name}: this model reads UPOS tags and the sentence has none; tag it "
                        "first (--tagger, or tagger= of the pipeline), or train a model with uses_upos=False "
                        "or upos_dropout"
                    )
                tags = [_BLANK] * count
            if len(tags) != count:
                raise ValueError(f"sentence {name}: found {len(tags)} UPOS tags for {count} words")
            ids.append(torch.tensor([self.index_of.get(tag, UNKNOWN) for tag in tags]))
        return nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=UNKNOWN)

    def forward(self, ids: Tensor, lengths: Tensor, leading: int, trailing: int) -> Tensor:
        """Embed the tags (B, N) of a batch and of the special words around each sentence.

        Returns:
            (B, leading + N + trailing, E).
        """
        if self.training and self.dropout > 0:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.dropout, UNKNOWN)
        ids = nn.functional.pad(ids, (leading, trailing))
        position = torch.arange(ids.shape[1], device=ids.device)
        is_word = (position >= leading) & (position < (lengths + leading)[:, None])
        embedded: Tensor = self.embeddings(ids.masked_fill(~is_word, SPECIAL))
        return embedded

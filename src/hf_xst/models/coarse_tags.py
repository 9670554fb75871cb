"""Coarse tags (UPOS) as part of a model's input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

UNKNOWN, SPECIAL = 0, 1
_FIRST_NAMED = 2
_BLANK = "_"


class CoarseTags(nn.Module):
    """Embeddings of named coarse tags, one for all unknown ones, and one for the special words.

    Args:
        names: the tags that have an embedding of their own.
        size: width E of an embedding.
        dropout: rate at which a tag is replaced by the unknown one in training. Above 0 the unknown tag is
            trained, and sentences without tags can be read.

    Raises:
        ValueError: no tag is named.
    """

    def __init__(self, names: Sequence[str], size: int, dropout: float) -> None:
        super().__init__()
        if not names:
            raise ValueError(
                "the model reads coarse tags (uses_upos=True) and the configuration names none; give "
                "upos_names=[...], or uses_upos=False for a model that reads words alone"
            )
        self.index_of = {name: index for index, name in enumerate(names, start=_FIRST_NAMED)}
        self.dropout = dropout
        self.embeddings = nn.Embedding(_FIRST_NAMED + len(names), size)

    @torch.no_grad()
    def quieten(self) -> None:
        """Put zeros in place of unknown tags, instead of noise, where no dropout trains them."""
        if self.dropout == 0:
            self.embeddings.weight[UNKNOWN].zero_()

    def featurise(self, rows: Sequence[Mapping[str, Any]]) -> Tensor:
        """Return the tags' indices, (B, N), 0 for unknown ones and padding.

        Args:
            rows: B mappings with `words` and `upos`.

        Raises:
            ValueError: a sentence has no tags and the model needs them, or not one for each word.
        """
        ids = []
        for index, row in enumerate(rows):
            name, count, tags = row.get("sent_id", index), len(row["words"]), row.get("upos")
            if tags is None or all(tag == _BLANK for tag in tags):
                if self.dropout == 0:
                    raise ValueError(
                        f"sentence {name}: this model reads coarse tags (UPOS) beside the words and the "
                        "sentence has none; tag it first (a tagger beside the model, --tagger, or the "
                        "pipeline's tagger=), or train a model without them (uses_upos=False) or with "
                        "upos_dropout"
                    )
                tags = [_BLANK] * count
            if len(tags) != count:
                raise ValueError(f"sentence {name}: found {len(tags)} coarse tags for {count} words")
            ids.append(torch.tensor([self.index_of.get(tag, UNKNOWN) for tag in tags]))
        return nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=UNKNOWN)

    def forward(self, ids: Tensor, lengths: Tensor, leading: int, trailing: int) -> Tensor:
        """Embed the tags of a batch and of the special words around each sentence.

        Args:
            ids: (B, N), from `featurise`.
            lengths: (B,) words of each sentence.
            leading: special words before the first word.
            trailing: special words after the last word.

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

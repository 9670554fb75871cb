"""Encode sentences: embed words, add special words, and contextualise all of them.

Encoder A looks words up in a table of cross-lingual vectors; encoder B pools the pieces of any `AutoModel`.
`WordEncoder` adds special words, UPOS tags, word dropout and the distance-aware Transformer to either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hf_xst.data.sentence import BLANK
from hf_xst.models.columns import column_of
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.words import VectorTable

_UNKNOWN, _SPECIAL, _FIRST_NAMED = 0, 1, 2  # indices of UPOS tags: of unknown and of special words, others


class WordEncoder(nn.Module):
    """Word embeddings, `leading` and `trailing` (0 or 1) special words around them, and context.

    The embedding of its UPOS tag, of width E = `extra_size`, is concatenated to each word.
    """

    def __init__(self, config: StructuredConfig, *, leading: int, trailing: int, extra_size: int) -> None:
        super().__init__()
        self.leading, self.trailing = leading, trailing
        self.word_dropout = config.word_dropout
        self.words: VectorTable | PretrainedWords = (
            VectorTable(config) if config.encoder == "vectors" else PretrainedWords(config)
        )
        # Row 0 is the unknown word, then come the special words.
        self.special_vectors = nn.Parameter(torch.empty(1 + leading + trailing, config.word_size))
        self.output_size = config.word_size + extra_size
        self.context = DistanceAwareTransformer(config, self.output_size)

    def reset_parameters(self) -> None:
        """Initialise the unknown word and the special words."""
        nn.init.normal_(self.special_vectors, std=0.1)

    def featurise(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Turn words into the tensors that `forward` takes, on the CPU; see the word source's method."""
        return self.words.featurise(sentences)

    def forward(
        self,
        lengths: Tensor,
        features: dict[str, Tensor],
        *,
        extra: Tensor | None = None,
        word_states: Tensor | None = None,
    ) -> Tensor:
        """Encode a batch.

        Args:
            lengths: (B,) words of each sentence; N is their maximum.
            features: output of `featurise`; ignored if `word_states` is given.
            extra: (B, leading + N + trailing, E), concatenated to each position.
            word_states: (B, N, D) cached word embeddings; a row of zeros is an unknown word.

        Returns:
            (B, leading + N + trailing, D + E); positions beyond a sentence hold arbitrary finite numbers.
        """
        if word_states is None:
            word_states = self.words(lengths, **features)
        word_states = word_states.to(self.special_vectors.dtype)
        states = self._with_specials(self._with_unknown(word_states, lengths), lengths)
        if extra is not None:
            states = torch.cat([states, extra], dim=-1)
        positions = torch.arange(states.shape[1], device=states.device)
        mask = positions < (lengths + self.leading + self.trailing)[:, None]
        contextual: Tensor = self.context(states, mask)
        return contextual

    def _with_unknown(self, word_states: Tensor, lengths: Tensor) -> Tensor:
        """Put the unknown word's vector at unknown words, at dropped words and beyond the end."""
        inside = torch.arange(word_states.shape[1], device=lengths.device) < lengths[:, None]
        known = (word_states != 0).any(-1) & inside
        if self.training and self.word_dropout > 0:
            known = known & (torch.rand(known.shape, device=known.device) >= self.word_dropout)
        return torch.where(known[..., None], word_states, self.special_vectors[0])

    def _with_specials(self, word_states: Tensor, lengths: Tensor) -> Tensor:
        """Add the special words: (B, leading + N + trailing, D)."""
        before = self.special_vectors[1 : 1 + self.leading].expand(word_states.shape[0], -1, -1)
        if not self.trailing:
            return torch.cat([before, word_states], dim=1)
        room = torch.zeros_like(word_states[:, :1]).expand(-1, self.trailing, -1)
        states = torch.cat([before, word_states, room], dim=1)
        position = torch.arange(states.shape[1], device=states.device)
        is_end = position == (lengths + self.leading)[:, None]
        return torch.where(is_end[..., None], self.special_vectors[-1], states)


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
            self.embeddings.weight[_UNKNOWN].zero_()

    def featurise(self, rows: Sequence[Mapping[str, Any]]) -> Tensor:
        """Return the tags' indices, (B, N), 0 if unknown; raise ValueError if required tags are missing."""
        ids = []
        for index, row in enumerate(rows):
            is_tagged = row.get("upos") is not None
            tags = column_of(row, "upos", index) if is_tagged else [BLANK] * len(row["words"])
            if self.dropout == 0 and all(tag == BLANK for tag in tags):
                raise ValueError(
                    f"sentence {row.get('sent_id', index)}: this model reads UPOS tags and the sentence has "
                    "none; tag it first (--tagger, or tagger= of the pipeline), or train a model with "
                    "uses_upos=False or upos_dropout"
                )
            ids.append(torch.tensor([self.index_of.get(tag, _UNKNOWN) for tag in tags]))
        return nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=_UNKNOWN)

    def forward(self, ids: Tensor, lengths: Tensor, leading: int, trailing: int) -> Tensor:
        """Embed the tags (B, N), and those of the special words: (B, leading + N + trailing, E)."""
        if self.training and self.dropout > 0:
            ids = ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.dropout, _UNKNOWN)
        ids = nn.functional.pad(ids, (leading, trailing))
        position = torch.arange(ids.shape[1], device=ids.device)
        is_word = (position >= leading) & (position < (lengths + leading)[:, None])
        embedded: Tensor = self.embeddings(ids.masked_fill(~is_word, _SPECIAL))
        return embedded


class DistanceAwareAttention(nn.Module):
    """Multi-head self-attention with embeddings of the undirected distance, shared by the H heads.

    Keys and values have the width K, the input and the output D = `size`.
    """

    def __init__(self, config: StructuredConfig, size: int) -> None:
        super().__init__()
        self.heads, self.key_size = config.attention_heads, config.key_size
        self.query_key_value = nn.Linear(size, 3 * self.heads * self.key_size)
        self.output = nn.Linear(self.heads * self.key_size, size)
        self.key_distances = nn.Parameter(torch.empty(config.max_distance + 1, self.key_size))
        self.value_distances = nn.Parameter(torch.empty(config.max_distance + 1, self.key_size))
        self.dropout = nn.Dropout(config.context_dropout)

    def reset_parameters(self) -> None:
        """Initialise the distance embeddings; the linear layers initialise themselves."""
        nn.init.xavier_uniform_(self.key_distances)
        nn.init.xavier_uniform_(self.value_distances)

    def forward(self, states: Tensor, distance_one_hot: Tensor, mask: Tensor) -> Tensor:
        """Attend within each sentence: states (B, N, D) to (B, N, D).

        `distance_one_hot` (N, N, max_distance + 1) has one at the clipped |i - j|; the mask, bool (B, N), is
        true at real positions.
        """
        batch, length, _ = states.shape
        split = self.query_key_value(states).view(batch, length, 3, self.heads, self.key_size)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, N, K)
        query = query / math.sqrt(self.key_size)
        by_distance = query @ self.key_distances.T  # (B, H, N, max_distance + 1)
        # logits[i, j] = query_i . (key_j + key_distance_|i-j|): (B, H, N, N)
        logits = query @ key.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", by_distance, distance_one_hot)
        logits = logits.masked_fill(~mask[:, None, None, :], torch.finfo(logits.dtype).min)
        weights = self.dropout(logits.softmax(-1))
        # mixed_i = sum_j weights[i, j] (value_j + value_distance_|i-j|): (B, H, N, K)
        mass_at_distance = torch.einsum("bhij,ijd->bhid", weights, distance_one_hot)
        mixed = weights @ value + mass_at_distance @ self.value_distances
        output: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, -1))
        return output


class DistanceAwareLayer(nn.Module):
    """Attention and a feed-forward block, each followed by a residual sum and layer normalisation."""

    def __init__(self, config: StructuredConfig, size: int) -> None:
        super().__init__()
        inner, rate = config.feed_forward_size, config.context_dropout
        self.attention = DistanceAwareAttention(config, size)
        self.attention_norm = nn.LayerNorm(size)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, inner), nn.ReLU(), nn.Dropout(rate), nn.Linear(inner, size)
        )
        self.feed_forward_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(rate)

    def forward(self, states: Tensor, distance_one_hot: Tensor, mask: Tensor) -> Tensor:
        """Return new states (B, N, D); arguments as in `DistanceAwareAttention.forward`."""
        attended = self.attention(states, distance_one_hot, mask)
        states = self.attention_norm(states + self.dropout(attended))
        normed: Tensor = self.feed_forward_norm(states + self.dropout(self.feed_forward(states)))
        return normed


class DistanceAwareTransformer(nn.Module):
    """A stack of `DistanceAwareLayer`; the identity if the configuration has no context layers."""

    def __init__(self, config: StructuredConfig, size: int) -> None:
        super().__init__()
        self.max_distance = config.max_distance
        self.layers = nn.ModuleList(DistanceAwareLayer(config, size) for _ in range(config.context_depth))

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Contextualise states (B, N, D); `mask` is bool (B, N), true at real positions."""
        if not self.layers:
            return states
        positions = torch.arange(states.shape[1], device=states.device)
        distance = (positions[:, None] - positions).abs().clamp(max=self.max_distance)
        buckets = torch.arange(self.max_distance + 1, device=states.device)
        one_hot = (distance[..., None] == buckets).to(states.dtype)
        for layer in self.layers:
            states = layer(states, one_hot, mask)
        return states

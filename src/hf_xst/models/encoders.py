"""From words to states: two sources of word states under one encoder.

Encoder A looks words up in a table of (cross-lingual) vectors; encoder B pools the pieces of any
`AutoModel`. Everything behind that, special words, coarse tags, word dropout, the distance-aware
Transformer, is written once in `WordEncoder`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.words import VectorTable

Features = dict[str, Tensor]


class WordEncoder(nn.Module):
    """Word states, special words around them, and context.

    Args:
        config: sizes and rates.
        leading: special words before the first word.
        trailing: special words after the last word (0 or 1).
        extra_size: width of what is joined to each word (the embedding of its coarse tag).
    """

    def __init__(self, config: StructuredConfig, *, leading: int, trailing: int, extra_size: int) -> None:
        super().__init__()
        self.leading, self.trailing = leading, trailing
        self.word_dropout = config.word_dropout
        self.words: VectorTable | PretrainedWords = (
            VectorTable(config) if config.encoder == "vectors" else PretrainedWords(config)
        )
        self.special_vectors = nn.Parameter(torch.empty(1 + leading + trailing, config.word_size))
        self.output_size = config.word_size + extra_size
        self.context = DistanceAwareTransformer(
            config.context_depth,
            self.output_size,
            config.attention_heads,
            config.key_size,
            config.feed_forward_size,
            config.max_distance,
            config.context_dropout,
        )

    def reset_parameters(self) -> None:
        """Start the unknown word (row 0) and the special words small."""
        nn.init.normal_(self.special_vectors, std=0.1)

    def featurise(self, sentences: Sequence[Sequence[str]]) -> Features:
        """Turn words into the tensors that `forward` takes (on the CPU); see the word source's own method."""
        return self.words.featurise(sentences)

    def forward(
        self,
        lengths: Tensor,
        features: Features,
        *,
        extra: Tensor | None = None,
        word_states: Tensor | None = None,
    ) -> Tensor:
        """Encode a batch.

        Args:
            lengths: (B,) words of each sentence; N is their maximum.
            features: what `featurise` gave; not needed with `word_states`.
            extra: (B, leading + N + trailing, E), joined to each position.
            word_states: (B, N, D), ready states of the words, e.g. cached ones of a frozen encoder; a row of
                zeros stands for a word that the word source does not know.

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
        """Put the unknown word's vector where a word has no state, beyond the end, and on dropped words."""
        inside = torch.arange(word_states.shape[1], device=lengths.device) < lengths[:, None]
        known = (word_states != 0).any(-1) & inside
        if self.training and self.word_dropout > 0:
            known = known & (torch.rand(known.shape, device=known.device) >= self.word_dropout)
        return torch.where(known[..., None], word_states, self.special_vectors[0])

    def _with_specials(self, word_states: Tensor, lengths: Tensor) -> Tensor:
        batch = word_states.shape[0]
        before = self.special_vectors[1 : 1 + self.leading].expand(batch, -1, -1)
        parts = [before, word_states]
        if self.trailing:
            parts.append(torch.zeros_like(word_states[:, :1]).expand(-1, self.trailing, -1))
        states = torch.cat(parts, dim=1)
        if self.trailing:
            position = torch.arange(states.shape[1], device=states.device)
            is_end = position == (lengths + self.leading)[:, None]
            states = torch.where(is_end[..., None], self.special_vectors[-1], states)
        return states


class DistanceAwareAttention(nn.Module):
    """Multi-head self-attention with embeddings of the undirected distance, shared by the heads.

    Args:
        size: width D of the input and the output.
        heads: number of attention heads H.
        key_size: width of keys, queries and values of one head.
        max_distance: distances above it share one embedding.
        dropout: dropout rate of the attention probabilities.
    """

    def __init__(self, size: int, heads: int, key_size: int, max_distance: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.key_size, self.max_distance = heads, key_size, max_distance
        self.query_key_value = nn.Linear(size, 3 * heads * key_size)
        self.output = nn.Linear(heads * key_size, size)
        self.key_distances = nn.Parameter(torch.empty(max_distance + 1, key_size))
        self.value_distances = nn.Parameter(torch.empty(max_distance + 1, key_size))
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Start the embeddings of distances; the linear parts start themselves."""
        nn.init.xavier_uniform_(self.key_distances)
        nn.init.xavier_uniform_(self.value_distances)

    def forward(self, states: Tensor, distance_one_hot: Tensor, mask: Tensor) -> Tensor:
        """Attend within each sentence.

        Args:
            states: (B, N, D).
            distance_one_hot: (N, N, max_distance + 1), one where |i - j| clipped has that value.
            mask: bool (B, N), true at real positions.

        Returns:
            (B, N, D).
        """
        batch, length, _ = states.shape
        split = self.query_key_value(states).view(batch, length, 3, self.heads, self.key_size)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, H, N, key_size)
        query = query / math.sqrt(self.key_size)
        by_distance = query @ self.key_distances.T  # (B, H, N, max_distance + 1)
        logits = query @ key.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", by_distance, distance_one_hot)
        logits = logits.masked_fill(~mask[:, None, None, :], torch.finfo(logits.dtype).min)
        weights = self.dropout(logits.softmax(-1))
        mass_at_distance = torch.einsum("bhij,ijd->bhid", weights, distance_one_hot)
        mixed = weights @ value + mass_at_distance @ self.value_distances
        output: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, -1))
        return output


class DistanceAwareLayer(nn.Module):
    """Attention and a feed-forward block, each followed by a residual sum and layer normalisation."""

    def __init__(
        self, size: int, heads: int, key_size: int, feed_forward: int, max_distance: int, dropout: float
    ) -> None:
        super().__init__()
        self.attention = DistanceAwareAttention(size, heads, key_size, max_distance, dropout)
        self.attention_norm = nn.LayerNorm(size)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, feed_forward), nn.ReLU(), nn.Dropout(dropout), nn.Linear(feed_forward, size)
        )
        self.feed_forward_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, distance_one_hot: Tensor, mask: Tensor) -> Tensor:
        """Return new states (B, N, D); arguments as in `DistanceAwareAttention.forward`."""
        attended = self.attention(states, distance_one_hot, mask)
        states = self.attention_norm(states + self.dropout(attended))
        normed: Tensor = self.feed_forward_norm(states + self.dropout(self.feed_forward(states)))
        return normed


class DistanceAwareTransformer(nn.Module):
    """A stack of `DistanceAwareLayer`; with no layer it is the identity.

    Args:
        layers: number of layers.
        size: width D of the states.
        heads: attention heads of a layer.
        key_size: width of the keys and values of a head.
        feed_forward: inner width of the feed-forward block.
        max_distance: distances above it share one embedding.
        dropout: dropout rate inside the layers.
    """

    def __init__(
        self,
        layers: int,
        size: int,
        heads: int,
        key_size: int,
        feed_forward: int,
        max_distance: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.layers = nn.ModuleList(
            DistanceAwareLayer(size, heads, key_size, feed_forward, max_distance, dropout)
            for _ in range(layers)
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Give every position its context.

        Args:
            states: (B, N, D).
            mask: bool (B, N), true at real positions.

        Returns:
            (B, N, D).
        """
        if not self.layers:
            return states
        positions = torch.arange(states.shape[1], device=states.device)
        distance = (positions[:, None] - positions).abs().clamp(max=self.max_distance)
        one_hot = nn.functional.one_hot(distance, self.max_distance + 1).to(states.dtype)
        for layer in self.layers:
            states = layer(states, one_hot, mask)
        return states

"""A Transformer that sees how far two words are apart, but not which one comes first.

Words keep no absolute position; attention adds an embedding of the clipped, undirected distance |i - j| to
the keys and another to the values (Ahmad et al. 2019; the setting of Kurniawan et al. 2021, supplement).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


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

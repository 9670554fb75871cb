"""From words to states: two sources of word states under one encoder.

Encoder A looks words up in a table of (cross-lingual) vectors; encoder B pools the pieces of any
`AutoModel`. Everything behind that, special words, coarse tags, word dropout, the distance-aware
Transformer, is written once in `WordEncoder`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hf_xst.models.attention import DistanceAwareTransformer
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.vector_table import VectorTable

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

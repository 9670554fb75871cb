"""Encoder B's words: pieces of any `AutoModel`, pooled to words by word id, read in windows if need be."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel
from transformers.utils import logging

from .configuration import StructuredConfig
from .windows import Window, assign_words, cut_windows

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from reporting while the block runs."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def bare_encoder(factory: Any, *args: Any, **kwargs: Any) -> PreTrainedModel:
    """Build an `AutoModel` without the pooler that some families add (it would be random and unused)."""
    try:
        model: PreTrainedModel = factory(*args, add_pooling_layer=False, **kwargs)
    except TypeError as error:
        if "add_pooling_layer" not in str(error):
            raise
        model = factory(*args, **kwargs)
    return model


class PretrainedWords(nn.Module):
    """A pretrained encoder seen word by word.

    Args:
        config: its `encoder_config` is the encoder's whole configuration, `frozen_layers`, `piece_pooling`
            and `max_pieces` say how it is used.

    Raises:
        ValueError: the configuration names no encoder.
    """

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        if config.encoder_config is None:
            raise ValueError("encoder 'pretrained' needs encoder_config; build the model with from_encoder(...)")
        settings = copy.deepcopy(config.encoder_config)
        self.model = bare_encoder(AutoModel.from_config, AutoConfig.for_model(**settings))
        self.tokenizer: Any = None
        self.frozen_layers = config.frozen_layers
        self.max_pieces = config.max_pieces
        self.piece_pooling = config.piece_pooling

    def freeze(self, frozen: bool = True) -> None:
        """Freeze the embeddings and the first `frozen_layers` layers (all of it if -1), or nothing."""
        self.model.requires_grad_(not frozen or self.frozen_layers == 0)
        if frozen and self.frozen_layers > 0:
            for layer in self._layers()[self.frozen_layers :]:
                layer.requires_grad_(True)

    def _layers(self) -> nn.ModuleList:
        depth = self.model.config.num_hidden_layers
        for module in self.model.modules():
            if isinstance(module, nn.ModuleList) and len(module) == depth:
                return module
        raise ValueError(f"{type(self.model).__name__} has no list of {depth} layers; use frozen_layers -1 or 0")

    @property
    def is_frozen(self) -> bool:
        """Whether no weight of the encoder is trained, so that its states can be cached."""
        return not any(parameter.requires_grad for parameter in self.model.parameters())

    def train(self, mode: bool = True) -> PretrainedWords:
        """Set training mode, but leave a frozen encoder without dropout: its states are features."""
        super().train(mode)
        if self.is_frozen:
            self.model.eval()
        return self

    def featurise(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Cut sentences into pieces and windows.

        Args:
            sentences: B lists of words, N the longest.

        Returns:
            `input_ids`, `attention_mask` (W, P) for W windows of at most P pieces, and `piece_slots` (W, P):
            sentence * N + word of each piece whose state is used, -1 for special and overlapping ones.
        """
        longest = max((len(words) for words in sentences), default=0)
        before, after = self._special_pieces()
        windows: list[Window] = []
        room = self.max_pieces - len(before) - len(after)
        for index, (ids, word_of) in enumerate(self._pieces(sentences)):
            slots = [index * longest + word for word in word_of]
            windows += cut_windows(ids, slots, assign_words(word_of, room), room)
        width = max((len(window.ids) for window in windows), default=0) + len(before) + len(after)
        shape = (len(windows), width)
        input_ids = torch.full(shape, self.tokenizer.pad_token_id or 0, dtype=torch.long)
        attention_mask = torch.zeros(shape, dtype=torch.long)
        piece_slots = torch.full(shape, -1, dtype=torch.long)
        for row, window in enumerate(windows):
            ids = [*before, *window.ids, *after]
            input_ids[row, : len(ids)] = torch.tensor(ids)
            attention_mask[row, : len(ids)] = 1
            start = len(before)
            piece_slots[row, start : start + len(window.slots)] = torch.tensor(window.slots, dtype=torch.long)
        return {"input_ids": input_ids, "attention_mask": attention_mask, "piece_slots": piece_slots}

    def _pieces(self, sentences: Sequence[Sequence[str]]) -> list[tuple[list[int], list[int]]]:
        """Give each sentence's piece ids and the word that each belongs to; a word may have none."""
        encoded = self.tokenizer(
            [list(words) for words in sentences],
            is_split_into_words=True,
            add_special_tokens=False,
            return_attention_mask=False,
            verbose=False,
        )
        return [(ids, encoded.word_ids(index)) for index, ids in enumerate(encoded["input_ids"])]

    def _special_pieces(self) -> tuple[list[int], list[int]]:
        """Find what the tokenizer puts before and after a sentence."""
        inner = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = self.tokenizer("a")["input_ids"]
        start = next(i for i in range(len(whole)) if whole[i : i + len(inner)] == inner)
        return whole[:start], whole[start + len(inner) :]

    def forward(self, lengths: Tensor, input_ids: Tensor, attention_mask: Tensor, piece_slots: Tensor) -> Tensor:
        """Return states (B, N, D); a word without pieces has the state zero.

        Args:
            lengths: (B,) words of each sentence.
            input_ids: (W, P), from `featurise`, like the following.
            attention_mask: (W, P).
            piece_slots: (W, P).
        """
        batch, longest = lengths.shape[0], int(lengths.max())
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            pieces = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        used = piece_slots >= 0
        slots, states = piece_slots[used], pieces[used]
        if self.piece_pooling == "first":
            first = torch.ones_like(slots, dtype=torch.bool)
            first[1:] = slots[1:] != slots[:-1]
            slots, states = slots[first], states[first]
        summed = states.new_zeros(batch * longest, states.shape[-1]).index_add(0, slots, states)
        counts = states.new_zeros(batch * longest).index_add(0, slots, states.new_ones(slots.shape))
        return (summed / counts.clamp(min=1)[:, None]).view(batch, longest, -1)

    def save_assets(self, folder: Path) -> None:
        """Write the tokenizer beside the weights."""
        self.tokenizer.save_pretrained(folder)

    def load_assets(self, files: dict[str, str | None]) -> None:
        """Read the tokenizer; `files` maps `asset_names` to local paths."""
        path = files[TOKENIZER_FILES[0]]
        if path is None:
            raise ValueError(f"the model's folder has no {TOKENIZER_FILES[0]}; save it again with save_pretrained")
        self.tokenizer = AutoTokenizer.from_pretrained(str(Path(path).parent))

    @staticmethod
    def asset_names() -> tuple[str, ...]:
        """Files beside the weights."""
        return TOKENIZER_FILES

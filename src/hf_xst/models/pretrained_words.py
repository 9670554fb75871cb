"""The words of encoder B: pieces of any `AutoModel`, pooled to words, in overlapping windows if necessary."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModel
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.model_checks import TOKENIZER_CONFIG_NAME, encoder_config
from hf_xst.models.pretrained_files import bare_encoder, load_tokenizer, word_prefix
from hf_xst.numerics import at_least_single

TOKENIZER_FILES = ("tokenizer.json", TOKENIZER_CONFIG_NAME)


class Pieces(NamedTuple):
    """A sentence in pieces: ids and words of its pieces, and the tokenizer's pieces before and after them."""

    ids: list[int]
    word_of: list[int]
    before: list[int]
    after: list[int]


class Window(NamedTuple):
    """A range of pieces: their ids, and the slot of each piece's word (-1 if another window provides it)."""

    ids: list[int]
    slots: list[int]


class PretrainedWords(nn.Module):
    """A pretrained encoder whose output is pooled to one embedding per word.

    Models may share the module (`one.encoder.words = other.encoder.words`): each is saved with all of it, and
    gets its own copy when loaded.

    Args:
        config: `encoder_config` is the encoder's configuration; `frozen_layers`, `piece_pooling` and
            `max_pieces` define its use.

    Raises:
        ValueError: the configuration has no `encoder_config`, or one that is faulty.
    """

    asset_names = TOKENIZER_FILES
    """Files beside the weights."""

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        if config.encoder_config is None:
            raise ValueError(
                "encoder 'pretrained' requires encoder_config; build the model with from_encoder(...)"
            )
        # The dtype of the complete model decides.
        nested = encoder_config(config.encoder_config)
        self.model: PreTrainedModel = bare_encoder(AutoModel.from_config, nested)
        self._tokenizer: PreTrainedTokenizerFast | None = None
        self._prefix = ""
        self.frozen_layers = config.frozen_layers
        self.max_pieces = config.max_pieces
        self.piece_pooling = config.piece_pooling

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer; ValueError if the model was built from a configuration only."""
        if self._tokenizer is None:
            raise ValueError(
                "the model has no tokenizer; build it with from_encoder(...) or load it with "
                "from_pretrained(...)"
            )
        return self._tokenizer

    def set_encoder(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        """Replace the encoder by one with trained weights, and set its tokenizer."""
        self.model, self._tokenizer, self._prefix = model, tokenizer, word_prefix(tokenizer)
        self.freeze()

    # -- freezing -------------------------------------------------------------------------------------

    def freeze(self, frozen: bool = True) -> None:
        """Freeze embeddings and `frozen_layers` layers (-1: all), or nothing; ValueError if it has fewer."""
        self.model.requires_grad_(not frozen or self.frozen_layers == 0)
        if frozen and self.frozen_layers > 0:
            self._train_from(self.frozen_layers)
        self.train(self.training)

    def _train_from(self, first: int) -> None:
        """Train the layers from `first` on, and all modules after the last layer."""
        depth = self.model.config.num_hidden_layers
        if first > depth:
            raise ValueError(
                f"frozen_layers is {first}; the encoder has {depth} layers (-1 freezes all of it)"
            )
        prefix, _ = self._layers(depth)
        is_past_embeddings = False
        for name, parameter in self.model.named_parameters():
            in_layers = name.startswith(prefix)
            is_past_embeddings = is_past_embeddings or in_layers
            layer = int(name.removeprefix(prefix).partition(".")[0]) if in_layers else depth
            parameter.requires_grad_(is_past_embeddings and layer >= first)

    def _layers(self, depth: int) -> tuple[str, nn.ModuleList]:
        for name, module in self.model.named_modules():
            if isinstance(module, nn.ModuleList) and len(module) == depth:
                return f"{name}.", module
        raise ValueError(
            f"{type(self.model).__name__} has no list of {depth} layers; use frozen_layers -1 or 0"
        )

    @property
    def lower_layers(self) -> Sequence[nn.Module]:
        """The frozen layers of an encoder whose other layers are trained."""
        if self.frozen_layers <= 0 or self.is_frozen:
            return []
        return list(self._layers(self.model.config.num_hidden_layers)[1])[: self.frozen_layers]

    @property
    def is_frozen(self) -> bool:
        """Whether no weight of the encoder is trained, so that its output can be cached."""
        return not any(parameter.requires_grad for parameter in self.model.parameters())

    def train(self, mode: bool = True) -> PretrainedWords:
        """Set the training mode; a frozen encoder stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.is_frozen:
            self.model.train(False)
        return self

    # -- computation ----------------------------------------------------------------------------------

    def featurise(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Cut B lists of words, the longest of N words, into pieces and windows.

        Returns:
            `input_ids`, `attention_mask` (W, P) for W windows of at most P pieces, and `piece_slots` (W, P):
            sentence * N + word of each piece that is used, -1 for special and overlapping pieces. A sentence
            without pieces has no window.
        """
        longest = max((len(words) for words in sentences), default=0)
        windows: list[Window] = []
        for index, pieces in enumerate(self._pieces(sentences)):
            if pieces.ids:
                windows += cut_windows(pieces, index * longest, self.max_pieces)
        shape = (len(windows), max((len(window.ids) for window in windows), default=0))
        padding = self.tokenizer.pad_token_id
        input_ids = torch.full(shape, 0 if padding is None else padding, dtype=torch.long)
        attention_mask = torch.zeros(shape, dtype=torch.long)
        piece_slots = torch.full(shape, -1, dtype=torch.long)
        for row, window in enumerate(windows):
            size = len(window.ids)
            input_ids[row, :size] = torch.tensor(window.ids)
            attention_mask[row, :size] = 1
            piece_slots[row, :size] = torch.tensor(window.slots)
        return {"input_ids": input_ids, "attention_mask": attention_mask, "piece_slots": piece_slots}

    def _pieces(self, sentences: Sequence[Sequence[str]]) -> Iterator[Pieces]:
        """Cut words into pieces; a word may have none. Text that spells a special piece becomes unknown."""
        special, unknown = set(self.tokenizer.all_special_ids), self.tokenizer.unk_token_id
        encoded = self.tokenizer(
            [[self._prefix + word for word in words] for words in sentences],
            is_split_into_words=True,
            return_attention_mask=False,
            verbose=False,
        )
        for index, ids in enumerate(encoded["input_ids"]):
            word_of = encoded.word_ids(index)
            inside = [position for position, word in enumerate(word_of) if word is not None]
            first, end = (inside[0], inside[-1] + 1) if inside else (len(ids), len(ids))
            pieces = [ids[position] for position in inside]
            if unknown is not None:
                pieces = [unknown if piece in special else piece for piece in pieces]
            yield Pieces(pieces, [word_of[position] for position in inside], ids[:first], ids[end:])

    def forward(
        self, lengths: Tensor, input_ids: Tensor, attention_mask: Tensor, piece_slots: Tensor
    ) -> Tensor:
        """Return embeddings (B, N, D), zeros for words without pieces; tensors as from `featurise`."""
        batch, longest = lengths.shape[0], int(lengths.max())
        if not len(input_ids):
            size = (batch, longest, self.model.config.hidden_size)
            return torch.zeros(size, dtype=self.model.dtype, device=self.model.device)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            pieces: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        used = piece_slots >= 0
        slots, states = piece_slots[used], at_least_single(pieces[used])
        summed = sum_pieces(states, slots, batch * longest, self.piece_pooling)
        counts = sum_pieces(states.new_ones(len(slots), 1), slots, batch * longest, self.piece_pooling)
        return (summed / counts.clamp(min=1)).view(batch, longest, -1)

    # -- files ----------------------------------------------------------------------------------------

    def write_settings(self, config: StructuredConfig) -> None:
        """Write the fields that rebuild this encoder to a configuration."""
        nested = self.model.config.to_dict()
        for name in ("_name_or_path", "dtype"):  # a local path; a property of the complete model
            nested.pop(name, None)
        config.encoder_config = nested
        config.frozen_layers = self.frozen_layers
        config.max_pieces = self.max_pieces
        config.piece_pooling = self.piece_pooling

    def describe(self) -> str:
        """Return everything besides the weights that the embeddings depend on, as JSON."""
        special = (self._prefix, *map(str, self.tokenizer.special_tokens_map.items()))
        tokenizer = _tokenizer_json(self.tokenizer.backend_tokenizer.to_str(), special)
        config = self.model.config.to_dict()
        for name in ("_name_or_path", "transformers_version"):
            config.pop(name, None)
        settings = json.dumps([self.piece_pooling, self.max_pieces]).removesuffix("]")
        return f"{settings}, {tokenizer}, {json.dumps(config, sort_keys=True, default=str)}]"

    def save_assets(self, folder: Path) -> None:
        """Write the tokenizer."""
        self.tokenizer.save_pretrained(folder)

    def load_assets(self, files: dict[str, str]) -> None:
        """Read the tokenizer from local paths by `asset_names`."""
        self._tokenizer = load_tokenizer(str(Path(files[TOKENIZER_FILES[0]]).parent))
        self._prefix = word_prefix(self._tokenizer)


@lru_cache(maxsize=2)
def _tokenizer_json(tokenizer: str, special: tuple[str, ...]) -> str:
    """Return a tokenizer's JSON, of megabytes, without what each call sets."""
    content = json.loads(tokenizer)
    for name in ("padding", "truncation"):
        content.pop(name, None)
    return json.dumps({**content, "special": special}, sort_keys=True, default=str)


def sum_pieces(states: Tensor, slots: Tensor, size: int, pooling: str) -> Tensor:
    """Sum the states (K, D) of the pieces in each slot, or take those of its first piece: (size, D)."""
    if pooling == "first":
        first = torch.ones_like(slots, dtype=torch.bool)
        first[1:] = slots[1:] != slots[:-1]
        slots, states = slots[first], states[first]
    return states.new_zeros(size, states.shape[-1]).index_add(0, slots, states)


def window_starts(pieces: int, room: int) -> list[int]:
    """Return where windows of `room` pieces start: every half window, the last one flush with the end."""
    if pieces <= room:
        return [0]
    stride = max(room // 2, 1)
    return [*range(0, pieces - room, stride), pieces - room]


def assign_words(word_of: Sequence[int], room: int) -> list[int]:
    """Return, for each piece, the index of the window of `room` pieces that its embedding is taken from.

    A word is assigned to the window whose centre is nearest to its own. The pieces of a word longer than half
    a window are assigned one by one, so no word is ever cut off. `word_of` is ascending.
    """
    starts = window_starts(len(word_of), room)
    if len(starts) == 1:
        return [0] * len(word_of)
    position = np.arange(len(word_of))
    _, word, sizes = np.unique(word_of, return_inverse=True, return_counts=True)
    centres = np.bincount(word, weights=position) / sizes
    aim = np.where(sizes[word] > room // 2, position, centres[word])
    distances = np.abs(np.add.outer(starts, -aim) + (room - 1) / 2)  # (windows, pieces)
    nearest: list[int] = distances.argmin(0).tolist()
    return nearest


def cut_windows(pieces: Pieces, first_slot: int, max_pieces: int) -> list[Window]:
    """Cut a sentence into windows of `max_pieces`, including the tokenizer's before and after the sentence's.

    The first word has the slot `first_slot`; each piece has its word's slot in exactly one window.

    Raises:
        ValueError: the tokenizer's own pieces leave no room.
    """
    added = len(pieces.before) + len(pieces.after)
    room = max_pieces - added
    if room < 1:
        raise ValueError(f"max_pieces is {max_pieces}, but the tokenizer adds {added} pieces")
    window_of = assign_words(pieces.word_of, room)
    windows = []
    for index, start in enumerate(window_starts(len(pieces.ids), room)):
        inside = slice(start, start + room)
        words = zip(pieces.word_of[inside], window_of[inside], strict=True)
        slots = [first_slot + word if window == index else -1 for word, window in words]
        windows.append(
            Window(
                [*pieces.before, *pieces.ids[inside], *pieces.after],
                [*(-1 for _ in pieces.before), *slots, *(-1 for _ in pieces.after)],
            )
        )
    return windows

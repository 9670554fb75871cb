"""Encoder B's words: pieces of any `AutoModel`, pooled to words by word id, read in windows if need be."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.pretrained_files import bare_encoder, load_tokenizer, word_lead
from hf_xst.models.windows import Window, assign_words, cut_windows
from hf_xst.numerics import at_least_single

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


class Pieces(NamedTuple):
    """A sentence in pieces: their ids and words, and the tokenizer's own pieces before and after them."""

    ids: list[int]
    word_of: list[int]
    before: list[int]
    after: list[int]


class PretrainedWords(nn.Module):
    """A pretrained encoder seen word by word.

    Models may share the whole module (`one.encoder.words = other.encoder.words`): each is saved with all of
    it, and loaded again they have a copy each.

    Args:
        config: its `encoder_config` is the encoder's whole configuration, `frozen_layers`, `piece_pooling`
            and `max_pieces` say how it is used.

    Raises:
        ValueError: the configuration names no encoder.
    """

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__()
        if config.encoder_config is None:
            raise ValueError(
                "encoder 'pretrained' needs encoder_config; build the model with from_encoder(...)"
            )
        settings = copy.deepcopy(config.encoder_config)
        settings.pop("dtype", None)  # that of the whole model decides
        self.model: PreTrainedModel = bare_encoder(AutoModel.from_config, AutoConfig.for_model(**settings))
        self._tokenizer: PreTrainedTokenizerFast | None = None
        self._lead = ""
        self.frozen_layers = config.frozen_layers
        self.max_pieces = config.max_pieces
        self.piece_pooling = config.piece_pooling

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer.

        Raises:
            ValueError: there is none, since the model was made from a configuration alone.
        """
        if self._tokenizer is None:
            raise ValueError(
                "the model has no tokenizer; build it with from_encoder(...) or load it with "
                "from_pretrained(...)"
            )
        return self._tokenizer

    def adopt(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        """Take an encoder with trained weights and its tokenizer."""
        self.model, self._tokenizer, self._lead = model, tokenizer, word_lead(tokenizer)
        self.freeze()

    # -- freezing -------------------------------------------------------------------------------------

    def freeze(self, frozen: bool = True) -> None:
        """Freeze the embeddings and the first `frozen_layers` layers (all of it if -1), or nothing.

        Raises:
            ValueError: the encoder has fewer layers, or no list of layers.
        """
        self.model.requires_grad_(not frozen or self.frozen_layers == 0)
        if frozen and self.frozen_layers > 0:
            self._train_from(self.frozen_layers)
        self.train(self.training)

    def _train_from(self, first: int) -> None:
        """Train the layers from `first` on, and what comes behind all layers."""
        depth = self.model.config.num_hidden_layers
        if first > depth:
            raise ValueError(
                f"frozen_layers is {first}; the encoder has {depth} layers (-1 freezes all of it)"
            )
        prefix = self._layers_prefix(depth)
        behind = False
        for name, parameter in self.model.named_parameters():
            in_layers = name.startswith(prefix)
            behind = behind or in_layers
            layer = int(name.removeprefix(prefix).partition(".")[0]) if in_layers else depth
            parameter.requires_grad_(behind and layer >= first)

    def _layers_prefix(self, depth: int) -> str:
        for name, module in self.model.named_modules():
            if isinstance(module, nn.ModuleList) and len(module) == depth:
                return f"{name}."
        raise ValueError(
            f"{type(self.model).__name__} has no list of {depth} layers; use frozen_layers -1 or 0"
        )

    @property
    def is_frozen(self) -> bool:
        """Whether no weight of the encoder is trained, so that its states can be cached."""
        return not any(parameter.requires_grad for parameter in self.model.parameters())

    def train(self, mode: bool = True) -> PretrainedWords:
        """Set training mode, but leave a frozen encoder without dropout: its states are features."""
        super().train(mode)
        if self.is_frozen:
            self.model.train(False)
        return self

    # -- computation ----------------------------------------------------------------------------------

    def featurise(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Cut sentences into pieces and windows.

        Args:
            sentences: B lists of words, N the longest.

        Returns:
            `input_ids`, `attention_mask` (W, P) for W windows of at most P pieces, and `piece_slots` (W, P):
            sentence * N + word of each piece whose state is used, -1 for special and overlapping ones. A
            sentence without any piece has no window.
        """
        longest = max((len(words) for words in sentences), default=0)
        windows: list[Window] = []
        for index, pieces in enumerate(self._pieces(sentences)):
            if pieces.ids:
                windows += self._windows(pieces, index * longest)
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
        """Cut words into pieces; a word may have none. No text can spell a piece with a special meaning."""
        special, unknown = set(self.tokenizer.all_special_ids), self.tokenizer.unk_token_id
        encoded = self.tokenizer(
            [[self._lead + word for word in words] for words in sentences],
            is_split_into_words=True,
            return_attention_mask=False,
            verbose=False,
        )
        for index, ids in enumerate(encoded["input_ids"]):
            word_of = encoded.word_ids(index)
            places = [place for place, word in enumerate(word_of) if word is not None]
            first, end = (places[0], places[-1] + 1) if places else (len(ids), len(ids))
            spelled = [ids[place] for place in places]
            if unknown is not None:
                spelled = [unknown if piece in special else piece for piece in spelled]
            yield Pieces(spelled, [word_of[place] for place in places], ids[:first], ids[end:])

    def _windows(self, pieces: Pieces, first_slot: int) -> list[Window]:
        """Cut a sentence into windows, the tokenizer's own pieces around each."""
        own = len(pieces.before) + len(pieces.after)
        room = self.max_pieces - own
        if room < 1:
            raise ValueError(
                f"max_pieces is {self.max_pieces}, and the tokenizer adds {own} pieces; raise it"
            )
        slots = [first_slot + word for word in pieces.word_of]
        unused_before, unused_after = [-1] * len(pieces.before), [-1] * len(pieces.after)
        return [
            Window(
                [*pieces.before, *window.ids, *pieces.after], [*unused_before, *window.slots, *unused_after]
            )
            for window in cut_windows(pieces.ids, slots, assign_words(pieces.word_of, room), room)
        ]

    def forward(
        self, lengths: Tensor, input_ids: Tensor, attention_mask: Tensor, piece_slots: Tensor
    ) -> Tensor:
        """Return states (B, N, D); a word without pieces has the state zero.

        Args:
            lengths: (B,) words of each sentence.
            input_ids: (W, P), from `featurise`, like the following.
            attention_mask: (W, P).
            piece_slots: (W, P).
        """
        batch, longest = lengths.shape[0], int(lengths.max())
        if not len(input_ids):
            size = (batch, longest, self.model.config.hidden_size)
            return torch.zeros(size, dtype=self.model.dtype, device=self.model.device)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            pieces: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        used = piece_slots >= 0
        slots, states = piece_slots[used], at_least_single(pieces[used])
        if self.piece_pooling == "first":
            first = torch.ones_like(slots, dtype=torch.bool)
            first[1:] = slots[1:] != slots[:-1]
            slots, states = slots[first], states[first]
        summed = states.new_zeros(batch * longest, states.shape[-1]).index_add(0, slots, states)
        counts = states.new_zeros(batch * longest).index_add(0, slots, states.new_ones(slots.shape))
        return (summed / counts.clamp(min=1)[:, None]).view(batch, longest, -1)

    # -- files ----------------------------------------------------------------------------------------

    def describe_in(self, config: StructuredConfig) -> None:
        """Write into a configuration what is needed to build this encoder again."""
        nested = self.model.config.to_dict()
        for name in ("_name_or_path", "dtype"):  # a path of this machine; a matter of the whole model
            nested.pop(name, None)
        config.encoder_config = nested
        config.frozen_layers = self.frozen_layers
        config.max_pieces = self.max_pieces
        config.piece_pooling = self.piece_pooling

    def save_assets(self, folder: Path) -> None:
        """Write the tokenizer beside the weights."""
        self.tokenizer.save_pretrained(folder)

    def load_assets(self, files: dict[str, str | None]) -> None:
        """Read the tokenizer; `files` maps `asset_names` to local paths.

        Raises:
            ValueError: a file is missing.
        """
        missing = [name for name, path in files.items() if path is None]
        path = files[TOKENIZER_FILES[0]]
        if missing or path is None:
            raise ValueError(
                f"the model's folder has no {' and no '.join(missing)}; save it again with save_pretrained"
            )
        self._tokenizer = load_tokenizer(str(Path(path).parent), trust_remote_code=False)
        self._lead = word_lead(self._tokenizer)

    @staticmethod
    def asset_names() -> tuple[str, ...]:
        """Files beside the weights."""
        return TOKENIZER_FILES

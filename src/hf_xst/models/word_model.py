"""A model over words: built from vectors or a pretrained encoder, saved and loaded whole."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from torch import nn
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import SAFE_WEIGHTS_NAME, WEIGHTS_NAME
from transformers.utils.hub import cached_file

from hf_xst.data.vectors import WordVectors
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.encoders import DistanceAwareAttention, WordEncoder
from hf_xst.models.pretrained_files import load_encoder, load_tokenizer, piece_limit
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.words import VectorTable

_HUB_ARGUMENTS = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "proxies",
    "revision",
    "subfolder",
    "token",
)

PUSH_ARGUMENTS = (
    "repo_id",
    "commit_message",
    "commit_description",
    "private",
    "token",
    "revision",
    "create_pr",
    "tags",
)


class WordModel(PreTrainedModel):  # type: ignore[no-untyped-call, unused-ignore]
    """A model that reads words through a `WordEncoder`; what it says about them is a subclass's matter.

    Args:
        config: sizes and labels. Its `encoder` says which of the two word sources the model has.
    """

    config: StructuredConfig
    main_input_name = "lengths"
    base_model_prefix = ""
    leading: ClassVar[int]
    trailing: ClassVar[int]

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__(config)
        self.revision: str | None = None  # on the Hub, of a model that was loaded from there
        extra = config.upos_size if config.uses_upos else 0
        self.encoder = WordEncoder(config, leading=self.leading, trailing=self.trailing, extra_size=extra)

    def _init_weights(self, module: nn.Module) -> None:
        # torch's own initialisers are guarded while a checkpoint is loaded, so loaded tensors are left alone.
        if isinstance(
            module,
            (nn.Linear, nn.Embedding, nn.LayerNorm, DistanceAwareAttention, WordEncoder, VectorTable),
        ):
            module.reset_parameters()

    # -- building -------------------------------------------------------------------------------------

    @classmethod
    def from_vectors(cls, config: StructuredConfig, vectors: WordVectors) -> Self:
        """Build a fresh model of encoder A over a vector file's words.

        Args:
            config: sizes and labels; `encoder` must be `"vectors"`, the width is taken from the vectors. It
                is copied.
            vectors: the words and their vectors.

        Raises:
            ValueError: the configuration is for encoder B, or for vectors of another space.
        """
        config = copy.deepcopy(config)
        if config.encoder != "vectors":
            raise ValueError(f"the configuration says encoder={config.encoder!r}; expected 'vectors'")
        config.word_size = vectors.dimension
        config.vocabulary_size = 0
        model = cls(config)
        model.replace_word_vectors(vectors)
        return model

    @classmethod
    def from_encoder(
        cls,
        config: StructuredConfig,
        encoder: str | os.PathLike[str],
        *,
        layers: int | None = None,
        **hub: Any,
    ) -> Self:
        """Build a fresh model of encoder B over a pretrained `AutoModel`.

        Args:
            config: sizes and labels; it is copied, and the encoder's configuration is nested in the copy.
            encoder: a folder or a Hub id.
            layers: keep only the first so many layers of the encoder.
            hub: arguments of `from_pretrained`, such as `revision`.

        Raises:
            ValueError: the encoder cannot be used as asked for; the message says why.
        """
        name = os.fspath(encoder)
        pretrained = load_encoder(name, layers, **hub)
        tokenizer = load_tokenizer(name, **hub)
        config = copy.deepcopy(config)
        config.encoder, config.encoder_config = "pretrained", pretrained.config.to_dict()
        config.word_size = pretrained.config.hidden_size
        config.max_pieces = min(config.max_pieces, piece_limit(pretrained, tokenizer))
        model = cls(config)
        words = cast(PretrainedWords, model.encoder.words)
        words.adopt(pretrained, tokenizer)
        words.describe_in(config)
        return model

    # -- words ----------------------------------------------------------------------------------------

    def replace_word_vectors(self, vectors: WordVectors) -> None:
        """Put another language's vectors (all rows) in place of encoder A's table.

        Raises:
            ValueError: the model has no word table, or its vectors are of another space or width.
        """
        self._word_table().replace(vectors)
        self._word_table().describe_in(self.config)

    def train_word_vectors(self, trained: bool = True) -> None:
        """Make encoder A's vectors trainable, as the published transfer does, or frozen again.

        Raises:
            ValueError: the model has no word table.
        """
        self._word_table().freeze(not trained)
        self._word_table().describe_in(self.config)

    def freeze(self) -> None:
        """Freeze what the configuration says: the word table, or layers of the pretrained encoder."""
        words = self.encoder.words
        words.freeze(not isinstance(words, VectorTable) or self.config.freeze_word_vectors)

    def _word_table(self) -> VectorTable:
        words = self.encoder.words
        if not isinstance(words, VectorTable):
            raise ValueError(
                "this model reads words by a pretrained encoder (encoder B); it has no word vectors"
            )
        return words

    # -- files ----------------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Load a model, its words or tokenizer, from a folder or a Hub id; see `PreTrainedModel`.

        Raises:
            ValueError: the words do not go with the weights, or pickled weights are asked for.
            OSError: there is no model, or none in safetensors form.
        """
        name = os.fspath(pretrained_model_name_or_path)
        hub = {key: kwargs[key] for key in _HUB_ARGUMENTS if key in kwargs}
        if kwargs.pop("use_safetensors", None) is False:
            raise ValueError("found use_safetensors=False; weights are read from safetensors only")
        try:
            loaded = super().from_pretrained(name, *args, use_safetensors=True, **kwargs)
        except OSError as problem:
            if Path(name, hub.get("subfolder") or "", WEIGHTS_NAME).is_file():
                raise OSError(
                    f"{name} holds pickled weights ({WEIGHTS_NAME}) and no {SAFE_WEIGHTS_NAME}. Pickled "
                    "weights are not read, since they can run any program; ask for the model in safetensors "
                    "form"
                ) from problem
            raise
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        model.revision = hub.get("revision")
        names: Sequence[str] = model.encoder.words.asset_names()
        model.encoder.words.load_assets(
            {
                file: cached_file(name, file, _raise_exceptions_for_missing_entries=False, **hub)
                for file in names
            }
        )
        model.freeze()
        return loaded

    def save_pretrained(  # type: ignore[override]
        self,
        save_directory: str | os.PathLike[str],
        is_main_process: bool = True,
        state_dict: dict[Any, Any] | None = None,
        push_to_hub: bool = False,
        **kwargs: Any,
    ) -> None:
        """Save the model with its words or tokenizer; see `PreTrainedModel.save_pretrained`.

        Raises:
            ValueError: the model has no tokenizer.
        """
        words = self.encoder.words
        words.describe_in(self.config)
        hub = {key: kwargs.pop(key) for key in PUSH_ARGUMENTS if key in kwargs}
        if is_main_process:
            folder = Path(save_directory)
            folder.mkdir(parents=True, exist_ok=True)
            words.save_assets(folder)
        super().save_pretrained(save_directory, is_main_process, state_dict, **kwargs)
        if push_to_hub and is_main_process:
            # The base class would upload only what it has written itself, so neither words nor tokenizer.
            self.push_to_hub(hub.pop("repo_id", Path(save_directory).name), **hub)

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:  # type: ignore[override]
        """Put the model on the Hub, searched for what is private; a new repository shows to its owner alone.

        Args:
            repo_id: USER/NAME.
            options: those of `PreTrainedModel.push_to_hub`, of which `private` is true unless it is false;
                `tag`, a name for the commit; and `vocabulary` (`"public"` or `"all"`) and `vectors`, see
                `hf-xst push --help`.

        Raises:
            ValueError: something private would go, or the Hub refuses; in one line.
        """
        # What may be published is known above this layer: it is found when it is wanted, by its public name.
        publish: Any = import_module(__name__.partition(".")[0]).push_model
        return publish(self, repo_id, **options)

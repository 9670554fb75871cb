"""Build a model over words from vectors or a pretrained encoder, and save and load it."""

from __future__ import annotations

import copy
import os
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from torch import nn
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import CONFIG_NAME

from hf_xst.data.vectors import WordVectors
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.encoders import DistanceAwareAttention, WordEncoder
from hf_xst.models.model_checks import HUB_ARGUMENTS, check_loaded, check_weights, find_file
from hf_xst.models.pretrained_files import load_encoder, load_tokenizer, piece_limit, quiet_transformers
from hf_xst.models.pretrained_words import PretrainedWords
from hf_xst.models.words import VectorTable

PUSH_ARGUMENTS = "repo_id commit_message commit_description private token revision create_pr tags".split()


class WordModel(PreTrainedModel):  # type: ignore[no-untyped-call, unused-ignore]
    """A model that reads words through a `WordEncoder`; subclasses define its output."""

    config: StructuredConfig
    main_input_name = "lengths"
    base_model_prefix = ""
    leading: ClassVar[int]
    """Number of special words before a sentence."""
    trailing: ClassVar[int]
    """Number of special words after a sentence."""

    def __init__(self, config: StructuredConfig) -> None:
        super().__init__(config)
        self.revision: str | None = None  # on the Hub, of a model loaded from there
        extra = config.upos_size if config.uses_upos else 0
        self.encoder = WordEncoder(config, leading=self.leading, trailing=self.trailing, extra_size=extra)

    def _init_weights(self, module: nn.Module) -> None:
        # transformers guards torch's initialisers while it loads a checkpoint: loaded tensors stay.
        if isinstance(
            module,
            (nn.Linear, nn.Embedding, nn.LayerNorm, DistanceAwareAttention, WordEncoder, VectorTable),
        ):
            module.reset_parameters()

    # -- building -------------------------------------------------------------------------------------

    @classmethod
    def from_vectors(cls, config: StructuredConfig, vectors: WordVectors) -> Self:
        """Build a randomly initialised model of encoder A over word vectors.

        The configuration, with `encoder="vectors"`, is copied, and given the width of the vectors.

        Raises:
            ValueError: the configuration is for encoder B, or for vectors of another space.
        """
        config = copy.deepcopy(config)
        if config.encoder != "vectors":
            raise ValueError(f"the configuration has encoder={config.encoder!r}; expected 'vectors'")
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
        layers: float | None = None,
        **hub: Any,
    ) -> Self:
        """Build a model of encoder B over a pretrained `AutoModel`; the rest is randomly initialised.

        Args:
            config: sizes and labels; copied, and given the encoder's configuration.
            encoder: a folder or a Hub id.
            layers: number of layers of the encoder to keep, below 1 their share; defaults to all.
            hub: arguments of `from_pretrained`, such as `revision`.

        Raises:
            ValueError: the encoder or its tokenizer is unsuitable.
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
        words.set_encoder(pretrained, tokenizer)
        words.write_settings(config)
        return model

    # -- words ----------------------------------------------------------------------------------------

    def replace_word_vectors(self, vectors: WordVectors) -> None:
        """Replace encoder A's table by another language's; raise ValueError if their spaces differ."""
        self._word_table().replace(vectors)
        self._word_table().write_settings(self.config)

    def train_word_vectors(self, trained: bool = True) -> None:
        """Make encoder A's vectors trainable, as in the published transfer, or freeze them again."""
        self._word_table().freeze(not trained)
        self._word_table().write_settings(self.config)

    def freeze(self) -> None:
        """Freeze the word table or the layers of the pretrained encoder as configured."""
        words = self.encoder.words
        words.freeze(not isinstance(words, VectorTable) or self.config.freeze_word_vectors)

    def _word_table(self) -> VectorTable:
        words = self.encoder.words
        if not isinstance(words, VectorTable):
            raise ValueError("this model has a pretrained encoder (encoder B) and no word vectors")
        return words

    # -- files ----------------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        """Load a model with its words or tokenizer from a folder or a Hub id; see `PreTrainedModel`.

        Files are checked before they are used: all tensors are present, finite and of the configured shape,
        and no code runs.

        Raises:
            ValueError: a file is faulty, files do not match, or weights are missing or pickled.
            OSError: the configuration is missing, or the Hub cannot be reached.
        """
        name = os.fspath(pretrained_model_name_or_path)
        hub = {key: kwargs[key] for key in HUB_ARGUMENTS if key in kwargs}
        if kwargs.pop("use_safetensors", None) is False or kwargs.get("gguf_file") or kwargs.get("variant"):
            raise ValueError(
                "weights are read from model.safetensors only; leave out other formats and variants"
            )
        is_reported = kwargs.pop("output_loading_info", False)
        # Reported by check_loaded, which has no exceptions.
        kwargs |= {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True}
        config: Any = kwargs.get("config")
        if not isinstance(config, StructuredConfig):
            config = cast(Any, cls.config_class).from_pretrained(config or name, **hub)
        check_weights(name, lambda: cls(config), hub)
        with quiet_transformers():
            loaded: Any = super().from_pretrained(name, *args, **kwargs)
        model, report = loaded
        check_loaded(name, model, report)
        model.revision = hub.get("revision")
        words = model.encoder.words
        assets = {file: find_file(name, file, hub) for file in words.asset_names}
        if missing := [file for file, path in assets.items() if path is None]:
            raise ValueError(
                f"the model folder has no {' and no '.join(missing)}; save it again with save_pretrained"
            )
        words.load_assets(assets)
        model.freeze()
        return (model, report) if is_reported else model

    def save_pretrained(  # type: ignore[override]
        self,
        save_directory: str | os.PathLike[str],
        is_main_process: bool = True,
        state_dict: dict[Any, Any] | None = None,
        push_to_hub: bool = False,
        **kwargs: Any,
    ) -> None:
        """Save the model with its words or tokenizer; raise ValueError if it has none."""
        words = self.encoder.words
        words.write_settings(self.config)
        hub = {key: kwargs.pop(key) for key in PUSH_ARGUMENTS if key in kwargs}
        folder = Path(save_directory)
        if is_main_process:
            folder.mkdir(parents=True, exist_ok=True)
            words.save_assets(folder)
        super().save_pretrained(save_directory, is_main_process, state_dict, **kwargs)
        for path in folder.glob("model*.safetensors") if is_main_process else ():
            path.chmod((folder / CONFIG_NAME).stat().st_mode)  # safetensors 0.8 ignores the umask
        if push_to_hub and is_main_process:
            # The base class would upload only the files that it wrote itself: no words, no tokenizer.
            self.push_to_hub(hub.pop("repo_id", Path(save_directory).name), **hub)

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:  # type: ignore[override]
        """Push the model to the Hub after privacy checks; new repositories are private by default.

        Args:
            repo_id: USER/NAME.
            options: those of `PreTrainedModel.push_to_hub`; `tag`, a name for the commit; `vocabulary`
                (`"public"` or `"all"`) and `vectors`, see `hf-xst push --help`.

        Raises:
            ValueError: private content was found, or the Hub refused the push.
        """
        # The privacy checks live in a higher layer, so they are looked up by their public name.
        publish: Any = import_module(__name__.partition(".")[0]).push_model
        return publish(self, repo_id, **options)

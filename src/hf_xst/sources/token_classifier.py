"""Use token classifiers of transformers (`*ForTokenClassification`) as sources."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import torch
import yaml
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForTokenClassification
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast
from transformers.utils import CONFIG_NAME

from hf_xst.console import say
from hf_xst.data import UPOS_TAGS
from hf_xst.data.labels import OUTSIDE, check_bio
from hf_xst.data.sentence import BLANK
from hf_xst.models.columns import Row
from hf_xst.models.configuration import StructuredConfig, check_names
from hf_xst.models.model_checks import read_settings
from hf_xst.models.pretrained_files import load_tokenizer, load_weights, piece_limit
from hf_xst.models.pretrained_words import PretrainedWords, sum_pieces
from hf_xst.numerics import safe_log, tensors_digest, working_dtype
from hf_xst.records import checked
from hf_xst.remote import explain_hub_error, split_revision
from hf_xst.sources.base import OtherTagger, inference_device

LabelChoice = Mapping[str, str] | Literal["as-is"] | None
_UPOS = sorted({*UPOS_TAGS} - {BLANK})
_UPOS_LABEL = re.compile(rf"(?:[BI]-)?(?:U?POS[_=:-])?({'|'.join(_UPOS)})(?:\|.*)?")


class LabelMap(NamedTuple):
    """The tag of each label of a model, `_` if it is left out; the column and the scheme of the tags."""

    tag_of: list[str]
    column: str
    scheme: str | None


class TokenClassifier(OtherTagger):
    """A tagger over a token classifier. It reads words only, long sentences in overlapping windows.

    Words without pieces, such as control characters, and words with all probability on labels that are left
    out get the uniform distribution, which is neutral in a pool.

    Args:
        model: the classifier, whose parameters are then frozen.
        tokenizer: its tokenizer, which has to map pieces to words.
        labels, column: see `map_labels`.
        pooling: a word's probabilities are those of its `"first"` piece or the `"mean"` over its pieces.
    """

    kind = "token-classifier"
    input_columns = ("words",)

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        *,
        labels: LabelChoice = None,
        column: str | None = None,
        pooling: str = "first",
    ) -> None:
        checked(Literal["first", "mean"], pooling, "pooling")
        self.pooling = pooling
        label_of: dict[Any, str] = dict(model.config.id2label or {})
        names = [label_of[index] for index in range(len(label_of))]
        self.label_map = map_labels(names, labels, column)
        tags = sorted({*self.label_map.tag_of} - {BLANK})
        if not tags:
            raise ValueError(f"all labels of the model are left out: {', '.join(names)}")
        super().__init__(tags, self.label_map.column, self.label_map.scheme)
        _report(model.name_or_path or self.kind, names, self.label_map)
        self._pieces = _ClassifierPieces(model, tokenizer)
        matrix = [[float(each == tag) for tag in tags] for each in self.label_map.tag_of]
        self._tag_of_label = torch.tensor(matrix, dtype=working_dtype(model.device), device=model.device)

    @classmethod
    def load(cls, path: str, revision: str | None = None, **options: Any) -> Self:
        """Load a classifier from a folder or a Hub id, on the GPU if there is one; for options see the class.

        Raises:
            ValueError: the model is missing, damaged or of another kind, depends on external code or pickled
                weights, or its labels cannot be mapped.
        """
        name, revision = split_revision(path, revision)
        hub: dict[str, Any] = {"revision": revision} if revision else {}
        try:
            config = AutoConfig.for_model(**_checked_settings(name, hub))
            model = load_weights(AutoModelForTokenClassification.from_pretrained, name, config, hub)
            tokenizer = load_tokenizer(name, **hub)
        except OSError as error:
            why = str(error) if Path(name).exists() else explain_hub_error(error, name, revision=revision)
            raise ValueError(f"cannot load the token classifier {name}: {why}") from error
        return cls(nn.Module.to(model, inference_device()), tokenizer, **options)

    @torch.no_grad()
    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each tag for each word: (B, N, T)."""
        sentences = [row["words"] for row in rows]
        longest = max(map(len, sentences), default=0)
        model, tag_of_label = self._pieces.model, self._tag_of_label  # (K, T) for K labels
        features = {key: value.to(model.device) for key, value in self._pieces.featurise(sentences).items()}
        slots = features.pop("piece_slots")  # (W, P): sentence * N + word
        summed = tag_of_label.new_zeros(len(sentences) * longest, len(tag_of_label))  # (B * N, K)
        if len(slots):
            is_used = slots >= 0
            pieces = model(**features).logits[is_used].to(summed.dtype).softmax(-1)
            summed = sum_pieces(pieces, slots[is_used], len(summed), self.pooling)
        tags = summed @ tag_of_label  # (B * N, T); normalising makes the sum over pieces their mean
        total = tags.sum(-1, keepdim=True)
        tags = torch.where(total == 0, 1 / tags.shape[-1], tags / total)  # NaN stays NaN
        return safe_log(tags).float().view(len(sentences), longest, -1)

    def digest(self) -> str:
        """Return the SHA-256 of weights, configuration, tokenizer, label map and pooling."""
        content = [self._pieces.describe(), self.label_map, self.pooling]
        return tensors_digest(self._pieces.model.state_dict(), json.dumps(content), self._pieces.model)


class _ClassifierPieces(PretrainedWords):
    """The pieces and windows of encoder B, with a classifier in place of the encoder."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        nn.Module.__init__(self)  # the parent would build an encoder from a configuration
        self.frozen_layers = -1
        self.piece_pooling = "none"  # type: ignore[assignment]
        self.max_pieces = min(StructuredConfig.max_pieces, piece_limit(model, tokenizer))
        self.set_encoder(model, tokenizer)


def map_labels(labels: Sequence[str], choice: LabelChoice = None, column: str | None = None) -> LabelMap:
    """Map a model's labels to tags; the probabilities of labels with the same tag add up.

    By default labels become UPOS tags: lower case, the prefixes `UPOS_`, `POS_`, `B-` and `I-`, and features
    after `|` are ignored, and `_` is left out. BIO labels of other types are kept, in the column `ner_tags`.

    Args:
        labels: the labels.
        choice: tags by label, `_` to leave one out, where they differ from the default; or `"as-is"`.
        column: the column of the tags; in columns other than `upos` labels are kept by default.

    Raises:
        ValueError: a label has no UPOS tag, or BIO labels are incomplete.
    """
    mapping = choice if isinstance(choice, Mapping) else {}
    if choice == "as-is" and column is None:
        raise ValueError("labels='as-is' requires the column of the labels, such as column='xpos'")
    if choice != "as-is" and column in (None, "upos"):
        upos = [mapping.get(label) or _upos_of(label) for label in labels]
        unmapped = [label for label, tag in zip(labels, upos, strict=True) if tag not in UPOS_TAGS]
        if not unmapped:
            return LabelMap([tag or BLANK for tag in upos], "upos", None)
        if column or not mapping.keys().isdisjoint(labels) or not _is_bio(labels):
            raise ValueError(
                f"{len(unmapped)} of {len(labels)} labels have no UPOS tag: {', '.join(unmapped)}. The model "
                f"has the labels {', '.join(labels)}; the UPOS tags are {', '.join(_UPOS)}. Write a YAML "
                "file with a line for each label, such as 'NN: NOUN', or 'NN: _' to leave it out, and pass "
                "it (--label-map MAP.yaml, or labels=read_label_map('MAP.yaml')); or use the labels as they "
                "are and name their column (--column xpos)"
            )
    tag_of = [mapping.get(label, label) for label in labels]
    scheme = "bio" if _is_bio(tag_of) else None
    if scheme is not None:
        check_bio([tag for tag in tag_of if tag != BLANK])
    return LabelMap(tag_of, column or "ner_tags", scheme)


def read_label_map(path: str | Path) -> dict[str, str]:
    """Read a YAML file with lines `LABEL: TAG`; everything is text, also NO, 1 and null.

    Raises:
        ValueError: the file is missing, has another form, or maps a label twice.
    """
    try:
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f'cannot read the label map {path} (quote labels such as ","): {error}') from error
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    if not pairs or not all(isinstance(node, yaml.ScalarNode) for pair in pairs for node in pair):
        raise ValueError(f"cannot read the label map {path}: expected lines such as 'NN: NOUN'")
    keys = [key.value for key, _ in pairs]
    check_names(f"the label map {path}", keys)
    return {key.value: tag.value for key, tag in pairs}


def _upos_of(label: str) -> str | None:
    match = _UPOS_LABEL.fullmatch(label.strip().upper())
    return match[1] if match else BLANK if label == BLANK else None


def _is_bio(labels: Sequence[str]) -> bool:
    spans = set(labels) - {OUTSIDE, BLANK}
    return bool(spans) and all(re.fullmatch("[BI]-.+", label) for label in spans)


def _report(name: str, labels: Sequence[str], label_map: LabelMap) -> None:
    """Report labels that are left out, and UPOS tags that the model cannot predict."""
    left_out = [label for label, tag in zip(labels, label_map.tag_of, strict=True) if tag == BLANK]
    if left_out:
        names = ", ".join(left_out)
        say(f"{name}: {len(left_out)} of {len(labels)} labels are left out: {names}", "yellow")
    missing = [tag for tag in _UPOS if tag not in label_map.tag_of]
    if label_map.column == "upos" and 0 < len(missing) < len(_UPOS):
        say(f"{name}: {len(missing)} UPOS tags have no label: {', '.join(missing)}", "yellow")


def _checked_settings(name: str, hub: Mapping[str, Any]) -> dict[str, Any]:
    """Read the configuration; reject other kinds of models, and references to code and to other models."""
    settings = read_settings(name, CONFIG_NAME, hub)
    if not settings:
        raise ValueError(f"{name} has no {CONFIG_NAME}; expected a token classifier of transformers")
    architecture = (settings.get("architectures") or ["no architecture"])[0]
    if "model_type" not in settings or not architecture.endswith("ForTokenClassification"):
        raise ValueError(
            f"{name} is not a token classifier of transformers: {CONFIG_NAME} names {architecture}; expected "
            "a model_type and an architecture ...ForTokenClassification"
        )
    return settings

"""Models and pretrained encoders that are small enough to check by hand."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModel,
    BertConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    XLMRobertaConfig,
)

from hf_xst import BiaffineParser, BiaffineParserConfig, CrfTagger, CrfTaggerConfig
from hf_xst.data.vectors import WordVectors
from hf_xst.models import StructuredModel

WORDS = ["the", "dog", "sees", "a", "cat", "."]
SENTENCES = [["the", "dog", "sees", "a", "cat"], ["dog"], ["a", "zebra", "."]]
UPOS = [["DET", "NOUN", "VERB", "DET", "NOUN"], ["NOUN"], ["DET", "NOUN", "PUNCT"]]
TREES = [
    {"head": [2, 3, 0, 5, 3], "deprel": ["det", "nsubj", "root", "det", "obj"]},
    {"head": [0], "deprel": ["root"]},
    {"head": [2, 0, 2], "deprel": ["det", "root", "unheard"]},
]
ROWS: list[dict[str, Any]] = [
    {"sent_id": f"s{index}", "words": words, "upos": upos, **tree}
    for index, (words, upos, tree) in enumerate(zip(SENTENCES, UPOS, TREES, strict=True))
]
RELATIONS = ["det", "nsubj", "obj", "root"]
TAGS = ["DET", "NOUN", "VERB"]  # PUNCT stays unknown
SMALL = {
    "attention_heads": 2,
    "key_size": 4,
    "feed_forward_size": 7,
    "context_layers": 1,
    "max_distance": 3,
}


def word_vectors(
    words: Sequence[str] = WORDS, size: int = 8, name: str = "space", seed: int = 0
) -> WordVectors:
    matrix = np.random.default_rng(seed).standard_normal((len(words), size)).astype(np.float32)
    return WordVectors(list(words), matrix, name, sha256=f"{seed:064d}")


def parser_config(**changes: Any) -> BiaffineParserConfig:
    settings = {"labels": RELATIONS, "upos_names": TAGS, "upos_size": 3, "arc_size": 6, "label_size": 5}
    return BiaffineParserConfig(**(settings | SMALL | changes))


def tagger_config(**changes: Any) -> CrfTaggerConfig:
    return CrfTaggerConfig(**({"labels": TAGS} | SMALL | changes))


def parser(vectors: WordVectors | None = None, **changes: Any) -> BiaffineParser:
    return BiaffineParser.from_vectors(parser_config(**changes), vectors or word_vectors()).eval()


def tagger(vectors: WordVectors | None = None, **changes: Any) -> CrfTagger:
    return CrfTagger.from_vectors(tagger_config(**changes), vectors or word_vectors()).eval()


def loud(model: StructuredModel) -> StructuredModel:
    """Draw all parameters with a scale of about 1, so that errors show in the scores."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) / max(1, parameter.shape[-1]) ** 0.5)
    return model


def piece_tokenizer(**settings: Any) -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer with one piece per letter; like BERT's it drops control characters."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [*string.ascii_lowercase, *string.digits, ".", ","]
    vocabulary = [*special, *letters, *(f"##{letter}" for letter in letters)]
    backend = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names, **settings)


def sentence_tokenizer(**settings: Any) -> PreTrainedTokenizerFast:
    """A Unigram tokenizer like XLM-R's, whose special pieces are also ordinary pieces of the vocabulary."""
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces = [("▁", -3.0), *((letter, -4.0) for letter in string.ascii_lowercase), ("▁the", -2.0)]
    backend = Tokenizer(models.Unigram([*special, *pieces], unk_id=3))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names, **settings)


def byte_tokenizer(*, nested: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer like GPT-2's: no special pieces, and other pieces at the start of a word.

    Args:
        nested: split the text by a pattern first, as newer families do.
    """
    merges = [("Ġ", letter) for letter in string.ascii_lowercase]
    vocabulary = ["Ġ", *string.ascii_lowercase, *("".join(pair) for pair in merges)]
    backend = Tokenizer(models.BPE({w: i for i, w in enumerate(vocabulary)}, merges))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not nested)
    cut = pre_tokenizers.Split(Regex(r" ?\w+|\s+"), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence([cut, level]) if nested else level
    return PreTrainedTokenizerFast(tokenizer_object=backend)


def save_encoder(
    folder: Path, kind: type[PreTrainedConfig], tokenizer: PreTrainedTokenizerFast, **changes: Any
) -> Path:
    """Write a randomly initialised encoder, pooler included, and its tokenizer."""
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 20,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,
    }
    config = kind(**(sizes | changes))
    torch.manual_seed(1)
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_bert(folder: Path, **changes: Any) -> Path:
    return save_encoder(folder, BertConfig, piece_tokenizer(model_max_length=20), **changes)


def save_roberta(folder: Path, **changes: Any) -> Path:
    """A RoBERTa, which never uses two of its positions; its tokenizer has no limit."""
    return save_encoder(folder, RobertaConfig, sentence_tokenizer(), **changes)


def save_xlm_roberta(folder: Path, **changes: Any) -> Path:
    return save_encoder(folder, XLMRobertaConfig, sentence_tokenizer(), **changes)


def model_over(folder: Path, **changes: object) -> CrfTagger:
    layers = changes.pop("layers", None)
    return CrfTagger.from_encoder(tagger_config(context_layers=0, **changes), folder, layers=layers).eval()


def word_states(model: StructuredModel, sentences: list[list[str]]) -> torch.Tensor:
    words = model.encoder.words
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    with torch.no_grad():
        return words(lengths, **words.featurise(sentences))

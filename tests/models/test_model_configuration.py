from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig

from helpers.tiny_models import RELATIONS, parser_config, tagger_config
from hf_xst import BiaffineParserConfig, CrfTaggerConfig


def test_defaults_are_the_published_sizes() -> None:
    config = BiaffineParserConfig()
    assert (config.word_size, config.upos_size, config.arc_size, config.label_size) == (300, 50, 512, 128)
    assert (config.context_depth, config.attention_heads, config.key_size) == (6, 8, 64)
    assert (config.feed_forward_size, config.max_distance) == (512, 10)
    assert (config.word_dropout, config.output_dropout, config.context_dropout) == (0.2, 0.2, 0.1)
    assert config.single_root
    assert not config.projective
    assert config.score_form == "log_softmax"
    assert config.freeze_word_vectors
    assert CrfTaggerConfig().output_dropout == 0
    assert BiaffineParserConfig(encoder="pretrained").context_depth == 0
    assert BiaffineParserConfig(encoder="pretrained", context_layers=2).context_depth == 2


@pytest.mark.parametrize(
    "config",
    [parser_config(), tagger_config(column="xpos"), BiaffineParserConfig()],
    ids=["parser", "tagger", "default"],
)
def test_saved_configurations_are_equal(config: Any, tmp_path: Path) -> None:
    config.save_pretrained(tmp_path)
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert type(loaded) is type(config)
    assert loaded.to_dict() | {"_name_or_path": ""} == config.to_dict()
    assert type(config).from_dict(json.loads(json.dumps(config.to_dict()))).to_dict() == config.to_dict()


def test_labels_fill_id2label_and_label2id() -> None:
    config = parser_config()
    assert config.id2label == dict(enumerate(RELATIONS))
    assert config.label2id == {name: index for index, name in enumerate(RELATIONS)}
    assert config.num_labels == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "magic"}, "encoder is 'magic'; expected 'vectors' or 'pretrained'"),
        ({"piece_pooling": "last"}, "expected 'mean' or 'first'"),
        ({"score_form": "probability"}, "expected 'log_softmax' or 'raw'"),
        ({"labels": ["a", "b", "a"]}, "labels holds a more than once"),
        ({"upos_names": ["X", "X"]}, "upos_names holds X more than once"),
        ({"word_dropout": 1.0}, "word_dropout is 1.0; expected a rate"),
        ({"output_dropout": -0.1}, "output_dropout is -0.1"),
        ({"frozen_layers": -2}, "frozen_layers is -2; expected at least -1"),
        ({"max_pieces": 0}, "max_pieces is 0"),
        ({"context_layers": -1}, "context_layers is -1"),
    ],
)
def test_invalid_fields_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BiaffineParserConfig(**changes)


def test_a_rate_may_be_a_whole_number():
    assert BiaffineParserConfig(context_dropout=0, word_dropout=0).context_dropout == 0
    with pytest.raises(ValueError, match=r"word_dropout is 1; expected a rate in \[0, 1\)"):
        BiaffineParserConfig(word_dropout=1)

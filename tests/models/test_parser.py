from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from helpers.tiny_models import RELATIONS, ROWS, SENTENCES, UPOS, loud, parser
from hf_xst import BiaffineParser, BiaffineParserConfig
from hf_xst.structures import DependencyTreeCRF


def test_predictions_are_single_root_trees() -> None:
    model = loud(parser())
    result = model.predict(ROWS)
    assert [len(columns["head"]) for columns in result] == [5, 1, 3]
    for columns in result:
        assert columns["head"].count(0) == 1
        assert set(columns["deprel"]) <= set(RELATIONS)
    assert result[1]["head"] == [0]
    assert [model.predict([row])[0] for row in ROWS] == result
    assert model.predict([]) == []
    assert model.predict([{key: np.array(value) for key, value in row.items()} for row in ROWS]) == result


def test_predict_uses_evaluation_mode_and_restores_the_mode() -> None:
    model = loud(parser(word_dropout=0.9)).train()
    assert model.predict(ROWS) == model.predict(ROWS)
    assert model.training
    with pytest.raises(ValueError, match="has no words"):
        model.predict([{"words": [], "upos": []}])
    assert model.training


def test_the_configuration_selects_the_space_of_trees() -> None:
    model = loud(parser(single_root=False, projective=True))
    space = model.distribution(model(**model.featurise(ROWS)))
    assert isinstance(space, DependencyTreeCRF)
    assert (space.single_root, space.projective, space.root_label) == (False, True, RELATIONS.index("root"))


def test_encoded_gold_decodes_to_itself() -> None:
    model = parser()
    labels, lengths = model.encode_gold(ROWS), torch.tensor([5, 1, 3])
    assert labels.shape == (3, 5, 2)
    assert labels[2].tolist() == [[2, 0], [0, 3], [2, -1], [-1, -1], [-1, -1]]
    back = model.decode(model.gold_best(labels, lengths), lengths)
    assert back[:2] == [{"head": row["head"], "deprel": row["deprel"]} for row in ROWS[:2]]
    assert back[2] == {"head": [2, 0, 2], "deprel": ["det", "root", "_"]}


def test_gold_with_other_label_names() -> None:
    model, names = parser(), [*reversed(RELATIONS), "unheard"]
    labels = model.encode_gold(ROWS, names)
    assert labels[2, :3, 1].tolist() == [names.index(name) for name in ROWS[2]["deprel"]]
    lengths = torch.tensor([5, 1, 3])
    assert model.decode(model.gold_best(labels, lengths, names), lengths, names) == [
        {"head": row["head"], "deprel": row["deprel"]} for row in ROWS
    ]


def test_missing_heads_are_minus_one() -> None:
    row = {"words": ["a", "b"], "upos": ["X", "X"], "head": [None, 0], "deprel": ["det", "root"]}
    assert parser().encode_gold([row])[0].tolist() == [[-1, 0], [0, 3]]


@pytest.mark.parametrize("head", [3, 2, 100])
def test_heads_beyond_the_sentence_or_at_the_word_itself_are_refused(head: int) -> None:
    rows = [{"sent_id": "a", "words": ["w"] * 5, "head": [0, 1, 1, 1, 1], "deprel": ["x"] * 5}]
    rows.append({"sent_id": "b", "words": ["w"] * 2, "head": [0, head], "deprel": ["x"] * 2})
    with pytest.raises(ValueError, match=f"sentence b: word 2 has the head {head}; expected"):
        parser().encode_gold(rows)


@pytest.mark.parametrize("column", ["head", "deprel"])
@pytest.mark.parametrize("count", [1, 3])
def test_gold_of_another_length_is_refused(column: str, count: int) -> None:
    row = {"sent_id": "b", "words": ["w"] * 2, "head": [0, 1], "deprel": ["x"] * 2}
    with pytest.raises(ValueError, match=f"sentence b: found {count} values of {column} for 2 words"):
        parser().encode_gold([row, row | {column: [0] * count}])


def test_words_and_tensors_give_the_same_scores() -> None:
    model = loud(parser())
    by_words = model(words=SENTENCES, upos=UPOS)
    by_tensors = model(**model.featurise(ROWS))
    assert_close(by_words.scores, by_tensors.scores, atol=0, rtol=0)
    assert by_words.lengths.tolist() == [5, 1, 3]
    assert by_words.loss is None
    odd = [["", " ", "\u200f"], ["<root>", "<pad>", "10 000"]]
    unknown = model(words=[["q", "q", "q"]] * 2, upos=[["NOUN"] * 3] * 2)
    assert_close(model(words=odd, upos=[["NOUN"] * 3] * 2).scores, unknown.scores, atol=0, rtol=0)


def test_cached_word_embeddings_replace_words() -> None:
    model = loud(parser())
    features = model.featurise(ROWS)
    states = model.encoder.words(features["lengths"], features["word_ids"])
    states[1, 1:] = float("nan")  # beyond the sentence
    features_without_words = model.featurise(ROWS, words=False)
    assert "word_ids" not in features_without_words
    by_states = model(**features_without_words, word_states=states)
    assert_close(by_states.scores, model(**features).scores, atol=0, rtol=0)
    by_words = model(words=SENTENCES, upos=UPOS, word_states=states)
    assert_close(by_words.scores, by_states.scores, atol=0, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": ["the", "dog"]}, "'the'; expected a list of words"),
        ({"words": [["the"], []]}, "sentence 1 has no words"),
        ({"words": [["the"]]}, "reads UPOS tags"),
        ({"words": [["the"]], "upos": [["DET", "DET"]]}, "2 values of upos for 1 words"),
        ({"words": [["the", "dog"]], "upos": ["DE"]}, "2 values of upos for 2 words; expected a list"),
        ({"words": [["the"]], "upos": []}, "UPOS tags of 0 sentences for 1"),
        ({}, "pass words"),
        ({"lengths": torch.tensor([1])}, "pass words"),
        ({"lengths": torch.tensor([1]), "word_ids": torch.tensor([[2]])}, "pass upos or upos_ids"),
    ],
)
def test_invalid_input_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parser()(**arguments)


def test_columns_and_names() -> None:
    model = parser()
    assert model.columns == ("head", "deprel")
    assert model.input_columns == ("words", "upos")
    assert parser(uses_upos=False).input_columns == ("words",)
    assert model.names == RELATIONS
    assert (model.main_metric, model.label_column) == ("las", "deprel")


def test_settings_from_rows() -> None:
    rows = [*ROWS, {"words": ["x"], "upos": ["_"], "head": [0], "deprel": ["_"]}]
    assert BiaffineParser.settings_from_rows(rows) == {
        "labels": ["det", "nsubj", "obj", "root", "unheard"],
        "upos_names": ["DET", "NOUN", "PUNCT", "VERB"],
    }


def test_models_without_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="has no labels"):
        BiaffineParser(BiaffineParserConfig(upos_names=["X"]))

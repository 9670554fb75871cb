"""Shared field cases that go through several modules.

Others are tested beside the code: P02, P05 and P08 in data/test_conllu.py, P03 in
inference/test_predict.py, P07 in data/test_preparation.py, P09 in data/test_treebanks.py, P11 and P12 in
data/test_vectors.py, P19 in charts/test_pooling_laws.py, P22 in training/test_evaluation.py; further
modules name theirs above.
"""

from __future__ import annotations

import math

import pytest

from helpers.small_models import arguments
from helpers.tiny_models import TAGS, parser, parser_config, word_vectors
from hf_xst import BiaffineParser, SupervisedTrainer
from hf_xst.commands.sentences import gold_rows
from hf_xst.data import load_treebank, prepare, prepared_features
from hf_xst.metrics import score
from hf_xst.models.running import predict_rows


@pytest.fixture
def gold(shared):
    """Prepare the sentences of a case with their gold trees."""

    def read(name, **options):
        data = load_treebank(shared("fieldcases", "files", f"{name}.conllu"))["data"]
        return prepare(data, gold=True, **options)[0]

    return read


def test_field_case_p01_heads_refer_to_words_only(gold):
    rows = gold("p01_mwt_empty")
    assert [len(words) for words in rows["words"]] == [7, 10, 3, 5]
    predicted = list(predict_rows(parser(), rows))
    for words, heads, tree in zip(rows["words"], rows["head"], predicted, strict=True):
        for each in (heads, tree["head"]):
            assert len(each) == len(words)
            assert each.count(0) == 1
            assert all(0 <= head <= len(words) for head in each)
    assert all("-" not in word and word != "ella" for words in rows["words"] for word in words)


def test_field_case_p04_number_signs_are_words(gold):
    rows = gold("p04_comment_shapes")
    assert [words[0] for words in rows["words"]] == ["#", "#1", "Klaar"]
    assert rows["sent_id"][:] == ["p04-fr", "p04_comment_shapes.conllu:2", "p04-nl"]


def test_field_case_p06_gold_with_blank_heads_is_rejected_or_counted(shared):
    bank = f"train={shared('fieldcases', 'files', 'p06_heads_blank.conllu')}"
    with pytest.raises(ValueError, match=r"2 of 2 .* cannot be used \(first: p06-tr: word 1: HEAD is blank"):
        gold_rows(bank, "train", [])
    with pytest.raises(ValueError, match=r"no sentence is left: .*0 of 2 sentences kept, 2 faulty"):
        gold_rows(bank, "train", [], faulty="skip")


def test_field_case_p10_empty_splits_have_the_same_schema(gold, shared):
    data = load_treebank(shared("fieldcases", "files", "p10_sparse_extras.conllu"))["data"]
    many, _ = prepare(data, gold=True, num_proc=12)
    assert many[:] == gold("p10_sparse_extras")[:]
    nothing, report = prepare(data.select([]), gold=True, num_proc=2)
    assert (nothing.features, len(nothing), report.sentences) == (prepared_features(gold=True), 0, 0)


def test_field_case_p13_words_without_letters_are_unknown_to_vectors(gold):
    model = parser(word_vectors(["heute", "regen", "tee", "שלום", "x"]))
    for row, odd in zip(gold("p13_zero_subwords"), (2, 1, 1), strict=True):
        words = row["words"]
        (ids,) = model.encoder.featurise([words])["word_ids"]
        (replaced,) = model.encoder.featurise([[*words[:odd], "x", *words[odd + 1 :]]])["word_ids"]
        assert (ids != replaced).nonzero().tolist() == [[odd]]
        assert ids[odd] == 1
        assert len(model.predict([row])[0]["head"]) == len(words)


@pytest.mark.parametrize("encoder", ["vectors", "pretrained"])
def test_field_case_p14_long_sentences_are_predicted_scored_and_trained(gold, bert, tmp_path, encoder):
    rows = gold("p14_long_sentence")
    names = {"labels": sorted({name for names in rows["deprel"] for name in names}), "upos_names": TAGS}
    config = parser_config(**names, context_layers=0)
    model = parser(**names) if encoder == "vectors" else BiaffineParser.from_encoder(config, bert)
    predicted = list(predict_rows(model, rows))
    assert [len(tree["head"]) for tree in predicted] == [240, 2]
    assert score(predicted, rows, ("head", "deprel"))["words"] == 242
    trainer = SupervisedTrainer(model, arguments(tmp_path, 2, max_steps=1), rows)
    assert math.isfinite(trainer.train().training_loss)

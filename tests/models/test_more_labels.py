from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from helpers.tiny_models import RELATIONS, ROWS, SENTENCES, TAGS, UPOS, loud, parser, tagger


def test_parsers_keep_the_scores_of_their_labels() -> None:
    model = loud(parser(score_form="raw"))
    before = model(words=SENTENCES, upos=UPOS).scores
    model.add_labels(["iobj", "aux"])
    after = model(words=SENTENCES, upos=UPOS).scores
    assert_close(after[..., :4], before)
    assert after.shape[-1] == 6
    assert after.isfinite().all()
    assert model.names == model.config.labels == [*RELATIONS, "iobj", "aux"]
    assert model.config.id2label[5] == "aux"
    assert model.config.label2id["iobj"] == model.config.num_labels - 2 == 4
    assert model.scorer.label_head.out_features == 6


def test_taggers_keep_scores_and_boundaries() -> None:
    model = loud(tagger())
    before = model(words=SENTENCES).scores
    model.add_labels(["PUNCT"])
    after = model(words=SENTENCES).scores
    assert model.names == [*TAGS, "PUNCT", "<s>", "</s>"]
    old = torch.tensor([0, 1, 2, 4, 5])
    assert_close(after[..., old[:, None], old], before)
    assert after[1, 0, 4, 3].isfinite()  # from the start to the new tag
    assert after[1, 1, 3, 5].isfinite()  # from the new tag to the end
    assert model.encode_gold(ROWS)[2].tolist() == [0, 1, 3, -1, -1]


@pytest.mark.parametrize("make", [parser, tagger], ids=["parser", "tagger"])
def test_new_rows_are_trained_unless_their_parameter_is_frozen(make: type) -> None:
    model = loud(make())
    frozen = model.label_parameters()[0]
    frozen[0].get_parameter(frozen[1]).requires_grad_(False)
    model.add_labels(["new"])
    for position, (module, attribute, _) in enumerate(model.label_parameters()):
        assert module.get_parameter(attribute).requires_grad == (position > 0)
    model(**model.featurise(ROWS), labels=model.encode_gold(ROWS)).loss.backward()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["new", "VERB"], "already has the labels VERB"),
        (["</s>"], "already has the labels </s>"),
        (["new", "new"], "more than once"),
    ],
)
def test_duplicate_labels_are_refused(names: list[str], message: str) -> None:
    model = tagger()
    with pytest.raises(ValueError, match=message):
        model.add_labels(names)
    assert model.names == [*TAGS, "<s>", "</s>"]
    assert model.transitions.shape == (5, 5)


def test_adding_no_labels_changes_nothing() -> None:
    model = tagger()
    model.add_labels([])
    assert model.transitions.shape == (5, 5)

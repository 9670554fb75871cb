"""Taggers of spans: pairs of tags that are invalid in BIO have probability 0."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from transformers import AutoModel

from helpers.tiny_models import SENTENCES, TAGS, loud, tagger, tagger_config
from hf_xst import CrfTagger, CrfTaggerConfig, chart_loss, pooled_chart
from hf_xst.models.columns import bio_pairs

LABELS = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
LENGTHS = [5, 1, 3]
START, END = len(LABELS), len(LABELS) + 1


def entities(seed: int = 0, **changes: Any) -> CrfTagger:
    torch.manual_seed(seed)
    return loud(tagger(column="ner_tags", labels=changes.pop("labels", LABELS), scheme="bio", **changes))


def is_legal(labels: tuple[str, ...]) -> bool:
    """Check that every `I-X` follows `B-X` or `I-X`."""
    return all(
        not after.startswith("I-") or (before != "O" and before[2:] == after[2:])
        for before, after in zip(("O", *labels), labels, strict=False)
    )


def sequences(length: int) -> list[tuple[int, ...]]:
    names = itertools.product(LABELS, repeat=length)
    return [tuple(LABELS.index(label) for label in each) for each in names if is_legal(each)]


def unmasked(model: CrfTagger, words: list[str]) -> Tensor:
    """Score all adjacent pairs by hand: (N+1, T, T)."""
    (states,) = model.encoder(torch.tensor([len(words)]), model.encoder.featurise([words]))
    return model.emissions(states)[1:, None, :] + model.transitions


def path_score(pairs: Tensor, labels: tuple[int, ...]) -> Tensor:
    path = [START, *labels, END]
    return sum(pairs[position, a, b] for position, (a, b) in enumerate(itertools.pairwise(path)))


@pytest.mark.parametrize("seed", range(3))
def test_only_legal_sequences_are_summed(seed: int) -> None:
    model = entities(seed)
    distribution = model.distribution(model(words=SENTENCES))
    for index, words in enumerate(SENTENCES):
        pairs = unmasked(model, words)
        legal = sequences(len(words))
        scores = torch.stack([path_score(pairs, labels) for labels in legal])
        assert_close(distribution.log_partition()[index], scores.logsumexp(0))
        assert_close(distribution.log_count()[index], torch.tensor(len(legal)).log())
        best = legal[int(scores.argmax())]
        assert distribution.best()[index, 1 : len(words) + 1].tolist() == list(best)
        marginals = torch.zeros_like(pairs)
        for labels, probability in zip(legal, scores.softmax(0), strict=True):
            for position, (a, b) in enumerate(itertools.pairwise([START, *labels, END])):
                marginals[position, a, b] += probability
        assert_close(distribution.marginals()[index, : len(words) + 1], marginals, atol=1e-6, rtol=1e-4)


def test_illegal_pairs_have_probability_zero() -> None:
    model = entities()
    names = model.names
    output = model(words=SENTENCES)
    marginals = model.distribution(output).marginals()
    for before, after in itertools.product(names, repeat=2):
        illegal = after.startswith("I-") and before[2:] != after[2:]
        if illegal:
            a, b = names.index(before), names.index(after)
            assert (output.scores[:, :, a, b] == -torch.inf).all()
            assert (marginals[:, :, a, b] == 0).all()


@given(st.integers(0, 10**6), st.floats(0.1, 1e4))
def test_best_sequences_are_legal_at_every_scale(seed: int, scale: float) -> None:
    model = entities(seed)
    with torch.no_grad():
        model.emissions.bias.mul_(scale)
        model.transitions.mul_(scale)
    output = model(words=SENTENCES)
    distribution = model.distribution(output)
    for best in (distribution.best(), *distribution.topk(3), *distribution.sample(3)):
        for columns in model.decode(best, output.lengths):
            assert "_" in columns["ner_tags"] or is_legal(tuple(columns["ner_tags"]))
    assert distribution.log_partition().isfinite().all()


def test_the_loss_and_its_gradient_are_finite() -> None:
    model = entities()
    rows = [
        {"ner_tags": ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]},
        {"ner_tags": ["O"]},
        {"ner_tags": ["O"] * 3},
    ]
    output = model(words=SENTENCES, labels=model.encode_gold(rows))
    for index, row in enumerate(rows):
        labels = tuple(LABELS.index(label) for label in row["ner_tags"])
        pairs = unmasked(model, SENTENCES[index])
        total = torch.stack([path_score(pairs, each) for each in sequences(len(labels))]).logsumexp(0)
        assert_close(output.losses[index], total - path_score(pairs, labels))
    output.loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    illegal = ~bio_pairs(model.names)
    assert (model.transitions.grad[illegal] == 0).all()
    assert (model.transitions.grad[~illegal] != 0).any()


def test_gold_in_another_scheme_is_converted_to_bio() -> None:
    model = entities()
    bio = model.encode_gold([{"ner_tags": ["B-PER", "I-PER", "B-PER", "O", "B-LOC"]}])
    for other in (["I-PER", "I-PER", "B-PER", "O", "I-LOC"], ["B-PER", "E-PER", "S-PER", "O", "U-LOC"]):
        assert torch.equal(model.encode_gold([{"ner_tags": other}]), bio)
    partly = model.encode_gold([{"ner_tags": ["_", "I-PER", "B-ORG", "I-ORG", None]}])
    assert partly.tolist() == [[-1, 3, -1, -1, -1]]
    losses = model(words=SENTENCES[:1], labels=partly).losses
    assert losses.isfinite().all()


def test_illegal_candidates_of_charts_are_ignored() -> None:
    model = entities()
    distribution = model.distribution(model(words=SENTENCES))
    everything = torch.ones_like(distribution.valid)
    assert_close(chart_loss(distribution, everything), torch.zeros(3))
    goes_on = torch.tensor([name.startswith("I-") for name in model.names])
    nothing = everything & distribution.group_view(goes_on.expand_as(distribution.scores))
    assert chart_loss(distribution, nothing).tolist() == [float("inf")] * 3
    kept = distribution.part_view(pooled_chart([distribution, distribution], sigma=1.0))
    assert not (kept & (distribution.scores == -torch.inf)).any()


def test_both_labels_of_a_new_type_must_be_added() -> None:
    model = entities()
    before = model(words=SENTENCES).scores
    with pytest.raises(ValueError, match="found the label I-ORG without B-ORG"):
        model.add_labels(["I-ORG"])
    assert_close(model(words=SENTENCES).scores, before)
    model.add_labels(["I-ORG", "B-ORG"])
    allowed = bio_pairs(model.names)
    position = {name: index for index, name in enumerate(model.names)}
    assert allowed[position["B-ORG"], position["I-ORG"]]
    assert not allowed[position["B-PER"], position["I-ORG"]]
    assert not allowed[position["<s>"], position["I-ORG"]]
    assert model(words=SENTENCES).scores[0, 1, position["B-ORG"], position["I-ORG"]].isfinite()


def test_save_and_load(tmp_path: Path) -> None:
    model = entities()
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert (loaded.config.scheme, loaded.config.column) == ("bio", "ner_tags")
    assert torch.equal(loaded(words=SENTENCES).scores, model(words=SENTENCES).scores)


def test_models_saved_without_a_scheme_load(tmp_path: Path) -> None:
    model = loud(tagger())
    model.save_pretrained(tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    del told["scheme"]
    (tmp_path / "config.json").write_text(json.dumps(told))
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.scheme is None
    assert loaded.main_metric == "accuracy"
    assert_close(loaded(words=SENTENCES).scores, model(words=SENTENCES).scores, rtol=0, atol=0)


def test_the_scheme_selects_the_main_metric() -> None:
    model = entities()
    assert (model.scheme, model.main_metric) == ("bio", "f1")
    assert model.label_settings == {"column": "ner_tags", "scheme": "bio"}
    assert tagger().label_settings == {"column": "upos", "scheme": None}
    rows = [{"upos": ["A"], "ner_tags": ["S-LOC"]}, {"upos": ["_"], "ner_tags": ["_"]}]
    result = CrfTagger.settings_from_rows(rows, "ner_tags", "bio")
    assert result == {"labels": ["B-LOC", "I-LOC", "O"], "upos_names": ["A"]}
    assert CrfTagger.settings_from_rows(rows, "ner_tags")["labels"] == ["S-LOC"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheme": "bio"}, "found the labels DET, NOUN, VERB; the scheme bio has O"),
        ({"scheme": "bioes"}, "scheme is 'bioes'; expected 'bio'"),
        ({"scheme": "bio", "labels": ["O", "I-X"]}, "found the label I-X without B-X"),
    ],
)
def test_labels_outside_the_scheme_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tagger_config(**changes)


def test_the_scheme_may_be_set_before_the_labels() -> None:
    assert CrfTaggerConfig(scheme="bio").labels == []
    assert tagger_config(labels=TAGS).scheme is None

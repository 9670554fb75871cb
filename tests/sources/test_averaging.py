"""Weight averaging, checked against sums by hand."""

from __future__ import annotations

import copy

import pytest
import torch

from helpers.small_models import KINDS, model_of
from hf_xst.sources.averaging import average_models, can_average, share_initialisation
from hf_xst.sources.loading import weights_digest


def tuned(kind: str, seed: int, **changes):
    """A model near the one of seed 0, as fine-tuning leaves it."""
    model = model_of(kind, **changes)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape))
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_the_weighted_average(kind):
    models = {"one": tuned(kind, 1), "two": tuned(kind, 2), "none": tuned(kind, 3)}
    before = copy.deepcopy(models["one"].state_dict())
    mean = average_models(models, {"one": 3.0, "two": 1.0, "none": 0.0})
    for name, value in mean.named_parameters():
        parts = [models[code].get_parameter(name) for code in ("one", "two")]
        torch.testing.assert_close(value, 0.75 * parts[0] + 0.25 * parts[1])
    assert all(torch.equal(value, before[name]) for name, value in models["one"].state_dict().items())
    even = average_models({"one": models["one"], "two": models["two"]})
    name = next(name for name, value in even.named_parameters() if value.requires_grad)
    expected = (models["one"].get_parameter(name) + models["two"].get_parameter(name)) / 2
    torch.testing.assert_close(even.get_parameter(name), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_average_of_equal_models_is_the_model(kind):
    model = model_of(kind)
    mean = average_models({"one": model, "two": copy.deepcopy(model)}, {"one": 0.3, "two": 0.7})
    for name, value in mean.named_parameters():
        torch.testing.assert_close(value, model.get_parameter(name))


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_is_averaged_over_the_models_that_have_it(kind):
    """Both models add labels of their own, one of them in another order."""
    one, two = tuned(kind, 1), tuned(kind, 2)
    own = len(one.config.labels)
    one.add_labels(["b", "a"])
    two.add_labels(["c", "b"])
    mean = average_models({"one": one, "two": two}, {"one": 0.25, "two": 0.75})
    assert mean.config.labels == [*one.config.labels, "c"]
    assert mean.names[len(mean.config.labels) :] == one.names[len(one.config.labels) :]
    b, a, c = own, own + 1, own + 2
    for (_, name, axes), *owners in zip(
        mean.label_parameters(), *(model.label_parameters() for model in (mean, one, two)), strict=True
    ):
        for axis in axes:
            # Of labels before labels, what goes with the first one, which both have.
            values = [owner.get_parameter(name).movedim(axis, 0) for owner, _, _ in owners]
            value, ours, theirs = (part if len(axes) == 1 else part[:, 0] for part in values)
            torch.testing.assert_close(value[b], 0.25 * ours[own] + 0.75 * theirs[own + 1])
            torch.testing.assert_close(value[a], ours[own + 1])
            torch.testing.assert_close(value[c], theirs[own])
            torch.testing.assert_close(value[own + 3 :], 0.25 * ours[own + 2 :] + 0.75 * theirs[own + 2 :])


def test_pairs_of_labels_that_no_model_has_stay_finite():
    one, two = tuned("tagger", 1), tuned("tagger", 2)
    one.add_labels(["a"])
    two.add_labels(["b"])
    mean = average_models({"one": one, "two": two})
    assert torch.isfinite(mean.transitions).all()


def test_a_shared_initialisation_is_recognised_from_the_record():
    one, two, three = model_of("tagger"), tuned("tagger", 1), tuned("tagger", 2)
    assert not share_initialisation([one, two, three])
    two.config.start_sha256 = three.config.start_sha256 = weights_digest(one)
    assert share_initialisation([one, two, three])
    assert share_initialisation([two, three])  # the start itself need not be among them
    assert not share_initialisation([two])
    assert not share_initialisation([two, three, tuned("tagger", 3)])
    three.config.start_sha256 = weights_digest(two)
    assert not share_initialisation([one, two, three])
    four = tuned("tagger", 3)
    four.config.start_sha256 = weights_digest(two)
    assert share_initialisation([two, three, four])  # where the start of the start is no matter
    assert not share_initialisation([one, two, three, four])


def test_a_shared_initialisation_is_not_enough_for_an_average(capsys):
    one = model_of("tagger")
    two, three = tuned("tagger", 1), tuned("tagger", 2)
    two.config.start_sha256 = three.config.start_sha256 = weights_digest(one)
    assert can_average({"one": one, "two": two})
    assert can_average({"two": two, "three": three})
    assert not can_average({"one": one, "four": tuned("tagger", 3)})
    assert capsys.readouterr().err == ""
    two.config.frozen_layers = 2  # as after `train-source --init-from one --model frozen_layers=2`
    assert not can_average({"one": one, "two": two})
    told = capsys.readouterr().err
    assert "cannot be averaged: one and two differ in frozen_layers" in " ".join(told.split())


def test_models_that_cannot_be_averaged_are_rejected():
    parser, tagger = model_of("parser"), model_of("tagger")
    with pytest.raises(ValueError, match="one and two are models of different kinds"):
        average_models({"one": parser, "two": tagger})
    with pytest.raises(ValueError, match=r"initialised separately.*train-source --init-from"):
        average_models({"one": parser, "two": model_of("parser", 9)})
    with pytest.raises(ValueError, match="differ in arc_size: only models"):
        average_models({"one": parser, "two": model_of("parser", arc_size=7)})
    with pytest.raises(ValueError, match="differ in upos_names"):
        average_models({"one": parser, "two": model_of("parser", upos_names=["X", "Y", "Z"])})
    with pytest.raises(ValueError, match="not negative"):
        average_models({"one": parser, "two": parser}, {"one": 2.0, "two": -1.0})
    other = copy.deepcopy(tagger)
    with torch.no_grad():
        other.encoder.words.vectors.add_(1)
    with pytest.raises(ValueError, match=r"different encoders or word vectors \(encoder\.words\.vectors\)"):
        average_models({"one": tagger, "two": other})


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_of_models_without_weight_is_their_average(kind):
    one, two, three = (tuned(kind, seed) for seed in (1, 2, 3))
    for model in (two, three):
        model.add_labels(["rare"])
    mean = average_models({"one": one, "two": two, "three": three}, {"one": 1.0, "two": 0.0, "three": 0.0})
    place = mean.config.labels.index("rare")
    for module, name, axes in mean.label_parameters():
        owner = next(key for key, found in mean.named_modules() if found is module)
        full = f"{owner}.{name}".lstrip(".")
        for axis in axes:
            rows = [m.get_parameter(full).select(axis, place) for m in (mean, two, three)]
            if len(axes) == 1:
                torch.testing.assert_close(rows[0], (rows[1] + rows[2]) / 2)

"""Truth inference: planted confusions are found, and it is the fixed point of its own equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, softmax
from truth import confusion_counts, indicators, infer_truth


def planted(seed: int, items: int = 3000) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three classes; two good sources, and three that all take class 0 for class 1 and know the rest less."""
    draw = np.random.default_rng(seed)
    good = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    poor = np.array([[0.2, 0.7, 0.1], [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]])
    confusions = np.stack([good, good, poor, poor, poor])
    truth = draw.choice(3, size=items, p=[0.5, 0.3, 0.2])
    below = confusions.cumsum(-1)[:, truth] < draw.random((5, items, 1))
    return torch.tensor(truth), torch.tensor(below[..., :2].sum(-1)), torch.tensor(confusions)


def voted(answers: torch.Tensor, classes: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(answers, classes).sum(0).argmax(-1)


@pytest.fixture(scope="module")
def case() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return planted(0)


def test_it_is_right_where_the_vote_is_wrong(case):
    truth, answers, _ = case
    posterior = infer_truth(answers, 3)
    right = (posterior.argmax(1) == truth).double().mean()
    majority = (voted(answers, 3) == truth).double().mean()
    assert right > majority + 0.1
    assert right > 0.9
    torch.testing.assert_close(posterior.exp().sum(1), torch.ones(len(truth), dtype=torch.float64))


def test_planted_confusions_are_found(case):
    _, answers, confusions = case
    counts = confusion_counts(infer_truth(answers, 3).exp(), indicators(answers, 3))
    found = counts / counts.sum(-1, keepdim=True)
    assert (found - confusions).abs().max() < 0.05
    assert counts.sum() == pytest.approx(answers.numel())


def test_the_posterior_is_the_fixed_point_of_the_equations(case):
    _, answers, _ = case
    given_answers = answers[:, :200].clone()
    given_answers[1, ::7] = -1
    prior, trust = 0.7, 1.5
    posterior = infer_truth(given_answers, 3, prior=prior, trust=trust).exp().numpy()
    assert np.isfinite(posterior).all()
    q, y = posterior, given_answers.numpy()
    shares = q.sum(0) + prior / 3
    joint = np.tile(digamma(shares) - digamma(shares.sum()), (len(q), 1))
    for answer in y:
        counts = np.full((3, 3), prior / 3) + trust * np.eye(3)
        for item, label in enumerate(answer):
            if label >= 0:
                counts[:, label] += q[item]
        logs = digamma(counts) - digamma(counts.sum(1, keepdims=True))
        for item, label in enumerate(answer):
            if label >= 0:
                joint[item] += logs[:, label]
    np.testing.assert_allclose(softmax(joint, axis=1), posterior, atol=1e-4)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 4), st.integers(1, 4))
def test_neither_the_order_of_sources_nor_of_items_matters(seed, classes, sources):
    draw = np.random.default_rng(seed)
    answers = torch.from_numpy(draw.integers(-1, classes, size=(sources, 30)))
    found = infer_truth(answers, classes, iterations=20)
    turn, shuffle = torch.from_numpy(draw.permutation(sources)), torch.from_numpy(draw.permutation(30))
    torch.testing.assert_close(infer_truth(answers[turn], classes, iterations=20), found)
    torch.testing.assert_close(infer_truth(answers[:, shuffle], classes, iterations=20), found[shuffle])


def test_sources_that_agree_are_believed_and_no_answer_gives_the_shares():
    answers = torch.tensor([[0, 1, 0, -1], [0, 1, 0, -1]])
    posterior = infer_truth(answers, 3).exp()
    assert posterior.argmax(1)[:3].tolist() == [0, 1, 0]
    assert posterior[:3].amax(1).min() > 0.9
    assert posterior[3, 0] > posterior[3, 1] > posterior[3, 2]
    assert infer_truth(torch.zeros(2, 0, dtype=torch.long), 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("predictions", "settings", "message"),
    [
        (torch.zeros(3), {}, r"integers of shape \(S, M\) with at least one source"),
        (torch.zeros(2, 3), {}, r"torch.float32 of shape \(2, 3\)"),
        (torch.zeros(0, 3, dtype=torch.long), {}, "at least one source"),
        (torch.tensor([[0, 3]]), {}, "an answer is 3; expected a class below 3"),
        (torch.tensor([[0, 1]]), {"prior": 0.0}, "expected prior above 0"),
        (torch.tensor([[0, 1]]), {"trust": math.nan}, "trust at least 0"),
    ],
)
def test_what_cannot_be_is_refused(predictions, settings, message):
    with pytest.raises(ValueError, match=message):
        infer_truth(predictions, 3, **settings)

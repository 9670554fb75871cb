"""Truth inference: planted confusions are found, and it is the fixed point of its own equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, softmax
from truth import PRIOR, TRUST, infer_truth


@pytest.fixture(scope="module")
def case() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three classes; two good sources, and three that all take class 0 for class 1 and know the rest less."""
    draw = np.random.default_rng(0)
    good = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    poor = np.array([[0.2, 0.7, 0.1], [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]])
    confusions = np.stack([good, good, poor, poor, poor])
    truth = draw.choice(3, size=3000, p=[0.5, 0.3, 0.2])
    below = confusions.cumsum(-1)[:, truth] < draw.random((5, 3000, 1))
    return torch.tensor(truth), torch.tensor(below[..., :2].sum(-1)), torch.tensor(confusions)


def test_it_is_right_where_the_vote_is_wrong_and_finds_the_confusions(case):
    truth, answers, confusions = case
    posterior, one_hot = infer_truth(answers, 3), torch.nn.functional.one_hot(answers, 3)
    right = (posterior.argmax(1) == truth).double().mean()
    majority = (one_hot.sum(0).argmax(1) == truth).double().mean()
    assert right > max(0.9, majority + 0.1)
    torch.testing.assert_close(posterior.exp().sum(1), torch.ones(len(truth), dtype=torch.float64))
    counts = posterior.exp().mT @ one_hot.double()
    assert (counts / counts.sum(-1, keepdim=True) - confusions).abs().max() < 0.05


def test_the_posterior_is_the_fixed_point_of_the_equations(case):
    answers = case[1][:, :200]
    q, y = infer_truth(answers, 3).exp().numpy(), answers.numpy()
    shares = q.sum(0) + PRIOR / 3
    joint = np.tile(digamma(shares) - digamma(shares.sum()), (len(q), 1))
    for answer in y:
        counts = np.full((3, 3), PRIOR / 3) + TRUST * np.eye(3)
        for item, label in enumerate(answer):
            counts[:, label] += q[item]
        logs = digamma(counts) - digamma(counts.sum(1, keepdims=True))
        joint += logs[:, answer].T
    np.testing.assert_allclose(softmax(joint, axis=1), q, atol=1e-4)


@given(st.integers(0, 1000), st.integers(2, 4), st.integers(1, 4))
def test_neither_the_order_of_sources_nor_of_items_matters(seed, classes, sources):
    draw = np.random.default_rng(seed)
    answers = torch.from_numpy(draw.integers(0, classes, size=(sources, 30)))
    found = infer_truth(answers, classes)
    turn, shuffle = torch.from_numpy(draw.permutation(sources)), torch.from_numpy(draw.permutation(30))
    torch.testing.assert_close(infer_truth(answers[turn], classes), found, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        infer_truth(answers[:, shuffle], classes), found[shuffle], atol=1e-4, rtol=1e-4
    )


def test_sources_that_agree_are_believed():
    posterior = infer_truth(torch.tensor([[0, 1, 0], [0, 1, 0]]), 3).exp()
    assert posterior.argmax(1).tolist() == [0, 1, 0]
    assert posterior.amax(1).min() > 0.9
    assert infer_truth(torch.zeros(2, 0, dtype=torch.long), 3).shape == (0, 3)

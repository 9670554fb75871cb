"""Truth inference: estimate the right labels and each source's errors from the sources' answers alone.

This is Bayesian classifier combination (Kim and Ghahramani 2012; used for transfer from many languages by
Rahimi et al. 2019), the model of Dawid and Skene (1979) with priors: every item has an unknown class, and
every source answers by its own confusion matrix. Class proportions and rows of the matrices have Dirichlet
priors. Variational inference starts from the sources' votes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hf_xst.numerics import log_normalise

# Inference has converged once no posterior changes by more than this between two rounds.
CONVERGED = 1e-6


def infer_truth(
    predictions: Tensor,
    classes: int,
    *,
    iterations: int = 200,
    prior: float = 1.0,
    trust: float = 1.0,
) -> Tensor:
    """Infer the classes of items from several sources' answers, without labelled items.

    Args:
        predictions: integers (S, M), the answers of S sources to M items; -1 if an answer is missing.
        classes: K, the number of classes, which are also the answers.
        iterations: maximum number of rounds; inference ends earlier once the posterior converges.
        prior: pseudo-count of the prior of the class proportions, and of each row of a confusion matrix,
            spread evenly over the K classes.
        trust: pseudo-count that favours the right answer in the prior of each confusion matrix.

    Returns:
        (M, K), log-posterior of each item's class, in float64. An item without answers has the class
        proportions.

    Raises:
        ValueError: the predictions are not integers of shape (S, M) below K, sources are missing, the prior
            is not positive, or the trust is negative.
    """
    _check(predictions, classes, prior, trust)
    answers = indicators(predictions, classes)
    votes = answers.sum(0)
    total = votes.sum(1, keepdim=True)
    posterior = torch.where(total > 0, votes / total.clamp(min=1), 1 / classes)
    log_posterior = posterior.log()
    for _ in range(iterations):
        log_posterior = log_normalise(_expected_log_joint(posterior, answers, prior, trust), -1)
        before, posterior = posterior, log_posterior.exp()
        if not predictions.numel() or float((posterior - before).abs().max()) < CONVERGED:
            break
    return log_posterior


def indicators(predictions: Tensor, classes: int) -> Tensor:
    """Return one-hot answers, (S, M, K) float64, from (S, M); all 0 where an answer is missing (-1)."""
    given = torch.nn.functional.one_hot(predictions.long().clamp(min=0), classes).double()
    return given * (predictions >= 0)[..., None]


def confusion_counts(posterior: Tensor, answers: Tensor) -> Tensor:
    """Return the expected number of items of each class to which a source gives each answer.

    Args:
        posterior: (M, K), probabilities of the items' classes.
        answers: (S, M, K), see `indicators`.

    Returns:
        (S, K, K), class first, answer second.
    """
    return posterior.mT @ answers


def _expected_log_joint(posterior: Tensor, answers: Tensor, prior: float, trust: float) -> Tensor:
    """Return (M, K): the log-probability of each class and the answers, expected under the Dirichlets."""
    classes = posterior.shape[1]
    even = prior / classes
    own = trust * torch.eye(classes, dtype=posterior.dtype, device=posterior.device)
    log_shares = _expected_log(posterior.sum(0) + even)
    log_confusion = _expected_log(confusion_counts(posterior, answers) + even + own)
    return log_shares + (answers @ log_confusion.mT).sum(0)


def _expected_log(counts: Tensor) -> Tensor:
    """Return E[log p] for p drawn from Dirichlet distributions along the last axis."""
    return torch.digamma(counts) - torch.digamma(counts.sum(-1, keepdim=True))


def _check(predictions: Tensor, classes: int, prior: float, trust: float) -> None:
    if predictions.dim() != 2 or not len(predictions) or predictions.is_floating_point():
        raise ValueError(
            "predictions must be integers of shape (S, M) with at least one source, found "
            f"{predictions.dtype} of shape {tuple(predictions.shape)}"
        )
    if predictions.numel() and int(predictions.max()) >= classes:
        raise ValueError(
            f"an answer is {int(predictions.max())}; expected a class below {classes}, or -1 for none"
        )
    if not prior > 0 or not trust >= 0:
        raise ValueError(f"found prior {prior} and trust {trust}; expected prior above 0, trust at least 0")

"""Truth inference: what is right, and how each source errs, from the sources' answers alone.

A Bayesian combination of classifiers (Kim and Ghahramani 2012; Rahimi et al. 2019, who transfer from many
languages by it): every item has an unknown class, and every source answers by its own confusion matrix, which
says how often it gives each answer to items of each class. Class shares and rows of the matrices have
Dirichlet priors; all are found together by variational inference, starting from the sources' votes. It is the
model of Dawid and Skene (1979) with priors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hf_xst.numerics import log_normalise

# Posteriors that move less than this between two rounds have settled.
SETTLED = 1e-6


def infer_truth(
    predictions: Tensor,
    classes: int,
    *,
    iterations: int = 200,
    prior: float = 1.0,
    trust: float = 1.0,
) -> Tensor:
    """Infer the classes of items from several sources' answers, without any labelled item.

    Args:
        predictions: integers (S, M), the answers of S sources to M items; -1 where a source gives none.
        classes: K, the number of classes, which are also the answers.
        iterations: the most rounds; it ends earlier when the posterior has settled.
        prior: items that the prior of the class shares, and of each row of a confusion matrix, counts for,
            spread evenly over the K classes.
        trust: items by which the prior of each confusion matrix favours the right answer.

    Returns:
        (M, K), log-posterior of each item's class, in float64. An item without any answer has the class
        shares.

    Raises:
        ValueError: the predictions are not integers of shape (S, M) below K, there is no source, or a prior
            is not above 0 (trust: below 0).
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
        if not predictions.numel() or float((posterior - before).abs().max()) < SETTLED:
            break
    return log_posterior


def indicators(predictions: Tensor, classes: int) -> Tensor:
    """Return (S, M, K) float64: 1 for each answer of (S, M); nothing where there is none (-1)."""
    given = torch.nn.functional.one_hot(predictions.long().clamp(min=0), classes).double()
    return given * (predictions >= 0)[..., None]


def confusion_counts(posterior: Tensor, answers: Tensor) -> Tensor:
    """Count answers by class: the expected number of items of each class to which a source gives each answer.

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

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

# Pseudo-counts of the priors: spread evenly over the classes, and for the right answer in a confusion matrix.
PRIOR, TRUST = 1.0, 1.0
# Inference ends once no posterior changes by more than CONVERGED, or after ROUNDS.
CONVERGED, ROUNDS = 1e-6, 200


def infer_truth(predictions: Tensor, classes: int) -> Tensor:
    """Infer the classes of items from several sources' answers, without labelled items.

    Args:
        predictions: integers (S, M), the answers of S sources to M items.
        classes: K, the number of classes, which are also the answers.

    Returns:
        (M, K), log-posterior of each item's class, in float64.
    """
    answers = torch.nn.functional.one_hot(predictions, classes).double()  # (S, M, K)
    posterior = answers.mean(0)
    even, own = PRIOR / classes, TRUST * torch.eye(classes, dtype=torch.float64)
    for _ in range(ROUNDS):
        # (S, K, K) expected counts of a source's answers (last) to items of a class, and (M, K) expected
        # log-probability of each class and the answers.
        log_confusion = _expected_log(posterior.mT @ answers + even + own)
        joint = _expected_log(posterior.sum(0) + even) + (answers @ log_confusion.mT).sum(0)
        log_posterior = log_normalise(joint, -1)
        before, posterior = posterior, log_posterior.exp()
        if not posterior.numel() or float((posterior - before).abs().max()) < CONVERGED:
            break
    return log_posterior


def _expected_log(counts: Tensor) -> Tensor:
    """Return E[log p] for p drawn from Dirichlet distributions along the last axis."""
    return torch.digamma(counts) - torch.digamma(counts.sum(-1, keepdim=True))

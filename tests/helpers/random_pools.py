"""Random sources and gold, and the loss of a pool by its definition."""

from __future__ import annotations

import torch


def problem(
    seed: int, sources: int = 3, *, sharpness: float = 1.5, sentences: int = 2, groups: int = 6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-marginals (S, B, G, 4) and gold (B, G), some of it missing; later sources know less of gold."""
    torch.manual_seed(seed)
    gold = torch.randint(0, 4, (sentences, groups))
    known = torch.nn.functional.one_hot(gold, 4) * torch.linspace(2, 0, sources)[:, None, None, None]
    scores = torch.randn(sources, sentences, groups, 4, dtype=torch.float64) * sharpness
    gold[1, groups - 2 :] = -1
    return (scores + known).log_softmax(-1), gold


def losses(pooled: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
    """Minus the log-probability of each gold candidate under pooled log-probabilities (B, G, C)."""
    return -pooled.gather(-1, gold.clamp(min=0)[..., None])[..., 0][gold >= 0]

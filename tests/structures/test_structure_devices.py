"""Structures on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from helpers.structure_spaces import SPACES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize("name", [name for name in SPACES if name != "independent"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gpu_and_cpu_agree(name: str, dtype: torch.dtype) -> None:
    space = SPACES[name]
    wide = space.random([9, 1, 6], 3, absent=0.1)
    here = wide.with_scores(wide.scores.to(dtype))
    there = space.make(here.scores.cuda(), here.lengths.cuda())
    for result in ("log_partition", "marginals", "entropy", "log_count", "best_candidates"):
        assert_close(getattr(there, result)().cpu(), getattr(here, result)())
    on_gpu, on_cpu = there.topk(3), here.topk(3)
    pairs = [(on_gpu, on_cpu)] if isinstance(on_cpu, torch.Tensor) else zip(on_gpu, on_cpu, strict=True)
    assert all(torch.equal(one.cpu(), other) for one, other in pairs)
    there.sample(2, generator=torch.Generator("cuda").manual_seed(0))
    scores = there.scores.requires_grad_()
    there.with_scores(scores).log_mass(there.valid_parts).sum().backward()
    assert scores.grad.isfinite().all()

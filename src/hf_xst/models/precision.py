"""Half precision ends where scores begin."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_single(x: Tensor) -> Tensor:
    """Return x in float32 if it is in half precision, else as it is."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x

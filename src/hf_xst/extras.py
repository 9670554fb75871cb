"""Optional packages: imported where they are used, and named with their extra where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(module: str, extra: str) -> Any:
    """Import a module that comes with an extra.

    Args:
        module: e.g. `matplotlib.pyplot`.
        extra: the extra of `pyproject.toml` that holds it.

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module.split('.')[0]} is not installed; this needs the extra {extra!r}: "
            f'pip install "hf_xst[{extra}]"'
        ) from error

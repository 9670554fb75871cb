"""Import optional packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(module: str, extra: str) -> Any:
    """Import a module of an optional dependency, or raise ImportError with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module.split('.')[0]} is not installed; it comes with the extra {extra!r}: "
            f'pip install "hf_xst[{extra}]"'
        ) from error

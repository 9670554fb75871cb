"""Files of the sources' weights in a pool, by the sources' names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from hf_xst.files import write_text


def read_weights(path: str) -> dict[str, float]:
    """Read a weights file: YAML, one `NAME: WEIGHT` a line.

    Raises:
        ValueError: the file has another form.
    """
    # Read as text: to YAML itself a source called `no` is a truth value.
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        if isinstance(content, dict) and isinstance(content.get("weights"), dict):
            content = content["weights"]
        if not isinstance(content, dict):
            raise ValueError(f"found {str(content)[:80]!r}")
        return {name: float(weight) for name, weight in content.items()}
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: expected YAML with one NAME: WEIGHT a line ({error})") from error


def write_weights(path: str | Path, weights: Mapping[str, float]) -> None:
    """Write a weights file as `read_weights` reads it."""
    write_text(path, yaml.safe_dump(dict(weights), sort_keys=False, allow_unicode=True))

"""One run at a time in a study's folder: two would write into each other's cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

LOCK = "running.json"


def began(folder: Path) -> float | None:
    """Return when the run that is at work in a folder began, in seconds since the epoch; None without one."""
    path = folder / LOCK
    return float(json.loads(path.read_text(encoding="utf-8"))["began"]) if _is_running(path) else None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder while the block runs; what a killed run has left counts for nothing.

    Args:
        folder: of a study; it is made if it is not there.

    Raises:
        ValueError: another run of this machine works there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    if _is_running(path):
        other = json.loads(path.read_text(encoding="utf-8"))["pid"]
        raise ValueError(f"process {other} works in {folder}: wait for it, stop it, or give another --output")
    path.unlink(missing_ok=True)
    own = psutil.Process()
    try:
        with path.open("x", encoding="utf-8") as file:
            json.dump({"pid": own.pid, "began": own.create_time()}, file)
    except FileExistsError:
        raise ValueError(f"another run has just begun in {folder}: give another --output") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _is_running(path: Path) -> bool:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return bool(psutil.Process(int(told["pid"])).create_time() == told["began"])
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return False

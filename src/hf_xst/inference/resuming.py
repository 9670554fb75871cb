"""A long file written in blocks: an interrupted run leaves whole blocks, a later run goes on behind them.

While `out.conllu.gz` is written it is called `out.part.conllu.gz`, so that it can be read as what it is;
beside it `out.part.conllu.gz.json` says how far it is whole and what it is made of. When the file is complete
it takes its own name and both of these are gone. A gzipped file has one member for each block (any program
that reads gzip reads on over members), so it is the same bytes whether it was written in one go or not.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hf_xst.files import write_text

_GZIP = ".gz"
# A fifth of the time of level 9, for files that are a few percent larger.
_GZIP_LEVEL = 6


def part_of(path: str | os.PathLike[str]) -> Path:
    """Return what a file is called while it is not complete: `.part` before its last suffix but `.gz`."""
    target = Path(path)
    end = _GZIP if target.name.endswith(_GZIP) else ""
    plain = Path(target.name.removesuffix(_GZIP))
    return target.with_name(f"{plain.stem}.part{plain.suffix}{end}")


class BlockFile:
    """A file that grows by whole blocks; use it in a `with` statement.

    If the block ends well the file is complete. If it does not, what has been added stays under the name that
    `part_of` gives; where nothing was added, nothing is left.

    Args:
        path: the complete file, gzipped if its name ends in `.gz`.
        identity: all that the content depends on beside what is read, by name; for JSON.
        resume: go on with what an interrupted run has left.

    Raises:
        ValueError: the path is a folder, or an interrupted run has left something and `resume` is not set, or
            it was made otherwise, or is damaged.
    """

    def __init__(
        self, path: str | os.PathLike[str], identity: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path, self.part = Path(path), part_of(path)
        if self.path.is_dir():
            raise ValueError(f"{self.path} is a folder; expected the name of a file to be written")
        self._state_path = self.part.with_name(f"{self.part.name}.json")
        self._identity = json.loads(json.dumps(identity))
        self._whole = 0
        self.progress: dict[str, Any] = {}
        """What `add` was told with the last block; empty where nothing has been added."""
        if self._state_path.exists() and self.part.exists():
            self._take_up(resume)

    def _take_up(self, resume: bool) -> None:
        state = json.loads(self._state_path.read_text(encoding="utf-8"))
        anew = f"remove {self.part} to start anew"
        if not resume:
            raise ValueError(f"{self.part} is left of an interrupted run: go on with --resume, or {anew}")
        begun = state["identity"]
        names = [name for name in {**begun, **self._identity} if begun.get(name) != self._identity.get(name)]
        if names:
            raise ValueError(f"{self.part} was made otherwise, it differs in: {', '.join(names)}; {anew}")
        if self.part.stat().st_size < state["bytes"]:
            raise ValueError(f"{self.part} is shorter than it was when the run stopped; {anew}")
        self._whole, self.progress = state["bytes"], state["progress"]

    def __enter__(self) -> Self:
        self.part.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self.part.open("ab", buffering=0)
        self._stream.truncate(self._whole)
        return self

    def add(self, text: str, progress: Mapping[str, Any]) -> None:
        """Add a block.

        Args:
            text: the block; it may be empty.
            progress: what a later run must know to go on behind this block; for JSON.
        """
        if text:
            self._write(text.encode())
        self._whole = self._stream.tell()
        self.progress = dict(progress)
        state = {"bytes": self._whole, "progress": self.progress, "identity": self._identity}
        write_text(self._state_path, json.dumps(state, indent=1) + "\n")

    def _write(self, data: bytes) -> None:
        zipped = self.path.name.endswith(_GZIP)
        left = memoryview(gzip.compress(data, _GZIP_LEVEL, mtime=0) if zipped else data)
        while left:
            left = left[self._stream.write(left) :]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._whole:
            self._write(b"")  # nothing at all would be no gzip file
        elif kind is not None:
            self._stream.truncate(self._whole)
        self._stream.close()
        if kind is None:
            self.part.replace(self.path)
        elif not self.progress:
            self.part.unlink()
        if kind is None or not self.progress:
            self._state_path.unlink(missing_ok=True)

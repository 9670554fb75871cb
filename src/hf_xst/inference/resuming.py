"""Write a long file block by block, so that a later run can continue after an interruption.

While `out.conllu.gz` is written it is called `out.part.conllu.gz`, with a suffix that programs recognise;
beside it, `out.part.conllu.gz.json` records how many bytes are complete and what they depend on. A finished
file gets its final name, and both of these disappear. A gzipped file has one member per block (programs that
read gzip read all members), so its bytes do not depend on interruptions.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hf_xst.files import behind_link, name_in_errors, replace_file, write_text

_GZIP = ".gz"
# A fifth of the time of level 9, for files that are a few percent larger.
_GZIP_LEVEL = 6
_PIECE = 1 << 20


def partial_path(path: str | os.PathLike[str]) -> Path:
    """Return the name of an unfinished file: `.part` before the last suffix other than `.gz`."""
    target = behind_link(path)
    end = _GZIP if target.name.endswith(_GZIP) else ""
    plain = Path(target.name.removesuffix(_GZIP))
    return target.with_name(f"{plain.stem}.part{plain.suffix}{end}")


def state_path(partial: Path) -> Path:
    """Return the name of the record beside an unfinished file."""
    return partial.with_name(f"{partial.name}.json")


class ResumableFile:
    """A file written in whole blocks; use it in a `with` statement.

    After an error, all added blocks stay in the file `partial_path(path)`; without any, nothing stays.

    Args:
        path: the finished file, gzipped if its name ends in `.gz`.
        identity: everything beside the input that the content depends on, by name, as JSON.
        resume: continue the file of an interrupted run.
        overwrite: replace a file that exists.

    Raises:
        ValueError: if the path is a folder, or exists and `overwrite` is false, or an interrupted run left a
            file and `resume` is false, or the file was written with another identity, or is damaged.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: Mapping[str, Any],
        *,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path, self.partial = behind_link(path), partial_path(path)
        if self.path.is_dir():
            raise ValueError(f"{self.path} is a folder; expected the name of a file to write")
        if self.path.exists() and not overwrite:
            raise ValueError(f"{self.path} exists; choose another output, or pass --overwrite to replace it")
        self._state_path = state_path(self.partial)
        self._identity = json.loads(json.dumps(identity))
        self._complete, self._digest = 0, hashlib.sha256()
        self.progress: dict[str, Any] = {}
        """The progress passed to `add` with the last block; empty without blocks."""
        state = self._state()
        if state is not None and self.partial.exists():
            self._load_state(state, resume)

    def _state(self) -> dict[str, Any] | None:
        """Return the state of an interrupted run; files that such a run did not write are never touched."""
        paths = [path for path in (self.partial, self._state_path) if os.path.lexists(path)]
        try:
            state = json.loads(self._state_path.read_text(encoding="utf-8")) if paths else None
        except (OSError, ValueError):
            state = {}
        is_ours = isinstance(state, dict) and {"bytes", "sha256", "progress", "identity"} == set(state)
        if paths and (not is_ours or any(path.is_symlink() for path in paths)):
            raise ValueError(
                f"{paths[0]} exists and was not left by an interrupted run; rename it, or choose another "
                "output"
            )
        return state

    def _load_state(self, state: dict[str, Any], resume: bool) -> None:
        restart = f"remove {self.partial} to start over"
        if not resume:
            raise ValueError(
                f"an interrupted run left {self.partial}: continue it with --resume, or {restart}"
            )
        before, now = state["identity"], self._identity
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if changed:
            raise ValueError(
                f"{self.partial} was written with other settings: {', '.join(changed)}; {restart}"
            )
        with self.partial.open("rb") as stream:
            for start in range(0, state["bytes"], _PIECE):
                self._digest.update(stream.read(min(_PIECE, state["bytes"] - start)))
        if self._digest.hexdigest() != state["sha256"]:
            raise ValueError(f"{self.partial} was changed since the run stopped; {restart}")
        self._complete, self.progress = state["bytes"], state["progress"]

    def __enter__(self) -> Self:
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        with name_in_errors(self.path, self.partial, self._state_path):
            self._write_state()  # first, so that the file is recognised as ours
            self._stream = self.partial.open("ab", buffering=0)
        self._stream.truncate(self._complete)
        return self

    def add(self, text: str, progress: Mapping[str, Any]) -> None:
        """Add a block, possibly empty, with the progress that a later run must know to continue after it."""
        if text:
            self._write(text.encode())
        self._complete = self._stream.tell()
        self.progress = dict(progress)
        self._write_state()

    def _write_state(self) -> None:
        state = {
            "bytes": self._complete,
            "sha256": self._digest.hexdigest(),
            "progress": self.progress,
            "identity": self._identity,
        }
        write_text(self._state_path, json.dumps(state) + "\n")

    def _write(self, data: bytes) -> None:
        zipped = self.path.name.endswith(_GZIP)
        rest = memoryview(gzip.compress(data, _GZIP_LEVEL, mtime=0) if zipped else data)
        self._digest.update(rest)
        with name_in_errors(self.partial):
            while rest:
                rest = rest[self._stream.write(rest) :]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._complete:
            self._write(b"")  # a gzip file has at least one member
        elif kind is not None:
            self._stream.truncate(self._complete)
        self._stream.close()
        if kind is None:
            replace_file(self.partial, self.path)
        elif not self.progress:
            self.partial.unlink()
        if kind is None or not self.progress:
            self._state_path.unlink(missing_ok=True)

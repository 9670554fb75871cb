"""A resumable graph of cells: each result is one JSON file, keyed by all that it depends on."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hf_xst.console import console
from hf_xst.files import write_text

# Raised when a change of the package changes all results, so that kept cells are made anew; a cell may have a
# higher one of its own where a change is of its kind alone.
CODE_VERSION = 2
_TIMES = ("_runtime", "_per_second", "seconds", "versions")


@dataclass(frozen=True)
class Cell:
    """One step of an experiment.

    Args:
        name: path-like and unique, e.g. `B/parser/source/en`.
        run: makes the result, given a folder for files and the results of the cells that are needed; it
            returns what JSON can hold.
        settings: all that the result depends on beside the needed cells.
        needs: names of cells that come first.
        version: of the code that makes such cells, as far as results go.
    """

    name: str
    run: Callable[[Path, Mapping[str, Any]], Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: Sequence[str] = ()
    version: int = CODE_VERSION


class Graph:
    """Cells in the order of their needs, with their results in a folder.

    Args:
        cells: every cell after those that it needs.
        folder: results go to `cells/NAME.json`, files to `work/NAME/`.

    Raises:
        ValueError: two cells have one name, or a cell needs one that does not come before it.
    """

    def __init__(self, cells: Iterable[Cell], folder: Path) -> None:
        self.folder = folder
        self.cells: dict[str, Cell] = {}
        self.keys: dict[str, str] = {}
        self.taken: dict[str, Mapping[str, Any]] = {}
        for cell in cells:
            if cell.name in self.cells:
                raise ValueError(f"two cells are called {cell.name}")
            missing = [name for name in cell.needs if name not in self.cells]
            if missing:
                raise ValueError(
                    f"cell {cell.name} needs {', '.join(missing)}, which does not come before it"
                )
            self.cells[cell.name] = cell
            self.keys[cell.name] = self._key(cell)

    def _key(self, cell: Cell) -> str:
        content = [cell.version, cell.name, dict(cell.settings), [self.keys[name] for name in cell.needs]]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def work(self, name: str) -> Path:
        """Return the folder of a cell's files."""
        return self.folder / "work" / name

    def result(self, name: str) -> dict[str, Any] | None:
        """Return a cell's kept result, or None if there is none for its present key."""
        record = self._record(name)
        return None if record is None else record["result"]

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the records of all cells that have a result for their present key, by name."""
        found = {name: self._record(name) for name in self.cells}
        return {name: record for name, record in found.items() if record is not None}

    def _record(self, name: str) -> dict[str, Any] | None:
        path = self.folder / "cells" / f"{name}.json"
        if path.exists():
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if record["key"] == self.keys[name]:
                return record
        return dict(self.taken[name]) if name in self.taken else None

    def chosen(self, only: Sequence[str] = ()) -> list[str]:
        """Return the cells whose name has one of the given words among its parts, and all they need."""
        wanted: set[str] = set()
        for name in reversed(self.cells):
            if (
                not only
                or any(set(word.split("/")) <= set(name.split("/")) for word in only)
                or name in wanted
            ):
                wanted |= {name, *self.cells[name].needs}
        return [name for name in self.cells if name in wanted]

    def to_make(self, only: Sequence[str] = ()) -> list[str]:
        """Return the chosen cells that must be made.

        These are the cells without a result, and those that they need whose files are not here: results may
        have been made elsewhere, and models are larger than results.
        """
        names = self.chosen(only)
        wanted = {name for name in names if self.result(name) is None}
        for name in reversed(names):
            if name in wanted:
                wanted |= {need for need in self.cells[name].needs if not self.has_files(need)}
        return [name for name in names if name in wanted]

    def _mark(self, name: str) -> Path:
        """Return the file that says with which key a cell's files were begun."""
        return self.work(name) / "cell.key"

    def has_files(self, name: str) -> bool:
        """Say whether a cell's files are here, made with its present key."""
        mark = self._mark(name)
        return self.result(name) is not None and mark.exists() and mark.read_text() == self.keys[name]

    def status(self, only: Sequence[str] = (), since: float | None = None) -> dict[str, list[str]]:
        """Say which cells are done, running, begun (a run was stopped in them), and left.

        Args:
            only: see `chosen`.
            since: when the run that is at work began, in seconds since the epoch; None if there is none.
        """
        found: dict[str, list[str]] = {"done": [], "running": [], "begun": [], "left": []}
        for name in self.chosen(only):
            mark = self._mark(name)
            if self.result(name) is not None:
                found["done"].append(name)
            elif not mark.exists() or mark.read_text() != self.keys[name]:
                found["left"].append(name)
            else:
                is_new = since is not None and mark.stat().st_mtime >= since
                found["running" if is_new else "begun"].append(name)
        return found

    def restore(self, records: Mapping[str, Mapping[str, Any]], *, write: bool = True) -> int:
        """Take over results that were made elsewhere, of cells that have none here; return how many.

        Args:
            records: by the cells' names.
            write: keep them in the folder; else they count for this graph alone.
        """
        found = {
            name: record
            for name, record in records.items()
            if self.keys.get(name) == record.get("key") and self.result(name) is None
        }
        if write:
            for record in found.values():
                self._keep(record)
        else:
            self.taken.update(found)
        return len(found)

    def run(self, only: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
        """Make what is not there yet and return all chosen results by name."""
        names, wanted = self.chosen(only), set(self.to_make(only))
        results: dict[str, dict[str, Any]] = {}
        for place, name in enumerate(names, start=1):
            if name in wanted:
                console.print(f"[bold]cell {place} of {len(names)}[/bold]: {name}")
            kept = self.make(self.cells[name], results) if name in wanted else self.result(name)
            assert kept is not None
            results[name] = kept
        return results

    def make(self, cell: Cell, results: Mapping[str, Any]) -> dict[str, Any]:
        """Make one cell, given the results of those that it needs, and keep its result."""
        work, key = self.work(cell.name), self.keys[cell.name]
        mark = self._mark(cell.name)
        if work.exists() and (not mark.exists() or mark.read_text() != key):
            shutil.rmtree(work)  # begun with other settings
        write_text(mark, key)
        before = self.result(cell.name)
        start = time.monotonic()
        result = dict(cell.run(work, {name: results[name] for name in cell.needs}))
        record = {
            "name": cell.name,
            "key": key,
            "version": cell.version,
            "settings": dict(cell.settings),
            "needs": list(cell.needs),
            "seconds": round(time.monotonic() - start, 1),
            "result": result,
        }
        self._keep(record)
        if before is not None and _told(before) != _told(json.loads(json.dumps(result))):
            console.print(
                f"[yellow]{cell.name} was made again for its files, and came out otherwise than the result "
                "that was there: what was made of the former one stays as it is[/yellow]"
            )
        return json.loads(json.dumps(result))  # type: ignore[no-any-return]

    def _keep(self, record: Mapping[str, Any]) -> None:
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        write_text(self.folder / "cells" / f"{record['name']}.json", text)


def _told(result: Any) -> Any:
    """Return a result without what differs from run to run: times."""
    if isinstance(result, Mapping):
        return {key: _told(value) for key, value in result.items() if not key.endswith(_TIMES)}
    return [_told(value) for value in result] if isinstance(result, list) else result


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Read all cells' records by name, for reports that need no model."""
    records = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / "cells").rglob("*.json"))
    ]
    return {record["name"]: record for record in records}

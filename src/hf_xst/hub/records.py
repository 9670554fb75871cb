"""What a run has left beside a model or charts, as it was written; a card says nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from hf_xst.charts.dataset import PROVENANCE
from hf_xst.files import RESULTS, sha256_of

Kind = Literal["source", "transferred", "charts", "unrecorded"]
SAID, EXAMPLE = "run/card-config.yaml", "run/card-example.json"
# A setting that only the command has which makes this kind.
_TELLING = {"source": "task", "transferred": "charts", "charts": "sources"}


@dataclass(frozen=True)
class Records:
    """The files of a model's or charts' folder, read when they are asked for; empty where there is none.

    Attributes:
        folder: the folder.
        instead: contents that come before those of the files, by the file's name.
    """

    folder: Path
    instead: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """What the folder holds, by what is recorded."""
        if self.provenance and not self.config:
            return "charts"
        if "charts" in self.results:
            return "transferred"
        return "source" if "train_sentences" in self.results else "unrecorded"

    @property
    def is_whole(self) -> bool:
        """Whether the run that made this is recorded; not so where it came from the Hub."""
        if self.kind == "charts":
            return bool(self.run) or "text" in self.provenance
        return self.kind != "unrecorded"

    @cached_property
    def fingerprint(self) -> str | None:
        """A digest of the weights, or of the charts' provenance, which the Hub keeps; None without any."""
        pattern = PROVENANCE if self.kind == "charts" else "model*.safetensors"
        files = sorted(self.folder.glob(pattern))
        if not files:
            return None
        return hashlib.sha256(
            "".join(f"{path.name} {sha256_of(path)}\n" for path in files).encode()
        ).hexdigest()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The model's configuration."""
        return self._mapping("config.json")

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """What charts were made from: those in the folder, or those that the model was trained on."""
        return self._mapping(PROVENANCE) or dict(self.results.get("charts") or {})

    @cached_property
    def results(self) -> dict[str, Any]:
        """What training ended with."""
        return self._mapping(f"run/{RESULTS}")

    @cached_property
    def run(self) -> dict[str, Any]:
        """The resolved configuration of the command that made this."""
        found = self._mapping("run/config.yaml")
        return found if _TELLING.get(self.kind) in found else {}

    @cached_property
    def scores(self) -> dict[str, Any]:
        """What evaluate has found."""
        return self._mapping("run/scores.json")

    @cached_property
    def evaluation(self) -> dict[str, Any]:
        """The resolved configuration of evaluate."""
        return self._mapping("run/evaluate-config.yaml")

    @cached_property
    def said(self) -> dict[str, Any]:
        """What the command `card` was told."""
        return self._mapping(SAID)

    @cached_property
    def example(self) -> dict[str, Any]:
        """The sentence that the command `card` was given."""
        return self._mapping(EXAMPLE)

    @cached_property
    def versions(self) -> dict[str, str]:
        """Versions of packages."""
        return self._mapping("run/versions.json") or dict(self.provenance.get("versions") or {})

    @cached_property
    def command(self) -> str:
        """The command as it was given."""
        path = self.folder / "run/command.txt"
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

    @cached_property
    def learning_rate(self) -> float | None:
        """The step size that training began with, by its log."""
        path = self.folder / "run/log.json"
        entries = self._parsed(path, json.loads) if path.is_file() else []
        rates = [entry["learning_rate"] for entry in entries if "learning_rate" in entry]
        return float(rates[0]) if rates else self.run.get("learning_rate")

    def _mapping(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        if name in self.instead or not path.is_file():
            return self.instead.get(name, {})
        content = self._parsed(path, yaml.safe_load if path.suffix == ".yaml" else json.loads)
        if not isinstance(content, dict):
            raise ValueError(f"{path}: found {str(content)[:40]!r}, expected a mapping; make the file again")
        return content

    @staticmethod
    def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
        try:
            return parse(path.read_text(encoding="utf-8"))
        except (ValueError, yaml.YAMLError) as error:
            raise ValueError(f"{path} cannot be read ({' '.join(str(error).split())})") from error

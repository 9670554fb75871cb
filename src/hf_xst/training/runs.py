"""The folder of a run: the command, the resolved configuration and the log, beside what may be shared."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import yaml

from hf_xst.console import console
from hf_xst.files import write_text

PACKAGES = ("hf_xst", "torch", "transformers", "datasets", "accelerate", "huggingface_hub")


class RunFolder:
    """OUTPUT, of which OUTPUT/run holds what is not shared.

    Args:
        output: the folder; it is made.
        arguments: the resolved arguments, a data class.
        is_main: whether this process writes (one of several does).
    """

    def __init__(self, output: str, arguments: Any, *, is_main: bool = True) -> None:
        self.path, self.is_main = Path(output), is_main
        self.run = self.path / "run"
        if is_main:
            self.run.mkdir(parents=True, exist_ok=True)
            write_text(self.run / "config.yaml", yaml.safe_dump(asdict(arguments), sort_keys=True))
            write_text(self.run / "command.txt", shlex.join(sys.argv) + "\n")
            write_text(self.run / "versions.json", json.dumps(package_versions(), indent=1))

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file into OUTPUT/run."""
        if self.is_main:
            write_text(self.run / name, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def last_checkpoint(self) -> str | None:
        """Return the checkpoint that an interrupted run has left, if any."""
        found = [path for path in self.run.glob("checkpoint-*") if (path / "trainer_state.json").exists()]
        return str(max(found, key=lambda path: int(path.name.rsplit("-", 1)[1]))) if found else None


def package_versions() -> dict[str, str]:
    """Return the installed versions of the packages that results depend on."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def say_if_alone(world_size: int) -> None:
    """Tell when a launcher was asked for several processes and started one.

    `accelerate launch --cpu --num_processes 2` does so without a word unless MPI is set up.
    """
    parent = psutil.Process().parent()
    words = parent.cmdline() if parent is not None else []
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.replace("-", "_") == "__num_processes":
            wanted = value or (words[place + 1] if place + 1 < len(words) else "")
            if wanted.isdigit() and int(wanted) > world_size:
                console.print(
                    f"[yellow]{wanted} processes were asked for, but this one runs alone. On a CPU, use "
                    f"`torchrun --nproc_per_node {wanted} SCRIPT ...` instead of `accelerate launch`."
                )


def summary(label: str, scores: dict[str, Any]) -> None:
    """Print a line of scores."""
    shown = ", ".join(f"{key} {value:.2f}" for key, value in scores.items() if isinstance(value, float))
    console.print(f"[bold]{label}[/bold]: {shown}")

"""The folder of a run: command, resolved configuration and log, separate from what is published."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import psutil
import yaml

from hf_xst.console import say
from hf_xst.files import CHARTS, MODEL, RESULTS, protect_inputs, write_text
from hf_xst.processes import process_index
from hf_xst.records import read_json
from hf_xst.training.progress import NOT_SCORES, TRAINER_STATE

PACKAGES = ("hf_xst", "torch", "transformers", "datasets", "accelerate", "huggingface_hub")
CONFIG, INPUTS = "config.yaml", "inputs.json"


class HasOutput(Protocol):
    """Options of a command with an output folder."""

    output: str


def check_output(options: HasOutput, *files: str, alone: bool = True) -> None:
    """Reject an output that is a file, contains the result of another command, or would overwrite an input.

    Args:
        options: the options of the command.
        files: what this command writes into the folder, besides `run/`.
        alone: reject folders with results of other commands.

    Raises:
        ValueError: the output is rejected.
    """
    path = Path(options.output)
    if path.exists() and not path.is_dir():
        raise ValueError(f"--output {path} is a file; expected a folder")
    for name, content in {MODEL: "a model", CHARTS: "charts"}.items():
        if alone and name not in files and (path / name).is_file():
            raise ValueError(f"--output {path} already holds {content}; choose another folder")
    protect_inputs(options, *(path / name for name in files))


class RunFolder:
    """OUTPUT and OUTPUT/run, which is never published.

    A training run owns its folder: repeated with the same configuration it resumes or, once finished, does
    nothing; another configuration is rejected.

    Args:
        output: the folder.
        options: the options of the command, a data class.
        prefix: of the files that describe the command, so that another command can work on the output of a
        run
            without hiding where it came from.
    """

    def __init__(self, output: str, options: Any, *, prefix: str = "") -> None:
        self.path = Path(output)
        self.run = self.path / "run"
        self.is_main = process_index() == 0
        self._prefix = prefix
        self._config = asdict(options)

    def begin(self) -> None:
        """Create the folder and write configuration, command and versions; only the main process writes."""
        if self.is_main:
            self.run.mkdir(parents=True, exist_ok=True)
            self._write(CONFIG, yaml.safe_dump(self._config, sort_keys=True, allow_unicode=True))
            self._write("command.txt", shlex.join(sys.argv) + "\n")
            self._write("versions.json", json.dumps(package_versions(), indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        write_text(self.run / f"{self._prefix}{name}", text)

    def is_finished(self) -> bool:
        """Return whether the folder holds a finished run with this configuration.

        Raises:
            ValueError: it holds a run, finished or interrupted, with another configuration.
        """
        finished = (self.run / RESULTS).exists()
        if not finished and self.last_checkpoint() is None:
            return False
        config = self.run / CONFIG
        begun = yaml.safe_load(config.read_text(encoding="utf-8")) if config.exists() else {}
        wanted = yaml.safe_load(yaml.safe_dump(self._config))
        differing = [
            f"{key} ({begun.get(key, 'unknown')} there, {value} now)"
            for key, value in wanted.items()
            if key != "output" and (key not in begun or begun[key] != value)
        ]
        if differing:
            raise ValueError(
                f"{self.path} holds a run with another configuration: {'; '.join(differing)}. Choose another "
                "--output, or remove that folder to start over"
            )
        if finished:
            say(f"{self.path} is already finished; nothing to do (remove the folder to start over)")
        return finished

    def check_inputs(self, inputs: Mapping[str, str], *, resumed: bool) -> None:
        """Record the digests of all inputs, or check them if the run resumes.

        Args:
            inputs: digests by name.
            resumed: the run resumes.

        Raises:
            ValueError: an input has changed since the run began, so that its results would mix two inputs.
        """
        path = self.run / INPUTS
        if not resumed or not path.exists():
            self.write_json(INPUTS, dict(inputs))
            return
        before = read_json(path)
        changed = [name for name in {**before, **inputs} if before.get(name) != inputs.get(name)]
        if changed:
            raise ValueError(
                f"{self.path} was begun with other {' and '.join(changed)}; restore them to resume, choose "
                "another --output, or remove that folder to start over"
            )

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file into OUTPUT/run."""
        if self.is_main:
            write_text(self.run / name, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def last_checkpoint(self) -> str | None:
        """Return the last complete checkpoint of an interrupted run, if any."""
        paths = sorted(self.run.glob("checkpoint-*"), key=lambda path: -int(path.name.rsplit("-", 1)[1]))
        return next((str(path) for path in paths if _is_complete(path)), None)


def _is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint was written to its end: the Trainer writes its state last."""
    try:
        json.loads((checkpoint / TRAINER_STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def package_versions() -> dict[str, str]:
    """Return the installed versions of the packages that results depend on."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def warn_if_alone(world_size: int) -> None:
    """Warn if a launcher was asked for several processes but started one.

    `accelerate launch --cpu --num_processes 2` does so silently unless MPI is set up.
    """
    parent = psutil.Process().parent()
    words = parent.cmdline() if parent is not None else []
    for index, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.replace("-", "_") == "__num_processes":
            wanted = value or (words[index + 1] if index + 1 < len(words) else "")
            if wanted.isdigit() and int(wanted) > world_size:
                say(
                    f"{wanted} processes were requested, but {world_size} started. On CPUs, use "
                    f"`torchrun --nproc_per_node {wanted} -- SCRIPT ...` instead of `accelerate launch`.",
                    "yellow",
                )


def summary(label: str, scores: Mapping[str, Any]) -> None:
    """Print a line of scores, without the Trainer's timings."""
    parts = [
        f"{key.removeprefix('eval_')} {value:.2f}"
        for key, value in scores.items()
        if isinstance(value, float) and not key.endswith(NOT_SCORES)
    ]
    say(f"{label}: {', '.join(parts)}", "bold")

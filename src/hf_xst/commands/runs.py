"""The folder of a run: the command, the resolved configuration and the log, beside what may be shared."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import yaml

from hf_xst.console import say
from hf_xst.files import CHARTS, MODEL, RESULTS, write_text
from hf_xst.training.log_lines import NOT_SCORES, TRAINER_STATE

PACKAGES = ("hf_xst", "torch", "transformers", "datasets", "accelerate", "huggingface_hub")
INPUTS = "inputs.json"


def check_output(output: str, *own: str, alone: bool = True) -> None:
    """Refuse an output that is a file, or that holds what another command has made.

    Args:
        output: the folder.
        own: the files, of `MODEL` and `CHARTS`, that this command writes itself.
        alone: nothing else may be there; if not, only a file is refused.

    Raises:
        ValueError: it is so.
    """
    path = Path(output)
    if path.exists() and not path.is_dir():
        raise ValueError(f"--output {output} is a file; expected the name of a folder")
    for name, what in {MODEL: "a model", CHARTS: "charts"}.items():
        if alone and name not in own and (path / name).is_file():
            raise ValueError(
                f"--output {output} holds {what}, among which nothing else is written; choose another folder"
            )


def check_one_process(command: str) -> None:
    """Refuse to be one of several processes, which would all do the whole work and write the same files.

    Raises:
        ValueError: a launcher has started several.
    """
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started > 1:
        raise ValueError(f"{started} processes were started; {command} runs in one")


class RunFolder:
    """OUTPUT, of which OUTPUT/run holds what is not shared.

    A run that trains owns its folder: repeated with the same configuration it goes on where it stopped, or,
    once finished, does nothing; with another configuration it is refused.

    Args:
        output: the folder.
        arguments: the resolved arguments, a data class.
        prefix: of the names of the files that describe the command, so that another command may work on the
            output of a run without hiding where that came from.
    """

    def __init__(self, output: str, arguments: Any, *, prefix: str = "") -> None:
        self.path = Path(output)
        self.run = self.path / "run"
        self.is_main = True
        self._prefix = prefix
        self._config = asdict(arguments)

    def begin(self, *, is_main: bool = True) -> None:
        """Make the folder and write down the configuration, the command and the versions.

        Args:
            is_main: whether this process writes (one of several does).
        """
        self.is_main = is_main
        if is_main:
            self.run.mkdir(parents=True, exist_ok=True)
            self._write("config.yaml", yaml.safe_dump(self._config, sort_keys=True, allow_unicode=True))
            self._write("command.txt", shlex.join(sys.argv) + "\n")
            self._write("versions.json", json.dumps(package_versions(), indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        write_text(self.run / f"{self._prefix}{name}", text)

    def finished(self) -> dict[str, Any] | None:
        """Return the results of a run that has been finished with this configuration, or None.

        Raises:
            ValueError: the folder holds a run, finished or begun, with another configuration.
        """
        results = self.run / RESULTS
        if not results.exists() and self.last_checkpoint() is None:
            return None
        config = self.run / "config.yaml"
        begun = yaml.safe_load(config.read_text(encoding="utf-8")) if config.exists() else {}
        wanted = yaml.safe_load(yaml.safe_dump(self._config))
        differing = [
            f"{key} ({begun.get(key, 'not known')} there, {value} now)"
            for key, value in wanted.items()
            if key != "output" and (key not in begun or begun[key] != value)
        ]
        if differing:
            raise ValueError(
                f"{self.path} holds a run with another configuration: {'; '.join(differing)}. "
                "Choose another --output, or remove that folder to start anew"
            )
        if not results.exists():
            return None
        say(f"{self.path} is finished already; nothing was done (remove the folder to start anew)")
        content: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
        return content

    def check_inputs(self, inputs: Mapping[str, str], *, resumed: bool) -> None:
        """Note what the run reads, or, where it goes on, see that this is what it has read before.

        Args:
            inputs: digests by what they are of.
            resumed: the run goes on.

        Raises:
            ValueError: something has changed since the run began; its results would be of two minds.
        """
        path = self.run / INPUTS
        if not resumed or not path.exists():
            self.write_json(INPUTS, dict(inputs))
            return
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [what for what in {**before, **inputs} if before.get(what) != inputs.get(what)]
        if changed:
            raise ValueError(
                f"{self.path} was begun with other {' and '.join(changed)} than there are now at the same "
                "place; bring them back to go on, or start anew in another --output, or without that folder"
            )

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file into OUTPUT/run."""
        if self.is_main:
            write_text(self.run / name, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def last_checkpoint(self) -> str | None:
        """Return the last whole checkpoint that an interrupted run has left, if any."""
        found = sorted(self.run.glob("checkpoint-*"), key=lambda path: -int(path.name.rsplit("-", 1)[1]))
        return next((str(path) for path in found if _is_whole(path)), None)


def _is_whole(checkpoint: Path) -> bool:
    """Say whether a checkpoint was written to its end: the Trainer writes its state last."""
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
                say(
                    f"{wanted} processes were asked for, but there is {world_size}. On a CPU, use "
                    f"`torchrun --nproc_per_node {wanted} -- SCRIPT ...` instead of `accelerate launch`.",
                    "yellow",
                )


def summary(label: str, scores: Mapping[str, Any]) -> None:
    """Print a line of scores, without the Trainer's times."""
    shown = [
        f"{key.removeprefix('eval_')} {value:.2f}"
        for key, value in scores.items()
        if isinstance(value, float) and not key.endswith(NOT_SCORES)
    ]
    say(f"{label}: {', '.join(shown)}", "bold")

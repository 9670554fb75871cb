"""The folder of a run: command, resolved configuration and log, separate from what is published."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import yaml

from hf_xst.console import say
from hf_xst.data.folders import treebank_files
from hf_xst.data.treebank_facts import split_name
from hf_xst.files import (
    CHARTS,
    MODEL,
    PREDICTIONS,
    RESULTS,
    WEIGHTS,
    behind_link,
    digest_of,
    input_digests,
    protect_inputs,
    write_text,
)
from hf_xst.hub.privacy import find_secret
from hf_xst.processes import process_index
from hf_xst.records import read_json, read_yaml, write_json
from hf_xst.sources.building import BUILDING
from hf_xst.training.progress import TRAINER_STATE, score_texts

PACKAGES = ("hf_xst", "torch", "transformers", "datasets", "accelerate", "huggingface_hub")
CONFIG, INPUTS, FILES, VERSIONS = "config.yaml", "inputs.json", "files.json", "versions.json"
SCORES = "run/scores.json"
# Paths that results do not depend on: `data` is searched for treebanks, whose content counts.
_PLACES = ("output", "data", "embedding_cache")
_SECRET_SETTING = re.compile(r"(?:token|secret|password|passwd|key)[\"']?\s*[=:]", re.I)


class RunFolder:
    """OUTPUT and OUTPUT/run, which is never published.

    A run owns its folder. A training run that is repeated with the same configuration and inputs resumes or,
    once finished, does nothing; others are rejected.

    Args:
        output: the folder.
        options: the options of the command, a data class.
        files: what this command writes into the folder, besides its description in `run/`.
        alone: reject folders with results of other commands.
        prefix: of the files that describe the command, so that another command can work on the output of a
            run without hiding where it came from.

    Raises:
        ValueError: the output is a file, contains what another wrote, or would overwrite an input; or an
            option is a secret.
    """

    def __init__(self, output: str, options: Any, *files: str, alone: bool = True, prefix: str = "") -> None:
        self.path = behind_link(output)
        self.run = self.path / "run"
        self.is_main = process_index() == 0
        self._prefix = prefix
        self._config, self._options = asdict(options), options
        self._check_output(files, alone and bool(files))
        _reject_secrets(self._config)

    def _check_output(self, files: Sequence[str], alone: bool) -> None:
        path = self.path
        if path.exists() and not path.is_dir():
            raise ValueError(f"--output {path} is a file; expected a folder")
        protect_inputs(self._options, *(path / name for name in files))
        others = {MODEL: "a model", CHARTS: "charts", WEIGHTS: "weights", PREDICTIONS: "predictions"}
        for name, content in others.items():
            if alone and name not in files and (path / name).is_file():
                raise ValueError(f"--output {path} already holds {content}; choose another folder")
        config = self.run / CONFIG
        if not self._prefix and config.exists() and read_yaml(config).keys() != self._config.keys():
            raise ValueError(
                f"--output {path} holds a run of another command or version; choose another folder"
            )
        is_ours = any((self.run / name).exists() for name in (f"{self._prefix}{VERSIONS}", BUILDING))
        present = [name for name in files if os.path.lexists(path / name)]
        if present and not is_ours:
            raise ValueError(
                f"{path / present[0]} was not written by this command; move it, or choose another --output"
            )

    def begin(self) -> None:
        """Create the folder and write configuration, command and versions; only the main process writes."""
        if self.is_main:
            self.run.mkdir(parents=True, exist_ok=True)
            config = yaml.safe_dump(self._config, sort_keys=True, allow_unicode=True)
            write_text(self.run / f"{self._prefix}{CONFIG}", config)
            if not self._prefix:
                self.write_json(FILES, self._digests)
            write_text(self.run / f"{self._prefix}command.txt", shlex.join(sys.argv) + "\n")
            self.write_json(f"{self._prefix}{VERSIONS}", package_versions())

    @cached_property
    def _digests(self) -> dict[str, dict[str, str]]:
        """What the words of options that name local inputs mean, see `input_digests`."""
        return input_digests(self._options) | _treebank_digests(self._config)

    def differences(self) -> list[str]:
        """List the settings and inputs that differ from those of the run in the folder.

        Inputs are compared by content, as files and folders may be moved, and by path once they are gone.
        """
        config, files = self.run / CONFIG, self.run / FILES
        begun = read_yaml(config) if config.exists() else {}
        wanted = yaml.safe_load(yaml.safe_dump(self._config))
        before = read_json(files) if files.exists() else {}
        differing = []
        for key, value in wanted.items():
            then, now = before.get(key, {}), self._digests.get(key, {})
            pairs = list(zip_longest(_words(begun.get(key, "unknown")), _words(value)))
            if key not in _PLACES and any(
                then[old] != now[new] if old in then and new in now else old != new for old, new in pairs
            ):
                is_same = begun.get(key) == value
                change = f"{begun.get(key, 'unknown')} there, {value} now"
                differing.append(f"{key} ({'its content has changed' if is_same else change})")
        return differing

    def is_finished(self) -> bool:
        """Return whether the folder holds a finished run with this configuration and these inputs.

        Raises:
            ValueError: it holds a run, finished or interrupted, with another configuration or other inputs.
        """
        finished = (self.run / RESULTS).exists()
        if not finished and self.last_checkpoint() is None:
            return False
        if differing := self.differences():
            raise ValueError(
                f"{self.path} holds a run with another configuration: {'; '.join(differing)}. Choose another "
                "--output, or remove that folder to start over"
            )
        if finished:
            say(f"{self.path} is already finished; nothing to do (remove the folder to start over)")
        return finished

    def check_inputs(self, inputs: Mapping[str, str], *, resumed: bool) -> None:
        """Record the digests of all inputs, by name, or check them if the run resumes.

        Raises:
            ValueError: an input has changed since the run began, so that its results would mix two inputs.
        """
        path = self.run / f"{self._prefix}{INPUTS}"
        if not resumed or not path.exists():
            self.write_json(path.name, dict(inputs))
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
            write_json(self.run / name, content)

    def last_checkpoint(self) -> str | None:
        """Return the last complete checkpoint of an interrupted run, if any."""
        numbers = (path.name.removeprefix("checkpoint-") for path in self.run.glob("checkpoint-*"))
        for step in sorted((int(number) for number in numbers if number.isdecimal()), reverse=True):
            checkpoint = self.run / f"checkpoint-{step}"
            with suppress(OSError, ValueError):
                read_json(checkpoint / TRAINER_STATE)  # which the Trainer writes last
                return str(checkpoint)
        return None


def _words(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _treebank_digests(config: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the digest of the splits that a command reads, as `input_digests`; of those that exist."""
    wanted = {"data", *(split_name(config[name]) for name in ("split", "dev_split") if name in config)}
    digests: dict[str, dict[str, str]] = {"treebank": {}, "dev_treebank": {}}
    for option in digests:
        with suppress(ValueError, FileNotFoundError):
            splits = treebank_files(config[option], data_roots=config["data"]) if config.get(option) else None
            files = [path for name in wanted for path in (splits or {}).get(name, ())]
            digests[option] = {config[option]: digest_of(files)} if files else {}
    return digests


def _reject_secrets(options: Mapping[str, Any]) -> None:
    """Raise ValueError if an option holds a secret, which a run would record."""
    for name, value in options.items():
        for word in map(str, value if isinstance(value, list) else [value]):
            key = word.partition("=")[0] if name == "trainer" else ""
            if (key and _SECRET_SETTING.search(word)) or find_secret(word):
                raise ValueError(
                    f"--{name.replace('_', '-')} {key if key.isidentifier() else ''}".rstrip()
                    + " is a secret, which would be recorded in the output; leave it out and log in with "
                    "`hf auth login`, or set HF_TOKEN"
                )


def package_versions() -> dict[str, str]:
    """Return the installed versions of the packages that results depend on."""
    return {name: version(name) for name in PACKAGES}


def summary(label: str, scores: Mapping[str, Any]) -> None:
    """Print a line of scores, without the Trainer's timings."""
    parts = score_texts(scores, ".2f")
    if unscored := scores.get("words_without_gold"):
        parts.append(f"{unscored} words without a gold tag not scored")
    say(f"{label}: {', '.join(parts)}", "bold")

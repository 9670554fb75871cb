"""Call the Hub client in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class HubError(Exception):
    """An exception of the client's process: class, message and traceback."""


class Client:
    """A separate process with a Hub client; see `hub_client.py`."""

    def __init__(self, url: str, home: Path, **environment: str) -> None:
        settings = {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HF_ENDPOINT": url,
            "HF_HOME": str(home / "huggingface"),
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "HF_TOKEN": "hf_test",
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.log = home / f"client-{id(self)}.log"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / "hub_client.py")],
                env=os.environ | settings | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def __call__(self, name: str, environment: dict[str, str] | None = None, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments, environment or {}]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self.log.read_text()[-4000:]
        answer = json.loads(line)
        if "error" in answer:
            raise HubError(f"{answer['error']}: {answer['message']}\n{answer['where']}")
        return answer["result"]

    def command(self, *words: object, **environment: str) -> Any:
        return self("command", environment, words=[str(word) for word in words])

    def succeeds(self, *words: object, **environment: str) -> None:
        """Run a command that must succeed."""
        done = self.command(*words, **environment)
        assert done["status"] == 0, done

    def fails(self, *words: object, **environment: str) -> str:
        """Run a command that must fail with one line of error, and return the line."""
        done = self.command(*words, **environment)
        assert done["status"] == 1, done
        line = done["error"].removesuffix("\n")
        assert line.startswith("hf-xst ")
        assert "\n" not in line
        return str(line)

    def close(self) -> None:
        self._process.communicate()

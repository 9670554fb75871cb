"""A short run of the fuzzer of each kind of input; `scripts/fuzz.py` runs as long as one likes."""

from __future__ import annotations

import fuzz
import pytest

from hf_xst import cli


@pytest.mark.filterwarnings("ignore::hf_xst.data.conllu.WithheldWordsWarning")
@pytest.mark.parametrize("name", fuzz.KINDS)
def test_readers_agree_with_slow_checkers(name, monkeypatch):
    monkeypatch.setattr(cli.console, "quiet", True)
    fuzz.test_of(fuzz.KINDS[name], 5, derandomize=True)()

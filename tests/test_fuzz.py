"""A short run of the fuzzer of each kind of input; `scripts/fuzz.py` runs as long as one likes."""

from __future__ import annotations

import fuzz
import pytest


@pytest.mark.filterwarnings("ignore::hf_xst.data.conllu.WithheldWordsWarning")
@pytest.mark.parametrize("name", fuzz.KINDS)
def test_readers_agree_with_slow_checkers(name):
    assert fuzz.fuzz(name, 200) == []

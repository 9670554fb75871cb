"""The benchmark runs at tiny sizes and compares right ways only; how fast anything is, no test says."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"

pytestmark = pytest.mark.filterwarnings("ignore:.*arg_constraints:UserWarning")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a script by name, as if run from its folder."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


def test_a_quick_run_writes_all_ratios(script, tmp_path, capsys):
    target = tmp_path / "figures.json"
    generator_state = torch.random.get_rng_state()
    assert script("benchmark").main(["--quick", "--json", str(target)]) == 0
    assert torch.equal(torch.random.get_rng_state(), generator_state)
    written = json.loads(target.read_text(encoding="utf-8"))
    kinds = {line["what"].split(",")[0].split(":")[0] for line in written["lines"]}
    assert kinds == {"parser", "chain", "best trees", "threads"}
    for line in written["lines"]:
        assert line["ratio"] == pytest.approx(line["other_seconds"] / line["one_seconds"])
        assert line["one_seconds"] > 0
    assert written["machine"]["threads"] == torch.get_num_threads()
    assert written["machine"]["versions"]["torch"] == torch.__version__
    assert sum("of the step" in line["note"] for line in written["lines"]) == 2
    assert "ratio" in capsys.readouterr().out


def test_numbers_that_differ_stop_the_run(script):
    check = script("benchmark").check_equal
    check("same", torch.ones(3), torch.ones(3) + 1e-6)
    for other in (torch.full((3,), 1.01), torch.full((3,), math.nan)):
        with pytest.raises(ValueError, match="label scores: the two ways differ by"):
            check("label scores", torch.ones(3), other)


def test_medians_take_turns(script):
    calls: list[str] = []
    times = script("timing").medians(lambda: calls.append("a"), lambda: calls.append("b"), seconds=0)
    assert calls == ["a", "b"] * 4  # a warm-up and the least number of rounds
    assert len(times) == 2


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_the_plain_search_finds_the_best_tree(script, words):
    ways = script("usual_ways")
    generator = torch.Generator().manual_seed(words)
    arcs = torch.randn(30, words + 1, words + 1, generator=generator, dtype=torch.float64).numpy()
    for name, search in ways.searches().items():
        for one, heads in zip(arcs, search(arcs), strict=True):
            found = sum(one[head, word] for word, head in enumerate(heads, 1))
            assert heads.count(0) == 1, name
            assert found == pytest.approx(max(single_root_scores(one, words))), name


def single_root_scores(arcs: Any, words: int) -> list[float]:
    """List the scores of all trees with one root."""
    scores = []
    for heads in itertools.product(range(words + 1), repeat=words):
        reached = {0}
        for _ in range(words):
            reached |= {word for word, head in enumerate(heads, 1) if head in reached}
        if len(reached) == words + 1 and heads.count(0) == 1:
            scores.append(sum(arcs[head, word] for word, head in enumerate(heads, 1)))
    return scores

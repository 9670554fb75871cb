"""The benchmark runs at tiny sizes and compares right ways only; how fast anything is, no test says."""

from __future__ import annotations

import importlib
import json
import math
from importlib.metadata import version
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


@pytest.mark.parametrize(
    "part",
    [
        "peers", "steps", "threads", "length", "units",
        *(
            pytest.param(part, marks=pytest.mark.slow)
            for part in ("labels", "sources", "corpus", "memory", "processes")
        ),
    ],
)  # fmt: skip
def test_a_quick_run_writes_all_figures(script, tmp_path, capsys, monkeypatch, part):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    target = tmp_path / "figures.json"
    target.write_text('{"other": {}}')
    state = torch.random.get_rng_state(), torch.get_num_threads()
    assert script("benchmark").main([part, "--quick", "--figures", str(target)]) == 0
    assert torch.equal(torch.random.get_rng_state(), state[0])
    assert torch.get_num_threads() == state[1]
    figures = json.loads(target.read_text(encoding="utf-8"))
    assert list(figures) == ["other", part]  # the figures of other parts stay
    assert all(line["seconds"] >= 0 for line in figures[part]["lines"])
    assert figures[part]["machine"]["threads"] == 1
    assert figures[part]["machine"]["versions"]["torch"] == version("torch")
    keys = {"curve", "size", "seconds"} if part in ("length", "labels", "sources") else set()
    assert all(keys <= set(line) for line in figures[part]["lines"])
    assert '"seconds"' in capsys.readouterr().out


def test_the_page_states_the_sizes(script):
    page = " ".join((SCRIPTS.parent / "docs/performance.md").read_text(encoding="utf-8").split())
    sizes = script("benchmark").FULL
    arcs, labels = sizes.parser["arc_size"], sizes.parser["label_size"]
    for text in (
        f": {sizes.sentences} sentences of {sizes.words} words, {sizes.tags} tags or labels of phrases",
        f"{arcs} arc and {labels} label features, {sizes.labels} labels; sentences of {sizes.words} words",
    ):
        assert text in page


def test_an_unknown_part_is_rejected(script, capsys):
    with pytest.raises(SystemExit):
        script("benchmark").main(["peer"])
    assert "unknown part peer; expected one of peers, steps" in capsys.readouterr().err


def test_packages_that_are_not_installed_are_left_out(script, monkeypatch):
    ways = script("usual_ways")
    monkeypatch.setattr(ways, "optional", lambda name: {})
    assert list(ways.tree_sums()) == ["matrix-tree theorem, plain"]
    assert list(ways.chain_sums(torch.zeros(2, 2))) == ["forward algorithm, plain"]
    assert not ways.phrase_sums()
    assert not ways.phrase_best()
    assert not ways.searches()


def test_numbers_that_differ_stop_the_run(script):
    check = script("benchmark").check_equal
    check("same", torch.ones(3), torch.ones(3) + 1e-6)
    for other in (torch.full((3,), 1.01), torch.full((3,), math.nan)):
        with pytest.raises(ValueError, match="label scores: the two ways differ by"):
            check("label scores", torch.ones(3), other)


def test_works_take_turns(script):
    calls: list[str] = []
    works = {name: lambda name=name: calls.append(name) for name in "ab"}
    assert list(script("benchmark").fastest(works, seconds=0)) == ["a", "b"]
    assert calls == ["a", "b"] * 6  # a warm-up and the least number of rounds

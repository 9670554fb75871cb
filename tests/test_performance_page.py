"""The page of performance and its plots follow from the committed figures."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def performance(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("performance")


def test_the_pages_are_computed_from_the_figures(performance):
    figures = performance.read()
    assert (DOCS / "performance.md").read_text(encoding="utf-8") == performance.page(figures)
    scaling = (DOCS / "scaling.md").read_text(encoding="utf-8")
    assert performance.scaling(figures) in scaling
    assert performance.with_section(scaling, performance.scaling(figures)) == scaling


def test_every_part_has_a_plot_and_names_the_kind_of_machine_only(performance):
    figures = performance.read()
    assert set(figures) == {*performance.PARTS, "units"}
    for name, part in figures.items():
        assert set(part["machine"]) == {"cpu", "cores", "threads", "load", "versions"}
        assert "/" not in json.dumps(part["machine"])
        if name in performance.PARTS:
            assert (DOCS / "performance" / f"{name}.svg").stat().st_size < 60_000


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_exponents_ignore_what_every_call_costs(performance, power):
    curve = {size: 1e-9 if size < 50 else 1e-6 * size**power for size in (5, 10, 20, 50, 100, 200)}
    assert performance.exponent(curve) == pytest.approx(power)


@pytest.mark.parametrize(
    "text",
    [
        "# Page\n\nText.\n",
        "# Page\n\nText.\n\n{heading}\n\nold\n",
        "# Page\n\n{heading}\n\nold\n\n## Next\n\nmore\n",
    ],
)
def test_a_section_is_replaced_and_others_stay(performance, text):
    text = text.format(heading=performance.HEADING)
    found = performance.with_section(text, f"{performance.HEADING}\n\nnew\n")
    assert "old" not in found
    assert found.count(f"\n\n{performance.HEADING}\n\nnew\n") == 1
    assert ("## Next\n\nmore" in found) == ("## Next" in text)
    assert found.startswith("# Page\n\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.00123456, "0.00123"), (1.5, "1.5"), (12.34, "12.3"), (123.4, "123"), (123456.0, "123,000")],
)
def test_numbers_have_three_digits(performance, value, expected):
    assert performance.number(value) == expected

"""The record of charts: it survives a round trip, and broken records are rejected."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hf_xst.charts.chart import ChartSettings
from hf_xst.charts.dataset import ChartCounts, ChartInfo, ChartSource
from hf_xst.files import CHARTS

INFO = ChartInfo(
    "a_type",
    ["x", "y"],
    [ChartSource("en", "org/en", "v1", "0" * 64, ["z"]), ChartSource("de")],
    ChartSettings("pool", 0.999, 0.0, {"en": 0.25, "de": 0.75}, True, 2.0),
    "de",
    from_average=True,
    labels="union",
    preset="recommended",
    vectors={"name": "id.vec", "sha256": "1" * 64},
    text=[{"name": "UD_X", "licence": None}],
    counts=ChartCounts(3, 9, 20, 1, {"en": 0.5}),
    versions={"torch": "2"},
)


def test_a_saved_record_loads_unchanged(tmp_path):
    INFO.save(tmp_path)
    assert ChartInfo.load(tmp_path) == INFO


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, r"provenance\.json: unknown field colour; expected model_type"),
        ({"names": None}, "names is 'None'; expected list"),
        ({"names": [1]}, "names is '1'; expected str"),
        ({"labels": "all"}, "labels is 'all'; expected .*initial"),
        ({"from_average": 1}, "from_average is '1'; expected bool"),
        ({"settings": {"sigma": 2.0}}, "sigma is 2.0; expected a probability"),
        ({"settings": {"sgma": 0.5}}, r"provenance\.json: settings: unknown field sgma"),
        ({"counts": {"sentences": True}}, "sentences is 'True'; expected int"),
        ({"sources": [{"id": "x"}]}, "sources: missing field name"),
        ({"format_version": 99}, "has format 99; this package reads format 2; update it"),
        ({"format_version": 1}, "has format 1; this package reads format 2; repeat the command"),
        ({"format_version": None}, "missing field format_version"),
    ],
)
def test_broken_records_are_rejected(tmp_path, change, message):
    INFO.save(tmp_path)
    content = json.loads((tmp_path / CHARTS).read_text())
    (tmp_path / CHARTS).write_text(json.dumps(content | change))
    with pytest.raises(ValueError, match=message):
        ChartInfo.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "x", "format_version": 2}'])
def test_records_that_are_not_records_are_rejected(tmp_path, text):
    (tmp_path / CHARTS).write_text(text)
    with pytest.raises(ValueError, match=r"not valid JSON|expected a mapping|missing field names"):
        ChartInfo.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [(ChartSettings("union"), "union"), (ChartSettings(), "pool"), (INFO.settings, "learned")],
)
def test_published_settings_differ_by_the_kind_of_charts(settings, kind):
    assert replace(INFO, settings=settings).chart_kind == kind


def test_counts_add_up():
    total = ChartCounts(1, 2, 3, 4, {"a": 0.5}) + ChartCounts(1, 1, 1, 1, {"a": 0.25, "b": 1.0})
    assert total == ChartCounts(2, 3, 4, 5, {"a": 0.75, "b": 1.0})

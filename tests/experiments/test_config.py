"""Studies that say only in what they differ from another one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.experiments.config import config_text, overlay, read_config
from hf_xst.experiments.study import read_study

BASE = """
# A comment.
seeds: [1]
labelled: 50
sources: {en: {train: e, split: "train[:9]"}, de: {train: d}}
targets: {it: {text: i, test: i}, fa: {text: f, test: f}, hr: {text: h, test: h}}
encoders: {B: {transfer: {updates: 200, trainer: [a, b]}}}
tasks: {parser: {}, tagger: {}}
methods: {mix: {charts: pool}}
"""


@pytest.fixture
def write(tmp_path: Path):
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    file("base.yaml", BASE)
    return file


def test_a_study_differs_from_its_base_in_what_it_says(write):
    path = write(
        "mine.yaml",
        """
base: base.yaml
without: [methods]
seeds: [1, 2, 3]
sources: {en: {split: null}, fr: {train: f}}
targets: [hr, it]
encoders: {B: {transfer: {updates: 300, trainer: [c]}}}
""",
    )
    content = read_config(path)
    assert content == {
        "seeds": [1, 2, 3],
        "labelled": 50,
        "sources": {"en": {"train": "e"}, "de": {"train": "d"}, "fr": {"train": "f"}},
        "targets": {"hr": {"text": "h", "test": "h"}, "it": {"text": "i", "test": "i"}},
        "encoders": {"B": {"transfer": {"updates": 300, "trainer": ["c"]}}},
        "tasks": {"parser": {}, "tagger": {}},
    }
    study = read_study(path)
    assert list(study.targets) == ["hr", "it"]
    assert list(study.all_methods) == ["union", "pool"]


def test_a_base_may_have_a_base_in_another_folder(write, tmp_path):
    (tmp_path / "below").mkdir()
    write("below/middle.yaml", "base: ../base.yaml\nlabelled: 10\n")
    path = write("mine.yaml", "base: below/middle.yaml\nseeds: [7]\n")
    assert read_config(path) == {**yaml.safe_load(BASE), "labelled": 10, "seeds": [7]}


def test_what_is_kept_with_results_is_the_whole_study(write):
    path = write("mine.yaml", "base: base.yaml\nseeds: [7]\n")
    alone = write("alone.yaml", config_text(path))
    assert read_config(alone) == read_config(path)
    assert "base" not in yaml.safe_load(alone.read_text(encoding="utf-8"))
    # Without a base, comments are kept too.
    assert config_text(path.with_name("base.yaml")) == BASE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: other.yaml", r"there is no study .*other\.yaml; expected a YAML file"),
        ("base: mine.yaml", r"cannot stand on itself: mine\.yaml on mine\.yaml"),
        ("without: [seeds]", "found without but no base"),
        ("base: base.yaml\nwithout: [chart]", "without: the base has no chart; it has seeds, labelled"),
        ("base: base.yaml\nwithout: seeds", "without: found 'seeds'; expected a list of names"),
        ("base: base.yaml\ntargets: [it, xx]", "targets: the base has no xx; it has it, fa, hr"),
        ("base: base.yaml\nsources: {en: {splits: null}}", "en: the base has no splits; it has train, split"),
        ("targets: [it", "no YAML"),
        ("- it", "found list; expected a mapping"),
        ("", "found NoneType; expected a mapping"),
        ("base: base.yaml\nseed: 3", r"mine\.yaml: there is no seed; is seeds meant\?"),
    ],
)
def test_what_cannot_be_is_told(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_study(write("mine.yaml", text))


# Names tell whether an entry is a value or a mapping, as in studies.
LEAVES = st.dictionaries(st.sampled_from(["seeds", "sigma"]), st.integers(0, 9))
CONTENTS = st.tuples(LEAVES, st.dictionaries(st.sampled_from(["tasks", "targets"]), LEAVES)).map(
    lambda parts: {**parts[0], **parts[1]}
)


@given(CONTENTS, CONTENTS, CONTENTS)
def test_laying_over_is_associative_and_what_is_given_wins(first, second, third):
    def over(base, given):
        return overlay(base, given, "here")

    assert over(first, {}) == first
    assert over({}, first) == first
    assert over(first, first) == first
    both = over(first, second)
    assert set(both) == set(first) | set(second)
    assert over(both, second) == both
    assert over(both, third) == over(first, over(second, third))

"""Read and validate configurations of studies."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest
from configuration import COMMANDS, command_options, read_config, read_study

from hf_xst.commands import options

SEARCH = {"charts": "pool", "trials": 2}
STUDIES = sorted((Path(__file__).parents[2] / "scripts" / "study").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_of_the_repository_is_valid(path):
    study = read_study(path)
    assert study.name == path.stem
    assert study.output == f"runs/study/{path.stem}"
    assert study.methods or study.rules


def test_the_readme_lists_every_study():
    readme = (STUDIES[0].parent / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)\.yaml` \|", readme, flags=re.M)) == [path.stem for path in STUDIES]


def test_a_study_has_the_methods_of_the_paper_unless_it_drops_them(write):
    study = read_study(write())
    assert list(study.methods) == ["pptx", "paper-pool"]
    assert study.charts["union"].rule == "union"
    without = {"paper_methods": False, "methods": {"mine": {"charts": "pool", "seeds": [7]}}}
    assert list(read_study(write(without)).methods) == ["mine"]


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_read_from_the_data_classes_of_the_commands(command):
    kind, derived = COMMANDS[command]
    names = [each.name for each in fields(vars(options)[kind])]
    assert sorted(command_options(kind)) == sorted(names)
    assert set(derived.split()) <= set(names)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": {}}, "unknown name source; did you mean sources"),
        ({"sources": {"fr": {"split": "train"}}}, "sources: fr: expected either train or place"),
        ({"sources": {"fr": "fr.conllu"}}, "sources: fr: found 'fr.conllu'; expected settings"),
        ({"sources": {"en": {"init_from": "de"}}}, "init_from is a cycle: en -> de -> en"),
        ({"sources": {"de": {"init_from": "fr"}}}, "sources: de: init_from: unknown name fr"),
        ({"sources": {"de": {"train_source": {"task": "parser"}}}}, "task is set by the study"),
        ({"sources": {"de": {"train_source": {"max_step": 5}}}}, "max_step; did you mean max_steps"),
        ({"targets": {"fo": {"test_file": "x"}}}, "targets: fo: unknown name test_file"),
        ({"targets": {"en": {"text": "x", "test": "y"}}}, "targets: en: source de is fine-tuned from that"),
        ({"targets": {"fo": {"dev": None}}}, "targets: fo: missing dev, from which labelled"),
        ({"encoders": {"frozen": {"vectors": "v.{code}"}}}, "frozen: expected either vectors or encoder"),
        ({"encoders": {"vectors": {"vectors": "v.vec"}}}, "found v.vec; expected a file name with {code}"),
        ({"encoders": {"frozen": {"tagger": {"train": {}}}}}, "encoders: frozen: tagger: unknown name train"),
        ({"tasks": {"ner": {}}}, "tasks: unknown name ner; expected one of tagger, parser"),
        ({"tasks": {"parser": {"transfer": {"epoch": 5}}}}, "tasks: parser: transfer: unknown name epoch"),
        ({"init_from": "nl"}, "init_from: unknown name nl"),
        ({"rules": ["majority"]}, "rules: unknown name majority"),
        ({"rules": "vote"}, "rules: found 'vote'; expected Sequence"),
        ({"rules": ["pool-grouped"], "labelled": 0}, "pool-grouped requires labelled sentences"),
        ({"seeds": []}, "seeds: found an empty list"),
        ({"labelled": "many"}, "labelled: found 'many'; expected int"),
        ({"select": 2}, "select and labelled exclude each other"),
        ({"upos": "mix"}, "upos: unknown name mix"),
        ({"upos": "pptx", "tasks": ["parser"]}, "upos: pptx requires the task tagger"),
        ({"seeds": ["one"]}, r"seeds: found ['one']; expected Sequence[int]"),
        ({"sigma": "high"}, "sigma: found 'high'; expected float"),
        ({"targets": {"fo": {"text": 5}}}, "targets: fo: text: found 5; expected Files"),
        ({"rules": ["average"], "sources": {"x": {"train": "y"}}}, "sources: en, x share no init_from"),
        ({"sources": {"joined": None, "x": {"place": "spacy:x", "test": "y"}}}, "x: place excludes script"),
        (
            {"sources": {"x": {"place": "spacy:x", "init_from": "en"}}},
            "x: place and script exclude init_from",
        ),
        ({"sources": {"x": {"train": "y", "init_from": "z"}, "z": {"place": "spacy:z"}}}, "unknown name z"),
        ({"encoders": {"frozen": {"methods": {"ptx": {}}}}}, "methods: unknown name ptx; did you mean pptx"),
        ({"charts": {"x": {"rule": "union!"}}}, "charts: x: rule: unknown name union!; did you mean union"),
        ({"charts": {"x": {"weights": "lerned"}}}, "did you mean learned"),
        ({"charts": {"x": {"sources": ["fr"]}}}, "charts: x: sources: unknown name fr"),
        ({"charts": {"x": {"add": ["mine"]}}}, "charts: x: add: unknown name mine"),
        ({"charts": {"x": {"build_charts": {"rule": "pool"}}}}, "build_charts: rule is set by the study"),
        ({"charts": {"x": {"sources": ["joined"]}}}, "charts: x: sources: unknown name joined"),
        ({"charts": {"x": {"sources": ["en"], "init_from": "de"}}}, "charts: x: init_from: unknown name de"),
        (
            {"charts": {"x": {"build_charts": {"select": 1}, "init_from": "de"}}},
            "of selected sources the best one",
        ),
        ({"charts": {"x": {"sources": ["en"], "weights": "learned"}}}, "x: learned weights exclude sources"),
        ({"methods": {"x": {}}}, "methods: x: missing charts"),
        ({"targets": {"x": {"text": None, "test": "y"}}}, "targets: x: missing text"),
        ({"methods": {"x": {"charts": "pool", "trials": 2}}}, "x: found 2 trials of {}; expected both"),
        ({"methods": {"x": {"charts": "pool", "search": {"l2": [1, 2]}}}}, "x: found 0 trials"),
        ({"methods": {"x": SEARCH | {"search": {"l2": [0, 1]}}}}, r"l2: found [0, 1]; expected [LOW, HIGH]"),
        ({"methods": {"x": SEARCH | {"search": {"l2": [2, 1]}}}}, r"l2: found [2, 1]"),
        ({"methods": {"x": SEARCH | {"search": {"l2": [2]}}}}, r"l2: found [2]"),
        ({"methods": {"x": {"charts": "wide"}}}, "methods: x: charts: unknown name wide"),
        ({"methods": {"x": {"charts": "pool", "init_from": "mean"}}}, "expected one of average, scratch"),
        ({"methods": {"x": {"charts": "pool", "targets": ["sv"]}}}, "targets: unknown name sv"),
        ({"methods": {"x": {"charts": "pool", "transfer": {"sigm": 1}}}}, "did you mean sigma"),
    ],
)
def test_errors_name_the_entry(write, changes, message):
    path = write(changes)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_study(path)


def test_a_file_may_contain_only_the_difference_to_another(write, tmp_path):
    write()
    changes = """
    base: small.yaml
    without: [labelled]
    sources: {de: {init_from: null, split: 'train[:9]'}, joined: null}
    targets: [fo]
    """
    (tmp_path / "other.yaml").write_text(changes)
    study = read_study(tmp_path / "other.yaml")
    assert (study.name, study.labelled, list(study.targets), list(study.sources)) == (
        "other",
        0,
        ["fo"],
        ["en", "de"],
    )
    assert (study.sources["de"].init_from, study.sources["de"].split) == (None, "train[:9]")
    for text, message in [
        ("base: small.yaml\nwithout: [labeled]", "without: unknown name labeled; did you mean labelled"),
        ("base: small.yaml\ntargets: [sv]", "targets: unknown name sv"),
        ("base: small.yaml\ntargets: {sv: null}", "targets: unknown name sv"),
        ("base: more.yaml", "base is a cycle: more.yaml -> more.yaml"),
        ("base: none.yaml", "none.yaml does not exist"),
        ("sources: [", "invalid YAML"),
        ("- en", "expected entries such as sources"),
        ("sources: {../../../victim: {train: x}}", "found the name '../../../victim'; expected letters"),
        ("targets: {a/b: {text: x, test: x}}", "targets: found the name 'a/b'"),
        ("methods: {.hidden: {charts: pool}}", "methods: found the name '.hidden'"),
        ("encoders: {'a b; rm': {vectors: x}}", "encoders: found the name 'a b; rm'"),
    ]:
        (tmp_path / "more.yaml").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_study(tmp_path / "more.yaml")


def test_language_codes_stay_text(tmp_path):
    (tmp_path / "a.yaml").write_text("no: {on: off, yes: true, n: 1, rate: 1.0e-4}")
    assert read_config(tmp_path / "a.yaml") == {"no": {"on": "off", "yes": True, "n": 1, "rate": 1e-4}}


def test_trials_of_a_search_are_drawn_log_uniformly_from_their_number(write):
    ranges = {"learning_rate": [1e-6, 1e-3], "l2": [1e-4, 10.0]}
    search = {"charts": "pool", "trials": 200, "search": ranges, "transfer": {"max_steps": 3}}
    methods = read_study(write({"methods": {"pool-search": search}, "paper_methods": False})).methods
    assert list(methods)[:2] == ["pool-search:trial=1", "pool-search:trial=2"]
    assert len(methods) == 200
    assert methods == read_study(write({"methods": {"pool-search": search}, "paper_methods": False})).methods
    assert all(method.transfer["max_steps"] == 3 for method in methods.values())
    for option, (low, high) in ranges.items():
        logs = [math.log10(method.transfer[option]) for method in methods.values()]
        assert math.log10(low) <= min(logs)
        assert max(logs) <= math.log10(high)
        middle = (math.log10(low) + math.log10(high)) / 2
        assert 70 < sum(each < middle for each in logs) < 130

"""A whole study in small: invented languages, every kind of cell, and the published configurations."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from hf_xst.charts.dataset import PROVENANCE
from hf_xst.commands.demo import TARGET, write_languages
from hf_xst.experiments.block_cells import ANALYSIS_VERSION, BlockCells
from hf_xst.experiments.cells import CODE_VERSION, Graph, read_records
from hf_xst.experiments.report import main_scores, write_report
from hf_xst.experiments.study import Study, read_study

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.yaml"))
WIDE = {"build": {"sigma": 0.999, "keep_log_probs": True}}
MIX = {"charts": "wide", "transfer": {"soft": 0.5, "best": "pool", "sigma": 0.9}}


def small_study(data: Path, names: list[str], **changes) -> Study:
    loop = {"batch_size": 8, "updates": 2}
    tiny = ["context_layers=1", "attention_heads=2", "word_dropout=0.0"]
    train = {**loop, "model": tiny, "patience": 1, "plateau": 1, "learning_rate": 1e-3}
    first, second = names[:2]
    parts = {"text": f"{first}-train.conllu", "dev": f"{first}-dev.conllu", "test": f"{first}-dev.conllu"}
    settings = {
        "sources": {name: {"train": f"{name}-train.conllu"} for name in names}
        | {"both": {"train": [f"{second}-train.conllu"], "pool": False, "languages": [first]}},
        "targets": {
            first: {**parts, "text_split": "text[:8]", "dev_split": "dev[:6]", "test_split": "test[6:12]"},
            "other": {key: value.replace(first, second) for key, value in parts.items()}
            | {"text_split": "text[:8]", "dev_split": "dev[:6]", "test_split": "test[6:12]"},
        },
        "encoders": {
            "A": {
                "vectors": "demo.{code}.vec",
                "train_source": train,
                "transfer": {**loop, "eval_every": 2, "learning_rate": 1e-3, "trainer": ["save_strategy=no"]},
            }
        },
        "tasks": {"tagger": {}, "parser": {"train_source": {"model": ["arc_size=8", "label_size=4"]}}},
        "start": second,
        "rules": ["majority", "pool", "published", "linear", "grouped", "truth"],
        "labelled": 3,
        "describe": True,
        "charts": {"wide": WIDE, "learned": {"weights": "learned"}},
        "methods": {"mix": MIX},
        "data": data,
    }
    return Study(**{**settings, **changes})


@pytest.fixture(scope="module")
def languages(tmp_path_factory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("languages")
    write_languages(folder, 24, 3)
    names = sorted(path.name.partition("-")[0] for path in folder.glob("*-train.conllu"))
    names = [name for name in names if name != TARGET][:3]
    for name in ("both", "other"):  # both are the second language
        shutil.copy(folder / f"demo.{names[1]}.vec", folder / f"demo.{name}.vec")
    return folder, names


def test_a_study_of_two_targets_runs_and_reports(tmp_path, languages):
    data, names = languages
    study = small_study(
        data,
        names,
        tasks={"tagger": {}},
        published=False,
        charts={"wide": WIDE, "as-published": {"weights": "published"}},
        methods={"mix": MIX, "as-published": {"targets": [names[0]]}},
    )
    graph = Graph(study.cells(), tmp_path)
    results = graph.run()
    first = names[0]
    assert f"A/tagger/{first}/transferred/mix/42" in results
    provenance = json.loads((graph.work(f"A/tagger/{first}/charts/as-published") / PROVENANCE).read_text())
    assert provenance["weights"] == pytest.approx(results[f"A/tagger/{first}/weights"]["published"])
    # A language is never pooled from its own source, and what knows it is not scored on it.
    ensemble = results[f"A/tagger/{first}/ensemble"]
    assert f"direct {first}" not in ensemble["test"]
    assert "direct both" not in ensemble["test"]
    assert "direct both" in results["A/tagger/other/ensemble"]["test"]
    combined = {"majority", "pool", "linear", "truth", "pool learned", "pool published", "grouped"}
    assert combined <= set(ensemble["test"])
    scores = main_scores(read_records(tmp_path))
    assert set(scores) == {("A", "tagger", first), ("A", "tagger", "other")}
    about = {"title": "small", "command": "hf-xst reproduce", "marks": study.marks}
    page = write_report(read_records(tmp_path), tmp_path / "report", about, data)
    assert str(data) not in page.read_text(encoding="utf-8")
    assert graph.to_make() == []


def test_a_study_of_parsers_by_the_published_methods(tmp_path, languages):
    data, names = languages
    study = small_study(
        data,
        names,
        tasks={"parser": small_study(data, names).tasks["parser"]},
        targets={"other": _target(names[1])},
        labelled=0,
        describe=False,
        rules=["majority", "pool"],
        charts={},
        methods={},
    )
    results = Graph(study.cells(), tmp_path).run()
    where = "A/parser/other"
    assert {f"{where}/transferred/{name}/42" for name in ("union", "pool")} <= set(results)
    for name in ("union", "pool"):
        assert 0 <= results[f"{where}/transferred/{name}/42"]["test"]["las"] <= 100
    union, pool = (results[f"{where}/charts/{name}"] for name in ("union", "pool"))
    assert union["rule"] == "union"
    assert pool["rule"] == "pool"


def test_only_what_pools_chains_has_another_version(tmp_path, languages):
    data, names = languages
    graph = Graph(small_study(data, names).cells(), tmp_path)
    newer = {name for name, cell in graph.cells.items() if cell.version != CODE_VERSION}
    analyses = {name for name in graph.cells if name.endswith("/analysis")}
    assert {graph.cells[name].version for name in analyses} == {ANALYSIS_VERSION}
    newer -= {name for name in analyses if "/parser/" in name}
    kinds = {tuple(name.split("/")[3:]) for name in newer}
    assert {name.split("/")[1] for name in newer} == {"tagger"}
    assert kinds == {("weights",), ("ensemble",), ("analysis",)} | {
        ("charts", name) for name in ("union", "pool", "wide")
    }


@pytest.mark.slow
def test_parsers_may_read_the_tags_of_transferred_taggers_and_sources_may_be_chosen(tmp_path, languages):
    data, names = languages
    study = small_study(data, names, upos="mix", select=1, targets={names[0]: _target(names[0])})
    results = Graph(study.cells(), tmp_path).run()
    where = f"A/parser/{names[0]}"
    assert len(results[f"{where}/selection"]["chosen"]) == 1
    # Sources that were not chosen are scored, too.
    direct = {name for name in results[f"{where}/ensemble"]["test"] if name.startswith("direct ")}
    assert direct == {f"direct {name}" for name in names[1:]}
    charts = results[f"{where}/charts/pool"]
    assert charts["start"] == results[f"{where}/selection"]["chosen"][0]
    assert results[f"{where}/transferred/pool/42"]["start"] == charts["start"]


@pytest.mark.slow
def test_a_plan_may_choose_and_weigh_sources_and_start_without_labels(tmp_path, languages):
    data, names = languages
    plans = {"two": {"select": 2, "start": "best", "weights": "agreement", **WIDE}}
    study = small_study(
        data,
        names,
        tasks={"tagger": {}},
        published=False,
        labelled=0,
        describe=False,
        rules=["pool"],
        targets={"other": _target(names[1])},
        charts=plans,
        methods={"two": {}},
    )
    results = Graph(study.cells(), tmp_path).run()
    order = results["A/tagger/other/selection"]["chosen"]
    assert len(order) == 3
    assert results["A/tagger/other/charts/two"]["start"] == order[0]
    provenance = json.loads((tmp_path / "work/A/tagger/other/charts/two/provenance.json").read_text())
    assert [source["name"] for source in provenance["sources"]] == [
        name for name in names if name in order[:2]
    ]
    assert set(provenance["weights"]) == set(order[:2])
    assert sum(provenance["weights"].values()) == pytest.approx(1)


@pytest.mark.slow
def test_sources_may_start_from_one_of_them_and_training_from_their_mean(tmp_path, languages):
    data, names = languages
    first, *others = names
    sources = {first: {"train": f"{first}-train.conllu"}} | {
        name: {"train": f"{name}-train.conllu", "start": first} for name in others
    }
    study = small_study(
        data,
        names,
        tasks={"tagger": {}},
        published=False,
        labelled=0,
        describe=False,
        rules=["pool", "mean"],
        start=first,
        sources=sources,
        targets={"other": _target(names[1])},
        methods={"mean": {"charts": "wide", "start": "mean"}},
    )
    results = Graph(study.cells(), tmp_path).run()
    assert set(results["A/tagger/other/ensemble"]["test"]) == {
        *(f"direct {n}" for n in names),
        "pool",
        "mean",
    }
    assert results["A/tagger/other/transferred/mean/42"]["start"] == "mean"
    given = yaml.safe_load((tmp_path / f"work/A/tagger/source/{others[0]}/run/config.yaml").read_text())
    assert given["start"].endswith(f"A/tagger/source/{first}")
    assert small_study(data, names, sources=dict(reversed(sources.items()))).sources_by_start()[0] == first
    around = {first: {**sources[first], "start": others[0]}}
    with pytest.raises(
        ValueError, match=f"{others[0]} is to start from '{first}'; expected one of {others[1]}"
    ):
        small_study(data, names, sources=sources | around)
    with pytest.raises(ValueError, match="methods: mean: found the start 'best'; expected mean"):
        small_study(data, names, methods={"mean": {"charts": "wide", "start": "best"}})


def _target(name: str) -> dict[str, str]:
    parts = {"text": f"{name}-train.conllu", "dev": f"{name}-dev.conllu", "test": f"{name}-dev.conllu"}
    return {**parts, "text_split": "text[:8]", "dev_split": "dev[:6]", "test_split": "test[6:12]"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_published_configurations_say_what_a_study_knows(path):
    study = read_study(path)
    assert study.plans
    assert study.all_methods
    assert study.start in study.sources


@pytest.mark.real
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_published_configurations_find_their_files(path, shared, tmp_path):
    data = shared("paper", "results.json").parent.parent
    study = read_study(path, data)
    names = list(Graph(study.cells(), tmp_path).cells)
    assert len(names) > 20


def test_plans_of_sources_leave_the_targets_own_out(languages, tmp_path):
    data, names = languages
    first, second, third = names
    study = small_study(
        data, names, charts={"two": {"sources": [first, third]}, "own": {"sources": [first]}}, methods={}
    )
    block = BlockCells(study, "A", "tagger")
    assert block.planned(first, "two", {}) == [third]
    assert block.planned("other", "two", {}) == [first, third]
    with pytest.raises(ValueError, match=f"charts: own: found the sources {first}; none .* for {first}"):
        block.planned(first, "own", {})
    assert block.planned(first, "union", {}) == [second, third]


def test_what_a_cell_depends_on_is_in_its_key(languages, tmp_path):
    data, names = languages

    def keys(**changes):
        return Graph(small_study(data, names, methods={}, charts={}, **changes).cells(), tmp_path).keys

    plain, grouped = keys(rules=["pool"]), keys(rules=["pool", "grouped"])
    name = f"A/tagger/{names[0]}/weights"
    assert plain[name] != grouped[name]
    assert plain[f"A/tagger/{names[0]}/charts/pool"] == grouped[f"A/tagger/{names[0]}/charts/pool"]


def test_parsers_may_be_scored_on_gold_where_others_read_predicted_tags(languages):
    data, names = languages
    study = small_study(data, names, upos="pool")
    block = BlockCells(study, "A", "parser")
    assert block.annotator(None) == "pool"
    assert block.annotator("gold") is None
    assert block.annotator_cells(names[0], "gold") == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": {"en": {}}}, "sources: en: there is no train"),
        ({"targets": {"it": {"dev": "x"}}}, "targets: it: there is no text and no test"),
        ({"targets": ["it"]}, r"targets: found \['it'\]; expected names with their settings"),
        ({"charts": {"wide": {"sources": ["xx"]}}}, "charts: wide: there is no source xx; there are "),
        ({"rules": "majority"}, "rules: found 'majority'; expected a list"),
        ({"labelled": "many"}, "labelled: found 'many'; expected a number of sentences"),
        ({"targets": {False: {"text": "x", "test": "y"}}}, "targets: found the name False; quote it"),
        (
            {"methods": {"mix": {"charts": "wide", "transfer": {"start": "mean"}}}},
            "methods: mix: transfer: start is filled in by the study",
        ),
        (
            {"tasks": {"tagger": {"transfer": {"updates": "drei"}}}},
            "tagger: transfer: updates: found 'drei'; expected a number",
        ),
        ({"seeds": []}, r"seeds: found \[\]; expected a list"),
        ({"rules": ["majorty"]}, r"rules: there is no majorty; is majority meant\?"),
        ({"labelled": 0, "rules": ["published"]}, "rules: published takes weights from labelled sentences"),
        (
            {"labelled": 0, "rules": [], "methods": {"learned": {}}},
            "methods: learned: its charts take weights",
        ),
        ({"start": "xx"}, "start: there is no xx; there are "),
        ({"select": 0}, "select: found 0; expected a number of sources"),
        ({"upos": "mx"}, r"upos: there is no mx; is mix meant\?"),
        ({"charts": {"wide": {"rule": "poool"}}}, r"charts: wide: rule: there is no poool; is pool meant\?"),
        (
            {"charts": {"wide": {"weights": "learnt"}}},
            r"wide: weights: there is no learnt; is learned meant\?",
        ),
        ({"charts": {"wide": {"start": "bst"}}}, r"charts: wide: start: there is no bst; is best meant\?"),
        (
            {"methods": {"mix": {"charts": "wide", "tasks": ["parsr"]}}},
            r"mix: tasks: there is no parsr; is pars",
        ),
        (
            {"methods": {"mix": {"charts": "wide", "targets": ["xx"]}}},
            "mix: targets: there is no xx; there are",
        ),
        ({"tasks": {"parser": None}}, "tasks: parser: found None; expected settings, {} for none"),
    ],
)
def test_what_is_missing_is_told(languages, changes, message):
    with pytest.raises(ValueError, match=message):
        small_study(*languages, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoders": {"A": {}}}, "encoders: A: found neither of vectors and encoder; expected one"),
        ({"encoders": {"A": {"vectors": "x", "encoder": "y"}}}, "encoders: A: found both of vectors"),
        ({"encoders": {"A": {"vectors": "x.{cod}.vec"}}}, "found 'x.{cod}.vec'; expected a file name"),
        (
            {"targets": {"it": {"text": "x", "test": "y"}}},
            "targets: it: there is no dev, .* or say labelled: 0",
        ),
    ],
)
def test_what_cells_cannot_be_made_of_is_told_before_the_first(languages, changes, message):
    study = small_study(*languages, **changes)
    with pytest.raises(ValueError, match=message):
        next(study.cells())


def test_wrong_names_are_told(languages):
    data, names = languages
    with pytest.raises(ValueError, match=r"wants the charts 'narrow'; there are union, pool"):
        small_study(data, names, methods={"narrow": {}})
    with pytest.raises(ValueError, match=r"methods: mix: there is no stat; is start meant\?"):
        small_study(data, names, methods={"mix": {"charts": "wide", "stat": 1}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"targets": {"it": {"text": "x", "dev": "x", "test": "y", "test_splitt": "test[60%:]"}}},
            r"targets: it: there is no test_splitt; is test_split meant\?",
        ),
        (
            {"encoders": {"A": {"vectors": "x", "trasnfer": {"updates": 7}}}},
            r"encoders: A: there is no trasnfer; is transfer meant\?",
        ),
        ({"tasks": {"taggre": {}}}, r"tasks: there is no taggre; is tagger meant\?"),
        (
            {"tasks": {"tagger": {"transfer": {"updtes": 2}}}},
            r"transfer: there is no updtes; is updates",
        ),
        (
            {"encoders": {"A": {"tagger": {"train_source": {"batch_siez": 2}}}}},
            r"A: tagger: train_source: there is no batch_siez; is batch_size meant\?",
        ),
        (
            {"encoders": {"A": {"transfer": {"pool": {"epoch": 2}}}}},
            r"A: transfer: pool: there is no epoch; is epochs meant\?",
        ),
        (
            {"charts": {"wide": {"build": {"sigm": 0.5}}}},
            r"wide: build: there is no sigm; is sigma",
        ),
        (
            {"methods": {"pool": {"transfer": {"bestt": "pool"}}}},
            r"methods: pool: transfer: there is no bestt; is best meant\?",
        ),
    ],
)
def test_a_misspelt_setting_is_told_before_anything_is_made(languages, change, message):
    data, names = languages
    with pytest.raises(ValueError, match=message):
        small_study(data, names, **change)

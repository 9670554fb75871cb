"""Reports are made of cells' JSON alone, beside the published numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helpers import canned_cells as canned
from helpers.canned_cells import ABOUT, Records, ensemble, record, scored, study, trained
from hf_xst.data.folders import DISTANT, NEARBY
from hf_xst.experiments.published import published
from hf_xst.experiments.report import METHODS, main_scores, write_report
from hf_xst.experiments.report.csv_tables import table_csv
from hf_xst.experiments.report.html import page_html
from hf_xst.experiments.report.latex import escape
from hf_xst.experiments.report.markdown import page_markdown
from hf_xst.experiments.report.page import make_page
from hf_xst.experiments.report.reading import Results

VOID = {"meta", "br"}
DATA = Path("/somewhere/data")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the canned study."""
    return write_report(study(), tmp_path_factory.mktemp("report"), ABOUT, DATA).parent


def markdown_table(folder: Path, title: str) -> list[str]:
    """The lines of a table of README.md."""
    part = (folder / "README.md").read_text(encoding="utf-8").split(f"### {title}\n")[1].split("\n#")[0]
    return [line for line in part.splitlines() if line.startswith("|")]


def tables_of(records: Records, **about: object) -> dict[str, list[dict[str, str]]]:
    """All tables of a report as CSV rows."""
    page = make_page(Results(records), about)
    return {table.name: list(csv.DictReader(io.StringIO(table_csv(table)))) for table in page.tables}


def numbers(row: dict[str, str], *columns: str) -> list[float]:
    return [float(row[column]) for column in columns]


GOLDEN = {
    "Parsing, encoder B, test files": """
| target | language | seeds | ours: majority vote | ours: PPTX | ours: pooled | ours: pool as it stands \
| paper: majority vote | paper: PPTX | paper: pooled | paper: pooled, learned weights \
| ours less paper: majority vote | ours less paper: PPTX | ours less paper: pooled |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| *distant* |  |  |  |  |  |  |  |  |  |  |  |  |  |
| fa | Persian | 3 | 43.0 | 42.0 ± 0.0 | **45.0** ± 1.0 | 44.0 | 43.7 | 42.5 ± 1.0 | 49.4 ± 0.4 | 48.8 ± 0.3 \
| -0.7 | -0.5 | -4.4 |
| ar<sup>1</sup> | Arabic | 1 | 30.0 | 29.0 | **32.0** | 31.0 | 37.3 | 35.5 ± 0.5 | 37.3 ± 0.5 | 37.2 ± 0.6 \
| -7.3 | -6.5 | -5.3 |
| hi<sup>1</sup> | Hindi | 1 | 20.0 | 19.0 |  | **21.0** | 21.1 | 23.0 ± 0.5 | 21.7 ± 0.2 | 26.4 ± 0.3 \
| -1.1 | -4.0 |  |
| *nearby* |  |  |  |  |  |  |  |  |  |  |  |  |  |
| it | Italian | 3 | 75.0 | 75.0 ± 1.0 | **78.0** ± 1.0 | 76.5 | 81.7 | 80.2 ± 0.1 | 81.4 ± 0.2 | 81.4 ± 0.3 \
| -6.7 | -5.2 | -3.4 |
| *averages* |  |  |  |  |  |  |  |  |  |  |  |  |  |
| all | average of 3 |  | 49.3 | 48.7 | **51.7** | 50.5 | 54.2 | 52.7 | 56.0 | 55.8 | -4.9 | -4.1 | -4.4 |
| published test files | average of 2 |  | 59.0 | 58.5 ± 0.5 | **61.5** ± 0.5 | 60.2 | 62.7 | 61.4 | 65.4 \
| 65.1 | -3.7 | -2.9 | -3.9 |
| distant | average of 2 |  | 36.5 | 35.5 | **38.5** | 37.5 | 40.5 | 39.0 | 43.3 | 43.0 | -4.0 | -3.5 | -4.8 |
| nearby | average of 1 |  | 75.0 | 75.0 ± 1.0 | **78.0** ± 1.0 | 76.5 | 81.7 | 80.2 | 81.4 | 81.4 \
| -6.7 | -5.2 | -3.4 |""",
    "Targets on which one trained model beats majority vote": """
| encoder | task | group | ours: PPTX | ours: pooled | paper, same targets: PPTX \
| paper, same targets: pooled | paper, same targets: pooled, learned weights |
| --- | --- | --- | --- | --- | --- | --- | --- |
| B | parser | all | 0 of 4 | 3 of 3 | 1 of 4 | 2 of 4 | 2 of 4 |
| B | parser | published test files | 0 of 2 | 2 of 2 | 0 of 2 | 1 of 2 | 1 of 2 |""",
    "Parsing, encoder B, targets not in the paper": """
| target | language | seeds | majority vote | pooled | pool as it stands | direct transfer from: en \
| direct transfer from: fr | direct transfer from: de |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
| fo | Faroese | 1 | 55.0 | **57.2** | 56.0 | 50.0 | 40.0 | 45.0 |
| all | average of 1 |  | 55.0 | **57.2** | 56.0 |  |  |  |""",
    "Parsing, encoder B: source models on their own languages": """
| source | training sentences | ours: dev | ours: test | paper: test |
| --- | ---: | ---: | ---: | ---: |
| en | 4,000 | 80.0 | 81.3 | 86.9 |
| fr | 4,000 | 75.0 |  | 89.1 |
| de<sup>1</sup> | 4,000 | 70.0 |  | 82.1 |
| joint |  | 82.0 |  |  |""",
    "Parsing, encoder B: size of charts": """
| target | ours: PPTX | ours: pooled | ours: pooled/PPTX, % | paper: PPTX | paper: pooled/PPTX, % |
| --- | ---: | ---: | ---: | ---: | ---: |
| fa | 1.0e6 | 1.5e3 | 0.15 | 1.6e12 | 0.0011 |
| ar<sup>1</sup> | 1.0e6 | 1.5e3 | 0.15 |  |  |
| it | 1.0e6 | 1.5e3 | 0.15 | 4.5e6 | 0.069 |""",
    "Parsing, encoder B: learned weights": """
| target | sentences | exact optimum: en | exact optimum: fr | exact optimum: de | published procedure: en \
| published procedure: fr | published procedure: de | NLL: uniform | NLL: learned | NLL: published |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| it | 50 | 0.50 | 0.50 | 0.00 | 0.34 | 0.34 | 0.32 | 1.500 | 1.250 | 1.438 |""",
    "Parsing, encoder B: other ways to combine sources": """
| target | best source (oracle) | majority vote | pool as it stands | pooled | soft distillation |
| --- | ---: | ---: | ---: | ---: | ---: |
| it | 70.0 | 75.0 | 76.5 | 78.0 ± 1.0 | **79.5** |
| *averages* |  |  |  |  |  |
| average of 1 |  | 75.0 | 76.5 | 78.0 ± 1.0 | **79.5** |""",
    "Parsing, encoder B: by sigma": """
| target | sigma: 0.5 | sigma: 0.95 | sigma: all | for comparison: majority vote \
| for comparison: pooled, as set |
| --- | ---: | ---: | ---: | ---: | ---: |
| it | 76.0 | **78.0** | 77.0 | 75.0 | 78.0 ± 1.0 |""",
    "Parsing, encoder B: development scores by update": """
| target | method | 100 | 200 |
| --- | --- | ---: | ---: |
| it | soft distillation | 70.0 | 72.0 |""",
    "Time": """
| encoder | task | kind of cell | cells | minutes a cell | minutes |
| --- | --- | --- | ---: | ---: | ---: |
| B | parser | ablation | 3 | 0.5 | 1.5 |
| B | parser | analysis | 3 | 0.5 | 1.5 |
| B | parser | charts | 1 | 1.5 | 1.5 |
| B | parser | ensemble | 5 | 0.5 | 2.5 |
| B | parser | source | 4 | 0.5 | 2.0 |
| B | parser | transferred | 17 | 0.5 | 8.5 |
| B | parser | weights | 1 | 0.5 | 0.5 |
| all |  |  | 34 |  | 18.0 |""",
}


@pytest.mark.parametrize("title", GOLDEN)
def test_a_table_of_the_canned_study_is_as_expected(folder, title):
    assert markdown_table(folder, title) == GOLDEN[title].strip().splitlines()


def test_the_published_averages_are_the_means_over_all_targets():
    targets = [*DISTANT, *NEARBY]
    for task, averages in published().averages.items():
        for method, average in zip(published().methods, averages, strict=True):
            if average is not None:
                assert published().average("test", task, targets, method) == pytest.approx(average, abs=0.02)


@pytest.mark.real
def test_the_published_numbers_are_those_of_the_shared_file(shared):
    given = json.loads(shared("paper", "results.json").read_text(encoding="utf-8"))
    names = dict(
        zip(published().methods, ("majority_vote", "pptx", "lop_uniform", "lop_learned"), strict=True)
    )
    metrics = {"parser": "parsing_las", "tagger": "tagging_accuracy"}
    for part, task, target in ((p, t, c) for p in ("dev", "test") for t in metrics for c in given["test"]):
        for method, name in names.items():
            found = given[part][target][metrics[task]][name]
            assert published().score(part, task, target, method) == (found["mean"], found.get("std"))
    for task, metric in metrics.items():
        assert published().sources[task] == given["source_models"][metric]


def test_averages_are_over_the_targets_that_all_methods_have():
    records = scored("it", [], 70.0, 71.0, union=[72.0], pool=[74.0])
    records |= scored("fr", [], 60.0, 61.0, union=[62.0])
    rows = tables_of(records)["scores-test-B-parser"]
    assert [(row["target"], row["language"]) for row in rows] == [
        ("it", "Italian"),
        ("fr", "French"),
        ("all", "average of 1"),
        ("nearby", "average of 1"),
    ]
    assert numbers(rows[2], "ours: pooled", "paper: pooled") == [74.0, 81.4]


def test_an_average_has_the_deviation_of_seeds_that_all_targets_share():
    records = scored("it", [], 70.0, 71.0, pool=[70.0, 74.0])
    records |= scored("fr", [], 60.0, 61.0, pool=[60.0, 60.0])
    average = tables_of(records)["averages"][0]
    assert numbers(average, "ours: pooled", "ours: pooled, std") == [66.0, pytest.approx(2**0.5, abs=1e-5)]


def test_a_single_seed_has_no_deviation():
    rows = tables_of(scored("it", [], 70.0, 71.0, pool=[74.0]))["scores-test-B-parser"]
    assert rows[0]["seeds"] == "1"
    assert "ours: pooled, std" not in rows[0]


def test_every_cell_of_a_study_alone_gives_a_report():
    for name, each in study().items():
        page = make_page(Results({name: each}), {})
        for text in (page_markdown(page, (), ""), page_html(page, {}, "")):
            assert "What each kind of cell took" in text, name


def test_every_study_that_lacks_a_cell_gives_the_other_tables():
    whole = set(tables_of(study()))
    for name in study():
        found = set(tables_of({other: each for other, each in study().items() if other != name}))
        assert found <= whole, name
        assert len(whole - found) <= 2, name  # of soft distillation there are scores and a curve


def test_differences_to_majority_vote_keep_the_deviation():
    rows = tables_of(study())["differences-B-parser"]
    fa = rows[0]
    assert numbers(fa, "ours: majority vote", "ours: pooled", "ours: pooled, std") == [43.0, 2.0, 1.0]
    assert numbers(fa, "paper: pooled") == [pytest.approx(5.7)]
    assert [row["target"] for row in rows] == ["fa", "ar", "hi", "it", "fo"]


def test_chart_quality_stands_beside_the_published():
    fa, ar, _ = tables_of(study())["chart-quality-B-parser"]
    ours = numbers(fa, "PPTX: P", "pooled: R", "pooled less PPTX: P", "pooled less PPTX: score")
    assert ours == pytest.approx([10.0, 95.0, 15.0, 3.0])
    theirs = [f"paper pooled less PPTX: {which}" for which in ("P", "R", "score")]
    assert numbers(fa, *theirs) == pytest.approx([7.0, 5.1, 6.9], abs=0.001)
    assert ar["paper PPTX: P"] == ""


def test_a_taggers_chart_quality_is_given_with_and_without_boundaries():
    found = canned.analysis(canned.quality(0.1, 0.9, 10), canned.quality(0.2, 0.95, 5), 1.0)
    tables = tables_of({"B/tagger/fa/analysis": record(found)})
    assert numbers(tables["chart-quality-B-tagger"][0], "PPTX: R", "paper PPTX: R") == [90.0, 79.5]
    inside = tables["chart-quality-B-tagger-inside"][0]
    assert numbers(inside, "PPTX: R") == [89.0]
    assert "paper PPTX: R" not in inside


def test_the_correlation_of_distance_and_gain_stands_beside_the_published():
    kl = tables_of(study())["correlation"][0]
    # x 2, 1.25, 0.5 and y 2, 2, 3: covariance -0.75 over the root of 1.125 times 2/3.
    assert float(kl["ours: r"]) == pytest.approx(-0.75 / (1.125 * 2 / 3) ** 0.5, abs=1e-5)
    assert numbers(kl, "ours: languages", "paper: r", "paper: p") == [3, -0.45, 0.06]


def test_sources_are_ordered_by_label_free_measures():
    rows = tables_of(study())["selection-B-parser"]
    assert [(row["target"], row["first by agreement: chosen"]) for row in rows[:3]] == [
        ("fa", "fr"),
        ("ar", "fr"),
        ("it", "fr"),
    ]
    assert [float(row["rank correlation by: agreement"]) for row in rows[:3]] == [0.5, -1.0, 1.0]
    assert rows[3]["target"] == "mean of 3"
    assert numbers(rows[3], "rank correlation by: agreement", "first by agreement: lost") == [
        pytest.approx(1 / 6, abs=1e-5),
        5.0,
    ]


def test_weights_are_read_from_both_forms_of_the_cell():
    plain = tables_of(study())["weights-B-parser"][0]
    assert numbers(plain, "exact optimum: fr", "published procedure: de") == [0.5, 0.32]
    weights = {"learned": {"en": 1.0}, "weights": {"en": 0.5}, "published": {"en": 0.25}}
    optimum = {"optimum": weights | {"nll": {"uniform": 2.0}}, "published": {}}
    nested = study() | {"B/parser/it/weights": record(optimum)}
    row = tables_of(nested)["weights-B-parser"][0]
    assert numbers(row, "exact optimum: en", "published procedure: en", "NLL: uniform") == [1.0, 0.25, 2.0]


def test_encoders_stand_beside_each_other():
    records = scored("it", [], 70.0, 71.0, pool=[74.0]) | scored("fr", [], 60.0, 61.0)
    records |= {name.replace("B/", "A/", 1): each for name, each in scored("it", [], 65.0, 66.0).items()}
    (row,) = tables_of(records)["encoders-parser"]
    assert row["target"] == "it"
    assert numbers(row, "majority vote: A", "majority vote: B", "pooled: B") == [65.0, 70.0, 74.0]


def test_cells_without_parts_and_seeds_are_test_scores():
    records = {
        "A/parser/id/ensemble": record({"data": "x", "majority": canned.las(55.0)}),
        "A/parser/id/transferred/pool": record(trained(57.0), seed=42),
    }
    row = tables_of(records)["scores-test-A-parser"][0]
    assert numbers(row, "ours: majority vote", "ours: pooled") == [55.0, 57.0]


def test_main_scores_are_means_over_seeds_by_encoder_task_and_target():
    scores = main_scores(study())
    it = scores["B", "parser", "it"]
    assert [it[method] for method in METHODS] == [75.0, 76.5, 75.0, 78.0]
    assert it["direct fr"] == 70.0
    assert "transferred/pool" not in scores["B", "parser", "hi"]


def test_models_beside_the_pool_are_comparators():
    records = {
        "B/parser/source/en": record({}, given={}),
        "B/parser/source/joint": record({}, given={"pool": False}),
        "B/parser/it/ensemble": record(ensemble({"direct en": 60.0, "direct joint": 85.0, "majority": 70.0})),
    }
    tables = tables_of(records)
    assert "direct transfer from: joint" not in tables["direct-B-parser"][0]
    assert numbers(tables["comparators-B-parser"][0], "joint", "best source (oracle)") == [85.0, 60.0]


def test_marks_are_footnotes_in_every_format(folder):
    text = ABOUT["marks"]["ar"]
    assert f"<sup>1</sup> {text}" in (folder / "README.md").read_text(encoding="utf-8")
    assert f"<sup>1</sup> {text}" in (folder / "index.html").read_text(encoding="utf-8")
    text_of_rows = (folder / "csv" / "scores-test-B-parser.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text_of_rows)))
    assert [row["note"] for row in rows[:3]] == ["", text, text]
    latex = (folder / "latex" / "scores-test-B-parser.tex").read_text(encoding="utf-8")
    assert r"ar\textsuperscript{1} & Arabic" in latex
    assert r"\textsuperscript{1} PUD\_1 in place of PADT, 100 \% test" in latex


def test_latex_tables_are_rectangular_and_escaped(folder):
    for path in sorted((folder / "latex").glob("*.tex")):
        text = path.read_text(encoding="utf-8")
        body = text.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
        width = len(re.search(r"\\begin\{tabular\}\{@\{\}(\w+)@\{\}\}", text)[1])
        lines = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert lines, path
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {width}, path
        for special in "%#_":
            assert not re.search(rf"(?<!\\){special}", body), (path, special)
        assert text.count("{") == text.count("}"), path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % of a_b & c#", r"50 \% of a\_b \& c\#"),
        ("{x} $ ~ ^ \\", r"\{x\} \$ \textasciitilde{} \textasciicircum{} \textbackslash{}"),
        ("a < b | c ± d – e", r"a \textless{} b \textbar{} c $\pm$ d -- e"),
    ],
)
def test_latex_escapes(text, expected):
    assert escape(text) == expected


class Balanced(HTMLParser):
    """Checks that every element is closed where it was opened, and collects ids and references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "xlink:href", "src")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()


def test_the_page_is_balanced_and_needs_no_other_file(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = Balanced()
    page.feed(text)
    page.close()
    assert page.open == []
    assert [name for name, times in Counter(page.ids).items() if times > 1] == []
    assert {link for link in page.links if not link.startswith("#")} == set()
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(page.ids)
    assert "<h1>Canned &amp; &lt;made up&gt;</h1>" in text
    assert "prefers-color-scheme: dark" in text
    assert '<td class="number first">43.0</td>' in text
    assert "<b>45.0</b>" in text
    assert ">−0.7<" in text


def test_the_same_cells_give_the_same_bytes_in_any_order(folder, tmp_path):
    backwards = dict(reversed(study().items()))
    write_report(backwards, tmp_path, ABOUT, DATA)
    assert contents(tmp_path) == contents(folder)


def test_results_json_gives_the_same_report_and_no_local_path(folder, tmp_path):
    kept = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert "/somewhere" not in json.dumps(kept)
    assert kept["cells"]["B/parser/it/ensemble"]["result"]["data"]["test"] == "test=x.conllu"
    write_report(kept["cells"], tmp_path, kept["about"])
    assert contents(tmp_path) == contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_picture_is_drawn_and_shown(folder):
    pytest.importorskip("matplotlib")
    drawn = {path.stem for path in (folder / "plots").iterdir()}
    assert drawn == {"differences-B-parser", "distance-B-parser", "ablation-sigma-B-parser", "pool"}
    markdown = (folder / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(plots/(.+)\.svg\)", markdown)) == drawn
    assert (folder / "index.html").read_text(encoding="utf-8").count("<svg") == len(drawn)


def test_development_curves_are_drawn_for_targets_that_have_all():
    pytest.importorskip("matplotlib")
    records = {
        f"B/parser/{target}/transferred/{method}/41": record(
            trained(70.0, curve={100: score, 200: score + 1})
        )
        for target, method, score in (("it", "pool", 60.0), ("it", "union", 50.0), ("fr", "pool", 70.0))
    }
    page = make_page(Results(records), {})
    (picture,) = [each for each in page.pictures if each.name == "curves-B-parser"]
    (axes,) = picture.draw().axes
    lines = {each.get_label(): list(each.lines[0].get_ydata()) for each in axes.containers}
    assert lines == {"PPTX": [50.0, 51.0], "pooled": [60.0, 61.0]}


def test_without_matplotlib_there_are_tables_and_a_word_about_plots(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_report(study(), tmp_path, ABOUT, DATA)
    assert not (tmp_path / "plots").exists()
    for name in ("README.md", "index.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "There are no plots: matplotlib is not installed" in text
        assert "plots/" not in text
        assert "<svg" not in text

"""Tables and plots of a study come out of its scores, whatever its names and gaps."""

from __future__ import annotations

import csv
import json

import pandas as pd
import pytest

report = pytest.importorskip("report", reason="tables and plots need the extra `study`")

TARGETS = {"it": 80.0, "fa": 50.0, "hr": 70.0, "id": 60.0, "ar": 40.0}
METHODS = {"vote": 0.0, "pool": 0.25, "pptx": -1.0, "paper-pool": 0.5, "recommended": 2.0}
SEEDED = ("pptx", "paper-pool", "recommended")


def row(target, method, metric, value, split="test", seed=None, task="parser", study="toy"):
    values = (study, "frozen", task, target, method, seed, split, metric, value)
    return dict(zip(report.COLUMNS, values, strict=True))


def study(name="toy", seeds=(1, 2)):
    rows = [row("ar", "data", "stand_in", 1, study=name)]
    for place, (target, vote) in enumerate(TARGETS.items()):
        for method, more in METHODS.items():
            for seed in seeds if method in SEEDED else [None]:
                spread = 0.0 if seed is None else (seed - 1.5) * 2
                rows.append(row(target, method, "las", vote + more + spread, seed=seed, study=name))
        for source, less in {"en": -9.0, "fr": -3.0, "es": -6.0}.items():
            rows.append(row(target, f"direct:{source}", "las", vote + less, study=name))
            rows.append(row(target, f"direct:{source}", "agreement", 1 + less / 10, "text", study=name))
            rows += [
                row(target, f"direct:{source}", m, -less, "text", study=name)
                for m in ("divergence", "entropy", "chart_size")
            ]
        rows += [
            row(target, "pool", "kl", 2.0 + place, "dev", study=name),
            row(target, "pool", "error", 3.0 + place, "dev", study=name),
            row(target, "pool", "diversity", 1.0, "dev", study=name),
            row(target, "union", "median_log_size", 23.0259, "dev", study=name),
            row(target, "pool", "median_log_size", 18.4207, "dev", study=name),
        ]
        for chart in ("union", "pool"):
            rows += [
                row(target, chart, metric, 0.25, "dev", study=name) for metric in ("precision", "recall")
            ]
        for source, weight in {"en": 0.125, "fr": 0.875}.items():
            rows.append(row(target, "pool-learned", f"weight:{source}", weight, "dev", study=name))
        for method, nll in {"pool": 2.5, "pool-published": 2.25, "pool-learned": 1.5}.items():
            rows.append(row(target, method, "nll", nll, "dev", study=name))
    rows += [row("en", "source", "las", 84.25, seed=1, study=name)]
    rows += [row("en", "source", "train_sentences", 1234, "", seed=1, study=name)]
    rows += [row("it", "recommended", "seconds", 90.0, "", seed=1, study=name)]
    return rows


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(study()), encoding="utf-8")
    return report.read_scores([path])


def line(text, start):
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in found.strip("|").split("|")[1:]]


def test_scores_survive_writing_and_reading(tmp_path, scores):
    report.write_scores(scores, tmp_path / "scores.csv")
    again = report.read_scores([tmp_path / "scores.csv"])
    pd.testing.assert_frame_equal(again, scores)
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8").startswith(",".join(report.COLUMNS) + "\n")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'", "'="])
def test_names_are_no_formulas(start, tmp_path, scores):
    name = f'{start}HYPERLINK("x";A1)'
    hostile = scores.assign(method=name).drop_duplicates(report.KEY)
    report.write_scores(hostile, tmp_path / "scores.csv")
    for _ in range(2):
        again = report.read_scores([tmp_path / "scores.csv"])
        assert set(again["method"]) == {name}
        report.write_scores(again, tmp_path / "scores.csv")
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as stream:
        cells = [row["method"] for row in csv.DictReader(stream)]
    assert set(cells) == {f"'{name}"}


def test_files_that_agree_are_merged_and_others_refused(tmp_path, scores):
    report.write_scores(scores, tmp_path / "one.csv")
    assert len(report.read_scores([tmp_path / "one.csv"] * 2)) == len(scores)
    report.write_scores(scores.assign(value=scores["value"] + 1), tmp_path / "other.csv")
    with pytest.raises(ValueError, match="different values of toy/frozen/parser/"):
        report.read_scores([tmp_path / "one.csv", tmp_path / "other.csv"])


@pytest.mark.parametrize(
    ("change", "message"),
    [({"value": float("nan")}, "NaN or infinite"), ({"value": float("inf")}, "NaN or infinite")],
)
def test_values_that_are_no_scores_are_refused(tmp_path, change, message):
    (tmp_path / "rows.json").write_text(json.dumps([row("it", "vote", "las", 1.0) | change]))
    with pytest.raises(ValueError, match=message):
        report.read_scores([tmp_path / "rows.json"])


def test_a_missing_column_is_named(tmp_path):
    (tmp_path / "scores.csv").write_text("study,encoder,task\n")
    with pytest.raises(ValueError, match="missing columns: target, method, seed, split, metric, value"):
        report.read_scores([tmp_path / "scores.csv"])


def test_the_score_table_has_means_counts_and_the_papers_numbers(scores):
    table = report.score_table(scores, "parser")
    assert line(table, "target")[: len(METHODS)] == list(METHODS)
    assert line(table, "Italian (it)") == [
        "80.0", "80.2", "79.0 ± 1.4", "80.5 ± 1.4", "82.0 ± 1.4", "81.7", "80.2", "81.4", "81.4",
    ]  # fmt: skip
    assert line(table, "Arabic (ar), stand-in")[0] == "40.0"
    assert line(table, "mean of 4")[:5] == ["65.0", "65.2", "64.0 ± 1.4", "65.5 ± 1.4", "67.0 ± 1.4"]
    assert line(table, "mean of 3 distant")[0] == "60.0"
    assert line(table, "above the vote") == [
        "", "4 of 4", "0 of 4", "4 of 4", "4 of 4", "", "1 of 4", "3 of 4", "3 of 4",
    ]  # fmt: skip


def test_means_are_over_the_targets_that_have_every_method(scores):
    table = report.score_table(scores[~(scores["target"].eq("it") & scores["method"].eq("pptx"))], "parser")
    assert line(table, "mean of 3")[0] == "60.0"
    assert line(table, "Italian (it)")[2] == ""


def test_the_other_tables(scores):
    direct = report.direct_table(scores, "parser")
    assert line(direct, "Persian (fa)") == ["41.0", "44.0", "47.0", "47.0", "44.0"]
    charts = report.chart_table(scores, "parser")
    assert line(charts, "Croatian (hr)")[:4] == ["1.0e10", "1", "25.0", "25.0"]
    assert line(charts, "Croatian (hr)")[-2:] == ["20.4", "98.3"]
    distance = report.distance_table(scores, "parser")
    assert line(distance, "Persian (fa)") == ["3.00", "4.00", "1.00", "+0.5"]
    ranking = report.ranking_table(scores, "parser")
    assert line(ranking, "mean of 4") == ["1.00", "1.00", "1.00", "1.00", "", "", "0.0"]  # not the stand-in
    weights = report.weight_table(scores, "parser")
    assert line(weights, "Italian (it)") == ["0.12", "0.88", "2.500", "2.250", "1.500"]
    assert line(report.source_table(scores, "parser"), "English (en)") == ["1,234", "84.2", "86.9"]
    assert line(report.time_table(scores), "frozen, parser, training") == ["1", "1.5"]


def test_differences_are_over_published_targets_with_intervals(scores):
    ends = [
        row(target, "pool", f"over:vote:{end}", value)
        for target in ("it", "fa", "ar")
        for end, value in (("low", 0.1), ("high", 0.4))
    ]
    changed = scores["target"].eq("ar") & scores["method"].eq("pool") & scores["metric"].eq("las")
    scores = scores.assign(value=scores["value"].mask(changed, 90.0))
    table = report.difference_table(pd.concat([scores, pd.DataFrame(ends)]), "parser")
    assert line(table, "pool over vote") == ["+0.25", "2 of 2", "2", "0", "0.5"]
    assert "intervals of the first seed" in table


@pytest.mark.parametrize(("source", "best"), [("sl", "79.0"), ("spacy-x", "79.0"), ("joined", "77.0")])
def test_pooled_sources_of_any_name_may_be_the_best(scores, source, best):
    rows = [row("it", f"direct:{source}", "las", 79.0)]
    rows += [row("it", f"direct:{source}", "agreement", 0.9, "text")] * (source != "joined")
    table = report.direct_table(pd.concat([scores, pd.DataFrame(rows)]), "parser")
    assert line(table, "Italian (it)")[-2] == best


def test_ablations_stand_below_their_method():
    rows = study(seeds=(1,)) + [
        row("it", f"paper-pool:{setting}", "las", 70.0 + place, seed=1)
        for place, setting in enumerate(("sigma=0.5", "floor=0,best=none"))
    ]
    table = report.ablation_table(pd.DataFrame(rows), "parser")
    names = [entry.split(" | ")[0].strip("| ") for entry in table.splitlines()[6:]]
    assert names == ["vote", "pool", "paper-pool", "paper-pool:floor=0,best=none", "paper-pool:sigma=0.5"]


def test_a_search_is_summed_up():
    trials = {1: (1e-4, 50.0), 2: (3e-4, 55.0), 3: (1e-5, 45.0)}
    rows = [
        row("fa", f"pptx:trial={trial}", metric, value, "dev" if metric == "las" else "", 42)
        for trial, (rate, las) in trials.items()
        for metric, value in (("learning_rate", rate), ("l2", 1e-3), ("las", las))
    ]
    rows += [row("fa", f"pptx:trial={trial}", "las", 90.0, seed=42) for trial in trials]  # of the test files
    rows += [entry | {"method": "pool:wide:trial=1"} for entry in rows[1:3]]
    rows += [entry | {"method": "pool:none:trial=1"} for entry in rows[:2]]
    table = report.search_table(pd.DataFrame(rows), "parser")
    assert line(table, "pptx") == ["3", "3.0e-04", "1.0e-03", "55.0", "50.0", "50.0", "45.0"]
    assert line(table, "pool:wide") == ["1", "", "1.0e-03", "50.0", "", "50.0", "50.0"]
    assert "pool:none" not in table


def test_curves_are_means_over_targets_that_have_all(scores):
    more = [
        row(target, method, f"las@{update}", 50.0 + update / 100 + place, "dev", 1)
        for place, target in enumerate(("it", "fa"))
        for method in SEEDED
        for update in (100, 200, 300)
        if (target, method) != ("fa", "pptx")
    ]
    more += [entry | {"target": "ar", "value": 1.0} for entry in more if entry["target"] == "it"]
    more.append(row("ar", "data", "stand_in", 1))
    curves = report.mean_curves(pd.DataFrame(more), "parser")
    assert curves["recommended"].to_dict() == {100: 51.0, 200: 52.0, 300: 53.0}


def test_hostile_names_stay_inside_their_cells():
    name = "a|b\n<script>*_[x](y)`&~\\$\x1b"
    rows = [
        row("it", "vote", "las", 50.0),
        row(name, "vote", "las", 40.0),
        row("it", f"direct:{name}", "las", 1.0),
    ]
    frame = pd.DataFrame([entry | {"encoder": name, "study": name} for entry in rows])
    text = report.tables(frame)
    assert "<script>" not in text
    for table in text.split("### ")[1:]:
        lines = [entry.replace("\\|", "") for entry in table.splitlines() if entry.startswith("|")]
        assert len({entry.count("|") for entry in lines}) == 1
    escaped = r"a\|b &lt;script&gt;\*\_\[x\](y)\`&amp;\~\\\$�"
    assert report.escape(name) == escaped
    assert f"| {escaped} |" in text


def test_the_command_writes_a_folder_for_each_study(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(study(name)), encoding="utf-8")
    files = [str(tmp_path / f"{name}.json") for name in ("one", "two")]
    report.main([*files, "--output", str(tmp_path / "both")])
    report.main([files[0], "--output", str(tmp_path / "one")])
    names = {"scores.csv", "tables.md", "differences.svg"}  # too little for the other plots
    for folder in ("both/one", "both/two", "one"):
        assert {path.name for path in (tmp_path / folder).iterdir()} == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "both/one" / name).read_bytes()
    assert "stand-in" in (tmp_path / "one/tables.md").read_text(encoding="utf-8")


def test_all_plots_are_drawn_where_there_are_data(tmp_path):
    rows = study()
    for place, target in enumerate("bg pt fr es no da sv nl de ko".split()):
        rows += [row(target, method, "las", 60.0 + more * place) for method, more in METHODS.items()]
        rows += [
            row(target, "pool", metric, 1.0 + place % 3, "dev") for metric in ("kl", "error", "diversity")
        ]
        rows += [row(target, "pptx", f"las@{update}", 50.0, "dev") for update in (1, 2, 3)]
    report.save_plots(pd.DataFrame(rows), tmp_path)
    for name, text in (("differences", "ar*"), ("distances", "r = "), ("curves", "updates")):
        assert text in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


def test_gaps_leave_the_other_tables(scores):
    left_out = (
        "stand_in las agreement entropy kl median_log_size recall weight:en nll train_sentences seconds"
    )
    for metric in left_out.split():
        assert report.tables(scores[scores["metric"] != metric]).count("\n### ") >= 4
    for method in "data source vote pool recommended direct:en union pool-learned".split():
        assert "## Parsing" in report.tables(scores[scores["method"] == method])


@pytest.mark.real
def test_the_papers_scores_are_those_of_the_shared_file(shared):
    given = json.loads(shared("paper", "results.json").read_text(encoding="utf-8"))
    names = dict(
        zip(report.PAPER["methods"], ("majority_vote", "pptx", "lop_uniform", "lop_learned"), strict=True)
    )
    metrics = {"parser": "parsing_las", "tagger": "tagging_accuracy"}
    for task, metric in metrics.items():
        assert report.PAPER["sources"][task] == given["source_models"][metric]
        for split in ("dev", "test"):
            table = report.paper_grid(task, split)
            assert set(table.index) == set(given[split])
            for target, method in ((t, m) for t in table.index for m in names):
                assert table.at[target, method] == given[split][target][metric][names[method]]["mean"]


def test_the_papers_averages_are_the_means_over_all_targets():
    for task, averages in report.PAPER["averages"].items():
        means = report.paper_grid(task)[report.PAPER["methods"]].mean()
        for mean, average in zip(means, averages, strict=True):
            assert average is None or mean == pytest.approx(average, abs=0.02)

"""Make tables and plots from the results of studies.

    python scripts/study/report.py RESULT [RESULT ...] --output FOLDER

RESULT is a `scores.csv`, or a JSON file of a job: a list of records with the columns of `scores.csv`
(docs/results/scores.md lists methods and metrics). FOLDER receives `scores.csv`, `tables.md` and the plots;
if the results are of several studies, each study has a folder of its name there.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from scipy import stats
from significance import PAIRS, sign_test

from hf_xst.console import printable

COLUMNS = ["study", "encoder", "task", "target", "method", "seed", "split", "metric", "value"]
KEY = COLUMNS[:-1]
NAMES = [column for column in KEY if column != "seed"]
# A name that begins so would be a formula in a spreadsheet; scores.csv has it behind an apostrophe.
FORMULA = "=+@\t\r'-"
TASKS = {
    "parser": ("Parsing", "las", "LAS without punctuation"),
    "tagger": ("Tagging", "accuracy", "Accuracy"),
}
# Methods of the main tables, in their order; the trained ones are compared with the vote.
TRAINED = ["pptx", "paper-pool", "paper-pool-learned", "recommended"]
MAIN = ["vote", "pool", "pool-learned", "pool-agreement", "average", "average-agreement", *TRAINED]
# Measures of sources that need no labels, and the sign that makes a higher value better.
MEASURES = {"agreement": 1, "divergence": -1, "entropy": -1, "chart_size": -1}
# Plots with less data are not drawn.
FEWEST_BARS, FEWEST_POINTS, FEWEST_UPDATES = 5, 10, 3
PAPER: dict[str, Any] = json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))
GROUPS: dict[str, dict[str, str]] = PAPER["languages"]
LANGUAGES = {
    **GROUPS["distant"], **GROUPS["nearby"], "en": "English", "tl": "Tagalog", "fo": "Faroese",
    "mt": "Maltese", "hsb": "Upper Sorbian", "yo": "Yoruba", "bxr": "Buryat", "wo": "Wolof", "am": "Amharic",
    "br": "Breton", "sme": "North Sami",
    "fr-spoken": "spoken French",
}  # fmt: skip


def read_scores(paths: Iterable[Path]) -> pd.DataFrame:
    """Return the rows of scores.csv files and of JSON files of jobs.

    Raises:
        ValueError: a column is missing, a value is not a finite number, or two files disagree about a value.
    """
    frames = []
    for path in paths:
        if path.suffix == ".json":
            frame = pd.DataFrame(json.loads(path.read_text(encoding="utf-8")), dtype=object)
        else:
            frame = pd.read_csv(path, dtype=str, keep_default_na=False)
            frame = frame.map(lambda name: re.sub(rf"^'(?=[{FORMULA}])", "", name))
        if missing := [column for column in COLUMNS if column not in frame]:
            raise ValueError(f"{path}: missing columns: {', '.join(missing)}")
        frame = frame[COLUMNS].astype(dict.fromkeys([*KEY[:5], *KEY[6:]], str))
        frame = frame.assign(value=pd.to_numeric(frame["value"]).astype(float))
        if not frame["value"].map(math.isfinite).all():
            raise ValueError(f"{path}: some values are NaN or infinite")
        seeds = [None if pd.isna(seed) or seed == "" else int(seed) for seed in frame["seed"]]
        frames.append(frame.assign(seed=pd.array(seeds, dtype="Int64")))
    rows = pd.concat(frames, ignore_index=True).drop_duplicates()
    if (conflicts := rows.duplicated(KEY)).any():
        raise ValueError(f"different values of {'/'.join(map(str, rows.loc[conflicts, KEY].iloc[0]))}")
    return rows.sort_values(KEY, na_position="first", ignore_index=True)


def write_scores(scores: pd.DataFrame, path: Path) -> None:
    """Write rows as scores.csv, sorted, with eight significant digits."""
    rows = scores.sort_values(KEY, na_position="first").assign(value=scores["value"].map("{:.8g}".format))
    rows[NAMES] = rows[NAMES].map(lambda name: f"'{name}" if name.startswith(tuple(FORMULA)) else name)
    rows.to_csv(path, index=False, lineterminator="\n")


def grid(
    scores: pd.DataFrame, metric: str, split: str | None = "test", statistic: str = "mean"
) -> pd.DataFrame:
    """Return a metric by target (rows) and method (columns): the mean, or another statistic, over seeds."""
    rows = scores[(scores["metric"] == metric) & (scores["split"].eq(split) if split else True)]
    table = rows.groupby(["target", "method"])["value"].agg(statistic).unstack().dropna(axis=1, how="all")
    return table.loc[in_order(table.index, LANGUAGES)]


def in_order(names: Iterable[str], first: Iterable[str]) -> list[str]:
    """Return the names sorted, those of `first` before the others and in its order."""
    rank = {name: place for place, name in enumerate(first)}
    return sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name))


def published_targets(scores: pd.DataFrame, targets: Iterable[str]) -> list[str]:
    """Return the targets without those whose test file stands in for the published one."""
    stand_ins = set(scores.loc[scores["metric"] == "stand_in", "target"])
    return [target for target in targets if target not in stand_ins]


def paper_grid(task: str, split: str = "test") -> pd.DataFrame:
    """Return the paper's scores by target and method."""
    scores = {t: [cell[0] for cell in row] for t, row in PAPER["scores"][split][task].items()}
    return pd.DataFrame.from_dict(scores, orient="index", columns=PAPER["methods"])


def gain_count(table: pd.DataFrame, method: str, base: str = "vote") -> str:
    """Count the targets on which a method is above the vote, of those that have both scores."""
    if method == base or base not in table or method not in table:
        return ""
    both = table[[method, base]].dropna()
    return f"{(both[method] > both[base]).sum()} of {len(both)}" if len(both) else ""


def single_sources(scores: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Return the direct-transfer methods of pooled sources and of languages, not of e.g. joined treebanks."""
    pooled = set(scores.loc[scores["metric"] == "agreement", "method"])
    return [m for m in table if m.startswith("direct:") and (m in pooled or m[7:] in LANGUAGES)]


def number(value: object, form: str = ".1f") -> str:
    """Format a number (`short`: two significant digits); texts stay, a missing value becomes empty."""
    if isinstance(value, str) or pd.isna(value):
        return value if isinstance(value, str) else ""
    return f"{float(f'{value:.2g}'):g}" if form == "short" else f"{value:{form}}"


def escape(text: str) -> str:
    """Make a text safe inside a Markdown table."""
    plain = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", plain)


def render(
    title: str, note: str, table: pd.DataFrame, forms: Mapping[str, str] | None = None, first: str = "target"
) -> str:
    """Return a table as Markdown, with language codes spelt out and without empty columns.

    Args:
        title: heading above the table.
        note: paragraph between heading and table.
        table: a row for each label of the index.
        forms: number formats of columns that do not have one decimal.
        first: heading of the first column.

    Returns:
        The Markdown; an empty text for an empty table.
    """
    texts = pd.DataFrame({c: [number(v, (forms or {}).get(c, ".1f")) for v in table[c]] for c in table})
    texts = texts.loc[:, (texts != "").any()]
    if texts.empty:
        return ""
    labels = [f"{LANGUAGES[label]} ({label})" if label in LANGUAGES else str(label) for label in table.index]
    lines = [
        [first, *texts],
        ["---"],
        *([label, *row] for label, row in zip(labels, texts.values, strict=True)),
    ]
    body = [f"| {' | '.join(escape(cell) for cell in line)} |" for line in lines]
    body[1] = f"| --- |{' ---: |' * len(texts.columns)}"
    return "\n".join([f"### {title}", "", note, "", *body, ""])


def score_table(scores: pd.DataFrame, task: str, split: str = "test") -> str:
    """Compare the main methods on every target, with means, counts of gains, and the paper's scores."""
    name, metric, unit = TASKS[task]
    ours, spread = grid(scores, metric, split), grid(scores, metric, split, "std")
    ours = ours[[method for method in MAIN if method in ours]].dropna(how="all")
    both = ours.join(paper_grid(task, split).add_prefix("paper: "))
    table = both.map(number).astype(object)
    for method in spread.columns.intersection(ours.columns):
        table[method] += (
            spread[method].reindex(table.index).map(lambda value: f" ± {value:.1f}", "ignore").fillna("")
        )
    whole = published_targets(scores, ours.dropna().index)
    for group in ("all", *GROUPS):
        targets = [target for target in whole if group == "all" or target in GROUPS[group]]
        if len(targets) > 1 and (group == "all" or len(targets) < len(whole)):
            label = f"mean of {len(targets)}" + ("" if group == "all" else f" {group}")
            means = both.loc[targets].mean(skipna=False).map(number)
            spreads = mean_spread(scores, metric, split, targets)
            table.loc[label] = [mean + spreads.get(method, "") for method, mean in means.items()]
    counted = both.loc[published_targets(scores, ours.index)]
    table.loc["above the vote"] = [
        gain_count(counted, each, "paper: vote" if each.startswith("paper: ") else "vote") for each in both
    ]
    notes = [f"{unit} in percent, {split} files. Means are over the targets that have every method of ours."]
    if len(counted) < len(ours):
        table = table.rename(
            {t: f"{LANGUAGES.get(t, t)} ({t}), stand-in" for t in ours.index.difference(counted.index)}
        )
        notes.append("A stand-in for the published test file is left out of means and counts.")
    return render(f"{name}, {split}", " ".join(notes), table)


def mean_spread(scores: pd.DataFrame, metric: str, split: str, targets: Sequence[str]) -> pd.Series:
    """Return " ± standard deviation" over seeds of the mean over targets, for methods with several seeds."""
    rows = scores[scores["metric"].eq(metric) & scores["split"].eq(split) & scores["target"].isin(targets)]
    by_seed = rows.pivot_table(index="seed", columns=["method", "target"], values="value").T
    means = by_seed.groupby("method").mean().where(by_seed.notna().groupby("method").sum() == len(targets))
    deviations = means.std(axis=1).dropna()
    return deviations[deviations.index.isin(MAIN)].map(" ± {:.1f}".format)


def difference_table(scores: pd.DataFrame, task: str) -> str:
    """Compare pairs of methods over the targets, with intervals and a sign test."""
    table = grid(scores, TASKS[task][1])
    table = table.loc[published_targets(scores, table.index)]
    rows: dict[str, list[object]] = {}
    for method, base in PAIRS:
        ends = scores[scores["method"].eq(method) & scores["metric"].str.startswith(f"over:{base}:")]
        if len(ends):
            low, high = (grid(ends, f"over:{base}:{end}").reindex(table.index) for end in ("low", "high"))
            points = (table[method] - table[base]).where(low[method].notna()).dropna()
            above = f"{(points > 0).sum()} of {len(points)}"
            counts = [above, str((low[method] > 0).sum()), str((high[method] < 0).sum())]
            rows[f"{method} over {base}"] = [points.mean(), *counts, f"{sign_test(points):.2g}"]
    columns = ["mean difference", "above", "interval above 0", "interval below 0", "p"]
    note = "Intervals: 95 %, paired bootstrap over the test sentences of a target; p: sign test over targets."
    if scores.loc[scores["method"].isin(TRAINED), "seed"].nunique() > 1:
        note += " Differences are of the mean over seeds, intervals of the first seed."
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return render("Differences", note, frame, {columns[0]: "+.2f"}, "methods")


def direct_table(scores: pd.DataFrame, task: str) -> str:
    """List direct transfer from every source."""
    table = grid(scores, TASKS[task][1])
    single, methods = single_sources(scores, table), [m for m in table if m.startswith("direct:")]
    table = table[[*single, *(m for m in methods if m not in single)]].dropna(how="all")
    best, mean = table[single].max(axis=1), table[single].mean(axis=1)
    note = "Test files. Which source is best is known only with labelled data."
    return render("Direct transfer", note, table.assign(**{"best source": best, "mean of sources": mean}))


def comparison_table(scores: pd.DataFrame, task: str) -> str:
    """Compare the remaining methods with the vote, the pool, and one another."""
    table = grid(scores, TASKS[task][1])
    others = [m for m in table if ":" not in m and m not in (*MAIN, "source")]
    others += [m for m in table if m.startswith("direct:") and m not in single_sources(scores, table)]
    table = table[[*(m for m in ("vote", "pool", "paper-pool") if m in table), *others]].dropna(
        how="all", subset=others
    )
    if not others:
        return ""
    if len(whole := published_targets(scores, table.dropna().index)) > 1:
        table.loc[f"mean of {len(whole)}"] = table.loc[whole].mean()
    return render("Other methods", "Test files, percent.", table)


def ablation_table(scores: pd.DataFrame, task: str) -> str:
    """List the methods with one setting changed below the unchanged method."""
    table = grid(scores, TASKS[task][1]).T
    changed = [m for m in table.index if ":" in m and not m.startswith("direct:")]
    order = [m for m in ("vote", "pool") if m in table.index]
    for base in sorted({m.partition(":")[0] for m in changed}):
        order += [m for m in table.index if m == base or (m in changed and m.startswith(f"{base}:"))]
    table = table.loc[order].dropna(axis=1, how="all", subset=changed) if changed else table.loc[[]]
    table.columns = [LANGUAGES.get(target, target) for target in table]
    return render("One setting changed", "Test files, percent.", table, first="method")


def chart_table(scores: pd.DataFrame, task: str) -> str:
    """List size and quality of charts, beside the paper's."""
    size = grid(scores, "median_log_size", None)
    if "union" not in size:
        return ""
    kinds = [kind for kind in ("union", "pool", "pool-learned") if kind in size]
    table = pd.DataFrame({"size, union": size["union"].map(power)})
    for kind in kinds[1:]:
        table[f"{kind}/union, %"] = (size[kind] - size["union"]).clip(upper=700).map(math.exp) * 100
    quality = {
        metric: grid(scores, metric, None).reindex(columns=kinds) for metric in ("precision", "recall")
    }
    for kind in kinds:
        for metric, values in quality.items():
            table[f"{metric[0].upper()}, {kind}"] = values[kind] * 100
    theirs = {
        target: [
            power(math.log(union)),
            ratio,
            *(v for pair in PAPER["chart_quality"][task][target] for v in pair),
        ]
        for target, (union, ratio) in PAPER["chart_size"][task].items()
    }
    names = ["size, union", "pool/union, %", "P, union", "R, union", "P, pool", "R, pool"]
    table = table.join(
        pd.DataFrame.from_dict(theirs, orient="index", columns=[f"paper: {name}" for name in names])
    )
    note = (
        "Size: median number of structures in a chart. P, R: precision and recall in percent, on "
        "development files (test files where there are none). The paper's recall counts candidates that hold "
        "only the 1e-8 that its code adds, so it cannot be compared."
    )
    if "pool-learned" in kinds:
        note += " The labelled sentences that weights were learned from are among the development sentences."
    return render("Charts", note, table, {name: "short" for name in table if "%" in name})


def power(log_size: float) -> str:
    """Format a size that is given by its natural logarithm."""
    exponent = math.floor(log_size / math.log(10))
    return f"{10 ** (log_size / math.log(10) - exponent):.1f}e{exponent}"


def distances(scores: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return the pool's distance to gold and the gain of training on its charts over the vote, by target."""
    main, parts = grid(scores, TASKS[task][1]), ["kl", "error", "diversity"]
    if not {"vote", "paper-pool"} <= set(main):
        return pd.DataFrame(columns=[*parts, "gain"])
    table = pd.DataFrame(
        {part: grid(scores, part, None).get("pool", pd.Series(dtype=float)) for part in parts}
    )
    return table.assign(gain=main["paper-pool"] - main["vote"]).dropna()


def pearson(x: pd.Series, y: pd.Series) -> tuple[float, float]:
    """Return Pearson's r and its p; NaN where one side is constant."""
    if min(x.nunique(), y.nunique()) < 2:
        return math.nan, math.nan
    result = stats.pearsonr(x, y)
    return float(result.statistic), float(result.pvalue)


def distance_table(scores: pd.DataFrame, task: str) -> str:
    """List distances of the pool to gold, and their correlation with the gain over the vote."""
    points = distances(scores, task)
    table = points.map(lambda value: f"{value:.2f}").assign(gain=points["gain"].map("{:+.1f}".format))
    if len(points) > 2:
        results = [pearson(points[part], points["gain"]) for part in points.columns[:3]]
        table.loc["r with the gain"] = [*(number(r, ".2f") for r, _ in results), ""]
        table.loc["p"] = [*(number(p, ".2g") for _, p in results), ""]
        table.loc["paper: r, p"] = ["{:.2f}, {:.2g}".format(*PAPER["correlation"][task]), "", "", ""]
    note = "KL(gold, pool) = error - diversity, nats per word; gain: paper-pool over the vote, points."
    return render("Distance of the pool to gold", note, table)


def source_table(scores: pd.DataFrame, task: str) -> str:
    """List the source models' scores on their own languages."""
    metric, rows = TASKS[task][1], scores[scores["method"] == "source"]
    if rows.empty:
        return ""
    kinds = {"training sentences": ("train_sentences", ""), "updates": ("updates", "")}
    kinds |= {"dev": (f"best_{metric}", "dev"), "test": (metric, "test")}
    table = pd.DataFrame(index=in_order(rows["target"], ["en", *LANGUAGES]))
    for title, (name, split) in kinds.items():
        table[title] = grid(rows, name, split).get("source")
    table["paper: test"] = pd.Series(PAPER["sources"][task])
    forms = dict.fromkeys(["training sentences", "updates"], ",.0f")
    note = "Percent. Dev: the score that training stopped by."
    return render("Sources on their own languages", note, table, forms, "source")


def ranking_table(scores: pd.DataFrame, task: str) -> str:
    """Correlate measures that need no labels with direct transfer."""
    truth = grid(scores, TASKS[task][1])
    split = "text" if len(grid(scores, "agreement", "text")) else None
    measured = {measure: grid(scores, measure, split) for measure in MEASURES}
    rows: dict[str, list[object]] = {}
    for target, agreement in measured["agreement"].iterrows():
        names = agreement.dropna().index
        right = truth.reindex(index=[target], columns=names).iloc[0]
        if right.notna().all():
            tables = {m: table.reindex(index=[target], columns=names) for m, table in measured.items()}
            values = [tables[measure].iloc[0] * sign for measure, sign in MEASURES.items()]
            rhos = [stats.spearmanr(v, right).statistic if v.nunique() > 1 else math.nan for v in values]
            first, best = values[0].idxmax(), right.idxmax()
            rows[str(target)] = [*rhos, first[7:], best[7:], right[best] - right[first]]
    columns = [*(measure.replace("_", " ") for measure in MEASURES), "agrees most", "best", "points lost"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    if len(whole := published_targets(scores, table.index)) > 1:
        table.loc[f"mean of {len(whole)}"] = table.loc[whole].select_dtypes("number").mean()
    note = "Spearman's rho of each measure with direct transfer on the test files; 1 is the true order."
    return render("Sources ranked without labels", note, table, dict.fromkeys(columns[:4], ".2f"))


def weight_table(scores: pd.DataFrame, task: str) -> str:
    """List learned weights, and the negative log-likelihood of gold under the pool."""
    rows = scores[(scores["method"] == "pool-learned") & scores["metric"].str.startswith("weight:")]
    table = rows.pivot_table(index="target", columns="metric", values="value")
    table = table.loc[in_order(table.index, LANGUAGES), in_order(table, ["weight:en"])].map(
        "{:.2f}".format, "ignore"
    )
    nll = grid(scores, "nll", None)
    kinds = [m for m in ("pool", "pool-published", "pool-learned", "pool-grouped") if m in nll]
    table = table.join(nll[kinds].map("{:.3f}".format, "ignore").add_prefix("NLL, "))
    note = "Weights fitted to labelled sentences of the target; NLL: nats per word on the same sentences."
    return render("Learned weights", note, table)


def search_table(scores: pd.DataFrame, task: str) -> str:
    """Summarise random searches of learning rate and pull (l2)."""
    metric = TASKS[task][1]
    trials = scores[scores["method"].str.contains(":trial=") & scores["split"].isin(["dev", ""])]
    table = trials.pivot_table(index="method", columns="metric", values="value")
    if metric not in table:
        return ""
    table = table.dropna(subset=metric).sort_values(metric, ascending=False)
    rows: dict[str, list[object]] = {}
    for method, group in table.groupby(table.index.str.rpartition(":trial=").get_level_values(0)):
        values, best = group[metric], group.iloc[0]
        settings = [number(best.get(name), ".1e") for name in ("learning_rate", "l2")]
        top = [*values.iloc[:2], math.nan][:2]
        rows[str(method)] = [str(len(values)), *settings, *top, values.median(), values.iloc[-1]]
    columns = ["trials", "learning rate", "l2", "best", "second", "median", "worst"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return render("Random search", "Development scores of the trials.", frame, first="method")


def mean_curves(scores: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return mean development scores by update (rows) and main trained method.

    Means are over the targets that have them all, without stand-ins.
    """
    points = scores[scores["metric"].str.startswith(f"{TASKS[task][1]}@") & scores["method"].isin(TRAINED)]
    points = points.assign(update=points["metric"].str.split("@").str[1].astype(int))
    table = points.pivot_table(index="target", columns=["method", "update"], values="value").dropna()
    table = table.loc[published_targets(scores, table.index)]
    return table.mean().unstack("method").dropna() if len(table) else pd.DataFrame()


def curve_table(scores: pd.DataFrame, task: str) -> str:
    """List mean development scores by update of the main trained methods."""
    note = "Mean over the targets that have every method; no model was chosen by these scores."
    table = mean_curves(scores, task).T.rename(columns=str)
    return render("Development scores by update", note, table, first="method")


def time_table(scores: pd.DataFrame) -> str:
    """Sum the time of the jobs."""
    times = scores[scores["metric"] == "seconds"]
    names = {"source": "sources", "pool-learned": "weights"}
    names |= {name: name for name in ("weights", "charts", "ensembles", "ranking", "analysis")}
    kinds = times["method"].str.split(":").str[0].map(names).fillna("training")
    groups = times.groupby(times["encoder"] + ", " + times["task"] + ", " + kinds)["value"]
    table = pd.DataFrame({"number": groups.size(), "minutes": groups.sum() / 60})
    return render("Time", "Jobs that ran side by side count each.", table, {"number": ".0f"}, "jobs")


TABLES: list[Callable[[pd.DataFrame, str], str]] = [
    score_table, difference_table, partial(score_table, split="dev"), direct_table, comparison_table,
    ablation_table, chart_table, distance_table, source_table, ranking_table, weight_table, search_table,
    curve_table,
]  # fmt: skip


def tables(scores: pd.DataFrame) -> str:
    """Return all tables of one study as Markdown."""
    title = escape(str(scores["study"].iloc[0]))
    parts = [
        f"# Tables of the study {title}\n",
        "Generated from `scores.csv` by `scripts/study/report.py`.\n",
    ]
    for (task, encoder), rows in scores.groupby(["task", "encoder"]):
        parts += [
            f"## {TASKS[task][0]}, encoder: {escape(encoder)}\n",
            *(table(rows, task) for table in TABLES),
        ]
    return "\n".join(part for part in [*parts, time_table(scores)] if part)


def draw_differences(scores: pd.DataFrame, task: str, axis: Any) -> bool:
    """Draw bars of the difference to the vote for each target."""
    table = grid(scores, TASKS[task][1])
    methods = [method for method in ("pool", *TRAINED) if method in table]
    if "vote" not in table or not methods:
        return False
    bars = table[methods].sub(table["vote"], axis=0).dropna(how="all")
    if len(bars) < FEWEST_BARS:
        return False
    published = published_targets(scores, bars.index)
    bars.index = pd.Index([t if t in published else f"{t}*" for t in bars.index], name="target")
    bars = bars.reset_index().melt("target", var_name="method", value_name="points over the vote")
    palette = dict(zip(["pool", *TRAINED], sns.color_palette(), strict=False))
    sns.barplot(
        bars, x="target", y="points over the vote", hue="method", palette=palette, errorbar=None, ax=axis
    )
    axis.set_xlabel("")
    axis.legend(ncols=len(methods), loc="best", fontsize="small", title=None)
    return True


def draw_distances(scores: pd.DataFrame, task: str, axis: Any) -> bool:
    """Draw the pool's distance to gold against the gain over the vote, with r and p."""
    points = distances(scores, task)
    if len(points) < FEWEST_POINTS:
        return False
    r, p = pearson(points["kl"], points["gain"])
    sns.regplot(points, x="kl", y="gain", ax=axis, seed=0, scatter_kws={"s": 12})
    for target, row in points.iterrows():
        axis.annotate(
            target, (row["kl"], row["gain"]), xytext=(3, 3), textcoords="offset points", fontsize="small"
        )
    axis.set(xlabel="KL(gold, pool), nats per word", ylabel="paper-pool over the vote, points")
    axis.text(0.02, 0.93, f"r = {r:.2f}, p = {p:.2g}", transform=axis.transAxes)
    return True


def draw_curves(scores: pd.DataFrame, task: str, axis: Any) -> bool:
    """Draw mean development scores by update."""
    curves = mean_curves(scores, task)
    if len(curves) < FEWEST_UPDATES:
        return False
    sns.lineplot(curves, markers=True, dashes=False, ax=axis)
    axis.set(xlabel="updates", ylabel=f"{TASKS[task][2]}, dev")
    return True


SVG = {"svg.fonttype": "none", "svg.hashsalt": "hf_xst"}
PLOTS: dict[str, tuple[Callable[[pd.DataFrame, str, Any], bool], float, float]] = {
    "differences": (draw_differences, 9, 2.8),
    "distances": (draw_distances, 4.5, 3.2),
    "curves": (draw_curves, 4.5, 3.0),
}


def save_plots(scores: pd.DataFrame, folder: Path) -> None:
    """Write each plot that has data as SVG, with a panel for each task and encoder."""
    groups = list(scores.groupby(["task", "encoder"]))
    for name, (draw, width, height) in PLOTS.items():
        with sns.axes_style("whitegrid"), mpl.rc_context({**SVG, "text.parse_math": False}):
            figure = Figure(figsize=(width, height * len(groups)), layout="constrained")
            for place, ((task, encoder), rows) in enumerate(groups):
                axis = figure.add_subplot(len(groups), 1, place + 1)
                if draw(rows, task, axis):
                    axis.set_title(f"{TASKS[task][0]}, encoder: {encoder}")
                else:
                    axis.remove()
            if figure.axes:
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", nargs="+", type=Path, help="scores.csv files, or JSON files of jobs")
    parser.add_argument("--output", required=True, type=Path, help="folder of tables and plots")
    options = parser.parse_args(arguments)
    studies = list(read_scores(options.results).groupby("study"))
    for study, rows in studies:
        folder = options.output / str(study) if len(studies) > 1 else options.output
        folder.mkdir(parents=True, exist_ok=True)
        write_scores(rows, folder / "scores.csv")
        (folder / "tables.md").write_text(tables(rows), encoding="utf-8")
        save_plots(rows, folder)


if __name__ == "__main__":
    main()

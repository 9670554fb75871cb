"""Collect the results of a study's jobs as one JSON list of scores; report.py lists its columns."""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from configuration import read_study
from jobs import Jobs
from significance import intervals, read_counts

Row = tuple[str, str, str, float | None]  # method, split, metric, value
Content = Any
FOLDER = re.compile(
    r"(?P<encoder>[^/]+)/(?P<task>[^/]+)/(?:sources/(?P<source>[^/]+)|targets/(?P<target>[^/]+)"
    r"(?:/charts/(?P<charts>[^/]+)|/models/(?P<method>[^/]+)/(?P<seed>[^/]+))?)"
    r"/(?P<file>.+\.json)$"
)
DEV_SCORES = ("las", "uas", "accuracy")
SCORES = (*DEV_SCORES, "las_punct", "uas_punct")
ANALYSED = {"union": "union", "pool": "pool", "pool learned": "pool-learned"}
COLUMNS = ("study", "encoder", "task", "target", "method", "seed", "split", "metric", "value")


def collect(paths: Sequence[Path], study: str, seed: int, stand_ins: Sequence[str]) -> list[dict[str, Any]]:
    """Return the scores of all result files, without those that are missing (None).

    Args:
        paths: result files of jobs, see `jobs.Jobs.results`.
        study: name of the study.
        seed: of source models.
        stand_ins: targets whose test files replace the published ones.
    """
    scores = []
    for path in paths:
        match = FOLDER.search(path.as_posix())
        if match is None:
            raise ValueError(f"{path} is not a result of a study")
        key = match.groupdict()
        rows = list(_rows(path, key))
        if key["file"] == "ensembles.json":
            models = [each for each in paths if each.name == "scores.json" and path.parent in each.parents]
            found = intervals(*read_counts(path, models))
            rows += [(method, "test", metric, round(value, 4)) for method, metric, value in found]
        if key["file"] == "ensembles.json" and key["target"] in stand_ins:
            rows.append(("data", "test", "stand_in", 1))
        own_seed = seed if key["source"] else key["seed"] and int(key["seed"])
        target = key["source"] or key["target"]
        for method, split, metric, value in rows:
            if value is not None:
                row = (study, key["encoder"], key["task"], target, method, own_seed, split, metric, value)
                scores.append(dict(zip(COLUMNS, row, strict=True)))
    return scores


def _rows(path: Path, key: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of one result file."""
    content, file = json.loads(path.read_text(encoding="utf-8")), key["file"]
    folder = Path(path.as_posix().removesuffix(file))
    is_training = file == "run/results.json"
    if key["source"]:
        yield from _source(content) if is_training else _test("source", content)
        name, job = "source", "train" if is_training else ""
    elif name := key["method"]:
        yield from _model(content, path, name) if is_training else _test(name, content)
        job = "transfer" if is_training else ""
    elif key["charts"]:
        name, job = f"charts:{key['charts']}", "build"
        yield from _charts(content, name)
    else:
        rows, job = TARGET_FILES[file]
        name = job
        yield from rows(content)
    if (benchmark := folder / f"{job}.tsv").exists():  # written by Snakemake
        with benchmark.open(encoding="utf-8", newline="") as stream:
            yield name, "", "seconds", round(float(next(csv.DictReader(stream, delimiter="\t"))["s"]), 1)


def _scores(method: str, split: str, content: Mapping[str, Any], names: Sequence[str]) -> Iterator[Row]:
    plain = {name.removeprefix("eval_"): value for name, value in content.items()}
    return ((method, split, name, plain[name]) for name in names if name in plain)


def _test(method: str, content: Content) -> Iterator[Row]:
    if isinstance(content, list):  # written by ensembles.py
        content = {row["metric"]: row["value"] for row in content if row["method"] != "data"}
    return _scores(method, "test", content, SCORES)


def _source(content: Content) -> Iterator[Row]:
    yield from _scores("source", "dev", content["dev"], (*DEV_SCORES, "loss"))
    main = "las" if "eval_las" in content["dev"] else "accuracy"
    yield "source", "dev", f"best_{main}", content["best_dev"]
    for name in ("train_sentences", "dev_sentences", "updates"):
        yield "source", "", name, content[name]


def _model(content: Content, path: Path, method: str) -> Iterator[Row]:
    yield method, "", "train_sentences", content["sentences"]
    yield method, "", "empty_charts", content["empty_charts"] or None
    if content["dev"]:
        yield from _scores(method, "dev", content["dev"], DEV_SCORES)
    log = json.loads(path.with_name("log.json").read_text(encoding="utf-8"))
    for entry in log:
        for _, split, name, value in _scores(method, "dev", entry, ("las", "accuracy")):
            yield method, split, f"{name}@{entry['step']}", value
    if ":trial=" in method:
        rates = (entry["learning_rate"] for entry in log if "learning_rate" in entry)
        yield from ((method, "", "learning_rate", next(rates, None)), (method, "", "l2", content["l2"]))


def _charts(content: Content, method: str) -> Iterator[Row]:
    counts = content["counts"]
    for name in ("sentences", "groups", "kept"):
        yield method, "text", name, counts[name]
    yield method, "text", "without_support", counts["without_support"] or None
    for source, mass in counts["dropped_mass"].items():
        yield method, "text", f"dropped_mass:{source}", mass
    read = re.search(r"of (\d+) sentences", content["sentences"])
    yield method, "text", "text_sentences", float(read[1]) if read else None


def _ensembles(content: Content) -> Iterator[Row]:
    return (
        (row["method"], row["split"], row["metric"], row["value"])
        for row in content
        if not isinstance(row["value"], list)  # by sentence, see significance.py
    )


def _analysis(content: Content) -> Iterator[Row]:
    split = "dev" if content["data"].startswith("dev=") else "test"
    yield from (("analysis", split, name, content[name]) for name in ("sentences", "words"))
    for name, chart in content["charts"].items():
        yield ANALYSED[name], split, "median_log_size", chart["median_log_size"]
        yield ANALYSED[name], split, "empty_charts", chart["empty_charts"] or None
        yield from _by_scope(ANALYSED[name], split, chart, ("precision", "recall"))
    for name, distance in content["distance"].items():
        yield from _by_scope(ANALYSED[name], split, distance, ("kl", "error", "diversity"))
        for count in ("unknown_gold", "impossible"):
            yield ANALYSED[name], split, count, distance[count] or None
    for name, measures in content["sources"].items():
        yield from ((f"direct:{name}", split, metric, value) for metric, value in measures.items())


def _by_scope(method: str, split: str, content: Content, names: Sequence[str]) -> Iterator[Row]:
    for name in names:
        yield method, split, name, content["with_boundaries"][name]
        yield method, split, f"{name}_inside", content["without_boundaries"][name]


def _weights(content: Content) -> Iterator[Row]:
    nll = content["nll"]
    yield from (("pool-learned", "dev", f"weight:{n}", value) for n, value in content["weights"].items())
    yield from (("pool-learned", "dev", "nll", nll["learned"]), ("pool", "dev", "nll", nll["uniform"]))
    yield from ((f"direct:{name}", "dev", "nll", value) for name, value in nll["alone"].items())
    for name in ("sentences", "words", "groups"):
        yield "pool-learned", "dev", f"labelled_{name}", content[name]
    yield "pool-learned", "dev", "left_out", content["left_out"]


def _other_weights(content: Content) -> Iterator[Row]:
    for name, value in content["published"].items():
        yield "pool-published", "dev", f"weight:{name}", value
    yield "pool-published", "dev", "updates", content["published_updates"]
    for name, parameters in content["grouped"].items():
        yield from (("pool-grouped", "dev", f"{key}:{name}", value) for key, value in parameters.items())
    yield from ((f"pool-{name}", "dev", "nll", value) for name, value in content["nll"].items())


# Result files of a target, and the name of the job whose time is reported with them.
TARGET_FILES: Mapping[str, tuple[Callable[[Content], Iterator[Row]], str]] = {
    "ensembles.json": (_ensembles, "ensembles"),
    "analysis/analysis.json": (_analysis, "analysis"),
    "weights/run/results.json": (_weights, "weights"),
    "weights/other_weights.json": (_other_weights, ""),
}


def main() -> None:
    """Collect the results of the study named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path, help="configuration of the study")
    parser.add_argument("--data", default=".", help="data folder")
    parser.add_argument("--folder", help="folder of tables, in place of that of the configuration")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    study = read_study(given.config, given.data, given.folder)
    jobs = Jobs(study)
    paths = [Path(path) for path in jobs.results()]
    scores = collect(paths, study.name, study.seeds[0], jobs.stand_ins)
    given.output.write_text(json.dumps(scores, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Tables of ablations: scores by the value of one setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hf_xst.experiments.report.grid import Grid
from hf_xst.experiments.report.reading import TRAINED_POOL, VOTE, Block, Results, method_title
from hf_xst.experiments.report.table import Column, Marks, Table, row

# Of a cell's settings, those that are a method's own.
_METHOD = ("fresh", "start", "upos", "model")
Series = dict[str, dict[str | float, float | Sequence[float]]]
"""Lines of a plot: by name, a score or the scores of several seeds for each value."""


def ablation_names(results: Results, block: Block) -> list[str]:
    """Return the settings that were varied."""
    varied = [method for method in results.methods(block) if method.startswith("ablation/")]
    return sorted({method.partition("/")[2].partition("=")[0] for method in varied})


def ablation_values(results: Results, block: Block, name: str) -> list[str]:
    """Return the values of a setting, numbers first and in their order."""
    start = f"ablation/{name}="
    found = [method.removeprefix(start) for method in results.methods(block) if method.startswith(start)]
    return sorted(found, key=_place)


def ablation_tables(results: Results, marks: Marks, block: Block) -> Iterator[Table]:
    """Give a table for each setting that was varied: a column for each value."""
    for name in ablation_names(results, block):
        values = ablation_values(results, block, name)
        methods = [f"ablation/{name}={value}" for value in values]
        known = results.targets(block, "test", methods)
        grid = Grid(results, block, "test", methods, known)
        unchanged = nearest_method(results, block, methods)
        beside = Grid(results, block, "test", [VOTE, unchanged], known)
        columns = [
            Column("target", ""),
            *(Column(value, group=name, ranked=True) for value in values),
            Column(method_title(VOTE), group="for comparison"),
            Column(f"{method_title(unchanged)}, as set", group="for comparison"),
        ]
        rows = [
            row(marks.cell(target), *grid.scores(target).values(), *beside.scores(target).values())
            for target in known
        ]
        common = grid.common
        if len(common) > 1:
            means = [grid.average(common, each) for each in methods]
            beside_means = [beside.average(common, each) for each in beside.methods]
            rows.append(row(f"average of {len(common)}", *means, *beside_means, summary=True))
        yield Table(
            f"ablation-{_file_name(name)}-{block.name}",
            f"{block.title}: by {name}",
            f"{block.metric}, test files, by {name}: all else is as in the method that stands beside, unless "
            "the study's settings say more; mean and, for several seeds, standard deviation. The average is "
            "over the targets that have every value.",
            tuple(columns),
            tuple(rows),
            marks.notes(known),
        ).finished()


def nearest_method(results: Results, block: Block, ablations: Sequence[str]) -> str:
    """Return the method whose charts and settings differ least from those of ablations; in doubt, pooled."""
    made = {method: _made(results, block, method) for method in results.methods(block)}
    varied = [made[name] for name in ablations if made.get(name)]
    others = [method for method in made if method.startswith("transferred/") and made[method]]
    others.sort(key=lambda method: method != TRAINED_POOL)

    def distance(method: str) -> int:
        return min(len(set(made[method].items()) ^ set(each.items())) for each in varied)

    return min(others, key=distance) if varied and others else TRAINED_POOL


def _made(results: Results, block: Block, method: str) -> dict[str, str]:
    """Return what a trained method's cells say of how it was made, as texts, without seed and target."""
    name = method.partition("/")[2]
    for place, record in results.records.items():
        encoder, task, _, kind, *rest = [*place.split("/"), ""]
        if (encoder, task, kind, rest[0]) == (block.encoder, block.task, "transferred", name):
            settings = dict(record.get("settings", {}))
            own = settings.pop("settings", {})
            charts = [need.rpartition("/")[2] for need in record.get("needs", ()) if "/charts/" in need]
            apart = {key: value for key, value in settings.items() if key in _METHOD}
            return {key: repr(value) for key, value in {**own, **apart, "charts": charts}.items()}
    return {}


def ablation_series(results: Results, block: Block, name: str) -> Series:
    """Return the scores of all seeds by target and value, for lines."""
    values = ablation_values(results, block, name)
    methods = {value: f"ablation/{name}={value}" for value in values}
    series: Series = {}
    for target in results.targets(block, "test", methods.values()):
        by_value = {v: [*results.by_seed(block, target, "test", m).values()] for v, m in methods.items()}
        series[target] = {value: scores for value, scores in by_value.items() if scores}
    return series


def _place(value: str) -> tuple[bool, float, str]:
    try:
        return False, float(value), value
    except ValueError:
        return True, 0.0, value


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)

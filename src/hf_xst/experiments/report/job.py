"""The command `hf-xst report`: a study's report again, from its cells alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_xst.commands.options import option, required
from hf_xst.console import console
from hf_xst.experiments.cells import Graph, read_records
from hf_xst.experiments.config import config_text
from hf_xst.experiments.report.reading import Records
from hf_xst.experiments.report.write import RESULTS, write_report
from hf_xst.experiments.study import read_study


@dataclass(kw_only=True)
class ReportArguments:
    """Write a study's tables and plots from its cells, without any model."""

    cells: str = required("The study's folder (which holds cells/), or a results.json of an earlier report.")
    output: str = required("Folder of the report.")
    config: str | None = option("The study's YAML file: its notes, marks and settings go into the report.")
    title: str | None = option("Title; by default the configuration's or the folder's name.")
    data: str | None = option(
        "Data folder; file names are reported as they are below it, without it by their last parts. With "
        "--config, cells of a folder that were made by other settings are left out."
    )
    searches: list[str] = option(
        "Files trials.json of searches (hf-xst search), for a table of what they found.", []
    )


def report(arguments: ReportArguments) -> None:
    """Write the report.

    Args:
        arguments: see the class.

    Raises:
        ValueError: there are no cells, or the file holds something else.
    """
    records, about = read_cells(Path(arguments.cells))
    if arguments.config is not None and arguments.data is not None and not Path(arguments.cells).is_file():
        records = _present(records, Path(arguments.config), Path(arguments.data))
    if arguments.config is not None:
        about |= about_study(Path(arguments.config))
    if arguments.title is not None:
        about["title"] = arguments.title
    if arguments.searches:
        about["searches"] = [read_search(Path(path)) for path in arguments.searches]
    data = None if arguments.data is None else Path(arguments.data)
    console.print(f"report: {write_report(records, Path(arguments.output), about, data)}", highlight=False)


def _present(records: Records, config: Path, data: Path) -> Records:
    """Keep the cells that the configuration makes today: the folder also holds those of former settings.

    Raises:
        ValueError: there is none, or the study's files are not all there.
    """
    keys = Graph(read_study(config, data).cells(), Path()).keys
    found = {name: record for name, record in records.items() if record["key"] == keys.get(name)}
    if not found:
        raise ValueError(f"none of the {len(records)} cells is of {config} as it is now")
    if len(found) < len(records):
        console.print(f"{len(records) - len(found)} cells of other settings are left out")
    return found


def read_search(path: Path) -> dict[str, Any]:
    """Read what a search has found.

    Raises:
        ValueError: the file holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = {key: content[key] for key in ("model_type", "rule", "treebank", "split", "best")}
        return found | {"trials": [{"score": trial["score"]} for trial in content["trials"]]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error!r}; expected a trials.json of hf-xst search") from error


def read_cells(path: Path) -> tuple[Records, dict[str, Any]]:
    """Read records by name, and what the report begins with.

    Args:
        path: a folder that holds `cells/`, that folder itself, a report's folder, or its `results.json`.

    Raises:
        ValueError: there are no cells, or the file holds something else.
    """
    has_cells = path.name == "cells" or (path / "cells").is_dir()
    file = path / RESULTS if (path / RESULTS).is_file() and not has_cells else path
    if file.is_file():
        return _read_file(file)
    folder = path.parent if path.name == "cells" and not (path / "cells").is_dir() else path
    records = read_records(folder)
    if not records:
        raise ValueError(
            f"{path} holds no cells; expected a folder with cells/ENCODER/TASK/....json, as `hf-xst "
            f"reproduce` writes it, or a {RESULTS}"
        )
    return records, {"title": folder.resolve().name}


def _read_file(path: Path) -> tuple[Records, dict[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        records, about = dict(content["cells"]), dict(content["about"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: {error!r}; expected JSON with `about` and `cells`, as a report's {RESULTS}"
        ) from error
    if not records:
        raise ValueError(f"{path} holds no cells")
    return records, about


def about_study(path: Path) -> dict[str, Any]:
    """Return what a study's configuration says about its report."""
    study = read_study(path)
    return {
        "title": path.stem,
        "command": f"hf-xst reproduce --config {path.name if path.is_absolute() else path}",
        "notes": study.about,
        "marks": study.marks,
        "source_marks": study.source_marks,
        "stand_ins": study.stand_ins,
        "settings": config_text(path),
    }

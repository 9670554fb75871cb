"""What a report consists of, in the order in which it is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hf_xst.experiments.report.ablations import ablation_tables
from hf_xst.experiments.report.charts import correlation_table, distance_table, quality_table, size_table
from hf_xst.experiments.report.curves import curve_table, time_table
from hf_xst.experiments.report.pictures import (
    Picture,
    ablation_pictures,
    curve_pictures,
    difference_pictures,
    distance_pictures,
    pool_picture,
)
from hf_xst.experiments.report.reading import Results
from hf_xst.experiments.report.scores import METHODS_TOLD, full_table, other_table
from hf_xst.experiments.report.searches import search_table
from hf_xst.experiments.report.sources import (
    comparator_table,
    direct_table,
    selection_table,
    source_table,
    weight_table,
)
from hf_xst.experiments.report.summaries import average_table, difference_table, encoder_table, win_table
from hf_xst.experiments.report.table import Marks, Table
from hf_xst.sources.quality import SCOPES


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Args:
        title: of the part.
        pictures: come first.
        tables: come then.
        text: what is to be said before them.
    """

    title: str
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Page:
    """A report.

    Args:
        title: of the study.
        command: what made it.
        notes: what is to be said first.
        settings: the study's configuration, as text.
        sections: the parts that have anything to show.
    """

    title: str
    command: str
    notes: str
    settings: str
    sections: tuple[Section, ...]

    @property
    def tables(self) -> Iterator[Table]:
        """Give all tables."""
        for section in self.sections:
            yield from section.tables

    @property
    def pictures(self) -> Iterator[Picture]:
        """Give all pictures."""
        for section in self.sections:
            yield from section.pictures


def make_page(results: Results, about: Mapping[str, Any]) -> Page:
    """Put a report together.

    Args:
        results: of the study, or of as much as there is of it.
        about: `title`, `command`, `notes`, `settings` (the configuration), `marks` and `source_marks` (what
            is to be said about targets and sources, by code), `stand_ins` (see `Results`), and `searches`
            (see `search_table`), all optional.
    """
    marks = Marks(about.get("marks"))
    source_marks = Marks(about.get("source_marks"))
    sections = [
        dataclasses.replace(section, tables=tuple(table for table in section.tables if table.filled))
        for section in (
            *_sections(results, marks, source_marks),
            Section("Search", (), (search_table(about.get("searches", ())),)),
        )
    ]
    return Page(
        str(about.get("title", "Results")),
        str(about.get("command", "")),
        str(about.get("notes", "")).strip(),
        str(about.get("settings", "")).strip(),
        tuple(section for section in sections if section.tables or section.pictures),
    )


def _sections(results: Results, marks: Marks, source_marks: Marks) -> Iterator[Section]:
    blocks = results.blocks
    yield _scores(results, marks)
    yield Section("Targets not in the paper", (), tuple(other_table(results, marks, b) for b in blocks))
    yield Section(
        "Sources",
        (),
        (
            *(source_table(results, source_marks, block) for block in blocks),
            *(direct_table(results, marks, block) for block in blocks),
            *(selection_table(results, marks, block) for block in blocks),
        ),
    )
    yield _charts(results, marks)
    yield Section(
        "Pools",
        tuple(distance_pictures(results)),
        (
            correlation_table(results),
            *(distance_table(results, marks, block) for block in blocks),
            *(weight_table(results, marks, block) for block in blocks),
        ),
    )
    yield Section(
        "Other ways to combine sources", (), tuple(comparator_table(results, marks, b) for b in blocks)
    )
    yield Section(
        "Ablations",
        tuple(ablation_pictures(results)),
        tuple(table for block in blocks for table in ablation_tables(results, marks, block)),
    )
    yield Section(
        "Course and cost",
        tuple(curve_pictures(results)),
        (*(curve_table(results, marks, block) for block in blocks), time_table(results)),
    )


def _scores(results: Results, marks: Marks) -> Section:
    blocks = results.blocks
    return Section(
        "Scores",
        tuple(difference_pictures(results)),
        (
            average_table(results),
            win_table(results),
            *(full_table(results, marks, block, part) for part in ("test", "dev") for block in blocks),
            *(difference_table(results, marks, block) for block in blocks),
            *(encoder_table(results, task) for task in dict.fromkeys(block.task for block in blocks)),
        ),
        METHODS_TOLD,
    )


def _charts(results: Results, marks: Marks) -> Section:
    scopes = {block: SCOPES if block.task == "tagger" else SCOPES[:1] for block in results.blocks}
    return Section(
        "Charts",
        (pool_picture(),),
        (
            *(size_table(results, marks, block) for block in scopes),
            *(quality_table(results, marks, block, each) for block in scopes for each in scopes[block]),
        ),
    )

"""What a study's configuration says: sources, targets, charts and methods; the cells follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from hf_xst.experiments.cells import Cell
from hf_xst.experiments.checks import check_makeable, check_study, known_names, known_settings
from hf_xst.experiments.config import read_config
from hf_xst.experiments.plans import PUBLISHED_CHARTS, PUBLISHED_METHODS, ChartPlan, Method, Settings
from hf_xst.files import sha256_of


@dataclass(frozen=True)
class Study:
    """What a study's configuration says; a file may say it in part, over another one (see `read_study`).

    Args:
        sources: by name, `train` (files below the data folder), and optionally `split`, `dev`, `dev_split`,
            `test`, `start` for the source that it is fine-tuned from, and `pool: false` for models that are
            only scored beside the others (with `languages`: the languages that they were trained on, and that
            they are not scored on).
        targets: by language code, `text` and `test` (files), `text_split`, `test_split`, and optionally `dev`
            and `dev_split`, `mark` (where treebank or split differ from the published ones), and `stand_in:
            true` where the test file is another one than the published, for averages without such targets.
        encoders: by name, `vectors` (a file name with {code}) or `encoder` (a folder), and settings for
            `train_source` and `transfer` under those names.
        tasks: by name (parser, tagger), settings for `train_source` and `transfer`.
        charts: by name, see `ChartPlan`; those of the paper are always there.
        methods: by name, see `Method`; those of the paper are there unless `published` is false.
        start: the source that training starts from.
        select: choose so many sources for each target by agreement, without labels.
        upos: a tagger's method whose target model gives the coarse tags that parsers read; gold ones for
            `gold` or nothing.
        labelled: sentences for learned weights; 0 for none.
        describe: sizes, quality and distances of charts and pools for each target.
        rules: how the sources' answers are combined without training; `published` is the pool with the
            weights that the published procedure has found.
        sigma: mass kept in charts.
        seeds: of transferred models; source models take the first.
        about: text for the report.
    """

    sources: Mapping[str, Settings]
    targets: Mapping[str, Settings]
    encoders: Mapping[str, Settings]
    tasks: Mapping[str, Settings]
    charts: Mapping[str, Settings] = field(default_factory=dict)
    methods: Mapping[str, Settings] = field(default_factory=dict)
    start: str = "en"
    published: bool = True
    select: int | None = None
    upos: str | None = None
    labelled: int = 0
    describe: bool = False
    rules: Sequence[str] = ("majority", "pool")
    sigma: float = 0.95
    seeds: Sequence[int] = (42,)
    about: str = ""
    data: Path = field(default=Path())

    def __post_init__(self) -> None:
        check_study(self)

    @property
    def plans(self) -> dict[str, ChartPlan]:
        """All chart plans by name."""
        return {
            name: _made(ChartPlan, f"charts: {name}", given)
            for name, given in {**PUBLISHED_CHARTS, **self.charts}.items()
        }

    @property
    def all_methods(self) -> dict[str, Method]:
        """All methods by name."""
        given = {**(PUBLISHED_METHODS if self.published else {}), **self.methods}
        return {name: _made(Method, f"methods: {name}", settings) for name, settings in given.items()}

    @property
    def marks(self) -> dict[str, str]:
        """Where targets differ from the published ones, by target."""
        return _marks(self.targets)

    @property
    def source_marks(self) -> dict[str, str]:
        """Where sources differ from the published ones, by source."""
        return _marks(self.sources)

    @property
    def stand_ins(self) -> list[str]:
        """The targets whose test file stands in for the published one."""
        return [code for code, given in self.targets.items() if given.get("stand_in")]

    def sources_by_start(self) -> list[str]:
        """Return the sources' names, each after the one that it starts from.

        Raises:
            ValueError: a source starts from what is none, or from itself.
        """
        order: list[str] = []
        for code in self.sources:
            line = [code]  # from the source to the first of those that it stands on
            while (start := self.sources[line[-1]].get("start")) is not None:
                if start not in self.sources or start in line:
                    others = ", ".join(each for each in self.sources if each not in line)
                    raise ValueError(
                        f"the source {line[-1]} is to start from {start!r}; expected one of {others}"
                    )
                line.append(start)
            order += [each for each in reversed(line) if each not in order]
        return order

    def cells(self) -> Iterator[Cell]:
        """Give all cells, each after those that it needs.

        Raises:
            ValueError: see `hf_xst.experiments.checks.check_makeable`.
        """
        from hf_xst.experiments.block_cells import BlockCells  # they are made of a study

        check_makeable(self)
        # Taggers come before parsers, which may read their answers.
        tasks = sorted(self.tasks, reverse=True)
        blocks = [BlockCells(self, encoder, task) for encoder in self.encoders for task in tasks]
        yield from (block.source(code) for block in blocks for code in self.sources_by_start())
        for target in self.targets:
            for block in blocks:
                yield from block.target(target)

    def treebank(self, files: Settings) -> str:
        """Write splits and their files as `SPLIT=PATH,...`, paths below the data folder."""
        named = []
        for split, paths in files.items():
            for path in [paths] if isinstance(paths, str) else paths:
                named.append(f"{split}={self.data / path}")
        return ",".join(named)

    def hashes(self, *files: Any) -> dict[str, str]:
        """Return the SHA-256 of each file below the data folder."""
        flat = [path for entry in files if entry for path in ([entry] if isinstance(entry, str) else entry)]
        return {path: _hash(self.data / path) for path in flat}


def read_study(path: Path, data: Path = Path()) -> Study:
    """Read a study from its configuration (see `hf_xst.experiments.config.read_config`).

    Args:
        path: the YAML file.
        data: folder below which the study's files lie.

    Raises:
        ValueError: the configuration is no YAML, or has unknown or lacks necessary entries.
    """
    content = read_config(path)
    known_names(content, [each.name for each in fields(Study) if each.name != "data"], str(path))
    try:
        return Study(**content, data=data)
    except TypeError as error:
        raise ValueError(f"{path}: {error}; see hf_xst.experiments.study.Study for the entries") from error


def _marks(entries: Mapping[str, Settings]) -> dict[str, str]:
    return {code: given["mark"] for code, given in entries.items() if "mark" in given}


def _made(kind: Any, what: str, given: Settings) -> Any:
    known_settings(given, kind, what)
    return kind(**given)


@cache
def _hash(path: Path) -> str:
    return sha256_of(path)

"""What the cells of one encoder and one task of a study have in common: names, settings, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_xst.experiments.checks import GOLD
from hf_xst.experiments.plans import Settings
from hf_xst.experiments.scoring import Place
from hf_xst.experiments.study import Study

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """The cells of one encoder and one task."""

    study: Study
    encoder: str
    task: str

    # -- names ----------------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The names' common beginning."""
        return f"{self.encoder}/{self.task}"

    def source_name(self, code: str) -> str:
        """Name the cell of a source model."""
        return f"{self.where}/source/{code}"

    def cell_name(self, target: str, kind: str, *rest: str) -> str:
        """Name a cell of a target."""
        return "/".join((self.where, target, kind, *rest))

    def candidates(self, target: str) -> list[str]:
        """Return the sources that may be pooled for a target: all but its own language's."""
        return [
            code for code, given in self.study.sources.items() if code != target and given.get("pool", True)
        ]

    def beside(self, target: str) -> list[str]:
        """Return the models that are scored beside the sources, unless they know the target's language."""
        return [
            code
            for code, given in self.study.sources.items()
            if not given.get("pool", True) and target not in given.get("languages", ())
        ]

    # -- what cells have in common --------------------------------------------------------------------

    def settings(self, job: str) -> dict[str, Any]:
        """Merge a job's settings: the task's, the encoder's, and, last, the encoder's for this task."""
        encoder = self.study.encoders[self.encoder]
        parts = (self.study.tasks[self.task], encoder, encoder.get(self.task, {}))
        return merged(*(part.get(job, {}) for part in parts))

    def beginning(self, given: Settings, work: Path, settings: Settings) -> dict[str, Any]:
        """Complete the settings of a source's training: by the encoder, or by the source it starts from.

        Args:
            given: what the study says about the source.
            work: folder of the cell.
            settings: of `train_source`.
        """
        start = given.get("start")
        if start is None:
            encoder = self.study.encoders[self.encoder].get("encoder")
            return {**settings, "encoder": None if encoder is None else str(self.study.data / encoder)}
        # A start has its own configuration; only the source itself may say to change some of it.
        own = {key: value for key, value in settings.items() if key not in ("encoder_layers", "model")}
        changed = given.get("train_source", {}).get("model", [])
        return {**own, "model": changed, "start": str(root_of(work) / self.source_name(start))}

    def vectors(self, code: str) -> str | None:
        """Return the file of a language's word vectors, if models read by vectors."""
        pattern = self.study.encoders[self.encoder].get("vectors")
        return None if pattern is None else str(self.study.data / pattern.format(code=code))

    def word_hash(self, code: str) -> dict[str, str]:
        """Return the hash of what words are read by: a language's vectors, or the encoder."""
        pattern = self.study.encoders[self.encoder].get("vectors")
        if pattern is not None:
            return self.study.hashes(pattern.format(code=code))
        return self.study.hashes(f"{self.study.encoders[self.encoder]['encoder']}/model.safetensors")

    def needs(self, target: str, *more: str) -> list[str]:
        """Name the cells that every cell of a target needs, and some more."""
        chosen = [self.cell_name(target, "selection")] if self.study.select else []
        sources = dict.fromkeys([*self.candidates(target), self.study.start])
        return [*(self.source_name(code) for code in sources), *chosen, *more]

    def chosen(self, target: str, results: Results) -> list[str]:
        """Return the sources that are pooled for a target."""
        if not self.study.select:
            return self.candidates(target)
        return list(results[self.cell_name(target, "selection")]["chosen"])

    def planned(self, target: str, plan: str, results: Results) -> list[str]:
        """Return the sources of a plan of charts: those it names, but the target's own, or the chosen ones.

        Raises:
            ValueError: none is left.
        """
        named = self.study.plans[plan].sources
        codes = [code for code in named or () if code in self.candidates(target)]
        if named and not codes:
            raise ValueError(
                f"charts: {plan}: found the sources {', '.join(named)}; none may be pooled for {target}"
            )
        return codes or self.chosen(target, results)

    def annotator(self, upos: str | None) -> str | None:
        """Return the method of the tagger whose answers a parser reads, if it reads any."""
        method = (upos or self.study.upos) if self.task == "parser" else None
        return None if method == GOLD else method

    def annotator_cells(self, target: str, upos: str | None) -> list[str]:
        """Name the cell of the tagger whose answers a parser reads, or none."""
        method = self.annotator(upos)
        if method is None:
            return []
        seeds = self.study.all_methods[method].seeds or self.study.seeds
        return [f"{self.encoder}/tagger/{target}/transferred/{method}/{seeds[0]}"]

    def place(self, work: Path, target: str, upos: str | None = None) -> Place:
        """Say where a target's files and models are.

        Args:
            work: folder of any cell of the study.
            target: the target's code.
            upos: see `Study`.
        """
        root, given = root_of(work), self.study.targets[target]
        files = {"text": given["text"], "test": given["test"]} | (
            {"dev": given["dev"]} if "dev" in given else {}
        )
        return Place(
            root=root,
            models={code: root / self.source_name(code) for code in self.study.sources},
            treebanks={split: self.study.treebank({split: paths}) for split, paths in files.items()},
            splits={split: given.get(f"{split}_split", split) for split in files},
            vectors=self.vectors(target),
            annotator=next((str(root / name) for name in self.annotator_cells(target, upos)), None),
            states=root / "states" / target,
        )

    def content(self, target: str, *files: str, **more: Any) -> dict[str, Any]:
        """Collect what a cell's result depends on: some of the target's files, its words, and more."""
        given = self.study.targets[target]
        named = {name: given[name] for name in given if name.split("_")[0] in files}
        hashes = self.study.hashes(*(given.get(name) for name in files))
        return {"given": named, "data": hashes, "words": self.word_hash(target), **more}


def root_of(work: Path) -> Path:
    """Return the folder of all cells' files, given that of one cell."""
    return next(folder for folder in work.parents if folder.name == "work")


def merged(*parts: Settings) -> dict[str, Any]:
    """Join settings, later ones winning; lists are appended to each other."""
    found: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            joined = isinstance(value, list) and key in found
            found[key] = [*found[key], *value] if joined else value
    return found

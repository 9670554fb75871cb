"""Gather what is pushed: allowed files, public words of a model's vocabulary, readable columns of charts."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, Features, List, Value, load_dataset

from hf_xst.charts.dataset import ChartInfo, shards_in
from hf_xst.data import WordVectors, read_vectors
from hf_xst.files import CHARTS, MODEL
from hf_xst.hub.card import README
from hf_xst.hub.pictures import TABLE, TREE
from hf_xst.hub.run_records import EXAMPLE
from hf_xst.hub.texts import drawn_part
from hf_xst.inference.annotation import TAGGER_FOLDER
from hf_xst.models.kinds import model_class
from hf_xst.models.pretrained_words import TOKENIZER_FILES
from hf_xst.models.words import WORDS_FILE, VectorTable
from hf_xst.remote import Kind
from hf_xst.sources.loading import load_model

_WEIGHTS = r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json"
_OTHERS = "|".join(re.escape(name) for name in (MODEL, WORDS_FILE, *TOKENIZER_FILES))
_ALLOWED = {
    "model": re.compile(rf"({TAGGER_FOLDER}/)?({_WEIGHTS}|{_OTHERS})|LICENSE"),
    "dataset": re.compile(rf"{re.escape(CHARTS)}|data/train-[\d-]+of-\d+\.parquet|LICENSE"),
}
_PICTURE = re.compile(r"""(?:\]\(|src=["'])(?:\./)?([\w./-]+\.(?:svg|png))""")


@dataclass(frozen=True)
class Contents:
    """The files of a folder that are pushed.

    Attributes:
        kind: `"model"` or `"dataset"`.
        files: paths by name in the repository.
        excluded: names of the files and, with a slash, folders that are not pushed.
    """

    kind: Kind
    files: dict[str, Path]
    excluded: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> Contents:
        """Select the allowed files, the card, and the pictures that the card shows.

        Raises:
            ValueError: the folder contains neither a complete model nor charts, or both.
        """
        kind = _kind(folder)
        files = dict(sorted(_files(folder)))
        card = files[README].read_text(encoding="utf-8") if README in files else ""
        shown = {README, *_PICTURE.findall(card)}
        selected = {name: path for name, path in files.items() if name in shown or is_allowed(name, kind)}
        rest = [name.partition("/") for name in files if name not in selected]
        return cls(kind, selected, tuple(dict.fromkeys(first + slash for first, slash, _ in rest)))

    def secure(self, folder: Path) -> None:
        """Reject links in the user's folder in place of text and pictures; strip hidden data from pictures.

        Raises:
            ValueError: a file is a link, or a picture is broken.
        """
        for name, path in self.files.items():
            is_linked = (folder / name).resolve() != folder.resolve() / name
            if is_linked and path.suffix in ("", ".md", ".svg", ".png"):
                raise ValueError(f"{folder / name} is a link; replace it by the file that is to be pushed")
            if path.suffix == ".png":
                try:
                    content = drawn_part(path.read_bytes())
                except ValueError as error:
                    raise ValueError(f"{folder / name} is not a valid PNG picture ({error})") from error
                path.unlink()
                path.write_bytes(content)


def is_allowed(name: str, kind: Kind) -> bool:
    """Check a file name against the list of allowed names; the card and its pictures are not in the list."""
    return _ALLOWED[kind].fullmatch(name) is not None


def link_files(folder: Path, target: Path) -> None:
    """Link all files of a folder into another one, where some can be replaced; what a card writes is copied.

    Files that are never pushed are linked too: the card is generated from them. Links are hard, so that
    replacing one leaves the original alone; where the file system has none, files are copied.
    """
    for name, path in _files(folder):
        link = target / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if name not in (README, TREE, TABLE, EXAMPLE):
            with suppress(OSError):  # another file system or owner
                link.hardlink_to(path.resolve())
        if not link.exists():
            shutil.copyfile(path, link)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(segment.startswith(".") for segment in name.split("/")):
            yield name, path


def _kind(folder: Path) -> Kind:
    if not folder.is_dir():
        raise ValueError(
            f"folder {folder} does not exist; pass the --output of train-source, transfer or build-charts"
        )
    has_charts = (folder / CHARTS).is_file() and bool(shards_in(folder))
    if has_charts and (folder / MODEL).is_file():
        raise ValueError(
            f"{folder} contains a model ({MODEL}) and charts ({CHARTS}); move one of them to another folder"
        )
    if has_charts:
        return "dataset"
    if not (folder / MODEL).is_file() or not any(folder.glob("model*.safetensors")):
        pickled = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
        hint = f"; pickled weights are never pushed: save {pickled[0]} as safetensors" if pickled else ""
        raise ValueError(
            f"{folder} contains neither a complete model ({MODEL} and model.safetensors) nor charts "
            f"({CHARTS} and data/train-*.parquet){hint}"
        )
    return "model"


# -- words of a model ------------------------------------------------------------------------------------


def keep_public_words(folder: Path, vectors: str | None) -> str:
    """Remove the words from a model's vocabulary that a public vector file lacks.

    A vocabulary consists of the words of a vector file, never of those of training text. If that file is not
    public as a whole, `vectors` names one that is.

    Changed files are replaced in the model's folder; targets of links stay unchanged.

    Returns:
        A description of the vocabulary.

    Raises:
        ValueError: the vector file is not recorded, or the vectors were trained, so that comparing them
            with the file would reveal which words the training text contains.
    """
    model = load_model(str(folder))
    table = model.encoder.words
    assert isinstance(table, VectorTable)
    if table.space is None:
        raise ValueError(
            f"the configuration does not record which vector file the words of {WORDS_FILE} come from; pass "
            "--vocabulary all to publish every word"
        )
    if not table.is_frozen:
        raise ValueError(
            "the word vectors were trained: comparing them with their file reveals which words the training "
            "text contains. Pass --vocabulary all to publish them anyway"
        )
    words = table.table.words
    if vectors is None:
        name = table.space["name"]
        return f"the {len(words):,} words of the vector file {name} (if it is not public, pass --vectors)"
    public = set(read_vectors(vectors, vocabulary=words).words)
    kept = [row for row, word in enumerate(words) if word in public]
    if len(kept) < len(words):
        rows = table.vectors.detach().float().cpu().numpy()[np.array(kept, dtype=np.int64)]
        kept_words = [words[row] for row in kept]
        model.replace_word_vectors(WordVectors(kept_words, rows, table.space["name"], table.space["sha256"]))
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            model.save_pretrained(temporary)
            for path in [*folder.glob("model*.safetensors"), *folder.glob("model.safetensors.index.json")]:
                path.unlink()
            for path in Path(temporary).iterdir():
                if is_allowed(path.name, "model"):
                    path.replace(folder / path.name)
    removed = len(words) - len(kept)
    return f"{len(kept):,} words that {Path(vectors).name} contains too; {removed:,} others are not pushed"


# -- columns of charts -----------------------------------------------------------------------------------


def add_readable_columns(folder: Path, info: ChartInfo) -> None:
    """Add to the charts in a folder columns that name the allowed candidates of each word."""
    for path in shards_in(folder):
        rows = load_dataset("parquet", data_files={"train": [str(path)]}, split="train")
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as temporary:
            with_readable_columns(rows, info).to_parquet(temporary.name)
        Path(temporary.name).replace(path)  # the target of a link stays unchanged


def with_readable_columns(rows: Dataset, info: ChartInfo) -> Dataset:
    """Return charts with columns that name the allowed candidates of each word; other columns stay."""
    kind = model_class(info.model_type)

    def readable(row: dict[str, Any]) -> dict[str, Any]:
        return {**kind.readable_candidates(row["words"], allowed_candidates(row), info.names)}

    names = kind.readable_candidates([], [], info.names)
    kept = rows.remove_columns([name for name in names if name in rows.features])
    added = dict.fromkeys(names, List(List(Value("string"))))
    return kept.map(readable, features=Features({**kept.features, **added}))


def allowed_candidates(row: Mapping[str, Any]) -> list[list[int]]:
    """Return each group's allowed candidates in ascending order: those kept, and each source's best."""
    return [
        sorted({*row["candidates"][start:end], *(best[group] for best in row["source_best"])} - {-1})
        for group, (start, end) in enumerate(pairwise(row["offsets"]))
    ]

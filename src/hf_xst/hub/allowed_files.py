"""What goes to the Hub: files of an allowed list, gathered in a folder aside."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hf_xst.charts.dataset import PROVENANCE, shards_in
from hf_xst.inference.annotation import ANNOTATOR_FOLDER
from hf_xst.models.pretrained_words import TOKENIZER_FILES
from hf_xst.models.words import WORDS_FILE
from hf_xst.remote import Kind

CARD = "README.md"
CONFIG = "config.json"
_WEIGHTS = r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json"
_OTHERS = "|".join(re.escape(name) for name in (CONFIG, WORDS_FILE, *TOKENIZER_FILES))
ALLOWED = {
    "model": re.compile(rf"({ANNOTATOR_FOLDER}/)?({_WEIGHTS}|{_OTHERS})|LICENSE"),
    "dataset": re.compile(rf"{re.escape(PROVENANCE)}|data/train-[\d-]+of-\d+\.parquet|LICENSE"),
}
_PICTURE = re.compile(r"""(?:\]\(|src=["'])(?:\./)?([\w./-]+\.(?:svg|png))""")


@dataclass(frozen=True)
class AllowedFiles:
    """The files that go, and those that stay.

    Attributes:
        kind: `"model"` or `"dataset"`.
        files: by their names in the repository.
        left: what stays here, folders with a slash at the end.
    """

    kind: Kind
    files: dict[str, Path]
    left: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all files that go."""
        return sum(path.stat().st_size for path in self.files.values())


def allowed_files(folder: Path) -> AllowedFiles:
    """Choose what goes: files of the allowed list, the card, and pictures that the card shows.

    Raises:
        ValueError: the folder holds neither a whole model nor charts, or pickled weights.
    """
    kind = _kind(folder)
    every = dict(sorted(_files(folder)))
    pictures = set(_PICTURE.findall(every[CARD].read_text(encoding="utf-8"))) if CARD in every else set()
    chosen = {
        name: path
        for name, path in every.items()
        if name == CARD or name in pictures or is_allowed(name, kind)
    }
    left = [f"{name.split('/')[0]}/" if "/" in name else name for name in every if name not in chosen]
    return AllowedFiles(kind, chosen, tuple(dict.fromkeys(left)))


def is_allowed(name: str, kind: Kind) -> bool:
    """Say whether a file's name is on the list for models or charts, the card and pictures apart."""
    return ALLOWED[kind].fullmatch(name) is not None


def gather(folder: Path, aside: Path) -> None:
    """Show a folder's files in another one, by links, so that some can be replaced there.

    Also those that never go are there: the card tells what the run's records say.
    """
    for name, path in _files(folder):
        link = aside / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if name == CARD:  # is written to
            shutil.copyfile(path, link)
        else:
            link.symlink_to(path.resolve())


def _kind(folder: Path) -> Kind:
    if not folder.is_dir():
        raise ValueError(
            f"there is no folder {folder}; give the --output of train-source, transfer or build-charts"
        )
    if (folder / PROVENANCE).is_file() and shards_in(folder):
        if (folder / CONFIG).is_file():
            raise ValueError(
                f"{folder} holds a model ({CONFIG}) and charts ({PROVENANCE}), with them sentences: which is "
                "meant? Move one of them to a folder of its own"
            )
        return "dataset"
    if not (folder / CONFIG).is_file() or not any(folder.glob("model*.safetensors")):
        pickled = sorted(path.name for path in folder.glob("*.bin") if path.name.startswith("pytorch_model"))
        held = f" (pickled weights are never sent: save {pickled[0]} as safetensors)" if pickled else ""
        raise ValueError(
            f"{folder} holds neither a whole model (config.json and model.safetensors) nor charts "
            f"({PROVENANCE} and data/train-*.parquet){held}"
        )
    return "model"


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part.startswith(".") for part in name.split("/")):
            yield name, path

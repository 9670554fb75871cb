"""Locate the files of treebanks. Splits are named, or part of a UD file name; they are never guessed.

Accepted sources (with data roots, a language code takes precedence over a file of the same name):

- a mapping from split to one or several files;
- ``train=PATH,dev=PATH``, the same as a string (repeating a split concatenates its files);
- a file (CoNLL-U, or JSON lines with suffix ``.jsonl``), whose single split is called ``data``;
- a folder with files ``*-ud-(train|dev|test).conllu[.gz]``; a split without such a file is concatenated from
  its parts ``*-ud-train-a.conllu``, ``*-ud-train-b-1.conllu``, by name; other files are ignored;
- the name of a treebank's folder (``UD_French-GSD``) under the data roots;
- a language code (``pt``): the paper's treebanks of that language in the paper's order, or for other
  languages all treebanks whose file names start with the code, sorted by name;
- ``pt:Bosque+GSD``: these treebanks of a language, in this order.

The folder of a treebank may exist under several roots, with different splits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PathLike = str | os.PathLike[str]
SplitFiles = dict[str, list[Path]]
TreebankSource = PathLike | Mapping[str, PathLike | Sequence[PathLike]]

SPLITS = ("train", "dev", "test")
_UD_FILE = re.compile(
    r"(?P<stem>[^.].*)-ud-(?P<split>train|dev|test)(?P<part>(-([a-z]|\d+))*)\.conllu(\.gz)?"
)
LANGUAGE_CODE = re.compile(r"(?P<code>[a-z]{2,3})(:(?P<names>[^/\\]+))?")
SPLIT_FILE = re.compile(r"\s*(?P<split>\w+)=(?P<path>.+)")


class Language(NamedTuple):
    """A language of the paper; `treebanks` are concatenated in this order."""

    code: str
    name: str
    treebanks: tuple[str, ...]


LANGUAGES = {
    language.code: language
    for language in (
        Language("fa", "Persian", ("Seraji",)),
        Language("ar", "Arabic", ("PADT",)),
        Language("id", "Indonesian", ("GSD",)),
        Language("ko", "Korean", ("GSD", "Kaist")),
        Language("tr", "Turkish", ("IMST",)),
        Language("hi", "Hindi", ("HDTB",)),
        Language("hr", "Croatian", ("SET",)),
        Language("he", "Hebrew", ("HTB",)),
        Language("bg", "Bulgarian", ("BTB",)),
        Language("it", "Italian", ("ISDT",)),
        Language("pt", "Portuguese", ("Bosque", "GSD")),
        Language("fr", "French", ("GSD",)),
        Language("es", "Spanish", ("GSD", "AnCora")),
        Language("no", "Norwegian", ("Bokmaal", "Nynorsk")),
        Language("da", "Danish", ("DDT",)),
        Language("sv", "Swedish", ("Talbanken",)),
        Language("nl", "Dutch", ("Alpino", "LassySmall")),
        Language("de", "German", ("GSD",)),
        Language("en", "English", ("EWT",)),
    )
}
SOURCES = ("en", "ar", "es", "fr", "de")
DISTANT = ("fa", "ar", "id", "ko", "tr", "hi", "hr", "he")
NEARBY = ("bg", "it", "pt", "fr", "es", "no", "da", "sv", "nl", "de")


def treebank_files(
    source: TreebankSource, *, data_roots: PathLike | Sequence[PathLike] = ()
) -> SplitFiles | None:
    """Locate the files of each split; return None if the source may only exist on the Hub.

    Raises:
        ValueError: The source is ambiguous or has no files; the message lists the candidates.
        FileNotFoundError: A file or data root does not exist.
    """
    if isinstance(source, Mapping):
        return _check_files(source)
    roots = _check_roots(data_roots)
    if isinstance(source, str):
        if roots and (match := LANGUAGE_CODE.fullmatch(source)):
            return _language_files(match["code"], match["names"], roots)
        if source.startswith("UD_") and not Path(source).exists():
            files = _merge_folders([root / source for root in roots])
            if not files:
                raise ValueError(f"no files of {source} under {_join(roots) or 'any data root (none given)'}")
            return files
        if SPLIT_FILE.fullmatch(source) and not Path(source).exists():
            return _parse_assignments(source)
    path = Path(source)
    if path.is_dir():
        return _merge_folders([path]) or _refuse_folder(path)
    if path.exists():
        return {"data": [path]}
    if not isinstance(source, str) or path.is_absolute() or path.name.endswith((".conllu", ".jsonl", ".gz")):
        raise FileNotFoundError(f"{path} does not exist")
    return None


def canonical_split(name: str) -> str:
    """Return the Universal Dependencies name of a split: ``validation`` is ``dev``."""
    return "dev" if name == "validation" else name


def ordered(splits: Iterable[str]) -> list[str]:
    """Sort splits: train, dev and test first, then the others in their original order."""
    names = list(splits)
    return [name for name in SPLITS if name in names] + [name for name in names if name not in SPLITS]


def _check_files(source: Mapping[str, PathLike | Sequence[PathLike]]) -> SplitFiles:
    files: SplitFiles = {}
    for name, paths in source.items():
        split = canonical_split(name)
        if split in files:
            raise ValueError("found both 'validation' and 'dev', which are the same split; use one of them")
        files[split] = [Path(path) for path in _as_list(paths)]
        for path in files[split]:
            if not path.is_file():
                raise FileNotFoundError(f"split {name}: {path} does not exist")
    if not files or not all(files.values()):
        raise ValueError("found a split without files, expected at least one file per split")
    return files


def _parse_assignments(source: str) -> SplitFiles:
    files: dict[str, list[PathLike]] = {}
    for assignment in source.split(","):
        match = SPLIT_FILE.fullmatch(assignment)
        if not match:
            raise ValueError(f"found {assignment!r} in {source!r}, expected SPLIT=PATH,SPLIT=PATH,...")
        files.setdefault(match["split"], []).append(match["path"])
    return _check_files(files)


def _language_files(code: str, names: str | None, roots: Sequence[Path]) -> SplitFiles:
    folders: dict[str, list[Path]] = {}  # by name of the treebank
    for root in roots:
        for folder in sorted(root.glob("UD_*-*")):
            names_found = (file.name for each in _merge_folders([folder]).values() for file in each)
            if any(re.split("-ud-|_", name)[0] == code for name in names_found):
                folders.setdefault(folder.name.rpartition("-")[2], []).append(folder)
    if names:
        selected = tuple(names.split("+"))
    else:
        selected = LANGUAGES[code].treebanks if code in LANGUAGES else tuple(sorted(folders))
    missing = [name for name in selected if name not in folders]
    if missing or not selected:
        raise ValueError(
            f"language {code}: no files of {' and '.join(missing) or 'any treebank'} under {_join(roots)}; "
            f"available treebanks of {code}: {', '.join(sorted(folders)) or 'none'}. "
            f"Add a data root, or select treebanks as {code}:NAME+NAME"
        )
    files: SplitFiles = {}
    for name in selected:
        for split, paths in _merge_folders(folders[name]).items():
            files.setdefault(split, []).extend(paths)
    return {split: files[split] for split in ordered(files)}


def _merge_folders(folders: Sequence[Path]) -> SplitFiles:
    """Return the file of each split, or else its parts, from those folders of a treebank that exist."""
    files: SplitFiles = {}
    parts: dict[str, dict[str, Path]] = {}  # by split and name
    for folder in folders:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if match := _UD_FILE.fullmatch(path.name):
                split, name = match["split"], path.name.removesuffix(".gz") if match["part"] else ""
                other = parts.setdefault(split, {}).setdefault(name, path)
                if other != path:
                    raise ValueError(f"found split {split} twice, in {other} and in {path}")
    for split, found in parts.items():
        files[split] = [found[""]] if "" in found else list(found.values())
        first, last = files[split][0], files[split][-1]
        if (first.parent, first.name.split("-ud-")[0]) != (last.parent, last.name.split("-ud-")[0]):
            raise ValueError(f"found parts of split {split} of two treebanks, {first} and {last}")
    return {split: files[split] for split in ordered(files)}


def _refuse_folder(folder: Path) -> SplitFiles:
    names = sorted(path.name for path in folder.iterdir())
    raise ValueError(
        f"{folder}: found {', '.join(names[:5]) or 'no files'}{', ...' if len(names) > 5 else ''}, "
        "expected files called *-ud-train.conllu, *-ud-dev.conllu or *-ud-test.conllu, optionally with .gz; "
        "pass files with other names by split (train=PATH,test=PATH)"
    )


def _check_roots(data_roots: PathLike | Sequence[PathLike]) -> list[Path]:
    roots: dict[Path, Path] = {}  # without duplicates
    for root in map(Path, _as_list(data_roots)):
        if not root.is_dir():
            raise FileNotFoundError(f"data root {root} does not exist")
        roots.setdefault(root.resolve(), root)
    return list(roots.values())


def _as_list(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _join(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))

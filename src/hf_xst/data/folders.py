"""From what a user names to the files of each split; splits are named or in UD's file names, never guessed.

Accepted (with data roots, a code stays a code even where a file is called the same):

- a mapping from split to one or several files;
- ``train=PATH,dev=PATH``, the same in one string (a split named twice joins its files);
- a file (CoNLL-U, or JSON lines called ``.jsonl``), whose sentences are the one split ``data``;
- a folder, read by exactly ``*-ud-(train|dev|test).conllu[.gz]``;
- the name of a treebank's folder (``UD_French-GSD``), found under the data roots;
- a language code (``pt``), found under the data roots: the paper's treebanks of that language joined in the
  paper's order, or for other languages all treebanks whose files begin with the code, sorted by name;
- ``pt:Bosque+GSD``: these treebanks of a language, joined in this order.

A treebank's folder may lie under several roots, with other splits under each.
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
_UD_FILE = re.compile(r"(?P<stem>[^.].*)-ud-(?P<split>train|dev|test)\.conllu(\.gz)?")
# How a treebank may be written: a language's code with names, or files of parts.
CODE = re.compile(r"(?P<code>[a-z]{2,3})(:(?P<names>[^/\\]+))?")
ASSIGNMENT = re.compile(r"\s*(?P<split>\w+)=(?P<path>.+)")


def treebank_files(
    source: TreebankSource, *, data_roots: PathLike | Sequence[PathLike] = ()
) -> SplitFiles | None:
    """Find the files of each split, or give None where the source names nothing on this machine.

    Args:
        source: any of the forms above.
        data_roots: the folder or folders in which treebanks' folders lie.

    Raises:
        ValueError: the source is ambiguous, or what it names has no files; the message lists what was found.
        FileNotFoundError: a file or root is missing.
    """
    if isinstance(source, Mapping):
        return _named_files(source)
    roots = _existing_roots(data_roots)
    if isinstance(source, str):
        if roots and (found := CODE.fullmatch(source)):
            return _language_files(found["code"], found["names"], roots)
        if source.startswith("UD_") and not Path(source).exists():
            return _treebank_files(source, roots)
        if ASSIGNMENT.fullmatch(source) and not Path(source).exists():
            return _assigned_files(source)
    path = Path(source)
    if path.is_dir():
        return {split: [file] for split, file in _folder_files(path).items()} or _refuse_folder(path)
    if path.exists():
        return {"data": [path]}
    if not isinstance(source, str) or path.is_absolute() or path.name.endswith((".conllu", ".jsonl", ".gz")):
        raise FileNotFoundError(f"there is no file or folder {path}")
    return None


def canonical_split(name: str) -> str:
    """The split's name in Universal Dependencies: ``validation`` is ``dev``."""
    return "dev" if name == "validation" else name


def ordered(splits: Iterable[str]) -> list[str]:
    """Train, dev and test first, other names after them in their own order."""
    names = list(splits)
    return [name for name in SPLITS if name in names] + [name for name in names if name not in SPLITS]


def _named_files(source: Mapping[str, PathLike | Sequence[PathLike]]) -> SplitFiles:
    files: SplitFiles = {}
    for name, paths in source.items():
        split = canonical_split(name)
        if split in files:
            raise ValueError(
                "found both 'validation' and 'dev', expected one of the two names for the same split"
            )
        files[split] = [Path(path) for path in _as_list(paths)]
        for path in files[split]:
            if not path.is_file():
                raise FileNotFoundError(f"split {name}: there is no file {path}")
    if not all(files.values()) or not files:
        raise ValueError(
            "found a split without files, expected at least one file for each split that is named"
        )
    return files


def _assigned_files(source: str) -> SplitFiles:
    named: dict[str, list[PathLike]] = {}
    for part in source.split(","):
        found = ASSIGNMENT.fullmatch(part)
        if not found:
            raise ValueError(f"found {part!r} in {source!r}, expected SPLIT=PATH,SPLIT=PATH,...")
        named.setdefault(found["split"], []).append(found["path"])
    return _named_files(named)


def _language_files(code: str, names: str | None, roots: Sequence[Path]) -> SplitFiles:
    here = _treebanks_of(code, roots)
    if names:
        wanted = tuple(names.split("+"))
    elif code in LANGUAGES:
        wanted = LANGUAGES[code].treebanks
    else:
        wanted = tuple(sorted(here))
    missing = [name for name in wanted if name not in here]
    if missing or not wanted:
        raise ValueError(
            f"language {code}: no files of {' and '.join(missing) or 'any treebank'} under {_listed(roots)}; "
            f"treebanks of {code} there: {', '.join(sorted(here)) or 'none'}. "
            f"Add a data root, or name those to use as {code}:NAME+NAME"
        )
    joined: SplitFiles = {}
    for name in wanted:
        for split, file in _merged(here[name]).items():
            joined.setdefault(split, []).append(file)
    return {split: joined[split] for split in ordered(joined)}


def _treebanks_of(code: str, roots: Sequence[Path]) -> dict[str, list[Path]]:
    """The folders of each treebank of a language, by the treebank's name."""
    found: dict[str, list[Path]] = {}
    for root in roots:
        for folder in sorted(root.glob("UD_*-*")):
            if any(
                file.name.split("-ud-")[0].split("_")[0] == code for file in _folder_files(folder).values()
            ):
                found.setdefault(folder.name.rpartition("-")[2], []).append(folder)
    return found


def _treebank_files(name: str, roots: Sequence[Path]) -> SplitFiles:
    files = _merged([root / name for root in roots if (root / name).is_dir()])
    if not files:
        raise ValueError(f"no files of {name} under {_listed(roots) or 'any data root (none is given)'}")
    return {split: [files[split]] for split in ordered(files)}


def _merged(folders: Sequence[Path]) -> dict[str, Path]:
    """Merge the splits of one treebank's folders."""
    merged: dict[str, Path] = {}
    for folder in folders:
        for split, file in _folder_files(folder).items():
            _add_once(merged, split, file)
    return merged


def _folder_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir() if folder.is_dir() else ()):
        if found := _UD_FILE.fullmatch(path.name):
            _add_once(files, found["split"], path)
    return {split: files[split] for split in ordered(files)}


def _add_once(files: dict[str, Path], split: str, file: Path) -> None:
    if split in files:
        raise ValueError(
            f"found split {split} twice, in {files[split]} and in {file}; remove one or name the files"
        )
    files[split] = file


def _refuse_folder(folder: Path) -> SplitFiles:
    names = sorted(path.name for path in folder.iterdir())
    raise ValueError(
        f"{folder}: found {', '.join(names[:5]) or 'nothing'}{', ...' if len(names) > 5 else ''}, "
        "expected files called *-ud-train.conllu, *-ud-dev.conllu or *-ud-test.conllu, or the same with .gz; "
        "files with other names are given by split (train=PATH,test=PATH)"
    )


def _existing_roots(data_roots: PathLike | Sequence[PathLike]) -> list[Path]:
    roots: dict[Path, Path] = {}
    for root in map(Path, _as_list(data_roots)):
        if not root.is_dir():
            raise FileNotFoundError(f"there is no data root {root}")
        roots.setdefault(root.resolve(), root)  # a root given twice is one root
    return list(roots.values())


def _as_list(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


class Language(NamedTuple):
    """A language as the experiments know it.

    Attributes:
        code: the code that its treebanks' files begin with.
        name: its name in English, as in the treebanks' folder names.
        treebanks: the names of the treebanks that are joined, in this order.
    """

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

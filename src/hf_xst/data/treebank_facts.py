"""What treebanks are called, their language and their licence, as far as their files say so for certain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from hf_xst.data.folders import ASSIGNMENT, CODE, LANGUAGES, canonical_split, treebank_files

_UD_FOLDER = re.compile(r"UD_(?P<language>[^-/]+)-(?P<name>[^/]+)")
_UD_FILE = re.compile(r"(?P<code>[a-z]{2,3})_\w+-ud-(?:train|dev|test)\.conllu(?:\.gz)?")
_LICENCE_FILES = ("LICENSE.txt", "LICENSE", "LICENCE.txt", "README.md", "README.txt")
_LICENCES = (
    re.compile(r"creativecommons\.org/licenses/by(?P<kind>(?:-nc|-sa|-nd)*)/(?P<version>\d\.\d)", re.I),
    re.compile(r"\bCC[ -]BY(?P<kind>(?:-NC|-SA|-ND)*)[ -](?P<version>\d\.\d)", re.I),
    re.compile(
        r"Attribution(?P<kind>(?:[ -](?:Non-?Commercial|Share-?Alike|No-?Derivatives|NoDerivs))*)"
        r"[ -](?P<version>\d\.\d)",
        re.I,
    ),
)
_KINDS = {"noncommercial": "nc", "sharealike": "sa", "noderivatives": "nd", "noderivs": "nd"}
_KIND = re.compile(r"nc|sa|nd|non-?commercial|share-?alike|no-?deriv\w*", re.I)


@dataclass(frozen=True)
class TreebankFacts:
    """What is known of a treebank.

    Attributes:
        name: that of its UD folder, its id on the Hub, or the name of its file; never a path.
        language: the code that its UD files begin with.
        language_name: the language's name in English.
        licence: as the Hub writes licences (`cc-by-sa-4.0`), if its files name exactly one.
        on_hub: whether the name is an id on the Hub.
    """

    name: str
    language: str | None = None
    language_name: str | None = None
    licence: str | None = None
    on_hub: bool = False

    @property
    def is_ud(self) -> bool:
        """Whether it is called as treebanks of Universal Dependencies are."""
        return _UD_FOLDER.fullmatch(self.name) is not None


def treebank_facts(source: str, split: str, data_roots: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Describe what a command reads, from the files that it finds; for JSON.

    Args:
        source: a treebank as commands take it.
        split: the part that is read, with or without a stretch of it (`train[:500]`).
        data_roots: the folders in which treebanks' folders lie.

    Returns:
        The fields of `TreebankFacts`, once for each treebank.
    """
    files = treebank_files(source, data_roots=list(data_roots))
    if files is None:
        return [asdict(TreebankFacts(source, on_hub=True))]
    name = canonical_split(split.partition("[")[0])
    paths = files.get(name) or [path for of_split in files.values() for path in of_split]
    found = [_with_licence(_of_path(str(path)), path.parent) for path in paths]
    return [asdict(facts) for facts in _each_once(found)]


def _with_licence(facts: TreebankFacts, folder: Path) -> TreebankFacts:
    """Add the licence, where the folder is a treebank's: in others such files are about something else."""
    return replace(facts, licence=_licence(folder)) if facts.is_ud else facts


def named_treebanks(source: str, split: str, *, has_roots: bool = False) -> list[TreebankFacts]:
    """Describe what a command was told to read from these words alone; the files may be gone.

    Args:
        source: a treebank as commands take it.
        split: as for `treebank_facts`.
        has_roots: whether folders of treebanks were given, so that a language's code is one.
    """
    code = CODE.fullmatch(source)
    if has_roots and code:
        return _of_code(code["code"], code["names"])
    parts = [ASSIGNMENT.fullmatch(part) for part in source.split(",")]
    assigned = [(canonical_split(part["split"]), part["path"]) for part in parts if part]
    name = canonical_split(split.partition("[")[0])
    paths = [path for part, path in assigned if part == name] or [path for _, path in assigned]
    if not all(parts):
        paths = [source]
    return _each_once(_of_path(path) for path in paths)


def _of_code(code: str, names: str | None) -> list[TreebankFacts]:
    known = LANGUAGES.get(code)
    wanted = names.split("+") if names else known.treebanks if known else ()
    language = known.name if known else None
    titles = [f"UD_{language}-{name}" if language else f"{code}: {name}" for name in wanted] or [code]
    return [TreebankFacts(title, code, language) for title in titles]


def _of_path(path: str) -> TreebankFacts:
    parts = PurePosixPath(path.replace("\\", "/")).parts or (path,)
    file = _UD_FILE.fullmatch(parts[-1])
    folder = next((found for part in reversed(parts) if (found := _UD_FOLDER.fullmatch(part))), None)
    if folder is None:
        return TreebankFacts(parts[-1], file["code"] if file else None)
    language = folder["language"].replace("_", " ")
    known = {entry.name: entry.code for entry in LANGUAGES.values()}
    return TreebankFacts(folder[0], file["code"] if file else known.get(language), language)


def _each_once(facts: Iterable[TreebankFacts]) -> list[TreebankFacts]:
    return list(dict.fromkeys(facts))


def _licence(folder: Path) -> str | None:
    """Read which licence a folder's files name: the first file that names any, if it names exactly one."""
    for name in _LICENCE_FILES:
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
            named = {_identifier(found) for pattern in _LICENCES for found in pattern.finditer(text)}
            if named:
                return named.pop() if len(named) == 1 else None
    return None


def _identifier(found: re.Match[str]) -> str:
    words = [word.lower().replace("-", "") for word in _KIND.findall(found["kind"])]
    kinds = [_KINDS.get(word, word) for word in words]
    return "-".join(["cc-by", *kinds, found["version"]])

"""Determine the name, language and licence of treebanks, as far as their files state them unambiguously."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hf_xst.data.folders import LANGUAGES, canonical_split, treebank_files

_UD_FOLDER = re.compile(r"UD_(?P<language>[^-/]+)-(?P<name>[^/]+)")
_UD_FILE = re.compile(r"(?P<code>[a-z]{2,3})_\w+-ud-(?:train|dev|test)[-\w]*\.conllu(?:\.gz)?")
_LICENCE_FILES = ("LICENSE.txt", "LICENSE", "LICENCE.txt", "README.md", "README.txt")
_LICENCES = (
    re.compile(r"creativecommons\.org/licenses/by(?P<terms>(?:-nc|-sa|-nd)*)/(?P<version>\d\.\d)", re.I),
    re.compile(r"\bCC[ -]BY(?P<terms>(?:-NC|-SA|-ND)*)[ -](?P<version>\d\.\d)", re.I),
    re.compile(
        r"Attribution(?P<terms>(?:[ -](?:Non-?Commercial|Share-?Alike|No-?Derivatives|NoDerivs))*)"
        r"[ -](?P<version>\d\.\d)",
        re.I,
    ),
)
_TERM = re.compile(r"(?P<nc>nc|non-?commercial)|(?P<sa>sa|share-?alike)|(?P<nd>nd|no-?deriv\w*)", re.I)


@dataclass(frozen=True)
class TreebankFacts:
    """Metadata of a treebank.

    Attributes:
        name: The name of its UD folder, its Hub id, or the name of its file; never a path.
        language: The language code of its UD file names.
        language_name: The language's English name.
        licence: The Hub's licence identifier (`cc-by-sa-4.0`), if its files name exactly one.
        on_hub: Whether the name is a Hub id.
    """

    name: str
    language: str | None = None
    language_name: str | None = None
    licence: str | None = None
    on_hub: bool = False

    @property
    def is_ud(self) -> bool:
        """Whether it is named like a Universal Dependencies treebank."""
        return _UD_FOLDER.fullmatch(self.name) is not None


def treebank_facts(source: str, split: str, data_roots: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Describe each treebank that a command reads by the fields of `TreebankFacts`, from its files.

    The arguments are those of the command; `split` may be sliced (`train[:500]`).
    """
    files = treebank_files(source, data_roots=list(data_roots))
    if files is None:
        return [asdict(TreebankFacts(source, on_hub=True))]
    paths = files.get(split_name(split)) or [path for each in files.values() for path in each]
    facts = dict.fromkeys(_from_path(str(path), _read_licence(path.parent)) for path in paths)
    return [asdict(each) for each in facts]


def split_name(split: str) -> str:
    """Return the name of a split without its slice: `train` for `train[:500]`."""
    return canonical_split(split.partition("[")[0])


def _from_path(path: str, licence: str | None) -> TreebankFacts:
    parts = PurePosixPath(path.replace("\\", "/")).parts or (path,)
    file = _UD_FILE.fullmatch(parts[-1])
    code = file["code"] if file else None
    folder = next((match for part in reversed(parts) if (match := _UD_FOLDER.fullmatch(part))), None)
    if folder is None:  # the licence of an ordinary folder may concern something else
        return TreebankFacts(parts[-1], code)
    language = folder["language"].replace("_", " ")
    codes = {entry.name: entry.code for entry in LANGUAGES.values()}
    return TreebankFacts(folder[0], code or codes.get(language), language, licence)


def _read_licence(folder: Path) -> str | None:
    """Return the licence in the first file that names any, if that file names exactly one."""
    for name in _LICENCE_FILES:
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
            licences = {_identifier(match) for pattern in _LICENCES for match in pattern.finditer(text)}
            if licences:
                return licences.pop() if len(licences) == 1 else None
    return None


def _identifier(match: re.Match[str]) -> str:
    terms = [str(term.lastgroup) for term in _TERM.finditer(match["terms"])]
    return "-".join(["cc-by", *terms, match["version"]])

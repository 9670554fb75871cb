"""Treebanks' names, languages and licences, from their files or from what a command was told."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from hf_xst.data.treebank_facts import TreebankFacts, named_treebanks, treebank_facts

LICENCES = {
    "by url": ("see https://creativecommons.org/licenses/by-nc-sa/3.0/us/legalcode", "cc-by-nc-sa-3.0"),
    "by letters": ("License: CC BY-SA 4.0\n", "cc-by-sa-4.0"),
    "by words": ("the Creative Commons Attribution-NonCommercial-ShareAlike 3.0 licence", "cc-by-nc-sa-3.0"),
    "plain": ("Creative Commons Attribution 4.0 International", "cc-by-4.0"),
    "the same twice": ("CC BY-SA 4.0, creativecommons.org/licenses/by-sa/4.0/", "cc-by-sa-4.0"),
    "two": ("CC BY-SA 4.0 or CC BY 3.0", None),
    "none": ("All rights reserved.", None),
}


def treebank(folder: Path, code: str = "fo", licence: str | None = None) -> Path:
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        (folder / f"{code}_some-ud-{split}.conllu").write_text("")
    if licence is not None:
        (folder / "LICENSE.txt").write_text(licence)
    return folder


@pytest.mark.parametrize(("text", "expected"), LICENCES.values(), ids=LICENCES)
def test_a_licence_is_told_if_exactly_one_is_named(text: str, expected: str | None, tmp_path: Path) -> None:
    folder = treebank(tmp_path / "UD_Faroese-OFT", licence=text)
    (found,) = treebank_facts(str(folder), "test")
    assert found == {
        "name": "UD_Faroese-OFT",
        "language": "fo",
        "language_name": "Faroese",
        "licence": expected,
        "on_hub": False,
    }


def test_a_code_stands_for_all_its_treebanks(tmp_path: Path) -> None:
    treebank(tmp_path / "UD_Upper_Sorbian-UFAL", "hsb")
    treebank(tmp_path / "UD_Upper_Sorbian-Other", "hsb")
    found = treebank_facts("hsb", "train[:5]", [str(tmp_path)])
    assert [facts["name"] for facts in found] == ["UD_Upper_Sorbian-Other", "UD_Upper_Sorbian-UFAL"]
    assert {facts["language_name"] for facts in found} == {"Upper Sorbian"}


def test_only_the_part_that_is_read_counts(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.conllu").write_text("")
    source = f"train={tmp_path}/a.conllu,validation={tmp_path}/b.conllu"
    assert [facts["name"] for facts in treebank_facts(source, "dev")] == ["b.conllu"]
    assert [facts.name for facts in named_treebanks(source, "train[90%:]")] == ["a.conllu"]
    assert [facts.name for facts in named_treebanks(source, "test")] == ["a.conllu", "b.conllu"]


def test_files_beside_a_corpus_of_ones_own_say_nothing_about_its_licence(tmp_path: Path) -> None:
    folder = treebank(tmp_path / "project", licence="Icons by somebody, CC BY 4.0. All else is private.")
    (found,) = treebank_facts(f"train={next(folder.glob('*.conllu'))}", "train")
    assert found["licence"] is None


def test_what_is_not_here_is_on_the_hub() -> None:
    (found,) = treebank_facts("someone/some-treebank", "train")
    assert (found["name"], found["on_hub"]) == ("someone/some-treebank", True)


@pytest.mark.parametrize(
    ("source", "has_roots", "expected"),
    [
        ("it", True, [TreebankFacts("UD_Italian-ISDT", "it", "Italian")]),
        ("fr:Sequoia", True, [TreebankFacts("UD_French-Sequoia", "fr", "French")]),
        ("fo", True, [TreebankFacts("fo", "fo")]),
        ("it", False, [TreebankFacts("it")]),
        ("UD_Italian-ISDT", True, [TreebankFacts("UD_Italian-ISDT", "it", "Italian")]),
        (
            "/x/UD_Faroese-OFT/fo_oft-ud-test.conllu.gz",
            False,
            [TreebankFacts("UD_Faroese-OFT", "fo", "Faroese")],
        ),
        ("/x/y/my.conllu", False, [TreebankFacts("my.conllu")]),
        ("C:\\x\\my.conllu", False, [TreebankFacts("my.conllu")]),
        ("a/b", False, [TreebankFacts("b")]),
    ],
)
def test_what_words_alone_tell(source: str, has_roots: bool, expected: list[TreebankFacts]) -> None:
    assert named_treebanks(source, "test", has_roots=has_roots) == expected


@pytest.mark.real
def test_real_licences_are_those_of_the_list(shared: Callable[..., Path]) -> None:
    root = shared("ud-treebanks-v2.2")
    with (root / "MANIFEST.tsv").open(encoding="utf-8") as stream:
        rows = {row["treebank"]: row for row in csv.DictReader(stream, delimiter="\t") if row["file"] != "-"}
    assert len(rows) > 20
    told = 0
    for name, row in rows.items():
        found = treebank_facts(str(root / name), "test")[0]
        assert found["language"] == row["language code"]
        if found["licence"] is not None:
            told += 1
            expected = row["licence"].removesuffix(" US").lower().replace(" ", "-")
            assert found["licence"] == expected, name
    assert told > len(rows) * 0.7

"""Test the names, languages and licences of treebanks, from files or from arguments alone."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path

import pytest

from hf_xst.data.treebank_facts import TreebankFacts, treebank_facts

LICENCES = {
    "url": ("see https://creativecommons.org/licenses/by-nc-sa/3.0/us/legalcode", "cc-by-nc-sa-3.0"),
    "abbreviation": ("License: CC BY-SA 4.0\n", "cc-by-sa-4.0"),
    "name": ("the Creative Commons Attribution-NonCommercial-ShareAlike 3.0 licence", "cc-by-nc-sa-3.0"),
    "short name": ("Creative Commons Attribution 4.0 International", "cc-by-4.0"),
    "no derivatives": ("Creative Commons Attribution-NoDerivs 3.0", "cc-by-nd-3.0"),
    "repeated": ("CC BY-SA 4.0, creativecommons.org/licenses/by-sa/4.0/", "cc-by-sa-4.0"),
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
def test_unambiguous_licences_are_recognised(text, expected, tmp_path):
    folder = treebank(tmp_path / "UD_Faroese-OFT", licence=text)
    (facts,) = treebank_facts(str(folder), "test")
    assert facts == {
        "name": "UD_Faroese-OFT",
        "language": "fo",
        "language_name": "Faroese",
        "licence": expected,
        "on_hub": False,
    }


def test_licence_of_an_ordinary_folder_is_ignored(tmp_path):
    folder = treebank(tmp_path / "project", licence="Icons by somebody, CC BY 4.0. All else is private.")
    (facts,) = treebank_facts(f"train={next(folder.glob('*.conllu'))}", "train")
    assert facts["licence"] is None


def test_language_code_covers_all_its_treebanks(tmp_path):
    treebank(tmp_path / "UD_Upper_Sorbian-UFAL", "hsb")
    treebank(tmp_path / "UD_Upper_Sorbian-Other", "hsb")
    facts = treebank_facts("hsb", "train[:5]", [str(tmp_path)])
    assert [each["name"] for each in facts] == ["UD_Upper_Sorbian-Other", "UD_Upper_Sorbian-UFAL"]
    assert {each["language_name"] for each in facts} == {"Upper Sorbian"}


def test_files_of_other_splits_are_ignored(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.conllu").write_text("")
    source = f"train={tmp_path}/a.conllu,validation={tmp_path}/b.conllu"
    assert [facts["name"] for facts in treebank_facts(source, "dev")] == ["b.conllu"]
    assert [facts["name"] for facts in treebank_facts(source, "train[90%:]")] == ["a.conllu"]
    assert [facts["name"] for facts in treebank_facts(source, "test")] == ["a.conllu", "b.conllu"]


def test_hub_ids():
    (facts,) = treebank_facts("someone/some-treebank", "train")
    assert (facts["name"], facts["on_hub"]) == ("someone/some-treebank", True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("UD_Faroese-OFT/fo_oft-ud-test.conllu.gz", TreebankFacts("UD_Faroese-OFT", "fo", "Faroese")),
        ("UD_Italian-ISDT/x.conllu", TreebankFacts("UD_Italian-ISDT", "it", "Italian")),
        ("y/my.conllu", TreebankFacts("my.conllu")),
    ],
)
def test_facts_of_a_file_lack_its_path(tmp_path, path, expected):
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text("")
    assert treebank_facts(f"test={tmp_path / path}", "test") == [asdict(expected)]


@pytest.mark.real
def test_real_licences_match_the_manifest(shared):
    root = shared("ud-treebanks-v2.2")
    with (root / "MANIFEST.tsv").open(encoding="utf-8") as stream:
        rows = {row["treebank"]: row for row in csv.DictReader(stream, delimiter="\t") if row["file"] != "-"}
    assert len(rows) > 20
    recognised = 0
    for name, row in rows.items():
        facts = treebank_facts(str(root / name), "test")[0]
        assert facts["language"] == row["language code"]
        if facts["licence"] is not None:
            recognised += 1
            assert facts["licence"] == row["licence"].removesuffix(" US").lower().replace(" ", "-"), name
    assert recognised > len(rows) * 0.7

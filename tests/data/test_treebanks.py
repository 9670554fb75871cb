"""Treebanks by file, folder and language; the layout's way there and back; the cache."""

from __future__ import annotations

import gzip
import io
import json
import socket

import datasets
import pytest
from datasets import ClassLabel, List, Value

import hf_xst.data.treebanks as treebanks
from hf_xst.data import (
    DISTANT,
    LANGUAGES,
    NEARBY,
    SOURCES,
    TREEBANK_FEATURES,
    ConlluError,
    dataset_to_sentences,
    load_treebank,
    read_conllu,
    sentences_to_dataset,
    treebank_files,
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def one(sentence_text):
    """A file of one sentence, named."""
    return lambda name: sentence_text([(name, "X", "0", "root")], name)


def names(dataset: datasets.Dataset) -> list[str]:
    return list(dataset["sent_id"])


def test_the_layout_is_the_hubs(write, tiny):
    loaded = load_treebank(write("a.conllu", tiny))
    assert list(loaded) == ["data"]
    data = loaded["data"]
    assert data.features == TREEBANK_FEATURES
    assert data.features["upos"] == List(ClassLabel(names=list(data.features["upos"].feature.names)))
    assert data.features["head"] == List(Value("string"))
    first, second = data
    assert first["tokens"] == ["Mira", "lauft", "."]
    assert first["head"] == ["2", "0", "2"]
    assert first["deprel"] == ["nsubj:pass", "root", "punct"]
    assert [data.features["upos"].feature.int2str(i) for i in first["upos"]] == ["PROPN", "VERB", "PUNCT"]
    assert first["xpos"] == [None] * 3
    assert first["lemmas"] == ["_"] * 3
    assert (first["sent_id"], second["sent_id"]) == ("one", "a.conllu:2")
    assert (first["comments"], second["comments"]) == (["__SENT_ID__"], [])


AWKWARD = (
    "# newdoc\n#\n#x=1\n# # double\n#  wide\n# __TEXT__\n# text = Del = mar\n# sent_id = a\n# text = again\n"
    "0.1\tyo\tyo\tPRON\t_\t_\t_\t_\t3:nsubj\t_\n"
    "1-2\tDel\t_\t_\t_\tTypo=Yes\t_\t_\t_\tGloss==of\n"
    "1\tDe\tde\tADP\tS\t_\t2\tcase\t2:case\t_\n"
    "2\tel\tel\tDET\t_\tA=B\t_\t_\t_\tX==Y\n"
    "2.1\tx\tx\t_\tq\tA=B\t_\t_\t3:dep\tM=1\n"
    "3-3\tm\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\tmar azul\tmar\tNOUN\t_\t_\t0\troot\t_\tSpaceAfter=No\n\n"
    "#sent_id=tight\n1\t_\t_\t_\t_\t_\t9\t_\t_\t_\n2\tx\t_\t_\t_\t_\t9\t_\t_\t_\n\n"
)


def test_the_layout_gives_the_sentences_back():
    found = list(read_conllu(io.StringIO(AWKWARD)))
    data = sentences_to_dataset(found)
    assert data["sent_id"][:] == ["a", "tight"]
    assert [s.raw for s in dataset_to_sentences(data)] == [s.raw for s in found]
    assert data[0]["mwt"][0] == {"id": "1-2", "form": "Del", "feats": "Typo=Yes", "misc": "Gloss==of"}
    with pytest.raises(ValueError, match="expected the treebank layout"):
        dataset_to_sentences(data.remove_columns("mwt"))


def test_no_sentences_have_the_same_schema(write):
    empty = load_treebank(write("e.conllu", ""))["data"]
    assert len(empty) == 0
    assert empty.features == sentences_to_dataset([]).features == TREEBANK_FEATURES


def test_unknown_tags_are_named(write, sentence_text):
    path = write("v1.conllu", sentence_text([("und", "CONJ", "0", "root")], "s1"))
    with pytest.raises(
        ConlluError, match=r"v1.conllu:1: sentence s1: found UPOS 'CONJ', expected one of ADJ"
    ):
        load_treebank(path)


def test_splits_are_named_and_never_guessed(write, one):
    test = write("tests/x_test-ud-train.conllu", one("a"))
    other = write("other.conllu.gz", gzip.compress(one("b").encode()))
    for source in (
        {"validation": test, "train": [test, other]},
        f"dev={test},train={test},train={other}",
    ):
        loaded = load_treebank(source)
        assert {split: names(rows) for split, rows in loaded.items()} == {"train": ["a", "b"], "dev": ["a"]}
    assert list(load_treebank(test)) == ["data"]
    assert list(load_treebank(test.parent)) == ["train"]


def test_a_folder_is_read_by_exact_names(write, one):
    folder = write("UD_Nowhere-Test/no_test-ud-train.conllu", one("t")).parent
    for name in (
        "no_test-ud-train-a.conllu",
        "no_test-ud-dev.conllux",
        ".no-ud-test.conllu.1.part",
        "no-dev.conllu",
    ):
        write(f"UD_Nowhere-Test/{name}", "no CoNLL-U at all")
    write("UD_Nowhere-Test/no_test-ud-test.conllu.gz", gzip.compress(one("s").encode()))
    assert {k: names(v) for k, v in load_treebank(folder).items()} == {"train": ["t"], "test": ["s"]}


def test_wanted_splits_only(write, one):
    folder = write("UD_X-Y/x_y-ud-train.conllu", "broken").parent
    write("UD_X-Y/x_y-ud-dev.conllu", one("d"))
    assert list(load_treebank(folder, splits=["validation"])) == ["dev"]
    assert list(load_treebank(folder, splits="dev")) == ["dev"]
    with pytest.raises(ValueError, match="no split test; found train, dev"):
        load_treebank(folder, splits=["dev", "test"])


@pytest.fixture
def roots(tmp_path, write, one):
    for path, name in {
        "a/UD_Portuguese-GSD/pt_gsd-ud-test.conllu": "gsd",
        "a/UD_Portuguese-Bosque/pt_bosque-ud-test.conllu": "bosque",
        "a/UD_Portuguese-PUD/pt_pud-ud-test.conllu": "pud",
        "a/UD_Indonesian-GSD/id_gsd-ud-test.conllu": "id-test",
        "b/UD_Indonesian-GSD/id-ud-train.conllu": "id-train",
        "a/UD_North_Sami-Z/sme_z-ud-test.conllu": "sme-z",
        "b/UD_North_Sami-A/sme_a-ud-test.conllu": "sme-a",
        "a/UD_Arabic-PUD/ar_pud-ud-test.conllu": "ar",
        "a/UD_Arabic-PADT/LICENSE.txt": "x",
    }.items():
        write(path, one(name))
    return [tmp_path / "a", str(tmp_path / "b")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("pt", {"test": ["bosque", "gsd"]}),
        ("pt:PUD+Bosque", {"test": ["pud", "bosque"]}),
        ("id", {"train": ["id-train"], "test": ["id-test"]}),
        ("UD_Indonesian-GSD", {"train": ["id-train"], "test": ["id-test"]}),
        ("sme", {"test": ["sme-a", "sme-z"]}),
        ("ar:PUD", {"test": ["ar"]}),
    ],
)
def test_languages_are_found_under_several_roots(roots, source, expected):
    loaded = load_treebank(source, data_roots=[*roots, roots[0]])
    assert {split: names(rows) for split, rows in loaded.items()} == expected


def test_one_root_may_be_given_bare(roots):
    assert treebank_files("ar:PUD", data_roots=roots[0]) == treebank_files("ar:PUD", data_roots=[roots[0]])
    assert treebank_files("sme", data_roots=roots[1])["test"][0].name == "sme_a-ud-test.conllu"


def test_the_same_split_under_two_roots_is_refused(roots, write, one):
    write("b/UD_Indonesian-GSD/id_gsd-ud-test.conllu", one("again"))
    with pytest.raises(ValueError, match=r"split test twice, in .*a/UD_Indonesian-GSD.* and in .*b/UD_Indo"):
        load_treebank("id", data_roots=roots)


@pytest.mark.parametrize(
    ("source", "with_roots", "error", "message"),
    [
        ("ar", True, ValueError, "language ar: no files of PADT under .*there: PUD. .*ar:NAME"),
        ("xx", True, ValueError, "language xx: no files of any treebank"),
        ("pt:GSD+Nil", True, ValueError, "no files of Nil under"),
        ("pt", False, ValueError, "found 'pt', which is not here"),
        ("UD_No-Where", True, ValueError, "no files of UD_No-Where under"),
        ("UD_No-Where", False, ValueError, "none is given"),
        ("gone.conllu", False, FileNotFoundError, "no file or folder gone.conllu"),
        ("train=gone.conllu", False, FileNotFoundError, "split train: there is no file gone.conllu"),
        ("train=a,b", False, ValueError, "found 'b' in 'train=a,b', expected SPLIT=PATH"),
        ({"train": []}, False, ValueError, "a split without files"),
        ({}, False, ValueError, "a split without files"),
    ],
)
def test_what_cannot_be_found_is_said(roots, source, with_roots, error, message):
    with pytest.raises(error, match=message):
        load_treebank(source, data_roots=roots if with_roots else ())


def test_other_misuse_is_said(tmp_path, write, one):
    path = write("f/readme.txt", "x")
    with pytest.raises(ValueError, match=r"found readme.txt, expected files called \*-ud-train.conllu"):
        load_treebank(path.parent)
    with pytest.raises(FileNotFoundError, match="no data root"):
        load_treebank("pt", data_roots=[tmp_path / "nil"])
    file = write("a.conllu", one("a"))
    with pytest.raises(ValueError, match="both 'validation' and 'dev'"):
        load_treebank({"dev": file, "validation": file})
    with pytest.raises(ValueError, match="with a Hub data set only"):
        load_treebank(file, config="en_ewt")
    write("g/a-ud-dev.conllu", one("a"))
    write("g/a-ud-dev.conllu.gz", gzip.compress(one("a").encode()))
    with pytest.raises(ValueError, match="split dev twice"):
        load_treebank(tmp_path / "g")


def test_the_second_load_reads_the_cache_and_edits_are_seen(write, one, tmp_path, monkeypatch):
    path = write("a.conllu", one("a"))
    cache = tmp_path / "cache"
    first = load_treebank(path, cache_dir=cache)["data"]
    built = {p: p.stat().st_mtime_ns for p in cache.rglob("*.arrow")}
    assert len(built) == 1

    with monkeypatch.context() as patch:
        patch.setattr(treebanks, "read_conllu", lambda _: pytest.fail("the file was read again"))
        second = load_treebank(path, cache_dir=cache)["data"]
    assert second[:] == first[:]
    assert {p: p.stat().st_mtime_ns for p in cache.rglob("*.arrow")} == built

    write("a.conllu", one("b"))
    assert names(load_treebank(path, cache_dir=cache)["data"]) == ["b"]
    write("a.conllu", one("a"))
    assert names(load_treebank(path, cache_dir=cache)["data"]) == ["a"]


def test_a_build_that_fails_leaves_nothing(write, one, tmp_path):
    path = write("a.conllu", one("a") + "broken\n")
    with pytest.raises(ConlluError, match="found 1 columns"):
        load_treebank(path, cache_dir=tmp_path / "cache")
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_the_table_of_languages_is_the_papers(shared):
    facts = json.loads(shared("paper", "results.json").read_text())["languages"]
    assert {code: list(LANGUAGES[code].treebanks) for code in LANGUAGES} == facts["treebanks"]
    assert [list(SOURCES), list(DISTANT), list(NEARBY)] == [
        facts[k] for k in ("sources", "distant", "nearby")
    ]
    folders = {folder.name for folder in shared("ud-treebanks-v2.2").iterdir()}
    for language in LANGUAGES.values():
        assert {f"UD_{language.name}-{name}" for name in language.treebanks} <= folders


def test_field_cases_load_from_files(shared):
    files = shared("fieldcases", "files")
    loaded = load_treebank(
        {
            "train": files / "p01_mwt_empty.conllu",
            "validation": files / "p08_roundtrip.conllu",
            "test": files / "p04_comment_shapes.conllu",
        }
    )
    assert {k: len(v) for k, v in loaded.items()} == {"train": 4, "dev": 2, "test": 3}
    for split, name in (("train", "p01_mwt_empty"), ("dev", "p08_roundtrip"), ("test", "p04_comment_shapes")):
        raw = "".join(s.raw for s in dataset_to_sentences(loaded[split]))
        assert raw == (files / f"{name}.conllu").read_text(encoding="utf-8")


@pytest.mark.real
def test_real_indonesian_has_all_splits_from_two_roots(shared):
    roots = [shared("ud-treebanks-v2.2"), shared("ud-treebanks-extra")]
    loaded = load_treebank("id", data_roots=roots)
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 4477, "dev": 559, "test": 557}

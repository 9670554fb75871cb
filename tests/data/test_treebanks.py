"""Test loading treebanks from files, folders, language codes and the Hub; the layout and the cache."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import socket

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

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
    to_treebank_layout,
    treebank_files,
)
from hf_xst.data.treebank_facts import treebank_facts


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("network access")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def one(sentence_text):
    """Format a file of one named sentence."""
    return lambda name: sentence_text([(name, "X", "0", "root")], name)


def names(dataset: Dataset) -> list[str]:
    return list(dataset["sent_id"])


def test_treebank_layout(write, tiny):
    loaded = load_treebank(write("a.conllu", tiny))
    assert list(loaded) == ["data"]
    data = loaded["data"]
    assert data.features == TREEBANK_FEATURES
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
    empty = load_treebank(write("e.conllu", ""))["data"]
    assert len(empty) == 0
    assert empty.features == sentences_to_dataset([]).features == TREEBANK_FEATURES


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


def test_layout_round_trip():
    sentences = list(read_conllu(io.StringIO(AWKWARD)))
    data = sentences_to_dataset(sentences)
    assert data["sent_id"][:] == ["a", "tight"]
    assert [s.raw for s in dataset_to_sentences(data)] == [s.raw for s in sentences]
    assert data[0]["mwt"][0] == {"id": "1-2", "form": "Del", "feats": "Typo=Yes", "misc": "Gloss==of"}
    with pytest.raises(ValueError, match="expected the treebank layout"):
        dataset_to_sentences(data.remove_columns("mwt"))


def test_unknown_tags_are_rejected(write, sentence_text):
    path = write("v1.conllu", sentence_text([("und", "CONJ", "0", "root")], "s1"))
    message = r"v1.conllu:1: sentence s1: found UPOS 'CONJ', expected one of ADJ"
    with pytest.raises(ConlluError, match=message):
        load_treebank(path)


def test_splits_are_named_explicitly(write, one):
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


def test_folders_are_read_by_exact_file_names(write, one):
    folder = write("UD_Nowhere-Test/no_test-ud-train.conllu", one("t")).parent
    for name in (
        "no_test-ud-train-a.conllu",
        "no_test-ud-dev.conllux",
        ".no-ud-test.conllu.1.part",
        "no-dev.conllu",
    ):
        write(f"UD_Nowhere-Test/{name}", "not CoNLL-U")
    write("UD_Nowhere-Test/no_test-ud-test.conllu.gz", gzip.compress(one("s").encode()))
    assert {k: names(v) for k, v in load_treebank(folder).items()} == {"train": ["t"], "test": ["s"]}


@pytest.mark.parametrize("parts", [["a", "b"], ["a-1", "a-2", "b-1"], ["l", "m", "v"], ["01", "02"]])
def test_parts_of_a_split_are_concatenated(write, one, parts):
    for part in reversed(parts):
        folder = write(f"UD_Czech-PDT/cs_pdt-ud-train-{part}.conllu", one(f"train-{part}")).parent
    write("UD_Czech-PDT/cs_pdt-ud-dev.conllu", one("dev"))
    for name in ("cs_pdt-ud-dev-a.conllu", "cs_pdt-ud-test-predicted.conllu", "cs_pdt-ud-train-a.txt"):
        write(f"UD_Czech-PDT/{name}", "ignored")
    expected = {"train": [f"train-{part}" for part in parts], "dev": ["dev"]}
    for loaded in (load_treebank(folder), load_treebank("cs", data_roots=[folder.parent])):
        assert {split: names(rows) for split, rows in loaded.items()} == expected
    assert treebank_facts(str(folder), "train")[0]["language"] == "cs"
    write(f"UD_Czech-PDT/cs_pdt-ud-train-{parts[0]}.conllu.gz", gzip.compress(b""))
    with pytest.raises(ValueError, match="found split train twice"):
        treebank_files(folder)


def test_parts_of_two_treebanks_are_rejected(write, one):
    write("x/cs_cac-ud-train-a.conllu", one("a"))
    folder = write("x/cs_pdt-ud-train-a.conllu", one("b")).parent
    with pytest.raises(ValueError, match=r"parts of split train of two treebanks, .*cs_cac.* and .*cs_pdt"):
        treebank_files(folder)


def test_only_requested_splits_are_read(write, one):
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
def test_languages_under_several_roots(roots, source, expected):
    loaded = load_treebank(source, data_roots=[*roots, roots[0]])
    assert {split: names(rows) for split, rows in loaded.items()} == expected


def test_single_data_root(roots):
    assert treebank_files("ar:PUD", data_roots=roots[0]) == treebank_files("ar:PUD", data_roots=[roots[0]])
    assert treebank_files("sme", data_roots=roots[1])["test"][0].name == "sme_a-ud-test.conllu"


@pytest.mark.parametrize(
    ("source", "with_roots", "error", "message"),
    [
        ("ar", True, ValueError, "language ar: no files of PADT under .*available .* PUD. .*ar:NAME"),
        ("xx", True, ValueError, "language xx: no files of any treebank"),
        ("pt:GSD+Nil", True, ValueError, "no files of Nil under"),
        ("pt", False, ValueError, "'pt' not found; expected a .conllu file"),
        ("UD_No-Where", True, ValueError, "no files of UD_No-Where under"),
        ("UD_No-Where", False, ValueError, "any data root .none given"),
        ("gone.conllu", False, FileNotFoundError, "gone.conllu does not exist"),
        ("gone.jsonl", False, FileNotFoundError, "gone.jsonl does not exist"),
        ("train=gone.conllu", False, FileNotFoundError, "split train: gone.conllu does not exist"),
        ("train=a,b", False, ValueError, "found 'b' in 'train=a,b', expected SPLIT=PATH"),
        ({"train": []}, False, ValueError, "a split without files"),
        ({}, False, ValueError, "a split without files"),
    ],
)
def test_missing_treebanks(roots, source, with_roots, error, message):
    with pytest.raises(error, match=message):
        load_treebank(source, data_roots=roots if with_roots else ())


def test_invalid_arguments(tmp_path, write, one, roots):
    file = write("f/readme.txt", one("a"))
    with pytest.raises(ValueError, match=r"found readme.txt, expected files called \*-ud-train.conllu"):
        load_treebank(file.parent)
    with pytest.raises(FileNotFoundError, match=r"data root .*nil does not exist"):
        load_treebank("pt", data_roots=[tmp_path / "nil"])
    with pytest.raises(ValueError, match="both 'validation' and 'dev'"):
        load_treebank({"dev": file, "validation": file})
    with pytest.raises(ValueError, match="apply to Hub data sets only"):
        load_treebank(file, config="en_ewt")
    write("b/UD_Indonesian-GSD/id_gsd-ud-test.conllu", one("again"))
    with pytest.raises(ValueError, match=r"split test twice, in .*a/UD_Indonesian-GSD.* and in .*b/UD_Indo"):
        load_treebank("id", data_roots=roots)
    write("g/a-ud-dev.conllu", one("a"))
    write("g/a-ud-dev.conllu.gz", gzip.compress(one("a").encode()))
    with pytest.raises(ValueError, match="split dev twice"):
        load_treebank(tmp_path / "g")


def test_cache_is_keyed_by_content(write, one, tmp_path, monkeypatch):
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


@pytest.mark.parametrize("size", [0, 200])
def test_a_damaged_cache_is_named(write, one, tmp_path, size):
    path = write("a.conllu", one("a"))
    load_treebank(path, cache_dir=tmp_path / "cache")
    (cached,) = (tmp_path / "cache").rglob("*.arrow")
    os.truncate(cached, size)
    with pytest.raises(ValueError, match=re.escape(f"{cached} is damaged (")):
        load_treebank(path, cache_dir=tmp_path / "cache")


def test_failed_build_leaves_no_files(write, one, tmp_path):
    path = write("a.conllu", one("a") + "broken\n")
    with pytest.raises(ConlluError, match="found 1 columns"):
        load_treebank(path, cache_dir=tmp_path / "cache")
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


HUB_TEXT = (
    "# sent_id = h1\n# text = Del mar\n"
    "1-2\tDel\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDe\tde\tADP\tS\t_\t3\tcase\t3:case\t_\n"
    "2\tel\tel\tDET\t_\tA=B|C=D,E\t3\tdet\t3:det\tX==Y\n"
    "3\tmar\tmar\tNOUN\t_\t_\t0\troot\t0:root|3.1:x\tSpaceAfter=No\n"
    "3.1\tn\tn\tX\t_\t_\t_\t_\t3:x\t_\n\n"
    "1\tSi\tsi\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
)
STRINGS = List(Value("string"))


def current() -> Dataset:
    return sentences_to_dataset(read_conllu(io.StringIO(HUB_TEXT)))


def variant() -> Dataset:
    """UPOS as strings, heads as integers."""
    data = current()
    tags = data.features["upos"].feature.names
    columns = data.to_dict()
    columns["upos"] = [[tags[i] for i in row] for row in columns["upos"]]
    columns["head"] = [[int(h) for h in heads] for heads in columns["head"]]
    features = Features(data.features | {"upos": STRINGS, "head": List(Value("uint16"))})
    return Dataset.from_dict(columns, features=features)


def reordered() -> Dataset:
    """Class labels in another order."""
    data = current()
    tags = list(reversed(data.features["upos"].feature.names))
    columns = data.to_dict()
    columns["upos"] = [[len(tags) - 1 - i for i in row] for row in columns["upos"]]
    return Dataset.from_dict(
        columns, features=Features(data.features | {"upos": List(ClassLabel(names=tags))})
    )


def legacy() -> Dataset:
    """The layout of the old loading script: all rows among the tokens, and Python literals."""
    rows = {
        "idx": ["h1", "2"],
        "text": ["Del mar", "Si"],
        "tokens": [["Del", "De", "el", "mar", "n"], ["Si"]],
        "lemmas": [["_", "de", "el", "mar", "n"], ["si"]],
        "upos": [["_", "ADP", "DET", "NOUN", "X"], ["INTJ"]],
        "xpos": [[None, "S", None, None, None], [None]],
        "feats": [["None", "None", "{'A': 'B', 'C': 'D,E'}", "None", "None"], ["None"]],
        "head": [["None", "3", "3", "0", "None"], ["0"]],
        "deprel": [["_", "case", "det", "root", "_"], ["root"]],
        "deps": [
            ["None", "[('case', 3)]", "[('det', 3)]", "[('root', 0), ('x', (3, '.', 1))]", "[('x', 3)]"],
            ["None"],
        ],
        "misc": [["None", "None", "{'X': '=Y'}", "{'SpaceAfter': 'No'}", "None"], ["None"]],
    }
    features = Features({name: STRINGS for name in rows}) | {"idx": Value("string"), "text": Value("string")}
    labels = ClassLabel(names=["_", "ADP", "DET", "NOUN", "INTJ", "X"])
    rows["upos"] = [labels.str2int(row) for row in rows["upos"]]
    return Dataset.from_dict(rows, features=Features(features | {"upos": List(labels)}))


@pytest.mark.parametrize("make", [current, variant, reordered, legacy])
def test_hub_layouts(make, tmp_path):
    data = make()
    converted = to_treebank_layout(data)
    assert converted.features == TREEBANK_FEATURES
    for name in ("text", "tokens", "lemmas", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"):
        expected = ["Del mar", "Si"] if make is legacy and name == "text" else current()[name][:]
        assert converted[name][:] == expected, name
    if make is legacy:
        assert converted["sent_id"][:] == ["h1", "2"]
        assert next(dataset_to_sentences(converted)).comments == ["# sent_id = h1", "# text = Del mar"]
    else:
        assert converted[:] == current()[:]
    empty = to_treebank_layout(data.select([]))
    assert (len(empty), empty.features) == (0, TREEBANK_FEATURES)

    data.to_parquet(tmp_path / "train.parquet")
    files = {"train": str(tmp_path / "train.parquet")}
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "c"))["train"]
    assert to_treebank_layout(loaded)[:] == converted[:]


@pytest.mark.parametrize("text", ["['a', 'b']", "[1]", "[('x',)]", "{1", "(" * 500])
def test_literals_of_no_known_form_stay_text(text):
    data = legacy().to_dict()
    data["misc"][1] = [text]
    assert to_treebank_layout(Dataset.from_dict(data, features=legacy().features))[1]["misc"] == [text]


def test_nulls_become_underscores():
    columns = variant().to_dict()
    columns["head"][0][1] = columns["upos"][0][0] = None
    converted = to_treebank_layout(Dataset.from_dict(columns, features=variant().features))
    assert converted[0]["head"] == ["3", "_", "0"]
    assert converted.features["upos"].feature.int2str(converted[0]["upos"][0]) == "_"


def test_words_without_a_tag_have_no_tag_in_sentences():
    data = current().to_dict()
    data["upos"][0][:2] = [-1, None]
    (sentence, _) = dataset_to_sentences(Dataset.from_dict(data, features=TREEBANK_FEATURES))
    assert sentence.upos[:2] == ["_", "_"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", "a\n1\tb"),
        ("comments", ["a\nb"]),
        ("tokens", ["a\tb", "c", "d"]),
        ("xpos", ["X\r", "X", "X"]),
    ],
)
def test_values_that_break_lines_are_rejected(column, value):
    data = current().to_dict()
    data[column][0] = value
    data["comments"][0].append("__TEXT__")
    with pytest.raises(ValueError, match=r"found '.*expected values without tabs and line breaks"):
        list(dataset_to_sentences(Dataset.from_dict(data, features=TREEBANK_FEATURES)))


@pytest.mark.parametrize(
    ("make", "column", "row", "message"),
    [
        (legacy, "head", [["None"] * 5, ["None"]], "row idx h1: found no heads"),
        (variant, "upos", [["CONJ", "DET", "NOUN"], ["INTJ"]], "sentence h1: found UPOS 'CONJ'"),
        (variant, "lemmas", [["x"], ["si"]], "sentence h1: found 1 values of lemmas, expected 3"),
    ],
)
def test_inconsistent_hub_rows_are_rejected(make, column, row, message):
    data = make()
    with pytest.raises(ValueError, match=message):
        to_treebank_layout(Dataset.from_dict(data.to_dict() | {column: row}, features=data.features))


def test_unknown_hub_layouts_are_rejected():
    with pytest.raises(ValueError, match="upos, head, deprel missing"):
        to_treebank_layout(Dataset.from_dict({"tokens": [["1"]]}))


def test_hub_ids_are_loaded_by_config_and_revision(monkeypatch):
    calls = []

    def load(path, name=None, revision=None, cache_dir=None):
        calls.append((path, name, revision))
        return DatasetDict({"test": current(), "train": variant(), "validation": legacy()})

    monkeypatch.setattr(datasets, "load_dataset", load)
    loaded = load_treebank("some/treebanks", config="xx_yy", revision="2.17")
    assert calls == [("some/treebanks", "xx_yy", "2.17")]
    assert list(loaded) == ["train", "dev", "test"]
    assert loaded["train"][:] == loaded["test"][:] == current()[:]
    assert list(load_treebank("some/treebanks", splits=["dev"])) == ["dev"]
    with pytest.raises(ValueError, match="no split extra"):
        load_treebank("some/treebanks", splits=["extra"])


def test_languages_are_those_of_the_paper(shared):
    facts = json.loads(shared("paper", "results.json").read_text())["languages"]
    assert {code: list(LANGUAGES[code].treebanks) for code in LANGUAGES} == facts["treebanks"]
    assert [list(SOURCES), list(DISTANT), list(NEARBY)] == [
        facts[k] for k in ("sources", "distant", "nearby")
    ]
    folders = {folder.name for folder in shared("ud-treebanks-v2.2").iterdir()}
    for language in LANGUAGES.values():
        assert {f"UD_{language.name}-{name}" for name in language.treebanks} <= folders


def test_field_case_p09_files_load_offline(shared):
    files = shared("fieldcases", "files")
    paths = {"train": "p01_mwt_empty", "validation": "p08_roundtrip", "test": "p04_comment_shapes"}
    loaded = load_treebank({split: files / f"{name}.conllu" for split, name in paths.items()})
    assert {k: len(v) for k, v in loaded.items()} == {"train": 4, "dev": 2, "test": 3}
    for split, name in zip(("train", "dev", "test"), paths.values(), strict=True):
        raw = "".join(s.raw for s in dataset_to_sentences(loaded[split]))
        assert raw == (files / f"{name}.conllu").read_text(encoding="utf-8")


@pytest.mark.real
def test_real_indonesian_splits_of_two_roots(shared):
    roots = [shared("ud-treebanks-v2.2"), shared("ud-treebanks-extra")]
    loaded = load_treebank("id", data_roots=roots)
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 4477, "dev": 559, "test": 557}

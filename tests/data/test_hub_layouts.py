"""The layouts that stand on the Hub, built small and read through the same call."""

from __future__ import annotations

import io

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from hf_xst.data import (
    TREEBANK_FEATURES,
    dataset_to_sentences,
    load_treebank,
    read_conllu,
    sentences_to_dataset,
    to_treebank_layout,
)

TEXT = (
    "# sent_id = h1\n# text = Del mar\n"
    "1-2\tDel\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tDe\tde\tADP\tS\t_\t3\tcase\t3:case\t_\n"
    "2\tel\tel\tDET\t_\tA=B|C=D,E\t3\tdet\t3:det\tX==Y\n"
    "3\tmar\tmar\tNOUN\t_\t_\t0\troot\t0:root|3.1:x\tSpaceAfter=No\n"
    "3.1\tn\tn\tX\t_\t_\t_\t_\t3:x\t_\n\n"
    "1\tSi\tsi\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
)
STRINGS = List(Value("string"))


@pytest.fixture
def current() -> Dataset:
    return sentences_to_dataset(read_conllu(io.StringIO(TEXT)))


def variant(current: Dataset) -> Dataset:
    """Tags as strings, heads as integers."""
    names = current.features["upos"].feature.names
    columns = current.to_dict()
    columns["upos"] = [[names[i] for i in tags] for tags in columns["upos"]]
    columns["head"] = [[int(h) for h in heads] for heads in columns["head"]]
    features = Features(current.features | {"upos": STRINGS, "head": List(Value("uint16"))})
    return Dataset.from_dict(columns, features=features)


def legacy() -> Dataset:
    """As the old loading script wrote it: all rows among the tokens, literals for the rest."""
    tags = ["_", "ADP", "DET", "NOUN", "INTJ", "X"]
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
    labels = ClassLabel(names=tags)
    rows["upos"] = [labels.str2int(row) for row in rows["upos"]]
    return Dataset.from_dict(rows, features=Features(features | {"upos": List(labels)}))


def test_the_current_layout_passes_as_it_is(current):
    assert to_treebank_layout(current) is current


@pytest.mark.parametrize("num_proc", [None, 2])
def test_strings_for_tags_and_integers_for_heads(current, num_proc):
    found = to_treebank_layout(variant(current), num_proc=num_proc)
    assert found.features == TREEBANK_FEATURES
    assert found[:] == current[:]


def test_class_labels_in_another_order(current):
    names = list(reversed(current.features["upos"].feature.names))
    columns = current.to_dict()
    columns["upos"] = [[len(names) - 1 - i for i in tags] for tags in columns["upos"]]
    other = Dataset.from_dict(
        columns, features=Features(current.features | {"upos": List(ClassLabel(names=names))})
    )
    assert to_treebank_layout(other)[:] == current[:]


def test_nulls_become_underscores(current):
    columns = variant(current).to_dict()
    columns["head"][0][1] = None
    columns["upos"][0][0] = None
    found = to_treebank_layout(Dataset.from_dict(columns, features=variant(current).features))
    assert found[0]["head"] == ["3", "_", "0"]
    assert found.features["upos"].feature.int2str(found[0]["upos"][0]) == "_"


def test_the_legacy_layout_loses_only_what_it_never_had(current):
    found = to_treebank_layout(legacy())
    assert found.features == TREEBANK_FEATURES
    for name in ("text", "tokens", "lemmas", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"):
        expected = [current[0][name], current[1][name]] if name != "text" else ["Del mar", "Si"]
        assert found[name][:] == expected, name
    assert found["sent_id"][:] == ["h1", "2"]
    first = next(dataset_to_sentences(found))
    assert first.comments == ["# sent_id = h1", "# text = Del mar"]


def test_a_legacy_row_without_heads_is_refused():
    rows = legacy().to_dict()
    rows["head"][1] = ["None"]
    with pytest.raises(ValueError, match="row idx 2: found no head"):
        to_treebank_layout(Dataset.from_dict(rows, features=legacy().features), num_proc=None)


@pytest.mark.parametrize("make", [variant, lambda _: legacy()])
def test_no_rows_have_the_same_schema(current, make):
    empty = to_treebank_layout(make(current).select([]))
    assert len(empty) == 0
    assert empty.features == TREEBANK_FEATURES


def test_other_columns_are_refused(current):
    with pytest.raises(ValueError, match="of which upos, head, deprel is missing"):
        to_treebank_layout(Dataset.from_dict({"tokens": [["1"]]}))
    rows = variant(current).to_dict()
    rows["upos"][0][0] = "CONJ"
    with pytest.raises(ValueError, match="sentence h1: found UPOS 'CONJ'"):
        to_treebank_layout(Dataset.from_dict(rows, features=variant(current).features))
    rows = variant(current).to_dict()
    rows["lemmas"][0] = ["x"]
    with pytest.raises(ValueError, match="sentence h1: found 1 values of lemmas, expected 3"):
        to_treebank_layout(Dataset.from_dict(rows, features=variant(current).features))


def test_hub_ids_are_loaded_by_config_and_revision(current, monkeypatch):
    asked = []

    def load(path, name=None, revision=None, cache_dir=None):
        asked.append((path, name, revision))
        return DatasetDict({"test": current, "train": variant(current), "validation": legacy()})

    monkeypatch.setattr(datasets, "load_dataset", load)
    loaded = load_treebank("some/treebanks", config="xx_yy", revision="2.17")
    assert asked == [("some/treebanks", "xx_yy", "2.17")]
    assert list(loaded) == ["train", "dev", "test"]
    assert loaded["train"][:] == loaded["test"][:] == current[:]
    assert list(load_treebank("some/treebanks", splits=["dev"])) == ["dev"]
    with pytest.raises(ValueError, match="no split extra"):
        load_treebank("some/treebanks", splits=["extra"])


@pytest.mark.parametrize(
    "make", [lambda d: d, variant, lambda _: legacy()], ids=["current", "variant", "legacy"]
)
def test_parquet_files_keep_the_layouts(current, make, tmp_path):
    path = tmp_path / "train.parquet"
    make(current).to_parquet(path)
    data = datasets.load_dataset("parquet", data_files={"train": str(path)}, cache_dir=str(tmp_path / "c"))
    found = to_treebank_layout(data["train"])
    assert found.features == TREEBANK_FEATURES
    assert found["tokens"][:] == [["De", "el", "mar"], ["Si"]]

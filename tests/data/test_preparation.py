"""From rows to the prepared layout: gold only where it is wanted, limits, and reports."""

from __future__ import annotations

import io

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from hf_xst.data import (
    GoldError,
    first,
    hold_out,
    load_treebank,
    prepare,
    prepared_features,
    read_conllu,
    sentences_to_dataset,
)
from hf_xst.data.layout import UPOS_TAGS, tag_name


def from_text(text: str) -> Dataset:
    return sentences_to_dataset(read_conllu(io.StringIO(text)))


def chain(count: int) -> list[tuple[str, str, str, str]]:
    return [(f"w{n}", "X", str(n), "root" if n == 0 else "dep:a:b") for n in range(count)]


def test_the_prepared_layout(tiny):
    data, report = prepare(from_text(tiny), gold=True)
    assert data.features == prepared_features(gold=True)
    assert data[:] == {
        "sent_id": ["one", "<stream>:2"],
        "words": [["Mira", "lauft", "."], ["Ja"]],
        "upos": [["PROPN", "VERB", "PUNCT"], ["INTJ"]],
        "head": [[2, 0, 2], [0]],
        "deprel": [["nsubj", "root", "punct"], ["root"]],
    }
    assert str(report) == "2 of 2 sentences kept, 0 faulty"
    assert prepare(from_text(tiny), gold=True, strip_subtypes=False)[0][0]["deprel"][0] == "nsubj:pass"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"upos": ["DET", "NOUN", "VERB"]}, "3 upos for 2 words"),
        ({"upos": ["DET"]}, "1 upos for 2 words"),
        ({"upos": None}, "0 upos for 2 words"),
        ({"head": None}, "0 heads for 2 words"),
        ({"words": None}, "no words"),
        ({"mark": None}, "0 labels in mark for 2 words"),
    ],
)
def test_a_row_whose_lists_do_not_fit_is_a_fault_that_is_named(changes, fault):
    fits = {
        "sent_id": "s1",
        "words": ["a", "b"],
        "upos": ["DET", "NOUN"],
        "head": [2, 0],
        "deprel": ["det", "root"],
        "mark": ["x", "y"],
    }
    data = Dataset.from_list([fits, {**fits, "sent_id": "s2"} | changes])
    with pytest.raises(GoldError, match=f"s2: .*{fault}"):
        prepare(data, gold=True, labels=["mark"])
    kept, report = prepare(data, gold=True, labels=["mark"], faulty="skip")
    assert (kept["sent_id"][:], report.faulty) == (["s1"], 1)


def test_preparing_twice_changes_nothing(tiny):
    data, _ = prepare(from_text(tiny), gold=True)
    assert prepare(data, gold=True)[0][:] == data[:]


def test_unspecified_tags_stay(sentence_text):
    data, _ = prepare(from_text(sentence_text([("a", "_", "0", "root")])), gold=True)
    assert data[0]["upos"] == ["_"]


@pytest.mark.parametrize("heads", ["_", "x", "99", "1"])
def test_without_gold_heads_are_never_looked_at(sentence_text, heads):
    data = from_text(sentence_text([("a", "X", heads, "_"), ("b", "X", heads, "_")], "s"))
    prepared, report = prepare(data, gold=False)
    assert prepared.features == prepared_features(gold=False)
    assert prepared[:] == {"sent_id": ["s"], "words": [["a", "b"]], "upos": [["X", "X"]]}
    assert report.faulty == 0
    assert prepare(data.remove_columns(["head", "deprel"]), gold=False)[0][:] == prepared[:]


@pytest.mark.parametrize(
    ("limit", "added", "kept"), [(4, 0, 4), (4, 1, 3), (4, 2, 2), (1, 1, 0), (None, 9, 4)]
)
def test_the_limit_counts_added_tokens(sentence_text, limit, added, kept):
    data = from_text("".join(sentence_text(chain(n), f"s{n}") for n in (1, 2, 3, 4)))
    prepared, report = prepare(data, gold=True, max_length=limit, added_tokens=added)
    assert prepared["sent_id"][:] == [f"s{n}" for n in range(1, kept + 1)]
    assert (report.sentences, report.kept, report.too_long) == (4, kept, 4 - kept)
    assert report.too_long_ids == tuple(f"s{n}" for n in range(kept + 1, 5))[:3]
    assert prepared.features == prepared_features(gold=True)


def test_the_report_is_one_line(sentence_text):
    data = from_text(
        sentence_text(chain(3), "long")
        + sentence_text([("a", "X", "1", "dep")], "self")
        + sentence_text(chain(1), "ok")
    )
    _, report = prepare(data, gold=True, max_length=3, added_tokens=1, faulty="skip")
    assert str(report) == (
        "1 of 3 sentences kept, 1 over 3 tokens with 1 added (first: long), "
        "1 faulty (first: self: word 1 is its own head; no word has head 0)"
    )


def test_faulty_gold_is_refused_by_name_or_skipped(sentence_text):
    blank = sentence_text([("a", "X", "_", "_")], "blank")
    data = from_text(sentence_text(chain(2), "ok") + blank)
    with pytest.raises(GoldError, match=r"1 of 2 sentences .*blank: word 1: HEAD is blank.*faulty='skip'"):
        prepare(data, gold=True)
    prepared, report = prepare(data, gold=True, faulty="skip")
    assert prepared["sent_id"][:] == ["ok"]
    assert (report.kept, report.faulty) == (1, 1)
    assert len(prepare(from_text(blank), gold=True, faulty="skip")[0]) == 0


def test_several_roots_are_gold_only_where_they_are_wanted(sentence_text):
    data = from_text(sentence_text([("a", "X", "0", "root"), ("b", "X", "0", "root")]))
    assert prepare(data, gold=True, single_root=False)[0][0]["head"] == [0, 0]
    with pytest.raises(GoldError, match="expected one root"):
        prepare(data, gold=True)


def test_further_columns_are_kept_on_request(tiny):
    data, _ = prepare(from_text(tiny), gold=False, keep=["lemmas", "text"])
    assert data.column_names == ["sent_id", "words", "upos", "lemmas", "text"]
    with pytest.raises(ValueError, match="expected also nothing"):
        prepare(from_text(tiny), gold=False, keep=["nothing"])
    with pytest.raises(ValueError, match="found faulty='drop'"):
        prepare(from_text(tiny), gold=True, faulty="drop")


def test_rows_without_names_are_called_after_their_place():
    rows = {"sent_id": [None, "b"], "tokens": [["x"], ["y"]], "upos": [["_"], ["_"]]}
    strings = List(Value("string"))
    features = prepared_features(gold=False)
    features = type(features)({"sent_id": features["sent_id"], "tokens": strings, "upos": strings})
    data, _ = prepare(Dataset.from_dict(rows, features=features), gold=False)
    assert data["sent_id"][:] == ["sentence:1", "b"]


def test_a_class_label_without_a_class_is_no_tag():
    features = Features(
        {
            "tokens": List(Value("string")),
            "sent_id": Value("string"),
            "upos": List(ClassLabel(names=UPOS_TAGS)),
        }
    )
    rows = {"tokens": [["x", "y"]], "sent_id": ["a"], "upos": [[0, -1]]}
    data, _ = prepare(Dataset.from_dict(rows, features=features), gold=False)
    assert data["upos"][:] == [["NOUN", "_"]]
    assert [tag_name(tag, UPOS_TAGS) for tag in (None, -1, 0, "X")] == ["_", "_", "NOUN", "X"]


@pytest.mark.parametrize("num_proc", [None, 1, 2, 4, 8])
@pytest.mark.parametrize("gold", [True, False])
def test_any_number_of_processes_gives_the_same(sentence_text, num_proc, gold):
    ranged = "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n" + sentence_text(chain(3))
    data = from_text(ranged + "".join(sentence_text(chain(2), f"s{n}") for n in range(4)))
    prepared, _ = prepare(data, gold=gold, num_proc=num_proc)
    assert prepared.features == prepared_features(gold=gold)
    assert sum(map(len, prepared["words"])) == 11
    assert prepared[:] == prepare(data, gold=gold)[0][:]


@pytest.mark.parametrize("gold", [True, False])
def test_an_empty_split_has_the_same_schema(gold):
    prepared, report = prepare(sentences_to_dataset([]), gold=gold, num_proc=2)
    assert prepared.features == prepared_features(gold=gold)
    assert (len(prepared), report.sentences) == (0, 0)


@pytest.mark.parametrize(
    ("count", "fraction", "held"), [(10, 0.1, 1), (25, 0.1, 2), (2, 0.1, 1), (10, 0.5, 5)]
)
def test_the_end_is_held_out(count, fraction, held):
    data = Dataset.from_dict({"n": list(range(count))})
    left, out = hold_out(data, fraction)
    assert left["n"][:] + out["n"][:] == list(range(count))
    assert len(out) == held


def test_holding_out_needs_something_to_hold():
    data = Dataset.from_dict({"n": [1]})
    with pytest.raises(ValueError, match="found 1 sentences, expected at least 2"):
        hold_out(data)
    with pytest.raises(ValueError, match=r"fraction 1\.0"):
        hold_out(data, 1.0)


def test_the_first_rows():
    data = Dataset.from_dict({"n": [1, 2, 3]})
    assert [first(data, n)["n"][:] for n in (0, 2, 9)] == [[], [1, 2], [1, 2, 3]]
    with pytest.raises(ValueError, match="found -1"):
        first(data, -1)


def test_field_cases_of_blank_and_stale_heads(shared):
    def prepared(name):
        data = load_treebank(shared("fieldcases", "files", f"{name}.conllu"))["data"]
        with pytest.raises(GoldError, match="p06-tr"):
            prepare(data, gold=True)
        return prepare(data, gold=False)[0]

    blank, stale = prepared("p06_heads_blank"), prepared("p06_heads_stale")
    assert blank[:] == stale[:]
    assert [len(words) for words in blank["words"]] == [5, 4]


def test_field_case_of_bad_trees(shared):
    data = load_treebank(shared("fieldcases", "files", "p07_bad_trees.conllu"))["data"]
    kept, report = prepare(data, gold=True, faulty="skip")
    assert kept["sent_id"][:] == ["p07-ok", "p07-root-not-zero"]
    assert report.faulty == 5
    several, _ = prepare(data, gold=True, faulty="skip", single_root=False)
    assert "p07-two-roots" in several["sent_id"][:]


@pytest.mark.parametrize("num_proc", [1, 2, 4, 8])
def test_field_case_of_sparse_columns(shared, num_proc):
    data = load_treebank(shared("fieldcases", "files", "p10_sparse_extras.conllu"))["data"]
    prepared, _ = prepare(data, gold=True, num_proc=num_proc)
    assert prepared.features == prepared_features(gold=True)
    assert sum(map(len, prepared["words"])) == 19


def test_field_case_of_the_long_sentence(shared):
    data = load_treebank(shared("fieldcases", "files", "p14_long_sentence.conllu"))["data"]
    kept, report = prepare(data, gold=True, max_length=100, added_tokens=1)
    assert [len(words) for words in kept["words"]] == [2]
    assert report.too_long_ids == ("p14-de-long",)

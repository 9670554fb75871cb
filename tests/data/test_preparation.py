"""Test the prepared layout, gold faults, length limits and reports."""

from __future__ import annotations

import io
import itertools

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from hf_xst.data import (
    GoldError,
    first_rows,
    hold_out,
    load_treebank,
    prepare,
    prepared_features,
    read_conllu,
    sentences_to_dataset,
)
from hf_xst.data.layout import UPOS_TAGS
from hf_xst.data.preparation import gold_faults

STRINGS = List(Value("string"))


def from_text(text: str) -> Dataset:
    return sentences_to_dataset(read_conllu(io.StringIO(text)))


def chain(count: int) -> list[tuple[str, str, str, str]]:
    return [(f"w{n}", "X", str(n), "root" if n == 0 else "dep:a:b") for n in range(count)]


def test_prepared_layout(tiny):
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
    assert prepare(data, gold=True)[0][:] == data[:]
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
def test_mismatched_list_lengths_are_faults(changes, fault):
    valid = {
        "sent_id": "s1",
        "words": ["a", "b"],
        "upos": ["DET", "NOUN"],
        "head": [2, 0],
        "deprel": ["det", "root"],
        "mark": ["x", "y"],
    }
    data = Dataset.from_list([valid, {**valid, "sent_id": "s2"} | changes])
    with pytest.raises(GoldError, match=f"s2: .*{fault}"):
        prepare(data, gold=True, labels=["mark"])
    kept, report = prepare(data, gold=True, labels=["mark"], faulty="skip")
    assert (kept["sent_id"][:], report.faulty) == (["s1"], 1)


@pytest.mark.parametrize("heads", ["_", "x", "99", "1"])
def test_heads_are_not_read_without_gold(sentence_text, heads):
    data = from_text(sentence_text([("a", "X", heads, "_"), ("b", "_", heads, "_")], "s"))
    prepared, report = prepare(data, gold=False)
    assert prepared.features == prepared_features(gold=False)
    assert prepared[:] == {"sent_id": ["s"], "words": [["a", "b"]], "upos": [["X", "_"]]}
    assert report.faulty == 0
    assert prepare(data.remove_columns(["head", "deprel"]), gold=False)[0][:] == prepared[:]


@pytest.mark.parametrize(
    ("limit", "added", "kept"), [(4, 0, 4), (4, 1, 3), (4, 2, 2), (1, 1, 0), (None, 9, 4)]
)
def test_length_limit_counts_added_tokens(sentence_text, limit, added, kept):
    data = from_text("".join(sentence_text(chain(n), f"s{n}") for n in (1, 2, 3, 4)))
    prepared, report = prepare(data, gold=True, max_length=limit, added_tokens=added)
    assert prepared["sent_id"][:] == [f"s{n}" for n in range(1, kept + 1)]
    assert (report.sentences, report.kept, report.too_long) == (4, kept, 4 - kept)
    assert report.too_long_ids == tuple(f"s{n}" for n in range(kept + 1, 5))[:3]
    assert prepared.features == prepared_features(gold=True)


def test_report_is_one_line(sentence_text):
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


def test_only_the_first_faults_of_a_sentence_are_listed(sentence_text):
    blank = sentence_text([("a", "X", "_", "_")] * 40, "blank")
    with pytest.raises(GoldError, match=r"word 2: HEAD is blank; 77 more\); correct"):
        prepare(from_text(blank), gold=True)


def test_faulty_gold_raises_or_is_skipped(sentence_text):
    blank = sentence_text([("a", "X", "_", "_")], "blank")
    data = from_text(sentence_text(chain(2), "ok") + blank)
    with pytest.raises(GoldError, match=r"1 of 2 sentences .*blank: word 1: HEAD is blank.*faulty='skip'"):
        prepare(data, gold=True)
    with pytest.raises(ValueError, match="found faulty='drop'"):
        prepare(data, gold=True, faulty="drop")
    prepared, report = prepare(data, gold=True, faulty="skip")
    assert prepared["sent_id"][:] == ["ok"]
    assert (report.kept, report.faulty) == (1, 1)
    assert len(prepare(from_text(blank), gold=True, faulty="skip")[0]) == 0


def test_several_roots_require_single_root_false(sentence_text):
    data = from_text(sentence_text([("a", "X", "0", "root"), ("b", "X", "0", "root")]))
    assert prepare(data, gold=True, single_root=False)[0][0]["head"] == [0, 0]
    with pytest.raises(GoldError, match="expected one root"):
        prepare(data, gold=True)


def test_further_columns_are_kept_on_request(tiny):
    data, _ = prepare(from_text(tiny), gold=False, keep=["lemmas", "text"])
    assert data.column_names == ["sent_id", "words", "upos", "lemmas", "text"]
    with pytest.raises(ValueError, match="expected also nothing"):
        prepare(from_text(tiny), gold=False, keep=["nothing"])


def test_missing_names_and_tags():
    features = Features(
        {"tokens": STRINGS, "sent_id": Value("string"), "upos": List(ClassLabel(names=UPOS_TAGS))}
    )
    rows = {"tokens": [["x", "y"], ["z"]], "sent_id": [None, "b"], "upos": [[0, -1], [3]]}
    data, _ = prepare(Dataset.from_dict(rows, features=features), gold=False)
    assert data["sent_id"][:] == ["sentence:1", "b"]
    assert data["upos"][:] == [["NOUN", "_"], ["NUM"]]


@pytest.mark.parametrize("num_proc", [None, 2, 8])
@pytest.mark.parametrize("gold", [True, False])
def test_result_does_not_depend_on_the_number_of_processes(sentence_text, num_proc, gold):
    ranged = "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n" + sentence_text(chain(3))
    data = from_text(ranged + "".join(sentence_text(chain(2), f"s{n}") for n in range(4)))
    prepared, _ = prepare(data, gold=gold, num_proc=num_proc)
    assert prepared.features == prepared_features(gold=gold)
    assert sum(map(len, prepared["words"])) == 11
    assert prepared[:] == prepare(data, gold=gold)[0][:]
    empty, report = prepare(data.select([]), gold=gold, num_proc=num_proc)
    assert empty.features == prepared.features
    assert (len(empty), report.sentences) == (0, 0)


@pytest.mark.parametrize(("count", "held"), [(10, 1), (25, 2), (2, 1)])
def test_hold_out_takes_the_last_rows(count, held):
    data = Dataset.from_dict({"n": list(range(count))})
    remaining, held_out = hold_out(data)
    assert remaining["n"][:] + held_out["n"][:] == list(range(count))
    assert len(held_out) == held


def test_one_sentence_cannot_be_held_out():
    data = Dataset.from_dict({"n": [1]})
    with pytest.raises(ValueError, match="found 1 sentences, expected at least 2"):
        hold_out(data)


def test_first_rows():
    data = Dataset.from_dict({"n": [1, 2, 3]})
    assert [first_rows(data, n)["n"][:] for n in (0, 2, 9)] == [[], [1, 2], [1, 2, 3]]


def reaches_root(heads: tuple[int, ...]) -> bool:
    """Climb from every word at most as many steps as there are words."""
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("single_root", [True, False])
def test_gold_faults_are_empty_exactly_for_trees(count, single_root):
    for heads in itertools.product(range(count + 1), repeat=count):
        is_tree = reaches_root(heads) and (heads.count(0) == 1 or not single_root)
        faults = gold_faults(heads, ["x"] * count, single_root=single_root)
        assert bool(faults) != is_tree, (heads, faults)
        assert gold_faults([str(h) for h in heads], ["x"] * count, single_root=single_root) == faults


@pytest.mark.parametrize(
    ("heads", "deprels", "fault"),
    [
        (["2", "_"], ["a", "b"], "word 2: HEAD is blank"),
        (["2", ""], ["a", "b"], "word 2: HEAD is blank"),
        (["2", None], ["a", "b"], "word 2: HEAD is blank"),
        (["2", "+0"], ["a", "b"], "word 2: HEAD '+0' is not a non-negative integer"),
        (["2", "-1"], ["a", "b"], "word 2: HEAD '-1' is not a non-negative integer"),
        (["2", "٠"], ["a", "b"], "word 2: HEAD '٠' is not a non-negative integer"),
        (["2", "1.1"], ["a", "b"], "word 2: HEAD '1.1' is not a non-negative integer"),
        (["3", "0"], ["a", "b"], "word 1: HEAD 3 is beyond the 2 words"),
        (["2", "0"], ["a", "_"], "word 2: DEPREL is blank"),
        (["2", "0"], ["a"], "2 heads for 1 relations"),
        ([], [], "no words"),
        (["0", "2"], ["a", "b"], "word 2 is its own head"),
        (["2", "3", "1", "0"], ["a"] * 4, "words 1, 2, 3 form a cycle"),
        (["0", "0"], ["a", "b"], "words 1, 2 have head 0, expected one root"),
        (["2", "1"], ["a", "b"], "no word has head 0"),
    ],
)
def test_gold_faults_name_each_fault(heads, deprels, fault):
    assert fault in gold_faults(heads, deprels)


def test_gold_faults_of_long_and_unusual_trees():
    assert gold_faults(["0", "1"], ["punct", "root"]) == []  # names of relations are not restricted
    assert gold_faults([2, 1, 4, 3, 0], ["x"] * 5) == ["words 1, 2 form a cycle", "words 3, 4 form a cycle"]
    assert gold_faults(list(range(20_000)), ["x"] * 20_000) == []


def test_field_case_p06_blank_and_stale_heads(shared):
    def prepared(name):
        data = load_treebank(shared("fieldcases", "files", f"{name}.conllu"))["data"]
        with pytest.raises(GoldError, match="p06-tr"):
            prepare(data, gold=True)
        return prepare(data, gold=False)[0]

    blank, stale = prepared("p06_heads_blank"), prepared("p06_heads_stale")
    assert blank[:] == stale[:]
    assert [len(words) for words in blank["words"]] == [5, 4]


def test_field_case_p07_bad_trees(shared):
    path = shared("fieldcases", "files", "p07_bad_trees.conllu")
    assert {s.sent_id: gold_faults(s.heads, s.deprels) for s in read_conllu(path)} == {
        "p07-ok": [],
        "p07-two-roots": ["words 1, 3 have head 0, expected one root"],
        "p07-self-head": ["word 3 is its own head"],
        "p07-cycle": ["words 1, 3 form a cycle"],
        "p07-no-root": ["words 1, 3 form a cycle", "no word has head 0"],
        "p07-zero-not-root": ["words 1, 2 have head 0, expected one root"],
        "p07-root-not-zero": [],
    }
    data = load_treebank(path)["data"]
    kept, report = prepare(data, gold=True, faulty="skip")
    assert kept["sent_id"][:] == ["p07-ok", "p07-root-not-zero"]
    assert report.faulty == 5
    several, _ = prepare(data, gold=True, faulty="skip", single_root=False)
    assert "p07-two-roots" in several["sent_id"][:]


@pytest.mark.parametrize("num_proc", [1, 2, 4, 8])
def test_field_case_p10_sparse_columns(shared, num_proc):
    data = load_treebank(shared("fieldcases", "files", "p10_sparse_extras.conllu"))["data"]
    prepared, _ = prepare(data, gold=True, num_proc=num_proc)
    assert prepared.features == prepared_features(gold=True)
    assert sum(map(len, prepared["words"])) == 19


def test_field_case_p14_long_sentence(shared):
    data = load_treebank(shared("fieldcases", "files", "p14_long_sentence.conllu"))["data"]
    kept, report = prepare(data, gold=True, max_length=100, added_tokens=1)
    assert [len(words) for words in kept["words"]] == [2]
    assert report.too_long_ids == ("p14-de-long",)


@pytest.mark.slow
@pytest.mark.real
def test_real_gold_trees_have_no_faults(shared):
    paths = sorted(shared("ud-treebanks-v2.2").glob("UD_*/*-ud-dev.conllu"))
    assert len(paths) > 10
    for path in paths:
        for sentence in read_conllu(path):
            assert gold_faults(sentence.heads, sentence.deprels) == []

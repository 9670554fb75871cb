"""Gold trees: which faults are seen, by comparison with a search over all heads."""

from __future__ import annotations

import io
import itertools

import pytest

from hf_xst.data import ConlluError, check_gold_tree, gold_faults, read_conllu


def reaches_root(heads: tuple[int, ...]) -> bool:
    """Slow and simple: climb from every word at most as many steps as there are words."""
    for start in range(len(heads)):
        place = start + 1
        for _ in range(len(heads)):
            place = heads[place - 1] if place else 0
        if place:
            return False
    return True


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("single_root", [True, False])
def test_no_fault_exactly_for_trees(count, single_root):
    for heads in itertools.product(range(count + 1), repeat=count):
        tree = reaches_root(heads) and (heads.count(0) == 1 or not single_root)
        faults = gold_faults(heads, ["x"] * count, single_root=single_root)
        assert bool(faults) != tree, (heads, faults)
        assert gold_faults([str(h) for h in heads], ["x"] * count, single_root=single_root) == faults


@pytest.mark.parametrize(
    ("heads", "deprels", "fault"),
    [
        (["2", "_"], ["a", "b"], "word 2: HEAD is blank"),
        (["2", ""], ["a", "b"], "word 2: HEAD is blank"),
        (["2", None], ["a", "b"], "word 2: HEAD is blank"),
        (["2", "+0"], ["a", "b"], "word 2: HEAD '+0' is no whole number"),
        (["2", "-1"], ["a", "b"], "word 2: HEAD '-1' is no whole number"),
        (["2", "٠"], ["a", "b"], "word 2: HEAD '٠' is no whole number"),
        (["2", "1.1"], ["a", "b"], "word 2: HEAD '1.1' is no whole number"),
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
def test_each_fault_is_named(heads, deprels, fault):
    assert fault in gold_faults(heads, deprels)


def test_names_of_relations_are_accepted():
    assert gold_faults(["0", "1"], ["punct", "root"]) == []


def test_two_cycles_are_both_named_and_long_chains_end():
    assert gold_faults([2, 1, 4, 3, 0], ["x"] * 5) == ["words 1, 2 form a cycle", "words 3, 4 form a cycle"]
    chain = list(range(20_000))
    assert gold_faults(chain, ["x"] * len(chain)) == []


def test_a_sentence_is_refused_by_its_name(sentence_text):
    good = sentence_text([("a", "X", "0", "root"), ("b", "X", "1", "dep:x")], "fine")
    bad = sentence_text([("a", "X", "_", "_")], "blank")
    first, second = read_conllu(io.StringIO(good + bad))
    check_gold_tree(first)
    with pytest.raises(ConlluError, match=r"<stream>:5: sentence blank: .*word 1: HEAD is blank"):
        check_gold_tree(second)


def test_field_case_of_bad_trees(shared):
    found = read_conllu(shared("fieldcases", "files", "p07_bad_trees.conllu"))
    faults = {s.sent_id: gold_faults(s.heads, s.deprels) for s in found}
    assert faults == {
        "p07-ok": [],
        "p07-two-roots": ["words 1, 3 have head 0, expected one root"],
        "p07-self-head": ["word 3 is its own head"],
        "p07-cycle": ["words 1, 3 form a cycle"],
        "p07-no-root": ["words 1, 3 form a cycle", "no word has head 0"],
        "p07-zero-not-root": ["words 1, 2 have head 0, expected one root"],
        "p07-root-not-zero": [],
    }


@pytest.mark.slow
@pytest.mark.real
def test_real_gold_trees_have_no_fault(shared):
    paths = sorted(shared("ud-treebanks-v2.2").glob("UD_*/*-ud-dev.conllu"))
    assert len(paths) > 10
    for path in paths:
        for sentence in read_conllu(path):
            check_gold_tree(sentence)

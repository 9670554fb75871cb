from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hf_xst
from hf_xst.data import write_conllu
from hf_xst.demo import LanguageSettings, as_sentence, generate_language, source_languages, target_language
from hf_xst.demo.grammar import LONGEST
from hf_xst.demo.lexicon import Lexicon
from hf_xst.demo.world import KINDS

ALL = (*source_languages(), target_language())
PLAIN = LanguageSettings(name="Plain", order_noise=0.0)
UPOS = set("NOUN PROPN PRON VERB AUX ADJ ADV DET NUM ADP PART SCONJ CCONJ PUNCT".split())
RELATIONS = set("root nsubj obj iobj obl advmod amod det case nmod aux cop mark ccomp advcl".split())
RELATIONS |= set("conj cc punct nummod acl compound".split())


@pytest.fixture(scope="module", params=ALL, ids=lambda language: language.name)
def language(request):
    return generate_language(request.param, sentences=600, seed=3)


@pytest.fixture(scope="module")
def all_languages():
    return [generate_language(language, sentences=300, seed=3) for language in ALL]


@cache
def generate(seed=0, sentences=600, **changes):
    """Return sentences of the plain language with changed settings."""
    return generate_language(replace(PLAIN, **changes), sentences=sentences, seed=seed).sentences


def is_tree(heads):
    for word in range(1, len(heads) + 1):
        steps = 0
        while word and steps <= len(heads):
            word, steps = heads[word - 1], steps + 1
        if word:
            return False
    return heads.count(0) == 1


def is_projective(heads):
    arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, start=1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


def arcs(rows, relation, head_tag=None):
    """Yield (row, head, dependent), from 0, for each arc with the relation whose head is a word."""
    for row in rows:
        for word, (head, name) in enumerate(zip(row["head"], row["deprel"], strict=True)):
            if name == relation and head and head_tag in (None, row["upos"][head - 1]):
                yield row, head - 1, word


def share_before_head(rows, relation, head_tag=None, dependent_tag=None):
    sides = [
        word < head
        for row, head, word in arcs(rows, relation, head_tag)
        if dependent_tag in (None, row["upos"][word])
    ]
    assert len(sides) > 20
    return sum(sides) / len(sides)


def entropy(counts):
    total = sum(counts.values())
    return -sum(count / total * math.log2(count / total) for count in counts.values())


def share_of_ambiguous_forms(rows):
    tags = {}
    for row in rows:
        for word, tag in zip(row["words"], row["upos"], strict=True):
            tags.setdefault(word, set()).add(tag)
    return sum(len(found) > 1 for found in tags.values()) / len(tags)


# all sentences


def test_sentences_are_projective_trees_with_one_root(language):
    for row in language.sentences:
        assert {len(row[column]) for column in ("upos", "head", "deprel")} == {len(row["words"])}
        assert is_tree(row["head"])
        assert is_projective(row["head"])
        assert [name == "root" for name in row["deprel"]] == [head == 0 for head in row["head"]]


def test_tags_and_relations_are_known(language):
    tags = {tag for row in language.sentences for tag in row["upos"]}
    relations = {name for row in language.sentences for name in row["deprel"]}
    assert tags <= UPOS
    assert len(tags) >= len(UPOS) - 1
    assert relations <= RELATIONS
    assert relations >= RELATIONS - {"cop", "det"}


def test_every_word_is_printable_and_has_a_vector(language):
    known = set(language.vectors.words)
    for row in language.sentences:
        assert known >= set(row["words"])
        assert all(word.isprintable() and " " not in word for word in row["words"])


def test_lengths(language):
    lengths = [len(row["words"]) for row in language.sentences]
    assert 7 <= np.mean(lengths) <= 12
    assert 17 <= max(lengths) <= LONGEST


def test_number_of_lemmas():
    assert 250 <= sum(count for _, count in KINDS.values()) <= 400


def test_entropies_are_natural(language):
    words = Counter(word for row in language.sentences for word in row["words"])
    relations = Counter(name for row in language.sentences for name in row["deprel"])
    tags = Counter(tag for row in language.sentences for tag in row["upos"])
    assert 6.0 < entropy(words) < 9.5
    assert 3.2 < entropy(relations) < math.log2(len(RELATIONS))
    assert 2.8 < entropy(tags) < math.log2(len(UPOS))
    assert max(relations.values()) < 0.2 * sum(relations.values())


def test_sentence_names_are_unique_and_sentences_vary(language):
    assert len({row["sent_id"] for row in language.sentences}) == len(language.sentences)
    assert len({tuple(row["words"]) for row in language.sentences}) > 0.95 * len(language.sentences)


# the seed


def test_seed_determines_sentences_and_longer_runs_extend_shorter_ones():
    short = generate_language(PLAIN, sentences=50, seed=5)
    long = generate_language(PLAIN, sentences=80, seed=5)
    other = generate_language(PLAIN, sentences=50, seed=6)
    assert long.sentences[:50] == short.sentences
    assert [row["words"] for row in other.sentences] != [row["words"] for row in short.sentences]
    assert other.vectors.words == short.vectors.words
    assert np.array_equal(other.vectors.matrix, short.vectors.matrix)


def test_same_in_every_process(tmp_path):
    code = (
        "import sys, types\n"
        "package = types.ModuleType('hf_xst')  # an empty one: the real one loads transformers first\n"
        "package.__path__ = [sys.argv[1]]\n"
        "sys.modules['hf_xst'] = package\n"
        "from hf_xst.demo import generate_language, target_language\n"
        "language = generate_language(target_language(), sentences=30, seed=4)\n"
        "print(ascii(language.sentences), language.vectors.sha256)\n"
    )
    language = generate_language(target_language(), sentences=30, seed=4)
    environment = {"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-c", code, hf_xst.__path__[0]]
    other = subprocess.run(arguments, check=True, env=environment, capture_output=True, text=True).stdout
    assert other.strip() == f"{language.sentences!a} {language.vectors.sha256}"


def test_another_world_has_other_words_and_vectors():
    here, there = (generate_language(replace(PLAIN, world=number), sentences=5, seed=0) for number in (0, 1))
    assert set(here.vectors.words) != set(there.vectors.words)


# effects of the settings


@pytest.mark.parametrize("order", ["SVO", "SOV", "VSO", "VOS", "OVS", "OSV"])
def test_word_order(order):
    rows = generate(word_order=order)
    assert share_before_head(rows, "obj") == float(order.index("O") < order.index("V"))
    assert share_before_head(rows, "nsubj", "VERB") == float(order.index("S") < order.index("V"))
    both = [
        (subject < thing)
        for row, verb, thing in arcs(rows, "obj")
        for _, other, subject in arcs([row], "nsubj")
        if verb == other
    ]
    assert len(both) > 50
    assert set(both) == {order.index("S") < order.index("O")}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("setting", "relation", "head_tag", "dependent_tag"),
    [
        ("adposition_first", "case", None, None),
        ("adjective_first", "amod", None, None),
        ("numeral_first", "nummod", None, None),
        ("determiner_first", "det", None, None),
        ("relative_first", "acl", None, None),
        ("genitive_first", "compound", None, None),
        ("auxiliary_first", "aux", None, None),
        ("auxiliary_first", "cop", None, None),
        ("negation_first", "advmod", "VERB", "PART"),
        ("clause_first", "advcl", None, None),
        ("subordinator_first", "mark", None, None),
    ],
)
def test_dependents_are_on_the_configured_side(setting, first, relation, head_tag, dependent_tag):
    rows = generate(sentences=900, **{setting: first})
    assert share_before_head(rows, relation, head_tag, dependent_tag) == float(first)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("setting", "relation", "tag"), [("adverb_first", "advmod", "ADV"), ("oblique_first", "obl", None)]
)
def test_adverbs_and_obliques_prefer_the_configured_side(setting, first, relation, tag):
    share = share_before_head(generate(**{setting: first}), relation, "VERB", tag)
    assert 0.8 < (share if first else 1 - share) < 1.0


def test_order_noise_varies_the_order():
    shares = [
        share_before_head(generate(word_order="SOV", order_noise=noise), "obj") for noise in (0.0, 0.3, 1.0)
    ]
    assert shares[0] == 1.0 > shares[1] > shares[2]
    assert shares[2] == pytest.approx(0.5, abs=0.1)


def test_question_particle():
    def places(rows):
        return [row["words"].index("?") for row in rows if "?" in row["words"]]

    def particles(rows):
        negations = Counter(row["words"][w] for row, _, w in arcs(rows, "advmod") if row["upos"][w] == "PART")
        return len(negations)

    assert places(generate())
    assert [particles(generate(question_particle=where)) for where in ("none", "first", "last")] == [1, 2, 2]
    questions = [row for row in generate(question_particle="last") if row["words"][-1] == "?"]
    assert sum(row["upos"][-2] == "PART" for row in questions) > 0.7 * len(questions)


def test_cases_replace_adpositions():
    bare, marked = generate(), generate(cases=("acc", "gen", "loc", "ins", "abl"))
    assert sum(1 for _ in arcs(marked, "case")) < 0.4 * sum(1 for _ in arcs(bare, "case"))
    forms = [len(Lexicon(replace(PLAIN, cases=cases)).forms) for cases in ((), ("acc",), ("acc", "dat"))]
    assert forms == sorted(set(forms))


def test_articles_copula_and_tense():
    def count(rows, tag):
        return sum(row["upos"].count(tag) for row in rows)

    assert count(generate(articles=False), "DET") < 0.5 * count(generate(), "DET")
    assert not any("cop" in row["deprel"] for row in generate(copula=False))
    assert count(generate(tense_suffix=False), "AUX") > 1.5 * count(generate(), "AUX")
    assert len(Lexicon(replace(PLAIN, tense_suffix=False)).forms) < len(Lexicon(PLAIN).forms)
    assert len(Lexicon(replace(PLAIN, agreement=False)).forms) < len(Lexicon(PLAIN).forms)
    assert len(Lexicon(replace(PLAIN, adjective_agreement=True)).forms) > len(Lexicon(PLAIN).forms)


def test_pro_drop():
    def pronouns(rate):
        return sum(
            1 for row, _, word in arcs(generate(pro_drop=rate), "nsubj") if row["upos"][word] == "PRON"
        )

    assert pronouns(0.0) > pronouns(0.5) > pronouns(1.0) == 0


def test_extraposition_crosses_arcs_and_keeps_trees():
    rows = generate(extraposition=1.0, word_order="SOV")
    assert all(is_tree(row["head"]) and row["upos"][-1] == "PUNCT" for row in rows)
    assert 0.02 < sum(not is_projective(row["head"]) for row in rows) / len(rows) < 0.5


def test_ambiguity_gives_forms_several_tags():
    shares = [share_of_ambiguous_forms(generate(ambiguity=rate, sentences=1500)) for rate in (0.0, 0.25, 1.0)]
    assert shares[0] < 0.02 < shares[1] < shares[2]


def test_vector_noise_moves_translations_apart():
    def gap(**noise):
        one, other = (
            vectors_of_concepts(replace(PLAIN, name=name, ambiguity=0.0, **noise))
            for name in ("One", "Other")
        )
        return float(np.median(np.linalg.norm(one - other, axis=1)))

    assert gap(vector_noise=0.0, language_noise=0.0) == 0.0
    assert 0 < gap(vector_noise=0.3, language_noise=0.0) < gap(vector_noise=0.9, language_noise=0.0)
    assert 0 < gap(vector_noise=0.0, language_noise=0.3)
    assert gap(vector_noise=0.5, language_noise=0.0) == pytest.approx(0.5 * math.sqrt(2), rel=0.1)


@given(st.data())
def test_all_combinations_of_settings_give_trees(data):
    switches = [name for name, value in asdict(PLAIN).items() if isinstance(value, bool)]
    mixed = replace(
        PLAIN,
        **{name: data.draw(st.booleans(), name) for name in switches},
        word_order=data.draw(st.sampled_from(["SVO", "SOV", "VSO", "VOS", "OVS", "OSV"])),
        cases=tuple(data.draw(st.sets(st.sampled_from(["acc", "gen", "dat", "loc", "ins", "abl"])))),
        order_noise=data.draw(st.floats(0, 1)),
        ambiguity=data.draw(st.floats(0, 1)),
        cognates=data.draw(st.floats(0, 1)),
    )
    for row in generate_language(mixed, sentences=20, seed=data.draw(st.integers(0, 99))).sentences:
        assert is_tree(row["head"])
        assert is_projective(row["head"])


# the five languages together


def test_the_target_shares_its_traits_with_two_or_three_sources():
    sources, target = source_languages(), target_language()
    traits = [
        name for name in asdict(target) if name.endswith("_first") or name in ("word_order", "articles")
    ]
    traits += ["question_particle", "copula", "tense_suffix", "agreement", "adjective_agreement"]
    shared = {name: [asdict(s)[name] == asdict(target)[name] for s in sources] for name in traits}
    shared |= {case: [case in s.cases for s in sources] for case in target.cases}
    assert {name: sum(who) for name, who in shared.items() if sum(who) not in (2, 3)} == {}
    likeness = np.mean(list(shared.values()), axis=0)
    assert likeness.min() > 0.4
    assert likeness.max() < 0.8


def test_changes_apply_to_all_sources():
    assert {language.world for language in source_languages(world=7)} == {7}
    assert target_language(vector_noise=0.1).vector_noise == 0.1


def test_lexicons_differ_but_share_some_words(all_languages):
    forms = [set(language.vectors.words) for language in all_languages]
    overlaps = [len(a & b) / min(len(a), len(b)) for i, a in enumerate(forms) for b in forms[:i]]
    assert max(overlaps) < 0.15
    assert min(len(a & b) for i, a in enumerate(forms) for b in forms[:i]) >= 3


def vectors_of_concepts(language):
    """Return one vector a concept, that of its bare form."""
    vectors = generate_language(language, sentences=0, seed=0).vectors
    rows = dict(zip(vectors.words, vectors.matrix, strict=True))
    forms = Lexicon(language).forms
    return np.stack([rows[form] for key, form in forms.items() if key[1:] == ("", "")])


def test_translations_are_nearer_than_other_words():
    one, other = (vectors_of_concepts(language) for language in (ALL[0], ALL[4]))
    one, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (one, other))
    likeness = one @ other.T
    translations = np.diag(likeness)
    assert translations.mean() > likeness.mean() + 0.4
    assert (translations > np.median(likeness, axis=1)).mean() > 0.95
    assert 0.4 < (likeness.argmax(axis=1) == np.arange(len(one))).mean() < 0.98


# files


def test_conllu_is_well_formed(language, tmp_path):
    write_conllu(map(as_sentence, language.sentences), tmp_path / "all.conllu")
    text = (tmp_path / "all.conllu").read_text(encoding="utf-8")
    blocks = text.removesuffix("\n\n").split("\n\n")
    assert text.endswith("\n\n")
    assert len(blocks) == len(language.sentences)
    for block, row in zip(blocks, language.sentences, strict=True):
        comments = [line for line in block.split("\n") if line.startswith("#")]
        lines = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        assert comments[0] == f"# sent_id = {row['sent_id']}"
        assert {len(columns) for columns in lines} == {10}
        assert all(cell for columns in lines for cell in columns)
        ids, forms, _, tags, _, _, heads, relations, _, misc = zip(*lines, strict=True)
        assert ids == tuple(str(place) for place in range(1, len(lines) + 1))
        assert (list(forms), list(tags), list(relations)) == (row["words"], row["upos"], row["deprel"])
        assert [int(head) for head in heads] == row["head"]
        spaces = ["" if cell == "SpaceAfter=No" else " " for cell in misc]
        assert comments[1] == "# text = " + "".join(map("".join, zip(forms, spaces, strict=True))).rstrip()


def test_vector_file(language, tmp_path):
    language.write_vectors(tmp_path / "words.vec")
    first, *rows = (tmp_path / "words.vec").read_text(encoding="utf-8").splitlines()
    words, matrix = language.vectors.words, language.vectors.matrix
    assert matrix.dtype == np.float32
    assert first == f"{len(words)} {matrix.shape[1]}"
    assert [row.split(" ")[0] for row in rows] == words
    assert len(set(words)) == len(words)
    written = np.array([row.split(" ")[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(written, matrix, rtol=1e-5)

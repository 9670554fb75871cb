"""Names of sources, stretches of splits, and tags that a model puts in the place of others."""

from __future__ import annotations

import pytest
from datasets import Dataset, concatenate_datasets
from transformers import pipeline

from helpers.small_models import UPOS, gold, model_of, vectors
from hf_xst.commands.sentences import (
    annotate,
    gold_rows,
    has_split,
    leave_out,
    needs_structure,
    prepare_gold,
    split_of,
)
from hf_xst.data import ConlluSentence, prepare, write_conllu
from hf_xst.data.layout import content_hash, sentences_to_dataset
from hf_xst.inference.annotation import Annotator, load_tagger
from hf_xst.sources.loading import SourceSpec, load_model, weights_digest
from hf_xst.sources.pool import SourcePool
from hf_xst.sources.word_checks import check_tags, warn_of_unknown_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out/en", ("en", "out/en", None)),
        ("out/en/", ("en", "out/en", None)),
        ("name=out/en", ("name", "out/en", None)),
        ("user/model@v1", ("model", "user/model", "v1")),
        ("a b=user/model@refs/pr/1", ("a b", "user/model", "refs/pr/1")),
    ],
)
def test_sources_are_named_by_hand_or_by_their_last_part(text, expected):
    found = SourceSpec.parse(text)
    assert (found.name, found.path, found.revision) == expected


def test_a_folder_name_with_an_at_sign(tmp_path):
    for name in ("en", "en@v2"):
        model_of("tagger", seed=len(name)).save_pretrained(tmp_path / name)
    found = SourceSpec.parse(f"{tmp_path}/en@v2")
    assert (found.name, found.path, found.revision) == ("en@v2", f"{tmp_path}/en@v2", None)
    digests = {weights_digest(load_model(f"{tmp_path}/{name}")) for name in ("en", "en@v2")}
    assert len(digests) == 2
    with pytest.raises(ValueError, match="en is a local folder, which has no revision 'typo'"):
        load_model(f"{tmp_path}/en@typo")


def test_the_present_folder_has_a_name(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert SourceSpec.parse(".").name == "here"
    assert SourceSpec.parse(".").public_id() is None
    assert SourceSpec.parse("user/model").public_id() == "user/model"


@pytest.mark.parametrize("text", ["", "=x", "name=", "x@", "x@y@z", "/a=b"])
def test_other_spellings_of_sources_are_rejected(text):
    with pytest.raises(ValueError, match=r"expected NAME=PATH_OR_ID\[@REVISION\]"):
        SourceSpec.parse(text)


def test_at_least_one_source_is_required():
    with pytest.raises(ValueError, match="no source model; give at least one"):
        SourceSpec.parse_all([])


@pytest.fixture
def treebank(tmp_path):
    rows = gold([2] * 11)
    made = [
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: row[name] for name in ("upos", "head", "deprel")},
        )
        for row in rows
    ]
    write_conllu(made, tmp_path / "x-ud-train.conllu")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("split", "first", "count"),
    [
        ("train", 0, 11),
        ("train[:3]", 0, 3),
        ("train[3:]", 3, 8),
        ("train[2:4]", 2, 2),
        ("train[:50%]", 0, 5),
        ("train[90%:]", 9, 2),
        ("train[:999]", 0, 11),
        ("train[:200%]", 0, 11),
    ],
)
def test_slices_of_a_split(treebank, split, first, count):
    found = split_of(treebank, split, [])
    assert list(found["sent_id"]) == [f"s{place}" for place in range(first, first + count)]


def test_a_percentage_is_taken_of_each_file(treebank, tmp_path):
    paths = [tmp_path / "x-ud-train.conllu", tmp_path / "y.conllu"]
    write_conllu([ConlluSentence.from_words(["a"], sent_id=f"y{n}") for n in range(4)], paths[1])
    both = ",".join(f"train={path}" for path in paths)
    parts = [list(split_of(both, f"train{part}", [])["sent_id"]) for part in ("[:50%]", "[50%:]")]
    assert parts[0] == ["s0", "s1", "s2", "s3", "s4", "y0", "y1"]
    assert len(parts[1]) == 8
    assert not set(parts[0]) & set(parts[1])
    with pytest.raises(ValueError, match=r"train\[:9%\] is empty: the whole split has 15 sentences"):
        split_of(both, "train[:9%]", [])


def test_sentences_of_other_files_are_left_out(treebank, tmp_path, capsys):
    rows, _ = gold_rows(treebank, "train", [])
    seen = [ConlluSentence.from_words(words) for words in (rows[0]["words"], ["elsewhere"])]
    write_conllu(seen, tmp_path / "test.conllu")
    left = leave_out(rows, [str(tmp_path / "test.conllu")])
    expected = [row["sent_id"] for row in rows if row["words"] != rows[0]["words"]]
    assert list(left["sent_id"]) == expected
    assert f"{len(rows) - len(expected)} of {len(rows)} sentences left out" in capsys.readouterr().err
    assert leave_out(rows, []) is rows


def test_has_split(treebank):
    assert has_split(treebank, "train[:3]", [])
    assert not has_split(treebank, "dev", [])
    assert not has_split(treebank, "validation", [])
    with pytest.raises(ValueError, match="no split dev; found train"):
        gold_rows(treebank, "dev", [])


def test_only_required_gold_is_read(treebank):
    assert needs_structure(None)
    assert needs_structure(("head", "deprel"))
    assert not needs_structure(("upos",))
    assert "head" in gold_rows(treebank, "train", [])[0].column_names
    assert "head" not in gold_rows(treebank, "train", [], ("upos",))[0].column_names


def test_predicted_tags_replace_those_of_the_input(tmp_path):
    model_of("tagger").save_pretrained(tmp_path / "tagger")
    made = [ConlluSentence.from_words(row["words"], sent_id=row["sent_id"]) for row in gold((2, 3, 1))]
    rows, _ = prepare(sentences_to_dataset(made), gold=False)
    table = vectors()
    found = annotate(rows, str(tmp_path / "tagger"), table)
    expected = [columns["upos"] for columns in model_of("tagger").predict(list(rows))]
    assert list(found["upos"]) == expected
    assert all(tag in UPOS for tags in expected for tag in tags)
    assert found.features == rows.features
    kept = annotate(rows, str(tmp_path / "tagger"), table, keep_gold=True)
    assert list(kept["upos"]) == expected
    assert list(kept["gold_upos"]) == list(rows["upos"])
    assert annotate(rows, None, None) is rows


def test_a_parser_is_not_accepted_as_a_tagger(tmp_path):
    model_of("parser").save_pretrained(tmp_path / "parser")
    with pytest.raises(ValueError, match="predicts head and deprel; expected a tagger of UPOS tags"):
        load_tagger(str(tmp_path / "parser"))


def test_digests_of_content_and_weights_differ():
    rows = gold((2, 3))
    saved = concatenate_datasets([gold((3,)), rows]).select([1, 2])
    assert content_hash(rows) == content_hash(saved) == content_hash(gold((2, 3)))
    assert len({content_hash(rows.select(some)) for some in ((0, 1), (1, 0), (0,), ())}) == 4
    assert weights_digest(model_of("parser")) == weights_digest(model_of("parser"))
    assert weights_digest(model_of("parser")) != weights_digest(model_of("parser", 1))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([["ab", "c"]], [["a", "bc"]]),
        ([[None, "a"]], [["", "a"]]),
        ([None, ["a"]], [[], ["a"]]),
        ([[[0.5], []]], [[[], [0.5]]]),
        ([{"a": 1, "b": True}], [{"a": 1, "b": False}]),
        ([1], [2]),
    ],
)
def test_digests_tell_similar_content_apart(left, right):
    assert len({content_hash(Dataset.from_dict({"x": rows})) for rows in (left, right)}) == 2


def test_sentences_without_labels_are_left_out():
    tags = [["NOUN", "VERB"], ["_", "_"], ["NOUN", "_"]]
    trees = {"sent_id": list("xyz"), "head": [[0, 1]] * 3, "deprel": [["root", "obj"]] * 3}
    rows = Dataset.from_dict({"words": [["a", "b"]] * 3, "upos": tags, **trees})
    some, note = prepare_gold(rows, "text", ["upos"], labelled="any")
    assert some["upos"] == [tags[0], tags[2]]
    assert note.endswith(", 1 of them left out because they have no label")
    whole, note = prepare_gold(rows, "text", ["upos"], labelled="all")
    assert whole["upos"] == [tags[0]]
    assert note.endswith(", 2 of them left out because they have words without a label")
    for columns, labelled in ((["head", "deprel"], "all"), (["upos"], None)):
        kept, note = prepare_gold(rows, "text", columns, labelled=labelled)
        assert (len(kept), note) == (3, "text: 3 of 3 sentences kept, 0 faulty")


def test_sources_with_words_of_their_own_are_reported(capsys):
    one, two = model_of("parser"), model_of("parser", 1)
    SourcePool({"one": one, "two": two}, one.names)
    assert capsys.readouterr().err == ""
    two.replace_word_vectors(vectors(words=["other"], seed=4))
    SourcePool({"one": one, "two": two}, one.names)
    assert "one, two read words by different word vectors" in " ".join(capsys.readouterr().err.split())


def test_a_model_is_given_the_targets_vectors_of_its_own_space(tmp_path):
    model_of("parser").save_pretrained(tmp_path)
    other = vectors(words=["new", "words"], seed=3)
    model = load_model(str(tmp_path), vectors=other)
    assert model.encoder.words.table.words == ("new", "words")
    with pytest.raises(ValueError, match=r"space 'tiny' \(8 dimensions\), found 'elsewhere'"):
        load_model(str(tmp_path), vectors=vectors(name="elsewhere"))


def test_a_text_of_which_little_is_known_are_reported(capsys):
    model = model_of("tagger")
    warn_of_unknown_words(model, gold((3, 4))["words"])
    assert not capsys.readouterr().err
    warn_of_unknown_words(model, iter([["王芳", "住在", "w1"]]))
    assert "only 1 of 3 words of the text are in the word vectors" in capsys.readouterr().err.replace(
        "\n", " "
    )


NONE_KNOWN = [
    ([["noun", "verb"], ["adj"]], r"noun \(1\), verb \(1\), adj \(1\); it knows NOUN, VERB, ADJ"),
    ([["NN", "VB"]], r"NN \(1\), VB \(1\); it knows"),
    ([["N"], None, ["_", "_"], ["N"]], r"N \(2\)"),
    ([["X"], ["INTJ"]], r"X \(1\), INTJ \(1\)"),
]


@pytest.mark.parametrize(("tags", "message"), NONE_KNOWN)
def test_a_text_with_unknown_tags_only_is_rejected(tags, message):
    with pytest.raises(ValueError, match=f"en does not know the UPOS tags of (.) of \\1 words: {message}"):
        check_tags(model_of("parser"), tags, "en")
    check_tags(model_of("parser", uses_upos=False), tags)
    check_tags(model_of("tagger"), tags)
    rows = [ConlluSentence.from_words(["w1"] * len(each), columns={"upos": each}) for each in tags if each]
    annotator = Annotator([model_of("parser")])
    with pytest.raises(ValueError, match=r"does not know the UPOS tags of (.) of \1 words"):
        annotator.annotate_block(rows)
    if len(tags) == 1:
        with pytest.raises(ValueError, match=r"does not know the UPOS tags of (.) of \1 words"):
            pipeline("dependency-parsing", model=model_of("parser"))(rows[0])


@pytest.mark.parametrize(
    ("tags", "dropout", "warning"),
    [
        ([["NOUN"] * 8, ["noun", "X", "noun"]], 0.0, "UPOS tags of 3 of 11 words: noun (2), X (1)"),
        ([["NOUN", "_"]], 0.0, "UPOS tags of 1 of 2 words: _ (1)"),
        ([["NOUN", "_"]], 0.5, None),
        ([["NOUN"] * 10, ["X"]], 0.0, None),
        ([["INTJ"]], 0.0, "UPOS tags of 1 of 1 words: INTJ (1)"),  # one sentence may have rare tags only
        ([["_"], None, []], 0.5, None),
    ],
)
def test_many_unknown_tags_are_counted(tags, dropout, warning, capsys):
    check_tags(model_of("parser", upos_dropout=dropout), tags)
    told = " ".join(capsys.readouterr().err.split())
    assert (warning in told) if warning else not told
    check_tags(model_of("parser", upos_dropout=dropout), tags, warns=False)
    assert not capsys.readouterr().err

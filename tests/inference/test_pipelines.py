"""Pipelines: all inputs, all outputs, in order, each as if it were alone."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from datasets import Dataset, IterableDataset
from transformers import pipeline

from helpers.small_models import UPOS, WORDS, gold, model_of, vectors
from hf_xst.data import ConlluSentence, WordVectors, read_conllu
from hf_xst.data.layout import sentences_to_dataset
from hf_xst.inference import annotation
from hf_xst.inference.pipelines import PIPELINES, DependencyParsingPipeline, StructuredTaggingPipeline

TEXT = "w1 w2, w3. W4 (w5)!\n\nw6"
CUT = [["w1", "w2", ",", "w3", "."], ["W4", "(", "w5", ")", "!"], ["w6"]]
CONLLU = """\
# sent_id = a
1-2	w1w2	_	_	_	_	_	_	_	X=1
1	w1	_	NOUN	_	_	_	_	_	Y=2
2	w2	_	VERB	_	_	_	_	_	_

"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    model_of("parser", 1).save_pretrained(path)
    model_of("tagger", 2).save_pretrained(path / "tagger")
    return str(path)


@pytest.fixture(scope="module")
def parse(folder):
    return pipeline("dependency-parsing", model=folder)


@pytest.fixture(scope="module")
def tag(folder):
    return pipeline("structured-tagging", model=f"{folder}/tagger")


def expected(words):
    """The predictions of the models themselves."""
    tagged = model_of("tagger", 2).predict([{"words": words}])[0]
    return {"words": words, **tagged, **model_of("parser", 1).predict([{"words": words, **tagged}])[0]}


def columns_of(result):
    """The columns alone."""
    return {key: result[key] for key in ("words", "upos", "head", "deprel")}


# -- loading ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_import_registers_the_pipelines():
    code = (
        "import hf_xst; from transformers.pipelines import PIPELINE_REGISTRY as r; "
        "print(sorted({'dependency-parsing', 'structured-tagging'} & set(r.get_supported_tasks())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['dependency-parsing', 'structured-tagging']\n"


def test_load_by_folder_model_or_class(folder, parse):
    parser, tagger = model_of("parser", 1), model_of("tagger", 2)
    for other in (
        pipeline("dependency-parsing", model=parser, tagger=tagger),
        pipeline("dependency-parsing", model=parser, tagger=f"{folder}/tagger"),
        pipeline("dependency-parsing", model=parser, tagger=StructuredTaggingPipeline(tagger)),
        DependencyParsingPipeline(parser, tagger=tagger),
    ):
        assert other(TEXT) == parse(TEXT)
    assert set(PIPELINES) == {"dependency-parsing", "structured-tagging"}
    assert parse.tagger is not None
    assert parse.model.device == parse.device


def test_device_of_both_models(folder):
    pipe = pipeline("dependency-parsing", model=folder, device="cpu")
    assert pipe.device == torch.device("cpu")
    meta = pipeline("dependency-parsing", model=folder, device="meta")
    assert {meta.model.device.type, meta.tagger.device.type} == {"meta"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a GPU")
def test_gpu_gives_the_same_results(folder, parse):
    pipe = pipeline("dependency-parsing", model=folder, device=0)
    assert {pipe.model.device.type, pipe.tagger.device.type} == {"cuda"}
    assert [columns_of(one) for one in pipe(TEXT)] == [columns_of(one) for one in parse(TEXT)]


def test_save_pretrained_saves_both_models_and_no_code(parse, tmp_path):
    parse.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.json",
        "model.safetensors",
        "words.json",
        "tagger",
    }
    assert "custom_pipelines" not in (tmp_path / "config.json").read_text()
    assert pipeline("dependency-parsing", model=str(tmp_path))(TEXT) == parse(TEXT)


def test_word_vectors_of_another_language(folder, parse):
    other = vectors(words=[f"{word}x" for word in WORDS])
    pipe = pipeline("dependency-parsing", model=folder, vectors=other)
    assert [one["head"] for one in pipe([["w1x", "w2x"]])] == [one["head"] for one in parse([["w1", "w2"]])]
    assert isinstance(other, WordVectors)


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        (
            "structured-tagging",
            {},
            "found a BiaffineParser; this pipeline requires a CrfTagger",
        ),
        (
            "dependency-parsing",
            {"tagger": model_of("parser")},
            "predicts head and deprel; expected a",
        ),
        ("dependency-parsing", {"tagger": "no/where"}, "no/where"),
        ("dependency-parsing", {"batch_size": 4}, "found batch_size; .*pass batch_words"),
        ("dependency-parsing", {"outptu": "dict"}, "no argument outptu; did you mean output."),
        ("dependency-parsing", {"output": "xml"}, "output is 'xml'; expected one of dict, conllu"),
        ("dependency-parsing", {"decoding": "worst"}, "expected 'best' or 'minimum-risk'"),
        ("dependency-parsing", {"max_words": 0}, "max_words is 0"),
    ],
)
def test_invalid_arguments_are_rejected_on_construction(folder, task, settings, message):
    with pytest.raises(ValueError, match=message):
        pipeline(task, model=folder, **settings)


def test_foreign_models_are_rejected(tmp_path):
    from helpers.tiny_models import save_bert

    with pytest.raises(ValueError, match="found a BertModel; this pipeline requires a BiaffineParser"):
        pipeline("dependency-parsing", model=str(save_bert(tmp_path)))


# -- inputs -------------------------------------------------------------------------------------------


def test_running_text(parse):
    result = parse(TEXT)
    assert [columns_of(one) for one in result] == [expected(words) for words in CUT]
    assert [one["text"] for one in result] == ["w1 w2, w3.", "W4 (w5)!", "w6"]
    assert parse("") == []


def test_custom_segmenter(folder, parse):
    def lines(text):
        return [line.split() for line in text.split("\n")]

    assert [one["words"] for one in parse("w1 w2.\nw3", segmenter=lines)] == [["w1", "w2."], ["w3"]]
    pipe = pipeline("dependency-parsing", model=folder, segmenter=lines)
    assert pipe("w1 w2.\nw3") == parse("w1 w2.\nw3", segmenter=lines)


def test_words(parse):
    assert columns_of(parse(["w1", "w2"])) == expected(["w1", "w2"])
    assert columns_of(parse(("w1",))) == expected(["w1"])
    assert [columns_of(one) for one in parse([["w1", "w2"], ("w3",)])] == [
        expected(["w1", "w2"]),
        expected(["w3"]),
    ]
    assert parse([]) == []


@pytest.mark.parametrize("convert", [pd.DataFrame, pa.table, lambda table: pd.DataFrame(table).iloc[:0]])
def test_tables_are_rejected(parse, convert):
    with pytest.raises(ValueError, match=r"found a table \((DataFrame|Table)\); pass a column"):
        parse(convert({"text": ["w1 w2", "w3"], "other": ["w1", "w2"]}))


@pytest.mark.parametrize("convert", [np.array, pd.Series, pa.array, lambda words: np.array(words, object)])
def test_arrays_of_words_are_one_sentence(parse, convert):
    assert parse(convert(["w1", "w2"])) == parse(["w1", "w2"])
    assert parse([convert(["w1", "w2"])]) == [parse(["w1", "w2"])]
    with pytest.raises(ValueError, match="pass is_split_into_words="):
        parse(convert(["w1 w2.", "w3"]))


@pytest.mark.parametrize(
    "text", ["1 w1 w2 w3 w4 w5 w1 w2 w3 w4", "1. w1\tw2", "# w1\nw2", "1\tw1 w2\n2\tw3", "1-2 w1"]
)
def test_text_with_numbers_and_tabs_is_running_text(parse, text):
    assert "".join(word for one in parse(text) for word in one["words"]) == "".join(text.split())


def test_list_of_strings_is_ambiguous(parse):
    with pytest.raises(ValueError, match=r"found 'w1 w2.' in a list of strings: pass is_split_into_words="):
        parse(["w1 w2.", "w3"])
    both = parse(["w1 w2.", "w3"], is_split_into_words=False)
    assert both == [parse("w1 w2."), parse("w3")]
    assert parse(["w1 w2.", "w3"], is_split_into_words=True)["words"] == ["w1 w2.", "w3"]


def test_conllu_keeps_its_content(parse):
    (sentence,) = read_conllu(io.StringIO(CONLLU))
    for inputs in (CONLLU, sentence):
        result = parse(inputs, output="conllu")
        (again,) = read_conllu(io.StringIO(result))
        assert again.comments == sentence.comments
        assert again.lines[1] == sentence.lines[1]
        assert again.column("misc") == ["Y=2", "_"]
        assert again.upos == expected(["w1", "w2"])["upos"]
        assert again.heads == [str(head) for head in expected(["w1", "w2"])["head"]]
    assert parse(sentence)["sent_id"] == "a"
    assert [one["sent_id"] for one in parse(CONLLU)] == ["a"]
    assert parse("w1\tw2") == parse("w1 w2")
    assert parse(f"\ufeff{CONLLU}") == parse(CONLLU)


def test_tags_of_the_input_without_tagger(folder):
    pipe = pipeline("dependency-parsing", model=folder, tagger=False)
    row = {"words": ["w1", "w2"], "upos": ["VERB", "ADJ"], "sent_id": "r"}
    result = pipe(row)
    assert (result["upos"], result["sent_id"]) == (["VERB", "ADJ"], "r")
    assert pipe({**row, "sent_id": 5})["sent_id"] == "5"
    assert pipe({**row, "sent_id": ""})["words"] == ["w1", "w2"]
    del row["sent_id"]
    assert columns_of(result) == row | model_of("parser", 1).predict([row])[0]
    with pytest.raises(ValueError, match=r"<input 2>:1: this model reads UPOS tags .*tagger="):
        pipe([row, "w1 w2"])
    with pytest.raises(ValueError, match=r"found upos \[3, 4\]; expected names of tags"):
        pipe({"words": ["w1", "w2"], "upos": [3, 4]})


def test_data_sets(parse):
    words = [["w1", "w2"], ["w3"]]
    expected_rows = [parse(one) for one in words]
    for column in ("words", "tokens"):
        rows = Dataset.from_dict({column: words, "other": [1, 2]})
        result = parse(rows)
        assert isinstance(result, Iterator)
        assert list(result) == expected_rows
        assert list(parse(rows[column])) == expected_rows
    assert list(parse(Dataset.from_dict({"text": ["w1 w2", "w3"]}))) == [parse("w1 w2"), parse("w3")]
    stream = IterableDataset.from_generator(lambda: ({"words": one} for one in words))
    assert list(parse(stream)) == expected_rows

    class Old(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, place):
            return words[place]

    assert list(parse(Old())) == expected_rows


def test_treebank_rows_keep_ranges_and_comments(parse):
    (sentence,) = read_conllu(io.StringIO(CONLLU))
    (result,) = parse(sentences_to_dataset([sentence]), output="sentence")
    assert result.lines[:2] == sentence.lines[:2]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (3, r"found '3' \(int\); expected text, a list of words, CoNLL-U"),
        (None, r"\(NoneType\); expected text"),
        ([["w1"], 3], r"found '3' \(int\); expected text"),
        ([["w1"], []], r"found '\[\]' \(list\); expected"),
        ({"word": ["w1"]}, r"found 'None' \(NoneType\); expected"),
        ({"tokens": "w1"}, r"found 'w1' \(str\); expected"),
        ([["w\t1"]], r"found 'w\\t1' for form"),
        ("1\tw1\t_\t_\t_\t_\t_\t_\t_\t_\n3\tw\n", "found 2 columns, expected 10"),
        (CONLLU.replace("\t_\n", "\n").replace("\tX=1", ""), "found 9 columns, expected 10"),
        (CONLLU.replace("_\n", "_\t_\n"), "found 11 columns, expected 10"),
        (CONLLU.replace("\t", "  "), "found 1 columns, expected 10 columns separated by tabs"),
        ("1 w1 _ X _ _ 0 root _ _\n", "found 1 columns, expected 10 columns separated by tabs"),
        (CONLLU.replace("\n", "\r"), "found a CR within the line, expected lines that end with LF"),
        (CONLLU.partition("\n")[2].replace("\n", "\r"), "found a CR within the line"),
        ("# text = w1 w2\nw1 w2\n", "found 1 columns"),
    ],
)
def test_invalid_inputs_are_rejected(parse, inputs, message):
    with pytest.raises(ValueError, match=message):
        parse(inputs)


# -- order, batches, memory ----------------------------------------------------------------------------


def mixed(count):
    draw = random.Random(count)
    rows = gold([draw.randrange(1, 9) for _ in range(count)], count)
    kinds = [
        lambda words: words,
        lambda words: " ".join(words),
        lambda words: {"words": words},
        ConlluSentence.from_words,
        lambda words: "",
        lambda words: f"{' '.join(words)}. W1",
    ]
    return [draw.choice(kinds)(row["words"]) for row in rows]


@pytest.mark.parametrize("batch_words", [1, 20, None])
def test_outputs_follow_the_order_of_inputs(parse, monkeypatch, batch_words):
    monkeypatch.setattr(annotation, "BLOCK", 7)
    inputs = mixed(20)
    alone = [parse(one) for one in inputs]
    assert parse(inputs, batch_words=batch_words) == alone
    assert list(parse(iter(inputs), batch_words=batch_words)) == alone
    assert list(parse((one for one in inputs), batch_words=batch_words)) == alone


def test_stream_is_read_one_block_ahead(tag, monkeypatch):
    monkeypatch.setattr(annotation, "BLOCK", 4)
    read = []

    def endless():
        while True:
            read.append(1)
            yield ["w1"]

    stream = tag(endless())
    assert read == []
    for number in range(1, 10):
        assert next(stream)["words"] == ["w1"]
        assert len(read) == -(-number // 4) * 4


# -- outputs -----------------------------------------------------------------------------------------


def test_confidence_and_kbest(parse, tag):
    result = parse(["w1", "w2", "w3"], confidence=True, kbest=4)
    assert {part: len(values) for part, values in result["confidence"].items()} == {
        "tag": 3,
        "head": 3,
        "label": 3,
        "arc": 3,
    }
    assert all(
        arc <= min(head, label) + 1e-6
        for head, label, arc in zip(
            *(result["confidence"][part] for part in ("head", "label", "arc")), strict=True
        )
    )
    assert result["log_prob"]["tree"] == pytest.approx(result["kbest"][0]["log_prob"])
    assert [result["kbest"][0][column] for column in ("head", "deprel")] == [result["head"], result["deprel"]]
    assert len({str(one) for one in result["kbest"]}) == 4
    tagged = tag(["w1"], confidence=True, kbest=5)
    assert sum(torch.tensor([one["log_prob"] for one in tagged["kbest"]]).exp()) == pytest.approx(1)
    assert len(tagged["kbest"]) == len(UPOS)  # no more than there are


def test_minimum_risk(parse):
    for words in CUT:
        careful = parse(words, decoding="minimum-risk", confidence=True)
        best = parse(words, confidence=True)
        assert sum(careful["confidence"]["arc"]) >= sum(best["confidence"]["arc"]) - 1e-6
        assert careful["log_prob"]["tree"] <= best["log_prob"]["tree"] + 1e-6


def test_long_sentences(parse):
    result = parse([["w1"] * 3, ["w2"]], max_words=2)
    assert result[0] == {"words": ["w1"] * 3, "not_annotated": "3 words, more than max_words=2"}
    assert result[1] == parse(["w2"])
    with pytest.raises(ValueError, match=r"sentence <input 1>:1 has 3 words, more than max_words=2"):
        parse([["w1"] * 3, ["w2"]], max_words=2, too_long="error")


def test_several_sentences_become_one_string(parse):
    result = parse(TEXT, output="conllu", confidence=True)
    assert [sentence.words for sentence in read_conllu(io.StringIO(result))] == CUT
    assert "HeadProb=" in result
    assert "# tree_log_prob = " in result
    drawn = parse(TEXT, output="drawing")
    assert drawn.count("# text = ") == 3
    assert [one.words for one in parse(TEXT, output="sentence")] == CUT


def test_call_arguments_apply_to_one_call(folder, parse):
    pipe = pipeline("dependency-parsing", model=folder, output="conllu", confidence=True)
    assert pipe(["w1"], output="dict", confidence=False) == parse(["w1"])
    assert pipe(["w1"]) == parse(["w1"], output="conllu", confidence=True)


def test_tagger_alone(tag):
    assert tag(TEXT)[0] == {"text": "w1 w2, w3.", **{k: expected(CUT[0])[k] for k in ("words", "upos")}}
    with pytest.raises(ValueError, match="output='drawing' requires a parser; the model predicts upos"):
        tag(["w1"], output="drawing")


def test_spacy(parse, tag):
    spacy = pytest.importorskip("spacy")
    doc = parse(TEXT, output="spacy", confidence=True)
    assert [[token.text for token in sentence] for sentence in doc.sents] == CUT
    assert doc.text.split() == TEXT.split()
    for sentence, words in zip(doc.sents, CUT, strict=True):
        expected_rows = expected(words)
        assert [token.pos_ for token in sentence] == expected_rows["upos"]
        assert [token.dep_ for token in sentence] == expected_rows["deprel"]
        heads = [0 if t.head == t else t.head.i - sentence.start + 1 for t in sentence]
        assert heads == expected_rows["head"]
    assert len(doc.user_data["hf_xst"][0]["confidence"]["head"]) == 5
    nlp = spacy.blank("xx")
    assert parse(TEXT, output="spacy", vocab=nlp.vocab).vocab is nlp.vocab
    tagged = tag(TEXT, output="spacy")
    assert [len(sentence) for sentence in tagged.sents] == [5, 5, 1]
    assert [token.pos_ for token in tagged][:5] == expected(CUT[0])["upos"]
    rows = "".join(
        f"{number}\t{form}\t_\tNOUN\t_\t_\t_\t_\t_\t{misc}\n"
        for number, form, misc in (
            ("1-2", "w1w2", "SpaceAfter=No"),
            (1, "w1", "_"),
            (2, "w2", "_"),
            (3, ".", "_"),
        )
    )
    assert parse(f"{rows}\n", output="spacy").text == "w1w2. "
    left = parse([["w1"] * 3], output="spacy", max_words=2)[0]
    assert len(list(left.sents)) == 1


def test_missing_spacy_names_the_extra(parse, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    with pytest.raises(ImportError, match=r'pip install "hf_xst\[spacy\]"'):
        parse(["w1"], output="spacy")

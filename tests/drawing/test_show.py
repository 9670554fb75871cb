from __future__ import annotations

import io
from dataclasses import replace

import pytest

import hf_xst_cli
from helpers.pictures import arcs, of_class
from helpers.small_models import charts, gold, model_of
from hf_xst.charts import ChartSettings
from hf_xst.charts.dataset import ChartInfo, ChartSource
from hf_xst.commands import show as showing
from hf_xst.commands.show import ShowArguments, row_view, sentence_drawing, show
from hf_xst.data import ConlluSentence
from hf_xst.data.sentence import ConlluError

FILE = """\
# sent_id = one
# text = the dog barks
1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tbarks\t_\tVERB\t_\t_\t0\troot\t_\t_

# sent_id = two
1\tהילדה\t_\t_\t_\t_\t2\tnsubj\t_\tArcProb=0.95
2\tקראה\t_\t_\t_\t_\t0\troot\t_\tArcProb=0.4|X=1

"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "some.conllu"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def test_text_of_all_sentences(file, capsys):
    show(ShowArguments(input=file))
    shown = capsys.readouterr().out
    assert shown.startswith("# one\n   ┌─► det    the    DET\n")
    assert "\n\n# two\n" in shown


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("format", ["text", "svg"])
def test_stdout_is_utf8_in_any_locale(file, monkeypatch, encoding, format):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr("sys.stdout", stdout)
    assert hf_xst_cli.main(["show", file, "--sent-id", "two", "--format", format]) == 0
    stdout.flush()
    assert "הילדה" in stdout.buffer.getvalue().decode("utf-8")


@pytest.mark.parametrize("choice", [{"index": [2]}, {"sent_id": ["two"]}, {"index": [2], "sent_id": ["two"]}])
def test_one_sentence_as_svg(file, tmp_path, choice):
    target = tmp_path / "two.svg"
    show(ShowArguments(input=file, output=str(target), **choice))
    drawn = arcs(target.read_text(encoding="utf-8"))
    assert [(arc.head, arc.dependent, arc.colour) for arc in drawn] == [(2, 1, "#0072B2"), (0, 2, "#E69F00")]


def test_html_page(file, tmp_path):
    target = tmp_path / "page.html"
    show(ShowArguments(input=file, output=str(target)))
    page = target.read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert '<div style="overflow-x:auto;max-width:100%" dir="rtl">' in page


def test_input_flag_is_optional(file, capsys, monkeypatch):
    assert hf_xst_cli.main(["show", file, "--index", "1"]) == 0
    first = capsys.readouterr().out
    assert hf_xst_cli.main(["show", "--input", file, "--sent-id", "one"]) == 0
    assert capsys.readouterr().out == first
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(FILE.encode()))))
    assert hf_xst_cli.main(["show", "-", "--index", "1"]) == 0
    assert capsys.readouterr().out == first
    assert hf_xst_cli.main(["show", file, "--format", "svg"]) == 1
    assert "an SVG file holds one sentence, found 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "pass either a CoNLL-U file"),
        ({"input": "a", "charts": "b"}, "pass either a CoNLL-U file"),
        ({"index": [3, 1]}, r"some.conllu has no sentence number 3 \(numbers count from 1\)"),
        ({"sent_id": ["three"]}, "some.conllu has no sentence three"),
        (
            {"output": "x.png"},
            r"--output x\.png: found \.png, expected \.txt, \.svg, \.html, \.htm; ",
        ),
    ],
)
def test_invalid_arguments_are_rejected(file, settings, message):
    given = settings if "input" in settings or not settings else {"input": file} | settings
    with pytest.raises(ValueError, match=message):
        show(ShowArguments(**given))


def test_input_is_not_overwritten(file, tmp_path):
    with pytest.raises(ValueError, match="would overwrite an input"):
        show(ShowArguments(input=file, index=[1], format="text", output=str(tmp_path / "." / "some.conllu")))
    assert (tmp_path / "some.conllu").read_text(encoding="utf-8") == FILE
    with pytest.raises(ValueError, match="is a folder; for a folder of charts: --charts"):
        show(ShowArguments(input=str(tmp_path)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "word 1 has head '_', expected a non-negative integer"),
        ({"head": ["2", "1"], "deprel": ["x", "y"]}, "no path leads from the root"),
        ({"head": ["2", "0"], "misc": ["ArcProb=0.5", "_"]}, "word 'b' has no valid ArcProb"),
        ({"head": ["2", "0"], "misc": ["ArcProb=0.5", "ArcProb=high"]}, "word 'b' has no valid ArcProb"),
    ],
)
def test_messages_name_the_sentence(columns, message):
    sentence = ConlluSentence.from_words(["a", "b"], sent_id="some", columns=columns)
    with pytest.raises(ConlluError, match=f"sentence some: .*{message}"):
        sentence_drawing(sentence)


def info_of(model):
    return ChartInfo(model.config.model_type, model.names, [ChartSource("en")], ChartSettings(), "en")


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_charts_of_a_data_set(kind, monkeypatch, tmp_path, capsys):
    rows = gold((3, 4), seed=3)
    rows_of_charts, model = charts(kind, rows), model_of(kind)
    monkeypatch.setattr(showing, "load_charts", lambda path: (rows_of_charts, info_of(model)))
    annotated = tmp_path / "gold.conllu"
    row = rows[1]
    columns = {"upos": row["upos"], "head": [str(head) for head in row["head"]], "deprel": row["deprel"]}
    annotated.write_text(ConlluSentence.from_words(row["words"], columns=columns).raw, encoding="utf-8")
    show(ShowArguments(charts="charts", index=[2], gold=str(annotated)))
    shown = capsys.readouterr().out
    assert shown.startswith("# s1\n1 w")
    assert shown.count("★") == 4
    show(ShowArguments(charts="charts"))
    assert capsys.readouterr().out.count("\n# s") + 1 == 2  # all of them
    if kind == "tagger":
        info = replace(info_of(model), label_settings={"column": "ner_tags"})
        monkeypatch.setattr(showing, "load_charts", lambda path: (rows_of_charts, info))
        with pytest.raises(ValueError, match="the charts are of ner_tags, which --gold does not support"):
            show(ShowArguments(charts="charts", index=[2], gold=str(annotated)))
    with pytest.raises(ValueError, match="holds 2 charts; --index goes from 1 to 2"):
        show(ShowArguments(charts="charts", index=[3]))
    with pytest.raises(ValueError, match="has no sentence s9"):
        show(ShowArguments(charts="charts", sent_id=["s9"]))


def test_gold_of_repeated_words_is_found_by_sent_id(monkeypatch, tmp_path, capsys):
    rows = gold((3,), seed=3)
    row, stored = rows[0], (charts("parser", rows), info_of(model_of("parser")))
    monkeypatch.setattr(showing, "load_charts", lambda path: stored)
    columns = {"head": row["head"], "deprel": row["deprel"]}
    first = ConlluSentence.from_words(row["words"], sent_id=row["sent_id"], columns=columns)
    other = ConlluSentence.from_words(row["words"], sent_id="x")
    for sentences in ([first, other], [other, first]):
        (tmp_path / "gold.conllu").write_text("".join(each.raw for each in sentences), encoding="utf-8")
        show(ShowArguments(charts="charts", gold=str(tmp_path / "gold.conllu")))
        assert "★" in capsys.readouterr().out
    (tmp_path / "gold.conllu").write_text(other.raw * 2, encoding="utf-8")
    with pytest.raises(ValueError, match="2 sentences have the words of sentence s0, 1 expected"):
        show(ShowArguments(charts="charts", gold=str(tmp_path / "gold.conllu")))


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_view_holds_the_candidates_of_its_row(kind):
    (row,) = charts(kind, gold((3,), seed=1))
    model = model_of(kind)
    view = row_view(row, info_of(model))
    kept = {(group, candidate) for group, candidate in view.kept.nonzero().tolist()}
    groups = range(len(row["offsets"]) - 1)
    stored = {(g, c) for g in groups for c in row["candidates"][row["offsets"][g] : row["offsets"][g + 1]]}
    best = {(group, candidate) for each in row["source_best"] for group, candidate in enumerate(each)}
    assert kept == stored | best
    assert of_class(view.drawing().svg, "caption")


def test_charts_of_other_models_are_rejected():
    (row,) = charts("parser", gold((3,)))
    with pytest.raises(ValueError, match="cannot draw charts of some_model"):
        row_view(row, ChartInfo("some_model", ["a"], [ChartSource("en")], ChartSettings(), "en"))

"""`hf-xst predict`: input and output formats, unchanged content, interrupted runs."""

from __future__ import annotations

import gc
import gzip
import io
import json
import random
import re
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

import hf_xst_cli
from helpers.small_models import UPOS, gold, model_of
from hf_xst.data import ConlluSentence, read_conllu, write_conllu
from hf_xst.inference import annotation
from hf_xst.inference.resuming import partial_path

ODD = """\
# newdoc
# sent_id = odd-1
# text = w1w2 w3
# a comment = with = signs
0.1\tghost\t_\t_\t_\t_\t_\t_\t_\tEmpty=Yes
1-2\tw1w2\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tw1\tl1\tNOUN\tX1\tCase=Nom\t7\told\t0:root\tGloss==POSS|Keep=1
2\tw2\tl2\tVERB\tX2\t_\t_\t_\t_\t_
2.1\tghost\t_\t_\t_\t_\t_\t_\t1:dep\t_
3\tw3\tl3\tADJ\tX3\t_\t_\t_\t_\tSpaceAfter=No|Free text


1\tw4\t_\tNOUN\t_\t_\t_\t_\t_\t_
"""


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser saved with its tagger."""
    folder = tmp_path_factory.mktemp("model")
    model_of("parser", 1).save_pretrained(folder)
    model_of("tagger", 2).save_pretrained(folder / "tagger")
    return folder


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    path = tmp_path / "odd.conllu"
    path.write_text(ODD)
    return path


def many(path: Path, count: int = 23) -> Path:
    """Write a file of many sentences."""
    draw = random.Random(count)
    rows = gold([draw.randrange(1, 9) for _ in range(count)], count)
    write_conllu((ConlluSentence.from_words(row["words"], sent_id=row["sent_id"]) for row in rows), path)
    return path


def test_input_is_not_overwritten(model, odd, capsys):
    before = odd.read_bytes()
    assert run("predict", "--model", model, "--input", odd, "--output", odd) == 1
    assert "would overwrite an input" in capsys.readouterr().err
    assert odd.read_bytes() == before


# -- unchanged content and output formats ----------------------------------------------------------------


def test_only_predicted_columns_change(model, odd, tmp_path):
    out = tmp_path / "out.conllu"
    assert run("predict", "--model", model, "--input", odd, "--output", out, "--tagger", "none") == 0
    before, after = ODD.splitlines(), out.read_text().splitlines()
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        cells, changed = old.split("\t"), new.split("\t")
        if re.match(r"\d+\t", old):
            changed[6:8] = cells[6:8]
        assert changed == cells
    assert all(0 <= int(head) <= 3 for sentence in read_conllu(out) for head in sentence.heads)


def test_saved_tagger_is_the_default(model, odd, tmp_path):
    source = [sentence.upos for sentence in read_conllu(odd)]
    tagger = model_of("tagger", 2)
    expected = [tagger.predict([{"words": s.words}])[0]["upos"] for s in read_conllu(odd)]
    for name, wanted in (("beside", expected), ("none", source)):
        out = tmp_path / f"{name}.conllu"
        extra = () if name == "beside" else ("--tagger", "none")
        assert run("predict", "--model", model, "--input", odd, "--output", out, *extra) == 0
        assert [sentence.upos for sentence in read_conllu(out)] == wanted


def test_confidence_is_appended_to_misc_and_comments(model, odd, tmp_path):
    out = tmp_path / "out.conllu"
    assert run("predict", "--model", model, "--input", odd, "--output", out, "--confidence") == 0
    first, second = read_conllu(out)
    number = r"(0\.\d{4}|1\.0000)"
    confidence = rf"TagProb={number}\|HeadProb={number}\|LabelProb={number}\|ArcProb={number}"
    source = ("Gloss==POSS|Keep=1|", "", "SpaceAfter=No|Free text|")
    for cell, old in zip(first.column("misc"), source, strict=True):
        assert re.fullmatch(re.escape(old) + confidence, cell)
    assert first.comments[:4] == ODD.splitlines()[:4]
    assert re.fullmatch(r"# tags_log_prob = -\d+\.\d{4}", first.comments[4])
    assert re.fullmatch(r"# tree_log_prob = -\d+\.\d{4}", first.comments[5])
    assert "|HeadProb=1.0000|" in second.column("misc")[0]  # a single word is the root


def test_predicting_again_replaces_predictions(model, odd, tmp_path):
    words = ["predict", "--model", model, "--confidence", "--kbest", 2]
    assert run(*words, "--input", odd, "--output", tmp_path / "one.conllu") == 0
    assert run(*words, "--input", tmp_path / "one.conllu", "--output", tmp_path / "two.conllu") == 0
    assert (tmp_path / "one.conllu").read_bytes() == (tmp_path / "two.conllu").read_bytes()
    plain = ["predict", "--model", model, "--input"]
    assert run(*plain, tmp_path / "one.conllu", "--output", tmp_path / "bare.conllu") == 0
    assert run(*plain, odd, "--output", tmp_path / "direct.conllu") == 0
    assert (tmp_path / "bare.conllu").read_bytes() == (tmp_path / "direct.conllu").read_bytes()


def test_kbest_as_comments(model, odd, tmp_path):
    out = tmp_path / "out.conllu"
    assert run("predict", "--model", model, "--input", odd, "--output", out, "--kbest", 3) == 0
    for sentence in read_conllu(out):
        ranked = [json.loads(c.partition(" = ")[2]) for c in sentence.comments if c.startswith("# kbest ")]
        assert len(ranked) == (3 if len(sentence.words) > 1 else 1)  # the only relation of one word is root
        assert [str(head) for head in ranked[0]["head"]] == sentence.heads
        assert ranked[0]["deprel"] == sentence.deprels
        log_probs = [one["log_prob"] for one in ranked]
        assert log_probs == sorted(log_probs, reverse=True)


def test_json_lines_keep_what_was_not_predicted(model, tmp_path):
    row = {
        "id": 7,
        "sent_id": 0,
        "tokens": ["w1", "w2"],
        "text": "w1\nw2",
        "meta": {"p": 0.123456, "s": "\ud800é"},
    }
    stale = {"head": ["9", "9"], "upos": ["X", "X"], "kbest": [], "log_prob": 1, "confidence": {}}
    rows = [row | stale, {"words": ["w1"] * 3, "upos": None, "text": None, "head": [1], "ner": ["O"] * 3}]
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    assert run("predict", "--model", model, "--input", given, "--output", out, "--max-words", 2) == 0
    first, second = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    predicted = {key: first.pop(key) for key in ("upos", "head", "deprel")}
    assert set(predicted["upos"]) <= set(UPOS)
    assert max(predicted["head"]) <= 2
    assert first == {"words": row.pop("tokens"), **row}
    assert second.pop("not_annotated")
    assert second == {"sent_id": "in.jsonl:2", "words": ["w1"] * 3, "text": "w1 w1 w1", "ner": ["O"] * 3}


def test_json_lines(model, odd, tmp_path):
    out = tmp_path / "out.jsonl.gz"
    words = ["--confidence", "--kbest", 2, "--decoding", "minimum-risk"]
    assert run("predict", "--model", model, "--input", odd, "--output", out, *words) == 0
    rows = [json.loads(line) for line in gzip.decompress(out.read_bytes()).decode().splitlines()]
    assert [row["sent_id"] for row in rows] == ["odd-1", "odd.conllu:2"]
    assert rows[0]["text"] == "w1w2 w3"
    assert rows[0]["words"] == ["w1", "w2", "w3"]
    assert set(rows[0]["upos"]) <= set(UPOS)
    assert {part: len(values) for part, values in rows[0]["confidence"].items()} == {
        "tag": 3,
        "head": 3,
        "label": 3,
        "arc": 3,
    }
    assert set(rows[0]["log_prob"]) == {"tags", "tree"}
    assert [set(one) for one in rows[0]["kbest"]] == [{"head", "deprel", "log_prob"}] * 2


def test_trees_are_drawn(model, odd, tmp_path, capsysbinary):
    assert run("predict", "--model", model, "--input", odd, "--to", "trees") == 0
    first, second = capsysbinary.readouterr().out.decode().strip("\n").split("\n\n")
    lines = first.splitlines()
    assert lines[:2] == ["# sent_id = odd-1", "# text = w1w2 w3"]
    assert [word in line for word, line in zip(("w1", "w2", "w3"), lines[2:], strict=True)] == [True] * 3
    assert "w4" in second
    out = tmp_path / "out.txt"
    assert run("predict", "--model", model, "--input", odd, "--output", out, "--kbest", 2) == 0
    assert out.read_text().count("w4") == 1  # the only relation of one word is root


def test_tagger_cannot_draw_trees(model, odd, tmp_path, capsys):
    words = ["predict", "--model", model / "tagger", "--input", odd, "--output", tmp_path / "o.conllu"]
    assert run(*words, "--to", "trees") == 1
    assert "--to trees requires a parser; the model predicts upos" in capsys.readouterr().err
    assert run(*words, "--confidence") == 0
    assert [s.heads for s in read_conllu(tmp_path / "o.conllu")] == [["7", "_", "_"], ["_"]]


def test_other_columns_go_to_misc(tmp_path, odd):
    model_of("tagger", 1, column="ner").save_pretrained(tmp_path / "ner")
    out = tmp_path / "out.conllu"
    assert run("predict", "--model", tmp_path / "ner", "--input", odd, "--output", out) == 0
    first = next(iter(read_conllu(out)))
    assert re.fullmatch(r"Gloss==POSS\|Keep=1\|ner=(NOUN|VERB|ADJ)", first.column("misc")[0])
    again = tmp_path / "again.conllu"
    assert run("predict", "--model", tmp_path / "ner", "--input", out, "--output", again) == 0
    assert again.read_bytes() == out.read_bytes()


def test_running_text_several_files_and_stdin(model, tmp_path, monkeypatch, capsysbinary):
    raw = tmp_path / "raw.txt"
    raw.write_text("w1 w2. W3!\n\nw4 w5\n")
    assert run("predict", "--model", model, "--input", raw, "--format", "raw") == 0
    output = capsysbinary.readouterr().out
    sentences = list(read_conllu(io.BytesIO(output)))
    assert [s.words for s in sentences] == [["w1", "w2", "."], ["W3", "!"], ["w4", "w5"]]
    assert [s.text for s in sentences] == ["w1 w2.", "W3!", "w4 w5"]
    assert sentences[0].column("misc") == ["_", "SpaceAfter=No", "_"]
    (tmp_path / "lines.txt").write_text("w1 w2.\n")
    assert run("predict", "--model", model, "--input", tmp_path / "lines.txt", tmp_path / "lines.txt") == 0
    twice = list(read_conllu(io.BytesIO(capsysbinary.readouterr().out)))
    assert [s.words for s in twice] == [["w1", "w2."]] * 2
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(raw.read_bytes())))
    assert run("predict", "--model", model, "--input", "-", "--format", "raw") == 0
    assert capsysbinary.readouterr().out == output.replace(b"raw.txt:", b"<stdin>:")


def test_field_cases_round_trip(model, tmp_path, shared):
    for name in ("p01_mwt_empty", "p03_form_with_spaces", "p04_comment_shapes", "p08_roundtrip"):
        source = shared("fieldcases", "files", f"{name}.conllu")
        out = tmp_path / f"{name}.conllu"
        assert run("predict", "--model", model, "--input", source, "--output", out, "--tagger", "none") == 0
        before, after = source.read_text().split("\n"), out.read_text().split("\n")
        same = [
            (old.split("\t"), new.split("\t")) if re.match(r"\d+\t", old) else ([old], [new])
            for old, new in zip(before, after, strict=True)
        ]
        assert [old[:6] + old[8:] for old, _ in same] == [new[:6] + new[8:] for _, new in same]


# -- long sentences ------------------------------------------------------------------------------------


def test_long_sentences_are_marked_and_reported(model, odd, tmp_path, capsys):
    out = tmp_path / "out.conllu"
    words = ["predict", "--model", model, "--input", odd, "--output", out, "--max-words", 2]
    assert run(*words) == 0
    stderr = " ".join(capsys.readouterr().err.split())
    assert "1 sentences have more than 2 words and were not annotated (first: odd-1)" in stderr
    first, second = read_conllu(out)
    assert first.comments[-1] == "# not_annotated = 3 words, more than max_words=2"
    assert (first.heads, first.upos) == (["_"] * 3, ["_"] * 3)
    assert second.heads == ["0"]
    assert run(*words, "--too-long", "error", "--overwrite") == 1
    assert "sentence odd-1 has 3 words, more than max_words=2" in capsys.readouterr().err
    assert run("predict", "--model", model, "--input", out, "--output", tmp_path / "again.conllu") == 0
    assert "not_annotated" not in (tmp_path / "again.conllu").read_text()


# -- interrupted runs ----------------------------------------------------------------------------------


def interrupt_at(monkeypatch, sentences: int) -> None:
    """Press Ctrl-C in the block that starts after the given number of sentences."""
    plain, done = annotation.Annotator.annotate, []

    def annotate(self, rows, advance=lambda steps: None):
        if sum(done) >= sentences:
            raise KeyboardInterrupt
        done.append(len(rows))
        return plain(self, rows, advance)

    monkeypatch.setattr(annotation.Annotator, "annotate", annotate)


@pytest.mark.parametrize("name", ["out.conllu", "out.conllu.gz", "out.jsonl", "out.txt.gz"])
def test_interrupted_run_resumes_to_the_same_bytes(model, tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(annotation, "BLOCK", 5)
    source = many(tmp_path / "in.conllu")
    words = ["predict", "--model", model, "--input", source, "--confidence", "--kbest", 2]
    assert run(*words, "--output", tmp_path / f"whole-{name}") == 0
    out = tmp_path / name
    for stop, held in ((10, 10), (5, 15)):
        with monkeypatch.context() as patch:
            interrupt_at(patch, stop)
            assert run(*words, "--output", out, "--resume") == 130
        assert f"has the first {held} sentences; --resume" in capsys.readouterr().err.replace("\n", " ")
        assert not out.exists()
        part = partial_path(out).read_bytes()
        content = gzip.decompress(part) if name.endswith(".gz") else part
        whole = (tmp_path / f"whole-{name}").read_bytes()
        assert (gzip.decompress(whole) if name.endswith(".gz") else whole).startswith(content)
        if "conllu" in name:
            assert len(list(read_conllu(partial_path(out)))) == held  # whole sentences, readable as CoNLL-U
    assert run(*words, "--output", out, "--resume") == 0
    assert "15 sentences; continuing after them" in capsys.readouterr().err.replace("\n", " ")
    assert out.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    assert not partial_path(out).exists()


def test_invalid_resumes_are_rejected(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(annotation, "BLOCK", 5)
    source, out = many(tmp_path / "in.conllu"), tmp_path / "out.conllu"
    words = ["predict", "--model", model, "--input", source, "--output", out]
    with monkeypatch.context() as patch:
        interrupt_at(patch, 10)
        assert run(*words) == 130
    assert run(*words) == 1
    assert "continue it with --resume, or remove" in capsys.readouterr().err
    assert run(*words, "--resume", "--confidence", "--max-words", 9) == 1
    assert "other settings: confidence, max_words" in capsys.readouterr().err
    assert run(*words, "--resume", "--bf16") == 1
    assert "other settings: bf16" in capsys.readouterr().err
    assert run(*words, "--resume", "--model", model / "tagger") == 1
    assert "other settings: models" in capsys.readouterr().err
    text = source.read_text()
    source.write_text(text.replace("w1\t", "w2\t", 1))
    assert run(*words, "--resume") == 1
    assert "the first 10 sentences of the input differ from those" in capsys.readouterr().err
    source.write_text("\n\n".join(text.split("\n\n")[:3]) + "\n\n")
    assert run(*words, "--resume") == 1
    assert "the first 10 sentences of the input differ from those" in capsys.readouterr().err
    assert run("predict", "--model", model, "--input", source, "--resume") == 1
    assert "--resume continues a file: pass --output" in capsys.readouterr().err


def test_late_error_keeps_finished_blocks(model, tmp_path, monkeypatch, capsys):
    """After a fix of the input, the run resumes."""
    monkeypatch.setattr(annotation, "BLOCK", 5)
    source, out = many(tmp_path / "in.conllu"), tmp_path / "out.conllu"
    text = source.read_text()
    source.write_text(text + "1\tbroken\n\n")
    words = ["predict", "--model", model, "--input", source, "--output", out]
    assert run(*words) == 1
    stderr = capsys.readouterr().err
    assert "found 2 columns" in stderr
    assert "has the first 20 sentences" in stderr.replace("\n", " ")
    source.write_text(text)
    assert run(*words, "--resume") == 0
    assert len(list(read_conllu(out))) == 23


def test_interrupted_stream_ends_with_a_whole_sentence(model, tmp_path, monkeypatch, capsysbinary):
    monkeypatch.setattr(annotation, "BLOCK", 5)
    interrupt_at(monkeypatch, 10)
    assert run("predict", "--model", model, "--input", many(tmp_path / "in.conllu")) == 130
    out = capsysbinary.readouterr().out
    assert len(list(read_conllu(io.BytesIO(out)))) == 10
    assert out.endswith(b"\n\n")


def test_devices_are_written_directly(model, odd, tmp_path):
    assert run("predict", "--model", model, "--input", odd, "--output", "/dev/null") == 0
    assert not Path("/dev/null.part").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is missing")
def test_a_full_device_is_named(model, odd, capsys):
    assert run("predict", "--model", model, "--input", odd, "--output", "/dev/full") == 1
    assert "/dev/full: No space left on device" in capsys.readouterr().err


def test_a_folder_as_input_is_named(model, tmp_path, capsys):
    assert run("predict", "--model", model, "--input", tmp_path) == 1
    assert f"{tmp_path}: found a folder, expected" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_in_a_separate_process(model, tmp_path):
    source = many(tmp_path / "in.conllu", 1000)  # enough to be still running when the signal comes
    code = (
        "import signal, sys, hf_xst_cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in jobs in the background
        "from hf_xst.inference import annotation\n"
        "annotation.BLOCK = 4\n"
        "sys.exit(hf_xst_cli.main(sys.argv[1:]))\n"
    )
    words = [sys.executable, "-c", code, "predict", "--model", model, "--input", source, "--confidence"]
    subprocess.run([*words, "--output", tmp_path / "whole.conllu.gz"], check=True, capture_output=True)
    out = tmp_path / "out.conllu.gz"
    process = subprocess.Popen([*words, "--output", out], stderr=subprocess.PIPE, text=True)
    while not partial_path(out).exists() or not partial_path(out).stat().st_size:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume continues after them" in stderr.replace("\n", " ")
    assert "Traceback" not in stderr
    held = len(list(read_conllu(partial_path(out))))
    assert 0 < held < 1000
    assert held % 4 == 0
    subprocess.run([*words, "--output", out, "--resume"], check=True, capture_output=True)
    assert out.read_bytes() == (tmp_path / "whole.conllu.gz").read_bytes()


# -- memory --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(model, tmp_path, monkeypatch):
    monkeypatch.setattr(annotation, "BLOCK", 10)
    peaks = []
    # The first run fills caches; shorter runs would collect no garbage.
    for count in (300, 300, 900):
        source = many(tmp_path / f"{count}.conllu", count)
        gc.collect()
        tracemalloc.start()
        words = ["--input", source, "--output", tmp_path / "o.conllu", "--overwrite"]
        assert run("predict", "--model", model, *words) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Free lists of the interpreter grow by 200 bytes per sentence; kept sentences would take 2800.
    assert peaks[2] - peaks[1] < 800 * 600

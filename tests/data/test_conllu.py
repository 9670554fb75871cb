"""Test the CoNLL-U reader and writer: validation, lossless round trips, streaming."""

from __future__ import annotations

import gzip
import io
import pickle
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import ConlluError, ConlluSentence, read_conllu, write_conllu
from hf_xst.data.conllu import WithheldWordsWarning

BLANKS = "\t_" * 8


def row(number: object, form: str = "w") -> str:
    return f"{number}\t{form}{BLANKS}"


def read(text: str) -> list[ConlluSentence]:
    return list(read_conllu(io.BytesIO(text.encode())))


def written(sentences: list[ConlluSentence]) -> bytes:
    stream = io.BytesIO()
    write_conllu(sentences, stream)
    return stream.getvalue()


RICH = (
    "\n# newdoc\n#\n# sent_id = a-1\n#nospace=1\n# text = Del = mar\n"
    "0.1\tyo\tyo\tPRON\t_\t_\t_\t_\t3:nsubj\t_\n"
    "1-2\tDel\t_\t_\t_\tTypo=Yes\t_\t_\t_\tGloss==of\n"
    "1\tDe\tde\tADP\tS\t_\t2\tcase\t_\t_\n"
    "2\tel\tel\tDET\t_\t_\t3\tdet\t_\t_\n"
    "2.1\tx\tx\tX\t_\t_\t_\t_\t3:dep\t_\n"
    "2.2\ty\ty\tX\t_\t_\t_\t_\t3:dep\t_\n"
    "3\tmar azul\tmar\tNOUN\t_\t_\t0\troot\t_\tSpaceAfter=No\n"
    "\n\n"
    f"{row(1, '#')}\n{row(2, '_')}\n"
)


def test_columns_contain_words_only():
    first, second = read(RICH)
    assert first.words == ["De", "el", "mar azul"]
    assert first.heads == ["2", "3", "0"]
    assert first.deprels == ["case", "det", "root"]
    assert first.upos == ["ADP", "DET", "NOUN"]
    assert first.column("xpos") == ["S", "_", "_"]
    assert first.comments == ["# newdoc", "#", "# sent_id = a-1", "#nospace=1", "# text = Del = mar"]
    assert (first.sent_id, first.text, first.identifier) == ("a-1", "Del = mar", "a-1")
    assert second.words == ["#", "_"]
    assert (second.sent_id, second.text, second.identifier) == (None, None, "<stream>:2")


CONTENTS = {
    "rich": RICH,
    "no final line end": RICH.rstrip("\n"),
    "several blank lines at the end": RICH + "\n\n\n",
    "windows line ends": RICH.replace("\n", "\r\n"),
    "windows, no final line end": RICH.replace("\n", "\r\n").rstrip("\r\n"),
    "byte order mark": "\ufeff" + RICH,
    "other line breaks inside words": "\n".join(
        [row(1, "a\u2028b"), row(2, "c\x85d"), row(3, "e\x0bf"), "", ""]
    ),
    "empty": "",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_round_trip_is_byte_identical(content):
    assert written(read(content)) == content.encode()


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\n\n\n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_last_sentence_is_read_whatever_the_file_ending(write, ending, zipped):
    content = f"{row(1, 'Kot')}\n{row(2, 'śpi')}\n\n{row(1, 'Tak')}{ending}".encode()
    path = write("misleading.name", gzip.compress(content) if zipped else content)
    assert [s.words for s in read_conllu(path)] == [["Kot", "śpi"], ["Tak"]]


def test_all_kinds_of_sources(write, monkeypatch):
    path = write("a.conllu", RICH)
    expected = [s.raw for s in read_conllu(path)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RICH.encode()), encoding="ascii"))
    zipped = io.BytesIO(gzip.compress(RICH.encode()))
    with path.open("rb") as stream, path.open(encoding="utf-8") as text:
        for source in (str(path), stream, text, io.StringIO(RICH), zipped, sys.stdin):
            assert [s.raw for s in read_conllu(source)] == expected
    assert not zipped.closed


def test_reading_is_lazy_and_leaves_the_stream_open():
    stream = io.BytesIO(f"{row(1)}\n\n{row(1)}\n\nbroken\n".encode())
    sentences = read_conllu(stream)
    assert next(sentences).words == ["w"]
    sentences.close()
    assert not stream.closed


@pytest.mark.parametrize("name", ["out.conllu", "out.conllu.gz"])
def test_files_are_written_atomically_and_reproducibly(tmp_path, name):
    path = tmp_path / "deep" / name
    assert write_conllu(read(RICH), path) == 2
    first = path.read_bytes()
    assert (gzip.decompress(first) if name.endswith("gz") else first) == RICH.encode()
    write_conllu(read(RICH), path)
    assert path.read_bytes() == first

    def failing():
        yield from read(RICH)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_conllu(failing(), path)
    assert path.read_bytes() == first
    assert [p.name for p in path.parent.iterdir()] == [name]


def test_text_streams_are_written_as_utf8_with_unix_line_ends(monkeypatch):
    stream = io.StringIO()
    write_conllu(read(RICH), stream)
    assert stream.getvalue() == RICH
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", newline="\r\n"))
    write_conllu(read(RICH), sys.stdout)
    assert raw.getvalue() == RICH.encode()


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n", "\r\n\r\n"])
def test_concatenated_files_remain_valid(ending):
    one = read("\ufeff" + row(1, "a") + ending)
    two = read("\ufeff" + row(1, "b") + "\n")
    text = written([*one, *two]).decode()
    assert [s.words for s in read(text)] == [["a"], ["b"]]
    assert text.count("\ufeff") == 1


def test_with_columns_changes_nothing_else():
    first = read(RICH.replace("\n", "\r\n"))[0]
    changed = first.with_columns({"head": [0, 1, 1], "misc": ["P=1", "_", "_"]})
    pairs = zip(first.raw.split("\r\n"), changed.raw.split("\r\n"), strict=True)
    different = {i: (a.split("\t"), b.split("\t")) for i, (a, b) in enumerate(pairs) if a != b}
    assert set(different) == {index + 1 for index in first.word_rows}  # the leader is one line
    for old, new in different.values():
        assert [c for i, c in enumerate(old) if i not in (6, 9)] == [
            c for i, c in enumerate(new) if i not in (6, 9)
        ]
    assert changed.heads == ["0", "1", "1"]
    assert first.with_columns({}) == first


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["1", "2", "3"]}, "found column 'id', expected one of form"),
        ({"tag": ["1", "2", "3"]}, "found column 'tag'"),
        ({"head": ["1"]}, "sentence a-1: found 1 values for head, expected 3"),
        ({"upos": "ABC"}, "found 3 values for upos, expected 3, one per word, in a list"),
        ({"upos": ["A", "B\t", "C"]}, "found 'B\\\\t' for upos, expected text without tabs"),
        ({"misc": ["", "_", "_"]}, "found '' for misc"),
    ],
)
def test_with_columns_rejects_invalid_values(columns, message):
    with pytest.raises(ValueError, match=message):
        read(RICH)[0].with_columns(columns)


def test_from_words():
    sentence = ConlluSentence.from_words(["a b", "_"], sent_id="x:1", columns={"upos": ["NOUN", "SYM"]})
    assert read(sentence.raw) == [sentence]
    assert (sentence.words, sentence.upos) == (["a b", "_"], ["NOUN", "SYM"])
    assert (sentence.sent_id, sentence.text) == ("x:1", "a b _")
    with pytest.raises(ValueError, match="at least one word"):
        ConlluSentence.from_words([])
    with pytest.raises(ValueError, match="without tabs"):
        ConlluSentence.from_words(["a\tb"])


@pytest.mark.parametrize("name", ["", "a=b", "a|b", "|"])
def test_names_that_misc_cannot_hold_are_rejected(name):
    with pytest.raises(ValueError, match="expected the name of an attribute"):
        read(RICH)[0].with_annotation({name: ["a", "b", "c"]})


def test_with_annotation_writes_other_columns_to_misc():
    sentence = ConlluSentence.from_words(["a", "b", "c"], columns={"misc": ["S=No|ner=X", "x=y|ner=Y", "_"]})
    annotated = sentence.with_annotation({"xpos": ["A", "B", "C"], "ner": ["O", "_", "Z"], "n": [1, 2, 3]})
    assert annotated.column("xpos") == ["A", "B", "C"]
    assert annotated.column("misc") == ["S=No|ner=O|n=1", "x=y|n=2", "ner=Z|n=3"]
    assert annotated.with_annotation({}) == annotated
    assert annotated.with_annotation({}, drop=["n", "S"]).column("misc") == ["ner=O", "x=y", "ner=Z"]
    with pytest.raises(ValueError, match=r"found 'a\|b' for ner, expected text without \|"):
        sentence.with_annotation({"ner": ["a|b", "c", "d"]})
    with pytest.raises(ValueError, match="found 1 values for ner, expected 3"):
        sentence.with_annotation({"ner": ["a"]})


def test_with_comments():
    first = read(RICH)[0]
    commented = first.with_comments(["# new = 1"], drop=["# text", "#nospace"])
    assert commented.comments == ["# newdoc", "#", "# sent_id = a-1", "# new = 1"]
    assert read(commented.raw)[0].rows == first.rows
    for comment in ("new", "# a\nb"):
        with pytest.raises(ValueError, match="expected a comment"):
            first.with_comments([comment])


BROKEN = {
    "nine columns": ("1\tw" + "\t_" * 7, "found 9 columns, expected 10"),
    "spaces for tabs": ("1 w _ _ _ _ _ _ _ _", "found 1 columns, expected 10 columns separated by tabs"),
    "white line": (row(1) + "\n \t ", "found a line of white space"),
    "gap": (row(1) + "\n" + row(3), "found ID '3', expected word 2, empty node 1.1 or a range from 2"),
    "repeated": (row(1) + "\n" + row(1), "found ID '1', expected word 2"),
    "from zero": (row(0), "found ID '0', expected word 1"),
    "not a number": (row("x"), "found ID 'x', expected word 1"),
    "padded": (row("01"), "found ID '01', expected word 1"),
    "other digits": (row("١"), "found ID '١'"),
    "late range": (row(1) + "\n" + row("1-2"), "found ID '1-2', .* or a range from 2"),
    "backward range": (row("1-0"), "found ID '1-0'"),
    "shrinking range": (row(1) + "\n" + row("2-1"), "found ID '2-1'"),
    "nested range": ("\n".join(map(row, ["1-3", 1, "2-3"])), "found ID '2-3', .* or a range from 4"),
    "open range": (row("1-3") + "\n" + row(1), "found a range that ends at 3, expected at most 1"),
    "skipped empty node": (row(1) + "\n" + row("1.2"), "found ID '1.2', .* empty node 1.1"),
    "misplaced empty node": (row(1) + "\n" + row("2.1"), "found ID '2.1', .* empty node 1.1"),
    "late comment": (row(1) + "\n# late", "found a comment after the first row"),
    "comments only": ("# nothing", "found a sentence without words"),
    "CR in a row": (row(1) + "\r" + row(2), "found a CR within the line, expected lines that end with LF"),
    "CR in a comment": ("# text = w\r" + row(1), "found a CR within the line"),
    "other order of columns": (
        "# global.columns = ID LEMMA FORM",
        r"global.columns = ID LEMMA .*expected ID FORM",
    ),
    "more columns": ("# global.columns = ID FORM PARSEME:MWE", "found global.columns = ID FORM PARSEME:MWE"),
    "other spelling": ("#global.columns=FORM ID", "found global.columns =FORM ID, expected ID FORM LEMMA"),
    "empty form": (row(1, ""), "found an empty FORM"),
    "empty tag": ("1\tw\t_\t" + "\t_" * 6, "found an empty UPOS"),
}


@pytest.mark.parametrize(("lines", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_errors_give_file_line_and_sentence(write, lines, message):
    path = write("bad.conllu", f"{row(1)}\n\n# sent_id = s-2\n{lines}\n\n")
    with pytest.raises(ConlluError, match=message) as caught:
        list(read_conllu(path))
    bad_line = 3 + len(lines.split("\n"))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.path, error.line, error.sent_id) == (str(path), bad_line, "s-2")
        assert str(error).startswith(f"{path}:{bad_line}: sentence s-2: found")


def test_columns_in_their_order_may_be_declared():
    declared = "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n"
    assert read(f"{declared}{row(1)}\n\n")[0].words == ["w"]


def test_invalid_utf8_is_reported_with_its_line(write):
    path = write("latin.conllu", f"{row(1)}\n\n".encode() + row(1, "é").encode("latin-1") + b"\n")
    message = r"latin.conllu:3: found 0xe9 as byte 3 of the line, expected UTF-8"
    with pytest.raises(ConlluError, match=message):
        list(read_conllu(path))


def test_damaged_gzip_is_reported(write):
    whole = gzip.compress((f"{row(1)}\n\n" * 500).encode())
    for content in (whole[:-12], whole[:-8] + bytes(8)):
        with pytest.raises(ConlluError, match="gzip data is damaged or truncated"):
            list(read_conllu(write("cut.conllu.gz", content)))


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        next(read_conllu(tmp_path / "nowhere.conllu"))


def test_withheld_words_are_reported_once_per_file(write):
    withheld = f"{row(1, '_')}\n{row(2, '_')}\n\n"
    path = write("w.conllu", f"{row(1, '_')}\n{row(2, 'x')}\n\n{withheld}{withheld}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sentences = list(read_conllu(path))
    assert [s.words for s in sentences] == [["_", "x"], ["_", "_"], ["_", "_"]]
    assert [w.category for w in caught] == [WithheldWordsWarning]
    assert "w.conllu:2" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("heads", ["_", "", "17", "x", "-1", "1"])
def test_heads_are_not_validated(heads):
    text = "".join(f"{n}\tw{n}\t_\tX\t_\t_\t{heads}\t_\t_\t_\n" for n in (1, 2))
    assert read(text)[0].heads == [heads, heads]


CELL = st.text(
    st.characters(blacklist_characters="\t\n\r\0", blacklist_categories=("Cs",)), min_size=1, max_size=6
)
CELLS = st.lists(CELL, min_size=9, max_size=9)
COMMENT = st.text(st.characters(blacklist_characters="\n\r\0", blacklist_categories=("Cs",)))


@st.composite
def sentences(draw):
    lines, range_end = [f"#{comment}" for comment in draw(st.lists(COMMENT))], 0
    for number in range(1, draw(st.integers(1, 5)) + 1):
        if number > range_end and draw(st.booleans()):
            range_end = number
            lines.append("\t".join([f"{number}-{number}", *draw(CELLS)]))
        lines.append("\t".join([str(number), *draw(CELLS)]))
        for index in range(1, draw(st.integers(0, 2)) + 1):
            lines.append("\t".join([f"{number}.{index}", *draw(CELLS)]))
    return lines


@given(
    st.lists(sentences(), max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_round_trip_of_any_valid_file(blocks, end, gap, last):
    text = (end * (gap + 1)).join(end.join(block) for block in blocks) + (end * last if blocks else "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WithheldWordsWarning)
        result = read(text)
    assert written(result) == text.encode()
    rows = [[line.split("\t") for line in block if line[0] != "#"] for block in blocks]
    assert [s.words for s in result] == [[r[1] for r in block if r[0].isdigit()] for block in rows]


def field_case(shared, name: str) -> Path:
    return shared("fieldcases", "files", name)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("p01_mwt_empty.conllu", [7, 10, 3, 5]),
        ("p02_no_final_newline.conllu", [3, 4]),
        ("p02_one_final_newline.conllu", [3, 4]),
        ("p02_no_final_newline.conllu.gz", [3, 4]),
        ("p03_form_with_spaces.conllu", [5, 5, 5]),
        ("p04_comment_shapes.conllu", [6, 3, 2]),
        ("p06_heads_blank.conllu", [5, 4]),
        ("p06_heads_stale.conllu", [5, 4]),
        ("p07_bad_trees.conllu", [3, 4, 3, 4, 3, 4, 3]),
        ("p08_roundtrip.conllu", [6, 6]),
        ("p10_sparse_extras.conllu", [5, *[2] * 7]),
        ("p13_zero_subwords.conllu", [5, 3, 3]),
        ("p14_long_sentence.conllu", [240, 2]),
    ],
)
def test_field_cases_round_trip(shared, name, counts):
    path = field_case(shared, name)
    result = list(read_conllu(path))
    assert [len(s.words) for s in result] == counts
    data = path.read_bytes()
    assert written(result) == (gzip.decompress(data) if name.endswith(".gz") else data)


def test_field_case_p05_underscore_forms(shared):
    path = field_case(shared, "p05_underscore_form.conllu")
    with pytest.warns(WithheldWordsWarning, match="p05-withheld") as caught:
        result = list(read_conllu(path))
    assert len(caught) == 1
    assert [s.words for s in result] == [["De", "knop", "heet", "_", "."], ["_"] * 4]


def test_field_case_p08_predictions_change_two_columns_only(shared):
    path = field_case(shared, "p08_roundtrip.conllu")
    predicted = [
        s.with_columns({"head": ["0"] * len(s.words), "deprel": ["x"] * len(s.words)})
        for s in read_conllu(path)
    ]
    old, new = path.read_bytes().decode().split("\n"), written(predicted).decode().split("\n")
    changed = [(a.split("\t"), b.split("\t")) for a, b in zip(old, new, strict=True) if a != b]
    assert len(changed) == 12
    for before, after in changed:
        assert [i for i in range(10) if before[i] != after[i]] in ([6, 7], [7])


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("root", ["ud-treebanks-v2.2", "ud-treebanks-extra"])
def test_real_treebanks_round_trip(shared, root):
    files = sorted(shared(root).glob("UD_*/*.conllu*"))
    assert files
    for path in files:
        data = path.read_bytes()
        plain = gzip.decompress(data) if path.suffix == ".gz" else data
        assert written(list(read_conllu(path))) == plain, path.name


def misc_row(number, form, misc="_"):
    return f"{number}\t{form}\t_\tX\t_\t_\t_\t_\t_\t{misc}\n"


NO = "SpaceAfter=No"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("1", "a"), ("2", "b", NO), ("3", ".", f"X=1|{NO}")], "a b."),
        ([("1-2", "don't"), ("1", "do"), ("2", "n't"), ("3", "go")], "don't go "),
        ([("1-2", "don't", NO), ("1", "do"), ("2", "n't"), ("3", ".")], "don't. "),
        ([("1-2", "vom", NO), ("1", "von"), ("2", "dem"), ("3", ","), ("4", "x")], "von dem, x "),
        ([("1", "a", NO), ("2-3", "du", f"{NO}|Y=2"), ("2", "de", NO), ("3", "le")], "ade le"),
        ([("1-1", "a", NO), ("1", "a"), ("1.1", "e", NO), ("2-3", "xy"), ("2", "x"), ("3", "y")], "axy "),
    ],
)
def test_spaces_after_words_and_ranges(rows, text):
    (sentence,) = read_conllu(
        io.StringIO("# text = 1-2\n" + "".join(misc_row(*each) for each in rows) + "\n")
    )
    pairs = zip(sentence.words, sentence.spaces, strict=True)
    assert "".join(word + " " * space for word, space in pairs) == text

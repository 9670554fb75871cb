"""The CoNLL-U reader and writer: what is accepted, what comes back, and what is said of the rest."""

from __future__ import annotations

import gzip
import io
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.data import ConlluError, ConlluSentence, WithheldWordsWarning, read_conllu, write_conllu

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


def test_rows_are_told_apart_by_the_shape_of_their_id():
    first, second = read(RICH)
    assert first.words == ["De", "el", "mar azul"]
    assert first.heads == ["2", "3", "0"]
    assert first.deprels == ["case", "det", "root"]
    assert first.upos == ["ADP", "DET", "NOUN"]
    assert first.xpos == ["S", "_", "_"]
    assert first.comments == ["# newdoc", "#", "# sent_id = a-1", "#nospace=1", "# text = Del = mar"]
    assert (first.sent_id, first.text, first.identifier) == ("a-1", "Del = mar", "a-1")
    assert second.words == ["#", "_"]
    assert (second.sent_id, second.text, second.identifier) == (None, None, "<stream>:2")


CONTENTS = {
    "rich": RICH,
    "no last line end": RICH.rstrip("\n"),
    "several blank lines at the end": RICH + "\n\n\n",
    "windows line ends": RICH.replace("\n", "\r\n"),
    "windows, no last line end": RICH.replace("\n", "\r\n").rstrip("\r\n"),
    "byte order mark": "\ufeff" + RICH,
    "other line breaks inside words": "\n".join(
        [row(1, "a\u2028b"), row(2, "c\x85d"), row(3, "e\x0bf"), "", ""]
    ),
    "empty": "",
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_read_and_written_is_the_same_bytes(content):
    assert written(read(content)) == content.encode()


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\n\n\n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_the_last_sentence_is_there_however_the_file_stops(write, ending, zipped):
    content = f"{row(1, 'Kot')}\n{row(2, 'śpi')}\n\n{row(1, 'Tak')}{ending}".encode()
    path = write("misleading.name", gzip.compress(content) if zipped else content)
    assert [s.words for s in read_conllu(path)] == [["Kot", "śpi"], ["Tak"]]


def test_every_kind_of_source_gives_the_same_sentences(write, monkeypatch):
    path = write("a.conllu", RICH)
    expected = [s.raw for s in read_conllu(path)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RICH.encode()), encoding="ascii"))
    with path.open("rb") as stream, path.open(encoding="utf-8") as text:
        sources = [
            str(path),
            stream,
            text,
            io.StringIO(RICH),
            io.BytesIO(gzip.compress(RICH.encode())),
            sys.stdin,
        ]
        for source in sources:
            assert [s.raw for s in read_conllu(source)] == expected


def test_a_stream_of_the_caller_stays_open():
    stream = io.BytesIO(RICH.encode())
    list(read_conllu(stream))
    assert not stream.closed


def test_reading_is_lazy():
    good_then_bad = f"{row(1)}\n\n{row(1)}\n\nbroken\n"
    sentences = read_conllu(io.StringIO(good_then_bad))
    assert next(sentences).words == ["w"]


@pytest.mark.parametrize("name", ["out.conllu", "out.conllu.gz"])
def test_files_are_written_whole_and_reproducibly(tmp_path, name):
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


def test_text_streams_are_written_too(capfd, monkeypatch):
    stream = io.StringIO()
    write_conllu(read(RICH), stream)
    assert stream.getvalue() == RICH
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", newline="\r\n"))
    write_conllu(read(RICH), sys.stdout)
    assert raw.getvalue() == RICH.encode()


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n", "\r\n\r\n"])
def test_sentences_of_several_files_are_never_glued(ending):
    one = read("\ufeff" + row(1, "a") + ending)
    two = read("\ufeff" + row(1, "b") + "\n")
    again = read(written([*one, *two]).decode())
    assert [s.words for s in again] == [["a"], ["b"]]
    assert written([*one, *two]).decode().count("\ufeff") == 1


def test_replacing_columns_touches_nothing_else():
    first = read(RICH.replace("\n", "\r\n"))[0]
    changed = first.replaced({"head": [0, 1, 1], "misc": ["P=1", "_", "_"]})
    old, new = first.raw.split("\r\n"), changed.raw.split("\r\n")
    differing = {i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b}
    assert differing == {first.word_rows[0] + 1, first.word_rows[1] + 1, first.word_rows[2] + 1}
    for index in first.word_rows:
        cells, news = old[index + 1].split("\t"), new[index + 1].split("\t")
        assert [c for i, c in enumerate(cells) if i not in (6, 9)] == [
            c for i, c in enumerate(news) if i not in (6, 9)
        ]
    assert changed.heads == ["0", "1", "1"]
    assert first.heads == ["2", "3", "0"]
    assert first.replaced({}) == first


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["1", "2", "3"]}, "found column 'id', expected one of form"),
        ({"tag": ["1", "2", "3"]}, "found column 'tag'"),
        ({"head": ["1"]}, "sentence a-1: found 1 values for head, expected 3"),
        ({"upos": ["A", "B\t", "C"]}, "found 'B\\\\t' for upos, expected text without tabs"),
        ({"misc": ["", "_", "_"]}, "found '' for misc"),
    ],
)
def test_replacing_refuses_what_no_column_can_hold(columns, message):
    with pytest.raises(ValueError, match=message):
        read(RICH)[0].replaced(columns)


def test_sentences_from_words_are_conllu():
    made = ConlluSentence.from_words(["a b", "_"], sent_id="x:1", columns={"upos": ["NOUN", "SYM"]})
    (again,) = read(made.raw)
    assert again == made
    assert (again.words, again.upos, again.sent_id, again.text) == (
        ["a b", "_"],
        ["NOUN", "SYM"],
        "x:1",
        "a b _",
    )
    with pytest.raises(ValueError, match="at least one word"):
        ConlluSentence.from_words([])
    with pytest.raises(ValueError, match="without tabs"):
        ConlluSentence.from_words(["a\tb"])


BROKEN = {
    "nine columns": ("1\tw" + "\t_" * 7, "found 9 columns, expected 10"),
    "spaces for tabs": ("1 w _ _ _ _ _ _ _ _", "found 1 columns, expected 10 columns separated by tabs"),
    "white line": (row(1) + "\n \t ", "line of white space"),
    "gap": (row(1) + "\n" + row(3), "found ID 3, expected 2"),
    "twice": (row(1) + "\n" + row(1), "found ID 1, expected 2"),
    "from zero": (row(0), "found ID 0, expected 1"),
    "no number": (row("x"), "found ID 'x', expected a number"),
    "padded": (row("01"), "found ID 01, expected 1"),
    "other digits": (row("١"), "found ID '١'"),
    "late range": (
        row(1) + "\n" + row("1-2"),
        "found range 1-2, expected one that starts at 2",
    ),
    "backward range": (row("1-0"), "found ID '1-0'"),
    "shrinking range": (row(1) + "\n" + row("2-1"), "found range 2-1"),
    "nested range": ("\n".join(map(row, ["1-3", 1, "2-3"])), "begins after the range up to 3"),
    "open range": (row("1-3") + "\n" + row(1), "ends at 3, expected at most 1"),
    "empty node out of turn": (row(1) + "\n" + row("1.2"), "found empty node 1.2, expected 1.1"),
    "empty node elsewhere": (row(1) + "\n" + row("2.1"), "found empty node 2.1, expected 1.1"),
    "comment after rows": (row(1) + "\n# late", "found a comment after the first row"),
    "comments alone": ("# nothing", "without words"),
    "empty form": (row(1, ""), "found an empty FORM"),
    "empty tag": ("1\tw\t_\t" + "\t_" * 6, "found an empty UPOS"),
}


@pytest.mark.parametrize(("lines", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_errors_name_file_line_and_sentence(write, lines, message):
    path = write("bad.conllu", f"{row(1)}\n\n# sent_id = s-2\n{lines}\n\n")
    with pytest.raises(ConlluError, match=message) as caught:
        list(read_conllu(path))
    bad_line = 3 + len(lines.split("\n"))
    assert (caught.value.path, caught.value.line, caught.value.sent_id) == (str(path), bad_line, "s-2")
    assert str(caught.value).startswith(f"{path}:{bad_line}: sentence s-2: found")


def test_bytes_that_are_no_text_are_named_by_line(write):
    path = write("latin.conllu", f"{row(1)}\n\n".encode() + row(1, "é").encode("latin-1") + b"\n")
    with pytest.raises(
        ConlluError, match=r"latin.conllu:3: found 0xe9 as byte 3 of the line, expected UTF-8"
    ):
        list(read_conllu(path))


def test_damaged_gzip_is_said_to_be_damaged(write):
    whole = gzip.compress((f"{row(1)}\n\n" * 500).encode())
    for content in (whole[:-12], whole[:-8] + bytes(8)):
        with pytest.raises(ConlluError, match="gzip data is damaged or cut off"):
            list(read_conllu(write("cut.conllu.gz", content)))


def test_missing_files_are_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        next(read_conllu(tmp_path / "nowhere.conllu"))


def test_withheld_words_are_said_once(write):
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
def test_heads_do_not_matter_to_the_reader(heads):
    text = "".join(f"{n}\tw{n}\t_\tX\t_\t_\t{heads}\t_\t_\t_\n" for n in (1, 2))
    assert read(text)[0].heads == [heads, heads]


CELL = st.text(
    st.characters(blacklist_characters="\t\n\r", blacklist_categories=("Cs",)), min_size=1, max_size=6
)


@st.composite
def sentences(draw):
    comments = draw(
        st.lists(st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",))))
    )
    lines, open_range = [f"#{c}" for c in comments], 0
    for number in range(1, draw(st.integers(1, 5)) + 1):
        if number > open_range and draw(st.booleans()):
            open_range = number
            lines.append("\t".join([f"{number}-{number}", *draw(st.lists(CELL, min_size=9, max_size=9))]))
        lines.append("\t".join([str(number), *draw(st.lists(CELL, min_size=9, max_size=9))]))
        for place in range(1, draw(st.integers(0, 2)) + 1):
            lines.append("\t".join([f"{number}.{place}", *draw(st.lists(CELL, min_size=9, max_size=9))]))
    return lines


@given(
    st.lists(sentences(), max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_any_file_of_the_format_comes_back(blocks, end, gap, last):
    text = (end * (gap + 1)).join(end.join(block) for block in blocks) + (end * last if blocks else "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WithheldWordsWarning)
        found = read(text)
    assert written(found) == text.encode()
    assert len(found) == len(blocks)
    for sentence, block in zip(found, blocks, strict=True):
        assert sentence.words == [
            c[1] for c in (b.split("\t") for b in block if b[0] != "#") if c[0].isdigit()
        ]


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
def test_field_cases_are_read_whole_and_come_back(shared, name, counts):
    path = field_case(shared, name)
    found = list(read_conllu(path))
    assert [len(s.words) for s in found] == counts
    data = path.read_bytes()
    assert written(found) == (gzip.decompress(data) if name.endswith(".gz") else data)


def test_field_case_of_the_underscore(shared):
    path = field_case(shared, "p05_underscore_form.conllu")
    with pytest.warns(WithheldWordsWarning, match="p05-withheld") as caught:
        found = list(read_conllu(path))
    assert len(caught) == 1
    assert [s.words for s in found] == [["De", "knop", "heet", "_", "."], ["_"] * 4]


def test_field_case_of_predicting_and_writing(shared):
    path = field_case(shared, "p08_roundtrip.conllu")
    predicted = [
        s.replaced({"head": ["0"] * len(s.words), "deprel": ["x"] * len(s.words)}) for s in read_conllu(path)
    ]
    old, new = path.read_bytes().decode().split("\n"), written(predicted).decode().split("\n")
    changed = [(a.split("\t"), b.split("\t")) for a, b in zip(old, new, strict=True) if a != b]
    assert len(changed) == 12
    for before, after in changed:
        assert [i for i in range(10) if before[i] != after[i]] in ([6, 7], [7])


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.parametrize("root", ["ud-treebanks-v2.2", "ud-treebanks-extra"])
def test_real_treebanks_come_back(shared, root):
    files = sorted(shared(root).glob("UD_*/*.conllu*"))
    assert files
    for path in files:
        data = path.read_bytes()
        plain = gzip.decompress(data) if path.suffix == ".gz" else data
        assert written(list(read_conllu(path))) == plain, path.name


def test_a_stream_stays_open_when_reading_stops_early():
    stream = io.BytesIO(b"1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n" * 3)
    reader = iter(read_conllu(stream))
    next(reader)
    reader.close()
    assert not stream.closed

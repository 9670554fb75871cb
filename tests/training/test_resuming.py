"""A file that grows by blocks: whole blocks stay after an interruption, and the bytes do not tell of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_xst.inference.resuming import BlockFile, part_of

BLOCKS = ["one\n", "zwei ü\n", "", "three\n" * 50]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = ("out.conllu", "out.conllu.gz")


def write(path, blocks, *, begin=0, stop=None, resume=False, identity=None):
    """Write blocks from `begin`; before block `stop` somebody interrupts."""
    with BlockFile(path, identity or {"a": 1}, resume=resume) as file:
        for place in range(begin, len(blocks)):
            if place == stop:
                raise KeyboardInterrupt
            file.add(blocks[place], {"blocks": place + 1})


def content(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("out.conllu", "out.part.conllu"),
        ("out.conllu.gz", "out.part.conllu.gz"),
        ("a.b.jsonl", "a.b.part.jsonl"),
        ("out", "out.part"),
        ("out.gz", "out.part.gz"),
    ],
)
def test_the_name_of_a_part_tells_what_it_is(tmp_path, name, part):
    assert part_of(tmp_path / name) == tmp_path / part


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_file_stands_alone_under_its_name(tmp_path, name):
    path = tmp_path / "new" / name
    write(path, BLOCKS)
    assert content(path) == "".join(BLOCKS)
    assert list(path.parent.iterdir()) == [path]
    write(path, BLOCKS[:1])
    assert content(path) == BLOCKS[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_blocks_is_empty_and_valid(tmp_path, name):
    write(tmp_path / name, [])
    assert content(tmp_path / name) == ""
    assert (tmp_path / name).stat().st_size == (20 if name.endswith("gz") else 0)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=20)
@given(
    blocks=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1),
    data=st.data(),
)
def test_interrupted_anywhere_it_ends_with_the_same_bytes(tmp_path_factory, name, blocks, data):
    folder = tmp_path_factory.mktemp("resume")
    write(folder / f"whole-{name}", blocks)
    path, begin = folder / name, 0
    for stop in sorted(data.draw(st.sets(st.integers(1, len(blocks)), max_size=3))):
        with pytest.raises(KeyboardInterrupt):
            write(path, [*blocks, ""], begin=begin, stop=stop, resume=True)
        begin = stop
        assert not path.exists()
        assert content(part_of(path)) == "".join(blocks[:stop])
        assert BlockFile(path, {"a": 1}, resume=True).progress == {"blocks": stop}
    write(path, blocks, begin=begin, resume=True)
    assert path.read_bytes() == (folder / f"whole-{name}").read_bytes()
    assert not part_of(path).exists()


def test_what_was_there_before_stays_until_the_new_file_is_complete(tmp_path):
    path = tmp_path / "out.conllu"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(path, BLOCKS, stop=2)
    assert path.read_text() == "old"


def test_nothing_is_left_of_a_run_without_a_whole_block(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out.conllu", BLOCKS, stop=0)
    assert list(tmp_path.iterdir()) == []


def test_half_a_block_is_cut_off(tmp_path):
    """A process that was killed cuts nothing off; the next one does."""
    path = tmp_path / "out.conllu"
    with pytest.raises(KeyboardInterrupt):
        write(path, BLOCKS, stop=2)
    with part_of(path).open("ab") as stream:
        stream.write(b"thr")
    write(path, BLOCKS, begin=2, resume=True)
    assert content(path) == "".join(BLOCKS)


def test_a_part_without_record_is_overwritten(tmp_path):
    path = tmp_path / "out.conllu"
    part_of(path).write_text("killed before the first block was whole")
    write(path, BLOCKS)
    assert content(path) == "".join(BLOCKS)


def test_a_folder_is_refused_before_anything_is_done(tmp_path):
    with pytest.raises(ValueError, match="is a folder; expected the name of a file"):
        BlockFile(tmp_path, {})


def test_resuming_nothing_is_beginning(tmp_path):
    write(tmp_path / "out.conllu", BLOCKS, resume=True)
    assert content(tmp_path / "out.conllu") == "".join(BLOCKS)


def test_work_that_was_done_is_not_thrown_away(tmp_path):
    path = tmp_path / "out.conllu"
    with pytest.raises(KeyboardInterrupt):
        write(path, BLOCKS, stop=2)
    with pytest.raises(ValueError, match=r"is left of an interrupted run: go on with --resume, or remove"):
        write(path, BLOCKS)
    with pytest.raises(ValueError, match=r"was made otherwise, it differs in: a, b; remove"):
        write(path, BLOCKS, resume=True, identity={"a": 2, "b": [1]})
    assert content(part_of(path)) == "".join(BLOCKS[:2])
    part_of(path).write_text("o")
    with pytest.raises(ValueError, match="is shorter than it was when the run stopped"):
        write(path, BLOCKS, resume=True)


def test_the_record_says_how_far_the_part_is_whole(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out.conllu", BLOCKS, stop=2)
    state = json.loads((tmp_path / "out.part.conllu.json").read_text())
    assert state == {
        "bytes": len("".join(BLOCKS[:2]).encode()),
        "progress": {"blocks": 2},
        "identity": {"a": 1},
    }

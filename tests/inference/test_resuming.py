"""Resumable files keep whole blocks after an interruption and end with the same bytes."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_xst.inference.resuming import ResumableFile, partial_path, state_path

BLOCKS = ["one\n", "zwei ü\n", "", "three\n" * 50]
NAMES = ("out.conllu", "out.conllu.gz")


def write(path, blocks, *, begin=0, stop=None, resume=False, identity=None, overwrite=False):
    """Write blocks from `begin`; raise KeyboardInterrupt before block `stop`."""
    with ResumableFile(path, identity or {"a": 1}, resume=resume, overwrite=overwrite) as file:
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
def test_partial_names_keep_their_suffix(tmp_path, name, part):
    assert partial_path(tmp_path / name) == tmp_path / part


@pytest.mark.parametrize("name", NAMES)
def test_finished_file_leaves_no_partial_file(tmp_path, name):
    path = tmp_path / "new" / name
    write(path, BLOCKS)
    assert content(path) == "".join(BLOCKS)
    assert list(path.parent.iterdir()) == [path]
    for resume in (False, True):
        with pytest.raises(ValueError, match=f"{name} exists; choose another output, or pass --overwrite"):
            write(path, BLOCKS[:1], resume=resume)
    assert content(path) == "".join(BLOCKS)
    write(path, BLOCKS[:1], overwrite=True)
    assert content(path) == BLOCKS[0]


@pytest.mark.parametrize("name", NAMES)
def test_file_without_blocks_is_empty_and_valid(tmp_path, name):
    write(tmp_path / name, [])
    assert content(tmp_path / name) == ""
    assert (tmp_path / name).stat().st_size == (20 if name.endswith("gz") else 0)


@pytest.mark.parametrize("name", NAMES)
@given(
    blocks=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1),
    data=st.data(),
)
def test_interruptions_do_not_change_the_bytes(tmp_path_factory, name, blocks, data):
    folder = tmp_path_factory.mktemp("resume")
    write(folder / f"whole-{name}", blocks)
    path, begin = folder / name, 0
    for stop in sorted(data.draw(st.sets(st.integers(1, len(blocks)), max_size=3))):
        with pytest.raises(KeyboardInterrupt):
            write(path, [*blocks, ""], begin=begin, stop=stop, resume=True)
        begin = stop
        assert not path.exists()
        assert content(partial_path(path)) == "".join(blocks[:stop])
        assert ResumableFile(path, {"a": 1}, resume=True).progress == {"blocks": stop}
    write(path, blocks, begin=begin, resume=True)
    assert path.read_bytes() == (folder / f"whole-{name}").read_bytes()
    assert not partial_path(path).exists()


def test_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "out.conllu"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(path, BLOCKS, stop=2, overwrite=True)
    assert path.read_text() == "old"


def test_run_without_a_whole_block_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out.conllu", BLOCKS, stop=0)
    assert list(tmp_path.iterdir()) == []


def test_incomplete_block_is_truncated(tmp_path):
    """A killed process does not truncate; the next one does."""
    path = tmp_path / "out.conllu"
    with pytest.raises(KeyboardInterrupt):
        write(path, BLOCKS, stop=2)
    with partial_path(path).open("ab") as stream:
        stream.write(b"thr")
    write(path, BLOCKS, begin=2, resume=True)
    assert content(path) == "".join(BLOCKS)


def test_a_run_killed_before_its_first_block_starts_over(tmp_path):
    path = tmp_path / "out.conllu"
    partial_path(path).write_text("thr")
    state = {"bytes": 0, "sha256": sha256(b"").hexdigest(), "progress": {}, "identity": {"a": 1}}
    state_path(partial_path(path)).write_text(json.dumps(state))
    write(tmp_path / "out.conllu", BLOCKS, resume=True)
    assert content(tmp_path / "out.conllu") == "".join(BLOCKS)


def test_folder_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="is a folder; expected the name of a file"):
        ResumableFile(tmp_path, {})


def test_resume_without_partial_file_starts_over(tmp_path):
    write(tmp_path / "out.conllu", BLOCKS, resume=True)
    assert content(tmp_path / "out.conllu") == "".join(BLOCKS)


def test_partial_file_of_another_run_is_rejected(tmp_path):
    path = tmp_path / "out.conllu"
    with pytest.raises(KeyboardInterrupt):
        write(path, BLOCKS, stop=2)
    with pytest.raises(ValueError, match=r"an interrupted run left .*: continue it with --resume, or remove"):
        write(path, BLOCKS)
    with pytest.raises(ValueError, match="was written with other settings: a, b; remove"):
        write(path, BLOCKS, resume=True, identity={"a": 2, "b": [1]})
    assert content(partial_path(path)) == "".join(BLOCKS[:2])
    for other in ("o", "other" + "".join(BLOCKS)):
        partial_path(path).write_text(other)
        with pytest.raises(ValueError, match="was changed since the run stopped"):
            write(path, BLOCKS, resume=True)
        assert partial_path(path).read_text() == other


def test_state_records_complete_bytes(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out.conllu", BLOCKS, stop=2)
    state = json.loads((tmp_path / "out.part.conllu.json").read_text())
    assert state == {
        "bytes": len("".join(BLOCKS[:2]).encode()),
        "sha256": sha256("".join(BLOCKS[:2]).encode()).hexdigest(),
        "progress": {"blocks": 2},
        "identity": {"a": 1},
    }

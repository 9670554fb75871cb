"""Malformed configurations, charts and texts end a command with one line that says what is wrong."""

from __future__ import annotations

import bz2
import errno
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import datasets.config
import pyarrow
import pyarrow.parquet
import pytest
from safetensors import SafetensorError

import hf_xst_cli
from hf_xst import cli
from hf_xst.files import name_in_errors, write_text

FIXTURES = Path(__file__).parent / "fixtures"
ROW = "1\tthe\t_\tDET\t_\t_\t0\troot\t_\t_\n\n"
NESTED = "[" * 5000
DIGITS = "9" * 5000


@pytest.fixture(autouse=True)
def speaking_console():
    yield
    cli.console.quiet = False


@pytest.fixture
def failure(tmp_path, capsys, monkeypatch):
    """Run a command in the test's folder that has to fail, and return its one line."""
    monkeypatch.chdir(tmp_path)
    Path("x.conllu").write_text(ROW)

    def run(command: str, *words: str) -> str:
        status = hf_xst_cli.main([*command.split(), *words])
        shown = capsys.readouterr()
        assert (status, shown.out) == (1, "")
        assert "Traceback" not in shown.err
        (line,) = shown.err.splitlines()
        assert line.startswith(f"hf-xst {command.split()[0]}: ")
        assert 20 < len(line) < 2100
        return line

    return run


def edit(path: Path, change: Any) -> None:
    """Replace fields of a JSON file, or its content."""
    if isinstance(change, dict):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    else:
        path.write_bytes(change.encode() if isinstance(change, str) else change)


BROKEN_JSON = [
    "",
    "null",
    "[]",
    "{",
    "\0",
    b"\xff\xfe{}",
    NESTED,
    f'{{"labels": {NESTED}',
    f'{{"n": {DIGITS}}}',
]
CONFIGURATIONS = [
    *BROKEN_JSON,
    {"labels": 3},
    {"labels": []},
    {"labels": ["det", "det", "obj", "root"]},
    {"labels": ["det", "obj"], "id2label": {"0": "det", "1": "obj"}},
    {"word_size": "8"},
    {"word_size": -1},
    {"word_size": 10**30},
    {"arc_size": 7},
    {"attention_heads": 0},
    {"attention_heads": None},
    {"context_layers": "many"},
    {"encoder": "magic"},
    {"encoder": "pretrained"},
    {"encoder": "pretrained", "encoder_config": {"model_type": "nothing"}},
    {"encoder": "pretrained", "encoder_config": [1]},
    {"max_distance": -5},
    {"model_type": "unknown"},
    {"model_type": 7},
    {"dtype": "float7"},
    {"upos_names": 5},
    {"upos_size": 1.5},
    {"score_form": []},
]


@pytest.mark.parametrize("change", CONFIGURATIONS, ids=lambda change: str(change)[:40])
def test_configurations(failure, change):
    shutil.copytree(FIXTURES / "parser", "model")
    edit(Path("model/config.json"), change)
    assert not failure("predict --model model --input x.conllu --output y.conllu --tagger none").endswith(":")
    assert not Path("y.conllu").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b""),
        ("model.safetensors", b"\xff" * 100),
        ("model.safetensors", b"PK\x03\x04" + b"x" * 100),
        ("words.json", "{}"),
        *(("words.json", content) for content in BROKEN_JSON[:7]),
    ],
)
def test_files_beside_a_configuration(failure, name, content):
    shutil.copytree(FIXTURES / "parser", "model")
    edit(Path("model", name), content)
    failure("predict --model model --input x.conllu --output y.conllu --tagger none")


RECORDS = [
    *BROKEN_JSON,
    {"format_version": None},
    {"format_version": 99},
    {"names": 3},
    {"names": []},
    {"sources": {}},
    {"sources": [1]},
    {"sigma": "much"},
    {"counts": 3},
    {"counts": {"sentences": 99}},
    {"model_type": "unknown"},
    {"model_type": []},
    {"labels": "some"},
]


@pytest.mark.parametrize("change", RECORDS, ids=lambda change: str(change)[:40])
def test_records_of_charts(failure, change):
    shutil.copytree(FIXTURES / "charts", "charts")
    edit(Path("charts/provenance.json"), change)
    failure("show --charts charts --format html")


@pytest.mark.parametrize(
    "change",
    [
        b"",
        b"PAR1",
        {"offsets": None},
        {"words": None},
        {"candidates": [10**6]},
        {"candidates": []},
        {"offsets": []},
        {"source_best": [[10**6]]},
        {"pool_best": [10**6, 1, 1]},
        {"words": []},
    ],
    ids=str,
)
def test_rows_of_charts(failure, change):
    shutil.copytree(FIXTURES / "charts", "charts")
    (path,) = Path("charts/data").iterdir()
    if isinstance(change, dict):
        ((name, value),) = change.items()
        table = pyarrow.parquet.read_table(path)
        index, field = table.schema.get_field_index(name), table.schema.field(name)
        values = pyarrow.array([value] * len(table), field.type)
        changed = table.drop_columns(name) if value is None else table.set_column(index, field, values)
        pyarrow.parquet.write_table(changed, path)
    else:
        path.write_bytes(change)
    failure("show --charts charts --format html")


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.conllu", ROW)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("y.conllu", zipped(), "found a zip archive"),
        ("y.conllu", bz2.compress(ROW.encode()), "found bz2 data"),
        (
            "y.conllu",
            ROW.replace("\t0\t", f"\t{DIGITS}\t"),
            "expected a non-negative integer",
        ),
        ("y.conllu", ROW.replace("\t0\t", "\t٣\t"), "expected a non-negative integer"),
        ("y.conllu", ROW.replace("\t0\t", "\t7\t"), "has the head 7"),
        ("y.conllu", ROW.replace("1\t", f"1-{DIGITS}\t"), "y.conllu:1: found ID"),
        ("y.conllu", ROW.replace("\t", " "), "y.conllu:1: found 1 columns"),
        ("y.conllu", ROW.encode("utf-16"), "found UTF-16, expected UTF-8"),
        ("y.conllu", "# a\n" * 20_000 + ROW, "y.conllu:1: found over 10,000 lines"),
        (
            "y.conllu",
            "".join(
                ROW.strip().replace("1", str(n), 1).replace("\t0\t", f"\t{n - 1}\t") + "\n"
                for n in range(1, 5000)
            ),
            "y.conllu:1: sentence number 1: found 4,999 words; a drawing shows at most 1,000",
        ),
    ],
)
def test_trees_to_show(failure, name, content, message):
    edit(Path(name), content)
    assert message in failure(f"show {name}")
    assert message in failure(f"show {name} --format svg")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("y.txt", b"\x1f\x8b\x08\0damaged", "y.txt: the gzip data is damaged"),
        ("y.jsonl", f'{{"words": {NESTED}', "y.jsonl:1: invalid JSON"),
        ("y.jsonl", f'{{"words": [{DIGITS}]}}', "y.jsonl:1: invalid JSON"),
        ("y.jsonl", '{"words": ["a", 1]}', "y.jsonl:1: found words"),
        ("y.zip", zipped(), "found suffix '.zip'"),
    ],
)
def test_texts_to_annotate(failure, name, content, message):
    edit(Path(name), content)
    model = str(FIXTURES / "parser")
    assert message in failure(f"predict --input {name} --output z.conllu --tagger none --model", model)


@pytest.mark.parametrize("content", ["- a", "model: {", "a: [", b"\xff\xfe\xff", b"model: \0", "[" * 1000])
def test_configurations_of_commands(tmp_path, capsys, content):
    path = tmp_path / "x.yaml"
    edit(path, content)
    with pytest.raises(SystemExit, match="2"):
        hf_xst_cli.main(["predict", str(path)])
    shown = capsys.readouterr().err
    assert "x.yaml" in shown.splitlines()[-1]
    assert "Traceback" not in shown


# -- faults of the machine --------------------------------------------------------------------------------


def test_caches_that_cannot_be_written_are_named(failure, monkeypatch):
    Path("file").write_text("no folder")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", Path("file/cache").absolute())
    line = failure("build-charts --text x.conllu --task parser --output o --sources a=x.conllu b=x.conllu")
    assert "file/cache" in line
    assert "set HF_DATASETS_CACHE to a folder that can be written" in line


def test_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=r"No space left.*'.*some\.json'") as error:
        write_text(tmp_path / "some.json", "text")
    assert cli.explain(error.value).endswith("some.json: No space left on device; free disk space")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("[enforce fail] . PytorchStreamWriter failed writing file data/0: file write failed"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_full_disk_names_the_folder_of_a_model(tmp_path, error):
    with pytest.raises(OSError, match="No space left") as named, name_in_errors(tmp_path / "model"):
        raise error
    assert cli.explain(named.value).endswith("/model: No space left on device; free disk space")


def test_other_limits_keep_their_name(tmp_path):
    with pytest.raises(OSError, match="File too large") as named, name_in_errors(tmp_path / "model"):
        raise SafetensorError("Error while serializing: I/O error: File too large (os error 27)")
    assert named.value.filename == str(tmp_path / "model")


def test_a_full_cache_of_rows_is_named(failure, monkeypatch):
    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(datasets.Dataset, "map", full)
    line = failure("build-charts --text x.conllu --task parser --output o --sources a=x.conllu b=x.conllu")
    assert "No space left on device; set HF_DATASETS_CACHE to a folder that can be written" in line


def test_other_errors_keep_their_type_and_name(tmp_path):
    unrelated = (ValueError("bad"), ValueError("No such file or directory (os error 2)"))
    for error in (OSError(errno.ENOSPC, "Full", "other"), OSError("no errno"), *unrelated):
        with pytest.raises(type(error)) as kept, name_in_errors(tmp_path):
            raise error
        assert kept.value is error
        assert str(tmp_path) not in str(error)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is missing")
def test_full_standard_output_is_reported_once(tmp_path):
    (tmp_path / "x.conllu").write_text(ROW)
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "hf_xst_cli", "show", str(tmp_path / "x.conllu")]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "hf-xst show: No space left on device; free disk space\n"

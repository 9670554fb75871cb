"""Nothing private leaves: what is searched for, where it is found, and a whole run with planted secrets."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import hf_xst_cli
from helpers.recorded_runs import record_run, save_charts, save_model
from hf_xst.data import ConlluSentence, read_conllu, write_conllu
from hf_xst.hub import publish
from hf_xst.hub.allowed_files import AllowedFiles
from hf_xst.hub.privacy import Secrets, Sentences, find_leaks, training_sentences

TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"
SENTENCE = ["The", "merger", "with", "Ostrava", "closes", "on", "Friday", "."]
SECRETS = Secrets(
    {"/srv/people/anna/vault": "the home folder"}, frozenset({"anna"}), Sentences([SENTENCE, ["Yes", "."]])
)


def found(path: Path, name: str | None = None) -> list[str]:
    return [leak.what for leak in find_leaks({name or path.name: path}, SECRETS)]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"export HF_TOKEN={TOKEN}", "a token"),
        ("cd /srv/people/anna/vault", "the home folder"),
        ("run by anna on Monday", "the user name anna"),
        ("--data /srv/b/treebanks", "an absolute path (/srv/b/treebanks)"),
        ('path="/tmp/x/y"', "an absolute path (/tmp/x/y)"),
        (r"see C:\Users\b\models", r"an absolute path (C:\Users\b\models)"),
        ("file:///etc/x", "an absolute path (file:///etc/x)"),
        ("read from data:/srv/kim/x", "an absolute path (/srv/kim/x)"),
        ("at /anywhere/at/all", "an absolute path (/anywhere/at/all)"),
        (r"D:\data\kim\x", r"an absolute path (D:\data\kim\x)"),
        (r"from \\server\share\x", r"an absolute path (\\server\share"),
        ("It said: the merger with\nOstrava closes on Friday!", "a training sentence"),
        ("<text>The</text><text>merger</text> with Ostrava <b>closes</b> on Friday.", "a training sentence"),
    ],
)
def test_what_is_found_in_a_card(text: str, what: str, tmp_path: Path) -> None:
    assert any(each.startswith(what) for each in found(written(tmp_path / "README.md", text)))


@pytest.mark.parametrize(
    "text",
    [
        "A parser for Upper Sorbian. See https://huggingface.co/data/srv/x and docs/tmp/a.md.",
        "`hf-xst predict --model tester/en --input new.conllu` and/or runs/demo, ../data/x, ~3 words",
        "hf_xst_biaffine_parser, hf_transfer, HF_TOKEN=hf_..., annals, Susanna",
        "Yes.",
        "The merger with Ostrava closes on",
        "<root> </data/x>",
        "[a page](/docs/in/general), https://host:8080/a/b/c, 1/2/3/4, yes/no/perhaps, </g></svg>",
    ],
)
def test_what_is_no_secret(text: str, tmp_path: Path) -> None:
    assert found(written(tmp_path / "README.md", text)) == []


def test_json_is_unpacked(tmp_path: Path) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in "/srv/b/x")
    assert found(written(tmp_path / "config.json", f'{{"_name_or_path": "{escaped}"}}')) == [
        "an absolute path (/srv/b/x)"
    ]
    assert found(written(tmp_path / "config.json", '{"x": "/anywhere/else"}')) == [
        "an absolute path (/anywhere/else)"
    ]
    split = json.dumps({"example": {"words": SENTENCE}})
    assert found(written(tmp_path / "config.json", split))[0].startswith("a training sentence")
    assert found(written(tmp_path / "config.json", "{")) == [
        "it is no json file, or a broken one (Expecting property name enclosed in double quotes: line 1 "
        "column 2 (char 1))"
    ]


def test_lists_of_words_may_hold_any_word_but_no_token(tmp_path: Path) -> None:
    words = ["anna", "/srv/x/y", *SENTENCE]
    path = written(tmp_path / "words.json", json.dumps({"words": words}))
    assert found(path) == []
    assert found(written(path, json.dumps({"words": [*words, TOKEN]}))) == ["a token"]
    assert found(written(path, json.dumps({"words": [" ".join(SENTENCE)]})))[0].startswith("a training")


def test_safetensors_are_read_to_the_last_byte(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model")
    path = tmp_path / "model.safetensors"
    save_file(model.state_dict(), path, metadata={"format": "pt"})
    assert found(path) == []
    save_file(model.state_dict(), path, metadata={"format": "pt", "from": "/srv/b/runs/1"})
    assert found(path) == ["an absolute path (/srv/b/runs/1)"]
    content = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert found(written(path, content[:-40] + TOKEN.encode() + content[-3:])) == ["a token"]
    for pickle in (b"\x80\x02}q\x00.", b"PK\x03\x04" + bytes(100), b""):
        assert "it is no safetensors file" in found(written(path, pickle))[0]


def test_parquet_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001.parquet"

    def write(words: list[str], sent_id: str = "s1") -> Path:
        Dataset.from_list([{"sent_id": sent_id, "words": words, "deep": [[words]]}]).to_parquet(str(path))
        return path

    assert found(write(["anna", "/srv/x/y"])) == []
    assert found(write(["x", TOKEN])) == ["a token"]
    assert found(write(["x"], "/srv/b/text.txt:3")) == ["an absolute path (/srv/b/text.txt:3)"]
    table = pyarrow.parquet.read_table(write(["x"]))
    pyarrow.parquet.write_table(table.replace_schema_metadata({"made": "by anna"}), path)
    assert found(path) == ["the user name anna"]


@given(st.lists(st.text("abcdefg .,", min_size=1, max_size=9), min_size=4, max_size=12), st.data())
def test_a_sentence_is_found_however_it_is_spaced(words: list[str], data: st.DataObject) -> None:
    search = Sentences([words])
    spaced = "".join(word + data.draw(st.sampled_from(["", " ", "\n", " - "])) for word in words)
    letters = sum(letter.isalnum() for word in words for letter in word)
    assert (search.found_in(f"xyz {spaced.upper()} xyz") is not None) == (letters >= 24)


def test_secrets_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/berta")
    monkeypatch.setenv("USER", "berta")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    here = Secrets.here(tmp_path, "tester")
    assert {"/srv/people/berta", str(tmp_path.resolve()), TOKEN} <= set(here.anywhere)
    assert "berta" in here.names
    assert "root" not in here.names
    assert "berta" not in Secrets.here(tmp_path, "berta").names


def test_a_wide_letter_tells_more_than_one_of_an_alphabet() -> None:
    sentences = Sentences([["王芳", "住在", "北京路", "十二号"], ["好"], ["Yes", "."]])
    assert sentences.found_in("He wrote: 王芳住在北京路十二号。") is not None
    assert sentences.found_in("王芳住在北京") is None
    assert sentences.too_short == 2


# -- whole folders ------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, bytes]]:
    """Keep the files of each push in the place of sending them."""
    kept: list[dict[str, bytes]] = []

    def keep(sent: AllowedFiles, destination: Any) -> None:
        kept.append({name: path.read_bytes() for name, path in sent.files.items()})

    monkeypatch.setattr(publish, "upload", keep)
    monkeypatch.setattr(publish, "_card_there", lambda destination: None)
    monkeypatch.setattr(publish, "resolved", lambda destination: destination)
    return kept


def push(folder: Path, *words: object) -> int:
    return hf_xst_cli.main(["push", str(folder), "--to", "tester/en", *map(str, words)])


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("README.md", f"# Mine\n\n{TOKEN}\n", "README.md: a token"),
        ("config.json", None, "config.json: an absolute path"),
        ("LICENSE", "by /srv/b/x", "LICENSE: an absolute path"),
    ],
)
def test_a_leak_stops_the_push_in_one_line(
    file: str,
    content: str | None,
    what: str,
    tmp_path: Path,
    sent: list[dict[str, bytes]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    if content is None:
        config = json.loads((tmp_path / file).read_text())
        content = json.dumps(config | {"_name_or_path": "/srv/b/models/en"})
    (tmp_path / file).write_text(content)
    assert push(tmp_path) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("hf-xst push: nothing was pushed")
    assert what in told
    assert not sent


def test_charts_with_paths_are_stopped(
    tmp_path: Path, sent: list[dict[str, bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    save_charts(tmp_path)
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    provenance["sources"][0]["id"] = "/srv/b/models/en"
    (tmp_path / "provenance.json").write_text(json.dumps(provenance))
    assert push(tmp_path) == 1
    assert "provenance.json: an absolute path (/srv/b/models/en)" in capsys.readouterr().err
    assert not sent


# -- a treebank with secrets --------------------------------------------------------------------------

PUBLIC = [f"w{number}" for number in range(12)]
PLANTED = [f"zq{letter}secretus" for letter in "abcdefgh"]


def secret_treebank(path: Path) -> None:
    draw = random.Random(3)
    sentences = []
    for number in range(12):
        words = [draw.choice(PUBLIC), *draw.sample(PLANTED, 3), draw.choice(PUBLIC)]
        columns = {
            "upos": ["NOUN", "VERB", "ADJ", "NOUN", "ADJ"],
            "head": [2, 0, 4, 2, 4],
            "deprel": ["obj", "root", "amod", "obj", "amod"],
        }
        sentences.append(ConlluSentence.from_words(words, sent_id=f"zqid{number}", columns=columns))
    write_conllu(sentences, path)


def readings(name: str, content: bytes) -> list[bytes]:
    """Every form that a file's bytes can be read in."""
    forms = [content]
    if content[:2] == b"\x1f\x8b":
        forms.append(gzip.decompress(content))
    if name.endswith(".json"):
        forms.append(json.dumps(json.loads(content), ensure_ascii=False).encode())
    if name.endswith(".parquet"):
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
        forms += [json.dumps(table.to_pylist(), default=str).encode(), str(table.schema.metadata).encode()]
    return forms


@pytest.mark.parametrize("task", ["parser", "tagger"])
def test_no_planted_word_leaves(
    task: str, tmp_path: Path, sent: list[dict[str, bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "zqhome"
    home.mkdir()
    secret_treebank(home / "zq-train.conllu")
    (home / "public.vec").write_text(
        "".join(f"{word} {' '.join(str(n / 7) for n in range(i, i + 8))}\n" for i, word in enumerate(PUBLIC))
    )
    sizes = ["context_layers=1", "attention_heads=2", "key_size=4", "feed_forward_size=8"]
    train = [
        *("train-source", "--task", task, "--treebank", f"train={home}/zq-train.conllu"),
        *("--vectors", home / "public.vec", "--output", home / "model", "--epochs", 2, "--batch-size", 4),
        *("--model", *sizes),
    ]
    assert hf_xst_cli.main([str(word) for word in train]) == 0
    assert push(home / "model") == 0
    (files,) = sent
    assert {"config.json", "model.safetensors", "words.json", "README.md"} <= set(files)
    for name, content in files.items():
        for form in readings(name, content):
            for secret in (*PLANTED, "zqid", "zqhome"):
                assert secret.encode() not in form.lower(), f"{secret} is in {name}"
    assert json.loads(files["words.json"])["words"] == PUBLIC
    sentence = next(read_conllu(home / "zq-train.conllu")).words
    (home / "model" / "README.md").write_text(f"As in: {' '.join(sentence)}!\n")
    assert push(home / "model") == 1
    assert "README.md: a training sentence" in capsys.readouterr().err
    (home / "zq-train.conllu").unlink()
    assert push(home / "model") == 1
    told = capsys.readouterr().err
    assert "cannot be read again" in told
    assert "--unsearched" in told
    assert push(home / "model", "--unsearched", "true") == 0
    assert "cannot be read again" in capsys.readouterr().err


def test_all_sentences_that_a_run_has_read_are_sought(tmp_path: Path) -> None:
    """Those of the development part and of tests too, and whatever can be read where one of them is gone."""
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conllu").write_text(f"1\tThe\t_\tDET\t_\t_\t0\troot\t_\t{name}=1\n\n")
    (tmp_path / "run").mkdir()
    config = {
        "treebank": f"train={tmp_path}/train.conllu",
        "dev_treebank": f"dev={tmp_path}/dev.conllu",
        "charts": None,
    }
    (tmp_path / "run" / "config.yaml").write_text(json.dumps(config))
    assert training_sentences(tmp_path) == [["The"], ["The"]]
    tested = {"treebank": f"test={tmp_path}/test.conllu"}
    (tmp_path / "run" / "evaluate-config.yaml").write_text(json.dumps(tested))
    assert len(training_sentences(tmp_path)) == 3
    (tmp_path / "train.conllu").unlink()
    with pytest.raises(ValueError, match=r"the sentences of treebank .* cannot be read again"):
        training_sentences(tmp_path)
    assert training_sentences(tmp_path, unsearched=True) == [["The"], ["The"]]


def test_private_words_of_a_vector_file_stay(tmp_path: Path, sent: list[dict[str, bytes]]) -> None:
    model = save_model(tmp_path / "model")
    words = [*PUBLIC[:6], *PLANTED[:6]]
    listed = json.loads((tmp_path / "model" / "words.json").read_text())
    (tmp_path / "model" / "words.json").write_text(json.dumps(listed | {"words": words}))
    shutil.copytree(tmp_path / "model", tmp_path / "tagged" / "tagger")
    for path in (tmp_path / "model").iterdir():
        shutil.copy(path, tmp_path / "tagged")
    record_run(tmp_path / "tagged")
    (tmp_path / "public.vec").write_text("".join(f"{word} 1\n" for word in PUBLIC))
    assert push(tmp_path / "tagged", "--vectors", tmp_path / "public.vec") == 0
    assert push(tmp_path / "tagged", "--vocabulary", "all") == 0
    public, everything = sent
    assert b"only words of a public vector file" in public["README.md"]
    assert b"all words of the model, as its author chose" in everything["README.md"]
    for folder in ("", "tagger/"):
        assert json.loads(public[f"{folder}words.json"])["words"] == PUBLIC[:6]
        assert json.loads(everything[f"{folder}words.json"])["words"] == words
        (tmp_path / "kept.safetensors").write_bytes(public[f"{folder}model.safetensors"])
        kept = load_file(tmp_path / "kept.safetensors")["encoder.words.vectors"]
        assert kept.tolist() == model.encoder.words.vectors[:6].tolist()

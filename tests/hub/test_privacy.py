"""No private content is pushed: detection in all kinds of files, and a run on a treebank of secrets."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import hf_xst_cli
from helpers.recorded_runs import record_run, save_charts, save_model
from hf_xst.data import ConlluSentence, read_conllu, write_conllu
from hf_xst.hub import upload
from hf_xst.hub.contents import Contents
from hf_xst.hub.privacy import Secrets, Sentences, training_sentences

Pushes = list[dict[str, bytes]]
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"
SENTENCE = ["The", "merger", "with", "Ostrava", "closes", "on", "Friday", "."]
SECRETS = Secrets(
    {"/srv/people/anna/vault": "the home folder"}, frozenset({"anna"}), Sentences([SENTENCE, ["Yes", "."]])
)


def leaks(path: Path) -> list[str]:
    return [leak.removeprefix(f"{path.name}: ") for leak in SECRETS.find_in({path.name: path})]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_leaks_in_a_card(text: str, expected: str, tmp_path: Path) -> None:
    assert any(leak.startswith(expected) for leak in leaks(write(tmp_path / "README.md", text)))


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
def test_texts_without_leaks(text: str, tmp_path: Path) -> None:
    assert leaks(write(tmp_path / "README.md", text)) == []


def test_strings_in_json(tmp_path: Path) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in "/srv/b/x")
    assert leaks(write(tmp_path / "config.json", f'{{"_name_or_path": "{escaped}"}}')) == [
        "an absolute path (/srv/b/x)"
    ]
    assert leaks(write(tmp_path / "config.json", '{"x": "/anywhere/else"}')) == [
        "an absolute path (/anywhere/else)"
    ]
    split = json.dumps({"example": {"words": SENTENCE}})
    assert leaks(write(tmp_path / "config.json", split))[0].startswith("a training sentence")
    assert leaks(write(tmp_path / "config.json", "{")) == [
        "not a valid json file (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"
    ]


def test_vocabularies_may_contain_any_word_but_no_token(tmp_path: Path) -> None:
    words = ["anna", "/srv/x/y", *SENTENCE]
    path = write(tmp_path / "words.json", json.dumps({"words": words}))
    assert leaks(path) == []
    assert leaks(write(path, json.dumps({"words": [*words, TOKEN]}))) == ["a token"]
    assert leaks(write(path, json.dumps({"words": [" ".join(SENTENCE)]})))[0].startswith("a training")


def test_safetensors_are_searched_to_the_last_byte(tmp_path: Path) -> None:
    model = save_model(tmp_path / "model")
    path = tmp_path / "model.safetensors"
    save_file(model.state_dict(), path, metadata={"format": "pt"})
    assert leaks(path) == []
    save_file(model.state_dict(), path, metadata={"format": "pt", "from": "/srv/b/runs/1"})
    assert leaks(path) == ["an absolute path (/srv/b/runs/1)"]
    content = (tmp_path / "model" / "model.safetensors").read_bytes()
    assert leaks(write(path, content[:-40] + TOKEN.encode() + content[-3:])) == ["a token"]
    for pickle in (b"\x80\x02}q\x00.", b"PK\x03\x04" + bytes(100), b""):
        assert "not a valid safetensors file" in leaks(write(path, pickle))[0]


def test_strings_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001.parquet"

    def parquet(words: list[str], sent_id: str = "s1") -> Path:
        Dataset.from_list([{"sent_id": sent_id, "words": words, "deep": [[words]]}]).to_parquet(str(path))
        return path

    assert leaks(parquet(["anna", "/srv/x/y"])) == []
    assert leaks(parquet(["x", TOKEN])) == ["a token"]
    assert leaks(parquet(["x"], "/srv/b/text.txt:3")) == ["an absolute path (/srv/b/text.txt:3)"]
    table = pyarrow.parquet.read_table(parquet(["x"]))
    pyarrow.parquet.write_table(table.replace_schema_metadata({"made": "by anna"}), path)
    assert leaks(path) == ["the user name anna"]


@given(st.lists(st.text("abcdefg .,", min_size=1, max_size=9), min_size=4, max_size=12), st.data())
def test_sentences_are_found_regardless_of_spacing(words: list[str], data: st.DataObject) -> None:
    search = Sentences([words])
    spaced = "".join(word + data.draw(st.sampled_from(["", " ", "\n", " - "])) for word in words)
    letters = sum(letter.isalnum() for word in words for letter in word)
    assert (search.find_in(f"xyz {spaced.upper()} xyz") is not None) == (letters >= 24)


def test_collected_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/berta")
    monkeypatch.setenv("USER", "berta")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    secrets = Secrets.collect(tmp_path, "tester")
    assert {"/srv/people/berta", str(tmp_path.resolve()), TOKEN} <= set(secrets.strings)
    assert "berta" in secrets.users
    assert "root" not in secrets.users
    assert "berta" not in Secrets.collect(tmp_path, "berta").users


def test_wide_letters_count_three() -> None:
    sentences = Sentences([["王芳", "住在", "北京路", "十二号"], ["好"], ["Yes", "."]])
    assert sentences.find_in("He wrote: 王芳住在北京路十二号。") is not None
    assert sentences.find_in("王芳住在北京") is None
    assert sentences.ignored == 2


# -- whole folders ---------------------------------------------------------------------------------------


@pytest.fixture
def pushes(monkeypatch: pytest.MonkeyPatch) -> Pushes:
    """Collect the files of each push instead of sending them."""
    files_of: Pushes = []

    def collect(repository: upload.Repository, contents: Contents) -> None:
        files_of.append({name: path.read_bytes() for name, path in contents.files.items()})

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(upload.Repository, "upload", collect)
    monkeypatch.setattr(upload.Repository, "download_card", lambda repository: None)
    return files_of


def push(folder: Path, *words: object) -> int:
    return hf_xst_cli.main(["push", str(folder), "--to", "tester/en", *map(str, words)])


@pytest.mark.parametrize(
    ("file", "content", "leak"),
    [
        ("README.md", f"# Mine\n\n{TOKEN}\n", "README.md: a token"),
        ("config.json", None, "config.json: an absolute path"),
        ("LICENSE", "by /srv/b/x", "LICENSE: an absolute path"),
    ],
)
def test_leaks_stop_the_push(
    file: str,
    content: str | None,
    leak: str,
    tmp_path: Path,
    pushes: Pushes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save_model(tmp_path)
    record_run(tmp_path)
    if content is None:
        config = json.loads((tmp_path / file).read_text())
        content = json.dumps(config | {"_name_or_path": "/srv/b/models/en"})
    (tmp_path / file).write_text(content)
    assert push(tmp_path) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("hf-xst push: nothing was pushed")
    assert leak in error
    assert not pushes


def test_paths_in_the_record_of_charts_stop_the_push(
    tmp_path: Path, pushes: Pushes, capsys: pytest.CaptureFixture[str]
) -> None:
    save_charts(tmp_path)
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    provenance["sources"][0]["id"] = "/srv/b/models/en"
    (tmp_path / "provenance.json").write_text(json.dumps(provenance))
    assert push(tmp_path) == 1
    assert "provenance.json: an absolute path (/srv/b/models/en)" in capsys.readouterr().err
    assert not pushes


# -- a treebank of secrets -------------------------------------------------------------------------------

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


def readable_forms(name: str, content: bytes) -> list[bytes]:
    """Return a file's bytes in every form that they can be read in."""
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
def test_no_planted_word_is_pushed(
    task: str, tmp_path: Path, pushes: Pushes, capsys: pytest.CaptureFixture[str]
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
    (files,) = pushes
    assert {"config.json", "model.safetensors", "words.json", "README.md"} <= set(files)
    for name, content in files.items():
        for form in readable_forms(name, content):
            for secret in (*PLANTED, "zqid", "zqhome"):
                assert secret.encode() not in form.lower(), f"{secret} is in {name}"
    assert json.loads(files["words.json"])["words"] == PUBLIC
    sentence = next(read_conllu(home / "zq-train.conllu")).words
    (home / "model" / "README.md").write_text(f"As in: {' '.join(sentence)}!\n")
    assert push(home / "model") == 1
    assert "README.md: a training sentence" in capsys.readouterr().err
    (home / "zq-train.conllu").unlink()
    assert push(home / "model") == 1
    error = capsys.readouterr().err
    assert "cannot be read any more" in error
    assert "--unsearched" in error
    assert push(home / "model", "--unsearched", "true") == 0
    assert "cannot be read any more" in capsys.readouterr().err


def test_training_sentences_include_development_and_test(tmp_path: Path) -> None:
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
    evaluated = {"treebank": f"test={tmp_path}/test.conllu"}
    (tmp_path / "run" / "evaluate-config.yaml").write_text(json.dumps(evaluated))
    assert len(training_sentences(tmp_path)) == 3
    (tmp_path / "train.conllu").unlink()
    with pytest.raises(ValueError, match=r"the sentences of treebank .* cannot be read any more"):
        training_sentences(tmp_path)
    assert training_sentences(tmp_path, unsearched=True) == [["The"], ["The"]]


def test_only_words_of_the_public_vector_file_are_pushed(tmp_path: Path, pushes: Pushes) -> None:
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
    public, complete = pushes
    assert b"only words of a public vector file" in public["README.md"]
    assert b"all words of the model, at its author's request" in complete["README.md"]
    for folder in ("", "tagger/"):
        assert json.loads(public[f"{folder}words.json"])["words"] == PUBLIC[:6]
        assert json.loads(complete[f"{folder}words.json"])["words"] == words
        (tmp_path / "kept.safetensors").write_bytes(public[f"{folder}model.safetensors"])
        kept = load_file(tmp_path / "kept.safetensors")["encoder.words.vectors"]
        assert kept.tolist() == model.encoder.words.vectors[:6].tolist()

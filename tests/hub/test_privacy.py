"""No private content is pushed: detection in all kinds of files, and a run on a treebank of secrets."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import struct
import tempfile
import zlib
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
from hf_xst.hub.privacy import Secrets, training_sentences
from hf_xst.hub.texts import drawn_part

Pushes = list[dict[str, bytes]]
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345"
SENTENCE = ["The", "merger", "with", "Éva", "of", "Ostrava", "closes", "on", "Friday", "."]
STRINGS = {"/srv/people/anna/vault": "the home folder", "Xk9-vT4!q": "the value of DB_PASSWORD"}
SECRETS = Secrets(STRINGS, frozenset({"anna"}), [SENTENCE, ["Yes", "."]])
CONLLU = "\n".join(
    f"{i}\t{word}\t{word.lower()}\tNOUN\t_\t_\t0\troot\t_\t_" for i, word in enumerate(SENTENCE, 1)
)


def leaks(path: Path) -> list[str]:
    return [leak.removeprefix(f"{path.name}: ") for leak in SECRETS.find_in({path.name: path})]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("&#47;srv&#x2f;kim/x", "an absolute path (/srv/kim/x)"),
        ("&amp;#97;nna", "the user name anna"),
        ("%2Fsrv%2Fkim/x", "an absolute path (/srv/kim/x)"),
        ("hf&lowbar;AbCdEfGhIjKlMnOp", "a token"),
        ("an\u200bna, \uff41\uff4e\uff4e\uff41", "the user name anna"),
        ("hf\\_AbCdEfGhIjKlMnOp", "a token"),
        ("by Anna, ANNA", "the user name anna"),
        ("xk9-VT4!Q", "the value of DB_PASSWORD"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a secret (Private Key)"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "a secret (Private Key)"),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "a token"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "a token"),
        ("AKIAIOSFODNN7EXAMPLE", "a secret (AWS Access Key)"),
        (f"AccountKey={'a1B/' * 22}", "a secret (Azure Storage Account access key)"),
        (f"AIza{'Sy0-_' * 7}", "a token"),
        (f"ghp_{'a1B2' * 9}", "a token"),
        ("xoxb-123456789012-abcdef", "a secret (Slack Token)"),
        ("https://u:hunter2@host.example/x", "a secret (Basic Auth Credentials)"),
        ("git+ssh://bot:pw%40x@host.example", "a secret (Basic Auth Credentials)"),
        ("postgres://u:p@127.0.0.1/db", "a secret (Basic Auth Credentials)"),
        ("db_password = 'correct horse'", "a secret (Secret Keyword)"),
        ("write to kim.b+x@lab.host.de.", "an e-mail address (kim.b+x@lab.host.de)"),
        ("<a href='mailto:Kim@Host.DE'>", "an e-mail address (kim@host.de)"),
        ("kim&#64;host.de", "an e-mail address (kim@host.de)"),
        ("kim%40host.de", "an e-mail address (kim@host.de)"),
        ("see ~/models/x", "an absolute path (~/models/x)"),
        ("~kim/x", "an absolute path (~kim/x)"),
        ("$HOME/x or ${HOME}/x", "an absolute path ($home/x)"),
        (r"%USERPROFILE%\x", r"an absolute path (%userprofile%\x)"),
        ('<image href="data:image/png;base64,aGk="/>', "embedded data in base64"),
        (f"export HF_TOKEN={TOKEN}", "a token"),
        ("cd /srv/people/anna/vault", "the home folder"),
        ("run by anna on Monday", "the user name anna"),
        ("--data /srv/b/treebanks", "an absolute path (/srv/b/treebanks)"),
        ('path="/tmp/x/y"', "an absolute path (/tmp/x/y)"),
        (r"see C:\Users\b\models", r"an absolute path (c:\users\b\models)"),
        ("file:///etc/x", "an absolute path (file:///etc/x)"),
        ("read from data:/srv/kim/x", "an absolute path (/srv/kim/x)"),
        ("at /anywhere/at/all", "an absolute path (/anywhere/at/all)"),
        (r"D:\data\kim\x", r"an absolute path (d:\data\kim\x)"),
        (r"from \\server\share\x", r"an absolute path (\\server\share"),
        ("It said: the merger with\nÉva of Ostrava closes on Friday!", "a training sentence"),
        ("It said: the merger with E\u0301va of Ostrava", "a training sentence"),
        ("The&nbsp;merger with &Eacute;va of Ostrava", "a training sentence"),
        ("THE MERGER, WITH ÉVA OF OSTRAVA", "a training sentence"),
        ("... Éva of Ostrava closes on Friday", "a training sentence"),
        ("the mer\u00adger with \u200bÉva of Ostrava", "a training sentence"),
        (CONLLU, "a training sentence"),
        (CONLLU.replace("\t", " "), "a training sentence"),
        (CONLLU.replace("\t", " | "), "a training sentence"),
        (CONLLU.replace("\t", ","), "a training sentence"),
        ("<!-- The merger with Éva of Ostrava -->", "a training sentence"),
        ("<text>The</text><text>merger</text> with Éva <b>of</b> Ostrava", "a training sentence"),
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
        "The merger with Éva closes on Friday",
        "acl advcl advmod amod appos aux case cc ccomp compound conj cop csubj det nsubj obj obl root",
        "tester/en@v1.beta, git@github.com:tester/en, kim@example.org, 50~60, $HOME, ~~no~~",
        "a password is required; the secret of tokens, and a private key",
        f"sha256: {'0f1e2d3c' * 8}, version 1.2.3.4, APARTAMENTOS",
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
    for split in (SENTENCE, [{"form": word, "upos": "NOUN"} for word in SENTENCE]):
        path = write(tmp_path / "config.json", json.dumps({"example": {"words": split}}))
        assert leaks(path)[0].startswith("a training sentence")
    for twice in (
        f'"a": "{TOKEN}", "a": "x"',
        f'"a": {{"{TOKEN}": 1, "{TOKEN}": 2}}',
        f'"a": [], "a": "{TOKEN}"',
    ):
        escaped = twice.replace("hf_", "hf\\u005f")
        assert leaks(write(tmp_path / "config.json", f"{{{escaped}}}")) == ["a token"]
    secret = write(tmp_path / "config.json", '{"db_password": "hunter2"}')
    assert leaks(secret) == ["a secret (Secret Keyword)"]
    assert leaks(write(tmp_path / "config.json", "[" * 100_000)) == [
        "not a valid json file (it is nested too deeply)"
    ]
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


@given(st.lists(st.text("abcdefg", min_size=1, max_size=9), min_size=7, max_size=12), st.data())
def test_sentences_are_found_regardless_of_spacing(words: list[str], data: st.DataObject) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        for word in words[:-1]:
            file.write(word.upper() + data.draw(st.sampled_from(["", " ", "\n", " - "])))
        file.flush()
        found = Secrets({}, sentences=[words]).find_in({"x": Path(file.name)})
    assert bool(found) == (len("".join(words[:-1])) >= 24)


def test_collected_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/berta")
    monkeypatch.setenv("USER", "berta")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    values = {
        "AWS_SECRET_ACCESS_KEY": "a/b+c12345",
        "db_password": "Xk9-vT4!q",
        "PASSWORD_OF_DB": "correcthorsebattery",
        "MY_TOKEN": "0123456789",
        "SSH_PASSPHRASE": "four words of mine",
    }
    for name, value in {**values, "SHORT_KEY": "1", "PLAIN_TOKEN": "computer"}.items():
        monkeypatch.setenv(name, value)
    secrets = Secrets.collect(tmp_path, "tester")
    assert {"/srv/people/berta", str(tmp_path.resolve()), TOKEN} <= set(secrets.strings)
    assert set(values.values()) <= set(secrets.strings)
    assert not {"1", "computer"} & set(secrets.strings)
    assert set(secrets.unused) >= {"SHORT_KEY", "PLAIN_TOKEN"}
    assert "berta" in secrets.users
    assert "root" not in secrets.users
    assert "berta" not in Secrets.collect(tmp_path, "berta").users


def test_wide_letters_count_three(tmp_path: Path) -> None:
    secrets = Secrets({}, sentences=[["王芳", "住在", "北京路", "十二号"], ["好"], ["Yes", "."]])
    path = tmp_path / "README.md"
    assert secrets.find_in({"x": write(path, "He wrote: 王芳住在北京路十二号。")})
    assert not secrets.find_in({"x": write(path, "王芳住在北京")})
    assert "2 training sentences, which are too short" in secrets.notes()[1]


def test_allowed_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "README.md", f"Anna (anna@host.de) in ~/x: {' '.join(SENTENCE)}")
    allowed = ["Anna", "@host.de", "~/x", "merger with Éva"]
    assert Secrets(STRINGS, SECRETS.users, SECRETS.sentences, allowed).find_in({"x": path}) == []
    write(path, f"{TOKEN} Xk9-vT4!q")
    assert Secrets(STRINGS, allowed=[TOKEN, "Xk9-vT4!q"]).find_in({"x": path}) == [
        "x: a token",
        "x: the value of DB_PASSWORD",
    ]


# -- pictures --------------------------------------------------------------------------------------------


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*further: bytes, pixels: bytes = zlib.compress(b"\0\0"), after: bytes = b"") -> bytes:
    header = chunk(b"IHDR", bytes([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]))
    chunks = (header, *further, chunk(b"IDAT", pixels), chunk(b"IEND"), after)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    "picture",
    [
        png(chunk(b"tEXt", b"Author\0anna")),
        png(chunk(b"zTXt", b"Author\0\0" + zlib.compress(b"anna"))),
        png(chunk(b"iTXt", b"Author\0\0\0\0\0anna")),
        png(chunk(b"eXIf", b"anna"), chunk(b"tIME", b"1234567")),
        png(chunk(b"iCCP", b"anna\0\0")),
        png(after=b"anna"),
    ],
)
def test_hidden_data_of_pictures_is_removed(picture: bytes) -> None:
    assert drawn_part(picture) == png()


@pytest.mark.parametrize(
    "picture",
    [
        b"<svg></svg>",
        b"-----BEGIN OPENSSH PRIVATE KEY-----",
        png()[:-6],
        png().replace(b"IDAT", b"IDAU"),
        png(pixels=zlib.compress(b"\0\0") + b"anna"),
        png(pixels=b"anna"),
    ],
)
def test_broken_pictures_are_rejected(picture: bytes) -> None:
    with pytest.raises(ValueError, match=r"the picture is broken|lacks pixels"):
        drawn_part(picture)


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

"""Pipelines and predictions by ids on a Hub, the tagger beside the parser included."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.hub_process import Client
from helpers.recorded_runs import save_model
from helpers.small_models import model_of
from hf_xst.data import read_conllu

pytestmark = pytest.mark.slow

WORDS = ["w1", "w2", "w3"]


@pytest.fixture(scope="module")
def expected() -> dict[str, object]:
    tags = model_of("tagger", 2).predict([{"words": WORDS}])[0]
    return {"words": WORDS, **tags, **model_of("parser", 1).predict([{"words": WORDS, **tags}])[0]}


@pytest.fixture(scope="module")
def repository(client: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A parser with its tagger, tagged v1, and then another parser alone."""
    folder = tmp_path_factory.mktemp("pushed")
    save_model(folder, "parser", 1)
    save_model(folder / "tagger", "tagger", 2)
    assert client.command("push", folder, "--to", "tester/both", "--tag", "v1", "--unsearched")["status"] == 0
    for path in (folder / "tagger").iterdir():
        path.unlink()
    save_model(folder, "parser", 3)
    assert client.command("push", folder, "--to", "tester/both", "--unsearched")["status"] == 0
    return "tester/both"


def test_a_pipeline_by_id_finds_the_tagger_of_the_same_revision(client, repository, expected):
    found = client("annotate", task="dependency-parsing", model=repository, revision="v1", words=WORDS)
    assert found == expected
    with pytest.raises(Exception, match=r"this model reads UPOS tags .* tag it first"):
        client("annotate", task="dependency-parsing", model=repository, words=WORDS)


def test_only_allowed_files_are_fetched(client, hub, repository, expected):
    """Not even files that nothing would read are downloaded."""
    names = ["evil.py", "pytorch_model.bin", "README.md", "tagger/evil.py", "tagger/pytorch_model.bin"]
    names += ["tagger/weights.pkl", "tagger/vocab.txt", "tagger/.env", "run/config.yaml"]
    stored = hub.store.get("model", repository)
    stored["refs"]["more"] = stored["tags"]["v1"]
    hub.store.commit(stored, "more", "more", [(name, b"evil") for name in names])
    before = len(hub.seen)
    found = client("annotate", task="dependency-parsing", model=repository, revision="more", words=WORDS)
    assert found == expected
    requests = [line.split("/", 5)[-1] for line in hub.seen[before:] if "/resolve/" in line]
    assert "tagger/model.safetensors" in requests
    assert not {*requests} & {*names}


def test_predict_by_id(client, repository, expected, tmp_path: Path):
    text, out = tmp_path / "in.txt", tmp_path / "out.conllu"
    text.write_text(" ".join(WORDS) + "\n")
    words = ["predict", "--input", text, "--output", out]
    assert client.command(*words, "--model", f"{repository}@v1")["status"] == 0
    (sentence,) = read_conllu(out)
    assert [sentence.upos, sentence.deprels] == [expected["upos"], expected["deprel"]]
    assert "tag it first" in client.fails(*words, "--overwrite", "--model", repository)

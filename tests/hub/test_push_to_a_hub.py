"""Push and pull with the real client and a loopback Hub, with and without failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from helpers.hub_process import Client, HubError
from helpers.hub_server import Hub
from helpers.recorded_runs import record_run, save_charts, save_model
from helpers.small_models import WORDS, model_of, vectors
from hf_xst import load_charts
from hf_xst.sources.loading import load_model, weights_digest

pytestmark = pytest.mark.slow

ANNA = {"HF_TOKEN": "hf_as_anna"}


def tree(hub: Hub, repository: str, kind: str = "model", revision: str = "main") -> dict[str, Any]:
    """Return the files in the store of a repository."""
    stored = hub.store.get(kind, repository)
    files: dict[str, Any] = stored["commits"][hub.store.resolve(stored, revision)]["tree"]
    return {name: entry for name, entry in files.items() if name != ".gitattributes"}


def content(hub: Hub, repository: str, name: str, kind: str = "model") -> bytes:
    return (hub.store.blobs / tree(hub, repository, kind)[name]["sha256"]).read_bytes()


def refs(hub: Hub, repository: str, kind: str = "model") -> dict[str, Any]:
    stored = hub.store.get(kind, repository)
    return {
        "private": stored["private"],
        "head": stored["refs"]["main"],
        "tags": stored["tags"],
        **stored["refs"],
    }


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_model(tmp_path / "model", seed=1)
    return record_run(tmp_path / "model")


def digest(folder: Path) -> str:
    return weights_digest(load_model(str(folder)))


# -- models ----------------------------------------------------------------------------------------------


def test_push_and_load(client: Client, hub: Hub, model: Path) -> None:
    (model / "training_args.bin").write_bytes(b"private")
    client.succeeds("push", model, "--to", "tester/en", "--message", "First")
    assert refs(hub, "tester/en")["private"]
    names = {"README.md", "tree.svg", "config.json", "model.safetensors", "words.json"}
    assert set(tree(hub, "tester/en")) == names
    assert client("digest", model="tester/en") == digest(model)
    for name in ("tester/en", "tester/en@main"):
        assert client("digest", model=name) == digest(model)
    assert client("load", model="tester/en", revision="main") == "BiaffineParser"
    history = hub.store.get("model", "tester/en")["commits"].values()
    assert [commit["title"] for commit in history] == ["initial commit", "First"]


def test_repeated_push_makes_no_commit(client: Client, hub: Hub, model: Path) -> None:
    for _ in range(2):
        client.succeeds("push", model, "--to", "tester/twice", "--tag", "v1")
    stored = hub.store.get("model", "tester/twice")
    assert len(stored["commits"]) == 2
    assert stored["tags"] == {"v1": stored["refs"]["main"]}


def test_account_defaults_to_that_of_the_token(client: Client, hub: Hub, model: Path) -> None:
    client.succeeds("push", model, "--to", "short", **ANNA)
    assert hub.store.get("model", "anna/short")


def test_large_weights_are_uploaded_in_parts(client: Client, hub: Hub, tmp_path: Path) -> None:
    large = save_model(tmp_path / "model")
    large.config.vector_space = None
    table = vectors(300, [f"w{number}" for number in range(16_000)], name="large")
    large = type(large).from_vectors(large.config, table)
    large.save_pretrained(tmp_path / "model")
    size = (tmp_path / "model" / "model.safetensors").stat().st_size
    assert size > 16 << 20
    client.succeeds("push", tmp_path / "model", "--to", "tester/large", "--unsearched")
    entry = tree(hub, "tester/large")["model.safetensors"]
    assert entry["lfs"]["size"] == size
    assert any(f"/lfs/{entry['sha256']}/2" in line for line in hub.seen)
    assert client("digest", model="tester/large") == digest(tmp_path / "model")


def test_tag_of_another_commit_is_rejected(client: Client, hub: Hub, model: Path, tmp_path: Path) -> None:
    first = digest(model)
    client.succeeds("push", model, "--to", "tester/tagged", "--tag", "v1")
    save_model(model, seed=2)
    error = client.fails("push", model, "--to", "tester/tagged", "--tag", "v1")
    assert "the tag v1 marks an older one" in error
    client.succeeds("push", model, "--to", "tester/tagged", "--tag", "v2")
    assert client("digest", model="tester/tagged@v1") == first
    assert client("digest", model="tester/tagged", revision="v2") == digest(model) != first
    save_model(model, seed=3)
    before = refs(hub, "tester/tagged")
    error = client.fails("push", model, "--to", "tester/tagged", "--tag", "v1")
    assert "the tag v1 of tester/tagged marks an older commit" in error
    assert refs(hub, "tester/tagged") == before


def test_branches(client: Client, hub: Hub, model: Path) -> None:
    client.succeeds("push", model, "--to", "tester/branches")
    save_model(model, seed=2)
    to = ("push", model, "--to", "tester/branches", "--revision", "dev")
    assert "has no branch dev, only main; --new-branch creates it" in client.fails(*to)
    client.succeeds(*to, "--new-branch")
    assert client("digest", model="tester/branches", revision="dev") == digest(model)
    assert client("digest", model="tester/branches") != digest(model)


def test_outdated_files_are_deleted(client: Client, hub: Hub, model: Path) -> None:
    save_model(model / "tagger", "tagger")
    client.succeeds("push", model, "--to", "tester/shrinks")
    assert "tagger/config.json" in tree(hub, "tester/shrinks")
    for path in (model / "tagger").iterdir():
        path.unlink()
    client.succeeds("push", model, "--to", "tester/shrinks")
    assert not [name for name in tree(hub, "tester/shrinks") if name.startswith("tagger/")]


def test_push_to_hub_of_models_and_trainers(client: Client, hub: Hub, model: Path, tmp_path: Path) -> None:
    client("push_model", folder=str(model), repository="tester/from-memory", tags=["spoken"], tag="v1")
    assert refs(hub, "tester/from-memory")["private"]
    assert client("digest", model="tester/from-memory@v1") == digest(model)
    assert b"- spoken" in content(hub, "tester/from-memory", "README.md")
    client("push_model", folder=str(model), repository="tester/for-all", private=False)
    assert not refs(hub, "tester/for-all")["private"]

    options = {"folder": str(model), "output": str(tmp_path / "run")}
    local = client("push_trainer", **options, repository="tester/trained")
    assert {"training_args.bin", "optimizer.pt"} <= set(local)
    assert refs(hub, "tester/trained")["private"]
    assert set(tree(hub, "tester/trained")) == set(tree(hub, "tester/from-memory"))


def test_push_to_hub_of_pipelines(client: Client, hub: Hub, model: Path, tmp_path: Path) -> None:
    save_model(tmp_path / "tags", "tagger")
    options = {"folder": str(model), "tagger": str(tmp_path / "tags")}
    classes = ["BiaffineParser", "CrfTagger"]
    assert client("push_pipeline", **options, repository="tester/piped") == classes
    saved = str(tmp_path / "saved")
    assert client("push_pipeline", **options, repository="tester/saved", saved=saved) == classes
    for name in ("tester/piped", "tester/saved"):
        assert refs(hub, name)["private"]
        assert {"config.json", "README.md", "tagger/config.json"} <= set(tree(hub, name))


def test_card_of_the_hub_is_kept_if_the_folder_has_none(client: Client, hub: Hub, model: Path) -> None:
    (model / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n\nKept words.\n")
    client.succeeds("push", model, "--to", "tester/carded")
    (model / "README.md").unlink()
    client.succeeds("push", model, "--to", "tester/carded")
    assert b"Kept words." in content(hub, "tester/carded", "README.md")


def test_edits_on_the_hub_are_not_replaced(client: Client, hub: Hub, model: Path) -> None:
    readme = model / "README.md"
    readme.write_text("---\nlicense: mit\n---\n# Mine\n\nKept words.\n")
    client.succeeds("push", model, "--to", "tester/written")
    client.succeeds("push", model, "--to", "tester/written")
    readme.write_text("---\nlicense: mit\n---\n# Mine\n\nOther words.\n")
    error = client.fails("push", model, "--to", "tester/written")
    assert "contains lines that the folder's README.md lacks: 'Kept words.'. Copy them" in error
    assert b"Kept words." in content(hub, "tester/written", "README.md")
    client.succeeds("push", model, "--to", "tester/written", "--replace-card")
    assert b"Kept words." not in content(hub, "tester/written", "README.md")
    readme.write_text("---\nlicense: apache-2.0\n---\n# Mine\n\nOther words.\n")
    client.succeeds("push", model, "--to", "tester/written")  # only the same key differs


def test_models_with_a_pretrained_encoder_are_complete(
    client: Client, hub: Hub, tmp_path: Path, bert: Path
) -> None:
    from helpers.tiny_models import model_over

    model_over(bert).save_pretrained(tmp_path / "model")
    client.succeeds("push", tmp_path / "model", "--to", "tester/encoder", "--unsearched")
    before = len(hub.seen)
    assert client("digest", model="tester/encoder") == digest(tmp_path / "model")
    assert [line for line in hub.seen[before:] if "/tester/encoder" not in line] == []


# -- charts ----------------------------------------------------------------------------------------------


def test_push_and_load_charts(client: Client, hub: Hub, tmp_path: Path) -> None:
    save_charts(tmp_path / "charts")
    rows, _ = load_charts(str(tmp_path / "charts"))
    client.succeeds("push", tmp_path / "charts", "--to", "tester/charts", "--tag", "v1")
    assert refs(hub, "tester/charts", "dataset")["private"]
    for name in ("tester/charts", "tester/charts@v1"):
        loaded = client("charts", repository=name)["rows"]
        assert [{key: row[key] for key in rows.column_names} for row in loaded] == rows.to_list()
    plain = client("dataset", repository="tester/charts")
    assert {"words", "allowed_heads", "allowed_labels", "candidates"} <= set(plain["columns"])
    assert len(plain["first"]["allowed_heads"]) == len(plain["first"]["words"])
    client("push_charts", folder=str(tmp_path / "charts"), repository="tester/charts-too")
    assert len(client("charts", repository="tester/charts-too")["rows"]) == len(rows)


def test_outdated_shards_are_deleted(client: Client, hub: Hub, tmp_path: Path) -> None:
    save_charts(tmp_path / "charts")
    client.succeeds("push", tmp_path / "charts", "--to", "tester/shards")
    only = tmp_path / "charts" / "data" / "train-00000-of-00001.parquet"
    only.rename(only.with_name("train-00000-of-00002.parquet"))
    client.succeeds("push", tmp_path / "charts", "--to", "tester/shards")
    assert [name for name in tree(hub, "tester/shards", "dataset") if name.startswith("data/")] == [
        "data/train-00000-of-00002.parquet"
    ]


def test_text_is_streamed_from_a_data_set(client: Client, tmp_path: Path) -> None:
    save_charts(tmp_path / "charts")
    client.succeeds("push", tmp_path / "charts", "--to", "tester/text", "--tag", "v1")
    model_of("tagger").save_pretrained(tmp_path / "source")
    words = ["build-charts", "--sources", tmp_path / "source", "--text"]
    client.succeeds(*words, "tester/text@v1", "--split", "train[1:3]", "--output", tmp_path / "made")
    rows, info = load_charts(str(tmp_path / "made"))
    assert rows["words"][:] == load_charts(str(tmp_path / "charts"))[0]["words"][1:3]
    assert (info.text[0]["name"], info.text[0]["on_hub"]) == ("tester/text", True)
    line = client.fails(*words, "tester/test", "--output", tmp_path / "other")
    assert "data set tester/test not found on the Hub; did you mean tester/text" in line
    line = client.fails(*words, "tester/text", "--split", "train[:10%]", "--output", tmp_path / "other")
    assert "train[:10%] cannot have a percentage; expected e.g. train[:1000]" in line


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Word vectors of the target language, in the models' space."""
    lines = [
        f"{w} {' '.join(map(str, row))}" for w, row in zip(WORDS, vectors().matrix.tolist(), strict=True)
    ]
    (tmp_path / "tiny.vec").write_text("\n".join(lines) + "\n")
    return tmp_path / "tiny.vec"


@pytest.mark.parametrize("initial", ["tester/start@v1", "scratch"])
def test_transfer_without_the_sources(
    initial: str, client: Client, hub: Hub, target: Path, tmp_path: Path
) -> None:
    save_model(tmp_path / "start", seed=1)
    save_charts(tmp_path / "charts")
    record_run(tmp_path / "start")
    client.succeeds("push", tmp_path / "start", "--to", "tester/start", "--tag", "v1")
    client.succeeds("push", tmp_path / "charts", "--to", "tester/shared")
    client.succeeds(
        *(
            "transfer",
            "--charts",
            "tester/shared",
            "--init-from",
            initial,
            "--vectors",
            target,
            "--max-steps",
            2,
        ),
        *("--output", tmp_path / "mine", "--batch-size", 2),
    )
    assert json.loads((tmp_path / "mine" / "config.json").read_text())["labels"] == ["amod", "obj", "root"]


def test_sources_by_id_and_revision(client: Client, hub: Hub, target: Path, tmp_path: Path) -> None:
    for seed, name in enumerate(("one", "two")):
        save_model(tmp_path / name, seed=seed)
        record_run(tmp_path / name)
        client.succeeds("push", tmp_path / name, "--to", f"tester/{name}", "--tag", "v1")
    rows = [
        {"words": ["w1", "w2", "w3"], "upos": ["VERB", "ADJ", "NOUN"]},
        {"words": ["w4"], "upos": ["VERB"]},
    ]
    (tmp_path / "text.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    client.succeeds(
        *("build-charts", "--sources", "tester/one", "other=tester/two@v1"),
        *("--text", tmp_path / "text.jsonl", "--vectors", target, "--output", tmp_path / "charts"),
    )
    sources = json.loads((tmp_path / "charts" / "provenance.json").read_text())["sources"]
    assert [(each["id"], each["revision"]) for each in sources] == [
        ("tester/one", None),
        ("tester/two", "v1"),
    ]


# -- failures --------------------------------------------------------------------------------------------


def test_broken_connection_changes_nothing_on_the_hub(client: Client, hub: Hub, model: Path) -> None:
    client("skip_waiting")
    client.succeeds("push", model, "--to", "tester/broken", "--tag", "v1")
    before, first = refs(hub, "tester/broken"), digest(model)
    for step, seed in (("lfs", 1001), ("commit", 1002)):
        save_model(model, seed=seed)
        hub.broken.add(step)
        error = client.fails("push", model, "--to", "tester/broken", "--tag", "v2")
        assert "cannot be reached" in error
        assert "nothing was changed" in error
        assert refs(hub, "tester/broken") == before
        assert client("digest", model="tester/broken@v1") == first
        hub.broken.clear()
    uploads = len([line for line in hub.seen if line.startswith("PUT /lfs/")])
    client.succeeds("push", model, "--to", "tester/broken", "--tag", "v2")
    assert len([line for line in hub.seen if line.startswith("PUT /lfs/")]) == uploads
    assert client("digest", model="tester/broken@v2") == digest(model)


def test_tokens_without_permission(client: Client, hub: Hub, model: Path) -> None:
    wrong = client.fails("push", model, "--to", "tester/x", HF_TOKEN="hf_wrong")
    assert "the Hub rejected the token (401)" in wrong
    missing = client.fails("push", model, "--to", "tester/x", HF_TOKEN="")
    assert "no token found: log in with `hf auth login`" in missing
    client.succeeds("push", model, "--to", "tester/hidden")
    other = client.fails("push", model, "--to", "tester/hidden", **ANNA)
    assert (
        "the token belongs to anna, who may not write to tester's repositories; push to anna/hidden" in other
    )
    with pytest.raises(HubError, match="model tester/hidden not found on the Hub"):
        client("digest", model="tester/hidden", environment=ANNA)
    with pytest.raises(HubError, match="the Hub rejected the token"):
        client("digest", model="tester/hidden", environment={"HF_TOKEN": "hf_wrong"})


def test_visibility_is_never_changed(client: Client, hub: Hub, model: Path) -> None:
    client.succeeds("push", model, "--to", "tester/private")
    assert "its history would become public too" in client.fails(
        "push", model, "--to", "tester/private", "--public"
    )
    client.succeeds("push", model, "--to", "tester/public", "--public")
    assert not refs(hub, "tester/public")["private"]
    assert "is public; pass --public" in client.fails("push", model, "--to", "tester/public")
    client.succeeds("push", model, "--to", "tester/public", "--public")


def test_invalid_card_is_rejected(client: Client, hub: Hub, model: Path) -> None:
    (model / "README.md").write_text("---\n- a\n- list\n---\n# Mine\n")
    assert "README.md" in client.fails("push", model, "--to", "tester/badcard")


def test_errors_of_loading(client: Client, hub: Hub, model: Path, tmp_path: Path) -> None:
    client.succeeds("push", model, "--to", "tester/upper-sorbian", "--tag", "v1")

    def error_of(name: str, **arguments: Any) -> str:
        with pytest.raises(HubError) as caught:
            client("digest", model=name, **arguments)
        line = str(caught.value).split("\n")[0]
        assert line.startswith("ValueError: ")
        return line

    assert "did you mean tester/upper-sorbian?" in error_of("tester/uper-sorbian")
    assert "has no revision v9; available: main, v1" in error_of("tester/upper-sorbian@v9")
    assert "nor a valid Hub id (USER/NAME)" in error_of("/not/a/folder")
    error = client.fails(
        *("transfer", "--charts", "tester/no-charts", "--init-from", "tester/upper-sorbian"),
        *("--output", tmp_path / "out"),
    )
    assert "data set tester/no-charts not found on the Hub" in error


def put(hub: Hub, repository: str, files: dict[str, bytes]) -> None:
    hub.store.create("model", repository, private=False, sdk=None)
    hub.store.commit(hub.store.get("model", repository), "main", "files", list(files.items()))


def test_repositories_without_a_model_of_this_package(
    client: Client, hub: Hub, model: Path, tmp_path: Path
) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=9, **sizes)).save_pretrained(tmp_path / "bert")
    put(hub, "tester/bert", {path.name: path.read_bytes() for path in (tmp_path / "bert").iterdir()})
    put(hub, "tester/strange", {"config.json": b'{"model_type": "unheard-of"}'})
    put(hub, "tester/empty", {"README.md": b"# Nothing"})
    torch.save(load_model(str(model)).state_dict(), tmp_path / "pytorch_model.bin")
    pickled = {"pytorch_model.bin": (tmp_path / "pytorch_model.bin").read_bytes()}
    put(hub, "tester/pickled", pickled | {"config.json": (model / "config.json").read_bytes()})
    before = len(hub.seen)
    expected = {
        "tester/bert": "holds a model of type bert; expected a parser or tagger saved by this package",
        "tester/strange": "no config.json, or one of an unknown type",
        "tester/empty": "holds no config.json",
        "tester/pickled": "pickled",
    }
    for name, text in expected.items():
        with pytest.raises(HubError) as caught:
            client("digest", model=name)
        line = str(caught.value).split("\n")[0]
        assert text in line
        assert line.startswith("ValueError: ")
    requests = " ".join(hub.seen[before:])
    assert "bert/resolve/main/model.safetensors" not in requests
    assert "GET /tester/pickled/resolve/main/pytorch_model.bin" not in requests


def test_initial_model_must_have_the_labels_of_the_charts(
    client: Client, hub: Hub, target: Path, tmp_path: Path
) -> None:
    save_model(tmp_path / "start", labels=["obj", "root"])
    save_charts(tmp_path / "charts")
    error = client.fails(
        *("transfer", "--charts", tmp_path / "charts", "--init-from", tmp_path / "start"),
        *("--vectors", target, "--output", tmp_path / "mine"),
    )
    assert "the charts use labels that the model does not have: amod" in error


def test_cache_replaces_the_network(client: Client, hub: Hub, model: Path, tmp_path: Path) -> None:
    save_charts(tmp_path / "charts")
    for folder, to in ((model, "tester/warm"), (tmp_path / "charts", "tester/warm-charts")):
        client.succeeds("push", folder, "--to", to, "--tag", "v1")
    home = tmp_path / "home"
    home.mkdir()
    online = Client(hub.url, home)
    for revision in (None, "v1"):
        online("digest", model="tester/warm", revision=revision)
        online("charts", repository="tester/warm-charts", revision=revision)
    online.close()
    # No server listens on port 9, and HF_HUB_OFFLINE suppresses all requests.
    for url, offline in (("http://127.0.0.1:9", "0"), (hub.url, "1")):
        alone = Client(url, home, HF_HUB_OFFLINE=offline)
        alone("skip_waiting")
        for revision in (None, "v1"):
            assert alone("digest", model="tester/warm", revision=revision) == digest(model)
            assert len(alone("charts", repository="tester/warm-charts", revision=revision)["rows"]) == 4
        with pytest.raises(HubError) as caught:
            alone("digest", model="tester/cold")
        line = str(caught.value).split("\n")[0]
        assert ("HF_HUB_OFFLINE is set" if offline == "1" else "cannot be reached") in line
        pushed = alone.fails("push", model, "--to", "tester/warm")
        assert ("HF_HUB_OFFLINE is set" if offline == "1" else "cannot be reached") in pushed
        alone.close()


def test_path_in_the_header_of_weights_stops_the_push(client: Client, hub: Hub, model: Path) -> None:
    weights = model / "model.safetensors"
    save_file(load_file(weights), weights, metadata={"made": "/srv/b/x"})
    assert "nothing was pushed" in client.fails("push", model, "--to", "tester/leaky")
    with pytest.raises(Exception, match="not found"):
        hub.store.get("model", "tester/leaky")

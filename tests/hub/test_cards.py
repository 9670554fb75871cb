"""Cards state what was recorded, in forms that the Hub's client reads, without any path of this machine."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from huggingface_hub import DatasetCard, ModelCard, metadata_load

import hf_xst_cli
from helpers.recorded_runs import save_charts, save_model
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.hub.card import README, write_card
from hf_xst.hub.contents import Contents
from hf_xst.hub.metadata import LICENCES, check_languages, licence_fields
from hf_xst.hub.pictures import read_example

RECORDED = Path(__file__).parent / "recorded"
RENDERED = Path(__file__).parent.parent.parent / "model_cards"
NAMES = sorted(path.name for path in RECORDED.iterdir())
MODELS = [name for name in NAMES if not name.endswith("charts")]
METRICS = {"las": "LAS without punctuation", "uas": "UAS without punctuation", "accuracy": "accuracy"}
PLACEHOLDER = re.compile(r"\bNone\b|\bnull\b|\b[nN]a[nN]\b|\binf\b|Undefined|\{\{|\{%")
ABSOLUTE = re.compile(r"(?<![\w.:/<-])/\w+/|[A-Z]:\\|file:/|~/")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "folder"


def copy_recorded(name: str, folder: Path) -> Path:
    shutil.copytree(RECORDED / name, folder)
    return folder


def edit_record(path: Path, **changes: Any) -> None:
    """Change fields of a JSON or YAML file."""
    text, is_yaml = path.read_text(encoding="utf-8"), path.suffix == ".yaml"
    content = (yaml.safe_load(text) if is_yaml else json.loads(text)) | changes
    path.write_text(yaml.safe_dump(content) if is_yaml else json.dumps(content), encoding="utf-8")


def load(folder: Path) -> ModelCard | DatasetCard:
    kind = DatasetCard if (folder / "provenance.json").exists() else ModelCard
    return kind.load(folder / README, ignore_metadata_errors=False)


def text_of(folder: Path) -> str:
    return (folder / README).read_text(encoding="utf-8")


def card(folder: Path, *words: object) -> int:
    return hf_xst_cli.main(["card", str(folder), *map(str, words)])


def check_content(folder: Path) -> None:
    """Check that card and pictures contain no placeholders or paths, and that all pictures exist."""
    for path in (folder / README, *folder.glob("*.svg")):
        content = re.sub(r"https?://[^\s\"})]+", "", path.read_text(encoding="utf-8"))
        assert not PLACEHOLDER.search(content), (path.name, PLACEHOLDER.search(content))
        assert not ABSOLUTE.search(re.sub(r"</\w+>|/>", "", content)), path.name
    for alternative, name in re.findall(r"!\[([^\]]+)\]\(([\w.-]+)\)", text_of(folder)):
        assert len(alternative) > 10
        assert ElementTree.parse(folder / name).getroot().tag.endswith("svg")


# -- recorded runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_rendered_examples_are_current(name: str, folder: Path) -> None:
    write_card(copy_recorded(name, folder))
    for path in sorted((RENDERED / name).iterdir()):
        assert (folder / path.name).read_bytes() == path.read_bytes(), (
            f"model_cards/{name}/{path.name} is outdated; run python scripts/render_cards.py"
        )
    assert {path.name for path in (RENDERED / name).iterdir()} == {README, "tree.svg", "table.svg"}
    check_content(folder)


@pytest.mark.parametrize("name", NAMES)
def test_metadata_reads_back(name: str, folder: Path) -> None:
    write_card(copy_recorded(name, folder))
    read = load(folder)
    assert str(read) == text_of(folder)
    data = metadata_load(folder / README)
    assert data is not None
    assert (data["language"], data["license"]) == (["art"], "cc0-1.0")
    assert read.data.to_dict() == data
    task = "dependency-parsing" if name.startswith("parser") else "part-of-speech"
    assert {task, "universal_dependencies", "hf_xst"} <= set(data["tags"])
    if name.endswith("charts"):
        assert data["task_categories"] == ["token-classification"]
        assert data["size_categories"] == ["n<1K"]
    else:
        assert (data["library_name"], data["pipeline_tag"]) == ("hf_xst", "token-classification")


@pytest.mark.parametrize("name", MODELS)
def test_scores_equal_the_recorded_ones(name: str, folder: Path) -> None:
    write_card(copy_recorded(name, folder))
    results = json.loads((folder / "run/results.json").read_text())
    expected = {
        ("dev", METRICS[key]): results["dev"][f"eval_{key}"]
        for key in METRICS
        if f"eval_{key}" in results["dev"]
    }
    if (folder / "run/scores.json").exists():
        scores = json.loads((folder / "run/scores.json").read_text())
        expected |= {("test", METRICS[key]): scores[key] for key in METRICS if key in scores}
    written = {
        (result.dataset_split, result.metric_name): result.metric_value
        for result in load(folder).data.eval_results
        if "all words" not in result.metric_name
    }
    assert written == {key: round(value, 2) for key, value in expected.items()}
    assert all(f"| {value:.2f} |" in text_of(folder) for value in expected.values())
    assert f"{results.get('train_sentences', results.get('sentences')):,}" in text_of(folder)


def test_nan_scores_are_left_out(folder: Path) -> None:
    copy_recorded("tagger-source", folder)
    edit_record(folder / "run/results.json", dev={"eval_accuracy": math.nan})
    write_card(folder)
    assert load(folder).data.eval_results is None
    assert "No scores are recorded." in text_of(folder).split("## Scores")[1]
    assert "table.svg" not in text_of(folder)


def test_chart_settings_are_listed(folder: Path) -> None:
    copy_recorded("parser-charts", folder)
    weights = {"Belori": 0.4, "Kasuni": 0.3, "Mirtash": 0.2, "Ulwedd": 0.1}
    settings = json.loads((folder / "provenance.json").read_text())["settings"] | {"weights": weights}
    edit_record(folder / "provenance.json", settings=settings)
    write_card(folder)
    for fact in ("| 0.95 |", "| 1e-09 |", "| 0.4 |", "logarithmic opinion pool", "| 4.15 |", "`demo`"):
        assert fact in text_of(folder)
    assert "the weights were passed by name" in text_of(folder)


def test_sources_on_the_hub_are_base_models(folder: Path) -> None:
    copy_recorded("tagger-transferred", folder)
    charts = json.loads((folder / "run/results.json").read_text())["charts"]
    charts["sources"][0] |= {"id": "someone/belori", "revision": "v1"}
    charts["sources"][2] |= {"id": "else/mirtash"}
    initial = {"id": "else/mirtash", "revision": "main", "name": "mirtash"}
    edit_record(folder / "run/results.json", charts=charts, initial_model=initial)
    (folder / "run/command.txt").write_text(
        "/bin/hf-xst transfer --init-from else/mirtash@main --charts /data/charts --output x/mine --like a/b"
    )
    write_card(folder)
    data = load(folder).data
    assert data.base_model == ["else/mirtash", "someone/belori"]
    assert data.base_model_relation == "finetune"
    text = text_of(folder)
    assert "| `someone/belori` | `v1` |" in text
    assert "Training was initialised from `else/mirtash@main`." in text
    assert "hf-xst transfer --init-from else/mirtash@main --charts charts --output mine --like b\n" in text


@pytest.mark.parametrize(
    ("name", "results", "expected"),
    [
        (
            "tagger-transferred",
            {"initialised_from": "average"},
            "initialised from the average of these source",
        ),
        (
            "tagger-transferred",
            {"initialised_from": "scratch"},
            "initialised from scratch, with the configuration of `one`.",
        ),
        (
            "tagger-transferred",
            {"initialised_from": None, "initial_model": None},
            "initialised from a model that is not recorded.",
        ),
        ("tagger-source", {"initial_model": {"name": "mirtash"}}, "| fine-tuned from | `mirtash` |"),
        (
            "parser-source",
            {"initial_model": {"id": "me/en-parser", "revision": "v1"}},
            "what the initial model, `me/en-parser@v1`, was trained on",
        ),
        (
            "parser-transferred",
            {"initialised_from": "average", "updates": 0},
            "It is the weighted average of the parameters of 4 source models",
        ),
    ],
)
def test_initial_model(name: str, results: dict[str, Any], expected: str, folder: Path) -> None:
    copy_recorded(name, folder)
    edit_record(folder / "run/results.json", **results)
    edit_record(folder / "run/config.yaml", like="/x/one")
    write_card(folder)
    assert expected in text_of(folder)
    assert ("mass inside the charts" in text_of(folder)) == (
        name.endswith("transferred") and "updates" not in results
    )


def test_pretrained_encoder_is_named_with_its_revision(folder: Path) -> None:
    copy_recorded("parser-source", folder)
    nested = {"model_type": "bert", "num_hidden_layers": 6, "hidden_size": 384}
    edit_record(folder / "config.json", encoder="pretrained", encoder_config=nested, vector_space=None)
    encoder = {"name": "small", "id": "org/small", "revision": "abc"}
    edit_record(folder / "run/results.json", encoder=encoder)
    write_card(folder)
    assert "pretrained encoder `org/small`, revision `abc`, frozen" in text_of(folder)
    assert load(folder).data.base_model == ["org/small"]
    edit_record(folder / "run/results.json", encoder=encoder | {"id": None})
    write_card(folder)
    assert "encoder `small (6 layers of 384)`, frozen" in text_of(folder)
    assert load(folder).data.base_model is None


def test_language_and_licence_come_from_the_treebank(folder: Path) -> None:
    copy_recorded("parser-source", folder)
    (folder / "run/card-config.yaml").unlink()
    nynorsk = {"name": "UD_Norwegian-Nynorsk", "language": "no", "language_name": "Norwegian"}
    edit_record(folder / "run/results.json", treebanks=[nynorsk | {"licence": "cc-by-sa-4.0", "new": 1}])
    write_card(folder)
    data = load(folder).data
    assert data.language == ["no"]  # a boolean in YAML unless quoted
    assert data.license == "unknown"
    assert "# Dependency parser: Norwegian" in text_of(folder)
    assert "Licence of the treebank: cc-by-sa-4.0." in text_of(folder)
    assert "**No licence is stated for this model**" in text_of(folder)


# -- folders without a recorded run ----------------------------------------------------------------------


@pytest.mark.parametrize("task", ["parser", "tagger", "groups"])
def test_model_without_records(task: str, folder: Path) -> None:
    save_model(folder, task)
    write_card(folder)
    check_content(folder)
    assert "How it was trained is not recorded." in text_of(folder)
    assert "## Training\n\nNot recorded." in text_of(folder)
    data = load(folder).data
    assert (data.eval_results, data.base_model, data.language, data.license) == (None, None, None, "unknown")
    assert ("dependency-parsing" in data.tags) == (task == "parser")


@pytest.mark.parametrize("task", ["parser", "tagger"])
def test_charts_without_records(task: str, folder: Path) -> None:
    save_charts(folder, task)
    write_card(folder, repository="someone/charts")
    check_content(folder)
    assert "| text | not recorded |" in text_of(folder)
    assert 'load_charts("someone/charts")' in text_of(folder)
    assert {README, "tree.svg", "table.svg"} <= set(Contents.of(folder).files)


@pytest.mark.parametrize("task", ["parser", "tagger"])
def test_example_code_runs(task: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(folder, task)
    write_card(folder, repository=str(folder))
    code = re.search(r"```python\n(.*?)```", text_of(folder), re.S)
    assert code is not None
    assert code[1].count("\n") == 3
    exec(code[1], {})
    assert "'.'" in capsys.readouterr().out


def test_folders_without_card(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a model"):
        write_card(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is not valid JSON"):
        write_card(tmp_path)


# -- the command card ------------------------------------------------------------------------------------


def test_example_is_predicted_again_for_a_new_model(folder: Path, tmp_path: Path) -> None:
    save_model(folder)
    sentence = ConlluSentence.from_words(["w1", "w5", "w3"], columns={"upos": ["NOUN", "VERB", "ADJ"]})
    write_conllu([sentence], tmp_path / "example.conllu")
    options = ["--language", "it", "--license", "My Own Terms", "--title", "Mine"]
    assert card(folder, *options, "--example", tmp_path / "example.conllu") == 0
    (tmp_path / "example.conllu").unlink()
    for _ in range(2):
        check_content(folder)
        data = load(folder).data
        assert (data.language, data.license, data.license_name) == (["it"], "other", "my-own-terms")
        assert "# Mine\n" in text_of(folder)
        assert "w5" in (folder / "tree.svg").read_text()
        assert "A sentence chosen by the author, annotated by this model." in text_of(folder)
        write_card(folder)
    old = json.loads((folder / "run/card-example.json").read_text())
    save_model(folder, seed=3)
    write_card(folder)
    assert json.loads((folder / "run/card-example.json").read_text())["predicted_by"] != old["predicted_by"]


def test_a_broken_example_is_named(folder: Path) -> None:
    save_model(folder)
    (folder / "run").mkdir()
    (folder / "run/card-example.json").write_text('{"words": 3}')
    with pytest.raises(ValueError, match=r"card-example.json: words is '3'; expected list"):
        write_card(folder)


def test_parser_requires_tags_for_its_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(folder)
    assert card(folder, "--example", "w1 w2") == 1
    assert "reads UPOS tags: pass --example a CoNLL-U file" in capsys.readouterr().err
    assert not (folder / "run").exists()
    save_model(folder / "tagger", "tagger")
    assert card(folder, "--example", "w1 w2") == 0
    assert "UPOS tags are predicted by the tagger in `tagger/`" in text_of(folder)
    assert '({"words": ["w1", "w2"]})' in text_of(folder)


def test_options_are_remembered(folder: Path) -> None:
    save_model(folder)
    options = ("--license", "cc-by-4.0", "--license-link", "https://x.org", "--title", "Mine")
    assert card(folder, "--language", "it", *options) == 0
    assert card(folder, "--language", "fr") == 0
    data = load(folder).data
    assert (data.language, data.license, data.license_link) == (["fr"], "cc-by-4.0", "https://x.org")
    assert "# Mine\n" in text_of(folder)
    assert card(folder, "--license", "mit") == 0
    assert (load(folder).data.license, load(folder).data.license_link) == ("mit", None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--language", "Italian"], "Italian is it"),
        (["--language", "x1"], "not an ISO 639 code"),
        (["--example", " "], "the example is empty"),
    ],
)
def test_invalid_options(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(folder)
    assert card(folder, *words) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (folder / "run").exists()


def test_read_example(tmp_path: Path) -> None:
    assert read_example("a  b").words == ["a", "b"]
    (tmp_path / "empty.conllu").write_text("")
    with pytest.raises(ValueError, match="is empty"):
        read_example(str(tmp_path / "empty.conllu"))


@pytest.mark.parametrize(
    ("licence", "fields"),
    [
        (None, {"license": "unknown"}),
        ("CC-BY-SA-4.0", {"license": "cc-by-sa-4.0"}),
        ("Acme: terms!", {"license": "other", "license_name": "acme-terms"}),
    ],
)
def test_licence_fields(licence: str | None, fields: dict[str, str]) -> None:
    assert licence_fields(licence) == fields
    assert licence_fields(licence, "https://x.org") == fields | {"license_link": "https://x.org"}
    assert fields["license"] in LICENCES


def test_language_codes() -> None:
    check_languages(["it", "hsb", "multilingual"])


# -- unusual names ---------------------------------------------------------------------------------------

UNUSUAL = [
    "a|b",
    "`tick` ``two``",
    "<!-- hf_xst:end training --> <b>x</b>",
    "*x* _y_ [z](w)",
    "a: b # c\n---\nlanguage: en",
    "no",
    "{{ facts }} {% x %}",
    "عربي",
]


@pytest.mark.parametrize("unusual", UNUSUAL)
@pytest.mark.parametrize("name", ["parser-transferred", "tagger-source", "tagger-charts"])
def test_unusual_names_break_neither_tables_nor_marks(name: str, unusual: str, folder: Path) -> None:
    write_card(copy_recorded(name, folder.with_name("plain")))
    plain = load(folder.with_name("plain"))
    copy_recorded(name, folder)
    edit_record(folder / "run/card-config.yaml", title=unusual, text_license=unusual, license=unusual)
    path = folder / ("provenance.json" if name.endswith("charts") else "run/results.json")
    content = json.loads(path.read_text())
    charts = content.get("charts", content)
    if "sources" in charts:
        charts["sources"][0] |= {"name": unusual, "revision": unusual, "labels_not_in_charts": [unusual]}
        charts["vectors"]["name"] = unusual
    else:
        content["treebanks"][0]["name"] = unusual
    path.write_text(json.dumps(content))
    write_card(folder)
    written = load(folder)
    assert text_of(folder) == str(written)
    marks = re.compile(r"<!-- hf_xst:(?:begin|end) \w+ -->")
    assert marks.findall(written.text) == marks.findall(plain.text)
    rows = [line.replace("\\|", "").count("|") for line in written.text.splitlines() if line.startswith("|")]
    assert rows == [line.count("|") for line in plain.text.splitlines() if line.startswith("|")]
    assert "<b>" not in re.sub(r"`+[^`]+`+", "", written.text)
    write_card(folder)
    assert text_of(folder) == str(written)

"""Cards say what was recorded, in forms that the Hub's client reads back, and nothing of this machine."""

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
from hf_xst.hub.allowed_files import allowed_files
from hf_xst.hub.card import README, render_card, write_card
from hf_xst.hub.metadata import LICENCES, checked_languages, licence_fields
from hf_xst.hub.pictures import read_example

RECORDED = Path(__file__).parent / "recorded"
RENDERED = Path(__file__).parent.parent.parent / "model_cards"
NAMES = sorted(path.name for path in RECORDED.iterdir())
MODELS = [name for name in NAMES if not name.endswith("charts")]
KEYS = {"las": "LAS without punctuation", "uas": "UAS without punctuation", "accuracy": "accuracy"}
NOTHING = re.compile(r"\bNone\b|\bnull\b|\b[nN]a[nN]\b|\binf\b|Undefined|\{\{|\{%")
ABSOLUTE = re.compile(r"(?<![\w.:/<-])/\w+/|[A-Z]:\\|file:/|~/")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "folder"


def copied(name: str, folder: Path) -> Path:
    shutil.copytree(RECORDED / name, folder)
    return folder


def changed(path: Path, **changes: Any) -> None:
    """Change a recorded JSON or YAML file."""
    is_yaml = path.suffix == ".yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8")) | changes
    path.write_text(yaml.safe_dump(content) if is_yaml else json.dumps(content), encoding="utf-8")


def load(folder: Path) -> ModelCard | DatasetCard:
    kind = DatasetCard if (folder / "provenance.json").exists() else ModelCard
    return kind.load(folder / README, ignore_metadata_errors=False)


def check_sane(folder: Path) -> None:
    for path in (folder / README, *folder.glob("*.svg")):
        content = path.read_text(encoding="utf-8")
        shown = re.sub(r"https?://[^\s\"})]+", "", content)
        assert not NOTHING.search(shown), (path.name, NOTHING.search(shown))
        assert not ABSOLUTE.search(re.sub(r"</\w+>|/>", "", shown)), path.name
    pictures = re.findall(r"!\[([^\]]+)\]\(([\w.-]+)\)", (folder / README).read_text(encoding="utf-8"))
    for alternative, name in pictures:
        assert len(alternative) > 10
        assert ElementTree.parse(folder / name).getroot().tag.endswith("svg")


@pytest.mark.parametrize("name", NAMES)
def test_the_rendered_examples_are_current(name: str, folder: Path) -> None:
    write_card(copied(name, folder))
    for path in sorted((RENDERED / name).iterdir()):
        assert (folder / path.name).read_bytes() == path.read_bytes(), (
            f"model_cards/{name}/{path.name} is not what is rendered now: python scripts/render_cards.py"
        )
    assert {path.name for path in (RENDERED / name).iterdir()} == {README, "tree.svg", "table.svg"}
    check_sane(folder)


@pytest.mark.parametrize("name", NAMES)
def test_metadata_reads_back(name: str, folder: Path) -> None:
    written = write_card(copied(name, folder))
    card = load(folder)
    assert str(card) == str(written)
    data = metadata_load(folder / README)
    assert data is not None
    assert data["language"] == ["art"]
    assert data["license"] == "cc0-1.0"
    assert card.data.to_dict() == data
    task = "dependency-parsing" if name.startswith("parser") else "part-of-speech"
    assert {task, "universal_dependencies", "hf_xst"} <= set(data["tags"])
    if name.endswith("charts"):
        assert data["task_categories"] == ["token-classification"]
        assert data["size_categories"] == ["n<1K"]
    else:
        assert (data["library_name"], data["pipeline_tag"]) == ("hf_xst", "token-classification")


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_the_recorded_ones(name: str, folder: Path) -> None:
    write_card(copied(name, folder))
    results = json.loads((folder / "run/results.json").read_text())
    expected = {
        ("dev", KEYS[key]): results["dev"][f"eval_{key}"] for key in KEYS if f"eval_{key}" in results["dev"]
    }
    if (folder / "run/scores.json").exists():
        scores = json.loads((folder / "run/scores.json").read_text())
        expected |= {("test", KEYS[key]): scores[key] for key in KEYS if key in scores}
    found = {
        (result.dataset_split, result.metric_name): result.metric_value
        for result in load(folder).data.eval_results
        if "all words" not in result.metric_name
    }
    assert found == {key: round(value, 2) for key, value in expected.items()}
    text = (folder / README).read_text()
    assert all(f"| {value:.2f} |" in text for value in expected.values())
    assert f"{results.get('train_sentences', results.get('sentences')):,}" in text


def test_a_score_that_is_no_number_is_left_out(folder: Path) -> None:
    copied("tagger-source", folder)
    changed(folder / "run/results.json", dev={"eval_accuracy": math.nan})
    write_card(folder)
    assert load(folder).data.eval_results is None
    assert "No scores are recorded." in (folder / README).read_text().split("## Scores")[1]
    assert "table.svg" not in (folder / README).read_text()


def test_what_charts_were_made_with(folder: Path) -> None:
    copied("parser-charts", folder)
    changed(folder / "provenance.json", weights={"Belori": 0.4, "Kasuni": 0.3, "Mirtash": 0.2, "Ulwedd": 0.1})
    write_card(folder)
    text = (folder / README).read_text()
    for fact in ("| 0.95 |", "| 1e-09 |", "| 0.4 |", "logarithmic opinion pool", "| 4.15 |", "space `demo`"):
        assert fact in text
    assert "weights in the pool were given by name" in text


def test_sources_on_the_hub_are_base_models(folder: Path) -> None:
    copied("tagger-transferred", folder)
    results = json.loads((folder / "run/results.json").read_text())
    sources = results["charts"]["sources"]
    sources[0] |= {"id": "someone/belori", "revision": "v1"}
    sources[2] |= {"id": "else/mirtash"}
    results["charts"]["start"] = "Mirtash"
    changed(folder / "run/results.json", charts=results["charts"])
    (folder / "run/command.txt").write_text(
        "/bin/hf-xst transfer --start else/mirtash@main --charts /data/charts --output x/mine --like a/b\n"
    )
    write_card(folder)
    data = load(folder).data
    assert data.base_model == ["else/mirtash", "someone/belori"]
    assert data.base_model_relation == "finetune"
    text = (folder / README).read_text()
    assert "| `someone/belori` | `v1` |" in text
    assert "hf-xst transfer --start else/mirtash@main --charts charts --output mine --like b\n" in text


STARTS = [
    ("tagger-transferred", {"start": None}, "Training started from `Belori`."),
    ("tagger-transferred", {"start": "mean"}, "Training started from the mean of these source models"),
    (
        "tagger-transferred",
        {"start": "none", "like": "/x/one"},
        "Training started from a fresh model like `one`.",
    ),
    ("tagger-source", {"start": "else/mirtash"}, "| fine-tuned from | `mirtash` |"),
]


def test_an_untold_start_may_be_the_mean(folder: Path) -> None:
    copied("tagger-transferred", folder)
    changed(folder / "run/config.yaml", start=None)
    results = json.loads((folder / "run/results.json").read_text())
    changed(folder / "run/results.json", charts=results["charts"] | {"start_from_mean": True})
    write_card(folder)
    assert "Training started from the mean of these source models" in (folder / README).read_text()


@pytest.mark.parametrize(("name", "told", "expected"), STARTS)
def test_what_training_started_from(folder: Path, name: str, told: dict[str, str], expected: str) -> None:
    copied(name, folder)
    changed(folder / "run/config.yaml", **told)
    write_card(folder)
    assert expected in (folder / README).read_text()


def test_an_encoder_is_told_with_its_revision(folder: Path) -> None:
    copied("parser-source", folder)
    nested = {"model_type": "bert", "num_hidden_layers": 6, "hidden_size": 384}
    changed(folder / "config.json", encoder="pretrained", encoder_config=nested, vector_space=None)
    told = {"name": "small", "id": "org/small", "revision": "abc"}
    changed(folder / "run/results.json", encoder=told)
    write_card(folder)
    assert "the pretrained encoder `org/small`, revision `abc`, frozen" in (folder / README).read_text()
    assert load(folder).data.base_model == ["org/small"]
    changed(folder / "run/results.json", encoder=told | {"id": None})
    write_card(folder)
    assert "encoder `small (6 layers of 384)`, frozen" in (folder / README).read_text()
    assert load(folder).data.base_model is None


def test_a_language_is_told_where_the_treebank_tells_it(folder: Path) -> None:
    copied("parser-source", folder)
    (folder / "run/card-config.yaml").unlink()
    nynorsk = {"name": "UD_Norwegian-Nynorsk", "language": "no", "language_name": "Norwegian"}
    changed(folder / "run/results.json", treebanks=[nynorsk | {"licence": "cc-by-sa-4.0", "new": 1}])
    write_card(folder)
    data = load(folder).data
    assert data.language == ["no"]  # which YAML takes for false where it is not quoted
    assert data.license == "unknown"
    text = (folder / README).read_text()
    assert "# Dependency parser: Norwegian" in text
    assert "is under cc-by-sa-4.0" in text
    assert "**No licence is stated for this model**" in text


@pytest.mark.parametrize("task", ["parser", "tagger", "groups"])
def test_a_model_without_records_says_so_and_invents_nothing(task: str, folder: Path) -> None:
    save_model(folder, task)
    write_card(folder)
    check_sane(folder)
    text = (folder / README).read_text()
    assert "does not record how it was trained" in text
    assert "## Training\n\nNot recorded." in text
    data = load(folder).data
    assert (data.eval_results, data.base_model, data.language, data.license) == (None, None, None, "unknown")
    assert ("dependency-parsing" in data.tags) == (task == "parser")


@pytest.mark.parametrize("task", ["parser", "tagger"])
def test_charts_without_their_run(task: str, folder: Path) -> None:
    save_charts(folder, task)
    write_card(folder, repository="someone/charts")
    check_sane(folder)
    assert "| text | not recorded |" in (folder / README).read_text()
    assert 'load_charts("someone/charts")' in (folder / README).read_text()
    assert {README, "tree.svg", "table.svg"} <= set(allowed_files(folder).files)


@pytest.mark.parametrize("task", ["parser", "tagger"])
def test_the_lines_of_the_card_run(task: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(folder, task)
    write_card(folder, repository=str(folder))
    lines = re.search(r"```python\n(.*?)```", (folder / README).read_text(), re.S)
    assert lines is not None
    assert lines[1].count("\n") == 3
    exec(lines[1], {})
    assert "'.'" in capsys.readouterr().out


# -- what people say ----------------------------------------------------------------------------------


def test_the_command_predicts_an_example_and_remembers_what_it_was_told(folder: Path, tmp_path: Path) -> None:
    save_model(folder)
    sentence = ConlluSentence.from_words(["w1", "w5", "w3"], columns={"upos": ["NOUN", "VERB", "ADJ"]})
    write_conllu([sentence], tmp_path / "example.conllu")
    words = ["card", str(folder), "--language", "it", "--license", "My Own Terms", "--title", "Mine"]
    assert hf_xst_cli.main([*words, "--example", str(tmp_path / "example.conllu")]) == 0
    (tmp_path / "example.conllu").unlink()
    for _ in range(2):
        check_sane(folder)
        data = load(folder).data
        assert (data.language, data.license, data.license_name) == (["it"], "other", "my-own-terms")
        text = (folder / README).read_text()
        assert "# Mine\n" in text
        assert "w5" in (folder / "tree.svg").read_text()
        assert "As this model annotates a sentence that its author has given." in text
        write_card(folder)
    kept = json.loads((folder / "run/card-example.json").read_text())
    save_model(folder, seed=3)  # another model under the same records
    write_card(folder)
    assert json.loads((folder / "run/card-example.json").read_text())["predicted_by"] != kept["predicted_by"]


def test_a_source_that_went_on_from_another_says_so(folder: Path) -> None:
    copied("parser-source", folder)
    changed(folder / "run/config.yaml", start="me/en-parser")
    changed(folder / "run/results.json", start={"id": "me/en-parser", "revision": "v1"})
    write_card(folder)
    (line,) = [line for line in (folder / README).read_text().splitlines() if "was learned from" in line]
    assert "beside what its start, `me/en-parser" in line


def test_a_mean_that_was_not_trained_says_so(folder: Path) -> None:
    copied("parser-transferred", folder)
    write_card(folder)
    text = (folder / README).read_text()
    assert "was trained to put its\nprobability inside of the charts" in text
    changed(folder / "run/config.yaml", start="mean")
    changed(folder / "run/results.json", updates=0)
    write_card(folder)
    text = (folder / README).read_text()
    assert "this model is the mean of their parameters, as it stands" in text
    assert "inside of the charts" not in text


def test_a_parser_needs_tags_for_its_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(folder)
    assert hf_xst_cli.main(["card", str(folder), "--example", "w1 w2"]) == 1
    assert "reads coarse tags (UPOS): give --example as a CoNLL-U file" in capsys.readouterr().err
    assert not (folder / "run").exists()
    save_model(folder / "tagger", "tagger")
    assert hf_xst_cli.main(["card", str(folder), "--example", "w1 w2"]) == 0
    text = (folder / README).read_text()
    assert "Coarse tags come from the tagger in `tagger/`" in text
    assert '({"words": ["w1", "w2"]})' in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--language", "Italian"], "Italian is it"),
        (["--language", "x1"], "expected a code of ISO 639"),
        (["--example", " "], "the example has no words"),
    ],
)
def test_what_the_command_refuses(
    words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(folder)
    assert hf_xst_cli.main(["card", str(folder), *words]) == 1
    shown = capsys.readouterr().err
    assert told in shown
    assert shown.count("\n") == 1
    assert not (folder / "run").exists()


def test_a_folder_with_nothing_has_no_card(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a model"):
        render_card(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json cannot be read"):
        render_card(tmp_path)


def test_examples_are_words_or_a_file(tmp_path: Path) -> None:
    assert read_example("a  b").words == ["a", "b"]
    (tmp_path / "none.conllu").write_text("")
    with pytest.raises(ValueError, match="holds no sentence"):
        read_example(str(tmp_path / "none.conllu"))


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (None, {"license": "unknown"}),
        ("CC-BY-SA-4.0", {"license": "cc-by-sa-4.0"}),
        ("Acme: terms!", {"license": "other", "license_name": "acme-terms"}),
    ],
)
def test_licences(given: str | None, fields: dict[str, str]) -> None:
    assert licence_fields(given) == fields
    assert licence_fields(given, "https://x.org") == fields | {"license_link": "https://x.org"}
    assert fields["license"] in LICENCES


def test_codes_of_languages() -> None:
    assert checked_languages(["it", "hsb", "multilingual"]) == ("it", "hsb", "multilingual")


# -- odd names ----------------------------------------------------------------------------------------

ODD = [
    "a|b",
    "`tick` ``two``",
    "<!-- hf_xst:end training --> <b>x</b>",
    "*x* _y_ [z](w)",
    "a: b # c\n---\nlanguage: en",
    "no",
    "{{ facts }} {% x %}",
    "عربي",
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["parser-transferred", "tagger-source", "tagger-charts"])
def test_odd_names_break_nothing(name: str, odd: str, folder: Path) -> None:
    copied(name, folder)
    plain = write_card(copied(name, folder.with_name("plain")))
    changed(folder / "run/card-config.yaml", title=odd, text_license=odd, license=odd)
    results = folder / ("provenance.json" if name.endswith("charts") else "run/results.json")
    content = json.loads(results.read_text())
    made = content.get("charts", content)
    if "sources" in made:
        made["sources"][0] |= {"name": odd, "revision": odd, "labels_not_in_charts": [odd]}
        made["vectors"]["name"] = odd
    else:
        content["treebanks"][0]["name"] = odd
    results.write_text(json.dumps(content))
    card = write_card(folder)
    assert str(load(folder)) == str(card)
    marks = re.compile(r"<!-- hf_xst:(?:begin|end) \w+ -->")
    assert marks.findall(card.text) == marks.findall(plain.text)
    rows = [line.replace("\\|", "").count("|") for line in card.text.splitlines() if line.startswith("|")]
    assert rows == [line.count("|") for line in plain.text.splitlines() if line.startswith("|")]
    assert "<b>" not in re.sub(r"`+[^`]+`+", "", card.text)
    again = write_card(folder)
    assert str(again) == str(card)


def test_a_card_that_is_made_again_remembers_what_is_not_said_again(folder: Path) -> None:
    save_model(folder)
    told = [
        "--language",
        "it",
        "--license",
        "cc-by-4.0",
        "--license-link",
        "https://x.org",
        "--title",
        "Mine",
    ]
    assert hf_xst_cli.main(["card", str(folder), *told]) == 0
    assert hf_xst_cli.main(["card", str(folder), "--language", "fr"]) == 0
    data = load(folder).data
    assert (data.language, data.license, data.license_link) == (["fr"], "cc-by-4.0", "https://x.org")
    assert "# Mine\n" in (folder / README).read_text()
    assert hf_xst_cli.main(["card", str(folder), "--license", "mit"]) == 0
    assert (load(folder).data.license, load(folder).data.license_link) == ("mit", None)

"""A card that is generated again keeps what people wrote and replaces what was generated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import EvalResult, ModelCard
from hypothesis import given
from hypothesis import strategies as st
from test_cards import RECORDED, card, copy_recorded, edit_record, load, text_of

from helpers.recorded_runs import save_model
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.hub.card import README, write_card
from hf_xst.hub.card_merge import Card

METADATA = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.one_of(st.text("xyz", max_size=2), st.lists(st.text("xyz", min_size=1, max_size=1), unique=True)),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = copy_recorded("parser-transferred", tmp_path / "folder")
    write_card(folder)
    return folder


def edit(folder: Path, *changes: tuple[str, str]) -> None:
    text = text_of(folder)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / README).write_text(text)


def test_added_text_is_kept_anywhere_and_scores_are_replaced(folder: Path) -> None:
    added = [
        "Before all.",
        "Between: ä | `x` <b>",
        "| a | table |\n|---|---|\n| 1 | 2 |",
        "The end.\n\n\n\nReally.",
    ]
    edit(
        folder,
        ("<!-- hf_xst:begin summary -->", f"{added[0]}\n<!-- hf_xst:begin summary -->"),
        ("<!-- hf_xst:end use -->", f"<!-- hf_xst:end use -->\n{added[1]}"),
        ("<!-- hf_xst:begin training -->", f"{added[2]}\n\n<!-- hf_xst:begin training -->"),
        ("<!-- hf_xst:end citation -->", f"<!-- hf_xst:end citation -->\n\n{added[3]}"),
    )
    edit_record(folder / "run/scores.json", las=99.25)
    write_card(folder)
    text = text_of(folder)
    assert all(text.count(each) == 1 for each in added)
    assert "| 99.25 |" in text
    assert "| 55.75 |" not in text
    assert 99.25 in [result.metric_value for result in load(folder).data.eval_results]
    write_card(folder)
    assert text_of(folder) == text


def test_existing_readme_comes_first(folder: Path) -> None:
    (folder / README).write_text("---\nlicense: mit\nthumbnail: x.png\n---\n\n# My parser\n\nBy me.\n")
    write_card(folder)
    merged = load(folder)
    assert merged.text.startswith("\n# My parser\n\nBy me.\n")
    assert "<!-- hf_xst:begin summary -->" in merged.text
    assert (merged.data.license, merged.data.thumbnail) == ("mit", "x.png")
    assert "## Licence\n\nmit\n" in merged.text


def test_readme_without_metadata_gets_metadata(folder: Path) -> None:
    (folder / README).write_text("Just text.\n")
    write_card(folder)
    assert load(folder).data.language == ["art"]
    assert "\nJust text." in f"\n{load(folder).text}"


def test_edited_metadata_is_kept(folder: Path) -> None:
    edit(
        folder,
        ("license: cc0-1.0", "license: apache-2.0"),
        ("- source-free\n", "- source-free\n- mine\n"),
        ("- cross-lingual-transfer\n", ""),
        ("pipeline_tag: token-classification\n", ""),
        ("library_name: hf_xst", "library_name: hf_xst\nco2_eq_emissions: 3\nlicense_link: LICENSE"),
        ("- art\n", "- art\n- mis\n"),
    )
    for _ in range(2):
        write_card(folder)
        data = load(folder).data
        assert (data.license, data.license_link, data.co2_eq_emissions) == ("apache-2.0", "LICENSE", 3)
        assert data.pipeline_tag is None
        assert "mine" in data.tags
        assert "cross-lingual-transfer" not in data.tags
        assert data.language == ["art", "mis"]
        assert "## Licence\n\napache-2.0 (LICENSE)\n" in text_of(folder)
        assert "an artificial language and the language mis" in text_of(folder)


def test_added_and_corrected_results_are_kept(folder: Path) -> None:
    added = EvalResult("token-classification", "x/y", "Their test", "las", 12.5, metric_name="LAS")
    edited = ModelCard.load(folder / README)
    edited.data.eval_results[0].metric_value = 1.25
    edited.data.eval_results.append(added)
    edited.save(folder / README)
    edit_record(folder / "run/results.json", dev={"eval_las": 77.0, "eval_uas": 78.0})
    write_card(folder)
    values = [result.metric_value for result in load(folder).data.eval_results]
    assert {12.5, 1.25, 78.0} <= set(values)
    assert 77.0 not in values  # corrected by a person


def test_options_of_the_command_take_precedence_over_the_card(folder: Path) -> None:
    edit(folder, ("license: cc0-1.0", "license: mit"))
    write_card(folder)
    assert load(folder).data.license == "mit"
    assert card(folder, "--license", "apache-2.0", "--language", "it") == 0
    assert (load(folder).data.license, load(folder).data.language) == ("apache-2.0", ["it"])
    write_card(folder)
    assert load(folder).data.license == "apache-2.0"


def test_deleted_section_stays_deleted(folder: Path) -> None:
    before, _, rest = text_of(folder).partition("<!-- hf_xst:begin citation")
    (folder / README).write_text(before + rest.partition("<!-- hf_xst:end citation -->")[2])
    for _ in range(2):
        write_card(folder)
        assert "## Citation" not in text_of(folder)


def test_windows_line_ends(folder: Path) -> None:
    text = text_of(folder)
    (folder / README).write_bytes(text.replace("\n", "\r\n").encode())
    write_card(folder)
    assert text_of(folder) == text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("library_name: hf_xst", "library_name: [", "invalid metadata between the --- lines"),
        ("library_name: hf_xst", "1: x", "a key is not a string"),
        (
            "library_name: hf_xst",
            "library_name: &x hf_xst\nother: [*x, *x]",
            r"contains YAML aliases",
        ),
        ("<!-- hf_xst:end use -->", "", "hf_xst:begin use --> is not paired"),
        ("<!-- hf_xst:begin use -->\n", "", "hf_xst:end use --> is not paired"),
        ('<!-- hf_xst:generated {"metadata"', '<!-- hf_xst:generated {"metadata', "is damaged"),
    ],
)
def test_broken_cards_raise_and_stay_unchanged(folder: Path, old: str, new: str, message: str) -> None:
    edit(folder, (old, new))
    broken = (folder / README).read_bytes()
    with pytest.raises(ValueError, match=message) as error:
        write_card(folder)
    assert "\n" not in str(error.value)
    assert "README.md" in str(error.value)
    assert (folder / README).read_bytes() == broken


@pytest.mark.parametrize(
    "text",
    [
        "<!-- hf_xst:generated {" * 100_000,
        "<!-- hf_xst:begin use -->\n<!-- hf_xst:end use -->\n" * 100_000,
        "<!-- hf_xst:begin use -->\n" * 100_000 + "<!-- hf_xst:end use -->\n",
        "\n" * 1_000_000 + "The end.",
    ],
)
def test_large_cards_are_merged_in_linear_time(text: str, tmp_path: Path) -> None:
    (tmp_path / README).write_text(text)
    card = Card.read(tmp_path / README)
    use = "<!-- hf_xst:begin use -->\nNew.\n<!-- hf_xst:end use -->"
    assert use in card.merge_sections({"use": use, "training": use.replace("use", "training")})
    assert card.edits() == {line.strip() for line in text.splitlines() if "begin" not in line} - {
        "",
        "<!-- hf_xst:end use -->",
    }


def test_many_unpaired_marks_are_an_error_in_linear_time(tmp_path: Path) -> None:
    (tmp_path / README).write_text("".join(f"<!-- hf_xst:begin s{n} -->\n" for n in range(100_000)))
    with pytest.raises(ValueError, match=r"README\.md: <!-- hf_xst:begin s0 --> is not paired"):
        Card.read(tmp_path / README)


# -- models from the Hub: the card without the run -------------------------------------------------------


@pytest.fixture
def pulled(tmp_path: Path) -> Path:
    """A model with its card, as downloaded from the Hub."""
    folder = tmp_path / "pulled"
    save_model(folder)
    shutil.copytree(RECORDED / "parser-transferred" / "run", folder / "run")
    write_card(folder)
    shutil.rmtree(folder / "run")
    return folder


def test_pulled_card_keeps_facts_that_its_folder_lacks(pulled: Path) -> None:
    text = text_of(pulled)
    write_card(pulled)
    assert text_of(pulled) == text
    assert "charts of 300 sentences" in text


def test_new_scores_are_added_to_a_pulled_card(pulled: Path) -> None:
    (pulled / "run").mkdir()
    scores = {"sentences": 7, "treebanks": [{"name": "UD_Faroese-OFT"}]}
    (pulled / "run/scores.json").write_text(json.dumps(scores | {"las": 31.25, "uas": 40.0}))
    write_card(pulled)
    assert "| `UD_Faroese-OFT` | `test` | 7 | LAS without punctuation | 31.25 |" in text_of(pulled)
    assert "charts of 300 sentences" in text_of(pulled)
    data = load(pulled).data
    assert [result.metric_value for result in data.eval_results] == [31.25, 40.0]
    assert (data.language, data.license) == (["art"], "cc0-1.0")


def test_options_change_a_pulled_card(pulled: Path, tmp_path: Path) -> None:
    sentence = ConlluSentence.from_words(["w1", "w5"], columns={"upos": ["NOUN", "VERB"]})
    write_conllu([sentence], tmp_path / "one.conllu")
    assert card(pulled, "--license", "Own Terms", "--example", tmp_path / "one.conllu") == 0
    assert "charts of 300 sentences" in text_of(pulled)
    assert "## Licence\n\nown-terms" in text_of(pulled)
    assert "Dependency tree of w1 w5" in text_of(pulled)
    assert "w5" in (pulled / "tree.svg").read_text()
    assert card(pulled, "--license", "mit") == 0
    data = load(pulled).data
    assert (data.license, data.license_name, data.language) == ("mit", None, ["art"])


def test_pulled_card_of_another_model_is_replaced(pulled: Path) -> None:
    save_model(pulled, seed=5)
    write_card(pulled)
    assert "How it was trained is not recorded." in text_of(pulled)
    assert "charts of 300 sentences" not in text_of(pulled)
    assert load(pulled).data.eval_results is None


# -- laws of merging -------------------------------------------------------------------------------------


def existing_card(metadata: dict[str, object], generated: dict[str, object]) -> Card:
    """Return a card with this metadata, where other metadata was generated."""
    record = Card().record(generated, [], None)
    return Card(dict(metadata), generated=json.loads(record[len("<!-- hf_xst:generated ") : -5])["metadata"])


@given(METADATA, METADATA)
def test_unedited_metadata_is_replaced(first: dict, second: dict) -> None:
    first = {key: value for key, value in first.items() if value != []}
    second = {key: value for key, value in second.items() if value != []}
    assert existing_card(first, first).merge_metadata(second) == second


@given(METADATA, METADATA, METADATA)
def test_edits_of_metadata_are_kept(edited: dict, first: dict, second: dict) -> None:
    merged = existing_card(edited, first).merge_metadata(second)
    for key, value in edited.items():
        if all(isinstance(each, list) for each in (value, first.get(key), second.get(key, []))):
            assert set(value) - set(first[key]) <= set(merged.get(key, []))
            assert not (set(first[key]) - set(value)) & set(merged.get(key, []))
        elif value != first.get(key) and value != []:
            assert merged[key] == value

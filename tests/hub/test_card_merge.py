"""A card that is made again keeps what people have written, and renews what it has generated itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import EvalResult, ModelCard
from hypothesis import given
from hypothesis import strategies as st
from test_cards import RECORDED, changed, copied, load

import hf_xst_cli
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
    folder = copied("parser-transferred", tmp_path / "folder")
    write_card(folder)
    return folder


def edit(folder: Path, *changes: tuple[str, str]) -> None:
    text = (folder / README).read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / README).write_text(text)


def test_twice_is_once(folder: Path) -> None:
    first = (folder / README).read_bytes()
    write_card(folder)
    assert (folder / README).read_bytes() == first


def test_own_text_stays_wherever_it_stands_and_scores_are_renewed(folder: Path) -> None:
    own = [
        "Before all.",
        "Between: ä | `x` <b>",
        "| a | table |\n|---|---|\n| 1 | 2 |",
        "The end.\n\n\n\nReally.",
    ]
    edit(
        folder,
        ("<!-- hf_xst:begin summary -->", f"{own[0]}\n<!-- hf_xst:begin summary -->"),
        ("<!-- hf_xst:end use -->", f"<!-- hf_xst:end use -->\n{own[1]}"),
        ("<!-- hf_xst:begin training -->", f"{own[2]}\n\n<!-- hf_xst:begin training -->"),
        ("<!-- hf_xst:end citation -->", f"<!-- hf_xst:end citation -->\n\n{own[3]}"),
    )
    changed(folder / "run/scores.json", las=99.25)
    write_card(folder)
    text = (folder / README).read_text()
    assert all(text.count(each) == 1 for each in own)
    assert "| 99.25 |" in text
    assert "| 55.75 |" not in text
    assert 99.25 in [result.metric_value for result in load(folder).data.eval_results]
    first = (folder / README).read_bytes()
    write_card(folder)
    assert (folder / README).read_bytes() == first


def test_a_readme_of_ones_own_comes_first(folder: Path) -> None:
    (folder / README).write_text("---\nlicense: mit\nthumbnail: x.png\n---\n\n# My parser\n\nBy me.\n")
    write_card(folder)
    card = load(folder)
    assert card.text.startswith("\n# My parser\n\nBy me.\n")
    assert "<!-- hf_xst:begin summary -->" in card.text
    assert (card.data.license, card.data.thumbnail) == ("mit", "x.png")
    assert "## Licence\n\nmit\n" in card.text


def test_a_readme_without_metadata_gets_some(folder: Path) -> None:
    (folder / README).write_text("Just text.\n")
    write_card(folder)
    assert load(folder).data.language == ["art"]
    assert "\nJust text." in f"\n{load(folder).text}"


def test_own_metadata_stays(folder: Path) -> None:
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
        text = (folder / README).read_text()
        assert "## Licence\n\napache-2.0 (LICENSE)\n" in text
        assert "an artificial language and the language mis" in text


def test_results_that_others_have_added_stay(folder: Path) -> None:
    other = EvalResult("token-classification", "x/y", "Their test", "las", 12.5, metric_name="LAS")
    card = ModelCard.load(folder / README)
    edited = card.data.eval_results[0]
    edited.metric_value = 1.25
    card.data.eval_results.append(other)
    card.save(folder / README)
    changed(folder / "run/results.json", dev={"eval_las": 77.0, "eval_uas": 78.0})
    write_card(folder)
    values = [result.metric_value for result in load(folder).data.eval_results]
    assert {12.5, 1.25, 78.0} <= set(values)
    assert 77.0 not in values  # somebody has corrected that one


def test_what_the_command_says_now_comes_first(folder: Path) -> None:
    edit(folder, ("license: cc0-1.0", "license: mit"))
    write_card(folder)
    assert load(folder).data.license == "mit"
    assert hf_xst_cli.main(["card", str(folder), "--license", "apache-2.0", "--language", "it"]) == 0
    assert (load(folder).data.license, load(folder).data.language) == ("apache-2.0", ["it"])
    write_card(folder)
    assert load(folder).data.license == "apache-2.0"


def test_a_section_that_was_taken_out_stays_out(folder: Path) -> None:
    text = (folder / README).read_text()
    start, end = text.index("<!-- hf_xst:begin citation"), text.index("<!-- hf_xst:end citation -->")
    (folder / README).write_text(text[:start] + text[end + len("<!-- hf_xst:end citation -->") :])
    for _ in range(2):
        write_card(folder)
        assert "## Citation" not in (folder / README).read_text()


def test_windows_line_ends_are_read(folder: Path) -> None:
    first = (folder / README).read_text()
    (folder / README).write_bytes(first.replace("\n", "\r\n").encode())
    write_card(folder)
    assert (folder / README).read_text() == first


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("library_name: hf_xst", "library_name: [", "the metadata between the lines of ---"),
        ("library_name: hf_xst", "1: x", "a key is no text"),
        ("<!-- hf_xst:end use -->", "", "the mark hf_xst:begin use stands alone"),
        ("<!-- hf_xst:begin use -->\n", "", "the mark hf_xst:end use stands alone"),
        ('<!-- hf_xst:generated {"metadata"', '<!-- hf_xst:generated {"metadata', "is damaged"),
    ],
)
def test_broken_cards_are_told_and_left_alone(folder: Path, old: str, new: str, told: str) -> None:
    edit(folder, (old, new))
    broken = (folder / README).read_bytes()
    with pytest.raises(ValueError, match=told) as problem:
        write_card(folder)
    assert "\n" not in str(problem.value)
    assert "README.md" in str(problem.value)
    assert (folder / README).read_bytes() == broken


# -- pulled from the Hub: the card, without the run ------------------------------------------------------


@pytest.fixture
def pulled(tmp_path: Path) -> Path:
    """A model with its card, as the Hub gives it."""
    made = tmp_path / "made"
    save_model(made)
    shutil.copytree(RECORDED / "parser-transferred" / "run", made / "run")
    write_card(made)
    shutil.rmtree(made / "run")
    return made


def test_a_pulled_card_keeps_what_its_folder_does_not_know(pulled: Path) -> None:
    first = (pulled / README).read_text()
    write_card(pulled)
    assert (pulled / README).read_text() == first
    assert "Charts of 300 sentences" in first


def test_scores_found_later_join_a_pulled_card(pulled: Path) -> None:
    (pulled / "run").mkdir()
    scores = {"data": "x test: 7 of 7 sentences kept, 0 faulty", "treebanks": [{"name": "UD_Faroese-OFT"}]}
    (pulled / "run/scores.json").write_text(json.dumps(scores | {"las": 31.25, "uas": 40.0}))
    write_card(pulled)
    text = (pulled / README).read_text()
    assert "| `UD_Faroese-OFT` | `test` | 7 | LAS without punctuation | 31.25 |" in text
    assert "Charts of 300 sentences" in text
    data = load(pulled).data
    assert [result.metric_value for result in data.eval_results] == [31.25, 40.0]
    assert data.language == ["art"]
    assert data.license == "cc0-1.0"


def test_what_is_said_of_a_pulled_model_joins_its_card(pulled: Path, tmp_path: Path) -> None:
    sentence = ConlluSentence.from_words(["w1", "w5"], columns={"upos": ["NOUN", "VERB"]})
    write_conllu([sentence], tmp_path / "one.conllu")
    words = ["card", str(pulled), "--license", "Own Terms", "--example", str(tmp_path / "one.conllu")]
    assert hf_xst_cli.main(words) == 0
    text = (pulled / README).read_text()
    assert "Charts of 300 sentences" in text
    assert "## Licence\n\nown-terms" in text
    assert "Dependency tree of w1 w5" in text
    assert "w5" in (pulled / "tree.svg").read_text()
    assert hf_xst_cli.main(["card", str(pulled), "--license", "mit"]) == 0
    data = load(pulled).data
    assert (data.license, data.license_name, data.language) == ("mit", None, ["art"])


def test_a_pulled_card_of_another_model_is_made_anew(pulled: Path) -> None:
    save_model(pulled, seed=5)
    write_card(pulled)
    text = (pulled / README).read_text()
    assert "does not record how it was trained" in text
    assert "Charts of 300 sentences" not in text
    assert load(pulled).data.eval_results is None


# -- laws -----------------------------------------------------------------------------------------------


def read_back(metadata: dict[str, object], generated: dict[str, object]) -> Card:
    record = Card().record(generated, [], None)
    told = json.loads(record.split("generated ")[1].split(" -->")[0])
    return Card(dict(metadata), generated=told["metadata"])


@given(METADATA, METADATA)
def test_what_nobody_touched_becomes_what_is_generated_now(first: dict, second: dict) -> None:
    shown = {key: value for key, value in first.items() if value != []}
    second = {key: value for key, value in second.items() if value != []}
    assert read_back(shown, shown).renewed(second).keys() <= second.keys()
    fresh = {key: value for key, value in second.items() if key in shown or key not in first}
    assert read_back(shown, shown).renewed(second).items() >= fresh.items()


@given(METADATA, METADATA, METADATA)
def test_what_somebody_wrote_stays(own: dict, first: dict, second: dict) -> None:
    found = read_back(own, first).renewed(second)
    for key, value in own.items():
        if (
            isinstance(value, list)
            and isinstance(first.get(key), list)
            and isinstance(second.get(key, []), list)
        ):
            assert set(value) - set(first[key]) <= set(found.get(key, []))
            assert not (set(first[key]) - set(value)) & set(found.get(key, []))
        elif value != first.get(key) and value != []:
            assert found[key] == value

"""The command learn-weights on tiny models: what is drawn, what is found, what is written, who reads it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import hf_xst_cli
from helpers.small_models import KINDS, MARKS, gold, model_of, unlabelled, vectors
from hf_xst.charts import learn_weights, log_opinion_pool, stacked_log_marginals
from hf_xst.charts.dataset import load_charts
from hf_xst.commands.learn_weights import (
    LearnWeightsArguments,
    Lesson,
    draw_sentences,
)
from hf_xst.commands.learn_weights import (
    learn_weights as learn_command,
)
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.sources.agreement import read_weights, write_weights
from hf_xst.sources.loading import weights_digest
from hf_xst.sources.pool import SourcePool, joint_names

LENGTHS = (3, 5, 1, 4, 2, 6, 3, 2, 5, 4)


def pool_of(kind: str, count: int = 3) -> SourcePool:
    models = {f"source{seed}": model_of(kind, seed) for seed in range(count)}
    return SourcePool(models, joint_names(list(models.values())))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("floor", [1e-9, 0.0])
def test_the_weights_are_optimal_over_all_gold_groups(kind, floor):
    pool, rows = pool_of(kind), gold((4, 4, 4, 4, 4))  # one length, so that one padded batch can be compared
    lesson = Lesson.read(pool, list(rows), list(rows), floor, batch_words=9)
    found = lesson.learn()
    distributions = pool.distributions(list(rows))
    right = pool.gold_candidates(list(rows), distributions[0])
    marginals, valid = stacked_log_marginals(distributions), distributions[0].valid
    best = learn_weights(marginals.double(), right, floor, valid=valid)
    assert list(found["weights"].values()) == pytest.approx(best.tolist(), abs=1e-5)
    assert found["left_out"] == 0

    def per_word(weights: list[float]) -> float:
        pooled = log_opinion_pool(marginals.double(), weights, floor, valid=valid)
        chosen = pooled.gather(-1, right.clamp(min=0)[..., None])[..., 0]
        return -chosen[right >= 0].sum().item() / 20

    nll = found["nll"]
    assert nll["uniform"] == pytest.approx(per_word([1.0, 1.0, 1.0]), rel=1e-6)
    assert nll["learned"] == pytest.approx(per_word(list(found["weights"].values())), rel=1e-6)
    for place, name in enumerate(found["weights"]):
        assert nll["alone"][name] == pytest.approx(per_word(np.eye(3)[place].tolist()), rel=1e-6)
    assert nll["learned"] <= min(nll["uniform"], *nll["alone"].values()) + 1e-9


def test_batches_do_not_matter():
    pool, rows = pool_of("parser"), list(gold(LENGTHS))
    one, many = (Lesson.read(pool, rows, rows, batch_words=words).learn() for words in (1000, 5))
    assert one["nll"]["learned"] == pytest.approx(many["nll"]["learned"], rel=1e-6)
    assert list(one["weights"].values()) == pytest.approx(list(many["weights"].values()), abs=1e-4)


def test_labels_that_no_source_knows_do_not_count():
    pool = pool_of("groups")
    rows = [dict(row) for row in gold((3, 2))]
    rows[0]["mark"] = ["other", *rows[0]["mark"][1:]]
    assert "other" not in MARKS
    found = Lesson.read(pool, rows, rows).learn()
    assert (found["groups"], found["left_out"], found["words"]) == (4, 1, 5)


def test_a_source_that_lacks_a_label_excludes_it_without_a_floor():
    models = {"whole": model_of("groups"), "part": model_of("groups", 1, labels=MARKS[:2])}
    pool, rows = SourcePool(models, MARKS), list(gold(LENGTHS))
    with pytest.raises(ValueError, match=r"probability 0 in \(s\d, group \d\).*use a floor such as 1e-9"):
        Lesson.read(pool, rows, rows, 0.0)
    assert Lesson.read(pool, rows, rows).learn()["weights"]["part"] < 1


def test_drawing_is_seeded_and_without_replacement():
    drawn = draw_sentences(100, 50, seed=1)
    assert len(set(drawn)) == 50
    assert set(drawn) <= set(range(100))
    assert drawn == sorted(drawn) == draw_sentences(100, 50, seed=1) != draw_sentences(100, 50, seed=2)
    with pytest.raises(ValueError, match="at least one labelled sentence"):
        draw_sentences(100, 0, seed=1)


def test_all_sentences_are_used_if_there_are_too_few(capsys):
    assert draw_sentences(3, 50, seed=0) == [0, 1, 2]
    assert "50 sentences were requested, but there are 3; all of them are used" in capsys.readouterr().err


def test_weights_files_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "weights.yaml"
    weights = {"no": 1e-7, "1": 0.5, "nød": 1 / 3, "x": 0.0}
    write_weights(path, weights)
    assert read_weights(str(path)) == weights
    path.write_text("no: 0.25\nweights: 3e-1\n")
    assert read_weights(str(path)) == {"no": 0.25, "weights": 0.3}
    path.write_text("weights:\n  no: 1\n  off: 2\n")
    assert read_weights(str(path)) == {"no": 1.0, "off": 2.0}
    path.write_text("no: 1\noff: 2\nno: 3\n")
    with pytest.raises(ValueError, match=r"weights\.yaml: expected .* \(it holds no more than once\)"):
        read_weights(str(path))


def test_frozen_vectors_are_exchanged_and_trained_ones_belong_to_the_model():
    model = model_of("parser")
    before = weights_digest(model)
    model.replace_word_vectors(vectors(seed=3))
    assert weights_digest(model) == before
    model.train_word_vectors()
    trained = weights_digest(model)
    assert trained != before
    model.replace_word_vectors(vectors(seed=4))
    assert weights_digest(model) != trained


# -- files ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled file, and two saved models of each kind."""
    folder = tmp_path_factory.mktemp("world")
    rows = [
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: row[name] for name in ("upos", "head", "deprel")},
        )
        for row in gold((*LENGTHS, 61))
    ]
    write_conllu(rows, folder / "gold.conllu")
    for kind in ("parser", "tagger"):
        for seed in (1, 2):
            model_of(kind, seed).save_pretrained(folder / f"{kind}{seed}")
    return folder


def words_of(world: Path, kind: str) -> list[str]:
    sources = ["--sources", f"no={world}/{kind}1", f"en={world}/{kind}2"]
    return [*sources, "--treebank", f"train={world}/gold.conllu"]


def run(*words: object) -> int:
    return hf_xst_cli.main([str(word) for word in words])


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_the_command_writes_weights_that_others_read(world, tmp_path, kind, capsys):
    given = [*words_of(world, kind), "--sentences", 6, "--seed", 3]
    assert run("learn-weights", *given, "--output", tmp_path / "w") == 0
    told = capsys.readouterr().err
    assert "10 of 11 sentences kept" in told
    weights = read_weights(str(tmp_path / "w" / "weights.yaml"))
    results = json.loads((tmp_path / "w" / "run" / "results.json").read_text())
    assert weights == results["weights"]
    assert set(weights) == {"no", "en"}
    assert sum(weights.values()) == pytest.approx(1)
    assert (results["sentences"], len(set(results["sent_ids"]))) == (6, 6)
    assert (results["floor"], results["seed"]) == (1e-9, 3)
    assert set(results["nll"]) == {"uniform", "learned", "alone"}
    charts = ["build-charts", *words_of(world, kind), "--weights", tmp_path / "w" / "weights.yaml"]
    assert run(*charts, "--output", tmp_path / "charts") == 0
    assert load_charts(str(tmp_path / "charts"))[1].settings.weights == weights
    voted = ["vote", *words_of(world, kind), "--split", "train", "--output", tmp_path / "vote"]
    assert run(*voted, "--rule", "pool", "--weights", tmp_path / "w" / "weights.yaml") == 0


def test_a_tagger_never_replaces_the_gold_that_weights_are_learned_from(world, tmp_path):
    """A tagger's own annotation takes the place of the input, never that of what is learned from."""
    given = {
        "sources": [f"a={world}/tagger1", f"b={world}/tagger2"],
        "treebank": f"train={world}/gold.conllu",
    }
    plain = learn_command(LearnWeightsArguments(output=str(tmp_path / "a"), **given))
    tagged = learn_command(
        LearnWeightsArguments(output=str(tmp_path / "b"), tagger=f"{world}/tagger1", **given)
    )
    assert tagged["nll"] == plain["nll"]


ERRORS = [
    ("--sentences 0", "at least one labelled sentence is required"),
    ("--max-length 1", "no sentence is left"),
    ("--split dev", "no split dev"),
]


@pytest.mark.parametrize(("words", "message"), ERRORS)
def test_errors_teach(world, tmp_path, capsys, words, message):
    given = [*words_of(world, "parser"), *words.split()]
    assert run("learn-weights", *given, "--output", tmp_path / "w") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "w" / "weights.yaml").exists()


def test_gold_is_required(world, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run("learn-weights", "--sources", world / "parser1", "--output", tmp_path / "w")
    assert "the following arguments are required: --treebank" in capsys.readouterr().err
    pool, rows = pool_of("parser"), list(unlabelled(gold((2,))))
    with pytest.raises(ValueError, match="sentence s0 has no column head and deprel"):
        Lesson.read(pool, rows, rows)


def test_the_source_that_was_trained_gets_the_weight():
    rows = gold((4,) * 12)
    trained = model_of("groups", 7)
    optimiser = torch.optim.Adam(trained.parameters(), lr=0.05)
    for _ in range(40):
        loss = trained(**trained.featurise(list(rows)), labels=trained.encode_gold(list(rows))).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    models = {"poor": model_of("groups", 1), "good": trained, "worse": model_of("groups", 2)}
    found = Lesson.read(SourcePool(models, MARKS), list(rows), list(rows)).learn()
    assert found["weights"]["good"] > 0.8
    assert found["nll"]["learned"] < found["nll"]["uniform"] / 2
    assert min(found["nll"]["alone"], key=found["nll"]["alone"].get) == "good"

"""Combine sources by the rules that only studies use, and score all of them on a target."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import ensembles
import numpy as np
import other_weights
import pytest
import torch
from as_files import as_files, word_probabilities
from configuration import FROM_LABELS, RULES
from ensembles import by_group, right_words, run_sources, true_labels
from grouped_weights import GroupedWeights
from truth import infer_truth

from helpers.small_models import MARKS, gold, model_of, unlabelled
from helpers.tiny_models import tagger, tagger_config
from hf_xst import CrfTagger
from hf_xst.charts import log_opinion_pool, stacked_log_marginals
from hf_xst.charts.chart import FLOOR
from hf_xst.commands.learn_weights import LearnWeightsArguments
from hf_xst.commands.vote import combine
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.metrics import score
from hf_xst.models.running import predict_rows
from hf_xst.sources.pool import SourcePool, joint_names

ROWS = unlabelled(gold((3, 5, 1, 4, 2, 6)))


def pool_of(kind: str, count: int = 3, **changes: Any) -> SourcePool:
    models = {f"source{seed}": model_of(kind, seed, **changes) for seed in range(count)}
    return SourcePool(models, joint_names(list(models.values())))


@pytest.mark.parametrize("kind", ["groups", "tagger", "parser"])
def test_pools_with_weights_by_group_are_decoded(kind):
    pool = pool_of(kind)
    weights = GroupedWeights(np.array([[0.5, 0.3, 0.0], [0.0, 1.0, -0.5], [-1.0, 0.0, 0.7]]))
    weights = GroupedWeights.from_names(weights.by_name(pool.source_names), pool.source_names)
    predictions = [found.combined[0] for found in run_sources(pool, ROWS, [by_group(weights)])]
    for row, predicted in zip(ROWS, predictions, strict=True):
        distributions = pool.distributions([row])
        marginals, first = stacked_log_marginals(distributions), distributions[0]
        pooled = log_opinion_pool(marginals, weights.weights(marginals), FLOOR, valid=first.valid)
        best = first.with_scores(first.part_view(pooled)).best()
        lengths = torch.tensor([len(row["words"])])
        assert [predicted] == pool.kind.decode(best, lengths, pool.names)


@pytest.mark.parametrize("kind", ["tagger", "parser"])
def test_files_of_predictions_vote_as_their_sources_do(kind, tmp_path):
    # Without root, which best trees force: a file does not know what else an improbable root could have been.
    pool = pool_of(kind, **({"labels": ["amod", "obj", "nsubj"]} if kind == "parser" else {}))
    found = [each.predictions for each in run_sources(pool, ROWS, [])]
    files = as_files(pool, ROWS, found, tmp_path, stated=False)
    assert list(combine(files, ROWS)) == list(combine(pool, ROWS))
    stated = as_files(pool, ROWS, found, tmp_path, stated=True)
    for index, file in enumerate(stated.sources):
        read = file.distribution(ROWS)
        best = pool.sources[index].distribution(ROWS).best()
        probabilities = word_probabilities(read, best, read.group_view(read.marginals())).tolist()
        for row, sentence, values in zip(ROWS, found, probabilities, strict=True):
            count = len(row["words"])
            assert values[:count] == pytest.approx(sentence[index].probabilities[:count], abs=2e-4)


@pytest.mark.parametrize("kind", ["groups", "tagger"])
def test_truth_is_inferred_over_the_words_of_all_sentences(kind):
    pool = pool_of(kind)
    (column,) = pool.kind.columns
    answers = [list(predict_rows(source.source, ROWS)) for source in pool.sources]
    flat = [[label for columns in rows for label in columns[column]] for rows in answers]
    names = sorted({label for labels in flat for label in labels})
    predictions = torch.tensor([[names.index(label) for label in labels] for labels in flat])
    expected = [names[index] for index in infer_truth(predictions, len(names)).argmax(1).tolist()]
    inferred = true_labels(pool, ROWS, [found.predictions for found in run_sources(pool, ROWS, [])])
    assert [len(columns[column]) for columns in inferred] == [len(row["words"]) for row in ROWS]
    assert [label for columns in inferred for label in columns[column]] == expected


def test_truth_inference_outvotes_sources_that_err_alike():
    """Two sources know the marks, three confuse one mark with another: the vote is wrong."""
    rows = gold((6,) * 40)

    def trained(rename: dict[str, str], seed: int) -> torch.nn.Module:
        model = model_of("groups", seed)
        taught = [{**row, "mark": [rename.get(mark, mark) for mark in row["mark"]]} for row in rows]
        optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(40):
            loss = model(**model.featurise(taught), labels=model.encode_gold(taught)).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return model

    wrong = {MARKS[0]: MARKS[1]}
    models = {f"s{seed}": trained({} if seed < 2 else wrong, seed) for seed in range(5)}
    pool = SourcePool(models, MARKS)

    def accuracy(predictions: list[dict[str, list[str]]]) -> float:
        pairs = [
            (mark, predicted_mark)
            for row, predicted in zip(rows, predictions, strict=True)
            for mark, predicted_mark in zip(row["mark"], predicted["mark"], strict=True)
        ]
        return sum(mark == predicted for mark, predicted in pairs) / len(pairs)

    found = [each.predictions for each in run_sources(pool, rows, [])]
    assert accuracy(true_labels(pool, rows, found)) > accuracy(list(combine(pool, rows))) + 0.2


@pytest.mark.parametrize("encoder", ["vectors", "frozen"])
def test_sources_and_their_combinations_are_scored_on_each_split(encoder, bert, tmp_path, monkeypatch):
    torch.manual_seed(0)
    first = tagger() if encoder == "vectors" else CrfTagger.from_encoder(tagger_config(), bert)
    second, third = copy.deepcopy(first), copy.deepcopy(first)
    for model, scale in ((second, 0.1), (third, 0.2)):
        with torch.no_grad():
            for parameter in (each for each in model.parameters() if each.requires_grad):
                parameter.add_(scale * torch.randn_like(parameter))
    for name, model in {"a": first, "b": second, "c": third}.items():
        model.save_pretrained(tmp_path / name)
    rows = [ConlluSentence.from_words(["the", "dog", "sees", "a", "cat"], sent_id=f"s{n}") for n in range(4)]
    tags = {"upos": ["DET", "NOUN", "VERB", "DET", "NOUN"]}
    for split in ("text", "dev", "test"):
        write_conllu([row.with_annotation(tags) for row in rows], tmp_path / f"{split}.conllu")
    monkeypatch.chdir(tmp_path)
    sources = ["a=a", "b=b"]
    weights = {"sources": sources, "treebank": "dev=dev.conllu", "split": "dev", "sentences": 2}
    other_weights.learn_other_weights(LearnWeightsArguments(output="w", **weights))
    words = [
        "--sources",
        *sources,
        "--beside",
        "c=c",
        "g=test.conllu",
        "--rules",
        *RULES,
        *FROM_LABELS,
        "--select",
        "2",
    ]
    words += ["--weights", "w/published_weights.yaml", "--other-weights", "w/other_weights.json"]
    words += ["--task", "tagger"]
    for split in ("text", "dev", "test"):
        words += [f"--{split}", f"{split}={split}.conllu", split]
    monkeypatch.setattr(sys, "argv", ["ensembles.py", *words, "--output", "o.json", "--embedding-cache", "e"])
    ensembles.main(ensembles.parse_arguments())
    found = {
        (row["method"], row["split"], row["metric"]): row["value"]
        for row in json.loads(Path("o.json").read_text())
    }
    methods = {*RULES, *FROM_LABELS, "pool-learned", *(f"direct:{name}" for name in "abcg")}
    assert found["direct:g", "test", "accuracy"] == 100  # a file of the right tags
    for split in ("dev", "test"):
        assert {method for method, of, metric in found if of == split and metric == "accuracy"} == methods
        assert found["data", split, "words"] == 20
    predictions = list(predict_rows(second, [{"words": row.words} for row in rows]))
    right = [tag == gold for row in predictions for tag, gold in zip(row["upos"], tags["upos"], strict=True)]
    assert found["direct:b", "test", "accuracy"] == pytest.approx(100 * sum(right) / len(right))
    assert {found[f"direct:{name}", "text", "rank"] for name in "ab"} == {1, 2}
    assert found["pool-published", "test", "accuracy"] == found["pool-learned", "test", "accuracy"]


def test_right_words_by_sentence_add_up_to_the_scores():
    rows = list(gold((3, 5, 1, 4)))
    wrong = [
        {**row, "head": [0] * len(row["words"]), "upos": [row["upos"][0]] * len(row["words"])} for row in rows
    ]
    rows[1]["upos"][2] = "_"
    for columns in (("head", "deprel"), ("upos",)):
        right, scored = right_words(wrong, rows, columns)
        whole = score(wrong, rows, columns)
        assert len(right) == len(scored) == len(rows)
        assert 100 * sum(right) / sum(scored) == pytest.approx(whole.get("las", whole.get("accuracy")))

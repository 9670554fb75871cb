"""Decoded outputs equal what listing all structures gives."""

from __future__ import annotations

import math

import pytest
import torch

from helpers.small_models import KINDS, gold, model_of
from helpers.structure_oracle import Enumerated, chain_candidates, independent_candidates, tree_candidates
from hf_xst.inference.confidence import claim_probabilities, decode_output, minimum_risk
from hf_xst.models.modeling import StructuredOutput
from hf_xst.models.running import run_rows
from hf_xst.structures import LinearChainCRF

LENGTHS = (1, 3, 2)


def output_of(kind, temperature=1.0, **changes):
    """The output of a model for three sentences; a low temperature makes it sharp."""
    torch.manual_seed(3)
    model = model_of(kind, 1, **changes)
    output = run_rows(model, list(gold(LENGTHS)))
    output.scores = output.scores / temperature
    return model, output


def log_prob_of(annotation):
    """The log-probability of the only structure."""
    (value,) = annotation.log_probs.values()
    return value


def listed(model, output, index):
    """All structures of a sentence, by definition."""
    structure = model.distribution(output)
    count, words = len(model.names), LENGTHS[index]
    groups = int(structure.group_lengths[index])
    scores = structure.group_view(structure.scores)[index, :groups].tolist()
    if model.structure_name == "tree":
        options = {"single_root": model.config.single_root, "projective": model.config.projective}
        wide = [row[: (words + 1) * count] for row in scores]
        return Enumerated(tree_candidates(words, count, **options), wide)
    structures = independent_candidates(words, count)
    if model.structure_name == "tags":
        structures = chain_candidates(words + 2, count)
    return Enumerated(structures, scores)


def claims_of(model, candidate):
    """The claims of a candidate, by definition."""
    count = len(model.names)
    if model.structure_name == "tree":
        return {"head": candidate // count, "label": candidate % count, "arc": candidate}
    return {"tag": candidate % count} if model.structure_name == "tags" else {"label": candidate}


def columns_of(model, candidates, words):
    """The columns of a structure, by the definition of candidates."""
    claims = [claims_of(model, candidate) for candidate in candidates[:words]]
    if model.structure_name == "tree":
        return {"head": [c["head"] for c in claims], "deprel": [model.names[c["label"]] for c in claims]}
    part = "tag" if model.structure_name == "tags" else "label"
    return {model.columns[0]: [model.names[c[part]] for c in claims]}


def decodable(model, world):
    """The possible structures with their totals; in trees exactly the arc from the root symbol is `root`."""
    if model.structure_name != "tree":
        return world.possible
    root, count = model.names.index("root"), len(model.names)
    obeys = [all((c < count) == (c % count == root) for c in structure) for _, structure in world.possible]
    return [each for each, obeyed in zip(world.possible, obeys, strict=True) if obeyed]


@pytest.mark.parametrize("decoding", ["best", "minimum-risk"])
@pytest.mark.parametrize("kind", KINDS)
def test_claims_have_the_mass_of_the_structures_that_make_them(kind, decoding):
    model, output = output_of(kind)
    annotations = decode_output(model, output, decoding, confidence=True)
    for index, annotation in enumerate(annotations):
        world, words = listed(model, output, index), LENGTHS[index]
        same = [s for _, s in world.possible if columns_of(model, s, words) == annotation.columns]
        (chosen,) = same
        assert log_prob_of(annotation) == pytest.approx(math.log(world.probability(chosen)), abs=1e-5)
        for part, values in annotation.probabilities.items():
            expected = [
                sum(
                    world.probability(other)
                    for other in world.structures
                    if claims_of(model, other[word])[part] == claims_of(model, chosen[word])[part]
                )
                for word in range(words)
            ]
            assert values == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.05, 1e-5])
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_stay_probabilities(kind, temperature):
    model, output = output_of(kind, temperature)
    for annotation in decode_output(model, output, confidence=True, kbest=2):
        values = [value for part in annotation.probabilities.values() for value in part]
        assert all(0 <= value <= 1 for value in values)
        assert log_prob_of(annotation) <= 0
        assert log_prob_of(annotation) == pytest.approx(annotation.ranked[0].log_prob, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_kbest_are_sorted_complete_and_sum_to_one(kind):
    model, output = output_of(kind)
    many = max(len(decodable(model, listed(model, output, index))) for index in range(len(LENGTHS)))
    annotations = decode_output(model, output, kbest=min(many, 60))
    for index, annotation in enumerate(annotations):
        world = listed(model, output, index)
        ranked = [(columns, log_prob) for columns, log_prob in annotation.ranked]
        expected = [total - world.log_partition for total, _ in decodable(model, world)][: len(ranked)]
        assert len(ranked) == min(len(decodable(model, world)), many, 60)
        assert [log_prob for _, log_prob in ranked] == pytest.approx(expected, abs=1e-5)
        assert len({str(columns) for columns, _ in ranked}) == len(ranked)
        if len(ranked) == len(world.possible):
            assert math.fsum(math.exp(log_prob) for _, log_prob in ranked) == pytest.approx(1, abs=1e-5)
        assert ranked[0][0] == annotation.columns


@pytest.mark.parametrize("kind", KINDS)
def test_minimum_risk_maximises_expected_correct_candidates(kind):
    model, output = output_of(kind)
    distribution = model.distribution(output)
    chosen = distribution.candidates(minimum_risk(distribution, distribution.marginals()))
    for index in range(len(LENGTHS)):
        world = listed(model, output, index)
        marginals = world.marginals()

        def expected(structure, marginals=marginals):
            return sum(marginals[group][candidate] for group, candidate in enumerate(structure))

        decoded = tuple(chosen[index, : int(distribution.group_lengths[index])].tolist())
        assert world.probability(decoded) > 0
        best = max(expected(structure) for _, structure in decodable(model, world))
        assert expected(decoded) == pytest.approx(best, abs=1e-5)


def test_minimum_risk_and_best_can_differ():
    """Two of three sequences agree in their first pair; the single most probable one differs."""
    scores = torch.full((1, 2, 2, 2), -math.inf)
    scores[0, 0, 0, 0], scores[0, 0, 1, 1] = math.log(0.6), math.log(0.4)
    scores[0, 1, 0, 0], scores[0, 1, 0, 1], scores[0, 1, 1, 1] = math.log(0.5), math.log(0.5), 0.0
    chain = LinearChainCRF(scores)
    assert chain.best().tolist() == [[1, 1, 1]]
    assert minimum_risk(chain, chain.marginals())[0, 0] == 0


def test_sentence_without_structure_does_not_affect_its_batch():
    model, output = output_of("parser")
    scores = output.scores.clone()
    scores[1] = -math.inf
    broken = StructuredOutput(scores=scores, lengths=output.lengths)
    for decoding in ("best", "minimum-risk"):
        annotations, whole = (decode_output(model, each, decoding, True, 2) for each in (broken, output))
        assert annotations[0] == whole[0]
        assert annotations[2] == whole[2]
        assert log_prob_of(annotations[1]) == -math.inf
        assert annotations[1].ranked == ()
        assert set(annotations[1].probabilities["arc"]) == {0.0}


def test_confidence_is_optional():
    (first, *_) = decode_output(*output_of("parser"))
    assert (first.log_probs, first.probabilities, first.ranked) == ({}, {}, ())


def test_claims_of_padding_have_probability_zero():
    model, output = output_of("parser")
    distribution = model.distribution(output)
    claims = claim_probabilities(model, distribution, distribution.marginals(), distribution.best())
    for values in claims.values():
        assert values.shape == (3, 3)
        assert (values[0, 1:] == 0).all()
        assert (values[2, 2:] == 0).all()

"""What is read off a model's output equals what listing all structures gives."""

from __future__ import annotations

import math

import pytest
import torch

from helpers.small_models import KINDS, gold, model_of
from helpers.structure_oracle import Enumerated, chain_candidates, independent_candidates, tree_candidates
from hf_xst.inference.confidence import Reading, claim_probabilities, findings, minimum_risk
from hf_xst.models.modeling import StructuredOutput
from hf_xst.models.running import run_rows
from hf_xst.structures import LinearChainCRF

LENGTHS = (1, 3, 2)


def output_of(kind, temperature=1.0, **changes):
    """A model's output for three sentences; a low temperature makes it sure of itself."""
    torch.manual_seed(3)
    model = model_of(kind, 1, **changes)
    output = run_rows(model, list(gold(LENGTHS)))
    output.scores = output.scores / temperature
    return model, output


def listed(model, output, place):
    """All structures of a sentence, from the definition."""
    structure = model.distribution(output)
    count, words = len(model.names), LENGTHS[place]
    groups = int(structure.group_lengths[place])
    scores = structure.group_view(structure.scores)[place, :groups].tolist()
    if model.whole == "tree":
        options = {"single_root": model.config.single_root, "projective": model.config.projective}
        wide = [row[: (words + 1) * count] for row in scores]
        return Enumerated(tree_candidates(words, count, **options), wide)
    structures = independent_candidates(words, count)
    if model.whole == "tags":
        structures = chain_candidates(words + 2, count)
    return Enumerated(structures, scores)


def claims_of(model, candidate):
    """What a candidate says, from the definition of candidates."""
    count = len(model.names)
    if model.whole == "tree":
        return {"head": candidate // count, "label": candidate % count, "arc": candidate}
    return {"tag": candidate % count} if model.whole == "tags" else {"label": candidate}


def columns_of(model, candidates, words):
    """The columns of a structure, from the definition of candidates."""
    claims = [claims_of(model, candidate) for candidate in candidates[:words]]
    if model.whole == "tree":
        return {"head": [c["head"] for c in claims], "deprel": [model.names[c["label"]] for c in claims]}
    part = "tag" if model.whole == "tags" else "label"
    return {model.columns[0]: [model.names[c[part]] for c in claims]}


@pytest.mark.parametrize("rule", ["best", "minimum-risk"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_claim_has_the_mass_of_the_structures_that_make_it(kind, rule):
    model, output = output_of(kind)
    found = findings(model, output, Reading(rule, confidence=True))
    for place, finding in enumerate(found):
        world, words = listed(model, output, place), LENGTHS[place]
        same = [s for _, s in world.possible if columns_of(model, s, words) == finding.columns]
        (chosen,) = same
        assert finding.log_prob == pytest.approx(math.log(world.probability(chosen)), abs=1e-5)
        for part, values in finding.probabilities.items():
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
    for finding in findings(model, output, Reading(confidence=True, kbest=2)):
        values = [value for part in finding.probabilities.values() for value in part]
        assert all(0 <= value <= 1 for value in values)
        assert finding.log_prob <= 0
        assert finding.log_prob == pytest.approx(finding.ranked[0].log_prob, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_k_best_are_the_k_best_and_all_of_them_sum_to_one(kind):
    model, output = output_of(kind)
    many = max(len(listed(model, output, place).possible) for place in range(len(LENGTHS)))
    found = findings(model, output, Reading(kbest=min(many, 60)))
    for place, finding in enumerate(found):
        world = listed(model, output, place)
        ranked = [(columns, log_prob) for columns, log_prob in finding.ranked]
        expected = [total - world.log_partition for total, _ in world.possible][: len(ranked)]
        assert len(ranked) == min(len(world.possible), many, 60)
        assert [log_prob for _, log_prob in ranked] == pytest.approx(expected, abs=1e-5)
        assert len({str(columns) for columns, _ in ranked}) == len(ranked)
        if len(ranked) == len(world.possible):
            assert math.fsum(math.exp(log_prob) for _, log_prob in ranked) == pytest.approx(1, abs=1e-5)
        assert ranked[0][0] == finding.columns


@pytest.mark.parametrize("kind", KINDS)
def test_minimum_risk_finds_the_most_right_candidates_to_be_expected(kind):
    model, output = output_of(kind)
    distribution = model.distribution(output)
    chosen = distribution.candidates(minimum_risk(distribution, distribution.marginals()))
    for place in range(len(LENGTHS)):
        world = listed(model, output, place)
        marginals = world.marginals()

        def expected(structure, marginals=marginals):
            return sum(marginals[group][candidate] for group, candidate in enumerate(structure))

        own = tuple(chosen[place, : int(distribution.group_lengths[place])].tolist())
        assert world.probability(own) > 0
        best = max(expected(structure) for _, structure in world.possible)
        assert expected(own) == pytest.approx(best, abs=1e-5)


def test_minimum_risk_and_the_best_can_differ():
    """Two of three sequences agree in their first pair; the single most probable one is another."""
    scores = torch.full((1, 2, 2, 2), -math.inf)
    scores[0, 0, 0, 0], scores[0, 0, 1, 1] = math.log(0.6), math.log(0.4)
    scores[0, 1, 0, 0], scores[0, 1, 0, 1], scores[0, 1, 1, 1] = math.log(0.5), math.log(0.5), 0.0
    chain = LinearChainCRF(scores)
    assert chain.best().tolist() == [[1, 1, 1]]
    assert minimum_risk(chain, chain.marginals())[0, 0] == 0


def test_a_sentence_without_any_structure_does_its_batch_mates_no_harm():
    model, output = output_of("parser")
    scores = output.scores.clone()
    scores[1] = -math.inf
    broken = StructuredOutput(scores=scores, lengths=output.lengths)
    for rule in ("best", "minimum-risk"):
        reading = Reading(rule, confidence=True, kbest=2)
        found, whole = findings(model, broken, reading), findings(model, output, reading)
        assert found[0] == whole[0]
        assert found[2] == whole[2]
        assert found[1].log_prob == -math.inf
        assert found[1].ranked == ()
        assert set(found[1].probabilities["arc"]) == {0.0}


def test_nothing_is_computed_that_is_not_wanted():
    model, output = output_of("parser")
    (first, *_) = findings(model, output, Reading())
    assert (first.log_prob, first.probabilities, first.ranked) == (None, {}, ())


def test_claims_of_padding_have_no_probability():
    model, output = output_of("parser")
    distribution = model.distribution(output)
    found = claim_probabilities(model, distribution, distribution.marginals(), distribution.best())
    for values in found.values():
        assert values.shape == (3, 3)
        assert (values[0, 1:] == 0).all()
        assert (values[2, 2:] == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"rule": "worst"}, "expected best or minimum-risk"), ({"kbest": -1}, "kbest is -1")],
)
def test_wrong_readings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Reading(**arguments)

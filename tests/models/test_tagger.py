from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from helpers.tiny_models import ROWS, SENTENCES, TAGS, loud, tagger, tagger_config, word_vectors
from hf_xst import CrfTagger
from hf_xst.structures import LinearChainCRF

LENGTHS = [5, 1, 3]


def test_groups_and_pairs() -> None:
    model = loud(tagger())
    output = model(words=SENTENCES)
    tags, start, end = 3, 3, 4
    assert output.scores.shape == (3, 6, tags + 2, tags + 2)
    for index, length in enumerate(LENGTHS):
        for pair in range(length + 1):
            for before, after in itertools.product(range(tags + 2), repeat=2):
                possible = (before == start if pair == 0 else before < tags) and (
                    after == end if pair == length else after < tags
                )
                score = output.scores[index, pair, before, after].item()
                assert math.isfinite(score) if possible else score == -math.inf
    distribution = model.distribution(output)
    assert isinstance(distribution, LinearChainCRF)
    assert distribution.group_lengths.tolist() == [length + 1 for length in LENGTHS]
    assert_close(distribution.log_count(), torch.tensor(LENGTHS) * math.log(tags))


def sequence_scores(model: CrfTagger, words: list[str]) -> dict[tuple[int, ...], Tensor]:
    """Score every sequence of tags by hand, from states, emissions and transitions."""
    lengths = torch.tensor([len(words)])
    (states,) = model.encoder(lengths, model.encoder.featurise([words]))
    emissions, start, end = model.emissions(states), len(TAGS), len(TAGS) + 1
    scores = {}
    for tags in itertools.product(range(len(TAGS)), repeat=len(words)):
        path = [start, *tags, end]
        steps = itertools.pairwise(path)
        scores[tags] = sum(
            model.transitions[a, b] + emissions[position, b] for position, (a, b) in enumerate(steps, start=1)
        )
    return scores


def test_loss_is_the_negative_log_likelihood() -> None:
    model = loud(tagger())
    gold = model.encode_gold(ROWS[:2])
    output = model(words=SENTENCES[:2], labels=gold)
    best = model.gold_best(gold, output.lengths)
    assert_close(output.losses, -model.distribution(output).log_prob(best))
    for index, words in enumerate(SENTENCES[:2]):
        scores = sequence_scores(model, words)
        total = torch.stack(list(scores.values())).logsumexp(0)
        tags = tuple(gold[index, : len(words)].tolist())
        assert_close(output.losses[index], total - scores[tags])
    assert output.units.tolist() == [1, 1]


def test_unknown_gold_tags_are_marginalised() -> None:
    model = loud(tagger())
    gold = model.encode_gold(ROWS)
    assert gold[2].tolist() == [0, 1, -1, -1, -1]  # PUNCT is no tag of the model
    output = model(words=SENTENCES, labels=gold)
    scores = sequence_scores(model, SENTENCES[2])
    alike = torch.stack([score for tags, score in scores.items() if tags[:2] == (0, 1)])
    total = torch.stack(list(scores.values()))
    assert_close(output.losses[2], total.logsumexp(0) - alike.logsumexp(0))
    nothing = model(words=SENTENCES, labels=torch.full_like(gold, -1))
    assert_close(nothing.losses, torch.zeros(3))
    assert (nothing.losses >= 0).all()


def test_scores_and_losses_do_not_depend_on_the_batch() -> None:
    model = loud(tagger(uses_upos=True, upos_names=TAGS, upos_size=3, column="xpos", labels=["p", "q"]))
    rows = [{**row, "xpos": ["p", "q", "p", "q", "q"][: len(row["words"])]} for row in ROWS]
    together = model(**model.featurise(rows), labels=model.encode_gold(rows))
    for index, row in enumerate(rows):
        alone = model(**model.featurise([row]), labels=model.encode_gold([row]))
        assert_close(together.scores[index, : LENGTHS[index] + 1], alone.scores[0])
        assert_close(together.losses[index], alone.losses[0])
        assert model.predict([row]) == [model.predict(rows)[index]]
    together.loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("lengths", [[1], [1, 4], [1, 1, 1]])
def test_a_sentence_of_one_word(lengths: list[int]) -> None:
    model = tagger()
    with torch.no_grad():
        model.transitions.zero_()
        model.emissions.weight.zero_()
        model.emissions.bias.copy_(torch.tensor([1.0, 2.0, 5.0, 1.0, 1.0]).log())
    words = [["dog"] * length for length in lengths]
    gold = torch.full((len(lengths), max(lengths)), -1)
    gold[:, 0] = 2
    output = model(words=words, labels=gold)
    marginals = model.distribution(output).marginals()
    assert_close(marginals[0, 0, 3, :3], torch.tensor([0.125, 0.25, 0.625]))
    assert_close(output.losses[0], torch.tensor(0.470004), atol=1e-6, rtol=0)
    assert model.predict([{"words": ["dog"]}]) == [{"upos": ["VERB"]}]
    assert (output.losses >= 0).all()
    output.loss.backward()
    assert model.emissions.bias.grad.isfinite().all()


def test_losses_are_not_negative_for_sharp_scores() -> None:
    model = loud(tagger())
    with torch.no_grad():
        model.emissions.bias.mul_(1e4)
    result = model.predict(ROWS)
    gold = model.encode_gold([{**row, **columns} for row, columns in zip(ROWS, result, strict=True)])
    losses = model(words=SENTENCES, labels=gold).losses
    assert (losses >= 0).all()
    assert_close(losses, torch.zeros(3))


def test_encoded_gold_decodes_to_itself() -> None:
    model, lengths = tagger(), torch.tensor(LENGTHS)
    gold = model.encode_gold(ROWS)
    best = model.gold_best(gold, lengths)
    assert best[1].tolist() == [3, 1, 4, -1, -1, -1, -1]
    assert model.decode(best, lengths) == [
        {"upos": ["DET", "NOUN", "VERB", "DET", "NOUN"]},
        {"upos": ["NOUN"]},
        {"upos": ["DET", "NOUN", "_"]},
    ]
    names = ["PUNCT", "VERB", "NOUN", "DET", "<s>", "</s>"]
    other = model.gold_best(model.encode_gold(ROWS, names), lengths, names)
    assert model.decode(other, lengths, names) == [{"upos": row["upos"]} for row in ROWS]


def test_boundaries_are_not_tags_of_a_text() -> None:
    gold = tagger().encode_gold([{"upos": ["<s>", "</s>", "NOUN"]}])
    assert gold.tolist() == [[-1, -1, 1]]
    with pytest.raises(ValueError, match="adds the sentence boundaries itself"):
        tagger_config(labels=["NOUN", "</s>"])


@pytest.mark.parametrize("tags", [["X"], ["X"] * 3, "XY"])
def test_gold_of_another_length_is_refused(tags: object) -> None:
    row = {"words": ["a", "b"], "upos": tags}
    with pytest.raises(ValueError, match=r"sentence 1: found . values of upos for 2 words; expected a list"):
        tagger().encode_gold([{"words": ["a"], "upos": ["X"]}, row])


def test_scores_of_half_precision_models_are_float32() -> None:
    model = loud(tagger()).to(torch.bfloat16)
    output = model(words=SENTENCES, labels=model.encode_gold(ROWS))
    assert output.scores.dtype == output.losses.dtype == torch.float32
    assert not output.scores.isnan().any()
    output.loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_names_columns_and_published_dropout() -> None:
    model = tagger(column="xpos")
    assert model.names == [*TAGS, "<s>", "</s>"]
    assert model.columns == ("xpos",)
    assert model.input_columns == ("words",)
    assert (model.main_metric, model.label_column) == ("accuracy", "upos")
    assert model.config.output_dropout == 0
    rows = [{"upos": ["A"], "xpos": ["a1"]}, {"upos": ["_"], "xpos": ["_"]}]
    assert CrfTagger.settings_from_rows(rows, "xpos") == {"labels": ["a1"], "upos_names": ["A"]}
    assert CrfTagger.settings_from_rows(rows) == {"labels": ["A"], "upos_names": ["A"]}


def test_output_dropout_is_active_in_training_only() -> None:
    model = loud(tagger(word_vectors(), output_dropout=0.5, context_dropout=0.0, word_dropout=0.0))
    calm = model(words=SENTENCES).scores
    assert_close(calm, model(words=SENTENCES).scores, atol=0, rtol=0)
    assert not torch.equal(calm, model.train()(words=SENTENCES).scores)

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import bilinear, cross_entropy
from torch.testing import assert_close

from helpers.tiny_models import ROWS, loud, parser
from hf_xst.models.parser import BiaffineScorer

LENGTHS = [len(row["words"]) for row in ROWS]


def scorer(labels: int = 4, dropout: float = 0.0) -> BiaffineScorer:
    module = BiaffineScorer(input_size=6, arc_size=5, label_size=3, labels=labels, dropout=dropout)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module


def vectors_of(module: BiaffineScorer, states: Tensor) -> tuple[Tensor, ...]:
    return module.projection(states).relu().split([5, 5, 3, 3], dim=-1)


@pytest.mark.parametrize("labels", [1, 4])
def test_factored_scores_equal_the_dense_bilinear_form(labels: int) -> None:
    module, states = scorer(labels), torch.randn(2, 7, 6)
    arcs, relations = module(states)
    arc_head, arc_dependent, label_head, label_dependent = vectors_of(module, states)
    expected_arcs = torch.einsum("bhx,xy,bdy->bhd", arc_head, module.arc_weight, arc_dependent)
    assert_close(arcs, expected_arcs + (arc_head @ module.arc_bias)[:, :, None], atol=1e-5, rtol=1e-5)
    pairs = (
        label_head[:, :, None].expand(2, 7, 7, 3).contiguous(),
        label_dependent[:, None].expand(2, 7, 7, 3).contiguous(),
    )
    dense = bilinear(*pairs, module.label_weight.permute(1, 0, 2).contiguous(), module.label_head.bias)
    linear = pairs[0] @ module.label_head.weight.T + pairs[1] @ module.label_dependent.weight.T
    assert_close(relations, dense + linear, atol=1e-5, rtol=1e-5)
    by_einsum = torch.einsum("bhx,xly,bdy->bhdl", label_head, module.label_weight, label_dependent)
    assert_close(dense, by_einsum + module.label_head.bias, atol=1e-5, rtol=1e-5)


def test_dropout_drops_channels_of_a_sentence_in_training_only() -> None:
    module, states = scorer(dropout=0.5), torch.randn(6).expand(8, 9, 6)
    arcs, relations = module(states)
    assert_close(arcs, arcs[:, :1, :1].expand(8, 9, 9))  # words of one sentence stay alike
    assert_close(relations, relations[:, :1, :1].expand(8, 9, 9, 4))
    assert len(arcs[:, 0, 0].unique()) > 1
    module.eval()
    assert len(module(states)[0].unique(dim=0)) == 1


def test_dropout_preserves_the_mean() -> None:
    module, states = scorer(dropout=0.5), torch.randn(1, 1, 6).expand(20_000, 1, 6)
    arc_head = vectors_of(module, states[:1])[0][0, 0]
    with torch.no_grad():
        module.arc_weight.zero_()
        mean = module(states)[0].mean()
    assert_close(mean, arc_head.detach() @ module.arc_bias.detach(), atol=0.1, rtol=0.05)


def test_published_initialisation() -> None:
    module = parser(arc_size=64, label_size=16).scorer
    assert 0.009 < float(module.arc_weight.detach().abs().max()) <= 0.01
    assert not module.arc_bias.any()
    assert 0.2 < float(module.label_weight.detach().abs().max()) <= 0.25


def test_log_softmax_scores_are_normalised_over_heads_and_labels() -> None:
    model = loud(parser())
    output = model(**model.featurise(ROWS))
    assert output.scores.isfinite().all()
    distribution = model.distribution(output)
    mass = distribution.group_view(output.scores.exp().masked_fill(~distribution.valid_parts, 0)).sum(-1)
    for index, length in enumerate(LENGTHS):
        assert_close(mass[index, :length], torch.ones(length))
        assert not mass[index, length:].any()


@pytest.mark.parametrize("form", ["log_softmax", "raw"])
def test_scores_and_losses_do_not_depend_on_the_batch(form: str) -> None:
    model = loud(parser(score_form=form))
    together = model(**model.featurise(ROWS), labels=model.encode_gold(ROWS))
    for index, row in enumerate(ROWS):
        alone = model(**model.featurise([row]), labels=model.encode_gold([row]))
        valid = model.distribution(alone).valid_parts[0]
        nodes = LENGTHS[index] + 1
        assert_close(together.scores[index, :nodes, :nodes][valid], alone.scores[0][valid])
        assert_close(together.losses[index], alone.losses[0])
        assert_close(together.loss, together.losses.sum() / together.units.sum())


def hand_cross_entropies(form: str, arcs: Tensor, relations: Tensor, row: dict[str, list[int]]) -> Tensor:
    """Sum over the words of one sentence; scores are (n+1, n+1) and (n+1, n+1, L)."""
    total = torch.zeros(())
    nodes = len(arcs)
    for word, (head, label) in enumerate(zip(row["head"], row["label"], strict=True), start=1):
        heads = [h for h in range(nodes) if h != word]
        if form == "log_softmax":
            logits, labels = arcs[heads, word], relations[head, word]
        else:
            summed = arcs[heads, word, None] + relations[heads, word]
            logits, labels = summed.logsumexp(-1), relations[head, word] + arcs[head, word]
        total = total + cross_entropy(logits, torch.tensor(heads.index(head)))
        if label >= 0:
            total = total + cross_entropy(labels, torch.tensor(label))
    return total


@pytest.mark.parametrize("form", ["log_softmax", "raw"])
def test_loss_is_head_plus_label_cross_entropy(form: str) -> None:
    model = loud(parser(score_form=form))
    output = model(**model.featurise(ROWS), labels=model.encode_gold(ROWS))
    for index, row in enumerate(ROWS):
        features = model.featurise([row])
        words = {"word_ids": features["word_ids"]}
        tags = model.coarse_tags(features["upos_ids"], features["lengths"], 1, 0)
        arcs, relations = model.scorer(model.encoder(features["lengths"], words, extra=tags))
        label = [model.names.index(name) if name in model.names else -1 for name in row["deprel"]]
        expected = hand_cross_entropies(form, arcs[0], relations[0], {"head": row["head"], "label": label})
        assert_close(output.losses[index], expected, atol=1e-5, rtol=1e-5)
    assert output.units.tolist() == LENGTHS


@pytest.mark.parametrize("form", ["log_softmax", "raw"])
def test_gradients_are_finite_and_zero_without_gold(form: str) -> None:
    model = loud(parser(score_form=form))
    labels = model.encode_gold(ROWS)
    model(**model.featurise(ROWS), labels=labels).loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    model.zero_grad()
    nothing = model(**model.featurise(ROWS), labels=torch.full_like(labels, -1))
    nothing.loss.backward()
    assert nothing.loss.item() == 0
    assert nothing.units.tolist() == [0, 0, 0]
    assert not any(parameter.grad.any() for parameter in model.parameters())


def test_words_with_unknown_heads_are_ignored() -> None:
    model = loud(parser())
    labels = model.encode_gold(ROWS)
    complete = model(**model.featurise(ROWS), labels=labels)
    parts = torch.zeros(3)
    for word in range(5):
        one = torch.full_like(labels, -1)
        one[:, word] = labels[:, word]
        parts = parts + model(**model.featurise(ROWS), labels=one).losses
    assert_close(parts, complete.losses)


@pytest.mark.parametrize("form", ["log_softmax", "raw"])
def test_scores_of_half_precision_models_are_float32(form: str) -> None:
    model = loud(parser(score_form=form)).to(torch.bfloat16)
    output = model(**model.featurise(ROWS), labels=model.encode_gold(ROWS))
    assert output.scores.dtype == output.losses.dtype == torch.float32
    assert output.scores.isfinite().all()
    if form == "log_softmax":
        masses = model.distribution(output).group_view(output.scores.exp())[0].sum(-1)
        assert_close(masses, torch.ones(5), atol=1e-5, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model.float()(**model.featurise(ROWS), labels=model.encode_gold(ROWS))
    assert mixed.scores.dtype == mixed.losses.dtype == torch.float32

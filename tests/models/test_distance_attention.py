from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hf_xst.models import StructuredConfig
from hf_xst.models.encoders import DistanceAwareAttention, DistanceAwareTransformer

SIZE, MAX_DISTANCE = 6, 3


def config(layers: int, max_distance: int, dropout: float) -> StructuredConfig:
    return StructuredConfig(
        context_layers=layers,
        attention_heads=2,
        key_size=4,
        feed_forward_size=7,
        max_distance=max_distance,
        context_dropout=dropout,
    )


def attention() -> DistanceAwareAttention:
    module = DistanceAwareAttention(config(1, MAX_DISTANCE, 0.0), SIZE)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double()


def one_hot(length: int) -> Tensor:
    table = torch.zeros(length, length, MAX_DISTANCE + 1, dtype=torch.float64)
    for i in range(length):
        for j in range(length):
            table[i, j, min(abs(i - j), MAX_DISTANCE)] = 1
    return table


def pair_by_pair(module: DistanceAwareAttention, states: Tensor) -> Tensor:
    """Apply the formula to one sentence (N, D), pair by pair."""
    length, size = len(states), module.key_size
    projected = module.query_key_value(states)
    mixed = torch.zeros(length, module.heads * size, dtype=states.dtype)
    for head in range(module.heads):
        start = head * size
        query, key, value = (
            projected[:, third * module.heads * size :][:, start : start + size] for third in range(3)
        )
        for i in range(length):
            distances = [min(abs(i - j), MAX_DISTANCE) for j in range(length)]
            logits = [
                query[i] @ (key[j] + module.key_distances[distances[j]]) / math.sqrt(size)
                for j in range(length)
            ]
            weights = torch.stack(logits).softmax(0)
            for j in range(length):
                mixed[i, start : start + size] += weights[j] * (
                    value[j] + module.value_distances[distances[j]]
                )
    return module.output(mixed)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_attention_matches_the_formula(length: int) -> None:
    module, states = attention(), torch.randn(1, length, SIZE, dtype=torch.float64)
    output = module(states, one_hot(length), torch.ones(1, length, dtype=torch.bool))
    assert_close(output[0], pair_by_pair(module, states[0]))


def test_padding_is_ignored() -> None:
    module, states = attention(), torch.randn(1, 6, SIZE, dtype=torch.float64)
    mask = torch.tensor([[True] * 4 + [False] * 2])
    states[:, 4:] = 1e6
    output = module(states, one_hot(6), mask)
    assert_close(output[0, :4], pair_by_pair(module, states[0, :4]))
    assert output.isfinite().all()


def transformer(layers: int = 2, max_distance: int = 10) -> DistanceAwareTransformer:
    module = DistanceAwareTransformer(config(layers, max_distance, 0.1), SIZE)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double().eval()


def test_reversing_a_sentence_reverses_its_states() -> None:
    module, states = transformer(), torch.randn(1, 14, 6, dtype=torch.float64)
    mask = torch.ones(1, 14, dtype=torch.bool)
    assert_close(module(states.flip(1), mask), module(states, mask).flip(1))


def test_distances_matter() -> None:
    module, states = transformer(), torch.randn(1, 5, 6, dtype=torch.float64)
    mask, moved = torch.ones(1, 5, dtype=torch.bool), [1, 0, 2, 3, 4]
    assert not torch.allclose(module(states[:, moved], mask), module(states, mask)[:, moved], atol=1e-3)


def test_distances_above_the_longest_share_an_embedding() -> None:
    module, states = transformer(layers=1), torch.randn(1, 13, 6, dtype=torch.float64)
    mask, tail = torch.ones(1, 13, dtype=torch.bool), [*range(11), 12, 11]  # distances 11 and 12 to word 0
    assert_close(module(states[:, tail], mask)[:, 0], module(states, mask)[:, 0])
    nearer = [*range(9), 10, 9, 11, 12]  # distances 9 and 10
    assert not torch.allclose(module(states[:, nearer], mask)[:, 0], module(states, mask)[:, 0])


def test_sentences_of_a_batch_are_independent() -> None:
    module, states = transformer(), torch.randn(3, 9, 6, dtype=torch.float64)
    lengths = torch.tensor([9, 1, 4])
    together = module(states, torch.arange(9) < lengths[:, None])
    for index, length in enumerate(lengths.tolist()):
        alone = module(states[index : index + 1, :length], torch.ones(1, length, dtype=torch.bool))
        assert_close(together[index, :length], alone[0])


def test_zero_layers_are_the_identity() -> None:
    states = torch.randn(2, 3, 6)
    assert transformer(layers=0)(states, torch.ones(2, 3).bool()) is states


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_masks_padding(dtype: torch.dtype) -> None:
    module, states = transformer(layers=1).to(dtype), torch.randn(2, 4, 6, dtype=dtype)
    output = module(states, torch.tensor([[True] * 4, [True, False, False, False]]))
    assert output.isfinite().all()
    alone = module(states[1:, :1], torch.tensor([[True]]))
    assert_close(output[1:, :1], alone, atol=0.02, rtol=0.02)

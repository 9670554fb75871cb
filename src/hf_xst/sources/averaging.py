"""Average the parameters of several models: one model instead of an ensemble (weight averaging).

This works for models that were fine-tuned from one initial model: their parameters have stayed close, so that
points between them are good models too. Models that were initialised separately cannot be averaged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import combinations

import torch
from torch import Tensor

from hf_xst.charts.pooling import normalised_weights
from hf_xst.console import say
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.loading import weights_digest
from hf_xst.sources.pool import joint_names

SCRATCH, AVERAGE = "scratch", "average"  # initial models that are not a folder or Hub id

LEAST_COSINE = 0.5
"""Below this, two models' parameters are as different as if initialised separately."""
# Configuration fields that may differ: labels are merged, words are compared directly.
_FREE = frozenset(
    "labels id2label label2id vector_space vocabulary_size start_sha256 _name_or_path architectures dtype "
    "transformers_version".split()
)


def share_initialisation(models: Sequence[StructuredModel]) -> bool:
    """Return whether several models are recorded as fine-tuned from one of them, or from one other model."""
    initial = {model.config.start_sha256 for model in models} - {None}
    if len(models) < 2 or not initial:
        return False
    # The initial model may be among them, and may itself have been fine-tuned from another one.
    candidates = [{model.config.start_sha256, weights_digest(model)} for model in models]
    return any(all(digest in each for each in candidates) for digest in initial)


@torch.no_grad()
def can_average(sources: Mapping[str, object]) -> bool:
    """Return whether sources, by name, are models that share an initialisation and can be averaged."""
    models = {name: each for name, each in sources.items() if isinstance(each, StructuredModel)}
    if len(models) < len(sources) or not share_initialisation(list(models.values())):
        return False
    try:
        _check_alike(models)
    except ValueError as error:
        say(f"the sources share an initialisation but cannot be averaged: {error}", "yellow")
        return False
    return True


@torch.no_grad()
def average_models(
    models: Mapping[str, StructuredModel], weights: Mapping[str, float] | None = None
) -> StructuredModel:
    """Average models that were fine-tuned from one initial model, parameter by parameter.

    Rows of a label are averaged over the models that have it, with equal weights if all of these are 0. There
    is at least one model; weights are not negative. The new model has the labels of all, on the first one's
    device.

    Raises:
        ValueError: the models differ in more than what was trained, or were initialised separately.
    """
    _check_alike(models)
    given = None if weights is None else [weights[name] for name in models]
    normalised = normalised_weights(given, len(models), torch.empty(0, dtype=torch.double)).tolist()
    shares = {name: share for name, share in zip(models, normalised, strict=True) if share > 0}
    names = joint_names(list(models.values()))
    first = next(iter(models.values()))
    average = copy.deepcopy(first)
    average.add_labels([name for name in names if name not in first.names])
    parameters = dict(average.named_parameters())
    for name, axes in _label_axes(average).items():
        target = parameters[name]
        values = {code: model.get_parameter(name) for code, model in models.items()}
        rows = torch.stack([_place_labels(values[code], axes, models[code], average) for code in models])
        held = torch.stack(
            [_place_labels(torch.ones_like(values[code]), axes, models[code], average) for code in models]
        )
        weighed = torch.tensor([shares.get(code, 0.0) for code in models]).to(rows)
        weighed = weighed.view(-1, *(1 for _ in target.shape)) * held
        weighed = torch.where(weighed.sum(0) > 0, weighed, held)
        total = weighed.sum(0)  # 0 for a pair of labels that no model has
        target.copy_(torch.where(total > 0, (weighed * rows).sum(0) / total, target))
    for name in parameters.keys() - _label_axes(average).keys():
        if parameters[name].requires_grad:
            parts = [share * models[code].get_parameter(name) for code, share in shares.items()]
            parameters[name].copy_(torch.stack(parts).sum(0))
    return average


def _label_axes(model: StructuredModel) -> dict[str, tuple[int, ...]]:
    """Return the axes that are labels, by the full names of parameters."""
    places = {module: name for name, module in model.named_modules()}
    return {
        ".".join(part for part in (places[module], attribute) if part): axes
        for module, attribute, axes in model.label_parameters()
    }


def _place_labels(
    value: Tensor, axes: Sequence[int], model: StructuredModel, average: StructuredModel
) -> Tensor:
    """Place a model's label rows where the average has these labels; zeros elsewhere."""
    names = average.names
    places = torch.tensor([names.index(name) for name in model.names], device=value.device)
    for axis in axes:
        shape = [*value.shape]
        shape[axis] = len(names)
        value = value.new_zeros(shape).index_copy(axis, places, value)
    return value


def _check_alike(models: Mapping[str, StructuredModel]) -> None:
    (first_name, first), *others = models.items()
    for name, model in others:
        pair = f"{first_name} and {name}"
        if type(model) is not type(first):
            raise ValueError(f"{pair} are models of different kinds and cannot be averaged")
        one, other = first.config.to_dict(), model.config.to_dict()
        differing = sorted(key for key in {*one, *other} - _FREE if one.get(key) != other.get(key))
        if differing:
            raise ValueError(
                f"{pair} differ in {', '.join(differing)}: only models of one configuration can be averaged, "
                "such as sources trained with `train-source --init-from MODEL` that train equally much of "
                "the encoder"
            )
        for key, value in _fixed(first).items():
            if not torch.equal(value, _fixed(model)[key]):
                raise ValueError(
                    f"{pair} have different encoders or word vectors ({key}): models that are averaged may "
                    "differ only in what was trained"
                )
    for left, right in combinations(models, 2):
        cosine = _cosine(models[left], models[right])
        if cosine < LEAST_COSINE:
            raise ValueError(
                f"{left} and {right} have parameters as different as if initialised separately (cosine "
                f"{cosine:.2f}); only models that were fine-tuned from one initial model can be averaged: "
                "train sources with `train-source --init-from MODEL`"
            )


def _fixed(model: StructuredModel) -> dict[str, Tensor]:
    """Return frozen parameters and buffers."""
    trained = {name for name, value in model.named_parameters() if value.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name not in trained}


def _cosine(one: StructuredModel, other: StructuredModel) -> float:
    """Return the cosine between two models' trained matrices, without those of labels."""
    apart = _label_axes(one)
    pairs = [
        (ours.flatten().double(), theirs.flatten().double())
        for (name, ours), theirs in zip(one.named_parameters(), other.parameters(), strict=True)
        if ours.requires_grad and ours.dim() > 1 and name not in apart
    ]
    inner = sum(float(ours @ theirs) for ours, theirs in pairs)
    norms = [sum(float(pair[side] @ pair[side]) for pair in pairs) for side in (0, 1)]
    return inner / (norms[0] * norms[1]) ** 0.5 if min(norms) > 0 else 1.0

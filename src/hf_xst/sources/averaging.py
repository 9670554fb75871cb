"""The mean of several models' parameters: one model in place of an ensemble.

It makes sense for models that were fine-tuned from one start: their parameters have stayed near each other,
so that what lies between them is a model as well. Models that were initialised apart have no such middle.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from hf_xst.console import say
from hf_xst.models.modeling import StructuredModel
from hf_xst.sources.pool import joint_names, weights_digest

NONE, MEAN = "none", "mean"  # initial models that are no folder or Hub id

LEAST_COSINE = 0.5
"""Below this, two models' parameters have no more in common than those that were initialised apart."""
# Of the configuration: labels are brought together, words are compared themselves, the rest is on record.
_FREE = frozenset(
    "labels id2label label2id vector_space vocabulary_size start_sha256 _name_or_path architectures dtype "
    "transformers_version".split()
)


def have_one_start(models: Sequence[StructuredModel]) -> bool:
    """Say whether several models are on record as fine-tuned from one of them, or from one model."""
    told = {model.config.start_sha256 for model in models} - {None}
    if len(models) < 2 or not told:
        return False
    # The start is among them or not, and may itself have been fine-tuned from another model.
    begun = [{model.config.start_sha256, weights_digest(model)} for model in models]
    return any(all(start in each for each in begun) for start in told)


@torch.no_grad()
def have_mean(models: Mapping[str, StructuredModel]) -> bool:
    """Say whether several models, by name, are on record as of one start, and have a mean."""
    if not have_one_start(list(models.values())):
        return False
    try:
        _alike(models)
    except ValueError as error:
        say(f"the sources have one start, but no mean: {error}", "yellow")
        return False
    return True


@torch.no_grad()
def mean_of_models(
    models: Mapping[str, StructuredModel], weights: Mapping[str, float] | None = None
) -> StructuredModel:
    """Average models that were fine-tuned from one start, parameter by parameter.

    Rows of a label are the mean over the models that have it; equal shares count where all of them weigh 0.

    Args:
        models: by name, at least one; of one kind, with one encoder.
        weights: not negative, by name; equal ones if not given.

    Returns:
        A new model with the labels of all, on the first one's device.

    Raises:
        ValueError: the models are not alike, or were not fine-tuned from one start.
    """
    _alike(models)
    shares = _shares(models, weights)
    names = joint_names(list(models.values()))
    first = next(iter(models.values()))
    mean = copy.deepcopy(first)
    mean.add_labels([name for name in names if name not in first.names])
    parameters = dict(mean.named_parameters())
    for name, axes in _label_axes(mean).items():
        target = parameters[name]
        values = {code: model.get_parameter(name) for code, model in models.items()}
        rows = torch.stack([_spread(values[code], axes, models[code], mean) for code in models])
        held = torch.stack(
            [_spread(torch.ones_like(values[code]), axes, models[code], mean) for code in models]
        )
        weighed = torch.tensor([shares.get(code, 0.0) for code in models]).to(rows)
        weighed = weighed.view(-1, *(1 for _ in target.shape)) * held
        weighed = torch.where(weighed.sum(0) > 0, weighed, held)
        total = weighed.sum(0)  # 0 for a pair of labels that no model has
        target.copy_(torch.where(total > 0, (weighed * rows).sum(0) / total, target))
    for name in parameters.keys() - _label_axes(mean).keys():
        if parameters[name].requires_grad:
            parts = [share * models[code].get_parameter(name) for code, share in shares.items()]
            parameters[name].copy_(torch.stack(parts).sum(0))
    return mean


def _shares(models: Mapping[str, StructuredModel], weights: Mapping[str, float] | None) -> dict[str, float]:
    given = {name: 1.0 if weights is None else weights[name] for name in models}
    total = sum(given.values())
    if min(given.values()) < 0 or total <= 0:
        raise ValueError(f"found weights {given}; a mean needs weights that are not negative, and not all 0")
    return {name: weight / total for name, weight in given.items() if weight > 0}


def _label_axes(model: StructuredModel) -> dict[str, tuple[int, ...]]:
    """Return the axes that are labels, by the full names of parameters."""
    places = {module: name for name, module in model.named_modules()}
    return {
        ".".join(part for part in (places[module], attribute) if part): axes
        for module, attribute, axes in model.label_parameters()
    }


def _spread(value: Tensor, axes: Sequence[int], model: StructuredModel, mean: StructuredModel) -> Tensor:
    """Put a model's label rows where the mean has these labels; zeros elsewhere."""
    names = mean.names
    places = torch.tensor([names.index(name) for name in model.names], device=value.device)
    for axis in axes:
        shape = [*value.shape]
        shape[axis] = len(names)
        value = value.new_zeros(shape).index_copy(axis, places, value)
    return value


def _alike(models: Mapping[str, StructuredModel]) -> None:
    """Refuse models whose mean is no model."""
    (first_name, first), *others = models.items()
    expected = _settings(first)
    for name, model in others:
        pair = f"{first_name} and {name}"
        if type(model) is not type(first):
            raise ValueError(f"{pair} are models of different kinds and have no mean")
        settings = _settings(model)
        differing = sorted(key for key in {*expected, *settings} if expected.get(key) != settings.get(key))
        if differing:
            raise ValueError(
                f"{pair} differ in {', '.join(differing)}: only models of one configuration have a mean, as "
                "sources that were trained with `train-source --start MODEL` are, if all train as much of "
                "their encoder"
            )
        for key, value in _fixed(first).items():
            if not torch.equal(value, _fixed(model)[key]):
                raise ValueError(
                    f"{pair} have different encoders or word vectors ({key}): models that have a mean differ "
                    "in what was trained alone"
                )
    for one, other in combinations(models, 2):
        cosine = _cosine(models[one], models[other])
        if cosine < LEAST_COSINE:
            raise ValueError(
                f"{one} and {other} have parameters as different as if initialised apart (cosine "
                f"{cosine:.2f}); only models that were fine-tuned from one start have a mean: train sources "
                "with `train-source --start MODEL`"
            )


def _settings(model: StructuredModel) -> dict[str, Any]:
    """Return a model's configuration without what may differ between models that have a mean."""
    return {key: value for key, value in model.config.to_dict().items() if key not in _FREE}


def _fixed(model: StructuredModel) -> dict[str, Tensor]:
    """Return what training has left as it was: frozen parameters and buffers."""
    trained = {name for name, value in model.named_parameters() if value.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name not in trained}


def _cosine(one: StructuredModel, other: StructuredModel) -> float:
    """Return the cosine between two models' trained matrices, those of labels left out."""
    apart = _label_axes(one)
    pairs = [
        (ours.flatten().double(), theirs.flatten().double())
        for (name, ours), theirs in zip(one.named_parameters(), other.parameters(), strict=True)
        if ours.requires_grad and ours.dim() > 1 and name not in apart
    ]
    inner = sum(float(ours @ theirs) for ours, theirs in pairs)
    norms = [sum(float(pair[side] @ pair[side]) for pair in pairs) for side in (0, 1)]
    return inner / (norms[0] * norms[1]) ** 0.5 if min(norms) > 0 else 1.0

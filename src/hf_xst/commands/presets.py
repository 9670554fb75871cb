"""Presets, published settings, and how options resolve: the one place of each default of charts and transfer.

An option that is given takes precedence, then the preset, then the published setting of the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hf_xst.charts.chart import ChartSettings
from hf_xst.charts.dataset import ChartInfo
from hf_xst.commands.options import BuildChartsArguments, LoopArguments, TransferArguments
from hf_xst.console import say
from hf_xst.models import BiaffineParserConfig, CrfTaggerConfig
from hf_xst.models.columns import StructureColumns
from hf_xst.models.kinds import model_class_for, model_type_of
from hf_xst.sources.agreement import read_weights
from hf_xst.sources.averaging import SCRATCH, can_average
from hf_xst.sources.pool import AnySource, kind_of
from hf_xst.training.collation import ChartUse

Options = TypeVar("Options", bound=LoopArguments)
AGREEMENT, UNIFORM = "agreement", "uniform"  # instead of a file of weights
PAPER, RECOMMENDED = "paper", "recommended"


@dataclass(frozen=True)
class Preset:
    """Defaults from charts to the target model; None stands for the published value of the task.

    With `rank_sources` training is initialised from the average of the sources if they share an
    initialisation, otherwise from the source that agrees most with the rest; without, from the first source.
    """

    charts: ChartSettings = ChartSettings()
    weights: str = UNIFORM  # or AGREEMENT, or the file from which they are read
    rank_sources: bool = False
    max_length: int | None = None  # of sentences, added tokens included
    use: ChartUse = ChartUse()  # which part of the stored charts a model is trained on
    learning_rate: float | None = None
    max_steps: int = 800
    batch_size: int = 80


PRESETS: Mapping[str, Preset] = {
    PAPER: Preset(),
    RECOMMENDED: Preset(
        charts=ChartSettings(sigma=0.999, keep_log_probs=True),
        weights=AGREEMENT,
        rank_sources=True,
        max_length=61,
        use=ChartUse(best="pool", sigma=0.95, soft=0.5),
        learning_rate=1e-4,
        max_steps=200,  # with a good initial model, more updates gain nothing certain (docs/results)
        batch_size=20,
    ),
}


# Defaults for training from scratch over a pretrained encoder (docs/results/third_party).
NEW_MODEL = Preset(learning_rate=5e-4, max_steps=1000, batch_size=20)
NEW_FIELDS: Mapping[str, Any] = {"context_layers": 1, "attention_heads": 4}
NEW_LAYERS = 0.5  # of the encoder are kept; the last ones serve its own training task


@dataclass(frozen=True)
class Published:
    """Published settings of a task (Kurniawan et al. 2021, supplement, table 6)."""

    max_words: int  # of target sentences in training, without the tokens that models add
    learning_rate: Mapping[str, float]  # by `ChartInfo.chart_kind`
    l2: Mapping[str, float]  # strength of the pull to the initial parameters, by `ChartInfo.chart_kind`
    preset: str  # the default, which did better on most of the paper's languages (docs/results)


SOURCE_LEARNING_RATE = 1e-4
PUBLISHED = {
    BiaffineParserConfig.model_type: Published(
        30,
        {"union": 8.5e-5, "pool": 9.4e-5, "learned": 9.1e-5},
        {"union": 2.8e-5, "pool": 1.6e-4, "learned": 5.1e-4},
        RECOMMENDED,
    ),
    CrfTaggerConfig.model_type: Published(
        60,
        {"union": 5.9e-5, "pool": 2.6e-4, "learned": 4.7e-4},
        {"union": 0.1, "pool": 4.7e-3, "learned": 0.062},
        PAPER,
    ),
}


def published(model_type: str, flag: str) -> Published:
    """Return the published settings of a type of model; if missing, raise ValueError that asks for a flag."""
    if model_type not in PUBLISHED:
        raise ValueError(f"the paper has no settings for a {model_type}: give {flag}")
    return PUBLISHED[model_type]


def length_limits(kind: StructureColumns, max_length: int | None = None) -> dict[str, int]:
    """Return the limits of sentences that get charts, for `hf_xst.data.prepare`; see `SourcePool.kind`.

    `max_length` counts added tokens, and defaults to the published one.

    Raises:
        ValueError: the length is below 1, or missing for a model that the paper does not have.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length is {max_length}; expected at least 1")
    model_class = model_class_for(kind)
    added = model_class.leading + model_class.trailing
    if max_length is None:
        max_length = published(model_type_of(model_class), "--max-length").max_words + added
    return {"max_length": max_length, "added_tokens": added}


def resolve_charts(options: BuildChartsArguments, sources: Mapping[str, AnySource]) -> tuple[str, Preset]:
    """Resolve the options of build-charts: return the preset's name, and its values with those given.

    The settings of the charts have weights only if a file of weights is given.

    Raises:
        ValueError: a value is out of range, or the file of weights is broken.
    """
    name = options.preset or _default_preset(options, sources)
    preset = PRESETS[name]
    weights = options.weights or preset.weights
    settings = ChartSettings(
        options.rule,
        _first(options.sigma, preset.charts.sigma),
        options.floor,
        None if weights in (AGREEMENT, UNIFORM) else read_weights(weights),
        _first(options.keep_log_probs, preset.charts.keep_log_probs),
        options.temperature,
    )
    return name, replace(
        preset,
        charts=settings,
        weights=weights,
        rank_sources=preset.rank_sources and options.init_from is None,
        max_length=_first(options.max_length, preset.max_length),
    )


def _default_preset(options: BuildChartsArguments, sources: Mapping[str, AnySource]) -> str:
    if options.rule != "pool":
        return PAPER
    if can_average(sources):
        return RECOMMENDED
    model_type = model_type_of(model_class_for(kind_of(next(iter(sources.values())))))
    return PUBLISHED[model_type].preset if model_type in PUBLISHED else PAPER


def resolve_transfer(options: TransferArguments, info: ChartInfo) -> TransferArguments:
    """Fill in updates, batch size, learning rate and l2 of transfer for some charts.

    Raises:
        ValueError: the preset of the charts is unknown, or the paper has no setting for the type of model.
    """
    is_scratch = (options.init_from or info.initial_model) == SCRATCH
    defaults = NEW_MODEL if is_scratch and options.encoder is not None else preset_of(info)
    resolved = resolve_steps(options)
    max_steps = resolved.max_steps
    if max_steps is None and resolved.epochs is None:
        max_steps = defaults.max_steps
    rate = _first(options.learning_rate, defaults.learning_rate)
    if rate is None:
        rate = published(info.model_type, "--learning-rate").learning_rate[info.chart_kind]
    l2 = options.l2
    if l2 is None:
        l2 = 0.0 if is_scratch else published(info.model_type, "--l2").l2[info.chart_kind]
    batch_size = _first(options.batch_size, defaults.batch_size)
    return replace(resolved, max_steps=max_steps, learning_rate=rate, l2=l2, batch_size=batch_size)


def resolve_steps(options: Options) -> Options:
    """Return the options with `epochs` None if `max_steps` is given, which takes precedence."""
    if options.max_steps is None or options.epochs is None:
        return options
    default = type(options).__dataclass_fields__["epochs"].default
    if options.epochs != default:
        say(
            f"--epochs {options.epochs} is ignored because --max-steps {options.max_steps} was given",
            "yellow",
        )
    return replace(options, epochs=None)


def preset_of(info: ChartInfo) -> Preset:
    """Return the preset recorded with charts; raise ValueError if it is unknown."""
    if info.preset not in PRESETS:
        raise ValueError(
            f"the charts were made with the preset {info.preset!r}; this package knows {', '.join(PRESETS)}"
        )
    return PRESETS[info.preset]


def chart_use(options: TransferArguments, info: ChartInfo) -> ChartUse:
    """Resolve which part of the stored charts a model is trained on.

    Raises:
        ValueError: the preset of the charts is unknown, a value is out of range, or sigma is larger than that
            of the charts.
    """
    default, held, sigma = preset_of(info).use, info.settings.sigma, options.sigma
    if sigma is not None and sigma > held:
        raise ValueError(
            f"--sigma is {sigma}, but the charts hold {held} of the mass: pass at most {held}, or build "
            f"charts with --sigma {sigma}"
        )
    if sigma is None and default.sigma is not None and default.sigma < held:
        sigma = default.sigma
    return ChartUse(_first(options.best, default.best), sigma, _first(options.soft, default.soft))


def _first(given: Any, default: Any) -> Any:
    return default if given is None else given

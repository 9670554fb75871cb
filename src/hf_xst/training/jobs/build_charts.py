"""Make charts for unlabelled sentences from source models."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from huggingface_hub import hf_hub_download

from hf_xst.charts.storage import FORMAT_VERSION
from hf_xst.console import console
from hf_xst.data import WordVectors
from hf_xst.files import write_text

from ..arguments import BuildChartsArguments
from ..building import BuildCounts, ChartMaker, ChartSettings, build_shards
from ..defaults import PUBLISHED
from ..frozen import FrozenStates
from ..runs import RunFolder, package_versions
from ..sentences import annotate, read_word_vectors, unlabelled_rows
from ..sources import SourcePool, SourceSpec, joint_names, load_model, read_weights, weights_digest

PROVENANCE = "provenance.json"


def build_charts(arguments: BuildChartsArguments) -> dict[str, Any]:
    """Make charts and write them with their provenance; an interrupted run goes on.

    Args:
        arguments: see the class.

    Returns:
        The provenance, which is also in OUTPUT/provenance.json.

    Raises:
        ValueError: the sources or the sentences do not fit, or OUTPUT holds other charts.
    """
    specs = SourceSpec.parse_all(arguments.sources)
    vectors = read_word_vectors(arguments)
    models = {spec.name: load_model(spec.path, spec.revision, vectors) for spec in specs}
    start = arguments.start or specs[0].name
    if start not in models:
        raise ValueError(f"--start is {start}, which is none of the sources: {', '.join(models)}")
    first = models[start]
    names = first.names if arguments.labels == "start" else joint_names([first, *models.values()])
    limit = arguments.max_length or PUBLISHED[first.config.model_type].target_length
    rows, note = unlabelled_rows(arguments, max_length=limit, added_tokens=first.leading + first.trailing)
    console.print(note)
    rows = annotate(rows, arguments.tagger, vectors)
    settings = ChartSettings(
        arguments.rule,
        arguments.sigma,
        arguments.floor,
        read_weights(arguments.weights) if arguments.weights else None,
        arguments.keep_log_probs,
    )
    provenance = _provenance(specs, models, start, names, settings, vectors, arguments)
    folder = RunFolder(arguments.output, arguments)
    pool = SourcePool(models, names, shared_states(models, rows))
    counts = build_shards(
        rows, ChartMaker(pool, settings), folder.path, provenance, batch_words=arguments.batch_words
    )
    _report(counts)
    provenance |= {
        "sentences": note.split(": ", 1)[-1],
        "counts": asdict(counts),
        "versions": package_versions(),
    }
    write_text(folder.path / PROVENANCE, json.dumps(provenance, indent=1, ensure_ascii=False) + "\n")
    return provenance


def shared_states(models: Any, rows: Dataset) -> dict[str, FrozenStates | None]:
    """Encode the sentences once for all models that have one frozen encoder."""
    by_print: dict[str, FrozenStates] = {}
    found: dict[str, FrozenStates | None] = {}
    for name, model in models.items():
        states = FrozenStates.of(model)
        if states is not None:
            states = by_print.setdefault(states.fingerprint, states)
            states.add(model, rows["words"])
        found[name] = states
    # One model alone gains nothing from a store that holds all of its corpus.
    return found if len(models) > 1 else {}


def _provenance(
    specs: list[SourceSpec],
    models: Any,
    start: str,
    names: list[str],
    settings: ChartSettings,
    vectors: WordVectors | None,
    arguments: BuildChartsArguments,
) -> dict[str, Any]:
    space = None if vectors is None else {"name": vectors.name, "sha256": vectors.sha256}
    return {
        "format_version": FORMAT_VERSION,
        "model_type": models[start].config.model_type,
        "names": names,
        "labels": arguments.labels,
        "start": start,
        "sources": [
            {
                "name": spec.name,
                "id": spec.public_id(),
                "revision": spec.revision,
                "weights_sha256": weights_digest(models[spec.name]),
                "labels_not_in_charts": sorted(set(models[spec.name].names) - set(names)),
            }
            for spec in specs
        ],
        "vectors": space,
        "annotated_by_model": arguments.tagger is not None,
        **asdict(settings),
    }


def _report(counts: BuildCounts) -> None:
    console.print(
        f"{counts.sentences} sentences, {counts.kept / max(1, counts.groups):.2f} candidates kept a group"
    )
    if counts.without_support:
        console.print(
            f"[yellow]{counts.without_support} groups in which the sources share no support keep their best only"
        )
    for name, mass in counts.dropped_mass.items():
        console.print(
            f"[yellow]{name}: {mass:.1f} expected candidates ({mass / max(1, counts.groups):.2%}) have labels that "
            "the charts lack and were dropped; --labels union keeps them"
        )


def load_charts(path: str, revision: str | None = None) -> tuple[Dataset, dict[str, Any]]:
    """Load charts and their provenance from a folder or the Hub.

    Raises:
        ValueError: there are no charts, or their format is newer than this package.
    """
    folder = Path(path)
    if folder.is_dir():
        place = folder / PROVENANCE
        if not place.exists():
            raise ValueError(
                f"{path} has no {PROVENANCE}: build-charts has not finished there (run it again)"
            )
        files = sorted(str(file) for file in (folder / "data").glob("train-*.parquet"))
        rows = load_dataset("parquet", data_files={"train": files}, split="train")
    else:
        place = Path(hf_hub_download(path, PROVENANCE, repo_type="dataset", revision=revision))
        rows = load_dataset(path, revision=revision, split="train")
    provenance: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    if provenance["format_version"] > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {provenance['format_version']}, this package reads up to {FORMAT_VERSION}; update it"
        )
    return rows, provenance

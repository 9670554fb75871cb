"""Show trees of a CoNLL-U file, or charts of a chart data set, in the terminal or as pictures."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from hf_xst.charts.dataset import from_ragged, load_charts, structure_triples, to_mask
from hf_xst.commands.options import option
from hf_xst.data import ConlluSentence, read_conllu
from hf_xst.drawing.markup import standalone
from hf_xst.drawing.notebook import Drawing, html_page
from hf_xst.drawing.opinions import Columns
from hf_xst.drawing.views import ChartView
from hf_xst.files import check_output_path, write_text
from hf_xst.models import BiaffineParserConfig, CrfTaggerConfig
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

FORMATS = {"": "text", ".txt": "text", ".svg": "svg", ".html": "html", ".htm": "html"}
BLANK = "_"


@dataclass(kw_only=True)
class ShowArguments:
    """Show trees or charts."""

    input: str | None = option(
        "A CoNLL-U file with trees, gzipped or not; - for stdin. The flag may be left out."
    )
    charts: str | None = option(
        "Charts in its place: a folder that build-charts wrote, or a data set on the Hub."
    )
    revision: str | None = option("Revision of the charts on the Hub.")
    gold: str | None = option(
        "With --charts: a CoNLL-U file whose annotation of the same sentence is marked."
    )
    index: list[int] = option(
        "Numbers of the sentences, the first one being 1; all of a file without it.", []
    )
    sent_id: list[str] = option("Or their sent_ids.", [])
    confidence: str = option(
        "Colour arcs by the probabilities that MISC holds under this key, if it does.", "ArcProb"
    )
    format: Literal["text", "svg", "html"] | None = option(
        "Text for a terminal, one picture, or a page of them; by default as the output is named."
    )
    output: str = option("The file; - for stdout.", "-")


def show(arguments: ShowArguments) -> None:
    """Draw the sentences that are asked for.

    Args:
        arguments: see the class.

    Raises:
        ValueError: not exactly one of input and charts is given, a sentence is not there or has no tree, or
            several sentences shall be one picture.
    """
    if (arguments.input is None) == (arguments.charts is None):
        raise ValueError("give either a CoNLL-U file (hf-xst show FILE.conllu) or --charts DIR")
    if arguments.output != "-":
        check_output_path(arguments.output, arguments.input, arguments.gold)
    if arguments.input is not None and Path(arguments.input).is_dir():
        raise ValueError(f"{arguments.input} is a folder; if it holds charts, say --charts {arguments.input}")
    form = arguments.format or _format_of(arguments.output)
    found = _trees(arguments) if arguments.charts is None else _charts(arguments)
    if form == "text":
        _write_text(found, arguments.output)
        return
    drawings = list(found)
    if form == "html":
        content = html_page(drawings, Path(arguments.input or arguments.charts or "").name)
    elif len(drawings) == 1:
        content = standalone(drawings[0][1].svg)
    else:
        raise ValueError(
            f"an SVG file holds one sentence, found {len(drawings) or 'none'}: choose one by --index or "
            "--sent_id, or ask for --format html"
        )
    _write(content, arguments.output)


def _format_of(output: str) -> str:
    suffix = "" if output == "-" else Path(output).suffix
    if suffix not in FORMATS:
        raise ValueError(
            f"--output {output}: found {suffix}, expected {', '.join(filter(None, FORMATS))}; or say what is "
            "to be written by --format"
        )
    return FORMATS[suffix]


def _write_text(found: Iterator[tuple[str, Drawing]], output: str) -> None:
    blocks = (f"# {name}\n{drawing.text}\n" for name, drawing in found)
    if output == "-":  # one by one: a long file begins to show at once
        for place, block in enumerate(blocks):
            sys.stdout.write(("\n" if place else "") + block)
    else:
        write_text(output, "\n".join(blocks))


def _write(content: str, output: str) -> None:
    if output == "-":
        sys.stdout.write(content)
    else:
        write_text(output, content)


def _trees(arguments: ShowArguments) -> Iterator[tuple[str, Drawing]]:
    source = sys.stdin.buffer if arguments.input == "-" else arguments.input
    assert source is not None
    wanted_numbers, wanted_names = set(arguments.index), set(arguments.sent_id)
    everything = not wanted_numbers and not wanted_names
    for sentence in read_conllu(source):
        if everything or sentence.number in wanted_numbers or sentence.sent_id in wanted_names:
            wanted_numbers.discard(sentence.number)
            wanted_names.discard(sentence.sent_id or "")
            yield sentence.identifier, sentence_drawing(sentence, arguments.confidence)
            if not everything and not wanted_numbers and not wanted_names:
                return
    _check_found(wanted_numbers, wanted_names, str(arguments.input))


def _check_found(numbers: set[int], names: set[str], place: str) -> None:
    missing = [*(f"number {number}" for number in sorted(numbers)), *sorted(names)]
    if missing:
        raise ValueError(f"{place} has no sentence {', '.join(missing)} (numbers count from 1)")


def sentence_drawing(sentence: ConlluSentence, confidence: str = "ArcProb") -> Drawing:
    """Draw the tree of a CoNLL-U sentence.

    Args:
        sentence: the sentence.
        confidence: the key in MISC of the probability of each word's arc; arcs have no colour without it.

    Raises:
        ConlluError: the sentence has no tree, or some of its words have a probability and others not.
    """
    heads = _heads(sentence)
    upos = None if set(sentence.upos) == {BLANK} else sentence.upos
    try:
        return Drawing.tree(
            sentence.words,
            heads,
            sentence.deprels,
            upos=upos,
            confidence=_from_misc(sentence, confidence),
            title=sentence.text,
        )
    except ValueError as problem:
        raise sentence.error(str(problem)) from problem


def _heads(sentence: ConlluSentence) -> list[int]:
    if not all(head.isdecimal() for head in sentence.heads):
        raise sentence.error("its heads are not all numbers; expected a tree (hf-xst predict makes one)")
    return [int(head) for head in sentence.heads]


def _from_misc(sentence: ConlluSentence, key: str) -> list[float] | None:
    entries = [
        dict(entry.partition("=")[::2] for entry in misc.split("|")) for misc in sentence.column("misc")
    ]
    if not any(key in entry for entry in entries):
        return None
    found = []
    for word, entry in zip(sentence.words, entries, strict=True):
        try:
            found.append(float(entry[key]))
        except (KeyError, ValueError):
            raise ValueError(f"word {word!r} has no number {key}=... in MISC, other words have") from None
    return found


def _charts(arguments: ShowArguments) -> Iterator[tuple[str, Drawing]]:
    assert arguments.charts is not None
    rows, provenance = load_charts(arguments.charts, arguments.revision)
    places = [number - 1 for number in arguments.index]
    if not all(0 <= place < len(rows) for place in places):
        raise ValueError(f"{arguments.charts} holds {len(rows)} charts; --index goes from 1 to {len(rows)}")
    if arguments.sent_id:
        place_of = {name: place for place, name in enumerate(rows["sent_id"])}
        _check_found(set(), set(arguments.sent_id) - set(place_of), arguments.charts)
        places += [place_of[name] for name in arguments.sent_id]
    gold = None if arguments.gold is None else _by_words(arguments.gold)
    for place in places or range(len(rows)):
        row = rows[place]
        right = None if gold is None else gold.get(tuple(row["words"]))
        yield row["sent_id"], row_view(row, provenance, right).drawing()


def _by_words(path: str) -> dict[tuple[str, ...], ConlluSentence]:
    return {tuple(sentence.words): sentence for sentence in read_conllu(path)}


def row_view(
    row: Mapping[str, Any], provenance: Mapping[str, Any], gold: ConlluSentence | None = None
) -> ChartView:
    """Read a row of a chart data set: the kept candidates with the sources' best structures, as trained on.

    Args:
        row: the row.
        provenance: what stands beside the charts.
        gold: the same sentence with annotation.

    Raises:
        ValueError: the charts are of a kind that cannot be drawn.
    """
    names = provenance["names"]
    space = _space(provenance["model_type"], len(row["offsets"]) - 1, len(names))
    kept = to_mask(from_ragged([row]), space.valid)
    for best in row["source_best"]:
        kept |= to_mask(structure_triples([best]), space.valid)
    best = _columns_of(space, row["pool_best"], names) if min(row["pool_best"], default=-1) >= 0 else None
    upos = None if set(row["upos"]) == {BLANK} else row["upos"]
    return ChartView(
        space,
        names,
        kept[0],
        row["words"],
        upos,
        None if gold is None else _gold_columns(space, gold, names, _label_column(provenance)),
        best,
    )


def _space(model_type: str, groups: int, names: int) -> Structure:
    if model_type == BiaffineParserConfig.model_type:
        return DependencyTreeCRF(torch.zeros(1, groups + 1, groups + 1, names))
    if model_type == CrfTaggerConfig.model_type:
        return LinearChainCRF(torch.zeros(1, groups, names, names))
    raise ValueError(
        f"cannot draw charts of {model_type}; expected those of a parser or tagger of this package"
    )


def _columns_of(space: Structure, candidates: Sequence[int], names: Sequence[str]) -> Columns:
    best = space.best_from_candidates(torch.tensor([candidates]))
    if isinstance(space, DependencyTreeCRF):
        heads, labels = best
        return {"head": heads[0].tolist(), "deprel": [names[label] for label in labels[0].tolist()]}
    return {"tag": [names[tag] for tag in best[0, 1:-1].tolist()]}


def _label_column(provenance: Mapping[str, Any]) -> str:
    return str((provenance.get("label_settings") or {}).get("column") or "upos")


def _gold_columns(space: Structure, gold: ConlluSentence, names: Sequence[str], column: str) -> Columns:
    if isinstance(space, DependencyTreeCRF):
        labels = [label if label in names else label.partition(":")[0] for label in gold.deprels]
        return {"head": _heads(gold), "deprel": labels}
    if column not in ("upos", "xpos"):
        raise ValueError(f"the charts are of {column}, which --gold cannot show; leave it out")
    return {"tag": gold.column(column)}

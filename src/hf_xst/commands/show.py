"""Draw trees of a CoNLL-U file, or charts of a chart data set, as text, SVG or an HTML page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from hf_xst.charts.dataset import ChartInfo, from_ragged, load_charts, structure_triples, to_mask
from hf_xst.commands.options import takes_options
from hf_xst.console import printable
from hf_xst.data import ConlluSentence, read_conllu
from hf_xst.data.pairing import pair_sentences
from hf_xst.data.sentence import BLANK, misc_attribute
from hf_xst.drawing.markup import standalone
from hf_xst.drawing.tables import Columns
from hf_xst.drawing.text import check_columns
from hf_xst.drawing.views import ChartView, Drawing, html_page
from hf_xst.files import protect_files, protect_inputs, write_text
from hf_xst.models.kinds import TASK_OF_MODEL_TYPE
from hf_xst.records import option
from hf_xst.structures import DependencyTreeCRF, LinearChainCRF
from hf_xst.structures.base import Structure

FORMATS = {"": "text", ".txt": "text", ".svg": "svg", ".html": "html", ".htm": "html"}
NamedDrawings = Iterator[tuple[str, Drawing]]


@dataclass(frozen=True, kw_only=True)
class ShowArguments:
    """Show trees or charts."""

    input: str | None = option(
        "CoNLL-U file with trees, plain or gzipped; - for stdin. The flag is optional."
    )
    charts: str | None = option(
        "Charts instead: a folder written by build-charts, or a data set on the Hub (ID[@REVISION])."
    )
    gold: str | None = option(
        "With --charts: CoNLL-U file with gold annotation of the same sentences, to mark."
    )
    index: list[int] = option("Numbers of the sentences, from 1; defaults to all sentences.", [])
    sent_id: list[str] = option("sent_ids of the sentences.", [])
    confidence: str = option("Key in MISC of the probabilities that colour the arcs, if present.", "ArcProb")
    format: Literal["text", "svg", "html"] | None = option(
        "Text for a terminal, one picture, or a page of pictures; defaults to the suffix of the output."
    )
    output: str = option("Output file; - for stdout.", "-")
    overwrite: bool = option("Replace an output that is not a picture or page of hf-xst.", False)


@takes_options(ShowArguments)
def show(arguments: ShowArguments) -> None:
    """Draw the selected sentences.

    Raises:
        ValueError: if not exactly one of input and charts is given, a sentence does not exist or has no tree,
            or one SVG file is requested for several sentences.
    """
    if (arguments.input is None) == (arguments.charts is None):
        raise ValueError("pass either a CoNLL-U file (hf-xst show FILE.conllu) or --charts DIR")
    if arguments.output != "-":
        protect_inputs(arguments, arguments.output)
    if not arguments.overwrite:
        protect_files(arguments.output)
    if arguments.input is not None and Path(arguments.input).is_dir():
        raise ValueError(f"{arguments.input} is a folder; for a folder of charts: --charts {arguments.input}")
    output_format = arguments.format or _format_of(arguments.output)
    named = _draw_trees(arguments) if arguments.charts is None else _draw_charts(arguments)
    if output_format == "text":
        _write_text(named, arguments.output)
        return
    drawings = list(named)
    if output_format == "html":
        content = html_page(drawings, Path(arguments.input or arguments.charts or "").name)
    elif len(drawings) == 1:
        content = standalone(drawings[0][1].svg)
    else:
        raise ValueError(
            f"an SVG file holds one sentence, found {len(drawings)}: choose one with --index or --sent-id, "
            "or write a page (--format html)"
        )
    if arguments.output == "-":
        sys.stdout.write(content)
    else:
        write_text(arguments.output, content)


def _format_of(output: str) -> str:
    suffix = "" if output == "-" else Path(output).suffix
    if suffix not in FORMATS:
        known = ", ".join(filter(None, FORMATS))
        raise ValueError(f"--output {output}: found {suffix}, expected {known}; or choose a --format")
    return FORMATS[suffix]


def _write_text(named: NamedDrawings, output: str) -> None:
    blocks = (f"# {printable(name)}\n{drawing.text}\n" for name, drawing in named)
    if output != "-":
        write_text(output, "\n".join(blocks))
        return
    for index, block in enumerate(blocks):  # one by one: the first trees of a long file appear at once
        sys.stdout.write(("\n" if index else "") + block)


def _check_all_found(numbers: set[int], names: set[str], path: str) -> None:
    missing = [*(f"number {number}" for number in sorted(numbers)), *sorted(names)]
    if missing:
        raise ValueError(f"{path} has no sentence {', '.join(missing)} (numbers count from 1)")


# -- trees -----------------------------------------------------------------------------------------------


def _draw_trees(arguments: ShowArguments) -> NamedDrawings:
    source = sys.stdin.buffer if arguments.input == "-" else str(arguments.input)
    numbers, names = set(arguments.index), set(arguments.sent_id)
    everything = not numbers and not names
    for sentence in read_conllu(source):
        if everything or sentence.number in numbers or sentence.sent_id in names:
            numbers.discard(sentence.number)
            names.discard(sentence.sent_id or "")
            yield sentence.identifier, sentence_drawing(sentence, arguments.confidence)
            if not everything and not numbers and not names:
                return
    _check_all_found(numbers, names, str(arguments.input))


def sentence_drawing(sentence: ConlluSentence, confidence: str = "ArcProb") -> Drawing:
    """Draw the tree of a CoNLL-U sentence; arcs are coloured by the probabilities in MISC, if present.

    Raises:
        ConlluError: if the sentence has no tree, or only some words have a probability.
    """
    heads = sentence.head_numbers
    upos = None if set(sentence.upos) == {BLANK} else sentence.upos
    try:
        values = _from_misc(sentence, confidence)
        title = sentence.text
        return Drawing.tree(
            sentence.words, heads, sentence.deprels, upos=upos, confidence=values, title=title
        )
    except ValueError as error:
        raise sentence.error(str(error)) from error


def _from_misc(sentence: ConlluSentence, key: str) -> list[float] | None:
    texts = [misc_attribute(cell, key) for cell in sentence.column("misc")]
    if set(texts) == {BLANK}:
        return None
    values = []
    for word, text in zip(sentence.words, texts, strict=True):
        try:
            values.append(float(text))
        except ValueError:
            raise ValueError(f"word {word!r} has no valid {key}=... in MISC, unlike others") from None
    return values


# -- charts ----------------------------------------------------------------------------------------------


def _draw_charts(arguments: ShowArguments) -> NamedDrawings:
    path = str(arguments.charts)
    rows, info = load_charts(path)
    if not all(1 <= number <= len(rows) for number in arguments.index):
        raise ValueError(f"{path} holds {len(rows)} charts; --index goes from 1 to {len(rows)}")
    selected = [number - 1 for number in arguments.index]
    if arguments.sent_id:
        index_of = {name: index for index, name in enumerate(rows["sent_id"])}
        _check_all_found(set(), set(arguments.sent_id) - set(index_of), path)
        selected += [index_of[name] for name in arguments.sent_id]
    shown = rows.select(selected) if selected else rows
    gold: list[ConlluSentence | None] = [None] * len(shown)
    if arguments.gold is not None:
        sentences = list(read_conllu(arguments.gold))
        found = [(each.sent_id, each.words) for each in sentences]
        wanted = list(zip(shown["sent_id"], shown["words"], strict=True))
        gold = [sentences[index] for index in pair_sentences(found, wanted, arguments.gold)]
    for row, sentence in zip(shown, gold, strict=True):
        yield row["sent_id"], row_view(row, info, sentence).drawing()


def row_view(row: Mapping[str, Any], info: ChartInfo, gold: ConlluSentence | None = None) -> ChartView:
    """Read a row of a chart data set: its candidates with the sources' best structures, as in training.

    Raises:
        ValueError: if charts of this kind cannot be drawn.
    """
    check_columns(row["words"])
    space = _space(info.model_type, len(row["offsets"]) - 1, len(info.names))
    kept = to_mask(from_ragged([row]), space.valid)
    for best in row["source_best"]:
        kept |= to_mask(structure_triples([best]), space.valid)
    has_best = min(row["pool_best"], default=-1) >= 0
    return ChartView(
        space,
        info.names,
        kept[0],
        row["words"],
        upos=None if set(row["upos"]) == {BLANK} else row["upos"],
        gold=None if gold is None else _gold_columns(space, gold, info),
        best=_best_columns(space, row["pool_best"], info.names) if has_best else None,
    )


def _space(model_type: str, groups: int, labels: int) -> Structure:
    task = TASK_OF_MODEL_TYPE.get(model_type)
    if task == "parser":
        return DependencyTreeCRF(torch.zeros(1, groups + 1, groups + 1, labels))
    if task == "tagger":
        return LinearChainCRF(torch.zeros(1, groups, labels, labels))
    raise ValueError(f"cannot draw charts of {model_type}; expected charts of a parser or tagger")


def _best_columns(space: Structure, candidates: Sequence[int], names: Sequence[str]) -> Columns:
    best = space.best_from_candidates(torch.tensor([candidates]))
    if isinstance(space, DependencyTreeCRF):
        heads, labels = best
        return {"head": heads[0].tolist(), "deprel": [names[label] for label in labels[0].tolist()]}
    return {"tag": [names[tag] for tag in best[0, 1:-1].tolist()]}


def _gold_columns(space: Structure, gold: ConlluSentence, info: ChartInfo) -> Columns:
    if isinstance(space, DependencyTreeCRF):
        labels = [label if label in info.names else label.partition(":")[0] for label in gold.deprels]
        return {"head": gold.head_numbers, "deprel": labels}
    column = str(info.label_settings.get("column") or "upos")
    if column not in ("upos", "xpos"):
        raise ValueError(f"the charts are of {column}, which --gold does not support; leave it out")
    return {"tag": gold.column(column)}

"""Phrases of a language without a treebank: `python constituency_trees.py [FOLDER [SENTENCES]]`, one minute.

The structure is `ConstituencyTreeCRF`, binary trees whose constituents have labels. As in
`train_a_structure.py`, a class turns states into its scores; charts, trainers and commands stay. Gold trees
come from the dependency trees of the invented languages: a constituent has the UPOS tag of its head.
"""

# ruff: noqa: D102 - `StructuredModel` documents its methods
from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from shell import run, say, tutorial
from torch import Tensor, nn
from transformers import TrainingArguments, set_seed

from hf_xst import ChartTrainer, SupervisedTrainer, load_charts, load_treebank, prepare, read_vectors
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.modeling import Columns, Row, StructuredModel, StructuredOutput, register
from hf_xst.models.running import predict_rows
from hf_xst.sources.loading import load_model
from hf_xst.structures import ConstituencyTreeCRF

SOURCES = [settings.name for settings in source_languages()]
LONGEST = 20  # words of a sentence: time grows with the third power


def constituents(row: Row) -> list[str]:
    """Return "first last label" for each constituent; an empty list if the tree is not projective.

    A word takes its right dependents, then its left ones, nearest first: n words give 2n - 1 constituents.
    """
    spans: list[str] = []

    def grow(word: int) -> tuple[int, int]:
        first = last = word
        spans.append(f"{first} {last} {row['upos'][word]}")
        dependents = [d for d, head in enumerate(row["head"]) if head == word + 1]
        for dependent in [*(d for d in dependents if d > word), *(d for d in dependents[::-1] if d < word)]:
            start, end = grow(dependent)
            if start != last + 1 and end != first - 1:
                raise ValueError("not projective")
            first, last = min(first, start), max(last, end)
            spans.append(f"{first} {last} {row['upos'][word]}")
        return first, last

    try:
        grow(row["head"].index(0))
    except ValueError:
        return []
    return spans


class PhraseConfig(StructuredConfig):
    """Labels, encoder and sizes, as every model has them."""

    model_type = "tutorial_phrases"


class PhraseParser(StructuredModel):
    """A layer over the states of the first and the last word; scores (B, N, N, L), gold labels (B, N, N)."""

    config_class = PhraseConfig
    structure = ConstituencyTreeCRF
    leading, trailing = 0, 0  # special words before and after the sentence
    label_column = "upos"
    main_metric = "f1"
    columns = ("constituents",)

    def __init__(self, config: PhraseConfig) -> None:
        super().__init__(config)
        size = self.encoder.output_size
        self.first, self.last = nn.Linear(size, 64), nn.Linear(size, 64)
        self.output = nn.Linear(64, len(self.names))
        self.post_init()

    @classmethod
    def settings_from_rows(cls, rows: Iterable[Row], *_: Any) -> dict[str, Any]:
        settings = super().settings_from_rows(rows)
        return settings | {
            "labels": ["-", *settings["labels"]],
            "uses_upos": False,
        }  # label 0: no constituent

    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        return self.output((self.first(states)[:, :, None] + self.last(states)[:, None]).relu())

    def distribution(self, output: StructuredOutput) -> ConstituencyTreeCRF:
        return ConstituencyTreeCRF(output.scores, output.lengths)

    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        return -self.distribution(output).log_prob(labels)

    def units(self, labels: Tensor) -> Tensor:
        return labels.new_ones(len(labels))  # the loss of a sentence is for the sentence

    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        return [(self.output, "weight", (0,)), (self.output, "bias", (0,))]

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        index_of = {name: index for index, name in enumerate(names or self.names)}
        words = max(len(row["words"]) for row in rows)
        labels = torch.full((len(rows), words, words), -1)
        for sentence, row in zip(labels, rows, strict=True):
            length = len(row["words"])
            sentence[:length, :length] = torch.ones(length, length).triu() - 1  # no constituent, unless
            for span in row["constituents"]:
                first, last, label = span.split()
                sentence[int(first), int(last)] = index_of.get(label, -1)
        return labels

    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Tensor:
        return labels

    def decode(self, best: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> list[Columns]:
        alphabet = names or self.names
        return [
            {
                "constituents": [
                    f"{i} {j} {alphabet[labels[i, j]]}" for i, j in (labels > 0).nonzero().tolist()
                ]
            }
            for labels in best
        ]


register(PhraseConfig, PhraseParser)  # from here on AutoModel and the commands load it by its folder


def with_constituents(path: str) -> Dataset:
    """Read the projective sentences of a treebank that are not too long."""
    rows, _ = prepare(load_treebank(f"train={path}")["train"], gold=True, max_length=LONGEST)
    return rows.map(lambda row: {"constituents": constituents(row)}).filter(lambda row: row["constituents"])


def bracket_f1(model: StructuredModel, rows: Dataset) -> float:
    """Return labelled F1 of the constituents of two or more words, in percent."""
    right = total = 0
    for row, columns in zip(rows, predict_rows(model, rows), strict=True):
        brackets = [
            {span for span in spans if span.split()[0] != span.split()[1]}
            for spans in (columns["constituents"], row["constituents"])
        ]
        right, total = right + len(brackets[0] & brackets[1]), total + len(brackets[0]) + len(brackets[1])
    return 200 * right / total


def main(sentences: int) -> dict[str, float]:
    """Train sources, make charts from their pool, train on the charts; return F1 on the target by model."""
    write_languages(Path(), sentences, seed=1)
    loop = {"max_steps": sentences // 2, "report_to": "none", "save_strategy": "no"}
    settings = TrainingArguments("trainer", learning_rate=4e-3, **loop)
    for name in SOURCES:
        rows = with_constituents(f"{name}-train.conllu")
        set_seed(1)
        config = PhraseConfig(**PhraseParser.settings_from_rows(rows), context_layers=1, attention_heads=4)
        model = PhraseParser.from_vectors(config, read_vectors(f"demo.{name}.vec"))
        SupervisedTrainer(model, settings, rows).train()
        model.save_pretrained(f"models/{name}")

    vectors, models = f"--vectors demo.{TARGET}.vec", " ".join(f"models/{name}" for name in SOURCES)
    text = f"--text {TARGET}-train.conllu --max-length {LONGEST}"
    run(f"build-charts --sources {models} {text} {vectors} --output charts")
    words, test = read_vectors(f"demo.{TARGET}.vec"), with_constituents(f"{TARGET}-test.conllu")
    parsers = {name: load_model(f"models/{name}", vectors=words) for name in SOURCES}
    scores = {name: bracket_f1(parser, test) for name, parser in parsers.items()}
    charts, info = load_charts("charts")
    mine = parsers[SOURCES[0]]  # the initial model
    settings = TrainingArguments("trainer", learning_rate=1e-3, **loop)
    ChartTrainer(mine, settings, charts, info.names).train()
    scores["mine"] = bracket_f1(mine, test)
    say(f"F1 on {len(test)} sentences: {', '.join(f'{name} {score:.1f}' for name, score in scores.items())}")
    return scores


if __name__ == "__main__":
    tutorial(main, __doc__, "runs/phrases", 400)

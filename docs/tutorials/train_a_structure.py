"""A model over a structure of your own: `python train_a_structure.py [FOLDER [SENTENCES]]`, one minute.

The structure is that of `add_a_structure.py`: here a tag for each word, which asks no other word. What is new
is a class that turns states into scores and names into numbers. Charts, trainers and commands stay.
"""

# ruff: noqa: D102 - `StructuredModel` documents its methods
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from add_a_structure import FreeChoices
from shell import run, tutorial
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import TrainingArguments, set_seed

from hf_xst import ChartTrainer, SupervisedTrainer, load_charts, load_treebank, prepare, read_vectors
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.modeling import Row, StructuredModel, StructuredOutput, register
from hf_xst.sources.loading import load_model
from hf_xst.training.collation import ChartUse

Columns = dict[str, list[Any]]
SOURCES = [settings.name for settings in source_languages()]


class FreeTaggerConfig(StructuredConfig):
    """Labels, encoder and sizes, as every model has them."""

    model_type = "tutorial_free_tagger"


class FreeTagger(StructuredModel):
    """A linear layer over the encoder; `scores` are (B, N, T), gold labels (B, N)."""

    config_class = FreeTaggerConfig
    structure = FreeChoices
    leading, trailing = 0, 0  # special words before and after the sentence
    label_column = "upos"
    main_metric = "accuracy"
    columns = ("upos",)

    def __init__(self, config: FreeTaggerConfig) -> None:
        super().__init__(config)
        self.output = nn.Linear(self.encoder.output_size, len(self.names))
        self.post_init()

    # States to scores, scores to a distribution: charts and their loss need no more.
    def scores(self, states: Tensor, lengths: Tensor) -> Tensor:
        return self.output(states)

    def distribution(self, output: StructuredOutput) -> FreeChoices:
        return FreeChoices(output.scores, output.lengths)

    # Training of sources: a loss a sentence, and how many words it is a sum over.
    def supervised_losses(self, output: StructuredOutput, labels: Tensor) -> Tensor:
        chosen = output.scores.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        return -torch.where(labels >= 0, chosen, 0.0).sum(-1)

    def units(self, labels: Tensor) -> Tensor:
        return (labels >= 0).sum(-1)

    # Names to numbers and back. Charts and sources may differ in their names: an alphabet can be given.
    def label_parameters(self) -> list[tuple[nn.Module, str, tuple[int, ...]]]:
        return [(self.output, "weight", (0,)), (self.output, "bias", (0,))]

    def encode_gold(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> Tensor:
        place = {name: index for index, name in enumerate(names or self.names)}
        tags = [torch.tensor([place.get(tag, -1) for tag in row["upos"]]) for row in rows]
        return pad_sequence(tags, batch_first=True, padding_value=-1)

    def gold_best(self, labels: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> Tensor:
        return labels

    def decode(self, best: Tensor, lengths: Tensor, names: Sequence[str] | None = None) -> list[Columns]:
        alphabet = [*(names or self.names), "_"]  # the last one for -1, where there is no structure
        rows = zip(best.tolist(), lengths.tolist(), strict=True)
        return [{"upos": [alphabet[tag] for tag in row[:length]]} for row, length in rows]


register(FreeTaggerConfig, FreeTagger)  # from here on AutoModel and the commands load it by its folder


def main(sentences: int) -> None:
    """Train sources, let them make charts, train on the charts, score."""
    write_languages(Path(), sentences, seed=1)
    loop = {"learning_rate": 2e-3, "max_steps": 2 * sentences, "report_to": "none"}
    for name in SOURCES:
        rows, _ = prepare(load_treebank(f"train={name}-train.conllu")["train"], gold=True)
        set_seed(1)
        config = FreeTaggerConfig(**FreeTagger.settings_from_rows(rows), context_layers=1, attention_heads=4)
        model = FreeTagger.from_vectors(config, read_vectors(f"demo.{name}.vec"))
        SupervisedTrainer(model, TrainingArguments("trainer", **loop), rows).train()
        model.save_pretrained(f"models/{name}")

    vectors, models = f"--vectors demo.{TARGET}.vec", " ".join(f"models/{name}" for name in SOURCES)
    text = f"--text {TARGET}-train.conllu --max-length 60 --keep-log-probs true"
    run(f"build-charts --sources {models} {text} {vectors} --output charts")
    model = load_model(f"models/{SOURCES[0]}", vectors=read_vectors(f"demo.{TARGET}.vec"))  # the start
    charts, info = load_charts("charts")
    settings = TrainingArguments("trainer", **loop | {"learning_rate": 3e-4})
    use = ChartUse(soft=0.5)  # half of the loss is the cross-entropy against the pool itself
    ChartTrainer(model, settings, charts, info.names, l2=1e-3, use=use).train()
    model.save_pretrained("models/mine")
    gold = f"--treebank test={TARGET}-test.conllu {vectors}"
    for name in (SOURCES[0], "mine"):
        run(f"evaluate --model models/{name} {gold} --output scores/{name}")
    predict = f"predict --model models/mine --input {TARGET}-test.conllu --confidence true"
    run(f"{predict} --output tagged.conllu --overwrite true")


if __name__ == "__main__":
    tutorial(main, __doc__, "runs/my-structure", 400)

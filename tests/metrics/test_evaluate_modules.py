"""The metrics as modules of the `evaluate` library."""

from __future__ import annotations

import sys
from pathlib import Path

import evaluate
import evaluate.config
import numpy as np
import pytest

import hf_xst.metrics
from hf_xst.metrics.ud_attachment import UdAttachment
from hf_xst.metrics.ud_tagging import UdTagging

FOLDER = Path(hf_xst.metrics.__file__).parent
GUESSED_TREES = [
    {"head": [2, 0], "deprel": ["det", "root"]},
    {"head": [2, 0, 2], "deprel": ["obj", "root", "dep"]},
]
GOLD_TREES = [
    {"head": [2, 0], "deprel": ["det", "root"], "upos": ["DET", "NOUN"]},
    {"head": [2, 0, 2], "deprel": ["nsubj", "root", "punct"], "upos": ["NOUN", "VERB", "PUNCT"]},
]
TREE_SCORES = {
    "uas": 100.0,
    "las": 75.0,
    "uas_punct": 100.0,
    "las_punct": 60.0,
    "words": 5,
    "words_without_punct": 4,
}


@pytest.fixture(scope="module", autouse=True)
def private_cache(tmp_path_factory):
    """Keep the library's caches out of the home folder; it imports modules from there by name."""
    folder = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.config, "HF_METRICS_CACHE", str(folder / "metrics"))
        patch.setattr("evaluate.loading.init_hf_modules", lambda cache=None: str(folder))
        patch.syspath_prepend(str(folder))
        yield
    for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
        del sys.modules[name]


@pytest.fixture(params=["loaded by path", "from the class"])
def attachment(request):
    return evaluate.load(str(FOLDER / "ud_attachment.py")) if "path" in request.param else UdAttachment()


def test_attachment(attachment):
    assert attachment.compute(predictions=GUESSED_TREES, references=GOLD_TREES) == TREE_SCORES


def test_batches_of_arrays(attachment):
    for guess, gold in zip(GUESSED_TREES, GOLD_TREES, strict=True):
        arrays = {"head": np.array(guess["head"]), "deprel": guess["deprel"]}
        attachment.add_batch(predictions=[arrays], references=[gold])
    assert attachment.compute() == TREE_SCORES


def test_strip_subtypes(attachment):
    guess = [{"head": [0], "deprel": ["root:x"]}]
    gold = [{"head": [0], "deprel": ["root"], "upos": ["VERB"]}]
    assert attachment.compute(predictions=guess, references=gold)["las"] == 100.0
    assert attachment.compute(predictions=guess, references=gold, strip_subtypes=False)["las"] == 0.0


def test_invalid_rows_are_refused(attachment):
    with pytest.raises(ValueError, match="word 2 has no gold head"):
        attachment.compute(predictions=GUESSED_TREES[:1], references=[GOLD_TREES[0] | {"head": [2, None]}])
    with pytest.raises(ValueError, match="No word to score"):
        attachment.compute(predictions=[], references=[])


@pytest.mark.parametrize("origin", ["loaded by path", "from the class"])
def test_tagging(origin):
    metric = evaluate.load(str(FOLDER / "ud_tagging.py")) if "path" in origin else UdTagging()
    scores = metric.compute(
        predictions=[{"upos": ["NOUN", "VERB", "ADJ", "PUNCT"]}, {"upos": ["ADJ"]}],
        references=[{"upos": ["NOUN", "VERB", "NOUN", "PUNCT"]}, {"upos": ["ADJ"]}],
    )
    assert scores["accuracy"] == 80.0
    assert list(scores["per_tag"]) == ["ADJ", "NOUN", "PUNCT", "VERB"]
    assert scores["per_tag"]["NOUN"]["recall"] == 50.0

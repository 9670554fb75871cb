"""Compare the scores with the official scorer of Universal Dependencies."""

from __future__ import annotations

import io

import numpy as np
import pytest

from helpers.random_trees import random_heads
from hf_xst.metrics import attachment_scores, tag_scores

udeval = pytest.importorskip("udtools.udeval")
RELATIONS = ["nsubj", "obj", "obl", "obl:arg", "nmod", "nmod:poss", "punct"]
TAGS = ["NOUN", "VERB", "PUNCT", "ADJ"]


def random_rows(source, lengths):
    rows = []
    for words in lengths:
        heads = random_heads(source, words)
        relations = source.choice(RELATIONS, words).tolist()
        rows.append(
            {
                "words": [f"w{position}" for position in range(words)],
                "head": heads,
                "deprel": [
                    "root" if head == 0 else name for head, name in zip(heads, relations, strict=True)
                ],
                "upos": source.choice(TAGS, words).tolist(),
            }
        )
    return rows


def official(rows):
    lines = []
    for row in rows:
        columns = zip(row["words"], row["upos"], row["head"], row["deprel"], strict=True)
        for position, (word, tag, head, relation) in enumerate(columns, start=1):
            lines.append(f"{position}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_\n")
        lines.append("\n")
    return udeval.load_conllu(io.StringIO("".join(lines)), "test", {})


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_the_official_ones(seed):
    source = np.random.default_rng(seed)
    lengths = source.integers(1, 15, size=20).tolist()
    gold, guess = random_rows(source, lengths), random_rows(source, lengths)
    theirs = udeval.evaluate(official(gold), official(guess))
    ours = attachment_scores(guess, gold)
    assert ours["uas_punct"] == pytest.approx(100 * theirs["UAS"].f1)
    assert ours["las_punct"] == pytest.approx(100 * theirs["LAS"].f1)
    assert 0 < ours["las_punct"] < ours["uas_punct"] < 100
    assert tag_scores(guess, gold)["accuracy"] == pytest.approx(100 * theirs["UPOS"].f1)

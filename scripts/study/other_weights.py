"""Learn pool weights by the published search and by group, from the sentences that `learn-weights` draws.

The options are those of `hf-xst learn-weights`. OUTPUT gets published_weights.yaml and other_weights.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from grouped_weights import learn_grouped_weights
from published_weights import published_weights

from hf_xst.cli import parse
from hf_xst.commands.learn_weights import LearnWeightsArguments, read_lesson
from hf_xst.files import write_text
from hf_xst.sources.agreement import write_weights


def learn_other_weights(options: LearnWeightsArguments) -> None:
    """Learn both kinds of weights and write them with their losses, in nats per word."""
    lesson, _ = read_lesson(options)
    published, updates = published_weights(lesson.groups, np.array(lesson.lengths) + 1, seed=options.seed)
    weights = dict(zip(lesson.names, published.tolist(), strict=True))
    grouped = learn_grouped_weights(lesson.groups)
    content = {
        "published": weights,
        "published_updates": updates,
        "grouped": grouped.by_name(lesson.names),
        "nll": {
            "published": lesson.loss(published),
            "grouped": lesson.loss(grouped.of_groups(lesson.groups)),
        },
    }
    write_weights(Path(options.output, "published_weights.yaml"), weights)
    write_text(Path(options.output, "other_weights.json"), json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    about = (__doc__ or "").partition("\n")[0]
    learn_other_weights(parse(LearnWeightsArguments, "other_weights.py", about, sys.argv[1:]))

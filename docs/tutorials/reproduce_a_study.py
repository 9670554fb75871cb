"""A study of your own, resumable, with its report: `python reproduce_a_study.py [FOLDER [SENTENCES]]`.

The same steps with `configs/full.yaml` and the real treebanks make the paper's tables again. A study is a
graph of cells (source model, charts, transferred model, scores), each kept as one JSON file under a key of
all that it depends on; whatever is killed goes on where it stopped, and the report needs these files alone.
At the end a second file adds two seeds in the same folder; it says only in what it differs from the first.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from shell import run, tutorial

from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options


def main(sentences: int) -> None:
    """Write languages and a configuration, run the study, and write its report.

    Args:
        sentences: of each treebank.
    """
    write_languages(Path("data"), sentences, seed=1)
    names = [settings.name for settings in source_languages()][:3]
    loop = {"batch_size": 32, "updates": max(2, sentences // 4)}
    study = {
        "sources": {name: {"train": f"{name}-train.conllu", "dev": f"{name}-dev.conllu"} for name in names},
        "targets": {
            TARGET: {
                "text": f"{TARGET}-train.conllu",
                "dev": f"{TARGET}-dev.conllu",
                "test": f"{TARGET}-test.conllu",
            }
        },
        "start": names[0],
        "tasks": {"tagger": {"train_source": {"model": size_options("tagger")}}},
        "encoders": {
            "A": {
                "vectors": "demo.{code}.vec",
                "train_source": {**loop, "learning_rate": 3e-3},
                "transfer": {**loop, "learning_rate": 1e-3, "eval_every": loop["updates"]},
            }
        },
        # Beside the paper's two methods: charts narrowed to half the mass, with the pool's best tags alone.
        "charts": {"wide": {"build": {"sigma": 0.999, "keep_log_probs": True}}},
        "methods": {"narrow": {"charts": "wide", "transfer": {"sigma": 0.5, "best": "pool"}}},
        "labelled": 20,
        "describe": True,
    }
    Path("study.yaml").write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    command = "reproduce --config study.yaml --data data --output run"
    run(f"{command} --status true")
    run(command)
    run("report --cells run --config study.yaml --output report")
    more = {"base": "study.yaml", "without": ["charts", "methods"], "seeds": [42, 43, 44]}
    Path("seeds.yaml").write_text(yaml.safe_dump(more, sort_keys=False), encoding="utf-8")
    run("reproduce --config seeds.yaml --data data --output run --report report-seeds")


if __name__ == "__main__":
    tutorial(main, __doc__, "runs/my-study", 300)

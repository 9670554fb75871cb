"""A study of your own, resumable, with its report: `python THIS_FILE [FOLDER [SENTENCES]]`.

The same steps with `configs/full.yaml` and the real treebanks make the paper's tables again. A study is a
graph of cells (source model, charts, transferred model, scores), each kept as one JSON file under a key of
all that it depends on; whatever is killed goes on where it stopped, and the
report needs the JSON files alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

import hf_xst_cli
from hf_xst.demo.defaults import source_languages
from hf_xst.demo.run import SMALL, TARGET, write_languages


def main(folder: str = "runs/my-study", sentences: int = 300) -> None:
    """Write languages and a configuration, run the study, and write its report.

    Args:
        folder: where everything is written.
        sentences: of each treebank.
    """
    here = Path(folder)
    write_languages(here / "data", sentences, seed=1)
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
        "tasks": {"tagger": {"train_source": {"model": SMALL}}},
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
    config = here / "study.yaml"
    config.write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    command = [
        "reproduce",
        "--config",
        str(config),
        "--data",
        str(here / "data"),
        "--output",
        str(here / "run"),
    ]
    for words in ([*command, "--status", "true"], command):
        if hf_xst_cli.main(words):
            raise SystemExit("hf-xst reproduce failed")
    hf_xst_cli.main(
        ["report", "--cells", str(here / "run"), "--output", str(here / "report"), "--config", str(config)]
    )


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(word) for word in sys.argv[2:3]))

"""A tagger and a parser for a language without labels, from running text.

`python THIS_FILE [FOLDER [SENTENCES]]` runs it. The language is an invented one, so nothing is downloaded;
put your own files and source models in its place. With 600 sentences it takes a few minutes on two cores.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import hf_xst_cli
from hf_xst.demo.defaults import source_languages
from hf_xst.demo.run import SMALL, TARGET, write_languages


def run(command: str) -> None:
    """Run a command of the package, as a shell would."""
    sys.stderr.write(f"$ hf-xst {command}\n")
    if hf_xst_cli.main(shlex.split(command)):
        raise SystemExit(f"hf-xst {command.split()[0]} failed")


def main(folder: str = "runs/my-language", sentences: int = 600) -> None:
    """Go from source treebanks and running text to annotated text.

    Args:
        folder: where everything is written.
        sentences: of each source treebank, and of the text.
    """
    here = Path(folder)
    test = write_languages(here, sentences, seed=1)  # source treebanks, vectors, and the target's text
    sources = [settings.name for settings in source_languages()][:2]
    epochs = 12 if sentences >= 300 else 1
    sizes = " ".join(SMALL)

    # 1. Source models. Others' trained models take their place where there are any.
    for task, more in (("tagger", ""), ("parser", "arc_size=64 label_size=32")):
        for name in sources:
            run(
                f"train-source --task {task} --treebank train={here}/{name}-train.conllu "
                f"--vectors {here}/demo.{name}.vec --model {sizes} {more} --epochs {epochs} "
                f"--learning_rate 0.003 --batch_size 32 --output {here}/{task}-{name}"
            )

    # 2. The tagger first: the sources tag the text, their opinions make charts, a tagger is trained on them.
    vectors = f"--vectors {here}/demo.{TARGET}.vec"
    for task, tags in (("tagger", ""), ("parser", f"--tagger {here}/tagger")):
        models = " ".join(f"{name}={here}/{task}-{name}" for name in sources)
        # 3. Then the parser, which reads the tags that the new tagger gives.
        run(
            f"build-charts --sources {models} --treebank train={here}/{TARGET}-train.conllu {vectors} {tags} "
            f"--output {here}/charts-{task}"
        )
        run(
            f"transfer --charts {here}/charts-{task} --start {here}/{task}-{sources[0]} {vectors} "
            f"--updates {10 * epochs} --learning_rate 0.001 --batch_size 32 --output {here}/{task}"
        )

    # 4. Running text in, trees out, with the probability of each arc.
    text = here / "new.txt"
    text.write_text("".join(" ".join(row["words"]) + "\n\n" for row in test.sentences[:20]), encoding="utf-8")
    run(
        f"predict --model {here}/parser --tagger {here}/tagger {vectors} --input {text} --format raw "
        f"--confidence true --output {here}/new.conllu"
    )
    run(f"show {here}/new.conllu --index 1")
    run(f"show {here}/new.conllu --index 1 --format svg --output {here}/tree.svg")


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(word) for word in sys.argv[2:3]))

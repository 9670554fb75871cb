"""Build a tagger and a parser for a language without labelled data, starting from running text.

`python a_parser_for_my_language.py [FOLDER [SENTENCES]]` runs the tutorial. Its languages are invented, so
nothing is downloaded; replace them by your own text and other people's source models. With the default of 600
sentences it takes about two minutes on two cores.
"""

from __future__ import annotations

import re
from pathlib import Path

from shell import run, say, tutorial

from hf_xst.data import read_conllu
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options

SOURCES = [settings.name for settings in source_languages()]
FIRST = SOURCES[0]


def running_text(conllu: str) -> str:
    """Turn sentences into ordinary text: capital letters, no space before punctuation, paragraphs."""
    lines = [re.sub(r" ([.,?])", r"\1", " ".join(row.words)).capitalize() for row in read_conllu(conllu)]
    return "\n\n".join(" ".join(lines[start : start + 5]) for start in range(0, len(lines), 5)) + "\n"


def main(sentences: int) -> None:
    """Go from running text to annotated text.

    Args:
        sentences: Size of each source treebank, and of the text.
    """
    # Input: running text in your language, and word vectors aligned with those of the source languages
    # (see scripts/align_vectors.py). Here an invented language stands for yours.
    write_languages(Path(), sentences, seed=1)
    Path("my-text.raw").write_text(running_text(f"{TARGET}-train.conllu"), encoding="utf-8")
    vectors = f"--vectors demo.{TARGET}.vec"
    models = {task: " ".join(f"{name}={task}s/{name}" for name in SOURCES) for task in ("tagger", "parser")}

    # 1. Source taggers and parsers. Use other people's models (folders, or ids on the Hub) where you can.
    #    Here small ones are trained on treebanks of four other invented languages. All but the first are
    #    fine-tuned from the first: then the average of their weights is a good initial model for your
    #    language.
    epochs = 24 if sentences >= 200 else 1
    for task in models:
        for name in SOURCES:
            begin = (
                f"--model {' '.join(size_options(task))} --epochs {epochs} --learning-rate 0.003"
                if name == FIRST
                else f"--init-from {task}s/{FIRST} --epochs {max(1, epochs // 4)} --learning-rate 0.001"
            )
            run(
                f"train-source --task {task} --treebank train={name}-train.conllu,dev={name}-dev.conllu "
                f"--vectors demo.{name}.vec {begin} --batch-size 32 --output {task}s/{name}"
            )

    # 2. One command makes a tagger and a parser for your language. The simple segmenter for running text
    #    knows no language: if yours is written without spaces, or has clitics, bring tokenised text (one
    #    sentence per line, in a .txt file). The sources annotate the text, their distributions are pooled in
    #    charts of likely tags and trees, and new models are trained on the charts, the tagger first, since
    #    parsers read tags. An interrupted command resumes when it is repeated. `--gold` takes sentences with
    #    annotation: invented languages have them; for yours, annotate a few hundred words, or leave it out.
    run(
        f"adapt --text my-text.raw --format raw --taggers {models['tagger']} --parsers {models['parser']} "
        f"{vectors} --gold {TARGET}-test.conllu --max-steps {6 * epochs} --batch-size 32 "
        "--learning-rate 0.001 --output mine"
    )

    # 3. Read the report: agreement and weights of the sources, how sure the new models are, and trees to look
    #    at. With `--gold` it compares the new models with each source, and with a majority vote of all of
    #    them, a strong baseline that runs all sources on each sentence.
    say(Path("mine/report.md").read_text(encoding="utf-8"))

    # 4. Annotate running text with the parser, which contains its tagger. TagProb, HeadProb, LabelProb and
    #    ArcProb in MISC are exact probabilities: correct improbable words first.
    text = running_text(f"{TARGET}-test.conllu").split("\n\n")[:4]
    Path("new.raw").write_text("\n\n".join(text), encoding="utf-8")
    predict = f"predict --model mine {vectors} --input new.raw --format raw --confidence true"
    run(f"{predict} --output new.conllu --overwrite true")

    # 5. Draw trees: in the terminal, and as SVG with arcs coloured by their probability.
    run("show new.conllu --index 2")
    run("show new.conllu --index 2 --output tree.svg")
    run("show --charts mine/run/parser/charts --index 1 --output chart.svg")
    say("Open tree.svg, and chart.svg: one of the charts on which the parser was trained.")


if __name__ == "__main__":
    tutorial(main, __doc__, "runs/my-language", 600)

"""Build a tagger and a parser for a language without labelled data, starting from running text.

`python a_parser_for_my_language.py [FOLDER [SENTENCES]]` runs the tutorial. Its languages are invented, so
nothing is downloaded; replace them by your own text and other people's source models. With the default of 600
sentences it takes about two minutes on two cores.
"""

from __future__ import annotations

import re
from pathlib import Path

from shell import run, say, tutorial

from hf_xst.data import iterate_unlabelled, read_conllu, write_conllu
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

    # 2. Split the text into sentences and words. The simple segmenter knows no language: if yours is
    #    written without spaces, or has clitics, bring tokenised text (one sentence per line, in a .txt
    #    file).
    write_conllu(iterate_unlabelled("my-text.raw", format="raw"), "my-text.conllu")

    # 3. The tagger comes first, since parsers read tags (UPOS). The source taggers annotate the text, their
    #    distributions are pooled into charts of likely tags, and a tagger for your language is trained on
    #    the charts.
    # 4. The parser follows in the same way, on the tags of the new tagger. For sources that were fine-tuned
    #    from one model, `--preset recommended` is the default; `--preset paper` selects the published
    #    method.
    for task, tags in (("tagger", ""), ("parser", "--tagger my-tagger")):
        run(
            f"build-charts --sources {models[task]} --text my-text.conllu {vectors} {tags} "
            f"--output {task}-charts"
        )
        run(
            f"transfer --charts {task}-charts {vectors} --max-steps {6 * epochs} --batch-size 32 "
            f"--learning-rate 0.001 --output my-{task}"
        )

    # 5. Did it help? Invented languages have gold annotation; for yours, annotate a few hundred words. A
    #    majority vote of all sources is a strong baseline, but runs all of them on each sentence.
    gold = f"--treebank test={TARGET}-test.conllu {vectors}"
    for task, tags in (("tagger", ""), ("parser", "--tagger my-tagger")):
        for model in (f"{task}s/{FIRST}", f"my-{task}"):
            run(f"evaluate --model {model} {gold} {tags} --output scores/{model}")
        run(f"vote --sources {models[task]} {gold} {tags} --output scores/{task}-vote")

    # 6. Annotate running text. TagProb, HeadProb, LabelProb and ArcProb in MISC are exact probabilities:
    #    correct improbable words first.
    text = running_text(f"{TARGET}-test.conllu").split("\n\n")[:4]
    Path("new.raw").write_text("\n\n".join(text), encoding="utf-8")
    run(
        f"predict --model my-parser --tagger my-tagger {vectors} --input new.raw --format raw "
        "--confidence true --output new.conllu"
    )

    # 7. Draw trees: in the terminal, and as SVG with arcs coloured by their probability.
    run("show new.conllu --index 2")
    run("show new.conllu --index 2 --output tree.svg")
    run("show --charts parser-charts --index 1 --output chart.svg")
    say("Open tree.svg, and chart.svg: one of the charts on which the parser was trained.")


if __name__ == "__main__":
    tutorial(main, __doc__, "runs/my-language", 600)

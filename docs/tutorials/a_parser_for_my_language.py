"""A tagger and a parser for a language without any labels, from running text.

`python a_parser_for_my_language.py [FOLDER [SENTENCES]]` runs it. The languages are invented ones, so nothing
is downloaded; put your own text and other people's source models in their place. With the 400 sentences that
it takes by default it needs two minutes on two cores.
"""

from __future__ import annotations

import re
from pathlib import Path

from shell import run, say, tutorial

from hf_xst.data import iterate_unlabelled, read_conllu, write_conllu
from hf_xst.demo import TARGET, source_languages, write_languages
from hf_xst.demo.small_models import size_options

SOURCES = [settings.name for settings in source_languages()]
START = SOURCES[0]


def running_text(conllu: str) -> str:
    """Write sentences as people do: capitals at the start, no space before a full stop, paragraphs."""
    lines = [re.sub(r" ([.,?])", r"\1", " ".join(row.words)).capitalize() for row in read_conllu(conllu)]
    return "\n\n".join(" ".join(lines[start : start + 5]) for start in range(0, len(lines), 5)) + "\n"


def _models(task: str) -> str:
    return " ".join(f"{name}={task}s/{name}" for name in SOURCES)


def main(sentences: int) -> None:
    """Go from running text to annotated text.

    Args:
        sentences: of each source treebank, and of the text.
    """
    # What you have: running text and word vectors of your language, in one space with those of the sources
    # (see `hf-xst align-vectors`). Here an invented language stands for yours.
    write_languages(Path(), sentences, seed=1)
    Path("my-text.raw").write_text(running_text(f"{TARGET}-train.conllu"), encoding="utf-8")
    vectors = f"--vectors demo.{TARGET}.vec"

    # 1. Source models, taggers and parsers. Take other people's (folders, or ids on the Hub) where you can;
    #    here they are trained, small ones, on the treebanks of four other invented languages.
    epochs = 12 if sentences >= 200 else 1
    for task, sizes in (("tagger", SMALL), ("parser", [*SMALL, "arc_size=64", "label_size=32"])):
        for name in SOURCES:
            run(
                f"train-source --task {task} --treebank train={name}-train.conllu,dev={name}-dev.conllu "
                f"--vectors demo.{name}.vec --model {' '.join(sizes)} --epochs {epochs} "
                f"--batch-size 32 --learning-rate 0.003 --output {task}s/{name}"
            )

    # 2. Cut the text into sentences and words. The simple segmentation knows no language: if yours is written
    #    without spaces, or splits clitics off, bring tokenised text (one sentence a line, in a .txt file).
    write_conllu(iterate_unlabelled("my-text.raw", format="raw"), "my-text.conllu")

    # 3. The tagger comes first, since parsers read tags (UPOS). The sources tag the text, their opinions are
    #    pooled into charts of likely tags, and a tagger of the new language is trained on the charts.
    # 4. Then the parser, in the same way, over the tags that the new tagger gives.
    #    Taggers go by the paper, parsers by the recommended recipe: they start from the source that agrees
    #    best with the others. `--recipe published` or `recommended` says otherwise.
    for task, tags in (("tagger", ""), ("parser", "--tagger my-tagger")):
        run(
            f"build-charts --sources {_models(task)} --text my-text.conllu {vectors} {tags} "
            f"--output {task}-charts"
        )
        run(
            f"transfer --charts {task}-charts {vectors} --updates {30 * epochs} --batch-size 32 "
            f"--learning-rate 0.001 --output my-{task}"
        )

    # 5. Did it help? Invented languages have gold annotation; for yours, annotate a few hundred words. A vote
    #    of all sources is a strong rival, but it needs all of them for each sentence.
    gold = f"--treebank test={TARGET}-test.conllu {vectors}"
    for task, tags in (("tagger", ""), ("parser", "--tagger my-tagger")):
        for model in (f"{task}s/{START}", f"my-{task}"):
            run(f"evaluate --model {model} {gold} {tags} --output scores/{model}")
        run(f"vote --sources {_models(task)} {gold} {tags} --output scores/{task}-vote")

    # 6. Running text in, trees out. MISC tells how sure the models are: TagProb, HeadProb, LabelProb and
    #    ArcProb are exact probabilities, which tell you where to look first when you correct by hand.
    text = running_text(f"{TARGET}-test.conllu").split("\n\n")[:4]
    Path("new.raw").write_text("\n\n".join(text), encoding="utf-8")
    run(
        f"predict --model my-parser --tagger my-tagger {vectors} --input new.raw --format raw "
        "--confidence true --output new.conllu"
    )

    # 7. Pictures: in the terminal, and as SVG with arcs coloured by their probability.
    run("show new.conllu --index 2")
    run("show new.conllu --index 2 --output tree.svg")
    run("show --charts parser-charts --index 1 --output chart.svg")
    say("Look at tree.svg, and at the chart that the parser was trained on, chart.svg.")


if __name__ == "__main__":
    tutorial(main, __doc__, "runs/my-language", 400)

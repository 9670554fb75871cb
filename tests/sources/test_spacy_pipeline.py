"""spaCy pipelines as sources: distributions, fallbacks, and refused folders."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from hf_xst.sources.base import Source
from hf_xst.sources.spacy_pipeline import SpacyParser, SpacyTagger, load_spacy

spacy = pytest.importorskip("spacy")

# Words, UPOS tags, features, heads from 0 and labels. The last but one is not projective, the last
# has two sentences.
TREEBANK = [
    (
        "the dog sees cats",
        "DET NOUN VERB NOUN",
        ["", "Number=Sing", "", "Number=Plur"],
        "1 2 2 2",
        "det nsubj ROOT obj",
    ),
    ("the cats sleep", "DET NOUN VERB", ["", "Number=Plur", ""], "1 2 2", "det nsubj ROOT"),
    ("dogs sleep", "NOUN VERB", ["Number=Plur", ""], "1 1", "nsubj ROOT"),
    ("sleep", "VERB", [""], "0", "ROOT"),
    ("red dogs sleep", "ADJ NOUN VERB", ["", "Number=Plur", ""], "1 2 2", "amod nsubj ROOT"),
    (
        "dogs see the red cat",
        "NOUN VERB DET ADJ NOUN",
        ["Number=Plur", "", "", "", "Number=Sing"],
        "1 1 4 4 1",
        "nsubj ROOT det amod obj:direct",
    ),
    ("the red", "DET ADJ", ["", ""], "1 1", "det ROOT"),
    (
        "cats dogs sleep red",
        "NOUN NOUN VERB ADJ",
        ["Number=Plur", "Number=Plur", "", ""],
        "2 2 2 0",
        "obj nsubj ROOT amod",
    ),
    (
        "dogs sleep the cats sleep",
        "NOUN VERB DET NOUN VERB",
        ["Number=Plur", "", "", "Number=Plur", ""],
        "1 1 3 4 4",
        "nsubj ROOT det nsubj ROOT",
    ),
]
CLEAR = [words.split() for words, *_ in TREEBANK[:3]]
SENTENCES = [*CLEAR, ["sleep"], ["unknown", "dogs", "see", "the", "mouse", "sleep"]]
NETWORK = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 32,
    "depth": 2,
    "embed_size": 300,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
TAGGER = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": NETWORK}}
NORMALISED = {"model": TAGGER["model"] | {"normalize": True}}
PARSER = {
    "min_action_freq": 1,
    "model": {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "parser",
        "extra_state_tokens": False,
        "hidden_width": 32,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": NETWORK,
    },
}


def train(folder: Path, components: dict[str, dict[str, Any]], tags: bool = True) -> Path:
    """Train a tiny pipeline and save it."""
    from spacy.training import Example

    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("xx")
    nlp.meta["license"] = "MIT"
    for name, config in components.items():
        nlp.add_pipe(name, config=config)
    examples = []
    for text, pos, morphs, heads, deps in TREEBANK:
        words, number = text.split(), [int(head) for head in heads.split()]
        annotation = {"pos": pos.split(), "morphs": morphs, "tags": [f"{tag[0]}1" for tag in pos.split()]}
        if not tags:
            annotation["tags"] = pos.split()
        gold = spacy.tokens.Doc(nlp.vocab, words=words, heads=number, deps=deps.split(), **annotation)
        examples.append(Example(spacy.tokens.Doc(nlp.vocab, words=words), gold))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(120):
        nlp.update(examples, sgd=optimizer)
    if "attribute_ruler" in components:
        ruler = nlp.get_pipe("attribute_ruler")
        for tag, pos in {"N1": "NOUN", "V1": "VERB", "D1": "DET", "A1": "ADJ"}.items():
            ruler.add([[{"TAG": tag}]], {"POS": pos})
        ruler.add([[{"LOWER": "see"}]], {"POS": "ADJ"})
    nlp.to_disk(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("spacy") / "both", {"morphologizer": TAGGER, "parser": PARSER})


@pytest.fixture(scope="module")
def tagger(folder: Path) -> SpacyTagger:
    return load(folder, SpacyTagger)


@pytest.fixture(scope="module")
def parser(folder: Path) -> SpacyParser:
    return load(folder, SpacyParser)


def load(folder: Path, kind: type[Any], **options: Any) -> Any:
    source = load_spacy(folder, "tagger" if kind is SpacyTagger else "parser", **options)
    assert isinstance(source, kind)
    return source


def rows(sentences: Sequence[Sequence[str]] = SENTENCES) -> list[dict[str, Any]]:
    return [{"words": list(words)} for words in sentences]


def docs(nlp: Any, sentences: Sequence[Sequence[str]] = SENTENCES) -> list[Any]:
    return [spacy.tokens.Doc(nlp.vocab, words=list(words)) for words in sentences]


def decode(source: Any, sentences: Sequence[Sequence[str]]) -> list[dict[str, list[Any]]]:
    best = source.distributions(rows(sentences)).best()
    return source.decode(best, torch.tensor([len(words) for words in sentences]))


def edit(folder: Path, target: Path, old: str, new: str) -> Path:
    """Copy a pipeline with a change in its configuration."""
    shutil.copytree(folder, target)
    config = (target / "config.cfg").read_text(encoding="utf-8")
    assert old in config
    (target / "config.cfg").write_text(config.replace(old, new), encoding="utf-8")
    return target


def test_pipelines_are_sources(tagger, parser):
    assert isinstance(tagger, Source)
    assert isinstance(parser, Source)
    assert (tagger.kind, tagger.licence) == ("spacy", "MIT")
    assert tagger.names[:-2] == ["ADJ", "DET", "NOUN", "VERB"]
    assert parser.names == ["amod", "dep", "det", "nsubj", "obj", "root"]


@pytest.mark.parametrize("kind", [SpacyTagger, SpacyParser])
def test_each_word_has_total_probability_one(folder, kind):
    probs = load(folder, kind).log_probs(rows()).exp()
    for table, words in zip(probs, SENTENCES, strict=True):
        table = table if kind is SpacyTagger else table[:, : len(words) + 1].flatten(1)
        assert_close(table[: len(words)].sum(-1), torch.ones(len(words)))


@pytest.mark.parametrize("kind", [SpacyTagger, SpacyParser])
def test_marginals_do_not_depend_on_the_batch(folder, kind):
    source = load(folder, kind)
    batch = source.distributions(rows()).marginals()
    for marginals, words in zip(batch, SENTENCES, strict=True):
        alone = source.distributions(rows([words])).marginals()[0]
        inside = tuple(slice(0, size) for size in alone.shape)
        assert_close(marginals[inside], alone, atol=1e-4, rtol=1e-3)
        assert_close(marginals.sum(), alone.sum(), atol=1e-3, rtol=1e-3)  # nothing on padding


def test_tags_are_sums_of_the_softmax_over_analyses(folder, tagger):
    nlp = spacy.load(folder)
    pipe = nlp.get_pipe("morphologizer")
    pos = [label.rpartition("POS=")[2].partition("|")[0] for label in pipe.labels]
    assert len(set(pos)) < len(pos)  # nouns have several analyses
    scores = torch.from_numpy(pipe.model.predict(docs(nlp, [SENTENCES[-1]]))[0])
    probs = scores.softmax(1)
    sums = [probs[:, [each == tag for each in pos]].sum(1) for tag in tagger.names[:-2]]
    marginals = tagger.distributions(rows([SENTENCES[-1]])).marginals()[0, :-1].sum(1)[:, :-2]
    assert_close(marginals, torch.stack(sums, 1))


@pytest.mark.parametrize("config", [TAGGER, NORMALISED], ids=["scores", "probabilities"])
def test_tags_without_a_morphologizer_are_those_of_the_tagger(tmp_path, config):
    path = train(tmp_path / "tagger", {"tagger": config}, tags=False)
    nlp, source = spacy.load(path), load(path, SpacyTagger)
    pipe = nlp.get_pipe("tagger")
    (scores,) = pipe.model.predict(docs(nlp, [SENTENCES[-1]]))
    probs = torch.from_numpy(scores) if config is NORMALISED else torch.from_numpy(scores).softmax(1)
    order = [pipe.labels.index(tag) for tag in source.names[:-2]]
    assert_close(source.log_probs(rows([SENTENCES[-1]]))[0].exp(), probs[:, order])


def test_a_rule_for_a_word_takes_precedence_with_the_confidence(tmp_path):
    path = train(tmp_path / "ruled", {"tagger": TAGGER, "attribute_ruler": {}})
    source = load(path, SpacyTagger, confidence=0.7)
    assert source.names[:-2] == ["ADJ", "DET", "NOUN", "VERB"]
    probs = source.log_probs(rows([["dogs", "see", "the", "red", "cat"]]))[0].exp()
    assert_close(probs[1], torch.tensor([0.7, 0.1, 0.1, 0.1]))
    assert probs.argmax(1).tolist() == [2, 0, 1, 0, 2]
    assert probs[0, 2] != pytest.approx(0.7)


def test_best_trees_of_clear_sentences_are_those_of_the_parser(folder, parser):
    nlp = spacy.load(folder)
    for words, tree in zip(CLEAR, decode(parser, CLEAR), strict=True):
        doc = nlp(docs(nlp, [words])[0])
        assert tree["head"] == [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
        assert tree["deprel"] == [token.dep_.lower() for token in doc]


def test_arcs_sum_the_parses_of_the_beam(parser):
    arcs = [(0.5, [(1, 0, "obj:direct")]), (0.25, [(1, 0, "obj")]), (0.125, [(0, 1, "ROOT")])]
    doc = docs(parser._nlp, [["a", "b"]])[0]
    table, relation = parser._marginals(doc, arcs), parser.names.index
    rest = 0.01 / (1 + len(parser.names) - 1)
    assert float(table[0, 2, relation("obj")]) == pytest.approx(0.99 * 0.75 + rest)
    assert float(table[0, 0, relation("root")]) == pytest.approx(0.99 * 0.25 + rest)  # and 1/8 without arcs
    assert float(table[1, 1, relation("dep")]) == pytest.approx(0.99 * 0.125 + rest)  # `root` has head 0 only
    assert_close(table.sum((1, 2)), torch.ones(2, dtype=torch.double))


def test_scores_of_moves_are_normalised_in_each_state(folder, parser, tmp_path):
    nlp = spacy.load(folder)
    upper = nlp.get_pipe("parser").model.get_ref("upper")
    weight = upper.get_param("W")
    upper.set_param("W", weight + 3 * weight[:1])  # adds a number to the scores of all moves in a state
    nlp.to_disk(tmp_path / "shifted")
    shifted = load(tmp_path / "shifted", SpacyParser)
    assert_close(shifted.log_probs(rows()).exp(), parser.log_probs(rows()).exp(), atol=1e-4, rtol=1e-3)


def test_non_projective_arcs_are_restored(parser):
    doc = docs(parser._nlp, [["cats", "dogs", "sleep", "red"]])[0]
    arcs = [(2, 0, "obj"), (2, 1, "nsubj"), (2, 3, "amod||obj")]
    assert parser._tree(doc, arcs) == [(3, "obj"), (3, "nsubj"), (0, "root"), (1, "amod")]


def test_root_is_the_label_of_head_0_and_no_other(parser):
    possible = parser.log_probs(rows()).isfinite()
    root = parser.names.index("root")
    for table, words in zip(possible, SENTENCES, strict=True):
        n = len(words)
        expected = torch.ones(n, n + 1, len(parser.names), dtype=torch.bool)
        expected[torch.arange(n), torch.arange(n) + 1] = False  # no word is its own head
        expected[:, :, root] = False
        expected[:, 0] = torch.arange(len(parser.names)) == root
        assert torch.equal(table[:n, : n + 1], expected)


def test_a_sentence_that_spacy_would_split_has_one_root(folder, parser):
    words = "dogs sleep the cats sleep".split()
    nlp = spacy.load(folder)
    assert len(list(nlp(docs(nlp, [words])[0]).sents)) > 1
    assert sum(head == 0 for head in decode(parser, [words])[0]["head"]) == 1
    expected_roots = parser.log_probs(rows([words]))[0, :, 0, parser.names.index("root")].exp().sum()
    assert float(expected_roots) == pytest.approx(1, abs=0.01)


def test_a_beam_of_one_has_its_parse_with_the_confidence(folder):
    source = load(folder, SpacyParser, confidence=0.8, beam_width=1)
    table = source.log_probs(rows([CLEAR[0]]))[0].exp()
    rest = 0.2 / (1 + 3 * (len(source.names) - 1))
    assert_close(table.flatten(1).max(1).values, torch.full((4,), 0.8 + rest))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"confidence": 1.0}, "confidence is 1.0"), ({"beam_width": 0}, "width is 0; expected at least 1")],
)
def test_bad_options_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=message):
        load_spacy(folder, "parser", **options)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('factory = "parser"', 'factory = "evil"', "factory for 'evil'"),
        ("spacy.TransitionBasedParser.v2", "evil.Network.v1", "'evil.Network.v1' in function registry"),
        ("spacy.Tokenizer.v1", "evil.Tokenizer.v1", "'evil.Tokenizer.v1' in function registry"),
        ('lang = "xx"', 'lang = "evil"', "language evil"),
    ],
)
def test_code_that_is_not_registered_is_refused(folder, tmp_path, old, new, message):
    changed = edit(folder, tmp_path / "changed", old, new)
    with pytest.raises(ValueError, match=f"code that is not installed, and its own never runs: .*{message}"):
        load_spacy(changed, "parser")


@pytest.mark.parametrize(
    "content", [b"\x80\x04\x95evil.", b"\x82PK\x03\x04archive/data.pkl"], ids=["pickle", "inside a file"]
)
def test_pickled_data_in_a_folder_are_refused(folder, tmp_path, content):
    shutil.copytree(folder, tmp_path / "changed")
    (tmp_path / "changed" / "parser" / "extra").write_bytes(content)
    with pytest.raises(ValueError, match="extra is or contains a pickle"):
        load_spacy(tmp_path / "changed", "parser")


@pytest.mark.parametrize("file", ["meta.json", "vocab/strings.json", "parser"])
def test_links_out_of_a_folder_are_refused(folder, tmp_path, file):
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / file).rename(tmp_path / "elsewhere")
    (tmp_path / "copy" / file).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"leads to .*elsewhere.*, outside of its folder"):
        load_spacy(tmp_path / "copy", "parser")


def test_code_beside_a_pipeline_does_not_run(folder, tmp_path, monkeypatch):
    package = tmp_path / "xx_evil_sm"
    shutil.copytree(folder, package / "xx_evil_sm-1.0.0")
    (package / "__init__.py").write_text("raise SystemExit('ran')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_spacy("xx-evil-sm", "tagger").digest() == load_spacy(package, "tagger").digest()


def test_missing_pipelines_and_components_are_named(folder, tmp_path):
    with pytest.raises(ValueError, match="xx_missing_sm is neither a folder nor an installed package"):
        load_spacy("xx_missing_sm", "tagger")
    with pytest.raises(ValueError, match=r"has no config.cfg; expected a spaCy pipeline"):
        load_spacy(tmp_path, "tagger")
    spacy.blank("xx").to_disk(tmp_path / "blank")
    for task in ("tagger", "parser"):
        with pytest.raises(ValueError, match=f"expected a {task}"):
            load_spacy(tmp_path / "blank", task)


def test_a_missing_spacy_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match=r'pip install "hf_xst\[spacy\]"'):
        load_spacy(folder, "tagger")


def test_the_digest_depends_on_files_and_options(folder, tmp_path, parser):
    shutil.copytree(folder, tmp_path / "copy")
    assert load(tmp_path / "copy", SpacyParser).digest() == parser.digest()
    assert load(folder, SpacyParser, beam_width=4).digest() != parser.digest()
    (tmp_path / "copy" / "README.md").write_text("changed", encoding="utf-8")
    assert load(tmp_path / "copy", SpacyParser).digest() != parser.digest()

"""Files of predictions as sources: marginals, probabilities in MISC, alignment of words, and errors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

from helpers.small_models import RELATIONS, UPOS, gold, model_of
from hf_xst.charts.alphabet import Relabelling
from hf_xst.data import ConlluError, ConlluSentence, write_conllu
from hf_xst.inference.annotation import AnnotationSettings, Annotator
from hf_xst.inference.outputs import ConlluWriter
from hf_xst.sources.annotated import load_annotated

TREE = ("head", "deprel")
A = "1\tw0\t_\tNOUN\t_\t_\t2\tobj:x\t_\t_\n2\tw1\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
B = (
    "1-2\tw2w3\t_\t_\t_\t_\t_\t_\t_\tTagProb=bad\n"
    "1\tw2\t_\tNOUN\t_\t_\t2\tobj\t_\tTagProb=0.5000|HeadProb=0.7000|LabelProb=0.9000\n"
    "2\tw3\t_\tVERB\t_\t_\t0\troot\t_\tTagProb=0.8000|ArcProb=0.8500|HeadProb=0.86|LabelProb=0.87\n"
    "2.1\tw9\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\tw4\t_\tADJ\t_\t_\t1\tamod\t_\tTagProb=1.0000|ArcProb=0.6000\n"
)
C = "1\tw5\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"


def file_of(folder: Path, *sentences: str, name: str = "predictions.conllu") -> Path:
    """Write sentences named s1, s2 ... and return the path."""
    path = folder / name
    text = "".join(f"# sent_id = s{i}\n{rows}\n" for i, rows in enumerate(sentences, start=1))
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def row(*words: str, sent_id: str = "?") -> dict[str, object]:
    return {"words": list(words), "sent_id": sent_id}


ROWS = [row("w0", "w1"), row("w2", "w3", "w4"), row("w5")]


def tag_marginals(source, rows):
    """Return the probability of each tag for each word: (B, N, T)."""
    return source.distributions(rows).marginals().sum(2)[:, :-1, :-2]


def test_a_tag_gets_the_confidence_or_the_probability_in_misc(tmp_path):
    source = load_annotated(file_of(tmp_path, A, B, C), ("upos",), confidence=0.8)
    assert source.kind == "conllu"
    assert source.names[:3] == ["ADJ", "NOUN", "VERB"]
    marginals = tag_marginals(source, ROWS)
    expected = torch.zeros(3, 3, 3)
    expected[0, :2] = torch.tensor([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    expected[1] = torch.tensor([[0.25, 0.5, 0.25], [0.1, 0.1, 0.8], [0.99995, 2.5e-5, 2.5e-5]])
    expected[2, 0] = torch.tensor([0.1, 0.8, 0.1])
    inside = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 0, 0]]).bool()
    torch.testing.assert_close(marginals[inside], expected[inside])


def test_a_confidence_weights_the_arc_of_the_file_against_all_others(tmp_path):
    source = load_annotated(file_of(tmp_path, A, B), TREE, confidence=0.6)
    assert source.names == ["amod", "obj", "root"]
    # w0 has 3 candidates: root at head 0, amod and obj at head 2; so has w1. Both trees have two labellings.
    weights = {("2", "obj"): 0.6 * 0.6, ("2", "amod"): 0.2 * 0.6, ("0", "root"): 0.2 * (0.2 + 0.2)}
    total = sum(weights.values())
    marginals = source.distributions(ROWS[:1]).marginals()[0]
    expected = torch.zeros(3, 3, 3)
    expected[2, 1, 1], expected[2, 1, 0] = weights["2", "obj"] / total, weights["2", "amod"] / total
    expected[0, 1, 2] = weights["0", "root"] / total
    expected[0, 2, 2] = (weights["2", "obj"] + weights["2", "amod"]) / total
    expected[1, 2, 0] = expected[1, 2, 1] = weights["0", "root"] / 2 / total
    torch.testing.assert_close(marginals, expected)


def test_the_marginals_of_trees_are_the_probabilities_in_misc(tmp_path):
    distribution = load_annotated(file_of(tmp_path, A, B), TREE).distributions(ROWS[:2])
    marginals = distribution.marginals()[1]
    arcs = torch.stack([marginals[2, 1, 1], marginals[0, 2, 2], marginals[1, 3, 0]])
    torch.testing.assert_close(arcs, torch.tensor([0.7 * 0.9, 0.85, 0.6]), rtol=0, atol=1e-4)
    heads, labels = distribution.best()
    assert (heads[1].tolist(), labels[1].tolist()) == ([2, 0, 1], [1, 2, 0])


@pytest.mark.parametrize("columns", [("upos",), TREE])
def test_distributions_sum_to_one_and_depend_neither_on_the_batch_nor_on_padding(tmp_path, columns):
    source = load_annotated(file_of(tmp_path, A, B, C), columns)
    batch = source.distributions(ROWS)
    marginals = batch.group_view(batch.marginals())
    groups = torch.arange(marginals.shape[1]) < batch.group_lengths[:, None]
    torch.testing.assert_close(marginals.sum(2), groups.float())
    for index, each in enumerate(ROWS):
        alone = source.distributions([each])
        expected, count = alone.group_view(alone.marginals())[0], int(alone.group_lengths)
        torch.testing.assert_close(marginals[index, :count, : expected.shape[1]], expected[:count])


def test_different_annotations_of_one_sentence_are_averaged_in_any_order(tmp_path):
    other = A.replace("NOUN", "ADJ").replace("2\tobj:x", "0\troot")
    sources = []
    for sentences in ([A, A, other, B], [other, B, A, A]):
        path = file_of(tmp_path, *sentences)
        sources.append([load_annotated(path, columns, confidence=0.7) for columns in (("upos",), TREE)])
    for tagger, parser in sources:
        tags = tag_marginals(tagger, ROWS[:1])[0, 0]
        expected = torch.tensor([2 * 0.15 + 0.7, 2 * 0.7 + 0.15, 3 * 0.15]) / 3
        torch.testing.assert_close(tags, expected)
        arcs = parser.log_probs(ROWS[:1])[0, 0].exp()
        torch.testing.assert_close(arcs[2, 1], torch.tensor((2 * 0.7 + 0.15) / 3))
        torch.testing.assert_close(arcs[0, 2], torch.tensor((2 * 0.15 + 0.7) / 3))
    torch.testing.assert_close(sources[0][1].log_probs(ROWS[:1]), sources[1][1].log_probs(ROWS[:1]))


def test_averaged_probabilities_in_misc_are_marginals_too(tmp_path):
    other = (
        B.replace("1\tamod", "1\tobj")
        .replace("ArcProb=0.6000", "ArcProb=0.3000")
        .replace("_\t2\tobj", "_\t3\tobj")
    )
    distribution = load_annotated(file_of(tmp_path, B, B, other, C), TREE).distributions(ROWS[1:2])
    marginals = distribution.marginals()[0]
    # Of w4 with head 1 and amod or obj; all others share the rest: head 0 and root, head 2 and amod or obj.
    expected = torch.tensor([2 * 0.6 + 0.7 / 4, 0.3 + 2 * 0.4 / 4]) / 3
    torch.testing.assert_close(marginals[1, 3, :2], expected, rtol=0, atol=1e-4)


def test_a_blank_makes_labels_equally_probable_and_is_reported_once(tmp_path, capsys):
    blank = A.replace("NOUN", "_").replace("obj:x", "_") + "3\tw5\t_\tVERB\t_\t_\t_\t_\t_\t_\n"
    path = file_of(tmp_path, blank, B)
    words = [row("w0", "w1", "w5")]
    tags = tag_marginals(load_annotated(path, ("upos",)), words)
    torch.testing.assert_close(tags[0, 0], torch.full((3,), 1 / 3))
    assert f"{path}: 1 words have no upos" in capsys.readouterr().err
    arcs = load_annotated(path, TREE, confidence=0.8).log_probs(words)[0].exp()
    torch.testing.assert_close(arcs[0, 2], torch.tensor([0.4, 0.4, 0.0]))
    torch.testing.assert_close(arcs[2].sum(0), torch.tensor([2 / 5, 2 / 5, 1 / 5]))
    assert capsys.readouterr().err.count("2 words have no deprel") == 1


def test_further_labels_share_the_remaining_probability(tmp_path):
    path = file_of(tmp_path, A, B)
    tagger = load_annotated(path, ("upos",), labels=["X", "NOUN"])
    assert tagger.names[:4] == ["ADJ", "NOUN", "VERB", "X"]
    torch.testing.assert_close(tag_marginals(tagger, ROWS[:1])[0, 0, 3], torch.tensor(0.1 / 3))
    assert load_annotated(path, TREE, labels=["case"]).names == ["amod", "case", "obj", "root"]


def test_without_a_label_that_others_lack_its_words_keep_their_other_candidates(tmp_path):
    path = file_of(tmp_path, A.replace("obj:x", "odd").replace("NOUN", "ODD"), B)
    for columns, names in ((("upos",), UPOS), (TREE, RELATIONS)):
        source = load_annotated(path, columns)
        joint = [*sorted(names), *source.special_names]
        distribution = source.distributions(ROWS[:1])
        relabelling = Relabelling.between(source.names, joint, source.structure)
        moved = distribution.with_scores(relabelling.scores(distribution.scores, -torch.inf))
        marginals = moved.group_view(moved.marginals())
        torch.testing.assert_close(marginals.sum(2)[0], torch.ones(len(marginals[0])))


def test_relations_are_read_without_subtypes_and_case_of_root(tmp_path):
    source = load_annotated(file_of(tmp_path, A.replace("root", "ROOT"), C), TREE)
    assert source.names == ["obj", "root"]
    only_roots = load_annotated(file_of(tmp_path, C), TREE).distributions(ROWS[2:])
    assert only_roots.marginals().sum().item() == pytest.approx(1)


def test_span_labels_in_misc_are_converted_to_bio(tmp_path):
    tags = enumerate(["I-PER", "E-PER", "O"], start=1)
    rows = "".join(f"{index}\tw{index}\t_\t_\t_\t_\t_\t_\t_\tner={tag}\n" for index, tag in tags)
    source = load_annotated(file_of(tmp_path, rows), ("ner",))
    assert source.scheme == "bio"
    assert source.names[:3] == ["B-PER", "I-PER", "O"]
    distribution = source.distributions([row("w1", "w2", "w3")])
    assert distribution.best()[0, 1:-1].tolist() == [0, 1, 2]
    assert distribution.marginals()[0, 0, :, 1].sum() == 0  # I-PER begins no sentence


def test_gzipped_files_are_read_and_the_digest_covers_file_and_confidence(tmp_path):
    plain, zipped = file_of(tmp_path, A, B), file_of(tmp_path, A, B, name="p.conllu.gz")
    source = load_annotated(zipped, TREE)
    assert torch.equal(source.log_probs(ROWS[:2]), load_annotated(plain, TREE).log_probs(ROWS[:2]))
    again = load_annotated(plain, TREE)
    others = [load_annotated(plain, TREE, confidence=0.8), load_annotated(file_of(tmp_path, A, B, C), TREE)]
    assert again.digest() == load_annotated(file_of(tmp_path, A, B), TREE).digest()
    assert len({again.digest(), *(each.digest() for each in others)}) == 3


@pytest.mark.parametrize(
    ("words", "sent_id", "message"),
    [
        (("w2", "x", "w4"), "s2", "predictions.conllu, sentence s2: word 2 is 'w3' there, 'x' here"),
        (("x", "w3", "w4"), "s2", "sentence s2: word 1 is 'w2' there, 'x' here"),
        (("w2", "w3"), "s2", "sentence s2: it has 3 words there, 2 here"),
        (("w0", "w1", "w1"), "t7", r"sentence s1 \(t7 here\): it has 2 words there, 3 here"),
        (("x", "w1"), "t7", "predictions.conllu: sentence t7 is missing; no sentence begins with 'x'"),
    ],
)
def test_a_sentence_with_other_words_is_an_error_that_names_the_difference(tmp_path, words, sent_id, message):
    path = file_of(tmp_path, A, B)
    for columns in (("upos",), TREE):
        with pytest.raises(ValueError, match=message):
            load_annotated(path, columns).distributions([ROWS[0], row(*words, sent_id=sent_id)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1\tamod", "4\tamod", "7: sentence s1: word 3 has head '4', expected 0 or another word up to 3"),
        ("1\tamod", "3\tamod", "7: sentence s1: word 3 has head '3'"),
        ("2\tobj", "-1\tobj", "4: sentence s1: word 1 has head '-1'"),
        ("2\tobj", "b\tobj", "4: sentence s1: word 1 has head 'b'"),
        ("ArcProb=0.8500", "ArcProb=1.2", "5: sentence s1: word 2 has ArcProb=1.2, expected a number from 0"),
        ("HeadProb=0.7000", "HeadProb=nan", "4: sentence s1: word 1 has HeadProb=nan"),
    ],
)
def test_invalid_heads_and_probabilities_are_errors_with_file_and_line(tmp_path, old, new, message):
    path = file_of(tmp_path, "# text = x\n" + B.replace(old, new))  # words on lines 4, 5 and 7
    with pytest.raises(ConlluError, match=f"predictions.conllu:{message}"):
        load_annotated(path, TREE)


def test_files_without_labels_and_confidences_out_of_range_are_rejected(tmp_path):
    path = file_of(tmp_path, A)
    with pytest.raises(ValueError, match=r"predictions.conllu: no word has a label in the column xpos"):
        load_annotated(path, ("xpos",))
    for confidence in (0, 1, float("nan")):
        with pytest.raises(ValueError, match="expected a number between 0 and 1"):
            load_annotated(path, TREE, confidence=confidence)


@pytest.mark.parametrize("heads", [(2, 1, 1), (0, 0, 1)])
@pytest.mark.parametrize("misc", ["_", "ArcProb=0.9999"])
def test_cycles_and_several_roots_are_votes(tmp_path, heads, misc):
    rows = "".join(f"{i}\tw{i}\t_\t_\t_\t_\t{head}\tobj\t_\t{misc}\n" for i, head in enumerate(heads, 1))
    distribution = load_annotated(file_of(tmp_path, rows, C), TREE).distributions([row("w1", "w2", "w3")])
    marginals = distribution.marginals()[0]
    torch.testing.assert_close(marginals.sum((0, 2))[1:], torch.ones(3))
    best = distribution.best()[0][0].tolist()
    assert sum(head == other for head, other in zip(best, heads, strict=True)) == 2


@pytest.mark.parametrize("kind", ["parser", "tagger"])
def test_a_file_of_predict_with_confidence_stands_in_for_its_model(tmp_path, kind):
    labels = UPOS if kind == "tagger" else ["amod", "obj", "nsubj"]  # without root, which best trees force
    model = model_of(kind, 3, labels=labels)
    with torch.no_grad():
        for parameter in (model.scorer if kind == "parser" else model).parameters():
            parameter.mul_(2)  # so that the best tree is more probable than those that the file does not know
    rows = list(gold((1, 2, 3, 5, 7), seed=3))
    sentences = [
        ConlluSentence.from_words(each["words"], sent_id=each["sent_id"], columns={"upos": each["upos"]})
        for each in rows
    ]
    annotator, path = (
        Annotator([model], AnnotationSettings(confidence=True)),
        tmp_path / "predicted.conllu.gz",
    )
    writer = ConlluWriter([model])
    annotations = annotator.annotate([annotator.row(sentence) for sentence in sentences])
    write_conllu(map(writer.sentence, sentences, annotations), path)
    source = load_annotated(path, model.columns, labels=labels)
    distribution = source.distributions(rows)
    decoded = source.decode(distribution.best(), torch.tensor([len(each["words"]) for each in rows]))
    assert decoded == [annotation.columns for annotation in annotations]
    marginals = distribution.marginals() if kind == "parser" else tag_marginals(source, rows)
    for index, annotation in enumerate(annotations):
        columns = annotation.columns
        labels = [source.names.index(name) for name in columns[model.columns[-1]]]
        for word, label in enumerate(labels):
            if kind == "parser":
                value = marginals[index, columns["head"][word], word + 1, label]
            else:
                value = marginals[index, word, label]
            written = annotation.probabilities["arc" if kind == "parser" else "tag"][word]
            assert value.item() == pytest.approx(written, abs=2e-4)

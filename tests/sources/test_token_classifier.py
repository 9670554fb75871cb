"""Token classifiers of transformers as sources: distributions, label maps, windows, and refused files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import BertConfig, BertForTokenClassification

from helpers.tiny_models import piece_tokenizer
from hf_xst.sources.base import Source
from hf_xst.sources.token_classifier import TokenClassifier, map_labels, read_label_map

LABELS = ["DET", "NOUN", "VERB"]
BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
SENTENCES = [["the", "dog", "sees", "a", "cat"], ["dog"], ["a", "\u200f", "zebra"]]
NO_PIECE = (2, 1)  # the tokenizer drops the right-to-left mark


def build(labels: Sequence[str] = LABELS, **changes: Any) -> BertForTokenClassification:
    sizes = {
        "vocab_size": len(piece_tokenizer()),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 60,
        "initializer_range": 0.5,
    }
    torch.manual_seed(1)
    return BertForTokenClassification(
        BertConfig(**(sizes | changes), id2label=dict(enumerate(labels)))
    ).eval()


def save(folder: Path, labels: Sequence[str] = LABELS, **changes: Any) -> Path:
    build(labels, **changes).save_pretrained(folder)
    piece_tokenizer().save_pretrained(folder)
    return folder


def source(names: Sequence[str] = LABELS, *, limit: int = 60, **options: Any) -> TokenClassifier:
    return TokenClassifier(build(names), piece_tokenizer(model_max_length=limit), **options)


def rows(sentences: Sequence[Sequence[str]] = SENTENCES) -> list[dict[str, Any]]:
    return [{"words": list(words)} for words in sentences]


def word_marginals(source: TokenClassifier, sentences: Sequence[Sequence[str]] = SENTENCES) -> list[Tensor]:
    """Return the marginals (n, T) of each sentence's words, from those of the pairs that end at them."""
    marginals = source.distributions(rows(sentences)).marginals()
    return [marginals[index, : len(words)].sum(1)[:, :-2] for index, words in enumerate(sentences)]


def by_hand(words: Sequence[str], pooling: str) -> Tensor:
    """Run the model on one sentence of one-letter pieces, and pool them by word."""
    tokenizer, model = piece_tokenizer(), build()
    ids = tokenizer(list(words), is_split_into_words=True)
    with torch.no_grad():
        probabilities = model(torch.tensor([ids["input_ids"]])).logits[0].double().softmax(-1)
    pooled = []
    for index in range(len(words)):
        pieces = probabilities[[word == index for word in ids.word_ids()]]
        pooled.append(pieces[0] if pooling == "first" else pieces.mean(0))
    return torch.stack(pooled)


# -- distributions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_marginals_are_the_softmax_of_the_logits(tmp_path: Path, pooling: str) -> None:
    loaded = TokenClassifier.load(str(save(tmp_path)), pooling=pooling)
    assert isinstance(loaded, Source)
    assert (loaded.names, loaded.columns, loaded.input_columns, loaded.scheme) == (
        [*LABELS, "<s>", "</s>"],
        ("upos",),
        ("words",),
        None,
    )
    for words, marginals in zip(SENTENCES[:2], word_marginals(loaded, SENTENCES[:2]), strict=True):
        assert_close(marginals, by_hand(words, pooling).float())


def test_words_are_independent() -> None:
    tagger = source()
    (words,) = word_marginals(tagger, SENTENCES[:1])
    pairs = tagger.distributions(rows(SENTENCES[:1])).marginals()[0]
    for index in range(1, len(words)):
        assert_close(pairs[index, :3, :3], words[index - 1, :, None] * words[index])
    assert_close(pairs[0, 3, :3], words[0])
    assert_close(pairs[5, :3, 4], words[4])


def test_marginals_sum_to_one_and_respect_padding() -> None:
    distribution = source().distributions(rows())
    sums = distribution.group_view(distribution.marginals()).sum(-1)
    inside = torch.arange(6) < torch.tensor([[6], [2], [4]])
    assert_close(sums, inside.float())


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_sentences_do_not_depend_on_their_batch(pooling: str) -> None:
    tagger = source(pooling=pooling)
    alone = [word_marginals(tagger, [words])[0] for words in SENTENCES]
    for one, other in zip(word_marginals(tagger), alone, strict=True):
        assert_close(one, other)


def test_the_order_of_labels_does_not_matter() -> None:
    order = [2, 0, 1]
    model = build([LABELS[index] for index in order])
    for parameter in (model.classifier.weight, model.classifier.bias):
        parameter.data = parameter.data[torch.tensor(order)]
    assert_close(word_marginals(TokenClassifier(model, piece_tokenizer())), word_marginals(source()))


def test_words_without_pieces_get_the_uniform_distribution() -> None:
    marginals = word_marginals(source())
    assert_close(marginals[NO_PIECE[0]][NO_PIECE[1]], torch.full((3,), 1 / 3))
    (marginals,) = word_marginals(source(), [["\u200f"]])
    assert_close(marginals, torch.full((1, 3), 1 / 3))


def test_weights_that_are_not_finite_do_not_give_a_distribution() -> None:
    tagger = source()
    tagger._pieces.model.classifier.bias.data[0] = torch.nan
    with pytest.raises(ValueError, match=r"sentence 0 of the batch .* contain NaN"):
        word_marginals(tagger)


def test_invalid_pairs_of_bio_labels_are_impossible() -> None:
    tagger = source(BIO)
    assert (tagger.columns, tagger.scheme, set(tagger.names[:-2])) == (("ner_tags",), "bio", set(BIO))
    marginals = tagger.distributions(rows()).marginals()
    name = {label: index for index, label in enumerate(tagger.names)}
    assert not marginals[:, :, name["O"], name["I-PER"]].any()
    assert not marginals[:, :, name["B-LOC"], name["I-PER"]].any()
    assert not marginals[:, :, name["<s>"], name["I-LOC"]].any()
    assert marginals[0, 1, name["B-PER"], name["I-PER"]] > 0
    assert_close(marginals[0].sum((1, 2)), torch.ones(6))


# -- windows --------------------------------------------------------------------------------------------


def test_long_sentences_are_read_in_windows() -> None:
    """The words of the first and last window are those of the window's pieces read alone."""
    words = list("abcdefghijklmnopqrstuvwxyz")  # one piece a word
    tagger = source(limit=14)  # windows of 12 pieces and two special ones, every 6 pieces
    (marginals,) = word_marginals(tagger, [words])
    (first,) = word_marginals(source(), [words[:12]])
    (last,) = word_marginals(source(), [words[-12:]])
    assert_close(marginals[:8], first[:8])
    assert_close(marginals[-6:], last[-6:])


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_windows_do_not_change_a_model_without_context(pooling: str) -> None:
    """A model of embeddings alone reads each piece the same wherever a window is cut, even inside words."""
    words = ["a", "bc", "def", "ghijklmnopqrstuvw", "xyz", "b", "cat", "dog", "zebra"]
    results = []
    for limit in (60, 7):
        model = build(num_hidden_layers=0)
        model.bert.embeddings.position_embeddings.weight.data.zero_()
        tokenizer = piece_tokenizer(model_max_length=limit)
        results += word_marginals(TokenClassifier(model, tokenizer, pooling=pooling), [words])
    assert_close(*results)


# -- labels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["DET", "NOUN", "VERB"],
        ["det", "Noun", "verb"],
        ["UPOS_DET", "UPOS=NOUN", "pos-verb"],
        ["B-DET", "B-NOUN", "I-VERB"],
        ["DET|Definite=Def", "NOUN", "VERB|Mood=Ind|Tense=Past"],
    ],
)
def test_labels_are_recognised_in_other_spellings(labels: list[str]) -> None:
    assert map_labels(labels) == (["DET", "NOUN", "VERB"], "upos", None)


def test_labels_with_one_tag_add_up() -> None:
    tagger = source(["NN", "NNS", "VERB"], labels={"NN": "NOUN", "NNS": "NOUN"})
    assert tagger.names[:-2] == ["NOUN", "VERB"]
    plain = word_marginals(source())[0]
    assert_close(word_marginals(tagger)[0], torch.stack([plain[:, 0] + plain[:, 1], plain[:, 2]], 1))


@pytest.mark.parametrize(("label", "choice"), [("_", None), ("SPACE", {"SPACE": "_"})])
def test_labels_that_are_left_out_are_reported(
    label: str, choice: dict[str, str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    tagger = source(["DET", label, "VERB"], labels=choice)
    text = capsys.readouterr().err
    assert f"1 of 3 labels are left out: {label}" in text
    assert "15 UPOS tags have no label: ADJ, ADP" in text
    plain = word_marginals(source())[0][:, [0, 2]]
    assert_close(word_marginals(tagger)[0], plain / plain.sum(1, keepdim=True))


@pytest.mark.parametrize("choice", [None, {"NN": "NOUN"}, {"NN": "NOUN", "VBD": "PAST"}])
def test_labels_without_a_tag_are_listed(choice: dict[str, str] | None) -> None:
    wrong = "1 of 3 labels have no UPOS tag: VBD" if choice else "2 of 3 labels have no UPOS tag: NN, VBD"
    with pytest.raises(ValueError, match=rf"^{wrong}\.") as caught:
        source(["DET", "NN", "VBD"], labels=choice)
    for expected in ("has the labels DET, NN, VBD;", "UPOS tags are ADJ, ADP,", "--label-map MAP.yaml"):
        assert expected in str(caught.value)


def test_label_maps_are_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "map.yaml"
    path.write_text('# STTS\nNN: NOUN\nNO: PART\n1: NUM\n"$,": PUNCT\nnull: X\nXY: _\n', encoding="utf-8")
    tags = {"NN": "NOUN", "NO": "PART", "1": "NUM", "$,": "PUNCT", "null": "X", "XY": "_"}
    assert read_label_map(path) == tags
    assert map_labels([*tags, "VERB"], read_label_map(path)).tag_of == [*tags.values(), "VERB"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- NN\n", "expected lines such as 'NN: NOUN'"),
        ("NN: [NOUN]\n", "expected lines"),
        ("", "expected lines"),
        ("NN: NOUN\nNN: VERB\n", r"map\.yaml holds NN more than once"),
        (", : PUNCT\n", "quote labels"),
    ],
)
def test_other_label_maps_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_label_map(path)
    with pytest.raises(ValueError, match="cannot read the label map"):
        read_label_map(tmp_path / "missing.yaml")


def test_maps_that_leave_all_labels_out_are_refused() -> None:
    with pytest.raises(ValueError, match="all labels of the model are left out: DET, NOUN, VERB"):
        source(labels=dict.fromkeys(LABELS, "_"))


def test_labels_of_other_columns_are_kept() -> None:
    labels = ["NN", "VERB", "VBD"]
    assert map_labels(labels, "as-is", "xpos") == (labels, "xpos", None)
    assert map_labels(labels, {"VERB": "VB"}, "xpos") == (["NN", "VB", "VBD"], "xpos", None)
    assert map_labels(["O", "B-A", "I-A"], column="chunks") == (["O", "B-A", "I-A"], "chunks", "bio")
    assert source(labels, labels="as-is", column="xpos").columns == ("xpos",)
    with pytest.raises(ValueError, match="requires the column"):
        map_labels(labels, "as-is")


def test_maps_of_other_models_leave_bio_labels() -> None:
    assert map_labels(BIO, {"NN": "NOUN"}) == (BIO, "ner_tags", "bio")
    with pytest.raises(ValueError, match="4 of 5 labels have no UPOS tag: B-PER, I-PER, B-LOC, I-LOC"):
        map_labels(BIO, {"O": "NOUN"})


def test_incomplete_bio_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="I-PER without B-PER"):
        map_labels(["O", "I-PER", "B-LOC", "I-LOC"])


def test_labels_that_name_sentence_boundaries_are_refused() -> None:
    with pytest.raises(ValueError, match="labels holds <s> more than once"):
        source(["NN", "VB", "<s>"], labels="as-is", column="xpos")


# -- files ----------------------------------------------------------------------------------------------


def test_the_digest_covers_weights_labels_and_use(tmp_path: Path) -> None:
    folder = str(save(tmp_path / "a"))
    digest = TokenClassifier.load(folder).digest()
    assert TokenClassifier.load(str(save(tmp_path / "b"))).digest() == digest
    others = [
        TokenClassifier.load(folder, pooling="mean"),
        TokenClassifier.load(folder, labels={"DET": "PRON"}),
        TokenClassifier.load(str(save(tmp_path / "c", initializer_range=0.4))),
        TokenClassifier.load(str(save(tmp_path / "d", hidden_act="relu"))),
        TokenClassifier(build(), piece_tokenizer(model_max_length=30)),
    ]
    assert len({digest, *(other.digest() for other in others)}) == 6


def test_digests_do_not_depend_on_earlier_calls(tmp_path: Path) -> None:
    save(tmp_path)
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    tagger = TokenClassifier.load(str(tmp_path))
    digest = tagger.digest()
    assert_close(word_marginals(tagger), word_marginals(source()))
    assert tagger.digest() == digest


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(build().state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"has no model\.safetensors: .* pickled weights are refused"):
        TokenClassifier.load(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("config.json", {"auto_map": {"AutoModelForTokenClassification": "evil.Evil"}}),
        ("config.json", {"_attn_implementation": "someone/kernel"}),
        ("config.json", {"attn_implementation": {"": "someone/kernel"}}),
        ("config.json", {"text_config": [{"experts_implementation": "someone/kernel"}]}),
        ("config.json", {"quantization_config": {"quant_method": "someone"}}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}),
    ],
)
def test_settings_that_name_code_are_refused(tmp_path: Path, file: str, settings: dict[str, Any]) -> None:
    save(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('external code was run')\n", encoding="utf-8")
    content = json.loads((tmp_path / file).read_text(encoding="utf-8"))
    (tmp_path / file).write_text(json.dumps(content | settings), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file} of .* is refused: it sets \w+, which can run code"):
        TokenClassifier.load(str(tmp_path))


def test_attention_of_transformers_is_accepted(tmp_path: Path) -> None:
    save(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(content | {"_attn_implementation": "eager"}))
    TokenClassifier.load(str(tmp_path))


def test_other_models_are_refused(tmp_path: Path, bert: Path) -> None:
    with pytest.raises(ValueError, match=r"not a token classifier .* config\.json names BertModel"):
        TokenClassifier.load(str(bert))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty has no config\.json; expected a token classifier"):
        TokenClassifier.load(str(tmp_path / "empty"))
    with pytest.raises(ValueError, match="cannot load the token classifier me/missing"):
        TokenClassifier.load("me/missing")
    save(tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_config.json").write_text('{"base_model_name_or_path": "me/base"}')
    with pytest.raises(ValueError, match="is an adapter"):
        TokenClassifier.load(str(tmp_path / "adapter"))


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    model = build()
    save(tmp_path)
    state = {name: value for name, value in model.state_dict().items() if "classifier" not in name}
    model.save_pretrained(tmp_path, state_dict=state)
    with pytest.raises(ValueError, match=r"lack 2 weights.*: classifier\.bias, classifier\.weight"):
        TokenClassifier.load(str(tmp_path))
    model.classifier.bias.data[0] = torch.nan
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="contain NaN"):
        TokenClassifier.load(str(tmp_path))
    build(LABELS[:2]).save_pretrained(tmp_path / "other")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match=r"in another shape: classifier\.bias, classifier\.weight"):
        TokenClassifier.load(str(tmp_path))
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"model\.safetensors of .* cannot be read"):
        TokenClassifier.load(str(tmp_path))

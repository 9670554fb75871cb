"""Sources of every kind are recognised by what is there, mix in one pool, and obey one contract."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForTokenClassification

import hf_xst_cli
from helpers.small_models import UPOS, gold, model_of
from helpers.tiny_models import save_bert
from hf_xst import numerics
from hf_xst.charts.dataset import load_charts
from hf_xst.data import ConlluSentence, write_conllu
from hf_xst.sources import OtherTagger, SourcePool, SourceSettings, load_source, loading, tag_distribution
from hf_xst.sources.loading import (
    SourceSpec,
    load_sources,
    model_digest,
    source_digest,
    source_kind,
    source_licence,
)
from hf_xst.sources.pool import kind_of

ROWS = list(gold((3, 1, 4)))
TAGGER, PARSER = SourceSettings(task="tagger"), SourceSettings(task="parser")


def test_files_that_may_not_be_read_are_named(tmp_path, monkeypatch):
    model_of("tagger").save_pretrained(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).suffix != ".safetensors")
    with pytest.raises(PermissionError, match=r"Permission denied: '.*model\.safetensors'"):
        load_source(tmp_path)


class Constant(OtherTagger):
    """A tagger of a third party: the same distribution for every word."""

    def __init__(self, place: str, settings: SourceSettings) -> None:
        super().__init__(sorted(UPOS))
        self.place = place

    def log_probs(self, rows):
        words = max(len(row["words"]) for row in rows)
        return torch.arange(1.0, len(UPOS) + 1).log_softmax(-1).expand(len(rows), words, -1)

    def digest(self):
        return self.place


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for kind in ("parser", "tagger"):
        model_of(kind, 1).save_pretrained(folder / kind)
    sentences = [
        ConlluSentence.from_words(
            row["words"],
            sent_id=row["sent_id"],
            columns={name: row[name] for name in ("upos", "head", "deprel")},
        )
        for row in ROWS
    ]
    write_conllu(sentences, folder / "text.conllu")
    return folder


@pytest.fixture
def entry(monkeypatch):
    point = EntryPoint("constant", f"{__name__}:Constant", "hf_xst.sources")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Constant)
    monkeypatch.setattr(loading, "entry_points", lambda group, name: [point] if name == "constant" else [])


def test_the_kind_is_recognised_by_what_is_there(world, entry):
    kinds = {
        str(world / "tagger"): "model",
        str(world / "text.conllu"): "conllu",
        "spacy:fr_core_news_sm": "spacy",
        "constant:x": "entry-point",
    }
    assert {place: source_kind(SourceSpec.parse(f"a={place}")) for place in kinds} == kinds
    with pytest.raises(ValueError, match="neither a local folder nor within reach"):
        source_kind(SourceSpec.parse(str(world / "nothing")))


def test_the_task_of_files_is_that_of_the_other_sources(world):
    sources = load_sources([f"file={world}/text.conllu", f"model={world}/parser"])
    assert list(sources) == ["file", "model"]
    assert {kind_of(each).columns for each in sources.values()} == {("head", "deprel")}
    with pytest.raises(ValueError, match=r"the source text\.conllu can be a parser or a tagger: give --task"):
        load_source(str(world / "text.conllu"))


@pytest.mark.parametrize("settings", [TAGGER, PARSER], ids=["tagger", "parser"])
def test_all_sources_obey_one_contract(world, entry, settings):
    task = settings.task
    places = [f"model={world}/{task}", f"file={world}/text.conllu"]
    places += ["third=constant:x"] if task == "tagger" else []
    pool = SourcePool({place.split("=")[0]: load_source(place, settings=settings) for place in places})
    batch = pool.distributions(ROWS)
    for index, source in enumerate(pool.sources):
        marginals = batch[index].group_view(batch[index].marginals())
        inside = batch[index].valid.any(-1)
        torch.testing.assert_close(marginals.sum(-1), inside.to(marginals.dtype), atol=1e-4, rtol=0)
        for position, row in enumerate(ROWS):  # batches and padding do not matter
            (alone,) = pool.distributions([row])[index : index + 1]
            single = alone.group_view(alone.marginals())[0]
            groups = int(alone.group_lengths[0])
            for group in range(groups):
                ours, theirs = single[group], marginals[position, group]
                common = min(len(ours), len(theirs))
                torch.testing.assert_close(theirs[:common], ours[:common], atol=1e-4, rtol=1e-3)
        assert source_digest(source.source)


NESTED = "x: " + "[" * 500 + "]" * 500


@pytest.mark.parametrize("metadata", ["x: &x mit\nlicense: [*x]", "license: [", "- mit", NESTED])
def test_broken_cards_state_no_licence(tmp_path, metadata):
    (tmp_path / "README.md").write_text(f"---\n{metadata}\n---\n")
    assert source_licence(SourceSpec.parse(f"a={tmp_path}"), model_of("tagger", 1)) is None


def test_charts_from_a_mixed_pool_record_each_source(world, tmp_path, capsys):
    (world / "tagger" / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n# A tagger\n")
    sources = ["--sources", f"model={world}/tagger", f"file={world}/text.conllu"]
    words = ["build-charts", *sources, "--text", world / "text.conllu", "--output", tmp_path / "charts"]
    assert hf_xst_cli.main([str(word) for word in words]) == 0
    _, info = load_charts(str(tmp_path / "charts"))
    assert [(source.name, source.kind) for source in info.sources] == [("model", "model"), ("file", "conllu")]
    assert all(source.weights_sha256 for source in info.sources)
    assert [source.licence for source in info.sources] == ["cc-by-4.0", None]
    assert info.initial_model == "model"
    voted = ["vote", *sources, "--treebank", f"test={world}/text.conllu", "--output", tmp_path / "vote"]
    assert hf_xst_cli.main([str(word) for word in voted]) == 0


def test_charts_without_models_are_trained_on_from_scratch(world, tmp_path, capsys):
    words = ["build-charts", "--sources", world / "text.conllu", "--task", "tagger"]
    words += ["--text", world / "text.conllu", "--output", tmp_path / "charts"]
    assert hf_xst_cli.main([str(word) for word in words]) == 0
    assert "use transfer --init-from scratch" in capsys.readouterr().err
    _, info = load_charts(str(tmp_path / "charts"))
    assert (info.initial_model, info.labels, info.model_type) == ("scratch", "union", "hf_xst_crf_tagger")
    transfer = ["transfer", "--charts", tmp_path / "charts", "--output", tmp_path / "m", "--max-steps", 1]
    assert hf_xst_cli.main([str(word) for word in transfer]) == 1
    assert "give either --vectors (word vectors) or --encoder" in capsys.readouterr().err


ENTITY_LABELS = ["O", "B-PER", "I-PER"]
PENN = ["NN", "VBD", "-LRB-"]


def save_classifier(folder: Path, labels: list[str]) -> Path:
    save_bert(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder, id2label=dict(enumerate(labels)))
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("labels", "in_file", "flags", "column", "scheme"),
    [
        (ENTITY_LABELS, "S-PER", [], "ner_tags", "bio"),
        (ENTITY_LABELS, "I-PER", ["--column", "entity"], "entity", "bio"),
        (PENN, "NN", ["--column", "xpos"], "xpos", None),
        (["DET", "NOUN"], "DET", ["--column", "chunk"], "chunk", None),
    ],
)
def test_labels_of_other_columns_are_used_as_they_are(
    world, tmp_path, capsys, labels, in_file, flags, column, scheme
):
    bert = save_classifier(tmp_path / "classifier", labels)
    place = {column: [in_file] * 3} if column == "xpos" else {"misc": [f"{column}={in_file}"] * 3}
    sentence = ConlluSentence.from_words(["w1", "w2", "w3"], sent_id="s", columns=place)
    write_conllu([sentence], tmp_path / "file.conllu")
    text, charts, model = tmp_path / "file.conllu", tmp_path / "charts", tmp_path / "model"
    build = ["build-charts", "--sources", f"classifier={bert}", f"file={text}", *flags]
    transfer = ["transfer", "--charts", charts, "--init-from", "scratch", "--encoder", bert]
    for words in (
        [*build, "--text", text, "--output", charts],
        [*transfer, "--max-steps", 1, "--output", model],
        ["predict", "--model", model, "--input", text, "--output", tmp_path / "out.conllu"],
    ):
        assert hf_xst_cli.main([str(word) for word in words]) == 0, capsys.readouterr().err
    _, info = load_charts(str(charts))
    assert info.label_settings == {"column": column, "scheme": scheme}
    config = AutoConfig.from_pretrained(model)
    assert (config.column, config.scheme, sorted(config.labels)) == (column, scheme, sorted(labels))
    if scheme is not None:  # I-PER begins no sentence
        probs = load_source(str(bert), settings=SourceSettings(column=column)).distributions(ROWS).marginals()
        assert probs[:, 0, :, 1].sum() == 0 < probs[:, 0, :, 2].sum()


@pytest.mark.parametrize(
    ("place", "settings", "message"),
    [
        ("tagger", {"task": "parser"}, "the source tagger predicts upos; expected a parser"),
        ("parser", {"task": "tagger"}, "the source parser predicts head and deprel; expected a tagger"),
        ("tagger", {"column": "xpos"}, "the source tagger predicts upos; expected the column xpos"),
        ("parser", {"column": "upos"}, "predicts head and deprel; expected the column upos"),
        ("text.conllu", {"task": "tagger", "column": "entity"}, "no word has a label in the column entity"),
    ],
)
def test_a_source_of_another_task_or_column_is_rejected(world, place, settings, message):
    with pytest.raises(ValueError, match=message):
        load_source(str(world / place), settings=SourceSettings(**settings))


def test_a_third_party_must_return_a_source(world, entry, monkeypatch):
    monkeypatch.setattr(EntryPoint, "load", lambda self: lambda place, settings: {"place": place})
    with pytest.raises(ValueError, match=r"returned a dict; expected a hf_xst\.sources\.Source"):
        load_source("x=constant:y")


@pytest.mark.parametrize("where", ["parameter", "frozen vectors"])
def test_models_with_nan_are_rejected(tmp_path, where):
    model = model_of("tagger")
    tensors = {"parameter": model.transitions.data, **dict(model.named_buffers())}
    tensor = tensors.get(where, tensors.get("encoder.words.vectors"))
    tensor.view(-1)[0] = float("nan")
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="contain NaN or infinite values"):
        loading.load_model(str(tmp_path))


@pytest.mark.parametrize(
    "change", [lambda each: each.add_(1), lambda each: each.fill_(0.5), lambda each: each.set_(each + 1)]
)
def test_the_digest_is_remembered_until_a_tensor_changes(change, monkeypatch):
    model = model_of("tagger")
    digest = model_digest(model)
    with monkeypatch.context() as context:
        context.setattr(numerics.hashlib, "sha256", None)
        assert model_digest(model) == digest
    with torch.no_grad():
        change(next(model.parameters()))
    assert model_digest(model) != digest


@pytest.mark.parametrize(("tags", "lengths"), [("AB", [2, 3]), ("AB", [3, 1]), ("ABC", [1, 3])])
def test_distributions_over_other_words_or_labels_are_rejected(tags, lengths):
    class Careless:
        names, columns = ["A", "B", "<s>", "</s>"], ("upos",)

        def distributions(self, rows):
            shape = (len(rows), max(lengths), len(tags))
            return tag_distribution(torch.zeros(shape), torch.tensor(lengths), [*tags, "<s>", "</s>"])

    rows = [{"words": ["one"]}, {"words": ["three", "more", "words"]}]
    with pytest.raises(
        ValueError, match=r"source careless returned a LinearChainCRF .* lengths \[3, 5\] over \{4\}"
    ):
        SourcePool({"careless": Careless()}).read(rows)


@pytest.mark.parametrize("names", [["A", "A", "<s>", "</s>"], ["<s>", "</s>", "A", "B"]])
def test_labels_that_occur_twice_are_rejected(names):
    class Careless:
        columns, distributions = ("upos",), None

        def __init__(self):
            self.names = names

    with pytest.raises(ValueError, match=r"labels holds .* more than once"):
        SourcePool({"careless": Careless()})

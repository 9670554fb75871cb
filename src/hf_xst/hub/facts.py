"""What a card says, put together from the records: nothing is guessed, what is not recorded is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hf_xst.data import UPOS_TAGS
from hf_xst.data.folders import LANGUAGES
from hf_xst.hub.markdown import Markdown, code, plain, shown_command, without_paths
from hf_xst.hub.records import Records
from hf_xst.hub.scored import Scores, Treebanks, developed_on, scores_of, trained_on
from hf_xst.inference.annotation import ANNOTATOR_FOLDER
from hf_xst.models.configuration import BOUNDARIES as BOUNDARY_NAMES
from hf_xst.sources.averaging import MEAN, NONE

TASKS = {"hf_xst_biaffine_parser": "parser", "hf_xst_crf_tagger": "tagger"}
UPOS = frozenset(UPOS_TAGS)
_NO_LANGUAGES = {"art": "an artificial language", "multilingual": "several languages"}
BOUNDARIES = frozenset(BOUNDARY_NAMES)
# Settings of training that a card lists if they are set, and how it calls them.
_SETTINGS = {
    "seed": "seed",
    "batch_size": "batch size",
    "epochs": "epochs",
    "patience": "epochs without a better score before the end",
    "plateau": "epochs without a better score before the learning rate is halved",
    "max_length": "longest sentence, added tokens counted",
    "faulty": "faulty gold",
    "best": "whose best structures join the charts",
    "sigma": "mass that the charts were narrowed to",
    "soft": "share of the loss against the pool itself",
    "train_words": "word vectors trained",
    "encoder_layers": "layers kept of the encoder",
    "model": "configuration",
    "trainer": "further arguments of the Trainer",
}


@dataclass(frozen=True)
class Encoder:
    """How a model reads words.

    Attributes:
        name: of the vector space, or the kind of pretrained model with its size.
        identifier: the pretrained encoder's id on the Hub.
        revision: its revision.
        sha256: of the vector file.
        dimension: of a word's vector.
        words: how many words the table has.
        frozen: whether it stays as it is in training.
    """

    name: str
    identifier: str | None = None
    revision: str | None = None
    sha256: str | None = None
    dimension: int | None = None
    words: int | None = None
    frozen: bool = True


@dataclass(frozen=True)
class Facts:
    """Facts of a folder, beside the raw records.

    Attributes:
        records: the raw records.
        language: codes that a person has stated; they come before those that treebanks give.
        text_licence: the licence of treebanks or text, where a person has stated it.
    """

    records: Records
    language: tuple[str, ...] = ()
    text_licence: str | None = None

    # -- what it is -------------------------------------------------------------------------------------

    @property
    def task(self) -> str:
        """`parser`, `tagger`, or `model` of another kind."""
        kind = self.records.config.get("model_type") or self.records.provenance.get("model_type")
        return TASKS.get(str(kind), "model")

    @property
    def column(self) -> str:
        """The column of labels that a tagger predicts; charts do not name it, but UPOS are known by name."""
        told = self.records.config.get("column")
        return str(told) if told else "upos" if set(self.labels) <= UPOS | BOUNDARIES else "labels"

    @property
    def labels(self) -> list[str]:
        """The names of the labels."""
        found = self.records.config.get("labels") or self.records.provenance.get("names") or []
        return [str(name) for name in found]

    @property
    def has_tagger(self) -> bool:
        """Whether a tagger lies beside the model, which then gives the tags that it reads."""
        return (self.records.folder / ANNOTATOR_FOLDER / "config.json").is_file()

    @property
    def reads_tags(self) -> bool:
        """Whether the model reads coarse tags beside the words."""
        return bool(self.records.config.get("uses_upos"))

    @property
    def languages(self) -> list[str]:
        """Codes of the languages, those of the training text where its files say so for certain."""
        codes = [each.language for each in self.treebanks if each.language]
        return list(self.language) or list(dict.fromkeys(codes))

    @property
    def language_names(self) -> list[str]:
        """The languages' names in English where they are known, else their codes."""
        told = {each.language: each.language_name for each in self.treebanks if each.language_name}
        known = {code: language.name for code, language in LANGUAGES.items()} | _NO_LANGUAGES
        return [told.get(code) or known.get(code, f"the language {code}") for code in self.languages]

    # -- what it was made from --------------------------------------------------------------------------

    @property
    def treebanks(self) -> Treebanks:
        """Treebanks or text that were read in training: of a source with gold, else without."""
        return trained_on(self.records)

    @property
    def licences(self) -> list[str]:
        """Licences of the treebanks that were read."""
        known = [each.licence for each in self.treebanks if each.licence]
        return [self.text_licence] if self.text_licence else list(dict.fromkeys(known))

    @property
    def development(self) -> Treebanks:
        """The treebank whose gold gave a transferred model's development scores, and nothing else."""
        return developed_on(self.records) if self.records.kind == "transferred" else ()

    @property
    def sentences(self) -> int | None:
        """Sentences that were trained on, or that charts were made for."""
        results, counts = self.records.results, self.records.provenance.get("counts", {})
        found = results.get("train_sentences", results.get("sentences", counts.get("sentences")))
        return None if found is None else int(found)

    @property
    def encoder(self) -> Encoder | None:
        """How the model reads words."""
        config = self.records.config
        space, pretrained = config.get("vector_space"), config.get("encoder_config")
        if pretrained:
            told = self.records.results.get("encoder") or {}
            size = (
                f"{pretrained.get('num_hidden_layers', '?')} layers of {pretrained.get('hidden_size', '?')}"
            )
            name = f"{told.get('name') or pretrained.get('model_type', 'AutoModel')} ({size})"
            frozen = config.get("frozen_layers", -1) == -1
            return Encoder(name, told.get("id"), told.get("revision"), frozen=frozen)
        if space:
            words, frozen = config.get("vocabulary_size"), bool(config.get("freeze_word_vectors", True))
            return Encoder(
                str(space["name"]), None, None, space.get("sha256"), space.get("dimension"), words, frozen
            )
        return None

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The source models with their weights in the pool, None where all count alike."""
        weights = self.records.provenance.get("weights") or {}
        return [
            {**source, "weight": weights.get(source["name"])}
            for source in self.records.provenance.get("sources", [])
        ]

    @property
    def is_mean(self) -> bool:
        """Whether this is the mean of the sources as it stands, without any update."""
        run, results = self.records.run, self.records.results
        from_mean = run.get("start") == MEAN or (
            run.get("start") is None and bool(self.records.provenance.get("start_from_mean"))
        )
        return self.records.kind == "transferred" and from_mean and results.get("updates") == 0

    @property
    def start(self) -> Markdown | None:
        """What training started from: the start's id or name, or what was made instead."""
        run, kind = self.records.run, self.records.kind
        start, like = run.get("start"), run.get("like")
        if start == NONE:
            model = f" like {code(without_paths(str(like), self.ids))}" if like else ""
            return Markdown(f"a fresh model{model}")
        untold = start is None and kind == "transferred" and bool(run)
        if start == MEAN or (untold and self.records.provenance.get("start_from_mean")):
            return plain("the mean of these source models, with their weights")
        if untold:
            start = self.records.provenance.get("start")  # the source that the charts were made for
        return code(without_paths(str(start), self.ids)) if start else None

    @property
    def base_models(self) -> list[str]:
        """Ids of the models that this one comes from, as far as they are on the Hub: the start first."""
        start = self.records.provenance.get("start")
        ordered = sorted(self.sources, key=lambda source: source["name"] != start)
        found = [source["id"] for source in ordered]
        if self.records.kind == "source" and self.encoder:
            found.append(self.encoder.identifier)
        found.append((self.records.results.get("start") or {}).get("id"))
        return list(dict.fromkeys(name for name in found if name))

    @property
    def ids(self) -> set[str]:
        """What is known to be an id on the Hub."""
        treebanks = [*self.treebanks, *self.development]
        return {*self.base_models, *(each.name for each in treebanks if each.on_hub)}

    # -- how --------------------------------------------------------------------------------------------

    @property
    def settings(self) -> list[tuple[str, Any]]:
        """Settings of training that are recorded, by name."""
        results = self.records.results  # they hold what a recipe has filled in
        filled = {key: results[key] for key in ("batch_size",) if results.get(key)}
        run = self.records.run | filled | (results.get("use") or {})
        found: list[tuple[str, Any]] = []
        if self.records.kind in ("source", "transferred"):
            found = [("updates done", self.records.results.get("updates"))]
            found += [
                ("learning rate", self.records.learning_rate),
                ("pull (l2)", self.records.results.get("l2")),
            ]
            found += [(title, self._setting(run.get(name))) for name, title in _SETTINGS.items()]
        return [(name, value) for name, value in found if value not in (None, "", [])]

    def _setting(self, value: Any) -> Any:
        if isinstance(value, list):
            return ", ".join(without_paths(str(each), self.ids) for each in value)
        return without_paths(value, self.ids) if isinstance(value, str) else value

    @property
    def command(self) -> str:
        """The command, its paths reduced to their last parts."""
        return shown_command(self.records.command, self.ids)

    @property
    def scores(self) -> list[Scores]:
        """All scores that are recorded."""
        return scores_of(self.records)

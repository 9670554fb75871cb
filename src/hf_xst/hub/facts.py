"""Derive the facts on a card from the records; facts that are not recorded are left out, never guessed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hf_xst.data import UPOS_TAGS
from hf_xst.data.folders import LANGUAGES
from hf_xst.hub.markdown import Markdown, cell, code, strip_paths
from hf_xst.hub.run_records import RunRecords
from hf_xst.models.configuration import BOUNDARIES
from hf_xst.models.kinds import TASK_OF_MODEL_TYPE
from hf_xst.training.results import ModelOrigin, SourceResults, TransferResults

_SPECIAL_LANGUAGES = {"art": "an artificial language", "multilingual": "several languages"}
# Options of training that a card lists if they are set.
_SETTINGS = (
    "updates learning_rate l2 seed batch_size epochs patience plateau max_length faulty best sigma soft "
    "train_words encoder_layers model trainer"
).split()


@dataclass(frozen=True)
class Facts:
    """Facts about a model or charts.

    Attributes:
        records: the records.
        stated_languages: codes that a person stated; they take precedence over those of the treebanks.
    """

    records: RunRecords
    stated_languages: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """`parser`, `tagger`, or `model` for any other kind."""
        charts = self.records.charts
        model_type = self.records.config.get("model_type") or (charts.model_type if charts else "")
        return TASK_OF_MODEL_TYPE.get(model_type, "model")

    @property
    def task_name(self) -> str:
        """The kind of model in a few words."""
        if self.task == "tagger":
            is_pos = self.column in ("upos", "xpos")
            return "part-of-speech tagger" if is_pos else f"tagger for {self.column}"
        return "dependency parser" if self.task == "parser" else "structured prediction model"

    @property
    def labels(self) -> list[str]:
        """Names of the labels."""
        charts = self.records.charts
        return [str(name) for name in self.records.config.get("labels") or (charts.names if charts else [])]

    @property
    def column(self) -> str:
        """The column that a tagger predicts; charts do not record it, but UPOS tags are known by name."""
        recorded = self.records.config.get("column")
        return str(recorded or ("upos" if set(self.labels) <= {*UPOS_TAGS, *BOUNDARIES} else "labels"))

    @property
    def languages(self) -> list[str]:
        """Language codes: as stated, otherwise as the treebanks' files give them."""
        codes = [each.language for each in self.records.treebanks if each.language]
        return list(self.stated_languages) or list(dict.fromkeys(codes))

    @property
    def language_names(self) -> list[str]:
        """English names of the languages where known, otherwise their codes."""
        names = {code: language.name for code, language in LANGUAGES.items()} | _SPECIAL_LANGUAGES
        for each in self.records.treebanks:
            if each.language and each.language_name:
                names[each.language] = each.language_name
        return [names.get(code, f"the language {code}") for code in self.languages]

    @property
    def sentences(self) -> int | None:
        """Number of sentences trained on, or in the charts."""
        results, charts = self.records.results, self.records.charts
        in_charts = charts.counts.sentences if charts else None
        return results.train_sentences if isinstance(results, SourceResults) else in_charts

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The source models of the charts with their weights, None for uniform weights."""
        if (charts := self.records.charts) is None:
            return []
        weights = charts.settings.weights or {}
        return [{**asdict(source), "weight": weights.get(source.name)} for source in charts.sources]

    @property
    def encoder(self) -> ModelOrigin | None:
        """Origin of the pretrained encoder of a source model."""
        results = self.records.results
        return results.encoder if isinstance(results, SourceResults) else None

    @property
    def word_representation(self) -> Markdown | None:
        """Name of the pretrained encoder or of the vector space, and whether it was trained."""
        config, origin = self.records.config, self.encoder or ModelOrigin()
        encoder, space = config.get("encoder_config"), config.get("vector_space")
        if encoder:
            frozen = config.get("frozen_layers", -1) == -1
            size = f"{encoder.get('num_hidden_layers', '?')} layers of {encoder.get('hidden_size', '?')}"
            name = cell(origin.id or f"{origin.name or encoder.get('model_type', 'AutoModel')} ({size})")
            if origin.id:
                revision = cell(origin.revision) if origin.revision else "not stated"
                name = Markdown(f"{name}, revision {revision}")
            return Markdown(f"pretrained encoder {name}, {'frozen' if frozen else 'fine-tuned'}")
        if space:
            frozen = config.get("freeze_word_vectors", True)
            size = f", {space['dimension']} dimensions" if space.get("dimension") else ""
            return Markdown(f"word vectors {cell(space['name'])}{size}, {'frozen' if frozen else 'trained'}")
        return None

    @property
    def initialised_from(self) -> str | None:
        """How a transferred model was initialised, if recorded: `model`, `average` or `scratch`."""
        results = self.records.results
        return results.initialised_from if isinstance(results, TransferResults) else None

    @property
    def is_average(self) -> bool:
        """Whether the model is the average of the source models, without further training."""
        results = self.records.results
        return self.initialised_from == "average" and results is not None and results.updates == 0

    @property
    def initial_model(self) -> Markdown | None:
        """The model that training was initialised from, if recorded."""
        results, like = self.records.results, self.records.run.get("like")
        if self.initialised_from == "average":
            return Markdown("the average of these source models, weighted as above")
        if self.initialised_from == "scratch":
            configuration = f", with the configuration of {code(strip_paths(str(like), self.ids))}"
            return Markdown(f"scratch{configuration if like else ''}")
        origin = (results and results.initial_model) or ModelOrigin()
        revision = f"@{origin.revision}" if origin.id and origin.revision else ""
        name = origin.id or origin.name
        return code(f"{strip_paths(name, self.ids)}{revision}") if name else None

    @property
    def base_models(self) -> list[str]:
        """Hub ids of the models that this one was made from, the initial model first."""
        results = self.records.results
        origins = [results and results.initial_model, self.encoder]
        ids = [origin and origin.id for origin in origins] + [source["id"] for source in self.sources]
        return list(dict.fromkeys(name for name in ids if name))

    @property
    def ids(self) -> set[str]:
        """All recorded names that are known to be Hub ids."""
        treebanks = (*self.records.treebanks, *self.records.dev_treebanks)
        return {*self.base_models, *(each.name for each in treebanks if each.on_hub)}

    @property
    def settings(self) -> list[tuple[str, Any]]:
        """Recorded settings of training, by name."""
        records, results = self.records, self.records.results
        if results is None:
            return []
        options = records.run | {"updates": results.updates, "learning_rate": results.learning_rate}
        if isinstance(results, TransferResults):  # contains what the preset filled in
            options |= asdict(results.use) | {"l2": results.l2}
            options["batch_size"] = results.batch_size or options.get("batch_size")
        settings = [(name, self._without_paths(options.get(name))) for name in _SETTINGS]
        return [(name, value) for name, value in settings if value not in (None, "", [])]

    def _without_paths(self, value: Any) -> Any:
        if isinstance(value, list):
            return ", ".join(strip_paths(str(each), self.ids) for each in value)
        return strip_paths(value, self.ids) if isinstance(value, str) else value

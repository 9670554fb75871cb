"""Pipelines of transformers: text, words or CoNLL-U in; dictionaries, CoNLL-U, or spaCy and NLTK objects out.

`pipeline("dependency-parsing", model=...)` and `pipeline("structured-tagging", model=...)` are known as soon
as the package is imported. (The stock `token-classification` pipeline takes a softmax for each piece of a
word, which is no distribution over tag sequences.)
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from torch import nn
from transformers import AutoModel
from transformers.pipelines import PIPELINE_REGISTRY
from transformers.pipelines.base import Pipeline

from hf_xst.data import ConlluSentence, WordVectors, read_vectors
from hf_xst.data.conllu import conllu_texts
from hf_xst.data.segmentation import segment
from hf_xst.inference.annotation import (
    ANNOTATOR_FOLDER,
    Annotated,
    Annotation,
    AnnotationSettings,
    Annotator,
    annotator_beside,
    checked_annotator,
)
from hf_xst.inference.confidence import Reading
from hf_xst.inference.inputs import Given, given, is_single, several
from hf_xst.inference.interop import nltk_brackets, nltk_graph, nltk_tags, nltk_tree, spacy_doc
from hf_xst.inference.outputs import ConlluWriter, as_dict, check_parses, drawing
from hf_xst.models import BiaffineParser, CrfTagger
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.word_model import PUSH_ARGUMENTS
from hf_xst.models.words import VectorTable
from hf_xst.sources.pool import load_model

_READ = ("segmenter", "is_split_into_words")
_READING = {"decoding": "rule", "confidence": "confidence", "kbest": "kbest"}
_SETTINGS = ("batch_words", "max_words", "too_long")
_WRITTEN = ("output", "vocab")
_OF_TREES = ("drawing", "nltk-graph", "nltk-tree", "nltk-brackets")
OUTPUTS = ("dict", "conllu", "sentence", "spacy", "nltk-tags", *_OF_TREES)


class StructuredPipeline(Pipeline):
    """What the parser's and the tagger's pipeline share.

    Inputs: running text (cut up by `segmenter`), a list of words, a CoNLL-U string, a `ConlluSentence`, or a
    mapping with `words`, `tokens` or `text`, as data sets have them (with `upos` where there is any).

    Several inputs come as a list (the outputs are a list), or as a generator or data set (the outputs are a
    generator, and some 2000 sentences are read ahead). A list of strings is the words of one sentence, unless
    `is_split_into_words=False` says that it is several texts.

    Outputs come in the order of the inputs, one for each. Text and CoNLL-U strings may hold several
    sentences: their output is a list, or one string, or one `Doc`.

    All of the following but `tagger` and `vectors` can also be given with a call.

    Args:
        model: the model; `pipeline` takes its folder or its id on the Hub as well.
        tagger: what tags words for a model that reads tags (folder, id, model or pipeline); by default the
            one that was saved with the model; False takes the tags that the input has.
        vectors: word vectors of the language (file or loaded), for models that read words by vectors.
        output: `"dict"`, `"conllu"` (a string), `"sentence"` (`ConlluSentence`), `"drawing"` (for a
            terminal), `"spacy"` (a `Doc`), `"nltk-graph"`, `"nltk-tree"`, `"nltk-brackets"` (a string), or
            `"nltk-tags"` (pairs).
        confidence: also probabilities, exact marginals; see `hf_xst.inference.outputs`.
        kbest: also so many most probable structures with their log-probabilities.
        decoding: `"best"`, or `"minimum-risk"`: the structure with the most right parts to be expected.
        segmenter: takes a paragraph, gives its sentences as lists of words; by default
            `hf_xst.data.segmentation.segment`.
        is_split_into_words: whether a list of strings is one sentence; see above.
        batch_words: words of a batch, padding included; batches are of like length.
        max_words: the longest sentence that is annotated (memory grows with its square).
        too_long: leave longer ones out ("skip", they are marked as such), or raise an error ("error").
        vocab: the vocabulary of a spaCy `Doc`.
        settings: those of every pipeline, such as `device`.

    Raises:
        ValueError: the model is of another kind, or an argument is unknown or out of range.
    """

    _load_tokenizer = False  # type: ignore[assignment, unused-ignore]
    _load_processor = False  # type: ignore[assignment, unused-ignore]
    _load_image_processor = False  # type: ignore[assignment, unused-ignore]
    _load_video_processor = False  # type: ignore[assignment, unused-ignore]
    _load_feature_extractor = False  # type: ignore[assignment, unused-ignore]
    model: StructuredModel  # type: ignore[assignment, unused-ignore]
    kind: ClassVar[type[StructuredModel]]

    def __init__(
        self,
        model: StructuredModel,
        *,
        tagger: str | os.PathLike[str] | StructuredModel | StructuredPipeline | bool | None = None,
        vectors: str | os.PathLike[str] | WordVectors | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(model, self.kind):
            raise ValueError(
                f"found a {type(model).__name__}; this pipeline needs a {self.kind.__name__} saved by hf_xst "
                f"({' and '.join(f'{name}: {other.kind.__name__}' for name, other in PIPELINES.items())})"
            )
        super().__init__(model, **settings)
        if self._batch_size is not None:
            raise ValueError(
                "found batch_size; batches are made of sentences of like length: give batch_words"
            )
        self.tagger = self._tagger(model, tagger)
        models = [each for each in (self.tagger, model) if each is not None]
        if vectors is not None:
            table = vectors if isinstance(vectors, WordVectors) else read_vectors(vectors)
            for each in models:
                if isinstance(each.encoder.words, VectorTable):
                    each.replace_word_vectors(table)
        self._annotator = Annotator([nn.Module.to(each, self.device) for each in models])
        self._writer = ConlluWriter(models)
        self._forms: dict[str, Callable[[ConlluSentence, Annotation], Any]] = {
            "dict": as_dict,
            "sentence": self._writer.sentence,
            "nltk-graph": nltk_graph,
            "nltk-tree": nltk_tree,
            "nltk-brackets": nltk_brackets,
            "nltk-tags": partial(nltk_tags, column=_tag_column(model)),
        }

    @staticmethod
    def _tagger(model: StructuredModel, chosen: Any) -> StructuredModel | None:
        if chosen is None and model.annotation_column in model.input_columns and model.name_or_path:
            chosen = annotator_beside(model.name_or_path, model.revision)
        if chosen is None or chosen is False:
            return None
        if isinstance(chosen, StructuredPipeline):
            chosen = chosen.model
        name = type(chosen).__name__ if isinstance(chosen, StructuredModel) else str(chosen)
        found = chosen if isinstance(chosen, StructuredModel) else load_model(name)
        return checked_annotator(found, f"tagger {name}")

    def _sanitize_parameters(self, **settings: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        known = (*_READ, *_READING, *_SETTINGS, *_WRITTEN)
        for name in settings:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"is {near[0]} meant?" if near else f"there are {', '.join(known)}"
                raise ValueError(f"the pipeline has no argument {name}; {hint}")
        output = settings.get("output", "dict")
        if output not in OUTPUTS:
            raise ValueError(f"output is {output!r}; expected one of {', '.join(OUTPUTS)}")
        if output in _OF_TREES:
            check_parses(self.model.columns, f"output={output!r}")
        reads, settled, written = (
            {name: settings[name] for name in names if name in settings}
            for names in (_READ, (*_READING, *_SETTINGS), _WRITTEN)
        )
        _settings(settled)  # or a wrong value would be found when the first sentence comes
        return reads, settled, written

    def __call__(self, inputs: Any, **settings: Any) -> Any:  # type: ignore[override, unused-ignore]
        """Annotate one input or several; see the class."""
        new = self._sanitize_parameters(**settings)
        old = (self._preprocess_params, self._forward_params, self._postprocess_params)
        reads, settled, written = ({**before, **now} for before, now in zip(old, new, strict=True))
        single = is_single(inputs, reads.get("is_split_into_words"))
        items = iter([inputs]) if single else several(inputs)
        waiting: deque[Given] = deque()

        def sentences() -> Iterator[ConlluSentence]:
            for place, item in enumerate(items, start=1):
                waiting.append(self.preprocess(item, place=place, **reads))
                yield from waiting[-1].sentences

        grouped = _grouped(self._annotated(sentences(), settled), waiting)
        results = (self.postprocess(each, **written) for each in grouped)
        if single:
            return next(results)
        return list(results) if isinstance(inputs, (list, tuple)) else results

    def preprocess(self, input_: Any, **reads: Any) -> Any:
        """Read one input into sentences."""
        return given(input_, reads.get("segmenter") or segment, reads.get("place", 1))

    def _forward(self, input_tensors: Any, **settled: Any) -> Any:
        """Annotate the sentences of one input."""
        return input_tensors, list(self._annotated(iter(input_tensors.sentences), settled))

    def postprocess(self, model_outputs: Any, **written: Any) -> Any:
        """Give one input's sentences the form that is wanted."""
        source, found = model_outputs
        output = written.get("output", "dict")
        if output == "spacy":
            return spacy_doc(found, written.get("vocab"))
        if output == "conllu":
            return "".join(conllu_texts(self._writer.sentence(*each) for each in found))
        if output == "drawing":
            return "\n".join(drawing(*each) for each in found)
        made = [self._forms[output](*each) for each in found]
        return made if source.is_text else made[0]

    def _annotated(
        self, sentences: Iterator[ConlluSentence], settled: Mapping[str, Any]
    ) -> Iterator[Annotated]:
        annotator = self._annotator.with_settings(_settings(settled))
        for block in annotator.blocks(sentences, annotator.row):
            yield from block

    def save_pretrained(  # type: ignore[override, unused-ignore]
        self, save_directory: str | os.PathLike[str], push_to_hub: bool = False, **kwargs: Any
    ) -> None:
        """Save the model, and its tagger in `tagger/`, so that loading finds both; no code is saved."""
        hub = {key: kwargs.pop(key) for key in PUSH_ARGUMENTS if key in kwargs}
        self.model.save_pretrained(save_directory, **kwargs)
        if self.tagger is not None:
            self.tagger.save_pretrained(Path(save_directory) / ANNOTATOR_FOLDER)
        if push_to_hub:
            self.push_to_hub(hub.pop("repo_id", Path(save_directory).name), **hub)

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:  # type: ignore[override, unused-ignore]
        """Put the model and its tagger on the Hub, searched for what is private.

        Args:
            repo_id: USER/NAME.
            options: see `push_to_hub` of the model.

        Raises:
            ValueError: something private would go, or the Hub refuses; in one line.
        """
        from hf_xst.hub.publish import push_model  # nothing of it is needed to annotate

        return push_model(self, repo_id, **options)


def _grouped(results: Iterator[Annotated], waiting: deque[Given]) -> Iterator[tuple[Given, list[Annotated]]]:
    """Give each input its own results; `waiting` has grown to the input of any result before it comes."""
    done: list[Annotated] = []
    for each in results:
        while not waiting[0].sentences:
            yield waiting.popleft(), []
        done.append(each)
        if len(done) == len(waiting[0].sentences):
            yield waiting.popleft(), done
            done = []
    while waiting:
        yield waiting.popleft(), []


def _tag_column(model: StructuredModel) -> str:
    return model.columns[0] if isinstance(model, CrfTagger) else model.annotation_column


def _settings(settled: Mapping[str, Any]) -> AnnotationSettings:
    reading = {field: settled[name] for name, field in _READING.items() if name in settled}
    others = {name: settled[name] for name in _SETTINGS if name in settled}
    return AnnotationSettings(Reading(**reading), **others)


class DependencyParsingPipeline(StructuredPipeline):
    """Parses sentences into dependency trees; see `StructuredPipeline`."""

    kind = BiaffineParser


class StructuredTaggingPipeline(StructuredPipeline):
    """Tags the words of sentences, all of a sentence together; see `StructuredPipeline`."""

    kind = CrfTagger


PIPELINES: dict[str, type[StructuredPipeline]] = {
    "dependency-parsing": DependencyParsingPipeline,
    "structured-tagging": StructuredTaggingPipeline,
}


def register_pipelines() -> None:
    """Make `transformers.pipeline` know the pipelines; harmless when done twice."""
    known = PIPELINE_REGISTRY.get_supported_tasks()
    for task, pipeline_class in PIPELINES.items():
        if task not in known:
            PIPELINE_REGISTRY.register_pipeline(task, pipeline_class, pt_model=AutoModel, type="text")


register_pipelines()

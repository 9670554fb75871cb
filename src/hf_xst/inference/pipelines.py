"""Register the pipelines `dependency-parsing` and `structured-tagging` with transformers.

They accept text, words or CoNLL-U, and return dictionaries, CoNLL-U or spaCy documents. (The
`token-classification` pipeline of transformers applies a softmax to each piece of a word, which is not a
distribution over tag sequences.)
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from torch import nn
from transformers import AutoModel
from transformers.pipelines import PIPELINE_REGISTRY
from transformers.pipelines.base import Pipeline

from hf_xst.console import did_you_mean
from hf_xst.data import ConlluSentence, WordVectors, read_vectors
from hf_xst.data.conllu import conllu_texts
from hf_xst.data.segmentation import segment
from hf_xst.inference.annotation import (
    TAGGER_FOLDER,
    AnnotationSettings,
    Annotator,
    check_tagger,
    find_tagger,
    read_blocks,
)
from hf_xst.inference.inputs import Input, as_list, is_single, iterate_inputs, read_input
from hf_xst.inference.outputs import Annotated, ConlluWriter, as_dict, check_parses, drawing, spacy_doc
from hf_xst.models import BiaffineParser, CrfTagger
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.word_model import PUSH_ARGUMENTS
from hf_xst.models.words import VectorTable
from hf_xst.sources.loading import load_model

_INPUT_ARGUMENTS = ("segmenter", "is_split_into_words")
_SETTINGS = tuple(AnnotationSettings.__dataclass_fields__)
_OUTPUT_ARGUMENTS = ("output", "vocab")
OUTPUTS = ("dict", "conllu", "sentence", "spacy", "drawing")


class StructuredPipeline(Pipeline):
    """Base class of the parser's and the tagger's pipeline.

    Inputs: running text (split by `segmenter`), a list of words, a CoNLL-U string, a `ConlluSentence`, or a
    mapping with `words`, `tokens` or `text`, as in data sets (with `upos` if available).

    Pass several inputs as a list (returns a list), or as a generator or data set (returns a generator, which
    reads some 2000 sentences ahead). A list of strings is the words of one sentence, or, with
    `is_split_into_words=False`, several texts.

    Outputs come in the order of the inputs, one for each. Text and CoNLL-U strings can hold several
    sentences: their output is a list, or one string, or one `Doc`.

    All arguments but `tagger` and `vectors` can also be passed with a call.

    Args:
        model: the model; `pipeline` also accepts its folder or Hub id.
        tagger: the tagger for a model that reads tags (folder, id, model or pipeline); defaults to the one
            saved with the model. False uses the tags of the input.
        vectors: word vectors of the language (file or loaded), for models that read words by vectors.
        output: `"dict"`, `"conllu"` (a string), `"sentence"` (`ConlluSentence`), `"drawing"` (for a
            terminal), or `"spacy"` (a `Doc`).
        segmenter: function from a paragraph to its sentences as lists of words; defaults to
            `hf_xst.data.segmentation.segment`.
        is_split_into_words: whether a list of strings is one sentence.
        vocab: the vocabulary of a spaCy `Doc`.
        settings: fields of `AnnotationSettings` (`confidence`, `kbest`, `decoding`, `batch_words`,
            `max_words`, `too_long`), and those of every pipeline, such as `device`.

    Raises:
        ValueError: if the model is of another kind, or an argument is unknown or out of range.
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
            kinds = " and ".join(f"{task}: {each.kind.__name__}" for task, each in PIPELINES.items())
            raise ValueError(
                f"found a {type(model).__name__}; this pipeline requires a {self.kind.__name__} saved by "
                f"hf_xst ({kinds})"
            )
        super().__init__(model, **settings)
        if self._batch_size is not None:
            raise ValueError("found batch_size; batches hold sentences of similar length: pass batch_words")
        self.tagger = self._load_tagger(model, tagger)
        models = [each for each in (self.tagger, model) if each is not None]
        if vectors is not None:
            table = vectors if isinstance(vectors, WordVectors) else read_vectors(vectors)
            for each in models:
                if isinstance(each.encoder.words, VectorTable):
                    each.replace_word_vectors(table)
        self._annotator = Annotator([nn.Module.to(each, self.device) for each in models])
        self._writer = ConlluWriter(models)

    @staticmethod
    def _load_tagger(model: StructuredModel, tagger: Any) -> StructuredModel | None:
        if tagger is None and model.annotation_column in model.input_columns and model.name_or_path:
            tagger = find_tagger(model.name_or_path, model.revision)
        if tagger is None or tagger is False:
            return None
        if isinstance(tagger, StructuredPipeline):
            tagger = tagger.model
        if isinstance(tagger, StructuredModel):
            return check_tagger(tagger, f"tagger {type(tagger).__name__}")
        return check_tagger(load_model(str(tagger)), f"tagger {tagger}")

    def _sanitize_parameters(self, **settings: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        groups = (_INPUT_ARGUMENTS, _SETTINGS, _OUTPUT_ARGUMENTS)
        known = [name for group in groups for name in group]
        for name in settings:
            if name not in known:
                raise ValueError(f"the pipeline has no argument {name}{did_you_mean(name, known)}")
        output = settings.get("output", "dict")
        if output not in OUTPUTS:
            raise ValueError(f"output is {output!r}; expected one of {', '.join(OUTPUTS)}")
        if output == "drawing":
            check_parses(self.model.columns, f"output={output!r}")
        first, second, third = ({key: settings[key] for key in group if key in settings} for group in groups)
        AnnotationSettings(**second)  # checks the values before the first sentence comes
        return first, second, third

    def __call__(self, inputs: Any, **settings: Any) -> Any:  # type: ignore[override, unused-ignore]
        """Annotate one input or several; see the class."""
        new = self._sanitize_parameters(**settings)
        old = (self._preprocess_params, self._forward_params, self._postprocess_params)
        reading, annotation, writing = ({**before, **now} for before, now in zip(old, new, strict=True))
        inputs = as_list(inputs)
        single = is_single(inputs, reading.get("is_split_into_words"))
        items = iter([inputs]) if single else iterate_inputs(inputs)
        waiting: deque[Input] = deque()

        def sentences() -> Iterator[ConlluSentence]:
            for number, item in enumerate(items, start=1):
                waiting.append(self.preprocess(item, number=number, **reading))
                yield from waiting[-1].sentences

        grouped = _group_by_input(self._annotate(sentences(), annotation), waiting)
        results = (self.postprocess(each, **writing) for each in grouped)
        if single:
            return next(results)
        return list(results) if isinstance(inputs, (list, tuple)) else results

    def preprocess(self, input_: Any, **settings: Any) -> Any:
        """Read one input into sentences."""
        return read_input(input_, settings.get("segmenter") or segment, settings.get("number", 1))

    def _forward(self, input_tensors: Any, **settings: Any) -> Any:
        """Annotate the sentences of one input."""
        return input_tensors, list(self._annotate(iter(input_tensors.sentences), settings))

    def postprocess(self, model_outputs: Any, **settings: Any) -> Any:
        """Convert the sentences of one input to the requested output."""
        source, annotated = model_outputs
        output = settings.get("output", "dict")
        if output == "spacy":
            return spacy_doc(annotated, settings.get("vocab"))
        if output == "conllu":
            return "".join(conllu_texts(self._writer.sentence(*each) for each in annotated))
        if output == "drawing":
            return "\n".join(drawing(*each) for each in annotated)
        convert: Callable[..., Any] = as_dict if output == "dict" else self._writer.sentence
        results = [convert(*each) for each in annotated]
        return results if source.is_text else results[0]

    def _annotate(
        self, sentences: Iterator[ConlluSentence], settings: Mapping[str, Any]
    ) -> Iterator[Annotated]:
        annotator = self._annotator.with_settings(AnnotationSettings(**settings))
        for number, block in enumerate(read_blocks(sentences)):
            yield from annotator.annotate_block(block, warns=number == 0)

    def save_pretrained(  # type: ignore[override, unused-ignore]
        self, save_directory: str | os.PathLike[str], push_to_hub: bool = False, **kwargs: Any
    ) -> None:
        """Save the model, and its tagger in `tagger/`, so that loading finds both; saves no code."""
        hub = {key: kwargs.pop(key) for key in PUSH_ARGUMENTS if key in kwargs}
        self.model.save_pretrained(save_directory, **kwargs)
        if self.tagger is not None:
            self.tagger.save_pretrained(Path(save_directory) / TAGGER_FOLDER)
        if push_to_hub:
            self.push_to_hub(hub.pop("repo_id", Path(save_directory).name), **hub)

    def push_to_hub(self, repo_id: str, **options: Any) -> Any:  # type: ignore[override, unused-ignore]
        """Push the model and its tagger to USER/NAME on the Hub; see `push_to_hub` of the model."""
        publish: Any = import_module(__name__.partition(".")[0]).push_model
        return publish(self, repo_id, **options)


def _group_by_input(
    results: Iterator[Annotated], waiting: deque[Input]
) -> Iterator[tuple[Input, list[Annotated]]]:
    """Give each input its own results; the input of a result is always in `waiting` before the result."""
    group: list[Annotated] = []
    for each in results:
        while not waiting[0].sentences:
            yield waiting.popleft(), []
        group.append(each)
        if len(group) == len(waiting[0].sentences):
            yield waiting.popleft(), group
            group = []
    while waiting:
        yield waiting.popleft(), []


class DependencyParsingPipeline(StructuredPipeline):
    """Parse sentences into dependency trees; see `StructuredPipeline`."""

    kind = BiaffineParser


class StructuredTaggingPipeline(StructuredPipeline):
    """Tag the words of each sentence jointly; see `StructuredPipeline`."""

    kind = CrfTagger


PIPELINES: dict[str, type[StructuredPipeline]] = {
    "dependency-parsing": DependencyParsingPipeline,
    "structured-tagging": StructuredTaggingPipeline,
}


for task, pipeline_class in PIPELINES.items():
    if task not in PIPELINE_REGISTRY.get_supported_tasks():
        PIPELINE_REGISTRY.register_pipeline(task, pipeline_class, pt_model=AutoModel, type="text")

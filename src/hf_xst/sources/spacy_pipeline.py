"""Use spaCy pipelines as sources: an installed package or a folder.

Words and sentence boundaries are given, so the parser may not split a sentence and each parse has one root.
spaCy's `ROOT` becomes `root`, the only relation of head 0; subtypes of relations are removed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from hf_xst.data import UPOS_TAGS
from hf_xst.data.sentence import BLANK
from hf_xst.extras import import_optional
from hf_xst.files import check_links
from hf_xst.models.columns import Row
from hf_xst.sources.base import OtherParser, OtherTagger

_ROOT, _UNKNOWN = "root", "dep"  # spaCy's parsers use `dep` for rare relations
_LIFTED = "||"  # in spaCy `acl||obj` is a projective arc that stands for an `acl` below an `obj`
_REST = 0.01  # probability of all arcs outside the beam, so that every tree remains possible
_DENSITY = 0.0001  # moves whose probability is below this fraction of the best one's are dropped
# A pickle starts with its protocol. PyTorch writes an archive with a pickle, or formerly a magic number.
_PICKLE_STARTS = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
_TORCH_MARKS = (b"/data.pkl", b"l\xfc\x9cF\xf9 j\xa8P\x19")
_Arcs = list[tuple[int, int, str]]


class _Pipeline:
    """A pipeline that runs up to one component, which the source runs itself."""

    kind = "spacy"

    def __init__(self, nlp: Any, component: str, digest: str, confidence: float) -> None:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1")
        self.licence: str | None = nlp.meta.get("license") or None
        self._nlp, self._component, self._digest = nlp, nlp.get_pipe(component), digest
        self._confidence = confidence
        before = nlp.pipe_names[: nlp.pipe_names.index(component)]
        nlp.select_pipes(enable=[name for name in before if not _assigns(nlp, name, "token.is_sent_start")])
        self._doc = import_optional("spacy.tokens", "spacy").Doc

    def digest(self) -> str:
        """Return the SHA-256 of the pipeline's files and the options."""
        return self._digest

    def _docs(self, rows: Sequence[Row]) -> list[Any]:
        """Run the components before the source's."""
        sentences = [list(row["words"]) for row in rows]
        starts = [[True, *[False] * (len(words) - 1)] for words in sentences]
        pairs = zip(sentences, starts, strict=True)
        docs = [self._doc(self._nlp.vocab, words=words, sent_starts=start) for words, start in pairs]
        return list(self._nlp.pipe(docs))


class SpacyTagger(_Pipeline, OtherTagger):
    """A tagger from the scores of a morphologizer or tagger; see `load_spacy`."""

    def __init__(self, nlp: Any, digest: str, confidence: float) -> None:
        pipes = import_optional("spacy.pipeline", "spacy")
        names = [name for name in _named(nlp, pipes.Tagger) if not _assigns(nlp, name, "token.is_sent_start")]
        if not names:
            raise ValueError(f"found the components {', '.join(nlp.pipe_names)}; expected a tagger")
        morphologizers, rulers = _named(nlp, pipes.Morphologizer), _named(nlp, pipes.AttributeRuler)
        _Pipeline.__init__(self, nlp, [*names, *morphologizers][-1], digest, confidence)
        labels, self._ruler = list(self._component.labels), None
        if morphologizers:
            ids = self._component.label_data["pos"]
            pos_of = [nlp.vocab.strings[ids[label]] for label in labels]
        elif rulers and not set(labels) <= set(UPOS_TAGS):
            self._ruler = ruler = nlp.get_pipe(rulers[-1])
            pos_of = [ruler(self._doc(nlp.vocab, words=[BLANK], tags=[label]))[0].pos_ for label in labels]
        else:
            pos_of = labels
        tags = sorted(set(pos_of) & set(UPOS_TAGS) - {BLANK})
        if not tags:
            raise ValueError(f"found the tags {', '.join(labels)}; expected UPOS tags")
        OtherTagger.__init__(self, tags)
        self._analyses = [[index for index, pos in enumerate(pos_of) if pos == tag] for tag in tags]
        layers = self._component.model.walk()
        self._is_normalised = any(layer.attrs.get("softmax_normalize", False) for layer in layers)

    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each tag for each word: (B, N, T)."""
        docs, model = self._docs(rows), self._component.model
        scores = [torch.from_numpy(model.ops.to_numpy(each)).double() for each in model.predict(docs)]
        tables = [self._sum_analyses(each) for each in scores]
        if self._ruler is not None:
            self._component.set_annotations(docs, [each.argmax(1).numpy() for each in scores])
            for doc, table in zip(docs, tables, strict=True):
                self._apply_rules(doc, table)
        return torch.nn.utils.rnn.pad_sequence(tables, batch_first=True).float()

    def _sum_analyses(self, scores: Tensor) -> Tensor:
        """Sum the probabilities of analyses with the same tag: (N, A) to log-probabilities (N, T)."""
        logits = scores.clamp(min=1e-30).log() if self._is_normalised else scores
        return torch.stack([logits[:, each].logsumexp(1) for each in self._analyses], 1).log_softmax(1)

    def _apply_rules(self, doc: Any, table: Tensor) -> None:
        """Replace, in place, the distribution of words whose tag depends on their form or context."""
        for token, row in zip(self._ruler(doc), table, strict=True):  # type: ignore[misc]
            if token.pos_ in self._tags and token.pos_ != self._tags[int(row.argmax())]:
                row[:] = math.log((1 - self._confidence) / (len(self._tags) - 1))
                row[self._tags.index(token.pos_)] = math.log(self._confidence)


class SpacyParser(_Pipeline, OtherParser):
    """A parser from the marginals of the parses in a beam; see `load_spacy`."""

    def __init__(self, nlp: Any, digest: str, confidence: float, beam_width: int) -> None:
        names = _named(nlp, import_optional("spacy.pipeline", "spacy").DependencyParser)
        if not names:
            raise ValueError(f"found the components {', '.join(nlp.pipe_names)}; expected a parser")
        if beam_width < 1:
            raise ValueError(f"the beam's width is {beam_width}; expected at least 1")
        _Pipeline.__init__(self, nlp, names[-1], digest, confidence)
        if self._component.cfg.get("learn_tokens"):
            raise ValueError("the parser joins words; expected one trained with learn_tokens = false")
        labels = [move.partition("-")[2] for move in self._component.move_names]
        OtherParser.__init__(
            self, sorted({_relation(label) for label in labels if label} | {_ROOT, _UNKNOWN})
        )
        self._beams = import_optional("spacy.pipeline._parser_internals._beam_utils", "spacy").BeamBatch
        self._width = beam_width
        self._mass = confidence if beam_width == 1 else 1 - _REST

    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each head (0 the root) and relation: (B, N, N+1, L)."""
        docs = self._docs(rows)
        longest = max(len(doc) for doc in docs)
        probs = torch.zeros(len(docs), longest, longest + 1, len(self.names), dtype=torch.double)
        for table, doc, beam in zip(probs, docs, self._parse(docs), strict=True):
            parses = self._component.moves.get_beam_parses(beam)
            table[: len(doc), : len(doc) + 1] = self._marginals(doc, parses)
        return probs.log().float()

    def _parse(self, docs: list[Any]) -> Iterable[Any]:
        """Run `parser.beam_parse` over log-probabilities of the moves.

        spaCy's own beam sums unnormalised scores, although parsers are trained to choose single moves, and
        its best parses are worse than those without a beam.
        """
        parser = self._component
        states = parser.moves.init_batch(docs)
        beams = self._beams(parser.moves, states, None, self._width, density=_DENSITY)
        steps = parser.model.predict(docs)
        while not beams.is_done:
            scores = torch.from_numpy(parser.model.ops.to_numpy(steps.predict(beams.get_unfinished_states())))
            beams.advance(scores.log_softmax(1).contiguous().numpy())
        steps.clear_memory()
        return beams  # type: ignore[no-any-return]

    def _marginals(self, doc: Any, parses: list[tuple[float, _Arcs]]) -> Tensor:
        """Return the probability of each head and relation: (N, N+1, L)."""
        n, root, word = len(doc), self.names.index(_ROOT), torch.arange(len(doc))
        beam, rest = torch.zeros(2, n, n + 1, len(self.names), dtype=torch.double)
        for prob, arcs in parses:
            for child, (head, relation) in enumerate(self._tree(doc, arcs)):
                beam[child, head, self.names.index(relation)] += prob
        beam[:, 0, root] += (1 - beam.sum((1, 2))).clamp(min=0)  # spaCy omits parses without arcs
        rest[:, 1:] = 1
        rest[word, word + 1] = 0
        rest[:, :, root] = 0
        rest[:, 0, root] = 1
        rest /= rest.sum((1, 2), keepdim=True)
        return torch.lerp(beam, rest, 1 - self._mass)

    def _tree(self, doc: Any, arcs: _Arcs) -> list[tuple[int, str]]:
        """Return the head and relation of each word; non-projective arcs are restored from their labels."""
        heads, labels = list(range(len(doc))), [_ROOT] * len(doc)
        for head, child, label in arcs:
            heads[child], labels[child] = head, label
        if any(_LIFTED in label for label in labels):
            tree = self._doc(doc.vocab, words=[token.text for token in doc], heads=heads, deps=labels)
            for restore in self._component.postprocesses:
                restore(tree)
            heads, labels = [token.head.i for token in tree], [token.dep_ for token in tree]
        relations = [_relation(label) for label in labels]
        return [
            (0, _ROOT) if head == child else (head + 1, _UNKNOWN if relation == _ROOT else relation)
            for child, (head, relation) in enumerate(zip(heads, relations, strict=True))
        ]


def load_spacy(
    place: str | os.PathLike[str],
    task: Literal["tagger", "parser"],
    *,
    confidence: float = 0.9,
    beam_width: int = 16,
) -> SpacyTagger | SpacyParser:
    """Load a spaCy pipeline as a source.

    A tagger's distribution is the softmax of the morphologizer's scores, or else the tagger's, summed over
    analyses with the same UPOS tag. A parser's distribution has the marginals of the parses in a beam as
    weights of the arcs, with 1% spread over all other arcs.

    Args:
        place: a folder of a pipeline, or the name of an installed package, which is not imported.
        task: the component to use.
        confidence: probability of a tag that rules assign against the scores, and of the parse if
            `beam_width` is 1.
        beam_width: maximum number of parses of a sentence.

    Raises:
        ImportError: spaCy is not installed.
        ValueError: the pipeline does not exist, lacks the component, requires code that is not installed,
            or is a folder with pickled data.
    """
    spacy = import_optional("spacy", "spacy")
    folder, is_package = _find_folder(os.fspath(place))
    options = [task, confidence, *((beam_width, _DENSITY) if task == "parser" else ())]
    if not is_package:
        check_links(folder, folder.rglob("*"))
    digest = _digest_files(folder, options, allows_pickle=is_package)
    try:
        nlp = spacy.load(folder)
    except (ValueError, ImportError) as error:
        why = str(error).partition(" Available")[0]  # hundreds of names follow
        raise ValueError(
            f"{place} requires code that is not installed, and its own never runs: {why}"
        ) from error
    try:
        if task == "tagger":
            return SpacyTagger(nlp, digest, confidence)
        return SpacyParser(nlp, digest, confidence, beam_width)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _find_folder(place: str) -> tuple[Path, bool]:
    """Return the folder of a pipeline's configuration, and whether it belongs to an installed package."""
    roots, is_package = [Path(place)], not Path(place).is_dir()
    if is_package:
        module = place.replace("-", "_")
        spec = find_spec(module) if module.isidentifier() else None
        roots = [Path(root) for root in (spec and spec.submodule_search_locations) or ()]
    configs = [path for root in roots for path in (*root.glob("config.cfg"), *root.glob("*/config.cfg"))]
    if not configs:
        problem = "has no config.cfg" if roots else "is neither a folder nor an installed package"
        raise ValueError(f"{place} {problem}; expected a spaCy pipeline")
    return configs[0].parent, is_package


def _digest_files(folder: Path, options: Sequence[object], *, allows_pickle: bool) -> str:
    """Return the SHA-256 of options, names and contents; raise ValueError if a file is pickled."""
    digest = hashlib.sha256(json.dumps(options).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        is_pickle = content.startswith(_PICKLE_STARTS) or any(mark in content for mark in _TORCH_MARKS)
        if is_pickle and not allows_pickle:
            raise ValueError(
                f"{path} is or contains a pickle, which can run code; expected a pipeline without"
            )
        digest.update(
            f"\n{path.relative_to(folder).as_posix()} {hashlib.sha256(content).hexdigest()}".encode()
        )
    return digest.hexdigest()


def _assigns(nlp: Any, component: str, attribute: str) -> bool:
    return attribute in nlp.get_pipe_meta(component).assigns


def _named(nlp: Any, kind: type) -> list[str]:
    """Return the names of components of a class."""
    return [name for name, component in nlp.pipeline if isinstance(component, kind)]


def _relation(label: str) -> str:
    relation = label.partition(_LIFTED)[0].partition(":")[0]
    return _ROOT if relation.upper() == "ROOT" else relation

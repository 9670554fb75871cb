"""Use a CoNLL-U file with the predictions of any tool as a source.

Sentences are matched by their words; multiword ranges and empty nodes are ignored. The candidate that the
file has for a word gets the probability in MISC (`TagProb`; `ArcProb`, or else `HeadProb` times `LabelProb`)
or a fixed confidence, and the other candidates share the rest evenly. If a sentence occurs several times with
different annotations, their probabilities are averaged.

Compared with the model that wrote it, a file loses which of the other candidates are likely, how decisions
about different words depend on each other, and further digits.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from hf_xst.console import say
from hf_xst.data import ConlluError, ConlluSentence, read_conllu
from hf_xst.data.labels import OUTSIDE, bio_alphabet, span_type, to_bio
from hf_xst.data.pairing import words_mismatch
from hf_xst.data.sentence import BLANK, COLUMNS, head_number, misc_attribute
from hf_xst.files import sha256_of
from hf_xst.models.columns import Row
from hf_xst.sources.base import OtherParser, OtherTagger
from hf_xst.structures import DependencyTreeCRF

_SMALLEST = 5e-5  # with the four digits of `predict`, 1.0000 is any number above 1 - _SMALLEST
_ITERATIONS, _TOLERANCE, _LARGEST_SHIFT = 50, 1e-4, 20.0  # rounding by up to 5e-5 may leave no exact fit


class Claim(NamedTuple):
    """The annotation of a word: label and head (None if blank), and the probability in MISC, if any."""

    label: str | None
    head: int | None = None
    probability: float | None = None


class AnnotatedFile:
    """The annotation of each sentence of a file, by its words; see `load_annotated`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str],
        confidence: float,
        labels: Sequence[str],
    ) -> None:
        if not 0 < confidence < 1:
            raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1")
        self.path, self.columns, self.confidence = os.fspath(path), columns, confidence
        self._claims: dict[tuple[str, ...], Counter[tuple[Claim, ...]]] = {}
        self._words: dict[str, list[str]] = {}
        names, blanks = set(labels), 0
        for sentence in read_conllu(path):
            claims = _trees(sentence) if "head" in columns else _tags(sentence, columns[0])
            self._words.setdefault(sentence.identifier, sentence.words)
            self._claims.setdefault(tuple(sentence.words), Counter())[tuple(claims)] += 1
            names.update(claim.label for claim in claims if claim.label is not None)
            blanks += sum(claim.label is None for claim in claims)
        if not names:
            raise ValueError(f"{self.path}: no word has a label in the column {columns[-1]}")
        if blanks:
            say(f"{self.path}: {blanks} words have no {columns[-1]}; all labels get the same probability")
        is_bio = columns[0] not in COLUMNS and all(name == OUTSIDE or span_type(name) for name in names)
        self.scheme = "bio" if is_bio else None
        if is_bio:
            self._claims = {words: _in_bio(counts) for words, counts in self._claims.items()}
        self.labels = bio_alphabet(names) if is_bio else sorted(names)
        settings = f"{sha256_of(path)} {list(columns)} {confidence!r} {self.labels} {self.scheme}"
        self.digest = hashlib.sha256(settings.encode()).hexdigest()

    def annotations(self, row: Row) -> list[tuple[tuple[Claim, ...], float]]:
        """Return the annotations of a row's words, or raise ValueError, with their relative frequencies."""
        counts = self._claims.get(tuple(row["words"]))
        if counts is None:
            raise ValueError(words_mismatch(self.path, self._words, str(row.get("sent_id")), row["words"]))
        return [(claims, count / counts.total()) for claims, count in counts.items()]


class _FromFile:
    kind = "conllu"
    _file: AnnotatedFile

    def digest(self) -> str:
        """Return the SHA-256 of the file and its settings."""
        return self._file.digest


class AnnotatedTags(_FromFile, OtherTagger):
    """A tagger that returns the tags of a file."""

    def __init__(self, file: AnnotatedFile) -> None:
        super().__init__(file.labels, file.columns[0], file.scheme)
        self._file = file

    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each tag for each word: (B, N, T)."""
        tags = self._file.labels
        every = torch.ones(len(tags), dtype=torch.bool)
        probs = torch.zeros(len(rows), max(len(row["words"]) for row in rows), len(tags), dtype=torch.double)
        for sentence, row in enumerate(rows):
            for claims, share in self._file.annotations(row):
                for index, (tag, _, probability) in enumerate(claims):
                    claimed = torch.tensor([tag in (None, name) for name in tags])
                    spread = _spread(every, claimed, probability or self._file.confidence)
                    probs[sentence, index] += share * spread
        return probs.log().float()


class AnnotatedTrees(_FromFile, OtherParser):
    """A parser that returns the heads and relations of a file, without subtypes.

    The arcs of a sentence may have cycles or several roots. Candidates that the file does not have get no
    probability if they break the rule that `root` is the relation of head 0, and of no other head.
    """

    def __init__(self, file: AnnotatedFile) -> None:
        super().__init__(file.labels)
        self._file = file
        is_root = torch.tensor([label == "root" for label in file.labels])
        self._at_root = is_root if is_root.any() else ~is_root
        self._elsewhere = is_root if is_root.all() else ~is_root

    def log_probs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probability of each head and relation for each word by itself: (B, N, N+1, L)."""
        return self._probs(rows)[0].log().float()

    def distributions(self, rows: Sequence[Row]) -> DependencyTreeCRF:
        """Return a distribution over trees.

        Fixed confidences are weights of arcs, as in other parsers. Probabilities in MISC are marginals of a
        distribution over trees, so the weights are fitted until the marginals are the same.
        """
        probs, fitted = self._probs(rows)
        distribution = super().distributions(rows)
        return _fit(distribution, probs.flatten(2), fitted.flatten(2)) if fitted.any() else distribution

    def _probs(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Return the probabilities of `log_probs`, and which candidates have one in MISC."""
        longest, labels = max(len(row["words"]) for row in rows), self._file.labels
        probs = torch.zeros(len(rows), longest, longest + 1, len(labels), dtype=torch.double)
        fitted = torch.zeros_like(probs, dtype=torch.bool)
        for sentence, row in enumerate(rows):
            nodes = len(row["words"]) + 1
            for claims, share in self._file.annotations(row):
                for index, (label, head, probability) in enumerate(claims):
                    allowed = torch.stack([self._at_root, *[self._elsewhere] * (nodes - 1)])  # (nodes, L)
                    allowed[index + 1] = False
                    claimed = torch.zeros_like(allowed)
                    if head is None:
                        claimed = allowed
                    elif label is None:
                        claimed[head] = allowed[head]
                    else:
                        claimed[head, labels.index(label)] = True
                    spread = _spread(allowed, claimed, probability or self._file.confidence)
                    probs[sentence, index, :nodes] += share * spread
                    fitted[sentence, index, :nodes] |= claimed & (probability is not None)
        return probs, fitted


def load_annotated(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    confidence: float = 0.9,
    labels: Sequence[str] = (),
) -> AnnotatedTags | AnnotatedTrees:
    """Load a file of predictions as a source.

    Args:
        path: CoNLL-U file, plain or gzipped.
        columns: `("head", "deprel")`, or one column of tags: of CoNLL-U, or an attribute in MISC.
        confidence: probability of the annotation of words without a probability in MISC.
        labels: further labels besides those in the file. If all labels in MISC mark spans, they become BIO.

    Raises:
        ConlluError: malformed CoNLL-U, an invalid head or probability; the message has file and line.
        ValueError: the file has no labels, or the confidence is out of range.
    """
    file = AnnotatedFile(path, columns, confidence, labels)
    return AnnotatedTrees(file) if "head" in columns else AnnotatedTags(file)


def _tags(sentence: ConlluSentence, column: str) -> list[Claim]:
    in_misc = [misc_attribute(cell, column) for cell in sentence.column("misc")]
    tags = sentence.column(column) if column in COLUMNS else in_misc
    return [
        Claim(None if tag in (None, BLANK) else tag, None, _probability(sentence, index, "TagProb"))
        for index, tag in enumerate(tags)
    ]


def _in_bio(counts: Counter[tuple[Claim, ...]]) -> Counter[tuple[Claim, ...]]:
    converted: Counter[tuple[Claim, ...]] = Counter()
    for claims, count in counts.items():
        pairs = zip(claims, to_bio([claim.label for claim in claims]), strict=True)
        converted[tuple(claim._replace(label=label) for claim, label in pairs)] += count
    return converted


def _trees(sentence: ConlluSentence) -> list[Claim]:
    claims, last, keys = [], len(sentence.word_rows), ("ArcProb", "HeadProb", "LabelProb")
    for index, (head, relation) in enumerate(zip(sentence.heads, sentence.deprels, strict=True)):
        if head == BLANK:
            claims.append(Claim(None))
            continue
        number = head_number(head)
        if number is None or number > last or number == index + 1:
            raise _error(sentence, index, f"has head {head!r:.60}, expected 0 or another word up to {last}")
        label = relation.partition(":")[0]
        arc, of_head, of_label = (_probability(sentence, index, key) for key in keys)
        if label == BLANK:
            claims.append(Claim(None, number, of_head))
            continue
        if arc is None and of_head is not None and of_label is not None:
            arc = of_head * of_label
        claims.append(Claim("root" if label == "ROOT" else label, number, arc))
    return claims


def _probability(sentence: ConlluSentence, index: int, key: str) -> float | None:
    """Return a probability in MISC, above 0 and below 1; None if missing."""
    text = misc_attribute(sentence.rows[index][-1], key)
    if text == BLANK:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise _error(sentence, index, f"has {key}={text}, expected a number from 0 to 1")
    return min(max(value, _SMALLEST), 1 - _SMALLEST)


def _error(sentence: ConlluSentence, index: int, problem: str) -> ConlluError:
    line = sentence.line + sentence.word_rows[index]
    message = f"word {index + 1} {problem}"
    return ConlluError(message, path=sentence.path, line=line, sent_id=sentence.identifier)


def _spread(allowed: Tensor, claimed: Tensor, probability: float) -> Tensor:
    """Divide a probability evenly among the claimed candidates, and the rest among the other allowed ones."""
    others = allowed & ~claimed
    if not others.any():
        return claimed.double() / claimed.sum()
    return claimed.double() * probability / claimed.sum() + others * (1 - probability) / others.sum()


def _fit(initial: DependencyTreeCRF, target: Tensor, fitted: Tensor) -> DependencyTreeCRF:
    """Shift scores until the marginals of the fitted candidates are the target, as far as trees allow it.

    This maximises sum(target * shift) - log Z, which is concave in the shifts, sentence by sentence, with the
    step sizes of Barzilai and Borwein (1988). The fitted labels of an arc have one shift, because their
    scores already have the proportions of the target, whose logarithms they are. `target` (B, N, C) are
    probabilities, `fitted`, bool (B, N, C), marks the candidates to shift.
    """
    chosen, scores = initial.part_view(fitted), initial.scores.double()  # (B, N+1, N+1, L)
    # The scores of an arc with fitted labels, and with others: (B, N+1, N+1, 2)
    arcs = torch.stack([scores.masked_fill(hide, -torch.inf).logsumexp(3) for hide in (~chosen, chosen)], 3)
    wanted = initial.part_view(target * fitted).sum(3)  # (B, N+1, N+1)
    curvature = (wanted * (1 - wanted)).clamp(min=1e-9)  # of log Z if words were independent
    shift = change = before = torch.zeros_like(wanted)
    for iteration in range(_ITERATIONS):
        shifted = arcs + torch.stack([shift, torch.zeros_like(shift)], 3)
        error = (wanted - initial.with_scores(shifted).marginals()[..., 0]).masked_fill(~chosen.any(3), 0)
        active = error.abs().amax((1, 2), keepdim=True) > _TOLERANCE
        if not active.any():
            break
        direction = error / curvature
        # step = <s, C s> / <s, C (d' - d)> with the curvature C, the last change s, and directions d', d
        weighted = change * curvature
        ratio = [(weighted * factor).sum((1, 2), keepdim=True) for factor in (change, before - direction)]
        step = torch.full_like(ratio[0], 0.5) if iteration == 0 else (ratio[0] / ratio[1]).nan_to_num(0.5)
        moved = (shift + step.clamp(0.02, 2) * direction * active).clamp(-_LARGEST_SHIFT, _LARGEST_SHIFT)
        change, before, shift = moved - shift, direction, moved
    return initial.with_scores(torch.where(chosen, scores + shift[..., None], scores).float())

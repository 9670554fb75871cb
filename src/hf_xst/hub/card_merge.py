"""Merge a generated card into an existing one: what people wrote stays, what was generated is replaced.

Generated text is between marks; people write outside them. For the metadata, the last line of a card records
digests of what was generated: a value that differs from its digest, or is missing, was edited by a person and
is kept. Lists are compared item by item.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from huggingface_hub.repocard_data import model_index_to_eval_results

from hf_xst.remote import read_card_metadata

_BEGIN, _END = "<!-- hf_xst:begin {} -->", "<!-- hf_xst:end {} -->"
_MARK = re.compile(r"<!-- hf_xst:(begin|end) (\w+) -->")
_RECORD = re.compile(r"^<!-- hf_xst:generated (\{.*\}) -->\n?", re.M)
_NOTICE = "<!-- Text between begin and end marks is generated. Text outside them is kept. -->"
_INDEX, _INDEX_NAME = "model-index", "model_name"


@dataclass(frozen=True)
class Card:
    """An existing card.

    Attributes:
        metadata: the metadata; results of evaluation as a list of `EvalResult`.
        text: the text after the metadata, without the record.
        generated: digests of the generated metadata, one per value or one per item of a list.
        sections: names of the sections that were generated.
        fingerprint: fingerprint of the model or charts that the card was generated for.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    generated: dict[str, Any] = field(default_factory=dict)
    sections: tuple[str, ...] = ()
    fingerprint: str | None = None

    @classmethod
    def read(cls, path: Path) -> Card:
        """Read a card; an empty one if the file does not exist.

        Raises:
            ValueError: the metadata or the marks are broken; the message says where.
        """
        if not path.is_file():
            return cls()
        content = path.read_text(encoding="utf-8-sig")
        try:
            metadata = _read_metadata(path)
        except (ValueError, KeyError, TypeError) as error:
            message = " ".join(str(error).split())
            raise ValueError(
                f"{path}: invalid metadata between the --- lines ({message}); correct or remove it"
            ) from error
        block = REGEX_YAML_BLOCK.search(content)
        text = content[block.end() :] if block else content
        records = _RECORD.findall(text)
        try:
            record = json.loads(records[-1]) if records else {}
        except ValueError as error:
            raise ValueError(
                f"{path}: the line <!-- hf_xst:generated ... --> is damaged ({error}); remove it"
            ) from error
        text = _RECORD.sub("", text)
        try:
            split_sections(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        generated, sections = record.get("metadata", {}), tuple(record.get("sections", ()))
        return cls(metadata, text, generated, sections, record.get("of"))

    def edits(self) -> set[str]:
        """Return what people wrote: lines outside the marks, and keys of the metadata that they set."""
        outside = "".join(text for name, text in split_sections(self.text) if not name)
        lines = {line.strip() for line in outside.splitlines()}
        keys = {f"{key}:" for key in self.merge_metadata({})}  # without what was generated, edits remain
        return (lines | keys) - {"", _NOTICE}

    def merge_metadata(
        self, generated: Mapping[str, Any], stated: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """Merge newly generated metadata; `stated` keys, which a person just set, replace the card's."""
        removed = {key for key in self.generated if key not in self.metadata and key not in stated}
        merged: dict[str, Any] = {}
        for key in dict.fromkeys([*generated, *self.metadata]):
            value = generated.get(key)
            if key in self.metadata and key not in stated:
                value = _merge_value(self.metadata[key], value, self.generated.get(key))
            if key not in removed and (value not in (None, []) or key not in self.metadata):
                merged[key] = value
        return merged

    def merge_sections(self, sections: Mapping[str, str]) -> str:
        """Replace the generated sections by new ones, with their marks; an added one follows its predecessor.

        A section that a person removed stays out.
        """
        parts = split_sections(self.text if self.text.strip() else f"\n{_NOTICE}\n")
        parts = [(name, sections.get(name, text)) for name, text in parts]
        previous: int | None = None
        for name, section in sections.items():
            index = next((index for index, part in enumerate(parts) if part[0] == name), None)
            if index is None and name in self.sections:
                continue
            if index is None and previous is None:
                index = len(parts)
                parts[-1:] = [("", f"{parts[-1][1].rstrip()}\n\n"), (name, section), ("", "\n")]
            elif index is None and previous is not None:
                index = previous + 2
                parts[previous + 1 : previous + 1] = [("", "\n\n"), (name, section)]
            previous = index
        return "".join(text for _, text in parts)

    def record(
        self,
        metadata: Mapping[str, Any],
        sections: Iterable[str],
        fingerprint: str | None,
        *,
        keep_old: bool = False,
    ) -> str:
        """Return the line that records what was generated, for the next merge.

        With `keep_old`, other metadata that was generated before stays in the card.
        """
        digests = {key: _digests(value) for key, value in metadata.items()}
        content = {
            "metadata": {**self.generated, **digests} if keep_old else digests,
            "sections": list(dict.fromkeys([*self.sections, *sections])),
        } | ({"of": fingerprint} if fingerprint else {})
        return f"<!-- hf_xst:generated {json.dumps(content)} -->\n"


def split_sections(text: str) -> list[tuple[str, str]]:
    """Split a card into sections with their marks, by name, and the text before, between and after, named "".

    Raises:
        ValueError: a mark is not paired.
    """
    parts, start, opened = [], 0, None
    for mark in _MARK.finditer(text):
        kind, name = mark.groups()
        if opened is None and kind == "begin":
            parts.append(("", text[start : mark.start()]))
            start, opened = mark.start(), mark
        elif opened is None:
            raise ValueError(f"{mark[0]} is not paired; restore {_BEGIN.format(name)}, or remove it")
        elif kind == "end" and name == opened[2]:
            parts.append((name, text[start : mark.end()]))
            start, opened = mark.end(), None
    if opened is not None:
        raise ValueError(f"{opened[0]} is not paired; restore {_END.format(opened[2])}, or remove it")
    return [*parts, ("", text[start:])]


def to_card_data(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Convert metadata to the arguments of `ModelCardData`."""
    data = dict(metadata)
    results, name = data.pop(_INDEX, None), data.pop(_INDEX_NAME, "model")
    return {_INDEX_NAME: name} | data | {"eval_results": list(results)} if results else data


def _read_metadata(path: Path) -> dict[str, Any]:
    metadata = read_card_metadata(path)
    if not all(isinstance(key, str) for key in metadata):
        raise ValueError("a key is not a string")
    if metadata.get(_INDEX):
        name, results = model_index_to_eval_results(metadata[_INDEX])
        metadata = {**metadata, _INDEX: results, _INDEX_NAME: name}
    return {key: value for key, value in metadata.items() if value is not None}


def _merge_value(old: Any, new: Any, generated: Any) -> Any:
    """Merge the card's value with the newly generated one, given digests of what was generated before."""
    if not isinstance(old, list) or not isinstance(generated, list) or not isinstance(new, list | None):
        return new if _digests(old) == generated else old
    known, present = set(generated), set(_digests(old))
    edited = [item for item in old if _digest(item) not in known]
    corrected = {_subject(item) for item in edited if isinstance(item, EvalResult)}
    kept = [
        item
        for item in new or []
        # A person removed the item, or corrected this result.
        if not (_digest(item) in known and _digest(item) not in present)
        and not (isinstance(item, EvalResult) and _subject(item) in corrected)
    ]
    digests = set(_digests(kept))
    return [*kept, *(item for item in edited if _digest(item) not in digests)]


def _subject(result: EvalResult) -> tuple[Any, ...]:
    """Identify what a result measures."""
    return (*result.unique_identifier, result.metric_type, result.metric_name)


def _digests(value: Any) -> Any:
    return [_digest(item) for item in value] if isinstance(value, list) else _digest(value)


def _digest(value: Any) -> str:
    content = asdict(value) if isinstance(value, EvalResult) else value
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]

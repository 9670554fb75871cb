"""A card that is made again: what people have written stays, what was generated is replaced.

Generated text stands between marks; whatever is outside of them is somebody's own. Of the metadata, the last
line of a card tells by digests what was generated: what differs from that, or is missing since, is somebody's
own decision and stays as it is. Lists are compared item by item.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, metadata_load
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from huggingface_hub.repocard_data import model_index_to_eval_results

_BEGIN, _END = "<!-- hf_xst:begin {} -->", "<!-- hf_xst:end {} -->"
_SECTION = re.compile(r"<!-- hf_xst:begin (\w+) -->\n.*?<!-- hf_xst:end \1 -->", re.S)
_MARK = re.compile(r"<!-- hf_xst:(begin|end) (\w+) -->")
_RECORD = re.compile(r"<!-- hf_xst:generated (\{.*\}) -->\n?")
_DIGITS = 12
_INDEX, _INDEX_NAME = "model-index", "model_name"
OWN = "<!-- Text between the marks begin and end is generated. Whatever you write outside of them stays. -->"


@dataclass(frozen=True)
class Card:
    """A card's parts.

    Attributes:
        metadata: by key; results of evaluation as a list of `EvalResult`.
        text: what follows the metadata, without the record.
        generated: digests of the generated metadata by key: one digest, or one for each item of a list.
        sections: names of the sections that were generated.
        fingerprint: that of the model or charts which the card was made for.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    generated: dict[str, Any] = field(default_factory=dict)
    sections: tuple[str, ...] = ()
    fingerprint: str | None = None

    @classmethod
    def read(cls, path: Path) -> Card:
        """Read a card from its file; an empty one if there is no file.

        Raises:
            ValueError: its metadata or marks are broken; the message says where.
        """
        if not path.is_file():
            return cls()
        content = path.read_text(encoding="utf-8-sig")
        try:
            metadata = _unfolded(metadata_load(path) or {})
        except (ValueError, KeyError, TypeError, yaml.YAMLError) as error:
            told = " ".join(str(error).split())
            raise ValueError(
                f"{path}: the metadata between the lines of --- cannot be read ({told}); correct or "
                "remove them"
            ) from error
        block = REGEX_YAML_BLOCK.search(content)
        text = content[block.end() :] if block else content
        record = _read_record(text, path)
        text = _RECORD.sub("", text)
        _check_marks(text, path)
        return cls(
            metadata,
            text,
            record.get("metadata", {}),
            tuple(record.get("sections", ())),
            record.get("of"),
        )

    @property
    def own(self) -> set[str]:
        """Return what people have written: lines outside of the marks, and keys of metadata they set."""
        lines = {line.strip() for line in _SECTION.sub("", self.text).splitlines()}
        set_by_people = {key for key, value in self.metadata.items() if self._is_own(key, value)}
        return {line for line in lines if line and line != OWN} | {f"{key}:" for key in set_by_people}

    def _is_own(self, key: str, value: Any) -> bool:
        generated, found = self.generated.get(key), _digests(value)
        if isinstance(generated, list) and isinstance(found, list):
            return not set(found) <= set(generated)
        return bool(found != generated)

    def renewed(self, metadata: Mapping[str, Any], said: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return the metadata that the renewed card shall have.

        Args:
            metadata: what is generated now.
            said: keys that a person has stated just now: they come before what stands in the card.
        """
        merged = {key: value for key, value in metadata.items() if key not in self.metadata}
        for key in [key for key in merged if key in self.generated and key not in said]:
            del merged[key]  # somebody has taken it out
        for key, old in self.metadata.items():
            value = _merged(old, metadata.get(key), self.generated.get(key), is_said=key in said)
            if value not in (None, []):
                merged[key] = value
        order = [*metadata, *(key for key in merged if key not in metadata)]
        return {key: merged[key] for key in order if key in merged}

    def rewritten(self, sections: Mapping[str, str]) -> str:
        """Return the text with its generated sections replaced; new ones follow the one before them.

        Args:
            sections: the generated text by the section's name, in their order.
        """
        text = self.text if self.text.strip() else f"\n{OWN}\n"
        before: str | None = None
        for name, content in sections.items():
            marked = f"{_BEGIN.format(name)}\n{content.strip()}\n{_END.format(name)}"
            if _BEGIN.format(name) in text:
                text = _replaced(text, name, marked)
            elif name in self.sections:
                continue  # somebody has taken it out
            elif before is None:
                text = f"{text.rstrip()}\n\n{marked}\n"
            else:
                end = _END.format(before)
                text = text.replace(end, f"{end}\n\n{marked}", 1)
            before = name
        return text

    def record(
        self,
        metadata: Mapping[str, Any],
        sections: Sequence[str],
        fingerprint: str | None,
        *,
        partly: bool = False,
    ) -> str:
        """Return the line that tells the next renewal what was generated.

        Args:
            metadata: the metadata that is generated now.
            sections: names of the sections that are generated now.
            fingerprint: that of the model or charts.
            partly: whether the rest of what was generated before stays as well.
        """
        digests = {key: _digests(value) for key, value in metadata.items()}
        content = {
            "metadata": {**self.generated, **digests} if partly else digests,
            "sections": list(dict.fromkeys([*self.sections, *sections])),
        } | ({"of": fingerprint} if fingerprint else {})
        return f"<!-- hf_xst:generated {json.dumps(content)} -->\n"


def _replaced(text: str, name: str, marked: str) -> str:
    return _SECTION.sub(lambda old: marked if old[1] == name else old[0], text)


def folded(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Turn metadata into the arguments of `ModelCardData` and its like."""
    data = dict(metadata)
    results = data.pop(_INDEX, None)
    if results:
        return {_INDEX_NAME: "model"} | data | {"eval_results": list(results)}
    data.pop(_INDEX_NAME, None)
    return data


def _unfolded(metadata: dict[str, Any]) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in metadata):
        raise ValueError("a key is no text")
    if metadata.get(_INDEX):
        name, results = model_index_to_eval_results(metadata[_INDEX])
        metadata = {**metadata, _INDEX: results, _INDEX_NAME: name}
    return {key: value for key, value in metadata.items() if value is not None}


def _merged(old: Any, new: Any, generated: Any, *, is_said: bool) -> Any:
    """Merge the value in the card, the value generated now, and what was generated before."""
    if is_said:
        return new
    if not isinstance(old, list) or not isinstance(generated, list) or not isinstance(new, list | None):
        return new if _digests(old) == generated else old
    known, present = set(generated), {_digest(item) for item in old}
    own = [item for item in old if _digest(item) not in known]
    renewed = [
        item
        for item in new or []
        if not (_digest(item) in known and _digest(item) not in present)  # somebody has taken it out
    ]
    replaced = {_place(item) for item in own if isinstance(item, EvalResult)}
    kept = [item for item in renewed if not isinstance(item, EvalResult) or _place(item) not in replaced]
    return [*kept, *(item for item in own if item not in kept)]


def _place(result: EvalResult) -> tuple[Any, ...]:
    """Name what a result is about: two results about the same thing do not stand side by side."""
    return (*result.unique_identifier, result.metric_type, result.metric_name)


def _digests(value: Any) -> Any:
    return [_digest(item) for item in value] if isinstance(value, list) else _digest(value)


def _digest(value: Any) -> str:
    content = asdict(value) if isinstance(value, EvalResult) else value
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _read_record(text: str, path: Path) -> dict[str, Any]:
    found = _RECORD.findall(text)
    try:
        return dict(json.loads(found[-1])) if found else {}
    except ValueError as error:
        raise ValueError(
            f"{path}: the line <!-- hf_xst:generated ... --> is damaged ({error}); remove it"
        ) from error


def _check_marks(text: str, path: Path) -> None:
    marks = _MARK.findall(_SECTION.sub("", text))
    if marks:
        kind, name = marks[0]
        raise ValueError(
            f"{path}: the mark hf_xst:{kind} {name} stands alone; restore "
            f"{(_END if kind == 'begin' else _BEGIN).format(name)}, or remove it"
        )

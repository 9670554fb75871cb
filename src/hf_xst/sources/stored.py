"""Store the marginals of pools on disk, so that sources run once for every sentence.

The store keeps the candidates that hold 1 - `lost_mass` of the probability of each group for some source, and
each source's best structure. Their probabilities are exact under all sources; the other candidates share
the rest of each source evenly. So a group loses at most `lost_mass` of each source, and of a logarithmic pool
at most that divided by the normaliser of the group (Hölder's inequality).
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from hf_xst.charts.chart import SourceDistributions, candidates_mask
from hf_xst.console import say
from hf_xst.files import atomic_path, sha256_of
from hf_xst.models.columns import Row
from hf_xst.numerics import safe_log
from hf_xst.remote import explain_os_error
from hf_xst.sources.base import inference_device
from hf_xst.structures.base import Structure

LOST_MASS = 1e-6
BUFFERED = 1000
"""Sentences that wait to be written."""
_FORMAT = 1
_SCHEMA = pa.schema(
    {
        "key": pa.binary(32),
        "length": pa.int32(),  # of the structure
        "settings": pa.string(),  # its other arguments
        "shape": pa.list_(pa.int32()),  # of the scores
        "group": pa.list_(pa.int32()),  # of each of K kept candidates
        "candidate": pa.list_(pa.int32()),
        "log_probs": pa.list_(pa.float32()),  # (K, S)
        "rest": pa.list_(pa.float32()),  # (G, S), log-probability of each other candidate
        "best": pa.list_(pa.int32()),  # (G, S)
        "valid": pa.binary(),  # bits (G, width)
        "width": pa.int32(),
        "entropy": pa.list_(pa.float32()),  # (S,)
        "dropped": pa.list_(pa.float32()),  # (S,), expected number of candidates with dropped labels
    }
)
Found = tuple[SourceDistributions, Tensor]


class MarginalsStore:
    """The marginals of one pool; several processes may write at once.

    `identity` is everything that the distributions depend on besides the sentences, `columns` are those that
    the sources read. At most `lost_mass` is lost of each group and source.

    Raises:
        ValueError: a file is damaged, or `lost_mass` is out of range.
    """

    def __init__(
        self,
        folder: Path,
        identity: Any,
        structure: type[Structure],
        columns: Sequence[str],
        lost_mass: float = LOST_MASS,
    ) -> None:
        if not 0 < lost_mass < 1:
            raise ValueError(f"lost_mass is {lost_mass}; expected a probability between 0 and 1")
        content = json.dumps([_FORMAT, identity, structure.__name__, list(columns), lost_mass])
        self.folder = folder / hashlib.sha256(content.encode()).hexdigest()[:32]
        self._structure, self._columns, self._lost_mass = structure, columns, lost_mass
        self.folder.mkdir(parents=True, exist_ok=True)
        self._files = [_load(path) for path in sorted(self.folder.glob("*.arrow"))]
        self._starts = np.cumsum([0, *map(len, self._files)])
        # The beginning of each key, sorted, and where its sentence is: 16 bytes a sentence
        keys = _beginnings(b"".join(b"".join(file["key"].to_pylist()) for file in self._files))
        self._places = keys.argsort()
        self._keys = keys[self._places]
        self._new: list[pa.RecordBatch] = []
        weakref.finalize(self, _write, self.folder, self._new)

    def read(self, rows: Sequence[Row], run: Callable[[], Found]) -> Found:
        """Return the distributions of a batch, and the dropped mass of each source and sentence, (S, B).

        `run` computes both, if the store lacks one of the sentences.
        """
        content = [json.dumps([row[column] for column in self._columns]) for row in rows]
        keys = [hashlib.sha256(each.encode()).digest() for each in content]
        stored = self._find(keys)
        if stored is None:
            stored = _encode(keys, *run(), self._lost_mass)
            self._new.append(stored)
            if sum(map(len, self._new)) >= BUFFERED:
                _write(self.folder, self._new)
        return _decode(stored, self._structure)

    def _find(self, keys: Sequence[bytes]) -> pa.RecordBatch | None:
        """Return the stored sentences with these keys, in order, or None if one is missing."""
        wanted = _beginnings(b"".join(keys))
        index = np.searchsorted(self._keys, wanted).clip(max=max(0, len(self._keys) - 1))
        if not len(self._keys) or (self._keys[index] != wanted).any():
            return None
        places = self._places[index]
        file = np.searchsorted(self._starts, places, "right") - 1
        rows = places - self._starts[file]
        parts = [self._files[number].take(pa.array(rows[file == number])) for number in np.unique(file)]
        order = file.argsort(kind="stable").argsort()
        found = pa.concat_batches(parts).take(pa.array(order))
        return found if found["key"].to_pylist() == list(keys) else None


def _beginnings(keys: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(keys, np.uint64)[::4]


def _load(path: Path) -> pa.RecordBatch:
    """Map a file into memory, after a check of its content."""
    if path.stem != sha256_of(path)[:32]:
        raise ValueError(f"{path} is damaged; remove it, and the sources will run again")
    with pa.memory_map(str(path)) as file:  # the mapping outlives the open file
        batch = pa.ipc.open_file(file).get_batch(0)
    if batch.schema != _SCHEMA:
        raise ValueError(
            f"{path} is not a file of stored marginals; remove it, and the sources will run again"
        )
    return batch


def _write(folder: Path, batches: list[pa.RecordBatch]) -> None:
    """Write sentences as a file named by its content, and forget them; warn if they cannot be written."""
    if not batches:
        return
    joined, sink = pa.concat_batches(batches), pa.BufferOutputStream()
    batches.clear()
    with pa.ipc.new_file(sink, joined.schema) as writer:
        writer.write_batch(joined)
    content = sink.getvalue()
    try:
        with atomic_path(folder / f"{hashlib.sha256(content).hexdigest()[:32]}.arrow") as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        say(f"marginals were not stored: {explain_os_error(error)}", "yellow")


def _encode(
    keys: Sequence[bytes], sources: SourceDistributions, dropped: Tensor, lost_mass: float
) -> pa.RecordBatch:
    space, log_probs, valid = sources.space, sources.log_marginals, sources.valid
    probs = log_probs.exp()
    kept = _likely(probs, valid, lost_mass).any(0)
    for best in sources.best:
        kept |= candidates_mask(best, kept)
    others = valid & ~kept
    rest = safe_log(probs.masked_fill(~others, 0).sum(-1) / others.sum(-1).clamp(min=1))  # (S, B, G)
    sentence, group, candidate = kept.nonzero().unbind(1)
    counts, sizes, number = sentence.bincount(minlength=len(keys)), space.group_lengths, len(log_probs)
    inside = torch.arange(kept.shape[1], device=kept.device) < sizes[:, None]  # (B, G)
    bits = [np.packbits(each[:n]) for each, n in zip(valid.numpy(force=True), sizes.tolist(), strict=True)]
    shape = torch.tensor(space.scores.shape[1:]).repeat(len(keys), 1)
    padding = space._positions(space.scores) - space.lengths.cpu()
    shape[:, : shape.shape[1] - len(space.LABEL_AXES)] -= padding[:, None]  # all other axes grow with words
    settings = {name: value for name, value in vars(space).items() if name not in ("scores", "lengths")}
    columns = {
        "key": keys,
        "length": space.lengths.tolist(),
        "settings": [json.dumps(settings)] * len(keys),
        "shape": _lists(shape, shape.shape[1], keys),
        "group": _lists(group, counts, keys),
        "candidate": _lists(candidate, counts, keys),
        "log_probs": _lists(log_probs[:, sentence, group, candidate].T, counts * number, keys),
        "rest": _lists(rest.permute(1, 2, 0)[inside], sizes * number, keys),
        "best": _lists(sources.best.permute(1, 2, 0)[inside], sizes * number, keys),
        "valid": [each.tobytes() for each in bits],
        "width": [kept.shape[2]] * len(keys),
        "entropy": _lists(sources.entropy.T, number, keys),
        "dropped": _lists(dropped.T, number, keys),
    }
    arrays = [
        pa.array(values, field.type) if isinstance(values, Sequence) else values.cast(field.type)
        for field, values in zip(_SCHEMA, columns.values(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _likely(probs: Tensor, valid: Tensor, lost_mass: float) -> Tensor:
    """Mark candidates so that the others of each group have at most `lost_mass`: bool (S, B, G, C).

    Of some probabilities, the largest is taken above which the candidates suffice; there is no need to sort.
    """
    kept = probs > lost_mass / valid.sum(-1, keepdim=True).clamp(min=1)
    for exponent in (-2.5, -2, -1.5, -1, -0.5):
        fewer = probs > lost_mass * 10**exponent
        suffice = probs.masked_fill(fewer, 0).sum(-1, keepdim=True) <= lost_mass
        kept = torch.where(suffice, fewer, kept)
    return kept


def _lists(values: Tensor, counts: Tensor | int, keys: Sequence[bytes]) -> pa.Array:
    """Return a list for each sentence of the next `counts` of the flattened values."""
    each = counts.cpu() if isinstance(counts, Tensor) else torch.full((len(keys),), counts)
    offsets = torch.cat([each.new_zeros(1), each.cumsum(0)]).to(torch.int32)
    return pa.ListArray.from_arrays(offsets.numpy(), pa.array(values.numpy(force=True).ravel()))


def _decode(stored: pa.RecordBatch, structure: type[Structure]) -> Found:
    def flat(name: str, *shape: int) -> Tensor:
        return torch.from_numpy(np.array(stored[name].flatten())).view(-1, *shape)

    sizes = [len(stored[name][0]) for name in ("entropy", "shape")]
    number, size = sizes[0], len(stored)
    scores = torch.zeros(size, *flat("shape", sizes[1]).amax(0).tolist())
    lengths = torch.tensor(stored["length"].to_pylist())
    space = structure(scores, lengths, **json.loads(stored["settings"][0].as_py()))
    valid = torch.zeros_like(space.valid)
    for each, bits, width, groups in zip(
        valid, stored["valid"], stored["width"].to_pylist(), space.group_lengths.tolist(), strict=True
    ):
        row = np.unpackbits(np.frombuffer(bits.as_buffer(), np.uint8), count=groups * width)
        inside = torch.from_numpy(row).view(groups, width)[:, : valid.shape[2]]
        each[:groups, : inside.shape[1]] = inside
    inside = torch.arange(valid.shape[1]) < space.group_lengths[:, None]
    best, rest = torch.full((*inside.shape, number), -1), torch.full((*inside.shape, number), -torch.inf)
    best[inside], rest[inside] = flat("best", number).long(), flat("rest", number)
    log_probs = torch.where(valid[None], rest.permute(2, 0, 1)[..., None], -torch.inf)
    counts = torch.tensor(stored["group"].value_lengths().to_pylist())
    sentence = torch.arange(size).repeat_interleave(counts)
    log_probs[:, sentence, flat("group").long(), flat("candidate").long()] = flat("log_probs", number).T
    device = inference_device()
    known = [log_probs, best.permute(2, 0, 1), valid, flat("entropy", number).T]
    space = structure(scores.to(device), lengths.to(device), **json.loads(stored["settings"][0].as_py()))
    return SourceDistributions.stored(space, *(each.to(device) for each in known)), flat("dropped", number).T

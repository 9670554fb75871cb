"""Which words of encoder A are published: those of a public vector file, or all."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

import numpy as np

from hf_xst.data import WordVectors, read_vectors
from hf_xst.hub.allowed_files import is_allowed
from hf_xst.models.modeling import StructuredModel
from hf_xst.models.words import WORDS_FILE, VectorTable
from hf_xst.sources.pool import load_model

Vocabulary = Literal["public", "all"]


def keep_public_words(folder: Path, vectors: str | None) -> str:
    """Leave in a model's word table only what the public vector file has too.

    A table is made of a vector file's rows alone, never of training text. If that file is itself private in
    part, `vectors` names the public one.

    Args:
        folder: the model's; what changes is replaced there, and links are cut before.
        vectors: the public vector file; without it the one that the model was made with counts as public.

    Returns:
        What the word list is, in a phrase.

    Raises:
        ValueError: the table does not say where its words are from, or its vectors were trained, so that the
            words of the training text could be told by comparison.
    """
    model = load_model(str(folder))
    table = model.encoder.words
    assert isinstance(table, VectorTable)
    if table.space is None:
        raise ValueError(
            f"the configuration does not say which vector file the words of {WORDS_FILE} are from; build the "
            "model from one, or say --vocabulary all to publish every word"
        )
    if not table.is_frozen:
        raise ValueError(
            "the word vectors were trained: compared with their file they tell which words the training text "
            "holds. Say --vocabulary all to publish them nonetheless"
        )
    words = table.table.words
    if vectors is None:
        return (
            f"the {len(words):,} words of the vector file {table.space['name']} (if that is not public, name "
            "one that is by --vectors)"
        )
    public = set(read_vectors(vectors, vocabulary=words).words)
    kept = [row for row, word in enumerate(words) if word in public]
    if len(kept) < len(words):
        rows = table.vectors.detach().float().cpu().numpy()[np.array(kept, dtype=np.int64)]
        space = table.space
        chosen = [words[row] for row in kept]
        model.replace_word_vectors(WordVectors(chosen, rows, space["name"], space["sha256"]))
        _save_over(model, folder)
    left = len(words) - len(kept)
    return f"{len(kept):,} words that {Path(vectors).name} has too; {left:,} others stay here"


def _save_over(model: StructuredModel, folder: Path) -> None:
    """Save a model over the one in a folder of links, whose targets stay as they are."""
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        model.save_pretrained(aside)
        for name in [path.name for path in folder.iterdir()]:
            if name.endswith((".safetensors", ".safetensors.index.json")):
                (folder / name).unlink()
        for path in Path(aside).iterdir():
            if is_allowed(path.name, "model"):
                path.replace(folder / path.name)

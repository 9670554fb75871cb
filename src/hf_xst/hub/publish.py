"""Putting models and charts on the Hub: gathered, checked, and sent in one commit."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_args

from datasets import Dataset
from huggingface_hub import CommitInfo, hf_hub_download
from huggingface_hub.errors import (
    HFValidationError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.repocard import RepoCard
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from hf_xst.charts.dataset import PROVENANCE, write_provenance
from hf_xst.console import say
from hf_xst.hub.allowed_files import CARD, AllowedFiles, allowed_files, gather
from hf_xst.hub.card_merge import Card
from hf_xst.hub.chart_columns import spell_out
from hf_xst.hub.privacy import Secrets, find_leaks, training_sentences
from hf_xst.hub.upload import Destination, resolved, upload
from hf_xst.hub.vocabulary import Vocabulary, keep_public_words
from hf_xst.inference.annotation import ANNOTATOR_FOLDER
from hf_xst.models.words import WORDS_FILE
from hf_xst.remote import HUB_ERRORS, explain_hub_error

_SHOWN_LEAKS = 5


@dataclass(frozen=True)
class Choices:
    """What of a folder is published, and how.

    Attributes:
        vocabulary: which words of encoder A go: those of a public vector file, or all.
        vectors: the public vector file, if it is not the one that the model was made with.
        tags: further tags of the card.
        dry_run: only list what would go.
        unsearched: go on where training sentences cannot be read again, to be sought in what goes.
        replace_card: let the folder's card replace what people have written into the one on the Hub.

    Raises:
        ValueError: the vocabulary has another value.
    """

    vocabulary: Vocabulary = "public"
    vectors: str | None = None
    tags: tuple[str, ...] = ()
    dry_run: bool = False
    unsearched: bool = False
    replace_card: bool = False

    def __post_init__(self) -> None:
        if self.vocabulary not in get_args(Vocabulary):
            raise ValueError(
                f"vocabulary is {self.vocabulary!r}; expected {' or '.join(get_args(Vocabulary))}"
            )


def push_folder(
    folder: str | Path, destination: Destination, choices: Choices | None = None
) -> CommitInfo | None:
    """Put a folder that train-source, transfer or build-charts wrote on the Hub.

    Only files of an allowed list go, after a search for what is private, all in one commit: either the
    repository holds the whole new state or it is as it was. Repeated after a broken connection, what was
    uploaded before is not uploaded again.

    Args:
        folder: the folder.
        destination: the repository, and how it is to be written to.
        choices: what goes; see the class.

    Returns:
        The commit; None after a dry run, which does not touch the network.

    Raises:
        ValueError: there is nothing to push, something private was found, or the Hub refuses; in one line.
    """
    folder, choices = Path(folder), choices or Choices()
    kind = allowed_files(folder).kind
    destination = replace(destination, kind=kind)
    _check_id(destination.repository)
    if not choices.dry_run:
        destination = resolved(destination)
    with tempfile.TemporaryDirectory(prefix="hf-xst-push-") as name:
        aside = Path(name)
        gather(folder, aside)
        notes = [_spelled(aside)] if kind == "dataset" else _words_chosen(aside, choices)
        _with_card(aside, destination, choices)
        sent = allowed_files(aside)
        sentences = training_sentences(folder, unsearched=choices.unsearched) if kind == "model" else ()
        secrets = Secrets.here(folder, destination.account, sentences, destination.known_token)
        _check(sent, secrets)
        if secrets.sentences.too_short:
            notes.append(
                f"{secrets.sentences.too_short} training sentences are too short to be told from chance and "
                "were not searched for"
            )
        _tell(sent, destination, notes, dry_run=choices.dry_run)
        return None if choices.dry_run else upload(sent, destination)


def _check_id(repository: str) -> None:
    try:
        validate_repo_id(repository)
    except HFValidationError as problem:
        raise ValueError(
            f"{repository!r} cannot be an id on the Hub ({problem}); expected USER/NAME"
        ) from problem


class Saveable(Protocol):
    """A model, or a pipeline of a model and its tagger."""

    def save_pretrained(self, save_directory: str, **kwargs: Any) -> None:
        """Write what `from_pretrained` reads."""


def push_model(model: Saveable, repository: str, **options: Any) -> CommitInfo:
    """Put a model in memory on the Hub, through the checks of `push_folder`.

    Args:
        model: the model, or a pipeline, whose tagger goes with it.
        repository: USER/NAME.
        options: those of `transformers`' `push_to_hub`, of which `private` is true unless it is false, and
            `vocabulary` and `vectors` of `Choices`.

    Raises:
        ValueError: see `push_folder`.
    """
    shards = {"max_shard_size": options.pop("max_shard_size")} if options.get("max_shard_size") else {}
    with tempfile.TemporaryDirectory(prefix="hf-xst-model-") as folder:
        model.save_pretrained(folder, **shards)
        return _push_saved(folder, repository, options)


def push_charts(rows: Dataset, provenance: Mapping[str, Any], repository: str, **options: Any) -> CommitInfo:
    """Put charts, as `load_charts` gives them, on the Hub as a data set, through the checks of `push_folder`.

    Args:
        rows: the charts.
        provenance: what they were made from.
        repository: USER/NAME.
        options: as for `push_model`.

    Raises:
        ValueError: see `push_folder`.
    """
    with tempfile.TemporaryDirectory(prefix="hf-xst-charts-") as folder:
        (Path(folder) / "data").mkdir()
        rows.to_parquet(str(Path(folder) / "data" / "train-00000-of-00001.parquet"))
        write_provenance(Path(folder), provenance)
        return _push_saved(folder, repository, options)


def _push_saved(folder: str, repository: str, options: dict[str, Any]) -> CommitInfo:
    tags = options.pop("tags", None) or ()
    choices = Choices(
        options.pop("vocabulary", "public"),
        options.pop("vectors", None),
        (tags,) if isinstance(tags, str) else tuple(tags),
        unsearched=True,  # a model in memory does not tell what it was trained on
    )
    private = options.pop("private", None)
    destination = Destination(
        repository,
        public=private is False,
        message=options.pop("commit_message", None),
        description=options.pop("commit_description", None),
        new_branch=True,
        **options,
    )
    commit = push_folder(folder, destination, choices)
    assert commit is not None
    return commit


# -- what goes ----------------------------------------------------------------------------------------


def _spelled(aside: Path) -> str:
    provenance = json.loads((aside / PROVENANCE).read_text(encoding="utf-8"))
    spell_out(aside, provenance)
    return "the charts' sentences go with them: their words are part of the data set"


def _words_chosen(aside: Path, choices: Choices) -> list[str]:
    """Leave the words that may go, in the model and in what annotates for it; say what the word lists are."""
    notes = []
    for folder in (aside, aside / ANNOTATOR_FOLDER):
        if (folder / WORDS_FILE).exists():
            if choices.vocabulary == "public":
                kept = keep_public_words(folder, choices.vectors)
            else:
                kept = "all words of the model (--vocabulary all)"
            notes.append(f"{(folder / WORDS_FILE).relative_to(aside).as_posix()}: {kept}")
    return notes


def _with_card(aside: Path, destination: Destination, choices: Choices) -> None:
    """Render the card; what people have written into it stays: here, or, where none is here, on the Hub."""
    from hf_xst.hub.card import write_card

    there = None if choices.dry_run else _card_there(destination)
    if there is not None and not (aside / CARD).exists():
        shutil.copyfile(there, aside / CARD)
    elif there is not None and not choices.replace_card:
        _check_own_words(aside / CARD, there, destination)
    write_card(aside, vocabulary=choices.vocabulary, repository=destination.repository)
    if choices.tags:
        card = RepoCard.load(aside / CARD)
        known = card.data.get("tags") or []
        card.data["tags"] = [*known, *(tag for tag in choices.tags if tag not in known)]
        card.save(aside / CARD)


def _check_own_words(here: Path, there: Path, destination: Destination) -> None:
    """Refuse to replace a card into which people have written what the folder's own card has not."""
    lost = sorted(Card.read(there).own - Card.read(here).own)
    if lost:
        raise ValueError(
            f"the card of {destination.repository} on the Hub says what the folder's {CARD} does not: "
            f"{lost[0]!r}{f' and {len(lost) - 1} more' if len(lost) > 1 else ''}. Copy it into the folder's, "
            "remove the folder's (the Hub's is kept then), or say --replace-card"
        )


def _card_there(destination: Destination) -> Path | None:
    """Fetch the card that the branch has, or None where there is no card yet.

    Raises:
        ValueError: the Hub cannot be reached: there may be one, which must not be lost.
    """
    repository, kind, revision = destination.repository, destination.kind, destination.revision
    try:
        there = hf_hub_download(repository, CARD, repo_type=kind, revision=revision, token=destination.token)
    except (RemoteEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError):
        return None
    except HUB_ERRORS as problem:
        raise ValueError(explain_hub_error(problem, repository, kind, revision)) from problem
    return Path(there)


def _check(sent: AllowedFiles, secrets: Secrets) -> None:
    leaks = find_leaks(sent.files, secrets)
    if leaks:
        shown = "; ".join(f"{leak.file}: {leak.what}" for leak in leaks[:_SHOWN_LEAKS])
        more = f"; and {len(leaks) - _SHOWN_LEAKS} more" if len(leaks) > _SHOWN_LEAKS else ""
        raise ValueError(
            f"nothing was pushed, since private things would go: {shown}{more}. Remove them first"
        )


def _tell(sent: AllowedFiles, destination: Destination, notes: list[str], *, dry_run: bool) -> None:
    seen = "public" if destination.public else "private"
    does = "would go" if dry_run else "go"
    say(
        f"{len(sent.files)} files ({sized(sent.size)}) {does} to the {seen} "
        f"{'model' if sent.kind == 'model' else 'data set'} {destination.repository}",
        "bold",
    )
    for name, path in sent.files.items():
        say(f"  {sized(path.stat().st_size):>9}  {name}")
    for note in notes:
        say(f"  {note}")
    if sent.left:
        say(f"  stay here: {', '.join(sent.left)}")


def sized(size: float) -> str:
    """Write a number of bytes for people."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"

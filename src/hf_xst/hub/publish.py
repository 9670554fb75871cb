"""Push models and charts to the Hub: gather the files, check them, send them in one commit."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset
from huggingface_hub import CommitInfo
from huggingface_hub.repocard import RepoCard
from rich.filesize import decimal
from transformers import Pipeline, PreTrainedModel

from hf_xst.charts.dataset import DATA, ChartInfo
from hf_xst.console import say
from hf_xst.hub.card import README, write_card
from hf_xst.hub.card_merge import Card
from hf_xst.hub.contents import Contents, add_readable_columns, keep_public_words, link_files
from hf_xst.hub.privacy import Secrets, training_sentences
from hf_xst.hub.upload import PushOptions, Repository
from hf_xst.inference.annotation import TAGGER_FOLDER
from hf_xst.models.words import WORDS_FILE

_MAX_LISTED = 5  # leaks in an error message


def push_folder(folder: str | Path, repository: str, options: PushOptions | None = None) -> CommitInfo | None:
    """Push the output of train-source, transfer or build-charts to the Hub.

    Only files whose names are allowed are pushed, after a search for private content, in a single commit: the
    repository contains either the complete new state or the old one. After a broken connection, files that
    were already uploaded are not sent again.

    Args:
        folder: the folder.
        repository: USER/NAME; without USER, the account of the token.
        options: see the class.

    Returns:
        The commit; None after a dry run, which does not use the network.

    Raises:
        ValueError: there is nothing to push, private content was found, or the Hub refuses; in one line.
    """
    folder, options = Path(folder), options or PushOptions()
    target = Repository(repository, Contents.of(folder).kind, options)
    with tempfile.TemporaryDirectory(prefix="hf-xst-push-") as name:
        work = Path(name)
        link_files(folder, work)
        if target.kind == "dataset":
            add_readable_columns(work, ChartInfo.load(work))
            notes = ["the data set contains the words of the sentences"]
        else:
            notes = _select_words(work, options)
        _write_card(work, target)
        contents = Contents.of(work)
        contents.secure(folder)
        is_model = target.kind == "model"
        sentences = training_sentences(folder, unsearched=options.unsearched) if is_model else ()
        further = {"sentences": sentences, "allowed": options.allow}
        secrets = Secrets.collect(folder, target.account, target.token, **further)
        _check_leaks(contents, secrets)
        _report(contents, target, [*notes, *secrets.notes()])
        return None if options.dry_run else target.upload(contents)


def push_model(model: PreTrainedModel | Pipeline, repository: str, **options: Any) -> CommitInfo:
    """Push a model in memory to the Hub, with the checks of `push_folder`.

    Args:
        model: the model, or a pipeline, whose tagger is pushed too.
        repository: USER/NAME.
        options: those of `push_to_hub` in transformers, where `private` defaults to true, and `vocabulary`,
            `vectors` and `tag` of `PushOptions`.

    Raises:
        ValueError: see `push_folder`.
    """
    size = options.pop("max_shard_size", None)
    with tempfile.TemporaryDirectory(prefix="hf-xst-model-") as folder:
        model.save_pretrained(folder, **({"max_shard_size": size} if size else {}))
        return _push_saved(folder, repository, **options)


def push_charts(rows: Dataset, info: ChartInfo, repository: str, **options: Any) -> CommitInfo:
    """Push charts, as returned by `load_charts`, to the Hub as a data set, with the checks of `push_folder`.

    Args:
        rows: the charts.
        info: their record.
        repository: USER/NAME.
        options: as for `push_model`.

    Raises:
        ValueError: see `push_folder`.
    """
    with tempfile.TemporaryDirectory(prefix="hf-xst-charts-") as folder:
        path = Path(folder, DATA, "train-00000-of-00001.parquet")
        path.parent.mkdir()
        rows.to_parquet(str(path))
        info.save(Path(folder))
        return _push_saved(folder, repository, **options)


def _push_saved(
    folder: str,
    repository: str,
    *,
    private: bool | None = None,
    tags: str | list[str] | None = None,
    commit_message: str | None = None,
    commit_description: str | None = None,
    **options: Any,
) -> CommitInfo:
    push_options = PushOptions(
        public=private is False,
        unsearched=True,  # the training data of a model in memory is unknown
        new_branch=True,
        message=commit_message,
        description=commit_description,
        tags=(tags,) if isinstance(tags, str) else tuple(tags or ()),
        **options,
    )
    commit = push_folder(folder, repository, push_options)
    assert commit is not None
    return commit


def _select_words(work: Path, options: PushOptions) -> list[str]:
    """Remove words that are not public from the vocabularies of a model and its tagger; describe the rest."""
    notes = []
    for folder in (work, work / TAGGER_FOLDER):
        path = folder / WORDS_FILE
        if path.exists():
            words = "all words of the model (--vocabulary all)"
            if options.vocabulary == "public":
                words = keep_public_words(folder, options.vectors)
            notes.append(f"{path.relative_to(work).as_posix()}: {words}")
    return notes


def _write_card(work: Path, target: Repository) -> None:
    """Render the card, keeping what people wrote: in the folder's card or, if it has none, in the Hub's."""
    options, path = target.options, work / README
    on_hub = None if options.dry_run else target.download_card()
    if on_hub is not None and not path.exists():
        shutil.copyfile(on_hub, path)
    elif on_hub is not None and not options.replace_card:
        lost = sorted(Card.read(on_hub).edits() - Card.read(path).edits())
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise ValueError(
                f"the card of {target.name} on the Hub contains lines that the folder's {README} lacks: "
                f"{lost[0]!r}{more}. Copy them into the folder's card, delete the folder's card to keep the "
                "Hub's, or pass --replace-card"
            )
    write_card(work, vocabulary=options.vocabulary, repository=target.name)
    if options.tags:
        card = RepoCard.load(path)
        card.data["tags"] = list(dict.fromkeys([*(card.data.get("tags") or []), *options.tags]))
        card.save(path)


def _check_leaks(contents: Contents, secrets: Secrets) -> None:
    leaks = secrets.find_in(contents.files)
    if leaks:
        listed = "; ".join(leaks[:_MAX_LISTED])
        more = f"; and {len(leaks) - _MAX_LISTED} more" if len(leaks) > _MAX_LISTED else ""
        raise ValueError(
            f"nothing was pushed because of private content: {listed}{more}. Remove it first, or "
            "pass what is meant to be public, such as a contact address, to --allow"
        )


def _report(contents: Contents, target: Repository, notes: list[str]) -> None:
    sizes = {name: path.stat().st_size for name, path in contents.files.items()}
    visibility = "public" if target.options.public else "private"
    kind = "model" if target.kind == "model" else "data set"
    action = "Dry run: would push" if target.options.dry_run else "Pushing"
    total = decimal(sum(sizes.values()))
    say(f"{action} {len(sizes)} files ({total}) to the {visibility} {kind} {target.name}", "bold")
    for name, size in sizes.items():
        say(f"  {decimal(size):>11}  {name}")
    for note in notes:
        say(f"  {note}")
    if contents.excluded:
        say(f"  not pushed: {', '.join(contents.excluded)}")

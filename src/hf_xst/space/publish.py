"""Write the files of a Space that runs the app, and push them to the Hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import yaml
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import EntryNotFoundError

from hf_xst.extras import import_optional
from hf_xst.remote import HUB_ERRORS, explain_hub_error
from hf_xst.sources.loading import SourceSpec
from hf_xst.space.app import ABOUT, TITLE

APP = '''\
"""Structures from other people's models, step by step; written by `hf-xst space --push`."""

from hf_xst.commands.space import SpaceArguments, app, launch

launch(app(SpaceArguments({arguments})))
'''


def space_files(
    parsers: Sequence[str] = (), taggers: Sequence[str] = (), requirement: str = "hf_xst[demo]"
) -> dict[str, str]:
    """Return the files of a Space by name; without source parsers or taggers it shows invented languages.

    Raises:
        ValueError: A model is a local folder.
    """
    specs = [SourceSpec.parse(text) for text in (*parsers, *taggers)]
    local = [spec.path for spec in specs if spec.public_id() is None]
    if local:
        raise ValueError(
            f"{', '.join(local)}: a Space requires models on the Hub; push them first (hf-xst push)"
        )
    models = list(dict.fromkeys(spec.path for spec in specs))
    try:
        gradio = version("gradio")  # without importing it, which takes seconds
    except PackageNotFoundError:
        gradio = str(import_optional("gradio", "demo").__version__)
    metadata = {
        "title": TITLE,
        "sdk": "gradio",
        "sdk_version": gradio,
        "app_file": "app.py",
        "license": "apache-2.0",
        "short_description": "Pool source models, see the chart, get the tree",
        "tags": ["dependency-parsing", "part-of-speech", "universal_dependencies"],
        **({"models": models} if models else {}),
    }
    front = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    options = {"sources": list(parsers), "taggers": list(taggers)}
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
    return {
        "app.py": APP.format(arguments=arguments),
        "requirements.txt": f"{requirement}\n",
        "README.md": f"---\n{front}---\n\n# {TITLE}\n\n{ABOUT}\n",
    }


def push_space(name: str, files: Mapping[str, str], *, public: bool = False, overwrite: bool = False) -> str:
    """Create or update the Space `user/name` and return its address.

    A new Space is private unless `public`; an existing one keeps its visibility.

    Raises:
        ValueError: The Hub rejects the push, or the Space runs another app and `overwrite` is false.
    """
    hub = HfApi()
    try:
        if not overwrite and hub.repo_exists(name, repo_type="space") and not _has_our_app(hub, name):
            raise ValueError(f"the Space {name} runs another app; push to a new one, or pass --overwrite")
        url = hub.create_repo(name, repo_type="space", space_sdk="gradio", private=not public, exist_ok=True)
        hub.create_commit(
            url.repo_id,
            [CommitOperationAdd(path, text.encode()) for path, text in files.items()],
            commit_message="hf-xst space",
            repo_type="space",
        )
    except (*HUB_ERRORS, RuntimeError) as error:
        reason = explain_hub_error(error, name, "space")
        raise ValueError(f"{reason}; the Space {name} was not pushed") from error
    return str(url)


def _has_our_app(hub: HfApi, name: str) -> bool:
    try:
        path = hub.hf_hub_download(name, "app.py", repo_type="space")
    except EntryNotFoundError:
        return False
    return Path(path).read_bytes().startswith(APP.partition("{")[0].encode())

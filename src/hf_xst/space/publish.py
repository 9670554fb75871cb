"""The app as a Space on the Hub: three small files, written and pushed by one command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import yaml
from huggingface_hub import CommitOperationAdd, HfApi

from hf_xst.extras import import_optional
from hf_xst.remote import HUB_ERRORS, explain_hub_error
from hf_xst.sources.pool import SourceSpec
from hf_xst.space.app import ABOUT, TITLE

APP = '''\
"""The method step by step; made by `hf-xst space --push`."""

from hf_xst.demo.space import SpaceArguments, app, launch

launch(app(SpaceArguments({arguments})))
'''


@dataclass(frozen=True)
class SpaceContent:
    """What a Space runs on.

    Attributes:
        parsers: source parsers on the Hub, NAME=ID[@REVISION]; the invented languages if there are no models.
        taggers: source taggers on the Hub.
        requirement: how `hf_xst` is installed there, as a line of `requirements.txt`.
        title: of the Space.
        license: of the Space's own files.
    """

    parsers: Sequence[str] = ()
    taggers: Sequence[str] = ()
    requirement: str = "hf_xst[demo]"
    title: str = TITLE
    license: str = "apache-2.0"

    def models(self) -> list[str]:
        """Return the Hub ids of all models.

        Raises:
            ValueError: a model is a folder, which a Space cannot reach.
        """
        specs = [SourceSpec.parse(text) for text in (*self.parsers, *self.taggers)]
        local = [spec.path for spec in specs if spec.public_id() is None]
        if local:
            raise ValueError(
                f"{', '.join(local)}: a Space needs models on the Hub; push them first (hf-xst push)"
            )
        return list(dict.fromkeys(spec.path for spec in specs))


def space_files(content: SpaceContent) -> dict[str, str]:
    """Return the files of a Space by name.

    Raises:
        ImportError: gradio, whose version the Space asks for, is not installed.
        ValueError: a model is not on the Hub.
    """
    models = content.models()
    metadata = {
        "title": content.title,
        "sdk": "gradio",
        "sdk_version": _gradio_version(),
        "app_file": "app.py",
        "license": content.license,
        "short_description": "Pool source models, see the chart, get the tree",
        "tags": ["dependency-parsing", "part-of-speech", "universal_dependencies"],
        **({"models": models} if models else {}),
    }
    front = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    given = {"sources": list(content.parsers), "taggers": list(content.taggers)}
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items() if value)
    return {
        "app.py": APP.format(arguments=arguments),
        "requirements.txt": f"{content.requirement}\n",
        "README.md": f"---\n{front}---\n\n# {content.title}\n\n{ABOUT}\n",
    }


def _gradio_version() -> str:
    try:
        return version("gradio")  # without importing it, which takes seconds
    except PackageNotFoundError:
        return str(import_optional("gradio", "demo").__version__)


def push_space(
    name: str,
    content: SpaceContent,
    *,
    public: bool = False,
    token: str | None = None,
) -> str:
    """Make a Space, or bring it up to date.

    Args:
        name: `user/name`.
        content: what it runs on.
        public: whether everybody may see a Space that is newly made; one that is there stays as it is.
        token: of the Hub; by default the one of the login.

    Returns:
        The Space's address.

    Raises:
        ValueError: a model is not on the Hub, or the Hub refuses.
    """
    files = space_files(content)
    hub = HfApi(token=token)
    try:
        made = hub.create_repo(name, repo_type="space", space_sdk="gradio", private=not public, exist_ok=True)
        hub.create_commit(
            made.repo_id,
            [CommitOperationAdd(path, text.encode()) for path, text in files.items()],
            commit_message="hf-xst space",
            repo_type="space",
        )
    except (*HUB_ERRORS, RuntimeError) as problem:
        raise ValueError(
            f"{explain_hub_error(problem, name, 'space', token=token)}; the Space {name} was not pushed"
        ) from problem
    return str(made)

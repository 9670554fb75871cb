"""The files of a Space, and pushing them to a Hub."""

from __future__ import annotations

import ast
import importlib
import json
import urllib.request
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import yaml
from huggingface_hub.errors import EntryNotFoundError

from helpers.hub_process import Client
from hf_xst.commands.space import SpaceArguments, space
from hf_xst.space import publish
from hf_xst.space.publish import push_space, space_files

if find_spec("gradio") is None:
    pytest.skip("gradio is not installed (the extra demo)", allow_module_level=True)


def metadata(readme: str) -> dict[str, object]:
    _, front, _ = readme.split("---\n", 2)
    return yaml.safe_load(front)


@pytest.mark.parametrize("option", ["vectors", "sentences"])
def test_local_files_of_a_pushed_space_are_rejected(option):
    with pytest.raises(ValueError, match=f"leave out --{option}"):
        space(SpaceArguments(push="me/space", **{option: "file"}))


def test_files_of_a_space():
    files = space_files(["en=user/en-parser@v1"], ["user/tags"], "hf_xst[demo]==9.9")
    assert sorted(files) == ["README.md", "app.py", "requirements.txt"]
    assert files["requirements.txt"] == "hf_xst[demo]==9.9\n"
    about = metadata(files["README.md"])
    assert (about["sdk"], about["app_file"]) == ("gradio", "app.py")
    assert about["models"] == ["user/en-parser", "user/tags"]
    assert len(str(about["short_description"])) <= 60  # the Hub refuses longer ones
    tree = ast.parse(files["app.py"])
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    (call,) = [call for call in calls if call.func.id == "SpaceArguments"]
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert SpaceArguments(**arguments).taggers == ["user/tags"]
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert len(imports) == 1
    module = vars(importlib.import_module(imports[0].module))
    assert {alias.name for alias in imports[0].names} <= set(module)


def test_default_space_has_no_models():
    files = space_files()
    assert "models" not in metadata(files["README.md"])
    assert "SpaceArguments()" in files["app.py"]


def test_local_models_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="a Space requires models on the Hub; push them first"):
        space_files([f"en={tmp_path}"])


@pytest.mark.parametrize("app", [None, "import gradio\n", space_files()["app.py"]])
def test_another_app_is_replaced_only_if_requested(tmp_path, monkeypatch, app):
    pushed = []

    class Hub:
        def repo_exists(self, name, repo_type):
            return True

        def hf_hub_download(self, name, file, repo_type):
            if app is None:
                raise EntryNotFoundError("no app.py")
            (tmp_path / file).write_text(app)
            return str(tmp_path / file)

        def create_repo(self, name, **_):
            return SimpleNamespace(repo_id=name)

        def create_commit(self, name, files, **_):
            pushed.append(name)

    monkeypatch.setattr(publish, "HfApi", Hub)
    if app is None or "hf_xst" not in app:
        with pytest.raises(ValueError, match=r"the Space a/b runs another app; .* pass --overwrite"):
            push_space("a/b", space_files())
        assert not pushed
        push_space("a/b", space_files(), overwrite=True)
    else:
        push_space("a/b", space_files())
    assert pushed == ["a/b"]


@pytest.mark.slow
def test_command_pushes_a_space(hub, client: Client):
    done = client.command("space", "--push", "tester/steps", "--public", "--taggers", "user/tags@v1")
    assert done["status"] == 0, done
    assert "tester/steps" in done["output"]
    with urllib.request.urlopen(f"{hub.url}/api/spaces/tester/steps") as answer:
        content = json.load(answer)
    assert {file["rfilename"] for file in content["siblings"]} >= {"README.md", "app.py", "requirements.txt"}
    with urllib.request.urlopen(f"{hub.url}/spaces/tester/steps/resolve/main/README.md") as answer:
        assert metadata(answer.read().decode())["models"] == ["user/tags"]
    again = client.command("space", "--push", "tester/steps", "--requirement", "hf_xst[demo]==1")
    assert again["status"] == 0, again
    with urllib.request.urlopen(f"{hub.url}/spaces/tester/steps/resolve/main/requirements.txt") as answer:
        assert answer.read() == b"hf_xst[demo]==1\n"


@pytest.mark.slow
def test_rejected_push_is_reported_in_one_line(hub, client: Client):
    line = client.fails("space", "--push", "somebody-else/steps")
    assert "the Space somebody-else/steps was not pushed" in line

"""Storage of the loopback Hub: repositories with refs, commits and trees as JSON, contents by SHA-256."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import yaml

Repository = dict[str, Any]
Tree = dict[str, dict[str, Any]]

LFS_LIMIT = 10 << 20
LFS_NAMES = tuple(
    "*.safetensors *.bin *.pt *.pth *.ckpt *.h5 *.onnx *.npz *.npy *.parquet *.arrow *.gz *.zip *.tar *.pkl "
    "*.model *.png".split()
)
_ATTRIBUTES = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in LFS_NAMES).encode()
_FRONT_MATTER = re.compile(r"---\s*\n(.*?)\n---", re.S)


class RefusedError(Exception):
    """An error reply."""

    def __init__(
        self, status: int, message: str, code: str | None = None, body: Any = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {"error": message}
        self.headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {}), **headers}


def sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


def _blob_id(content: bytes) -> str:
    return sha1(b"blob %d\0" % len(content) + content)


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())


def front_matter(text: str) -> dict[str, Any]:
    """Read the YAML at a card's start; dates and the like become strings.

    Raises:
        ValueError: it is not a mapping.
    """
    found = _FRONT_MATTER.match(text)
    content = (yaml.safe_load(found[1]) if found else None) or {}
    if not isinstance(content, dict):
        raise ValueError(f"expected a mapping, found {type(content).__name__}")
    loaded: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return loaded


def listing(tree: Tree, prefix: str = "", *, recursive: bool = True) -> list[dict[str, Any]]:
    """List a tree, folders first, as the Hub does."""
    files: list[dict[str, Any]] = []
    folders: dict[str, dict[str, Any]] = {}
    start = prefix.strip("/") + "/" if prefix else ""
    for path, entry in sorted(tree.items()):
        if not path.startswith(start):
            continue
        parts = path[len(start) :].split("/")
        for depth in range(1, len(parts) if recursive else min(2, len(parts))):
            name = start + "/".join(parts[:depth])
            folders[name] = {"type": "directory", "oid": sha1(name.encode()), "size": 0, "path": name}
        if recursive or len(parts) == 1:
            lfs = {"lfs": entry["lfs"]} if entry["lfs"] else {}
            files.append({"type": "file", "oid": entry["oid"], "size": entry["size"], "path": path, **lfs})
    if prefix and not files and not folders:
        raise RefusedError(404, f"{prefix} does not exist", "EntryNotFound")
    return [*folders.values(), *files]


class Store:
    """Repositories below a folder: ROOT/repos/*.json and ROOT/blobs/<sha256>."""

    def __init__(self, root: Path) -> None:
        self.root, self.lock = root, threading.RLock()
        self.blobs, self.parts = root / "blobs", root / "tmp"
        for folder in (root / "repos", self.blobs, self.parts):
            folder.mkdir(parents=True, exist_ok=True)

    def path(self, kind: str, name: str) -> Path:
        return self.root / "repos" / f"{kind}--{name.replace('/', '--')}.json"

    def get(self, kind: str, name: str) -> Repository:
        path = self.path(kind, name)
        if not path.exists():
            raise RefusedError(404, "Repository not found", "RepoNotFound")
        found: Repository = json.loads(path.read_text("utf-8"))
        return found

    def every(self, kind: str) -> list[Repository]:
        return [
            json.loads(path.read_text("utf-8")) for path in sorted((self.root / "repos").glob(f"{kind}--*"))
        ]

    def put(self, repository: Repository) -> None:
        aside = self.parts / f"repository{threading.get_ident()}"
        aside.write_text(json.dumps(repository), "utf-8")
        aside.replace(self.path(repository["kind"], repository["id"]))

    def create(self, kind: str, name: str, *, private: bool, sdk: str | None) -> None:
        repository = {
            "kind": kind,
            "id": name,
            "private": private,
            "sdk": sdk,
            "created": now(),
            "refs": {},
            "tags": {},
            "commits": {},
        }
        self.commit(repository, "main", "initial commit", [(".gitattributes", _ATTRIBUTES)])

    def resolve(self, repository: Repository, revision: str) -> str:
        """Find the commit of a branch, a tag or a hash."""
        found = repository["refs"].get(revision.removeprefix("refs/heads/"))
        found = found or repository["tags"].get(revision)
        if found is None and revision in repository["commits"]:
            found = revision
        if found is None:
            raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return str(found)

    def commit(
        self,
        repository: Repository,
        branch: str,
        title: str,
        changes: list[tuple[str, bytes | str | None]],
        parent: str | None = None,
    ) -> str:
        """Commit: bytes are a file's content, a string is the SHA-256 of an uploaded object, None deletes."""
        head = repository["refs"].get(branch)
        if parent and head != parent:
            raise RefusedError(412, "A commit has happened since. Please refresh and try again.")
        tree: Tree = dict(repository["commits"][head]["tree"]) if head else {}
        for path, content in changes:
            if content is None:
                below = path.rstrip("/") + "/"
                tree = {
                    name: entry for name, entry in tree.items() if name != path and not name.startswith(below)
                }
            else:
                tree[path] = self._entry(path, content)
        identity = json.dumps([repository["id"], head, title, sorted(tree), time.time_ns()])
        commit = sha1(identity.encode())
        repository["commits"][commit] = {
            "parent": head,
            "title": title,
            "date": now(),
            "tree": tree,
        }
        repository["refs"][branch] = commit
        self.put(repository)
        return commit

    def _entry(self, path: str, content: bytes | str) -> dict[str, Any]:
        if isinstance(content, bytes):
            sha256 = hashlib.sha256(content).hexdigest()
            (self.blobs / sha256).write_bytes(content)
            return {"oid": _blob_id(content), "size": len(content), "sha256": sha256, "lfs": None}
        if not (self.blobs / content).exists():
            raise RefusedError(400, f"LFS object {content} of {path} was never uploaded")
        size = (self.blobs / content).stat().st_size
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{content}\nsize {size}\n".encode()
        lfs = {"oid": content, "size": size, "pointerSize": len(pointer)}
        return {"oid": _blob_id(pointer), "size": size, "sha256": content, "lfs": lfs}

    def info(self, repository: Repository, commit: str) -> dict[str, Any]:
        """Describe a repository at a commit."""
        found = repository["commits"][commit]
        readme = found["tree"].get("README.md")
        card = front_matter((self.blobs / readme["sha256"]).read_text("utf-8")) if readme else {}
        return {
            "_id": sha1(repository["id"].encode())[:24],
            "id": repository["id"],
            "modelId": repository["id"],
            "author": repository["id"].split("/")[0],
            "sha": commit,
            "private": repository["private"],
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "sdk": repository["sdk"],
            "tags": _tags(card),
            "createdAt": repository["created"],
            "lastModified": found["date"],
            "cardData": card,
            "model-index": card.get("model-index"),
            "library_name": card.get("library_name"),
            "pipeline_tag": card.get("pipeline_tag"),
            "siblings": [_sibling(path, entry) for path, entry in sorted(found["tree"].items())],
        }


def _sibling(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    lfs = entry["lfs"] and {**entry["lfs"], "sha256": entry["sha256"]}
    return {"rfilename": path, "blobId": entry["oid"], "size": entry["size"], "lfs": lfs}


def _tags(card: dict[str, Any]) -> list[str]:
    def many(key: str) -> list[str]:
        value = card.get(key) or []
        return value if isinstance(value, list) else [value]

    return [*many("tags"), *many("language"), *(f"license:{name}" for name in many("license"))]

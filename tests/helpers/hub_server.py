"""A Hub on the loopback interface for tests with the real `huggingface_hub` client.

`server = serve(tmp_path); server.url; ...; server.close()`. The client reads HF_ENDPOINT and
HF_HUB_DISABLE_XET when it is first imported: set them before, or use a separate process.

The token `hf_as_anna` belongs to anna, `hf_wrong...` is rejected, and any other belongs to tester. Private
repositories are visible to their owner only, and nobody writes to another account. Handlers named in
`server.broken` (`lfs`, `commit`, `resolve`) drop the connection midway.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import threading
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from helpers.hub_store import (
    LFS_LIMIT,
    LFS_NAMES,
    RefusedError,
    Repository,
    Store,
    front_matter,
    listing,
    sha1,
)

USER = "tester"
PART = 8 << 20  # size of a part of the multipart transfer


class Hub(ThreadingHTTPServer):
    """The server with its `url`, its `store`, the requests `seen` and the `broken` handlers."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.store = Store(root)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.broken: set[str] = set()
        self.seen: list[str] = []

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answer one request by the method that `ROUTES` names."""

    protocol_version, server_version = "HTTP/1.1", "hub_server/2"
    server: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    # -- requests and replies -------------------------------------------------------------------------

    def dispatch(self) -> None:
        try:
            self._route()
        except RefusedError as refused:
            self.reply(refused.status, refused.body, refused.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except Exception as error:
            self.reply(500, {"error": repr(error)}, {"X-Error-Message": f"hub_server: {error!r}"})

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = dispatch  # noqa: N815

    def _route(self) -> None:
        url = urlsplit(self.path)
        self.server.seen.append(f"{self.command} {url.path}")
        length = int(self.headers.get("Content-Length") or 0)  # the client never sends chunked bodies
        self.query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.store, self.raw = self.server.store, b""
        for methods, pattern, name in ROUTES:
            match = re.fullmatch(pattern, url.path)
            if match is None or self.command not in methods.split():
                continue
            if name in self.server.broken:
                self.rfile.read(length // 2)
                raise ConnectionResetError
            self.raw = self.rfile.read(length)
            self.account = self._account()
            arguments = {key: value and unquote(value) for key, value in match.groupdict().items()}
            Handler.__dict__[name](self, **arguments)
            return
        self.rfile.read(length)
        raise RefusedError(404, f"No such endpoint here: {self.command} {url.path}")

    def reply(self, status: int = 200, body: Any = b"", headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        usual = {"Content-Type": "application/json", "Content-Length": str(len(content))}
        for key, value in (usual | (headers or {})).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def ok(self, **_: Any) -> None:
        self.reply(200, {})

    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.raw or b"{}")
        return content

    # -- accounts and repositories --------------------------------------------------------------------

    def _account(self) -> str | None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token.startswith("hf_wrong"):
            raise RefusedError(401, "Invalid credentials in Authorization header")
        if not token:
            return None
        return token.removeprefix("hf_as_") if token.startswith("hf_as_") else USER

    def need_account(self) -> str:
        if self.account is None:
            raise RefusedError(401, "Invalid username or password.")
        return self.account

    def load(self, kind: str, name: str, *, write: bool = False) -> Repository:
        repository = self.store.get(kind, name)
        owner = name.split("/")[0]
        if repository["private"] and self.account != owner:
            status = 401 if self.account is None else 404
            raise RefusedError(status, "Repository not found", "RepoNotFound")
        if write and self.need_account() != owner:
            raise RefusedError(403, f"you may not write to {name}")
        return repository

    def location(self, kind: str, name: str) -> str:
        base = f"http://{self.headers.get('Host', '127.0.0.1')}"
        return f"{base}/{'' if kind == 'model' else kind + 's/'}{name}"

    def whoami(self) -> None:
        access = {"type": "access_token", "accessToken": {"role": "write"}}
        name = self.need_account()
        self.reply(
            200, {"type": "user", "id": "0", "name": name, "fullname": name, "orgs": [], "auth": access}
        )

    def validate_yaml(self) -> None:
        try:
            front_matter(self.json().get("content", ""))
        except Exception as error:
            body = {"errors": [{"message": f"invalid metadata: {error}"}], "warnings": []}
            raise RefusedError(400, "invalid metadata", body=body) from error
        self.reply(200, {"errors": [], "warnings": []})

    def create(self) -> None:
        account, wanted = self.need_account(), self.json()
        kind, name = wanted.get("type", "model"), f"{wanted.get('organization') or account}/{wanted['name']}"
        if name.split("/")[0] != account:
            raise RefusedError(403, f"you may not create a repository for {name.split('/')[0]}")
        with self.store.lock:
            if self.store.path(kind, name).exists():
                body = {"error": "You already created this repo", "url": self.location(kind, name)}
                raise RefusedError(409, body["error"], body=body)
            private = wanted.get("visibility") == "private"
            self.store.create(kind, name, private=private, sdk=wanted.get("sdk"))
        self.reply(200, {"url": self.location(kind, name), "name": name, "id": name})

    def list(self, kind: str) -> None:
        """Of the query: author, search, one filter, pipeline_tag."""
        query = self.query.get
        found = []
        for repository in self.store.every(kind):
            if repository["private"] and repository["id"].split("/")[0] != self.account:
                continue
            info = self.store.info(repository, repository["refs"]["main"])
            has = {*info["tags"], info["library_name"], info["pipeline_tag"], None}
            if (
                query("search", "").lower() in info["id"].lower()
                and query("author", info["author"]) == info["author"]
                and {query("filter"), query("pipeline_tag")} <= has
            ):
                found.append(info)
        self.reply(200, found)

    def repo_info(self, kind: str, name: str, revision: str = "main") -> None:
        repository = self.load(kind, name)
        self.reply(200, self.store.info(repository, self.store.resolve(repository, revision)))

    def refs(self, kind: str, name: str) -> None:
        repository = self.load(kind, name)

        def shown(table: dict[str, str], prefix: str, *, requests: bool = False) -> list[dict[str, str]]:
            return [
                {"name": ref, "ref": prefix + ref, "targetCommit": commit}
                for ref, commit in table.items()
                if ref.startswith("refs/pr/") == requests
            ]

        branches, tags = repository["refs"], repository["tags"]
        answer: dict[str, list[dict[str, str]]] = {
            "branches": shown(branches, "refs/heads/"),
            "tags": shown(tags, "refs/tags/"),
            "converts": [],
            "pullRequests": shown(branches, "", requests=True),
        }
        self.reply(200, answer)

    def ref(self, kind: str, name: str, what: str, ref: str) -> None:
        """POST branch/NEW {startingPoint}, POST tag/REVISION {tag}, DELETE of either."""
        with self.store.lock:
            repository, wanted = self.load(kind, name, write=True), self.json()
            is_branch = what == "branch"
            table = repository["refs"] if is_branch else repository["tags"]
            new = ref if is_branch else wanted.get("tag", ref)
            if self.command == "DELETE":
                if table.pop(new, None) is None:
                    raise RefusedError(404, f"no {what} {new}", "RevisionNotFound")
            elif new in table:
                raise RefusedError(409, f"{what} {new} already exists")
            else:
                start = wanted.get("startingPoint", "main") if is_branch else ref
                table[new] = self.store.resolve(repository, start)
            self.store.put(repository)
        self.ok()

    # -- reading --------------------------------------------------------------------------------------

    def tree(self, kind: str, name: str, revision: str, path: str | None = None) -> None:
        repository = self.load(kind, name)
        found = repository["commits"][self.store.resolve(repository, revision)]["tree"]
        recursive = self.query.get("recursive", "").lower() in ("true", "1")
        self.reply(200, listing(found, path or "", recursive=recursive))

    def paths_info(self, kind: str, name: str, revision: str) -> None:
        repository = self.load(kind, name)
        found = listing(repository["commits"][self.store.resolve(repository, revision)]["tree"])
        every = {entry["path"]: entry for entry in found}
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        wanted = self.json()["paths"] if is_json else parse_qs(self.raw.decode()).get("paths", [])
        self.reply(200, [every[path] for path in wanted if path in every])

    def resolve(self, name: str, revision: str, path: str, kind: str | None = None) -> None:
        repository = self.load((kind or "models")[:-1], name)
        commit = self.store.resolve(repository, revision)
        entry = repository["commits"][commit]["tree"].get(path)
        if entry is None:
            raise RefusedError(404, "Entry not found", "EntryNotFound", **{"X-Repo-Commit": commit})
        lfs = entry["lfs"]
        headers = {
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
            "ETag": f'"{entry["sha256"] if lfs else entry["oid"]}"',
            "Content-Type": "application/octet-stream",
        }
        if lfs:  # the real Hub sends to another host here; the client reads these two headers either way
            headers |= {"X-Linked-Size": str(entry["size"]), "X-Linked-Etag": f'"{entry["sha256"]}"'}
        self._content(self.store.blobs / entry["sha256"], entry["size"], headers)

    def _content(self, blob: Path, size: int, headers: dict[str, str]) -> None:
        start, end, status = 0, size - 1, 200
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start, end = int(found[1]), min(int(found[2] or end), end)
            status = 206 if start <= end else 416
            headers["Content-Range"] = f"bytes {start}-{end}/{size}"
        wanted = max(0, end - start + 1)
        with blob.open("rb") as stream:
            stream.seek(start)
            content = b"" if self.command == "HEAD" else stream.read(wanted)
        self.reply(status, content, headers | {"Content-Length": str(wanted)})

    # -- writing --------------------------------------------------------------------------------------

    def preupload(self, kind: str, name: str, revision: str) -> None:
        repository = self.load(kind, name, write=True)
        head = repository["refs"].get(revision)
        if head is None:
            raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        tree, answers = repository["commits"][head]["tree"], []
        for file in self.json()["files"]:
            old = tree.get(file["path"])
            binary = b"\0" in base64.b64decode(file.get("sample", ""))
            large = file["size"] > LFS_LIMIT
            lfs = large or binary or any(fnmatch(file["path"].rsplit("/", 1)[-1], p) for p in LFS_NAMES)
            answer = {"path": file["path"], "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": False}
            answers.append(answer | {"oid": old and (old["sha256"] if old["lfs"] else old["oid"])})
        self.reply(200, {"files": answers})

    def lfs_batch(self, name: str, kind: str | None = None) -> None:
        self.load((kind or "models/")[:-2], name, write=True)
        wanted = self.json()
        objects = [self._lfs_object(each, wanted.get("transfers", [])) for each in wanted["objects"]]
        kind_of_answer = {"Content-Type": "application/vnd.git-lfs+json"}
        self.reply(200, {"transfer": "basic", "objects": objects}, kind_of_answer)

    def _lfs_object(self, wanted: dict[str, Any], transfers: list[str]) -> dict[str, Any]:
        answer: dict[str, Any] = {"oid": wanted["oid"], "size": wanted["size"]}
        if (self.store.blobs / wanted["oid"]).exists():  # without actions the client skips the upload
            return answer
        where = f"http://{self.headers.get('Host', '127.0.0.1')}/lfs/{wanted['oid']}"
        upload: dict[str, Any] = {"href": where}
        if "multipart" in transfers and wanted["size"] > 2 * PART:
            parts = range(1, -(-wanted["size"] // PART) + 1)
            header = {"chunk_size": str(PART), **{f"{part:05d}": f"{where}/{part}" for part in parts}}
            upload = {"href": f"{where}/complete", "header": header}
        return answer | {"actions": {"upload": upload, "verify": {"href": f"{where}/verify"}}}

    def lfs(self, oid: str, step: str | None = None) -> None:
        blob = self.store.blobs / oid
        if step and step.isdigit():
            (self.store.parts / f"{oid}.{step}").write_bytes(self.raw)
            self.reply(200, b"", {"ETag": f'"{sha1(self.raw)}"'})
            return
        if step == "verify":
            if not blob.exists() or blob.stat().st_size != self.json()["size"]:
                raise RefusedError(404, "Object not uploaded")
        else:
            content = self.raw if step is None else self._joined(oid)
            if hashlib.sha256(content).hexdigest() != oid:
                raise RefusedError(400, "sha256 mismatch")
            blob.write_bytes(content)
        self.ok()

    def _joined(self, oid: str) -> bytes:
        numbers = [part["partNumber"] for part in self.json()["parts"]]
        return b"".join((self.store.parts / f"{oid}.{number}").read_bytes() for number in numbers)

    def commit(self, kind: str, name: str, revision: str) -> None:
        self.load(kind, name, write=True)
        head, changes = self._changes()
        with self.store.lock:
            repository, request = self.store.get(kind, name), None
            if "create_pr" in self.query:
                number = 1 + sum(ref.startswith("refs/pr/") for ref in repository["refs"])
                repository["refs"][f"refs/pr/{number}"] = self.store.resolve(repository, revision)
                request = f"{self.location(kind, name)}/discussions/{number}"
                revision = f"refs/pr/{number}"
            elif revision not in repository["refs"]:
                raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
            title, parent = head.get("summary", ""), head.get("parentCommit")
            commit = self.store.commit(repository, revision, title, changes, parent)
        answer = {"success": True, "commitOid": commit, "hookOutput": "", "pullRequestUrl": request}
        self.reply(200, answer | {"commitUrl": f"{self.location(kind, name)}/commit/{commit}"})

    def _changes(self) -> tuple[dict[str, Any], list[tuple[str, bytes | str | None]]]:
        head: dict[str, Any] = {}
        changes: list[tuple[str, bytes | str | None]] = []
        for line in filter(bytes.strip, self.raw.split(b"\n")):
            change = json.loads(line)
            key, value = change["key"], change["value"]
            if key == "header":
                head = value
            elif key == "file":
                is_base64 = value.get("encoding") == "base64"
                content = base64.b64decode(value["content"]) if is_base64 else value["content"].encode()
                changes.append((value["path"], content))
            else:  # lfsFile, deletedFile, deletedFolder
                changes.append((value["path"], value["oid"] if key == "lfsFile" else None))
        return head, changes


_REPOSITORY = r"/api/(?P<kind>model|dataset|space)s/(?P<name>[^/]+/[^/]+)"
_REVISION = "(?P<revision>[^/]+)"  # arrives URL-quoted, so as one part of the path
ROUTES = [  # HTTP methods, path, method of Handler
    ("GET", "/api/whoami-v2", "whoami"),
    ("POST", "/api/validate-yaml", "validate_yaml"),
    ("GET HEAD", "/api/(telemetry/.*|agent-harnesses)", "ok"),
    ("POST", "/api/repos/create", "create"),
    ("GET", "/api/(?P<kind>model|dataset|space)s", "list"),
    ("GET", _REPOSITORY, "repo_info"),
    ("GET", f"{_REPOSITORY}/revision/{_REVISION}", "repo_info"),
    ("GET", f"{_REPOSITORY}/refs", "refs"),
    ("POST DELETE", f"{_REPOSITORY}/(?P<what>branch|tag)/(?P<ref>[^/]+)", "ref"),
    ("GET", f"{_REPOSITORY}/tree/{_REVISION}(/(?P<path>.+))?", "tree"),
    ("POST", f"{_REPOSITORY}/paths-info/{_REVISION}", "paths_info"),
    ("POST", f"{_REPOSITORY}/preupload/{_REVISION}", "preupload"),
    ("POST", f"{_REPOSITORY}/commit/{_REVISION}", "commit"),
    (
        "POST",
        r"/(?P<kind>datasets/|spaces/)?(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch",
        "lfs_batch",
    ),
    ("PUT POST", "/lfs/(?P<oid>[0-9a-f]{64})(/(?P<step>[0-9a-z]+))?", "lfs"),
    (
        "GET HEAD",
        rf"(/(?P<kind>datasets|spaces|models))?/(?P<name>[^/]+/[^/]+)/(resolve|raw)/{_REVISION}/(?P<path>.+)",
        "resolve",
    ),
]


def serve(root: Path) -> Hub:
    """Start a Hub over a folder in a thread."""
    server = Hub(root)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server

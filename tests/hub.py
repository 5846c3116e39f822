"""A hub to test against: a real HTTP server on 127.0.0.1 that speaks the part of the Hugging Face hub's protocol that
reading a dataset repository needs. Which revision has which files is given; anything else is refused as the hub does.

As a program it serves until it is ended, and prints its address: `python -m tests.hub FOLDER`, with files at
`FOLDER/<owner>/<name>/<revision>/<path>`.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import sys
import threading
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

Files = dict[str, bytes]


class Hub:
    """The server; `repositories` has the files of each revision by repository, `asked` the requests in order."""

    def __init__(self, repositories: dict[str, dict[str, Files]]) -> None:
        self.repositories = repositories
        self.asked: list[str] = []
        hub = self

        class Handler(_Handler):
            served = hub

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Hub

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.served.asked.append(f"{self.command} {unquote(url.path)}")
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        if parts[:2] == ["api", "datasets"] and len(parts) >= 4:
            self._api("/".join(parts[2:4]), parts[4:])
        elif parts[0] == "datasets" and len(parts) > 5 and parts[3] == "resolve":
            self._file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]))
        else:
            self._refuse("EntryNotFound")

    do_POST = do_HEAD = do_GET  # noqa: N815 (the names that http.server calls)

    def _files(self, repository: str, revision: str) -> Files | None:
        """The files of a revision, or None after saying that there is none."""
        revisions = self.served.repositories.get(repository)
        if revisions is None:
            self._refuse("RepoNotFound", 401)  # as the hub answers those who have not signed in
        elif revision not in revisions:
            self._refuse("RevisionNotFound")
        else:
            return revisions[revision]
        return None

    def _api(self, repository: str, rest: list[str]) -> None:
        verb, revision, *path = rest or ["revision", "main"]
        files = self._files(repository, revision)
        if files is None:
            return
        if verb == "revision":
            siblings = [{"rfilename": name} for name in files]
            self._json(
                {"_id": "0", "id": repository, "sha": revision, "siblings": siblings, "tags": [], "private": False}
            )
        elif verb == "paths-info":
            wanted = self._wanted()
            self._json([entry for entry in _entries(files) if entry["path"] in wanted])
        else:
            folder = "/".join(path)
            inside = [entry for entry in _entries(files) if not folder or entry["path"].startswith(f"{folder}/")]
            if not inside:
                self._refuse("EntryNotFound")
                return
            recursive = "recursive=true" in self.path.lower()
            depth = len(path) + 1
            self._json([entry for entry in inside if recursive or entry["path"].count("/") + 1 == depth])

    def _wanted(self) -> list[str]:
        if "json" in (self.headers.get("content-type") or ""):
            return list(json.loads(self.body)["paths"])
        return parse_qs(self.body.decode())["paths"]

    def _file(self, repository: str, revision: str, path: str) -> None:
        files = self._files(repository, revision)
        if files is None:
            return
        if path not in files:
            self._refuse("EntryNotFound", commit=revision)
            return
        content, status, headers = files[path], 200, {}
        if self.headers.get("range"):
            first, _, last = self.headers["range"].removeprefix("bytes=").partition("-")
            end = int(last or len(content) - 1)
            headers["content-range"] = f"bytes {first}-{end}/{len(content)}"
            content, status = content[int(first) : end + 1], 206
        headers |= {"etag": f'"{_oid(files[path])}"', "x-repo-commit": revision, "accept-ranges": "bytes"}
        self._send(status, content, {"content-type": "application/octet-stream", **headers})

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"content-type": "application/json"})

    def _refuse(self, code: str, status: int = 404, commit: str = "") -> None:
        headers = {"x-error-code": code, "x-error-message": code, "content-type": "application/json"}
        if commit:
            headers["x-repo-commit"] = commit
        self._send(status, json.dumps({"error": code}).encode(), headers)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def _oid(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _entries(files: Files) -> list[dict[str, Any]]:
    """Files and folders, as the hub lists them."""
    folders = sorted({"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)})
    made = [{"type": "directory", "path": name, "oid": _oid(name.encode()), "size": 0} for name in folders]
    return made + [
        {"type": "file", "path": name, "oid": _oid(content), "size": len(content)} for name, content in files.items()
    ]


def read_repositories(folder: Path) -> dict[str, dict[str, Files]]:
    """Repositories that lie in a folder as `<owner>/<name>/<revision>/<path>`."""
    found: dict[str, dict[str, Files]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        owner, name, revision, *rest = path.relative_to(folder).parts
        found.setdefault(f"{owner}/{name}", {}).setdefault(revision, {})["/".join(rest)] = path.read_bytes()
    return found


if __name__ == "__main__":
    with Hub(read_repositories(Path(sys.argv[1]))) as hub:
        print(hub.url, flush=True)
        threading.Event().wait()

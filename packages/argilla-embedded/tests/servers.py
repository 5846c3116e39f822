"""Servers as people start them: `argilla-embedded serve`, in the environment that has Argilla's server.

That is the environment of the tests, or the interpreter that ARGILLA_EMBEDDED_PYTHON names.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, CompletedProcess, Popen
from typing import Any

import httpx
import pytest

PACKAGE = Path(__file__).parents[1]
STOP_SECONDS = 60
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading certificates takes longer than a request


def interpreter() -> str:
    if python := os.environ.get("ARGILLA_EMBEDDED_PYTHON"):
        return python
    if importlib.util.find_spec("argilla_server") is None:
        pytest.skip("Argilla's server is not installed here: pip install '.[test]', or name a Python that has it")
    return sys.executable


@dataclass
class Server:
    process: Popen[str]
    client: httpx.Client
    lines: list[str]  #: what it said at its start
    home: Path

    @property
    def url(self) -> str:
        return str(self.client.base_url).rstrip("/")

    @property
    def owner(self) -> dict[str, str]:
        return dict(json.loads((self.home / "credentials.json").read_text(encoding="utf-8"))["owner"])

    def call(self, method: str, path: str, body: Any = None, key: str = "", **more: Any) -> httpx.Response:
        """A call of the API, by the owner unless a key is given."""
        headers = {"X-Argilla-Api-Key": key or self.owner["api_key"]}
        return self.client.request(method, f"/api/v1/{path}", json=body, headers=headers, **more)

    def done(self, method: str, path: str, body: Any = None, key: str = "", **more: Any) -> Any:
        """The JSON of a call that has to succeed."""
        answer = self.call(method, path, body, key, **more)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    def stop(self) -> int:
        """Ctrl-C; the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_SECONDS)


def command(home: Path, *options: str, program: str = "") -> tuple[list[str], dict[str, str]]:
    """What starts a server, and its environment; `program` is one that is installed, else it is these files."""
    variables = {"PATH": os.environ["PATH"]}
    if not program:
        folders = (PACKAGE, home.parent) if "--plugin" in options else (PACKAGE,)
        variables["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    words = [program] if program else [interpreter(), "-m", "argilla_embedded"]
    return [*words, "serve", "--home", str(home), "--port", "0", *options], variables


@contextlib.contextmanager
def serving(home: Path, *options: str, program: str = "") -> Iterator[Server]:
    """A server until the end of the block."""
    words, variables = command(home, *options, program=program)
    with (home.parent / f"{home.name}.log").open("a", encoding="utf-8") as log:
        process = Popen(words, env=variables, stdin=DEVNULL, stdout=PIPE, stderr=log, text=True)
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:  # it ends with the process, and so does a server that does not start
        lines.append(line.rstrip("\n"))
        if "credentials.json" in line:
            break
    address = re.match(r"Argilla runs at (\S+)", lines[0]) if lines else None
    assert address, (home.parent / f"{home.name}.log").read_text(encoding="utf-8")[-2000:]
    rest = threading.Thread(target=process.stdout.read)  # a full pipe would stop the server
    rest.start()
    fresh = httpx.Limits(max_keepalive_connections=0)
    try:
        with httpx.Client(base_url=address[1], trust_env=False, timeout=60.0, verify=NO_TLS, limits=fresh) as client:
            yield Server(process, client, lines, home)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
        rest.join()
        process.stdout.close()


def ended(words: list[str], variables: dict[str, str]) -> CompletedProcess[str]:
    with Popen(words, env=variables, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, text=True) as process:
        out, err = process.communicate(timeout=120)
    return CompletedProcess(words, process.returncode, out, err)


def refused(home: Path, *options: str, **more: str) -> tuple[int, str]:
    """The status and the one line of a server that does not start; `more` are variables."""
    words, variables = command(home, *options)
    done = ended(words, variables | more)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr

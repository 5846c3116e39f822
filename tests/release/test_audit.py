"""`make audit`: the real pip-audit against a source of advisories of our own, which answers as osv.dev does."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from plumbline.errors import ServiceError
from plumbline.study import ROOT

PROBE = ("starlette", "0.49.3")
#: What the source answers: the advisories' names and the versions that mend them, or a status.
Answers = dict[tuple[str, str], tuple[list[str], list[str]] | int]


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    """constraints/audit.py, with its environment."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / "constraints" / "audit.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["audit"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    try:
        module.tool()
    except ServiceError as error:
        pytest.skip(str(error))
    return module


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """The answers of the source that pip-audit is set to; what it has no answer for is not at fault."""
    answers: Answers = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name, version = query["package"]["name"], query["version"]
            answer = answers.get((name, version))
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            self.wfile.write(b"{}" if not isinstance(answer, tuple) else advisory(name, *answer))

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_AUDIT_VULNERABILITY_SERVICE", "osv")
        monkeypatch.setenv("PIP_AUDIT_OSV_URL", f"http://127.0.0.1:{server.server_port}/v1/query")
        yield answers
        server.shutdown()


def advisory(package: str, names: list[str], mended: list[str]) -> bytes:
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, *({"fixed": version} for version in mended)]}]
    affected = [{"package": {"name": package, "ecosystem": "PyPI"}, "ranges": ranges}]
    fault: dict[str, Any] = {"id": names[0], "aliases": names[1:], "summary": "a fault", "affected": affected}
    return json.dumps({"vulns": [fault]}).encode()


@pytest.fixture
def pins(audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of constraints with two files, which the audit reads in the place of ours."""
    (tmp_path / "platform.txt").write_text("torch==2.13.0\nnumpy==2.4.6\n", encoding="utf-8")
    (tmp_path / "server.txt").write_text("urllib3==1.26.20\n", encoding="utf-8")
    passes = '[[pass]]\npackage = "torch"\nadvisory = "CVE-2025-3000"\nreason = "not reached"\n'
    (tmp_path / "advisories.toml").write_text(passes, encoding="utf-8")
    monkeypatch.setattr(audit, "CONSTRAINTS", tmp_path)
    return tmp_path


def lines_of(audit: ModuleType, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    status = audit.main()
    printed = capsys.readouterr()
    return status, (printed.out + printed.err).splitlines()


NOTHING = "audit: no pin was checked, because no source of advisories answers (osv)"


@pytest.mark.parametrize("answer", [None, 404, 500])
def test_a_source_that_does_not_know_a_known_fault_is_none(
    audit: ModuleType, pins: Path, source: Answers, answer: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if answer:
        source[PROBE] = answer
    assert lines_of(audit, capsys) == (0, [NOTHING])


def test_without_a_source_it_passes_and_says_so(
    audit: ModuleType, pins: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_AUDIT_VULNERABILITY_SERVICE", "osv")
    monkeypatch.setenv("PIP_AUDIT_OSV_URL", "http://127.0.0.1:9/v1/query")  # nothing listens there
    assert lines_of(audit, capsys) == (0, [NOTHING])


def test_every_pin_of_every_file_is_looked_up(
    audit: ModuleType, source: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    source[PROBE] = (["PYSEC-1"], [])
    names = [
        line
        for file in (ROOT / "constraints").glob("*.txt")
        for line in file.read_text("utf-8").splitlines()
        if line[0].isalnum()
    ]
    status, lines = lines_of(audit, capsys)
    assert (status, lines[-1]) == (0, f"audit: {len(names)} pins checked at osv; findings: 0")


def test_nothing_here_scripts_code_with_torch() -> None:
    """CVE-2025-3000 is reached by giving torch.jit.script code; `constraints/advisories.toml` lets it pass."""
    folders = ("annotation", "evaluation", "generation", "plumbline", "streamlit_app")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = {getattr(node, "attr", ""), getattr(node, "module", "") or "", getattr(node, "name", "")}
            assert not names & {"jit", "torch.jit", "torch.compile"}, file

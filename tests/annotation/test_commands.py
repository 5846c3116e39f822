"""`plumbline serve` as a person meets it, and the lines that bad input gets."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from annotation import server
from plumbline.study import ROOT
from tests import forks
from tests.commands import here
from tests.conftest import DEMO
from tests.ports import free_port


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("ARGILLA_")}


@pytest.fixture(autouse=True)
def no_server_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ARGILLA_API_URL", "ARGILLA_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_no_letters_are_written_that_name_a_server_which_ends_with_the_command(tmp_path: Path) -> None:
    home = tmp_path / "it's here"
    ended = here("users", "invite", "ada", "--study", str(DEMO), "--links", "--data", str(home))
    assert ended.returncode == 2 and not home.exists()
    serve = shlex.split(ended.stderr.split("`")[1])
    assert serve == ["plumbline", "serve", "--study", str(DEMO), "--data", str(home)]


ASKING = """
import http.client, json, sys
def status(host):
    asking = http.client.HTTPConnection(json.load(open(sys.argv[1]))["url"].removeprefix("http://"))
    asking.request("GET", "/api/v1/version", headers={"Host": host})
    return asking.getresponse().status
sys.exit(7 if status("argilla.example.org") == 200 != status("other.example.org") else 1)
"""


def test_serve_prints_passwords_once_and_ends_cleanly_by_a_signal_or_with_a_command(tmp_path: Path) -> None:
    """The first time it is started as a person does; then its status is the command's, and it answers to its names."""
    home = server.Home(tmp_path / "home")
    serve = ["serve", "--study", str(DEMO), "--data", str(home.path), "--port", str(free_port())]
    command = [sys.executable, "-u", "-m", "plumbline", *serve]
    with forks.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [next(process.stdout)]
            while not lines[-1].startswith("Ready"):
                lines.append(next(process.stdout))
            assert home.state.exists()
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=120) == 130
        finally:
            process.kill()
    assert not home.state.exists()
    said, file = "".join(lines), home.credentials_file
    assert "Argilla runs at http://127.0.0.1:" in said and "/work\n" in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = json.loads(file.read_text(encoding="utf-8"))
    users = [kept["owner"], *kept["annotators"]]
    assert [user["username"] for user in users] == ["owner", "rater-1", "rater-2", "rater-3", "rater-4"]
    for user in users:
        assert said.count(user["password"]) == 1
        assert user["api_key"] not in said

    asks = shlex.join([sys.executable, "-c", ASKING, str(home.state)])
    again = here(*serve, "--address", "https://argilla.example.org", "--during", asks)
    assert again.returncode == 7 and not home.state.exists()
    assert not [user for user in users if user["password"] in again.stdout]

"""`plumbline serve` as a person meets it, and the lines that bad input gets."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from annotation import server
from plumbline import __main__, cli
from plumbline.study import ROOT
from tests import forks
from tests.conftest import DEMO
from tests.ports import free_port


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("ARGILLA_")}


def annotation(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-u", "-m", "plumbline", *words]
    return forks.run(command, cwd=ROOT, env=environment(), timeout=120)


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    returncode: int
    stderr: str


Command = Callable[..., Ended]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`plumbline WORDS` in this process, which has loaded what it needs."""

    def run(*words: str, **changes: str) -> Ended:
        for name in ("ARGILLA_API_URL", "ARGILLA_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in changes.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            cli.run(lambda: __main__.run(words))
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, capsys.readouterr().err)

    return run


def test_no_letters_are_written_that_name_a_server_which_ends_with_the_command(here: Command, tmp_path: Path) -> None:
    home = tmp_path / "it's here"
    ended = here("users", "invite", "ada", "--study", str(DEMO), "--links", "--data", str(home))
    assert ended.returncode == 2 and not home.exists()
    serve = shlex.split(ended.stderr.split("`")[1])
    assert serve == ["plumbline", "serve", "--study", str(DEMO), "--data", str(home)]


class Signalling(io.StringIO):
    """What a command says; once it is ready a signal reaches this process, which is the command's."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.number = number

    def write(self, words: str) -> int:
        written = super().write(words)
        if words.startswith("Ready"):
            os.kill(os.getpid(), self.number)
        return written


def serving(home: Path) -> list[str]:
    """`serve` for the sample study, its server on a home of the test's own."""
    return ["serve", "--study", str(DEMO), "--data", str(home), "--port", str(free_port())]


def served(here: Command, home: Path, number: signal.Signals) -> str:
    """What `serve` says in this process until a signal ends it; its server is forked (`tests.forks`)."""
    with contextlib.redirect_stdout(Signalling(number)) as said:
        assert here(*serving(home)).returncode == 130
    assert "Ready" in said.getvalue()
    return said.getvalue()


def test_serve_prints_passwords_once_and_ends_cleanly(here: Command, tmp_path: Path) -> None:
    """The first time it is started as a person does."""
    home = server.Home(tmp_path / "home")
    command = [sys.executable, "-u", "-m", "plumbline", *serving(home.path)]
    with forks.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [next(process.stdout)]
            while not lines[-1].startswith("Ready"):
                lines.append(next(process.stdout))
            assert home.state.exists()
            process.send_signal(signal.SIGINT)
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
    again = served(here, home.path, signal.SIGTERM)
    assert not [user for user in users if user["password"] in again]
    assert not home.state.exists()


@pytest.fixture(scope="module")
def used_home(tmp_path_factory: pytest.TempPathFactory) -> server.Home:
    """A home of which no account is shared by tests; only the first start on it makes the database."""
    return server.Home(tmp_path_factory.mktemp("home"))


ASKING = """
import http.client, json, sys
def status(host):
    asking = http.client.HTTPConnection(json.load(open(sys.argv[1]))["url"].removeprefix("http://"))
    asking.request("GET", "/api/v1/version", headers={"Host": host})
    return asking.getresponse().status
sys.exit(7 if status("argilla.example.org") == 200 != status("other.example.org") else 1)
"""


def test_serve_during_a_command_gives_its_exit_status_and_answers_by_its_addresses(
    here: Command, used_home: server.Home
) -> None:
    asks = shlex.join([sys.executable, "-c", ASKING, str(used_home.state)])
    where = ("--data", str(used_home.path), "--address", "https://argilla.example.org")
    assert here("serve", *where, "--during", asks).returncode == 7

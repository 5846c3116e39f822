"""`plumbline users`: annotators on the home's own server and on one elsewhere."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.client import Argilla, guard
from annotation.server.home import call
from annotation.server.plugin.plumbline_argilla.rate import LINK
from plumbline import __main__
from plumbline.errors import DataError, ServiceError, StudyError

Run = Callable[..., str]


@pytest.fixture
def run(home: server.Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> str:
        capsys.readouterr()
        assert __main__.run([*words, "--data", str(home.path)]) == 0
        return capsys.readouterr().out

    return run


def connection(argilla: Argilla) -> server.Connection:
    assert argilla.connection is not None
    return argilla.connection


def signs_in(argilla: Argilla, username: str, password: str) -> bool:
    form = {"username": username, "password": password}
    return httpx.post(f"{argilla.url}/api/v1/token", data=form, trust_env=False).status_code == 201


def password_in(said: str, name: str) -> str:
    found = re.search(rf"{name}, password (\S+) ", said)
    assert found is not None, said
    return found[1]


def test_a_life_of_an_account(argilla: Argilla, home: server.Home, run: Run) -> None:
    said = run("users", "add", "marie", "zoë.k", "--languages", "en,deu")
    first = password_in(said, "marie")
    assert signs_in(argilla, "marie", first) and signs_in(argilla, "zoë.k", password_in(said, "zoë.k"))
    assert stat.S_IMODE(home.languages_file.stat().st_mode) == 0o600
    again = run("users", "add", "marie", "--languages", "fra")
    assert "has an account (languages now: fr)" in again and first not in again
    listed = run("users", "list")
    assert first not in listed
    assert re.search(r"^marie +annotator +fr +0$", listed, re.MULTILINE)
    assert re.search(r"^zoë\.k +annotator +en,de +0$", listed, re.MULTILINE)
    second = password_in(run("users", "reset", "marie"), "marie")
    assert not signs_in(argilla, "marie", first) and signs_in(argilla, "marie", second)
    known = server.credentials(home).find("marie")
    assert known is not None and known.password == second
    assert "0 answers" in run("users", "remove", "marie")
    assert not signs_in(argilla, "marie", second) and server.credentials(home).find("marie") is None
    assert "marie" not in run("users", "list") and "marie" not in home.languages_file.read_text(encoding="utf-8")


def test_an_account_with_answers_is_removed_only_by_force(argilla: Argilla, home: server.Home) -> None:
    reached = connection(argilla)
    accounts.add(reached, home, ["busy"])
    workspace = argilla.request("POST", "/workspaces", json={"name": "busy-space"})
    dataset = argilla.request("POST", "/datasets", json={"name": "busy", "workspace_id": workspace["id"]})
    path = f"/datasets/{dataset['id']}"
    field = {"name": "t", "title": "t", "required": True, "settings": {"type": "text"}}
    argilla.request("POST", f"{path}/fields", json=field)
    rating = {"type": "rating", "options": [{"value": 1}, {"value": 2}]}
    argilla.request("POST", f"{path}/questions", json={"name": "q", "title": "q", "required": True, "settings": rating})
    argilla.request("PUT", f"{path}/publish")
    argilla.request("POST", f"{path}/records/bulk", json={"items": [{"fields": {"t": str(i)}} for i in range(2)]})
    user = accounts.account_of(reached, "busy")
    argilla.request("POST", f"/workspaces/{workspace['id']}/users", json={"user_id": user["id"]})
    for status, record in zip(("submitted", "draft"), argilla.records(dataset["id"]), strict=True):
        body = {"status": status, "values": {"q": {"value": 1}}}
        argilla.request("POST", f"/records/{record['id']}/responses", api_key=user["api_key"], json=body)
    with pytest.raises(DataError, match="has 2 answers, which Argilla deletes"):
        accounts.remove(reached, home, "busy")
    assert {one.username: one.answers for one in accounts.accounts(reached, home)}["busy"] == 2
    assert accounts.remove(reached, home, "busy", force=True) == 2
    assert argilla.request("GET", f"{path}/progress")["total"] == 2


def test_the_same_commands_on_an_argilla_elsewhere(argilla: Argilla, home: server.Home) -> None:
    elsewhere = server.Connection(argilla.url, connection(argilla).api_key)  # as ARGILLA_API_URL gives it
    other = server.Home(home.path / "no-server-here")
    (password,) = accounts.add(elsewhere, other, ["remote"], ["en"]).values()
    assert password is not None and signs_in(argilla, "remote", password)
    assert signs_in(argilla, "remote", accounts.reset(elsewhere, "remote"))
    assert accounts.languages(elsewhere, other) == {"remote": ("en",)} and not accounts.languages(elsewhere, home)
    with pytest.raises(StudyError, match="only the server of `plumbline serve` has links"):
        accounts.revoke_link(elsewhere, "remote")
    assert accounts.remove(elsewhere, other, "remote") == 0
    assert not other.credentials_file.exists() and not other.database.exists()
    with pytest.raises(ServiceError, match="refused GET users"):
        call(server.Connection(argilla.url, "wrong"), "GET", "users")


def test_a_session_that_a_link_opened_ends_with_the_role_that_it_gave_and_with_the_link(
    argilla: Argilla, home: server.Home
) -> None:
    reached = connection(argilla)
    accounts.add(reached, home, ["rising"])
    user = accounts.account_of(reached, "rising")
    with httpx.Client(base_url=argilla.url, trust_env=False) as browser:

        def enter(token: str = "") -> httpx.Response:
            browser.get(LINK)
            return browser.post(LINK, data={"token": token} if token else {})

        def status(session: str) -> int:
            return browser.get("/api/v1/me", headers={"Authorization": f"Bearer {session}"}).status_code

        link = accounts.new_link(reached, "rising")
        assert link is not None
        session = enter(link.token).json()["access_token"]
        assert accounts.new_link(reached, "rising") is None and status(session) == 200
        for role in ("owner", "admin"):
            argilla.request("PATCH", f"/users/{user['id']}", json={"role": role})
            assert status(session) == 401 and enter().status_code == 410
        argilla.request("PATCH", f"/users/{user['id']}", json={"role": "annotator"})
        session = enter().json()["access_token"]
        assert status(session) == 200
        argilla.request("PATCH", f"/users/{user['id']}", json={"role": "admin"})
        assert accounts.revoke_link(reached, "rising") and not accounts.revoke_link(reached, "rising")
        argilla.request("PATCH", f"/users/{user['id']}", json={"role": "annotator"})
        assert status(session) == 401 and enter().status_code == 410
        link = accounts.new_link(reached, "rising")
        assert link is not None
        session = enter(link.token).json()["access_token"]
        assert status(session) == 200 and accounts.new_link(reached, "rising", again=True) is not None
        assert status(session) == 401


def test_a_server_that_is_silent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ARGILLA_API_KEY", "an.owner")
    monkeypatch.setattr(httpx.Client, "request", Mock(side_effect=httpx.ReadTimeout("")))  # errors may have no text
    trouble = accounts.answered_now("study", server.Home(tmp_path), ["texts"]).trouble
    assert trouble == "http://127.0.0.1:9: Argilla does not answer (ReadTimeout); is it running?"


def test_well_known_keys_are_refused_or_warned_of_only_away_from_this_machine(
    argilla: Argilla, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ServiceError, match="is the key that Argilla's guides print"):
        guard("https://argilla.example.org", "argilla.apikey")
    key = connection(argilla).api_key
    guard(argilla.url, key)
    away = argilla.url.replace("127.0.0.1", "0.0.0.0")  # noqa: S104  # this machine, but not by its loopback name
    guard(away, key)
    assert capsys.readouterr().err == ""
    other = server.ensure_user(connection(argilla), "known-to-all", first_name="K").api_key
    monkeypatch.setattr("annotation.argilla.client.WELL_KNOWN_KEYS", (other,))
    guard(away, key)
    assert "lets everyone in" in capsys.readouterr().err

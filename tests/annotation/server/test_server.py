"""The real Argilla server's life: starting, accounts, secrets, simultaneous raters, being killed, ending."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from annotation.server import Connection, Home, credentials, ensure_user, process, running
from annotation.server.home import prepare
from argilla_embedded import workers
from plumbline.errors import ServiceError
from tests.annotation.argilla_site import Site, enter, eventually
from tests.ports import free_port


def sign_in(connection: Connection, username: str, password: str) -> httpx.Response:
    form = {"username": username, "password": password}
    return httpx.post(f"{connection.url}/api/v1/token", data=form, trust_env=False)


def test_signing_in_takes_the_generated_password_and_no_well_known_one(site: Site) -> None:
    for account in (site.owner.user, site.raters[0].user):
        token = sign_in(site.connection, account.username, account.password).json()["access_token"]
        headers = {"Authorization": f"Bearer {token}"}
        me = httpx.get(f"{site.connection.url}/api/v1/me", headers=headers, trust_env=False)
        assert me.json()["username"] == account.username
    for username, password in (("argilla", "12345678"), ("argilla", "1234"), ("owner", "12345678"), ("ada", "wrong")):
        assert sign_in(site.connection, username, password).status_code == 401
    for key in ("argilla.apikey", "owner.apikey"):
        headers = {"X-Argilla-Api-Key": key}
        assert httpx.get(f"{site.connection.url}/api/v1/me", headers=headers, trust_env=False).status_code == 401
    body = {"username": "weak", "first_name": "W", "password": "12345678"}
    assert "well known" in site.owner("POST", "users", body, expect=422)["detail"]


def test_the_pages_are_served_and_fetch_nothing_from_outside(site: Site) -> None:
    with httpx.Client(base_url=site.connection.url, trust_env=False) as client:
        page = client.get("/sign-in")
        assert page.status_code == 200 and "<title>Argilla</title>" in page.text
        sheets = {part.split('"')[0] for part in page.text.split('href="') if ".css" in part.split('"')[0]}
        assert sheets
        for sheet in sheets:
            assert "fonts.googleapis.com" not in client.get(sheet).text
        foreign = client.get("/api/v1/version", headers={"Origin": "https://elsewhere.example"})
        assert "access-control-allow-origin" not in foreign.headers
        own = client.get("/api/v1/version", headers={"Origin": site.connection.url})
        assert own.headers["access-control-allow-origin"] == site.connection.url


def test_strangers_learn_nothing_and_cannot_slow_the_server(site: Site) -> None:
    with httpx.Client(base_url=site.connection.url, trust_env=False) as client:
        assert client.get("/api/v1/status").json() == client.get("/api/v1/version").json() == {"version": "2.8.0"}
        preflight = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "GET"}
        refused = client.options("/api/v1/me", headers=preflight)
        assert refused.status_code == 400 and "access-control-allow-origin" not in refused.headers
        page = client.get("/sign-in").content
        assert client.get("/sign-in", headers={"Range": "bytes=0-9"}).status_code in (200, 206)
        many = client.get("/sign-in", headers={"Range": "bytes=" + ",".join(f"{i}-{i}" for i in range(9000))})
        assert many.status_code == 200 and many.content == page  # not taken apart: CVE-2025-62727


def test_only_the_user_can_read_the_files_and_no_secret_is_in_the_log(site: Site) -> None:
    assert stat.S_IMODE(site.home.path.stat().st_mode) == 0o700
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in site.home.path.iterdir()}
    assert {"argilla.db", "credentials.json", "secret", "server.log"} <= {path.name for path in modes}
    assert {path.name: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
    secrets = [one for user in (site.owner.user, site.raters[0].user) for one in (user.password, user.api_key)]
    site.owner("POST", "users", {"username": "x", "first_name": "", "password": secrets[0]}, expect=422)
    told = site.home.log.read_text(encoding="utf-8")
    assert not [one for one in [*secrets, site.home.secret_file.read_text(encoding="utf-8")] if one in told]
    assert secrets[0] not in repr(site.owner.user) + repr(site.connection) + repr(credentials(site.home))


def test_accounts_are_made_once_and_forgotten_ones_get_a_new_password(site: Site) -> None:
    user = ensure_user(site.connection, "linus", "Linus")
    assert ensure_user(site.connection, "linus", "Linus") == user
    content = json.loads(site.home.credentials_file.read_text(encoding="utf-8"))
    content["annotators"] = [one for one in content["annotators"] if one["username"] != "linus"]
    site.home.credentials_file.write_text(json.dumps(content), encoding="utf-8")
    again = ensure_user(site.connection, "linus", "Linus")
    assert again.api_key == user.api_key and again.password != user.password
    assert sign_in(site.connection, "linus", user.password).status_code == 401
    assert sign_in(site.connection, "linus", again.password).status_code == 201
    with pytest.raises(ServiceError, match="role annotator"):
        ensure_user(site.connection, "linus", "Linus", role="admin")
    with pytest.raises(ServiceError, match="401"):
        ensure_user(Connection(site.connection.url, "argilla.apikey", site.home), "new", "New")


def test_a_killed_servers_restart_keeps_data_secret_and_users(started_servers: None, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with running(home) as connection:
        first = enter(connection)
        campaign = first.publish("kill", records=2, enough=1)
        token = sign_in(connection, "ada", first.raters[0].user.password).json()["access_token"]
        first.raters[0].rate(campaign, "p0", 4)
        pid = json.loads(home.state.read_text(encoding="utf-8"))["pid"]
        assert_no_secret_is_in_the_process_list(pid, first)
        os.kill(pid, signal.SIGKILL)
    with running(home) as connection:
        second = enter(connection)
        assert [rater.user for rater in second.raters] == [rater.user for rater in first.raters]
        me = httpx.get(f"{connection.url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        assert me.json()["username"] == "ada"
        assert second.statuses(campaign) == {"p0": "completed", "p1": "pending"}
    assert not home.state.exists() and not (home.path / "tmp").exists()


def test_a_server_to_stay_waits_for_the_end_of_a_commands_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, said = Home(tmp_path / "home"), list[str]()
    prepare(home)

    def refuse(*_: object) -> None:
        raise ServiceError("started")

    def run() -> None:
        try:
            process.serve(home, progress=said.append, port=free_port())
        except ServiceError as error:
            said.append(str(error))

    monkeypatch.setattr(process, "ensure_environment", lambda _: Path("python"))
    monkeypatch.setattr(process, "start", refuse)
    with home.command_lock.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        thread = threading.Thread(target=run)
        thread.start()
        assert eventually(lambda: len(said) == 1) and "started" not in said
    thread.join(timeout=30)
    assert said[1:] == ["started"]


def assert_no_secret_is_in_the_process_list(pid: int, site: Site) -> None:
    secrets = [one for user in (site.owner.user, site.raters[0].user) for one in (user.password, user.api_key)]
    secrets.append(site.home.secret_file.read_text(encoding="utf-8"))
    for name in ("cmdline", "environ"):
        seen = Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8")
        assert seen and not [one for one in secrets if one in seen]


def test_a_look_that_fails_ends_the_server_and_leaves_no_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server in one process, whose thread would else end alone: nobody would hear that standard input closes."""
    server, (ending, alive) = SimpleNamespace(should_exit=False), os.pipe()
    monkeypatch.setattr(workers, "LOOK_SECONDS", 0.0)
    with pytest.raises(ZeroDivisionError):
        workers.stop_at_the_end(server, ending, lambda: 1 // 0, [])
    assert server.should_exit
    os.close(ending)
    os.close(alive)

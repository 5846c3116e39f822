"""The command: first start, further starts, refusals of one line, and its end."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

from servers import STOP_SECONDS, refused, serving


def test_a_home_is_made_once_and_its_password_shown_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as server:
        owner = server.owner
        assert owner["password"] in server.lines[1] and "shown this once" in server.lines[1]
        form = {"username": owner["username"], "password": owner["password"]}
        signed_in = server.client.post("/api/v1/token", data=form)
        bearer = {"Authorization": f"Bearer {signed_in.json()['access_token']}"}
        me = server.client.get("/api/v1/me", headers=bearer)
        assert me.json()["role"] == "owner"
        assert "<title>Argilla</title>" in server.client.get("/sign-in").text
        status, words = refused(home)
        assert status == 3 and "another server runs on this folder" in words
        for file in ("credentials.json", "secret", "argilla.db"):
            assert stat.S_IMODE((home / file).stat().st_mode) == 0o600
        assert server.stop() in (0, 130)
    with serving(home) as server:
        assert owner["password"] not in "".join(server.lines)
        again = server.client.get("/api/v1/me", headers=bearer)
        assert again.status_code == 200  # a restart signs nobody out
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(STOP_SECONDS) in (0, 130)
    assert not (home / "argilla.db-wal").exists()


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for home, options, words in (
        (tmp_path / "file", (), "not usable as the server's folder"),
        (tmp_path / "one", ("--plugin", "nothing_here:install"), "--plugin nothing_here:install: cannot be loaded"),
        (tmp_path / "two", ("--plugin", "nothing"), "write it as module:function"),
        (tmp_path / "three", ("--database-url", "mysql://x"), "postgresql://user@host/database"),
        (tmp_path / "hidden", ("--database-url", "postgresql://user:secret@host/database"), "has a password"),
        (tmp_path / "four", ("--workers", "2"), "--workers 2: SQLite has one writer"),
        (tmp_path / "five", ("--host", "192.0.2.1"), "cannot be used"),
    ):
        status, said = refused(home, *options)
        assert status == 1 and said.startswith("argilla-embedded: error: ") and words in said


def test_a_password_is_read_from_a_variable_and_never_repeated(tmp_path: Path) -> None:
    home, address = tmp_path / "home", "postgresql://user:geheim@127.0.0.1:9/database"
    status, said = refused(home, ARGILLA_EMBEDDED_DATABASE_URL=address)  # nobody listens there
    assert status == 1 and "127.0.0.1" in said and "geheim" not in said
    file = home / "database-url"
    assert file.read_text(encoding="utf-8") == address.replace("://", "+asyncpg://") + "\n"
    assert file.stat().st_mode & 0o777 == 0o600
    for options, variables in (
        (("--database-url", address), {}),
        (("--database-url", "postgresql://user:geh/geheim@h/d"), {}),
        (("--database-url", "postgresql://h/d?user=u&password=geheim"), {}),
        ((), {"ARGILLA_EMBEDDED_DATABASE_URL": "mysql://user:geheim@h/d"}),
    ):
        status, said = refused(tmp_path / "other", *options, **variables)
        assert status == 1 and "ARGILLA_EMBEDDED_DATABASE_URL" in said and "geheim" not in said

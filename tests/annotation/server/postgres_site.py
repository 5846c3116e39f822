"""A private PostgreSQL cluster for tests: Debian's programs, a socket in a temporary folder, no port on the network."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "p%@ss:w/rd x"  # what has to be quoted in an address
DATABASE, USER = "argilla", "argilla"


def programs() -> Path | None:
    """The folder of Debian's newest PostgreSQL server, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[4]))
    return found[-1].parent if found else None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address, with its password, of an empty database; skipped where there is no PostgreSQL, never in CI."""
    folder = programs()
    if folder is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have PostgreSQL: see the Makefile's target `postgres`")
        pytest.skip("no PostgreSQL: sudo apt-get install postgresql")
    with cluster(folder) as address:
        yield address


@contextlib.contextmanager
def cluster(folder: Path, durable: bool = False) -> Iterator[str]:
    """A cluster made by the programs in `folder`, for as long as it is used; the address of an empty database.

    A durable one writes to the disk at each commit, as PostgreSQL does; tests do not wait for that.
    """
    # A short path: a socket's name has at most 107 bytes. Its folder is for the server's user, which root is not.
    place = Path(tempfile.mkdtemp(prefix="plumbline-pg-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(place, account.pw_uid, account.pw_gid)
        as_user = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]

    def run(name: str, *words: str, **variables: str) -> None:
        done = subprocess.run([*as_user, str(folder / name), *words], cwd=place, check=False, capture_output=True,
                              text=True, env={**os.environ, **variables})  # fmt: skip
        assert done.returncode == 0, (name, done.stdout, done.stderr)

    secret = place / "password"
    secret.write_text(PASSWORD + "\n", encoding="utf-8")
    secret.chmod(0o644)
    data = place / "data"
    run("initdb", "--pgdata", str(data), "--username", USER, "--auth", "scram-sha-256", "--pwfile", str(secret),
        "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")  # fmt: skip
    options = f"-c listen_addresses='' -c unix_socket_directories={place}{'' if durable else ' -c fsync=off'}"
    run("pg_ctl", "start", "--wait", "--silent", "--pgdata", str(data), "--log", str(place / "log"),
        "--options", options)  # fmt: skip
    try:
        run("createdb", "--host", str(place), "--username", USER, DATABASE, PGPASSWORD=PASSWORD)
        yield f"postgresql+asyncpg://{USER}:{quote(PASSWORD, safe='')}@/{DATABASE}?host={place}"
    finally:
        run("pg_ctl", "stop", "--mode", "immediate", "--silent", "--pgdata", str(data))
        shutil.rmtree(place)

"""The command: first start, further starts, refusals of one line, its end, its plugins, and where it is installed."""

from __future__ import annotations

import itertools
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
from queue_site import dataset, person, queue
from servers import PACKAGE, STOP_SECONDS, interpreter, refused, serving


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


PLUGIN = """
from starlette.responses import PlainTextResponse
from starlette.routing import Route

def install(setup):
    async def hello(request):
        return PlainTextResponse(f"hello, {setup.switches.hardened}, {len(setup.secret) > 20}")

    async def answered(request):
        return PlainTextResponse("by the plugin")

    setup.app.router.routes.insert(0, Route("/hello", hello))
    setup.api.router.routes.insert(0, Route("/records/{record}/responses", answered, methods=["POST"]))
    setup.api.add_api_route("/also-here", lambda: {"is": "here"})
    (setup.pages / "more.txt").write_text("one more page", encoding="utf-8")
    setup.host_names.append(lambda: {"more.example"})
    setup.grouping = lambda metadata: (lambda record, _: ("1" if int(record, 16) % 2 else "2") * 32)
"""


def test_a_plugin_adds_pages_routes_names_and_groups(tmp_path: Path) -> None:
    (tmp_path / "my_plugin.py").write_text(PLUGIN, encoding="utf-8")
    with serving(tmp_path / "home", "--plugin", "my_plugin:install") as server:

        def got(path: str, host: str = "localhost") -> httpx.Response:
            return server.client.get(path, headers={"Host": host})

        assert got("/hello").text == "hello, False, True"
        assert got("/api/v1/also-here").json() == {"is": "here"}
        assert server.call("POST", "records/any/responses", {}).text == "by the plugin"
        assert got("/more.txt").text == "one more page"
        assert [got("/hello", host).status_code for host in ("more.example", "rebound.example")] == [200, 421]
        workspace = server.done("POST", "workspaces", {"name": "groups"})["id"]
        key = person(server, "ada", workspace)
        made, records = dataset(server, workspace)
        shown = queue(server, made, key)
        odd = [int(record.replace("-", ""), 16) % 2 for record in shown]
        assert sorted(shown) == sorted(records)
        assert sum(one != other for one, other in itertools.pairwise(odd)) <= 1  # one group after the other


BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def test_the_command_serves_where_only_its_own_requirements_are(tmp_path: Path) -> None:
    tree, environment = tmp_path / "tree", tmp_path / "environment"
    shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "tests"))
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=tree, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("argilla_embedded-*.whl")
    subprocess.run([interpreter(), "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, cwd=tmp_path)
    # Its place, without importing it: that environment may lack what talks to Elasticsearch.
    found = (
        "from importlib.util import find_spec as f; print(f('argilla_server').origin.rpartition('/argilla_server')[0])"
    )
    theirs = subprocess.run([interpreter(), "-c", found], check=True, capture_output=True, text=True).stdout
    (packages,) = (environment / "lib").glob("python3*/site-packages")
    (packages / "theirs.pth").write_text(theirs, encoding="utf-8")
    with serving(tmp_path / "home", program=str(environment / "bin" / "argilla-embedded")) as server:
        assert server.done("GET", "me")["role"] == "owner"
        assert server.done("GET", "version")["version"] == "2.8.0"

"""The hook: a function that is handed the application before the server serves."""

from __future__ import annotations

import itertools
from pathlib import Path

import httpx
from queue_site import dataset, person, queue
from servers import serving

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

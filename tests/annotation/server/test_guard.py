"""What strangers can do to the started server: send little, slowly or wrongly, and learn nothing."""

from __future__ import annotations

import copy
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from annotation.server import Connection, Home, credentials, running
from annotation.server.plugin.plumbline_argilla.crowd_files import Newcomers
from annotation.server.plugin.plumbline_argilla.rate import LINK, WORK
from argilla_embedded.recent import Recent
from argilla_embedded.throttle import Throttle
from tests.annotation.argilla_site import Site, enter

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def site(usual_passwords: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(Home(tmp_path_factory.mktemp("argilla") / "home")) as connection:
        yield enter(connection)


HEAD = b"POST /api/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW = {
    "nothing at all": b"",
    "half a head": HEAD,
    "a line of the head now and then": HEAD,
    "half a body": HEAD + b"Content-Length: 1000\r\n\r\nusername=",
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n40\r\nuser",
    "a body in drops": HEAD + b"Content-Length: 50000\r\n\r\n",
}


def ends_after(site: Site, name: str) -> float:
    """Seconds until the server has hung up on what is sent slowly; 90 if it never does."""
    begun = time.monotonic()
    port = int(site.connection.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=1.0) as line, suppress(ConnectionError):
        line.sendall(SLOW[name])
        while time.monotonic() < begun + 90:
            with suppress(TimeoutError):
                if not line.recv(4096):
                    return time.monotonic() - begun
            if name in ("a line of the head now and then", "a body in drops"):
                line.sendall(b"X-A: b\r\n" if "head" in name else b"drop")
    return time.monotonic() - begun


@pytest.fixture(scope="module", autouse=True)
def slowly(site: Site) -> Iterator[list[Future[float]]]:
    """Requests that are sent slowly from the first test on, while the others are served."""
    with ThreadPoolExecutor(len(SLOW)) as pool:
        yield [pool.submit(ends_after, site, name) for name in SLOW]


def memory(site: Site) -> int:
    pid = json.loads(site.home.state.read_text(encoding="utf-8"))["pid"]
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def sent(site: Site, body: bytes | Iterator[bytes], path: str = "/api/v1/me/responses/bulk", key: str = "") -> int:
    """The status that a body gets, sent whole or in chunks of unknown number; 0 where the server hung up first."""
    headers = {"Content-Type": "application/json"} | ({"X-Argilla-Api-Key": key} if key else {})
    try:
        address = f"{site.connection.url}{path}"
        return httpx.post(address, content=body, headers=headers, trust_env=False, timeout=60.0).status_code
    except (httpx.WriteError, httpx.ReadError):
        return 0


def test_large_bodies_of_strangers_are_not_read(site: Site) -> None:
    before = memory(site)
    for key in ("", "no-such-key"):
        assert sent(site, bytes(80 * MEGABYTE), key=key) in (401, 0)
        assert sent(site, (bytes(MEGABYTE) for _ in range(80)), key=key) in (401, 0)
    for path in ("/api/v1/token", "/crowd/enter/0123456789abcdef-live", "/nowhere"):
        assert sent(site, bytes(20 * MEGABYTE), path) in (401, 413, 0)
    assert memory(site) < before + 40 * MEGABYTE
    assert sent(site, b" " * 70_000) == 401  # small enough to be answered for certain
    assert sent(site, b" " * 60_000) == 422


def test_bodies_of_who_has_signed_in_have_a_limit_by_role(site: Site) -> None:
    rater, owner = site.raters[0].user, site.owner.user
    campaign = site.publish("large", records=2)
    bulk = f"/api/v1/datasets/{campaign.dataset}/records/bulk"
    assert sent(site, b" " * (3 * MEGABYTE), key=rater.api_key) in (413, 0)
    assert sent(site, b"{" + b" " * MEGABYTE, key=rater.api_key) == 422
    text = "long " * 10_000
    items = [{"fields": {"original": text, "transformed": text}, "external_id": f"long{n}"} for n in range(100)]
    assert sent(site, json.dumps({"items": items}).encode(), bulk, owner.api_key) == 201  # ten megabytes
    form = {"username": owner.username, "password": owner.password}
    token = httpx.post(f"{site.connection.url}/api/v1/token", data=form, trust_env=False).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    put = httpx.put(f"{site.connection.url}{bulk}", content=json.dumps({"items": items[:10]}), headers=headers,
                    trust_env=False, timeout=60.0)  # fmt: skip
    assert put.status_code == 200


def test_pages_and_answers_carry_the_headers_that_protect_them(site: Site) -> None:
    with httpx.Client(base_url=site.connection.url, trust_env=False) as client:
        page, answer, refused = client.get("/sign-in"), client.get("/api/v1/version"), client.get("/api/v1/me")
        for one in (page, answer, refused, client.get("/_nuxt/none.js"), client.get("/%00")):
            assert one.headers["X-Content-Type-Options"] == "nosniff"
            assert one.headers["X-Frame-Options"] == "DENY"
            assert one.headers["Referrer-Policy"] in ("same-origin", "no-referrer")
            assert "frame-ancestors 'none'" in one.headers["Content-Security-Policy"]
            assert "server" not in one.headers
        policy = dict(part.split(None, 1) for part in page.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"].strip() == "'none'"
        assert policy["connect-src"].strip() == "'self'"
        assert not re.search("unsafe|http|[*]", policy["script-src"])
        # What a browser has kept takes the headers of the answer that it has not changed.
        kept = client.get("/sign-in", headers={"If-None-Match": page.headers["etag"]})
        assert kept.status_code == 304
        assert kept.headers["Content-Security-Policy"] == page.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == refused.headers["Cache-Control"] == "no-store"


def test_unknown_hosts_are_refused_where_an_address_is_set(site: Site) -> None:
    def status(host: str, path: str = "/api/v1/version") -> int:
        return httpx.get(f"{site.connection.url}{path}", headers={"Host": host}, trust_env=False).status_code

    for path in ("/api/v1/version", WORK, LINK):  # no address is known yet, and a proxy may send any
        assert status("rebound.example", path) == status("[", path) == 200
    rooms = site.home.path / "crowd" / "rooms.json"
    rooms.parent.mkdir(mode=0o700, exist_ok=True)
    entry = {"address": "https://Argilla.example.org"}
    rooms.write_text(json.dumps({"version": 1, "rooms": {"0123456789abcdef-live": entry}}), encoding="utf-8")
    try:
        for host in ("argilla.example.org", "ARGILLA.example.org:443", "localhost:6900", "127.0.0.1", "[::1]:80"):
            assert status(host) == 200, host
        for host in ("rebound.example", "", "argilla.example.org.rebound.example", "[", "argilla.example.org@rebound"):
            assert status(host) == 421, host
    finally:
        rooms.unlink()


def test_a_browser_that_came_by_https_sends_its_cookie_by_https_alone(site: Site) -> None:
    for scheme, secure in (("https", True), ("https, http", True), ("http", False), ("", False)):
        headers = {"X-Forwarded-Proto": scheme} if scheme else {}
        cookie = httpx.get(f"{site.connection.url}{LINK}", headers=headers, trust_env=False).headers["set-cookie"]
        assert ("; Secure" in cookie, "; HttpOnly" in cookie) == (secure, True), scheme


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_wrong_passwords_wait_longer_and_longer_and_others_do_not() -> None:
    clock = Clock()
    throttle = Throttle(Recent(clock))
    waits = []
    for _ in range(9):
        waits.append(throttle.seconds("ada", "192.0.2.1"))
        throttle.note("ada", "192.0.2.1", right=False)
    assert waits == [0, 0, 0, 1, 2, 4, 8, 8, 8]
    assert throttle.seconds("ada", "192.0.2.2") == throttle.seconds("grace", "192.0.2.1") == 0
    throttle.note("ada", "192.0.2.1", right=True)
    assert throttle.seconds("ada", "192.0.2.1") == 0
    throttle.note("ada", "192.0.2.9", right=False)
    clock.seconds += 901
    assert throttle.number(("account", "ada")) == 0


def test_guessing_from_many_addresses_or_at_many_accounts_is_slowed_and_keeps_nobody_out() -> None:
    recent = Recent(Clock(), kept=1000)
    throttle = Throttle(recent)
    throttle.note("ada", "198.51.100.1", right=True)
    for number in range(30):
        throttle.note("ada", f"192.0.2.{number}", right=False)
        throttle.note(f"user{number}", "203.0.113.1", right=False)
    assert throttle.seconds("ada", "192.0.2.200") == 4
    assert throttle.seconds("ada", "198.51.100.1") == 0  # where ada has signed in from: nobody's guesses matter
    assert throttle.seconds("grace", "203.0.113.1") == 4
    assert throttle.seconds("grace", "198.51.100.1") == 0
    for number in range(1500):
        throttle.note(f"made-up{number}", "127.0.0.1", right=False)
    assert 1000 <= len(recent) <= 1500  # the newest; looked at after each 500 that are written
    assert throttle.seconds("linus", "127.0.0.1") == 0  # behind a proxy that does not say who asks, all are 127.0.0.1


def test_processes_remember_together_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    clock = Clock()
    first = Recent(clock, tmp_path / "recent.db")
    second = copy.copy(first)  # as a process that has parted from it: the same key, and the file is not open yet
    throttles = Throttle(first), Throttle(second)
    for number in range(6):
        throttles[number % 2].note("ada", "192.0.2.1", right=False)
    assert [throttle.seconds("ada", "192.0.2.1") for throttle in throttles] == [8, 8]
    newcomers = Newcomers(first), Newcomers(second)
    assert [newcomers[number % 2].take("192.0.2.7") for number in range(11)] == [True] * 10 + [False]
    with ExitStack() as stack:
        places = [throttles[number % 2].place("grace", "192.0.2.1") for number in range(5)]
        assert [stack.enter_context(place) for place in places] == [True] * 4 + [False]
    clock.seconds += 61  # a process that was killed gives back no place: it is free again after a minute
    first.put(("waiting", "pair", "alan", "192.0.2.1"), 4)
    with throttles[1].place("alan", "192.0.2.1") as free:
        assert not free
    clock.seconds += 61
    with throttles[1].place("alan", "192.0.2.1") as free:
        assert free
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not [name for name in (b"ada", b"grace", b"192.0.2") if name in written]
    stranger = Recent(clock, tmp_path / "recent.db")
    assert Throttle(stranger).seconds("ada", "192.0.2.1") == 0  # another key: a server that begins anew knows nothing


def sign_in(connection: Connection, username: str, password: str) -> tuple[int, float]:
    begun = time.monotonic()
    form = {"username": username, "password": password}
    answer = httpx.post(f"{connection.url}/api/v1/token", data=form, trust_env=False, timeout=60.0)
    return answer.status_code, time.monotonic() - begun


def test_the_server_slows_guessing_down_and_serves_others_meanwhile(site: Site) -> None:
    for _ in range(4):
        assert sign_in(site.connection, "grace", "wrong")[0] == 401
    status, seconds = sign_in(site.connection, "grace", "wrong")
    assert status == 401 and seconds >= 2
    with ThreadPoolExecutor(8) as pool:
        guesses = [pool.submit(sign_in, site.connection, "grace", f"wrong{n}") for n in range(8)]
        status, _ = sign_in(site.connection, "ada", credentials(site.home).annotators[0].password)
        assert status == 201
        assert not all(guess.done() for guess in guesses)
        assert {guess.result()[0] for guess in guesses} == {401, 429}
    grace = credentials(site.home).find("grace")
    assert grace is not None
    assert sign_in(site.connection, "grace", grace.password)[0] == 201  # never locked out
    for odd in ("\0", "x" * 5000, "", "\ud7ff"):
        assert sign_in(site.connection, odd or "nobody", odd)[0] in (401, 422)


def test_the_log_takes_no_lines_from_strangers(site: Site) -> None:
    name = "field\n2026-01-01 ERROR owner: all is lost"
    site.raters[0]("POST", "me/responses/bulk", {"items": [{"record_id": "x", "status": "draft", "values": {name: 1}}]},
                   expect=422)  # fmt: skip
    before = site.home.log.stat().st_size
    with httpx.Client(base_url=site.connection.url, trust_env=False, timeout=60.0) as client:
        for _ in range(400):
            client.post("/api/v1/token", content=b"{")
    text = site.home.log.read_text(encoding="utf-8")
    assert "\n2026-01-01 ERROR owner" not in text
    assert len(text) < before + 200 * 400


def test_slow_and_half_sent_requests_end_while_others_are_served(slowly: list[Future[float]]) -> None:
    """The last test here: all others are the others."""
    assert max(one.result() for one in slowly) < 80

"""The really started server under a path of a host, behind a proxy that keeps the path, and one that takes it off."""

from __future__ import annotations

import contextlib
import http.client
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from annotation.argilla.client import Argilla, attach
from annotation.argilla.publish import publish
from annotation.commands.annotators import invite
from annotation.crowd.prolific.workspaces import ArgillaRooms
from annotation.server import Connection, Home, credentials, running
from annotation.server.plugin.plumbline_argilla.rate import LINK
from plumbline.errors import ServiceError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import dataset, rater, small
from tests.annotation.crowd.offers import batch_offer
from tests.annotation.crowd.test_entry import CONSENT, KEY
from tests.annotation.test_browser import watch
from tests.annotation.test_rating_page import rate, turn
from tests.conftest import browsing, make_variant

HOST, PATH = "https://host.example", "/rate"  # as one of the server's own pages is called
WAYS = ("keeps the path", "takes it off")
KINDS = ("password", "link")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    raters, crowd = {"per_pair": 4}, {"address": f"{HOST}{PATH}/", "countries": {"en": ["US"]}, "consent": CONSENT}
    parts = {"transformations": ["paraphrasing"], "raters": raters, "crowd": crowd}
    return small(make_variant(tmp_path_factory.mktemp("path")), "under-a-path", **parts)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    home = Home(tmp_path_factory.mktemp("argilla") / "home")
    with running(home, hosts=("127.0.0.1", f"{HOST}{PATH}")) as connected:
        yield connected


@pytest.fixture(scope="module")
def argilla(connection: Connection, study: Study) -> Iterator[Argilla]:
    with attach(connection) as attached:
        for way in WAYS:
            for kind in KINDS:
                rater(attached, f"{way.split()[0]}-{kind}")
        publish(study, attached)
        yield attached


class Proxy(BaseHTTPRequestHandler):
    """A proxy that has nothing outside the path."""

    port: int | None  # the server's
    takes_off: bool

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._pass_on
        raise AttributeError(name)

    def _pass_on(self) -> None:
        if not self.path.startswith(f"{PATH}/"):
            self.send_error(404)
            return
        headers = {**self.headers, "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "http"}
        headers |= {"X-Forwarded-Prefix": PATH} if self.takes_off else {}
        path = self.path.removeprefix(PATH) if self.takes_off else self.path
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as line:
            line.request(self.command, path, body, headers)
            reply = line.getresponse()
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the browser has left the page
                self.wfile.write(reply.read())


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(connection: Connection, way: str) -> Iterator[str]:
    """The server's address at a proxy."""
    there = {"port": urlsplit(connection.url).port, "takes_off": way == WAYS[1]}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Proxy,), there)) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}{PATH}"
        proxy.shutdown()


@pytest.fixture(scope="module")
def chromium(argilla: Argilla) -> Iterator[Browser]:
    """One for all tests; generating, which has an event loop of its own, comes before."""
    with browsing() as browser:
        yield browser


@pytest.fixture
def complaints(page: Page, url: str) -> list[str]:
    return watch(page, url)


def grave(complaints: list[str]) -> list[str]:
    """All but 409: who leaves a page before the reply is there sends an answer again."""
    return [one for one in complaints if "409" not in one]


@pytest.mark.browser
def test_a_rater_with_a_password_stays_under_the_path(
    argilla: Argilla, study: Study, way: str, url: str, page: Page, complaints: list[str]
) -> None:
    user, dataset_id = rater(argilla, f"{way.split(maxsplit=1)[0]}-password"), dataset(study, argilla)
    page.goto(f"{url}/rate/{dataset_id}")  # to one's own sign-in, and from there back
    page.get_by_label("User name").fill(user.username)
    page.get_by_label("Password").fill(user.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{url}/rate/{dataset_id}")
    page.get_by_role("button", name="Begin").click()
    turn(page, 1, 4)
    rate(page, 4, 4)
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    page.reload()
    turn(page, 2, 4)
    page.goto(f"{url}/dataset/{dataset_id}/annotation-mode")  # Argilla's page, whose bar leads to ours
    expect(page).to_have_url(f"{url}/rate/{dataset_id}")
    page.goto(f"{url}/work")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("User name")).to_be_visible()
    assert grave(complaints) == []


@pytest.mark.browser
@pytest.mark.parametrize("way", WAYS[1:], indirect=True)
def test_argillas_own_pages_stay_under_the_path(
    connection: Connection, study: Study, url: str, page: Page, complaints: list[str]
) -> None:
    assert connection.home is not None
    owner = credentials(connection.home).owner
    page.goto(f"{url}/sign-in")
    page.locator("input[type=text]").fill(owner.username)
    page.locator("input[type=password]").fill(owner.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text(f"{study.name}-paraphrasing").first).to_be_visible()
    assert urlsplit(page.url).path == f"{PATH}/"
    page.get_by_text(f"{study.name}-paraphrasing").first.click()
    expect(page).to_have_url(re.compile(f"^{url}/dataset/.*/annotation-mode"))
    page.reload()
    expect(page.get_by_role("form", name="Annotation Questions")).to_be_visible()
    for address in ("/user-settings", "/"):
        page.goto(f"{url}{address}")
        page.wait_for_load_state("networkidle")
    assert grave(complaints) == []  # nor does the pages' policy refuse anything


@pytest.mark.browser
@pytest.mark.parametrize("way", WAYS[1:], indirect=True)
def test_a_rater_with_a_link_stays_under_the_path(
    argilla: Argilla, study: Study, way: str, url: str, page: Page, complaints: list[str]
) -> None:
    assert argilla.connection is not None and argilla.connection.home is not None
    name = f"{way.split(maxsplit=1)[0]}-link"
    (letter,) = invite(study, argilla.connection, argilla.connection.home, [name], url, links="missing")
    (link,) = re.findall(rf"http\S+{LINK}#\S+", letter.text)
    page.goto(link)
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("link", name="Go on").click()
    expect(page).to_have_url(f"{url}/rate/{dataset(study, argilla)}")
    page.evaluate("localStorage.clear()")  # the session ends after a day
    page.goto(f"{url}/work")
    expect(page.get_by_text("0 answered, 4 left.")).to_be_visible()
    assert [cookie["path"] for cookie in page.context.cookies()] == [f"{PATH}{LINK}"]
    assert grave(complaints) == []


@pytest.mark.browser
@pytest.mark.parametrize("way", WAYS[1:], indirect=True)
def test_a_participant_stays_under_the_path(
    argilla: Argilla, study: Study, way: str, url: str, page: Page, complaints: list[str]
) -> None:
    room = ArgillaRooms(study, "sandbox", KEY, argilla).open(batch_offer(study, pairs=2, salt=way))
    assert room.address.startswith(f"{HOST}{PATH}/crowd/")
    ids = f"?PROLIFIC_PID={'c' * 24}&STUDY_ID={'a' * 24}&SESSION_ID={'b' * 24}"
    page.goto(f"{room.address.replace(f'{HOST}{PATH}', url)}{ids}")
    page.get_by_role("checkbox", name="I agree").check()
    page.get_by_role("button", name="Begin").click()
    turn(page, 1, 2)
    rate(page, 4, 5)
    turn(page, 2, 2)
    page.goto(f"{url}/crowd/enter/{room.room_id}")  # back by the cookie
    page.get_by_role("button").click()
    expect(page.locator("#turn")).to_be_visible()
    rate(page, 4, 5)
    expect(page.get_by_text(room.code, exact=True)).to_be_visible()
    assert [cookie["path"] for cookie in page.context.cookies()] == [f"{PATH}/crowd/enter/{room.room_id}"]
    assert grave(complaints) == []


def test_programs_reach_the_server_with_the_path_and_without_it(connection: Connection, argilla: Argilla) -> None:
    assert connection.url.endswith(PATH)
    own, elsewhere = connection.url, connection.url.removesuffix(PATH)
    for host, status in (("host.example", 200), ("rebound.example", 421)):
        for url in (own, elsewhere):
            answered = httpx.get(f"{url}/api/v1/version", headers={"Host": host}, trust_env=False)
            assert answered.status_code == status
    # The path is taken off once, as a whole, and not where the proxy has done so: Argilla answers with its first page.
    for address, headers in ((f"{own}x", {}), (f"{own}{PATH}", {}), (own, {"X-Forwarded-Prefix": PATH})):
        assert "<html" in httpx.get(f"{address}/api/v1/version", headers=headers, trust_env=False).text


def test_a_server_has_one_path_and_a_study_names_it(argilla: Argilla, study: Study, tmp_path: Path) -> None:
    apart = running(Home(tmp_path / "home"), hosts=("127.0.0.1", f"{HOST}/a", HOST))
    with pytest.raises(ServiceError, match="different paths"), apart:
        pass
    assert study.crowd is not None
    other = study.model_copy(update={"crowd": study.crowd.model_copy(update={"address": HOST})})
    with pytest.raises(StudyError, match="crowd.address has no path, and the server runs under /rate"):
        ArgillaRooms(other, "sandbox", KEY, argilla).open(batch_offer(study, pairs=1, salt="another path"))

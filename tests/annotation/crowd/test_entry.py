"""The participants' way in, on the really started server: consent, one account, one code, no harm."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from html import escape, unescape
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from annotation import server
from annotation.argilla.client import Argilla
from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import Mode
from annotation.campaign.rubric import load_rubric
from annotation.crowd.platform import Offer
from annotation.crowd.prolific.workspaces import ArgillaRooms, Room, rooms_file
from annotation.server.plugin.plumbline_argilla.crowd_files import Newcomers
from argilla_embedded.recent import Recent
from plumbline.study import Study
from tests.annotation.campaigns import ALONE, answer, pending, small
from tests.annotation.crowd.offers import batch_offer
from tests.axe import grave
from tests.conftest import browsing, make_variant

KEY = bytes(range(32))
CONSENT = 'I am <script>alert("18")</script> or older.'
TICKET = re.compile(r'name="ticket" value="([^"]+)"')


def crowd(url: str, **changes: Any) -> dict[str, Any]:
    return {"address": url, "countries": {"en": ["US"]}, "consent": CONSENT, **changes}


class Visitor:
    def __init__(self, argilla: Argilla, room: Room, pid: str) -> None:
        self.room, self.pid = room, pid
        no_connection_left = httpx.Limits(max_keepalive_connections=0)
        self.http = httpx.Client(base_url=argilla.url, trust_env=False, timeout=60.0, limits=no_connection_left)

    def enter(self, pid: str | None = None) -> httpx.Response:
        ids = {"PROLIFIC_PID": self.pid if pid is None else pid, "STUDY_ID": "a" * 24, "SESSION_ID": "b" * 24}
        return self.http.get(f"/crowd/enter/{self.room.room_id}", params=ids)

    def send(self, shown: httpx.Response, **fields: str) -> httpx.Response:
        return self.http.post(f"/crowd/enter/{self.room.room_id}", data={"ticket": ticket(shown), **fields})

    def begin(self) -> httpx.Response:
        return self.send(self.enter(), consent="yes")

    def done(self) -> httpx.Response:
        return self.http.get(f"/crowd/enter/{self.room.room_id}")


def ticket(shown: httpx.Response) -> str:
    found = TICKET.search(shown.text)
    assert found, shown.text
    return unescape(found[1])


@pytest.fixture(scope="module")
def study(argilla: Argilla, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """One study for all: each test has a room and a participant of its own."""
    return small(
        make_variant(tmp_path_factory.mktemp("entry")), "entry", crowd=crowd(argilla.url), sample={"pairs": 8, **ALONE}
    )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as shared:
        yield shared


@pytest.fixture
def pid(request: pytest.FixtureRequest) -> str:
    return sha256(request.node.name.encode()).hexdigest()[:24]


@pytest.fixture
def offer(study: Study, pid: str, request: pytest.FixtureRequest) -> Offer:
    return batch_offer(study, pairs=getattr(request, "param", 2), salt=pid)


@pytest.fixture
def room(study: Study, offer: Offer, argilla: Argilla) -> Room:
    return ArgillaRooms(study, "sandbox", KEY, argilla).open(offer)


@pytest.fixture
def visitor(argilla: Argilla, room: Room, pid: str) -> Iterator[Visitor]:
    made = Visitor(argilla, room, pid)
    yield made
    made.http.close()


def user_of(argilla: Argilla, study: Study, pid: str, room: Room) -> Any:
    name = f"{worker_pseudonym(KEY, study.name, 'prolific', pid)}-{room.room_id}"
    found = [user for user in argilla.users() if user.username == name]
    assert len(found) <= 1
    return found[0] if found else None


def datasets_of(page: httpx.Response) -> dict[str, str]:
    """The names of the datasets that a page's session opens, by id."""
    token = re.search(r"Bearer ([\w.-]+)", page.text)
    assert token
    headers, url = {"Authorization": f"Bearer {token[1]}"}, page.url.join("/api/v1/me/datasets")
    return {item["id"]: item["name"] for item in httpx.get(url, headers=headers, trust_env=False).json()["items"]}


def changed(argilla: Argilla, user: Any, record: dict[str, Any], status: str) -> None:
    """Answer without ratings, or change what was answered so."""
    items = [{"record_id": record["id"], "status": status, "values": None}]
    argilla.request("POST", "/me/responses/bulk", api_key=user.api_key, json={"items": items})


def test_a_participant_consents_answers_and_gets_the_code_when_all_is_rated(
    argilla: Argilla, study: Study, offer: Offer, pid: str, room: Room, visitor: Visitor
) -> None:
    shown = visitor.enter()
    assert shown.status_code == 200
    assert "<script>alert" not in shown.text
    assert "&lt;script&gt;alert(&quot;18&quot;)" in shown.text
    asked = load_rubric(study).pool("paraphrasing").asked["en"]
    assert f"<p>{escape(asked)}</p>" in shown.text
    assert pid not in shown.text
    assert room.code not in shown.text
    assert user_of(argilla, study, pid, visitor.room) is None  # nothing is made for who only looks

    entered = visitor.send(shown, consent="yes")
    assert entered.status_code == 200
    user = user_of(argilla, study, pid, visitor.room)
    assert user.role == "annotator"
    # The session of the page is Argilla's own, and shows this participant the one room.
    ((dataset, name),) = datasets_of(entered).items()
    assert name == f"{study.name}-crowd-{room.room_id}"
    # Nor does it if another browser is the first to come to another room with this id.
    other = Visitor(
        argilla, ArgillaRooms(study, "sandbox", KEY, argilla).open(batch_offer(study, pairs=1, salt=pid)), pid
    )
    assert dataset not in datasets_of(other.begin())
    other.http.close()

    left = pending(argilla, user, dataset)
    assert {record["external_id"] for record in left} == {pair.pair_id for pair in offer.pairs}
    assert "2 pairs are still to be rated" in visitor.done().text
    answer(argilla, user, left[0], "submitted", quality=4, fluency=5)
    assert "1 pair is still to be rated" in visitor.done().text
    changed(argilla, user, left[1], "draft")
    assert room.code not in visitor.done().text
    changed(argilla, user, left[1], "discarded")
    finished = visitor.done()
    assert room.code in finished.text
    assert f"https://app.prolific.com/submissions/complete?cc={room.code}" in finished.text
    assert room.code in visitor.enter().text  # who comes again when all is done

    found = ArgillaRooms(study, "sandbox", KEY, argilla).answers(
        offer, worker_pseudonym(KEY, study.name, "prolific", pid)
    )
    assert [(one.pair_id, one.status) for one in found] == [
        (left[0]["external_id"], "submitted"), (left[1]["external_id"], "discarded"),
    ]  # fmt: skip
    assert found[0].values == {"quality": 4, "fluency": 5}


def test_no_id_of_prolific_is_kept_consent_is_dated_and_the_files_are_private(
    argilla: Argilla, home: server.Home, study: Study, pid: str, visitor: Visitor
) -> None:
    visitor.begin()
    assert user_of(argilla, study, pid, visitor.room) is not None
    files = [file for file in home.path.iterdir() if file.is_file()]
    assert home.database in files
    for file in [*files, *(home.path / "crowd").iterdir()]:
        with contextlib.suppress(FileNotFoundError):  # SQLite's own come and go
            assert pid.encode() not in file.read_bytes(), file
    for file in (home.path / "crowd").iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    assert (home.path / "crowd").stat().st_mode & 0o077 == 0
    with sqlite3.connect(home.path / "crowd" / "entries.db") as database:
        (row,) = database.execute("SELECT worker, consented_at FROM entries WHERE room = ?", (visitor.room.room_id,))
    assert row[0] == worker_pseudonym(KEY, study.name, "prolific", pid)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00", row[1])


def test_a_ticket_works_once_and_only_in_its_room(argilla: Argilla, study: Study, pid: str, visitor: Visitor) -> None:
    shown = visitor.enter()
    fields = {"consent": "yes"}
    assert "Bearer" in visitor.send(shown, **fields).text
    again = visitor.send(shown, **fields)
    assert again.status_code == 409
    assert "Bearer" not in again.text
    other = ArgillaRooms(study, "sandbox", KEY, argilla).open(batch_offer(study, pairs=1, salt=pid))
    sealed = ticket(visitor.enter())
    wrong = visitor.http.post(f"/crowd/enter/{other.room_id}", data={"ticket": sealed, **fields})
    assert wrong.status_code == 409
    for forged in ("", "x", sealed[:-1] + ("0" if sealed[-1] != "0" else "1"), "é." + "0" * 64):
        sent = visitor.http.post(f"/crowd/enter/{visitor.room.room_id}", data={"ticket": forged, **fields})
        assert sent.status_code == 409
    resumed = visitor.enter()
    assert "Welcome back" in resumed.text
    assert "Bearer" in visitor.send(resumed).text


def test_two_clicks_at_once_make_one_account(argilla: Argilla, study: Study, pid: str, visitor: Visitor) -> None:
    shown = [visitor.enter() for _ in range(6)]
    shown += [shown[0], shown[0]]  # the same form twice
    with concurrent.futures.ThreadPoolExecutor(len(shown)) as pool:
        sent = list(pool.map(lambda one: visitor.send(one, consent="yes"), shown))
    assert sorted(one.status_code for one in sent) == [200] * 6 + [409] * 2
    assert user_of(argilla, study, pid, visitor.room) is not None


def test_without_consent_nothing_is_made(argilla: Argilla, study: Study, pid: str, visitor: Visitor) -> None:
    refused = visitor.send(visitor.enter())
    assert refused.status_code == 422
    assert user_of(argilla, study, pid, visitor.room) is None


def test_what_is_no_participants_id_gets_a_page_that_says_so(visitor: Visitor) -> None:
    wrong = ("", "5f00", "5F0000000000000000000001", "5" * 25, "<script>alert(1)</script>", "' OR 1=1 --", "../" * 8)
    for pid in wrong:
        shown = visitor.enter(pid)
        assert shown.status_code == 400, pid
        assert "open this page from Prolific" in shown.text
        assert not pid or pid not in shown.text


def test_unknown_rooms_large_forms_and_other_sites_are_refused(visitor: Visitor) -> None:
    for room in ("0" * 16 + "-live", "x", "credentials.json", "<b>", "0" * 5000):
        assert visitor.http.get(f"/crowd/enter/{room}", params={"PROLIFIC_PID": visitor.pid}).status_code == 404
    path = f"/crowd/enter/{visitor.room.room_id}"
    assert visitor.http.post(path, content=b"a=" + b"x" * 100_000).status_code == 413
    assert visitor.http.post(path, content="&".join(f"a{n}=1" for n in range(50)).encode()).status_code == 400
    assert visitor.http.post(path, content=b"\xff\xfe=1").status_code == 400
    sealed = {"ticket": ticket(visitor.enter())}
    assert visitor.http.post(path, data=sealed, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert visitor.http.put(path).status_code == 405


def test_pages_are_not_kept_framed_or_told_to_others(visitor: Visitor) -> None:
    for shown in (visitor.enter(), visitor.begin(), visitor.enter("x"), visitor.done()):
        assert shown.headers["Cache-Control"] == "no-store"
        assert shown.headers["Referrer-Policy"] == "no-referrer"
        policy = shown.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


def test_the_code_is_shown_to_nobody_else(argilla: Argilla, room: Room, visitor: Visitor) -> None:
    assert visitor.done().status_code == 400
    visitor.begin()
    assert visitor.done().status_code == 200
    visitor.http.cookies.clear()
    visitor.http.cookies.set("plumbline_crowd", "forged." + "0" * 64)
    assert visitor.done().status_code == 400


def changed_room(home: server.Home, room: Room, **changes: object) -> None:
    file = rooms_file(home)
    whole = json.loads(file.read_text(encoding="utf-8"))
    whole["rooms"][room.room_id].update(changes)
    file.write_text(json.dumps(whole), encoding="utf-8")


def test_made_up_ids_take_no_place_from_who_prolific_knows(
    argilla: Argilla, home: server.Home, study: Study, offer: Offer, visitor: Visitor, pid: str
) -> None:
    changed_room(home, visitor.room, most=1)
    made_up, participant = Visitor(argilla, visitor.room, pid[::-1]), Visitor(argilla, visitor.room, "c" * 24)
    assert made_up.begin().status_code == 200
    assert visitor.begin().status_code == 503  # the one place for those whom nobody knows is taken
    known = worker_pseudonym(KEY, study.name, "prolific", participant.pid)
    ArgillaRooms(study, "sandbox", KEY, argilla).admit(offer.batch.batch_id, "5" * 24, [known])
    assert participant.begin().status_code == 200  # has a submission at Prolific
    assert visitor.begin().status_code == 503
    with sqlite3.connect(home.path / "crowd" / "entries.db") as book:  # six hours and a minute later
        book.execute(
            "UPDATE entries SET consented_at = ? WHERE room = ?",
            ((datetime.now(UTC) - timedelta(hours=6, minutes=1)).isoformat(), visitor.room.room_id),
        )
    assert visitor.begin().status_code == 200
    for one in (made_up, participant):
        one.http.close()


def test_an_address_brings_few_newcomers_in_an_hour() -> None:
    seconds = [0.0]
    newcomers = Newcomers(Recent(lambda: seconds[0]))
    taken = []
    for seconds[0] in range(11):
        taken.append(newcomers.take("192.0.2.1"))
    assert taken == [True] * 10 + [False]
    assert newcomers.take("192.0.2.2")
    seconds[0] = 3600.0
    assert newcomers.take("192.0.2.1")  # the first is an hour ago
    assert not newcomers.take("192.0.2.1")
    assert all(newcomers.take("127.0.0.1") for _ in range(100))


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_room_takes_its_own_study_and_each_session_once(
    argilla: Argilla, study: Study, offer: Offer, pid: str, mode: Mode
) -> None:
    rooms = ArgillaRooms(study, mode, KEY, argilla)
    visitor = Visitor(argilla, rooms.open(offer), pid)
    rooms.admit(offer.batch.batch_id, "d" * 24, [])

    def enter(pid: str, study_id: str, session: str) -> httpx.Response:
        ids = {"PROLIFIC_PID": pid, "STUDY_ID": study_id, "SESSION_ID": session}
        return visitor.http.get(f"/crowd/enter/{visitor.room.room_id}", params=ids)

    answers, own = {"consent": "yes"}, {"live": "b", "test": "c"}[mode] * 24
    for study_id, session in (("a" * 24, own), ("", own), ("d" * 24, "")):
        assert enter(pid, study_id, session).status_code == 400
    assert "Bearer" in visitor.send(enter(pid, "d" * 24, own), **answers).text
    stolen = visitor.send(enter(pid[::-1], "d" * 24, own), **answers)
    assert stolen.status_code == 403
    assert "somebody else" in stolen.text
    assert "Bearer" in visitor.send(enter(pid[::-1], "d" * 24, own[::-1].replace(own[0], "e", 1)), **answers).text
    visitor.http.close()


def test_discarding_everything_does_not_earn_the_code(
    argilla: Argilla, study: Study, pid: str, room: Room, visitor: Visitor
) -> None:
    visitor.begin()
    user = user_of(argilla, study, pid, visitor.room)
    (dataset,) = [one.id for (_, name), one in argilla.datasets().items() if name.endswith(room.room_id)]
    first, second = pending(argilla, user, dataset)
    changed(argilla, user, first, "discarded")
    changed(argilla, user, second, "discarded")
    for shown in (visitor.done(), visitor.enter()):
        assert room.code not in shown.text
        assert "at least 1 pairs have to be rated" in shown.text
        assert room.return_code in shown.text
    answers = {"quality": {"value": 2}, "fluency": {"value": 2}}
    items = [{"record_id": first["id"], "status": "submitted", "values": answers}]
    argilla.request("POST", "/me/responses/bulk", api_key=user.api_key, json={"items": items})
    assert room.code in visitor.done().text


def test_a_damaged_file_of_rooms_closes_the_entrance_and_not_the_server(
    argilla: Argilla, home: server.Home, visitor: Visitor
) -> None:
    file = rooms_file(home)
    whole = file.read_text(encoding="utf-8")
    try:
        file.write_text("{", encoding="utf-8")
        assert visitor.enter().status_code == 503
    finally:
        file.write_text(whole, encoding="utf-8")
    assert visitor.enter().status_code == 200
    assert argilla.users()


@pytest.mark.browser
@pytest.mark.parametrize("offer", [8], indirect=True)
def test_who_discarded_too_much_is_asked_again_about_what_they_discarded(
    argilla: Argilla, room: Room, pid: str, page: Page
) -> None:
    """About all of it, also where some are discarded again."""
    page.goto(f"{argilla.url}/crowd/enter/{room.room_id}?PROLIFIC_PID={pid}&STUDY_ID={'a' * 24}&SESSION_ID={'b' * 24}")
    page.get_by_role("checkbox", name="I agree").check()
    page.get_by_role("button", name="Begin").click()

    def discard(*places: int) -> None:
        for place in places:
            expect(page.locator("#turn")).to_have_text(f"Pair {place} of 8")
            page.get_by_role("button", name="I cannot judge this pair").click()
            page.keyboard.press("2")

    discard(*range(1, 9))
    expect(page.get_by_role("heading", name="Too few pairs are rated")).to_be_visible()
    page.get_by_role("link", name="Go on", exact=True).click()
    expect(page.locator("#turn")).to_have_text("Pair 1 of 8")
    expect(page.get_by_text("You discarded this")).to_be_visible()
    page.keyboard.press("Enter")  # leaves it so
    discard(2, 3)
    for place in range(4, 9):
        expect(page.locator("#turn")).to_have_text(f"Pair {place} of 8")
        for key in ("4", "5", "Enter"):
            page.keyboard.press(key)
    expect(page.get_by_text(room.code, exact=True)).to_be_visible()


@pytest.mark.browser
def test_a_participant_works_through_a_room_in_the_browser(argilla: Argilla, room: Room, pid: str, page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"{argilla.url}/crowd/enter/{room.room_id}?PROLIFIC_PID={pid}&STUDY_ID={'a' * 24}&SESSION_ID={'b' * 24}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert grave(page) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("checkbox", name="I agree").focus()  # and from here on by keyboard alone
    for key in ("Space", "Tab", "Enter"):
        page.keyboard.press(key)

    for place in (1, 2):
        expect(page.locator("#turn")).to_have_text(f"Pair {place} of 2")
        rating = page.url
        for key in ("4", "5", "Enter"):
            page.keyboard.press(key)
    expect(page.get_by_text(room.code, exact=True)).to_be_visible()  # by itself, when all is stored
    page.goto(rating)
    expect(page.get_by_text(room.code, exact=True)).to_be_visible()
    assert grave(page) == []
    target = page.get_by_role("link", name="Complete on Prolific").get_attribute("href")
    assert target == f"https://app.prolific.com/submissions/complete?cc={room.code}"

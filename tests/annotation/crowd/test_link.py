"""People who come by a link, on the really started server: who is let in, where they go, who is paid and how often."""

from __future__ import annotations

import concurrent.futures
import csv
import itertools
import json
import re
import shlex
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from pydantic import ValidationError

from annotation import server
from annotation.argilla.client import Argilla
from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import LEDGER, begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.link import LinkPlatform, read_participants
from annotation.crowd.prolific.workspaces import ArgillaRooms, Progress, read_rooms, room_of, rooms_file
from annotation.server.backup import backup, restore
from plumbline import __main__ as commands
from plumbline import cli
from plumbline.errors import DataError
from plumbline.study import Study
from plumbline.study.crowd import LinkSpec
from tests.annotation.campaigns import answer, pending
from tests.annotation.crowd.campaigns import KEY, drawn, run
from tests.annotation.crowd.prolific.prolific_site import FakeRooms
from tests.annotation.crowd.test_entry import ticket
from tests.conftest import make_variant

SESSIONS = itertools.count()
SONA = {"preset": "sona", "complete": "https://u.sona-systems.example/webstudy_credit.aspx?survey_code={participant}"}
END = "https://connect.example.org/project/X1/complete?who={participant}&cc={code}"


def linked(folder: Path, argilla: Any, name: str, seed: int | None = None, **link: object) -> Study:
    """A study of one batch of four pairs and two controls, for two people; $1.20 each."""
    # Live rooms want https; the server itself is reached over the loopback, as a proxy would.
    crowd = {"address": argilla.url.replace("http:", "https:"), "share": 1.0, "fee": 0.25, "link": link}
    sample = {"pairs": 4, "batch": 4, "repeats": 0, "seed": int(name[5:]) if seed is None else seed}
    return drawn(make_variant(folder), name=name, sample=sample, crowd=crowd, acceptance={"min_pairs": 4})


class NoRooms(FakeRooms):
    """Rooms that nobody enters."""

    def admit(self, batch_id: str, posted_id: str, pseudonyms: Sequence[str], limits: Any = None) -> None:
        """Admit nobody."""

    def progress(self, batch_id: str) -> dict[str, Progress]:
        return {}


class Site:
    """A campaign by link, a command after the other, and a way in for people."""

    def __init__(self, study: Study, argilla: Argilla) -> None:
        self.study, self.argilla = study, argilla
        self.browsers = defaultdict[str, httpx.Client](
            lambda: httpx.Client(base_url=argilla.url, trust_env=False, timeout=60.0)
        )
        self.http = self.browsers[""]  # the one that was used last

    def platform(self) -> LinkPlatform:
        return LinkPlatform(self.study, "live", KEY, ArgillaRooms(self.study, "live", KEY, self.argilla, "link"), 3)

    def step(
        self, what: Callable[[CrowdCampaign], object], breaks: Callable[[str], bool] = lambda place: False
    ) -> bool:
        return run(self.study, self.platform, what, 10**6, breaks)

    @property
    def room(self) -> str:
        (offer,) = self.platform().account.offers.values()
        return room_of(self.study, "link", "live", KEY, offer.batch_id).room_id

    def enter(self, **ids: str) -> httpx.Response:
        self.http = self.browsers[next(iter(ids.values()))]
        return self.http.get(f"/crowd/enter/{self.room}", params=ids)

    def begin(self, **ids: str) -> httpx.Response:
        shown = self.enter(**ids)
        assert shown.status_code == 200, shown.text
        return self.http.post(f"/crowd/enter/{self.room}", data={"ticket": ticket(shown), "consent": "yes"})

    def work(self, person: str, quality: int = 4) -> None:
        name = f"{worker_pseudonym(KEY, self.study.name, 'link', person)}-{self.room}"
        (user,) = [user for user in self.argilla.users() if user.username == name]
        (dataset,) = [one.id for (_, title), one in self.argilla.datasets().items() if title.endswith(self.room)]
        for record in pending(self.argilla, user, dataset):
            answer(self.argilla, user, record, "submitted", quality=quality, fluency=5)

    def close(self) -> None:
        for browser in self.browsers.values():
            browser.close()

    def confirm(self, *people: str) -> None:
        file = self.study.scratch / "people.csv"
        file.write_text("\n".join(["participantId", *people]), encoding="utf-8")
        self.step(lambda campaign: campaign.platform.confirm(file))

    def lists(self) -> list[list[dict[str, str]]]:
        self.platform().write_lists()
        files = sorted((self.study.scratch / "payments").glob("live-*.csv"))
        return [list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines())) for file in files]


@pytest.fixture
def site(argilla: Argilla, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """By CloudResearch Connect's names, but where a test says otherwise."""
    link = getattr(request, "param", {"preset": "connect", "complete": END})
    name = f"link-{int(sha256(request.node.name.encode()).hexdigest()[:7], 16)}"
    made = Site(linked(tmp_path, argilla, name, **link), argilla)
    assert made.step(lambda campaign: campaign.launch())
    yield made
    made.close()


def ids(person: str, session: str = "") -> dict[str, str]:
    return {"participantId": person, "assignmentId": session or f"a-{person}-{next(SESSIONS)}"}


def approve(campaign: CrowdCampaign) -> None:
    """Pay everybody, whatever speaks against it: who rates every pair alike fails the controls."""
    judging.approve(campaign, [work.submission.submission_id for work in campaign.ledger.work()], "a trial")


def test_people_rate_go_back_and_are_paid_once_by_lists(site: Site, home: server.Home) -> None:
    for person in ("ayda1", "BOB-2"):
        assert "Bearer" in site.begin(**ids(person)).text
        assert "6 pairs are still to be rated" in site.http.get(f"/crowd/enter/{site.room}").text
        site.work(person)
        end = site.http.get(f"/crowd/enter/{site.room}").text
        assert f"https://connect.example.org/project/X1/complete?who={person}&amp;cc=" in end
        assert "Complete on CloudResearch Connect" in end and "Prolific" not in end
    assert "who=BOB-2&amp;cc=" in site.enter(**ids("BOB-2")).text  # who comes again
    site.step(collect)
    assert not len(CampaignRecords(site.study).all_ratings)  # nobody has said that they are the platform's
    people = site.study.scratch / "people.csv"
    people.write_text("participantId,state\nayda1,done\nBOB-2,done\nghost,returned\n", encoding="utf-8")
    site.step(lambda campaign: campaign.platform.confirm(people))
    site.step(collect)
    ratings = CampaignRecords(site.study).all_ratings
    assert len(ratings) == 2 * 6 * 2 and set(ratings["source"]) == {"link"} and not ratings["simulated"].any()
    site.step(approve)
    (first,) = site.lists()
    assert sorted((row["participant"], row["dollars"], row["kind"]) for row in first) == [
        ("BOB-2", "1.20", "reward"), ("ayda1", "1.20", "reward"),
    ]  # fmt: skip
    (offer,) = site.platform().account.offers.values()
    site.step(lambda campaign: campaign.bonus(campaign.ledger.work()[0], 33))
    assert [[row["kind"] for row in rows] for rows in site.lists()] == [["reward", "reward"], ["bonus"]]
    again = [list(rows) for rows in site.lists()]
    for file in (site.study.scratch / "payments").iterdir():
        file.unlink()
    assert site.lists() == again  # a list that is lost is written as it was
    with Ledger(site.study.scratch / LEDGER, site.study.name, "link", "live") as ledger:
        assert ledger.spent() == 2 * (120 + 30) + 33 + 9  # 25% of $1.20, and of $0.33 rounded up
    assert offer.places == 2
    for file in (home.path / "crowd").iterdir():  # ids, no hexadecimal numbers, are in the ledger and the account alone
        assert b"ayda1" not in file.read_bytes(), file


def test_forged_shared_and_too_many_are_refused(site: Site) -> None:
    for person in ("", "a b", "<script>", "=1+1", "-x", "x" * 200, "../etc"):
        shown = site.enter(**ids(person, "s1"))
        assert shown.status_code == 400 and "by the link that you were given" in shown.text
    assert site.enter(PROLIFIC_PID="a" * 24, STUDY_ID="b" * 24, SESSION_ID="c" * 24).status_code == 400
    assert site.enter(participantId="ayda1").status_code == 400  # no session
    assert "Bearer" in site.begin(**ids("ayda1", "hers")).text
    assert "Welcome back" in site.enter(**ids("ayda1", "again")).text  # a second start goes on with the first
    stolen = site.begin(**ids("eve", "hers"))
    assert stolen.status_code == 403 and "somebody else" in stolen.text
    assert "Bearer" in site.begin(**ids("bob")).text
    full = site.begin(**ids("carol"))  # two places, and two hold them
    assert full.status_code == 503 and "return your place on CloudResearch Connect" in full.text
    site.step(lambda campaign: campaign.platform.keep_out("dora"))
    assert site.begin(**ids("dora")).status_code == 403
    site.step(lambda campaign: campaign.close())
    assert site.begin(**ids("erin")).status_code == 503
    assert "Bearer" in site.begin(**ids("ayda1", "hers")).text  # who is at work may finish


@pytest.mark.parametrize("site", [{"preset": "mailing_list"}], indirect=True)
def test_a_mailing_list_has_a_signed_link_for_each_person(site: Site) -> None:
    (file,) = (site.study.scratch / "payments").glob("links-live-*.csv")
    assert file.stat().st_mode & 0o077 == 0
    links = [row["link"] for row in csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines())]
    assert len(set(links)) == 3
    first, second = ({name: values[0] for name, values in parse_qs(urlsplit(link).query).items()} for link in links[:2])
    assert "Bearer" in site.begin(**first).text
    for forged in (
        {**first, "participant": second["participant"]},
        {**first, "signature": "0" * 32},
        {"participant": "x"},
    ):
        assert site.enter(**forged).status_code == 400
    site.work(first["participant"])
    end = site.enter(**first).text
    assert "Your completion code is" in end and "<a " not in end  # nowhere to go
    site.browsers.pop(first["participant"]).close()
    assert "Your completion code is" in site.enter(**first).text  # the signature opens it in any browser
    site.step(collect)
    assert CampaignRecords(site.study).all_ratings["rater_id"].nunique() == 1  # the list is ours


def test_everybody_on_a_mailing_list_has_a_link_to_each_batch_whenever_a_launch_was_killed(tmp_path: Path) -> None:
    study = linked(tmp_path, SimpleNamespace(url="http://argilla.example.org"), "mail", 1, preset="mailing_list")

    def launched(invited: int, what: Callable[[CrowdCampaign], object], dies: str = "") -> int:
        """Run a command that may die, and return the links that there are then."""
        run(study, lambda: LinkPlatform(study, "live", KEY, NoRooms(), invited), what, 10**6, lambda at: at == dies)
        return sum(len(file.read_text().splitlines()) - 1 for file in (study.scratch / "payments").glob("links-*"))

    launch = CrowdCampaign.launch
    assert launched(50, launch, "before post") == 0
    assert launched(0, judging.finish) == 50  # another command settles what the launch began
    assert launched(60, launch) == 60 and launched(20, launch) == 60


def session_of(page: httpx.Response) -> dict[str, str]:
    (token,) = re.findall(r"Bearer [\w.-]+", page.text)
    return {"Authorization": token}


def status_of(site: Site, home: server.Home, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints: `status` without words."""
    options = ["--study", str(site.study.file), "--exports", str(site.study.folder.parent), "--data", str(home.path)]
    with pytest.raises(SystemExit) as ended:
        cli.run(lambda: commands.run(list(words) or ["crowd", "status", *options]))
    shown = capsys.readouterr()
    assert not ended.value.code, shown.err
    return shown.out


@pytest.mark.parametrize("site", [SONA], indirect=True)
@pytest.mark.parametrize("finished", [False, True])
def test_a_guessed_id_opens_nothing_in_another_browser_until_it_is_released(
    site: Site, home: server.Home, capsys: pytest.CaptureFixture[str], finished: bool
) -> None:
    begun = site.begin(survey_code="20001")
    hers = session_of(begun)
    cookie = site.browsers["20001"].cookies.jar
    assert [(one.path, one.has_nonstandard_attr("HttpOnly")) for one in cookie] == [(f"/crowd/enter/{site.room}", True)]
    assert "SameSite=lax" in begun.headers["Set-Cookie"] and "Secure" not in begun.headers["Set-Cookie"]
    address, behind = f"{site.argilla.url}/crowd/enter/{site.room}?survey_code=1", {"X-Forwarded-Proto": "https"}
    assert "; Secure" in httpx.get(address, headers=behind, trust_env=False).headers["Set-Cookie"]
    me = site.http.get("/api/v1/me", headers=hers).json()
    if finished:
        site.work("20001")
    (key,) = (user.api_key for user in site.argilla.users() if user.username == me["username"])
    mine = site.browsers.pop("20001")

    stranger = site.enter(survey_code="20001")
    assert stranger.status_code == 403 and "in another browser" in stranger.text
    assert not any(word in stranger.text for word in ("ticket", "Bearer", "webstudy", "pairs", key))
    worker = worker_pseudonym(KEY, site.study.name, "link", "20001")
    (line,) = (line for line in status_of(site, home, capsys).splitlines() if "another browser" in line)
    assert worker in line and "[live link]" in line
    assert site.http.get(f"/crowd/enter/{site.room}").status_code == 400  # nor without an id
    assert ("webstudy" if finished else "Welcome back") in mine.get(f"/crowd/enter/{site.room}").text
    assert site.http.get("/api/v1/me", headers=hers).is_success

    assert f"{worker} may go on" in status_of(site, home, capsys, *shlex.split(line[line.index("crowd release") :]))
    assert "another browser" not in status_of(site, home, capsys)
    hers_by_key = {"X-Argilla-Api-Key": key}
    for one in (hers, hers_by_key):
        assert site.http.get("/api/v1/me", headers=one).status_code == 401  # who began is signed out
    shown = site.enter(survey_code="20001")
    assert "webstudy" not in shown.text and "still to be rated" not in shown.text  # not before somebody begins
    theirs = session_of(site.http.post(f"/crowd/enter/{site.room}", data={"ticket": ticket(shown), "consent": "yes"}))
    assert site.http.get("/api/v1/me", headers=theirs).json()["username"] == me["username"]
    assert site.http.get("/api/v1/me", headers=hers_by_key).status_code == 401
    assert ("webstudy" if finished else "Welcome back") in site.http.get(f"/crowd/enter/{site.room}").text
    assert mine.get(f"/crowd/enter/{site.room}").status_code == 403
    mine.close()


@pytest.mark.parametrize("site", [SONA], indirect=True)
def test_of_two_browsers_at_once_one_begins(site: Site) -> None:
    browsers = [site.browsers[str(number)] for number in range(4)]
    forms = [
        {"ticket": ticket(one.get(f"/crowd/enter/{site.room}", params={"survey_code": "20001"})), "consent": "yes"}
        for one in browsers
    ]
    before = [dict(one.cookies) for one in browsers]
    no_cookie = httpx.post(f"{site.argilla.url}/crowd/enter/{site.room}", data=forms.pop(), trust_env=False)
    assert no_cookie.status_code == 403 and "allow cookies" in no_cookie.text
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sent = list(pool.map(lambda one, form: one.post(f"/crowd/enter/{site.room}", data=form), browsers[:3], forms))
    assert sorted(one.status_code for one in sent) == [200, 403, 403]
    assert ["Bearer" in one.text for one in sent] == [one.is_success for one in sent]
    # Where the server died before its answer came, the cookie of the page before goes on.
    address = f"{site.argilla.url}/crowd/enter/{site.room}?survey_code=20001"
    again = [httpx.get(address, cookies=cookies, trust_env=False) for cookies in before[:3]]
    assert [("Welcome back" in one.text, one.status_code) for one in again] == [
        (one.is_success, one.status_code) for one in sent
    ]


def test_a_backup_holds_who_entered(site: Site, home: server.Home, tmp_path: Path) -> None:
    site.begin(**ids("ayda1"))
    packed, _ = backup(home, tmp_path)
    other = server.Home(tmp_path / "other")
    restore(other, packed)
    books = [of.path / "crowd" / "entries.db" for of in (home, other)]
    entries = [sqlite3.connect(book).execute("SELECT * FROM entries").fetchall() for book in books]
    assert entries[0] and entries[0] == entries[1]


def test_launch_opens_the_room_of_an_offered_batch_that_the_server_lost(site: Site, home: server.Home) -> None:
    before = read_rooms(home)
    lost = {room: entry for room, entry in before.items() if room != site.room}
    rooms_file(home).write_text(json.dumps({"version": 1, "rooms": lost}), encoding="utf-8")
    assert site.enter(**ids("ayda1")).status_code == 404
    assert site.step(lambda campaign: campaign.launch())
    assert read_rooms(home) == before
    assert "Bearer" in site.begin(**ids("ayda1")).text


def test_two_studies_on_the_same_pairs_share_no_room(site: Site, tmp_path: Path, home: server.Home) -> None:
    link = {"preset": "connect", "complete": "https://second.example.org/done"}
    name, folder = f"{site.study.name}b", tmp_path / "second"
    folder.mkdir()
    study = linked(folder, site.argilla, name, seed=site.study.sample.seed, **link)
    second = Site(study, site.argilla)
    assert second.step(lambda campaign: campaign.launch())
    assert [pair.key for pair in CampaignRecords(study).pairs] == [
        pair.key for pair in CampaignRecords(site.study).pairs
    ]
    hers = ids("ayda1")
    for one in (site, second):
        assert "Bearer" in one.begin(**hers).text
        one.work("ayda1")
    assert "connect.example.org" in site.enter(**hers).text
    assert "second.example.org" in second.enter(**hers).text
    site.confirm("ayda1")
    site.step(collect)
    assert len(CampaignRecords(site.study).all_ratings) == 12
    second.step(collect)  # nobody has said that they are this one's
    assert not len(CampaignRecords(study).all_ratings)
    site.step(lambda campaign: campaign.close())
    assert "Bearer" in second.begin(**ids("bob")).text
    second.close()

    (third := tmp_path / "third").mkdir()
    before = read_rooms(home)
    twin = Site(linked(third, site.argilla, site.study.name, **link), site.argilla)
    refusals: list[str] = []

    def launch(campaign: CrowdCampaign) -> None:
        done = campaign.launch(0, lambda: begin_offering(campaign.records, str(campaign.name), campaign.rubric))
        refusals.extend(done.troubles)

    assert twin.step(launch)
    assert len(refusals) == 1 and f"another study named {site.study.name!r}" in refusals[0]
    assert read_rooms(home) == before
    twin.close()


def test_who_gives_up_is_returned_and_their_place_is_free(site: Site, home: server.Home) -> None:
    site.begin(**ids("ayda1"))
    site.confirm("ayda1")
    site.step(lambda campaign: campaign.refresh())
    late = (datetime.now(UTC) - timedelta(hours=8)).isoformat(timespec="seconds")
    with sqlite3.connect(home.path / "crowd" / "entries.db") as book:
        book.execute("UPDATE entries SET consented_at = ? WHERE room = ?", (late, site.room))
    site.step(lambda campaign: campaign.refresh())
    with Ledger(site.study.scratch / LEDGER, site.study.name, "link", "live") as ledger:
        assert [work.submission.state for work in ledger.work()] == ["returned"]
    admitted = json.loads((home.path / "crowd" / "admitted.json").read_text(encoding="utf-8"))["rooms"][site.room]
    assert admitted["places"] == 3  # two, and the one that was given up
    for person in ("bob", "carol"):
        assert "Bearer" in site.begin(**ids(person)).text
    assert site.begin(**ids("dora")).status_code == 503


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("ayda1\nayda2\n", "has no column 'participantId' or 'participant'"),
        ("Participant\n=cmd()\n", "line 2: '=cmd()' in column 'Participant' is not a participant's id"),
        ('participantid\n"a', "cannot be read as a CSV"),
    ],
)
def test_a_file_of_participants_that_is_none_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=says.replace("(", r"\(").replace(")", r"\)")):
        read_participants(path, "participantId")


def test_a_link_that_runs_a_script_is_refused() -> None:
    with pytest.raises(ValidationError, match="complete"):
        LinkSpec(preset="sona", complete="javascript:alert(1)")


@pytest.mark.parametrize("site", [{"preset": "generic"}], indirect=True)
def test_links_of_any_platform_have_plain_names(site: Site) -> None:
    assert "Bearer" in site.begin(participant="ayda1", session="s1").text
    assert site.enter(participant="ayda1").status_code == 400  # each link says its session, which is one person's
    assert site.begin(participant="eve", session="s1").status_code == 403

"""Annotators on the rating page of a really started Argilla, and what is collected of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from annotation import server
from annotation.argilla.accounts import published, revoke_link
from annotation.argilla.client import Argilla, attach
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.names import account_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.commands.annotators import invite
from annotation.human.order import pages_shown
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.human.simulated import read_items
from annotation.sampling.sample import draw_sample
from annotation.server.plugin.plumbline_argilla.rate import LINK
from annotation.verdicts.acceptance import accept, answers_lines
from plumbline.fields import fields_of
from plumbline.manifest import Manifest
from plumbline.study import Study
from tests.annotation.argilla_site import term
from tests.annotation.campaigns import ALONE, answer, dataset, pending, rater, small, systems
from tests.annotation.human.studies import study_of
from tests.axe import findings
from tests.conftest import browsing, make_variant

Make = Callable[..., Study]
pytestmark = pytest.mark.browser
CONTACT = "the lab <lab@example.org>"


@pytest.fixture
def study(variant: Make, request: pytest.FixtureRequest) -> Study:
    name = "page-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
    raters = {"per_pair": 3, "contact": CONTACT}
    return small(variant, name, transformations=["paraphrasing"], raters=raters)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Tasks that people do, whose candidates stand together."""
    parts = ({"dataset": data, "items": 2, "raters": 2, "candidates": 6} for data in ("search", "bitext"))
    study = study_of(tmp_path_factory.mktemp("searched"), *parts, name="searched")
    draw_sample(study)
    return study


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two systems, whose outputs of an original stand on one page."""
    return systems(tmp_path_factory.mktemp("beside"), "zebu", "okapi")


@pytest.fixture(scope="module")
def chromium(searched: Study, beside: Study, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests, begun once all outputs are made: generating has an event loop of its own, as it has."""
    small(make_variant(tmp_path_factory.mktemp("made")), "made", transformations=["paraphrasing"])
    with browsing() as browser:
        yield browser


@pytest.fixture
def user(argilla: Argilla, study: Study) -> server.User:
    account = rater(argilla, f"{study.name}-rater")
    publish(study, argilla)
    return account


def sign_in(page: Page, url: str, user: server.User) -> None:
    page.goto(f"{url}/work")
    page.get_by_label("User name").fill(user.username)
    page.get_by_label("Password").fill(user.password)
    page.get_by_role("button", name="Sign in").click()


def begin(page: Page, url: str, user: server.User, dataset_id: str) -> None:
    """Sign in, and open a dataset past its instructions."""
    sign_in(page, url, user)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.goto(f"{url}/rate/{dataset_id}")
    page.get_by_role("button", name="Begin").click()


def rate(page: Page, *points: int) -> None:
    for point in points:
        page.keyboard.press(str(point))
    page.keyboard.press("Enter")


def turn(page: Page, number: int, of: int) -> None:
    expect(page.locator("#turn")).to_have_text(f"Pair {number} of {of}")


def responses(argilla: Argilla, dataset_id: str) -> dict[str, list[dict[str, Any]]]:
    """What Argilla has, by pair."""
    return {record["external_id"]: record.get("responses") or [] for record in argilla.records(dataset_id)}


def test_an_answer_on_its_way_while_the_page_is_loaded_anew_counts_once(
    argilla: Argilla, study: Study, user: server.User, page: Page
) -> None:
    begin(page, argilla.url, user, dataset(study, argilla))
    turn(page, 1, 4)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
            return
        held.append(route)
        route.fetch(max_retries=3)  # it arrives, and its reply does not

    page.route(re.compile("/records/.*/responses$"), hold)
    rate(page, 4, 5)
    turn(page, 2, 4)
    rate(page, 3, 3)
    turn(page, 3, 4)
    page.get_by_role("button", name="Back").click()
    turn(page, 2, 4)
    page.get_by_role("button", name="Back").click()
    turn(page, 1, 4)
    page.get_by_role("radiogroup", name="Fluency").get_by_role("radio", name="2").check()
    page.keyboard.press("Enter")  # waits behind the second pair's, while the first one's reply is out
    turn(page, 2, 4)
    assert len(held) == 1
    first = held[0].request.url.split("/")[-2]
    page.add_init_script(f"""const keys = Object.keys, last = key => key.endsWith("{first}");
        Object.keys = of => of === localStorage ? keys(of).sort((a, b) => last(a) - last(b)) : keys(of)""")
    page.reload()
    turn(page, 3, 4)
    expect(page.locator("#progress")).to_contain_text("2 of 4")


def test_what_a_lost_reply_and_a_lost_network_leave(
    argilla: Argilla, study: Study, user: server.User, page: Page
) -> None:
    dataset_id = dataset(study, argilla)
    begin(page, argilla.url, user, dataset_id)
    turn(page, 1, 4)
    lost: list[str] = []

    def lose(route: Route) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.request.url)
        route.fetch(max_retries=3)  # it arrives, and its reply does not
        route.abort()

    page.route(re.compile("/records/.*/responses$"), lose)
    rate(page, 4, 4)
    turn(page, 2, 4)
    page.context.set_offline(True)
    rate(page, 3, 3)
    turn(page, 3, 4)
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_text("There is no connection.")).to_be_hidden(timeout=40_000)
    rate(page, 2, 2)
    turn(page, 4, 4)
    rate(page, 1, 1)
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    given = responses(argilla, dataset_id)
    assert lost and all(len(each) == 1 and each[0]["status"] == "submitted" for each in given.values())
    assert sorted(each[0]["values"]["quality"]["value"] for each in given.values()) == [1, 2, 3, 4]


def test_an_answer_that_is_refused_after_a_lost_reply_is_not_sent_for_ever(
    argilla: Argilla, study: Study, user: server.User, page: Page
) -> None:
    dataset_id, sent = dataset(study, argilla), list[str]()
    begin(page, argilla.url, user, dataset_id)
    turn(page, 1, 4)

    def lose(route: Route) -> None:
        sent.append(str(route.request.post_data))
        if len(sent) > 1:
            route.continue_(post_data=sent[-1].replace(":4}", ":9}"))
            return
        route.fetch(max_retries=3)
        route.abort()

    page.route(re.compile("/responses(/[^/]*)?$"), lose)
    rate(page, 4, 4)
    expect(page.get_by_text("An answer was not taken")).to_be_visible()
    assert [each[0]["values"]["quality"]["value"] for each in responses(argilla, dataset_id).values() if each] == [4]


def test_a_pair_withdrawn_while_shown_and_a_session_that_ends(
    argilla: Argilla, study: Study, user: server.User, page: Page
) -> None:
    dataset_id = dataset(study, argilla)
    first = pending(argilla, user, dataset_id)[0]
    begin(page, argilla.url, user, dataset_id)
    turn(page, 1, 4)
    argilla.request("DELETE", f"/records/{first['id']}")
    rate(page, 4, 4)
    expect(page.get_by_text("An answer was not taken")).to_be_visible()
    token = page.evaluate("localStorage.getItem('auth._token.local')")
    page.evaluate("localStorage.removeItem('auth._token.local')")
    rate(page, 3, 3)
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    assert token and page.url.startswith(f"{argilla.url}/work?to=")
    page.get_by_label("User name").fill(user.username)
    page.get_by_label("Password").fill(user.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#turn")).to_be_attached()
    expect(page.locator("#progress")).to_contain_text("1 of 3")
    assert sorted(len(each) for each in responses(argilla, dataset_id).values()) == [0, 0, 1]


def test_nothing_of_one_rater_goes_out_in_the_name_of_another(
    argilla: Argilla, study: Study, user: server.User, page: Page
) -> None:
    one, two = user, rater(argilla, f"{study.name}-other")
    publish(study, argilla)
    dataset_id = dataset(study, argilla)
    begin(page, argilla.url, one, dataset_id)
    turn(page, 1, 4)
    other = page.context.new_page()
    other.goto(f"{argilla.url}/work")
    other.get_by_role("button", name="Sign out").click()
    sign_in(other, argilla.url, two)
    expect(other.get_by_role("button", name="Sign out")).to_be_visible()
    rate(page, 5, 5)
    expect(page).to_have_url(re.compile("/work"))
    assert not any(responses(argilla, dataset_id).values())
    other.close()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, argilla.url, one)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.goto(f"{argilla.url}/rate/{dataset_id}")
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    given = [each for each in responses(argilla, dataset_id).values() if each]
    assert [each[0]["user_id"] for each in given] == [argilla.request("GET", "/me", api_key=one.api_key)["id"]]


def test_candidates_stand_in_an_order_of_each_rater_and_answers_name_them(
    argilla: Argilla, searched: Study, chromium: Browser
) -> None:
    """What is answered below a place is about the candidate that stood there, for each of two raters."""
    people = [rater(argilla, f"in-order-{number}") for number in range(2)]
    publish(searched, argilla)
    datasets = {queue.pool: one.id for queue, one in published(CampaignRecords(searched), argilla).items()}
    grades = dict[tuple[str, str], int]()  # by rater and text
    chosen = dict[tuple[str, str], str]()  # by rater and source
    orders = set[tuple[str, ...]]()
    for person in people:
        page = chromium.new_page()
        begin(page, argilla.url, person, datasets["search"])
        for number in (1, 2):
            expect(page.locator("#turn")).to_have_text(re.compile(f" {number} of 4$"))
            texts = page.locator("#item ol.list > li").all_inner_texts()
            titles = page.locator("#item legend").all_inner_texts()
            assert titles[:6] == [f"Passage {place}: of how much use is it?" for place in range(1, 7)]
            grades |= {(person.username, text): place % 4 for place, text in enumerate(texts)}
            orders.add(tuple(texts))
            rate(page, *(place % 4 + 1 for place in range(6)))
        page.wait_for_url(f"{argilla.url}/rate/{datasets['bitext']}")  # once both answers are stored
        page.get_by_role("button", name="Begin").click()
        for number in (1, 2):
            expect(page.locator("#turn")).to_have_text(re.compile(f" {number + 2} of 4$"))
            source = page.locator("#item p.text").inner_text()
            texts = page.locator("#item ol.list > li").all_inner_texts()
            assert page.locator("#item .point").all_inner_texts()[1].split()[-1] == "2"
            chosen[person.username, source] = texts[1]
            rate(page, 2)
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        page.close()
    # One in 720 raters has the other's.
    drawn = argilla.request("GET", f"/datasets/{datasets['search']}/orders")["orders"]
    assert len(drawn) == 2 and len(orders) == 2 * len(set(map(tuple, drawn.values())))  # of two items
    collect(searched, argilla)
    answers_lines(accept(searched))
    answers = Manifest.of(searched).frame(ANSWERS, HumanAnswer, "accept")
    names = {account_pseudonym(searched.name, user.id, simulated=False): user.username for user in argilla.users()}
    texts = {pair.pair_id: {one.name: one.value for one in fields_of(pair)} for pair in CampaignRecords(searched).shown}
    items = {(item.task, item.item): item for item in read_items(searched)}
    for one in answers.itertuples():
        item, rater_name = items[one.task, one.item], names[one.rater_id]
        fields = texts[item.pair_id]
        if one.task == "search":
            assert grades[rater_name, fields["candidates"][item.shown.index(one.candidate)]] == one.value
        elif one.value == 1:
            (source,) = (value for name, value in fields.items() if name != "candidates")
            assert chosen[rater_name, source] == fields["candidates"][item.shown.index(one.candidate)]
    assert Counter(answers["task"]) == {"search": 2 * 2 * 6, "bitext": 2 * 2}


def test_outputs_of_an_original_stand_together_and_nothing_tells_their_systems(
    argilla: Argilla, beside: Study, chromium: Browser
) -> None:
    """Answers are about the output above them; all pages have as many; no reply and no address names what made one."""
    people = [rater(argilla, f"beside-{number}") for number in range(2)]
    publish(beside, argilla)
    records, (one,) = CampaignRecords(beside), published(CampaignRecords(beside), argilla).values()
    shown, first, read = records.shown, Counter[bool](), list[str]()
    chosen = dict[tuple[str, str, str], tuple[int, int, str]]()  # by rater and texts: two answers, and the place

    def keep(route: Route) -> None:
        reply = route.fetch(max_retries=3)
        read.extend([route.request.url, reply.text()])
        route.fulfill(response=reply)

    for person in people:
        context = chromium.new_context()
        page = context.new_page()
        page.route(re.compile("/api/"), keep)
        sign_in(page, argilla.url, person)
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        page.set_extra_http_headers({"Accept-Language": "de"})  # the queue is English all the same, to its last page
        page.goto(f"{argilla.url}/dataset/{one.id}/annotation-mode?status=pending")  # Argilla's own page
        expect(page).to_have_url(f"{argilla.url}/rate/{one.id}")
        page.get_by_role("button", name="Begin").click()
        expect(page.get_by_role("heading", level=1)).not_to_contain_text("ystems")  # a word of the study file
        for number in range(1, len(shown), 2):
            expect(page.locator("#turn")).to_have_text(f"Pair {number}–{number + 1} of {len(shown)}")
            original, *outputs = page.locator("#item .text").all_inner_texts()
            marks = [(len(original + text) % 5 + 1, len(text) % 4 + 1) for text in outputs]
            for place, (text, mark) in enumerate(zip(outputs, marks, strict=True), 1):
                chosen[person.username, original, text] = *mark, str(place)
            first["Indeed!" in outputs[0]] += 1
            read.append(page.content())
            rate(page, *marks[0], *marks[1])
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        expect(page.get_by_role("link", name="Your work")).to_be_visible()
        read.append(page.evaluate("JSON.stringify([localStorage, sessionStorage])"))
        context.close()
        first_record = f"/records/{next(iter(argilla.records(one.id)))['id']}"  # and what else Argilla's own page reads
        parts = ("", "/fields", "/questions", "/vectors-settings", "/progress")
        for path in ("/me/datasets", f"/me/datasets/{one.id}/metadata-properties", first_record,
                     *(f"/datasets/{one.id}{part}" for part in parts)):  # fmt: skip
            read.append(json.dumps(argilla.request("GET", path, api_key=person.api_key)))
    assert len(first) == 2  # either stands first now and then
    secrets = {"zebu", "okapi", *pages_shown(beside, shown).values()}
    secrets |= {value for pair in shown for value in (pair.pair_id, pair.key, pair.generator_hash)}
    assert any("Indeed!" in text for text in read)
    assert not [secret for secret in secrets for text in read if secret in text]
    ratings = [collect(beside, argilla), CampaignRecords(beside).control_ratings]
    names = {account_pseudonym(beside.name, user.id, simulated=False): user.username for user in argilla.users()}
    texts = {pair.pair_id: (pair.original, pair.transformed) for pair in shown}
    twice = {pair_id for pair in shown if pair.repeats for pair_id in (pair.pair_id, pair.repeats)}
    assert [len(frame) for frame in ratings] == [2 * 2 * 6 * 2, 2 * 2 * (2 + 2)]
    for row in (row for frame in ratings for row in frame.itertuples()):
        *marks, place = chosen[names[row.rater_id], *texts[row.pair_id]]
        assert row.value == marks[row.question == "fluency"]
        assert row.order == place or row.pair_id in twice


def letter(argilla: Argilla, home: server.Home, study: Study, user: server.User) -> str:
    """A new link, out of the only letter, which has no password."""
    assert argilla.connection is not None
    (sent,) = invite(study, argilla.connection, home, [user.username], links="all")
    assert user.password not in sent.text and user.password not in repr(sent)
    (link,) = re.findall(rf"http\S+{LINK}#\S+", sent.text)
    return str(link)


def opened(chromium: Browser, link: str) -> Page:
    """A link in a browser of its own, whose history has no token."""
    page = chromium.new_context().new_page()
    page.goto(link)
    expect(page).to_have_url(link.partition("#")[0])
    return page


def go_on(page: Page) -> None:
    page.get_by_role("button", name="Go on").click()


def test_a_link_signs_its_rater_in_and_binds_the_first_browser(
    argilla: Argilla, home: server.Home, study: Study, user: server.User, chromium: Browser
) -> None:
    """A reply that is lost, another browser, a session that ends; the account's key opens nothing."""
    link = letter(argilla, home, study, user)
    mine = opened(chromium, link)
    expect(mine.get_by_role("definition").filter(has_text=study.name)).to_be_visible()
    assert findings(mine) == []

    def lose(route: Route) -> None:
        route.fetch(max_retries=3)  # the server binds the browser, and the reply does not arrive
        route.abort()

    mine.route(f"**{LINK}", lose, times=1)
    go_on(mine)
    expect(mine.get_by_text("The server does not answer")).to_be_visible()
    other = opened(chromium, link)
    go_on(other)
    expect(other.get_by_role("status")).to_have_text(
        re.compile(f"This link was used in another browser, and works only there. For a new one, ask .*{CONTACT}")
    )
    go_on(mine)
    expect(mine.get_by_role("button", name=f"Sign out ({user.username})")).to_be_visible()
    mine.get_by_role("link", name="Go on").click()
    mine.get_by_role("button", name="Begin").click()
    turn(mine, 1, 4)
    rate(mine, 4, 4)
    turn(mine, 2, 4)
    mine.evaluate("localStorage.removeItem('auth._token.local')")  # it ends after a day
    mine.goto(f"{argilla.url}/work")
    expect(mine.get_by_text("1 answered, 3 left.")).to_be_visible()
    key = {"X-Argilla-Api-Key": user.api_key}
    assert httpx.get(f"{argilla.url}/api/v1/me", headers=key, trust_env=False).status_code == 401


def test_a_link_ends_by_a_new_one_or_at_once_and_leaves_no_trace(
    argilla: Argilla, home: server.Home, study: Study, user: server.User, chromium: Browser
) -> None:
    first = letter(argilla, home, study, user)
    old = opened(chromium, first)
    go_on(old)
    expect(old.get_by_text("0 answered, 4 left.")).to_be_visible()
    second = letter(argilla, home, study, user)
    old.reload()
    expect(old.get_by_text("This link is no longer valid.")).to_be_visible()
    expect(old.get_by_label("Password")).to_be_visible()
    old.goto(first)
    go_on(old)
    expect(old.get_by_role("status")).to_contain_text("This link is no longer valid. For a new one, ask")
    old.goto(f"{argilla.url}{LINK}#x")  # another link in the same tab is a link like the first
    expect(old).to_have_url(f"{argilla.url}{LINK}")
    expect(old.get_by_role("button", name="Go on")).to_be_visible()
    new = opened(chromium, second)
    go_on(new)
    expect(new.get_by_text("0 answered, 4 left.")).to_be_visible()
    new.get_by_role("button", name="Sign out").click()
    expect(new.get_by_label("Password")).to_be_visible()
    new.reload()  # who signed out does not come back without the link
    expect(new.get_by_label("Password")).to_be_visible()
    new.goto(second)
    go_on(new)
    expect(new.get_by_text("0 answered, 4 left.")).to_be_visible()
    assert argilla.connection is not None
    assert [revoke_link(argilla.connection, user.username) for _ in range(2)] == [True, False]
    new.reload()
    expect(new.get_by_text("This link is no longer valid.")).to_be_visible()
    name, signature = second.partition("#")[2].split(".")
    cookies = {one["name"]: one["value"] for one in new.context.cookies(f"{argilla.url}{LINK}")}
    for forged in (f"{name}.{signature[::-1]}", f"{name}.", "x", "."):
        answer = httpx.post(f"{argilla.url}{LINK}", data={"token": forged}, cookies=cookies, trust_env=False)
        assert answer.status_code == 410
    files = [home.log, *(file for file in study.folder.rglob("*") if file.is_file())]
    assert not [file for file in files if name.encode() in file.read_bytes()]


def test_an_old_draft_of_another_browser_leaves_an_answer_as_it_is(
    argilla: Argilla, study: Study, user: server.User, page: Page, chromium: Browser
) -> None:
    dataset_id = dataset(study, argilla)
    begin(page, argilla.url, user, dataset_id)
    turn(page, 1, 4)
    page.context.set_offline(True)
    page.keyboard.press("1")  # on a phone: a draft, and no connection
    page.wait_for_timeout(6000)
    other = chromium.new_context().new_page()
    begin(other, argilla.url, user, dataset_id)
    turn(other, 1, 4)
    rate(other, 4, 5)
    turn(other, 2, 4)
    expect(other.locator("#progress")).to_contain_text("1 of 4")
    other.context.close()
    page.context.set_offline(False)
    page.wait_for_timeout(8000)
    given = [each[0] for each in responses(argilla, dataset_id).values() if each]
    assert [(one["status"], one["values"]["quality"]["value"]) for one in given] == [("submitted", 4)]


def test_five_raters_at_once_lose_nothing_and_answer_nothing_twice(
    argilla: Argilla, study: Study, chromium: Browser
) -> None:
    """Each of four pairs wants three of them."""
    accounts = [rater(argilla, f"crowded-{number}") for number in range(5)]
    publish(study, argilla)
    dataset_id = dataset(study, argilla)
    pages = [chromium.new_context().new_page() for _ in accounts]
    for page, account in zip(pages, accounts, strict=True):
        begin(page, argilla.url, account, dataset_id)
    # A page that waits for its next pairs shows none for a moment.
    while unfinished := [page for page in pages if not page.get_by_role("heading", name="Thank you").is_visible()]:
        for page in unfinished:
            if page.locator("#item").is_visible():
                rate(page, 3, 4)
            page.wait_for_timeout(50)
    for page in pages:
        page.context.close()
    given = responses(argilla, dataset_id)
    assert len(given) == 4 and all(len(each) == 3 for each in given.values())
    assert all(len({response["user_id"] for response in each}) == 3 for each in given.values())
    ratings = collect(study, argilla)
    assert len(ratings) == 4 * 3 * 2 and (ratings["status"] == "submitted").all()


def test_a_server_that_is_restarted_between_two_pairs_gets_every_answer(
    study: Study, tmp_path: Path, page: Page
) -> None:
    home = server.Home(tmp_path / "home")
    with server.running(home) as connection, attach(connection) as argilla:
        account = rater(argilla, "patient")
        publish(study, argilla)
        dataset_id, port = dataset(study, argilla), urlsplit(connection.url).port
        begin(page, connection.url, account, dataset_id)
        turn(page, 1, 4)
    rate(page, 4, 4)
    turn(page, 2, 4)
    expect(page.get_by_text("There is no connection.")).to_be_visible()
    with server.running(home, port) as connection, attach(connection) as argilla:
        expect(page.get_by_text("There is no connection.")).to_be_hidden(timeout=40_000)
        for number in (2, 3, 4):
            turn(page, number, 4)
            rate(page, number, number)
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        given = responses(argilla, dataset_id)
    assert sorted(each[0]["values"]["quality"]["value"] for each in given.values()) == [2, 3, 4, 4]
    assert all(len(each) == 1 for each in given.values())


def test_a_rater_who_is_taken_out_is_told_and_keeps_what_was_stored_and_others_get_the_rest(
    argilla: Argilla, study: Study, user: server.User, page: Page, chromium: Browser
) -> None:
    dataset_id, others = dataset(study, argilla), [rater(argilla, f"staying-{number}") for number in range(3)]
    publish(study, argilla)
    begin(page, argilla.url, user, dataset_id)
    turn(page, 1, 4)
    pending = [term({"entity": entity, "property": "status"}, "pending") for entity in ("response", "record")]
    queue = {"filters": {"type": "and", "and": pending}}
    for other in others[:2]:  # who have all four pairs on their screens
        argilla.request("POST", f"/me/datasets/{dataset_id}/records/search", api_key=other.api_key, json=queue)
    third = chromium.new_context().new_page()
    sign_in(third, argilla.url, others[2])
    expect(third.get_by_text("0 answered. Others have the rest now; some may come back to you.")).to_be_visible()
    rate(page, 4, 4)
    turn(page, 2, 4)
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    workspace = argilla.request("GET", f"/datasets/{dataset_id}")["workspace_id"]
    reader = argilla.request("GET", "/me", api_key=user.api_key)["id"]
    argilla.request("DELETE", f"/workspaces/{workspace}/users/{reader}")
    third.reload()
    expect(third.get_by_text("0 answered, 3 left.")).to_be_visible()  # the stored answer is one of three
    third.context.close()
    rate(page, 3, 3)
    expect(page.get_by_text("An answer was not taken")).to_be_visible()
    assert sum(len(each) for each in responses(argilla, dataset_id).values()) == 1


GOOD = {"quality": {"value": 3}, "fluency": {"value": 3}}


ODD: list[Any] = [
    0, 6, -1, 3.5, 10**30, True, None, "3", "", [], {}, [3], {"value": 3}, "NaN", "Infinity", "\u0663", "\ud800",
    "a\0b", "<script>alert(1)</script>", "x" * 10_000,
]  # fmt: skip


RAW = [
    '{"status": "submitted", "values": {"quality": {"value": NaN}, "fluency": {"value": 3}}}',
    '{"status": "submitted", "values": {"quality": {"value": Infinity}, "fluency": {"value": 3}}}',
    '{"status": "submitted", "values": {"quality": {"value": 1e400}, "fluency": {"value": 3}}}',
    *(
        f'{{"status": "submitted", "values": {{"quality": {{"value": {"9" * digits}}}, "fluency": {{"value": 3}}}}}}'
        for digits in (400, 5000)
    ),
    '{"status": "submitted"}', '{"status": "submitted", "values": null}', '{"status": "submitted", "values": {}}',
    '{"status": "nonsense", "values": {}}', '{"values": {}}', "[]", "null", "", "{", '"x"', "[" * 100_000,
    '{"status": "submitted", "values": []}', '{"status": "submitted", "values": {"quality": 3, "fluency": 3}}',
]  # fmt: skip


def odd_bodies() -> list[str]:
    bodies = list(RAW)
    for value in ODD:
        bodies.append(json.dumps({"status": "submitted", "values": {**GOOD, "quality": {"value": value}}}))
    for name in ("", "nonsense", "__proto__", "a" * 10_000, "\ud800", "quality\0", "<b>", "user_id"):
        bodies.append(json.dumps({"status": "submitted", "values": {**GOOD, name: {"value": 3}}}))
    for value in (3, None, [], {}, True, "\ud800", "a\0b"):
        bodies.append(json.dumps({"status": "submitted", "values": {**GOOD, "comment": {"value": value}}}))
    return bodies


def test_no_answer_by_the_api_breaks_the_server_or_what_is_collected(
    argilla: Argilla, study: Study, user: server.User
) -> None:
    dataset_id = dataset(study, argilla)
    records = pending(argilla, user, dataset_id)
    headers = {"X-Argilla-Api-Key": user.api_key, "Content-Type": "application/json"}
    http = httpx.Client(base_url=argilla.url, trust_env=False, timeout=60, headers=headers)
    first = records[0]["id"]
    for body in odd_bodies():
        said = http.post(f"/api/v1/records/{first}/responses", content=body)
        assert said.status_code < 500, (said.status_code, body[:100], said.text[:200])
        if said.status_code in (200, 201):
            reply = http.delete(f"/api/v1/responses/{said.json()['id']}")
            assert reply.status_code == 200, (body[:100], reply.text)
        bulk = body[:-1] + f', "record_id": "{first}"}}' if body.startswith('{"') else body
        said = http.post("/api/v1/me/responses/bulk", content=f'{{"items": [{bulk}]}}')
        assert said.status_code < 500, (said.status_code, body[:100], said.text[:200])
        if said.status_code in (200, 201) and (item := said.json()["items"][0]["item"]):
            http.delete(f"/api/v1/responses/{item['id']}")
        list(argilla.records(dataset_id))
    assert not any(responses(argilla, dataset_id).values())
    odd = "=1+1 <b>\u202e\0"
    endless, long = odd + "x" * 1_000_000, odd + "x" * 10_000
    for text, status in ((endless, 422), (long, 201)):
        values = {**GOOD, "comment": {"value": text}}
        said = http.post(f"/api/v1/records/{first}/responses", json={"status": "submitted", "values": values})
        assert said.status_code == status
    for record in records[1:]:
        answer(argilla, user, record, "submitted", quality=3, fluency=3)
    collected = collect(study, argilla)
    assert len(collected) == 8 and collected["comment"].str.len().max() == len(long)  # as it was stored


def test_queues_that_are_called_alike_have_the_studies_names_or_what_was_asked(
    argilla: Argilla, study: Study, user: server.User, variant: Make, page: Page
) -> None:
    crowded = small(variant, "crowded", transformations=["paraphrasing"], sample={"pairs": 8, **ALONE})
    sign_in(page, argilla.url, user)
    rows = page.get_by_role("rowheader")
    expect(rows).to_have_text([re.compile(r"^[^(]+$")])
    publish(crowded, argilla)
    page.reload()
    expect(rows).to_have_text([re.compile(r"\(crowded\)$"), re.compile(rf"\({study.name}\)$")])

    def as_one_study(route: Route) -> None:
        answer = route.fetch(max_retries=3)
        listed = answer.json()
        for number, item in enumerate(listed["items"]):
            item["metadata"]["rate"].update(study="one", asked=f"Request {number}")
        route.fulfill(response=answer, json=listed)

    page.route("**/api/v1/me/datasets", as_one_study)
    page.reload()
    expect(rows).to_have_text([re.compile(r"\(Request \d\)$")] * 2)

"""An annotator's day on Argilla's own page, from signing in to the end of the queue, and what is collected of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from annotation import server
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.dataset import Words
from annotation.argilla.publish import publish
from annotation.campaign.rubric import load_rubric
from annotation.questions.wordings import ASKED
from annotation.sampling.queues import Queue
from annotation.sampling.sample import draw_sample
from plumbline.records import Pair
from plumbline.study import Study
from tests.annotation.campaigns import ALONE, answer, dataset, pending, rater
from tests.shared import generate_once

#: The first where the page has learnt of the own progress before it looks for the next record.
ALL_DONE = re.compile("The task is completed|no pending records to annotate")


@pytest.fixture
def study(variant: Callable[..., Study], monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study whose annotators rate on Argilla's own page, as on another server."""
    monkeypatch.setattr("annotation.argilla.publish.has_rating_page", lambda *_: False)
    sample, raters = {"pairs": 5, **ALONE}, {"per_pair": 2}
    made = variant(name="browser", transformations=["paraphrasing"], sample=sample, raters=raters)
    generate_once(made)
    draw_sample(made)
    return made


def watch(page: Page, url: str) -> list[str]:
    """What goes wrong on the page from now on: console errors, exceptions, refused calls, calls to other hosts."""
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("response", lambda answer: complaints.append(f"{answer.status} {answer.url}") if not answer.ok else None)

    def only_ours(route: Route) -> None:
        if urlsplit(route.request.url).netloc == urlsplit(url).netloc:
            route.continue_()
        else:
            complaints.append(f"asked for {route.request.url}")
            route.abort()

    page.route(re.compile("^(?!data:|blob:)"), only_ours)
    return complaints


class Desk:
    """Argilla's page as an annotator uses it."""

    def __init__(self, page: Page, pairs: list[Pair], beside: Mapping[str, str]) -> None:
        self.page = page
        self.pairs = pairs
        self.beside = beside  # what stands above each pair and below it

    def shows(self, place: int, of: int, status: str = "pending") -> Pair:
        """Wait for the record at this place of the queue; the pair that is shown whole."""
        expect(self.page.get_by_label("Current Record")).to_have_text(str(place))
        expect(self.page.get_by_label("Total Records")).to_have_text(f"of {of}")
        expect(self.page.get_by_label("Status of Record")).to_have_text(re.compile(status, re.IGNORECASE))
        asked, keys = self.beside.values()
        texts = [text.strip() for text in self.page.locator(".text_field_component .content-area").all_inner_texts()]
        (pair,) = [pair for pair in self.pairs if [asked, pair.original, pair.transformed, keys] == texts]
        return pair

    def rates(self, quality: int, fluency: int, mouse: bool = False, comment: str = "") -> None:
        """Rate by keyboard and submit; the first answer by `mouse` gives the keyboard back to the questions."""
        if mouse:
            self.page.locator(f"label[for=quality_{quality}]").click()
        else:
            self.page.keyboard.press(str(quality))
        self.checked(quality)
        self.page.keyboard.press(str(fluency))
        self.checked(quality, fluency)
        if comment:
            self.comments(comment)
        self.page.keyboard.press("Enter")

    def comments(self, words: str) -> None:
        """Type where the last rating has left the keyboard."""
        self.page.keyboard.type(words)
        expect(self.page.locator("[contenteditable=true]")).to_have_text(words)
        self.page.keyboard.press("Escape")

    def has_done(self, done: int, left: int) -> None:
        """Wait for the bar to say so."""
        expect(self.page.get_by_role("navigation", name="Your work")).to_contain_text(f"{done} answered, {left} left.")

    def checked(self, quality: int, fluency: int | None = None) -> None:
        """Wait until these answers and no others are marked."""
        expect(self.page.locator(f"#quality_{quality}")).to_be_checked()
        if fluency is not None:
            expect(self.page.locator(f"#fluency_{fluency}")).to_be_checked()
        expect(self.page.get_by_label("Annotation Questions").locator("input:checked")).to_have_count(
            1 if fluency is None else 2
        )


#: Argilla says what went wrong in toasts that vanish after a while: put them where they are kept.
KEEP_TOASTS = """
new MutationObserver(changes => {
  for (const node of changes.flatMap(change => [...change.addedNodes])) {
    const toast = node.nodeType === 1 && (node.matches(".toast") ? node : node.querySelector(".toast"));
    if (toast) console.error("toast: " + toast.innerText);
  }
}).observe(document, {childList: true, subtree: true});
"""


def start(desk: Desk, url: str, user: server.User) -> None:
    """Sign in on one's own page, first with a wrong password, and go on to the only dataset; by keyboard alone."""
    desk.page.goto(f"{url}/work")
    for password in ("wrong-password", user.password):
        desk.page.get_by_label("Password").fill("")
        desk.page.get_by_label("User name").fill(user.username)
        desk.page.keyboard.press("Tab")
        desk.page.keyboard.type(password)
        desk.page.keyboard.press("Enter")
        expect(desk.page.get_by_text("is wrong" if password != user.password else "0 answered, 4 left")).to_be_visible()
    expect(desk.page.get_by_role("row").filter(has_text="browser-paraphrasing-EN")).to_contain_text("04")
    expect(desk.page.get_by_role("link", name="Go on")).to_be_focused()
    desk.page.keyboard.press("Enter")
    expect(desk.page.get_by_text("(1 = another meaning, or nothing of what was asked; 5 = ")).to_be_visible()
    desk.has_done(0, 4)
    for _ in range(2):  # what the browser has kept opens, too
        desk.page.get_by_role("link", name="Your work").click()
        desk.page.get_by_role("link", name="Go on").click()
    desk.has_done(0, 4)


def see_progress(desk: Desk, url: str) -> None:
    """Back on one's own page: all is answered, and the session can be ended."""
    desk.page.goto(f"{url}/work")
    expect(desk.page.get_by_text("All is answered: 4.")).to_be_visible()
    expect(desk.page.get_by_role("link", name="Go on")).to_be_hidden()
    desk.page.get_by_role("link", name="browser-paraphrasing-EN").click()
    expect(desk.page.get_by_label("Total Records")).to_have_text("of 3")  # the own answers, to be changed
    desk.page.get_by_role("link", name="Your work").click()
    desk.page.get_by_role("button", name="Sign out").click()
    expect(desk.page.get_by_label("Password")).to_be_visible()


def read_guidelines(desk: Desk, text: str) -> None:
    """Open the guidelines, find `text` in them, and close them."""
    panel = desk.page.get_by_role("button").filter(has_text="Guidelines")
    panel.click()
    guideline = desk.page.get_by_role("paragraph").filter(has_text=text)
    expect(guideline).to_be_visible()
    expect(desk.page.get_by_text("If you cannot judge a pair, discard it")).to_be_visible()
    panel.click()
    expect(guideline).to_have_count(0)
    desk.page.get_by_text("Transformation quality: does the new text").click()  # the keyboard was the panel's


def have_second_thoughts(desk: Desk, first: Pair, second: Pair) -> None:
    """From the third record back to the first, and submit it again with a 2 for fluency."""
    desk.page.get_by_role("button", name="Previous").click()
    assert desk.shows(2, of=4, status="discarded") == second
    desk.page.get_by_role("button", name="Previous").click()
    assert desk.shows(1, of=4, status="submitted") == first
    desk.checked(4, 5)
    desk.page.locator("label[for=fluency_2]").click()
    desk.checked(4, 2)
    desk.page.keyboard.press("Enter")
    assert desk.shows(2, of=4, status="discarded") == second


@pytest.mark.browser
def test_an_annotator_finishes_a_queue_in_the_browser(argilla: Argilla, study: Study, page: Page) -> None:
    assert argilla.connection is not None
    user = server.ensure_user(argilla.connection, "keyboard", first_name="Key")
    others = [rater(argilla, name) for name in ("earlier", "earliest")]
    publish(study, argilla)
    record = pending(argilla, others[0], dataset(study, argilla))[0]
    for other in others:
        answer(argilla, other, record, "submitted", quality=5, fluency=5)  # complete: nobody else has it to do
    page.add_init_script(KEEP_TOASTS)
    complaints = watch(page, argilla.url)
    beside = Words.of(load_rubric(study), Queue("paraphrasing", "en", "en")).extra_texts
    desk = Desk(page, [pair for pair in draw_sample(study) if pair.pair_id != record["external_id"]], beside)

    start(desk, argilla.url, user)
    first = desk.shows(1, of=4)
    read_guidelines(desk, beside[ASKED])
    desk.rates(4, 5, comment="5 is much, isn't it?")
    second = desk.shows(2, of=4)
    desk.has_done(1, 3)
    page.keyboard.press("Backspace")  # cannot judge it: discard
    third = desk.shows(3, of=4)
    have_second_thoughts(desk, first, second)
    desk.page.get_by_role("button", name="Next").click()
    assert desk.shows(3, of=4) == third
    desk.rates(3, 3, mouse=True)
    last = desk.shows(4, of=4)
    desk.rates(1, 2)
    expect(page.get_by_text(ALL_DONE)).to_be_visible()
    expect(page.get_by_role("navigation", name="Your work")).to_contain_text("All is answered: 4.")
    see_progress(desk, argilla.url)
    # The wrong password, which the browser notes as the answer that it is.
    assert not [line for line in complaints if "401" not in line]

    ratings = collect(study, argilla).query("pair_id != @record['external_id']")
    submitted = ratings[ratings["status"] == "submitted"]
    given = {(row.pair_id, row.question): row.value for row in submitted.itertuples()}
    expected = {first: (4, 2), third: (3, 3), last: (1, 2)}
    for pair, values in expected.items():
        assert (given.pop((pair.pair_id, "quality")), given.pop((pair.pair_id, "fluency"))) == values
    assert not given
    others = {row.pair_id: row.status for row in ratings.itertuples() if row.status != "submitted"}
    assert others == {second.pair_id: "discarded"}
    assert set(submitted.loc[submitted["pair_id"] == first.pair_id, "comment"]) == {"5 is much, isn't it?"}
    assert not ratings["simulated"].any()

"""MTurk's file in a real browser: what a worker answers is what the requester gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.platform import Offer
from annotation.page.task import rating_words
from annotation.ratings.answers import Answer
from plumbline.study import Study
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.offers import TEXTS, make_offer
from tests.annotation.test_browser import watch
from tests.axe import findings
from tests.conftest import browsing

pytestmark = pytest.mark.browser
HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">'


class Worker:
    """A worker at the page of an offer, and what the requester gets."""

    def __init__(self, page: Page, study: Study, site: MTurkSite, offer: Offer, preview: bool = False) -> None:
        self.page, self.site, self.offer = page, site, offer
        self.platform = MTurk(study, "sandbox", client=site.client(), endpoint=site.url)
        self.hit = self.platform.post(offer, "token")
        assignment = "ASSIGNMENT_ID_NOT_AVAILABLE" if preview else site.accept(self.hit, "W1")
        self.complaints = watch(page, site.url)
        page.goto(f"{site.url}/task?{urlencode({'hitId': self.hit, 'assignmentId': assignment})}")

    def begin(self) -> None:
        self.page.get_by_role("checkbox").check()
        self.page.locator("#begin").click()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def turn(self, text: str) -> None:
        expect(self.page.locator(".part").get_by_text(text, exact=True)).to_be_visible()

    def submit(self, name: str = "Submit") -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def answers(self) -> list[Answer]:
        expect(self.page.get_by_text("Submitted")).to_be_visible()
        (submission,) = self.platform.submissions(self.hit)
        return list(self.platform.answers(submission, self.offer))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as shared:
        yield shared


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    return variant(name="pages", crowd={"countries": {"en": ["US"]}}, raters={"contact": "lab@example.org"})


def test_a_worker_rates_by_keyboard_alone(page: Page, study: Study, site: MTurkSite) -> None:
    """The consent by space, Enter; numbers rate, a pair is discarded, and what was answered outlives a reload.

    Markup is shown as letters, and comes back as text.
    """
    texts = [*TEXTS, (HOSTILE, "]]> <!-- <script> ${7*7} {{ 7*7 }} =1+1")]
    worker = Worker(page, study, site, make_offer(texts))
    expect(page.get_by_text("lab@example.org").first).to_be_visible()
    worker.press("Enter")  # the consent has the focus, and is asked for
    expect(page.get_by_role("checkbox")).to_be_focused()
    worker.press("Space", "Enter")
    worker.turn(TEXTS[0][0])
    worker.press("4", "9", "5", "Enter")  # 9 is not on the scale: nothing happens
    worker.turn(TEXTS[1][0])
    expect(page.locator("#progress")).to_contain_text("1 of 3 pairs done")
    page.reload()
    worker.turn(TEXTS[1][0])
    expect(page.locator("#progress")).to_have_text("1 of 3 pairs done")
    page.get_by_role("button", name="I cannot judge").focus()
    worker.press("Enter", "1")
    worker.turn(HOSTILE)
    page.get_by_role("button", name="Comment").focus()
    worker.press("Enter")
    page.keyboard.type(f"rain 5 {HOSTILE}")  # a digit in a comment is a digit
    worker.press("Escape")
    page.get_by_role("radiogroup").first.focus()
    worker.press("1", "2", "Enter")
    expect(page.locator("#progress")).to_contain_text("3 of 3 pairs done")
    assert page.title() == "Paraphrasing, English"
    worker.submit()
    first, second, third = worker.answers()
    assert [dict(one.values) for one in (first, second, third)] == [
        {"quality": 4, "fluency": 5},
        {"quality": None, "fluency": None},
        {"quality": 1, "fluency": 2},
    ]
    assert [one.status for one in (first, second, third)] == ["submitted", "discarded", "submitted"]
    assert all(0 < one.seconds < 600 for one in (first, second, third))
    assert [one.comment for one in (first, second, third)] == [
        "", "I do not know the language well enough", f"rain 5 {HOSTILE}",
    ]  # fmt: skip
    assert worker.complaints == []


def test_two_tabs_of_one_assignment_make_one_answer(page: Page, study: Study, site: MTurkSite) -> None:
    worker = Worker(page, study, site, make_offer())
    worker.begin()
    worker.turn(TEXTS[0][0])
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".part").get_by_text(TEXTS[0][0], exact=True)).to_be_visible()
    worker.press("4", "5", "Enter")
    worker.turn(TEXTS[1][0])
    expect(other.locator("#notice")).to_contain_text("You answered this in another tab")
    worker.page = other
    worker.turn(TEXTS[1][0])
    worker.press("1", "2", "Enter")
    worker.submit()
    assert [dict(one.values) for one in worker.answers()] == [
        {"quality": 4, "fluency": 5}, {"quality": 1, "fluency": 2},
    ]  # fmt: skip


def test_a_preview_can_only_be_looked_at(page: Page, study: Study, site: MTurkSite) -> None:
    Worker(page, study, site, make_offer(), preview=True)
    expect(page.get_by_text("This is a preview. Accept the task to begin.")).to_be_visible()
    expect(page.get_by_text(TEXTS[0][0])).to_be_visible()
    assert page.locator("#item :enabled, #begin:enabled, [type=checkbox]:enabled").count() == 0
    assert findings(page) == []


def test_a_page_right_to_left(page: Page, variant: Callable[..., Study], site: MTurkSite) -> None:
    """Page, instructions, consent and buttons run from right to left in their language; an English text does not."""
    code, parts = "ar", {"rubric": "pteb", "transformations": ["paraphrasing"], "acceptance": {}}
    study = variant(name="pages", crowd={"countries": {code: ["US"]}}, wordings=[code], **parts)
    worker = Worker(page, study, site, make_offer([("نص", "The cat sat.")], languages=(code, code)))
    words = rating_words(code)
    expect(page.locator("html")).to_have_attribute("lang", code)
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.get_by_role("heading", name=words["instructions"], exact=True)).to_have_css("direction", "rtl")
    expect(page.locator("legend").first).to_have_text(words["consent"])
    box, label = page.locator(".door input").bounding_box(), page.locator(".door label span").bounding_box()
    assert box is not None and label is not None
    assert box["x"] > label["x"], "the box stands to the right of its text"
    worker.begin()
    page.get_by_role("radio").nth(5).check()
    page.get_by_role("button", name=words["next"], exact=True).click()
    worker.submit(words["submit"])
    (answer,) = worker.answers()
    assert dict(answer.values) == {"similarity": 5}
    assert worker.complaints == []

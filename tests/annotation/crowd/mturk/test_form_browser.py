"""The rating page in a real browser: by keyboard, by a screen reader's tree, on a phone, and with hostile texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.page import rating_words
from annotation.crowd.platform import Offer
from annotation.ratings.answers import Answer
from plumbline.study import Study
from tests.annotation.crowd.made_offers import TEXTS, make_offer
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.test_browser import watch
from tests.axe import grave
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

    def group(self, question: str, pair: int) -> str:
        """A question's radios of a pair, by selector."""
        return f'input[name="p{pair}.{question}"]'

    def rated(self, question: str, pair: int, value: int) -> None:
        expect(self.page.locator(f'{self.group(question, pair)}[value="{value}"]')).to_be_checked()

    def answers(self) -> list[Answer]:
        """What arrived."""
        expect(self.page.get_by_text("Submitted")).to_be_visible()
        (submission,) = self.platform.submissions(self.hit)
        return list(self.platform.answers(submission, self.offer))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as shared:
        yield shared


@pytest.fixture
def site() -> Iterator[MTurkSite]:
    with MTurkSite() as running:
        yield running


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    countries = {"countries": {"en": ["US"]}}
    return variant(name="pages", crowd=countries | {"contact": "lab@example.org"})


def test_a_worker_rates_by_keyboard_alone(page: Page, study: Study, site: MTurkSite) -> None:
    """Tab to the consent, space, tab to the first question; numbers rate and move on, over a pair that is discarded."""
    texts = [*TEXTS, ("The dog barked.", "There was barking by the dog.")]
    worker = Worker(page, study, site, make_offer(texts))
    page.keyboard.press("Tab")
    expect(page.get_by_role("checkbox").first).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("4")
    worker.rated("quality", 0, 4)
    page.keyboard.press("9")  # not on the scale: nothing happens
    page.keyboard.press("5")
    worker.rated("fluency", 0, 5)
    expect(page.locator("#progress")).to_have_text("1 of 3 pairs done")
    expect(page.locator(worker.group("quality", 1)).first).to_be_focused()
    for _ in range(3):  # past both questions to the comment
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "TEXTAREA":
            break
    page.keyboard.type("rain 5 <b>")  # a digit in a comment is a digit
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # cannot judge
    page.keyboard.press("Tab")
    page.keyboard.press("1")
    page.keyboard.press("2")
    expect(page.get_by_role("button", name="Submit")).to_be_focused()
    expect(page.locator("#progress")).to_have_text("3 of 3 pairs done")
    page.keyboard.press("Enter")

    first, second, third = worker.answers()
    assert [dict(one.values) for one in (first, second, third)] == [
        {"quality": 4, "fluency": 5},
        {"quality": None, "fluency": None},
        {"quality": 1, "fluency": 2},
    ]
    assert [one.status for one in (first, second, third)] == ["submitted", "discarded", "submitted"]
    assert [one.comment for one in (first, second, third)] == ["", "rain 5 <b>", ""]
    assert worker.complaints == []


def test_time_goes_to_the_pair_that_was_read(page: Page, study: Study, site: MTurkSite) -> None:
    """12 s before the first answer, 3 s to the second, 20 s to the third: 15 s and 20 s. Reading the guidelines, 60 s,
    and a pause of eleven minutes go to no pair."""
    page.clock.install()
    worker = Worker(page, study, site, make_offer())
    page.clock.run_for(60_000)
    page.get_by_role("checkbox").first.check()
    steps = (("quality", 0, 12_000), ("fluency", 0, 3_000), ("quality", 1, 20_000), ("fluency", 1, 660_000))
    for question, pair, wait in steps:
        page.clock.run_for(wait)
        page.locator(f'{worker.group(question, pair)}[value="3"]').click()
    page.get_by_role("button", name="Submit").click()
    assert [one.seconds for one in worker.answers()] == [pytest.approx(15, abs=1), pytest.approx(20, abs=1)]


def test_what_is_missing_is_named_and_shown(page: Page, study: Study, site: MTurkSite) -> None:
    worker = Worker(page, study, site, make_offer())
    submit, alert = page.get_by_role("button", name="Submit"), page.get_by_role("alert")
    submit.click()
    expect(alert).to_have_text("Please read the consent and tick it.")
    expect(page.get_by_role("checkbox").first).to_be_focused()
    page.keyboard.press("Space")
    for value in (1, 2, 3):
        page.keyboard.press("Tab" if value == 1 else str(value))  # 2 for quality, 3 for fluency of the first pair
    submit.click()
    expect(alert).to_have_text(re.compile('^Pair 2 of 2: please answer "Transformation quality'))
    expect(page.locator(worker.group("quality", 1)).first).to_be_focused()
    expect(alert).to_be_in_viewport()
    page.keyboard.press("5")
    expect(alert).to_have_text("")
    submit.click()
    expect(alert).to_have_text(re.compile('^Pair 2 of 2: please answer "Fluency'))
    page.keyboard.press("5")
    submit.click()
    assert [dict(one.values) for one in worker.answers()] == [
        {"quality": 2, "fluency": 3},
        {"quality": 5, "fluency": 5},
    ]


def test_a_preview_can_only_be_looked_at(page: Page, study: Study, site: MTurkSite) -> None:
    Worker(page, study, site, make_offer(), preview=True)
    expect(page.get_by_text("This is a preview. Accept the task to begin.")).to_be_visible()
    expect(page.get_by_text(TEXTS[0][0])).to_be_visible()
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()
    assert page.locator("form :enabled:not([type=hidden])").count() == 0


def test_a_screen_readers_tree(page: Page, study: Study, site: MTurkSite) -> None:
    """Headings lead from pair to pair, each scale is a group with its question's name, each control has a name."""
    Worker(page, study, site, make_offer())
    main = page.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_have_text("Paraphrasing")
    for number, (original, new) in enumerate(TEXTS, 1):
        region = main.get_by_role("region", name=f"Pair {number} of 2")
        expect(region).to_match_aria_snapshot(
            f"""
            - region "Pair {number} of 2":
              - heading "Pair {number} of 2" [level=2]
              - heading "Original" [level=3]
              - paragraph: {original}
              - heading "New text" [level=3]
              - paragraph: {new}
              - radiogroup /Transformation quality.*/:
                - radio "1 another meaning, or nothing of what was asked"
                - radio /2 .*/
                - radio /3 .*/
                - radio /4 .*/
                - radio /5 .*/
              - radiogroup /Fluency.*/:
                - radio "1 hardly readable"
              - textbox "Comment"
              - checkbox /I cannot judge.*/
            """
        )
    expect(main.get_by_role("group", name="Consent").get_by_role("checkbox")).to_have_accessible_name(
        re.compile("I have read the instructions")
    )
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    controls = [
        node for node in tree if node.get("role", {}).get("value") in ("radio", "checkbox", "textbox", "button")
    ]
    # 2 pairs x (10 radios, a comment, a box), the consent, the button.
    assert len(controls) == 2 * 12 + 2
    assert all(node["name"]["value"] for node in controls)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(page: Page, study: Study, site: MTurkSite, scheme: str) -> None:
    """Nothing scrolls sideways at 390 pixels, a word of 300 letters neither; texts are readable in light and dark."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    worker = Worker(page, study, site, make_offer([("x" * 300, "https://example.org/" + "y" * 300)]))
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for target in page.locator("label").all():
        box = target.bounding_box()
        assert box is not None
        assert box["height"] >= 24  # pixels: the least of WCAG 2.2, 2.5.8
    assert page.evaluate(CONTRAST) >= 4.5  # WCAG 2.2, 1.4.3
    assert grave(page) == []
    assert worker.complaints == []


#: The least contrast of all texts with what lies behind them.
CONTRAST = """() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map(c => c / 255)
      .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
  };
  const contrasts = [...document.querySelectorAll("p, h1, h2, h3, legend, label, li, button")].map(element => {
    const pair = [light(getComputedStyle(element).color), light(behind(element))].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05);
  });
  return Math.min(...contrasts);
}"""


def test_right_to_left(page: Page, study: Study, site: MTurkSite) -> None:
    """An English original stands at the left, its Arabic translation at the right; both keep their language."""
    arabic = "جلست القطة على الحصيرة."
    Worker(page, study, site, make_offer([("The cat sat.", arabic)], languages=("en", "ar"), pool="translation"))
    text = page.get_by_text(arabic)
    expect(text).to_have_attribute("lang", "ar")
    expect(text).to_have_css("direction", "rtl")
    expect(page.get_by_text("The cat sat.")).to_have_css("direction", "ltr")


@pytest.mark.parametrize("code", ["ar", "ur"])
def test_a_page_right_to_left(page: Page, variant: Callable[..., Study], site: MTurkSite, code: str) -> None:
    """Page, instructions, consent and buttons run from right to left in their language; an English text does not."""
    crowd = {"countries": {code: ["US"]}, "contact": "lab@example.org"}
    study = variant(
        name="pages", rubric="pteb", transformations=["paraphrasing"], wordings=[code], crowd=crowd, acceptance={}
    )
    worker = Worker(page, study, site, make_offer([("نص", "The cat sat.")], languages=(code, code)))
    expect(page.locator("html")).to_have_attribute("lang", code)
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.get_by_text(rating_words(code)["instructions"], exact=True)).to_have_css("direction", "rtl")
    expect(page.locator("#consent-box legend")).to_have_text(rating_words(code)["consent"])
    box, label = page.locator("#consent-box input").bounding_box(), page.locator("#consent-box span").bounding_box()
    assert box is not None and label is not None
    assert box["x"] > label["x"], "the box stands to the right of its text"
    for radio in page.get_by_role("radiogroup").all():
        radio.get_by_role("radio").nth(5).check()
    page.locator("#consent-box input").check()
    page.get_by_role("button", name=rating_words(code)["submit"]).click()
    (answer,) = worker.answers()
    assert dict(answer.values) == {"similarity": 5}
    assert worker.complaints == []


def test_hostile_texts_do_nothing(page: Page, study: Study, site: MTurkSite) -> None:
    """Markup is shown as letters, formulas and a megabyte in the comment come back as text, cut at 2,000 letters."""
    worker = Worker(page, study, site, make_offer([(HOSTILE, "=1+1"), ("]]> <!-- <script>", "${7*7} {{ 7*7 }}")]))
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    expect(page.get_by_text("${7*7} {{ 7*7 }}")).to_be_visible()
    assert page.title() == "Paraphrasing"
    page.get_by_role("checkbox").first.check()
    for pair in (0, 1):
        for question in ("quality", "fluency"):
            page.locator(f'{worker.group(question, pair)}[value="2"]').check()
    page.get_by_label("Comment").first.fill(HOSTILE)
    page.evaluate("""() => {
      const box = document.querySelectorAll("textarea")[1];
      box.removeAttribute("maxlength");
      box.value = "=cmd|' /C calc'!A0" + "z".repeat(600000);
    }""")
    page.get_by_role("button", name="Submit").click()
    first, second = worker.answers()
    assert first.comment == HOSTILE
    assert second.comment == ("=cmd|' /C calc'!A0" + "z" * 2000)[:2000]
    assert worker.complaints == []


def test_without_script_it_says_so(page: Page, study: Study, site: MTurkSite) -> None:
    assert page.context.browser is not None
    plain = page.context.browser.new_page(java_script_enabled=False)
    Worker(plain, study, site, make_offer())
    expect(plain.get_by_text("This task needs JavaScript.")).to_be_visible()
    expect(plain.get_by_role("button", name="Submit")).to_be_disabled()
    plain.close()

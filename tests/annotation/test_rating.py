"""The rating page in a real browser: each kind of question by keys and by touch, and what goes wrong on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.annotation.rating_desk import Desk
from tests.axe import findings
from tests.conftest import browsing

pytestmark = pytest.mark.browser

TEXTS = [[f"The cat sat on mat {number}.", f"On mat {number} sat the cat."] for number in range(12)]
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&lt;b&gt; {{7*7}} ${7*7}"
WORDED = {"name": "quality", "kind": "rating", "title": "Is it good?",
          "points": [[1, "not at all"], [2, "hardly"], [3, "half"], [4, "mostly"], [5, "fully"]]}  # fmt: skip
LABEL = {"name": "sound", "kind": "label", "title": "Which output is better?",
         "points": [["first", "The first"], ["second", "The second"], ["tie", "Both alike"]]}  # fmt: skip
#: Each kind: the question, keys that answer it from the first question on, and the value that is saved.
KINDS: dict[str, tuple[dict[str, Any], list[str], Any]] = {
    "worded": (WORDED, ["4"], 4),
    "eleven": ({"name": "q", "kind": "rating", "title": "How alike?",
                "points": [[n, {0: "nothing", 10: "all"}.get(n, "")] for n in range(11)]}, ["0"], 0),
    "ten": ({"name": "q", "kind": "rating", "title": "How alike?",
             "points": [[n, {1: "nothing", 10: "all"}.get(n, "")] for n in range(1, 11)]}, ["0"], 10),
    "signed": ({"name": "q", "kind": "rating", "title": "Better?",
                "points": [[n, {-3: "the first", 3: "the second"}.get(n, "")] for n in range(-3, 4)]}, ["2"], -2),
    "slider": ({"name": "q", "kind": "slider", "title": "How fluent?", "low": 0, "high": 100, "step": 1, "start": None,
                "points": [[0, "not"], [100, "fully"]]}, ["7", "ArrowRight", "ArrowRight", "PageDown"], 62),
    "started": ({"name": "q", "kind": "slider", "title": "How fluent?", "low": 0, "high": 1, "step": 0.01, "start": 0.3,
                 "points": [[0, "not"], [1, "fully"]]}, ["Tab", "Space"], 0.3),
    "short": ({"name": "q", "kind": "slider", "title": "How fluent?", "low": 1, "high": 7, "step": 0.1, "start": 7,
               "points": [[1, "not"], [7, "fully"]]}, ["8", "3", "ArrowLeft"], 2.9),
    "at its end": ({"name": "q", "kind": "slider", "title": "How fluent?", "low": -50, "high": 50, "step": 1,
                    "start": 50, "points": [[-50, "not"], [50, "fully"]]}, ["Tab", "End"], 50),
    "label": (LABEL, ["3"], "tie"),
    "multi": ({"name": "q", "kind": "multi_label", "title": "What is wrong?",
               "points": [["a", "Grammar"], ["b", "Meaning"], ["c", "Words"]]}, ["3", "1", "2", "2"], ["a", "c"]),
    "listed": ({"name": "q", "kind": "label", "title": "Which intent?",
                "points": [[f"n{n}", f"want {n}"] for n in range(21)]}, ["Tab", "w", "a", "n", "t", " ", "7"], "n7"),
    "text": ({"name": "q", "kind": "text", "title": "How would you say it?"}, ["Tab", "a", "1", "<"], "a1<"),
    "ranking": ({"name": "q", "kind": "ranking", "title": "Which first?",
                 "points": [["a", "Sense"], ["b", "Tone"], ["c", "Form"]]}, ["2", "1", "2"],
                [{"value": "a", "rank": 2}, {"value": "b", "rank": 1}, {"value": "c", "rank": 2}]),
    "long ranking": ({"name": "q", "kind": "ranking", "title": "Which first?",
                      "points": [[f"d{n}", f"Number {n}"] for n in range(1, 11)]},
                     [key for n in range(1, 11) for key in ("Tab", str(n % 10 + 1) if n < 9 else str(n - 8))],
                     [{"value": f"d{n}", "rank": n + 1 if n < 9 else n - 8} for n in range(1, 11)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing() as shared:
        yield shared


#: Of each look of a question one, for axe-core, which takes longest.
LOOKS = ("worded", "eleven", "slider", "multi", "listed", "text", "long ranking")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_answered_by_keys_alone(page: Page, kind: str) -> None:
    """Nothing is chosen before; axe-core finds nothing, wide and light, narrow and dark; nothing runs sideways."""
    question, keys, value = KINDS[kind]
    desk = Desk(page, [question], TEXTS)
    expect(page.locator("#begin")).to_be_focused()
    assert ("On a slider" in page.locator("#intro").inner_text()) == (question["kind"] == "slider")
    desk.press("Enter")
    desk.turn(1)
    assert page.locator(":checked:not(option)").count() == 0
    desk.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(f'Pair 1 of 12: please answer "{question["title"]}"')
    page.locator("#turn").focus()
    for _ in range(0 if keys[0] != "Tab" else 3):  # past instructions to what stands first in the question
        if page.evaluate("document.activeElement.closest('fieldset') !== null"):
            break
        desk.press("Tab")
    desk.press(*keys[1:] if keys[0] == "Tab" else keys)
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert kind not in LOOKS or findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
    desk.press("Control+Enter")
    desk.turn(2)
    assert desk.settle("i0") == {question["name"]: value}
    expect(page.locator("#progress")).to_have_text("1 of 12 pairs done · 1 in this session")
    assert desk.complaints == []


def test_a_slider_shows_nothing_until_it_is_touched(page: Page) -> None:
    desk = Desk(page, [KINDS["slider"][0], LABEL], TEXTS)
    desk.begin()
    slider = page.get_by_role("slider")
    expect(slider).to_have_class("untouched nowhere")
    expect(slider).to_have_attribute("aria-valuetext", "not answered yet")
    expect(slider).to_have_css("background-image", re.compile("conic-gradient.*conic-gradient"))  # arrows at its ends
    desk.queues = "Your work"  # over which the next count is
    box = slider.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # where it would stand by itself
    expect(slider).not_to_have_class("untouched")
    expect(slider).not_to_have_css("background-image", re.compile("conic-gradient"))
    desk.press("Enter")  # by which keys lead on
    expect(page.get_by_role("radiogroup")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_text("")
    desk.press("2", "Enter")
    assert desk.settle("i0") == {"q": 50, "sound": "second"}
    expect(page.locator("#progress")).to_contain_text("Your work: 1 of 12 pairs done")
    desk.press("5", "Backspace", "Control+Enter")  # taken back: it is as before, and nothing of it is sent
    expect(page.get_by_role("alert")).to_contain_text("please answer")
    expect(slider).to_have_class("untouched nowhere")


def test_keys_lead_from_question_to_question_and_to_the_next_pair(page: Page) -> None:
    desk = Desk(page, [WORDED, LABEL], TEXTS)
    desk.begin()
    expect(page.locator("#turn")).to_be_focused()  # where a screen reader begins to read; no point is ringed
    desk.press("7", "4")
    expect(page.get_by_role("radiogroup").nth(1)).to_be_focused()
    desk.press("1")
    expect(page.locator("#next")).to_be_focused()
    desk.press("Enter")
    desk.turn(2)
    assert desk.settle("i0") == {"quality": 4, "sound": "first"}
    desk.press("2", "Backspace")  # the last answer is taken back
    assert page.locator(":checked").count() == 0
    desk.press("Backspace")  # and then the pair before it comes back, as it was answered
    desk.turn(1)
    expect(page.get_by_role("radio", name="4 mostly")).to_be_checked()
    desk.press("Backspace", "Backspace")  # there, too, one answer after the other, and digits give others
    assert page.locator(":checked").count() == 0
    desk.press("5", "1", "Enter")
    desk.turn(2)
    page.wait_for_timeout(300)
    assert desk.settle("i0") == {"quality": 5, "sound": "first"}
    assert {entry["status"] for entry in desk.log if entry["id"] == "i0"} <= {"draft", "submitted"}
    expect(page.locator("#progress")).to_contain_text("1 of 12 pairs done")


def test_who_cannot_judge_says_why(page: Page) -> None:
    desk = Desk(page, [WORDED], TEXTS)
    desk.begin()
    page.get_by_role("button", name="I cannot judge").click()
    desk.press("Escape")
    expect(page.locator("#reasons")).to_be_hidden()
    page.get_by_role("button", name="I cannot judge").click()
    desk.press("2")
    desk.turn(2)
    assert desk.settle("i0", "discarded") == {"comment": "A text is empty, cut off or damaged"}
    desk.press("Enter")
    expect(page.get_by_role("alert")).not_to_have_text("")
    page.get_by_role("button", name="I cannot judge").click()
    expect(page.get_by_role("alert")).to_have_text("")  # nothing is to be answered now
    expect(page.locator(".missing")).to_have_count(0)
    desk.press("3")
    expect(page.get_by_role("textbox", name="Comment Please write the reason in the comment.")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_text("")  # nothing was wrong yet
    desk.press("Escape", "Enter")
    expect(page.get_by_role("alert")).to_have_text("Please write the reason in the comment.")
    page.keyboard.type("It is 1 poem <b>")
    desk.press("Escape", "Enter")
    desk.turn(3)
    assert desk.settle("i1", "discarded") == {"comment": "It is 1 poem <b>"}
    desk.press("Backspace", "Backspace")
    desk.turn(1)
    expect(page.locator("#comment")).to_have_value("")  # the reason is no comment of the rater's own
    expect(page.locator("#before")).to_have_text(
        re.compile("^You discarded this;.* A text is empty, cut off or damaged$")
    )
    desk.press("Enter")  # looked at again, and left as it was
    desk.turn(2)
    page.wait_for_timeout(300)
    assert [entry["status"] for entry in desk.log if entry["id"] == "i0"] == ["discarded"]
    desk.press("4", "Enter")
    assert desk.settle("i1") == {"quality": 4, "comment": "It is 1 poem <b>"}


def test_going_back_fast_brings_a_pair_once_and_keeps_its_discard(page: Page) -> None:
    """Backspace is pressed while the pair before is fetched; a pair that was gone on to meanwhile stays."""
    desk = Desk(page, [WORDED], TEXTS)
    desk.begin()
    for number in (2, 3, 4):
        desk.press("4", "Enter")
        desk.turn(number)
    desk.settle("i2")
    page.reload()
    expect(page.locator("#item")).to_contain_text("mat 3.")
    desk.hang = "previous"
    desk.press("Backspace", "Backspace", "Backspace")
    while not desk.hanging:
        page.wait_for_timeout(25)
    page.wait_for_timeout(100)
    assert len(desk.hanging) == 1
    desk.answer_hanging()
    desk.turn(3)
    expect(page.locator("#item")).to_contain_text("mat 2.")
    page.get_by_role("button", name="I cannot judge").click()
    desk.press("2")
    expect(page.locator("#item")).to_contain_text("mat 3.")
    desk.settle("i2", "discarded")
    desk.press("5", "Enter")
    expect(page.locator("#item")).to_contain_text("mat 4.")
    page.locator("#back").click()
    page.locator("#back").click()
    expect(page.locator("#before")).to_contain_text("You discarded this")
    desk.hang = "previous"
    page.locator("#back").click()
    page.locator("#next").click()
    expect(page.locator("#item")).to_contain_text("mat 3.")
    while not desk.hanging:
        page.wait_for_timeout(25)
    desk.answer_hanging()
    page.wait_for_timeout(100)
    expect(page.locator("#item")).to_contain_text("mat 3.")
    desk.press("Backspace", "3", "Enter", "3", "Enter")
    assert desk.settle("i4") == {"quality": 3}
    assert (desk.saved["i2"]["status"], desk.saved["i3"]["values"]) == ("discarded", {"quality": 3})
    for number in (5, 4, 3, 2):
        page.locator("#back").click()
        desk.turn(number)
        expect(page.locator("#item")).to_contain_text(f"mat {number - 1}.")
    assert desk.complaints == []


def test_offline_for_a_minute_nothing_is_lost(page: Page) -> None:
    """Pairs that are there go on; answers wait in the browser, over a reload too, and each arrives."""
    desk = Desk(page, [WORDED], TEXTS)
    desk.begin()
    desk.down = True
    for number, key in enumerate("123", 2):
        desk.press(key, "Enter")
        desk.turn(number)
    expect(page.locator("#notice")).to_contain_text("There is no connection. Go on")
    expect(page.locator("#progress")).to_have_text("3 of 12 pairs done · 3 in this session")
    desk.press("4")  # a draft, too
    desk.down = False
    desk.saved.clear()
    page.reload()
    desk.turn(4)
    expect(page.get_by_role("radio", name="4 mostly")).to_be_checked()
    assert [desk.settle(f"i{number}")["quality"] for number in range(3)] == [1, 2, 3]
    assert desk.settle("i3", "draft") == {"quality": 4}
    expect(page.locator("#notice")).to_have_text("")
    assert page.evaluate("Object.keys(localStorage).filter(name => name.includes('answer')).length") == 0


def test_offline_beyond_the_pairs_that_are_there_none_is_skipped(page: Page) -> None:
    """The page waits with nothing to answer, and however often Enter is pressed, each pair comes in its turn."""
    desk = Desk(page, [WORDED], TEXTS)
    desk.begin()
    expect(page.locator("#progress")).to_have_text("0 of 12 pairs done")
    desk.down = True
    while page.locator("#item").is_visible():
        desk.press("3", "Enter")
    expect(page.locator("#end-title")).to_have_text("Sending")
    desk.press("4", "Enter", "Enter")
    answered = len(page.evaluate("Object.keys(localStorage).filter(name => name.includes('answer'))"))
    expect(page.locator("#progress")).to_have_text(f"{answered} of 12 pairs done · {answered} in this session")
    desk.press("Backspace")  # back meanwhile, and on again: counted once
    desk.turn(answered)
    desk.press("Backspace", "5", "Enter")
    expect(page.locator("#progress")).to_have_text(f"{answered} of 12 pairs done · {answered} in this session")
    desk.down = False
    page.evaluate("dispatchEvent(new Event('online'))")
    for number in range(answered + 1, 13):
        desk.turn(number)
        desk.press("2", "Enter")
    expect(page.locator("#end-title")).to_have_text("Thank you")
    assert [desk.saved[f"i{number}"]["values"]["quality"] for number in range(12)] == (
        [3] * (answered - 1) + [5] + [2] * (12 - answered)
    )
    assert desk.complaints == []


def test_a_draft_comes_back_and_two_tabs_ask_nothing_twice(page: Page) -> None:
    desk = Desk(page, [WORDED], TEXTS)
    desk.begin()
    desk.press("4")
    assert desk.settle("i0", "draft") == {"quality": 4}
    other = page.context.new_page()
    desk.visit(other)
    desk.turn(1)
    expect(other.get_by_role("radio", name="4 mostly")).to_be_checked()
    desk.press("Control+Enter")
    desk.turn(2)
    desk.settle("i0")
    desk.page = page
    desk.turn(2)
    expect(page.locator("#notice")).to_have_text("You answered this in another tab; here is the next one.")
    desk.press("2", "Enter")
    desk.turn(3)
    expect(page.locator("#notice")).to_have_text("")
    for tab in (page, other):
        expect(tab.locator("#progress")).to_contain_text("2 of 12 pairs done")


def test_pauses_do_not_count_as_time(page: Page) -> None:
    """20 s of reading count; five idle minutes, a minute in another window and reading the guidelines do not."""
    page.clock.install()
    desk = Desk(page, [WORDED], TEXTS)
    page.clock.run_for(60_000)
    desk.begin()
    page.clock.run_for(20_000)
    page.mouse.move(300, 300)
    page.clock.run_for(300_000)
    page.mouse.move(310, 300)
    hide = "value => Object.defineProperty(document, 'hidden', {value, configurable: true})"
    for hidden, milliseconds in ((True, 60_000), (False, 5_000)):
        page.evaluate(hide, hidden)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.clock.run_for(milliseconds)
    desk.press("4", "Enter")
    page.clock.run_for(2_000)
    desk.settle("i0")
    assert desk.saved["i0"]["seconds"] == pytest.approx(25, abs=1.5)
    page.clock.run_for(18_000)
    desk.press("4", "Enter")
    page.clock.run_for(2_000)
    desk.settle("i1")
    assert desk.saved["i1"]["seconds"] == pytest.approx(20, abs=1.5)  # since the pair before


@pytest.mark.parametrize("language", ["en", "ar"])
def test_texts_are_text_in_any_script_and_length(page: Page, language: str) -> None:
    arabic = "جلست القطة على الحصيرة. "
    texts = [
        [HOSTILE, "漢字かな 😀\n\n\tdef f(x):\n\t\treturn x"],
        [arabic * 420, "w" * 10_000],
        ["PDF " + arabic, "1 " + arabic],
    ]
    runs = [["ltr", "ltr"], ["rtl", "ltr"], ["rtl" if language == "ar" else "ltr", "rtl"]]
    desk = Desk(page, [WORDED], texts, language=language)
    page.set_viewport_size({"width": 640, "height": 450})  # what 200% zoom leaves of 1280 by 900
    page.locator("#begin").click()
    for place, (first, second) in enumerate(texts):
        expect(page.locator(".text")).to_have_count(2)
        assert page.locator(".text").evaluate_all("nodes => nodes.map(node => node.textContent)") == [first, second]
        assert (
            page.locator(".text").evaluate_all("nodes => nodes.map(node => getComputedStyle(node).direction)")
            == runs[place]
        )
        assert page.evaluate("document.documentElement.scrollWidth") == 640
        assert place or findings(page) == []
        desk.press("4", "Enter")
        desk.settle(f"i{place}")
    assert page.title() == desk.task["name"]
    assert desk.complaints == []


def test_one_pair_a_screen_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 664})  # what a browser's bars leave of 844
    desk = Desk(page, [LABEL], TEXTS)
    desk.begin()
    assert page.evaluate("document.documentElement.scrollHeight") == 664
    for target in page.locator("label.point, button:visible").all():
        box = target.bounding_box()
        assert box is not None and box["height"] >= 44
    expect(page.locator("#next")).to_be_in_viewport()
    page.get_by_role("button", name="I cannot judge").click()
    foot = page.locator(".foot").bounding_box()
    reasons = page.locator("#reasons").bounding_box()
    assert foot is not None and reasons is not None and reasons["y"] + reasons["height"] <= foot["y"]
    other = page.context.new_page()
    other.set_viewport_size({"width": 390, "height": 664})
    two = Desk(other, [WORDED, LABEL], TEXTS)
    other.get_by_text("mostly").click()  # an answered question shows its answer alone
    expect(other.get_by_text("hardly")).to_be_hidden()
    expect(other.get_by_role("radio", name="Both alike")).to_be_in_viewport()
    other.get_by_text("mostly").click()  # and all of its points again when it is touched
    expect(other.get_by_text("hardly")).to_be_visible()
    assert two.complaints == []


def test_outputs_of_an_original_are_rated_on_one_page(page: Page) -> None:
    """Each by itself: keys go from one to the next, each has its own answer, draft, comment and reason not to judge."""
    texts = [[f"Original {n // 2}.", f"Output {n}."] for n in range(5)]
    desk = Desk(page, [WORDED], texts, together=2)
    page.locator("#begin").click()
    turn, outputs = page.locator("#turn"), page.get_by_role("region", name="New text")
    expect(turn).to_have_text("Pair 1–2 of 5")
    expect(outputs).to_have_count(2)
    assert page.locator("#item .text").all_inner_texts() == ["Original 0.", "Output 0.", "Output 1."]
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        (first, second) = (box.bounding_box() for box in outputs.all())
        assert first and second and (first["y"] == second["y"]) == (width == 1280)
    desk.press("4")
    expect(outputs.nth(1).get_by_role("radiogroup")).to_be_focused()
    desk.press("Enter")
    expect(page.get_by_role("alert")).to_have_text('New text 2: please answer "Is it good?"')
    page.reload()
    expect(turn).to_have_text("Pair 1–2 of 5")
    expect(outputs.nth(0).get_by_role("radio", name="4 mostly")).to_be_checked()
    expect(outputs.nth(1).locator(":checked")).to_have_count(0)
    desk.press("2", "Enter")
    expect(turn).to_have_text("Pair 3–4 of 5")
    assert (desk.settle("i0"), desk.settle("i1")) == ({"quality": 4}, {"quality": 2})
    expect(page.locator("#progress")).to_have_text("2 of 5 pairs done · 2 in this session")
    outputs.nth(0).get_by_role("button", name="I cannot judge").click()
    desk.press("2")
    expect(outputs.nth(0).get_by_text("You discarded this")).to_be_visible()
    expect(outputs.nth(1).get_by_role("radiogroup")).to_be_focused()
    assert list(desk.settle("i2", "discarded")) == ["comment"]
    desk.press("3")
    expect(page.locator("#next")).to_be_focused()
    desk.press("Enter")
    expect(turn).to_have_text("Pair 5 of 5")  # whose other output this rater is not asked about
    expect(outputs).to_have_count(1)
    assert desk.settle("i3") == {"quality": 3}
    desk.press("Backspace")
    expect(turn).to_have_text("Pair 3–4 of 5")
    outputs.nth(0).get_by_role("radio", name="5 fully").check()
    desk.press("Enter")
    expect(turn).to_have_text("Pair 5 of 5")
    assert desk.settle("i2") == {"quality": 5}
    page.reload()
    expect(turn).to_have_text("Pair 5 of 5")
    desk.press("Backspace")  # what was answered at an earlier visit comes back as a page, too
    expect(outputs).to_have_count(2)
    expect(outputs.nth(1).get_by_role("radio", name="3 half")).to_be_checked()
    assert desk.complaints == []


def test_the_original_stays_in_sight_and_questions_stand_in_rows(page: Page) -> None:
    """However long the texts are: at 1280 questions begin at one height, at 390 the original takes a third at most."""
    desk = Desk(page, [WORDED, LABEL], [["An original. " * 99, "An output. " * 9**n] for n in range(3)], together=3)
    page.locator("#begin").click()
    page.set_viewport_size({"width": 1280, "height": 900})
    boxes = [box.bounding_box() for box in page.get_by_role("radiogroup").all()]
    assert len({box["y"] for box in boxes if box}) == 2 and len({box["x"] for box in boxes if box}) == 3
    page.set_viewport_size({"width": 390, "height": 844})
    desk.press("3", "1", "3", "1")
    expect(page.get_by_role("region", name="New text 3").get_by_role("radiogroup").first).to_be_focused()
    original, active = page.locator(".common").bounding_box(), page.locator("fieldset.active").bounding_box()
    assert original and original["y"] == 0 and original["height"] < 844 / 3
    assert active and original["height"] <= active["y"] < 844
    assert page.locator(".common .part").evaluate(
        "part => part.scrollHeight > part.clientHeight && part.tabIndex === 0"
    )
    assert findings(page) == []


def test_a_screen_reader_hears_pair_task_texts_questions(page: Page) -> None:
    desk = Desk(page, [WORDED], TEXTS)
    desk.begin()
    expect(page.get_by_role("main")).to_match_aria_snapshot(
        """
        - main:
          - heading "Formal politeness, German" [level=1]
          - paragraph: 0 of 12 pairs done
          - button "Instructions"
          - status
          - heading "Pair 1 of 12" [level=2]
          - paragraph: "What was asked: The program was asked for a polite text."
          - heading "Original" [level=3]
          - paragraph: The cat sat on mat 0.
          - heading "New text" [level=3]
          - paragraph: On mat 0 sat the cat.
          - radiogroup "Is it good?":
            - radio "1 not at all"
            - radio "2 hardly"
            - radio "3 half"
            - radio "4 mostly"
            - radio "5 fully"
          - button "Comment"
          - button "I cannot judge this pair (discard it)"
          - alert
          - button "Back"
          - button "Next"
        """
    )

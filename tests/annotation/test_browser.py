"""One annotator's way in a real browser: sign in, rate a pair by keyboard, and it is collected."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from annotation import server
from annotation.campaign import collect, publish
from annotation.client import Argilla
from annotation.sample import draw_sample
from generation.run import generate
from generation.study import Study


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    made = variant(name="browser", transformations=["paraphrasing"], sample={"pairs": 3})
    generate(made)
    draw_sample(made)
    return made


@pytest.mark.browser
def test_an_annotator_rates_a_pair_by_keyboard(argilla: Argilla, study: Study, page: Page) -> None:
    assert argilla.connection is not None
    user = server.ensure_user(argilla.connection, "keyboard", first_name="Key")
    publish(study, argilla)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))

    page.goto(argilla.url)
    page.locator("input[type=text]").fill(user.username)
    page.locator("input[type=password]").fill(user.password)
    page.keyboard.press("Enter")
    page.get_by_text("browser-paraphrasing").click()
    expect(page.get_by_text("Fluency: does the new text read as well-formed?")).to_be_visible()
    expect(page.get_by_text("1 of 3")).to_be_visible()
    shown = page.locator("body").inner_text()
    page.keyboard.press("4")  # quality
    expect(page.locator("input:checked")).to_have_count(1)
    page.keyboard.press("5")  # fluency
    expect(page.locator("input:checked")).to_have_count(2)
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 of 3")).to_be_visible()

    ratings = collect(study, argilla)
    assert dict(zip(ratings["question"], ratings["value"], strict=True)) == {"quality": 4, "fluency": 5}
    assert set(ratings["status"]) == {"submitted"}
    assert not ratings["simulated"].any()
    [pair_id] = set(ratings["pair_id"])
    pair = next(pair for pair in draw_sample(study) if pair.pair_id == pair_id)
    assert pair.original in shown
    assert pair.transformed in shown
    assert not [text for text in complaints if not re.search(r"favicon", text)]

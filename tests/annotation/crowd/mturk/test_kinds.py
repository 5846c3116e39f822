"""Questions of other kinds on the crowd's page, in a browser and in a whole batch: what is ticked is what arrives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.ratings.ratings import read_ratings
from annotation.verdicts.acceptance import accept
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import drawn, honest
from tests.annotation.crowd.made_offers import make_offer
from tests.annotation.crowd.mturk.mturk_site import MTurkSite
from tests.annotation.crowd.mturk.test_question_browser import Worker
from tests.annotation.crowd.test_campaign import launch, step
from tests.annotation.kinds import BETTER, FAULTS, NATURAL, ORDER, RULES, ask, rubric
from tests.axe import grave


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MTurkSite]:
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, BETTER, ORDER))
    with MTurkSite() as running:
        yield running


@pytest.mark.browser
def test_a_worker_answers_all_kinds(page: Page, variant: Make, site: MTurkSite) -> None:
    study = variant(name="kinds", rubric="kinds", crowd={"countries": {"en": ["US"]}}, acceptance={"rules": RULES})
    worker = Worker(page, study, site, make_offer([("The cat slept.", "A cat was asleep.")]))
    expect(
        page.get_by_text("The program was asked to rephrase the text while keeping its meaning.").last
    ).to_be_visible()
    page.get_by_role("checkbox").first.check()
    page.locator(f'{worker.group("quality", 0)}[value="4"]').check()
    page.locator(f'{worker.group("fluency", 0)}[value="5"]').check()
    page.get_by_role("button").click()
    expect(page.locator("#message")).to_contain_text("How does the new text sound?")  # a label must be chosen
    page.get_by_role("radio", name="Odd in places").check()
    page.get_by_role("checkbox", name="Meaning").check()
    page.get_by_role("checkbox", name="Grammar").check()
    page.get_by_role("textbox", name="How would you say it?").fill('<b>"Asleep"</b>')
    page.get_by_role("button").click()
    expect(page.locator("#message")).to_contain_text("What suffered most?")
    expect(page.get_by_role("combobox").first).to_be_focused()
    for rank in "122":  # form, sense, tone by keyboard alone: a digit chooses a rank, Tab goes on to the next label
        page.keyboard.press(rank)
        page.keyboard.press("Tab")
    assert grave(page) == []
    page.get_by_role("button").click()
    (answer,) = worker.answers()
    assert answer.values == {
        "quality": 4, "fluency": 5, "naturalness": "odd", "faults": "grammar, meaning", "better": '<b>"Asleep"</b>',
        "order": "form > sense = tone",
    }  # fmt: skip
    assert not worker.complaints


def test_a_batch_of_all_kinds_is_collected_paid_and_judged(variant: Make, site: MTurkSite) -> None:
    study = drawn(variant, rubric="kinds", acceptance={"rules": RULES, "min_pairs": 4, "min_raters": 1})
    launch(study, site)
    (hit,) = site.hits
    good = honest(study)
    other = {"naturalness": "natural", "faults": "words, grammar", "better": "", "order": "tone>sense = form"}

    def fields(**changes: str) -> dict[str, str]:
        given = {**other, **changes}
        sent = site.fields(hit, lambda pair_id, question: 0 if question in given else good(pair_id, question))
        return {name: given.get(name.rpartition(".")[2], value) for name, value in sent.items()}

    kind, strange = site.work(hit, "kind", fields()), site.work(hit, "strange", fields(naturalness="lovely"))
    found: list[object] = []
    step(study, site, lambda campaign: found.append(collect(campaign).troubles))
    (troubles,) = found
    assert isinstance(troubles, dict) and set(troubles) == {strange}
    assert "naturalness: no label is called" in troubles[strange] and "lovely" in troubles[strange]
    step(study, site, collect)  # from the ledger
    ratings = read_ratings(study)
    assert set(ratings["answer"]) == {"", "natural", "grammar, words", "tone > form = sense"}
    assert len(ratings) == 4 * 5  # pairs; quality, fluency, naturalness, faults, order: the empty text is no answer
    step(study, site, lambda campaign: judging.approve(campaign, [kind]))
    (verdict,) = accept(study).verdicts
    assert verdict.decision == "accepted", verdict.reasons

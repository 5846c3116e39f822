"""Tasks that people do, on the crowd's page: each type from the draw to the answers that count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page

from annotation.crowd import judging
from annotation.crowd.campaign import Campaign
from annotation.crowd.collecting import collect
from annotation.crowd.mturk.adapter import MTurk
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.ratings.ratings import read_ratings
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.people import answers_lines
from plumbline.manifest import read_kept_frame
from tests.annotation.crowd.campaigns import run
from tests.annotation.crowd.mturk.mturk_site import MTurkSite, form_data
from tests.annotation.human.studies import SEVERAL, WORDS, study_of
from tests.annotation.test_browser import watch
from tests.axe import grave

CROWD = {"countries": {"en": ["US"], "de": ["DE"]}, "share": 1.0}
ALL = (
    {"data": "search", "items": 2, "raters": 1, "candidates": 6},
    {"data": "bitext", "items": 3, "raters": 1, "candidates": 6},
    {"data": "long", "items": 2, "raters": 1, "candidates": 11, "relevance": "binary"},
    {"name": "ordered", "data": "search", "items": 2, "raters": 1, "candidates": 4, "relevance": "ranked"},
    {"data": "classes", "items": 3, "raters": 1},
    {"data": "intents", "items": 3, "raters": 1},
    {"data": "alike", "items": 3, "raters": 1},
    {"data": "same", "items": 3, "raters": 1},
    {"data": "groups", "items": 4, "raters": 1},
    {"data": "several", "items": 3, "raters": 1},
    {"data": "summaries", "items": 3, "raters": 1},
)


@pytest.fixture
def site() -> Iterator[MTurkSite]:
    with MTurkSite() as running:
        yield running


def right(text: str) -> bool:
    """Whether a passage is the one that the made-up data sets have as relevant."""
    return text.endswith("is here.")


def answer_one(section: Locator) -> None:
    """Answer an item by what is shown at each place, as somebody who knows what is right."""
    texts = section.locator("ol.list li").all_inner_texts()
    asked = section.locator("fieldset")
    number = "".join(filter(str.isdecimal, section.locator("p.text").first.inner_text()))
    if asked.count() == len(texts):  # a grade for each
        for place, text in enumerate(texts):
            assert asked.nth(place).locator("legend").inner_text().startswith(f"Passage {place + 1}:")
            grade = "Just what is looked for" if right(text) else "Of no use"
            asked.nth(place).get_by_text(grade, exact=True).click()
    elif asked.locator("[type=checkbox]").count():  # whose labels are the digits of the text's number, to the base two
        for at, word in enumerate(WORDS):
            asked.get_by_text(word, exact=True).set_checked(bool(int(number) >> at & 1))
    elif not texts and asked.locator("select").count():  # found by its letters
        asked.locator("select").press_sequentially(f"want {number}")
    elif not texts:
        asked.get_by_text("Of use" if right(section.locator("p.text").last.inner_text()) else "Of no use").click()
    elif asked.count() == 1:
        asked.get_by_text(f"Number {texts.index(f'Satz {number}.') + 1}", exact=True).click()
    else:
        asked.first.get_by_text("Yes", exact=True).click()
        for place, text in enumerate(texts):
            row = asked.last.locator("label").filter(has_text=f"Number {place + 1}")
            row.locator("select").select_option("1" if right(text) else "2")


def refuses_no_order(page: Page) -> None:
    """Whoever says that they can tell is asked for the order."""
    for yes in page.get_by_role("radio", name="Yes").all():
        yes.check()
    page.get_by_role("button").click()
    assert "Put the passages into order" in page.get_by_role("alert").inner_text()


@pytest.mark.browser
def test_tasks_of_each_type_are_done_by_a_crowd_collected_and_accepted(
    page: Page, site: MTurkSite, tmp_path: Path
) -> None:
    study = study_of(tmp_path, *ALL, crowd=CROWD, acceptance={"min_pairs": 2, "min_raters": 1})
    draw_sample(study)

    def step(what: Callable[[Campaign], object]) -> None:
        assert run(study, lambda: MTurk(study, "sandbox", client=site.client(), endpoint=site.url), what, 10**6)

    step(lambda campaign: campaign.launch(0))
    assert len(site.hits) == len(ALL)
    complaints, done = watch(page, site.url), list[str]()
    page.set_viewport_size({"width": 390, "height": 844})
    for hit_id, hit in site.hits.items():
        assert "pair" not in hit.type["Title"] + hit.type["Description"]
        data = form_data(hit.html)
        pool = data["questions"][0]["name"]
        if pool not in ("search", "bitext", "long", "ordered", "several", "intents"):
            first = {one["name"]: str(one["points"][0][0]) for one in data["questions"]}
            sent = site.fields(hit_id)
            fields = {name: first.get(name.rpartition(".")[2], value) for name, value in sent.items()}
            done.append(site.work(hit_id, f"W{pool}", fields))
            continue
        done.append(site.accept(hit_id, f"W{pool}"))
        page.goto(f"{site.url}/task?{urlencode({'hitId': hit_id, 'assignmentId': done[-1]})}")
        page.get_by_role("checkbox").first.check()
        assert "pair" not in page.locator("body").inner_text().lower()
        if pool == "ordered":
            refuses_no_order(page)
        for section in page.locator("section.pair").all():
            answer_one(section)
        if pool in ("search", "several", "intents"):
            assert grave(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_role("button").click()
        page.get_by_text("Submitted").wait_for()
    assert not complaints
    step(lambda campaign: judging.approve(campaign, done) if not collect(campaign).troubles else None)
    assert {one.status for one in site.assignments.values()} == {"Approved"}

    answers_lines(study, accept(study))
    found = read_kept_frame(study, ANSWERS, HumanAnswer, "annotation accept")
    assert set(found["task"]) == {task.get("name", task["data"]) for task in ALL}
    texts = {"search": 3.0, "ordered": 4.0, "long": 1.0}  # the most that a relevant candidate can get
    for task, most in texts.items():
        own = found[found["task"] == task]
        best = own.loc[own.groupby("item")["value"].idxmax()]
        assert (best["value"] == most).all() and own["value"].eq(most).sum() == own["item"].nunique()
    for task, number in {"search": 6, "ordered": 4, "long": 11}.items():
        own = found[found["task"] == task]
        assert [sorted(one) for _, one in own.groupby("item")["place"]] == [[*range(1, number + 1)]] * own[
            "item"
        ].nunique()
    labels = found.set_index(["task", "item"])["label"]
    assert all(label == item for item, label in labels["bitext"].items())
    assert all(label == f"want {int(item)}" for item, label in labels["intents"].items())
    assert all(
        set(json.loads(label)) == set(SEVERAL[2 * int(item)]["label"]) for item, label in labels["several"].items()
    )
    ratings = read_ratings(study)
    turns = ratings[ratings["transformation"] == "long"].sort_values("turn")["pair_id"]
    assert len(turns.unique()) == 22
    assert set(ratings.loc[ratings["transformation"] == "classes", "order"]) == {""}

"""Tasks that people do, on the crowd's page: each type from the draw to the answers that count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from annotation.campaign_records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.collecting import collect
from annotation.crowd.mturk.adapter import MTurk
from annotation.crowd.summary import plan_text, read_summaries
from annotation.human.records import ANSWERS, HumanAnswer, HumanItem
from annotation.human.simulated import read_items
from annotation.human.tasks import read_tasks
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept, answers_lines, write_answers
from annotation.verdicts.evidence import Evidence
from plumbline.fields import fields_of
from plumbline.manifest import Manifest
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.mturk.mturk_site import MTurkSite, WorkerRefusedError, form_data
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


def test_a_plan_speaks_of_items_and_of_the_pay_of_these_tasks(tmp_path: Path) -> None:
    pay = {"extra": {"alike": 0.5, "expansion": 0.25}}
    study = study_of(tmp_path, {"data": "alike", "items": 3, "raters": 1}, crowd=CROWD | {"pay": pay})
    draw_sample(study)
    text = plan_text(Evidence.open(study), "mturk", "sandbox")
    assert "3 answers (items x workers), " in text and "30 s an item, 50% more for alike;" in text
    assert "pair" not in text


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
            row = asked.last.get_by_role("radiogroup", name=f"Number {place + 1}")
            row.get_by_role("radio", name="1" if right(text) else "2").check()


def refuses_no_order(page: Page) -> None:
    """Whoever says that they can tell is asked for the order."""
    page.get_by_role("radio", name="Yes").check()
    page.locator("#next").click()
    assert "Put the passages into order" in page.locator("#alert").inner_text()


def work_through(page: Page, pool: str, number: int) -> None:
    """Answer all items of a page and send them off."""
    page.get_by_role("checkbox").first.check()
    page.locator("#begin").click()
    for turn in range(1, number + 1):
        expect(page.locator("#turn")).to_contain_text(f" {turn} ")
        assert "pair" not in page.locator("body").inner_text().lower()
        if pool == "ordered" and turn == 1:
            refuses_no_order(page)
        answer_one(page.locator("#item"))
        if pool in ("search", "several", "intents"):
            assert grave(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.locator("#next").click()
    page.locator("#end button").first.click()


def test_who_is_rejected_is_replaced_and_nobody_is_paid_or_counted_twice(site: MTurkSite, tmp_path: Path) -> None:
    """Marks of queries with a record for each candidate, and grades beside one another: 2 raters of each item."""
    study = study_of(
        tmp_path,
        {"data": "long", "items": 2, "raters": 2, "candidates": 11, "relevance": "binary"},
        {"data": "search", "items": 3, "raters": 2, "candidates": 6},
        crowd={**CROWD, "pay": {"extra": {"long": 0.5}}}, acceptance={"min_pairs": 2, "min_raters": 1},
    )  # fmt: skip
    draw_sample(study)
    step = partial(campaigns.step, study, site)
    step(lambda campaign: campaign.launch(0))
    texts = {
        pair.pair_id: {one.name: one.value for one in fields_of(pair)} for pair in CampaignRecords.open(study).shown
    }

    def fields(hit_id: str, knows: bool = True) -> dict[str, str]:
        """What the page sends of a worker who read the second candidate first, and so on."""
        sent = site.fields(hit_id)
        for turn, pair in enumerate(form_data(site.hits[hit_id].html)["pairs"]):
            own = texts[pair["id"]]
            of_use = [right(str(one)) == knows for one in own.get("candidates", [own.get("passage")])]
            names = ["search", *(f"search-{place}" for place in range(2, 7))]
            given = {name: "g3" if one else "g0" for name, one in zip(names, of_use, strict=False)}
            if "passage" in own:
                given = {"long": "yes" if of_use[0] else "no", "order": str(turn % 11 + 1)}
            for name, value in {"order": "2 3 1 6 4 5", "turn": str(turn + 1), **given}.items():
                sent[f"{pair['id']}.{name}"] = value
        return sent

    long, search = site.hits
    assert [hit.reward for hit in site.hits.values()] == [
        660,
        60,
    ]  # 22 records at 45 s, 3 items at 30 s, at $24 an hour
    works = {
        (hit, who): site.work(hit, who, fields(hit)) for hit in site.hits for who in "AB" if (hit, who) != (long, "B")
    }
    works[long, "B"] = site.work(long, "B", fields(long, knows=False), 30)
    step(collect)
    step(lambda campaign: judging.reject(campaign, [works[long, "B"]], "all marks are the wrong way round"))
    with pytest.raises(WorkerRefusedError):
        site.work(long, "B", fields(long))
    step(lambda campaign: campaign.launch(0))
    works[long, "C"] = site.work(long, "C", fields(long), 720)
    for _ in range(2):
        step(collect)
    step(judging.approve_all)
    step(lambda campaign: judging.approve(campaign, [works[search, "B"]], "done well, though excluded"))
    step(judging.pay_bonuses)  # of the grades none yet: somebody is asked to take the excluded worker's place
    assert all(len(site.paid[who, key]) < 2 for (_, who), key in works.items())
    step(lambda campaign: campaign.close())
    for _ in range(2):
        step(judging.pay_bonuses)
    # Of the marks the median of 600 and 720 s is below what 22 times 45 s are paid; 600 s of grades are worth $4.00.
    assert {(who, site.hits[hit].reward): site.paid[who, key] for (hit, who), key in works.items()} == {
        ("A", 660): [660], ("B", 660): [], ("C", 660): [660], ("A", 60): [60, 340], ("B", 60): [60, 340],
    }  # fmt: skip
    (told,) = read_summaries(study)
    assert told.spent == site.balance - site.available == 2 * 792 + 2 * (72 + 408)

    lines = write_answers(CampaignRecords.open(study), read_tasks(study))
    assert lines[0].endswith("2 raters; 0 of 44 answers are 'cannot tell'; not counted: excluded or withdrawn 22")
    assert (
        "0 of 3 items have 2 or more raters, 3 have at least one rater; 1 rater" in lines[1]
    )  # who is rejected once counts nowhere
    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
    for task, most, raters, number in (("long", 1, 2, 22), ("search", 3, 1, 18)):
        own = found[found["task"] == task]
        assert own.groupby("rater_id").size().tolist() == [number] * raters
        items = [one for one in read_items(study) if one.task == task]
        best = {(item.item, name) for item in items for name in item.candidates if right(candidate(item, name, texts))}
        assert {*own[own["value"] == most][["item", "candidate"]].itertuples(index=False, name=None)} == best
    for item in read_items(study):
        own = found[(found["task"] == "search") & (found["item"] == item.item)].set_index("candidate")["place"]
        assert item.task != "search" or [own[name] for name in item.shown] == [3, 1, 2, 5, 6, 4]


def candidate(item: HumanItem, name: str, texts: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of an item's candidate, in its own record or among the others."""
    if item.records:
        return str(texts[item.records[item.candidates.index(name)]]["passage"])
    return str(texts[item.pair_id]["candidates"][item.shown.index(name)])


@pytest.mark.browser
def test_tasks_of_each_type_are_done_by_a_crowd_collected_and_accepted(
    page: Page, site: MTurkSite, tmp_path: Path
) -> None:
    study = study_of(tmp_path, *ALL, crowd=CROWD, acceptance={"min_pairs": 2, "min_raters": 1})
    draw_sample(study)

    def step(what: Callable[[CrowdCampaign], object]) -> None:
        assert campaigns.run(
            study, lambda: MTurk(study, "sandbox", client=site.client(), endpoint=site.url), what, 10**6
        )

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
        work_through(page, pool, len(data["pairs"]))
        page.get_by_text("Submitted").wait_for()
    assert not complaints
    step(lambda campaign: judging.approve(campaign, done) if not collect(campaign).troubles else None)
    assert {one.status for one in site.assignments.values()} == {"Approved"}

    answers_lines(accept(study))
    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
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
    ratings = CampaignRecords.open(study).ratings
    turns = ratings[ratings["transformation"] == "long"].sort_values("turn")["pair_id"]
    assert len(turns.unique()) == 22
    assert set(ratings.loc[ratings["transformation"] == "classes", "order"]) == {""}

"""Known pairs in a real Argilla: beside the campaign, answered by everybody, shown folded, counted nowhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotation import server
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.argilla.training import ENOUGH, publish_training
from annotation.campaign.names import account_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.page.training import by_trained, read_items, read_trained
from annotation.report.material import read_material
from annotation.report.page import all_tables
from annotation.status.status import read_status
from annotation.status.text import status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.study import ROOT, Study
from tests.annotation.campaigns import Make, answer, rater, small
from tests.annotation.test_browser import watch
from tests.concluded import concluded

KNOWN = ROOT / "studies/demo/training.jsonl"
HARM = "<img src=x onerror=alert(1)></details> **bold** [a](javascript:alert(1)) & `code`\n# head"


def made(variant: Make, name: str, training: Path, **changes: Any) -> Study:
    return small(variant, name, transformations=["paraphrasing"], training=str(training), **changes)


def training_dataset(argilla: Argilla, name: str) -> str:
    return next(one.id for (_, dataset), one in argilla.datasets().items() if dataset == f"{name}-training-EN")


def test_known_pairs_are_answered_by_everybody_and_count_nowhere(argilla: Argilla, variant: Make) -> None:
    study = made(variant, "learn", KNOWN, acceptance={"min_pairs": 2})
    rubric = load_rubric(study)
    items = read_items(study, rubric)
    assert [one.pair.language for one in items] == ["en", "en", "de", "de"]  # of paraphrasing alone
    publish(study, argilla)
    assert publish_training(study, argilla, rubric) == {"learn-training-EN": 2}  # no rater reads German here
    assert publish_training(study, argilla, rubric) == {"learn-training-EN": 0}
    own = training_dataset(argilla, "learn")
    listed = next(one for one in argilla.datasets().values() if one.id == own)
    assert listed.distribution["min_submitted"] == ENOUGH  # no number of answers closes a known pair
    ada = rater(argilla, "learn-ada")
    publish(study, argilla)  # lets her in
    good, bad = items[:2]
    records = {one["external_id"]: one for one in argilla.records(own)}
    assert set(records) == {good.pair.pair_id, bad.pair.pair_id}
    answer(argilla, ada, records[good.pair.pair_id], "submitted", quality=4, fluency=2)  # 5 and 5: one is within 1
    answer(argilla, ada, records[bad.pair.pair_id], "draft", quality=1)
    simulate(study, argilla)
    collect(study, argilla)
    trained = by_trained(read_trained(CampaignRecords(study))).set_index("rater_id")
    (account,) = [user.id for user in argilla.users() if user.username == "learn-ada"]
    called = account_pseudonym("learn", account, simulated=False)
    assert trained.loc[called].to_dict() == {"simulated": False, "items": 2, "answered": 1, "judged": 2, "right": 1}
    simulated = trained[trained["simulated"]]
    assert len(simulated) == 3 and simulated["answered"].eq(2).all() and simulated["judged"].eq(4).all()

    known = {one.pair.pair_id for one in items}
    accept(study)
    for numbers in (CampaignRecords(study).all_ratings, concluded(study).means):
        assert not known & set(numbers["pair_id"])
    assert [one.n_ratings for one in concluded(study).verdicts] == [len(CampaignRecords(study).pairs) * 3 * 2]
    status = read_status(Evidence(study), datetime.now(UTC))
    assert "1/2, 1 of 2 right" in status_text(status, more=True)
    assert status.progress["pairs"].sum() == len(CampaignRecords(study).pairs)
    assert all_tables(read_material(Evidence(study)))["training"].frame.set_index("rater_id").loc[called, "right"] == 1


@pytest.fixture
def harmful(variant: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study whose one known pair has markup in its reason; made before the browser, whose loop is in its way."""
    monkeypatch.setattr("annotation.argilla.publish.has_rating_page", lambda *_: False)
    monkeypatch.setattr("annotation.argilla.training.has_rating_page", lambda *_: False)
    file = tmp_path / "known.jsonl"
    row = json.loads(KNOWN.read_text(encoding="utf-8").splitlines()[0])
    file.write_text(json.dumps(row | {"why_en": HARM}) + "\n", encoding="utf-8")
    return made(variant, "folded", file)


@pytest.mark.browser
def test_what_is_right_is_folded_and_texts_are_data(argilla: Argilla, harmful: Study, page: Page) -> None:
    assert argilla.connection is not None
    user = server.ensure_user(argilla.connection, "folder", first_name="Folder")
    publish(harmful, argilla)
    publish_training(harmful, argilla, load_rubric(harmful))
    complaints = watch(page, argilla.url)
    page.goto(argilla.url)
    page.locator("input[type=text]").fill(user.username)
    page.locator("input[type=password]").fill(user.password)
    page.keyboard.press("Enter")
    page.get_by_text("folded-training-EN").click()
    summary = page.locator("details summary").filter(has_text="Answer first, then open")
    expect(summary).to_be_visible()
    right = page.locator("details b").filter(has_text="5: does exactly what was asked")
    expect(right).to_be_hidden()
    summary.click()
    expect(right).to_be_visible()
    assert page.locator("details p").last.inner_text() == f"Why {HARM}"
    assert page.locator("details :is(img, a, strong, h1, code, script)").count() == 0
    assert sorted(set(complaints)) == []

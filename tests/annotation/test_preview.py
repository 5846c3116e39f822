"""What raters will see, as one page: the words and texts that are published, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.page.task import task_of
from annotation.preview import FILE, preview_html, write_preview
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import draw_sample
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.study import Study
from tests.annotation.campaigns import Make, small
from tests.annotation.judgements import pair
from tests.annotation.previews import pages, words
from tests.axe import grave
from tests.shared import generate_once

HOSTILE = (
    "</p><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> [a](javascript:1) =1+1"
)


def test_every_queue_shows_what_raters_are_shown(variant: Make) -> None:
    study = small(variant, "seen", crowd={})
    html, rubric = preview_html(CampaignRecords(study)), load_rubric(study)
    queues = queues_of(CampaignRecords(study).shown)
    assert len(queues) > 2
    shown = {page["task"]["queue"]: page for page in pages(html)}
    assert set(shown) == {queue.dataset(study.name) for queue in queues}
    for queue, pairs in queues.items():
        page = shown[queue.dataset(study.name)]
        assert page["task"] == json.loads(json.dumps(task_of(study, rubric, queue, queue.dataset(study.name))))
        first = sorted(pairs, key=lambda pair: pair.pair_id)[:3]
        assert [item["texts"] for item in page["items"]] == [[pair.original, pair.transformed] for pair in first]
        assert page["submit_to"] == ""
        assert f'<section id="{queue.dataset(study.name)}">' in html


def test_it_says_what_it_was_made_of_and_not_which_pairs_are_controls(variant: Make) -> None:
    study = variant(name="told", transformations=["paraphrasing"], sample={"pairs": 4})
    generate_once(study)
    draw_sample(study)
    page = write_preview(CampaignRecords(study), most=100)
    html = page.read_text(encoding="utf-8")
    assert page == study.folder / FILE
    assert f"Made from {study.folder / 'pairs.parquet'} and {study.folder / 'controls.parquet'}, worded by" in html
    assert "prompts/rubrics/hteb.yaml" in html
    controls = CampaignRecords(study).controls
    assert {control.control for control in controls} == {"positive", "negative", "repeat"}
    (shown,) = pages(html)
    assert len(shown["items"]) == len(CampaignRecords(study).pairs) + len(controls)
    whole = words(html)
    assert not any(pair.pair_id in whole for pair in CampaignRecords(study).shown)
    assert "positive" not in whole and "negative" not in whole


@pytest.mark.browser
def test_in_a_browser_texts_are_text_and_run_their_way(page: Page, variant: Make) -> None:
    arabic = "جلست القطة على الحصيرة."
    changes = {"rubric": "pteb", "transformations": ["paraphrasing"], "wordings": ["ar"], "crowd": {}, "acceptance": {}}
    study: Study = variant(name="hostile", **changes)

    texts = {
        "en": {"original": HOSTILE, "transformed": "A cat sat."},
        "ar": {"original": arabic, "transformed": arabic},
    }
    made = [
        pair(number, language=code, output_language=code).model_copy(update=own)
        for number, (code, own) in enumerate(texts.items())
    ]
    Manifest.of(study).write_table("pairs.parquet", made, Pair)
    Manifest.of(study).write_table("controls.parquet", list[Pair](), Pair)
    file: Path = write_preview(CampaignRecords(study))
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
    page.goto(file.as_uri())
    english, before, other, arabic_before = (page.frame_locator("iframe").nth(place) for place in range(4))
    page.locator("iframe").nth(2).scroll_into_view_if_needed()
    expect(other.locator("html")).to_have_attribute("dir", "rtl")
    for frame, text, direction in ((english, HOSTILE, "ltr"), (other, arabic, "rtl")):
        expect(frame.locator("#intro p").first).to_have_attribute("dir", "auto")  # English ends with its stop
        frame.locator("#begin").click()
        expect(frame.locator(".text", has_text=text).first).to_have_css("direction", direction)
        frame.get_by_role("radio").first.check()
        frame.locator("#next").click()
        expect(frame.get_by_role("heading", level=2)).to_be_focused()
        expect(frame.locator("#notice")).not_to_be_empty()  # nothing is stored
    expect(english.locator("#end")).to_contain_text("This is a trial")
    expect(arabic_before.locator("html")).to_have_attribute("dir", "rtl")
    expect(arabic_before.get_by_role("checkbox")).to_be_visible()  # the consent
    expect(before.get_by_role("checkbox")).to_be_visible()
    assert page.title() == "What raters will see: hostile"
    assert grave(page) == []
    assert complaints == []

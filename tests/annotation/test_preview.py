"""What raters will see, as one page: the words and texts that are published, and nothing else."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotation.campaign_records import CampaignRecords
from annotation.crowd.batches import make_batches
from annotation.crowd.prolific.workspaces import shown_first
from annotation.page import task_of
from annotation.preview import FILE, preview_html, write_preview
from annotation.rubric import load_rubric
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import draw_sample
from annotation.server.plugin.plumbline_argilla.crowd_pages import entrance
from generation.production import generate
from plumbline.errors import DataError
from plumbline.records import Pair
from plumbline.store import write_table
from plumbline.study import Study
from tests.annotation.campaigns import Make, small
from tests.annotation.previews import pages, words
from tests.axe import grave
from tests.commands import here

HOSTILE = (
    "</p><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> [a](javascript:1) =1+1"
)


def test_every_queue_shows_what_raters_are_shown(variant: Make) -> None:
    study = small(variant, "seen", crowd={"contact": "lab@example.org"})
    html, rubric = preview_html(CampaignRecords.open(study)), load_rubric(study)
    queues = queues_of(CampaignRecords.open(study).shown)
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
    generate(study)
    draw_sample(study)
    page = write_preview(study, most=100)
    html = page.read_text(encoding="utf-8")
    assert page == study.folder / FILE
    assert f"Made from {study.folder / 'pairs.parquet'} and {study.folder / 'controls.parquet'}, worded by" in html
    assert "prompts/rubrics/hteb.yaml" in html
    controls = CampaignRecords.open(study).controls
    assert {control.control for control in controls} == {"positive", "negative", "repeat"}
    (shown,) = pages(html)
    assert len(shown["items"]) == len(CampaignRecords.open(study).pairs) + len(controls)
    whole = words(html)
    assert not any(pair.pair_id in whole for pair in CampaignRecords.open(study).shown)
    assert "positive" not in whole and "negative" not in whole


def test_prolifics_first_page_is_the_one_that_the_server_shows(variant: Make) -> None:
    """But for its nonce, its script, and where its form and its link lead."""
    asked = [{"text": "What is rated <first>?", "options": ["The change", "The author"], "right": 0}]
    study = small(variant, "entered", crowd={"contact": "lab@example.org", "comprehension": asked, "consent": "<i>Yes"})
    html = preview_html(CampaignRecords.open(study))
    frames = [unescape(found) for found in re.findall(r'srcdoc="(.*?)"></iframe>', html, re.DOTALL)]
    assert study.crowd is not None
    batches = {batch.queue: batch for batch in reversed(make_batches(study, CampaignRecords.open(study).pairs, []))}
    shown_ = []
    for batch in batches.values():
        room = shown_first(study.crowd, load_rubric(study), batch.queue, len(batch.pair_ids)) | {"return_code": ""}
        page_ = bytes(entrance("", room, [0], "", again=False).body).decode()
        shown_.append(re.sub(r' nonce="[^"]*"', "", re.sub(r"<script.*?</script>", "", page_)))
    assert sorted(one.replace(' nonce=""', "") for one in frames[1::2]) == sorted(shown_)
    assert all("What is rated &lt;first&gt;?" in one and "&lt;i&gt;Yes" in one for one in shown_)


def test_before_there_is_a_sample_it_says_so(variant: Make) -> None:
    study = variant(name="early")
    with pytest.raises(DataError, match=r"pairs\.parquet does not exist yet; run `plumbline sample .*` first"):
        write_preview(study)
    assert not (study.folder / FILE).exists()


def test_the_command_writes_it(variant: Make) -> None:
    study = small(variant, "written")
    words = ("preview", "--study", str(study.file), "--exports", str(study.folder.parent))
    done = here("annotation", *words, "--pairs", "1")
    assert done.returncode == 0
    assert done.stdout == f"written: preview of raters' pages -> {study.folder / FILE}; open it in a browser\n"
    shown = pages((study.folder / FILE).read_text(encoding="utf-8"))
    assert [len(page["items"]) for page in shown] == [1] * len(queues_of(CampaignRecords.open(study).shown))
    assert here("annotation", *words, "--pairs", "0").returncode == 2


@pytest.mark.browser
def test_in_a_browser_texts_are_text_and_run_their_way(page: Page, variant: Make) -> None:
    arabic = "جلست القطة على الحصيرة."
    changes = {"rubric": "pteb", "transformations": ["paraphrasing"], "wordings": ["ar"], "crowd": {}, "acceptance": {}}
    study: Study = variant(name="hostile", **changes)

    def pair(number: int, original: str, transformed: str, language: str) -> Pair:
        return Pair(
            pair_id=f"p{number}", key=f"k{number}", transformation="paraphrasing", axis="form", pool="paraphrasing",
            dataset="demo", task_type="sts", language=language, output_language=language, seed=0, original=original,
            transformed=transformed, model="m", generator_hash="g", prompt_hash="h",
        )  # fmt: skip

    made = [pair(1, HOSTILE, "A cat sat.", "en"), pair(2, arabic, arabic, "ar")]
    write_table(study.folder / "pairs.parquet", made, Pair)
    write_table(study.folder / "controls.parquet", list[Pair](), Pair)
    file: Path = write_preview(study)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
    page.goto(file.as_uri())
    english, before, other, arabic_before = (page.frame_locator("iframe").nth(place) for place in range(4))
    page.locator("iframe").nth(2).scroll_into_view_if_needed()
    expect(other.locator("html")).to_have_attribute("dir", "rtl")
    for frame, text, direction in ((english, HOSTILE, "ltr"), (other, arabic, "rtl")):
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

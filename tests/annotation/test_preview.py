"""What raters will see, as one page: the words and texts that are published, and nothing else."""

from __future__ import annotations

import re
from html import escape, unescape
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from annotation.argilla.dataset import Words
from annotation.campaign_records import CampaignRecords
from annotation.crowd.batches import make_batches
from annotation.crowd.page import question_html
from annotation.crowd.platform import Offer
from annotation.crowd.prolific.workspaces import shown_first
from annotation.preview import FILE, preview_html, write_preview
from annotation.rubric import load_rubric
from annotation.sampling.queues import queues_of
from annotation.sampling.sample import draw_sample
from annotation.server.plugin.plumbline_argilla.crowd_pages import entrance
from annotation.wordings import ANSWERING, ASKED
from generation.production import generate
from plumbline.errors import DataError
from plumbline.records import Pair
from plumbline.store import write_table
from plumbline.study import Study
from tests.annotation.campaigns import Make, small
from tests.axe import grave
from tests.commands import here

HOSTILE = (
    "</p><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> [a](javascript:1) =1+1"
)


def test_every_queue_shows_what_argilla_is_sent(variant: Make) -> None:
    study = small(variant, "seen")
    html, rubric = preview_html(study), load_rubric(study)
    queues = queues_of(CampaignRecords.open(study).shown)
    assert len(queues) > 2
    for queue, pairs in queues.items():
        part = html.split(f'<section id="{queue.dataset(study.name)}">')[1].split("</section>")[0]
        words = Words.of(rubric, queue)
        for title, description in words.questions.values():
            assert escape(title) in part.replace("&#39;", "&#x27;").replace("&#34;", "&quot;")
            assert not description or description in unescape(part)
        options = sum(len(form.options) for form in words.forms.values())
        assert part.count('type="radio"') == min(3, len(pairs)) * options
        first = sorted(pairs, key=lambda pair: pair.pair_id)[:3]
        assert re.findall(r'<p class="text" dir="auto">(.*?)</p>', part) == [
            str(escape(text, quote=False)).replace("'", "&#39;").replace('"', "&#34;")
            for pair in first
            for text in (words.beside[ASKED], pair.original, pair.transformed, words.beside[ANSWERING])
        ]
        for paragraph in re.findall(r"<p>(.*?)</p>", part.split('dir="auto">')[1].split("</div>")[0]):
            plain = unescape(re.sub(r"<br />|</?strong>", "", paragraph))
            assert plain in words.guidelines.replace("**", "").replace("\n", "") or plain in words.guidelines.replace(
                "**", ""
            )


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
    assert html.count('<div class="pair">') == len(CampaignRecords.open(study).pairs) + len(controls)
    assert not any(pair.pair_id in html for pair in CampaignRecords.open(study).shown)
    assert "positive" not in html and "negative" not in html


def test_the_crowds_page_is_the_one_that_is_posted(variant: Make) -> None:
    study = small(variant, "posted", crowd={"contact": "lab@example.org"})
    frames = [unescape(found) for found in re.findall(r'srcdoc="(.*?)"></iframe>', preview_html(study), re.DOTALL)]
    pairs = {pair.pair_id: pair for pair in CampaignRecords.open(study).pairs}
    batches = {batch.queue: batch for batch in reversed(make_batches(study, list(pairs.values()), []))}
    offers = [Offer(one, tuple(pairs[own] for own in one.pair_ids), 1, 0) for one in batches.values()]
    rubric, queues = load_rubric(study), queues_of(pairs.values())
    assert sorted(frames[::2]) == sorted(question_html(study, rubric, offer, "about:blank") for offer in offers)
    assert len(frames) == 2 * len(queues)


def test_prolifics_first_page_is_the_one_that_the_server_shows(variant: Make) -> None:
    """But for its nonce, its script, and where its form and its link lead."""
    asked = [{"text": "What is rated <first>?", "options": ["The change", "The author"], "right": 0}]
    study = small(variant, "entered", crowd={"contact": "lab@example.org", "comprehension": asked, "consent": "<i>Yes"})
    frames = [unescape(found) for found in re.findall(r'srcdoc="(.*?)"></iframe>', preview_html(study), re.DOTALL)]
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
    with pytest.raises(DataError, match=r"pairs\.parquet is not there yet; run `.*annotation sample .*` first"):
        write_preview(study)
    assert not (study.folder / FILE).exists()


def test_the_command_writes_it(variant: Make) -> None:
    study = small(variant, "written")
    words = ("preview", "--study", str(study.file), "--exports", str(study.folder.parent))
    done = here("annotation", *words, "--pairs", "1")
    assert done.returncode == 0
    assert done.stdout == f"written: what raters will see -> {study.folder / FILE}; open it in a browser\n"
    assert (study.folder / FILE).read_text(encoding="utf-8").count('<div class="pair">') == len(
        queues_of(CampaignRecords.open(study).shown)
    )
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
    expect(page.get_by_text(HOSTILE, exact=True).first).to_be_visible()
    expect(page.locator(".text", has_text="A cat sat.").first).to_have_css("direction", "ltr")
    expect(page.locator(".text", has_text=arabic).first).to_have_css("direction", "rtl")
    expect(page.locator(".guidelines").nth(1)).to_have_css("direction", "rtl")
    crowd = page.frame_locator("iframe").nth(2)
    expect(crowd.locator("html")).to_have_attribute("dir", "rtl")
    expect(crowd.get_by_text(arabic, exact=True).first).to_be_visible()
    expect(crowd.get_by_role("radio").first).to_be_disabled()
    prolific = page.frame_locator("iframe").nth(3)
    expect(prolific.locator("html")).to_have_attribute("dir", "rtl")
    expect(prolific.get_by_role("checkbox")).to_be_visible()  # the consent
    expect(page.frame_locator("iframe").nth(0).get_by_text(HOSTILE, exact=True)).to_be_visible()
    assert page.title() == "What raters will see: hostile"
    assert grave(page) == []
    assert complaints == []

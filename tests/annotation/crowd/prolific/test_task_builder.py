"""Task Builder against a local server that speaks its documented API: what is shown, every break, every refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotation.campaign_records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.platform import Offer, Platform, RefusedError, UncertainError
from annotation.crowd.prolific.task_builder import LOOKS, TaskBuilder
from annotation.names import worker_pseudonym
from annotation.report.material import read_material
from annotation.report.raters import paragraphs
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline import __main__ as commands
from plumbline import cli
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import ALONE, Make
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.prolific.prolific_site import PlaceError, Site, prolific_site
from tests.annotation.crowd.prolific.test_adapter import offer, once
from tests.annotation.kinds import BETTER, FAULTS, NATURAL, ORDER, RULES, ask, rubric

KEY, TOKEN, PID, OTHER = campaigns.KEY, "a" * 64, "5" * 24, "6" * 24
CROWD = {**campaigns.CROWD, "address": "task_builder", "consent": "I agree to <b>all</b>."}
TEXT = 'Say "so",\nor =1+1 <b>not</b>.'


@pytest.fixture
def site() -> Iterator[Site]:
    with prolific_site() as running:
        yield running


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    return variant(crowd=CROWD)


Open = Callable[..., TaskBuilder]


@pytest.fixture
def opened(site: Site) -> Iterator[Open]:
    """The platform as a new process finds it."""
    platforms: list[TaskBuilder] = []

    def make(study: Study, mode: Any = "live") -> TaskBuilder:
        platforms.append(TaskBuilder(study, mode, KEY, address=site.url, token=site.token, pause=site.pause))
        return platforms[-1]

    yield make
    for platform in platforms:
        platform.close_connections()


@pytest.fixture
def live(study: Study, opened: Open) -> TaskBuilder:
    return opened(study)


def texts_in(places: int = 3) -> Offer:
    plain = offer(places, output="en")
    pairs = tuple(pair.model_copy(update={"transformed": f"{TEXT} {pair.pair_id}"}) for pair in plain.pairs)
    return Offer(plain.batch, pairs, places, plain.reward)


def fours(texts: list[str], item: dict[str, Any]) -> str:
    return "4"


def test_a_batch_is_one_task_with_a_page_for_each_pair_and_a_published_study(live: TaskBuilder, site: Site) -> None:
    posted_id = live.post(texts_in(), TOKEN)
    sent, (batch,), (dataset,) = site.studies[posted_id], site.batches.values(), site.datasets.values()
    assert (sent["status"], sent["internal_name"], sent["total_available_places"]) == ("ACTIVE", TOKEN, 3)
    assert (sent["data_collection_method"], sent["data_collection_id"]) == ("AI_TASK_BUILDER_BATCH", batch["id"])
    assert "external_study_url" not in sent and "our own pages" not in sent["description"]
    assert "By taking part you agree to this: I agree to &lt;b&gt;all&lt;/b&gt;." in sent["description"]
    assert [one["actions"] for one in sent["completion_codes"]] == [[{"action": "MANUALLY_REVIEW"}]]
    (row,) = dataset["rows"]
    assert row["pair_2_text_1"] == "One." and row["pair_2_text_2"] == f"{TEXT} pair1"  # byte for byte
    assert batch["task_details"]["task_introduction"] == "<p>I agree to &lt;b&gt;all&lt;/b&gt;.</p>"
    guidelines, *pages = batch["batch_items"]
    assert len(pages) == 4 and guidelines["rows"][0]["columns"][0]["items"][0]["content_format"] == "markdown"
    texts, *questions = pages[1]["rows"]
    assert [column["items"][1]["field"] for column in texts["columns"]] == ["pair_2_text_1", "pair_2_text_2"]
    asked = [row["columns"][0]["items"][0] for row in questions]
    assert [one["type"] for one in asked] == ["multiple_choice", "multiple_choice"]
    assert [option["value"] for option in asked[0]["options"]] == ["1", "2", "3", "4", "5", "cannot judge"]
    assert live.preview(posted_id) == f"https://app.prolific.com/researcher/studies/{posted_id}"
    live.post(texts_in(), "b" * 64)
    assert len(site.batches) == len(site.datasets) == 1  # what is there under its name is not made again


def test_in_the_sandbox_nothing_is_published_and_live_has_a_batch_of_its_own(
    study: Study, opened: Open, site: Site
) -> None:
    sandbox = opened(study, "sandbox")
    posted_id = sandbox.post(texts_in(), TOKEN)
    sandbox.extend(posted_id, places=5, token=TOKEN)
    assert site.studies[posted_id]["status"] == "UNPUBLISHED" and "transition_study" not in site.calls
    opened(study).post(texts_in(), "b" * 64)
    assert len({batch["name"] for batch in site.batches.values()}) == 2


OPERATIONS = ("create_dataset", "upload_url", "put_file", "data_import", "create_batch", "set_up_batch")


@pytest.mark.parametrize("what", ["500", "429", "drop"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("operation", [*OPERATIONS, "create_study", "transition_study"])
def test_one_study_is_published_wherever_posting_breaks_off(
    live: TaskBuilder, site: Site, operation: str, moment: str, what: str
) -> None:
    site.fault = once(operation, moment, what)
    try:
        live.post(texts_in(), TOKEN)
    except ServiceError:
        assert operation not in ("create_dataset", "upload_url", "put_file", "data_import")  # tried again by themselves
        if live.find_posted(TOKEN) is None:
            live.post(texts_in(), TOKEN)
    assert [one["status"] for one in site.studies.values()] == ["ACTIVE"]
    assert len(site.batches) == 1
    assert [one["total_available_places"] for one in site.studies.values()] == [3]


def test_a_failed_import_or_set_up_offers_nothing_and_is_left_behind(live: TaskBuilder, site: Site) -> None:
    for name, bad in (("imports_end", "failed"), ("imports_end", "partial"), ("set_up_ends", "ERROR")):
        good = getattr(site, name)
        setattr(site, name, bad)
        with pytest.raises(
            RefusedError, match="could not read a batch's texts .*; nothing was offered; run the command again"
        ):
            live.post(texts_in(), TOKEN)
        setattr(site, name, good)
    site.busy = LOOKS + 1
    with pytest.raises(UncertainError, match="is still processing a batch's texts"):
        live.post(texts_in(), TOKEN)
    assert not site.studies
    site.busy = 1
    live.post(texts_in(), TOKEN)
    assert [one["status"] for one in site.studies.values()] == ["ACTIVE"]


def test_a_batch_that_prolific_would_deal_out_in_parts_or_count_otherwise_is_not_published(
    live: TaskBuilder, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = site.counted
    monkeypatch.setattr(site, "counted", lambda body: {"total_available_places": 30})
    for _ in range(2):
        with pytest.raises(
            RefusedError, match="set the number of places to 30 instead of 3; the study was not published"
        ):
            live.post(texts_in(), TOKEN)
    with pytest.raises(RefusedError, match="set the number of places to 30"):
        live.find_posted(TOKEN)
    assert {one["status"] for one in site.studies.values()} == {"UNPUBLISHED"}
    monkeypatch.setattr(site, "counted", usual)
    put = site.put_file
    monkeypatch.setattr(site, "put_file", lambda query, body, key: put(query, {"content": 2 * body["content"]}, key))
    with pytest.raises(RefusedError, match="made 2 tasks instead of 1 from batch b+"):
        live.post(offer(output="en"), "c" * 64)
    assert not site.paid


def test_texts_are_sent_to_no_address_that_others_could_read(
    live: TaskBuilder, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("http://files.example.org/a", "ftp://a", "http://[", "None"):
        monkeypatch.setattr(site, "upload_url", lambda *_, given=address: {"upload_url": given, "import_id": "a"})
        with pytest.raises(ServiceError, match="returned no https address for an upload; nothing was sent"):
            live.post(texts_in(), TOKEN)
    assert "put_file" not in site.calls


def test_places_are_added_and_a_rejected_one_is_offered_again(live: TaskBuilder, site: Site) -> None:
    posted_id = live.post(texts_in(1), TOKEN)
    live.extend(posted_id, places=2, token=TOKEN)
    assert live.posted(posted_id).places == 2
    assert site.studies[posted_id]["data_collection_metadata"] == {"annotators_per_task": 2}
    works = [site.join(posted_id, pid) for pid in (PID, OTHER)]
    for work in works:
        site.submit(work)
    live.reject(live.submission(works[0]), "Empty.")
    live.approve(live.submission(works[1]))
    for _ in range(2):
        live.extend(posted_id, places=3, token=TOKEN)
    site.join(posted_id, "7" * 24)
    with pytest.raises(PlaceError):
        site.join(posted_id, "8" * 24)


def test_answers_are_those_of_the_submission_and_anything_else_is_said(live: TaskBuilder, site: Site) -> None:
    posted_id = live.post(texts_in(), TOKEN)
    works = [site.join(posted_id, pid) for pid in (PID, OTHER)]
    site.answer(works[0], fours)
    site.answer(works[1], lambda texts, item: "cannot judge" if texts[1].endswith("pair0") else "2")
    for work in works:
        site.submit(work)
    first, second = (live.answers(live.submission(work), texts_in()) for work in works)
    assert [answer.values for answer in first] == 4 * [{"quality": 4, "fluency": 4}]
    assert [answer.status for answer in second] == ["discarded", "submitted", "submitted", "submitted"]
    assert second[1].values == {"quality": 2, "fluency": 2} and second[0].pair_id == "pair0"
    submission, kept = live.submission(works[0]), list(site.responses)

    def says(words: str) -> None:
        with pytest.raises(DataError, match=f"submission {works[0]}: .*{words}"):
            live.answers(submission, texts_in())
        site.responses[:] = [{**one, "response": dict(one["response"])} for one in kept]

    site.responses[:] = kept[8:]
    says("has no answers for it")
    del site.responses[0]
    says("pair pair0 has no answer to 'quality'")
    site.responses.append({**kept[0], "id": "again"})
    says("answers a question twice")
    site.responses[0]["response"]["instruction_id"] = "another"
    says("answers a question that its batch does not have")
    site.responses[0]["response"]["answer"] = [{"value": "9"}]
    says("pair pair0, quality: '9' is not on the scale 1 to 5")
    (batch,) = site.batches.values()
    batch["batch_items"].reverse()
    says("pages on Prolific differ from those created; check whether they were changed there")
    batch["batch_items"] = None
    says("pages on Prolific differ from those created")
    del site.studies[posted_id]["data_collection_id"]
    says("was not offered on Task Builder")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"raters": {"difference": True}}, r"the differences between two texts \(raters.difference\)"),
        ({"crowd": {**CROWD, "comprehension": [{"text": "So?", "options": ["a", "b"], "right": 0}]}}, "comprehension"),
    ],
)
def test_what_the_page_cannot_show_is_refused_before_anything_is_made(
    variant: Make, opened: Open, site: Site, changes: dict[str, Any], what: str
) -> None:
    platform = opened(variant(**{"crowd": CROWD, **changes}))
    with pytest.raises(StudyError, match=f"Task Builder cannot show .*{what}"):
        platform.check(texts_in())
    with pytest.raises(RefusedError, match="cannot show"):
        platform.post(texts_in(), TOKEN)
    assert not (site.studies or site.batches or site.datasets)


def test_questions_of_all_kinds_but_orders_and_sliders_are_answered_collected_judged_and_paid(
    variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: Site
) -> None:
    parts: dict[str, Any] = {
        "crowd": CROWD, "raters": {"per_pair": 1}, "sample": {"pairs": 3, **ALONE},
        "acceptance": {"rules": [rule for rule in RULES if rule.get("question") != "order"], "min_pairs": 2,
                       "min_raters": 1},
    }  # fmt: skip
    fine = {"name": "fine", "title": {"en": "How fine?"}, "scale": {"from": 0, "to": 100, "step": 1},
            "points": {0: {"en": "not"}, 100: {"en": "very"}}}  # fmt: skip
    for number, (question, what) in enumerate(((ORDER, "the ranking 'order'"), (fine, "the slider 'fine'"))):
        ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, BETTER, question))
        quality = {"within": 1, "apart": 1, "low": 2}  # a scale of another length wants them said
        study = campaigns.drawn(variant, name=f"refused-{number}", rubric="kinds", quality=quality, **parts)
        with pytest.raises(StudyError, match=f"cannot show {what}"):
            campaigns.run(study, partial(_platform, study, site), lambda campaign: campaign.launch(0), 10**6)
    assert not (site.studies or site.datasets)
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, BETTER))
    study = campaigns.drawn(variant, name="kinds", rubric="kinds", **parts)

    def step(what: Callable[..., object]) -> None:
        assert campaigns.run(study, partial(_platform, study, site), what, 10**6)

    step(lambda campaign: campaign.launch(0))
    (posted,) = site.studies
    work = site.join(posted, PID)
    site.answer(work, _said)
    site.submit(work)
    step(collect)
    ratings = CampaignRecords.open(study).ratings
    own = ratings[ratings["pair_id"] == ratings["pair_id"].iloc[0]].set_index("question")["answer"]
    assert own["naturalness"] == "natural" and own["faults"] == "grammar, words" and own["better"] == "[31mSo."
    assert set(ratings["rater_id"]) == {worker_pseudonym(KEY, study.name, "prolific", PID)}
    assert ratings["seconds"].isna().all()  # Prolific does not say how long an answer took
    step(lambda campaign: judging.approve(campaign, [work]))
    assert site.submissions[work]["status"] == "APPROVED" and accept(study).verdicts
    said = " ".join(paragraphs(read_material(Evidence.open(study))))
    assert "on Prolific's own page (Task Builder), which looks different from this study's rating page" in said


def _said(texts: list[str], item: dict[str, Any]) -> object:
    values = [option["value"] for option in item.get("options", ())]
    if "grammar" in values:
        return ["words", "grammar"]
    return "\x1b[31mSo." if item["type"] == "free_text" else "natural" if "natural" in values else "4"


def _platform(study: Study, site: Site) -> Platform:
    return TaskBuilder(study, "live", KEY, address=site.url, token=site.token, pause=site.pause)


def test_the_commands_need_no_server_and_links_need_one(
    variant: Make, site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    study = campaigns.drawn(variant, crowd=CROWD)
    monkeypatch.setenv("PROLIFIC_TOKEN", site.token)
    monkeypatch.setenv("PROLIFIC_ADDRESS", site.url)

    def crowd(name: str, *words: str, study: Study = study) -> tuple[int, str]:
        options = ["--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(tmp_path / "home")]
        with pytest.raises(SystemExit) as ended:
            cli.run(lambda: commands.run(["crowd", name, *options, *words]))
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    site.busy = 0
    assert crowd("plan", "--platform", "prolific")[0] == 0
    status, said = crowd("launch", "--platform", "prolific")
    assert status == 0 and "try batch" in said and "https://app.prolific.com/researcher/studies/" in said, said
    assert {one["status"] for one in site.studies.values()} == {"UNPUBLISHED"}
    changed = campaigns.drawn(variant, name="marked", crowd=CROWD, raters={"difference": True})
    status, said = crowd("plan", "--platform", "prolific", study=changed)
    assert status == 2 and "Task Builder cannot show the differences between two texts" in said
    status, said = crowd("launch", "--platform", "link")
    assert status == 2 and "crowd.address is task_builder, which only `--platform prolific` offers" in said

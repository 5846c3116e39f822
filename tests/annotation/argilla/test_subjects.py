"""Other subjects than pairs, from the draw through Argilla to verdicts and pages."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.campaign.records import CampaignRecords
from annotation.crowd.batches import make_batches
from annotation.crowd.platform import Offer
from annotation.crowd.prolific.workspaces import ArgillaRooms
from annotation.report.exhibits import labels_exhibit
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from plumbline.study import ROOT, Study, load_study
from streamlit_app.readers.campaign import CampaignReader
from tests.annotation.campaigns import answer, rater
from tests.annotation.kinds import ask
from tests.annotation.subjects import CHAT, rubric, texts
from tests.concluded import concluded
from tests.streamlit_app.conftest import go_to

pytestmark = pytest.mark.usefixtures("undrawn")


def test_texts_of_a_file_from_the_draw_to_verdicts(
    argilla: Argilla, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask(monkeypatch, tmp_path, rubric())
    study = texts(tmp_path, "subject-texts")
    pairs = draw_sample(study)
    assert Counter((pair.transformation, pair.language) for pair in pairs) == {
        ("machine", "en"): 9, ("human", "en"): 5, ("human", "de"): 4,
    }  # fmt: skip
    known = [pair for pair in CampaignRecords(study).controls if pair.control == "known"]
    assert len(known) == 2 and all(json.loads(pair.expected)["label"] for pair in known)  # one a batch of nine

    publish(study, argilla)
    datasets = {queue: listed.id for queue, listed in published(CampaignRecords(study), argilla).items()}
    assert {queue.dataset(study.name) for queue in datasets} == {"subject-texts-texts-DE", "subject-texts-texts-EN"}
    english = next(one for queue, one in datasets.items() if queue.language == "en")
    fields = argilla.request("GET", f"/datasets/{english}/fields")["items"]
    assert [(one["name"], one["title"], one["settings"]["type"]) for one in fields] == [
        ("asked", "What this is about", "text"), ("text", "Instruction", "text"), ("talk", "Talk", "chat"),
        ("answering", "Keys", "text"),
    ]  # fmt: skip
    records = list(argilla.records(english))
    assert records[0]["fields"]["talk"] == CHAT
    assert records[0]["fields"]["asked"].startswith("Programs that compare or sort texts")
    sent = json.dumps(records, ensure_ascii=False)
    assert not any(word in sent for word in ("acceptable", "machine", "human", "known"))  # no gold, and no group

    person = rater(argilla, "subject-ada")
    publish(study, argilla)
    control = next(one for one in records if one["external_id"] in {pair.pair_id for pair in known})
    right = next(json.loads(pair.expected)["label"] for pair in known if pair.pair_id == control["external_id"])
    wrong = "unnatural" if right == "acceptable" else "acceptable"
    answer(argilla, person, control, "submitted", label=wrong)
    assert simulate(study, argilla)
    ratings = collect(study, argilla)
    assert set(ratings["question"]) == {"label"} and set(ratings["transformation"]) == {"human", "machine"}
    assert not set(ratings["pair_id"]) & {pair.pair_id for pair in known}
    signs = {sign.evidence for sign in Evidence(study).signs if sign.rule == "controls"}
    assert f"1 of 1 answers to controls are wrong: known label {wrong} instead of {right}" in signs

    accept(study)
    verdicts = {(one.transformation, one.language): one for one in concluded(study).verdicts}
    assert set(verdicts) == {("human", "en"), ("human", "de"), ("machine", "en")}
    for (group, language), verdict in verdicts.items():
        own = ratings[(ratings["transformation"] == group) & (ratings["language"] == language) & ~ratings["surplus"]]
        share = next(one.share.value for one in verdict.questions[0].shares if one.label == "acceptable")
        assert share == pytest.approx((own["answer"] == "acceptable").mean())
        assert verdict.decision == ("accepted" if share >= 0.6 else "rejected")
        assert (verdict.origin.generator_kind, verdict.origin.model) == ("texts", "subject-texts.jsonl")
    stages = read_status(Evidence(study), datetime.now(UTC)).stages
    assert {name for name, stage in stages.items() if stage.state != "done"} == {"report"}
    html = write_report(study)[0].read_text(encoding="utf-8")
    assert "The texts of human come from the file subject-texts.jsonl." in html
    assert len(CampaignReader(study).table(labels_exhibit).frame)
    pd.testing.assert_frame_equal(collect(study, argilla), ratings)
    texts_shown = dashboard(study, pairs[0].pair_id, monkeypatch)
    assert "talk (en)" in texts_shown or "talk (de)" in texts_shown  # the open pair, with its fields


def dashboard(study: Study, pair_id: str, patch: pytest.MonkeyPatch) -> list[str]:
    """What stands as text on the page of texts with a pair open; other pages show without a failure, too."""
    patch.setattr("sys.argv", ["app.py", "--study", str(study.file), "--exports", str(study.folder.parent)])
    for view in ("answer", "verdicts", "campaign", "texts"):
        shown = AppTest.from_file(str(ROOT / "streamlit_app" / "app.py"), default_timeout=60)
        go_to(shown, view)
        shown.query_params["pair"] = pair_id
        assert not shown.run().exception, view
    return [one.value for one in shown.text]


def test_items_of_data_sets_from_the_draw_to_verdicts(argilla: Argilla, tmp_path: Path) -> None:
    study = load_study(ROOT / "studies" / "items.yaml", tmp_path)
    pairs = draw_sample(study)
    assert Counter(pair.transformation for pair in pairs) == {"sample_sts": 10, "sample_reranking": 10}
    publish(study, argilla)
    datasets = {queue.pool: listed.id for queue, listed in published(CampaignRecords(study), argilla).items()}
    shown = {
        pool: [one["name"] for one in argilla.request("GET", f"/datasets/{dataset}/fields")["items"]]
        for pool, dataset in datasets.items()
    }
    assert shown == {
        "sample_sts": ["asked", "sentence1", "sentence2", "answering"],
        "sample_reranking": ["asked", "query", "candidates", "answering"],
    }
    asked = argilla.request("GET", f"/datasets/{datasets['sample_reranking']}/questions")["items"]
    assert [one["name"] for one in asked] == ["best", "clear", "comment"]
    records = list(argilla.records(datasets["sample_reranking"]))
    assert all(record["fields"]["candidates"].startswith("1. ") for record in records)
    assert {tuple(record["metadata"]) for record in records} == {("language", "output_language")}

    assert simulate(study, argilla)
    ratings = collect(study, argilla)
    accept(study)
    verdicts = {one.transformation: one for one in concluded(study).verdicts}
    for group, question in (("sample_sts", "similarity"), ("sample_reranking", "best")):
        own = ratings[ratings["transformation"] == group]
        assert set(own["question"]) == {question, "clear"} and verdicts[group].n_pairs == 10
        clear = next(one for one in verdicts[group].questions if one.question == "clear")
        assert clear.mean == pytest.approx(own.loc[own["question"] == "clear", "value"].mean())
        assert verdicts[group].task_type == "" and verdicts[group].origin.generator_kind == "items"
    html = write_report(study)[0].read_text(encoding="utf-8")
    assert "20 items, drawn at random (seed 1337) from 34: 10 for each of 2 data sets" in html


def test_a_room_of_participants_shows_the_fields_and_no_right_answer(
    argilla: Argilla, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask(monkeypatch, tmp_path, rubric())
    crowd = {"countries": {"en": ["US"], "de": ["DE"]}, "fee": 0.25, "address": "https://argilla.example.org"}
    study = texts(tmp_path, "subject-room", crowd=crowd, sample={"pairs": 4, "batch": 9, "repeats": 0})
    pairs = [*draw_sample(study), *CampaignRecords(study).controls]
    fix_rules(CampaignRecords(study))
    known = {pair.pair_id: pair for pair in pairs}
    batches = make_batches(study, CampaignRecords(study).pairs, CampaignRecords(study).controls)
    batch = next(one for one in batches if any(known[pair_id].control == "known" for pair_id in one.pair_ids))
    offer = Offer(batch, tuple(known[one] for one in batch.pair_ids), 2, 100)
    room = ArgillaRooms(study, "live", b"a key of the tests", argilla).open(offer)
    name = f"subject-room-crowd-{room.room_id}"
    records = list(argilla.records(argilla.datasets()[name, name].id))
    assert {record["external_id"] for record in records} == set(batch.pair_ids)
    assert all(record["fields"]["talk"] == CHAT for record in records)
    assert "acceptable" not in json.dumps(records) and batch.pool == "texts"

"""A study with a label, several labels, a text and a scale of its own beside two ratings: from publishing to pages."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pandas as pd
import pytest

from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.campaign.records import CampaignRecords
from annotation.preview import preview_html
from annotation.report.exhibits import labels_exhibit
from annotation.report.page import write_report
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from streamlit_app.readers.campaign import CampaignReader
from tests.annotation.campaigns import PARAPHRASING, Make, answer, dataset, rater, small
from tests.annotation.kinds import BETTER, EFFORT, FAULTS, NATURAL, ORDER, RULES, ask, rubric
from tests.annotation.previews import pages
from tests.concluded import concluded

pytestmark = pytest.mark.usefixtures("undrawn")

ORDERED = [{"value": "form", "rank": 2}, {"value": "sense", "rank": 2}, {"value": "tone", "rank": 1}]


def test_all_kinds_from_publishing_to_pages(
    argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, EFFORT, BETTER, ORDER))
    acceptance = {"min_pairs": 3, "rules": RULES}
    study = small(variant, "kinds", rubric="kinds", acceptance=acceptance, sample={"pairs": 4})
    publish(study, argilla)
    datasets = published(CampaignRecords(study), argilla).items()
    foreign = next(listed.id for queue, listed in datasets if queue.pool == "translation")
    questions = argilla.request("GET", f"/datasets/{foreign}/questions")["items"]
    assert [(one["name"], one["required"]) for one in questions] == [
        ("quality", True), ("fluency", True), ("naturalness", True), ("effort", False), ("better", False),
        ("order", True), ("comment", False),
    ]  # fmt: skip
    own = dataset(study, argilla, PARAPHRASING)
    names = [one["name"] for one in argilla.request("GET", f"/datasets/{own}/questions")["items"]]
    assert names == ["quality", "fluency", "naturalness", "faults", "better", "order", "comment"]
    sampled = {pair.pair_id for pair in Evidence.read(study).collected.sample_pairs}
    record = next(one for one in argilla.records(own) if one["external_id"] in sampled)
    assert record["fields"]["asked"] == "The program was asked to rephrase the text while keeping its meaning."

    person = rater(argilla, "kinds-ada")
    publish(study, argilla)  # lets her in, and changes nothing else
    answer(argilla, person, record, "submitted", quality=4, fluency=5, naturalness="odd", faults=["words", "grammar"],
           better="  <b>Better</b>  ", order=ORDERED)  # fmt: skip
    assert simulate(study, argilla)
    ratings = collect(study, argilla)
    mine = ratings[(ratings["pair_id"] == record["external_id"]) & ~ratings["simulated"]].set_index("question")
    assert mine["answer"].to_dict() == {
        "quality": "", "fluency": "", "naturalness": "odd", "faults": "grammar, words", "better": "<b>Better</b>",
        "order": "tone > form = sense",
    }  # fmt: skip
    assert mine["value"].dropna().to_dict() == {"quality": 4, "fluency": 5}
    assert set(ratings.loc[ratings["question"] == "faults", "transformation"]) == {"paraphrasing"}
    assert "effort" not in set(ratings["question"])  # it need not be answered, and no recording has one to simulate
    pd.testing.assert_frame_equal(collect(study, argilla), ratings)  # again, from the snapshot and the server

    accept(study)
    for verdict in concluded(study).verdicts:
        summaries = {one.question: one for one in verdict.questions}
        assert summaries["naturalness"].kind == "label" and summaries["better"].kind == "text"
        assert [one.label for one in summaries["naturalness"].shares] == ["natural", "odd", "wrong"]
        assert sum(one.share.value for one in summaries["naturalness"].shares) == pytest.approx(1)
        given = ratings[(ratings["question"] == "naturalness") & (ratings["transformation"] == verdict.transformation)]
        odd = next(one.share for one in summaries["naturalness"].shares if one.label == "odd")
        counted = given[~given["surplus"] & (given["status"] == "submitted")]
        assert odd.value == pytest.approx((counted["answer"] == "odd").mean())
        assert {one.label for one in summaries["order"].ranks} == {"sense", "tone", "form"}
        assert verdict.result.rules and pd.isna(verdict.result.threshold) and pd.isna(summaries["naturalness"].mean)
    assert set(concluded(study).means["question"]) == {"quality", "fluency", "naturalness", "faults", "order"}
    assert all(sign.rule for sign in Evidence(study).signs)
    assert Evidence.whole(study).design.needed("paraphrasing") == ("quality", "fluency", "naturalness", "order")
    html = write_report(study)[0].read_text(encoding="utf-8")
    assert "naturalness (“How does the new text sound?”) asked for one of natural, odd, wrong" in html
    assert "Kendall's tau-b" in unescape(html)
    assert "order (“What suffered most?”) asked for the order of form, sense, tone" in html
    shown = pages(preview_html(CampaignRecords(study)))
    assert all(["tone", "Its tone"] in page["task"]["questions"][-1]["points"] for page in shown)
    assert sum(len(page["items"]) for page in shown) > 5
    assert (study.folder / "report" / "labels.csv").exists()
    labels = CampaignReader(study).table(labels_exhibit).frame
    assert {"AC1", "Fleiss' kappa", "alpha (nominal)", "alpha (MASI)", "share", "agreement", "tau-b", "W",
            "mean rank", "ranked first"} == set(labels["number"])  # fmt: skip
    assert len(CampaignReader(study).shares())

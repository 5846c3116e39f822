"""Judges on the page of verdicts: after people's, with what is made up said, down to the pair; else left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
import streamlit as st

from annotation.adjudication import ADJUDICATIONS
from annotation.campaign_records import CampaignRecords
from annotation.judges.run import judge, read_judgements
from annotation.judges.select_generator import FOLDER
from annotation.records import Adjudication
from plumbline.manifest import Manifest
from plumbline.study import Study
from streamlit_app.readers.campaign import CampaignReader
from tests.streamlit_app.conftest import DEMO, Open
from tests.streamlit_app.test_app import assert_calm, captions, table_with, texts


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


def test_judges_stand_after_people_with_what_is_made_up_and_down_to_the_pair(page: Open, study: Study) -> None:
    assert (
        CampaignReader(study).judges() is None
    )  # so that the section is left out, as every other test of the page holds
    judge(study)
    far = CampaignReader(study).judges()
    assert far is not None and not far.left_out
    pair_id, at = str(far.far["pair_id"].iloc[0]), datetime(2026, 3, 1, tzinfo=UTC)
    of_pair: dict[str, Any] = {"pair_id": pair_id, "adjudicator": "rater-0a1b2c3d", "rated": False, "comment": ""}
    decided = {"question": "quality", "value": 4, "answer": "", "suggested": 2, "status": "submitted"}
    Manifest.of(study).write_models(ADJUDICATIONS.name, [Adjudication(**of_pair, **decided, submitted_at=at)])
    choice = study.folder / FOLDER / "self_preference.csv"
    choice.parent.mkdir()
    choice.write_text("model,self_preference,low,high,reason\nmade/alpha,0.493,0.47,0.52,\n", encoding="utf-8")
    shown = page("--study", DEMO, "--exports", study.folder.parent, view="verdicts", pair=far.far["pair_id"].iloc[0])
    assert_calm(shown)
    headings = [heading.value for heading in shown.header]
    assert headings.index("Decisions") < headings.index("Raters' severity") < headings.index("Judges beside people")
    assert "Judges whose answers come from a file: numbers, shares." in texts(shown) and "SIMULATED RATINGS" in texts(
        shown
    )
    decided = table_with(shown, "People", "People + judges").set_index("Transformation")
    assert decided.loc["Expansion", "People + judges"] == "refused"
    assert decided.loc["Expansion", "Rests on"].startswith("people alone: quality, fluency: 24 rated pairs; ")
    assert "people + judges: 48 rated, 48 judged, worth" in decided.loc["Translation", "Rests on"]
    assert list(decided["People"]) == [
        decision.split()[-1] for decision in table_with(shown, "Decision", "Raters")["Decision"]
    ]
    assert len(table_with(shown, "Judge", "Slope [95%]")) == 2 * 2  # judges and questions
    assert table_with(shown, "Model", "Self-preference")["Self-preference"].tolist() == [0.49]
    assert {"Gap [95%]", "AC2"} <= set(table_with(shown, "Judge", "Spearman"))

    (row,) = table_with(shown, "Adjudicator", "Decided").to_dict("records")
    assert (row["Decided"], row["Judges' score shown"], row["Also rated the pair"]) == ("4", 2, "no")
    assert "they are not ratings and affect no result" in captions(shown)
    judgements = table_with(shown, "Judge", "Score")  # in the dialog of the pair
    judged = read_judgements(study).query("pair_id == @pair_id")
    assert (
        sorted(judgements["Score"].dropna()) == sorted(judged["score"].dropna()) and len(judgements) == len(judged) == 4
    )
    assert "they decide nothing" in captions(shown)

    # The ratings to read are those far from a judge, the farthest first.
    scores = read_judgements(study).set_index(["pair_id", "question", "judge"])["score"].unstack("judge")
    ratings = CampaignRecords.open(study).ratings
    apart = scores.reindex(pd.MultiIndex.from_frame(ratings[["pair_id", "question"]])).sub(
        ratings["value"].to_numpy(), axis=0
    )
    assert len(far.far) == int((apart.abs().max(axis=1) > 2 + 1e-9).sum())
    assert far.far["farthest"].abs().is_monotonic_decreasing
    assert far.far["farthest"].abs().iloc[0] == pytest.approx(apart.abs().max(axis=None))

    (study.judgements / "numbers.parquet").write_bytes(b"PAR1")
    damaged = page("--study", DEMO, "--exports", study.folder.parent, view="verdicts")
    assert_calm(damaged)
    assert "numbers.parquet" in texts(damaged) and "Another threshold" in [header.value for header in damaged.header]

"""Questions of all kinds through Prolific's path: rooms in a real Argilla, the platform, ratings, verdicts, pay."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotation import server
from annotation.argilla.client import Argilla
from annotation.campaign_records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.judging import sheet_text
from annotation.crowd.prolific.workspaces import ArgillaRooms
from annotation.names import worker_pseudonym
from annotation.verdicts.acceptance import accept
from tests.annotation.campaigns import ALONE, Make, answer
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.prolific.prolific_site import prolific_site
from tests.annotation.kinds import BETTER, FAULTS, NATURAL, ORDER, RULES, ask, rubric

PID = "5" * 24
CROWD = {**campaigns.CROWD, "address": "https://argilla.example.org"}
RANKS = [{"value": "tone", "rank": 1}, {"value": "form", "rank": 1}, {"value": "sense", "rank": 3}]
GIVEN: dict[str, Any] = {"quality": 4, "fluency": 5, "naturalness": "natural", "faults": ["words", "grammar"]}


def test_a_batch_of_all_kinds_is_answered_collected_judged_and_paid(
    argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask(monkeypatch, tmp_path, rubric(NATURAL, FAULTS, BETTER, ORDER))
    study = campaigns.drawn(
        variant, name="prolific-kinds", rubric="kinds", crowd=CROWD, raters={"per_pair": 1},
        sample={"pairs": 3, **ALONE}, acceptance={"rules": RULES, "min_pairs": 2, "min_raters": 1},
    )  # fmt: skip
    rooms = ArgillaRooms(study, "live", campaigns.KEY, argilla)
    with prolific_site() as site:
        step = partial(campaigns.step, study, site, rooms=rooms)
        step(lambda campaign: campaign.launch(0))
        ((posted, at),) = site.studies.items()
        room_id = at["external_study_url"].rsplit("/", 1)[1].split("?")[0]
        name, who = f"prolific-kinds-crowd-{room_id}", worker_pseudonym(campaigns.KEY, study.name, "prolific", PID)
        assert argilla.connection is not None
        participant = server.ensure_user(argilla.connection, who, "Participant")
        (user,) = [one.id for one in argilla.users() if one.username == who]
        argilla.request("POST", f"/workspaces/{argilla.workspaces()[name]}/users", json={"user_id": user})
        dataset = argilla.datasets()[name, name].id
        first, second, third = argilla.records(dataset)
        answer(argilla, participant, first, "submitted", **GIVEN, better="\x1b[31mSo.", order=RANKS)
        answer(argilla, participant, second, "submitted", quality=3, fluency=3, naturalness="odd", order=RANKS)
        answer(argilla, participant, third, "discarded")
        submission = site.join(posted, PID)
        site.submit(submission)
        step(collect)
        ratings = CampaignRecords.open(study).ratings
        own = ratings[ratings["pair_id"] == first["external_id"]].set_index("question")["answer"]
        assert own.to_dict() == {
            "quality": "", "fluency": "", "naturalness": "natural", "faults": "grammar, words",
            "better": "\ufffd[31mSo.", "order": "form = tone > sense",
        }  # fmt: skip
        assert set(ratings["rater_id"]) == {who} and set(ratings["source"]) == {"prolific"}
        assert sorted(ratings.loc[ratings["pair_id"] == second["external_id"], "question"]) == [
            "fluency", "naturalness", "order", "quality",
        ]  # fmt: skip
        read: list[str] = []
        step(lambda campaign: read.append(sheet_text(campaign, submission)))
        assert "grammar, words" in read[0] and "\N{REPLACEMENT CHARACTER}[31mSo." in read[0] and "\x1b" not in read[0]
        step(lambda campaign: judging.approve(campaign, [submission]))
        assert site.submissions[submission]["status"] == "APPROVED"
        (verdict,) = accept(study).verdicts
    assert (verdict.decision, verdict.n_pairs) == ("accepted", 2), verdict.reasons
    assert {one.label: one.share.value for one in verdict.questions[2].shares} == {
        "natural": 0.5,
        "odd": 0.5,
        "wrong": 0,
    }

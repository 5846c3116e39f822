"""A task of the human ceiling through Prolific: a room in a real Argilla, an order of the participant's own, pay."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from annotation import server
from annotation.argilla.client import Argilla
from annotation.campaign.names import worker_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.prolific.workspaces import ArgillaRooms, read_rooms
from annotation.crowd.summary import read_summaries
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.human.simulated import read_items
from annotation.human.tasks import read_tasks
from annotation.ratings.answers import Answer
from annotation.ratings.decisions import decide
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept, answers_lines, write_answers
from annotation.verdicts.evidence import Evidence
from plumbline.fields import fields_of
from plumbline.manifest import Manifest
from plumbline.study import Study
from tests.annotation.campaigns import answer, pending
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.prolific.prolific_site import PlaceError, prolific_site
from tests.annotation.human.studies import study_of

PID = "6" * 24
NAMES = ["search", *(f"search-{place}" for place in range(2, 7))]


def drawn(folder: Path, raters: int, **changes: object) -> Study:
    """A drawn task of three queries with six candidates each, for so many participants."""
    study = study_of(
        folder, {"dataset": "search", "items": 3, "raters": raters, "candidates": 6},
        crowd={**campaigns.CROWD, "address": "https://argilla.example.org"},
        acceptance={"min_pairs": 2, "min_raters": 1}, **changes,
    )  # fmt: skip
    draw_sample(study)
    return study


def test_a_participant_sees_an_order_of_their_own_and_is_paid(argilla: Argilla, tmp_path: Path) -> None:
    study = drawn(tmp_path, 1, name="prolific-tasks")
    rooms = ArgillaRooms(study, "live", campaigns.KEY, argilla)
    with prolific_site() as site:
        step = partial(campaigns.step, study, site, rooms=rooms)
        step(lambda campaign: campaign.launch(0))
        ((posted, at),) = site.studies.items()
        assert at["name"] == "Questions and passages: 3 items (English)" and "pair" not in at["description"]
        room_id = at["external_study_url"].rsplit("/", 1)[1].split("?")[0]
        name = f"{study.name}-crowd-{room_id}"
        who = f"{worker_pseudonym(campaigns.KEY, study.name, 'prolific', PID)}-{room_id}"
        assert argilla.connection is not None and argilla.connection.home is not None
        assert "items" in read_rooms(argilla.connection.home)[room_id]["words"]["intro"]
        participant = server.ensure_user(argilla.connection, who, "Participant")
        (user,) = [one.id for one in argilla.users() if one.username == who]
        argilla.request("POST", f"/workspaces/{argilla.workspaces()[name]}/users", json={"user_id": user})
        dataset = argilla.datasets()[name, name].id
        asked = argilla.request("GET", f"/datasets/{dataset}/questions", api_key=participant.api_key)["items"][:6]
        for record in pending(argilla, participant, dataset):
            texts = record["fields"]["candidates"].split("\n\n")
            grades = {
                one["name"]: "g3" if text.endswith("is here.") else "g0" for one, text in zip(asked, texts, strict=True)
            }
            answer(argilla, participant, record, "submitted", **grades)
        submission = site.join(posted, PID)
        site.submit(submission)
        step(collect)
        step(lambda campaign: judging.approve(campaign, [submission], "a trial"))
        assert site.submissions[submission]["status"] == "APPROVED"
    answers_lines(accept(study))
    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
    (order,) = set(CampaignRecords(study).ratings["order"])
    for item in read_items(study):
        own = found[found["item"] == item.item].set_index("candidate")
        assert [*own["value"].sort_values()] == [0, 0, 0, 0, 0, 3]
        assert [int(own["place"][item.shown[number - 1]]) for number in map(int, order.split())] == [*range(1, 7)]


def test_who_is_rejected_or_returns_is_replaced_and_nobody_is_paid_or_counted_twice(tmp_path: Path) -> None:
    study = drawn(tmp_path, 2)
    texts = {pair.pair_id: list(fields_of(pair)[1].value) for pair in CampaignRecords(study).shown}
    with prolific_site() as site:
        step = partial(campaigns.step, study, site)
        step(lambda campaign: campaign.launch(0))
        (posted,), (room,) = site.studies, site.rooms.opened

        def join(pid: str, order: str, best: str) -> str:
            """A participant answers all items: `best` is what candidates are given that are of use."""
            rater = worker_pseudonym(campaigns.KEY, study.name, "prolific", pid)
            site.rooms.given[room, rater] = [
                Answer(
                    pair_id=pair_id, submitted_at=f"2026-03-01T10:0{turn}:00+00:00", order=order, turn=turn,
                    values={name: best if str(text).endswith("is here.") else "g0"
                            for name, text in zip(NAMES, own, strict=True)},
                )
                for turn, (pair_id, own) in enumerate(texts.items(), 1)
            ]  # fmt: skip
            return site.join(posted, pid)

        works = {pid: join(pid * 24, order, best) for pid, order, best in
                 (("a", "6 5 4 3 2 1", "g3"), ("b", "1 2 3 4 5 6", "g0"))}  # fmt: skip
        for one in works.values():
            site.submit(one)
        step(collect)
        step(lambda campaign: judging.reject(campaign, [works["b"]], "nothing is said to be of use"))
        with pytest.raises(PlaceError):
            site.join(posted, "b" * 24)
        step(lambda campaign: campaign.launch(0))
        site.leave(join("9" * 24, "2 1 3 4 5 6", "g1"), "RETURNED")
        step(collect)
        works["c"] = join("c" * 24, "2 3 1 4 5 6", "g3")
        site.submit(works["c"])
        for _ in range(2):
            step(collect)
        step(judging.approve_all)
        for _ in range(2):
            step(judging.pay_bonuses)
        # Each took 750 s, which are worth $5.00; the reward is for three items at 30 s.
        assert dict(site.paid) == {(pid * 24, works[pid]): [60, 440] for pid in "ac"}
        (told,) = read_summaries(Evidence(study))
        assert told.spent == 2 * (60 + 15 + 440 + 110)  # a quarter is Prolific's
    (line,) = write_answers(CampaignRecords(study), read_tasks(study))
    assert "3 of 3 items have 2 or more raters, 3 have at least one rater; 2 raters;" in line
    assert line.endswith("0 of 36 answers are 'cannot tell'; not counted: excluded or withdrawn 3")
    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
    rated = {worker_pseudonym(campaigns.KEY, study.name, "prolific", pid * 24): pid for pid in "ac"}
    assert set(found["rater_id"]) == set(rated) and set(CampaignRecords(study).ratings["rater_id"]) > set(rated)
    items = {item.item: item for item in read_items(study)}
    for one in found.itertuples():
        number = items[one.item].shown.index(one.candidate) + 1
        assert one.value == 3 * texts[items[one.item].pair_id][number - 1].endswith("is here.")
        assert one.place == {"a": (6, 5, 4, 3, 2, 1), "c": (3, 1, 2, 4, 5, 6)}[rated[one.rater_id]][number - 1]


def test_an_excluded_participants_place_is_opened_again_and_costs_what_it_did(tmp_path: Path) -> None:
    study = drawn(tmp_path, 2)
    with prolific_site() as site:
        step = partial(campaigns.step, study, site)
        step(lambda campaign: campaign.launch(0))
        (posted,), (room,) = site.studies, site.rooms.opened

        def work(pid: str) -> None:
            """A participant grades everything alike."""
            rater = worker_pseudonym(campaigns.KEY, study.name, "prolific", pid * 24)
            site.rooms.given[room, rater] = [
                Answer(
                    pair_id=pair.pair_id,
                    submitted_at=f"2026-03-01T10:0{turn}:00+00:00",
                    values=dict.fromkeys(NAMES, "g0"),
                )
                for turn, pair in enumerate(CampaignRecords(study).shown, 1)
            ]
            site.submit(site.join(posted, pid * 24))

        work("a")
        work("b")
        step(collect)
        step(judging.approve_all)
        spent: list[int] = []
        step(lambda campaign: spent.append(campaign.ledger.spent()))
        bad = worker_pseudonym(campaigns.KEY, study.name, "prolific", "b" * 24)
        decide(study, bad, exclude=True, reason="all alike")
        with pytest.raises(PlaceError):
            site.join(posted, "c" * 24)
        for limit in (spent[0], 10**6, 10**6):  # nothing beyond the limit, and once alone
            step(lambda campaign: campaign.launch(0), limit=limit)
            step(lambda campaign: spent.append(campaign.ledger.spent()))
        assert spent == [150, 150, 225, 225]  # a place costs 60 cents and Prolific's quarter
        work("c")
        step(collect)
        step(judging.approve_all)
        step(lambda campaign: campaign.close())
        step(lambda campaign: spent.append(campaign.ledger.spent()))
        assert spent[-1] == 225  # no place is empty
    ratings = CampaignRecords(study).ratings
    assert set(ratings.loc[ratings["again"], "rater_id"]) == {bad} and not ratings["surplus"].any()
    assert ratings["rater_id"].nunique() == 3

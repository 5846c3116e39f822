"""A task of the human ceiling through Prolific: a room in a real Argilla, an order of the participant's own, pay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotation import server
from annotation.argilla.client import Argilla
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.prolific.adapter import Prolific
from annotation.crowd.prolific.rooms import ArgillaRooms, read_rooms
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.human.rehearsing import read_items
from annotation.pseudonyms import worker_pseudonym
from annotation.ratings.ratings import read_ratings
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.people import answers_lines
from plumbline.manifest import read_kept_frame
from tests.annotation.campaigns import answer, pending
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.prolific.prolific_site import prolific_site
from tests.annotation.human.studies import study_of

PID = "6" * 24


def test_a_participant_sees_an_order_of_their_own_and_is_paid(argilla: Argilla, tmp_path: Path) -> None:
    study = study_of(
        tmp_path, {"data": "search", "items": 3, "raters": 1, "candidates": 6}, name="prolific-tasks",
        crowd={**campaigns.CROWD, "address": "https://argilla.example.org"},
        acceptance={"min_pairs": 2, "min_raters": 1},
    )  # fmt: skip
    draw_sample(study)
    rooms = ArgillaRooms(study, "live", campaigns.KEY, argilla)
    with prolific_site() as site:

        def step(what: Any) -> None:
            made = lambda: Prolific(study, "live", campaigns.KEY, rooms, address=site.url, token=site.token)  # noqa: E731
            assert campaigns.run(study, made, what, 10**6)

        step(lambda campaign: campaign.launch(0))
        ((posted, at),) = site.studies.items()
        assert at["name"] == "Questions and passages: 3 items (English)" and "pair" not in at["description"]
        room_id = at["external_study_url"].rsplit("/", 1)[1].split("?")[0]
        name, who = f"{study.name}-crowd-{room_id}", worker_pseudonym(campaigns.KEY, study.name, "prolific", PID)
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
        step(lambda campaign: judging.approve(campaign, [submission]))
        assert site.submissions[submission]["status"] == "APPROVED"
    answers_lines(study, accept(study))
    found = read_kept_frame(study, ANSWERS, HumanAnswer, "annotation accept")
    (order,) = set(read_ratings(study)["order"])
    for item in read_items(study):
        own = found[found["item"] == item.item].set_index("candidate")
        assert [*own["value"].sort_values()] == [0, 0, 0, 0, 0, 3]
        assert [int(own["place"][item.shown[number - 1]]) for number in map(int, order.split())] == [*range(1, 7)]

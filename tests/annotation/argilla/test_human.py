"""Tasks that people do, from the draw to the answers that count, on a real Argilla."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from annotation import server
from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.dataset import Orders
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.campaign.names import account_pseudonym, worker_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.crowd import collecting, judging
from annotation.crowd.prolific.workspaces import ArgillaRooms, read_rooms
from annotation.crowd.summary import read_summaries
from annotation.human.records import ANSWERS, UNKNOWN, HumanAnswer
from annotation.human.simulated import read_items, rehearsal_of
from annotation.human.tasks import read_tasks
from annotation.ratings.answers import Answer
from annotation.ratings.decisions import decide
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept, answers_lines, write_answers
from annotation.verdicts.evidence import Evidence
from plumbline.fields import fields_of
from plumbline.manifest import Manifest
from plumbline.study import Study
from tests.annotation.campaigns import answer, pending, rater
from tests.annotation.crowd import campaigns
from tests.annotation.crowd.prolific.prolific_site import PlaceError, prolific_site
from tests.annotation.human.studies import study_of
from tests.concluded import concluded


def test_tasks_from_the_draw_to_answers_that_count(
    argilla: Argilla, far: Callable[[Study], Study], tmp_path: Path
) -> None:
    made = study_of(
        tmp_path,
        {"dataset": "classes", "items": 4, "raters": 3},
        {"dataset": "search", "items": 3, "raters": 2, "candidates": 3, "relevance": "ranked"},
        {"dataset": "several", "items": 3, "raters": 2},
    )
    study = far(made)
    draw_sample(study)
    person = rater(argilla, "a-person")
    publish(study, argilla)
    datasets = {queue.pool: one for queue, one in published(CampaignRecords(study), argilla).items()}
    wanted = {name: one.distribution["min_submitted"] for name, one in datasets.items()}
    assert wanted == {"classes": 3, "search": 2, "several": 2}
    asked = argilla.request("GET", f"/datasets/{datasets['search'].id}/questions")["items"]
    assert [(one["name"], one["settings"]["type"], one["required"]) for one in asked] == [
        ("search", "label_selection", True), ("search-order", "ranking", False), ("comment", "text", False),
    ]  # fmt: skip
    records = list(argilla.records(datasets["classes"].id))
    sent = json.dumps(records)
    assert not any(f'"{label}"' in sent for label in read_tasks(study)[0].labels)  # no record names a label

    answer(argilla, person, records[0], "draft", classes="l1")
    answer(argilla, person, records[1], "discarded")
    answer(argilla, person, records[2], "submitted", classes="cannot_tell")
    assert simulate(study, argilla) == 2 * (4 + 3 + 3)
    collect(study, argilla)
    lines = answers_lines(accept(study))
    assert ": 1 of 4 items has 3 or more raters, 4 have at least one rater; 3 raters, simulated; " in lines[0]
    assert lines[0].endswith("not counted: drafts 1, discarded 1")
    assert {one.transformation for one in concluded(study).verdicts} == {"classes", "search", "several"}

    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
    by_person = found[~found["simulated"]]
    assert by_person[["task", "abstained", "label"]].to_numpy().tolist() == [["classes", True, ""]]
    # What came back through Argilla is what the simulated raters said, item by item.
    rehearsal = rehearsal_of(study)
    made_up = found[found["simulated"]]
    labels = read_tasks(study)[0].labels
    for item in read_items(study):
        own = made_up[(made_up["task"] == item.task) & (made_up["item"] == item.item)]
        said = [rehearsal.answers(one, item.pair_id) for one in study.raters.simulated]
        if item.task == "classes":
            chosen = [one["classes"] for one in said]
            told = ["" if "cannot_tell" in one else labels[int(one[1:]) - 1] for one in chosen]
            assert sorted(own["label"]) == sorted(told)
        elif item.task == "search":
            assert len(own) == 6 and own["abstained"].sum() == 3 * sum(one["search"] == "cannot_tell" for one in said)
            assert set(own["candidate"]) == set(item.candidates)
            assert [sorted(one) for _, one in own.groupby("rater_id")["place"]] == [[1, 2, 3], [1, 2, 3]]


def seen(argilla: Argilla, user: server.User, dataset_id: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The records and the questions of a dataset as a rater's page gets them, while somebody else writes."""
    assert argilla.connection is not None and argilla.connection.home is not None
    with contextlib.closing(sqlite3.connect(argilla.connection.home.database, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        asked = argilla.request("GET", f"/datasets/{dataset_id}/questions", api_key=user.api_key)["items"]
        records = pending(argilla, user, dataset_id)
    assert all(set(record["metadata"]) == {"language", "output_language"} for record in records)  # of this copy alone
    return records, asked


def test_each_rater_sees_an_order_of_their_own_which_is_recorded(argilla: Argilla, tmp_path: Path) -> None:
    """What is at the place of a question, or of a label, is what its answer is about, for each of two raters."""
    study = study_of(
        tmp_path,
        {"dataset": "search", "items": 2, "raters": 2, "candidates": 6},
        {"dataset": "bitext", "items": 2, "raters": 2, "candidates": 6},
        {"dataset": "long", "items": 2, "raters": 2, "candidates": 11, "relevance": "binary"},
        name="orders",
    )
    draw_sample(study)
    people = [rater(argilla, "order-one"), rater(argilla, "order-two")]
    publish(study, argilla)
    datasets = {queue.pool: one.id for queue, one in published(CampaignRecords(study), argilla).items()}
    items = {(item.task, record): item for item in read_items(study) for record in item.records}
    texts = {pair.pair_id: {one.name: one.value for one in fields_of(pair)} for pair in CampaignRecords(study).shown}
    places: dict[tuple[str, str, str, str], int] = {}  # by rater, task, item and candidate
    orders = dict[str, list[int]]()
    for person in people:
        records, asked = seen(argilla, person, datasets["search"])
        about = [one["name"] for one in asked if one["name"].startswith("search")]
        titles = [f"Passage {place}: of how much use is it?" for place in range(1, 7)]
        assert [one["title"] for one in asked[:6]] == titles
        orders[person.username] = [int(one.rpartition("-")[2]) if "-" in one else 1 for one in about]
        for record in records:
            item = items["search", record["external_id"]]
            stand = record["fields"]["candidates"].split("\n\n")
            own = texts[record["external_id"]]["candidates"]
            for place, number in enumerate(orders[person.username], 1):
                assert stand[place - 1] == f"{place}. {own[number - 1]}"
                places[person.username, "search", item.item, item.shown[number - 1]] = place
            answer(argilla, person, record, "submitted", **{name: f"g{place % 4}" for place, name in enumerate(about)})
        records, asked = seen(argilla, person, datasets["bitext"])
        first = asked[0]["settings"]["options"][0]["value"]  # the one that is called 1
        for record in records:
            item, number = items["bitext", record["external_id"]], int(first[1:])
            chosen = record["fields"]["candidates"].split("\n\n")[0]
            assert chosen == f"1. {texts[record['external_id']]['candidates'][number - 1]}"
            places[person.username, "bitext", item.item, item.shown[number - 1]] = 1
            answer(argilla, person, record, "submitted", bitext=first)
        records, _ = seen(argilla, person, datasets["long"])
        queries = [items["long", record["external_id"]].item for record in records]
        assert len(set(queries)) == 2 and queries == sorted(queries, key=queries.index)  # one query after the other
        for turn, record in enumerate(records):
            item = items["long", record["external_id"]]
            name = item.candidates[item.records.index(record["external_id"])]
            places[person.username, "long", item.item, name] = turn % 11 + 1
            answer(argilla, person, record, "submitted", long="yes" if turn % 11 == 0 else "no")
    assert len(set(map(tuple, orders.values()))) == 2 and all(sorted(one) == [*range(1, 7)] for one in orders.values())

    ratings = collect(study, argilla)
    assert set(ratings.loc[ratings["transformation"] == "search", "order"]) == {
        " ".join(map(str, one)) for one in orders.values()
    }
    answers_lines(accept(study))
    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
    ids = {user.username: account_pseudonym(study.name, user.id, simulated=False) for user in argilla.users()}
    names = {ids[person.username]: person.username for person in people}
    for one in found.itertuples():
        assert one.place == places.pop((names[one.rater_id], one.task, one.item, one.candidate or one.label))
    assert not places
    grades = found[found["task"] == "search"]
    assert (grades["value"] == (grades["place"] - 1) % 4).all()  # as they were given, by place
    assert ((found["value"] == 1) == (found["place"] == 1))[found["task"] == "long"].all()
    turns = ratings.loc[ratings["transformation"] == "long"].groupby("rater_id")["turn"].apply(sorted)
    assert [*turns] == [[*range(1, 23)]] * 2


def test_orders_are_drawn_after_a_kill_and_unknown_where_nobody_can_say(
    argilla: Argilla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(tmp_path, {"dataset": "bitext", "items": 2, "raters": 2, "candidates": 6}, name="killed")
    draw_sample(study)
    person = rater(argilla, "order-killed")
    with monkeypatch.context() as patch:  # as a kill between a dataset and its mark
        patch.setattr("annotation.argilla.publish.give_task", lambda *_: sys.exit("killed"))
        with pytest.raises(SystemExit):
            publish(study, argilla)
    publish(study, argilla)
    (dataset,) = (one.id for one in published(CampaignRecords(study), argilla).values())
    records, asked = seen(argilla, person, dataset)
    answer(argilla, person, records[0], "submitted", bitext="d2")
    owner, path = argilla.request("GET", "/me")["id"], f"/records/{records[0]['id']}/responses"
    argilla.request("POST", path, json={"values": {"bitext": {"value": "d1"}}, "status": "submitted"})
    orders, (ids, pair) = Orders.of(argilla, dataset), (list(map(str, range(1, 7))), records[0]["external_id"])
    options = [one["value"].removeprefix("d") for one in asked[0]["settings"]["options"] if one["value"][1:] in ids]
    (drawn,) = (" ".join(map(str, one)) for user, one in orders.entries.items() if user != owner)
    assert options != ids and drawn == " ".join(options)
    assert orders.of_answer(owner, pair)["order"] == " ".join(ids)  # nothing is drawn for the owner
    came_after = orders.of_answer("11111111-2222-3333-4444-555555555555", pair)
    assert came_after == orders.of_answer(owner, records[1]["external_id"]) == {"order": UNKNOWN}


PID = "6" * 24


def for_participants(folder: Path, raters: int, **changes: object) -> Study:
    """A drawn task of three queries with six candidates each, for so many participants."""
    study = study_of(
        folder, {"dataset": "search", "items": 3, "raters": raters, "candidates": 6},
        crowd={**campaigns.CROWD, "address": "https://argilla.example.org"},
        acceptance={"min_pairs": 2, "min_raters": 1}, **changes,
    )  # fmt: skip
    draw_sample(study)
    return study


def test_a_participant_sees_an_order_of_their_own_and_is_paid(argilla: Argilla, tmp_path: Path) -> None:
    study = for_participants(tmp_path, 1, name="prolific-tasks")
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
        step(collecting.collect)
        step(lambda campaign: judging.approve(campaign, [submission], "a trial"))
        assert site.submissions[submission]["status"] == "APPROVED"
    answers_lines(accept(study))
    found = Manifest.of(study).frame(ANSWERS, HumanAnswer, "accept")
    (order,) = set(CampaignRecords(study).ratings["order"])
    for item in read_items(study):
        own = found[found["item"] == item.item].set_index("candidate")
        assert [*own["value"].sort_values()] == [0, 0, 0, 0, 0, 3]
        assert [int(own["place"][item.shown[number - 1]]) for number in map(int, order.split())] == [*range(1, 7)]


NAMES = ["search", *(f"search-{place}" for place in range(2, 7))]


def test_who_is_rejected_or_returns_is_replaced_and_nobody_is_paid_or_counted_twice(tmp_path: Path) -> None:
    study = for_participants(tmp_path, 2)
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
        step(collecting.collect)
        step(lambda campaign: judging.reject(campaign, [works["b"]], "nothing is said to be of use"))
        with pytest.raises(PlaceError):
            site.join(posted, "b" * 24)
        step(lambda campaign: campaign.launch(0))
        site.leave(join("9" * 24, "2 1 3 4 5 6", "g1"), "RETURNED")
        step(collecting.collect)
        works["c"] = join("c" * 24, "2 3 1 4 5 6", "g3")
        site.submit(works["c"])
        for _ in range(2):
            step(collecting.collect)
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
    study = for_participants(tmp_path, 2)
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
        step(collecting.collect)
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
        step(collecting.collect)
        step(judging.approve_all)
        step(lambda campaign: campaign.close())
        step(lambda campaign: spent.append(campaign.ledger.spent()))
        assert spent[-1] == 225  # no place is empty
    ratings = CampaignRecords(study).ratings
    assert set(ratings.loc[ratings["again"], "rater_id"]) == {bad} and not ratings["surplus"].any()
    assert ratings["rater_id"].nunique() == 3

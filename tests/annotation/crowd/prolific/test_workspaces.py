"""Rooms on the really started Argilla: made once, told to the server, read without counting anything twice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotation import server
from annotation.argilla.accounts import workspaces_of
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.crowd.platform import Offer
from annotation.crowd.prolific.workspaces import ArgillaRooms, read_rooms, room_of, rooms_file
from annotation.ratings.answers import Answer, seconds_of
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import answer, small
from tests.annotation.crowd.offers import batch_offer
from tests.conftest import make_variant

KEY = bytes(range(32))
CROWD = {"address": "https://argilla.example.org", "countries": {"en": ["US"]}}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small(
        make_variant(tmp_path_factory.mktemp("rooms")), "rooms", crowd=CROWD, raters={"contact": "lab@example.org"}
    )


@pytest.fixture
def offer(study: Study, request: pytest.FixtureRequest) -> Offer:
    return batch_offer(study, pairs=3, salt=request.node.name)


@pytest.fixture
def rooms(study: Study, argilla: Argilla) -> ArgillaRooms:
    return ArgillaRooms(study, "live", KEY, argilla)


def dataset_of(argilla: Argilla, name: str) -> str:
    return argilla.datasets()[name, name].id


def test_a_room_is_made_once_and_shows_its_batch_alone(
    study: Study, offer: Offer, rooms: ArgillaRooms, argilla: Argilla, home: server.Home
) -> None:
    room = rooms.open(offer)
    assert rooms.open(offer) == room == room_of(study, "prolific", "live", KEY, offer.batch.batch_id)
    assert room.address == f"https://argilla.example.org/crowd/enter/{room.room_id}"
    name = f"rooms-crowd-{room.room_id}"
    dataset = dataset_of(argilla, name)
    records = list(argilla.records(dataset))
    assert sorted(record["external_id"] for record in records) == sorted(offer.batch.pair_ids)
    assert all(set(record["metadata"]) == {"language", "output_language"} for record in records)
    guidelines = argilla.request("GET", f"/datasets/{dataset}")["guidelines"]
    link = f"(https://argilla.example.org/crowd/enter/{room.room_id})"
    assert guidelines.count(link) == 2
    assert guidelines.index(link) < 200 < len(guidelines) - 200 < guidelines.rindex(link)
    entry = read_rooms(home)[room.room_id]
    assert (entry["records"], entry["code"], entry["contact"]) == (3, room.code, "lab@example.org")
    assert rooms_file(home).stat().st_mode & 0o777 == 0o600
    assert name not in workspaces_of(study.name, argilla)  # publishing lets nobody in


def test_codes_are_other_ones_in_every_room_and_with_every_key(study: Study, offer: Offer) -> None:
    made = [
        room_of(of, platform, mode, key, batch)
        for of in (study, study.model_copy(update={"name": "second"}))
        for platform in ("prolific", "link")
        for mode in ("live", "sandbox")
        for key in (KEY, bytes(32))
        for batch in (offer.batch.batch_id, "0" * 16)
    ]  # type: ignore[misc]
    codes = [code for room in made for code in (room.code, room.return_code)]
    assert len(set(codes)) == 64 and len({room.room_id for room in made}) == 16  # whatever the key
    assert all(len(code) == 8 and code.isalnum() for code in codes)


def test_what_a_crash_left_half_made_is_finished(
    offer: Offer, rooms: ArgillaRooms, argilla: Argilla, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("annotation.argilla.publish.send_pairs", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            rooms.open(offer)
    room = rooms.open(offer)
    records = list(argilla.records(dataset_of(argilla, f"rooms-crowd-{room.room_id}")))
    assert len(records) == 3


def test_answers_are_one_participants_and_count_nowhere_else(
    study: Study, offer: Offer, rooms: ArgillaRooms, argilla: Argilla, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(study, argilla)
    room = rooms.open(offer)
    name = f"rooms-crowd-{room.room_id}"
    users = [server.ensure_user(argilla.connection, f"worker-{number:012}-{room.room_id}", "P") for number in (1, 2)]  # type: ignore[arg-type]
    accounts = {user.username: user.id for user in argilla.users()}
    for user in users:
        argilla.request(
            "POST", f"/workspaces/{argilla.workspaces()[name]}/users", json={"user_id": accounts[user.username]}
        )
    records = {record["external_id"]: record for record in argilla.records(dataset_of(argilla, name))}
    first, second, third = offer.batch.pair_ids
    answer(argilla, users[0], records[third], "submitted", quality=4, fluency=5, comment="=cmd|' /C calc'!A0")
    answer(argilla, users[0], records[first], "discarded")
    answer(argilla, users[0], records[second], "draft", quality=1)
    answer(argilla, users[1], records[first], "submitted", quality=1, fluency=1)

    found = rooms.answers(offer, f"worker-{1:012}")
    assert [(one.pair_id, one.status) for one in found] == [(third, "submitted"), (first, "discarded")]
    assert found[0].values == {"quality": 4, "fluency": 5}
    assert found[0].comment == "=cmd|' /C calc'!A0"
    assert math.isnan(found[0].seconds)
    assert 0 <= found[1].seconds < 60
    assert rooms.answers(offer, "worker-nobody") == []
    assert collect(study, argilla).empty

    with pytest.raises(DataError, match="has an answer to a pair outside its batch"):
        rooms.answers(replace(offer, pairs=offer.pairs[1:]), f"worker-{1:012}")
    given = Argilla.records

    def without_times(self: Argilla, dataset_id: str) -> Iterator[dict[str, Any]]:
        for record in given(self, dataset_id):
            yield {**record, "responses": [{**one, "updated_at": None} for one in record.get("responses") or []]}

    monkeypatch.setattr(Argilla, "records", without_times)
    with pytest.raises(DataError, match="the time 'None.*' of an answer cannot be read"):  # of one participant
        rooms.answers(offer, f"worker-{1:012}")
    assert rooms.progress(offer.batch.batch_id)[f"worker-{1:012}"].answered == 2


def test_seconds_are_those_since_the_answer_before_unless_there_was_a_pause() -> None:
    times = ("11:31", "00:00.500000", "00:31", "01:00", "12:01", "12:02", "12:02", "12:09")
    answers = [
        Answer(pair_id=str(n), values={}, submitted_at=f"2026-03-01T10:{at}+00:00") for n, at in enumerate(times)
    ]
    # 31 - 0.5 = 30.5; 60 - 31 = 29; more than ten minutes is a pause; two pairs at one time have none.
    alone = [math.nan, math.nan, 30.5, 29, 30, math.nan, math.nan, 7]
    np.testing.assert_equal(seconds_of(answers, {}), alone)
    # Those of one page share their 31 seconds; one that was answered after another page has its own time.
    page = dict.fromkeys("4567", "page") | {"7": "other"}
    np.testing.assert_allclose(seconds_of(answers, page)[4:], [31 / 3, 31 / 3, 31 / 3, 7])


def test_an_argilla_elsewhere_has_no_entrance(study: Study, argilla: Argilla) -> None:
    with pytest.raises(StudyError, match="start the server of this home"):
        ArgillaRooms(study, "live", KEY, replace(argilla, connection=None))


def test_a_damaged_file_of_rooms_is_said_in_one_line(tmp_path: Path) -> None:
    home = server.Home(tmp_path)
    assert read_rooms(home) == {}
    rooms_file(home).parent.mkdir()
    for content in ("{", "[]", '{"version": 2, "rooms": {}}', '{"version": 1, "rooms": []}'):
        rooms_file(home).write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=r"rooms.json: damaged .*; move it away and run `plumbline crowd launch`"):
            read_rooms(home)

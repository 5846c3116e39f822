"""Collecting answers from a really started Argilla: what comes back, what is kept, what is refused."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from annotation import server
from annotation.argilla.accounts import published
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.campaign.counting import counting_ratings
from annotation.campaign.names import WORKER
from annotation.campaign.offering import LEDGER, CampaignName, Mode, begin_offering
from annotation.campaign.records import CampaignData, CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd.ledger import BatchOffer, Ledger
from annotation.ratings.answers import Answer, SourcePart, keep
from annotation.ratings.decisions import decide, withdraw
from annotation.status.progress import read_members
from annotation.status.status import Status, read_status, with_server
from annotation.status.text import next_step, status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline import __main__ as commands
from plumbline.errors import DataError, ServiceError
from plumbline.manifest import Manifest, stage
from plumbline.records import Rating
from plumbline.study import ROOT, Study
from tests import forks
from tests.annotation.campaigns import Make, answer, dataset, pending, published_study, rater, ratings_of, small
from tests.annotation.crowd.offers import batch_offer
from tests.annotation.kinds import RULES, ask, rubric
from tests.commands import here


def snapshots(study: Study) -> dict[str, Any]:
    """The answers in each snapshot, by file name, the oldest first."""
    found = dict[str, Any]()
    for file in sorted((study.folder / "snapshots").glob("*")):
        parts = json.loads(gzip.decompress(file.read_bytes()))["parts"].values()
        found[file.name] = [one for part in parts for one in part["answers"]]
    return found


def test_collected_ratings_say_who_when_and_in_which_state(argilla: Argilla, variant: Make) -> None:
    ada, bob = rater(argilla, "ada"), rater(argilla, "bob")
    study = published_study(argilla, variant, "states", transformations=["paraphrasing"])
    records = pending(argilla, ada, dataset(study, argilla))
    answer(argilla, ada, records[0], "submitted", quality=4, fluency=5, comment="a word is odd")
    answer(argilla, bob, records[0], "submitted", quality=2, fluency=3)
    answer(argilla, ada, records[1], "draft", quality=1)
    answer(argilla, ada, records[2], "discarded")
    boss = {"first_name": "Boss", "username": "boss", "password": "a-long-password", "role": "admin"}
    admin = argilla.request("POST", "/users", json=boss)  # who can see a dataset, and is not asked to rate it
    (workspace_id,) = {place.workspace_id for place in published(CampaignRecords(study), argilla).values()}
    argilla.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": admin["id"]})
    ratings = collect(study, argilla)
    argilla.request("DELETE", f"/users/{admin['id']}")
    assert sorted(zip(ratings["status"], ratings["question"], ratings["value"].fillna(0), strict=True)) == [
        ("discarded", "fluency", 0), ("discarded", "quality", 0), ("draft", "fluency", 0), ("draft", "quality", 1),
        ("submitted", "fluency", 3), ("submitted", "fluency", 5), ("submitted", "quality", 2),
        ("submitted", "quality", 4),
    ]  # fmt: skip
    assert ratings["rater_id"].nunique() == 2
    assert ratings["rater_id"].str.match(r"^rater-[0-9a-f]{8}$").all()
    assert not ratings["simulated"].any()
    members = {one.rater_id for one in read_members(CampaignRecords(study)) if one.dataset == "states-paraphrasing-EN"}
    people = [user for user in argilla.users() if user.role == "annotator" and not user.simulated]
    annotators = [user for user in people if not user.username.startswith(WORKER)]  # other tests' crowds
    assert set(ratings["rater_id"]) <= members and len(members) == len(annotators)  # who rated nothing is there too
    assert (pd.Timestamp.now(tz="UTC") - ratings["submitted_at"]).dt.total_seconds().between(0, 600).all()
    assert Counter(ratings["comment"]) == {"a word is odd": 2, "": 6}
    # Ada's draft and discard each came a moment after her answer before; her first and Bob's only one after nothing.
    known = ratings[ratings["seconds"].notna()]
    assert set(known["status"]) == {"draft", "discarded"} and known["seconds"].between(0, 60).all()
    assert len(counting_ratings(ratings, 3)) == 4
    pd.testing.assert_frame_equal(ratings, collect(study, argilla))


@pytest.mark.parametrize("mode", ["test", "sandbox"])
def test_a_crowds_platform_is_not_asked_about_trials_of_a_study_in_argilla(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    study = small(variant, f"tried-{mode}", transformations=["paraphrasing"])
    name = CampaignName("prolific", mode)
    begin_offering(CampaignRecords(study), str(name), load_rubric(study))
    with Ledger(study.scratch / LEDGER, study.name, *name) as ledger:
        ledger.add_batches([BatchOffer(batch_offer(study, 2).batch, 1, 100)])
    publish(study, argilla)
    monkeypatch.delenv("PROLIFIC_TOKEN", raising=False)
    places = ["--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home.path)]
    assert commands.run(["collect", *places]) == 0


def test_what_did_not_change_is_not_read_again(
    argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = rater(argilla, "ada")
    study = published_study(argilla, variant, "increments")
    place = dataset(study, argilla)
    first, second, third, _ = pending(argilla, ada, place)
    answer(argilla, ada, first, "submitted", quality=4, fluency=5)
    read: list[str] = []
    records = Argilla.records

    def noted(self: Argilla, dataset_id: str) -> Any:
        read.append(dataset_id)
        return records(self, dataset_id)

    monkeypatch.setattr(Argilla, "records", noted)
    before = ratings_of(study, argilla)
    assert before == {(first["external_id"], "quality", 4), (first["external_id"], "fluency", 5)}
    read.clear()
    assert ratings_of(study, argilla) == before and read == []
    answer(argilla, ada, second, "submitted", quality=2, fluency=2)
    assert len(ratings_of(study, argilla)) == 4 and read == [place]  # of two datasets and more the changed one alone
    read.clear()
    (given,) = next(r for r in records(argilla, place) if r["id"] == first["id"])["responses"]
    changed = {"values": {q: {"value": 1} for q in ("quality", "fluency")}, "status": "submitted"}
    argilla.request("PUT", f"/responses/{given['id']}", api_key=ada.api_key, json=changed)
    assert (first["external_id"], "quality", 1) in ratings_of(study, argilla) and read == [place]
    assert ratings_of(study, argilla) == {
        (record["external_id"], question, value)
        for record, value in ((first, 1), (second, 2)) for question in ("quality", "fluency")
    }  # fmt: skip
    assert third["external_id"] not in set(CampaignRecords(study).ratings["pair_id"])


def test_each_change_leaves_a_snapshot_that_stays(argilla: Argilla, variant: Make) -> None:
    lovelace = rater(argilla, "lovelace")
    study = published_study(argilla, variant, "history", transformations=["paraphrasing"])
    collect(study, argilla)
    assert snapshots(study) == {}
    first, second, *_ = pending(argilla, lovelace, dataset(study, argilla))
    answer(argilla, lovelace, first, "draft", quality=4)
    collect(study, argilla)
    before = snapshots(study)
    collect(study, argilla)
    assert snapshots(study) == before and len(before) == 1
    answer(argilla, lovelace, second, "submitted", quality=2, fluency=2, comment="nein")
    collect(study, argilla)
    after = snapshots(study)
    assert list(after)[:1] == list(before) and len(after) == 2
    assert after | before == after
    latest = {one["pair_id"]: one for one in list(after.values())[-1]}
    assert latest[first["external_id"]]["status"] == "draft"
    assert latest[second["external_id"]]["values"] == {"quality": 2, "fluency": 2}
    assert latest[second["external_id"]]["comment"] == "nein"
    assert {one["rater_id"][:6] for one in latest.values()} == {"rater-"}
    assert b"lovelace" not in b"".join(gzip.decompress(f.read_bytes()) for f in (study.folder / "snapshots").iterdir())


def test_controls_and_repeats_are_collected_apart_and_no_verdict_counts_them(argilla: Argilla, variant: Make) -> None:
    sample = {"pairs": 6, "controls": 1, "repeats": 1}
    study = published_study(argilla, variant, "apart", transformations=["paraphrasing"], sample=sample)
    assert simulate(study, argilla) == (6 + 3) * 3
    ratings = collect(study, argilla)
    assert set(ratings["pair_id"]) == {pair.pair_id for pair in CampaignRecords(study).pairs}
    told = CampaignRecords(study).control_ratings
    controls = {pair.pair_id: pair for pair in CampaignRecords(study).controls}
    assert set(told["pair_id"]) == set(controls) and len(told) == 3 * 3 * 2
    rubric = load_rubric(study)
    for row in told.itertuples():
        expected = rubric.expected("paraphrasing", controls[row.pair_id].control)
        if row.question in expected:  # the simulated raters' noise is 0.5, their bias at most 0.3
            assert abs(row.value - expected[row.question]) <= 1
    verdicts = accept(study).verdicts
    assert [verdict.n_ratings for verdict in verdicts] == [6 * 3 * 2]


def test_whom_a_person_excluded_stays_excluded_with_new_answers(argilla: Argilla, variant: Make) -> None:
    ada, bob = rater(argilla, "ada"), rater(argilla, "bob")
    study = published_study(argilla, variant, "excluded", transformations=["paraphrasing"])
    first, second, *_ = pending(argilla, ada, dataset(study, argilla))
    answer(argilla, ada, first, "submitted", quality=4, fluency=5)
    (ada_called,) = set(collect(study, argilla)["rater_id"])
    decide(study, ada_called, exclude=True, reason="failed both controls")
    answer(argilla, bob, first, "submitted", quality=3, fluency=3)
    answer(argilla, ada, second, "submitted", quality=4, fluency=5)
    found = collect(study, argilla).groupby("rater_id")["excluded"].unique().map(list).to_dict()
    assert found.pop(ada_called) == ["failed both controls"] and list(found.values()) == [[""]]


def test_a_withdrawn_pair_is_taken_out_only_where_nobody_answered(argilla: Argilla, variant: Make) -> None:
    ada = rater(argilla, "ada")
    study = published_study(argilla, variant, "withdrawn", transformations=["paraphrasing"])
    there = pending(argilla, ada, dataset(study, argilla))
    sampled = {pair.pair_id for pair in CampaignRecords(study).pairs}
    rated, drafted, bare, other = [one for one in there if one["external_id"] in sampled][:4]
    answer(argilla, ada, rated, "submitted", quality=1, fluency=1)
    answer(argilla, ada, drafted, "draft", quality=1)
    out = [one["external_id"] for one in (rated, drafted, bare)]
    withdraw(study, out, take_back=False, reason="half of the text is missing")
    done = publish(study, argilla)
    assert (done.taken_out, done.answered) == (1, 2) and not any(done.new.values())
    left = {one["external_id"] for one in argilla.records(dataset(study, argilla))}
    assert left == {one["external_id"] for one in there} - {bare["external_id"]}
    answer(argilla, ada, other, "submitted", quality=4, fluency=4)
    ratings = collect(study, argilla).set_index("pair_id")
    assert set(ratings.index[ratings["withdrawn"] != ""]) == set(out[:2])
    assert set(counting_ratings(ratings.reset_index(), 3)["pair_id"]) == {other["external_id"]}
    withdraw(study, [out[2]], take_back=True, reason="it is all there")
    assert sum(publish(study, argilla).new.values()) == 1  # back before the raters


def test_answers_that_vanished_from_the_server_are_not_dropped_silently(argilla: Argilla, variant: Make) -> None:
    ada = rater(argilla, "ada")
    study = published_study(argilla, variant, "vanished", transformations=["paraphrasing"])
    record = pending(argilla, ada, dataset(study, argilla))[0]
    answer(argilla, ada, record, "submitted", quality=4, fluency=5)
    before = collect(study, argilla)
    rows = next(r for r in argilla.records(dataset(study, argilla)) if r["id"] == record["id"])
    argilla.request("DELETE", f"/responses/{rows['responses'][0]['id']}", api_key=ada.api_key)
    with pytest.raises(DataError, match="2 ratings that were collected before are missing on the server"):
        collect(study, argilla)
    pd.testing.assert_frame_equal(CampaignRecords(study).ratings, before)
    assert collect(study, argilla, replace=True).empty


def test_killed_while_collecting_and_run_again_gives_the_same(
    argilla: Argilla, home: server.Home, variant: Make
) -> None:
    """`kill -9` at many moments of `collect`: the file is the old one or the new one, and a re-run completes it."""
    study = published_study(argilla, variant, "killed", transformations=["paraphrasing"])
    simulate(study, argilla)
    whole = collect(study, argilla)
    path = study.folder / "ratings.parquet"
    Manifest.of(study).write_table("ratings.parquet", whole.iloc[:2], Rating)
    before = path.read_bytes()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ARGILLA_")}
    command = [sys.executable, "-m", "plumbline", "collect", "--study", str(study.file),
               "--exports", str(study.folder.parent), "--data", str(home.path)]  # fmt: skip
    for delay in (0.5, 1.0, 1.5):
        process = forks.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert path.read_bytes() == before or len(CampaignRecords(study).ratings) == len(whole)
    done = forks.run(command, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(CampaignRecords(study).ratings, whole)


SLIDER = {"name": "closeness", "title": {"en": "How close?"}, "scale": {"from": 0, "to": 100},
          "points": {0: {"en": "no"}, 100: {"en": "yes"}}}  # fmt: skip


def test_an_answer_off_a_sliders_scale_is_refused_and_stored_it_holds_up_nobody(
    argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(monkeypatch, tmp_path, rubric(SLIDER))
    ada, bob = rater(argilla, "sliding-ada"), rater(argilla, "sliding-bob")
    acceptance = {"rules": RULES[:2], "min_pairs": 3}
    study = small(variant, "sliding", transformations=["paraphrasing"], rubric="kinds", acceptance=acceptance)
    publish(study, argilla)
    record = pending(argilla, ada, dataset(study, argilla))[0]
    for wrong in ("1000", "-1", "close", "nan"):
        with pytest.raises(ServiceError, match="closeness: the answer .* is not on the scale 0 to 100"):
            answer(argilla, ada, record, "submitted", quality=4, fluency=5, closeness=wrong)
    with pytest.raises(ServiceError, match="comment: the text has 1,000,000 characters"):
        answer(argilla, ada, record, "submitted", quality=4, fluency=5, closeness="7", comment="a" * 10**6)
    for user in (ada, bob):
        answer(argilla, user, record, "submitted", quality=4, fluency=5, closeness="70.5")
    given = Argilla.records
    whole = {name: {"value": value} for name, value in (("quality", 4), ("fluency", 5), ("closeness", "70"))}
    for changes, told in [
        ({"values": whole | {"closeness": {"value": "1000"}}}, "closeness: the answer 1000 is not on the scale"),
        ({"values": whole | {"quality": {"value": {"a": [4]}}}}, "is not on the scale 1 to 5"),
        ({"values": whole | {"quality": {"value": 10**400}}}, "quality: the answer 1000"),
        ({"values": whole | {"quality": "?"}}, "quality: the answer '?' is not on the scale 1 to 5"),
        ({"values": [4]}, "the submitted answer lacks 'quality'"),
        ({"values": None}, "the submitted answer lacks 'quality'"),
        ({"updated_at": None}, "its time 'None+00:00' cannot be read"),
    ]:

        def stored_all_the_same(self: Argilla, dataset_id: str, changes: dict[str, Any] = changes) -> Any:
            for found in given(self, dataset_id):
                for response in (found.get("responses") or [])[:1]:
                    response.update(changes)
                yield found

        monkeypatch.setattr(Argilla, "records", stored_all_the_same)
        ratings = collect(study, argilla, replace=True)
        assert Counter(ratings["status"]) == {"submitted": 3, "draft": 3}
        assert ratings.loc[ratings["status"] == "draft", "value"].isna().all()
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "set aside" in line]
        assert record["external_id"] in line and told in line


def looked_at(study: Study, home: server.Home) -> Status:
    return with_server(read_status(Evidence(study), datetime.now(UTC)), CampaignData.read(study), home)


def test_answers_on_the_running_server_are_counted(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = rater(argilla, "ada-now"), rater(argilla, "bob-now")
    study = small(variant, "now", transformations=["paraphrasing"], raters={"per_pair": 2})
    asked: dict[str, int] = {}
    with stage(study, "publish", [study.folder / "pairs.parquet"], settings=asked):
        asked["annotators"] = publish(study, argilla).admission.people
    records = pending(argilla, ada, dataset(study, argilla))
    for record in records:
        answer(argilla, ada, record, "submitted", quality=4, fluency=5)
    answer(argilla, bob, records[0], "submitted", quality=4, fluency=5)
    answer(argilla, bob, records[1], "draft", quality=4)

    methods: list[str] = []
    send = httpx.Client.send

    def noted(self: httpx.Client, request: httpx.Request, **options: object) -> httpx.Response:
        methods.append(request.method)
        return send(self, request, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(httpx.Client, "send", noted)
        status = looked_at(study, home)
    assert set(methods) == {"GET"}  # it is only read
    assert status.server is not None and status.server.by_account == {"ada-now": 4, "bob-now": 1}
    text = status_text(status)
    assert f"The server at {argilla.url} has 5 submitted answers from 2 accounts; 0 are collected" in text
    assert "5 answers on the server that are not collected yet" in str(next_step(status))

    place = ("--study", str(study.file), "--exports", str(study.folder.parent), "--data", str(home.path))
    assert "has 5 submitted answers from 2 accounts" in here("status", *place).stdout

    collect(study, argilla)
    after = looked_at(study, home)
    assert (after.uncollected, after.on_record) == (0, 5)
    assert "the server has and" not in str(next_step(after))


def test_seconds_are_from_one_answer_to_the_next_and_unknown_after_a_break(variant: Make) -> None:
    study = small(variant, "timed", transformations=["paraphrasing"])
    pairs = [pair.pair_id for pair in CampaignRecords(study).pairs]
    times = ["10:00:00", "10:00:25.5", "10:10:25.5", "10:20:26"]  # + 25.5 s, + 600 s, + 600.5 s: a break
    values = {"quality": 3, "fluency": 4}
    answers = [
        Answer(pair_id=pair, rater_id=name, values=values, submitted_at=f"2026-03-01T{at}+00:00")
        for name, ats in (("rater-00000000", times), ("simulated-0", times[:1] * 4))
        for pair, at in zip(pairs, ats, strict=True)
    ]
    found = keep(CampaignRecords(study), "argilla", {"all": SourcePart("", tuple(reversed(answers)))}, replace=False)
    quality = found[(found["question"] == "quality") & ~found["simulated"]].set_index("pair_id")["seconds"]
    first, second, third, last = (quality[pair] for pair in pairs)
    assert math.isnan(first) and (second, third) == (25.5, 600.0) and math.isnan(last)
    assert found.loc[found["simulated"], "seconds"].isna().all()

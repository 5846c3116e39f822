"""Pairs of excluded raters are offered to others again on a really started Argilla, and no answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation import server
from annotation.argilla.accounts import published, revoke_link
from annotation.argilla.client import Argilla, ArgillaUser
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.names import account_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.commands.annotators import Letter, hand_out, invite
from annotation.ratings.answers import last_snapshot
from annotation.ratings.decisions import decide
from annotation.server.plugin.plumbline_argilla.rate import LINK
from annotation.status.progress import read_members
from annotation.status.status import read_status
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from plumbline.errors import ServiceError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import Make, answer, dataset, published_study, rater, small
from tests.commands import here
from tests.concluded import concluded
from tests.conftest import make_variant

WHAT = ["pair_id", "question", "value", "status", "submitted_at", "comment", "seconds"]


def people_of(argilla: Argilla, name: str, *people: str) -> dict[str, ArgillaUser]:
    """The accounts of these people in a study of this name."""
    names = {rater(argilla, f"{one}-{name}").username: one for one in people}
    return {names[user.username]: user for user in argilla.users() if user.username in names}


def rated(argilla: Argilla, variant: Make, name: str) -> tuple[Study, dict[str, ArgillaUser]]:
    """Four pairs that ada and bob have answered, collected; ada is excluded then, and cy has seen nothing."""
    users = people_of(argilla, name, "ada", "bob", "cy")
    raters = {"per_pair": 2, "people": [user.username for user in users.values()]}
    acceptance = {"min_pairs": 2, "min_raters": 2, "rule": "lower_bound"}
    study = small(variant, name, transformations=["paraphrasing"], raters=raters, acceptance=acceptance)
    publish(study, argilla)
    give(study, argilla, users["ada"], 1)
    give(study, argilla, users["bob"], 5)
    collect(study, argilla)
    decide(study, pseudonym(study, users["ada"]), exclude=True, reason="every answer is 1")
    return study, users


def pending(argilla: Argilla, user: ArgillaUser, dataset_id: str) -> list[dict[str, Any]]:
    """What Argilla's page shows as pending: answered neither by the rater nor by enough others."""
    scopes = ({"entity": one, "property": "status"} for one in ("response", "record"))
    both = [{"type": "terms", "scope": scope, "values": ["pending"]} for scope in scopes]
    body = {"filters": {"type": "and", "and": both}}
    path = f"/me/datasets/{dataset_id}/records/search"
    found = argilla.request("POST", path, api_key=user.api_key, json=body, params={"limit": 100})
    return [item["record"] for item in found["items"]]


def give(study: Study, argilla: Argilla, user: ArgillaUser, value: int) -> int:
    records = pending(argilla, user, dataset(study, argilla))
    for record in records:
        answer(argilla, user, record, "submitted", quality=value, fluency=value, comment=f"by {value}")
    return len(records)


def pseudonym(study: Study, user: ArgillaUser) -> str:
    return account_pseudonym(study.name, user.id, simulated=False)


def of(ratings: pd.DataFrame, study: Study, user: ArgillaUser) -> pd.DataFrame:
    own = ratings[ratings["rater_id"] == pseudonym(study, user)]
    return own.sort_values(WHAT[:2], ignore_index=True)


def test_an_excluded_raters_pairs_are_offered_again_and_the_answers_stay(
    argilla: Argilla, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the first run is cut off after two of four answers."""
    study, users = rated(argilla, variant, "again")
    before = of(CampaignRecords(study).ratings, study, users["ada"])
    assert not pending(argilla, users["cy"], dataset(study, argilla))  # Argilla hides what is complete
    real, calls = Argilla.request, 0

    def dying(self: Argilla, method: str, path: str, **arguments: object) -> object:
        nonlocal calls
        calls += method == "PUT" and path.startswith("/responses/")
        if calls == 3:
            raise KeyboardInterrupt
        return real(self, method, path, **arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Argilla, "request", dying)
        with pytest.raises(KeyboardInterrupt):
            publish(study, argilla)
    pd.testing.assert_frame_equal(before[WHAT], of(collect(study, argilla), study, users["ada"])[WHAT])
    done = publish(study, argilla)
    assert done.set_aside == 2 and any("others are asked for these pairs: 2" in line for line in done.lines())
    assert len(pending(argilla, users["cy"], dataset(study, argilla))) == 4
    with pytest.raises(ServiceError, match="may not do that"):  # who was excluded is not asked again
        pending(argilla, users["ada"], dataset(study, argilla))
    assert publish(study, argilla).set_aside == 0  # once is enough

    # Collected in between, nothing is lost: the answers are what they were, and others are waited for.
    ratings = collect(study, argilla)
    after = of(ratings, study, users["ada"])
    pd.testing.assert_frame_equal(before[WHAT], after[WHAT])
    assert after["again"].all() and (after["excluded"] != "").all()
    status = read_status(Evidence(study), datetime.now(UTC))
    assert status.progress["open"].tolist() == [4] and status.progress["excluded"].tolist() == [4]
    left = dict(zip(status.raters["rater_id"], status.raters["open"], strict=True))
    assert (left[pseudonym(study, users["cy"])], left[pseudonym(study, users["bob"])]) == (4, 0)
    accept(study)
    (verdict,) = concluded(study).verdicts
    assert verdict.decision == "undecided" and verdict.n_pairs == 0

    assert give(study, argilla, users["cy"], 4) == 4
    ratings = collect(study, argilla)
    assert ratings.groupby("rater_id").size().tolist() == [8, 8, 8] and not ratings["surplus"].any()
    pd.testing.assert_frame_equal(before[WHAT], of(ratings, study, users["ada"])[WHAT])
    accept(study)
    (verdict,) = concluded(study).verdicts
    assert (verdict.n_pairs, verdict.questions[0].mean) == (4, 4.5)
    assert verdict.review.n_excluded == 8
    kept = [one for part in last_snapshot(study.folder, "argilla").values() for one in part.answers]
    assert len(kept) == 12 and {one.status for one in kept} == {"submitted"}


def test_what_an_excluded_rater_was_shown_goes_to_others_at_once_and_her_answers_stay_without_a_list(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = people_of(argilla, "leaving", "dan", "eve")
    dan, eve = people["dan"], people["eve"]
    parts = {"raters": {"per_pair": 1}, "acceptance": {"min_pairs": 2, "min_raters": 1}}
    study = published_study(argilla, variant, "leaving", transformations=["paraphrasing"], **parts)
    place = dataset(study, argilla)
    first = pending(argilla, dan, place)[0]
    answer(argilla, dan, first, "submitted", quality=5, fluency=5)
    before = of(collect(study, argilla), study, dan)[WHAT]
    assert not pending(argilla, eve, place)  # dan has all on the screen
    monkeypatch.setenv("PLUMBLINE_ARGILLA_HOME", str(home.path))
    words = ("--study", str(study.file), "--exports", str(study.folder.parent), "--reason", "left")
    assert here("review", "--exclude", pseudonym(study, dan), *words).returncode == 0  # while the server runs
    assert len(pending(argilla, eve, place)) == 3
    with pytest.raises(ServiceError, match="may not do that"):
        pending(argilla, dan, place)
    pd.testing.assert_frame_equal(of(collect(study, argilla), study, dan)[WHAT], before)
    publish(study, argilla)
    assert give(study, argilla, eve, 4) == 4 and pseudonym(study, dan) not in {
        member.rater_id for member in read_members(CampaignRecords(study))
    }
    kept = collect(study, argilla)
    pd.testing.assert_frame_equal(of(kept, study, dan)[WHAT], before)
    assert (of(kept, study, dan)["excluded"] == "left").all() and len(of(kept, study, eve)) == 8
    assert here("review", "--keep", pseudonym(study, dan), *words).returncode == 0
    assert not pending(argilla, dan, place)  # let in again, and all is answered


def test_an_exclusion_that_is_taken_back_leaves_the_latest_answers_surplus(argilla: Argilla, variant: Make) -> None:
    study, users = rated(argilla, variant, "back")
    before = of(CampaignRecords(study).ratings, study, users["ada"])
    publish(study, argilla)
    give(study, argilla, users["cy"], 4)
    collect(study, argilla)
    decide(study, pseudonym(study, users["ada"]), exclude=False, reason="she read them aloud to me")
    ratings = collect(study, argilla)  # before it is published, and
    assert publish(study, argilla).back == 4 and publish(study, argilla).back == 0
    for found in (ratings, collect(study, argilla), collect(study, argilla, replace=True)):  # after it
        pd.testing.assert_frame_equal(before[WHAT], of(found, study, users["ada"])[WHAT])
        assert not found["again"].any() and (found["excluded"] == "").all()
        surplus = found[found["surplus"]]
        assert set(surplus["rater_id"]) == {pseudonym(study, users["cy"])} and len(surplus) == 8
    states = {
        response["status"] for record in argilla.records(dataset(study, argilla)) for response in record["responses"]
    }
    assert states == {"submitted"}


def test_a_study_with_the_name_of_another_one_changes_nothing_of_it(
    argilla: Argilla, home: server.Home, variant: Make, tmp_path: Path
) -> None:
    paraphrases = {"transformations": ["paraphrasing"]}
    study = published_study(argilla, variant, "twin", **paraphrases)
    (folder := tmp_path / "other").mkdir()
    (place,) = published(CampaignRecords(study), argilla).values()
    people, members = ["cy-twin", "dan-twin"], argilla.members(place.workspace_id)
    parts = paraphrases | {"raters": {"per_pair": 2, "people": people}, "sample": {"pairs": 4, "seed": 7}}
    other = small(make_variant(folder), "twin", **parts)
    assert argilla.connection is not None
    invite(other, argilla.connection, home, people)
    with pytest.raises(StudyError, match="study named 'twin', or of this one before .*; give this one another `name`"):
        publish(other, argilla)
    assert argilla.members(place.workspace_id) == members
    assert {record["external_id"] for record in argilla.records(place.id)} == {
        pair.pair_id for pair in CampaignRecords(study).shown
    }


def test_links_are_made_letter_by_letter_so_that_a_run_that_is_cut_off_ends_none_unseen(
    argilla: Argilla, home: server.Home, variant: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    people = ["ann-letters", "ben-letters"]
    study = small(variant, "letters", transformations=["paraphrasing"], raters={"people": people})
    connection = argilla.connection
    assert connection is not None

    def cut_off() -> Iterator[Letter]:
        yield next(iter(invite(study, connection, home, people, links="missing")))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hand_out(cut_off(), None)
    assert LINK in capsys.readouterr().out
    assert [revoke_link(connection, name) for name in people] == [True, False]

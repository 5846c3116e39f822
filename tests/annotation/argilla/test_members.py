"""Who may rate in a study, on a really started Argilla: the people it names, and those who were asked to."""

from __future__ import annotations

import gzip
import re
import stat
from collections.abc import Sequence

import pytest
import yaml

from annotation import server
from annotation.argilla.accounts import published, workspaces_of
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign.records import CampaignRecords
from annotation.status.progress import read_members
from plumbline.errors import StudyError
from plumbline.study import Study
from tests.annotation.campaigns import Make, answer, dataset, pending, published_study, rater, small
from tests.commands import here

pytestmark = pytest.mark.usefixtures("undrawn")


def named(study: Study, people: Sequence[str], former: Sequence[str] = ()) -> Study:
    raters = study.raters.model_copy(update={"people": tuple(people), "former": tuple(former)})
    return study.model_copy(update={"raters": raters})


def inside(study: Study, argilla: Argilla) -> set[str]:
    spaces = [argilla.members(space).values() for space, _ in workspaces_of(study.name, argilla).values()]
    return {user.username for members in spaces for user in members}


def test_only_people_whom_a_study_names_are_let_in_and_counted(
    argilla: Argilla, variant: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    ada, bob, eve = (rater(argilla, name) for name in ("ada", "bob", "eve"))
    everybody = small(variant, "members")
    publish(everybody, argilla)
    assert {"ada", "bob", "eve"} <= inside(everybody, argilla)
    record = pending(argilla, eve, dataset(everybody, argilla))[0]
    answer(argilla, eve, record, "submitted", quality=1, fluency=1)

    study = named(everybody, ["ada", "bob"])
    done = publish(study, argilla)
    assert inside(study, argilla) == {"ada", "bob"} and "eve" in done.admission.out and done.admission.people == 2
    for user, value in ((ada, 4), (bob, 2)):
        answer(argilla, user, pending(argilla, user, dataset(study, argilla))[0], "submitted", quality=value, fluency=3)
    ratings = collect(study, argilla)
    assert sorted(ratings.loc[ratings["question"] == "quality", "value"]) == [2, 4]
    assert "1 answer from accounts that raters.people does not name" in capsys.readouterr().err
    assert {one.rater_id for one in read_members(CampaignRecords(study))} == set(ratings["rater_id"])

    fewer = named(study, ["ada"])
    publish(fewer, argilla)
    assert inside(fewer, argilla) == {"ada"}
    with pytest.raises(StudyError, match=r"no longer names 'bob', who gave 1 collected answer;.* raters\.former"):
        collect(fewer, argilla)
    kept = collect(named(study, ["ada"], ["bob"]), argilla)
    assert sorted(kept.loc[kept["question"] == "quality", "value"]) == [2, 4]
    assert len({one.rater_id for one in read_members(CampaignRecords(study))}) == 1  # nobody waits for bob
    dropped = collect(fewer, argilla, replace=True)
    assert list(dropped.loc[dropped["question"] == "quality", "value"]) == [4]
    again = collect(named(study, ["ada", "eve"], ["bob"]), argilla)  # nothing changed on the server, but who counts
    assert sorted(again.loc[again["question"] == "quality", "value"]) == [1, 2, 4]
    with pytest.raises(StudyError) as refusal:
        collect(fewer, argilla)
    assert {"'bob'", "'eve'"} <= set(re.findall(r"'\w+'", str(refusal.value)))  # all at once


def test_the_coordinator_sees_names_and_no_record_has_them(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = ["marguerite", "ottokar"]
    users = [rater(argilla, name) for name in people]
    study = published_study(argilla, variant, "naming", raters={"per_pair": 2, "people": people})
    first = pending(argilla, users[1], dataset(study, argilla))[0]
    for one in published(CampaignRecords(study), argilla).values():
        for record in pending(argilla, users[0], one.id):
            answer(argilla, users[0], record, "submitted", quality=4, fluency=4)
    answer(argilla, users[1], first, "submitted", quality=1, fluency=1)

    def run(*words: str) -> str:
        done = here(*words, "--study", str(study.file), "--exports", str(study.folder.parent))
        assert done.returncode == 0, done.stderr
        return done.stdout

    monkeypatch.setenv("PLUMBLINE_ARGILLA_HOME", str(home.path))
    run("collect")
    assert stat.S_IMODE((home.path / "names.json").stat().st_mode) == 0o600
    told = run("status", "--more")
    pseudonyms = {name: re.search(rf"(rater-[0-9a-f]{{8}}) {name}", told) for name in people}
    assert all(pseudonyms.values())
    assert "- Paraphrasing, English (items: 3, minutes: about " in run("users", "invite", "ottokar")
    assert run("review", "--exclude", "ottokar", "--reason", "asked to be left out").startswith("naming: rater-")
    assert re.search(r"rater-[0-9a-f]{8} ottokar +excluded", run("review"))
    assert re.search(r"ottokar .* rater-[0-9a-f]{8} +yes\n", run("users", "list"))
    assert "letter to" not in run("users", "invite", "ottokar")
    run("accept")
    run("ratings-report")
    for file in study.folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            content = gzip.decompress(content) if file.suffix == ".gz" else content
            assert not [name for name in people if name.encode() in content], file

    written = yaml.safe_load(study.file.read_text(encoding="utf-8"))
    (ottokar,) = [found[1] for name, found in pseudonyms.items() if found and name == "ottokar"]
    for former in ([], ["ottokar"]):  # whom neither list names stops collecting, and status says so before
        raters = written["raters"] | {"people": ["marguerite", "gertrude"], "former": former}
        study.file.write_text(yaml.safe_dump(written | {"raters": raters}), encoding="utf-8")
        facts, _, following = run("status").rpartition("Next: ")
        assert ("--replace" in facts) == (f"{ottokar} ottokar" in following) == (not former)

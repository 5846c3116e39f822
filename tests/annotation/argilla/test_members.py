"""Who may rate in a study, on a really started Argilla: the people it names, and those who were asked to."""

from __future__ import annotations

import gzip
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from annotation import names, server
from annotation.annotators import invite, write_letters
from annotation.argilla import accounts
from annotation.argilla.accounts import names_at, published, workspaces_of
from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.campaign_records import CampaignRecords
from annotation.page import named as called
from annotation.rubric import load_rubric
from annotation.sampling.queues import queues_of
from annotation.status.status import read_members
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from tests.annotation.campaigns import Make, answer, dataset, pending, rater, small
from tests.commands import here


def named(study: Study, people: Sequence[str], former: Sequence[str] = ()) -> Study:
    """The same study with other people."""
    return study.model_copy(
        update={"raters": study.raters.model_copy(update={"people": tuple(people), "former": tuple(former)})}
    )


def inside(study: Study, argilla: Argilla) -> set[str]:
    """Who is in any of a study's workspaces."""
    return {
        user.username
        for space, _ in workspaces_of(study.name, argilla).values()
        for user in argilla.members(space).values()
    }


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
    assert {one.rater_id for one in read_members(CampaignRecords.open(study))} == set(ratings["rater_id"])

    fewer = named(study, ["ada"])
    publish(fewer, argilla)
    assert inside(fewer, argilla) == {"ada"}
    with pytest.raises(StudyError, match=r"no longer names 'bob', who gave 1 collected answer;.* raters\.former"):
        collect(fewer, argilla)
    kept = collect(named(study, ["ada"], ["bob"]), argilla)
    assert sorted(kept.loc[kept["question"] == "quality", "value"]) == [2, 4]
    assert len({one.rater_id for one in read_members(CampaignRecords.open(study))}) == 1  # nobody waits for bob
    dropped = collect(fewer, argilla, replace=True)
    assert list(dropped.loc[dropped["question"] == "quality", "value"]) == [4]
    again = collect(named(study, ["ada", "eve"], ["bob"]), argilla)  # nothing changed on the server, but who counts
    assert sorted(again.loc[again["question"] == "quality", "value"]) == [1, 2, 4]


def test_somebody_without_an_account_is_said_before_anything_is_published(argilla: Argilla, variant: Make) -> None:
    study = named(small(variant, "nobodies"), ["ada-who-is-not", "grace-who-is-not"])
    with pytest.raises(
        StudyError, match=r"'ada-who-is-not' has no annotator's account .*\(and 1 more\); .*users invite"
    ):
        publish(study, argilla)
    assert not workspaces_of(study.name, argilla) and not (study.folder / "offered.json").exists()


def test_an_invitation_says_where_as_whom_and_how_long(
    argilla: Argilla, home: server.Home, variant: Make, tmp_path: Path
) -> None:
    study, reached = named(small(variant, "invited"), ["ines", "otto", "xia"]), argilla.connection
    assert reached is not None
    accounts.add(reached, home, ["otto"], ["de", "en"])
    accounts.add(reached, home, ["xia"], ["sv"])  # for whom there is nothing, and so no letter
    invitations = invite(study, reached, home, [], "https://argilla.example.org")
    ines, otto = (one.text for one in invitations)
    account = server.credentials(home).find("ines")
    assert account is not None and account.password in ines and "Address: https://argilla.example.org/work\n" in ines
    # 4 paraphrases at 30 s a pair, and somebody of whom no language is known may rate all queues.
    assert "- Paraphrasing, English (items: 4, minutes: about 2)" in ines
    rubric = load_rubric(study)
    others = [
        called(rubric, queue, rubric.language_for(queue.language, queue.output_language))
        for queue in queues_of(CampaignRecords.open(study).pairs)
        if not queue.languages <= {"de", "en"}
    ]
    assert others and all(name in ines and name not in otto for name in others)
    assert otto.startswith("Einladung zum Bewerten") and "(Einträge: 4, Minuten: etwa 2)" in otto
    assert "Sprachen: Deutsch, Englisch\n" in otto
    publish(study, argilla, accounts.languages(reached, home))
    assert inside(study, argilla) == {"ines", "otto"}
    (tmp_path / "letters").mkdir(mode=0o755)
    files = write_letters(invitations, tmp_path / "letters")
    assert stat.S_IMODE((tmp_path / "letters").stat().st_mode) == 0o755  # a folder of the user's own stays as it is
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    raters = {name: rater for rater, name in names_at(study.name, argilla).items()}
    assert [file.name for file in files] == [f"{raters['ines']}.txt", f"{raters['otto']}.txt"]
    assert files[0].read_text(encoding="utf-8") == ines
    with pytest.raises(StudyError, match="does not name 'zora'"):
        invite(study, reached, home, ["zora"])


@pytest.mark.parametrize(
    ("raters", "said"),
    [
        ({"people": []}, "at least 1 item"),
        ({"people": ["ada", "ada"]}, "annotator 'ada' appears twice"),
        ({"people": ["ada"], "former": ["ada"]}, "annotator 'ada' appears twice"),
        ({"former": ["ada"]}, "`former` needs `people`"),
        ({"people": [""]}, "is empty"),
    ],
)
def test_people_that_cannot_be(variant: Make, raters: dict[str, object], said: str) -> None:
    with pytest.raises((StudyError, DataError), match=said):
        variant(name="people", raters=raters)


def test_the_coordinator_sees_names_and_no_record_has_them(
    argilla: Argilla, home: server.Home, variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    people = ["marguerite", "ottokar"]
    users = [rater(argilla, name) for name in people]
    study = small(variant, "naming", raters={"per_pair": 2, "people": people})
    publish(study, argilla)
    first = pending(argilla, users[1], dataset(study, argilla))[0]
    for one in published(CampaignRecords.open(study), argilla).values():
        for record in pending(argilla, users[0], one.id):
            answer(argilla, users[0], record, "submitted", quality=4, fluency=4)
    answer(argilla, users[1], first, "submitted", quality=1, fluency=1)

    def run(*words: str) -> str:
        done = here("annotation", *words, "--study", str(study.file), "--exports", str(study.folder.parent))
        assert done.returncode == 0, done.stderr
        return done.stdout

    monkeypatch.setenv("PLUMBLINE_ARGILLA_HOME", str(home.path))
    run("collect")
    assert stat.S_IMODE((home.path / "names.json").stat().st_mode) == 0o600
    told = run("status")
    pseudonyms = {name: re.search(rf"(rater-[0-9a-f]{{8}}) {name}", told) for name in people}
    assert all(pseudonyms.values())
    assert run("review", "--exclude", "ottokar", "--reason", "asked to be left out").startswith("naming: rater-")
    assert re.search(r"rater-[0-9a-f]{8} ottokar +excluded", run("review"))
    assert re.search(r"ottokar .* rater-[0-9a-f]{8} +yes\n", run("users", "list"))
    letters = tmp_path / "letters"
    who = pseudonyms["marguerite"]
    file = letters / f"{who[1] if who else ''}.txt"
    assert run("users", "remind", "--to", str(letters)).endswith(
        f"{file}: letter to marguerite; only you can read it\n"
    )
    assert list(letters.iterdir()) == [file]  # nobody writes to who is excluded
    thanks = file.read_text(encoding="utf-8")
    assert thanks.startswith("Thank you: naming\n") and "You have answered everything" in thanks
    assert "- Paraphrasing, English (items: 4, minutes: about " in run("users", "invite", "ottokar")
    run("accept")
    run("report")
    for file in study.folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            content = gzip.decompress(content) if file.suffix == ".gz" else content
            assert not [name for name in people if name.encode() in content], file


def test_a_name_that_somebody_typed_sends_no_codes_to_the_terminal(tmp_path: Path, variant: Make) -> None:
    home, study = server.Home(tmp_path / "home"), variant(name="typed")
    names.remember_names(home, study.name, {"rater-00000000": "Ada\x1b[2J\u202e" + "a" * 200})
    assert (
        names.named("rater-00000000", names.known_names(home, study.name))
        == r"rater-00000000 Ada\x1b[2J\u202e" + "a" * 92
    )

"""Where a study stands: numbers by hand, each half-way state, and what may not be seen early."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from irrCAC.raw import CAC

from annotation.argilla.accounts import ServerAnswers
from annotation.campaign.counting import by_pair
from annotation.campaign.records import CampaignRecords
from annotation.ratings.decisions import withdraw
from annotation.records import Member
from annotation.sampling.queues import in_order, queues_of
from annotation.sampling.sample import draw_sample
from annotation.statistics.systems import side_by_side
from annotation.status.monitoring import pace_of
from annotation.status.progress import MEMBERS, Stage, Workload, by_rater, by_transformation, stages_of
from annotation.status.status import Status, read_status
from annotation.status.text import fitted, headline, next_step, status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import fix_rules
from annotation.verdicts.tables import SIMULATED
from plumbline.__main__ import run
from plumbline.errors import StudyError
from plumbline.manifest import Manifest, stage
from plumbline.models.batch import batch_path
from plumbline.records import Rating
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec, SampleSpec
from tests.annotation.ratings.test_signs import pair
from tests.annotation.sampling.test_sample import flag
from tests.concluded import concluded
from tests.finished import finished_study
from tests.shared import generate_once, rating_of

ARGUMENTS = "--study s.yaml"
NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
RATED = datetime(2026, 3, 30, 12, tzinfo=UTC)
MAIN = "plumbline"
Given = tuple[str, str, str, int]  # pair, rater, status, days before NOW


def ratings_of(given: Sequence[Given], excluded: Sequence[str] = ()) -> pd.DataFrame:
    """Answers to both questions as a frame of ratings; a draft has none to the second."""
    rows = [
        rating_of(
            pair(pair_id), rater, question, 4, status=status, submitted_at=NOW - timedelta(days=days),
            simulated=rater.startswith("simulated"), excluded="careless" if rater in excluded else "",
        ).model_dump() | ({} if status == "submitted" else {"value": None})
        for pair_id, rater, status, days in given
        for question in ("quality", "fluency")
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(Rating.model_fields))


def test_progress_by_hand() -> None:
    """Two answers a pair are wanted. p0 has three (one is surplus), p1 two of which one is excluded, p2 one and a
    draft, p3 a discarded one: 2 + 1 + 1 count of 4 x 2, and 0 + 1 + 1 + 2 are open."""
    given: list[Given] = [
        ("p0", "a", "submitted", 3), ("p0", "b", "submitted", 2), ("p0", "c", "submitted", 1),
        ("p1", "a", "submitted", 3), ("p1", "x", "submitted", 3),
        ("p2", "a", "submitted", 3), ("p2", "b", "draft", 3),
        ("p3", "a", "discarded", 3),
    ]  # fmt: skip
    pairs = [pair(f"p{number}") for number in range(4)]
    other = pair("q").model_copy(update={"language": "de"})
    sample = pd.DataFrame([one.model_dump() for one in [*pairs, other]])
    english, german = by_transformation(by_pair(sample, ratings_of(given, ["x"]), 2, 1)).to_dict("records")
    assert english == {
        "transformation": "paraphrasing", "language": "en",
        "pairs": 4, "complete": 1, "enough": 3, "counting": 4, "wanted": 8, "open": 4,
        "drafts": 1, "discarded": 1, "surplus": 1, "excluded": 1, "withdrawn": 0,
    }  # fmt: skip
    assert (german["language"], german["pairs"], german["counting"], german["open"]) == ("de", 1, 0, 2)


def raters(
    given: Sequence[Given], members: str, *, excluded: Sequence[str] = (), source: str = "form.csv"
) -> pd.DataFrame:
    """The raters' rows by pseudonym: dataset `one` has p0 to p9, `two` has q0, and two answers a pair are wanted."""
    datasets = {f"p{number}": "one" for number in range(10)} | {"q0": "two"}
    named = [Member(rater_id=name, dataset="one", simulated=name.startswith("simulated")) for name in members.split()]
    asked = Workload(datasets, named, 2)
    return by_rater(ratings_of(given, excluded).assign(source=source), asked, []).set_index("rater_id")


def several(rater: str, number: int, days: int = 1, start: int = 0) -> list[Given]:
    return [(f"p{place}", rater, "submitted", days) for place in range(start, start + number)]


def test_raters_by_hand() -> None:
    """p0 and p1 have their two answers, so eight pairs want some: a has answered two of these, b discarded one of them
    and drafted another; c has them all before it."""
    given = [
        *several("a", 4), *several("b", 2), ("p4", "b", "discarded", 1), ("p5", "b", "draft", 1),
        ("q0", "form", "submitted", 2),
    ]  # fmt: skip
    found = raters(given, "a b c")
    assert list(found.index) == ["a", "b", "form", "c"]
    assert found["answers"].to_dict() == {"a": 4, "b": 2, "form": 1, "c": 0}
    assert found["open"].drop("form").to_dict() == {"a": 8 - 2, "b": 8 - 1, "c": 8}
    assert found["open"]["form"] is pd.NA  # a member of nothing: nobody knows what is before that rater
    assert (found["drafts"]["b"], found["discarded"]["b"]) == (1, 1)
    assert not found["out"].any() and raters(given, "a b", source="argilla")["out"].to_dict() == {
        "a": False, "b": False, "form": True
    }  # fmt: skip
    assert not raters(given, "", source="argilla")["out"].any()  # nobody knows who was let in
    assert found["last"]["a"] == NOW - timedelta(days=1) and pd.isna(found["last"]["c"])


@pytest.mark.parametrize(("members", "short"), [("a b x", 6), ("a b c x", 2), ("", 0)])
def test_open_answers_that_nobody_present_can_give_by_hand(members: str, short: int) -> None:
    """Three answers a pair are wanted, and x is excluded. Of p0 three are open, and a and b can come: one lacks. Of p1
    one is open, for a and b have answered: it lacks. Of p2 two are open, a's draft comes and b discarded: one lacks. Of
    p3 three are open, and both discarded: three lack. p4 is complete. With c each lacks one less."""
    given: list[Given] = [
        ("p1", "a", "submitted", 1), ("p1", "b", "submitted", 1), ("p1", "x", "submitted", 1),
        ("p2", "a", "draft", 1), ("p2", "b", "discarded", 1), ("p2", "form", "submitted", 1),
        ("p3", "a", "discarded", 1), ("p3", "b", "discarded", 1),
        *[("p4", rater, "submitted", 1) for rater in ("a", "b", "form")],
    ]  # fmt: skip
    named = [Member(rater_id=name, dataset="one", simulated=False) for name in members.split()]
    asked = Workload({f"p{number}": "one" for number in range(5)}, named, 3)
    pairs = pd.DataFrame({"pair_id": [f"p{number}" for number in range(5)], "open": [3, 1, 2, 3, 0]})
    assert asked.unanswerable(pairs, ratings_of(given, ["x"])) == short


def at(study: Study) -> tuple[Status, str]:
    """The status at NOW and what to do next; that the text can be made is looked at on the way."""
    status = read_status(Evidence(study), NOW)
    text = status_text(status)
    following = next_step(status)
    assert text.endswith(f"Next: {following}")
    assert (SIMULATED in text) == status.simulated
    return status, str(following).replace(study.arguments, ARGUMENTS)


def states(status: Status) -> str:
    return " ".join(
        {"done": "+", "stale": "!", "under way": "~", "not yet": "-"}[one.state] for one in status.stages.values()
    )


def noted(study: Study, name: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> None:
    data = study.data_files() if name == "generation" else [study.folder / one for one in inputs]
    with stage(study, name, data, [study.folder / one for one in outputs]):
        pass


def give(study: Study, raters: str, *, value: int = 5, pairs: int = 24) -> None:
    """People who agree: the first pairs of each transformation in the sequence get the value and one less in turn."""
    sample = {one.pair_id: one for one in CampaignRecords(study).pairs}
    order = [sample[pair_id] for pair_id in in_order(sample, study.sample.seed)]
    rows = [
        rating_of(one, rater, question, value - number % 2, submitted_at=RATED)
        for name in study.transformations
        for number, one in enumerate([one for one in order if one.transformation == name][:pairs])
        for rater in raters
        for question in ("quality", "fluency")
    ]  # fmt: skip
    Manifest.of(study).write_table("ratings.parquet", rows, Rating)


def test_from_nothing_to_a_published_sample(demo: Study) -> None:  # noqa: PLR0915 (one way)
    status, following = at(demo)
    assert states(status) == "- - - - - - - -" and following == f"plumbline generate {ARGUMENTS}"

    generate_once(demo)
    made = ["texts.parquet", "transformations"]
    noted(demo, "generation", outputs=made)
    assert at(demo)[1].startswith(f"{MAIN} plan {ARGUMENTS}\n")
    noted(demo, "plan")
    assert at(demo)[1] == f"{MAIN} sample {ARGUMENTS}"
    batch_path(demo).touch()
    assert at(demo)[1].startswith(f"{MAIN} generate {ARGUMENTS} --batch-file requests.2.jsonl\n")
    batch_path(demo).unlink()
    one = demo.transformation_file("expansion", 1337)
    kept = one.read_bytes()
    one.unlink()
    status, following = at(demo)
    assert states(status) == "+ ~ - - - - - -" and following == f"plumbline generate {ARGUMENTS}"
    assert status.stages["transformations"].note.startswith("7 of 8 units")

    one.write_bytes(kept)
    draw_sample(demo)
    noted(demo, "sample", made, ["pairs.parquet"])
    status, following = at(demo)
    assert states(status) == "+ + + - - - - -" and following.startswith(f"{MAIN} preview {ARGUMENTS}\n")
    (demo.folder / "preview.html").touch()
    noted(demo, "preview", ["pairs.parquet"], ["preview.html"])
    assert at(demo)[1] == f"{MAIN} judge run {ARGUMENTS}"
    noted(demo, "judge")
    assert at(demo)[1] == f"{MAIN} publish {ARGUMENTS}"
    assert set(status.progress["verdict"]) == {"waiting for 96 answers"}  # 24 pairs x 4
    one.write_bytes(demo.transformation_file("paraphrasing", 1337).read_bytes())
    noted(demo, "generation", outputs=made)  # other outputs than those that the sample was drawn from
    status, following = at(demo)
    assert states(status) == "+ + ! - - - - -"
    one.write_bytes(kept)
    noted(demo, "generation", outputs=made)

    noted(demo, "publish", ["pairs.parquet", "controls.parquet"])
    fix_rules(CampaignRecords(demo))
    assert at(demo)[1] == f"{MAIN} simulate {ARGUMENTS}"
    noted(demo, "simulate")
    assert at(demo)[1] == f"{MAIN} collect {ARGUMENTS}"
    people = demo.model_copy(update={"raters": demo.raters.model_copy(update={"simulated": ()})})
    assert at(people)[1] == f"{MAIN} collect {ARGUMENTS}"
    text, every = status_text(read_status(Evidence(people), NOW), more=True), people.raters.per_pair
    assert "No rater is known yet" in text and f"\nBy 2+, By {every}: pairs with" in text
    all_needed = people.acceptance.model_copy(update={"min_raters": every})
    alike = people.model_copy(update={"acceptance": all_needed})
    assert f"\nBy {every}: pairs with" in status_text(read_status(Evidence(alike), NOW))
    for number, who in ((1, "1 annotator"), (3, "3 annotators")):
        with stage(demo, "publish", [demo.folder / "pairs.parquet"], settings={"annotators": number}):
            pass
        words = f"when raters have answered: {who} can"
        following = f"{MAIN} collect {ARGUMENTS}\n  {words}"
        assert at(people)[1] == following
        looked = replace(read_status(Evidence(people), NOW), server=ServerAnswers("http://localhost:6900"))
        assert next_step(looked).command == f"{MAIN} status --watch {people.arguments}"
        away = replace(looked, server=ServerAnswers("", "it does not run"))
        assert next_step(away).command.startswith(f"{MAIN} collect ")
        assert f"published to {who}; no ratings" in status_text(read_status(Evidence(people), NOW))
    with stage(demo, "publish", [demo.folder / "pairs.parquet"], settings={"annotators": 0}):
        pass
    lines = at(people)[1].splitlines()
    assert lines[0] == f"{MAIN} users invite {ARGUMENTS} rater-1 rater-2 rater-3 rater-4"
    named = people.model_copy(update={"raters": people.raters.model_copy(update={"people": ("ada", "jo ann")})})
    assert at(named)[1].splitlines()[0] == f"{MAIN} users invite {ARGUMENTS}"


OTHER_SAMPLES: dict[str, object] = {"pairs": 20, "seed": 7, "controls": 2, "repeats": 3, "batch": 10}
OTHER_SAMPLES |= {"without": ("wrong_language",), "together": True}


def test_a_sample_that_was_drawn_with_another_setting_is_stale(brief: Study) -> None:
    assert run(["sample", "--study", str(brief.file), "--exports", str(brief.folder.parent)]) == 0
    records = CampaignRecords(brief)
    assert stages_of(records, records.manifest, "")["sample"].state == "done"
    for field in SampleSpec.model_fields:
        other = brief.sample.model_copy(update={field: OTHER_SAMPLES[field]})
        records = CampaignRecords(brief.model_copy(update={"sample": other}))
        found = stages_of(records, records.manifest, "")["sample"]
        assert found.state == "stale" and found.note.startswith(f"drawn with other settings: sample.{field}")


def test_outputs_in_the_wrong_language_are_announced_before_and_after_the_sample(generated: Study) -> None:
    """The sample study itself has 5 of 101 backtranslations that are the original again, which is named."""
    flag(generated, ("wrong_language",), 90)
    for _ in range(2):
        text = status_text(read_status(Evidence(generated), NOW))
        assert "WARNING: paraphrasing, en: 89.1% of the outputs are flagged wrong_language (docs/flags.md)" in text
        assert "flagged with an error type (docs/flags.md): " in text and "% of backtranslation, en, identical" in text
        draw_sample(generated)


def judged_by(study: Study, **rule: object) -> Study:
    acceptance = AcceptanceSpec.model_validate({"min_pairs": 5} | rule)
    return study.model_copy(update={"acceptance": acceptance})


def test_an_unfinished_campaign_shows_no_decision_unless_the_rule_allows_to_look(brief: Study) -> None:
    """20 of 24 pairs have all their 4 answers, 5 and 4 in turn: 3 transformations x 4 pairs x 4 answers are to come."""
    draw_sample(brief)
    give(brief, "abcd", pairs=20)
    fixed = judged_by(brief)
    status, following = at(fixed)
    assert set(status.progress["verdict"]) == {"waiting for 16 answers"} and not status.decided
    assert not any(word in status_text(status) for word in ("accepted", "rejected", "undecided"))
    first, words = following.splitlines()
    assert first == f"{MAIN} collect {ARGUMENTS}" and "when more of the 48 answers that are open have come" in words
    assert "`accept`" in words and MAIN not in words  # one command to paste
    watched = next_step(replace(status, server=ServerAnswers("http://localhost:6900")))
    assert watched.command == f"{MAIN} status --watch {brief.arguments}"  # nothing to collect
    assert list(brief.folder.glob("verdicts*")) == []  # nothing is written

    by_blocks = judged_by(brief, rule="lower_bound")
    by_blocks = by_blocks.model_copy(update={"raters": by_blocks.raters.model_copy(update={"blocks": (8, 16, 24)})})
    status, _ = at(by_blocks)
    assert set(status.progress["verdict"]) == {"accepted so far"}

    give(brief, "abcd")
    status, following = at(fixed)
    assert set(status.progress["verdict"]) == {"ready: run accept"} and following == f"{MAIN} accept {ARGUMENTS}"
    give(brief, "abcde", pairs=24)
    assert at(fixed)[0].progress["surplus"].eq(24).all()


def test_the_pace_by_hand() -> None:
    """Six answers in the 3 hours before the last collection, after one two days before, make two an hour."""
    to = datetime(2026, 3, 31, 11, tzinfo=UTC)
    hours = [51, 3, 2.5, 2, 1, 0.5, 0.1]
    frame = ratings_of([(f"p{number}", "a", "submitted", 0) for number in range(7)])
    frame["submitted_at"] = [to - timedelta(hours=ago) for ago in hours for _ in range(2)]
    pace = pace_of(frame, 10, to)
    assert pace is not None and (pace.answers, pace.an_hour) == (6, pytest.approx(2))
    assert pace.ends == to + timedelta(hours=5)
    assert str(pace).endswith("10 are open, the last of them expected on 2026-03-31 16:00 UTC.")
    nobody = pace_of(frame, 10, to + timedelta(days=3))
    assert nobody is not None and nobody.ends is None and "no answer in the 24 hours before" in str(nobody)
    assert pace_of(frame.assign(excluded="careless"), 10, to) is None
    assert pace_of(frame, 10, to, gone=["a"]) is None  # through with all, or out: nobody else answers
    assert "expected" not in str(pace_of(frame, 10, to, can_end=False))
    assert pace_of(frame.assign(simulated=True), 10, to) is None and pace_of(frame[:0], 10, to) is None
    assert "expected" not in str(pace_of(frame, 0, to))
    at_once = str(pace_of(frame[-2:], 10, to))
    assert "at most 10 minutes (counted as 10)" in at_once and "6.0 an hour" in at_once
    assert "1 answer in 30.0 minutes" in str(pace_of(frame[-4:-2], 10, to))


def test_agreement_so_far_is_irrcacs_over_all_ratings_that_count(brief: Study) -> None:
    draw_sample(brief)
    give(brief, "abc", pairs=10)
    generator, ratings = np.random.default_rng(7), CampaignRecords(brief).all_ratings
    values = (ratings["value"] - generator.integers(0, 2, len(ratings))).astype(float)
    rows = [Rating(**row) for row in ratings.assign(value=values).to_dict("records")]
    Manifest.of(brief).write_table("ratings.parquet", rows, Rating)
    status, _ = at(brief)
    found = status.going.agreement.set_index(["question", "coefficient"])
    table = ratings.assign(value=values)[ratings["question"] == "quality"].pivot(
        index="pair_id", columns="rater_id", values="value"
    )
    theirs = CAC(table.reset_index(drop=True), weights="ordinal", categories=[1, 2, 3, 4, 5]).gwet()["est"]
    ac2 = found.loc["quality", "AC2"]
    assert ac2["value"] == pytest.approx(theirs["coefficient_value"], abs=1e-5) and ac2["n_ratings"] == len(table) * 3
    assert (ac2["low"], ac2["high"]) == pytest.approx(theirs["confidence_interval"], abs=1e-3)
    assert found.loc["quality", "alpha"]["low"] < found.loc["quality", "alpha"]["high"] < 1
    lowest = min(found["value"])  # of both questions
    line = status_text(status).partition("Agreement so far, lowest first (95% intervals): ")[2].partition("\n")[0]
    assert [float(part) for part in re.findall(r" (-?[\d.]+) \[", line)][:1] == [pytest.approx(lowest, abs=0.005)]
    assert f"{ac2['value']:.2f} [" in status_text(status, more=True)


def test_a_study_of_many_languages_takes_one_screen_and_sums_up_the_rest(
    brief: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    draw_sample(brief)
    give(brief, "abcd", pairs=20)
    status, _ = at(brief)
    languages = ["ar", "de", "en", "es", "fr", "ha", "it", "ja", "nl", "pl", "pt", "ru", "sw", "tr"]
    rows = [status.progress.assign(language=language) for language in languages]
    progress = pd.concat(rows, ignore_index=True).head(40).assign(transformation="paraphrasing")
    missing = np.arange(len(progress))  # 0 to 39 open answers
    progress = progress.assign(open=missing, wanted=100, counting=100 - missing)
    lines = fitted(status_text(replace(status, progress=progress))).splitlines()
    assert len(lines) <= 33 and all(len(line) <= 80 for line in lines if f"{brief.file}" not in line)
    shown = [int(line.split()[3].split("/")[0]) for line in lines if line.startswith("Paraphrasing")]
    assert sorted(shown) == sorted(100 - missing)[:4]
    rest = sum(sorted(100 - missing)[4:])
    assert f"and 36 more rows, with {rest:,} of 3,600 answers, {3600 - rest} open." in lines
    text = status_text(replace(status, progress=progress), more=True)
    assert sum(line.startswith("Paraphrasing") for line in text.splitlines()) == 40


def test_status_names_who_does_not_answer(brief: Study) -> None:
    draw_sample(brief)
    give(brief, "abcd", pairs=20)
    status, _ = at(brief)
    people = pd.DataFrame(
        [("ada", 9, 3, 30), ("bo", 5, 3, 2), ("cy", 0, 8, None), ("dee", 12, 0, 99), ("eve", 4, 2, 99)],
        columns=["rater_id", "answers", "open", "hours"],
    )
    last = [pd.NaT if pd.isna(hours) else NOW - timedelta(hours=hours) for hours in people["hours"]]
    people = people.assign(signs=[0, 2, 0, 0, 0])
    people = people.assign(last=pd.to_datetime(last, utc=True), excluded=people["rater_id"] == "eve", out=False)
    text = status_text(replace(status, raters=people, unreviewed=("bo",)), {"cy": "Cy Nic"})
    assert "Raters: 4 of 5 raters answered, the last of them 2 h ago\n- no answer yet: cy Cy Nic\n" in text
    assert "with open ones: ada\n" in text and "decided about: bo (2 signs)\n" in text and "- excluded: eve\n" in text


def test_watch_draws_the_status_again_on_a_terminal_until_an_interrupt(
    brief: Study, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = ["status", "--study", str(brief.file), "--exports", str(brief.folder.parent), "--watch", "7"]
    with pytest.raises(StudyError, match="--watch"):  # a file or a pipe
        run(words)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            draw_sample(brief)
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("annotation.status.text.time.sleep", wait)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        run(words)
    first, second = capfdbinary.readouterr().out.split(b"\x1b[H\x1b[2J")[1:]
    assert waits == [7, 7] and b"Transformation " not in first and b"Transformation " in second


@pytest.mark.parametrize(
    ("rule", "people", "command"),
    [
        ({"min_pairs": 20}, ("ada", "bo"), "accept"),  # on 23 pairs
        ({"min_pairs": 24}, ("ada", "bo"), "users invite"),
        ({"min_pairs": 20}, ("ada", "bo", "cy"), "users invite"),
        ({"min_pairs": 20}, None, "users invite"),
    ],
)
def test_after_a_discard_the_next_step_moves_on(
    brief: Study, rule: dict[str, int], people: tuple[str, ...] | None, command: str
) -> None:
    """Both raters are through with all pairs, and one of them discarded one: nobody present can give its answer."""
    study = judged_by(brief, **rule, min_raters=2)
    raters_asked = study.raters.model_copy(update={"per_pair": 2, "people": people, "simulated": ()})
    sample = study.sample.model_copy(update={"controls": 0, "repeats": 0})
    study = study.model_copy(update={"raters": raters_asked, "sample": sample})
    draw_sample(study)
    give(study, "ab")
    rows = CampaignRecords(study).all_ratings
    rows.loc[(rows["pair_id"] == rows["pair_id"][0]) & (rows["rater_id"] == "b"), "status"] = "discarded"
    rows = rows.assign(source="argilla")
    Manifest.of(study).write_table("ratings.parquet", [Rating(**row) for row in rows.to_dict("records")], Rating)
    with stage(study, "publish", [study.folder / "pairs.parquet"], settings={"annotators": 2}):
        pass
    read = CampaignRecords(study)
    datasets = {queue.dataset(study.name) for queue in queues_of(read.shown)}
    members = [Member(dataset=name, rater_id=rater, simulated=False) for name in datasets for rater in "ab"]
    Manifest.of(study).write_models(MEMBERS.name, members)
    noted(study, "collect", ["pairs.parquet"], ["ratings.parquet"])
    status, following = at(study)
    assert sum(status.progress["open"]) == 1 and status.nobody_left and status.going.pace is None
    assert following.startswith(f"{MAIN} {command} {ARGUMENTS}") and "1 answer to come" in following
    edit = f"after you have added a person to raters.people in {study.file}" in following
    assert edit == (people is not None and len(people) == 2)
    if command == "accept":
        accept(study)
        status, following = at(study)
        assert following == f"{MAIN} ratings-report {ARGUMENTS}"
        written = next_step(replace(status, writes="ratings-report"))  # as the report itself names it
        assert written.command.startswith(f"{MAIN} evaluate ")
        scored = {**status.stages, **{name: Stage(name, "done") for name in ("report", "scores")}}
        status = replace(status, stages=scored)
        assert next_step(status).command.startswith(f"{MAIN} scores-report ")
        assert not next_step(replace(status, writes="scores-report")).command.startswith(f"{MAIN} scores-report ")
    elif not edit:  # one more is let in, who can answer all
        with stage(study, "users invite", settings={"annotators": 3}):
            pass
        assert at(study)[1].startswith(f"{MAIN} collect {ARGUMENTS}")


def test_of_a_rated_study_whose_sample_is_gone_the_status_says_so(tmp_path: Path) -> None:
    study = finished_study(tmp_path)
    (study.folder / "pairs.parquet").unlink()
    status, _ = at(study)
    assert status.stages["sample"].state == "not yet"
    assert "pairs.parquet is gone" in status_text(status)


def test_nobody_waits_for_what_cannot_decide(brief: Study) -> None:
    """20 pairs are needed. Withdrawn pairs leave paraphrasing 19 that could count: no answer decides it any more.

    With nobody at work yet all groups want 24 pairs by 4 raters; where all of them are too small, the next step
    is no waiting.
    """
    draw_sample(brief)
    give(brief, "abcd", pairs=20)
    noted(brief, "publish", ["pairs.parquet"])
    noted(brief, "collect", ["pairs.parquet"], ["ratings.parquet"])
    gone = [one.pair_id for one in CampaignRecords(brief).pairs if one.transformation == "paraphrasing"][:5]
    withdraw(brief, gone, take_back=False, reason="broken")
    status, following = at(brief)
    rows = status.progress.set_index("transformation")
    assert rows.loc["paraphrasing", "verdict"].endswith("at most 19 of 20 needed pairs can count")
    others = int(rows["open"].drop("paraphrasing").sum())
    assert rows["open"]["paraphrasing"] > 0 and f"when more of the {others} answers" in following
    (warning,) = [line for line in status.warnings if line.startswith("too few pairs can ever count")]
    assert "for a verdict (acceptance.min_pairs): Paraphrasing (en) 19 of 20. Add" in warning and "--extend" in warning

    small = judged_by(brief, min_pairs=49)
    status, following = at(small)
    assert following.startswith(f"{MAIN} sample {ARGUMENTS} --extend ")
    assert "when more" not in following and status.progress["verdict"].str.contains("at most").all()

    accept(brief)
    headlines = headline(read_status(Evidence(brief), NOW), concluded(brief).verdicts)
    assert "undecided: Paraphrasing" in headlines[0]
    assert "(acceptance.min_pairs): Paraphrasing (en) 19 of 20" in headlines[2] and "when more" not in headlines[2]

    # A comparison that found no original in common follows the answer.
    rows = [("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("c", "z"), ("c", "x")]
    ratings = pd.DataFrame(rows, columns=["original", "system"]).assign(rater_id="r", question="quality", value=3)
    apart = side_by_side(ratings)
    apart = replace(apart, systems=apart.systems.assign(language=""), differences=apart.differences.assign(language=""))
    compared = headline(read_status(Evidence(brief), NOW), concluded(brief).verdicts, apart)
    assert compared[0] == headlines[0] and compared[1].startswith("No system is the best in quality")

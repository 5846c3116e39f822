"""A file of ratings becomes a study that every later command takes."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from annotation.campaign_records import CampaignRecords
from generation.production import read_transformed
from tests.annotation.imports.importing import (
    RATERS,
    SYSTEMS,
    Workplace,
    answer,
    original,
    output,
    triples,
    write_csv,
    write_long,
)

STUDY = ("--study", "studies/mine.yaml")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_a_long_csv_becomes_a_study_with_verdicts_and_a_report(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv")
    done = place.take("ratings.csv")
    for part in ("CSV (commas), 144 rows", "fluency: rating, 1 to 5", "288 ratings of 48 pairs by 3 raters"):
        assert part in done.out
    ratings = place.ratings()
    assert len(ratings) == 24 * 2 * 3 * 2 and ratings["seconds"].notna().sum() == 0  # a day between a rater's items
    row = ratings[(ratings["original"] == original(5)) & (ratings["transformed"] == output(5, "neural"))]
    of_question = row[row["question"] == "fluency"]
    assert sorted(of_question["value"]) == sorted(answer(5, "neural", rater, "fluency") for rater in RATERS)
    assert set(ratings["transformation"]) == {"rules-v2", "neural"}
    assert place.run("annotation", "accept", *STUDY).status == 0
    accepted = place.run("annotation", "accept", *STUDY).out
    assert accepted.startswith("By rules that were fixed after the ratings: Accepted:")
    assert "Mean (HTEB)" in accepted and "Interval, raters too" in accepted and "still open" not in accepted
    assert "AFTER the first rating" in place.run("annotation", "status", *STUDY).out
    assert not place.study.advice  # written as studies are today
    assert {verdict.rules_fixed for verdict in CampaignRecords.open(place.study).verdicts} == {"late"}
    assert place.run("annotation", "report", *STUDY).status == 0
    assert place.run("annotation", "export", *STUDY).status == 0


def test_its_pairs_are_those_that_generation_makes_of_the_same_files(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 6)
    place.take("ratings.csv")
    before = {(pair.pair_id, pair.key) for pair in CampaignRecords.open(place.study).pairs}
    assert place.run("generation.run", *STUDY).status == 0
    keys = {text.key for name in ("rules-v2", "neural") for text in read_transformed(place.study, name, 1337)}
    assert {key for _, key in before} == keys and len(keys) == 6 * len(SYSTEMS)
    assert "another generator" not in place.run("annotation", "status", *STUDY).out


def test_raters_ids_are_in_no_record_and_no_line(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 4)
    done = place.take("ratings.csv")
    for rater in RATERS:
        assert rater not in done.out + done.err and rater.encode() not in place.everything()
    key = place.folder / ".argilla" / "pseudonyms.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert place.ratings()["rater_id"].nunique() == len(RATERS)


def test_what_is_there_is_not_overwritten_unasked(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 4)
    place.take("ratings.csv")
    assert "--replace" in place.refused("ratings.csv")
    assert "48 ratings of 8 pairs" in place.take("ratings.csv", "--replace").out


def test_a_study_file_without_records_stays_as_it_is_and_gets_its_texts_and_ratings(place: Workplace) -> None:
    """As those of `studies/real`, which hold rules and models of their own."""
    write_long(place.folder / "ratings.csv", 6)
    place.take("ratings.csv")
    file, rubric = place.folder / "studies" / "mine.yaml", place.folder / "studies" / "mine" / "questions.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("threshold: 3", "threshold: 2"), encoding="utf-8")
    shutil.rmtree(place.folder / "exports")
    shutil.rmtree(rubric.parent)
    assert "72 ratings of 12 pairs" in place.take("ratings.csv").out
    assert place.study.acceptance.threshold == 2 and rubric.is_file()
    shutil.rmtree(place.folder / "exports")
    others = [[original(n), output(n, "neural"), "other", rater, n % 5 + 1] for n in range(6) for rater in RATERS]
    write_csv(place.folder / "others.csv", ["original", "output", "system", "rater", "meaning"], others)
    assert "these files make a study with another `transformations`" in place.refused("others.csv")


def test_an_import_without_times_is_not_given_any(place: Workplace) -> None:
    rows = [[original(n), output(n, system), rater, answer(n, system, rater)] for n, system, rater in triples(20)]
    write_csv(place.folder / "ratings.csv", ["original", "output", "rater", "meaning"], rows)
    place.take("ratings.csv")
    assert place.run("annotation", "accept", *STUDY).status == 0
    accepted = place.run("annotation", "accept", *STUDY).out
    assert "after the first rating (no later than " in accepted


def test_the_report_comes_next_and_says_of_pairs_only_what_is_known(place: Workplace) -> None:
    rows = [[original(n), output(n, system), system, rater, 4 + n % 2] for n, system, rater in triples()]
    write_csv(place.folder / "ratings.csv", ["original", "output", "system", "rater", "meaning"], rows)
    shown = place.take("ratings.csv").out
    assert f"{original(0)[:23]}…" in shown and f"  {original(0)[:24]}  " not in shown
    assert "Next: plumbline ratings-report" in place.run("annotation", "accept", *STUDY).out
    place.run("annotation", "report", *STUDY)
    html = (place.study.folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "were imported with their ratings; how they were chosen is not known" in html
    assert "drawn at random" not in html and "near-duplicates" not in html
    assert "generation" not in place.run("annotation", "status", *STUDY).out.rpartition("Next: ")[2]


def test_ids_without_texts_are_in_no_language(place: Workplace) -> None:
    rows = [[f"item {n}", rater, n % 5 + 1] for n in range(12) for rater in RATERS]
    write_csv(place.folder / "ratings.csv", ["item", "rater", "meaning"], rows)
    assert "texts: none in the files, so ids replace them" in place.take("ratings.csv").out


def test_a_verdict_that_hangs_on_who_rated_what_is_doubtful(place: Workplace) -> None:
    """Two strict raters and two kind ones rate one system; the strict ones alone rate the other."""
    header, both = ["original", "output", "system", "rater", "meaning"], (-1, -1, 1, 1)
    points = {n: 4 if n % 4 == 0 else 3 for n in range(40)}
    rows = [
        [original(n), output(n, system), system, f"rater {rater}", points[n] + away]
        for system, raters in ((SYSTEMS[0], both[:2]), (SYSTEMS[1], both))
        for n in points
        for rater, away in enumerate(raters)
    ]
    write_csv(place.folder / "ratings.csv", header, rows)
    place.take("ratings.csv")
    place.run("annotation", "accept", *STUDY)
    accepted = place.run("annotation", "accept", *STUDY).out
    assert (
        "means adjusted for raters' severity decide differently: Rules-v2 (en): rejected, adjusted accepted" in accepted
    )

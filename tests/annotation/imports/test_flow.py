"""A file of ratings becomes a study that every later command takes."""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from annotation.campaign.names import known_names
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric, placeholder_lines
from annotation.imports.columns import ROLES
from annotation.server import Home
from annotation.status.next_step import next_step
from annotation.status.status import read_status
from annotation.verdicts.counted import Ahead
from annotation.verdicts.evidence import Evidence
from generation.production import read_transformed
from plumbline.errors import DataError
from tests.annotation.imports.importing import (
    LONG,
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
from tests.concluded import concluded

STUDY = ("--study", "studies/mine.yaml")
pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_a_long_csv_becomes_a_study_with_verdicts_and_a_report(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv")
    done = place.take("ratings.csv", *LONG)
    for part in ("CSV (commas), 144 rows", "fluency: rating, 1 to 5", "288 ratings of 48 pairs by 3 raters",
                 "Next: plumbline review "):  # fmt: skip
        assert part in done.out
    ratings = place.ratings()
    assert len(ratings) == 24 * 2 * 3 * 2 and ratings["seconds"].notna().sum() == 0  # a day between a rater's items
    row = ratings[(ratings["original"] == original(5)) & (ratings["transformed"] == output(5, "neural"))]
    of_question = row[row["question"] == "fluency"]
    assert sorted(of_question["value"]) == sorted(answer(5, "neural", rater, "fluency") for rater in RATERS)
    assert set(ratings["transformation"]) == {"rules-v2", "neural"}
    assert place.run("accept", *STUDY).status == 0
    accepted = place.run("accept", *STUDY).out
    assert re.search(r"\nAccepted: .*\. All by rules that were fixed after the ratings\.", accepted)
    assert (
        "Doubtful: whether raters paid attention could not be looked at, because they answered no controls." in accepted
    )
    assert "still open" not in accepted
    planned = place.run("plan", *STUDY, "--apart", "1")
    assert planned.status == 0 and "of the study's 144 ratings so far" in planned.out
    status = place.run("status", *STUDY).out
    assert "RULES FIXED AFTER THE FIRST RATING" in status
    assert "Pace" not in status  # how many answers were asked for is unknown
    assert {verdict.rules_fixed for verdict in concluded(place.study).verdicts} == {"late"}
    assert place.run("ratings-report", *STUDY).status == 0
    assert place.run("export", *STUDY).status == 0
    found = replace(read_status(Evidence(place.study), datetime.now(UTC)), to_look_at=(), unreviewed=())
    group = Ahead(("neural",), ("neural (en)",), (("neural", "en"),), 24, 24, awaited=2, anew=1, enough=24)
    assert next_step(replace(found, decided=False, undecided=(group,))).command.split()[1] == "sheet"  # none will come
    unwritten = found.stages | {"report": replace(found.stages["report"], state="not yet")}
    for signs, command in (((), "ratings-report"), (("rater-1",), "review")):  # an exclusion would change the report
        step = next_step(replace(found, unreviewed=signs, stages=unwritten))
        assert step.command.split()[1] == command
    pages = vars(found)["pages"] = {name: replace(page, state="done") for name, page in found.pages.items()}
    end = next_step(found)
    assert not end.command
    assert all(name in end.words for name in (str(place.study.folder / "report" / "index.html"), "LaTeX"))
    vars(found)["pages"] = pages | {"export": replace(pages["export"], state="stale")}
    assert next_step(found).command.split()[1] == "export"


def test_raters_whom_no_file_names_stay_unknown_in_every_count(place: Workplace) -> None:
    """143 answers of nobody knows how many people: no table, sentence or sheet makes 143 people of them.

    Nobody knows either whether a 144th was asked for.
    """
    rows = [[s, original(n), output(n, s), answer(n, s, rater)] for n, s, rater in triples()][1:]
    write_csv(place.folder / "ratings.csv", ["sys", "source", "output", "meaning"], rows)
    done = place.take("ratings.csv", "--column", "answer=meaning", "--scale", "meaning=1..5")
    assert "143 ratings of 48 pairs ->" in done.out
    for command in ("accept", "ratings-report", "sheet", "export"):
        done = place.run(command, *STUDY)
        assert done.status == 0, done.err
    folder = place.study.folder
    for group in concluded(place.study).groups:
        assert group.questions[0].n_raters is None and group.questions[0].kappa.reason == "the raters are unknown"
        assert group.questions[0].ac2.value == group.questions[0].ac2.value  # which needs nobody's name
    raters = pd.read_csv(folder / "report" / "raters.csv").set_index("rater_id")
    assert list(raters.index) == ["unknown"] and raters.loc["unknown", "counting"] == 143
    assert pd.read_csv(folder / "report" / "exclusions.csv")["raters"].isna()[0]
    reliability = pd.read_csv(folder / "report" / "reliability.csv").set_index("statistic")
    assert reliability["value"].notna()["ICC(1)"] and reliability["reason"]["ICC(2)"] == "the raters are unknown"
    assert list(read_status(Evidence(place.study), datetime.now(UTC)).raters["rater_id"]) == ["unknown"]
    shown = place.run("status", *STUDY).out + place.run("review", *STUDY).out
    shown += "".join(path.read_text(encoding="utf-8") for name in ("report/index.html", "export/codebook.md",
                     "sheet/heds.md", "sheet/datasheet.md") for path in [folder / name])  # fmt: skip
    assert re.findall(r"143 (?:people|persons?|raters?)\b|1 of 1 rater", shown) == []
    assert "the study asks for" not in shown and "of 48 pairs have ratings" not in shown
    assert "143 ratings, of which 143 count; of unknown time." in shown
    assert shown.count("AFTER the first rating (no later than ") > 3 and "first rating (2" not in shown
    assert "given by people who are not named" in shown and "all: 143 answers (the file does not name raters)" in shown


def test_its_pairs_are_those_that_generation_makes_of_the_same_files(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 6)
    place.take("ratings.csv", *LONG)
    before = {(pair.pair_id, pair.key) for pair in CampaignRecords(place.study).pairs}
    assert place.run("generate", *STUDY).status == 0
    keys = {text.key for name in ("rules-v2", "neural") for text in read_transformed(place.study, name, 1337)}
    assert {key for _, key in before} == keys and len(keys) == 6 * len(SYSTEMS)
    assert "another generator" not in place.run("status", *STUDY).out


def test_raters_ids_are_in_no_record_and_no_line(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 4)
    done = place.take("ratings.csv", *LONG)
    for rater in RATERS:
        assert rater not in done.out + done.err and rater.encode() not in place.everything()
    for private in ("pseudonyms.key", "names.json"):
        assert stat.S_IMODE((place.folder / ".argilla" / private).stat().st_mode) == 0o600
    assert place.ratings()["rater_id"].nunique() == len(RATERS)


def test_the_coordinator_excludes_an_imported_rater_by_name_and_exports_keep_the_pseudonym(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 4)
    text = (place.folder / "ratings.csv").read_text(encoding="utf-8")
    (place.folder / "ratings.csv").write_text(text.replace(RATERS[0], "Ada@example.org"), encoding="utf-8")
    place.take("ratings.csv", *LONG)
    home = ("--data", str(place.folder / ".argilla"))
    done = place.run("review", *STUDY, *home, "--exclude", RATERS[0].upper(), "--reason", "asked to be left out")
    assert done.status == 0, done.err
    (decision,) = CampaignRecords(place.study).decisions
    assert known_names(Home(place.folder / ".argilla"), "mine")[decision.rater_id] == "Ada@example.org"
    assert "Ada@example.org" in place.run("review", *STUDY, *home).out
    status = read_status(Evidence(place.study), datetime.now(UTC))
    assert next_step(status).command == status.command("accept") and not status.progress["open"].any()
    for command in ("accept", "ratings-report", "export"):
        done = place.run(command, *STUDY)
        assert done.status == 0, done.err
    assert "waiting for" not in place.run("status", *STUDY).out
    assert RATERS[0].encode() not in place.everything().lower()


def test_a_lab_finds_its_own_ids_in_what_it_exports(place: Workplace) -> None:
    rows = [
        [f"0{n} {RATERS[0]}", s, original(n), output(n, s), rater, answer(n, s, rater)] for n, s, rater in triples(6)
    ]
    write_csv(place.folder / "ratings.csv", ["item", "sys", "source", "output", "rater", "meaning"], rows)
    place.take("ratings.csv", "--column", "answer=meaning", "--scale", "meaning=1..5")
    for form in ("csv", "xlsx"):
        done = place.run("export", *STUDY, "--form", form)
        assert done.status == 0, done.err
    folder = place.study.folder / "export"
    pairs = pd.read_csv(folder / "pairs.csv", dtype=str)
    number = {original(n): n for n in range(6)}
    assert [item[:3] for item in pairs["item_id"]] == [f"0{number[text]} " for text in pairs["original"]]
    of_pairs = pairs.set_index("pair_id")["item_id"]
    answers, ratings = (pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("answers", "ratings"))
    assert list(answers["item_id"]) == list(of_pairs[answers["pair"]])
    assert list(ratings["item_id"]) == list(of_pairs[ratings["pair_id"]])
    sheet = pd.read_excel(folder / "xlsx" / "ratings.xlsx", "answers", dtype=str)
    assert list(sheet["item_id"]) == list(answers["item_id"])
    copied = place.study.file.read_text(encoding="utf-8").replace("name: mine\n", "name: crowd\n", 1)
    place.study.file.with_name("crowd.yaml").write_text(copied, encoding="utf-8")
    (place.folder / "studies" / "crowd").mkdir()
    questions = (place.folder / "studies" / "mine" / "questions.yaml").read_bytes()
    (place.folder / "studies" / "crowd" / "questions.yaml").write_bytes(questions)
    other, file = ("--study", "studies/crowd.yaml"), ("--csv", str(folder / "answers.csv"))
    for words in (("generate",), ("sample",), ("collect", *file, "--columns", "pair=pair,rater=rater,meaning=meaning"),
                  ("export",)):  # fmt: skip
        done = place.run(words[0], *other, *words[1:])
        assert done.status == 0, done.err
    of_crowd = pd.read_csv(place.folder / "exports" / "crowd" / "export" / "pairs.csv", dtype=str)
    assert of_crowd.set_index("pair_id")["item_id"].to_dict() == of_pairs.to_dict()
    assert RATERS[0].encode() not in place.everything()  # a rater's id within an item's, too


def test_nobody_is_asked_in_the_words_of_an_import_that_knows_none(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 4)
    place.take("ratings.csv", *LONG)
    file = place.folder / "studies" / "mine.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "crowd: {}\n", encoding="utf-8")
    questions = str(file.with_suffix("") / "questions.yaml")
    refused = place.run("publish", *STUDY)
    assert refused.status == 2 and questions in refused.err and str(file) in refused.err
    study = place.study
    assert placeholder_lines(study, load_rubric(study))
    assert place.run("crowd", "plan", *STUDY, "--platform", "rehearsal").status == 2  # as launch: people rated it
    for path in (file, file.with_suffix("") / "questions.yaml"):
        words = re.sub(r"(What|Raters saw).* is not known\.", "Compare the two.", path.read_text(encoding="utf-8"))
        words = re.sub("en: '[15]'", "en: at the end", words.replace("imported; the", "ours; not the"))
        path.write_text(words, encoding="utf-8")
    assert placeholder_lines(place.study, load_rubric(place.study)) == []


def test_what_is_there_is_not_overwritten_unasked(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 4)
    place.take("ratings.csv", *LONG)
    assert "--replace" in place.refused("ratings.csv", *LONG)
    assert "48 ratings of 8 pairs" in place.take("ratings.csv", *LONG, "--replace").out


def test_to_too_few_texts_of_a_language_an_import_adds_more(place: Workplace) -> None:
    """There is nothing to generate, and nothing to draw from."""
    rows = [[("en", "de")[n < 4], original(n), output(n, s), r, answer(n, s, r)] for n, s, r in triples(24)]
    write_csv(place.folder / "r.csv", ["language", "original", "output", "rater", "meaning"], rows)
    place.take("r.csv")
    assert place.run("accept", *STUDY).status == 0
    said = " ".join(place.run("status", *STUDY).out.split())
    assert "(de) 8 of 20. Import more texts, with --replace, or lower the number in the study" in said
    assert "generate" not in said and "sample --" not in said


def test_help_lists_the_roles_of_columns(place: Workplace) -> None:
    assert f": {', '.join(ROLES)} (may be repeated)" in " ".join(place.run("import", "--help").out.split())


def test_a_file_name_is_no_json(place: Workplace) -> None:
    write_long(place.folder / "[1].csv")
    assert "288 ratings of 48 pairs by 3 raters" in place.take("[1].csv", *LONG).out


def test_a_refused_import_leaves_nothing_behind(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    write_long(place.folder / "ratings.csv", 6)

    def fail(*_: object) -> int:
        raise DataError("ratings.csv, line 3: refused")

    with monkeypatch.context() as patch:
        patch.setattr("annotation.imports.command.write_records", fail)
        assert "line 3: refused" in place.refused("ratings.csv", *LONG)
    assert not any((place.folder / "studies").glob("*")) and not any((place.folder / "exports").glob("*"))
    place.take("ratings.csv", "--column", "answer=meaning")
    before = place.everything()
    with monkeypatch.context() as patch:
        patch.setattr("annotation.imports.command.write_records", fail)
        place.refused("ratings.csv", "--column", "answer=meaning", "--replace")
    assert place.everything() == before and len(place.ratings()) == 36


def test_the_written_columns_of_several_files_are_read_as_they_were(place: Workplace) -> None:
    """A rater's third column in one file is not the third of another, which holds right answers."""
    texts = [[n, original(n), 1 + n % 5] for n in range(20)]
    write_csv(place.folder / "texts.csv", ["id", "text", "gold"], texts)
    write_csv(place.folder / "r.csv", ["id", "system", "A", "B"], [[n, "x", 1 + n % 5, 2 + n % 4] for n in range(20)])
    first = place.take("texts.csv", "r.csv", "--column", "by_rater=A", "--column", "by_rater=B")
    again = place.take("texts.csv", "r.csv", "--columns", "studies/mine/columns.yaml", "--replace")
    assert "40 ratings of 20 texts by 2 raters" in first.out and "40 ratings of 20 texts by 2 raters" in again.out


def test_an_import_names_the_labels_that_no_rule_decides_by_and_what_fixes_the_rules(place: Workplace) -> None:
    rows = [
        [s, original(n), output(n, s), rater, answer(n, s, rater), ("correcto", "dudoso", "incorrecto")[n % 3]]
        for n, s, rater in triples(6)
    ]
    write_csv(place.folder / "ratings.csv", ["sys", "source", "output", "rater", "meaning", "judged"], rows)
    roles = ("--column", "answer=meaning", "--column", "answer=judged", "--scale", "meaning=1..5")
    assert re.findall(r"no rule decides by (.*?);", place.take("ratings.csv", *roles).out) == ["judged"]
    fixed = [rule.question for rule in place.study.acceptance.rules]
    assert "judged" not in fixed and "`accept` fixes them" in place.run("status", *STUDY).out

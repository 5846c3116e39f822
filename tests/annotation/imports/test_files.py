"""Several files, and what is said once of several answers: times of submissions, names of files, facts of items."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence

import openpyxl
import pandas as pd
import pytest

from tests.annotation.imports.importing import RATERS, Workplace, original, write_csv

WORDS = ("--scale", "rating=1..5", "--language", "en")


def long(seconds: Sequence[int]) -> list[list[object]]:
    """Each rater's ratings of four texts; `seconds` by rater, or by answer."""
    rows = [[original(n), rater, 1 + (n + r) % 5] for r, rater in enumerate(RATERS) for n in range(4)]
    each = seconds if len(seconds) == len(rows) else [time for time in seconds for _ in range(4)]
    return [[*row, time] for row, time in zip(rows, each, strict=True)]


@pytest.mark.parametrize("name", ["duration", "Duration (in seconds)"])
def test_the_time_of_a_submission_is_no_answers_time(place: Workplace, name: str) -> None:
    column = () if name == "duration" else ("--column", f"seconds={name}")
    write_csv(place.folder / "r.csv", ["text", "rater", "rating", name], long([412, 655, 508]))
    done = place.take("r.csv", *column, *WORDS)
    assert "12 answers have only the time of a whole submission with several items" in done.out
    assert place.ratings()["seconds"].isna().all()
    write_csv(place.folder / "r.csv", ["text", "rater", "rating", name], long(list(range(5, 17))))
    assert "whole submission" not in place.take("r.csv", *column, *WORDS, "--replace").out
    assert sorted(place.ratings()["seconds"]) == list(range(5, 17))


@pytest.mark.parametrize("items", [1, 2])
def test_the_time_of_a_hit_is_an_answers_time_if_it_has_one_item(place: Workplace, items: int) -> None:
    names = [f"Input.text{n}" for n in range(1, items + 1)] + [f"Answer.rating{n}" for n in range(1, items + 1)]
    names += [f"Input.source{n}" for n in range(1, items + 1)]
    rows = [
        [f"A{n}{r}", f"W{r}", "Approved", 60 + n + r, *(f"{original(n)} {k}" for k in range(items)),
         *(1 + (n + k + r) % 5 for k in range(items)), *(f"{original(n)} Really {k}" for k in range(items))]
        for n in range(4) for r in range(2)
    ]  # fmt: skip
    write_csv(
        place.folder / "b.csv", ["AssignmentId", "WorkerId", "AssignmentStatus", "WorkTimeInSeconds", *names], rows
    )
    words = ("--column", "output=Input.text1", "--column", "original=Input.source1") if items == 1 else ()
    words = words or ("--column", "output=Input.text", "--column", "original=Input.source")
    done = place.take("b.csv", *words, "--language", "en")
    assert ("whole submission" in done.out) == (items == 2)
    seconds = place.ratings()["seconds"]
    assert len(seconds) == 8 * items and seconds.isna().all() == (items == 2)


def test_files_of_one_name_are_two_raters(place: Workplace) -> None:
    for number, folder in enumerate(("ada", "bob")):
        (place.folder / folder).mkdir()
        rows = [[original(n), 1 + (n + number) % 5] for n in range(6)]
        write_csv(place.folder / folder / "r.csv", ["text", "rating"], rows)
    place.take("ada/r.csv", "bob/r.csv", "--raters-per-file", *WORDS)
    ratings = place.ratings()
    assert len(ratings) == 12 and ratings["rater_id"].nunique() == 2
    assert set(ratings["source"]) == {"ada/r.csv", "bob/r.csv"}
    with zipfile.ZipFile(place.folder / "all.zip", "w") as packed:
        for folder in ("ada", "bob"):
            packed.write(place.folder / folder / "r.csv", f"{folder}/r.csv")
    place.take("all.zip", "--raters-per-file", *WORDS, "--replace")
    assert len(place.ratings()) == 12 and place.ratings()["rater_id"].nunique() == 2


def test_another_files_facts_fill_gaps_and_contradict_nothing(place: Workplace) -> None:
    rows = [[n, rater, 1 + n % 5, original(n) if n < 4 else ""] for n in range(8) for rater in RATERS]
    write_csv(place.folder / "r.csv", ["id", "rater", "rating", "text"], rows)
    write_csv(place.folder / "t.csv", ["id", "displayed_text", "task"], [[n, original(n), 90 + n] for n in range(8)])
    done = place.take("r.csv", "t.csv", *WORDS)
    assert "t.csv: 'task' is not used, since the rows with answers have their own item" in done.out
    assert set(pd.read_parquet(place.folder / "studies/mine/texts.parquet")["text"]) == set(map(original, range(8)))
    write_csv(place.folder / "t.csv", ["id", "displayed_text"], [[n, f"{original(n)}!"] for n in range(8)])
    error = place.refused("r.csv", "t.csv", *WORDS, "--replace")
    assert f"r.csv, line 2: the text is {original(0)[:60]!r}, but" in error and "(so for 12 answers)" in error
    place.take("r.csv", "t.csv", "--column", "unused=r.csv:text", *WORDS, "--replace")
    assert place.ratings()["fields"].str.contains("!").all()


def test_a_cell_far_to_the_right_of_the_names_is_refused_or_is_none(place: Workplace) -> None:
    book = openpyxl.Workbook()
    for row in [["text", "rater", "rating"], *([original(n), RATERS[0], 1 + n % 5] for n in range(6))]:
        book.active.append(row)
    book.active["XFD1"] = " "
    book.save(place.folder / "r.xlsx")
    assert "6 ratings of 6 texts" in place.take("r.xlsx", *WORDS).out
    book.active["XFD1"] = "note"
    book.save(place.folder / "r.xlsx")
    error = place.refused("r.xlsx", *WORDS, "--replace")
    assert "a cell stands alone in column 16384, far to the right of column 3; remove it" in error


def test_lists_among_label_studios_data_are_listed_unless_they_were_ranked(place: Workplace) -> None:
    answers = [{"from_name": "good", "type": "rating", "value": {"rating": 3}}]
    task = {"id": 1, "data": {"text": original(1), "turns": [{"who": "a", "said": "yes"}], "tags": ["x", "y"]},
            "annotations": [{"completed_by": 1, "result": answers}]}  # fmt: skip
    (place.folder / "l.json").write_text(json.dumps([task]), encoding="utf-8")
    place.take("l.json", "--scale", "good=1..5", "--language", "en")
    assert place.listed == [(1, "a list is not read here")]
    candidates = [{"id": name, "body": f"{original(1)} {name}"} for name in "abc"]
    ranked = [{"from_name": "order", "type": "ranker", "value": {"ranker": ["b", "a", "c"]}}]
    task |= {"data": {"text": original(1), "items": candidates}, "annotations": [{"completed_by": 1, "result": ranked}]}
    (place.folder / "l.json").write_text(json.dumps([task]), encoding="utf-8")
    place.take("l.json", "--language", "en", "--replace")
    assert not place.listed and len(place.ratings()) == 3


def test_a_text_file_of_another_encoding_is_read_by_every_command(place: Workplace) -> None:
    texts = [f"Der Bär Nummer {n} schläft tief im Wäldchen hinter dem großen Haus am See." for n in range(12)]
    (place.folder / "t.csv").write_bytes("\n".join(["text", *texts]).encode("cp1252"))
    done = place.run("init", "t.csv", "--study", "texts.yaml")
    assert done.status == 0, done.err
    assert "t.csv: not UTF-8, so read as Windows-1252; check its letters" in done.out
    assert "language: de (German)" in done.out

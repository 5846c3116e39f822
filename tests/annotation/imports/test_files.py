"""Several files, and what is said once of several answers: times of submissions, names of files, facts of items."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence

import openpyxl
import pandas as pd
import pytest

from annotation.imports import tables
from plumbline.errors import DataError
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
    place.take("all.zip", *WORDS, "--replace")  # nobody is named, so no answer is another's again
    assert len(place.ratings()) == 12 and not place.listed


def test_slots_of_two_files_are_not_one_person(place: Workplace) -> None:
    for name in ("a.csv", "b.csv"):
        write_csv(place.folder / name, ["text", "rating_1", "rating_2"], [[original(n), 2, 4] for n in range(6)])
    words = ("--column", "slot=rating_1", "--column", "slot=rating_2")
    place.take("a.csv", "b.csv", *words, *WORDS)
    assert len(place.ratings()) == 24 and not place.listed


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


def test_a_text_of_one_name_in_both_files_is_no_key_beside_an_id(place: Workplace) -> None:
    rows = [[n, rater, 1 + n % 5, original(n) if n < 4 else ""] for n in range(8) for rater in RATERS]
    write_csv(place.folder / "r.csv", ["id", "rater", "rating", "text"], rows)
    write_csv(place.folder / "t.csv", ["id", "text"], [[n, original(n)] for n in range(8)])
    place.take("r.csv", "t.csv", *WORDS)
    assert len(place.ratings()) == 24 and not place.listed
    write_csv(place.folder / "t.csv", ["id", "text", "gold"], [[n, f"{original(n)}!", 3] for n in range(8)])
    assert "set one of these columns to unused" in place.refused("r.csv", "t.csv", *WORDS, "--replace")
    place.take("r.csv", "t.csv", "--column", "unused=t.csv:text", *WORDS, "--replace")
    truth = pd.read_csv(place.study.folder / "truth.csv")
    assert len(truth) == 4 and len(place.ratings()) == 12
    rows = [[n % 4, n // 4, original(n), rater, 1 + n % 5] for n in range(8) for rater in RATERS]
    write_csv(place.folder / "r.csv", ["id", "system", "output", "rater", "rating"], rows)
    write_csv(place.folder / "t.csv", ["id", "output", "source"], [[n % 4, original(n), f"No {n}."] for n in range(8)])
    place.take("r.csv", "t.csv", *WORDS, "--replace")
    assert place.ratings()["original"].nunique() == 8  # the same id has an output of each system


def test_a_comment_beside_an_answer_is_no_item_of_a_grid(place: Workplace) -> None:
    names = ["id", "text", "Q1. Clear?", "Q1[comment]. Clear? [Kommentar]"]
    write_csv(place.folder / "r.csv", names, [[n, original(n), 1 + n % 5, f"Well, {n}."] for n in range(6)])
    assert "no column was recognised as answers" in place.refused("r.csv")
    done = place.take("r.csv", "--column", "answer=Q1. Clear?", "--column", f"comment={names[3]}", "--language", "en")
    assert "6 ratings of 6 texts" in done.out and place.ratings()["comment"].str.startswith("Well").all()


@pytest.mark.parametrize(
    ("columns", "words", "places"),
    [
        (["id", "clear [German]", "rating"], (), [(3, "answer"), (2, "by_item")]),
        (["text", "clear [German]"], (), [(1, "text"), (2, "by_item")]),
        (["id", "clear_1", "clear_2", "rating"], ("--column", "by_rater=clear_1", "--column", "by_rater=clear_2"),
         [(4, "answer"), (2, "by_rater")]),
    ],
)  # fmt: skip
def test_answers_of_two_kinds_in_a_row_are_asked_for(
    place: Workplace, columns: list[str], words: tuple[str, ...], places: list[tuple[int, str]]
) -> None:
    write_csv(place.folder / "r.csv", columns, [[original(n), *([2 + n % 3] * (len(columns) - 1))] for n in range(6)])
    (first, one), (second, other) = places
    asked = f"column {first} ({one}) and column {second} ({other}) cannot both be read"
    assert asked in place.refused("r.csv", *words, *WORDS)


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


def test_a_title_names_its_scale(place: Workplace) -> None:
    rows = [[original(n), 2 + n % 3, 1 + n % 4, 7 + n % 2] for n in range(8)]
    write_csv(place.folder / "r.csv", ["text", "Helpful (1-5)", "Safe [0 to 10]", "Kind (1-5)"], rows)
    names = [
        word for name in ("Helpful (1-5)", "Safe [0 to 10]", "Kind (1-5)") for word in ("--column", f"answer={name}")
    ]
    done = place.take("r.csv", *names, "--language", "en")
    assert "helpful-1-5: rating, 1 to 5" in done.out and "safe-0-to-10: rating, 0 to 10" in done.out
    assert "kind-1-5: rating, 1 to 8" in done.out  # answers are not on the named scale
    assert "of no role: 'Helpful (1-5)', 'Safe [0 to 10]'" in place.refused("r.csv", "--replace")
    rows = [[original(n), 55 if n == 3 else 1 + n % 4, n % 3] for n in range(12)]
    write_csv(place.folder / "r.csv", ["text", "Helpful (1-5)", "Change (-2..+2)"], rows)
    names = [word for name in ("Helpful (1-5)", "Change (-2..+2)") for word in ("--column", f"answer={name}")]
    done = place.take("r.csv", *names, "--language", "en", "--replace")
    assert "helpful-1-5: rating, 1 to 5" in done.out and "change-2-2: rating, -2 to 2" in done.out
    assert place.listed == [(5, "55 is outside the scale 1 to 5")]
    rows = [[original(n), ("None", "Minor", "Severe")[n % 3]] for n in range(9)]
    write_csv(place.folder / "r.csv", ["text", "Errors (None/Minor/Severe)"], rows)
    place.take("r.csv", "--column", "answer=Errors (None/Minor/Severe)", "--language", "en", "--replace")
    assert not place.listed and len(place.ratings()) == 9


def test_facts_beside_a_list_are_each_rows_and_two_systems_are_asked_for(place: Workplace) -> None:
    listed = {
        "annotator": RATERS[0],
        "id": 7,
        "rating": 5,
        "items": [{"text": original(n), "clear": n % 5} for n in range(6)],
    }
    (place.folder / "d.json").write_text(json.dumps(listed), encoding="utf-8")
    done = place.take("d.json", "--column", "answer=clear", "--scale", "clear=0..4", "--language", "en")
    assert "not read: id, rating" in done.out and "6 ratings of 6 texts by 1 rater" in done.out
    rows = [["a", n, original(n), 1 + n % 5] for n in range(6)]
    write_csv(place.folder / "r.csv", ["system", "sim.sys", "text", "rating"], rows)
    assert "'system' and 'sim.sys' may all be the system" in place.refused("r.csv", *WORDS, "--replace")


def test_systems_whose_long_names_begin_alike_keep_apart_in_tables(place: Workplace) -> None:
    names = ["L" * 100 + "a", "L" * 100 + "b", "GPT-4.1"]
    rows = [[name, original(n), f"{original(n)} {name}", "ada", 1 + n % 5] for name in names for n in range(6)]
    write_csv(place.folder / "r.csv", ["system", "source", "output", "rater", "rating"], rows)
    place.take("r.csv", *WORDS)
    titles = [kind.title for kind in place.study.transforming.values()]
    assert len(set(titles)) == 3 and titles[2] == "GPT-4.1"


@pytest.mark.parametrize(
    "line",
    ['"a; ""b"" c",x,3', '"a\nb",x,3', "", ",,", 'a "b" c,x,3', "a,x", "a,x,3,4", '"open,x,3', "\u00e9\u0301 ,x,3 "],
)
def test_rows_read_at_once_are_those_read_one_by_one(
    place: Workplace, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["text,rater,rating", *(f"{original(n)},ada,{1 + n % 5}" for n in range(3)), line, "last,bob,4"]
    (place.folder / "r.csv").write_text("\n".join(lines), encoding="utf-8")
    found: list[object] = []
    for _ in range(2):
        try:
            table = tables.read_csv(place.folder / "r.csv")
            found.append((table.cells.astype(object).fillna("").to_numpy().tolist(), list(table.lines), table.listed))
        except DataError as error:
            found.append((str(error), [], ()))
        monkeypatch.setattr(tables, "_plain_rows", lambda *_: None)
    assert found[0] == found[1]


def test_questions_with_line_ends_stay_apart(place: Workplace) -> None:
    names = [f"{head}\n\nof each text? [{original(n)}]" for head in ("How clear", "How kind") for n in range(4)]
    rows = [[rater, *(1 + (n + k) % 5 for n in range(8))] for k, rater in enumerate(RATERS)]
    write_csv(place.folder / "g.csv", ["rater", *names], rows)
    done = place.take("g.csv", "--language", "en", "--scale", "how-clear-of-each-text=1..5")
    assert "question how-clear-of-each-text" in done.out and "question how-kind-of-each-text" in done.out
    assert len(place.ratings()) == 24
    header = ["ResponseId", "Finished", "Status", "Q1_1", "Q1_2", "Q1_3", "b_Browser", "browser_Version"]
    words = ["Response ID", "Finished", "Status", *(f"How clear\n is it? - {original(n)}" for n in range(3)),
             "Click to write the question text - Browser", "Click to write the question text - Version"]  # fmt: skip
    rows = [[f"R_{k}", "True", "IP Address", 1 + k, 2, 3, "Chrome", f"9{k}.0"] for k in range(3)]
    write_csv(place.folder / "q.csv", header, [words, [f'{{"ImportId":"{name}"}}' for name in header], *rows])
    done = place.take("q.csv", "--language", "en", "--scale", "how-clear-is-it=1..5", "--replace")
    assert "9 ratings of 3 texts by 3 raters" in done.out and "its name describes a rater's device" in done.out

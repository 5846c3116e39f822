"""Each form of a file is recognised by its content, its columns by name or option, and its answers arrive whole."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from annotation.campaign.records import CampaignRecords
from generation.datasets.loading import iter_datasets
from plumbline.study import load_study
from tests.annotation.imports.importing import (
    LONG,
    RATERS,
    SYSTEMS,
    TOWNS,
    Workplace,
    answer,
    original,
    output,
    triples,
    write_csv,
    write_long,
)


def values(place: Workplace, number: int, system: str, question: str = "meaning") -> list[int]:
    """The ratings of an item, in order."""
    ratings = place.ratings()
    of_item = ratings["transformed"] == output(number, system)
    of_item |= ratings["fields"].str.contains(output(number, system), regex=False)
    return sorted(ratings[of_item & (ratings["question"] == question)]["value"])


def wanted(number: int, system: str, question: str = "meaning") -> list[int]:
    return sorted(answer(number, system, rater, question) for rater in RATERS)


def test_outputs_that_no_column_tells_apart_are_one_group(place: Workplace) -> None:
    """Two to four outputs of one original: groups by their order in the file would be judged apart and mean nothing."""
    rows = [[original(n), f"{output(n, SYSTEMS[0])} Take {k}.", r, answer(n, SYSTEMS[0], r)]
            for n in range(12) for k in range(2 + n % 3) for r in RATERS]  # fmt: skip
    write_csv(place.folder / "d.csv", ["source", "output", "rater", "meaning"], rows)
    done = place.take("d.csv", "--column", "answer=meaning")
    assert "108 ratings of 36 texts by 3 raters" in done.out and "name it with --column system=NAME" in done.out
    assert set(place.ratings()["transformation"]) == {"items"} and len(place.study.kinds) == 1
    assert place.ratings()["fields"].str.contains("original").all()


def test_slots_are_not_persons(place: Workplace) -> None:
    rows = [[original(n), output(n, SYSTEMS[0]), *(answer(n, SYSTEMS[0], r) for r in RATERS)] for n in range(24)]
    write_csv(place.folder / "d.csv", ["source", "output", "rating_1", "rating_2", "rating_3"], rows)
    assert "'rating_1' and 'rating_2' and 'rating_3' with --column by_rater=NAME if each is" in place.refused("d.csv")
    slots = [word for k in (1, 2, 3) for word in ("--column", f"slot=rating_{k}")]
    done = place.take("d.csv", *slots, "--scale", "rating=1..5")
    assert "72 ratings of 24 pairs ->" in done.out and "the number of raters is unknown" in done.out
    assert place.ratings()["rater_id"].str.startswith("unknown-").all() and set(place.ratings()["question"]) == {
        "rating"
    }
    assert values(place, 7, SYSTEMS[0], "rating") == wanted(7, SYSTEMS[0])


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        (["source", "text"], "'text' may be the output or a text by itself"),
        (["text", "output"], "'text' may be the original or a text by itself"),
        (["source", "comment"], "'comment' has a text in each row and may be the rated text or raters' comments"),
    ],
)
def test_a_column_that_fits_two_roles_is_asked_about(place: Workplace, header: list[str], asked: str) -> None:
    rows = [[original(n), output(n, SYSTEMS[0]), r, answer(n, SYSTEMS[0], r)] for n in range(12) for r in RATERS]
    write_csv(place.folder / "d.csv", [*header, "rater", "meaning"], rows)
    assert asked in place.refused("d.csv", "--column", "answer=meaning")
    role, name = ("output", header[1]) if header[0] == "source" else ("original", header[0])
    assert (
        "36 ratings of 12 pairs" in place.take("d.csv", "--column", "answer=meaning", "--column", f"{role}={name}").out
    )


def test_the_number_of_an_answer_is_no_item(place: Workplace) -> None:
    """Three raters of two texts, whose answers are numbered from 0 on: two pairs of three ratings, not six of one."""
    header, texts = ["id", "original", "output", "rater", "rating"], [["A cat.", "Cat."], ["A dog.", "Dog."]]
    rows = [[n, *texts[n // 3], f"r{n % 3}", 1 + n % 5] for n in range(6)]
    write_csv(place.folder / "r.csv", header, rows)
    asked = place.refused("r.csv", "--language", "en")
    assert "--column unused=id" in asked and "--column item=id" in asked
    place.take("r.csv", "--language", "en", "--column", "unused=id")
    assert place.ratings().groupby("pair_id").size().tolist() == [3, 3]
    rows = [[n, *texts[n // 3], "r0", 1 + n % 5] for n in range(6)]  # one rater's: items of the same texts
    write_csv(place.folder / "one.csv", header, rows)
    place.take("one.csv", "--language", "en", "--replace")
    assert place.ratings()["pair_id"].nunique() == 6


@pytest.mark.parametrize("again", [False, True])
def test_the_id_of_a_row_about_all_items_is_its_raters_unless_it_stands_twice(place: Workplace, again: bool) -> None:
    header = ["id", *(f"How clear is it? [In {town}.]" for town in TOWNS)]
    rows = [[7 if again else 7 + n, *(1 + (n + k) % 5 for k in range(len(TOWNS)))] for n in range(3)]
    write_csv(place.folder / "r.csv", header, rows)
    if again:
        assert "item '7' has two texts" in place.refused("r.csv", "--language", "en")
        return
    place.take("r.csv", "--language", "en")
    ratings = place.ratings()
    assert len(ratings) == 3 * len(TOWNS) and ratings["rater_id"].nunique() == 3
    assert ratings["pair_id"].nunique() == len(TOWNS) and not ratings["rater_id"].str.startswith("unknown-").any()


def test_control_tasks_solutions_are_right_answers(place: Workplace) -> None:
    header = ["INPUT:original", "INPUT:paraphrase", "OUTPUT:rating", "GOLDEN:rating", "ASSIGNMENT:worker_id"]
    right = {"Ulm": 5}
    rows = [[f"In {town}.", f"{town} it is.", 3, right.get(town, ""), worker] for town in TOWNS for worker in "ab"]
    write_csv(place.folder / "r.csv", header, rows)
    place.take("r.csv", "--language", "en")
    assert len(place.ratings()) == 2 * len(TOWNS)
    assert pd.read_csv(place.study.folder / "truth.csv")["truth"].tolist() == [5]


def test_a_mark_of_control_tasks_is_no_right_answer(place: Workplace) -> None:
    """CrowdFlower's `_golden` says which tasks are controls, and not what is right."""
    rows = [
        ["true", f"In {town}.", f"{town} it is.", point, worker]
        for town in TOWNS
        for point, worker in ((3, "a"), (4, "b"))
    ]
    write_csv(place.folder / "r.csv", ["_golden", "original", "output", "rating", "_worker_id"], rows)
    assert "unused (its name shows no role): _golden" in place.take("r.csv", "--language", "en").out
    assert not (place.study.folder / "truth.csv").exists()


def test_doccano_has_a_file_for_each_annotator(place: Workplace) -> None:
    for name, shift in (("ada", 0), ("bob", 1)):
        lines = [
            {"id": n, "text": output(n, "neural"), "label": [["good", "bad"][(n + shift * (n % 3 == 0)) % 2]]}
            for n in range(20)
        ]
        lines.append({"id": 20, "text": "nobody labelled this text so far", "label": []})
        (place.folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = place.take("ada.jsonl", "bob.jsonl")
    assert "doccano" in done.out and "40 ratings of 20 texts by 2 raters" in done.out
    assert [reason for _, reason in place.listed] == ["the text has no label"] * 2
    assert b"ada " not in place.everything()


def test_excel(place: Workplace) -> None:
    sheet = [["original", "output", "rater", "quality"]]
    for number, system, rater in triples(10):
        sheet.append([original(number), output(number, system), rater, str(answer(number, system, rater))])
    write_book(place.folder / "ratings.xlsx", sheet)
    assert "60 ratings of 20 texts by 3 raters" in place.take("ratings.xlsx", "--column", "answer=quality").out
    words = ("--study", "texts.yaml", "--column", "text=original", "--language", "en")
    assert "row 5 has a second 'output' for" in place.run("init", "ratings.xlsx", *words).err
    write_book(place.folder / "texts.xlsx", [row[:1] for row in sheet])
    done = place.run("init", "texts.xlsx", *words)
    assert done.status == 0, done.err
    study = load_study(place.folder / "texts.yaml")
    texts = {text.text for dataset in iter_datasets(study) for text in dataset.texts()}
    assert texts == {original(number) for number in range(10)}
    write_book(place.folder / "wide.xlsx", [*sheet[:-1], [*sheet[-1], "a remark"]])
    assert "row 61 has cells to the right of the first row" in place.refused("wide.xlsx", "--replace")


def test_the_column_of_languages_is_used_and_its_names_are_checked(place: Workplace) -> None:
    rows = ["original,output,lang,rater,answer"]
    rows += [f"{n} ok,{n} okay,{code},{rater},4" for n, code in enumerate(["deu", "en-US", "deu"]) for rater in "ab"]
    (place.folder / "r.csv").write_text("\n".join(rows), encoding="utf-8")
    assert "texts: German, English" in place.take("r.csv").out  # too short to be recognised
    study = place.study
    assert {text.language for dataset in iter_datasets(study) for text in dataset.texts()} == {"de", "en"}
    assert set(CampaignRecords(study).collected.pairs["language"]) == {"de", "en"}
    (place.folder / "r.csv").write_text("\n".join(rows).replace("deu", "Germn"), encoding="utf-8")
    assert "r.csv, line 2: language 'Germn' is not known" in place.refused("r.csv", "--replace")


def write_book(path: Path, rows: list[list[str]]) -> None:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def test_lists_in_cells_are_an_answer_each(place: Workplace) -> None:
    marks = ["[4, 5, 3]", "[2. 2. 4.]", "[5, None, 1]", "[1, nan, 2]", "[3 3 5]"]
    rows = [[n, original(n), mark] for n, mark in enumerate(marks)]
    write_csv(place.folder / "d.csv", ["id", "text", "ratings"], rows)
    done = place.take("d.csv", "--language", "en")
    assert "lists in the cells of ratings" in done.out and "the number of raters is unknown" in done.out
    assert sorted(place.ratings()["value"]) == [1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5]
    assert place.listed == [(4, "no answer"), (5, "no answer")]
    lists = [
        [str(["di", "ed", "flo"]), str([str(1 + n % 4), "3", "2"]), str(["so", "la", "la"]), "[0, 1]"] for n in range(4)
    ]
    rows = [[n, original(n), *four] for n, four in enumerate(lists)]
    write_csv(place.folder / "w.csv", ["id", "text", "worker_ids", "clear", "why", "shown"], rows)
    done = place.take("w.csv", "--language", "en", "--replace")
    assert "12 ratings of 4 texts by 3 raters" in done.out and "why, shown" in done.out
    assert set(place.ratings()["question"]) == {"clear"} and place.ratings()["value"].sum() == 10 + 4 * 5
    votes = [str([{"worker": "di", "clear": 1 + n % 3}, {"worker": "ed", "clear": 3}]) for n in range(4)]
    write_csv(place.folder / "v.csv", ["id", "text", "votes"], [[n, original(n), vote] for n, vote in enumerate(votes)])
    assert (
        "8 ratings of 4 texts by 2 raters"
        in place.take("v.csv", "--column", "answer=clear", "--language", "en", "--replace").out
    )


def test_packed_files(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 6)
    content = (place.folder / "ratings.csv").read_bytes()
    (place.folder / "r.csv.gz").write_bytes(gzip.compress(content))
    assert "CSV (commas), 36 rows" in place.take("r.csv.gz", *LONG).out
    with zipfile.ZipFile(place.folder / "r.zip", "w") as packed:
        packed.writestr("batch/one.csv", content)
        packed.writestr("__MACOSX/._one.csv", b"\0")
    assert "72 ratings of 12 pairs by 3 raters" in place.take("r.zip", *LONG, "--replace").out
    with zipfile.ZipFile(place.folder / "d.zip", "w") as packed:
        for name in ("ada", "bob"):
            lines = [{"id": n, "text": output(n, "neural"), "label": [["good", "bad"][n % 2]]} for n in range(6)]
            packed.writestr(f"{name}.jsonl", "\n".join(map(json.dumps, lines)))
    assert "12 ratings of 6 texts by 2 raters" in place.take("d.zip", "--replace").out
    for names in (("a\nrubric: x.csv",), ("a.csv", "/a.csv")):  # a name reaches the study file; equal ones replace
        with zipfile.ZipFile(place.folder / "names.zip", "w") as packed:
            for name in names:
                packed.writestr(name, content)
        assert "two files in it have one name, or a name has control" in place.refused("names.zip", "--replace")
    with zipfile.ZipFile(place.folder / "twice.zip", "w") as packed:
        packed.writestr("one.csv.gz", gzip.compress(content))
    assert "'one.csv.gz' in it is packed again; unpack it first" in place.refused("twice.zip", "--replace")
    (place.folder / "cut.gz").write_bytes(gzip.compress(content)[:-20])
    assert "cut.gz cannot be unpacked" in place.refused("cut.gz", "--replace")
    (place.folder / "bad.csv.gz").write_bytes(gzip.compress(b'a,b\n1,"x\n'))
    assert "bad.csv.gz/bad.csv, lines 2 to 2: cannot be read as CSV" in place.refused("bad.csv.gz", "--replace")

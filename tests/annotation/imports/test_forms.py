"""Each form of a file is recognised by its content, its columns by name or option, and its answers arrive whole."""

from __future__ import annotations

import json

import pytest

from tests.annotation.imports.importing import RATERS, SYSTEMS, Workplace, answer, original, output, triples, write_csv


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
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["original", "output", "rater", "quality"])
    for number, system, rater in triples(10):
        sheet.append([original(number), output(number, system), rater, answer(number, system, rater)])
    book.save(place.folder / "ratings.xlsx")
    assert "60 ratings of 20 pairs by 3 raters" in place.take("ratings.xlsx", "--column", "answer=quality").out

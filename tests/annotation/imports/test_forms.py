"""Each form of a file is recognised by its content, its columns by name or option, and its answers arrive whole."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.annotation.imports.importing import RATERS, SYSTEMS, Workplace, answer, original, output, triples, write_csv


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def values(place: Workplace, number: int, system: str, question: str = "meaning") -> list[int]:
    """The ratings of an item, in order."""
    ratings = place.ratings()
    of_item = ratings["transformed"] == output(number, system)
    of_item |= ratings["fields"].str.contains(output(number, system), regex=False)
    return sorted(ratings[of_item & (ratings["question"] == question)]["value"])


def wanted(number: int, system: str, question: str = "meaning") -> list[int]:
    return sorted(answer(number, system, rater, question) for rater in RATERS)


def test_a_column_for_each_rater(place: Workplace) -> None:
    header = ["model", "src", "hyp", *(f"{q}_{n}" for q in ("fluency", "meaning") for n in (1, 2, 3))]
    rows = [
        [system, original(number), output(number, system),
         *(answer(number, system, rater, q) for q in ("fluency", "meaning") for rater in RATERS)]
        for number, system in itertools.product(range(20), SYSTEMS)
    ]  # fmt: skip
    write_csv(place.folder / "wide.tsv", header, rows, "\t")
    raters = [word for number in range(4, 10) for word in ("--column", f"by_rater=column {number}")]
    done = place.take("wide.tsv", *raters)
    assert "TSV (tabs), 40 rows" in done.out and "240 ratings of 40 pairs by 3 raters" in done.out
    assert values(place, 3, "neural", "fluency") == wanted(3, "neural", "fluency")


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


def test_a_question_a_row_with_texts_in_a_second_file(place: Workplace) -> None:
    rows = [
        [f"s{number}", system, rater, q, answer(number, system, rater, q)]
        for (number, system, rater), q in itertools.product(triples(12), ("fluency", "meaning"))
    ]
    write_csv(place.folder / "ratings.csv", ["sent_id", "system", "worker", "criterion", "score"], rows, ";")
    texts = [
        [f"s{number}", system, original(number), output(number, system)]
        for number, system in itertools.product(range(12), SYSTEMS)
    ]
    write_csv(place.folder / "texts.csv", ["sent_id", "system", "original", "output"], texts)
    done = place.take("ratings.csv", "texts.csv", "--column", "question=criterion")
    assert "144 ratings of 24 pairs by 3 raters" in done.out
    assert values(place, 7, SYSTEMS[0]) == wanted(7, SYSTEMS[0])


ARGILLA_2 = [
    {"id": f"r{n}", "fields": {"original": original(n), "transformed": output(n, "neural")}, "suggestions": {},
     "responses": {"quality": [{"user_id": rater, "status": "submitted", "value": answer(n, "neural", rater)}
                               for rater in RATERS]}}
    for n in range(20)
]  # fmt: skip
ARGILLA_1 = [
    {"id": f"r{n}", "fields": {"original": original(n), "transformed": output(n, "neural")},
     "responses": [{"user_id": rater, "status": "submitted",
                    "values": {"quality": {"value": answer(n, "neural", rater)}}}
                   for rater in RATERS]}
    for n in range(20)
]  # fmt: skip
NESTED = [
    {"article": original(n), "outputs": [{"sentence": output(n, system), "votes": [
        {"worker": rater, "quality": answer(n, system, rater)} for rater in RATERS]} for system in ("neural",)]}
    for n in range(20)
]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "form", "words"),
    [
        (ARGILLA_1, "Argilla", ()),
        (ARGILLA_2, "Argilla", ()),
        (NESTED, "JSON (nested)", ("--column", "output=sentence", "--column", "answer=quality")),
    ],
)
def test_json_of_tools_and_of_anybody(
    place: Workplace, records: list[object], form: str, words: tuple[str, ...]
) -> None:
    (place.folder / "records.json").write_text(json.dumps(records), encoding="utf-8")
    done = place.take("records.json", *words)
    assert form in done.out and "60 ratings of 20 pairs by 3 raters" in done.out
    assert values(place, 11, "neural", "quality") == wanted(11, "neural")


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


def test_potato(place: Workplace) -> None:
    for user in ("ada", "bob"):
        folder = place.folder / user
        folder.mkdir()
        lines = [
            {"id": f"i{n}", "displayed_text": output(n, "neural"), "span_annotations": [],
             "label_annotations": {"tone": {["kind", "rude"][n % 2]: "1"}, "clear": {"scale": str(1 + n % 5)}}}
            for n in range(20)
        ]  # fmt: skip
        (folder / "annotated_instances.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = place.take("ada/annotated_instances.jsonl", "bob/annotated_instances.jsonl")
    assert "Potato" in done.out and "80 ratings of 20 texts by 2 raters" in done.out


def test_excel(place: Workplace) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["original", "output", "rater", "quality"])
    for number, system, rater in triples(10):
        sheet.append([original(number), output(number, system), rater, answer(number, system, rater)])
    book.save(place.folder / "ratings.xlsx")
    assert "60 ratings of 20 pairs by 3 raters" in place.take("ratings.xlsx", "--column", "answer=quality").out

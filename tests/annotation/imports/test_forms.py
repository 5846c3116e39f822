"""Each form of a file is recognised by its content, and its answers arrive whole."""

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
    done = place.take("wide.tsv")
    assert "TSV (tabs), 40 rows" in done.out and "240 ratings of 40 pairs by 3 raters" in done.out
    assert values(place, 3, "neural", "fluency") == wanted(3, "neural", "fluency")


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
    assert "144 ratings of 24 pairs by 3 raters" in place.take("ratings.csv", "texts.csv").out
    assert values(place, 7, SYSTEMS[0]) == wanted(7, SYSTEMS[0])


def test_short_outputs_go_by_their_name_and_ids_in_comments_become_pseudonyms(place: Workplace) -> None:
    rows = [
        [f"The cat number {n} sat on the mat.", f"Cat {n}", f"{rater}@example.org", (n + len(rater)) % 5 + 1,
         f"as {rater}@example.org said."]
        for n in range(12) for rater in ("anna", "bert", "carlos")
    ]  # fmt: skip
    write_csv(place.folder / "ratings.csv", ["original", "output", "rater", "meaning", "comment"], rows)
    place.take("ratings.csv", "--language", "en")
    ratings = place.ratings()
    assert set(ratings["transformed"]) == {f"Cat {n}" for n in range(12)}
    assert (ratings["comment"] == "as " + ratings["rater_id"].astype(str) + " said.").all()


def test_one_id_with_two_texts_is_refused_with_both_rows(place: Workplace) -> None:
    write_csv(
        place.folder / "ratings.csv", ["item", "rater", "score"], [[n, r, n % 5] for n in range(30) for r in "ab"]
    )
    texts = [[number, f"{original(number)}", output(number, "neural")] for number in range(30)]
    write_csv(
        place.folder / "texts.csv", ["item", "original", "output"], [*texts, [4, original(4), output(5, "neural")]]
    )
    line = place.refused("ratings.csv", "texts.csv")
    assert "line 6" in line and "line 32" in line and "has two values of 'output'" in line


def test_amazons_results(place: Workplace) -> None:
    header = ["HITId", "Title", "WorkerId", "AssignmentStatus", "AcceptTime", "SubmitTime", "WorkTimeInSeconds",
              "Input.text1", "Input.text2", "Answer.similarity.label",
              "Answer.odd.spelling", "Answer.odd.grammar"]  # fmt: skip
    words = ("the same", "nearly", "another meaning")
    rows = [
        [f"H{number}", "Compare", rater, "Rejected" if (number, rater) == (0, RATERS[0]) else "Approved",
         "Sun May 17 14:13:33 PDT 2020", f"Sun May 17 15:{number:02d}:34 PDT 2020", 20 + number,
         original(number).replace("old", "old &amp; grey"), output(number, system),
         words[answer(number, system, rater) % 3],
         "true" if number % 2 else "false", "true"]
        for number, system, rater in triples(20) if system == "neural"
    ]  # fmt: skip
    write_csv(place.folder / "batch.csv", header, rows)
    done = place.take("batch.csv")
    for part in ("MTurk's results", "similarity: label", "odd: multi label", "Rejected counts as discarded"):
        assert part in done.out
    ratings = place.ratings()
    assert set(ratings["seconds"]) == set(range(20, 40)) and "&amp;" not in "".join(ratings["original"])
    assert (ratings["status"] == "discarded").sum() == 2 and str(ratings["submitted_at"].min()).startswith(
        "2020-05-17 22:00"
    )
    assert set(ratings[ratings["question"] == "odd"]["answer"]) == {"grammar", "grammar, spelling"}


def test_label_studio(place: Workplace) -> None:
    def annotation(number: int, rater: str, **more: object) -> dict[str, object]:
        results = [
            {"from_name": "same", "type": "choices", "value": {"choices": ["Yes" if number % 2 else "No"]}},
            {
                "from_name": "quality",
                "type": "rating",
                "value": {"rating": answer(number, "neural", rater if rater in RATERS else RATERS[0])},
            },
            {"from_name": "where", "type": "labels", "value": {"start": 0, "end": 3, "labels": ["X"]}},
        ]
        time = f"2024-01-22T14:{number:02d}:57.6Z"
        return {"completed_by": {"email": rater}, "result": results, "created_at": time, "lead_time": 9.5, **more}

    tasks = [
        {"id": number, "data": {"original": original(number), "rewritten": output(number, "neural")},
         "annotations": [annotation(number, rater, was_cancelled=number == 0) for rater in RATERS],
         "drafts": [annotation(number, "di@example.org")] if number == 1 else []}
        for number in range(20)
    ]  # fmt: skip
    (place.folder / "project.json").write_text(json.dumps(tasks), encoding="utf-8")
    assert "Label Studio, 122 rows" in place.take("project.json").out
    assert values(place, 4, "neural", "quality") == wanted(4, "neural")
    counts = place.ratings()["status"].value_counts()
    assert counts["discarded"] == 6 and counts["draft"] == 2 and len(place.listed) == 61
    assert "(it may be a span, a box or a relation)" in place.listed[0][1]


def test_label_studios_rankings_give_each_candidate_its_rank(place: Workplace) -> None:
    candidates = [f"candidate {letter} says what it says" for letter in "abcde"]
    order = {"1": ["2"], "2": ["0", "1"], "3": ["3"], "_": ["4"]}
    tasks = [
        {"id": n, "data": {"source": original(n), "List": [{"id": c, "body": f"{text} {n}"}
                                                          for c, text in enumerate(candidates)]},
         "annotations": [{"completed_by": rater, "created_at": "2024-02-14T10:19:41Z", "result": [
             {"from_name": "rank", "type": "ranker", "value": {"ranker": order}}
         ]} for rater in (7, 8)]}
        for n in range(10)
    ]  # fmt: skip
    (place.folder / "ranks.json").write_text(json.dumps(tasks), encoding="utf-8")
    place.take("ranks.json")
    ratings = place.ratings()
    first = ratings[ratings["fields"].str.contains("candidate c")]
    assert set(first["value"]) == {1} and len(first) == 20 and len(ratings) == 80
    assert place.listed == [(number // 2 + 1, "a candidate is not ranked") for number in range(20)]
    assert "at_most: 2.0" in (place.folder / "studies" / "mine.yaml").read_text(encoding="utf-8")


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
    ("records", "form"), [(ARGILLA_1, "Argilla"), (ARGILLA_2, "Argilla"), (NESTED, "JSON (nested)")]
)
def test_json_of_tools_and_of_anybody(place: Workplace, records: list[object], form: str) -> None:
    (place.folder / "records.json").write_text(json.dumps(records), encoding="utf-8")
    done = place.take("records.json")
    assert form in done.out and "60 ratings of 20 pairs by 3 raters" in done.out
    assert values(place, 11, "neural", "quality") == wanted(11, "neural")


def test_json_lines_are_the_same(place: Workplace) -> None:
    (place.folder / "records.jsonl").write_text("\n".join(map(json.dumps, NESTED)), encoding="utf-8")
    assert "60 ratings of 20 pairs by 3 raters" in place.take("records.jsonl").out


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


def test_answers_by_rater_and_id(place: Workplace) -> None:
    content = {
        rater: {
            f"doc{n}__{m}__{q}": answer(n, SYSTEMS[m], rater, q)
            for n in range(20)
            for m in (0, 1)
            for q in ("rel", "flu")
        }
        for rater in RATERS
    }
    (place.folder / "annotations.json").write_text(json.dumps(content), encoding="utf-8")
    assert "240 ratings of 40 texts by 3 raters" in place.take("annotations.json").out
    assert set(place.ratings()["transformation"]) == {"system-0", "system-1"}


def test_scores_without_raters_count_as_many_peoples(place: Workplace) -> None:
    records = [
        {"id": n, "text": output(n, "neural"), "scores": {"clear": {"human": [1 + n % 5, 3, 5][: 2 + n % 2]}}}
        for n in range(20)
    ]
    (place.folder / "scores.json").write_text(json.dumps({"name": "x", "items": records}), encoding="utf-8")
    done = place.take("scores.json")
    assert "does not name raters" in done.out and "read from 'items'" in done.out
    assert len(place.ratings()) == 50 and place.ratings()["rater_id"].nunique() == 50


def test_a_time_of_a_start_without_an_end_says_why_it_is_one(place: Workplace) -> None:
    rows = [
        [number, system, original(number), output(number, system), rater, answer(number, system, rater, "meaning"),
         f"2026-01-{number % 28 + 1:02} 10:00:00"]
        for number, system, rater in triples(12)
    ]  # fmt: skip
    header = ["item", "system", "original", "output", "worker", "score", "start_time"]
    write_csv(place.folder / "started.csv", header, rows)
    said = place.take("started.csv").out
    assert "its name, and it contains times" in said and "another column has the time" not in said


def test_excel(place: Workplace) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["original", "output", "rater", "quality"])
    for number, system, rater in triples(10):
        sheet.append([original(number), output(number, system), rater, answer(number, system, rater)])
    book.save(place.folder / "ratings.xlsx")
    assert "60 ratings of 20 pairs by 3 raters" in place.take("ratings.xlsx").out

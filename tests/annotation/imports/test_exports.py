"""Exports as tools write them, with the traits that real ones have: every answer arrives, and no rater's id does.

The forms are those of the tools' own documents; the texts and answers are invented.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation import import_ratings
from plumbline.errors import StudyError
from tests.annotation.imports.importing import RATERS, Workplace, original, output

ITEMS = 10
WORKERS = ("A1B2C3D4E5F6G7", "A2ZZTOP9912345", "AX0YY77777K88")
PROLIFIC = ("5f1e2d3c4b5a69788796a5b4", "60aa11bb22cc33dd44ee55ff", "abcdef012345678901234567")
USERS = ("8aaf57d2-cb8e-4673-a7ce-2f684b60adf5", "06f7d4c0-e048-43d2-ab3f-06f147616ac6", "1d1d57d2-cb8e")
WORDS = ("Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree")
EACH = list(itertools.product(range(ITEMS), range(3)))


def hyp(number: int) -> str:
    return output(number, "neural")


def mark(number: int, rater: int) -> int:
    """From 1 to 5; no item has one answer alone, and no rater."""
    return 1 + (number * 7 + 3 * rater + number // 5) % 5


def yes(number: int, rater: int) -> str:
    return ("yes", "no")[mark(number, rater) % 2]


def sheet(header: Sequence[str], rows: Iterable[Sequence[object]], separator: str = ",", **form: Any) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator, **form).writerows([header, *rows])
    return file.getvalue()


def jsonl(records: Iterable[object]) -> str:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records)


def plain(value: Callable[[int, int], object], header: str = "source,output,rater,meaning") -> str:
    """A row an answer."""
    return sheet(header.split(","), [[original(n), hyp(n), RATERS[r], value(n, r)] for n, r in EACH])


@dataclass(frozen=True)
class Export:
    """Files, and what must come of them: the answers to a question, how many there are, what is listed."""

    files: Mapping[str, str | bytes]
    words: tuple[str, ...] = ()
    question: str = "meaning"
    kind: str = "rating, 1"
    answer: Callable[[int, int], Any] = mark
    count: int = 3 * ITEMS
    raters: int = 3
    lost: Mapping[str, int] = field(default_factory=dict)
    unsubmitted: int = 0
    seconds: Callable[[int, int], float] | None = None
    people: tuple[str, ...] = RATERS


def mturk(header: Sequence[str], row: Callable[[int, int], Sequence[object]], hits: int = ITEMS) -> str:
    """A batch as Amazon writes it: rows that nobody reviewed have no cells under Approve and Reject."""
    names = ["HITId", "Title", "Reward", "AssignmentId", "WorkerId", "AssignmentStatus", "AcceptTime", "SubmitTime",
             "RequesterFeedback", "WorkTimeInSeconds", "LifetimeApprovalRate"]  # fmt: skip
    rows = [
        [f"3H{n}", "Compare", "$0.10", f"3A{n}{r}", WORKERS[r], "Approved", f"Mon Mar 04 10:{n:02d}:0{r} PST 2024",
         f"Mon Mar 04 10:{n:02d}:4{r} PST 2024", "", 40 + n + r, "100% (20/20)", *row(n, r), *("x", "")[: 2 * (r > 0)]]
        for n, r in itertools.product(range(hits), range(3))
    ]  # fmt: skip
    return sheet([*names, *header, "Approve", "Reject"], rows, quoting=csv.QUOTE_ALL)


def qualtrics(cell: Callable[[int, int], object], unfinished: int = 3) -> str:
    """A survey with three rows of names; a matrix with an item a row."""
    names = ["StartDate", "EndDate", "Status", "IPAddress", "Progress", "Duration (in seconds)", "Finished",
             "RecordedDate", "ResponseId", "RecipientEmail", "consent"]  # fmt: skip
    questions = [f"How well is it kept? - {hyp(n)}" for n in range(ITEMS)]
    rows = [
        [f"2024-03-0{r + 1} 10:00:00", f"2024-03-0{r + 1} 10:20:00", "IP Address", f"10.0.0.{r}", 100, 1200 + r,
         r != unfinished, f"2024-03-0{r + 1} 10:20:01", f"R_{r}abc", RATERS[r], "Yes",
         *(cell(n, r) for n in range(ITEMS))]
        for r in range(3)
    ]  # fmt: skip
    header = [*names, *(f"Q2_{n}" for n in range(ITEMS))]
    return sheet(header, [[*names, *questions], [f'{{"ImportId":"{name}"}}' for name in header], *rows])


def label_studio(number: int, rater: int) -> dict[str, object]:
    """An annotation of a project's export."""
    results = [{"from_name": "meaning", "type": "rating", "value": {"rating": mark(number, rater)}}]
    return {"completed_by": rater + 1, "result": results, "was_cancelled": (number, rater) == (0, 0), "lead_time": 12.5,
            "ground_truth": False, "created_at": f"2024-01-22T14:{number:02d}:57.651234Z"}  # fmt: skip


def mqm(number: int, rater: int) -> list[list[object]]:
    """The errors that a rater found in a segment."""
    base = ["Online-A", "doc1", number, RATERS[rater], original(number)]
    rows = [[*base, f"<v>{hyp(number)[:5]}</v>{hyp(number)[5:]}", "Fluency/Grammar", "Minor"]]
    rows += [[*base, f"{hyp(number)[:3]}<v>{hyp(number)[3:]}</v>", "Accuracy/Omission", "Major"]] * (
        mark(number, rater) - 2
    )
    return rows if mark(number, rater) > 1 else [[*base, hyp(number), "No-error", "no-error"]]


def judge_bench(values: Callable[[int], list[object]]) -> str:
    """A set as JUDGE-BENCH has it."""
    instances = [
        {"id": n, "instance": hyp(n),
         "annotations": {"meaning": {"majority_human": 1, "individual_human_scores": values(n)}}}
        for n in range(ITEMS)
    ]  # fmt: skip
    about = [{"metric": "meaning", "category": "graded", "prompt": "How {{ x }}?", "worst": 1, "best": 5}]
    return json.dumps({"dataset": "S", "annotations": about, "instances": instances})


MEANING = ("--column", "answer=meaning")
BOTH = (*MEANING, "--column", "answer=odd")
PAIRED = {n: {"source": original(n), "output": hyp(n)} for n in range(ITEMS)}
TEXTS = ["Input.source", "Input.output"]
EXPORTS = {
    "mturk, a column a point": Export(
        {"batch.csv": mturk([*TEXTS, *(f"Answer.meaning.{k}" for k in range(1, 6)), "Answer.feedback", "Answer.age",
                             "Answer.gender", "Answer.userAgent", "Answer.consent.on"], lambda n, r: [
            original(n), hyp(n), *("true" if k == mark(n, r) else "false" for k in range(1, 6)), "ok" * (n == 3),
            50 + r, ("female", "male")[r % 2], f"Mozilla/5.0 ({r})", "true"])},
        people=WORKERS, seconds=lambda n, r: 40 + n + r),
    "mturk, answers as JSON, with consent": Export(
        {"batch.csv": mturk([*TEXTS, "Answer.taskAnswers"], lambda n, r: [original(n), hyp(n), json.dumps(
            [{"meaning": {str(k): k == mark(n, r) for k in range(1, 6)}, "consent": {"on": True}, "why": ""}])])},
        people=WORKERS),
    "mturk, several pairs a HIT": Export(
        {"batch.csv": mturk([f"{w}{k}" for k in range(5) for w in (*TEXTS, "Answer.meaning")], lambda h, r: [
            cell for n in range(5 * h, 5 * h + 5) for cell in (original(n), hyp(n), mark(n, r))], ITEMS // 5)},
        people=WORKERS),
    "prolific's ids, ages and checks in the rows": Export(
        {"study.csv": sheet(["PROLIFIC_PID", "SESSION_ID", "age", "attention_check", "trial", "source", "output",
                             "meaning", "rt_ms"],
                            [[PROLIFIC[r], f"s{r}", 25 + r, "fail" if r else "pass", (n * 3 + r) % ITEMS, original(n),
                              hyp(n), mark(n, r), 5000 + n] for n, r in EACH])},
        people=PROLIFIC, seconds=lambda n, r: 5 + n / 1000, words=(*MEANING, "--column", "seconds=rt_ms")),
    "prolific's list of submissions beside": Export(
        {"r.csv": sheet(["participant_id", "source", "output", "meaning"],
                        [[PROLIFIC[r], original(n), hyp(n), mark(n, r)] for n, r in EACH]),
         "prolific_export.csv": sheet(["Submission id", "Participant id", "Status", "Time taken", "Age"],
                                      [[f"s{r}", PROLIFIC[r], "RETURNED" if r == 2 else "APPROVED", 900, 30]
                                       for r in range(3)])},
        people=PROLIFIC, unsubmitted=ITEMS, words=MEANING),
    "google's grid in words, German times": Export(
        {"form.csv": sheet(["Zeitstempel", "E-Mail-Adresse", *(f"Kept. [{hyp(n)}]" for n in range(ITEMS))],
                           [[f"0{r + 1}.03.2024 14:10:07", RATERS[r], *(WORDS[mark(n, r) - 1] for n in range(ITEMS))]
                            for r in range(3)])}, question="kept",
        words=("--column", "rater=E-Mail-Adresse", "--column", "time=Zeitstempel")),
    "google's grid, all of one mind about an item": Export(
        {"form.csv": sheet(["Timestamp", "Email Address", *(f"Meaning [{hyp(n)}]" for n in range(ITEMS))],
                           [["3/13/2024 2:10 PM", RATERS[r], *(WORDS[mark(n, r * (n > 0)) - 1] for n in range(ITEMS))]
                            for r in range(3)])}, answer=lambda n, r: mark(n, r * (n > 0))),
    "qualtrics, numbers": Export({"survey.csv": qualtrics(mark)}, question="how-well-is-it-kept",
                                 people=(*RATERS, "R_0abc", "10.0.0.1")),
    "qualtrics, words, one unfinished": Export({"survey.csv": qualtrics(lambda n, r: WORDS[mark(n, r) - 1], 2)},
                                               question="how-well-is-it-kept", unsubmitted=ITEMS),
    "qualtrics, one unfinished, no status": Export({"survey.csv": qualtrics(mark, 2).replace("Status", "Channel")},
                                                   question="how-well-is-it-kept", unsubmitted=ITEMS),
    "label studio": Export(
        {"p.json": json.dumps([{"id": n, "annotations": [label_studio(n, r) for r in range(3)], "drafts": [],
                                "predictions": [{"result": []}], "data": PAIRED[n]} for n in range(ITEMS)])},
        unsubmitted=1, seconds=lambda n, r: 12.5),
    "label studio, JSON-MIN": Export(
        {"p.json": json.dumps([{"id": n, **PAIRED[n], "meaning": mark(n, r), "annotator": r + 1,
                                "annotation_id": 9 * n + r, "lead_time": 9,
                                "odd": {"choices": ["a", "b"]} if yes(n, r) == "no" else "a"}
                               for n, r in EACH])}, count=6 * ITEMS, words=BOTH),
    "label studio, CSV": Export(
        {"p.csv": sheet(["annotation_id", "annotator", "id", "lead_time", "meaning", "odd", "output", "source"],
                        [[9 * n + r, RATERS[r], n, 9, mark(n, r),
                          '{"choices": ["a", "b"]}' if yes(n, r) == "no" else "a", hyp(n), original(n)]
                         for n, r in EACH])}, count=6 * ITEMS, words=BOTH),
    "argilla 2, as the Hub has it": Export(
        {"t.jsonl": jsonl({"id": f"r{n}", "status": "completed", **PAIRED[n], "meaning.suggestion": 3,
                           "meaning.responses": [mark(n, r) for r in range(3)], "meaning.responses.users": USERS,
                           "meaning.responses.status": ["submitted", "submitted", "draft" if n == 0 else "submitted"]}
                          for n in range(ITEMS))}, people=USERS, unsubmitted=1),
    "argilla 1, as the Hub has it": Export(
        {"t.jsonl": jsonl({**PAIRED[n], "meaning": {"user_id": USERS, "value": [mark(n, r) for r in range(3)],
                                                    "status": ["submitted" if n else "discarded"] * 3},
                           "meaning-suggestion": None, "external_id": f"e{n}"} for n in range(ITEMS))},
        people=USERS, unsubmitted=3),
    "argilla's records, version 1": Export(
        {"r.json": json.dumps([
            {"id": f"r{n}", "fields": PAIRED[n],
             "responses": [{"user_id": USERS[r], "status": "submitted", "values": {"meaning": {"value": mark(n, r)}}}
                           for r in range(3)]} for n in range(ITEMS)])}, people=USERS),
    "argilla's records, version 2": Export(
        {"r.json": json.dumps([
            {"id": f"r{n}", "fields": PAIRED[n], "suggestions": {},
             "responses": {"meaning": [{"user_id": USERS[r], "status": "submitted", "value": mark(n, r)}
                                       for r in range(3)]}} for n in range(ITEMS)])}, people=USERS),
    "lists of outputs and votes in JSON": Export(
        {"r.json": json.dumps([
            {"article": original(n), "outputs": [{"sentence": hyp(n), "votes": [
                {"worker": RATERS[r], "meaning": mark(n, r)} for r in range(3)]}]} for n in range(ITEMS)])},
        words=(*MEANING, "--column", "output=sentence")),
    "potato's instances, a folder a person": Export(
        {f"{name}/i.jsonl": jsonl({"id": f"i{n}", "displayed_text": hyp(n), "span_annotations": [],
                                   "label_annotations": {"odd": {yes(n, r): "1"},
                                                         "meaning": {f"scale_{mark(n, r)}": str(mark(n, r))}}}
                                  for n in range(ITEMS)) for r, name in enumerate(("ada", "bob", "cleo"))},
        count=6 * ITEMS, people=()),
    "a question a row, texts in a second file": Export(
        {"r.csv": sheet(["sent_id", "system", "worker", "criterion", "score"],
                        [[f"s{n}", "neural", RATERS[r], q, mark(n, r + (q == "tone"))]
                         for n, r in EACH for q in ("meaning", "tone")], ";"),
         "t.csv": sheet(["sent_id", "system", "original", "output"],
                        [[f"s{n}", "neural", original(n), hyp(n)] for n in range(ITEMS)])},
        count=6 * ITEMS, words=("--column", "question=criterion")),
    "doccano, labels and users by number": Export(
        {"all.jsonl": jsonl({"id": n, "text": hyp(n), "annotations": [{"label": 1 + mark(n, r) % 2, "user": r + 1}
                                                                     for r in range(3)]} for n in range(ITEMS))},
        question="label", kind="label", answer=lambda n, r: f"label-{1 + mark(n, r) % 2}"),
    "potato's table": Export(
        {"a.tsv": sheet(["user", "instance_id", "displayed_text", *(f"meaning:::scale_{k}" for k in range(1, 6))],
                        [[RATERS[r], f"i{n}", hyp(n), *(k if k == mark(n, r) else "" for k in range(1, 6))]
                         for n, r in EACH], "\t")}),
    "prodigy": Export(
        {"c.jsonl": jsonl({"text": hyp(n), "_input_hash": -n, "_task_hash": n, "accept": [yes(n, r)],
                           "options": [{"id": "yes", "text": "It is"}, {"id": "no", "text": "It is not"}],
                           "answer": "ignore" if (n, r) == (1, 1) else "accept", "_timestamp": 1707830400 + 10 * n + r,
                           "_annotator_id": RATERS[r], "_session_id": f"c-{RATERS[r]}"} for n, r in EACH)},
        question="choice", kind="label", unsubmitted=1,
        answer=lambda n, r: {"yes": "it-is", "no": "it-is-not"}[yes(n, r)]),
    "crowd-kit with its truth": Export(
        {"crowd.csv": sheet(["task", "worker", "label"], [[hyp(n), WORKERS[r], yes(n, r)] for n, r in EACH]),
         "gt.csv": sheet(["task", "label"], [[hyp(n), "yes"] for n in range(ITEMS)])},
        question="label", kind="label, yes, no", answer=yes, people=WORKERS, words=("--column", "truth=gt.csv:label")),
    "judge-bench, graded": Export({"s.json": judge_bench(lambda n: [mark(n, r) for r in range(3)])}, raters=3 * ITEMS,
        words=("--column", "text=instance")),
    "judge-bench, words": Export({"s.json": judge_bench(lambda n: [yes(n, r) for r in range(3)])}, raters=3 * ITEMS,
                                 kind="label, yes, no", answer=yes, words=("--column", "text=instance")),
    "wmt's MQM": Export(
        {"mqm.tsv": sheet(["system", "doc", "seg_id", "rater", "source", "target", "category", "severity"],
                          [row for n, r in EACH for row in mqm(n, r)], "\t")},
        question="mqm", kind="rating, 0 to 25", answer=lambda n, r: (0, 1, 6, 11, 16)[mark(n, r) - 1]),
    "sts, with a lone quotation mark": Export(
        {"sts.tsv": sheet(["split", "idx", "score", "sentence1", "sentence2"],
                          [["dev", n, mark(n, 0) + 0.25, "~" * (n == 4) + original(n), hyp(n)]
                           for n in range(ITEMS)],
                          "\t").replace("~", '"')},
        question="score", kind="rating, 1", answer=lambda n, r: mark(n, 0) + 0.25,
        count=ITEMS, raters=ITEMS, people=()),
    "german names, decimal commas": Export(
        {"d.csv": b"\xef\xbb\xbf" + sheet(
            ["Quelle", "Ausgabe", "Bewerter", "Bewertung", "Anmerkung"],
            [[original(n), hyp(n), ("Änne", "Bob Strauß", "Cy")[r], f"{mark(n, r)},5".replace("5,5", "5,0"), "gut; ja"]
             for n, r in EACH], ";").encode()},
        question="bewertung", kind="rating, 1 to 5, 9", answer=lambda n, r: min(mark(n, r) + 0.5, 5),
        people=("Änne", "Strauß"),
        words=("--column", "original=Quelle", "--column", "output=Ausgabe",
                "--column", "rater=Bewerter", "--column", "answer=Bewertung")),
    "who rated is in a column of another name": Export({"d.csv": plain(mark, "source,output,Kürzel,meaning")},
        words=(*MEANING, "--column", "rater=Kürzel")),
    "a column a person": Export(
        {"w.csv": sheet(["id", "source", "output", "anna", "ben", "cleo"],
                        [[n, original(n), hyp(n), *(mark(n, r) for r in range(3))] for n in range(ITEMS)])},
        ("--column", "by_rater=column 4", "--column", "by_rater=column 5", "--column", "by_rater=column 6"),
        question="rating", people=("anna", "ben", "cleo")),
    "a question and a number for each person, in TSV": Export(
        {"w.tsv": sheet(["src", "hyp", *(f"{q}_{r}" for q in ("meaning", "tone") for r in (1, 2, 3))],
                        [[original(n), hyp(n), *(mark(n, r + q) for q in (0, 1) for r in range(3))]
                         for n in range(ITEMS)], "\t")}, count=6 * ITEMS,
        words=tuple(word for k in range(3, 9) for word in ("--column", f"by_rater=column {k}"))),
    "a letter and a number for each person": Export(
        {"w.csv": sheet(["id", "source", "output", *(f"A{r}_{q}" for r in (1, 2, 3) for q in ("meaning", "tone"))],
                        [[n, original(n), hyp(n), *(mark(n, r + q) for r in range(3) for q in (0, 1))]
                         for n in range(ITEMS)])}, count=6 * ITEMS,
        words=tuple(word for k in range(4, 10) for word in ("--column", f"by_rater=column {k}"))),
    "a file a person": Export(
        {f"{name}.csv": sheet(["id", "source", "output", "meaning"],
                              [[n, original(n), hyp(n), mark(n, r)] for n in range(ITEMS)])
         for r, name in enumerate("xyz")}, (*MEANING, "--raters-per-file"), people=()),
    "many n/a": Export({"d.csv": plain(lambda n, r: mark(n, r) if n % 4 else "Not applicable")}, count=21,
                       answer=lambda n, r: mark(n, r) if n % 4 else None, lost={"no answer": 9}, words=MEANING),
    "numbers with words": Export({"d.csv": plain(lambda n, r: f"{mark(n, r)}{('/5', ' – ok')[n % 2]}")}, words=MEANING),
    "numbers that equal words": Export({"d.csv": plain(lambda n, r: f"{mark(n, r)} = {'abcde'[mark(n, r) - 1]}")},
                                       words=MEANING),
    "own words": Export({"d.csv": plain(lambda n, r: ("mau", "fraco", "assim", "bom", "lindo")[mark(n, r) - 1])},
                        (*MEANING, "--scale", "meaning=mau<fraco<assim<bom<lindo")),
    "words of a scale, two of which are one point of another": Export(
        {"d.csv": plain(lambda n, r: ("Poor", "Fair", "Good", "Very good", "Excellent")[mark(n, r) - 1])},
        words=MEANING),
    "words for speech": Export(
        {"d.csv": plain(lambda n, r: ("bad", "poor", "fair", "good", "excellent")[mark(n, r) - 1])}, words=MEANING),
    "checkboxes": Export(
        {"d.csv": plain(lambda n, r: ("Style", "Tone", "Style;Tone", "No fault", "Style")[mark(n, r) - 1])},
        kind="multi label", answer=lambda n, r: ("style", "tone", "style, tone", "no-fault", "style")[mark(n, r) - 1],
        words=MEANING),
    "batches that repeat, their question under two spellings": Export(
        {"a.csv": plain(mark, "source,output,rater,Rating"),
         "b.csv": plain(mark, "source,output,rater,rating").replace("ada@", "ADA@")},
        question="rating", lost={"the same": 30}),
    "by people's addresses in JSON": Export(
        {"d.json": json.dumps([{"id": n, **PAIRED[n], "ratings": {RATERS[r]: mark(n, r) for r in range(3)}}
                               for n in range(ITEMS)])}, question="rating"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_comes_in_whole(place: Workplace, name: str) -> None:
    export = EXPORTS[name]
    for file, content in export.files.items():
        (place.folder / file).parent.mkdir(exist_ok=True)
        (place.folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    done = place.take(*export.files, *export.words, "--language", "en")
    ratings = place.ratings()
    assert len(ratings) == export.count and ratings["rater_id"].nunique() == export.raters
    assert f"question {export.question}: {export.kind}" in done.out
    answered = ratings[ratings["question"] == export.question].fillna({"value": -99.0})
    column = "value" if export.kind.startswith("rating") else "answer"
    for number in range(ITEMS):
        shown = answered["transformed"] + answered["fields"].str.replace("\\/", "/", regex=False)
        of_item = answered[shown.str.contains(hyp(number), regex=False)][column]
        wanted = [export.answer(number, rater) for rater in range(len(of_item) or 3)]
        assert sorted(of_item) == pytest.approx(sorted(answer for answer in wanted if answer is not None)), number
    for reason, times in export.lost.items():
        assert sum(reason in text for _, text in place.listed) == times
    assert len(place.listed) == sum(export.lost.values())
    assert (ratings["status"] != "submitted").sum() == export.unsubmitted
    if export.seconds:
        assert sorted(answered["seconds"]) == pytest.approx(sorted(export.seconds(n, r) for n, r in EACH))
    for person in export.people:
        assert person not in done.out + done.err and person.encode() not in place.everything()


def test_a_frame_becomes_a_study_with_the_same_answers(tmp_path: Path) -> None:
    rows = [[original(n), hyp(n), RATERS[r], float(mark(n, r)), pd.Timestamp("2024-03-01", tz="UTC")] for n, r in EACH]
    frame = pd.DataFrame(rows, columns=["source", "output", "rater", "meaning", "time"]).astype({"rater": "category"})
    frame.loc[0, "meaning"] = None
    exports, home = str(tmp_path / "exports"), tmp_path / "home"
    columns = {"meaning": "answer"}
    study = import_ratings(
        frame, tmp_path / "s.yaml", columns=columns, scales={"meaning": "5..1"}, exports=exports, home=home
    )
    ratings = pd.read_parquet(study.folder / "ratings.parquet")
    assert sorted(ratings["value"]) == sorted(mark(n, r) for n, r in EACH[1:])
    assert "at_most: 3" in (tmp_path / "s.yaml").read_text(encoding="utf-8")
    with pytest.raises(StudyError, match="has records already"):
        import_ratings(frame, tmp_path / "s.yaml", exports=exports, home=home)

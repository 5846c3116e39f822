"""Result CSVs of the MTurk site: our own form's and those of a template of the site."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from annotation.campaign.rubric import load_rubric
from annotation.crowd.mturk.form import COLUMNS, Archived, read_archive
from plumbline.errors import DataError
from plumbline.study import Study

PAIRS = dict.fromkeys(("p0", "p1", "p2"), "paraphrasing")  # pools by pair
ROW = {
    "HITId": "3HIT", "HITTypeId": "3TYPE", "Title": "Rate, please", "AssignmentId": "3A1", "WorkerId": "AW1",
    "AssignmentStatus": "Approved", "SubmitTime": "Mon Jan 12 14:21:29 PST 2015", "WorkTimeInSeconds": "412",
}  # fmt: skip
OWN = {
    "Answer.study": "old", "Answer.batch": "b1", "Answer.p0.quality": "4", "Answer.p0.fluency": "5",
    "Answer.p0.comment": "fine,\n\"really\"", "Answer.p0.seconds": "12.5",
}  # fmt: skip


Read = Callable[[Path], list[Archived]]


@pytest.fixture
def read(variant: Callable[..., Study]) -> Read:
    study = variant(name="old", crowd={})
    return lambda path: read_archive(path, study.name, load_rubric(study), PAIRS)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def writes(*rows: Mapping[str, str]) -> Path:
        path = tmp_path / "Batch_1_batch_results.csv"
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return writes


def test_our_own_form(read: Read, write: Callable[..., Path]) -> None:
    """Two HITs in one file: each row has its own answers, the columns of the other are empty."""
    other = {"Answer.study": "old", "Answer.batch": "b2", "Answer.p1.quality": "1", "Answer.p1.discarded": "yes"}
    path = write(ROW | OWN, ROW | {"AssignmentId": "3A2", "WorkerId": "AW2", "AssignmentStatus": "Rejected"} | other)
    (first, answers), (second, discarded) = read(path)
    # 14:21:29 in Seattle's winter is 22:21:29 UTC.
    assert first.submitted_at == datetime(2015, 1, 12, 22, 21, 29, tzinfo=UTC)
    assert (first.submission_id, first.posted_id, first.worker, first.state) == ("3A1", "3HIT", "AW1", "approved")
    assert first.seconds == 412
    (one,) = answers
    assert (one.pair_id, dict(one.values), one.comment, one.seconds, one.submitted_at) == (
        "p0", {"quality": 4, "fluency": 5}, 'fine,\n"really"', 12.5, "2015-01-12T22:21:29+00:00",
    )  # fmt: skip
    assert (second.worker, second.state) == ("AW2", "rejected")
    assert [(one.pair_id, dict(one.values), one.status) for one in discarded] == [
        ("p1", {"quality": 1, "fluency": None}, "discarded")
    ]


def test_a_template_of_the_site(read: Read, write: Callable[..., Path]) -> None:
    """Numbered pairs, with values or with the site's radio buttons, one column a point."""
    site = {
        "Input.pair_id_1": "p2", "Input.original_1": "text", "Input.pair_id_2": "p0", "Answer.quality_1": "3",
        "Answer.fluency_1": "2", "Answer.comment_1": "odd", "Answer.quality_2.4": "true", "Answer.quality_2.5": "false",
        "Answer.fluency_2.1": "true",
    }  # fmt: skip
    ((_, answers),) = read(write(ROW | site))
    assert [(one.pair_id, dict(one.values), one.comment) for one in answers] == [
        ("p2", {"quality": 3, "fluency": 2}, "odd"),
        ("p0", {"quality": 4, "fluency": 1}, ""),
    ]
    assert all(math.isnan(one.seconds) for one in answers)


def test_one_pair_a_hit(read: Read, write: Callable[..., Path]) -> None:
    site = {"Input.pair_id": "p1", "Answer.quality": "3", "Answer.fluency": "2"}
    summer = {"SubmitTime": "Tue Jul 07 01:02:03 PDT 2026"}
    (((submission, (one,))),) = read(write(ROW | summer | site))
    assert submission.submitted_at == datetime(2026, 7, 7, 8, 2, 3, tzinfo=UTC)
    assert (one.pair_id, dict(one.values)) == ("p1", {"quality": 3, "fluency": 2})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"Answer.p0.quality": "6"}, "line 3: pair p0, quality: the answer 6 is not on the scale 1 to 5"),
        ({"Answer.p0.quality": ""}, "line 3: pair p0 has no answer to 'quality'"),
        ({"Answer.study": "new"}, "line 3: the answers are for study 'new', not for 'old'"),
        ({"Answer.p7.quality": "3"}, "line 3: pair 'p7' is not in this study's sample"),
        ({"Answer.p0.mood": "3"}, "line 3: answers 'p0.mood', which was not asked"),
        ({"Answer.batch": ""}, "line 3: names no pair"),
        ({"AssignmentStatus": "Lost"}, "line 3: AssignmentStatus 'Lost'"),
        ({"SubmitTime": "yesterday"}, "line 3: SubmitTime 'yesterday' is not a time in the MTurk site's format"),
        ({"SubmitTime": "Mon Jan 12 14:21:29 XYZ 2015"}, "is not a time in the MTurk site's format"),
        ({"WorkTimeInSeconds": "long"}, "line 3: WorkTimeInSeconds 'long' is not a number"),
        ({"WorkerId": "=HYPERLINK()"}, "line 3: WorkerId is not an MTurk id"),
    ],
)  # line 3: the comment's line break makes the first row two lines long
def test_bad_rows(read: Read, write: Callable[..., Path], change: dict[str, str], complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        read(write(ROW | OWN | change))
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(write(ROW)))


def test_bad_files(read: Read, write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(ROW | OWN, ROW | OWN)
    with pytest.raises(DataError, match="line 5: assignment 3A1 appears twice"):
        read(path)
    for name in COLUMNS:
        with pytest.raises(DataError, match=f"line 1: no column '{name}'"):
            read(write({key: text for key, text in (ROW | OWN).items() if key != name}))
    path = write(ROW | OWN)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b",")])
    with pytest.raises(DataError, match="more or fewer cells than the header"):
        read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read(path)
    with pytest.raises(DataError, match="cannot be read as a CSV"):
        read(write(ROW | OWN | {"Answer.p0.comment": "x" * 1_000_000}))
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "none.csv")

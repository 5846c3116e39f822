"""Answers from files that cannot be ratings of the study, a row each: which line, and what is wrong in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .ground import COLUMNS, Bad, Place, instead

E = "--study {s} --exports {e}"
COLLECT = f"collect {E} --csv {{p}}/answers.csv --columns {COLUMNS}"
HEAD = "Pair,Who,Q,F,When\n"
#: The second line of the file, {0} being a pair's id.
LINES: tuple[tuple[str, str, str], ...] = (
    ("a pair of no study", "nope,dora,3,4,2026-03-01T10:00:00", "line 2: pair 'nope'"),
    ("nobody", "{0},,3,4,2026-03-01T10:00:00", "line 2: the column for `rater` is empty"),
    ("a decimal comma", "{0},dora,3,5,4,2026-03-01T10:00:00", "line 2: 6 cells, but the header has 5"),
    ("a decimal number", "{0},dora,3.5,4,2026-03-01T10:00:00", "line 2, quality: the answer 3.5 is not on the scale"),
    ("a word", "{0},dora,good,4,2026-03-01T10:00:00", "line 2, quality: the answer 'good' is not on the scale"),
    ("400 digits", f"{{0}},dora,{'9' * 400},4,2026-03-01T10:00:00", "line 2, quality: the answer '999"),
    ("24 o'clock", "{0},dora,3,4,2026-03-01T24:00:00", "line 2: the time '2026-03-01T24:00:00' is not ISO 8601"),
    ("13 PM", "{0},dora,3,4,2026/03/01 13:00:00 PM GMT+1", "line 2: the time '2026/03/01 13:00:00 PM GMT+1' is not"),
    ("a zone of 99 hours", "{0},dora,3,4,2026/03/01 10:00:00 AM GMT+99", "line 2: the time '2026/03/01 10:00:00 AM"),
    ("off the scale", "{0},dora,6,4,2026-03-01T10:00:00", "line 2, quality: the answer 6 is not on the scale 1 to 5"),
    ("no answer", "{0},dora,,4,2026-03-01T10:00:00", "line 2: the submitted answer lacks 'quality'"),
    ("the year 1500", "{0},dora,3,4,1500-01-01T10:00:00", "line 2: the answer dates from 1500-01-01T10:00:00+00:00, "),
    ("the first hour, in a zone", "{0},dora,3,4,0001-01-01T00:00:00+14:00", "line 2: the time '0001-01-01T00:00:00+14"),
    ("the year 9999", "{0},dora,3,4,9999-12-31T23:59:59", "which is in the future"),
    ("the same twice", "{0},dora,3,4,2026-03-01T10:00:00\n{0},dora,3,4,2026-03-02T10:00:00", "line 3: the same rater"),
    ("the same in capitals", "{0},dora,3,4,2026-03-01T10:00:00\n{0},DORA,3,4,2026-03-02T10:00:00", "line 3: the same"),
    ("a null", "{0},do\0ra,3,4,2026-03-01T10:00:00", "contains a null character"),
)  # fmt: skip
FILES: tuple[tuple[str, bytes, str], ...] = (
    ("empty", b"", "is empty; export it again"),
    ("only a header", HEAD.encode(), "no rows in it, only a header"),
    ("a column twice", b"Pair,Who,Q,F,When,Q\n", "two columns are called 'Q'"),
    ("a column missing", b"Pair,Who,Q,When\na,dora,3,x\n", "has no column 'F'; its columns are: Pair, Who, Q, When"),
    ("latin-1", HEAD.encode() + b"a,Andr\xe9,3,4,x\n", "line 2: the time 'x' is not ISO 8601"),
    ("UTF-16", HEAD.encode("utf-16"), "no rows in it, only a header"),
    ("Excel's own", b"PK\x03\x04\xff\x00", "contains a null character"),
)
PLACES: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("nothing", lambda file: None, "cannot be read: No such file or directory"),
    ("a folder", lambda file: file.mkdir(), "is a folder, not a file"),
    ("a pipe", os.mkfifo, "is not an ordinary file"),
    ("a link to itself", lambda file: file.symlink_to(file.name), "Too many levels of symbolic links"),
)
MAPPINGS: tuple[tuple[str, str], ...] = (
    ("pair=Pair", "no column is given for 'rater'; add rater=NAME"),
    ("pairs=Pair", "'pairs=Pair' is not like pair=NAME; did you mean 'pair'"),
    ("pair=Pair,rater=Who,quality=Q,fluency=Q", "the column 'Q' is given twice; each name needs its own column"),
    ("pair=Pair,pair=Who,rater=Who,quality=Q,fluency=F", "'pair' is given twice"),
    ("nonsense", "'nonsense' is not like pair=NAME"),
    ("pair=", "'pair=' is not like pair=NAME"),
)
SITE = (
    "HITId,AssignmentId,WorkerId,AssignmentStatus,SubmitTime,WorkTimeInSeconds,"
    "Input.pair_id,Answer.quality,Answer.fluency"
)
ARCHIVES: tuple[tuple[str, str, str], ...] = (
    ("no columns", "a,b\n1,2\n", "line 1: no column 'HITId'"),
    ("a column twice", f"{SITE},HITId\n", "column 'HITId' appears twice"),
    ("a row too long", f"{SITE}\nH,A,W,Approved,2026-01-01,9,p,3,4,5\n", "line 2: the row has more or fewer cells"),
    ("a row too short", f"{SITE}\nH,A,W,Approved\n", "line 2: the row has more or fewer cells than the header;"),
    ("a time at the end", f"{SITE}\nH,A,W,Approved,9999-12-31T23:59:59-12:00,9,p,3,4\n",
     "is not a time in the MTurk site's format"),
    ("a time in words", f"{SITE}\nH,A,W,Approved,soon,9,p,3,4\n", "line 2: SubmitTime 'soon' is not a time in"),
    ("an endless time of work", f"{SITE}\nH,A,W,Approved,2026-01-01,inf,p,3,4\n",
     "WorkTimeInSeconds 'inf' is not a number"),
    ("a negative time of work", f"{SITE}\nH,A,W,Approved,2026-01-01,-9,p,3,4\n", "'-9' is not a number"),
    ("a state", f"{SITE}\nH,A,W,Paid,2026-01-01,9,p,3,4\n", "line 2: AssignmentStatus 'Paid' is unknown; known: "),
    ("an id", f"{SITE}\nH,A,=W(),Approved,2026-01-01,9,p,3,4\n", "line 2: WorkerId is not an MTurk id"),
    ("a pair", f"{SITE}\nH,A,W,Approved,2026-01-01,9,p,3,4\n", "line 2: pair 'p' is not in this study's sample"),
)  # fmt: skip


def _lines(text: str) -> Callable[[Place], None]:
    def spoil(place: Place) -> None:
        pair = place.csv.read_text(encoding="utf-8").split("\n")[1].split(",")[0]
        place.csv.write_text(HEAD + text.replace("{0}", pair) + "\n", encoding="utf-8")

    return spoil


def rows() -> Iterator[Bad]:
    for name, text, says in LINES:
        yield Bad(f"line: {name}", COLLECT, _lines(text), ("answers.csv", says))
    for name, content, says in FILES:
        yield Bad(
            f"file: {name}", COLLECT, lambda place, c=content: place.csv.write_bytes(c) and None, ("answers.csv", says)
        )  # type: ignore[misc]
    for name, make, says in PLACES:
        yield Bad(f"place: {name}", COLLECT, instead(lambda place: place.csv, make), ("answers.csv", says))
    for mapping, says in MAPPINGS:
        words = f"collect {E} --csv {{p}}/answers.csv --columns {mapping}"
        yield Bad(f"mapping: {mapping}", words, lambda place: None, ("--columns: ", says))
    for name, text, says in ARCHIVES:
        words = f"collect {E} --archive {{p}}/answers.csv"
        yield Bad(f"archive: {name}", words, lambda place, t=text: place.csv.write_text(t) and None, (says,))  # type: ignore[misc]
    yield Bad("--csv alone", f"collect {E} --csv {{p}}/answers.csv", lambda place: None, ("go together",))
    yield Bad("fewer", COLLECT, _fewer, ("2 ratings that were collected before", "add --replace to drop them"))


def _fewer(place: Place) -> None:
    """One rater less than collected before, of one pair and a half."""
    lines = place.csv.read_text(encoding="utf-8").splitlines()
    place.csv.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("bad", tuple(rows()), ids=lambda bad: bad.name)
def test_answers_that_are_none_are_one_line(bad: Bad, assert_refused: Callable[[Bad], None]) -> None:
    assert_refused(bad)

"""What is wrong with a file is a clear line, or a listed row with its reason; nothing is lost."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from annotation.imports.files import read_json
from annotation.imports.tables import read_csv
from annotation.imports.times import as_seconds, as_times
from annotation.questions.wordings import packaged
from plumbline.reading import encoding_of
from plumbline.resources import ROOT
from tests.annotation.imports.importing import (
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

HEADER = ["original", "output", "rater", "meaning"]
MEANING = ("--column", "answer=meaning")


def rows() -> list[list[object]]:
    return [
        [original(number), output(number, system), rater, answer(number, system, rater)]
        for number, system, rater in triples(20)
        if system == "neural"
    ]


def test_lines_of_a_files_name_are_no_lines_of_the_study(place: Workplace) -> None:
    name = "ratings\nlanguage: de\n#.csv"
    write_csv(place.folder / name, HEADER, rows())
    place.take(name, *MEANING)
    assert len(place.ratings()) == 60
    written = [place.folder / "studies" / file for file in ("mine.yaml", "mine/columns.yaml")]
    assert all("ratings language: de #.csv" in file.read_text(encoding="utf-8").split("\n")[0] for file in written)


def test_a_mark_of_byte_order_is_no_letter_of_the_first_name(place: Workplace) -> None:
    write_csv(place.folder / "ratings.csv", HEADER, rows())
    text = (place.folder / "ratings.csv").read_text(encoding="utf-8")
    (place.folder / "ratings.csv").write_text(text, encoding="utf-8-sig")
    place.take("ratings.csv", *MEANING)
    assert len(place.ratings()) == 60


def test_rows_with_other_separators_answers_off_the_scale_and_repeats_are_listed(place: Workplace) -> None:
    write_csv(place.folder / "ratings.csv", HEADER, rows())
    with (place.folder / "ratings.csv").open("a", encoding="utf-8") as file:
        file.write("an original;an output;ada;3\n")  # line 62
        file.write(f"{original(30)},{output(30, 'neural')},{RATERS[0]},3\n")  # the output's comma makes five cells
        file.write(f'{original(0)},"{output(0, "neural")}",ADA@example.org ,{answer(0, "neural", RATERS[0])}\n')
        file.write(f'{original(1)},"{output(1, "neural")}",{RATERS[0]},{1 + answer(1, "neural", RATERS[0]) % 5}\n')
        file.write(f'{original(2)},"{output(2, "neural")}",di,99\n{original(3)},"{output(3, "neural")}",di,"=1+2"\n')
        file.write(f'{original(4)},"{output(4, "neural")}",di,\n{original(5)},"{output(5, "neural")}",,4\n')
        file.write(
            f'{original(6)},"{output(6, "neural")}",di,four\n{original(7)},"{output(7, "neural")}",di,4 - good\n'
        )
    place.take("ratings.csv", *MEANING, "--scale", "meaning=1..5")
    reasons = dict(place.listed)
    assert set(reasons) == {62, 63, 64, 65, 66, 67, 68, 69}
    for line, part in {
        62: "check whether semicolons separate the cells", 63: "5 cells", 64: "the same answer of the same rater",
        65: "another answer of the same rater", 66: "99 is outside the scale 1 to 5", 67: "is not a point of the scale",
        68: "no answer", 69: "no rater",
    }.items():  # fmt: skip
        assert part in reasons[line]
    assert len(place.ratings()) == 62


def test_every_row_is_imported_or_listed(place: Workplace) -> None:
    """Quotation marks of a TSV that join rows, or are part of a text."""
    outputs = ["plain", '"opens', 'an inch: 5"', '"quoted" at first', '"opens again', 'plain "within"'] * 3
    lines = [f"{original(n)}\t{output}\tdi\t{1 + n % 5}\n" for n, output in enumerate(outputs)]
    text = "\t".join(HEADER) + "\n" + "".join(lines) + "too\tfew\tcells\n"
    (place.folder / "ratings.tsv").write_text(text, encoding="utf-8")
    place.take("ratings.tsv", *MEANING, "--language", "en")
    assert sorted(place.ratings()["transformed"]) == sorted(outputs)
    assert place.listed == [(20, "no answer")]
    cells = [[n, "a" if n % 2 else 'two\nlines, "so"', "di", n] for n in range(3)]
    write_csv(place.folder / "quoted.csv", HEADER, cells)
    with (place.folder / "quoted.csv").open("a", encoding="utf-8") as file:
        file.write('4,"opens,di,4\n5,"opens,di,5\n')
    assert "lines 7 to 8: cannot be read as CSV" in place.refused("quoted.csv", *MEANING, "--replace")
    texts = [[n, "" if n == 3 else original(n), "di", 1 + n % 5] for n in range(6)]
    write_csv(place.folder / "empty.csv", ["id", "text", "rater", "rating"], texts)
    place.take("empty.csv", "--language", "en", "--replace")
    assert len(place.ratings()) == 5 and place.listed == [(5, "no text")]
    records = [{"text": original(n), "label": ["a"], "reviews": [{"fluency": 4}]} for n in range(3)]
    (place.folder / "d.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    place.take("d.jsonl", "--language", "en", "--replace")
    assert place.listed == [(line, "a list beside the labels is not read") for line in (1, 2, 3)]
    records = [{"text": original(n), "_task_hash": n, "answer": "accept", "score": 1 + n} for n in range(5)]
    (place.folder / "p.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert "Prodigy): answer" in place.take("p.jsonl", "--language", "en", "--replace").out
    assert sorted(place.ratings()["value"]) == [1, 2, 3, 4, 5]
    write_csv(place.folder / "r.csv", ["participant_id", "text", "rating"], [["p", original(n), n] for n in range(5)])
    work = [["s1", "p", "RETURNED", 9], ["s2", "p", "APPROVED", 9]]
    write_csv(place.folder / "work.csv", ["Submission id", "Participant id", "Status", "Time taken"], work)
    done = place.take("r.csv", "work.csv", "--language", "en", "--replace")
    assert "1 rater has submissions that count and others that do not" in done.out
    assert set(place.ratings()["status"]) == {"submitted"}


def test_doubtful_columns_and_records_are_refused(place: Workplace) -> None:
    write_csv(
        place.folder / "alone.csv",
        ["original", "short form", "rater", "rating"],
        [["a", "b", "di", 1], ["c", "d", "di", 2]],
    )
    asked = "no column holds the text that was rated; name it with --column output=NAME, or with --column text=original"
    assert asked in place.refused("alone.csv", "--language", "en")
    write_csv(place.folder / "two.csv", ["text", "rater", "rating", "score"], [["a", "di", 1, 2]])
    assert "'rating' and 'score' may all be answers" in place.refused("two.csv")
    write_csv(place.folder / "wide.csv", ["text", "fluency_1", "fluency_2", "meaning_1"], [["a", 1, 2, 3]])
    by_rater = [word for number in (2, 3, 4) for word in ("--column", f"by_rater=column {number}")]
    assert "the name of column 4 shows no question and rater" in place.refused("wide.csv", *by_rater)
    write_csv(place.folder / "bare.csv", rows()[0], rows()[1:])  # type: ignore[arg-type]
    columns = ["original=column 1", "output=column 2", "rater=column 3", "answer=column 4"]
    done = place.refused("bare.csv", *(word for column in columns for word in ("--column", column)))
    assert "its first line looks like a row" in done and RATERS[0] not in done
    votes = [{"votes": [{"worker": rater, "rating": 3} for rater in RATERS]}]
    (place.folder / "votes.json").write_text(json.dumps(votes), encoding="utf-8")
    place.take("votes.json", "--dry-run")
    assert "no column identifies the item" in place.refused("votes.json", "--column", "unused=entry")
    points = ["1 - Excellent", "2 - Good", 3, "4", "5 - Bad"]
    write_csv(
        place.folder / "grades.csv",
        ["text", "rater", "rating"],
        [[original(n), "di", points[n % 5]] for n in range(10)],
    )
    asked = "1 is 'Excellent' and 5 is 'Bad'; add --scale rating=5..1 if less is better, or --scale rating=1..5"
    assert asked in place.refused("grades.csv")
    assert "rating, 1 to 5" in place.take("grades.csv", "--scale", "rating=5..1", "--language", "en").out


def test_records_that_are_not_in_a_list_are_refused(place: Workplace) -> None:
    frame = pd.DataFrame(rows(), columns=HEADER)
    for form in (frame.to_json(orient="columns"), frame.to_json(orient="split")):
        (place.folder / "d.json").write_text(form, encoding="utf-8")
        assert "to_json(orient='records')" in place.refused("d.json")
    for text in (frame.to_json(orient="records"), frame.to_json(orient="index")):
        (place.folder / "d.json").write_text(text, encoding="utf-8")
        place.take("d.json", *MEANING, "--replace")
        assert len(place.ratings()) == 60
    ids = {rater: {str(n): 1 + n % 5 for n in range(20)} for rater in RATERS}
    (place.folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
    assert "60 ratings of 20 texts by 3 raters" in place.take("ids.json", "--replace").out


def test_the_page_lists_every_name_that_sets_a_role() -> None:
    page = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
    of_role = dict(re.findall(r"^\| `(\w+)` \| (`.*`) \|$", page, re.M))
    assert {role: re.sub("[`_]", "", names) for role, names in of_role.items()} == packaged("imports/words.yaml")[
        "columns"
    ]


@pytest.mark.parametrize(
    ("first", "second", "moment"),
    [
        ("2024-03-01T10:00:07Z", "2024-03-01T10:00:19Z", "2024-03-01 10:00:07+00:00"),
        ("2024-03-01 11:00:07+01:00", "2024-03-01 11:00:19+01:00", "2024-03-01 10:00:07+00:00"),
        ("2024/03/01 11:00:07 AM GMT+1", "2024/03/01 11:00:19 AM GMT+1", "2024-03-01 10:00:07+00:00"),
        ("Fri Mar 01 02:00:07 PST 2024", "Fri Mar 01 02:00:19 PST 2024", "2024-03-01 10:00:07+00:00"),
        ("13.03.2024 10:00:07", "13.03.2024 10:00:19", "2024-03-13 10:00:07+00:00"),
        ("1709287207", "1709287219", "2024-03-01 10:00:07+00:00"),
        ("13.03.2024 um 10:00:07 Uhr", "13.03.2024 um 10:00:19 Uhr", "2024-03-13 10:00:07+00:00"),
        ("3/13/2024, 2:00:07 a.m. PST", "3/13/2024, 2:00:19 a.m. PST", "2024-03-13 10:00:07+00:00"),
        ("2024-03-01 11:00:07 PM CET", "2024-03-01 11:00:19 PM CET", "2024-03-01 22:00:07+00:00"),
        ("2024-03-01 11:00:07,25 (GMT+1)", "2024-03-01 11:00:19,25 (GMT+1)", "2024-03-01 10:00:07.250000+00:00"),
    ],
)
def test_times_of_ten_forms(first: str, second: str, moment: str) -> None:
    began, ended, no_time = as_times([first, second, "noon"], "file.csv")
    assert str(began) == moment and (ended - began).total_seconds() == 12 and pd.isna(no_time)


def test_an_answers_seconds_are_those_since_the_raters_answer_before(place: Workplace) -> None:
    times = ("13.03.2024 um 10:00:07 Uhr", "13.03.2024 um 10:00:19 Uhr", "noon")
    lines = [[original(n), output(n, "x"), rater, 1 + n, times[n]] for n in range(3) for rater in RATERS]
    write_csv(place.folder / "ratings.csv", [*HEADER, "answered at"], lines)
    assert "3 cells are not times" in place.take("ratings.csv", *MEANING, "--language", "en").out
    assert set(place.ratings()["seconds"].dropna()) == {12.0}


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("17/05/2020 14:13 Uhr", "2020-05-17T14:13:00+00:00"),
        ("05/17/2020 2:13:33 PM PST", "2020-05-17T22:13:33+00:00"),
        ("05/17/2020 12:13 AM", "2020-05-17T00:13:00+00:00"),
        ("05/17/2020 12:13 PM", "2020-05-17T12:13:00+00:00"),
        ("2024-03-01T141537Z", "2024-03-01T14:15:37+00:00"),
        ("2024-03-01  10:00", "2024-03-01T10:00:00+00:00"),
        ("1709287207123", "2024-03-01T10:00:07.123000+00:00"),
        ("17.05.2020", "2020-05-17T00:00:00+00:00"),
        ("17.05.2020 14:5", "2020-05-17T14:05:00+00:00"),
        ("2020/05/17 2:13\u202fPM", "2020-05-17T14:13:00+00:00"),
    ],
)
def test_a_time_keeps_what_can_be_read_of_it(value: str, moment: str) -> None:
    (time,) = as_times([value], "file.csv")
    assert time is not None and time.isoformat() == moment
    assert as_times([f"17.05.2020 {clock}" for clock in (":13", "14:13 XYZ", "14 o'clock")], "file.csv").isna().all()


def test_what_is_no_duration_is_unknown() -> None:
    first, *others = as_seconds(["1m 3.5 s", "1.2.3 s", "5 apples", "-4"])
    assert first == 63.5 and pd.isna(others).all()


def test_a_clock_of_24_hours_before_noon_is_no_time() -> None:
    assert as_times(["2020/05/17 14:13\u202fAM", "5/17/2020 13:00 PM"], "file.csv").isna().all()


def test_a_word_behind_the_clock_does_not_hide_which_number_is_the_day() -> None:
    times = as_times(["17/05/2020 14:13 Uhr", "02/05/2020 11:13"], "file.csv")
    assert [time and time.month for time in times] == [5, 5]


def test_scales_of_any_points_go_to_verdicts(place: Workplace) -> None:
    scales: dict[str, tuple[tuple[float, ...], str]] = {
        "tone": ((-2, -1, 0, 1, 2), "-2 to 2"),
        "share": ((0, 37, 100, 61, 5), "0 to 100"),
        "grade": ((1, 1.5, 2, 4.5, 5), "1 to 5, 9 points"),
        "trust": ((0.013, 0.4, 0.77, 0.901, 1), "0 to 1, any number in between"),
    }
    lines = [
        [original(n), output(n, "x"), rater, *(values[(n + k) % 5] for values, _ in scales.values())]
        for n in range(30)
        for k, rater in enumerate(RATERS)
    ]
    write_csv(place.folder / "ratings.csv", [*HEADER[:3], *scales], lines)
    done = place.take("ratings.csv", *(word for name in scales for word in ("--column", f"answer={name}")))
    for name, (values, scale) in scales.items():
        assert f"{name}: rating, {scale}" in done.out
        ratings = place.ratings()
        assert sorted(set(ratings.loc[ratings["question"] == name, "value"])) == sorted(values)
    assert place.run("accept", "--study", "studies/mine.yaml").status == 0


def test_a_dry_run_and_a_refusal_write_nothing(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 6)
    doubtful = ("--column", "unused=fluency", "--column", "unused=meaning")
    place.take("ratings.csv", "--dry-run")
    place.refused("ratings.csv", *doubtful)
    place.refused("ratings.csv", *MEANING, "--scale", "absent=1..5")  # found out after the columns were written
    assert [path.name for path in place.folder.iterdir()] == ["ratings.csv"]
    place.take("ratings.csv", *MEANING)
    before = place.everything()
    place.take("ratings.csv", "--column", "answer=fluency", "--dry-run")
    place.refused("ratings.csv", *doubtful, "--replace")
    assert place.everything() == before


def test_columns_are_corrected_by_options_and_by_the_file_that_an_import_wrote(place: Workplace) -> None:
    write_long(place.folder / "ratings.csv", 6)
    file = place.folder / "studies" / "mine" / "columns.yaml"
    place.take("ratings.csv")
    file.write_text(file.read_text(encoding="utf-8").replace("fluency: answer", "fluency: unused"), encoding="utf-8")
    place.take("ratings.csv", "--columns", "studies/mine/columns.yaml", "--replace")
    assert set(place.ratings()["question"]) == {"meaning"}
    assert "did you mean 'fluency'" in place.refused("ratings.csv", "--replace", "--column", "answer=fluenzy")


def test_a_few_whole_numbers_are_answers_and_facts_and_positions_are_none(place: Workplace) -> None:
    """Sources without spaces beside texts are ids: systems are compared on the texts."""
    header = ["rater", "item", "source", "system", "text", "output", "meaning", "length", "level", "nth", "flag"]
    rows = [
        [rater, f"s{n}-{system}", f"s{n}", system, original(n), output(n, system), answer(n, system, rater),
         1 + n % 5, 1 + RATERS.index(rater), 1 + 2 * n + SYSTEMS.index(system), (n + RATERS.index(rater)) % 2]
        for n, system, rater in triples(5)
    ]  # fmt: skip
    write_csv(place.folder / "ratings.csv", header, rows)
    done = place.take("ratings.csv")
    assert "unused (its name shows no role): length, level, nth, flag" in done.out
    ratings = place.ratings()
    assert set(ratings["question"]) == {"meaning"} and len(ratings) == 30
    assert set(ratings["original"]) == {original(n) for n in range(5)} and len(place.study.kinds) == 2
    alone = [[row[1], row[5], row[6]] for row in rows]
    write_csv(place.folder / "alone.csv", ["item", "output", "meaning"], alone)
    assert "(of no role: 'meaning')" in place.refused("alone.csv", "--replace")


@pytest.mark.parametrize(
    "content", ["item,評価\n".encode("shift_jis") + b"\x81\x8d\x8f", b"\x1f\x8b\x08\x9d\xff", b"a,b\n1,\x90\xfe\n"]
)
def test_bytes_of_no_known_encoding_are_refused(place: Workplace, content: bytes) -> None:
    (place.folder / "ratings.csv").write_bytes(content)
    assert "is cut off, or in an unknown encoding" in place.refused("ratings.csv")


def test_pipes_and_files_of_endless_columns_are_refused_at_once(place: Workplace) -> None:
    os.mkfifo(place.folder / "pipe.csv")
    assert "not an ordinary file" in place.refused("pipe.csv")
    names = [f"c{number}" for number in range(20_000)]
    write_csv(place.folder / "wide.csv", names, [range(20_000)])
    (place.folder / "wide.json").write_text(json.dumps(dict.fromkeys(names, 1)), encoding="utf-8")
    for file in ("wide.csv", "wide.json"):
        assert "more than 5,000 columns" in place.refused(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no file"),
        ("columns: [1, 2]", "columns: is not a mapping"),
        ("columns: {meaning: null}", "columns.meaning"),
        ("scales: 5", "scales: is not a mapping"),
    ],
)
def test_a_file_of_columns_that_cannot_be_used_is_one_line(place: Workplace, content: str | None, says: str) -> None:
    write_csv(place.folder / "ratings.csv", HEADER, rows())
    if content is not None:
        (place.folder / "columns.yaml").write_text(content, encoding="utf-8")
    assert says in place.refused("ratings.csv", "--columns", "columns.yaml")


@pytest.mark.parametrize("answers", [[("ada", 4)], [("ada", 4), ("bob", 5)]])
def test_verdicts_on_one_text(place: Workplace, answers: list[tuple[str, int]]) -> None:
    replies = [{"value": value, "user_id": rater} for rater, value in answers]
    record = {"id": "1", "fields": {"text": "hello there you"}, "responses": {"q": replies}}
    (place.folder / "one.json").write_text(json.dumps([record]), encoding="utf-8")
    place.take("one.json")
    done = place.run("accept", "--study", "studies/mine.yaml")
    assert done.status == 0, done.err


@pytest.mark.parametrize(
    ("encoding", "texts", "remark"),
    [
        ("latin-1", ["Der Bär schläft im Wäldchen.", "Le garçon a mangé une pêche."], "Windows-1252"),
        ("cp932", ["小さな船が港に着いた。", "ラジオ"], "Shift-JIS"), ("euc_jp", ["雨が三日も降り続いた。"], "EUC-JP"),
        ("gb18030", ["小船在夜里到达了港口。", "下了三天的雨。"], "GB18030"),
        ("big5", ["小船在夜裡到達了港口。"], "Big5"), ("cp949", ["작은 배가 밤에 항구에 도착했다."], "EUC-KR"),
        ("cp1251", ["Маленькая лодка пришла ночью."], "CP1251"), ("utf-32", ["Ein Bär"], "UTF-32"),
        ("utf-16", ["小さな船"], "UTF-16"), ("utf-16-le", ["Ein Bär"], "UTF-16-LE"),
        ("utf-16-be", ["Ein Bär"], "UTF-16-BE"),
    ],
)  # fmt: skip
def test_encodings_of_other_places(tmp_path: Path, encoding: str, texts: list[str], remark: str) -> None:
    path = tmp_path / "d.csv"
    lines = [f"{text} ({n}),di,{1 + n % 5}" for n in range(4) for text in texts]
    path.write_bytes(("text,rater,rating\n" + "\n".join(lines) + "\n").encode(encoding))
    assert f"read as {remark}" in encoding_of(path)[1]
    assert {text.split(" (")[0] for text in read_csv(path).cells["text"]} == set(texts)
    records = [{"text": f"{texts[0]} {n}", "rater": "di", "rating": 1 + n} for n in range(4)]
    written = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    path.write_bytes(written.encode(encoding))
    (table,) = read_json(path)
    assert set(table.cells["text"]) == {record["text"] for record in records}


def test_text_that_is_cut_off_within_a_letter_is_refused(place: Workplace) -> None:
    for encoding in ("utf-8", "cp932"):
        text = "text,rater,rating\n" + "雨が三日も降り続いた。,di,1\n" * 4 + "雨"
        (place.folder / "d.csv").write_bytes(text.encode(encoding)[:-1])
        assert "is cut off" in place.refused("d.csv")


MTURK = ["HITId", "Title", "RequesterAnnotation", "AssignmentId", "WorkerId", "AssignmentStatus", "Input.text",
         "Answer.fluency", "Approve", "Reject"]  # fmt: skip


@pytest.mark.parametrize("annotation", ["BatchId:77;OriginalHitTemplateId:8;", "first batch"])
def test_rows_that_end_before_the_header_does_are_filled_up(place: Workplace, annotation: str) -> None:
    rows = [[f"H{n}", "Read; then judge", annotation, f"A{n}{r}", f"W{r}", "Submitted", f"{output(n, 'x')}; so",
             str(1 + (n + r) % 5)] for n in range(5) for r in range(2)]  # fmt: skip
    lines = [",".join(f'"{cell}"' for cell in row) for row in [MTURK, *rows]]
    (place.folder / "b.csv").write_text("\n".join(lines), encoding="utf-8")
    done = place.take("b.csv", "--language", "en")
    assert "MTurk's results, 10 rows" in done.out and "10 ratings of 5 texts by 2 raters" in done.out
    assert "10 rows end before the last columns (Approve, Reject), so these cells are empty" in done.out
    assert "every row was imported" in done.out


@pytest.mark.parametrize(("separator", "named"), [(",", False), (";", True), ("\t", False), ("|", True)])
def test_short_rows_of_any_separator(place: Workplace, separator: str, named: bool) -> None:
    head = separator.join(["item", "text", "rater", "rating", "remark", "more"])
    rows = [
        [str(n), f"It was, in short; a {n} | b.", "di", str(1 + n % 5), *(["odd"] if n % 4 == 0 else [])]
        for n in range(12)
    ]
    if separator == "|":
        rows = [[cell.replace("|", "or") for cell in row] for row in rows]
    body = [separator.join(f'"{cell}"' if len(cell) > 9 else cell for cell in row) for row in rows]
    start = [f"sep={separator}"] if named else []
    (place.folder / "d.csv").write_text("\r\n".join([*start, head, *body]) + "\r\n", encoding="utf-8")
    done = place.take("d.csv", "--language", "en")
    assert "12 rows end before the last columns (remark, more)" in done.out
    assert len(place.ratings()) == 12 and not place.listed
    with (place.folder / "d.csv").open("a", encoding="utf-8") as file:
        file.write(separator.join(["99", "text", "di", "3", "a", "b", "c"]) + "\r\n")
    place.take("d.csv", "--language", "en", "--replace")
    ((line, reason),) = place.listed
    assert line == 14 + named and reason.startswith("7 cells, but the header has 6; quote cells that hold a separator")


def test_names_of_rows_that_the_header_lacks(place: Workplace) -> None:
    """R's `write.table` names no column for them, and decimal commas look the same."""
    lines = [f'"{n}","{original(n)}","di",{1 + n % 5}' for n in range(6)]
    (place.folder / "d.csv").write_text("\n".join(['"text","rater","rating"', *lines]), encoding="utf-8")
    refused = place.refused("d.csv", "--language", "en")
    assert "d.csv, line 2: 4 cells, but the header has 3; quote cells" in refused and "(6 rows)" in refused


def test_headers_that_are_missing_are_said(place: Workplace) -> None:
    """A first row of unique cells is no header if one is a fraction or an address."""
    rows = [(0.5 + number / 100, f"k{number}", original(number), output(number, "neural")) for number in range(9)]
    write_csv(place.folder / "fractions.csv", rows[0], rows[1:])  # type: ignore[arg-type]
    named = [word for role in ("answer=0.5", "item=k0") for word in ("--column", role)]
    assert "its first line looks like a row (in column 1" in place.refused("fractions.csv", *named)
    pages = [(f"https://example.org/{number}", original(number), f"note {number}") for number in range(9)]
    write_csv(place.folder / "pages.csv", pages[0], pages[1:])
    assert "its first line looks like a row (in column 1" in place.refused("pages.csv")


def test_objects_under_keys_are_to_be_a_list(place: Workplace) -> None:
    reviews = {"fast": {"rater": "di", "rating": 3}, "slow": {"rater": "ed", "rating": 4}}
    entries = [{"text": original(number), **reviews} for number in range(4)]
    (place.folder / "keys.json").write_text(json.dumps(entries), encoding="utf-8")
    said = place.refused("keys.json")
    assert (
        "'fast.rater' and 'slow.rater' have the same role, rater; write the objects under such keys as a list" in said
    )


def test_raters_who_answered_nothing_are_not_counted(place: Workplace) -> None:
    rows = [[original(n), rater, "" if rater == "ed" else 1 + n % 5] for n in range(6) for rater in ("di", "ed", "flo")]
    write_csv(place.folder / "d.csv", ["text", "rater", "rating"], rows)
    assert "12 ratings of 6 texts by 2 raters" in place.take("d.csv", "--language", "en").out


@pytest.mark.parametrize("words", [("import", "--out", "studies/mine.yaml"), ("init",), ("status", "--study")])
def test_a_file_name_that_is_not_utf_8_is_refused_in_one_line(place: Workplace, words: tuple[str, ...]) -> None:
    done = place.run(*words, os.fsdecode(b"d\xe9\xff.csv"))
    assert done.status == 2 and "is not UTF-8; rename it" in done.err and done.err.count("\n") == 1
    assert not (place.folder / "studies").exists()

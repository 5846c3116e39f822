"""Ratings from CSV files, such as Google Forms exports, with the same checks as those from Argilla."""

from __future__ import annotations

import csv
import gzip
import math
import stat
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from annotation import server
from annotation.campaign.counting import untimed
from annotation.campaign.records import CampaignRecords
from annotation.csv_answers import _Form, collect_csv, column_mapping
from annotation.export import export
from annotation.ratings.decisions import review_text
from annotation.report.page import write_report
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.status.text import next_step, status_text
from annotation.verdicts.acceptance import accept
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import asked_rubric
from generation.production import generate
from plumbline.errors import DataError
from plumbline.prompts import PROMPTS
from plumbline.study import ROOT, Study
from tests.annotation import kinds
from tests.annotation.campaigns import ALONE, Make, small
from tests.annotation.outputs import of_outputs

HEADER = 'Timestamp,Your e-mail,Pair,"Quality, 1 to 5",Fluency,Anything odd?'
COLUMNS = "time=Timestamp,rater=Your e-mail,pair=Pair,quality=Quality, 1 to 5,fluency=Fluency,comment=Anything odd?"
MAPPING = column_mapping(COLUMNS, ["quality", "fluency"])


@pytest.fixture
def study(variant: Make) -> Study:
    sample = {"pairs": 4, "controls": 1, "repeats": 0}
    return small(variant, "forms", transformations=["paraphrasing"], sample=sample)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "answers.csv"


def write(file: Path, study: Study, *rows: str, encoding: str = "utf-8") -> None:
    """A form's export; `{0}` to `{3}` are the sample's pairs, `{4}` is the control."""
    pairs = [pair.pair_id for pair in (*CampaignRecords(study).pairs, *CampaignRecords(study).controls)]
    file.write_text("\n".join([HEADER, *(row.format(*pairs) for row in rows)]) + "\n", encoding=encoding)


def test_a_forms_answers_become_ratings(study: Study, file: Path, tmp_path: Path) -> None:
    home = server.Home(tmp_path / "home")
    write(
        file,
        study,
        "2026/03/01 2:15:37 PM GMT+1,ada@example.org,{0},4,5,ein Wort fehlt",
        "2026/03/01 2:16:07 PM GMT+1,ada@example.org,{1},3,3,",
        ",,,,,",
        '2026-03-01T13:20:00+00:00,bob@example.org,{0},5.0,4,"two\nlines"',
        "2026/03/01 2:17:00 PM GMT+1,Ada@example.org ,{4},2,5,",
        encoding="utf-8-sig",
    )
    ratings = collect_csv(study, home, file, MAPPING)
    assert len(ratings) == 3 * 2 and set(ratings["source"]) == {"answers.csv"}
    own = ratings[ratings["comment"] == "ein Wort fehlt"].set_index("question")
    assert own["value"].to_dict() == {"quality": 4, "fluency": 5}
    assert set(own["submitted_at"]) == {pd.Timestamp("2026-03-01T13:15:37", tz="UTC")}
    assert set(ratings["seconds"].dropna()) == {30.0}
    told = CampaignRecords(study).control_ratings
    assert len(told) == 2 and set(told["seconds"]) == {53.0}
    assert set(told["rater_id"]) == set(own["rater_id"])  # the same address in capitals
    assert ratings["rater_id"].nunique() == 2 and ratings["rater_id"].str.fullmatch(r"rater-[0-9a-f]{8}").all()
    # Names stay here: nothing among the records holds one, and pseudonyms need a key that is only the home's.
    records = b"".join(path.read_bytes() for path in study.folder.rglob("*") if path.is_file())
    assert b"example.org" not in records
    key = home.path / "pseudonyms.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    elsewhere = collect_csv(study, server.Home(tmp_path / "other"), file, MAPPING, replace=True)
    assert not set(elsewhere["rater_id"]) & set(ratings["rater_id"])


def test_the_same_file_again_changes_nothing_and_a_shorter_one_is_refused(
    study: Study, file: Path, tmp_path: Path
) -> None:
    home = server.Home(tmp_path / "home")
    rows = ["2026-03-01T10:00:00Z,ada,{0},4,5,", "2026-03-01T10:01:00Z,ada,{1},4,5,"]
    write(file, study, *rows)
    first = collect_csv(study, home, file, MAPPING)
    pd.testing.assert_frame_equal(collect_csv(study, home, file, MAPPING), first)
    assert len(list((study.folder / "snapshots").iterdir())) == 1
    write(file, study, rows[0])
    with pytest.raises(DataError, match=r"2 ratings that were collected before are missing .*answers\.csv"):
        collect_csv(study, home, file, MAPPING)
    pd.testing.assert_frame_equal(CampaignRecords(study).ratings, first)
    assert len(collect_csv(study, home, file, MAPPING, replace=True)) == 2
    other = tmp_path / "more.csv"  # another file is another source, and leaves the first one's ratings alone
    write(other, study, "2026-03-01T10:00:00Z,bob,{0},1,1,")
    assert set(collect_csv(study, home, other, MAPPING)["source"]) == {"answers.csv", "more.csv"}


def test_each_sheet_of_excel_is_a_source_of_its_own(study: Study, tmp_path: Path) -> None:
    home, file = server.Home(tmp_path / "home"), tmp_path / "answers.xlsx"
    pairs = CampaignRecords(study).pairs
    with pd.ExcelWriter(file) as book:
        for rater in ("ada", "bob"):
            rows = [(pair.pair_id, rater, 4, 5) for pair in pairs]
            pd.DataFrame(rows, columns=list("abcd")).to_excel(book, sheet_name=rater, index=False)
    mapping = column_mapping("pair=a,rater=b,quality=c,fluency=d", ["quality", "fluency"])
    with pytest.raises(DataError, match=r"has 2 sheets with rows \(ada, bob\)"):
        collect_csv(study, home, file, mapping)
    for rater in ("ada", "bob", "ada"):
        ratings = collect_csv(study, home, file, mapping, sheet=rater)
    assert set(ratings["source"]) == {"answers.xlsx, ada", "answers.xlsx, bob"}
    assert len(ratings) == 2 * 2 * len(pairs)


def test_all_rows_that_cannot_be_answers_are_named_at_once_and_nothing_is_kept(
    study: Study, file: Path, tmp_path: Path
) -> None:
    time = "2026-03-01T10:00:00Z"
    rows = [f"{time},ada,{{0}},4,5,", f"{time},,{{1}},4,5,", f"{time},ada,{{1}},9,5,", f"{time},ada,{{0}},1,1,"]
    write(file, study, *rows, f"{time},ada,{{2}},4,5,", "noon,bob,{0},4,5,")
    with pytest.raises(DataError) as error:
        collect_csv(study, server.Home(tmp_path / "home"), file, MAPPING)
    lines = [line.removeprefix(f"{file}, ").split(":")[0] for line in str(error.value).splitlines()]
    assert lines == ["line 3", "line 4, quality", "line 5", "line 7"]
    assert not (study.folder / "ratings.parquet").exists()


def test_pairs_are_found_by_their_texts(study: Study, file: Path, tmp_path: Path) -> None:
    home, pairs = server.Home(tmp_path / "home"), CampaignRecords(study).pairs
    mapping = column_mapping("original=a,output=b,rater=c,quality=d,fluency=e", ["quality", "fluency"])
    rows = [(unicodedata.normalize("NFD", pair.original), f" {pair.transformed}\n", "ada", 4, 5) for pair in pairs]
    pd.DataFrame(rows, columns=list("abcde")).to_csv(file, index=False, sep="\t")
    ratings = collect_csv(study, home, file, mapping)
    assert set(ratings["pair_id"]) == {pair.pair_id for pair in pairs} and len(ratings) == 2 * len(pairs)
    pd.DataFrame([("no such text", "nor this", "ada", 4, 5)], columns=list("abcde")).to_csv(file, index=False)
    with pytest.raises(DataError, match=r"line 2: no pair has the text 'nor this'"):
        collect_csv(study, home, file, mapping)


def test_texts_of_a_repeat_are_its_pairs_and_of_two_pairs_refused(variant: Make, file: Path, tmp_path: Path) -> None:
    sample = {"pairs": 4, "controls": 0, "repeats": 1}
    study = small(variant, "again", transformations=["paraphrasing"], sample=sample)
    (repeat,) = CampaignRecords(study).controls
    mapping = column_mapping("output=b,rater=c,quality=d,fluency=e", ["quality", "fluency"])
    rows = [(repeat.transformed, rater, 4, 5) for rater in ("ada", "ada", "bob")]
    pd.DataFrame(rows, columns=list("bcde")).to_csv(file, index=False)
    records = CampaignRecords(study)
    collect_csv(study, server.Home(tmp_path / "home"), file, mapping)
    found = CampaignRecords(study).all_ratings.drop_duplicates(["pair_id", "rater_id"])["pair_id"].tolist()
    assert sorted(found) == sorted([repeat.repeats, repeat.repeats, repeat.pair_id])  # Ada's second row is the repeat's
    first = records.shown_by_id[repeat.repeats]
    pairs = {first.pair_id: first, "b" * 16: first.model_copy(update={"pair_id": "b" * 16})}
    form = _Form(study, asked_rubric(records), pairs, file, "", mapping, b"key")
    with pytest.raises(DataError, match=rf"line 2: its texts match {first.pair_id} .* and {'b' * 16}"):
        [form.answer(row, f"{file}, line {line}") for line, row in form.rows()]


UNTIMED = {"pair": "pair", "rater": "rater", "quality": "quality", "fluency": "fluency"}
UNKNOWN = "too fast: {0} of {0} raters (the time that their answers took is unknown)"


def study_of(folder: Path, texts: pd.DataFrame) -> Study:
    """A study of outputs that somebody has: columns text and output."""
    sample = {"pairs": len(texts), "controls": 0, "repeats": 0}
    study = of_outputs(folder, texts, name="elsewhere", sample=sample, raters={"per_pair": 3})
    generate(study)
    draw_sample(study)
    return study


def take_in(study: Study, folder: Path, answers: pd.DataFrame) -> pd.DataFrame:
    """Collect answers, columns text, output, rater, quality, fluency; without a time unless they have one."""
    ids = {(one.original, one.transformed): one.pair_id for one in CampaignRecords(study).pairs}
    pairs = [ids.get(place, "") for place in zip(answers["text"], answers["output"], strict=True)]
    answers = answers.assign(pair=pairs).drop(columns=["text", "output"])
    answers = answers[answers["pair"] != ""].drop_duplicates(["pair", "rater"])
    answers.to_csv(folder / "answers.csv", index=False)
    timed = {"time": "time"} if "time" in answers else {}
    return collect_csv(study, server.Home(folder / "home"), folder / "answers.csv", UNTIMED | timed)


def careful(texts: pd.DataFrame, raters: int = 3) -> pd.DataFrame:
    """Answers of raters who agree, and of whom no rule but that of time could say anything."""
    rows = [
        row | {"rater": f"rater{rater}", "quality": 1 + number % 5, "fluency": 1 + (number + 1) % 5}
        for number, row in enumerate(texts.to_dict("records"))
        for rater in range(raters)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def texts() -> pd.DataFrame:
    words = ["river", "mountain", "harbour", "garden", "library"]
    rows = [
        (f"The {one} number {n} is open to all.", f"All may see {one} {n} today.") for n in range(6) for one in words
    ]
    return pd.DataFrame(rows, columns=["text", "output"])


def test_a_file_without_times_calls_nobody_careless(tmp_path: Path, texts: pd.DataFrame) -> None:
    study = study_of(tmp_path, texts)
    ratings = take_in(study, tmp_path, careful(texts))
    assert len(ratings) == 30 * 3 * 2 and ratings["seconds"].isna().all() and untimed(ratings).all()
    evidence = Evidence.read(study)
    assert not evidence.signs
    assert UNKNOWN.format(3) in evidence.unlooked
    status = read_status(Evidence(study), datetime.now(UTC))
    assert status.raters["last"].isna().all()  # the file's time is nobody's
    text = status_text(status)
    assert UNKNOWN.format(3) in text and "--exclude" not in text + str(next_step(status))
    assert UNKNOWN.format(3) in review_text(evidence, evidence.signs, evidence.unlooked)
    shared = export(study)  # the file's time is no rating's
    assert pd.read_csv(shared / "ratings.csv")["submitted_at"].isna().all()
    assert "time" not in pd.read_csv(shared / "answers.csv") and "time=" not in (shared / "codebook.md").read_text()


def test_a_form_of_many_pairs_with_one_time_tells_no_seconds(tmp_path: Path, texts: pd.DataFrame) -> None:
    study, answers = study_of(tmp_path, texts), careful(texts)
    # Ten pairs a form, sent every two minutes: the time between forms is that of ten answers, not of the last.
    minutes = answers.groupby("rater").cumcount() // 10 * 2
    ratings = take_in(study, tmp_path, answers.assign(time=[f"2026-03-01T10:{one:02}:00Z" for one in minutes]))
    assert ratings["seconds"].isna().all() and not untimed(ratings).any()
    assert UNKNOWN.format(3) in Evidence.read(study).unlooked and not Evidence.read(study).signs


def test_excel_and_packed_files_are_collected_as_csv_is(study: Study, file: Path, tmp_path: Path) -> None:
    home, columns = server.Home(tmp_path / "home"), ["value", "question", "comment"]
    rows = ["2026-03-01T13:20:00,ada@example.org,{0},4,5,plain", "2026-03-01T13:21:00,bob@example.org,{0},3,5,"]
    write(file, study, *rows)
    content = file.read_text(encoding="utf-8")
    book = openpyxl.Workbook()
    for row in csv.reader(content.replace("@", "@excel.").splitlines()):
        book.active.append([int(cell) if cell.isdecimal() else cell for cell in row])
    book.save(file.with_suffix(".xlsx"))
    file.with_name("answers.csv.gz").write_bytes(gzip.compress(content.replace("@", "@gzip.").encode()))
    for name in ("answers.csv", "answers.xlsx", "answers.csv.gz"):
        ratings = collect_csv(study, home, file.with_name(name), MAPPING)
    by_source = [sorted(map(tuple, part[columns].to_numpy().tolist())) for _, part in ratings.groupby("source")]
    assert len(by_source) == 3 and by_source[0] == by_source[1] == by_source[2]


PEOPLE = ROOT.parent / "shared" / "data" / "people"


@pytest.mark.data
@pytest.mark.skipif(not PEOPLE.exists(), reason="the real ratings are not beside the checkout")
def test_real_workers_of_a_file_without_times_are_not_called_fast(tmp_path: Path) -> None:
    files = sorted((PEOPLE / "mturk_paraphrase").glob("*.csv"))
    answers = pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
    label = answers["Answer.semantic-similarity.label"]
    answers = pd.DataFrame(
        {
            "text": answers["Input.text1"].str.strip(),
            "output": answers["Input.text2"].str.strip(),
            "rater": answers["WorkerId"],
            "quality": label.str.contains("approximately the same").map({True: 5, False: 1}),
            "fluency": label.str.contains("is grammatical").map({True: 5, False: 1}),
        }
    )
    study = study_of(tmp_path, answers[["text", "output"]].drop_duplicates("text"))
    ratings = take_in(study, tmp_path, answers)
    assert len(ratings) > 100 and ratings["rater_id"].nunique() > 5
    evidence = Evidence.read(study)
    assert not [sign for sign in evidence.signs if sign.rule == "too fast"]
    assert any(line.startswith("too fast: ") for line in evidence.unlooked)


pytestmark = pytest.mark.usefixtures("undrawn")

SCALES: dict[str, tuple[Any, list[float], str]] = {
    "signed": ([-2, -1, 0, 1, 2], [-2, 0, 1, 2, -1], "int64"),
    "halves": ({"from": 1, "to": 5, "step": 0.5}, [1, 1.5, 4.5, 3, 5], "double"),
    "hundred": ({"from": 0, "to": 100, "step": 1}, [0, 37, 100, 62, 80], "int64"),
    "continuous": ({"from": 0, "to": 100}, [0, 37.25, 99.5, 62, 80], "double"),
}


def drawn(variant: Make, patch: pytest.MonkeyPatch, folder: Path, scale: Any, **acceptance: Any) -> Study:
    """A study whose rubric has this scale, with words for its ends alone, and rules in its points."""
    ends = (scale["from"], scale["to"]) if isinstance(scale, dict) else (scale[0], scale[-1])
    content: dict[str, Any] = yaml.safe_load((PROMPTS / "rubrics" / "pteb.yaml").read_text(encoding="utf-8"))
    content |= {"name": "kinds", "scale": scale}
    content["questions"][0]["points"] = {ends[0]: {"en": "unrelated"}, ends[1]: {"en": "the same"}}
    content["pools"] = {"paraphrasing": content["pools"]["paraphrasing"] | {"expected": {}, "questions": {}}}
    content.pop("threshold")
    kinds.ask(patch, folder, content)
    middle = (ends[0] + ends[1]) / 2
    rule = {"threshold": middle, "min_pairs": 2, "protocol": "paper"} | acceptance
    sample = {"pairs": 5, **ALONE}
    return small(
        variant, "scales", transformations=["paraphrasing"], rubric="kinds", sample=sample, acceptance=rule,
    )  # fmt: skip


@pytest.mark.parametrize("name", SCALES)
def test_ratings_on_any_scale_reach_verdicts_and_report(
    name: str, variant: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, values, stored = SCALES[name]
    study = drawn(variant, monkeypatch, tmp_path, scale)
    pairs = [pair.pair_id for pair in CampaignRecords(study).pairs]
    rows = [(pair, rater, value) for pair, value in zip(pairs, values, strict=True) for rater in ("ada", "bob")]
    rows = [(pair, rater, value if rater == "ada" else values[0]) for pair, rater, value in rows]
    pd.DataFrame(rows, columns=["pair", "rater", "similarity"]).to_csv(tmp_path / "answers.csv", index=False)
    mapping = {column: column for column in ("pair", "rater", "similarity")}
    collected = collect_csv(study, server.Home(tmp_path / "home"), tmp_path / "answers.csv", mapping)
    assert sorted(collected["value"].astype(float)) == sorted(float(value) for _, _, value in rows)
    assert str(pq.read_schema(study.folder / "ratings.parquet").field("value").type) == stored
    (verdict,) = accept(study).verdicts
    (summary,) = verdict.questions
    assert summary.mean == pytest.approx(np.mean([value for *_, value in rows]))
    assert math.isnan(summary.low) and "8" in summary.interval_reason  # of 5 pairs no interval holds
    assert math.isnan(summary.ac2.value) == (name == "continuous")
    assert "continuous one has none" in summary.ac2.reason or name != "continuous"
    assert not math.isnan(summary.alpha.value) and not math.isnan(summary.kappa.value or 0.0)
    page = write_report(study)[0].read_text(encoding="utf-8")
    assert "Reliability" in page
    shares = pd.read_csv(study.folder / "report" / "ratings_by_point.csv")
    assert shares["n"].sum() == len(rows) and len(shares) == {"signed": 5, "halves": 9}.get(name, 5)
    reliable = pd.read_csv(study.folder / "report" / "reliability.csv").set_index("statistic")
    assert {"ICC(1)", "ICC(3, k)", "ICC(1) of z-scores"} <= set(reliable.index)

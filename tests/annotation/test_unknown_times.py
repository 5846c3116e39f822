"""Answers of files without times: how long they took is unknown, no sign rests on it, and this is printed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from annotation import server
from annotation.campaign.counting import untimed
from annotation.campaign.records import CampaignRecords
from annotation.csv_answers import collect_csv
from annotation.export import export
from annotation.ratings.decisions import review_text
from annotation.sampling.sample import draw_sample
from annotation.status.status import read_status
from annotation.status.text import next_step, status_text
from annotation.verdicts.evidence import Evidence
from generation.production import generate
from plumbline.study import ROOT, Study
from tests.annotation.outputs import of_outputs

PEOPLE = ROOT.parent / "shared" / "data" / "people"
COLUMNS = {"pair": "pair", "rater": "rater", "quality": "quality", "fluency": "fluency"}
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
    return collect_csv(study, server.Home(folder / "home"), folder / "answers.csv", COLUMNS | timed)


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

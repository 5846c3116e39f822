"""A task's gold beside what people answered to its items."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from annotation.campaign_records import CampaignData
from annotation.sampling.sample import draw_sample
from evaluation.benchmarks.checks import check, tasks_of
from evaluation.benchmarks.contents import Finding, contents_of
from evaluation.benchmarks.score_checks import PeopleChecks, _labels
from plumbline.errors import StudyError
from plumbline.records import Rating
from plumbline.store import write_table
from plumbline.study import ROOT, Study, load_study
from tests.commands import here


@pytest.fixture
def study(tmp_path: Path) -> tuple[Study, dict[str, float]]:
    """Ten items of the sample study's pairs before raters; and the gold of each, by its id."""
    made = load_study(ROOT / "studies" / "items.yaml", tmp_path)
    pairs = [pair for pair in draw_sample(made) if pair.dataset == "sample_sts"]
    rows = pd.read_csv(ROOT / "studies" / "demo" / "pairs.csv")
    gold = {
        (one, other): score
        for one, other, score in zip(rows["sentence1"], rows["sentence2"], rows["score"], strict=True)
    }
    return made, {pair.pair_id: gold[tuple(json.loads(pair.fields).values())] for pair in pairs}


def answered(study: Study, answers: dict[str, list[float]], *, simulated: bool = False) -> None:
    ratings = [
        Rating(
            pair_id=pair, transformation="sample_sts", language="en", rater_id=f"rater-{number}", question="similarity",
            value=round(value), status="submitted", submitted_at=datetime(2026, 1, 2, tzinfo=UTC), source="argilla",
            simulated=simulated,
        )
        for pair, own in answers.items()
        for number, value in enumerate(own)
    ]  # fmt: skip
    write_table(study.folder / "ratings.parquet", ratings, Rating)
    write_table(study.folder / "control_ratings.parquet", list[Rating](), Rating)


def found(study: Study, question: str = "similarity") -> Finding:
    tasks, _ = tasks_of(study, ["sample_sts"])
    (checked,) = check(tasks, beside=PeopleChecks(CampaignData.read(study), study.raters.per_pair, question, 1))
    return next(one for one in checked.findings if one.check.startswith("people"))


def test_people_who_agree_with_the_gold_and_people_who_turn_it_round(study: tuple[Study, dict[str, float]]) -> None:
    made, gold = study
    assert found(made).reason == "not known: nobody answered 'similarity' on the task's items"
    answered(made, {pair: [value, value] for pair, value in gold.items()})
    agreed = found(made)
    rounded = [round(value) for value in gold.values()]
    assert agreed.value == pytest.approx(pd.Series(rounded).corr(pd.Series(gold.values()), method="spearman"))
    assert (
        agreed.verdict == "pass" and not len(agreed.rows) and agreed.reason.startswith("10 items, 95% interval from ")
    )
    answered(made, {pair: [5 - value] for pair, value in gold.items()}, simulated=True)
    turned = found(made)
    assert turned.verdict == "look" and turned.value < 0 and len(turned.rows)
    assert turned.reason.startswith("SIMULATED answers: 10 items") and turned.rows["detail"][0].startswith("people ")


def test_a_question_must_be_named_and_have_been_asked(study: tuple[Study, dict[str, float]]) -> None:
    made, gold = study
    answered(made, {pair: [value] for pair, value in gold.items()})
    assert (
        found(made, "").reason == "not known: use --question to name the question that asks for the gold (similarity)"
    )
    with pytest.raises(StudyError, match="--question simile: the study does not ask it; did you mean 'similarity'"):
        PeopleChecks(CampaignData.read(made), made.raters.per_pair, "simile", 1)
    words = ("--study", str(made.file), "--exports", str(made.folder.parent), "--question", "similarity")
    done = here("check", *words)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(made.folder / "quality" / "checks.csv")
    assert list(table.loc[table["check"] == "people_scores", "task"]) == ["sample_sts"]
    done = here("check", "--study", "studies/demo.yaml", "--question", "similarity")
    assert done.returncode == 2 and "only with a study of items" in done.stderr


def test_labels_of_most_people_are_laid_beside_the_gold_by_cohens_kappa() -> None:
    from tests.evaluation.benchmarks.test_checks import CLEAN

    (part,) = contents_of(CLEAN).with_gold
    said = [[str(gold)] * 2 for gold in part.gold]
    said[0], said[1] = ["l1", "l1", "l0"], ["l0", "l1"]  # the first against the gold, the second without a majority
    made = _labels([(part, place, own) for place, own in enumerate(said)], "")
    gold = [str(part.gold[place]) for place in range(10) if place != 1]
    given = ["l1", *gold[1:]]
    assert made.value == pytest.approx(cohen_kappa_score(given, gold)) and made.verdict == "pass"
    assert list(made.rows["item"]) == ["0"] and made.reason.startswith("9 of 10 items")
    one = _labels([(part, 0, ["l0"]), (part, 2, ["l0"])], "")
    assert np.isnan(one.value) and one.verdict == "look"

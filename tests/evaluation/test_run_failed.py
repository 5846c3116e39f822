"""Texts without a usable output: their items are dropped or scored with the original, and tables say so."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evaluation.models.encoder import Encoder
from evaluation.records import EvaluationRecords
from evaluation.scoring import evaluate
from evaluation.tasks import scoring
from generation.datasets.loading import iter_datasets
from generation.datasets.local import TableDataset
from plumbline.study import Study

from .conftest import FakeModel, Loader, changed, write_outputs, write_pairs, write_study, write_verdicts
from .scored import failing, rows


def test_a_text_without_output_leaves_its_unit_out(study: Study, loader: Loader) -> None:
    first = next(next(iter_datasets(study)).texts()).text
    write_outputs(study, lambda text, name: "unanswered" if (text, name) == (first, "translation") else "ok")
    evaluate(study, models=["one"], include_rejected=True, load=loader)
    scores = EvaluationRecords(study).scores.set_index(["dataset", "transformation"])
    row = scores.loc[("sts", "translation")]
    assert row["status"] == "left_out"
    assert row["reason"].startswith("no output for 1 of ")
    assert row["reason"].endswith("texts: run `plumbline generate` again")
    assert scores.loc[("requests", "translation"), "status"] == "evaluated"
    study.transformation_file("translation", 1337).unlink()
    evaluate(study, models=["one"], load=loader)
    scores = EvaluationRecords(study).scores
    reasons = set(scores[scores["transformation"] == "translation"]["reason"])
    assert reasons and all("texts: run `plumbline generate` again" in reason for reason in reasons)


def test_an_item_whose_output_failed_is_dropped(tmp_path: Path, loader: Loader) -> None:
    study = write_study(tmp_path, evaluation={"models": [{"name": "one"}]})
    pairs, requests = (list(dataset.texts()) for dataset in iter_datasets(study))
    # The third pair has a failed sentence, the fourth has two: that is two items. One request is in the train split.
    bad = {(text.field, text.item): text.text for text in pairs}
    lost = [bad["sentence2", "2"], bad["sentence1", "3"], bad["sentence2", "3"], requests[5].text, requests[20].text]
    failing(study, *lost)
    write_pairs(study)
    write_verdicts(study)
    evaluate(study, load=loader)

    frame = pd.read_csv(tmp_path / "sts.csv")
    for column in ("sentence1", "sentence2"):
        frame[column] = [text if text in lost else changed(text, "translation") for text in frame[column]]
    frame = frame.drop(index=[2, 3]).reset_index(drop=True)
    data = TableDataset("sts", "sts", "en", "1", {"test": frame})
    row = rows(study, "sts").loc["translation"]
    assert row["score"] == scoring.evaluate(data, Encoder(FakeModel(), "x", "1"), "paper", 32)
    assert (row["n"], row["n_failed"]) == (10, 2)
    row = rows(study, "requests").loc["translation"]
    assert (row["n"], row["n_failed"], row["status"]) == (7, 2, "evaluated")
    row = rows(study, "requests").loc["paraphrasing"]
    assert (row["n"], row["n_failed"]) == (8, 0)


def test_a_data_set_that_failures_leave_with_one_label_or_empty_is_left_out(study: Study, loader: Loader) -> None:
    pairs, requests = ([text.text for text in dataset.texts()] for dataset in iter_datasets(study))
    failing(study, *pairs, *(text for text in requests if text.startswith("cat")))
    evaluate(study, models=["one"], load=loader)
    for name, why in (("sts", "there is nothing to score"), ("requests", "all rows of its train split have the label")):
        row = rows(study, name).loc["translation"]
        assert row["status"] == "left_out"
        assert row["reason"].startswith(f"without the 12 items whose outputs failed {why}")


def test_the_failures_are_part_of_a_scores_identity(study: Study, loader: Loader) -> None:
    first, second = (text.text for text in list(next(iter_datasets(study)).texts())[:2])
    failing(study, first)
    assert evaluate(study, models=["one"], load=loader).made == 6
    failing(study, first, second)
    assert evaluate(study, models=["one"], load=loader).made == 1

"""Scores that were paid for stay until they are out of date, and a model that fails is a row that says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluation.models.encoder import Encoder
from evaluation.records import EvaluationRecords
from evaluation.report.material import notes_of
from evaluation.report.page import FOLDER, write_report
from evaluation.report.paper_tables import report
from evaluation.scoring import evaluate
from evaluation.tables.scores import axis_table, left_out_table
from plumbline.errors import DataError, ServiceError
from plumbline.manifest import Manifest
from plumbline.records import Rating
from plumbline.study import Study
from tests.shared import rating_of

from .conftest import FakeModel, Loader, json_of, write_outputs, write_pairs, write_study, write_verdicts

ONE, TWO = {"name": "one", "revision": "1"}, {"name": "two", "revision": "1"}
WHY = "model 'one' cannot be loaded: no such model"


def with_models(folder: Path, *models: dict[str, Any], **changes: Any) -> Study:
    return write_study(folder, evaluation={"models": list(models)}, **changes)


def broken(*names: str) -> Loader:
    return Loader(broken=lambda name: ServiceError(WHY) if name in names else None)


def mteb_files(study: Study) -> dict[str, Any]:
    folder = study.folder / "mteb"
    return {str(path.relative_to(folder)): json_of(path) for path in folder.rglob("*.json")}


def test_a_model_that_is_put_back_has_its_scores(evaluated: Study, tmp_path: Path) -> None:
    before, files = EvaluationRecords(evaluated).scores, mteb_files(evaluated)
    for models in ((TWO,), ({"name": "broken", "revision": "1"},)):
        changed = with_models(tmp_path, *models)
        evaluate(changed, load=broken("broken"))
        assert "one" not in set(EvaluationRecords(changed).scores["model"]) and not any(
            "one" in name for name in mteb_files(changed)
        )
    again = Loader()
    outcome = evaluate(with_models(tmp_path, ONE, TWO), models=["one"], load=again)
    assert (outcome.made, outcome.kept) == (0, 12)
    pd.testing.assert_frame_equal(EvaluationRecords(evaluated).scores, before)
    assert mteb_files(evaluated) == files


def test_a_data_set_that_is_put_back_has_its_scores(evaluated: Study, tmp_path: Path) -> None:
    before = EvaluationRecords(evaluated).scores
    text = evaluated.file.read_text(encoding="utf-8")
    kept = json.loads(json.dumps(evaluated.model_dump(mode="json"))).get("datasets")[:1]
    less = write_study(tmp_path, datasets=[{k: kept[0][k] for k in ("name", "task", "path", "language")}])
    write_verdicts(less)
    evaluate(less, load=Loader())
    assert set(EvaluationRecords(less).scores["dataset"]) == {"sts"}
    evaluated.file.write_text(text, encoding="utf-8")
    assert evaluate(evaluated, load=Loader()).made == 0
    pd.testing.assert_frame_equal(EvaluationRecords(evaluated).scores, before)


def test_what_comes_back_as_it_was_is_not_scored_again(evaluated_one: Study, tmp_path: Path) -> None:
    """Outputs that were away, a verdict that was another, gold scores that were others for a while."""
    before = EvaluationRecords(evaluated_one).scores
    outputs, gold = evaluated_one.transformation_file("translation", 1337), tmp_path / "sts.csv"
    kept, frame = outputs.read_bytes(), pd.read_csv(gold)

    outputs.unlink()
    evaluate(evaluated_one, models=["one"], load=Loader())
    assert (
        EvaluationRecords(evaluated_one).scores.set_index("transformation").loc["translation", "status"] == "left_out"
    ).all()
    outputs.write_bytes(kept)
    write_verdicts(evaluated_one, "translation")
    evaluate(evaluated_one, models=["one"], load=Loader())
    write_verdicts(evaluated_one)
    frame.assign(score=frame["score"][::-1].to_numpy()).to_csv(gold, index=False)
    assert evaluate(evaluated_one, models=["one"], load=Loader()).made == 3
    frame.to_csv(gold, index=False)
    assert evaluate(evaluated_one, models=["one"], load=Loader()).made == 0
    pd.testing.assert_frame_equal(EvaluationRecords(evaluated_one).scores, before)


def test_a_data_set_that_cannot_be_read_leaves_all_scores(evaluated: Study, tmp_path: Path) -> None:
    before = (evaluated.folder / "scores.parquet").read_bytes()
    (tmp_path / "requests.csv").rename(tmp_path / "away.csv")
    with pytest.raises(DataError, match="no file"):
        evaluate(evaluated, load=Loader())
    assert (evaluated.folder / "scores.parquet").read_bytes() == before


@pytest.mark.parametrize("chosen", [(), ("one",)])
def test_a_model_that_fails_is_a_row_with_its_reason(study: Study, chosen: tuple[str, ...]) -> None:
    outcome = evaluate(study, models=chosen, load=broken("one"))
    assert outcome.failures == {"one": WHY}
    scores = EvaluationRecords(study).scores
    mine = scores[scores["model"] == "one"]
    assert len(mine) == 6 and set(mine["status"]) == {"failed"} and set(mine["reason"]) == {WHY}
    assert mine["score"].isna().all() and (mine["unit_id"] == "").all()
    axes = axis_table(scores).set_index("model").loc["one"]
    assert np.isnan(axes["original"]) and axes["hteb_total_reason"] == axes["language_reason"] == WHY
    listed = left_out_table(scores)
    assert listed[listed["status"] == "failed"][["transformation", "reason"]].values.tolist() == [
        ["everything", f"one: {WHY}"]
    ]
    assert any(WHY in note for note in notes_of(scores, (), ["one", "two"], ""))


def test_the_reason_stays_until_the_model_works_and_its_scores_stay_all_the_while(study: Study, loader: Loader) -> None:
    evaluate(study, models=["two"], load=loader)
    evaluate(study, load=broken("one"))
    failed = EvaluationRecords(study).scores
    evaluate(study, models=["two"], load=Loader())
    pd.testing.assert_frame_equal(EvaluationRecords(study).scores, failed)
    assert evaluate(study, load=Loader()).made == 6
    assert set(EvaluationRecords(study).scores["status"]) == {"evaluated"}
    write_verdicts(study, "translation")  # a model that worked and works no more keeps what it has
    write_outputs(study)
    before = EvaluationRecords(study).scores
    evaluate(study, load=broken("one", "two"))
    after = EvaluationRecords(study).scores
    assert set(after["status"]) == {"evaluated", "left_out"}
    kept = before[before["transformation"] != "translation"]
    assert after.dropna(subset="score")["score"].tolist() == kept["score"].tolist()


@pytest.mark.parametrize("error", [MemoryError("Unable to allocate 9 GiB"), RuntimeError("CUDA out of memory. Tried")])
def test_memory_that_does_not_suffice_fails_the_model_and_the_others_go_on(study: Study, error: Exception) -> None:
    class Full(FakeModel):
        def similarity_pairwise(self, *_: Any) -> Any:
            raise error

    def load(_: object, spec: Any) -> Encoder:
        return Encoder(Full() if spec.name == "one" else FakeModel(), spec.name, spec.revision)

    outcome = evaluate(study, load=load)
    assert outcome.failures["one"].startswith("out of memory (") and list(outcome.failures) == ["one"]
    assert EvaluationRecords(study).scores.set_index("model").loc["two", "status"].tolist() == ["evaluated"] * 6


def rated(study: Study) -> pd.DataFrame:
    rows = [
        rating_of(pair, rater, "quality", 4).model_dump() for pair in write_pairs(study) for rater in ("a", "b", "c")
    ]
    return pd.DataFrame(rows)


def test_the_command_does_not_say_that_there_are_no_ratings_where_there_is_no_drift(study: Study) -> None:
    evaluate(study, load=broken("one", "two"))
    records = EvaluationRecords(study).changed(sample_ratings=rated(study))
    said = report(records, records.conclusion.verdicts)
    assert "no drift was computed" in said and "no pair has a rating" not in said
    assert WHY in said


@pytest.mark.usefixtures("by_hand")
def test_a_report_of_models_that_all_failed_says_why(study: Study) -> None:
    evaluate(study, load=broken("one", "two"))
    Manifest.of(study).write_table("ratings.parquet", rated(study), Rating)
    write_outputs(study)
    page = write_report(study)[0]
    assert page == study.folder / FOLDER / "index.html" and WHY.split(":")[1] in page.read_text(encoding="utf-8")

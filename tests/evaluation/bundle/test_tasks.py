"""A bundle in anybody's mteb script: real tasks, mteb's cache and its leaderboard's table."""

from __future__ import annotations

from pathlib import Path

import mteb
import pandas as pd
import pytest
from mteb.abstasks.abstask import AbsTask
from mteb.cache import ResultCache

from evaluation import plumbline_benchmark, plumbline_tasks
from evaluation.bundle import tasks as of_mteb
from evaluation.bundle.bundle import Bundle
from evaluation.models.encoder import Encoder
from evaluation.models.server import CharacterNgrams
from evaluation.records import EvaluationRecords
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

NGRAMS = "character-n-grams"
REGISTERED = "sentence-transformers/all-MiniLM-L6-v2"  # by this name, for mteb's table has its own models alone


@pytest.fixture
def model() -> Encoder:
    return Encoder(
        CharacterNgrams(ModelSpec(name=NGRAMS, kind="lexical")), REGISTERED, "8b3219a92973c328a8e22fadcfa821b5dc75636a"
    )


def test_mteb_scores_the_tasks_as_the_study_does(study: Study, bundle: Path, tmp_path: Path, model: Encoder) -> None:
    own = EvaluationRecords.open(study).scores.query("model == @NGRAMS")
    due = {(row.dataset, row.transformation): row.score for row in own.itertuples()}
    benchmark, cache = plumbline_benchmark(bundle, simulated=True), ResultCache(tmp_path)
    found = mteb.evaluate(model, benchmark, cache=cache, co2_tracker=False, show_progress_bar=False)
    made = {tuple(one.task_name.split(".")[:2]): one.get_score() for one in found.task_results}
    assert made == due and len(due) == 6  # to the last digit
    kept = cache.load_results(models=[REGISTERED], tasks=benchmark)
    (scores,) = benchmark.get_score(kept).values()
    of = {name: [due[key] for key in due if key[1] == name] for name in ("original", "paraphrasing", "translation")}
    means = {name: sum(values) / 2 for name, values in of.items()}
    assert scores["Axis::original"] == pytest.approx(means["original"], abs=1e-6)  # mteb's files have six digits
    assert scores["Axis::language"] == pytest.approx(means["translation"], abs=1e-6)
    assert scores["Total"] is None  # HTEB's total has an axis that nothing of is in it
    table = kept.get_benchmark_result()
    assert float(table.filter(like="Axis::language").iloc[0, 0]) == pytest.approx(means["translation"], abs=1e-4)


def test_tasks_say_all_that_mteb_asks(bundle: Path) -> None:
    found, opened = plumbline_tasks(bundle, simulated=True), Bundle.open(bundle)
    assert len(found) == 6 and all(isinstance(task, AbsTask) for task in found)
    names = [one.metadata.name for one in found]
    assert [one.metadata.name for one in mteb.get_tasks(tasks=names)] == names  # what mteb's command line asks for
    (task,) = (one for one in found if one.metadata.name == f"sample_sts.translation.{opened.short}")
    said = task.metadata
    assert (said.revision, said.type, said.main_score) == (opened.identity, "STS", "cosine_spearman")
    assert (said.domains, said.license, str(said.reference)) == (
        ["Written"],
        "apache-2.0",
        "https://example.org/sample",
    )
    assert "SIMULATED" in said.description and said.sample_creation == "created"
    assert "generator: plumbline-sample (recorded); rated from" in said.description
    without = opened.manifest.model_copy(update={"generator": {"kind": "none", "model": "none"}})
    assert without.generator_words == "none (functions or files transformed the texts)"
    drawn = {
        row["language"] for row in opened.outputs("translation", 1337).to_pylist() if "sample_sts" in row["datasets"]
    }
    assert drawn == {"es"} and task.languages == ["spa"] and said.eval_langs == ["spa-Latn"]
    unfilled = {name for name in type(said).model_fields if getattr(said, name) is None}
    assert unfilled == {"prompt", "bibtex_citation", "adapted_from", "contributed_by", "superseded_by"}


def test_simulated_ratings_are_refused_unless_it_is_said(bundle: Path) -> None:
    with pytest.raises(StudyError, match="SIMULATED"):
        plumbline_tasks(bundle)


def test_seeds_are_subsets_whose_mean_is_the_score(bundle: Path, model: Encoder) -> None:
    (first, second, *_) = plumbline_tasks(bundle, simulated=True)
    units = {"1": first.units["default"], "2": second.units["default"]}
    langs = {name: ["eng-Latn"] for name in units}
    both = of_mteb.task_of(
        second.metadata.model_copy(update={"eval_langs": langs, "name": "both"}), units, "paper", second.axis
    )
    found = mteb.evaluate(model, [first, second, both], cache=None, co2_tracker=False, show_progress_bar=False)
    one, other, mean = (result.get_score() for result in found.task_results)
    assert mean == pytest.approx((one + other) / 2, abs=1e-15) and one != other
    assert isinstance(found.to_dataframe(), pd.DataFrame)

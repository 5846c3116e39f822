"""Whether a model knows when it is wrong: curves and nAUC as mteb has them, originals of the same queries beside."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import mteb._evaluators.retrieval_metrics as theirs
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from annotation.records import Verdict
from evaluation import measures as beside
from evaluation.measures import Abstaining, Queries
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.records import EvaluationRecords
from evaluation.report import sensitivity_tables
from evaluation.sources import Folder
from evaluation.tables.datasets import abstention_table, not_searches
from evaluation.tasks import scoring
from evaluation.tasks.kinds import KINDS
from evaluation.units import Model, plan_units
from generation.datasets.local import TableDataset
from plumbline.statistics.abstention import _curves, abstention, confidences, nauc_error
from plumbline.statistics.estimates import Floats
from plumbline.study import Study
from tests.evaluation.conftest import FakeModel, print_verdicts, sentence, verdict, write_outputs, write_study
from tests.evaluation.tasks.test_mteb_classes import candidates as mixed_candidates
from tests.scale import scaled

pytestmark = pytest.mark.usefixtures("by_hand")


def test_a_curve_by_hand() -> None:
    # Sorted by confidence the metrics are 0.5, 0, 1, 1. Rates 0 and 0.1 leave 4 queries (round(0.4) = 0), 0.2 and 0.3
    # leave 3, 0.4 to 0.6 leave 2 (1.6, 2, 2.4), 0.7 to 0.9 one (2.8, 3.2, and 3.6, of which one query stays).
    found = abstention([0.9, 0.8, 0.3, 0.2], [1.0, 1.0, 0.0, 0.5])
    assert found.curve == pytest.approx([0.625] * 2 + [2 / 3] * 2 + [1.0] * 6)
    assert found.oracle == pytest.approx([0.625] * 2 + [2.5 / 3] * 2 + [1.0] * 6)
    # Trapezoids over nine steps of 0.1, above the flat line of 0.625.
    area, best = (0.1 * (sum(one) - (one[0] + one[-1]) / 2) - 0.9 * 0.625 for one in (found.curve, found.oracle))
    assert found.nauc == pytest.approx(area / best) == pytest.approx(0.8655, abs=1e-4)


def test_naucs_and_confidences_are_mtebs() -> None:
    rng = np.random.default_rng(0)
    for turn in range(300):
        n = int(rng.integers(2, 60))
        sure = np.round(rng.random(n), int(rng.integers(1, 9)))  # with ties and without
        metric = rng.integers(0, 4, n) / 3 if turn % 2 else rng.random(n)
        metric[0] += 1  # not all equal
        assert abstention(sure, metric).nauc == pytest.approx(theirs.nauc(sure, metric), abs=1e-12)
        assert confidences(sure.tolist()) == pytest.approx(tuple(theirs.confidence_scores(sure.tolist()).values()))
    assert confidences([]) == (0, 0, 0) and confidences([0.4]) == (0.4, 0, 0)


def test_the_error_of_an_nauc_is_that_of_its_resamples_and_covers() -> None:
    rng = np.random.default_rng(5)
    sure, metric = np.round(rng.normal(size=40), 1), rng.choice([0, 0.3, 1], 40)  # with ties
    drawn = rng.multinomial(40, np.full(40, 1 / 40), size=50)
    one_by_one = [abstention(np.repeat(sure, times), np.repeat(metric, times)) for times in drawn]
    at_once = [_curves(one, metric, drawn.astype(float)) for one in (sure, metric)]
    assert at_once[0] == pytest.approx(np.array([one.curve for one in one_by_one]))
    assert at_once[1] == pytest.approx(np.array([one.oracle for one in one_by_one]))
    spread = np.std([abstention(sure[at], metric[at]).nauc for at in rng.integers(0, 40, (400, 40))], ddof=1)
    assert nauc_error(sure, metric, rng=rng) == pytest.approx(spread, rel=0.2)
    assert math.isnan(nauc_error([0.1, 0.2], [0.5, 0.5], rng=rng)) and math.isnan(nauc_error([], [], rng=rng))
    assert math.isnan(nauc_error([0.1, 0.2, 0.3], [0.5, 0.5, 1], rng=rng))  # in 8/27 + 1/27 of resamples all are equal

    def sampled(n: int) -> tuple[Floats, Floats]:
        good = rng.normal(size=n)
        return good / 2 + rng.normal(size=n), np.clip(np.round(good + 0.5, 1), 0, 1)

    turns, truth = scaled(100, 1000), abstention(*sampled(200_000)).nauc
    made = [sampled(100) for _ in range(turns)]
    held = sum(abs(abstention(*one).nauc - truth) <= 1.96 * nauc_error(*one, n_resamples=100, rng=rng) for one in made)
    assert stats.binom.ppf(0.0005, turns, 0.94) <= held <= stats.binom.ppf(0.9995, turns, 0.95)


def test_what_is_undefined_says_why() -> None:
    for sure, metric, reason in (
        ([], [], "there is no query"),
        ([0.1, 0.2], [0.5, 0.5], "all queries have the same score"),
        ([0.1, math.nan], [0.5, 0.4], "undefined"),
    ):
        found = abstention(sure, metric)
        assert math.isnan(found.nauc) and reason in found.reason
    with pytest.raises(ValueError, match="a confidence and a metric for each query"):
        abstention([0.1], [0.1, 0.2])


def reranking() -> TableDataset:
    return TableDataset("d", "reranking", "en", "1", {"test": mixed_candidates()})


def retrieval() -> TableDataset:
    corpus = {f"p{n}": sentence(n, 5) for n in range(60)}
    queries = pd.DataFrame({"id": [f"q{n}" for n in range(20)], "query": [sentence(n + n % 3) for n in range(20)]})
    return TableDataset(
        "d", "retrieval", "en", "1", {"test": queries}, corpus, {f"q{n}": {f"p{n}": 1} for n in range(20)}
    )


@pytest.mark.parametrize(("made", "metric"), [(reranking, "map_at_1000"), (retrieval, "ndcg_at_10")])
def test_queries_of_a_task_come_to_mtebs_own_nauc(made: Callable[[], TableDataset], metric: str) -> None:
    watch = Queries(metric)
    result = scoring.evaluate_task(made(), Encoder(FakeModel(), "x", "1"), "paper", 8, prepare=watch.on)
    ((own,),) = result.scores.values()
    (part,) = watch.parts
    assert len(part.metric) == 20 and np.mean(part.metric) == pytest.approx(own[metric], abs=1e-5)
    for place, name in enumerate(("max", "std", "diff1")):
        found = abstention([one[place] for one in part.sure], part.metric)
        assert found.nauc == pytest.approx(own[f"nauc_{metric}_{name}"], abs=1e-9)


def candidates(n: int) -> list[dict[str, object]]:
    """Queries of growing likeness to what they look for."""
    rng = np.random.default_rng(8)
    return [
        {"query": sentence(k), "positive": [f"{sentence(k)[: 4 + 2 * k]} today"], "negative": rng.permutation(
            [sentence(100 + 3 * k + j) for j in range(3)]).tolist()}
        for k in range(n)
    ]  # fmt: skip


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "find.jsonl").write_text("\n".join(map(json.dumps, candidates(12))), encoding="utf-8")
    datasets = [
        {"name": "find", "task": "reranking", "path": "find.jsonl", "language": "en"},
        {"name": "sts", "task": "sts", "path": "sts.csv", "language": "en"},
    ]
    models = {"models": [{"name": "one", "revision": "1"}], "abstention": True}
    study = write_study(tmp_path, datasets=datasets, evaluation=models)
    write_outputs(study, lambda text, name: "failed" if text == sentence(3) and name == "translation" else "ok")
    print_verdicts(study, [verdict(study, name) for name in study.transformations])
    return study


def measured(study: Study) -> pd.DataFrame:
    verdicts, records = [verdict(study, name) for name in study.transformations], EvaluationRecords(study)
    units = plan_units(Folder(study), [Verdict.model_validate(one) for one in verdicts], [], include_rejected=False)
    (model,) = Model.all_of(ModelHost.of(study))
    (_, measure) = beside.measures(records)
    table = beside.MeasureTable(records, units, [model], measure)
    for piece in beside.pieces([table.todo(model)]):
        found = piece(Encoder(FakeModel(), model.name, model.revision))
        table.save(model, found.key, found.rows)
    table.write()
    return EvaluationRecords(study).abstention


def test_originals_of_the_same_queries_stand_beside(study: Study) -> None:
    rows = measured(study).set_index(["confidence", "dataset", "transformation"]).loc["max"]
    whole, moved, fewer = (rows.loc[("find", name)] for name in ("original", "paraphrasing", "translation"))
    assert (whole["n"], moved["n"], fewer["n"]) == (12, 12, 11)
    assert whole["axis"] == "original" and whole["nauc"] == whole["nauc_original"]
    assert moved["nauc_original"] == whole["nauc"]
    # One query's output failed, so the original texts of the eleven others stand beside it.
    assert fewer["nauc_original"] != whole["nauc"]
    # The words' order means nothing to a bag of words: a paraphrase is as sure as its original.
    assert moved["nauc"] == pytest.approx(whole["nauc"])
    for name in ("original", "paraphrasing"):
        other = rows.loc[("sts", name)]
        assert other["n"] == 0 and math.isnan(other["nauc"]) and other["reason"] == KINDS["sts"].no_abstention


def test_tables_of_it(study: Study) -> None:
    rows = measured(study)
    table = abstention_table(rows)
    assert table["transformation"].tolist() == ["original", "paraphrasing", "translation"]
    assert table["n_queries"].tolist() == [12, 12, 11] and (table["n_datasets"] == 1).all()
    assert not_searches(rows) == {"sts": KINDS["sts"].no_abstention}
    first = rows[rows["confidence"] == "diff1"].iloc[:1]
    error, nauc = first["nauc_error"].iloc[0], first["nauc"].iloc[0]
    ends = table[["nauc_low_diff1", "nauc_high_diff1"]].iloc[0]
    assert error > 0 and ends.tolist() == pytest.approx([nauc - 1.959964 * error, min(nauc + 1.959964 * error, 1)])
    # Two data sets: the root of the summed squares, halved; two seeds of one share their queries: the mean.
    both = pd.concat([rows.iloc[:3], first.assign(dataset="other", nauc_error=0.3)])
    assert abstention_table(both)["nauc_low_diff1"].iloc[0] == pytest.approx(
        nauc - 1.959964 * math.hypot(error, 0.3) / 2
    )
    seeds = pd.concat([rows.iloc[:3], first.assign(seed=2, nauc_error=0.3)])
    assert abstention_table(seeds)["nauc_low_diff1"].iloc[0] == pytest.approx(nauc - 1.959964 * (error + 0.3) / 2)
    shown = sensitivity_tables.nauc(rows)
    assert f"sts: {KINDS['sts'].no_abstention}" in shown.notes and any(
        note.startswith("Few queries (11") for note in shown.notes
    )
    assert shown.printed["Transformation"].tolist() == ["Original", "Paraphrasing", "Translation"]
    assert abstention_table(rows.iloc[:0]).empty


def test_a_study_that_does_not_ask_has_none(study: Study) -> None:
    measured(study)
    silent = study.model_copy(update={"evaluation": study.evaluation.model_copy(update={"abstention": False})})
    assert EvaluationRecords(silent).abstention.empty
    assert not any(isinstance(one, Abstaining) for one in beside.measures(EvaluationRecords(silent)))

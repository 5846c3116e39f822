"""A human study evaluated: people and models on the same items, and as mteb reads and ranks them."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace

import mteb
import pandas as pd
import pytest
from mteb.cache import ResultCache
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from annotation.human.records import ANSWERS, HumanAnswer
from evaluation import human_benchmark
from evaluation.human import records
from evaluation.human.compare import TaskPart, compare
from evaluation.human.models import ModelScores
from evaluation.human.mteb_results import results_of
from evaluation.human.records import HumanDifference, HumanItemScore, HumanRecords, HumanScore
from evaluation.human.report import write_report
from evaluation.human.run import evaluate_human, lines_of
from evaluation.human.sampled import gold_of, sampled
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.server import CharacterNgrams
from evaluation.units import Model
from plumbline.errors import DataError, ServiceError
from plumbline.manifest import Manifest
from plumbline.store import read_frame
from plumbline.study import ROOT, Study, load_study
from tests.evaluation.human.sampling import items_of, task_of
from tests.mteb_site import site

NGRAMS = "character-n-grams"
REGISTERED = "sentence-transformers/all-MiniLM-L6-v2"  # a name that mteb's tables know
REVISION = "8b3219a92973c328a8e22fadcfa821b5dc75636a"


def _scores(study: Study) -> pd.DataFrame:
    return Manifest.of(study).frame(records.SCORES, HumanScore, "x")


def test_people_and_models_stand_on_the_same_items(study: Study) -> None:
    scores = _scores(study)
    main = scores[scores["main"]]
    assert set(main["scorer_kind"]) == {"rater", "raters_mean", "aggregate", "llm", "model", "trivial"}
    assert (main.groupby("task")["n_items"].nunique() == 1).all()
    assert scores.loc[scores["scorer_kind"] == "rater", "simulated"].all()
    items = read_frame(study.folder / records.ITEM_SCORES, HumanItemScore, "x")
    answers = read_frame(study.folder / ANSWERS, HumanAnswer, "x")
    gold = items[items["scorer_kind"] == "gold"].set_index(["task", "item"])["answer"]
    for rater_id, own in answers[answers["task"] == "sample_intents"].groupby("rater_id"):
        right = [gold["sample_intents", item] == label for item, label in zip(own["item"], own["label"], strict=True)]
        mine = main[
            (main["task"] == "sample_intents") & (main["scorer_kind"] == "rater") & (main["scorer"] == rater_id)
        ]
        due = float(mine["score"].iloc[0])
        assert due == pytest.approx(sum(right) / len(right), abs=1e-12)
    differences = read_frame(study.folder / records.DIFFERENCES, HumanDifference, "x")
    score_of = main.set_index(["task", "scorer_kind", "scorer"])["score"]
    kind_of = dict(zip(main["scorer"], main["scorer_kind"], strict=True))
    for row in differences.itertuples():
        people = score_of.get((row.task, row.people, row.people), math.nan)
        expected = people - score_of[row.task, kind_of[row.model], row.model]
        assert row.difference == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_models_have_the_other_metrics_of_people_as_mteb_has_them(study: Study) -> None:
    scores = _scores(study)
    others = scores[(scores["scorer_kind"] == "model") & ~scores["main"]]
    host = ModelHost.of(study)
    (model,) = Model.all_of(host)
    samples = {sample.task.task: sample for sample in HumanRecords(study).samples}
    items = read_frame(study.folder / records.ITEM_SCORES, HumanItemScore, "x")
    gold = items[items["scorer_kind"] == "gold"].set_index(["task", "item"])["answer"]
    for task, metric, score in others[["task", "metric", "score"]].itertuples(index=False):
        own = ModelScores.of(host).stored(model, samples[task])
        assert own is not None
        measures = {"ami": adjusted_mutual_info_score, "ari": adjusted_rand_score}
        right = gold[task][list(samples[task].units)]
        due = measures[metric](right, own.made) if metric in measures else own.measures[metric]
        assert score == pytest.approx(due, abs=1e-5), (task, metric)
    assert set(others["metric"]) == {"f1", "f1_weighted", "ndcg_at_10", "ami", "ari"}
    assert others.loc[others["metric"] == "f1", "low"].notna().all()


def test_what_is_scored_is_kept_and_nothing_else_changes(study: Study) -> None:
    before = _scores(study)

    def load(*_: object) -> Encoder:
        raise AssertionError("no model has anything left")

    done = evaluate_human(study, load=load)
    assert (done.outcome.made, done.outcome.kept, done.outcome.failures) == (0, 6, {})
    pd.testing.assert_frame_equal(_scores(study), before)
    simulated, line, *_ = lines_of(done.compared)
    assert simulated.startswith("SIMULATED") and "best model" in line and "best language model" in line
    fewer = before["scorer_kind"].isin(("llm", "model"))
    apart = before.assign(n_items=before["n_items"].mask(fewer, 999), compared=~fewer)
    _, alone, *_ = lines_of(replace(done.compared, scores=apart))
    assert alone == line.partition(", best model")[0]
    file = next((study.folder / records.MADE).glob("*.json"))
    file.write_text(file.read_text().replace('"main_score": 0.', '"main_score": 0.9'))
    with pytest.raises(DataError, match=r"differs from what was written \(edited by hand\)"):
        evaluate_human(study, load=load)


def test_a_data_set_that_changed_is_refused(study: Study) -> None:
    data = study.file.parent / "pairs.csv"
    data.write_text((ROOT / "studies/demo/pairs.csv").read_text() + "\n")
    text = study.file.read_text().replace(f"{ROOT}/studies/demo/pairs.csv", str(data))
    study.file.write_text(text)
    with pytest.raises(
        DataError, match=r"data set 'sample_sts' is not the one that the items of 'sample_sts' were drawn"
    ):
        _ = HumanRecords(load_study(study.file, study.folder.parent)).samples
    with pytest.raises(DataError, match=r"data set 'sample_sts' is not the one"):
        write_report(load_study(study.file, study.folder.parent))


def test_mteb_loads_people_beside_models_and_ranks_them(study: Study) -> None:
    answers = read_frame(study.folder / ANSWERS, HumanAnswer, "x")
    Manifest.of(study).write_table(ANSWERS, answers.assign(simulated=False), HumanAnswer)
    evaluate_human(study)
    scores, folder = _scores(study), study.folder / "human" / "mteb"
    benchmark, cache = human_benchmark(study.file, exports=study.folder.parent), ResultCache(folder)
    model = Encoder(CharacterNgrams(), REGISTERED, REVISION)
    made = mteb.evaluate(model, benchmark, cache=cache, co2_tracker=False, show_progress_bar=False)
    main = scores[scores["main"]].set_index(["scorer_kind", "scorer", "task"])["score"]
    names = {task.metadata.name: task.metadata.name.split(".")[0] for task in benchmark.tasks}
    for result in made.task_results:  # the study's own numbers; mteb rounds what it measures of searches to five digits
        assert result.get_score() == pytest.approx(main["model", NGRAMS, names[result.task_name]], abs=5e-6)
    found = cache.load_results(tasks=benchmark, include_remote=False)
    frame = (
        found.to_dataframe(format="long").replace({"task_name": names}).set_index(["model_name", "task_name"])["score"]
    )
    for task in names.values():
        assert frame["baseline/Human", task] == pytest.approx(main["raters_mean", "raters_mean", task], abs=1e-9)
    table = found.get_benchmark_result().set_index("Model")
    ranks = {str(name): int(rank) for name, rank in table["Rank (Borda)"].items()}
    (people,) = (rank for name, rank in ranks.items() if "Human" in name)
    (machine,) = (rank for name, rank in ranks.items() if "MiniLM" in name)
    assert people < machine
    file = next(folder.glob("results/baseline__Human/raters_mean/sample_sts*.json"))
    (subset,) = json.loads(file.read_text())["scores"]["test"]
    assert [one["rater"] for one in subset["scores_per_experiment"]] == sorted(answers["rater_id"].unique())
    assert subset["agreement"]["Spearman"] > 0.8
    assert not list(folder.glob("results/simulated*/**/*.json"))


def test_simulated_people_are_no_baseline(study: Study) -> None:
    folder = study.folder / "human" / "mteb" / "results"
    assert (folder / "simulated__Human").is_dir() and not (folder / "baseline__Human").exists()
    file = next(folder.glob("simulated__Human/raters_mean/sample_sts*.json"))
    assert json.loads(file.read_text())["plumbline"]["simulated"] is True


def test_subsets_and_languages_are_subsets_of_one_task_in_mteb() -> None:
    """Two subsets of one task: a file has both, a scorer that lacks one has no file."""
    whole = site().tasks["STS17"]
    task = task_of(whole, task="sts17", scale=(0, 1, 2, 3, 4, 5), content_hash="c" * 32)
    names = {"en-de": "en", "ar-ar": "ar"}
    items = [
        one.model_copy(update={"task": "sts17", "language": code})
        for subset, code in names.items()
        for one in items_of([f"{subset}/{row}" for row in range(5)], subset)
    ]
    parts = []
    for one in sampled(whole, task, items):
        gold = gold_of(one)
        said = gold.assign(task="sts17", abstained=False, simulated=False)
        raters = ["first", "second"] if one.subset == "en-de" else ["first"]
        answers = pd.concat([said.assign(rater_id=rater) for rater in raters], ignore_index=True)
        parts.append(TaskPart(one, answers, answers.iloc[:0], {}))
    compared = compare(parts, seed=1)
    assert set(zip(compared.scores["subset"], compared.scores["language"], strict=True)) == set(names.items())
    made = {name: result for name, _, result in results_of(parts, compared)}
    assert set(made) == {"baseline/Human", "baseline/Human-aggregate", "baseline/Human-first"}
    subsets = made["baseline/Human"]["scores"]["test"]
    assert [(one["hf_subset"], one["languages"], one["main_score"]) for one in subsets] == [
        ("en-de", ["eng-Latn"], pytest.approx(1)),
        ("ar-ar", ["ara-Arab"], pytest.approx(1)),
    ]
    fewer = compared.scores.assign(compared=compared.scores["scorer"] != "first")
    named = [name for name, *_ in results_of(parts, replace(compared, scores=fewer))]
    assert set(named) == {"baseline/Human", "baseline/Human-aggregate"}  # mteb would rank the other


def test_a_model_that_fails_is_told_and_the_others_stand(study: Study) -> None:
    shutil.rmtree(study.folder / records.MADE)

    def load(*_: object) -> Encoder:
        raise ServiceError("no weights")

    done = evaluate_human(study, load=load)
    assert done.outcome.failures == {NGRAMS: "no weights"}
    assert set(done.compared.scores["scorer_kind"]) == {*("rater", "raters_mean", "aggregate", "llm", "trivial")}

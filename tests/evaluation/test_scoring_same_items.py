"""Where outputs failed, the original is scored on the same items, and every difference is from that score."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from evaluation.records import EvaluationRecords
from evaluation.report.material import SAME_ITEMS, notes_of
from evaluation.scoring import evaluate
from evaluation.tables.comparisons import difference_table, kendall_table, ranking_table, shift_table
from evaluation.tables.datasets import dataset_averages, dataset_totals, profile_table, score_drops
from evaluation.tables.generators import generator_table
from evaluation.tables.scores import TOTAL, axis_table, transformation_table, whole_data_sets
from evaluation.tasks import scoring
from evaluation.texts import Outputs, same_items, transformed
from evaluation.units import UNDEFINED_ORIGINAL
from generation.datasets.local import TableDataset
from plumbline.study import Study
from plumbline.study.datasets import TaskType
from plumbline.study.transformations import AXES

from .conftest import Loader, cosine, vectors
from .made_scores import score_row
from .scored import failing, rows


def rho(frame: pd.DataFrame) -> float:
    return float(spearmanr(frame["score"], list(map(cosine, frame["sentence1"], frame["sentence2"]))).statistic)


def accuracy(train: pd.DataFrame, test: pd.DataFrame) -> float:
    model = LogisticRegression(max_iter=100, random_state=42).fit(vectors(train["text"]), train["label"])
    return float((model.predict(vectors(test["text"])) == test["label"]).mean())


def test_the_original_is_scored_on_the_items_that_failures_leave(study: Study, tmp_path: Path, loader: Loader) -> None:
    pairs, requests = pd.read_csv(tmp_path / "sts.csv"), pd.read_csv(tmp_path / "requests.csv")
    lost = requests[requests["split"] == "test"]["text"].iloc[[1, 4, 6]]
    failing(study, *pairs["sentence1"].iloc[[2, 3, 8]], *lost, requests["text"].iloc[5])
    evaluate(study, models=["one"], load=loader)

    found = rows(study, "sts")
    left = pairs.drop(index=[2, 3, 8])
    assert found.loc["translation", "original_score"] == pytest.approx(rho(left), abs=1e-6)
    assert abs(rho(left) - rho(pairs)) > 0.01
    assert found.loc["original", "score"] == pytest.approx(rho(pairs), abs=1e-6)
    found = rows(study, "requests")
    train, test = (requests[requests["split"] == split] for split in ("train", "test"))
    expected = accuracy(train[train.index != 5], test[~test["text"].isin(lost)])
    assert found.loc["translation", "original_score"] == pytest.approx(expected)


def test_where_nothing_failed_it_is_the_originals_score_and_nothing_is_done_for_it(
    study: Study, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    whole = scoring.evaluate_task
    monkeypatch.setattr(scoring, "evaluate_task", lambda *args: made.append(args[0].name) or whole(*args))
    evaluate(study, models=["one"], load=loader)
    assert len(made) == 6  # two data sets: the original and two transformations
    for name in ("sts", "requests"):
        found = rows(study, name)
        assert (found["original_score"] == found.loc["original", "score"]).all()


def test_it_takes_one_more_scoring_a_selection_of_items_and_no_encoding(
    study: Study, tmp_path: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = list(pd.read_csv(tmp_path / "sts.csv")["sentence1"])
    failing(study, *texts[:2])
    made = []
    whole = scoring.evaluate_task
    monkeypatch.setattr(scoring, "evaluate_task", lambda *args: made.append(args[0].name) or whole(*args))
    outcome = evaluate(study, models=["one"], load=loader)
    assert made.count("sts") == 4 and made.count("requests") == 3
    assert len(loader.model.seen) == len(set(loader.model.seen)) == outcome.encoded
    assert evaluate(study, models=["one"], load=Loader()).made == 0


def test_an_original_that_is_undefined_on_the_same_items_says_so(
    study: Study, tmp_path: Path, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "evaluate", lambda *_: math.nan)
    failing(study, *list(pd.read_csv(tmp_path / "sts.csv")["sentence1"])[:3])
    for _ in range(2):
        evaluate(study, models=["one"], load=loader)
        row = rows(study, "sts").loc["translation"]
        assert math.isnan(row["original_score"]) and row["reason"] == UNDEFINED_ORIGINAL
        table = transformation_table(EvaluationRecords(study).scores).set_index("transformation")
        assert table.loc["translation", "reason"] == UNDEFINED_ORIGINAL


FRAMES: dict[TaskType, dict[str, list[Any]]] = {
    "sts": {"sentence1": ["a", "b", "c"], "sentence2": ["d", "e", "f"], "score": [1.0, 2.0, 3.0]},
    "pair_classification": {"sentence1": ["a", "b", "c"], "sentence2": ["d", "e", "f"], "label": [0, 1, 1]},
    "bitext_mining": {"sentence1": ["a", "b", "c"], "sentence2": ["d", "e", "f"]},
    "clustering": {"text": ["a", "b", "c"], "label": ["x", "y", "x"]},
    "classification": {"text": ["a", "b", "c"], "label": ["x", "y", "x"]},
    "multilabel_classification": {"text": ["a", "b", "c"], "label": [["x"], ["y"], ["x", "y"]]},
    "reranking": {"query": ["a", "b", "c"], "positive": [["d"], ["e"], ["f"]], "negative": [["g"], ["h"], ["i", "j"]]},
    "summarisation": {
        "human_summaries": [["a", "d"], ["e"]],
        "machine_summaries": [["b", "c"], ["g", "h"]],
        "relevance": [[1.0, 2.0], [3.0, 1.0]],
    },
    "retrieval": {"id": ["q1", "q2"], "query": ["b", "c"]},
}


@pytest.mark.parametrize("task", list(FRAMES))
@pytest.mark.parametrize("failed", [("b",), ("a", "h", "c"), ("p1", "b")])
def test_the_same_items_are_left_of_every_task(task: TaskType, failed: tuple[str, ...]) -> None:
    """With outputs that are equal to their originals the transformed data set is the original on its items."""
    frame = pd.DataFrame(FRAMES[task])
    splits = {"train": frame, "test": frame} if task.endswith("classification") and "text" in frame else {"test": frame}
    search: dict[str, Any] = {}
    if task == "retrieval":
        search = {"corpus": {"1": "p1", "2": "p2"}, "qrels": {"q1": {"1": 1}, "q2": {"2": 1, "1": 1}}, "passages": True}
    dataset = TableDataset("d", task, "en", "1", splits, **search)
    ids = {text.text_id: text.text for text in dataset.texts()}
    outputs = Outputs(
        {key: text for key, text in ids.items() if text not in failed},
        frozenset(key for key, text in ids.items() if text in failed),
    )
    before, after = same_items(dataset, outputs), transformed(dataset, outputs)
    assert before.sizes() == after.sizes()
    assert (before.corpus, before.qrels) == (after.corpus, after.qrels)
    for split in splits:
        pd.testing.assert_frame_equal(before.splits[split], after.splits[split])


DROPPED = {"n_failed": 3}
NAMES = ("paraphrasing", "expansion", "translation")


def dropped() -> pd.DataFrame:
    """Two models on two data sets; on b the survivors' originals are 0.30 below the whole (0.50, not 0.80)."""
    made = []
    for place, model in enumerate(("m", "k")):
        for dataset in ("a", "b"):
            original = 0.8 - 0.1 * place
            made.append(score_row(model, dataset, "original", original))
            for number, name in enumerate(NAMES):
                same = {**DROPPED, "original_score": original - 0.3} if dataset == "b" else {}
                score = (original - 0.3 if same else original) - 0.01 * (number + 1)
                made.append(score_row(model, dataset, name, score, **same))
    return pd.DataFrame(made)


def test_every_difference_is_from_the_same_items() -> None:
    """Against whole originals all of these would be 15 points further down."""
    scores = dropped()
    by_name = transformation_table(scores).set_index(["model", "transformation"])
    assert by_name.loc["m", "difference"].tolist() == pytest.approx([-1, -2, -3])
    assert by_name.loc[("m", "paraphrasing"), ["original", "original_all"]].tolist() == pytest.approx([0.65, 0.8])
    axes = axis_table(scores).set_index("model").loc["m"]
    assert [axes[f"{axis}_difference"] for axis in (*AXES, TOTAL)] == pytest.approx([-1, -2, -3, -2])
    assert axes["original"] == pytest.approx(0.8) and axes["length_original"] == pytest.approx(0.65)
    totals = dataset_totals(scores).set_index(["model", "dataset"])
    assert totals.loc[("m", "b"), ["original", "original_same", "difference"]].tolist() == pytest.approx([0.8, 0.5, -2])
    averages = dataset_averages(totals.reset_index()).set_index("model")
    assert averages.loc["m", ["original", "difference"]].tolist() == pytest.approx([0.8, -2])
    shifts = shift_table(scores).set_index("name")
    assert shifts.loc["expansion", ["shift", "median_absolute"]].tolist() == pytest.approx([-2, 2])
    assert score_drops(scores).groupby("transformation")["drop"].max()["translation"] == pytest.approx(3)
    assert profile_table(scores)["size"].max() == pytest.approx(3)
    of_generators = generator_table(scores, scores).set_index("name")
    assert of_generators.loc["expansion", ["original", "first_difference"]].tolist() == pytest.approx([0.75, -2])
    assert "12 items" not in of_generators.loc["expansion", "reason"]
    assert "18 items of the first study" in of_generators.loc["expansion", "reason"]


def test_tau_compares_rankings_on_the_same_items() -> None:
    """On the survivors k is the better one before and after; on all items m is before."""
    scores = dropped()
    of_k = (scores["model"] == "k") & (scores["dataset"] == "b") & (scores["transformation"] != "original")
    scores.loc[of_k, ["original_score", "score"]] = [0.6, 0.59]
    table = kendall_table(scores).set_index("name")
    assert table.loc["expansion", "tau"] == 1
    assert ranking_table(scores, transformed=False)["model"].tolist() == ["m", "k"]


def test_the_report_says_that_items_were_dropped() -> None:
    assert SAME_ITEMS in notes_of(dropped(), (), [], "")
    whole = dropped().assign(n_failed=0)
    assert SAME_ITEMS not in notes_of(whole, (), [], "")


def test_models_are_compared_on_transformations_and_seeds_that_both_have() -> None:
    """Without its expansion k's total on a would rest on easier texts than m's."""
    scores = dropped()
    lacking = (scores["model"] == "k") & (scores["dataset"] == "a") & (scores["transformation"] == "expansion")
    more = scores[lacking].assign(seed=2, score=0.1)
    for some in (scores[~lacking], pd.concat([scores, more])):
        lone = "k" if len(some) < len(scores) else "m"
        left = whole_data_sets(some[some["transformation"] != "original"])
        assert set(zip(left["model"], left["dataset"], strict=True)) == {
            (model, dataset) for model in "mk" for dataset in "ab" if (model, dataset) != (lone, "a")
        }
        row = difference_table(some, 0).iloc[0]
        assert row["n"] == 1
        ranks = ranking_table(some, transformed=True).set_index("model")
        assert ranks.loc[lone, "n_datasets"] == 1 and math.isnan(ranks.loc[lone, "mean"])


def test_a_mean_over_something_undefined_is_nan_and_says_why() -> None:
    scores = dropped()
    one = (scores["model"] == "m") & (scores["dataset"] == "a") & (scores["transformation"] == "expansion")
    scores.loc[one, ["score", "reason"]] = [math.nan, "the metric is undefined: all gold values are equal"]
    table = transformation_table(scores).set_index(["model", "transformation"])
    assert math.isnan(table.loc[("m", "expansion"), "score"]) and "undefined" in table.loc[("m", "expansion"), "reason"]
    axes = axis_table(scores).set_index("model")
    assert (
        math.isnan(axes.loc["m", "length"]) and "expansion: the metric is undefined" in axes.loc["m", "length_reason"]
    )
    assert axes.loc["m", "hteb_total_reason"] == "no score for: length" and not math.isnan(axes.loc["k", "hteb_total"])
    seeds = scores[one].assign(seed=2, score=0.7, reason="")
    both = transformation_table(pd.concat([scores, seeds])).set_index(["model", "transformation"])
    assert math.isnan(both.loc[("m", "expansion"), "score"])  # one of its two seeds
    shared = shift_table(scores).set_index("name")
    assert shared.loc["expansion", "n"] == 1 and "without 1 of 6 data sets" in shared.loc["expansion", "reason"]

"""HUME's tables, ranks, wins, intervals and stars, from the scores that its authors published."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from evaluation.human.agreement import flag
from evaluation.human.scores import score
from evaluation.human.standing import (
    by_group,
    by_type,
    difficulty,
    fisher_interval,
    gaps,
    in_languages,
    pairs_by_scorer,
    paper_interval,
    rank,
    relative,
    shared_difficulty,
    table_8,
    wilson_interval,
    wins,
)
from plumbline.study import ROOT
from tests.evaluation.human.made import people, task_of

PRINTED = ROOT / "tests" / "evaluation" / "printed"
SHARED = ROOT.parent / "shared" / "data" / "hume"
FACTS = ["task_type", "task", "language", "n", "raters", "lower", "higher"]
ROUNDED, HALF = 0.05, 0.0551  # printed to a tenth; some were so to a hundredth before: 41.7451, 41.75, 41.8


def printed(name: str) -> pd.DataFrame:
    return pd.read_csv(PRINTED / f"hume_{name}.csv")


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    """One row for each pair and scorer: the paper's people, the mean of its raters, its models."""
    wide = printed("scores")
    wide["raters_mean"] = (wide["lower"] + wide["higher"]) / 2
    long = wide.melt(FACTS, var_name="scorer", value_name="score")
    return long.assign(score=long["score"] / 100)


@pytest.fixture(scope="module")
def pairs(scores: pd.DataFrame) -> pd.DataFrame:
    return pairs_by_scorer(scores)


def test_table_1_comes_out(pairs: pd.DataFrame) -> None:
    assert len(pairs) == 26 and pairs.attrs["left_out"] == 2  # the French ones
    mine, paper = 100 * by_group(pairs), printed("table_1").set_index("model")
    mine.columns = [" ".join(one).strip() for one in mine.columns]
    apart = (mine.loc[paper.index, paper.drop(columns="overall").columns] - paper.drop(columns="overall")).abs()
    assert apart.size == 14 * 14
    exact = mine.loc[paper.index, apart.columns].round(1) == paper[apart.columns]
    assert int(exact.to_numpy().sum()) >= 193  # the others are halves
    assert apart.to_numpy().max() <= HALF
    np.testing.assert_allclose(mine.loc[paper.index, "overall"], paper["overall"], atol=ROUNDED)
    assert by_group(pairs).attrs["pairs"]["classification", "eng"] == 4


def test_people_are_fourth_by_the_papers_aggregate_and_seventh_by_the_mean_of_raters(pairs: pd.DataFrame) -> None:
    assert rank(pairs.drop(columns="raters_mean"), "Human") == (4, 14)
    assert rank(pairs.drop(columns="Human"), "raters_mean") == (7, 14)
    assert 100 * pairs["raters_mean"].mean() == pytest.approx(76.2, abs=ROUNDED)


def test_wins_are_those_of_the_paper(pairs: pd.DataFrame) -> None:
    papers = pairs.drop(columns="raters_mean")
    found = wins(papers, "Human").set_index("against")
    assert found["wins"].to_dict() == {"best": 4, "median": 16, "mean": 16} and set(found["n"]) == {26}
    assert found["share"].round(3).to_dict() == {"best": 0.154, "median": 0.615, "mean": 0.615}
    of_raters = wins(pairs.drop(columns="Human"), "raters_mean").set_index("against")
    assert of_raters.at["median", "wins"] == 13
    by_language = wins(papers, "Human", by="language").set_index(["against", "group"])
    best = {"ara": 67, "nob": 50, "rus": 33, "dan": 0, "eng": 0}
    assert {one: round(100 * by_language.at[("best", one), "share"]) for one in best} == best
    assert by_language.at[("mean", "ara"), "share"] == 1.0
    by_type = wins(papers, "Human", by="task_type").set_index(["against", "group"])
    assert by_type.at[("best", "classification"), "wins"] == 3 and by_type.at[("best", "sts"), "wins"] == 1


def by_task(wide: pd.DataFrame, task_type: str) -> pd.DataFrame:
    """Each scorer's mean over the languages of each task of a type."""
    return wide.xs(task_type, level="task_type").groupby(level="task").mean().T


def test_tables_4_to_7_come_out_with_the_languages_that_each_scorer_has(scores: pd.DataFrame) -> None:
    whole = pairs_by_scorer(scores, complete=False)
    paper = printed("tables_4_to_7").pivot(index="model", columns="task", values="score")
    for kind in ("classification", "clustering", "reranking", "sts"):
        mine = 100 * by_task(whole, kind)
        np.testing.assert_allclose(mine.loc[paper.index], paper[mine.columns], atol=HALF)
    # On the pairs that people and models both have, 24 of 224 are others: a model's French items moved them.
    both = pd.concat([100 * by_task(pairs_by_scorer(scores), kind).T for kind in ("clustering", "sts")]).T
    assert ((both.loc[paper.index] - paper[both.columns]).abs() > HALF).to_numpy().sum() == 24


def test_table_8_comes_out(scores: pd.DataFrame) -> None:
    """Each rater's score is published; with two raters these are the lower and the higher of them."""
    facts, paper = printed("scores"), printed("table_8").set_index(["task", "language"])
    facts = facts[facts["raters"] > 0]
    models = [one for one in facts.columns if one not in (*FACTS, "Human")]
    kinds = {"lower": "rater", "higher": "rater", "Human": "aggregate"} | dict.fromkeys(models, "model")
    long = facts.melt(["task_type", "task", "language", "n", "raters"], list(kinds), "scorer", "score")
    long = long[(long["scorer"] != "higher") | (long["raters"] == 2)].rename(columns={"n": "n_items"})
    long = long.assign(score=long["score"] / 100, scorer_kind=long["scorer"].map(kinds), subset="")
    agreed = paper["agreement"].rename("value").reset_index().assign(subset="", measure="its own")
    mine = table_8(long, agreed).set_index(["task", "language"])
    assert len(mine) == 26 and set(mine["reason"]) == {""}
    mine = mine.loc[paper.index]
    assert (mine["n"] == paper["n"]).all() and (mine["raters"] == paper["raters"]).all()
    assert (mine["answers"] == paper["n"] * paper["raters"]).all()
    aggregate = facts.set_index(["task", "language"]).loc[paper.index, "Human"]
    np.testing.assert_allclose(100 * mine["people"], aggregate, atol=1e-3)  # of clustering the mean of raters
    np.testing.assert_allclose(100 * mine["people"], paper["human"], atol=HALF)
    np.testing.assert_allclose(100 * mine["best"], paper["best"], atol=HALF)
    loose = np.where((mine["interval"] == "Wilson") & (mine["task_type"] != "classification"), 0.1001, HALF)
    for end in ("low", "high"):
        assert ((100 * mine[end] - paper[end]).abs() <= loose).all()
    assert (mine["star"] == (paper["star"] == 1)).all() and mine["star"].sum() == 14
    assert mine["interval"].value_counts().to_dict() == {"Wilson": 12, "Fisher z": 6, "range of raters": 8}
    np.testing.assert_array_equal(mine["agreement"], paper["agreement"])
    assert mine.at[("EmotionClassification", "eng"), "best_model"].startswith("jasper")
    assert table_8(long.assign(n_items=0), agreed)["n"].isna().all()  # unknown, and not 0


def test_table_2_and_the_split_by_languages_come_out(pairs: pd.DataFrame) -> None:
    """Table 2 from Tables 10 to 12, by type, and the best embedding model's; 29% of wins in several languages."""
    wide = printed("tables_10_to_12").assign(task_type=np.repeat(["classification", "reranking", "sts"], [7, 6, 6]))
    long = wide.melt(["task_type", "task", "language"], var_name="scorer", value_name="score")
    found = by_type(pairs_by_scorer(long))
    assert found.attrs["pairs"] == {"classification": 7, "reranking": 6, "sts": 6, "overall": 19}
    paper = {"Human": (79.1, 88.3, 76.5, 81.2), "GPT-5 Full": (78.9, 75.1, 73.0, 75.8),
             "GPT-5 Mini": (77.2, 75.5, 69.0, 74.1), "GPT-4.1 Full": (76.6, 75.7, 74.9, 75.8),
             "GPT-4.1 Mini": (76.1, 77.2, 74.9, 76.1), "Gemini 2.5 Flash": (77.6, 76.2, 69.3, 74.5),
             "Mistral Small": (73.8, 78.0, 75.0, 75.5), "Qwen3-30B": (74.2, 75.6, 67.1, 72.4),
             "Qwen3-32B": (73.0, 74.8, 68.6, 72.2), "Qwen3-Coder": (76.3, 73.8, 71.3, 73.9)}  # fmt: skip
    printed_too = pd.DataFrame(paper, index=["classification", "reranking", "sts", "overall"]).T
    apart = (found.loc[printed_too.index, printed_too.columns] - printed_too).abs()
    assert (apart <= HALF).to_numpy().sum() == 38 and apart.to_numpy().max() < 0.067  # means of rounded scores
    embedding = 100 * by_type(pairs.drop(columns=["Human", "raters_mean"]))
    best = {"classification": (80.3, "jasper"), "reranking": (94.8, "multilingual-e5-large"), "sts": (77.1, "jasper")}
    for name, (score_of, model) in best.items():
        assert embedding[name].max() == pytest.approx(score_of, abs=HALF), name
        assert str(embedding[name].idxmax()).startswith(model)
    split = in_languages(pairs.index.get_level_values("task"), pairs.index.get_level_values("language"))
    won = wins(pairs.drop(columns="raters_mean"), "Human", by=split).set_index(["against", "group"])["wins"]
    total = pd.Series(split).value_counts().to_dict()
    assert total == {"in several languages": 14, "in one language": 12}
    assert (won["best", "in several languages"], won["best", "in one language"]) == (4, 0)  # 4 of 14 are 29%


def test_flags_of_table_8_are_those_of_the_text() -> None:
    table = printed("table_8").merge(printed("scores")[["task", "language", "task_type"]], on=["task", "language"])
    measure = {"classification": "Fleiss' kappa", "clustering": "ARI", "reranking": "Spearman", "sts": "Spearman"}
    found = [flag(measure[one.task_type], one.agreement) for one in table.itertuples()]
    problematic = set(table["task"][[one == "problematic" for one in found]])
    assert problematic == {"EmotionClassification", "MultilingualSentimentClassification", "STSBenchmark"}
    # The text calls STSBenchmark an example of high agreement; its rho is .58.
    reliable = set(table["task"][[one == "reliable" for one in found]])
    assert {"STS12", "News21InstructionReranking", "Core17InstructionReranking"} <= reliable


@pytest.mark.parametrize(("right", "n"), [(22, 48), (38, 40), (0, 20), (20, 20)])
def test_wilsons_interval_is_statsmodels(right: int, n: int) -> None:
    theirs = proportion_confint(right, n, alpha=0.05, method="wilson")
    assert wilson_interval(right / n, n, 1.959963984540054) == pytest.approx(theirs, abs=1e-12)


def test_fishers_interval_by_hand_and_what_has_none() -> None:
    # atanh(.5) = .549306, 1.96 / sqrt(25) = .392: tanh(.157306) and tanh(.941306).
    assert fisher_interval(0.5, 28) == pytest.approx((0.156021, 0.735822), abs=1e-5)
    none = ("sts", 1.0, 30, 1), ("sts", 0.5, 3, 1), ("classification", 1.2, 30, 1), ("reranking", 0.5, 0, 1)
    for kind, value, n, raters in (*none, ("clustering", 0.7278, 30, 2)):  # two with one score: 72.78 to 72.78
        found, _ = paper_interval(kind, value, n, [value] * raters)
        assert np.isnan(found.low) and found.reason


def test_difficulty_and_gaps_are_the_papers(pairs: pd.DataFrame) -> None:
    table = gaps(pairs.drop(columns="raters_mean"), "Human")
    assert table["difficulty"].value_counts().to_dict() == {"easy": 18, "moderate": 6, "hard": 2}  # 69%; two below .5
    arabic = table[(table["task"] == "STS22") & (table["language"] == "ara")].iloc[0]
    assert 100 * arabic["over_best"] == pytest.approx(26.7, abs=ROUNDED) and arabic["best_model"].startswith("jasper")
    assert difficulty(float("nan")) == ""
    # Emotion: "85%" of one model, and jasper's 75.4 as a share of people's 45.8.
    assert table.set_index("task").at["EmotionClassification", "relative"] == pytest.approx(75.4167 / 45.8333, abs=1e-4)
    plain, beyond = relative(0.846, 0.492, 0.642)  # arXiv: people are below what one cluster an item has
    assert plain == pytest.approx(1.72, abs=0.005) and np.isnan(beyond)
    assert relative(0.9, 0.7, 0.5) == pytest.approx((9 / 7, 2.0))


def test_table_13_comes_out_of_tables_10_to_12() -> None:
    wide = printed("tables_10_to_12").set_index(["task", "language"])
    paper = {"GPT-5 Full": (0.47, 0.042), "GPT-5 Mini": (0.52, 0.023), "GPT-4.1 Full": (0.43, 0.066),
             "GPT-4.1 Mini": (0.57, 0.012), "Gemini 2.5 Flash": (0.50, 0.029), "Mistral Small": (0.30, 0.215),
             "Qwen3-30B": (0.50, 0.031), "Qwen3-32B": (0.52, 0.022), "Qwen3-Coder": (0.57, 0.011)}  # fmt: skip
    wide["Average"] = wide[list(paper)].mean(axis=1)
    same = []
    for name, (rho, p) in {**paper, "Average": (0.52, 0.023)}.items():
        found, mine = shared_difficulty(wide, "Human", name, np.random.default_rng(1))
        assert found.n == 19 and found.low < found.value < found.high
        same += [abs(found.value - rho) < 0.0051, abs(mine - p) < 0.00051]
        assert found.value == pytest.approx(rho, abs=0.011) and mine == pytest.approx(p, abs=0.0031)
    assert sum(same) == 18  # Gemini's rho is .507 of these rounded scores, and its p .027


def test_f1_of_people_is_the_published() -> None:
    """ToxicConversations, 20 toxic of 45: a rater and the aggregate, from their published precision and recall.

    Recall .745 = (17/20 + 16/25) / 2, precision .747976 = (17/26 + 16/19) / 2; of the aggregate .73 = (14/20 + 19/25)
    / 2 both. F1 of the rater's labels: 34/46 and 32/44.
    """
    right = ["toxic"] * 20 + ["not"] * 25
    for hits, said_not, macro, weighted in ((17, 16, 0.733202, 0.732543), (14, 19, 0.73, 0.733333)):
        toxic, clean = ["toxic"] * hits + ["not"] * (20 - hits), ["not"] * said_not + ["toxic"] * (25 - said_not)
        task = task_of(right, "label", "accuracy", "classification")
        table = score(task, people(task, {"a": toxic + clean}), n_resamples=50, rng=np.random.default_rng(1)).scores
        own = table[table["scorer_kind"] == "rater"].set_index("metric")["score"]
        assert own["accuracy"] == pytest.approx(33 / 45)
        assert (own["f1"], own["f1_weighted"]) == (pytest.approx(macro, abs=1e-6), pytest.approx(weighted, abs=1e-6))


@pytest.mark.data
def test_printed_agreement_is_what_the_authors_published() -> None:
    if not SHARED.exists():
        pytest.skip("HUME's published results are not beside the checkout")
    rows = json.loads((SHARED / "agreement.json").read_text(encoding="utf-8"))["rows"]
    table = printed("table_8").set_index(["task", "language"])["agreement"].dropna()
    found = {}
    for row in rows:
        if row["revision"] == "2025_09_25":
            own = row["agreement"]
            found[row["task"].removeprefix("HUME"), row["language"]] = own.get("value", own.get("mean_spearman"))
    for key, value in table.items():
        assert found[key] == pytest.approx(value, abs=0.0051), key
    assert len(table) == 16

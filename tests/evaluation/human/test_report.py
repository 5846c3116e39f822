"""The report on people and models says what the records say, whatever they lack."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from evaluation.human import records
from evaluation.human.exhibits import OF_N_ITEMS, all_exhibits
from evaluation.human.material import read_material
from evaluation.human.metrics import ami
from evaluation.human.records import HumanRecords, HumanScore
from evaluation.human.report import OUTLINE, all_figures, write_report
from plumbline.manifest import Manifest
from plumbline.statistics.estimates import jackknife
from plumbline.statistics.resampled_measures import v_measure
from plumbline.study import Study


def test_tables_are_those_of_the_records(study: Study) -> None:
    page, _ = write_report(study)
    text = page.read_text()
    assert "SIMULATED RATINGS" in text and "character-n-grams" in text
    one = read_material(HumanRecords(study))
    tables, scores = all_exhibits(one), Manifest.of(study).frame(records.SCORES, HumanScore, "x")
    assert {name for names in OUTLINE.values() for name in names} == {*tables, *all_figures(one)}
    assert all(table.notes[0].startswith("SIMULATED") for table in tables.values())
    kept = pd.read_csv(page.parent / "tables" / "ceiling.csv").query("metric != 'ami'").set_index("where")
    main = scores[scores["main"]]
    for task, own in main.groupby("task"):
        people = own.loc[own["scorer_kind"] == "raters_mean", "score"].item()
        models = own.loc[own["scorer_kind"] == "model", "score"]
        assert kept.loc[task, "raters_mean"] == pytest.approx(people, abs=1e-12)
        assert kept.loc[task, "best"] == pytest.approx(models.max(), abs=1e-12)
    groups = tables["groups"].frame.set_index("scorer")
    assert groups["all"].is_monotonic_decreasing and groups.loc["raters_mean", "all"] == pytest.approx(
        one.wide["raters_mean"].mean()
    )
    sts = main[(main["task"] == "sample_sts") & (main["scorer"] == "character-n-grams")]["score"].item()
    assert groups.loc["character-n-grams", "sts, en"] == pytest.approx(sts, abs=1e-12)
    assert f"On 6 tasks people score {100 * main.loc[main['scorer_kind'] == 'raters_mean', 'score'].mean():.1f}" in text


def test_who_answered_too_few_items_is_best_of_nobody(study: Study) -> None:
    one, task = read_material(HumanRecords(study)), "sample_intents"
    before = all_exhibits(one)["ceiling"].frame.set_index("where").loc[task]
    scores = one.scores.copy()
    some = scores["main"] & (scores["where"] == task) & scores["scorer_kind"].isin(("llm", "model"))
    scores.loc[some, ["score", "n_items", "compared"]] = [1.0, 99, False]
    assert before["best"] < 1 and before["best_language_model"] < 1 and before["n_items"] < 99
    apart = replace(one, scores=scores)
    tables = all_exhibits(apart)
    row, hume = (tables[name].frame.set_index("where").loc[task] for name in ("ceiling", "as_hume"))
    assert row[["best", "best_language_model"]].isna().all() and math.isnan(hume["best"])
    assert row["n_items"] == before["n_items"] and row["raters"] == before["raters"]
    assert len(apart.wide) == len(one.wide) - 1 and task not in set(apart.gaps["task"])
    assert task not in set(tables["items"].frame["where"])


def test_a_rater_of_other_items_is_in_no_range_of_humes(study: Study) -> None:
    one, task = read_material(HumanRecords(study)), "sample_retrieval"
    scores = one.scores.copy()
    raters = scores.index[scores["main"] & (scores["where"] == task) & (scores["scorer_kind"] == "rater")]
    scores.loc[raters, "score"] = [0.1, 0.8, 0.6]
    scores.loc[raters[:1], ["n_items", "compared"]] = [2, False]
    table = all_exhibits(replace(one, scores=scores))["as_hume"]
    row = table.frame.set_index("where").loc[task]
    assert (row["raters"], row["answers"], row["n"]) == (2, 16, 8)
    assert (row["people"], row["low"], row["high"]) == (pytest.approx(0.7), 0.6, 0.8)
    assert any(note.endswith(f"too few items to be compared: {task}") for note in table.notes)


def test_ami_stands_before_a_v_measure_whose_interval_says_what_it_is_of(study: Study) -> None:
    one = read_material(HumanRecords(study))
    tables = all_exhibits(one)
    clusters = one.scores[one.scores["metric"] == "v_measure"]
    where = clusters["where"].iloc[0]
    ceiling = tables["ceiling"]
    assert ceiling.frame.loc[ceiling.frame["where"] == where, "metric"].tolist() == ["ami", "v_measure"]
    ami = one.scores[(one.scores["where"] == where) & (one.scores["metric"] == "ami")]
    people = ami.loc[ami["scorer_kind"] == "raters_mean", ["score", "low", "high"]].iloc[0].tolist()
    row = ceiling.frame[(ceiling.frame["where"] == where) & (ceiling.frame["metric"] == "ami")].iloc[0]
    assert row[["raters_mean", "low", "high"]].tolist() == people
    for name in ("ceiling", "models"):
        assert OF_N_ITEMS in tables[name].notes and OF_N_ITEMS in tables[name].markdown(), name
    without = replace(one, scores=one.scores[one.scores["where"] != where])
    assert OF_N_ITEMS not in all_exhibits(without)["ceiling"].notes
    renamed = replace(one, scores=one.scores.replace("character-n-grams", "all_MiniLM"))
    printed = all_exhibits(replace(renamed, difficulty=one.difficulty.assign(p=1e-9)))
    assert {"all_MiniLM", "raters mean"} <= set(printed["other_metrics"].printed["Scorer"])
    assert set(printed["difficulty"].printed["p"]) == {"< .001"}


def test_an_interval_of_a_v_measure_is_of_so_many_items_and_amis_of_all() -> None:
    """What the note says: 30 items of 10 clusters, of which a rater knows every second one."""
    rng = np.random.default_rng(11)
    holds: dict[str, list[tuple[bool, bool]]] = {"v_measure": [], "ami": []}
    for name, measure in (("v_measure", v_measure), ("ami", ami)):
        everything, drawn = clusterings(5_000, rng), [clusterings(30, rng) for _ in range(100)]
        values = [float(measure(*both)(np.ones((1, 30)))[0]) for both in drawn]
        of_all, of_thirty = float(measure(*everything)(np.ones((1, 5_000)))[0]), float(np.mean(values))
        for value, both in zip(values, drawn, strict=True):
            found = jackknife(value, measure(*both)(1 - np.eye(30)))
            holds[name].append((found.low <= of_thirty <= found.high, found.low <= of_all <= found.high))
    shares = {name: np.mean(pairs, axis=0) for name, pairs in holds.items()}
    assert shares["v_measure"][0] > 0.85 and shares["ami"][0] > 0.85
    assert shares["v_measure"][1] < 0.1 and shares["ami"][1] > 0.85


def clusterings(n: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ten clusters, and a rater who knows every second item's and draws the others'."""
    gold, guess = rng.integers(0, 10, n), rng.integers(0, 10, n)
    return gold, np.where(rng.random(n) < 0.5, gold, guess)

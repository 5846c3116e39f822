"""The report on people and models says what the records say, whatever they lack."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from annotation.human.records import ANSWERS, HumanAnswer
from annotation.sampling.sample import draw_sample
from annotation.status.progress import PEOPLE_REPORT
from annotation.status.status import read_status
from annotation.status.text import next_step
from annotation.verdicts.evidence import Evidence
from evaluation.human import records
from evaluation.human.exhibits import OF_N_ITEMS, all_exhibits
from evaluation.human.material import doubts, headline, read_material
from evaluation.human.metrics import ami
from evaluation.human.records import HumanRecords, HumanScore
from evaluation.human.report import OUTLINE, all_figures, write_report
from evaluation.human.run import evaluate_human
from plumbline.errors import DataError
from plumbline.manifest import Manifest, stage
from plumbline.statistics.estimates import jackknife
from plumbline.statistics.resampled_measures import v_measure
from plumbline.store import read_frame
from plumbline.study import ROOT, Study, load_study
from tests.annotation.human.studies import SUMMARIES, study_of
from tests.evaluation.human.rehearsed import write_rehearsed


def test_tables_are_those_of_the_records(study: Study) -> None:
    page, _ = write_report(study)
    text = page.read_text()
    assert "SIMULATED RATINGS" in text and "character-n-grams" in text
    one = read_material(HumanRecords.open(study))
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


def test_items_seen_differently_are_shown_with_what_was_said(study: Study) -> None:
    one = read_material(HumanRecords.open(study))
    frame = all_exhibits(one)["items"].frame
    answers = read_frame(study.folder / ANSWERS, HumanAnswer, "x")
    row = frame[frame["where"] == "sample_intents"].iloc[0]
    said = answers[(answers["task"] == "sample_intents") & (answers["item"] == row["item"])]["label"]
    right = (said == row["right"]).mean()
    assert (row["people"], row["apart"]) == (pytest.approx(right), pytest.approx(right - row["model"]))
    assert row["text"] == one.texts["sample_intents", row["item"]] != ""
    assert all(label in row["said"] for label in said)


def test_who_answered_too_few_items_is_best_of_nobody(study: Study) -> None:
    one, task = read_material(HumanRecords.open(study)), "sample_intents"
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
    one, task = read_material(HumanRecords.open(study)), "sample_retrieval"
    scores = one.scores.copy()
    raters = scores.index[scores["main"] & (scores["where"] == task) & (scores["scorer_kind"] == "rater")]
    scores.loc[raters, "score"] = [0.1, 0.8, 0.6]
    scores.loc[raters[:1], ["n_items", "compared"]] = [2, False]
    table = all_exhibits(replace(one, scores=scores))["as_hume"]
    row = table.frame.set_index("where").loc[task]
    assert (row["raters"], row["answers"], row["n"]) == (2, 16, 8)
    assert (row["people"], row["low"], row["high"]) == (pytest.approx(0.7), 0.6, 0.8)
    assert any(note.endswith(f"too few items to be compared: {task}") for note in table.notes)


def test_a_single_rater_and_no_model_are_told(study: Study) -> None:
    answers = read_frame(study.folder / ANSWERS, HumanAnswer, "x")
    alone = answers[answers["rater_id"] == answers["rater_id"].iloc[0]]
    Manifest.of(study).write_table(ANSWERS, alone, HumanAnswer)
    text = study.file.read_text()
    study.file.write_text(text[: text.index("evaluation:")])
    bare = load_study(study.file, study.folder.parent)
    evaluate_human(bare)
    one = read_material(HumanRecords.open(bare))
    write_report(bare)
    assert headline(one)[0].endswith("no embedding model was scored on the same items.")
    assert any(line.startswith("tasks with only one rater") for line in doubts(one))
    agreed = all_exhibits(one)["agreement"]
    assert set(agreed.printed["Value [95%]"]) == {"–"}
    assert set(all_exhibits(one)["models"].printed["Kind"]) == {"answers as people do"}


def test_a_study_that_is_not_evaluated_is_refused(study: Study, tmp_path: Path) -> None:
    (study.folder / records.SCORES).unlink()
    with pytest.raises(DataError, match="plumbline evaluate"):
        read_material(HumanRecords.open(study))


def test_a_report_is_made_where_nobody_could_tell(study: Study) -> None:
    answers = read_frame(study.folder / ANSWERS, HumanAnswer, "x")
    sts = answers["task"] == "sample_sts"
    unsure = answers.assign(abstained=True, label="", value=math.nan)[~sts]  # and nobody answered that one
    Manifest.of(study).write_table(ANSWERS, unsure, HumanAnswer)
    told = evaluate_human(study).compared.notes
    assert "sample_sts (en): no person's answers count, so only models have scores" in told
    assert write_report(study)[0].exists()
    assert "apart" not in all_exhibits(read_material(HumanRecords.open(study)))


def test_texts_whose_summaries_are_all_alike_to_a_model_leave_it_a_score_of_no_items(tmp_path: Path) -> None:
    """mteb leaves such texts out of its score, and says not which."""
    models = {"models": [{"name": "ngrams", "kind": "lexical", "settings": {"ngrams": [3, 3]}}], "protocol": "paper"}
    rows = [{**SUMMARIES[0], "human_summaries": ["Storm."], "machine_summaries": ["Storm.", "Gale.", "Calm."]},
            *SUMMARIES[1:3]]  # fmt: skip
    study = study_of(tmp_path, {"data": "summaries", "items": 9}, data={"summaries": rows}, evaluation=models)
    draw_sample(study)
    write_rehearsed(study)
    scores = evaluate_human(study).compared.scores
    (model,) = scores[scores["main"] & (scores["scorer_kind"] == "model")].to_dict(orient="records")
    assert model["reason"] and math.isnan(model["score"])


def test_a_label_that_looks_like_a_list_is_a_label(study: Study) -> None:
    """Of several labels alone an answer is a JSON list."""
    data = study.file.parent / "requests.csv"
    text = (ROOT / "studies/demo/requests.csv").read_text()
    label = (
        read_material(HumanRecords.open(study))
        .items.query("task == 'sample_intents' and scorer_kind == 'gold'")["answer"]
        .iloc[0]
    )
    data.write_text(text.replace(label, f"[{label}"))
    study.file.write_text(study.file.read_text().replace(f"{ROOT}/studies/demo/requests.csv", str(data)))
    other = load_study(study.file, study.folder.parent)
    draw_sample(other)
    write_rehearsed(other)
    evaluate_human(other)
    items = read_material(HumanRecords.open(other)).items
    assert f"[{label}" in set(items[items["task"] == "sample_intents"]["answer"])


def test_where_a_study_stands_names_the_report_on_people_and_models(study: Study) -> None:
    def at() -> tuple[str, str]:
        """As if all before the reports was done."""
        found = read_status(Evidence.open(study), datetime.now(UTC))
        done = {
            name: one if name == PEOPLE_REPORT else replace(one, state="done") for name, one in found.stages.items()
        }
        rated = replace(found, stages=done, decided=True, sources=("argilla",))
        return found.stages[PEOPLE_REPORT].state, next_step(rated, "--study S")

    assert at() == ("not yet", "plumbline human-report --study S")
    with stage(study, "evaluation human report", [study.folder / records.SCORES]):
        write_report(study)
    assert at()[0] == "done" and "evaluation.human" not in at()[1]


def test_ami_stands_before_a_v_measure_whose_interval_says_what_it_is_of(study: Study) -> None:
    one = read_material(HumanRecords.open(study))
    tables, page = all_exhibits(one), write_report(study)[0].read_text(encoding="utf-8")
    clusters = one.scores[one.scores["metric"] == "v_measure"]
    where = clusters["where"].iloc[0]
    ceiling = tables["ceiling"]
    assert ceiling.frame.loc[ceiling.frame["where"] == where, "metric"].tolist() == ["ami", "v_measure"]
    ami = one.scores[(one.scores["where"] == where) & (one.scores["metric"] == "ami")]
    people = ami.loc[ami["scorer_kind"] == "raters_mean", ["score", "low", "high"]].iloc[0].tolist()
    row = ceiling.frame[(ceiling.frame["where"] == where) & (ceiling.frame["metric"] == "ami")].iloc[0]
    assert row[["raters_mean", "low", "high"]].tolist() == people
    for name in ("ceiling", "models", "raters"):
        assert OF_N_ITEMS in tables[name].notes and OF_N_ITEMS in tables[name].markdown(), name
    assert OF_N_ITEMS in page
    without = replace(one, scores=one.scores[one.scores["where"] != where])
    assert OF_N_ITEMS not in all_exhibits(without)["ceiling"].notes


def test_an_interval_of_a_v_measure_is_of_so_many_items_and_amis_of_all() -> None:
    """What the note says: 30 items of 10 clusters, of which a rater knows every second one."""
    rng = np.random.default_rng(11)
    holds: dict[str, list[tuple[bool, bool]]] = {"v_measure": [], "ami": []}
    for name, measure in (("v_measure", v_measure), ("ami", ami)):
        everything, drawn = clusterings(20_000, rng), [clusterings(30, rng) for _ in range(100)]
        values = [float(measure(*both)(np.ones((1, 30)))[0]) for both in drawn]
        of_all, of_thirty = float(measure(*everything)(np.ones((1, 20_000)))[0]), float(np.mean(values))
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

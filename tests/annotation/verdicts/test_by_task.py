"""People's tasks in tables: a row a task, labels by their names, candidates and clusters by no number."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from annotation.campaign_records import CampaignRecords
from annotation.human.tasks import read_tasks
from annotation.records import P_IS
from annotation.report.methods import other_questions
from annotation.rubric import load_rubric
from annotation.sampling.sample import draw_sample
from annotation.statistics.summaries import Design, table_two
from annotation.verdicts.by_task import groups_by_task, verdicts_by_task
from annotation.verdicts.tables import label_table, verdict_table, verdict_text
from annotation.verdicts.verdicts import verdicts
from tests.annotation.human.studies import study_of


def test_answers_are_told_by_task_and_name(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        {"data": "classes", "items": 4, "raters": 2},
        {"data": "groups", "items": 4, "raters": 2},
        {"data": "search", "items": 2, "raters": 2, "candidates": 3},
    )
    draw_sample(study)
    said = {"classes": "l2", "groups": "c1", "search": "g0", "search-2": "g3", "search-3": "g3"}
    first = {"groups": "c2", "search": "cannot_tell"}  # of the first rater
    pairs, rubric = CampaignRecords.open(study).pairs, load_rubric(study)
    rows = [
        (pair.pair_id, rater, name, (first if rater == "a" else {}).get(name, answer), pair.transformation)
        for pair in pairs
        for rater in "ab"
        for name, answer in said.items()
        if name.split("-")[0] == pair.pool
    ]
    ratings = pd.DataFrame(rows, columns=["pair_id", "rater_id", "question", "answer", "transformation"])
    at = pd.Timestamp("2026-01-02", tz="UTC")
    ratings = ratings.assign(language="en", value=math.nan, submitted_at=at, simulated=False)
    design = Design.of(study, rubric)
    places = {one.transformation: (one.axis, one.pool) for one in pairs}
    found = label_table(groups_by_task(read_tasks(study), table_two(ratings, design, None, places)))
    given = found[found["value"] > 0].set_index(["name", "label"])["value"].to_dict()
    bee_or_so = read_tasks(study)[0].labels[1]
    assert given == {
        ("classes", bee_or_so): 1.0,
        ("groups", "a group"): 1.0,
        ("search", "0"): pytest.approx(1 / 6),
        ("search", "3"): pytest.approx(4 / 6),
        ("search", "cannot_tell"): pytest.approx(1 / 6),
    }
    assert set(found["number"]) == {"share"} and set(found["level"]) == {"pool"}
    assert found.groupby("name")["n_ratings"].first().to_dict() == {"classes": 8, "groups": 8, "search": 12}
    together = found[found["low"].isna()].groupby("name")["reason"].unique().str[0].to_dict()
    why = "are combined, so no interval is computed"
    assert together == {"groups": f"groups {why}", "search": f"candidates {why}"}

    judged = verdicts(pairs, ratings, design, None)
    few = verdicts(pairs, ratings[ratings["transformation"] != "groups"], design, None)
    text = verdict_text(few, study.called)
    assert "items with at least 2 raters: 0" in text and "pairs" not in text
    assert f"\n{P_IS}" in text
    table = verdict_table(verdicts_by_task(read_tasks(study), judged))
    shares = {name for name in map(str, table) if name.endswith("_share") and name != "failed_share"} - {
        "kept_out_share"
    }
    names = {*read_tasks(study)[0].labels, "cannot_tell"}
    assert {name for name in shares if name.startswith("classes")} == {f"classes_{one}_share" for one in names}
    assert {name for name in shares if name.startswith("search")} == {
        f"search_{one}_share" for one in (*range(4), "cannot_tell")
    }
    assert table.set_index("transformation").loc["search", "search_3_share"] == pytest.approx(4 / 6)

    told = other_questions(rubric, (), read_tasks(study))
    assert len(told) == 3 and "asked for a group or cannot_tell." in told[1]
    assert told[2].endswith("asked for 0, 1, 2, 3 or cannot_tell, for each candidate.")

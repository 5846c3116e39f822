"""Scales other than 1 to 5, from the rubric over a file of answers to verdicts and the report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from annotation import server
from annotation.campaign.records import CampaignRecords
from annotation.csv_answers import collect_csv
from annotation.report.page import write_report
from annotation.verdicts.acceptance import accept
from plumbline.prompts import PROMPTS
from plumbline.study import Study
from tests.annotation import kinds
from tests.annotation.campaigns import ALONE, Make, small

pytestmark = pytest.mark.usefixtures("undrawn")

SCALES: dict[str, tuple[Any, list[float], str]] = {
    "signed": ([-2, -1, 0, 1, 2], [-2, 0, 1, 2, -1], "int64"),
    "halves": ({"from": 1, "to": 5, "step": 0.5}, [1, 1.5, 4.5, 3, 5], "double"),
    "hundred": ({"from": 0, "to": 100, "step": 1}, [0, 37, 100, 62, 80], "int64"),
    "continuous": ({"from": 0, "to": 100}, [0, 37.25, 99.5, 62, 80], "double"),
}


def drawn(variant: Make, patch: pytest.MonkeyPatch, folder: Path, scale: Any, **acceptance: Any) -> Study:
    """A study whose rubric has this scale, with words for its ends alone, and rules in its points."""
    ends = (scale["from"], scale["to"]) if isinstance(scale, dict) else (scale[0], scale[-1])
    content: dict[str, Any] = yaml.safe_load((PROMPTS / "rubrics" / "pteb.yaml").read_text(encoding="utf-8"))
    content |= {"name": "kinds", "scale": scale}
    content["questions"][0]["points"] = {ends[0]: {"en": "unrelated"}, ends[1]: {"en": "the same"}}
    content["pools"] = {"paraphrasing": content["pools"]["paraphrasing"] | {"expected": {}, "questions": {}}}
    content.pop("threshold")
    kinds.ask(patch, folder, content)
    middle = (ends[0] + ends[1]) / 2
    rule = {"threshold": middle, "min_pairs": 2, "protocol": "paper"} | acceptance
    sample = {"pairs": 5, **ALONE}
    return small(
        variant, "scales", transformations=["paraphrasing"], rubric="kinds", sample=sample, acceptance=rule,
    )  # fmt: skip


@pytest.mark.parametrize("name", SCALES)
def test_ratings_on_any_scale_reach_verdicts_and_report(
    name: str, variant: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, values, stored = SCALES[name]
    study = drawn(variant, monkeypatch, tmp_path, scale)
    pairs = [pair.pair_id for pair in CampaignRecords(study).pairs]
    rows = [(pair, rater, value) for pair, value in zip(pairs, values, strict=True) for rater in ("ada", "bob")]
    rows = [(pair, rater, value if rater == "ada" else values[0]) for pair, rater, value in rows]
    pd.DataFrame(rows, columns=["pair", "rater", "similarity"]).to_csv(tmp_path / "answers.csv", index=False)
    mapping = {column: column for column in ("pair", "rater", "similarity")}
    collected = collect_csv(study, server.Home(tmp_path / "home"), tmp_path / "answers.csv", mapping)
    assert sorted(collected["value"].astype(float)) == sorted(float(value) for _, _, value in rows)
    assert str(pq.read_schema(study.folder / "ratings.parquet").field("value").type) == stored
    (verdict,) = accept(study).verdicts
    (summary,) = verdict.questions
    assert summary.mean == pytest.approx(np.mean([value for *_, value in rows]))
    assert math.isnan(summary.low) and "8" in summary.interval_reason  # of 5 pairs no interval holds
    assert math.isnan(summary.ac2.value) == (name == "continuous")
    assert "continuous one has none" in summary.ac2.reason or name != "continuous"
    assert not math.isnan(summary.alpha.value) and not math.isnan(summary.kappa.value or 0.0)
    page = write_report(study)[0].read_text(encoding="utf-8")
    assert "Reliability" in page
    shares = pd.read_csv(study.folder / "report" / "ratings_by_point.csv")
    assert shares["n"].sum() == len(rows) and len(shares) == {"signed": 5, "halves": 9}.get(name, 5)
    reliable = pd.read_csv(study.folder / "report" / "reliability.csv").set_index("statistic")
    assert {"ICC(1)", "ICC(3, k)", "ICC(1) of z-scores"} <= set(reliable.index)

"""Studies of wordings, small and offline: the sample study with changes, and labels that a test gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from annotation.campaign.records import CampaignRecords
from annotation.ratings.answers import write_ratings
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from plumbline.fields import fields_of
from plumbline.records import Rating
from plumbline.study import ROOT, Study, load_study

SAMPLE = ROOT / "studies" / "instructions.yaml"


def made(folder: Path, **changes: Any) -> Study:
    """The sample study under a name of its own; `changes` replace its keys, those of `subject` are added to it."""
    content = yaml.safe_load(SAMPLE.read_text(encoding="utf-8"))
    for spec in content["datasets"]:
        spec["path"] = str(ROOT / "studies" / spec["path"])
    engine = content["engines"]["sample"]
    engine["path"] = str(ROOT / "studies" / engine["path"])
    content["subject"]["prompts"] = str(ROOT / "studies" / content["subject"]["prompts"])
    content["subject"] |= changes.pop("subject", {})
    file = folder / "instructions.yaml"
    file.write_text(yaml.safe_dump(content | changes), encoding="utf-8")
    return load_study(file, folder / "exports")


def label(study: Study, answers: Mapping[str, Sequence[str]], raters: int = 3, *, simulated: bool = True) -> None:
    """Draw the sample, let raters label it, and accept; `answers` are by wording, all others are acceptable."""
    rows = []
    for number, pair in enumerate(draw_sample(study)):
        given = answers.get(fields_of(pair)[0].text, ["acceptable"] * raters)
        for rater, answer in enumerate(given):
            at = datetime(2026, 1, 1, number // 60, number % 60, rater, tzinfo=UTC)
            rows.append(
                Rating(
                    pair_id=pair.pair_id, transformation=pair.transformation, language=pair.language,
                    rater_id=f"rater-{rater + 1}", question="label", value=None, status="submitted", submitted_at=at,
                    source="argilla", answer=answer, simulated=simulated,
                ).model_dump()
            )  # fmt: skip
    write_ratings(CampaignRecords(study), pd.DataFrame(rows))
    accept(study)

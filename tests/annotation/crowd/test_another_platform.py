"""The platform of the maintainer's guide, as it is written there: one class, and a campaign runs on it."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from annotation.campaign.offering import LEDGER
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.crowd import judging
from annotation.crowd.collecting import collect
from annotation.crowd.ledger import Ledger
from annotation.crowd.platform import CLASSES
from annotation.crowd.summary import read_summaries
from annotation.verdicts.evidence import Evidence
from plumbline.study import ROOT
from tests.annotation.campaigns import Make
from tests.annotation.crowd.campaigns import drawn, honest, run


def test_a_platform_of_one_file_runs_a_campaign(variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    guide = (ROOT / "docs/guides/maintainer.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "class Laboratory" in block]
    assert len(code.splitlines()) <= 60
    (tmp_path / "laboratory.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(CLASSES, "laboratory", "laboratory:Laboratory")  # type: ignore[misc]
    made = importlib.import_module("laboratory")
    monkeypatch.setattr(made, "FOLDER", tmp_path / "handed in")
    study = drawn(variant)

    def platform() -> object:
        return made.Laboratory(study, "live", "laboratory-live.json")

    def step(what: object) -> None:
        assert run(study, platform, what, 10**6)  # type: ignore[arg-type]

    step(lambda campaign: campaign.launch())
    with Ledger(study.scratch / LEDGER, study.name, "laboratory", "live") as ledger:  # type: ignore[arg-type]
        (batch,) = [offer.batch for offer in ledger.offered() if ledger.operation("post", offer.batch.batch_id)]
    rates = honest(study)
    for person in ("ann", "bob"):
        answers = {
            pair_id: {name: rates(pair_id, name) for name in load_rubric(study).question_names()}
            for pair_id in batch.pair_ids
        }
        file = made.FOLDER / batch.batch_id / f"{person}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(answers), encoding="utf-8")
    step(collect)
    step(judging.approve_all)
    step(judging.approve_all)  # nothing is paid twice
    account = json.loads((study.scratch / "laboratory-live.json").read_text(encoding="utf-8"))
    assert [(paid["worker"], paid["cents"]) for paid in account["payments"]] == [("ann", 120), ("bob", 120)]
    ratings = CampaignRecords(study).all_ratings
    assert set(ratings["source"]) == {"laboratory"} and len(ratings) == 2 * 6 * 2
    (summary,) = read_summaries(Evidence(study))
    assert (summary.platform, summary.rewards, summary.states["approved"]) == ("laboratory", 240, 2)

"""Studies that rate nothing (a label, a ranking and a text of pairs; labels of texts): to the end, by commands."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from annotation.campaign.records import CampaignRecords
from annotation.options import HOME_VARIABLE
from evaluation.records import EvaluationRecords
from plumbline.study import load_study
from tests.annotation.kinds import ask
from tests.annotation.questions.test_questions import SHARE, labels_alone
from tests.concluded import concluded
from tests.release.test_own_transformations import DEMO, own_study, run
from tests.streamlit_app.conftest import APP, go_to

pytestmark = pytest.mark.usefixtures("undrawn")

COLUMNS = "time=time,rater=rater,pair=pair,naturalness=naturalness,order=order"
ORDERS = ("tone>form=sense", "form>tone>sense")


def test_a_study_that_rates_nothing_goes_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ada says odd of every other pair, Bob of the others: a share of 0.5. They agree on half the orders."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    ask(monkeypatch, tmp_path, labels_alone())
    recorded = {"kind": "recorded", "model": "plumbline-sample", "revision": "1", "path": str(DEMO / "outputs")}
    file = own_study(tmp_path, "paraphrasing", generator=recorded, rubric="kinds", acceptance={"rules": [SHARE]})
    study = load_study(file, tmp_path / "exports")
    for command in ("generate", "sample", "preview"):
        run(file, *command.split())
    planned = run(file, "plan", "--campaigns", "2", "--pairs", "30")
    assert "share of odd in naturalness at most 0.5" in planned
    pairs = dict.fromkeys(one.pair_id for one in (*CampaignRecords(study).pairs, *CampaignRecords(study).controls))
    answers = [
        {"time": f"2026-03-01T13:{place % 60:02}:00Z", "rater": rater, "pair": pair, "order": ORDERS[who * place % 2]}
        | {"naturalness": ("Natural", "odd")[(place + who) % 2]}
        for who, rater in enumerate(("ada", "bob"))
        for place, pair in enumerate(pairs)
    ]
    pd.DataFrame(answers).to_csv(tmp_path / "answers.csv", index=False)
    run(file, "collect", "--csv", str(tmp_path / "answers.csv"), "--columns", COLUMNS)
    for command in ("status", "review"):
        run(file, command)
    told = run(file, "accept")
    assert "mean rank" in told and "Agreement with 95%" not in told
    run(file, "ratings-report")
    page = (study.folder / "report" / "index.html").read_text(encoding="utf-8")
    assert "Raters were asked about each pair by the rubric kinds." in page
    assert " answered (" in run(file, "sheet")
    sheet = json.loads((study.folder / "sheet" / "heds.json").read_text(encoding="utf-8"))
    element = "heds-criteria-criterion-response_elicitation-form_of_response"
    kinds = {name: number for number in (3, 5, 7) for name in sheet.get(f"{element}-{number}", {"data": {}})["data"]}
    assert kinds == {"naturalness": 7, "order": 3, "better": 5}
    assert "Drift (1 - cos) cannot be compared with ratings" in run(file, "evaluate")
    (verdict,) = concluded(study).verdicts
    assert verdict.decision == "accepted" and verdict.probability == verdict.result.probabilities[0].probability == 0.5
    sound, order, _ = verdict.questions
    assert {one.label: one.share.value for one in sound.shares} == {"natural": 0.5, "odd": 0.5, "wrong": 0}
    # Half the pairs have equal orders: tau 1. Of the others' three twos one agrees, one does not, one is tied: tau 0.
    assert order.coefficients[0].name == "tau-b" and order.coefficients[0].estimate.value == pytest.approx(0.5)
    assert EvaluationRecords(study).scores["status"].eq("evaluated").all()
    monkeypatch.setattr("sys.argv", [str(APP), "--study", str(study.file), "--exports", str(tmp_path / "exports")])
    for view in ("drift", "verdicts", "campaign", "texts"):
        shown = go_to(AppTest.from_file(str(APP), default_timeout=60), view).run()
        assert not shown.exception and not shown.error, (view, shown.exception, shown.error)

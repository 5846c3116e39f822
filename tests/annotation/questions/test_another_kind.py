"""The kind of question of the maintainer's guide, word for word: one class, and it is asked, read and judged."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.argilla.dataset import Words
from annotation.argilla.simulate import simulated_answer
from annotation.campaign.rubric import load_rubric
from annotation.crowd.mturk.form import Sheet
from annotation.page.task import task_of
from annotation.questions.question import KINDS, Question
from annotation.sampling.queues import Queue
from annotation.statistics.summaries import Design, summarise
from annotation.verdicts.rules import decide
from plumbline.errors import DataError
from plumbline.study import ROOT
from plumbline.study.campaign import SimulatedRater
from tests.annotation.campaigns import Make
from tests.annotation.kinds import ask, rubric

ERRORS: dict[str, Any] = {
    "name": "errors",
    "kind": "number",
    "title": {"en": "How many errors does the new text have?"},
    "scale": {"from": 0, "to": 20, "step": 1},
    "points": {0: {"en": "none"}, 20: {"en": "20 or more"}},
}


def test_a_kind_of_one_file_is_asked_read_and_judged(
    variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guide = (ROOT / "docs/guides/maintainer.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (code,) = [block for block in blocks if "class NumberQuestion" in block]
    assert len(code.splitlines()) <= 60
    (tmp_path / "numbers_typed.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(KINDS, "number", Question)  # so that it is taken out afterwards
    importlib.import_module("numbers_typed")
    ask(monkeypatch, tmp_path, rubric(ERRORS))
    study = variant(rubric="kinds", acceptance={"rules": [{"question": "errors", "at_most": 2}], "min_pairs": 8})
    asked, queue = load_rubric(study), Queue("paraphrasing", "en", "en")
    (shown,) = (one for one in task_of(study, asked, queue, "q")["questions"] if one["name"] == "errors")
    assert (shown["kind"], shown["required"]) == ("text", True)
    form = Words.of(asked, queue).forms["errors"]
    assert (form.type, form.options) == ("text", ())
    sheet, others = Sheet(study.name, asked, {"p": "paraphrasing"}, "x"), {"p.quality": "5", "p.fluency": "5"}
    (answer,) = sheet.answers(others | {"p.errors": "3"}, ["p"], "2026-01-01T00:00:00+00:00")
    assert answer.values["errors"] == 3
    with pytest.raises(DataError, match="21 is not on the scale 0 to 20"):
        sheet.answers(others | {"p.errors": "21"}, ["p"], "2026-01-01T00:00:00+00:00")
    felt = [
        simulated_answer(1, SimulatedRater(name="a", noise=0.1), f"p{i}", {"errors": 1.0}, asked)["errors"]
        for i in range(20)
    ]
    rows = [{"pair_id": f"p{i}", "rater_id": "a", "question": "errors", "value": value} for i, value in enumerate(felt)]
    design = Design.of(study, asked)
    summary = summarise(pd.DataFrame(rows), "errors", design, 1)
    assert (summary.kind, summary.n_ratings) == ("number", 20) and 0.5 < summary.mean < 1.5
    decision, _ = decide([summary], 20, design.rule, design.rule.rules)
    assert decision == "accepted"

"""Questions of all kinds: how answers are kept, what is refused, and that old rubrics mean what they meant."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.argilla.dataset import Words
from annotation.argilla.simulate import simulated_answer
from annotation.campaign.rubric import load_rubric
from annotation.crowd.mturk.form import Sheet
from annotation.page.task import task_of
from annotation.questions.question import KINDS, Question
from annotation.questions.ranking import RankingQuestion, ranked, ranks_of
from annotation.questions.rating import RatingQuestion
from annotation.sampling.queues import Queue
from annotation.statistics.summaries import Design, summarise
from annotation.verdicts.rules import decide
from plumbline.errors import DataError, StudyError
from plumbline.study import ROOT
from plumbline.study.campaign import SimulatedRater
from tests.annotation.campaigns import Make
from tests.annotation.kinds import BETTER, EFFORT, NATURAL, RULES, ask, rubric
from tests.annotation.kinds import ORDER as ORDER_

ORDER = RankingQuestion("order", labels=("a", "b", "c"))
SHARE: dict[str, Any] = {"question": "naturalness", "label": "odd", "at_most": 0.5}


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), min_size=1))
def test_rankings_come_back(ranks: dict[str, int]) -> None:
    found = ranks_of(ranked(ranks))
    assert all((ranks[x] < ranks[y]) == (found[x] < found[y]) for x in ranks for y in ranks)


def study_with(patch: pytest.MonkeyPatch, folder: Path, variant: Make, content: dict[str, Any], **changes: Any) -> Any:
    ask(patch, folder, content)
    return variant(**{"rubric": "kinds", "acceptance": {"rules": RULES}, **changes})


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (NATURAL | {"name": "quality"}, "question 'quality' appears twice"),
        (NATURAL | {"name": "counts"}, "question 'counts': files of ratings use this name"),
        (NATURAL | {"labels": {"Not so": {"en": "x"}, "b": {"en": "y"}}}, "label 'Not so': a name begins with a lower"),
        (NATURAL | {"points": {1: {"en": "x"}}}, "'naturalness' is a label, which has no points, no scale"),
        (BETTER | {"labels": {"a": {"en": "x"}, "b": {"en": "y"}}}, "question 'better' is a text, which has no labels"),
        (NATURAL | {"pools": ["poetry"]}, "question 'naturalness' names a pool 'poetry' that the rubric does"),
        (ORDER_ | {"labels": {"a": {"en": "A"}}}, "question 'order' needs two labels or more"),
        (
            NATURAL | {"labels": {"natural": {"en": "Fine"}, "odd": {"en": "Odd", "de": " fine "}}},
            "the labels 'natural' and 'odd' are both called ' fine '; reword one of them",
        ),
        (
            NATURAL | {"labels": {"natural": {"en": "Odd"}, "odd": {"en": "So so"}}},
            "the labels 'natural' and 'odd' are both called 'odd'",
        ),
    ],
)
def test_a_rubric_that_cannot_be_asked_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variant: Make, question: dict[str, Any], said: str
) -> None:
    study = study_with(monkeypatch, tmp_path, variant, rubric(question))
    with pytest.raises(StudyError, match="kinds.yaml") as raised:
        load_rubric(study)
    assert said in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"question": "mood", "at_least": 3}, "acceptance.rules: no question is called 'mood'"),
        ({"question": "naturalness", "at_least": 3}, "a label has no mean; give the `label` whose share"),
        (SHARE | {"question": "quality"}, "a rating has no labels; leave `label` out"),
        (SHARE | {"label": "lovely"}, "no label is called 'lovely'"),
        ({"question": "quality", "at_most": 6}, "6 is outside the scale 1 to 5"),
        ({"question": "better", "at_least": 1}, "a rule cannot judge a text"),
        ({"question": "quality", "at_least": 3, "pools": ["poetry"]}, "there is no pool 'poetry'"),
        ({"question": "quality", "at_least": 3, "pools": ["expansion"]}, "no rule judges the pool"),
        ({"question": "effort", "at_most": 1, "pools": ["translation"]}, "the question is optional, so skipped"),
    ],
)  # fmt: skip
def test_rules_that_cannot_judge_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variant: Make, rule: dict[str, Any], said: str
) -> None:
    content = rubric(NATURAL, EFFORT, BETTER, ORDER_)
    study = study_with(monkeypatch, tmp_path, variant, content, acceptance={"rules": [rule]})
    with pytest.raises(StudyError) as raised:
        load_rubric(study)
    assert said in str(raised.value)
    assert all(line.startswith(f"{study.file}: ") for line in str(raised.value).splitlines())


def labels_alone(**changes: Any) -> dict[str, Any]:
    content = rubric()
    pools = {name: {part: pool[part] for part in ("title", "asked")} for name, pool in content["pools"].items()}
    del content["scale"], content["threshold"]
    return content | {"questions": [NATURAL, ORDER_, BETTER], "pools": pools} | changes


def test_a_rubric_without_a_rating_needs_no_scale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variant: Make
) -> None:
    ask(monkeypatch, tmp_path, labels_alone())
    study = variant(rubric="kinds", acceptance={"rules": [SHARE]})  # and `quality` has nothing to say in points
    asked = load_rubric(study)
    assert (asked.scale, asked.threshold, asked.rating_names()) == ((), None, [])
    assert Design.of(study, asked).needed("paraphrasing") == ("naturalness", "order")
    with pytest.raises(StudyError) as raised:
        load_rubric(variant(rubric="kinds", acceptance={}))
    assert str(raised.value).endswith("no question has a scale for the threshold; set acceptance.rules instead")


def test_a_point_without_words_is_not_explained_by_itself() -> None:
    rating = RatingQuestion("clear", (1, 2, 3))
    assert rating.description("How clear?", {1: "1", 3: "3"}) == "How clear?"
    assert rating.description("", {1: "unclear", 2: "2", 3: "clear"}) == "1 = unclear; 3 = clear."


def test_simulated_raters_err_in_proportion_to_the_scale() -> None:
    """A point of the scale from 1 to 5 is a quarter of any scale's range."""
    rater, drawn = SimulatedRater(name="a", bias=0.2, noise=0.6), np.random.default_rng(1).normal(0, 0.6, (400, 2))
    for scale in ((1, 2, 3, 4, 5), tuple(range(1, 8)), tuple(range(101))):
        low, high = scale[0], scale[-1]
        question = RatingQuestion.of("q", scale, (), required=None, pools=())
        felt = [question.simulated(rater, (low + high) / 2, noise) for noise in drawn]
        share = (np.array(felt, dtype=float) - low) / (high - low)
        assert share.mean() == pytest.approx(0.55, abs=0.03) and share.std() == pytest.approx(0.15, abs=0.03)


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


def test_a_scale_of_each_question_needs_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variant: Make) -> None:
    ask(monkeypatch, tmp_path, labels_alone(questions=[NATURAL, EFFORT | {"required": True, "pools": []}]))
    rules = [{"question": "effort", "at_most": 1}]
    assert load_rubric(variant(rubric="kinds", acceptance={"rules": rules})).scale == ()
    with pytest.raises(StudyError, match="question 'effort' has its own scale or counts fewer points as better, so "):
        load_rubric(variant(rubric="kinds", acceptance={"threshold": 1.0}))

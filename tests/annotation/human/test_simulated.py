"""What answers say, in the data set's own words, and that made-up raters err as often as they are told to."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np

from annotation.human.answers import order_of
from annotation.human.forms import RaterAnswers, Skill, form_of
from annotation.human.records import HumanAnswer, HumanItem, HumanTask
from annotation.human.simulated import Rehearsal
from annotation.questions.question import KINDS
from generation.datasets.scored import ScoredItem
from plumbline.study.campaign import SimulatedRater

TYPES = {
    "score": "sts", "label": "classification", "labels": "multilabel_classification", "same": "pair_classification",
    "cluster": "clustering", "choice": "bitext_mining",
}  # fmt: skip


def task_of(asked: str, **more: Any) -> HumanTask:
    content = {
        "task": "t", "task_type": TYPES.get(asked, "reranking"), "source": "d.csv", "revision": "1",
        "labels": ("tea", "sea", "bee", "oak") if asked in ("label", "labels") else (),
        "scale": {"score": (0, 1, 2, 3, 4, 5), "graded": (0, 1, 2, 3)}.get(asked, ()), "languages": ("en",),
        "content_hash": "", "words": {"general": {}, "own": {}, "wordings": ()},
        "settings": {"dataset": "d", "relevance": asked, "raters": 2},
    }  # fmt: skip
    return HumanTask.model_validate(content | more)


def item_of(name: str = "7", shown: tuple[str, ...] = (), records: tuple[str, ...] = ()) -> HumanItem:
    return HumanItem(task="t", subset="", item=name, language="en", shown=shown, records=records or (f"p{name}",))


def test_records_of_single_candidates_are_one_item_again() -> None:
    task, item = task_of("graded", candidates=11), item_of(shown=("b", "c", "a"), records=("ra", "rb", "rc"))
    # The third, and one in nobody's order.
    given = {"rc": RaterAnswers({"t": "g2"}, 4.0, (3,)), "rb": RaterAnswers({"t": "g0"}, 3.0)}
    found = list(form_of(task).answers(item, given, "r", simulated=False))
    assert form_of(task).per_candidate
    assert [(one.candidate, one.value, one.place) for one in found] == [("b", 0, 0), ("c", 2, 3)]
    assert all(math.isnan(one.seconds) for one in found)  # how long it took is not known before the last
    given["ra"] = RaterAnswers({"t": "cannot_tell"}, 1.0)
    whole = list(form_of(task).answers(item, given, "r", simulated=False))
    assert {one.seconds for one in whole} == {8.0} and [one.abstained for one in whole] == [True, False, False]


def test_an_answer_is_about_the_same_candidate_wherever_a_rater_saw_it() -> None:
    """Shown as b, c, a and seen as a, b, c (the third, the first, the second): c, the second shown, was seen last."""
    item, order = item_of(shown=("b", "c", "a")), (3, 1, 2)
    graded = {"t": "g3", "t-2": "g2", "t-3": "g1"}
    cases = [
        (task_of("graded", candidates=3), graded, [("b", 3.0, 2), ("c", 2.0, 3), ("a", 1.0, 1)]),
        (task_of("ranked", candidates=3), {"t": "yes", "t-order": "d2 > d1 > d3"},
         [("b", 2, 2), ("c", 3, 3), ("a", 1, 1)]),
        (task_of("choice", candidates=3), {"t": "d2"}, [("", "c", 3)]),
    ]  # fmt: skip
    for task, answers, wanted in cases:
        own = list(form_of(task).answers(item, {"p7": RaterAnswers(answers, 9.0, order)}, "r", simulated=False))
        assert [(one.candidate, one.label or one.value, one.place) for one in own] == wanted
        unknown = {"p7": RaterAnswers(answers, 9.0, order_of("unknown"))}
        nobody = form_of(task).answers(item, unknown, "r", simulated=False)
        assert {one.place for one in nobody} == {0}


RATER, SKILL = SimulatedRater(name="r", bias=0.5, noise=0.5), Skill(right=0.8)
MANY = 3000


def rehearsed(task: HumanTask, gold: list[ScoredItem], skill: Skill = SKILL) -> list[HumanAnswer]:
    shown = [tuple(one.candidates) for one in gold]
    items = [item_of(one.item, shown=own) for one, own in zip(gold, shown, strict=True)]
    made = Rehearsal([task], items, {("t", one.item): one for one in gold}, seed=11)
    found = []
    for item in items:
        answers = made.answers(RATER, item.pair_id, skill)
        for asking in form_of(task).questions():
            given = answers.get(asking.name)
            asked = KINDS[asking.kind](asking.name, (), asking.labels, asking.required)
            assert given is None or not asked.wrong(given), given
        found += list(form_of(task).answers(item, {item.pair_id: RaterAnswers(answers)}, "r", simulated=True))
    return found


def scored(i: int, **more: Any) -> ScoredItem:
    return ScoredItem("", str(i), "en", "en", {"text": f"t{i}"}, **more)


def test_a_known_confusion_is_recovered() -> None:
    """0.8 right, else one of three others alike: shares within four standard errors, sqrt(p (1 - p) / n)."""
    labels = task_of("label").labels
    gold = [scored(i, labels=(labels[i % 4],)) for i in range(MANY)]
    confusion = np.zeros((4, 4))
    for one, answer in zip(gold, rehearsed(task_of("label"), gold), strict=True):
        confusion[labels.index(one.labels[0]), labels.index(answer.label)] += 4 / MANY
    wanted = np.full((4, 4), 0.2 / 3) + np.eye(4) * (0.8 - 0.2 / 3)
    assert (np.abs(confusion - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / (MANY / 4))).all()


def test_scores_clusters_marks_and_choices_err_as_told() -> None:
    near = 4 * np.sqrt(0.16 / MANY)
    scores = rehearsed(task_of("score"), [scored(i, score=2.0) for i in range(MANY)])
    assert abs(np.mean([one.value for one in scores]) - 2.5) < 4 * 0.6 / np.sqrt(MANY)  # bias, and rounding is even
    clusters = rehearsed(task_of("cluster", clusters_told=4), [scored(i, labels=(f"k{i % 4}",)) for i in range(MANY)])
    for k in range(4):
        (_, most), *_ = Counter(one.label for one in clusters[k::4]).most_common(1)
        assert abs(most / (MANY / 4) - 0.8) < 2 * near
    assert len({Counter(one.label for one in clusters[k::4]).most_common(1)[0][0] for k in range(4)}) == 4
    found = {str(k): f"c{k}" for k in range(3)}
    choices = [scored(i, candidates=found, relevant=frozenset({str(i % 3)})) for i in range(MANY)]
    chosen = rehearsed(task_of("choice", candidates=3), choices)
    assert abs(np.mean([one.label in gold.relevant for one, gold in zip(chosen, choices, strict=True)]) - 0.8) < near
    marks = rehearsed(task_of("binary", candidates=3), choices[:1000])
    right = [one.value == (one.candidate in choices[int(one.item)].relevant) for one in marks]
    assert abs(np.mean(right) - 0.8) < near


def test_who_cannot_tell_says_so_as_often_as_told() -> None:
    shy = Skill(cannot_tell=0.25)
    for asked, more in (("label", {"labels": ("tea",)}), ("labels", {"labels": ("tea", "oak")})):
        found = rehearsed(task_of(asked), [scored(i, **more) for i in range(1000)], shy)
        assert abs(np.mean([one.abstained for one in found]) - 0.25) < 4 * np.sqrt(0.1875 / 1000)
    sure = rehearsed(task_of("labels"), [scored(0, labels=("tea", "oak"))], Skill(right=1.0))
    assert [json.loads(one.label) for one in sure] == [["tea", "oak"]]

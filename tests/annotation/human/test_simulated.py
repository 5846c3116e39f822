"""What answers say, in the data set's own words, and that made-up raters err as often as they are told to."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation.human.asking import RaterAnswers, answered, answers_of, apart, lines_of, order_of, questions_of
from annotation.human.records import HumanAnswer, HumanItem, HumanTask
from annotation.human.simulated import Rehearsal
from annotation.questions import QuestionScale
from annotation.ratings.ratings import counting_ratings
from generation.datasets.scored import ScoredItem
from plumbline.study.campaign import SimulatedRater


def task_of(asked: str, **more: Any) -> HumanTask:
    labels = ("tea", "sea", "bee", "oak") if asked in ("label", "labels") else ()
    scale = {"score": (0, 1, 2, 3, 4, 5), "graded": (0, 1, 2, 3)}.get(asked, ())
    content = {
        "task": "t",
        "task_type": "x",
        "dataset": "d",
        "source": "d.csv",
        "revision": "1",
        "split": "test",
        "metric": "m",
        "asked": asked,
        "labels": labels,
        "scale": scale,
        "raters": 2,
        "n_items": 3,
        "languages": ("en",),
        "content_hash": "",
        "instructions_hash": "",
        "settings": {},
    }
    return HumanTask.model_validate(content | more)


def item_of(name: str = "7", shown: tuple[str, ...] = (), records: tuple[str, ...] = ()) -> HumanItem:
    return HumanItem(pair_id="" if records else f"p{name}", task="t", subset="", item=name, language="en", n_chars=9,
                     candidates=tuple(sorted(shown)), shown=shown, records=records)  # fmt: skip


def said(task: HumanTask, item: HumanItem, answers: dict[str, str]) -> list[tuple[Any, ...]]:
    rows = answers_of(task, item, {item.pair_id: RaterAnswers(answers, 9.0)}, "r", simulated=False)
    return [(one.candidate, one.value, one.label, one.abstained, one.place) for one in rows]


NAN = pytest.approx(math.nan, nan_ok=True)
SAID = [
    (task_of("score"), (), {"t": "p3"}, [("", 3.0, "", False, 0)]),
    (task_of("score", scale=(-1, 0, 1)), (), {"t": "p-1"}, [("", -1.0, "", False, 0)]),
    (task_of("label"), (), {"t": "l2"}, [("", NAN, "sea", False, 0)]),
    (task_of("labels"), (), {"t": "l1, l4"}, [("", NAN, '["tea", "oak"]', False, 0)]),
    (task_of("labels"), (), {"t": "none"}, [("", NAN, "[]", False, 0)]),
    (task_of("labels"), (), {"t": "l1, cannot_tell"}, [("", NAN, "", True, 0)]),
    (task_of("same"), (), {"t": "no"}, [("", 0.0, "", False, 0)]),
    (task_of("cluster", clusters_told=3), (), {"t": "c3"}, [("", NAN, "3", False, 0)]),
    (task_of("choice", candidates=3), ("b", "c", "a"), {"t": "d2"}, [("", NAN, "c", False, 2)]),
    (task_of("choice", candidates=3, relevant_in="maybe_absent"), ("b", "a"), {"t": "none"}, [("", NAN, "", False, 0)]),
    (task_of("score"), (), {"t": "cannot_tell"}, [("", NAN, "", True, 0)]),
    (task_of("graded", candidates=2), ("b", "a"), {"t": "g3", "t-2": "cannot_tell"},
     [("b", 3.0, "", False, 1), ("a", NAN, "", True, 2)]),
    (task_of("binary", candidates=2), ("b", "a"), {"t": "no", "t-2": "yes"},
     [("b", 0.0, "", False, 1), ("a", 1.0, "", False, 2)]),
    # Ranks 2, 1 and 2 of three: more is better, so 4 minus each.
    (task_of("ranked", candidates=3), ("b", "c", "a"), {"t": "yes", "t-order": "d2 > d1 = d3"},
     [("b", 2.0, "", False, 1), ("c", 3.0, "", False, 2), ("a", 2.0, "", False, 3)]),
    (task_of("ranked", candidates=2), ("b", "a"), {"t": "cannot_tell", "t-order": "d1 > d2"},
     [("b", NAN, "", True, 1), ("a", NAN, "", True, 2)]),
    (task_of("ranked", candidates=2), ("b", "a"), {"t": "yes"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("task", "shown", "given", "rows"), SAID)
def test_answers_are_in_the_words_of_the_data(
    task: HumanTask, shown: tuple[str, ...], given: dict[str, str], rows: list[tuple[Any, ...]]
) -> None:
    assert said(task, item_of(shown=shown), given) == rows


def test_records_of_single_candidates_are_one_item_again() -> None:
    task, item = task_of("graded", candidates=11), item_of(shown=("b", "c", "a"), records=("ra", "rb", "rc"))
    given = {
        "rc": RaterAnswers({"t": "g2"}, 4.0, (3,)),
        "rb": RaterAnswers({"t": "g0"}, 3.0),
    }  # the third, and one in nobody's order
    found = list(answers_of(task, item, given, "r", simulated=False))
    assert apart(task) and [(one.candidate, one.value, one.place) for one in found] == [("b", 0, 0), ("c", 2, 3)]
    assert all(math.isnan(one.seconds) for one in found)  # how long it took is not known before the last
    whole = list(answers_of(task, item, {**given, "ra": RaterAnswers({"t": "cannot_tell"}, 1.0)}, "r", simulated=False))
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
        own = list(answers_of(task, item, {"p7": RaterAnswers(answers, 9.0, order)}, "r", simulated=False))
        assert [(one.candidate, one.label or one.value, one.place) for one in own] == wanted
        nobody = answers_of(task, item, {"p7": RaterAnswers(answers, 9.0, order_of("unknown"))}, "r", simulated=False)
        assert {one.place for one in nobody} == {0}


def test_an_order_that_a_form_made_up_says_no_place_and_changes_no_answer() -> None:
    """Of two of three, of four, of one that is nowhere, and of a place beyond the last of three."""
    task, item = task_of("graded", candidates=3), item_of(shown=("b", "c", "a"))
    graded = {"t": "g3", "t-2": "g2", "t-3": "g1"}
    for order in ((2, 1), (1, 2, 3, 4), (3,), (9999,)):
        found = answers_of(task, item, {item.pair_id: RaterAnswers(graded, 9.0, order)}, "r", simulated=False)
        assert [(one.candidate, one.value, one.place) for one in found] == [("b", 3, 0), ("c", 2, 0), ("a", 1, 0)]
    apart_task, records = task_of("graded", candidates=11), item_of(shown=("b", "c", "a"), records=("ra", "rb", "rc"))
    (one,) = answers_of(apart_task, records, {"rc": RaterAnswers({"t": "g2"}, 4.0, (4,))}, "r", simulated=False)
    assert (one.candidate, one.value, one.place) == ("c", 2, 0)


def ratings(rows: list[tuple[str, str, str, str]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["pair_id", "rater_id", "answer", "status"])
    at = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(range(len(frame)), unit="min")
    return frame.assign(question="t", seconds=1.0, simulated=False, excluded="", withdrawn="", submitted_at=at)


def test_half_answered_tasks_count_as_far_as_they_go_and_are_told() -> None:
    """Two of two raters on one item, one on another, none on a third; a third rater comes too late, a draft is none."""
    task, items = task_of("label"), [item_of("1"), item_of("2"), item_of("3")]
    given = ratings([
        ("p1", "a", "l1", "submitted"), ("p1", "b", "l2", "submitted"), ("p1", "c", "l3", "submitted"),
        ("p2", "a", "cannot_tell", "submitted"), ("p3", "b", "l1", "draft"), ("p3", "a", "", "discarded"),
    ])  # fmt: skip
    found = answered([task], items, {"t": counting_ratings(given, task.raters)})
    assert [(one.item, one.rater_id, one.label, one.abstained) for one in found.answers] == [
        ("1", "a", "tea", False), ("1", "b", "sea", False), ("2", "a", "", True),
    ]  # fmt: skip
    (line,) = lines_of([task], found.answers, {"t": Counter({"drafts": 1, "discarded": 1})})
    assert line == (
        "t (x): 1 of 3 items has 2 or more raters, 2 have at least one rater; 2 raters; 1 of 3 answers"
        " is 'cannot tell'; not counted: drafts 1, discarded 1"
    )


def test_a_task_that_nobody_has_begun_is_told_and_stops_nobody() -> None:
    task, nothing = task_of("label"), ratings([])
    found = answered([task], [item_of("1")], {"t": counting_ratings(nothing, task.raters)})
    assert found.answers == [] and lines_of([task], [], {"t": Counter()}) == [
        "t (x): 0 of 3 items have 2 or more raters, 0 have at least one rater; 0 raters; 0 of 0 answers"
        " are 'cannot tell'"
    ]


RATER = SimulatedRater(name="r", right=0.8, bias=0.5, noise=0.5)
MANY = 3000


def rehearsed(task: HumanTask, gold: list[ScoredItem], rater: SimulatedRater = RATER) -> list[HumanAnswer]:
    shown = [tuple(one.candidates) for one in gold]
    items = [item_of(one.item, shown=own) for one, own in zip(gold, shown, strict=True)]
    made = Rehearsal([task], items, {("t", one.item): one for one in gold}, seed=11)
    found = []
    for item in items:
        answers = made.answers(rater, item.pair_id)
        for asking in questions_of(task):
            given = answers.get(asking.name)
            asked = QuestionScale(asking.name, asking.kind, (), asking.labels, asking.required)
            assert given is None or not asked.wrong(given), given
        found += list(answers_of(task, item, {item.pair_id: RaterAnswers(answers)}, "r", simulated=True))
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
    shy = SimulatedRater(name="shy", cannot_tell=0.25)
    for asked, more in (("label", {"labels": ("tea",)}), ("labels", {"labels": ("tea", "oak")})):
        found = rehearsed(task_of(asked), [scored(i, **more) for i in range(1000)], shy)
        assert abs(np.mean([one.abstained for one in found]) - 0.25) < 4 * np.sqrt(0.1875 / 1000)
    sure = rehearsed(task_of("labels"), [scored(0, labels=("tea", "oak"))], SimulatedRater(name="sure", right=1.0))
    assert [json.loads(one.label) for one in sure] == [["tea", "oak"]]


def test_an_order_of_a_rater_without_noise_has_the_right_ones_first() -> None:
    gold = scored(0, candidates={"a": "A", "b": "B", "c": "C"}, relevant=frozenset({"b"}))
    found = rehearsed(task_of("ranked", candidates=3), [gold], SimulatedRater(name="calm", noise=0.0))
    assert max(found, key=lambda one: one.value).candidate == "b" and {one.value for one in found} == {1.0, 2.0, 3.0}

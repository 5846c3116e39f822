"""The rules of `ratings.signs` once more, slow and plain: one rater after another, one answer after another."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from annotation.ratings.signs import Expected
from annotation.records import Sign
from plumbline.records import Pair
from plumbline.study.campaign import QualityLimits
from plumbline.words import count_words

Row = dict[str, Any]


def plain_signs(rows: Sequence[Row], pairs: Sequence[Pair], rules: QualityLimits, expected: Expected) -> list[Sign]:
    """The signs in ratings; comments, which need no arithmetic, are left out."""
    known = {pair.pair_id: pair for pair in pairs}
    rows = [row for row in rows if row["status"] == "submitted" and row["pair_id"] in known]
    found = []
    for rater in sorted({row["rater_id"] for row in rows}):
        own = [row for row in rows if row["rater_id"] == rater]
        for rule in (_controls(own, known, rules, expected), _repeats(own, known, rules), _same(own, rules),
                     _fast(own, known, rules), _apart(own, rows, known, rules)):  # fmt: skip
            found += [Sign(rater_id=rater, rule=name, evidence=evidence, n=n) for name, evidence, n in rule]
    return found


Found = Iterator[tuple[str, str, int]]


def _controls(own: Sequence[Row], known: dict[str, Pair], rules: QualityLimits, expected: Expected) -> Found:
    answered, off = 0, []
    for row in own:
        pair = known[row["pair_id"]]
        right = expected(pair.pool, pair.control).get(row["question"])
        if right is not None:
            answered += 1
            if abs(row["value"] - right) > rules.of(row["question"]).within:
                off.append(f"{pair.control} {row['question']} {row['value']} instead of {right}")
    if off:
        yield "controls", f"{len(off)} of {answered} answers to controls are wrong: {_some(off)}", answered


def _repeats(own: Sequence[Row], known: dict[str, Pair], rules: QualityLimits) -> Found:
    before = {(row["pair_id"], row["question"]): row["value"] for row in own}
    again, off = 0, []
    for row in own:
        first = before.get((known[row["pair_id"]].repeats, row["question"]))
        if known[row["pair_id"]].control == "repeat" and first is not None:
            again += 1
            if abs(row["value"] - first) > rules.of(row["question"]).within:
                off.append(f"{row['question']} {first} then {row['value']}")
    if off:
        yield "repeats", f"{len(off)} of {again} repeated answers are inconsistent: {_some(off)}", again


def _same(own: Sequence[Row], rules: QualityLimits) -> Found:
    questions = sorted({row["question"] for row in own})
    value = {(row["pair_id"], row["question"]): row["value"] for row in own}
    answers = [tuple(value.get((pair, question)) for question in questions) for pair in {row["pair_id"] for row in own}]
    whole = [answer for answer in answers if None not in answer]
    if len(whole) >= rules.least_answers:
        answer, times = Counter(whole).most_common(1)[0]
        if times / len(whole) >= rules.same_answer:
            said = ", ".join(f"{question} {point}" for question, point in zip(questions, answer, strict=True))
            yield "same answer", f"{times} of {len(whole)} pairs have {said}", len(whole)


def _fast(own: Sequence[Row], known: dict[str, Pair], rules: QualityLimits) -> Found:
    seconds = {row["pair_id"]: row["seconds"] for row in reversed(own) if row["seconds"] == row["seconds"]}
    words = {pair: count_words(known[pair].original) + count_words(known[pair].transformed) for pair in seconds}
    fast = sum(taken < words[pair] / rules.words_a_second for pair, taken in seconds.items())
    if len(seconds) >= rules.least_answers and fast / len(seconds) > rules.too_fast:
        yield (
            "too fast",
            f"{fast} of {len(seconds)} pairs were answered faster than reading {rules.words_a_second:g} words a"
            f" second allows; median time {statistics.median(seconds.values()):.1f} s",
            len(seconds),
        )


def _apart(own: Sequence[Row], rows: Sequence[Row], known: dict[str, Pair], rules: QualityLimits) -> Found:
    for question in sorted({row["question"] for row in own}):
        mine, theirs = [], []
        for row in own:
            of_pair = [one for one in rows if (one["pair_id"], one["question"]) == (row["pair_id"], question)]
            others = [one["value"] for one in of_pair if one["rater_id"] != row["rater_id"]]
            if row["question"] == question and others and not known[row["pair_id"]].control:
                mine.append(float(row["value"]))
                theirs.append(statistics.fmean(others))
        if len(mine) < rules.least_answers:
            continue
        shift = statistics.fmean(one - other for one, other in zip(mine, theirs, strict=True))
        varied = len(set(mine)) > 1 and len(set(theirs)) > 1
        rho = statistics.correlation(_ranks(mine), _ranks(theirs)) if varied else None
        if abs(shift) >= rules.of(question).apart or (rho is not None and rho < rules.least_rho):
            told = "no rank correlation (one side does not vary)" if rho is None else f"rank correlation {rho:.2f}"
            yield "apart from the others", f"{question}: {shift:+.2f} from the others' mean, {told}", len(mine)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ties share the mean of their places."""
    return [sum(one < value for one in values) + (1 + values.count(value)) / 2 for value in values]


def _some(said: Sequence[str]) -> str:
    return "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")

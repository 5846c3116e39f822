"""Signs that a rater's answers may not be what they should be (PTEB, appendix B; METHOD: decided before any rating).

Pure functions from ratings, pairs and the study's rules to signs. A sign names its rule and its evidence and decides
nothing: a person does (`annotation.decisions`). Signs of machine-written comments are hints and never proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.records import Sign
from generation.campaign_specs import QualitySpec
from generation.records import Pair
from generation.words import count_words

# (pool, kind of control) -> question: the answer that an attentive rater gives; `Rubric.expected` is one.
Expected = Callable[[str, str], Mapping[str, int]]

# What chat programs write and hurried people do not (PTEB, appendix B, names dashes and stock phrases).
_DASHES = re.compile(r"[—–]")
_STOCK = re.compile(
    r"\b(?:overall|furthermore|moreover|in summary|it is worth noting|accurately (?:conveys|captures|preserves)|"
    r"maintains the (?:core|original) meaning|as an ai|retains the)\b",
    re.IGNORECASE,
)
_WORDY = 30  # words of a comment


def find_signs(ratings: pd.DataFrame, pairs: Sequence[Pair], rules: QualitySpec, expected: Expected) -> list[Sign]:
    """All signs in the submitted ratings, by rater and rule.

    `ratings` holds `generation.records.Rating` rows, excluded ones among them: what was decided does not hide why.
    `pairs` are those of the sample and the controls; `expected` tells the right answers to these.
    """
    submitted = ratings[ratings["status"] == "submitted"]
    known = {pair.pair_id: pair for pair in pairs}
    frame = submitted[submitted["pair_id"].isin(known)].assign(
        pool=lambda rows: rows["pair_id"].map(lambda key: known[key].pool),
        control=lambda rows: rows["pair_id"].map(lambda key: known[key].control),
        repeats=lambda rows: rows["pair_id"].map(lambda key: known[key].repeats),
        value=lambda rows: rows["value"].astype(float),
    )
    checks: list[Callable[[str, pd.DataFrame], Iterator[Sign]]] = [
        lambda rater, own: _controls(rater, own, rules, expected),
        lambda rater, own: _repeats(rater, own, rules),
        lambda rater, own: _one_answer(rater, own, rules),
        lambda rater, own: _too_fast(rater, own, rules, known),
        lambda rater, own: _apart(rater, own, frame, rules),
        _comments,
    ]
    return [sign for rater, own in frame.groupby("rater_id") for check in checks for sign in check(str(rater), own)]


def low_pairs(ratings: pd.DataFrame, pairs: Sequence[Pair], rules: QualitySpec) -> pd.DataFrame:
    """Pairs of the sample whose mean over raters is at most `rules.low` for a question, lowest first.

    Columns: pair_id, transformation, question, mean, n. PTEB, appendix B, step 3: they are read by a person.
    """
    sampled = {pair.pair_id for pair in pairs if not pair.control}
    counting = ratings[(ratings["status"] == "submitted") & ratings["pair_id"].isin(sampled)]
    means = counting.groupby(["pair_id", "transformation", "question"], as_index=False).agg(
        mean=("value", "mean"), n=("value", "size")
    )
    means["mean"] = means["mean"].astype(float)
    return means[means["mean"] <= rules.low].sort_values(["mean", "pair_id", "question"], ignore_index=True)


def controls_missed(
    ratings: pd.DataFrame, controls: Sequence[Pair], rules: QualitySpec, expected: Expected
) -> tuple[int, int]:
    """(submitted ratings of controls that are off by more than `rules.within`, all whose right answer is known)."""
    known = {pair.pair_id: pair for pair in controls}
    own = ratings[(ratings["status"] == "submitted") & ratings["pair_id"].isin(known)]
    own = own.assign(
        pool=own["pair_id"].map(lambda key: known[key].pool), control=own["pair_id"].map(lambda key: known[key].control)
    )
    answers = _control_answers(own, expected)
    return len(_missed(answers, rules)), len(answers)


def _control_answers(own: pd.DataFrame, expected: Expected) -> list[tuple[str, str, float, int]]:
    """(kind of control, question, answer, right answer) of each rating of a control that has a right one."""
    asked = own[own["control"].isin(["positive", "negative"])]
    columns = (asked[name] for name in ("pool", "control", "question", "value"))
    return [
        (kind, question, float(value), right)
        for pool, kind, question, value in zip(*columns, strict=True)
        if (right := expected(pool, kind).get(question)) is not None
    ]


def _missed(answers: Sequence[tuple[str, str, float, int]], rules: QualitySpec) -> list[tuple[str, str, float, int]]:
    return [one for one in answers if abs(one[2] - one[3]) > rules.within]


def _controls(rater: str, own: pd.DataFrame, rules: QualitySpec, expected: Expected) -> Iterator[Sign]:
    answers = _control_answers(own, expected)
    missed = _missed(answers, rules)
    if missed:
        said = [f"{kind} {question} {value:g} for {right}" for kind, question, value, right in missed]
        evidence = f"{len(missed)} of {len(answers)} answers to controls are off: {_some(said)}"
        yield _sign(rater, "controls", evidence, answers)


def _repeats(rater: str, own: pd.DataFrame, rules: QualitySpec) -> Iterator[Sign]:
    again = own[own["control"] == "repeat"].merge(
        own[["pair_id", "question", "value"]],
        left_on=["repeats", "question"],
        right_on=["pair_id", "question"],
        suffixes=("", "_before"),
    )
    apart = again[(again["value"] - again["value_before"]).abs() > rules.within]
    if len(apart):
        said = [f"{row.question} {row.value_before:g} then {row.value:g}" for row in apart.itertuples()]
        yield _sign(
            rater, "repeats", f"{len(apart)} of {len(again)} repeated answers are inconsistent: {_some(said)}", again
        )


def _one_answer(rater: str, own: pd.DataFrame, rules: QualitySpec) -> Iterator[Sign]:
    answers = own.pivot(index="pair_id", columns="question", values="value").dropna()
    if len(answers) < rules.least_answers:
        return
    counts = answers.value_counts()
    if counts.iloc[0] / len(answers) >= rules.same_answer:
        first = counts.index[0]
        said = ", ".join(f"{name} {value:g}" for name, value in zip(answers.columns, first, strict=True))
        yield _sign(rater, "same answer", f"{counts.iloc[0]} of {len(answers)} pairs have {said}", answers)


def _too_fast(rater: str, own: pd.DataFrame, rules: QualitySpec, known: Mapping[str, Pair]) -> Iterator[Sign]:
    """Pairs answered in less time than reading both texts takes at `words_a_second`."""
    timed = own.dropna(subset=["seconds"]).drop_duplicates("pair_id")
    if len(timed) < rules.least_answers:
        return
    words = timed["pair_id"].map(lambda key: count_words(known[key].original) + count_words(known[key].transformed))
    fast = timed["seconds"] < words / rules.words_a_second
    if fast.mean() > rules.too_fast:
        middle = timed["seconds"].median()
        yield _sign(
            rater,
            "too fast",
            f"{int(fast.sum())} of {len(timed)} pairs were answered faster than {rules.words_a_second:g} words a second"
            f" can be read; half of all within {middle:.1f} s",
            timed,
        )


def _apart(rater: str, own: pd.DataFrame, frame: pd.DataFrame, rules: QualitySpec) -> Iterator[Sign]:
    """Against the mean of the other raters of each pair (left one out), a question at a time."""
    sampled = frame[frame["control"] == ""]
    others = sampled[sampled["rater_id"] != rater].groupby(["pair_id", "question"])["value"].mean().rename("others")
    shared = own[own["control"] == ""].join(others, on=["pair_id", "question"], how="inner")
    for question, part in shared.groupby("question"):
        if len(part) < rules.least_answers:
            continue
        shift = float((part["value"] - part["others"]).mean())
        varied = part["value"].nunique() > 1 and part["others"].nunique() > 1
        # Spearman's rho is Pearson's of the ranks; without scipy, which the dashboard's first page need not wait for.
        rho = float(part["value"].rank().corr(part["others"].rank())) if varied else float("nan")
        if abs(shift) >= rules.apart or rho < rules.least_rho:
            told = f"rho {rho:.2f}" if varied else "no rank correlation (one of the two does not vary)"
            yield _sign(rater, "apart from the others", f"{question}: {shift:+.2f} from the others' mean, {told}", part)


def _comments(rater: str, own: pd.DataFrame) -> Iterator[Sign]:
    comments = own.drop_duplicates("pair_id")["comment"]
    written = [comment for comment in comments if comment.strip()]
    signs = {
        "dashes": sum(bool(_DASHES.search(comment)) for comment in written),
        "stock phrases": sum(bool(_STOCK.search(comment)) for comment in written),
        "wordy": sum(count_words(comment) > _WORDY for comment in written),
    }
    found = [f"{count} {name}" for name, count in signs.items() if count]
    if found:
        yield _sign(rater, "comments (a hint)", f"of {len(written)} comments: {', '.join(found)}", written)


def _sign(rater: str, rule: str, evidence: str, basis: Any) -> Sign:
    return Sign(rater_id=rater, rule=rule, evidence=evidence, n=len(basis))


def _some(said: Sequence[str]) -> str:
    """The first three."""
    return "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")

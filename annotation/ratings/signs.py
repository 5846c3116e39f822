"""Signs that a rater's answers may not be what they should be (PTEB, appendix B; METHOD: decided before any rating).

Pure functions from ratings, pairs and the study's rules to signs. A sign names its rule and its evidence and decides
nothing: a person does (`annotation.ratings.decisions`). Signs of machine-written comments are hints and never proof.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from annotation.campaign.counting import rows_of
from annotation.campaign.names import UNNAMED, listed_raters
from annotation.campaign.rubric import CHECKS
from annotation.questions.question import Value
from annotation.records import Sign
from plumbline.fields import columns_read
from plumbline.scales import EQUAL
from plumbline.study.campaign import QualityLimits
from plumbline.words import count, count_words

COMMENTS = "comments (a hint)"  # the rule that proves nothing

# (pool, kind of control) -> question: the answer that an attentive rater gives; `Rubric.expected` is one.
Expected = Callable[[str, str], Mapping[str, Value]]

# Marks of chat programs that hurried people do not write (PTEB, appendix B, names dashes and stock phrases).
_DASHES = re.compile(r"[—–]")
_STOCK = re.compile(
    r"\b(?:overall|furthermore|moreover|in summary|it is worth noting|accurately (?:conveys|captures|preserves)|"
    r"maintains the (?:core|original) meaning|as an ai|retains the)\b",
    re.IGNORECASE,
)
_WORDY = 30  # words of a comment


def find_signs(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualityLimits, expected: Expected, labelled: Collection[str] = ()
) -> list[Sign]:
    """All signs in the submitted ratings, by rater and rule.

    `ratings` has `plumbline.records.Rating` rows, including excluded ones, so that a decision does not hide its
    reasons. `pairs` has `plumbline.records.Pair` rows, of the sample and the controls; `expected` returns the right
    answers to these, and `labelled` names the questions that are answered with labels or an order of them: repeats of
    these are compared, too. The same label or order for nearly all pairs may be right, and is no sign; texts give no
    signs. Every rule checks all raters at once, so its cost for each does not grow with their number.
    """
    if not pairs["pair_id"].is_unique:
        pairs = pairs.drop_duplicates("pair_id", keep="last", ignore_index=True)
    submitted = of_pairs(ratings[_by_known(ratings)], pairs)
    if submitted.empty:
        return []
    signs = itertools.chain(
        _controls(submitted, rules, expected),
        _repeats(submitted, rules, pairs, labelled),
        _one_answer(submitted.dropna(subset=["value"]), rules),
        _too_fast(submitted, rules, pairs),
        _apart(submitted.dropna(subset=["value"]), rules),
        _comments(submitted),
    )
    return sorted(signs, key=lambda sign: sign.rater_id)  # stable: a rater's stay in the order of the rules


def of_pairs(ratings: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the submitted ratings of these pairs, with the pairs' columns.

    `pair` is its row in `pairs`, `answer` numbers the answers (of one rater to one pair) in order of appearance, and
    `said` is the rating's `answer` to a question without a scale.
    """
    rows = rows_of(pairs, ratings["pair_id"])
    mask = (rows >= 0) & (ratings["status"] == "submitted").to_numpy()
    columns = ["rater_id", "question", "value", "answer", "seconds", "comment"]
    answered = ratings if "answer" in ratings else ratings.assign(answer="")
    submitted = answered.loc[mask, columns].reset_index(drop=True).rename(columns={"answer": "said"})
    submitted = submitted.assign(pair=rows[mask], value=submitted["value"].astype(float))
    checked = pairs if "expected" in pairs else pairs.assign(expected="")
    facts = {
        name: checked[name].astype("category").array[submitted["pair"]] for name in ("pool", "control", "expected")
    }
    # Names as categories, in their order: they are compared and grouped by as numbers.
    words = dict.fromkeys(["rater_id", "question", "said", *facts], "category")
    joined: pd.DataFrame = submitted.assign(**facts).astype(words)
    return joined.assign(answer=pd.factorize(_codes(joined["rater_id"]) * len(pairs) + joined["pair"].to_numpy())[0])


def _codes(column: pd.Series) -> np.ndarray:
    """A column of categories as numbers that can be multiplied."""
    return column.cat.codes.to_numpy(np.int64)


def control_answers(submitted: pd.DataFrame, expected: Expected) -> pd.DataFrame:
    """Return each rating of a control with its right answer, `right` or `wanted`; a known item brings its own."""
    checked = submitted[submitted["control"].isin(CHECKS)]
    groups = checked.groupby(["pool", "control", "expected", "question"], observed=True).indices
    right, wanted = np.full(len(checked), math.nan), np.full(len(checked), "", object)
    for group, rows in groups.items():
        pool, kind, brought, question = map(str, typing.cast("tuple[str, ...]", group))
        right_answer = (json.loads(brought) if brought else expected(pool, kind)).get(question)
        if right_answer is not None:
            (wanted if isinstance(right_answer, str) else right)[rows] = right_answer
    answers: pd.DataFrame = checked.assign(right=right, wanted=wanted)[~np.isnan(right) | (wanted != "")]
    return answers


def missed_answers(answers: pd.DataFrame, rules: QualityLimits) -> pd.DataFrame:
    """Return the `control_answers` that are wrong, or off by more than the question's tolerance."""
    differs = (answers["wanted"] != "") & (answers["said"].astype(str) != answers["wanted"])
    within = of_questions(answers["question"], rules, "within")
    return answers[differs | ((answers["value"] - answers["right"]).abs() > within + EQUAL)]


def of_questions(questions: pd.Series, rules: QualityLimits, name: str) -> np.ndarray:
    """Return a field of the tolerance of each row's question."""
    codes, names = pd.factorize(questions)
    return np.array([getattr(rules.of(str(question)), name) for question in names], np.float64)[codes]


def _controls(submitted: pd.DataFrame, rules: QualityLimits, expected: Expected) -> Iterator[Sign]:
    answers = control_answers(submitted, expected)
    n = answers["rater_id"].value_counts()
    missed = missed_answers(answers, rules)
    rows = missed[["control", "question", "value", "said", "right", "wanted"]].itertuples(index=False, name=None)
    texts = (
        f"{control} {question} {answer or f'{value:g}'} instead of {wanted or f'{right:g}'}"
        for control, question, value, answer, right, wanted in rows
    )
    for rater, lines in _of_raters(missed, texts).items():
        evidence = f"{len(lines)} of {n[rater]} answers to controls are wrong: {_some(lines)}"
        yield Sign(rater_id=rater, rule="controls", evidence=evidence, n=int(n[rater]))


def _repeats(
    submitted: pd.DataFrame, rules: QualityLimits, pairs: pd.DataFrame, labelled: Collection[str]
) -> Iterator[Sign]:
    again = submitted[
        (submitted["control"] == "repeat") & (submitted["value"].notna() | submitted["question"].isin(list(labelled)))
    ]
    if again.empty:
        return
    first = pd.Index(pairs["pair_id"]).get_indexer(pairs["repeats"])[again["pair"]]
    first_answers = submitted.loc[submitted["pair"].isin(first), ["rater_id", "pair", "question", "value", "said"]]
    both = again.assign(first=first).merge(
        first_answers, left_on=["rater_id", "first", "question"], right_on=["rater_id", "pair", "question"],
        suffixes=("", "_before"),
    )  # fmt: skip
    differs = both["value"].isna() & (both["said"].astype(str) != both["said_before"].astype(str))
    within = of_questions(both["question"], rules, "within")
    if differs.any():
        differs &= both["rater_id"].isin(_at_chance(both.assign(differs=differs), submitted))
    inconsistent = both[differs | ((both["value"] - both["value_before"]).abs() > within + EQUAL)]
    n = both["rater_id"].value_counts()
    rows = inconsistent[["question", "value_before", "said_before", "value", "said"]].itertuples(index=False, name=None)
    texts = (
        f"{question} {said_before or f'{first_value:g}'} then {said_now or f'{second_value:g}'}"
        for question, first_value, said_before, second_value, said_now in rows
    )
    for rater, lines in _of_raters(inconsistent, texts).items():
        evidence = f"{len(lines)} of {n[rater]} repeated answers are inconsistent: {_some(lines)}"
        yield Sign(rater_id=rater, rule="repeats", evidence=evidence, n=int(n[rater]))


def _at_chance(both: pd.DataFrame, submitted: pd.DataFrame) -> pd.Index:
    """Return the raters who changed two labels or more, and whose labels agree no more often than chance would.

    `both` are repeats beside the first answers; by chance two labels agree as often as the shares of all raters' labels
    of the question say (as in Scott's pi).
    """
    labels = both[both["value"].isna()]
    shares = submitted.groupby("question", observed=True)["said"].value_counts(normalize=True)
    chance = (shares**2).groupby(level="question", observed=True).sum()
    of_rater = labels.assign(chance=labels["question"].astype(object).map(chance)).groupby("rater_id", observed=True)
    counts = of_rater.agg(n=("differs", "size"), changed=("differs", "sum"), chance=("chance", "mean"))
    return counts.index[(counts["changed"] > 1) & (1 - counts["changed"] / counts["n"] <= counts["chance"])]


def _of_raters(rows: pd.DataFrame, texts: Iterable[str]) -> dict[str, list[str]]:
    """Group `texts`, one for each row, by the rows' raters."""
    by_rater: dict[str, list[str]] = {}
    for rater, line in zip(rows["rater_id"], texts, strict=True):
        by_rater.setdefault(str(rater), []).append(line)
    return by_rater


def _one_answer(submitted: pd.DataFrame, rules: QualityLimits) -> Iterator[Sign]:
    """Yield signs of raters who gave most pairs the same values on all their questions."""
    submitted = submitted.assign(answer=pd.factorize(submitted["answer"])[0])
    rater, question = _codes(submitted["rater_id"]), _codes(submitted["question"])
    questions = [str(name) for name in submitted["question"].cat.categories]
    was_asked = np.zeros((len(submitted["rater_id"].cat.categories), len(questions)), bool)
    was_asked[rater, question] = True
    values = np.full((submitted["answer"].max() + 1 if len(submitted) else 0, len(questions)), math.nan)
    values[submitted["answer"], question] = submitted["value"]
    first = ~submitted["answer"].duplicated()
    complete = pd.DataFrame(values).assign(rater_id=submitted["rater_id"].array[first])
    complete = complete[(~np.isnan(values) | ~was_asked[rater[first]]).all(axis=1)]
    patterns = complete.groupby(["rater_id", *range(len(questions))], observed=True, dropna=False).size().rename("same")
    # The most frequent first; of several that are, the one with the lowest values.
    most = patterns.reset_index().sort_values("same", ascending=False, kind="stable").drop_duplicates("rater_id")
    totals = complete["rater_id"].value_counts()
    for rater, *values, same in most.itertuples(index=False):
        n = int(totals[rater])
        if n >= rules.least_answers and same / n >= rules.same_answer:
            pattern = zip(questions, values, strict=True)
            text = ", ".join(f"{name} {value:g}" for name, value in pattern if not math.isnan(value))
            yield Sign(rater_id=str(rater), rule="same answer", evidence=f"{same} of {n} pairs have {text}", n=n)


def _too_fast(submitted: pd.DataFrame, rules: QualityLimits, pairs: pd.DataFrame) -> Iterator[Sign]:
    """Pairs answered in less time than reading their texts takes at `words_a_second`."""
    timed = submitted.dropna(subset=["seconds"]).drop_duplicates("answer")
    if timed.empty:
        return
    # Words are counted only for raters who were too fast if each text had as many as its length allows.
    read = columns_read(pairs)
    most = np.zeros(len(pairs), np.int64)
    for column in read:  # a character each, and in ASCII a space between two
        length = column.str.len().to_numpy(np.int64)
        most += np.where(column.str.isascii(), (length + 1) // 2, length)
    may = timed["seconds"] < most[timed["pair"]] / rules.words_a_second
    timed = timed[may.groupby(timed["rater_id"], observed=True).transform("mean") > rules.too_fast]
    words, places = np.zeros(len(pairs), np.int64), timed["pair"].unique()
    for column in read:
        words[places] += column.iloc[places].map(count_words).to_numpy(np.int64)
    fast = timed["seconds"] < words[timed["pair"]] / rules.words_a_second
    of_rater = timed.assign(fast=fast).groupby("rater_id", observed=True)
    raters = of_rater.agg(n=("fast", "size"), fast=("fast", "sum"), middle=("seconds", "median"))
    raters = raters[(raters["n"] >= rules.least_answers) & (raters["fast"] / raters["n"] > rules.too_fast)]
    for row in raters.itertuples():
        evidence = (
            f"{row.fast} of {row.n} pairs were answered faster than reading {rules.words_a_second:g} words a"
            f" second allows; median time {row.middle:.1f} s"
        )
        yield Sign(rater_id=str(row.Index), rule="too fast", evidence=evidence, n=row.n)


def _apart(submitted: pd.DataFrame, rules: QualityLimits) -> Iterator[Sign]:
    """Against the mean of the other raters of each pair (left one out), a question at a time."""
    shared = with_others(submitted[submitted["control"] == ""])
    questions = submitted["question"].cat.categories
    shared = shared.assign(habit=_codes(shared["rater_id"]) * len(questions) + _codes(shared["question"]))
    shared = shared[np.bincount(shared["habit"])[shared["habit"]] >= rules.least_answers]
    habit = shared["habit"].to_numpy()
    of_rater = shared.assign(shift=shared["value"] - shared["others"]).groupby("habit")
    habits = of_rater.agg(n=("pair", "size"), shift=("shift", "mean"))
    # Spearman's rho is Pearson's of the ranks; of n of them, ties or not, the mean is (n + 1) / 2.
    middle = (np.bincount(habit)[habit] + 1) / 2
    mine, theirs = (_ranks(shared[name].to_numpy(), habit) - middle for name in ("value", "others"))
    both, own_square, other_square = (
        np.bincount(habit, product)[habits.index] for product in (mine * theirs, mine * mine, theirs * theirs)
    )
    habits["rho"] = pd.Series(both, habits.index) / np.sqrt(own_square * other_square)  # NaN where one does not vary
    apart = np.array([rules.of(str(question)).apart for question in questions])[habits.index % len(questions)]
    habits = habits[(habits["shift"].abs() >= apart) | (habits["rho"] < rules.least_rho)]
    for code, n, shift, rho in habits.itertuples(name=None):
        rater, question = submitted["rater_id"].cat.categories[code // len(questions)], questions[code % len(questions)]
        correlation = (
            "no rank correlation (one side does not vary)" if math.isnan(rho) else f"rank correlation {rho:.2f}"
        )
        evidence = f"{question}: {shift:+.2f} from the others' mean, {correlation}"
        yield Sign(rater_id=str(rater), rule="apart from the others", evidence=evidence, n=n)


def _ranks(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return each value's rank within its group, ties with their mean; sorted are the groups' distinct values alone."""
    kind, kinds = pd.factorize(values, sort=True)
    cell = pd.factorize(group * len(kinds) + kind, sort=True)[0]
    same, before = np.bincount(cell), np.cumsum(np.bincount(group)) - np.bincount(group)
    ranks: np.ndarray = (np.cumsum(same) - (same - 1) / 2)[cell] - before[group]
    return ranks


def with_others(sampled: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings of pairs that others rated too, with these others' mean (`others`)."""
    value = sampled["value"].to_numpy()
    group = sampled["pair"].to_numpy() * len(sampled["question"].cat.categories) + _codes(sampled["question"])
    number, total = np.bincount(group)[group], np.bincount(group, value)[group]
    shared = number > 1
    compared: pd.DataFrame = sampled[shared].assign(others=(total - value)[shared] / (number[shared] - 1))
    return compared


def _comments(submitted: pd.DataFrame) -> Iterator[Sign]:
    once = submitted.drop_duplicates("answer")
    comment = once["comment"].astype("category")  # each text is checked once, however often it was written
    looks: dict[str, Callable[[str], object]] = {
        "dashes": _DASHES.search,
        "stock phrases": _STOCK.search,
        f"more than {_WORDY} words": lambda text: count_words(text) > _WORDY,
    }
    texts = list(comment.cat.categories)
    if not any(map(str.strip, texts)):
        return
    features = pd.DataFrame({"n": [bool(text.strip()) for text in texts]})
    features = features.assign(**{name: [bool(look(text)) for text in texts] for name, look in looks.items()})
    written = features["n"].to_numpy()[comment.cat.codes]
    own_words = features.iloc[comment.cat.codes[written]].assign(rater_id=once["rater_id"].array[written])
    counts = own_words.groupby("rater_id", observed=True).sum()
    for rater, n, *hits in counts[counts[[*looks]].any(axis=1)].itertuples(name=None):
        phrases = [f"{name} in {count}" for name, count in zip(looks, hits, strict=True) if count]
        evidence = f"{', '.join(phrases)} of {n} comment{'s' * (n != 1)}"
        yield Sign(rater_id=str(rater), rule=COMMENTS, evidence=evidence, n=n)


def _some(texts: Sequence[str]) -> str:
    """The first three."""
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")


def controls_missed(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualityLimits, expected: Expected
) -> tuple[int, int]:
    """Return the number of wrong ratings of controls, and of all ratings of controls with a known right answer.

    `pairs` are as for `find_signs`; those that are no controls play no part.
    """
    answers = _answers(ratings, pairs, expected)
    return len(missed_answers(answers, rules)), len(answers)


def controls_by_kind(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualityLimits, expected: Expected
) -> dict[str, dict[str, tuple[int, int]]]:
    """Return (controls that were missed, controls that were answered) by rater and kind of control.

    A control is missed if any of its answers is wrong: one rater's answers about one text depend on each other.
    """
    answers = _answers(ratings, pairs, expected)
    missed, by_rater = missed_answers(answers, rules), dict[str, dict[str, tuple[int, int]]]()
    of_missed = dict(_numbers(missed))
    for (rater, kind), number in _numbers(answers):
        by_rater.setdefault(rater, {})[kind] = of_missed.get((rater, kind), 0), number
    return by_rater


def _answers(ratings: pd.DataFrame, pairs: pd.DataFrame, expected: Expected) -> pd.DataFrame:
    controls = pairs[pairs["control"].isin(CHECKS)].drop_duplicates("pair_id", keep="last", ignore_index=True)
    return control_answers(of_pairs(ratings, controls), expected)


def _numbers(answers: pd.DataFrame) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the number of controls among answers, by rater and kind."""
    once = answers.drop_duplicates("answer")
    for key, number in once.groupby(["rater_id", "control"], observed=True).size().items():
        rater, kind = map(str, typing.cast("tuple[str, str]", key))
        yield (rater, kind), int(number)


def not_looked_at(
    ratings: pd.DataFrame, pairs: pd.DataFrame, rules: QualityLimits, expected: Expected
) -> tuple[str, ...]:
    """A line for each rule that could not check some raters, with the reason; arguments as for `find_signs`.

    Times are checked only for people, and habits only for raters with `rules.least_answers` answers.
    """
    by_known, pairs = _by_known(ratings), pairs.drop_duplicates("pair_id", keep="last", ignore_index=True)
    unnamed = len(ratings[~by_known].drop_duplicates(["pair_id", "rater_id"]))
    nobody = f"all: {count(unnamed, 'answer')} (the file does not name raters)"
    submitted = of_pairs(ratings[by_known], pairs).dropna(subset=["rater_id"])
    made_up = ratings.loc[ratings["simulated"].astype(bool), "rater_id"] if "simulated" in ratings else ()
    once = submitted.drop_duplicates("answer")
    shared = submitted[(submitted["control"] == "") & submitted["value"].notna()]
    raters, habits = set(submitted["rater_id"]), _often(once["rater_id"], rules)
    looked: dict[str, tuple[set[str], set[str], str]] = {
        "controls": (raters, set(control_answers(submitted, expected)["rater_id"]), "they answered no control"),
        "repeats": (
            raters,
            set(submitted.loc[submitted["control"] == "repeat", "rater_id"]),
            "they answered no repeat",
        ),
        "too fast": (
            habits - set(made_up),
            _often(once.loc[once["seconds"].notna(), "rater_id"], rules),
            "the time that their answers took is unknown",
        ),
        "apart from the others": (
            _often(shared.drop_duplicates("answer")["rater_id"], rules),
            _often(with_others(shared).drop_duplicates("answer")["rater_id"], rules),
            "too few of their pairs were rated by others",
        ),
    }
    return (
        *([nobody] if unnamed else []),
        *(
            f"{rule}: {len(wanted - checked_raters)} of {len(raters)} raters ({reason})"
            for rule, (wanted, checked_raters, reason) in looked.items()
            if wanted - checked_raters
        ),
    )


def _by_known(ratings: pd.DataFrame) -> pd.Series:
    """Return a mask of the ratings whose rater is named: habits and agreement with oneself are those of one person."""
    return listed_raters(ratings["rater_id"]) != UNNAMED


def _often(raters: pd.Series, rules: QualityLimits) -> set[str]:
    """Return the raters with at least `rules.least_answers` entries."""
    numbers = raters.value_counts()
    return set(numbers.index[numbers >= rules.least_answers].astype(str))

"""Each rule on a campaign made by hand: three raters, 24 pairs of ten words, two controls and two repeats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from annotation.ratings.decisions import low_pairs, pairs_to_read
from annotation.ratings.signs import controls_missed, find_signs
from annotation.records import Sign
from plumbline.records import Pair
from plumbline.study.campaign import QualityLimits, Tolerance
from tests.annotation.judgements import pair as numbered
from tests.annotation.ratings.plain_signs import plain_signs
from tests.shared import rating_of


def expected(pool: str, control: str) -> dict[str, int]:
    return {"positive": {"quality": 5, "fluency": 5}, "negative": {"quality": 1}}.get(control, {})


RULES = QualityLimits()
SAMPLE = [f"p{number}" for number in range(24)]


def with_rules(apart: float = 1.0, within: int = 1, **fixed: float) -> QualityLimits:
    """Rules with other values of what is the same in every study."""
    tolerances = {"quality": Tolerance(within, apart), "fluency": Tolerance(within + 1, apart + 0.5)}
    return type("OtherRules", (QualityLimits,), fixed)(tolerances)


def pair(name: str, control: str = "", repeats: str = "") -> Pair:
    texts = {"original": "one two three four five", "transformed": "five four three two one"}
    return numbered(0).model_copy(
        update={"pair_id": name, "key": name, "control": control, "repeats": repeats, **texts}
    )


_PAIRS = [
    *(pair(name) for name in SAMPLE),
    pair("easy", "positive"),
    pair("wrong", "negative"),
    pair("again0", "repeat", "p0"),
    pair("again1", "repeat", "p1"),
]
PAIRS = pd.DataFrame([one.model_dump() for one in _PAIRS])
Answer = Callable[[int, str], int | None]


def honest(number: int, question: str) -> int:
    """1 to 5 in turn: pair i has 1 + i mod 5, and fluency one step further."""
    return 1 + (number + (question == "fluency")) % 5


def frame(answers: dict[str, Answer]) -> pd.DataFrame:
    """Ratings of raters by their answer to the number of a pair, and right ones to the four others."""
    given = {"easy": 5, "wrong": 1, "again0": honest(0, "quality"), "again1": honest(1, "quality")}
    rows = []
    for rater, answer in answers.items():
        for one in _PAIRS:
            for question in ("quality", "fluency"):
                value = answer(SAMPLE.index(one.pair_id), question) if one.pair_id in SAMPLE else given[one.pair_id]
                if one.control == "repeat" and question == "fluency":
                    value = honest(int(one.repeats[1:]), "fluency")
                if value is None:
                    continue
                rows.append(rating_of(one, rater, question, int(str(value)), seconds=20.0).model_dump())
    return pd.DataFrame(rows)


THREE: dict[str, Answer] = {"a": honest, "b": honest, "c": honest}


def test_a_known_item_brings_its_own_right_answers() -> None:
    """p0 and p1 as known items: quality 3 and nothing else, and quality 2. All three raters gave 1 and 2."""
    known = {"p0": '{"quality": 3}', "p1": '{"quality": 2}'}
    pairs = PAIRS.assign(
        expected=PAIRS["pair_id"].map(known).fillna(""),
        control=PAIRS["control"].where(~PAIRS["pair_id"].isin(list(known)), "known"),
    )
    found = find_signs(frame(THREE), pairs, RULES, expected)
    assert {sign.rater_id: sign.evidence for sign in found if sign.rule == "controls"} == dict.fromkeys(
        THREE, "1 of 5 answers to controls are wrong: known quality 1 instead of 3"
    )
    assert controls_missed(frame(THREE), pairs, RULES, expected) == (3, 15)


def test_pairs_that_people_found_bad_are_listed() -> None:
    # Quality 1 or 2: pairs 0, 1, 5, 6, ... 20, 21 (10 pairs); fluency is one further: pairs 4, 0, 9, 5, ... (10 pairs).
    found = low_pairs(frame(THREE)[lambda rows: rows["pair_id"].isin(SAMPLE)], RULES)
    assert list(found.columns) == ["pair_id", "transformation", "question", "mean", "n"]
    assert (found["question"] == "quality").sum() == sum(honest(n, "quality") <= 2 for n in range(24)) == 10
    assert set(found["n"]) == {3}


def test_pairs_whose_ratings_lie_apart_by_more_of_their_scale_are_read_first() -> None:
    """On 1 to 5 by 3 points, 75% of the scale; on a slider from 0 to 100 without steps by 40 points, 40% of it."""
    rules = QualityLimits({"quality": Tolerance.of((1, 2, 3, 4, 5)), "fluency": Tolerance.of((0, 100))})

    def first(number: int, question: str) -> int:
        return 1 if (number, question) == (7, "quality") else 4

    ratings = frame({"a": first, "b": lambda *_: 4, "c": lambda *_: 4})
    slider = (ratings["question"] == "fluency") & ratings["pair_id"].isin(SAMPLE)
    ratings["value"] = ratings["value"].astype("Float64").mask(slider, 20.5 + 40 * (ratings["rater_id"] == "a"))
    found = pairs_to_read(ratings[ratings["pair_id"].isin(SAMPLE)], 3, rules)
    assert list(found.iloc[0][["pair_id", "question", "lowest", "highest"]]) == ["p7", "quality", 1, 4]
    assert list(found.iloc[1][["question", "lowest", "highest"]]) == ["fluency", 20.5, 60.5]
    assert len(found) == len(SAMPLE)


# Of nearly as many words as their lengths allow, or of far fewer; in scripts with and without spaces.
TEXTS = (
    "five four three two one",
    "a b c d e f",
    "a\x1cb  c\n",
    "\u5b571\u5b572\u5b57",
    "\xe9 \xe9 \xe9",
    "z" * 200,
    "",
)


def made_up(seed: int) -> tuple[list[Pair], pd.DataFrame, QualityLimits]:
    """A campaign with ties, missing answers, pairs of one rater alone, excluded raters, drafts; and rules."""
    draw = np.random.default_rng(seed)
    sample, raters, points = int(draw.integers(3, 60)), int(draw.integers(1, 9)), int(draw.integers(1, 6))
    pairs = [pair(f"p{number}") for number in range(sample)]
    pairs += [pair(f"c{number}", ("positive", "negative")[number % 2]) for number in range(draw.integers(0, 6))]
    pairs += [pair(f"r{number}", "repeat", f"p{draw.integers(sample)}") for number in range(draw.integers(0, 6))]
    texts = [{"original": text, "transformed": text} for text in (TEXTS[seed % len(TEXTS)], TEXTS[0])]
    pairs = [one.model_copy(update=texts[place % 9 == 0]) for place, one in enumerate(pairs)]
    rows = []
    for one in pairs:
        for rater in draw.choice(raters, int(draw.integers(0, min(raters, 4) + 1)), replace=False):
            status = str(draw.choice(["submitted", "draft"], p=[0.95, 0.05]))
            seconds = float(draw.choice([math.nan, 0.5, 0.9, 1.0, 40.0]))
            for question in ("quality", "fluency"):
                if draw.random() < 0.97:
                    value = 1 + int(draw.integers(points)) if rater else 4
                    rows.append(
                        {
                            "pair_id": one.pair_id, "rater_id": f"rater-{rater}", "question": question, "value": value,
                            "status": status, "seconds": seconds, "comment": "",
                            "excluded": "careless" if rater == 1 else "",
                        }
                    )  # fmt: skip
    columns = ["pair_id", "rater_id", "question", "value", "status", "seconds", "comment", "excluded"]
    rules = with_rules(
        least_answers=int(draw.integers(2, 12)), same_answer=float(draw.choice([0.51, 0.8, 1])),
        too_fast=float(draw.choice([0, 0.25, 0.5])), apart=float(draw.choice([0.3, 0.61, 1.13])),
        least_rho=float(draw.choice([0.1, 0.53])), within=int(draw.integers(0, 2)),
    )  # fmt: skip
    return pairs, pd.DataFrame([rows[place] for place in draw.permutation(len(rows))], columns=columns), rules


def test_signs_are_those_of_a_plain_slow_computation() -> None:
    """All raters at once, by sums less one's own, against one rater and one answer after another."""
    found = list[Sign]()
    for seed in range(20):
        pairs, ratings, rules = made_up(seed)
        plain = plain_signs(ratings.to_dict("records"), pairs, rules, expected)
        told = find_signs(ratings, pd.DataFrame([one.model_dump() for one in pairs]), rules, expected)
        assert [_rounded(sign) for sign in told] == [_rounded(sign) for sign in plain], seed
        found += told
    rules_met = {"controls", "repeats", "same answer", "too fast", "apart from the others"}
    assert {sign.rule for sign in found} == rules_met and len(found) > 100


def _rounded(sign: Sign) -> Sign:
    """A shift or a rho of 0 may have either sign: sums of floats come in another order."""
    return sign.model_copy(update={"evidence": re.sub(r"[-+](?=0\.00)", "", sign.evidence)})


def test_changed_labels_are_a_sign_where_they_agree_no_more_than_by_chance() -> None:
    again = [pair(f"again{number}", "repeat", f"p{number}") for number in range(10)]
    pairs = pd.DataFrame([one.model_dump() for one in (*_PAIRS[: len(SAMPLE)], *again)])
    changed = {"steady": 0, "once": 1, "half": 5, "most": 9}
    rows = []
    for rater, number in changed.items():
        for place in range(10):
            label = ("same", "other")[place % 2]
            second = ("same", "other")[(place + (place < number)) % 2]
            both = {f"p{place}": label, f"again{place}": second}
            rows += [{"pair_id": pair_id, "rater_id": rater, "answer": said} for pair_id, said in both.items()]
    ratings = pd.DataFrame(rows).assign(
        question="kind", value=math.nan, status="submitted", seconds=math.nan, comment=""
    )
    found = {sign.rater_id: sign.evidence for sign in find_signs(ratings, pairs, RULES, expected, ["kind"])}
    assert found.keys() == {"half", "most"}  # two labels, equally frequent, agree by chance in half of all cases
    assert found["most"].startswith("9 of 10 repeated answers are inconsistent: kind same then other")


def test_each_question_has_the_tolerance_of_its_scale() -> None:
    limits = QualityLimits({"close": Tolerance.of(range(101)), "quality": Tolerance.of((1, 2, 3, 4, 5))})
    pairs = pd.DataFrame([one.model_dump() for one in (pair("p0"), pair("again0", "repeat", "p0"))])
    answers = {"close": (57, 55), "quality": (1, 3)}
    rows = [
        {"pair_id": pair_id, "rater_id": "a", "question": question, "value": value}
        for question, values in answers.items()
        for pair_id, value in zip(("p0", "again0"), values, strict=True)
    ]
    ratings = pd.DataFrame(rows).assign(status="submitted", seconds=math.nan, comment="")
    (sign,) = find_signs(ratings, pairs, limits, expected)
    assert sign.evidence == "1 of 2 repeated answers are inconsistent: quality 1 then 3"

"""Rules by question: mean and share, from below and above, by value and interval, of some pools."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation.questions.label import MultiLabelQuestion, SingleLabelQuestion
from annotation.questions.summary import Chance
from annotation.records import Verdict
from annotation.statistics.summaries import Design, summarise
from annotation.verdicts.counted import answers
from annotation.verdicts.rules import decide, rules_for, told_from
from annotation.verdicts.tables import chance, verdict_table, verdicts_exhibit
from annotation.verdicts.verdicts import accepted_pairs, chances, pair_means, verdicts
from plumbline.statistics.group_sequential import p_above
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from tests.annotation.judgements import decided, pair, pair_rows
from tests.annotation.judgements import ratings as given

SOUND = SingleLabelQuestion("sound", labels=("natural", "odd"))
FAULTS = MultiLabelQuestion("faults", labels=("grammar", "words"), required=False, pools=("expansion",))
SHARE = {"question": "sound", "label": "odd"}


def design(*rules: dict[str, Any], **more: Any) -> Design:
    spec = AcceptanceSpec(rules=rules, min_pairs=2, min_raters=1, **more)
    return Design(("quality", "sound", "faults"), rule=spec, extra={"sound": SOUND, "faults": FAULTS})


def ratings(*rows: tuple[str, list[int], str], transformation: str = "paraphrasing") -> pd.DataFrame:
    """Pairs by name: the values of its raters, and for each an `o` (odd) or `n` (natural)."""
    found = [
        {"pair_id": pair, "rater_id": f"r{i}", "question": question, "value": value, "answer": answer}
        for pair, values, sounds in rows
        for i, (number, sound) in enumerate(zip(values, sounds, strict=True))
        for question, value, answer in (
            ("quality", number, ""), ("sound", None, {"o": "odd", "n": "natural"}[sound])
        )
    ]  # fmt: skip
    frame = pd.DataFrame(found).astype({"value": "Int64"})
    at = pd.Timestamp("2026-01-01", tz="UTC")
    return frame.assign(transformation=transformation, language="en", submitted_at=at, simulated=False)


def judged(own: Design, frame: pd.DataFrame, pool: str = "paraphrasing") -> tuple[str, tuple[str, ...]]:
    names = [name for name in own.questions if own.asked(name).asked_in(pool)]
    summaries = [summarise(frame, name, own, None) for name in names]
    return decide(summaries, frame["pair_id"].nunique(), own.rule, rules_for(pool, own.rule))


# Quality: pairs' means 5, 4 and 1.5, mean over ratings (5 + 5 + 4 + 4 + 2 + 1) / 6 = 3.5; odd are 3 of 6.
THREE = ratings(("a", [5, 5], "nn"), ("b", [4, 4], "no"), ("c", [2, 1], "oo"))
#: The same four times: 12 pairs, of which each a third is like a, b and c.
MORE = pd.concat([THREE.assign(pair_id=THREE["pair_id"] + str(i)) for i in range(4)], ignore_index=True)


def test_a_rule_of_some_pools_goes_before_the_one_for_all() -> None:
    own = design(
        {"question": "quality", "at_least": 3},
        SHARE | {"at_most": 0.9},
        {"question": "quality", "at_most": 2, "pools": ["negation"]},
    )
    assert [(one.question, one.at_most) for one in rules_for("negation", own.rule)] == [("sound", 0.9), ("quality", 2)]
    assert judged(own, THREE)[0] == "accepted" and judged(own, THREE, "negation")[0] == "rejected"
    alone = design({"question": "quality", "at_most": 2, "pools": ["negation"]})
    assert judged(alone, THREE) == ("undecided", ("no rule applies",))


def test_pairs_count_by_the_questions_that_need_an_answer() -> None:
    own = design({"question": "quality", "at_least": 3})
    assert answers(THREE, own).to_dict() == {"a": 2, "b": 2, "c": 2}  # nobody named a fault: it need not be
    without = THREE[~((THREE["pair_id"] == "a") & (THREE["question"] == "sound"))]
    assert answers(without, own).to_dict() == {"a": 0, "b": 2, "c": 2}
    asked = {"sound": SingleLabelQuestion("sound", labels=("natural", "odd"), pools=("expansion",))}
    elsewhere = Design(("quality", "sound"), rule=own.rule, extra=asked)
    assert answers(without, elsewhere).to_dict() == {"a": 2, "b": 2, "c": 2}


def test_pairs_are_accepted_one_by_one_by_their_own_numbers() -> None:
    own = design({"question": "quality", "at_least": 3}, SHARE | {"at_most": 0.4})
    means = pair_means(THREE, own)
    assert dict(zip(means["pair_id"], means["decision"], strict=True)) == {
        "a": "accepted", "b": "rejected", "c": "rejected"
    }  # fmt: skip
    assert means.loc[means["question"] == "sound", "mean"].isna().all()
    assert accepted_pairs(means, own.questions) == {"a"}


def sure(own: Design, *rules: dict[str, Any]) -> list[Chance]:
    return list(chances(MORE, [RuleSpec.model_validate(one) for one in rules], own))


def test_each_rule_has_its_probability() -> None:
    """Means as with one threshold, shares as means of noughts and ones, from below one minus that from above."""
    own = design({"question": "quality", "at_least": 3})
    least, most, odd, rare, none = sure(
        own, {"question": "quality", "at_least": 3}, {"question": "quality", "at_most": 3}, SHARE | {"at_most": 0.6},
        SHARE | {"at_least": 0.6}, SHARE | {"at_most": 0},
    )  # fmt: skip
    expected = 1 - float(p_above(np.tile([5.0, 4.0, 1.5], 4), 3.0, 1.0))
    assert (least.probability, most.probability) == pytest.approx((expected, 1 - expected))
    assert least.probability == pytest.approx(summarise(MORE, "quality", Design(), None).probability)
    assert odd.probability == pytest.approx(1 - float(p_above(-np.tile([0.0, 0.5, 1.0], 4), -0.6, -1.0)))
    assert rare.probability == pytest.approx(1 - odd.probability)
    assert math.isnan(none.probability) and none.reason.startswith("no mean or share lies beyond an end")


def test_a_share_at_the_end_of_its_interval_has_a_p_of_975() -> None:
    """P and the interval are one test: at a limit that is an end of the interval P is 0.975, or 0.025."""
    frame = ratings(*((f"p{i}", [4, 4], "no" if i % 3 else "nn") for i in range(12)))
    summary = summarise(frame, "sound", design({"question": "quality", "at_least": 1}), None)
    share = summary.shares[1].share
    for limit, p in ((share.low, 0.975), (share.high, 0.025), (share.value, 0.5)):
        rule = RuleSpec.model_validate(SHARE | {"at_least": limit})
        (found,) = chances(frame, [rule], design(SHARE | {"at_most": 1}))
        assert found.probability == pytest.approx(p, abs=1e-6)


def test_a_number_rounded_to_zero_has_no_sign() -> None:
    assert [told_from(value, 0.2) for value in (-0.001, -0.006)] == ["0.00", "-0.01"]


def test_a_verdict_is_as_sure_as_its_least_sure_rule() -> None:
    both = {"question": "quality", "at_least": 3}, SHARE | {"at_most": 0.6}
    pairs = [pair(0).model_copy(update={"pair_id": name}) for name in MORE["pair_id"].unique()]
    (found,) = verdicts(pair_rows(pairs), MORE, design(*both), None)
    each = [one.probability for one in found.result.probabilities]
    assert len(each) == 2 and each[0] != each[1] and found.probability == min(each)
    assert verdict_table([found]).iloc[0]["P: share of odd in sound at most 0.6"] == each[1]
    printed = verdicts_exhibit([found]).printed.iloc[0]
    assert [printed["P: quality ≥\u00a03"], printed["P: odd in sound ≤\u00a00.6"]] == [*map(chance, each)]
    assert Verdict.model_validate_json(found.model_dump_json()).result.probabilities == found.result.probabilities
    (short,) = verdicts(pair_rows(pairs), MORE, Design(("quality",), rule=AcceptanceSpec(min_pairs=2)), None)
    assert short.result.probabilities == ()
    assert short.probability == short.questions[0].probability


def test_where_nothing_is_rated_the_probability_is_that_of_the_labels() -> None:
    """Labels alone, as of wordings of an instruction: no P of a mean, rather than a P of 1."""
    spec = AcceptanceSpec(rules=({**SHARE, "at_most": 0.6},), min_pairs=2, min_raters=1)
    own = Design(("sound",), rule=spec, extra={"sound": SOUND})
    frame = MORE[MORE["question"] == "sound"]
    pairs = [pair(0).model_copy(update={"pair_id": name}) for name in MORE["pair_id"].unique()]
    (found,) = verdicts(pair_rows(pairs), frame, own, None)
    assert found.decision == "accepted" and found.n_pairs == 12
    assert found.probability == found.result.probabilities[0].probability and math.isnan(found.result.threshold)
    undone = own.rule.model_copy(update={"rules": ()})
    (found,) = verdicts(pair_rows(pairs), frame, replace(own, rule=undone), None)
    assert found.decision == "undecided" and math.isnan(found.probability)


GOLDEN = Path(__file__).parent / "golden" / "reasons.md"
LOWER = {"rule": "lower_bound"}


def by_threshold(quality: Sequence[int], fluency: Sequence[int], raters: int = 2, **rule: Any) -> str:
    """Each rater gives each pair these ratings; a mean of 3 and two pairs are needed, unless `rule` says otherwise."""
    pairs = [pair(number) for number in range(len(quality))]
    frame = given(pairs, [*quality], [*fluency])
    frame = frame[frame["rater_id"].isin([f"rater-{number}" for number in range(raters)])]
    ((_, decision, reason),) = decided(pairs, frame, **rule)
    return f"{decision}: {reason}"


def by_rules(frame: pd.DataFrame, *rules: dict[str, Any], **more: Any) -> str:
    decision, reasons = judged(design(*rules, **more), frame)
    return f"{decision}: {'; '.join(reasons)}"


def test_decisions_and_reasons_are_as_they_were() -> None:
    """Where a change is meant, replace the file by what the failure shows."""
    quality, good = {"question": "quality"}, [5, 4] * 10
    low = ratings(*((f"p{number}", [1, 1 + number % 2], "nn") for number in range(30)))
    cases = {
        # The mean quality is (2 + 2 + 4 + 4) / 4 = 3, and then 16 / 6.
        "a mean of exactly the threshold": by_threshold([2, 4], [5, 5]),
        "a mean just below": by_threshold([2, 3, 3], [5, 5, 5]),
        "fluency alone is below": by_threshold([5, 5], [2, 2]),
        "too few pairs": by_threshold([5, 5], [5, 5], min_pairs=3),
        "one rater a pair": by_threshold([5, 5], [5, 5], raters=1),
        "no ratings": by_threshold([5, 5], [5, 5], raters=0),
        "undefined agreement": by_threshold([5, 5], [5, 5], min_ac2=0.0),
        # 20 pairs at m + 1 and m - 1 in turn; of 4 and 5 it is the binomial end, as a share of ones may be unseen.
        "a lower end above the threshold": by_threshold([5, 3] * 10, good, **LOWER),
        "a threshold within the interval": by_threshold([4, 2] * 10, good, **LOWER),
        "an upper end below the threshold": by_threshold([3, 1] * 10, good, **LOWER),
        "a mean of at least": by_rules(THREE, quality | {"at_least": 3.5}),
        "a mean below": by_rules(THREE, quality | {"at_least": 3.6}),
        "a mean of at most": by_rules(THREE, quality | {"at_most": 3.5}),
        "a mean above": by_rules(THREE, quality | {"at_most": 2}),
        "a mean that two digits cannot tell from its limit": by_rules(THREE, quality | {"at_least": 3.502}),
        "a share of at most": by_rules(THREE, SHARE | {"at_most": 0.5}),
        "a share above": by_rules(THREE, SHARE | {"at_most": 0.4}),
        "a share by its interval": by_rules(MORE, SHARE | {"at_most": 0.4}, **LOWER),
        "a share without an interval": by_rules(THREE, SHARE | {"at_most": 0.4}, **LOWER),
        # A negation: 30 pairs rated 1 or 2 keep to at most 2 with their whole interval, and miss at most 1.
        "an interval from above": by_rules(low, quality | {"at_most": 2}, **LOWER),
        "an interval beyond": by_rules(low, quality | {"at_most": 1}, **LOWER),
        "one of two rules is not met": by_rules(THREE, quality | {"at_least": 3}, SHARE | {"at_most": 0.1}),
    }
    assert "".join(f"- {name}: {outcome}\n" for name, outcome in cases.items()) == GOLDEN.read_text(encoding="utf-8")

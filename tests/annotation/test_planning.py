"""Plans: prices by hand, shares against theory and against the verdicts' own functions, and the command."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from annotation import side_by_side
from annotation.apart import least_difference, originals_needed
from annotation.campaign.rubric import load_rubric
from annotation.commands.planning import PlanOptions, apart_text, plan_text
from annotation.crowd.tally import Tally, counted
from annotation.planning import Outlook, outlook, plan, simulated
from annotation.questions.label import SingleLabelQuestion
from annotation.sampling.expected import ExpectedSample
from annotation.sampling.queues import in_order
from annotation.statistics.summaries import Design
from annotation.variation import RatingVariation, Variation
from annotation.verdicts.verdicts import verdicts
from plumbline.errors import StudyError
from plumbline.records import Pair
from plumbline.scales import Continuous
from plumbline.statistics.agreement import Answers, gwet_ac2
from plumbline.statistics.estimates import stream
from plumbline.statistics.group_sequential import Blocks, looks
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec, RuleSpec
from tests.annotation.judgements import START, pair, pair_rows
from tests.annotation.kinds import EFFORT, RULES, ask, rubric
from tests.annotation.outputs import of_outputs
from tests.scale import scaled

SCALE = (1, 2, 3, 4, 5)
RULE = RuleSpec(question="quality", at_least=3)


def design(**rule: object) -> Design:
    return Design(("quality",), SCALE, 3, AcceptanceSpec.model_validate(rule))


def look(size: tuple[int, int], mean: float, assumed: RatingVariation, seed: int = 1, **rule: object) -> Outlook:
    return outlook(design(**rule), assumed, size, mean, 1000, np.random.default_rng(seed))


def asked(study: Study) -> Tally:
    """What 100 pairs of each transformation by 3 raters ask for; each text is written once for each transformation."""
    drawn = ExpectedSample.of(study, load_rubric(study)).draw(100)
    return counted(study, load_rubric(study), [*drawn.pairs, *drawn.controls], raters=3)


MANY = [{"name": "many", "mteb": "STS12"}]  # texts without end, as only their language is known


@pytest.mark.parametrize(("changes", "seconds", "hourly"), [
    ({}, 30, 24), ({"crowd": {"pay": {"hourly": 30, "seconds": 40}}}, 40, 30),
])  # fmt: skip
def test_a_plan_costs_what_its_wages_say(
    changes: dict[str, Any], seconds: int, hourly: int, variant: Callable[..., Study]
) -> None:
    """(6 + 1.25 + 1.10) * 100 pairs * 3 raters * 30 s = 20.875 hours, at $24 an hour $501; 4,800 ratings."""
    found = asked(variant(sample={"pairs": 100, "controls": 0, "repeats": 0}, datasets=MANY, **changes))
    assert (found.pairs, found.answers, found.ratings) == (800, 2400, 4800)
    hours = 8.35 * 100 * 3 * seconds / 3600
    assert (found.hours, found.cost / 100) == (pytest.approx(hours), pytest.approx(hours * hourly, abs=0.5))


def test_a_question_about_one_pool_is_answered_there_alone(
    variant: Callable[..., Study], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """800 pairs, 3 raters and two questions, and a third about the 200 of both translations: 4,800 + 600 ratings."""
    sample, rules = {"pairs": 100, "controls": 0, "repeats": 0}, {"rules": RULES[:2], "min_pairs": 20}
    study = variant(sample=sample, datasets=MANY, rubric="kinds", acceptance=rules)
    for required, ratings in ((True, 5400), (False, 4800)):
        ask(monkeypatch, tmp_path, rubric(EFFORT | {"required": required}))
        assert asked(study).ratings == ratings


def test_controls_and_repeats_cost_too(variant: Callable[..., Study]) -> None:
    """One pool of 200 (both translations) in four languages of 50 each, and six of 100, batches of 50: 4 + 6 * 2
    batches, 4 pairs more each, but 3 of the translations', of which no positive is made.

    They are paid like pairs: the 8 of expansion 25% more, those of summarised expansion 10%.
    """
    found = asked(variant(sample={"pairs": 100, "controls": 1, "repeats": 2, "batch": 50}, datasets=MANY))
    queues = {part.queue for part in found.parts if part.queue.pool == "translation"}
    batches = sum(-(-part.pairs // 50) for part in found.parts)
    assert batches == 12 + sum(-(-part.pairs // 50) for part in found.parts if part.queue in queues)
    more = 12 * 4 + (batches - 12) * 3
    assert (found.shown, found.controls + found.repeats) == (800 + more, more)
    assert found.hours == pytest.approx(20.875 + (more + 8 * 0.25 + 8 * 0.10) * 3 * 30 / 3600)


def test_usual_assumptions_look_like_hteb() -> None:
    """Table 2, quality overall: mean 4.09, SD 1.04, AC2 0.68."""
    ratings = simulated(RatingVariation(), (100, 3), 4.09, SCALE, 400, np.random.default_rng(1))
    assert ratings.mean() == pytest.approx(4.09, abs=0.03)
    assert ratings.std() == pytest.approx(1.04, abs=0.02)
    pairs, raters = np.arange(100).repeat(3), np.tile(np.arange(3), 100)
    ac2 = [gwet_ac2(Answers(pairs, raters, one.ravel().astype(int) - 1, SCALE)).value for one in ratings]
    assert np.mean(ac2) == pytest.approx(0.68, abs=0.02)


def test_the_mean_rule_is_right_as_often_as_theory_says() -> None:
    """P(mean of 100 x 3 ratings >= 3 | true mean 3.15): nearly normal, its variance that of pair means over 100."""
    assumed = RatingVariation(spread=0.8, bias=0.0, noise=1.0)
    found = look((100, 3), 3.15, assumed)
    many = simulated(assumed, (2, 3), 3.15, SCALE, 50_000, np.random.default_rng(2))
    expected = stats.norm.cdf(0.15 / math.sqrt(many.mean(axis=2).var() / 100))
    assert found.right(RULE) == found.accepted == pytest.approx(expected, abs=0.03)  # 3 SDs of 1,000 campaigns
    assert found.accepted + found.rejected == 1
    below = look((100, 3), 2.85, assumed)
    assert below.right(RULE) == 1 - below.accepted == pytest.approx(expected, abs=0.03)


def test_rules_keep_their_promise_at_the_threshold() -> None:
    """True mean 3: the mean accepts half; a lower bound at most 5%, over pairs, and over raters too."""
    same_raters = RatingVariation(bias=0.0)
    assert look((50, 3), 3.0, same_raters).accepted == pytest.approx(0.5, abs=0.05)
    assert look((50, 3), 3.0, same_raters, rule="lower_bound").accepted <= 0.05
    differing = RatingVariation(bias=0.4)
    assert look((50, 3), 3.0, differing, rule="lower_bound", interval="pairs_and_raters").accepted <= 0.05
    assert look((50, 3), 3.0, differing, rule="lower_bound").accepted > 0.10  # about these raters alone


def test_more_pairs_make_it_surer_and_narrower() -> None:
    few, many = (look((pairs, 3), 3.4, RatingVariation(), rule="lower_bound") for pairs in (30, 200))
    assert few.accepted < many.accepted
    assert many.width < few.width / 2
    assert (few.used, many.used) == (30, 200)


def test_the_width_with_raters_as_a_sample_is_the_mean_of_many_campaigns() -> None:
    """Against intervals computed here: few raters' habits differ much between campaigns, whatever the pairs."""
    assumed, rng, widths = RatingVariation(spread=0.9, bias=0.35, noise=0.7), np.random.default_rng(2), {}
    for pairs, raters in ((50, 2), (200, 2), (50, 5), (200, 5)):
        found = look((pairs, raters), 3.0, assumed, rule="lower_bound", interval="pairs_and_raters", min_raters=2)
        values = simulated(assumed, (pairs, raters), 3.0, SCALE, 2000, rng)
        by_pairs, by_raters = (values.mean(axis=axis).var(axis=1, ddof=1) / values.shape[3 - axis] for axis in (2, 1))
        t = by_pairs * stats.t.ppf(0.975, pairs - 1) + by_raters * stats.t.ppf(0.975, raters - 1)
        reach, mean = t / np.sqrt(by_pairs + by_raters), values.mean(axis=(1, 2))
        expected = np.mean(np.minimum(mean + reach, 5) - np.maximum(mean - reach, 1))
        widths[pairs, raters] = found.width
        assert found.width == pytest.approx(expected, rel=0.03)
    assert widths[200, 5] < widths[50, 5] and widths[200, 2] < 1.02 * widths[50, 2]


def test_a_size_that_the_rule_refuses_decides_nothing() -> None:
    assert look((19, 3), 4.5, RatingVariation()).undecided == 1
    assert look((30, 1), 4.5, RatingVariation()).undecided == 1


BY_BOUND = {"rule": "lower_bound"}
OVER_RATERS = BY_BOUND | {"interval": "pairs_and_raters"}


def answered(pairs: Sequence[Pair], **answers: Any) -> pd.DataFrame:
    frame = pd.DataFrame({"pair_id": [one.pair_id for one in pairs for _ in range(3)], **answers})
    about = {"transformation": "paraphrasing", "language": "en", "submitted_at": START, "simulated": True}
    return frame.assign(rater_id=[f"rater-{i}" for i in range(3)] * len(pairs), **about)


NATURAL = SingleLabelQuestion("sound", labels=("natural", "odd"))
ODD: dict[str, Any] = {"question": "sound", "label": "odd"}


def of_share(**rule: object) -> Design:
    limits = {name: rule.pop(name) for name in ("at_least", "at_most") if name in rule}
    spec = AcceptanceSpec.model_validate({"rules": [ODD | limits], "min_pairs": 20, **rule})
    return Design(("sound",), rule=spec, extra={"sound": NATURAL})


def test_a_rule_on_a_share_is_right_as_often_as_theory_says() -> None:
    """At most 0.3 may be odd, 0.25 are: P(share of 100 x 3 answers <= 0.3), nearly normal by the pairs' own shares."""
    assumed = RatingVariation(spread=0.8, bias=0.0, noise=1.0)
    found = outlook(of_share(at_most=0.3), assumed, (100, 3), 0.25, 1000, np.random.default_rng(3))
    many = simulated(assumed, (2, 3), 0.25, (0, 1), 50_000, np.random.default_rng(4))
    assert many.mean() == pytest.approx(0.25, abs=0.005)
    error = math.sqrt(many.mean(axis=2).var() / 100)
    assert found.accepted == pytest.approx(stats.norm.cdf((0.3 - 0.25 + 1 / 600) / error), abs=0.04)
    assert found.right(RuleSpec.model_validate(ODD | {"at_most": 0.3})) == found.accepted
    assert found.right(RuleSpec.model_validate(ODD | {"at_least": 0.3})) == 1 - found.accepted
    beyond = outlook(of_share(at_most=0.3), assumed, (100, 3), 0.35, 1000, np.random.default_rng(3))
    assert beyond.right(RuleSpec.model_validate(ODD | {"at_most": 0.3})) == 1 - beyond.accepted > 0.8


def test_rules_by_interval_keep_their_promise_at_the_limit() -> None:
    """The truth at the limit is accepted in 5% of campaigns at most: shares, and means from above."""
    same = RatingVariation(bias=0.0)
    for limit in ({"at_most": 0.3}, {"at_least": 0.3}):
        own = of_share(rule="lower_bound", **limit)
        assert outlook(own, same, (50, 3), 0.3, 1000, np.random.default_rng(1)).accepted <= 0.05
    negation = design(rules=[{"question": "quality", "at_most": 2}], rule="lower_bound")
    assert outlook(negation, same, (50, 3), 2.0, 1000, np.random.default_rng(1)).accepted <= 0.05
    assert outlook(negation, same, (50, 3), 1.4, 200, np.random.default_rng(1)).accepted > 0.9


@pytest.mark.parametrize(
    ("own", "n", "mean"),
    [
        (design(), 25, 3.3), (design(**BY_BOUND), 25, 3.3), (design(**OVER_RATERS), 25, 3.3),
        (design(**BY_BOUND, threshold=5, min_pairs=5), 7, 3.3),
        (design(**OVER_RATERS, threshold=5), 25, 4.8), (design(**OVER_RATERS, threshold=1), 25, 1.2),
        (of_share(at_most=0.3), 25, 0.28), (of_share(at_most=0.3, **BY_BOUND), 25, 0.15),
    ],
)  # fmt: skip
def test_plans_decide_as_verdicts_do(own: Design, n: int, mean: float) -> None:
    """The same 12 campaigns by `outlook`, and as frames of ratings or labels by `verdicts`."""
    planned = outlook(own, RatingVariation(), (n, 3), mean, 12, np.random.default_rng(4))
    order = in_order([pair(i).pair_id for i in range(n)], own.seed)
    pairs = sorted((pair(i) for i in range(n)), key=lambda one: order.index(one.pair_id))
    decisions, of_labels = [], own.questions == ("sound",)
    campaigns = simulated(RatingVariation(), (n, 3), mean, (0, 1) if of_labels else SCALE, 12, np.random.default_rng(4))
    for campaign in campaigns.reshape(12, -1):
        answers: dict[str, Any] = {"value": campaign}
        if of_labels:
            answers = {"value": pd.array([None] * len(campaign), "Int64"),
                       "answer": np.where(campaign == 1, "odd", "natural")}  # fmt: skip
        frame = answered(pairs, question=own.questions[0], **answers)
        decisions += [one.decision for one in verdicts(pair_rows(pairs), frame, own, 1)]
    assert planned.accepted * 12 == pytest.approx(decisions.count("accepted"))
    assert planned.undecided * 12 == pytest.approx(decisions.count("undecided"))
    assert not of_labels or 0 < planned.accepted < 1


def test_a_plan_is_for_the_smallest_verdict(variant: Callable[..., Study], tmp_path: Path) -> None:
    """Two languages, so that a verdict has half of the pairs: its shares are those of a study of half the size."""
    file = tmp_path / "none.csv"
    two = [{"name": "pairs", "task": "sts", "path": str(file), "language": "en-de"}]
    study = variant(datasets=two, sample={"pairs": 40}, acceptance={"min_pairs": 20})
    found = plan(study, [(40, 4), (30, 4)], [3.4], campaigns=50, seed=5)
    assert found["verdict_pairs"].tolist() == [20, 15]
    half = outlook(design(), RatingVariation(), (20, 4), 3.4, 50, stream(5, "plan", "40", "4", "3.4"))
    assert found["accepted"][0] == half.accepted and math.isnan(found["right"][1])
    options = PlanOptions(pairs=(40, 30), raters=(4,), means=(3.4,), campaigns=5, seed=1)
    assert "The languages of the texts are unknown" in plan_text(study, options)  # no file none.csv says them
    file.write_text("sentence1,sentence2,score\na,,1\n,b,2\n")
    assert re.search(r"unknown \(.* row 3, field 'sentence1'.*; .* row 2, field .*\)", plan_text(study, options))


def test_a_plan_by_blocks_decides_as_looks_do(variant: Callable[..., Study]) -> None:
    """The same campaigns, one by one by `looks`: decisions and pairs used; its size is that of the last block."""
    raters = {"per_pair": 3, "blocks": [20, 40]}
    rule = {"rule": "lower_bound", "min_pairs": 8}
    study = variant(raters=raters, acceptance=rule, sample={"pairs": 40})
    own = Design.of(study, load_rubric(study))
    found = outlook(own, RatingVariation(), (60, 3), 3.5, 30, np.random.default_rng(3))
    campaigns = simulated(RatingVariation(), (60, 3), 3.5, (1, 2, 3, 4, 5), 30, np.random.default_rng(3))[:, :40]
    order = np.repeat(np.arange(1, 41), 3)
    columns = {"pair_id": order, "order": order, "question": "quality"}
    rule_of_looks = Blocks((20, 40), 3.0, (1, 5))
    results = [looks(pd.DataFrame({**columns, "value": one.ravel()}), rule_of_looks) for one in campaigns]
    assert found.accepted * 30 == pytest.approx(sum(result.decision == "accepted" for result in results))
    assert found.used == pytest.approx(np.mean([result.pairs for result in results]))
    assert 0 < found.accepted < 1 and 20 < found.used < 40
    last = [result.frame().iloc[-1] for result in results]
    assert found.width == pytest.approx(np.mean([row["high"] - row["low"] for row in last]), rel=0.02)
    planned = plan(study, [(40, 3), (80, 3)], [3.5], campaigns=5)
    assert planned["dollars"].nunique() == 1  # pairs beyond the last block are not offered
    text = plan_text(study, PlanOptions(means=(3.5,), campaigns=5, seed=1))
    assert "Looks are after 20, 40 pairs" in text and "\n100 " not in text


def test_a_difference_between_systems_is_found_as_often_as_the_plan_says() -> None:
    assumed, size, campaigns = RatingVariation(), (40, 3), 4000
    rng = np.random.default_rng(17)
    shift = least_difference(size, 1, assumed)
    means = [
        rng.normal(shift * number, assumed.spread, (campaigns, size[0]))
        + rng.normal(0, assumed.noise, (campaigns, *size)).mean(axis=2)
        for number in range(2)
    ]
    found = stats.ttest_rel(*means, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)
    assert least_difference(size, 6, assumed) > shift > least_difference((160, 3), 1, assumed) > shift / 2.1


def test_systems_with_other_shares_of_a_label_are_found_as_often_as_the_plan_says() -> None:
    assumed, size, campaigns = RatingVariation.on((0, 1), {"bias": 0.0}), (60, 3), 2000
    apart, rng = least_difference(size, 1, assumed.as_rated((0, 1))), np.random.default_rng(18)
    means = [simulated(assumed, size, 0.5 + side * apart / 2, (0, 1), campaigns, rng).mean(axis=2) for side in (-1, 1)]
    assert (stats.ttest_rel(*means, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_ratings_vary_in_proportion_to_their_scale() -> None:
    """A slider from 0 to 100 is planned as 1 to 5 stretched to it, unless somebody says how its ratings vary."""
    slider = RatingVariation.on((0, 100))
    assert (slider.spread, slider.bias, slider.noise) == pytest.approx((20, 6.25, 27.5))
    assert RatingVariation.on((0, 100), {"spread": 31.0}).spread == 31
    assert RatingVariation.on((1, 2, 3, 4, 5)) == RatingVariation()
    assert least_difference((100, 3), 1, slider) == pytest.approx(25 * least_difference((100, 3), 1, RatingVariation()))


def test_the_variation_of_ratings_follows_from_what_raters_feel() -> None:
    """Against 400 simulated campaigns: variances by pair, by rater, and of all; and back to what they feel."""
    felt = RatingVariation(bias=0.5)
    values = simulated(felt, (200, 40), 3.0, SCALE, 400, np.random.default_rng(3))
    found = felt.as_rated(SCALE)
    assert found.total == pytest.approx(values.std(), rel=0.01)
    assert found.spread == pytest.approx(
        math.sqrt(values.mean(axis=2).var(axis=1, ddof=1).mean() - found.noise**2 / 40), rel=0.02
    )
    assert found.bias == pytest.approx(
        math.sqrt(values.mean(axis=1).var(axis=1, ddof=1).mean() - found.noise**2 / 200), rel=0.02
    )
    assert astuple(found.before_rating(SCALE)) == pytest.approx(astuple(felt), rel=0.01)
    alike = RatingVariation(bias=0.0)  # raters of whom none leans
    assert alike.as_rated(SCALE).before_rating(SCALE).bias == pytest.approx(0, abs=1e-6)


def test_a_study_that_has_ratings_is_planned_by_how_they_vary() -> None:
    """Three of eight raters for each of 400 outputs of two systems, which have half of the variance in common."""
    rng, answers = np.random.default_rng(4), []
    felt = RatingVariation(spread=0.9, bias=0.5, noise=0.7)
    shared, habits = rng.normal(0, felt.spread * math.sqrt(0.5), 200), rng.normal(0, felt.bias, 8)
    for system, shift in (("ours", 0.4), ("theirs", 0.0)):
        for number, quality in enumerate(3 + shift + shared + rng.normal(0, felt.spread * math.sqrt(0.5), 200)):
            for rater in rng.permutation(8)[:3]:
                value = np.clip(np.round(quality + habits[rater] + rng.normal(0, felt.noise)), 1, 5)
                answers.append((system, number, f"{system} {number}", rater, value))
    frame = pd.DataFrame(answers, columns=["transformation", "original", "pair_id", "rater_id", "value"])
    found = Variation.of(frame, SCALE)
    wanted = felt.spread, habits.std(ddof=1), felt.noise
    assert astuple(found.deviations) == pytest.approx(wanted, rel=0.15)
    assert found.apart[0] < 0.5 < found.apart[1] < found.apart[0] + 0.5
    assert found.source == "of the study's 1,200 ratings so far"
    assert Variation.of(frame, SCALE, {"noise": 2.0}).deviations.noise == 2
    few = Variation.of(frame.head(50), SCALE)
    assert (few.deviations, few.source, few.apart) == (RatingVariation(), "as HTEB's", (0, 1))


def test_shares_of_labels_vary_as_the_answers_do_or_else_as_a_half() -> None:
    """Raters who agree on 30 and on 5 of 60 outputs, unrelated ones; the t-test's power by hand."""
    rng, rows = np.random.default_rng(3), list[tuple[str, int, str, int, float]]()
    for system, number in (("ours", 30), ("theirs", 5)):
        values = rng.permutation(60) < number
        rows += [(system, n, f"{system} {n}", rater, float(values[n])) for n in range(60) for rater in range(3)]
    frame = pd.DataFrame(rows, columns=["transformation", "original", "pair_id", "rater_id", "value"])
    share, scale = 35 / 120, (0, 1)
    found, none = Variation.of(frame, scale), Variation.of(frame.head(0), scale)
    assert astuple(found.shown(scale)) == pytest.approx((math.sqrt(share * (1 - share)), 0, 0), abs=0.01)
    assert astuple(none.shown(scale)) == pytest.approx((0.5, 0, 0), abs=0.01)
    assert Variation.of(frame[frame["value"] == 1], scale).source == none.source  # all alike
    partly = Variation.of(frame, scale, {"noise": 2.0})
    assert partly.deviations == found.deviations and partly.source.startswith(f"{found.source}; noise unused")
    for variation, middle in ((found, share), (none, 0.5)):
        needed = originals_needed(0.3, 3, 1, variation, scale, rng, campaigns=500)
        deviation = math.sqrt(sum((middle + side) * (1 - middle - side) for side in (-0.15, 0.15)))
        theory = TTestPower().solve_power(0.3 / deviation, alpha=0.05, power=0.8)
        assert needed[0] < needed[1] == pytest.approx(theory, rel=0.12)


def test_the_originals_that_tell_systems_apart_are_as_many_as_theory_says() -> None:
    """By statsmodels: 80% power of the t-test of one sample; with looks a tenth to a third more are needed."""
    variation, rng = Variation(RatingVariation(), "as given"), np.random.default_rng(5)
    for n_differences, apart in ((1, 0.41), (6, 0.6)):
        found = originals_needed(apart, 3, n_differences, variation, SCALE, rng, campaigns=2000)
        rated, level = variation.deviations.as_rated(SCALE), 0.05 / n_differences
        alike, unlike = (math.sqrt(2 * (own + rated.noise**2 / 3)) for own in (0, rated.spread**2))
        theory = [TTestPower().solve_power(apart / error, alpha=level, power=0.8) for error in (alike, unlike)]
        assert found == pytest.approx(theory, rel=0.08, abs=2)
    looks = originals_needed(0.41, 3, 1, variation, SCALE, rng, looks=(0.2, 0.4, 0.6, 0.8, 1.0), campaigns=2000)
    once = originals_needed(0.41, 3, 1, variation, SCALE, rng, campaigns=2000)
    assert 1.1 < looks[1] / once[1] < 1.35
    assert np.isnan(originals_needed(4, 3, 1, variation, SCALE, rng)).all()
    assert np.isnan(originals_needed(0.001, 3, 1, variation, SCALE, rng)).all()


def preferring(rng: np.random.Generator, originals: int, raters: int, apart: float, leaning: float) -> pd.DataFrame:
    """Ratings of two systems by raters who differ in how far they prefer one, on a scale without ends or points."""
    size, felt = (originals, raters), RatingVariation()
    shared, leans = (
        rng.normal(0, felt.bias, raters) + rng.normal(0, 0.5, (originals, 1)),
        rng.normal(0, leaning, raters),
    )
    own = [rng.normal(0, felt.spread, (originals, 1)) + rng.normal(0, felt.noise, size) for _ in range(2)]
    values = np.stack([shared + side * (apart + leans) + part for side, part in zip((0.5, -0.5), own, strict=True)])
    transformation, original, rater = np.indices(values.shape).reshape(3, -1)
    columns = {"transformation": transformation, "original": original, "rater_id": rater, "value": values.ravel()}
    return pd.DataFrame(columns).assign(pair_id=transformation * originals + original, question="quality")


@pytest.mark.parametrize(("raters", "leaning", "apart"), [(3, 0.05, 0.6), (6, 0.25, 0.6)])
def test_with_raters_as_a_sample_accept_tells_systems_apart_in_80_percent(
    raters: int, leaning: float, apart: float
) -> None:
    """With a wide scale ratings vary as raters feel; how far these prefer a system is found again in their ratings."""
    rng, runs, scale = np.random.default_rng(raters), scaled(40, 1000), Continuous((-20.0, 20.0))
    found = Variation.of(preferring(rng, 200, 150, apart, leaning), scale)
    assert found.leaning == pytest.approx(leaning, abs=0.1 * max(leaning, 0.5))
    variation = Variation(RatingVariation(spread=math.sqrt(0.8**2 + 0.5**2)), "", (0.8**2 / 0.89,) * 2, None, leaning)
    needed = originals_needed(apart, raters, 1, variation, scale, rng)[1]
    fixed = replace(variation, leaning=math.nan)
    assert needed > 1.5 * originals_needed(apart, raters, 1, fixed, scale, rng)[1]
    told = 0
    for _ in range(runs):
        ratings = preferring(rng, int(needed), raters, apart, leaning)
        row = side_by_side(ratings, over="pairs_and_raters", system="transformation").differences.iloc[0]
        told += row["p"] < 0.05 and row["system"] == 0
    assert told / runs == pytest.approx(0.8, abs=3 * math.sqrt(0.8 * 0.2 / runs) + 0.02)


def test_raters_who_differ_in_the_system_they_prefer_may_be_too_few_for_any_number_of_originals() -> None:
    rng, variation = np.random.default_rng(1), Variation(RatingVariation(), "", leaning=0.3)
    for raters in (1, 3):
        assert np.isnan(originals_needed(0.5, raters, 1, variation, SCALE, rng)).all()


def test_the_command_says_how_many_originals_tell_its_systems_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers also beyond the study's originals; points, and parts of a scale's range; one system is refused."""
    texts = pd.DataFrame({"text": [f"Text {number} about matter {number * 7}." for number in range(80)]})
    texts = texts.assign(ours="A " + texts["text"], theirs="B " + texts["text"])

    def made(**changes: Any) -> Study:
        return of_outputs(tmp_path, texts, {"ours": "both", "theirs": "both"}, sample={"pairs": 60}, **changes)

    study = made()
    text = apart_text(study, PlanOptions(apart=("0.6",), raters=(2, 3), campaigns=200))
    rows = [line.split() for line in text.splitlines() if line.startswith("quality  ")]
    (least, _, most), larger = rows[1][3:6], rows[0][5]
    assert 15 < int(least) < int(most) <= 80 and int(most) < int(larger)
    assert "pairs 0.8, raters' bias 0.25, noise 1.1 (as HTEB's)" in text
    beyond = apart_text(study, PlanOptions(apart=("0.1",), campaigns=100))
    found = re.search(r"quality +\d +0.1 +\d{3} to (1,\d{3}) +([\d,]+) ", beyond)
    assert found and "The study has 80 originals" in beyond
    originals, dollars = (int(number.replace(",", "")) for number in found.groups())
    assert dollars == pytest.approx(originals * 2 * study.raters.per_pair * 24 * 30 / 3600, rel=0.1)  # and controls
    assert re.search(r"quality +\d +0.001 +– +– +– +–", apart_text(study, PlanOptions(apart=("0.001",), campaigns=100)))
    parts = apart_text(study, PlanOptions(apart=("quality=15%", "0.5"), campaigns=100))
    assert re.findall(r"quality +\d +([\d.]+)", parts) == ["0.6"]  # of 1 to 5
    with pytest.raises(StudyError, match="'ease', which is none of quality"):
        apart_text(study, PlanOptions(apart=("ease=1",)))
    by_blocks = made(raters={"per_pair": 3, "blocks": [20, 40]}, acceptance={"rule": "lower_bound"})
    text = apart_text(by_blocks, PlanOptions(apart=("0.3",), campaigns=100))
    found = re.search(r"quality +\d +0.3 +\d+ to (\d+) +(\d+) ", text)
    assert found and int(found[2]) > int(found[1])  # six answers to each are a dollar, beyond the last block too
    wider = made(acceptance={"interval": "pairs_and_raters"})
    options = PlanOptions(apart=("0.6",), campaigns=100)
    known = Variation(RatingVariation(), "", (0.5, 0.5), None, 0.0)
    monkeypatch.setattr(Variation, "of", lambda *_: known)
    by_interval = [int(*re.findall(r"quality +\d +0.6 +(\d+)", apart_text(one, options))) for one in (study, wider)]
    assert by_interval[1] > 1.5 * by_interval[0]
    alone = of_outputs(tmp_path, texts[["text", "ours"]], {"ours": "both"}, sample={"pairs": 60})
    with pytest.raises(StudyError, match="share a `queue`"):
        apart_text(alone, PlanOptions(apart=("0.2",)))

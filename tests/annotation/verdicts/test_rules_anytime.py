"""Looking at any time is safe, whatever the order of work: false acceptance in thousands of made-up campaigns."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from annotation.planning import RatingVariation, simulated
from annotation.ratings.ratings import dealt_with
from annotation.sampling.queues import in_order
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import SequenceProgress, sequence
from annotation.verdicts.rules import decide, earlier
from annotation.verdicts.tables import verdict_text
from annotation.verdicts.verdicts import conclude, pair_means, verdicts
from plumbline.records import Pair
from plumbline.statistics.intervals import CHANGED, confidence_sequence, holding
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.judgements import HASHES, QUESTIONS, SCALE, START, judged, pair, ratings
from tests.annotation.verdicts.anytime import DESIGN, Queue, by_answers, campaigns
from tests.scale import scaled

BELOW, EDGE = 2.995, 3.0 - 1e-9
TWO = [Queue(50, 0.3), Queue(50, -0.3)]  # languages 0.6 apart
FIVE = [Queue(20, shift) for shift in (0.25, 0.125, 0.0, -0.125, -0.25)]
STRATA = [Queue(50, strata=1.0), Queue(50, strata=1.0)]
UNEQUAL = [Queue(10, 0.5), Queue(30, 0.2), Queue(60, -0.5)]  # the smallest and best one first
RATERS = [Queue(50, early=0.7, late=0.0), Queue(50, early=0.0, late=-0.7)]  # other raters in each queue


@pytest.mark.parametrize(
    ("queues", "mean"),
    [(TWO, BELOW), (FIVE, EDGE), (STRATA, BELOW), (UNEQUAL, EDGE), (RATERS, EDGE)],
    ids=["two languages", "five languages", "strata", "unequal shares", "raters"],
)
def test_queue_after_queue_hardly_ever_accepts_what_is_below(queues: list[Queue], mean: float) -> None:
    assert campaigns(queues, mean, scaled(500, 2000)).accepted <= 0.05


@pytest.mark.parametrize("queues", [TWO, UNEQUAL, RATERS])
def test_in_the_order_of_answers_the_same_campaigns_would_be_accepted(queues: list[Queue]) -> None:
    """These campaigns are hard: taken as they were finished, most that are below the threshold pass."""
    assert campaigns(queues, BELOW, number=200, order=by_answers).accepted > 0.5


def test_what_is_good_is_found_to_be() -> None:
    found = campaigns(TWO, 3.5, number=300)
    assert found.decided == found.accepted > 0.97
    assert found.sequence <= found.complete <= 100


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_a_fixed_composition_is_no_danger_at_any_look(apart: float) -> None:
    """Two halves with no spread but between them, in 2,000 random orders: a look after each of 100 pairs."""
    draw = np.random.default_rng(3)
    whole = np.tile(np.repeat([EDGE - apart / 2, EDGE + apart / 2], 50), (2000, 1))
    low, _ = confidence_sequence(draw.permuted(whole, axis=1), (1, 5))
    assert (low >= 3).mean() <= 0.025  # the share that one side of the sequence may err


@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_a_second_wave_is_no_danger_at_any_look(apart: float) -> None:
    """The same with a second wave of the same composition behind the first, looked at after each of 200 pairs."""
    draw = np.random.default_rng(4)
    wave = np.tile(np.repeat([EDGE - apart / 2, EDGE + apart / 2], 50), (2000, 1))
    whole = np.concatenate([draw.permuted(wave, axis=1), draw.permuted(wave, axis=1)], axis=1)
    low, _ = confidence_sequence(whole, (1, 5))
    assert (low >= 3).mean() <= 0.025


def test_the_order_is_the_samples_and_no_answer_is_in_it() -> None:
    ids = [f"pair-{i}" for i in range(50)]
    assert in_order(ids, 1) == in_order(reversed(ids), 1) != in_order(ids, 2)
    assert sorted(in_order(ids, 1)) == sorted(ids)
    places = [in_order(ids, seed).index("pair-7") for seed in range(400)]
    assert np.mean(places) == pytest.approx(24.5, abs=3 * 14.4 / 20)  # anywhere: SD of 0 to 49 is 14.4


def test_a_later_wave_stands_behind_the_earlier_ones() -> None:
    """What has been looked at stays the beginning: pairs that come later change no earlier look."""
    ids = [f"pair-{i}" for i in range(50)]
    waves = {one: 2 if place < 20 else 1 for place, one in enumerate(ids)}
    assert in_order(ids, 1, waves) == [*in_order(ids[20:], 1), *in_order(ids[:20], 1)]


def test_an_extension_leaves_what_an_anytime_verdict_rested_on() -> None:
    """A wave of 20 pairs that are all rated, and one of 20 that nobody has rated yet."""
    first, later = [pair(i) for i in range(20)], [pair(i).model_copy(update={"wave": 2}) for i in range(20, 40)]
    rule = {"rule": "lower_bound", "stop": "anytime", "min_pairs": 2}
    before = judged(first, ratings(first, [4, 5] * 10, [4] * 20), **rule)[0]
    waiting = judged([*first, *later], ratings(first, [4, 5] * 10, [4] * 20), **rule)[0]
    assert repr(waiting.questions) == repr(before.questions) and (before.waves, waiting.waves) == ((1,), (1,))
    every = [*first, *later]
    whole = judged(every, ratings(every, [4] * 40, [4] * 40), **rule)[0]
    assert (whole.n_pairs, whole.waves) == (40, (1, 2))
    assert "rests on waves 1 and 2 of the sample" in verdict_text([whole])
    assert "waves" not in verdict_text([before])
    nothing = judged(first, ratings(first, [4, 5] * 10, [4] * 20).iloc[:0], **rule)[0]
    assert nothing.waves == (1,)


def test_the_sequence_ends_before_the_first_pair_that_waits() -> None:
    """a and e have all three, b two and a discard, c one and two discards; d has one and a discard."""
    answered = {"a": 3, "b": 2, "c": 1, "d": 1, "e": 3}
    standing, counting = sequence("abcde", answered, DESIGN, {"a": 3, "b": 3, "c": 3, "d": 2, "e": 3})
    assert counting == ["a", "b"]
    assert standing == SequenceProgress(complete=3, counted=2, passed=1, waits="d", missing=1)
    assert standing.lines("pair d", 2) == (
        "1 pair passed over in the sequence: fewer than 2 ratings of each count",
        "3 complete pairs, of which 2 count in the sequence: pair d still needs 1 answer",
    )
    whole, every = sequence("abce", answered, DESIGN, dict.fromkeys("abce", 3))
    assert every == ["a", "b", "e"] and whole.waits == ""


def test_numbers_in_stored_lines_have_no_commas() -> None:
    """Verdicts of earlier versions have none, and are compared with the verdicts computed now."""
    standing = SequenceProgress(complete=3000, counted=2000, passed=0, waits="d", missing=1200)
    assert standing.lines("pair d", 2) == (
        "3000 complete pairs, of which 2000 count in the sequence: pair d still needs 1200 answers",
    )


def test_who_discarded_has_dealt_with_a_pair_and_a_draft_has_not() -> None:
    pairs = [pair(0), pair(1), pair(2)]
    frame = ratings(pairs, [3, 3, 3], [3, 3, 3], raters=3)
    third = frame["rater_id"] == "rater-2"
    frame.loc[third & (frame["pair_id"] == pairs[1].pair_id), "status"] = "discarded"
    frame.loc[third & (frame["pair_id"] == pairs[2].pair_id), "status"] = "draft"
    assert dealt_with(frame.assign(excluded="too fast")).raters == {
        pairs[0].pair_id: 3,
        pairs[1].pair_id: 3,
        pairs[2].pair_id: 2,
    }


def two_queues() -> tuple[list[Pair], pd.DataFrame]:
    """50 English pairs around 3.5 and then 50 German ones around 2.4, of three raters each."""
    draw = np.random.default_rng(8)
    pairs = [pair(i) for i in range(50)] + [pair(i, language="de", output_language="de") for i in range(50)]
    frame = ratings(pairs, [3] * 100, [4] * 100, raters=3).assign(excluded="")
    latent = np.where(frame["language"] == "en", 3.5, 2.4)
    felt = np.where(frame["question"] == "quality", latent, 4.5) + draw.normal(0, 0.7, len(frame))
    turn = frame["pair_id"].map({one.pair_id: place for place, one in enumerate(pairs)})
    times = [START + timedelta(minutes=int(minute)) for minute in turn]
    return pairs, frame.assign(value=np.clip(np.round(felt), 1, 5).astype(int), submitted_at=times)


def test_one_queue_after_the_other_is_never_accepted_above_its_own_mean() -> None:
    """The first queue alone would be accepted; the whole is below 3, and no look says otherwise."""
    pairs, frame = two_queues()
    rule = {"rule": "lower_bound", "stop": "anytime", "scope": "transformation", "min_pairs": 20}
    for done in range(10, 101, 10):
        some = frame[frame["pair_id"].isin([one.pair_id for one in pairs[:done]])]
        found = judged(pairs, some, per_pair=3, **rule)[0]
        assert found.decision != "accepted"
        for summary in found.questions:
            assert np.isnan(summary.mean) or summary.low <= summary.mean <= summary.high
            assert summary.n_pairs == found.n_pairs
        if done == 50:  # all English pairs are complete
            assert found.decision == "undecided" and found.n_pairs < 20
            assert found.sequence[0].startswith(f"50 complete pairs, of which {found.n_pairs} count")
            assert "(paraphrasing, de) still needs 3 answers" in found.sequence[0]
    assert found.n_pairs == 100 and found.sequence == ()
    assert judged(pairs[:50], frame[frame["language"] == "en"], per_pair=3, **rule)[0].decision == "accepted"


def test_all_numbers_of_an_anytime_row_are_of_the_same_pairs() -> None:
    pairs, frame = two_queues()
    draw = np.random.default_rng(1)
    some = frame[frame["pair_id"].isin(draw.choice([one.pair_id for one in pairs], 95, replace=False))]
    rule = {"rule": "lower_bound", "stop": "anytime", "scope": "transformation", "min_pairs": 2}
    found = judged(pairs, some, per_pair=3, **rule)[0]
    first = in_order([one.pair_id for one in pairs], 1337)[: found.n_pairs]
    assert 2 <= found.n_pairs < 95
    own = some[some["pair_id"].isin(first)]
    for summary in found.questions:
        values = own.loc[own["question"] == summary.question, "value"]
        assert summary.mean == pytest.approx(values.mean()) and summary.sd == pytest.approx(values.std())
        assert (summary.n_pairs, summary.n_ratings) == (len(first), len(values))
    assert found.n_ratings == len(own)


def test_discarded_pairs_are_passed_over_and_said() -> None:
    pairs, frame = two_queues()
    first = in_order([one.pair_id for one in pairs], 1337)[0]
    gone = (frame["pair_id"] == first) & (frame["rater_id"] != "rater-0")
    frame.loc[gone, ["status", "value"]] = ["discarded", None]
    rule = AcceptanceSpec(rule="lower_bound", stop="anytime", scope="transformation")
    _, found, _ = conclude(pairs, frame, Design(QUESTIONS, SCALE, 3, rule), HASHES, 1)
    assert found[0].n_pairs == 99
    assert found[0].sequence == ("1 pair passed over in the sequence: fewer than 2 ratings of each count",)


def test_pairs_with_too_few_raters_enter_no_number() -> None:
    """20 pairs twice 2.0 and 40 pairs once 5.0: not accepted with a mean of 3.50, but rejected with 2.00."""
    pairs = [pair(i) for i in range(60)]
    frame = ratings(pairs, [2] * 20 + [5] * 40, [3] * 60).assign(excluded="")
    once = frame["pair_id"].isin([one.pair_id for one in pairs[20:]]) & (frame["rater_id"] == "rater-1")
    groups, found, means = conclude(pairs, frame[~once], Design(QUESTIONS, SCALE, 2, AcceptanceSpec()), HASHES, 1)
    assert (found[0].decision, found[0].n_pairs, found[0].n_ratings) == ("rejected", 20, 80)
    for quality in (found[0].questions[0], *(group.questions[0] for group in groups)):
        assert (quality.mean, quality.n_pairs, quality.n_ratings) == (2.0, 20, 40)
    assert set(means.loc[means["n_ratings"] == 1, "decision"]) == {"undecided"}


def test_a_pair_counts_by_the_question_with_the_fewest_ratings() -> None:
    """Twice rated for quality, once for fluency: it is in no number of either."""
    pairs = [pair(i) for i in range(3)]
    frame = ratings(pairs, [5, 5, 1], [5, 5, 5])
    lost = (frame["pair_id"] == pairs[2].pair_id) & (frame["question"] == "fluency") & (frame["rater_id"] == "rater-1")
    design = Design(QUESTIONS, SCALE, 2, AcceptanceSpec(min_pairs=2))
    found = verdicts(pairs, frame[~lost], design, HASHES, 1)[0]
    assert [(one.mean, one.n_pairs) for one in found.questions] == [(5.0, 2), (5.0, 2)]
    means = pair_means(frame[~lost], design).set_index(["pair_id", "question"])["decision"]
    assert means[pairs[2].pair_id, "quality"] == means[pairs[2].pair_id, "fluency"] == "undecided"


def test_a_decision_whose_interval_does_not_hold_its_mean_is_a_bug() -> None:
    pairs = [pair(i) for i in range(4)]
    found = judged(pairs, ratings(pairs, [5, 3, 4, 4], [5, 4, 5, 4]), rule="lower_bound")[0]
    rule = AcceptanceSpec(rule="lower_bound", min_pairs=2)
    quality, fluency = found.questions
    for changed in ({"low": 3.5, "mean": 2.95}, {"high": 2.0}):
        with pytest.raises(RuntimeError, match="interval of quality .* does not contain its own mean"):
            decide([quality.model_copy(update=changed), fluency], 4, rule)


def in_waves(values: list[int]) -> tuple[list[Pair], pd.DataFrame]:
    """Pairs and their ratings, so that in the order of the sequence the pairs' means are these, whoever rates."""
    pairs = [pair(number) for number in range(len(values))]
    value = dict(zip(in_order([one.pair_id for one in pairs], DESIGN.seed), values, strict=True))
    by_pair = [value[one.pair_id] for one in pairs]
    return pairs, ratings(pairs, by_pair, by_pair)


def test_an_interval_that_excludes_the_mean_of_its_own_pairs_decides_nothing() -> None:
    """Thirty pairs of 4 and 5 are accepted; thirty of 2 then take the mean to 3.25, below what the first had proven.

    The interval had been widened to that mean, so that a row said "lower end 3.25 (mean 3.25)": accepted.
    """
    rule = {"rule": "lower_bound", "stop": "anytime"}
    good, bad = [4, 5] * 15, [2] * 30
    (first,) = judged(*in_waves(good), **rule)
    assert first.decision == "accepted" and first.questions[0].low > 3.25
    (both,) = judged(*in_waves(good + bad), **rule)
    assert both.decision == "undecided" and np.isnan(both.questions[0].low) and both.questions[0].mean == 3.25
    assert both.reasons[0] == f"quality (mean 3.25) has no interval: {CHANGED}"
    assert CHANGED in verdict_text([both])


def test_a_decision_of_an_earlier_look_says_so_where_all_its_pairs_are_less_sure() -> None:
    """Of later pairs that are about the limit: the interval still holds the mean, and P of all is below 0.975."""
    rule = AcceptanceSpec(rule="lower_bound", stop="anytime")
    for decision, probability in (("accepted", 0.59), ("rejected", 0.41)):
        (reason,) = earlier(decision, probability, 60, rule)
        assert reason.startswith(
            "decided at an earlier look, and this decision stands; over all 60 pairs it is less certain (P 0."
        )
    for decision, probability in (("accepted", 0.98), ("rejected", 0.02), ("undecided", 0.5)):
        assert earlier(decision, probability, 60, rule) == ()
    assert earlier("accepted", 0.59, 60, AcceptanceSpec(rule="lower_bound")) == ()
    assert earlier("accepted", float("nan"), 60, rule) == ()  # nothing varies, so that there is no P
    (found,) = judged(*in_waves([4] * 12 + [5, 1, 3, 5, 1] * 4), rule="lower_bound", stop="anytime")
    assert found.decision == "accepted" and found.questions[0].low > 3 and found.probability < 0.975
    assert found.reasons[1].startswith(
        "decided at an earlier look, and this decision stands; over all 32 pairs it is less certain"
    )


def test_of_one_kind_pairs_hardly_ever_contradict_and_a_worse_wave_is_not_accepted() -> None:
    """Accepted at the last look of 150 pairs: 3.4 in the first wave and 2.73 in the second are 2.95 together."""
    draw, number = np.random.default_rng(1), scaled(200, 2000)

    def accepted(*waves: tuple[float, int]) -> tuple[float, float]:
        parts = [
            simulated(RatingVariation(bias=0.0), (pairs, 3), mean, SCALE, number, draw).mean(axis=2)
            for mean, pairs in waves
        ]
        values = np.concatenate(parts, axis=1)
        low, _ = holding(confidence_sequence(values, (1, 5)), values.mean(axis=1))
        return float((low >= 3).mean()), float(np.isnan(low).mean())

    assert accepted((3.4, 50), (2.73, 100))[0] <= 0.05
    share, contradicting = accepted((3.5, 100))
    assert share > 0.97 and contradicting <= 0.02

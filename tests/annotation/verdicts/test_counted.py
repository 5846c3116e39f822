"""The pairs that a verdict counts, and the order in which blocks take them."""

from __future__ import annotations

import numpy as np
import pytest

from annotation.campaign.counting import coverage_of
from annotation.sampling.queues import in_order
from annotation.statistics.summaries import Design, table_two
from annotation.verdicts.counted import with_enough
from annotation.verdicts.rules import decide
from annotation.verdicts.tables import verdict_text
from annotation.verdicts.verdicts import judged_sample, pair_means, verdicts
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.judgements import QUESTIONS, SCALE, judged, pair, pair_rows, ratings


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


def test_an_extension_that_nobody_rated_leaves_a_verdict_as_it_was() -> None:
    """A wave of 20 pairs that are all rated, and one of 20 that nobody has rated yet."""
    first, later = [pair(i) for i in range(20)], [pair(i).model_copy(update={"wave": 2}) for i in range(20, 40)]
    rule = {"rule": "lower_bound", "min_pairs": 2}
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


def test_who_discarded_has_dealt_with_a_pair_and_a_draft_has_not() -> None:
    pairs = [pair(0), pair(1), pair(2)]
    frame = ratings(pairs, [3, 3, 3], [3, 3, 3], raters=3)
    third = frame["rater_id"] == "rater-2"
    frame.loc[third & (frame["pair_id"] == pairs[1].pair_id), "status"] = "discarded"
    frame.loc[third & (frame["pair_id"] == pairs[2].pair_id), "status"] = "draft"
    assert [coverage_of(frame.assign(excluded="too fast")).raters[one.pair_id] for one in pairs] == [3, 3, 2]


def test_pairs_with_too_few_raters_enter_no_number() -> None:
    """20 pairs twice 2.0 and 40 pairs once 5.0: not accepted with a mean of 3.50, but rejected with 2.00."""
    pairs = [pair(i) for i in range(60)]
    frame = ratings(pairs, [2] * 20 + [5] * 40, [3] * 60).assign(excluded="")
    once = frame["pair_id"].isin([one.pair_id for one in pairs[20:]]) & (frame["rater_id"] == "rater-1")
    design, left = Design(QUESTIONS, SCALE, 2, AcceptanceSpec()), frame[~once]
    found = judged_sample(pair_rows(pairs), left, design, 1)
    groups, means = table_two(with_enough(left, design), design, 1), pair_means(left, design)
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
    found = verdicts(pair_rows(pairs), frame[~lost], design, 1)[0]
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

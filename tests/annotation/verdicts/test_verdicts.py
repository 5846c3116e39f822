"""Verdicts from ratings with known means: the papers' rule, and everything that must not pass it."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from annotation.campaign.counting import counting_ratings, coverage_of
from annotation.campaign.rubric import load_rubric
from annotation.records import P_IS
from annotation.sampling.queues import in_order
from annotation.statistics.summaries import Design, table_two
from annotation.variation import rated_mean
from annotation.verdicts.counted import with_enough
from annotation.verdicts.rules import decide, outcomes
from annotation.verdicts.tables import cards, joined, verdict_table, verdict_text
from annotation.verdicts.verdicts import accepted_pairs, judged_sample, pair_means, verdicts
from plumbline.records import Pair
from plumbline.statistics.estimates import over_pairs_and_raters
from plumbline.study import ROOT, load_study
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.subject import PAIRS
from plumbline.study.transformations import EIGHT
from tests.annotation.judgements import QUESTIONS, SCALE, decided, judged, pair, pair_rows, ratings
from tests.annotation.verdicts.table_two import HTEB, hteb_ratings


def test_a_question_without_ratings_never_passes() -> None:
    pairs = [pair(0), pair(1)]
    frame = ratings(pairs, [5, 5], [5, 5])
    assert decided(pairs, frame[frame["question"] == "quality"])[0][1] == "undecided"


def test_ratings_by_too_few_raters_are_not_called_none() -> None:
    pairs, rule = [pair(0), pair(1)], {"question": "quality", "at_least": 3}
    (found,) = judged(pairs, ratings(pairs, [5, 5], [5, 5], raters=1), rules=[rule], min_raters=2)
    (by_rule,) = found.result.probabilities
    assert math.isnan(by_rule.probability) and by_rule.reason != "no ratings"


def test_translations_share_their_pools_ratings_and_name_its_languages() -> None:
    pairs = [pair(0, "translation", output_language="es"), pair(1, "cross_translation", output_language="tr"),
             pair(2, "translation", output_language="es")]  # fmt: skip
    frame = ratings(pairs, [5, 1, 3], [5, 5, 5])  # pool: quality 3.0; cross_translation alone would be 1.0
    found = judged(pairs, frame, min_pairs=1)
    assert [(v.decision, v.n_pairs) for v in found] == [("accepted", 3)] * 2
    assert found[0].output_languages == found[1].output_languages == ("es", "tr")
    rubric = load_rubric(load_study(ROOT / "studies" / "demo.yaml"))
    shared = "on pooled ratings (translation 2, cross-translation 1)"
    assert shared in " ".join(verdict_text(found).split())
    assert all(card.reason.endswith(shared) for card in cards(found, rubric, PAIRS))
    few = judged(pairs, frame, min_pairs=2)  # of cross_translation's own there is one pair, whatever its pool has
    assert [v.decision for v in few] == ["accepted", "undecided"]
    assert few[1].reasons == ("pairs of cross_translation itself in the pool: 1; at least 2 are needed",)


def spread(pairs: list[Pair], high: int, low: int) -> pd.DataFrame:
    """Two raters give pairs in turn `high` and `low` for quality; fluency is 5 and 4."""
    values = [high if i % 2 else low for i in range(len(pairs))]
    return ratings(pairs, values, [5 if i % 2 else 4 for i in range(len(pairs))])


def test_ratings_that_do_not_vary_are_decided_by_a_bound() -> None:
    """100 pairs, all a 5: 3.6% may be missed, so that the mean is 4.85 at least. Two pairs have none."""
    pairs = [pair(i) for i in range(100)]
    found = judged(pairs, ratings(pairs, [5] * 100, [5] * 100), rule="lower_bound")[0]
    low = 5 - 4 * (1 - 0.025 ** (1 / 100))
    assert (found.decision, found.questions[0].low, found.questions[0].high) == ("accepted", pytest.approx(low), 5.0)
    assert found.questions[0].interval_reason == ""
    assert found.reasons[0].startswith(f"lower ends of quality {low:.2f} (mean 5.00) and fluency")
    both = {"rule": "lower_bound", "interval": "pairs_and_raters"}
    assert judged(pairs, ratings(pairs, [5] * 100, [5] * 100), **both)[0].decision == "undecided"  # two raters
    few = pairs[:2]
    assert decided(few, ratings(few, [5, 5], [5, 4]), rule="lower_bound")[0][1:] == (
        "undecided",
        "quality (mean 5.00) has no interval: fewer than 8 pairs say too little about the mean",
    )
    thin = judged(pairs[:19], ratings(pairs[:19], [5] * 19, [5] * 19), rule="lower_bound", min_pairs=20)[0]
    assert thin.decision == "undecided"


def test_raters_as_a_sample_may_take_back_what_these_raters_accept() -> None:
    """One rater always gives 5, the other 3 or 4: their mean of 4.25 is sure, that of all raters is not."""
    pairs = [pair(i) for i in range(20)]
    frame = ratings(pairs, [3, 4] * 10, [3, 4] * 10)
    frame.loc[frame["rater_id"] == "rater-1", "value"] = 5
    over = (judged(pairs, frame, rule="lower_bound", interval=one)[0] for one in ("pairs", "pairs_and_raters"))
    assert [verdict.decision for verdict in over] == ["accepted", "undecided"]


def test_what_a_study_asks_more_leaves_undecided() -> None:
    # Quality (3, 5), (5, 4), (3, 3), (5, 4), ...: agreement (0.7 + 0.9 + 1 + 0.9)/4 = 0.875 by ordinal weights;
    # shares 0.375, 0.25, 0.375 of 3, 4, 5: chance 0.9 * 0.65625 = 0.590625; AC2 0.284375/0.409375 = 0.6947
    pairs = [pair(i) for i in range(20)]
    frame = spread(pairs, 5, 3)
    second = (frame["question"] == "quality") & (frame["rater_id"] == "rater-1")
    frame.loc[second, "value"] = [5, 4, 3, 4] * 5
    found = judged(pairs, frame, min_ac2=0.9)[0]
    assert (found.decision, found.reasons[0]) == ("undecided", "AC2 of quality is 0.69; at least 0.9 is needed")
    assert judged(pairs, frame)[0].decision == "accepted"


def test_scopes_judge_what_they_say_and_fall_back_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """English 5, 5 (sts, retrieval), German 2, 2: together 3.5."""
    german = [pair(number, language="de", output_language="de") for number in (0, 1)]
    pairs = [pair(0), pair(1, task="retrieval"), *german]
    frame = ratings(pairs, [5, 5, 2, 2], [5] * 4)

    def by(scope: str, least: int) -> dict[tuple[str, str], tuple[str, int]]:
        found = judged(pairs, frame, scope=scope, min_pairs=least)
        return {(v.language, v.task_type): (v.decision, v.n_pairs) for v in found}

    assert by("transformation", 4) == {("en", ""): ("accepted", 4), ("de", ""): ("accepted", 4)}
    assert by("language", 2) == {("en", ""): ("accepted", 2), ("de", ""): ("rejected", 2)}
    # What rests on the same ratings is shown once, and as what it is: no language has four pairs of its own.
    rubric = load_rubric(load_study(ROOT / "studies" / "demo.yaml"))
    for scope, languages in (("transformation", ["en, de"]), ("language", ["en", "de"])):
        found = judged(pairs, frame, scope=scope, min_pairs=1)
        assert [verdict.language for verdict in joined(found)] == languages
        assert (len(cards(found, rubric, PAIRS)), "en, de" in verdict_text(found)) == (
            len(languages),
            len(languages) == 1,
        )
    assert len(joined([*found, found[0].model_copy(update={"language": "fr"})])) == 3  # of equal numbers by chance
    monkeypatch.setattr("annotation.verdicts.tables._LISTED", 1)
    assert [verdict.language for verdict in joined(judged(pairs, frame, scope="transformation"))] == ["2 languages"]
    english = {("en", "sts"): ("undecided", 1), ("en", "retrieval"): ("undecided", 1)}
    assert by("task", 2) == {**english, ("de", "sts"): ("rejected", 2)}


def test_a_verdict_says_how_close_it_was() -> None:
    """Quality 4 with error 0.2294 (20 pairs, SD 1.026): far above 3; the least of both questions is told."""
    pairs = [pair(i) for i in range(20)]
    sure, border = judged(pairs, spread(pairs, 5, 3))[0], judged(pairs, spread(pairs, 4, 2))[0]
    assert sure.probability == min(question.probability for question in sure.questions) > 0.999
    assert border.probability == pytest.approx(0.5)  # the mean is the threshold itself
    alike = judged(pairs, ratings(pairs, [5] * 20, [5] * 20))[0].probability
    assert alike == pytest.approx(1 - 0.5**20)  # were the mean 3, half of the pairs would be a 1


@pytest.mark.parametrize("pairs", [30, 100])
@pytest.mark.parametrize("latent", [3.0, 4.2])
def test_over_raters_too_accepts_at_the_border_in_at_most_5_percent(pairs: int, latent: float) -> None:
    """1,000 campaigns whose true mean is the threshold itself, the worst case of one below it; nominally 2.5%."""
    draw = np.random.default_rng(11)
    bias = draw.normal(0, 0.3, (1000, 1, 3))
    felt = draw.normal(latent, 0.8, (1000, pairs, 1)) + bias + draw.normal(0, 0.6, (1000, pairs, 3))
    found = np.clip(np.round(felt), 1, 5)
    sums, counts = found.sum(axis=2), np.full((1000, pairs), 3.0)
    threshold = rated_mean(latent, math.sqrt(1.09), SCALE)
    mean = over_pairs_and_raters(sums, counts, found.sum(axis=1), np.full((1000, 3), float(pairs)))
    rule = AcceptanceSpec(rule="lower_bound", interval="pairs_and_raters", threshold=threshold)
    (of_threshold,) = Design(("quality",), rule=rule).threshold_rules("paraphrasing")
    decisions = outcomes(mean.value, mean.low, mean.high, of_threshold, by_interval=True)
    assert np.mean(decisions == "accepted") <= 0.05
    assert np.mean(decisions == "undecided") > 0.9


def test_hteb_decisions_follow_from_its_table_two() -> None:
    """The paper accepts all eight (4.1.2); a threshold of 4 would take those of which a printed mean is below 4."""
    pairs = []
    for i in range(100):
        for name in EIGHT:
            pool = EIGHT[name].pool  # translation has the even ones of its pool's 200
            place = 2 * i + (name == "cross_translation") if pool == "translation" else i
            pairs.append(pair(i, name).model_copy(update={"pair_id": f"{pool}-{place:03d}"}))
    frame = hteb_ratings()
    for rule in ("mean", "lower_bound"):
        assert {v.decision for v in judged(pairs, frame, 3, rule=rule, min_pairs=100)} == {"accepted"}
    at_four = {v.transformation: v.decision for v in judged(pairs, frame, 3, threshold=4.0)}
    low = {name for (level, name), numbers in HTEB.items() if level == "pool" and min(numbers)[0] < 4}
    assert {name for name, decision in at_four.items() if decision == "rejected"} == low
    assert low == {"style_change", "summarisation", "summarised_expansion"}


def test_excluded_ratings_stay_and_the_verdict_shows_what_they_would_change() -> None:
    pairs = [pair(i) for i in range(4)]
    frame = ratings(pairs, [4, 2, 4, 2], [5] * 4, raters=3)  # quality 3.0
    frame.loc[(frame["rater_id"] == "rater-2") & (frame["question"] == "quality"), "value"] = 1
    excluded = frame.assign(excluded=np.where(frame["rater_id"] == "rater-2", "failed its controls", ""))
    design = Design(QUESTIONS, SCALE, 3, AcceptanceSpec(min_pairs=2))
    (found,), means = (
        judged_sample(pair_rows(pairs), excluded, design, 1),
        pair_means(counting_ratings(excluded, 3), design),
    )
    # without rater-2: (4+4+2+2+4+4+2+2)/8 = 3; with: (24 + 4)/12 = 2.33
    assert (found.decision, found.review.n_excluded, found.review.with_excluded) == ("accepted", 8, "rejected")
    assert found.n_ratings == 16 and means["n_ratings"].unique().tolist() == [2]
    assert "without 8 excluded ratings; if counted, rejected" in " ".join(verdict_text([found]).split())
    assert "excluded ratings" not in verdict_text([found.reviewed(n_excluded=0)])
    assert verdict_table([found])["decision_with_excluded"].item() == "rejected"
    (plain,) = judged_sample(pair_rows(pairs), frame, design, 1)
    assert (plain.decision, plain.review.n_excluded, plain.review.with_excluded) == ("rejected", 0, None)


def test_a_pair_is_accepted_where_both_its_means_are() -> None:
    pairs = [pair(0), pair(1), pair(2), pair(3)]
    frame = ratings(pairs, [3, 2, 5, 5], [3, 5, 2, 5])
    one_rater = (frame["pair_id"] == pairs[3].pair_id) & (frame["rater_id"] == "rater-1")
    design = Design(QUESTIONS, SCALE, 2, AcceptanceSpec(min_pairs=2))
    means = pair_means(frame[~one_rater], design)
    quality = means[means["question"] == "quality"].set_index("pair_id")
    assert quality["mean"].tolist() == [3.0, 2.0, 5.0, 5.0]
    assert quality["decision"].tolist() == ["accepted", "rejected", "accepted", "undecided"]
    assert accepted_pairs(means, QUESTIONS) == {pairs[0].pair_id}


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


def test_who_discarded_has_dealt_with_a_pair_and_a_draft_has_not() -> None:
    pairs = [pair(0), pair(1), pair(2)]
    frame = ratings(pairs, [3, 3, 3], [3, 3, 3], raters=3)
    third = frame["rater_id"] == "rater-2"
    frame.loc[third & (frame["pair_id"] == pairs[1].pair_id), "status"] = "discarded"
    frame.loc[third & (frame["pair_id"] == pairs[2].pair_id), "status"] = "draft"
    assert [coverage_of(frame.assign(excluded="too fast")).raters[one.pair_id] for one in pairs] == [3, 3, 2]


def test_a_decision_whose_interval_does_not_hold_its_mean_is_a_bug() -> None:
    pairs = [pair(i) for i in range(4)]
    found = judged(pairs, ratings(pairs, [5, 3, 4, 4], [5, 4, 5, 4]), rule="lower_bound")[0]
    rule = AcceptanceSpec(rule="lower_bound", min_pairs=2)
    quality, fluency = found.questions
    for changed in ({"low": 3.5, "mean": 2.95}, {"high": 2.0}):
        with pytest.raises(RuntimeError, match="interval of quality .* does not contain its own mean"):
            decide([quality.model_copy(update=changed), fluency], 4, rule)


def test_p_is_one_thing_wherever_it_is_explained() -> None:
    """The sentence stands in the documents word for word, and no line of code or of a page tells another one of P."""
    pages = ["glossary.md", "method/verdicts.md"]
    for page in pages:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert P_IS in " ".join(text.split()), page
    other = re.compile(r"\bP(?: is| is the|:| of a rule is)? (?:how )?(?:the )?probab")
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb"), ROOT / "README.md"]
    files += [file for name in ("annotation", "evaluation", "streamlit_app") for file in (ROOT / name).rglob("*.py")]
    for file in files:
        text = " ".join(re.sub(r'"\s*\n\s*"', "", file.read_text(encoding="utf-8")).split())
        assert not other.search(text.replace(P_IS, "")), file
    assert P_IS in verdict_text(judged([pair(0), pair(1)], ratings([pair(0), pair(1)], [4, 5], [5, 4])))

"""Looks after blocks: which pairs count, when a look decides, what is open, and means without the bias of stopping."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from annotation.campaign.counting import PairCoverage, coverage_of
from annotation.campaign.records import CampaignRecords
from annotation.questions.label import SingleLabelQuestion
from annotation.records import Verdict
from annotation.sampling.queues import in_order
from annotation.statistics.summaries import Design
from annotation.verdicts.counted import basis
from annotation.verdicts.looks import BlockProgress
from annotation.verdicts.preregistration import fix_rules
from annotation.verdicts.tables import unbiased_frame, verdict_text
from annotation.verdicts.verdicts import verdicts
from plumbline.errors import StudyError
from plumbline.statistics.group_sequential import Blocks, Criterion, Looks, looks, spent
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.judgements import QUESTIONS, SCALE, START, pair, pair_rows, ratings
from tests.annotation.ratings.test_review import rate
from tests.annotation.sampling.test_queues import RULE

ENDS, SEED = (20, 40, 60), 1337
PAIRS = [pair(number) for number in range(60)]
ORDER = in_order([one.pair_id for one in PAIRS], SEED)
IN_ORDER = sorted(PAIRS, key=lambda one: ORDER.index(one.pair_id))


def design(**rule: object) -> Design:
    acceptance = {"rule": "lower_bound", "min_pairs": 8} | rule
    return Design(QUESTIONS, SCALE, 2, AcceptanceSpec.model_validate(acceptance), SEED, blocks=ENDS)


def frame(n_pairs: int, quality: list[int], fluency: list[int] | None = None) -> pd.DataFrame:
    """Ratings of the first pairs of the order: `quality` over and over, in their order, and likewise fluency."""
    times = n_pairs // len(quality) + 1
    return ratings(IN_ORDER[:n_pairs], (quality * times)[:n_pairs], ((fluency or quality) * times)[:n_pairs])


def progress(found: pd.DataFrame, rule: Design | None = None, dealt: PairCoverage | None = None) -> BlockProgress:
    (group,) = basis(pair_rows(PAIRS), found, rule or design(), dealt or coverage_of(found)).blocks.values()
    return group


def verdict(found: pd.DataFrame, rule: Design | None = None) -> Verdict:
    return verdicts(pair_rows(PAIRS), found, rule or design(), 1, coverage_of(found))[0]


def test_the_first_look_that_decides_ends_it_and_later_ratings_play_no_part() -> None:
    early, later = verdict(frame(20, [4, 5, 4, 3])), verdict(frame(60, [4, 5, 4, 3] * 5 + [1] * 40))
    assert early.decision == later.decision == "accepted"
    assert early.n_pairs == later.n_pairs == 20 and repr(early.questions) == repr(later.questions)
    assert (early.result.blocks, {look.look for look in early.result.looks}) == (ENDS, {1})
    assert "decided after block 1 of 3; not needed: ratings of 40 pairs" in " ".join(verdict_text([early]).split())
    assert early.questions[0].interval == "blocks" and early.questions[0].low > 3
    assert 0.975 <= early.probability == min(one.probability for one in early.questions)
    assert "lower ends of quality" in early.reasons[0]


def test_an_incomplete_block_is_not_looked_at() -> None:
    group = progress(frame(19, [5, 4]))
    assert (group.complete, group.opened, group.looks, group.decision) == (0, 1, (), "undecided")
    assert group.missing == 2 and group.lines() == ("block 1 of 3 still needs 2 answers",)
    waiting = verdict(frame(19, [5, 4]))
    assert (waiting.decision, waiting.n_pairs) == ("undecided", 0)
    assert waiting.reasons == ("pairs that count in complete blocks: 0; at least 8 are needed",)


def test_what_is_undecided_opens_its_next_block_alone() -> None:
    group = progress(frame(20, [1, 5, 3, 3]))
    assert (group.complete, group.opened, group.decision, group.missing) == (1, 2, "undecided", 40)
    last = progress(frame(60, [1, 5, 3, 3]))
    assert (last.complete, last.opened, last.decision, last.missing) == (3, 3, "undecided", 0)
    assert last.lines() == ("undecided after the last of 3 blocks",)
    assert [look.pairs for look in last.looks if look.question == "quality"] == [20, 40, 60]


def test_a_pair_that_raters_discarded_counts_as_dealt_with() -> None:
    found = frame(20, [4, 5, 4, 3])
    discarded = found["pair_id"].eq(ORDER[3]) & found["rater_id"].eq("rater-1")
    found.loc[discarded, "status"] = "discarded"
    counting = found[found["status"] == "submitted"]
    group = progress(counting, dealt=coverage_of(found))
    assert group.complete == 1 and len(group.counting) == 19


def test_a_limit_that_is_not_to_be_passed_is_looked_at_likewise() -> None:
    rules = [{"question": "quality", "at_most": 3.0}]
    acceptance = {"rule": "lower_bound", "min_pairs": 8, "rules": rules}
    rule = Design(QUESTIONS, SCALE, 2, AcceptanceSpec.model_validate(acceptance), SEED, blocks=ENDS)
    low, high = frame(20, [1, 2, 2, 3]), frame(20, [5, 4, 4, 3])
    mirror = verdict(low, rule)
    assert (mirror.decision, verdict(high, rule).decision) == ("accepted", "rejected")
    assert 0.975 <= mirror.probability == pytest.approx(1 - verdict(high, rule).probability)
    assert verdict(high).questions[0].unbiased is not None and mirror.questions[0].unbiased is not None
    beyond = 6 - verdict(high).questions[0].unbiased.value  # type: ignore[union-attr]
    assert mirror.questions[0].unbiased.value == pytest.approx(beyond, abs=1e-6)
    assert mirror.questions[1].unbiased is None  # no rule is about it


def test_the_share_of_a_label_has_an_unbiased_estimate_too() -> None:
    labelled = SingleLabelQuestion("sound", labels=("odd", "natural"))
    rules = [{"question": "sound", "label": "odd", "at_most": 0.3}]
    acceptance = AcceptanceSpec.model_validate({"rule": "lower_bound", "min_pairs": 8, "rules": rules})
    rule = Design(("sound",), SCALE, 2, acceptance, SEED, {"sound": labelled}, blocks=ENDS)
    odd = frame(40, [1, 0, 0, 0, 0, 0, 0, 0]).loc[lambda rows: rows["question"] == "quality"]
    answers = odd.assign(question="sound", answer=np.where(odd["value"] == 1, "odd", "natural"), value=None)
    found = verdict(answers, rule)
    alone = looks(
        odd.assign(order=odd["pair_id"].map({pair_id: place for place, pair_id in enumerate(ORDER, 1)})),
        Blocks(ENDS, criteria={"quality": Criterion(0.3, (0, 1), "at_most")}),
    )
    (share,) = [share for share in found.questions[0].shares if share.label == "odd"]
    assert found.decision == alone.decision == "accepted" and share.unbiased == alone.unbiased["quality"]
    assert not math.isnan(alone.unbiased["quality"].value)
    assert unbiased_frame([found])["question"].tolist() == ["odd in sound"]


PLACE = ("paraphrasing", "en")


def after(group: BlockProgress) -> Design:
    return replace(design(), past_looks=tuple(group.taken(PLACE, START, "u")))


def test_a_look_that_was_taken_is_not_taken_again_on_other_ratings() -> None:
    """The first look left it undecided; then ratings changed so that it would accept."""
    undecided, better = frame(20, [1, 5, 3, 3]), frame(40, [5, 4])
    later_on = after(progress(undecided))
    assert progress(frame(20, [5, 4])).decision == "accepted"
    stands = progress(frame(20, [5, 4]), later_on)
    assert (stands.decision, stands.opened) == ("undecided", 2)
    reasons = verdict(frame(20, [5, 4]), later_on).reasons
    assert reasons[0].startswith("the look did not decide when it was taken, and this stands")
    later = progress(better, later_on)
    assert (later.decision, later.n_looks) == ("accepted", 2)
    assert later.level == pytest.approx(np.diff(spent([20 / 60, 40 / 60], "pocock"))[0])
    assert later.level < progress(frame(40, [1, 5, 3, 3])).level
    elsewhere = (later_on.past_looks[0].model_copy(update={"group": ("expansion", "en")}),)
    assert progress(frame(20, [5, 4]), replace(design(), past_looks=elsewhere)).decision == "accepted"


def _as_function(found: pd.DataFrame, taken: pd.DataFrame | None = None, gone: Collection[str] = ()) -> Looks:
    places = {pair_id: place for place, pair_id in enumerate(ORDER, 1)}
    blocks = Blocks(ENDS, 3.0, (1, 5))
    without = [places[pair_id] for pair_id in gone]
    return looks(found.assign(order=found["pair_id"].map(places)), blocks, past=taken, without=without)


def _are_the_same(group: BlockProgress, alone: Looks) -> None:
    """Decision, pairs, and of each look level, mean and interval; unbiased means once it has stopped."""
    assert (group.decision, group.looks[-1].pairs) == (alone.decision, alone.pairs)
    columns = ["look", "question", "pairs", "mean", "low", "high", "level"]
    rows = pd.DataFrame([look.model_dump() for look in group.looks])[columns].sort_values(["look", "question"])
    expected = alone.frame()[columns].sort_values(["look", "question"])
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), expected.reset_index(drop=True), rtol=0, atol=1e-12)
    for (question, _), estimate in group.unbiased.items():
        assert estimate == alone.unbiased[question]


def test_looks_are_those_of_the_function_also_where_ratings_change_after_one() -> None:
    """One of three raters is excluded after a look, and pairs are withdrawn, one of an open block."""
    rng, rule = np.random.default_rng(5), replace(design(), per_pair=3)
    decisions, gone = set(), {ORDER[1], ORDER[8], ORDER[25]}
    for mean in (2.2, 2.5, 2.9, 3.3, 3.5, 4.2):
        drawn = [np.clip(np.round(rng.normal(mean, 1.1, (60, 2))), 1, 5).astype(int).T.tolist() for _ in range(3)]
        found = pd.concat(
            [
                ratings(IN_ORDER, *answers)
                .loc[lambda rows: rows["rater_id"] == "rater-1"]
                .assign(rater_id=f"rater-{i}")
                for i, answers in enumerate(drawn)
            ],
            ignore_index=True,
        )
        group, alone = progress(found, rule), _as_function(found)
        _are_the_same(group, alone)
        assert verdict(found, rule).decision == alone.decision
        early = found[found["pair_id"].isin(ORDER[:20])]
        group, alone = progress(early, rule), _as_function(early)
        _are_the_same(group, alone)
        changed = found[(found["rater_id"] != "rater-2") & ~found["pair_id"].isin(gone)]
        dealt = PairCoverage({**coverage_of(found).raters}, gone)
        later_on = replace(rule, past_looks=tuple(group.taken(PLACE, START, "u")))
        group = progress(changed, later_on, dealt)
        _are_the_same(group, _as_function(changed, alone.frame(), gone))
        decisions.add(group.decision)
    assert decisions == {"accepted", "rejected", "undecided"}


def test_too_few_pairs_for_the_rule_decide_nothing_whatever_they_say() -> None:
    group = progress(frame(20, [5, 4]), design(min_pairs=30))
    assert group.decision == "undecided" and group.opened == 2
    assert progress(frame(40, [5, 4]), design(min_pairs=30)).decision == "accepted"


def test_no_number_is_biased_or_hidden_before_the_first_look() -> None:
    group = progress(frame(20, [5]).iloc[:0])
    assert math.isnan(group.level) and group.unbiased == {}


def test_blocks_may_not_change_once_ratings_came(brief: Study) -> None:
    fix_rules(CampaignRecords(brief))
    rate(brief)
    by_blocks = brief.model_copy(
        update={
            "acceptance": AcceptanceSpec.model_validate(RULE),
            "raters": brief.raters.model_copy(update={"blocks": (8, 16, 24)}),
        }
    )
    with pytest.raises(StudyError, match="raters.blocks none, now 8, 16, 24.* another name: the blocks"):
        fix_rules(CampaignRecords(by_blocks))


def test_withdrawn_pairs_are_passed_over() -> None:
    found = frame(60, [1, 5, 3, 3])
    gone = found[~found["pair_id"].isin(ORDER[:2])]
    group = progress(gone, dealt=PairCoverage(coverage_of(gone).raters, ORDER[:2]))
    assert [look.pairs for look in group.looks if look.question == "quality"] == [18, 38, 58]
    assert group.complete == 3


def test_a_look_that_decided_still_must_on_what_counts_now() -> None:
    decided = progress(frame(20, [5, 4]))
    same = progress(frame(20, [5, 4]), after(decided))
    assert (same.decision, same.level) == ("accepted", decided.level)
    changed = progress(frame(20, [1, 5, 3, 3]), after(decided))
    assert changed.decision == "undecided"
    assert progress(frame(20, [5, 4]), after(changed)).decision == "undecided"  # as it was taken last

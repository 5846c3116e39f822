"""A study's systems side by side: on their common originals, by language, by the direction of its rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from annotation.campaign.rubric import Rubric
from annotation.questions.label import MultiLabelQuestion, SingleLabelQuestion
from annotation.statistics.summaries import Design
from annotation.statistics.systems import SideBySide, side_by_side
from annotation.verdicts.systems import (
    answers,
    best_first,
    compared,
    differences_exhibit,
    other_labels,
    systems_exhibit,
)
from annotation.verdicts.tables import cards
from annotation.verdicts.verdicts import verdicts
from plumbline.records import Pair
from plumbline.study.campaign import AcceptanceSpec
from plumbline.study.subject import ItemNames, PairSubject
from tests.annotation.judgements import START, pair, pair_rows
from tests.scale import scaled

PAIRS = [
    pair(number, system, language).model_copy(update={"original": f"text {number}"})
    for system in ("ours", "theirs")
    for language in ("en", "de")
    for number in range(12 if system == "ours" else 10)
]
GAIN = (1, 1, 0, 2, 1, 0, 1, 1, -1, 1, 3, 3)  # of ours; nobody rated theirs on the last two


def ratings() -> pd.DataFrame:
    rows = [
        {"pair_id": one.pair_id, "transformation": one.transformation, "language": one.language, "rater_id": rater}
        | {"question": "quality", "value": 2 + (one.transformation == "ours") * GAIN[int(one.pair_id[-3:])]}
        for one in PAIRS
        for rater in ("a", "b")
    ]
    return pd.DataFrame(rows)


def test_systems_are_compared_on_common_originals_over_all_and_in_each_language() -> None:
    found = compared(ratings(), PAIRS, Design(("quality",)), PairSubject())
    assert list(found.differences["language"]) == ["", "de", "en"]
    assert list(found.differences["n"]) == [20, 10, 10]
    assert found.differences["difference"].to_numpy() == pytest.approx(sum(GAIN[:10]) / 10)
    assert found.systems["mean"].to_numpy() == pytest.approx([2.7, 2] * 3)
    assert (found.differences["p_holm"] == found.differences["p"]).all()  # one difference in each: Holm's is its own p
    sentence, basis = answers(found)
    assert sentence.startswith("Ours is better than Theirs in quality by 0.70 [") and sentence.endswith("] points")
    assert "20 common originals: 10 each in English and German" in basis or "10 each in German and English" in basis
    hteb = [one.model_copy(update={"transformation": "paraphrasing"}) for one in PAIRS]
    assert compared(ratings(), hteb, Design(("quality",)), PairSubject()).systems.empty


def test_a_language_whose_pairs_have_too_few_raters_is_named_with_the_answer_and_keeps_its_rows() -> None:
    frame, rule = ratings(), AcceptanceSpec(min_raters=2)
    english = frame[frame["language"] == "en"]
    found = compared(english, PAIRS, Design(("quality",), rule=rule), PairSubject())
    assert list(found.systems["language"]) == ["", "", "de", "de", "en", "en"]
    assert list(found.systems["n"]) == [10, 10, 0, 0, 10, 10]
    _, basis = answers(found)
    assert "10 common originals: 10 in English, none in German (no original has 2 raters" in basis
    for exhibit, columns in ((systems_exhibit, ["Mean", "Rank [95%]"]), (differences_exhibit, ["Difference [95%]"])):
        table = exhibit(found).table().frame
        assert set(table[table["Language"] == "German"][columns].to_numpy().ravel()) == {"–"}
    alone = [one for one in PAIRS if one.language == "en"]
    assert len(list(answers(compared(english, alone, Design(("quality",), rule=rule), PairSubject())))) == 1


def test_the_answer_names_the_languages_in_which_it_does_not_hold() -> None:
    even = ratings()["language"].eq("de") & ratings()["transformation"].eq("ours")
    values = ratings()["value"].mask(even, 2 + ratings()["pair_id"].str[-1].astype(int) % 2)
    for frame, lower in ((ratings().assign(value=values), None), (ratings().assign(value=-values), "at_most")):
        rules = {"rules": [{"question": "quality", lower: 2}]} if lower else {}
        design = Design(("quality",), rule=AcceptanceSpec.model_validate(rules))
        for of_language in compared(frame, PAIRS, design, PairSubject()).differences.to_dict("records"):
            assert (of_language["p_holm"] < 0.05) == (of_language["language"] != "de")
        sentence, _ = answers(compared(frame, PAIRS, design, PairSubject()))
        assert "(not told apart from Theirs in German, better than Theirs in English)" in sentence


def test_the_answer_about_many_systems_stays_short() -> None:
    scores = {f"system-{number:02}": 1 + number / 20 for number in range(40)}
    items = outputs(8, [*scores])
    noise = np.random.default_rng(1).normal(0, 1, len(items))
    rows = [
        {"pair_id": one.pair_id, "transformation": one.transformation, "language": "en", "rater_id": "a"}
        | {"question": "quality", "value": scores[one.transformation] + noise[place]}
        for place, one in enumerate(items)
    ]
    (sentence,) = answers(compared(pd.DataFrame(rows), items, Design(("quality",)), PairSubject()))
    assert "of 39 others" in sentence and len(sentence) < 250


def test_the_rules_say_which_end_is_the_better_one_and_blocks_compare_nothing() -> None:
    rule = AcceptanceSpec.model_validate({"rules": [{"question": "quality", "at_most": 2}]})
    found = compared(ratings(), PAIRS, Design(("quality",), rule=rule), PairSubject())
    sentence, _ = answers(found)
    for exhibit in (systems_exhibit, differences_exhibit):
        assert any("fewer points are better" in note for note in exhibit(found).notes)
        usual = exhibit(compared(ratings(), PAIRS, Design(("quality",)), PairSubject()))
        assert not any("fewer points are better" in note for note in usual.notes)
    assert sentence.startswith("Theirs is better than Ours in quality by 0.70 [")
    looks = AcceptanceSpec.model_validate({"rule": "lower_bound", "interval": "pairs"})
    by_blocks = Design(("quality",), rule=looks, blocks=(8, 12))
    assert compared(ratings(), PAIRS, by_blocks, PairSubject()).differences.empty


def test_no_system_is_called_best_where_no_original_has_ratings_for_all() -> None:
    third = [pair(number, "more").model_copy(update={"original": f"text {number}"}) for number in (10, 11)]
    frame = ratings()[lambda rows: rows["language"] == "en"]
    more = frame[frame["transformation"] == "ours"].tail(4).assign(transformation="more")
    more = more.assign(pair_id=more["pair_id"].str.replace("ours", "more"))
    english = [one for one in PAIRS if one.language == "en"]
    found = compared(pd.concat([frame, more]), [*english, *third], Design(("quality",)), PairSubject())
    assert len(found.differences) == 3 and found.systems[["mean", "rank"]].isna().all(axis=None)
    (sentence,) = answers(found)
    assert "best in quality: no original has enough ratings for all" in sentence
    assert systems_exhibit(found).frame.empty and len(differences_exhibit(found).frame) == 3


def unequal(ours_on_few: float) -> SideBySide:
    """All three share four originals, where ours is worse than theirs; on the other 36 it is better by 0.9."""
    gain = {"ours": 1.0, "theirs": 0.1, "more": 0.0}
    rows = [
        {"original": number, "system": name, "rater_id": "a", "question": "quality"}
        | {"value": 2 + (ours_on_few if name == "ours" and number < 4 else gain[name]) + number % 3 / 10}
        for name in gain
        for number in range(40)
        if name != "more" or number < 4
    ]
    found = side_by_side(pd.DataFrame(rows))
    return SideBySide(found.systems.assign(language=""), found.differences.assign(language=""))


def test_ranks_follow_the_differences_where_systems_have_ratings_of_different_originals() -> None:
    """Ours is better than each on the originals of both, although theirs has the higher mean over the four of all."""
    found = unequal(0.05)
    systems = found.systems.set_index("system")
    assert list(systems.index) == ["ours", "theirs", "more"] and list(systems["rank"]) == [1, 2, 3]
    assert systems["mean"]["theirs"] > systems["mean"]["ours"]
    assert ((systems["rank_low"] <= systems["rank"]) & (systems["rank"] <= systems["rank_high"])).all()
    (sentence,) = answers(found)
    row = found.differences.set_index("other").loc["theirs"]
    assert f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]" in sentence
    one = SideBySide(systems.loc[["ours"]].reset_index(), found.differences.head(0))
    assert list(answers(one)) == []  # a question that is asked about one system alone
    assert any("need not follow the means" in note for note in systems_exhibit(found).notes)


def test_no_system_is_called_best_where_each_is_worse_than_another() -> None:
    """Ours is better than theirs over 40 originals, theirs than more and more than ours over four."""
    found = unequal(-1.0)
    assert list(found.systems["rank"]) == [2, 2, 2]
    (sentence,) = answers(found)
    assert "each is worse than another" in sentence


TONES = ("polite", "neutral", "rude")
TONE = Design(("tone",), extra={"tone": SingleLabelQuestion("tone", labels=TONES)})


def labelled(rng: np.random.Generator, shares: Mapping[str, Sequence[float]], originals: int) -> pd.DataFrame:
    """Answers of three raters with one of three labels each, which agree more the better one label fits an output."""
    rows = [
        {"pair_id": f"{system}-en-{number:03d}", "transformation": system, "rater_id": rater, "answer": answer}
        for system, of_labels in shares.items()
        for number in range(originals)
        for rater, answer in enumerate(rng.choice(TONES, 3, p=rng.dirichlet(2 * np.array(of_labels))))
    ]
    return pd.DataFrame(rows).assign(language="en", question="tone")


def outputs(originals: int, systems: Sequence[str]) -> list[Pair]:
    return [
        pair(number, system).model_copy(update={"original": f"text {number}"})
        for system in systems
        for number in range(originals)
    ]


def test_labels_that_no_rule_names_are_compared_by_their_shares_and_corrected_together() -> None:
    shares = {"ours": (0.7, 0.2, 0.1), "theirs": (0.3, 0.4, 0.3), "more": (0.35, 0.35, 0.3)}
    frame, pairs = labelled(np.random.default_rng(3), shares, 60), outputs(60, list(shares))
    found = compared(frame, pairs, TONE, PairSubject())
    p = []
    for row in found.differences.itertuples():
        has_label = frame["answer"] == row.question.removesuffix(" in tone")
        means = has_label.groupby([frame["transformation"], frame["pair_id"].str[-3:]]).mean().unstack(0)
        test = stats.ttest_rel(means[row.system], means[row.other])
        assert (row.low, row.high) == pytest.approx(tuple(test.confidence_interval()), abs=1e-9)
        assert row.difference == pytest.approx((means[row.system] - means[row.other]).mean())
        assert row.better == pytest.approx((means[row.system] - means[row.other] > 1e-9).mean())
        p.append(test.pvalue)
    assert len(p) == 9 and found.differences["p_holm"].to_numpy() == pytest.approx(multipletests(p, method="holm")[1])
    assert found.systems["rank"].isna().all() and set(found.systems["group"]) > {"a"}
    assert found.systems["mean"].groupby(found.systems["system"]).sum().to_numpy() == pytest.approx(1)
    (sentence,) = answers(found)
    assert "polite more often for Ours than for Theirs (share +0." in sentence and "best" not in sentence
    assert "often for Theirs than for More" not in sentence
    assert set(systems_exhibit(found).printed["Rank [95%]"]) == {"–"}
    # A rule's label has its own correction and a rank, whatever else is compared; blocks compare it alone.
    rule = AcceptanceSpec.model_validate({"rules": [{"question": "tone", "label": "polite", "at_least": 0.5}]})
    ruled = compared(frame, pairs, Design(("tone",), rule=rule, extra=TONE.extra), PairSubject())
    of_rule = ruled.differences["question"] == "polite in tone"
    for rows, ps in ((of_rule, p[:3]), (~of_rule, p[3:])):
        assert ruled.differences["p_holm"][rows].to_numpy() == pytest.approx(multipletests(ps, method="holm")[1])
    assert list(ruled.systems["rank"].dropna()) == [1, 2, 3]
    assert next(answers(ruled)).startswith("Ours has the best")
    looks = AcceptanceSpec(rule="lower_bound", interval="pairs")
    by_blocks = Design(("tone",), rule=looks, extra=TONE.extra, blocks=(8,))
    assert list(other_labels(by_blocks)) == []


def test_of_two_labels_one_says_all_and_many_are_not_compared() -> None:
    kinds = [
        SingleLabelQuestion("clear", labels=("yes", "no")),
        MultiLabelQuestion("faults", labels=("words", "sense")),
        SingleLabelQuestion("topic", labels=tuple(map(str, range(7)))),
    ]
    design = Design(tuple(kind.name for kind in kinds), extra={kind.name: kind for kind in kinds})
    assert list(other_labels(design)) == [("clear", "yes"), ("faults", "words"), ("faults", "sense")]
    rule = AcceptanceSpec.model_validate({"rules": [{"question": "clear", "label": "no", "at_most": 0.5}]})
    assert list(other_labels(Design(("clear",), rule=rule, extra=design.extra))) == []


def test_of_equal_systems_any_label_is_told_apart_in_5_percent_at_most() -> None:
    runs, rng, systems = scaled(40, 2000), np.random.default_rng(11), ("ours", "theirs", "more")
    pairs, equal = outputs(24, systems), dict.fromkeys(systems, (0.5, 0.4, 0.1))
    false = [
        (compared(labelled(rng, equal, 24), pairs, TONE, PairSubject()).differences["p_holm"] < 0.05).any()
        for _ in range(runs)
    ]
    assert np.mean(false) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_cards_come_by_language_with_the_best_first_and_show_the_share_that_rejects() -> None:
    found = compared(ratings(), PAIRS, Design(("quality",)), PairSubject())
    rule = AcceptanceSpec.model_validate({"rules": [{"question": "tone", "label": "polite", "at_least": 0.5}]})
    rows = labelled(np.random.default_rng(3), {"theirs": (0.3, 0.4, 0.3), "ours": (0.8, 0.1, 0.1)}, 60)
    design = Design(("tone",), rule=rule, extra=TONE.extra)
    rows = rows.assign(value=math.nan, submitted_at=START, simulated=False, comment="", seconds=9.0)
    judged = verdicts(pair_rows(outputs(60, ("ours", "theirs"))), rows, design, 1)
    (first, second) = sorted(judged, key=lambda verdict: verdict.transformation, reverse=True)
    one_each = [verdict.model_copy(update={"language": code}) for code in ("en", "de") for verdict in (first, second)]
    order = [(verdict.language, verdict.transformation) for verdict in best_first(one_each, found)]
    assert order == [("de", "ours"), ("de", "theirs"), ("en", "ours"), ("en", "theirs")]
    (mean,) = cards([first], Rubric.model_construct(), ItemNames("system", "pair"))[0].means
    assert first.decision == "rejected" and mean.limit == 50 and mean.at is not None and mean.at < 50


def test_p_that_decides_stays_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(ratings(), PAIRS, Design(("quality",)), PairSubject())
    longer = replace(found, differences=found.differences.assign(question="correct in verdict of the answer"))
    monkeypatch.setenv("COLUMNS", "80")
    _, head, *lines = differences_exhibit(longer, ItemNames("system", "pair")).text().splitlines()
    assert "Difference [95%]" in head and "p (Holm)" in head and max(map(len, [head, *lines[:5]])) <= 80
    assert [line.split()[-1] for line in lines if "theirs" in line.lower()] == ["0.0009", "0.0248", "0.0248"]

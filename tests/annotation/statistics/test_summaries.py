"""Which ratings count, what is summed up, and HTEB's Table 2 rebuilt."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta

import krippendorff
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from annotation import alpha, kappa
from annotation.campaign.counting import counting_ratings
from annotation.questions.summary import Summary
from annotation.records import Group
from annotation.statistics.summaries import Design, compact, summarise, table_two
from annotation.verdicts.tables import at_least
from plumbline.scales import Continuous
from plumbline.statistics.agreement import Answers, band, mean_kappa, nominal_alpha
from plumbline.statistics.group_sequential import p_above, repeated_interval
from plumbline.study import ROOT
from plumbline.study.campaign import AcceptanceSpec
from tests.annotation.verdicts.table_two import HTEB, hteb_ratings

DESIGN = Design(("quality",), (1, 2, 3, 4, 5), 3, AcceptanceSpec())
START = datetime(2026, 1, 1, tzinfo=UTC)


def long(
    matrix: list[tuple[int | None, ...]],
    question: str = "quality",
    transformation: str = "paraphrasing",
    language: str = "en",
) -> pd.DataFrame:
    about = {"question": question, "transformation": transformation, "language": language}
    return pd.DataFrame(
        [
            {"pair_id": f"{transformation}-{language}-{row}", "rater_id": f"rater{column}", "value": value,
             "submitted_at": START + timedelta(minutes=column)}
            for row, values in enumerate(matrix)
            for column, value in enumerate(values)
            if value is not None
        ]
    ).assign(**about, status="submitted", excluded="", simulated=False)  # fmt: skip


def summary(ratings: pd.DataFrame, **rule: object) -> Summary:
    design = Design(("quality",), (1, 2, 3, 4, 5), 2, AcceptanceSpec.model_validate(rule))
    return summarise(ratings, "quality", design, 1)


def groups(ratings: pd.DataFrame, design: Design = DESIGN) -> dict[tuple[str, str], Group]:
    return {(g.level, g.name): g for g in table_two(ratings, design, 1)}


def test_summary_is_over_single_ratings() -> None:
    found = summary(long([(5, 4), (3, 2)]))
    assert (found.n_pairs, found.n_raters, found.n_ratings, found.mean) == (2, 2, 4, 3.5)
    # SD of 5, 4, 3, 2 with n - 1: sqrt((2.25 + 0.25 + 0.25 + 2.25)/3) = 1.2909944
    assert found.sd == pytest.approx(1.2909944)
    many = summary(long([(5, 4), (3, 2)] * 10))
    ends = repeated_interval(np.tile([4.5, 2.5], 10), (1, 5), 0.025)
    assert (many.low, many.high) == pytest.approx(ends)
    assert many.probability == pytest.approx(1 - float(p_above(np.tile([4.5, 2.5], 10), 3.0, 1.0)))


@pytest.mark.parametrize(
    ("matrix", "rule", "reason"),
    [
        ([(5, 4)] * 7, {}, "fewer than 8 pairs say too little"),
        ([(5,), (4,)] * 4, {"interval": "pairs_and_raters"}, "too few raters, or too little spread"),
        ([(5, 5)] * 8, {"interval": "pairs_and_raters"}, "too few raters, or too little spread"),
        ([], {}, "no ratings"),
    ],
)
def test_a_mean_without_an_interval_says_why(
    matrix: list[tuple[int | None, ...]], rule: dict[str, str], reason: str
) -> None:
    found = summary(long(matrix) if matrix else long([(5,)]).iloc[:0], **rule)
    assert math.isnan(found.low) and math.isnan(found.high) and math.isnan(found.probability)
    assert math.isnan(found.mean) == (not matrix)
    assert found.interval_reason.startswith(reason)


def test_unknown_raters_are_no_number_no_couples_and_no_sample() -> None:
    ratings = long([(5, 4), (3, 2), (4, 4), (2, 1), (5, 5)])
    unknown = ratings.assign(rater_id=[f"unknown-{number}" for number in range(len(ratings))])
    named, found = summary(compact(ratings)), summary(compact(unknown))
    assert (found.n_raters, found.kappa.reason) == (None, "the raters are unknown")
    assert (found.mean, found.low, found.ac2, found.raw) == (named.mean, named.low, named.ac2, named.raw)
    over = summary(compact(unknown), interval="pairs_and_raters")
    assert math.isnan(over.low) and over.interval_reason == "the raters are unknown" and over.mean == named.mean


def test_table_two_pools_single_ratings_and_not_means() -> None:
    """One paraphrase rated 5, 5 and three backtranslations rated 1, 1: the axis' mean is (10 + 6)/8 = 2, not 3."""
    found = groups(pd.concat([long([(5, 5)]), long([(1, 1)] * 3, transformation="backtranslation")]))
    assert list(found) == [
        ("axis", "lexical_stylistic"),
        ("pool", "paraphrasing"),
        ("pool", "backtranslation"),
        ("overall", "overall"),
    ]
    assert found["axis", "lexical_stylistic"].questions[0].mean == 2.0
    assert found["pool", "paraphrasing"].questions[0].mean == 5.0


def test_hteb_table_two_is_rebuilt_from_its_pools() -> None:
    """Ratings with the means and SDs of the seven pools give those of the axes and of all, but for rounding.

    The pools' numbers are known to half of 0.01, and so are the paper's for the axes: together 0.01.
    """
    design = Design(("quality", "fluency"), (1, 2, 3, 4, 5), 3, AcceptanceSpec())
    found = groups(hteb_ratings(), design)
    for place, printed in HTEB.items():
        rebuilt = [(question.mean, question.sd) for question in found[place].questions]
        assert np.array(rebuilt) == pytest.approx(np.array(printed), abs=0.005 if place[0] == "pool" else 0.01), place


def test_only_the_first_submitted_raters_count() -> None:
    ratings = long([(1, 2, 3, 4, 5)])
    ratings.loc[ratings["rater_id"] == "rater0", "status"] = "draft"
    ratings.loc[ratings["rater_id"] == "rater1", "excluded"] = "same answer all along"
    ratings.loc[ratings["rater_id"] == "rater4", "submitted_at"] = datetime(2025, 1, 1, tzinfo=UTC)
    # rater0 is a draft, rater1 excluded; of the rest rater4 was first, rater2 second, rater3 third
    assert sorted(counting_ratings(ratings, 2)["rater_id"]) == ["rater2", "rater4"]
    assert sorted(counting_ratings(ratings, 2, with_excluded=True)["rater_id"]) == ["rater1", "rater4"]


def test_what_counts_is_what_one_pair_after_another_says() -> None:
    """With and without pairs that more raters answered than may count; a question may lack an answer."""
    draw = np.random.default_rng(1)
    for per_pair in (1, 2, 3, 5) * 5:
        matrix = [tuple(3 if draw.random() < 0.6 else None for _ in range(5)) for _ in range(8)]
        both = pd.concat([long(matrix), long(matrix[:5], question="fluency")], ignore_index=True)
        both = both.sample(frac=0.9, random_state=per_pair)
        minutes = [START + timedelta(minutes=int(minute)) for minute in draw.integers(0, 4, len(both))]
        both = both.assign(submitted_at=minutes, status=draw.choice(["submitted", "draft"], len(both), p=[0.8, 0.2]))
        last: dict[str, dict[str, datetime]] = {}
        for row in both[both["status"] == "submitted"].itertuples():
            known = last.setdefault(row.pair_id, {})
            known[row.rater_id] = max(known.get(row.rater_id, START), row.submitted_at)
        first = {pair: sorted(known, key=lambda one: (known[one], one))[:per_pair] for pair, known in last.items()}
        plain = [row.status == "submitted" and row.rater_id in first[row.pair_id] for row in both.itertuples()]
        assert counting_ratings(both, per_pair).equals(both[plain])


def test_skewed_ratings_of_nobody_are_called_nothing_good() -> None:
    """Keys pressed at random between 4 and 5: AC2 is high, alpha is not, and the word is that of the lower end."""
    keys = np.random.default_rng(3).integers(4, 6, (40, 3))
    one = table_two(long([tuple(map(int, row)) for row in keys]), DESIGN, 1)[-1].questions[0]
    assert one.ac2.low > 0.8 and one.alpha.low < 0
    assert at_least(one) == "poor"
    same = table_two(long([(5, 5, 5)] * 20), DESIGN, 1)[-1].questions[0]
    assert at_least(same) == "–"  # nothing varies: agreement cannot be told, for better or worse


PEOPLE = ROOT.parent / "shared" / "data" / "people"
present = pytest.mark.skipif(not PEOPLE.exists(), reason="the real ratings are not beside the checkout")


def qags(*files: str) -> pd.DataFrame:
    """Three answers to each sentence; workers' ids are per file, and one may answer a sentence twice."""
    rows, item = [], 0
    for file in files:
        for line in (PEOPLE / "qags" / f"mturk_{file}.jsonl").read_text(encoding="utf-8").splitlines():
            for sentence in json.loads(line)["summary_sentences"]:
                item += 1
                rows += [(item, slot, answer["response"] == "yes") for slot, answer in enumerate(sentence["responses"])]
    return pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]).astype(int)


@pytest.mark.data
@present
@pytest.mark.parametrize(
    ("files", "value", "within"),
    [(("cnndm", "xsum"), 0.4878830126174004, 1e-12), (("cnndm",), 0.5135, 5e-5), (("xsum",), 0.3421, 5e-5)],
)
def test_alpha_of_answers_on_summaries(files: tuple[str, ...], value: float, within: float) -> None:
    ratings = qags(*files)
    estimate = nominal_alpha(Answers.of(ratings, (0, 1)), np.random.default_rng(1))
    assert estimate.value == pytest.approx(value, abs=within)
    assert estimate.low < value < estimate.high


@pytest.mark.data
@present
def test_alphas_of_recipes() -> None:
    printed = {"grammar": 0.4151, "fluency": 0.4324, "verbosity": 0.3991, "structure": 0.3986, "success": 0.3627,
               "overall": 0.4351}  # fmt: skip
    recipes = json.loads((PEOPLE / "recipe" / "meta_evaluation_recipes.json").read_text(encoding="utf-8"))["instances"]
    for question, value in printed.items():
        scores = [recipe["annotations"][question]["individual_human_scores"] for recipe in recipes]
        rows = [(item, rater, score) for item, row in enumerate(scores) for rater, score in enumerate(row)]
        ratings = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]).dropna()
        estimate = alpha(ratings, scale=range(1, 7))
        assert estimate.value == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("step", [1.0, 0.01])
def test_alpha_and_kappa_of_a_continuous_scale_are_those_of_other_implementations(step: float) -> None:
    rng = np.random.default_rng(3)
    felt = 50 + rng.normal(0, 20, 40)[:, None] + rng.normal(0, 12, (40, 4))
    table: NDArray[np.float64] = np.clip(np.round(felt / step) * step, 0, 100)
    table[rng.random(table.shape) < 0.1] = np.nan
    rows = [(item, rater, v) for item, row in enumerate(table) for rater, v in enumerate(row) if not np.isnan(v)]
    ratings, scale = pd.DataFrame(rows, columns=["pair_id", "rater_id", "value"]), Continuous((0, 100))
    estimate = alpha(ratings, scale)
    theirs = krippendorff.alpha(reliability_data=table.T, level_of_measurement="interval")
    assert estimate.value == pytest.approx(theirs, abs=1e-9)
    assert estimate.low < estimate.value < estimate.high
    kappas, weights = [], []
    for one in range(4):
        for two in range(one + 1, 4):
            both = table[~np.isnan(table[:, [one, two]]).any(axis=1)][:, [one, two]]
            by_chance = np.subtract.outer(both[:, 0], both[:, 1]) ** 2
            kappas.append(1 - ((both[:, 0] - both[:, 1]) ** 2).mean() / by_chance.mean())
            weights.append(len(both))
    assert kappa(ratings, scale).value == pytest.approx(np.average(kappas, weights=weights), abs=1e-9)
    if step == 1:  # places of all whole points are at the distances of their values
        assert mean_kappa(Answers.of(ratings, range(101))).value == pytest.approx(kappa(ratings, scale).value, abs=1e-9)


def test_table_two_has_a_row_for_each_language_where_there_are_several() -> None:
    found = groups(pd.concat([long([(5, 5)]), long([(1, 1), (2, 2)], language="de")]))
    assert [(name, found["language", name].questions[0].mean) for name in ("de", "en")] == [("de", 1.5), ("en", 5.0)]


def test_table_two_rates_the_two_translations_as_one_pool() -> None:
    both = long([(5, 5)], transformation="translation"), long([(3, 3)], transformation="cross_translation")
    found = groups(pd.concat(both))
    pool = found["pool", "translation"]
    assert pool.transformations == ("translation", "cross_translation")
    assert pool.questions[0].mean == 4.0


def test_a_groups_numbers_are_those_of_its_ratings_alone() -> None:
    """Groups are computed side by side, and equal ones once."""
    ratings = compact(hteb_ratings())
    design = Design(("quality", "fluency"))
    found = table_two(ratings, design, 1)
    assert [group.level for group in found].count("pool") == 7 and found[-1].level == "overall"
    for group in found:
        own = ratings[ratings["transformation"].isin(group.transformations)]
        assert group.questions == tuple(summarise(own, name, design, 1) for name in design.questions)


@pytest.mark.parametrize(
    ("value", "word"), [(0.81, "excellent"), (0.8, "substantial"), (0.41, "moderate"), (0.4, "fair"), (-0.3, "poor")]
)
def test_bands_begin_above_their_limit(value: float, word: str) -> None:
    assert band(value) == word
    assert band(math.nan) == "–"

"""Systems by preference: an independent computation, real rankings, simulated error rates, and what has no score."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

from annotation import bradley_terry
from annotation.statistics.systems import Over
from tests.annotation.imports.test_real_people import NUMBERS
from tests.scale import scaled


def apty() -> pd.DataFrame:
    """Real rankings of four paraphrases a text, two by two; equal ranks are ties."""
    ranks = pd.read_csv(NUMBERS / "apty.csv")
    both = ranks.merge(ranks, on=[name for name in ("task", "rater") if name in ranks], suffixes=("", "_other"))
    both = both[both["candidate"] < both["candidate_other"]]
    better = np.sign(both["rank_other"] - both["rank"])
    preferred = np.select([better > 0, better < 0], [both["candidate"], both["candidate_other"]], "")
    return pd.DataFrame(
        {"system": both["candidate"], "opponent": both["candidate_other"], "preferred": preferred}
        | {"original": both["task"], "rater_id": both.get("rater", "a"), "question": "rank"}
    ).astype(str)


def simulated(
    rng: np.random.Generator,
    scores: tuple[float, ...],
    originals: int,
    raters: int = 3,
    *,
    spread: float = 0.6,
    lean: float = 0.3,
) -> pd.DataFrame:
    """Choices by three raters: outputs vary by original, raters lean to a system, near choices are ties."""
    value = np.array(scores)[:, None, None] + rng.normal(0, spread, (len(scores), originals, 1))
    value = value + rng.normal(0, lean, (len(scores), 1, raters)) + rng.gumbel(size=(len(scores), originals, raters))
    frames = []
    for one, two in itertools.combinations(range(len(scores)), 2):
        difference = value[one] - value[two]
        original, rater = (axis.ravel() for axis in np.indices(difference.shape))
        preferred = np.select([difference > 0.4, difference < -0.4], [str(one), str(two)], "").ravel()
        frames.append(pd.DataFrame({"original": original, "rater_id": rater, "preferred": preferred}))
        frames[-1] = frames[-1].assign(system=str(one), opponent=str(two), question="preference")
    return pd.concat(frames, ignore_index=True)


def fitted(choices: pd.DataFrame, clusters: str = "original") -> tuple[pd.Series, pd.Series]:
    """Return scores by a logistic regression without intercept, and their variances over clusters (sandwich)."""
    names = sorted({*choices["system"], *choices["opponent"]})
    design = pd.DataFrame({name: (choices["system"] == name) * 1.0 - (choices["opponent"] == name) for name in names})
    won = np.select([choices["preferred"] == choices["system"], choices["preferred"] == ""], [1.0, 0.5], 0.0)
    groups = pd.factorize(choices[clusters])[0]
    model = sm.GLM(won, design[names[1:]], family=sm.families.Binomial())
    found = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, tol=1e-12)
    centred = np.vstack([np.zeros(len(names) - 1), np.eye(len(names) - 1)])
    centred = centred - centred.mean(axis=0)
    variances = np.diag(centred @ found.cov_params().to_numpy() @ centred.T)
    variances = variances * (len(won) - len(names) + 1) / (len(won) - 1)  # without statsmodels' correction for choices
    return pd.Series(centred @ found.params.to_numpy(), names), pd.Series(variances, names)


def test_scores_counts_and_tests_are_those_of_an_independent_computation_on_real_rankings() -> None:
    choices = apty()
    found = bradley_terry(choices)
    scores, variances = fitted(choices)
    systems = found.systems.set_index("system")
    assert list(systems.index) == list(scores.sort_values(ascending=False).index)
    assert systems["score"].to_numpy() == pytest.approx(scores[systems.index], abs=1e-6)
    reach = stats.t.ppf(0.975, choices["original"].nunique() - 1) * np.sqrt(variances)
    assert systems["low"].to_numpy() == pytest.approx((scores - reach)[systems.index], abs=1e-6)
    assert systems["high"].to_numpy() == pytest.approx((scores + reach)[systems.index], abs=1e-6)
    p = []
    for row in found.differences.itertuples():
        of_both = choices[choices[["system", "opponent"]].isin([row.system, row.other]).all(axis=1)]
        for_first, for_other = (of_both["preferred"] == name for name in (row.system, row.other))
        assert (row.wins, row.losses) == (for_first.sum(), for_other.sum())
        assert row.ties == len(of_both) - row.wins - row.losses and row.equal == pytest.approx(row.ties / len(of_both))
        gain = (for_first.astype(int) - for_other).groupby(of_both["original"]).mean()
        test = stats.ttest_1samp(gain, 0)
        assert (row.difference, row.n) == (pytest.approx(gain.mean()), len(gain))
        assert (row.low, row.high) == pytest.approx(tuple(test.confidence_interval()), abs=1e-9)
        p.append(test.pvalue)
    assert found.differences["p"].to_numpy() == pytest.approx(p, abs=1e-9)
    assert found.differences["p_holm"].to_numpy() == pytest.approx(multipletests(p, method="holm")[1], abs=1e-9)


def test_numbers_do_not_depend_on_the_order_of_rows_and_sides() -> None:
    choices = simulated(np.random.default_rng(4), (0.0, 0.6, 0.3), 20)
    turned = choices.sample(frac=1, random_state=1).rename(columns={"system": "opponent", "opponent": "system"})
    first, second = map(bradley_terry, (choices, turned))
    columns = ["system", "wins", "ties", "losses", "rank", "group"]
    assert first.systems[columns].equals(second.systems[columns])
    for column in ("score", "low", "high"):
        assert first.systems[column].to_numpy() == pytest.approx(second.systems[column], abs=1e-6)
    assert first.differences["p"].to_numpy() == pytest.approx(second.differences["p"])


def test_raters_as_a_sample_widen_what_they_lean_to() -> None:
    choices = simulated(np.random.default_rng(6), (0.0, 0.4), 30, lean=1.0)
    alone, both = (bradley_terry(choices, over=over) for over in ("pairs", "pairs_and_raters"))
    for first, second in ((alone.systems, both.systems), (alone.differences, both.differences)):
        assert second["high"].iloc[0] - second["low"].iloc[0] > 1.3 * (first["high"].iloc[0] - first["low"].iloc[0])
    # Both variances are added, and so are their t quantiles, weighted by them.
    (scores, of_originals), (_, of_raters) = (fitted(choices, clusters) for clusters in ("original", "rater_id"))
    weighted = of_originals * stats.t.ppf(0.975, 29) + of_raters * stats.t.ppf(0.975, 2)
    reach = weighted / np.sqrt(of_originals + of_raters)
    systems = both.systems.set_index("system")
    assert systems["high"].to_numpy() == pytest.approx((scores + reach)[systems.index], abs=1e-3)
    one = bradley_terry(choices[choices["rater_id"] == 0], over="pairs_and_raters")
    assert one.systems["low"].isna().all() and one.systems["reason"].str.contains("too few raters").all()
    assert "too few raters" in one.differences["reason"].iloc[0]


def choice(system: str, other: str, preferred: str, originals: int) -> pd.DataFrame:
    frame = pd.DataFrame({"original": range(originals), "rater_id": "ada", "question": "preference"})
    return frame.assign(system=system, opponent=other, preferred=preferred)


def test_what_has_no_score_says_why() -> None:
    always = bradley_terry(choice("A", "B", "A", 12))
    why = "nobody preferred another to A, or found it equal, so scores have no bounds"
    assert list(always.systems["system"]) == ["A", "B"] and set(always.systems["reason"]) == {why}
    assert always.systems[["score", "low", "high"]].isna().all(axis=None) and list(always.systems["rank"]) == [1, 2]
    row = always.differences.iloc[0]  # twelve equal signs
    assert (row["difference"], row["p"], row["wins"]) == (1, 2.0**-11, 12) and math.isnan(row["low"])
    assert list(always.systems["group"]) == ["a", "b"]
    apart = bradley_terry(pd.concat([choice("A", "B", "", 8), choice("C", "D", "C", 8)]))
    assert apart.systems["reason"].str.startswith("not all systems were compared").all()
    assert (apart.differences["reason"] == "nobody chose between the two").sum() == 4
    assert apart.systems["rank"].isna().all()
    ties = bradley_terry(choice("A", "B", "", 12))
    assert (ties.systems["score"] == 0).all() and (ties.systems["rank"] == 1).all() and ties.systems["low"].isna().all()
    assert ties.differences["equal"].iloc[0] == 1 and "differ on 0 originals" in ties.differences["reason"].iloc[0]
    single = bradley_terry(pd.concat([choice("A", "B", name, 1) for name in ("A", "A", "B")]))
    assert single.systems["score"].to_numpy() == pytest.approx([math.log(2) / 2, -math.log(2) / 2], abs=1e-6)
    assert single.systems["low"].isna().all() and "differ on 1 originals" in single.differences["reason"].iloc[0]
    chain = bradley_terry(pd.concat([choice("A", "B", name, 9) for name in ("A", "B")]
                                    + [choice("B", "C", name, 9) for name in ("B", "C", "")]))  # fmt: skip
    assert chain.systems["score"].notna().all() and chain.systems["group"].eq("a").all()
    couples = (("A", "B"), ("B", "C"))
    steps = pd.concat([choice(*both, both[side], n) for both in couples for side, n in ((0, 9), (1, 3))])
    assert list(bradley_terry(steps).systems["rank"]) == [1, 2, 3]  # nobody chose between A and C: by the score
    with pytest.raises(ValueError, match="'C' is preferred, but is neither of the two"):
        bradley_terry(choice("A", "B", "C", 2))
    with pytest.raises(ValueError, match="'A' is compared with itself"):
        bradley_terry(choice("A", "A", "A", 2))


@pytest.mark.parametrize(("over", "lean"), [("pairs", 0.0), ("pairs_and_raters", 0.6)])
def test_intervals_cover_and_equal_systems_are_rarely_told_apart(over: Over, lean: float) -> None:
    """Three raters, outputs that vary by original, ties, 24 originals; two systems are equal, one is better."""
    runs, rng, scores = scaled(40, 2000), np.random.default_rng(21), (0.0, 0.0, 0.6)
    margin = 3 * math.sqrt(0.05 * 0.95 / runs)
    many = simulated(np.random.default_rng(2), scores, 20_000, 1, spread=math.hypot(0.6, lean), lean=0.0)
    true, covered, false = fitted(many)[0]["2"], 0, 0
    for _ in range(runs):
        found = bradley_terry(simulated(rng, scores, 24, lean=lean), over=over)
        row = found.systems.set_index("system").loc["2"]
        covered += row["low"] <= true <= row["high"]
        equal = found.differences[~found.differences[["system", "other"]].isin(["2"]).any(axis=1)]
        false += equal["p"].iloc[0] < 0.05
    assert covered / runs > 0.95 - margin
    assert false / runs < 0.05 + margin

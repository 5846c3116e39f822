"""What a judge would save, before anyone is paid: the arithmetic, and what the command says."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from annotation.judges.powered import savings, savings_text
from annotation.options import correlation
from annotation.planning import Pricing
from annotation.planning_command import own_size, sizes_asked
from annotation.rubric import load_rubric
from annotation.statistics.summaries import Design
from plumbline.study import ROOT, Study, load_study


@pytest.fixture
def variant() -> Callable[..., Study]:
    """The demo study with other settings."""
    study = load_study(ROOT / "studies" / "demo.yaml")

    def changed(**settings: object) -> Study:
        return study.model_copy(update=settings)

    return changed


def saved(study: Study, correlation: float, sizes: Sequence[tuple[int, int]]) -> pd.DataFrame:
    rubric = load_rubric(study)
    return savings(Pricing.of(study, rubric, Design.of(study, rubric)), study.judge_pool, correlation, sizes)


def test_what_a_judge_would_save(variant: Callable[..., Study]) -> None:
    """Of 100 pairs and 1,000 judged with rho 0.6: worth 128; the width of 100 with 79.

    k rho^2 = 0.9375 * 0.36 = 0.3375, and 100 (97 / 99) / (1.1 (1 - 0.3375 * 0.9)) = 127.9. Without a correlation
    nothing is saved, and no fewer than half of the pairs are rated.
    """
    study = variant(judge_pool=1000)
    found = saved(study, 0.6, [(100, 3)]).iloc[0]
    assert found["worth"] == pytest.approx(127.93, abs=0.01) and found["needed"] == 79
    assert 0.15 < found["share"] < 0.22 and found["dollars_saved"] > 0
    assert found["ratings_saved"] == round(found["share"] * found["ratings"])
    none = saved(study, 0.0, [(100, 3), (20, 3)])
    assert none["worth"].tolist() == pytest.approx([89.07, 20], abs=0.01)
    assert none[["needed", "ratings_saved"]].to_numpy().tolist() == [[100, 0], [20, 0]]
    assert saved(study, 0.95, [(100, 3)]).iloc[0]["needed"] == 50
    everything = saved(variant(judge_pool="all"), 0.6, [(100, 3)]).iloc[0]
    assert math.isinf(everything["judged"]) and everything["worth"] == pytest.approx(134.45, abs=0.01)
    with pytest.raises(ValueError, match="a correlation must be from -1 to 1, not 60"):
        saved(study, 60, [(100, 3)])


def test_the_plan_says_it_in_words(variant: Callable[..., Study]) -> None:
    study = variant(judge_pool=1000)
    options = argparse.Namespace(pairs=[100], raters=[3])
    text = savings_text(
        saved(study, 0.6, sizes_asked(own_size(study.raters, study.sample.pairs), options)), 0.6, study.acceptance
    )
    assert "With a judge whose scores correlate 0.6 with a pair's mean rating:" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("100"))
    assert row[:5] == ["100", "3", "1,000", "128", "79"]
    assert "at least 30" in text and "uses the mean and no interval" in text and "only ratings can" in text
    assert correlation("0.6") == 0.6
    with pytest.raises(argparse.ArgumentTypeError, match=r"'6' is not a correlation \(-1 to 1\)"):
        correlation("6")

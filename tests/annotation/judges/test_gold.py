"""Which judge and which paraphraser: PTEB's tables, by hand, and the command on pairs that have gold scores."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from annotation.judges.gold import (
    RECORDED,
    GoldPair,
    agreement_with_gold,
    error_by_gold,
    gold_pairs,
    gold_text,
    judge_gold,
    mapped,
    scores_with_gold,
    spearman_by_dataset,
    spearman_by_words,
    with_averages,
)
from annotation.judges.run import named
from annotation.judges.selection import compared, cross_checked
from plumbline.errors import DataError, StudyError
from plumbline.study import ROOT, Study, load_study

# PTEB (EACL 2026), Table 2, in percent: gemma3-27b, gpt-oss-20b, qwen3-32b; it prints 80.89 for the last average.
TABLE_TWO = {
    "BIOSSES": (88.53, 83.75, 80.94),
    "SICK-R": (76.61, 70.84, 72.21),
    "STS12": (75.13, 66.95, 70.42),
    "STS13": (89.12, 87.07, 87.60),
    "STS14": (83.82, 81.95, 81.55),
    "STS15": (89.87, 87.26, 86.70),
    "STS17": (91.42, 88.99, 87.53),
    "STS22": (66.87, 68.82, 70.59),
    "STSB": (87.26, 84.50, 85.67),
}


def judged(scores: dict[str, list[float]], dataset: list[str], **columns: Any) -> pd.DataFrame:
    """Each judge's scores of the same pairs, a to z; NaN is failed."""
    ids = list("abcdefghijklmnop")
    frames = [
        pd.DataFrame({"judge": judge, "pair_id": ids[: len(own)], "dataset": dataset, "score": own})
        for judge, own in scores.items()
    ]
    found = pd.concat(frames, ignore_index=True).assign(question="similarity", **columns)
    return found.assign(status=np.where(found["score"].isna(), "failed", "ok"))


def test_table_twos_averages_are_plain_means() -> None:
    rows = [
        (dataset, judge, 10, 0, value)
        for dataset, values in TABLE_TWO.items()
        for judge, value in zip(("gemma", "gpt-oss", "qwen"), values, strict=True)
    ]
    table = with_averages(pd.DataFrame(rows, columns=["dataset", "judge", "n", "failed", "spearman"]))
    averages = table[table["dataset"] == "average"].set_index("judge")
    found = averages.loc[["gemma", "gpt-oss", "qwen"], "spearman"].tolist()
    assert found == pytest.approx([83.18, 80.02, 80.36], abs=0.006)  # of printed, so rounded, values
    assert (averages["n"] == 90).all()
    lacking: Any = with_averages(pd.DataFrame(rows[:-1], columns=table.columns)).set_index(["dataset", "judge"])
    assert math.isnan(lacking.loc[("average", "qwen"), "spearman"])


def test_spearman_by_dataset() -> None:
    """Of 1 2 3 4 in the order 2 1 3 4: 1 - 6 * 2 / (4 * 15) = 0.8. A failed judgement leaves the others."""
    gold = pd.DataFrame({"pair_id": list("abcdefgh"), "gold": [1, 2, 3, 4, 1, 2, 3, 4]})
    sets = ["one"] * 4 + ["two"] * 4
    frame = judged({"big": [2, 1, 3, 4, 1, 2, 3, 4], "small": [4, 3, 2, 1, 1, math.nan, 3, 4]}, sets)
    table: Any = spearman_by_dataset(scores_with_gold(frame, gold)).set_index(["dataset", "judge"])
    big, small = {"one": 0.8, "two": 1.0, "average": 0.9}, {"one": -1.0, "two": 1.0, "average": 0.0}
    for judge, expected in (("big", big), ("small", small)):
        assert table["spearman"].xs(judge, level="judge").to_dict() == pytest.approx(expected)
    assert table.loc[("two", "small"), ["n", "failed"]].tolist() == [3, 1]


def test_errors_are_on_one_scale() -> None:
    """SICK-R's 1 to 5 on 0 to 5: 3 is 2.5, which counts with the 3s; beside 3 and 4 the errors are 0.5 and 1.5."""
    assert mapped(np.array([1.0, 3.0, 5.0]), (1, 5), (0, 5)).tolist() == [0.0, 2.5, 5.0]
    gold = pd.DataFrame({"pair_id": list("abcd"), "gold": [3.0, 3.0, 1.0, 4.0]})
    beside = scores_with_gold(judged({"j": [3.0, 4.0, 0.5, 4.0]}, ["sick", "sick", "sick", "stsb"]), gold)
    table: Any = error_by_gold(beside, {"sick": (1, 5), "stsb": (0, 5)})
    assert table[["gold", "n", "mean_absolute_error", "bias"]].to_numpy().tolist() == [
        [0, 1, 0.5, 0.5],
        [3, 2, 1.0, 1.0],
        [4, 1, 0.0, 0.0],
    ]
    with pytest.raises(ValueError, match="4 is outside the scale from 0 to 3"):
        error_by_gold(beside, {"sick": (0, 5), "stsb": (0, 3)})
    with pytest.raises(ValueError, match="data set stsb has no scale"):
        error_by_gold(beside, {"sick": (0, 5)})


def test_spearman_by_length() -> None:
    """Pairs of (4 + 5) / 2 words are among the shortest, of (4 + 6) / 2 in the next bin; two are too few for a rho."""
    words = {"a": (4, 5), "b": (4, 4), "c": (1, 2), "d": (4, 6), "e": (9, 9)}
    gold = pd.DataFrame(
        [(one, i, "w " * n, "w " * m) for i, (one, (n, m)) in enumerate(words.items())],
        columns=["pair_id", "gold", "sentence1", "sentence2"],
    )
    beside = scores_with_gold(judged({"x": [0, 1, 2, 3, 4], "y": [1, 0, 2, 3, 4]}, ["one"] * 5), gold)
    table: Any = spearman_by_words(beside, gold, fewest=3).set_index(["dataset", "words"])
    assert table.loc["one", "n"].to_dict() == {"0-4": 3, "5-9": 2, "10-14": 0, "15-19": 0, "20+": 0}
    assert table.loc[("one", "0-4"), "spearman"] == pytest.approx((1 + 0.5) / 2)  # y has 1 - 6 * 2 / (3 * 8)
    assert math.isnan(table.loc[("one", "5-9"), "spearman"])
    assert table.loc[("average", "0-4"), "spearman"] == pytest.approx(0.75)


def test_paraphrasers_beside_each_other() -> None:
    frame = judged({"j": [4.0, 5.0, 3.0, math.nan]}, ["one"] * 4, generator=["x", "x", "y", "y"])
    texts = pd.DataFrame(
        {
            "pair_id": list("abcd"),
            "generator": ["x", "x", "y", "y"],
            "original": ["a b c d"] * 4,
            "transformed": ["a b c d", "a b x y", "e f g h", "e f g h"],
            "seconds": [0.2, 0.4, 1.0, 2.0],
        }
    )
    found: Any = compared(frame, texts)
    assert found.to_numpy().tolist() == [
        ["j", "x", 2, 0, 4.5, 0.25, pytest.approx(0.3)],
        ["j", "y", 1, 1, 3.0, 1.0, 1.5],
    ]


def test_other_judges_confirm_on_the_outputs_that_all_judged() -> None:
    """Of 1, 2, 6 the means of two are 1, 1.5, 2, 3.5, 4, 6: their median is 2.75, the mean 3."""
    frame = judged({"x": [1.0, 2.0, 6.0, 5.0], "y": [2.0, 3.0, 7.0, math.nan]}, ["one", "one", "two", "two"])
    found = cross_checked(frame, seed=1, resamples=50).set_index("judge")
    assert found["centre"].to_dict() == {"x": 2.75, "y": 3.75} and found["mean"].to_dict() == {"x": 3.0, "y": 4.0}
    assert (found["left_out"] == 1).all() and (found["low"] < found["centre"]).all()
    by_dataset = cross_checked(frame, seed=1, unit=("dataset",), resamples=50).set_index("judge")
    assert by_dataset["mean"].to_dict() == {"x": 3.75, "y": 4.75}  # (1.5 + 6) / 2


STS = {"name": "sts", "task": "sts", "language": "en"}


def test_gold_scores_of_another_scale_are_refused_or_mapped(variant: Callable[..., Study], tmp_path: Path) -> None:
    (tmp_path / "sts.csv").write_text("sentence1,sentence2,score\na b,c d,1\ne f,g h,7\n")
    file = {**STS, "path": str(tmp_path / "sts.csv")}
    with pytest.raises(DataError, match="item 1: the gold score 7 is outside the scale 0 to 5; set .* gold_scale"):
        pairs_of(variant(datasets=[file]))
    pairs = pairs_of(variant(datasets=[{**file, "gold_scale": [1, 7]}]))
    assert [(pair.gold, pair.gold_lowest, pair.gold_highest) for pair in pairs] == [(1, 1, 7), (7, 1, 7)]
    with pytest.raises(StudyError, match="gold_scale: must be the lowest score"):
        variant(datasets=[{**file, "gold_scale": [5, 1]}])


def pairs_of(study: Study) -> list[GoldPair]:
    return gold_pairs(study.datasets, study.file)


def test_the_sample_studys_judges_are_held_against_its_gold_scores(demo: Study) -> None:
    done = judge_gold(demo)
    assert [one.counts["ok"] for one in done] == [24, 24]
    assert [one.counts["reused"] for one in judge_gold(demo)] == [24, 24]
    text = gold_text(agreement_with_gold(demo)[0], recorded=True)
    assert re.search(r"^sample_sts +24 +88\.61 +88\.39$", text, re.MULTILINE) and RECORDED in text
    with pytest.raises(StudyError, match="no judge 'share'; did you mean 'shares'"):
        judge_gold(demo, ["share"])


def test_ptebs_study_has_its_judges_and_the_scales_of_its_data() -> None:
    study = load_study(ROOT / "studies" / "pteb_judges.yaml")
    assert {"gemma3-27b", "gpt-oss-20b", "qwen3-32b"} <= {spec.name for spec in named(study.judges, (), study.file)}
    assert {spec.prompt for spec in study.judges} == {"pteb_paraphrase"}
    scales = {spec.name: spec.gold_scale for spec in study.datasets if spec.gold_scale != (0, 5)}
    assert scales == {"BIOSSES": (0, 4), "SICK-R": (1, 5), "STS22": (1, 4)}

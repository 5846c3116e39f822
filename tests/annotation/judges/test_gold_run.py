"""Judges rate pairs that have gold scores, and the command says how far they agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from annotation.judges.gold import RECORDED, GoldPair, agreement_with_gold, gold_pairs, gold_text, judge_gold
from annotation.judges.run import named
from plumbline.errors import DataError, StudyError
from plumbline.study import ROOT, Study, load_study

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

"""A transformation that must not keep the meaning, and rules that say so."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.campaign.rubric import load_rubric
from annotation.sampling.sample import draw_sample
from annotation.statistics.summaries import Design
from annotation.verdicts.verdicts import verdicts
from generation.production import generate
from plumbline.records import Pair
from plumbline.study import ROOT, Study, load_study
from tests.annotation.judgements import pair_rows


def rated(study: Study, pairs: list[Pair], quality: dict[str, int]) -> pd.DataFrame:
    """Three raters' ratings of all pairs: this quality by transformation, and a fluency of 4."""
    return pd.DataFrame(
        [
            {"pair_id": pair.pair_id, "transformation": pair.transformation, "language": pair.language}
            | {"rater_id": rater, "question": question, "value": value, "status": "submitted", "excluded": ""}
            | {"submitted_at": pd.Timestamp("2026-03-01", tz="UTC"), "simulated": True}
            for pair in pairs
            for rater in ("a", "b", "c")
            for question, value in (("quality", quality[pair.transformation]), ("fluency", 4))
        ]
    )


def test_negation_is_accepted_where_the_meaning_is_gone_and_typos_where_it_is_kept(tmp_path: Path) -> None:
    study = load_study(ROOT / "studies" / "negation.yaml", tmp_path)
    generate(study, allow_code=True)
    pairs = draw_sample(study)
    design = Design.of(study, load_rubric(study))

    def decisions(**quality: int) -> dict[str, str]:
        counting = counting_ratings(rated(study, pairs, quality), 3)
        return {one.transformation: one.decision for one in verdicts(pair_rows(pairs), counting, design, None)}

    assert decisions(typos=5, negation=1) == {"typos": "accepted", "negation": "accepted"}
    assert decisions(typos=5, negation=4) == {"typos": "accepted", "negation": "rejected"}
    assert decisions(typos=1, negation=2) == {"typos": "rejected", "negation": "accepted"}

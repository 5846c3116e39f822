"""What the command prints."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from evaluation.records import EvaluationRecords
from evaluation.report.paper_tables import report
from plumbline.records import DriftRecord, Rating

from .conftest import write_outputs, write_pairs, write_study
from .made_scores import score_row


def test_drift_is_set_against_the_first_question_of_the_studys_rubric(tmp_path: Path) -> None:
    study = write_study(tmp_path, rubric="pteb")  # it asks for similarity, and not for quality
    write_outputs(study)
    pairs = [pair for pair in write_pairs(study) if pair.transformation == "paraphrasing"]
    common = {"rater_id": "r", "question": "similarity", "status": "submitted", "source": "argilla", "simulated": False}
    ratings, drift = [], []
    for number, pair in enumerate(pairs):
        where = {"pair_id": pair.pair_id, "transformation": pair.transformation}
        given = Rating(**where, language="en", value=number, submitted_at=datetime.now(UTC), **common)
        ratings.append(given.model_dump())
        drift.append(DriftRecord(pair_id=pair.pair_id, model="one", drift=0.5 - 0.1 * number, unit_id="").model_dump())
        drift.append(DriftRecord(pair_id=pair.pair_id, model="two", drift=0.5, unit_id="").model_dump())
    frames = (pd.DataFrame([pair.model_dump() for pair in pairs]), pd.DataFrame(ratings), pd.DataFrame(drift))
    scores = pd.DataFrame([score_row("one", "sts", "original", 0.8)])
    records = EvaluationRecords(study).changed(scores=scores, sample=frames[0], sample_ratings=frames[1])
    said = report(records.changed(drift=frames[2]), [])
    assert "its mean similarity" in said
    assert "Paraphrasing    one        -1.00      5" in said  # the further it moved, the less similar it is
    assert "Paraphrasing    two            –      5" in said  # it moves all pairs alike: there is no correlation

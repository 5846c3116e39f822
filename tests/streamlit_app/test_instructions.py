"""The page of wordings: there where prompts were scored, as the report has it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaluation.instructions.scores import SCORES, PromptScore
from plumbline.store import write_table
from tests.evaluation.instructions.made import long
from tests.streamlit_app.conftest import DEMO, Open
from tests.streamlit_app.test_app import assert_calm, specs, texts


def test_the_page_shows_the_reports_parts_and_says_what_is_simulated(page: Open, exports: Path) -> None:
    rng = np.random.default_rng(1)
    scores = rng.random((3, 5, 6)) / 2 + 0.3
    frame = long(scores, scores.mean(axis=-1), label="acceptable", simulated=True)
    frame["text"] = frame["text"].replace("Word 0:", "<b>0</b>:")
    write_table(exports / "demo" / SCORES, frame, PromptScore)
    shown = page("--study", DEMO, "--exports", exports, view="instructions")
    assert_calm(shown)
    headings = [heading.value for heading in shown.header]
    assert headings[:3] == ["In short", "The recommended score", "Where defaults lie"] and headings[-1] == "Coverage"
    assert "Over 6 wordings a task, the scores of 3 models on 5 tasks vary by" in texts(shown)
    assert any("SIMULATED LABELS" in warning.value for warning in shown.warning)
    assert len(specs(shown)) == 5
    best = next(table.value for table in shown.dataframe if "Best wording" in table.value)
    assert set(best["Best wording"]) <= {"<b>0</b>:", "default", *(f"Word {k}:" for k in range(1, 6))}

"""Long tables and grids made for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.instructions.grid import Grid, grid_of, marked
from evaluation.score_frames import checked_scores
from plumbline.statistics.estimates import Floats


def long(scores: Floats, default: Floats | None = None, **columns: Any) -> pd.DataFrame:
    """A checked long table of scores (models by tasks by wordings, NaN for none) and of defaults (models by tasks)."""
    rows = [
        {"model": f"m{m}", "task": f"t{t}", "prompt_id": f"p{k}", "text": f"Word {k}:", "score": score}
        for (m, t, k), score in np.ndenumerate(scores)
        if not np.isnan(score)
    ]
    for (m, t), score in np.ndenumerate(np.empty((0, 0)) if default is None else default):
        if not np.isnan(score):
            rows.append({"model": f"m{m}", "task": f"t{t}", "prompt_id": "default", "text": "", "score": score})
    frame = pd.DataFrame(rows).assign(
        **{"source": "machine", "split": "test", "subset": "en", "run": "r", "mteb_version": "2", **columns}
    )
    frame.loc[frame["prompt_id"] == "default", "source"] = "default"
    return checked_scores(frame, Path("made.csv"))


def grid(scores: Sequence[object] | Floats, default: Sequence[object] | Floats) -> Grid:
    """The grid of such a table, all of which counts."""
    given = np.asarray(scores, dtype=np.float64)
    return grid_of(marked(long(given, np.asarray(default, dtype=np.float64))))

"""Published numbers of arXiv 2605.22544 (tests/evaluation/printed), models by tasks."""

from __future__ import annotations

import pandas as pd

from plumbline.study import ROOT

_PRINTED = ROOT / "tests" / "evaluation" / "printed"
_SCORES = pd.read_csv(_PRINTED / "wordings_scores.csv")
MODELS, TASKS = list(_SCORES["model"].unique()), list(_SCORES["task"].unique())
BEST, WORST, REPORTED, MATCHED = (
    _SCORES.pivot(index="model", columns="task", values=name).loc[MODELS, TASKS].to_numpy()
    for name in ("best", "worst", "reported", "matched")
)
_ALL = pd.read_csv(_PRINTED / "wordings_all_scores.csv").groupby(["model", "task"])["score"].agg(list)
E5, TOUCHE_BGE_SMALL = [_ALL["e5", task] for task in TASKS], _ALL["bge-small", "Touche"]
FIGURE_4 = pd.read_csv(_PRINTED / "wordings_figure_4.csv").to_numpy().tolist()

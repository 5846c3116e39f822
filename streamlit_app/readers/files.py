"""The files of a study's folder that several readers rest on (`streamlit_app.records.cached`)."""

from __future__ import annotations

CONTROLS = ("controls.parquet", "control_ratings.parquet")
RATED = ("pairs.parquet", "ratings.parquet")
COLLECTED = (*RATED, *CONTROLS)
JUDGED = (*RATED, "control_ratings.parquet", "agreement.json", "verdicts.json")
SCORED = ("scores.parquet", "verdicts.json")
# A ledger that is being written has its last entries beside it.
RULES = ("rules.json", "decisions.json", "looks.json", *CONTROLS, "crowd.sqlite", "crowd.sqlite-wal")
PROMPTED = ("instructions/scores.parquet",)
OF_PEOPLE = (
    "human/scores.parquet",
    "human/agreement.parquet",
    "human/differences.parquet",
    "human/item_scores.parquet",
    "human/annotators.parquet",
    "human/difficulty.parquet",
)

"""Tables that commands print, reports contain and the dashboard shows, from frames of records.

Each is a function of the frame of scores (`plumbline.records.Score` rows). Scores and their standard deviations stay in
their own units (0 to 1) in every frame; differences and shifts are in points (hundredths). Seeds are averaged first,
because they are repeated runs (HTEB, 2.3). Undefined values are NaN with a reason. Only accepted transformations
count, except that `axis_table` and `transformation_table` may take in rejected ones that the user included, and name
them. Frames have `simulated` where a rating behind them is simulated.
"""

from __future__ import annotations

from evaluation.tables.comparisons import (
    baseline_table,
    difference_table,
    kendall_table,
    ranking_table,
    shift_table,
    split_half_table,
)
from evaluation.tables.datasets import (
    abstention_table,
    accepted_table,
    dataset_averages,
    dataset_totals,
    drift_by_quality,
    drift_correlations,
    drop_table,
    not_searches,
    profile_table,
    size_table,
    translation_table,
)
from evaluation.tables.generators import generator_table, prompt_table
from evaluation.tables.scores import TOTAL, axis_table, left_out, transformation_table

__all__ = [
    "TOTAL",
    "abstention_table",
    "accepted_table",
    "axis_table",
    "baseline_table",
    "dataset_averages",
    "dataset_totals",
    "difference_table",
    "drift_by_quality",
    "drift_correlations",
    "drop_table",
    "generator_table",
    "kendall_table",
    "left_out",
    "not_searches",
    "profile_table",
    "prompt_table",
    "ranking_table",
    "shift_table",
    "size_table",
    "split_half_table",
    "transformation_table",
    "translation_table",
]

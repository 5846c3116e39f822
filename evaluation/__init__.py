"""Score models on accepted transformations, and compute statistics; names are imported on first use."""

from __future__ import annotations

from plumbline.importing import lazily

TYPE_CHECKING = False  # true for type checkers; importing `typing` first would delay the handling of Ctrl-C
if TYPE_CHECKING:
    from evaluation.human.metrics import expected_ap, expected_ndcg
    from evaluation.human.mteb_results import human_benchmark
    from evaluation.instructions.spread import (
        coefficient_of_variation,
        default_ecdf,
        median_ecdf,
        median_permutation_test,
        share_above_median,
    )
    from evaluation.models.embeddings import drift
    from evaluation.scoring import evaluate
    from evaluation.tables.scores import axis_table
    from plumbline.statistics.paired import hodges_lehmann, wilcoxon
    from plumbline.statistics.rankings import borda, rank_intervals

__all__ = [
    "axis_table",
    "borda",
    "coefficient_of_variation",
    "default_ecdf",
    "drift",
    "evaluate",
    "expected_ap",
    "expected_ndcg",
    "hodges_lehmann",
    "human_benchmark",
    "median_ecdf",
    "median_permutation_test",
    "rank_intervals",
    "share_above_median",
    "wilcoxon",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "evaluation.human.mteb_results": ["human_benchmark"],
        "evaluation.human.metrics": ["expected_ap", "expected_ndcg"],
        "evaluation.instructions.spread": [
            "coefficient_of_variation",
            "default_ecdf",
            "median_ecdf",
            "median_permutation_test",
            "share_above_median",
        ],
        "evaluation.scoring": ["evaluate"],
        "evaluation.models.embeddings": ["drift"],
        "plumbline.statistics.paired": ["hodges_lehmann", "wilcoxon"],
        "plumbline.statistics.rankings": ["borda", "rank_intervals"],
        "evaluation.tables.scores": ["axis_table"],
    },
)

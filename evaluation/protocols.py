"""What both kinds of data sets are scored by: main metrics, and the paper's settings of mteb's classes.

| task | mteb's class | main metric | what stands behind it |
|---|---|---|---|
| sts, str | AbsTaskSTS | cosine_spearman | Spearman's rho of cosine and gold score |
| pair_classification | AbsTaskPairClassification | cosine_ap | average precision of the cosine |
| classification | AbsTaskClassification | accuracy | logistic regression |
| clustering | AbsTaskClusteringLegacy or AbsTaskClustering | v_measure | mini-batch k-means |
| reranking | AbsTaskRetrieval with candidates | map_at_1000 | MAP over each query's own candidates |
| retrieval | AbsTaskRetrieval | ndcg_at_10 | nDCG@10 over the corpus |
| summarisation | AbsTaskSummarization | cosine_spearman | rho of relevance and nearest human summary's cosine |

The metrics are HTEB's (appendix G) under both protocols, also where mteb's task has another main score (`max_ap`,
`f1`).

`protocol: paper` trains classification on the full train split (HTEB, 2.3) and clusters all rows once, with the
evaluator of mteb's original clustering tasks: mini-batch k-means (batches of 500, one start, seed 42) on every row, so
the number is the V-measure of the whole set and the same on every run. mteb's newer class would embed 4% of the rows
and draw ten samples of up to 16,384 from them with replacement, which on a small set measures the draw. Summarisation
takes the mean of the correlations; mteb's task SummEval averages their p-values into it. `protocol: mteb` takes mteb's
own settings.
"""

from __future__ import annotations

from typing import Any, Literal

from generation.datasets.specs import TaskType

Protocol = Literal["paper", "mteb"]

METRICS: dict[TaskType, str] = {
    "sts": "cosine_spearman",
    "str": "cosine_spearman",
    "pair_classification": "cosine_ap",
    "classification": "accuracy",
    "clustering": "v_measure",
    "reranking": "map_at_1000",
    "retrieval": "ndcg_at_10",
    "summarisation": "cosine_spearman",
}


def classifier(protocol: Protocol) -> dict[str, Any]:
    """Attributes for classification, with an evaluator of its own: mteb has one for all tasks, and changes it."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    attributes: dict[str, Any] = {"evaluator_model": LogisticRegression(max_iter=100)}
    if protocol == "paper":
        attributes |= {"samples_per_label": 10**9, "n_experiments": 1}
    return attributes

"""Main metrics of tasks, and the paper's settings of mteb's classes, for both kinds of data sets.

| task | mteb's class | main metric | definition |
|---|---|---|---|
| sts, str | AbsTaskSTS | cosine_spearman | Spearman's rho of cosine and gold score |
| pair_classification | AbsTaskPairClassification | cosine_ap | average precision of the cosine |
| classification | AbsTaskClassification | accuracy | logistic regression |
| clustering | AbsTaskClusteringLegacy or AbsTaskClustering | v_measure | mini-batch k-means |
| reranking | AbsTaskRetrieval with candidates | map_at_1000 | MAP over each query's own candidates |
| retrieval | AbsTaskRetrieval | ndcg_at_10 | nDCG@10 over the corpus |
| summarisation | AbsTaskSummarization | cosine_spearman | rho of relevance and nearest human summary's cosine |
| bitext_mining | AbsTaskBitextMining | f1 | nearest of the second sides by cosine; F1 weighted over them |
| multilabel_classification | AbsTaskMultilabelClassification | accuracy | all labels right, by 5 nearest neighbours |
| instruction_reranking | AbsTaskRetrieval with candidates | p-MRR | ranks under two instructions (FollowIR) |

The metrics are HTEB's (appendix G) under both protocols, even if mteb's task has another main score (`max_ap`, `f1`).
HTEB has no data sets of the last three types; their metrics are the main scores of mteb's tasks (for multilabel
classification of most of them).

`protocol: paper` trains classification on the full train split (HTEB, 2.3), multilabel classification too, which then
is scored on the whole test split, where mteb's default cuts it to 3,000 rows; mteb trains on texts that have a label,
and so leaves out those that have none. It clusters all rows once, with the
evaluator of mteb's original clustering tasks: mini-batch k-means (batches of 500, one start, seed 42) on every row, so
the number is the V-measure of the whole set and the same on every run. mteb's newer class would embed 4% of the rows
and draw ten samples of up to 16,384 from them with replacement, which on a small set measures the draw. Summarisation
takes the mean of the correlations; mteb's task SummEval averages their p-values into it. `protocol: mteb` uses mteb's
own settings.
"""

from __future__ import annotations

from typing import Literal

from annotation.human.types import METRICS as OF_PEOPLE
from plumbline.study.datasets import TaskType

Protocol = Literal["paper", "mteb"]

METRICS: dict[TaskType, str] = {**OF_PEOPLE, "bitext_mining": "f1", "instruction_reranking": "p-MRR"}
# Ranks of retrieval's passages under `paper`: nDCG@10 needs ten; mteb's 1,000 triple the work besides encoding.
RANKED = (1, 3, 5, 10, 20, 100)
WHOLE = {"samples_per_label": 10**9, "n_experiments": 1}  # the full train split, once

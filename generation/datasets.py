"""Data sets, read into one form (`generation.places.Dataset`) wherever they come from.

A local file needs these columns, or `columns` in the study maps them (`columns: {score: gold}`):

| task | columns | transformed |
|---|---|---|
| sts, str | sentence1, sentence2, score | both sentences |
| pair_classification | sentence1, sentence2, label (0 or 1) | both sentences |
| classification | text, label, split (train and test) | text, in both splits |
| clustering | text, label | text |
| reranking | query, positive (list), negative (list) | query |
| retrieval | a folder in BEIR's layout: corpus.jsonl, queries.jsonl, qrels/test.tsv | queries |
| summarisation | human_summaries (list), machine_summaries (list), relevance (list) | all summaries |

Lists need JSONL or Parquet; `relevance` has a number for each machine summary. Rows without a column `split` are the
test split, and so are all rows where the study says `rows: all`. A column `language` gives a row's own language;
`en-de` says that the first sentence (or the query) is English and the second (or the passages) German. What is
transformed follows HTEB (appendix E): of reranking and retrieval the queries alone, unless the study says
`passages: true`.

A task of mteb has all that in its own data (`generation.mteb_tasks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from generation.dataset_specs import DatasetSpec, MtebDataset
from generation.local_datasets import load_local
from generation.mteb_tasks import load_mteb
from generation.places import Dataset
from generation.study import Study


def iter_datasets(study: Study) -> Iterator[Dataset]:
    """The data sets of a study one by one, in its order, so that one is in memory at a time."""
    for spec in study.datasets:
        yield load_dataset(spec, study.file.parent)


def load_dataset(spec: DatasetSpec, base: Path) -> Dataset:
    """One data set; `base` is the folder that local paths are relative to.

    Raises DataError with file, row and field for what cannot be used, StudyError for what cannot be asked of an mteb
    task, and ServiceError where the hub cannot be reached.
    """
    if isinstance(spec, MtebDataset):
        return load_mteb(spec)
    return load_local(spec, (base / spec.path).resolve())


def load_datasets(study: Study) -> list[Dataset]:
    """All data sets of a study at once, in its order; raises like `load_dataset`."""
    return list(iter_datasets(study))

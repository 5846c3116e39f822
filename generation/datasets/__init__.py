"""Data sets, read into one form (`places.Dataset`) wherever they come from.

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
| bitext_mining | sentence1, sentence2 | sentence1 |
| multilabel_classification | text, label (list), split (train and test) | text, in both splits |
| instruction_reranking | query, instruction, changed_instruction, positive, negative, changed (lists) | query |

Lists need JSONL or Parquet; `relevance` has a number for each machine summary, and `changed` those of the positive
passages that `changed_instruction` makes irrelevant. Rows without a column `split` are the test split, and so are all
rows where the study says `rows: all`. A column `language` gives a row's own language;
`en-de` says that the first sentence (or the query) is English and the second (or the passages) German. What is
transformed follows HTEB (appendix E): of reranking and retrieval the queries alone, unless the study says
`passages: true`; instructions never. Of the last three types, which HTEB has no data sets of, it is what makes the same
question: the sentence that is sought, and not those that it is sought in.

A task of mteb has all that in its own data (`mteb_tasks`).
"""

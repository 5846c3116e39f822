"""Judges rate pairs of texts that people gave a score, and are held against these (PTEB's first step, section 3.2.1).

Gold scores of another scale (`gold_scale` of a data set) are mapped linearly to the judges'; `annotation.judges.gold`
computes the tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pandas as pd
from pydantic import Field

from annotation.judges.gold import AVERAGE, beside_gold, error_by_gold, spearman_by_dataset, spearman_by_words
from annotation.judges.prompts import Questionnaire
from annotation.judges.records import JudgedPair
from annotation.judges.run import JudgeProgress, JudgeRun, judge_pairs, named
from annotation.rubric import load_rubric
from generation.datasets.dataset import Dataset, items_of
from generation.datasets.loading import iter_datasets
from plumbline import cli
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.records import Number, Record
from plumbline.store import only_one, write_json, write_table
from plumbline.study import Study
from plumbline.study.datasets import SIMILARITIES, DatasetSpec
from plumbline.study.judged import ORIGINAL

FOLDER = "gold_judgements"
FILE = "gold.json"
PAIRS = "gold.parquet"


class GoldPair(JudgedPair):
    """Two texts with the score that people gave them (`gold.parquet`)."""

    gold: float = Field(description="the score, on its own scale")
    gold_lowest: float = Field(description="the lowest that people could give")
    gold_highest: float = Field(description="the highest")


class GoldRow(Record):
    """How a judge agrees with gold scores on some pairs (`gold.json`)."""

    table: Literal["spearman", "error", "words"] = Field(
        description="Spearman's rho by data set, mean absolute error by gold score, or Spearman's rho by length"
    )
    judge: str = Field(description="the judge's name in the study; of `words` empty: the mean over judges")
    dataset: str = Field(description="the data set; average: the plain mean over data sets; empty for all pairs")
    group: str = Field(description="the nearest whole gold score, or the words of a pair; empty for all")
    n: int = Field(description="pairs")
    n_failed: int = Field(default=0, description="of `spearman`: pairs that the judge gave no score")
    value: Number = Field(description="rho, or the error in points of the judges' scale; NaN where it is undefined")


def judge_gold(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[JudgeRun]:
    """Have judges rate every pair of texts that has a gold score.

    Writes `gold.parquet` and `gold_judgements/<judge>.parquet`; resumes as `judge` does. Raises StudyError where no
    data set has gold scores, DataError for scores that are off the scale that the study says.
    """
    questionnaires = _questionnaires(study, names)
    with only_one(study.scratch / ".judging.lock", f"judges are at work for {study.name!r}"):
        pairs = gold_pairs(study)
        write_table(study.folder / PAIRS, pairs, GoldPair)
        return judge_pairs(study, questionnaires, pairs, study.folder / FOLDER, again=again)


def gold_pairs(study: Study) -> list[GoldPair]:
    """Every pair of texts of the study's data sets that has a gold score."""
    specs = {spec.name: spec for spec in study.datasets}
    pairs = [
        pair
        for dataset in iter_datasets(study)
        if dataset.task in SIMILARITIES
        for pair in _of(dataset, specs[dataset.name])
    ]
    if not pairs:
        raise StudyError(f"{study.file}: no data set has gold scores; name one of task {' or '.join(SIMILARITIES)}")
    return pairs


def agreement_with_gold(study: Study, names: Sequence[str] = ()) -> tuple[list[GoldRow], pd.DataFrame]:
    """(PTEB's Tables 2 and 3, Figures 3 and 4, of what judges have said, rows of `Judgement`); writes `gold.json`."""
    questionnaires, pairs = _questionnaires(study, names), gold_pairs(study)
    scales = {(questionnaire.prompt.lowest, questionnaire.prompt.highest) for questionnaire in questionnaires}
    if len(scales) > 1:
        raise StudyError(f"{study.file}: gold scores are of one scale for all judges; name one gold_prompt")
    judgements = pd.concat([progress.frame() for progress in gold_asked(study, names)], ignore_index=True)
    rows = _rows(judgements, pairs, [float(end or 0) for end in scales.pop()])
    write_json(study.folder / FILE, rows)
    return rows, judgements


def _rows(judgements: pd.DataFrame, pairs: Sequence[GoldPair], scale: Sequence[float]) -> list[GoldRow]:
    values = [(pair.pair_id, pair.gold, pair.original, pair.transformed) for pair in pairs]
    gold = pd.DataFrame(values, columns=["pair_id", "gold", "sentence1", "sentence2"])
    beside = beside_gold(judgements, gold)
    scales = {pair.dataset: (pair.gold_lowest, pair.gold_highest) for pair in pairs}
    return [
        *(
            GoldRow(table="spearman", judge=judge, dataset=dataset, group="", n=n, n_failed=failed, value=value)
            for dataset, judge, n, failed, value in spearman_by_dataset(beside).itertuples(index=False)
        ),
        *(
            GoldRow(table="error", judge=judge, dataset="", group=str(point), n=n, value=value)
            for judge, point, n, value, _ in error_by_gold(beside, scales, scale).itertuples(index=False)
        ),
        *(
            GoldRow(table="words", judge="", dataset=dataset, group=words, n=n, value=value)
            for dataset, words, n, value, _ in spearman_by_words(beside, gold).itertuples(index=False)
        ),
    ]


def gold_asked(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[JudgeProgress]:
    """What there is of each judge, and what is left to ask."""
    pairs = gold_pairs(study)
    return [
        JudgeProgress(study, questionnaire, pairs, study.folder / FOLDER, again=again)
        for questionnaire in _questionnaires(study, names)
    ]


def _questionnaires(study: Study, names: Sequence[str]) -> list[Questionnaire]:
    """What each judge is asked about two texts."""
    rubric, questionnaires = load_rubric(study), []
    for spec in named(study.judges, names, study.file):
        of_gold = {"prompt": spec.gold_prompt, "questions": (), "orders": ("up",), "score": None}
        questionnaire = Questionnaire(study, spec.model_copy(update=of_gold), rubric)
        if not questionnaire.prompt.question:
            raise StudyError(
                f"{study.file}: judge {spec.name!r}: gold_prompt {spec.gold_prompt!r} asks what the rubric does; name"
                " one with a question of its own, such as pteb_sts"
            )
        questionnaires.append(questionnaire)
    return questionnaires


def _of(dataset: Dataset, spec: DatasetSpec) -> list[GoldPair]:
    scores, (low, high) = dataset.gold_scores(), spec.gold_scale
    pairs: list[GoldPair] = []
    for item in items_of(dataset, 2):
        first, second = item.fields.get("sentence1"), item.fields.get("sentence2")
        if not isinstance(first, str) or not isinstance(second, str) or item.item not in scores:
            continue
        gold = scores[item.item]
        if not low <= gold <= high:
            raise DataError(
                f"data set {dataset.name!r}, item {item.item}: the gold score {gold:g} is off the scale {low:g} to"
                f" {high:g}; write its own as gold_scale, such as [1, 5]"
            )
        identified = identity("gold-v1", dataset.name, item.item, first, second)
        pairs.append(
            GoldPair(
                pair_id=identified, key=identified, transformation=ORIGINAL, axis=ORIGINAL, pool=ORIGINAL,
                dataset=dataset.name, task_type=dataset.task, language=item.language,
                output_language=item.output_language, seed=0, original=first, transformed=second, model="",
                generator_hash="", prompt_hash="", stratum="", place=len(pairs) + 1, gold=gold, gold_lowest=low,
                gold_highest=high,
            )
        )  # fmt: skip
    return pairs


RECORDED = "Recorded judges were not asked: their answers stand in files."
_MEAN = "mean of judges"


def gold_text(rows: Sequence[GoldRow], *, recorded: bool) -> str:
    """PTEB's Tables 2 and 3, Figures 3 and 4 as tables, a judge a column; `recorded` where a judge was not asked."""
    parts = [
        _table("Spearman with the gold scores, in %", "data set", rows, "spearman"),
        _table("Mean absolute error by gold score, in points of the judges' scale", "gold score", rows, "error"),
        _table("Spearman by the mean words of a pair's texts, in %", "data set, words", rows, "words"),
    ]
    notes = [
        "Pairs are those that a judge could rate; of the last table those that all could, ten at least for a number."
    ]
    return "\n\n".join([*parts, "\n".join([*notes, *([RECORDED] if recorded else [])])])


def _table(title: str, first: str, rows: Sequence[GoldRow], table: str) -> str:
    of_table = [row for row in rows if row.table == table and row.n]
    judges = list(dict.fromkeys(row.judge for row in of_table))
    places = sorted(dict.fromkeys((row.dataset, row.group) for row in of_table), key=lambda key: key[0] == AVERAGE)
    by_cell = {(row.dataset, row.group, row.judge): row for row in of_table}
    lines = []
    for row_key in places:
        each = [by_cell.get((*row_key, judge)) for judge in judges]
        numbers = sorted({row.n for row in each if row})
        pairs = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
        lines.append(
            [", ".join(filter(None, row_key)), pairs, *(_shown(row, percent=table != "error") for row in each)]
        )
    return f"{title}\n\n{cli.columns([first, 'pairs', *(judge or _MEAN for judge in judges)], lines)}"


def _shown(row: GoldRow | None, *, percent: bool) -> str:
    if row is None or math.isnan(row.value):
        return "–"
    return f"{100 * row.value:.2f}" if percent else f"{row.value:.2f}"

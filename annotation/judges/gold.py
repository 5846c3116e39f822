"""Choice of a judge: how closely each one reproduces the gold scores of pairs of texts (PTEB, section 2 and 3.2.1).

Judges rate pairs of texts that people gave a score. Gold scores of another scale (`gold_scale` of a data set) are
mapped linearly to the judges'. In the frames, judgements have `dataset`, and `pair_id` names a pair of sentences;
`gold` has a row for each pair of sentences: pair_id, gold and, for bins by length, sentence1 and sentence2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from annotation.judges.effects import spearman
from annotation.judges.prompts import Questionnaire
from annotation.judges.records import JudgedPair, checked
from annotation.judges.run import JudgeRun, ask_each, progress_of, questionnaires
from generation.datasets.dataset import Dataset, items_of
from generation.datasets.loading import load_dataset
from plumbline import cli
from plumbline.errors import DataError, StudyError
from plumbline.exhibits.table import number
from plumbline.frames import filled, numbers, once
from plumbline.identity import identity
from plumbline.records import Number, Record
from plumbline.statistics.estimates import Floats
from plumbline.store import only_one, write_json, write_table
from plumbline.study import Study
from plumbline.study.datasets import SIMILARITIES, DatasetSpec
from plumbline.study.subject import ORIGINAL
from plumbline.words import count_words

WORD_BINS = (0, 5, 10, 15, 20)  # PTEB, Figure 4: [0, 5) to [15, 20), and from 20 on
AVERAGE = "average"


def scores_with_gold(judgements: pd.DataFrame, gold: pd.DataFrame) -> pd.DataFrame:
    """Return each judge's score of each pair with its gold score: judge, dataset, pair_id, score, gold.

    Failed scores are NaN. Raises ValueError for gold scores that are not numbers, a pair with two gold scores,
    judgements of pairs without a gold score, and judgements on more than one question.
    """
    filled(gold, ("pair_id", "gold"), "gold scores")
    once(gold, ("pair_id",), "gold scores")
    values = pd.Series(numbers(gold["gold"], "gold scores"), index=gold["pair_id"])
    scores = checked(judgements, ("dataset",))
    if scores["question"].nunique() > 1:
        questions = ", ".join(sorted(map(str, scores["question"].unique())))
        raise ValueError(f"judgements answer several questions ({questions}); select one to compare with gold scores")
    if (missing := ~scores["pair_id"].isin(values.index)).any():
        pair = scores.loc[missing, "pair_id"].iloc[0]
        raise ValueError(f"judgements: pair {pair} has no gold score (judgements without one: {missing.sum()})")
    frame = scores.assign(gold=values.reindex(scores["pair_id"]).to_numpy())
    return frame[["judge", "dataset", "pair_id", "score", "gold"]]


def spearman_by_dataset(scores: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rho of judge and gold by data set, and their plain mean over data sets (PTEB, Table 2).

    `scores` is that of `scores_with_gold`. Columns: dataset, judge, n (pairs that the judge did not fail on), failed,
    spearman; the last rows are those of `with_averages`.
    """
    rows = []
    for (dataset, judge), group in scores.groupby(["dataset", "judge"]):
        scored = group.dropna(subset=["score"])
        rho = spearman(scored["score"].to_numpy(np.float64), scored["gold"].to_numpy(np.float64))
        rows.append((dataset, judge, len(scored), len(group) - len(scored), rho))
    return with_averages(pd.DataFrame(rows, columns=["dataset", "judge", "n", "failed", "spearman"]))


def with_averages(table: pd.DataFrame) -> pd.DataFrame:
    """Add a row for each judge, named average: its plain mean over data sets.

    NaN where a judge lacks one of the data sets: a mean over others would be of something else. (PTEB prints 80.89 for
    qwen3-32b, whose nine rows have a mean of 80.36.)
    """
    wanted, rows = set(table["dataset"]), []
    for judge, of_judge in table.groupby("judge"):
        mean = of_judge["spearman"].mean(skipna=False) if set(of_judge["dataset"]) == wanted else math.nan
        rows.append((AVERAGE, judge, of_judge["n"].sum(), of_judge["failed"].sum(), mean))
    return pd.concat([table, pd.DataFrame(rows, columns=list(table.columns))], ignore_index=True)


def mapped(scores: Floats, scale: Sequence[float], onto: Sequence[float]) -> Floats:
    """Map scores of one scale onto another, linearly, ends onto ends. Both scales are (lowest, highest).

    SICK-R goes from 1 to 5, BIOSSES and STS22 have scales of their own; an absolute error needs one scale for all.
    Raises ValueError for scores beyond the ends, which must be of another scale.
    """
    low, high = float(scale[0]), float(scale[-1])
    if not low < high:
        raise ValueError(f"a scale goes from a lower to a higher number, not from {low:g} to {high:g}")
    off = (scores < low - 1e-9) | (scores > high + 1e-9)
    if off.any():
        raise ValueError(f"gold scores: {scores[off][0]:g} is outside the scale from {low:g} to {high:g}")
    values: Floats = onto[0] + (scores - low) / (high - low) * (onto[-1] - onto[0])
    return values


def error_by_gold(
    scores: pd.DataFrame, scales: Mapping[str, Sequence[float]], onto: Sequence[float] = (0, 5)
) -> pd.DataFrame:
    """Compute each judge's mean absolute error by gold score, rounded to the judge's scale (PTEB, Figure 3).

    `scales` are the gold scales of the data sets, which are mapped onto that of the judge (`mapped`). Columns: judge,
    gold (the nearest whole point), n, mean_absolute_error, bias (mean of judge - gold).
    """
    if missing := sorted(set(map(str, scores["dataset"])) - set(scales)):
        raise ValueError(
            f"gold scores: data set {missing[0]} has no scale; there are scales for {', '.join(sorted(scales))}"
        )
    gold = np.empty(len(scores))
    for dataset, places in scores.groupby("dataset").indices.items():
        gold[places] = mapped(scores["gold"].to_numpy(np.float64)[places], scales[str(dataset)], onto)
    error = scores["score"].to_numpy(np.float64) - gold
    frame = pd.DataFrame({"judge": scores["judge"].to_numpy(), "gold": np.floor(gold + 0.5).astype(int), "bias": error})
    frame["mean_absolute_error"] = frame["bias"].abs()
    groups = frame.dropna().groupby(["judge", "gold"])
    table = groups[["mean_absolute_error", "bias"]].mean()
    table.insert(0, "n", groups.size())
    return table.reset_index()


def spearman_by_words(scores: pd.DataFrame, gold: pd.DataFrame, fewest: int = 10) -> pd.DataFrame:
    """Compute Spearman's rho by data set and length, mean over judges, with the pairs in each bin (PTEB, Figure 4).

    `gold` has sentence1 and sentence2; the length of a pair is the mean of its sentences' words (the paper does not say
    whether it is that of a sentence or of a pair). Columns:
    dataset, words (such as 5-9, 20+), n (pairs, judged by all), spearman (NaN below `fewest` pairs), judges. The last
    rows, called average, are means over the data sets that have a rho there, as the paper's; which these are differs
    from bin to bin.
    """
    filled(gold, ("pair_id", "sentence1", "sentence2"), "gold scores")
    lengths = sum(gold[name].astype(str).map(count_words).to_numpy() for name in ("sentence1", "sentence2")) / 2
    words = pd.Series(lengths, index=gold["pair_id"])
    wide = scores.pivot(index=["dataset", "pair_id", "gold"], columns="judge", values="score").dropna().reset_index()
    bin_of = np.searchsorted(np.array(WORD_BINS), words.reindex(wide["pair_id"]).to_numpy(), side="right") - 1
    names = [f"{low}-{high - 1}" for low, high in itertools.pairwise(WORD_BINS)] + [f"{WORD_BINS[-1]}+"]
    judges = sorted(scores["judge"].unique())
    rows = []
    for dataset in sorted(wide["dataset"].unique()):
        for i, name in enumerate(names):
            in_bin = wide[(wide["dataset"] == dataset) & (bin_of == i)]
            gold_scores = in_bin["gold"].to_numpy(np.float64)
            each = [spearman(in_bin[judge].to_numpy(np.float64), gold_scores) for judge in judges]
            rows.append(
                (dataset, name, len(in_bin), float(np.mean(each)) if len(in_bin) >= fewest else math.nan, len(judges))
            )
    table = pd.DataFrame(rows, columns=["dataset", "words", "n", "spearman", "judges"])
    below = [
        (AVERAGE, name, of_bin.loc[of_bin["spearman"].notna(), "n"].sum(), of_bin["spearman"].mean(), len(judges))
        for name, of_bin in table.groupby("words", sort=False)
    ]
    return pd.concat([table, pd.DataFrame(below, columns=list(table.columns))], ignore_index=True)


FOLDER = "gold_judgements"
FILE = "gold.json"
PAIRS = "gold.parquet"


class GoldPair(JudgedPair):
    """Two texts with the score that people gave them (`gold.parquet`)."""

    gold: float = Field(description="the gold score, on its data set's scale")
    gold_lowest: float = Field(description="lowest score of the data set's scale")
    gold_highest: float = Field(description="highest score of the data set's scale")


class GoldRow(Record):
    """A judge's agreement with gold scores on some pairs (`gold.json`)."""

    table: Literal["spearman", "error", "words"] = Field(
        description="Spearman's rho by data set, mean absolute error by gold score, or Spearman's rho by length"
    )
    judge: str = Field(description="the judge's name in the study; empty for `words`, which is the mean over judges")
    dataset: str = Field(description="the data set; `average` for the plain mean over data sets; empty for `error`")
    group: str = Field(
        description="for `error`: the gold score on the judges' scale, rounded to a whole point; for `words`: a range"
        " of the mean number of words in a pair's texts; empty for `spearman`"
    )
    n: int = Field(description="number of pairs")
    n_failed: int = Field(default=0, description="for `spearman`: number of pairs without a score from the judge")
    value: Number = Field(description="rho, or the error in points of the judges' scale; NaN where it is undefined")


def judge_gold(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[JudgeRun]:
    """Have judges rate every pair of texts that has a gold score.

    Writes `gold.parquet` and `gold_judgements/<judge>.parquet`; resumes as `judge` does. Raises StudyError if no data
    set has gold scores, DataError for scores outside the scale that the study sets.
    """
    with only_one(study.scratch / ".judging.lock", f"judges are running for {study.name!r}"):
        judges, pairs = gold_questions(study, names)
        write_table(study.folder / PAIRS, pairs, GoldPair)
        return ask_each(progress_of(study, judges, pairs, study.folder / FOLDER, again=again))


def gold_pairs(specs: Iterable[DatasetSpec], study_file: Path) -> list[GoldPair]:
    """Return every pair of texts with a gold score from the data sets of a study's file."""
    datasets = ((load_dataset(spec, study_file.parent), spec) for spec in specs)
    pairs = [pair for dataset, spec in datasets if dataset.task in SIMILARITIES for pair in _of(dataset, spec)]
    if not pairs:
        raise StudyError(
            f"{study_file}: no data set has gold scores; add one whose task is {' or '.join(SIMILARITIES)}"
        )
    return pairs


def agreement_with_gold(study: Study, names: Sequence[str] = ()) -> tuple[list[GoldRow], pd.DataFrame]:
    """Compute PTEB's Tables 2 and 3, Figures 3 and 4, and return the judgements too; writes `gold.json`."""
    judges, pairs = gold_questions(study, names)
    scales = {(judge.prompt.lowest, judge.prompt.highest) for judge in judges}
    if len(scales) > 1:
        raise StudyError(f"{study.file}: judges must rate gold pairs on one scale")
    progresses = progress_of(study, judges, pairs, study.folder / FOLDER)
    judgements = pd.concat([progress.frame() for progress in progresses], ignore_index=True)
    rows = _rows(judgements, pairs, [float(end or 0) for end in scales.pop()])
    write_json(study.folder / FILE, rows)
    return rows, judgements


def _rows(judgements: pd.DataFrame, pairs: Sequence[GoldPair], scale: Sequence[float]) -> list[GoldRow]:
    values = [(pair.pair_id, pair.gold, pair.original, pair.transformed) for pair in pairs]
    gold = pd.DataFrame(values, columns=["pair_id", "gold", "sentence1", "sentence2"])
    scores = scores_with_gold(judgements, gold)
    scales = {pair.dataset: (pair.gold_lowest, pair.gold_highest) for pair in pairs}
    return [
        *(
            GoldRow(table="spearman", judge=judge, dataset=dataset, group="", n=n, n_failed=failed, value=value)
            for dataset, judge, n, failed, value in spearman_by_dataset(scores).itertuples(index=False)
        ),
        *(
            GoldRow(table="error", judge=judge, dataset="", group=str(point), n=n, value=value)
            for judge, point, n, value, _ in error_by_gold(scores, scales, scale).itertuples(index=False)
        ),
        *(
            GoldRow(table="words", judge="", dataset=dataset, group=words, n=n, value=value)
            for dataset, words, n, value, _ in spearman_by_words(scores, gold).itertuples(index=False)
        ),
    ]


GOLD_PROMPT = "pteb_sts"  # of prompts/judges/ (PTEB, section 2)


def gold_questions(study: Study, names: Sequence[str] = ()) -> tuple[list[Questionnaire], list[GoldPair]]:
    """Return the questionnaires of a study's judges (or of these) on pairs of texts, and the pairs."""
    judges = questionnaires(study, names, prompt=GOLD_PROMPT, questions=(), score=None)
    return judges, gold_pairs(study.datasets, study.file)


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
                f"data set {dataset.name!r}, item {item.item}: the gold score {gold:g} is outside the scale {low:g} to"
                f" {high:g}; set the data set's gold_scale, such as [1, 5]"
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


RECORDED = "Recorded judges were not asked: their answers come from files."
_MEAN = "mean of judges"


def gold_text(rows: Sequence[GoldRow], *, recorded: bool) -> str:
    """Return PTEB's Tables 2 and 3, Figures 3 and 4 as tables, a column for each judge; `recorded` adds a note."""
    parts = [
        _table("Spearman with the gold scores, in %", "data set", rows, "spearman"),
        _table("Mean absolute error by gold score, in points of the judges' scale", "gold score", rows, "error"),
        _table("Spearman with gold scores, in %, by mean words in a pair's texts", "data set, words", rows, "words"),
    ]
    note = (
        "Pairs: those that the judge scored; in the last table, those that all judges scored (no rho for fewer than"
        " ten)."
    )
    return "\n\n".join([*parts, f"{note}\n{RECORDED}" if recorded else note])


def _table(title: str, first: str, rows: Sequence[GoldRow], table: str) -> str:
    of_table = [row for row in rows if row.table == table and row.n]
    judges = list(dict.fromkeys(row.judge for row in of_table))
    keys = sorted(dict.fromkeys((row.dataset, row.group) for row in of_table), key=lambda key: key[0] == AVERAGE)
    by_cell = {(row.dataset, row.group, row.judge): row for row in of_table}
    scale, lines = 1 if table == "error" else 100, []
    for key in keys:
        each = [by_cell.get((*key, judge)) for judge in judges]
        numbers = sorted({row.n for row in each if row})
        pairs = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
        cells = [number(row.value if row else math.nan, times=scale) for row in each]
        lines.append([", ".join(filter(None, key)), pairs, *cells])
    return f"{title}\n\n{cli.columns([first, 'pairs', *(judge or _MEAN for judge in judges)], lines)}"

"""Verdicts on ratings in a data frame, checked and then judged like a study's, without files."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotation.campaign.counting import counting_ratings
from annotation.records import Verdict
from annotation.statistics.frames import on_scale
from annotation.statistics.summaries import Design
from annotation.verdicts.verdicts import judged_sample
from plumbline.frames import filled, marked, need, numbers, once, with_names
from plumbline.records import Pair
from plumbline.study.transformations import EIGHT

UNKNOWN = "und"  # BCP 47's word for an undetermined language
_KEY = ("pair_id", "rater_id", "question")
_MAKER = ("model", "generator_hash", "prompt_hash", "generator_kind")
_OF_PAIRS = ("transformation", "axis", "pool", "language", "output_language", "task_type", *_MAKER)
_NEVER = pd.Timestamp(0, tz="UTC")


def judge(  # noqa: PLR0913 (four are names of columns)
    ratings: pd.DataFrame,
    pairs: pd.DataFrame | None = None,
    design: Design | None = None,
    *,
    seed: int | None = 1337,
    pair: str = "pair_id",
    rater: str = "rater_id",
    question: str = "question",
    value: str = "value",
) -> list[Verdict]:
    """Return a verdict for each transformation and language: accepted, rejected or undecided, with reasons.

    `ratings` have a row for each answer: pair_id, rater_id, question, value (a point of the design's scale; `pair`,
    `rater`, `question` and `value` name these columns if they have other names, also in `pairs`), and
    transformation if `pairs` do not have it; `language`, `output_language` (BCP 47) and task_type are optional.
    `pairs` (pair_id, transformation, the same optional columns) may include pairs that nobody rated yet. Of the other
    columns of a study's `ratings.parquet`, `status`, `excluded`, `withdrawn`, `submitted_at` and `simulated` are used,
    and `surplus` if no `submitted_at` says who came first.
    `design` gives questions, scale, number of raters of a pair that count, and rule (default: HTEB's, mean at least 3
    for quality and fluency, from 20 pairs on). `seed` is that of resampling pairs for the intervals of alpha and raw
    agreement; None leaves out all agreement but AC2. A verdict's `questions` have means, intervals and agreement of
    each question.

    Raters are not checked here, as with `acceptance.protocol: paper`: a study's verdicts may wait for that (`checked`).

    Source: HTEB, section 2.4; the rules are `annotation.verdicts.rules`. Raises ValueError for a frame that lacks a
    column, values not on the scale, questions that the design does not ask, a rater twice on a pair and question, an
    unknown status or mark, and more raters of a pair than the design counts if no `submitted_at` says who came first.

    >>> import pandas as pd
    >>> from annotation import AcceptanceSpec, Design, judge
    >>> answers = {"a": [4, 5, 4], "b": [3, 4, 5]}
    >>> ratings = pd.DataFrame(
    ...     [(pair, rater, "quality", value, "paraphrasing", "en")
    ...      for rater, values in answers.items() for pair, value in enumerate(values)],
    ...     columns=["pair_id", "rater_id", "question", "value", "transformation", "language"],
    ... )
    >>> for verdict in judge(ratings, design=Design(("quality",), rule=AcceptanceSpec(min_pairs=3))):
    ...     print(verdict.transformation, verdict.language, verdict.decision, verdict.reasons)
    paraphrasing en accepted ('mean quality 4.17 is at least 3',)
    """
    design = Design() if design is None else design
    if not isinstance(design, Design):
        raise ValueError(f"an annotation.Design is needed, not a {type(design).__name__}")
    if labelled := [name for name in design.questions if name not in design.rated]:
        raise ValueError(
            f"`judge()` takes only ratings on a scale, but the design asks {labelled[0]!r}, which has no scale"
        )
    ratings = with_names(ratings, "ratings", pair_id=pair, rater_id=rater, question=question, value=value)
    pairs = None if pairs is None else with_names(pairs, "pairs", pair_id=pair)
    filled(ratings, ("pair_id", "rater_id", "question"), "ratings")
    rated = ratings.assign(pair_id=ratings["pair_id"].astype(str), rater_id=ratings["rater_id"].astype(str))
    rated = _heeded(rated)
    once(rated, _KEY, "ratings")
    if unknown := sorted(set(map(str, rated["question"])) - set(design.questions)):
        raise ValueError(
            f"ratings answer the question {unknown[0]!r}, but the design asks {', '.join(design.questions)}"
        )
    sample = _sample(rated if pairs is None else pairs, "ratings" if pairs is None else "pairs")
    facts = {of_sample.pair_id: of_sample for of_sample in sample}
    if len(strange := rated.loc[~rated["pair_id"].isin(list(facts)), "pair_id"]):
        raise ValueError(f"ratings: pair {strange.iloc[0]} is not among the pairs")
    defaults = {"status": "submitted", "excluded": "", "withdrawn": "", "submitted_at": _NEVER, "simulated": False}
    columns: dict[str, Any] = {name: default for name, default in defaults.items() if name not in rated}
    for name in ("transformation", "language"):
        columns[name] = [getattr(facts[pair_id], name) for pair_id in rated["pair_id"]]
    rated = rated.assign(value=numbers(rated["value"], "ratings"), **columns)
    on_scale(rated[rated["status"] == "submitted"], design.scale)
    counting = counting_ratings(rated, design.per_pair)
    if "submitted_at" not in ratings and len(counting) < len(counting_ratings(rated, len(rated))):
        raise ValueError(
            f"some pairs have more raters than the {design.per_pair} that count (Design.per_pair), and no column"
            " 'submitted_at' says who came first"
        )
    withdrawn = set(rated.loc[rated["withdrawn"] != "", "pair_id"])
    return judged_sample(pd.DataFrame(map(dict, sample)), rated, design, seed, withdrawn)


def _heeded(rated: pd.DataFrame) -> pd.DataFrame:
    """Return ratings with the columns that decide whether they count. Raises ValueError for a cell that leaves it open.

    CSV files have empty cells where nothing was excluded, and times as text.
    """
    rated = marked(rated)
    if "simulated" in rated and not rated["simulated"].isin([True, False]).all():
        raise ValueError("ratings: column 'simulated' has values other than true and false")
    if "submitted_at" in rated:
        filled(rated, ("submitted_at",), "ratings")
        column = times = rated["submitted_at"]
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)):
            times = pd.to_datetime(column.astype(str), utc=True, format="ISO8601", errors="coerce")
        if len(unreadable := column[times.isna().to_numpy(bool)]):
            text = unreadable.iloc[0]
            raise ValueError(f"ratings: {text!r} in column 'submitted_at' is not a time such as 2026-01-31T12:00:00Z")
        return rated.assign(submitted_at=times)
    return rated[~rated["surplus"].astype(bool)] if "surplus" in rated else rated


def _sample(frame: pd.DataFrame, table: str) -> list[Pair]:
    """Return the pairs of a frame; missing columns are empty. Raises ValueError for a pair with contradictory rows."""
    need(frame, ("pair_id", "transformation"), table)
    names = [name for name in _OF_PAIRS if name in frame]
    filled(frame, ("pair_id", "transformation", *names), table)
    rows = frame[["pair_id", *names]].astype(str).drop_duplicates()
    if (twice := rows["pair_id"].duplicated().to_numpy(bool)).any():
        pair = rows["pair_id"].iloc[int(twice.argmax())]
        raise ValueError(f"{table}: pair {pair} has more than one {' or '.join(names)}")
    blank = dict.fromkeys(("axis", "key", "dataset", "task_type", "original", "transformed", *_MAKER), "")
    sample = []
    for row in rows.to_dict("records"):
        kind = EIGHT.get(row["transformation"])
        of_kind = {"axis": kind.axis, "pool": kind.pool} if kind else {"pool": row["transformation"]}
        languages = {"language": UNKNOWN, "output_language": UNKNOWN}
        sample.append(Pair.model_validate({**blank, **of_kind, **languages, "seed": 0, **row}))
    return sample

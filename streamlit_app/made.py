"""What the dashboard shows, and which function of `generation`, `annotation` or `evaluation` makes it of which files.

Nothing is computed here: records are filtered by what a page asks for and handed to the function.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotation.controls import read_controls
from annotation.crowd.summary import read_summaries
from annotation.decisions import read_decisions
from annotation.preregistration import amendments, first_rating, read_rules
from annotation.ratings import counting_ratings, read_all_ratings, read_control_ratings, read_ratings
from annotation.records import Look, RuleSet, Verdict
from annotation.report import crowd, exhibits
from annotation.report.material import Material, read_material
from annotation.review import signs_of
from annotation.rubric import load_rubric
from annotation.sample import read_pairs, read_supply
from annotation.status.status import Status, read_status
from annotation.verdicts import read_looks, read_verdicts, refuse_stale
from evaluation import tables
from evaluation.display import short_names
from evaluation.results import read_drift, read_scores
from evaluation.tables.profiles import ENGLISH, OTHERS
from evaluation.units import label
from generation import report
from generation.compare import length_table, lengths_measure
from generation.errors import error_rates, errors_measure
from generation.exceptions import DataError
from generation.exhibits import Exhibit
from generation.manifest import read_manifest
from generation.records import Pair
from generation.store import read_frame
from generation.study import Study


class Choice(NamedTuple):
    """Which drift is shown; an empty language or task stands for all."""

    question: str
    model: str
    language: str = ""
    task: str = ""


@dataclass(frozen=True)
class Source:
    """A study, and its records as they were read, which nobody may change."""

    study: Study
    held: Callable[[str], Any]

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdicts reached last."""
        found: Sequence[Verdict] = self.held("verdicts")
        return found

    def scores(self, group: str, model: str) -> pd.DataFrame:
        """The scores of a group of data sets and of one model or all."""
        scores: pd.DataFrame = self.held("scores")
        if group:  # those of HTEB's Tables 14 and 15
            scores = scores[(scores["language"] == "en") == (group == ENGLISH)]
        return scores[scores["model"] == model] if model else scores


def _named(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Models by their short names, the same in all records."""
    short = short_names({label(study, spec) for spec in study.evaluation.models})
    return frame.assign(model=[short.get(name, name) for name in frame["model"].to_numpy(object)])


def _scores(study: Study) -> pd.DataFrame:
    """The scores with their words as Python's strings: the tables go through them often, and Arrow's take long."""
    scores = read_scores(study)
    words = {name: object for name, kind in scores.dtypes.items() if pd.api.types.is_string_dtype(kind)}
    return scores.astype(words)


def _pairs(study: Study) -> pd.DataFrame:
    return read_frame(study.folder / "pairs.parquet", Pair, "python -m annotation sample --study ...")


def _campaign_material(source: Source) -> Material:
    """What the tables on raters rest on, which is there before verdicts are."""
    study, ratings = source.study, read_ratings(source.study)
    return Material(
        study=study,
        rubric=load_rubric(study),
        pairs=read_pairs(study),
        controls=read_controls(study),
        supply=read_supply(study),
        ratings=ratings,
        counting=counting_ratings(ratings, study.raters.per_pair),
        control_ratings=read_control_ratings(study),
        verdicts=(),
        groups=(),
        signs=signs_of(study),
        decisions=read_decisions(study),
        rules=read_rules(study),
        looks=read_looks(study),
        crowd=read_summaries(study),
        manifest=read_manifest(study),
        read_at=datetime.now(UTC),
    )


def _status(source: Source) -> Status:
    noted = read_manifest(source.study).get("stages", {})
    if not isinstance(noted, dict) or not all(isinstance(entry, dict) for entry in noted.values()):
        path = source.study.folder / "manifest.json"
        raise DataError(f"{path} is damaged: `stages` is not what a run writes; delete it and run again")
    return read_status(source.study, datetime.now(UTC))


def _looks(source: Source) -> list[Look]:
    return read_looks(source.study)


def _amendments(source: Source) -> list[tuple[RuleSet, list[str]]]:
    return amendments(read_rules(source.study), first_rating(read_all_ratings(source.study)))


def _judged(source: Source) -> dict[str, Exhibit]:
    material = source.held("material")
    return {one.name: one for one in (exhibits.table_two_exhibit(material), exhibits.agreement_exhibit(material))}


def _campaign(source: Source) -> dict[str, Exhibit]:
    material = _campaign_material(source)
    makers: tuple[Callable[[Material], Exhibit], ...] = (
        exhibits.raters_exhibit,
        exhibits.signs_exhibit,
        exhibits.decisions_exhibit,
        exhibits.exclusions_exhibit,
    )
    if material.crowd:
        makers += (crowd.campaigns_exhibit, crowd.crowd_decisions_exhibit)
    return {one.name: one for one in (make(material) for make in makers)}


def _holds(source: Source) -> str:
    """Why the verdicts no longer hold; empty where they do."""
    try:
        refuse_stale(source.study, source.verdicts)
    except DataError as error:
        return str(error)
    return ""


def _simulated(source: Source) -> bool:
    """Whether any rating or verdict is simulated; records that cannot be read say nothing, and their pages say why."""
    found = False
    with contextlib.suppress(DataError, OSError):
        found = bool(source.held("ratings")["simulated"].any())
    with contextlib.suppress(DataError, OSError):
        found = found or any(verdict.simulated for verdict in source.verdicts)
    return found


def _outrun(source: Source) -> str:
    """Why the scores are not those that the verdicts let through; empty where they are."""
    from evaluation.report import refuse_outrun  # noqa: PLC0415 (the first page goes without)

    try:
        refuse_outrun(source.study, source.scores("", ""), source.verdicts)
    except DataError as error:
        return str(error)
    return ""


def _notes(source: Source) -> tuple[str, ...]:
    from evaluation.report import notes_of  # noqa: PLC0415 (the first page goes without)

    return notes_of(source.study, _scores(source.study), source.verdicts)


def _decisions_at(source: Source, *thresholds: float) -> pd.DataFrame:
    return tables.threshold_decisions(source.verdicts, source.study.acceptance, thresholds)


def _scores_at(source: Source, *thresholds: float) -> pd.DataFrame:
    scores, rule = source.scores("", ""), source.study.acceptance
    return tables.threshold_table(scores, source.verdicts, rule, thresholds)


def _drift_choices(source: Source) -> dict[str, list[str]]:
    drift, pairs = source.held("drift"), source.held("pairs")
    rated = pairs[pairs["pair_id"].isin(source.held("ratings")["pair_id"])]
    return {
        "models": list(drift["model"].drop_duplicates()),
        "languages": sorted(set(rated["language"])),
        "tasks": sorted(set(rated["task_type"])),
    }


def _drift(source: Source, choice: Choice) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(points, correlations) of one model."""
    pairs, study = source.held("pairs"), source.study
    for column, value in (("language", choice.language), ("task_type", choice.task)):
        pairs = pairs[pairs[column] == value] if value else pairs
    drift, ratings = source.held("drift"), source.held("ratings")
    whole = tables.drift_by_quality(pairs, ratings, drift, per_pair=study.raters.per_pair, question=choice.question)
    own = whole[whole["model"] == choice.model].reset_index(drop=True)
    rng = np.random.default_rng(study.sample.seed)
    # Each model and transformation has its own stream: these take the ones that they have in the reports.
    groups = list(whole.groupby(["model", "transformation"], sort=False).size().index.get_level_values("model"))
    rng.spawn(groups.index(choice.model) if choice.model in groups else 0)
    return own, tables.drift_correlations(own, rng)


def _score_choices(source: Source) -> dict[str, list[str]]:
    scores = source.held("scores")
    english = scores["language"] == "en"
    groups = [name for name, some in ((ENGLISH, english), (OTHERS, ~english)) if some.any()]
    refused = ["included"] if (scores["status"] == "included_rejected").any() else []
    return {"models": list(scores["model"].drop_duplicates()), "groups": groups, "refused": refused}


def _coverage(source: Source) -> pd.DataFrame:
    """Columns: transformation, status, n (scores of all models, data sets and seeds)."""
    counts = source.held("scores").groupby(["transformation", "status"], sort=False).size()
    found: pd.DataFrame = counts.rename("n").reset_index()
    return found


def _ranks(source: Source, group: str) -> pd.DataFrame:
    """`evaluation.tables.ranking_table` of original and of transformed scores beside one another."""
    before, after = (one.frame for one in _table_reader("ranking")(source, group, False, ""))
    both: pd.DataFrame = before.merge(after, on="model", suffixes=("_original", "_transformed"))
    return both


def _table_reader(name: str) -> Callable[[Source, str, bool, str], list[Exhibit]]:
    """The reader of a table of `evaluation.paper_tables`; some have several parts."""

    def read(source: Source, group: str, refused: bool, model: str) -> list[Exhibit]:
        from evaluation import paper_tables  # noqa: PLC0415 (the first page goes without)

        results = paper_tables.Results(source.scores(group, model), source.verdicts, (), source.study.sample.seed)
        if name == "axes":
            return [paper_tables.axes(results, include_rejected=refused)]
        if name == "transformations":
            return [paper_tables.transformations(results, include_rejected=refused)]
        if name == "ranking":
            return [paper_tables.ranking(results, transformed=transformed) for transformed in (False, True)]
        if name == "datasets":
            return paper_tables.datasets(results)
        makers = {
            "shifts": paper_tables.shifts,
            "kendall": paper_tables.kendall,
            "split_half": paper_tables.split_half,
            "left_out": paper_tables.left_out,
        }
        return [makers[name](results)]

    return read


def _generators(study: Study) -> list[Study]:
    """A study for each generator and candidate that has outputs."""
    return report.studies_of(argparse.Namespace(study=[str(study.file)], exports=str(study.folder.parent)))


def _errors(source: Source, by: str, after_retries: bool) -> pd.DataFrame:
    return error_rates(report.tally(_generators(source.study), errors_measure(after_retries=after_retries)), by)


def _lengths(source: Source) -> pd.DataFrame:
    return length_table(report.tally(_generators(source.study), lengths_measure()))


@dataclass(frozen=True)
class Reader:
    """How something is made, and the files (of the study's folder) that it rests on.

    Without those that it `needs` it cannot be made; those that it `watches` may be missing. `*` stands for all that the
    state of a study rests on; a name that ends in / for all below that folder.
    """

    make: Callable[..., Any]
    needs: tuple[str, ...]
    watches: tuple[str, ...] = ()


_RATED = ("pairs.parquet", "ratings.parquet")
_MOVED = (*_RATED, "drift.parquet")
_SCORED = ("scores.parquet", "verdicts.json")
_RULES = ("rules.json", "decisions.json", "looks.json", "controls.parquet", "control_ratings.parquet", "crowd.sqlite")
_JUDGED = (*_RATED, "control_ratings.parquet", "agreement.json", "verdicts.json")
_OUTPUTS = ("transformations/", "candidates/")
_PRINTED = ("axes", "transformations", "shifts", "kendall", "split_half", "ranking", "datasets", "left_out")

#: Records as they are read.
RECORDS: dict[str, Reader] = {
    "verdicts": Reader(read_verdicts, ("verdicts.json",)),
    "pairs": Reader(_pairs, ("pairs.parquet",)),
    "ratings": Reader(read_ratings, ("ratings.parquet",)),
    "drift": Reader(lambda study: _named(study, read_drift(study)), ("drift.parquet",)),
    "scores": Reader(lambda study: _named(study, _scores(study)).astype({"model": object}), ("scores.parquet",)),
    "material": Reader(read_material, _JUDGED, _RULES),
}
#: What is made of them.
READERS: dict[str, Reader] = {
    "status": Reader(_status, (), ("*",)),
    "looks": Reader(_looks, (), _RULES),
    "amendments": Reader(_amendments, (), (*_RULES, "ratings.parquet")),
    "verdicts": Reader(lambda source: list(source.verdicts), ("verdicts.json",)),
    "holds": Reader(_holds, ("verdicts.json",), _RATED),
    "simulated": Reader(_simulated, (), ("verdicts.json", "ratings.parquet")),
    "judged": Reader(_judged, _JUDGED, _RULES),
    "campaign": Reader(_campaign, (*_RATED, "control_ratings.parquet"), _RULES),
    "shares": Reader(lambda source: exhibits.shares_frame(source.held("material")), _JUDGED, _RULES),
    "means": Reader(lambda source: exhibits.means_frame(source.verdicts), ("verdicts.json",)),
    "decisions_at": Reader(_decisions_at, ("verdicts.json",)),
    "scores_at": Reader(_scores_at, _SCORED),
    "drift_choices": Reader(_drift_choices, _MOVED),
    "drift": Reader(_drift, _MOVED),
    "score_choices": Reader(_score_choices, ("scores.parquet",)),
    "outrun": Reader(_outrun, _SCORED),
    "notes": Reader(_notes, _SCORED),
    "coverage": Reader(_coverage, ("scores.parquet",)),
    "errors": Reader(_errors, ("texts.parquet",), _OUTPUTS),
    "lengths": Reader(_lengths, ("texts.parquet",), _OUTPUTS),
    "ranks": Reader(_ranks, _SCORED),
    **{f"table {name}": Reader(_table_reader(name), _SCORED) for name in _PRINTED},
}

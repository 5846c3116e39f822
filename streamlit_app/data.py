"""What pages show of a study: the one reader of its records, cached, that notices changed files.

Everything is computed by `annotation` and `evaluation`; this module only calls them and keeps what they said.
A result is kept for as long as the files that it rests on keep their time and size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from annotation.ratings import read_ratings
from annotation.records import Verdict
from annotation.rubric import load_rubric
from annotation.tables import verdict_table
from annotation.verdicts import read_verdicts
from evaluation.run import read_drift, read_scores
from evaluation.tables import axis_table, drift_by_quality, drift_correlations, left_out, transformation_table
from generation.exceptions import DataError
from generation.manifest import read_manifest
from generation.records import Pair
from generation.store import read_frame
from generation.study import Study

# The flow, in order: a stage's name in the manifest and the command that runs it.
STAGES = {
    "generation": "python -m generation.run",
    "sample": "python -m annotation sample",
    "publish": "python -m annotation publish",
    "collect": "python -m annotation collect",
    "accept": "python -m annotation accept",
    "evaluation": "python -m evaluation.run",
}

Stamp = tuple[str, int, int]


class NotYetError(DataError):
    """A record that no stage has written yet; the message names the command that does."""


@dataclass(frozen=True)
class Stage:
    """A stage of the flow and when it last ended; `finished_at` is empty where it never did."""

    name: str
    command: str
    finished_at: str
    seconds: float | None


@dataclass(frozen=True)
class Records:
    """A study's records and the tables made of them. Frames are copies: a page may do with them what it likes.

    Every method raises NotYetError for a record that is not there, DataError for a damaged one and StudyError
    where the study cannot say what is needed.
    """

    study: Study

    def stages(self) -> list[Stage]:
        """The flow's stages in order, then others that the manifest knows."""
        found: list[Stage] = _kept(self.study, "stages")
        return found

    def verdicts(self) -> list[Verdict]:
        """The verdicts reached last."""
        found: list[Verdict] = _kept(self.study, "verdicts")
        return found

    def verdict_table(self) -> pd.DataFrame:
        """The verdicts as `annotation.tables.verdict_table` has them."""
        return verdict_table(self.verdicts())

    def simulated(self) -> bool:
        """Whether any rating, or any verdict, rests on simulated raters; records that cannot be read say nothing."""
        return any(_says_simulated(read) for read in (self._simulated_ratings, self._simulated_verdicts))

    def questions(self) -> list[str]:
        """What raters were asked, in the rubric's order."""
        return load_rubric(self.study).question_names()

    def scale(self) -> tuple[int, int]:
        """The ends of the rating scale."""
        scale = load_rubric(self.study).scale
        return scale[0], scale[-1]

    def ratings_of(self, pair_id: str) -> pd.DataFrame:
        """Every answer to one pair, by raters' pseudonyms."""
        ratings: pd.DataFrame = _kept(self.study, "ratings")
        columns = ["rater_id", "question", "value", "status", "submitted_at", "simulated"]
        return ratings.loc[ratings["pair_id"] == pair_id, columns].reset_index(drop=True)

    def pair(self, pair_id: str) -> dict[str, Any] | None:
        """One pair's record, or None where the sample does not hold it (any more)."""
        pairs: pd.DataFrame = _kept(self.study, "pairs")
        found = pairs[pairs["pair_id"] == pair_id].to_dict(orient="records")
        return {str(key): value for key, value in found[0].items()} if found else None

    def drift(self, question: str) -> pd.DataFrame:
        """`evaluation.tables.drift_by_quality`, all models."""
        frame: pd.DataFrame = _kept(self.study, "drift_by_quality", question)
        return frame

    def correlations(self, question: str) -> pd.DataFrame:
        """`evaluation.tables.drift_correlations`, all models; the bootstrap's seed is the sample's."""
        frame: pd.DataFrame = _kept(self.study, "correlations", question)
        return frame

    def scores(self) -> pd.DataFrame:
        """All scores."""
        frame: pd.DataFrame = _kept(self.study, "scores")
        return frame

    def axes(self, *, include_rejected: bool) -> pd.DataFrame:
        """`evaluation.tables.axis_table`."""
        return axis_table(self.scores(), self.verdicts(), include_rejected=include_rejected)

    def transformations(self, *, include_rejected: bool) -> pd.DataFrame:
        """`evaluation.tables.transformation_table`."""
        return transformation_table(self.scores(), include_rejected=include_rejected)

    def left_out(self) -> pd.DataFrame:
        """`evaluation.tables.left_out`."""
        return left_out(self.scores())

    def _simulated_ratings(self) -> bool:
        return bool(_kept(self.study, "ratings")["simulated"].any())

    def _simulated_verdicts(self) -> bool:
        return any(verdict.simulated for verdict in self.verdicts())


def _says_simulated(read: Callable[[], bool]) -> bool:
    try:
        return read()
    except (DataError, OSError):  # the section that shows the record says what is wrong with it
        return False


def _stages(study: Study) -> list[Stage]:
    noted = read_manifest(study).get("stages", {})
    try:
        names = [*STAGES, *(name for name in noted if name not in STAGES)]
        return [_stage(name, noted.get(name, {})) for name in names]
    except (AttributeError, TypeError, ValueError):
        path = study.folder / "manifest.json"
        raise DataError(f"{path} is damaged: `stages` is not what a run writes; delete it and run again") from None


def _stage(name: str, entry: dict[str, Any]) -> Stage:
    finished, seconds = str(entry.get("finished_at", "")), entry.get("seconds")
    return Stage(name, STAGES.get(name, ""), finished, None if seconds is None else float(seconds))


def _pairs(study: Study) -> pd.DataFrame:
    return read_frame(study.folder / "pairs.parquet", Pair, "python -m annotation sample --study ...")


def _drift_by_quality(study: Study, question: str) -> pd.DataFrame:
    pairs, ratings, drift = (_kept(study, what) for what in ("pairs", "ratings", "drift"))
    return drift_by_quality(pairs, ratings, drift, per_pair=study.raters.per_pair, question=question)


def _correlations(study: Study, question: str) -> pd.DataFrame:
    return drift_correlations(_kept(study, "drift_by_quality", question), np.random.default_rng(study.sample.seed))


_RATED = ("pairs.parquet", "ratings.parquet", "drift.parquet")
# What can be read, how, and the files (of the study's folder) that it rests on.
_READERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "stages": (_stages, ("manifest.json",)),
    "verdicts": (read_verdicts, ("verdicts.json",)),
    "pairs": (_pairs, ("pairs.parquet",)),
    "ratings": (read_ratings, ("ratings.parquet",)),
    "drift": (read_drift, ("drift.parquet",)),
    "scores": (read_scores, ("scores.parquet",)),
    "drift_by_quality": (_drift_by_quality, _RATED),
    "correlations": (_correlations, _RATED),
}


def _kept(study: Study, what: str, *options: str) -> Any:
    files = [study.folder / name for name in _READERS[what][1]]
    stamps = tuple(_stamp(path) for path in (study.file, *files))
    try:
        return _read(what, stamps, options, study)
    except NotYetError:
        raise
    except DataError as error:
        if all(path.exists() for path in files):
            raise
        raise NotYetError(str(error)) from None


@st.cache_data(show_spinner=False, max_entries=32)
def _read(what: str, stamps: tuple[Stamp, ...], options: tuple[str, ...], _study: Study) -> Any:
    """Read anew; Streamlit keeps the result by the arguments (but the study, whose file is among the stamps)."""
    return _READERS[what][0](_study, *options)


def _stamp(path: Path) -> Stamp:
    """What tells one state of a file from another: path, time of change in nanoseconds, size (-1: not there)."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return str(path), 0, -1
    return str(path), int(1e9 * status.st_mtime), status.st_size

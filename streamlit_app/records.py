"""What pages show of a study: the one reader of its records, cached, that notices changed files.

Everything is computed by `generation`, `annotation` and `evaluation`; this module only calls them (`readers.made`
says how) and keeps what they said. A result is kept for as long as the files that it rests on keep their time and size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from annotation.records import Look, RuleSet, Verdict
from annotation.rubric import load_rubric
from annotation.status.status import Status
from annotation.verdicts.tables import verdict_table
from plumbline.errors import DataError
from plumbline.exhibits.table import Exhibit
from plumbline.prompts import prompt_folders
from plumbline.study import Study
from plumbline.transformations import ORIGINAL, TRANSFORMATIONS
from streamlit_app.readers import made
from streamlit_app.readers.made import Choice, Reader

Stamp = tuple[str, int, int]


class NotYetError(DataError):
    """A record that no stage has written yet; the message names the command that does."""


@dataclass(frozen=True)
class Records:
    """A study's records and what is made of them. Frames are copies: a page may do with them what it likes.

    Every method raises NotYetError for a record that is not there, DataError for a damaged one and StudyError
    where the study cannot say what is needed.
    """

    study: Study

    def status(self) -> Status:
        """Where the study stands, as `python -m annotation status` says it."""
        found: Status = self._kept("status")
        return found

    def looks(self) -> list[Look]:
        """When verdicts were reached."""
        found: list[Look] = self._kept("looks")
        return found

    def amendments(self) -> list[tuple[RuleSet, list[str]]]:
        """The rules that replaced others after the first rating, each with what it changed."""
        found: list[tuple[RuleSet, list[str]]] = self._kept("amendments")
        return found

    def coverage(self) -> pd.DataFrame:
        """How many scores there are, by transformation and status."""
        return self._frame("coverage")

    def verdicts(self) -> list[Verdict]:
        """The verdicts reached last."""
        found: list[Verdict] = self._kept("verdicts")
        return found

    def verdict_table(self) -> pd.DataFrame:
        """The verdicts as `annotation.verdicts.tables.verdict_table` has them."""
        return verdict_table(self.verdicts())

    def verdicts_hold(self) -> str:
        """Empty where the verdicts follow from what is on disk, else why not."""
        return str(self._kept("holds"))

    def simulated(self) -> bool:
        """Whether any rating, or any verdict, rests on simulated raters; records that cannot be read say nothing."""
        return bool(self._kept("simulated"))

    def questions(self) -> list[str]:
        """What raters were asked, in the rubric's order."""
        return load_rubric(self.study).question_names()

    def scale(self) -> tuple[int, ...]:
        """The points of the rating scale."""
        return tuple(load_rubric(self.study).scale)

    def judged(self, name: str) -> Exhibit:
        """A table of the campaign's report: table_2, agreement (both need verdicts that hold)."""
        return self._exhibits("judged")[name]

    def campaign(self) -> dict[str, Exhibit]:
        """Tables on the campaign, which are there before verdicts are: raters, signs, decisions, exclusions.

        Where there is a crowd also crowd_campaigns (cost against plan) and crowd_decisions.
        """
        return self._exhibits("campaign")

    def shares(self) -> pd.DataFrame:
        """How often each point was given (`annotation.report.exhibits.shares_frame`)."""
        return self._frame("shares")

    def means(self) -> pd.DataFrame:
        """Means against the threshold, a row a verdict and question (`annotation.report.exhibits.means_frame`)."""
        return self._frame("means")

    def decisions_at(self, *thresholds: float) -> pd.DataFrame:
        """What would be decided at thresholds (`evaluation.tables.sensitivity.threshold_decisions`)."""
        return self._frame("decisions_at", *thresholds)

    def scores_at(self, *thresholds: float) -> pd.DataFrame:
        """Scores as they would be at thresholds (`threshold_table` there)."""
        return self._frame("scores_at", *thresholds)

    def drift_choices(self) -> Mapping[str, Sequence[str]]:
        """The models, languages and tasks of rated pairs that have a drift."""
        found: dict[str, list[str]] = self._kept("drift_choices")
        return found

    def drift(self, choice: Choice) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`evaluation.tables.drift_by_quality` and `drift_correlations` of one model."""
        found: tuple[pd.DataFrame, pd.DataFrame] = self._kept("drift", choice)
        return found

    def text_drift(self, model: str) -> Exhibit:
        """The drift of all texts, rated or not, in one model's space; empty where it was not measured."""
        found: Exhibit = self._kept("text_drift", model)
        return found

    def ratings_of(self, pair_id: str) -> pd.DataFrame:
        """Every answer to one pair, by raters' pseudonyms, with what they wrote."""
        ratings: pd.DataFrame = self._held("ratings")
        columns = ["rater_id", "question", "value", "status", "comment", "excluded", "submitted_at", "simulated"]
        return ratings.loc[ratings["pair_id"] == pair_id, columns].reset_index(drop=True)

    def pair(self, pair_id: str) -> dict[str, Any] | None:
        """One pair's record, or None where the sample does not hold it (any more)."""
        pairs: pd.DataFrame = self._held("pairs")
        found = pairs[pairs["pair_id"] == pair_id].to_dict(orient="records")
        return {str(key): value for key, value in found[0].items()} if found else None

    def score_choices(self) -> Mapping[str, Sequence[str]]:
        """The `models` that have scores, the `groups` of languages of data sets, what is `refused` and included."""
        found: dict[str, list[str]] = self._kept("score_choices")
        return found

    def scores_outrun(self) -> str:
        """Empty where the scores are those that the verdicts let through, else why not."""
        return str(self._kept("outrun"))

    def notes(self) -> tuple[str, ...]:
        """What the scores lack, and why (`evaluation.report.page.notes_of`)."""
        found: tuple[str, ...] = self._kept("notes")
        return found

    def ranks(self, group: str = "") -> pd.DataFrame:
        """Models' ranks by original and by transformed scores."""
        return self._frame("ranks", group)

    def tables(self, name: str, *, group: str = "", refused: bool = False, model: str = "") -> list[Exhibit]:
        """A table of `evaluation.report.paper_tables` in its parts, or several that belong together."""
        found: list[Exhibit] = self._kept(f"table {name}", group, refused, model)
        return found

    def errors(self, by: str, *, after_retries: bool) -> pd.DataFrame:
        """`generation.errors.error_rates`."""
        return self._frame("errors", by, after_retries)

    def lengths(self) -> pd.DataFrame:
        """`generation.compare.length_table`."""
        return self._frame("lengths")

    def units(self) -> list[tuple[str, int]]:
        """The transformations and seeds that have outputs on disk."""
        wanted = [(name, seed) for name in self.study.transformations for seed in self.study.seeds]
        return [unit for unit in wanted if self.study.transformation_file(*unit).exists()]

    def _frame(self, what: str, *options: Any) -> pd.DataFrame:
        frame: pd.DataFrame = self._kept(what, *options)
        return frame

    def _exhibits(self, what: str, *options: Any) -> dict[str, Exhibit]:
        found: dict[str, Exhibit] = self._kept(what, *options)
        return found

    def _kept(self, what: str, *options: Any) -> Any:
        """A copy of what a reader of `made.READERS` says."""
        reader = made.READERS[what]
        return self._checked(reader, lambda stamps: _read(what, stamps, options, self))

    def _held(self, what: str, *options: Any) -> Any:
        """A record as it was read, shared by all: nobody may change it."""
        reader = made.RECORDS[what]
        return self._checked(reader, lambda stamps: _hold(what, stamps, options, self))

    def _checked(self, reader: Reader, read: Callable[[tuple[Stamp, ...]], Any]) -> Any:
        try:
            return read(_stamps(self.study, (*reader.needs, *reader.watches)))
        except NotYetError:
            raise
        except DataError as error:
            if all((self.study.folder / name).exists() for name in reader.needs):
                raise
            raise NotYetError(str(error)) from None


@st.cache_data(show_spinner=False, max_entries=256)
def _read(what: str, stamps: tuple[Stamp, ...], options: tuple[Any, ...], _records: Records) -> Any:
    """Made anew; Streamlit keeps the result by the arguments (but the study, whose file is among the stamps)."""
    return made.READERS[what].make(made.Source(_records.study, _records._held), *options)


@st.cache_resource(show_spinner=False, max_entries=16)
def _hold(what: str, stamps: tuple[Stamp, ...], options: tuple[Any, ...], _records: Records) -> Any:
    """Read anew, and shared by all sessions. Raises DataError for a transformation that there is not."""
    reader = made.RECORDS[what]
    found = reader.make(made.Source(_records.study, _records._held), *options)
    if isinstance(found, pd.DataFrame) and "transformation" in found:
        unknown = sorted({*found["transformation"].unique()} - {ORIGINAL, *TRANSFORMATIONS})
        if unknown:
            path = _records.study.folder / (*reader.needs, *reader.watches)[0]
            raise DataError(f"{path} is damaged: {unknown[0]!r} is no transformation; make it again")
    return found


def _stamps(study: Study, names: Sequence[str]) -> tuple[Stamp, ...]:
    """The states of the study's file and of files of its folder, as `made.Reader` names them."""
    found = [study.file]
    for name in names:
        if name == "*":
            found += sorted(path for path in study.folder.glob("*") if path.is_file())
            found += [*_below(study.outputs), *(path for data in study.data_files() for path in [data, *_below(data)])]
            found += [path for folder in prompt_folders() for path in _below(folder)]
        elif name.endswith("/"):
            found += _below(study.folder / name)
        else:
            found.append(study.folder / name)
    return tuple(map(_stamp, found))


def _below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def _stamp(path: Path) -> Stamp:
    """What tells one state of a file from another: path, time of change in nanoseconds, size (-1: not there)."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return str(path), 0, -1
    return str(path), int(1e9 * status.st_mtime), status.st_size

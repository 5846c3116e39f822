"""What the dashboard shows, and which function of `generation`, `annotation` or `evaluation` makes it of which files.

Nothing is computed here: records are filtered by what a page asks for and handed to the function.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import pandas as pd

from annotation.ratings.collected import Collected
from annotation.ratings.ratings import read_ratings
from annotation.ratings.review import signs_of
from annotation.records import Look, RuleSet, Verdict
from annotation.status.status import Status, read_status
from annotation.verdicts.preregistration import amendments, first_rating, read_rules
from annotation.verdicts.verdicts import read_looks, read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_other_file
from plumbline.errors import DataError
from plumbline.manifest import read_kept_frame, read_manifest
from plumbline.records import Score
from plumbline.study import Study


class Held(Protocol):
    """Gives a record of `RECORDS` as it was read, shared by all; some have options."""

    def __call__(self, what: str, /, *options: Any) -> Any:
        """The record."""
        ...


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
    held: Held

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdicts reached last."""
        found: Sequence[Verdict] = self.held("verdicts")
        return found


def _status(source: Source) -> Status:
    noted = read_manifest(source.study).get("stages", {})
    if not isinstance(noted, dict) or not all(isinstance(entry, dict) for entry in noted.values()):
        path = source.study.folder / "manifest.json"
        raise DataError(f"{path} is damaged: `stages` is not what a run writes; delete it and run again")
    return read_status(source.study, datetime.now(UTC), source.held("collected"), lambda: source.held("signs"))


def _looks(source: Source) -> list[Look]:
    return read_looks(source.study)


def _amendments(source: Source) -> list[tuple[RuleSet, list[str]]]:
    return amendments(read_rules(source.study), first_rating(source.held("collected").ratings))


def _holds(source: Source) -> str:
    """Why the verdicts no longer hold; empty where they do."""
    try:
        refuse_stale(source.study, source.verdicts)
        refuse_other_file(source.study)
    except DataError as error:
        return str(error)
    return ""


def _simulated(source: Source) -> bool:
    """Whether any rating or verdict is simulated; records that cannot be read say nothing, and their pages say why."""
    found = False
    with contextlib.suppress(DataError, OSError):
        found = bool(source.held("collected").ratings["simulated"].any())
    with contextlib.suppress(DataError, OSError):
        found = found or any(verdict.simulated for verdict in source.verdicts)
    return found


def _coverage(source: Source) -> pd.DataFrame:
    """Columns: transformation, status, n (scores of all models, data sets and seeds)."""
    # What `evaluation.results` would import to read the same table takes longer than the page.
    scores = read_kept_frame(source.study, "scores.parquet", Score, source.study.command("evaluation.run"))
    counts = scores.groupby(["transformation", "status"], sort=False).size()
    found: pd.DataFrame = counts.rename("n").reset_index()
    return found


@dataclass(frozen=True)
class Reader:
    """How something is made, and the files (of the study's folder) that it rests on.

    Without those that it `needs` it cannot be made; those that it `watches` may be missing. `*` stands for all that the
    state of a study rests on; a name that ends in / for all below that folder.
    """

    make: Callable[..., Any]
    needs: tuple[str, ...]
    watches: tuple[str, ...] = ()


def _later(name: str, *fixed: object) -> Callable[..., Any]:
    """The function `name` of `streamlit_app.readers.later`, which is imported when it is called first."""

    def make(source: Source, *options: object) -> Any:
        return getattr(import_module("streamlit_app.readers.later"), name)(source, *fixed, *options)

    return make


_COLLECTED = ("pairs.parquet", "controls.parquet", "ratings.parquet", "control_ratings.parquet")
_RATED = ("pairs.parquet", "ratings.parquet")
_MOVED = (*_RATED, "drift.parquet")
_SCORED = ("scores.parquet", "verdicts.json")
# A ledger that is being written has its last entries beside it.
_LEDGER = ("crowd.sqlite", "crowd.sqlite-wal")
_RULES = ("rules.json", "decisions.json", "looks.json", "controls.parquet", "control_ratings.parquet", *_LEDGER)
_JUDGED = (*_RATED, "control_ratings.parquet", "agreement.json", "verdicts.json")
_OUTPUTS = ("transformations/", "candidates/")
_PRINTED = ("axes", "transformations", "shifts", "kendall", "split_half", "ranking", "datasets", "left_out")

#: Records as they are read, and what several readers make of them first.
RECORDS: dict[str, Reader] = {
    "verdicts": Reader(lambda source: read_verdicts(source.study), ("verdicts.json",)),
    "ratings": Reader(lambda source: read_ratings(source.study), ("ratings.parquet",)),
    "collected": Reader(lambda source: Collected.read(source.study), (), _COLLECTED),
    "signs": Reader(lambda source: signs_of(source.study, source.held("collected")), _RATED, _RULES),
    "pairs": Reader(_later("pairs"), ("pairs.parquet",)),
    "drift": Reader(_later("drift"), ("drift.parquet",)),
    "moved": Reader(_later("moved"), _MOVED),
    "text_drift": Reader(_later("text_drift"), (), ("text_drift.parquet",)),
    "unnamed_scores": Reader(_later("unnamed_scores"), ("scores.parquet",)),
    "scores": Reader(_later("scores"), ("scores.parquet",)),
    "material": Reader(_later("material"), _JUDGED, _RULES),
}
#: What is made of them.
READERS: dict[str, Reader] = {
    "status": Reader(_status, (), ("*",)),
    "looks": Reader(_looks, (), _RULES),
    "amendments": Reader(_amendments, (), (*_RULES, *_COLLECTED)),
    "verdicts": Reader(lambda source: list(source.verdicts), ("verdicts.json",)),
    "holds": Reader(_holds, ("verdicts.json",), (*_RATED, "manifest.json")),
    "simulated": Reader(_simulated, (), ("verdicts.json", *_COLLECTED)),
    "coverage": Reader(_coverage, ("scores.parquet",)),
    "judged": Reader(_later("judged"), _JUDGED, _RULES),
    "campaign": Reader(_later("campaign"), (*_RATED, "control_ratings.parquet"), _RULES),
    "shares": Reader(_later("shares"), _JUDGED, _RULES),
    "means": Reader(_later("means"), ("verdicts.json",)),
    "decisions_at": Reader(_later("decisions_at"), ("verdicts.json",)),
    "scores_at": Reader(_later("scores_at"), _SCORED),
    "drift_choices": Reader(_later("drift_choices"), _MOVED),
    "drift": Reader(_later("drift_by_quality"), _MOVED),
    "text_drift": Reader(_later("text_drift_of"), _SCORED, ("text_drift.parquet",)),
    "score_choices": Reader(_later("score_choices"), ("scores.parquet",)),
    "outrun": Reader(_later("outrun"), _SCORED),
    "notes": Reader(_later("notes"), _SCORED),
    "errors": Reader(_later("errors"), ("texts.parquet",), _OUTPUTS),
    "lengths": Reader(_later("lengths"), ("texts.parquet",), _OUTPUTS),
    "ranks": Reader(_later("ranks"), _SCORED),
    **{f"table {name}": Reader(_later("table", name), _SCORED) for name in _PRINTED},
}

"""The score matrix: models by tasks without gaps, and what was left out on the way, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from plumbline.errors import DataError
from plumbline.statistics.estimates import Floats
from plumbline.statistics.seeding import stream

GAPS = ("refuse", "models", "tasks", "fewest")
LEAST_MODELS = 3  # on either side of the split


@dataclass(frozen=True)
class MatrixOmission:
    """A model or a task (`kind`) that is not in the matrix, and why."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True)
class Scores:
    """Scores as they were read: models (index) by tasks (columns), NaN where there is none.

    `families` name each model's; `files` are what they were read from, with their hashes; `notes` say what was
    settled while reading (revisions, splits, languages); `left` what is not in them.
    """

    frame: pd.DataFrame
    families: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    omissions: tuple[MatrixOmission, ...] = ()


def whole(scores: Scores, gaps: str) -> Scores:
    """The scores without gaps and without constant tasks, which tell no model apart. Raises DataError as `closed`."""
    scores = closed(scores, gaps)
    frame, omissions = scores.frame, list(scores.omissions)
    constant = [name for name in frame if len(frame) and np.ptp(frame[name].to_numpy()) == 0]
    omissions += [
        MatrixOmission("task", str(name), "all models have the same score") for name in constant if len(frame) > 1
    ]
    frame = frame.drop(columns=constant) if len(frame) > 1 else frame
    return Scores(frame, scores.families, scores.files, scores.notes, tuple(omissions))


def closed(scores: Scores, gaps: str) -> Scores:
    """The scores without gaps. Raises DataError where there are gaps and nothing says how.

    "models": every model that lacks a score is left out; "tasks": every task that does; "fewest": whichever model or
    task lacks the largest share of its scores, one after another, until no gap is left. "keep": gaps stay, and only
    models and tasks without any score are left out.
    """
    frame, omissions = scores.frame, list(scores.omissions)
    for kind, axis in (("model", 1), ("task", 0)):
        for name in list(frame.index[frame.isna().all(axis=1)] if axis else frame.columns[frame.isna().all(axis=0)]):
            omissions.append(MatrixOmission(kind, str(name), "no score at all"))
            frame = frame.drop(index=name) if axis else frame.drop(columns=name)
    if frame.isna().to_numpy().any() and gaps != "keep":
        if gaps == "refuse":
            raise DataError(_holes(frame))
        complete = _without_gaps(frame, gaps)
        for kind, names, lacks in (
            ("model", frame.index, frame.isna().sum(axis=1)),
            ("task", frame.columns, frame.isna().sum(axis=0)),
        ):
            remaining = set(complete.index if kind == "model" else complete.columns)
            of = frame.shape[1] if kind == "model" else frame.shape[0]
            omissions += [
                MatrixOmission(kind, str(name), f"lacks {lacks[name]} of {of} scores (--gaps {gaps})")
                for name in names
                if name not in remaining
            ]
        frame = complete
    families = {name: scores.families[name] for name in frame.index}
    return Scores(frame, families, scores.files, scores.notes, tuple(omissions))


def _without_gaps(frame: pd.DataFrame, gaps: str) -> pd.DataFrame:
    if gaps == "models":
        return frame.dropna(axis=0)
    if gaps == "tasks":
        return frame.dropna(axis=1)
    while (missing := frame.isna()).to_numpy().any():
        rows, columns = missing.mean(axis=1), missing.mean(axis=0)
        by_task = columns.max() >= rows.max()
        frame = frame.drop(columns=columns.idxmax()) if by_task else frame.drop(index=rows.idxmax())
    return frame


def _holes(frame: pd.DataFrame) -> str:
    """One line: which gaps, and what each way to close them leaves."""
    missing = frame.isna()
    by_model, by_task = missing.sum(axis=1), missing.sum(axis=0)
    ways = []
    for way in GAPS[1:]:
        rest = _without_gaps(frame, way)
        ways.append(f"--gaps {way} leaves {rest.shape[0]} models and {rest.shape[1]} tasks")
    return (
        f"{int(missing.to_numpy().sum())} of {frame.size} scores are missing ({frame.shape[0]} models, {frame.shape[1]}"
        f" tasks; most in model {by_model.idxmax()!s}: {int(by_model.max())}, and task {by_task.idxmax()!s}:"
        f" {int(by_task.max())}); nothing stands in for a score, so say what is left out: {'; '.join(ways)}"
    )


def split(scores: Scores, share: float, seed: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which models are held out: whole families, drawn by `seed`, up to `share` of the models.

    Raises DataError where fewer than three models would be on one side.
    """
    names = list(scores.frame.index)
    families = pd.Series([scores.families[name] for name in names])
    sizes = families.value_counts().sort_index()
    most = round(share * len(names))
    held: set[str] = set()
    n_held = 0
    for family in stream(seed, "held-out models").permutation(np.array(sizes.index, dtype=object)):
        if n_held + sizes[family] <= most:
            held.add(str(family))
            n_held += int(sizes[family])
    if n_held < LEAST_MODELS or len(names) - n_held < LEAST_MODELS:
        raise DataError(
            f"{len(names)} models of {len(sizes)} families cannot be split: a selection needs {LEAST_MODELS} models to"
            f" choose by and {LEAST_MODELS} held out, and --held-out {share:g} would hold out {n_held}; add models,"
            " name smaller families, or change --held-out"
        )
    return families.isin(held).to_numpy(bool)


def array(scores: Scores) -> Floats:
    """The matrix as numbers."""
    return scores.frame.to_numpy(np.float64)

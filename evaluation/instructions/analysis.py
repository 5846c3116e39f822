"""The analysis behind a report on wordings: the scores that count, their tables, and doubts about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from evaluation.display import short_names
from evaluation.instructions import spread
from evaluation.instructions.boards import HOLES, chosen_boards, recommended_board
from evaluation.instructions.grid import (
    Choice,
    Grid,
    grid_of,
    marked,
    parts_of,
    reasons,
)
from evaluation.instructions.scores import DEFAULT
from evaluation.instructions.spread import source_tests
from plumbline.errors import DataError, StudyError
from plumbline.statistics.estimates import Floats, stream
from plumbline.words import count

SIMULATED = "SIMULATED LABELS: a program, not people, decided which wordings are acceptable, to demonstrate the flow."
MATCHED, PUBLISHED = "matched", "published"
SOURCES = ("machine", "human", "all")
_MOST_NAMED = 4  # tasks, or pairs, named in a note


class MatchedDefaults:
    """The models' own prompts, scored in the wordings' run and on their part of each task."""

    called: ClassVar[str] = "default"
    unknown: ClassVar[str] = "no default was scored in the same run, and on the same split and subset, as the wordings"

    def grid(self, grid: Grid) -> Grid:
        """Return the grid with these defaults."""
        return grid

    def notes(self, grid: Grid, holes: str) -> list[str]:
        """Return notes on what these defaults lack; `holes` is the rule for missing ones."""
        missing = int(np.isnan(grid.default).sum())
        are = "is" if missing == 1 else "are"
        note = (
            f"{missing} of {grid.default.size} defaults from the wordings' run and part {are} missing: {HOLES[holes]}"
        )
        return [note] if missing else []


class PublishedDefaults(MatchedDefaults):
    """Published scores of the models' own prompts."""

    called, unknown = "published default", "no published default has two wordings to compare it with"

    def grid(self, grid: Grid) -> Grid:
        """Return the grid with published scores as defaults. Raises StudyError without any."""
        if np.isnan(grid.reported).all():
            raise StudyError("no published defaults (prompt id `reported`); leave out --defaults")
        return replace(grid, default=grid.reported)

    def notes(self, grid: Grid, holes: str) -> list[str]:
        """Return that they may be of other conditions."""
        return [
            "defaults are published scores, whose split, subset, revision and mteb version may differ from those of the"
            " wordings' scores"
        ]


#: The defaults that wordings can be compared with, by the option that chooses them.
DEFAULTS: Mapping[str, MatchedDefaults] = {MATCHED: MatchedDefaults(), PUBLISHED: PublishedDefaults()}


@dataclass(frozen=True)
class Settings:
    """A command's settings: parts of tasks, source of wordings, defaults, the rule for missing scores, and the seed."""

    choice: Choice = field(default_factory=Choice)
    source: str = ""
    defaults: str = MATCHED
    holes: str = "mteb"
    seed: int = 1337


@dataclass(frozen=True)
class Analysis:
    """Marked scores, all wordings (`whole`), and the analysed ones (`grid`): accepted, of one source.

    Tables are made when they are first used.
    """

    marked: pd.DataFrame
    whole: Grid
    grid: Grid
    settings: Settings
    source: str
    notes: tuple[str, ...]

    @cached_property
    def distribution(self) -> pd.DataFrame:
        """One row for each model and task."""
        return distribution_table(self.grid)

    @cached_property
    def variation(self) -> pd.DataFrame:
        """One row for each model."""
        return variation_table(self.grid)

    @cached_property
    def inflation(self) -> pd.DataFrame:
        """One row for each model."""
        return inflation_table(self.grid, seed=self.settings.seed)

    @cached_property
    def boards(self) -> pd.DataFrame:
        """One row for each board and model."""
        return chosen_boards(self.grid, self.settings.holes)

    @cached_property
    def recommended(self) -> pd.DataFrame:
        """The board by means over wordings."""
        return recommended_board(self.grid, self.settings.holes, seed=self.settings.seed)

    @cached_property
    def origins(self) -> pd.DataFrame:
        """People's accepted wordings against machines'."""
        return source_tests(self.whole.accepted(), seed=self.settings.seed)

    @cached_property
    def gate(self) -> pd.DataFrame:
        """Results with accepted wordings, and with all."""
        return gate_table(self.whole.of_source(self.source) if self.source else self.whole)

    @property
    def simulated(self) -> bool:
        """True if labels are simulated."""
        return self.whole.simulated

    @property
    def holes(self) -> int:
        """The number of missing defaults on the boards' tasks."""
        return int(np.isnan(self.grid.default).sum())


def analyse(
    scores: pd.DataFrame,
    settings: Settings,
    notes: tuple[str, ...] = (),
    where: Path | str = "scores",
) -> Analysis:
    """Return the analysis of a long table (`checked_scores`).

    By default machines' wordings are analysed if there are any, as people's often cover only some models; a separate
    table compares both. Raises DataError if nothing can be compared, StudyError for an unavailable choice.
    """
    if settings.holes not in HOLES or settings.defaults not in DEFAULTS:
        raise StudyError(f"holes must be one of {', '.join(HOLES)}; defaults must be {' or '.join(DEFAULTS)}")
    named = short_names(set(scores["model"]))
    try:
        marked_scores = marked(scores, settings.choice)
        whole = grid_of(marked_scores, named.__getitem__)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    sources = [source for source in whole.sources if source]
    source = settings.source or ("machine" if "machine" in sources else "")
    source = "" if source == "all" or not sources else source
    if source and source not in sources:
        raise StudyError(f"{where}: no wording has the source {source!r}; sources are: {', '.join(sources)}")
    grid = whole.accepted()
    grid = (grid.of_source(source) if source else grid).with_wordings()
    try:
        grid = DEFAULTS[settings.defaults].grid(grid)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from None
    if (~np.isnan(grid.scores)).sum(axis=-1).max(initial=0) < 2:
        raise StudyError(f"{where}: no task has 2 accepted wordings, so nothing can be compared")
    return Analysis(
        marked_scores,
        whole,
        grid,
        settings,
        source,
        (*notes, *_said(marked_scores, whole, grid, source, settings)),
    )


def _said(scores: pd.DataFrame, whole: Grid, grid: Grid, source: str, settings: Settings) -> list[str]:
    """Return notes on the basis of the numbers, and what they lack."""
    notes = []
    if not whole.gated:
        notes.append("nobody has labelled the wordings, so all wordings count")
    elif (unsaid := _distinct(whole, whole.facts["label"] == "")) > 0:
        notes.append(f"left out: {count(unsaid, 'wording')} without a label")
    if source and len([name for name in whole.sources if name]) > 1:
        notes.append(f"only wordings with source {source} are analysed (--source); a separate table has other wordings")
    if source and (unsaid := _distinct(whole, whole.facts["source"] == "")) > 0:
        notes.append(f"left out: {count(unsaid, 'wording')} without a source (--source all includes them)")
    notes += _parts_said(parts_of(scores))
    lacking = sorted({*whole.tasks, *whole.models} - {*grid.tasks, *grid.models})
    if lacking:
        named = f"{', '.join(lacking[:_MOST_NAMED])}{' ...' if len(lacking) > _MOST_NAMED else ''}"
        notes.append(f"tasks and models left out, as none of their wordings counts: {named}")
    notes += DEFAULTS[settings.defaults].notes(grid, settings.holes)
    scored = ~np.isnan(grid.scores)
    if lacking_some := int((scored.any(axis=-1) & (scored != scored.any(axis=0)).any(axis=-1)).sum()):
        notes.append(
            f"in {lacking_some} of {grid.default.size} cases (model and task) the model has no score under some"
            " wordings that other models were scored under, so its mean is over fewer wordings"
        )
    if few := int((scored.sum(axis=-1) < 2).sum()):
        notes.append(f"not analysed: {few} of {grid.default.size} cases (model and task) with fewer than 2 wordings")
    for row in reasons(scores).head(3).to_dict(orient="records"):
        verb = "does" if row["n"] == 1 else "do"
        notes.append(f"{count(row['n'], 'score')} {verb} not count: {row['reason']} (first: {row['example']})")
    return notes


def _parts_said(parts: pd.DataFrame) -> list[str]:
    """Return a note on the analysed parts of tasks with several."""
    several = parts[parts.groupby("task")["task"].transform("size") > 1]
    taken = [
        f"{task}: {split}/{subset}" for task, split, subset, _, chosen in several.itertuples(index=False) if chosen
    ]
    more = f" and {len(taken) - _MOST_NAMED} more" if len(taken) > _MOST_NAMED else ""
    named = "; ".join(taken[:_MOST_NAMED])
    return (
        [f"of tasks with several parts, one part is analysed ({named}{more}); --part chooses another"] if taken else []
    )


def _distinct(grid: Grid, which: np.ndarray) -> int:
    return int((which & (grid.prompts != "") & (~np.isnan(grid.scores)).any(axis=0)).sum())


#: The rule for the verdicts of `distribution_table` (the paper has no threshold).
RULE = "inflated: the default is above the wordings' upper quartile; deflated: below the lower quartile; else typical"


def distribution_table(grid: Grid) -> pd.DataFrame:
    """Return a row for each model and task with wordings: their scores, and the default's position.

    Columns: n (distinct wordings), mean, median, lower_quartile, upper_quartile, min, max, sd (population), range, cv;
    default, none, ecdf (share of wordings at most the default), ecdf_with_default (the default counted too), difference
    (default minus median, in points), in_sds (the same in standard deviations), verdict (`RULE`), reason.
    """
    n, mean, sd = spread.moments(grid.scores)
    middle = spread.median(grid.scores)
    low, high = (spread.quantile(grid.scores, share) for share in (0.25, 0.75))
    least, most = (spread.quantile(grid.scores, share) for share in (0.0, 1.0))
    in_sds = np.full(sd.shape, np.nan)
    np.divide(grid.default - middle, sd, out=in_sds, where=(sd > 0) & (n >= spread.LEAST))
    columns: dict[str, Floats] = {"n": n, "mean": mean, "median": middle, "lower_quartile": low, "upper_quartile": high}
    columns |= {"min": least, "max": most, "sd": sd, "range": most - least, "cv": spread.variation(grid.scores)}
    columns |= {"default": grid.default, "none": grid.none, "ecdf": spread.default_ecdf(grid.scores, grid.default)}
    columns["ecdf_with_default"] = spread.default_ecdf(grid.scores, grid.default, with_itself=True)
    columns |= {"difference": 100 * (grid.default - middle), "in_sds": in_sds}
    index = pd.MultiIndex.from_product([grid.models, grid.tasks], names=["model", "task"])
    table = pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index).reset_index()
    table["verdict"] = np.select(
        [table["default"].isna() | (table["n"] < spread.LEAST), table["default"] > table["upper_quartile"],
         table["default"] < table["lower_quartile"]],
        ["", "inflated", "deflated"], "typical",
    )  # fmt: skip
    why = list(map(spread.variation_reason, n.ravel().astype(np.int64).tolist(), mean.ravel().tolist()))
    lacking = np.where(table["default"].isna(), "no default from the wordings' run and part", "")
    table["reason"] = ["; ".join(filter(None, both)) for both in zip(why, lacking, strict=True)]
    table["n"] = table["n"].astype(np.int64)
    return table


def variation_table(grid: Grid) -> pd.DataFrame:
    """Return a row for each model: coefficients of variation (median, largest and its task), sd and range in points."""
    cv, (n, _, sd) = spread.variation(grid.scores), spread.moments(grid.scores)
    some = np.where(n >= spread.LEAST, 100.0, np.nan)
    reach = (spread.quantile(grid.scores, 1.0) - spread.quantile(grid.scores, 0.0)) * some
    rows = []
    for number, model in enumerate(grid.models):
        of_model = cv[number]
        defined = ~np.isnan(of_model)
        most = int(np.nanargmax(of_model)) if defined.any() else 0
        rows.append(
            {"model": model, "n_tasks": int(defined.sum()), "cv_median": float(spread.median(of_model))}
            | {
                "cv_max": float(of_model[most]) if defined.any() else np.nan,
                "task": grid.tasks[most] if defined.any() else "",
            }
            | {
                "sd_median": float(spread.median(sd[number] * some[number])),
                "range_median": float(spread.median(reach[number])),
            }
            | {"reason": "" if defined.all() else f"undefined on {int((~defined).sum())} of {len(of_model)} tasks"}
        )
    return pd.DataFrame(rows)


def best_worst_table(grid: Grid) -> pd.DataFrame:
    """Return the best and the worst wording of each model on each task, including its default (Tables 5 to 15).

    Columns: task, model, best, best_prompt (id), best_text, worst, worst_prompt, worst_text, gap in points. Of equal
    ones the default is named, then the first.
    """
    rows = []
    for t, task in enumerate(grid.tasks):
        for m, model in enumerate(grid.models):
            scores = np.array([grid.default[m, t], *grid.scores[m, t]])
            if np.isnan(scores).all():
                continue
            ids, texts = [DEFAULT, *grid.prompts[t]], ["", *grid.facts["text"][t]]
            best, worst = int(np.nanargmax(scores)), int(np.nanargmin(scores))
            rows.append(
                {"task": task, "model": model, "best": scores[best], "best_prompt": ids[best], "best_text": texts[best]}
                | {"worst": scores[worst], "worst_prompt": ids[worst], "worst_text": texts[worst]}
                | {"gap": 100 * (scores[best] - scores[worst])}
            )
    return pd.DataFrame(rows)


def compared_default(grid: Grid) -> Floats:
    """Return the defaults on models' tasks with enough wordings; NaN elsewhere."""
    n, _, _ = spread.moments(grid.scores)
    return np.where(n >= spread.LEAST, grid.default, np.nan)


def inflation_table(grid: Grid, *, seed: int) -> pd.DataFrame:
    """Return a row for each model: on how many tasks the default is above the median wording, and by how much.

    share, share_low, share_high (`share_above_median`), figure5, figure5_low, figure5_high (`median_ecdf`), points
    (mean over tasks of default minus median), in_sds (median over tasks), above_all (tasks where no wording reaches
    it), n_tasks, reason.
    """
    table = distribution_table(grid)
    rows = []
    for number, model in enumerate(grid.models):
        scores, default = grid.scores[number], compared_default(grid)[number]
        share = spread.share_above_median(scores, default, rng=stream(seed, "share above median", model))
        figure5 = spread.median_ecdf(scores, default, rng=stream(seed, "median of the default's ECDF", model))
        of_model = table[(table["model"] == model) & table["difference"].notna() & (table["n"] >= spread.LEAST)]
        rows.append(
            {"model": model, "n_tasks": share.n, "share": share.value, "share_low": share.low, "share_high": share.high}
            | {"figure5": figure5.value, "figure5_low": figure5.low, "figure5_high": figure5.high}
            | {"points": float(of_model["difference"].mean()), "in_sds": float(of_model["in_sds"].median())}
            | {
                "above_all": int((of_model["default"] > of_model["max"]).sum()),
                "reason": _why(share.reason, figure5.reason),
            }
        )
    return pd.DataFrame(rows)


def _why(of_share: str, of_ecdf: str) -> str:
    """Return why a share above the median, and a median of the ECDF, have no value or interval."""
    if of_share == of_ecdf:
        return of_share
    reason_of = {"default above median": of_share, "default's median percentile": of_ecdf}
    return "; ".join(f"{name} has no interval, as {why}" for name, why in reason_of.items() if why)


def gate_table(grid: Grid) -> pd.DataFrame:
    """Return each model's results with accepted wordings only, and with all.

    Columns: wordings (scores that count), mean, cv_median, best (mean over tasks of the best wording), share (of tasks
    whose default is above the median); `all_...` the same with every wording. Both cover the same models' tasks, those
    with an accepted wording. Empty if nothing was refused on them.
    """
    accepted = grid.accepted()
    scored = ~np.isnan(accepted.scores).all(axis=-1, keepdims=True)
    accepted, grid = (
        accepted.with_wordings(),
        replace(grid, scores=np.where(scored, grid.scores, np.nan)).with_wordings(),
    )
    if not grid.gated or (np.isnan(accepted.scores) == np.isnan(grid.scores)).all():
        return pd.DataFrame()
    parts = []
    for prefix, grid_shown in (("", accepted), ("all_", grid)):
        n, mean, _ = spread.moments(grid_shown.scores)
        above = spread.above_median(grid_shown.scores, compared_default(accepted))
        best = spread.quantile(grid_shown.scores, 1.0)
        columns = {
            "wordings": n.sum(axis=1),
            "mean": mean.mean(axis=1),
            "cv_median": spread.median(spread.variation(grid_shown.scores)),
        }
        columns |= {"best": best.mean(axis=1), "share": _mean_of_known(above)}
        parts.append(pd.DataFrame({f"{prefix}{name}": values for name, values in columns.items()}))
    table = pd.concat(parts, axis=1)
    table.insert(0, "model", list(grid.models))
    return table.astype({"wordings": int, "all_wordings": int})


def _mean_of_known(values: Floats) -> Floats:
    defined = (~np.isnan(values)).sum(axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.nansum(values, axis=1), defined, out=means, where=defined > 0)
    return means

"""The analysis behind a report on wordings: the scores that count, their tables, and doubts about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from cyclopts import CoercionError, Parameter, Token

from evaluation.display import short_names
from evaluation.instructions import spread
from evaluation.instructions.boards import HOLES, chosen_boards, recommended_board
from evaluation.instructions.grid import WHY, Grid, Parts, grid_of, marked, reasons
from evaluation.score_frames import DEFAULT, is_wording
from plumbline.cli import Choice, Names
from plumbline.errors import DataError, StudyError
from plumbline.statistics.estimates import Floats, stream
from plumbline.statistics.paired import holm
from plumbline.words import count

SIMULATED = "SIMULATED LABELS: a program, not people, decided which wordings are acceptable, to demonstrate the flow."
MATCHED, PUBLISHED = "matched", "published"
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


def _parts(_: object, words: Sequence[Token]) -> dict[str, tuple[str, str]]:
    """Return the split and the subset that the words name for each task."""
    parts: dict[str, tuple[str, str]] = {}
    for word in words:
        task, _, part = word.value.partition("=")
        split, _, subset = part.partition("/")
        if not (task and split and subset):
            raise CoercionError(f"{word.value!r} is not TASK=SPLIT/SUBSET, such as STS22.v2=test/en", token=word)
        if task in parts:
            raise CoercionError(f"names two parts of {task}, but only one can be analysed; name one", token=word)
        parts[task] = split, subset
    return parts


@Parameter(name="*")
@dataclass(frozen=True)
class Settings:
    """A report's settings.

    Args:
        tasks: Only these tasks, such as STS14,STS15.
        parts: For a task with several parts: the part to analyse (default: most scores); repeatable.
        source: Source of the wordings to analyse (default: machine if it wrote any, else all).
        defaults: Scores of the models' own prompts: from the same run, or as published (default: matched).
        holes: Missing defaults on boards: no points (mteb), or the mean over present tasks (default: mteb).
        seed: Random seed.
    """

    tasks: Names = ()
    parts: Annotated[
        Parts, Parameter(name="--part", metavar="TASK=SPLIT/SUBSET", converter=_parts, n_tokens=-1, accepts_keys=False)
    ] = field(default_factory=dict)
    source: Annotated[Literal["machine", "human", "all"] | None, Choice] = None
    defaults: Literal["matched", "published"] = "matched"
    holes: Literal["mteb", "present"] = "mteb"
    seed: Annotated[int, Parameter(parse=False)] = 1337  # the study's, or --seed


@dataclass(frozen=True)
class Analysis:
    """Marked scores, `all_wordings`, and the analysed ones (`grid`): accepted, of one source.

    Tables are computed when they are first used.
    """

    marked: pd.DataFrame
    all_wordings: Grid
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
        return variation_table(self.distribution)

    @cached_property
    def inflation(self) -> pd.DataFrame:
        """One row for each model."""
        return inflation_table(self.grid, self.distribution, seed=self.settings.seed)

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
        return source_tests(self.all_wordings.accepted(), seed=self.settings.seed)

    @cached_property
    def gate(self) -> pd.DataFrame:
        """Results with accepted wordings, and with all."""
        return gate_table(self.all_wordings.of_source(self.source))

    @property
    def simulated(self) -> bool:
        """True if labels are simulated."""
        return self.all_wordings.simulated


def analyse(
    scores: pd.DataFrame, settings: Settings, notes: tuple[str, ...] = (), location: Path | str = "scores"
) -> Analysis:
    """Return the analysis of a long table (`checked_scores`).

    By default machines' wordings are analysed if there are any, as people's often cover only some models; a separate
    table compares both. Raises DataError if nothing can be compared, StudyError for an unavailable choice.
    """
    named = short_names(set(scores["model"]))
    try:
        marked_scores = marked(scores, settings.tasks, settings.parts)
        all_wordings = grid_of(marked_scores, named.__getitem__)
    except DataError as error:
        raise DataError(f"{location}: {error}") from None
    source: str = settings.source or ("machine" if "machine" in all_wordings.sources else "all")
    source = "" if source == "all" or not all_wordings.sources else source
    if source and source not in all_wordings.sources:
        raise StudyError(
            f"{location}: no wording has the source {source!r}; sources are: {', '.join(all_wordings.sources)}"
        )
    try:
        grid = DEFAULTS[settings.defaults].grid(all_wordings.accepted().of_source(source).with_wordings())
    except StudyError as error:
        raise StudyError(f"{location}: {error}") from None
    if (~np.isnan(grid.scores)).sum(axis=-1).max(initial=0) < spread.LEAST:
        raise StudyError(f"{location}: no task has 2 accepted wordings, so nothing can be compared")
    on_basis = _notes_on_basis(marked_scores, all_wordings, grid, source, settings)
    return Analysis(marked_scores, all_wordings, grid, settings, source, (*notes, *on_basis))


def _notes_on_basis(scores: pd.DataFrame, all_wordings: Grid, grid: Grid, source: str, settings: Settings) -> list[str]:
    """Return notes on the basis of the numbers, and what they lack."""
    notes = []
    if not all_wordings.gated:
        notes.append("nobody has labelled the wordings, so all wordings count")
    elif n_without := _scored_without(all_wordings, "label"):
        notes.append(f"left out: {count(n_without, 'wording')} without a label")
    if source and len(all_wordings.sources) > 1:
        notes.append(f"only wordings with source {source} are analysed (--source); a separate table has other wordings")
    if source and (n_without := _scored_without(all_wordings, "source")):
        notes.append(f"left out: {count(n_without, 'wording')} without a source (--source all includes them)")
    notes += _note_on_parts(scores)
    if empty := sorted({*all_wordings.tasks, *all_wordings.models} - {*grid.tasks, *grid.models}):
        names = f"{', '.join(empty[:_MOST_NAMED])}{' ...' if len(empty) > _MOST_NAMED else ''}"
        notes.append(f"tasks and models left out, as none of their wordings counts: {names}")
    notes += DEFAULTS[settings.defaults].notes(grid, settings.holes)
    scored = ~np.isnan(grid.scores)
    if incomplete := int((scored.any(axis=-1) & (scored != scored.any(axis=0)).any(axis=-1)).sum()):
        notes.append(
            f"in {incomplete} of {grid.default.size} cases (model and task) the model has no score under some"
            " wordings that other models were scored under, so its mean is over fewer wordings"
        )
    if few := int((scored.sum(axis=-1) < spread.LEAST).sum()):
        notes.append(f"not analysed: {few} of {grid.default.size} cases (model and task) with fewer than 2 wordings")
    for row in reasons(scores).head(3).to_dict(orient="records"):
        verb = "does" if row["n"] == 1 else "do"
        notes.append(f"{count(row['n'], 'score')} {verb} not count ({row['reason']}), such as {row['example']}")
    return notes


def _note_on_parts(scores: pd.DataFrame) -> list[str]:
    """Return a note on the analysed parts of tasks with several."""
    worded = scores[is_wording(scores["prompt_id"]) & scores["score"].notna()]
    counts = worded[WHY].eq("").groupby([worded[name] for name in ("task", "split", "subset")], sort=False).any()
    several = counts[counts.groupby("task").transform("size") > 1]
    parts = [f"{task}: {split}/{subset}" for task, split, subset in several.index[several]]
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    named = f"{'; '.join(parts[:_MOST_NAMED])}{more}"
    return [f"of tasks with several parts, one part is analysed ({named}); --part chooses another"] if parts else []


def _scored_without(grid: Grid, fact: str) -> int:
    """Return the number of scored wordings that lack a fact."""
    scored = (~np.isnan(grid.scores)).any(axis=0)
    return int((scored & (grid.facts[fact] == "")).sum())


#: The rule for the verdicts of `distribution_table` (the paper has no threshold).
RULE = "inflated: the default is above the wordings' upper quartile; deflated: below the lower quartile; else typical"


def distribution_table(grid: Grid) -> pd.DataFrame:
    """Return a row for each model and task with wordings: their scores, and the default's position.

    Columns: n (distinct wordings), mean, median, lower_quartile, upper_quartile, min, max, sd (population), range, cv;
    default, none, ecdf (share of wordings at most the default), ecdf_with_default (the default counted too), difference
    (default minus median, in points), in_sds (the same in standard deviations), verdict (`RULE`), reason.
    """
    n, mean, sd = spread.moments(grid.scores)
    least, low, middle, high, most = (spread.quantile(grid.scores, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    in_sds = np.full(sd.shape, np.nan)
    np.divide(grid.default - middle, sd, out=in_sds, where=(sd > 0) & (n >= spread.LEAST))
    columns: dict[str, Floats] = {"n": n, "mean": mean, "median": middle, "lower_quartile": low, "upper_quartile": high}
    columns |= {"min": least, "max": most, "sd": sd, "range": most - least, "cv": spread.variation(grid.scores)}
    columns |= {"default": grid.default, "none": grid.none, "ecdf": spread.default_ecdf(grid.scores, grid.default)}
    columns["ecdf_with_default"] = spread.default_ecdf(grid.scores, grid.default, with_itself=True)
    columns |= {"difference": 100 * (grid.default - middle), "in_sds": in_sds}
    index = pd.MultiIndex.from_product([grid.models, grid.tasks], names=["model", "task"])
    table = pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index).reset_index()
    table["n"] = table["n"].astype(np.int64)
    default = table["default"]
    uncompared = default.isna() | (table["n"] < spread.LEAST)
    inflated, deflated = default > table["upper_quartile"], default < table["lower_quartile"]
    table["verdict"] = np.select([uncompared, inflated, deflated], ["", "inflated", "deflated"], "typical")
    reason = map(spread.variation_reason, table["n"], table["mean"])
    no_default = np.where(default.isna(), "no default from the wordings' run and part", "")
    table["reason"] = ["; ".join(filter(None, both)) for both in zip(reason, no_default, strict=True)]
    return table


def variation_table(distribution: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each model: coefficients of variation (median, largest and its task), sd and range in points."""
    rows = []
    for model, cells in distribution.groupby("model", sort=False):
        varying, defined = cells[cells["n"] >= spread.LEAST], cells[cells["cv"].notna()]
        most = defined.sort_values("cv", ascending=False, kind="stable").head(1)
        missing = len(cells) - len(defined)
        rows.append(
            {"model": model, "n_tasks": len(defined), "cv_median": cells["cv"].median(), "cv_max": most["cv"].max()}
            | {"task": "".join(most["task"]), "sd_median": (100 * varying["sd"]).median()}
            | {"range_median": (100 * varying["range"]).median()}
            | {"reason": f"undefined on {missing} of {len(cells)} tasks" if missing else ""}
        )
    return pd.DataFrame(rows)


def best_worst_table(grid: Grid) -> pd.DataFrame:
    """Return the best and the worst wording of each model on each task, including its default (Tables 5 to 15).

    Columns: task, model, best, best_prompt (id), best_text, worst, worst_prompt, worst_text, gap in points. Of equal
    ones the default is named, then the first.
    """
    rows = []
    for t, task in enumerate(grid.tasks):
        ids, texts = [DEFAULT, *grid.facts["prompt_id"][t]], ["", *grid.facts["text"][t]]
        for m, model in enumerate(grid.models):
            scores = np.array([grid.default[m, t], *grid.scores[m, t]])
            if np.isnan(scores).all():
                continue
            row: dict[str, Any] = {"task": task, "model": model}
            for name, index in (("best", int(np.nanargmax(scores))), ("worst", int(np.nanargmin(scores)))):
                row |= {name: scores[index], f"{name}_prompt": ids[index], f"{name}_text": texts[index]}
            rows.append({**row, "gap": 100 * (row["best"] - row["worst"])})
    return pd.DataFrame(rows)


def compared_default(grid: Grid) -> Floats:
    """Return the defaults on models' tasks with enough wordings; NaN elsewhere."""
    n, _, _ = spread.moments(grid.scores)
    return np.where(n >= spread.LEAST, grid.default, np.nan)


def inflation_table(grid: Grid, distribution: pd.DataFrame, *, seed: int) -> pd.DataFrame:
    """Return a row for each model: on how many tasks the default is above the median wording, and by how much.

    share, share_low, share_high (`share_above_median`), figure5, figure5_low, figure5_high (`median_ecdf`), points
    (mean over tasks of default minus median), in_sds (median over tasks), above_all (tasks where no wording reaches
    it), n_tasks, reason.
    """
    compared = distribution[distribution["difference"].notna() & (distribution["n"] >= spread.LEAST)]
    rows = []
    for model, scores, default in zip(grid.models, grid.scores, compared_default(grid), strict=True):
        share = spread.share_above_median(scores, default, rng=stream(seed, "share above median", model))
        figure5 = spread.median_ecdf(scores, default, rng=stream(seed, "median of the default's ECDF", model))
        cells = compared[compared["model"] == model]
        rows.append(
            {"model": model, "n_tasks": share.n, "share": share.value, "share_low": share.low, "share_high": share.high}
            | {"figure5": figure5.value, "figure5_low": figure5.low, "figure5_high": figure5.high}
            | {"points": cells["difference"].mean(), "in_sds": cells["in_sds"].median()}
            | {"above_all": int((cells["default"] > cells["max"]).sum()), "reason": _why(share.reason, figure5.reason)}
        )
    return pd.DataFrame(rows)


def _why(of_share: str, of_ecdf: str) -> str:
    """Return why a share above the median, and a median of the ECDF, have no value or interval."""
    if of_share == of_ecdf:
        return of_share
    reason_of = {"default above median": of_share, "default's median percentile": of_ecdf}
    return "; ".join(f"{name} has no interval, as {reason}" for name, reason in reason_of.items() if reason)


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
    default, columns = compared_default(accepted), dict[str, Any](model=list(grid.models))
    for prefix, scores in (("", accepted.scores), ("all_", grid.scores)):
        n, mean, _ = spread.moments(scores)
        columns |= {
            f"{prefix}wordings": n.sum(axis=1).astype(int),
            f"{prefix}mean": mean.mean(axis=1),
            f"{prefix}cv_median": spread.median(spread.variation(scores)),
            f"{prefix}best": spread.quantile(scores, 1.0).mean(axis=1),
            f"{prefix}share": pd.DataFrame(spread.above_median(scores, default)).mean(axis=1).to_numpy(),
        }
    return pd.DataFrame(columns)


def source_tests(grid: Grid, *, seed: int) -> pd.DataFrame:
    """Test people's wordings against machines', for each model and task that has both.

    Columns: model, task, n_human, n_machine, human, machine (medians), difference (in points), p, p_holm (over all rows
    with a p), method, reason.
    """
    rows = []
    for m, model in enumerate(grid.models):
        for t, task in enumerate(grid.tasks):
            of_source = (grid.scores[m, t, grid.facts["source"][t] == source] for source in ("human", "machine"))
            human, machine = (scores[~np.isnan(scores)] for scores in of_source)
            if not (len(human) and len(machine)):
                continue
            rng = stream(seed, "machine against human", model, task)
            test = spread.median_permutation_test(human, machine, rng=rng)
            rows.append(
                {"model": model, "task": task, "n_human": len(human), "n_machine": len(machine)}
                | {"human": float(np.median(human)), "machine": float(np.median(machine))}
                | {"difference": 100 * test.difference, "p": test.p, "method": test.method, "reason": test.reason}
            )
    names = ["model", "task", "n_human", "n_machine", "human", "machine", "difference", "p", "method", "reason"]
    table = pd.DataFrame(rows, columns=names)
    table.insert(8, "p_holm", holm(table["p"].to_numpy(np.float64)))
    return table

"""What a report on wordings is made of: the scores that count, what is taken of them, and what is doubtful."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from evaluation.display import short_names
from evaluation.instructions import spread
from evaluation.instructions.boards import (
    AGAINST_DEFAULTS,
    DEFAULTS,
    HOLES,
    chosen_boards,
    drawn_boards,
    recommended_board,
)
from evaluation.instructions.grid import (
    Choice,
    Grid,
    empty_prompts,
    grid_of,
    marked,
    parts_of,
    reasons,
    sharing_folders,
)
from evaluation.instructions.scores import DEFAULT
from evaluation.instructions.spread import choice_table, source_tests
from plumbline.errors import DataError, StudyError
from plumbline.statistics.estimates import Floats, percentiles, stream

SIMULATED = (
    "SIMULATED LABELS: which wordings are acceptable was made up to show that the flow works, not said by people."
)
MATCHED, PUBLISHED = "matched", "published"
SOURCES = ("machine", "human", "all")
_MOST_NAMED = 4  # tasks, or pairs, named in a note


@dataclass(frozen=True)
class Settings:
    """What a command chooses: parts of tasks, whose wordings, which defaults, what a hole in a board does, the seed."""

    choice: Choice = field(default_factory=Choice)
    source: str = ""
    defaults: str = MATCHED
    holes: str = "mteb"
    seed: int = 1337


@dataclass(frozen=True)
class Analysis:
    """Scores with what was marked, all wordings (`whole`), and those that are analysed (`grid`): accepted, of a source.

    Tables are made when they are first asked for.
    """

    marked: pd.DataFrame
    whole: Grid
    grid: Grid
    items: pd.DataFrame
    settings: Settings
    source: str
    notes: tuple[str, ...]

    @cached_property
    def distribution(self) -> pd.DataFrame:
        """A row for each model and task."""
        return distribution_table(self.grid)

    @cached_property
    def variation(self) -> pd.DataFrame:
        """A row a model."""
        return variation_table(self.grid)

    @cached_property
    def inflation(self) -> pd.DataFrame:
        """A row a model."""
        return inflation_table(self.grid, seed=self.settings.seed)

    @cached_property
    def boards(self) -> pd.DataFrame:
        """A row for each board and model."""
        return chosen_boards(self.grid, self.settings.holes)

    @cached_property
    def drawn(self) -> pd.DataFrame:
        """A row a model, over random wordings."""
        return drawn_boards(self.grid, self.settings.holes, rng=stream(self.settings.seed, "boards of random wordings"))

    @cached_property
    def recommended(self) -> pd.DataFrame:
        """The board by means over wordings."""
        return recommended_board(self.grid, self.settings.holes, seed=self.settings.seed)

    @cached_property
    def origins(self) -> pd.DataFrame:
        """People's wordings against machines', of those that were accepted."""
        return source_tests(self.whole.accepted(), seed=self.settings.seed)

    @cached_property
    def halves(self) -> pd.DataFrame:
        """Best wordings chosen on one half of the items, where there are scores by item."""
        named = short_names(set(self.marked["model"]))
        return choice_table(self.grid, self.items, seed=self.settings.seed, named=named)

    @cached_property
    def gate(self) -> pd.DataFrame:
        """Accepted wordings beside all."""
        return gate_table(self.whole.of_source(self.source) if self.source else self.whole)

    @cached_property
    def published(self) -> pd.DataFrame:
        """What published defaults would have one conclude, beside matched ones."""
        return published_table(self.grid) if self.settings.defaults == MATCHED else pd.DataFrame()

    @property
    def simulated(self) -> bool:
        """Whether labels were made up."""
        return self.whole.simulated

    @property
    def holes(self) -> int:
        """Models' missing defaults on the boards' tasks."""
        return int(np.isnan(self.grid.default).sum())


def analyse(
    scores: pd.DataFrame,
    items: pd.DataFrame,
    settings: Settings,
    notes: tuple[str, ...] = (),
    where: Path | str = "scores",
) -> Analysis:
    """The analysis of a long table (`checked_scores`) and of scores by item (empty where there are none).

    Machines' wordings are analysed where there are any, as people's are often of some models alone; both are compared
    in a table of its own. Raises DataError where nothing can be compared, StudyError for a choice that is not there.
    """
    if settings.holes not in HOLES or settings.defaults not in (MATCHED, PUBLISHED):
        raise StudyError(f"holes are {', '.join(HOLES)}; defaults are {MATCHED}, {PUBLISHED}")
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
        raise StudyError(f"{where}: no wording is by the source {source!r}; there are: {', '.join(sources)}")
    grid = whole.accepted()
    grid = (grid.of_source(source) if source else grid).with_wordings()
    if settings.defaults == PUBLISHED:
        if np.isnan(grid.reported).all():
            raise StudyError(f"{where}: no published default (prompt id `reported`) is in it; leave --defaults out")
        grid = replace(grid, default=grid.reported)
    if (~np.isnan(grid.scores)).sum(axis=-1).max(initial=0) < 2:
        raise StudyError(f"{where}: no task has 2 wordings that people accepted; nothing can be compared")
    if settings.holes == "complete" and np.isnan(grid.default).any(axis=0).all() and len(grid.models) > 1:
        raise StudyError(f"{where}: no task has a default of every model; take another rule than --holes complete")
    return Analysis(
        marked_scores,
        whole,
        grid,
        items,
        settings,
        source,
        (*notes, *_said(marked_scores, whole, grid, source, settings)),
    )


def _said(scores: pd.DataFrame, whole: Grid, grid: Grid, source: str, settings: Settings) -> list[str]:
    """What the numbers rest on and lack."""
    notes = []
    if not whole.gated:
        notes.append("nobody has said which wordings are acceptable: all of them count")
    elif (unsaid := _distinct(whole, whole.facts["label"] == "")) > 0:
        notes.append(f"{unsaid} wordings have no label: they count nowhere")
    if source and len([name for name in whole.sources if name]) > 1:
        notes.append(f"analysed are wordings by {source} alone (--source); the others stand in a table of their own")
    if source and (unsaid := _distinct(whole, whole.facts["source"] == "")) > 0:
        notes.append(f"{unsaid} wordings have no source: they count only with --source all")
    notes += _parts_said(parts_of(scores))
    lacking = sorted({*whole.tasks, *whole.models} - {*grid.tasks, *grid.models})
    if lacking:
        named = f"{', '.join(lacking[:_MOST_NAMED])}{' ...' if len(lacking) > _MOST_NAMED else ''}"
        notes.append(f"without a wording that counts, and so left out: {named}")
    if settings.defaults == PUBLISHED:
        notes.append(
            "defaults are the published ones, which may be of other splits, subsets, revisions and mteb versions"
        )
    elif missing := int(np.isnan(grid.default).sum()):
        notes.append(
            f"{missing} of {grid.default.size} defaults of the same run and part are missing: {HOLES[settings.holes]}"
        )
    scored = ~np.isnan(grid.scores)
    if lacking_some := int((scored.any(axis=-1) & (scored != scored.any(axis=0)).any(axis=-1)).sum()):
        notes.append(
            f"{lacking_some} of {grid.default.size} models' tasks lack wordings that other models have: their means"
            " rest on fewer"
        )
    if few := int(((~np.isnan(grid.scores)).sum(axis=-1) < 2).sum()):
        notes.append(f"{few} of {grid.default.size} models' tasks have fewer than 2 wordings: nothing is said of them")
    if empty := empty_prompts(scores):
        notes.append(f"{empty} wordings have no text although others have: one may be no prompt under another name")
    for first, second in sharing_folders(scores)[:_MOST_NAMED]:
        notes.append(f"{first!r} and {second!r} share mteb's folder and have equal scores: one may have the other's")
    notes += [
        f"{row.n} scores stand aside: {row.reason} ({row.example})" for row in reasons(scores).head(3).itertuples()
    ]
    return notes


def _parts_said(parts: pd.DataFrame) -> list[str]:
    """Which part is analysed of tasks with several."""
    several = parts[parts.groupby("task")["task"].transform("size") > 1]
    taken = [
        f"{task}: {split}/{subset}" for task, split, subset, _, chosen in several.itertuples(index=False) if chosen
    ]
    more = f" and {len(taken) - _MOST_NAMED} more" if len(taken) > _MOST_NAMED else ""
    named = "; ".join(taken[:_MOST_NAMED])
    return [f"of tasks with several parts one is analysed ({named}{more}); --part takes another"] if taken else []


def _distinct(grid: Grid, which: np.ndarray) -> int:
    return int((which & (grid.prompts != "") & (~np.isnan(grid.scores)).any(axis=0)).sum())


#: The verdicts of `distribution_table`, and the rule that gives them (no threshold is in the paper).
RULE = "inflated: the default is above the wordings' upper quartile; deflated: below the lower one; else typical"


def distribution_table(grid: Grid) -> pd.DataFrame:
    """A row for each model and task with wordings: how they score, and where the default lies among them.

    n (distinct wordings), mean, median, lower_quartile, upper_quartile, min, max, sd (population), range, cv; default,
    none, ecdf (share of wordings at most the default), ecdf_with_default (the default counted too), difference (default
    less median, in points), in_sds (the same in standard deviations), verdict (`RULE`), reason.
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
    lacking = np.where(table["default"].isna(), "no default of the same run and part", "")
    table["reason"] = ["; ".join(filter(None, both)) for both in zip(why, lacking, strict=True)]
    table["n"] = table["n"].astype(np.int64)
    return table


def variation_table(grid: Grid) -> pd.DataFrame:
    """A row a model: coefficients of variation (median, largest and its task), median sd and range in points."""
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
    """The best and the worst wording of each model on each task, its default among them (the paper's Tables 5 to 15).

    task, model, best, best_prompt (id), best_text, worst, worst_prompt, worst_text, gap in points. Of equal ones the
    default is named, then the first.
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
    """The defaults on models' tasks with the least number of wordings of which anything is said; NaN elsewhere."""
    n, _, _ = spread.moments(grid.scores)
    return np.where(n >= spread.LEAST, grid.default, np.nan)


def inflation_table(grid: Grid, *, seed: int) -> pd.DataFrame:
    """A row a model: on how many tasks the default is above the median wording, and by how much.

    share, share_low, share_high (`share_above_median`), figure5, figure5_low, figure5_high (`median_ecdf`), points
    (mean over tasks of default less median), in_sds (median over tasks), above_all (tasks where no wording reaches it),
    n_tasks, reason.
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
    """Why a share above the median, and a median of the ECDF, have no value or interval."""
    if of_share == of_ecdf:
        return of_share
    reason_of = {"default above median": of_share, "median of its ECDF": of_ecdf}
    return "; ".join(f"{name}: {why}" for name, why in reason_of.items() if why)


def gate_table(grid: Grid) -> pd.DataFrame:
    """What refused wordings would have made of it: each model with accepted wordings alone, and with all.

    wordings (scores that count), mean, cv_median, best (mean over tasks of the best wording), share (of tasks whose
    default is above the median); `all_...` the same with every wording. Both rest on the same models' tasks, those
    with an accepted wording. Empty where nothing was refused on them.
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


def context_table(grid: Grid) -> pd.DataFrame:
    """How wordings of a kind score against the mean of all wordings of their model and task, in points.

    A row for each value of source, context, generator and label that there are several of: kind, value, wordings
    (distinct, over tasks), mean (points from the mean), low, high (of wordings' own means: 2.5 and 97.5%).
    """
    _, mean, _ = spread.moments(grid.scores)
    off = 100 * (grid.scores - mean[..., None])
    counted = (~np.isnan(off)).sum(axis=0)
    by_wording = np.full(counted.shape, np.nan)
    np.divide(np.nansum(off, axis=0), counted, out=by_wording, where=counted > 0)
    defined, rows = counted > 0, []
    for kind in ("source", "context", "generator", "label"):
        values = sorted({str(value) for value in grid.facts[kind][defined]})
        for value in values if len(values) > 1 else []:
            of_value = by_wording[defined & (grid.facts[kind] == value)]
            low, high = percentiles(of_value)
            row = {
                "kind": kind,
                "value": value or "not said",
                "wordings": len(of_value),
                "mean": float(of_value.mean()),
            }
            rows.append(row | {"low": low, "high": high})
    return pd.DataFrame(rows, columns=["kind", "value", "wordings", "mean", "low", "high"])


def published_table(grid: Grid) -> pd.DataFrame:
    """What becomes of conclusions when the published defaults give way to those of the same run, split and subset.

    A row a model: n_published, n_matched (tasks), above_published, above_matched (tasks whose default is above the
    median wording), rank_published, rank_matched (by points averaged over the tasks that a model has, as the paper
    drew it), best_published, best_matched (its rank with its best wordings against the others' defaults). Empty where
    nothing was published.
    """
    if np.isnan(grid.reported).all() or np.isnan(grid.default).all():
        return pd.DataFrame()
    columns = {}
    for name, compared in (("published", replace(grid, default=grid.reported)), ("matched", grid)):
        above = spread.above_median(compared.scores, compared_default(compared))
        drawn = chosen_boards(compared, "present")
        alone = drawn[(drawn["scenario"] == AGAINST_DEFAULTS) & (drawn["chosen"] == drawn["model"])]
        columns[f"n_{name}"] = (~np.isnan(above)).sum(axis=1)
        columns[f"above_{name}"] = np.nansum(above, axis=1).astype(np.int64)
        columns[f"rank_{name}"] = drawn.loc[drawn["scenario"] == DEFAULTS, "rank"].to_numpy()
        columns[f"best_{name}"] = alone["rank"].to_numpy()
    table = pd.DataFrame({"model": list(grid.models), **columns})
    return table[
        ["model", *(f"{what}_{name}" for what in ("n", "above", "rank", "best") for name in ("published", "matched"))]
    ]


def coverage_table(grid: Grid) -> pd.DataFrame:
    """A row for each model and task: wordings scored, and whether default, none and a published default were."""
    index = pd.MultiIndex.from_product([grid.models, grid.tasks], names=["model", "task"])
    wanted = (grid.prompts != "").sum(axis=1)
    columns = {"wordings": (~np.isnan(grid.scores)).sum(axis=-1), "of": np.broadcast_to(wanted, grid.default.shape)}
    for name in ("default", "none", "reported"):
        columns[name] = ~np.isnan(getattr(grid, name))
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index).reset_index()


def _mean_of_known(values: Floats) -> Floats:
    defined = (~np.isnan(values)).sum(axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.nansum(values, axis=1), defined, out=means, where=defined > 0)
    return means

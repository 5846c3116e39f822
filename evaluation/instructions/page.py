"""The report on wordings: one page that opens with the answer, each table and figure as files."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from annotation.verdicts.tables import count
from evaluation.display import hundred, points
from evaluation.instructions.analysis import (
    PUBLISHED,
    RULE,
    SIMULATED,
    Analysis,
    best_worst_table,
    compared_default,
    context_table,
    coverage_table,
)
from evaluation.instructions.boards import AGAINST_DEFAULTS, AGAINST_WORST, DEFAULTS, HOLES, N_DRAWS
from evaluation.instructions.charts import all_figures
from evaluation.instructions.grid import reasons as aside_reasons
from evaluation.instructions.spread import N_RESAMPLES, above_median
from evaluation.report.paper_tables import p_value
from generation.output_statistics import shown
from plumbline.exhibits.page import PageWords, write_outlined
from plumbline.exhibits.table import Exhibit, reasons

_SCENARIOS = {
    DEFAULTS: "All with their defaults",
    AGAINST_DEFAULTS: "{} with its best, others with defaults",
    AGAINST_WORST: "{} with its best, others with their worst",
}
_OWN_TABLES = (
    "The best and the worst of so many wordings are chosen and scored on the same items: noise alone spreads them"
)
_SHARED = "Tasks of one type may share wordings: intervals over tasks take tasks for independent"


def all_exhibits(analysis: Analysis) -> dict[str, Exhibit]:
    """The tables by name, in the page's order; those without rows are left away."""
    tables = (
        recommended, inflation, published, distribution, variation, boards, drawn,
        best_worst, halves, origins, contexts, gate, coverage, aside,
    )  # fmt: skip
    exhibits = (table(analysis) for table in tables)
    return {exhibit.name: exhibit for exhibit in exhibits if len(exhibit.frame)}


def recommended(analysis: Analysis) -> Exhibit:
    """The board by means over wordings, beside the defaults'."""
    frame = analysis.recommended
    rows = []
    for row in frame.to_dict(orient="records"):
        limits = "–" if pd.isna(row.get("rank_low")) else f"{row['rank_low']:.0f} to {row['rank_high']:.0f}"
        ends = _ends(row["wordings_mean"], row["wordings_low"], row["wordings_high"])
        rows.append(
            {"Model": row["model"], "Rank": str(row["rank"]), "Rank 95%": limits, "Mean over wordings [95%]": ends}
            | {"Default": hundred(row["default_mean"]), "Default's rank": shown(row["default_rank"], 0)}
        )
    notes = [
        "Recommended: the mean over accepted wordings, then over tasks. Its interval is over wordings, tasks held fixed"
        " (Student's, Satterthwaite's degrees of freedom); limits of ranks are over tasks",
        f"Kendall's tau-b with the defaults' board: {shown(float(frame.attrs['tau']), 2)}",
        f"Defaults are missing; in their ranks {HOLES[analysis.settings.holes]}" if analysis.holes else "",
        _SHARED,
    ]
    caption = "Models by the mean over accepted wordings, scores times 100, beside their defaults"
    return _exhibit(analysis, "recommended", caption, frame, rows, notes)


def inflation(analysis: Analysis) -> Exhibit:
    """How often defaults are above the median wording."""
    rows = [
        {"Model": row["model"], "Tasks": str(row["n_tasks"])}
        | {"Default above median [95%]": _share(row["share"], row["share_low"], row["share_high"])}
        | {"Median of its ECDF [95%]": _share(row["figure5"], row["figure5_low"], row["figure5_high"])}
        | {"Points above median": points(row["points"]), "In SDs": points(row["in_sds"])}
        | {"Above all wordings": str(row["above_all"])}
        for row in analysis.inflation.to_dict(orient="records")
    ]
    notes = [
        "Default above median: the share of tasks whose default scores more than the median wording. Median of its"
        " ECDF: what the paper's Figure 5 shows as P(reported > median), the default counted among the wordings",
        "Intervals are percentile bootstraps over tasks (10,000 resamples); points are means over tasks, SDs medians",
        *reasons(analysis.inflation["model"], analysis.inflation["reason"]),
    ]
    return _exhibit(
        analysis, "inflation", "Where defaults lie among wordings, in percent of tasks", analysis.inflation, rows, notes
    )


def distribution(analysis: Analysis) -> Exhibit:
    """Each model and task."""
    bare = bool(analysis.distribution["none"].notna().any())
    rows = [
        {"Model": row["model"], "Task": row["task"], "n": str(row["n"]), "Median": hundred(row["median"])}
        | {"Min": hundred(row["min"]), "Max": hundred(row["max"]), "SD": shown(100 * row["sd"], 2)}
        | {"CV": _percent(row["cv"]), "Default": hundred(row["default"])}
        | ({"No prompt": hundred(row["none"])} if bare else {})
        | {"ECDF": f"{_percent(row['ecdf'])} ({_percent(row['ecdf_with_default'])})"}
        | {"Points": points(row["difference"]), "SDs": points(row["in_sds"]), "Is": row["verdict"] or "–"}
        for row in analysis.distribution.to_dict(orient="records")
    ]
    where = analysis.distribution["model"] + ", " + analysis.distribution["task"]
    notes = [
        f"Is: {RULE}. ECDF: the share of wordings that score at most as it does, in brackets with"
        " the default as one of them; Points, SDs: default less median",
        *reasons(where, analysis.distribution["reason"]),
    ]
    frame = analysis.distribution
    return _exhibit(analysis, "distribution", "Scores times 100 over distinct wordings", frame, rows, notes)


def variation(analysis: Analysis) -> Exhibit:
    """Coefficients of variation by model."""
    rows = [
        {"Model": row["model"], "Tasks": str(row["n_tasks"]), "Median CV": _percent(row["cv_median"])}
        | {"Largest CV": _percent(row["cv_max"]), "On": row["task"] or "–"}
        | {"Median SD": shown(row["sd_median"], 2), "Median range": shown(row["range_median"], 2)}
        for row in analysis.variation.to_dict(orient="records")
    ]
    notes = [
        "CV: the population's standard deviation over wordings as a share of their mean, the default not among them. It"
        " hangs on where the metric has its zero: SD and range (points) do not",
        *reasons(analysis.variation["model"], analysis.variation["reason"]),
    ]
    return _exhibit(
        analysis, "variation", "How far scores move with the wording (Figure 3)", analysis.variation, rows, notes
    )


def boards(analysis: Analysis) -> Exhibit:
    """Ranks on each board."""
    models = list(analysis.grid.models)
    rows = []
    for (scenario, chosen), board in analysis.boards.groupby(["scenario", "chosen"], sort=False):
        ranks = dict(zip(board["model"], board["rank"], strict=True))
        rows.append({"Board": _SCENARIOS[str(scenario)].format(chosen), **{name: str(ranks[name]) for name in models}})
    notes = [
        f"Borda ranks, 1 the best; {HOLES[analysis.settings.holes]}",
        "A default counts as one of its model's wordings",
        _OWN_TABLES,
    ]
    return _exhibit(
        analysis, "boards", "Ranks when one model chooses its wordings (Figure 4)", analysis.boards, rows, notes
    )


def drawn(analysis: Analysis) -> Exhibit:
    """Ranks under random wordings."""
    rows = [
        {"Model": row["model"], "Default's rank": shown(row["rank"], 0), "Expected rank": shown(row["mean_rank"], 2)}
        | {"Rank in 95%": f"{row['rank_low']} to {row['rank_high']}", "First in": _percent(row["first"])}
        for row in analysis.drawn.to_dict(orient="records")
    ]
    tau, low, high = analysis.drawn.attrs["tau"]
    notes = [
        f"Each model takes a random accepted wording on each task, independently, {N_DRAWS} times (seed"
        f" {analysis.settings.seed}); {HOLES[analysis.settings.holes]}",
        f"Kendall's tau-b with the defaults' board: mean {shown(tau, 2)}, 95% {shown(low, 2)} to {shown(high, 2)}",
    ]
    return _exhibit(analysis, "random_wordings", "Ranks under random wordings", analysis.drawn, rows, notes)


def best_worst(analysis: Analysis) -> Exhibit:
    """Best and worst wordings."""
    frame = best_worst_table(analysis.grid)
    rows = [
        {"Task": row["task"], "Model": row["model"], "Best": shown(row["best"], 3)}
        | {"Best wording": row["best_text"] or row["best_prompt"], "Worst": shown(row["worst"], 3)}
        | {"Worst wording": row["worst_text"] or row["worst_prompt"], "Gap": shown(row["gap"], 1)}
        for row in frame.to_dict(orient="records")
    ]
    return _exhibit(analysis, "best_worst", "Best and worst wordings (Tables 5 to 15)", frame, rows, [_OWN_TABLES])


def halves(analysis: Analysis) -> Exhibit:
    """Split-half choice."""
    rows = [
        {"Model": row["model"], "Task": row["task"], "Wordings": str(row["n_wordings"]), "Items": str(row["n_items"])}
        | {"Default": hundred(row["default"]), "Best, same items": hundred(row["naive"])}
        | {"Best, other half [95%]": _ends(row["other_half"], row["low"], row["high"])}
        | {"Lost": points(-row["lost"]), "Gain on default": points(row["gain"])}
        for row in analysis.halves.to_dict(orient="records")
    ]
    where = analysis.halves["model"] + ", " + analysis.halves["task"]
    notes = [
        "1,000 random halves, each choosing and scoring in turn; 95% of splits",
        *reasons(where, analysis.halves["reason"]),
    ]
    caption = "The best wording, chosen on one half of a task's items and scored on the other, times 100"
    return _exhibit(analysis, "split_halves", caption, analysis.halves, rows, notes)


def origins(analysis: Analysis) -> Exhibit:
    """People's wordings against machines'."""
    rows = [
        {"Model": row["model"], "Task": row["task"], "Human": hundred(row["human"]), "Machine": hundred(row["machine"])}
        | {"n": f"{row['n_human']}, {row['n_machine']}", "Difference": points(row["difference"])}
        | {"p": _p(row["p"]), "p (Holm)": _p(row["p_holm"])}
        for row in analysis.origins.to_dict(orient="records")
    ]
    where = analysis.origins["model"] + ", " + analysis.origins["task"]
    notes = [
        "Permutation test of the difference of medians, two-sided: exact up to 40 wordings, else"
        f" {N_RESAMPLES:,} resamples; Holm's correction over all rows",
        *reasons(where, analysis.origins["reason"]),
    ]
    caption = "Wordings by people and by machines: medians times 100, difference in points (Figures 7 and 8)"
    return _exhibit(analysis, "sources", caption, analysis.origins, rows, notes)


def contexts(analysis: Analysis) -> Exhibit:
    """Kinds of wordings."""
    frame = context_table(analysis.whole)
    rows = [
        {"Of": row["kind"], "Is": row["value"], "Wordings": str(row["wordings"]), "Mean": points(row["mean"])}
        | {"95% of wordings": f"{points(row['low'])} to {points(row['high'])}"}
        for row in frame.to_dict(orient="records")
    ]
    caption = "Kinds of wordings against the mean of all wordings of the same model and task, in points"
    return _exhibit(analysis, "contexts", caption, frame, rows, ["All wordings are in this table, accepted or not"])


def gate(analysis: Analysis) -> Exhibit:
    """What unacceptable wordings would have made of it."""
    rows = [
        {"Model": row["model"], "Wordings": f"{row['wordings']} of {row['all_wordings']}"}
        | {head: f"{form(row[name])} ({form(row[f'all_{name}'])})" for name, head, form in _GATED}
        for row in analysis.gate.to_dict(orient="records")
    ]
    caption = "Accepted wordings alone, and in brackets what all wordings would have made of it, scores times 100"
    return _exhibit(analysis, "gate", caption, analysis.gate, rows, [])


def published(analysis: Analysis) -> Exhibit:
    """What the published defaults would have one conclude."""
    rows = [
        {"Model": row["model"]}
        | {head: f"{row[f'{name}_published']} → {row[f'{name}_matched']}" for name, head in _PUBLISHED}
        for row in analysis.published.to_dict(orient="records")
    ]
    notes = [
        "Left of the arrow by published defaults, right of it by those of the same run, split and subset; points"
        " are averaged over the tasks that a model has, as the paper drew it"
    ]
    caption = "What becomes of conclusions when published defaults give way to matched ones"
    return _exhibit(analysis, "published", caption, analysis.published, rows, notes)


def coverage(analysis: Analysis) -> Exhibit:
    """What was scored."""
    frame = coverage_table(analysis.grid)
    yes = {True: "yes", False: "–"}
    rows = [
        {"Model": row["model"], "Task": row["task"], "Wordings": f"{row['wordings']} of {row['of']}"}
        | {
            head: yes[bool(row[name])]
            for name, head in (("default", "Default"), ("none", "No prompt"), ("reported", "Published"))
        }
        for row in frame.to_dict(orient="records")
    ]
    notes = ["Wordings: how many count, of all that the task has; refused ones, and another source's, do not count"]
    return _exhibit(analysis, "coverage", "What was scored and counts", frame, rows, notes)


def aside(analysis: Analysis) -> Exhibit:
    """Rows that do not count, by reason; the file has each of them."""
    reasons = aside_reasons(analysis.marked)
    rows = [
        {"Reason": row["reason"], "Scores": str(row["n"]), "Such as": row["example"]}
        for row in reasons.to_dict("records")
    ]
    frame = analysis.marked[analysis.marked["why"] != ""].drop(columns=["text", "effective"])
    return _exhibit(analysis, "aside", "Scores that stand aside, and why (the file has each)", frame, rows, [])


def _exhibit(
    analysis: Analysis, name: str, caption: str, frame: pd.DataFrame, rows: list[dict[str, str]], notes: Iterable[str]
) -> Exhibit:
    simulated = [SIMULATED] if analysis.simulated else []
    return Exhibit(name, caption, frame, pd.DataFrame(rows), (*simulated, *filter(None, notes)))


def _ends(value: float, low: float, high: float) -> str:
    return hundred(value) if pd.isna(low) else f"{hundred(value)} [{hundred(low)}, {hundred(high)}]"


def _share(value: float, low: float, high: float) -> str:
    return _percent(value) if pd.isna(low) else f"{_percent(value)} [{_percent(low)}, {_percent(high)}]"


def _percent(value: float) -> str:
    return "–" if pd.isna(value) else f"{100 * value:.1f}%"


def _p(value: float) -> str:
    return "–" if pd.isna(value) else p_value(value).removeprefix("p ").removeprefix("= ")


_GATED = (
    ("mean", "Mean", hundred),
    ("best", "Best wordings", hundred),
    ("cv_median", "Median CV", _percent),
    ("share", "Default above median", _percent),
)
_PUBLISHED = (
    ("n", "Tasks"),
    ("above", "Default above median"),
    ("rank", "Rank by defaults"),
    ("best", "Rank with its best wordings"),
)


_FEW_WORDINGS, _FEW_TASKS = 10, 5


def headline(analysis: Analysis) -> tuple[str, ...]:
    """How far scores move, where the defaults lie, and what ranks are worth."""
    return _moves(analysis), _defaults(analysis), _ranks(analysis)


def _moves(analysis: Analysis) -> str:
    grid, table = analysis.grid, analysis.distribution
    n = table.loc[table["n"] > 0, "n"]
    each = f"{n.min()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
    of = f"{count(len(grid.models), 'model')} on {count(len(grid.tasks), 'task')}"
    cells = table[table["cv"].notna()]
    if cells.empty:
        return f"Of {of}, with {each} wordings each, no coefficient of variation is defined."
    most = cells.iloc[int(cells["range"].argmax())]
    cv, sd = (100 * float(cells[name].median()) for name in ("cv", "sd"))
    return (
        f"Over {each} wordings a task, the scores of {of} vary by {cv:.1f}% (median coefficient of variation;"
        f" standard deviation {sd:.1f} points),"
        f" and by up to {100 * most['range']:.1f} points ({most['model']} on {most['task']})."
    )


def _defaults(analysis: Analysis) -> str:
    compared = analysis.distribution[analysis.distribution["difference"].notna() & (analysis.distribution["n"] > 1)]
    if compared.empty:
        return "Where the defaults lie is not known: none was scored in the same run on the same part of a task."
    whose = "published default" if analysis.settings.defaults == PUBLISHED else "default"
    above = int(np.nansum(above_median(analysis.grid.scores, compared_default(analysis.grid))))
    counts = compared["verdict"].value_counts()
    counted = ", ".join(f"{counts[name]} {name}" for name in ("inflated", "typical", "deflated") if name in counts)
    return (
        f"The {whose} scores above the median wording in {above} of {len(compared)} cases (model and task), by"
        f" {points(float(compared['difference'].mean()))} points on average: {counted}."
    )


def _ranks(analysis: Analysis) -> str:
    board = analysis.recommended
    best = board.iloc[0]
    mean, low, high = (hundred(best[f"wordings_{name}"]) for name in ("mean", "low", "high"))
    ends = "" if math.isnan(best["wordings_low"]) else f" [{low}, {high}]"
    accepted = "accepted wordings" if analysis.whole.gated else "all wordings"
    sentence = f"By the recommended score, the mean over {accepted}, {best['model']} has {mean}{ends}"
    if len(board) < 2:
        return f"{sentence}; of one model there is no rank."
    of_model = analysis.boards[
        (analysis.boards["scenario"] == AGAINST_WORST) & (analysis.boards["chosen"] == analysis.boards["model"])
    ]
    first = int((of_model["rank"] == 1).sum())
    tau = analysis.drawn.attrs["tau"][0]
    level = int((board["rank"] == best["rank"]).sum()) - 1
    shared = f", as {count(level, 'other model')} {'is' if level == 1 else 'are'}" if level else ""
    ranked = board[board["default_rank"].notna()]
    moved = int((ranked["rank"] != ranked["default_rank"]).sum())
    differ = f"{moved} of {len(ranked)} ranks differ from the defaults', " if len(ranked) else ""
    same = "" if math.isnan(tau) else f", and random wordings keep the defaults' order with tau {tau:.2f} on average"
    return (
        f"{sentence} and is first of {len(board)}{shared}; {differ}{count(first, 'model')} can be first with the"
        f" best wordings against the others' worst{same}."
    )


def doubts(analysis: Analysis) -> list[str]:
    """A line for each thing that is doubtful."""
    lines = [SIMULATED.rstrip(".")] if analysis.simulated else []
    lines += list(analysis.notes)
    n = analysis.distribution["n"]
    if n[n > 0].min() < _FEW_WORDINGS:
        lines.append(f"some models' tasks have only {n[n > 0].min()} wordings: their spread is uncertain")
    if len(analysis.grid.tasks) < _FEW_TASKS:
        lines.append(
            f"with {count(len(analysis.grid.tasks), 'task')} no interval over tasks says much; ranks have none below"
            f" {_FEW_TASKS} tasks"
        )
    if not analysis.gate.empty:
        lines.append("wordings that were not accepted count only in the tables of the gate and of kinds of wordings")
    return lines + fallen(analysis.published)


def fallen(table: pd.DataFrame) -> list[str]:
    """Which conclusions from published defaults fall once these are of the same run, split and subset."""
    if table.empty:
        return []
    above = {name: int(table[f"above_{name}"].sum()) for name in ("published", "matched")}
    n = {name: int(table[f"n_{name}"].sum()) for name in ("published", "matched")}
    lines = [
        f"the published defaults are above the median wording in {above['published']} of {n['published']} cases, those"
        f" of the same run, split and subset in {above['matched']} of {n['matched']}"
    ]
    moves = {}
    for name in ("published", "matched"):
        moved = table[table[f"best_{name}"] != table[f"rank_{name}"]]
        moves[name] = "; ".join(
            f"{row['model']} {row[f'rank_{name}']} to {row[f'best_{name}']}" for row in moved.to_dict(orient="records")
        )
    if moves["published"] != moves["matched"]:
        lines.append(
            "with its best wordings against the others' defaults a model moves in rank by published defaults"
            f" ({moves['published'] or 'none'}) otherwise than by matched ones ({moves['matched'] or 'none'})"
        )
    fewer = np.flatnonzero(table["n_published"] < table["n_matched"])
    if len(fewer):
        names = ", ".join(table["model"].iloc[fewer])
        lines.append(f"published defaults are missing on some tasks of {names}: ranks by them rest on fewer tasks")
    return lines


FOLDER = "report_instructions"
#: Headings, and what stands below them by name: figures first.
OUTLINE = {
    "The recommended score": ("recommended", "ranks"),
    "Where defaults lie": ("inflation", "published"),
    "Scores over wordings": ("distribution",),
    "How far scores move": ("variation",),
    "Boards": ("boards", "random_wordings"),
    "Best and worst wordings": ("best_worst", "split_halves"),
    "People against machines": ("sources",),
    "Kinds of wordings": ("contexts", "gate"),
    "Coverage": ("coverage", "aside"),
}
_ABOUT = (
    "How far scores of instruction embedders hang on the wording of the instruction, after arXiv 2605.22544. A wording"
    " counts where people found it acceptable; scores stand beside each other where run, revision, split, subset, data"
    " and mteb are the same. Each table is a file in tables/ (CSV with all digits, Markdown, LaTeX), each figure one in"
    " figures/ (SVG, PNG)."
)


def write_report(folder: Path, analysis: Analysis, title: str) -> Path:
    """Write the report into a folder, each file atomically; returns its page. Those of the report before go."""
    words = PageWords(title, SIMULATED if analysis.simulated else "", headline(analysis), doubts(analysis), _ABOUT)
    return write_outlined(folder, words, OUTLINE, all_exhibits(analysis), all_figures(analysis))

"""The analysis of wordings as tables that people read; each is a file too."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from evaluation.display import hundred, points
from evaluation.instructions import tables
from evaluation.instructions.analysis import SIMULATED, Analysis
from evaluation.instructions.boards import AGAINST_DEFAULTS, AGAINST_WORST, DEFAULTS, HOLES, N_DRAWS
from evaluation.instructions.comparable import reasons as aside_reasons
from evaluation.instructions.origins import N_RESAMPLES
from evaluation.report.paper_tables import p_value
from generation.output_statistics import shown
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
        f"Is: {tables.RULE}. ECDF: the share of wordings that score at most as it does, in brackets with"
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
    frame = tables.best_worst_table(analysis.grid)
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
    frame = tables.context_table(analysis.whole)
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
    frame = tables.coverage_table(analysis.grid)
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

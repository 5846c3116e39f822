"""Whether models know when they are wrong, as exhibits: nAUC, what a threshold does, curves."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from evaluation import tables
from evaluation.display import decimal, hundred
from evaluation.report.charts import series_colour, series_name, series_shape
from evaluation.report.drift_charts import PANEL_WIDTH
from evaluation.report.paper_tables import PaperResults, exhibit, named
from plumbline.exhibits.palette import NEUTRAL
from plumbline.exhibits.table import Exhibit, reasons
from plumbline.statistics.abstention import CONFIDENCES
from plumbline.transformations import ORIGINAL

SHARE = 0.8  # of original queries answered, for which thresholds are printed; the file has every tenth
_FEW = 100  # queries of a data set, below which it is said
#: What the confidences are called.
CALLED = {
    "max": "the largest similarity",
    "std": "the similarities' standard deviation",
    "diff1": "the largest similarity less the second",
}
_NAUC = (
    "nAUC: the area between the curve of scores by share of answers and the flat line, as a share of the best possible;"
    " 1: the queries that score worst go first, 0: confidence says nothing, below 0: it misleads (MMTEB, F.1)."
    f" max: {CALLED['max']} of a query; std: {CALLED['std']}; diff1: {CALLED['diff1']}. In square brackets: a 95%"
    " interval over queries (bootstrap; in simulations of 50 to 300 queries 93% to 95% held the truth). In round"
    " ones: nAUC of the original texts of the same queries."
)
_THRESHOLDS = (
    "The threshold is set on the original texts and held. A model that knows when a transformation has lost it answers"
    " fewer of the transformed queries, and those it answers score as the originals do."
)


def nauc(results: PaperResults, rows: pd.DataFrame) -> Exhibit:
    """NAUC by model and transformation, the originals' beside it."""
    frame = tables.abstention_table(rows)
    cells_of = []
    for row in frame.to_dict(orient="records"):
        cells = {"Model": row["model"], "Transformation": named(row["transformation"])}
        for name in CONFIDENCES:
            cell = decimal(row[f"nauc_{name}"])
            if not math.isnan(row[f"nauc_low_{name}"]):
                cell += f" [{decimal(row[f'nauc_low_{name}'])}, {decimal(row[f'nauc_high_{name}'])}]"
            original = row["transformation"] == ORIGINAL
            cells[f"nAUC ({name})"] = cell if original else f"{cell} ({decimal(row[f'nauc_original_{name}'])})"
        cells_of.append(cells | {"Data sets": str(row["n_datasets"]), "Queries": f"{row['n_queries']:,}"})
    others = tables.not_searches(rows)
    least = min((int(n) for n in rows["n"] if n), default=_FEW)
    few = [f"Few queries ({least} in a data set): nAUC moves with each of them"] if least < _FEW else []
    why = [
        _NAUC,
        *few,
        *(f"{', '.join(n for n in others if others[n] == why)}: {why}" for why in dict.fromkeys(others.values())),
        *reasons(map(named, frame["transformation"]), frame["reason"]),
    ]
    return exhibit(results, "abstention", "Whether models know which queries to leave unanswered", frame, cells_of, why)


def thresholds(results: PaperResults, rows: pd.DataFrame) -> Exhibit:
    """What a threshold on the largest similarity does before and after; the file has all confidences and shares."""
    frame = tables.threshold_shares(rows)
    shown = frame[(frame["share"] == SHARE) & (frame["confidence"] == CONFIDENCES[0])]
    printed = [
        {"Model": row["model"], "Data set": row["dataset"], "Transformation": named(row["transformation"])}
        | {"Threshold": f"{row['threshold']:.3f}", "Answered": f"{row['answered']:.1%}"}
        | {"Score of all": hundred(row["score_all"]), "Of answers": hundred(row["score"])}
        for row in shown.to_dict(orient="records")
    ]
    caption = (
        f"Answering where {CALLED['max']} reaches what {SHARE:.0%} of the original queries reach: share that is"
        " answered, and scores times 100"
    )
    return exhibit(results, "abstention_thresholds", caption, frame, printed, [_THRESHOLDS])


def curves(table: pd.DataFrame, results: PaperResults, confidence: str) -> alt.ConcatChart:
    """Scores by share of answers for one confidence, a panel a model, from `evaluation.tables.abstention_curves`.

    The broken line is the best possible, the dotted one the mean of all queries, both of the original texts.
    """
    panels = list(panels_of(table, results, confidence).values())
    figure: alt.ConcatChart = alt.concat(*panels, columns=2)
    return figure


def panels_of(table: pd.DataFrame, results: PaperResults, confidence: str) -> dict[str, alt.LayerChart]:
    """The panels of `curves` by model."""
    curves_of = table[table["confidence"] == confidence]
    shown = curves_of.assign(
        series=curves_of["series"].map(series_name), **{n: 100 * curves_of[n] for n in ("score", "oracle", "flat")}
    )
    across = (
        alt.X("share:Q", title="Share of queries answered")
        .axis(format="%", values=[1, 0.8, 0.6, 0.4, 0.2])
        .scale(domain=[0.1, 1], reverse=True)
    )
    shown_series = [series_name(name) for name in (ORIGINAL, *results.axes.shown) if name in set(curves_of["series"])]
    panels = {}
    for model, part in shown.groupby("model", sort=False):
        up = alt.Y("score:Q", title="Score times 100").scale(zero=False)
        base = alt.Chart(part)
        lines = base.mark_line(point={"size": 40, "filled": True}).encode(
            x=across,
            y=up,
            color=series_colour(results.axes).legend(values=shown_series),
            shape=series_shape(results.axes).legend(values=shown_series),
            tooltip=[
                alt.Tooltip("series:N"),
                alt.Tooltip("share:Q", format=".0%"),
                alt.Tooltip("score:Q", format=".2f"),
            ],
        )
        bounds = alt.Chart(part[part["series"] == series_name(ORIGINAL)])
        oracle = bounds.mark_line(color=NEUTRAL, strokeDash=[6, 4]).encode(x=across, y=alt.Y("oracle:Q"))
        flat = bounds.mark_line(color=NEUTRAL, strokeDash=[2, 3]).encode(x=across, y=alt.Y("flat:Q"))
        panel = alt.LayerChart(layer=[oracle, flat, lines], title=str(model))
        panels[str(model)] = panel.properties(width=PANEL_WIDTH, height=PANEL_WIDTH * 3 // 4)
    return panels


def curve_caption(confidence: str) -> str:
    """What such a figure shows."""
    return (
        f"Scores of the queries that are answered first by {CALLED[confidence]} ({confidence}); broken line: the best"
        " possible order of the original queries, dotted: no order"
    )

"""What stands in the cells of tables on people and models."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.verdicts.tables import SIMULATED
from evaluation.human.material import HumanMaterial
from plumbline.exhibits.table import Exhibit

NONE = "–"
LONGEST = 160  # characters of an item's text in a table
V_MEASURE = "v_measure"
OF_N_ITEMS = (
    "An interval of a V-measure is of what so many items give on average, which is more than what all items would give:"
    " simulated, it holds the first in 88 to 99 studies of 100 and the second in 0 to 63. AMI comes first, as its"
    " interval holds the value of all items in 78 to 97"
)


def with_ami(scores: pd.DataFrame, by: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """(place, its rows of the task's own metric), and of clusterings those of AMI before: it hardly moves with n."""
    for place, every in scores.groupby(by, sort=False):
        main = every[every["main"]]
        if (main["metric"] == V_MEASURE).any() and len(adjusted := every[every["metric"] == "ami"]):
            yield place, adjusted
        if len(main):
            yield place, main


def on_clusters(scores: pd.DataFrame) -> list[str]:
    """What has to be said of intervals of a V-measure, where there is one."""
    return [OF_N_ITEMS] if (scores["metric"] == V_MEASURE).any() else []


def estimate(value: float, low: float, high: float) -> str:
    """A score times 100 with its interval."""
    one = f"{100 * value:.1f}" if not math.isnan(value) else NONE
    return one if math.isnan(low) else f"{one} [{100 * low:.1f}, {100 * high:.1f}]"


def row_of(own: pd.DataFrame, kind: str) -> pd.Series | None:
    """The row of a kind of scorer; None where there is none."""
    found = own[own["scorer_kind"] == kind]
    return found.iloc[0] if len(found) else None


def top(own: pd.DataFrame) -> pd.Series[Any] | None:
    """The row with the highest score, the first of several; None where there is none."""
    return own.iloc[int(own["score"].to_numpy().argmax())] if len(own) else None


def first_of(agreement: pd.DataFrame, where: str) -> pd.Series | None:
    """The first measure of a task's agreement."""
    found = agreement[agreement["where"] == where]
    return found.iloc[0] if len(found) else None


def value_of(row: pd.Series | None, name: str = "score") -> float:
    """A number of a row; NaN without one."""
    return math.nan if row is None else float(row[name])


def said(row: pd.Series | None) -> str:
    """A score times 100 with its interval."""
    return NONE if row is None else estimate(row["score"], row["low"], row["high"])


def hundredfold(row: pd.Series | None) -> str:
    """A score times 100."""
    return NONE if row is None else f"{100 * row['score']:.1f}"


def agreed(row: pd.Series | None) -> str:
    """A measure of agreement with its value, ! where HUME calls it problematic."""
    if row is None or math.isnan(row["value"]):
        return NONE
    return f"{row['measure']} {row['value']:.2f}{' !' if row['flag'] == 'problematic' else ''}"


def difference_of(row: Mapping[Hashable, Any] | None) -> str:
    """Points between people and a model, with their interval."""
    if row is None or math.isnan(float(row["difference"])):
        return NONE
    value, low, high = (float(row[name]) for name in ("difference", "low", "high"))
    return f"{100 * value:+.1f}" + ("" if math.isnan(low) else f" [{100 * low:+.1f}, {100 * high:+.1f}]")


def p_of(row: Mapping[Hashable, Any] | None) -> str:
    """Holm's p as papers print it."""
    p = math.nan if row is None else float(row["p_holm"])
    return NONE if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def ends(value: float, low: float, high: float) -> str:
    """A value with its interval."""
    if math.isnan(value):
        return NONE
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def percent(value: float) -> str:
    """A share in percent."""
    return NONE if math.isnan(value) else f"{100 * value:.0f}%"


def short(text: str) -> str:
    """A text cut to a table's width."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def table(
    one: HumanMaterial, name: str, caption: str, frame: pd.DataFrame | Sequence[Mapping[str, object]],
    rows: Sequence[Mapping[str, str]], notes: Iterable[str],
) -> Exhibit:  # fmt: skip
    """`frame` with all digits and `rows` as printed; answers that a program gave are said to be simulated."""
    simulated, table = [SIMULATED] if one.simulated else [], pd.DataFrame(frame)
    clusters = on_clusters(table) if {"metric", "low"} <= set(table) else []
    return Exhibit(name, caption, table, pd.DataFrame(rows), (*simulated, *clusters, *filter(None, notes)))

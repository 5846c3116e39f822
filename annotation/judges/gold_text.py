"""How judges agree with gold scores, as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from annotation.judges.gold import AVERAGE
from annotation.judges.gold_run import GoldRow
from plumbline import cli

RECORDED = "Recorded judges were not asked: their answers stand in files."
_MEAN = "mean of judges"


def gold_text(rows: Sequence[GoldRow], *, recorded: bool) -> str:
    """PTEB's Tables 2 and 3, Figures 3 and 4 as tables, a judge a column; `recorded` where a judge was not asked."""
    parts = [
        _table("Spearman with the gold scores, in %", "data set", rows, "spearman"),
        _table("Mean absolute error by gold score, in points of the judges' scale", "gold score", rows, "error"),
        _table("Spearman by the mean words of a pair's texts, in %", "data set, words", rows, "words"),
    ]
    notes = [
        "Pairs are those that a judge could rate; of the last table those that all could, ten at least for a number."
    ]
    return "\n\n".join([*parts, "\n".join([*notes, *([RECORDED] if recorded else [])])])


def _table(title: str, first: str, rows: Sequence[GoldRow], table: str) -> str:
    own = [row for row in rows if row.table == table and row.n]
    judges = list(dict.fromkeys(row.judge for row in own))
    places = sorted(dict.fromkeys((row.dataset, row.group) for row in own), key=lambda place: place[0] == AVERAGE)
    found = {(row.dataset, row.group, row.judge): row for row in own}
    lines = []
    for place in places:
        each = [found.get((*place, judge)) for judge in judges]
        numbers = sorted({row.n for row in each if row})
        pairs = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
        lines.append([", ".join(filter(None, place)), pairs, *(_shown(row, percent=table != "error") for row in each)])
    return f"{title}\n\n{cli.columns([first, 'pairs', *(judge or _MEAN for judge in judges)], lines)}"


def _shown(row: GoldRow | None, *, percent: bool) -> str:
    if row is None or math.isnan(row.value):
        return "–"
    return f"{100 * row.value:.2f}" if percent else f"{row.value:.2f}"

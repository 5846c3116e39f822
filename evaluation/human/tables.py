"""A table on people and models, with what has to be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from annotation.verdicts.tables import SIMULATED
from evaluation.human.cells import on_clusters
from evaluation.human.material import Material
from plumbline.exhibits.table import Exhibit


def table(
    one: Material, name: str, caption: str, frame: pd.DataFrame | Sequence[Mapping[str, object]],
    rows: Sequence[Mapping[str, str]], notes: Iterable[str],
) -> Exhibit:  # fmt: skip
    """`frame` with all digits and `rows` as printed; answers that a program gave are said to be simulated."""
    simulated, table = [SIMULATED] if one.simulated else [], pd.DataFrame(frame)
    clusters = on_clusters(table) if {"metric", "low"} <= set(table) else []
    return Exhibit(name, caption, table, pd.DataFrame(rows), (*simulated, *clusters, *filter(None, notes)))

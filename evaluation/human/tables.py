"""A table on people and models, with what has to be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from annotation.verdicts.tables import SIMULATED
from evaluation.human.material import Material
from plumbline.exhibits.table import Exhibit


def table(
    one: Material, name: str, caption: str, frame: pd.DataFrame | Sequence[Mapping[str, object]],
    rows: Sequence[Mapping[str, str]], notes: Iterable[str],
) -> Exhibit:  # fmt: skip
    """`frame` with all digits and `rows` as printed; answers that a program gave are said to be simulated."""
    simulated = [SIMULATED] if one.simulated else []
    return Exhibit(name, caption, pd.DataFrame(frame), pd.DataFrame(rows), (*simulated, *filter(None, notes)))

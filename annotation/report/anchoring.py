"""The report's section on an experiment with judges' scores in sight (`raters.suggestions: half`)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.anchoring.effect import ABOUT, INTERVALS, read_anchoring
from annotation.ratings.collected import Collected
from annotation.records import Estimate
from annotation.report.material import Material
from annotation.verdicts.tables import SIMULATED, number, with_interval
from plumbline.exhibits.page import Section
from plumbline.exhibits.table import Exhibit

NAME = "anchoring"


def anchoring_exhibits(material: Material) -> list[Exhibit]:
    """The table; none where the study makes no such experiment, or nobody has rated yet."""
    if material.study.raters.suggestions == "none":
        return []
    frame = read_anchoring(material.study, Collected.read(material.study)).assign(simulated=material.simulated)
    if frame.empty:
        return []
    printed = pd.DataFrame(
        {
            "Question": frame["question"],
            "Of a pair": frame["measure"],
            "Scores in sight": frame["shown"].map(number),
            "Not in sight": frame["hidden"].map(number),
            "Difference [95%]": [
                with_interval(Estimate(value=row["difference"], low=row["low"], high=row["high"]))
                for row in frame.to_dict("records")
            ],
            "Pairs": [f"{one:,} and {other:,}" for one, other in zip(frame["n_shown"], frame["n_hidden"], strict=True)],
        }
    )
    return [
        Exhibit(NAME, "Ratings with and without judges' scores in sight, which no verdict rests on", frame, printed)
    ]


def anchoring_section(material: Material, tables: Sequence[Exhibit]) -> list[Section]:
    """The section; none without the experiment."""
    if not tables:
        return []
    made_up = [SIMULATED] if material.simulated else []
    return [Section("Anchoring: an experiment", [ABOUT, *made_up, *(one.table() for one in tables), INTERVALS])]

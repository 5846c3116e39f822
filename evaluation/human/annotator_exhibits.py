"""Language models that do people's tasks, as tables that people read."""

from __future__ import annotations

import math

from evaluation.human.cells import NONE, ends
from evaluation.human.material import Material
from evaluation.human.tables import table
from plumbline.exhibits.table import Exhibit, reasons

_ALIKE = (
    "Agreement is the mean over raters of the model and each, beside raters two by two, whatever is right. Clusters and"
    " orders of a model have no test: they are on no common scale with people's"
)
_TEST = (
    "The alternative annotator test (Calderon, Reichart and Dror, ACL 2025) holds a model against each rater in turn,"
    " by the other raters' answers: winning is the share of raters whom it is as good as, less a tolerance of 0.1, and"
    " a half passes; advantage is how often it is as close. Passing says that it answers as one more rater would, not"
    " that it is right. With few items no model passes"
)
_HARD = (
    "Spearman's rho of the raters' mean score and the model's over tasks, with a bootstrap over these (HUME, Table 13)"
)


def annotators(one: Material) -> Exhibit:
    """Each task and language model: agreement with people, and whether it could stand in for a rater."""
    frame = one.annotators
    rows = [
        {"Task": row["where"], "Model": row["model"], "Measure": row["measure"]}
        | {"With raters [95%]": ends(row["value"], row["low"], row["high"]), "Items": str(row["n"])}
        | {"Among raters": NONE if math.isnan(row["among_people"]) else f"{row['among_people']:.2f}"}
        | {"Winning": NONE if math.isnan(row["winning_rate"]) else f"{row['winning_rate']:.2f}"}
        | {"Advantage": NONE if math.isnan(row["advantage"]) else f"{row['advantage']:.2f}"}
        | {"Passes": NONE if math.isnan(row["winning_rate"]) else "yes" if row["passes"] else "no"}
        for row in frame.to_dict(orient="records")
    ]
    notes = [_ALIKE, _TEST, *reasons(frame["where"] + ", " + frame["model"], frame["reason"])]
    return table(one, "annotators", "Language models that did the tasks, beside raters", frame, rows, notes)


def difficulty(one: Material) -> Exhibit:
    """Whether what is hard for people is hard for each language model."""
    frame = one.difficulty
    rows = [
        {"Model": row["model"], "rho [95%]": ends(row["rho"], row["low"], row["high"])}
        | {"p": NONE if math.isnan(row["p"]) else f"{row['p']:.3f}", "Tasks": str(row["n"])}
        for row in frame.to_dict(orient="records")
    ]
    notes = [_HARD, *reasons(frame["model"], frame["reason"])]
    return table(one, "difficulty", "Whether tasks are hard for people and language models alike", frame, rows, notes)

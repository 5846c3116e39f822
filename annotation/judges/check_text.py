"""What `python -m annotation judge check` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.judges.beside import Beside
from annotation.judges.check import FOLDER, Checked
from annotation.verdicts.tables import SIMULATED
from plumbline import cli

# (table, its title, its columns with their headings)
_DECISIONS = (
    "People first; beside them what the same rule says of people and judges together",
    {
        "transformation": "Transformation",
        "language": "Language",
        "decision": "People",
        "with_judges": "People + judges",
    },
)
_SHOWN: Sequence[tuple[str, str, dict[str, str]]] = (
    ("decisions", *_DECISIONS),
    (
        "people",
        "Judges beside the mean rating of each pair; gap: judge minus people, with its 95% interval",
        {
            "judge": "Judge",
            "question": "Question",
            "transformation": "Transformation",
            "n": "Pairs",
            "failed": "Failed",
            "spearman": "Spearman",
            "ac2": "AC2",
            "mean_absolute_error": "Error",
            "gap": "Gap",
            "low": "from",
            "high": "to",
        },
    ),
    (
        "alternative",
        "Alternative annotator test: passing says as good as one more rater, not that the mean is right",
        {
            "judge": "Judge",
            "question": "Question",
            "epsilon": "Epsilon",
            "omega": "Raters beaten",
            "rho": "Closer",
            "passes": "Passes",
            "reason": "",
        },
    ),
    (
        "order",
        "How far scores move with the order of the scale (up minus down)",
        {
            "judge": "Judge",
            "question": "Question",
            "n": "Outputs",
            "difference": "Difference",
            "low": "from",
            "high": "to",
            "large": "By a point",
        },
    ),
    (
        "length",
        "How the gap rises with length: points for each factor of e in words",
        {"judge": "Judge", "question": "Question", "slope": "Slope", "low": "from", "high": "to", "reason": ""},
    ),
    (
        "between",
        "Judges beside each other",
        {
            "question": "Question",
            "first": "Judge",
            "second": "Judge",
            "n": "Outputs",
            "spearman": "Spearman",
            "ac2": "AC2",
            "difference": "Difference",
        },
    ),
)


def beside_text(made: Beside) -> str:
    """What stands beside verdicts, for `annotation accept`: what is recorded, decisions, and what they rest on."""
    title, columns = _DECISIONS
    lines = [
        title,
        who_decides(decides=made.decides),
        *_recorded(made.recorded),
        *([SIMULATED] if made.simulated else []),
    ]
    lines += ["", _table(made.decisions, columns), "", *basis_lines(made.decisions)]
    return "\n".join([*lines, *saved_lines(made.saved)])


def who_decides(*, decides: bool) -> str:
    """Whose the verdicts are."""
    if decides:
        return "Verdicts are those of people and judges together (acceptance.judges: decide)."
    return "Verdicts are people's; judges decide nothing."


def _recorded(judges: Sequence[str]) -> list[str]:
    return [f"Recorded, nobody was asked: {', '.join(judges)}"] if judges else []


def saved_lines(saved: pd.DataFrame | None) -> list[str]:
    """What judges have saved so far, in a line; none where they are refused everywhere."""
    if saved is None:
        return []
    known = saved[saved["reason"] == ""]
    if known.empty:
        return []
    pairs, ratings = known["pairs_saved"].sum(), known["ratings_saved"].sum()
    where = f"in {len(known)} of {len(saved)} groups that are judged apart; judges are refused in the others"
    size = f"{abs(pairs):,.0f} pairs ({abs(ratings):,.0f} ratings)"
    told = (
        f"Saved so far: {size} that people alone would have to rate as well, for intervals over pairs as narrow"
        if pairs > -0.5  # less than a pair is none
        else f"Nothing saved so far: with these judges means are only as sure as people's with {size} fewer"
    )
    return [f"{told}{', ' + where if len(known) < len(saved) else ''}"]


def check_text(name: str, found: Checked) -> str:
    """The tables of a study called `name`, what makes them doubtful first."""
    parts = [f"Judges of study {name}", *_recorded(found.recorded)]
    if found.simulated:
        parts.append(SIMULATED)
    parts += [f"Another decision with judges: {line}" for line in found.warnings]
    for table, title, columns in _SHOWN:
        if table in found.tables:
            parts.append(f"\n{title}\n\n{_table(found.tables[table], columns)}")
        if table == "decisions" and table in found.tables:
            parts += [
                "",
                who_decides(decides=found.decides),
                *basis_lines(found.tables[table]),
                *saved_lines(found.tables.get("saved")),
            ]
    far = len(found.tables.get("far", ()))
    parts.append(f"\nRatings more than 2 points from the judges, to be read: {far} ({FOLDER}/far.csv)")
    return "\n".join(parts)


def basis_lines(decided: pd.DataFrame) -> list[str]:
    """What the decisions with judges rest on, and why there are none: a line for all that have the same."""
    found = []
    for column, none in (("rests_on", ""), ("why_not", "no judges, ")):
        for said, own in decided[decided[column] != ""].groupby(column, sort=False):
            names = dict.fromkeys(own["transformation"] + " (" + own["language"] + ")")
            found.append(f"{', '.join(names)}: {none}{said}")
    return found


def _table(frame: pd.DataFrame, columns: dict[str, str]) -> str:
    shown = frame.replace({"with_judges": {"": "refused"}}) if "with_judges" in columns else frame
    rows = [[_cell(row[name]) for name in columns] for row in shown.to_dict("records")]
    return cli.columns(list(columns.values()), rows)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.2f}"
    return str(value)

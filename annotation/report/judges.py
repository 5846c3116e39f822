"""The report's section on LLM judges: after people's verdicts, beside them, and with what each row rests on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.judges.beside import Beside
from annotation.judges.check_text import saved_lines
from annotation.judges.judgements import over_orders
from annotation.judges.people import AGAINST, against_people
from annotation.records import Estimate
from annotation.report.material import Material
from annotation.statistics.summaries import Design
from annotation.verdicts.tables import SIMULATED, display, number, with_interval
from plumbline.exhibits.page import Section, Table
from plumbline.exhibits.table import Exhibit

_ABOUT = (
    "Judges rated the pairs that people rated, and more. People decide: verdicts, and what is evaluated, rest"
    " on people alone. “People + judges” is what the same rule would say of both (prediction-powered inference; a judge"
    " that is wrong by any constant changes nothing), so that a reader sees how much hangs on them. Worth is how many"
    " rated pairs would be as sure by themselves."
)


def judge_exhibits(material: Material) -> list[Exhibit]:
    """The section's tables; none where no judge stands beside the verdicts."""
    if material.beside is None:
        return []
    agreeing = agreement_exhibit(material, material.beside)
    return [decisions_exhibit(material, material.beside), *([agreeing] if len(agreeing.frame) else [])]


def judges_section(material: Material, tables: Sequence[Exhibit]) -> list[Section]:
    """The section; none without judges, and a line where their records cannot be read."""
    made = material.beside
    if made is None:
        why = material.judges_left_out
        return [Section("Judges beside people", [f"Judges are left out: {why}"])] if why else []
    decided, *agreeing = tables
    saved = [f"{line}." for line in saved_lines(made.saved)]
    parts: list[str | Table] = [_ABOUT, *made_up(made), decided.table(), *saved, *(one.table() for one in agreeing)]
    return [Section("Judges beside people", parts)]


def made_up(made: Beside) -> list[str]:
    """Who the judges are, and what of judges and ratings is no model's and no person's: a line each."""
    models = made.judging.judgements.drop_duplicates("judge").sort_values("judge")
    named = [f"{one['judge']} ({one['model']})" for one in models.to_dict("records")]
    recorded = f" Recorded, nobody was asked: {', '.join(made.recorded)}." if made.recorded else ""
    return [f"Judges: {', '.join(named)}.{recorded}", *([SIMULATED] if made.simulated else [])]


def decisions_exhibit(material: Material, made: Beside) -> Exhibit:
    """A row a verdict: people's decision first, then that of people and judges, and what it rests on."""
    judged = material.study.called.judged.capitalize()
    rows = [
        {
            judged: display(row["transformation"], pooled=False),
            "Language": f"{row['language']} {row['task_type']}".strip(),
            "People": row["decision"],
            "People + judges": row["with_judges"] or "refused",
            "Differ": "differ" if row["differ"] else "",
            "Rests on": "; ".join(
                filter(None, [row["rests_on"], row["why_not"] and f"people alone: {row['why_not']}"])
            ),
        }
        for row in made.decisions.to_dict("records")
    ]
    frame = made.decisions.assign(
        judges=", ".join(made.judging.judges), recorded=", ".join(made.recorded), simulated=made.simulated
    )
    frame = frame.assign(reasons=["; ".join(one) for one in frame["reasons"]])
    caption = "Decisions of people, and beside them what the rule would say of people and judges"
    return Exhibit("judges_decisions", caption, frame, pd.DataFrame(rows))


def agreement_exhibit(material: Material, made: Beside) -> Exhibit:
    """A row for each judge, question and transformation: how far its scores are from people's ratings."""
    design = Design.of(material.study, material.rubric)
    scaled = material.counting[material.counting["question"].isin(material.questions)]
    frame = pd.concat(
        [
            against_people(scaled[scaled["question"] == question], own, design.asked(str(question)).scale)
            for question, own in over_orders(made.judging.judgements).groupby("question")
            if question in material.questions
        ]
        or [pd.DataFrame(columns=AGAINST)],
        ignore_index=True,
    )
    frame = frame.assign(recorded=frame["judge"].isin(made.recorded), simulated=made.simulated)
    printed = pd.DataFrame(
        {
            "Judge": frame["judge"],
            "Question": frame["question"],
            material.study.called.judged.capitalize(): [display(one, pooled=False) for one in frame["transformation"]],
            f"{material.study.called.item}s".capitalize(): frame["n"].map("{:,}".format),
            "Failed": frame["failed"].map("{:,}".format),
            "Spearman": frame["spearman"].map(number),
            "AC2": frame["ac2"].map(number),
            "Gap [95%]": [
                with_interval(Estimate(value=row["gap"], low=row["low"], high=row["high"]))
                for row in frame.to_dict("records")
            ],
        }
    )
    caption = "Judges beside the mean rating of each pair; gap: judge minus people"
    return Exhibit("judges_agreement", caption, frame, printed)

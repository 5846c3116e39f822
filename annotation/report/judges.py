"""The report's section on LLM judges: after people's verdicts, beside them, and with what each row rests on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from annotation.judges.check import length_effects, saved_lines, who_decides
from annotation.judges.decisions import JudgedOutcome
from annotation.judges.effects import order_effects
from annotation.judges.people import AGAINST, against_people
from annotation.judges.records import over_orders
from annotation.judges.select_generator import family
from annotation.report.material import CampaignMaterial
from annotation.statistics.summaries import Design
from annotation.verdicts.tables import SIMULATED, display, number, with_interval
from plumbline.exhibits.page import Section
from plumbline.exhibits.table import Exhibit, Table
from plumbline.statistics.estimates import Estimate

_ABOUT = (
    "Judges rated the pairs that people rated, and more. “People + judges” is what the same rule says of both"
    " (prediction-powered inference; a judge that is wrong by any constant changes nothing), so that a reader sees how"
    " much hangs on them. Worth is how many rated pairs would be as sure by themselves."
)


def judge_exhibits(material: CampaignMaterial) -> list[Exhibit]:
    """The section's tables; none where no judge stands beside the verdicts."""
    if material.beside is None:
        return []
    outcome = material.beside
    more = [agreement_exhibit(material, outcome), order_exhibit(material, outcome), length_exhibit(material, outcome)]
    return [decisions_exhibit(material, outcome), *(table for table in more if len(table.frame))]


def judges_section(material: CampaignMaterial, tables: Sequence[Exhibit]) -> list[Section]:
    """The section; none without judges, and a line where their records cannot be read."""
    outcome = material.beside
    if outcome is None:
        why = material.judges_left_out
        return [Section("Judges beside people", [f"Judges are left out: {why}"])] if why else []
    decided, *agreeing = tables
    saved = [f"{line}." for line in saved_lines(outcome.saved)]
    parts: list[str | Table] = [
        _ABOUT,
        who_decides(decides=outcome.decides),
        *made_up(outcome),
        decided.table(),
        *saved,
        *(table.table() for table in agreeing),
    ]
    return [Section("Judges beside people", parts)]


def made_up(outcome: JudgedOutcome) -> list[str]:
    """Who the judges are, and what of judges and ratings is no model's and no person's: a line each."""
    models = outcome.judging.judgements.drop_duplicates("judge").sort_values("judge")
    named = [f"{model['judge']} ({model['model']})" for model in models.to_dict("records")]
    recorded = f" Recorded, nobody was asked: {', '.join(outcome.recorded)}." if outcome.recorded else ""
    makers = dict.fromkeys(models["generator"])
    kin = {
        model["judge"]: [name for name in makers if family(name) == family(model["model"])]
        for model in models.to_dict("records")
    }
    related = "; ".join(f"{judge} of {', '.join(names)}" for judge, names in kin.items() if names)
    doubtful = [f"Judges of their own outputs, or by name of a relative's, which they may favour: {related}."]
    return [f"Judges: {', '.join(named)}.{recorded}", *(doubtful if related else []), *_simulated(outcome)]


def _simulated(outcome: JudgedOutcome) -> list[str]:
    return [SIMULATED] if outcome.simulated else []


def decisions_exhibit(material: CampaignMaterial, outcome: JudgedOutcome) -> Exhibit:
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
        for row in outcome.decisions.to_dict("records")
    ]
    frame = outcome.decisions.assign(
        judges=", ".join(outcome.judging.judges), recorded=", ".join(outcome.recorded), simulated=outcome.simulated
    )
    frame = frame.assign(reasons=["; ".join(reasons) for reasons in frame["reasons"]])
    caption = "Decisions of people, and beside them what the rule says of people and judges"
    return Exhibit("judges_decisions", caption, frame, pd.DataFrame(rows))


def agreement_exhibit(material: CampaignMaterial, outcome: JudgedOutcome) -> Exhibit:
    """A row for each judge, question and transformation: how far its scores are from people's ratings."""
    design = Design.of(material.study, material.rubric)
    scaled = material.counting[material.counting["question"].isin(material.questions)]
    frame = pd.concat(
        [
            against_people(scaled[scaled["question"] == question], scores, design.asked(str(question)).scale)
            for question, scores in over_orders(outcome.judging.judgements).groupby("question")
            if question in material.questions
        ]
        or [pd.DataFrame(columns=AGAINST)],
        ignore_index=True,
    )
    frame = frame.assign(recorded=frame["judge"].isin(outcome.recorded), simulated=outcome.simulated)
    printed = pd.DataFrame(
        {
            "Judge": frame["judge"],
            "Question": frame["question"],
            material.study.called.judged.capitalize(): [
                display(name, pooled=False) for name in frame["transformation"]
            ],
            f"{material.study.called.item}s".capitalize(): frame["n"].map("{:,}".format),
            "Failed": frame["failed"].map("{:,}".format),
            "Spearman": frame["spearman"].map(number),
            "AC2": frame["ac2"].map(number),
            "Gap [95%]": _intervals(frame, "gap"),
        }
    )
    caption = "Judges beside the mean rating of each pair; gap: judge minus people"
    return Exhibit("judges_agreement", caption, frame, printed)


def order_exhibit(material: CampaignMaterial, outcome: JudgedOutcome) -> Exhibit:
    """A row for each judge and question: how far scores move with the order in which the scale was read."""
    judgements = outcome.judging.judgements
    parts = [
        order_effects(scores, "up", "down")
        for question, scores in judgements.groupby("question")
        if question in material.questions and {"up", "down"} <= set(scores["order"])
    ]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if frame.empty:
        return Exhibit("judges_order", "", frame, frame)
    frame = frame.assign(recorded=frame["judge"].isin(outcome.recorded))
    printed = pd.DataFrame(
        {
            "Judge": frame["judge"],
            "Question": frame["question"],
            "Outputs": frame["n"].map("{:,}".format),
            "Up minus down [95%]": _intervals(frame, "difference"),
            "By a point": frame["large"].map("{:.0%}".format),
        }
    )
    return Exhibit("judges_order", "How far judges' scores move with the order of the scale", frame, printed)


def length_exhibit(material: CampaignMaterial, outcome: JudgedOutcome) -> Exhibit:
    """A row for each judge and question: how the gap to people rises with the length of the output."""
    scores = over_orders(outcome.judging.judgements)
    scaled = material.counting[material.counting["question"].isin(material.questions)]
    parts = [
        length_effects(ratings, scores[scores["question"] == question], outcome.judging.judged)
        for question, ratings in scaled.groupby("question", observed=True)
        if question in set(scores["question"])
    ]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if frame.empty:
        return Exhibit("judges_length", "", frame, frame)
    frame = frame.assign(recorded=frame["judge"].isin(outcome.recorded), simulated=outcome.simulated)
    printed = pd.DataFrame(
        {"Judge": frame["judge"], "Question": frame["question"], "Slope [95%]": _intervals(frame, "slope")}
    )
    caption = "How the gap (judge minus people) rises with length: points for each factor of e in words"
    return Exhibit("judges_length", caption, frame, printed)


def _intervals(frame: pd.DataFrame, column: str) -> list[str]:
    rows = frame.to_dict("records")
    return [with_interval(Estimate(value=row[column], low=row["low"], high=row["high"])) for row in rows]

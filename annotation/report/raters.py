"""The report's sections on raters: the reliability of people's ratings, crowd workers and their pay, and LLM judges.

The section on judges comes after people's verdicts, compares with them, and names the evidence of each row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from annotation.crowd import pay
from annotation.judges.check import PEOPLE_DECIDE
from annotation.judges.outcome import JudgesOutcome
from annotation.judges.select_generator import family
from annotation.report.material import CampaignMaterial
from annotation.report.methods import SOURCE_NAMES
from annotation.statistics.reliability import reliability_table, truth_table
from annotation.verdicts.tables import SIMULATED, display, interval_of
from plumbline.exhibits.page import Section
from plumbline.exhibits.table import Exhibit, Table, interval

_ABOUT = (
    "ICC(1) is the reliability of a single rating, ICC(1, k) that of the mean of a pair's k ratings. ICC(2) treats the"
    " raters as a sample and ICC(3) as fixed; both need every rater to have rated every pair. The intervals suppose"
    " normal ratings: of 100 pairs near the end of the scale, of which a tenth is bad, they cover 82% and not 95%, with"
    " three bad pairs 54%. A z-score is a rating's distance from its rater's mean, in the rater's standard deviations."
)
_TRUTH = (
    "For items with a known right label, the table shows how often the majority of raters chose it, and how often Dawid"
    " and Skene's model did, which estimates each rater's reliability from all answers."
)


def reliability_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each question and statistic of reliability."""
    frame = reliability_table(material.counting, material.questions)
    return _printed(
        "reliability", "Reliability of ratings, with 95% intervals for normal ratings", frame, ["question", "statistic"]
    )


def truth_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each question, method and number; empty if no item has a known right label."""
    controls = material.control_ratings
    stay = (controls["status"] == "submitted") & (controls["excluded"] == "") & (controls["withdrawn"] == "")
    answers = pd.concat([material.counting, controls[stay]])
    frame = truth_table(answers, material.rubric.asked(), material.right)
    caption = "Accuracy on items with a known right label, with 95% intervals"
    return _printed("truth", caption, frame, ["question", "method", "statistic"])


def _printed(name: str, caption: str, frame: pd.DataFrame, columns: list[str]) -> Exhibit:
    printed = frame[columns].rename(columns=str.capitalize)
    printed["Value [95%]"] = list(map(interval_of, frame.to_dict("records")))
    return Exhibit(name, caption, frame, printed.assign(**{"n": frame["n"].map(str), "Why missing": frame["reason"]}))


def reliability_sections(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> list[Section]:
    """Return the report's sections on reliability, without empty ones."""
    parts: list[Section] = []
    if "reliability" in tables:
        parts.append(Section("Reliability", [_ABOUT, tables["reliability"].table()]))
    if "truth" in tables:
        parts.append(Section("Known labels", [_TRUTH, tables["truth"].table()]))
    return parts


def campaigns_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each campaign: batches, submissions, money and pay, in dollars."""
    shown = [
        {
            "Platform": SOURCE_NAMES[campaign.platform],
            "Mode": campaign.mode,
            "Batches offered": f"{campaign.posted} of {campaign.batches}",
            "Approved": str(campaign.states.get("approved", 0)),
            "Rejected": str(campaign.states.get("rejected", 0)),
            "Waiting": str(campaign.states.get("submitted", 0)),
            "Planned": pay.dollars(campaign.planned),
            "Rewards": pay.dollars(campaign.rewards),
            "Bonuses": pay.dollars(campaign.bonuses),
            "Spent or reserved": pay.dollars(campaign.spent),
            "Median minutes": _number(campaign.minutes, "{:.0f}"),
            "Median hourly pay": _number(campaign.hourly, "${:.2f}"),
        }
        for campaign in material.crowd
    ]
    caption = "Crowd campaigns; sums planned, and spent or reserved, include the platform's fees"
    frame = pd.DataFrame(shown)
    return Exhibit("crowd_campaigns", caption, frame, frame)


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


_ABOUT_JUDGES = (
    "Judges rated the pairs that people rated, and further outputs. “With judges” is people's mean, corrected by the"
    " judges' scores of the further outputs (prediction-powered inference: a judge's constant error changes nothing),"
    " and “As precise as” the number of rated pairs that would be as precise without judges. "
)


def judges_section(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> list[Section]:
    """Return the section; none without judges, and only a line if their records cannot be read."""
    outcome = material.judges
    if outcome is None:
        why = material.judges_left_out
        return [Section("Judges beside people", [f"Judges are left out: {why}"])] if why else []
    parts: list[str | Table] = [_ABOUT_JUDGES + PEOPLE_DECIDE, *made_up(outcome), tables["judges_means"].table()]
    return [Section("Judges beside people", parts)]


def made_up(outcome: JudgesOutcome) -> list[str]:
    """Return lines on the judges, on recorded scores, on judges' own outputs, and on simulated ratings."""
    models = outcome.judging.judgements.drop_duplicates("judge").sort_values("judge")
    named = [f"{model['judge']} ({model['model']})" for model in models.to_dict("records")]
    recorded = f" Judges whose answers come from a file: {', '.join(outcome.recorded)}." if outcome.recorded else ""
    makers = dict.fromkeys(models["generator"])
    kin = {
        model["judge"]: [name for name in makers if family(name) == family(model["model"])]
        for model in models.to_dict("records")
    }
    related = "; ".join(f"{judge} (outputs of {', '.join(names)})" for judge, names in kin.items() if names)
    doubtful = [
        f"Some judges rated outputs of their own model, or of one with a related name, and may favour them: {related}."
    ]
    return [
        f"Judges: {', '.join(named)}.{recorded}",
        *(doubtful if related else []),
        *([SIMULATED] if outcome.simulated else []),
    ]


def means_exhibit(material: CampaignMaterial, outcome: JudgesOutcome) -> Exhibit:
    """Return a row for each group and question: people's mean, that with judges, and how precise it is."""
    frame = outcome.means.assign(recorded=", ".join(outcome.recorded), simulated=outcome.simulated)
    places = [name for name in ("pool", "language", "task_type") if name in frame]
    where = [" ".join(filter(None, row)) for row in frame[places[1:]].astype(str).itertuples(index=False, name=None)]
    printed = pd.DataFrame(
        {
            material.study.called.judged.capitalize(): frame["pool"].map(display),
            "Language": where,
            "Question": frame["question"],
            "People [95%]": _intervals(frame, "people_mean", ("people_low", "people_high")),
            "With judges [95%]": _intervals(frame, "mean"),
            "Rated, judged too": [f"{n:,}, {m:,}" for n, m in zip(frame["n_rated"], frame["n_judged"], strict=True)],
            "As precise as": frame["worth"].map(lambda worth: _number(worth, "{:,.0f}")),
            "Refused": frame["reason"],
        }
    )
    caption = "People's means, and the same with judges' scores of further outputs; no verdict rests on these"
    return Exhibit("judges_means", caption, frame, printed)


def _intervals(frame: pd.DataFrame, column: str, ends: tuple[str, str] = ("low", "high")) -> list[str]:
    return [interval(*row) for row in frame[[column, *ends]].itertuples(index=False, name=None)]

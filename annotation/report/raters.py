"""The report's tables on raters: the reliability of people's ratings, crowd workers and their pay, and LLM judges."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pandas as pd

from annotation.crowd import pay
from annotation.judges.outcome import JudgesOutcome
from annotation.judges.select_generator import family
from annotation.report.material import CampaignMaterial
from annotation.report.methods import SOURCE_NAMES
from annotation.statistics.reliability import reliability_table, truth_table
from annotation.verdicts.tables import display, interval_of
from plumbline.exhibits.table import Exhibit, interval


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


def campaigns_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each campaign: batches, submissions, money and pay, in dollars."""
    rows = [
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
    frame = pd.DataFrame(rows)
    return Exhibit("crowd_campaigns", caption, frame, frame)


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


def judges_of(outcome: JudgesOutcome) -> list[dict[Hashable, Any]]:
    """Return each judge with its model, and with the generators that are its own model or have a related name."""
    judgements = outcome.judging.judgements
    makers = dict.fromkeys(judgements["generator"])
    judges = judgements.drop_duplicates("judge").sort_values("judge")[["judge", "model"]].to_dict("records")
    return [
        {**judge, "related": [name for name in makers if family(name) == family(judge["model"])]} for judge in judges
    ]


def means_exhibit(material: CampaignMaterial, outcome: JudgesOutcome) -> Exhibit:
    """Return a row for each group and question: people's mean, that with judges, and how precise it is."""
    frame = outcome.means.assign(recorded=", ".join(outcome.recorded), simulated=outcome.simulated)
    places = [name for name in ("pool", "language", "task_type") if name in frame]
    units = [" ".join(filter(None, row)) for row in frame[places[1:]].astype(str).itertuples(index=False, name=None)]
    printed = pd.DataFrame(
        {
            material.study.called.judged.capitalize(): frame["pool"].map(display),
            "Language": units,
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

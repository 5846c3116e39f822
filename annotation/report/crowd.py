"""What the report says about crowd workers: what was asked of them, what they were paid, what was decided and when."""

from __future__ import annotations

import math
from datetime import datetime

import pandas as pd

from annotation.crowd import platform as pay
from annotation.crowd.summary import CrowdSummary
from annotation.report.material import CampaignMaterial
from plumbline.exhibits.table import Exhibit
from plumbline.study.crowd import FAIR_WAGE

_NAMES = {"mturk": "Amazon Mechanical Turk", "prolific": "Prolific"}


def campaigns_exhibit(material: CampaignMaterial) -> Exhibit:
    """A row a campaign: batches, submissions, money and pay; dollars."""
    rows = [
        {
            "platform": campaign.platform,
            "mode": campaign.mode,
            "batches_posted": campaign.posted,
            "batches": campaign.batches,
            "approved": campaign.states.get("approved", 0),
            "rejected": campaign.states.get("rejected", 0),
            "waiting": campaign.states.get("submitted", 0),
            "returned": campaign.states.get("returned", 0),
            "unreadable": campaign.unread,
            "planned": campaign.planned / 100,
            "spent_or_reserved": campaign.spent / 100,
            "rewards": campaign.rewards / 100,
            "bonuses": campaign.bonuses / 100,
            "median_minutes": campaign.minutes,
            "median_hourly": campaign.hourly,
        }
        for campaign in material.crowd
    ]
    printed = [
        {
            "Platform": _NAMES[campaign.platform],
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
            "Median an hour": _number(campaign.hourly, "${:.2f}"),
        }
        for campaign in material.crowd
    ]
    caption = "Crowd campaigns; planned, and spent or reserved, are with the platform's fees"
    return Exhibit("crowd_campaigns", caption, pd.DataFrame(rows), pd.DataFrame(printed))


def crowd_decisions_exhibit(material: CampaignMaterial) -> Exhibit:
    """A row a decision about a submission: by a rule that was fixed beforehand or not, with results seen or not."""
    first = material.looks[0].at if material.looks else None
    columns = ["platform", "mode", "decided_at", "by_rule", "results_seen", "rater_id", "batch", "decision", "reason",
               "signs"]  # fmt: skip
    rows = []
    for campaign in material.crowd:
        for decision in campaign.decisions:
            seen = "yes" if first and datetime.fromisoformat(decision.decided_at) > first else "no"
            rule = "yes" if decision.by_rule else "no, decided later"
            rows.append((campaign.platform, campaign.mode, decision.decided_at, rule, seen, decision.rater_id,
                         decision.batch_id, decision.decision, decision.reason, "; ".join(decision.signs)))  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    # Approvals without a sign are the rule and many: the page lists what is not, the file has all.
    listed = frame[(frame["decision"] != "approve") | (frame["signs"] != "")]
    titles = ["When", "By a rule fixed before", "Results seen", "Worker", "Batch", "Decision", "Reason", "Signs then"]
    printed = listed.drop(columns=["platform", "mode"]).assign(
        decided_at=listed["decided_at"].str[:16].str.replace("T", " ")
    )
    caption = "Decisions about crowd work, but approvals without a sign"
    return Exhibit("crowd_decisions", caption, frame, printed.set_axis(titles, axis=1))


def paragraphs(material: CampaignMaterial) -> list[str]:
    """What a paper says about the crowd: a sentence or two for each campaign."""
    return [_paragraph(material, campaign) for campaign in material.crowd]


def _paragraph(material: CampaignMaterial, campaign: CrowdSummary) -> str:
    crowd = material.study.crowd
    if campaign.mode == "sandbox":
        return f"A rehearsal ran on {_NAMES[campaign.platform]}'s {campaign.mode}; its ratings count as simulated."
    approved, rejected = campaign.states.get("approved", 0), campaign.states.get("rejected", 0)
    parts = [
        f"Crowd workers of {_NAMES[campaign.platform]} were offered {campaign.posted} batches; {approved} submissions"
        f" were approved and {rejected} rejected."
    ]
    if not math.isnan(campaign.hourly):
        pay = f"${campaign.hourly:.2f} an hour, bonuses included"
        parts.append(f"The median submission took {campaign.minutes:.0f} minutes and was paid {pay}.")
    if crowd is not None:
        parts.append(
            f"Pay was set at ${crowd.pay.hourly:g} an hour for {crowd.pay.seconds:g} s a pair, the same in every"
            f" country; a worker could do at most {crowd.share:.0%} of the batches."
        )
        if crowd.pay.below_fair:
            parts.append(f"This is less than ${FAIR_WAGE:g} an hour; the reason given is: {crowd.pay.below_fair}.")
    later = sum(not decided.by_rule for decided in campaign.decisions)
    if later:
        parts.append(f"{later} of the rejections followed from no rule that was fixed beforehand.")
    return " ".join(parts)


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)

"""The report's sections on who rated: how reliable people's ratings are, crowd workers and their pay, and LLM judges.

Judges stand after people's verdicts, beside them, and with what each row rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import altair as alt
import pandas as pd

from annotation.crowd import platform as pay
from annotation.crowd.summary import CrowdSummary
from annotation.judges.check import length_effects, saved_lines, who_decides
from annotation.judges.decisions import JudgedOutcome
from annotation.judges.effects import order_effects
from annotation.judges.people import AGAINST, against_people
from annotation.judges.records import over_orders
from annotation.judges.select_generator import family
from annotation.report.material import CampaignMaterial
from annotation.report.wording import SOURCE_NAMES
from annotation.statistics.reliability import reliability_table, truth_table
from annotation.statistics.summaries import Design
from annotation.verdicts.tables import SIMULATED, display, number, with_interval
from plumbline.exhibits.charts import ROW, WIDTH, Interval, dots, rows, tips, upright
from plumbline.exhibits.page import Figure, Section
from plumbline.exhibits.palette import COLOURS
from plumbline.exhibits.table import Exhibit, Table
from plumbline.records import REHEARSAL
from plumbline.statistics.estimates import Estimate
from plumbline.study.crowd import FAIR_WAGE

MOST_DRAWN = 60  # raters in a figure: the strictest and the most lenient
SEVERITY = "severity"
_ABOUT = (
    "ICC(1) is the reliability of a single rating, ICC(1, k) that of the mean of a pair's k ratings. ICC(2) treats the"
    " raters as a sample and ICC(3) as all there are; both need every rater to have rated every pair. A z-score is a"
    " rating's distance from its rater's mean, in the rater's standard deviations. Split-half reliability compares"
    " random halves of each pair's ratings and is stepped up to all of them; its interval is over splits."
)
SEVERITY_IS = (
    "A rating is taken for the mean of what its verdict judges, plus the pair, plus the rater, plus an error. The"
    " adjusted mean is as if everybody had rated everything, with a 95% interval over pairs and raters; severity is how"
    " far a rater departs from all (below 0: strict). Where everybody rated everything, the two means are equal."
    " Verdicts are by the plain mean."
)
_TRUTH = (
    "Of items whose right label is known: how often the majority of raters names it, and how often Dawid and Skene's"
    " model does, which learns from all answers whom to believe."
)


def reliability_exhibit(material: CampaignMaterial) -> Exhibit:
    """A row a question and statistic of reliability."""
    frame = reliability_table(material.counting, material.questions, material.study.sample.seed)
    return _printed("reliability", "Reliability of ratings, with 95% intervals", frame, ["question", "statistic"])


def truth_exhibit(material: CampaignMaterial) -> Exhibit:
    """A row a question, method and number; empty where the right label of no item is known."""
    controls = material.control_ratings
    stay = (controls["status"] == "submitted") & (controls["excluded"] == "") & (controls["withdrawn"] == "")
    answers = pd.concat([material.counting, controls[stay]])
    frame = truth_table(answers, material.rubric.asked(), material.right)
    caption = "Labels that are known to be right, with 95% intervals"
    return _printed("truth", caption, frame, ["question", "method", "statistic"])


def _printed(name: str, caption: str, frame: pd.DataFrame, columns: list[str]) -> Exhibit:
    printed = frame[columns].rename(columns=str.capitalize)
    printed["Value [95%]"] = [
        with_interval(Estimate(value=row["value"], low=row["low"], high=row["high"]))
        for row in frame.to_dict("records")
    ]
    return Exhibit(name, caption, frame, printed.assign(**{"n": frame["n"].map(str), "Why none": frame["reason"]}))


def adjusted_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each verdict and question: plain and adjusted means with the rule's decisions."""
    frame = _means(material)
    where = frame["language"] + frame["task_type"].map(lambda task: f", {task}" if task else "")
    printed = pd.DataFrame(
        {
            material.study.called.judged.capitalize(): frame["transformation"].map(
                lambda name: display(name, pooled=False)
            ),
            "Language": where,
            "Question": frame["question"],
            "Plain": frame["plain"].map(number),
            "Adjusted [95%]": [
                with_interval(Estimate(value=row["adjusted"], low=row["low"], high=row["high"]))
                for row in frame.to_dict("records")
            ],
            "Rule": frame["decision"],
            "Rule, adjusted": frame["adjusted_decision"],
            "Why none": frame["reason"],
        }
    )
    return Exhibit("adjusted_means", "Means as if everybody had rated everything", frame, printed)


def severity_exhibit(material: CampaignMaterial) -> Exhibit:
    """A row a question and rater, the strictest first."""
    frame = _raters(material)
    intervals = [
        with_interval(Estimate(value=row["severity"], low=row["low"], high=row["high"]))
        for row in frame.to_dict("records")
    ]
    printed = pd.DataFrame({"Question": frame["question"], "Rater": frame["rater_id"], "Severity [95%]": intervals})
    printed = printed.assign(**{"Ratings": frame["ratings"].map(str), "Why none": frame["reason"]})
    return Exhibit(SEVERITY, "Raters' severity in points, with 95% intervals (below 0: strict)", frame, printed)


def _means(material: CampaignMaterial) -> pd.DataFrame:
    return material.adjusted.means if material.adjusted else pd.DataFrame()


def _raters(material: CampaignMaterial) -> pd.DataFrame:
    return material.adjusted.raters if material.adjusted else pd.DataFrame()


def severity_figures(raters: pd.DataFrame) -> list[Figure]:
    """Return a figure for each question with the raters' severities; none where undefined."""
    figures = []
    for question, of_question in raters.dropna(subset=["severity"]).groupby("question", sort=False):
        shown = _ends(of_question)
        words = "; ".join(
            f"{row['rater_id']} {with_interval(Estimate(value=row['severity'], low=row['low'], high=row['high']))}"
            for row in shown.to_dict("records")
        )
        which = "" if len(shown) == len(of_question) else f"; the {len(shown)} at the ends of {len(of_question)} raters"
        caption = (
            f"{str(question).capitalize()}: raters' severity in points, with 95% intervals{which} ({SEVERITY}.csv)."
        )
        figures.append(Figure(severity_chart(shown), caption, f"{str(question).capitalize()}. {words}."))
    return figures


def _ends(raters: pd.DataFrame) -> pd.DataFrame:
    half = MOST_DRAWN // 2
    return raters if len(raters) <= MOST_DRAWN else pd.concat([raters.head(half), raters.tail(half)])


def severity_chart(raters: pd.DataFrame) -> alt.LayerChart:
    """A row a rater: severity on the line of its interval, and a broken line at 0."""
    across = alt.X("severity:Q", title="Severity (points; below 0: strict)")
    hover = tips("rater_id:N::Rater", "severity:Q:.2f:Severity", "ratings:Q::Ratings")
    row = rows("rater_id", raters["rater_id"], limit=160)
    layers = dots(raters, across, row, COLOURS["lexical_stylistic"], Interval(), tooltip=hover)
    line = upright(0.0, alt.X("severity:Q"))
    return alt.LayerChart(layer=[line, *layers], width=WIDTH // 2, height=ROW // 2 * len(raters))


def reliability_sections(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> list[Section]:
    """Return the report's sections on reliability, those with content alone."""
    parts: list[Section] = []
    if "reliability" in tables:
        parts.append(Section("Reliability", [_ABOUT, tables["reliability"].table()]))
    if "adjusted_means" in tables:
        table, raters = tables["adjusted_means"].table(), tables[SEVERITY].table(cut=True)
        parts.append(Section("Severity", [SEVERITY_IS, table, *severity_figures(_raters(material)), raters]))
    if "truth" in tables:
        parts.append(Section("Labels that are known", [_TRUTH, tables["truth"].table()]))
    return parts


def _platform(campaign: CrowdSummary) -> str:
    """Return the platform as tables name it: a row that is rehearsed says so by itself."""
    return REHEARSAL if campaign.platform == "rehearsal" else campaign.platform


def campaigns_exhibit(material: CampaignMaterial) -> Exhibit:
    """A row a campaign: batches, submissions, money and pay; dollars."""
    rows = [
        {
            "platform": _platform(campaign),
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
            rows.append((_platform(campaign), campaign.mode, decision.decided_at, rule, seen, decision.rater_id,
                         decision.batch_id, decision.decision, decision.reason, "; ".join(decision.signs)))  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    # Approvals without a sign are the rule and many: the page lists what is not, the file has all.
    listed = frame[(frame["decision"] != "approve") | (frame["signs"] != "")]
    titles = ["Platform", "When", "By a rule fixed before", "Results seen", "Worker", "Batch", "Decision", "Reason",
              "Signs then"]  # fmt: skip
    printed = listed.drop(columns="mode").assign(decided_at=listed["decided_at"].str[:16].str.replace("T", " "))
    caption = "Decisions about crowd work, but approvals without a sign"
    return Exhibit("crowd_decisions", caption, frame, printed.set_axis(titles, axis=1))


def paragraphs(material: CampaignMaterial) -> list[str]:
    """Return a paper's sentences on the crowd, one paragraph for each campaign."""
    return [_paragraph(material, campaign) for campaign in material.crowd]


def _paragraph(material: CampaignMaterial, campaign: CrowdSummary) -> str:
    crowd = material.study.crowd
    if campaign.platform == "rehearsal":
        return "REHEARSAL: a made-up crowd answered, nobody was asked and nobody was paid."
    if campaign.mode == "sandbox":
        return (
            f"A rehearsal ran on {SOURCE_NAMES[campaign.platform]}'s {campaign.mode}; its ratings count as simulated."
        )
    approved, rejected = campaign.states.get("approved", 0), campaign.states.get("rejected", 0)
    parts = [
        f"Crowd workers of {SOURCE_NAMES[campaign.platform]} were offered {campaign.posted} batches; {approved}"
        f" submissions were approved and {rejected} rejected."
    ]
    if campaign.platform == "prolific" and crowd and crowd.on_task_builder:
        parts.append(
            "They read and answered on Prolific's own page (Task Builder) and not on this study's rating page, so what"
            " they saw looked otherwise."
        )
    if not math.isnan(campaign.hourly):
        pay = f"${campaign.hourly:.2f} an hour, bonuses included"
        parts.append(f"The median submission took {campaign.minutes:.0f} minutes and was paid {pay}.")
    if crowd is not None:
        parts.append(
            f"Pay was set at ${crowd.pay.hourly:g} an hour for {crowd.pay.seconds:g} s a pair, the same in every"
            f" country; a worker could do at most {100 * crowd.share:g}% of the batches."
        )
        if crowd.pay.below_fair:
            parts.append(f"This is less than ${FAIR_WAGE:g} an hour; the reason given is: {crowd.pay.below_fair}.")
    later = sum(not decided.by_rule for decided in campaign.decisions)
    if later:
        parts.append(f"{later} of the rejections followed from no rule that was fixed beforehand.")
    return " ".join(parts)


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


_ABOUT_JUDGES = (
    "Judges rated the pairs that people rated, and more. “People + judges” is what the same rule says of both"
    " (prediction-powered inference; a judge that is wrong by any constant changes nothing), so that a reader sees how"
    " much hangs on them. Worth is how many rated pairs would be as sure by themselves."
)


def judge_exhibits(material: CampaignMaterial) -> list[Exhibit]:
    """Return the tables on judges; none if no judge stands beside the verdicts."""
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
        _ABOUT_JUDGES,
        who_decides(decides=outcome.decides),
        *made_up(outcome),
        decided.table(),
        *saved,
        *(table.table() for table in agreeing),
    ]
    return [Section("Judges beside people", parts)]


def made_up(outcome: JudgedOutcome) -> list[str]:
    """Return lines on the judges, and on judgements and ratings that come from no model and no person."""
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
    """Return a row for each verdict: people's decision, that of people and judges, and its evidence."""
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

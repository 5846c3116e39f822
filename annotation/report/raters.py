"""The report's sections on raters: the reliability of people's ratings, crowd workers and their pay, and LLM judges.

The section on judges comes after people's verdicts, compares with them, and names the evidence of each row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import altair as alt
import pandas as pd

from annotation.crowd import platform as pay
from annotation.crowd.summary import CrowdSummary
from annotation.judges.check import PEOPLE_DECIDE, length_effects
from annotation.judges.effects import order_effects
from annotation.judges.outcome import JudgesOutcome
from annotation.judges.people import AGAINST, against_people
from annotation.judges.records import over_orders
from annotation.judges.select_generator import family
from annotation.report.material import CampaignMaterial
from annotation.report.methods import SOURCE_NAMES
from annotation.statistics.reliability import reliability_table, truth_table
from annotation.statistics.summaries import Design
from annotation.verdicts.tables import SIMULATED, display, number, with_interval
from plumbline.exhibits.charts import ROW, WIDTH, Interval, dots, rows, tips, upright
from plumbline.exhibits.page import Figure, Section
from plumbline.exhibits.palette import COLOURS
from plumbline.exhibits.table import Exhibit, Table
from plumbline.records import REHEARSAL
from plumbline.statistics.estimates import Estimate

MOST_DRAWN = 60  # raters in a figure: the strictest and the most lenient
SEVERITY = "severity"
_ABOUT = (
    "ICC(1) is the reliability of a single rating, ICC(1, k) that of the mean of a pair's k ratings. ICC(2) treats the"
    " raters as a sample and ICC(3) as fixed; both need every rater to have rated every pair. A z-score is a"
    " rating's distance from its rater's mean, in the rater's standard deviations. Split-half reliability compares"
    " random halves of each pair's ratings and is stepped up to all of them; its interval is over splits."
)
SEVERITY_IS = (
    "The model of a rating is the mean of its verdict's ratings, plus effects of the pair and the rater, plus an error."
    " The adjusted mean is the mean if every rater had rated every pair, with a 95% interval over pairs and raters;"
    " severity is a rater's distance from the average rater (below 0: strict). If every rater rated every pair,"
    " the two means are equal. Verdicts rest on the plain mean."
)
_TRUTH = (
    "For items with a known right label, the table shows how often the majority of raters chose it, and how often Dawid"
    " and Skene's model did, which estimates each rater's reliability from all answers."
)


def reliability_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each question and statistic of reliability."""
    frame = reliability_table(material.counting, material.questions, material.study.sample.seed)
    return _printed("reliability", "Reliability of ratings, with 95% intervals", frame, ["question", "statistic"])


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
    printed["Value [95%]"] = [
        with_interval(Estimate(value=row["value"], low=row["low"], high=row["high"]))
        for row in frame.to_dict("records")
    ]
    return Exhibit(name, caption, frame, printed.assign(**{"n": frame["n"].map(str), "Why missing": frame["reason"]}))


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
            "Why missing": frame["reason"],
        }
    )
    return Exhibit("adjusted_means", "Means adjusted for raters' severity", frame, printed)


def severity_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each question and rater, the strictest first."""
    frame = _raters(material)
    intervals = [
        with_interval(Estimate(value=row["severity"], low=row["low"], high=row["high"]))
        for row in frame.to_dict("records")
    ]
    printed = pd.DataFrame({"Question": frame["question"], "Rater": frame["rater_id"], "Severity [95%]": intervals})
    printed = printed.assign(**{"Ratings": frame["ratings"].map(str), "Why missing": frame["reason"]})
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
        which = (
            ""
            if len(shown) == len(of_question)
            else f"; the {len(shown)} strictest and most lenient of {len(of_question)} raters"
        )
        caption = (
            f"{str(question).capitalize()}: raters' severity in points, with 95% intervals{which} ({SEVERITY}.csv)."
        )
        figures.append(Figure(severity_chart(shown), caption, f"{str(question).capitalize()}. {words}."))
    return figures


def _ends(raters: pd.DataFrame) -> pd.DataFrame:
    half = MOST_DRAWN // 2
    return raters if len(raters) <= MOST_DRAWN else pd.concat([raters.head(half), raters.tail(half)])


def severity_chart(raters: pd.DataFrame) -> alt.LayerChart:
    """Chart a row for each rater: severity on the line of its interval, with a broken line at 0."""
    across = alt.X("severity:Q", title="Severity (points; below 0: strict)")
    hover = tips("rater_id:N::Rater", "severity:Q:.2f:Severity", "ratings:Q::Ratings")
    row = rows("rater_id", raters["rater_id"], limit=160)
    layers = dots(raters, across, row, COLOURS["lexical_stylistic"], Interval(), tooltip=hover)
    line = upright(0.0, alt.X("severity:Q"))
    return alt.LayerChart(layer=[line, *layers], width=WIDTH // 2, height=ROW // 2 * len(raters))


def reliability_sections(material: CampaignMaterial, tables: Mapping[str, Exhibit]) -> list[Section]:
    """Return the report's sections on reliability, without empty ones."""
    parts: list[Section] = []
    if "reliability" in tables:
        parts.append(Section("Reliability", [_ABOUT, tables["reliability"].table()]))
    if "adjusted_means" in tables:
        table, raters = tables["adjusted_means"].table(), tables[SEVERITY].table(cut=True)
        parts.append(Section("Severity", [SEVERITY_IS, table, *severity_figures(_raters(material)), raters]))
    if "truth" in tables:
        parts.append(Section("Known labels", [_TRUTH, tables["truth"].table()]))
    return parts


def _platform(campaign: CrowdSummary) -> str:
    """Return the platform's name in tables, which marks rehearsals."""
    return REHEARSAL if campaign.platform == "rehearsal" else campaign.platform


def campaigns_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each campaign: batches, submissions, money and pay, in dollars."""
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
            "Median hourly pay": _number(campaign.hourly, "${:.2f}"),
        }
        for campaign in material.crowd
    ]
    caption = "Crowd campaigns; sums planned, and spent or reserved, include the platform's fees"
    return Exhibit("crowd_campaigns", caption, pd.DataFrame(rows), pd.DataFrame(printed))


def crowd_decisions_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each decision about a submission: whether a fixed rule made it, whether results were seen."""
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
    # Approvals without a sign are the rule and many: the page lists all other decisions, the file has all.
    listed = frame[(frame["decision"] != "approve") | (frame["signs"] != "")]
    titles = ["Platform", "When", "By a rule fixed before the first rating", "Results seen", "Worker", "Batch",
              "Decision", "Reason", "Signs at the time"]  # fmt: skip
    printed = listed.drop(columns="mode").assign(decided_at=listed["decided_at"].str[:16].str.replace("T", " "))
    caption = "Decisions about crowd work, except approvals without a sign"
    return Exhibit("crowd_decisions", caption, frame, printed.set_axis(titles, axis=1))


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


_ABOUT_JUDGES = (
    "Judges rated the pairs that people rated, and further outputs. “With judges” is people's mean, corrected by the"
    " judges' scores of the further outputs (prediction-powered inference: a judge's constant error changes nothing),"
    " and “As precise as” the number of rated pairs that would be as precise without judges. "
)


def judge_exhibits(material: CampaignMaterial) -> list[Exhibit]:
    """Return the tables on judges; none if no judges are compared with the verdicts."""
    if material.judges is None:
        return []
    outcome = material.judges
    more = [agreement_exhibit(material, outcome), order_exhibit(material, outcome), length_exhibit(material, outcome)]
    return [means_exhibit(material, outcome), *(table for table in more if len(table.frame))]


def judges_section(material: CampaignMaterial, tables: Sequence[Exhibit]) -> list[Section]:
    """Return the section; none without judges, and only a line if their records cannot be read."""
    outcome = material.judges
    if outcome is None:
        why = material.judges_left_out
        return [Section("Judges beside people", [f"Judges are left out: {why}"])] if why else []
    parts: list[str | Table] = [_ABOUT_JUDGES + PEOPLE_DECIDE, *made_up(outcome)]
    return [Section("Judges beside people", [*parts, *(table.table() for table in tables)])]


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
    return [f"Judges: {', '.join(named)}.{recorded}", *(doubtful if related else []), *_simulated(outcome)]


def _simulated(outcome: JudgesOutcome) -> list[str]:
    return [SIMULATED] if outcome.simulated else []


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


def agreement_exhibit(material: CampaignMaterial, outcome: JudgesOutcome) -> Exhibit:
    """Return a row for each judge, question and transformation: the distance of its scores from people's ratings."""
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
    caption = "Judges compared with the mean rating of each pair; gap: judge minus people"
    return Exhibit("judges_agreement", caption, frame, printed)


def order_exhibit(material: CampaignMaterial, outcome: JudgesOutcome) -> Exhibit:
    """Return a row for each judge and question: the effect of the order in which the scale was read."""
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
            "1 point or more": frame["large"].map("{:.0%}".format),
        }
    )
    return Exhibit("judges_order", "How much judges' scores change with the order of the scale", frame, printed)


def length_exhibit(material: CampaignMaterial, outcome: JudgesOutcome) -> Exhibit:
    """Return a row for each judge and question: the slope of the gap to people over the output's length."""
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
    caption = "Slope of the gap (judge minus people) over length: points per unit of log length ratio (natural)"
    return Exhibit("judges_length", caption, frame, printed)


def _intervals(frame: pd.DataFrame, column: str, ends: tuple[str, str] = ("low", "high")) -> list[str]:
    rows = frame[[column, *ends]].itertuples(index=False, name=None)
    return [with_interval(Estimate(value=value, low=low, high=high)) for value, low, high in rows]

"""How far ratings can be relied on, the raters' severity, and whom to believe about labels: tables and a figure."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from annotation.report.material import CampaignMaterial
from annotation.statistics.reliability import reliability_table, truth_table
from annotation.verdicts.tables import display, number, with_interval
from plumbline.exhibits.charts import ROW, WIDTH, Interval, dots, rows, tips, upright
from plumbline.exhibits.page import Figure, Section
from plumbline.exhibits.palette import COLOURS
from plumbline.exhibits.table import Exhibit
from plumbline.statistics.estimates import Estimate

MOST_DRAWN = 60  # raters in a figure: the strictest and the most lenient
SEVERITY = "severity"
_ABOUT = (
    "ICC(1) is of one rating, whoever gives it; ICC(1, k) of the mean of a pair's k ratings; 2 and 3 take the raters"
    " for a sample, or for all there are, and need everybody to have rated everything. Of z-scores each rating is from"
    " its rater's mean, in the rater's standard deviations. Halves are random halves of each pair's ratings, stepped up"
    " to all of them; their interval is over splits."
)
_SEVERITY = (
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
    right = {pair.pair_id: material.rubric.right_answers(pair) for pair in material.controls}
    frame = truth_table(answers, material.rubric.asked(), right)
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
    """A row a verdict and question: the plain mean, the adjusted one, and what the rule would say of either."""
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
    """The raters' severity with its interval: a figure a question; none where it is undefined."""
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
    """What the report says of it, as far as there is something."""
    parts: list[Section] = []
    if "reliability" in tables:
        parts.append(Section("Reliability", [_ABOUT, tables["reliability"].table()]))
    if "adjusted_means" in tables:
        table, raters = tables["adjusted_means"].table(), tables[SEVERITY].table(cut=True)
        parts.append(Section("Severity", [_SEVERITY, table, *severity_figures(_raters(material)), raters]))
    if "truth" in tables:
        parts.append(Section("Labels that are known", [_TRUTH, tables["truth"].table()]))
    return parts

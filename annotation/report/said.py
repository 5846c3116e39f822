"""Questions and rules of all kinds in the words of the methods section."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from annotation.human.records import HumanTask
from annotation.human.tasks import read_tasks
from annotation.ratings.ratings import untimed
from annotation.report.makers import listed
from annotation.rubric import Rubric
from annotation.verdicts.by_task import answers_of, does_tasks
from annotation.verdicts.tables import display
from plumbline.study import Study
from plumbline.study.campaign import AcceptanceSpec

_SHARES = (
    "intervals of labels' shares are Wilson's, of the effective number of answers (Franco et al. 2019, J. Survey Stat."
    " Methodol. 7, 334-364)."
)
LABELS = (
    "Agreement on labels is Gwet's AC1 (Gwet 2008, Br. J. Math. Stat. Psychol. 61, 29-48), Fleiss' kappa (Fleiss 1971,"
    " Psychological Bulletin 76, 378-382) and Krippendorff's alpha with the nominal metric, on several labels alpha"
    f" with MASI's distance (Passonneau 2006, LREC); {_SHARES}"
)
OF_TASKS = (
    "How far raters agree on tasks, and how right they are, is in the report on people and models (plumbline"
    f" human-report); {_SHARES}"
)

RANKINGS = (
    "Agreement on rankings is the mean over pairs of Kendall's tau-b of every two raters of a pair (Kendall 1945,"
    " Biometrika 33, 239-251; Ehrenberg 1952, Biometrika 39, 82-87), 0 by chance, and of Kendall's W corrected for ties"
    " (Kendall and Babington Smith 1939, Ann. Math. Stat. 10, 275-287), which by chance is 1 over the number of raters;"
    " intervals are t intervals over pairs. Equal labels share the mean of their ranks."
)


def many(number: int, thing: str) -> str:
    """`1 rating`, `2 ratings`, `1,000 ratings`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def verb(number: int, thing: str, one: str, several: str) -> str:
    """`1 rater was`, `2 raters were`."""
    return f"{many(number, thing)} {one if number == 1 else several}"


def other_questions(study: Study, rubric: Rubric, plain: Collection[str]) -> list[str]:
    """The questions that are no ratings on the rubric's scale."""
    if does_tasks(study):
        return [_asked(task, rubric) for task in read_tasks(study)]
    told = []
    for question, one in zip(rubric.questions, rubric.asked(), strict=True):
        if one.name in plain:
            continue
        kinds = {"label": "one of", "multi_label": "any of", "ranking": "the order of"}
        what = f"{kinds[one.kind]} {', '.join(one.labels)}" if one.labels else "a text"
        what = f"{one.scale[0]} to {one.scale[-1]}" if one.kind == "rating" else what
        where = f", of {listed([display(pool) for pool in one.pools])} alone" if one.pools else ""
        need = "" if one.required else ", which need not be given"
        told.append(f"{one.name} (“{question.title['en']}”) asked for {what}{where}{need}.")
    return told


def _asked(task: HumanTask, rubric: Rubric) -> str:
    """What is asked in a task; of candidates, or of their order, once."""
    title = next(one.title["en"] for one in rubric.questions if one.name == task.task)
    *names, last = answers_of(task)
    more = ", several of which may be chosen" if task.asked == "labels" else ""
    more = ", of each candidate" if task.asked in ("graded", "binary") else more
    more = f", and for an order of {many(task.candidates, 'candidate')}" if task.asked == "ranked" else more
    return f"{task.task} (“{title}”) asked for {', '.join(names)} or {last}{more}."


def several_rules(rule: AcceptanceSpec) -> str:
    """Rules of their own, in words."""
    told = []
    for one in rule.rules:
        end = (
            "lower end of the 95% interval of the "
            if one.at_least is not None
            else "upper end of the 95% interval of the "
        )
        what = f"{end if one.by == 'interval' else ''}{one.statistic}{f' of {one.label}' if one.label else ''}"
        where = f" ({listed([display(pool) for pool in one.pools])})" if one.pools else ""
        if instead := [] if one.pools else _judged_otherwise(one.question, rule):
            where = f" (but of {listed([display(pool) for pool in instead])})"
        limit = f"at {'least' if one.at_least is not None else 'most'} {one.limit:g}"
        told.append(f"{what} of {one.question} {limit}{where}")
    rest = "rejected where one has even the other end beyond, and undecided otherwise"
    last = rest if any(one.by == "interval" for one in rule.rules) else "rejected otherwise"
    return f"accepted where {'all' if rule.combine == 'all' else 'any'} of these hold: {'; '.join(told)}; {last}"


def _judged_otherwise(question: str, rule: AcceptanceSpec) -> list[str]:
    """The pools that have rules of their own about a question: those for all pools do not hold there."""
    return sorted({pool for one in rule.rules if one.question == question for pool in one.pools})


def dated_words(rated: pd.DataFrame) -> str:
    """From when ratings are; files without times say it of none of theirs."""
    unknown = untimed(rated)
    if unknown.all():
        return "of unknown time"
    days = [f"{rated.loc[~unknown, 'submitted_at'].agg(end):%Y-%m-%d}" for end in ("min", "max")]
    dated = f"dated {days[0]}" if days[0] == days[1] else f"dated {days[0]} to {days[1]}"
    return f"{dated} (those of files without times aside)" if unknown.any() else dated

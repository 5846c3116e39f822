"""Answers to people's tasks for tables: a row for each task, labels by their names, candidates combined.

A candidate's number is its drawn place, and a cluster's number is each rater's own: neither means anything across
items. The evaluation reports raters' agreement, of whole answers and of those other than cannot_tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from annotation.human.forms import form_of
from annotation.human.records import HumanTask
from annotation.questions.summary import Share, Summary
from annotation.records import Group, Verdict
from plumbline.statistics.estimates import Estimate


def groups_by_task(tasks: Sequence[HumanTask], groups: Sequence[Group]) -> Sequence[Group]:
    """Return a row for each task, and for each language of tasks with several; without tasks the groups unchanged."""
    if not tasks:
        return groups
    n_ratings, rows = dict[str, int](), list[Group]()
    for group in (row for row in groups if row.level in ("pool", "language")):  # pools, which are tasks, come first
        summaries = _taken_together(tasks, group.questions)
        if group.level == "pool":
            n_ratings |= {summary.question: summary.n_ratings for summary in summaries}
        else:  # a task in one language is listed already
            summaries = tuple(summary for summary in summaries if summary.n_ratings < n_ratings[summary.question])
        rows.append(group.model_copy(update={"questions": summaries}))
    return rows


def verdicts_by_task(tasks: Sequence[HumanTask], verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """Return the verdicts with each task's answers combined; unchanged without tasks."""
    if not tasks:
        return verdicts
    return [verdict.model_copy(update={"questions": _taken_together(tasks, verdict.questions)}) for verdict in verdicts]


def answers_of(task: HumanTask) -> list[str]:
    """Return the names of the answers that a task's first question offers."""
    form = form_of(task)
    return list(dict.fromkeys(form.meaning(label) for label in form.questions()[0].labels))


def _taken_together(tasks: Sequence[HumanTask], summaries: Iterable[Summary]) -> tuple[Summary, ...]:
    """Return a summary for each task with rated questions."""
    by_name = {summary.question: summary for summary in summaries}
    combined = []
    for task in tasks:
        of_task = [
            by_name[question.name]
            for question in form_of(task).questions()
            if question.name in by_name and not by_name[question.name].ranks
        ]
        if of_task:
            update = {
                "n_ratings": sum(summary.n_ratings for summary in of_task),
                "shares": tuple(_shares(task, of_task)),
            }
            combined.append(of_task[0].model_copy(update={**update, "coefficients": ()}))
    return tuple(combined)


def _shares(task: HumanTask, summaries: Sequence[Summary]) -> Iterator[Share]:
    """Yield each label's share by its name, over the answers to all questions of a task."""
    form, total = form_of(task), sum(summary.n_ratings for summary in summaries)
    parts: dict[str, list[tuple[int, Estimate]]] = {}
    for summary in summaries:
        for label_share in summary.shares:
            parts.setdefault(form.meaning(label_share.label), []).append((summary.n_ratings, label_share.share))
    for name, shares in parts.items():
        if len(shares) == 1 or not total:
            yield Share(label=name, share=shares[0][1])
            continue
        value = sum(n * share.value for n, share in shares if n) / total
        reason = f"{form.combined} are combined, so no interval is computed"
        yield Share(label=name, share=Estimate.alone(value, reason))

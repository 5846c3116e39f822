"""All checks of tasks: of what they hold, and of the scores that a study's models reach on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from evaluation.build.quality.contents import Contents, contents_of
from evaluation.build.quality.finding import Finding
from evaluation.build.quality.gold import check_gold
from evaluation.build.quality.lengths import Reader, too_long
from evaluation.build.quality.statistics import Statistics, check_statistics, statistics_of
from evaluation.build.quality.texts import check_texts
from evaluation.build.quality.thresholds import THRESHOLDS
from evaluation.units import Unit
from generation.datasets.dataset import Dataset


@dataclass(frozen=True)
class Task:
    """A task that is checked: a data set as it is, or as an accepted transformation left it.

    `name` is the data set's, with transformation and seed behind it where there is one; `unit` is what a study scores.
    """

    name: str
    dataset: Dataset
    unit: Unit | None = None


@dataclass
class Checked:
    """What was found of a task, in the order of the thresholds, and mteb's descriptive statistics of it."""

    task: str
    findings: list[Finding] = field(default_factory=list)
    statistics: Statistics = field(default_factory=dict)


Beside = Callable[[Task, Contents], Iterator[Finding]]


def nothing(_task: Task, _contents: Contents) -> Iterator[Finding]:
    """Find nothing beside what a task holds."""
    yield from ()


def check(
    tasks: Sequence[Task],
    readers: Sequence[Reader] | None = None,
    beside: Beside = nothing,
    progress: Callable[[], object] = lambda: None,
) -> list[Checked]:
    """Check each task.

    `readers` are models whose room for texts is known (None without any models); `beside` finds what scores, or
    people, tell of a task.
    """
    made = []
    for task in tasks:
        contents = contents_of(task.dataset)
        one = Checked(task.name, [*check_texts(contents), *check_gold(contents)])
        if all(part.items for part in contents.scored):
            one.statistics = statistics_of(contents)
            published = check_statistics(task.dataset, contents, one.statistics)
            one.findings += [published] if published is not None else []
        one.findings += [too_long(contents, readers)] if readers is not None else []
        one.findings += beside(task, contents)
        order = list(THRESHOLDS)
        one.findings.sort(key=lambda finding: order.index(finding.check))
        made.append(one)
        progress()
    return made

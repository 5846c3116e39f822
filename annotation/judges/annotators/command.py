"""`python -m annotation judge run` on a study of the human ceiling: its models do what its people do."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from annotation.human.records import ITEMS, MODEL_ANSWERS, TASKS
from annotation.human.rehearsing import read_items
from annotation.human.tasks import subject_of
from annotation.judges.annotators.run import FOLDER, Annotating, annotate, annotators
from annotation.judges.forecast import Left, table_of
from plumbline.errors import StudyError
from plumbline.manifest import stage
from plumbline.study import Study
from plumbline.study.annotators import RecordedAnnotator

_TOKENS = 8  # of an answer to one thing that is asked: a JSON object with a label or number


def annotate_command(study: Study, options: argparse.Namespace) -> int:
    """The command line: ask what is left, and say what came."""
    if options.generator:
        raise StudyError(f"{study.file}: with `human` there are no generator's outputs; leave out --generator")
    if options.dry_run:
        print(table_of([_left(one) for one in _every(study, options)], options.rate, "model", "answers"))
        return 0
    recorded = [study.resolve(one.path) for one in subject_of(study).models if isinstance(one, RecordedAnnotator)]
    inputs = [study.folder / name for name in (TASKS, ITEMS, "pairs.parquet")]
    with stage(study, "judge", [*inputs, *recorded], [study.folder / FOLDER, study.folder / MODEL_ANSWERS]):
        done = annotate(study, options.judge, again=options.again)
    print(f"{study.name}: models' answers -> {study.folder / MODEL_ANSWERS}")
    for one, made in zip(_every(study, options), done, strict=True):
        print(f"  {made.line('answers')}")
        for line in lines_of(one, study):
            print(f"    {line}")
    return 0


def _every(study: Study, options: argparse.Namespace) -> list[Annotating]:
    return annotators(study, options.judge, again=options.again)


def _left(one: Annotating) -> Left:
    todo = one.todo()
    characters = sum(len(asking.message) for _, asking in todo)
    tokens = _TOKENS * sum(max(asking.form.n, 1) for _, asking in todo)
    recorded = isinstance(one.spec, RecordedAnnotator)
    return Left(one.spec.name, one.wanted - len(todo), len(todo), characters, tokens, recorded)


def lines_of(one: Annotating, study: Study) -> Iterator[str]:
    """A line for each task on which a model could not tell, or whose answers could not be read, with the reasons."""
    frame, items = one.frame(), read_items(study)
    unsure = Counter(row.task for row in one.answers(items) if row.abstained)
    for task in one.tasks:
        own = frame[frame["task"] == task.task]
        reasons = Counter(own.loc[own["status"] != "ok", "reason"])
        told = [f"cannot tell: {unsure[task.task]} answers"] if unsure[task.task] else []
        told += [f"{number}: {reason}" for reason, number in reasons.most_common(3)]
        if told:
            yield f"{task.task} ({task.asked}): {'; '.join(told)}"

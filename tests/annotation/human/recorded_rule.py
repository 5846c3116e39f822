"""The rule by which the sample study's recorded model does people's tasks (studies/demo/README.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.human.forms import Skill, form_of
from annotation.human.simulated import read_items, rehearsal_of
from annotation.human.tasks import read_tasks
from annotation.judges.annotator_messages import AnnotatorMessage, EachForm, Instructions
from plumbline.study import Study
from plumbline.study.campaign import SimulatedRater

RULE, SKILL = SimulatedRater(name="rule", bias=0.1, noise=0.7), Skill(right=0.8)


def lines(study: Study) -> Iterator[str]:
    """The model's file, line by line: what a simulated rater of `RULE` says, as a model would write it."""
    rehearsal, items, tasks = rehearsal_of(study), read_items(study), read_tasks(study)
    pairs = {pair.pair_id: pair for pair in CampaignRecords(study).pairs}
    told = Instructions(load_rubric(study))
    for task in tasks:
        for asking in told.askings(task, items, pairs):
            for item, pair in zip(asking.items, asking.pairs, strict=True):
                said = rehearsal.answers(RULE, pair.pair_id, SKILL)
                answer: object
                if type(asking.form) is EachForm:
                    names = [one.name for one in form_of(task).questions()][: asking.form.n]
                    answer = {str(n): _written(asking, said[name]) for n, name in enumerate(names, 1)}
                else:
                    answer = _written(asking, said[task.task])
                where = {"candidate": asking.candidates[0]} if form_of(task).per_candidate else {}
                yield json.dumps({"task": task.task, "item": item, **where, "answer": answer}, ensure_ascii=False)


def _written(asking: AnnotatorMessage, name: str) -> object:
    """An answer as it may be written: its number where it has one, else its words."""
    spelled = [words for words, one in asking.form.options.items() if one == name]
    numbers = [int(one) for one in spelled if one.isdigit()]
    return numbers[0] if numbers else spelled[0]

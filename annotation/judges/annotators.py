"""Language models that do people's tasks: ask what is open, and record answers in the form of people's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.human.forms import RaterAnswers, form_of
from annotation.human.records import MODEL_ANSWERS, HumanAnswer, HumanItem
from annotation.human.simulated import read_items
from annotation.human.tasks import read_tasks, subject_of
from annotation.judges.annotator_messages import AnnotatorMessage, Instructions, does, read_answer
from annotation.judges.pool import COMMAND
from annotation.judges.prompts import RecordedJudgeAnswers, recording_hashes
from annotation.judges.records import ModelAnswer
from annotation.judges.run import JudgeRun, PromptedAnswers, ask_each, named
from plumbline.errors import TextUnansweredError
from plumbline.identity import identity
from plumbline.journal import record_lines
from plumbline.manifest import Manifest
from plumbline.models.chat import Attempt, Completion
from plumbline.records import Record
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.study.engines import AnnotatorSpec
from plumbline.words import count


class RecordedAnswer(Record):
    """A line of a file of recorded answers."""

    task: str
    item: str
    candidate: str = ""
    answer: Any


class RecordedAnswers(RecordedJudgeAnswers):
    """Recorded answers by task, item and candidate."""

    @classmethod
    def lines(cls, path: Path) -> Iterator[tuple[int, Any, str, Any]]:
        """Yield the answers of a file."""
        for number, line in record_lines(path, RecordedAnswer):
            yield number, (line.task, line.item, line.candidate), f"the same item of {line.task}", line.answer

    async def answer(self, asking: AnnotatorMessage, attempt: Attempt, labels: Sequence[str] = ()) -> Completion:
        """Return the recorded answer. Raises TextUnansweredError if there is none."""
        task = asking.task
        form = form_of(task)
        candidate = asking.candidates[0] if form.per_candidate else ""
        answers = {item: self.recorded.get((task.task, item, candidate)) for item in asking.items}
        if unanswered := [item for item, answer in answers.items() if answer is None]:
            raise TextUnansweredError(f"no recorded answer to item {unanswered[0]} of {task.task}")
        each = list(answers.values())
        answer = each if form.at_once else each[0]
        text = answer if isinstance(answer, str) else json.dumps({"answer": answer}, ensure_ascii=False)
        return Completion(text, repeatable=False)


_TOKENS = 8  # tokens of an answer about one item: a JSON object with a label or number
FOLDER = "human/models"  # with a table for each model


class Annotating(PromptedAnswers[AnnotatorMessage, ModelAnswer]):
    """A model's answers to the study's tasks, and those still to be asked. Raises StudyError or DataError."""

    UNIT, RECORDED = "answer", RecordedAnswers

    spec: AnnotatorSpec

    def __init__(self, study: Study, spec: AnnotatorSpec, items: Sequence[HumanItem], *, again: bool = False) -> None:
        every = read_tasks(study)
        self.spec, self.tasks = spec, [task for task in every if does(spec, task)]
        recordings = recording_hashes(spec.engine, study.resolve)
        self.hash = identity("annotator-v1", *spec.identity(), spec.seed, *recordings)
        instructions = Instructions(load_rubric(study, tasks=every))
        pairs = {pair.pair_id: pair for pair in CampaignRecords(study).pairs}
        wanted = {
            self.key(message): message for task in self.tasks for message in instructions.askings(task, items, pairs)
        }
        super().__init__(study, f"{FOLDER}/{spec.name}.parquet", ModelAnswer, wanted.items, COMMAND, again=again)

    def key(self, asking: AnnotatorMessage) -> str:
        """Return the identity of an answer: a hash of everything that can change it."""
        return identity("annotator-v1", self.hash, asking.prompt_hash, *(pair.pair_id for pair in asking.pairs))

    @property
    def tokens_out(self) -> int:
        """Some for each answer about an item: a JSON object with a label or number."""
        return _TOKENS * sum(max(asking.form.n, 1) for asking in self.jobs())

    def read(
        self, asking: AnnotatorMessage, answer: Completion | None, *, labelled: bool
    ) -> tuple[dict[str, Any], str]:
        """Return the answers by pair and question, and why there are none."""
        answers, reason = ({}, "") if answer is None else read_answer(answer, asking)
        fields = {
            "task": asking.task.task, "pair_ids": tuple(pair.pair_id for pair in asking.pairs),
            "answers": json.dumps(answers, ensure_ascii=False) if answers else "", "annotator_hash": self.hash,
        }  # fmt: skip
        return fields, reason

    def answers(self, items: Sequence[HumanItem]) -> Iterator[HumanAnswer]:
        """Yield the model's answers in the form of raters' answers."""
        by_task: dict[str, dict[str, RaterAnswers]] = {task.task: {} for task in self.tasks}
        for _, row in self.frame().query("status == 'ok'").iterrows():
            row_answers = json.loads(row["answers"])
            by_task[row["task"]] |= {pair: RaterAnswers(answers) for pair, answers in row_answers.items()}
        for task in self.tasks:
            for item in items:
                if item.task == task.task:
                    yield from form_of(task).answers(item, by_task[task.task], self.spec.called, simulated=False)


def annotators(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[Annotating]:
    """Return a study's models, or those of these names, with their answers so far.

    Raises StudyError if there are none.
    """
    specs, items = named(subject_of(study).models, names, study.file), read_items(study)
    return [Annotating(study, spec, items, again=again) for spec in specs]


def annotate(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[JudgeRun]:
    """Ask the study's models, or the named ones, for their unanswered tasks.

    Writes `human/models/<model>.parquet`, and of all models `human/model_answers.parquet`. Raises as `annotators`, and
    ServiceError if a model cannot work; answers received before stay.
    """
    with only_one(study.scratch / ".judging.lock", f"models are running for {study.name!r}"):
        done = ask_each(annotators(study, names, again=again))
        items = read_items(study)
        started = [model for model in annotators(study) if model.path.exists()]
        rows = [row for model in started for row in model.answers(items)]
        Manifest.of(study).write_table(MODEL_ANSWERS, rows, HumanAnswer)
    return done


def lines_of(model: Annotating, items: Sequence[HumanItem]) -> Iterator[str]:
    """Yield a line for each task on which a model could not tell, or gave unreadable answers, with the reasons."""
    frame = model.frame()
    unsure = Counter(row.task for row in model.answers(items) if row.abstained)
    for task in model.tasks:
        of_task = frame[frame["task"] == task.task]
        reasons = Counter(of_task.loc[of_task["status"] != "ok", "reason"])
        lines = [f"'cannot tell' {count(unsure[task.task], 'time')}"] if unsure[task.task] else []
        lines += [f"no usable answer {count(number, 'time')} ({reason})" for reason, number in reasons.most_common(3)]
        if lines:
            yield f"{task.task} ({task.asked}): {'; '.join(lines)}"

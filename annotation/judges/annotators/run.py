"""Language models at people's tasks: what is left is asked, and what they answered stands as people's answers do."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from annotation.human.asking import Given, answers_of
from annotation.human.records import MODEL_ANSWERS, HumanAnswer, HumanItem
from annotation.human.rehearsing import read_items
from annotation.human.tasks import read_tasks, subject_of
from annotation.judges.annotators.asking import Asking, Instructions, as_asked, does
from annotation.judges.annotators.reading import read_answer
from annotation.judges.annotators.recorded import RecordedAnswers, load_recorded
from annotation.judges.askers import ChatAsker, start_chat
from annotation.judges.kept import Place, Resumed
from annotation.judges.recorded import refuse_no_recording
from annotation.judges.records import ModelAnswer
from annotation.judges.run import Judged, all_asked
from annotation.rubric import load_rubric
from annotation.sampling.sample import read_pairs
from generation.generators import Attempt
from plumbline.errors import StudyError, TextFailedError, TextUnansweredError, nearest
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.manifest import write_kept_table
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.study.annotators import AnnotatorSpec, RecordedAnnotator
from plumbline.study.generator import RetrySpec

FOLDER = "human/models"  # a table for each model
_Asker = RecordedAnswers | ChatAsker


class Annotating(Resumed[Asking, ModelAnswer]):
    """What one model has answered of the study's tasks, and has yet to answer. Raises StudyError or DataError."""

    def __init__(self, study: Study, spec: AnnotatorSpec, items: Sequence[HumanItem], *, again: bool = False) -> None:
        every = [as_asked(task, spec) for task in read_tasks(study)]
        self.spec, self.tasks = spec, [task for task in every if does(spec, task)]
        self.hash = annotator_hash(study, spec)
        told = Instructions(load_rubric(study, tasks=every))
        pairs = {pair.pair_id: pair for pair in read_pairs(study)}
        wanted = {self.key(one): one for task in self.tasks for one in told.askings(task, items, pairs)}
        super().__init__(Place(study, f"{FOLDER}/{spec.name}.parquet"), ModelAnswer, wanted, again=again)

    def key(self, asking: Asking) -> str:
        """Identity of an answer: of all that changes it."""
        return identity("annotator-v1", self.hash, asking.prompt_hash, *(pair.pair_id for pair in asking.pairs))

    def answers(self, items: Sequence[HumanItem]) -> Iterator[HumanAnswer]:
        """What it answered, as a rater's answers are written."""
        given: dict[str, dict[str, Given]] = {task.task: {} for task in self.tasks}
        for _, row in self.frame().query("status == 'ok'").iterrows():
            found = json.loads(row["answers"])
            given[row["task"]] |= {pair: Given(answers) for pair, answers in found.items()}
        for task in self.tasks:
            for item in items:
                if item.task == task.task:
                    yield from answers_of(task, item, given[task.task], self.spec.called, simulated=False, kind="model")


def annotator_hash(study: Study, spec: AnnotatorSpec) -> str:
    """Identity of a model: its name, revision, sampling and seed; of a recorded one its file's content."""
    of_file = []
    if isinstance(spec, RecordedAnnotator):
        refuse_no_recording(path := study.resolve(spec.path))
        of_file = [cached_file_hash(path)]
    return identity("annotator-v1", *spec.identity(), spec.seed, *of_file)


def annotators(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[Annotating]:
    """A study's models, or those of these names, with what each has and lacks. Raises StudyError for none."""
    known = {spec.name: spec for spec in subject_of(study).models}
    if not known:
        raise StudyError(f"{study.file}: names no models; add them under `human.models` (docs/human.md)")
    if unknown := [name for name in names if name not in known]:
        raise StudyError(f"{study.file}: no model {unknown[0]!r}; {nearest(unknown[0], list(known))}")
    items = read_items(study)
    return [Annotating(study, spec, items, again=again) for name, spec in known.items() if not names or name in names]


def annotate(study: Study, names: Sequence[str] = (), *, again: bool = False) -> list[Judged]:
    """Have the study's models do people's tasks, as far as they have not; all of them, or those of some names.

    Writes `human/models/<model>.parquet`, and of all models `human/model_answers.parquet`. Raises as `annotators`, and
    ServiceError where a model cannot work; what was received before stays.
    """
    import uvloop  # noqa: PLC0415 (extra `generation`)

    done = []
    with only_one(study.scratch / ".judging.lock", f"models are at work for {study.name!r}"):
        for one in annotators(study, names, again=again):  # each model has the machine for itself
            try:
                begin = functools.partial(_begin, study, one.spec)
                done.append(uvloop.run(all_asked(one, one.spec, begin, functools.partial(_ask, one), "answer")))
            finally:
                one.journal.close()
        write_answers(study)
    return done


def write_answers(study: Study) -> None:
    """Write what all models of the study answered to `human/model_answers.parquet`."""
    items = read_items(study)
    there = [one for one in annotators(study) if one.path.exists()]
    rows = [row for one in there for row in one.answers(items)]
    write_kept_table(study, MODEL_ANSWERS, rows, HumanAnswer)


async def _begin(study: Study, spec: AnnotatorSpec) -> _Asker:
    if isinstance(spec, RecordedAnnotator):
        return RecordedAnswers(load_recorded(study.resolve(spec.path)))
    return await start_chat(study, spec)


async def _ask(one: Annotating, asker: _Asker, key: str, asking: Asking) -> ModelAnswer:
    """Ask until an answer can be read or the attempts are used up; the record says which, and why."""
    spec = one.spec
    retry = RetrySpec(attempts=spec.attempts, temperature=spec.temperature)
    attempt = Attempt(1, spec.seed, spec.sampling)
    while True:
        try:
            if isinstance(asker, ChatAsker):
                answer = await asker.chat_answer(asking.message, attempt)
            else:
                answer = await asker.answer(asking, attempt)
        except TextFailedError as error:
            status = "unanswered" if isinstance(error, TextUnansweredError) else "failed"
            return _record(one, key, asking, status=status, reason=str(error), attempts=attempt.number - 1)
        found, reason = read_answer(answer, asking)
        if not reason:
            said = json.dumps(found, ensure_ascii=False)
            return _record(one, key, asking, status="ok", answers=said, text=answer.text, attempts=attempt.number)
        if attempt.number >= spec.attempts or isinstance(asker, RecordedAnswers):
            text, number = answer.text, attempt.number
            return _record(one, key, asking, status="failed", reason=reason, text=text, attempts=number)
        attempt = attempt.next(spec.seed, retry, cut_off=answer.cut_off)


def _record(one: Annotating, key: str, asking: Asking, **found: object) -> ModelAnswer:
    spec = one.spec
    return ModelAnswer.model_validate(
        {
            "key": key,
            "annotator": spec.name,
            "task": asking.task.task,
            "asked": asking.task.asked,
            "pair_ids": tuple(pair.pair_id for pair in asking.pairs),
            "answers": "",
            "text": "",
            "reason": "",
            "model": spec.model,
            "kind": spec.kind,
            "annotator_hash": one.hash,
            "prompt_hash": asking.prompt_hash,
            "finished_at": datetime.now(UTC),
            **found,
        }
    )

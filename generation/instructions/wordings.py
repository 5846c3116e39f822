"""Wordings of instructions: the calls to the generator for them, its raw replies, the wordings for people to label.

There is one call for each task type, and one or two for each data set. The wordings to label come from replies and
people's file; of equal and nearly equal ones one is kept.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from generation.datasets.mteb_loading import task_of
from generation.datasets.tables import read_frame, row_of
from generation.jobs import generator_hash
from plumbline.errors import DataError, StudyError, nearest, read_each
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.importing import scipy
from plumbline.languages import language_name, language_pair
from plumbline.manifest import Manifest
from plumbline.prompts import PROMPTS, load_prompt
from plumbline.reading import MalformedError, parse_json, read_yaml
from plumbline.records import Record, nfc
from plumbline.store import read_records
from plumbline.study import Study
from plumbline.study.base import LONGEST
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.engines import EngineSpec
from plumbline.study.subject import INSTRUCTIONS
from plumbline.study.subjects import Context, InstructionsSubject
from plumbline.words import shows

FOLDER: Path = PROMPTS / "instructions"


@dataclass(frozen=True)
class DatasetDescription:
    """A data set of the study: its name, task, description, and its texts' languages in English."""

    name: str
    task_type: TaskType
    type_words: str
    description: str  #: empty if nobody gives one
    languages: tuple[str, ...]

    @property
    def words(self) -> str:
        """What raters read about it."""
        return f"{self.type_words} {self.description}".strip()


def asked_of(study: Study) -> InstructionsSubject:
    """Return the subject of a study of instructions. Raises StudyError if it is another one."""
    if not isinstance(study.subject, InstructionsSubject):
        raise StudyError(
            f"{study.file}: not a study of instructions; write `subject: {{kind: instructions}}` (docs/instructions.md)"
        )
    return study.subject


def tasks_of(
    subject: InstructionsSubject, datasets: Iterable[DatasetSpec], study_file: Path
) -> list[DatasetDescription]:
    """Return the descriptions of a study's data sets, in its order; loads no data.

    Raises StudyError for a task that mteb lacks, and for a missing description that a context needs.
    """
    types, descriptions = type_words(), []
    for spec in datasets:
        if spec.mteb:
            task, kind, _, languages = task_of(spec)
            codes = [code for pair in languages.values() for code in pair]
            description = str(task.metadata.description or "")
        else:
            kind, codes, description = spec.task_type, list(language_pair(spec.code)), ""
        description = " ".join((subject.descriptions.get(spec.name) or description).split())
        if not description and set(subject.contexts) - {"task_type"}:
            raise StudyError(
                f"{study_file}: data set {spec.name!r} has no description; write one as `subject.descriptions:"
                f" {{{spec.name}: ...}}`, or use only `contexts: [task_type]`"
            )
        names = tuple(dict.fromkeys(language_name(code) for code in codes))
        descriptions.append(DatasetDescription(spec.name, kind, types[kind], description, names))
    return descriptions


def type_words() -> Mapping[TaskType, str]:
    """Return a sentence for each type on what its tasks do."""
    words: dict[TaskType, str] = read_yaml(FOLDER / "task_types.yaml")
    if missing := set(get_args(TaskType)) - set(words):
        raise StudyError(f"{FOLDER / 'task_types.yaml'}: no sentence for {min(missing)!r}; add it")
    return words


@dataclass(frozen=True)
class Call:
    """One message to the generator; `task` is empty if the wordings are for all data sets of the type."""

    key: str
    message: str
    context: Context
    task: str
    task_type: TaskType
    task_words: str  #: what raters read about the task
    number: int


def calls_of(subject: InstructionsSubject, tasks: Sequence[DatasetDescription], maker: str) -> list[Call]:
    """Return the calls to a generator (`maker_hash`) that a study wants, by context, then data set."""
    calls, number = list[Call](), subject.per_call
    for context in subject.contexts:
        template, of_type = load_prompt(context, FOLDER), context == "task_type"
        described = dict[str, DatasetDescription]()
        for task in tasks:
            described.setdefault(task.task_type if of_type else task.name, task)
        for dataset in described.values():
            *all_but_last, last = dataset.languages
            values = {
                "number": str(number),
                "wording_language": language_name(subject.language),
                "task": dataset.type_words,
                "description": dataset.description,
                "text_languages": f"{', '.join(all_but_last)} and {last}" if all_but_last else last,
            }
            message = template.render({name: value for name, value in values.items() if name in template.variables})
            key = identity("instructions-v1", maker, message, number, subject.seed)
            name, words = ("", dataset.type_words) if of_type else (dataset.name, dataset.words)
            calls.append(Call(key, message, context, name, dataset.task_type, words, number))
    return calls


def maker_hash(spec: EngineSpec, resolve: Callable[[str], Path]) -> str:
    """Return the identity of the generator; for a recorded one including its file's content."""
    of_spec, of_files = generator_hash(spec), [cached_file_hash(resolve(path)) for path in spec.recordings]
    return identity("recorded-v1", of_spec, *of_files) if of_files else of_spec


KEY = "prompts"
_JOINERS = "\u200c\u200d"  # words of Persian, conjuncts of Indic scripts and joined emoji need them


class InvalidReplyError(ValueError):
    """An invalid answer; the message says why."""


def schema(number: int) -> dict[str, Any]:
    """Return the JSON schema of an answer with this number of wordings."""
    wordings = {"type": "array", "items": {"type": "string"}, "minItems": number, "maxItems": number}
    return {"type": "object", "properties": {KEY: wordings}, "required": [KEY], "additionalProperties": False}


def read_reply(answer: str, number: int) -> tuple[str, ...]:
    """Return the wordings of an answer, in NFC, without surrounding blanks.

    Raises InvalidReplyError for other JSON, another number of wordings, and a wording that is empty, has several
    lines, is too long, or appears twice.

    >>> read_reply('{"prompts": ["Find it", "What is sought?"]}', 2)
    ('Find it', 'What is sought?')
    """
    text = answer.strip()
    if text.startswith("```") and text.endswith("```"):  # the code fence that models put around JSON
        text = text[3:-3].strip().removeprefix("json")
    try:
        reply = parse_json(text)
    except MalformedError as error:
        raise InvalidReplyError(f"not JSON: {error}") from None
    wordings = reply.get(KEY) if isinstance(reply, dict) else None
    if not isinstance(wordings, list) or not all(isinstance(text, str) for text in wordings):
        raise InvalidReplyError(f"no list of texts under {KEY!r}")
    lines = tuple(wording(text) for text in wordings)
    if len(lines) != number:
        raise InvalidReplyError(f"{len(lines)} wordings instead of {number}")
    if twice := [line for line in lines if lines.count(line) > 1]:
        raise InvalidReplyError(f"the wording {twice[0][:60]!r} appears twice")
    return lines


def wording(text: str) -> str:
    """Return a wording in its stored form. Raises InvalidReplyError for one that models cannot be given."""
    line = nfc(text).strip()
    if not shows(line):
        raise InvalidReplyError(
            "the wording is empty; models are evaluated without an instruction (`none`) in any case"
        )
    # Visible characters and blanks may be in a wording, and joiners in scripts that need them.
    if not all(
        sign.isprintable() or unicodedata.category(sign) == "Zs" or (sign in _JOINERS and not previous.isascii())
        for previous, sign in zip(" " + line, line, strict=False)
    ):
        raise InvalidReplyError(f"the wording {line[:60]!a} contains a line break or an invisible character")
    if len(line) > LONGEST:
        raise InvalidReplyError(f"a wording of {len(line)} characters; at most {LONGEST} are allowed")
    return line


REPLIES, REMOVED = "instructions/replies.parquet", "instructions/removed.json"


class Reply(Record):
    """The generator's reply to one call (`instructions/replies.parquet`)."""

    KEY = ("key",)
    key: str = Field(description="hash of the generator, the message, the number of wordings and the seed")
    context: str = Field(description="the generator's context: task_type, description or language")
    task: str = Field(description="the wordings' data set; empty if they are for all data sets of its type")
    task_type: str = Field(description="type of the task")
    raw: str = Field(description="the last answer, unchanged")
    status: Literal["ok", "failed", "unanswered"] = Field(
        description="failed: no valid reply after all attempts; unanswered: no answer, so the next run asks again"
    )
    reason: str = Field(description="why there are no wordings; empty otherwise")
    attempts: int = Field(description="number of answers received")
    model: str = Field(description="the generator's model")
    finished_at: datetime = Field(description="when the last answer was received, UTC")


class Instruction(Record):
    """One wording of an instruction (`instructions/prompts.parquet`): people label it, models read it."""

    KEY = ("prompt_id",)
    prompt_id: str = Field(description="hash of the wording and of its data set or task type")
    text: str = Field(description="the exact wording, in NFC, without blanks around it")
    group: str = Field(
        description="group of wordings with a common verdict: from_ and the generator's context; from_people"
    )
    task: str = Field(description="the wording's data set; empty if the wording is for all data sets of its type")
    task_type: str = Field(description="type of the task, such as sts; always given, also if `task` is empty")
    task_words: str = Field(description="description of the task that raters read beside the wording")
    generator: str = Field(description="the generator's model; empty for people's")
    right: str = Field(default="", description="right label of a known item, which only serves to check raters")

    @property
    def source(self) -> Literal["machine", "human"]:
        """The author of the wording."""
        return "machine" if self.generator else "human"

    @property
    def context(self) -> str:
        """The generator's context, as in `Reply`; empty for people's."""
        return self.group.removeprefix("from_") if self.generator else ""

    def serves(self, task: str, task_type: str) -> bool:
        """Return whether a data set is evaluated under it."""
        return self.task == task if self.task else self.task_type == task_type


class RemovedWording(Record):
    """A wording removed in favour of another (`instructions/removed.json`)."""

    text: str = Field(description="the wording")
    group: str = Field(description="the group that the wording would belong to")
    task: str = Field(description="the wording's data set; empty if the wording was for all data sets of its type")
    kept: str = Field(description="prompt_id of the wording that was kept instead")

    @classmethod
    def of(cls, wording: Instruction, replacement: Instruction) -> RemovedWording:
        """Return the record of a wording that another replaces."""
        return cls(text=wording.text, group=wording.group, task=wording.task, kept=replacement.prompt_id)


def prompt_id(text: str, task: str, task_type: str) -> str:
    """Return the identity of a wording for a data set, or, if `task` is empty, for all of a type."""
    return identity("instruction-v1", "task" if task else "type", task or task_type, text)[:16]


def distances(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the normalised Levenshtein distance of each pair: edits over the longer text's length, from 0 to 1."""
    return np.asarray(cdist(texts, texts, scorer=Levenshtein.normalized_distance, dtype=np.float64))


def clusters(matrix: NDArray[np.float64], near: float) -> list[list[int]]:
    """Cluster by average linkage (UPGMA), merging at a distance of at most `near`; return each cluster's members.

    `matrix` has the distances. Of equally near clusters those merge first that scipy takes first.

    >>> clusters(distances(["Find texts", "Find text", "Sort this"]), 0.1)
    [[0, 1], [2]]
    """
    if len(matrix) < 2:
        return [[index] for index in range(len(matrix))]
    linkage = scipy.cluster.hierarchy.linkage(scipy.spatial.distance.squareform(matrix), "average")
    labels = scipy.cluster.hierarchy.fcluster(linkage, near, "distance")
    return [np.flatnonzero(labels == label).tolist() for label in dict.fromkeys(labels)]


def stand_ins(texts: Sequence[str], near: float, stays: int = 0) -> list[int]:
    """Return for each text the index of the one that replaces it: its own if it is kept.

    A cluster keeps its medoid, the text with the least sum of distances to the others, the first of several. The first
    `stays` texts are always kept: in a cluster with some of them, the nearest replaces each of the others.
    """
    matrix, stand = distances(texts), list(range(len(texts)))
    for members in clusters(matrix, near):
        fixed = [member for member in members if member < stays]
        within = matrix[np.ix_(members, members)].sum(axis=1)
        standing = fixed or [members[int(within.argmin())]]
        for member in members:
            if member not in standing:
                stand[member] = standing[int(matrix[member, standing].argmin())]
    return stand


COMMAND = "instructions"


def one_of_each(candidates: Sequence[Instruction], near: float) -> tuple[list[Instruction], list[RemovedWording]]:
    """Return the wordings without near equals of the same task, and these; the machine's and people's apart.

    Wordings shared by all data sets of a type come first, and replace nearly equal ones of single data sets. A
    machine's wording that a person wrote too, for the same data set or its type, is removed in favour of the person's.
    """
    wordings, removed = list[Instruction](), list[RemovedWording]()
    types = dict.fromkeys(instruction.task_type for instruction in candidates)
    for source, task_type in itertools.product(("human", "machine"), types):
        of_people = {(wording.text, wording.task): wording for wording in wordings if wording.task_type == task_type}
        by_task: dict[str, list[Instruction]] = {"": []}
        for instruction in candidates:
            if (instruction.source, instruction.task_type) == (source, task_type):
                tasks = "", instruction.task
                if same := next(filter(None, (of_people.get((instruction.text, task)) for task in tasks)), None):
                    removed.append(RemovedWording.of(instruction, same))
                else:
                    by_task.setdefault(instruction.task, []).append(instruction)
        shared: Sequence[Instruction] = ()
        for task, instructions in by_task.items():
            remaining, replaced = _without_near(shared, instructions, near)
            shared = shared if task else remaining
            wordings += remaining
            removed += replaced
    order = {instruction.prompt_id: index for index, instruction in reversed(list(enumerate(candidates)))}
    return sorted(wordings, key=lambda instruction: order[instruction.prompt_id]), removed


def _without_near(
    shared: Sequence[Instruction], instructions: Sequence[Instruction], near: float
) -> tuple[list[Instruction], list[RemovedWording]]:
    """Return those of a task's wordings that are kept beside shared ones, which are all kept, and the others."""
    both, stays = [*shared, *instructions], len(shared)
    replacements = list(enumerate(stand_ins([instruction.text for instruction in both], near, stays)))
    removed = [RemovedWording.of(both[index], both[stand_in]) for index, stand_in in replacements if index != stand_in]
    return [both[index] for index, stand_in in replacements if index == stand_in and index >= stays], removed


def read_wordings(study: Study) -> list[Instruction]:
    """Return a study's wordings without known items. Raises DataError if they are missing or were changed."""
    wordings = read_records(study.folder / INSTRUCTIONS, Instruction, study.command(COMMAND))
    Manifest.of(study).refuse_replaced(INSTRUCTIONS, study.command(COMMAND))
    return [instruction for instruction in wordings if not instruction.right]


def worded(text: str, group: str, **fields: object) -> Instruction:
    """Return a wording with its id; `fields` are the other columns."""
    identified = prompt_id(text, str(fields["task"]), str(fields["task_type"]))
    return Instruction.model_validate({"prompt_id": identified, "text": text, "group": group, **fields})


COLUMNS = ("task", "prompt")
Label = Literal["acceptable", "irrelevant", "unnatural"]  # arXiv 2605.22544
LABELS: tuple[Label, ...] = get_args(Label)
MOST = 1000  # wordings of one task: each is compared with each


def by_people(file: Path, key: str, group: str, tasks: Sequence[DatasetDescription]) -> Iterator[Instruction]:
    """Yield the rows of a file that a key of the subject names, in order; rows of `known` have their right label.

    Raises DataError with file and row for an unusable row.
    """
    columns = (*COLUMNS, *(["label"] if key == "known" else []))
    if not file.is_file():
        raise DataError(f"no file {file}; correct `subject.{key}` in the study")
    frame = read_frame(file)
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{file}: no column {column!r}; {nearest(column, list(map(str, frame.columns)))}")
    if frame.empty:
        raise DataError(f"{file}: no rows; add wordings, or remove `subject.{key}` from the study")
    name, most = frame["task"].astype(str).str.strip().value_counts().agg(["idxmax", "max"])
    if most > MOST:
        raise DataError(
            f"{file}: {most:,} wordings for {name[:60]!r}; give at most {MOST:,}, as people must label each"
        )
    by_type = {task.task_type: ("", task.task_type, task.type_words) for task in tasks}
    tasks_by_name = by_type | {task.name: (task.name, task.task_type, task.words) for task in tasks}

    def read(row: tuple[Any, dict[Any, Any]]) -> Instruction:
        cells = row[1]
        row_name, name = row_of(file, row[0]), str(cells["task"]).strip()
        if name not in tasks_by_name:
            raise DataError(
                f"{row_name}, field 'task': the study has no data set or task type {name[:60]!r};"
                f" {nearest(name, [*(task.name for task in tasks), *by_type])}"
            )
        try:
            text = wording(str(cells["prompt"]))
        except InvalidReplyError as error:
            raise DataError(f"{row_name}, field 'prompt': {error}") from None
        right = str(cells["label"]).strip() if key == "known" else ""
        if key == "known" and right not in LABELS:
            raise DataError(f"{row_name}, field 'label': {right[:60]!r} is not a label; {nearest(right, list(LABELS))}")
        task, task_type, words = tasks_by_name[name]
        return worded(text, group, generator="", task=task, task_type=task_type, task_words=words, right=right)

    yield from read_each(zip(frame.index, frame.to_dict("records"), strict=True), read)

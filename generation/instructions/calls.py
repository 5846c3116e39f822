"""The calls to the generator: one for each task type, one or two for each data set."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from generation.datasets.mteb_registry import task_of
from generation.jobs import generator_hash
from plumbline.errors import StudyError
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.languages import language_name, language_pair
from plumbline.prompts import PROMPTS, load_prompt
from plumbline.reading import MalformedError, parse_json, read_yaml
from plumbline.records import nfc
from plumbline.study import Study
from plumbline.study.base import LONGEST
from plumbline.study.datasets import DatasetSpec, TaskType
from plumbline.study.engines import EngineSpec
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
    if not all(map(_stays, " " + line, line)):
        raise InvalidReplyError(f"the wording {line[:60]!a} contains a line break or an invisible character")
    if len(line) > LONGEST:
        raise InvalidReplyError(f"a wording of {len(line)} characters; at most {LONGEST} are allowed")
    return line


def _stays(previous: str, sign: str) -> bool:
    """Return whether a character may be in a wording: visible ones, blanks, and joiners in scripts that need them."""
    return sign.isprintable() or unicodedata.category(sign) == "Zs" or (sign in _JOINERS and not previous.isascii())

"""A rubric's file with a study's additions: wordings in further languages, words for its subject.

Wordings in further languages stand beside the rubric (`prompts/rubrics/<rubric>/<language>.yaml`), not in it: a study
that names none under `wordings` asks what it has always asked, and the identity of its rubric is what it was
(docs/decisions/0009-languages.md). Where the subject is not pairs, all texts of a file share one explanation, `texts`:
raters must not learn the group of a text. A data set's items have the words of its own name, of its task, or of
`items`.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from annotation.questions.entries import ENGLISH, FieldTitles, PoolText
from annotation.questions.question import Question
from plumbline.errors import StudyError, nearest
from plumbline.languages import language_name
from plumbline.prompts import rubric_file
from plumbline.reading import parse_yaml, read_yaml
from plumbline.study import Study
from plumbline.study.base import complaints
from plumbline.study.subject import Subject, VerdictUnit
from plumbline.study.transformations import EIGHT, Transformation

CHECKED_BY = "checked_by"  #: the native speaker who checked a wording; empty for nobody
ANSWERING_WORDS = "answering_words.yaml"
CROWD_WORDS = Path(str(files("annotation.crowd").joinpath("words")))  # of the crowd's pages, a file for each language


@functools.cache
def packaged(name: str) -> Any:
    """Return the content of a YAML file of this package; nobody may change it."""
    return parse_yaml(files("annotation").joinpath(name).read_text(encoding="utf-8"))


def words_in(name: str, *languages: str) -> Mapping[str, str]:
    """Return a platform's words in the first of some languages that has them, else in English."""
    words: Mapping[str, Mapping[str, str]] = packaged(name)
    return next((words[code] for code in languages if code in words), words[ENGLISH])


def with_wordings(rubric: Any, file: Path, languages: Iterable[str]) -> Any:
    """A rubric as its file has it, with its wordings in further languages (codes).

    Raises StudyError for a language without a file, and for a file that does not word all of it and nothing else.
    """
    for code in languages:
        path = wording_file(file, code)
        words = _read(path)
        if words is None:
            languages_here = (
                ", ".join(sorted(file_of_words.stem for file_of_words in path.parent.glob("*.yaml"))) or "none"
            )
            raise StudyError(
                f"wordings: {path} is missing; available are: {languages_here}; write it, or leave out {code!r}"
            )
        words.pop(CHECKED_BY, None)
        if words:  # else the rubric's own file has the language, and this one says who checked it
            rubric = _added(rubric, words, code, f"{path}:")
    return rubric


def wording_file(rubric_file: Path, code: str) -> Path:
    """Return the path of a rubric's wording in a language."""
    return rubric_file.with_suffix("") / f"{code}.yaml"


def unchecked(file: Path) -> bool:
    """Return whether a file of wordings has no checker.

    A language of the rubric without a file is its author's own: nothing is known of it.
    """
    words = _read(file)
    return words is not None and not words[CHECKED_BY]


def _added(node: Any, words: Any, code: str, location: str) -> Any:
    """Return a part of a rubric with the words of another language's file in the same places."""
    if _is_wording(node):
        if not isinstance(words, str) or not words.strip():
            raise StudyError(f"{location} is missing or empty; every wording of the rubric is needed")
        return {**node, code: words}
    if isinstance(node, list) and all(isinstance(entry, dict) and "name" in entry for entry in node):
        named = _added({entry["name"]: entry for entry in node}, words, code, location)
        return list(named.values())
    if not isinstance(node, dict):
        return node  # not a rubric: its reader will report it
    parts = {name: part for name, part in node.items() if _has_wording(part)}
    if not isinstance(words, dict):
        raise StudyError(f"{location} is missing; its parts are: {', '.join(map(str, parts))}")
    inside = f"{location} " if location.endswith(":") else f"{location}."
    if unknown := [name for name in words if name not in parts]:
        raise StudyError(f"{inside}{unknown[0]} has no English wording in the rubric; leave it out")
    return {**node, **{name: _added(part, words.get(name), code, f"{inside}{name}") for name, part in parts.items()}}


def _is_wording(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get(ENGLISH), str)


def _has_wording(node: Any) -> bool:
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return _is_wording(node) or any(map(_has_wording, parts))


def _read(path: Path) -> dict[Any, Any] | None:
    """Return a file of wordings; None if there is none. Raises StudyError for one that is not YAML, or no mapping."""
    try:
        content = read_yaml(path)
    except FileNotFoundError:
        return None
    if not isinstance(content, dict) or not isinstance(content.get(CHECKED_BY), str):
        raise StudyError(f"{path}: must name its checker under {CHECKED_BY}: a native speaker's name, or '' for nobody")
    return content


# The fields that Argilla shows beside an item's texts: what was asked, and how to answer.
ASKED, ANSWERING = BESIDE = ("asked", "answering")


class _Rubric(Protocol):
    @property
    def fields(self) -> FieldTitles: ...
    @property
    def pools(self) -> Mapping[str, Any]: ...
    def asked(self, pool: str | None = None) -> Sequence[Question]: ...
    def language_for(self, language: str, output_language: str) -> str: ...


def with_groups(rubric: Any, judging: Subject, tasks_by_group: Mapping[str, str | None]) -> Any:
    """Return a rubric's content with the words of the subject's groups; pairs have none. Raises StudyError.

    `tasks_by_group` has the task of the data set that each group is named after; None for other groups.
    """
    pools = rubric.get("pools") if isinstance(rubric, dict) else None
    if not isinstance(pools, dict):
        return rubric
    used_bases = dict[str, str]()
    for group, task in tasks_by_group.items():
        if not (names := judging.pools(group, task)):
            continue
        base = next((name for name in names if name in pools), None)
        if base is None:
            raise StudyError(
                f"does not define the pool {names[-1]!r}, which the study's subject needs; add it under `pools`"
            )
        used_bases[group] = base
    lists = {name: _widened(rubric[name], used_bases) for name in ("questions", "fields") if name in rubric}
    return {**rubric, **lists, "pools": {**pools, **{name: pools[base] for name, base in used_bases.items()}}}


def _widened(entries: Any, bases: Mapping[str, str]) -> Any:
    """Return questions or fields in which a pool's name is joined by the groups that have its words."""
    if not isinstance(entries, list):
        return entries
    return [
        {**entry, "pools": [*entry["pools"], *(name for name, base in bases.items() if base in entry["pools"])]}
        if isinstance(entry, dict) and isinstance(entry.get("pools"), list)
        else entry
        for entry in entries
    ]


def wrong_fields(rubric: _Rubric, judging: Subject, groups: Collection[str]) -> Iterator[str]:
    """Yield reasons why a rubric cannot show the fields of a study's subject with these groups.

    Those that the study is to mend begin with `subject.`.
    """
    fields = rubric.fields.shown
    if judging.transforms:
        if fields:
            yield "lists another subject's fields, but the study judges pairs: `fields` must be original, transformed"
        return
    if not fields:
        yield f"shows pairs of texts, but the study's subject is {judging.kind}; list its fields under `fields`"
        return
    if reserved := [field.name for field in fields if field.name in BESIDE]:
        yield f"has a field {reserved[0]!r}, a name that Argilla's page uses itself; rename the field"
    if any(pool.expected for pool in rubric.pools.values()):
        yield "has `expected` answers, which only pairs use; name right answers under the subject's `expected` instead"
    if judging.fields:
        yield from _of_texts(rubric, judging, groups)


def _of_texts(rubric: _Rubric, judging: Subject, groups: Collection[str]) -> Iterator[str]:
    shown = {field.name: field.pools for field in rubric.fields.shown}
    questions = {question.name: question for question in rubric.asked()}
    labels = {label: name for name, question in questions.items() for label in question.labels}
    names: tuple[tuple[Iterable[str], Collection[str], str], ...] = (
        (shown, judging.fields, "shows a field {!r} that the subject does not have"),
        (judging.known_questions, questions, "subject.expected: the rubric has no question {!r}"),
        (judging.systems_by_label, labels, "subject.systems: the rubric has no label {!r}"),
    )
    for named, defined, fault in names:
        yield from (f"{fault.format(name)}; {nearest(name, list(defined))}" for name in named if name not in defined)
    for name in judging.fields:
        if name not in shown:
            yield f"does not show the field {name!r}, which the subject has; add it to `fields`, or remove it there"
    for name, pools in {**shown, **{question.name: question.pools for question in questions.values()}}.items():
        if pools and not set(groups) <= set(pools):
            yield f"{name!r} is for some groups only, but raters must not learn the groups; leave its `pools` out"
    yield from _without_systems(questions.values(), judging.systems_by_label)
    for name, question in questions.items():
        if question.free_text and name in judging.known_questions:
            yield f"subject.expected.{name}: the rubric asks for a text, which has no right answer; remove it"


def _without_systems(questions: Iterable[Question], systems: Mapping[str, str]) -> Iterator[str]:
    """Yield a fault for each label of a choice that reads as the output of one more system: c after a and b."""
    following = {label[:-1] + chr(ord(label[-1]) + 1) for label in systems} - systems.keys()
    choices = {label for question in questions for label in question.labels if {*question.labels} & {*systems}}
    for label in sorted(following & choices):
        yield f"has a label {label!r} without a system; name its column in subject.systems, or give a tie another name"


def with_own_words(rubric: Any, kinds: Mapping[str, VerdictUnit], study_file: Path) -> Any:
    """Return a rubric's content with the words of the study's own transformations for pools that it lacks.

    Those that share a queue have the same words, which are the queue's: raters do not know whose output they read. So
    texts of a file or of a shared queue stand below a title that says what raters do, unless the study has one.
    """
    if not isinstance(rubric, dict) or not isinstance(rubric.get("pools"), dict):
        return rubric
    pools: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind.raters and kind.pool == name and name not in EIGHT and name not in rubric["pools"]:
            is_blind = kind.queue or (isinstance(kind, Transformation) and kind.outputs)
            neutral = {code: words["queue"] for code, words in packaged(ANSWERING_WORDS).items()}
            title = {"title": neutral if is_blind else {ENGLISH: name.replace("_", " ").capitalize()}}
            try:
                PoolText.model_validate({**title, **kind.raters})
            except ValidationError as error:
                location = f"{study_file}: transformation {name!r}: raters"
                raise StudyError(*(f"{location}.{fault}" for fault in complaints(error))) from None
            pools[name] = {**title, **kind.raters}
            if kind.queue and pools.setdefault(kind.queue, pools[name]) != pools[name]:
                raise StudyError(
                    f"{study_file}: transformation {name!r}: its queue {kind.queue!r} has other words for raters in"
                    " another transformation; give all the same `raters`"
                )
    return {**rubric, "pools": {**rubric["pools"], **pools}}


def addressed_lines(study: Study, rubric: _Rubric, texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return notes on the languages in which raters are addressed.

    There are none if native speakers checked all of them, or raters read English.

    `texts` are languages of originals with those of their transformed texts (codes).
    """
    judged = {both: rubric.language_for(*both) for both in texts}
    file = rubric_file(study)
    pages = [CROWD_WORDS] if study.crowd is not None else []
    used = sorted(set(judged.values()) - {ENGLISH})
    wording_files = {code: [wording_file(file, code), *(folder / f"{code}.yaml" for folder in pages)] for code in used}
    lines = []
    if codes := [code for code in used if any(map(unchecked, wording_files[code]))]:
        names = ", ".join(f"{language_name(code)} ({code})" for code in codes)
        lines.append(f"No native speaker has checked the wordings that raters see (docs/questions.md): {names}")
    foreign = sorted({output for (_, output), code in judged.items() if code == ENGLISH} - {ENGLISH})
    if available := ", ".join(code for code in foreign if wording_file(file, code).exists()):
        lines.append(
            f"Raters of texts in {available} see questions in English; to show them the rubric {study.rubric!r} in"
            f" their language, add `wordings: [{available}]` to the study before it is published"
        )
    return lines

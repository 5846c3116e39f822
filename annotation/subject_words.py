"""What a rubric says of another subject than pairs: which words explain its groups, and which of its fields are shown.

The texts of a file share one explanation, `texts`, whatever their groups: who rates is not told of which a text is. A
data set's items have the words of its own name, of its task, or of `items`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from annotation.questions import FieldTitles, PoolText, QuestionScale
from annotation.wordings import ENGLISH
from plumbline.errors import DataError, StudyError, nearest
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.subject import TEXT
from plumbline.study.subjects import Subject
from plumbline.study.transformations import EIGHT

# What stands with an item in Argilla beside its texts: what was asked, and how to answer.
ASKED, ANSWERING = BESIDE = ("asked", "answering")


class _Rubric(Protocol):
    @property
    def fields(self) -> FieldTitles: ...
    @property
    def pools(self) -> Mapping[str, Any]: ...
    def asked(self, pool: str | None = None) -> Sequence[QuestionScale]: ...


def with_groups(rubric: Any, study: Study) -> Any:
    """What a rubric's file says, with the words of the subject's groups; pairs have none. Raises StudyError."""
    if (
        study.judging.transforms
        or study.judging.does_tasks
        or not isinstance(rubric, dict)
        or not isinstance(rubric.get("pools"), dict)
    ):
        return rubric
    pools = rubric["pools"]
    bases = {name: _base(study, name, pools) for name in study.kinds}
    if lost := next((names[-1] for names, base in bases.values() if base is None), ""):
        raise StudyError(f"explains no pool {lost!r}, which the study's subject needs; add it under `pools`")
    used_bases = {name: base for name, (_, base) in bases.items() if base is not None}
    lists = {name: _widened(rubric[name], used_bases) for name in ("questions", "fields") if name in rubric}
    return {**rubric, **lists, "pools": {**pools, **{name: pools[base] for name, base in used_bases.items()}}}


def _base(study: Study, group: str, pools: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """The pools whose words may explain a group, and the first of them that the rubric has."""
    names = study.judging.pools(group, next((data.task for data in study.datasets if data.name == group), None))
    return names, next((name for name in names if name in pools), None)


def _widened(entries: Any, bases: Mapping[str, str]) -> Any:
    """Questions or fields, where those that name a pool name the groups that have its words."""
    if not isinstance(entries, list):
        return entries
    return [
        {**entry, "pools": [*entry["pools"], *(name for name, base in bases.items() if base in entry["pools"])]}
        if isinstance(entry, dict) and isinstance(entry.get("pools"), list)
        else entry
        for entry in entries
    ]


def wrong_fields(rubric: _Rubric, study: Study) -> Iterator[str]:
    """Why a rubric cannot show what the study's subject gives."""
    shown, judging = rubric.fields.shown, study.judging
    if judging.transforms:
        if shown:
            yield "lists another subject's fields, and the study judges pairs: `fields` names original, transformed"
        return
    if not shown:
        yield f"shows pairs of texts, and the study's subject is {judging.kind}: list its fields under `fields`"
        return
    if taken := [field.name for field in shown if field.name in BESIDE]:
        yield f"no field can be called {taken[0]!r}, which Argilla shows beside an item's own; rename it"
    if any(pool.expected for pool in rubric.pools.values()):
        yield "has `expected` answers, of controls that are made of pairs alone; the subject's `expected` names others"
    if judging.fields:
        yield from _of_texts(rubric, judging, study.kinds)


def _of_texts(rubric: _Rubric, judging: Subject, groups: Collection[str]) -> Iterator[str]:
    names, shown = judging.fields, [field.name for field in rubric.fields.shown]
    if strange := [name for name in shown if name not in names]:
        yield f"shows a field {strange[0]!r} that the subject does not have; {nearest(strange[0], names)}"
    if unseen := [name for name in names if name not in shown]:
        where = "`subject.context`" if unseen[0] != TEXT else "the subject"
        yield f"shows no field {unseen[0]!r}, which {where} has; add it to `fields`, or take it out of the study"
    pools = {field.name: field.pools for field in rubric.fields.shown} | {
        question.name: question.pools for question in rubric.asked()
    }
    if some := [name for name, of_pools in pools.items() if of_pools and not set(groups) <= set(of_pools)]:
        yield f"{some[0]!r} is for some groups alone, and raters are not told the groups; leave its `pools` out"
    by_name = {question.name: question for question in rubric.asked()}
    for name in judging.known_questions:
        if name not in by_name:
            yield f"has no question {name!r}, which subject.expected has answers to; {nearest(name, list(by_name))}"
        elif by_name[name].kind == "text":
            yield f"asks {name!r} for a text, of which no answer is the right one; take it out of subject.expected"


def with_own_words(rubric: Any, study: Study) -> Any:
    """What a rubric's file says, with the words of the study's own transformations for pools that it does not have."""
    if not isinstance(rubric, dict) or not isinstance(rubric.get("pools"), dict):
        return rubric
    pools = {}
    for name, kind in study.kinds.items():
        if kind.raters and kind.pool == name and name not in EIGHT and name not in rubric["pools"]:
            title = {"title": {ENGLISH: name.replace("_", " ").capitalize()}}
            try:
                PoolText.model_validate({**title, **kind.raters})
            except ValidationError as error:
                wrong = f"transformation {name!r}: raters.{first_complaint(error)}"
                raise DataError(f"{study.file}: {wrong}") from None
            pools[name] = {**title, **kind.raters}
    return {**rubric, "pools": {**rubric["pools"], **pools}}

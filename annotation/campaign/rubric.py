"""Questions, scale, guidelines and expected answers as data: `prompts/rubrics/<name>.yaml`.

Each file has the texts for raters in several languages; English is always there and replaces missing ones.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from annotation.human.records import HumanTask
from annotation.human.tasks import rubric_of as rubric_of_tasks
from annotation.questions.entries import (
    ASKED_UNKNOWN,
    ENGLISH,
    IMPORTED,
    TOLD_UNKNOWN,
    FieldTitles,
    PoolText,
    RubricQuestion,
    Sense,
    Words,
    worded,
    wordings,
)
from annotation.questions.question import AT_END, Question, Value
from annotation.questions.wordings import with_groups, with_own_words, with_wordings, wrong_fields
from plumbline.errors import StudyError, nearest
from plumbline.fields import SECOND, expected_of
from plumbline.identity import identity
from plumbline.languages import display_name
from plumbline.prompts import own_words, refuse_unasked, rubric_file, rubric_folders
from plumbline.reading import read_yaml, with_lines
from plumbline.records import Pair
from plumbline.scales import Continuous, Scale
from plumbline.study import Study
from plumbline.study.base import StudyPart, complaints
from plumbline.study.campaign import PAPERS_SCALES, AcceptanceSpec, QualityLimits, Tolerance
from plumbline.words import trim

CONTROLS = ("positive", "negative")
KNOWN = "known"  # a control that brings its own right answers
CHECKS = (*CONTROLS, KNOWN)  # controls that check raters by right answers
#: Other columns of exported answers and of `collect --csv`, and Argilla's free comment.
TAKEN = ("pair", "item_id", "item_kind", "rater", "time", "comment", "counts")
_POOL = re.compile(r"pools\.([\w-]+)")
_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
MOST_LABELS = 500  # that Argilla allows a question
LIMIT = 1000  # characters that Argilla allows a question's description


class Rubric(StudyPart):
    """The questions to raters, and their explanation."""

    name: str
    source: str
    scale: Scale = Field(
        default=(),
        description="scale of the ratings: points, or {from, to} and a step; empty if each question has its own",
    )
    threshold: float | None = Field(
        default=None,
        description="the smallest mean that the rubric's source accepts; unless it is 3, a study must set its own"
        " `acceptance.threshold` or `acceptance.rules`",
    )
    fields: FieldTitles
    comment: Words = Field(description="title of the free comment")
    questions: tuple[RubricQuestion, ...] = Field(min_length=1)
    guidelines: Words
    pools: dict[str, PoolText]
    _asked: dict[str | None, list[Question]] = PrivateAttr(default_factory=dict)

    @field_validator("scale")
    @classmethod
    def _ascending(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if list(value) != sorted(set(value)):
            raise ValueError("the scale's points must ascend")
        if len(value) == 1:
            raise ValueError("a scale needs two points or more")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Rubric:
        if faults := list(dict.fromkeys(self._incomplete())):
            raise ValueError("\n".join(faults))
        return self

    @property
    def quality(self) -> QualityLimits:
        """The limits for signs of careless answers, for each rating on its own scale."""
        both = zip(self.questions, self.asked(), strict=True)
        return QualityLimits(
            {question.name: Tolerance.of(question.scale, entry.tolerance) for entry, question in both if question.scale}
        )

    def question_names(self) -> list[str]:
        """The questions' names, in order."""
        return [question.name for question in self.questions]

    def pool(self, name: str) -> PoolText:
        """Return how one pool is explained. Raises StudyError if the rubric does not know it."""
        if name not in self.pools:
            raise StudyError(
                f"rubric {self.name!r} does not define the pool {name!r}; add it under `pools`, or add `raters` to"
                " your own transformation"
            )
        return self.pools[name]

    def asked(self, pool: str | None = None) -> Sequence[Question]:
        """Return the questions as raters answer them, in order: all, or those asked of a pool."""
        if pool not in self._asked:
            every = (question.asked(self.scale) for question in self.questions)
            self._asked[pool] = [question for question in every if pool is None or question.asked_in(pool)]
        return self._asked[pool]

    def asked_questions(self, pool: str) -> list[tuple[RubricQuestion, Question]]:
        """The questions that a pool is asked, with their words, in order."""
        both = zip(self.questions, self.asked(), strict=True)
        return [(entry, question) for entry, question in both if question.asked_in(pool)]

    def scale_of(self, question: str) -> tuple[float, ...]:
        """The scale of a rating: its own, or the rubric's."""
        return next(scale.scale for scale in self.asked() if scale.name == question)

    def rating_names(self) -> list[str]:
        """The names of the questions that are answered with a point of a scale, in order."""
        return [question.name for question in self.asked() if question.has_points]

    def expected(self, pool: str, control: str) -> dict[str, Value]:
        """The answers that a control of a pool (`positive` or `negative`) should get, by question; {} where none is."""
        right = self.pool(pool).expected.get(control, {})
        questions = {question.name: question for question in self.asked()}
        return {name: questions[name].kept(value) for name, value in right.items() if questions[name].asked_in(pool)}

    def description(self, pool: str, entry: RubricQuestion, language: str) -> str:
        """Return a pool's instruction and the meaning of each point; labels have their words on their buttons."""
        return entry.asked(self.scale).description(*self.meaning(pool, entry, language))

    def guidelines_for(self, pool: str, language: str, *, without: Collection[str] = ()) -> str:
        """The guidelines of one campaign, as Argilla shows them (Markdown, the rubric's own text alone).

        `without` names questions that are not explained.
        """
        text = self.pool(pool)
        parts = [f"## {worded(text.title, language)}", worded(text.asked, language), worded(self.guidelines, language)]
        for entry, question in self.asked_questions(pool):
            if entry.name not in without:
                hint, options = self.meaning(pool, entry, language)
                lines = "\n".join(question.guideline(option, meaning) for option, meaning in options.items())
                parts.append(f"**{worded(entry.title, language)}** {hint}" + (f"\n\n{lines}" if lines else ""))
        return "\n\n".join(parts) + "\n"

    def meaning(self, pool: str, entry: RubricQuestion, language: str) -> tuple[str, dict[float | str, str]]:
        """Return a question's meaning in a pool.

        That is the hint (or nothing), and the words of its scale's points in order, or of each label.
        """
        sense = self.pool(pool).questions.get(entry.name, Sense())
        points: dict[float, Words] = {**entry.points, **sense.points}
        options: list[tuple[float | str, Words]] = [*entry.labels.items(), *sorted(points.items())]
        hint = worded(sense.hint, language) if sense.hint else ""
        return hint, {option: worded(words, language) for option, words in options}

    def right_answers(self, pair: Pair) -> dict[str, Value]:
        """The answers that a control should get, by question; {} where none are known, as of pairs of the sample."""
        if pair.control in CONTROLS:
            return self.expected(pair.pool, pair.control)
        return {**expected_of(pair)} if pair.control == KNOWN else {}

    def field_titles(self, pool: str, language: str, original: str, transformed: str) -> dict[str, str]:
        """Return the titles of a pool's fields, in order.

        They name the languages (codes) if these differ.
        """
        names = {field.name: worded(field.title, language) for field in self.fields.of(pool)}
        if original == transformed:
            return names
        first, second = (display_name(code, language) for code in (original, transformed))
        return {name: f"{title} ({second if name in SECOND else first})" for name, title in names.items()}

    def identity(self) -> str:
        """Hash of its whole content: questions, scale, every wording, expected answers."""
        return identity("rubric-v1", self.model_dump(mode="json"))

    def language_for(self, language: str, output_language: str) -> str:
        """Return the language in which to address raters of these texts, or English if it has no wording."""
        return next((code for code in (output_language, language) if code in self.guidelines), ENGLISH)

    def _incomplete(self) -> Iterator[str]:
        """Yield its faults: missing parts, and words about unknown questions, points, labels or controls."""
        for entry, question in zip(self.questions, self.asked(), strict=True):
            yield from question.entry_faults(tuple(sorted(entry.points)), entry.start)
            if unknown := [pool for pool in question.pools if pool not in self.pools]:
                yield f"question {question.name!r} names a pool {unknown[0]!r} that the rubric does not define"
        by_name = {question.name: question for question in reversed(self.asked())}
        for best, number in Counter(filter(None, (question.worst_of for question in self.questions))).items():
            if number > 1 or best not in by_name or not by_name[best].picks_one or by_name[best].lower_is_better:
                yield f"worst_of {best!r}: name a question of kind label that asks for the best, and name it once"
        for name, pool in self.pools.items():
            yield from _wrong_pool(name, pool, by_name)
            if not any(question.required for question in self.asked(name)):
                yield f"pool {name!r} has no required question"
            for language, (entry, _) in itertools.product(self.guidelines, self.asked_questions(name)):
                if len(self.description(name, entry, language)) > LIMIT:
                    yield (f"pool {name!r}, {entry.name!r} in {language!r}: hint and points together"
                           f" are longer than the {LIMIT} characters that Argilla allows")  # fmt: skip

    def unusable(self) -> Iterator[str]:
        """Yield reasons why a new study cannot use it; rules already fixed are not checked again."""
        names = self.question_names()
        for name in names:
            if not _NAME.fullmatch(name):
                yield (
                    f"question {name!r}: a name begins with a lower-case letter or a digit, and has at most 64 of"
                    " these, - and _"
                )
            if name in TAKEN:
                yield f"question {name!r}: files of ratings use this name for something else; rename the question"
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield f"question {twice[0]!r} appears twice; give each question its own name"
        if self.threshold is not None and not self.scale:
            yield f"threshold {self.threshold:g}: the rubric has no scale; leave it out, and set acceptance.rules"
        elif self.threshold is not None and not self.scale[0] <= self.threshold <= self.scale[-1]:
            yield f"threshold {self.threshold:g} is outside the scale {self.scale[0]} to {self.scale[-1]}"
        for question in self.questions:
            if len(question.labels) > MOST_LABELS:
                number = len(question.labels)
                yield f"question {question.name!r} has {number} labels, but at most {MOST_LABELS} are allowed"
        yield from (fault for question in self.questions for fault in question.called_alike())
        for location, wording in wordings(self.model_dump(), ""):
            if not trim(wording):
                yield f"{location} is empty; give it a wording"


def _wrong_pool(name: str, pool: PoolText, questions: Mapping[str, Question]) -> Iterator[str]:
    """Yield a pool's controls, questions, points and labels that there are none of, each with its place."""
    key = f"pools.{name}"
    if unknown := sorted(set(pool.expected) - set(CONTROLS)):
        yield f"{key}.expected: no control is called {unknown[0]!r}; use {' or '.join(CONTROLS)}"
    named = {*pool.questions, *(question for answers in pool.expected.values() for question in answers)}
    if unknown := sorted(named - set(questions)):
        yield f"{key}: the rubric has no question {unknown[0]!r}"
    for question, sense in pool.questions.items():
        scale = questions[question].scale if question in questions else sense.points
        if off := [point for point in sense.points if point not in scale]:
            yield f"{key}.questions.{question}.points: {off[0]} is not on the scale"
    for control, answers in pool.expected.items():
        for question, right in answers.items():
            if question not in questions:
                continue
            try:
                questions[question].right(right)
            except ValueError as error:
                yield f"{key}.expected.{control}.{question}: {error}"


def load_rubric(study: Study, folder: Path | None = None, tasks: Sequence[HumanTask] | None = None) -> Rubric:
    """The study's rubric. Raises StudyError where it is missing, malformed, or not of the rules' scale.

    For tasks that people do, it is that of `tasks`, or of the tasks drawn last; raises DataError before any are drawn.
    """
    path, judging = rubric_file(study, folder), study.judging
    sources = dict[str, tuple[Path, str]]()
    if judging.does_tasks:
        content = rubric_of_tasks(study, tasks)
    else:
        refuse_missing(study, folder)
        content = read_yaml(path)
        refuse_unasked(study, path, content)
        sources |= own_words(study, content)
        content = with_own_words(with_wordings(content, path, study.wordings), study.kinds, study.file)
    try:
        tasks_by_dataset = {data.name: data.task for data in study.datasets}
        groups = {name: tasks_by_dataset.get(name) for name in study.kinds}
        rubric = Rubric.model_validate(with_groups(content, judging, groups))
    except StudyError as error:
        raise StudyError(*with_lines(path, error.args)) from None
    except ValidationError as error:
        raise StudyError(*_placed(study, path, complaints(error), sources)) from None
    if faults := [*rubric.unusable(), *wrong_fields(rubric, judging, study.kinds)]:
        raise StudyError(*_placed(study, path, faults, sources))
    pools = list(dict.fromkeys(kind.pool for kind in study.kinds.values()))
    if faults := list(_wrong_rules(rubric, study.acceptance, pools, by_blocks=bool(study.raters.blocks))):
        raise StudyError(*with_lines(study.file, faults))
    return rubric


def refuse_missing(study: Study, folder: Path | None = None) -> None:
    """Raise StudyError if the study's file of questions is missing."""
    path = rubric_file(study, folder)
    if path.is_file():
        return
    folders = rubric_folders(folder)
    names = ", ".join(sorted(file.stem for path_folder in folders for file in path_folder.glob("*.yaml")))
    places = " or ".join(map(str, folders))
    imported = next(study.file.parent.glob(f"*/{path.name}"), None)  # beside the study that this one is a copy of
    copy = f"; if it is that of {imported}, copy this file to {study.file.with_suffix('') / path.name}"
    fault = f"rubric: no {study.rubric!r} in {places}; known rubrics: {names}{copy if imported else ''}"
    raise StudyError(*with_lines(study.file, [fault]))


def placeholder_lines(study: Study, rubric: Rubric) -> list[str]:
    """Return a line on the wordings that an import left open, with the files to write them in; none if all are there.

    Raters of another campaign on an imported study would read that nobody knows what they are to do.
    """
    keys = [key.rpartition(".")[0] for key, words in wordings(rubric.model_dump(), "")
            if words.endswith((ASKED_UNKNOWN, TOLD_UNKNOWN))]  # fmt: skip
    of_study = [key for key in keys if study.judging.transforms and key.startswith("pools.")]
    of_rubric = [key for key in keys if key not in of_study]
    of_rubric += [
        f"points of {question.name}"
        for question in rubric.questions
        if rubric.source == IMPORTED and question.points
        and all(words[ENGLISH] == f"{point:g}" for point, words in question.points.items())
    ]  # fmt: skip
    by_file = {rubric_file(study): ", ".join(of_rubric), study.file: "raters.asked" if of_study else ""}
    files = " and ".join(f"{file} ({where})" for file, where in by_file.items() if where)
    return [f"{files}: the import did not know what raters read; write there what they are to read"] if files else []


def _placed(study: Study, path: Path, faults: Iterable[str], sources: Mapping[str, tuple[Path, str]]) -> list[str]:
    """Return the faults of a rubric with the file and the line to mend.

    That is the study's for its subject, and for words and right answers of its own transformations (`sources`).
    """
    words = dict[str, tuple[Path, str]]()  # by pool; the members of a queue have the same ones
    for name, source in sources.items():
        words |= {name: source, **({} if study.kinds[name].queue in words else {study.kinds[name].queue: source})}
    lines = list[str]()
    for fault in faults:
        pool = _POOL.match(fault)
        if pool and pool[1] in words:
            file, start = words[pool[1]]
            lines += with_lines(file, [start + fault[pool.end() :]])
        else:
            lines += with_lines(study.file if fault.startswith("subject.") else path, [fault])
    return list(dict.fromkeys(lines))


def _wrong_rules(rubric: Rubric, rule: AcceptanceSpec, pools: Sequence[str], *, by_blocks: bool) -> Iterator[str]:
    """Yield why a study's rule, which may look after blocks, cannot judge answers to a rubric in its `pools`."""
    if rule.rules:
        yield from _wrong_own_rules(rubric, rule, by_blocks=by_blocks) or _wrong_pools(rubric, rule, pools)
    else:
        yield from itertools.islice(_wrong_threshold(rubric, rule, pools, by_blocks=by_blocks), 1)  # others may follow
    continuous = [question.name for question in rubric.asked() if isinstance(question.scale, Continuous)]
    if rule.min_ac2 is not None and continuous:
        yield f"acceptance.min_ac2 needs points, and the scale of {continuous[0]!r} has none; leave it out"


def _wrong_own_rules(rubric: Rubric, rule: AcceptanceSpec, *, by_blocks: bool) -> list[str]:
    """Return faults of a study's own rules: unknown questions and pools, and what a question lacks."""
    by_name, faults = {question.name: question for question in rubric.asked()}, list[str]()
    for criterion in rule.rules:
        name = criterion.question
        if name not in by_name:
            faults.append(f"acceptance.rules: no question is called {name!r}; {nearest(name, list(by_name))}")
        elif fault := by_name[name].rule_fault(criterion, by_blocks=by_blocks, with_agreement=rule.min_ac2 is not None):
            faults.append(f"acceptance.rules, {name!r}: {fault}")
        faults += [
            f"acceptance.rules, {name!r}: there is no pool {pool!r}; {nearest(pool, list(rubric.pools))}"
            for pool in criterion.pools
            if pool not in rubric.pools
        ]
    return faults


def _wrong_pools(rubric: Rubric, rule: AcceptanceSpec, pools: Sequence[str]) -> Iterator[str]:
    """Yield the pools that no rule judges, and the questions of rules that a pool lacks."""
    for pool in pools:
        judged = [part.question for part in rule.rules if not part.pools or pool in part.pools]
        if not judged:
            yield f"acceptance.rules: no rule judges the pool {pool!r}; add a rule for it, or a rule without pools"
        for name in judged:
            if name not in {question.name for question in rubric.asked(pool)}:
                yield f"acceptance.rules: the pool {pool!r} lacks the question {name!r}; name the rule's pools"


def _wrong_threshold(rubric: Rubric, rule: AcceptanceSpec, pools: Sequence[str], *, by_blocks: bool) -> Iterator[str]:
    """Yield why one threshold cannot judge: none for this scale, off it, or ratings that lack it."""
    scale, source = rubric.scale, "" if rubric.threshold is None else f"; the rubric's own is {rubric.threshold:g}"
    hteb = {PAPERS_SCALES[0]: float(AcceptanceSpec.model_fields["threshold"].default)}  # section 2.4
    usual = hteb.get(scale) if rubric.threshold is None else rubric.threshold
    if scale and "threshold" not in rule.model_fields_set and rule.threshold != usual:
        yield (f"rubric {rubric.name!r} has the scale {scale[0]} to {scale[-1]}, so the study must set"
               f" acceptance.threshold (the least mean to accept{source}); add it")  # fmt: skip
    judged = [question for question in rubric.asked() if question.threshold_rules(question.name, rule)]
    if not judged:
        yield "no question has a scale for the threshold; set acceptance.rules instead"
    for pool in pools:
        if not any(question in judged for question in rubric.asked(pool)):
            yield f"the pool {pool!r} has no rating for the threshold; set acceptance.rules instead"
    for question in judged:
        if (question.scale, bool(question.lower_is_better)) != (scale, False):
            yield (f"question {question.name!r} has its own scale or counts fewer points as better, so one threshold"
                   " cannot judge it; set acceptance.rules instead")  # fmt: skip
    if scale and not scale[0] <= rule.threshold <= scale[-1]:
        yield f"acceptance.threshold {rule.threshold:g} is outside the scale {scale[0]} to {scale[-1]}"
    elif by_blocks and rule.threshold in (scale[:1] + scale[-1:]):
        yield f"acceptance.threshold {rule.threshold:g} {AT_END}"

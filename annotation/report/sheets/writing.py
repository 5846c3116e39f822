"""`plumbline sheet`: the study's records as HEDS 3.0, ARR's checklist D and a datasheet, in `sheet/`.

HEDS's form (nlp-heds.github.io) keeps each element under its id: `data` has a value by quality criterion (an empty name
outside section 4), a chosen option also has its words as `text`; the element that lists criteria has `control`.
Open fields are left out, and the form counts them as blank. Source: Belz and Thomson (2024), arXiv:2412.07940.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.preview import preview_html
from annotation.questions.wordings import packaged
from annotation.report.material import CampaignMaterial, read_material
from annotation.report.methods import rated_here
from annotation.report.sheets.facts import SheetAnswer, answers_of, criterion_answers, warning
from annotation.verdicts.evidence import Evidence
from plumbline.exhibits.table import write_files
from plumbline.exhibits.templates import markdown
from plumbline.store import json_bytes
from plumbline.study import Study
from plumbline.study.campaign import QUESTIONS

HedsAnswers = Mapping[str, Mapping[str, SheetAnswer]]  # by the question's number, then by criterion


@dataclass(frozen=True)
class FormField:
    """A question of the form."""

    number: str
    id: str
    title: str
    options: Sequence[str]  #: values in order; empty if the answer is text
    explain: frozenset[int]  #: options, from 1, that ask for words

    @property
    def by_criterion(self) -> bool:
        """Whether each quality criterion has its own answer."""
        return self.number.startswith("4.")


@functools.cache
def form() -> tuple[Mapping[str, FormField], str]:
    """Return the questions by number, in order, and the id of the element that lists criteria."""
    content, fields = packaged("report/sheets/heds.yaml"), dict[str, FormField]()
    names = [f"{number}. {name}" for number, name in enumerate(content["languages"].values(), 1)]
    languages = [content["no_language"], *names, content["other_language"]]
    for number, entry in content["fields"].items():
        in_languages = entry.get("languages", False)
        options = languages if in_languages else entry.get("one_of") or entry.get("any_of") or ()
        explain = (1, len(languages)) if in_languages else entry.get("explain", ())
        fields[number] = FormField(number, entry["id"], entry["title"], tuple(options), frozenset(explain))
    return fields, content["many"]


def heds_answers(material: CampaignMaterial, answers: Mapping[str, SheetAnswer]) -> HedsAnswers:
    """Return the answers by the question's number, in the form's order, and by criterion (empty outside section 4)."""
    names, criteria = packaged("report/sheets/answers.yaml")["heds"], criterion_answers(material)
    unknown_of: dict[str, list[str]] = packaged("report/sheets/heds.yaml")["unknown"]
    unseen = [] if rated_here(material) else unknown_of["imported" if material.imported else "ratings_of_files"]
    by_number: dict[str, dict[str, SheetAnswer]] = {}
    for number, field in form()[0].items():
        for criterion, by_name in criteria.items() if field.by_criterion else [("", answers)]:
            unknown = number in unseen or number not in names
            answer = SheetAnswer(by="open") if unknown else by_name[names[number]]
            if field.options and not answer.chosen:
                answer = SheetAnswer(answer.text, "open", answer.question)
            by_number.setdefault(number, {})[criterion] = answer
    return by_number


def heds_entries(answers: HedsAnswers) -> list[tuple[str, SheetAnswer]]:
    """Return each question in words, with its answer in words."""
    rows = []
    for number, by_criterion in answers.items():
        field = form()[0][number]
        for criterion, answer in by_criterion.items():
            chosen = [field.options[option - 1].rstrip(".") for option in answer.chosen if field.options]
            text = ". ".join(filter(None, [*chosen, answer.text]))
            of = f" ({criterion})" if criterion else ""
            rows.append((f"{number} {field.title}{of}", SheetAnswer(text, answer.by, answer.question)))
    return rows


def heds_json(answers: HedsAnswers) -> dict[str, Any]:
    """Return the content for the form's `upload json`: a value for each answered element, by its id."""
    fields, many = form()
    criteria = dict.fromkeys(name for by_criterion in answers.values() for name in by_criterion if name)
    content: dict[str, Any] = {
        many: {"data": {}, "control": {name: number == 0 for number, name in enumerate(criteria)}, "text": {}}
    }
    for number, by_criterion in answers.items():
        for criterion, answer in by_criterion.items():
            if answer.by == "open":
                continue
            for element, value, words in _elements(fields[number], answer):
                stored = content.setdefault(element, {"data": {}, "control": {}, "number": number})
                stored["data"][criterion] = value
                if words:
                    stored.setdefault("text", {})[criterion] = words
    return content


def _elements(field: FormField, answer: SheetAnswer) -> Iterator[tuple[str, str | bool, str]]:
    """Yield (element, value, words of a chosen option) of an answer."""
    if not field.options:
        yield field.id, answer.text, ""
        return
    for option in answer.chosen:
        yield f"{field.id}-{option}", True, field.options[option - 1]
    if field.explain & set(answer.chosen):
        yield f"{field.id}-other_text", answer.text, ""


FOLDER, PREVIEW = "sheet", "preview.html"
Questions = Mapping[str, Sequence[tuple[str, SheetAnswer]]]  # with their answers, by section


def write_sheets(study: Study) -> list[str]:
    """Write the files of `sheet/`; return lines on the folder, the share answered in each sheet, and the open keys.

    Raises DataError before there are verdicts, and for verdicts that no longer follow from what is on disk; StudyError
    for a study whose people do models' tasks, which `plumbline human-report` reports.
    """
    study.refuse_unfit("sheet")
    records = Evidence(study)
    material = read_material(records)
    content, lines = sheet_files(material)
    if rated_here(material):
        content[PREVIEW] = preview_html(records).encode()
    write_files(study.folder / FOLDER, content)
    return [f"{study.name}: sheets -> {study.folder / FOLDER}", *lines]


def sheet_files(material: CampaignMaterial) -> tuple[dict[str, bytes], list[str]]:
    """Return the files by name, and lines on the share answered in each sheet."""
    study, simulated, answers = material.study, warning(material), answers_of(material)
    heds = heds_answers(material, answers)
    sheets: dict[str, tuple[str, Questions]] = {
        "heds.md": ("HEDS 3.0", {"": heds_entries(heds)}),
        "arr_checklist.md": ("Responsible NLP checklist, D (human annotators)", _questions("checklist", answers)),
        "datasheet.md": ("Datasheet", _questions("datasheet", answers)),
    }
    content = {
        "heds.json": json_bytes(heds_json(heds)),
        **{
            name: sheet_markdown(f"{title}: study {study.name}", simulated, questions).encode()
            for name, (title, questions) in sheets.items()
        },
    }
    lines = [f"  {name}: {_counted(_all(questions))}" for name, (_, questions) in sheets.items()]
    if keys := _open(answer for _, questions in sheets.values() for answer in _all(questions)):
        lines.append(f"  keys of `ethics` in {study.file} that would answer more questions: {', '.join(keys)}")
    return content, lines


def sheet_markdown(title: str, simulated: str, sections: Questions) -> str:
    """Return a sheet as Markdown: a warning, the share answered, the open keys, then questions with answers."""
    answers = _all(sections)
    facts = {"title": title, "warning": simulated, "counted": _counted(answers), "open": _open(answers)}
    return markdown("annotation/report/sheets/sheet.jinja", facts | {"ethics": QUESTIONS, "sections": sections})


def _questions(sheet: str, answers: Mapping[str, SheetAnswer]) -> Questions:
    return {
        section: [(question, answers[name]) for question, name in questions.items()]
        for section, questions in packaged("report/sheets/answers.yaml")[sheet].items()
    }


def _all(sections: Questions) -> list[SheetAnswer]:
    return [answer for questions in sections.values() for _, answer in questions]


def _counted(answers: Sequence[SheetAnswer]) -> str:
    """Count the answers by their source: `60 of 83 answered (60 from records, 0 by people); 23 open`."""
    number = {by: sum(answer.by == by for answer in answers) for by in ("records", "people", "open")}
    return (
        f"{number['records'] + number['people']} of {len(answers)} answered ({number['records']} from records,"
        f" {number['people']} by people); {number['open']} open"
    )


def _open(answers: Iterable[SheetAnswer]) -> list[str]:
    """Return the keys of `ethics` that could answer open questions, each once."""
    return list(dict.fromkeys(answer.question for answer in answers if answer.by == "open" and answer.question))

"""`plumbline sheet`: the study's records as HEDS, ARR's checklist D and a datasheet, in `sheet/`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from annotation.preview import preview_html
from annotation.questions.wordings import packaged
from annotation.report.material import CampaignMaterial, read_material
from annotation.report.methods import rated_here
from annotation.report.sheets.facts import SheetAnswer, answers_of, warning
from annotation.report.sheets.heds import heds_answers, heds_entries, heds_json
from annotation.verdicts.evidence import Evidence
from plumbline.exhibits.table import write_files
from plumbline.exhibits.templates import markdown
from plumbline.store import json_bytes
from plumbline.study import Study
from plumbline.study.campaign import QUESTIONS

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

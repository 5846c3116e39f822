"""`plumbline sheet`: the study's records as HEDS, ARR's checklist D, a datasheet and Methods, in `sheet/`."""

from __future__ import annotations

from annotation.preview import preview_html
from annotation.report.material import CampaignMaterial, read_material
from annotation.report.methods import methods
from annotation.report.raters import paragraphs
from annotation.sheets.documents import (
    checklist_answers,
    checklist_text,
    counted,
    datasheet_answers,
    datasheet_text,
    heds_text,
)
from annotation.sheets.facts import PREVIEW, facts_of, open_questions, shows_our_page, warning
from annotation.sheets.heds import heds_answers, heds_json
from annotation.sheets.latex import methods_latex
from annotation.verdicts.evidence import Evidence
from plumbline.errors import StudyError
from plumbline.exhibits.table import write_files
from plumbline.store import json_bytes
from plumbline.study import Study

FOLDER = "sheet"


def write_sheets(study: Study) -> list[str]:
    """Write the files of `sheet/`; return lines on the folder, the share answered in each sheet, and the open keys.

    Raises DataError before there are verdicts, and for verdicts that no longer follow from what is on disk; StudyError
    for a study whose people do models' tasks, which `plumbline human-report` reports.
    """
    if study.judging.does_tasks:
        raise StudyError(f"{study.file}: sheets describe ratings; for people's tasks run `plumbline human-report`")
    records = Evidence.open(study)
    material = read_material(records)
    content, lines = sheet_files(material)
    if shows_our_page(material):
        content[PREVIEW] = preview_html(records).encode()
    write_files(study.folder / FOLDER, content)
    return [f"{study.name}: sheets -> {study.folder / FOLDER}", *lines]


def sheet_files(material: CampaignMaterial) -> tuple[dict[str, bytes], list[str]]:
    """Return the files by name, and lines on the share answered in each sheet."""
    study, above, facts = material.study, warning(material), facts_of(material)
    heds, checklist = heds_answers(material, facts), checklist_answers(material, facts)
    datasheet = datasheet_answers(material, facts)
    section, works = methods_latex([*methods(material), *paragraphs(material)], above)
    texts = {
        "heds.md": heds_text(study, above, heds),
        "arr_checklist.md": checklist_text(study, above, checklist),
        "datasheet.md": datasheet_text(study, above, datasheet),
        "methods.tex": section,
        "methods.bib": works,
    }
    answers = {
        "heds.json": [entry.answer for entries in heds.values() for entry in entries],
        "arr_checklist.md": list(checklist.values()),
        "datasheet.md": [answer for rows in datasheet.values() for answer in rows.values()],
    }
    lines = [f"  {name}: {counted(entries)}" for name, entries in answers.items()]
    if keys := open_questions([answer for entries in answers.values() for answer in entries]):
        lines.append(f"  keys of `ethics` in {study.file} that would answer more questions: {', '.join(keys)}")
    content = {name: text.encode() for name, text in texts.items()} | {"heds.json": json_bytes(heds_json(heds))}
    return content, lines

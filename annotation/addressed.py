"""In which languages the raters of a study are addressed, and which of these wordings nobody has checked."""

from __future__ import annotations

from collections.abc import Iterable

from annotation.crowd.page import FOLDER
from annotation.rubric import Rubric
from annotation.wordings import ENGLISH, rubric_file, unchecked, unchecked_line, wording_file
from plumbline.study import Study


def addressed_lines(study: Study, rubric: Rubric, texts: Iterable[tuple[str, str]]) -> list[str]:
    """What is to be said of the languages that raters are addressed in; nothing where all is checked, or English.

    `texts` are languages of originals with those of their transformed texts (codes).
    """
    judged = {both: rubric.language_for(*both) for both in texts}
    file = rubric_file(study)
    pages = [FOLDER] if study.crowd is not None else []
    used = sorted(set(judged.values()) - {ENGLISH})
    files = {code: [wording_file(file, code), *(folder / f"{code}.yaml" for folder in pages)] for code in used}
    line = unchecked_line([code for code in used if any(map(unchecked, files[code]))])
    foreign = sorted({output for (_, output), code in judged.items() if code == ENGLISH} - {ENGLISH})
    return [
        line
        for line in (line, _english(study, [code for code in foreign if wording_file(file, code).exists()]))
        if line
    ]


def _english(study: Study, codes_worded: list[str]) -> str:
    """That raters are addressed in English although there are words in their language."""
    if not codes_worded:
        return ""
    codes = ", ".join(codes_worded)
    return (
        f"Raters of texts in {codes} are addressed in English; `wordings: [{codes}]` in the study, before it is"
        f" published, addresses them in their language, in the words that rubric {study.rubric!r} has there"
    )

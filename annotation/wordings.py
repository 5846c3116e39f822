"""Wordings of a rubric in further languages: `prompts/rubrics/<rubric>/<language>.yaml`, and who has checked them.

They stand beside the rubric, not in it: a study that does not name a language under `wordings` asks what it has always
asked, and the identity of its rubric is what it was (docs/decisions/0009-languages.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plumbline.errors import DataError, StudyError
from plumbline.languages import language_name
from plumbline.prompts import prompt_folders
from plumbline.reading import read_yaml
from plumbline.study import Study
from plumbline.study.human import HUMAN

CHECKED_BY = "checked_by"  #: who of its native speakers has checked a wording; empty for nobody
ENGLISH = "en"
HUMAN_GENERAL = "general.yaml"  # what stands for all tasks that people do, whatever their types


def rubric_file(study: Study, folder: Path | None = None) -> Path:
    """The file of the study's rubric, which may be missing; it is looked for in `folder` alone, if that is given."""
    if study.judging.does_tasks:
        return human_file(HUMAN_GENERAL)
    files = [folder_of_rubrics / f"{study.rubric}.yaml" for folder_of_rubrics in rubric_folders(folder)]
    return next((file for file in files if file.is_file()), files[0])


def human_file(name: str) -> Path:
    """A file of `prompts/human/`: ours, or else the user's."""
    files = [folder / HUMAN / name for folder in prompt_folders()]
    return next((file for file in files if file.is_file()), files[-1])


def rubric_folders(folder: Path | None = None) -> list[Path]:
    """The folders in which rubrics stand."""
    return [folder] if folder else [prompts / "rubrics" for prompts in prompt_folders()]


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
                f"wordings: {path} is not there; known are: {languages_here}; write it, or leave out {code!r}"
            )
        words.pop(CHECKED_BY, None)
        if words:  # else the rubric's own file has the language, and this one says who checked it
            rubric = _added(rubric, words, code, _Place(path))
    return rubric


def wording_file(rubric_file: Path, code: str) -> Path:
    """Where a rubric's wording in a language stands."""
    return rubric_file.with_suffix("") / f"{code}.yaml"


def unchecked(file: Path) -> bool:
    """Whether a file of wordings says that nobody has checked them.

    A language of the rubric without a file is its author's own: nothing is known of it.
    """
    words = _read(file)
    return words is not None and not words[CHECKED_BY]


def unchecked_line(codes: Sequence[str]) -> str:
    """That raters are addressed in languages that nobody has checked; empty if there are none."""
    if not codes:
        return ""
    names = ", ".join(f"{language_name(code)} ({code})" for code in codes)
    return f"Raters are addressed in wordings that no native speaker has checked (docs/questions.md): {names}"


class _Place:
    """Where in a file one is, for what is said of it."""

    def __init__(self, path: Path, names: tuple[str, ...] = ()) -> None:
        self.path, self.names = path, names

    def at(self, name: Any) -> _Place:
        return _Place(self.path, (*self.names, str(name)))

    def error(self, what: str) -> StudyError:
        return StudyError(f"{self.path}: {'.'.join(self.names)} {what}".replace(":  ", ": "))


def _added(node: Any, words: Any, code: str, path: _Place) -> Any:
    """A part of a rubric with what a file of another language says in the same places."""
    if _is_wording(node):
        if not isinstance(words, str) or not words.strip():
            raise path.error("is missing or empty; every wording of the rubric is needed")
        return {**node, code: words}
    if not isinstance(node, dict) and not _named(node):
        return node  # no rubric: who reads it will say so
    if isinstance(node, list):
        named = _added({entry["name"]: entry for entry in node}, words, code, path)
        return list(named.values())
    parts = {name: part for name, part in node.items() if _has_wording(part)}
    if not isinstance(words, dict):
        raise path.error(f"is missing; it has: {', '.join(map(str, parts))}")
    if strange := [name for name in words if name not in parts]:
        raise path.at(strange[0]).error("has no English wording in the rubric; leave it out")
    return {**node, **{name: _added(part, words.get(name), code, path.at(name)) for name, part in parts.items()}}


def _named(node: Any) -> bool:
    return isinstance(node, list) and all(isinstance(entry, dict) and "name" in entry for entry in node)


def _is_wording(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get(ENGLISH), str)


def _has_wording(node: Any) -> bool:
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return _is_wording(node) or any(map(_has_wording, parts))


def _read(path: Path) -> dict[Any, Any] | None:
    """A file of wordings; None where there is none. Raises StudyError for one that is not YAML, or no mapping."""
    try:
        content = read_yaml(path)
    except FileNotFoundError:
        return None
    except DataError as error:
        raise StudyError(str(error)) from None
    if not isinstance(content, dict) or not isinstance(content.get(CHECKED_BY), str):
        raise StudyError(f"{path}: names who has checked it under {CHECKED_BY}: a name, or '' for nobody")
    return content

"""Load prompts: one YAML file each in `prompts/`, with a text, its variables and its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError, model_validator

from plumbline.errors import StudyError, nearest
from plumbline.identity import identity
from plumbline.reading import read_yaml, with_lines
from plumbline.resources import resource, working
from plumbline.study import Study
from plumbline.study.base import StudyPart, complaints
from plumbline.study.human import HUMAN
from plumbline.study.transformations import EIGHT, Transformation

PROMPTS = resource("prompts")
HUMAN_GENERAL = "general.yaml"  # shared by tasks of all types that people do
FILLED = ("text", "target_language")  # variables that a call fills in
# Folders with files named like transformations that are not prompts for them.
_OTHERS = ("human", "transformations")
_NAMES = sorted({str(name) for transformation in EIGHT.values() for name in transformation.calls})
_VARIABLE = re.compile(r"\{(\w+)\}")


class Prompt(StudyPart):
    """A prompt: the user message to a chat model, with `{variables}`."""

    name: str
    source: str = Field(description="source of the wording: paper, appendix, licence")
    language: str = Field(description="language of the instruction itself")
    variables: tuple[str, ...]
    text: str

    @model_validator(mode="after")
    def _variables_match(self) -> Prompt:
        used = set(_VARIABLE.findall(self.text))
        if used != set(self.variables):
            raise ValueError(f"the text uses {sorted(used)}, but `variables` lists {sorted(self.variables)}")
        return self

    def render(self, values: Mapping[str, str]) -> str:
        """Return the message. All variables are filled at once, so a value that looks like a variable stays."""
        if set(values) != set(self.variables):
            raise StudyError(f"prompt {self.name!r} needs {sorted(self.variables)}, got {sorted(values)}")
        return _VARIABLE.sub(lambda match: values[match.group(1)], self.text)


P = TypeVar("P", bound=Prompt)


def prompt_folders() -> tuple[Path, ...]:
    """Return the folders of wordings and rubrics: Plumbline's own, then `prompts/` in the current folder.

    In the checkout's root the two are the same. Plumbline's files come first, so nobody can replace one by its name.
    """
    return tuple(dict.fromkeys((PROMPTS, working("prompts"))))


def load_prompt(name: str, folder: Path = PROMPTS) -> Prompt:
    """Read one prompt. Raises StudyError for a missing file, an unknown key or a variable that does not match."""
    return read_prompt(folder / f"{name}.yaml", Prompt)


def read_prompt(path: Path, kind: type[P]) -> P:
    """Read the prompt of a file of this kind; raises as `load_prompt` does."""
    try:
        prompt = kind.model_validate(read_yaml(path))
    except FileNotFoundError:
        raise StudyError(f"no prompt file {path}") from None
    except ValidationError as error:
        raise StudyError(*with_lines(path, complaints(error))) from None
    if prompt.name != path.stem:
        raise StudyError(f"{path}: its name is {prompt.name!r}; a prompt has the name of its file")
    return prompt


def prompts_of(transformation: Transformation, variant: str = "") -> tuple[Prompt, ...]:
    """Return the prompts of a transformation's calls, in order; none if it asks no generator.

    Wordings in the folder of an own transformation come first, then those in the folder `variant` below `prompts/`,
    then Plumbline's. Raises StudyError if a prompt is missing, lacks a variable that it needs, or has one that nothing
    fills.
    """
    folders, prompts = _folders(transformation, variant), list[Prompt]()
    for number, call in enumerate(transformation.calls, 1):
        if isinstance(call, str):  # from the first folder that has it
            folder = next((candidate for candidate in folders if (candidate / f"{call}.yaml").exists()), None)
            if folder is None and transformation.name not in EIGHT:
                places = " or ".join(map(str, dict.fromkeys(folders)))
                raise StudyError(f"transformation {transformation.name!r}: no prompt {call}.yaml in {places}")
            prompt = load_prompt(call, folder or PROMPTS)
        else:  # from the transformation itself
            name, used = f"{transformation.name}-{number}", tuple(dict.fromkeys(_VARIABLE.findall(call.text)))
            facts = {"source": transformation.source, "language": call.language, "text": call.text}
            prompt = Prompt(name=name, variables=used, **facts)
        location = f"prompt {prompt.name!r} of {transformation.name}"
        if unknown := [name for name in prompt.variables if name not in FILLED]:
            raise StudyError(f"{location}: unknown variable {{{unknown[0]}}}; allowed are {{{'} and {'.join(FILLED)}}}")
        drawn = bool(transformation.languages) and number == transformation.drawn_call
        for name in FILLED if drawn else FILLED[:1]:
            if name not in prompt.variables:
                raise StudyError(f"{location} lacks {{{name}}}; add it where the model should read it")
        prompts.append(prompt)
    return tuple(prompts)


def _folders(transformation: Transformation, variant: str) -> list[Path]:
    """Return the folders searched for a transformation's prompts, in order."""
    folders = [folder / variant for folder in prompt_folders() if variant not in _OTHERS]
    folder = next(
        (candidate for candidate in folders if any((candidate / f"{name}.yaml").is_file() for name in _NAMES)), None
    )
    if folder is None:
        paths = (path for folder in prompt_folders() for name in _NAMES for path in folder.glob(f"*/{name}.yaml"))
        languages = {path.parent.name for path in paths} - set(_OTHERS)
        places = " or ".join(str(folder) for folder in prompt_folders())
        raise StudyError(
            f"no folder {variant!r} with prompts in {places}; known: {', '.join(sorted(languages)) or 'none'}"
        )
    if transformation.name in EIGHT:
        return [folder, PROMPTS]
    return [transformation.base, folder, *prompt_folders()]


def prompt_hash(prompts: tuple[Prompt, ...]) -> str:
    """Return the identity of a transformation's prompts: a hash of their texts in order."""
    return identity("prompts-v1", [prompt.text for prompt in prompts])


def rubric_file(study: Study, folder: Path | None = None) -> Path:
    """Return the path of the study's rubric, which may be missing; `folder` alone is searched if given."""
    if study.judging.does_tasks:
        return human_file(HUMAN_GENERAL)
    imported = [] if folder else [study.file.with_suffix("")]  # where imports write it
    folders = [*rubric_folders(folder), *imported]
    paths = [rubrics / f"{study.rubric}.yaml" for rubrics in folders]
    return next((path for path in paths if path.is_file()), paths[0])


def human_file(name: str) -> Path:
    """A file of `prompts/human/`: ours, or else the user's."""
    paths = [folder / HUMAN / name for folder in prompt_folders()]
    return next((path for path in paths if path.is_file()), paths[-1])


def rubric_folders(folder: Path | None = None) -> list[Path]:
    """Return the folders that hold rubrics."""
    return [folder] if folder else [prompts / "rubrics" for prompts in prompt_folders()]


def refuse_unasked(study: Study, file: Path, content: Any) -> None:
    """Refuse words for raters, of the study's own transformations, about questions that its rubric lacks.

    `content` is what the rubric's `file` holds. Raises StudyError with the line of each.
    """
    rubric, faults = _mapping(content), list[str]()
    if not isinstance(questions := rubric.get("questions"), list):
        return  # its own fault, found where people are asked
    names = [str(_mapping(entry).get("name")) for entry in questions]
    for name, (source, start) in own_words(study, content).items():
        kind = study.transforming[name]
        answers = _mapping(kind.raters.get("expected")).values()
        unknown = [
            f"{start}.{key}: the rubric has no question {str(question)!r}; {nearest(str(question), names)}; change the"
            f" name here, too, or that in {file}"
            for key, by_question in (
                ("questions", kind.raters.get("questions")),
                *(("expected", each) for each in answers),
            )
            for question in _mapping(by_question)
            if question not in names
        ]
        faults += with_lines(source, unknown)
    if faults:
        raise StudyError(*faults)


def own_words(study: Study, content: Any) -> dict[str, tuple[Path, str]]:
    """Return the file and the place in it of the words for raters of the study's own transformations, by their name.

    `content` is what the rubric's file holds: another's words, or the rubric's own, explain the others.
    """
    pools = _mapping(_mapping(content).get("pools"))
    return {
        name: (kind.file, "raters") if kind.file else (study.file, f"transformations.{number}.raters")
        for number, (name, kind) in enumerate(study.transforming.items())
        if kind.pool == name and name not in pools
    }


def _mapping(value: Any) -> dict[Any, Any]:
    """Return a file's value where it is a mapping, else an empty one: its own fault, found where people are asked."""
    return value if isinstance(value, dict) else {}

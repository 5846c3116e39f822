"""Prompts are data: one YAML file each in `prompts/`, with its text, its variables and its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import Field, ValidationError, model_validator

from generation.exceptions import StudyError
from generation.identity import identity
from generation.parts import Part, first_complaint
from generation.study import ROOT
from generation.transformations import Transformation

PROMPTS = ROOT / "prompts"
_VARIABLE = re.compile(r"\{(\w+)\}")


class Prompt(Part):
    """A prompt: the user's message to a chat model, with `{variables}`."""

    name: str
    source: str = Field(description="where the wording comes from: paper, appendix, licence")
    language: str = Field(description="language of the instruction itself")
    variables: tuple[str, ...]
    text: str

    @model_validator(mode="after")
    def _variables_match(self) -> Prompt:
        used = set(_VARIABLE.findall(self.text))
        if used != set(self.variables):
            raise ValueError(f"the text uses {sorted(used)}, `variables` names {sorted(self.variables)}")
        return self

    def render(self, values: Mapping[str, str]) -> str:
        """The message. All variables are put in at once, so a value that looks like a variable stays as it is."""
        if set(values) != set(self.variables):
            raise StudyError(f"prompt {self.name!r} needs {sorted(self.variables)}, got {sorted(values)}")
        return _VARIABLE.sub(lambda match: values[match.group(1)], self.text)


def load_prompt(name: str, folder: Path = PROMPTS) -> Prompt:
    """Read one prompt. Raises StudyError for a missing file, an unknown key or a variable that does not match."""
    path = folder / f"{name}.yaml"
    try:
        prompt = Prompt.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise StudyError(f"no prompt file {path}") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{path}: not valid YAML: {error}") from None
    except ValidationError as error:
        raise StudyError(f"{path}: {first_complaint(error)}") from None
    if prompt.name != name:
        raise StudyError(f"{path}: names itself {prompt.name!r}; a prompt is called like its file")
    return prompt


def prompts_of(transformation: Transformation, variant: str = "") -> tuple[Prompt, ...]:
    """The prompts of a transformation's calls, in order.

    `variant` names a folder below `prompts/` whose wordings go before the others. Raises StudyError if there is none.
    """
    folder = PROMPTS / variant
    if not folder.is_dir() or PROMPTS not in [folder, *folder.parents]:
        known = ", ".join(sorted(path.parent.name for path in PROMPTS.glob("*/paraphrasing.yaml")))
        raise StudyError(f"no folder {variant!r} of prompts in {PROMPTS}; known are: {known or 'none'}")
    return tuple(
        load_prompt(name, folder if (folder / f"{name}.yaml").exists() else PROMPTS) for name in transformation.prompts
    )


def prompt_hash(prompts: tuple[Prompt, ...]) -> str:
    """Identity of a transformation's prompts: their texts in order, and nothing else."""
    return identity("prompts-v1", [prompt.text for prompt in prompts])

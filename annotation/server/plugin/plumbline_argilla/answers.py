"""Answers that Argilla would store and nobody can use: a number outside a slider's ends, and endless texts.

A slider's number is a text in Argilla; its scale is in the rating page's task, in the dataset's metadata.
"""

from __future__ import annotations

import re
from typing import Any

from argilla_server.errors.future import UnprocessableEntityError
from argilla_server.validators.responses import ResponseValidator

TASK = "rate"  # the task's key in a dataset's metadata
NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
LONGEST = 20_000  # characters of a text


def apply() -> None:
    """Let Argilla refuse such answers, whichever way they come. Call it once."""
    validate = ResponseValidator._validate_values

    def checked(response: Any, record: Any) -> None:
        validate(response, record)
        questions = ((record.dataset.metadata_ or {}).get(TASK) or {}).get("questions") or ()
        sliders = {question["name"]: question for question in questions if question.get("kind") == "slider"}
        for name, answer in (response.values or {}).items():
            if isinstance(answer.value, str) and (fault := fault_of(answer.value, sliders.get(name))):
                raise UnprocessableEntityError(f"{name}: {fault}")

    ResponseValidator._validate_values = staticmethod(checked)


def fault_of(text: str, slider: dict[str, Any] | None) -> str:
    """Return why a text is no answer to a question, or to a slider; empty if it is one."""
    if len(text) > LONGEST:
        return f"the text has {len(text):,} characters; at most {LONGEST:,} are stored"
    if slider is None or (not text.strip() and not slider.get("required")):
        return ""
    if NUMBER.fullmatch(text.strip()) and slider["low"] <= float(text) <= slider["high"]:
        return ""
    return f"the answer {text[:60]!r} is not on the scale {slider['low']} to {slider['high']}"

"""Answers that stand in a file: of a model that was asked elsewhere, or made by a rule that its owner states.

JSONL, an object a line: `task`, `item`, `answer` (as the model gave it: a text, or any JSON), and where each candidate
was shown by itself, `candidate`. Of clustering each item has a line with the number of its group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotation.human.asking import apart
from annotation.judges.annotators.asking import Asking
from annotation.judges.recorded import refuse_no_recording
from generation.generators import Attempt, Completion
from plumbline.errors import DataError, TextUnansweredError
from plumbline.json_lines import record_lines
from plumbline.records import Record

Place = tuple[str, str, str]  # task, item, candidate


class RecordedAnswer(Record):
    """One line of the file."""

    task: str
    item: str
    candidate: str = ""
    answer: Any


def load_recorded(path: Path) -> dict[Place, Any]:
    """All answers of a file. Raises DataError with file and line."""
    refuse_no_recording(path)
    found: dict[Place, Any] = {}
    for number, one in record_lines(path, RecordedAnswer):
        place = one.task, one.item, one.candidate
        if place in found:
            raise DataError(f"{path}: line {number}: a second answer on the same item of {one.task}; keep one")
        found[place] = one.answer
    return found


@dataclass(frozen=True)
class RecordedAnswers:
    """Gives what was recorded, at once."""

    recorded: Mapping[Place, Any]
    concurrency: int = 1

    async def answer(self, asking: Asking, attempt: Attempt) -> Completion:
        """What was recorded. Raises TextUnansweredError where nothing was."""
        task = asking.task
        candidate = asking.candidates[0] if apart(task) else ""
        found = {item: self.recorded.get((task.task, item, candidate)) for item in asking.items}
        if lacking := [item for item, one in found.items() if one is None]:
            raise TextUnansweredError(f"nothing recorded on item {lacking[0]} of {task.task}")
        each = list(found.values())
        answer = each if task.asked == "cluster" else each[0]
        return Completion(answer if isinstance(answer, str) else json.dumps({"answer": answer}, ensure_ascii=False))

    async def close(self) -> None:
        """Nothing to let go of."""

"""One submission as a person reads it before deciding: each pair with its texts, answers, time and comment.

Texts and comments are shortened, and control characters in them are shown: a terminal obeys those.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from annotation.crowd.campaign import Campaign
from annotation.crowd.judging import named
from annotation.questions import Value
from annotation.ratings.answers import Answer
from annotation.verdicts.preregistration import asked_rubric
from plumbline.cli import columns
from plumbline.fields import fields_of
from plumbline.records import Pair

WIDTH = 60  # characters of a text that are shown


def sheet_text(campaign: Campaign, submission_id: str) -> str:
    """The answers of a submission, in the order of showing; controls say what was expected.

    Raises StudyError for a submission of another campaign.
    """
    (work,) = named(campaign, [submission_id])
    rubric = asked_rubric(campaign.study)
    kept = campaign.ledger.answers(submission_id)
    given = {row["pair_id"]: Answer(**row) for row in json.loads(kept or "[]")}
    questions = rubric.question_names()
    rows, texts = [], []
    for number, pair in enumerate(campaign.offer(work.batch_id).pairs, 1):
        answer = given.get(pair.pair_id)
        expected = rubric.right_answers(pair)
        rows.append([str(number), pair.control or pair.transformation, *_cells(answer, questions, expected)])
        texts += _texts(number, pair, answer)
    header = ["pair", "what", *questions, "seconds"]
    none = [] if given else ["No answers have been read (crowd collect)." if not work.trouble else work.trouble]
    head = f"{work.pseudonym}, batch {work.batch_id}, submission {submission_id}: {work.submission.state}"
    return "\n".join([head, *none, columns(header, rows), "", *texts])


def _cells(answer: Answer | None, questions: list[str], expected: Mapping[str, Value]) -> list[str]:
    if answer is None:
        return ["–"] * (len(questions) + 1)
    values = [
        f"{'–' if answer.values.get(name) is None else _shown(str(answer.values[name]))}"
        + (f" (expected {expected[name]})" if name in expected else "")
        for name in questions
    ]
    return [*values, "–" if answer.seconds is None or math.isnan(answer.seconds) else f"{answer.seconds:.0f}"]


def _texts(number: int, pair: Pair, answer: Answer | None) -> list[str]:
    first, *others = (_shown(one.text) for one in fields_of(pair))
    lines = [f"{number}  {first}", *(f"   -> {text}" for text in others)]
    return lines + ([f"   comment: {_shown(answer.comment)}"] if answer is not None and answer.comment else [])


def _shown(text: str) -> str:
    """A text in one short line, without anything that a terminal would obey."""
    line = "".join(letter if letter.isprintable() else " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"
                   for letter in text)  # fmt: skip
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"

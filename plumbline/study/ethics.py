"""Answers that only people can give about an evaluation: asked once in the study file, open until answered."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from plumbline.errors import nearest
from plumbline.study.base import Words

#: The questions by key, as sheets and the reference ask them. YES_NO begin with `yes` or `no`, or with `n/a` and why.
QUESTIONS = {
    "committee": "which research ethics committee approved the evaluation, or why none was asked",
    "personal_data": (
        "whether texts or answers contain personal data (GDPR, article 4): no, or yes and how it is handled"
    ),
    "special_category": (
        "whether texts or answers contain data of special categories (GDPR, article 9): no, or yes and how it is"
        " handled"
    ),
    "impact": "which impact assessment was carried out, with its address, or that none was",
    "consent": "how raters consented, and what they were told about the use of their answers",
    "recruitment": "how raters were recruited",
    "payment": "whether raters were paid: no, or yes, how much, and how adequate that is where they live",
    "experts": "whether raters are experts of the domain: no, or yes and of what",
    "acquainted": "whether the authors knew raters before: yes or no",
    "researchers": "whether researchers who run the evaluation are among the raters: yes or no",
    "characteristics": "what is known about raters (places, ages, genders, education, first languages), with numbers",
    "conditions": "where raters work: `own place`, or how conditions are controlled",
}
YES_NO = frozenset({"personal_data", "special_category", "payment", "experts", "acquainted", "researchers"})
_BEGINNINGS = ("yes", "no", "n/a")


def _answers(value: object) -> object:
    """Return the answers. Raises ValueError for an unknown question, and an answer without a required beginning."""
    if not isinstance(value, dict):
        return value
    answers = {}
    for key, answer in value.items():
        if key not in QUESTIONS:
            raise ValueError(f"unknown key {str(key)[:60]!r}; {nearest(str(key), list(QUESTIONS))}")
        answers[key] = {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else answer
        if key in YES_NO and not begins(answers[key]):
            raise ValueError(f"{key}: begin with `yes`, `no` or `n/a`, then add the details")
    return answers


def begins(answer: object) -> str:
    """Return the first word of an answer to one of YES_NO: yes, no or n/a; empty for another beginning.

    >>> begins("No, nobody is named.")
    'no'
    """
    words = str(answer).strip().lower().split(maxsplit=1)
    first = words[0].rstrip(".,;:") if words else ""
    return first if first in _BEGINNINGS else ""


Ethics = Annotated[dict[str, Words], BeforeValidator(_answers)]

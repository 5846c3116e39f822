"""What stands above every table that rests on verdicts by rules that may have been chosen with the ratings at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from annotation.records import Fixed, Verdict

LATE: dict[Fixed, str] = {
    "late": "RULES FIXED AFTER THE FIRST RATING: they may have been chosen for what they accept.",
    "unknown": "RULES PERHAPS FIXED AFTER THE FIRST RATING: when imported ratings were given is not known.",
}


def late_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """A line where the rules of any of the verdicts were not, or may not have been, fixed before the first rating."""
    return [LATE[rules] for rules in sorted({verdict.rules_fixed for verdict in verdicts} - {""})]


def marks_of(verdicts: Iterable[Verdict]) -> dict[str, bool | str]:
    """The columns by which a table says that it rests on simulated ratings, and on rules that were fixed late."""
    every = list(verdicts)
    rules = {verdict.rules_fixed for verdict in every}
    worst = next((mark for mark in LATE if mark in rules), "")
    return {"simulated": any(verdict.simulated for verdict in every), "rules_fixed": worst}


def with_rules_fixed(verdicts: Sequence[Verdict], rules: Fixed) -> list[Verdict]:
    """The verdicts with whether their rules were fixed after the first rating."""
    return [verdict.model_copy(update={"rules_fixed": rules}) for verdict in verdicts]

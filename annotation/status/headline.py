"""The answer on top: what is decided, what is doubtful and what to do next, in a sentence each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from annotation.records import Outcome, Verdict
from annotation.status.status import Status
from annotation.status.text import next_step
from annotation.verdicts.tables import count, display

_SAID: tuple[tuple[Outcome, str], ...] = (
    ("accepted", "Accepted"),
    ("rejected", "rejected"),
    ("undecided", "undecided"),
)


def headline(status: Status, verdicts: Sequence[Verdict], *, reported: bool = False) -> tuple[str, ...]:
    """Three sentences about verdicts that hold.

    `reported` is for the report itself, which need not be written next.
    """
    if reported:
        stages = {name: replace(one, state="done") if name == "report" else one for name, one in status.stages.items()}
        status = replace(status, stages=stages)
    return in_short(decided(verdicts), status.doubts, next_step(status, status.study.arguments))


def in_short(answer: str, doubts: Sequence[str], step: str) -> tuple[str, ...]:
    """Three sentences: the answer, the first of what is doubtful and how much more there is, what to do next."""
    more = f" And {count(len(doubts) - 1, 'thing')} more." if doubts[1:] else ""
    return (
        answer,
        f"Doubtful: {doubts[0]}.{more}" if doubts else "Doubtful: nothing that was looked at.",
        f"Next: {step}",  # no full stop: it may end in a command, to be pasted
    )


def decided(verdicts: Sequence[Verdict]) -> str:
    """Which transformations were accepted, rejected and left undecided; with languages and tasks where these differ."""
    if not verdicts:
        return "Nothing is decided: there are no verdicts that hold."
    of: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in verdicts:
        of[one.transformation][one.decision].append(f"{one.language} {one.task_type}".strip())
    parts = []
    for outcome, word in _SAID:
        names = []
        for name, found in of.items():
            if outcome in found:
                where = "" if len(found) == 1 else f" ({', '.join(found[outcome])})"
                names.append(f"{display(name, pooled=False)}{where}")
        if names or outcome == "accepted":
            parts.append(f"{word}: {', '.join(names) or 'nothing'}")
    return f"{'; '.join(parts)}."

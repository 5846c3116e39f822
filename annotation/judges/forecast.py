"""What a run of judges would ask: judgements, tokens and hours, without asking anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from annotation.judges.kept import Kept
from generation.forecast import CHARACTERS_A_TOKEN, duration
from plumbline import cli
from plumbline.study.judges import RecordedJudge


@dataclass(frozen=True)
class Left:
    """What one model has answered, and what is left: `out` is about how many tokens its answers have."""

    name: str
    there: int
    left: int
    characters: int
    out: int
    recorded: bool


def forecast(kept: Sequence[Kept], rate: float | None) -> str:
    """A row for each judge: judgements there and left, tokens in and out; with `rate` (judgements a second) the time.

    A token is taken for 4 characters, of which those that many prompts begin with are computed once. An answer is a
    token where probabilities are read, and three where a number is written.
    """
    rows = []
    for one in kept:
        todo, spec = one.todo(), one.asked.spec
        out = len(todo) * (1 if one.asked.reading == "expected" else 3)
        characters = sum(len(asking.message) for _, asking in todo)
        recorded = isinstance(spec, RecordedJudge)
        rows.append(Left(spec.name, one.wanted - len(todo), len(todo), characters, out, recorded))
    return table_of(rows, rate, "judge", "judgements")


def table_of(rows: Sequence[Left], rate: float | None, who: str, what: str) -> str:
    """The rows of a forecast, with the time of those that are asked."""
    shown = []
    for one in rows:
        tokens = (0, 0) if one.recorded else (round(one.characters / CHARACTERS_A_TOKEN), one.out)
        shown.append([one.name, f"{one.there:,}", f"{one.left:,}", *(f"{number:,}" for number in tokens)])
    table = cli.columns([who, "there", "left", "tokens in, about", "tokens out, about"], shown)
    return f"{table}\n\n{_time(sum(one.left for one in rows if not one.recorded), rate, what)}"


def _time(asked: int, rate: float | None, what: str) -> str:
    if not asked:
        return "no model is left to ask"
    if rate is None:
        return f"--rate N ({what} a second) tells how long it takes"
    return f"about {duration(round(asked / rate))} at {rate:g} {what} a second"

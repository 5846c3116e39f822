"""What a run of judges would ask: judgements, tokens and hours, without asking anybody."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.judges.kept import Kept
from generation.forecast import CHARACTERS_A_TOKEN, duration
from plumbline import cli
from plumbline.study.judges import RecordedJudge


def forecast(kept: Sequence[Kept], rate: float | None) -> str:
    """A row for each judge: judgements there and left, tokens in and out; with `rate` (judgements a second) the time.

    A token is taken for 4 characters, of which those that many prompts begin with are computed once. An answer is a
    token where probabilities are read, and three where a number is written.
    """
    rows, asked = [], 0
    for one in kept:
        todo = one.todo()
        characters = sum(len(asking.message) for _, asking in todo)
        out = len(todo) * (1 if one.asked.reading == "expected" else 3)
        recorded = isinstance(one.asked.spec, RecordedJudge)
        tokens = ("0", "0") if recorded else (f"{round(characters / CHARACTERS_A_TOKEN):,}", f"{out:,}")
        asked += 0 if recorded else len(todo)
        rows.append([one.asked.spec.name, f"{one.wanted - len(todo):,}", f"{len(todo):,}", *tokens])
    table = cli.columns(["judge", "there", "left", "tokens in, about", "tokens out, about"], rows)
    return f"{table}\n\n{_time(asked, rate)}"


def _time(asked: int, rate: float | None) -> str:
    if not asked:
        return "no model is left to ask"
    if rate is None:
        return "--rate N (judgements a second) tells how long it takes"
    return f"about {duration(round(asked / rate))} at {rate:g} judgements a second"

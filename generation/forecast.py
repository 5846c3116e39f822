"""What a run would ask for: `python -m generation.run --dry-run`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from generation.jobs import Plan
from generation.unit import Unit
from generation.work import planned
from plumbline import cli
from plumbline.study import Study
from plumbline.transformations import TRANSFORMATIONS

# Characters of an answer for each character of the text, from the words that Gemma-3 wrote (HTEB, Table 23).
_GROWTH = {
    "paraphrasing": 0.93,
    "backtranslation": 0.94,
    "style_change": 1.07,
    "expansion": 4.32,
    "summarisation": 0.37,
    "summarised_expansion": 1.08,
    "translation": 0.96,
    "cross_translation": 0.95,
}
_CHARACTERS_A_TOKEN = 4  # of English text and today's tokenizers; other scripts take more tokens


def forecast(study: Study, *, again: bool = False, rate: float | None = None) -> str:
    """A table of what is left to do, a row for each transformation: texts, requests, about how many tokens.

    `rate` is requests a second; with it the last line tells about how long that takes. Token counts are estimates
    from the texts' lengths (4 characters a token) and the lengths of Gemma-3's answers (HTEB, Table 23).
    """
    plan = Plan(study)
    # Of a study that is being generated nothing may be written.
    with (
        tempfile.TemporaryDirectory(prefix="plumbline-") as folder,
        planned(plan, again=again, texts=Path(folder) / "texts.parquet") as units,
    ):
        rows = [_row(plan, name, [unit for unit in units if unit.transformation == name]) for name in plan.prompts]
    total = [sum(cells) for cells in zip(*rows, strict=True)]
    named = zip([*plan.prompts, "total"], [*rows, total], strict=True)
    header = ["transformation", "there", "texts left", "requests left", "tokens in, about", "tokens out, about"]
    table = cli.columns(header, [[name, *(f"{cell:,}" for cell in row)] for name, row in named])
    return f"{table}\n\n{_time(total[2], rate)}"


def _row(plan: Plan, name: str, units: Sequence[Unit]) -> tuple[int, int, int, int, int]:
    """There, texts, requests, tokens in and out of one transformation."""
    texts = sum(unit.todo for unit in units)
    characters = sum(unit.characters() for unit in units)
    sent = received = 0.0
    for number, prompt in enumerate(plan.prompts[name]):
        first_of_two = number == 0 and len(plan.prompts[name]) == 2
        before = 1.0 if number == 0 else _GROWTH[_first(name)]
        sent += texts * len(prompt.text) + characters * before
        received += characters * _GROWTH[_first(name) if first_of_two else name]
    there = sum(unit.wanted for unit in units) - texts
    requests = texts * len(plan.prompts[name])
    return there, texts, requests, round(sent / _CHARACTERS_A_TOKEN), round(received / _CHARACTERS_A_TOKEN)


def _first(name: str) -> str:
    """The transformation that is the first of two calls."""
    return TRANSFORMATIONS[name].prompts[0]


def _time(requests: int, rate: float | None) -> str:
    if not requests:
        return "nothing is left to do"
    if rate is None:
        return "retries come on top; --rate N (requests a second) tells how long it takes"
    return f"about {_duration(round(requests / rate))} at {rate:g} requests a second; retries come on top"


def _duration(seconds: int) -> str:
    """Seconds in the two largest units: `3 h 12 min`."""
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    named = [f"{part:,} {unit}" for part, unit in zip(parts, ("h", "min", "s"), strict=True) if part]
    return " ".join(named[:2]) or "1 s"

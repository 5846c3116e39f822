"""Estimate the work that a run of `plumbline generate` would do (`--dry-run`)."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from generation.datasets.loading import refuse_missing_files
from generation.jobs import Plan
from generation.unit import Unit, planned
from plumbline import cli
from plumbline.study import Study
from plumbline.study.transformations import EIGHT

CHARACTERS_A_TOKEN = 4  # in English with today's tokenizers; other scripts take more tokens


def forecast(study: Study, *, again: bool = False) -> str:
    """Return a table of the work left, a row for each transformation: texts, requests, tokens (estimated).

    Token counts are estimated from the texts' lengths (4 characters a token) and each transformation's `growth`, for
    HTEB's from the lengths of Gemma-3's answers (HTEB, Table 23). Functions and files of outputs take neither requests
    nor tokens.
    """
    refuse_missing_files(study)
    plan = Plan(study)
    # The study may be generating now, so write nothing into it.
    with (
        tempfile.TemporaryDirectory(prefix="plumbline-") as folder,
        planned(plan, again=again, texts=Path(folder) / "texts.parquet") as units,
    ):
        of = {name: [unit for unit in units if unit.transformation == name] for name in plan.prompts}
        characters = {name: sum(unit.characters() for unit in some) for name, some in of.items()}
        rows = [_row(plan, name, of[name], characters[name]) for name in plan.prompts]
    total = [sum(cells) for cells in zip(*rows, strict=True)]
    named = zip([*plan.prompts, "total"], [*rows, total], strict=True)
    header = ["transformation", "stored", "texts left", "requests left", "input tokens, about", "output tokens, about"]
    table = cli.columns(header, [[name, *(f"{cell:,}" for cell in row)] for name, row in named])
    if not total[1]:
        note = "nothing is left to do"
    elif not total[2]:
        note = "no requests: these transformations are functions or files of outputs"
    else:
        note = "retries are not included"
    return f"{table}\n\n{note}"


def _row(plan: Plan, name: str, units: Sequence[Unit], characters: int) -> tuple[int, int, int, int, int]:
    """Return the cells of one transformation: outputs there, texts, requests, tokens in, tokens out.

    An answer that another call follows grows as HTEB's transformation of its name does.
    """
    texts = sum(unit.todo for unit in units)
    sent = received = 0.0
    factor = 1.0
    for number, prompt in enumerate(plan.prompts[name], 1):
        sent += texts * len(prompt.text) + characters * factor
        last = number == len(plan.prompts[name])
        kind = plan.kinds[name] if last else EIGHT.get(prompt.name)
        factor = kind.growth if kind else 1.0
        received += characters * factor
    finished = sum(unit.wanted for unit in units) - texts
    requests = texts * len(plan.prompts[name])
    return finished, texts, requests, round(sent / CHARACTERS_A_TOKEN), round(received / CHARACTERS_A_TOKEN)


def duration(seconds: int) -> str:
    """Return seconds in their two largest units: `3 h 12 min`."""
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    named = [f"{part:,} {unit}" for part, unit in zip(parts, ("h", "min", "s"), strict=True) if part]
    return " ".join(named[:2]) or "1 s"

"""Estimate the work that a run of `plumbline generate` would do (`--dry-run`)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from generation.jobs import Plan
from generation.unit import Unit, planned
from plumbline import cli
from plumbline.identity import identity
from plumbline.rates import Rate, Stopwatch, in_words, read_rates
from plumbline.study import Study
from plumbline.study.engines import EngineSpec
from plumbline.study.transformations import EIGHT


def gpus_of(spec: EngineSpec) -> tuple[int, str]:
    """Return the number and kind of GPUs that a generator loaded here holds; (0, "") without an engine on GPUs."""
    if spec.kind != "vllm":
        return 0, ""
    from vllm.platforms import current_platform  # noqa: PLC0415 (lives on the GPU host)

    if current_platform.is_cpu():
        return 0, ""
    return spec.vllm.gpus, str(current_platform.get_device_name())


def measured(plan: Plan, watch: Stopwatch) -> list[Rate | None]:
    """Return a run's measured rates of the transformations that its generator made."""
    return [watch.rate("generation", name, plan.study.generator.model, _identity(plan, name)) for name in _asked(plan)]


def time_left(plan: Plan, characters: Mapping[str, int]) -> str:
    """Return the hours for the given characters of each transformation, in words; empty if none are left.

    GPU hours if engines of earlier runs held GPUs. Transformations that no run has measured are named without hours.
    """
    work = {name: (_identity(plan, name), characters[name]) for name in _asked(plan) if characters.get(name)}
    return in_words([rate for rate in read_rates(plan.study.folder) if rate.work == "generation"], work) if work else ""


def _asked(plan: Plan) -> list[str]:
    """Return the transformations that cost a model's time: no recordings, functions or files of outputs."""
    if plan.study.generator.kind == "recorded":
        return []
    return [name for name, kind in plan.kinds.items() if kind.made_by == "generator"]


def _identity(plan: Plan, name: str) -> str:
    return identity("rate-v1", plan.makers[name].hash, plan.prompt_hashes[name])


CHARACTERS_A_TOKEN = 4  # in English with today's tokenizers; other scripts take more tokens


def forecast(study: Study, *, again: bool = False, rate: float | None = None) -> str:
    """Return a table of the work left, a row for each transformation: texts, requests, tokens (estimated).

    With a `rate` in requests a second the last line estimates the time. Token counts are estimated from the texts'
    lengths (4 characters a token) and each transformation's `growth`, for HTEB's from the lengths of Gemma-3's answers
    (HTEB, Table 23). Hours follow from the rates of earlier runs (`plumbline.rates`). Functions and files of outputs
    take neither requests nor tokens.
    """
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
    measured = time_left(plan, characters)
    return "\n".join(filter(None, [f"{table}\n", measured, _time(total[1], total[2], rate)]))


def _row(plan: Plan, name: str, units: Sequence[Unit], characters: int) -> tuple[int, int, int, int, int]:
    """Return the cells of one transformation: outputs there, texts, requests, tokens in, tokens out."""
    texts = sum(unit.todo for unit in units)
    sent = received = 0.0
    before = 1.0
    for number, prompt in enumerate(plan.prompts[name], 1):
        sent += texts * len(prompt.text) + characters * before
        last = number == len(plan.prompts[name])
        before = plan.kinds[name].growth if last else _growth(prompt.name)
        received += characters * before
    finished = sum(unit.wanted for unit in units) - texts
    requests = texts * len(plan.prompts[name])
    return finished, texts, requests, round(sent / CHARACTERS_A_TOKEN), round(received / CHARACTERS_A_TOKEN)


def _growth(prompt: str) -> float:
    """Return how much longer an answer is that another call follows: as for HTEB's transformation of its name."""
    return EIGHT[prompt].growth if prompt in EIGHT else 1.0


def _time(texts: int, requests: int, rate: float | None) -> str:
    if not texts:
        return "nothing is left to do"
    if not requests:
        return "no requests: these transformations are functions or files of outputs"
    if rate is None:
        return "retries are not included; add --rate N (requests a second) to estimate the time"
    return f"about {duration(round(requests / rate))} at {rate:g} requests a second; retries are not included"


def duration(seconds: int) -> str:
    """Return seconds in their two largest units: `3 h 12 min`."""
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    named = [f"{part:,} {unit}" for part, unit in zip(parts, ("h", "min", "s"), strict=True) if part]
    return " ".join(named[:2]) or "1 s"

"""How fast a study's generator is: what runs measure and keep, and what that says of the work that is left."""

from __future__ import annotations

from collections.abc import Mapping

from generation.jobs import Plan
from plumbline.identity import identity
from plumbline.rates import Rate, Stopwatch, in_words, read_rates
from plumbline.study.generator import GeneratorSpec, VllmGenerator


def gpus_of(spec: GeneratorSpec) -> tuple[int, str]:
    """How many GPUs a generator that is loaded here holds, and of what kind; none where it has no engine on GPUs."""
    if not isinstance(spec, VllmGenerator):
        return 0, ""
    from vllm.platforms import current_platform  # noqa: PLC0415 (lives on the GPU host)

    if current_platform.is_cpu():
        return 0, ""
    return spec.tensor_parallel * spec.data_parallel, str(current_platform.get_device_name())


def measured(plan: Plan, watch: Stopwatch) -> list[Rate | None]:
    """What a run has measured of the transformations that its generator made."""
    return [watch.rate("generation", name, plan.study.generator.model, _identity(plan, name)) for name in _asked(plan)]


def time_left(plan: Plan, characters: Mapping[str, int]) -> str:
    """Hours for texts of so many characters that are left of each transformation, in words; empty where none are.

    GPU hours where engines of earlier runs held GPUs. What no run has measured is named, and nothing is assumed for it.
    """
    left = {name: (_identity(plan, name), characters[name]) for name in _asked(plan) if characters.get(name)}
    return in_words([rate for rate in read_rates(plan.study) if rate.work == "generation"], left) if left else ""


def _asked(plan: Plan) -> list[str]:
    """What costs time of a model: recordings, functions and files of outputs do not."""
    if plan.study.generator.kind == "recorded":
        return []
    return [name for name, kind in plan.kinds.items() if kind.made_by == "generator"]


def _identity(plan: Plan, name: str) -> str:
    return identity("rate-v1", plan.makers[name].hash, plan.prompt_hashes[name])

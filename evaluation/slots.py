"""Where on a Ray cluster models are run: a GPU each, or a part of the CPUs; and one a node for what computes little."""

from __future__ import annotations

from typing import Any

from generation.ray_session import Slot, slots
from plumbline.errors import ServiceError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

LIGHT = ("openai", "lexical", "word_vectors")  # kinds of models that need neither a GPU nor many CPUs


def serves(slot: Slot, spec: ModelSpec) -> bool:
    """Whether a slot is for such a model: light ones have slots without a CPU."""
    return (slot.cpus == 0) == (spec.kind in LIGHT)


def size_of_slots(ray: Any, study: Study) -> tuple[int, int]:
    """CPUs and GPUs of a slot: one each; where no node has a GPU, as many CPUs as the smallest node has.

    A run settles that when it begins: with other nodes it would be another size, and slots that are in use no slots.
    Raises ServiceError where no node has a CPU.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise ServiceError("no node of the Ray cluster has a CPU to give; see `ray status`")
    gpus = any(has.get("GPU", 0) >= 1 for has in nodes) and study.evaluation.device != "cpu"
    return (1, 1) if gpus else (min(int(has["CPU"]) for has in nodes), 0)


def model_slots(ray: Any, size: tuple[int, int]) -> list[Slot]:
    """The cluster's slots of this size; and one a node for light models, which take no CPU.

    These wait for a server, or compute next to nothing.
    """
    return [*slots(ray, *size), *(slot._replace(cpus=0) for slot in slots(ray, 1, one_a_node=True))]


def command_cpus(ray: Any) -> int:
    """CPUs that the command's own node gives to the cluster."""
    own = ray.get_runtime_context().get_node_id()
    return sum(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["NodeID"] == own)

"""Where on a Ray cluster models are run: a GPU each, or a part of the CPUs; and one a node for what computes little."""

from __future__ import annotations

from typing import Any, NamedTuple

from plumbline.errors import ServiceError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

LIGHT = ("openai", "lexical", "word_vectors")  # kinds of models that need neither a GPU nor many CPUs


class Seat(NamedTuple):
    """A place for a process with a model; `number` tells it from others on its node, `light` says for which kinds."""

    node: str
    address: str
    number: int
    light: bool
    cpus: int
    gpus: int

    def serves(self, spec: ModelSpec) -> bool:
        """Whether a model is for it."""
        return self.light == (spec.kind in LIGHT)


def seats_of(ray: Any, study: Study) -> list[Seat]:
    """The cluster's seats: one a GPU, with a CPU; where there are none, one for as many CPUs as the smallest node has.

    A light model takes no CPU, as it waits for a server or computes next to nothing. Raises ServiceError where no node
    has a CPU.
    """
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise ServiceError("no node of the Ray cluster has a CPU to give; see `ray status`")
    least = min(int(node["Resources"]["CPU"]) for node in nodes)
    gpus = any(node["Resources"].get("GPU", 0) >= 1 for node in nodes) and study.evaluation.device != "cpu"
    seats = []
    for node in nodes:
        has, place = node["Resources"], (node["NodeID"], node["NodeManagerAddress"])
        number = min(int(has.get("GPU", 0)), int(has["CPU"])) if gpus else int(has["CPU"]) // least
        share = (1, 1) if gpus else (least, 0)
        seats += [Seat(*place, one, False, *share) for one in range(number)]
        seats.append(Seat(*place, 0, True, 0, 0))
    return seats


def command_cpus(ray: Any) -> int:
    """CPUs that the command's own node gives to the cluster."""
    own = ray.get_runtime_context().get_node_id()
    return sum(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["NodeID"] == own)


def on_node(node: str) -> dict[str, Any]:
    """Options that put an actor on a node, and nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 (extra `ray`)

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node, soft=False)}

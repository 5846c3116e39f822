"""`python -m evaluation.run --ray`: the models of a study, evaluated by the nodes of a running Ray cluster.

Each model that has something left is one task of Ray's: all its units go to one process, which loads it once and
encodes each text once; so as many models as there are places are worked on at a time. A node plans the units itself,
from data sets and records that it sees under the same paths, and refuses any that is not what the command planned.
Scores come back one by one and the command writes them, as it does with those that it makes itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.records import Verdict
from annotation.sampling.sample import known_pairs
from evaluation.measures.beside import Unmeasured, measures
from evaluation.planner import plan_units
from evaluation.units import Model, Place
from evaluation.work import Ended, Loader, Made, Todo, quiet, work
from generation.ray_session import join, without
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.records import Pair
from plumbline.study import Study

TRIES = 2  # of a model whose process dies


@dataclass(frozen=True)
class _Order:
    """What a node is asked to do: `units` has the identity that each score must have."""

    model: Model
    units: Mapping[Place, str]
    pairs: Sequence[Pair]
    beside: Mapping[str, Sequence[Place]]
    verdicts: Sequence[Verdict]
    include_rejected: bool


def evaluate_on(
    address: str,
    study: Study,
    todo: Sequence[Todo],
    load: Loader,
    *,
    verdicts: Sequence[Verdict],
    include_rejected: bool,
) -> Generator[tuple[Todo, Made]]:
    """What the Ray cluster at an address (`auto`: this machine's) makes, as it comes; each model's last is its end.

    Never starts a cluster. A model whose process dies is given to another once; a model that cannot be evaluated ends
    with the reason, and the others go on. Raises StudyError without the package ray, ServiceError where there is no
    cluster or no room on it.
    """
    ray = join(address)
    try:
        there = ray.remote(num_returns="streaming", max_retries=TRIES - 1)(_there)
        running = {}
        for one in todo:
            units = {unit.place: unit.unit_id(study, one.model) for unit in one.units}
            order = _Order(
                one.model,
                units,
                one.pairs,
                {left.measure.file: [unit.place for unit in left.units] for left in one.beside},
                verdicts,
                include_rejected,
            )
            running[there.options(**_share(ray, study, one.model)).remote(study, order, load)] = one
        while running:
            with without(contextlib.redirect_stdout):  # Ray's pages on what has died
                (ready, *_), _ = ray.wait(list(running), num_returns=1)
                made = _received(ray, ready)
            yield running[ready], made
            if isinstance(made, Ended):
                del running[ready]
    finally:
        ray.shutdown()  # ends what still runs


def _there(study: Study, order: _Order, load: Loader) -> Iterator[Made]:
    """What runs on a node."""
    import ray  # noqa: PLC0415 (extra `ray`)

    node = f"node {ray.util.get_node_ip_address()}"
    with quiet(study, [order.model.spec]):
        try:
            todo = _planned(study, order)
        except PlumblineError as error:
            yield Ended(failure=f"{node}: {error}")
            return
        for made in work(study, todo, load):
            failed = isinstance(made, Ended) and made.failure
            yield replace(made, failure=f"{node}: {made.failure}") if isinstance(made, Ended) and failed else made


def _planned(study: Study, order: _Order) -> Todo:
    """The units of an order as this node sees them. Raises StudyError where it sees others than the command."""
    model = Model.of(study, order.model.spec)
    if model.model_id != order.model.model_id:
        raise StudyError(f"the files of model {model.name!r} are not those of the command's machine; copy them again")
    sample = known_pairs(study)
    planned = plan_units(study, order.verdicts, sample, include_rejected=order.include_rejected)
    units = {unit.place: unit for unit in planned}
    for place, unit_id in order.units.items():
        unit = units.get(place)
        if unit is None or unit.unit_id(study, model) != unit_id:
            what = " ".join(map(str, place))
            raise StudyError(
                f"{what} is not what it is on the command's machine; data sets, prompts, versions and the records in"
                f" {study.folder} must be the same on every node (docs/cluster.md)"
            )
    unmeasured = [
        Unmeasured(one, [units[place] for place in order.beside[one.file]])
        for one in measures(study, sample)
        if one.file in order.beside
    ]
    return Todo(model, [units[place] for place in order.units], order.pairs, unmeasured)


def _share(ray: Any, study: Study, model: Model) -> dict[str, int]:
    """What a model takes of a node: a GPU and a CPU, or, where there are none, all CPUs of the smallest node.

    One that a server runs takes a CPU.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cpus = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    if not cpus:
        raise ServiceError("no node of the Ray cluster has a CPU to give; see `ray status`")
    if model.spec.kind == "openai":
        return {"num_cpus": 1, "num_gpus": 0}
    gpus = any(node.get("GPU", 0) >= 1 for node in nodes) and study.evaluation.device != "cpu"
    return {"num_cpus": 1, "num_gpus": 1} if gpus else {"num_cpus": min(cpus), "num_gpus": 0}


def _received(ray: Any, stream: Any) -> Made:
    """The next that a node made; its end, with the reason, where there is none any more. A bug stays what it is."""
    try:
        made: Made = ray.get(next(stream))
    except ray.exceptions.RayTaskError as error:
        if not isinstance(error.cause, (ImportError, OSError)):
            raise
        return Ended(failure=f"on a node: {error.cause}; docs/cluster.md says what a node needs")
    except ray.exceptions.RayError as error:
        what = str(error).strip().splitlines()[0]
        line = f"its process died {TRIES} times (killed, or out of memory?): {what}"
        return Ended(failure=f"{line}; Ray's logs on the node say why")
    return made

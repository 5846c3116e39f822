"""Use a running Ray cluster: its slots, and the scheduler behind `--ray` of generation and evaluation."""

from __future__ import annotations

import abc
import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from plumbline.errors import ServiceError, StudyError
from plumbline.resources import installing

REACH_SECONDS = 5.0
LOOK_SECONDS = 5.0  # between updates of the slots: nodes come and go
CALL_SECONDS = 2e-6  # additional wait for each pending call


def join(address: str) -> Any:
    """Connect to a running cluster and return the package ray."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences advice on standard error
        "RAY_NUM_REDIS_GET_RETRIES": "3",  # each attempt takes 40 s, and Ctrl-C does not end it
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415 (extra `ray`)
        from ray._private.services import canonicalize_bootstrap_address  # noqa: PLC0415 (imported first, as `ray.init` does)
    except ImportError:
        raise StudyError(f"--ray needs the package ray, here and on the nodes: {installing('ray')}") from None
    try:
        cluster = canonicalize_bootstrap_address(address)
        if cluster is None:
            raise ConnectionError("no cluster runs at this address")  # `local`: ray would start one
        host, _, port = cluster.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
        ray.init(address=cluster, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # ConnectionError, ValueError, RuntimeError: by what is wrong
        line = f"--ray {address}: {error}; start a cluster with `ray start --head`"
        raise ServiceError(f"{line}, or name a running one that this machine is part of: --ray 10.0.0.1:6379") from None
    return ray


@contextlib.contextmanager
def without(redirect: Callable[[TextIO], contextlib.AbstractContextManager[TextIO]]) -> Iterator[None]:
    """Discard what is written to a stream."""
    with Path(os.devnull).open("w") as nowhere, redirect(nowhere):
        yield


class Slot(NamedTuple):
    """A place on a node for a process with this many CPUs and GPUs; `number` tells slots of a node apart."""

    node: str
    address: str
    number: int
    cpus: int
    gpus: int

    @property
    def options(self) -> dict[str, Any]:
        """The options of an actor that runs in the slot."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, **on_node(self.node)}


def slots(ray: Any, cpus: int, gpus: int = 0, *, one_a_node: bool = False) -> list[Slot]:
    """Return all slots of this many CPUs and GPUs on the nodes that are alive."""
    free = []
    for node in ray.nodes():
        has = node["Resources"] if node["Alive"] else {}
        room = int(has.get("CPU", 0)) // cpus
        room = min(room, int(has.get("GPU", 0)) // gpus) if gpus else room
        for number in range(min(room, 1) if one_a_node else room):
            free.append(Slot(node["NodeID"], node["NodeManagerAddress"], number, cpus, gpus))
    return free


def on_node(node: str) -> dict[str, Any]:
    """Return options that pin an actor to a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 (extra `ray`)

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node, soft=False)}


class Scheduler(abc.ABC):
    """Start actors in a cluster's slots, hand out work and collect results, one step at a time.

    Each call names its follow-up (`_after`).
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._calls: dict[Any, Callable[[Any], None]] = {}
        self._look()

    @abc.abstractmethod
    def _all_slots(self) -> list[Slot]:
        """Return the slots that exist now."""

    @abc.abstractmethod
    def _hand_out(self) -> None:
        """Start actors where there is work for them, and keep all of them busy."""

    def _look(self) -> None:
        """Update the list of slots."""
        self._slots, self._looked = self._all_slots(), time.monotonic()

    def _turn(self, seconds: float = LOOK_SECONDS) -> None:
        """Keep all actors busy, wait this long at most for a result, and handle all that have come."""
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        self._hand_out()
        for call in self._ready(seconds):
            self._calls.pop(call)(call)

    def _ready(self, seconds: float) -> list[Any]:
        """Wait this long at most for a call to end; return all calls that have ended by then."""
        if not self._calls:
            return []
        ready, others = self._ray.wait(list(self._calls), timeout=seconds)
        if ready and others:
            # Waiting costs time for each pending call. So wait about as long as that costs, and take all results that
            # come meanwhile.
            more, _ = self._ray.wait(others, num_returns=len(others), timeout=len(others) * CALL_SECONDS)
            ready += more
        return list(ready)

    def _after(self, call: Any, follow: Callable[[Any], None]) -> None:
        """Call `follow` when a call has ended."""
        self._calls[call] = follow

    def _answer(self, call: Any, failed: Callable[[Any], None], died: Callable[[Exception], None]) -> Any:
        """Return an actor's answer; None if it raised an error (reported to `failed`) or died (reported to `died`)."""
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            failed(error)
        except self._ray.exceptions.RayError as error:
            died(error)
        return None

    def _end(self, free: Iterable[Any], actors: Iterable[Any], seconds: float) -> None:
        """Let idle actors close within this time, then end all of them."""
        if closing := [actor.close.remote() for actor in free]:
            self._ray.wait(closing, num_returns=len(closing), timeout=seconds)
        for actor in actors:
            self._ray.kill(actor)

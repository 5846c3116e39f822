"""`python -m generation.run --ray`: the units of a study, worked on by the nodes of a running Ray cluster.

Each worker is a process on a node with a generator of its own (an engine on GPUs of the node, or an endpoint), made
once; it takes one unit after the other until none is left. Units write the same files as without Ray, so the study's
records must be in a folder that all nodes share, or at an fsspec address. What must be where is in docs/cluster.md.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from tqdm import tqdm

from generation.generators import Generator, make_generator
from generation.jobs import Plan
from generation.ray_session import join, without
from generation.unit import Unit
from generation.work import generate_units, planned
from plumbline.errors import PlumblineError, ServiceError, StudyError
from plumbline.store import is_remote
from plumbline.study import Study, file_hash
from plumbline.study.generator import VllmGenerator

POLL_SECONDS = 1.0
START_SECONDS = 30.0  # so long the first units wait for all workers, where one of them may hold a part of a unit
CLOSE_SECONDS = 20.0
TRIES = 2  # of a unit whose worker dies or fails

Place = tuple[str, int]  # transformation and seed


def generate_on(
    address: str, plan: Plan, todo: Sequence[Unit], *, again: bool, allow_code: bool = False
) -> Counter[str]:
    """Work on units on the Ray cluster at an address (`auto`: this machine's); counts as `generate` gives them.

    Never starts a cluster. A unit whose worker dies or fails is given to another once; the others go on. Raises
    StudyError without the package ray, ServiceError where there is no cluster, no room on it, or two workers died over
    a unit, and what a worker raised where no other is left; what was received before stays.
    """
    ray = join(address)
    crew = _Crew(ray, plan, todo, again=again, allow_code=allow_code)
    with without(contextlib.redirect_stdout):  # Ray's pages on what has died
        try:
            return crew.work()
        finally:
            crew.end()
            ray.shutdown()
            if is_remote(plan.study.folder):  # what listings this process has seen are older than the workers' files
                plan.study.folder.fs.invalidate_cache()  # type: ignore[attr-defined]  # UPath's


class Worker:
    """What runs on a node, as an asynchronous Ray actor: `left` is answered while `work` goes on."""

    def __init__(self, study: Study, *, again: bool, allow_code: bool = False) -> None:
        self._study, self._again, self._allow_code = study, again, allow_code
        self._generators: dict[str, Generator] = {}  # by what makes a transformation's texts
        self._units: list[Unit] = []

    @functools.cached_property
    def _plan(self) -> Plan:
        return Plan(self._study)  # made here: the command's plan holds hashes in the making, which do not travel

    async def prepare(self, prompts: dict[str, str], texts: str, todo: Sequence[Place]) -> list[Place]:
        """The units of `todo` that this node has a journal of.

        `prompts` and `texts` are the hashes of the command's prompts (`made_of`) and of its `texts.parquet`: raises
        StudyError where this node has others.
        """
        if made_of(self._plan) != prompts:
            raise StudyError("prompts, functions or files of outputs are not those of the command; install the same")
        path = self._study.folder / "texts.parquet"
        if not path.exists() or file_hash(path) != texts:
            raise StudyError(
                f"{self._study.folder} is not the folder that the command has under this name; --exports must be a"
                " folder that all nodes share, or an address such as s3://bucket/studies"
            )
        return [place for place in todo if self._study.journal_file(*place).exists()]

    async def work(self, transformation: str, seed: int) -> Counter[str]:
        """Make what is missing of a unit; counts of outputs by status."""
        kinds = self._plan.kinds
        way = kinds[transformation].made_by
        if way not in self._generators:
            names = [name for name, kind in kinds.items() if kind.made_by == way]
            self._generators[way] = make_generator(self._plan, names, allow_code=self._allow_code)
        units = planned(self._plan, again=self._again, units=[(transformation, seed)])
        with without(contextlib.redirect_stderr), units as self._units:  # the command shows one bar of all workers
            (unit,) = self._units
            if not unit.todo:
                unit.settle()
            return await generate_units(self._plan, self._generators[way], self._units)

    async def left(self) -> tuple[Place, int] | None:
        """The unit in hand, and how many of its outputs have not come yet."""
        return next((((unit.transformation, unit.seed), unit.left) for unit in self._units), None)

    async def close(self) -> None:
        """Let go of the generators' connections and memory."""
        for generator in self._generators.values():
            await generator.close()


class _Seat(NamedTuple):
    """Where a worker can be."""

    node: str
    address: str
    gpus: int


@dataclass(eq=False)
class _Hand:
    """A worker as the command sees it: `answer` is what it was last asked for, None where it has nothing to do."""

    seat: _Seat
    actor: Any
    answer: Any
    unit: Unit | None = None
    left: int = 0
    poll: Any = None
    journals: set[Place] = field(default_factory=set)
    prepared: bool = False


class _Crew:
    """All workers of a run, and what there is for them to do."""

    def __init__(self, ray: Any, plan: Plan, todo: Sequence[Unit], *, again: bool, allow_code: bool) -> None:
        self._ray, self._plan = ray, plan
        self._asked = {"again": again, "allow_code": allow_code}
        self._todo = list(todo)
        self._total = sum(unit.todo for unit in todo)
        self._done = 0
        self._tries: Counter[Place] = Counter()
        self._hands: list[_Hand] = []
        self._lost: list[str] = []
        self._counts: Counter[str] = Counter()
        self._texts = file_hash(plan.study.folder / "texts.parquet")

    def work(self) -> Counter[str]:
        """Have all units worked on."""
        seats = _seats(self._ray, self._plan)
        remote = is_remote(self._plan.study.folder)
        for unit in self._todo:
            if remote and unit.journal.path.exists():  # the workers cannot see this machine's journal
                unit.settle()
        for seat in seats if remote else seats[: len(self._todo)]:
            self._hire(seat)
        with tqdm(total=self._total, unit="text", desc="generating") as bar:
            if remote:
                answers = [hand.answer for hand in self._hands]
                self._ray.wait(answers, num_returns=len(answers), timeout=START_SECONDS)
            while self._todo or any(hand.unit for hand in self._hands):
                for hand in self._hands:
                    self._hand_out(hand)
                answers = [hand.answer for hand in self._hands if hand.answer is not None]
                ready, _ = self._ray.wait(answers, timeout=POLL_SECONDS)
                for hand in [hand for hand in self._hands if hand.answer in ready]:
                    self._receive(hand)
                self._look(bar)
        if self._lost:
            raise ServiceError(f"not done after {TRIES} tries: {', '.join(self._lost)}; run again to go on")
        return self._counts

    def end(self) -> None:
        """Close the workers that are free, and end all."""
        closing = [hand.actor.close.remote() for hand in self._hands if hand.prepared and not hand.unit]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)
        for hand in self._hands:
            self._ray.kill(hand.actor)

    def _hire(self, seat: _Seat) -> None:
        """Start a worker; it is handed a unit when it has answered."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 (extra `ray`)

        there = NodeAffinitySchedulingStrategy(node_id=seat.node, soft=False)
        options = {"num_cpus": 1, "num_gpus": seat.gpus, "scheduling_strategy": there}
        actor = self._ray.remote(Worker).options(**options).remote(self._plan.study, **self._asked)
        places = [_place(unit) for unit in self._todo]
        self._hands.append(_Hand(seat, actor, actor.prepare.remote(made_of(self._plan), self._texts, places)))

    def _hand_out(self, hand: _Hand) -> None:
        """Give a free worker a unit: one that it has a journal of before others, and those of others' last."""
        if hand.answer is not None or not self._todo:
            return
        others = {place for other in self._hands if other is not hand for place in other.journals}
        hand.unit = min(self._todo, key=lambda unit: (_place(unit) not in hand.journals, _place(unit) in others))
        self._todo.remove(hand.unit)
        hand.left = hand.unit.todo
        hand.answer = hand.actor.work.remote(*_place(hand.unit))

    def _receive(self, hand: _Hand) -> None:
        """Take what a worker answered."""
        answer, unit = hand.answer, hand.unit
        hand.answer = hand.unit = None
        try:
            found = self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            self._dismiss(hand, unit, _mendable(error, hand.seat))
        except self._ray.exceptions.RayError as error:
            alive = any(node["Alive"] and node["NodeID"] == hand.seat.node for node in self._ray.nodes())
            self._dismiss(hand, unit, _death(error, hand.seat, unit), again=alive and unit is not None)
        else:
            if unit is None:
                hand.journals, hand.prepared = set(found), True
                return
            self._done += unit.todo
            self._counts += found
            self._counts["reused"] += unit.todo - found.total()  # came before a first worker died

    def _dismiss(self, hand: _Hand, unit: Unit | None, problem: Exception, *, again: bool = False) -> None:
        """Do without a worker, or with a new one in its place (`again`); raises the problem where none is left."""
        self._hands.remove(hand)
        self._ray.kill(hand.actor)
        if unit is not None:
            self._tries[_place(unit)] += 1
            if self._tries[_place(unit)] < TRIES:
                self._todo.insert(0, unit)
            else:
                self._lost.append(_name(unit))
        if again and self._todo:
            self._hire(hand.seat)
        if not self._hands and self._todo:
            raise problem from None
        tqdm.write(f"{problem}; the others go on", file=sys.stderr)

    def _look(self, bar: tqdm[NoReturn]) -> None:
        """Show how far the workers are."""
        for hand in self._hands:
            if hand.unit is None:
                continue
            if hand.poll is None:
                hand.poll = hand.actor.left.remote()
            elif self._ray.wait([hand.poll], timeout=0)[0]:
                with contextlib.suppress(self._ray.exceptions.RayError):  # its work says so as well
                    place, left = self._ray.get(hand.poll) or (None, 0)
                    if place == _place(hand.unit):
                        hand.left = left
                hand.poll = None
        bar.n = self._done + sum(hand.unit.todo - hand.left for hand in self._hands if hand.unit)
        bar.refresh()


def _seats(ray: Any, plan: Plan) -> list[_Seat]:
    """One place a node, for engines as many as the node's GPUs allow; raises ServiceError where there is none."""
    spec = plan.study.generator
    gpus = spec.tensor_parallel * spec.data_parallel if isinstance(spec, VllmGenerator) else 0
    seats = []
    for node in ray.nodes():
        has = node["Resources"] if node["Alive"] else {}
        fit = min(int(has.get("CPU", 0)), int(has.get("GPU", 0)) // gpus) if gpus else int(has.get("CPU", 0) >= 1)
        seats += [_Seat(node["NodeID"], node["NodeManagerAddress"], gpus)] * fit
    if not seats:
        needed = f"{gpus} GPUs (tensor_parallel x data_parallel) and a CPU" if gpus else "a CPU"
        raise ServiceError(f"no node of the Ray cluster has {needed} to give; see `ray status`")
    return seats


def made_of(plan: Plan) -> dict[str, str]:
    """What tells each transformation's texts from others: its prompts, or its function's or file's identity."""
    return {name: plan.prompt_hashes[name] or plan.makers[name].hash for name in plan.kinds}


def _place(unit: Unit) -> Place:
    return unit.transformation, unit.seed


def _name(unit: Unit) -> str:
    return f"{unit.transformation} with seed {unit.seed}"


def _death(error: Exception, seat: _Seat, unit: Unit | None) -> ServiceError:
    """Why there is a worker no more."""
    if unit is None:  # most often a package that is missing
        why = str(error).strip().splitlines()[-1]
        return ServiceError(f"node {seat.address}: no worker starts ({why}); docs/cluster.md says what a node needs")
    line = f"node {seat.address}: a worker died at {_name(unit)} (killed, or out of memory?)"
    return ServiceError(f"{line}; Ray's logs there say why")


def _mendable(error: Any, seat: _Seat) -> Exception:
    """What a worker raised, with the node that it came from; a bug stays what it is."""
    cause: BaseException = error.cause
    if isinstance(cause, PlumblineError):
        return type(cause)(f"node {seat.address}: {cause}")
    if isinstance(cause, ImportError):
        return StudyError(f"node {seat.address}: {cause}; docs/cluster.md says what a node needs")
    if isinstance(cause, OSError):
        return OSError(cause.errno, cause.strerror, f"{cause.filename} on node {seat.address}")
    raise error

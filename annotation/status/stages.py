"""Which stages of the flow a study has been through, and which rest on something that has changed since.

Files on disk say what is there, the manifest when it was made and of what. Where the manifest has no hashes (records
that were copied here without it, say), nothing is called stale.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from annotation.campaign_records import CampaignRecords
from annotation.offering import LEDGER, is_complete, ledgers, refuse_other_makers
from annotation.sampling.sample import sample_settings
from annotation.verdicts.preregistration import changes
from generation.unit import journal_files
from plumbline.errors import DataError, PlumblineError
from plumbline.manifest import Manifest
from plumbline.records import ARGILLA
from plumbline.study import Study, file_hash
from plumbline.study.human import HUMAN
from plumbline.study.transformations import EIGHT

State = Literal["done", "stale", "under way", "not yet"]
PEOPLE_REPORT = "people and models"  # the report of a study whose people do tasks
_LARGE = ("texts.parquet", "transformations")  # hashed when they were made, and not again to look at them


@dataclass(frozen=True)
class Stage:
    """One stage of the flow."""

    name: str
    state: State
    at: datetime | None = None  #: when it ended last, UTC; None if unknown
    note: str = ""  #: why it is stale, or how far it is
    wanted: bool = True  #: whether the study has such a stage; one that it has not is done
    annotators: int | None = None  #: how many annotators could see what was published then; None if unknown


class _StageHistory:
    """A study and what the manifest notes of its stages; its files are hashed once, whatever stages rest on them."""

    def __init__(self, study: Study, entries: Mapping[str, dict[str, Any]]) -> None:
        self.study, self.entries = study, entries
        self.hash_of = functools.cache(lambda path: file_hash(path) if path.exists() else "")

    def ended(self, command: str) -> datetime | None:
        """When a command ended last."""
        return datetime.fromisoformat(self.entries[command]["finished_at"]) if command in self.entries else None

    def _place(self, name: str) -> Path:
        """Where a file stands that a command read: among the records, or below the study file."""
        path = self.study.folder / name
        return path if path.exists() else self.study.file.parent / name

    def changed(self, command: str) -> list[str]:
        """Which of the files that a command read are others now."""
        outputs = self.entries.get("generation", {}).get("outputs", {})
        inputs = self.entries.get(command, {}).get("inputs", {})
        now = {name: self.hash_of(self._place(name)) for name in inputs if name not in _LARGE}
        return [name for name, was in inputs.items() if now.get(name, outputs.get(name, was)) != was]


def stages_of(
    records: CampaignRecords, manifest: Mapping[str, Any], mismatched: str, outdated: str = ""
) -> dict[str, Stage]:
    """The stages in the flow's order, by name.

    `mismatched` is what `mismatch` says, `outdated` why the verdicts no longer hold, empty where they do. Raises
    DataError for damaged files.
    """
    study, noted = records.study, _StageHistory(records.study, manifest.get("stages", {}))
    stages = [
        *_generated(noted),
        _sampled(noted, records, mismatched),
        _published(noted, records.collected.ratings),
        _stage("collected", study.folder / "ratings.parquet", "collect", noted),
        _judged(noted, outdated),
        _stage("report", study.folder / "report" / "index.html", "report", noted),
        _scored(noted),
    ]
    if study.judging.does_tasks:
        page = study.folder / "report_human" / "index.html"
        stages.append(_stage(PEOPLE_REPORT, page, "evaluation human report", noted))
    return {stage.name: stage for stage in stages}


def mismatch(study: Study, pairs: pd.DataFrame) -> str:
    """Why pairs (rows of `Pair`) are no longer of the study's generator and prompts, in one line; empty if they are."""
    if pairs.empty:
        return ""
    makers = pairs[["transformation", "generator_hash", "prompt_hash"]].drop_duplicates()
    try:
        refuse_other_makers(study, makers.itertuples(index=False, name=None))
    except PlumblineError as error:
        return str(error)
    return ""


def _stage(name: str, path: Path, command: str, noted: _StageHistory) -> Stage:
    """The stage whose `command` made `path`."""
    if not path.exists():
        return Stage(name, "not yet")
    changed = noted.changed(command)
    note = f"{' and '.join(changed)} changed since" if changed else ""
    return Stage(name, "stale" if changed else "done", noted.ended(command), note)


def _generated(noted: _StageHistory) -> tuple[Stage, Stage]:
    """Texts and transformations; these are done when every transformation with every seed has its table."""
    entry = noted.entries.get("generation", {})
    if not noted.study.judging.transforms:
        return _given(noted), Stage("transformations", "done", None, "none: nothing is transformed", wanted=False)
    at = noted.ended("generation") if noted.study.outputs.name in entry.get("outputs", {}) else None
    texts = Stage("texts", "not yet")
    if (noted.study.folder / "texts.parquet").exists():
        data = {file_hash(path) for path in noted.study.data_files() if path.exists()}
        changed = "inputs" in entry and data != set(entry["inputs"].values())
        has_new = any(name not in EIGHT for name in noted.study.transformations)
        note = f"data sets{' or own transformations' if has_new else ''} changed since" if changed else ""
        texts = Stage("texts", "stale" if changed else "done", at, note)
    units = [(name, seed) for name in noted.study.transformations for seed in noted.study.seeds]
    units_present = sum(noted.study.transformation_file(*unit).exists() for unit in units)
    begun = bool(units_present) or any(journal_files(noted.study.journal_file(*unit)) for unit in units)
    if units_present < len(units):
        note = f"{units_present} of {len(units)} units (transformation and seed)" if begun else ""
        return texts, Stage("transformations", "under way" if begun else "not yet", None, note)
    return texts, Stage("transformations", "done", at)


def _given(noted: _StageHistory) -> Stage:
    """The texts of a subject, which its files are: the sample was drawn of them, or of others."""
    data, entry = noted.study.data_files(), noted.entries.get("sample", {})
    if missing := [path for path in data if not path.exists()]:
        return Stage("texts", "not yet", None, f"no file {missing[0]}")
    changed = "inputs" in entry and {file_hash(path) for path in data} != set(entry["inputs"].values())
    return Stage("texts", "stale" if changed else "done", None, "changed since the sample was drawn" if changed else "")


def _sampled(noted: _StageHistory, records: CampaignRecords, mismatched: str) -> Stage:
    stage = _stage("sample", noted.study.folder / "pairs.parquet", "sample", noted)
    if cut_off := [wave for wave in records.waves[-1:] if not is_complete(records, wave)]:
        return Stage("sample", "under way", stage.at, f"its extension to wave {cut_off[0].number} was cut off")
    if mismatched:
        return Stage("sample", "stale", stage.at, "of another generator or other prompts than the study's")
    others = changes(
        _drawn_by(noted.entries.get("sample", {}).get("settings", {})),
        sample_settings(noted.study.sample, noted.study.judging, noted.study.raters.blocks),
    )
    if stage.state == "done" and others:
        return Stage("sample", "stale", stage.at, f"drawn with other settings: {'; '.join(others)}")
    return stage


def _drawn_by(settings: dict[str, Any]) -> dict[str, Any]:
    """What a sample was drawn by; earlier versions noted the models that do people's tasks too."""
    subject = settings.get("subject", {})
    if subject.get("kind") != HUMAN:
        return settings
    return {**settings, "subject": {name: value for name, value in subject.items() if name != "models"}}


def _published(noted: _StageHistory, ratings: pd.DataFrame) -> Stage:
    """Argilla is not asked: the manifest knows that pairs were published, and so do ratings that came from there.

    What was offered to crowd workers stands in the ledger.
    """
    if "publish" in noted.entries:
        stage = _stage("published", noted.study.folder / "pairs.parquet", "publish", noted)
        return replace(stage, annotators=noted.entries["publish"].get("settings", {}).get("annotators"))
    if (ratings["source"] == ARGILLA).any():
        return Stage("published", "done")
    if offered := ledgers(noted.study.scratch / LEDGER):
        return Stage(
            "published", "done", None, "to crowd workers: " + ", ".join(f"{mode} {name}" for name, mode in offered)
        )
    return Stage("published", "not yet", None, "ratings came from files" if len(ratings) else "")


def _judged(noted: _StageHistory, outdated: str) -> Stage:
    if not (noted.study.folder / "verdicts.json").exists():
        return Stage("verdicts", "not yet")
    return Stage("verdicts", "stale" if outdated else "done", noted.ended("accept"), outdated)


def _scored(noted: _StageHistory) -> Stage:
    judging = noted.study.judging
    if not (judging.does_tasks or (judging.scored_by and noted.study.evaluation.models)):
        return Stage("scores", "done", None, "none: the study evaluates no model", wanted=False)
    table, command = judging.scores
    stage = _stage("scores", noted.study.folder / table, command, noted)
    try:
        Manifest.of(noted.study).refuse_replaced(table, noted.study.command(judging.scored_by))
    except DataError as error:
        return Stage("scores", "stale", stage.at, str(error).partition(";")[0])
    if stage.state != "not yet" and command not in noted.entries:
        return Stage("scores", "under way", None, "no run has come to its end")
    return stage

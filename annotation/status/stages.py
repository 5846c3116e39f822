"""Which stages of the flow a study has been through, and which rest on something that has changed since.

Files on disk say what is there, the manifest when it was made and of what. Where the manifest has no hashes (records
that were copied here without it, say), nothing is called stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from annotation.argilla.collect import SOURCE
from annotation.offering import LEDGER, ledgers
from annotation.sampling.origin import refuse_other_makers
from annotation.sampling.sample import sample_settings
from annotation.verdicts.rule_changes import changes
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_other_file
from plumbline.errors import DataError, PlumblineError
from plumbline.manifest import read_manifest, refuse_replaced_table
from plumbline.study import Study, file_hash

State = Literal["done", "stale", "under way", "not yet"]
_LARGE = ("texts.parquet", "transformations")  # hashed when they were made, and not again to look at them


@dataclass(frozen=True)
class Stage:
    """One stage of the flow."""

    name: str
    state: State
    at: datetime | None = None  #: when it ended last, UTC; None if unknown
    note: str = ""  #: why it is stale, or how far it is


def stages_of(study: Study, ratings: pd.DataFrame, mismatched: str) -> dict[str, Stage]:
    """The stages in the flow's order, by name; `ratings` are all that were collected.

    `mismatched` is what `mismatch` says. Raises DataError for damaged files.
    """
    entries: dict[str, dict[str, Any]] = read_manifest(study).get("stages", {})
    found = [
        *_generated(study, entries),
        _sampled(study, entries, mismatched),
        _published(study, entries, ratings),
        _stage("collected", study.folder / "ratings.parquet", "collect", study, entries),
        _judged(study, entries),
        _stage("report", study.folder / "report" / "index.html", "report", study, entries),
        _scored(study, entries),
    ]
    return {stage.name: stage for stage in found}


def mismatch(study: Study, pairs: pd.DataFrame) -> str:
    """Why pairs (rows of `Pair`) are no longer of the study's generator and prompts, in one line; empty if they are."""
    if pairs.empty:
        return ""
    made = pairs[["transformation", "generator_hash", "prompt_hash"]].drop_duplicates()
    try:
        refuse_other_makers(study, made.itertuples(index=False, name=None))
    except PlumblineError as error:
        return str(error)
    return ""


def _stage(name: str, path: Path, command: str, study: Study, entries: Mapping[str, dict[str, Any]]) -> Stage:
    """The stage whose `command` made `path`."""
    if not path.exists():
        return Stage(name, "not yet")
    changed = _changed(study, entries, command)
    note = f"{' and '.join(changed)} changed since" if changed else ""
    return Stage(name, "stale" if changed else "done", _ended(entries, command), note)


def _generated(study: Study, entries: Mapping[str, dict[str, Any]]) -> tuple[Stage, Stage]:
    """Texts and transformations; these are done when every transformation with every seed has its table."""
    entry = entries.get("generation", {})
    at = _ended(entries, "generation") if study.outputs.name in entry.get("outputs", {}) else None
    texts = Stage("texts", "not yet")
    if (study.folder / "texts.parquet").exists():
        data = {file_hash(path) for path in study.data_files() if path.exists()}
        changed = "inputs" in entry and data != set(entry["inputs"].values())
        note = "data sets changed since" if changed else ""
        texts = Stage("texts", "stale" if changed else "done", at, note)
    units = [(name, seed) for name in study.transformations for seed in study.seeds]
    there = sum(study.transformation_file(*unit).exists() for unit in units)
    begun = bool(there) or any(study.journal_file(*unit).exists() for unit in units)
    if there < len(units):
        note = f"{there} of {len(units)} units (transformation and seed)" if begun else ""
        return texts, Stage("transformations", "under way" if begun else "not yet", None, note)
    return texts, Stage("transformations", "done", at)


def _sampled(study: Study, entries: Mapping[str, dict[str, Any]], mismatched: str) -> Stage:
    stage = _stage("sample", study.folder / "pairs.parquet", "sample", study, entries)
    if mismatched:
        return Stage("sample", "stale", stage.at, "of another generator or other prompts than the study's")
    others = changes(entries.get("sample", {}).get("settings", {}), sample_settings(study))
    if stage.state == "done" and others:
        return Stage("sample", "stale", stage.at, f"drawn with other settings: {'; '.join(others)}")
    return stage


def _published(study: Study, entries: Mapping[str, dict[str, Any]], ratings: pd.DataFrame) -> Stage:
    """Argilla is not asked: the manifest knows that pairs were published, and so do ratings that came from there.

    What was offered to crowd workers stands in the ledger.
    """
    if "publish" in entries:
        return _stage("published", study.folder / "pairs.parquet", "publish", study, entries)
    if (ratings["source"] == SOURCE).any():
        return Stage("published", "done")
    if offered := ledgers(study.scratch / LEDGER):
        return Stage(
            "published", "done", None, "to crowd workers: " + ", ".join(f"{mode} {name}" for name, mode in offered)
        )
    return Stage("published", "not yet", None, "ratings came from files" if len(ratings) else "")


def _judged(study: Study, entries: Mapping[str, dict[str, Any]]) -> Stage:
    if not (study.folder / "verdicts.json").exists():
        return Stage("verdicts", "not yet")
    at = _ended(entries, "accept")
    try:
        refuse_stale(study, read_verdicts(study))
        refuse_other_file(study)
    except DataError as error:
        return Stage("verdicts", "stale", at, str(error).partition(";")[0])
    return Stage("verdicts", "done", at)


def _scored(study: Study, entries: Mapping[str, dict[str, Any]]) -> Stage:
    stage = _stage("scores", study.folder / "scores.parquet", "evaluation", study, entries)
    try:
        refuse_replaced_table(study, "scores.parquet", study.command("evaluation.run"))
    except DataError as error:
        return Stage("scores", "stale", stage.at, str(error).partition(";")[0])
    if stage.state != "not yet" and "evaluation" not in entries:
        return Stage("scores", "under way", None, "no run has come to its end")
    return stage


def _ended(entries: Mapping[str, dict[str, Any]], command: str) -> datetime | None:
    return datetime.fromisoformat(entries[command]["finished_at"]) if command in entries else None


def _changed(study: Study, entries: Mapping[str, dict[str, Any]], command: str) -> list[str]:
    """Which of the files that a command read are others now."""
    made = entries.get("generation", {}).get("outputs", {})

    def now(name: str, was: str) -> str:
        path = study.folder / name
        if name in _LARGE:
            return str(made.get(name, was))
        return file_hash(path) if path.exists() else ""

    inputs = entries.get(command, {}).get("inputs", {})
    return [name for name, was in inputs.items() if now(name, was) != was]

"""Outputs put on disk by hand, as `generate` would leave them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from generation.jobs import Job, Plan
from plumbline.journal import Journal
from plumbline.records import Text, TransformedText
from plumbline.store import write_table
from plumbline.study import Study
from tests.shared import note_outputs

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def write_texts(study: Study, texts: Iterable[Text]) -> None:
    """The study's texts, each at an item of its own."""
    rows = [text.model_copy(update={"item": str(number)}) for number, text in enumerate(texts)]
    write_table(study.folder / "texts.parquet", rows, Text)


def output(job: Job, **changes: Any) -> TransformedText:
    """A good output of a job, but for the changes."""
    of_job = ("key", "text_id", "text", "source_language", "transformation", "seed", "language")
    row = {name: getattr(job, name) for name in of_job} | {"output": f"{job.text} changed", "status": "ok"}
    row |= {"intermediate": None, "raw": None, "reason": "", "flags": (), "first_flags": (), "attempts": 1}
    row |= {"model": "m", "generator_hash": "g", "prompt_hash": "p", "finished_at": NOW}
    return TransformedText(**(row | changes))


def write_outputs(
    study: Study,
    texts: Iterable[Text],
    transformation: str,
    seed: int,
    changes: Mapping[str, Mapping[str, Any]],
    *,
    in_journal: bool = False,
) -> None:
    """The outputs of the texts that `changes` names (by text), each with its changes; others are missing."""
    jobs = {job.text: job for job in Plan(study).jobs(texts, transformation, seed)}
    rows = [output(jobs[text], **change) for text, change in changes.items()]
    if in_journal:
        journal = Journal(study.journal_file(transformation, seed))
        for row in rows:
            journal.append(row)
        journal.close()
    else:
        note_outputs(study, transformation, seed, rows)

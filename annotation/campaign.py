"""A study's campaign in Argilla: a dataset for each queue, a workspace for those who read its languages.

`publishing` puts pairs there, `collecting` fetches answers; this holds what both and the simulated raters need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.client import Argilla, Listed, User
from annotation.controls import read_controls
from annotation.crowd.workers import WORKER
from annotation.queues import Queue, queues_of
from annotation.sample import read_pairs
from generation.exceptions import DataError, ServiceError, StudyError
from generation.identity import identity
from generation.jobs import Plan
from generation.records import Pair, TransformedText
from generation.store import read_batches
from generation.study import Study
from generation.unit import COMMAND


@dataclass(frozen=True)
class Admission:
    """Who may see what: people, simulated raters not counted."""

    readers: Mapping[str, int]  #: of each workspace
    unknown: int  #: annotators of whom nobody said what they read: they are let in everywhere


def shown(study: Study) -> list[Pair]:
    """All that raters see: the sample, and what tells about raters."""
    return [*read_pairs(study), *read_controls(study)]


def published(study: Study, argilla: Argilla) -> dict[Queue, Listed]:
    """The study's datasets in Argilla, by queue. Raises ServiceError for one that is not there."""
    listed = argilla.datasets()
    found = {}
    for queue in queues_of(read_pairs(study)):
        dataset = listed.get((queue.workspace(study), queue.dataset(study)))
        if dataset is None:
            raise ServiceError(
                f"Argilla at {argilla.url} has no dataset {queue.dataset(study)!r};"
                " run `{study.command('annotation publish')}` first"
            )
        found[queue] = dataset
    return found


def workspaces_of(study: Study, argilla: Argilla) -> dict[str, tuple[str, frozenset[str]]]:
    """The study's workspaces that there are, by name: id, and which languages their raters read."""
    named = re.compile(rf"{re.escape(study.name)}((?:-[A-Z]{{2,3}})+)")
    found = {}
    for name, workspace_id in argilla.workspaces().items():
        match = named.fullmatch(name)
        if match is not None:
            found[name] = (workspace_id, frozenset(match[1].lower().strip("-").split("-")))
    return found


def admit_annotators(study: Study, argilla: Argilla, reads: Mapping[str, Sequence[str]]) -> Admission:
    """Let the server's annotators into those of the study's workspaces whose languages they read.

    But simulated ones and crowd workers. `reads` are languages by user name; whoever is not in it is let in everywhere.
    Who is in stays.
    """
    people = [
        user
        for user in argilla.users()
        if user.role == "annotator" and not user.simulated and not user.username.startswith(WORKER)
    ]
    readers = {}
    for name, (workspace_id, languages) in workspaces_of(study, argilla).items():
        able = [user for user in people if languages <= set(reads.get(user.username, languages))]
        admit(workspace_id, argilla, able)
        readers[name] = len(able)
    return Admission(readers, sum(user.username not in reads for user in people))


def admit(workspace_id: str, argilla: Argilla, users: Sequence[User]) -> None:
    """Let users into a workspace; those that are in stay. Owners are never put in: its admins could read their keys."""
    present = argilla.members(workspace_id)
    for user in users:
        if user.id not in present:
            argilla.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": user.id})


def pseudonym(study: Study, user: User) -> str:
    """What a rater is called outside the server: not derivable from the name, the same at each collection."""
    return f"{'simulated' if user.simulated else 'rater'}-{identity('rater-v1', study.name, user.id)[:8]}"


def refuse_other_prompts(study: Study, pairs: Iterable[Pair]) -> None:
    """Refuse a campaign whose pairs are not of the study's generator and prompts, or whose outputs have been replaced.

    Raises StudyError or DataError. Where outputs are not on this machine, the study alone is looked at.
    """
    refuse_other_makers(study, ((pair.transformation, pair.generator_hash, pair.prompt_hash) for pair in pairs))
    kinds = {pair.generator_kind for pair in pairs} - {"", study.generator.kind}
    if kinds:
        raise StudyError(
            f"{study.file}: the sample's pairs are of a generator of kind {min(kinds)}, and the study's is of kind"
            f" {study.generator.kind} now; undo the change, or give the new study another name"
        )


def refuse_other_makers(study: Study, makers: Iterable[tuple[str, str, str]]) -> None:
    """The same from what made the pairs: their transformations, and the hashes of generator and prompts."""
    plan, by_name = Plan(study), dict[str, set[tuple[str, str]]]()
    for name, *hashes in makers:
        by_name.setdefault(name, set()).add((hashes[0], hashes[1]))
    for name, made in by_name.items():
        if made != {(plan.generator_hash, plan.prompt_hashes.get(name))}:
            raise StudyError(
                f"{study.file}: the sample's pairs of {name} were made by another generator or other prompts than the"
                " study has now; undo the change, or give the new study another name"
            )
        there = _made_on_disk(study, name)
        if there and not made <= there:
            raise DataError(
                f"{study.outputs / name}: these outputs are of another generator or other prompts than the sample's"
                " pairs; bring the outputs back, or give the new study another name"
            )


def _made_on_disk(study: Study, transformation: str) -> set[tuple[Any, Any]]:
    """Which generators and prompts made a transformation's outputs on disk: pairs of their hashes."""
    found = set()
    for seed in study.seeds:
        path = study.transformation_file(transformation, seed)
        if path.exists():
            for table in read_batches(path, TransformedText, study.command(COMMAND), ["generator_hash", "prompt_hash"]):
                keys = table.group_by(table.schema.names).aggregate([])
                found |= set(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    return found

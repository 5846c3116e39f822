"""A study's campaign in Argilla: a dataset for each queue, a workspace for those who read its languages.

`publishing` puts pairs there, `collecting` fetches answers; this holds what both and the simulated raters need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from annotation.argilla.client import Argilla, Listed, User
from annotation.pseudonyms import WORKER
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import read_pairs
from plumbline.errors import ServiceError
from plumbline.study import Study


@dataclass(frozen=True)
class Admission:
    """Who may see what: people, simulated raters not counted."""

    readers: Mapping[str, int]  #: of each workspace
    unknown: int  #: annotators of whom nobody said what they read: they are let in everywhere


def published(study: Study, argilla: Argilla) -> dict[Queue, Listed]:
    """The study's datasets in Argilla, by queue. Raises ServiceError for one that is not there."""
    listed = argilla.datasets()
    found = {}
    for queue in queues_of(read_pairs(study)):
        dataset = listed.get((queue.workspace(study), queue.dataset(study)))
        if dataset is None:
            raise ServiceError(
                f"Argilla at {argilla.url} has no dataset {queue.dataset(study)!r};"
                f" run `{study.command('annotation publish')}` first"
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

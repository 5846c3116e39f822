"""A study's campaign in Argilla: a dataset for each queue, a workspace for those who read its languages.

`publishing` puts pairs there, `collecting` fetches answers; this holds what both and the simulated raters need.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from annotation.argilla.client import Argilla, ArgillaUser, DatasetListing
from annotation.pseudonyms import WORKER, account_pseudonym
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import read_pairs
from plumbline.errors import ServiceError, StudyError
from plumbline.study import Study


@dataclass(frozen=True)
class Admission:
    """Who may see what: people, simulated raters not counted."""

    readers: Mapping[str, int]  #: of each workspace
    unknown: int  #: annotators of whom nobody said what they read: they are let in everywhere
    out: Sequence[str] = ()  #: user names of those who were in, and whom `raters.people` does not name
    people: int = 0  #: who is let in somewhere


def published(study: Study, argilla: Argilla) -> dict[Queue, DatasetListing]:
    """The study's datasets in Argilla, by queue. Raises ServiceError for one that is not there."""
    listed = argilla.datasets()
    datasets = {}
    for queue in queues_of(read_pairs(study)):
        dataset = listed.get((queue.workspace(study), queue.dataset(study)))
        if dataset is None:
            raise ServiceError(
                f"Argilla at {argilla.url} has no dataset {queue.dataset(study)!r};"
                f" run `{study.command('annotation publish')}` first"
            )
        datasets[queue] = dataset
    return datasets


def workspaces_of(study: Study, argilla: Argilla) -> dict[str, tuple[str, frozenset[str]]]:
    """The study's workspaces that there are, by name: id, and which languages their raters read."""
    named = re.compile(rf"{re.escape(study.name)}((?:-[A-Z]{{2,3}})+)")
    workspaces = {}
    for name, workspace_id in argilla.workspaces().items():
        match = named.fullmatch(name)
        if match is not None:
            workspaces[name] = (workspace_id, frozenset(match[1].lower().strip("-").split("-")))
    return workspaces


def admit_annotators(study: Study, argilla: Argilla, reads: Mapping[str, Sequence[str]]) -> Admission:
    """Let the study's annotators into those of its workspaces whose languages they read.

    `reads` are languages by user name; whoever is not in it is let in everywhere. Who is in stays, but where
    `raters.people` names others: then they are taken out, and their answers stay on the server.
    """
    people, readers, out, let_in = annotators(study, argilla), {}, set[str](), set[str]()
    for name, (workspace_id, languages) in workspaces_of(study, argilla).items():
        able = [user for user in people if languages <= set(reads.get(user.username, languages))]
        admit(workspace_id, argilla, able)
        readers[name] = len(able)
        let_in |= {user.id for user in able}
        if study.raters.people is not None:
            out |= _take_out(workspace_id, argilla, {user.id for user in people})
    return Admission(readers, sum(user.username not in reads for user in people), sorted(out), len(let_in))


def annotators(study: Study, argilla: Argilla) -> list[ArgillaUser]:
    """The accounts of those who may rate: of `raters.people`, or all annotators of the server.

    But simulated ones and crowd workers.
    """
    named = study.raters.people
    return [user for user in argilla.users() if is_person(user) and (named is None or user.username in named)]


def refuse_unknown(study: Study, argilla: Argilla) -> None:
    """Raise StudyError where one of `raters.people` has no account that can rate."""
    able = {user.username for user in annotators(study, argilla)}
    if missing := [name for name in study.raters.people or () if name not in able]:
        more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
        raise StudyError(
            f"{study.file}: raters.people: {missing[0]!r} has no annotator's account at {argilla.url}{more};"
            f" `{study.command('annotation users invite')}` makes what is missing"
        )


def named_raters(study: Study, argilla: Argilla) -> dict[str, ArgillaUser] | None:
    """The accounts whose answers count wherever they are, by id: of `raters.people` and `raters.former`.

    None where the study names nobody: then the members of a workspace count.
    """
    if study.raters.people is None:
        return None
    named = {*study.raters.people, *study.raters.former}
    return {user.id: user for user in argilla.users() if user.username in named and is_person(user)}


def names_at(study: Study, argilla: Argilla) -> dict[str, str]:
    """The user names of a server's annotators by their pseudonyms in a study."""
    people = filter(is_person, argilla.users())
    return {account_pseudonym(study.name, user.id, simulated=False): user.username for user in people}


def is_person(user: ArgillaUser) -> bool:
    """Whether an account is an annotator, and no simulated one nor a crowd worker's."""
    return user.role == "annotator" and not user.simulated and not user.username.startswith(WORKER)


def _take_out(workspace_id: str, argilla: Argilla, stay: Collection[str]) -> set[str]:
    """Take those out of a workspace who may not rate any more; returns their names."""
    others = [user for user in argilla.members(workspace_id).values() if is_person(user) and user.id not in stay]
    for user in others:
        argilla.request("DELETE", f"/workspaces/{workspace_id}/users/{user.id}")
    return {user.username for user in others}


def admit(workspace_id: str, argilla: Argilla, users: Sequence[ArgillaUser]) -> None:
    """Let users into a workspace; those that are in stay. Owners are never put in: its admins could read their keys."""
    present = argilla.members(workspace_id)
    for user in users:
        if user.id not in present:
            argilla.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": user.id})

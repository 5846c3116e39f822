"""Annotators' accounts on the Argilla in use: their names, languages, workspaces and answers.

Argilla does not record the languages that an annotator reads: the home has them, separately for each server.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.argilla.client import SIMULATED, Argilla, ArgillaUser, DatasetListing, configured
from annotation.campaign.counting import excluded_raters
from annotation.campaign.names import WORKER, account_pseudonym
from annotation.campaign.offering import ARGILLA
from annotation.campaign.records import CampaignRecords
from annotation.page.training import TrainingItem, by_queue
from annotation.sampling.queues import Queue, queues_of, workspace_name
from annotation.server import OWNER, Connection, Home, credentials, ensure_user, make_folder
from annotation.server.home import call, changing, forget, new_user, probe, remember, write_private
from plumbline.errors import DataError, PlumblineError, ServiceError, StudyError
from plumbline.languages import language_code
from plumbline.reading import read_json
from plumbline.study import Study
from plumbline.study.campaign import RatersSpec
from plumbline.words import count

#: Names that people can type and that are safe in shells, URLs and tables.
NAME = re.compile(r"[^\W_](?:[\w.@+-]{0,62}\w)?")
#: Names that the platform gives itself: `serve --study` makes rater-1, rater-2 and so on.
NUMBERED = re.compile(r"rater-\d+")
OWN_SERVER = "local"  # the key of the home's own server in languages.json; others go by their address


@dataclass(frozen=True)
class Account:
    """One account as `users list` shows it."""

    username: str
    role: str
    languages: tuple[str, ...]  #: codes, empty if unknown
    answers: int  #: on the server, whatever their status


def add(
    connection: Connection, home: Home, names: Sequence[str], languages: Sequence[str] = ()
) -> dict[str, str | None]:
    """Create annotators; return their drawn passwords by name, None for an existing account.

    All names are checked before the first account is created. Languages are kept for everyone named. Raises StudyError
    for an impossible name or language, ServiceError if the server refuses.
    """
    codes = [language_code(language) for language in languages]
    present = {user["username"]: user for user in call(connection, "GET", "users")["items"]}
    folded = {name.casefold(): name for name in present}
    for name in names:
        check_name(name)
        like = folded.setdefault(name.casefold(), name)
        if like != name:
            raise StudyError(f"user {name!r}: {like!r} differs in capitals only; choose another name")
        if name in present and present[name]["role"] != "annotator":
            raise StudyError(f"user {name!r}: already has an account as {present[name]['role']}; choose another name")
    passwords: dict[str, str | None] = {}
    for name in names:
        if name in present:
            passwords.setdefault(name, None)
        else:
            account = ensure_user(connection, name, first_name=name)
            passwords.setdefault(name, account.password)
        if codes:
            keep_languages(connection, home, name, codes)
    return passwords


def check_name(name: str) -> None:
    """Raise StudyError unless a person can have this name."""
    if name.startswith((SIMULATED, WORKER)) or NUMBERED.fullmatch(name) or name == OWNER:
        names = f"{SIMULATED}..., {WORKER}..., rater-1 and {OWNER}"
        raise StudyError(f"user {name!r}: names like {names} are reserved for the platform; choose another")
    if not NAME.fullmatch(name) or name != unicodedata.normalize("NFC", name):
        raise StudyError(f"user {name!r}: a name has 1 to 64 letters, digits and . _ - + @, and begins and ends with a "
                         "letter or digit")  # fmt: skip


def reset(connection: Connection, name: str) -> str:
    """Draw a new password for an account and return it; its key and answers stay. Raises as `add`."""
    user = account_of(connection, name)
    home = connection.home
    if home is not None and name == credentials(home).owner.username:
        raise StudyError(f"user {name!r}: is the server's own account; its password is in {home.credentials_file}")
    drawn = new_user(name, user["api_key"])
    call(connection, "PATCH", f"users/{user['id']}", {"password": drawn.password})
    if home is not None:
        remember(home, drawn)
    return drawn.password


@dataclass(frozen=True)
class Link:
    """What signs one annotator in at our own server, in one browser."""

    token: str = field(repr=False)
    until: str  #: the last day, YYYY-MM-DD


def new_link(connection: Connection, name: str, *, again: bool = False) -> Link | None:
    """Make a link for an annotator; None if one stays that was made before. Raises as `add`.

    With `again` that one ends, with the sessions that it opened.
    """
    refuse_without_links(connection)
    user = account_of(connection, name)
    if user["role"] != "annotator":
        raise StudyError(f"user {name!r}: has the role {user['role']}; only annotators can have a link")
    link = Link(**call(connection, "POST", f"users/{user['id']}/link?again={again}"))
    return link if link.token else None


def revoke_link(connection: Connection, name: str) -> bool:
    """End an account's link and its sessions; return whether there was one. Raises as `add`."""
    refuse_without_links(connection)
    return bool(call(connection, "DELETE", f"users/{account_of(connection, name)['id']}/link")["ended"])


def refuse_without_links(connection: Connection) -> None:
    """Raise StudyError for an Argilla that is not our own server."""
    if connection.home is None:
        raise StudyError(f"{connection.url}: only the server of `plumbline serve` has links; use passwords there")


def remove(connection: Connection, home: Home, name: str, *, force: bool = False) -> int:
    """Delete an account; return the number of answers deleted with it.

    Argilla deletes a user's answers with the user: without `force`, an account with answers is refused (DataError).
    """
    user = account_of(connection, name)
    if user["role"] != "annotator":
        raise StudyError(f"user {name!r}: has the role {user['role']}; only annotators can be removed here")
    answers = answers_by_user(connection)[name]
    if answers and not force:
        raise DataError(f"user {name!r}: has {count(answers, 'answer')}, which Argilla deletes with the account;"
                        " collect first, then add --force to delete the account")  # fmt: skip
    call(connection, "DELETE", f"users/{user['id']}")
    if connection.home is not None:
        forget(connection.home, name)
    keep_languages(connection, home, name, ())
    return answers


def accounts(connection: Connection, home: Home) -> list[Account]:
    """All accounts of the server, by name."""
    answers, reads = answers_by_user(connection), languages(connection, home)
    users = call(connection, "GET", "users")["items"]
    listed = [Account(user["username"], user["role"], reads.get(user["username"], ()), answers[user["username"]])
              for user in users]  # fmt: skip
    return sorted(listed, key=lambda account: account.username)


def account_of(connection: Connection, name: str) -> dict[str, Any]:
    """The server's account of this name. Raises StudyError when there is none."""
    users = {user["username"]: user for user in call(connection, "GET", "users")["items"]}
    if name not in users:
        raise StudyError(f"user {name!r}: has no account at {connection.url}; see: plumbline users list")
    account: dict[str, Any] = users[name]
    return account


def answers_by_user(connection: Connection) -> Counter[str]:
    """Return how many answers of any status each user has on the server."""
    counts: Counter[str] = Counter()
    for dataset in call(connection, "GET", "me/datasets")["items"]:
        for user in call(connection, "GET", f"datasets/{dataset['id']}/users/progress")["users"]:
            counts[user["username"]] += sum(user["completed"].values()) + sum(user["pending"].values())
    return counts


def languages(connection: Connection, home: Home) -> dict[str, tuple[str, ...]]:
    """Return the languages that each annotator of a server reads, as recorded in the home."""
    codes_by_name: dict[str, list[str]] = _read(home).get(_server_key(connection), {})
    return {name: tuple(codes) for name, codes in codes_by_name.items()}


def keep_languages(connection: Connection, home: Home, name: str, codes: Sequence[str]) -> None:
    """Record which languages an annotator reads; no languages remove the entry."""
    if not codes and name not in languages(connection, home):
        return
    make_folder(home)
    with changing(home):
        content = _read(home)
        here = content.setdefault(_server_key(connection), {})
        here.pop(name, None)
        if codes:
            here[name] = list(dict.fromkeys(codes))
        write_private(home.languages_file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def languages_at(argilla: Argilla, home: Home) -> dict[str, tuple[str, ...]]:
    """Return `languages` of a connected server, the home's or another."""
    return languages(argilla.connection or Connection(argilla.url, ""), home)


def languages_unasked(home: Home) -> dict[str, tuple[str, ...]]:
    """Return `languages` of the server that the environment names, or the home's, without a request."""
    url = os.environ.get("ARGILLA_API_URL", "").strip().rstrip("/")
    return {name: tuple(codes) for name, codes in _read(home).get(url or OWN_SERVER, {}).items()}


def _server_key(connection: Connection) -> str:
    return OWN_SERVER if connection.home is not None else connection.url


def _read(home: Home) -> dict[str, dict[str, list[str]]]:
    try:
        content: Any = read_json(home.languages_file)
        return {str(server_url): {str(name): [str(code) for code in codes] for name, codes in here.items()}
                for server_url, here in content.items()}  # fmt: skip
    except FileNotFoundError:
        return {}
    except (DataError, AttributeError, TypeError) as error:
        line = f"{home.languages_file}: damaged ({error})"
        raise DataError(f"{line}; move it away and set the languages again") from error


@dataclass(frozen=True)
class Admission:
    """The people who may enter each workspace, without simulated raters."""

    readers: Mapping[str, int]  #: of each workspace
    unknown: int  #: annotators with unknown languages, who are let in everywhere
    out: Sequence[str] = ()  #: user names of former members who are excluded, or whom `raters.people` does not name
    people: int = 0  #: how many people are let in somewhere


def published(records: CampaignRecords, argilla: Argilla) -> dict[Queue, DatasetListing]:
    """Return the study's datasets in Argilla, by queue. Raises ServiceError if one is missing."""
    listed, study = argilla.datasets(), records.study
    datasets = {}
    for queue in queues_of(records.pairs):
        dataset = listed.get((queue.workspace(study.name), queue.dataset(study.name)))
        if dataset is None:
            raise ServiceError(
                f"Argilla at {argilla.url} has no dataset {queue.dataset(study.name)!r};"
                f" run `{study.command('publish')}` first"
            )
        datasets[queue] = dataset
    return datasets


def training_datasets(
    study_name: str, argilla: Argilla, known_items: Sequence[TrainingItem]
) -> Iterator[tuple[DatasetListing, dict[str, TrainingItem]]]:
    """Yield the existing datasets of known pairs, with their pairs by id."""
    listed = argilla.datasets() if known_items else {}
    for queue, items in by_queue(known_items).items():
        dataset = listed.get((workspace_name(study_name, queue.languages), queue.dataset(study_name)))
        if dataset is not None:
            yield dataset, {item.pair.pair_id: item for item in items}


def workspaces_of(study_name: str, argilla: Argilla) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the study's existing workspaces by name: their ids, and the languages that their raters read."""
    named = re.compile(rf"{re.escape(study_name)}((?:-[A-Z]{{2,3}})+)")
    workspaces = {}
    for name, workspace_id in argilla.workspaces().items():
        match = named.fullmatch(name)
        if match is not None:
            workspaces[name] = (workspace_id, frozenset(match[1].lower().strip("-").split("-")))
    return workspaces


def is_offered(study: Study) -> bool:
    """Return whether this study has offered its sample in Argilla: before, datasets of its name are another's."""
    return any(offering.to == ARGILLA for offering in CampaignRecords(study).offerings)


def admit_annotators(study: Study, argilla: Argilla, reads: Mapping[str, Sequence[str]]) -> Admission:
    """Admit the study's annotators to its workspaces in languages that they read; to none before it is published.

    `reads` are languages by user name; annotators who are not in it are let in everywhere. Members stay, unless they
    are excluded or `raters.people` does not name them: then they are removed, our server gives others what they were
    shown, and their answers stay on the server.
    """
    excluded, readers, out, let_in = excluded_raters(CampaignRecords(study).decided), {}, set[str](), set[str]()
    able_to_rate = annotators(study.raters.people, argilla)
    people = [user for user in able_to_rate if account_pseudonym(study.name, user.id, simulated=False) not in excluded]
    workspaces = workspaces_of(study.name, argilla) if is_offered(study) else {}
    for name, (workspace_id, languages) in workspaces.items():
        able = [user for user in people if languages <= set(reads.get(user.username, languages))]
        admit(workspace_id, argilla, able)
        readers[name] = len(able)
        let_in |= {user.id for user in able}
        stay = {user.id for user in people}
        for user in argilla.members(workspace_id).values():
            if is_person(user) and user.id not in stay:
                argilla.request("DELETE", f"/workspaces/{workspace_id}/users/{user.id}")
                out.add(user.username)
    return Admission(readers, sum(user.username not in reads for user in people), sorted(out), len(let_in))


def annotators(named: Collection[str] | None, argilla: Argilla) -> list[ArgillaUser]:
    """Return the accounts of people who may rate: the named ones, or with None all annotators of the server."""
    return [user for user in argilla.users() if is_person(user) and (named is None or user.username in named)]


def refuse_unknown(study: Study, argilla: Argilla) -> None:
    """Raise StudyError if one of `raters.people` has no account that can rate."""
    able = {user.username for user in annotators(study.raters.people, argilla)}
    if missing := [name for name in study.raters.people or () if name not in able]:
        more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
        raise StudyError(
            f"{study.file}: raters.people: {missing[0]!r} has no annotator's account at {argilla.url}{more};"
            f" `{study.command('users invite')}` creates missing accounts"
        )


def named_raters(raters: RatersSpec, argilla: Argilla) -> dict[str, ArgillaUser] | None:
    """Return the accounts of `raters.people` and `raters.former` by id, whose answers count in any workspace.

    Returns None if the study names nobody: then the members of a workspace count.
    """
    if raters.people is None:
        return None
    named = {*raters.people, *raters.former}
    return {user.id: user for user in argilla.users() if user.username in named and is_person(user)}


def names_at(study_name: str, argilla: Argilla) -> dict[str, str]:
    """The user names of a server's annotators by their pseudonyms in a study."""
    people = filter(is_person, argilla.users())
    return {account_pseudonym(study_name, user.id, simulated=False): user.username for user in people}


def is_person(user: ArgillaUser) -> bool:
    """Return whether an account is a person's: an annotator, not simulated and not a crowd worker."""
    return user.role == "annotator" and not user.simulated and not user.username.startswith(WORKER)


def admit(workspace_id: str, argilla: Argilla, users: Sequence[ArgillaUser]) -> None:
    """Add users to a workspace that lacks them.

    Owners are never added: the workspace's admins could read their keys.
    """
    present = argilla.members(workspace_id)
    for user in users:
        if user.id not in present:
            argilla.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": user.id})


_SECONDS = 3.0  # for each request: a status does not wait for a server that hangs


@dataclass(frozen=True)
class ServerAnswers:
    """The answers on a server."""

    url: str  #: empty if no server runs on this machine and none is configured
    trouble: str = ""  #: why the server could not be read; empty if it was
    by_account: Mapping[str, int] = field(default_factory=dict)  #: submitted answers, by user name

    @property
    def answers(self) -> int:
        """The number of answers."""
        return sum(self.by_account.values())


def answered_now(study_name: str, home: Home, datasets: Collection[str]) -> ServerAnswers:
    """Return the submitted answers in a study's `datasets` on the running server, the home's own or the configured one.

    Any trouble is returned in plain words, and nothing is raised. The server is only read.
    """
    url = ""
    try:
        if (connection := configured() or probe(home)) is None:
            return ServerAnswers("", "it does not run")
        url = connection.url
        return ServerAnswers(url, "", _counted(study_name, connection, datasets))
    except PlumblineError as error:
        return ServerAnswers(url, str(error))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServerAnswers(url, f"{url}: its reply is not an Argilla response")


def is_served(home: Home) -> bool:
    """Return whether a server runs on a home, or the environment names another; it is only asked who it is."""
    try:
        return (configured() or probe(home)) is not None
    except PlumblineError:
        return True  # what is wrong is said where it is used


def _counted(study_name: str, connection: Connection, datasets: Collection[str]) -> dict[str, int]:
    """Return the submitted answers by account."""

    def read(path: str) -> Any:
        return call(connection, "GET", path, timeout=_SECONDS)

    counts = Counter[str]()
    names = {workspace["id"]: workspace["name"] for workspace in read("me/workspaces")["items"]}
    for dataset in read("me/datasets")["items"]:
        if dataset["name"] in datasets and names.get(dataset["workspace_id"], "").startswith(f"{study_name}-"):
            for user in read(f"datasets/{dataset['id']}/users/progress")["users"]:
                counts[user["username"]] += user["completed"]["submitted"] + user["pending"]["submitted"]
    return {name: number for name, number in counts.items() if number}

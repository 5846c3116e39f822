"""Annotators' accounts on whatever Argilla is used, the home's own or one elsewhere, by names and languages.

Which languages an annotator reads is not Argilla's to know: the home keeps it, for each server by itself.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from annotation import server
from annotation.argilla.client import SIMULATED, Argilla
from annotation.pseudonyms import WORKER
from annotation.server.home import changing, forget, new_user, remember, write_private
from annotation.server.users import call
from plumbline.errors import DataError, StudyError
from plumbline.languages import language_code
from plumbline.reading import read_json

#: Names that people can type and that no shell, URL or table takes for something else.
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
    connection: server.Connection, home: server.Home, names: Sequence[str], languages: Sequence[str] = ()
) -> dict[str, str | None]:
    """Make annotators; their drawn passwords by name, None for one who had an account before.

    All names are checked before the first account is made. Languages are kept for everyone named. Raises StudyError
    for a name or language that cannot be, ServiceError when the server refuses.
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
            raise StudyError(f"user {name!r}: has an account as {present[name]['role']}; choose another name")
    passwords: dict[str, str | None] = {}
    for name in names:
        if name in present:
            passwords.setdefault(name, None)
        else:
            account = server.ensure_user(connection, name, first_name=name)
            passwords.setdefault(name, account.password)
        if codes:
            keep_languages(connection, home, name, codes)
    return passwords


def check_name(name: str) -> None:
    """Raise StudyError unless a person can have this name."""
    if name.startswith((SIMULATED, WORKER)) or NUMBERED.fullmatch(name) or name == server.OWNER:
        names = f"{SIMULATED}..., {WORKER}..., rater-1 and {server.OWNER}"
        raise StudyError(f"user {name!r}: the platform gives names like {names} itself; choose another")
    if not NAME.fullmatch(name) or name != unicodedata.normalize("NFC", name):
        raise StudyError(f"user {name!r}: a name has 1 to 64 letters, digits and . _ - + @, and begins and ends with a "
                         "letter or digit")  # fmt: skip


def reset(connection: server.Connection, name: str) -> str:
    """Draw a new password for an account and return it; its key and answers stay. Raises as `add`."""
    user = account_of(connection, name)
    home = connection.home
    if home is not None and name == server.credentials(home).owner.username:
        raise StudyError(f"user {name!r}: the server's own account; its password is in {home.credentials_file}")
    drawn = new_user(name, user["api_key"])
    call(connection, "PATCH", f"users/{user['id']}", {"password": drawn.password})
    if home is not None:
        remember(home, drawn)
    return drawn.password


def remove(connection: server.Connection, home: server.Home, name: str, *, force: bool = False) -> int:
    """Delete an account; the number of answers that went with it.

    Argilla deletes a user's answers with the user: without `force` an account that has some is refused (DataError).
    """
    user = account_of(connection, name)
    if user["role"] != "annotator":
        raise StudyError(f"user {name!r}: has the role {user['role']}; only annotators can be removed here")
    answers = answers_by_user(connection)[name]
    if answers and not force:
        raise DataError(f"user {name!r}: has given {answers} answers, which Argilla deletes with the account; collect "
                        "them first, and add --force if they shall go")  # fmt: skip
    call(connection, "DELETE", f"users/{user['id']}")
    if connection.home is not None:
        forget(connection.home, name)
    keep_languages(connection, home, name, ())
    return answers


def accounts(connection: server.Connection, home: server.Home) -> list[Account]:
    """All accounts of the server, by name."""
    answers, reads = answers_by_user(connection), languages(connection, home)
    users = call(connection, "GET", "users")["items"]
    listed = [Account(user["username"], user["role"], reads.get(user["username"], ()), answers[user["username"]])
              for user in users]  # fmt: skip
    return sorted(listed, key=lambda account: account.username)


def account_of(connection: server.Connection, name: str) -> dict[str, Any]:
    """The server's account of this name. Raises StudyError when there is none."""
    users = {user["username"]: user for user in call(connection, "GET", "users")["items"]}
    if name not in users:
        raise StudyError(f"user {name!r}: has no account at {connection.url}; see: python -m annotation users list")
    account: dict[str, Any] = users[name]
    return account


def answers_by_user(connection: server.Connection) -> Counter[str]:
    """How many answers of any status each user has on the server."""
    counts: Counter[str] = Counter()
    for dataset in call(connection, "GET", "me/datasets")["items"]:
        for user in call(connection, "GET", f"datasets/{dataset['id']}/users/progress")["users"]:
            counts[user["username"]] += sum(user["completed"].values()) + sum(user["pending"].values())
    return counts


def languages(connection: server.Connection, home: server.Home) -> dict[str, tuple[str, ...]]:
    """Which languages each annotator of a server reads, as far as the home was told."""
    codes_by_name: dict[str, list[str]] = _read(home).get(_server_key(connection), {})
    return {name: tuple(codes) for name, codes in codes_by_name.items()}


def keep_languages(connection: server.Connection, home: server.Home, name: str, codes: Sequence[str]) -> None:
    """Remember which languages an annotator reads; none takes the entry out."""
    if not codes and name not in languages(connection, home):
        return
    server.make_folder(home)
    with changing(home):
        content = _read(home)
        here = content.setdefault(_server_key(connection), {})
        here.pop(name, None)
        if codes:
            here[name] = list(dict.fromkeys(codes))
        write_private(home.languages_file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def languages_at(argilla: Argilla, home: server.Home) -> dict[str, tuple[str, ...]]:
    """The same for a server that is being worked with, the home's own or one elsewhere."""
    return languages(argilla.connection or server.Connection(argilla.url, ""), home)


def languages_unasked(home: server.Home) -> dict[str, tuple[str, ...]]:
    """The same for the server that the environment names, or the home's own, which is not asked."""
    url = os.environ.get("ARGILLA_API_URL", "").strip().rstrip("/")
    return {name: tuple(codes) for name, codes in _read(home).get(url or OWN_SERVER, {}).items()}


def _server_key(connection: server.Connection) -> str:
    return OWN_SERVER if connection.home is not None else connection.url


def _read(home: server.Home) -> dict[str, dict[str, list[str]]]:
    try:
        content: Any = read_json(home.languages_file)
        return {str(server_url): {str(name): [str(code) for code in codes] for name, codes in here.items()}
                for server_url, here in content.items()}  # fmt: skip
    except FileNotFoundError:
        return {}
    except (DataError, AttributeError, TypeError) as error:
        line = f"{home.languages_file}: damaged ({error})"
        raise DataError(f"{line}; move it away and give the languages again") from error

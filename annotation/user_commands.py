"""`python -m annotation users`: accounts of annotators, and invitations."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators, names_at
from annotation.argilla.client import attach, reach
from annotation.letters import (
    AnnotatorProgress,
    Letter,
    answered_since,
    entrance,
    invite,
    remind,
    standings,
    unwritten,
    write_letters,
)
from annotation.names import known_names
from annotation.options import home_of
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import read_shown
from annotation.status.status import by_name, read_status, server_line, with_server
from annotation.status.text import ago
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import count
from plumbline import cli
from plumbline.commands import as_called
from plumbline.languages import language_name
from plumbline.study import Study, load_study


def unread_lines(study: Study, queues: Mapping[Queue, int], reads: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each queue that no annotator reads; `queues` have their numbers of pairs.

    `reads` are languages (codes) by user name. Nothing is said where nobody's languages are known, and where one of
    the study's people is known without any: who reads what cannot be told then.
    """
    people = study.raters.people
    able = [set(codes) for name, codes in reads.items() if people is None or name in people]
    if not able or any(name not in reads for name in people or ()):
        return []
    return [
        f"nobody reads {_names(queue.languages)}: {count(number, 'pair')} of {queue.dataset(study)} wait for somebody"
        f" (`users add NAME --languages {','.join(sorted(queue.languages))}`), or for `languages` in the study"
        for queue, number in queues.items()
        if not any(queue.languages <= codes for codes in able)
    ]


def idle_lines(
    study: Study, queues: Iterable[Queue], reads: Mapping[str, Sequence[str]], names: Iterable[str]
) -> list[str]:
    """A line for each of some people who reads none of the study's queues; who reads what is unknown may read all."""
    wanted = sorted({_names(queue.languages) for queue in queues})
    able = {name: set(reads[name]) for name in names if reads.get(name)}
    return [
        f"{name} reads {_names(codes)}: nothing in {study.name} is for {name}; its queues are in {'; '.join(wanted)}"
        f" (`users add {name} --languages CODES` says what {name} reads)"
        for name, codes in able.items()
        if wanted and not any(queue.languages <= codes for queue in queues)
    ]


def target_lines(study: Study, reads: Mapping[str, Sequence[str]]) -> list[str]:
    """Before a sample is drawn: into which languages texts are put that no annotator reads."""
    people = study.raters.people
    read = {code for name, codes in reads.items() if people is None or name in people for code in codes}
    lines = []
    for name, kind in study.transforming.items():
        if kind.translates and kind.languages and read and (unread := sorted(set(kind.languages) - read)):
            able = [code for code in kind.languages if code in read]
            advice = f"; `languages: [{', '.join(able)}]` in the study leaves them out" if able else ""
            lines.append(f"{name} puts texts into {count(len(unread), 'language')} that no annotator reads{advice}")
    return lines


def _names(codes: Iterable[str]) -> str:
    return " and ".join(map(language_name, sorted(codes)))


def add_users(options: argparse.Namespace) -> int:
    """Make annotators' accounts."""
    home = home_of(options)
    codes = [code.strip() for code in options.languages.split(",") if code.strip()]
    study = load_study(options.study, options.exports) if options.study else None
    with reach(home) as connection:
        for name, password in accounts.add(connection, home, options.names, codes).items():
            if password is not None:
                print(f"Annotator {name}, password {password}   (shown this once)")
            else:
                users = as_called("python -m annotation users")
                print(f"Annotator {name} has an account; a new password: {users} reset {name}")
        if study is not None:
            # Into the workspaces that there are; publishing lets them into the others.
            with attach(connection) as argilla:
                admit_annotators(study, argilla, accounts.languages(connection, home))
            _say_idle(study, accounts.languages(connection, home), options.names)
    return 0


def _say_idle(study: Study, reads: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
    """Say who can answer nothing of the study's sample, as far as there is one."""
    if (study.folder / "pairs.parquet").exists():
        for line in idle_lines(study, list(queues_of(read_shown(study))), reads, names):
            print(line, file=sys.stderr)


def invite_users(options: argparse.Namespace) -> int:
    """Make the accounts of a study's people, and word invitations."""
    study, home = cli.study_of(options), home_of(options)
    with reach(home) as connection:
        invitations = invite(study, connection, home, options.names, options.address or "")
        _say_idle(study, accounts.languages(connection, home), options.names or study.raters.people or ())
    _hand_out(invitations, options.to)
    if server.is_loopback(urlsplit(options.address or connection.url).hostname or ""):
        print(f"{options.address or connection.url} can be opened on this machine alone; --address names the one that"
              " others open (docs/howto/tls.md)", file=sys.stderr)  # fmt: skip
    return 0


def remind_users(options: argparse.Namespace) -> int:
    """Show who is behind, and word letters."""
    study, home = cli.study_of(options), home_of(options)
    evidence, now = Evidence.read(study), datetime.now(UTC)
    status, names = read_status(study, now, evidence=evidence), known_names(home, study)
    status = with_server(status, evidence.collected, home)
    annotators = answered_since(standings(status, evidence.signs, names), by_name(status, names))
    rows = [_row(annotator, now) for annotator in annotators]
    header = ["name", "rater", "answers", "open", "last answer", "remarks"]
    print(cli.columns(header, rows, empty=f"nobody is known by name; `{study.command('annotation collect')}` brings"
                                          " names, of answers in Argilla and in files"), end="\n\n")  # fmt: skip
    if line := server_line(status):
        print(line, end="\n\n")
    address = entrance(options.address or "", has_page=not os.environ.get("ARGILLA_API_URL"))
    if line := unwritten(annotators):
        print(line, end="\n\n")
    _hand_out(remind(study, annotators, accounts.languages_unasked(home), address), options.to)
    return 0


def _row(annotator: AnnotatorProgress, now: datetime) -> list[str]:
    last, number_open = (
        ago(annotator.last, now) if annotator.last else "–",
        "–" if annotator.open is None else str(annotator.open),
    )
    return [annotator.name, annotator.rater_id, str(annotator.answers), number_open, last, annotator.said]


def _hand_out(letters: Sequence[Letter], folder: Path | None) -> None:
    """Print letters, or write them where only this user can read them."""
    if folder is None:
        print("\n---\n".join(letter.text for letter in letters), end="")
        return
    for path, letter in zip(write_letters(letters, folder), letters, strict=True):
        print(f"{path}: to {letter.name}; only you can read it")


def list_users(options: argparse.Namespace) -> int:
    """Show all accounts."""
    home, study = home_of(options), load_study(options.study, options.exports) if options.study else None
    with reach(home, existing=True) as connection:
        rows = [[account.username, account.role, ",".join(account.languages) or "-", str(account.answers)]
                for account in accounts.accounts(connection, home)]  # fmt: skip
        names: dict[str, str] = {}
        if study is not None:
            with attach(connection) as argilla:
                names = names_at(study, argilla)
    raters = {name: rater for rater, name in names.items()}
    header = ["name", "role", "languages", "answers"]
    if study is not None:
        header, rows = [*header, "rater"], [[*row, raters.get(row[0], "-")] for row in rows]
        if study.raters.people is not None:
            named = dict.fromkeys(study.raters.people, "yes") | dict.fromkeys(study.raters.former, "former")
            header, rows = [*header, "in the study"], [[*row, named.get(row[0], "no")] for row in rows]
    print(cli.columns(header, rows))
    return 0


def reset_users(options: argparse.Namespace) -> int:
    """Draw a new password."""
    with reach(home_of(options), existing=True) as connection:
        password = accounts.reset(connection, options.name)
    print(f"User {options.name}, password {password}   (shown this once)")
    return 0


def remove_users(options: argparse.Namespace) -> int:
    """Delete an account."""
    home = home_of(options)
    with reach(home, existing=True) as connection:
        answers = accounts.remove(connection, home, options.name, force=options.force)
    print(f"User {options.name} removed, and {count(answers, 'answer')} with the account")
    return 0

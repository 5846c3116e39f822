"""An invitation for each annotator of a study: where to go, as whom, and how much work it is."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.client import attach
from annotation.argilla.workspaces import admit_annotators
from annotation.crowd.pay import assumed_hours
from annotation.sampling.queues import queues_of
from annotation.sampling.shown import shown
from annotation.server.home import write_private
from annotation.wordings import ENGLISH
from plumbline.errors import StudyError
from plumbline.languages import language_name
from plumbline.study import Study
from plumbline.study.crowd import PaySpec


@dataclass(frozen=True)
class Invitation:
    """What one person is told."""

    name: str
    text: str = field(repr=False)  #: holds the password


def invite(
    study: Study, connection: server.Connection, home: server.Home, names: Sequence[str], address: str = ""
) -> list[Invitation]:
    """Make accounts where they are missing, let them in, and word an invitation for each of `names`.

    `names` default to the study's `raters.people`; `address` to where the server is. Passwords that this machine does
    not know, of accounts on an Argilla elsewhere, are not told. Raises StudyError where nobody is named, for a person
    whom the study does not name, and for a name that cannot be.
    """
    invited = list(dict.fromkeys(names)) or list(study.raters.people or ())
    if not invited:
        raise StudyError(f"{study.file} names nobody in raters.people; add names there, or to the command")
    if study.raters.people is not None and (others := [one for one in invited if one not in study.raters.people]):
        raise StudyError(f"{study.file}: raters.people does not name {others[0]!r}; add the name there first")
    work = {queue: len(pairs) for queue, pairs in queues_of(shown(study)).items()}  # refused before accounts are made
    hours = _hours(study)
    drawn = accounts.add(connection, home, invited)
    reads = accounts.languages(connection, home)
    admit_annotators(study, attach(connection), reads)
    known = server.credentials(connection.home) if connection.home is not None else None
    made = []
    for name in invited:
        own = known.find(name) if known is not None else None
        codes = reads.get(name, ())
        queues = [(queue.dataset(study), number, hours[queue]) for queue, number in work.items()
                  if not codes or queue.languages <= set(codes)]  # fmt: skip
        account = {"name": name, "password": own.password if own is not None else drawn[name] or ""}
        made.append(Invitation(name, _text(study, address or connection.url, account, codes, queues)))
    return made


def write_invitations(invitations: Sequence[Invitation], folder: Path) -> list[Path]:
    """A file for each, which only this user can read."""
    server.make_folder(server.Home(folder))
    paths = [folder / f"{one.name}.txt" for one in invitations]
    for path, one in zip(paths, invitations, strict=True):
        write_private(path, one.text)
    return paths


def _hours(study: Study) -> Mapping[Any, float]:
    """How long each queue takes whoever rates all of it, at the seconds a pair that a crowd is paid for."""
    spec = study.crowd.pay if study.crowd is not None else PaySpec()
    return {
        queue: assumed_hours([pair.transformation for pair in pairs], spec)
        for queue, pairs in queues_of(shown(study)).items()
    }


def _text(
    study: Study,
    address: str,
    account: Mapping[str, str],
    codes: Sequence[str],
    queues: Sequence[tuple[str, int, float]],
) -> str:
    said = _words()
    words = next((said[code] for code in codes if code in said), said[ENGLISH])
    rows = [
        (words["address"], address),
        (words["name"], account["name"]),
        (words["password"], account["password"] or words["kept"]),
    ]
    if codes:
        rows.append((words["languages"], ", ".join(map(language_name, codes))))
    lines = [words["title"].format(study=study.name), *([study.description] if study.description else []), ""]
    lines += [f"{what}: {value}" for what, value in rows]
    lines += ["", f"{words['work']}:"]
    for name, number, hours in queues:
        lines.append("- " + words["dataset"].format(dataset=name, pairs=number, minutes=math.ceil(60 * hours)))
    return "\n".join([*lines, "", words["how"]]) + "\n"


@functools.cache
def _words() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = yaml.safe_load(
        files("annotation").joinpath("invitation.yaml").read_text(encoding="utf-8")
    )
    return found

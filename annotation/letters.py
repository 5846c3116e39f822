"""Letters to a study's annotators: invitations (where to go, as whom, how much work) and reminders (what is open)."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import langcodes
import pandas as pd
import yaml

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators, names_at
from annotation.argilla.client import attach
from annotation.argilla.publish import rubric_to_ask
from annotation.argilla.training import by_queue
from annotation.crowd.platform import assumed_hours
from annotation.questions import ENGLISH
from annotation.records import Sign
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import read_shown
from annotation.server.home import write_private
from annotation.status.progress import FEW, IDLE
from annotation.status.status import Status
from annotation.training import read_items
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.crowd import PaySpec

_SIGNS = {"fast": "too fast", "apart": "apart from the others"}  # signs that a person is told of


@dataclass(frozen=True)
class Letter:
    """What one person is told."""

    name: str
    rater_id: str  #: what the letter's file is called: a name may be anything
    text: str = field(repr=False)  #: an invitation holds the password


@dataclass(frozen=True)
class AnnotatorProgress:
    """How one annotator gets on."""

    name: str
    rater_id: str
    answers: int
    open: int | None  #: items that still want an answer and have none of the person's; None for who answers in a file
    last: datetime | None  #: when the last answer was submitted
    excluded: bool
    out: bool  #: no longer let in
    remarks: Mapping[str, str]  #: why a letter says something: behind, fast, apart, done; what was found, in words

    @property
    def said(self) -> str:
        """What a table says of them."""
        apart = ["excluded"] * self.excluded + ["taken out"] * self.out
        return "; ".join(apart or map(": ".join, self.remarks.items()))


def invite(
    study: Study, connection: server.Connection, home: server.Home, names: Sequence[str], address: str = ""
) -> list[Letter]:
    """Make accounts where they are missing, let them in, and word an invitation for each of `names`.

    `names` default to the study's `raters.people`; `address` to where the server is. Passwords that this machine does
    not know, of accounts on an Argilla elsewhere, are not told; who reads none of the study's languages gets no letter.
    Raises StudyError where nobody is named, for a person whom the study does not name, and for a name that cannot be.
    """
    invited = list(dict.fromkeys(names)) or list(study.raters.people or ())
    if not invited:
        raise StudyError(f"{study.file} names nobody in raters.people; add names there, or to the command")
    if study.raters.people is not None and (others := [name for name in invited if name not in study.raters.people]):
        raise StudyError(f"{study.file}: raters.people does not name {others[0]!r}; add the name there first")
    work = _work(study)  # refused before accounts are made
    drawn = accounts.add(connection, home, invited)
    reads = accounts.languages(connection, home)
    with attach(connection) as argilla:
        admit_annotators(study, argilla, reads)
        pseudonyms = {name: rater for rater, name in names_at(study, argilla).items()}
    accounts_here = server.credentials(connection.home) if connection.home is not None else None
    entry = entrance(address or connection.url, has_page=connection.home is not None)
    letters = []
    for name in invited:
        account_here = accounts_here.find(name) if accounts_here is not None else None
        codes = reads.get(name, ())
        queues = [own_work for queue, own_work in work.items() if not codes or queue.languages <= set(codes)]
        if not queues:
            continue  # `readers.idle_lines` says so
        account = {"name": name, "password": account_here.password if account_here is not None else drawn[name] or ""}
        letters.append(Letter(name, pseudonyms[name], _text(study, entry, account, codes, queues)))
    return letters


def entrance(address: str, *, has_page: bool) -> str:
    """Where annotators begin on a server: our own has a page for them."""
    return f"{address.rstrip('/')}/work" if has_page and address else address


def write_letters(letters: Sequence[Letter], folder: Path) -> list[Path]:
    """A file for each by its pseudonym, which only this user can read; a folder that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths = [folder / f"{letter.rater_id}.txt" for letter in letters]
    for path, letter in zip(paths, letters, strict=True):
        write_private(path, letter.text)
    return paths


def standings(status: Status, signs: Sequence[Sign], names: Mapping[str, str]) -> list[AnnotatorProgress]:
    """How those annotators get on whose names are known, those with most left to do first."""
    rules = {(sign.rater_id, sign.rule): sign.evidence for sign in signs}
    rows = []
    for row in status.raters[status.raters["rater_id"].isin(list(names))].to_dict("records"):
        rater, number_open = row["rater_id"], None if pd.isna(row["open"]) else int(row["open"])
        remarks = {"behind": row["behind"], **{key: rules.get((rater, rule), "") for key, rule in _SIGNS.items()}}
        remarks["done"] = "all is answered" if row["answers"] and number_open == 0 else ""
        last = None if pd.isna(row["last"]) else row["last"]
        remarks_made = {key: what for key, what in remarks.items() if what}
        rows.append(
            AnnotatorProgress(
                names[rater], rater, row["answers"], number_open, last, row["excluded"], row["out"], remarks_made
            )
        )
    return sorted(rows, key=lambda annotator: (-(annotator.open or 0), annotator.name))


def answered_since(annotators: Sequence[AnnotatorProgress], more: Mapping[str, int]) -> list[AnnotatorProgress]:
    """The same with who has `more` answers on the server than were collected, by name: nobody of these is behind.

    Who was never collected from is among them, without a word of what is open.
    """
    here = [
        replace(
            annotator,
            answers=more[annotator.name],
            open=None
            if annotator.open is None
            else max(0, annotator.open - (more[annotator.name] - annotator.answers)),
            remarks={key: what for key, what in annotator.remarks.items() if key not in ("behind", "done")},
        )
        if annotator.name in more
        else annotator
        for annotator in annotators
    ]
    new = sorted(set(more) - {annotator.name for annotator in annotators})
    return [*here, *(AnnotatorProgress(name, "", more[name], None, None, False, False, {}) for name in new)]


def remind(
    study: Study, annotators: Sequence[AnnotatorProgress], reads: Mapping[str, Sequence[str]], address: str
) -> list[Letter]:
    """A letter to each of whom there is something to say, in the person's language; none to who is excluded or out."""
    letters = []
    for annotator in annotators:
        if annotator.remarks and not (annotator.excluded or annotator.out):
            words = _words_for(reads.get(annotator.name, ()))
            parts = [words[key].format(open=annotator.open, address=address).strip() for key in annotator.remarks]
            title = words["thanks" if "done" in annotator.remarks else "remind"].format(study=study.name)
            head = [title, "", words["dear"].format(name=annotator.name), ""]
            letters.append(Letter(annotator.name, annotator.rater_id, "\n".join([*head, *parts]) + "\n"))
    return letters


def unwritten(annotators: Sequence[AnnotatorProgress]) -> str:
    """Who gets no letter although something is open for them, and why; empty where nobody is."""
    names = [
        annotator.name
        for annotator in annotators
        if annotator.open and not (annotator.remarks or annotator.excluded or annotator.out)
    ]
    if not names:
        return ""
    return (
        f"No letter to {', '.join(names)}: items are open for them, but only those count as behind who gave fewer than"
        f" {FEW:g} times the dataset's median number of answers, or none for {IDLE.days} days before collecting"
    )


def _work(study: Study) -> dict[Queue, tuple[str, int, float]]:
    """Each dataset, how many items are in it, and the hours of all, at the seconds that a crowd is paid for.

    First those that raters learn on.
    """
    spec, queues = study.crowd.pay if study.crowd is not None else PaySpec(), queues_of(read_shown(study))
    read = {queue.languages for queue in queues}
    by_training_queue = by_queue(read_items(study, rubric_to_ask(study)[0]))
    training = {
        queue: [item.pair for item in items] for queue, items in by_training_queue.items() if queue.languages in read
    }
    return {
        queue: (queue.dataset(study), len(pairs), assumed_hours([pair.transformation for pair in pairs], spec))
        for queue, pairs in {**training, **queues}.items()
    }


def _text(
    study: Study,
    address: str,
    account: Mapping[str, str],
    codes: Sequence[str],
    queues: Sequence[tuple[str, int, float]],
) -> str:
    words = _words_for(codes)
    rows = [
        (words["address"], address),
        (words["name"], account["name"]),
        (words["password"], account["password"] or words["kept"]),
    ]
    if codes:
        code_of_words = next((code for code in codes if code in _words()), ENGLISH)
        names = [langcodes.Language.get(code).display_name(code_of_words) for code in codes]
        rows.append((words["languages"], ", ".join(names)))
    lines = [words["title"].format(study=study.name), *([study.description] if study.description else []), ""]
    lines += [f"{what}: {value}" for what, value in rows]
    lines += ["", f"{words['work']}:"]
    for name, number, hours in queues:
        lines.append("- " + words["dataset"].format(dataset=name, pairs=number, minutes=math.ceil(60 * hours)))
    return "\n".join([*lines, "", words["how"]]) + "\n"


def _words_for(codes: Sequence[str]) -> dict[str, str]:
    """The words in the first of some languages that has any, else in English."""
    words = _words()
    return next((words[code] for code in codes if code in words), words[ENGLISH])


@functools.cache
def _words() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = yaml.safe_load(
        files("annotation").joinpath("letters.yaml").read_text(encoding="utf-8")
    )
    return words

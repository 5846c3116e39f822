"""A study's annotators: accounts, languages and invitations; the commands of `users`."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from cyclopts import Parameter

from annotation import server
from annotation.argilla import accounts
from annotation.argilla.accounts import admit_annotators, names_at
from annotation.argilla.client import attach, configured, reach
from annotation.argilla.publish import has_rating_page
from annotation.campaign.counting import asked_again, excluded_raters
from annotation.campaign.records import PAIRS, CampaignRecords
from annotation.crowd.pay import assumed_hours
from annotation.crowd.tally import counted
from annotation.options import Address, CampaignOptions, Hidden, HomeOptions
from annotation.page.task import named, rating_words
from annotation.page.training import by_queue, read_items, training_rubric
from annotation.questions.entries import ENGLISH
from annotation.questions.wordings import packaged, words_in
from annotation.sampling.queues import Queue, queues_of
from annotation.server.home import is_locked, write_private
from annotation.server.plugin.plumbline_argilla.rate import LINK, WORK
from annotation.status.progress import Workload
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import rubric_to_ask
from plumbline.cli import Local, Named, StudyOptions, columns
from plumbline.errors import StudyError
from plumbline.languages import display_name, language_code, language_name
from plumbline.manifest import stage
from plumbline.records import Pair
from plumbline.study import Study, load_study
from plumbline.study.crowd import PaySpec
from plumbline.words import count

_LETTERS = "letters.yaml"


@dataclass(frozen=True)
class Letter:
    """A letter to one annotator."""

    name: str
    rater_id: str  #: name of the letter's file, since a person's name may be anything
    text: str = field(repr=False)  #: an invitation holds the password


def invite(
    study: Study,
    connection: server.Connection,
    home: server.Home,
    names: Sequence[str],
    address: str = "",
    *,
    links: Literal["", "missing", "all"] = "",
) -> Iterator[Letter]:
    """Create missing accounts, admit them, and return an invitation to each of `names`.

    `names` default to the study's `raters.people`, `address` to the server's own. A letter has a new link, made
    when the letter is asked for (`links`: of those who have none, or of all, whose old ones end); or name and password,
    but no password that this machine does not know (of an account on another Argilla). Who is excluded, reads none of
    the study's languages, or keeps a link, gets none, and a line says so.
    Raises StudyError if nobody is named, for a person whom the study does not name, for an invalid name, and for links
    of another Argilla.
    """
    invited = people_to_invite(study, names)
    if links:
        accounts.refuse_without_links(connection)
    evidence = Evidence(study).read_all()
    evidence.need(PAIRS)  # refused before accounts are made
    open_to = _open_pairs(evidence)
    passwords = accounts.add(connection, home, invited)
    reads = accounts.languages(connection, home)
    settings: dict[str, int] = {}
    with stage(study, "users invite", settings=settings), attach(connection) as argilla:
        settings["annotators"] = admit_annotators(study, argilla, reads).people
        pseudonyms = {name: rater for rater, name in names_at(study.name, argilla).items()}
    if connection.home is not None:
        users = server.credentials(connection.home)
        passwords |= {user.username: user.password for user in (users.owner, *users.annotators)}
    entry = entrance(address or connection.url, has_page=connection.home is not None)

    def letters() -> Iterator[Letter]:
        for name in invited:
            codes = reads.get(name, ())
            if reason := _why_uninvited(evidence, pseudonyms[name], codes):
                print(f"no letter to {name}, {reason}", file=sys.stderr)
                continue
            link = accounts.new_link(connection, name, again=links == "all") if links else None
            if links and link is None:
                print(f"no letter to {name}, who has a link; --again makes another and ends that one", file=sys.stderr)
                continue
            work = _work(evidence, open_to(pseudonyms[name]), codes, ours=has_rating_page(connection))
            if not work:
                print(f"nothing is open to {name}, by the answers collected so far", file=sys.stderr)
            text = _text(study, entry, link or (name, passwords[name] or ""), codes, work)
            yield Letter(name, pseudonyms[name], text)

    return letters()


def _why_uninvited(evidence: Evidence, rater: str, codes: Collection[str]) -> str:
    """Return why a rater who reads the languages `codes` gets no letter; empty if one is due."""
    if rater in excluded_raters(evidence.decided):
        return "who is excluded"
    if codes and not any(queue.languages <= set(codes) for queue in queues_of(evidence.shown)):
        return "who reads none of the study's languages"
    return ""


def people_to_invite(study: Study, names: Sequence[str]) -> list[str]:
    """Return `names`, or else the study's `raters.people`. Raises StudyError as `invite`."""
    people = study.raters.people
    invited = list(dict.fromkeys(names or people or ()))
    if not invited:
        raise StudyError(f"{study.file} names nobody in raters.people; add names there, or to the command")
    if people is not None and (unlisted := [name for name in invited if name not in people]):
        raise StudyError(f"{study.file}: raters.people does not name {unlisted[0]!r}; add the name there first")
    return invited


def entrance(address: str, *, has_page: bool) -> str:
    """Return where annotators begin on a server: our own has a page for them."""
    return f"{address.rstrip('/')}{WORK}" if has_page and address else address


def _open_pairs(evidence: Evidence) -> Callable[[str], list[Pair]]:
    """Return what gives the pairs, controls and repeats that are open to a rater, by pseudonym."""
    ratings = evidence.collected.known
    answers = ratings[["pair_id", "rater_id", "status"]].assign(again=asked_again(ratings))
    answers = answers.drop_duplicates(["pair_id", "rater_id"])
    complete = set(Workload.of(evidence).complete(answers))
    answered = answers[answers["status"] != "draft"]

    def open_to(rater: str) -> list[Pair]:
        done = complete | set(answered.loc[answered["rater_id"] == rater, "pair_id"])
        return [pair for pair in evidence.shown if pair.pair_id not in done]

    return open_to


def _work(
    records: CampaignRecords, pairs: Sequence[Pair], codes: Collection[str], *, ours: bool
) -> list[tuple[str, int, float]]:
    """Return the name for raters of each dataset of these pairs, its number of items, and their hours.

    Only datasets in the languages `codes` are listed, or all if there are none.
    Hours are at the seconds that a crowd is paid for. First those that raters learn on.
    """
    study = records.study
    spec = study.crowd.pay if study.crowd is not None else PaySpec()
    queues = queues_of(pairs)
    read = {queue.languages for queue in queues}
    rubric = rubric_to_ask(records)[0]
    by_training_queue = by_queue(read_items(study, rubric))
    training = {
        queue: [item.pair for item in items] for queue, items in by_training_queue.items() if queue.languages in read
    }

    def called(queue: Queue) -> str:
        queue_rubric = training_rubric(rubric, by_training_queue[queue]) if queue in training else rubric
        language = queue_rubric.language_for(queue.language, queue.output_language)
        return named(queue_rubric, queue, language) if ours else queue.dataset(study.name)

    together = {pair.pair_id: 0 for pair in pairs}  # whichever blocks are open
    tally = counted(study, records.rubric, pairs, to_crowd=False, blocks=together)
    work = {
        queue: (called(queue), len(pairs), assumed_hours([pair.transformation for pair in pairs], spec))
        for queue, pairs in training.items()
    }
    work |= {queue: (called(queue), tally.of({queue}).shown, tally.of({queue}).each) for queue in queues}
    return [in_queue for queue, in_queue in work.items() if not codes or queue.languages <= set(codes)]


def _text(
    study: Study,
    address: str,
    account: accounts.Link | tuple[str, str],
    codes: Sequence[str],
    queues: Sequence[tuple[str, int, float]],
) -> str:
    """Return the letter to an account (its link; or name and password, empty if unknown) who reads these languages."""
    words = words_in(_LETTERS, *codes)
    code_of_words = next((code for code in codes if code in packaged(_LETTERS)), ENGLISH)
    if isinstance(account, accounts.Link):
        rows = [(words["link"], f"{address.removesuffix(WORK)}{LINK}#{account.token}"), (words["until"], account.until)]
    else:
        name, password = account
        rows = [(words["address"], address), (words["name"], name), (words["password"], password or words["kept"])]
    if codes:
        rows.append((words["languages"], ", ".join(display_name(code, code_of_words) for code in codes)))
    lines = [words["title"].format(study=study.name), *filter(None, [study.description]), ""]
    lines += [f"{label}: {value}" for label, value in rows]
    lines += ["", f"{words['work']}:"] if queues else []
    for dataset, number, hours in queues:
        lines.append("- " + words["dataset"].format(dataset=dataset, pairs=number, minutes=math.ceil(60 * hours)))
    contact = study.raters.contact
    whom = [f"{rating_words(code_of_words)['contact']} {contact}"] if contact else []
    alone = [words["alone"]] if isinstance(account, accounts.Link) else []
    return "\n".join([*lines, "", *alone, words["how"], *whom]) + "\n"


def unread_lines(
    study_name: str, people: Collection[str] | None, queues: Mapping[Queue, int], reads: Mapping[str, Sequence[str]]
) -> list[str]:
    """A line for each queue that no annotator reads; `queues` have their numbers of pairs.

    `reads` are languages (codes) by user name. There is no line if nobody's languages are known, or if
    those of one of the study's people are unknown.
    """
    able = [set(codes) for name, codes in reads.items() if people is None or name in people]
    if not able or any(name not in reads for name in people or ()):
        return []
    lines = []
    for queue, number in queues.items():
        if not any(queue.languages <= codes for codes in able):
            readers = " and ".join(map(language_name, sorted(queue.languages)))
            lines.append(
                f"no rater reads {readers} ({count(number, 'pair')} of {queue.dataset(study_name)}); add one"
                f" (`plumbline users add NAME --languages {','.join(sorted(queue.languages))}`), or change `languages`"
                " in the study"
            )
    return lines


def add_users(
    names: tuple[str, ...],
    /,
    *,
    options: HomeOptions = HomeOptions(),
    study: Annotated[Named | None, Parameter(metavar="FILE")] = None,
    exports: Hidden = None,
    languages: Annotated[str, Parameter(metavar="CODES")] = "",
) -> None:
    """Create annotators' accounts; their passwords are shown once.

    Example: plumbline users add ada grace --languages en,de

    Args:
        names: The annotators' names.
        options: The server.
        study: Give them access to this study now (otherwise `publish` does).
        exports: The place for the study's records.
        languages: Languages that they read, for example en,de.
    """
    home = options.home
    codes = [code.strip() for code in languages.split(",") if code.strip()]
    campaign = load_study(study, exports) if study else None
    with reach(home) as connection:
        for name, password in accounts.add(connection, home, names, codes).items():
            if password is not None:
                print(f"Annotator {name}, password {password}   (shown this once)")
            else:
                users = "plumbline users"
                read = f" (languages now: {', '.join(map(language_code, codes))})" if codes else ""
                print(f"Annotator {name} has an account{read}; for a new password run: {users} reset {name}")
        if campaign is not None:
            # Into the workspaces that there are; publishing lets them into the others.
            with attach(connection) as argilla:
                admit_annotators(campaign, argilla, accounts.languages(connection, home))


def invite_users(
    names: tuple[str, ...] = (),
    /,
    *,
    options: CampaignOptions,
    to: Annotated[Local | None, Parameter(metavar="DIR")] = None,
    address: Address = "",
    links: bool = False,
    again: bool = False,
) -> StudyOptions:
    """Create accounts for a study's people, and write an invitation for each.

    Example: plumbline users invite --study studies/mine.yaml --to invitations
    With links in place of passwords: plumbline users invite --study studies/mine.yaml --links

    Args:
        names: People to invite (default: the study's raters.people).
        options: The study and the server.
        to: Write a file for each person instead of printing.
        address: The address that people open (default: the server's own).
        links: Write a link instead of a password for each who has none. It works in one browser for 30 days.
        again: End the links that they have, and write new ones.
    """
    study, home = options.load(), options.home
    if not address and configured() is None and not (home.path.is_dir() and is_locked(home)):
        data = f" --data {shlex.quote(str(home.path))}" if home != server.Home() else ""
        raise StudyError(
            f"no server runs on {home.path}, so letters would name an address that ends with this command; start it in"
            f" another terminal, `{study.command('serve')}{data}`, or give the --address that raters will open"
        )
    with reach(home) as connection:
        hand_out(
            invite(study, connection, home, names, address, links="all" if again else "missing" if links else ""), to
        )
    if server.is_loopback(urlsplit(address or connection.url).hostname or ""):
        print(f"{address or connection.url} can be opened on this machine only; with --address, give the"
              " address that others open (docs/howto/tls.md)", file=sys.stderr)  # fmt: skip
    return options


def hand_out(letters: Iterable[Letter], folder: Path | None) -> None:
    """Print each letter before the next is made, or write it to a file named by the pseudonym, private to this user."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, letter in enumerate(letters):
        if folder is None:
            between = "\n---\n" if number else ""
            print(f"{between}letter to {letter.name}:\n\n{letter.text}", end="", flush=True)
            continue
        path = folder / f"{letter.rater_id}.txt"
        write_private(path, letter.text)
        print(f"{path}: letter to {letter.name}; only you can read it")


def list_users(
    *,
    options: HomeOptions = HomeOptions(),
    study: Annotated[Named | None, Parameter(metavar="FILE")] = None,
    exports: Hidden = None,
) -> None:
    """Show all accounts with languages and number of answers.

    Example: plumbline users list

    Args:
        options: The server.
        study: Also show each account's pseudonym in this study's records, and who is in the study.
        exports: The place for the study's records.
    """
    home, campaign = options.home, load_study(study, exports) if study else None
    with reach(home, existing=True) as connection:
        rows = [[account.username, account.role, ",".join(account.languages) or "-", str(account.answers)]
                for account in accounts.accounts(connection, home)]  # fmt: skip
        names: dict[str, str] = {}
        if campaign is not None:
            with attach(connection) as argilla:
                names = names_at(campaign.name, argilla)
    raters = {name: rater for rater, name in names.items()}
    header = ["name", "role", "languages", "answers"]
    if campaign is not None:
        header, rows = [*header, "rater"], [[*row, raters.get(row[0], "-")] for row in rows]
        if campaign.raters.people is not None:
            named = dict.fromkeys(campaign.raters.people, "yes") | dict.fromkeys(campaign.raters.former, "former")
            header, rows = [*header, "in the study"], [[*row, named.get(row[0], "no")] for row in rows]
    print(columns(header, rows))


def reset_users(name: str, /, *, options: HomeOptions = HomeOptions()) -> None:
    """Set a new random password for an account.

    Example: plumbline users reset ada

    Args:
        name: The account's name.
        options: The server.
    """
    with reach(options.home, existing=True) as connection:
        password = accounts.reset(connection, name)
    print(f"User {name}, password {password}   (shown this once)")


def revoke_users(name: str, /, *, options: HomeOptions = HomeOptions()) -> None:
    """End an annotator's link, and the sessions that it opened.

    Example: plumbline users revoke ada

    Args:
        name: The account's name.
        options: The server.
    """
    with reach(options.home, existing=True) as connection:
        ended = accounts.revoke_link(connection, name)
    print(f"User {name}: the link and its sessions have ended" if ended else f"User {name} has no link")


def remove_users(name: str, /, *, options: HomeOptions = HomeOptions(), force: bool = False) -> None:
    """Delete an annotator's account.

    Example: plumbline users remove ada
    With the answers that ada has given: plumbline users remove ada --force

    Args:
        name: The account's name.
        options: The server.
        force: Remove the account even if it has answers, which are deleted too.
    """
    with reach(options.home, existing=True) as connection:
        answers = accounts.remove(connection, options.home, name, force=force)
    print(f"User {name} was removed, with {count(answers, 'answer')} given under that account")

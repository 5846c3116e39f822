"""The status with what the running server has: answers that nobody has collected yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from annotation import server
from annotation.argilla.accounts import answered_now
from annotation.ratings.collected import CampaignData
from annotation.ratings.ratings import asked_again
from annotation.sampling.queues import frames_by_queue
from annotation.status.status import Status, read_status
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import count
from plumbline.records import ARGILLA
from plumbline.study import Study


def status_now(study: Study, home: server.Home) -> Status:
    """Where a study stands now, by its records and by the server that runs. Raises DataError for damaged records."""
    evidence = Evidence.read(study)
    return with_server(read_status(study, datetime.now(UTC), evidence=evidence), evidence.collected, home)


def with_server(status: Status, collected: CampaignData, home: server.Home) -> Status:
    """The status, and how many answers the study's server has; as it is where nothing was published in Argilla."""
    if status.stages["published"].annotators is None and ARGILLA not in status.sources:
        return status
    names = {queue.dataset(status.study) for queue, _ in frames_by_queue(collected.pairs)}
    ratings = collected.known
    submitted = ratings[(ratings["source"] == ARGILLA) & (ratings["status"] == "submitted")]
    answers = submitted.assign(again=asked_again(submitted)).drop_duplicates(["pair_id", "rater_id"])
    aside = int(answers["again"].sum())
    return replace(status, server=answered_now(status.study, home, names), on_record=len(answers) - aside, aside=aside)


def server_line(status: Status) -> str:
    """What the server has, in a sentence; empty where it was not looked at."""
    on_server = status.server
    if on_server is None:
        return ""
    where = f"The server at {on_server.url}" if on_server.url else "The study's server"
    if on_server.trouble:
        return (
            f"{where} was not looked at ({on_server.trouble}): answers since the last `collect` are in no number here."
        )
    answers, accounts = (
        count(on_server.answers, "submitted answer"),
        count(len(on_server.by_account), "account"),
    )
    verb = "is" if status.on_record == 1 else "are"
    aside = f", and {status.aside} of excluded raters, whose pairs it offers again" if status.aside else ""
    collected = f"collected {verb} {status.on_record}{aside}"
    return f"{where} has {answers} of {accounts}; {collected}. All numbers here are of collected answers."


def by_name(status: Status, names: Mapping[str, str]) -> dict[str, int]:
    """The submitted answers on the server of people who have more there than are collected, by user name."""
    table = status.raters
    got = {names.get(rater, ""): number for rater, number in zip(table["rater_id"], table["answers"], strict=True)}
    people = status.server.people if status.server is not None else {}
    return {name: number for name, number in people.items() if number > got.get(name, 0)}

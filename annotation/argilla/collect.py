"""Fetching answers from Argilla while people work: as often as one likes, and only what has changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.argilla.accounts import named_raters, published
from annotation.argilla.client import Argilla, ArgillaUser, DatasetListing
from annotation.argilla.dataset import COMMENT, Orders
from annotation.argilla.training import collect_training
from annotation.names import account_pseudonym
from annotation.offering import alone, refuse_other_sample
from annotation.ratings.answers import Answer, SourcePart, check, keep, last_snapshot
from annotation.ratings.ratings import read_again
from annotation.records import Member
from annotation.rubric import Rubric
from annotation.sampling.origin import refuse_other_prompts
from annotation.sampling.sample import read_shown
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, StudyError
from plumbline.identity import identity
from plumbline.records import ARGILLA, Pair
from plumbline.store import write_json
from plumbline.study import Study


def collect(study: Study, argilla: Argilla, *, replace: bool = False) -> pd.DataFrame:
    """Fetch the answers into `ratings.parquet` (and controls' into `control_ratings.parquet`); returns the former.

    A row a pair, rater and question, drafts and discards too; `members.json` says who was asked to rate what. Datasets
    in which nothing was answered, changed or taken back since they were read last are not read again. Refuses to drop
    answers: those that were collected before and are no longer on the server, those to pairs of another sample, and
    those of people who are no members, unless `replace` says so.
    """
    with alone(study):
        if not replace:
            refuse_other_sample(study)
        rubric = asked_rubric(study)
        pairs = {pair.pair_id: pair for pair in read_shown(study)}
        refuse_other_prompts(study, list(pairs.values()))
        snapshot = {} if replace else last_snapshot(study, ARGILLA)
        parts, members_asked, named = {}, [], named_raters(study, argilla)
        aside = set_aside(study)
        for queue, dataset in published(study, argilla).items():
            name = queue.dataset(study)
            members = argilla.members(dataset.workspace_id)
            counted = members if named is None else named | _made_up(members)
            raters = {
                user_id: account_pseudonym(study.name, user.id, simulated=user.simulated)
                for user_id, user in counted.items()
            }
            members_asked += [
                Member(rater_id=raters[user_id], dataset=name, simulated=user.simulated)
                for user_id, user in members.items()
                if user.role == "annotator" and user_id in raters and user.username not in study.raters.former
            ]
            reading = _Reading(argilla, study, name, dataset, raters, pairs, rubric, aside)
            part = snapshot.get(name)
            parts[name] = part if part is not None and reading.covers(part) else reading.part(replace=replace)
        _refuse_unnamed(study, argilla, snapshot, parts)
        ratings = keep(study, ARGILLA, parts, replace=replace)
        write_json(
            study.folder / "members.json", sorted(members_asked, key=lambda member: (member.dataset, member.rater_id))
        )
        collect_training(study, argilla, rubric)
        return ratings


@dataclass(frozen=True)
class _Reading:
    """The reading of one dataset: whose answers to which pairs are expected."""

    argilla: Argilla
    study: Study
    name: str
    dataset: DatasetListing
    raters: Mapping[str, str]  # pseudonyms by user id
    pairs: Mapping[str, Pair]
    rubric: Rubric
    aside: Mapping[tuple[str, str], Answer]  # as they were before their pairs were offered again

    @property
    def state(self) -> str:
        """What changes with every answer that comes, changes or goes, and with whose answers count."""
        named = identity("named-v1", *sorted(self.raters)) if self.study.raters.people is not None else ""
        return f"{self.dataset.id} {self.dataset.last_activity_at} {named}".strip()

    def covers(self, part: SourcePart) -> bool:
        """Whether what was read before is all that reading again would bring."""
        raters, rated = {answer.rater_id for answer in part.answers}, {answer.pair_id for answer in part.answers}
        return part.state == self.state and raters <= set(self.raters.values()) and rated <= set(self.pairs)

    def part(self, *, replace: bool) -> SourcePart:
        """The dataset's answers. Raises DataError for those that cannot count; with `replace` they are left out."""
        answers, outside, strange = [], 0, 0
        tasks = self.study.judging.does_tasks
        responses = list(self._responses())  # before the orders, which are known of whoever has answered
        orders = Orders.of(self.argilla, self.dataset.id) if tasks else Orders()
        for pair_id, response in responses:
            if pair_id not in self.pairs:
                strange += 1
            elif response["user_id"] not in self.raters:
                outside += 1
            else:
                answers.append(self._answer(pair_id, response, orders))
        if strange and not replace:
            raise DataError(
                f"{strange} answers on the server at {self.argilla.url} are of pairs that are not in pairs.parquet;"
                " bring the sample back that was published, or add --replace to leave them out"
            )
        if outside and self.study.raters.people is not None:
            print(f"  left out of {self.name}: {outside} answers of accounts that raters.people does not name",
                  file=sys.stderr)  # fmt: skip
        elif outside and not replace:
            raise DataError(
                f"{outside} answers in {self.name!r} are of accounts that are no members of its workspace (the owner's,"
                " or of people who were taken out); let them in, or add --replace to leave the answers out"
            )
        return SourcePart(self.state, tuple(sorted(answers, key=lambda answer: (answer.pair_id, answer.rater_id))))

    def _responses(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for record in self.argilla.records(self.dataset.id):
            for response in record.get("responses") or []:
                yield record["external_id"], response

    def _answer(self, pair_id: str, response: Mapping[str, Any], orders: Orders) -> Answer:
        values, questions = response.get("values") or {}, self.rubric.asked(self.pairs[pair_id].pool)
        answer = Answer(
            pair_id=pair_id,
            rater_id=self.raters[response["user_id"]],
            status=response["status"],
            values={question.name: question.kept(values.get(question.name, {}).get("value")) for question in questions},
            comment=values.get(COMMENT, {}).get("value") or "",
            submitted_at=f"{response['updated_at'].removesuffix('Z')}+00:00",
            **orders.of_answer(response["user_id"], pair_id),
        )
        check(answer, f"pair {pair_id}", self.rubric, self.pairs)
        before = self.aside.get((pair_id, answer.rater_id))
        return before if before is not None and is_same(before, answer) else answer


def set_aside(study: Study) -> dict[tuple[str, str], Answer]:
    """The answers whose pairs were offered again since their raters were excluded, as they were collected before."""
    again = read_again(study)
    parts = last_snapshot(study, ARGILLA) if again else {}
    answers = (answer for part in parts.values() for answer in part.answers if answer.status == "submitted")
    return {
        (answer.pair_id, answer.rater_id): answer for answer in answers if (answer.pair_id, answer.rater_id) in again
    }


def is_same(before: Answer, now: Answer) -> bool:
    """Whether an answer says what it said before it was set aside or brought back, which its rater did not do."""
    return now.status != "draft" and (before.values, before.comment) == (now.values, now.comment)


def _made_up(members: Mapping[str, ArgillaUser]) -> dict[str, ArgillaUser]:
    return {user_id: user for user_id, user in members.items() if user.simulated}


def _refuse_unnamed(
    study: Study, argilla: Argilla, before: Mapping[str, SourcePart], now: Mapping[str, SourcePart]
) -> None:
    """Raise StudyError where answers would go because the study no longer names who gave them."""
    had, has = (
        Counter(answer.rater_id for part in parts.values() for answer in part.answers) for parts in (before, now)
    )
    gone = set(had) - set(has)
    if study.raters.people is None or not gone:
        return
    for user in argilla.users():
        rater = account_pseudonym(study.name, user.id, simulated=user.simulated)
        if rater in gone and user.username not in (*study.raters.people, *study.raters.former):
            raise StudyError(
                f"{study.file}: raters.people no longer names {user.username!r}, of whom {had[rater]} answers were"
                " collected; put the name under raters.former to keep them, or add --replace to drop them"
            )

"""Fetching answers from Argilla while people work: repeatable at any time, and reading only changed datasets."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.argilla.accounts import named_raters, published, training_datasets
from annotation.argilla.client import Argilla, DatasetListing
from annotation.argilla.dataset import Orders, answer_of
from annotation.campaign.names import account_pseudonym
from annotation.campaign.offering import alone, refuse_other_sample
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.page.training import TRAINED, TrainingItem, TrainingResult, read_items
from annotation.ratings.answers import EARLIEST, Answer, SourcePart, check, fault_of, is_time, keep, last_snapshot
from annotation.records import Member
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, StudyError
from plumbline.fields import expected_of
from plumbline.identity import identity
from plumbline.records import ARGILLA, Pair
from plumbline.store import write_json
from plumbline.study import Study
from plumbline.study.campaign import RatersSpec
from plumbline.words import count


def collect(study: Study, argilla: Argilla, *, replace: bool = False) -> pd.DataFrame:
    """Fetch the answers into `ratings.parquet` (controls' into `control_ratings.parquet`); return the former.

    There is a row for each pair, rater and question, drafts and discards included; `members.json` lists each dataset's
    raters. Datasets that have not changed since the last reading are not read again. Without `replace`, refuses to
    drop answers: collected ones that are no longer on the server, those to pairs of another sample, and those of people
    who are not members.
    """
    with alone(study):
        records = CampaignRecords(study)
        if not replace:
            refuse_other_sample(records)
        rubric, pairs, again = asked_rubric(records), records.shown_by_id, records.answers_again
        snapshot = last_snapshot(study.folder, ARGILLA) if again or not replace else {}
        decided = {decision.rater_id for decision in records.decisions}
        reading = _Reading(
            argilla, study.name, study.raters, decided, pairs, rubric, set_aside(again, snapshot), replace
        )
        datasets = {queue.dataset(study.name): dataset for queue, dataset in published(records, argilla).items()}
        earlier = {} if replace else snapshot
        parts, members = reading.read(datasets, earlier)
        if study.raters.people is not None:
            named = {*study.raters.people, *study.raters.former}
            unlisted = [user for user in argilla.users() if user.username not in named]
            pseudonyms = {
                account_pseudonym(study.name, user.id, simulated=user.simulated): user.username for user in unlisted
            }
            _refuse_unnamed(pseudonyms, earlier, parts, study.file)
        ratings = keep(records, ARGILLA, parts, replace=replace)
        write_json(study.folder / "members.json", members)
        collect_training(records, argilla, rubric)
        return ratings


@dataclass(frozen=True)
class _Reading:
    """The reading of a campaign's datasets, with the expected raters and pairs."""

    argilla: Argilla
    study_name: str
    raters: RatersSpec
    decided: Collection[str]  # raters about whom people decided: their answers are read, in any workspace
    pairs: Mapping[str, Pair]
    rubric: Rubric
    set_aside: Mapping[tuple[str, str], Answer]  # answers from before their pairs were offered again
    replace: bool

    def read(
        self, datasets: Mapping[str, DatasetListing], earlier: Mapping[str, SourcePart]
    ) -> tuple[dict[str, SourcePart], list[Member]]:
        """Return the answers by dataset, read again only after changes, and the raters of each dataset."""
        parts, asked_raters, named = dict[str, SourcePart](), list[Member](), named_raters(self.raters, self.argilla)
        decided = {
            user.id: user
            for user in self.argilla.users()
            if account_pseudonym(self.study_name, user.id, simulated=False) in self.decided
        }
        for name, dataset in datasets.items():
            members = self.argilla.members(dataset.workspace_id)
            simulated = {user_id: user for user_id, user in members.items() if user.simulated}
            pseudonyms = {
                user_id: account_pseudonym(self.study_name, user.id, simulated=user.simulated)
                for user_id, user in (members | decided if named is None else named | simulated).items()
            }
            asked_raters += [
                Member(rater_id=pseudonyms[user_id], dataset=name, simulated=user.simulated)
                for user_id, user in members.items()
                if user.role == "annotator" and user_id in pseudonyms and user.username not in self.raters.former
            ]
            # The state changes with every answer, and with the people whose answers count.
            counted = identity("named-v1", *sorted(pseudonyms)) if self.raters.people is not None else ""
            state = f"{dataset.id} {dataset.last_activity_at} {counted}".strip()
            part = earlier.get(name)
            raters = set(pseudonyms.values())
            if (
                part is None
                or part.state != state
                or any(answer.rater_id not in raters or answer.pair_id not in self.pairs for answer in part.answers)
            ):
                part = SourcePart(state, self._answers(name, dataset.id, pseudonyms))
            parts[name] = part
        return parts, sorted(asked_raters, key=lambda member: (member.dataset, member.rater_id))

    def _answers(self, name: str, dataset_id: str, pseudonyms: Mapping[str, str]) -> tuple[Answer, ...]:
        """Return a dataset's answers. Raises DataError if some cannot count; with `replace` these are left out."""
        records = list(self.argilla.records(dataset_id))  # before the orders: everybody who has answered has one
        orders = Orders.of(self.argilla, dataset_id)
        answers, outside, n_unknown = list[Answer](), 0, 0
        for record in records:
            for response in record.get("responses") or []:
                if record["external_id"] not in self.pairs:
                    n_unknown += 1
                elif response["user_id"] not in pseudonyms:
                    outside += 1
                else:
                    rater = pseudonyms[response["user_id"]]
                    answers.append(self._answer(record["external_id"], rater, response, orders))
        if n_unknown and not self.replace:
            raise DataError(
                f"{count(n_unknown, 'answer')} on the server at {self.argilla.url}"
                f" {'is to a pair that is' if n_unknown == 1 else 'are to pairs that are'} not in pairs.parquet;"
                f" restore the published sample, or add --replace to leave {'it' if n_unknown == 1 else 'them'} out"
            )
        if outside and self.raters.people is not None:
            print(f"  left out of {name}: {count(outside, 'answer')} from accounts that raters.people does not name",
                  file=sys.stderr)  # fmt: skip
        elif outside and not self.replace:
            raise DataError(
                f"{count(outside, 'answer')} in {name!r} came from accounts outside its workspace (the owner,"
                " or people who were taken out); let them in, or add --replace to leave the answers out"
            )
        return tuple(sorted(answers, key=lambda answer: (answer.pair_id, answer.rater_id)))

    def _answer(self, pair_id: str, rater: str, response: Mapping[str, Any], orders: Orders) -> Answer:
        questions = self.rubric.asked(self.pairs[pair_id].pool)
        answer = answer_of(response, pair_id, questions, orders, rater)
        fault = fault_of(answer, questions)
        if not is_time(answer.submitted_at):
            fault = f": its time {answer.submitted_at[:60]!r} cannot be read"
            answer = replace(answer, submitted_at=EARLIEST.isoformat())
        if fault:  # one rater's answer does not hold up everybody's
            draft = answer.status == "submitted"
            more = "; it is a draft until they correct it" if draft else ""
            print(f"  set aside: the answer of {rater} to pair {pair_id}{fault}{more}", file=sys.stderr)
            answer = replace(answer, status="draft" if draft else answer.status, values=dict.fromkeys(answer.values))
        check(answer, f"pair {pair_id}", self.rubric, self.pairs)
        earlier = self.set_aside.get((pair_id, rater))
        if earlier is None or answer.status == "draft":
            return answer
        return earlier if (earlier.values, earlier.comment) == (answer.values, answer.comment) else answer


def set_aside(again: Collection[tuple[str, str]], snapshot: Mapping[str, SourcePart]) -> dict[tuple[str, str], Answer]:
    """Return the earlier collected answers whose pairs were offered again because their raters are excluded."""
    answers = {(answer.pair_id, answer.rater_id): answer for part in snapshot.values() for answer in part.answers}
    return {key: answer for key, answer in answers.items() if key in again and answer.status == "submitted"}


def _refuse_unnamed(
    unlisted: Mapping[str, str], earlier: Mapping[str, SourcePart], current: Mapping[str, SourcePart], file: Path
) -> None:
    """Raise StudyError if answers would be dropped because their raters are `unlisted` (by pseudonym) in the study."""
    had, has = (
        Counter(answer.rater_id for part in parts.values() for answer in part.answers) for parts in (earlier, current)
    )
    if lost := [rater for rater in unlisted if rater in had and rater not in has]:
        gave = [f"{unlisted[rater]!r}, who gave {count(had[rater], 'collected answer')}" for rater in lost]
        raise StudyError(
            f"{file}: raters.people no longer names {', and '.join(gave)};"
            f" put the {'name' if len(lost) == 1 else 'names'} under raters.former to keep them (under"
            " raters.people, if they rate on), or add --replace to drop them"
        )


def collect_training(records: CampaignRecords, argilla: Argilla, rubric: Rubric) -> None:
    """Write raters' answers to training pairs to `training.json`, which no verdict uses."""
    study = records.study
    if not study.training:
        return
    rows, named = list[TrainingResult](), named_raters(study.raters, argilla)
    for dataset, items in training_datasets(study.name, argilla, read_items(study, rubric)):
        answers: dict[tuple[str, str], dict[str, Any]] = {}
        for record in argilla.records(dataset.id):
            for response in record.get("responses") or []:
                if response["status"] == "submitted":
                    answers[response["user_id"], record["external_id"]] = response.get("values") or {}
        for user_id, user in argilla.members(dataset.workspace_id).items():
            counts = named is None or user.simulated or user_id in named
            if user.role == "annotator" and counts and user.username not in study.raters.former:
                rater = (account_pseudonym(study.name, user.id, simulated=user.simulated), user.simulated)
                rows += [_trained(rater, item, answers.get((user_id, key)), rubric) for key, item in items.items()]
    write_json(study.folder / TRAINED.name, sorted(rows, key=lambda result: (result.rater_id, result.item_id)))


def _trained(
    rater: tuple[str, bool], item: TrainingItem, values: Mapping[str, Any] | None, rubric: Rubric
) -> TrainingResult:
    """Return a rater's result on a known pair; `values` is None without a submitted answer."""
    questions = {question.name: question for question in rubric.asked(item.pair.pool)}
    judged = right = 0
    for name, expected in expected_of(item.pair).items():
        value = questions[name].kept((values or {}).get(name, {}).get("value")) if name in questions else None
        if value is not None:
            judged += 1
            right += questions[name].is_right(value, expected, rubric.quality.of(name).within)
    return TrainingResult(
        rater_id=rater[0],
        item_id=item.pair.pair_id,
        simulated=rater[1],
        answered=values is not None,
        judged=judged,
        right=right,
    )

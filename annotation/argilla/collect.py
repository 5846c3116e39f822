"""Fetching answers from Argilla while people work: as often as one likes, and only what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotation.argilla.client import Argilla, Listed
from annotation.argilla.wording import COMMENT
from annotation.argilla.workspaces import published
from annotation.offering import alone, refuse_other_sample
from annotation.pseudonyms import account_pseudonym
from annotation.ratings.answers import Answer, Part, check, keep, last_snapshot
from annotation.records import Member
from annotation.rubric import Rubric
from annotation.sampling.origin import refuse_other_prompts
from annotation.sampling.shown import shown
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError
from plumbline.records import Pair
from plumbline.store import write_json
from plumbline.study import Study

SOURCE = "argilla"


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
        pairs = {pair.pair_id: pair for pair in shown(study)}
        refuse_other_prompts(study, list(pairs.values()))
        known = {} if replace else last_snapshot(study, SOURCE)
        parts, asked = {}, []
        for queue, dataset in published(study, argilla).items():
            name = queue.dataset(study)
            members = argilla.members(dataset.workspace_id)
            raters = {
                user_id: account_pseudonym(study.name, user.id, simulated=user.simulated)
                for user_id, user in members.items()
            }
            asked += [
                Member(rater_id=raters[user_id], dataset=name, simulated=user.simulated)
                for user_id, user in members.items()
                if user.role == "annotator"
            ]
            reading = _Reading(argilla, name, dataset, raters, pairs, rubric)
            part = known.get(name)
            parts[name] = part if part is not None and reading.covers(part) else reading.part(replace=replace)
        ratings = keep(study, SOURCE, parts, replace=replace)
        write_json(study.folder / "members.json", sorted(asked, key=lambda one: (one.dataset, one.rater_id)))
        return ratings


@dataclass(frozen=True)
class _Reading:
    """The reading of one dataset: whose answers to which pairs are expected."""

    argilla: Argilla
    name: str
    dataset: Listed
    raters: Mapping[str, str]  # pseudonyms by user id
    pairs: Mapping[str, Pair]
    rubric: Rubric

    @property
    def state(self) -> str:
        """What changes with every answer that comes, changes or goes."""
        return f"{self.dataset.id} {self.dataset.last_activity_at}"

    def covers(self, part: Part) -> bool:
        """Whether what was read before is all that reading again would bring."""
        raters, rated = {one.rater_id for one in part.answers}, {one.pair_id for one in part.answers}
        return part.state == self.state and raters <= set(self.raters.values()) and rated <= set(self.pairs)

    def part(self, *, replace: bool) -> Part:
        """The dataset's answers. Raises DataError for those that cannot count; with `replace` they are left out."""
        answers, outside, strange = [], 0, 0
        for pair_id, response in self._responses():
            if pair_id not in self.pairs:
                strange += 1
            elif response["user_id"] not in self.raters:
                outside += 1
            else:
                answers.append(self._answer(pair_id, response))
        if strange and not replace:
            raise DataError(
                f"{strange} answers on the server at {self.argilla.url} are of pairs that are not in pairs.parquet;"
                " bring the sample back that was published, or add --replace to leave them out"
            )
        if outside and not replace:
            raise DataError(
                f"{outside} answers in {self.name!r} are of accounts that are no members of its workspace (the owner's,"
                " or of people who were taken out); let them in, or add --replace to leave the answers out"
            )
        return Part(self.state, tuple(sorted(answers, key=lambda one: (one.pair_id, one.rater_id))))

    def _responses(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for record in self.argilla.records(self.dataset.id):
            for response in record.get("responses") or []:
                yield record["external_id"], response

    def _answer(self, pair_id: str, response: Mapping[str, Any]) -> Answer:
        given, asked = response.get("values") or {}, self.rubric.asked(self.pairs[pair_id].pool)
        answer = Answer(
            pair_id=pair_id,
            rater_id=self.raters[response["user_id"]],
            status=response["status"],
            values={one.name: one.kept(given.get(one.name, {}).get("value")) for one in asked},
            comment=given.get(COMMENT, {}).get("value") or "",
            submitted_at=f"{response['updated_at'].removesuffix('Z')}+00:00",
        )
        check(answer, f"pair {pair_id}", self.rubric, self.pairs)
        return answer

"""Adjudications from Argilla, into `adjudications.json`: apart from ratings, and read by nothing that counts these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation.adjudication.publish import reviewed
from annotation.argilla.client import PAGE, Argilla
from annotation.argilla.wording import COMMENT
from annotation.offering import alone, read_reviews
from annotation.pseudonyms import account_pseudonym
from annotation.ratings.answers import Answer, check
from annotation.ratings.ratings import read_all_ratings
from annotation.rubric import Rubric
from annotation.sampling.sample import read_pairs
from annotation.shown_records import Adjudication
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError
from plumbline.manifest import read_kept, write_kept
from plumbline.records import Pair
from plumbline.study import Study

FILE = "adjudications.json"
COMMAND = "annotation collect"
_RATED = ("pair_id", "rater_id")


def read_adjudications(study: Study) -> list[Adjudication]:
    """What adjudicators decided so far; nothing before the first. Raises DataError for a file that a hand changed."""
    return read_kept(study, FILE, Adjudication, study.command(COMMAND))


def collect_adjudications(study: Study, argilla: Argilla, *, replace: bool = False) -> list[Adjudication]:
    """Fetch what adjudicators submitted or discarded; drafts wait. Nothing is asked where nothing was reviewed.

    Only answers of the study's adjudicators count as such. Raises DataError where some that were collected before are
    no longer on the server, unless `replace` says so.
    """
    reviews = read_reviews(study)
    if not reviews:
        return []
    with alone(study):
        reading = _Reading.of(study, argilla, {one for review in reviews for one in review.adjudicators})
        found = [row for dataset in reviewed(study, argilla).values() for row in reading.rows(dataset.id)]
        found.sort(key=lambda one: (one.pair_id, one.adjudicator, one.question))
        before = read_adjudications(study)
        lost = {(one.pair_id, one.adjudicator) for one in before} - {(one.pair_id, one.adjudicator) for one in found}
        if lost and not replace:
            raise DataError(
                f"{len(lost)} adjudications that were collected before are no longer at {argilla.url}; is it the right"
                " server? Add --replace to drop them"
            )
        if found != before:
            write_kept(study, FILE, found)
        return found


@dataclass(frozen=True)
class _Reading:
    argilla: Argilla
    people: Mapping[str, str]  # adjudicators' pseudonyms, by user id
    pairs: Mapping[str, Pair]
    rubric: Rubric
    raters: Mapping[str, set[str]]  # who rated each pair

    @classmethod
    def of(cls, study: Study, argilla: Argilla, adjudicators: set[str]) -> _Reading:
        users = {user.id: account_pseudonym(study.name, user.id, simulated=user.simulated) for user in argilla.users()}
        rated = read_all_ratings(study)
        raters: dict[str, set[str]] = {}
        for pair_id, rater in zip(*(rated.loc[rated["status"] == "submitted", k] for k in _RATED), strict=True):
            raters.setdefault(pair_id, set()).add(rater)
        people = {user_id: one for user_id, one in users.items() if one in adjudicators}
        pairs = {pair.pair_id: pair for pair in read_pairs(study)}
        return cls(argilla, people, pairs, asked_rubric(study), raters)

    def rows(self, dataset_id: str) -> list[Adjudication]:
        """The adjudications of one dataset, a row a question."""
        questions = self.argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
        names = {one["id"]: one["name"] for one in questions}
        shown = self._suggested(dataset_id, names)
        found = list[Adjudication]()
        for record in self.argilla.records(dataset_id):
            for response in record.get("responses") or []:
                if response["user_id"] in self.people and response["status"] != "draft":
                    found += self._of(record["external_id"], response, shown.get(record["external_id"], {}))
        return found

    def _suggested(self, dataset_id: str, names: Mapping[str, str]) -> dict[str, dict[str, int]]:
        """What was suggested, by pair and question."""
        found, offset = dict[str, dict[str, int]](), 0
        while True:
            params = {"include": "suggestions", "offset": offset, "limit": PAGE}
            page = self.argilla.request("GET", f"/datasets/{dataset_id}/records", params=params)["items"]
            for record in page:
                given = record.get("suggestions") or []
                found[record["external_id"]] = {names[one["question_id"]]: one["value"] for one in given}
            offset += PAGE
            if len(page) < PAGE:
                return found

    def _of(self, pair_id: str, response: Mapping[str, Any], shown: Mapping[str, int]) -> list[Adjudication]:
        who, given = self.people[response["user_id"]], response.get("values") or {}
        if pair_id not in self.pairs:
            raise DataError(f"{self.argilla.url}: an adjudication of pair {pair_id!r}, which is not in pairs.parquet")
        asked = self.rubric.asked(self.pairs[pair_id].pool)
        answer = Answer(
            pair_id=pair_id,
            rater_id=who,
            status=response["status"],
            values={one.name: one.kept(given.get(one.name, {}).get("value")) for one in asked},
            submitted_at=f"{response['updated_at'].removesuffix('Z')}+00:00",
        )
        check(answer, f"adjudication of pair {pair_id}", self.rubric, self.pairs)
        return [
            Adjudication.model_validate(
                {
                    "pair_id": pair_id,
                    "adjudicator": who,
                    "question": question,
                    "value": value if isinstance(value, int) else None,
                    "answer": value if isinstance(value, str) else "",
                    "suggested": shown.get(question),
                    "rated": who in self.raters.get(pair_id, set()),
                    "status": answer.status,
                    "comment": given.get(COMMENT, {}).get("value") or "",
                    "submitted_at": answer.submitted_at,
                }
            )
            for question, value in answer.values.items()
            if value is not None or answer.status == "discarded"
        ]

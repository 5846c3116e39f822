"""Pairs of excluded raters before the others again: their answers are set aside on the server, and stay in the records.

Argilla hides a record from everybody else once it has as many submitted responses as it wants, whoever gave them. So
those of excluded raters are discarded there: their values stay, and the record is open again. Only answers that are in
the last snapshot are set aside, and `offered_again.json` notes each before it is: `collect` then keeps them as they
were. Where an exclusion is taken back they are submitted again; what others answered meanwhile is surplus by the rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.argilla.client import Argilla
from annotation.argilla.wording import COMMENT
from annotation.pseudonyms import account_pseudonym
from annotation.ratings.answers import Answer, last_snapshot
from annotation.ratings.exclusions import read_decisions
from annotation.ratings.ratings import excluded_raters, note_again, read_again
from annotation.rubric import Rubric
from annotation.sampling.queues import queues_of
from plumbline.records import ARGILLA, Pair
from plumbline.study import Study


@dataclass(frozen=True)
class _Response:
    """A response of a rater, and the answer of the same rater as it was collected last."""

    pair_id: str
    rater_id: str
    response: Mapping[str, Any]

    def says(self, before: Answer, rubric: Rubric, pool: str) -> bool:
        """Whether it has the values that were collected."""
        submitted = self.response.get("values") or {}
        values = {
            question.name: question.kept(submitted.get(question.name, {}).get("value"))
            for question in rubric.asked(pool)
        }
        comment = submitted.get(COMMENT, {}).get("value") or ""
        return (values, comment) == (dict(before.values), before.comment)


def offer_again(
    study: Study, argilla: Argilla, rubric: Rubric, pairs: Sequence[Pair], withdrawn: Collection[str]
) -> tuple[int, int]:
    """(answers set aside, answers brought back); `withdrawn` pairs are offered to nobody."""
    decisions, noted = read_decisions(study), read_again(study)
    excluded = excluded_raters(decisions)
    if not noted and not (excluded and study.raters.replace_excluded):
        return 0, 0
    collected = {
        (answer.pair_id, answer.rater_id): answer
        for part in last_snapshot(study, ARGILLA).values()
        for answer in part.answers
    }
    of_pair = {pair.pair_id: pair for pair in pairs}
    aside, back = list[_Response](), list[_Response]()
    for wanted, responses in _responses(study, argilla, pairs):
        unchanged = [
            response
            for response in responses
            if (before := collected.get((response.pair_id, response.rater_id))) is not None
            and before.status == "submitted"
            and response.says(before, rubric, of_pair[response.pair_id].pool)
        ]
        valid = [
            response
            for response in responses
            if response.response["status"] == "submitted" and response.rater_id not in excluded
        ]
        if study.raters.replace_excluded and len(valid) < wanted and responses[0].pair_id not in withdrawn:
            aside += [
                response
                for response in unchanged
                if response.rater_id in excluded and response.response["status"] == "submitted"
            ]
        back += [
            response
            for response in unchanged
            if response.rater_id not in excluded
            and response.response["status"] == "discarded"
            and (response.pair_id, response.rater_id) in noted
        ]
    note_again(study, [(response.pair_id, response.rater_id) for response in aside], decisions)
    for status, some in (("discarded", aside), ("submitted", back)):
        for response in some:
            body = {"values": response.response["values"], "status": status}
            argilla.request("PUT", f"/responses/{response.response['id']}", json=body)
    return len(aside), len(back)


def _responses(study: Study, argilla: Argilla, pairs: Sequence[Pair]) -> Iterator[tuple[int, list[_Response]]]:
    """The responses to each pair that has some, with how many it wants."""
    raters = {user.id: account_pseudonym(study.name, user.id, simulated=user.simulated) for user in argilla.users()}
    listed = argilla.datasets()
    for queue, queue_pairs in queues_of(pairs).items():
        dataset, ids = (
            listed.get((queue.workspace(study), queue.dataset(study))),
            {pair.pair_id for pair in queue_pairs},
        )
        for record in argilla.records(dataset.id) if dataset is not None else ():
            responses = [
                _Response(record["external_id"], raters.get(response["user_id"], ""), response)
                for response in record.get("responses") or []
            ]
            if responses and record["external_id"] in ids:
                yield study.raters_of(queue.pool), responses

"""Pairs that were rated, before adjudicators: a workspace and datasets of their own, with what judges said.

The names have a word in capitals where campaigns have codes of languages, so that no campaign of any study can be taken
for a review, nor a review for a campaign. Nothing that collects ratings reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from annotation.adjudication.disputed import Disputed
from annotation.adjudication.suggesting import said_of, suggestions_of
from annotation.argilla.client import Argilla, Listed, User, translated
from annotation.argilla.publish import settings_of
from annotation.argilla.sending import placed, record_of
from annotation.argilla.suggestions import question_ids
from annotation.argilla.wording import Words
from annotation.argilla.workspaces import admit, is_person
from annotation.offering import REVIEWS, alone, read_reviews
from annotation.pseudonyms import account_pseudonym
from annotation.sampling.queues import Queue, queues_of
from annotation.sampling.sample import read_pairs
from annotation.shown_records import Review
from annotation.verdicts.tables import count
from plumbline.errors import StudyError, nearest
from plumbline.manifest import write_kept
from plumbline.study import Study

if TYPE_CHECKING:
    import argilla as rg

REVIEW = "REVIEW"  # capitals, which no study's name has, and more of them than a code of a language
SAID = "people_and_judges"  # the field with what both said
_TITLE = "What people and judges said"
_NOTE = (
    "**Adjudication.** People have rated these pairs, and so have language models. You see what both said; the models'"
    " mean score is filled in as a suggestion, so change it wherever you see it otherwise. Your answer is kept as an"
    " adjudication. It is no rating: no mean, no agreement and no verdict has it."
)


@dataclass(frozen=True)
class Reviewing:
    """What was put before adjudicators."""

    pairs: Sequence[str]  #: ids of the pairs, those on which people and judges differ most first
    new: Mapping[str, int]  #: pairs that were not there before, by dataset
    own: Mapping[str, int]  #: how many of the pairs an adjudicator has rated, by user name; only who has
    languages: frozenset[str]  #: of their texts (codes)


def workspace_of(study: Study) -> str:
    """The workspace of a study's adjudicators: `demo-REVIEW`."""
    return f"{study.name}-{REVIEW}"


def dataset_of(study: Study, queue: Queue) -> str:
    """What a queue of pairs to adjudicate is called: `demo-REVIEW-paraphrasing-EN`."""
    return queue.dataset(study).replace(study.name, workspace_of(study), 1)


def publish_review(study: Study, argilla: Argilla, number: int, names: Sequence[str]) -> Reviewing:
    """Put the pairs on which people and judges differ most before adjudicators (user names), with judges' scores.

    Only pairs with enough ratings to count, after the verdicts. `reviews.json` has it before anything is sent. What is
    there stays as it is; one adjudication closes a pair. Raises StudyError for who has no annotator's account, and for
    who can still rate a pair: nobody sees others' answers before giving their own.
    """
    with alone(study):
        found = Disputed.read(study)
        chosen = found.worst(number)
        if not chosen:
            raise StudyError(
                f"{study.name}: no pair has both enough ratings and a judge's score; there is nothing to read"
            )
        people = _adjudicators(argilla, names)
        _refuse_open(study, argilla, people)
        called = {account_pseudonym(study.name, user.id, simulated=False): user.username for user in people}
        noted = Review(at=datetime.now(UTC), pairs=chosen, adjudicators=sorted(called), judges=found.judges)
        write_kept(study, REVIEWS, [*read_reviews(study), noted])
        new = _send(study, argilla, found, chosen, people)
        rated = found.ratings[found.ratings["pair_id"].isin(chosen)].drop_duplicates(["pair_id", "rater_id"])
        own = Counter(called[rater] for rater in rated["rater_id"] if rater in called)
        read = (found.pairs[pair_id] for pair_id in chosen)
        return Reviewing(chosen, new, own, frozenset(code for pair in read for code in Queue.of(pair).languages))


def _adjudicators(argilla: Argilla, names: Sequence[str]) -> list[User]:
    able = {user.username: user for user in argilla.users() if is_person(user)}
    for name in names:
        if name not in able:
            raise StudyError(f"{name!r} has no annotator's account at {argilla.url}; {nearest(name, sorted(able))}")
    return [able[name] for name in dict.fromkeys(names)]


def _refuse_open(study: Study, argilla: Argilla, people: Sequence[User]) -> None:
    """Raise StudyError where an adjudicator can still rate a pair of the campaign."""
    names, listed, left = {user.id: user.username for user in people}, argilla.datasets(), Counter[str]()
    for queue in queues_of(read_pairs(study)):
        dataset = listed.get((queue.workspace(study), queue.dataset(study)))
        inside = set(argilla.members(dataset.workspace_id)) & set(names) if dataset else set()
        if dataset is None or not inside:
            continue
        for record in argilla.records(dataset.id):
            if record["status"] != "completed":
                done = {one["user_id"] for one in record.get("responses") or [] if one["status"] != "draft"}
                left.update(names[one] for one in inside - done)
    for name, pairs in left.items():
        raise StudyError(
            f"{name!r} can still rate {count(pairs, 'pair')} of {study.name} and would see what others said of pairs;"
            " name somebody else, or wait until all pairs have their ratings"
        )


def _send(
    study: Study, argilla: Argilla, found: Disputed, chosen: Collection[str], people: Sequence[User]
) -> dict[str, int]:
    """Make what is missing, workspace, datasets and pairs; returns how many pairs are new, by dataset."""
    workspaces, workspace = argilla.workspaces(), workspace_of(study)
    if workspace not in workspaces:
        workspaces[workspace] = argilla.request("POST", "/workspaces", json={"name": workspace})["id"]
    listed, new = argilla.datasets(), {}
    suggestions = suggestions_of(found.judgements[found.judgements["pair_id"].isin(chosen)], found.scales)
    for queue, pairs in queues_of(found.pairs[pair_id] for pair_id in chosen).items():
        name = dataset_of(study, queue)
        words, there = Words.of(found.rubric, queue, _NOTE), listed.get((workspace, name))
        if there is not None and there.status == "draft":  # an earlier run was cut off while it made it
            argilla.request("DELETE", f"/datasets/{there.id}")
            there = None
        dataset_id = _create(argilla, words, (workspace, name)) if there is None else there.id
        present = {record["external_id"] for record in argilla.records(dataset_id)}
        beside, ids = placed(argilla, dataset_id, words.beside), question_ids(argilla, dataset_id)
        records = []
        for pair in pairs:
            if pair.pair_id not in present:
                record = record_of(pair, beside)
                record["fields"][SAID] = said_of(pair.pair_id, found.ratings, found.judgements, found.scales)
                record["suggestions"] = [one.given(ids) for one in suggestions.get(pair.pair_id, ())]
                records.append(record)
        if records:
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": records})
        new[name] = len(records)
    admit(workspaces[workspace], argilla, people)
    return new


def _create(argilla: Argilla, words: Words, where: tuple[str, str]) -> str:
    import argilla as rg  # noqa: PLC0415 (takes a second)

    client = argilla.sdk
    settings = _with_said(settings_of(words, 1, client), client)
    with translated(argilla.url):
        return str(rg.Dataset(name=where[1], workspace=where[0], settings=settings, client=client).create().id)


def _with_said(settings: rg.Settings, client: Any) -> rg.Settings:
    """A dataset's settings with the field for what both said, below its texts."""
    import argilla as rg  # noqa: PLC0415 (takes a second)

    said = rg.TextField(name=SAID, title=_TITLE, use_markdown=False, required=False, client=client)
    *texts, keys = settings.fields
    return rg.Settings(
        guidelines=settings.guidelines,
        fields=[*texts, said, keys],
        questions=list(settings.questions),
        metadata=list(settings.metadata),
        distribution=settings.distribution,
    )


def reviewed(study: Study, argilla: Argilla) -> dict[Queue, Listed]:
    """The datasets of a study's review that are there, by queue."""
    listed = argilla.datasets()
    names = {queue: (workspace_of(study), dataset_of(study, queue)) for queue in queues_of(read_pairs(study))}
    return {queue: listed[name] for queue, name in names.items() if name in listed}

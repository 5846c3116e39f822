"""Adjudication: a person reads pairs on which people and judges disagree. An adjudication is never a rating."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from annotation.argilla.accounts import admit, is_person
from annotation.argilla.client import PAGE, Argilla, ArgillaUser, DatasetListing
from annotation.argilla.dataset import COMMENT, Suggestion, Words, questions_of, record_of
from annotation.argilla.publish import ExtraField, create_dataset
from annotation.campaign_records import REVIEWS, CampaignRecords
from annotation.judges.decisions import read_judging
from annotation.judges.effects import LARGE
from annotation.judges.people import far_ratings
from annotation.judges.records import over_orders
from annotation.names import account_pseudonym, named
from annotation.offering import alone
from annotation.questions import Value
from annotation.ratings.answers import Answer, check
from annotation.ratings.ratings import counting_ratings
from annotation.records import Adjudication, Review
from annotation.rubric import Rubric
from annotation.sampling.queues import Queue, queues_of
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import asked_rubric
from annotation.verdicts.tables import SIMULATED, display
from annotation.verdicts.verdicts import refuse_stale
from plumbline.cli import columns
from plumbline.errors import DataError, StudyError, nearest
from plumbline.identity import identity
from plumbline.manifest import Manifest, RecordFile
from plumbline.records import Pair
from plumbline.scales import as_number, nearest_points
from plumbline.study import Study
from plumbline.study.subject import ItemNames
from plumbline.words import count

if TYPE_CHECKING:
    pass

LEAST_MASS = 0.9  # judgements with less probability on the points of the scale are flagged
COLUMNS = ["pair_id", "transformation", "question", "people", "judges", "apart", "spread", "raters", "far", "flags"]


def disagreements(ratings: pd.DataFrame, judgements: pd.DataFrame, least: int) -> pd.DataFrame:
    """A row for each question on each pair that people and judges rated, pairs that are farthest apart first.

    `ratings` are those that count, on questions with a scale; pairs with fewer than `least` raters are left out, as
    they are of verdicts. Columns: pair_id, transformation, question, people (mean rating), judges (mean score
    of those that have one), apart (judges minus people), spread (between the judges' scores), raters, far (ratings more
    than 2 points from every judge; PTEB, appendix B), flags (in words: `far`, label mass below 0.9, a point or more
    between both orders of the scale).
    """
    rated = ratings.groupby(["pair_id", "question"]).agg(
        transformation=("transformation", "first"), people=("value", "mean"), raters=("rater_id", "nunique")
    )
    scores = over_orders(judgements)
    by_question = scores.dropna(subset=["score"]).groupby(["pair_id", "question"])["score"]
    judges = pd.DataFrame({"judges": by_question.mean(), "spread": by_question.max() - by_question.min()})
    both = rated[rated["raters"] >= least].astype({"people": float}).join(judges, how="inner")
    far = far_ratings(ratings, scores).groupby(["pair_id", "question"]).size()
    both = both.assign(apart=both["judges"] - both["people"], far=far.reindex(both.index, fill_value=0))
    doubtful, both = _doubtful(judgements), both.reset_index()
    keys = zip(both["pair_id"], both["question"], both["far"], strict=True)
    flags = [["far"] * (far > 0) + doubtful.get((pair_id, question), []) for pair_id, question, far in keys]
    both["flags"] = [", ".join(reasons) for reasons in flags]
    both["widest"] = both.groupby("pair_id")["apart"].transform(lambda gaps: gaps.abs().max())
    both["varied"] = both.groupby("pair_id")["spread"].transform("max")
    ordered: pd.DataFrame = both.sort_values(
        ["widest", "varied", "pair_id", "question"], ascending=[False, False, True, True], ignore_index=True
    )
    return ordered[COLUMNS]


def _doubtful(judgements: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Return the reasons to doubt the judges' scores, by pair and question."""
    reasons_by_key: dict[tuple[str, str], list[str]] = {}
    if "label_mass" in judgements:
        low = judgements[judgements["label_mass"] < LEAST_MASS]
        for key in dict.fromkeys(zip(low["pair_id"], low["question"], strict=True)):
            reasons_by_key.setdefault(key, []).append("label mass")
    wide = judgements.pivot(index=["pair_id", "question", "judge"], columns="order", values="score")
    if {"up", "down"} <= set(wide.columns):
        moved = wide[np.abs(wide["up"] - wide["down"]) >= LARGE]
        for pair_id, question, _ in moved.index:
            reasons = reasons_by_key.setdefault((pair_id, question), [])
            reasons += ["order"] * ("order" not in reasons)
    return reasons_by_key


Scales = Mapping[str, Sequence[float]]  # of the questions that judges answer


def suggestions_of(judgements: pd.DataFrame, scales: Scales) -> dict[str, tuple[Suggestion, ...]]:
    """By pair, for each question the mean of its judges' scores as the nearest point of its scale.

    A judge without a score in each of its orders is left out. The certainty is the mean of the label masses, as far as
    there are any.
    """
    scores = over_orders(judgements).dropna(subset=["score"])
    sure = judgements[judgements["status"] == "ok"].groupby(["pair_id", "question"])["label_mass"].mean()
    suggestions: dict[str, tuple[Suggestion, ...]] = {}
    for (pair, name), group in scores[scores["question"].isin(list(scales))].groupby(["pair_id", "question"]):
        pair_id, question, names = str(pair), str(name), sorted(group["judge"])
        value = nearest_points(np.array([group["score"].mean()]), scales[question])[0]
        agent = f"mean of {' and '.join(names)}" if len(names) > 1 else names[0]
        suggestion = Suggestion(question, as_number(value), agent, float(sure.get((pair_id, question), np.nan)))
        suggestions[pair_id] = (*suggestions.get(pair_id, ()), suggestion)
    return suggestions


def said_of(pair_id: str, ratings: pd.DataFrame, judgements: pd.DataFrame, questions: Iterable[str]) -> str:
    """Return the answers to these questions about a pair as lines: people, numbered anew for each pair, then judges.

    Nobody can be followed from pair to pair: a hash decides who is Rater 1. Comments stay with the coordinator.
    """
    ratings_of_pair, lines, names = ratings[ratings["pair_id"] == pair_id], ["People"], list(questions)
    raters = sorted(ratings_of_pair["rater_id"].unique(), key=lambda rater: identity("adjudicated-v1", pair_id, rater))
    for number, rater in enumerate(raters, 1):
        group = ratings_of_pair[ratings_of_pair["rater_id"] == rater]
        made_up = " (simulated)" if group["simulated"].any() else ""
        lines.append(f"Rater {number}{made_up}: {_listed(group.set_index('question')['value'], names)}")
    judged = judgements[judgements["pair_id"] == pair_id]
    scores = over_orders(judged)
    recorded = set(judged.loc[judged["kind"] == "recorded", "judge"])
    lines += ["", "Judges: language models; their mean, rounded, is the suggestion"]
    for judge, group in scores.groupby("judge"):
        note = " (its answers come from a file)" if judge in recorded else ""
        lines.append(f"{judge}{note}: {_listed(group.set_index('question')['score'], names)}")
    return "\n".join(lines)


def _listed(values: pd.Series, questions: Sequence[str]) -> str:
    answered = {name: values[name] for name in questions if name in values.index}
    return ", ".join(f"{name} {'no score' if pd.isna(value) else f'{value:.3g}'}" for name, value in answered.items())


@dataclass(frozen=True)
class DisputedPairs:
    """Pairs that both people and judges rated, with their answers."""

    rows: pd.DataFrame  #: `disagreements`, pairs on which they differ most first
    ratings: pd.DataFrame  #: those that count, on questions with a scale
    judgements: pd.DataFrame
    judges: tuple[str, ...]
    rubric: Rubric
    pairs: Mapping[str, Pair]
    scales: Scales  #: of the questions that are rated
    study_name: str
    called: ItemNames

    @classmethod
    def of(cls, evidence: Evidence) -> DisputedPairs:
        """Return a campaign's. Raises DataError before there are verdicts and judgements, and for stale verdicts.

        Before the verdicts, somebody who saw it could decide about raters by it, without a record.
        """
        refuse_stale(evidence.read_whole(), evidence.verdicts)
        study, design, judging = evidence.study, evidence.design, read_judging(evidence)
        counting = counting_ratings(evidence.collected.sample_ratings, design.per_pair)
        names = evidence.rubric.rating_names()
        ratings = counting[counting["question"].isin(names)]
        return cls(
            disagreements(ratings, judging.judgements, design.rule.min_raters),
            ratings,
            judging.judgements,
            judging.judges,
            evidence.rubric,
            {pair.pair_id: pair for pair in evidence.collected.sample_pairs},
            {name: design.asked(name).scale for name in names},
            study.name,
            study.called,
        )

    def worst(self, number: int) -> list[str]:
        """Return the ids of the pairs with the largest differences, at most `number`."""
        return list(dict.fromkeys(self.rows["pair_id"]))[:number]

    @property
    def simulated(self) -> bool:
        """Whether simulated ratings count among them."""
        return bool(self.ratings["simulated"].any())

    @property
    def recorded(self) -> list[str]:
        """Judges whose answers come from a file."""
        judgements = self.judgements
        return sorted(judgements.loc[judgements["kind"] == "recorded", "judge"].unique())


REVIEW = "REVIEW"  # in capitals, which no study's name has, and longer than a language's code
SAID = "people_and_judges"  # the field with the answers of both
_TITLE = "What people and judges said"
_NOTE = (
    "**Adjudication.** People have rated these pairs, and so have language models. You see what both said; the models'"
    " mean score is filled in as a suggestion, so change it wherever you see it otherwise. Your answer is kept as an"
    " adjudication. It is no rating: no mean, no agreement and no verdict has it."
)


@dataclass(frozen=True)
class Reviewing:
    """The pairs put before adjudicators."""

    pairs: Sequence[str]  #: ids of the pairs, those on which people and judges differ most first
    new: Mapping[str, int]  #: number of new pairs, by dataset
    rated: Mapping[str, int]  #: number of these pairs that an adjudicator has rated, by user name; without zeros
    languages: frozenset[str]  #: of their texts (codes)


def workspace_of(study_name: str) -> str:
    """The workspace of a study's adjudicators: `demo-REVIEW`."""
    return f"{study_name}-{REVIEW}"


def dataset_of(study_name: str, queue: Queue) -> str:
    """Return the name of a queue's dataset for adjudication, such as `demo-REVIEW-paraphrasing-EN`."""
    return queue.dataset(study_name).replace(study_name, workspace_of(study_name), 1)


def publish_review(study: Study, argilla: Argilla, number: int, names: Sequence[str]) -> Reviewing:
    """Put the pairs on which people and judges differ most before adjudicators (user names), with judges' scores.

    Only pairs with enough ratings to count, after the verdicts. `reviews.json` notes it before anything is sent. Pairs
    sent earlier stay as they are; one adjudication closes a pair. Raises StudyError for a person without an
    annotator's account, and for one who can still rate a pair: nobody sees others' answers before giving their own.
    """
    with alone(study):
        evidence = Evidence.open(study)
        disputed = DisputedPairs.of(evidence)
        chosen = disputed.worst(number)
        if not chosen:
            raise StudyError(
                f"{study.name}: no pair has both enough ratings and a judge's score; there is nothing to adjudicate"
            )
        people = _adjudicators(argilla, names)
        _refuse_open(evidence, argilla, people)
        called = {account_pseudonym(study.name, user.id, simulated=False): user.username for user in people}
        noted = Review(at=datetime.now(UTC), pairs=chosen, adjudicators=sorted(called), judges=disputed.judges)
        Manifest.of(study).write_models(REVIEWS.name, [*evidence.reviews, noted])
        new = _send(argilla, disputed, chosen, people)
        rated = disputed.ratings[disputed.ratings["pair_id"].isin(chosen)].drop_duplicates(["pair_id", "rater_id"])
        rated_too = Counter(called[rater] for rater in rated["rater_id"] if rater in called)
        read = (disputed.pairs[pair_id] for pair_id in chosen)
        return Reviewing(chosen, new, rated_too, frozenset(code for pair in read for code in Queue.of(pair).languages))


def _adjudicators(argilla: Argilla, names: Sequence[str]) -> list[ArgillaUser]:
    able = {user.username: user for user in argilla.users() if is_person(user)}
    for name in names:
        if name not in able:
            raise StudyError(f"{name!r} has no annotator's account at {argilla.url}; {nearest(name, sorted(able))}")
    return [able[name] for name in dict.fromkeys(names)]


def _refuse_open(records: CampaignRecords, argilla: Argilla, people: Sequence[ArgillaUser]) -> None:
    """Raise StudyError where an adjudicator can still rate a pair of the campaign."""
    names, listed, open_pairs = {user.id: user.username for user in people}, argilla.datasets(), Counter[str]()
    study = records.study
    for queue in queues_of(records.pairs):
        dataset = listed.get((queue.workspace(study.name), queue.dataset(study.name)))
        inside = set(argilla.members(dataset.workspace_id)) & set(names) if dataset else set()
        if dataset is None or not inside:
            continue
        for record in argilla.records(dataset.id):
            if record["status"] != "completed":
                done = {
                    response["user_id"] for response in record.get("responses") or [] if response["status"] != "draft"
                }
                open_pairs.update(names[user_id] for user_id in inside - done)
    for name, pairs in open_pairs.items():
        raise StudyError(
            f"{name!r} can still rate {count(pairs, 'pair')} of {study.name} and would see others' answers;"
            " name somebody else, or wait until all pairs are rated"
        )


def _send(
    argilla: Argilla, disputed: DisputedPairs, chosen: Collection[str], people: Sequence[ArgillaUser]
) -> dict[str, int]:
    """Create the missing workspace, datasets and pairs; return the number of new pairs by dataset."""
    workspaces, workspace = argilla.workspaces(), workspace_of(disputed.study_name)
    if workspace not in workspaces:
        workspaces[workspace] = argilla.request("POST", "/workspaces", json={"name": workspace})["id"]
    listed, new, summary = argilla.datasets(), {}, ExtraField(SAID, _TITLE)
    suggestions = suggestions_of(disputed.judgements[disputed.judgements["pair_id"].isin(chosen)], disputed.scales)
    for queue, pairs in queues_of(disputed.pairs[pair_id] for pair_id in chosen).items():
        name = dataset_of(disputed.study_name, queue)
        words, dataset = Words.of(disputed.rubric, queue, _NOTE), listed.get((workspace, name))
        if dataset is not None and dataset.status == "draft":  # an earlier run was cut off while it made it
            argilla.request("DELETE", f"/datasets/{dataset.id}")
            dataset = None
        dataset_id = create_dataset(argilla, words, (workspace, name), 1, summary) if dataset is None else dataset.id
        present = {record["external_id"] for record in argilla.records(dataset_id)}
        beside, questions = words.beside, questions_of(argilla, dataset_id)
        records = []
        for pair in pairs:
            if pair.pair_id not in present:
                record = record_of(pair, beside)
                record["fields"][SAID] = said_of(pair.pair_id, disputed.ratings, disputed.judgements, disputed.scales)
                record["suggestions"] = [
                    suggestion.as_json(questions) for suggestion in suggestions.get(pair.pair_id, ())
                ]
                records.append(record)
        if records:
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": records})
        new[name] = len(records)
    admit(workspaces[workspace], argilla, people)
    return new


def reviewed(records: CampaignRecords, argilla: Argilla) -> dict[Queue, DatasetListing]:
    """The datasets of a study's review that are there, by queue."""
    listed, study = argilla.datasets(), records.study
    names = {queue: (workspace_of(study.name), dataset_of(study.name, queue)) for queue in queues_of(records.pairs)}
    return {queue: listed[name] for queue, name in names.items() if name in listed}


ADJUDICATIONS = RecordFile("adjudications.json", Adjudication, "collect", noted=True)
_RATED = ("pair_id", "rater_id")


def collect_adjudications(study: Study, argilla: Argilla, *, replace: bool = False) -> list[Adjudication]:
    """Fetch the adjudicators' submitted and discarded answers, without drafts; none where no pair was sent to them.

    Only answers of the study's adjudicators count as such. Raises DataError where some that were collected before are
    no longer on the server, unless `replace` says so.
    """
    records = CampaignRecords.open(study)
    if not records.reviews:
        return []
    with alone(study):
        reading = _AdjudicationReading.of(records, argilla)
        rows = [row for dataset in reviewed(records, argilla).values() for row in reading.rows(dataset.id)]
        rows.sort(key=lambda row: (row.pair_id, row.adjudicator, row.question))
        before = records.models(ADJUDICATIONS)
        lost = {(row.pair_id, row.adjudicator) for row in before} - {(row.pair_id, row.adjudicator) for row in rows}
        if lost and not replace:
            are, them = ("is", "it") if len(lost) == 1 else ("are", "them")
            raise DataError(
                f"{count(len(lost), 'adjudication')} collected before {are} no longer at {argilla.url}; check that"
                f" this is the right server, or add --replace to drop {them}"
            )
        if rows != before:
            Manifest.of(study).write_models(ADJUDICATIONS.name, rows)
        return rows


@dataclass(frozen=True)
class _AdjudicationReading:
    argilla: Argilla
    people: Mapping[str, str]  # adjudicators' pseudonyms, by user id
    pairs: Mapping[str, Pair]
    rubric: Rubric
    raters: Mapping[str, set[str]]  # who rated each pair

    @classmethod
    def of(cls, records: CampaignRecords, argilla: Argilla) -> _AdjudicationReading:
        name, rated = records.study.name, records.all_ratings
        users = {user.id: account_pseudonym(name, user.id, simulated=user.simulated) for user in argilla.users()}
        adjudicators = {pseudonym for review in records.reviews for pseudonym in review.adjudicators}
        raters: dict[str, set[str]] = {}
        for pair_id, rater in zip(*(rated.loc[rated["status"] == "submitted", k] for k in _RATED), strict=True):
            raters.setdefault(pair_id, set()).add(rater)
        people = {user_id: pseudonym for user_id, pseudonym in users.items() if pseudonym in adjudicators}
        pairs = {pair.pair_id: pair for pair in records.pairs}
        return cls(argilla, people, pairs, asked_rubric(records), raters)

    def rows(self, dataset_id: str) -> list[Adjudication]:
        """The adjudications of one dataset, a row for each question."""
        questions = self.argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
        names = {question["id"]: question["name"] for question in questions}
        shown = self._suggested(dataset_id, names)
        rows = list[Adjudication]()
        for record in self.argilla.records(dataset_id):
            for response in record.get("responses") or []:
                if response["user_id"] in self.people and response["status"] != "draft":
                    rows += self._of(record["external_id"], response, shown.get(record["external_id"], {}))
        return rows

    def _suggested(self, dataset_id: str, names: Mapping[str, str]) -> dict[str, dict[str, Value]]:
        """Return the suggestions that Argilla shows, by pair and question."""
        suggested, offset = dict[str, dict[str, Value]](), 0
        while True:
            params = {"include": "suggestions", "offset": offset, "limit": PAGE}
            page = self.argilla.request("GET", f"/datasets/{dataset_id}/records", params=params)["items"]
            for record in page:
                suggestions = record.get("suggestions") or []
                suggested[record["external_id"]] = {
                    names[suggestion["question_id"]]: suggestion["value"] for suggestion in suggestions
                }
            offset += PAGE
            if len(page) < PAGE:
                return suggested

    def _of(self, pair_id: str, response: Mapping[str, Any], shown: Mapping[str, Value]) -> list[Adjudication]:
        who, values = self.people[response["user_id"]], response.get("values") or {}
        if pair_id not in self.pairs:
            raise DataError(f"{self.argilla.url} has an adjudication of {pair_id!r}, which is not in pairs.parquet")
        questions = self.rubric.asked(self.pairs[pair_id].pool)
        answer = Answer(
            pair_id=pair_id,
            rater_id=who,
            status=response["status"],
            values={
                question_scale.name: question_scale.kept(values.get(question_scale.name, {}).get("value"))
                for question_scale in questions
            },
            submitted_at=f"{response['updated_at'].removesuffix('Z')}+00:00",
        )
        check(answer, f"adjudication of pair {pair_id}", self.rubric, self.pairs)
        return [
            Adjudication.model_validate(
                {
                    "pair_id": pair_id,
                    "adjudicator": who,
                    "question": question,
                    "value": None if isinstance(value, str) else value,
                    "answer": value if isinstance(value, str) else "",
                    "suggested": shown.get(question),
                    "rated": who in self.raters.get(pair_id, set()),
                    "status": answer.status,
                    "comment": values.get(COMMENT, {}).get("value") or "",
                    "submitted_at": answer.submitted_at,
                }
            )
            for question, value in answer.values.items()
            if value is not None or answer.status == "discarded"
        ]


SHOWN = 20  # pairs in the printed list


def judged_text(disputed: DisputedPairs, adjudications: Sequence[Adjudication], names: Mapping[str, str]) -> str:
    """The pairs to read, the farthest first, with adjudications beside them, which decide nothing."""
    decided: dict[tuple[str, str], list[str]] = {}
    for adjudication in adjudications:
        answer = (
            "discarded"
            if adjudication.status == "discarded"
            else str(adjudication.answer if adjudication.value is None else adjudication.value)
        )
        decided.setdefault((adjudication.pair_id, adjudication.question), []).append(answer)
    worst = disputed.worst(SHOWN)
    rows = [
        [
            row["pair_id"][:12],
            display(row["transformation"], pooled=False),
            row["question"],
            f"{row['people']:.2f}",
            f"{row['judges']:.2f}",
            f"{row['apart']:+.2f}",
            row["flags"],
            ", ".join(decided.get((row["pair_id"], row["question"]), [])),
        ]
        for row in disputed.rows[disputed.rows["pair_id"].isin(worst)].to_dict("records")
    ]
    judged, item = disputed.called
    header = [item.capitalize(), judged.capitalize(), "Question", "People", "Judges", "Difference"]
    parts = [
        f"Pairs on which people and judges differ most, study {disputed.study_name}; read them, as either may be wrong"
    ]
    parts += [SIMULATED] if disputed.simulated else []
    parts += [f"Judges whose answers come from a file: {', '.join(disputed.recorded)}"] if disputed.recorded else []
    parts.append(
        columns(
            [*header, "Flags", "Adjudicated"], rows, empty="none: no pair has both enough ratings and a judge's score"
        )
    )
    hidden = disputed.rows["pair_id"].nunique() - len(worst)
    parts += [f"... and {hidden} more"] if hidden > 0 else []
    if adjudications:
        by = Counter(
            (adjudication.pair_id, adjudication.adjudicator, adjudication.rated) for adjudication in adjudications
        )
        whose = Counter(adjudicator for _, adjudicator, _ in by)
        number_rated = sum(rated for *_, rated in by)
        numbers = ", ".join(f"{named(who, names)} {number}" for who, number in whose.items())
        parts.append(
            f"Adjudications: {numbers} ({number_rated} on pairs that the adjudicator had rated). They are not"
            " ratings: adjudicators saw judges' scores, so no mean, agreement or verdict uses them."
        )
    return "\n\n".join(parts)

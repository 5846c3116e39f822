"""Collecting crowd workers' answers: read once, kept in the ledger, checked, and written to the study's ratings.

A rehearsal's ratings are marked as simulated, whoever gave them, and are removed when the first live ratings come.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from annotation.campaign.names import worker_pseudonym
from annotation.campaign.offering import CampaignName
from annotation.campaign.records import AGREEMENT, BLOCK_LOOKS, DECISIONS, LOOKS, PAIR_MEANS, VERDICTS, CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.crowd.campaign import CrowdCampaign
from annotation.crowd.judging import finish
from annotation.crowd.ledger import Ledger, Work, refuse_lost_batches
from annotation.crowd.mturk.form import read_archive
from annotation.human.records import ANSWERS
from annotation.ratings.answers import Answer, SourcePart, check, keep, source_of_file
from annotation.verdicts.preregistration import asked_rubric
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest
from plumbline.records import REHEARSAL, Pair
from plumbline.study import Study
from plumbline.study.crowd import PLATFORMS

#: The sources of rehearsals by people, which live ratings end.
REHEARSALS = tuple(name.source for name in (CampaignName(name, "sandbox") for name in PLATFORMS) if not name.made_up)
COUNTED = ("submitted", "approved", "rejected")  # a rejected worker's ratings stay in the data, excluded


@dataclass(frozen=True)
class Collection:
    """The result of collecting."""

    new: int  #: submissions whose answers were read now
    troubles: Mapping[str, str]  #: submissions whose answers cannot be read, and why


def collect(campaign: CrowdCampaign, *, replace: bool = False) -> Collection:
    """Fetch the answers of all submissions into `ratings.parquet` (controls' into `control_ratings.parquet`).

    A test's answers stay in the ledger.
    Answers that cannot be read (malformed, incomplete, or of another study) are left out and named, and read again at
    the next collection; a person still judges that work. Raises StudyError for a rehearsal in a
    study that has ratings by people, DataError as `refuse_lost_batches`.
    """
    study, mode, ratings = campaign.study, campaign.platform.mode, campaign.records.all_ratings
    refuse_lost_batches(campaign.records, campaign.ledger)  # `replace` would drop the ratings that show it
    if mode == "sandbox" and (~ratings["simulated"].astype(bool)).any():
        raise StudyError(
            f"{study.name} has ratings by people, which must not be mixed with those of a rehearsal; rehearse"
            " under another study name (docs/crowd.md, Beside people's ratings)"
        )
    finish(campaign)
    campaign.refresh()
    rubric = campaign.rubric
    new = _read(campaign, rubric)
    submissions = campaign.ledger.work()
    troubles = {work.submission.submission_id: work.trouble for work in submissions if work.trouble}
    if not campaign.name.counts:
        return Collection(new, troubles)
    works = [work for work in submissions if work.collected]
    for batch_id in dict.fromkeys(work.batch_id for work in works):
        campaign.offer(batch_id)  # refuses a sample other than the offered one
    answers = defaultdict[str, list[Answer]](list)
    for work in works:
        if work.submission.state in COUNTED:
            rows = json.loads(campaign.ledger.answers(work.submission.submission_id))
            answers[work.batch_id] += _rated(
                work, [Answer(**row) for row in rows], rubric, campaign.records.shown_by_id
            )
    parts = {batch_id: SourcePart("", tuple(of_batch)) for batch_id, of_batch in answers.items()}
    source = campaign.name.source
    replace = replace or _only_returned(ratings, source, parts, submissions)
    keep(campaign.records, source, parts, replace=replace, instead_of=REHEARSALS if parts and mode == "live" else ())
    campaign.reopen()
    finish(campaign)  # a rejected worker's ratings do not count, also where they were read only now
    return Collection(new, troubles)


def collect_archive(study: Study, key: bytes, path: Path, *, replace: bool = False) -> Collection:
    """Take the answers of a result file of the MTurk site into the ratings; the file's name is their source.

    `key` makes workers' pseudonyms, the same as a campaign's. Rejected assignments are left out and named, as MTurk's
    own site leaves them unpaid. Raises DataError with file and line for anything that is not an answer of this study.
    """
    source, records = source_of_file(path), CampaignRecords(study)
    pairs = records.shown_by_id
    rubric, answers, left_out = asked_rubric(records), list[Answer](), dict[str, str]()
    pools = {pair_id: pair.pool for pair_id, pair in pairs.items()}
    for submission, unrated in read_archive(path, study.name, rubric, pools):
        if submission.state == "rejected":
            left_out[submission.submission_id] = f"assignment {submission.submission_id} was rejected"
            continue
        rater = worker_pseudonym(key, study.name, "mturk", submission.worker)
        rated = [_answer(answer, rater, submission.posted_id, rubric, pairs) for answer in unrated]
        for answer in rated:
            check(answer, f"{path}, assignment {submission.submission_id}", rubric, pairs)
        answers += rated
    part = SourcePart(sha256(path.read_bytes()).hexdigest(), tuple(answers))
    parts, rehearsals = ({source: part}, REHEARSALS) if answers else ({}, ())
    keep(records, source, parts, replace=replace, instead_of=rehearsals)
    return Collection(len({(answer.rater_id, answer.batch) for answer in answers}), left_out)


def forget_rehearsal(study: Study, ledger: Ledger) -> int:
    """Remove the made-up crowd's ratings and everything computed from them; return the number of ratings.

    A study never has ratings of both a rehearsal and people, so all its looks and verdicts come from the rehearsal.
    """
    records, raters = CampaignRecords(study), {work.pseudonym for work in ledger.work()}
    number = int((records.all_ratings["source"] == REHEARSAL).sum())
    if raters and number == len(records.all_ratings):
        for file in (LOOKS, BLOCK_LOOKS):
            if records.has(file):
                Manifest.of(study).write_models(file.name, [])
        for result in (VERDICTS, AGREEMENT, PAIR_MEANS):
            (study.folder / result).unlink(missing_ok=True)
        (study.folder / ANSWERS).unlink(missing_ok=True)
    if number:
        keep(records, REHEARSAL, {}, replace=True)
    staying = [decision for decision in records.decided if decision.rater_id not in raters]
    if len(staying) < len(records.decided):
        Manifest.of(study).write_models(DECISIONS.name, staying)
    return number


def _only_returned(ratings: pd.DataFrame, source: str, parts: Mapping[str, SourcePart], works: Sequence[Work]) -> bool:
    """Return whether ratings are missing and all missing ones are of returned work, which must not be used."""
    of_source = ratings[ratings["source"] == source]
    collected = {(answer.rater_id, answer.batch) for part in parts.values() for answer in part.answers}
    missing = set(zip(of_source["rater_id"], of_source["batch"], strict=True)) - collected
    returned = {(work.pseudonym, work.batch_id) for work in works if work.submission.state == "returned"}
    return bool(missing) and missing <= returned


def _read(campaign: CrowdCampaign, rubric: Rubric) -> int:
    """Read new answers of finished submissions (unreadable ones again: people may have gone on); return how many."""
    ledger = campaign.ledger
    todo = [work for work in ledger.work() if work.submission.state in COUNTED and not work.collected]
    for work in tqdm(todo, unit="submission", desc=f"[{campaign.name.label}] reading answers", disable=not todo):
        offer = campaign.offer(work.batch_id)
        try:
            answers = campaign.platform.answers(work.submission, offer)
            _check(work, answers, [pair.pair_id for pair in offer.pairs])
            for answer in _rated(work, answers, rubric, campaign.records.shown_by_id):
                check(answer, f"submission {work.submission.submission_id}", rubric, campaign.records.shown_by_id)
        except DataError as error:
            ledger.keep_answers(work.submission.submission_id, "[]", str(error))
        else:
            text = json.dumps([asdict(answer) for answer in answers], ensure_ascii=False)
            ledger.keep_answers(work.submission.submission_id, text)
    return sum(not work.answered for work in todo)


def _check(work: Work, answers: Sequence[Answer], pair_ids: Sequence[str]) -> None:
    """Raise DataError unless the answers are one to each pair of the batch."""
    location = f"submission {work.submission.submission_id}"
    counts = Counter(answer.pair_id for answer in answers)
    if foreign := [pair_id for pair_id in counts if pair_id not in pair_ids]:
        raise DataError(f"{location}: has an answer to pair {foreign[0][:64]!r}, which is not in its batch")
    if repeated := [pair_id for pair_id in counts if counts[pair_id] > 1]:
        raise DataError(f"{location}: has more than one answer to pair {repeated[0][:64]!r}")
    if missing := [pair_id for pair_id in pair_ids if pair_id not in counts]:
        raise DataError(f"{location}: has no answers to {len(missing)} of its pairs")


def _rated(work: Work, answers: Sequence[Answer], rubric: Rubric, pairs: Mapping[str, Pair]) -> list[Answer]:
    return [_answer(answer, work.pseudonym, work.batch_id, rubric, pairs) for answer in answers]


def _answer(answer: Answer, rater: str, batch: str, rubric: Rubric, pairs: Mapping[str, Pair]) -> Answer:
    """Return an answer with its rater and a value for each question about the pair."""
    questions = rubric.asked(pairs[answer.pair_id].pool)
    values = {question.name: question.kept(answer.values.get(question.name)) for question in questions}
    return dataclasses.replace(answer, values=values, rater_id=rater, batch=batch)

"""Review of work before it is paid, and the effects of each decision.

The program decides nothing. Its advice is `approve` or `ask`, never `reject` (PTEB, appendix B: rejections stay
rare, and each keeps its reason). A rejected worker's ratings stop counting; they stay in the data.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from annotation.campaign.counting import excluded_raters
from annotation.campaign.records import CampaignRecords
from annotation.crowd import pay
from annotation.crowd.campaign import CrowdCampaign, pairs_of
from annotation.crowd.ledger import Ledger, SubmissionReview, Work
from annotation.crowd.platform import NoMoneyError, RefusedError
from annotation.questions.question import Value
from annotation.ratings.answers import Answer
from annotation.records import Sign
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import asked_rubric
from plumbline.cli import columns
from plumbline.errors import StudyError
from plumbline.fields import fields_of
from plumbline.study.crowd import CrowdSpec
from plumbline.words import count

FINAL = ("approved", "rejected")
ON_PLATFORM = "rejected on the platform's own page"  # the reason of a decision that was made there


@dataclass(frozen=True)
class Case:
    """A submission as a person judges it."""

    work: Work
    signs: tuple[Sign, ...]
    hourly: float  #: dollars an hour that its reward comes to; NaN if its time is unknown
    against: tuple[str, ...]  #: what speaks against paying it: signs, its worker's other work, answers not read

    @property
    def advice(self) -> Literal["approve", "ask"]:
        """What the program advises."""
        return "ask" if self.against else "approve"


def cases(records: Evidence, ledger: Ledger) -> list[Case]:
    """All submissions that wait for a decision as far as the ledger knows, in the order of their batches."""
    works = ledger.work()
    waiting = [work for work in works if work.submission.state == "submitted"]
    if not waiting:
        return []
    about = {rater: f"worker: excluded ({reason})" for rater, reason in excluded_raters(records.decided).items()}
    about |= {
        work.pseudonym: "worker: another submission of this worker was rejected"
        for work in works
        if work.submission.state == "rejected"
    }
    last = {review.submission_id: review for review in ledger.judgements()}
    ratings = records.collected.plain_ratings
    collected = set(zip(ratings["rater_id"], ratings["batch"], strict=True))
    if not ledger.campaign.counts:  # its answers are in the ledger alone
        collected = {(work.pseudonym, work.batch_id) for work in works if work.collected}
    rewards = {offer.batch.batch_id: offer.reward for offer in ledger.offered()}
    waiting_cases = []
    for work in waiting:
        signs = tuple(sign for sign in records.signs if sign.rater_id == work.pseudonym)
        against, review = _lines(signs), last.get(work.submission.submission_id)
        if review is not None and review.decision == "reject":
            against.append(f"you: rejected it, which the platform refused ({review.reason[:60]})")
        if work.pseudonym in about:
            against.append(about[work.pseudonym])
        if (work.pseudonym, work.batch_id) not in collected:
            against.append(work.trouble or "its answers have not been collected yet (plumbline collect)")
        hourly = pay.hourly(rewards[work.batch_id], work.submission.seconds)
        waiting_cases.append(Case(work, signs, hourly, tuple(against)))
    return waiting_cases


def approve(campaign: CrowdCampaign, submission_ids: Sequence[str], reason: str = "") -> int:
    """Approve submissions, all or none; return how many are newly approved.

    Raises StudyError for another campaign's submission, for one that cannot be approved, and without a reason for one
    that something speaks against.
    """
    works = [work for work in works_of(campaign.ledger, submission_ids) if work.submission.state != "approved"]
    for work in works:
        if work.submission.state != "submitted":
            raise StudyError(
                f"submission {work.submission.submission_id} is {work.submission.state}; only submitted work can be"
                " approved; nothing was approved"
            )
    wanted = {work.submission.submission_id for work in works}
    chosen = [case for case in cases(campaign.records, campaign.ledger) if case.work.submission.submission_id in wanted]
    doubtful = [case for case in chosen if case.against]
    if doubtful and not reason.strip():
        lines = [f"submission {case.work.submission.submission_id}: {', '.join(case.against)}" for case in doubtful]
        raise StudyError(f"nothing was approved; to pay all the same, add --reason 'why': {'; '.join(lines)}")
    for case in chosen:
        _judge(campaign, case.work, "approve", reason, case.against)
    finish(campaign, submission_ids)
    return len(works)


def approve_all(campaign: CrowdCampaign) -> tuple[int, list[Case]]:
    """Approve what nothing speaks against; return how many submissions, and the cases left for a person."""
    waiting_cases = cases(campaign.records, campaign.ledger)
    good = [case for case in waiting_cases if case.advice == "approve"]
    for case in good:
        _judge(campaign, case.work, "approve", "nothing against it", ())
    finish(campaign)
    return len(good), [case for case in waiting_cases if case.advice != "approve"]


def reject(campaign: CrowdCampaign, submission_ids: Sequence[str], reason: str) -> int:
    """Reject submissions, with a reason for their workers, whose ratings stop counting; return how many.

    Raises StudyError without a reason, for a submission of another campaign, and for one that was approved.
    """
    if not reason.strip():
        raise StudyError("a rejection needs a reason, which the worker reads; add --reason 'why'")
    works = [work for work in works_of(campaign.ledger, submission_ids) if work.submission.state != "rejected"]
    if paid := [work for work in works if work.submission.state == "approved"]:
        raise StudyError(f"submission {paid[0].submission.submission_id} was approved and paid; nothing was rejected")
    if early := [work for work in works if work.submission.state != "submitted"]:
        raise StudyError(f"submission {early[0].submission.submission_id} is {early[0].submission.state};"
                         " only submitted work can be rejected")  # fmt: skip
    for work in works:
        _judge(campaign, work, "reject", reason, _signs(campaign, work))
    finish(campaign, submission_ids)
    return len(works)


def finish(campaign: CrowdCampaign, again: Collection[str] = ()) -> None:
    """Carry out earlier decisions that are still open: calls, payments, exclusions.

    A rejection on the platform's own page is a decision, too. A refused decision is tried again only for the
    submissions `again`. Raises RefusedError at the end if the platform refused any decision.
    """
    campaign.settle()
    works, refused = {work.submission.submission_id: work for work in campaign.ledger.work()}, list[str]()
    decided = {review.submission_id: review.decision for review in campaign.ledger.judgements()}
    for submission_id, work in works.items():  # ratings and money follow rejections on the platform's page
        if work.submission.state == "rejected" and decided.get(submission_id) != "reject":
            _judge(campaign, work, "reject", ON_PLATFORM, _signs(campaign, work))
    last = {review.submission_id: review for review in campaign.ledger.judgements()}
    for judgement in last.values():
        work = works[judgement.submission_id]
        operation = campaign.ledger.operation(judgement.decision, judgement.submission_id)
        if judgement.submission_id not in again and operation is not None and operation.state == "refused":
            continue
        try:
            if judgement.decision == "approve":
                campaign.approve(work)
            else:
                campaign.reject(work, judgement.reason)
                campaign.exclude(work, judgement)
        except RefusedError as error:  # the other decisions are still carried out
            refused.append(str(error))
        if work.submission.state == "submitted":
            submission = campaign.platform.submission(work.submission.submission_id)
            campaign.ledger.note(submission, work.batch_id, work.pseudonym)
    if refused:
        raise RefusedError("; ".join(refused))


def owed(ledger: Ledger, excluded: Collection[str], spec: CrowdSpec) -> list[tuple[Work, int]]:
    """Return approved work that its reward underpays by the batch's observed time, and the missing cents.

    Only finished batches count: all work is decided, and enough of it is approved or the batch is closed. Work of
    `excluded` workers that others are to do again does not count as enough. The times of rejected work affect nobody's
    pay. A test pays nothing.
    """
    if not ledger.campaign.counts:
        return []
    work_on, closed = ledger.work_by_batch(), ledger.closed()
    bonuses = []
    for offer in ledger.offered():
        works = [work for work in work_on[offer.batch.batch_id] if work.submission.state != "returned"]
        good = [work for work in works if work.submission.state == "approved"]
        if any(work.submission.state not in FINAL for work in works):
            continue
        done = sum(work.pseudonym not in excluded for work in good)
        if done < offer.places and offer.batch.batch_id not in closed:
            continue
        times = [work.submission.seconds for work in good if not math.isnan(work.submission.seconds)]
        cents = pay.owed_bonus(offer.reward, times, spec.pay)
        for work in good:
            paid = ledger.operation("bonus", work.submission.submission_id)
            if cents and (paid is None or paid.state == "refused"):
                bonuses.append((work, cents))
    return bonuses


def pay_bonuses(campaign: CrowdCampaign) -> tuple[int, int]:
    """Pay the bonuses due for observed times, once for each submission; return their number and the cents in all.

    A refused bonus does not stop the others. Raises LimitError before the first one if not all can be paid within the
    limit; NoMoneyError if the platform's account has too little, RefusedError if it refused some: both errors have the
    number of paid bonuses.
    """
    finish(campaign)
    campaign.refresh()
    excluded = excluded_raters(campaign.records.decided)
    bonuses, paid, refused = owed(campaign.ledger, excluded, campaign.spec), 0, list[str]()
    in_all = sum(campaign.bonus_cost(*bonus) for bonus in bonuses)
    campaign.refuse_beyond_limit(in_all, f"paying {count(len(bonuses), 'bonus', 'bonuses')}")
    for work, cents in bonuses:
        try:
            campaign.bonus(work, cents)
            paid += 1
        except NoMoneyError as error:  # the other bonuses would fail, too
            raise type(error)(f"{paid:,} of {count(len(bonuses), 'bonus', 'bonuses')} paid now; {error}") from None
        except RefusedError as error:
            refused.append(str(error))
    if refused:
        raise RefusedError(f"{paid:,} of {count(len(bonuses), 'bonus', 'bonuses')} paid now; {'; '.join(refused)}")
    return paid, sum(cents for _, cents in bonuses)


def on_rules(judgement: SubmissionReview) -> bool:
    """Return whether a rejection follows from the rule that was fixed before the first rating: failed controls."""
    return any(sign.startswith("controls:") for sign in judgement.signs)


def _judge(
    campaign: CrowdCampaign, work: Work, decision: Literal["approve", "reject"], reason: str, against: Sequence[str]
) -> None:
    """Record a decision once, with what speaks against the work, before it is carried out."""
    reason = " ".join(reason.split())
    earlier = campaign.ledger.judgements(work.submission.submission_id)
    if earlier and (earlier[-1].decision, earlier[-1].reason) == (decision, reason):
        return
    at = datetime.now(UTC)
    campaign.ledger.judge(SubmissionReview(work.submission.submission_id, decision, reason, tuple(against), at))


def _signs(campaign: CrowdCampaign, work: Work) -> list[str]:
    return _lines(sign for sign in campaign.records.signs if sign.rater_id == work.pseudonym)


def _lines(signs: Iterable[Sign]) -> list[str]:
    return [f"{sign.rule}: {sign.evidence}" for sign in signs]


def works_of(ledger: Ledger, submission_ids: Sequence[str]) -> list[Work]:
    """Return the submissions with these ids. Raises StudyError for an id that this campaign does not have."""
    works_by_id: Mapping[str, Work] = {work.submission.submission_id: work for work in ledger.work()}
    for name in submission_ids:
        if name not in works_by_id:
            raise StudyError(
                f"submission {name!r} is not in the {ledger.campaign.label} campaign, or was not collected yet;"
                " `plumbline review` lists the waiting submissions"
            )
    return [works_by_id[name] for name in dict.fromkeys(submission_ids)]


def states_text(campaign: CrowdCampaign, submission_ids: Sequence[str] = ()) -> str:
    """Return how many submissions, of these ids or all, are in each state."""
    works = works_of(campaign.ledger, submission_ids) if submission_ids else campaign.ledger.work()
    states = Counter(work.submission.state for work in works)
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "nobody has begun"


WIDTH = 60  # characters of a text that are shown


def sheet_text(records: CampaignRecords, ledger: Ledger, submission_id: str) -> str:
    """Return the answers of a submission in the order shown, with the expected answers of controls.

    Raises StudyError for a submission of another campaign.
    """
    (work,) = works_of(ledger, [submission_id])
    rubric, answers_json = asked_rubric(records), ledger.answers(submission_id)
    (batch,) = [offer.batch for offer in ledger.offered() if offer.batch.batch_id == work.batch_id]
    answers = {row["pair_id"]: Answer(**row) for row in json.loads(answers_json or "[]")}
    questions, rows, texts = rubric.question_names(), list[list[str]](), list[str]()
    for number, pair in enumerate(pairs_of(records, batch, ledger.campaign.mode), 1):
        answer = answers.get(pair.pair_id)
        cells = _cells(answer, questions, rubric.right_answers(pair))
        rows.append([str(number), pair.control or pair.transformation, *cells])
        first, *other_texts = (_shown(field.text) for field in fields_of(pair))
        texts += [f"{number}  {first}", *(f"   -> {text}" for text in other_texts)]
        texts += [f"   comment: {_shown(answer.comment)}"] if answer is not None and answer.comment else []
    header = ["pair", "kind", *questions, "seconds"]
    none = [] if answers else [work.trouble or "No answers have been read yet (plumbline collect)."]
    head = f"{work.pseudonym}, batch {work.batch_id}, submission {submission_id}: {work.submission.state}"
    return "\n".join([head, *none, columns(header, rows, mark=ledger.campaign.mark), "", *texts])


def _cells(answer: Answer | None, questions: list[str], expected: Mapping[str, Value]) -> list[str]:
    if answer is None:
        return ["–"] * (len(questions) + 1)
    values = [
        f"{'–' if answer.values.get(name) is None else _shown(str(answer.values[name]))}"
        + (f" (expected {expected[name]})" if name in expected else "")
        for name in questions
    ]
    return [*values, "–" if answer.seconds is None or math.isnan(answer.seconds) else f"{answer.seconds:.0f}"]


def _shown(text: str) -> str:
    """Return a text in one short line, without control characters."""
    line = "".join(letter if letter.isprintable() else " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"
                   for letter in text)  # fmt: skip
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"

"""A crowd campaign's summary from its ledger and the study's records: progress, money, decisions.

No worker's id leaves it. The platform is not queried: the summary is as recent as the last command that queried it.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from annotation.campaign.counting import excluded_raters
from annotation.campaign.offering import ARGILLA, LEDGER, CampaignName, Mode, ledgers, offered, present_campaigns
from annotation.campaign.records import pair_records
from annotation.crowd import pay
from annotation.crowd.campaign import most_open, next_batches, pairs_of
from annotation.crowd.judging import cases, on_rules, owed
from annotation.crowd.ledger import BatchOffer, Ledger, refuse_lost_batches, refuse_lost_campaign
from annotation.crowd.places import BatchPlaces, places_of
from annotation.crowd.platform import Decision, Offer, Submission, crowd_of, first_campaign, platform_class
from annotation.crowd.tally import Tally, counted, fees_text, of_offers
from annotation.verdicts.evidence import Evidence
from plumbline.cli import columns
from plumbline.records import Pair
from plumbline.study import Study
from plumbline.study.crowd import EXTRA_PAY, CrowdSpec, PlatformName
from plumbline.study.subject import ItemNames
from plumbline.words import count


@dataclass(frozen=True)
class CrowdSummary:
    """One campaign: a study's batches on one platform in one mode. Money in cents."""

    platform: PlatformName
    mode: Mode
    batches: int  #: offered or not, without pilots
    pilots: int  #: batches that are a trial, offered or not
    posted: int  #: batches offered so far, without pilots
    posted_pilots: int  #: pilots offered so far
    places: int  #: workers wanted for all batches together
    states: Mapping[str, int]  #: submissions by state, without those to pilots
    pilot_states: Mapping[str, int]  #: submissions to pilots by state
    unreadable: int  #: submissions whose answers could not be read
    planned: int  #: what all batches cost that are offered or can be by now, fees included, no bonuses
    fees: int  #: the platform's part of it; 0 where the study names no `crowd.fee`
    spent: int  #: spent or reserved, fees and bonuses included
    spent_on: Mapping[str, int]  #: what was spent or reserved by kind (`Operation.kind`); the sum is `spent`
    bonuses_to_come: int  #: bonuses that are still expected at the times so far, fees included
    places_to_come: int  #: cost of places that are to be offered again
    rewards: int  #: rewards approved
    bonuses: int  #: bonuses paid
    unsettled: int  #: calls whose effect is not known yet
    hourly: float  #: median of the submissions' dollars an hour, bonuses included; NaN before there is one
    hourly_in_all: float  #: all their pay over all their time, in dollars an hour; NaN before there is one
    minutes: float  #: median of the submissions' times; NaN before there is one
    off_rules: int  #: rejections that hold and follow no rule fixed before the first rating

    @classmethod
    def of(
        cls, ledger: Ledger, study: Study, excluded: Collection[str], to_offer: Sequence[BatchOffer]
    ) -> CrowdSummary:
        """Return the summary of a ledger's campaign.

        Args:
            ledger: of the campaign.
            study: The study.
            excluded: Excluded raters, whose work others are to do again.
            to_offer: Batches that the ledger does not have yet.
        """
        spec, platform = crowd_of(study), platform_class(ledger.campaign.platform)
        batches, works = places_of(ledger, excluded, platform, spec, to_offer), ledger.work()
        pilots = {batch.offer.batch.batch_id for batch in batches if batch.offer.batch.pilot}
        posted = {operation.subject for operation in ledger.operations("post", state="done")}
        payments, spent_on = ledger.payments(), ledger.spent_on()
        wage, in_all, seconds = _typical({work: reward + bonus for work, (reward, bonus) in payments.items()})
        counts = ledger.campaign.counts  # a test costs nothing
        follows = {review.submission_id: on_rules(review) for review in ledger.judgements()}  # the last of each
        rejected = [work.submission.submission_id for work in works if work.submission.state == "rejected"]
        return cls(
            platform=ledger.campaign.platform,
            mode=ledger.campaign.mode,
            batches=len(batches) - len(pilots),
            pilots=len(pilots),
            posted=len(posted - pilots),
            posted_pilots=len(posted & pilots),
            places=sum(batch.offer.places for batch in batches),
            states=Counter(work.submission.state for work in works if work.batch_id not in pilots),
            pilot_states=Counter(work.submission.state for work in works if work.batch_id in pilots),
            unreadable=sum(bool(work.trouble) for work in works),
            planned=sum(batch.unit * batch.offer.places for batch in batches),
            fees=sum((batch.unit - batch.offer.reward) * batch.offer.places for batch in batches) * counts,
            spent=sum(spent_on.values()),
            spent_on=spent_on,
            bonuses_to_come=_bonuses_to_come(ledger, batches, spec) * counts,
            places_to_come=sum(batch.cost_to_come for batch in batches),
            rewards=sum(reward for reward, _ in payments.values()) * counts,
            bonuses=sum(bonus for _, bonus in payments.values()),
            unsettled=len(ledger.operations(state="intended")),
            hourly=wage,
            hourly_in_all=in_all,
            minutes=seconds / 60,
            off_rules=sum(not follows.get(submission, True) for submission in rejected),
        )

    @property
    def in_all(self) -> int:
        """What the campaign costs in all, with the bonuses that are paid or expected, and what is offered again."""
        more = self.spent - self.spent_on.get("post", 0)
        return self.planned + more + self.places_to_come + self.bonuses_to_come

    @property
    def money_text(self) -> str:
        """What is spent or reserved, and for what, of what is planned, and for what."""
        names = {
            "post": "for batches", "extend": "for places offered again", "bonus": "for bonuses",
            "approve": "for work approved after it was rejected or replaced",
            "reject": "for rejected work", "release": "for places that were released",
        }  # fmt: skip
        parts = [f"{pay.dollars(cents)} {names[kind]}" for kind, cents in self.spent_on.items() if cents]
        spent = pay.dollars(self.spent) + (f" ({', '.join(parts)})" if parts else "")
        bonuses = self.spent_on.get("bonus", 0) + self.bonuses_to_come
        planned = f"{pay.dollars(self.planned)} for batches"
        if replaced := self.in_all - self.planned - bonuses:
            planned += f", {pay.dollars(replaced)} for work rejected, released or offered again"
        planned += f", {pay.dollars(bonuses)} for bonuses at the times so far" if bonuses else ", bonuses not included"
        return f"{spent} spent or reserved of {pay.dollars(self.in_all)} planned ({planned}), {fees_text(self.fees)}"

    @property
    def batches_text(self) -> str:
        """How many batches are offered, and of these how many are trials: `2 of 3, and 1 of 1 pilot`."""
        return _with_pilots(
            f"{self.posted} of {self.batches}",
            f"{self.posted_pilots} of {count(self.pilots, 'pilot')}" if self.pilots else "",
        )

    def number(self, state: str) -> str:
        """How many submissions are in a state: `4, and 2 to pilots`."""
        pilots = self.pilot_states.get(state, 0)
        return _with_pilots(str(self.states.get(state, 0)), f"{pilots} to pilots" if pilots else "")

    def decided(self, state: Decision) -> int:
        """How many submissions were decided so, those to pilots included."""
        return self.states.get(state, 0) + self.pilot_states.get(state, 0)


def _with_pilots(text: str, of_pilots: str) -> str:
    return f"{text}, and {of_pilots}" if of_pilots else text


def read_summaries(records: Evidence) -> list[CrowdSummary]:
    """Return the study's campaigns, live ones first; [] without a ledger."""
    study, summaries, modes = records.study, list[CrowdSummary](), set[Mode]()
    path, excluded = study.scratch / LEDGER, excluded_raters(records.decided)
    for campaign in ledgers(path):
        with Ledger(path, study.name, *campaign) as ledger:  # batches to come are the first campaign's, as `launch` is
            to_offer = [] if campaign.mode in modes else _to_offer(records, ledger)
            summaries.append(CrowdSummary.of(ledger, study, excluded, to_offer))
        modes.add(campaign.mode)
    return summaries


def _to_offer(records: Evidence, ledger: Ledger) -> list[BatchOffer]:
    """Return the batches that a launch would add to a ledger; none to a test's, or if it has another sample's."""
    offered = ledger.offered_anywhere()
    of_sample = all(pair_id in records.shown_by_id for offer in offered for pair_id in offer.batch.pair_ids)
    return next_batches(records, ledger.campaign.mode, offered) if of_sample and ledger.campaign.counts else []


def longer_than_paid(ledger: Ledger, spec: CrowdSpec) -> float:
    """Return the share of time that the median submission took beyond its paid time; NaN before there is one."""
    rewards = {offer.batch.batch_id: offer.reward for offer in ledger.offered()}
    shares = [
        work.submission.seconds / (rewards[work.batch_id] * 36 / spec.pay.hourly) - 1
        for work in ledger.work()
        if work.submission.seconds > 0 and work.submission.state not in ("returned", "rejected")
    ]
    return max(0.0, statistics.median(shares)) if shares else math.nan


def _bonuses_to_come(ledger: Ledger, places: Collection[BatchPlaces], spec: CrowdSpec) -> int:
    """Return the cents, with fees, of bonuses that are not paid yet, by each batch's own times, or else all times."""
    longer, platform, total = longer_than_paid(ledger, spec), platform_class(ledger.campaign.platform), 0
    paid = {operation.subject for operation in ledger.operations("bonus") if operation.state != "refused"}
    for batch in places if not math.isnan(longer) else ():
        offer = batch.offer
        times = [work.submission.seconds for work in batch.good if work.submission.seconds > 0]
        expected = [round(offer.reward * 36 / spec.pay.hourly * (1 + longer), 6)]
        cents = pay.owed_bonus(offer.reward, times or expected, spec.pay)
        workers = batch.workers_to_come + sum(work.submission.submission_id not in paid for work in batch.good)
        total += workers * (cents + platform.fee(cents, offer.places, spec)) if cents else 0
    return total


def _typical(payments: Mapping[Submission, int]) -> tuple[float, float, float]:
    """Return the median dollars an hour of `payments` (cents), that of all together, and the median seconds, or NaN."""
    timed = [(cents, work.seconds) for work, cents in payments.items() if work.seconds > 0]
    if not timed:
        return math.nan, math.nan, math.nan
    paid, times = zip(*timed, strict=True)
    wages = statistics.median(itertools.starmap(pay.hourly, timed))
    return wages, pay.hourly(sum(paid), sum(times)), statistics.median(times)


def summary_text(summary: CrowdSummary) -> str:
    """A campaign in lines, each with its mode."""
    names = sorted({*summary.states, *summary.pilot_states})
    states = "; ".join(f"{state}: {summary.number(state)}" for state in names) or "none yet"
    campaign = CampaignName(summary.platform, summary.mode)
    money = (
        f"{summary.money_text}; rewards approved {pay.dollars(summary.rewards)}, bonuses {pay.dollars(summary.bonuses)}"
    )
    lines = [
        f"batches offered: {summary.batches_text}; all together: {count(summary.places, 'place')} for workers",
        f"submissions: {states}" + (f"; {summary.unreadable} cannot be read" if summary.unreadable else ""),
        f"money: {money if campaign.counts else 'none, as this is a test; its answers count nowhere'}",
    ]
    if not math.isnan(summary.hourly):
        lines.append(
            f"pay, bonuses included: ${summary.hourly_in_all:.2f} an hour over all submissions together; the median of"
            f" their times is {summary.minutes:.0f} min, and that of their pay ${summary.hourly:.2f} an hour"
        )
    if summary.unsettled:
        lines.append(
            f"unsettled calls: {summary.unsettled}; the next command checks them with the platform and finishes them"
        )
    return campaign.marked("\n".join(lines))


def cases_text(records: Evidence, ledger: Ledger) -> str:
    """Return a row for each submission that waits for a decision, then what speaks against some of them."""
    waiting_cases = cases(records, ledger)
    rows = [
        [
            case.work.submission.submission_id,
            case.work.pseudonym,
            case.advice,
            str(len(case.signs)),
            "–" if math.isnan(case.hourly) else f"${case.hourly:.2f}",
            "–" if math.isnan(case.work.submission.seconds) else f"{case.work.submission.seconds / 60:.0f}",
            case.work.batch_id,
        ]
        for case in waiting_cases
    ]
    header = ["submission", "worker", "advice", "signs", "an hour", "minutes", "batch"]
    lines = [columns(header, rows, "none", ledger.campaign.mark)]
    for case in waiting_cases:
        key, worker = case.work.submission.submission_id, case.work.pseudonym
        lines += [f"  {key}: {line}" for line in case.against]
        same = [each.work.submission.submission_id for each in waiting_cases if each.work.pseudonym == worker]
        if case.against and same[1:]:
            others = ", ".join(name for name in same if name != key)
            lines.append(f"  {key}: a rejection also excludes this worker's ratings in {others}")
    return "\n".join(lines)


def to_pay(records: Evidence) -> tuple[str, str]:
    """Return the command for workers who wait for a decision or a bonus, with words; empty where nobody waits.

    The command is without the program and the study. A test's workers wait for nobody.
    """
    path, excluded = records.study.scratch / LEDGER, excluded_raters(records.decided)
    for name in ledgers(path):
        with Ledger(path, records.study.name, *name) as ledger:
            waiting = cases(records, ledger) if name.counts else []
            read = [case for case in waiting if case.work.answered]
            if ready := sum(case.advice == "approve" for case in waiting):
                return name.words("approve --all"), f"pays {count(ready, 'submission')} that nothing speaks against"
            if read:
                words = "and what speaks against them: a person decides, by one of the commands that it prints"
                return "review", f"shows {count(len(read), 'submission')} by workers, {words}"
            if waiting:
                unread = count(len(waiting), "submission")
                return "collect", f"reads the answers of {unread} before anybody decides about them"
            if bonuses := owed(ledger, excluded, spec := crowd_of(records.study)):
                platform, places = platform_class(name.platform), {o.batch.batch_id: o.places for o in ledger.offered()}
                cents = sum(more + platform.fee(more, places[work.batch_id], spec) for work, more in bonuses)
                limit = f" --max-cost {math.ceil((ledger.spent() + cents) / 100)}" if name.spends else ""
                return name.words("bonus") + limit, f"pays {count(len(bonuses), 'bonus', 'bonuses')} for longer work"
    return "", ""


def to_launch(records: Evidence) -> tuple[CampaignName, int] | None:
    """Return the campaign whose `launch` would offer places, and what it may have spent then, in cents; else None.

    A crowd that nobody asked yet is asked on its platform, or rehearsed where the study names none. What is open on the
    platform is known as of the last command that asked it.
    """
    study, path = records.study, records.study.scratch / LEDGER
    if study.crowd is None or not records.known_pairs or not records.offered:
        return None
    begun = [name for name in present_campaigns(path) if name.counts]
    if not begun and not offered(records):
        return first_campaign(study), whole_tally(records).cost
    for name in begun:
        with Ledger(path, study.name, *name) as ledger:
            if cents := _cents_to_offer(records, ledger):
                return name, ledger.spent() + cents
    return None


def _cents_to_offer(records: Evidence, ledger: Ledger) -> int:
    """Return what the places cost that are not offered yet; 0 if `launch` would offer none of them now."""
    mode, spec, existing = ledger.campaign.mode, crowd_of(records.study), ledger.offered_anywhere()
    if ledger.closed() or any(pair not in records.shown_by_id for offer in existing for pair in offer.batch.pair_ids):
        return 0
    to_come = next_batches(records, mode, existing)
    posted = {operation.subject for operation in ledger.operations("post", state="done")}
    waiting = [offer for offer in [*ledger.offered(), *to_come] if offer.batch.batch_id not in posted]
    platform = platform_class(ledger.campaign.platform)
    places = places_of(ledger, excluded_raters(records.decided), platform, spec)
    short = [batch for batch in places if batch.short and batch.offer.batch.batch_id in posted]
    if not any(batch.unreserved for batch in short) and len(short) >= most_open(spec, len(existing) + len(to_come)):
        return 0
    first = sum(platform.cost(offer.reward, offer.places, spec) for offer in waiting)
    return first + sum(batch.cost_to_come for batch in short)


def to_close(study: Study) -> str:
    """Return the command that ends a campaign in which batches are offered; empty where there is none."""
    path = study.scratch / LEDGER
    for name in ledgers(path):
        with Ledger(path, study.name, *name) as ledger:
            posted = {operation.subject for operation in ledger.operations("post", state="done")}
            if name.spends and posted - ledger.closed():
                return name.words("close")
    return ""


def whole_tally(records: Evidence) -> Tally:
    """Return what a drawn study asks of people in all: the batches of its crowd, offered or not, or the queues.

    Blocks that an early decision has made unnecessary are left out.
    """
    study, path = records.study, records.study.scratch / LEDGER
    blocks = records.block_numbers if study.raters.blocks else {}
    in_queues = any(offering.to == ARGILLA for offering in records.offerings)
    to_crowd = study.crowd is not None and not in_queues
    begun = next((campaign for campaign in ledgers(path) if campaign.counts), None)
    staying = _staying(records, alike=not (begun or to_crowd or blocks))
    if begun is not None:
        with Ledger(path, study.name, *begun) as ledger:
            offered = ledger.offered_anywhere()
            every = [*offered, *_to_offer(records, ledger)]
        in_batches = {pair_id for offer in every for pair_id in offer.batch.pair_ids}
        if in_batches <= records.shown_by_id.keys():
            platform, unopened = platform_class(begun.platform), records.unopened() - in_batches
            tally = of_offers(study, records.rubric, every, records.shown_by_id, platform, blocks)
            later = [pair for pair in staying if pair.pair_id in unopened]
            return tally + counted(study, records.rubric, later, to_crowd=True, blocks=blocks)
    return counted(study, records.rubric, staying, to_crowd=to_crowd, blocks=blocks)


def _staying(records: Evidence, *, alike: bool) -> list[Pair]:
    """Return what raters are still shown; `alike` pairs have one record for all of a kind, as counts of queues need."""
    gone = {*records.withdrawn, *records.spared}
    if not alike:
        return [pair for pair in records.shown if pair.pair_id not in gone]
    pairs = records.collected.pairs[~records.collected.pairs["pair_id"].isin(list(gone))]
    kinds = ["queue", "pool", "language", "output_language", "transformation", "control"]
    numbers = pairs.groupby(kinds, observed=True).ngroup()
    firsts = ~numbers.duplicated()
    of_kinds = dict(zip(numbers[firsts], pair_records(pairs[firsts]), strict=True))
    return [of_kinds[number] for number in numbers]


def plan_text(records: Evidence, campaign: CampaignName, pilot: int = 0) -> str:
    """Return the next launch's offers and their cost, a row a batch; nothing is created."""
    study, existing, platform = records.study, list[BatchOffer](), platform_class(campaign.platform)
    spec, path, item, longer = crowd_of(study), study.scratch / LEDGER, study.called.item, math.nan
    refuse_lost_campaign(records, campaign.mode)
    if path.exists():
        with Ledger(path, study.name, *campaign) as ledger:
            refuse_lost_batches(records, ledger)
            existing, longer = ledger.offered_anywhere(), longer_than_paid(ledger, spec)
    new = next_batches(records, campaign.mode, existing, pilot)
    for offer in new:  # report now what `launch` would refuse, before money is at stake
        pairs = pairs_of(records, offer.batch, campaign.mode)
        platform.check_plan(records, campaign.mode, Offer(offer.batch, pairs, offer.places, offer.reward))
    tally = of_offers(study, records.rubric, new, records.shown_by_id, platform)
    rows = [
        [
            part.batch, part.queue.pool + (" (pilot)" if part.pilot else ""),
            "-".join(dict.fromkeys([part.queue.language, part.queue.output_language])), str(part.pairs),
            str(part.raters), pay.dollars(part.cost), pay.dollars(part.reward), pay.dollars(part.fees),
            f"{60 * part.hours:.0f}", str(part.shown),
        ]
        for part in tally.parts
    ]  # fmt: skip
    header = ["batch", "pool", "languages", f"{item}s", "workers", "cost", "reward", "fees", "minutes", "shown"]
    in_all = f"{count(len(new), 'batch', 'batches')}, {count(tally.places, 'place')} for workers"
    lines = (
        [f"{in_all}: {line}" if not number else line for number, line in enumerate(tally.lines(longer))] if new else []
    )
    rest = next_batches(records, campaign.mode, [*existing, *new])
    if existing or rest:
        whole = of_offers(study, records.rubric, [*existing, *new, *rest], records.shown_by_id, platform)
        lines.append(f"With the batches before and after these: {whole.answers_text}; {whole.cost_text}")
    notes = [*_notes(spec, study.called, study.kinds), platform.plan_note] if new else []
    if study.raters.blocks:
        collect, launch = study.command("collect"), campaign.command(study, "launch")
        notes.append(
            f"By blocks: these are the {item}s of the open blocks. When they are rated, run `{collect}`, then"
            f" `{launch}`, which offers the next block only for what is undecided, within --max-cost. All blocks:"
            f" {whole_tally(records).answers_text}"
        )
    return campaign.marked(
        "\n".join([
            f"Plan of study {study.name}; nothing is created",
            columns(header, rows, f"no {item}s are left to be offered", campaign.mark),
            *lines,
            *filter(None, notes),
        ]),
    )  # fmt: skip


def _notes(spec: CrowdSpec, called: ItemNames, kinds: Collection[str]) -> list[str]:
    extra = {name: share for name, share in EXTRA_PAY.items() if name in kinds}
    return [
        f"Pay: ${spec.pay.hourly:g} an hour at {spec.pay.seconds:g} s {called.an_item}"
        + "".join(f", {100 * share:g}% more for {name}" for name, share in extra.items())
        + "; where people need longer, `crowd bonus` makes up the difference."
        + f" {spec.pay.below_fair}".rstrip(),
        f"A worker may do {100 * spec.share:g}% of the batches; the column shown adds {called.known} and repeats to the"
        f" {called.item}s.",
    ]

"""`plumbline accept`: reads the evidence, computes the verdicts, and writes them with the look that was taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pandas as pd

from annotation.campaign.counting import counting_ratings, rows_of, stays
from annotation.campaign.offering import refuse_other_sample
from annotation.campaign.records import AGREEMENT, LOOKS, PAIR_MEANS, RATINGS, VERDICTS, CampaignRecords
from annotation.human.answers import answered, lines_of
from annotation.human.forms import form_of
from annotation.human.records import ANSWERS, HumanAnswer, HumanTask
from annotation.human.simulated import read_items
from annotation.human.tasks import read_tasks
from annotation.ratings.answers import write_ratings
from annotation.records import Group, Look, PairMean, Verdict
from annotation.statistics.systems import SideBySide
from annotation.verdicts.conclusion import Conclusion, rests_on
from annotation.verdicts.doubts import doubts_of
from annotation.verdicts.evidence import Evidence, write_looks
from annotation.verdicts.preregistration import amendment_lines, rules_due, write_rules
from plumbline.errors import DataError
from plumbline.manifest import Manifest
from plumbline.store import write_json, write_table
from plumbline.study import Study
from plumbline.words import count


@dataclass(frozen=True)
class Acceptance:
    """The result of accepting, as written to files."""

    groups: Sequence[Group]  #: Table 2
    side_by_side: SideBySide  #: systems on the same originals
    preferred: SideBySide  #: systems by preference
    verdicts: Sequence[Verdict]
    amendments: Sequence[str]  #: a line for each change of the rules after the first rating
    evidence: Evidence = field(repr=False)  #: the verdicts' evidence, with the rules and looks that were written

    @property
    def doubts(self) -> Sequence[str]:
        """A line for each thing that is doubtful."""
        return doubts_of(self.evidence, self.verdicts, self.evidence.signs)


def accept(study: Study, amend: str | None = None) -> Acceptance:
    """Compute Table 2, verdicts and pairs' means from the collected ratings, and write them.

    Writes `agreement.json`, `verdicts.json` and `pair_means.parquet`. Raises StudyError if the study's rules changed
    after the first rating and `amend` gives no reason, DataError if nobody has answered yet.
    """
    evidence = Evidence(study)
    refuse_other_sample(evidence)
    if evidence.read_whole().decided:  # a killed command may not have written their marks
        write_ratings(evidence, evidence.collected.ratings)
        evidence = Evidence.whole(study)
    _check(evidence)
    rules = rules_due(evidence, evidence.rules_now, evidence.collected.ratings, amend)
    write_looks(evidence)
    judged = evidence.changed(rules=rules)
    conclusion = Conclusion(judged, evidence.design.seed)
    decisions = dict(Counter(verdict.decision for verdict in conclusion.verdicts))
    n_ratings, hashes = len(conclusion.counting), rests_on(evidence)
    look, looks = Look(at=datetime.now(UTC), n_ratings=n_ratings, decisions=decisions, rests_on=hashes), evidence.looks
    if not looks or looks[-1].model_copy(update={"at": look.at}) != look:
        looks = [*looks, look]
    amendments = amendment_lines(rules, evidence.first)
    groups, compared = conclusion.groups, (conclusion.side_by_side, conclusion.preferred)
    written = judged.changed(looks=looks, signs=judged.signs)  # last, so that it has what was computed
    acceptance = Acceptance(groups, *compared, conclusion.verdicts, amendments, written)
    write_rules(evidence, rules)
    if len(looks) > len(evidence.looks):  # noted before anybody can read the results
        Manifest.of(study).write_models(LOOKS.name, looks)
    write_json(study.folder / AGREEMENT, acceptance.groups)
    write_json(study.folder / VERDICTS, acceptance.verdicts)
    write_table(study.folder / PAIR_MEANS, conclusion.means, PairMean)
    return acceptance


def _check(evidence: Evidence) -> None:
    """Refuse ratings that cannot be judged: none submitted, of other pairs, or not on the scale."""
    study, collected = evidence.study, evidence.collected
    ratings = collected.coded_ratings
    unknown = set(ratings["pair_id"][rows_of(collected.sample, ratings["pair_id"]) < 0])
    if unknown:
        raise DataError(
            f"{count(len(unknown), 'rated pair is', 'rated pairs are')} not in the sample (first {min(unknown)});"
            f" run `{study.command('collect')}` again"
        )
    submitted = ratings[ratings["status"] == "submitted"]
    for question in evidence.rubric.asked():
        if fault := question.wrong_among(submitted[submitted["question"] == question.name]):
            raise DataError(f"{RATINGS.name}, {question.name}: {fault}")
    if submitted.empty:
        raise DataError(
            f"{evidence.path(RATINGS)} has no submitted rating, so there is nothing to judge; run"
            f" `{study.command('collect')}` when raters have answered"
        )


FLAGGED = 0.4  # HUME's bound of Fleiss' kappa, below which it calls a task problematic (section 5.3)


def write_answers(records: CampaignRecords, tasks: Sequence[HumanTask]) -> list[str]:
    """Write the counting answers to `human/answers.parquet`; return lines on counting and uncounted ones."""
    study, every = records.study, records.collected.sample_ratings
    ratings, uncounted = dict[str, pd.DataFrame](), dict[str, Counter[str]]()
    for task in tasks:
        of_task = every[every["transformation"] == task.task]
        ratings[task.task] = counting_ratings(of_task, task.raters)
        uncounted[task.task] = Counter(dict(_left(of_task, ratings[task.task])))
    items = read_items(study)
    answers = answered(tasks, items, ratings)
    for name, more in answers.left_out.items():
        uncounted[name].update(more)
    Manifest.of(study).write_table(ANSWERS, answers.answers, HumanAnswer)
    return lines_of(tasks, items, answers.answers, uncounted)


def answers_lines(done: Acceptance) -> list[str]:
    """Write people's answers; return lines on what counts, and on tasks with too little agreement."""
    study = done.evidence.study
    tasks = read_tasks(study)
    return [*write_answers(done.evidence, tasks), f"-> {study.folder / ANSWERS}", *flagged(tasks, done.groups)]


def _left(ratings: pd.DataFrame, counting: pd.DataFrame) -> Iterator[tuple[str, int]]:
    """Yield the number of raters' answers to a record that do not count, by reason."""

    def number(frame: pd.DataFrame) -> int:
        return len(frame.drop_duplicates(["pair_id", "rater_id"]))

    submitted = ratings[ratings["status"] == "submitted"]
    out = (submitted["excluded"] != "") | ~stays(submitted)
    yield "drafts", number(ratings[ratings["status"] == "draft"])
    yield "discarded", number(ratings[ratings["status"] == "discarded"])
    yield "excluded or withdrawn", number(submitted[out])
    yield "beyond the requested number of raters", number(submitted[~out]) - number(counting)


def flagged(tasks: Sequence[HumanTask], groups: Sequence[Group]) -> Iterator[str]:
    """Yield a line for each task with agreement below HUME's bound, or with a meaningless kappa."""
    summaries = {summary.question: summary for group in groups if group.level == "pool" for summary in group.questions}
    for task in tasks:
        form = form_of(task)
        if form.at_once:
            yield (
                f"{task.task}: each rater numbers clusters independently, so kappa and AC1 of the numbers mean nothing"
            )
        for coefficient in summaries[task.task].coefficients if form.nominal and task.task in summaries else ():
            value = coefficient.estimate.value
            if coefficient.name == "Fleiss' kappa" and value < FLAGGED:
                yield (
                    f"{task.task}: Fleiss' kappa {value:.2f} is below {FLAGGED}, HUME's bound: if people do not"
                    " agree, a score against the labels says little"
                )

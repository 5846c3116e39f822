"""The report's tables, each with all digits for a CSV file and as printed. Only counts are computed here."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from annotation.campaign.names import UNNAMED, listed_raters
from annotation.crowd import pay
from annotation.crowd.tally import Tally
from annotation.human.forms import form_of
from annotation.human.records import HumanTask
from annotation.judges.powered import JudgesOutcome
from annotation.judges.select_generator import family
from annotation.page.training import by_trained
from annotation.questions.entries import worded
from annotation.questions.summary import Share, Summary
from annotation.ratings.decisions import decision_words
from annotation.records import Group
from annotation.report.material import CampaignMaterial
from annotation.report.methods import SOURCE_NAMES
from annotation.statistics.reliability import reliability_table, truth_table
from annotation.verdicts import tables
from annotation.verdicts.preregistration import amendments
from annotation.verdicts.rules import in_words
from annotation.verdicts.tables import display, interval_of
from plumbline.exhibits.table import Cell, Exhibit, cell, interval, numbers
from plumbline.languages import language_name
from plumbline.scales import classes_of
from plumbline.statistics.agreement import number_of_raters
from plumbline.statistics.estimates import Estimate
from plumbline.study.base import StudyPart
from plumbline.study.campaign import AcceptanceSpec, RatersSpec, RuleSpec, SampleSpec


def verdicts_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each verdict; of tasks that people do without labels, which another table has."""
    verdicts, tasks = material.verdicts, material.tasks
    if tasks:
        verdicts = [
            verdict.model_copy(update={"questions": _taken_together(tasks, verdict.questions)}) for verdict in verdicts
        ]
    return tables.verdicts_exhibit(verdicts, material.study.called, labels=not material.study.judging.does_tasks)


def table_two_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return HTEB's Table 2."""
    return tables.table_two_exhibit(material.groups, material.study.called)


def labels_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return labels' shares, ranks and agreement, or the answers to tasks that people do."""
    if not material.tasks:
        return tables.labels_exhibit(material.groups, material.study.called)
    n_ratings, rows = dict[str, int](), list[Group]()
    for group in (row for row in material.groups if row.level in ("pool", "language")):
        summaries = _taken_together(material.tasks, group.questions)
        if group.level == "pool":  # pools, which are tasks, come first
            n_ratings |= {summary.question: summary.n_ratings for summary in summaries}
        else:  # a task in one language is listed already
            summaries = tuple(summary for summary in summaries if summary.n_ratings < n_ratings[summary.question])
        rows.append(group.model_copy(update={"questions": summaries}))
    return _answers_exhibit(tables.label_table(rows))


def _answers_exhibit(full: pd.DataFrame) -> Exhibit:
    """Return a row for each task and answer, over all languages and, if a task has several, for each."""
    several = (full["level"] == "language").any()
    printed = pd.DataFrame(
        {
            "Task": display(row["question"]),
            **({"Language": language_name(row["name"]) if row["level"] == "language" else "all"} if several else {}),
            "Answer": row["label"],
            "Share [95%]": tables.interval_of(row),
            "n": f"{row['n_ratings']:,}",
            "Why no interval": row["reason"],
        }
        for row in full.to_dict("records")
    )
    caption = "What people answered: shares of their answers, with 95% intervals over items; n counts answers"
    return Exhibit("labels", caption, full, printed)


def shares_frame(material: CampaignMaterial) -> pd.DataFrame:
    """Return the share of each point among the counting ratings: a row for each question, transformation and point.

    For a scale with many points, or a continuous one, it is the share of each fifth of the scale.
    """
    counting = material.counting
    rated_values = counting[counting["value"].notna()]
    rows = []
    for question in material.questions:
        of_question = rated_values[rated_values["question"] == question]
        present = set(of_question["transformation"].unique())
        for name in filter(present.__contains__, material.study.kinds):
            values = of_question.loc[of_question["transformation"] == name, "value"].to_numpy(np.float64)
            labels, places = classes_of(values, material.rubric.scale_of(question))
            numbers = np.bincount(places, minlength=len(labels)).tolist()
            total = sum(numbers)
            points = zip(labels, numbers, strict=True)
            rows += [(question, name, point, n, n / total, total) for point, n in points]
    return pd.DataFrame(rows, columns=["question", "transformation", "value", "n", "share", "total"])


def raters_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each rater, by pseudonym: single ratings, how many count, signs, the last decision."""
    ratings = material.ratings
    every = material.every
    answers = every[every["status"] == "submitted"].drop_duplicates(["pair_id", "rater_id"])
    made_up = every["simulated"].groupby(listed_raters(every["rater_id"])).any()
    raters = sorted(made_up.index)
    frame = pd.DataFrame({"rater_id": raters, "simulated": [bool(made_up[rater]) for rater in raters]})
    parts = {
        "submitted": material.submitted,
        "counting": material.counting,
        "surplus": material.surplus,
        "draft": ratings[ratings["status"] == "draft"],
        "discarded": ratings[ratings["status"] == "discarded"],
        "on_controls": material.control_ratings[material.control_ratings["status"] == "submitted"],
    }
    for name, part in parts.items():
        frame[name] = frame["rater_id"].map(listed_raters(part["rater_id"]).value_counts()).fillna(0).astype(int)
    seconds = answers["seconds"].groupby(listed_raters(answers["rater_id"])).median()
    frame["median_seconds"] = frame["rater_id"].map(seconds).astype(float)
    signs: dict[str, list[str]] = {}
    for sign in material.signs:
        signs.setdefault(sign.rater_id, []).append(sign.rule)
    frame["signs"] = ["; ".join(dict.fromkeys(signs.get(rater, []))) for rater in raters]
    decided = {decision.rater_id: decision_words(decision) for decision in material.decisions}
    frame["decision"] = [decided.get(rater, "") for rater in raters]
    titles = [
        "Rater",
        "Who",
        "Submitted",
        "Count",
        "Surplus",
        "Drafts",
        "Discarded",
        f"On {material.study.called.known}",
        "Median s",
    ]
    printed = frame.assign(
        simulated=["simulated" if made_up[rater] else "people" if rater == UNNAMED else "person" for rater in raters],
        median_seconds=["–" if math.isnan(seconds) else f"{seconds:.0f}" for seconds in frame["median_seconds"]],
    ).set_axis([*titles, "Signs", "Decision"], axis=1)
    return Exhibit("raters", "Raters, with counts of single ratings", frame, printed)


def training_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each rater: the number of known pairs answered, and of right answers to them."""
    frame = by_trained(material.trained)
    titles = ["Rater", "Who", "Known pairs", "Answered", "Checked answers", "Right"]
    who = frame["simulated"].map({True: "simulated", False: "person"})
    printed = frame.assign(simulated=who).set_axis(titles, axis=1)
    return Exhibit("training", "Raters' training on known pairs (these answers never count)", frame, printed)


def signs_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each sign, with its evidence."""
    rows = [(sign.rater_id, sign.rule, sign.n, sign.evidence) for sign in material.signs]
    frame = pd.DataFrame(rows, columns=["rater_id", "rule", "n", "evidence"])
    printed = frame.drop(columns="n").set_axis(["Rater", "Rule", "Evidence"], axis=1)
    return Exhibit("signs", "Signs of careless answers; they decide nothing", frame, printed)


def decisions_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each decision about a rater or a pair, the oldest first."""
    first = material.looks[0].at if material.looks else None
    decisions = sorted([*material.decisions, *material.withdrawals], key=lambda decision: decision.decided_at)
    results_seen = ["yes" if first and decision.decided_at > first else "no" for decision in decisions]
    rows = [
        (
            decision.decided_at.isoformat(),
            after,
            decision.rater_id,
            decision.pair_id,
            decision_words(decision),
            decision.reason,
            "; ".join(decision.signs),
        )
        for decision, after in zip(decisions, results_seen, strict=True)
    ]
    names = ["decided_at", "results_seen", "rater_id", "pair_id", "decision", "reason", "signs"]
    frame = pd.DataFrame(rows, columns=names)
    ids = [decision.pair_id[:12] for decision in decisions]
    printed = frame.assign(decided_at=[stamp(decision.decided_at) for decision in decisions], pair_id=ids)
    printed = printed.set_axis(
        ["When", "Results seen", "Rater", "Pair", "Decision", "Reason", "Signs at the time"], axis=1
    )
    if not material.withdrawals:
        return Exhibit("decisions", "Decisions about raters", frame, printed.drop(columns="Pair"))
    return Exhibit("decisions", "Decisions about raters and pairs", frame, printed)


def exclusions_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return the numbers of single ratings that count and that do not, by reason; they add up to all collected."""
    status, excluded = material.ratings["status"], material.excluded.groupby("excluded", sort=True)
    withdrawn, item = material.withdrawn.groupby("withdrawn", sort=True), material.study.called.item
    parts = [
        ("yes", f"submitted before the {item} had enough raters", material.counting),
        *(("no", f"rater excluded: {reason}", part) for reason, part in excluded),
        *(("no", f"{item} withdrawn: {reason}", part) for reason, part in withdrawn),
        ("no", f"surplus: the {item} already had enough raters", material.surplus),
        ("no", "draft: saved but not submitted", material.ratings[status == "draft"]),
        ("no", "discarded by the rater", material.ratings[status == "discarded"]),
        ("no", f"given to {material.study.called.known} and repeats, which check the raters", material.control_ratings),
    ]
    rows = [(count, explanation, len(part), number_of_raters(part["rater_id"])) for count, explanation, part in parts]
    frame = pd.DataFrame(rows, columns=["counts", "why", "ratings", "raters"]).astype({"raters": "Int64"})
    columns = {name: ["unknown" if pd.isna(n) else f"{n:,}" for n in frame[name]] for name in ("ratings", "raters")}
    printed = frame.assign(**columns)
    printed = printed.set_axis(["Count", "Why", "Ratings", "Raters"], axis=1)
    return Exhibit("exclusions", "Which of the collected ratings count", frame, printed)


def stamp(at: datetime) -> str:
    """Format a time for people."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


_RULES: dict[str, type[StudyPart]] = {"acceptance": AcceptanceSpec, "raters": RatersSpec, "sample": SampleSpec}
_IN_WORDS = {"": "none", "None": "none", "[]": "none", "False": "no", "True": "yes"}


def rules_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each fixed rule; none for studies that fixed none."""
    rules, rows = (material.holds.rules if material.holds else {}), []
    for part, spec in _RULES.items():  # `wording_exhibit` has the rubric's words
        for name, value in rules.get(part, {}).items():
            words = [in_words(RuleSpec.model_validate(rule)) for rule in value] if name == "rules" else [str(value)]
            meaning = getattr(spec.model_fields.get(name), "description", None) or ""
            rows.append((f"{part}.{name}", _IN_WORDS.get("; ".join(words), "; ".join(words)), meaning.replace("`", "")))
    frame = pd.DataFrame(rows, columns=["rule", "value", "meaning"])
    return Exhibit("rules", "Rules as fixed", frame, frame.set_axis(["Rule", "Value", "Meaning"], axis=1))


def wording_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return raters' wordings in their languages: a row for each pool, language and part (guidelines or question)."""
    rubric, rows = material.asked, []
    wordings = dict.fromkeys(
        (pair.pool, rubric.language_for(pair.language, pair.output_language)) for pair in material.pairs
    )
    for pool, language in wordings:
        text = rubric.pool(pool)
        rows.append(
            (pool, language, "guidelines", f"{worded(text.asked, language)} {worded(rubric.guidelines, language)}")
        )
        for question, _ in rubric.asked_questions(pool):
            words = f"{worded(question.title, language)} {rubric.description(pool, question, language)}"
            rows.append((pool, language, question.name, words))
    frame = pd.DataFrame(rows, columns=["pool", "language", "part", "words"])
    judged = material.study.called.judged.capitalize()
    printed = frame.set_axis([judged, "Language", "Part", "Words"], axis=1)
    return Exhibit("wording", "What raters were asked, in the words that they saw", frame, printed)


def amendments_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each change of the rules after the first rating."""
    rows = [
        (rule_set.fixed_at, rule_set.reason, "; ".join(changes))
        for rule_set, changes in amendments(material.rules, material.first)
    ]
    frame = pd.DataFrame([(at.isoformat(), *rest) for at, *rest in rows], columns=["fixed_at", "reason", "changes"])
    printed = frame.assign(fixed_at=[stamp(at) for at, *_ in rows]).set_axis(["When", "Reason", "Changed"], axis=1)
    return Exhibit("amendments", "Changes of the rules after the first rating", frame, printed)


def _taken_together(tasks: Sequence[HumanTask], summaries: Iterable[Summary]) -> tuple[Summary, ...]:
    """Return a summary for each task with rated questions: labels by their names, candidates combined.

    A candidate's number is its drawn place, and a cluster's number is each rater's own: neither means anything across
    items. The evaluation reports raters' agreement, of whole answers and of those other than cannot_tell.
    """
    by_name = {summary.question: summary for summary in summaries}
    combined = []
    for task in tasks:
        of_task = [
            by_name[question.name]
            for question in form_of(task).questions()
            if question.name in by_name and not by_name[question.name].ranks
        ]
        if of_task:
            update = {
                "n_ratings": sum(summary.n_ratings for summary in of_task),
                "shares": tuple(_shares(task, of_task)),
            }
            combined.append(of_task[0].model_copy(update={**update, "coefficients": ()}))
    return tuple(combined)


def _shares(task: HumanTask, summaries: Sequence[Summary]) -> Iterator[Share]:
    """Yield each label's share by its name, over the answers to all questions of a task."""
    form, total = form_of(task), sum(summary.n_ratings for summary in summaries)
    parts: dict[str, list[tuple[int, Estimate]]] = {}
    for summary in summaries:
        for label_share in summary.shares:
            parts.setdefault(form.meaning(label_share.label), []).append((summary.n_ratings, label_share.share))
    for name, shares in parts.items():
        if len(shares) == 1 or not total:
            yield Share(label=name, share=shares[0][1])
            continue
        value = sum(n * share.value for n, share in shares if n) / total
        reason = f"{form.combined} are combined, so no interval is computed"
        yield Share(label=name, share=Estimate.alone(value, reason))


def reliability_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each question and statistic of reliability."""
    frame = reliability_table(material.counting, material.questions)
    caption = "Reliability of ratings, with 95% intervals for normal ratings"
    return _printed("reliability", caption, frame, ["question", "statistic"], material.study.called.item)


def truth_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each question, method and number; empty if no item has a known right label."""
    controls = material.control_ratings
    stay = (controls["status"] == "submitted") & (controls["excluded"] == "") & (controls["withdrawn"] == "")
    answers = pd.concat([material.counting, controls[stay]])
    frame = truth_table(answers, material.rubric.asked(), material.right)
    caption = "Accuracy on items with a known right label, with 95% intervals"
    return _printed("truth", caption, frame, ["question", "method", "statistic"], material.study.called.item)


def _printed(name: str, caption: str, frame: pd.DataFrame, columns: list[str], item: str) -> Exhibit:
    printed = frame[columns].rename(columns=str.capitalize)
    printed["Value [95%]"] = list(map(interval_of, frame.to_dict("records")))
    printed = printed.assign(**{"n": frame["n"].map(str), "Why missing": frame["reason"]})
    return Exhibit(name, f"{caption}; n counts {item}s", frame, printed)


def asked_exhibit(tally: Tally) -> Exhibit:
    """Return what the study asks of people, a row for each queue, and the sum."""
    called, queues = tally.study.called, list(dict.fromkeys(part.queue for part in tally.parts))
    rows = []
    for name, tally_of_queue in [*((queue.dataset("")[1:], tally.of({queue})) for queue in queues), ("all", tally)]:
        rows.append(
            {
                "queue": name, "pairs": tally_of_queue.pairs, "controls": tally_of_queue.controls,
                "repeats": tally_of_queue.repeats, "answers_to_pairs": tally_of_queue.answers_to_pairs,
                "answers": tally_of_queue.answers, "ratings": tally_of_queue.ratings, "hours": tally_of_queue.hours,
                "cents": tally_of_queue.cost,
            }
        )  # fmt: skip
    columns: dict[str, Cell] = {
        "Queue": "queue", f"{called.item}s".capitalize(): numbers("pairs", 0), called.known.capitalize(): "controls",
        "Repeats": "repeats", f"Answers to {called.item}s": numbers("answers_to_pairs", 0),
        "Answers": numbers("answers", 0), "Ratings": numbers("ratings", 0), "Hours": numbers("hours", 1),
        "Cost": cell("cents", pay.dollars),
    }  # fmt: skip
    caption = (
        "What the study asks of people, controls and repeats included; a rating is an answer to one required question;"
        " cost is pay at the assumed time and a platform's fees, without bonuses"
    )
    return Exhibit.of("asked", caption, pd.DataFrame(rows), columns)


def campaigns_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return a row for each campaign: batches, submissions, money and pay, in dollars."""
    rows = [
        {
            "Platform": SOURCE_NAMES[campaign.platform],
            "Mode": campaign.mode,
            "Batches offered": campaign.batches_text,
            "Approved": campaign.number("approved"),
            "Rejected": campaign.number("rejected"),
            "Waiting": campaign.number("submitted"),
            "Planned": pay.dollars(campaign.in_all),
            "Rewards": pay.dollars(campaign.rewards),
            "Bonuses": pay.dollars(campaign.bonuses),
            "Spent or reserved": pay.dollars(campaign.spent),
            "Median minutes": _number(campaign.minutes, "{:.0f}"),
            "Median hourly pay": _number(campaign.hourly, "${:.2f}"),
            "Hourly pay of all": _number(campaign.hourly_in_all, "${:.2f}"),
        }
        for campaign in material.crowd
    ]
    caption = (
        "Crowd campaigns; sums planned, and spent or reserved, include the platform's fees, and the bonuses that are"
        " paid or expected at the times so far"
    )
    frame = pd.DataFrame(rows)
    return Exhibit("crowd_campaigns", caption, frame, frame)


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else form.format(value)


def judges_of(outcome: JudgesOutcome) -> list[dict[Hashable, Any]]:
    """Return each judge with its model, and with the generators that are its own model or have a related name."""
    judgements = outcome.judging.judgements
    makers = dict.fromkeys(judgements["generator"])
    judges = judgements.drop_duplicates("judge").sort_values("judge")[["judge", "model"]].to_dict("records")
    return [
        {**judge, "related": [name for name in makers if family(name) == family(judge["model"])]} for judge in judges
    ]


def means_exhibit(material: CampaignMaterial, outcome: JudgesOutcome) -> Exhibit:
    """Return a row for each group and question: people's mean, that with judges, and how precise it is."""
    frame = outcome.means.assign(recorded=", ".join(outcome.recorded), simulated=outcome.simulated)
    places = [name for name in ("pool", "language", "task_type") if name in frame]
    units = [" ".join(filter(None, row)) for row in frame[places[1:]].astype(str).itertuples(index=False, name=None)]
    printed = pd.DataFrame(
        {
            material.study.called.judged.capitalize(): frame["pool"].map(display),
            "Language": units,
            "Question": frame["question"],
            "People [95%]": _intervals(frame, "people_mean", ("people_low", "people_high")),
            "With judges [95%]": _intervals(frame, "mean"),
            "Rated, judged too": [f"{n:,}, {m:,}" for n, m in zip(frame["n_rated"], frame["n_judged"], strict=True)],
            "As precise as": frame["worth"].map(lambda worth: _number(worth, "{:,.0f}")),
            "Refused": frame["reason"],
        }
    )
    caption = "People's means, and the same with judges' scores of further outputs; no verdict rests on these"
    return Exhibit("judges_means", caption, frame, printed)


def _intervals(frame: pd.DataFrame, column: str, ends: tuple[str, str] = ("low", "high")) -> list[str]:
    return [interval(*row) for row in frame[[column, *ends]].itertuples(index=False, name=None)]

"""The facts of an evaluation by people, from records and the study file: one answer for each question of the sheets.

An answer comes from records, from people (`ethics` in the study file), or is open, with the facts on record so far. The
words are templates (`answers.yaml`); a text from outside only ever fills them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from annotation.crowd.page import consent_of
from annotation.questions.entries import ENGLISH, RubricQuestion, worded
from annotation.questions.question import KINDS, Question
from annotation.questions.wordings import packaged
from annotation.report.exhibits import wording_exhibit
from annotation.report.material import CampaignMaterial
from annotation.report.methods import languages_of, methods, methods_blocks, methods_facts, rated_by, rated_here
from annotation.sampling.queues import Queue, block_numbers
from annotation.verdicts.tables import SIMULATED, display, scoped, with_interval
from plumbline.exhibits.templates import environment, listed
from plumbline.languages import language_name
from plumbline.statistics.agreement import number_of_raters, raw_agreement
from plumbline.statistics.estimates import stream
from plumbline.study.campaign import QUESTIONS, begins
from plumbline.study.crowd import PTEB_COUNTRIES
from plumbline.study.evaluation import CROISSANT_FIELDS
from plumbline.words import count, count_words

By = Literal["records", "people", "open"]
NOBODY = "N/A: no person rated. Every rating is simulated (a rehearsal)."
_ELSEWHERE = "OPEN: Ratings came from files; how they were collected is not on record."
_OPEN = "OPEN:"  # how the text of an answer begins that leaves its question open
_OF_RATERS = ("consent", "recruitment", "payment", "experts", "acquainted", "researchers", "characteristics")


@dataclass(frozen=True)
class SheetAnswer:
    """An answer in a sheet."""

    text: str = ""  #: the answer, or an explanation of a choice; for an open one the facts on record
    by: By = "records"
    question: str = ""  #: key of `ethics` that answers it or could
    chosen: tuple[int, ...] = ()  #: options of HEDS's form, from 1


def answers_of(material: CampaignMaterial) -> dict[str, SheetAnswer]:
    """Return all answers but those on criteria, by name: the keys of `ethics`, and those from records."""
    facts = sheet_facts(material)
    answers = {
        name: answered(entry, facts) for name, entry in packaged("report/sheets/answers.yaml")["answers"].items()
    }
    answers |= {key: _of_people(material, key, facts) for key in QUESTIONS}
    conditions = answers["conditions"]
    if conditions.by != "open":
        own_place = conditions.text.lower().startswith("own place")
        answers["conditions"] = replace(conditions, chosen=(1 if own_place else 8,))
        variation = "Place, time and device are each rater's own choice." if own_place else conditions.text
        conditions = replace(conditions, text=variation)
    both = [answers["recruitment"], answers["payment"]]
    missing = next((answer for answer in both if answer.by == "open"), both[0])
    text = " ".join(dict.fromkeys(answer.text for answer in both)).strip()
    return answers | {"variation": conditions, "recruitment_and_payment": replace(missing, text=text)}


def criterion_answers(material: CampaignMaterial) -> dict[str, dict[str, SheetAnswer]]:
    """Return the answers on each question that raters answer, by its name: those of HEDS's section 4."""
    facts, answers = sheet_facts(material), dict[str, dict[str, SheetAnswer]]()
    entries = packaged("report/sheets/answers.yaml")["criterion"]
    for question, scale in zip(material.asked.questions, material.asked.asked(), strict=True):
        every = facts | criterion_facts(material, question, scale)
        answers[scale.name] = {name: answered(entry, every) for name, entry in entries.items()}
    return answers


def answered(entry: str | Mapping[str, str], facts: Mapping[str, Any]) -> SheetAnswer:
    """Return the answer that a template gives with these facts; open where it says nothing."""
    template = entry if isinstance(entry, str) else entry.get("text", "")
    rendered = environment("sentences").from_string(template).render(facts)
    text = "\n\n".join(" ".join(part.split()) for part in rendered.split("\n\n")).strip()
    chosen: tuple[int, ...] = ()
    if not isinstance(entry, str):
        choose = environment("sentences").compile_expression(entry["choose"], undefined_to_none=False)
        chosen = tuple(int(number) for number in choose(**facts) or ())
    if text.startswith(_OPEN) or not (text or chosen):
        return SheetAnswer(text.removeprefix(_OPEN).strip(), "open")
    return SheetAnswer(text, chosen=chosen)


def _of_people(material: CampaignMaterial, key: str, facts: Mapping[str, Any]) -> SheetAnswer:
    """Return people's answer to a question, what a live campaign's records say of it, or both."""
    entry = packaged("report/sheets/answers.yaml")["crowd"].get(key, "") if facts["live_crowd"] else ""
    answer = replace(answered(entry, facts), question=key)
    if key in _OF_RATERS and facts["all_simulated"]:
        answer = SheetAnswer(NOBODY, question=key)
    elif own_words := material.study.ethics.get(key, ""):
        answer = SheetAnswer(f"{own_words} {answer.text.removeprefix('yes. ')}".strip(), "people", key)
    option = packaged("report/sheets/heds.yaml")["by_first_word"].get(key, {}).get(begins(answer.text))
    return replace(answer, chosen=(option,)) if option and answer.by != "open" else answer


def warning(material: CampaignMaterial) -> str:
    """Return the warning about simulated ratings; empty if there are none."""
    if not material.simulated:
        return ""
    return SIMULATED if _all_simulated(material) else (
        f"SOME RATINGS ARE SIMULATED; those that count come from {rated_by(material)}."
    )  # fmt: skip


def _all_simulated(material: CampaignMaterial) -> bool:
    return bool(len(material.counting) and material.counting["simulated"].all())


def sheet_facts(material: CampaignMaterial) -> dict[str, Any]:
    """Return the facts of the sheets' templates, by name: those of the methods section, and these."""
    study, bundle, all_simulated = material.study, material.study.bundle, _all_simulated(material)
    inputs, outputs = languages_of(material)
    heds = packaged("report/sheets/heds.yaml")
    known_tasks, other_task = heds["tasks"], heds["other_task"]
    names = list(dict.fromkeys(pair.transformation for pair in material.pairs)) if study.judging.transforms else []
    options = {known_tasks.get(name, other_task) for name in names} if study.judging.transforms else {other_task}
    rated = set(material.counting["pair_id"].astype(str))
    sizes = Counter(display(pair.transformation, pooled=False) for pair in material.pairs if pair.pair_id in rated)
    return {
        **methods_facts(material),
        **_text_facts(material),
        **_crowd_facts(material),
        "blocks": methods_blocks(material),
        "methods": " ".join(methods(material)),
        "warning": warning(material),
        "nobody": NOBODY,
        "elsewhere": _ELSEWHERE,
        "all_simulated": all_simulated,
        "people": number_of_raters(material.counting.loc[~material.counting["simulated"].astype(bool), "rater_id"]),
        "here": rated_here(material),
        "bundle": bundle,
        "about": {name: bundle.metadata.get(name, "") for name in CROISSANT_FIELDS},
        "sizes": "; ".join(f"{name} {number}" for name, number in sizes.items()),
        "tasks": {"options": sorted(options), "unnamed": [name for name in names if name not in known_tasks]},
        "input_boxes": _languages(inputs),
        "output_boxes": _languages(outputs),
        "trained": {
            "number": len({result.item_id for result in material.trained}),
            "judged": sum(result.judged for result in material.trained),
            "right": sum(result.right for result in material.trained),
        },
        "decided": bool(material.decisions),
        "doubts": material.doubts,
        "licensed": [
            f"{spec.name} ({bundle.licences.get(spec.name) or 'licence not on record'})" for spec in study.datasets
        ],
        "versions": ["Plumbline", *(" ".join(part) for part in material.manifest.get("versions", {}).items())],
        "verdicts": material.verdicts,
        "refused": [
            scoped(verdict.transformation, verdict.language, verdict.task_type)
            for verdict in material.verdicts
            if verdict.decision != "accepted"
        ],
    }


def _text_facts(material: CampaignMaterial) -> dict[str, Any]:
    fields, data = material.study.judging.fields, sorted({pair.dataset for pair in material.pairs})
    return {
        "data": data,
        "items_read": f"items{f' with the fields {listed(fields)}' if fields else ''} of {listed(data)}",
        "lengths": {
            "originals": _lengths([pair.original for pair in material.pairs]),
            "outputs": _lengths([pair.transformed for pair in material.pairs]),
        },
        "questions": [question.name for question in material.asked.questions],
        "wording": [] if material.imported else wording_exhibit(material).frame.to_dict("records"),
    }


def _crowd_facts(material: CampaignMaterial) -> dict[str, Any]:
    crowd = material.study.crowd
    live = {campaign.platform for campaign in material.crowd if campaign.mode == "live"} if crowd else set()
    readers = sorted({code for codes in material.texts for code in codes})
    countries = {code: (crowd.countries.get(code) if crowd else None) or PTEB_COUNTRIES.get(code) for code in readers}
    return {
        "contact": material.study.raters.contact,
        "live_crowd": bool(live),
        "by_link": "link" in live,
        "consent": consent_of(crowd, ENGLISH) if crowd else "",
        "countries": [f"{language_name(code)} ({', '.join(codes)})" for code, codes in countries.items() if codes],
    }


def _lengths(texts: Sequence[str]) -> str:
    words = [count_words(text) for text in texts]
    return (
        f"those of the sample have {min(words):,} to {max(words):,} words (median {np.median(words):g})"
        if words
        else "the sample is empty"
    )


def _languages(codes: Sequence[str]) -> dict[str, Any]:
    """Return the options of languages in the form, and the names of languages without one."""
    boxes = {
        code: number for number, code in enumerate(packaged("report/sheets/heds.yaml")["languages"], 2)
    }  # 1: no language
    options = sorted({boxes.get(code, len(boxes) + 2) for code in codes})
    return {"options": options, "unnamed": [language_name(code) for code in codes if code not in boxes]}


def criterion_facts(material: CampaignMaterial, question: RubricQuestion, scale: Question) -> dict[str, Any]:
    """Return the facts on one question that raters answer, by their names in the templates."""
    title = worded(question.title, ENGLISH)
    name, colon, _ = title.partition(":")
    classified: dict[str, list[int]] = packaged("report/sheets/heds.yaml")["classified"]
    pools = [pool for pool in dict.fromkeys(pair.pool for pair in material.pairs) if scale.asked_in(pool)]
    explained = {pool: material.asked.description(pool, question, ENGLISH) for pool in pools}
    by_pool = [f"{pool}: {text}" for pool, text in explained.items() if text]
    same = len(set(explained.values())) == 1  # then it is said once
    return {
        "kind": scale.kind,
        "title": title,
        # Ours are named before the colon; what a colon means elsewhere is unknown.
        "name": (None if title not in classified else name) if colon else "",
        "classes": classified.get(title, ()),
        "definition": explained[pools[0]] if same else "\n\n".join(by_pool),
        **scale.instrument([worded(words, ENGLISH) for words in question.labels.values()]),
        "agreement": _agreement(material, scale),
        "repeated": self_agreement(material, scale.name),
        "unrepeated": without_repeats(material, scale.name),
    }


def _agreement(material: CampaignMaterial, scale: Question) -> str:
    """Return the numbers of agreement on a question over all groups; empty if it was not assessed."""
    overall = next((group for group in material.groups if group.level == "overall"), None)
    summary = next((part for part in overall.questions if part.question == scale.name), None) if overall else None
    numbers = KINDS[summary.kind].agreement(summary) if summary else {}
    if summary is None or not numbers:
        return ""
    score = "; ".join(f"{name} {with_interval(estimate)}" for name, estimate in numbers.items())
    item = material.study.called.item
    raters = "unknown raters" if summary.n_raters is None else f"{summary.n_raters} raters"
    of = f"{summary.n_ratings:,} ratings of {summary.n_pairs:,} {item}s by {raters}"
    return f"{score} (95% intervals; {of})"


def repeated(material: CampaignMaterial) -> pd.DataFrame:
    """Return answers to repeats beside the same rater's first answers to the same pair and question.

    Columns: pair_id, rater_id, question, value and answer (the second time), value_first and answer_first, and far:
    whether at least a third of the rater's answers in that part of the queue lay between. A batch is shown so.
    """
    first_of = {pair.pair_id: pair.repeats for pair in material.controls if pair.control == "repeat"}
    columns = ["pair_id", "rater_id", "question", "value", "answer"]
    ratings = material.control_ratings[material.control_ratings["status"] == "submitted"]
    places = _places(material, pd.concat([material.submitted, ratings]))
    again = ratings[ratings["pair_id"].isin(list(first_of))]
    again = again.reindex(columns=[*columns, "batch"]).merge(places, on=["rater_id", "pair_id"])
    again = again.assign(pair_id=again["pair_id"].astype(str).map(first_of))
    both = again.merge(places, on=["rater_id", "pair_id"], suffixes=("", "_first"))
    between = np.maximum(both["low"] - both["high_first"], both["low_first"] - both["high"]) - 1
    both["far"] = (both["batch"].fillna("") != "") | (3 * between >= both["answers"])
    both = both[[*columns, "far"]]
    return both.merge(material.submitted.reindex(columns=columns), on=columns[:3], suffixes=("", "_first"))


def _places(material: CampaignMaterial, submitted: pd.DataFrame) -> pd.DataFrame:
    """Return each answered pair's place among those that a rater was offered with it, and how many these are.

    It is one from low to high: the order of answers of one time is unknown.
    """
    offered = [*material.pairs, *material.controls]
    blocks = block_numbers(material.study, material.pairs, material.controls) if material.study.raters.blocks else {}
    part_of = {pair.pair_id: (Queue.of(pair), pair.wave, blocks.get(pair.pair_id, 0)) for pair in offered}
    answers = submitted.drop_duplicates(["rater_id", "pair_id"])[["rater_id", "pair_id", "submitted_at"]]
    parts = answers.groupby(["rater_id", answers["pair_id"].astype(str).map(part_of)], observed=True)["submitted_at"]
    return answers.assign(low=parts.rank("min"), high=parts.rank("max"), answers=parts.transform("size"))


def without_repeats(material: CampaignMaterial, question: str) -> str:
    """Return why raters' agreement with themselves on a question cannot be computed."""
    if number := int((repeated(material)["question"] == question).sum()):
        less = "less than a third of the rater's answers in the queue lies between, or their times are unknown"
        return f"{count(number, 'repeated answer')}, but {less}"
    if any(pair.control == "repeat" for pair in material.controls):
        return "nobody answered a pair twice"
    if material.imported or not material.study.sample.repeats:
        return "no pair was shown twice"
    return "the queues are too short to show a pair again after a third of the queue"


def self_agreement(material: CampaignMaterial, question: str) -> str:
    """Return the share of answers that raters gave twice, far enough apart; empty if there are none."""
    both = repeated(material)
    both = both[(both["question"] == question) & both["far"]]
    if both.empty:
        return ""
    scale = next(scale for scale in material.asked.asked() if scale.name == question)
    if (answers := scale.points_twice(both)) is None:
        same = int((both["answer"].astype(str) == both["answer_first"].astype(str)).sum())
        return f"{same} of {len(both)} answers are the same as the first time ({same / len(both):.0%})"
    share = raw_agreement(answers, stream(material.study.sample.seed, "repeats", question))
    return f"share of equal answers {with_interval(share)}, of {count(answers.pairs, 'repeated answer')}"

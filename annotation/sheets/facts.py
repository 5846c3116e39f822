"""The facts of an evaluation by people, from records and the study file: one answer for each question of the sheets.

An answer comes from records, from people (`ethics` in the study file), or is open, with the facts on record so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from annotation.crowd.page import consent_of
from annotation.planning import RatingVariation, outlook, planned_rules
from annotation.questions import ENGLISH
from annotation.report.exhibits import wording_exhibit
from annotation.report.material import CampaignMaterial
from annotation.report.methods import collected_from, controls_told, quality_words, rated_by, rated_here, sample_words
from annotation.report.raters import paragraphs
from annotation.report.wording import listed
from annotation.statistics.summaries import Design
from annotation.verdicts.preregistration import fixed_text
from annotation.verdicts.tables import SIMULATED, display, with_interval
from plumbline.errors import StudyError
from plumbline.languages import language_name
from plumbline.statistics.agreement import Answers, raw_agreement
from plumbline.statistics.estimates import stream
from plumbline.statistics.severity import severity
from plumbline.study.crowd import PTEB_COUNTRIES, CrowdSpec
from plumbline.study.ethics import QUESTIONS, begins
from plumbline.words import count, count_words

By = Literal["records", "people", "open"]
PREVIEW = "preview.html"
NOBODY = "N/A: no person rated. Every rating is simulated (a rehearsal)."
_OF_RATERS = ("consent", "recruitment", "payment", "experts", "acquainted", "researchers", "characteristics")
_PAID = "yes. "
_ABOVE = 0.5  # points on the good side of a limit, at which power is computed
_CAMPAIGNS = 1000


@dataclass(frozen=True)
class SheetAnswer:
    """An answer in a sheet."""

    text: str = ""  #: the answer, or an explanation of a choice; for an open one the facts on record
    by: By = "records"
    question: str = ""  #: key of `ethics` that answers it or could

    @property
    def yes_or_no(self) -> str:
        """The answer's first word if it is `yes`, `no` or `n/a`; else empty."""
        return begins(self.text)


def missing(text: str = "", question: str = "") -> SheetAnswer:
    """Return an open answer, with the facts on record."""
    return SheetAnswer(text, "open", question)


def facts_of(material: CampaignMaterial) -> dict[str, SheetAnswer]:
    """Return all answers by topic: the keys of `ethics`, and the facts from records."""
    people = {key: _of_people(material, key) for key in QUESTIONS}
    drawn = " ".join(filter(None, sample_words(material)))
    elsewhere = missing("Ratings came from files; how they were collected is not on record.")
    licence = material.study.bundle.licence
    of_campaign: dict[str, Callable[[CampaignMaterial], SheetAnswer]] = {
        "interface": _interface,
        "shown": _shown,
        "medium": _medium,
        "training": _training,
        "freedom": _freedom,
        "feedback": _feedback,
    }
    return {
        **people,
        **{name: answer(material) if rated_here(material) else elsewhere for name, answer in of_campaign.items()},
        "experiment": SheetAnswer(_experiment(material)),
        "inputs": SheetAnswer(_texts(material)),
        "outputs": SheetAnswer(_texts(material, outputs=True)),
        "selection": missing(drawn) if material.imported else SheetAnswer(drawn),
        "sizes": SheetAnswer(_sizes(material)),
        "preregistration": missing(
            f"{fixed_text(material.rules, material.first)} A public registration is not on record."
        ),
        "assurance": SheetAnswer(" ".join([controls_told(material), *quality_words(material)])),
        "instructions": missing() if material.imported else SheetAnswer(_instructions(material)),
        "rights": SheetAnswer(f"Outputs and ratings: {licence}.") if licence else missing(),
        "power": _power(material),
    }


def warning(material: CampaignMaterial) -> str:
    """Return the warning about simulated ratings; empty if there are none."""
    if not material.simulated:
        return ""
    return (
        SIMULATED
        if all_simulated(material)
        else f"SOME RATINGS ARE SIMULATED; those that count come from {rated_by(material)}."
    )


def all_simulated(material: CampaignMaterial) -> bool:
    """Tell whether every rating that counts is simulated."""
    return bool(len(material.counting) and material.counting["simulated"].all())


def languages_of(material: CampaignMaterial) -> tuple[list[str], list[str]]:
    """Return the codes of the originals' languages and of the outputs'."""
    originals, outputs = zip(*material.texts, strict=True)
    return sorted(set(originals)), sorted(set(outputs))


def repeated(material: CampaignMaterial) -> pd.DataFrame:
    """Return answers to repeats beside the same rater's first answers to the same pair and question.

    Columns: pair_id, rater_id, question, value and answer (the second time), value_first and answer_first.
    """
    first_of = {pair.pair_id: pair.repeats for pair in material.controls if pair.control == "repeat"}
    columns = ["pair_id", "rater_id", "question", "value", "answer"]
    ratings = material.control_ratings[material.control_ratings["status"] == "submitted"]
    again = ratings[ratings["pair_id"].isin(list(first_of))].reindex(columns=columns)
    again = again.assign(pair_id=again["pair_id"].astype(str).map(first_of))
    first = material.submitted.reindex(columns=columns)
    return again.merge(first, on=["pair_id", "rater_id", "question"], suffixes=("", "_first"))


def self_agreement(material: CampaignMaterial, question: str) -> SheetAnswer:
    """Return the share of answers that raters gave twice, or a note that no pair was shown twice."""
    both = repeated(material)
    both = both[both["question"] == question]
    if both.empty:
        return SheetAnswer("IntraAA not assessed")
    scale = next(scale for scale in material.asked.asked() if scale.name == question)
    if scale.kind != "rating":
        same = int((both["answer"].astype(str) == both["answer_first"].astype(str)).sum())
        return SheetAnswer(f"{same} of {len(both)} answers are the same as the first time ({same / len(both):.0%})")
    both = both[both["value"].notna() & both["value_first"].notna()]
    answers = Answers.of_table(both[["value_first", "value"]].to_numpy(np.float64), scale.scale)
    share = raw_agreement(answers, stream(material.study.sample.seed, "repeats", question))
    return SheetAnswer(f"share of equal answers {with_interval(share)}, of {count(len(both), 'repeated answer')}")


def _of_people(material: CampaignMaterial, key: str) -> SheetAnswer:
    crowd = _crowd_facts(material).get(key)
    if key in _OF_RATERS and all_simulated(material):
        return SheetAnswer(NOBODY, question=key)
    if text := material.study.ethics.get(key, ""):
        return SheetAnswer(f"{text} {crowd.text.removeprefix(_PAID) if crowd else ''}".strip(), "people", key)
    return replace(crowd, question=key) if crowd else missing(question=key)


def _crowd_facts(material: CampaignMaterial) -> Mapping[str, SheetAnswer]:
    """Return the answers from a live campaign on a crowd platform; none without one."""
    crowd = material.study.crowd
    platforms = {campaign.platform for campaign in material.crowd if campaign.mode == "live"}
    if crowd is None or not platforms:
        return {}
    return {
        "payment": SheetAnswer(_PAID + " ".join(paragraphs(material))),
        "recruitment": missing(f"By {collected_from(material)}.")
        if "link" in platforms
        else _recruited(material, crowd),
        "consent": SheetAnswer(f"Before the first pair, workers agreed to this text: {consent_of(crowd, ENGLISH)}"),
        "conditions": SheetAnswer("own place: workers open the page wherever they are."),
    }


def _recruited(material: CampaignMaterial, crowd: CrowdSpec) -> SheetAnswer:
    """Return the filters that a platform applied to workers."""
    countries = {code: crowd.countries.get(code) or PTEB_COUNTRIES.get(code) for code in sorted(_readers(material))}
    lists = [f"{language_name(code)} ({', '.join(named)})" for code, named in countries.items() if named]
    return SheetAnswer(
        f"By {collected_from(material)}, among workers with more than {crowd.approval}% of their tasks approved and at"
        f" least {crowd.approved:,} tasks. Countries of recruitment by language: {'; '.join(lists)}."
    )


def _readers(material: CampaignMaterial) -> set[str]:
    return {code for codes in material.texts for code in codes}


def _experiment(material: CampaignMaterial) -> str:
    study, item = material.study, material.study.called.item
    names = dict.fromkeys(display(pair.transformation, pooled=False).lower() for pair in material.pairs)
    data = listed(sorted({pair.dataset for pair in material.pairs}))
    questions = listed([question.name for question in material.asked.questions])
    about = f"Study {study.name}: {study.description.rstrip('.')}." if study.description else f"Study {study.name}."
    what = f"Raters judge {item}s of {listed(list(names))}, from {data}"
    return " ".join(
        filter(None, [warning(material), about, f"{what}, by the rubric {material.asked.name} ({questions})."])
    )


def _texts(material: CampaignMaterial, *, outputs: bool = False) -> str:
    """Describe the originals or outputs, or for other subjects the items that raters read."""
    data = listed(sorted({pair.dataset for pair in material.pairs}))
    if not material.study.judging.transforms:
        names = listed(list(material.study.judging.fields))
        return f"{f'items with the fields {names}' if names else 'items'} of {data}"
    lengths = [count_words(pair.transformed if outputs else pair.original) for pair in material.pairs]
    what = f"transformed texts of {data}" if outputs else f"texts of {data}"
    return (
        f"{what}; those of the sample have {min(lengths):,} to {max(lengths):,} words (median {np.median(lengths):g})"
    )


def _sizes(material: CampaignMaterial) -> str:
    """Count the rated items of each group."""
    rated = set(material.counting["pair_id"].astype(str))
    counts = Counter(display(pair.transformation, pooled=False) for pair in material.pairs if pair.pair_id in rated)
    if not counts:
        return "0: no rating counts"
    if len(set(counts.values())) == 1:
        each = "each " if len(counts) > 1 else ""
        return f"{next(iter(counts.values()))} {each}({listed([name.lower() for name in counts])})"
    return "; ".join(f"{name} {number}" for name, number in counts.items())


def _instructions(material: CampaignMaterial) -> str:
    """Return all that raters read, in their languages."""
    rows = wording_exhibit(material).frame.to_dict("records")
    return "\n\n".join(f"{row['pool']}, {row['language']}, {row['part']}: {row['words']}" for row in rows)


def shows_our_page(material: CampaignMaterial) -> bool:
    """Tell whether raters saw the page that the preview shows, and not Argilla's own."""
    raters = material.study.raters
    on_argilla = (raters.page == "argilla" or raters.suggestions != "none") and not material.crowd
    return rated_here(material) and not on_argilla


def _interface(material: CampaignMaterial) -> SheetAnswer:
    if not shows_our_page(material):
        return missing("Raters used Argilla's own page; there is no file of it.")
    return SheetAnswer(f"The file {PREVIEW} beside this sheet shows the page as raters see it")


def _shown(material: CampaignMaterial) -> SheetAnswer:
    raters, item = material.study.raters, material.study.called.item
    marked = " The words in which two texts of one language differ are marked." if raters.difference else ""
    scores = " Half of the items show judges' scores." if raters.suggestions != "none" else ""
    return SheetAnswer(
        f"The guidelines, the texts of one {item}, all questions with what each answer means, a field for a"
        f" comment, and a way to discard the {item}.{marked}{scores} Not shown: which generator made a text, what"
        f" others answered, and which {item}s are controls or repeats."
    )


def _medium(material: CampaignMaterial) -> SheetAnswer:
    return SheetAnswer(collected_from(material)) if len(material.counting) else missing()


def _training(material: CampaignMaterial) -> SheetAnswer:
    crowd, results = material.study.crowd, material.trained
    parts = ["The guidelines are on the rating page."]
    if crowd and crowd.comprehension:
        number = count(len(crowd.comprehension), "question")
        parts.append(f"Crowd workers answered {number} about them first, with two attempts.")
    if not material.study.training:
        return SheetAnswer(" ".join([*parts, "There were no training items."]))
    items = len({result.item_id for result in results})
    parts.append(
        f"Raters practised on known pairs{f' ({items})' if items else ''}: after each, the page shows the right answers"
        " and the reasons. Answers to known pairs never count."
    )
    if judged := sum(result.judged for result in results):
        parts.append(f"{sum(result.right for result in results)} of {judged} answers to them were right.")
    return SheetAnswer(" ".join(parts))


def _freedom(material: CampaignMaterial) -> SheetAnswer:
    crowd = material.study.crowd
    if crowd and material.crowd:
        return SheetAnswer(
            f"A batch must be done within {count(crowd.hours, 'hour')}, and is offered for {count(crowd.days, 'day')}."
        )
    return SheetAnswer("The rating page sets no time limit: it saves each answer and draft, and raters may come back.")


def _feedback(material: CampaignMaterial) -> SheetAnswer:
    crowd, contact = material.study.crowd, material.study.raters.contact
    contact = (crowd.contact if crowd and material.crowd else "") or contact
    comment = f"Raters can write a comment on each {material.study.called.item}."
    return SheetAnswer(f"{comment} The page names whom to ask." if contact else comment)


def _power(material: CampaignMaterial) -> SheetAnswer:
    """Return the chance of acceptance at a true mean above the limit, simulated with these ratings' variation."""
    if material.imported:
        return missing("How the number of items was chosen is not on record.")
    if material.counting.empty or not material.questions:
        return SheetAnswer("N/A")
    try:
        lines = list(_prospects(material))
    except (StudyError, ValueError):  # rules that cannot be planned, or ratings that do not vary
        return SheetAnswer("N/A")
    return SheetAnswer("; ".join(lines) or "N/A")


def _prospects(material: CampaignMaterial) -> Iterator[str]:
    study, raters = material.study, material.study.raters.per_pair
    design = Design.of(study, material.asked)
    pairs = min((verdict.n_pairs for verdict in material.verdicts), default=0)
    for rule in planned_rules(design, study.file) if pairs else ():
        if rule.statistic != "mean":
            continue
        several = bool(study.acceptance.rules)  # else the one threshold is for every question
        alone = replace(design, rule=design.rule.model_copy(update={"rules": (rule,)})) if several else design
        mean = rule.limit + (_ABOVE if rule.at_least is not None else -_ABOVE)
        for question in (rule.question,) if several else material.questions:
            assumed = _variation(material.counting[material.counting["question"] == question])
            generator = stream(study.sample.seed, "sheet", question)
            prospect = outlook(alone, assumed, (pairs, raters), mean, _CAMPAIGNS, generator)
            yield (
                f"{question}: {prospect.accepted:.3f} at a true mean of {mean:g} (limit {rule.limit:g};"
                f" {pairs} {study.called.item}s as in the smallest verdict, {count(raters, 'rater')} for each;"
                f" {_CAMPAIGNS:,} simulated campaigns; standard deviations of items {assumed.spread:.2f},"
                f" raters {assumed.bias:.2f}, noise {assumed.noise:.2f})"
            )


def _variation(ratings: pd.DataFrame) -> RatingVariation:
    """Return the variation of one question's ratings within transformations. Raises ValueError if they do not vary."""
    columns = ["pair_id", "rater_id", "value", "transformation"]
    parts = severity(ratings.loc[ratings["value"].notna(), columns], "transformation")
    if not parts.error_sd > 0:
        raise ValueError("power is undefined for ratings that do not vary")
    return RatingVariation(parts.item_sd, parts.rater_sd, parts.error_sd)


def open_questions(answers: Sequence[SheetAnswer]) -> list[str]:
    """Return the keys of `ethics` that could answer open questions, each once."""
    return list(dict.fromkeys(answer.question for answer in answers if answer.by == "open" and answer.question))

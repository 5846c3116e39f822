"""HEDS 3.0, filled from facts: an answer for each of its questions, and the JSON that its form imports.

The form (nlp-heds.github.io) keeps each element under its id: `data` has a value by quality criterion (an empty name
outside section 4), a chosen option also has its words as `text`; the element that lists criteria has `control`.
Open fields are left out, and the form counts them as blank. Source: Belz and Thomson (2024), arXiv:2412.07940.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from annotation.questions import ENGLISH, Question, QuestionScale, worded
from annotation.report.material import CampaignMaterial
from annotation.report.methods import acceptance_words, agreement_words, rated_here
from annotation.report.wording import listed
from annotation.sheets.facts import (
    SheetAnswer,
    all_simulated,
    languages_of,
    missing,
    repeated,
    self_agreement,
)
from annotation.verdicts.tables import with_interval
from plumbline.languages import language_name
from plumbline.reading import parse_yaml
from plumbline.scales import Continuous, is_fine

NO_CRITERION = ""  # the form's name for the criterion outside section 4
# Classes of our own questions, by their English wording: type of quality, aspect, frame of reference (options of 4.1).
_CLASSIFIED = {
    "Transformation quality: does the new text do what was asked and keep the meaning?": (1, 3, 2),
    "Fluency: does the new text read as well-formed?": (2, 1, 1),
    "How similar are the two texts in meaning?": (1, 2, 2),
}
# Task of a transformation (option of 2.3).
_TASKS = {
    **dict.fromkeys(("paraphrasing", "backtranslation", "style_change"), 13),
    **dict.fromkeys(("translation", "cross_translation"), 15),
    "summarisation": 16,
}
_OTHER_TASK = 20
# Fields unknown for imported ratings: how the scale was shown (_SHOWN) and, if items were imported too, the questions.
_SHOWN = frozenset({"4.3.5"})
_UNSEEN = _SHOWN | {
    *(f"4.{part}.{number}" for part in (1, 2) for number in (1, 2, 3)),
    *("4.3.1.1", "4.3.2", "4.3.3", "4.3.4", "4.3.6", "4.3.7", "4.3.8"),
}


@dataclass(frozen=True)
class FormField:
    """A question of the form."""

    number: str
    id: str
    title: str
    options: Sequence[str]  #: values in order; empty if the answer is text
    explain: frozenset[int]  #: options, from 1, that ask for words

    @property
    def by_criterion(self) -> bool:
        """Whether each quality criterion has its own answer."""
        return self.number.startswith("4.")


@dataclass(frozen=True)
class FieldAnswer:
    """A field's answer: text, options (from 1) with an explanation, or nothing yet."""

    answer: SheetAnswer
    chosen: tuple[int, ...] = ()
    criterion: str = NO_CRITERION


@functools.cache
def _content() -> dict[str, Any]:
    """Read `heds.yaml`."""
    content: dict[str, Any] = parse_yaml(files("annotation.sheets").joinpath("heds.yaml").read_text(encoding="utf-8"))
    return content


@functools.cache
def form() -> tuple[Mapping[str, FormField], str]:
    """Return the questions by number, in order, and the id of the element that lists criteria."""
    content, fields = _content(), dict[str, FormField]()
    names = [f"{number}. {name}" for number, name in enumerate(content["languages"].values(), 1)]
    languages = [content["no_language"], *names, content["other_language"]]
    for number, entry in content["fields"].items():
        in_languages = entry.get("languages", False)
        options = languages if in_languages else entry.get("one_of") or entry.get("any_of") or ()
        explain = (1, len(languages)) if in_languages else entry.get("explain", ())
        fields[number] = FormField(number, entry["id"], entry["title"], tuple(options), frozenset(explain))
    return fields, content["many"]


def heds_answers(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, list[FieldAnswer]]:
    """Return the answers by the question's number, in the form's order; in section 4 one for each criterion."""
    answers = {**_reference(material, facts), **_systems(material, facts), **_design(material, facts)}
    answers |= _evaluators(material, facts) | _ethics(facts)
    questions = list(zip(material.asked.questions, material.asked.asked(), strict=True))
    criteria = [_criterion(material, question, scale) for question, scale in questions]
    every = {number: [answer] for number, answer in answers.items()}
    for number in criteria[0]:
        every[number] = [criterion[number] for criterion in criteria]
    return {number: every[number] for number in form()[0]}


def heds_json(answers: Mapping[str, Sequence[FieldAnswer]]) -> dict[str, Any]:
    """Return the content for the form's `upload json`: a value for each answered element, by its id."""
    fields, many = form()
    named = (entry.criterion for entries in answers.values() for entry in entries if entry.criterion)
    criteria = list(dict.fromkeys(named))
    content: dict[str, Any] = {
        many: {"data": {}, "control": {name: number == 0 for number, name in enumerate(criteria)}, "text": {}}
    }
    for number, entries in answers.items():
        field = fields[number]
        for entry in entries:
            if entry.answer.by != "open":
                for element, value, text in _elements(field, entry):
                    _put(content, element, number, entry.criterion, value, text)
    return content


def _elements(field: FormField, entry: FieldAnswer) -> Iterator[tuple[str, str | bool, str]]:
    """Yield (element, value, words of a chosen option) of an answer."""
    if not field.options:
        yield field.id, entry.answer.text, ""
        return
    for option in entry.chosen:
        yield f"{field.id}-{option}", True, field.options[option - 1]
    if field.explain & set(entry.chosen):
        yield f"{field.id}-other_text", entry.answer.text, ""


def _put(content: dict[str, Any], element: str, number: str, criterion: str, value: str | bool, text: str) -> None:
    stored = content.setdefault(element, {"data": {}, "control": {}, "number": number})
    stored["data"][criterion] = value
    if text:
        stored.setdefault("text", {})[criterion] = text


def _words(answer: SheetAnswer) -> FieldAnswer:
    return FieldAnswer(answer)


def _choice(answer: SheetAnswer, *options: int) -> FieldAnswer:
    """Return options with an answer's words; open if the answer is open or no option is chosen."""
    if options and answer.by != "open":
        return FieldAnswer(answer, options)
    return FieldAnswer(missing(answer.text, answer.question))


def _by_beginning(answer: SheetAnswer, options: Mapping[str, int]) -> FieldAnswer:
    """Return the option for an answer's first word (yes, no, n/a)."""
    return _choice(answer, *[options[answer.yes_or_no]] if answer.yes_or_no in options else [])


def _reference(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, FieldAnswer]:
    bundle = material.study.bundle
    contact = SheetAnswer(bundle.contact) if "@" in bundle.contact else missing()
    return {
        "1.1.1": _words(missing()),
        "1.1.2": _words(facts["experiment"]),
        "1.2": _choice(SheetAnswer(bundle.reference), 1) if bundle.reference else _words(missing()),
        **{f"1.3.1.{number}": _words(missing()) for number in (1, 2, 3)},
        "1.3.2.1": _words(SheetAnswer(bundle.creators[0]) if bundle.creators else missing()),
        "1.3.2.2": _words(missing()),
        "1.3.2.3": _words(contact),
    }


def _systems(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, FieldAnswer]:
    inputs, outputs = languages_of(material)
    return {
        "2.1": _choice(facts["inputs"], 9),
        "2.2": _choice(facts["outputs"], 9),
        "2.3": _tasks(material),
        "2.4": _languages(inputs),
        "2.5": _languages(outputs),
    }


def _tasks(material: CampaignMaterial) -> FieldAnswer:
    names = list(dict.fromkeys(pair.transformation for pair in material.pairs))
    if not material.study.judging.transforms:
        return _choice(SheetAnswer("No system is evaluated: raters judge items of data sets."), _OTHER_TASK)
    others = [name for name in names if name not in _TASKS]
    chosen = sorted({_TASKS.get(name, _OTHER_TASK) for name in names})
    return _choice(SheetAnswer(f"Transformations: {listed(others)}." if others else ""), *chosen)


def _languages(codes: Sequence[str]) -> FieldAnswer:
    options = {code: number for number, code in enumerate(_content()["languages"], 2)}  # option 1 is no language
    others = [language_name(code) for code in codes if code not in options]
    chosen = sorted({options.get(code, len(options) + 2) for code in codes})
    return _choice(SheetAnswer(", ".join(others)), *chosen)


def _evaluators(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, FieldAnswer]:
    people = material.counting.groupby("rater_id")["simulated"].any()
    yes_no = {"yes": 1, "no": 2, "n/a": 3}
    return {
        "3.2.1": _words(SheetAnswer("N/A" if all_simulated(material) else str(int((~people.astype(bool)).sum())))),
        "3.2.2.1": _by_beginning(facts["experts"], yes_no),
        "3.2.2.2": _by_beginning(facts["payment"], {"yes": 1, "no": 3, "n/a": 4}),
        "3.2.2.3": _by_beginning(facts["acquainted"], yes_no),
        "3.2.2.4": _by_beginning(facts["researchers"], yes_no),
        "3.2.3": _words(facts["recruitment"]),
        "3.2.4": _words(facts["training"]),
        "3.2.5": _words(facts["characteristics"]),
    }


def _design(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, FieldAnswer]:
    power, conditions = facts["power"], facts["conditions"]
    method = (
        "N/A: no power analysis from before the campaign is on record. Computed afterwards: the chance that the study's"
        " rule accepts at a true mean half a point better than its limit, in simulated campaigns with the variation of"
        " these ratings (restricted maximum likelihood)"
    )
    selection = 6 if material.study.judging.takes_all else 2
    computed = power.by != "open" and power.text != "N/A"
    anywhere = conditions.text.lower().startswith("own place")
    varies = SheetAnswer("Place, time and device are each rater's own choice.", conditions.by, "conditions")
    return {
        "3.1.1": _words(facts["sizes"]),
        "3.1.2": _choice(facts["selection"], selection),
        "3.1.3.1": _words(replace(power, text=method) if computed else power),
        "3.1.3.2": _words(power),
        "3.1.3.3": _words(replace(power, text="Plumbline: annotation/planning.py (outlook)") if computed else power),
        "3.3.1": _words(facts["preregistration"]),
        "3.3.2": _words(facts["medium"]),
        "3.3.3.1": _choice(SheetAnswer(), *_assurance(material)),
        "3.3.3.2": _words(facts["assurance"]),
        "3.3.4.1": _words(facts["interface"]),
        "3.3.4.2": _words(facts["shown"]),
        "3.3.5": _choice(facts["freedom"], 3 if material.crowd else 5),
        "3.3.6": _choice(facts["feedback"], *((2, 4) if "whom to ask" in facts["feedback"].text else (4,))),
        "3.3.7": _choice(conditions, 1 if anywhere else 8),
        "3.3.8": _words(varies if anywhere else conditions),
    }


def _assurance(material: CampaignMaterial) -> tuple[int, ...]:
    """Return the options on quality assurance: automatic checks, and people's checks and exclusions if on record."""
    return (2, *((3,) if material.decisions else ()), *((4,) if len(material.excluded) else ()))


def _ethics(facts: Mapping[str, SheetAnswer]) -> dict[str, FieldAnswer]:
    no_yes = {"no": 1, "yes": 2}
    return {
        "5.1": _words(facts["committee"]),
        "5.2": _by_beginning(facts["personal_data"], no_yes),
        "5.3": _by_beginning(facts["special_category"], no_yes),
        "5.4": _words(facts["impact"]),
    }


def _criterion(material: CampaignMaterial, question: Question, scale: QuestionScale) -> dict[str, FieldAnswer]:
    """Return the answers of section 4 for one question that raters answer."""
    title = worded(question.title, ENGLISH)
    classes = _CLASSIFIED.get(title)
    classified = [_choice(SheetAnswer(), option) for option in classes] if classes else [_words(missing())] * 3
    agreement, score = _agreement(material, scale)
    decided = " ".join(filter(None, acceptance_words(material)))
    again = self_agreement(material, scale.name)
    twice = not repeated(material).empty and not again.text.startswith("IntraAA")
    answers = {
        **{f"4.1.{number}": entry for number, entry in enumerate(classified, 1)},
        "4.2.1": _choice(SheetAnswer(), 2),
        "4.2.2": _choice(SheetAnswer(), 2 if scale.kind == "ranking" else 1),
        "4.2.3": _choice(SheetAnswer(), 1),
        "4.3.1.1": _words(_named(title)),
        "4.3.1.2": _words(missing()),
        "4.3.2": _words(SheetAnswer(_definition(material, question) or "no definition given")),
        **instrument(question, scale),
        "4.3.7": _words(SheetAnswer(title)),
        "4.3.9": _words(SheetAnswer(_aggregation(material, scale))),
        "4.3.10": _words(SheetAnswer("None" if scale.kind == "text" else decided)),
        "4.3.11.1": _words(SheetAnswer(agreement)),
        "4.3.11.2": _words(SheetAnswer(score)),
        "4.3.12.1": _words(
            SheetAnswer(
                "A rater's two answers to an item that was shown again among other items" if twice else again.text
            )
        ),
        "4.3.12.2": _words(again),
    }
    unseen = _UNSEEN if material.imported else _SHOWN if not rated_here(material) else frozenset[str]()
    return {
        number: FieldAnswer(missing(), (), scale.name)
        if number in unseen
        else FieldAnswer(entry.answer, entry.chosen, scale.name)
        for number, entry in answers.items()
    }


def _named(title: str) -> SheetAnswer:
    """Return a question's name for its criterion: in our questions the words before the colon."""
    name, colon, _ = title.partition(":")
    if colon and title not in _CLASSIFIED:
        return missing(title)
    return SheetAnswer(name if colon else "no name given")


def _definition(material: CampaignMaterial, question: Question) -> str:
    """Return the explanation beside the question's title, once if all pools read the same."""
    every = dict.fromkeys(pair.pool for pair in material.pairs)
    pools = [pool for pool in every if not question.pools or pool in question.pools]
    texts = {pool: material.asked.description(pool, question, ENGLISH) for pool in pools}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{pool}: {text}" for pool, text in texts.items() if text)


def instrument(question: Question, scale: QuestionScale) -> dict[str, FieldAnswer]:
    """Return the scale's size, values and form, or the task of a question without a scale."""
    task = "N/A"
    if scale.kind == "rating":
        continuous = isinstance(scale.scale, Continuous)
        size = "continuous" if continuous else str(len(scale.scale))
        points = [f"{point:g}" for point in scale.scale]
        values = f"{points[0]} to {points[-1]}" if len(points) > 11 or continuous else ", ".join(points)
        shown, response = 3 if is_fine(scale.scale) else 1, 2
    elif scale.kind in ("label", "multi_label"):
        names = [worded(words, ENGLISH) for words in question.labels.values()]
        size = str(len(names) if scale.kind == "label" else 2 ** len(names) - 1)
        values = "; ".join(names) + (" (any number of them)" if scale.kind == "multi_label" else "")
        shown, response = 1 if scale.kind == "label" else 2, 7
    else:
        size = values = "N/A"
        names = [worded(words, ENGLISH) for words in question.labels.values()]
        task = f"To order {'; '.join(names)}; the order is recorded" if names else "To write a text, which is recorded"
        shown, response = 4, 3 if scale.kind == "ranking" else 5
    return {
        "4.3.3": _words(SheetAnswer(size)),
        "4.3.4": _words(SheetAnswer(values)),
        "4.3.5": _choice(SheetAnswer(), shown),
        "4.3.6": _words(SheetAnswer(task)),
        "4.3.8": _choice(SheetAnswer(), response),
    }


def _aggregation(material: CampaignMaterial, scale: QuestionScale) -> str:
    if scale.kind == "text":
        return "results were not processed or aggregated before being reported"
    item, per_pair = material.study.called.item, material.study.raters.per_pair
    what = {
        "rating": "the mean of the single ratings under each verdict",
        "label": "the share of answers with each label",
        "multi_label": "the share of answers with each label",
        "ranking": "each label's mean rank, and how often it is first",
    }[scale.kind]
    first = "the first rater by time counts" if per_pair == 1 else f"the first {per_pair} raters by time count"
    return f"For each {item}, {first}; the reported result is {what}."


def _agreement(material: CampaignMaterial, scale: QuestionScale) -> tuple[str, str]:
    """Return the measure of agreement on a question, and the numbers over all groups."""
    overall = next((group for group in material.groups if group.level == "overall"), None)
    summary = next((part for part in overall.questions if part.question == scale.name), None) if overall else None
    if scale.kind == "text" or summary is None:
        return "InterAA not assessed", "InterAA not assessed"
    if scale.kind == "rating":
        numbers = {"AC2": summary.ac2, "alpha": summary.alpha, "kappa": summary.kappa, "raw agreement": summary.raw}
    else:
        numbers = {f"{part.name} {part.label}".strip(): part.estimate for part in summary.coefficients}
    score = "; ".join(f"{name} {with_interval(estimate)}" for name, estimate in numbers.items())
    item = material.study.called.item
    of = f"{summary.n_ratings:,} ratings of {summary.n_pairs:,} {item}s by {summary.n_raters} raters"
    return " ".join(agreement_words(material)), f"{score} (95% intervals; {of})"

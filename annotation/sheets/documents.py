"""Sheets as Markdown: HEDS for readers, ARR's checklist on human annotators, and a datasheet, with open questions.

Sources of the questions: ARR's Responsible NLP checklist, section D, in the words of acl-org/responsibleNLPresearch;
Gebru et al. (2021), Datasheets for Datasets, Communications of the ACL 64 (12), 86-92, shortened and limited to those
that apply to a set of ratings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from annotation.report.material import CampaignMaterial
from annotation.report.methods import methods
from annotation.report.wording import dated_words, listed, made_by, verb
from annotation.sheets.facts import NOBODY, SheetAnswer, all_simulated, languages_of, missing, open_questions, warning
from annotation.sheets.heds import FieldAnswer, form
from annotation.verdicts.tables import scoped
from plumbline.exhibits.table import as_markdown
from plumbline.languages import language_name
from plumbline.study import Study
from plumbline.study.ethics import QUESTIONS
from plumbline.words import count

_CHECKLIST = {
    "D1": "Did you report the full text of instructions given to participants, including e.g., screenshots, disclaimers"
    " of any risks to participants or annotators, etc.?",
    "D2": "Did you report information about how you recruited (e.g., crowdsourcing platform, students) and paid"
    " participants, and discuss if such payment is adequate given the participants’ demographic (e.g., country of"
    " residence)?",
    "D3": "Did you discuss whether and how consent was obtained from people whose data you're using/curating (e.g., did"
    " your instructions explain how the data would be used)?",
    "D4": "Was the data collection protocol approved (or determined exempt) by an ethics review board?",
    "D5": "Did you report the basic demographic and geographic characteristics of the annotator population that is the"
    " source of the data?",
}

Entries = Sequence[tuple[str, SheetAnswer]]


def checklist_answers(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, SheetAnswer]:
    """Return answers to ARR's questions D1 to D5, each with a justification."""
    both = [facts["recruitment"], facts["payment"]]
    if unanswered := [answer for answer in both if answer.by == "open"]:
        recruited = missing(" ".join(answer.text for answer in both), unanswered[0].question)
    else:
        recruited = SheetAnswer(" ".join(dict.fromkeys(answer.text for answer in both)), both[0].by)
    read = facts["instructions"]
    instructions = replace(read, text=f"This is all that raters read.\n\n{read.text}") if read.by != "open" else read
    return {
        "D1": SheetAnswer(NOBODY) if all_simulated(material) else instructions,
        "D2": recruited,
        "D3": facts["consent"],
        "D4": facts["committee"],
        "D5": facts["characteristics"],
    }


def datasheet_answers(
    material: CampaignMaterial, facts: Mapping[str, SheetAnswer]
) -> dict[str, dict[str, SheetAnswer]]:
    """Return the datasheet's questions and answers, by section."""
    bundle, people = material.study.bundle, "Raters appear under pseudonyms."
    published = SheetAnswer(f"{bundle.reference} {bundle.published}".strip()) if bundle.reference else missing()
    return {
        "Motivation": {
            "For what purpose was the dataset created?": _stated(material.study.description),
            "Who created it?": _stated(listed(bundle.creators)),
            "Who funded it?": missing(),
        },
        "Composition": _composition(material, facts),
        "Collection": {
            "How was the data acquired?": SheetAnswer(" ".join(methods(material))),
            "What mechanisms were used?": facts["medium"],
            "Who was involved, and how were they paid?": facts["payment"],
            "How were they recruited?": facts["recruitment"],
            "Over what time?": _stated(dated_words(material.counting) if len(material.counting) else ""),
            "Was there an ethical review?": facts["committee"],
            "Did the people consent?": facts["consent"],
            "Was an impact assessment carried out?": facts["impact"],
        },
        "Preprocessing": {
            "Was there preprocessing, cleaning or labelling?": SheetAnswer(
                " ".join([facts["assurance"].text, *made_by(material)])
            ),
            "Is the raw data saved?": SheetAnswer(
                f"Yes: the study's records have every answer, counted or not. {people}"
            ),
            "Is the software available?": SheetAnswer(f"Yes: {_software(material)}."),
        },
        "Uses": {
            "What has it been used for?": SheetAnswer(
                f"For {count(len(material.verdicts), 'verdict')} on {material.study.called.judged}s."
            ),
            "What should it not be used for?": SheetAnswer(_misuse(material)),
        },
        "Distribution": {"Under what licence?": facts["rights"], "Where and when was it published?": published},
        "Maintenance": {
            "Who can be contacted?": _stated(bundle.contact),
            "Which edition is it?": SheetAnswer(bundle.edition),
        },
    }


def _composition(material: CampaignMaterial, facts: Mapping[str, SheetAnswer]) -> dict[str, SheetAnswer]:
    item, counting = material.study.called.item, len(material.counting)
    inputs, outputs = (listed([language_name(code) for code in codes]) for codes in languages_of(material))
    questions = listed([question.name for question in material.asked.questions])
    return {
        "What do the instances represent?": facts["experiment"],
        "How many instances are there?": SheetAnswer(
            f"{count(len(material.pairs), item)}, {verb(counting, 'rating', 'counts', 'count')}; by group:"
            f" {facts['sizes'].text}"
        ),
        "Is it a sample of a larger set?": facts["selection"],
        "What data does each instance consist of?": SheetAnswer(
            f"{facts['inputs'].text.capitalize()}. Languages of the originals: {inputs}; of the outputs: {outputs}."
        ),
        "Is there a label or target?": SheetAnswer(f"Each rater's answer to {questions}."),
        "Is information missing?": SheetAnswer(_gaps(material)),
        "Are there errors or noise?": SheetAnswer("; ".join(material.doubts) or "Nothing doubtful was found."),
        "Are relationships between instances explicit?": SheetAnswer(
            f"Yes: each answer names its {item} and its rater (a pseudonym), each {item} its data set and text."
        ),
        "Does it identify subpopulations?": SheetAnswer(
            "No: about raters it has only pseudonyms, answers, times and comments."
        ),
        "Is it self-contained?": SheetAnswer(f"The texts are those of {listed(_licensed(material.study))}."),
        "Does it hold personal data?": facts["personal_data"],
        "Does it hold data of special categories?": facts["special_category"],
    }


def _stated(text: str) -> SheetAnswer:
    """Return text of the study file as an answer; open if it is empty."""
    return SheetAnswer(text) if text else missing()


def _misuse(material: CampaignMaterial) -> str:
    refused = [scoped(v.transformation, v.language, v.task_type) for v in material.verdicts if v.decision != "accepted"]
    judged = material.study.called.judged
    what = f"For evaluations on {judged}s that were not accepted: {listed(refused)}." if refused else ""
    return " ".join(filter(None, [warning(material), what, f"For any {judged} or language without a verdict."]))


def _licensed(study: Study) -> list[str]:
    """Return the data sets with their licences."""
    rights = {name: spec.licence for name, spec in study.bundle.datasets.items()}
    return [f"{spec.name} ({rights.get(spec.name) or 'licence not on record'})" for spec in study.datasets]


def _gaps(material: CampaignMaterial) -> str:
    """Return a sentence on the items that have ratings from all the raters wanted."""
    per_pair = material.study.raters.per_pair
    raters = material.counting.groupby("pair_id")["rater_id"].nunique()
    full = int((raters >= per_pair).sum())
    items, wanted = count(len(material.staying), material.study.called.item), count(per_pair, "rater")
    return f"{full:,} of {items} {'has' if full == 1 else 'have'} ratings from {wanted}."


def _software(material: CampaignMaterial) -> str:
    versions = material.manifest.get("versions", {})
    return listed(["Plumbline", *(f"{name} {version}" for name, version in versions.items())])


def heds_text(study: Study, above: str, answers: Mapping[str, Sequence[FieldAnswer]]) -> str:
    """Return HEDS as Markdown."""
    fields, rows = form()[0], list[tuple[str, SheetAnswer]]()
    for number, entries in answers.items():
        for entry in entries:
            of = f" ({entry.criterion})" if entry.criterion else ""
            words = [fields[number].options[option - 1] for option in entry.chosen]
            text = ". ".join(filter(None, [*(option.rstrip(".") for option in words), entry.answer.text]))
            rows.append(
                (f"{number} {fields[number].title}{of}", SheetAnswer(text, entry.answer.by, entry.answer.question))
            )
    return _document(f"HEDS 3.0: study {study.name}", above, {"": rows})


def checklist_text(study: Study, above: str, answers: Mapping[str, SheetAnswer]) -> str:
    """Return ARR's section D as Markdown."""
    rows = [(f"{number} {_CHECKLIST[number]}", answer) for number, answer in answers.items()]
    return _document(f"Responsible NLP checklist, D (human annotators): study {study.name}", above, {"": rows})


def datasheet_text(study: Study, above: str, answers: Mapping[str, Mapping[str, SheetAnswer]]) -> str:
    """Return the datasheet as Markdown."""
    sections = {name: list(rows.items()) for name, rows in answers.items()}
    return _document(f"Datasheet: study {study.name}", above, sections)


def counted(answers: Sequence[SheetAnswer]) -> str:
    """Count the answers by their source: `60 of 83 answered (60 from records, 0 by people); 23 open`."""
    number = {by: sum(answer.by == by for answer in answers) for by in ("records", "people", "open")}
    answered = number["records"] + number["people"]
    return (
        f"{answered} of {len(answers)} answered ({number['records']} from records, {number['people']} by people);"
        f" {number['open']} open"
    )


def _document(title: str, above: str, sections: Mapping[str, Entries]) -> str:
    """Return a document: a title, a note, the share answered, the open keys, then questions with answers."""
    answers = [answer for rows in sections.values() for _, answer in rows]
    parts = [f"# {as_markdown(title)}"]
    parts += [f"**{as_markdown(above)}**"] if above else []
    parts.append(f"{counted(answers)}.")
    if keys := open_questions(answers):
        questions = "\n".join(f"- `{key}`: {as_markdown(QUESTIONS[key])}" for key in keys)
        parts.append(f"Answer under `ethics` in the study file, and run the command again:\n\n{questions}")
    level = "###" if any(sections) else "##"
    for section, rows in sections.items():
        parts += [f"## {as_markdown(section)}"] if section else []
        for question, answer in rows:
            parts += [f"{level} {as_markdown(question)}", *_paragraphs(answer)]
    return "\n\n".join(parts) + "\n"


def _paragraphs(answer: SheetAnswer) -> list[str]:
    words = [as_markdown(part) for part in answer.text.split("\n\n") if part.strip()]
    if answer.by != "open":
        return words or ["N/A"]
    where = (
        f"Answer it under `ethics: {answer.question}` in the study file." if answer.question else "Fill it in by hand."
    )
    return [f"**OPEN.** {where}", *(["On record so far:", *words] if words else [])]

"""The words that a dataset of Argilla's shows: what they are to be, what they are, and putting them right.

Argilla lets guidelines, titles and descriptions of a published dataset be changed, and neither its questions nor their
scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from annotation.argilla.answering import TITLE, anchored, beside
from annotation.argilla.client import Argilla
from annotation.argilla.forms import Form
from annotation.questions import said
from annotation.rubric import Rubric
from annotation.sampling.queues import Queue
from annotation.subject_words import ANSWERING, ASKED, BESIDE
from annotation.verdicts.rule_changes import from_to
from plumbline.fields import Kind as FieldKind

COMMENT = "comment"
_GUIDELINES = 10_000  # characters of guidelines that Argilla takes


@dataclass(frozen=True)
class Words:
    """All that a dataset says to raters; titles by field, title and description by question."""

    guidelines: str
    fields: Mapping[str, str]
    questions: Mapping[str, tuple[str, str]]
    forms: Mapping[str, Form]  #: how each question but the free comment is answered
    beside: Mapping[str, str] = field(default_factory=dict)  #: what stands with each item; nobody knows it of a dataset
    plain: Mapping[str, str] = field(default_factory=dict)  #: the questions' titles as earlier versions published them
    platforms: frozenset[str] = frozenset()  #: fields whose titles are no rubric's, so that they are never corrected
    kinds: Mapping[str, FieldKind] = field(default_factory=dict)  #: of the fields that are no plain text

    @classmethod
    def of(cls, rubric: Rubric, queue: Queue, note: str = "") -> Words:
        """What a rubric says to the raters of a queue; `note` (Markdown) stands above and below the guidelines."""
        language = rubric.language_for(queue.language, queue.output_language)
        titles = rubric.field_titles(queue.pool, language, queue.language, queue.output_language)
        more = beside(rubric, queue.pool, language)
        questions = rubric.asked_questions(queue.pool)
        worded = {
            one.name: (anchored(rubric, queue.pool, one, language), rubric.description(queue.pool, one, language))
            for one in questions
        }
        return cls(
            guidelines="\n\n".join(filter(None, (note, rubric.guidelines_for(queue.pool, language), note))),
            fields={ASKED: more[ASKED][0], **titles, ANSWERING: more[ANSWERING][0]},
            questions={**worded, COMMENT: (said(rubric.comment, language), "")},
            forms={one.name: Form.of(rubric, queue.pool, one, language) for one in questions},
            beside={name: text for name, (_, text) in more.items()},
            plain={one.name: said(one.title, language) for one in questions},
            platforms=frozenset(BESIDE if rubric.fields.shown else [ANSWERING]),
            kinds={one.name: one.kind for one in rubric.fields.of(queue.pool) if one.kind == "chat"},
        )

    @classmethod
    def shown(cls, argilla: Argilla, dataset_id: str) -> Words:
        """What a dataset says now. Raises ServiceError."""
        fields = argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]
        questions = argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
        return cls(
            guidelines=argilla.request("GET", f"/datasets/{dataset_id}")["guidelines"] or "",
            fields={one["name"]: one["title"] for one in fields},
            kinds={one["name"]: "chat" for one in fields if one["settings"]["type"] == "chat"},
            questions={one["name"]: (one["title"], one["description"] or "") for one in questions},
            forms={one["name"]: Form.shown(one) for one in questions if one["name"] != COMMENT},
        )

    def corrects(self, shown: Words) -> str:
        """What is said otherwise than a dataset shows it, in words; empty if nothing."""
        if self.forms != shown.forms:
            return f"the questions and their points {from_to(shown.answers(), self.answers())}"
        found = []
        for name, own in self.questions.items():
            there = shown.questions.get(name, ("", ""))
            for old, new in zip(there, own if there[0] != self.plain.get(name) else (there[0], own[1]), strict=True):
                found += [f"the question {name!r} {from_to(old, new)}"] if old != new else []
        now = {name: title for name, title in shown.fields.items() if name not in self.platforms}
        titles = {name: title for name, title in self.fields.items() if name not in self.platforms}
        titles = {name: title for name, title in titles.items() if name != ASKED or name in now}
        if titles != now:
            found.append(f"the texts' titles {from_to(list(now.values()), list(titles.values()))}")
        if self.guidelines.strip() != shown.guidelines.strip():
            found.append(f"the guidelines {from_to(shown.guidelines.strip(), self.guidelines.strip())}")
        return "; ".join(found)

    def too_much(self) -> str:
        """What of it Argilla does not take, in words; empty if it takes all."""
        for name, form in self.forms.items():
            if what := form.too_much():
                return f"question {name!r} {what}"
        titles = [*self.fields.values(), *(title for title, _ in self.questions.values())]
        if longest := next((title for title in titles if len(title) > TITLE), ""):
            return f"the title {longest[:40]!r}... has {len(longest)} characters, it takes {TITLE}"
        if len(self.guidelines) > _GUIDELINES:
            return f"the guidelines have {len(self.guidelines)} characters, it takes {_GUIDELINES}"
        return ""

    def fits(self, shown: Words) -> bool:
        """Whether a dataset that shows those words can be made to show these: Argilla changes no form and no pair.

        What was asked stands with each pair, and in the guidelines, where it can be read back.
        """
        same = self.fields.keys() - BESIDE == shown.fields.keys() - BESIDE and self.kinds == shown.kinds
        asked = ASKED not in shown.fields or self.beside[ASKED] in shown.guidelines
        return self.forms == shown.forms and same and asked

    def answers(self) -> str:
        """The questions with what can be answered, in words."""
        return "; ".join(f"{name} {form}" for name, form in self.forms.items())


def put_right(argilla: Argilla, dataset_id: str, words: Words) -> None:
    """Let a dataset say these words; its questions and their points are the same already. Raises ServiceError."""
    argilla.request("PATCH", f"/datasets/{dataset_id}", json={"guidelines": words.guidelines})
    for one in argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]:
        argilla.request("PATCH", f"/fields/{one['id']}", json={"title": words.fields[one["name"]]})
    for one in argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]:
        title, description = words.questions[one["name"]]
        change = {"title": title, "description": description or None}
        argilla.request("PATCH", f"/questions/{one['id']}", json=change)


def answered(argilla: Argilla, dataset_id: str) -> bool:
    """Whether anybody answered anything in a dataset, drafts and discards too. Raises ServiceError."""
    return any(record.get("responses") for record in argilla.records(dataset_id))

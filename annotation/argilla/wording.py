"""The words that a dataset of Argilla's shows: what they are to be, what they are, and putting them right.

Argilla lets guidelines, titles and descriptions of a published dataset be changed, and neither its questions nor their
scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from annotation.argilla.client import Argilla
from annotation.rubric import Rubric, said
from annotation.sampling.queues import Queue
from annotation.verdicts.rule_changes import from_to

COMMENT = "comment"
_POINTS = (0, 10)  # what Argilla takes of a rating's points, of a title's characters, and of the guidelines'
_TITLE, _GUIDELINES = 500, 10_000
FIELDS = ("original", "transformed")


@dataclass(frozen=True)
class Words:
    """All that a dataset says to raters; titles by field, title and description by question."""

    guidelines: str
    fields: Mapping[str, str]
    questions: Mapping[str, tuple[str, str]]
    scales: Mapping[str, tuple[int, ...]]  #: the points of each question that has some

    @classmethod
    def of(cls, rubric: Rubric, queue: Queue, note: str = "") -> Words:
        """What a rubric says to the raters of a queue; `note` (Markdown) stands above and below the guidelines."""
        language = rubric.language_for(queue.language, queue.output_language)
        titles = rubric.field_titles(language, queue.language, queue.output_language)
        asked = {
            one.name: (said(one.title, language), rubric.description(queue.pool, one, language))
            for one in rubric.questions
        }
        return cls(
            guidelines="\n\n".join(filter(None, (note, rubric.guidelines_for(queue.pool, language), note))),
            fields=dict(zip(FIELDS, titles, strict=True)),
            questions={**asked, COMMENT: (said(rubric.comment, language), "")},
            scales=dict.fromkeys(rubric.question_names(), rubric.scale),
        )

    @classmethod
    def shown(cls, argilla: Argilla, dataset_id: str) -> Words:
        """What a dataset says now. Raises ServiceError."""
        fields = argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]
        questions = argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
        return cls(
            guidelines=argilla.request("GET", f"/datasets/{dataset_id}")["guidelines"] or "",
            fields={one["name"]: one["title"] for one in fields},
            questions={one["name"]: (one["title"], one["description"] or "") for one in questions},
            scales={
                one["name"]: tuple(option["value"] for option in one["settings"]["options"])
                for one in questions
                if one["settings"]["type"] == "rating"
            },
        )

    def corrects(self, shown: Words) -> str:
        """What is said otherwise than a dataset shows it, in words; empty if nothing."""
        if self.scales != shown.scales:
            return f"the questions and their points {from_to(shown.points(), self.points())}"
        found = []
        for name, own in self.questions.items():
            for old, new in zip(shown.questions.get(name, ("", "")), own, strict=True):
                found += [f"the question {name!r} {from_to(old, new)}"] if old != new else []
        if self.fields != shown.fields:
            found.append(f"the texts' titles {from_to(list(shown.fields.values()), list(self.fields.values()))}")
        if self.guidelines.strip() != shown.guidelines.strip():
            found.append(f"the guidelines {from_to(shown.guidelines.strip(), self.guidelines.strip())}")
        return "; ".join(found)

    def too_much(self) -> str:
        """What of it Argilla does not take, in words; empty if it takes all."""
        for name, points in self.scales.items():
            if not _POINTS[0] <= points[0] <= points[-1] <= _POINTS[1]:
                has = f"question {name!r} has points from {points[0]} to {points[-1]}"
                return f"{has}, it takes {_POINTS[0]} to {_POINTS[1]}"
        titles = [*self.fields.values(), *(title for title, _ in self.questions.values())]
        if longest := next((title for title in titles if len(title) > _TITLE), ""):
            return f"the title {longest[:40]!r}... has {len(longest)} characters, it takes {_TITLE}"
        if len(self.guidelines) > _GUIDELINES:
            return f"the guidelines have {len(self.guidelines)} characters, it takes {_GUIDELINES}"
        return ""

    def points(self) -> str:
        """The questions and their points, in words."""
        return "; ".join(f"{name} {', '.join(map(str, points))}" for name, points in self.scales.items())


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

"""What raters can answer in a dataset of Argilla's: the form of each question, as it is to be and as it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from annotation.questions import Kind, Question, Value
from annotation.rubric import MOST_LABELS, Rubric

if TYPE_CHECKING:
    import argilla as rg

# What Argilla takes (`argilla_server.api.schemas.v1.questions`).
_POINTS, _MOST_POINTS = (0, 10), 11
_MOST_RANKED, _LONGEST_LABEL = 50, 500  # labels of a ranking, a label's characters
# Argilla shows so many labels before a rater asks for the rest; all of them are to be seen.
_LEAST_VISIBLE = 3
_TYPES: dict[str, Kind] = {
    "rating": "rating",
    "label_selection": "label",
    "multi_label_selection": "multi_label",
    "ranking": "ranking",
    "text": "text",
}


@dataclass(frozen=True)
class Form:
    """How one question is answered; Argilla lets nothing of it be changed in a published dataset."""

    kind: Kind
    options: tuple[tuple[Value, str], ...]  #: points (whose words stand in the description), or labels with their words
    required: bool

    @classmethod
    def of(cls, rubric: Rubric, pool: str, question: Question, language: str) -> Form:
        """What the raters of a pool can answer to a question."""
        one, (_, meanings) = question.asked(rubric.scale), rubric.meaning(pool, question, language)
        options: tuple[tuple[Value, str], ...] = tuple(meanings.items())
        if one.kind == "rating":
            options = tuple((point, "") for point in one.scale)
        return cls(one.kind, options, one.required)

    @classmethod
    def shown(cls, question: Mapping[str, Any]) -> Form:
        """That of a question as Argilla's API describes it."""
        settings = question["settings"]
        options = tuple((one["value"], one.get("text", "")) for one in settings.get("options", ()))
        return cls(_TYPES[settings["type"]], options, bool(question["required"]))

    def too_much(self) -> str:
        """What of it Argilla does not take, in words; empty if it takes all."""
        values = [value for value, _ in self.options]
        if self.kind == "rating":
            if not _POINTS[0] <= int(values[0] or 0) <= int(values[-1] or 0) <= _POINTS[1]:
                return f"has points from {values[0]} to {values[-1]}, it takes {_POINTS[0]} to {_POINTS[1]}"
            return "" if len(values) <= _MOST_POINTS else f"has {len(values)} points, it takes {_MOST_POINTS}"
        most = _MOST_RANKED if self.kind == "ranking" else MOST_LABELS
        if len(values) > most:
            return f"has {len(values)} labels, it takes {most}"
        if longest := next((words for _, words in self.options if len(words) > _LONGEST_LABEL), ""):
            return f"has a label {longest[:40]!r}... of {len(longest)} characters, it takes {_LONGEST_LABEL}"
        return ""

    def __str__(self) -> str:
        """In words, for a line that compares two."""
        said = ", ".join(f"{value} ({words})" if words else str(value) for value, words in self.options)
        kind = "" if self.kind == "rating" else f"{self.kind.replace('_', '-')} "
        return (kind + said).strip() + ("" if self.required else ", not required" if self.kind != "text" else "")


def question_of(name: str, title: str, description: str, form: Form, client: Any) -> rg.RatingQuestion:
    """The question in Argilla's terms."""
    import argilla as rg  # noqa: PLC0415 (takes a second)

    common = {"name": name, "title": title, "description": description or None, "required": form.required}
    common["client"] = client
    labels = {str(value): words for value, words in form.options}
    visible = len(labels) if len(labels) >= _LEAST_VISIBLE else None
    if form.kind == "rating":
        return rg.RatingQuestion(values=[value for value, _ in form.options], **common)
    if form.kind == "label":
        return rg.LabelQuestion(labels=labels, visible_labels=visible, **common)
    if form.kind == "multi_label":
        return rg.MultiLabelQuestion(labels=labels, visible_labels=visible, **common)
    if form.kind == "ranking":
        return rg.RankingQuestion(values=labels, **common)
    return rg.TextQuestion(use_markdown=False, **common)

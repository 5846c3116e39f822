"""A dataset in Argilla: its words, the pairs sent to it with only what raters may know of each, and the responses.

For the words: the wanted ones, the present ones, and their correction. Responses are read as answers, with the orders
in which raters saw candidates and items.

Argilla lets a published dataset's guidelines, titles and descriptions be changed, but not its questions or their scale.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from annotation.argilla.client import Argilla
from annotation.campaign.rubric import MOST_LABELS, Rubric
from annotation.human.order import OrderDrawing
from annotation.human.records import UNKNOWN
from annotation.page.task import about
from annotation.questions.entries import worded
from annotation.questions.question import ArgillaOptions, Question, Value
from annotation.questions.wordings import ANSWERING, ANSWERING_WORDS, ASKED, words_in
from annotation.ratings.answers import Answer
from annotation.sampling.queues import Queue
from annotation.verdicts.preregistration import from_to
from plumbline.errors import ServiceError
from plumbline.fields import Kind as FieldKind
from plumbline.fields import fields_of
from plumbline.importing import argilla as rg
from plumbline.records import Pair
from plumbline.scales import MOST_LEVELS

COMMENT = "comment"  # the free comment, a question of each dataset
MARK = "drawn"  # in the metadata of datasets and records, as `plumbline_argilla.entries` reads it


def is_marked(argilla: Argilla, dataset_id: str) -> bool:
    """Return whether a dataset's orders are drawn for each rater. Raises ServiceError."""
    return MARK in (argilla.request("GET", f"/datasets/{dataset_id}").get("metadata") or {})


@dataclass(frozen=True)
class Orders:
    """The orders that each rater of a dataset saw, by user id; from 1."""

    unknown: bool = False  #: whether each rater had an order that this server does not know
    drawn: bool = False  #: whether each rater had an order
    entries: Mapping[str, list[int]] = field(default_factory=dict)  #: candidates' numbers in order, for all records
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: or records' places in their query
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: each record's place in the rater's queue

    @classmethod
    def of(cls, argilla: Argilla, dataset_id: str) -> Orders:
        """Read the orders of a dataset; none if all raters see one order. Raises ServiceError."""
        if not is_marked(argilla, dataset_id):
            return cls()
        orders = drawn_orders(argilla, dataset_id)
        if orders is None:
            return cls(unknown=True)
        return cls(False, True, orders["orders"], orders["places"], orders["turns"])

    def of_answer(self, user_id: str, pair_id: str) -> dict[str, Any]:
        """Return the order and turn in which a rater saw a pair, for the answer (`ratings.answers.Answer`)."""
        if self.unknown or (self.drawn and pair_id not in self.turns.get(user_id, {})):
            return {"order": UNKNOWN}
        index = self.places.get(user_id, {}).get(pair_id)
        order = self.entries.get(user_id, []) if index is None else [index]
        return {"order": " ".join(map(str, order)), "turn": self.turns.get(user_id, {}).get(pair_id, 0)}


def drawn_orders(argilla: Argilla, dataset_id: str) -> dict[str, Any] | None:
    """Return the orders that the server drew; None if it draws none."""
    try:
        orders: dict[str, Any] = argilla.request("GET", f"/datasets/{dataset_id}/orders")
    except ServiceError as error:
        if "status 404" in str(error):
            return None
        raise
    return orders


def values_in(response: Mapping[str, Any], questions: Sequence[Question]) -> tuple[dict[str, Value], str]:
    """Return a response's values by question in their stored form, and its comment; both as text if malformed."""
    values = response.get("values")
    parts = values if isinstance(values, dict) else {}
    contents = {name: part.get("value") if isinstance(part, dict) else str(part) for name, part in parts.items()}
    answers = {question.name: question.kept(contents.get(question.name)) for question in questions}
    return answers, str(contents.get(COMMENT) or "")


def time_of(response: Mapping[str, Any]) -> str:
    """Return the time of a response, as answers have it; unchecked (`ratings.answers.is_time`)."""
    return f"{str(response['updated_at']).removesuffix('Z')}+00:00"


def answer_of(
    response: Mapping[str, Any], pair_id: str, questions: Sequence[Question], orders: Orders, rater_id: str = ""
) -> Answer:
    """Return a response as an answer, unchecked."""
    values, comment = values_in(response, questions)
    return Answer(
        pair_id=pair_id,
        rater_id=rater_id,
        status=response["status"],
        values=values,
        comment=comment,
        submitted_at=time_of(response),
        **orders.of_answer(response["user_id"], pair_id),
    )


TITLE = 500  # the most characters of a title that Argilla takes


# Limits of Argilla (`argilla_server.api.schemas.v1.questions`).
_TOO_FINE = (
    f"has a scale without points, or with more than {MOST_LEVELS} points, which Argilla's page cannot show; use"
    " Plumbline's own server, give the scale fewer points, or collect ratings from a file"
)
_MOST_RANKED, _LONGEST_LABEL = 50, 500  # the most labels of a ranking, and characters of a label
# The least number of labels that Argilla can be told to show at first; we want all of them shown.
_LEAST_VISIBLE = 3
#: Argilla's types of question: how a line names them, their class in the SDK, and its argument for the options.
_TYPES: Mapping[str, tuple[str, str, str]] = {
    "rating": ("", "RatingQuestion", "values"),
    "label_selection": ("label", "LabelQuestion", "labels"),
    "multi_label_selection": ("multi-label", "MultiLabelQuestion", "labels"),
    "ranking": ("ranking", "RankingQuestion", "values"),
    "text": ("text", "TextQuestion", ""),
}


@dataclass(frozen=True)
class QuestionForm:
    """The form of a question for raters, which cannot change in a published dataset."""

    type: str  #: Argilla's
    options: ArgillaOptions  #: points (their words are in the description), or labels with their words
    required: bool
    slider: bool = field(default=False, compare=False)  #: whether its numbers need the rating page

    @classmethod
    def shown(cls, question: Mapping[str, Any]) -> QuestionForm:
        """Return the form of a question from Argilla's API."""
        settings = question["settings"]
        options = tuple((option["value"], option.get("text", "")) for option in settings.get("options", ()))
        return cls(settings["type"], options, bool(question["required"]))

    def too_much(self) -> str:
        """Return Argilla's limit that the form exceeds, in words; empty if none."""
        most = _MOST_RANKED if self.type == "ranking" else MOST_LABELS
        if len(self.options) > most:
            return f"has {len(self.options)} labels; Argilla takes at most {most}"
        if longest := next((words for _, words in self.options if len(words) > _LONGEST_LABEL), ""):
            characters = f"{len(longest)} characters; Argilla takes at most {_LONGEST_LABEL}"
            return f"has a label {longest[:40]!r}... of {characters}"
        return ""

    def __str__(self) -> str:
        """Return the form in words, for a line that compares two."""
        options = ", ".join(f"{value} ({words})" if words else str(value) for value, words in self.options)
        optional = ", not required" if self.options and not self.required else ""
        return f"{_TYPES[self.type][0]} {options}".strip() + optional


def question_of(name: str, title: str, description: str, form: QuestionForm, client: Any) -> rg.RatingQuestion:
    """Return the question as an object of Argilla's SDK."""
    _, sdk_class, argument = _TYPES[form.type]
    labels = {str(value): words for value, words in form.options}
    settings: dict[str, Any] = {argument: labels if any(labels.values()) else [value for value, _ in form.options]}
    if argument == "labels":
        settings["visible_labels"] = len(labels) if len(labels) >= _LEAST_VISIBLE else None
    common = {"name": name, "title": title, "description": description or None, "required": form.required}
    question: rg.RatingQuestion = getattr(rg, sdk_class)(**(settings if argument else {}), **common, client=client)
    return question


_GUIDELINES = 10_000  # the most characters of guidelines that Argilla takes


@dataclass(frozen=True)
class Words:
    """All words of a dataset: titles by field, title and description by question."""

    guidelines: str
    fields: Mapping[str, str]
    questions: Mapping[str, tuple[str, str]]
    forms: Mapping[str, QuestionForm]  #: the forms of all questions but the free comment
    extra_texts: Mapping[str, str] = field(default_factory=dict)  #: texts beside each item; unknown if read back
    kinds: Mapping[str, FieldKind] = field(default_factory=dict)  #: kinds of the fields that are not plain text
    task: Mapping[str, Any] | None = None  #: the rating page's task; None if Argilla's own page is used

    @classmethod
    def of(cls, rubric: Rubric, queue: Queue, note: str = "", task: Mapping[str, Any] | None = None) -> Words:
        """Return the words that a rubric addresses to the raters of a queue.

        `note` (Markdown) is put above and below the guidelines.
        """
        language = rubric.language_for(queue.language, queue.output_language)
        titles = rubric.field_titles(queue.pool, language, queue.language, queue.output_language)
        beside, keys = words_in(ANSWERING_WORDS, language), {question.keys for question in rubric.asked(queue.pool)}
        typed = keys.pop() if len(keys) == 1 else ()
        points = beside["range"].format(low=typed[0], high=typed[-1]) if typed else beside["number"]
        words, forms = dict[str, tuple[str, str]](), dict[str, QuestionForm]()
        for entry, question in rubric.asked_questions(queue.pool):
            hint, meanings = rubric.meaning(queue.pool, entry, language)
            title = question.anchored(worded(entry.title, language), meanings, TITLE)
            words[question.name] = title, question.description(hint, meanings)
            form, options = question.in_argilla(meanings)
            slider = question.has_points and not options
            forms[question.name] = QuestionForm(form, options, question.required, slider)
        return cls(
            guidelines="\n\n".join(filter(None, (note, rubric.guidelines_for(queue.pool, language), note))),
            fields={ASKED: about(rubric, language), **titles, ANSWERING: beside["title"]},
            questions={**words, COMMENT: (worded(rubric.comment, language), "")},
            forms=forms,
            extra_texts={
                ASKED: worded(rubric.pool(queue.pool).asked, language),
                ANSWERING: beside["keys"].format(points=points),
            },
            kinds={
                question_field.name: question_field.kind
                for question_field in rubric.fields.of(queue.pool)
                if question_field.kind == "chat"
            },
            task=task,
        )

    @classmethod
    def shown(cls, argilla: Argilla, dataset_id: str) -> Words:
        """Read a dataset's present words from Argilla. Raises ServiceError."""
        dataset = argilla.request("GET", f"/datasets/{dataset_id}")
        fields = argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]
        questions = argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
        return cls(
            guidelines=dataset["guidelines"] or "",
            fields={shown_field["name"]: shown_field["title"] for shown_field in fields},
            kinds={shown_field["name"]: "chat" for shown_field in fields if shown_field["settings"]["type"] == "chat"},
            questions={question["name"]: (question["title"], question["description"] or "") for question in questions},
            forms={
                question["name"]: QuestionForm.shown(question) for question in questions if question["name"] != COMMENT
            },
            task=(dataset.get("metadata") or {}).get(TASK),
        )

    def corrects(self, published: Words) -> str:
        """Return the differences from a dataset's present words, as text; empty if there are none."""
        if self.forms != published.forms:
            return f"the questions and their points: {from_to(published.answers(), self.answers())}"
        changes = []
        for name, texts in self.questions.items():
            for old, new in zip(published.questions.get(name, ("", "")), texts, strict=True):
                changes += [f"the wording of the question {name!r}: {from_to(old, new)}"] if old != new else []
        if self.fields != published.fields:
            changes.append(f"the texts' titles: {from_to(list(published.fields.values()), list(self.fields.values()))}")
        if self.guidelines.strip() != published.guidelines.strip():
            changes.append(f"the guidelines: {from_to(published.guidelines.strip(), self.guidelines.strip())}")
        if published.task is not None and self.task is None:
            changes.append("the page, from Plumbline's to Argilla's")
        if self._together != published._together:
            changes.append(f"the outputs on a page: {from_to(published._together, self._together)}")
        return "; ".join(changes)

    def shows_otherwise(self, published: Words) -> bool:
        """Return whether the rating page differs: its contact, worked examples or words."""
        return self.task is not None and json.loads(json.dumps(self.task)) != published.task

    def too_much(self) -> str:
        """Return Argilla's limit that these words exceed, as text; empty if none."""
        for name, form in self.forms.items():
            too_fine = _TOO_FINE if form.slider and self.task is None else ""
            if fault := too_fine or form.too_much():
                return f"question {name!r} {fault}"
        titles = [*self.fields.values(), *(title for title, _ in self.questions.values())]
        if longest := next((title for title in titles if len(title) > TITLE), ""):
            return f"the title {longest[:40]!r}... has {len(longest)} characters; Argilla takes at most {TITLE}"
        if len(self.guidelines) > _GUIDELINES:
            return f"the guidelines have {len(self.guidelines)} characters; Argilla takes at most {_GUIDELINES}"
        return ""

    def fits(self, published: Words) -> bool:
        """Return whether a dataset with other words can be changed to these.

        Argilla changes neither a question's form nor a pair.

        The pool's question is in each pair, and in the guidelines, where it can be read back.
        """
        same = self.fields.keys() == published.fields.keys() and self.kinds == published.kinds
        same = same and self._together == published._together
        return self.forms == published.forms and same and self.extra_texts[ASKED] in published.guidelines

    @property
    def _together(self) -> int:
        """How many outputs of an original raters see on one page."""
        return int((self.task or {}).get("together", 1))

    def answers(self) -> str:
        """Return the questions and their possible answers as text."""
        return "; ".join(f"{name} {form}" for name, form in self.forms.items())


def put_right(argilla: Argilla, dataset_id: str, words: Words, drawing: OrderDrawing | None = None) -> None:
    """Replace the words of a dataset whose question forms are right already. Raises ServiceError."""
    give_task(argilla, dataset_id, words.task, drawing)
    argilla.request("PATCH", f"/datasets/{dataset_id}", json={"guidelines": words.guidelines})
    for item in argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]:
        argilla.request("PATCH", f"/fields/{item['id']}", json={"title": words.fields[item["name"]]})
    for item in argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]:
        title, description = words.questions[item["name"]]
        change = {"title": title, "description": description or None}
        argilla.request("PATCH", f"/questions/{item['id']}", json=change)


def answered(argilla: Argilla, dataset_id: str) -> bool:
    """Return whether a dataset has any answers, drafts and discards included. Raises ServiceError."""
    return any(record.get("responses") for record in argilla.records(dataset_id))


TASK = "rate"  # in a dataset's metadata: the rating page's task (`annotation.page.task.task_of`)


def give_task(
    argilla: Argilla, dataset_id: str, task: Mapping[str, Any] | None, drawing: OrderDrawing | None = None
) -> None:
    """Let the rating page show a dataset by this task, or Argilla's own page show it. Raises ServiceError.

    `drawing` makes the server draw an order for each rater, if it can. A dataset that draws orders of candidates stays
    as it is: without its metadata, even for a moment, raters would see another order.

    Argilla does not change existing metadata, so they are removed first. After an interruption between the two steps,
    Argilla's page shows the dataset until `publish` runs again.
    """
    existing = argilla.request("GET", f"/datasets/{dataset_id}").get("metadata") or {}
    draws = drawing is not None and drawn_orders(argilla, dataset_id) is not None
    wanted = {TASK: task} if task is not None else {}
    if drawing is not None and draws:
        wanted[MARK] = drawing.of_dataset()
    if existing == json.loads(json.dumps(wanted)) or existing.get(MARK, {}).get("number"):
        return
    for metadata in ([None] if existing else []) + ([wanted] if wanted else []):
        change = {"metadata": metadata, **({"allow_extra_metadata": True} if draws else {})}  # of records, too
        argilla.request("PATCH", f"/datasets/{dataset_id}", json=change)


BATCH = 500  # pairs sent at once; Argilla takes up to 500
SHOWN = ("language", "output_language")


def send_pairs(
    argilla: Argilla,
    dataset_id: str,
    name: str,
    pairs: Sequence[Pair],
    extra_texts: Mapping[str, str],
    drawing: OrderDrawing | None = None,
) -> None:
    """Add new pairs to a dataset, without anything that raters must not know. Raises ServiceError.

    `drawing` has the orders drawn for each rater, for datasets that draw them. `extra_texts` are for fields beside the
    pair's own. They are sent in a random order, because raters can read when a record came.
    """
    pairs = random.SystemRandom().sample(pairs, len(pairs))
    drawn = drawing if drawing is not None and pairs and is_marked(argilla, dataset_id) else None
    with tqdm(total=len(pairs), unit="record", desc=f"publishing {name}", disable=not pairs) as bar:
        for start in range(0, len(pairs), BATCH):
            batch = [record_of(pair, extra_texts, drawn) for pair in pairs[start : start + BATCH]]
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": batch})
            bar.update(len(batch))


def record_of(pair: Pair, extra_texts: Mapping[str, str], drawing: OrderDrawing | None = None) -> dict[str, Any]:
    """Return a pair as a record of Argilla, with `extra_texts` beside its fields."""
    drawn = {MARK: drawn_pair} if drawing and (drawn_pair := drawing.of_pair(pair)) else {}
    return {
        "external_id": pair.pair_id,
        "fields": {
            **extra_texts,
            **{
                shown_field.name: shown_field.value if shown_field.kind == "chat" else shown_field.text
                for shown_field in fields_of(pair)
            },
        },
        "metadata": {**{name: getattr(pair, name) for name in SHOWN}, **drawn},
    }

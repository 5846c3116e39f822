"""Raters' responses in Argilla, read as answers, with the orders in which raters saw candidates and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annotation.argilla.client import Argilla
from annotation.human.records import UNKNOWN
from annotation.questions.question import Question, Value
from annotation.ratings.answers import Answer
from plumbline.errors import ServiceError

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

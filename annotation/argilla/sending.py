"""Pairs on their way to Argilla: what raters may know of each, in the form that its API takes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from annotation.argilla.client import Argilla
from annotation.human.order import OrderDrawing
from annotation.human.records import UNKNOWN
from plumbline.errors import ServiceError, StudyError
from plumbline.fields import fields_of
from plumbline.records import SUGGESTED, Pair
from plumbline.study import Study

_NO_AGENT = re.compile(r"[^a-zA-Z0-9-_:./ ]")  # what Argilla does not take in an agent's name
_LONGEST = 200  # characters of it


Suggested = Mapping[str, "Sequence[Suggestion]"]  # by pair


@dataclass(frozen=True)
class Suggestion:
    """One answer that is shown before a person gives theirs."""

    question: str
    value: int  #: a point of the question's scale
    agent: str  #: who says so
    score: float  #: how sure, from 0 to 1; NaN where nobody knows

    def as_json(self, questions: dict[str, str]) -> dict[str, Any]:
        """As Argilla takes it; `questions` are the dataset's ids of questions, by name."""
        agent = _NO_AGENT.sub("-", self.agent)[:_LONGEST]
        sure = {} if math.isnan(self.score) else {"score": min(max(self.score, 0.0), 1.0)}
        body = {"question_id": questions[self.question], "value": self.value, "agent": agent, "type": "model"}
        return body | sure


def question_ids(argilla: Argilla, dataset_id: str) -> dict[str, str]:
    """The ids of a dataset's questions, by name, as suggestions need them. Raises ServiceError."""
    return {
        question["name"]: question["id"]
        for question in argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
    }


def suggestions_for(study: Study, pairs: Sequence[Pair], suggestions: Suggested) -> Suggested:
    """What each pair of a campaign shows: suggestions on the experiment's half and on repeats of it, nowhere else.

    Raises StudyError where there is such a half and nobody says what it shows.
    """
    half = {pair.pair_id for pair in pairs if pair.control == SUGGESTED}
    if half and not suggestions:
        raise StudyError(
            f"{study.file}: raters.suggestions: half shows judges' scores, and there are none; run"
            f" `{study.command('annotation judge run')}`, then `{study.command('annotation publish')}`"
        )
    sources = {pair.pair_id: pair.repeats or pair.pair_id for pair in pairs}
    return {pair_id: suggestions[of] for pair_id, of in sources.items() if of in half and of in suggestions}


MARK = "drawn"  # in the metadata of datasets and records, as `plumbline_argilla.ordering` reads it


def mark_dataset(argilla: Argilla, dataset_id: str, drawing: OrderDrawing | None) -> None:
    """Have a new dataset's orders drawn for each rater, where the server can. Raises ServiceError."""
    if drawing is not None and _read(argilla, dataset_id) is not None:
        metadata = {"metadata": {MARK: drawing.of_dataset()}, "allow_extra_metadata": True}  # of records, too
        argilla.request("PATCH", f"/datasets/{dataset_id}", json=metadata)


def is_marked(argilla: Argilla, dataset_id: str) -> bool:
    """Whether a dataset's orders are drawn for each rater. Raises ServiceError."""
    return MARK in (argilla.request("GET", f"/datasets/{dataset_id}").get("metadata") or {})


@dataclass(frozen=True)
class Orders:
    """What each rater of a dataset was shown, by user id; from 1."""

    unknown: bool = False  #: they were drawn for each, and this server cannot say how
    drawn: bool = False  #: for each rater
    entries: Mapping[str, list[int]] = field(default_factory=dict)  #: candidates in order, the same for all records
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: or each record's among those of its query
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: each record's place in the rater's queue

    @classmethod
    def of(cls, argilla: Argilla, dataset_id: str) -> Orders:
        """Those of a dataset; none where all raters see one order. Raises ServiceError."""
        if not is_marked(argilla, dataset_id):
            return cls()
        orders = _read(argilla, dataset_id)
        if orders is None:
            return cls(unknown=True)
        return cls(False, True, orders["orders"], orders["places"], orders["turns"])

    def of_answer(self, user_id: str, pair_id: str) -> dict[str, Any]:
        """What an answer keeps of it (`ratings.answers.Answer`)."""
        if self.unknown or (self.drawn and pair_id not in self.turns.get(user_id, {})):
            return {"order": UNKNOWN}
        index = self.places.get(user_id, {}).get(pair_id)
        order = self.entries.get(user_id, []) if index is None else [index]
        return {"order": " ".join(map(str, order)), "turn": self.turns.get(user_id, {}).get(pair_id, 0)}


def _read(argilla: Argilla, dataset_id: str) -> dict[str, Any] | None:
    """What the server says of the orders; None where it draws none."""
    try:
        orders: dict[str, Any] = argilla.request("GET", f"/datasets/{dataset_id}/orders")
    except ServiceError as error:
        if "status 404" in str(error):
            return None
        raise
    return orders


BATCH = 500  # pairs sent at once; Argilla takes up to 500
SHOWN = ("language", "output_language")


def send_pairs(  # noqa: PLR0913
    argilla: Argilla,
    dataset_id: str,
    name: str,
    pairs: Sequence[Pair],
    beside: Mapping[str, str],
    suggestions: Suggested | None = None,
    drawing: OrderDrawing | None = None,
) -> None:
    """Put pairs into a dataset that does not have them, with what raters may know of them. Raises ServiceError.

    `drawing` is what is drawn for each rater, in datasets that say so.

    What stands `beside` a pair's own fields does, but in datasets of earlier versions, which have no place.
    `suggestions` are those of pairs that show some.
    """
    beside_fields, suggested = placed(argilla, dataset_id, beside) if pairs else {}, suggestions or {}
    ids = question_ids(argilla, dataset_id) if suggested else {}
    drawn = drawing if drawing is not None and pairs and is_marked(argilla, dataset_id) else None
    with tqdm(total=len(pairs), unit="record", desc=f"publishing {name}", disable=not pairs) as bar:
        for start in range(0, len(pairs), BATCH):
            batch = [record_of(pair, beside_fields, drawn) for pair in pairs[start : start + BATCH]]
            for record in batch:
                if shown_first := suggested.get(record["external_id"]):
                    record["suggestions"] = [suggestion.as_json(ids) for suggestion in shown_first]
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": batch})
            bar.update(len(batch))


def placed(argilla: Argilla, dataset_id: str, beside: Mapping[str, str]) -> dict[str, str]:
    """What of it a dataset has fields for. Raises ServiceError."""
    names = {shown_field["name"] for shown_field in argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]}
    return {name: text for name, text in beside.items() if name in names}


def record_of(pair: Pair, beside: Mapping[str, str], drawing: OrderDrawing | None = None) -> dict[str, Any]:
    """A pair as Argilla takes it, with what raters may know of it, and what stands `beside` its own fields."""
    drawn = {MARK: drawn_pair} if drawing and (drawn_pair := drawing.of_pair(pair)) else {}
    return {
        "external_id": pair.pair_id,
        "fields": {
            **beside,
            **{
                shown_field.name: shown_field.value if shown_field.kind == "chat" else shown_field.text
                for shown_field in fields_of(pair)
            },
        },
        "metadata": {**{name: getattr(pair, name) for name in SHOWN}, **drawn},
    }

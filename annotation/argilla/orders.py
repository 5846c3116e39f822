"""Orders that the server draws for each rater: asked for when a dataset is made, and read back with the answers.

The started server draws them (`plumbline_argilla.entries`); an Argilla elsewhere has no such thing, and all its raters
see one order. A dataset keeps to what was so when it was made, for its metadata say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotation.argilla.client import Argilla
from annotation.human.order import Drawing
from annotation.human.records import UNKNOWN
from plumbline.errors import ServiceError

MARK = "drawn"  # in the metadata of datasets and records, as `plumbline_argilla.ordering` reads it


def mark_dataset(argilla: Argilla, dataset_id: str, drawing: Drawing | None) -> None:
    """Have a new dataset's orders drawn for each rater, where the server can. Raises ServiceError."""
    if drawing is not None and _read(argilla, dataset_id) is not None:
        said = {"metadata": {MARK: drawing.of_dataset()}, "allow_extra_metadata": True}  # of records, too
        argilla.request("PATCH", f"/datasets/{dataset_id}", json=said)


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
        found = _read(argilla, dataset_id)
        if found is None:
            return cls(unknown=True)
        return cls(False, True, found["orders"], found["places"], found["turns"])

    def said(self, user_id: str, pair_id: str) -> dict[str, Any]:
        """What an answer keeps of it (`ratings.answers.Answer`)."""
        if self.unknown or (self.drawn and pair_id not in self.turns.get(user_id, {})):
            return {"order": UNKNOWN}
        place = self.places.get(user_id, {}).get(pair_id)
        order = self.entries.get(user_id, []) if place is None else [place]
        return {"order": " ".join(map(str, order)), "turn": self.turns.get(user_id, {}).get(pair_id, 0)}


def _read(argilla: Argilla, dataset_id: str) -> dict[str, Any] | None:
    """What the server says of the orders; None where it draws none."""
    try:
        found: dict[str, Any] = argilla.request("GET", f"/datasets/{dataset_id}/orders")
    except ServiceError as error:
        if "status 404" in str(error):
            return None
        raise
    return found

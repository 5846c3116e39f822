"""Pairs on their way to Argilla: what raters may know of each, in the form that its API takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from annotation.argilla.client import Argilla
from annotation.argilla.orders import MARK, is_marked
from annotation.argilla.suggestions import Suggested, question_ids
from annotation.human.order import Drawing
from plumbline.fields import fields_of
from plumbline.records import Pair

BATCH = 500  # pairs sent at once; Argilla takes up to 500
SHOWN = ("language", "output_language")


def send_pairs(  # noqa: PLR0913
    argilla: Argilla,
    dataset_id: str,
    name: str,
    pairs: Sequence[Pair],
    beside: Mapping[str, str],
    suggestions: Suggested | None = None,
    drawing: Drawing | None = None,
) -> None:
    """Put pairs into a dataset that does not have them, with what raters may know of them. Raises ServiceError.

    `drawing` is what is drawn for each rater, in datasets that say so.

    What stands `beside` a pair's own fields does, but in datasets of earlier versions, which have no place.
    `suggestions` are those of pairs that show some.
    """
    there, given = placed(argilla, dataset_id, beside) if pairs else {}, suggestions or {}
    ids = question_ids(argilla, dataset_id) if given else {}
    drawn = drawing if drawing is not None and pairs and is_marked(argilla, dataset_id) else None
    with tqdm(total=len(pairs), unit="record", desc=f"publishing {name}", disable=not pairs) as bar:
        for start in range(0, len(pairs), BATCH):
            batch = [record_of(pair, there, drawn) for pair in pairs[start : start + BATCH]]
            for record in batch:
                if found := given.get(record["external_id"]):
                    record["suggestions"] = [one.given(ids) for one in found]
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": batch})
            bar.update(len(batch))


def placed(argilla: Argilla, dataset_id: str, beside: Mapping[str, str]) -> dict[str, str]:
    """What of it a dataset has fields for. Raises ServiceError."""
    names = {one["name"] for one in argilla.request("GET", f"/datasets/{dataset_id}/fields")["items"]}
    return {name: text for name, text in beside.items() if name in names}


def record_of(pair: Pair, beside: Mapping[str, str], drawing: Drawing | None = None) -> dict[str, Any]:
    """A pair as Argilla takes it, with what raters may know of it, and what stands `beside` its own fields."""
    drawn = {MARK: said} if drawing and (said := drawing.of_pair(pair)) else {}
    return {
        "external_id": pair.pair_id,
        "fields": {**beside, **{one.name: one.value if one.kind == "chat" else one.text for one in fields_of(pair)}},
        "metadata": {**{name: getattr(pair, name) for name in SHOWN}, **drawn},
    }

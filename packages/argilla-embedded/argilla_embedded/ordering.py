"""The order of the records: by Argilla's sorts, nearness, or time of insertion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from argilla_server.enums import SortOrder
from argilla_server.search_engine import Order, ResponseFilterScope

from .predicates import CONVERTERS, NOTHING, NUMBER, kind_of, values_of
from .reading import Reading


def arranged(ids: Sequence[str], orders: Sequence[Order], reading: Reading) -> list[str]:
    """The records by several keys; where a record has no value it comes last, in either direction.

    Ties stay in the order in which `ids` has them, so that the pages cover everything exactly once.
    """
    found = list(ids)
    for order in reversed(orders):  # stable: the first key is sorted by last
        descending = order.order == SortOrder.desc
        keys = sort_keys(found, order.scope, reading, descending)
        with_key = sorted((id_ for id_ in found if id_ in keys), key=keys.__getitem__, reverse=descending)
        found = with_key + [id_ for id_ in found if id_ not in keys]
    return found


def sort_keys(ids: Sequence[str], scope: Any, reading: Reading, descending: bool) -> dict[str, Any]:
    """Each record's key where it has one: the mean of the ratings; else the least value, or descending the greatest."""
    kind = kind_of(scope, reading.schema)
    if kind == NOTHING:
        return {}
    convert, values = CONVERTERS[kind], values_of(scope, reading)
    of_ratings = isinstance(scope, ResponseFilterScope) and kind == NUMBER
    keys = {}
    for id_ in ids:
        given = [one for one in map(convert, values(id_)) if one is not None]
        if given and of_ratings:
            keys[id_] = math.fsum(given) / len(given)
        elif given:
            keys[id_] = max(given) if descending else min(given)
    return keys


def by_insertion(moments: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """The ids in the order in which the records came."""
    return sorted(moments, key=lambda id_: (moments[id_][0], id_))


def similarities(vectors: Sequence[Sequence[float]], target: np.ndarray[Any, Any]) -> list[float]:
    """(1 + cosine) / 2 of each vector with `target`; a vector of zeros has the cosine 0 with everything."""
    if not vectors:
        return []
    # Brought to a largest number of 1 first, so that no square is too large or too small to be written.
    rows = np.nan_to_num(np.asarray(vectors, dtype=float))
    rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(float).tiny)
    target = target / max(np.abs(target).max(), np.finfo(float).tiny)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(target)
    cosines = np.divide(rows @ target, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return [float(score) for score in (1 + np.clip(cosines, -1, 1)) / 2]

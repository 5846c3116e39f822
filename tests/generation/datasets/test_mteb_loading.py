"""Tables as mteb takes them are those of `datasets`, but for how their fingerprints are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from generation.datasets.mteb_loading import in_memory


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["a", "é"], "label": [1, 0]},
        {"sentences": [["a", "b"], ["c"]], "labels": [[0, 1], [2]]},
        {"positive": [np.array(["a"], dtype=object)], "score": [0.5]},
        {"id": [], "text": []},
        {"text": [None, "a"], "flag": [True, False], "none": [None, None]},
        {"empty": [[]], "mixed": [2.5], "of_numpy": [np.float64(1)]},
    ],
)
def test_the_same_rows_and_types_as_from_dict(columns: dict[str, list[Any]]) -> None:
    expected, made = Dataset.from_dict(columns), in_memory(columns)
    assert made.features == expected.features
    assert made.to_dict() == expected.to_dict()


def test_the_fingerprint_is_of_the_contents() -> None:
    columns = {"text": ["a", "b"]}
    fingerprint = in_memory(columns)._fingerprint
    assert in_memory({"text": ["a", "b"]})._fingerprint == fingerprint
    others = ({"text": ["b", "a"]}, {"text": ["ab", ""]}, {"texts": ["a", "b"]}, {"text": ["a", "b", None]})
    assert len({fingerprint, *(in_memory(other)._fingerprint for other in others)}) == 5

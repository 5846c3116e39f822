"""Scales and fields: as files say them, as raters read them, and the points and classes of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from plumbline.fields import fields_of, messages
from plumbline.records import Pair
from plumbline.scales import Continuous, Point, Scale, classes_of, marks, nearest_points, on_scale


class Asked(BaseModel):
    """A model with a scale and points."""

    scale: Scale = ()
    points: dict[Point, str] = {}


@pytest.mark.parametrize(
    ("written", "scale", "as_json"),
    [
        ([1, 2.0, "3"], (1, 2, 3), [1, 2, 3]),
        ([-2, -1, 0, 1, 2], (-2, -1, 0, 1, 2), [-2, -1, 0, 1, 2]),
        ({"from": 1, "to": 3, "step": 0.5}, (1, 1.5, 2, 2.5, 3), [1, 1.5, 2, 2.5, 3]),
        ({"from": 0, "to": 0.3, "step": 0.1}, (0, 0.1, 0.2, 0.3), [0, 0.1, 0.2, 0.3]),
        ({"from": 0, "to": 100}, Continuous((0, 100)), {"from": 0, "to": 100}),
    ],
)
def test_a_scale_is_the_same_from_a_file_and_from_its_json(written: Any, scale: Any, as_json: Any) -> None:
    asked = Asked.model_validate({"scale": written})
    dumped = asked.model_dump(mode="json")["scale"]
    assert asked.scale == scale and list(dumped) == list(as_json) and dumped == as_json
    assert all(isinstance(point, int) == float(point).is_integer() for point in asked.scale)
    assert Asked.model_validate({"scale": dumped}).scale == scale == Asked.model_validate(asked.model_dump()).scale


def test_points_are_keys_of_one_form() -> None:
    points = Asked.model_validate({"points": {"1": "a", 1.5: "b", "2.0": "c"}}).points
    assert points == {1: "a", 1.5: "b", 2: "c"}
    assert list(Asked(points=points).model_dump(mode="json")["points"]) == ["1", "1.5", "2"]


def test_a_continuous_scale_is_not_one_of_two_points() -> None:
    scale = Continuous((0, 1))
    assert scale != (0, 1) and scale == Continuous((0, 1)) and len({scale, (0, 1)}) == 2
    assert 0.5 in scale and 1.01 not in scale and "0.5" not in scale and True not in scale


def test_numbers_find_their_points_and_classes() -> None:
    values = np.array([-3.0, 0.24, 0.25, 9.0, np.nan])
    assert nearest_points(values, (-1, 0, 0.5)).tolist()[:4] == [-1, 0, 0.5, 0.5]
    assert nearest_points(values, Continuous((-1, 1))).tolist()[:4] == [-1, 0.24, 0.25, 1]
    assert on_scale(values, (-1, 0.25)).tolist() == [False, False, True, False, False]
    assert on_scale(values, Continuous((-1, 1))).tolist() == [False, True, True, False, False]
    assert classes_of(np.array([-2.0, 2.0]), (-2, -1, 0, 1, 2))[1].tolist() == [0, 4]
    names, places = classes_of(np.arange(101.0), tuple(range(101)))
    assert [names[places[number]] for number in (79, 80)] == ["60 to under 80", names[-1]]
    assert np.bincount(places).tolist() == [20, 20, 20, 20, 21]
    assert marks((1, 2, 3)) == [1, 2, 3] and marks(Continuous((0, 5))) == [0, 2.5, 5]


PAIR = Pair(
    pair_id="p", key="k", transformation="paraphrasing", axis="lexical_stylistic", pool="paraphrasing", dataset="d",
    task_type="sts", language="en", output_language="ar", seed=1, original="A text.", transformed="Another.", model="m",
    generator_hash="g", prompt_hash="h",
)  # fmt: skip
CHAT = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]


def test_a_pair_of_a_transformation_has_two_texts_in_their_languages() -> None:
    found = [(one.name, one.kind, one.text, one.language) for one in fields_of(PAIR)]
    assert found == [("original", "text", "A text.", "en"), ("transformed", "text", "Another.", "ar")]


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (CHAT, ""),
        ("user: Why?", "is not a list of messages"),
        ([], "is not a list of messages"),
        ([{"role": "user"}], "message 1 is not an object with a role and a content"),
        ([CHAT[0], {"role": "user", "content": " "}], "message 2 has an empty role or content"),
        ([{"role": "user", "content": 3}], "message 1 has an empty role or content"),
    ],
)
def test_a_chat_is_a_list_of_roles_and_contents(value: object, wrong: str) -> None:
    assert messages(value) == wrong

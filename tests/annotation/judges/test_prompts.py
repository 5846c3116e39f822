"""Answers as scores: what can be read, and what is no score rather than one in the middle."""

from __future__ import annotations

import math
import re

import pytest

from annotation.judges.prompts import Scale, read_expected, read_text
from plumbline.models.chat import Completion

FIVE = Scale(1, 5, points=(1, 2, 3, 4, 5))
TENTHS = Scale(0, 5)


FOUR = """4| 4. |**4**|__4__|`4`|"4"|4.0|4,0|4,00|four|Four.|VIER|quatre|cuatro|4/5|4 / 5|4 out of 5|4 of 5.|4 von 5
4 sur 5|4 de 5|4 (of 5)|４|４／５|٤|४|Rating: 4|**Rating:** 4/5|Final score = **4**|Bewertung: vier|Note : 4
4 = almost the same|4 - almost the same|4 – almost the same.|4: good|4 (good)|4 (four)|4 = the two texts mean the same
"4".|**4**.|{"score": 4}|{"score": 4.0, "reason": "5 words differ"}"""


@pytest.mark.parametrize(
    "text", [*re.split(r"[|\n]", FOUR), "<think>3? No.</think>\n\n4", '```json\n{"reason": "", "rating": 4}\n```']
)
def test_an_answer_in_any_form_with_one_reading_on_the_scale_is_read(text: str) -> None:
    assert read_text(Completion(text), FIVE).score == 4.0


def test_a_comma_is_a_decimal_one_only_where_it_cannot_be_of_thousands() -> None:
    assert read_text(Completion("4.3"), TENTHS).score == read_text(Completion("4,3"), TENTHS).score == 4.3
    assert all(math.isnan(read_text(Completion(text), Scale(0, 2000)).score) for text in ("1,000", "1.000"))
    assert read_text(Completion("8/10"), Scale(0, 10)).score == 8


NONE = """8/10|4/50|3 or 4|3-4|3 to 4|about 4|not 4|4 = not 3|4th|4½|null|1,5,3|Rating: 4 of 10|Rating: 3, fluency: 4
four or five|three - four|4 (or five)|Three: 4|4*5|4_5|{"score": 4, "score": 2}|{"score": null}|{"a": 3, "b": 4}|{4}"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, f"not just a number: {text!r}") for text in re.split(r"[|\n]", NONE)),
        ("I'm sorry, but I can't rate this.", "not just a number: \"I'm sorry, but I can't rate this.\""),
        ("7", "outside the scale 1 to 5: 7"),
        ("0", "outside the scale 1 to 5: 0"),
        ("-3", "outside the scale 1 to 5: -3"),
        ("9" * 400, f"outside the scale 1 to 5: {'9' * 400}"),
        ("3.5", "between two points: 3.5"),
        ("", "an empty answer"),
        ("<think>It is", "the model spent all tokens on thinking; raise sampling.max_tokens, or turn thinking off"),
    ],
)
def test_what_is_no_number_alone_on_the_scale_is_no_score(text: str, reason: str) -> None:
    read = read_text(Completion(text), FIVE)
    assert math.isnan(read.score)
    assert read.reason == reason


def test_an_answer_that_was_cut_off_is_no_score_though_it_begins_with_a_number() -> None:
    assert math.isnan(read_text(Completion("4", cut_off=True), FIVE).score)


def test_the_expected_score_with_its_label_mass() -> None:
    read = read_expected(Completion("4", labels={"3": 0.1, "4": 0.5, "5": 0.2}), FIVE)
    assert read.label_mass == pytest.approx(0.8)
    assert read.score == pytest.approx((3 * 0.1 + 4 * 0.5 + 5 * 0.2) / 0.8)
    assert read_expected(Completion("5", labels={"5": 1.0}), FIVE).score == 5.0


def test_too_little_probability_on_the_points_is_no_score_and_says_how_much() -> None:
    read = read_expected(Completion("<think>", labels={"4": 0.02}), FIVE)
    assert math.isnan(read.score)
    assert read.label_mass == 0.02
    hint = "the model thinks first: write score: text, and raise sampling.max_tokens"
    assert read.reason == f"the points have probability 0.020, below 0.5; the answer begins with '<think>'; {hint}"
    assert "thinks" not in read_expected(Completion("The", labels={"4": 0.0}), FIVE).reason
    assert math.isnan(read_expected(Completion("x", labels={}), FIVE).score)
    assert math.isnan(read_expected(Completion("4", labels=None), FIVE).score)
    for strange in ({"4": 0.9, "5": 0.9}, {"4": math.inf}, {"4": math.nan}, {"3": 1.0, "4": -0.2}):
        none = read_expected(Completion("4", labels=strange), FIVE)
        assert math.isnan(none.score) and none.reason.startswith("the answer's probabilities of the points are invalid")

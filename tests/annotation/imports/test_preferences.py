"""A choice between two outputs is a label, whatever its answers are called: shares and a rule, never a mean."""

from __future__ import annotations

import itertools
import re

import pytest

from annotation.imports.preferences import is_preference, shows_two
from tests.annotation.imports.importing import RATERS, Workplace, original, output, write_csv

ITEMS = range(9)


def write(place: Workplace, question: str, choices: tuple[object, ...], columns: tuple[str, str]) -> None:
    write_csv(place.folder / "d.csv", ["source", *columns, "rater", question], [
        [original(n), output(n, "neural"), output(n, "Rules (v2)"), rater, choices[(n + r) % len(choices)]]
        for n in ITEMS for r, rater in enumerate(RATERS)])  # fmt: skip


@pytest.mark.parametrize(
    ("question", "choices", "labels"),
    [
        ("choice", ("A", "B", "tie"), "a, b, tie"),
        ("verdict", ("B", "same", "A"), "a, b, same"),
        ("winner", ("model_a", "model_b", "tie (bothbad)"), "model_a, model_b, tie-bothbad"),
        ("picked", ("Output 2 is better", "Output 1 is better", "No preference"),
         "output-1-is-better, output-2-is-better, no-preference"),
        ("preference", (0, 1, 2), "label-0, label-1, label-2"),
        ("preferred", (1, 2), "label-1, label-2"),
        ("Which is better", (-1, 0, 1), "label-1-2, label-0, label-1"),
        ("side", ("rechts", "links", "unentschieden"), ""),
    ],
)  # fmt: skip
def test_a_choice_between_two_is_a_label(
    place: Workplace, question: str, choices: tuple[object, ...], labels: str
) -> None:
    write(place, question, choices, ("output_a", "output_b"))
    columns = [f"answer={question}", "output=output_a", "beside=output_b"]
    done = place.take("d.csv", *(word for role in columns for word in ("--column", role)), "--language", "en")
    assert (f"label, {labels} (a choice between two outputs: it has shares and no mean)" in done.out) == bool(labels)
    ratings = place.ratings()
    assert ratings["value"].isna().all() and ratings["answer"].nunique() == len(choices)
    if labels:
        assert [rule.label for rule in place.study.acceptance.rules] == [labels.partition(",")[0]]


@pytest.mark.parametrize("choices", [(0, 1, 2), (1, 2), (1, 2, 3)])
def test_numbers_beside_two_outputs_are_asked_about(place: Workplace, choices: tuple[int, ...]) -> None:
    write(place, "task_1_answer", choices, ("Input.summary1", "Input.summary2"))
    words = ("d.csv", "--column", "answer=task_1_answer", "--column", "output=Input.summary1", "--language", "en")
    assert "may be choices between the two outputs of a row or points of a scale" in place.refused(*words)
    assert "label, label-" in place.take(*words, "--scale", "task_1_answer=labels").out
    assert "rating, 0 to 3" in place.take(*words, "--scale", "task_1_answer=0..3", "--replace").out


def test_a_rating_beside_a_choice_makes_the_rule(place: Workplace) -> None:
    write_csv(place.folder / "d.csv", ["text", "rater", "clarity", "pref"], [
        [output(n, "x"), rater, 1 + (n + r) % 5, "AB"[(n * r) % 2]]
        for n in ITEMS for r, rater in enumerate(RATERS)])  # fmt: skip
    place.take("d.csv", "--column", "answer=clarity", "--column", "answer=pref", "--language", "en")
    assert [rule.question for rule in place.study.acceptance.rules] in ([], ["clarity"])


def test_what_is_no_choice_between_two() -> None:
    assert not shows_two(["sentence1", "sentence2", "rating_a", "rating_b"]) and shows_two(["sysA", "x", "sysB"])
    assert not is_preference("clarity", {"1", "2", "3"}, two=False)
    assert not is_preference("clarity_b", {"1", "2", "3"}, two=True)
    assert not is_preference("grade", {"A", "B", "C"}, two=True)
    assert not is_preference("preference", {"1", "3", "5"}, two=True)
    assert not is_preference("same", {"yes", "no"}, two=True)


@pytest.mark.parametrize(("question", "number", "best"), [("best", 3, "x"), ("worst", 3, "y"), ("worse", 2, "y")])
def test_the_worst_of_several_is_not_preferred(place: Workplace, question: str, number: int, best: str) -> None:
    """System x is nearly always chosen, wherever it stands, and now and then z, or y of two."""
    names, rows = ["x", "y", "z"][:number], []
    for n in range(24):
        chosen, place_of_x = names[-1] if n % 6 == 0 else "x", n % number
        systems = [*names[place_of_x:], *names[:place_of_x]]
        rows += [[f"Text {n} is {n * n}.", *systems, rater, chosen] for rater in ("ada", "bob")]
    systems_of_row = [f"system_{side}" for side in "abc"[:number]]
    write_csv(place.folder / "d.csv", ["text", *systems_of_row, "rater", question], rows)
    done = place.take("d.csv", "--column", f"answer={question}", "--language", "en")
    assert f"systems: {', '.join(f'{side} is system_{side}' for side in 'abc'[:number])}" in done.out
    preferred = re.findall(r"(\w) is preferred most", place.run("accept", "--study", "studies/mine.yaml").out)
    assert preferred == [best]


def test_best_and_worst_of_a_file_are_one_order_that_is_said_before_the_verdict(place: Workplace) -> None:
    """Nobody names the system w, so no answer has its label d; x is the best of 18 texts and the worst of 6."""
    rows = []
    for n in range(24):
        best, worst = ("x", "z") if n % 4 else ("y", "x")
        rows.append(
            [f"Text {n} is {n * n}.", "x", "y", "z", "w", "ada", "ABC"["xyz".index(best)], "ABC"["xyz".index(worst)]]
        )
    columns = ["text", *(f"system_{side}" for side in "abcd"), "rater", "best", "worst"]
    write_csv(place.folder / "d.csv", columns, rows)
    done = place.take("d.csv", "--column", "answer=best", "--column", "answer=worst", "--language", "en")
    assert "a is system_a, b is system_b, c is system_c, d is system_d" in done.out
    accepted = place.run("accept", "--study", "studies/mine.yaml").out
    assert accepted.startswith("x is preferred most (best and worst: 54 wins, 0 ties, 18 losses")
    wins = re.search(r"best and worst +w +(\d+ / \d+ / \d+)", accepted)
    assert wins and wins[1] == "24 / 0 / 24"  # 18 over z and 6 over x; 18 under x and 6 under y


def test_fewer_points_are_better_also_for_a_question_that_no_rule_is_about(place: Workplace) -> None:
    rows = []
    for n, (system, errors) in itertools.product(range(12), (("good", 0), ("bad", 4))):
        few = [errors + n % 2] if n < 4 else [""]  # too few for a rule
        rows.append([f"Original {n}.", f"Output {n} {system}.", system, "ada", 3 + n % 3, *few])
    write_csv(place.folder / "d.csv", ["original", "output", "system", "rater", "clarity", "errors"], rows)
    scales = ("--scale", "clarity=1..5", "--scale", "errors=9..0", "--language", "en")
    place.take("d.csv", "--column", "answer=clarity", "--column", "answer=errors", *scales)
    assert [rule.question for rule in place.study.acceptance.rules] == ["clarity"]
    assert "good and bad are not told apart in errors" in place.run("accept", "--study", "studies/mine.yaml").out

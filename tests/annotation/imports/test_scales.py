"""Answers in words and in numbers beside words: each is its own point of the scale that raters had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd
import pytest

from annotation.imports.answers import ImportedQuestion, read_question, read_scale
from annotation.imports.word_scales import plain, scale_of, usual_scales
from plumbline.errors import DataError
from tests.annotation.imports.importing import Workplace, original, write_csv


def read(answers: Sequence[str], scale: str = "", others: Sequence[str] = ()) -> ImportedQuestion:
    cells = pd.Series(pd.Categorical(answers))
    return read_question("Is it clear?", "clear", cells, read_scale(scale) if scale else None, others)


def points(*answers: str, scale: str = "") -> tuple[list[object], float, float]:
    """The point of each answer, and the scale's ends."""
    question = read(answers, scale)
    assert question.kind == "rating", question.labels
    return [question.values.get(answer) for answer in answers], question.points[0], question.points[-1]


def refused(*answers: str) -> str:
    with pytest.raises(DataError) as error:
        read(answers)
    return str(error.value)


def test_no_usual_scale_merges_two_answers() -> None:
    assert len(usual_scales()) > 150
    for scale in usual_scales():
        words = Counter(plain(word) for point in scale for word in point)
        assert max(words.values()) == 1 and "" not in words, scale
        for turn in range(max(map(len, scale))):
            chosen = [point[turn % len(point)] for point in scale]
            found = scale_of("q", dict.fromkeys(chosen, 1))
            assert found and [found.ranks[word] for word in chosen] == list(range(len(scale))), chosen
            assert len(found.scale) == len(scale)


@pytest.mark.parametrize(
    "scale",
    [
        "Poor<Fair<Good<Very good<Excellent", "Bad<Poor<Fair<Good<Excellent", "Poor<Fair<Good<Excellent",
        "Never<Rarely<Sometimes<Often<Very often<Always", "Disagree<Undecided<Agree",
        "Strongly disagree<Disagree<Slightly disagree<Slightly agree<Agree<Strongly agree",
        "Strongly Disagree<Disagree<Somewhat Disagree<Neither Agree nor Disagree<Somewhat Agree<Agree<Strongly Agree",
        "strongly_disagree<disagree<neutral<agree<strongly_agree", "Not at all<Slightly<Somewhat<Moderately<Extremely",
        "Not at all fluent<Slightly fluent<Moderately fluent<Very fluent<Extremely fluent",
        "Trifft gar nicht zu<Trifft eher nicht zu<Teils/teils<Trifft eher zu<Trifft voll zu",
        "Sehr unzufrieden<Eher unzufrieden<Weder noch<Eher zufrieden<Sehr zufrieden",
        "Pas du tout d’accord<Plutôt pas d’accord<Ni d'accord, ni pas d'accord<Plutôt d’accord<Tout à fait d’accord",
        "tres mauvais<mauvais<passable<bon<tres bon",
        "Muy insatisfecho/a<Insatisfecho/a<Neutral<Satisfecho/a<Muy satisfecho/a",
        "Nunca<Casi nunca<A veces<Casi siempre<Siempre",
    ],
)  # fmt: skip
def test_a_usual_scale_in_words(scale: str) -> None:
    words = scale.split("<")
    question = read(words[::-1] + words)
    assert [question.values[word] for word in words] == list(range(1, len(words) + 1))
    assert list(question.words.values()) == words and len(question.points) == len(words)


def test_answers_that_fit_several_scales_are_asked_for() -> None:
    asked = refused("Poor", "Good", "Excellent")
    assert "its answers fit" in asked and "--scale 'clear=Poor<Fair<Good<Excellent'" in asked
    assert "--scale 'clear=Bad<Poor<Fair<Good<Excellent'" in asked
    assert points("Poor", "Good", "Excellent", scale="Poor<Fair<Good<Excellent")[0] == [1, 3, 4]
    assert "its answers fit" in refused("Good", "Very good")
    assert "'Agree' and 'Agree!' would be one point" in refused("Disagree", "Neutral", "Agree", "Agree!")
    assert read(["Good", "Bad"]).kind == "label" and read(["Agree", "Disagree"]).kind == "label"


def test_the_scale_of_another_question_with_the_same_answers() -> None:
    all_five = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
    three = read(["Disagree", "Neutral", "Agree"], others=all_five)
    assert list(three.values.values()) == [4, 2, 3] and len(three.points) == 5


def test_words_that_are_no_points_are_listed() -> None:
    question = read(["Never", "Sometimes", "Always", "Don't know", "n/a"])
    assert question.faults == {"Don't know": "no answer", "n/a": "no answer"} and len(question.points) == 3
    question = read(["Never", "Sometimes", "Always"] * 10 + ["maybe later"])
    assert question.faults == {"maybe later": "'maybe later' is not a point of the scale"}


@pytest.mark.parametrize(
    "form",
    ["{n} – {w}", "{n} — {w}", "{n}-{w}", "{n} = {w}", "{n}: {w}", "{n}. {w}", "{n}) {w}", "({n}) {w}", "[{n}] {w}",
     "{n} {w}", "{n} ({w})", "{w} ({n})", "{w} [{n}]", "{w} – {n}", "{w} = {n}", "{w}: {n}"],
)  # fmt: skip
def test_numbers_beside_words(form: str) -> None:
    words = ["Murky", "Hazy", "Readable", "Crystal clear"]
    answers = [form.format(n=number, w=word) for number, word in enumerate(words, 1)]
    question = read(answers)
    assert question.kind == "rating" and [question.values[answer] for answer in answers] == [1, 2, 3, 4]
    assert list(question.words.values()) == words


@pytest.mark.parametrize(
    ("answers", "wanted", "ends"),
    [
        (["1 out of 5", "2 of 5", "3/5"], [1, 2, 3], (1, 5)), (["2 von 7", "6 sur 7"], [2, 6], (1, 7)),
        (["★", "★★★", "★★★★★"], [1, 3, 5], (1, 5)), (["★★☆☆☆", "★★★☆☆"], [2, 3], (1, 5)),
        (["⭐️⭐️", "⭐️⭐️⭐️"], [2, 3], (1, 3)), (["5 %", "80 %"], [5, 80], (0, 100)),
        (["2 stars", "3 stars", "4 stars"], [2, 3, 4], (1, 4)), (["Score: 2", "Score: 4"], [2, 4], (1, 4)),
        (["–1", "0", "1"], [-1, 0, 1], (-1, 1)), (["zwei", "drei", "fünf"], [2, 3, 5], (1, 5)),
        (["1 - bad", "2 - poor", "3 - fair"], [1, 2, 3], (1, 5)), (["-64", "0", "58"], [-64, 0, 58], (-100, 100)),
        (["0 = never", "1 = rarely", "2 = sometimes", "4 = always"], [0, 1, 2, 4], (0, 4)),
    ],
)  # fmt: skip
def test_forms_of_numbers(answers: list[str], wanted: list[float], ends: tuple[float, float]) -> None:
    assert points(*answers) == (wanted, *ends)


@pytest.mark.parametrize(
    ("code", "others", "scales"),
    [
        ("99", "12345", ("1..5", "1..100")),
        ("-1", "12345", ("1..5", "-5..5")),
        ("9", "1234567", ("1..7", "1..9")),
        ("-99", "01234", ("0..4", "-100..100")),
        ("999", ["3", "40", "77", "100"], ("0..100", "3..999")),
        ("99", "01", ("0..1", "0..100")),
        ("-1", "123456789", ("1..9", "-9..9")),
        ("-9", ["-1", "0", "1"], ("-1..1", "-9..9")),
        ("99", ["-2", "-1", "0", "1", "2"], ("-2..2", "-100..100")),
    ],
)
def test_a_code_of_missing_answers_is_asked_about(code: str, others: Sequence[str], scales: tuple[str, str]) -> None:
    asked = refused(*others, *others, code)
    assert all(f"--scale clear={scale}" in asked for scale in scales), asked
    question = read([*others, code], scales[0])
    assert code in question.faults and set(question.values) == set(others)
    assert not read([*others, code], scales[1]).faults


@pytest.mark.parametrize(
    ("rare", "others", "scales"),
    [
        (["44"], "12345", ("1..5", "1..100")),
        (["44", "55"], "12345", ("1..5", "1..100")),
        (["85"], ["0", "7", "13", "20"], ("0..20", "0..100")),
        (["5"], ["0.1", "0.4", "0.9"], ("0..1", "0..5")),
    ],
)
def test_a_rare_answer_far_from_all_others_is_asked_about(
    rare: list[str], others: Sequence[str], scales: tuple[str, str]
) -> None:
    """It is neither left out nor does it stretch the scale, whatever its share."""
    for times in (5, 300):
        asked = refused(*list(others) * times, *rare)
        assert all(f"--scale clear={scale}" in asked for scale in scales) and f" are {rare[0]}, apart" in asked


@pytest.mark.parametrize(
    ("rare", "others", "ends"), [("5", "12", (1, 5)), ("1", "45", (1, 5)), ("4", "01", (0, 4)), ("7", "123", (1, 7))]
)
def test_the_rare_end_of_a_scale_is_an_answer(rare: str, others: str, ends: tuple[float, float]) -> None:
    question = read([*others * 100, rare, rare])
    assert not question.faults and question.values[rare] == float(rare)
    assert (question.points[0], question.points[-1]) == ends


def test_numbers_with_commas_may_be_lists_of_labels() -> None:
    codes = [*"1234" * 5, "1,2", "1,3", "2,4"]
    assert "'1,2' may be a number or several labels; add --scale clear=labels" in refused(*codes)
    assert "may be a number" in refused(*codes, "1,2,4")
    question = read(codes, "labels")
    assert question.kind == "multi_label" and question.values["1,3"] == "label-1, label-3"
    assert read(codes, "1..5").values["1,3"] == 1.3
    assert read(["tone", "facts", "tone,facts"]).kind == "multi_label"
    for decimals in (
        ["1", "2", "3", "5", "1,5", "2,5", "3,5"],
        ["1", "2", "3", "1,25", "2,75"],
        ["3", "2", "3,2", "2,3"],
    ):
        assert read(decimals).kind == "rating"


@pytest.mark.parametrize(
    "answers", ["123456789", "0123456", ["-2", "-1", "0"], ["-1", "0", "1"], ["0", "50", "99"], ["-9", "-3", "4"]]
)
def test_no_point_of_a_scale_is_taken_for_such_a_code(answers: Sequence[str]) -> None:
    assert not read(list(answers)).faults


def test_different_answers_are_never_one_number() -> None:
    assert "are on different scales" in refused("3/5", "3/10", "4/5")
    assert "'1 (bad)' and '1 (great)' would be one point" in refused("1 (bad)", "1 (great)", "2 (fine)")
    assert points("1 (bad)", "1 (great)", "2 (fine)", scale="1..5") == ([1, 1, 2], 1, 5)
    assert "1 is 'sehr gut' and 4 is 'schlecht'; add --scale clear=4..1" in refused(
        "sehr gut (1)", "gut (2)", "schlecht (4)"
    )
    assert read(["0 - not applicable", "1 - bad", "2 - fine"]).faults == {"0 - not applicable": "no answer"}
    assert read(["GPT-4", "Claude-3", "Llama-2"]).kind == "label" and read(["Text (1)", "Text (2)"]).kind == "label"


def test_words_stay_beside_points_and_all_questions_are_asked_at_once(place: Workplace) -> None:
    marks = ["1 - unreadable", "2 - rough", "3 - smooth"]
    lines = [
        [original(n), "di", marks[n % 3], ("Good", "Excellent")[n % 2], ("often", "always")[n % 2]] for n in range(9)
    ]
    write_csv(place.folder / "d.csv", ["text", "rater", "flow", "look", "use"], lines)
    roles = [word for name in ("flow", "look", "use") for word in ("--column", f"answer={name}")]
    asked = place.refused("d.csv", *roles, "--language", "en").splitlines()
    assert [line.split("'")[1] for line in asked if "its answers fit" in line] == ["look", "use"]
    scales = ("--scale", "look=Bad<Good<Excellent", "--scale", "use=labels")
    place.take("d.csv", *roles, *scales, "--language", "en")
    rubric = (place.folder / "studies" / "mine" / "questions.yaml").read_text(encoding="utf-8")
    assert all(word in rubric for word in ("unreadable", "rough", "smooth", "Bad", "Excellent"))


def test_many_labels_are_labels_where_that_is_asked(place: Workplace) -> None:
    lines = [[original(n), "di", f"topic {n % 50}; topic {n // 3}"] for n in range(120)]
    write_csv(place.folder / "d.csv", ["text", "rater", "label"], lines)
    assert "or add --scale label=labels if its answers are labels" in place.refused("d.csv", "--language", "en")
    place.take("d.csv", "--scale", "label=labels", "--language", "en")
    assert "topic-19, topic-7" in set(place.ratings()["answer"])

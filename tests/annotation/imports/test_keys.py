"""JSON's objects under keys: objects with the same fields are rows, and what their key is, is found out or asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.annotation.imports.importing import RATERS, Workplace, original

WORDS = ("--column", "answer=clarity", "--scale", "clarity=1..5", "--language", "en")


def point(item: int, rater: int) -> int:
    return 1 + (item + 2 * rater) % 5


def row(item: int, rater: int = 0, **more: Any) -> dict[str, Any]:
    return {"text": original(item), "worker": RATERS[rater], "clarity": point(item, rater), **more}


def write(place: Workplace, content: Any) -> None:
    (place.folder / "d.json").write_text(json.dumps(content), encoding="utf-8")


def answers(place: Workplace) -> list[tuple[str, int]]:
    ratings = place.ratings()
    texts = [json.loads(fields)["text"] for fields in ratings["fields"]]
    return sorted(zip(texts, ratings["value"].astype(int), strict=True))


ALL = sorted((original(item), point(item, rater)) for item in range(8) for rater in range(2))
BY_RATER = [{f"annotator{r}": {"clarity": point(item, r), "sure": "yes"} for r in range(2)} for item in range(8)]


@pytest.mark.parametrize(
    ("content", "role"),
    [
        ({str(n): row(n // 2, n % 2) for n in range(16)}, "the number of the object in the file"),
        ({f"model{r}": {f"t{n}": row(n, r) for n in range(8)} for r in range(2)}, "system"),
        ({f"model {letter}": [row(n, r) for n in range(8)] for r, letter in enumerate("AB")}, "system"),
        ({f"d-{n}": {"text": original(n), "votes": BY_RATER[n]} for n in range(8)}, "rater"),
        ([{"n": n, "text": original(n), "votes": BY_RATER[n]} for n in range(8)], "rater"),
        ({"about": 1, "texts": {str(n): {"text": original(n), "votes": BY_RATER[n]} for n in range(8)}}, "rater"),
        ([{"text": original(n), "votes": {RATERS[r]: {"clarity": point(n, r)} for r in range(2)}} for n in range(8)],
         "rater"),
        ([{"text": original(n), "votes": {**BY_RATER[n], "annotator2": None}} for n in range(8)], "rater"),
        ([{"text": original(n), "score": 3, "votes": BY_RATER[n]} for n in range(8)], "another column is the answer"),
        ([{"text": original(n), "votes": {f"question_{r}": {"worker": RATERS[r], "clarity": point(n, r)}
                                          for r in range(2)}} for n in range(8)], "question"),
    ],
)  # fmt: skip
def test_objects_with_the_same_fields_are_rows(place: Workplace, content: Any, role: str) -> None:
    write(place, content)
    done = place.take("d.json", *(("--language", "en", *WORDS[:2]) if role == "question" else WORDS))
    assert role in done.out
    assert answers(place) == ALL


def test_a_key_that_shows_no_role_is_asked_for(place: Workplace) -> None:
    write(place, {name: [row(n, r) for n in range(8)] for r, name in enumerate(("alpha", "beta"))})
    error = place.refused("d.json", *WORDS)
    assert "'key' is the key of each object and may be a system, a rater, an item or a question" in error
    assert "--column system=key or" in error and "--column unused=key" in error
    place.take("d.json", *WORDS, "--column", "system=key")
    assert set(place.ratings()["transformation"]) == {"alpha", "beta"} and answers(place) == ALL


def test_raters_of_few_or_of_one_item_are_no_columns(place: Workplace) -> None:
    one_each = [{"text": original(n), "votes": {f"w{n}": {"clarity": point(n, 0)}}} for n in range(8)]
    write(place, one_each)
    assert "name it with" in place.refused("d.json", *WORDS)
    place.take("d.json", *WORDS, "--column", "rater=key")
    assert answers(place) == sorted((original(n), point(n, 0)) for n in range(8))
    assert place.ratings()["rater_id"].nunique() == 8


def test_answers_by_question_and_rater(place: Workplace) -> None:
    shifts = {"clear": 0, "kind": 1}
    votes = [{name: {f"rater_{r}": point(n, r + shift) for r in range(2)} for name, shift in shifts.items()}
             for n in range(8)]  # fmt: skip
    write(place, [{"text": original(n), "votes": votes[n]} for n in range(8)])
    assert "'key' is the key of each object" in place.refused("d.json")
    raters = [word for name in ("column 4", "column 5") for word in ("--column", f"by_rater={name}")]
    done = place.take("d.json", "--column", "question=key", *raters, "--language", "en")
    assert "question clear" in done.out and "question kind" in done.out
    ratings = place.ratings()
    assert len(ratings) == 32 and ratings["rater_id"].nunique() == 2
    of_clear = ratings[ratings["question"] == "clear"]
    assert sorted(of_clear["value"]) == sorted(point(n, r) for n in range(8) for r in range(2))


def test_a_records_own_fields_are_no_keys(place: Workplace) -> None:
    pair = {"source": {"text": "a house by the sea", "n": 1}, "target": {"text": "a home by the sea", "n": 2}}
    write(place, [{"rating": 1 + n % 5, "rater": RATERS[n % 3], **pair, "id": n} for n in range(8)])
    assert "'key'" not in place.refused("d.json")
    write(place, [{**row(n), "rating": point(n, 0), "sizes": {"a": {"x": 1}, "b": {"x": 2}}} for n in range(8)])
    place.take("d.json", "--language", "en", "--column", "answer=rating")
    assert len(answers(place)) == 8
    write(place, [{**row(n), "entry": f"e{n}", "key": n} for n in range(8)])
    assert "unused (its name shows no role): entry, key" in place.take("d.json", *WORDS, "--replace").out


def test_lists_of_all_raters_answers_are_a_questions_each(place: Workplace) -> None:
    questions = {"clear": 0, "kind": 1}
    votes = [{name: {"individual_human_scores": [point(n, r + shift) for r in range(3)], "mean": 2.5}
              for name, shift in questions.items()} for n in range(8)]  # fmt: skip
    write(place, [{"id": n, "text": original(n), "annotations": votes[n]} for n in range(8)])
    done = place.take("d.json", "--language", "en")
    assert "question clear" in done.out and "question kind" in done.out and len(place.ratings()) == 48


def test_ids_of_item_system_and_question_leave_the_rater_as_key(place: Workplace) -> None:
    ids = {f"d{n}__m{n % 2}__clear": point(n, 0) for n in range(8)}
    write(place, {"e0": ids, "e1": ids})
    assert "16 ratings of 8 texts by 2 raters" in place.take("d.json", "--scale", "clear=1..5").out
    write(place, {"e0": {f"d{n}": point(n, 0) for n in range(8)}, "e1": {f"d{n}": point(n, 1) for n in range(8)}})
    assert "'key' is the key of each object" in place.refused("d.json", "--replace")
    place.take("d.json", "--column", "item=key", "--column", "rater=id", "--replace")
    assert place.ratings()["rater_id"].nunique() == 8

"""Records that hold more than one answer: whose each value is, an annotator's, an entry's or a model's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from plumbline.reading import list_in
from tests.annotation.imports.importing import RATERS, Workplace, output

ITEMS = range(8)


def text(number: int) -> str:
    return output(number, "neural")


def point(number: int, rater: int) -> int:
    return 1 + (2 * number + rater) % 5


def write(place: Workplace, name: str, records: list[dict[str, Any]]) -> None:
    (place.folder / name).write_text("\n".join(map(json.dumps, records)), encoding="utf-8")


def answers(place: Workplace, question: str) -> list[Any]:
    ratings = place.ratings()
    of_question = ratings[ratings["question"] == question]
    return sorted(of_question["value"].dropna() if of_question["value"].notna().any() else of_question["answer"])


POINTS = sorted(point(n, r) for n in ITEMS for r in range(3))
Fields = Callable[[int, int], Mapping[str, Any]]


@pytest.mark.parametrize(
    ("fields", "question", "words"),
    [
        (lambda n, r: {"rating": point(n, r)}, "rating", ()),
        (lambda n, r: {"score": str(point(n, r)), "source": f"An original {n}."}, "score", ("--column", "output=text")),
        (lambda n, r: {"clarity": point(n, r)}, "clarity", ("--column", "answer=clarity")),
        (lambda n, r: {"rating": point(n, r), "meta": {"score": 0.1 * n, "annotator": "a model"}}, "rating", ()),
    ],
)
def test_prodigys_button_is_no_rating_beside_what_was_entered(
    place: Workplace, fields: Fields, question: str, words: tuple[str, ...]
) -> None:
    for r in range(3):
        write(place, f"{r}.jsonl", [
            {"text": text(n), **fields(n, r), "_input_hash": n, "_task_hash": 9 * n, "_view_id": "blocks",
             "_annotator_id": RATERS[r], "answer": ("accept", "reject")[(n, r) == (2, 1)]} for n in ITEMS])  # fmt: skip
    done = place.take("0.jsonl", "1.jsonl", "2.jsonl", *words, "--scale", f"{question}=1..5", "--language", "en")
    assert answers(place, question) == POINTS and set(place.ratings()["question"]) == {question}
    assert "rejected with Prodigy's button; their answers count: 1" in done.out


def test_every_field_of_a_block_of_prodigys_is_a_question(place: Workplace) -> None:
    record = {"options": [{"id": 0, "text": "kept"}, {"id": 1, "text": "lost"}], "_view_id": "blocks"}
    write(place, "p.jsonl", [
        {"text": text(n), **record, "accept": [n % 2], "rating": point(n, 0), "user_input": f"because of {n}",
         "spread": [1, 2], "_input_hash": n, "_session_id": RATERS[0], "answer": "accept"} for n in ITEMS])  # fmt: skip
    place.take("p.jsonl", "--language", "en")
    assert answers(place, "choice") == ["kept"] * 4 + ["lost"] * 4
    assert answers(place, "rating") == sorted(point(n, 0) for n in ITEMS)
    assert answers(place, "user_input")[0] == "because-of-0"
    assert place.listed == [(n + 1, "a list is not read here") for n in ITEMS]


def test_prodigys_button_is_asked_about_where_a_block_has_unknown_fields(place: Workplace) -> None:
    write(place, "p.jsonl", [{"text": text(n), "clarity": point(n, 0), "_input_hash": n, "_view_id": "blocks",
                              "answer": "accept"} for n in ITEMS])  # fmt: skip
    assert "name one with --column answer=NAME (of no role: 'clarity')" in place.refused("p.jsonl")
    assert "question answer" in place.take("p.jsonl", "--column", "answer=answer").out


def test_a_page_of_ones_own_may_have_other_options(place: Workplace) -> None:
    write(place, "p.jsonl", [{"options": {"a": {"reply": text(n)}, "b": {"reply": "no"}}, "score": str(point(n, 0)),
                              "_input_hash": n, "_view_id": "blocks", "answer": "accept"} for n in ITEMS])  # fmt: skip
    place.take("p.jsonl", "--column", "text=options.a.reply", "--scale", "score=1..5", "--language", "en")
    assert answers(place, "score") == sorted(point(n, 0) for n in ITEMS)


def test_a_session_that_nobody_named_is_no_person(place: Workplace) -> None:
    days = [f"set-2026-03-{1 + n // 3:02d}_10-00-00" for n in ITEMS]
    write(place, "p.jsonl", [{"text": text(n), "rating": point(n, 0), "_input_hash": n, "_session_id": days[n],
                              "answer": "accept"} for n in ITEMS])  # fmt: skip
    done = place.take("p.jsonl", "--language", "en")
    assert "by 1 rater" in done.out and f"add --column rater=session --column unused=rater: {len(days)}" in done.out
    each = ("--column", "rater=session", "--column", "unused=rater")
    assert "by 3 raters" in place.take("p.jsonl", *each, "--language", "en", "--replace").out


def test_a_models_score_is_no_answer_of_prodigys(place: Workplace) -> None:
    write(place, "p.jsonl", [{"text": text(n), "label": "KEPT", "score": 0.1 * n, "priority": 0.1 * n, "_input_hash": n,
                              "answer": ("accept", "reject")[n % 2]} for n in ITEMS])  # fmt: skip
    place.take("p.jsonl", "--language", "en", "--column", "unused=score")
    assert answers(place, "kept") == ["accept"] * 4 + ["reject"] * 4


@pytest.mark.parametrize(
    ("key", "rater", "first"),
    [("reviews", "worker_id", 0), ("annotations", "annotator", 3), ("ratings", "Participant ID", 0)],
)
def test_reviews_by_workers_are_the_ratings_whatever_lies_beside(
    place: Workplace, key: str, rater: str, first: int
) -> None:
    """Not doccano's, although each record has a text and labels, and the first ones no reviews."""
    write(place, "d.jsonl", [
        {"id": n, "text": text(n), "label": ["good", "bad"][: 1 + n % 2], "mean_clarity": 3.5, "labels": ["x"],
         key: [{rater: RATERS[r], "clarity": point(n, r)} for r in range(3 if n >= first else 0)]} for n in ITEMS]
    )  # fmt: skip
    done = place.take("d.jsonl", "--column", "answer=clarity", "--scale", "clarity=1..5", "--language", "en")
    assert "(nested)" in done.out and "unused (another column is the answer): label" in done.out
    assert answers(place, "clarity") == sorted(point(n, r) for n in ITEMS[first:] for r in range(3))
    assert place.ratings()["rater_id"].nunique() == 3


def test_raters_and_their_answers_in_lists_of_equal_length(place: Workplace) -> None:
    write(place, "d.jsonl", [
        {"id": n, "text": text(n), "annotators": list(RATERS), "labels": [("yes", "no")[(n + r) % 2] for r in range(3)],
         "tags": ["a", "b"], "scores": [point(n, r) for r in range(3)], "tokens": [["a"], ["b"]]} for n in ITEMS]
    )  # fmt: skip
    place.take("d.jsonl", "--language", "en", "--scale", "scores=1..5")
    assert answers(place, "scores") == POINTS and answers(place, "labels") == ["no"] * 12 + ["yes"] * 12
    assert place.ratings()["rater_id"].nunique() == 3
    assert {reason for _, reason in place.listed} == {"a list of lists, or of values and objects, is not read"}


def test_counts_and_vectors_are_no_answers(place: Workplace) -> None:
    lists = {"label_count": [3, 2], "embedding": [0.5] * 4, "topic_dist": [0.1, 0.9]}
    write(place, "d.jsonl", [{"id": n, "text": text(n), "scores": [point(n, r) for r in range(3)], **lists}
                             for n in ITEMS])  # fmt: skip
    place.take("d.jsonl", "--language", "en", "--scale", "scores=1..5")
    assert answers(place, "scores") == POINTS and set(place.ratings()["question"]) == {"scores"}
    assert [reason for _, reason in place.listed] == [
        "a list of counts, places or vectors, or of other length than the raters, is not read"
    ] * 24


@pytest.mark.parametrize("value", ["keep", 4, ["odd", "long"]])
def test_an_entrys_own_value_is_no_vote_of_each(place: Workplace, value: object) -> None:
    records = [{"id": n % 7, "text": text(n % 7), "votes": [n % 2 == 0, True, False], "overall": value} for n in ITEMS]
    write(place, "d.jsonl", records)
    error = place.refused("d.jsonl", "--language", "en")
    assert "d.jsonl, lines 1 and 8: id '0' is used twice" in error
    assert "--column item=id if it is one item, or --column item=entry if these are two" in error
    words = ("d.jsonl", "--column", "answer=overall", "--language", "en", "--replace")
    for item, items in (("id", 7), ("entry", 8)):
        assert f"32 ratings of {items} texts" in place.take(*words, "--column", f"item={item}").out
        assert len(answers(place, "overall")) == 8 and len(answers(place, "votes")) == 24 and not place.listed
    write(place, "d.jsonl", records[:7])
    assert "21 ratings of 7 texts" in place.take("d.jsonl", "--language", "en", "--replace").out


def test_a_value_of_several_items_is_no_answer_about_one(place: Workplace) -> None:
    write(place, "d.jsonl", [{"worker": RATERS[r], "overall": r, "judgements": [
        {"text": text(n), "clarity": point(n, r)} for n in ITEMS]} for r in range(3)])  # fmt: skip
    assert "'overall' is one value for several items" in place.refused(
        "d.jsonl", "--column", "answer=clarity", "--column", "answer=overall"
    )
    place.take("d.jsonl", "--column", "answer=clarity", "--scale", "clarity=1..5", "--language", "en")
    ratings = place.ratings()
    assert answers(place, "clarity") == POINTS and ratings.groupby("rater_id").size().eq(8).all()


def test_lists_of_long_numbers_are_read_at_once() -> None:
    """A pattern of numpy's lists tried each way to cut a number into numbers: minutes for one cell."""
    assert list_in(f"[0.{'1' * 60}, 2]") == [float(f"0.{'1' * 60}"), 2] and list_in(f"[{'1' * 60} x]") is None
    assert list_in("[1. -2.  nan]") == [1.0, -2.0, None]


def test_lines_of_json_end_only_where_lines_end(place: Workplace) -> None:
    rows = [
        {"text": f"{text(n)}\u2028Second\x85line.", "rater": r, "rating": point(n, r)} for n in ITEMS for r in range(3)
    ]
    lines = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (place.folder / "a.jsonl").write_bytes(lines.encode())
    place.take("a.jsonl")
    assert answers(place, "rating") == POINTS


def test_a_list_of_texts_is_no_answer_where_one_record_has_a_number(place: Workplace) -> None:
    records = [{"id": n, "text": text(n), "clarity": point(n, 0), "notes_on": ["so"]} for n in range(8)]
    write(place, "d.jsonl", [*records, {**records[0], "id": 8, "text": text(8), "notes_on": ["3"]}])
    done = place.take("d.jsonl", "--column", "answer=clarity", "--scale", "clarity=1..5", "--language", "en")
    assert "unused (its name shows no role): notes_on" in done.out and len(place.ratings()) == 9


@pytest.mark.parametrize("name", ["annotator_{}", "{}"])
def test_raters_scores_are_no_ticks_of_potato(place: Workplace, name: str) -> None:
    scores = [{name.format(RATERS[r]): {"clear": point(n, r), "kind": 3} for r in range(3)} for n in ITEMS]
    write(place, "r.jsonl", [{"id": n, "text": text(n), "label_annotations": scores[n]} for n in ITEMS])
    words = ("--column", "answer=clear", "--column", "answer=kind", "--scale", "clear=1..5", "--column", "rater=key")
    place.take("r.jsonl", *words, "--language", "en")
    assert answers(place, "clear") == POINTS and place.ratings()["rater_id"].nunique() == 3


def test_what_is_not_read_of_potatos_records_is_named(place: Workplace) -> None:
    ticks = [{"label_annotations": {"clear": {f"scale_{point(n, 0)}": "1"}}} for n in ITEMS]
    write(
        place,
        "r.jsonl",
        [{"id": n, "displayed_text": text(n), "model": "m1", "user": "ada", **ticks[n]} for n in ITEMS],
    )
    assert "'model' is not read; records that have it: 8" in place.take("r.jsonl", "--language", "en").out

"""What describes raters, their devices, items or submissions is never an answer, and work that counts stays."""

from __future__ import annotations

import itertools
import json

import pytest

from annotation.imports.columns import by_name, left_out
from tests.annotation.imports.importing import RATERS, Workplace, output, write_csv
from tests.annotation.imports.test_exports import PROLIFIC, WORKERS, mturk

ITEMS = 10
EACH = list(itertools.product(range(ITEMS), range(3)))
BROWSER = "Mozilla/5.0 (Macintosh) AppleWebKit/605 Safari/604"
FAITHS = ("Quaker", "Druze", "Jain")


def point(number: int, rater: int) -> int:
    return 1 + (3 * number + rater) % 5


POINTS = sorted(point(n, r) for n, r in EACH)


def text(number: int) -> str:
    return output(number, "neural")


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        ("describes raters", ["Age", "age_group", "annotator_gender", "What is your gender?", "How old are you?",
                              "Country of birth", "Q7_Age", "Answer.nativeLanguage", "rater.education", "Geschlecht"]),
        ("describes raters, and is sensitive", ["race", "Ethnicity simplified", "What is your religion?", "LGBTQ+",
                                                "political_leaning", "participant_disability", "householdIncome",
                                                "Demographics [Religion]", "Your religion? - Selected Choice"]),
        ("describes a rater's device", ["Answer.userAgent", "Q1_Browser", "Browser Meta Info [Version]",
                                        "Timing - First Click", "screen_width"]),
        ("is metadata", ["dataset", "split", "HITTypeId", "Completion code", "Q_RecaptchaScore", "num_words"]),
        ("is a metric", ["lev.dist", "BLEU-4", "rouge_l", "bertscore_f1", "chrF++"]),
        ("", ["fluency", "How old is the text?", "clarity [Ann told me. Age]", "similarity", "system_rating",
              "coverage", "Is the text political in tone?", "worker_id", "readability"]),
    ],
)  # fmt: skip
def test_a_name_shows_what_is_no_answer(reason: str, names: list[str]) -> None:
    assert {name: left_out(name) for name in names} == dict.fromkeys(names, reason)
    assert all(by_name(name) == "unused" for name in names if reason)


def test_what_describes_raters_is_in_no_file_unless_it_is_named(place: Workplace) -> None:
    write_csv(place.folder / "d.csv", ["text", "annotator", "clarity", "Religion", "Income", "Marital status"],
              [[text(n), RATERS[r], point(n, r), FAITHS[r], f"{r}0k", "Married"] for n, r in EACH])  # fmt: skip
    done = place.take("d.csv", "--language", "en")
    assert "unused (its name describes raters, and is sensitive): Religion, Income" in done.out
    assert not any(faith.encode() in place.everything() for faith in FAITHS)
    assert "every row was imported\n" in done.out
    words = ("--column", "answer=clarity", "--column", "answer=Religion", "--language", "en", "--replace")
    place.take("d.csv", *words)
    assert set(place.ratings()["question"]) == {"clarity", "religion"}


def test_columns_of_no_role_are_named_where_every_row_is_imported(place: Workplace) -> None:
    write_csv(place.folder / "d.csv", ["text", "rater", "rating", "clarity", "wing"],
              [[text(n), RATERS[r], point(n, r), 3, "x"] for n, r in EACH])  # fmt: skip
    done = place.take("d.csv", "--language", "en")
    assert "every row was imported, without the columns of no role: clarity, wing\n" in done.out


def test_mturks_own_and_workers_facts_are_no_questions(place: Workplace) -> None:
    header = ["Input.text", "Answer.clarity", "Answer.race", "Answer.workerId", "Answer.env", "Answer.events"]
    events = json.dumps({"load": 1})
    content = mturk(header, lambda n, r: [text(n), point(n, r), FAITHS[r], WORKERS[r], BROWSER, events])
    (place.folder / "b.csv").write_text(content, encoding="utf-8")
    done = place.take("b.csv", "--language", "en")
    assert "unused (a log of the page, or a browser's name): env, events" in done.out
    assert set(place.ratings()["question"]) == {"clarity"} and sorted(place.ratings()["value"]) == POINTS
    assert not any(word.encode() in place.everything() for word in (*FAITHS, *WORKERS, "Mozilla"))


def test_a_tick_that_is_the_same_in_each_row_is_asked_about(place: Workplace) -> None:
    header = ["Input.text", "Answer.clarity", "Answer.speaks"]
    content = mturk(header, lambda n, r: [text(n), point(n, r), 1])
    (place.folder / "b.csv").write_text(content, encoding="utf-8")
    assert "'speaks' is '1' in each row; name it with --column unused=speaks" in place.refused("b.csv")
    place.take("b.csv", "--column", "unused=speaks", "--language", "en")
    assert set(place.ratings()["question"]) == {"clarity"}


def test_questions_of_a_survey_among_those_of_texts_are_left_out(place: Workplace) -> None:
    for r, name in enumerate("abc"):
        folder = place.folder / name
        folder.mkdir()
        lines = [{"id": n, "displayed_text": text(n), "label_annotations": {
            "clarity": {f"scale_{point(n, r)}": str(point(n, r))}, "religion": {FAITHS[r]: "1"}}}
            for n in range(ITEMS)]  # fmt: skip
        (folder / "i.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    files = [f"{name}/i.jsonl" for name in "abc"]
    done = place.take(*files, "--language", "en")
    assert "'religion' describes raters, and is sensitive, so its answers are left out" in done.out
    assert sorted(place.ratings()["value"]) == POINTS and FAITHS[0].encode() not in place.everything()
    place.take(*files, "--language", "en", "--replace", "--scale", "religion=labels")
    assert set(place.ratings()["question"]) == {"clarity", "religion"}


def submissions(*rows: tuple[str, int, str]) -> list[list[object]]:
    return [[name, PROLIFIC[r], status, "2026-01-05T10:00:00Z", 900, 30 + r, "White"] for name, r, status in rows]


LIST = ["Submission id", "Participant id", "Status", "Completed at", "Time taken", "Age", "Ethnicity simplified"]
TRIES = submissions(("s0", 0, "APPROVED"), ("s1", 1, "RETURNED"), ("s1b", 1, "APPROVED"), ("s2", 2, "TIMED-OUT"))


@pytest.mark.parametrize(("column", "turn"), [("SESSION_ID", 1), ("submission_id", -1), ("Sitzung", 1)])
def test_a_returned_first_try_takes_nothing_from_an_approved_second(place: Workplace, column: str, turn: int) -> None:
    rows = [[PROLIFIC[r], ("s0", "s1b", "s2")[r], text(n), point(n, r)] for n, r in EACH]
    rows += [[PROLIFIC[1], "s1", text(n), 5] for n in range(4)]
    write_csv(place.folder / "r.csv", ["PROLIFIC_PID", column, "text", "rating"], rows[::turn])
    write_csv(place.folder / "p.csv", LIST, TRIES[::turn])
    words = () if column != "Sitzung" else ("--column", "submission=Sitzung")
    done = place.take("r.csv", "p.csv", *words, "--language", "en")
    ratings = place.ratings()
    counting = ratings[ratings["status"] == "submitted"]
    assert sorted(counting["value"]) == sorted(point(n, r) for n, r in EACH if r < 2)
    assert len(ratings) == 30 and len(place.listed) == 4 and "submissions that count" not in done.out
    assert all(person not in done.out for person in (*PROLIFIC, "s1b"))


def test_without_a_submissions_id_a_raters_work_counts_if_any_try_does(place: Workplace) -> None:
    rows = [[PROLIFIC[r], text(n), point(n, r)] for n, r in EACH]
    write_csv(place.folder / "r.csv", ["participant_id", "text", "rating"], rows)
    write_csv(place.folder / "p.csv", LIST, TRIES)
    done = place.take("r.csv", "p.csv", "--language", "en")
    assert "1 rater has submissions that count and others that do not" in done.out
    assert place.ratings()["status"].value_counts().to_dict() == {"submitted": 20, "discarded": 10}


def test_ratings_with_prolifics_columns_in_the_rows(place: Workplace) -> None:
    write_csv(place.folder / "m.csv", ["text", "rating", *LIST, "Language"], [
        [text(n), point(n, r), *TRIES[(0, 2, 3)[r]], "Welsh"] for n, r in EACH])  # fmt: skip
    place.take("m.csv", "--language", "en")
    ratings = place.ratings()
    assert ratings["status"].value_counts().to_dict() == {"submitted": 20, "discarded": 10}
    assert sorted(ratings["value"]) == POINTS and ratings["seconds"].isna().all() and set(ratings["language"]) == {"en"}


def test_a_chat_among_the_fields_of_argilla_is_named_as_left_out(place: Workplace) -> None:
    """Raters read it, and the study does not have it."""
    chat = [{"role": "user", "content": "Why?"}]
    answers = [[{"value": 1 + (n + r) % 5, "user_id": f"u{r}"} for r in range(2)] for n in range(6)]
    records = [
        {"id": n, "fields": {"title": output(n, "neural"), "chat": chat}, "responses": {"rating": of_record}}
        for n, of_record in enumerate(answers)
    ]
    (place.folder / "a.json").write_text(json.dumps(records), encoding="utf-8")
    place.take("a.json", "--column", "text=title", "--language", "en")
    assert [reason for _, reason in place.listed] == ["a list is not read here"] * 6

"""The rating page as a document, and what it sends back: read whole, or refused in one line."""

from __future__ import annotations

import contextlib
import csv
import math
import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_letters
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.campaign.rubric import load_rubric
from annotation.crowd.mturk.form import COLUMNS, Archived, Sheet, fields_of_xml, read_archive
from annotation.crowd.page import LIMIT, NAMESPACE, consent_of, prolific_words, question_html, question_xml
from annotation.crowd.prolific.workspaces import DONE
from annotation.human.order import OrderDrawing
from annotation.page.task import rating_words
from annotation.questions.text import LONGEST, without_controls
from annotation.questions.wordings import CROWD_WORDS
from annotation.server.plugin.plumbline_argilla import rate
from annotation.server.plugin.plumbline_argilla.crowd_words import WORDS
from plumbline.errors import DataError, StudyError
from plumbline.study import Study
from tests.annotation.crowd.mturk.mturk_site import answer_xml, form_data
from tests.annotation.crowd.offers import make_offer
from tests.annotation.previews import data_of

#: What XML 1.0 can hold, but for carriage returns, which it reads as line feeds.
LETTERS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))
NAMES = st.sampled_from(["p0.quality", "p0.fluency", "p0.comment", "p0.seconds", "p0.discarded", "batch"])


@given(st.dictionaries(NAMES, LETTERS))
def test_fields_come_back_as_they_were(fields: dict[str, str]) -> None:
    assert fields_of_xml(answer_xml(fields), "here") == fields


@given(st.text(st.characters(exclude_categories=[])))
def test_no_document_does_anything_but_be_read_or_refused(xml: str) -> None:
    with contextlib.suppress(DataError):
        assert all(isinstance(text, str) for text in fields_of_xml(xml, "here").values())


def test_entities_are_not_expanded() -> None:
    """Ten levels of ten would be 10^10 letters."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 11))
    with pytest.raises(DataError, match="a document type is not allowed"):
        fields_of_xml(f'<!DOCTYPE a [<!ENTITY e0 "x">{levels}]><a><FreeText>&e10;</FreeText></a>', "here")


@pytest.fixture
def sheet(variant: Callable[..., Study]) -> Sheet:
    study = variant(name="form", crowd={})
    return Sheet(study.name, load_rubric(study), dict.fromkeys(("p0", "p1"), "paraphrasing"), "here")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(NAMES, st.sampled_from(["", "1", "5", "0", "6", "yes", "nan", "-1", "1e9"]) | LETTERS))
def test_answers_are_on_the_scale_or_refused(sheet: Sheet, fields: dict[str, str]) -> None:
    try:
        (answer,) = sheet.answers(fields, ["p0"], "2026-01-01T00:00:00+00:00")
    except DataError:
        return
    allowed = {1, 2, 3, 4, 5} | ({None} if answer.status == "discarded" else set())
    assert set(answer.values) == {"quality", "fluency"}
    assert set(answer.values.values()) <= allowed
    assert math.isnan(answer.seconds) or 0 <= answer.seconds <= 86_400


@given(st.text(st.characters(exclude_categories=[])))
def test_comments_can_be_kept_anywhere(text: str) -> None:
    """No control characters but line feeds and tabs, all of it UTF-8; cleaning again changes nothing."""
    kept = without_controls(text)
    assert len(kept) <= LONGEST
    assert not any((letter < " " and letter not in "\n\t") or "\x7f" <= letter <= "\x9f" for letter in kept)
    assert kept.encode().decode() == kept == without_controls(kept)


SUBMIT = "https://workersandbox.mturk.com/mturk/externalSubmit"
LANGUAGES = ("ar", "de", "es", "fr", "ha", "ru", "sw", "tr", "ur")
PROLIFIC = WORDS | {"done_link": DONE}
SAME = {"fr": ("instructions",)}  # words that a language shares with English


@pytest.fixture
def study(variant: Callable[..., Study]) -> Study:
    return variant(name="page", crowd={"consent": "I agree & <b>begin</b>"}, raters={"contact": "lab@example.org"})


def page(study: Study, *arguments: object, **more: object) -> str:
    return question_html(study, load_rubric(study), make_offer(*arguments, **more), SUBMIT)  # type: ignore[arg-type]


def test_what_the_form_cannot_hold_is_refused(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that would come twice, and an order that nobody would know."""
    rubric, offer = load_rubric(study), make_offer()
    first, *others = rubric.questions
    seconds = rubric.model_copy(update={"questions": (first.model_copy(update={"name": "seconds"}), *others)})
    with pytest.raises(StudyError, match="question 'seconds': MTurk's page uses this name for another field"):
        question_xml(study, seconds, offer, SUBMIT)
    monkeypatch.setattr("annotation.crowd.page.drawing_of", lambda *_: OrderDrawing("seed"))
    with pytest.raises(StudyError, match="cannot record an order drawn for each worker"):
        question_xml(study, rubric, offer, SUBMIT)


def test_what_a_worker_reads_stands_in_it(study: Study) -> None:
    html, rubric = page(study), load_rubric(study)
    data = form_data(html)
    assert data["asked"] == rubric.pool("paraphrasing").asked["en"]
    assert "A copy of the original is not a paraphrase." in data["guidelines"]
    assert (data["consent"], data["contact"]) == ("I agree & <b>begin</b>", "lab@example.org")
    assert data_of(html)["submit_to"] == SUBMIT
    quality = data["questions"][0]
    assert (quality["name"], [point for point, _ in quality["points"]]) == ("quality", [1, 2, 3, 4, 5])
    assert quality["points"][1][1].endswith("or hardly a word was changed")  # the pool's own


@pytest.mark.parametrize(
    ("languages", "page_language", "directions"),
    [(("de", "de"), "de", ["ltr", "ltr"]), (("en", "ar"), "en", ["ltr", "rtl"]), (("ur", "fr"), "fr", ["rtl", "ltr"])],
)
def test_languages_and_directions(
    study: Study, languages: tuple[str, str], page_language: str, directions: list[str]
) -> None:
    """The page speaks the output language where there is wording, and each text has its own language and direction."""
    html = page(study, languages=languages, pool="translation" if languages[0] != languages[1] else "paraphrasing")
    assert f'<html lang="{page_language}" dir="ltr">' in html
    texts = form_data(html)["texts"]
    assert [(one["lang"], one["dir"]) for one in texts] == list(zip(languages, directions, strict=True))


def test_every_word_is_there_in_every_language_of_the_campaign() -> None:
    """And with the same places to fill in."""
    assert {file.stem for file in CROWD_WORDS.glob("*.yaml")} == {"en", *LANGUAGES}
    for code in LANGUAGES:
        items, of_items = prolific_words(code, of_pairs=False), {**PROLIFIC, **prolific_words("en", of_pairs=False)}
        both = (rating_words(code, of_pairs=False), rating_words("en", of_pairs=False)), (items, of_items)
        for own, english in ((rating_words(code), rating_words("en")), (prolific_words(code), PROLIFIC), *both):
            assert set(own) == set(english), code
            for name, text in own.items():
                assert (text.strip() and text != english[name]) or name in SAME.get(code, ()), (code, name)
                assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", english[name])), (code, name)


def test_the_consent_is_in_the_pages_language_unless_the_study_says_otherwise(variant: Callable[..., Study]) -> None:
    def consent(crowd: dict[str, object], language: str) -> str:
        spec = variant(name="page", crowd=crowd).crowd
        assert spec is not None
        return consent_of(spec, language)

    assert consent({}, "tr").startswith("Yönergeleri okudum, en az 18")
    assert consent({}, "ja") == consent({}, "en")
    assert consent({}, "en").startswith("I have read the instructions, am at least 18")
    assert [consent({"consent": "Yes."}, code) for code in ("en", "tr")] == ["Yes.", "Yes."]
    own = {"consent": {"en": "Yes.", "tur": "Evet."}}
    assert [consent(own, code) for code in ("en", "tr", "ar")] == ["Yes.", "Evet.", "Yes."]
    with pytest.raises(StudyError, match=r"crowd\.consent: the English text is missing"):
        consent({"consent": {"tr": "Evet."}}, "en")


def test_nothing_comes_from_elsewhere(study: Study) -> None:
    """No address but the form's own and the text's, no handler in an attribute, no style from outside."""
    html = page(study)
    assert "://" not in html
    assert not re.search(r"<(?:link|iframe|img|object)|\bsrc=|@import|url\(|\son\w+=", html)


def test_it_does_not_say_which_pairs_are_controls(study: Study) -> None:
    offer = make_offer()
    control = offer.pairs[0].model_copy(update={"control": "negative"})
    other = type(offer)(offer.batch, (control, *offer.pairs[1:]), offer.places, offer.reward)
    rubric = load_rubric(study)
    assert question_html(study, rubric, other, SUBMIT) == question_html(study, rubric, offer, SUBMIT)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    text=st.text(st.characters(exclude_categories=[])) | st.sampled_from(["]]>", "</script><script>", "<!--<script>"])
)
def test_any_text_comes_through_as_it_is(study: Study, text: str) -> None:
    """Through MTurk's XML and the page's JSON; it adds no element and ends none."""
    xml = question_xml(study, load_rubric(study), make_offer([(text, "b")]), SUBMIT)
    html = ElementTree.fromstring(xml).findtext(f"{{{NAMESPACE}}}HTMLContent")  # noqa: S314 (our own)
    assert html is not None
    assert form_data(html)["pairs"][0]["texts"] == [text, "b"]
    assert len(re.findall("<script", html)) == len(re.findall("</script>", html)) == 2


def test_the_limit(study: Study) -> None:
    """Texts are packed; what is still larger than MTurk takes is refused."""
    rubric, letters = load_rubric(study), random.Random(5)
    text = "".join(letters.choices(ascii_letters, k=LIMIT))
    assert len(question_xml(study, rubric, make_offer([("x" * LIMIT, "b")]), SUBMIT).encode()) < LIMIT
    with pytest.raises(StudyError, match=r"has [\d,]+ bytes, but MTurk takes at most 65,535; set sample.batch below"):
        question_xml(study, rubric, make_offer([(text, "b")]), SUBMIT)


def test_a_batch_of_usual_size_fits(study: Study) -> None:
    """20 pairs of 300 letters a side in random order, of an alphabet of 40 letters of three bytes each."""
    letters = random.Random(5)
    texts = [["".join(letters.choices([chr(0x0905 + n) for n in range(40)], k=300)) for _ in "ab"] for _ in range(20)]
    assert question_xml(study, load_rubric(study), make_offer([(a, b) for a, b in texts]), SUBMIT)


def test_nothing_but_comments_is_cut_from_the_script() -> None:
    """`page._lean` cuts lines at two blanks and two slashes, which no text of the script may hold."""
    for name in ("rate.js", "rate.css"):
        for line in rate.source(name).splitlines():
            kept, cut, _ = line.partition("  // ")
            assert not cut or not any(kept.count(quote) % 2 for quote in "\"'`"), line


PAIRS = dict.fromkeys(("p0", "p1", "p2"), "paraphrasing")  # pools by pair
ROW = {
    "HITId": "3HIT", "HITTypeId": "3TYPE", "Title": "Rate, please", "AssignmentId": "3A1", "WorkerId": "AW1",
    "AssignmentStatus": "Approved", "SubmitTime": "Mon Jan 12 14:21:29 PST 2015", "WorkTimeInSeconds": "412",
}  # fmt: skip
OWN = {
    "Answer.study": "old", "Answer.batch": "b1", "Answer.p0.quality": "4", "Answer.p0.fluency": "5",
    "Answer.p0.comment": "fine,\n\"really\"", "Answer.p0.seconds": "12.5",
}  # fmt: skip


Read = Callable[[Path], list[Archived]]


@pytest.fixture
def read(variant: Callable[..., Study]) -> Read:
    study = variant(name="old", crowd={})
    return lambda path: read_archive(path, study.name, load_rubric(study), PAIRS)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def writes(*rows: Mapping[str, str]) -> Path:
        path = tmp_path / "Batch_1_batch_results.csv"
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        return path

    return writes


def test_our_own_form(read: Read, write: Callable[..., Path]) -> None:
    """Two HITs in one file: each row has its own answers, the columns of the other are empty."""
    other = {"Answer.study": "old", "Answer.batch": "b2", "Answer.p1.quality": "1", "Answer.p1.discarded": "yes"}
    path = write(ROW | OWN, ROW | {"AssignmentId": "3A2", "WorkerId": "AW2", "AssignmentStatus": "Rejected"} | other)
    (first, answers), (second, discarded) = read(path)
    # 14:21:29 in Seattle's winter is 22:21:29 UTC.
    assert first.submitted_at == datetime(2015, 1, 12, 22, 21, 29, tzinfo=UTC)
    assert (first.submission_id, first.posted_id, first.worker, first.state) == ("3A1", "3HIT", "AW1", "approved")
    assert first.seconds == 412
    (one,) = answers
    assert (one.pair_id, dict(one.values), one.comment, one.seconds, one.submitted_at) == (
        "p0", {"quality": 4, "fluency": 5}, 'fine,\n"really"', 12.5, "2015-01-12T22:21:29+00:00",
    )  # fmt: skip
    assert (second.worker, second.state) == ("AW2", "rejected")
    assert [(one.pair_id, dict(one.values), one.status) for one in discarded] == [
        ("p1", {"quality": 1, "fluency": None}, "discarded")
    ]


def test_a_template_of_the_site(read: Read, write: Callable[..., Path]) -> None:
    """Numbered pairs, with values or with the site's radio buttons, one column a point."""
    site = {
        "Input.pair_id_1": "p2", "Input.original_1": "text", "Input.pair_id_2": "p0", "Answer.quality_1": "3",
        "Answer.fluency_1": "2", "Answer.comment_1": "odd", "Answer.quality_2.4": "true", "Answer.quality_2.5": "false",
        "Answer.fluency_2.1": "true",
    }  # fmt: skip
    ((_, answers),) = read(write(ROW | site))
    assert [(one.pair_id, dict(one.values), one.comment) for one in answers] == [
        ("p2", {"quality": 3, "fluency": 2}, "odd"),
        ("p0", {"quality": 4, "fluency": 1}, ""),
    ]
    assert all(math.isnan(one.seconds) for one in answers)


def test_one_pair_a_hit(read: Read, write: Callable[..., Path]) -> None:
    site = {"Input.pair_id": "p1", "Answer.quality": "3", "Answer.fluency": "2"}
    summer = {"SubmitTime": "Tue Jul 07 01:02:03 PDT 2026"}
    (((submission, (one,))),) = read(write(ROW | summer | site))
    assert submission.submitted_at == datetime(2026, 7, 7, 8, 2, 3, tzinfo=UTC)
    assert (one.pair_id, dict(one.values)) == ("p1", {"quality": 3, "fluency": 2})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"Answer.p0.quality": "6"}, "line 3: pair p0, quality: the answer 6 is not on the scale 1 to 5"),
        ({"Answer.study": "new"}, "line 3: the answers are for study 'new', not for 'old'"),
        ({"Answer.p7.quality": "3"}, "line 3: pair 'p7' is not in this study's sample"),
        ({"Answer.batch": ""}, "line 3: names no pair"),
        ({"AssignmentStatus": "Lost"}, "line 3: AssignmentStatus 'Lost'"),
        ({"SubmitTime": "Mon Jan 12 14:21:29 XYZ 2015"}, "is not a time in the MTurk site's format"),
        ({"WorkTimeInSeconds": "long"}, "line 3: WorkTimeInSeconds 'long' is not a number"),
        ({"WorkerId": "=HYPERLINK()"}, "line 3: WorkerId is not an MTurk id"),
    ],
)  # line 3: the comment's line break makes the first row two lines long
def test_bad_rows(read: Read, write: Callable[..., Path], change: dict[str, str], complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        read(write(ROW | OWN | change))
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(write(ROW)))


def test_bad_files(read: Read, write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(ROW | OWN, ROW | OWN)
    with pytest.raises(DataError, match="line 5: assignment 3A1 appears twice"):
        read(path)
    for name in COLUMNS:
        with pytest.raises(DataError, match=f"line 1: no column '{name}'"):
            read(write({key: text for key, text in (ROW | OWN).items() if key != name}))
    path = write(ROW | OWN)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b",")])
    with pytest.raises(DataError, match="more or fewer cells than the header"):
        read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read(path)
    with pytest.raises(DataError, match="cannot be read as a CSV"):
        read(write(ROW | OWN | {"Answer.p0.comment": "x" * 1_000_000}))
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "none.csv")

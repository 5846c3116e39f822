"""What a form sends back: read whole, or refused in one line, whatever it is."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.campaign.rubric import load_rubric
from annotation.crowd.mturk.form import Sheet, fields_of_xml
from annotation.questions.text import LONGEST, without_controls
from plumbline.errors import DataError
from plumbline.study import Study
from tests.annotation.crowd.mturk.mturk_site import answer_xml

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

from __future__ import annotations

import pytest

from generation.exceptions import StudyError
from generation.languages import _TABLE, iso639_3, language_code, language_name


@pytest.mark.parametrize(("given", "code"), [("eng-Latn", "en"), ("ary", "ar"), (" DE_at ", "de"), ("pcm", "pcm")])
def test_many_ways_to_name_a_language_give_one_code(given: str, code: str) -> None:
    assert language_code(given) == code


def test_the_papers_42_languages_have_names_and_codes_that_lead_back() -> None:
    assert len(_TABLE) == 42
    for code in _TABLE:
        assert language_code(iso639_3(code)) == code
        assert language_name(code)[:1].isalpha()


def test_an_unknown_language_is_refused_with_a_near_one() -> None:
    with pytest.raises(StudyError, match=r"'enx' is not known; did you mean 'en"):
        language_code("enx")

from __future__ import annotations

import re

import pytest

from plumbline.errors import StudyError
from plumbline.languages import _TABLE, iso639_3, language_code, language_name, language_pair, with_script


@pytest.mark.parametrize(
    ("given", "code", "name"),
    [
        ("eng-Latn", "en", "English"),
        ("ary", "ar", "Arabic"),
        (" DE_at ", "de", "German"),
        ("pcm", "pcm", "Nigerian Pidgin"),
        ("rus", "ru", "Russian"),
        ("cmn-Hans", "zh", "Chinese"),
        ("zsm", "ms", "Malay"),
        ("arz", "ar", "Arabic"),  # Egyptian: HTEB groups Arabic's variants
        ("yue", "yue", "Cantonese"),
        ("pes", "fa", "Persian"),
        ("gaz", "om", "Oromo"),
        ("enx", "enx", "Enxet"),
    ],
)
def test_many_ways_to_name_a_language_give_one_code_and_name(given: str, code: str, name: str) -> None:
    assert (language_code(given), language_name(given)) == (code, name)
    assert language_code(code) == language_code(iso639_3(given)) == code


def test_the_papers_42_languages_have_names_and_codes_that_lead_back() -> None:
    assert len(_TABLE) == 42
    for code in _TABLE:
        assert language_code(iso639_3(code)) == code
        assert language_name(code) == _TABLE[code][0]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("eng1", "did you mean 'eng'"),
        ("Russian", "did you mean 'ru'"),
        ("qqqq", "use a BCP 47 code"),
        ("und", "did you mean"),
        ("", "use a BCP 47 code"),
    ],
)
def test_what_no_language_is_called_is_refused_with_a_hint(given: str, hint: str) -> None:
    with pytest.raises(StudyError, match=rf"{given!r} is not known; {hint}") as error:
        language_code(given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "pair"),
    [
        ("en-de", ("en", "de")),
        ("eng-arb", ("en", "ar")),
        ("fr", ("fr", "fr")),
        ("pt-BR", ("pt", "pt")),  # a region
        ("zho-Hans", ("zh", "zh")),  # a script
    ],
)
def test_a_pair_of_languages_is_two_codes_in_small_letters(given: str, pair: tuple[str, str]) -> None:
    assert language_pair(given) == pair


def test_a_language_has_the_script_that_it_is_mostly_written_in() -> None:
    codes = ("en", "zh", "sr-Latn", "ary", "pa", "or", "enx")
    scripts = ["eng-Latn", "zho-Hans", "srp-Latn", "ara-Arab", "pan-Guru", "ory-Orya", "enx-Latn"]
    assert [with_script(code) for code in codes] == scripts
    assert all(re.fullmatch("[a-z]{3}-[A-Z][a-z]{3}", with_script(code)) for code in _TABLE)

"""Language codes: one per language (BCP 47, so `en` and not `eng`), and the English names that prompts use.

The table holds the 42 languages of HTEB (appendix F, Table 11) as the paper names them; all others come from
`langcodes`, whose data are those of CLDR and of the registry of BCP 47. Variants that are written as one language are
one here: Arabic's (HTEB does so too), and those that CLDR knows by their macrolanguage (`cmn` is `zh`, `zsm` is `ms`).
"""

from __future__ import annotations

import difflib
import functools
import re

from plumbline.errors import LanguageError
from plumbline.importing import langcodes

# code: (English name, ISO 639-3 codes that mean it)
_TABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "af": ("Afrikaans", ("afr",)),
    "am": ("Amharic", ("amh",)),
    "ar": ("Arabic", ("ara", "arb", "arq", "ary")),
    "as": ("Assamese", ("asm",)),
    "bn": ("Bengali", ("ben",)),
    "da": ("Danish", ("dan",)),
    "de": ("German", ("deu",)),
    "en": ("English", ("eng",)),
    "es": ("Spanish", ("spa",)),
    "fr": ("French", ("fra",)),
    "gu": ("Gujarati", ("guj",)),
    "ha": ("Hausa", ("hau",)),
    "hi": ("Hindi", ("hin",)),
    "id": ("Indonesian", ("ind",)),
    "ig": ("Igbo", ("ibo",)),
    "it": ("Italian", ("ita",)),
    "ja": ("Japanese", ("jpn",)),
    "kn": ("Kannada", ("kan",)),
    "ko": ("Korean", ("kor",)),
    "lg": ("Luganda", ("lug",)),
    "ln": ("Lingala", ("lin",)),
    "ml": ("Malayalam", ("mal",)),
    "mr": ("Marathi", ("mar",)),
    "nl": ("Dutch", ("nld",)),
    "om": ("Oromo", ("orm",)),
    "or": ("Odia", ("ory",)),
    "pa": ("Punjabi", ("pan",)),
    "pcm": ("Nigerian Pidgin", ()),
    "pl": ("Polish", ("pol",)),
    "rn": ("Rundi", ("run",)),
    "rw": ("Kinyarwanda", ("kin",)),
    "sn": ("Shona", ("sna",)),
    "so": ("Somali", ("som",)),
    "sw": ("Swahili", ("swa", "swh")),
    "ta": ("Tamil", ("tam",)),
    "te": ("Telugu", ("tel",)),
    "ti": ("Tigrinya", ("tir",)),
    "tr": ("Turkish", ("tur",)),
    "ur": ("Urdu", ("urd",)),
    "xh": ("isiXhosa", ("xho",)),
    "yo": ("Yorùbá", ("yor",)),
    "zu": ("Zulu", ("zul",)),
}
_CODE = {alias: code for code, (_, aliases) in _TABLE.items() for alias in (code, *aliases)}
_NO_LANGUAGE = {"und", "mis", "mul", "zxx"}  # standard codes for unknown, uncoded, several, none
_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")


@functools.cache
def language_code(text: str) -> str:
    """Return our code of a language given as BCP 47 or ISO 639-3; script and region are ignored.

    `language_code("eng-Latn") == "en"`; `language_code("ary") == "ar"`; `language_code("rus") == "ru"`. Raises
    LanguageError with the nearest known code for anything else.
    """
    subtag = text.strip().replace("_", "-").split("-")[0].lower()
    if subtag in _CODE:
        return _CODE[subtag]
    name = _english_name(subtag)
    if not name:
        try:
            near = [str(langcodes.find(text).language)]  # by its name
        except LookupError:
            codes = langcodes.data_dicts.LANGUAGE_ALPHA3
            near = difflib.get_close_matches(subtag, [*_CODE, *codes, *codes.values()], n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "use a BCP 47 code such as 'en' or 'de'"
        raise LanguageError(f"language {text!r} is not known; {hint}")
    if name.endswith(" Arabic"):
        return "ar"
    code = _macrolanguage(subtag) or subtag
    return _CODE.get(code, code)


@functools.cache
def language_pair(text: str) -> tuple[str, str]:
    """Return the codes of a pair's first and second text: `en-de` is English and German, `de` German twice.

    Two codes in small letters are two languages; a region is in capitals, as BCP 47 recommends, so `pt-BR` is
    Portuguese alone. Raises LanguageError like `language_code`.
    """
    pair = _PAIR.fullmatch(text.strip())
    first, second = pair.groups() if pair else (text, text)
    return language_code(first), language_code(second)


def pair_code(text: str) -> str:
    """Return a pair's code as studies have it: `en-de`, but `de` if both texts are German. Raises LanguageError."""
    first, second = language_pair(text)
    return first if first == second else f"{first}-{second}"


def language_name(code: str) -> str:
    """Return the English name of a language, as prompts use it: `language_name("tr") == "Turkish"`."""
    standard = language_code(code)
    return _TABLE[standard][0] if standard in _TABLE else _english_name(standard)


def iso639_3(code: str) -> str:
    """Return the ISO 639-3 code of a language, as mteb names it: `iso639_3("en") == "eng"`."""
    standard = language_code(code)
    if standard not in _TABLE:
        return langcodes.get(standard).to_alpha3()
    aliases = _TABLE[standard][1]
    return aliases[0] if aliases else standard


def with_script(code: str) -> str:
    """Return a language with its most usual script, as mteb's tasks write it.

    >>> with_script("en"), with_script("zh"), with_script("sr-Latn")
    ('eng-Latn', 'zho-Hans', 'srp-Latn')
    """
    return f"{iso639_3(code)}-{usual_script(code) or 'Zyyy'}"  # ISO 15924: undetermined


def usual_script(code: str) -> str:
    """The script that a language is most often written in, by ISO 15924; empty where none is known."""
    return langcodes.get(code).maximize().script or ""


def display_name(code: str, language: str = "en") -> str:
    """Return a language's name in another language: `display_name("de", "fr") == "allemand"`."""
    return langcodes.get(code).display_name(language)


def territory_name(code: str) -> str:
    """The English name of a country by its code of ISO 3166-1: `territory_name("DE") == "Germany"`."""
    return langcodes.Language.make(territory=code).territory_name("en")


def _macrolanguage(subtag: str) -> str:
    return langcodes.get(langcodes.standardize_tag(subtag, macro=True)).language or ""


@functools.cache
def _english_name(subtag: str) -> str:
    if subtag in _NO_LANGUAGE or not re.fullmatch(r"[a-z]{2,3}", subtag):
        return ""
    name = display_name(_macrolanguage(subtag) or subtag)
    return "" if name.startswith("Unknown language") else name

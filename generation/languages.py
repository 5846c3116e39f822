"""Language codes: one per language (BCP 47, so `en` and not `eng`), and the English names that prompts use.

The table holds the 42 languages of HTEB (appendix F, Table 11); Arabic's variants are one language.
"""

from __future__ import annotations

import difflib

from generation.exceptions import StudyError

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


def language_code(text: str) -> str:
    """The one code of a language named by BCP 47 or ISO 639-3 code, script and region ignored.

    `language_code("eng-Latn") == "en"`; `language_code("ary") == "ar"`. Raises StudyError with the nearest
    known code for anything else.
    """
    subtag = text.strip().replace("_", "-").split("-")[0].lower()
    if subtag not in _CODE:
        near = difflib.get_close_matches(subtag, _CODE, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "use a BCP 47 code such as 'en' or 'de'"
        raise StudyError(f"language {text!r} is not known; {hint}")
    return _CODE[subtag]


def language_name(code: str) -> str:
    """The English name of a language, as prompts name it: `language_name("tr") == "Turkish"`."""
    return _TABLE[language_code(code)][0]


def iso639_3(code: str) -> str:
    """The ISO 639-3 code of a language, as mteb names it: `iso639_3("en") == "eng"`."""
    known = language_code(code)
    aliases = _TABLE[known][1]
    return aliases[0] if aliases else known

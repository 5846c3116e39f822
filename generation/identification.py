"""Which language a short text is in, and whether it can be in a given one: py3langid's model, offline.

Two questions, because they are not equally hard. `identify` picks one of all languages, and may take a Spanish headline
for Catalan; `rules_out` asks of one language whether the text can be in it, and is right far more often. Accuracy and
speed, as measured, are in docs/flags.md.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Of HTEB's 42 languages (`plumbline.languages`), the 40 that the model knows: all but Rundi and Tigrinya.
BENCHMARK = (
    "af", "am", "ar", "as", "bn", "da", "de", "en", "es", "fr", "gu", "ha", "hi", "id", "ig", "it", "ja", "kn", "ko",
    "lg", "ln", "ml", "mr", "nl", "om", "or", "pa", "pcm", "pl", "rw", "sn", "so", "sw", "ta", "te", "tr", "ur", "xh",
    "yo", "zu",
)  # fmt: skip
# Languages that models fall into, and relatives of the above. The model knows 61 more; each makes short texts harder to
# tell, and with all of them fewer texts are identified than with these.
OTHERS = (
    "az", "bg", "ca", "cs", "el", "et", "fa", "fi", "fil", "he", "hr", "hu", "hy", "ka", "kk", "km", "lo", "lt", "lv",
    "mk", "ms", "my", "nb", "ne", "pt", "ro", "ru", "si", "sk", "sl", "sq", "sr", "sv", "th", "uk", "uz", "vi", "zh",
)  # fmt: skip
MODEL_LABELS = {"fil": "tl", "nb": "no"}  # where the model calls a language otherwise
NO_LANGUAGE = "zxx"  # the model's class for what is no language: numbers, identifiers, keys hit at random
KNOWN: frozenset[str] = frozenset((*BENCHMARK, *OTHERS))
_CODES = {label: code for code, label in MODEL_LABELS.items()}

# Chosen on STS-B in four languages (docs/flags.md): the share of the probability that the likeliest language needs, and
# that a language must stay under to be ruled out.
CONFIDENCE = 0.35
IMPOSSIBLE = 0.03
LEAST_LETTERS = 10  # in bytes of UTF-8, in which the model reads: ten letters of English, five Arabic, four Chinese
READ = 2000  # characters; so much tells the language of a text of any length


def identify(text: str) -> str | None:
    """The code (BCP 47) of the language that a text is in, or None where it cannot be told.

    None where there are hardly any letters outside addresses and handles, where no language is likely enough (names,
    languages in equal parts, languages that are not in KNOWN), and where it looks like no language.
    """
    return _best(_probabilities(text))


def rules_out(text: str, language: str) -> bool:
    """Whether a text is surely not in a language: it is identified as another one, and this one is next to impossible.

    `language` is a code; one that is not in KNOWN is never ruled out. A text in two languages is ruled out to be in the
    one that has little part in it.
    """
    if language not in KNOWN:
        return False
    probabilities = _probabilities(text)
    return _best(probabilities) is not None and probabilities[language] < IMPOSSIBLE


def _best(probabilities: dict[str, float]) -> str | None:
    if not probabilities:
        return None
    language = max(probabilities, key=probabilities.__getitem__)
    return language if language != NO_LANGUAGE and probabilities[language] >= CONFIDENCE else None


def _probabilities(text: str) -> dict[str, float]:
    """The probability of each language, NO_LANGUAGE among them; empty where there is too little to read."""
    words = " ".join(word for word in text[:READ].split() if not _is_address(word))
    letters = "".join(filter(str.isalpha, words))
    if len(letters.encode(errors="ignore")) < LEAST_LETTERS:
        return {}
    return {_CODES.get(label, label): probability for label, probability in _model().rank(words)}


def _is_address(word: str) -> bool:
    """Web and mail addresses and handles are the same in every language."""
    return "://" in word or "@" in word or word.startswith("www.")


@functools.cache
def _model() -> LanguageIdentifier:
    """The model, loaded by the first text. Threads that come first together load it twice, to the same effect."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 (whoever identifies nothing does without)

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([MODEL_LABELS.get(code, code) for code in KNOWN] + [NO_LANGUAGE])
    return identifier

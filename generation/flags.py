"""The ten error types of HTEB (A.2), flagged on one output at a time; docs/flags.md defines each.

They are the paper's, except that a leak or a language does not count if the original already has it: a recipe's
`Step 1:` is not reasoning. Flags depend only on original, output, transformation and language.

`identify` picks one of all languages, and may take a Spanish headline for Catalan; `rules_out` asks whether a text can
be in one language, and is right far more often.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable

from plumbline.error_types import FLAGS, Flag
from plumbline.errors import DataError
from plumbline.importing import py3langid
from plumbline.languages import language_name
from plumbline.records import nfc
from plumbline.study.transformations import Transformation
from plumbline.words import count_words, shows, trim

# HTEB, A.2.
RUNAWAY_TIMES = 5  # more words than this many times the original's
TRUNCATED_PART = 5  # fewer words than the original's divided by this: 20%
TRUNCATED_FROM = 4  # for originals with this many words or more

ELLIPSES = frozenset("….‥⋯。．")
DOTS = frozenset(".。．")  # one of these alone is a full stop

_THING = "(?:text|version|sentence|paragraph|question|statement)"
_TASK = rf"(?:re-?phrase|paraphrase|translate|summari[sz]e|expand|rewrite|reword) (?:the|this) (?:\w+ )?{_THING}"
# The markers that A.2 lists ("such as"), then similar ones of models. English, as the prompts are.
_REASONING = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bhere(?:'s| is| are) my (?:reasoning|thinking|thought process)\b",
        r"\blet me think\b",
        r"\bstep \d+[*_]{0,2} ?:",
        r"\blet's think step by step\b",
        rf"\b(?:(?:i|we) (?:need to|have to|should|must)|(?:i'm|i am|we're|we are) asked to) {_TASK}\b",
        rf"\bthe user (?:wants|asks|asked|is asking) (?:me|us) to {_TASK}\b",
        r"\[begin final response\]",
        # Tokens of a chat's turns and channels, and harmony's channels without them.
        r"<[|｜][\w▁/]{1,40}[|｜]?>|<[\w▁/]{1,40}[|｜]>|<(?:start|end)_of_turn>|\[/?inst\]|</s>\Z",
        r"assistant(?:final|commentary|analysis)",
    )
)
# People write A.2's last marker too: an original in the first person may become one with "I'll".
_I_WILL = re.compile(r"\bi'll\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|myself|we|our|ours)\b", re.IGNORECASE)

_NAME = (
    "(?:translated|back-?translated|paraphrased|re-?phrased|reworded|rewritten|summari[sz]ed|expanded|shortened) "
    f"{_THING}|(?:back-?)?translation|paraphras(?:e|ing)|re-?phrasing|rewording|rewrite|summary|summari[sz]ation|expansion"
    "|(?:formal|informal|casual) (?:version|style)|text to summari[sz]e"
    # In the languages that are translated into (HTEB, appendix D) models name their answers too.
    "|traducción|texto traducido|paráfrasis|resumen|traduction|texte traduit|résumé"
    "|übersetzung|übersetzter text|umformulierung|zusammenfassung|çeviri|özet|الترجمة|ترجمة|ملخص|الملخص"
)
_HERE_IS = (  # Sure! Here is the text, translated into German:
    r"(?:(?:sure|certainly|of course|okay|ok)[,.!]?\s)?here(?:'s|\sis)\b[^.:!?\n]{0,60}"
    r"\b(?:translat|paraphras|rephras|reword|rewrit|summar|expan)[^.:!?\n]{0,60}"
)
_NAMED = (  # Spanish translation (formal): / Summary of the text: / Traducción al español:
    r"(?:the )?(?:(?:english|spanish|french|german|turkish|arabic|concise|short|brief|possible) )?"
    rf"(?:{_NAME})(?: of (?:the|this) {_THING})?(?: (?:in|into|to|al|en|ins) \w{{2,20}})?(?: ?\(\w{{1,20}}\))?"
)
_MARKDOWN_OR_QUOTES = r"""[\s*_#"'“„«>-]{0,8}"""
_PREFIX = re.compile(rf"{_MARKDOWN_OR_QUOTES}(?:{_HERE_IS}|{_NAMED})[*_]{{0,3}}\s?[:：]", re.IGNORECASE)


def find_flags(original: str, output: str, kind: Transformation, *, language: str | None) -> tuple[Flag, ...]:
    """Return the error types of an output that its transformation can have, in Table 5's order.

    `output` is cleaned (`clean`); `language` is the code of its expected language, or None to skip the wrong language,
    which takes three quarters of the time. Types overlap (A.2): an empty output is truncated too. Never raises.
    """
    source, answer = original.replace("’", "'"), output.replace("’", "'")  # with straight apostrophes
    form, marks = _form(output), "".join(output.split())
    n_original, n_output = count_words(original), count_words(output)
    present: dict[Flag, bool] = {
        # Equal but for case, white space, Unicode form, and what `clean` removes.
        "identical": form == _form(original) or form == _form(clean(original)),
        "empty": not trim(output),
        "ellipsis": set(marks) <= ELLIPSES and (len(marks) > 1 or bool(set(marks) - DOTS)),
        "json_fragment": output.startswith(("{", "[")),
        "reasoning_leak": _leaks_reasoning(source, answer),
        "prefix_leak": _PREFIX.match(answer) is not None and _PREFIX.match(source) is None,
        # If that is the original's language, an original that is ruled out to be in it too excuses the output.
        "wrong_language": language is not None
        and rules_out(output, language)
        and (kind.translates or not rules_out(original, language)),
        # An original without words has no error type of length.
        "runaway": n_original > 0 and n_output > RUNAWAY_TIMES * n_original,
        "truncated": n_original >= TRUNCATED_FROM and n_output * TRUNCATED_PART < n_original,
        "summary_too_long": n_original > 0 and n_output > n_original,
    }
    return tuple(flag for flag in FLAGS if present[flag] and flag in kind.flags)


def _form(text: str) -> str:
    return nfc(" ".join(trim(nfc(text).casefold()).split()))


def _leaks_reasoning(source: str, answer: str) -> bool:
    """Return whether an answer has a marker that its original lacks."""
    if any(marker.search(answer) and not marker.search(source) for marker in _REASONING):
        return True
    return _I_WILL.search(answer) is not None and _FIRST_PERSON.search(source) is None


# Of HTEB's 42 languages (`plumbline.languages`), the 40 that the model knows: all but Rundi and Tigrinya.
BENCHMARK = (
    "af", "am", "ar", "as", "bn", "da", "de", "en", "es", "fr", "gu", "ha", "hi", "id", "ig", "it", "ja", "kn", "ko",
    "lg", "ln", "ml", "mr", "nl", "om", "or", "pa", "pcm", "pl", "rw", "sn", "so", "sw", "ta", "te", "tr", "ur", "xh",
    "yo", "zu",
)  # fmt: skip
# Languages that models slip into, and relatives of the above. The model knows 61 more; each makes short texts harder to
# identify: with all of them fewer texts are identified than with these.
OTHERS = (
    "az", "bg", "ca", "cs", "el", "et", "fa", "fi", "fil", "he", "hr", "hu", "hy", "ka", "kk", "km", "lo", "lt", "lv",
    "mk", "ms", "my", "nb", "ne", "pt", "ro", "ru", "si", "sk", "sl", "sq", "sr", "sv", "th", "uk", "uz", "vi", "zh",
)  # fmt: skip
MODEL_LABELS = {"fil": "tl", "nb": "no"}  # languages that the model names otherwise
NO_LANGUAGE = "zxx"  # the model's class for text without a language: numbers, identifiers, random keys
KNOWN: frozenset[str] = frozenset((*BENCHMARK, *OTHERS))
_CODES = {label: code for code, label in MODEL_LABELS.items()}

# Chosen on STS-B in four languages (docs/flags.md): the least probability of an identified language, and the
# probability below which a language is ruled out.
CONFIDENCE = 0.35
IMPOSSIBLE = 0.03
_ADDRESS = re.compile("://|@|^www\\.")  # of the web or of mail, or a handle: the same in every language
LEAST_LETTERS = 10  # in bytes of UTF-8, in which the model reads: ten letters of English, five Arabic, four Chinese
_SOME = 200  # texts by which the language of many is identified
READ = 2000  # characters: enough to identify the language of any text


def identify(text: str) -> str | None:
    """Return the code (BCP 47) of a text's language, or None if it is uncertain.

    None if there are hardly any letters outside addresses and handles, if no language is likely enough (names, equal
    parts of several languages, languages outside KNOWN), and if the text looks like no language.
    """
    return _best(_probabilities(text))


def language_of(texts: Iterable[object], *, least: int, share: float) -> str:
    """Return the code of the language of texts, of which the first ones are read.

    Raises DataError, with what to do, if fewer than `least` texts or a smaller `share` than this of the identified ones
    are in one language, or if most texts are not identified.
    """
    read = list(itertools.islice((text for text in texts if isinstance(text, str) and shows(text)), _SOME))
    counts = Counter(code for text in read if (code := identify(text)))
    best, number = counts.most_common(1)[0] if counts else ("", 0)
    if number >= least and number >= share * counts.total() and 2 * counts.total() >= len(read):
        return best
    likely = f" (perhaps {best}, {language_name(best)})" if best else ""
    raise DataError(
        f"the language of the texts is uncertain{likely}; add --language CODE, or"
        " --column language=NAME if a column has it"
    )


def rules_out(text: str, language: str) -> bool:
    """Return whether a text is surely not in a language: it is identified as another, and this one is unlikely.

    `language` is a code; one outside KNOWN is never ruled out. For a text in two languages, the one with the small part
    may be ruled out.
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
    """Return the probability of each language and of NO_LANGUAGE; empty if there is too little to read."""
    words = " ".join(word for word in text[:READ].split() if not _ADDRESS.search(word))
    letters = "".join(filter(str.isalpha, words))
    if len(letters.encode(errors="ignore")) < LEAST_LETTERS:
        return {}
    return {_CODES.get(label, label): probability for label, probability in _model().rank(words)}


@functools.cache
def _model() -> py3langid.langid.LanguageIdentifier:
    """Return the model, loaded at the first call. Threads that call together may load it twice; that is harmless."""
    langid = py3langid.langid
    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    identifier.set_languages([MODEL_LABELS.get(code, code) for code in KNOWN] + [NO_LANGUAGE])
    return identifier


# The tags of DeepSeek, Qwen and others, and Mistral's. Apriel's `[BEGIN FINAL RESPONSE]` stays: HTEB's output
# processing does not remove it (A.2), and Table 5 counts it.
_THINKING = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]", re.IGNORECASE)
# Tokens that end a model's turn, which a server with another chat template leaves.
_TURN_ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<|end|>", "<|return|>",
    "<end_of_turn>", "<eos>",
)  # fmt: skip
_FENCE = re.compile(r"`{3,}")
_LANGUAGE_WORD = re.compile(r"[\w+#.-]*[ \t]*\n")

# Marks that open a quotation, each with those that can close it.
_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "„": "“”",
    "‚": "‘’",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "〝": "〞〟",
    "＂": "＂",
}
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")


def clean(answer: str) -> str:
    """Return an answer without outer white space, thinking blocks, its turn's end, an enclosing fence, and quotes.

    Removed in this order, and again as long as that changes the text (a fence in quotes), so
    `clean(clean(x)) == clean(x)`. A text quoted as a whole loses its quotes, whoever put them there. Never raises.
    """
    text = _without_thinking(trim(answer))
    while (inner := _without_quotes(_without_fence(_without_turn_end(text)))) != text:
        text = inner
    return text


def _without_thinking(text: str) -> str:
    """Return the text outside thinking blocks.

    A block runs from its tag to the first closing one, or to the end. A closing tag without an opening one (chat
    templates may open it themselves) ends a block that began with the answer.
    """
    outside: list[str] = []
    position: int | None = 0  # where the text outside begins; None within a block
    for tag in _THINKING.finditer(text):
        closing = bool(tag[1] or tag[2])
        if closing:
            if position is not None:
                outside.clear()
            position = tag.end()
        elif position is not None:
            outside.append(text[position : tag.start()])
            position = None
    if position == 0:
        return text
    if position is not None:
        outside.append(text[position:])
    return trim(" ".join(outside))  # a space, so that what stood around a block does not become a new tag


def _without_turn_end(text: str) -> str:
    """Return the text before the tokens that end a model's turn."""
    end = len(text)
    while token := next((token for token in _TURN_ENDS if text.endswith(token, 0, end)), ""):
        end -= len(token)
        while end and text[end - 1].isspace():
            end -= 1
    return trim(text[:end]) if end < len(text) else text


def _without_fence(text: str) -> str:
    """Return the text inside a code fence that encloses it, without the fence's language word."""
    opening = _FENCE.match(text)
    if opening is None or len(text) < 2 * opening.end():
        return text
    fence = opening[0]
    inner = text[len(fence) : -len(fence)]
    if not text.endswith(fence) or "```" in inner or inner.endswith("`"):
        return text
    word = _LANGUAGE_WORD.match(inner)
    return trim(inner[word.end() :] if word else inner)


def _without_quotes(text: str) -> str:
    """Return the text inside one pair of quotes that encloses it: not `"a" and "b"`, nor two pairs, `"“a”"`."""
    inner = _inside_quotes(text)
    return text if inner is None or _inside_quotes(inner) is not None else inner


def _inside_quotes(text: str) -> str | None:
    """Return the text between a pair of quotes that opens at the start and closes at the end, and not before."""
    if len(text) < 2 or text[-1] not in _QUOTES.get(text[0], ""):
        return None
    first, last, inner = text[0], text[-1], text[1:-1]
    marks = _APOSTROPHE.sub("", inner) if "'" in (first, last) or "’" in (first, last) else inner
    if first == last:
        return None if first in marks else trim(inner)
    depth = 1
    for mark in marks:
        depth += (mark == first) - (mark == last)
        if depth == 0:
            return None
    return trim(inner) if depth == 1 else None

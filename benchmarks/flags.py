"""How long the ten error flags take."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from benchmarks.registry import Measurement, benchmark
from generation.flags import find_flags
from plumbline.study.transformations import EIGHT

OUTPUTS = 100_000
# Their words are put together at random: no sentences, but each language's own letters, lengths and scripts.
TEXTS = {
    "en": "the man plays guitar on a small stage while children watch and nobody in the street listens to him",
    "de": "der Mann spielt Gitarre auf einer kleinen Bühne während die Kinder zuschauen und niemand zuhört",
    "fr": "un homme joue de la guitare sur une petite scène pendant que des enfants le regardent",
    "es": "un hombre toca la guitarra en un pequeño escenario mientras los niños miran y nadie escucha",
    "tr": "adam küçük bir sahnede gitar çalıyor çocuklar ise izliyor ama kimse onu dinlemiyor",
    "ar": "رجل يعزف على الغيتار في مسرح صغير بينما يشاهد الأطفال ولا أحد يستمع",
    "hi": "आदमी छोटे मंच पर गिटार बजाता है जबकि बच्चे देखते हैं और कोई नहीं सुनता",
    "ja": "男性が 小さな 舞台で ギターを 弾き 子供たちが 見ている 誰も 聞いていない",
}
BEGINNINGS = ("", "", "", "", "", "", "Translation: ", "I'll try. ", "{", "https://example.com/page ")


@benchmark
def seconds_100k() -> Iterator[Measurement]:
    """Seconds of one core for the flags of 100,000 outputs of 2 to 60 words in eight languages, loading included.

    One in eight is in another language than it should be, some begin like an error. Making them up is not counted.
    """
    cases = list(made_up(OUTPUTS))
    start = time.process_time()  # of all threads: a library's second thread would be a second core
    found = sum(
        bool(find_flags(original, output, EIGHT[name], language=language)) for original, output, name, language in cases
    )
    seconds = time.process_time() - start
    if not OUTPUTS / 10 < found < OUTPUTS:
        raise RuntimeError(f"{found} of {OUTPUTS} outputs have flags: nothing was measured")
    yield Measurement("generation.flags_seconds_100k", seconds, "s", at_most=60)


def made_up(number: int) -> Iterator[tuple[str, str, str, str]]:
    """Original, output, transformation and the language that the output should be in."""
    draw = random.Random(1337)  # noqa: S311
    words = {language: text.split() for language, text in TEXTS.items()}
    for _ in range(number):
        name = draw.choice(list(EIGHT))
        language = draw.choice(list(words))
        spoken = language if draw.random() < 7 / 8 else draw.choice(list(words))
        length = draw.randint(2, 60)
        output = draw.choice(BEGINNINGS) + " ".join(draw.choices(words[spoken], k=length))
        yield " ".join(draw.choices(words["en"], k=max(1, length + draw.randint(-5, 5)))), output, name, language

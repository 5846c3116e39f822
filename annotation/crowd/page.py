"""What the pages of crowd workers say beside the rubric's own words: `words/<language>.yaml`, one file a language."""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path
from typing import Any

import langcodes
import yaml

from annotation.rubric import Rubric
from annotation.sampling.queues import Queue
from annotation.training import TrainingItem, plain, read_items, solution, solved, training_words
from annotation.wordings import ENGLISH
from plumbline.fields import fields_of
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec

FOLDER = Path(str(files("annotation.crowd").joinpath("words")))
RIGHT_TO_LEFT = {"Adlm", "Arab", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"}  # scripts of living languages


def rating_words(language: str, *, of_pairs: bool = True) -> dict[str, str]:
    """The words of the page on which a batch is rated; English where a language has none.

    Where no pairs are judged (`of_pairs`), the page speaks of items.
    """
    return _part(language, "rating", of_pairs=of_pairs)


def prolific_words(language: str, *, of_pairs: bool = True) -> dict[str, str]:
    """The words of the pages before and after Argilla's own; of pairs in English none, which stand where they are made.

    `of_pairs` as above.
    """
    return _part(language, "prolific", of_pairs=of_pairs)


def _part(language: str, name: str, *, of_pairs: bool) -> dict[str, str]:
    words: dict[str, str] = _words(language).get(name, {})
    return words if of_pairs else {**words, **_words(language)["items"][name]}


def consent_of(crowd: CrowdSpec, language: str) -> str:
    """What workers who are addressed in a language agree to: the study's own words, or else ours."""
    text = crowd.consent.get(language) or crowd.consent.get(ENGLISH)
    return text or str(_words(language)["consent_text"])


def direction(language: str) -> str:
    """`rtl` for a language (code) whose usual script runs from right to left, otherwise `ltr`."""
    return "rtl" if langcodes.Language.get(language).maximize().script in RIGHT_TO_LEFT else "ltr"


@functools.cache
def _words(language: str) -> dict[str, Any]:
    file = FOLDER / f"{language}.yaml"
    text = (file if file.is_file() else FOLDER / f"{ENGLISH}.yaml").read_text(encoding="utf-8")
    words: dict[str, Any] = yaml.safe_load(text)
    return words


def examples_html(study: Study, rubric: Rubric, queue: Queue) -> str:
    """The known pairs of a queue as HTML in which every text is data; empty where the study has none of it.

    Raises as `read_items`.
    """
    items = [item for item in read_items(study, rubric) if Queue.of(item.pair) == queue]
    if not items:
        return ""
    language = rubric.language_for(queue.language, queue.output_language)
    title = plain(training_words(language)["examples"])
    whole = "".join(_example(item, rubric, queue, language) for item in items)
    return f'<details class="examples"><summary dir="auto">{title}</summary>{whole}</details>'


def _example(item: TrainingItem, rubric: Rubric, queue: Queue, language: str) -> str:
    titles = rubric.field_titles(item.pair.pool, language, queue.language, queue.output_language)
    texts = "".join(
        f'<h3 dir="auto">{plain(titles[field.name])}</h3>'
        f'<p class="text" lang="{field.language}" dir="{direction(field.language)}">{plain(field.text)}</p>'
        for field in fields_of(item.pair)
    )
    return f'<div dir="auto">{texts}{solved(solution(item, rubric))}</div>'

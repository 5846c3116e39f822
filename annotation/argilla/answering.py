"""What stands open on Argilla's page beside the texts: what was asked, the ends of each scale, and the keys.

Argilla folds guidelines and descriptions of questions away, but neither fields nor titles, and every Argilla has these.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.resources import files

import yaml

from annotation.questions import Question, said
from annotation.rubric import Rubric
from annotation.subject_words import ANSWERING, ASKED
from annotation.wordings import ENGLISH

TITLE = 500  # characters of a title that Argilla takes


def beside(rubric: Rubric, pool: str, language: str) -> dict[str, tuple[str, str]]:
    """The fields beside the texts of a pool's items, by name: title and text. Of `language` where there are words."""
    words = answering_words(language)
    about = words["about"] if rubric.fields.shown else said(rubric.fields.asked, language)
    return {
        ASKED: (about, said(rubric.pool(pool).asked, language)),
        ANSWERING: (words["title"], _keys(rubric, pool, language)),
    }


def answering_words(language: str) -> Mapping[str, str]:
    """The platform's own words in a language; in English where there are none."""
    every = _words()
    return every.get(language, every[ENGLISH])


def anchored(rubric: Rubric, pool: str, question: Question, language: str) -> str:
    """A question's title, of a rating with what the ends of its scale mean, if Argilla takes so long a title."""
    title = said(question.title, language)
    if question.kind != "rating":
        return title
    points = rubric.meaning(pool, question, language)[1]
    longer = f"{title} ({'; '.join(f'{point} = {points[point]}' for point in (min(points), max(points)))})"
    return longer if len(longer) <= TITLE else title


def _keys(rubric: Rubric, pool: str, language: str) -> str:
    """A line of keys."""
    words, scales = answering_words(language), {one.scale for one in rubric.asked(pool)}
    scale = scales.pop() if len(scales) == 1 else ()
    points = words["range"].format(low=scale[0], high=scale[-1]) if scale else words["number"]
    return words["keys"].format(points=points)


@functools.cache
def _words() -> dict[str, dict[str, str]]:
    text = files("annotation").joinpath("answering_words.yaml").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = yaml.safe_load(text)
    return found

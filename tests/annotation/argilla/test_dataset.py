"""What stands open on Argilla's page beside the texts, in every language, and campaigns that began before it did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from annotation.argilla.dataset import ANSWERING_WORDS, Words
from annotation.rubric import load_rubric
from annotation.sampling.queues import Queue
from annotation.wordings import ANSWERING, ASKED, words_in
from plumbline.study import ROOT, Study, load_study

LANGUAGES = ("en", "de", "fr", "es", "ar", "ha", "ru", "sw", "tr", "ur")


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_all_words(code: str) -> None:
    words = words_in(ANSWERING_WORDS, code)
    assert words.keys() == words_in(ANSWERING_WORDS, "en").keys() and all(words.values())
    assert code == "en" or words["keys"] != words_in(ANSWERING_WORDS, "en")["keys"]
    line = words["keys"].format(points=words["range"].format(low=1, high=5))
    assert all(one in line for one in ("1", "5", "+"))


def old(words: Words) -> Words:
    """A dataset as versions before published it: without the keys, and with plain titles."""
    fields = {name: title for name, title in words.fields.items() if name != ANSWERING}
    questions = {name: (words.plain.get(name, title), said) for name, (title, said) in words.questions.items()}
    return replace(words, fields=fields, questions=questions, beside={}, plain={}, platforms=frozenset())


def test_a_campaign_that_began_before_goes_on_as_it_is(demo: Study) -> None:
    words = Words.of(load_rubric(demo), Queue("paraphrasing", "en", "en"))
    assert words.questions["quality"][0] != words.plain["quality"] and "; 5 = " in words.questions["quality"][0]
    assert words.beside[ANSWERING].startswith("1 to 5 answers")
    shown = old(words)
    assert not words.corrects(shown) and words.fits(shown)
    changed = replace(shown, questions=shown.questions | {"quality": ("Quality?", shown.questions["quality"][1])})
    assert words.corrects(changed).startswith(
        "the wording of the question 'quality': Quality?, now Transformation quality"
    )
    untitled = replace(shown, fields=shown.fields | {"original": "Source"})
    assert words.corrects(untitled).startswith("the texts' titles")


def test_other_subjects_say_what_they_are_about_and_labels_need_no_points() -> None:
    study = load_study(ROOT / "studies" / "items.yaml")
    words = Words.of(load_rubric(study), Queue("sample_reranking", "en", "en"))
    assert words.fields == {
        ASKED: "What this is about", "query": "Question", "candidates": "Passages", ANSWERING: "Keys"
    }  # fmt: skip
    assert words.beside[ASKED] == "You see a question and some passages, in an order that says nothing."
    assert words.beside[ANSWERING].startswith("A number answers")  # labels, and ratings
    assert words.questions["best"][0] == "Which passage answers the question best?"
    assert words.questions["clear"][0].endswith("(1 = It cannot be answered; 5 = It is clear without any doubt)")
    shown = old(words)
    without = replace(shown, fields={name: title for name, title in shown.fields.items() if name != ASKED})
    assert not words.corrects(without) and words.fits(without)
    assert not words.corrects(replace(words, fields=words.fields | {ASKED: "About", ANSWERING: "Hints"}))

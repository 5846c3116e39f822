"""The pages of crowd workers: their words beside the rubric's own (`words/<language>.yaml`), and MTurk's whole page.

A worker on MTurk rates a batch on one HTML file that needs nothing else (`mturk/question.html`). Texts stand in a JSON
block and reach the page as text alone, so nothing in them is ever HTML or script. MTurk takes it as an HTMLQuestion, of
at most 65,535 bytes (its API reference, HTMLQuestion).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import langcodes
import yaml

from annotation.crowd.platform import Offer
from annotation.human.order import FIELD, OrderDrawing, drawing_of
from annotation.questions import ENGLISH, worded
from annotation.rubric import Rubric
from annotation.sampling.queues import Queue
from annotation.training import WORDS, TrainingItem, plain, read_items, solution, solved
from annotation.wordings import CROWD_WORDS, words_in
from plumbline.errors import StudyError
from plumbline.fields import SECOND, fields_of
from plumbline.scales import MOST_LEVELS, is_fine
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec

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
    file = CROWD_WORDS / f"{language}.yaml"
    text = (file if file.is_file() else CROWD_WORDS / f"{ENGLISH}.yaml").read_text(encoding="utf-8")
    words: dict[str, Any] = yaml.safe_load(text)
    return words


def examples_html(training: Sequence[TrainingItem], rubric: Rubric, queue: Queue) -> str:
    """The known pairs of a queue as HTML in which every text is data; empty where there is none of it."""
    items = [item for item in training if Queue.of(item.pair) == queue]
    if not items:
        return ""
    language = rubric.language_for(queue.language, queue.output_language)
    title = plain(words_in(WORDS, language)["examples"])
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


# What a page sends back of a pair beside the questions' answers (`mturk.form`).
COMMENT, SECONDS, DISCARDED, ORDER, TURN = "comment", "seconds", "discarded", "order", "turn"
COMMENT_LENGTH = 2000  # characters of a comment that are kept
LIMIT = 65_535  # bytes of a question that MTurk takes
NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd"
# What would end the script, or is no character of XML 1.0; JSON has escapes for all of it.
_UNSAFE = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def question_xml(study: Study, rubric: Rubric, offer: Offer, submit_to: str) -> str:
    """A batch's page as MTurk takes it.

    Raises StudyError where it is larger than MTurk allows, and for a question called like another field of the form.
    """
    taken = (COMMENT, SECONDS, DISCARDED, *((ORDER, TURN) if drawing_of(study, offer.pairs) else ()))
    if name := next(
        (question.name for question in rubric.asked_questions(offer.batch.pool) if question.name in taken), ""
    ):
        raise StudyError(
            f"{study.file}: question {name!r}: MTurk's page sends something else back by this name; give the question,"
            " or the task that it is called after, another"
        )
    html = question_html(study, rubric, offer, submit_to)
    whole = (
        f'<HTMLQuestion xmlns="{NAMESPACE}"><HTMLContent><![CDATA[{html}]]></HTMLContent>'
        "<FrameHeight>0</FrameHeight></HTMLQuestion>"
    )
    size = len(whole.encode())
    if size > LIMIT:
        raise StudyError(
            f"batch {offer.batch.batch_id}: its page is {size:,} bytes and MTurk takes {LIMIT:,}; make sample.batch"
            f" smaller than {study.sample.batch}, or take shorter texts"
        )
    return whole


def question_html(study: Study, rubric: Rubric, offer: Offer, submit_to: str) -> str:
    """A batch's page. `submit_to` is the address that its form posts to. Raises StudyError for an unknown pool."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 (extra `crowd`)

    if study.crowd is None:
        raise StudyError(f"{study.file}: has no `crowd`; add it to ask crowd workers")
    batch = offer.batch
    language = rubric.language_for(batch.language, batch.output_language)
    pool = rubric.pool(batch.pool)
    questions, drawing = _questions(rubric, batch.pool, language), drawing_of(study, offer.pairs)
    words = rating_words(language, of_pairs=not rubric.fields.shown)
    if any(question["kind"] == "rating" for question in questions):  # its points are the keys
        words = {**words, "keyboard": rating_words(language)["keyboard"]}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(
        files("annotation.crowd.mturk").joinpath("question.html").read_text(encoding="utf-8")
    )
    return template.render(
        language=language,
        direction=direction(language),
        words=words,
        title=worded(pool.title, language),
        guidelines=[worded(pool.asked, language), worded(rubric.guidelines, language)],
        # Questions about one candidate each are explained once.
        questions=[question for question in questions if not drawing or question["name"] not in drawing.questions[1:]],
        examples=examples_html(read_items(study, rubric), rubric, batch.queue),
        consent=consent_of(study.crowd, language),
        contact=study.crowd.contact,
        submit_to=submit_to,
        study=study.name,
        batch=batch.batch_id,
        data=_json(_data(study.name, rubric, offer, language, words) | _drawn(drawing, offer)),
    )


def _questions(rubric: Rubric, pool: str, language: str) -> list[dict[str, Any]]:
    questions = []
    for question in rubric.asked_questions(pool):
        hint, options = rubric.meaning(pool, question, language)
        scale = question.asked(rubric.scale)
        if scale.kind == "rating":
            if is_fine(scale.scale):
                raise StudyError(
                    f"rubric {rubric.name!r}, {question.name}: a crowd's page has a button for each point, and this"
                    f" scale has more than {MOST_LEVELS}; give it fewer, or collect ratings from a file"
                )
            options = {point: options.get(point, "") for point in scale.scale}  # a button each, worded or not
        words = {"name": question.name, "title": worded(question.title, language), "hint": hint}
        questions.append({**words, "kind": scale.kind, "required": scale.required, "points": list(options.items())})
    return questions


def _data(study_name: str, rubric: Rubric, offer: Offer, language: str, words: dict[str, str]) -> dict[str, Any]:
    """What the page's script builds the pairs from. It does not say which of them are controls."""
    batch = offer.batch
    titles = rubric.field_titles(batch.pool, language, batch.language, batch.output_language)
    codes = {name: batch.output_language if name in SECOND else batch.language for name in titles}
    instruction = {
        "asked": {
            "title": worded(rubric.fields.asked, language),
            "text": worded(rubric.pool(batch.pool).asked, language),
            "lang": language,
            "dir": direction(language),
        }
    }
    return {
        "study": study_name,
        "batch": batch.batch_id,
        "words": words,
        **(instruction if not rubric.fields.shown else {}),
        "comment": {"title": worded(rubric.comment, language), "most": COMMENT_LENGTH},
        "questions": _questions(rubric, batch.pool, language),
        "texts": [
            {"title": title, "lang": codes[name], "dir": direction(codes[name])} for name, title in titles.items()
        ],
        "pairs": [{"id": pair.pair_id, "texts": [field.value for field in fields_of(pair)]} for pair in offer.pairs],
    }


def _drawn(drawing: OrderDrawing | None, offer: Offer) -> dict[str, Any]:
    """What the page draws for each assignment: the order of the items, and of the candidates of each."""
    if drawing is None:
        return {}
    names = [field.name for field in fields_of(offer.pairs[0])]
    drawn = {"seed": drawing.seed, "questions": drawing.questions, "options": drawing.options}
    groups = [(drawing.groups or {}).get(pair.pair_id, "") for pair in offer.pairs]
    return {"drawn": {**drawn, "field": names.index(FIELD) if drawing.number else -1, "groups": groups}}


def _json(data: dict[str, Any]) -> str:
    """JSON that can stand in a script element and in XML as it is; letters stay as they are, which keeps it small."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)

"""The page on which a crowd worker rates a batch: one HTML file that needs nothing else (`question.html`).

Texts stand in a JSON block and reach the page as text alone, so nothing in them is ever HTML or script. MTurk takes it
as an HTMLQuestion, of at most 65,535 bytes (its API reference, HTMLQuestion).
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from annotation.crowd.mturk.form import COMMENT, COMMENT_LENGTH, DISCARDED, ORDER, SECONDS, TURN
from annotation.crowd.page import consent_of, direction, examples_html, rating_words
from annotation.crowd.platform import Offer
from annotation.human.order import FIELD, OrderDrawing, drawing_of
from annotation.questions import worded
from annotation.rubric import Rubric
from plumbline.errors import StudyError
from plumbline.fields import SECOND, fields_of
from plumbline.study import Study

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
        examples=examples_html(study, rubric, batch.queue),
        consent=consent_of(study.crowd, language),
        contact=study.crowd.contact,
        submit_to=submit_to,
        study=study.name,
        batch=batch.batch_id,
        data=_json(_data(study, rubric, offer, language, words) | _drawn(drawing, offer)),
    )


def _questions(rubric: Rubric, pool: str, language: str) -> list[dict[str, Any]]:
    questions = []
    for question in rubric.asked_questions(pool):
        hint, options = rubric.meaning(pool, question, language)
        scale = question.asked(rubric.scale)
        words = {"name": question.name, "title": worded(question.title, language), "hint": hint}
        questions.append({**words, "kind": scale.kind, "required": scale.required, "points": list(options.items())})
    return questions


def _data(study: Study, rubric: Rubric, offer: Offer, language: str, words: dict[str, str]) -> dict[str, Any]:
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
        "study": study.name,
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

"""A batch as Prolific's Task Builder shows it, and its answers back (docs.prolific.com/api-reference/task-builder).

The whole batch is one row of data: Task Builder makes one task of a row and deals out tasks, so that every participant
gets the same task, with the pages in our order. The first page has the guidelines, each other page a pair and its
questions. Prolific gives each question an id when the batch is created; an answer names that id, and so its pair.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotation.crowd.page import COMMENT, DISCARDED, ORDER, SECONDS, TURN, consent_of
from annotation.crowd.platform import Offer
from annotation.human.order import drawing_of
from annotation.page import rating_words
from annotation.questions import AND, Question, worded
from annotation.rubric import Rubric
from annotation.sampling.queues import Queue
from plumbline.errors import DataError, StudyError
from plumbline.fields import fields_of
from plumbline.records import Pair
from plumbline.scales import is_fine
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec

UNABLE = "cannot judge"  # the space keeps it apart from labels and points
_SHOWN = ("dataset_field", "rich_text", "image")  # items of a page that ask nothing
Json = dict[str, Any]


def refuse_unshowable(study: Study, rubric: Rubric, offer: Offer) -> None:
    """Raise StudyError for a batch that Task Builder cannot show."""
    taken = (COMMENT, SECONDS, DISCARDED, ORDER, TURN)  # names of a form's fields beside questions
    questions = [question.asked(rubric.scale) for question in rubric.asked_questions(offer.batch.pool)]
    reasons = {
        "an order that is drawn for each rater": drawing_of(study, offer.pairs) is not None,
        "the differences between two texts (raters.difference)": study.raters.difference,
        "training pairs (training)": bool(study.training),
        "questions before the first pair (crowd.comprehension)": bool(study.crowd and study.crowd.comprehension),
        **{f"the ranking {question.name!r}": question.kind == "ranking" for question in questions},
        **{f"the slider {question.name!r}": is_fine(question.scale) for question in questions},
        **{f"a question named {question.name!r}": question.name in taken for question in questions},
    }
    if what := next((what for what, holds in reasons.items() if holds), ""):
        raise StudyError(
            f"{study.file}: Prolific's Task Builder cannot show {what}; remove this, or set crowd.address to the https"
            " address of your own server (docs/howto/prolific.md)"
        )


def row_of(pairs: Iterable[Pair]) -> dict[str, str]:
    """Return a batch's texts by the names of the data set's fields."""
    return {
        _name(number, index): field.text
        for number, pair in enumerate(pairs, 1)
        for index, field in enumerate(fields_of(pair), 1)
    }


def schema_of(row: Mapping[str, str]) -> Json:
    """Return the data set's schema for a row."""
    return {"strict": True, "fields": {name: {"type": "text"} for name in row}}


def details_of(crowd: CrowdSpec, rubric: Rubric, queue: Queue) -> dict[str, str]:
    """Return the task's name, introduction and steps for participants, as HTML with escaped texts."""
    language, pool = rubric.language_for(queue.language, queue.output_language), rubric.pool(queue.pool)
    return {
        "task_name": worded(pool.title, language),
        "task_introduction": f"<p>{html.escape(consent_of(crowd, language))}</p>",
        "task_steps": f"<p>{html.escape(worded(pool.asked, language))}</p>",
    }


def pages_of(rubric: Rubric, offer: Offer) -> list[Json]:
    """The pages of a batch (`batch_items`)."""
    queue = offer.batch.queue
    language = rubric.language_for(queue.language, queue.output_language)
    titles = rubric.field_titles(queue.pool, language, queue.language, queue.output_language)
    cannot = rating_words(language, of_pairs=not rubric.fields.shown)["cannot"]
    questions = [
        [_asked(rubric, queue.pool, question, language, cannot)] for question in rubric.asked_questions(queue.pool)
    ]
    guidelines = rubric.guidelines_for(queue.pool, language)
    pages = [_page([[[{"type": "rich_text", "content": guidelines, "content_format": "markdown"}]]])]
    for number, pair in enumerate(offer.pairs, 1):
        texts = [
            [_title(titles[field.name]), {"type": "dataset_field", "field": _name(number, index)}]
            for index, field in enumerate(fields_of(pair), 1)
        ]
        beside = [texts] if len(texts) == 2 else [[text] for text in texts]
        pages.append(_page([*beside, *([question] for question in questions)]))
    return pages


def _name(number: int, index: int) -> str:
    return f"pair_{number}_text_{index}"


def _page(rows: Sequence[Sequence[Sequence[Json]]]) -> Json:
    """A page of rows of columns of items."""
    return {"rows": [{"columns": [{"items": list(items)} for items in columns]} for columns in rows]}


def _title(text: str) -> Json:
    return {"type": "rich_text", "content": f"<p><strong>{html.escape(text)}</strong></p>"}


def _asked(rubric: Rubric, pool: str, question: Question, language: str, cannot: str) -> Json:
    """Return a question in Task Builder's form; each choice also offers "cannot judge"."""
    hint, meanings = rubric.meaning(pool, question, language)
    scaled = question.asked(rubric.scale)
    description = f"{worded(question.title, language)} {hint}".strip()
    if scaled.kind == "text":
        return {"type": "free_text", "description": description}
    if scaled.kind == "rating":
        words = {point: f"{point}: {meanings[point]}" if meanings.get(point) else str(point) for point in scaled.scale}
        options = [{"label": label, "value": str(point)} for point, label in words.items()]
    else:
        options = [{"label": meanings[name], "value": name} for name in scaled.labels]
    return {
        "type": "multiple_choice",
        "description": description,
        "answer_limit": len(options) if scaled.kind == "multi_label" else 1,
        "options": [*options, {"label": cannot, "value": UNABLE}],
    }


def fields_of_responses(responses: Iterable[Json], ids: Mapping[str, tuple[str, str]], where: str) -> dict[str, str]:
    """Return a participant's responses as fields of a form (`mturk.form`); `ids` has each id's pair and question.

    Raises DataError for an answer to an unknown question, and for a question that is answered twice.
    """
    fields: dict[str, str] = {}
    answered: set[str] = set()
    for response in responses:
        content = response.get("response")
        content = content if isinstance(content, dict) else {}
        question_id = str(content.get("instruction_id"))
        if question_id not in ids or question_id in answered:
            what = "twice" if question_id in answered else "that its batch does not have"
            raise DataError(f"{where}: answers a question {what}")
        answered.add(question_id)
        pair_id, question = ids[question_id]
        entries = content.get("answer")
        entries = entries if isinstance(entries, list) else []
        chosen = [str(entry.get("value")) for entry in entries if isinstance(entry, dict)]
        if UNABLE in chosen:
            fields[f"{pair_id}.{DISCARDED}"] = "yes"
        else:
            text = content.get("text")
            fields[f"{pair_id}.{question}"] = AND.join(chosen) or (text if isinstance(text, str) else "")
    return fields


def question_ids(rubric: Rubric, offer: Offer, pages: object, where: str) -> dict[str, tuple[str, str]]:
    """Return the pair and the question of each id in a batch's pages on Prolific.

    Raises DataError if the pages are not the batch's.
    """
    questions = rubric.asked_questions(offer.batch.pool)
    try:
        items = [
            [
                (str(item["id"]), item["type"])
                for row in page["rows"]
                for column in row["columns"]
                for item in column["items"]
                if item["type"] not in _SHOWN
            ]
            for page in pages  # type: ignore[attr-defined]  # it may have any type
        ]
    except (TypeError, KeyError):
        items = []
    kinds = ["free_text" if question.kind == "text" else "multiple_choice" for question in questions]
    if [[kind for _, kind in page] for page in items] != [[], *(kinds for _ in offer.pairs)]:
        raise DataError(
            f"{where}: the batch's pages on Prolific differ from those created; check whether they were changed there"
        )
    return {
        question_id: (pair.pair_id, question.name)
        for pair, page in zip(offer.pairs, items[1:], strict=True)
        for (question_id, _), question in zip(page, questions, strict=True)
    }

"""Pages for crowd workers: the words around the rating page, the consent, and MTurk's page.

A worker on MTurk rates a batch on the rating page in one HTML file (`annotation.page.task.hosted_html`). MTurk takes it
as an HTMLQuestion, of at most 65,535 bytes (its API reference, HTMLQuestion).
"""

from __future__ import annotations

from collections.abc import Sequence

from annotation.campaign.rubric import Rubric
from annotation.crowd.platform import Offer
from annotation.human.order import drawing_of
from annotation.page.task import direction, hosted_html, items_of, task_of, words_of
from annotation.page.training import WORDS, TrainingItem, plain, read_items, solution, solved
from annotation.questions.entries import ENGLISH
from annotation.questions.wordings import words_in
from annotation.sampling.queues import Queue
from plumbline.errors import StudyError
from plumbline.fields import fields_of
from plumbline.study import Study
from plumbline.study.crowd import CrowdSpec

# The fields that a page sends back for a pair, beside the questions' answers (`mturk.form`).
COMMENT, SECONDS, DISCARDED = "comment", "seconds", "discarded"
LIMIT = 65_535  # bytes of a question that MTurk takes
NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd"


def prolific_words(language: str, *, of_pairs: bool = True) -> dict[str, str]:
    """Return the words of the pages around the rating page; the English words on pairs are in the pages themselves.

    If the study judges no pairs (`of_pairs`), the pages speak of items.
    """
    content = words_of(language)
    words: dict[str, str] = content.get("prolific", {})
    return words if of_pairs else {**words, **content["items"]["prolific"]}


def consent_of(crowd: CrowdSpec, language: str) -> str:
    """Return the consent text for workers addressed in a language: the study's, or else ours."""
    text = crowd.consent.get(language) or crowd.consent.get(ENGLISH)
    return text or str(words_of(language)["consent_text"])


def examples_html(training: Sequence[TrainingItem], rubric: Rubric, queue: Queue) -> str:
    """Return the training pairs of a queue as HTML with escaped texts; empty without any."""
    items = [item for item in training if Queue.of(item.pair) == queue]
    if not items:
        return ""
    language = rubric.language_for(queue.language, queue.output_language)
    title = plain(words_in(WORDS, language)["examples"])
    examples = ""
    for item in items:
        titles = rubric.field_titles(item.pair.pool, language, queue.language, queue.output_language)
        texts = "".join(
            f'<h3 dir="auto">{plain(titles[field.name])}</h3>'
            f'<p class="text" lang="{field.language}" dir="{direction(field.language)}">{plain(field.text)}</p>'
            for field in fields_of(item.pair)
        )
        examples += f'<div dir="auto">{texts}{solved(solution(item, rubric))}</div>'
    return f'<details class="examples"><summary dir="auto">{title}</summary>{examples}</details>'


def question_xml(study: Study, rubric: Rubric, offer: Offer, submit_to: str) -> str:
    """Return a batch's page in MTurk's format.

    Raises StudyError if it is larger than MTurk allows, for an order that each worker draws, and for a question with
    the name of another form field.
    """
    if drawing_of(study, offer.pairs) is not None:
        otherwise = ", or take sample.together out" if study.sample.together else ""
        raise StudyError(
            f"{study.file}: MTurk's page cannot record an order drawn for each worker; ask people on Prolific or by"
            f" link{otherwise}"
        )
    names = {entry.name for entry, _ in rubric.asked_questions(offer.batch.pool)}
    if name := next((name for name in (COMMENT, SECONDS, DISCARDED) if name in names), ""):
        raise StudyError(
            f"{study.file}: question {name!r}: MTurk's page uses this name for another field; rename the question, or"
            " the task that it is named after"
        )
    html = question_html(study, rubric, offer, submit_to)
    xml = (
        f'<HTMLQuestion xmlns="{NAMESPACE}"><HTMLContent><![CDATA[{html}]]></HTMLContent>'
        "<FrameHeight>0</FrameHeight></HTMLQuestion>"
    )
    size = len(xml.encode())
    if size > LIMIT:
        raise StudyError(
            f"batch {offer.batch.batch_id}: its page has {size:,} bytes, but MTurk takes at most {LIMIT:,}; set"
            f" sample.batch below {study.sample.batch}, or use shorter texts"
        )
    return xml


def question_html(study: Study, rubric: Rubric, offer: Offer, submit_to: str) -> str:
    """A batch's page. `submit_to` is the address that its form posts to. Raises StudyError for an unknown pool."""
    if study.crowd is None:
        raise StudyError(f"{study.file}: has no `crowd`; add it to ask crowd workers")
    batch = offer.batch
    language = rubric.language_for(batch.language, batch.output_language)
    training, consent = read_items(study, rubric), consent_of(study.crowd, language)
    task = task_of(study, rubric, batch.queue, batch.batch_id, training=training, consent=consent)
    return hosted_html(task, items_of(offer.pairs), submit_to)

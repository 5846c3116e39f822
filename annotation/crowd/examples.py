"""Known pairs as worked examples on the pages of crowd workers: what is right, and why, folded above the work."""

from __future__ import annotations

from annotation.crowd.page_words import direction
from annotation.rubric import Rubric
from annotation.sampling.queues import Queue
from annotation.training import Item, plain, read_items, solution, solved, training_words
from plumbline.fields import fields_of
from plumbline.study import Study


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


def _example(item: Item, rubric: Rubric, queue: Queue, language: str) -> str:
    titles = rubric.field_titles(item.pair.pool, language, queue.language, queue.output_language)
    texts = "".join(
        f'<h3 dir="auto">{plain(titles[one.name])}</h3>'
        f'<p class="text" lang="{one.language}" dir="{direction(one.language)}">{plain(one.text)}</p>'
        for one in fields_of(item.pair)
    )
    return f'<div dir="auto">{texts}{solved(solution(item, rubric))}</div>'

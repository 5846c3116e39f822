"""A preview of each queue in one file: the rating page as a trial, and the pages that participants see before it.

A file and not a server: it can be opened without anything running, kept beside the study, and sent to somebody who
reads the language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotation.campaign.records import CONTROLS, PAIRS, CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.crowd.batches import make_batches
from annotation.crowd.page import examples_html
from annotation.crowd.prolific.workspaces import shown_first
from annotation.human.order import OrderDrawing, drawing_of
from annotation.page.task import hosted_html, items_of, known_items, script_policy, task_of
from annotation.page.training import by_queue, read_items, training_rubric
from annotation.questions.wordings import addressed_lines
from annotation.sampling.queues import Queue, frames_by_queue
from annotation.server.plugin.plumbline_argilla.crowd_html import document, entrance_body
from annotation.server.plugin.plumbline_argilla.crowd_words import said
from annotation.verdicts.preregistration import rubric_to_ask
from plumbline.exhibits.templates import html
from plumbline.prompts import rubric_file
from plumbline.records import Pair
from plumbline.store import as_record, atomic

FILE = "preview.html"
MADE_FROM = ("pairs.parquet", "controls.parquet")
SHOWN = 3  # pairs of a queue, by default


def write_preview(records: CampaignRecords, most: int = SHOWN) -> Path:
    """Write the page into the study's folder, atomically; return the file. Raises as `preview_html`."""
    html = preview_html(records, most)
    path = records.study.folder / FILE
    with atomic(path) as file:
        file.write(html.encode())
    return path


def preview_html(records: CampaignRecords, most: int = SHOWN) -> str:
    """Return the page with at most so many pairs of a queue.

    Raises DataError or StudyError, such as before sampling.
    """
    study, queues = records.study, _queues(records, most)
    rubric, fixed = rubric_to_ask(records)
    items, entrances = read_items(study, rubric), _before(records, rubric)
    texts = {(queue.language, queue.output_language) for queue in queues}
    read, training = {queue.languages for queue in queues}, []
    for queue, of_queue in by_queue(items).items():
        if queue.languages in read:
            task = task_of(study, training_rubric(rubric, of_queue), queue, queue.dataset(study.name))
            training.append(_section(task, known_items(of_queue, rubric), len(of_queue)))
    drawn = []
    for queue, (number, first) in queues.items():
        drawing, examples = drawing_of(study, first), items if study.crowd else ()
        task = task_of(study, rubric, queue, queue.dataset(study.name), training=examples, drawing=drawing)
        drawn.append(_section(task, items_of(first), number, drawing) | {"before": entrances.get(queue, "")})
    facts = {
        "study": study.name,
        "policy": script_policy(),
        "item": study.called.item,
        "made_from": [str(study.folder / name) for name in MADE_FROM],
        "worded_by": str(study.folder / "rules.json" if fixed else rubric_file(study)),
        "notes": addressed_lines(study, rubric, texts),
        "queues": [*training, *drawn],
    }
    return html(f"annotation/{FILE}", facts)


def _queues(records: CampaignRecords, most: int) -> dict[Queue, tuple[int, list[Pair]]]:
    """Return the number of pairs of every queue, and the first of them, in the order of publication, as records."""
    records.need(PAIRS, CONTROLS)
    drawn, sizes = records.collected.pairs, {}
    staying = drawn[~drawn["pair_id"].isin(list(records.collected.withdrawn))]
    for queue, group in frames_by_queue(staying):
        ordered, page = group.sort_values("pair_id"), ["wave", "language", "original", "seed"]
        first = ordered.head(most)
        if records.study.shown_together(queue.pool) > 1:  # whole pages
            first = ordered.merge(first[page].drop_duplicates())
        rows = (dict(zip(first.columns, row, strict=True)) for row in first.itertuples(index=False, name=None))
        sizes[queue] = len(group), [as_record(row, Pair) for row in rows]
    return sizes


def _section(
    task: Mapping[str, Any], items: Sequence[Mapping[str, Any]], number: int, drawing: OrderDrawing | None = None
) -> dict[str, Any]:
    """A trial of the rating page; its items go by their places, so that nobody finds them again."""
    numbers = {item["id"]: str(number) for number, item in enumerate(items, 1)}
    numbered = [{**item, "id": numbers[item["id"]]} for item in items]
    if drawing is not None and drawing.groups is not None:
        groups = {numbers[pair_id]: group for pair_id, group in drawing.groups.items() if pair_id in numbers}
        drawing = replace(drawing, groups=groups)
    page = hosted_html(task, numbered, "", drawing=drawing)
    return {
        "id": task["queue"],
        "name": task["name"],
        "number": number,
        "shown": len(items),
        "page": page,
        "before": "",
    }


def _before(records: CampaignRecords, rubric: Rubric) -> dict[Queue, str]:
    """Return the page that a crowd's participants see before the first batch of each queue, if a crowd is asked."""
    study = records.study
    if study.crowd is None:
        return {}
    pairs, controls = (
        [pair for pair in part if pair.pair_id not in records.withdrawn] for part in (records.pairs, records.controls)
    )
    pages: dict[Queue, str] = {}
    for batch in make_batches(study, pairs, controls):
        if batch.queue not in pages:
            extra = {"examples": examples_html(read_items(study, rubric), rubric, batch.queue), "return_code": ""}
            room = {**shown_first(study, rubric, batch.queue, len(batch.pair_ids)), **extra}
            pages[batch.queue] = document(said(room, "title"), entrance_body("", room, ""), room)
    return pages

"""What raters will see of each queue, as one HTML page made of what is published to Argilla and of the crowd's page.

A page and not a server: it can be opened without anything running, kept beside the study, and sent to somebody who
reads the language.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from annotation.argilla.dataset import Words, record_of
from annotation.argilla.training import RIGHT, by_queue, record_of_item, words_of
from annotation.campaign_records import CONTROLS, PAIRS, CampaignRecords
from annotation.crowd.batches import make_batches
from annotation.crowd.page import examples_html, question_html
from annotation.crowd.platform import Offer
from annotation.crowd.prolific.workspaces import shown_first
from annotation.human.tasks import reworded_lines
from annotation.rubric import Rubric
from annotation.sampling.queues import Queue, frames_by_queue
from annotation.server.plugin.plumbline_argilla.crowd_html import document, entrance_body
from annotation.server.plugin.plumbline_argilla.crowd_words import said
from annotation.training import TrainingItem, read_items
from annotation.verdicts.preregistration import rubric_to_ask
from annotation.wordings import addressed_lines, rubric_file
from plumbline.fields import plain
from plumbline.records import Pair
from plumbline.store import as_record, atomic
from plumbline.study import Study

FILE = "preview.html"
MADE_FROM = ("pairs.parquet", "controls.parquet")
SHOWN = 3  # pairs of a queue, by default


def write_preview(study: Study, most: int = SHOWN) -> Path:
    """Write the page into the study's folder, atomically; the file. Raises as `preview_html`."""
    html = preview_html(study, most)
    path = study.folder / FILE
    with atomic(path) as file:
        file.write(html.encode())
    return path


def preview_html(study: Study, most: int = SHOWN, *, headed: bool = True) -> str:
    """The page, with at most so many pairs of a queue, and without its heading where another page has one (`headed`).

    Raises DataError or StudyError, such as before sampling.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 (not needed by most commands)

    records = CampaignRecords.open(study)
    queues = _queues(records, most)
    rubric, fixed = rubric_to_ask(records)
    batches, items = _batches(records, rubric), read_items(study, rubric)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("annotation").joinpath(FILE).read_text(encoding="utf-8"))
    texts = {(queue.language, queue.output_language) for queue in queues}
    return template.render(
        study=study.name,
        headed=headed,
        item=study.called.item,
        made_from=[str(study.folder / name) for name in MADE_FROM],
        worded_by=str(study.folder / "rules.json" if fixed else rubric_file(study)),
        notes=[*addressed_lines(study, rubric, texts), *reworded_lines(study)],
        queues=[
            *_training(study.name, rubric, by_queue(items), {queue.languages for queue in queues}),
            *(_shown(study.name, rubric, queue, queued, batches.get(queue, ())) for queue, queued in queues.items()),
        ],
    )


def _training(
    study_name: str,
    rubric: Rubric,
    items_by_queue: Mapping[Queue, Sequence[TrainingItem]],
    read: Collection[frozenset[str]],
) -> Iterator[dict[str, Any]]:
    """The training datasets of those who read these languages, with what is right folded below each known pair."""
    for queue, items in items_by_queue.items():
        if queue.languages in read:
            words = words_of(rubric, queue, items)
            records = [record_of_item(item, rubric, words.beside)["fields"] for item in items]
            folded = [record[RIGHT] for record in records]
            yield _section(study_name, rubric, queue, words, records) | {"number": len(items), "folded": folded}


@dataclass(frozen=True)
class _QueueSize:
    """How many pairs a queue has, and the first of them, in the order in which they are published."""

    number: int
    first: Sequence[Pair]


def _queues(records: CampaignRecords, most: int) -> dict[Queue, _QueueSize]:
    """Every queue; of a large sample the pairs that are shown are made, and no others."""
    records.need(PAIRS, CONTROLS)
    drawn, sizes = records.collected.pairs, {}
    staying = drawn[~drawn["pair_id"].isin(list(records.collected.withdrawn))]
    for queue, group in frames_by_queue(staying):
        first = group.sort_values("pair_id").head(most)
        rows = (dict(zip(first.columns, row, strict=True)) for row in first.itertuples(index=False, name=None))
        sizes[queue] = _QueueSize(len(group), [as_record(row, Pair) for row in rows])
    return sizes


def _shown(study_name: str, rubric: Rubric, queue: Queue, queued: _QueueSize, pages: Sequence[str]) -> dict[str, Any]:
    """A queue as Argilla shows it, and the pages of its first batch on crowd platforms, if workers are asked."""
    words = Words.of(rubric, queue)
    records = [record_of(pair, words.beside)["fields"] for pair in queued.first]
    return _section(study_name, rubric, queue, words, records) | {"number": queued.number, "pages": pages}


def _section(
    study_name: str, rubric: Rubric, queue: Queue, words: Words, records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A dataset as Argilla shows it, with these records' fields."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 (not needed by most commands)

    return {
        "name": queue.dataset(study_name),
        "language": rubric.language_for(queue.language, queue.output_language),
        # As Argilla renders guidelines: the rubric's own Markdown alone, whose tags are text.
        "guidelines": MarkdownIt("commonmark", {"html": False, "breaks": True}).render(words.guidelines),
        "records": [[(title, plain(record[name])) for name, title in words.fields.items()] for record in records],
        "questions": list(_questions(words)),
        "pages": (),
        "folded": (),
    }


def _questions(words: Words) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """Title, description, how it is chosen, and points or labels of each question; texts have none."""
    for name, (title, description) in words.questions.items():
        form = words.forms.get(name)  # the comment has none
        chosen = {"multi_label": "checkbox", "ranking": "number"}.get(form.kind, "radio") if form else "radio"
        yield title, description, chosen, [word or str(value) for value, word in form.options] if form else []


def _batches(records: CampaignRecords, rubric: Rubric) -> dict[Queue, tuple[str, str]]:
    """The pages of each queue's first batch, on MTurk and before it on Prolific, where crowd workers are asked."""
    study = records.study
    if study.crowd is None:
        return {}
    pairs, controls = (
        [pair for pair in shown if pair.pair_id not in records.withdrawn] for shown in (records.pairs, records.controls)
    )
    by_id = {pair.pair_id: pair for pair in [*pairs, *controls]}
    pages: dict[Queue, tuple[str, str]] = {}
    for batch in make_batches(study, pairs, controls):
        if batch.queue not in pages:
            offer = Offer(batch, tuple(by_id[pair_id] for pair_id in batch.pair_ids), places=1, reward=0)
            extra = {"examples": examples_html(read_items(study, rubric), rubric, batch.queue), "return_code": ""}
            room = {**shown_first(study.crowd, rubric, batch.queue, len(offer.pairs)), **extra}
            body = entrance_body("", room, range(len(room["questions"])), "", again=False)
            first = document(said(room, "title"), body, room)
            pages[batch.queue] = question_html(study, rubric, offer, "about:blank"), first
    return pages

"""Raters' training in Argilla: a dataset of known pairs in a workspace, with the right answers folded below each.

Argilla's custom fields cannot show them: their pages run inline scripts and put the record's texts into one unescaped,
which our server's policy forbids (`hardening.page_policy`) and nobody should allow. A field of Markdown
can hold `<details>`, and Argilla cleans its HTML; the texts in it are escaped character by character (`folded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from annotation.argilla.client import Argilla, DatasetListing
from annotation.argilla.dataset import Words, answered, give_task, record_of
from annotation.argilla.publish import ExtraField, create_dataset, has_rating_page
from annotation.campaign.offering import alone
from annotation.campaign.rubric import Rubric
from annotation.page.task import known_items, task_of
from annotation.page.training import TrainingItem, by_queue, folded, read_items, solution, training_rubric
from annotation.questions.entries import worded
from annotation.questions.wordings import ASKED
from annotation.sampling.queues import Queue, workspace_name
from plumbline.study import Study
from plumbline.words import count

RIGHT = "right"  # the field with the right answers and their reasons
# Argilla stops showing a record with this many answers. It is never reached, so everybody answers every known pair.
ENOUGH = 100_000


def words_of(study: Study, rubric: Rubric, queue: Queue, items: Sequence[TrainingItem], *, ours: bool) -> Words:
    """Return the words of a training dataset; only on our page (`ours`) do they have the right answers."""
    of_training = training_rubric(rubric, items)
    if not ours:
        return Words.of(of_training, queue)
    rights = {item["id"]: item["right"] for item in known_items(items, rubric)}
    task = task_of(study, of_training, queue, queue.dataset(study.name))
    return Words.of(of_training, queue, task={**task, "known": rights})


def publish_training(study: Study, argilla: Argilla, rubric: Rubric) -> dict[str, int]:
    """Publish the study's known pairs in the workspaces whose raters read them; return how many are new, by dataset.

    An unanswered dataset is created anew if its pairs or words changed. An answered one keeps its pairs and words, and
    gets the missing pairs, because its answers never count. Raises as `read_items`.
    """
    if not study.training:
        return {}
    new = dict[str, int]()
    with alone(study):
        listed, workspaces = argilla.datasets(), argilla.workspaces()
        for queue, items in by_queue(read_items(study, rubric)).items():
            address = (workspace_name(study.name, queue.languages), queue.dataset(study.name))
            if address[0] in workspaces:
                words = words_of(study, rubric, queue, items, ours=has_rating_page(argilla.connection))
                new[address[1]] = _fill(argilla, address, listed.get(address), items, rubric, words)
    return new


def _fill(
    argilla: Argilla,
    address: tuple[str, str],
    dataset: DatasetListing | None,
    items: Sequence[TrainingItem],
    rubric: Rubric,
    words: Words,
) -> int:
    """Create a dataset, again if needed, and send the missing pairs; return how many."""
    wanted = {item.pair.pair_id: item for item in items}
    present = set() if dataset is None else {record["external_id"] for record in argilla.records(dataset.id)}
    if dataset is not None and not _fits(argilla, dataset, words, wanted, present):
        argilla.request("DELETE", f"/datasets/{dataset.id}")
        dataset, present = None, set()
    below = ExtraField(RIGHT, words.extra_texts[ASKED])  # its title says that nothing counts
    dataset_id = create_dataset(argilla, words, address, ENOUGH, below) if dataset is None else dataset.id
    if not present:
        give_task(argilla, dataset_id, words.task)
    if missing := sorted(set(wanted) - present):
        records = []
        for item in (wanted[pair_id] for pair_id in missing):
            right, texts = solution(item, rubric), dict(words.extra_texts)
            if ASKED in texts:
                texts[ASKED] = worded(rubric.pool(item.pair.pool).asked, right.language)
            record = record_of(item.pair, texts)
            record["fields"][RIGHT] = folded(right)
            records.append(record)
        argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": records})
    return len(missing)


def training_lines(new: Mapping[str, int]) -> list[str]:
    """Return a line on the training pairs that were published; none without any."""
    number = count(sum(new.values()), "new pair")
    return [f"training: {number} in {', '.join(new)}; answers to training pairs never count"] if new else []


def _fits(
    argilla: Argilla, dataset: DatasetListing, words: Words, wanted: Mapping[str, TrainingItem], present: set[str]
) -> bool:
    """Return whether a dataset can stay, because it is up to date or has answers."""
    if dataset.status == "draft":
        return False
    published = Words.shown(argilla, dataset.id)
    fields = {name: title for name, title in published.fields.items() if name != RIGHT}
    changed = words.corrects(replace(published, fields=fields))
    return (present <= set(wanted) and not changed) or answered(argilla, dataset.id)

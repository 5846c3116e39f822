"""Raters' answers to the known pairs of their training, from Argilla; no verdict uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.argilla.accounts import named_raters
from annotation.argilla.client import Argilla, DatasetListing
from annotation.campaign.names import account_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import Rubric
from annotation.page.training import POOL, TRAINED, TrainingItem, TrainingResult, read_items
from annotation.sampling.queues import Queue, workspace_name
from plumbline.fields import expected_of
from plumbline.store import write_json


def by_queue(items: Sequence[TrainingItem]) -> dict[Queue, list[TrainingItem]]:
    """Return the training pairs of each training dataset, one for each pair of languages."""
    items_by_queue: dict[Queue, list[TrainingItem]] = {}
    for item in items:
        items_by_queue.setdefault(Queue(POOL, item.pair.language, item.pair.output_language), []).append(item)
    return items_by_queue


def training_datasets(
    study_name: str, argilla: Argilla, known_items: Sequence[TrainingItem]
) -> Iterator[tuple[DatasetListing, dict[str, TrainingItem]]]:
    """Yield the existing datasets of known pairs, with their pairs by id."""
    listed = argilla.datasets() if known_items else {}
    for queue, items in by_queue(known_items).items():
        dataset = listed.get((workspace_name(study_name, queue.languages), queue.dataset(study_name)))
        if dataset is not None:
            yield dataset, {item.pair.pair_id: item for item in items}


def collect_training(records: CampaignRecords, argilla: Argilla, rubric: Rubric) -> None:
    """Write raters' answers to training pairs to `training.json`, which no verdict uses."""
    study = records.study
    if not study.training:
        return
    rows, named = list[TrainingResult](), named_raters(study.raters, argilla)
    for dataset, items in training_datasets(study.name, argilla, read_items(study, rubric)):
        answers: dict[tuple[str, str], dict[str, Any]] = {}
        for record in argilla.records(dataset.id):
            for response in record.get("responses") or []:
                if response["status"] == "submitted":
                    answers[response["user_id"], record["external_id"]] = response.get("values") or {}
        for user_id, user in argilla.members(dataset.workspace_id).items():
            counts = named is None or user.simulated or user_id in named
            if user.role == "annotator" and counts and user.username not in study.raters.former:
                rater = (account_pseudonym(study.name, user.id, simulated=user.simulated), user.simulated)
                rows += [
                    _trained(rater, item, answers.get((user_id, key)), rubric, rubric.quality.within)
                    for key, item in items.items()
                ]
    write_json(study.folder / TRAINED.name, sorted(rows, key=lambda result: (result.rater_id, result.item_id)))


def _trained(
    rater: tuple[str, bool], item: TrainingItem, values: Mapping[str, Any] | None, rubric: Rubric, within: float
) -> TrainingResult:
    """Return a rater's result on a known pair.

    `values` is None without a submitted answer.
    """
    questions = {question.name: question for question in rubric.asked(item.pair.pool)}
    judged = right = 0
    for name, expected in expected_of(item.pair).items():
        value = questions[name].kept((values or {}).get(name, {}).get("value")) if name in questions else None
        if value is not None:
            judged += 1
            right += questions[name].is_right(value, expected, within)
    return TrainingResult(
        rater_id=rater[0],
        item_id=item.pair.pair_id,
        simulated=rater[1],
        answered=values is not None,
        judged=judged,
        right=right,
    )

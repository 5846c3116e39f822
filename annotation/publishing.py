"""Putting a study's pairs before its annotators: a dataset in Argilla for each queue, made once and filled up.

Raters see a pair's two texts and its languages, and nothing else: Argilla hides metadata in its pages but not in its
API, so what could sway a rater (the data set, which pairs are controls) is not sent. Pairs go in the order of their
ids, which are hashes: the order of arrival tells nothing either. Each rater's queue is a shuffle of its own; the local
server does so, and Argilla elsewhere too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from annotation.campaign import Admission, admit_annotators, alone, refuse_other_prompts, shown
from annotation.client import Argilla, translated
from annotation.preregistration import fix_rules
from annotation.queues import Queue, queues_of
from annotation.rubric import Rubric, load_rubric, said
from generation.exceptions import StudyError
from generation.records import Pair
from generation.study import Study

BATCH = 500  # pairs sent at once; Argilla takes up to 500
SHOWN = ("language", "output_language")
COMMENT = "comment"


@dataclass(frozen=True)
class Publication:
    """What publishing did."""

    new: Mapping[str, int]  #: pairs that were not there before, by dataset
    admission: Admission


def publish(study: Study, argilla: Argilla, reads: Mapping[str, Sequence[str]] | None = None) -> Publication:
    """Put the study's pairs, controls and repeats before its annotators.

    Makes workspaces and datasets where they are missing, adds pairs that are not there yet (by pair id), and lets in
    the annotators who read a queue's languages (`reads`, by user name; those of whom nothing is known everywhere).
    Answers are never touched. Fixes the rules by which they will be judged. Raises StudyError or DataError for a
    sample that is no longer the study's, for rules that changed after the first rating, and for datasets that ask
    something else.
    """
    with alone(study):
        return _publish(study, argilla, reads or {})


def _publish(study: Study, argilla: Argilla, reads: Mapping[str, Sequence[str]]) -> Publication:
    rubric, pairs = load_rubric(study), shown(study)
    refuse_other_prompts(study, pairs)
    fix_rules(study)
    there = argilla.workspaces()
    for name in sorted({queue.workspace(study) for queue in queues_of(pairs)} - set(there)):
        argilla.request("POST", "/workspaces", json={"name": name})
    admission = admit_annotators(study, argilla, reads)
    return Publication(_fill(study, argilla, rubric, pairs), admission)


def _fill(study: Study, argilla: Argilla, rubric: Rubric, pairs: Sequence[Pair]) -> dict[str, int]:
    """Make the datasets that are missing, and send the pairs that are; returns how many, by dataset."""
    listed, new = argilla.datasets(), {}
    for queue, wanted in queues_of(pairs).items():
        name = queue.dataset(study)
        dataset = listed.get((queue.workspace(study), name))
        if dataset is not None and dataset.status == "draft":
            # An earlier run was cut off while it made this one: nobody has seen it, so it is made anew.
            argilla.request("DELETE", f"/datasets/{dataset.id}")
            dataset = None
        if dataset is None:
            where = (queue.workspace(study), name)
            dataset_id, present = create_dataset(argilla, rubric, queue, where, study.raters.per_pair), set[str]()
        else:
            dataset_id = dataset.id
            _check_questions(argilla, name, dataset_id, rubric)
            _check_answers(study, name, dataset.distribution["min_submitted"])
            present = {record["external_id"] for record in argilla.records(dataset_id)}
        missing = sorted((pair for pair in wanted if pair.pair_id not in present), key=lambda pair: pair.pair_id)
        send_pairs(argilla, dataset_id, name, missing)
        new[name] = len(missing)
    return new


def send_pairs(argilla: Argilla, dataset_id: str, name: str, pairs: Sequence[Pair]) -> None:
    """Put pairs into a dataset that does not have them, with what raters may know of them. Raises ServiceError."""
    with tqdm(total=len(pairs), unit="pair", desc=f"publishing {name}", disable=not pairs) as bar:
        for start in range(0, len(pairs), BATCH):
            batch = [_record(pair) for pair in pairs[start : start + BATCH]]
            argilla.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": batch})
            bar.update(len(batch))


def _record(pair: Pair) -> dict[str, Any]:
    return {
        "external_id": pair.pair_id,
        "fields": {"original": pair.original, "transformed": pair.transformed},
        "metadata": {name: getattr(pair, name) for name in SHOWN},
    }


def create_dataset(
    argilla: Argilla, rubric: Rubric, queue: Queue, where: tuple[str, str], per_pair: int, *, note: str = ""
) -> str:
    """A dataset for pairs of a queue: two texts, the rubric's questions, a free comment, `per_pair` answers a pair.

    `where` are the workspace's name and its own; `note` (Markdown) stands above and below the guidelines. Returns the
    dataset's id; raises ServiceError.
    """
    import argilla as rg  # noqa: PLC0415 (takes a second)

    client, language = argilla.sdk, rubric.language_for(queue.language, queue.output_language)
    titles = rubric.field_titles(language, queue.language, queue.output_language)
    settings = rg.Settings(
        guidelines="\n\n".join(filter(None, (note, rubric.guidelines_for(queue.pool, language), note))),
        # Never Markdown: the texts are data, and a rater must see them as they are.
        fields=[
            rg.TextField(name=name, title=title, use_markdown=False, client=client)
            for name, title in zip(("original", "transformed"), titles, strict=True)
        ],
        questions=[
            *(
                rg.RatingQuestion(
                    name=question.name,
                    title=said(question.title, language),
                    description=rubric.description(queue.pool, question, language),
                    values=list(rubric.scale),
                    client=client,
                )
                for question in rubric.questions
            ),
            rg.TextQuestion(name=COMMENT, title=said(rubric.comment, language), required=False, client=client),
        ],
        metadata=[rg.TermsMetadataProperty(name=name, visible_for_annotators=True, client=client) for name in SHOWN],
        distribution=rg.TaskDistribution(min_submitted=per_pair),
    )
    with translated(argilla.url):
        return str(rg.Dataset(name=where[1], workspace=where[0], settings=settings, client=client).create().id)


def _check_questions(argilla: Argilla, name: str, dataset_id: str, rubric: Rubric) -> None:
    """Refuse a dataset that asks something else than the rubric: its answers would be read wrongly."""
    asked = {
        question["name"]: [option["value"] for option in question["settings"]["options"]]
        for question in argilla.request("GET", f"/datasets/{dataset_id}/questions")["items"]
        if question["settings"]["type"] == "rating"
    }
    wanted = {question.name: list(rubric.scale) for question in rubric.questions}
    if asked != wanted:
        raise StudyError(
            f"the dataset {name!r} in Argilla asks {asked}, the rubric {rubric.name!r} {wanted};"
            " give the new study another name"
        )


def _check_answers(study: Study, name: str, asked: int) -> None:
    """Refuse a dataset that wants another number of answers a pair: they would be too few, or too many."""
    if asked != study.raters.per_pair:
        raise StudyError(
            f"the dataset {name!r} in Argilla asks {asked} answers a pair, raters.per_pair is now"
            f" {study.raters.per_pair}; undo the change, or give the new study another name"
        )

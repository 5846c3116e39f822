"""Whether the sample's pairs are still of the study's generator and prompts, and of the outputs on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from annotation.campaign_records import CampaignRecords
from annotation.rubric import Rubric
from annotation.subjects import read_items
from generation.jobs import Plan
from generation.unit import COMMAND
from plumbline.errors import DataError, StudyError
from plumbline.fields import fields_of
from plumbline.records import Pair, TransformedText
from plumbline.store import read_batches
from plumbline.study import Study


def refuse_other_prompts(records: CampaignRecords, pairs: Collection[Pair]) -> None:
    """Refuse a campaign whose pairs are not of the study's generator and prompts, or whose outputs have been replaced.

    Raises StudyError or DataError. Where outputs are not on this machine, the study alone is looked at.
    """
    study = records.study
    if not study.judging.transforms:
        _refuse_other_items(study, records.rubric, pairs)
        return
    refuse_other_makers(study, ((pair.transformation, pair.generator_hash, pair.prompt_hash) for pair in pairs))
    makers = Plan(study).makers
    for name, was in sorted({(pair.transformation, pair.generator_kind) for pair in pairs if pair.generator_kind}):
        if was != makers[name].kind:
            raise StudyError(
                f"{study.file}: the sample's pairs of {name} are of a generator of kind {was}, and the study's is of"
                f" kind {makers[name].kind} now; undo the change, or give the new study another name"
            )


def refuse_other_makers(study: Study, makers: Iterable[tuple[str, str, str]]) -> None:
    """The same from what made the pairs: their transformations, and the hashes of generator and prompts."""
    by_name = dict[str, set[tuple[str, str]]]()
    if not study.judging.transforms:
        _refuse_other_groups(study, (name for name, *_ in makers))
        return
    plan = Plan(study)
    for name, *hashes in makers:
        by_name.setdefault(name, set()).add((hashes[0], hashes[1]))
    for name, maker_hashes in by_name.items():
        if name not in plan.makers or maker_hashes != {(plan.makers[name].hash, plan.prompt_hashes[name])}:
            what = _other(next(iter(maker_hashes))[1])
            raise StudyError(
                f"{study.file}: the sample's pairs of {name} were made by {what} than the"
                " study has now; undo the change, or give the new study another name"
            )
        on_disk = _made_on_disk(study, name)
        if on_disk and not maker_hashes <= on_disk:
            raise DataError(
                f"{study.outputs / name}: these outputs are of {_other(next(iter(maker_hashes))[1])} than the sample's"
                " pairs; bring the outputs back, or give the new study another name"
            )


def _refuse_other_groups(study: Study, names: Iterable[str]) -> None:
    if lost := sorted(set(names) - set(study.kinds)):
        raise StudyError(
            f"{study.file}: the sample has items of {lost[0]!r}, which the study's subject does not have now; undo the"
            " change, or give the new study another name"
        )


def _refuse_other_items(study: Study, rubric: Rubric, pairs: Collection[Pair]) -> None:
    """Refuse a sample of groups that the study has no longer, or of texts that are no longer in the file."""
    _refuse_other_groups(study, (pair.transformation for pair in pairs))
    file = study.judging.file_of(study)
    if file is None or not file.is_file():
        return
    keys = {item.key for item in read_items(study, rubric)[0]}
    if lost := [pair for pair in pairs if pair.key not in keys]:
        raise DataError(
            f"{file}: {len(lost)} of the sample's texts are not in it any more, such as"
            f" {fields_of(lost[0])[0].text[:60]!r} ({lost[0].transformation}); bring them back, or give the new study"
            " another name"
        )


def _other(prompt_hash: str) -> str:
    """What made a transformation's texts, where it is no longer the same; without prompts no generator did."""
    return "another generator or other prompts" if prompt_hash else "another function or file of outputs"


def _made_on_disk(study: Study, transformation: str) -> set[tuple[Any, Any]]:
    """Which generators and prompts made a transformation's outputs on disk: pairs of their hashes."""
    makers = set()
    for seed in study.seeds:
        path = study.transformation_file(transformation, seed)
        if path.exists():
            for table in read_batches(path, TransformedText, study.command(COMMAND), ["generator_hash", "prompt_hash"]):
                keys = table.group_by(table.schema.names).aggregate([])
                makers |= set(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    return makers

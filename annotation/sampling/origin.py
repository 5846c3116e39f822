"""Whether the sample's pairs are still of the study's generator and prompts, and of the outputs on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from annotation.campaign_records import CampaignRecords
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
        _refuse_other_groups({pair.transformation for pair in pairs}, study.kinds, study.file)
        if (file := study.judging.file_of(study)) is not None and file.is_file():
            _refuse_other_items(pairs, {item.key for item in read_items(study, records.rubric)[0]}, file)
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
        _refuse_other_groups({name for name, *_ in makers}, study.kinds, study.file)
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
        files = (study.transformation_file(name, seed) for seed in study.seeds)
        on_disk = _makers_in((file for file in files if file.exists()), study.command(COMMAND))
        if on_disk and not maker_hashes <= on_disk:
            raise DataError(
                f"{study.outputs / name}: these outputs are of {_other(next(iter(maker_hashes))[1])} than the sample's"
                " pairs; bring the outputs back, or give the new study another name"
            )


def _refuse_other_groups(sampled: Collection[str], groups: Collection[str], study_file: Path) -> None:
    if lost := sorted(set(sampled) - set(groups)):
        raise StudyError(
            f"{study_file}: the sample has items of {lost[0]!r}, which the study's subject does not have now; undo the"
            " change, or give the new study another name"
        )


def _refuse_other_items(pairs: Collection[Pair], keys: Collection[str], file: Path) -> None:
    """Refuse a sample of texts that are no longer in the file, whose items have these keys."""
    if lost := [pair for pair in pairs if pair.key not in keys]:
        raise DataError(
            f"{file}: {len(lost)} of the sample's texts are not in it any more, such as"
            f" {fields_of(lost[0])[0].text[:60]!r} ({lost[0].transformation}); bring them back, or give the new study"
            " another name"
        )


def _other(prompt_hash: str) -> str:
    """What made a transformation's texts, where it is no longer the same; without prompts no generator did."""
    return "another generator or other prompts" if prompt_hash else "another function or file of outputs"


def _makers_in(files: Iterable[Path], command: str) -> set[tuple[Any, Any]]:
    """Which generators and prompts made the outputs in files of `command`: pairs of their hashes."""
    makers = set()
    for file in files:
        for table in read_batches(file, TransformedText, command, ["generator_hash", "prompt_hash"]):
            keys = table.group_by(table.schema.names).aggregate([])
            makers |= set(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    return makers

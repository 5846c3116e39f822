"""Whether the sample's pairs are still of the study's generator and prompts, and of the outputs on disk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from generation.jobs import Plan
from generation.unit import COMMAND
from plumbline.errors import DataError, StudyError
from plumbline.records import Pair, TransformedText
from plumbline.store import read_batches
from plumbline.study import Study


def refuse_other_prompts(study: Study, pairs: Iterable[Pair]) -> None:
    """Refuse a campaign whose pairs are not of the study's generator and prompts, or whose outputs have been replaced.

    Raises StudyError or DataError. Where outputs are not on this machine, the study alone is looked at.
    """
    refuse_other_makers(study, ((pair.transformation, pair.generator_hash, pair.prompt_hash) for pair in pairs))
    kinds = {pair.generator_kind for pair in pairs} - {"", study.generator.kind}
    if kinds:
        raise StudyError(
            f"{study.file}: the sample's pairs are of a generator of kind {min(kinds)}, and the study's is of kind"
            f" {study.generator.kind} now; undo the change, or give the new study another name"
        )


def refuse_other_makers(study: Study, makers: Iterable[tuple[str, str, str]]) -> None:
    """The same from what made the pairs: their transformations, and the hashes of generator and prompts."""
    plan, by_name = Plan(study), dict[str, set[tuple[str, str]]]()
    for name, *hashes in makers:
        by_name.setdefault(name, set()).add((hashes[0], hashes[1]))
    for name, made in by_name.items():
        if made != {(plan.generator_hash, plan.prompt_hashes.get(name))}:
            raise StudyError(
                f"{study.file}: the sample's pairs of {name} were made by another generator or other prompts than the"
                " study has now; undo the change, or give the new study another name"
            )
        there = _made_on_disk(study, name)
        if there and not made <= there:
            raise DataError(
                f"{study.outputs / name}: these outputs are of another generator or other prompts than the sample's"
                " pairs; bring the outputs back, or give the new study another name"
            )


def _made_on_disk(study: Study, transformation: str) -> set[tuple[Any, Any]]:
    """Which generators and prompts made a transformation's outputs on disk: pairs of their hashes."""
    found = set()
    for seed in study.seeds:
        path = study.transformation_file(transformation, seed)
        if path.exists():
            for table in read_batches(path, TransformedText, study.command(COMMAND), ["generator_hash", "prompt_hash"]):
                keys = table.group_by(table.schema.names).aggregate([])
                found |= set(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    return found

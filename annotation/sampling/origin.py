"""Whether pairs are still those of the study's generator, prompts and outputs, or of its items."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from annotation.campaign.records import CampaignRecords
from annotation.campaign.subjects import read_items
from generation.jobs import COMMAND, Plan
from plumbline.errors import PlumblineError
from plumbline.fields import fields_of
from plumbline.records import Pair, TransformedText
from plumbline.store import read_batches
from plumbline.study import Study
from plumbline.words import count

_MAKER = ["generator_hash", "prompt_hash"]


def mismatch(records: CampaignRecords, pairs: Collection[Pair]) -> tuple[str, ...]:
    """Return why pairs are no longer the study's: the first reason, or the faults of a file; empty if they are.

    Its settings, and its outputs or texts as far as they are on this machine, are compared with the pairs' own facts.
    """
    if not pairs:
        return ()
    reasons = _of_outputs(records.study, pairs) if records.study.judging.transforms else _of_items(records, pairs)
    try:
        reason = next(reasons, "")
    except PlumblineError as error:
        return error.args
    return (f"{reason}, or give the new study another name",) if reason else ()


def _of_outputs(study: Study, pairs: Collection[Pair]) -> Iterator[str]:
    plan = Plan(study)
    origins = {(pair.transformation, pair.generator_kind, pair.generator_hash, pair.prompt_hash) for pair in pairs}
    for name, kind, *hashes in sorted(origins):
        source = "another generator or other prompts" if hashes[1] else "another function or file of outputs"
        maker = plan.makers.get(name)
        if maker is None or hashes != [maker.hash, plan.prompt_hashes[name]]:
            yield (
                f"{study.file}: the sample's pairs of {name} were made by {source} than the study has now; undo the"
                " change"
            )
        elif kind != maker.kind:
            yield (
                f"{study.file}: the sample's pairs of {name} come from a generator of kind {kind}, but the study's is"
                f" now of kind {maker.kind}; undo the change"
            )
        on_disk = _makers_on_disk(study, name)
        if on_disk and tuple(hashes) not in on_disk:
            yield (
                f"{study.outputs / name}: these outputs come from {source} than the sample's pairs; restore the outputs"
            )


def _makers_on_disk(study: Study, transformation: str) -> set[tuple[str, str]]:
    """Return the hashes of the generators and prompts of a transformation's outputs on this machine."""
    makers = set[tuple[str, str]]()
    for file in (study.transformation_file(transformation, seed) for seed in study.seeds):
        for table in read_batches(file, TransformedText, study.command(COMMAND), _MAKER) if file.exists() else ():
            makers.update(table.select(_MAKER).to_pandas().drop_duplicates().itertuples(index=False, name=None))
    return makers


def _of_items(records: CampaignRecords, pairs: Collection[Pair]) -> Iterator[str]:
    study = records.study
    if names := sorted({pair.transformation for pair in pairs} - study.kinds.keys()):
        yield (
            f"{study.file}: the sample has items of {names[0]!r}, which the study's subject does not have now; undo the"
            " change"
        )
    file = study.judging.file_of(study)
    if file is not None and file.is_file():
        keys = {item.key for item in read_items(study, records.rubric)[0]}
        if removed := [pair for pair in pairs if pair.key not in keys]:
            yield (
                f"{file}: no longer has {count(len(removed), 'text')} of the sample, such as"
                f" {fields_of(removed[0])[0].text[:60]!r} ({removed[0].transformation}); restore the file"
            )

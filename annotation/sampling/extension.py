"""More pairs for a sample that raters may have seen: a wave of its own, beside which everything stays as it was.

What was offered keeps its rows, ids and controls; the new pairs say of which wave they are, share no near-duplicate
with the earlier ones, and bring controls and repeats for batches of their own. `waves.json` is the evidence: when, why,
and the files' hashes before and after, by which `annotation.offering` tells an extension from an exchange.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annotation.offering import WAVES, alone, is_complete, offered, read_waves, refuse_other_sample
from annotation.records import Wave
from annotation.sampling.controls import read_controls
from annotation.sampling.origin import refuse_other_prompts
from annotation.sampling.sample import COMMAND, SUPPLY, SampleDrawing, all_settings, draw, read_pairs, refuse_other_half
from plumbline.errors import StudyError
from plumbline.manifest import read_manifest, write_kept
from plumbline.records import Pair
from plumbline.store import write_table
from plumbline.study import Study, file_hash
from plumbline.words import trim

_FIXED = ("seed", "without")  # of `sample`: the order of the pairs and what verdicts cover hang on them


def extend_sample(study: Study, reason: str) -> Wave:
    """Add to a sample that was offered what it lacks of what the study asks for now; returns the wave.

    For each transformation so many pairs that there are `sample.pairs`, of all outputs, data sets, languages and seeds
    that the study has; strata that have given less so far go first. Where a run was cut off, its wave is drawn again.
    Raises StudyError for a sample that nobody was offered (it is drawn anew by `draw_sample`), for one whose generator,
    prompts, seed or `without` changed, and where there is nothing to add.
    """
    with alone(study):
        return _extend(study, trim(reason))


def _extend(study: Study, reason: str) -> Wave:
    if not reason:
        raise StudyError("--extend: say why the sample grows; the reason is kept with it")
    if study.judging.does_tasks:
        raise StudyError(f"{study.file}: tasks that people do are drawn once; make a study of its own of more items")
    if study.raters.suggestions == "half":
        raise StudyError(
            f"{study.file}: the sample of an experiment with suggestions is drawn once; make a study of its own of the"
            " pairs to come"
        )
    path, pairs = study.folder / "pairs.parquet", read_pairs(study)
    if not offered(study):
        raise StudyError(
            f"{path} was offered to nobody; `{study.command(COMMAND)}` draws it anew, as large as you like"
        )
    refuse_other_half(study, _known_controls(study))
    refuse_other_sample(study, cut_off=True)
    waves = read_waves(study)
    if waves and not is_complete(study, waves[-1]):
        waves = waves[:-1]
    number = len(waves) + 2
    sample = [pair for pair in pairs if pair.wave < number]
    controls = [pair for pair in _known_controls(study) if pair.wave < number]
    refuse_other_prompts(study, sample)
    _refuse_other_draw(study, waves)
    drawn = draw(study, [*sample, *controls])
    if not drawn.pairs:
        raise StudyError(
            f"{study.file}: {path} has all that the study asks for, or there are no more outputs to draw; raise"
            " sample.pairs, or add transformations, data sets or seeds and generate them"
        )
    return _write(study, reason, number, waves, [sample, controls], drawn)


def _known_controls(study: Study) -> list[Pair]:
    return read_controls(study) if (study.folder / "controls.parquet").exists() else []


def _refuse_other_draw(study: Study, waves: Sequence[Wave]) -> None:
    """Raise StudyError where the study would draw from other outputs, or in another order, than before."""
    noted: dict[str, Any] = read_manifest(study).get("stages", {}).get("sample", {}).get("settings", {})
    was, now = (waves[-1].settings if waves else noted).get("sample", {}), all_settings(study)["sample"]
    changed = [f"sample.{name} (was {was[name]})" for name in _FIXED if was.get(name, now[name]) != now[name]]
    if changed:
        raise StudyError(
            f"{study.file}: a further wave is drawn as the first was, and {' and '.join(changed)} changed; undo the"
            " change, or give the new study another name"
        )


def _write(
    study: Study,
    reason: str,
    number: int,
    waves: Sequence[Wave],
    before: Sequence[Sequence[Pair]],
    drawn: SampleDrawing,
) -> Wave:
    """Note the wave, then write what it makes of the files: the same rows give the same bytes wherever they are."""
    new = {"pairs": drawn.pairs, "controls": drawn.controls}
    rows = {
        name: [*rows_before, *(pair.model_copy(update={"wave": number}) for pair in added)]
        for rows_before, (name, added) in zip(before, new.items(), strict=True)
    }
    hashes = dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        for name, new_rows in rows.items():
            copy = Path(folder) / f"{name}.parquet"
            write_table(copy, new_rows, Pair)
            hashes[f"{name}_sha256"] = file_hash(copy)
    files = {name: study.folder / f"{name}.parquet" for name in rows}
    was = {f"{name}_before": file_hash(path) if path.exists() else "" for name, path in files.items()}
    cut_off = next((wave for wave in read_waves(study) if wave.number == number), None)
    if cut_off is not None:  # one of the files may be the new one already
        was = {name: getattr(cut_off, name) for name in was}
    wave = Wave(
        number=number,
        at=datetime.now(UTC),
        reason=reason,
        pairs=len(drawn.pairs),
        settings=all_settings(study),
        **was,
        **hashes,
    )
    write_kept(study, WAVES, [*waves, wave])
    write_kept(study, SUPPLY, drawn.supply)
    for name in ("controls", "pairs"):
        write_table(files[name], rows[name], Pair)
    return wave

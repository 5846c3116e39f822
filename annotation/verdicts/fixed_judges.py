"""Which judges decide with people, as the rules fix it: nobody may choose a judge by the verdict that it gives.

With `acceptance.judges: {use: decide}` all that changes what judges say is among the rules: their models and prompts,
how they are read, and which outputs they rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from annotation.sampling.sample import known_pairs
from plumbline.errors import StudyError, nearest
from plumbline.file_hashes import cached_file_hash
from plumbline.identity import identity
from plumbline.prompts import prompt_folders
from plumbline.records import Record
from plumbline.store import read_batches
from plumbline.study import Study
from plumbline.study.judges import JudgeSpec, RecordedJudge

COMMAND = "annotation judge run"
#: what of a judge the rules have as the study says it
SAID = ("name", "kind", "model", "revision", "questions", "orders", "score", "least_mass", "attempts", "temperature",
        "seed")  # fmt: skip


class _Judged(Record):
    """What of an output that judges rate tells which it is, and where it was drawn."""

    pair_id: str = Field(description="which output")
    stratum: str = Field(description="where it was drawn from")


def fixed_judges(study: Study) -> dict[str, Any]:
    """Judges and the outputs that they rate, as the rules have them: `each` by name, and the judged `pool`."""
    each = [
        {
            **spec.model_dump(mode="json", include=set(SAID)),
            "settings": identity(*spec.identity()),
            "prompt": _hash(prompt_file(study, spec)),
            **({"file": _hash(study.resolve(spec.path))} if isinstance(spec, RecordedJudge) else {}),
        }
        for spec in study.judges
    ]
    return {"each": each, "pool": pool_identity(study)}


def pool_identity(study: Study) -> str:
    """Hash of the outputs that judges rate, with their strata; empty before they were drawn."""
    drawn = _drawn(study)
    return pool_hash(drawn) if drawn else ""


def pool_hash(drawn: Mapping[str, str]) -> str:
    """Hash of the strata of outputs that judges rate, by pair."""
    return identity("judged-v1", sorted(drawn.items()))


def refuse_undrawn(study: Study) -> None:
    """Raise StudyError where judges are to decide, and the outputs that they rate, the sample's among them, must stand.

    They are fixed with the other rules, before raters begin.
    """
    if study.acceptance.judges.use != "decide":
        return
    drawn = _drawn(study)
    if not drawn or any(pair.pair_id not in drawn for pair in known_pairs(study)):
        lack = "lack pairs of the sample" if drawn else "are not drawn"
        raise StudyError(
            f"{study.file}: acceptance.judges decide, and the outputs that they rate {lack}, which must stand before"
            f" raters begin; run `{study.command(COMMAND)}` first"
        )


def _drawn(study: Study) -> dict[str, str]:
    """The strata of the outputs that judges rate, by pair; none before they were drawn."""
    path = study.judgements / "judged.parquet"
    if not path.exists():
        return {}
    tables = read_batches(path, _Judged, study.command(COMMAND))
    return {row["pair_id"]: row["stratum"] for one in tables for row in one.to_pylist()}


def prompt_file(study: Study, spec: JudgeSpec) -> Path:
    """The file of a judge's prompt. Raises StudyError where there is none of the name."""
    if spec.prompt.endswith((".yaml", ".yml")):
        return study.resolve(spec.prompt)
    folders = [folder / "judges" for folder in prompt_folders()]
    if found := [path for folder in folders if (path := folder / f"{spec.prompt}.yaml").is_file()]:
        return found[0]
    known = sorted({path.stem for folder in folders for path in folder.glob("*.yaml")})
    raise StudyError(f"{study.file}: judge {spec.name!r}: no prompt {spec.prompt!r}; {nearest(spec.prompt, known)}")


def _hash(path: Path) -> str:
    return cached_file_hash(path) if path.exists() else ""

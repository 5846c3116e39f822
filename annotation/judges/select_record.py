"""The choice of a generator as a record: what was chosen, from what, by whom and by which rule."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotation.judges.kept import judge_hash
from annotation.judges.records import SelectedBy, SelectedFrom, SelectedPair, Selection
from annotation.judges.select_generator import Selected
from annotation.judges.select_material import Material
from annotation.judges.selection import not_told_apart
from annotation.verdicts.fixed_judges import prompt_file
from plumbline.identity import identity
from plumbline.manifest import study_hash, versions
from plumbline.study import Study, file_hash

RULE = (
    "the highest mean judgement among the generators with the lowest error rates of first attempts; a unit is a source"
    " sample, its mean over texts, transformations, judges and orders, of judgements that all generators have;"
    " percentile bootstrap, paired bootstrap two by two with Holm's correction at 0.05"
)


def selection_record(study: Study, best: int, material: Material, found: Selected) -> Selection:
    """The record of what `choose` found in what `read_material` read; `best` is how many were to be compared."""
    pairs = found.tables.get("comparisons")
    ranked = found.tables.get("ranking")
    names = list(SelectedPair.model_fields)
    rows: list[dict[str, Any]] = [] if pairs is None else pairs[names].to_dict("records")  # type: ignore[assignment]
    return Selection(
        study=study.name,
        question=found.question,
        chosen="" if ranked is None else str(ranked["generator"].iloc[0]),
        why_none=found.why_none,
        not_told_apart=() if ranked is None else tuple(not_told_apart(ranked)),
        doubts=found.doubts,
        missing=tuple(f"{one.what}; run `{one.command}`" for one in found.missing),
        recorded=found.recorded,
        rule=RULE,
        best=best,
        seed=study.sample.seed,
        transformation_seeds=tuple(study.seeds),
        resamples=0 if pairs is None else int(pairs["resamples"].iloc[0]),
        compared=found.compared,
        left_out=found.left_out,
        generators=tuple(_generators(material, ranked)),
        judges=tuple(_judges(study, material, found.question)),
        comparisons=tuple(SelectedPair.model_validate(row) for row in rows),
        study_sha256=study_hash(study),
        texts_sha256=file_hash(study.folder / "texts.parquet"),
        versions=versions(),
    )


def _generators(material: Material, ranked: pd.DataFrame | None) -> list[SelectedFrom]:
    of_means = {} if ranked is None else {str(row["generator"]): row for row in ranked.to_dict("records")}
    rates = material.errors.set_index("generator")
    outputs = material.outputs
    found = []
    for name, rate, judged in zip(rates.index, rates["error_rate"], rates["chosen"], strict=True):
        by = material.generators[str(name)]
        own = sorted(outputs.loc[outputs["generator"] == name, "pair_id"]) if len(outputs) else []
        found.append(
            SelectedFrom.model_validate(
                {
                    **of_means.get(str(name), {}),
                    "generator": str(name),
                    "model": by.generator.model,
                    "revision": by.generator.revision,
                    "kind": by.generator.kind,
                    "outputs_sha256": file_hash(by.outputs),
                    "error_rate": float(rate),
                    "judged": bool(judged),
                    "judged_outputs": identity("selected-from-v1", own) if own else "",
                }
            )
        )
    return found


def _judges(study: Study, material: Material, question: str) -> list[SelectedBy]:
    said = material.judgements
    scored = said[(said["question"] == question) & (said["status"] == "ok")] if len(said) else said
    found = []
    for one in material.asked:
        spec, own = one.spec, scored[scored["judge"] == one.spec.name] if len(scored) else scored
        content = sorted(zip(own["key"], own["score"].map(repr), strict=True)) if len(own) else []
        found.append(
            SelectedBy(
                judge=spec.name,
                model=spec.model,
                revision=spec.revision,
                kind=spec.kind,
                seed=spec.seed,
                orders=spec.orders,
                reading=one.reading,
                judge_hash=judge_hash(study, spec, one.reading),
                prompt=one.prompt.name,
                prompt_sha256=file_hash(prompt_file(study, spec)),
                n=len(content),
                judgements=identity("selected-by-v1", content) if content else "",
            )
        )
    return found

"""The output of `plumbline judge select`: the choice in one sentence, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from annotation.judges.check import INTERVAL, p_words, printed, text_of
from annotation.judges.records import SelectedBy, SelectedFrom, SelectedPair, Selection
from annotation.judges.select_generator import FOLDER, GeneratorSelection, SelectionMaterial
from annotation.judges.selection import not_told_apart
from plumbline.exhibits.table import Exhibit, as_markdown, csv_bytes, interval
from plumbline.identity import identity
from plumbline.manifest import study_hash, versions
from plumbline.store import json_bytes
from plumbline.study import file_hash


def selection_record(material: SelectionMaterial, selection: GeneratorSelection) -> Selection:
    """Return the record of a selection and its material."""
    pairs = selection.tables.get("comparisons")
    study = material.study
    ranked = selection.tables.get("ranking")
    names = list(SelectedPair.model_fields)
    rows: list[dict[str, Any]] = [] if pairs is None else pairs[names].to_dict("records")  # type: ignore[assignment]
    return Selection(
        question=selection.question,
        chosen="" if ranked is None else str(ranked["generator"].iloc[0]),
        why_none=selection.why_none,
        doubts=selection.doubts,
        missing=tuple(f"{lack.description}; run `{lack.command}`" for lack in material.missing),
        resamples=0 if pairs is None else int(pairs["resamples"].iloc[0]),
        compared=selection.compared,
        left_out=selection.left_out,
        generators=tuple(_generators(material, ranked)),
        judges=tuple(_judges(material, selection.question)),
        comparisons=tuple(SelectedPair.model_validate(row) for row in rows),
        study_sha256=study_hash(study.file),
        versions=versions(),
    )


def _generators(material: SelectionMaterial, ranked: pd.DataFrame | None) -> list[SelectedFrom]:
    of_means = {} if ranked is None else {str(row["generator"]): row for row in ranked.to_dict("records")}
    rates = material.errors.set_index("generator")
    outputs = material.outputs
    records = []
    for name, rate, judged in zip(rates.index, rates["error_rate"], rates["chosen"], strict=True):
        by = material.generators[str(name)]
        pair_ids = sorted(outputs.loc[outputs["generator"] == name, "pair_id"]) if len(outputs) else []
        records.append(
            SelectedFrom.model_validate(
                {
                    **of_means.get(str(name), {}), "generator": str(name), "model": by.generator.model,
                    "revision": by.generator.revision, "kind": by.generator.kind,
                    "outputs_sha256": file_hash(by.outputs), "error_rate": float(rate), "judged": bool(judged),
                    "judged_outputs": identity("selected-from-v1", pair_ids) if pair_ids else "",
                }
            )
        )  # fmt: skip
    return records


def _judges(material: SelectionMaterial, question: str) -> list[SelectedBy]:
    scored = material.judgements
    if len(scored):
        scored = scored[(scored["question"] == question) & (scored["status"] == "ok")]
    records = []
    for questionnaire in material.questionnaires:
        spec = questionnaire.spec
        of_judge = scored[scored["judge"] == spec.name] if len(scored) else scored
        content = sorted(zip(of_judge["key"], of_judge["score"].map(repr), strict=True)) if len(of_judge) else []
        records.append(
            SelectedBy(
                judge=spec.name, model=spec.model, kind=spec.engine.kind,
                judge_hash=questionnaire.hash, prompt_sha256=file_hash(questionnaire.prompt_file),
                n=len(content), judgements=identity("selected-by-v1", content) if content else "",
            )
        )  # fmt: skip
    return records


#: table: its caption, its columns with their headings (none: all of them)
_SHOWN: Mapping[str, tuple[str, dict[str, str]]] = {
    "error_rates": (
        "Error rates of first attempts, means over transformations (HTEB, Table 5)",
        {"generator": "Generator", "error_rate": "Errors", "chosen": "Judged", "n": "Outputs", "failed": "Failed",
         "unanswered": "Unanswered", "reason": ""},
    ),
    "ranking": (
        "Means with 95% intervals over source samples; generators that share a letter do not differ significantly",
        {"generator": "Generator", "mean": "Mean", **INTERVAL, "letters": "Letters", "n": "Samples"},
    ),
    "comparisons": (
        "Pairwise comparisons of generators: paired bootstrap with Holm's correction (HTEB, 2.3)",
        {"first": "Better", "second": "Than", "difference": "By", **INTERVAL, "p_holm": "Holm p",
         "resamples": "Resamples"},
    ),
    "table_6": ("Means by judge (rows) and generator (columns) (HTEB, Table 6)", {}),
    "table_7": ("Means over judges, by transformation (HTEB, Table 7)", {}),
    "by_language": ("Means by transformation and language of the output", {}),
    "effects": (
        "Additive fit without models' scores of their own outputs: each effect, and the adjusted mean",
        {"role": "Role", "name": "Name", "effect": "Effect", "adjusted_mean": "Mean", "reason": ""},
    ),
    "self_preference": (
        "How much better models rate their own outputs than the fit expects; part of it may be justified, as the"
        " outputs may be better",
        {"model": "Model", "self_preference": "Self-preference", **INTERVAL, "reason": ""},
    ),
    "length": (
        "Slope of scores on length: points per unit of the natural logarithm of the length ratio; part of the slope"
        " may be justified, as longer outputs may be better",
        {"judge": "Judge", "slope": "Slope", **INTERVAL, "reason": ""},
    ),
    "between": (
        "Agreement between judges",
        {"first": "Judge", "second": "Judge ", "n": "Outputs", "pearson": "Pearson", "spearman": "Spearman",
         "ac2": "AC2", "difference": "Difference"},
    ),
    "table_4": (
        "Mean score, share of words changed (0 to 1) and seconds per text (PTEB, Table 4)",
        {"judge": "Judge", "generator": "Generator", "n": "Outputs", "failed": "Failed", "similarity": "Score",
         "edit_distance": "Edits", "seconds": "Seconds"},
    ),
    "table_5": (
        "All judges on the chosen generator: mean, and Hodges-Lehmann centre with its 95% interval (PTEB, Table 5)",
        {"judge": "Judge", "unit": "Unit", "n": "Units", "mean": "Mean", "centre": "Centre", **INTERVAL, "reason": ""},
    ),
}  # fmt: skip


def headline(selection: GeneratorSelection) -> str:
    """Return one sentence: the chosen generator, how certain the choice is, and its doubts."""
    if selection.why_none:
        return f"No generator can be chosen by {selection.question} yet: {selection.why_none}."
    ranked, pairs = selection.tables["ranking"], selection.tables["comparisons"]
    best = ranked.iloc[0]
    tied = not_told_apart(ranked)
    best_pairs = pairs[(pairs["first"] == best["generator"]) | (pairs["second"] == best["generator"])]
    if tied:
        sure = f"not significantly better than {', '.join(tied)}"
    else:
        sure = f"significantly better than every other (Holm p {p_words(float(best_pairs['p_holm'].max()), 'up to ')})"
    mean = interval(best["mean"], best["low"], best["high"])
    doubtful = "; ".join([*selection.doubts, "no person has confirmed it"])
    chosen = f"Judges choose {best['generator']} by {selection.question}: {mean}"
    return f"{chosen}, {sure}; doubtful: {doubtful}."


def select_text(name: str, selection: GeneratorSelection) -> str:
    """Return the choice and all tables as text for a terminal."""
    parts = [f"Choice of a generator, study {name}", headline(selection)]
    parts += [f"Missing: {lack.description}; run `{lack.command}`" for lack in selection.missing]
    for exhibit in exhibits(selection):
        parts.append("\n".join([f"\n{exhibit.caption}\n\n{text_of(exhibit.printed)}", *exhibit.notes]))
    return "\n".join(parts)


def select_files(name: str, selection: GeneratorSelection, record: Selection) -> dict[str, bytes]:
    """Return every table as CSV in full precision, all tables as one Markdown page, and the record."""
    parts = [f"# Choice of a generator, study {as_markdown(name)}\n", f"{as_markdown(headline(selection))}\n"]
    lines = [f"- Missing: {as_markdown(lack.description)}; run `{lack.command}`\n" for lack in selection.missing]
    parts += ["".join(lines)] if lines else []
    parts += [exhibit.markdown() for exhibit in exhibits(selection)]
    files = {f"{table}.csv": csv_bytes(frame) for table, frame in selection.tables.items()}
    return {"selection.md": "\n".join(parts).encode(), "selection.json": json_bytes(record), **files}


def exhibits(selection: GeneratorSelection) -> list[Exhibit]:
    """Return the tables in reading order."""
    shown = []
    for name, (caption, headings) in _SHOWN.items():
        frame = selection.tables.get(name, pd.DataFrame())
        if len(frame):
            names = list(map(str, frame))
            short = [column.rsplit("/", 1)[-1] for column in names]  # without organisations, if these stay distinct
            all_columns = dict(zip(names, short if len(set(short)) == len(short) else names, strict=True))
            table = printed(frame, headings or all_columns)
            shown.append(Exhibit(f"{FOLDER}/{name}", caption, frame, table, _notes(name, frame)))
    return shown


def _notes(name: str, frame: pd.DataFrame) -> tuple[str, ...]:
    if name == "table_6":
        return (
            "The average is the plain mean over judgements, models' scores of their own outputs included (as in HTEB).",
        )
    if name != "table_4":
        return ()
    missing = "; –: the generator is recorded, or made a single output" if frame["seconds"].isna().any() else ""
    return (f"Seconds: the time from one output to the next{missing}.",)

"""The report's tables of what verdicts rest on: rules and their changes, stages, hashes, versions."""

from __future__ import annotations

from typing import Any

import pandas as pd

from annotation.questions import said
from annotation.records import Verdict
from annotation.report.exhibits import stamp
from annotation.report.material import Material
from annotation.verdicts.preregistration import amendments
from annotation.verdicts.rules import in_words
from plumbline.exhibits.table import Exhibit
from plumbline.manifest import study_hash
from plumbline.study.base import Part
from plumbline.study.campaign import AcceptanceSpec, QualitySpec, RatersSpec, RuleSpec

_RULES: dict[str, type[Part]] = {"acceptance": AcceptanceSpec, "quality": QualitySpec, "raters": RatersSpec}
_DIGITS = 16  # of a hash, as printed


def rules_exhibit(material: Material) -> Exhibit:
    """A row a rule, as it is fixed; of studies that fixed none, no row."""
    rules = material.holds.rules if material.holds else {}
    rows = []
    for part, own in rules.items():
        if part == "rubric":  # `wording_exhibit` has its words
            continue
        fields = _RULES[part].model_fields if part in _RULES else {}
        for name, value in own.items():
            meaning = fields[name].description if name in fields else ""
            rows.append((f"{part}.{name}", _worded(name, value), meaning or ""))
    frame = pd.DataFrame(rows, columns=["rule", "value", "meaning"])
    return Exhibit("rules", "Rules as they are fixed", frame, frame.set_axis(["Rule", "Value", "Meaning"], axis=1))


def _worded(name: str, value: Any) -> str:
    if name != "rules":
        return "none" if value is None else str(value)
    rules = [RuleSpec.model_validate(one) for one in value]
    return "; ".join(f"{in_words(one)} (by {one.by})" for one in rules)


def wording_exhibit(material: Material) -> Exhibit:
    """What raters read, in their languages: a row a pool, language and part (guidelines or question)."""
    rubric, rows = material.asked, []
    shown = dict.fromkeys(
        (pair.pool, rubric.language_for(pair.language, pair.output_language)) for pair in material.pairs
    )
    for pool, language in shown:
        text = rubric.pool(pool)
        rows.append((pool, language, "guidelines", f"{said(text.asked, language)} {said(rubric.guidelines, language)}"))
        for question in rubric.asked_questions(pool):
            words = f"{said(question.title, language)} {rubric.description(pool, question, language)}"
            rows.append((pool, language, question.name, words))
    frame = pd.DataFrame(rows, columns=["pool", "language", "part", "words"])
    judged = material.study.called.judged.capitalize()
    printed = frame.set_axis([judged, "Language", "Part", "Words"], axis=1)
    return Exhibit("wording", "What raters were asked, in the words that they saw", frame, printed)


def amendments_exhibit(material: Material) -> Exhibit:
    """A row a change of the rules after the first rating."""
    rows = [(one.fixed_at, one.reason, "; ".join(what)) for one, what in amendments(material.rules, material.first)]
    frame = pd.DataFrame([(at.isoformat(), *rest) for at, *rest in rows], columns=["fixed_at", "reason", "changes"])
    printed = frame.assign(fixed_at=[stamp(at) for at, *_ in rows]).set_axis(["When", "Reason", "Changed"], axis=1)
    return Exhibit("amendments", "Changes of the rules after the first rating", frame, printed)


def stages_exhibit(material: Material) -> Exhibit:
    """A row a stage: when it ran, and whether the study file is still the one that it read."""
    now = study_hash(material.study)
    rows = [
        (name, entry.get("finished_at", ""), entry.get("study_sha256", ""), entry.get("study_sha256") == now)
        for name, entry in _stages(material).items()
    ]
    frame = pd.DataFrame(rows, columns=["stage", "finished_at", "study_sha256", "study_unchanged"])
    printed = frame.assign(
        finished_at=frame["finished_at"].str.replace("T", " ").str.replace("+00:00", " UTC"),
        study_sha256=frame["study_sha256"].str[:_DIGITS],
        study_unchanged=["the same now" if same else "another now" for same in frame["study_unchanged"]],
    ).set_axis(["Stage", "Ended", "Study file", "It is"], axis=1)
    return Exhibit("stages", "Stages, each with the hash of the study file that it read", frame, printed)


def hashes_exhibit(material: Material) -> Exhibit:
    """A row a hash: what verdicts rest on, and what each stage took and left."""
    rows = []
    for verdict in material.verdicts:
        rows += [
            ("verdicts", "pairs.parquet", verdict.pairs_sha256),
            ("verdicts", "ratings.parquet", verdict.ratings_sha256),
            ("verdicts", "the rule", verdict.rule_id),
            ("verdicts", f"{_maker(verdict)} {verdict.model}", verdict.generator_hash),
        ]
    rows += [
        ("verdicts", f"prompts of {one.transformation}", one.prompt_hash)
        for one in material.verdicts
        if one.prompt_hash
    ]
    for name, entry in _stages(material).items():
        for part, verb in (("inputs", "took"), ("outputs", "left")):
            rows += [(f"{name} {verb}", path, digest) for path, digest in entry.get(part, {}).items()]
    frame = pd.DataFrame(list(dict.fromkeys(rows)), columns=["by", "what", "hash"])
    printed = frame.assign(hash=frame["hash"].str[:_DIGITS]).set_axis(["By", "What", "Hash"], axis=1)
    return Exhibit("hashes", f"Hashes, the first {_DIGITS} digits", frame, printed)


def _maker(verdict: Verdict) -> str:
    """What `verdict.model` is."""
    return "generator" if verdict.prompt_hash else verdict.generator_kind


def versions_exhibit(material: Material) -> Exhibit:
    """A row a package, as of the last stage that ran."""
    frame = pd.DataFrame(list(material.manifest.get("versions", {}).items()), columns=["package", "version"])
    printed = frame.set_axis(["Package", "Version"], axis=1)
    return Exhibit("versions", "Versions of the last stage that ran", frame, printed)


def _stages(material: Material) -> dict[str, dict[str, Any]]:
    """The manifest's stages without the report's own."""
    return {name: entry for name, entry in material.manifest.get("stages", {}).items() if name != "report"}

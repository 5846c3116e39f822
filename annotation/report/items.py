"""How a sample of another subject than pairs was drawn, in sentences for a paper."""

from __future__ import annotations

from collections import Counter

from annotation.report.makers import listed
from annotation.report.material import Material
from annotation.report.said import many
from annotation.sampling.near_duplicates import NEAR
from annotation.verdicts.tables import display
from plumbline.languages import language_name
from plumbline.study.subject import OF_TEXTS, InstructionsSubject


def items_sampled(material: Material) -> list[str]:
    """What was drawn, of what, and how."""
    counts, subject = Counter(pair.transformation for pair in material.pairs), material.study.subject
    if not counts:
        return []
    names = [display(name, pooled=False).lower() for name in counts]
    low, high = min(counts.values()), max(counts.values())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    texts = isinstance(subject, OF_TEXTS)
    context = subject.context if isinstance(subject, OF_TEXTS) else {}
    what, groups = material.study.called.item, "groups" if texts else "data sets"
    spread = f"{each} for each of {len(names)} {groups} ({listed(names)})" if names[1:] else f"all of {names[0]}"
    there = sum(one.ok for one in material.supply)
    languages = listed(sorted({language_name(code) for codes in material.texts for code in codes}))
    blind = [f"Raters were not told of which group a {what} is."] if texts and names[1:] else []
    beside = f"what stands beside the {what}" if texts else "language of the second text"
    return [
        f"The sample is {many(len(material.pairs), what)}, drawn at random (seed {material.study.sample.seed}) of"
        f" {there:,}: {spread}, in {languages}.",
        *blind,
        f"Strata were, one within another, language, {beside} and thirds by length; each gives equally many as far as"
        " it reaches.",
        _near_duplicates(material, f"No two {what}s of one group are near-duplicates", bool(context)),
    ]


def _near_duplicates(material: Material, none: str, context: bool) -> str:
    subject = material.study.subject
    if isinstance(subject, InstructionsSubject):
        return f"{none}: of those that differ in {subject.near:g} of their characters or less one is kept."
    beside = ", but where something else stands beside them" if context else ""
    return f"{none} (Jaccard index of their words of at least {NEAR}){beside}."

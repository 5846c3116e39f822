"""What a paper says of controls, known items and repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from annotation.ratings.missed import controls_missed
from annotation.records import Verdict
from annotation.report.makers import listed
from annotation.report.material import Material
from annotation.report.said import many
from annotation.rubric import CHECKS
from annotation.verdicts.rules import unchecked
from annotation.verdicts.tables import wrong
from plumbline.study.campaign import QualitySpec


def controls_told(material: Material) -> str:
    """Which stood beside the sample, and how many were answered wrongly."""
    counts = Counter[str](pair.control for pair in material.controls)
    kinds = {
        "positive": ("positive control", "almost identical texts"),
        "negative": ("negative control", "unrelated texts"),
        "known": ("known item", "whose right answers its file names"),
        "suggested": (f"{material.study.called.item} with judges' scores in sight", "the other half of an experiment"),
        "repeat": ("repeat", f"{material.study.called.item}s of the sample, shown a second time"),
    }
    checks = _checks(material)
    told = [f"{many(counts[kind], name)} ({what})" for kind, (name, what) in kinds.items() if counts[kind]]
    if not told:
        return f"There were no {checks} and no repeats."
    given = int((material.control_ratings["status"] == "submitted").sum())
    beside = f"Beside the sample stood {listed(told)}; {many(given, 'rating')} of these came in and"
    text = f"{beside} {'counts' if given == 1 else 'count'} in no result."
    controls = pd.DataFrame([pair.model_dump() for pair in material.controls])
    off, answered = controls_missed(
        material.control_ratings, controls, material.study.quality, material.rubric.expected
    )
    how = wrong(material.study.quality.within, {one.kind for one in material.rubric.asked()})
    missed = f" Of {many(answered, 'rating')} of {checks} {off:,} {'was' if off == 1 else 'were'} {how}."
    return text + (missed if answered else "")


def careless_told(material: Material) -> list[str]:
    """Which answers to controls and repeats are signs."""
    within, asked = material.study.quality.within, {one.kind for one in material.rubric.asked()}
    kinds = {pair.control for pair in material.controls}
    checks = [_checks(material)] if kinds & set(CHECKS) else []
    repeats = ["repeats"] if "repeat" in kinds else []
    off = wrong(within, asked)
    if off.startswith("wrong"):  # of a repeat no answer is the right one
        labels = [f"answers to {one} that are {off}" for one in checks]
        return labels + [f"answers to {one} that are not those of the first time" for one in repeats]
    return [f"answers to {' or '.join([*checks, *repeats])} that are {off}"] if checks or repeats else []


def _checks(material: Material) -> str:
    """What tells about raters, and is no repeat."""
    return material.study.called.known


def looked_at(verdicts: Sequence[Verdict], rules: QualitySpec) -> str:
    """When a verdict waited for a look at its raters, or that none did."""
    if note := unchecked(verdicts):
        return note
    return (
        f"A verdict was left undecided, until a person had looked at its raters, where more than {rules.failing:.0%} of"
        f" its ratings were of raters who missed more controls than {rules.attentive:.0%}, or all together did so"
        " (one-sided binomial tests at 5%), or where on no question whose ratings vary raters told one"
        " item from another better than chance (F tests at 5%)."
    )

"""Two bundles side by side: what they are of, what was decided, which outputs are others, and how far people agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.comparison import CampaignRatings, campaigns_text
from annotation.records import Verdict
from annotation.verdicts.rules import late_lines
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import COPY
from evaluation.bundle.report import SIMULATED
from plumbline.cli import columns
from plumbline.errors import StudyError
from plumbline.languages import language_name
from plumbline.records import text_id

_FACTS = ("study", "edition", "licence", "contact", "simulated", "comments", "rated", "made_with")


def difference(first: Bundle, second: Bundle) -> str:
    """All of it, for a terminal."""
    if first.identity == second.identity:
        return f"The same bundle, {first.identity}."
    parts = [_facts(first, second), _verdicts(first, second), _outputs(first, second)]
    try:
        both = [
            CampaignRatings.of(bundle.evidence.study, bundle.evidence.collected, bundle.rubric)
            for bundle in (first, second)
        ]
        parts.append(f"Ratings of the pairs that both have\n{campaigns_text(*both)}")
    except StudyError as error:
        parts.append(f"Ratings are not compared: {error}")
    if first.manifest.simulated or second.manifest.simulated:
        parts.append(SIMULATED.replace("Its ratings", "Ratings"))
    parts += late_lines([*first.verdicts, *second.verdicts])
    return "\n\n".join(parts)


def compared(bundle: Bundle, second: CampaignRatings) -> str:
    """A bundle's ratings beside another campaign's on the pairs of both. Raises as `campaigns_text` does."""
    first = CampaignRatings.of(bundle.evidence.study, bundle.evidence.collected, bundle.rubric)
    return f"Ratings of the pairs that both have\n{campaigns_text(first, second)}"


def _facts(first: Bundle, second: Bundle) -> str:
    """What the manifests say otherwise."""
    here, there_ = first.manifest, second.manifest
    rows = [["bundle", first.short, second.short]]
    rows += [
        [name, _cell(a), _cell(b)] for name in _FACTS if (a := getattr(here, name)) != (b := getattr(there_, name))
    ]
    both = (
        (name, here.generator.get(name), there_.generator.get(name)) for name in {**here.generator, **there_.generator}
    )
    rows += [[f"generator's {name}", _cell(a), _cell(b)] for name, a, b in both if a != b]
    rules = [bundle.settings.get("acceptance", {}) for bundle in (first, second)]
    named = dict.fromkeys([*rules[0], *rules[1]])
    both = ((name, rules[0].get(name), rules[1].get(name)) for name in named)
    rows += [[f"acceptance.{name}", _cell(a), _cell(b)] for name, a, b in both if a != b]
    if first.rubric.identity() != second.rubric.identity():
        rows.append(["rubric", *(f"{two.rubric.name} ({two.rubric.identity()[:8]})" for two in (first, second))])
    for name in [name for name in first.transformations if name in second.transformations]:
        prompts = [two.transformations[name].prompt_hash[:8] for two in (first, second)]
        rows += [[f"{name}: prompts", *map(_cell, prompts)]] if prompts[0] != prompts[1] else []
    theirs, ours = {two.name: two for two in there_.datasets}, {two.name: two for two in here.datasets}
    for name in {**ours, **theirs}:
        a, b = ours.get(name), theirs.get(name)
        if a is None or b is None:
            rows.append([name, "in it" if a else "–", "in it" if b else "–"])
        elif a.revision != b.revision:
            rows.append([f"{name}: revision", a.revision[-16:], b.revision[-16:]])
    return columns(["what is other", "first", "second"], rows)


def _verdicts(first: Bundle, second: Bundle) -> str:
    """Decisions and means, a transformation and language a row."""
    ours, theirs = ({_place(verdict): verdict for verdict in bundle.verdicts} for bundle in (first, second))
    questions = list(dict.fromkeys(summary.question for verdict in first.verdicts for summary in verdict.questions))
    rows = []
    for key in {**ours, **theirs}:
        a, b = ours.get(key), theirs.get(key)
        means = [f"{_mean(a, name)} and {_mean(b, name)}" for name in questions]
        changed = "" if a is not None and b is not None and a.decision == b.decision else "other"
        decisions = [verdict.decision if verdict else "–" for verdict in (a, b)]
        rows.append([key[0], language_name(key[1]) + (f" ({key[2]})" if key[2] else ""), *decisions, changed, *means])
    return columns(["transformation", "language", "first", "second", "", *questions], rows, "neither has verdicts")


def _outputs(first: Bundle, second: Bundle) -> str:
    """How many texts of both have the same output, by transformation, over the seeds that both have."""
    ours, theirs = first.evidence.study, second.evidence.study
    rows = []
    for name in [name for name in ours.transformations if name in theirs.transformations]:
        n = same = lost = 0
        for seed in [seed for seed in ours.seeds if seed in theirs.seeds]:
            both = _made(first, name, seed).merge(_made(second, name, seed), on=["text_id", "dataset"])
            n += len(both)
            same += int((_same(both) & (both["status_x"] == both["status_y"])).sum())
            lost += int((both["status_x"] != both["status_y"]).sum())
        rows.append([name, str(n), str(same), str(n - same - lost), str(lost)])
    head = ["transformation", "texts of both", "same output", "other output", "failed in one"]
    return columns(head, rows, "no transformation is in both")


def _made(bundle: Bundle, name: str, seed: int) -> pd.DataFrame:
    columns = ("text_id", "datasets", "source_language", "output", "status", COPY)
    frame: pd.DataFrame = bundle.outputs(name, seed, columns).to_pandas()
    return frame.explode("datasets").rename(columns={"datasets": "dataset"})


def _same(both: pd.DataFrame) -> pd.Series[bool]:
    """Whether both have one output, where one of them may have but the hash of a text that is not handed on."""
    for here, beside in (("x", "y"), ("y", "x")):
        hashed = both[(both[f"{COPY}_{here}"] == "") & (both[f"{COPY}_{beside}"] != "")]
        codes = zip(hashed[f"output_{here}"], hashed[f"source_language_{here}"], strict=True)
        both.loc[hashed.index, f"{COPY}_{here}"] = [text_id(words, code) for words, code in codes]
    outputs = both["output_x"].where(both[f"{COPY}_x"] == "", both[f"{COPY}_x"])
    return outputs == both["output_y"].where(both[f"{COPY}_y"] == "", both[f"{COPY}_y"])


def _place(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.transformation, verdict.language, verdict.task_type


def _mean(verdict: Verdict | None, question: str) -> str:
    means = [summary.mean for summary in verdict.questions if summary.question == question] if verdict else []
    return "–" if not means or math.isnan(means[0]) else f"{means[0]:.2f}"


def _cell(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " to ".join(map(str, value))
    return "–" if value in (None, "") else str(value)

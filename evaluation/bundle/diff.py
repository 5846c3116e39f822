"""Two bundles side by side: what they are of, what was decided, which outputs are others, and how far people agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from annotation.comparison import CampaignRatings, campaigns_text
from annotation.records import Verdict
from annotation.verdicts.marks import late_lines
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.portable import COPY
from evaluation.bundle.words import SIMULATED
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
        both = [CampaignRatings.of(one.evidence.study, one.evidence.collected, one.rubric) for one in (first, second)]
        parts.append(f"Ratings of the pairs that both have\n{campaigns_text(*both)}")
    except StudyError as error:
        parts.append(f"Ratings are not compared: {error}")
    if first.manifest.simulated or second.manifest.simulated:
        parts.append(SIMULATED.replace("Its ratings", "Ratings"))
    parts += late_lines([*first.verdicts, *second.verdicts])
    return "\n\n".join(parts)


def _facts(first: Bundle, second: Bundle) -> str:
    """What the manifests say otherwise."""
    one, other = first.manifest, second.manifest
    rows = [["bundle", first.short, second.short]]
    rows += [[name, _cell(a), _cell(b)] for name in _FACTS if (a := getattr(one, name)) != (b := getattr(other, name))]
    both = ((name, one.generator.get(name), other.generator.get(name)) for name in {**one.generator, **other.generator})
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
    theirs, own = {two.name: two for two in other.datasets}, {two.name: two for two in one.datasets}
    for name in {**own, **theirs}:
        a, b = own.get(name), theirs.get(name)
        if a is None or b is None:
            rows.append([name, "in it" if a else "–", "in it" if b else "–"])
        elif a.revision != b.revision:
            rows.append([f"{name}: revision", a.revision[-16:], b.revision[-16:]])
    return columns(["what is other", "first", "second"], rows)


def _verdicts(first: Bundle, second: Bundle) -> str:
    """Decisions and means, a transformation and language a row."""
    own, theirs = ({_place(one): one for one in bundle.verdicts} for bundle in (first, second))
    questions = list(dict.fromkeys(one.question for verdict in first.verdicts for one in verdict.questions))
    rows = []
    for place in {**own, **theirs}:
        a, b = own.get(place), theirs.get(place)
        means = [f"{_mean(a, name)} and {_mean(b, name)}" for name in questions]
        changed = "" if a is not None and b is not None and a.decision == b.decision else "other"
        said = [one.decision if one else "–" for one in (a, b)]
        rows.append(
            [place[0], language_name(place[1]) + (f" ({place[2]})" if place[2] else ""), *said, changed, *means]
        )
    return columns(["transformation", "language", "first", "second", "", *questions], rows, "neither has verdicts")


def _outputs(first: Bundle, second: Bundle) -> str:
    """How many texts of both have the same output, by transformation, over the seeds that both have."""
    own, theirs = first.evidence.study, second.evidence.study
    rows = []
    for name in [name for name in own.transformations if name in theirs.transformations]:
        n = same = lost = 0
        for seed in [seed for seed in own.seeds if seed in theirs.seeds]:
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
    for one, other in (("x", "y"), ("y", "x")):
        hashed = both[(both[f"{COPY}_{one}"] == "") & (both[f"{COPY}_{other}"] != "")]
        codes = zip(hashed[f"output_{one}"], hashed[f"source_language_{one}"], strict=True)
        both.loc[hashed.index, f"{COPY}_{one}"] = [text_id(words, code) for words, code in codes]
    outputs = both["output_x"].where(both[f"{COPY}_x"] == "", both[f"{COPY}_x"])
    return outputs == both["output_y"].where(both[f"{COPY}_y"] == "", both[f"{COPY}_y"])


def _place(verdict: Verdict) -> tuple[str, str, str]:
    return verdict.transformation, verdict.language, verdict.task_type


def _mean(verdict: Verdict | None, question: str) -> str:
    found = [one.mean for one in verdict.questions if one.question == question] if verdict else []
    return "–" if not found or math.isnan(found[0]) else f"{found[0]:.2f}"


def _cell(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " to ".join(map(str, value))
    return "–" if value in (None, "") else str(value)

"""Made-up pairs and ratings for tests of verdicts, and what is decided of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pandas as pd

from annotation.records import Verdict
from annotation.statistics.summaries import Design
from annotation.verdicts.verdicts import verdicts
from plumbline.records import Pair
from plumbline.study.campaign import AcceptanceSpec
from tests.shared import rating_of

START = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS, SCALE = ("quality", "fluency"), (1, 2, 3, 4, 5)


def pair(
    number: int,
    transformation: str = "paraphrasing",
    language: str = "en",
    output_language: str = "en",
    task: str = "sts",
) -> Pair:
    return Pair(
        pair_id=f"{transformation}-{language}-{number:03d}",
        key=f"key{number}",
        transformation=transformation,
        axis="language" if "translation" in transformation and transformation != "backtranslation" else "length",
        pool="translation" if transformation == "cross_translation" else transformation,
        dataset="made",
        task_type=task,
        language=language,
        output_language=output_language,
        seed=1337,
        original="a",
        transformed="b",
        model="generator",
        generator_hash="g",
        prompt_hash="p",
    )


def pair_rows(pairs: Iterable[Pair]) -> pd.DataFrame:
    return pd.DataFrame(map(dict, pairs))


def ratings(pairs: list[Pair], quality: list[int], fluency: list[int], raters: int = 2) -> pd.DataFrame:
    """Every rater gives every pair the same: `quality[i]` and `fluency[i]` for pair i."""
    return pd.DataFrame(
        [
            rating_of(
                one, f"rater-{rater}", question, values[i], submitted_at=START + timedelta(seconds=rater)
            ).model_dump()
            for i, one in enumerate(pairs)
            for rater in range(raters)
            for question, values in (("quality", quality), ("fluency", fluency))
        ]
    )


def judged(pairs: list[Pair], frame: pd.DataFrame, per_pair: int = 2, **rule: object) -> list[Verdict]:
    design = Design(QUESTIONS, SCALE, per_pair, AcceptanceSpec.model_validate({"min_pairs": 2, **rule}))
    return verdicts(pair_rows(pairs), frame, design, 1)


def decided(pairs: list[Pair], frame: pd.DataFrame, **rule: object) -> list[tuple[str, str, str]]:
    return [(v.transformation, v.decision, v.reasons[0]) for v in judged(pairs, frame, **rule)]

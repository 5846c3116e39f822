"""Verdicts from ratings with known means: the papers' rule, and everything that must not pass it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from annotation.sample import draw_sample
from annotation.verdicts import accept, read_agreement, read_verdicts, refuse_stale, verdicts
from generation.exceptions import DataError, StudyError
from generation.records import Pair, Rating
from generation.store import write_table
from generation.study import AcceptanceSpec, Study

START = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS, SCALE = ["quality", "fluency"], [1, 2, 3, 4, 5]
HASHES = {"pairs_sha256": "p", "ratings_sha256": "r", "rule_id": "u"}


def pair(number: int, transformation: str = "paraphrasing", language: str = "en", output_language: str = "en") -> Pair:
    return Pair(
        pair_id=f"{transformation}-{language}-{number}",
        key=f"key{number}",
        transformation=transformation,
        axis="language" if "translation" in transformation and transformation != "backtranslation" else "length",
        pool="translation" if transformation == "cross_translation" else transformation,
        dataset="made",
        task_type="sts",
        language=language,
        output_language=output_language,
        seed=1337,
        original="a",
        transformed="b",
        model="generator",
        generator_hash="g",
        prompt_hash="p",
    )


def ratings(pairs: list[Pair], quality: list[int], fluency: list[int], raters: int = 2) -> pd.DataFrame:
    """Every rater gives every pair the same: `quality[i]` and `fluency[i]` for pair i."""
    return pd.DataFrame(
        [
            Rating(
                pair_id=one.pair_id,
                transformation=one.transformation,
                language=one.language,
                rater_id=f"rater-{rater}",
                question=question,
                value=values[i],
                status="submitted",
                submitted_at=START + timedelta(seconds=rater),
                source="argilla",
                simulated=False,
            ).model_dump()
            for i, one in enumerate(pairs)
            for rater in range(raters)
            for question, values in (("quality", quality), ("fluency", fluency))
        ]
    )


def decided(pairs: list[Pair], frame: pd.DataFrame, **rule: float) -> list[tuple[str, str, str]]:
    spec = AcceptanceSpec.model_validate({"min_pairs": 2, **rule})
    return [
        (v.transformation, v.decision, v.reasons[0]) for v in verdicts(pairs, frame, spec, QUESTIONS, SCALE, HASHES)
    ]


def test_a_mean_of_exactly_the_threshold_is_accepted() -> None:
    pairs = [pair(0), pair(1)]
    frame = ratings(pairs, [2, 4], [5, 5])  # quality (2+2+4+4)/4 = 3.0
    assert decided(pairs, frame) == [("paraphrasing", "accepted", "mean quality 3.00, fluency 5.00: at least 3")]


def test_a_mean_just_below_is_rejected_with_its_reason() -> None:
    pairs = [pair(0), pair(1), pair(2)]
    frame = ratings(pairs, [2, 3, 3], [5, 5, 5])  # quality 16/6 = 2.67
    assert decided(pairs, frame) == [("paraphrasing", "rejected", "mean quality 2.67 is below 3")]


def test_fluency_alone_can_reject() -> None:
    pairs = [pair(0), pair(1)]
    assert decided(pairs, ratings(pairs, [5, 5], [2, 2]))[0][1:] == ("rejected", "mean fluency 2.00 is below 3")


def test_too_few_pairs_stay_undecided_however_good() -> None:
    pairs = [pair(0), pair(1)]
    frame = ratings(pairs, [5, 5], [5, 5])
    assert decided(pairs, frame, min_pairs=3)[0][1:] == (
        "undecided",
        "pairs with at least 2 raters: 2, of at least 3 that are needed",
    )


def test_one_rater_does_not_make_a_rated_pair() -> None:
    pairs = [pair(0), pair(1)]
    frame = ratings(pairs, [5, 5], [5, 5], raters=1)
    assert decided(pairs, frame)[0][1:] == (
        "undecided",
        "pairs with at least 2 raters: 0, of at least 2 that are needed",
    )


def test_no_ratings_at_all_stay_undecided() -> None:
    pairs = [pair(0), pair(1)]
    frame = ratings(pairs, [5, 5], [5, 5]).iloc[:0]
    assert decided(pairs, frame) == [
        ("paraphrasing", "undecided", "pairs with at least 2 raters: 0, of at least 2 that are needed")
    ]


def test_a_question_without_ratings_never_passes() -> None:
    pairs = [pair(0), pair(1)]
    frame = ratings(pairs, [5, 5], [5, 5])
    assert decided(pairs, frame[frame["question"] == "quality"])[0][1] == "undecided"


def test_translations_share_their_pools_ratings_and_name_its_languages() -> None:
    pairs = [pair(0, "translation", output_language="es"), pair(1, "cross_translation", output_language="tr")]
    frame = ratings(pairs, [5, 1], [5, 5])  # pool: quality 3.0; cross_translation alone would be 1.0
    found = verdicts(pairs, frame, AcceptanceSpec(min_pairs=2), QUESTIONS, SCALE, HASHES)
    assert [(v.transformation, v.decision, v.n_pairs) for v in found] == [
        ("translation", "accepted", 2),
        ("cross_translation", "accepted", 2),
    ]
    assert found[0].output_languages == found[1].output_languages == ("es", "tr")


def test_each_language_has_its_own_verdict() -> None:
    pairs = [pair(0), pair(1), pair(0, language="de", output_language="de"), pair(1, language="de")]
    frame = ratings(pairs, [5, 5, 1, 1], [5, 5, 5, 5])
    assert [decision for _, decision, _ in decided(pairs, frame)] == ["accepted", "rejected"]


def write(study: Study, pairs: list[Pair], value: int, **changes: object) -> None:
    frame = ratings(pairs, [value] * len(pairs), [5] * len(pairs)).assign(**changes)
    write_table(study.folder / "ratings.parquet", frame, Rating)


def test_accept_writes_what_others_read(generated: Study) -> None:
    write(generated, draw_sample(generated), 4, simulated=True)
    groups, found = accept(generated)
    assert read_agreement(generated)[0].model_dump_json() == groups[0].model_dump_json()
    assert {v.transformation: v.decision for v in read_verdicts(generated)} == dict.fromkeys(
        generated.transformations, "accepted"
    )
    assert all(verdict.simulated for verdict in found)
    # Everyone gave the same: no spread, so the interval is undefined, null in the file and NaN in the program.
    stored = json.loads((generated.folder / "verdicts.json").read_text(encoding="utf-8"))[0]
    assert stored["questions"][0]["low"] is None
    assert math.isnan(read_verdicts(generated)[0].questions[0].low)
    assert stored["questions"][0]["interval_reason"] == "all pairs have the same mean, so their spread is unknown"


def test_ratings_of_other_pairs_are_refused(generated: Study) -> None:
    draw_sample(generated)
    write(generated, [pair(0)], 4)
    with pytest.raises(DataError, match="1 rated pairs are not in the sample"):
        accept(generated)


def test_ratings_off_the_scale_are_refused(generated: Study) -> None:
    write(generated, draw_sample(generated), 6)
    with pytest.raises(DataError, match="off the scale 1 to 5"):
        accept(generated)


def test_a_threshold_off_the_scale_is_refused(generated: Study, variant: Callable[..., Study]) -> None:
    with pytest.raises(StudyError, match=r"acceptance.threshold 5.5 is outside the scale 1 to 5"):
        accept(variant(acceptance={"threshold": 5.5}))


def test_damaged_verdicts_say_how_to_make_them_again(demo: Study) -> None:
    file: Path = demo.folder / "verdicts.json"
    file.parent.mkdir(parents=True)
    file.write_text('[{"transformation": "expansion"', encoding="utf-8")
    with pytest.raises(DataError, match="is damaged .* run `python -m annotation accept"):
        read_verdicts(demo)


def test_verdicts_go_stale_with_ratings_and_threshold(generated: Study, variant: Callable[..., Study]) -> None:
    pairs = draw_sample(generated)
    write(generated, pairs, 4)
    _, found = accept(generated)
    refuse_stale(generated, found)
    stricter = variant(acceptance={"threshold": 4.5})
    assert stricter.folder == generated.folder
    with pytest.raises(DataError, match=r"the study's rule .* changed .* run `python -m annotation accept"):
        refuse_stale(stricter, found)
    with pytest.raises(DataError, match=r"the study's rule .* changed"):
        refuse_stale(variant(acceptance={"min_pairs": 21}), found)
    write(generated, pairs, 2)
    with pytest.raises(DataError, match=r"ratings\.parquet changed after the verdicts were reached"):
        refuse_stale(generated, found)

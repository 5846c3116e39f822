"""The sample of pairs: seeded, spread over data sets, stable, and not swapped under rated pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from annotation.sample import draw_sample, read_pairs
from generation.exceptions import DataError, StudyError
from generation.manifest import stage
from generation.records import Rating, TransformedText
from generation.run import generate, read_transformed
from generation.store import write_table
from generation.study import Study
from generation.transformations import TRANSFORMATIONS


def test_each_transformation_gets_its_pairs_spread_over_the_data_sets(generated: Study) -> None:
    pairs = draw_sample(generated)
    assert Counter(pair.transformation for pair in pairs) == dict.fromkeys(TRANSFORMATIONS, 24)
    # 24 pairs over four data sets with texts of their own (duplicates and clusters repeat others' texts): 6 each.
    counts = Counter((pair.transformation, pair.dataset) for pair in pairs)
    assert set(counts.values()) == {6}
    assert {dataset for _, dataset in counts} == {
        "sample_sts",
        "sample_intents",
        "sample_reranking",
        "sample_retrieval",
    }


def test_drawn_again_the_sample_is_the_same(generated: Study) -> None:
    assert draw_sample(generated) == draw_sample(generated) == read_pairs(generated)


def test_another_seed_draws_others(variant: Callable[..., Study]) -> None:
    one, two = variant(name="one"), variant(name="two", sample={"pairs": 24, "seed": 1338})
    for study in (one, two):
        generate(study)
    keys = [{pair.key for pair in draw_sample(study)} for study in (one, two)]
    assert keys[0] != keys[1]


def test_a_larger_sample_contains_the_smaller_one(variant: Callable[..., Study]) -> None:
    small, large = variant(name="small", sample={"pairs": 8}), variant(name="large", sample={"pairs": 12})
    for study in (small, large):
        generate(study)
    assert {pair.key for pair in draw_sample(small)} < {pair.key for pair in draw_sample(large)}


def test_there_are_fewer_pairs_where_there_are_fewer_outputs(variant: Callable[..., Study]) -> None:
    study = variant(sample={"pairs": 1000})
    generate(study)
    counts = Counter(pair.transformation for pair in draw_sample(study))
    assert counts["paraphrasing"] == 48 + 36 + 10 + 10  # each distinct text once


def test_failed_outputs_are_not_rated(generated: Study) -> None:
    rows = read_transformed(generated, "paraphrasing", 1337)
    failed = rows[0].model_copy(update={"status": "failed", "reason": "made up", "output": ""})
    write_table(generated.transformation_file("paraphrasing", 1337), [failed, *rows[1:]], TransformedText)
    assert failed.key not in {pair.key for pair in draw_sample(generated)}


def test_outputs_of_another_generator_are_not_rated(generated: Study, variant: Callable[..., Study]) -> None:
    other = variant(generator={"kind": "recorded", "model": "another", "path": "demo/outputs"})
    assert other.folder == generated.folder
    with pytest.raises(DataError, match="no usable outputs of paraphrasing"):
        draw_sample(other)


def test_a_sample_that_raters_see_is_not_replaced(generated: Study, variant: Callable[..., Study]) -> None:
    draw_sample(generated)
    draw_sample(variant(sample={"pairs": 5}))  # nobody has seen it
    with stage(generated, "publish"):
        pass
    draw_sample(variant(sample={"pairs": 5}))  # the same sample again is no harm
    with pytest.raises(StudyError, match="is published, and the study now asks for other pairs"):
        draw_sample(generated)


def test_a_sample_with_ratings_from_elsewhere_is_not_replaced(generated: Study, variant: Callable[..., Study]) -> None:
    draw_sample(generated)
    write_table(generated.folder / "ratings.parquet", [], Rating)
    with pytest.raises(StudyError, match="is published, and the study now asks for other pairs"):
        draw_sample(variant(sample={"pairs": 5}))


def test_a_threshold_that_the_scale_cannot_hold_is_refused_before_anyone_rates(
    generated: Study, variant: Callable[..., Study]
) -> None:
    with pytest.raises(StudyError, match="threshold 7 is outside the scale 1 to 5"):
        draw_sample(variant(acceptance={"threshold": 7}))


def test_pairs_say_where_they_come_from(generated: Study) -> None:
    pairs = draw_sample(generated)
    languages = {name: {p.output_language for p in pairs if p.transformation == name} for name in TRANSFORMATIONS}
    assert languages["paraphrasing"] == languages["backtranslation"] == {"en"}
    assert "en" not in languages["translation"] | languages["cross_translation"]
    assert {p.pool for p in pairs if p.transformation == "cross_translation"} == {"translation"}


def test_before_generation_it_says_what_to_run(demo: Study) -> None:
    with pytest.raises(DataError, match=r"texts.parquet is not there yet; run `python -m generation.run"):
        draw_sample(demo)

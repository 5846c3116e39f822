from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from generation.languages import _TABLE
from generation.transformations import AXES, PIVOTS, TARGETS, TRANSFORMATIONS

SEEDS = st.integers(0, 2**31)
DRAWN = [t for t in TRANSFORMATIONS.values() if t.draw != "none"]


def test_there_are_the_papers_eight_on_three_axes() -> None:
    assert [sum(t.axis == axis for t in TRANSFORMATIONS.values()) for axis in AXES] == [3, 3, 2]


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.name)
@given(seed=SEEDS, text=st.text(), source=st.sampled_from(sorted(_TABLE)))
def test_draws_are_pure_and_never_the_source_language(kind, seed: int, text: str, source: str) -> None:  # type: ignore[no-untyped-def]
    draws = [kind.language(seed=seed, dataset="d", text=text, source=source) for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0] in set(kind.pool) - {source}


@given(seed=SEEDS, one=st.text(), other=st.text())
def test_a_run_draw_is_the_same_for_all_texts_and_a_text_draw_for_all_datasets(seed: int, one: str, other: str) -> None:
    run, each = TRANSFORMATIONS["translation"], TRANSFORMATIONS["cross_translation"]
    assert run.language(seed=seed, dataset="d", text=one, source="en") == run.language(
        seed=seed, dataset="d", text=other, source="en"
    )
    assert each.language(seed=seed, dataset=one, text="t", source="en") == each.language(
        seed=seed, dataset=other, text="t", source="en"
    )


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.name)
def test_every_language_comes_up_about_equally_over_seeds(kind) -> None:  # type: ignore[no-untyped-def]
    # 5 languages (English is the source), 1000 seeds: 200 each; 6 standard deviations are 6 * sqrt(1000*.2*.8) = 76.
    drawn = [kind.language(seed=seed, dataset="d", text="t", source="en") for seed in range(1000)]
    assert set(drawn) == set(TARGETS) == set(PIVOTS) - {"en"}
    assert all(abs(drawn.count(language) - 200) < 76 for language in TARGETS)


def test_consecutive_seeds_are_not_a_shifted_list() -> None:
    kind = TRANSFORMATIONS["cross_translation"]
    texts = [f"text {number}" for number in range(60)]
    rows = [[kind.language(seed=seed, dataset="d", text=t, source="en") for t in texts] for seed in (1337, 1338)]
    for shift in range(len(texts)):
        assert rows[1] != rows[0][shift:] + rows[0][:shift]
    places = [[TARGETS.index(str(language)) for language in row] for row in rows]
    assert len({(b - a) % 5 for a, b in zip(*places, strict=True)}) == 5  # no constant step through the pool either


def test_the_second_call_of_backtranslation_goes_home() -> None:
    assert TRANSFORMATIONS["backtranslation"].call_languages("en", "tr") == ("tr", "en")
    assert TRANSFORMATIONS["summarised_expansion"].call_languages("de", None) == ("de", "de")
    assert TRANSFORMATIONS["translation"].output_language("en", "fr") == "fr"

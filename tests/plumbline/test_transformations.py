from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plumbline.errors import StudyError
from plumbline.languages import _TABLE
from plumbline.study import load_study
from plumbline.study.transformations import AXES, EIGHT, total_axes
from tests.generation.helpers import write_study

TARGETS = EIGHT["translation"].languages
PIVOTS = EIGHT["backtranslation"].languages

SEEDS = st.integers(0, 2**31)
DRAWN = [t for t in EIGHT.values() if t.draw != "none"]


def test_there_are_the_papers_eight_on_three_axes() -> None:
    assert [sum(t.axis == axis for t in EIGHT.values()) for axis in AXES] == [3, 3, 2]


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.name)
@given(seed=SEEDS, text=st.text(), source=st.sampled_from(sorted(_TABLE)))
def test_draws_are_pure_and_never_the_source_language(kind, seed: int, text: str, source: str) -> None:  # type: ignore[no-untyped-def]
    draws = [kind.drawn(seed=seed, dataset="d", text=text, source=source) for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0] in set(kind.languages) - {source}


@given(seed=SEEDS, one=st.text(), other=st.text())
def test_a_run_draw_is_the_same_for_all_texts_and_a_text_draw_for_all_datasets(seed: int, one: str, other: str) -> None:
    run, each = EIGHT["translation"], EIGHT["cross_translation"]
    assert run.drawn(seed=seed, dataset="d", text=one, source="en") == run.drawn(
        seed=seed, dataset="d", text=other, source="en"
    )
    assert each.drawn(seed=seed, dataset=one, text="t", source="en") == each.drawn(
        seed=seed, dataset=other, text="t", source="en"
    )


def test_a_run_has_one_target_for_all_texts_but_those_that_are_in_it_already() -> None:
    """A data set of nine languages (STS17's), 40 seeds: one target for all, and another one for texts in it."""
    sources = ("ar", "de", "en", "es", "fr", "it", "ko", "nl", "tr")
    kind = EIGHT["translation"]
    targets = set()
    for seed in range(40):
        drawn = {s: str(kind.drawn(seed=seed, dataset="STS17", text="t", source=s)) for s in sources}
        target = drawn["en"]
        assert {drawn[source] for source in sources if source != target} == {target}
        assert drawn.get(target) != target
        targets.add(target)
    assert targets == set(TARGETS)


def test_a_second_draw_is_as_even_as_the_first() -> None:
    # German is the source: 4 languages, 1000 seeds: 250 each; 6 standard deviations are 6 * sqrt(1000*.25*.75) = 82.
    kind = EIGHT["translation"]
    drawn = [kind.drawn(seed=seed, dataset="d", text="t", source="de") for seed in range(1000)]
    assert all(abs(drawn.count(language) - 250) < 82 for language in set(TARGETS) - {"de"})


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.name)
def test_draws_of_consecutive_seeds_are_independent(kind) -> None:  # type: ignore[no-untyped-def]
    """500 texts (or data sets), seeds 1337 and 1338: equal draws are 500/5 = 100, 6 SD are 6*sqrt(500*.2*.8) = 54."""
    pairs = [
        [kind.drawn(seed=seed, dataset=f"d{n}", text=f"t{n}", source="en") for seed in (1337, 1338)] for n in range(500)
    ]
    assert abs(sum(first == second for first, second in pairs) - 100) < 54


@pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.name)
def test_every_language_comes_up_about_equally_over_seeds(kind) -> None:  # type: ignore[no-untyped-def]
    # 5 languages (English is the source), 1000 seeds: 200 each; 6 standard deviations are 6 * sqrt(1000*.2*.8) = 76.
    drawn = [kind.drawn(seed=seed, dataset="d", text="t", source="en") for seed in range(1000)]
    assert set(drawn) == set(TARGETS) == set(PIVOTS) - {"en"}
    assert all(abs(drawn.count(language) - 200) < 76 for language in TARGETS)


def test_consecutive_seeds_are_not_a_shifted_list() -> None:
    kind = EIGHT["cross_translation"]
    texts = [f"text {number}" for number in range(60)]
    rows = [[kind.drawn(seed=seed, dataset="d", text=t, source="en") for t in texts] for seed in (1337, 1338)]
    for shift in range(len(texts)):
        assert rows[1] != rows[0][shift:] + rows[0][:shift]
    places = [[TARGETS.index(str(language)) for language in row] for row in rows]
    assert len({(b - a) % 5 for a, b in zip(*places, strict=True)}) == 5  # no constant step through the pool either


def test_the_second_call_of_backtranslation_goes_home() -> None:
    assert EIGHT["backtranslation"].call_languages("en", "tr") == ("tr", "en")
    assert EIGHT["summarised_expansion"].call_languages("de", None) == ("de", "de")
    assert EIGHT["translation"].output_language("en", "fr") == "fr"


def test_a_study_limits_the_languages_that_texts_are_put_into_and_no_others(tmp_path: Path) -> None:
    names = ["translation", "cross_translation", "backtranslation"]
    kinds = load_study(write_study(tmp_path, transformations=names, languages=["de", "fr"])).kinds
    sources = [str(number) for number in range(50)]
    for name in names[:2]:
        drawn = {kinds[name].drawn(seed=1, dataset=text, text=text, source="en") for text in sources}
        assert drawn == {"de", "fr"} & set(EIGHT[name].languages)
    assert kinds["backtranslation"] is EIGHT["backtranslation"]  # no rater reads what is between


def test_a_text_that_is_in_the_only_language_is_refused(tmp_path: Path) -> None:
    kind = load_study(write_study(tmp_path, transformations=["translation"], languages=["de"])).kinds["translation"]
    assert kind.drawn(seed=1, dataset="d", text="t", source="en") == "de"
    with pytest.raises(StudyError, match="has the only target de, but some texts are already in it"):
        kind.drawn(seed=1, dataset="d", text="t", source="de")


@pytest.mark.parametrize(
    ("names", "axes", "expected"),
    [
        (["paraphrasing"], ["lexical_stylistic"], AXES),  # HTEB's total, which lacks two axes
        (["paraphrasing", "typos"], ["lexical_stylistic", "noise"], ("lexical_stylistic", "noise")),
        ([*EIGHT, "typos"], [*AXES, "noise"], AXES),
        (["typos"], ["noise", "original"], ("noise",)),
        ([], [], AXES),
    ],
)
def test_a_total_is_htebs_or_of_all_axes_that_there_are(
    names: list[str], axes: list[str], expected: tuple[str, ...]
) -> None:
    assert total_axes(names, axes) == expected

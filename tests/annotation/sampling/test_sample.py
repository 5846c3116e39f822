"""The sample of pairs: seeded, spread over data sets, stable, and not swapped under rated pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.campaign.records import CampaignRecords
from annotation.planning import plan
from annotation.sampling.candidates import (
    NEAR,
    Candidate,
    DuplicateIndex,
    Lengths,
    Turns,
    flagged_supply,
    overlap,
    words_of,
)
from annotation.sampling.sample import draw_sample
from generation.jobs import Plan
from generation.output_statistics import flagged_lines
from generation.production import generate, read_transformed
from plumbline.errors import DataError, StudyError
from plumbline.manifest import Manifest
from plumbline.records import Text, TransformedText, text_id
from plumbline.store import read_records, write_table
from plumbline.study import Study
from plumbline.study.transformations import EIGHT
from tests.shared import generate_once

OUTPUTS = "transformations/paraphrasing/1337.parquet"


def test_each_transformation_gets_its_pairs_spread_over_tasks_and_lengths(generated: Study) -> None:
    pairs = draw_sample(generated)
    assert draw_sample(generated) == pairs == CampaignRecords(generated).pairs  # drawn again it is the same
    assert Counter(pair.transformation for pair in pairs) == dict.fromkeys(EIGHT, 24)
    counts = Counter((pair.transformation, pair.dataset) for pair in pairs)
    # 24 pairs over the four data sets whose texts are their own (duplicates and clusters repeat others'): 6 each. A
    # translation's language is a data set's own, so its outputs for those two are others: 24 over six data sets.
    assert {number for (name, _), number in counts.items() if name != "translation"} == {6}
    assert {number for (name, _), number in counts.items() if name == "translation"} == {4}
    own = ("sts", "intents", "reranking", "retrieval")
    assert {dataset for name, dataset in counts if name == "paraphrasing"} == {f"sample_{name}" for name in own}
    texts = read_records(generated.folder / "texts.parquet", Text, "generation")
    lengths, places = Lengths(texts), {(text.dataset, text.text): text for text in texts}
    thirds = Counter(
        (pair.dataset, lengths.third(places[pair.dataset, pair.original]))
        for pair in pairs
        if pair.transformation == "paraphrasing" and pair.dataset in ("sample_sts", "sample_intents")
    )
    assert set(thirds.values()) == {2} and len(thirds) == 2 * 3  # the two with texts enough of every length


def add_output(study: Study, text: str) -> None:
    texts = read_records(study.folder / "texts.parquet", Text, "generation")
    added = texts[0].model_copy(update={"item": f"late {text}", "text": text, "text_id": text_id(text, "en")})
    write_table(study.folder / "texts.parquet", [*texts, added], Text)
    rows = read_transformed(study, "paraphrasing", 1337)
    key = Plan(study).job(added, "paraphrasing", 1337).key
    changes = {"key": key, "text_id": added.text_id, "text": text, "status": "ok", "output": text}
    row = rows[0].model_copy(update=changes)
    Manifest.of(study).write_table(OUTPUTS, [*rows, row], TransformedText)


def test_of_near_duplicates_one_is_drawn(variant: Callable[..., Study]) -> None:
    study = variant(sample={"pairs": 1000}, transformations=["paraphrasing"])
    generate_once(study)
    before = len(draw_sample(study))
    add_output(study, "THE BAKERY on the corner sells out of bread -- before nine every morning")  # other dress
    add_output(study, "The bakery on the corner sells out of bread before nine every day.")  # 10 of 12 words shared
    originals = [words_of(pair.original) for pair in draw_sample(study)]
    assert len(originals) == before
    assert all(overlap(one, other) < NEAR for one, other in combinations(originals, 2))
    add_output(study, "The bakery on the corner sells little bread in summer.")  # 6 of 13
    assert len(draw_sample(study)) == before + 1


def test_an_output_that_comes_later_moves_one_pair_at_most(variant: Callable[..., Study]) -> None:
    study = variant(sample={"pairs": 80}, transformations=["paraphrasing"])
    generate_once(study)
    rows = read_transformed(study, "paraphrasing", 1337)
    late = [row for row in rows if row.status == "ok"][::10]
    samples = []
    for number in range(len(late) + 1):
        none = {row.key: {"status": "unanswered"} for row in late[number:]}
        now = [row.model_copy(update=none.get(row.key, {})) for row in rows]
        Manifest.of(study).write_table(OUTPUTS, now, TransformedText)
        samples.append({pair.pair_id for pair in draw_sample(study)})
    moved = [len(before - after) for before, after in pairwise(samples)]
    assert max(moved) == 1  # some are drawn, and take the place of one each


def flag(study: Study, flags: tuple[str, ...], number: int) -> set[str]:
    """Give the first usable paraphrases other flags; their keys."""
    rows = read_transformed(study, "paraphrasing", 1337)
    chosen = [row.key for row in rows if row.status == "ok"][:number]
    changed = [row.model_copy(update={"flags": flags}) if row.key in chosen else row for row in rows]
    Manifest.of(study).write_table(OUTPUTS, changed, TransformedText)
    return set(chosen)


def test_outputs_with_an_error_type_are_kept_out_where_the_study_says_so(variant: Callable[..., Study]) -> None:
    """101 paraphrases are usable: 30 in the wrong language, of which 6 are runaways too."""
    every = variant(name="every", sample={"pairs": 1000}, transformations=["paraphrasing"])
    some = variant(name="some", sample={"pairs": 1000, "without": ["wrong_language"]}, transformations=["paraphrasing"])
    drawn, unflagged = {}, set[str]()
    for study in (every, some):
        generate_once(study)
        unflagged = {pair.key for pair in draw_sample(study)}
        wrong = flag(study, ("wrong_language",), 30)
        flag(study, ("runaway", "wrong_language"), 6)
        drawn[study.name] = {pair.key for pair in draw_sample(study)}
    assert drawn["every"] == unflagged  # flags alone move no pair
    assert drawn["some"] == unflagged - wrong
    (seen,), (kept,) = CampaignRecords(every).drawn_from, CampaignRecords(some).drawn_from
    assert (seen.ok, seen.kept_out, seen.without) == (101, 0, ())
    assert (kept.ok, kept.kept_out, kept.without) == (71, 30, ("wrong_language",))
    assert seen.flagged == kept.flagged == {"runaway": 6, "wrong_language": 30}
    assert kept.failed_share == seen.failed_share == pytest.approx(3 / 104)
    (line,) = flagged_lines(flagged_supply([kept]))
    assert line.endswith(": 29.7% of paraphrasing, en, wrong_language (kept out); 5.9% of paraphrasing, en, runaway")
    flag(some, ("wrong_language",), 1000)
    with pytest.raises(StudyError, match="every usable output of paraphrasing has an error type of sample.without"):
        draw_sample(some)


def test_failed_outputs_are_not_rated(generated: Study) -> None:
    rows = read_transformed(generated, "paraphrasing", 1337)
    failed = rows[0].model_copy(update={"status": "failed", "reason": "made up", "output": ""})
    Manifest.of(generated).write_table(OUTPUTS, [failed, *rows[1:]], TransformedText)
    assert failed.key not in {pair.key for pair in draw_sample(generated)}
    unanswered = failed.model_copy(update={"status": "unanswered"})
    Manifest.of(generated).write_table(OUTPUTS, [unanswered, *rows[1:]], TransformedText)
    assert unanswered.key not in {pair.key for pair in draw_sample(generated)}  # a recording without it
    Manifest.of(generated).write_table(OUTPUTS, rows[1:], TransformedText)  # `generate` was cut off
    with pytest.raises(StudyError, match="1 output of paraphrasing without an answer: run `plumbline generate"):
        draw_sample(generated)


def test_outputs_of_another_generator_are_not_rated(generated: Study, variant: Callable[..., Study]) -> None:
    other = variant(generator={"kind": "recorded", "model": "another", "path": "demo/outputs"})
    assert other.folder == generated.folder
    with pytest.raises(DataError, match="no usable outputs of paraphrasing"):
        draw_sample(other)


def candidates(sizes: dict[tuple[str, str], int]) -> list[Candidate]:
    """So many candidates of each stratum, their ranks as they are counted."""
    places = [(stratum, number) for stratum, size in sizes.items() for number in range(size)]
    made = partial(pytest.fail, "no pair is made")
    return [Candidate(rank, stratum, f"{stratum}{number}", made) for rank, (stratum, number) in enumerate(places)]


def drawn(sizes: dict[tuple[str, str], int], number: int) -> list[str]:
    turns = Turns(candidates(sizes), seed=1)
    taken = [turns.take(lambda _: True) for _ in range(number)]
    return [candidate.key for candidate in taken if candidate is not None]


STRATA = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), st.integers(1, 6), min_size=1, max_size=9
)


@given(STRATA, st.integers(0, 60))
def test_strata_give_equal_shares_as_far_as_they_reach(sizes: dict[tuple[str, str], int], number: int) -> None:
    keys = drawn(sizes, number)
    assert len(keys) == len(set(keys)) == min(number, sum(sizes.values()))
    counts = Counter(key[2] for key in keys)  # of the outer stratum: keys are like "('a', 'x')0"
    largest = max(counts.values(), default=0)
    for outer in {stratum[0] for stratum in sizes}:
        there = sum(size for stratum, size in sizes.items() if stratum[0] == outer)
        assert counts[outer] == there or counts[outer] >= largest - 1


@given(STRATA, st.integers(1, 30), st.data())
def test_a_candidate_that_comes_later_moves_one_other_at_most(
    sizes: dict[tuple[str, str], int], number: int, data: st.DataObject
) -> None:
    grown = data.draw(st.sampled_from(sorted(sizes)))
    before = set(drawn(sizes, number))
    after = set(drawn({**sizes, grown: sizes[grown] + 1}, number))
    assert len(before - after) <= 1 and len(after - before) <= 1


@given(STRATA, st.integers(0, 30), st.integers(0, 30))
def test_a_larger_draw_goes_on_where_a_smaller_one_ends(
    sizes: dict[tuple[str, str], int], number: int, more: int
) -> None:
    assert drawn(sizes, number + more)[:number] == drawn(sizes, number)[:number]


CASING: dict[str, Any] = {"name": "casing", "axis": "noise", "function": "generation.examples:casing"}
CASING |= {"error_types": ["empty"], "raters": {"asked": {"en": "In capitals."}}}


def test_a_sample_too_small_for_its_languages_is_refused_before_anything_is_written(
    tmp_path: Path, variant: Callable[..., Study]
) -> None:
    """That the texts are in two languages a column says, which is read with the texts: 12 pairs are 6 and 6."""
    rows = [f"{number} cats sat on {number} mats,{number % 3},{'de' if number % 2 else 'en'}" for number in range(60)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label,language", *rows]), encoding="utf-8")
    texts = {"name": "texts", "task": "clustering", "path": str(tmp_path / "texts.csv"), "language": "en"}
    parts: dict[str, Any] = {"datasets": [texts], "transformations": [CASING], "acceptance": {"min_pairs": 7}}
    study = variant(**parts, sample={"pairs": 12})
    generate(study, allow_code=True)
    says = r"than the 6 pairs .*12 are split over 2 languages .de, en.*write sample.pairs: 14 .*min_pairs: 6 or"
    with pytest.raises(StudyError, match=says):
        draw_sample(study)
    with pytest.raises(StudyError, match=says):
        plan(study, [(30, 3)], campaigns=2)
    assert not (study.folder / "pairs.parquet").exists() and not (study.folder / "sample.json").exists()
    larger = variant(**parts, sample={"pairs": 14})
    assert Counter(pair.language for pair in draw_sample(larger)) == {"en": 7, "de": 7}
    found = plan(larger, [(12, 3), (14, 3)], [4.0], campaigns=20)
    assert found["verdict_pairs"].tolist() == [6, 7]
    assert found["right"].isna().tolist() == [True, False] and found["undecided"][0] == 1


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("The cat sat.", "the CAT sat", 1.0),
        ("“Where?”, she said", "she said: where", 1.0),
        ("turn on the light", "turn off the light", 3 / 5),  # 3 shared of 5: on and off differ
        ("a b c d e f g h i", "a b c d e f g h j", 8 / 10),  # one word in nine: just a near-duplicate
        ("Straße", "STRASSE", 1.0),
        ("猫が好きです", "犬が好きです", 4 / 6),  # pairs of characters: 5 each, 4 shared
        ("?!", "...", 0.0),
    ],
)
def test_overlap_is_of_words_and_not_of_their_dress(one: str, other: str, shared: float) -> None:
    assert overlap(words_of(one), words_of(other)) == pytest.approx(shared)


WORDS = st.frozensets(st.sampled_from([letter * length for letter in "abcdef" for length in (1, 2, 5)]), min_size=1)


@given(st.lists(WORDS, max_size=12), WORDS)
def test_a_near_duplicate_is_found_where_comparing_all_finds_one(
    texts: list[frozenset[str]], asked: frozenset[str]
) -> None:
    seen = DuplicateIndex()
    for text in texts:
        seen.add(["here"], text)
    assert seen.near(["here"], asked) == any(overlap(asked, text) >= NEAR for text in texts)
    assert not seen.near(["elsewhere"], asked)


def test_another_seed_draws_others(variant: Callable[..., Study]) -> None:
    one, two = variant(name="one"), variant(name="two", sample={"pairs": 24, "seed": 1338})
    for study in (one, two):
        generate_once(study)
    keys = [{pair.key for pair in draw_sample(study)} for study in (one, two)]
    assert keys[0] != keys[1]


def test_there_are_fewer_pairs_where_there_are_fewer_outputs(variant: Callable[..., Study]) -> None:
    study = variant(sample={"pairs": 1000}, transformations=["paraphrasing"])
    generate_once(study)
    # Each distinct text once; three outputs begin with "Paraphrased text:" and are failed; no two are near-duplicates.
    assert len(draw_sample(study)) == 48 + 36 + 10 + 10 - 3

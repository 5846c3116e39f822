"""A sample that grows under a running campaign: what was offered stays, what comes is a wave of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from annotation.campaign.offering import ARGILLA, begin_offering, refuse_other_sample
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.sampling.candidates import NEAR, overlap, words_of
from annotation.sampling.sample import draw_sample, extend_sample, mismatch
from generation.production import generate, read_transformed
from plumbline.errors import StudyError
from plumbline.manifest import Manifest
from plumbline.records import Pair
from plumbline.study import Study
from tests.annotation.outputs import of_outputs
from tests.shared import generate_once, note_outputs

Make = Callable[..., Study]
OF_TWO: dict[str, Any] = {"name": "grows", "transformations": ["paraphrasing", "translation"]}


def offered(variant: Make, **changes: object) -> Study:
    """A study of eight pairs of each of two transformations that were offered to raters."""
    study = variant(**(OF_TWO | {"sample": {"pairs": 8, "batch": 4}} | changes))
    generate_once(study)
    draw_sample(study)
    begin_offering(CampaignRecords(study), ARGILLA, load_rubric(study))
    return study


def larger(variant: Make, pairs: int = 12, **changes: object) -> Study:
    return variant(**(OF_TWO | {"sample": {"pairs": pairs, "batch": 4}} | changes))


def by_id(pairs: list[Pair]) -> dict[str, Pair]:
    return {pair.pair_id: pair for pair in pairs}


def test_what_was_offered_stays_and_the_rest_is_a_wave_of_its_own(variant: Make) -> None:
    before = by_id(CampaignRecords(offered(variant)).shown)
    study = larger(variant)
    wave = extend_sample(study, "  the intervals are too wide ")
    pairs, controls = CampaignRecords(study).pairs, CampaignRecords(study).controls
    after = by_id([*pairs, *controls])
    assert {pair_id: after[pair_id] for pair_id in before} == before  # to the last field, the wave 1 among them
    new = [pair for pair in pairs if pair.pair_id not in before]
    assert {pair.wave for pair in new} == {2}
    assert Counter(pair.transformation for pair in new) == {"paraphrasing": 4, "translation": 4}
    assert (wave.number, wave.pairs, wave.reason) == (2, 8, "the intervals are too wide")
    # Paraphrasing has one queue: 4 new pairs are a batch, with a positive and a negative control and a repeat.
    own = Counter(pair.control for pair in controls if pair.wave == 2 and pair.pool == "paraphrasing")
    assert own == {"positive": 1, "negative": 1, "repeat": 1}
    assert {pair.repeats for pair in controls if pair.wave == 2 and pair.control == "repeat"} <= set(by_id(new))
    assert CampaignRecords(study).waves == [wave]
    assert draw_sample(study) == pairs
    begin_offering(CampaignRecords(study), ARGILLA, load_rubric(study))  # and it may be offered


def of_file(folder: Path, systems: Sequence[str], languages: Sequence[str], pairs: int, **settings: object) -> Study:
    """A study of thirty texts, dealt out over languages and of three lengths, and of two near-duplicates of others."""
    words = [f"{begin}{end}" for begin in ("ka", "lo", "mi", "nu", "re") for end in ("bal", "dor", "fen", "gis", "tup")]
    texts = [" ".join(words[(n * 7 + k * (n + 1)) % 25] + str(n) for k in range(4 + n % 3 * 4)) for n in range(30)]
    texts += [f"{texts[0].upper()}!", f"{texts[1].upper()}!"]
    rows = {"text": texts, "language": [languages[n % 30 % len(languages)] for n in range(32)]}
    table = pd.DataFrame(rows | {system: [f"{text} {system}" for text in texts] for system in systems})
    queues = dict.fromkeys(systems, "systems") if len(systems) > 1 else {}
    sample = {"pairs": pairs, **settings}
    return of_outputs(folder, table, queues, name="grows", acceptance={"min_pairs": 2}, sample=sample)


@pytest.mark.parametrize(
    ("systems", "languages", "settings"),
    [
        (("a",), ("en",), {}),
        (("a",), ("en", "de"), {"controls": 0}),
        (("a", "b"), ("en", "de"), {}),
        (("a", "b"), ("en", "de"), {"controls": 2, "batch": 5}),
    ],
)
def test_it_reaches_what_a_fresh_sample_reaches(
    tmp_path: Path, systems: Sequence[str], languages: Sequence[str], settings: dict[str, int]
) -> None:
    """Step by step, to all texts that there are: as many in each language, and as many controls and repeats."""

    def reached(study: Study) -> tuple[Counter[tuple[str, ...]], Counter[tuple[str, ...]]]:
        records = CampaignRecords(study)
        pairs = Counter((pair.transformation, pair.language) for pair in records.pairs)
        return pairs, Counter((pair.language, pair.control) for pair in records.controls)

    folders = [tmp_path / name for name in ("fresh", "grown")]
    for folder in folders:
        folder.mkdir()
    study = of_file(folders[1], systems, languages, 20, **settings)
    generate_once(study)
    draw_sample(study)
    for pairs in (24, 30):
        begin_offering(CampaignRecords(study), ARGILLA, load_rubric(study))
        extend_sample(study := of_file(folders[1], systems, languages, pairs, **settings), "more")
        fresh = of_file(folders[0], systems, languages, pairs, **settings)
        generate_once(fresh)
        draw_sample(fresh)
        (counts, controls), (fresh_counts, fresh_controls) = reached(study), reached(fresh)
        assert counts == fresh_counts and set(counts.values()) == {pairs // len(languages)}
        assert controls == fresh_controls
        words = {pair.original: words_of(pair.original) for pair in CampaignRecords(study).pairs}
        assert max(overlap(one, other) for one, other in combinations(words.values(), 2)) < NEAR
    assert [wave.number for wave in CampaignRecords(study).waves] == [2, 3]


def test_a_sample_from_outputs_that_were_exchanged_does_not_grow(variant: Make) -> None:
    """One of the new ones in a wave would let all of them be evaluated."""
    study = offered(variant)
    rated = {pair.key for pair in CampaignRecords(study).shown}
    rows = read_transformed(study, "paraphrasing", 1337)
    others = [row if row.key in rated else row.model_copy(update={"output": "Bananas."}) for row in rows]
    note_outputs(study, "paraphrasing", 1337, others)
    with pytest.raises(StudyError, match=r"outputs of paraphrasing \(sample_sts, en, seed 1337\) changed after"):
        extend_sample(larger(variant), "more")
    note_outputs(study, "paraphrasing", 1337, rows)
    extend_sample(larger(variant), "more")
    (sts,) = (one.model_dump(mode="json") for one in study.datasets if one.name == "sample_sts")
    generate(without := larger(variant, 13, datasets=[sts]))
    extend_sample(without, "a data set less")
    others = [row if row.key in rated else row.model_copy(update={"output": "Bananas."}) for row in rows]
    note_outputs(study, "paraphrasing", 1337, [*others])
    generate(larger(variant, 14))
    with pytest.raises(StudyError, match=r"outputs of paraphrasing \(sample_sts, en, seed 1337\) changed after"):
        extend_sample(larger(variant, 14), "the data set again")


@pytest.mark.parametrize("cut", range(5))
def test_cut_off_at_any_moment_it_is_finished_by_the_same_command(
    variant: Make, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Cut off before each of its four writes, and behind the last."""
    offered(variant)
    study = larger(variant)
    left = cut

    def counted(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def write(*arguments: object) -> None:
            nonlocal left
            path = arguments[0]
            if not isinstance(path, Path) or path.is_relative_to(study.folder):
                if not left:
                    raise KeyboardInterrupt
                left -= 1
            real(*arguments)

        monkeypatch.setattr(owner, name, write)

    with monkeypatch.context():
        counted(Manifest, "write_models")
        counted(Manifest, "write_table")
        if cut < 4:
            with pytest.raises(KeyboardInterrupt):
                extend_sample(study, "more")
        else:
            extend_sample(study, "more")
    monkeypatch.undo()
    if 0 < cut < 4:
        with pytest.raises(StudyError, match="its extension to wave 2 was cut off; run .*--extend REASON` again"):
            refuse_other_sample(CampaignRecords(study))
    if cut < 4:
        extend_sample(study, "more")
    refuse_other_sample(CampaignRecords(study))
    assert Counter(pair.wave for pair in CampaignRecords(study).pairs) == {1: 16, 2: 8}
    assert len(by_id(CampaignRecords(study).shown)) == len(CampaignRecords(study).shown)
    assert [wave.number for wave in CampaignRecords(study).waves] == [2]


def test_an_exchanged_sample_is_no_extension(variant: Make) -> None:
    first = offered(variant)
    early = (first.folder / "pairs.parquet").read_bytes()
    study = larger(variant)
    extend_sample(study, "more")
    late = study.folder / "pairs.parquet"
    whole = late.read_bytes()
    late.write_bytes(early)  # a copy from before the extension: the rest of it is missing
    with pytest.raises(StudyError, match="cut off"):
        refuse_other_sample(CampaignRecords(study))
    late.write_bytes(whole[:-1] + b"0")
    with pytest.raises(StudyError, match="is not the one that was offered"):
        refuse_other_sample(CampaignRecords(study))


def test_no_wave_repeats_what_raters_have_seen(variant: Make) -> None:
    offered(variant)
    extend_sample(study := larger(variant), "more")
    shown = [pair for pair in CampaignRecords(study).shown if pair.transformation == "paraphrasing"]
    words = [words_of(pair.original) for pair in shown if pair.control != "repeat"]
    assert max(overlap(one, other) for one, other in combinations(words, 2)) < NEAR


def test_strata_that_gave_less_go_first(variant: Make) -> None:
    """Eight pairs of one data set, then as many of the other: a sample of sixteen has eight of each."""
    demo = variant()
    sts, intents = (
        [one.model_dump(mode="json") for one in demo.datasets if one.name == name]
        for name in ("sample_sts", "sample_intents")
    )
    alone = {"transformations": ["paraphrasing"], "datasets": sts}
    offered(variant, **alone)
    study = larger(variant, 16, **(alone | {"datasets": sts + intents}))
    generate_once(study)
    extend_sample(study, "another data set")
    counts = Counter((pair.wave, pair.dataset) for pair in CampaignRecords(study).pairs)
    assert counts == {(1, "sample_sts"): 8, (2, "sample_intents"): 8}
    assert {one.language for one in CampaignRecords(study).drawn_from} == {"en"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt_hash": "f" * 32}, "were made by another generator or other prompts than the study has now"),
        ({"generator_kind": "openai"}, "come from a generator of kind openai, but the study's is now of kind recorded"),
        ({"transformation": "expansion"}, "expansion were made by another generator"),
    ],
)
def test_a_sample_says_why_it_is_no_longer_the_studys(variant: Make, change: dict[str, str], says: str) -> None:
    records = CampaignRecords(offered(variant))
    assert mismatch(records, records.shown) == ()
    assert says in str(mismatch(records, [pair.model_copy(update=change) for pair in records.pairs]))

"""Systems in blocks: the same originals in each, looks until all are told apart, and changes between looks."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from annotation import server
from annotation.campaign.records import CampaignRecords
from annotation.csv_answers import collect_csv
from annotation.ratings.decisions import withdraw
from annotation.sampling.queues import block_numbers
from annotation.sampling.sample import draw_sample
from annotation.statistics.shared_blocks import DifferenceLook, SharedBlocks
from annotation.status.status import read_status
from annotation.verdicts.acceptance import accept
from annotation.verdicts.conclusion import looked_at
from annotation.verdicts.evidence import Evidence, write_looks
from annotation.verdicts.systems import _shared_blocks, answers, differences_exhibit
from annotation.verdicts.tables import table_two_exhibit
from generation.production import generate
from plumbline.statistics.group_sequential import error_reached, spent
from plumbline.statistics.paired import holm
from plumbline.study import Study
from tests.annotation.campaigns import ALONE
from tests.annotation.outputs import of_outputs
from tests.scale import scaled

ENDS = (20, 40, 60)
RULE = {"rule": "lower_bound", "interval": "pairs", "min_pairs": 20, "threshold": 2.0}
MAPPING = {"pair": "pair", "rater": "rater", "quality": "quality", "fluency": "fluency"}


def systems_study(
    folder: Path, names: Sequence[str] = ("ours", "theirs", "third"), queues: Mapping[str, str] = MappingProxyType({})
) -> Study:
    """A drawn study of systems in a queue (or `queues`), whose 60 originals are rated in three blocks by two raters."""
    texts = [f"Text {number} says {number * 7919 % 1000} things of {number * 104729 % 997}." for number in range(60)]
    table = pd.DataFrame({"text": texts, **{name: [f"{name} {text}" for text in texts] for name in names}})
    parts = {"sample": {"pairs": 60, **ALONE}, "raters": {"per_pair": 2, "blocks": list(ENDS)}, "acceptance": RULE}
    study = of_outputs(folder, table, {name: queues.get(name, "both") for name in names}, name="blocks", **parts)
    generate(study)
    draw_sample(study)
    return study


def rate(study: Study, folder: Path, quality: Mapping[str, float], raters: Sequence[str] = ("ada", "alan")) -> None:
    """Two raters rate all that is open; looks are taken as by `publish`."""
    records, file = Evidence(study), folder / "answers.csv"
    open_pairs = [pair for pair in records.pairs if pair.pair_id not in records.unopened()]
    rng = np.random.default_rng(3)
    noise = {pair.pair_id: rng.normal(0, 0.8) + rng.normal(0, 0.3, 2) for pair in records.pairs}
    rows = [
        (pair.pair_id, rater, *(int(np.clip(round(quality[pair.transformation] + one), 1, 5)),) * 2)
        for pair in open_pairs
        for rater, one in zip(raters, noise[pair.pair_id], strict=True)
    ]
    pd.DataFrame(rows, columns=list(MAPPING)).to_csv(file, index=False)
    collect_csv(study, server.Home(folder / "home"), file, MAPPING)
    write_looks(Evidence(study))


def test_systems_of_a_queue_have_the_same_originals_in_each_block(tmp_path: Path) -> None:
    records = CampaignRecords(systems_study(tmp_path))
    numbers = block_numbers(records.study, records.pairs)
    blocks = defaultdict[tuple[str, int], set[str]](set)
    for pair in records.pairs:
        blocks[pair.transformation, numbers[pair.pair_id]].add(pair.original)
    for block in range(3):
        assert len(blocks["ours", block]) == 20
        assert blocks["ours", block] == blocks["theirs", block] == blocks["third", block]


def test_systems_of_two_queues_have_ranks_and_a_best_one_in_each(tmp_path: Path) -> None:
    queues = {"ours": "first", "theirs": "first", "third": "second", "fourth": "second"}
    study = systems_study(tmp_path, list(queues), queues)
    rate(study, tmp_path, {"ours": 4.2, "theirs": 3.0, "third": 3.4, "fourth": 2.2})
    found = Evidence(study).side_by_side
    best = found.systems[(found.systems["question"] == "quality") & (found.systems["rank"] == 1)]
    assert dict(zip(best["system"], best["queue"], strict=True)) == {"ours": "first", "third": "second"}
    quality = [sentence for sentence in answers(found) if "quality" in sentence]
    assert [sentence.split(" is better than ")[0] for sentence in quality] == ["Ours", "Third"]
    printed = table_two_exhibit(accept(study).groups, study.called).printed
    assert list(printed["Of"]) == ["system"] * 4 + ["overall"]  # an axis would repeat all
    assert study.called.known == "controls"


def test_blocks_go_on_for_systems_that_are_not_told_apart(tmp_path: Path) -> None:
    study, opened, words = systems_study(tmp_path), [], []
    for _ in range(3):
        rate(study, tmp_path, {"ours": 4.2, "theirs": 4.2, "third": 3.0})
        evidence = Evidence(study)
        opened.append([group.opened for group in evidence.blocks.values()])
        status = read_status(evidence, datetime.now(UTC))
        words.append((status.decided, status.blocks[0]))
    assert opened == [[2, 2, 1], [3, 3, 1], [3, 3, 1]]
    assert words[0][0] is False and words[2][0] is True
    assert words[0][1].endswith("not told apart from Theirs so far; block 2 of 3 still needs 40 answers")
    assert words[2][1].endswith("decided after block 1 of 3; told apart from Third; not told apart from Theirs")
    third = [pair.pair_id for pair in evidence.pairs if pair.transformation == "third"]
    assert len(evidence.spared & {*third}) == 40 and len(evidence.all_ratings["pair_id"].unique()) == 140
    done = accept(study)
    rows = done.side_by_side.differences[lambda frame: frame["question"] == "quality"].set_index(["system", "other"])
    assert rows["look"].tolist() == [3, 1, 1] and rows["n"].tolist() == [60, 20, 20]
    assert (rows["p_holm"] < 0.05).tolist() == [False, True, True]
    assert "hold at all looks together" in differences_exhibit(done.side_by_side).text()
    assert "not told apart from Ours" in next(answers(done.side_by_side))


def test_looks_at_systems_stay_as_they_were_taken(tmp_path: Path) -> None:
    """A pair is withdrawn after the first look: what that said stands, and the next has its own part of the error."""
    study = systems_study(tmp_path, ("ours", "theirs"))
    rate(study, tmp_path, {"ours": 4.2, "theirs": 4.0})
    before = Evidence(study)
    (taken,) = [look for look in before.block_looks if look.group[0] == "both"]
    assert taken.group == ("both", "ours", "theirs", "en") and not write_looks(before)
    couple = ("both", "ours", "theirs", "en", "quality")
    (first,) = before.side_by_side.looks[couple]
    rated = before.counting.astype({"question": str, "pair_id": str, "value": float})
    means = rated[rated["question"] == "quality"].groupby("pair_id")["value"].mean()
    facts = [(pair.original, pair.transformation, pair.pair_id) for pair in before.pairs if pair.pair_id in means]
    frame = pd.DataFrame(facts, columns=["original", "system", "pair_id"])
    frame = frame.assign(value=frame["pair_id"].map(means))
    grid = frame.pivot_table(index="original", columns="system", values="value")
    worst = (grid["ours"] - grid["theirs"]).idxmin()
    best = next(pair_id for original, system, pair_id in facts if (original, system) == (worst, "theirs"))
    withdraw(study, [best], take_back=False, reason="two texts in one")
    after = Evidence(study)
    (look,) = after.side_by_side.looks[couple]
    assert (first.pairs, look.pairs) == (20, 19) and look.mean > first.mean  # what speaks against theirs is stronger,
    assert (look.above, look.level) == (first.above, first.level)  # but what that look said stands
    rate(study, tmp_path, {"ours": 4.2, "theirs": 4.0})
    second = Evidence(study).side_by_side.looks[couple][1]
    assert second.pairs == 39 and second.level == pytest.approx(np.diff(spent([1 / 3, 2 / 3], "pocock"))[0])


def test_a_look_that_accept_takes_again_has_the_numbers_that_others_show(tmp_path: Path) -> None:
    """Two pairs of the second block are withdrawn after the look that decided, which is then taken again."""
    study = systems_study(tmp_path, ("ours", "theirs"))
    for _ in range(2):
        rate(study, tmp_path, {"ours": 2.25, "theirs": 2.25})
    before = Evidence(study)
    assert [(group.n_looks, group.decision) for group in before.blocks.values()] == [(2, "accepted")] * 2
    numbers = block_numbers(study, before.pairs)
    second = [pair.pair_id for pair in before.pairs if pair.transformation == "ours" and numbers[pair.pair_id] == 1]
    withdraw(study, second[:2], take_back=False, reason="two texts in one")
    done, later = accept(study), Evidence(study)
    assert len(later.block_looks) > len(before.block_looks)
    assert [one.probability for one in done.verdicts] == [one.probability for one in looked_at(later).verdicts]
    pd.testing.assert_frame_equal(done.side_by_side.differences, later.side_by_side.differences)


def test_a_look_that_was_taken_is_not_taken_again() -> None:
    index = [str(number) for number in range(40)]
    block, shares = {name: int(name) // 20 for name in index}, [0.5, 1.0]
    clear = pd.Series(np.tile([1.0, 1.0, 0.0, 2.0], 10), index=index)
    couple = ("a", "b")

    def p(n_looks: int, *past: DifferenceLook) -> float:
        blocks = SharedBlocks(shares, block, {couple: n_looks}, {couple: {"quality": past}})
        return blocks.p(blocks.looks(couple, "quality", clear))

    first = SharedBlocks(shares, block, {couple: 1}, {}).looks(couple, "quality", clear)[0]
    unclear = replace(first, above=0.2, below=0.8)
    assert p(1) < 1e-4 and p(1, first) == p(1)
    assert p(1, unclear) == pytest.approx(2 * error_reached(0.2, [0.5], [20]))
    assert p(1) > p(2, unclear) > 0  # the second look still may, with the error that is its own alone
    alone = SharedBlocks(shares, block, {couple: 2}, {couple: {"quality": [unclear]}}).looks(couple, "quality", clear)
    parts = np.diff(spent(shares, "pocock"), prepend=0.0)
    assert alone[1].level == pytest.approx(parts[1])
    assert p(2, replace(first, above=1e-9)) >= p(2)  # what decided must still decide


ENDS_OF_SIMULATION = (10, 20, 30, 40)


def ended(
    rng: np.random.Generator, qualities: Sequence[float], level: float
) -> tuple[list[float], list[DifferenceLook]]:
    """Three raters who lean rate systems near the top of the scale, until all are told apart: p by Holm, last looks."""
    n, blocks = ENDS_OF_SIMULATION[-1], len(ENDS_OF_SIMULATION)
    felt = level + np.array(qualities)[:, None, None] + rng.normal(0, 0.6, (1, n, 1)) + rng.normal(0, 0.4, (1, 1, 3))
    felt = felt + rng.normal(0, 0.6, (len(qualities), n, 1)) + rng.normal(0, 0.7, (len(qualities), n, 3))
    means = np.clip(np.round(felt), 1, 5).mean(axis=2)
    index = [str(number) for number in range(n)]
    block = {name: int(np.searchsorted(ENDS_OF_SIMULATION, int(name), side="right")) for name in index}
    couples = [(str(one), str(other)) for one, other in itertools.combinations(range(len(qualities)), 2)]
    differences = {(one, other): pd.Series(means[int(one)] - means[int(other)], index) for one, other in couples}
    complete = dict.fromkeys(couples, 1)
    while True:
        shared = SharedBlocks([end / n for end in ENDS_OF_SIMULATION], block, complete, {})
        looks = {couple: shared.looks(couple, "quality", differences[couple]) for couple in couples}
        adjusted = holm([shared.p(looks[couple]) for couple in couples])
        going = [c for c, p in zip(couples, adjusted, strict=True) if not p < 0.05 and complete[c] < blocks]
        if not going:
            return adjusted, [of_couple[-1] for of_couple in looks.values()]
        complete |= {couple: complete[couple] + 1 for couple in going}


def test_stopping_tells_equal_systems_apart_in_at_most_5_percent_and_intervals_cover() -> None:
    runs, rng = scaled(25, 2000), np.random.default_rng(6)
    least = 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    for level in (3.0, 4.6):
        found = [ended(rng, (0.0, 0.0, 0.0), level) for _ in range(runs)]
        assert sum(min(p) < 0.05 for p, _ in found) / runs < least
        assert sum(not looks[0].low <= 0 <= looks[0].high for _, looks in found) / runs < least
    unequal = [ended(rng, (0.0, -1.0), 4.0) for _ in range(runs)]
    used, told = np.mean([looks[0].pairs for _, looks in unequal]), np.mean([p[0] < 0.05 for p, _ in unequal])
    assert told > 0.9 and used < 0.7 * ENDS_OF_SIMULATION[-1]
    assert not any(p[0] < 0.05 and looks[0].mean < 0 for p, looks in unequal)


def test_a_question_that_nobody_answered_at_first_has_no_earlier_looks(tmp_path: Path) -> None:
    """An optional question's look 2 stays look 2, though no record of look 1 has it."""
    study = systems_study(tmp_path, ("ours", "theirs"))
    rate(study, tmp_path, {"ours": 4.2, "theirs": 4.0})
    before = Evidence(study)
    (first,) = [look for look in before.block_looks if look.group[0] == "both"]
    quality, fluency = first.values
    second = tuple(one.model_copy(update={"look": 2}) for one in (quality, fluency))
    taken = [first.model_copy(update={"values": (quality,)}), first.model_copy(update={"look": 2, "values": second})]
    members = {name: before.blocks[name, "en"] for name in ("ours", "theirs")}
    originals = {pair.pair_id: pair.original for pair in before.pairs}
    past = _shared_blocks("both", ["en"], members, taken, originals).past["ours", "theirs"]
    assert [len(past[name]) for name in (quality.question, fluency.question)] == [2, 0]

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation import output_statistics
from generation.output_tables import edit_distance, length_table, lengths_measure
from plumbline.__main__ import run
from plumbline.study import Study
from plumbline.study.transformations import EIGHT
from tests.generation.helpers import small_study, text
from tests.generation.outputs import write_outputs, write_texts

# Table 23: mean words of the transformed texts, in the order of EIGHT; the originals have 23.5.
GEMMA = (21.8, 22.0, 25.2, 101.6, 8.7, 25.4, 22.6, 22.3)
QWEN = (22.7, 22.9, 24.6, 45.4, 14.7, 25.4, 22.8, 22.6)


@pytest.mark.parametrize(
    ("original", "transformed", "distance"),
    [
        ("a b c d", "a b c d", 0.0),
        ("a b c d", "a x c", 2 / 4),  # one replaced, one deleted, of four
        ("a b", "a b c d e f g h", 6 / 8),
        ("A b", "a b", 1 / 2),
        ("one  two\n", "one two", 0.0),
        ("one two", "", 1.0),
        ("", "", 0.0),
        ("犬が公園を走る", "猫が公園を走る", 1 / 7),  # characters: one word of seven would be all or nothing
        ("a dog ran", "a 犬が走る ran", 4 / 6),  # dog becomes four characters
    ],
)
def test_edit_distance_on_words(original: str, transformed: str, distance: float) -> None:
    assert edit_distance(original, transformed) == pytest.approx(distance)


@given(st.text(), st.text())
def test_edit_distance_is_a_share_and_has_no_direction(one: str, other: str) -> None:
    assert 0 <= edit_distance(one, other) == edit_distance(other, one) <= 1
    assert edit_distance(one, one) == 0


def sums(generator: str, words: tuple[float, ...]) -> pd.DataFrame:
    """Ten texts a transformation, of one data set and seed, with these mean numbers of words."""
    return pd.DataFrame({"transformation": list(EIGHT), "words": [10 * value for value in words]}).assign(
        generator=generator,
        seed=1,
        dataset="a",
        language="en",
        texts=10,
        ok=10,
        failed=0,
        unanswered=0,
        original_words=235,
        distance=5.0,
    )


def test_table_23_of_the_paper_from_its_rows() -> None:
    table = length_table(pd.concat([sums("gemma", GEMMA), sums("qwen", QWEN)], ignore_index=True))
    rows = table.set_index(["name", "generator"])
    # (21.8 + 22.0 + 25.2) / 3, (101.6 + 8.7 + 25.4) / 3, (22.6 + 22.3) / 2, and the mean of these three
    words = {
        "lexical_stylistic": (23.0, 23.4),
        "length": (45.2, 28.5),
        "language": (22.45, 22.7),
        "overall": (30.2, 24.9),
    }
    for name, (gemma, qwen) in words.items():
        assert rows.loc[(name, "gemma"), "words"] == pytest.approx(gemma, abs=0.05)
        assert rows.loc[(name, "qwen"), "words"] == pytest.approx(qwen, abs=0.05)
    ratios = {"expansion": (4.32, 1.93), "summarisation": (0.37, 0.63), "length": (1.92, 1.21), "overall": (1.29, 1.06)}
    for name, (gemma, qwen) in ratios.items():
        assert rows.loc[(name, "gemma"), "ratio"] == pytest.approx(gemma, abs=0.005)
        assert rows.loc[(name, "qwen"), "ratio"] == pytest.approx(qwen, abs=0.005)
    assert rows.loc[("expansion", "qwen"), "words_difference"] == pytest.approx(45.4 - 101.6)
    assert rows.loc[("expansion", "gemma"), "words_difference"] == 0
    names = [name for name in table["name"] if name in EIGHT]
    assert names == [name for name in EIGHT for _ in range(2)]


def test_means_are_over_texts_then_seeds_then_data_sets() -> None:
    cells = [("a", 1, 2, 20), ("a", 2, 2, 40), ("b", 1, 8, 40), ("b", 2, 8, 40)]  # data set, seed, texts, words
    frame = pd.DataFrame(cells, columns=["dataset", "seed", "texts", "words"]).assign(
        generator="m", transformation="paraphrasing", language="en", failed=0, unanswered=0, distance=0.0
    )
    frame = frame.assign(ok=frame["texts"], original_words=10 * frame["texts"])
    row = length_table(frame).set_index("name").loc["paraphrasing"]
    # a: (20 / 2 + 40 / 2) / 2 = 15; b: (40 / 8 + 40 / 8) / 2 = 5; unweighted: 10, though 140 / 20 words a text
    assert (row["words"], row["original"], row["ratio"], row["datasets"], row["texts"]) == (10, 10, 1, 2, 10)


def test_outputs_that_failed_are_in_no_mean_and_counted_beside(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    texts = [text(value) for value in ("one two", "one two three four", "five", "six", "seven eight")]
    write_texts(study, texts)
    failed = {"status": "failed", "output": ""}
    changes = {
        "one two": {"output": "one"},
        "one two three four": {"output": "one two three"},
        "five": failed,
        "six": {"status": "unanswered", "output": "", "attempts": 0},
    }  # and nothing for the fifth
    write_outputs(study, texts, "paraphrasing", 1, changes)
    table = length_table(output_statistics.tally([study], lengths_measure())).set_index("name")
    row = table.loc["paraphrasing"]
    # originals with an output: (2 + 4) / 2 = 3 words; outputs: (1 + 3) / 2 = 2; distances: 1 of 2 and 1 of 4
    assert (row["original"], row["words"], row["distance"]) == (3, 2, 0.375)
    assert row["ratio"] == pytest.approx(2 / 3)
    assert (row["failed"], row["unanswered"], row["texts"]) == (20, 40, 5)
    assert pd.isna(table.loc["overall", "words"])  # two axes have no outputs


def test_the_command_prints_the_sample_study(
    generated: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--study", str(generated.file), "--exports", str(generated.folder.parent)]
    assert run(["compare", *options, "--csv", str(tmp_path / "lengths.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines[2:14]]
    assert names[:5] == ["lexical_stylistic", "paraphrasing", "backtranslation", "style_change", "length"]
    assert names[-1] == "overall"
    written = pd.read_csv(tmp_path / "lengths.csv")
    assert written["words"].notna().all() and len(written) == 12

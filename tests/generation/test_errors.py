from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation import output_statistics
from generation.output_tables import RATES, error_rates, errors_measure
from generation.production import generate
from plumbline.__main__ import run
from plumbline.error_types import FLAGS
from plumbline.errors import DataError, StudyError
from plumbline.records import TransformedText
from plumbline.store import read_frame
from plumbline.study import Study, load_study
from plumbline.study.transformations import EIGHT
from tests.generation.helpers import small_study, text, write_study
from tests.generation.outputs import write_outputs, write_texts
from tests.shared import note_outputs

WORDS = ("apple", "bread", "cloud", "dream")
TWO = {"transformations": ["paraphrasing", "summarisation"], "seeds": [1, 2]}


def rates(*studies: Study, by: str = "", after_retries: bool = False) -> list[dict[str, Any]]:
    """The table's rows, without the rates that are 0."""
    table = error_rates(output_statistics.tally(studies, errors_measure(after_retries=after_retries)), by)
    return [
        {name: value for name, value in row.items() if name not in RATES or value != 0}
        for row in table.to_dict("records")
    ]


def test_a_rate_is_the_mean_over_transformations_of_the_share_of_their_texts_and_seeds(tmp_path: Path) -> None:
    study = small_study(tmp_path, **TWO)
    texts = [text(word) for word in WORDS]
    write_texts(study, texts)
    same, long, both = (
        {"first_flags": flags} for flags in (["identical"], ["summary_too_long"], ["empty", "truncated"])
    )
    write_outputs(study, texts, "paraphrasing", 1, {"apple": same, "bread": both, "cloud": {}, "dream": {}})
    write_outputs(study, texts, "paraphrasing", 2, {"apple": {}, "bread": {}, "cloud": {}, "dream": same})
    write_outputs(study, texts, "summarisation", 1, {"apple": long, "bread": {}, "cloud": {}, "dream": {}})
    write_outputs(study, texts, "summarisation", 2, {"apple": {}, "bread": {}, "cloud": {}, "dream": {}})
    # identical 2 of 8 and 0 of 8: (25 + 0) / 2; summary too long 0 and 1 of 8: 12.5 / 2; total 3 and 1 of 8: 50 / 2
    assert rates(study) == [
        {
            "generator": "m",
            "identical": 12.5,
            "empty": 6.25,
            "truncated": 6.25,
            "summary_too_long": 6.25,
            "total": 25.0,
            "n": 16,
            "failed": 0,
            "unanswered": 0,
            "language_told": 100.0,
        }
    ]
    by = {
        row["transformation"]: (row.get("identical", 0), row["total"], row["n"])
        for row in rates(study, by="transformation")
    }
    assert by == {"paraphrasing": (25.0, 37.5, 8), "summarisation": (0, 12.5, 8)}


def test_table_5_of_the_paper_from_counts() -> None:
    """Gemma-3-27B's row: 1.7 identical, 0.1 JSON, 0.6 wrong language, 0.2 runaway, 0.4 summary too long, 3.0 in all."""
    counts = {
        "identical": (17, 40, 3, 0, 0, 20, 30, 26),  # 136 of 8 times 1,000 outputs
        "json_fragment": (0, 0, 0, 8, 0, 0, 0, 0),
        "wrong_language": (0, 0, 0, 0, 0, 0, 18, 30),
        "runaway": (16, 0, 0, 0, 0, 0, 0, 0),
        "summary_too_long": (0, 0, 0, 0, 32, 0, 0, 0),
        "total": (33, 40, 3, 8, 32, 20, 48, 56),  # 240
    }
    sums = pd.DataFrame({"transformation": list(EIGHT), **counts}).assign(
        generator="gemma", seed=1337, dataset="STSB", language="en", texts=1000, failed=0, unanswered=0
    )
    table = error_rates(sums.assign(**dict.fromkeys(set(RATES) - set(counts), 0), answered=1000, told=1000))
    assert [round(value, 9) for value in table[list(RATES)].iloc[0]] == [1.7, 0, 0, 0.1, 0, 0, 0.6, 0.2, 0, 0.4, 3.0]


def test_outputs_without_an_answer_are_in_no_rate_and_counted_beside(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    texts = [text(word) for word in (*WORDS, "earth")]
    write_texts(study, texts)
    changes = {
        "apple": {"first_flags": ["identical"]},
        "bread": {"status": "failed", "first_flags": ["empty"], "flags": ["empty"], "attempts": 3, "output": ""},
        "cloud": {"status": "failed", "attempts": 0, "output": ""},  # refused: no error type is known
        "dream": {"status": "unanswered", "first_flags": ["empty"], "attempts": 1, "output": ""},
    }  # and nothing for earth
    write_outputs(study, texts, "paraphrasing", 1, changes)
    (row,) = rates(study)
    assert (row["identical"], row["empty"], row["n"], row["failed"], row["unanswered"]) == (50.0, 50.0, 2, 2, 2)


def test_retries_count_only_if_they_are_asked_for(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    texts = [text(word) for word in WORDS[:2]]
    write_texts(study, texts)
    mended = {"first_flags": ["empty"], "flags": ["identical"], "attempts": 2}
    write_outputs(study, texts, "paraphrasing", 1, {"apple": mended, "bread": {}})
    (first,), (last,) = rates(study), rates(study, after_retries=True)
    assert (first["empty"], first["total"]) == (50.0, 50.0) and "identical" not in first
    assert (last["identical"], last["total"]) == (50.0, 50.0) and "empty" not in last


def test_a_text_of_two_data_sets_counts_in_both_and_what_is_no_longer_wanted_in_none(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    texts = [text("apple"), text("apple", dataset="others"), text("bread"), text("dream")]
    write_texts(study, texts[:3])
    changes = {"apple": {"first_flags": ["identical"]}, "bread": {}, "dream": {"first_flags": ["empty"]}}
    write_outputs(study, texts, "paraphrasing", 1, changes)  # dream was wanted once
    (row,) = rates(study)
    assert (round(row["total"], 9), row["n"]) == (round(200 / 3, 9), 3)
    assert [(row["dataset"], row["total"]) for row in rates(study, by="dataset") if "total" in row] == [
        ("words", 50.0),
        ("others", 100.0),
    ]


def test_a_journal_counts_before_the_table_and_what_is_ok_before_all(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    texts = [text(word) for word in WORDS[:2]]
    write_texts(study, texts)
    unanswered = {"status": "unanswered", "attempts": 0, "output": ""}
    write_outputs(study, texts, "paraphrasing", 1, {"apple": unanswered, "bread": {}})
    write_outputs(study, texts, "paraphrasing", 1, {"apple": unanswered}, in_journal=True)
    write_outputs(study, texts, "paraphrasing", 1, {"apple": {"first_flags": ["empty"]}}, in_journal=True)
    write_outputs(study, texts, "paraphrasing", 1, {"apple": unanswered}, in_journal=True)  # of another shard, before
    (row,) = rates(study)
    assert (row["empty"], row["n"], row["unanswered"]) == (50.0, 2, 0)


def test_it_is_said_where_a_language_cannot_be_told(tmp_path: Path) -> None:
    study = small_study(tmp_path)
    texts = [text("apple"), text("bread", language="de"), text("cloud", language="rn"), text("dream", language="rn")]
    write_texts(study, texts)
    write_outputs(study, texts, "paraphrasing", 1, {word: {} for word in WORDS})
    assert [row["language_told"] for row in rates(study)] == [50.0]
    told = {row["language"]: row["language_told"] for row in rates(study, by="language")}
    assert told == {"en": 100.0, "de": 100.0, "rn": 0.0}


def test_each_generator_of_each_study_has_a_row_and_a_name_of_its_own(tmp_path: Path) -> None:
    other = {"kind": "recorded", "model": "other", "revision": "2", "path": "outputs.jsonl"}
    silent: dict[str, object] = {"kind": "openai", "model": "silent", "base_url": "http://127.0.0.1:9/v1"}
    silent["settings"] = {"request": {"stop": ["."]}}
    one = small_study(tmp_path / "one", candidates=[other, other | {"revision": "3"}, silent])
    texts = [text("apple"), text("bread")]
    write_texts(one, texts)
    (newer,) = [spec for spec in one.candidates if spec.revision == "3"]
    for study in (one, one.by(one.candidates[0]), one.by(newer)):
        write_outputs(study, texts, "paraphrasing", 1, {"apple": {}, "bread": {"first_flags": ["empty"]}})
    studies = output_statistics.by_generator([one])
    assert output_statistics.labels(studies) == ["m", "other@2", "other@3"]  # nothing of `silent` is there
    assert [row["empty"] for row in rates(*studies)] == [50.0, 50.0, 50.0]
    assert output_statistics.incomparable(studies) == ""

    two = load_study(write_study(tmp_path / "two", name="two"), one.folder.parent)
    write_texts(two, texts[:1])
    write_outputs(two, texts, "paraphrasing", 1, {"apple": {}})
    both = output_statistics.by_generator([one, two])
    assert output_statistics.labels(both) == ["m (small)", "other@2 (small)", "other@3 (small)", "m (two)"]
    assert output_statistics.incomparable(both) == (
        "Not comparable: the studies small, two differ in their texts, transformations or seeds."
    )
    with pytest.raises(StudyError, match="'small' is named twice"):
        output_statistics.by_generator([one, two, one])


def test_outputs_of_a_transformation_of_another_study_are_damage(tmp_path: Path) -> None:
    study = small_study(tmp_path, **TWO)
    texts = [text("apple")]
    write_texts(study, texts)
    write_outputs(study, texts, "paraphrasing", 1, {"apple": {}})
    file = study.transformation_file("paraphrasing", 1)
    frame = read_frame(file, TransformedText, "").assign(transformation="expansion")
    note_outputs(study, "paraphrasing", 1, frame)
    with pytest.raises(DataError) as error:
        output_statistics.tally([study], errors_measure(study.transforming, after_retries=False))
    assert str(error.value) == (
        f"{file}: an output has the transformation 'expansion', which the study does not have, so the file is damaged;"
        " delete it and generate again"
    )


@settings(max_examples=25)
@given(st.lists(st.sets(st.sampled_from(FLAGS)), min_size=1, max_size=30))
def test_the_total_lies_between_the_largest_rate_and_the_sum_of_all(found: list[set[str]]) -> None:
    measure = errors_measure(after_retries=False)
    row = {"status": "ok", "attempts": 1, "transformation": "expansion", "source_language": "en", "language": None}
    sums = pd.DataFrame([measure.of(row | {"first_flags": sorted(flags)}) for flags in found], columns=measure.names)
    sums = sums.assign(generator="m", transformation="expansion", failed=0, unanswered=0)
    table = error_rates(sums).iloc[0]
    types = [table[flag] for flag in FLAGS]
    assert max(types) - 1e-9 <= table["total"] <= min(sum(types), 100) + 1e-9
    assert table["total"] == pytest.approx(100 * sum(map(bool, found)) / len(found))


def test_the_command_prints_the_sample_study_and_writes_what_a_spreadsheet_does_not_run(
    generated: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csv = tmp_path / "errors.csv"
    options = ["--study", str(generated.file), "--exports", str(generated.folder.parent), "--csv", str(csv)]
    assert run(["errors", *options]) == 0
    head, _, *notes = capsys.readouterr().out.splitlines()  # of two columns: the table is too wide to lie
    assert head.split() == ["generator", "plumbline-sample"]
    assert notes[-1] == f"-> {csv}" and not any("incomplete" in note for note in notes)
    (line,) = pd.read_csv(csv).to_dict("records")
    assert list(line) == ["generator", *FLAGS, "total", "n", "failed", "unanswered", "language_told"]


def test_what_is_not_complete_has_a_star(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = small_study(tmp_path, texts=("apple", "bread"))
    recorded = {"text": "apple", "transformation": "paraphrasing", "language": None, "intermediate": None}
    (tmp_path / "outputs.jsonl").write_text(json.dumps({**recorded, "output": "a pome"}))
    generate(study)
    capsys.readouterr()
    run(["errors", "--study", str(study.file), "--exports", str(study.folder.parent)])
    printed = capsys.readouterr().out
    assert printed.split("\n")[0].split() == ["generator", "m", "*"]
    assert "* incomplete" in printed

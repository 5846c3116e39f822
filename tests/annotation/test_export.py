"""Exported ratings: what is in them, what is left out, and that another study takes them in with equal numbers."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import datasets
import openpyxl
import pandas as pd
import pytest

from annotation import server
from annotation.campaign.names import named_pseudonym
from annotation.campaign.records import CampaignRecords
from annotation.campaign.rubric import load_rubric
from annotation.csv_answers import collect_csv, columns_of
from annotation.export import export
from annotation.ratings.answers import Answer, SourcePart, keep
from annotation.ratings.decisions import decide
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from plumbline.errors import DataError
from plumbline.exhibits.table import as_markdown
from plumbline.manifest import Manifest
from plumbline.records import Pair, Rating
from plumbline.study import Study
from plumbline.words import readable
from tests.annotation.verdicts.test_doubts import careless
from tests.annotation.verdicts.test_preregistration import made
from tests.concluded import concluded
from tests.scale import FULL
from tests.shared import generate_once

Make = Callable[..., Study]


def read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / name, encoding="utf-8-sig", keep_default_na=False)


def pairs_of(study: Study) -> list[Pair]:
    records = CampaignRecords(study)
    return [*records.pairs, *records.controls]


def test_another_study_takes_exported_answers_in_with_equal_numbers(variant: Make, tmp_path: Path) -> None:
    first, second = made(variant, "first"), made(variant, "second")
    careless(first)
    folder = export(first)
    draw_sample(second)
    answers = folder / "answers.csv"
    codebook = (folder / "codebook.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (.* --csv answers\.csv .*)$", codebook, re.M)
    mapping = shlex.split(command)[-1]
    collect_csv(second, server.Home(tmp_path / "home"), answers, columns_of(load_rubric(second).asked(), mapping))
    ratings = [CampaignRecords(study).all_ratings for study in (first, second)]
    assert len(ratings[0]) == len(ratings[1]) > len(CampaignRecords(first).ratings)  # controls and repeats came along
    for study in (first, second):
        accept(study)
    key = ["pair_id", "question"]
    means = [concluded(study).means.sort_values(key, ignore_index=True) for study in (first, second)]
    pd.testing.assert_frame_equal(means[0], means[1])
    assert set(ratings[0]["rater_id"]).isdisjoint(ratings[1]["rater_id"])  # pseudonyms of pseudonyms
    kinds, said = read(folder, "answers.csv")["item_kind"].value_counts(), list[str]()
    assert kinds["pair"] == 3 * 8 and kinds["control"] and kinds["repeat"] and kinds.sum() == 3 * len(pairs_of(first))
    plain = variant(name="plain", transformations=["paraphrasing"], sample={"pairs": 8, "controls": 0, "repeats": 0})
    generate_once(plain)
    draw_sample(plain)
    columns = columns_of(load_rubric(plain).asked(), mapping)
    taken = collect_csv(plain, server.Home(tmp_path / "home"), answers, columns, say=said.append)
    assert len(taken) == len(CampaignRecords(first).ratings) and CampaignRecords(plain).control_ratings.empty
    assert f"{kinds['control'] + kinds['repeat']} answers to controls and repeats" in said[-1]


def test_what_raters_wrote_is_left_out_unless_it_is_asked_for(variant: Make) -> None:
    study = made(variant, "first")
    careless(study)
    ratings = CampaignRecords(study).ratings.assign(comment="=cmd(), says Ada", source="Ada.csv")
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    folder = export(study)
    assert not any("Ada" in path.read_text(encoding="utf-8") for path in folder.iterdir())
    assert "file" in set(read(folder, "ratings.csv")["source"])
    folder = export(study, words=True)
    assert "'=cmd(), says Ada" in set(read(folder, "answers.csv")["comment"])
    attack = '<script>alert(1)</script> <img src="https://elsewhere.example/x.png"> ![x](https://elsewhere.example/y)'
    study = study.model_copy(update={"description": attack})  # which the codebook shows as text
    codebook = (export(study, licence=attack) / "codebook.md").read_text(encoding="utf-8")
    assert codebook.count(as_markdown(attack)) == 2 and "<" not in codebook


def test_answers_say_which_of_them_count(variant: Make) -> None:
    """Those of raters to the sample's pairs, and none of an excluded rater or to a control; the codebook says so."""
    study = made(variant, "counted")
    careless(study)
    rater = CampaignRecords(study).ratings["rater_id"].iloc[0]
    decide(study, rater, exclude=True, reason="careless")
    answers, pairs = (read(export(study), f"{name}.csv") for name in ("answers", "pairs"))
    of_sample = answers["pair"].isin(pairs.loc[pairs["control"] == "", "pair_id"])
    assert (answers["counts"] == (of_sample & (answers["rater"] != rater))).all()
    assert 0 < answers["counts"].sum() < of_sample.sum() < len(answers)
    codebook = (study.folder / "export" / "codebook.md").read_text(encoding="utf-8")
    described = codebook.partition("## answers")[2].partition("## ratings")[0]
    assert re.findall(r"^\| (\w+) \|", described, re.M)[1:] == list(answers)


def test_simulated_ratings_stay_simulated(variant: Make) -> None:
    assert named_pseudonym(b"key", "study", "Simulated-1234").startswith("simulated-")
    assert named_pseudonym(b"key", "study", "ada").startswith("rater-")
    study = made(variant, "first")
    careless(study)
    ratings = CampaignRecords(study).ratings.assign(simulated=True)
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    assert "SIMULATED RATINGS" in (export(study) / "codebook.md").read_text(encoding="utf-8")


def test_every_character_of_a_comment_comes_back(variant: Make, tmp_path: Path) -> None:
    first, second = made(variant, "typed"), made(variant, "typed-again")
    for study in (first, second):
        draw_sample(study)
    pair = CampaignRecords(first).pairs[0].pair_id
    signs = [sign for sign in map(chr, range(0x110000 if FULL else 0x20000)) if not 0xD800 < ord(sign) < 0xDFFF]
    words = {f"rater-{n:08x}": f"<{''.join(signs[n * 4000 : (n + 1) * 4000])}>" for n in range(len(signs) // 4000 + 1)}
    values = {"quality": 4, "fluency": 4}
    answers = tuple(
        Answer(pair_id=pair, rater_id=rater, values=values, comment=text, submitted_at="2026-03-01T12:00:00+00:00")
        for rater, text in words.items()
    )
    keep(CampaignRecords(first), "argilla", {"all": SourcePart("1", answers)}, replace=False)
    answered = export(first, words=True) / "answers.csv"
    mapping = ",".join(f"{name}={name}" for name in ("pair", "rater", "quality", "fluency", "time", "comment"))
    columns = columns_of(load_rubric(second).asked(), mapping)
    collect_csv(second, server.Home(tmp_path / "home"), answered, columns)
    # No name of a rater travels, so comments are held side by side as sets, a question each.
    told = [set(CampaignRecords(study).all_ratings["comment"]) for study in (first, second)]
    assert told[0] == told[1] == {readable(text) for text in words.values()}
    assert "\0" not in "".join(told[0]) and len(told[0]) == len(words)


def test_excel_and_datasets_hold_the_same_values_and_texts_are_never_formulas(
    variant: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study = made(variant, "forms")
    careless(study)
    words = "=1+1 says _x0041_, אבג\v"
    ratings = CampaignRecords(study).ratings.assign(comment=words)
    Manifest.of(study).write_table("ratings.parquet", ratings, Rating)
    csv = export(study, words=True)
    book = openpyxl.load_workbook(export(study, form="xlsx", words=True) / "ratings.xlsx")
    assert book.sheetnames == ["answers", "ratings", "pairs", "codebook"]
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = export(study, form="datasets", words=True)
    for name in ("answers", "ratings", "pairs"):
        plain = read(csv, f"{name}.csv")
        head, *rows = book[name].iter_rows()
        assert [cell.value for cell in head] == list(plain)
        assert not any(cell.data_type == "f" for row in rows for cell in row)
        loaded = datasets.load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded.column_names == list(plain) and loaded.num_rows == len(plain) == len(rows) > 10
        for number, column in enumerate(plain):
            told = [_as_text(row[number].value).replace("_x005F_", "_") for row in rows]
            assert told == [text.removeprefix("'") for text in map(_as_text, plain[column])]
            assert told == [readable(_as_text(value)) for value in loaded[column]]
    assert "\ufffd" in book["ratings"].cell(2, [cell.value for cell in book["ratings"][1]].index("comment") + 1).value
    described = {(row[0].value, row[1].value) for row in book["codebook"].iter_rows(min_row=2)}
    assert {("ratings", "comment"), ("pairs", "pair_id"), ("question", "quality")} <= described
    assert csv.joinpath("answers.csv").is_file()  # each form has its own files
    assert not re.search(r",\d\.0,", csv.joinpath("answers.csv").read_text(encoding="utf-8"))
    Manifest.of(study).write_table("ratings.parquet", ratings.assign(comment="x" * 2**15), Rating)
    with pytest.raises(DataError, match="a text of 32,768 characters is longer than Excel's cells can be"):
        export(study, form="xlsx", words=True)


def _as_text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, datetime):
        return str(value)
    return str(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)

"""`plumbline check` as a user meets it."""

from __future__ import annotations

import pandas as pd
import pytest

from evaluation.benchmarks.checks import COLUMNS
from plumbline.study import Study
from tests.commands import here


def run(study: Study, *words: str) -> tuple[int, str, str]:
    done = here("check", "--study", str(study.file), "--exports", str(study.folder.parent), *words)
    return done.returncode, done.stdout, done.stderr.replace("\r", "\n").strip().rpartition("\n")[2]


def test_data_sets_and_their_accepted_transformations_are_checked(study: Study) -> None:
    status, out, err = run(study)
    assert status == 0, err
    table = pd.read_csv(study.folder / "quality" / "checks.csv", keep_default_na=False)
    assert list(table.columns) == list(COLUMNS)
    names = ["paraphrasing-1337", "translation-1337"]
    assert list(dict.fromkeys(table["task"])) == [
        f"{name}{copy}" for name in ("sts", "requests") for copy in ("", *(f" {one}" for one in names))
    ]
    assert set(table["verdict"]) <= {"pass", "look", "fail"} and out.startswith("6 tasks, ")
    assert not table["threshold"].eq("").any() and not table["reason"].eq("").any()
    for name in table["rows_file"]:
        assert not name or len(pd.read_csv(study.folder / "quality" / name)) > 0
    before = (study.folder / "quality" / "checks.csv").read_bytes()
    assert run(study, "--task", "sts")[0] == 0
    assert set(pd.read_csv(study.folder / "quality" / "checks.csv")["task"]) == {"sts", *(f"sts {n}" for n in names)}
    assert run(study)[0] == 0 and (study.folder / "quality" / "checks.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--study", "nowhere.yaml"), "nowhere.yaml"),
        ((), "name a study (--study FILE) or tasks of mteb (--task NAME)"),
        (("--task", "STSBenchmarkk"), "did you mean 'STSBenchmark'?"),
    ],
)
def test_what_cannot_be_checked_is_one_line(words: tuple[str, ...], said: str) -> None:
    done = here("check", *words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1

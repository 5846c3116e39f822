from __future__ import annotations

from pathlib import Path

from generation.forecast import forecast
from generation.jobs import Plan
from tests.generation.helpers import small_study
from tests.generation.test_unit import WORDS, upper, work


def row(table: str, name: str) -> list[str]:
    (line,) = [line for line in table.splitlines() if line.startswith(f"{name} ")]
    return line.split()[1:]


def test_what_is_left_is_counted_in_texts_requests_and_tokens(tmp_path: Path) -> None:
    """Four words of five letters, one of them done: 3 texts of 15 characters.

    Paraphrasing is one call: 3 prompts and the texts go in, 15 * 0.93 characters come out. Backtranslation is two:
    of 15 * 0.96 characters after the first call (a translation), and 15 * 0.94 after the second. 4 characters a token.
    """
    study = small_study(tmp_path, WORDS)
    work(study, upper, stop_after=1)
    study = small_study(tmp_path, WORDS, transformations=["paraphrasing", "backtranslation"])
    table = forecast(study)
    prompt = {name: len(prompts[0].text) for name, prompts in Plan(study).prompts.items()}
    assert row(table, "paraphrasing") == ["1", "3", "3", f"{round((3 * prompt['paraphrasing'] + 15) / 4)}", "3"]
    sent = 4 * prompt["backtranslation"] + 20 + 4 * prompt["backtranslation"] + 20 * 0.96
    assert row(table, "backtranslation") == ["0", "4", "8", f"{round(sent / 4)}", f"{round(20 * (0.96 + 0.94) / 4)}"]
    assert row(table, "total")[:3] == ["1", "7", "11"]


def test_nothing_is_written(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    forecast(study)
    assert not study.folder.exists()
    work(study, upper, stop_after=1)
    before = {path: path.stat().st_mtime_ns for path in study.folder.rglob("*")}
    forecast(small_study(tmp_path, WORDS[:2]))  # another run may be generating all of them
    assert {path: path.stat().st_mtime_ns for path in study.folder.rglob("*")} == before

"""The page of people and models: there where people did tasks, as the report has it, and nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path

from streamlit_app.app import PAGES
from tests.evaluation.human.rehearsed import human_study, make_human
from tests.shared import made_once
from tests.streamlit_app.conftest import DEMO, Open
from tests.streamlit_app.test_app import assert_calm, specs, texts


def test_the_page_shows_the_reports_parts_and_items_of_a_task(page: Open, tmp_path: Path) -> None:
    shutil.copytree(made_once("human", make_human) / "exports", tmp_path / "exports")
    study = human_study(tmp_path)
    shown = page("--study", study.file, "--exports", tmp_path / "exports", view="human")
    assert_calm(shown)
    headings = [heading.value for heading in shown.header]
    assert headings[:3] == ["In short", "People and models", "Differences"] and "Items seen differently" in headings
    assert "On 6 tasks people reach" in texts(shown)
    assert sum("SIMULATED" in warning.value for warning in shown.warning) == 1
    assert len(specs(shown)) == 3
    items = next(table.value for table in shown.dataframe if "People said" in table.value)
    assert list(items["Apart"]) == sorted(items["Apart"], reverse=True) and len(items) > 1
    overview = page("--study", study.file, "--exports", tmp_path / "exports", view="overview")
    assert_calm(overview)
    assert "On 6 tasks people reach" in texts(overview)
    assert sum("SIMULATED" in warning.value for warning in overview.warning) == 1


def test_there_is_no_page_where_people_did_no_tasks(page: Open, exports: Path) -> None:
    shown = page("--study", DEMO, "--exports", exports, view="overview")
    assert "human" in PAGES.values() and "People and models" not in texts(shown)

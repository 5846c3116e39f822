"""A report's folder: what is a report's own goes with the next one, all else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import DataError
from plumbline.exhibits.files import LIST, write_files
from plumbline.store import atomic, write_json


def there(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {LIST}


def test_only_what_the_last_report_wrote_goes(tmp_path: Path) -> None:
    user_files = {"notes.md": "mine", "tables/my.csv": "mine", "tables/draft.tex": "mine"}
    for name, text in user_files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    write_files(tmp_path, {"tables/a.csv": b"1", "tables/b.csv": b"2", "figures/c.svg": b"3"})
    (tmp_path / "tables" / "b.csv").write_text("with my remarks", encoding="utf-8")
    write_files(tmp_path, {"tables/a.csv": b"4"})
    assert there(tmp_path) == {*user_files, "tables/a.csv", "tables/b.csv"}
    assert (tmp_path / "tables" / "a.csv").read_bytes() == b"4"
    assert (tmp_path / "tables" / "b.csv").read_text(encoding="utf-8") == "with my remarks"


def test_a_report_that_was_killed_leaves_nothing_to_the_one_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path) -> object:
        if path.name == "b.csv":
            raise KeyboardInterrupt
        return atomic(path)

    with monkeypatch.context() as patched:
        patched.setattr("plumbline.exhibits.files.atomic", killed)
        with pytest.raises(KeyboardInterrupt):
            write_files(tmp_path, {"a.csv": b"1", "b.csv": b"2"})
    write_files(tmp_path, {"c.csv": b"3"})
    assert there(tmp_path) == {"c.csv"}


@pytest.mark.parametrize("listed", [{"../outside.csv": ""}, {"/etc/none": ""}, ["a.csv"], "no list"])
def test_a_list_that_is_not_the_reports_removes_nothing(tmp_path: Path, listed: object) -> None:
    folder = tmp_path / "report"
    outside = tmp_path / "outside.csv"
    outside.write_bytes(b"")
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"")
    if listed == "no list":
        (folder / LIST).write_bytes(b"\xff[")
    else:
        if isinstance(listed, dict):  # with the hash of nothing, so that the name alone keeps it
            listed = dict.fromkeys(listed, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        write_json(folder / LIST, listed)
    write_files(folder, {"b.csv": b"1"})
    assert outside.exists() and there(folder) == {"a.csv", "b.csv"}


@pytest.mark.parametrize(("taken", "said"), [("a.csv", "a folder is there"), ("rows", "a file is there")])
def test_what_cannot_be_written_is_said_before_anything_is(tmp_path: Path, taken: str, said: str) -> None:
    (tmp_path / taken).mkdir() if taken == "a.csv" else (tmp_path / taken).write_text("mine")
    with pytest.raises(DataError, match=f"{taken}: {said}"):
        write_files(tmp_path, {"first.csv": b"1", "a.csv": b"2", "rows/b.csv": b"3"})
    assert [path.name for path in tmp_path.iterdir()] == [taken]

"""Names that outsiders choose and that files are called after: each stays below its folder, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from annotation import server
from annotation.campaign.names import known_names, remember_names
from annotation.campaign.records import CampaignRecords
from annotation.commands.annotators import Letter, hand_out
from annotation.ratings.answers import Answer, SourcePart, keep
from annotation.sampling.sample import draw_sample
from evaluation.benchmarks.checks import _rows_file
from evaluation.results import Score, path_of
from plumbline.errors import DataError
from plumbline.exhibits.table import write_files
from tests.annotation.campaigns import Make
from tests.shared import generate_once

EVIL = ("../../x", "/srv/x", "a/b/c", "..", ".", "a\0b", "a\nb", "x" * 300, "CON", "~", "-rf", "\u202egpj")


def below(folder: Path) -> list[Path]:
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", EVIL)
def test_letters_are_called_by_pseudonyms_and_one_name_stops_nobody(name: str, variant: Make, tmp_path: Path) -> None:
    home, study, folder = server.Home(tmp_path / "home"), variant(name="letters"), tmp_path / "out" / "letters"
    remember_names(home, study.name, {"rater-00000001": name, "rater-00000002": "ada"})
    named = known_names(home, study.name)
    letters = [Letter(person, rater, person) for rater, person in named.items()]
    hand_out(letters, folder)
    paths = [folder / "rater-00000001.txt", folder / "rater-00000002.txt"]
    assert sorted(below(folder)) == paths
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert not set("".join(texts)) & set("\0\n\u202e")


def test_snapshots_stay_in_their_folder_whatever_a_file_is_called(variant: Make) -> None:
    study = variant(name="sources", transformations=["paraphrasing"], sample={"pairs": 2})
    generate_once(study)
    draw_sample(study)
    (pair, *_) = CampaignRecords(study).pairs
    values, at = {"quality": 4, "fluency": 4}, "2026-03-01T12:00:00+00:00"
    for number, name in enumerate(EVIL, 1):
        answer = Answer(pair_id=pair.pair_id, rater_id=f"rater-{number:08}", values=values, submitted_at=at)
        keep(CampaignRecords(study), name, {name: SourcePart("1", (answer,))}, replace=False)
        snapshots = [path.name for path in (study.folder / "snapshots").iterdir()]
        assert len(snapshots) == number and max(map(len, snapshots)) < 255 - len(".123456.tmp."), name


@pytest.mark.parametrize("name", ["../../x", "/srv/x", "a/../../x", "a\0b", "a\nb", "\u202egpj"])
def test_reports_exports_and_benchmarks_write_nothing_outside_their_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "report"
    for file in (name, f"{name}.csv", f"{name}-EN/records.json"):  # a pool's, of pairs that somebody handed on
        with pytest.raises(DataError, match="is not a valid name for a report's file"):
            write_files(folder, {"good.csv": b"", file: b""})
    assert not folder.exists()


def score(model: str, revision: str, dataset: str = "STS") -> Score:
    values = dict.fromkeys(Score.model_fields, "") | {"model": model, "model_revision": revision, "dataset": dataset}
    return Score.model_construct(**(values | {"transformation": "paraphrasing", "seed": 1}))


@pytest.mark.parametrize("name", EVIL)
def test_results_of_models_and_rows_of_tasks_stay_in_their_folder(name: str, variant: Make) -> None:
    study = variant(name="models")
    path = path_of(study.folder, score(name, name))
    assert path.resolve().is_relative_to(study.folder.resolve()) if "\0" not in name else True
    rows = Path(_rows_file(name, "duplicates"))
    assert rows.parent == Path("rows") and rows.name.isprintable() and rows.name.endswith(".duplicates.csv")


def test_each_printed_letter_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    hand_out([Letter(name, f"rater-{name}", f"the link {name[::-1]}\n") for name in ("ada", "grace")], None)
    first, second = capsys.readouterr().out.split("\n---\n")
    assert "ada" in first and "grace" in second

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from annotation.records import Offering
from generation.jobs import Job, Plan
from generation.production import read_transformed
from generation.unit import Unit, planned
from plumbline.errors import StudyError
from plumbline.journal import Journal
from plumbline.manifest import Manifest
from plumbline.records import TransformedText
from plumbline.store import BATCH
from plumbline.study import Study
from tests.generation.helpers import small_study, write_study
from tests.generation.outputs import output

Say = Callable[[Job], tuple[str, str]]
WORDS = ("apple", "bread", "cloud", "dream")


def said(plan: Plan, job: Job, words: str, status: str) -> TransformedText:
    """The output, or the reason why there is none."""
    made = {"output": words} if status == "ok" else {"output": "", "reason": words}
    return output(job, **made, status=status, generator_hash=plan.generator_hash)


def work(
    study: Study, say: Callable[[Job], tuple[str, str]], *, again: bool = False, stop_after: int = 99
) -> list[str]:
    """What a run does with the study's one unit; returns the texts that were asked for."""
    plan, asked = Plan(study), []
    with planned(plan, again=again) as (unit,):
        if not unit.todo:
            unit.settle()
        for job in unit.jobs():
            if len(asked) == stop_after:
                break
            asked.append(job.text)
            if unit.add(said(plan, job, *say(job))):
                unit.settle()
    return asked


def upper(job: Job) -> tuple[str, str]:
    return job.text.upper(), "ok"


def there(study: Study) -> list[tuple[str, str]]:
    return [(row.text, row.output or row.reason) for row in read_transformed(study, "paraphrasing", 1)]


ALL = [(word, word.upper()) for word in WORDS]


def test_outputs_stand_in_the_order_of_the_texts_in_whatever_order_they_came(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    plan = Plan(study)
    with planned(plan) as (unit,):
        done = [unit.add(said(plan, job, *upper(job))) for job in reversed(list(unit.jobs()))]
        assert done == [False, False, False, True]
        unit.settle()
    assert there(study) == ALL
    assert not unit.journal.path.exists()


@pytest.mark.parametrize("stop_after", range(5))
def test_what_came_before_a_stop_is_not_asked_for_again(tmp_path: Path, stop_after: int) -> None:
    study = small_study(tmp_path, WORDS)
    assert work(study, upper, stop_after=stop_after) == list(WORDS[:stop_after])
    assert work(study, upper) == list(WORDS[stop_after:])
    assert there(study) == ALL


def test_unanswered_texts_are_asked_for_again_and_failed_ones_when_told_to(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    said = {"bread": ("too long", "failed"), "cloud": ("503", "unanswered")}
    work(study, lambda job: said.get(job.text) or upper(job))
    assert there(study) == [ALL[0], ("bread", "too long"), ("cloud", "503"), ALL[3]]
    assert work(study, upper) == ["cloud"]
    assert there(study) == [ALL[0], ("bread", "too long"), *ALL[2:]]
    assert work(study, upper, again=True) == ["bread"]
    assert there(study) == ALL
    for to in ("sandbox mturk", "argilla"):
        offering = Offering(at=datetime.now(UTC), to=to, pairs_sha256="", controls_sha256="", rubric_hash="")
        Manifest.of(study).write_models("offered.json", [offering])
        refused = pytest.raises(StudyError, match="--again would change outputs that people rate")
        with nullcontext() if to == "sandbox mturk" else refused:
            assert work(study, upper, again=True) == []


def test_new_texts_take_their_places_and_texts_that_went_are_kept_at_the_end(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    work(study, upper)
    write_study(tmp_path, ("dream", "earth", "apple"))
    assert work(study, upper) == ["earth"]
    assert there(study) == [
        ("dream", "DREAM"),
        ("earth", "EARTH"),
        ("apple", "APPLE"),
        ("bread", "BREAD"),
        ("cloud", "CLOUD"),
    ]
    write_study(tmp_path, WORDS)
    assert work(study, upper) == []


def test_a_stop_while_the_table_moves_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = small_study(tmp_path, WORDS)
    work(study, upper)
    write_study(tmp_path, (*WORDS, "earth"))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("plumbline.manifest.Manifest.write_table", stop)
    with pytest.raises(KeyboardInterrupt):
        work(study, upper)  # the table's rows are in the journal now, and the table is still there
    monkeypatch.undo()
    assert work(study, upper) == []
    assert there(study) == [*ALL, ("earth", "EARTH")]


def test_a_later_answer_goes_before_an_earlier_one(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    work(study, lambda job: ("503", "unanswered"))
    work(study, upper, stop_after=2)
    work(study, upper)
    assert there(study) == ALL


def test_a_journal_exchanges_no_answer_of_the_table(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    work(study, upper)
    journal = Journal(study.journal_file("paraphrasing", 1))
    journal.append(read_transformed(study, "paraphrasing", 1)[0].model_copy(update={"output": "Bananas."}))
    journal.close()
    assert work(study, upper) == []
    assert there(study) == ALL


def test_equal_texts_are_one_output_over_several_pieces(tmp_path: Path) -> None:
    """3 * BATCH texts of which each stands there three times, so BATCH outputs in the order of the first ones."""
    words = [f"word {number}" for number in range(BATCH)]
    study = small_study(tmp_path, (*words, *words[::-1], *words))
    assert work(study, upper, stop_after=BATCH + 1) == words
    assert there(study) == [(word, word.upper()) for word in words]


def test_a_study_that_has_all_leaves_its_files_alone(tmp_path: Path) -> None:
    study = small_study(tmp_path, WORDS)
    work(study, upper)
    path = study.transformation_file("paraphrasing", 1)
    before = path.stat().st_mtime_ns
    assert work(study, upper) == []
    assert path.stat().st_mtime_ns == before


def test_numbers_of_a_unit(tmp_path: Path) -> None:
    study = small_study(tmp_path, (*WORDS, "apple"))
    work(study, upper, stop_after=1)
    unit = Unit(Plan(study), "paraphrasing", 1, study.folder / "texts.parquet")
    assert (unit.wanted, unit.todo, unit.characters()) == (4, 3, len("bread" + "cloud" + "dream"))
    unit.close()

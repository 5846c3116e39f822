"""Outputs that the sample was drawn without: nobody rated their like, so no score may rest on them."""

from __future__ import annotations

from annotation.campaign.records import CampaignRecords
from evaluation.sources import Folder
from evaluation.units import ScoreUnit, plan_units
from generation.production import read_transformed
from plumbline.study import Study
from tests.shared import note_outputs

from .conftest import verdict


def units(study: Study, **changes: object) -> dict[str, ScoreUnit]:
    """The units of paraphrases, by data set."""
    found = plan_units(
        Folder(study), [verdict(study, name, **changes) for name in study.transformations], CampaignRecords(study).pairs
    )
    return {unit.dataset.name: unit for unit in found if unit.transformation == "paraphrasing"}


def flag(study: Study) -> set[str]:
    """Say of every third paraphrase that it is in the wrong language; the ids of their texts."""
    wrong = set[str]()
    for seed in study.seeds:
        rows = read_transformed(study, "paraphrasing", seed)
        changed = [row.model_copy(update={"flags": ("wrong_language",)}) for row in rows[::3]]
        rest = [row for row in rows if row.key not in {one.key for one in changed}]
        note_outputs(study, "paraphrasing", seed, [*changed, *rest])
        wrong |= {row.text_id for row in changed if row.status == "ok"}
    return wrong


def test_what_was_kept_out_of_the_sample_is_dropped_and_counted(study: Study) -> None:
    before = units(study)
    wrong = flag(study)
    rated, without = units(study), units(study, without=("wrong_language",))
    assert {name: unit.content_id for name, unit in rated.items()} == {n: u.content_id for n, u in before.items()}
    assert sum(unit.n_kept_out for unit in rated.values()) == 0
    for name, unit in without.items():
        items = {(text.split, text.item) for text in unit.dataset.texts() if text.text_id in wrong}
        assert unit.n_kept_out == unit.n_failed - rated[name].n_failed == len(items) > 0
        assert unit.outputs is not None and unit.outputs.kept_out <= wrong & unit.outputs.failed
        assert unit.content_id != rated[name].content_id  # no score of the others is reused
        if unit.decision.status == "evaluated":
            left = {text.text_id for text in unit.dataset.texts()} - unit.outputs.failed
            assert {text.text_id for text in unit.original().texts()} <= left
            assert unit.n < rated[name].n or all(split != "test" for split, _ in items)


def test_a_verdict_in_another_language_keeps_nothing_out(study: Study) -> None:
    flag(study)
    own = [verdict(study, name) for name in study.transformations]
    other = verdict(study, "paraphrasing", language="de", without=("wrong_language",))
    assert not any(unit.n_kept_out for unit in plan_units(Folder(study), [*own, other], CampaignRecords(study).pairs))

"""The tasks of a study that are checked: its data sets, and what accepted transformations made of them."""

from __future__ import annotations

from collections.abc import Sequence

from annotation.judges.deciding import refuse_other_judgements
from annotation.sampling.sample import read_pairs
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation.build.quality.checks import Task
from evaluation.planner import plan_units
from evaluation.units import Unit
from generation.datasets.loading import load_dataset
from plumbline.study import Study
from plumbline.transformations import ORIGINAL

_NO_VERDICTS = "there are no verdicts yet, so that data sets are checked as they are, and no transformation of them"


def tasks_of(study: Study, names: Sequence[str]) -> tuple[list[Task], list[str]]:
    """The data sets (those of `names`, where any are named) and their accepted copies, with notes on what is not there.

    Verdicts must follow from what is on disk, as for an evaluation. Raises what that raises.
    """
    wanted = [spec for spec in study.datasets if not names or spec.name in names]
    if study.subject:
        return [Task(spec.name, load_dataset(spec, study.file.parent)) for spec in wanted], []
    if not (study.folder / "verdicts.json").exists():
        originals = study.model_copy(update={"transformations": (), "datasets": tuple(wanted)})
        return [Task(name_of(unit), unit.dataset, unit) for unit in plan_units(originals, [], [])], [_NO_VERDICTS]
    verdicts = read_verdicts(study)
    evidence = Evidence.read(study)
    refuse_stale(study, verdicts, evidence.rubric)
    refuse_edited(study, verdicts, evidence)
    refuse_other_judgements(evidence, verdicts)
    units = plan_units(study.model_copy(update={"datasets": tuple(wanted)}), verdicts, read_pairs(study))
    left = [unit for unit in units if unit.decision.status == "left_out" and unit.transformation != ORIGINAL]
    tasks = [
        Task(name_of(unit), unit.data(), unit)
        for unit in units
        if unit.decision.status == "evaluated" or unit.transformation == ORIGINAL
    ]
    kept = {unit.transformation for unit in left}
    notes = [f"not accepted everywhere, and not checked there: {', '.join(sorted(kept))}"] if kept else []
    return tasks, notes


def original_of(study: Study, name: str) -> Unit:
    """One data set of a study as it is."""
    spec = next(spec for spec in study.datasets if spec.name == name)
    (unit,) = plan_units(study.model_copy(update={"transformations": (), "datasets": (spec,)}), [], [])
    return unit


def name_of(unit: Unit) -> str:
    """A task's name: the data set's, with transformation and seed behind it."""
    if unit.transformation == ORIGINAL:
        return unit.name
    return f"{unit.name} {unit.transformation}-{unit.seed}"

"""What an evaluation under instructions would take, before anything is loaded but the data."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.instructions.results import Results
from evaluation.instructions.units import Unit, plan
from evaluation.units import Model, chosen_models
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_tasks import MtebTask
from plumbline.cli import columns
from plumbline.study import Study
from plumbline.study.datasets import SEARCHES


def forecast(study: Study, *, models: Sequence[str] = (), include_unaccepted: bool = False) -> str:
    """For each model and data set: prompts, scores that are left, texts that these encode at most, and characters.

    Documents of searches are counted once, other texts once a prompt. What is encoded already is not taken off.
    """
    chosen = [Model.of(study, spec) for spec in chosen_models(study, models)]
    units = plan(study, include_unaccepted=include_unaccepted)
    results = Results(study, units, chosen)
    rows, totals = [], [0, 0, 0]
    for model in chosen:
        left = results.todo(model)
        for name in dict.fromkeys(unit.dataset.name for unit in units):
            own = [unit for unit in left if unit.dataset.name == name]
            every = sum(unit.dataset.name == name and not unit.reason for unit in units)
            texts, signs = _cost(own)
            totals = [a + b for a, b in zip(totals, (len(own), texts, signs), strict=True)]
            rows.append([model.name, name, str(every), str(len(own)), f"{texts:,}", f"{signs / 1e6:.2f}"])
    table = columns(["Model", "Data set", "Prompts", "Left", "Texts", "Million characters"], rows)
    scores, texts, signs = totals
    cost = f"{texts:,} texts, {signs / 1e6:.2f} million characters, to encode"
    return f"{table}\n\n{study.name}: {scores} scores left; {cost}"


def _cost(units: Sequence[Unit]) -> tuple[int, int]:
    """Texts and characters that these units of one data set encode."""
    if not units:
        return 0, 0
    dataset = units[0].dataset
    prompted = {one.text for one in dataset.texts() if one.field != "passage"}
    documents = _documents(dataset)
    signs = sum(map(len, prompted))
    prompts = sum(len(unit.wanted.text or "") for unit in units)
    return (
        len(units) * len(prompted) + len(documents),
        len(units) * signs + len(prompted) * prompts + sum(map(len, documents)),
    )


def _documents(dataset: Dataset) -> set[str]:
    """The distinct passages that are searched."""
    if isinstance(dataset, TableDataset) and dataset.task == "retrieval":
        return set(dataset.corpus.values())
    if isinstance(dataset, MtebTask) and dataset.task in SEARCHES:
        parts = [parts[dataset.loaded.split]["corpus"] for parts in dataset.loaded.task.dataset.values()]
        return {text for part in parts for text in part["text"]}
    return {text for one in dataset.passages_of() for text in (*one.relevant, *one.others)}

"""The data sets of a study as a bundle names them: their licences, what of them is handed on, and their places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.bundle.manifest import Source
from generation.datasets.dataset import Dataset
from generation.datasets.mteb_tasks import MtebTask
from plumbline.errors import StudyError, nearest
from plumbline.records import Text
from plumbline.study import Study
from plumbline.study.bundle import RightsSpec
from plumbline.study.datasets import DatasetSpec, LocalDataset

_UNSAID = ("", "not specified")


def source_of(study: Study, spec: DatasetSpec, dataset: Dataset, texts: Mapping[str, Text]) -> Source:
    """What the manifest says of a data set; `texts` are its distinct ones by id. StudyError without a licence."""
    known = _of_mteb(dataset)
    rights = study.bundle.datasets.get(spec.name)
    licence = rights.licence if rights else known["licence"]
    if licence in _UNSAID:
        raise StudyError(
            f"{study.file}: nobody says under which licence the texts of {spec.name!r} are; add to the study"
            f" `bundle: {{datasets: {{{spec.name}: {{licence: cc-by-4.0}}}}}}`, with `texts: reference` where they may"
            " not be handed on"
        )
    said = rights or RightsSpec(licence=licence)
    return Source(
        name=spec.name,
        kind="local" if isinstance(spec, LocalDataset) else "mteb",
        task=dataset.task,
        revision=dataset.revision,
        texts=said.texts,
        n_texts=len(texts),
        languages=tuple(sorted({text.language for text in texts.values()})),
        licence=licence,
        citation=said.citation or known["citation"],
        reference=said.reference or known["reference"],
        domains=said.domains or known["domains"],
    )


def refuse_unknown_names(study: Study) -> None:
    """Raise StudyError for rights of a data set that the study does not have."""
    names = [spec.name for spec in study.datasets]
    for name in study.bundle.datasets:
        if name not in names:
            raise StudyError(f"{study.file}: bundle.datasets: no data set {name!r}; {nearest(name, names)}")


def referenced(study: Study, spec: DatasetSpec) -> bool:
    """Whether the texts of a data set stay out of the bundle."""
    rights = study.bundle.datasets.get(spec.name)
    return rights is not None and rights.texts == "reference"


def portable(spec: DatasetSpec, dataset: Dataset) -> dict[str, Any]:
    """A data set's part of the study without the maker's folders; of a task of mteb with its revision."""
    said = spec.model_dump(mode="json", exclude_defaults=True)
    if isinstance(spec, LocalDataset):
        return {**said, "path": spec.path.rstrip("/").rpartition("/")[2]}
    path, _, revision = dataset.revision.rpartition("@")
    pinned = {"revision": revision} if len(revision) == 40 else {}
    return {**said, "name": spec.name, "path": path, **pinned}


def _of_mteb(dataset: Dataset) -> dict[str, Any]:
    """What mteb knows of a task's data."""
    if not isinstance(dataset, MtebTask):
        return {"licence": "", "citation": "", "reference": "", "domains": ()}
    meta = dataset.loaded.task.metadata
    return {
        "licence": str(meta.license or ""),
        "citation": str(meta.bibtex_citation or ""),
        "reference": str(meta.reference or ""),
        "domains": tuple(map(str, meta.domains or ())),
    }

"""What of a study travels: its settings without folders, addresses and names, and how its texts were made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from annotation.records import RuleSet
from annotation.rubric import Rubric
from annotation.verdicts.preregistration import SAID
from evaluation.bundle.manifest import DatasetSource
from evaluation.bundle.tables import BundledPrompt, BundledTransformation
from generation.datasets.dataset import Dataset
from generation.datasets.mteb_tasks import MtebTask
from generation.jobs import Plan
from plumbline.errors import StudyError, nearest
from plumbline.records import SOURCES, Text, text_id
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec, LocalDataset
from plumbline.study.evaluation import RightsSpec
from plumbline.words import trim

WITHHELD = "(not in the bundle)"  # what stands for raters' free words
#: What of a model a bundle may say: nothing of it reaches into a machine (a folder, a server, a key, code).
OF_MODELS = ("name", "kind", "revision", "prompts", "ngrams", "dimensions")
FOLDER = "folder"  # key of a generator whose model is the name of a folder: its hash is of the whole path
KINDS = ("sentence_transformers", "mteb", "lexical")
_OF_GENERATORS = ("kind", "model", "revision", "sampling", "languages", "quantization", "dtype", "max_model_len")


def settings(study: Study, datasets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The study as `study.json` has it: all that a number hangs on, and nothing of the maker's machine or people."""
    spec = study.evaluation
    asked = {"prompts": study.prompts, "languages": list(study.languages), "wordings": list(study.wordings)}
    return {
        "name": study.name,
        "description": study.description,
        "datasets": list(datasets),
        "transformations": list(study.transformations),
        "seeds": list(study.seeds),
        **{name: value for name, value in asked.items() if value},
        "generator": generator(study),
        "sample": study.sample.model_dump(mode="json"),
        "rubric": study.rubric,
        "raters": {"per_pair": study.raters.per_pair},
        "acceptance": study.acceptance.model_dump(mode="json", exclude_unset=True),
        "quality": study.quality.model_dump(mode="json", exclude_unset=True),
        **({"judges": _judges(study)} if study.acceptance.judges.use == "decide" else {}),
        "evaluation": {
            **spec.model_dump(mode="json", include={"protocol", "precision", "failed"}),
            "models": _models(study),
        },
    }


def rules(sets: Sequence[RuleSet]) -> list[RuleSet]:
    """The sets of rules that were fixed, without folders of the maker's in them."""
    return [one.model_copy(update={"rules": {**one.rules, **_of_judges(one.rules)}}) for one in sets]


def _of_judges(said: Mapping[str, Any]) -> dict[str, Any]:
    """The judges of a set of rules, models in folders by their folders' names."""
    if "judges" not in said:
        return {}
    each = [{**one, "model": named(one["model"])} for one in said["judges"]["each"]]
    return {"judges": {**said["judges"], "each": each}}


def _judges(study: Study) -> list[dict[str, Any]]:
    """The judges that decide with people, as the rules have them."""
    each = [spec.model_dump(mode="json", include=set(SAID)) for spec in study.judges]
    return [{**one, "model": named(one["model"])} for one in each]


def generator(study: Study) -> dict[str, Any]:
    """What made the texts, without where it stood: of a folder its name, and that it is one."""
    said = study.generator.model_dump(mode="json", exclude_none=True)
    known = {name: said[name] for name in _OF_GENERATORS if name in said}
    name = named(said["model"])
    return known if name == said["model"] else {**known, "model": name, FOLDER: True}


def named(model: str) -> str:
    """A model's name: of a folder on the maker's machine its last part."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model


def transformations(study: Study, plan: Plan) -> list[BundledTransformation]:
    """How each transformation was made, in the study's order."""
    made = []
    for name, kind in plan.kinds.items():
        said = kind.model_dump(mode="json", exclude_defaults=True)
        if kind.outputs:
            said["outputs"]["path"] = kind.outputs.path.rpartition("/")[2]
        maker, prompts = plan.makers[name], plan.prompts[name]
        made.append(
            BundledTransformation(
                definition=said,
                prompts=tuple(
                    BundledPrompt(name=one.name, source=one.source, language=one.language, text=one.text)
                    for one in prompts
                ),
                prompt_hash=plan.prompt_hashes[name],
                kind=maker.kind,
                model=named(maker.model),
                generator_hash=maker.hash,
            )
        )
    return made


def ratings(frame: pd.DataFrame, rubric: Rubric, spoken: pd.Series[bool]) -> pd.DataFrame:
    """Ratings as they travel: without batches, times on the page and file names; raters' own words where `spoken`."""
    known = frame["source"].isin(SOURCES)
    frame = frame.assign(source=frame["source"].where(known, "file"), batch="", seconds=float("nan"))
    free = frame["question"].isin([one.name for one in rubric.asked() if one.kind == "text"]) & (frame["answer"] != "")
    return frame.assign(
        comment=frame["comment"].where(spoken, ""), answer=frame["answer"].where(spoken | ~free, WITHHELD)
    )


def _models(study: Study) -> list[dict[str, Any]]:
    """The models that anybody can load as the maker did: of the hub and of mteb, and those that need no files."""
    return [
        spec.model_dump(mode="json", exclude_unset=True, include=set(OF_MODELS))
        for spec in study.evaluation.models
        if spec.kind in KINDS and not (spec.path or spec.package)
    ]


_UNSAID = ("", "not specified")


def source_of(study: Study, spec: DatasetSpec, dataset: Dataset, texts: Mapping[str, Text]) -> DatasetSource:
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
    return DatasetSource(
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


COPY = "copy_of"


def hashes_of(texts: Iterable[Text], handed_on: Collection[str]) -> dict[str, str]:
    """The hash of each text's words, as they are and without white space around them, but of those handed on."""
    return {
        words: text_id(words, text.language)
        for text in texts
        if text.text not in handed_on
        for words in (text.text, trim(text.text))
    }


def without(outputs: pa.Array, hashes: Mapping[str, str]) -> tuple[pa.Array, pa.Array]:
    """(outputs, empty where they are one of these texts; the hashes of those, empty elsewhere)."""
    if not hashes:
        return outputs, pa.array([""] * len(outputs), pa.string())
    places = pc.index_in(outputs, value_set=pa.array(hashes, pa.string()))
    copies = pc.fill_null(pa.array(hashes.values(), pa.string()).take(places), "")
    return pc.if_else(places.is_null(), outputs, ""), copies


def words_of(texts: Iterable[Text]) -> dict[str, str]:
    """The words of texts by the hashes that stand for them."""
    return {text_id(words, text.language): words for text in texts for words in (text.text, trim(text.text))}

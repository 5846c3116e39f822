"""`plumbline bundle export`: write a study's validated outputs, with their evidence, as one file.

A folder is written and then packed: records, tables' description for the hub, and tasks for mteb. Memory holds one unit
of outputs. It includes the study's settings without folders, addresses and names. The file appears complete, and only
after it was read back and checked as `inspect` does.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel

from annotation.campaign.names import is_pseudonym
from annotation.records import PairMean
from annotation.verdicts.conclusion import looked_at
from evaluation.bundle import card, records, tables
from evaluation.bundle.archive import pack
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.check import open_checked
from evaluation.bundle.mteb_tasks import TaskDraft, write_study_tasks
from evaluation.bundle.records import BundledPrompt, BundledTransformation, BundleFacts, BundleManifest, DatasetFacts
from evaluation.records import EvaluationRecords
from evaluation.sources import Folder
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_tasks import MtebTask
from generation.jobs import COMMAND as GENERATE
from generation.jobs import Plan, refuse_other_outputs
from plumbline.errors import DataError, StudyError, nearest
from plumbline.records import SOURCES, Pair, Rating, Score, Text, TransformedText, arrow_schema, text_id
from plumbline.resources import version_of
from plumbline.store import atomic, json_bytes, read_table
from plumbline.study import Study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import BundleSpec
from plumbline.words import count, trim

WITHHELD = "(not in the bundle)"  # replaces raters' free answers
_COLUMNS = ("key", "text_id", "source_language", "output", "status", "reason", "flags", "first_flags", "attempts")
_UNNAMED = ("", "not specified")  # missing licences


@dataclass(frozen=True)
class BundleExport:
    """A written bundle, read back; its tasks for mteb, and what these and Croissant lack, a line each."""

    bundle: Bundle
    tasks: Sequence[TaskDraft]
    gaps: Sequence[str]


def export(
    study: Study, out: Path, *, comments: bool = False, step: Callable[[], object] = lambda: None
) -> BundleExport:
    """Write a study's bundle to `out`, and read it back.

    `comments` includes raters' comments and free answers; `step` is called for each unit of outputs. Raises StudyError
    for a study that cannot have a bundle or lacks facts for one, DataError for records that do not follow from each
    other.
    """
    study.refuse_unfit("export")
    names = [spec.name for spec in study.datasets]
    for key, named in (("licences", study.bundle.licences), ("withheld", study.bundle.withheld)):
        for name in named:
            if name not in names:
                raise StudyError(f"{study.file}: bundle.{key}: no data set {name!r}; {nearest(name, names)}")
    evidence = EvaluationRecords(study)
    raters = evidence.collected.plain_ratings["rater_id"].unique()
    if named_raters := [rater for rater in raters if not is_pseudonym(rater)]:
        raise DataError(
            f"{study.folder / 'ratings.parquet'}: {count(len(named_raters), 'rater')}"
            f" {'has' if len(named_raters) == 1 else 'have'} no pseudonym such as rater-1a2b3c4d;"
            f" run `{study.command('collect')}` again"
        )
    bundles = list[Bundle]()

    def checked(path: Path) -> bool:
        bundles.append(open_checked(path))
        return True

    with tempfile.TemporaryDirectory(prefix="plumbline-bundle-") as temporary:
        folder = Path(temporary)
        writer = _BundleWriter(study, evidence, folder, comments)
        writer.write(step)
        tasks, left_out = write_study_tasks(writer.source, writer.facts, evidence.pairs, folder)
        missing = card.write_cards(writer.facts, folder, tasks, left_out)
        with atomic(out, checked, public=True) as file:
            pack(folder, file)
    return BundleExport(bundles[-1], tasks, [*(f"no task for mteb: {line}" for line in left_out), *missing])


class _BundleWriter:
    """Writes a study's records and data to a folder."""

    def __init__(self, study: Study, evidence: EvaluationRecords, folder: Path, comments: bool) -> None:
        self.source = Folder(study)
        self._study, self._evidence, self._folder, self._comments = study, evidence, folder, comments
        self._conclusion = looked_at(evidence, evidence.design.seed)
        self._texts = list[Text]()  # the distinct texts of each data set, in order
        self._settings = list[dict[str, Any]]()  # of data sets
        self._datasets: dict[str, DatasetFacts] = {}

    @functools.cached_property
    def facts(self) -> BundleFacts:
        """The facts about the bundle, once the data sets are written."""
        study = self._study
        manifest = BundleManifest(
            licence=study.bundle.licence,
            metadata=study.bundle.metadata,
            made_with=version_of("plumbline"),
            datasets=self._datasets,
        )
        ratings = self._evidence.collected.plain_ratings
        ratings = ratings if self._comments else ratings.assign(comment="")
        return BundleFacts(_settings(study, self._settings), manifest, self._conclusion.verdicts, ratings)

    def write(self, step: Callable[[], object]) -> None:
        """Write data sets, outputs, settings, ratings, verdicts, scores, and the manifest."""
        study, plan = self._study, self.source.plan
        for spec in study.datasets:
            self._write_dataset(spec, self.source.dataset(spec))
        for name in study.transformations:
            for seed in study.seeds:
                self._write_table(records.outputs_of(name, seed), self._outputs(plan, name, seed))
                step()
        self._write_json(records.TRANSFORMATIONS, list(_transformations(plan)))
        self._write_json(records.STUDY, self.facts.settings)
        self._write_ratings()
        self._write_verdicts()
        if (study.folder / records.SCORES).exists():
            scores = self._evidence.scores
            failed = scores["status"] == "failed"  # its reason may name folders and servers
            scores = scores.assign(reason=scores["reason"].mask(failed, WITHHELD))
            self._write_table(records.SCORES, tables.of_frame(scores, Score))
        self._write_json(records.MANIFEST, self.facts.manifest)

    def _write_table(self, name: str, table: pa.Table) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")

    def _write_json(self, name: str, content: BaseModel | Sequence[BaseModel] | Mapping[str, Any]) -> None:
        (self._folder / name).write_bytes(json_bytes(content))

    def _write_dataset(self, spec: DatasetSpec, dataset: Dataset) -> None:
        """Write a data set's texts, and the rows of a local one, unless its texts may not be shared."""
        distinct = {text.text_id: text for text in dataset.texts()}
        facts = _facts_of(self._study.bundle, spec, dataset, distinct, self._study.file)
        self._datasets[spec.name] = facts
        self._settings.append(_dataset_settings(spec, dataset))
        self._texts += distinct.values()
        included = facts.texts == "include"
        rows = (text if included else text.model_copy(update={"text": ""}) for text in dataset.texts())
        self._write_table(records.texts_of(spec.name), tables.of_records(rows, Text))
        if included and isinstance(dataset, TableDataset):
            for name, table in tables.dataset_tables(dataset):
                self._write_table(name, table)

    @functools.cached_property
    def _hidden(self) -> list[str]:
        return [name for name, facts in self._datasets.items() if facts.texts == "reference"]

    @functools.cached_property
    def _withheld(self) -> dict[str, str]:
        """The hashes of their texts by text, as they are and without outer white space."""
        shared = {text.text for text in self._texts if text.dataset not in self._hidden} if self._hidden else set()
        hidden = (text for text in self._texts if text.dataset in self._hidden and text.text not in shared)
        return {words: text_id(words, text.language) for text in hidden for words in (text.text, trim(text.text))}

    def _write_ratings(self) -> None:
        """Write pairs and ratings: without batches, times on the page and file names, and comments only on request."""
        pairs, rubric = self._evidence.collected.pairs, self._evidence.rubric
        words = pairs["dataset"].isin(self._hidden)
        for name in ("original", "transformed"):  # in controls both are originals, in pairs the first
            out = words if name == "original" else words & pairs["control"].isin(("positive", "negative"))
            out |= pairs[name].isin(list(self._withheld))
            pairs = pairs.assign(**{name: pairs[name].astype(str).where(~out, "")})
        pairs = pairs.astype(dict.fromkeys(pairs.select_dtypes("category"), str))
        pairs = pairs.assign(model=pairs["model"].map(_name_of))
        ratings = self._evidence.collected.plain_ratings
        spoken = self._comments & ~ratings["pair_id"].isin(pairs.loc[words, "pair_id"])  # comments may quote texts
        free = ratings["question"].isin([question.name for question in rubric.asked() if question.free_text])
        ratings = ratings.assign(
            source=ratings["source"].where(ratings["source"].isin(SOURCES), "file"),
            batch="",
            seconds=float("nan"),
            comment=ratings["comment"].where(spoken, ""),
            answer=ratings["answer"].where(spoken | ~free | (ratings["answer"] == ""), WITHHELD),
        )
        is_control = pairs["control"] != ""
        of_controls = ratings["pair_id"].isin(pairs.loc[is_control, "pair_id"])
        for name, frame, record in (
            (records.PAIRS, pairs[~is_control], Pair),
            (records.CONTROLS, pairs[is_control], Pair),
            (records.RATINGS, ratings[~of_controls], Rating),
            (records.CONTROL_RATINGS, ratings[of_controls], Rating),
            (records.MEANS, self._conclusion.means, PairMean),
        ):
            self._write_table(name, tables.of_frame(frame, record))

    def _write_verdicts(self) -> None:
        evidence = self._evidence
        verdicts = []
        for verdict in self._conclusion.verdicts:
            origin = verdict.origin.model_copy(update={"model": _name_of(verdict.origin.model)})
            verdicts.append(verdict.model_copy(update={"origin": origin}))
        by_name: dict[str, BaseModel | Sequence[BaseModel]] = {
            records.RUBRIC: evidence.rubric,
            "decisions.json": evidence.decided,
            "offered_again.json": evidence.offered_again,
            "offered.json": evidence.offerings,
            "block_looks.json": evidence.block_looks,
            "rules.json": evidence.rules,
            "looks.json": evidence.looks,
            "waves.json": evidence.waves,
            "sample.json": evidence.supply,
            records.VERDICTS: verdicts,
            records.AGREEMENT: self._conclusion.groups,
        }
        for name, content in by_name.items():
            self._write_json(name, content)

    def _outputs(self, plan: Plan, name: str, seed: int) -> pa.Table:
        """Return a unit's outputs in the order of the data sets' texts. Raises DataError if some are missing."""
        study = self._study
        refuse_other_outputs(study, name, seed)
        wanted: dict[str, list[str]] = {}
        languages = []
        for text in self._texts:
            job = plan.job(text, name, seed)
            if job.key not in wanted:
                wanted[job.key] = []
                languages.append(job.languages[-1])
            wanted[job.key].append(text.dataset)
        file, command = study.transformation_file(name, seed), study.command(GENERATE)
        table = read_table(file, TransformedText, command, _COLUMNS)
        table = table.filter(pc.not_equal(table["status"], "unanswered"))
        rows = pc.index_in(pa.array(wanted, pa.string()), value_set=table["key"].combine_chunks())
        if rows.null_count:
            verb = "is" if rows.null_count == 1 else "are"
            raise DataError(f"{file}: {rows.null_count} of {len(wanted)} outputs {verb} missing; run `{command}`")
        table = table.take(rows)
        outputs = table["output"].combine_chunks()
        hidden = pc.index_in(outputs, value_set=pa.array(self._withheld, pa.string()))
        copies = pc.fill_null(pa.array(self._withheld.values(), pa.string()).take(hidden), "")
        schema = arrow_schema(records.BundledOutput)
        columns = {part: table[part] for part in table.column_names} | {
            "transformation": pa.repeat(name, len(table)),
            "seed": pa.array([seed] * len(table), schema.field("seed").type),
            "datasets": pa.array(list(wanted.values()), schema.field("datasets").type),
            "language": pa.array(languages, pa.string()),
            "output": pc.if_else(hidden.is_null(), outputs, ""),
            "reason": pc.list_element(pc.split_pattern(table["reason"], ": ", max_splits=1), 0),
            records.COPY: copies,
        }
        return pa.table([columns[part] for part in schema.names], schema=schema)


def _settings(study: Study, datasets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the study as in `study.json`: everything that numbers depend on, and nothing of the maker's machine."""
    spec = study.evaluation
    optional: dict[str, Any] = {
        "prompts": study.prompts,
        "languages": list(study.languages),
        "wordings": list(study.wordings),
    }
    loadable = [  # models that anybody can load from the hub or mteb; some need no files
        model.model_dump(mode="json", exclude_unset=True, include=set(records.OF_MODELS))
        for model in spec.models
        if model.is_for_anybody
    ]
    settings = study.generator.settings.model_dump(exclude_none=True)
    return {
        "name": study.name,
        "description": study.description,
        "datasets": list(datasets),
        "transformations": list(study.transformations),
        "seeds": list(study.seeds),
        **{name: value for name, value in optional.items() if value},
        "generator": {
            **study.generator.model_dump(mode="json", include={"kind", "revision", "sampling"}),
            "model": _name_of(study.generator.model),
            **{name: settings[name] for name in records.OF_GENERATORS if name in settings},
        },
        "sample": study.sample.model_dump(mode="json"),
        "rubric": study.rubric,
        "raters": {"per_pair": study.raters.per_pair},
        "acceptance": study.acceptance.model_dump(mode="json", exclude_unset=True),
        "evaluation": {**spec.model_dump(mode="json", include={"protocol", "precision"}), "models": loadable},
    }


def _name_of(model: str) -> str:
    """Return a model's name; for a folder on the maker's machine its last part."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model


def _transformations(plan: Plan) -> Iterator[BundledTransformation]:
    """Yield how each transformation was made, in the study's order."""
    for name, kind in plan.kinds.items():
        definition = kind.model_dump(mode="json", exclude_defaults=True)
        if kind.outputs:
            definition["outputs"]["path"] = kind.outputs.path.rpartition("/")[2]
        maker, prompts = plan.makers[name], plan.prompts[name]
        yield BundledTransformation(
            definition=definition,
            prompts=tuple(BundledPrompt.model_validate(prompt, from_attributes=True) for prompt in prompts),
            prompt_hash=plan.prompt_hashes[name],
            kind=maker.kind,
            model=_name_of(maker.model),
            generator_hash=maker.hash,
        )


def _facts_of(
    rights: BundleSpec, spec: DatasetSpec, dataset: Dataset, texts: Mapping[str, Text], file: Path
) -> DatasetFacts:
    """Return the facts about a data set; `texts` are its distinct ones by id. Raises StudyError without a licence."""
    of_mteb: dict[str, Any] = {}
    licence = rights.licences.get(spec.name, "")
    if isinstance(dataset, MtebTask):
        meta = dataset.loaded.task.metadata
        licence = licence or str(meta.license or "")
        of_mteb = {
            "citation": meta.bibtex_citation or "",
            "reference": str(meta.reference or ""),
            "domains": tuple(map(str, meta.domains or ())),
        }
    if licence in _UNNAMED:
        raise StudyError(
            f"{file}: the texts of {spec.name!r} have no licence; add one to the study, such as"
            f" `bundle: {{licences: {{{spec.name}: cc-by-4.0}}}}`, and name it in `bundle.withheld` if they may not be"
            " shared"
        )
    return DatasetFacts(
        task=dataset.task,
        revision=dataset.revision,
        texts="reference" if spec.name in rights.withheld else "include",
        n_texts=len(texts),
        languages=tuple(sorted({text.language for text in texts.values()})),
        licence=licence,
        **of_mteb,
    )


def _dataset_settings(spec: DatasetSpec, dataset: Dataset) -> dict[str, Any]:
    """Return a data set's part of the study without the maker's folders; an mteb task with its revision."""
    settings = spec.model_dump(mode="json", exclude_defaults=True)
    if not spec.mteb:
        return {**settings, "path": spec.path.rstrip("/").rpartition("/")[2]}
    path, _, revision = dataset.revision.rpartition("@")
    pinned = {"revision": revision} if len(revision) == 40 else {}
    return {**settings, "name": spec.name, "path": path, **pinned}

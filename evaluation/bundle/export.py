"""`plumbline bundle export`: write a study's validated outputs, with their evidence, as one file.

Members are written one after the other, with one unit of outputs in memory; the file appears complete, and only after
it was read back and checked as `inspect` does. It includes the study's settings without folders, addresses and names.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from annotation.judges.decisions import read_judging
from annotation.names import is_pseudonym
from annotation.records import PairMean, RuleSet, Verdict
from annotation.rubric import Rubric
from evaluation.bundle import records, tables
from evaluation.bundle.bundle import MANIFEST, Writer
from evaluation.bundle.records import ArchiveMember, BundledPrompt, BundledTransformation, BundleManifest, DatasetSource
from evaluation.records import EvaluationRecords
from generation.datasets.dataset import Dataset
from generation.datasets.loading import iter_datasets
from generation.datasets.local import TableDataset
from generation.datasets.mteb_tasks import MtebTask
from generation.jobs import Plan
from generation.unit import COMMAND as GENERATE
from generation.unit import refuse_other_outputs
from plumbline.errors import DataError, StudyError, nearest
from plumbline.reading import read_bytes
from plumbline.records import SOURCES, Pair, Rating, Record, Score, Text, TransformedText, arrow_schema, text_id
from plumbline.store import atomic, read_table
from plumbline.study import Study
from plumbline.study.base import StudyPart
from plumbline.study.datasets import DatasetSpec
from plumbline.study.engines import SETTINGS, EngineSpec
from plumbline.study.evaluation import RightsSpec
from plumbline.versions import version_of
from plumbline.words import count, trim

WITHHELD = "(not in the bundle)"  # replaces raters' free answers
_COLUMNS = ("key", "text_id", "source_language", "output", "status", "reason", "flags", "first_flags", "attempts")
_UNNAMED = ("", "not specified")  # missing licences
Member = tuple[str, bytes | memoryview]  # its name and content


def export(
    study: Study,
    out: Path,
    *,
    comments: bool = False,
    check: Callable[[Path], object] = lambda _: None,
    step: Callable[[], object] = lambda: None,
) -> BundleManifest:
    """Write a study's bundle to `out`; return its manifest.

    `comments` includes raters' comments and free answers. `check` is called on the file before it gets its name, `step`
    for each unit of outputs. Raises StudyError for a study that cannot have a bundle or lacks facts for one, DataError
    for records that do not follow from each other, and the errors of `check`.
    """
    if study.subject:
        raise StudyError(
            f"{study.file}: a study with the subject {study.subject.kind} scores no models, so it has no bundle"
        )
    if study.raters.suggestions != "none":
        raise StudyError(
            f"{study.file}: half of its pairs show judges' scores (raters.suggestions); bundles of such experiments are"
            " not supported; use a study without that setting"
        )
    names = [spec.name for spec in study.datasets]
    for name in study.bundle.datasets:
        if name not in names:
            raise StudyError(f"{study.file}: bundle.datasets: no data set {name!r}; {nearest(name, names)}")
    evidence = EvaluationRecords.open(study)
    verdicts = evidence.verified
    raters = evidence.collected.plain_ratings["rater_id"].unique()
    if named_raters := [rater for rater in raters if not is_pseudonym(rater)]:
        raise DataError(
            f"{study.folder / 'ratings.parquet'}: {count(len(named_raters), 'rater')}"
            f" {'has' if len(named_raters) == 1 else 'have'} no pseudonym such as rater-1a2b3c4d;"
            f" run `{study.command('collect')}` again"
        )
    content = _Content(study, evidence, verdicts, comments)

    def whole(path: Path) -> bool:
        check(path)
        return True

    with atomic(out, whole, public=True) as file, contextlib.closing(Writer(file)) as writer:
        for name, member in content.members(step):
            writer.add(name, member)
        manifest = content.manifest({name: ArchiveMember(sha256=h, size=n) for name, (h, n) in writer.members.items()})
        writer.add(MANIFEST, manifest.to_bytes())
    return manifest


@dataclass
class _Content:
    """The content of a bundle, made member by member."""

    study: Study
    evidence: EvaluationRecords
    verdicts: list[Verdict]
    comments: bool
    _sources: list[DatasetSource] = field(default_factory=list)
    _settings: list[dict[str, Any]] = field(default_factory=list)
    _texts: list[Text] = field(default_factory=list)  #: the distinct texts of each data set, in order

    def members(self, step: Callable[[], object]) -> Iterator[Member]:
        """Yield all members except the manifest: data sets, outputs, ratings, and verdicts."""
        study, plan = self.study, Plan(self.study)
        for spec, dataset in zip(study.datasets, iter_datasets(study), strict=True):
            distinct = {text.text_id: text for text in dataset.texts()}
            source = _source_of(study.bundle.datasets.get(spec.name), spec, dataset, distinct, study.file)
            self._sources.append(source)
            self._settings.append(_dataset_settings(spec, dataset))
            self._texts += distinct.values()
            included = source.texts == "include"
            rows = (text if included else text.model_copy(update={"text": ""}) for text in dataset.texts())
            yield records.texts_of(spec.name), tables.to_parquet(tables.of_records(rows, Text))
            if included and isinstance(dataset, TableDataset):
                yield from tables.dataset_members(dataset)
        for name in study.transformations:
            for seed in study.seeds:
                yield records.outputs_of(name, seed), tables.to_parquet(self._outputs(plan, name, seed))
                step()
        yield records.TRANSFORMATIONS, tables.models_to_json(_transformations(plan))
        yield records.STUDY, tables.to_json(_settings(study, self._settings))
        yield from self._ratings()
        yield from self._judgements()
        yield _frame(records.MEANS, self.evidence.pair_means, PairMean)
        if (study.folder / "scores.parquet").exists():
            scores = self.evidence.scores
            failed = scores["status"] == "failed"  # its reason may name folders and servers
            yield _frame(records.SCORES, scores.assign(reason=scores["reason"].mask(failed, WITHHELD)), Score)
        if not self._hidden:  # both reports show texts, in examples and charts
            for name, report in records.REPORTS.items():
                if (study.folder / report).exists():
                    yield name, read_bytes(study.folder / report)

    @functools.cached_property
    def _hidden(self) -> list[str]:
        """The data sets whose texts may not be shared."""
        rights = self.study.bundle.datasets
        names = [spec.name for spec in self.study.datasets]
        return [name for name in names if name in rights and rights[name].texts == "reference"]

    @functools.cached_property
    def _withheld(self) -> dict[str, str]:
        """The hashes of their texts by text, once all data sets are read."""
        shared = {text.text for text in self._texts if text.dataset not in self._hidden} if self._hidden else ()
        return _hashes_of((text for text in self._texts if text.dataset in self._hidden), shared)

    def _ratings(self) -> Iterator[Member]:
        """Yield the members with pairs, ratings, rules and verdicts."""
        seen = self.evidence
        pairs = seen.collected.pairs
        words = pairs["dataset"].isin(self._hidden)
        for name in ("original", "transformed"):  # in controls both are originals, in pairs the first
            out = words if name == "original" else words & pairs["control"].isin(("positive", "negative"))
            out |= pairs[name].isin(list(self._withheld))
            pairs = pairs.assign(**{name: pairs[name].astype(str).where(~out, "")})
        pairs = pairs.astype(dict.fromkeys(pairs.select_dtypes("category"), str))
        pairs = pairs.assign(model=pairs["model"].map(_name_of))
        is_control = pairs["control"] != ""
        ratings = seen.collected.plain_ratings  # comments may quote texts
        spoken = self.comments & ~ratings["pair_id"].isin(pairs.loc[words, "pair_id"])
        rated = _portable_ratings(ratings, seen.rubric, spoken)
        of_controls = rated["pair_id"].isin(pairs.loc[is_control, "pair_id"])
        yield _frame(records.PAIRS, pairs[~is_control], Pair)
        yield _frame(records.CONTROLS, pairs[is_control], Pair)
        yield _frame(records.RATINGS, rated[~of_controls], Rating)
        yield _frame(records.CONTROL_RATINGS, rated[of_controls], Rating)
        yield records.RUBRIC, tables.to_json(seen.rubric.model_dump(mode="json"))
        verdicts = [verdict.model_copy(update={"model": _name_of(verdict.model)}) for verdict in self.verdicts]
        by_member: dict[str, Sequence[Any]] = {
            "decisions.json": self.evidence.decided,
            "rules.json": _portable_rules(seen.rules),
            "looks.json": seen.looks,
            "waves.json": seen.waves,
            "sample.json": seen.supply,
            records.VERDICTS: verdicts,
            records.AGREEMENT: self.evidence.agreement,
        }
        yield from ((name, tables.models_to_json(rows)) for name, rows in by_member.items())

    def _judgements(self) -> Iterator[Member]:
        """Yield the members on judges that decide with people; their answers count as comments."""
        if self.evidence.study.acceptance.judges != "decide":
            return
        judging = read_judging(self.evidence)
        judgements = judging.judgements
        spoken = self.comments & ~judgements["dataset"].isin(self._hidden)
        judgements = judgements.assign(text=judgements["text"].where(spoken, ""))
        yield _frame(records.JUDGED, judging.judged, records.BundledJudged)
        yield _frame(records.JUDGEMENTS, judgements, records.BundledJudgement)
        yield records.REFUSED, tables.to_json({"refused": judging.refused})

    def _outputs(self, plan: Plan, name: str, seed: int) -> pa.Table:
        """Return a unit's outputs in the order of the data sets' texts. Raises DataError if some are missing."""
        study = self.study
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
        outputs, copies = _without(table["output"].combine_chunks(), self._withheld)
        reasons = pc.list_element(pc.split_pattern(table["reason"], ": ", max_splits=1), 0)
        more = {"datasets": list(wanted.values()), "language": languages}
        more |= {"output": outputs, records.COPY: copies, "reason": reasons}
        schema = arrow_schema(records.BundledOutput)
        columns = [
            table[part.name] if part.name not in more
            else column if isinstance(column := more[part.name], pa.ChunkedArray)
            else pa.array(column, part.type)
            for part in schema
        ]  # fmt: skip
        return pa.table(columns, schema=schema)

    def manifest(self, members: dict[str, ArchiveMember]) -> BundleManifest:
        """Return the manifest of these members."""
        study, spec = self.study, self.study.bundle
        ratings: pd.DataFrame = self.evidence.collected.plain_ratings
        times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
        facts = ("edition", "licence", "citation", "contact", "creators", "reference", "published")
        return BundleManifest(
            made_with=version_of("plumbline"),
            study=study.name,
            description=study.description,
            **{name: getattr(spec, name) for name in facts},
            simulated=bool(ratings["simulated"].any()),
            comments=self.comments,
            datasets=tuple(self._sources),
            generator=_generator(study.generator),
            rated=(f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}"),
            members=members,
        )


def _frame(name: str, frame: pd.DataFrame, record: type[Record]) -> Member:
    return name, tables.to_parquet(tables.of_frame(frame, record))


def _settings(study: Study, datasets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the study as in `study.json`: everything that numbers depend on, and nothing of the maker's machine."""
    spec = study.evaluation
    optional: dict[str, Any] = {
        "prompts": study.prompts,
        "languages": list(study.languages),
        "wordings": list(study.wordings),
    }
    if study.acceptance.judges == "decide":
        optional["judges"] = _judges(judge.settings() for judge in study.judges)
    loadable = [  # models that anybody can load from the hub or mteb; some need no files
        {
            **model.model_dump(mode="json", exclude_unset=True, include=set(records.OF_MODELS)),
            **{name: value for name, value in model.settings.items() if name in records.OF_MODELS},
        }
        for model in spec.models
        if model.kind in records.KINDS and not (model.path or model.package)
    ]
    return {
        "name": study.name,
        "description": study.description,
        "datasets": list(datasets),
        "transformations": list(study.transformations),
        "seeds": list(study.seeds),
        **{name: value for name, value in optional.items() if value or name == "judges"},
        "generator": _generator(study.generator),
        "sample": study.sample.model_dump(mode="json"),
        "rubric": study.rubric,
        "raters": {"per_pair": study.raters.per_pair},
        "acceptance": study.acceptance.model_dump(mode="json", exclude_unset=True),
        "quality": study.quality.model_dump(mode="json", exclude_unset=True),
        "evaluation": {
            **spec.model_dump(mode="json", include={"protocol", "precision", "failed"}),
            "models": loadable,
        },
    }


def _portable_rules(sets: Sequence[RuleSet]) -> list[RuleSet]:
    """Return the fixed rules without the maker's folders."""
    portable = []
    for fixed in sets:
        judges = fixed.rules.get("judges")
        judged = {} if judges is None else {"judges": {**judges, "each": _judges(judges["each"])}}
        portable.append(fixed.model_copy(update={"rules": {**fixed.rules, **judged}}))
    return portable


def _judges(each: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return judges as in the rules, with models in folders named by their folder."""
    return [{**judge, "model": _name_of(judge["model"])} for judge in each]


def _generator(engine: EngineSpec) -> dict[str, Any]:
    """Return the generator without its location; a model in a folder keeps its name and a mark."""
    kind: type[StudyPart] = SETTINGS.get(engine.kind, StudyPart)
    settings = kind.model_validate(engine.settings).model_dump(exclude_none=True)
    portable = {
        **engine.model_dump(mode="json", include={"kind", "model", "revision", "sampling"}),
        **{name: settings[name] for name in records.OF_GENERATORS if name in settings},
    }
    name = _name_of(engine.model)
    return portable if name == engine.model else {**portable, "model": name, records.FOLDER: True}


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


def _portable_ratings(frame: pd.DataFrame, rubric: Rubric, spoken: pd.Series[bool]) -> pd.DataFrame:
    """Return ratings without batches, times on the page and file names; comments only where `spoken`."""
    named_source = frame["source"].isin(SOURCES)
    free = frame["question"].isin([question.name for question in rubric.asked() if question.kind == "text"])
    return frame.assign(
        source=frame["source"].where(named_source, "file"),
        batch="",
        seconds=float("nan"),
        comment=frame["comment"].where(spoken, ""),
        answer=frame["answer"].where(spoken | ~free | (frame["answer"] == ""), WITHHELD),
    )


def _source_of(
    rights: RightsSpec | None, spec: DatasetSpec, dataset: Dataset, texts: Mapping[str, Text], file: Path
) -> DatasetSource:
    """Return the manifest's entry of a data set; `texts` are its distinct ones by id. StudyError without a licence."""
    of_mteb: dict[str, Any] = {"licence": "", "citation": "", "reference": "", "domains": ()}
    if isinstance(dataset, MtebTask):
        meta = dataset.loaded.task.metadata
        words = (meta.license, meta.bibtex_citation, meta.reference)
        of_mteb = dict(zip(of_mteb, (str(word or "") for word in words), strict=False))
        of_mteb["domains"] = tuple(map(str, meta.domains or ()))
    licence = rights.licence if rights else of_mteb["licence"]
    if licence in _UNNAMED:
        raise StudyError(
            f"{file}: the texts of {spec.name!r} have no licence; add one to the study, such as"
            f" `bundle: {{datasets: {{{spec.name}: {{licence: cc-by-4.0}}}}}}`, with `texts: reference` if they may"
            " not be shared"
        )
    facts = rights or RightsSpec(licence=licence)
    return DatasetSource(
        name=spec.name,
        kind="mteb" if spec.mteb else "local",
        task=dataset.task,
        revision=dataset.revision,
        texts=facts.texts,
        n_texts=len(texts),
        languages=tuple(sorted({text.language for text in texts.values()})),
        licence=licence,
        **{name: getattr(facts, name) or of_mteb[name] for name in ("citation", "reference", "domains")},
    )


def _dataset_settings(spec: DatasetSpec, dataset: Dataset) -> dict[str, Any]:
    """Return a data set's part of the study without the maker's folders; an mteb task with its revision."""
    settings = spec.model_dump(mode="json", exclude_defaults=True)
    if not spec.mteb:
        return {**settings, "path": spec.path.rstrip("/").rpartition("/")[2]}
    path, _, revision = dataset.revision.rpartition("@")
    pinned = {"revision": revision} if len(revision) == 40 else {}
    return {**settings, "name": spec.name, "path": path, **pinned}


def _hashes_of(texts: Iterable[Text], shared: Collection[str]) -> dict[str, str]:
    """Return the hash of each text not in `shared`, as it is and without outer white space."""
    return {
        words: text_id(words, text.language)
        for text in texts
        if text.text not in shared
        for words in (text.text, trim(text.text))
    }


def _without(outputs: pa.Array, hashes: Mapping[str, str]) -> tuple[pa.Array, pa.Array]:
    """Return (outputs, emptied if they are one of these texts; the hashes of those, empty elsewhere)."""
    if not hashes:
        return outputs, pa.array([""] * len(outputs), pa.string())
    rows = pc.index_in(outputs, value_set=pa.array(hashes, pa.string()))
    copies = pc.fill_null(pa.array(hashes.values(), pa.string()).take(rows), "")
    return pc.if_else(rows.is_null(), outputs, ""), copies

"""`python -m evaluation.bundle export`: a study's validated outputs, and all that makes them believable, as one file.

Members are written one after the other, a unit of outputs in memory at a time; the file appears under its name whole,
and only after it was read back and held against itself as `inspect` does.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from annotation.judges.decisions import refuse_other_judgements
from annotation.names import is_pseudonym
from annotation.ratings.exclusions import read_decisions
from annotation.records import PairMean, Verdict
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.verdicts import read_agreement, read_pair_means, read_verdicts, refuse_stale
from annotation.verdicts.verification import refuse_edited
from evaluation.bundle import judged, portable, tables
from evaluation.bundle.archive import MANIFEST, Writer
from evaluation.bundle.manifest import ArchiveMember, BundleManifest, DatasetSource
from evaluation.bundle.portable import portable as of_dataset
from evaluation.bundle.portable import referenced, refuse_unknown_names, source_of
from evaluation.results import read_scores
from generation.datasets.loading import iter_datasets
from generation.datasets.local import TableDataset
from generation.jobs import Plan
from generation.unit import COMMAND as GENERATE
from generation.unit import refuse_other_outputs
from plumbline.errors import DataError, StudyError
from plumbline.reading import read_bytes
from plumbline.records import Pair, Rating, Score, Text, TransformedText
from plumbline.schemas import arrow_schema
from plumbline.store import atomic, read_table
from plumbline.study import Study

_COLUMNS = ("key", "text_id", "source_language", "output", "status", "reason", "flags", "first_flags", "attempts")
Made = Iterator[tuple[str, bytes | memoryview]]


def export(
    study: Study,
    out: Path,
    *,
    comments: bool = False,
    check: Callable[[Path], object] = lambda _: None,
    step: Callable[[], object] = lambda: None,
) -> BundleManifest:
    """Write a study's bundle to `out`; returns its manifest.

    `comments` lets raters' free words travel. `check` is given the file before it gets its name, `step` is called for
    each unit of outputs. Raises StudyError for a study that has no bundle or says too little for one, DataError for
    records that do not follow from each other, and what `check` raises.
    """
    _refuse_others(study)
    verdicts = read_verdicts(study)
    evidence = Evidence.read(study)
    refuse_stale(study, verdicts, evidence.rubric)
    refuse_edited(study, verdicts, evidence)
    refuse_other_judgements(evidence, verdicts)
    _refuse_names(study, evidence)
    content = _Content(study, evidence, verdicts, comments)

    def whole(path: Path) -> bool:
        check(path)
        return True

    with atomic(out, whole, public=True) as file, contextlib.closing(Writer(file)) as writer:
        for name, made in content.members(step):
            writer.add(name, made)
        manifest = content.manifest({name: ArchiveMember(sha256=h, size=n) for name, (h, n) in writer.members.items()})
        writer.add(MANIFEST, manifest.to_bytes())
    return manifest


def _refuse_others(study: Study) -> None:
    """Raise StudyError for a study of which there can be no bundle."""
    if study.subject:
        raise StudyError(f"{study.file}: its subject is {study.subject.kind}: nothing of it is scored, so no bundle")
    if study.raters.suggestions != "none":
        raise StudyError(
            f"{study.file}: half of its pairs show judges' scores (raters.suggestions): of such an experiment there is"
            " no bundle; rate a study without it"
        )
    refuse_unknown_names(study)


def _refuse_names(study: Study, evidence: Evidence) -> None:
    """Raise DataError for raters who do not stand in the records by a pseudonym."""
    raters = evidence.collected.plain_ratings["rater_id"]
    named = [rater for rater in raters.unique() if not is_pseudonym(rater)]
    if named:
        raise DataError(
            f"{study.folder / 'ratings.parquet'}: {len(named)} raters have no pseudonym such as rater-1a2b3c4d;"
            f" run `{study.command('annotation collect')}` again"
        )


@dataclass
class _Content:
    """What goes into a bundle, made member by member."""

    study: Study
    evidence: Evidence
    verdicts: list[Verdict]
    comments: bool
    _sources: list[DatasetSource] = field(default_factory=list)
    _settings: list[dict[str, Any]] = field(default_factory=list)
    _texts: list[Text] = field(default_factory=list)  #: the distinct ones of each data set, in order

    def members(self, step: Callable[[], object]) -> Made:
        """Everything but the manifest: data sets, what was made of them, what people said, what was decided."""
        plan = Plan(self.study)
        for spec, dataset in zip(self.study.datasets, iter_datasets(self.study), strict=True):
            distinct = {text.text_id: text for text in dataset.texts()}
            source = source_of(self.study, spec, dataset, distinct)
            self._sources.append(source)
            self._settings.append(of_dataset(spec, dataset))
            self._texts += distinct.values()
            kept = source.texts == "include"
            rows = (text if kept else text.model_copy(update={"text": ""}) for text in dataset.texts())
            yield tables.texts_of(spec.name), tables.to_parquet(tables.of_records(rows, Text))
            if kept and isinstance(dataset, TableDataset):
                yield from tables.dataset_members(dataset)
        for name in self.study.transformations:
            for seed in self.study.seeds:
                yield tables.outputs_of(name, seed), tables.to_parquet(self._outputs(plan, name, seed))
                step()
        made = portable.transformations(self.study, plan)
        yield tables.TRANSFORMATIONS, tables.models_to_json(made)
        yield tables.STUDY, tables.to_json(portable.settings(self.study, self._settings))
        yield from self._evidence()
        if not self._hidden:  # both reports show texts: examples, and what a chart says of a point
            for name, there in tables.REPORTS.items():
                if (self.study.folder / there).exists():
                    yield name, read_bytes(self.study.folder / there)

    @functools.cached_property
    def _hidden(self) -> list[str]:
        """Data sets whose texts may not be handed on."""
        return [spec.name for spec in self.study.datasets if referenced(self.study, spec)]

    @functools.cached_property
    def _withheld(self) -> dict[str, str]:
        """The hashes of their texts by words, once all data sets were gone through."""
        open_ = {text.text for text in self._texts if text.dataset not in self._hidden} if self._hidden else ()
        return portable.hashes_of((text for text in self._texts if text.dataset in self._hidden), open_)

    def _evidence(self) -> Made:
        """What people were shown and said, the rules, and what followed."""
        study, seen = self.study, self.evidence
        pairs = seen.collected.pairs
        words = pairs["dataset"].isin(self._hidden)
        for name in ("original", "transformed"):  # of controls both are originals, of pairs the first
            out = words if name == "original" else words & pairs["control"].isin(("positive", "negative"))
            out |= pairs[name].isin(list(self._withheld))
            pairs = pairs.assign(**{name: pairs[name].astype(str).where(~out, "")})
        pairs = pairs.astype(dict.fromkeys(pairs.select_dtypes("category"), str))
        pairs = pairs.assign(model=pairs["model"].map(portable.named))
        told = pairs["control"] != ""
        ratings = seen.collected.plain_ratings  # who comments on a text may quote it
        spoken = self.comments & ~ratings["pair_id"].isin(pairs.loc[words, "pair_id"])
        rated = portable.ratings(ratings, seen.rubric, spoken)
        of_controls = rated["pair_id"].isin(pairs.loc[told, "pair_id"])
        for name, frame in ((tables.PAIRS, pairs[~told]), (tables.CONTROLS, pairs[told])):
            yield name, tables.to_parquet(tables.of_frame(frame, Pair))
        for name, frame in ((tables.RATINGS, rated[~of_controls]), (tables.CONTROL_RATINGS, rated[of_controls])):
            yield name, tables.to_parquet(tables.of_frame(frame, Rating))
        yield tables.RUBRIC, tables.to_json(seen.rubric.model_dump(mode="json"))
        rules = portable.rules(seen.rules)
        kept: dict[str, Sequence[Any]] = {"decisions": read_decisions(study), "rules": rules, "looks": seen.looks}
        kept |= {"waves": seen.waves}
        verdicts = [one.model_copy(update={"model": portable.named(one.model)}) for one in self.verdicts]
        for file, rows in {**kept, "sample": seen.supply, "verdicts": verdicts}.items():
            yield f"{file}.json", tables.models_to_json(rows)
        yield tables.AGREEMENT, tables.models_to_json(read_agreement(study))
        yield from judged.members_of(seen, self._hidden, comments=self.comments)
        yield tables.MEANS, tables.to_parquet(tables.of_frame(read_pair_means(study), PairMean))
        if (study.folder / "scores.parquet").exists():
            scores = read_scores(study)
            failed = scores["status"] == "failed"  # what is said of it may name folders and servers
            scores = scores.assign(reason=scores["reason"].mask(failed, portable.WITHHELD))
            yield tables.SCORES, tables.to_parquet(tables.of_frame(scores, Score))

    def _outputs(self, plan: Plan, name: str, seed: int) -> pa.Table:
        """A unit's outputs in the order of the data sets' texts. Raises DataError where some are still to come."""
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
        places = pc.index_in(pa.array(wanted, pa.string()), value_set=table["key"].combine_chunks())
        if places.null_count:
            raise DataError(f"{file}: {places.null_count} of {len(wanted)} outputs are still to come; run `{command}`")
        table = table.take(places)
        schema = arrow_schema(tables.BundledOutput)
        outputs, copies = portable.without(table["output"].combine_chunks(), self._withheld)
        said = pc.list_element(pc.split_pattern(table["reason"], ": ", max_splits=1), 0)
        more = {"datasets": list(wanted.values()), "language": languages}
        more |= {"output": outputs, portable.COPY: copies, "reason": said}
        columns = [more[one.name] if one.name in more else table[one.name] for one in schema]
        return pa.table(
            [
                c if isinstance(c, pa.ChunkedArray) else pa.array(c, f.type)
                for c, f in zip(columns, schema, strict=True)
            ],
            schema=schema,
        )

    def manifest(self, found: dict[str, ArchiveMember]) -> BundleManifest:
        """The manifest over members."""
        study, said = self.study, self.study.bundle
        ratings: pd.DataFrame = self.evidence.collected.plain_ratings
        times = ratings.loc[ratings["status"] == "submitted", "submitted_at"]
        return BundleManifest(
            made_with=importlib.metadata.version("plumbline"),
            study=study.name,
            description=study.description,
            edition=said.edition,
            licence=said.licence,
            citation=said.citation,
            contact=said.contact,
            creators=said.creators,
            reference=said.reference,
            published=said.published,
            simulated=bool(ratings["simulated"].any()),
            comments=self.comments,
            datasets=tuple(self._sources),
            generator=portable.generator(study),
            rated=(f"{times.min():%Y-%m-%d}", f"{times.max():%Y-%m-%d}"),
            members=found,
        )

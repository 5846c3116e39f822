"""A bundle that is open for reading: its members as the records that the platform works with."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ValidationError

from annotation.campaign_records import CampaignData
from annotation.records import Decision, Group, Look, PairMean, RuleSet, Supply, Verdict, Wave
from annotation.rubric import Rubric
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.rules import with_rules_fixed
from evaluation.bundle import records, tables
from evaluation.bundle.archive import MANIFEST, Archive
from evaluation.bundle.records import AGAIN, BundledOutput, BundledTransformation, BundleManifest, read_manifest
from plumbline.errors import DataError, StudyError
from plumbline.reading import MalformedError, parse_json
from plumbline.records import Pair, Rating, Record, Score, Text
from plumbline.store import as_models, joined
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.transformations import EIGHT, Transformation, refuse_mixed_up
from plumbline.study.upgrade import modern

_OF_GENERATOR = ("model", "revision", "sampling")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Bundle:
    """One bundle. What is read of it is of the right form; whether it is what was exported, `check` says."""

    archive: Archive
    manifest: BundleManifest
    identity: str  #: hash of the manifest, and by it of everything

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """A bundle's file. Raises DataError for what is none, is damaged, or is of a later version."""
        archive = Archive(path)
        try:
            manifest, identity = read_manifest(archive.words(MANIFEST), str(path))
        except DataError:
            archive.close()
            raise
        return cls(archive, manifest, identity)

    @property
    def path(self) -> Path:
        """Its file."""
        return self.archive.path

    @property
    def short(self) -> str:
        """The first digits of its identity."""
        return self.identity[:8]

    def has(self, name: str) -> bool:
        """Whether there is such a member."""
        return name in self.manifest.members

    def table(self, name: str, record: type[Record], columns: Sequence[str] = ()) -> pa.Table:
        """A member's rows. Raises DataError for a table that is damaged, or not of this record."""
        return tables.checked(self.archive.read(name), self._where(name), record, self.archive.charge, columns)

    def words(self, name: str) -> dict[str, Any]:
        """A member that is a JSON object. Raises DataError for another one."""
        content = self._json(name)
        if not isinstance(content, dict):
            raise DataError(f"{self._where(name)} does not hold what it should (an object); {AGAIN}")
        return content

    def models(self, name: str, model: type[M]) -> list[M]:
        """A member's records. Raises DataError for JSON that is damaged, or holds others."""
        return as_models(self._json(name), self._where(name), model, AGAIN)

    @functools.cached_property
    def transformations(self) -> dict[str, BundledTransformation]:
        """How each transformation was made, in the study's order."""
        rows = self.models(records.TRANSFORMATIONS, BundledTransformation)
        return {str(row.definition.get("name", "")): row for row in rows}

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """What people's ratings decided, by rules fixed when: bundles of before do not say that."""
        if any(verdict.rules_fixed for verdict in self._verdicts):
            return self._verdicts
        return with_rules_fixed(self._verdicts, self.evidence.rules_fixed[0])

    @functools.cached_property
    def _verdicts(self) -> list[Verdict]:
        return self.models(records.VERDICTS, Verdict)

    @functools.cached_property
    def groups(self) -> list[Group]:
        """Agreement: HTEB's Table 2."""
        return self.models(records.AGREEMENT, Group)

    @functools.cached_property
    def means(self) -> pd.DataFrame:
        """The pairs' own means."""
        frame: pd.DataFrame = self.table(records.MEANS, PairMean).to_pandas()
        return frame

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """The maker's scores; no rows where there are none."""
        parts = [self.table(records.SCORES, Score)] if self.has(records.SCORES) else []
        return joined(parts, Score)

    @functools.cached_property
    def rubric(self) -> Rubric:
        """What raters were asked, word for word."""
        return self._model(records.RUBRIC, Rubric)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """All that verdicts rest on, from the sample to the rules."""
        decisions = self.models("decisions.json", Decision)
        rated = [self.table(name, Rating) for name in (records.RATINGS, records.CONTROL_RATINGS)]
        self._refuse_off_scale(rated[0])
        pairs = [self.table(name, Pair) for name in (records.PAIRS, records.CONTROLS)]
        return Evidence(self.study()).changed(
            rubric=self.rubric,
            collected=CampaignData.of_tables(pairs, rated, decisions),
            decided=decisions,
            rules=self.models("rules.json", RuleSet),
            supply=self.models("sample.json", Supply),
            waves=self.models("waves.json", Wave),
            looks=self.models("looks.json", Look),
            offered=all(verdict.rules_fixed != "late" for verdict in self._verdicts),
        )

    def texts(self, dataset: str) -> pa.Table:
        """The places and hashes of a data set's texts; their words are empty where they may not be handed on."""
        return self.table(records.texts_of(dataset), Text)

    def dataset_tables(self, dataset: str) -> dict[str, pa.Table]:
        """All that is in it of a local data set's rows, by part: train and test, passages, judgements."""
        names = [name for name in self.manifest.members if name.startswith(f"data/{dataset}/")]
        return {
            name.rpartition("/")[2].removesuffix(".parquet"): tables.from_parquet(
                self.archive.read(name), self._where(name), self.archive.charge
            )
            for name in names
        }

    def outputs(self, transformation: str, seed: int, columns: Sequence[str] = ()) -> pa.Table:
        """A unit's outputs (rows of `BundledOutput`)."""
        return self.table(records.outputs_of(transformation, seed), BundledOutput, columns)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The study's settings as they stand in the bundle."""
        settings: dict[str, Any] = self._json(records.STUDY)
        if not _of_a_study(settings):
            raise DataError(f"{self._where(records.STUDY)} holds no study; {AGAIN}")
        for part, allowed in records.OF_STUDY.items():
            values = settings if part == "study" else settings.get(part, {})
            for entry in values if isinstance(values, list) else [values]:
                if strange := next((key for key in entry if key not in allowed), ""):
                    raise DataError(
                        f"{self._where(records.STUDY)} says {strange[:80]!r} of its {part}, and no bundle does; {AGAIN}"
                    )
        return settings

    def study(self, models: Sequence[Any] = (), exports: Path | None = None, name: str = "") -> Study:
        """The study of the bundle, with these embedding models (as a study file has them) and place for records.

        Nothing that it names (a function, a file, a server) is looked for. Raises DataError for what is no study.
        """
        settings = {**self.settings, **({"name": name} if name else {})}
        scored = settings.pop("evaluation", {})
        if models:
            settings["evaluation"] = {**scored, "models": list(models)}
        path = str(self.archive.path.parent / "outputs")
        made_by = {name: value for name, value in self.settings.get("generator", {}).items() if name in _OF_GENERATOR}
        settings["generator"] = {**made_by, "kind": "recorded", "path": path}
        if "judges" in settings:  # they were asked already: what they said is a member
            settings["judges"] = [{**judge, "kind": "recorded", "path": path} for judge in settings["judges"]]
            settings["judge_pool"] = "all"
        try:
            defined = {name: transformation for name, transformation in self._kinds().items() if name not in EIGHT}
            refuse_mixed_up(defined)
            study = Study.model_validate(modern(settings), context=defined)
        except ValidationError as error:
            raise DataError(f"{self._where(records.STUDY)}: {first_complaint(error)}; {AGAIN}") from None
        except StudyError as error:
            raise DataError(f"{self.path}: {error}; {AGAIN}") from None
        study._own, study._file = defined, self.path.resolve()
        if exports is not None:
            study._exports = exports
        return study

    def _refuse_off_scale(self, ratings: pa.Table) -> None:
        """Raise DataError for a rating that nobody can have given."""
        for question in self.rubric.rating_names():
            values = ratings.filter(pc.equal(ratings["question"], question))["value"].drop_null()
            points = [value for value in pc.unique(values).to_pylist() if not math.isnan(value)]
            if off := sorted(set(points) - set(self.rubric.scale_of(question))):
                raise DataError(
                    f"{self._where(records.RATINGS)} holds {off[0]:g} for {question!r}, which is no point of its scale;"
                    f" {AGAIN}"
                )

    def _kinds(self) -> dict[str, Transformation]:
        return {
            name: Transformation.model_validate(transformation.definition)
            for name, transformation in self.transformations.items()
        }

    def _model(self, name: str, model: type[M]) -> M:
        try:
            return model.model_validate(self._json(name))
        except ValidationError as error:
            raise DataError(f"{self._where(name)}: {first_complaint(error)}; {AGAIN}") from None

    def _json(self, name: str) -> Any:
        try:
            return parse_json(self.archive.words(name))
        except MalformedError as error:
            raise DataError(f"{self._where(name)} is damaged ({error}); {AGAIN}") from None

    def _where(self, name: str) -> Path:
        return self.path / name


def _of_a_study(settings: Any) -> bool:
    """Whether settings have the form of which more is read than a study's own model checks."""
    if not isinstance(settings, dict):
        return False
    if not all(isinstance(settings.get(part, {}), dict) for part in ("generator", "raters", "evaluation")):
        return False
    models = settings.get("evaluation", {}).get("models", [])
    return all(
        isinstance(named, list)
        and all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in named)
        for named in (models, settings.get("judges", []))
    )

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

from annotation.ratings.collected import CampaignData
from annotation.ratings.ratings import withdrawals
from annotation.records import Decision, Group, Look, PairMean, RuleSet, Verdict, Wave
from annotation.rubric import Rubric
from annotation.sampling.candidates import Supply
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.marks import with_rules_fixed
from evaluation.bundle import tables
from evaluation.bundle.archive import MANIFEST, Archive
from evaluation.bundle.manifest import BundleManifest, read_manifest
from evaluation.bundle.tables import BundledOutput, BundledTransformation
from plumbline.errors import DataError, StudyError
from plumbline.reading import MalformedError, parse_json
from plumbline.records import Pair, Rating, Record, Score, Text
from plumbline.store import as_models, as_record, joined
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.transformations import EIGHT, Transformation, refuse_mixed_up

_AGAIN = "get it again from where it came from"
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
        found = self._json(name)
        if not isinstance(found, dict):
            raise DataError(f"{self._where(name)} does not hold what it should (an object); {_AGAIN}")
        return found

    def models(self, name: str, model: type[M]) -> list[M]:
        """A member's records. Raises DataError for JSON that is damaged, or holds others."""
        return as_models(self._json(name), self._where(name), model, _AGAIN)

    @functools.cached_property
    def transformations(self) -> dict[str, BundledTransformation]:
        """How each transformation was made, in the study's order."""
        found = self.models(tables.TRANSFORMATIONS, BundledTransformation)
        return {str(one.definition.get("name", "")): one for one in found}

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """What people's ratings decided, by rules fixed when: bundles of before do not say that."""
        if any(one.rules_fixed for one in self._verdicts):
            return self._verdicts
        return with_rules_fixed(self._verdicts, self.evidence.rules_fixed[0])

    @functools.cached_property
    def _verdicts(self) -> list[Verdict]:
        return self.models(tables.VERDICTS, Verdict)

    @functools.cached_property
    def groups(self) -> list[Group]:
        """Agreement: HTEB's Table 2."""
        return self.models(tables.AGREEMENT, Group)

    @functools.cached_property
    def means(self) -> pd.DataFrame:
        """The pairs' own means."""
        frame: pd.DataFrame = self.table(tables.MEANS, PairMean).to_pandas()
        return frame

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """The maker's scores; no rows where there are none."""
        found = [self.table(tables.SCORES, Score)] if self.has(tables.SCORES) else []
        return joined(found, Score)

    @functools.cached_property
    def rubric(self) -> Rubric:
        """What raters were asked, word for word."""
        return self._model(tables.RUBRIC, Rubric)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """All that verdicts rest on, from the sample to the rules."""
        decisions = self.models("decisions.json", Decision)
        controls = self.table(tables.CONTROLS, Pair)
        told = [as_record(row, Pair) for row in controls.to_pylist()]
        rated = [self.table(name, Rating) for name in (tables.RATINGS, tables.CONTROL_RATINGS)]
        self._refuse_off_scale(rated[0])
        collected = CampaignData.of_tables(
            [self.table(tables.PAIRS, Pair), controls],
            rated,
            withdrawals([one for one in decisions if one.pair_id], told),
        )
        return Evidence(
            study=self.study(),
            rubric=self.rubric,
            collected=collected,
            decisions=[one for one in decisions if one.rater_id],
            withdrawals=[one for one in decisions if one.pair_id],
            rules=self.models("rules.json", RuleSet),
            supply=self.models("sample.json", Supply),
            waves=self.models("waves.json", Wave),
            looks=self.models("looks.json", Look),
            offered=all(one.rules_fixed != "late" for one in self._verdicts),
        )

    def texts(self, dataset: str) -> pa.Table:
        """The places and hashes of a data set's texts; their words are empty where they may not be handed on."""
        return self.table(tables.texts_of(dataset), Text)

    def outputs(self, transformation: str, seed: int, columns: Sequence[str] = ()) -> pa.Table:
        """A unit's outputs (rows of `BundledOutput`)."""
        return self.table(tables.outputs_of(transformation, seed), BundledOutput, columns)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The study's settings as they stand in the bundle."""
        said: dict[str, Any] = self._json(tables.STUDY)
        if not _of_a_study(said):
            raise DataError(f"{self._where(tables.STUDY)} holds no study; {_AGAIN}")
        return said

    def study(self, models: Sequence[Any] = (), exports: Path | None = None, name: str = "") -> Study:
        """The study of the bundle, with these embedding models (as a study file has them) and place for records.

        Nothing that it names (a function, a file, a server) is looked for. Raises DataError for what is no study.
        """
        said = {**self.settings, **({"name": name} if name else {})}
        scored = said.pop("evaluation", {})
        if models:
            said["evaluation"] = {**scored, "models": list(models)}
        path = str(self.archive.path.parent / "outputs")
        made_by = {name: value for name, value in self.settings.get("generator", {}).items() if name in _OF_GENERATOR}
        said["generator"] = {**made_by, "kind": "recorded", "path": path}
        if "judges" in said:  # they were asked already: what they said is a member
            said["judges"] = [{**one, "kind": "recorded", "path": path} for one in said["judges"]]
            said["judge_pool"] = "all"
        try:
            own = {name: one for name, one in self._kinds().items() if name not in EIGHT}
            refuse_mixed_up(own)
            study = Study.model_validate(said, context=own)
        except ValidationError as error:
            raise DataError(f"{self._where(tables.STUDY)}: {first_complaint(error)}; {_AGAIN}") from None
        except StudyError as error:
            raise DataError(f"{self.path}: {error}; {_AGAIN}") from None
        study._own, study._file = own, self.path.resolve()
        if exports is not None:
            study._exports = exports
        return study

    def _refuse_off_scale(self, ratings: pa.Table) -> None:
        """Raise DataError for a rating that nobody can have given."""
        for question in self.rubric.rating_names():
            own = ratings.filter(pc.equal(ratings["question"], question))["value"].drop_null()
            given = [value for value in pc.unique(own).to_pylist() if not math.isnan(value)]
            if off := sorted(set(given) - set(self.rubric.scale_of(question))):
                raise DataError(
                    f"{self._where(tables.RATINGS)} holds {off[0]:g} for {question!r}, which is no point of its scale;"
                    f" {_AGAIN}"
                )

    def _kinds(self) -> dict[str, Transformation]:
        return {name: Transformation.model_validate(one.definition) for name, one in self.transformations.items()}

    def _model(self, name: str, model: type[M]) -> M:
        try:
            return model.model_validate(self._json(name))
        except ValidationError as error:
            raise DataError(f"{self._where(name)}: {first_complaint(error)}; {_AGAIN}") from None

    def _json(self, name: str) -> Any:
        try:
            return parse_json(self.archive.words(name))
        except MalformedError as error:
            raise DataError(f"{self._where(name)} is damaged ({error}); {_AGAIN}") from None

    def _where(self, name: str) -> Path:
        return self.path / name


def _of_a_study(said: Any) -> bool:
    """Whether settings have the form of which more is read than a study's own model checks."""
    if not (isinstance(said, dict) and isinstance(said.get("generator", {}), dict)):
        return False
    scored = said.get("evaluation", {})
    models = scored.get("models", []) if isinstance(scored, dict) else None
    return all(
        isinstance(named, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in named)
        for named in (models, said.get("judges", []))
    )

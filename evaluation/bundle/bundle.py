"""A bundle open for reading, with its files as the platform's records."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ValidationError

from annotation.campaign.records import CampaignData
from annotation.campaign.rubric import Rubric
from annotation.records import Decision, Look, OfferedAgain, Offering, RuleSet, Supply, TakenLook, Verdict, Wave
from annotation.verdicts.conclusion import Conclusion
from annotation.verdicts.evidence import Evidence
from evaluation.bundle import records, tables
from evaluation.bundle.archive import Archive
from evaluation.bundle.records import AGAIN, BundledOutput, BundledTransformation, BundleFacts, BundleManifest
from plumbline.errors import DataError, StudyError
from plumbline.reading import MalformedError, parse_json
from plumbline.records import Pair, Rating, Record, Score
from plumbline.store import as_models, joined
from plumbline.study import Study
from plumbline.study.base import first_complaint
from plumbline.study.transformations import EIGHT, Transformation, refuse_mixed_up

_OF_GENERATOR = ("model", "revision", "sampling")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Bundle:
    """One bundle. Its files are well-formed; `evaluation.bundle.check` tells whether they belong together.

    All attributes raise DataError for damaged files.
    """

    archive: Archive

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Open a bundle's file. Raises DataError if it is not a bundle, or of another version."""
        bundle = cls(Archive(path))
        _ = bundle.manifest
        return bundle

    @property
    def path(self) -> Path:
        """The bundle's file."""
        return self.archive.path

    @functools.cached_property
    def sums(self) -> dict[str, str]:
        """The SHA-256 of every other file, as written in SHA256SUMS."""
        lines = self.archive.words(records.SUMS).decode(errors="replace").splitlines()
        return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}

    @functools.cached_property
    def identity(self) -> str:
        """The hash of the checksums, and thereby of everything."""
        return hashlib.sha256(self.archive.words(records.SUMS)).hexdigest()

    @functools.cached_property
    def manifest(self) -> BundleManifest:
        """Licences, data sets, and facts for users."""
        return self._model(records.MANIFEST, BundleManifest)

    @functools.cached_property
    def transformations(self) -> dict[str, BundledTransformation]:
        """The making of each transformation, in the study's order."""
        rows = self.models(records.TRANSFORMATIONS, BundledTransformation)
        return {str(row.definition.get("name", "")): row for row in rows}

    @functools.cached_property
    def conclusion(self) -> Conclusion:
        """What follows from the ratings: verdicts, agreement and means of pairs."""
        return Conclusion(self.evidence)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts that follow from the ratings."""
        return self.conclusion.verdicts

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """The maker's scores; no rows without any."""
        has_scores = records.SCORES in self.archive.names
        return joined([self.table(records.SCORES, Score)] if has_scores else [], Score)

    @functools.cached_property
    def rubric(self) -> Rubric:
        """The raters' questions, word for word."""
        return self._model(records.RUBRIC, Rubric)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """The records that the verdicts follow from. Which ratings count follows from the decisions."""
        study, decisions = self.study(), self.models("decisions.json", Decision)
        pairs = [self.table(name, Pair) for name in (records.PAIRS, records.CONTROLS)]
        rated = [self.table(name, Rating) for name in (records.RATINGS, records.CONTROL_RATINGS)]
        self._refuse_others(pairs, rated)
        again = self.models("offered_again.json", OfferedAgain)
        answers_again = {(note.pair_id, note.rater_id) for note in again}
        return Evidence(study).changed(
            rubric=self.rubric,
            collected=CampaignData.of_tables(pairs, rated, decisions, study.raters.per_pair, answers_again),
            offered_again=again,
            decided=decisions,
            rules=self.models("rules.json", RuleSet),
            supply=self.models("sample.json", Supply),
            waves=self.models("waves.json", Wave),
            looks=self.models("looks.json", Look),
            offerings=self.models("offered.json", Offering),
            block_looks=self.models("block_looks.json", TakenLook),
        )

    @functools.cached_property
    def facts(self) -> BundleFacts:
        """The facts about the bundle for people."""
        return BundleFacts(self.settings, self.manifest, self.verdicts, self.evidence.collected.plain_ratings)

    def dataset_tables(self, dataset: str) -> dict[str, pa.Table]:
        """Return the rows of a local data set by part: train and test, passages, judgements."""
        names = [name for name in self.archive.names if name.startswith(f"data/{dataset}/")]
        return {
            Path(name).stem: tables.from_parquet(
                self.archive.read(name), self.path / name, functools.partial(self.archive.charge, name), ()
            )
            for name in names
        }

    def outputs(self, transformation: str, seed: int, columns: Sequence[str] = ()) -> pa.Table:
        """Return a unit's outputs (rows of `BundledOutput`)."""
        return self.table(records.outputs_of(transformation, seed), BundledOutput, columns)

    def table(self, name: str, record: type[Record], columns: Sequence[str] = ()) -> pa.Table:
        """Return a file's rows. Raises DataError for a damaged table or one of another record."""
        charge = functools.partial(self.archive.charge, name)
        return tables.checked(self.archive.read(name), self.path / name, record, charge, columns)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The study's settings in the bundle."""
        settings: dict[str, Any] = self._json(records.STUDY)
        if not _is_study(settings):
            raise DataError(f"{self.path / records.STUDY} is not a study; {AGAIN}")
        for part, allowed in records.OF_STUDY.items():
            values = settings if part == "study" else settings.get(part, {})
            if unknown := next((key for key in values if key not in allowed), ""):
                raise DataError(
                    f"{self.path / records.STUDY} has an unexpected setting {unknown[:80]!a} in {part}; {AGAIN}"
                )
        return settings

    def study(self, models: Sequence[Any] = (), exports: Path | None = None, name: str = "") -> Study:
        """Return the study of the bundle, with these embedding models (as in a study file) and folder for records.

        No function, file or server that it names is used. Raises DataError if the settings are not a study.
        """
        settings = {**self.settings, **({"name": name} if name else {})}
        scored = settings.pop("evaluation", {})
        if models:
            settings["evaluation"] = {**scored, "models": list(models)}
        made_by = {name: value for name, value in self.settings.get("generator", {}).items() if name in _OF_GENERATOR}
        settings["generator"] = {**made_by, "kind": "recorded", "path": str(self.path.parent / "outputs")}
        try:
            kinds = {name: Transformation.model_validate(row.definition) for name, row in self.transformations.items()}
            defined = {name: kind for name, kind in kinds.items() if name not in EIGHT}
            refuse_mixed_up(defined)
            study = Study.model_validate(settings, context={"transformations": defined})
        except ValidationError as error:
            raise DataError(f"{self.path / records.STUDY}: {first_complaint(error)}; {AGAIN}") from None
        except StudyError as error:
            raise DataError(f"{self.path}: {error}; {AGAIN}") from None
        if [spec.name for spec in study.datasets] != list(self.manifest.datasets):
            raise DataError(f"{self.path / records.STUDY} has other data sets than {records.MANIFEST}; {AGAIN}")
        study._own, study._file = defined, self.path.resolve()
        if exports is not None:
            study._exports = exports
        return study

    def _refuse_others(self, pairs: Sequence[pa.Table], rated: Sequence[pa.Table]) -> None:
        """Raise DataError for ratings of other pairs, or outside their question's scale."""
        file = self.path / records.RATINGS
        pair_ids = {pair_id for table in pairs for pair_id in table["pair_id"].to_pylist()}
        if unknown := {pair_id for table in rated for pair_id in table["pair_id"].to_pylist()} - pair_ids:
            raise DataError(f"{file} has ratings of pair {min(unknown)}, which is not among the pairs; {AGAIN}")
        for question in self.rubric.rating_names():
            values = rated[0].filter(pc.equal(rated[0]["question"], question))["value"].drop_null()
            points = [value for value in pc.unique(values).to_pylist() if not math.isnan(value)]
            if off := sorted(set(points) - set(self.rubric.scale_of(question))):
                raise DataError(f"{file} has a rating {off[0]:g} for {question!r}, outside its scale; {AGAIN}")

    def models(self, name: str, model: type[M]) -> list[M]:
        """Return the records of a JSON file. Raises DataError for a damaged one."""
        return as_models(self._json(name), self.path / name, model, AGAIN)

    def _model(self, name: str, model: type[M]) -> M:
        try:
            return model.model_validate(self._json(name))
        except ValidationError as error:
            raise DataError(f"{self.path / name}: {first_complaint(error)}; {AGAIN}") from None

    def _json(self, name: str) -> Any:
        try:
            return parse_json(self.archive.words(name))
        except MalformedError as error:
            raise DataError(f"{self.path / name} is damaged ({error}); {AGAIN}") from None


def _is_study(settings: Any) -> bool:
    """Return whether settings have the parts that are read beyond what a study's own model checks."""
    if not isinstance(settings, dict) or not isinstance(settings.get("name"), str):
        return False
    if not all(isinstance(settings.get(part, {}), dict) for part in ("generator", "raters", "evaluation")):
        return False
    models = settings.get("evaluation", {}).get("models", [])
    return isinstance(models, list) and all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in models
    )

"""`python -m evaluation.run`: score the original and the accepted transformations of every data set.

A score is on disk as soon as it exists: in a journal, which becomes part of the table every few seconds. What stands
in `scores.parquet` and `drift.parquet` under an identity that still holds is kept, with what the gate says now; only
models that have something left to do are loaded. A model that fails is reported, and the others go on.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, TypeVar

import pandas as pd
from tqdm import tqdm

from annotation.records import Verdict
from annotation.sample import read_pairs
from annotation.verdicts import read_verdicts, refuse_stale
from evaluation import display, encoder, tasks
from evaluation.encoder import Encoder, model_id
from evaluation.units import Unit, chosen_models, label, plan_units
from generation import command
from generation.datasets.specs import LocalDataset
from generation.exceptions import DataError, PlumblineError, ServiceError
from generation.identity import identity
from generation.journal import Journal
from generation.manifest import stage
from generation.records import Drift, Pair, Rating, Record, Score
from generation.store import only_one, read_frame, read_records, write_table
from generation.study import ModelSpec, Study

COMMAND = "python -m evaluation.run --study ..."
WRITE_SECONDS = 10.0

R = TypeVar("R", bound=Record)
Loader = Callable[[Study, ModelSpec], Encoder]


@dataclass
class Outcome:
    """What a run did: scores made and kept, texts asked of models and encoded, and what failed."""

    made: int = 0
    kept: int = 0
    asked: int = 0
    encoded: int = 0
    failures: dict[str, str] = field(default_factory=dict)


def evaluate(
    study: Study, *, models: Sequence[str] = (), include_rejected: bool = False, load: Loader = encoder.load
) -> Outcome:
    """Write `scores.parquet` and `drift.parquet` of a study; `models` names some of its models (default: all).

    Raises DataError without verdicts or a sample, for verdicts that ratings have outrun and for files that cannot
    be read, and StudyError for a model that the study does not have. What a model does wrong is in the outcome's
    `failures`.
    """
    chosen = chosen_models(study, models)
    verdicts, pairs = read_verdicts(study), read_pairs(study)
    refuse_stale(study, verdicts)
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        work = _Work(study, plan_units(study, verdicts, include_rejected=include_rejected), pairs, chosen)
        work.write()
        outcome = Outcome(kept=work.kept)
        todo = {spec: work.todo(spec) for spec in chosen}
        total = sum(len(units) for units in todo.values())
        with tqdm(total=total, unit="score", desc="evaluating", disable=total == 0) as bar:
            for spec, units in todo.items():
                if units or work.drift_todo(spec):
                    _run_model(work, spec, units, load, outcome, bar)
    return outcome


def read_scores(study: Study) -> pd.DataFrame:
    """The study's scores (`generation.records.Score`)."""
    return read_frame(study.folder / "scores.parquet", Score, COMMAND)


def read_drift(study: Study) -> pd.DataFrame:
    """The study's drift (`generation.records.Drift`)."""
    return read_frame(study.folder / "drift.parquet", Drift, COMMAND)


class _Work:
    """The records of a run: what holds from earlier ones, and what is still to be made."""

    def __init__(self, study: Study, units: list[Unit], pairs: list[Pair], chosen: Sequence[ModelSpec]) -> None:
        self.study, self.units, self.pairs = study, units, pairs
        self._model_ids = {spec: model_id(study, spec) for spec in study.evaluation.models}
        self._journal = Journal(study.scratch / "scores.journal")
        self._written = -math.inf
        noted = [Score.model_validate(row) for _, row in self._journal.lines()]
        rows = [*_stored(study.folder / "scores.parquet", Score), *noted]
        stored = {row.unit_id: row.score for row in rows if row.unit_id}
        self._scores: dict[tuple[str, str, str, int], Score] = {}
        self.kept = 0
        for spec in study.evaluation.models:
            known = {unit_id for unit in units if (unit_id := unit.unit_id(study, self._model_ids[spec])) in stored}
            if spec not in chosen and not known:
                continue  # a model that never ran has no rows, not even of what would be left out
            for unit in units:
                unit_id = unit.unit_id(study, self._model_ids[spec])
                if unit.decision.status == "left_out":
                    self.add(spec, unit, math.nan)
                elif unit_id in known:
                    self.add(spec, unit, stored[unit_id])
                    self.kept += 1
        moved = {row.unit_id: row.drift for row in _stored(study.folder / "drift.parquet", Drift)}
        self._drift: dict[tuple[str, str], Drift] = {}
        for spec in study.evaluation.models:
            there = [(pair, moved[key]) for pair in pairs if (key := self._drift_id(spec, pair)) in moved]
            self.add_drift(spec, [pair for pair, _ in there], [value for _, value in there])

    def todo(self, spec: ModelSpec) -> list[Unit]:
        """Units that have no score by a model yet."""
        name = label(self.study, spec)
        return [u for u in self.units if (name, u.dataset.name, u.transformation, u.seed) not in self._scores]

    def drift_todo(self, spec: ModelSpec) -> list[Pair]:
        """Pairs whose drift in a model's space is not known yet."""
        name = label(self.study, spec)
        return [pair for pair in self.pairs if (pair.pair_id, name) not in self._drift]

    def add(self, spec: ModelSpec, unit: Unit, score: float) -> Score:
        """Note a score; its row."""
        row = unit.row(self.study, spec, self._model_ids[spec], score)
        self._scores[row.model, row.dataset, row.transformation, row.seed] = row
        return row

    def add_drift(self, spec: ModelSpec, pairs: Sequence[Pair], values: Sequence[float]) -> None:
        """Note the drift of pairs."""
        for pair, value in zip(pairs, values, strict=True):
            name = label(self.study, spec)
            self._drift[pair.pair_id, name] = Drift(
                pair_id=pair.pair_id,
                transformation=pair.transformation,
                model=name,
                drift=value,
                unit_id=self._drift_id(spec, pair),
            )

    def _drift_id(self, spec: ModelSpec, pair: Pair) -> str:
        return identity("drift-v1", self._model_ids[spec], pair.original, pair.transformed)

    def save(self, spec: ModelSpec, unit: Unit, score: float) -> None:
        """Note a new score and put it on disk; the whole table of a large study is written every `WRITE_SECONDS`."""
        self._journal.append(self.add(spec, unit, score))
        self._journal.sync()
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write everything noted to the tables, in the study's order whatever order it was made in."""
        models = {label(self.study, spec): number for number, spec in enumerate(self.study.evaluation.models)}
        place = {(u.dataset.name, u.transformation, u.seed): number for number, u in enumerate(self.units)}
        scores = sorted(
            self._scores.values(), key=lambda row: (models[row.model], place[row.dataset, row.transformation, row.seed])
        )
        write_table(self.study.folder / "scores.parquet", scores, Score)
        order = {pair.pair_id: number for number, pair in enumerate(self.pairs)}
        moved = sorted(self._drift.values(), key=lambda row: (models[row.model], order[row.pair_id]))
        write_table(self.study.folder / "drift.parquet", moved, Drift)
        self._journal.remove()
        self._written = time.monotonic()


def _run_model(
    work: _Work, spec: ModelSpec, units: Sequence[Unit], load: Loader, outcome: Outcome, bar: tqdm[NoReturn]
) -> None:
    """Load one model and do everything that is left for it; note in the outcome if it fails."""
    evaluation = work.study.evaluation
    model: Encoder | None = None
    try:
        model = load(work.study, spec)
        pairs = work.drift_todo(spec)
        if pairs:
            values = encoder.drift(model, [pair.original for pair in pairs], [pair.transformed for pair in pairs])
            work.add_drift(spec, pairs, values.tolist())
            work.write()
        for unit in units:
            score = tasks.evaluate(unit.data(), model, evaluation.protocol, evaluation.batch_size)
            work.save(spec, unit, score)
            outcome.made += 1
            bar.update()
    except PlumblineError as error:
        outcome.failures[label(work.study, spec)] = str(error)
        tqdm.write(f"{label(work.study, spec)} failed: {error}", file=sys.stderr)
    finally:
        work.write()
        if model is not None:
            outcome.asked += model.asked
            outcome.encoded += model.encoded
            model.close()


def _stored(path: Path, record: type[R]) -> list[R]:
    """Records of earlier runs; none before the first. They can be made again, so a damaged file may go."""
    if not path.exists():
        return []
    try:
        return read_records(path, record, COMMAND)
    except DataError as error:
        raise DataError(f"{error} (nothing else is lost when {path.name} is deleted: it is made again)") from None


@contextlib.contextmanager
def _quiet(study: Study, specs: Sequence[ModelSpec]) -> Iterator[None]:
    """Settings that the libraries read once, at import: no talk, no telemetry, and no hub where all is local.

    mteb makes its cache folder at import, unused here; without this it would do so in the user's home. What
    the user has set stays.
    """
    settings = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    local = all(isinstance(dataset, LocalDataset) for dataset in study.datasets)
    if local and all(spec.path or spec.package for spec in specs):
        settings["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory(prefix="plumbline-mteb-") as unused:
        for name, value in {**settings, "MTEB_CACHE": unused}.items():
            os.environ.setdefault(name, value)
        yield


def _report(study: Study, verdicts: Sequence[Verdict]) -> str:
    """The tables that the command prints."""
    ratings = study.folder / "ratings.parquet"
    return display.report(
        study,
        read_scores(study),
        verdicts,
        pairs=read_frame(study.folder / "pairs.parquet", Pair, "python -m annotation sample --study ..."),
        ratings=read_frame(ratings, Rating, "python -m annotation collect --study ...") if ratings.exists() else None,
        drift=read_drift(study),
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.run",
        description="Score a study's models on the original and on the accepted transformations of its data sets."
        " Can be stopped and run again at any time: it goes on.",
        epilog="example: python -m evaluation.run --study studies/demo.yaml",
    )
    command.add_study_options(parser)
    parser.add_argument("--models", nargs="+", metavar="NAME", default=[], help="some of the study's models")
    parser.add_argument(
        "--include-rejected", action="store_true", help="score what the verdicts refuse too, marked as such everywhere"
    )
    options = parser.parse_args()
    study = command.study_of(options)
    inputs = [study.folder / name for name in ("verdicts.json", "pairs.parquet", "ratings.parquet", "transformations")]
    outputs = [study.folder / name for name in ("scores.parquet", "drift.parquet")]
    with _quiet(study, chosen_models(study, options.models)), stage(study, "evaluation", inputs, outputs):
        outcome = evaluate(study, models=options.models, include_rejected=options.include_rejected)
        print(_report(study, read_verdicts(study)))
        print(
            f"\n{study.name}: {outcome.made} scores made, {outcome.kept} were there; {outcome.encoded} texts encoded"
            f" for {outcome.asked} asked -> {outputs[0]}"
        )
        if outcome.failures:
            raise ServiceError(
                f"{len(outcome.failures)} of {len(chosen_models(study, options.models))} models failed:"
                f" {', '.join(outcome.failures)} (the reason stands above); run the same command again to go on"
            )
    return 0


if __name__ == "__main__":
    command.run(main)

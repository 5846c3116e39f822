"""Measures beside the scores: the units left to measure, how each is measured, and the tables.

All use embeddings that scoring has stored, so they cost little after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from annotation.verdicts.conclusion import COMMAND as ACCEPT
from annotation.verdicts.verdicts import accepted_pairs
from evaluation.models.encoder import Encoder
from evaluation.records import ABSTENTION, ACCEPTED_SCORES, MADE, EvaluationRecords, MadeRows, MeasureRow
from evaluation.stored import StoredResults
from evaluation.tasks import scoring
from evaluation.tasks.kinds import KINDS
from evaluation.tasks.protocols import METRICS
from evaluation.texts import Outputs
from evaluation.units import UNDEFINED, Model, Place, ScoreUnit
from generation.datasets.dataset import Dataset
from plumbline.identity import identity
from plumbline.manifest import RecordFile, StudyRecords
from plumbline.records import Pair, Text
from plumbline.statistics.abstention import CONFIDENCES, abstention, confidences, nauc_error
from plumbline.statistics.estimates import stream
from plumbline.study.evaluation import EvaluationSpec
from plumbline.study.subject import ORIGINAL


@dataclass(frozen=True)
class MeasureTodo:
    """A model's units left to measure for one table, and the measure."""

    measure: RowMeasure[Any]
    units: Sequence[ScoreUnit]


def measures(records: EvaluationRecords) -> tuple[RowMeasure[Any], ...]:
    """Return the measures of a study's tables. Raises DataError for files that cannot be read."""
    study = records.study
    means = records.conclusion.means if records.looks else None
    good = None if means is None else accepted_pairs(means, records.rubric.question_names())
    wanted = (Abstaining(study.evaluation, study.sample.seed),) if study.evaluation.abstention else ()
    return (
        AcceptedPairs(study.evaluation, records.known_pairs, good, study.acceptance.min_pairs, study.command(ACCEPT)),
        *wanted,
    )


def pieces(todos: Sequence[MeasureTodo]) -> list[Callable[[Encoder], UnitMeasures]]:
    """Return a model's measurements left, one by one; each raises the encoder's errors."""
    return [partial(_measured, todo.measure, unit) for todo in todos for unit in todo.units]


def _measured(measure: RowMeasure[Any], unit: ScoreUnit, encoder: Encoder) -> UnitMeasures:
    return UnitMeasures(measure.file.name, unit.place, measure.measured(unit, encoder))


_PASSAGE = "passage"  # the field of retrieval's passages, which are searched but not scored


class AcceptedPairs:
    """Scores on accepted pairs only: items whose transformed texts people accepted one by one (a measure).

    A verdict accepts a transformation by the mean over its pairs, some of which are bad. Here an item counts only if
    each of its texts belongs to a rated pair whose own mean reaches the threshold on every question
    (`verdicts.verdicts.accepted_pairs`), and its output is still the rated one. Original and transformed texts are
    scored on the same items. Few items qualify if a pair is one sentence of many: with fewer than
    `acceptance.min_pairs` items the scores are NaN, with the reason.
    """

    file = ACCEPTED_SCORES
    originals = False

    def __init__(
        self,
        evaluation: EvaluationSpec,
        pairs: Sequence[Pair],
        good: Collection[str] | None,
        min_pairs: int,
        accept: str = "",
    ) -> None:
        """Take the ids of the accepted `pairs` (`good`); None before the command `accept` has run.

        A data set with fewer than `min_pairs` items is not scored.
        """
        self._evaluation, self._min_pairs = evaluation, min_pairs
        self._unknown = f"no pair is accepted yet: run `{accept}`" if good is None else ""
        self._good = frozenset(good or ())
        self._seeds = {(pair.transformation, pair.seed) for pair in pairs if pair.pair_id in self._good}
        self._known: dict[Place, _Selection] = {}

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """Return the identity of the score, the accepted texts, and the least number of items."""
        chosen = sorted(self._selection(unit).texts)
        return identity("accepted-v1", unit.unit_id(self._evaluation.protocol, model), chosen, self._min_pairs)

    def blank(self, unit: ScoreUnit) -> Sequence[Fields] | None:
        """Return NaN with the reason if there are too few items, else None."""
        selection = self._selection(unit)
        return [self._fields(unit, math.nan, math.nan, selection.reason)] if selection.reason else None

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Sequence[Fields]:
        """Return both scores, on the same items."""
        evaluation, texts = self._evaluation, self._selection(unit).texts
        both = accepted_alone(unit.dataset, outputs_of(unit), texts)
        original, after = (
            scoring.evaluate(dataset, encoder, evaluation.protocol, evaluation.batch_size) for dataset in both
        )
        return [self._fields(unit, original, after, UNDEFINED if math.isnan(original) or math.isnan(after) else "")]

    def _fields(self, unit: ScoreUnit, original: float, after: float, reason: str) -> Fields:
        return {"reason": reason, "original": original, "score": after, "n": self._selection(unit).n}

    def _selection(self, unit: ScoreUnit) -> _Selection:
        if unit.place not in self._known:
            self._known[unit.place] = self._select(unit)
        return self._known[unit.place]

    def _select(self, unit: ScoreUnit) -> _Selection:
        if self._unknown:
            return _Selection(frozenset(), 0, self._unknown)
        if (unit.transformation, unit.seed) not in self._seeds:
            return _Selection(frozenset(), 0, "no pair of this transformation and seed was rated and accepted")
        good = {text: pair for text, pair in unit.sampled.items() if pair.pair_id in self._good}
        rated = [[text, pair.pair_id, pair.transformed] for text, pair in sorted(good.items())]
        least, protocol = self._min_pairs, self._evaluation.protocol

        def find() -> dict[str, Any]:
            outputs = outputs_of(unit).texts
            texts = sorted(text for text, pair in good.items() if outputs.get(text) == pair.transformed)
            accepted, _ = accepted_alone(unit.dataset, outputs_of(unit), frozenset(texts))
            n = scoring.size(accepted)
            few = f"{n} items consist of accepted pairs alone, of at least {least} that are needed"
            return {"texts": texts, "n": n, "reason": few if n < least else scoring.unusable(accepted, protocol)}

        remembered = unit.texts.remembered
        selection = remembered.found(remembered.key("accepted", unit.state, rated, least, protocol), find)
        return _Selection(frozenset(selection["texts"]), selection["n"], selection["reason"])


@dataclass(frozen=True)
class _Selection:
    """The accepted texts of a unit (ids), the number of their items, and the reason if these give no score."""

    texts: frozenset[str]
    n: int
    reason: str


def accepted_alone(dataset: Dataset, outputs: Outputs, accepted: Collection[str]) -> tuple[Dataset, Dataset]:
    """Return (original, transformed) data set of the items whose scored texts are all in `accepted` (ids).

    Texts that are not scored (classification's train split, passages) all stay, so that only the items differ from the
    whole data set's scores.
    """

    def left(text: Text, cell: str) -> str | None:
        scored = text.split == "test" and text.field != _PASSAGE
        return None if scored and text.text_id not in accepted else outputs.change(text, cell)

    return dataset.replaced(lambda text, cell: None if left(text, cell) is None else cell), dataset.replaced(left)


def outputs_of(unit: ScoreUnit) -> Outputs:
    """Return the outputs of a transformed unit. Raises ValueError for an original."""
    if unit.outputs is None:
        raise ValueError(f"{unit.name}: the original has no outputs")
    return unit.outputs


class Abstaining:
    """Measure of how well a model's confidence tells which queries to answer (an `evaluation.measures.RowMeasure`).

    A query with several similarities (retrieval, reranking) has a confidence computed from them. The same queries'
    originals are measured too, so that nAUC after a transformation can be compared with theirs.
    """

    file = ABSTENTION
    originals = True

    def __init__(self, evaluation: EvaluationSpec, seed: int) -> None:
        self._evaluation, self._seed = evaluation, seed
        self._last: tuple[Encoder, str, frozenset[str], list[QueryScores]] | None = None  # the originals scored last

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """Return the identity of the score and of the random draws of errors."""
        return identity("abstention-v1", unit.unit_id(self._evaluation.protocol, model), self._seed)

    def blank(self, unit: ScoreUnit) -> Sequence[Fields] | None:
        """Return NaN with the reason if queries have no score or only one similarity, else None."""
        if not (reason := KINDS[unit.task].no_abstention):
            return None
        return [{"confidence": name, "n": 0, "reason": reason} for name in CONFIDENCES]

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Sequence[Fields]:
        """Return nAUC of the unit's queries and of their originals, by each confidence."""
        originals = self._originals(unit, encoder)
        after = originals if unit.transformation == ORIGINAL else self._parts(unit.data(), encoder)
        rows: list[Fields] = []
        for number, name in enumerate(CONFIDENCES):
            (nauc, reason), (original, original_reason) = (_mean(parts, number) for parts in (after, originals))
            rows.append(
                {
                    "confidence": name,
                    "n": sum(len(part.metric) for part in after),
                    "nauc": nauc,
                    "nauc_error": _error(after, number, stream(self._seed, "nauc", unit.name)),
                    "nauc_original": original,
                    "reason": reason or original_reason,
                }
            )
        return rows

    def _originals(self, unit: ScoreUnit, encoder: Encoder) -> list[QueryScores]:
        name, failed = unit.name, unit.failed_texts
        if self._last is None or self._last[0] is not encoder or self._last[1:3] != (name, failed):
            self._last = encoder, name, failed, self._parts(unit.original(), encoder)
        return self._last[3]

    def _parts(self, dataset: Dataset, encoder: Encoder) -> list[QueryScores]:
        watch = Queries(METRICS[dataset.task])
        settings = self._evaluation
        scoring.evaluate_task(dataset, encoder, settings.protocol, settings.batch_size, prepare=watch.on)
        return watch.parts


def _mean(parts: Sequence[QueryScores], number: int) -> tuple[float, str]:
    """Return (nAUC's mean over subsets, as mteb averages them; the reason if it is undefined)."""
    curves = [abstention([confidence[number] for confidence in part.sure], part.metric) for part in parts]
    return float(np.mean([part.nauc for part in curves])), next((part.reason for part in curves if part.reason), "")


def _error(parts: Sequence[QueryScores], number: int, rng: np.random.Generator) -> float:
    """Return the standard error of `_mean`'s nAUC, with queries drawn within each subset."""
    errors = [nauc_error([confidence[number] for confidence in part.sure], part.metric, rng=rng) for part in parts]
    return math.sqrt(sum(error**2 for error in errors)) / max(len(errors), 1)


#: mteb's main metrics of searches, and trec_eval's names for one query
OF_QUERY = {"ndcg_at_10": "ndcg_cut_10", "map_at_1000": "map_cut_1000"}


@dataclass(frozen=True)
class QueryScores:
    """The queries of one subset, in one order: their metric, and their confidences (`statistics.abstention`)."""

    metric: list[float]
    sure: list[tuple[float, float, float]]


@dataclass
class Queries:
    """Collects each query's `metric` (mteb's name of the main metric) and confidences, a part for each subset."""

    metric: str
    parts: list[QueryScores] = field(default_factory=list)

    def on(self, task: Any) -> None:
        """Watch an mteb task (`AbsTaskRetrieval`) that will be scored."""
        task.task_specific_scores = partial(self._note, task, task.task_specific_scores)

    def _note(
        self, task: Any, measure: Callable[..., Any], scores: Any, qrels: Any, results: Any, **others: Any
    ) -> Any:
        """Collect all queries' metrics and similarities: mteb's own hook receives them."""
        ranked = results
        if task.skip_first_result:  # mteb ignores the first passage if it is the query itself
            ranked = {
                query: dict(sorted(ranking.items(), key=lambda passage: passage[1], reverse=True)[1:])
                for query, ranking in results.items()
            }
        name = OF_QUERY[self.metric]
        sure = [confidences(list(ranked[query].values())) for query in scores]
        self.parts.append(QueryScores([float(query_scores[name]) for query_scores in scores.values()], sure))
        return measure(scores, qrels, results, **others)


Fields = dict[str, object]  # a row's own fields

R = TypeVar("R", bound=MeasureRow)


class RowMeasure(Protocol[R]):
    """Makes the rows of one table."""

    originals: bool
    """True if originals have rows too."""

    @property
    def file(self) -> RecordFile[R]:
        """The file of the rows."""

    def identity(self, unit: ScoreUnit, model: Model) -> str:
        """Return the identity of a unit's rows for a model."""

    def blank(self, unit: ScoreUnit) -> Sequence[Fields] | None:
        """Return the own fields of a unit's rows if they need no model, else None."""

    def measured(self, unit: ScoreUnit, encoder: Encoder) -> Sequence[Fields]:
        """Return the own fields of a unit's rows."""


@dataclass(frozen=True)
class UnitMeasures:
    """The measured fields of a unit's rows, for the table of a file."""

    file: str
    key: Place
    rows: Sequence[Fields]


class MeasureTable(Generic[R]):
    """One table: its rows so far for `models`, and those left to make (`todo`).

    Units that the gate left out are not measured. Raises DataError for results that cannot be read.
    """

    def __init__(
        self, records: StudyRecords, units: Sequence[ScoreUnit], models: Sequence[Model], measure: RowMeasure[R]
    ) -> None:
        self._records, self._measure, self._models = records, measure, models
        self._stored = StoredResults(records.study.folder / MADE / Path(measure.file.name).stem, MadeRows)
        of = [unit for unit in units if measure.originals or unit.transformation != ORIGINAL]
        self._units = {unit.place: unit for unit in of if unit.decision.status != "left_out"}
        self._rows: dict[tuple[str, Place], Sequence[Fields]] = {}
        for model, unit in self._wanted():
            if (blank := measure.blank(unit)) is not None:
                self._rows[model.name, unit.place] = blank
            elif result := self._stored.get(measure.identity(unit, model)):
                self._rows[model.name, unit.place] = result.rows

    def todo(self, model: Model) -> MeasureTodo:
        """Return the units that need a model to be loaded."""
        units = [unit for unit in self._units.values() if (model.name, unit.place) not in self._rows]
        return MeasureTodo(self._measure, units)

    def save(self, model: Model, key: Place, rows: Sequence[Fields]) -> None:
        """Store a unit's measured fields."""
        self._stored.add(self._measure.identity(self._units[key], model), MadeRows(rows=tuple(rows)))
        self._rows[model.name, key] = rows

    def write(self) -> None:
        """Write all rows, in the study's order."""
        rows = [row for model, unit in self._wanted() for row in self._records_of(model, unit)]
        self._records.noted.write_table(self._measure.file.name, rows, self._measure.file.record)

    def _records_of(self, model: Model, unit: ScoreUnit) -> Iterator[R]:
        common = {
            "model": model.name,
            "dataset": unit.name,
            "transformation": unit.transformation,
            "axis": unit.axis,
            "seed": unit.seed,
            "status": unit.decision.status,
            "unit_id": self._measure.identity(unit, model),
        }
        for fields in self._rows.get((model.name, unit.place), ()):
            yield self._measure.file.record.model_validate(common | fields)

    def _wanted(self) -> Iterator[tuple[Model, ScoreUnit]]:
        return ((model, unit) for model in self._models for unit in self._units.values())

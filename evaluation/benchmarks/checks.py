"""Check the tasks of a study, its data sets and their accepted transformations, or tasks of mteb.

Models' scores show whether a task separates them from chance, and from one another.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from cyclopts import Parameter
from tqdm import tqdm

from annotation.campaign.records import LOOKS
from evaluation.benchmarks.contents import (
    ROWS,
    THRESHOLDS,
    TRAIN,
    CheckedTask,
    ContentPart,
    Contents,
    Finding,
    Search,
    contents_of,
    finding,
    flagged,
    undefined,
)
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.models.registered import MtebModel
from evaluation.records import SCORES, EvaluationRecords
from evaluation.sources import Folder
from evaluation.tasks import scoring
from evaluation.tasks.protocols import Protocol
from evaluation.units import Model, ScoreUnit, plan_units
from evaluation.work import quiet, versions
from generation.datasets.loading import load_dataset
from generation.datasets.mteb_tasks import load_mteb
from plumbline.cli import Named, Several
from plumbline.errors import DataError, StudyError, nearest
from plumbline.exhibits.table import UNDEFINED, Exhibit, cell, csv_bytes, json_file, write_files
from plumbline.study import Study, load_study
from plumbline.study.datasets import DatasetSpec
from plumbline.study.evaluation import MtebSpec
from plumbline.study.places import output_folder
from plumbline.study.subject import ORIGINAL
from plumbline.words import count, shows

BASELINE = MtebSpec(name="mteb/baseline-random-encoder")
_SCORED = ("random", "near_perfect", "equal_scores")


_UNFOUND = {False: "mteb leaves the query out silently", True: "the query counts as 0 for every model"}
_SHORT = 3  # characters
Key = tuple[str, ...]


def check_contents(contents: Contents) -> Iterator[Finding]:
    """Yield all checks of texts and of gold that a task of its type can have."""
    least, part = min(((len(part.items), part) for part in contents.scored), key=lambda size: size[0])
    yield finding("items", least, f"{least:,} {part.noun} ({part.label})")
    yield duplicates(contents)
    if contents.kind.trained:
        yield leakage(contents)
    yield _marked(contents, "empty_texts", lambda text: not shows(text))
    yield _marked(contents, "short_texts", lambda text: len(text.strip()) <= _SHORT and shows(text))
    for check in contents.kind.checks:
        yield _OF_GOLD[check](contents)


def labels(contents: Contents) -> Finding:
    """Check the number of labels in the part with the fewest; with several levels, those of the first."""
    labelled = [part for part in contents.parts if len(part.gold)]
    if not labelled:
        return finding("labels", 0, "no labels")
    counts = [
        (Counter(str(label) for gold in part.gold for label in _several(contents, gold)), part) for part in labelled
    ]
    numbers, part = min(counts, key=lambda of_part: len(of_part[0]))
    text = f"{count(len(numbers), 'label')} in {part.label}"
    for most, number in numbers.most_common(1):
        text += f"; the most frequent, {most}, has {number / len(part.items):.0%} of the items"
    return finding("labels", len(numbers), text)


def constant_gold(contents: Contents) -> Finding:
    """Check the number of distinct gold scores in the part with the fewest."""
    counts = [(len({float(gold) for gold in part.gold}), part) for part in contents.scored if len(part.gold)]
    least, part = min(counts, key=lambda count: count[0])
    return finding("constant_gold", least, f"{count(least, 'distinct score')} for {part.noun} ({part.label})")


def conflicts(contents: Contents) -> Finding:
    """Check for items whose texts, ignoring case, have a different gold in any split of the same subset.

    mteb's cleaning removes them (`filter_unclear_label`).
    """
    parts = [part for part in contents.parts if len(part.gold)]
    keys = [[(part.subset, tuple(text.strip().lower() for text in row)) for row in part.texts] for part in parts]
    golds: dict[tuple[str, Key], set[Any]] = defaultdict(set)
    for part, keys_of_part in zip(parts, keys, strict=True):
        for key, gold in zip(keys_of_part, part.gold, strict=True):
            golds[key].add(tuple(sorted(map(str, gold))) if isinstance(gold, (list, tuple)) else gold)
    repeated = [
        {
            index: "; ".join(sorted(map(str, golds[key])))
            for index, key in enumerate(keys_of_part)
            if len(golds[key]) > 1
        }
        for keys_of_part in keys
    ]
    number, rows = flagged(parts, repeated)
    size = sum(len(part.items) for part in parts)
    return finding("conflicts", number / max(1, size), f"{number:,} of {size:,} items", rows)


def without_relevant(contents: Contents) -> Finding:
    """Check for queries without relevant passages."""
    rows = [
        _query_row(search, query, _UNFOUND[bool(judged)])
        for search in contents.searches
        for query in search.queries
        for judged in [search.relevant.get(query, {})]
        if not any(value > 0 for value in judged.values())
    ]
    return _of_queries(contents, "without_relevant", rows)


def missing_passages(contents: Contents) -> Finding:
    """Check for judged passages that the corpus lacks."""
    rows = [
        _query_row(search, query, f"passage {passage} is not in the corpus")
        for search in contents.searches
        for query in search.queries
        for passage in sorted(search.relevant.get(query, {}).keys() - search.passages)
    ]
    return _of_queries(contents, "missing_passages", rows)


def _query_row(search: Search, query: str, detail: str) -> dict[str, str]:
    return {"subset": search.subset, "split": "test", "part": "queries", "item": query, "text": "", "detail": detail}


def _of_queries(contents: Contents, check: str, rows: list[dict[str, str]]) -> Finding:
    size = sum(len(search.queries) for search in contents.searches)
    text = f"{len(rows):,} found in {size:,} queries" if rows else "none"
    return finding(check, len(rows), text, pd.DataFrame(rows, columns=list(ROWS)))


_OF_GOLD: dict[str, Callable[[Contents], Finding]] = {
    "labels": labels,
    "constant_gold": constant_gold,
    "conflicts": conflicts,
    "without_relevant": without_relevant,
    "missing_passages": missing_passages,
}


def _several(contents: Contents, gold: Any) -> list[Any]:
    """Return an item's labels: one, or all of multilabel classification; with several levels the first."""
    if not isinstance(gold, (list, tuple)):
        return [gold]
    return list(gold) if contents.kind.several else list(gold[:1])


def duplicates(contents: Contents) -> Finding:
    """Check for items whose texts repeat those of an earlier item of their split, ignoring outer white space.

    mteb compares them in the same way (`mteb.data_cleaning.remove_duplicates`).
    """
    repeated = []
    for part in contents.parts:
        first: dict[Key, int] = {}
        earlier = [first.setdefault(key, index) for index, key in enumerate(_keys(part))]
        repeated.append({index: f"same as item {part.items[at]}" for index, at in enumerate(earlier) if at != index})
    shares = [
        (len(again) / max(1, len(part.items)), len(again), part)
        for part, again in zip(contents.parts, repeated, strict=True)
    ]
    share, number, part = max(shares, key=lambda share: share[:2])
    text = f"{number:,} of {len(part.items):,} {part.noun} ({part.label})" if number else "no item repeats another"
    return finding("duplicates", share, text, flagged(contents.parts, repeated)[1])


def leakage(contents: Contents) -> Finding:
    """Check for scored items whose texts are in the train split of any subset, regardless of labels.

    mteb compares them in the same way (`mteb.data_cleaning.remove_train_leakage`).
    """
    train = [part for part in contents.parts if part.split == TRAIN]
    if not train:
        return undefined("leakage", "the task trains on the split that it scores")
    items = {key: item for part in train for key, item in zip(_keys(part), part.items, strict=True)}
    leaked = [
        {
            index: f"same as item {items[key]} of the train split"
            for index, key in enumerate(_keys(part))
            if key in items
        }
        for part in contents.scored
    ]
    number, rows = flagged(contents.scored, leaked)
    size = sum(len(part.items) for part in contents.scored)
    return finding("leakage", number / max(1, size), f"{number:,} of {size:,} scored items", rows)


def _marked(contents: Contents, check: str, refused: Callable[[str], bool]) -> Finding:
    """Return the finding on items that have a refused text."""
    marked = [
        {index: "" for index, texts in enumerate(part.texts) if any(map(refused, texts))} for part in contents.parts
    ]
    number, rows = flagged(contents.parts, marked)
    return finding(check, number, count(number, "item") if number else "none", rows)


def _keys(part: ContentPart) -> Iterator[Key]:
    return (tuple(text.strip() for text in texts) for texts in part.texts)


class ScoreChecks:
    """Checks of tasks by models' scores. `scores` is the study's table (empty without scores).

    `evaluate` is the command that computes scores.
    """

    def __init__(self, host: ModelHost, scores: pd.DataFrame, evaluate: str) -> None:
        self._scores, self._evaluation, self._evaluate = scores, host.evaluation, evaluate
        self._models = Model.all_of(host)
        self._baselines: dict[str, float] = {}

    def findings(self, task: CheckedTask) -> Iterator[Finding]:
        """Yield the findings of one task."""
        protocol = self._evaluation.protocol
        scores = known_scores(self._scores, task.unit, self._models, protocol) if task.unit is not None else {}
        if not scores:
            reason = self._unscored(task)
            for check in _SCORED:
                yield undefined(check, reason)
            return
        yield self._random(task, scores)
        yield near_perfect(scores)
        yield equal_scores(scores)

    def _unscored(self, task: CheckedTask) -> str:
        """Return why no model has a score, and what to do about it."""
        if reason := scoring.unusable(task.dataset, self._evaluation.protocol):
            return f"the task cannot be scored: {reason}"
        if not self._scores.empty and task.unit is not None:
            keys = [task.unit.unit_id(self._evaluation.protocol, model) for model in self._models]
            rows = self._scores[self._scores["unit_id"].isin(keys) & (self._scores["dataset"] == task.dataset.name)]
            if len(rows):
                return f"every model's score is undefined ({'; '.join(dict.fromkeys(rows['reason']))})"
        return f"no model of the study has a score on the task; run `{self._evaluate}`"

    def _random(self, task: CheckedTask, scores: Mapping[str, float]) -> Finding:
        """Check how far the models are above random vectors (mteb's random baseline)."""
        (dataset, *_), protocol = task.unit.place if task.unit else ("",), self._evaluation.protocol
        if dataset not in self._baselines and task.unit is not None:
            model = Encoder(MtebModel(BASELINE), BASELINE.name, "")
            original = task.unit.dataset
            with _hidden_bars("mteb.models.model_implementations.random_baseline"):
                result = scoring.evaluate(original, model, protocol, self._evaluation.batch_size)
            self._baselines[dataset] = result
            model.close()
        base = self._baselines[dataset]
        if math.isnan(base):
            return undefined("random", "the random baseline's own score is undefined")
        worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
        ends = f"weakest model: {worst} ({scores[worst]:.4f}); best model: {best} ({scores[best]:.4f})"
        text = f"{BASELINE.name} scores {base:.4f} on the original texts; {ends}"
        return finding("random", scores[worst] - base, text, fails=scores[best] - base)


def known_scores(
    scores: pd.DataFrame, unit: ScoreUnit, models: Iterable[Model], protocol: Protocol
) -> dict[str, float]:
    """Return models' valid scores on a unit from a study's table, in the models' order."""
    if scores.empty:
        return {}
    evaluated = scores[scores["status"] == "evaluated"].set_index("unit_id")
    evaluated = evaluated[(evaluated["dataset"] == unit.name) & (evaluated["transformation"] == unit.transformation)]
    by_model = {}
    for model in models:
        key = unit.unit_id(protocol, model)
        values = evaluated.loc[[key], "score"] if key in evaluated.index else pd.Series(dtype=float)
        if len(values) and math.isfinite(values.iloc[0]):
            by_model[model.name] = float(values.iloc[0])
    return by_model


def near_perfect(scores: Mapping[str, float]) -> Finding:
    """Check whether the best model, and the weakest, leave room for improvement."""
    worst, best = min(scores, key=lambda name: scores[name]), max(scores, key=lambda name: scores[name])
    text = f"{best} scores {scores[best]:.4f}, {worst} {scores[worst]:.4f}"
    return finding("near_perfect", scores[best], text, fails=scores[worst])


def equal_scores(scores: Mapping[str, float]) -> Finding:
    """Check how far apart the models' scores are."""
    if len(scores) < 2:
        return undefined("equal_scores", f"only {next(iter(scores))} has a score on the task")
    low, high = min(scores.values()), max(scores.values())
    return finding("equal_scores", high - low, f"scores of {len(scores)} models from {low:.4f} to {high:.4f}")


@contextlib.contextmanager
def _hidden_bars(module: str) -> Iterator[None]:
    """Hide the progress bars of a module of mteb: commands have their own."""
    mteb_module: Any = importlib.import_module(module)
    bar = mteb_module.tqdm
    mteb_module.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        mteb_module.tqdm = bar


def check(
    tasks: Sequence[CheckedTask], scored: ScoreChecks | None = None, progress: Callable[[], object] = lambda: None
) -> dict[str, list[Finding]]:
    """Return the findings on each task by its name, in the thresholds' order; also by scores if there are any."""
    findings_by_task, order = {}, list(THRESHOLDS)
    for task in tasks:
        findings = [*check_contents(contents_of(task.dataset)), *(scored.findings(task) if scored else ())]
        findings_by_task[task.name] = sorted(findings, key=lambda finding: order.index(finding.check))
        progress()
    return findings_by_task


CHECKS = "checks.csv"
COLUMNS = ("task", "check", "verdict", "value", "threshold", "reason", "rows_file")


def table(checked: Mapping[str, Sequence[Finding]]) -> pd.DataFrame:
    """Return one row for each task and check; `rows_file` names the file of the rows concerned, empty without any."""
    rows = [
        (task, finding.check, finding.verdict, finding.value, finding.threshold, finding.reason,
         _rows_file(task, finding.check) if len(finding.rows) else "")
        for task, findings in checked.items()
        for finding in findings
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": "float64"})


def write(folder: Path, checked: Mapping[str, Sequence[Finding]], about: dict[str, Any]) -> None:
    """Write all files, each atomically; delete those of an earlier check, and no others."""
    rows = {
        _rows_file(task, finding.check): csv_bytes(finding.rows)
        for task, findings in checked.items()
        for finding in findings
        if len(finding.rows)
    }
    write_files(folder, {CHECKS: csv_bytes(table(checked)), "about.json": json_file(about), **rows})


def _rows_file(task: str, check: str) -> str:
    """Return the file for the rows of a check; characters that files cannot have are replaced."""
    return f"rows/{re.sub(r'[^A-Za-z0-9._-]', '_', task)}.{check}.csv"


_NO_VERDICTS = "there are no verdicts yet, so only untransformed data sets are checked"


def tasks_of(study: Study, names: Sequence[str]) -> tuple[list[CheckedTask], list[str]]:
    """Return the data sets (or those of `names`) and their accepted copies, with notes on missing ones.

    Verdicts must follow from the files on disk, as for an evaluation. Raises as planning an evaluation.
    """
    wanted = [spec for spec in study.datasets if not names or spec.name in names]
    if study.subject:
        return [CheckedTask(spec.name, load_dataset(spec, study.file.parent)) for spec in wanted], []
    if not (study.folder / LOOKS.name).exists():
        units = originals_of(study.model_copy(update={"datasets": tuple(wanted)}))
        return [CheckedTask(name_of(unit), unit.dataset, unit) for unit in units], [_NO_VERDICTS]
    records = EvaluationRecords(study)
    units = plan_units(
        Folder(study.model_copy(update={"datasets": tuple(wanted)})), records.conclusion.verdicts, records.pairs
    )
    out_units = [unit for unit in units if unit.decision.status == "left_out" and unit.transformation != ORIGINAL]
    tasks = [
        CheckedTask(name_of(unit), unit.data(), unit)
        for unit in units
        if unit.decision.status == "evaluated" or unit.transformation == ORIGINAL
    ]
    skipped = {unit.transformation for unit in out_units}
    notes = (
        [f"transformations not checked on data sets where verdicts do not accept them: {', '.join(sorted(skipped))}"]
        if skipped
        else []
    )
    return tasks, notes


def originals_of(study: Study) -> list[ScoreUnit]:
    """Return the units of a study's untransformed data sets."""
    return plan_units(Folder(study.model_copy(update={"transformations": ()})), [], [])


def refuse_unknown_data(names: Sequence[str], datasets: Sequence[DatasetSpec], file: Path) -> None:
    """Raise StudyError for a data set of --task that the study lacks."""
    data_names = [dataset.name for dataset in datasets]
    for name in names:
        if name not in data_names:
            raise StudyError(f"--task {name}: {file} has no data set of that name; {nearest(name, data_names)}")


def name_of(unit: ScoreUnit) -> str:
    """Return a task's name: the data set's, followed by transformation and seed."""
    if unit.transformation == ORIGINAL:
        return unit.name
    return f"{unit.name} {unit.transformation}-{unit.seed}"


def check_tasks(
    *,
    study: Annotated[Named | None, Parameter(metavar="FILE")] = None,
    exports: Annotated[Named | None, Parameter(metavar="DIR")] = None,
    task: Annotated[tuple[str, ...], Several, Parameter(metavar="NAME...")] = (),
    out: Annotated[Named | None, Parameter(metavar="FOLDER")] = None,
) -> None:
    """Check the data and the scores of tasks.

    The tasks are a study's (its data sets and their accepted transformations) or mteb's. A check that does not pass
    asks a person to review the task; it is not a verdict on the task.

    Example: plumbline check --study studies/demo.yaml --task sample_sts

    Tasks of mteb by name, without a study:

        plumbline check --task STSBenchmark Banking77Classification

    Args:
        study: The study whose tasks are checked, for example studies/demo.yaml.
        exports: Folder or address of its records (default: exports/).
        task: Only these data sets; without --study, tasks of mteb.
        out: The folder for the files (default: quality/ in the folder of the study's records; without a study,
            ./quality).
    """
    if not study and not task:
        raise StudyError("nothing to check: name a study (--study FILE) or tasks of mteb (--task NAME)")
    loaded = load_study(study, exports) if study else None
    folder = output_folder(out, loaded.folder / "quality" if loaded else "quality")
    with quiet(loaded.datasets, loaded.evaluation.models) if loaded else contextlib.nullcontext():
        tasks, checks, notes = _of_study(loaded, task) if loaded else _of_mteb(task)
        with tqdm(total=len(tasks), desc="checking", unit="task", delay=1, leave=False) as bar:
            checked = check(tasks, checks, bar.update)
    about = {"study": loaded.name if loaded else None, "tasks": list(checked)}
    write(folder, checked, about | {"notes": notes, "versions": versions()})
    print(_text(checked, notes))
    print(f"-> {folder}: {CHECKS}, rows/")


def _of_mteb(names: Sequence[str]) -> tuple[list[CheckedTask], ScoreChecks | None, list[str]]:
    specs = {name: DatasetSpec.model_validate({"mteb": name}) for name in names}
    tasks = [CheckedTask(name, load_mteb(spec)) for name, spec in specs.items()]
    return tasks, None, ["scores are not checked, as only a study names models"]


def _of_study(study: Study, names: Sequence[str]) -> tuple[list[CheckedTask], ScoreChecks | None, list[str]]:
    refuse_unknown_data(names, study.datasets, study.file)
    if not study.datasets:
        raise DataError(f"{study.file}: no data set to check; add `datasets`")
    tasks, notes = tasks_of(study, names)
    if not study.evaluation.models:
        return tasks, None, [*notes, "scores are not checked, as the study has no models"]
    records = EvaluationRecords(study)
    scores = records.scores if records.has(SCORES) else pd.DataFrame()
    return tasks, ScoreChecks(ModelHost.of(study), scores, study.command("evaluate")), notes


def _text(checked: Mapping[str, Sequence[Finding]], notes: Sequence[str]) -> str:
    """Return the text for a terminal: how many checks passed, and the others."""
    frame = table(checked)
    counts = Counter(frame["verdict"])
    answer = (
        f"{count(len(checked), 'task')}, {count(counts.total(), 'check')}: {counts['pass']:,} passed,"
        f" {counts['look']:,} to review (look), {counts['fail']:,} failed."
    )
    columns = {
        "Task": "task",
        "Check": "check",
        "Verdict": "verdict",
        "Value": cell("value", lambda value: UNDEFINED if math.isnan(value) else f"{value:.4g}"),
        "Reason": "reason",
    }
    return Exhibit.of("checks", answer, frame[frame["verdict"] != "pass"], columns, notes).text("every check passed")

"""Score models under wordings of an instruction: each data set under the model's own prompt, none, and all accepted.

The default is scored in the same run, on the same data, as the wordings compared with it. Only models with work left
are loaded; one that fails is reported, and the others go on.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from evaluation.cluster import run_jobs
from evaluation.instructions.scores import SCORES
from evaluation.instructions.units import InstructionScore, PromptResults, PromptUnit, plan, unlabelled
from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.tasks.protocols import METRICS
from evaluation.tasks.scoring import evaluate_task
from evaluation.units import UNDEFINED, Model
from evaluation.work import JobOutcome, Loader, ModelEnd, ModelJob, quiet, versions
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_tasks import MtebTask
from plumbline import cli
from plumbline.cli import columns
from plumbline.manifest import StudyRecords, stage
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.study.datasets import SEARCHES
from plumbline.study.evaluation import EvaluationSpec
from plumbline.study.subject import INSTRUCTIONS
from plumbline.words import count

if TYPE_CHECKING:
    from mteb.models.model_meta import ModelMeta

DOCUMENT = "document"


class PromptedEncoder:
    """An encoder that puts an instruction before queries and texts without a role, but not before documents.

    So the documents of a search are encoded once for all instructions. `text` None is the model's own prompt, an empty
    one no prompt. The model is not changed: others may use the encoder at the same time.
    """

    def __init__(self, encoder: Encoder, text: str | None, template: str = "") -> None:
        self._encoder, self._text, self._template = encoder, text, template
        self.similarity, self.similarity_pairwise = encoder.similarity, encoder.similarity_pairwise
        self.effective = ""
        """The text before the last encoded texts, except documents."""

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """The encoder's name and revision."""
        return self._encoder.mteb_model_meta

    def encode(
        self,
        inputs: Iterable[dict[str, Any]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        **_: Any,
    ) -> Embeddings:
        """Return embeddings of mteb's batches, in order."""
        role = str(prompt_type.value) if prompt_type is not None else ""
        call = {
            "task_metadata": task_metadata, "hf_split": hf_split, "hf_subset": hf_subset, "prompt_type": prompt_type,
        }  # fmt: skip
        if role == DOCUMENT or self._text is None:
            prompt = self._encoder.prompt_for(**call)
        else:
            prompt = self._encoder.model.prompt_under(self._text, self._template, call)
        if role != DOCUMENT:
            self.effective = self._encoder.model.before(prompt)
        return self._encoder.embed([text for batch in inputs for text in batch["text"]], prompt=prompt, role=role)


@dataclass
class PromptRunOutcome(JobOutcome):
    """The outcome of a run, with its units: those not scored have a reason."""

    units: Sequence[PromptUnit] = ()


@dataclass(frozen=True)
class UnitResult:
    """A model's result on a unit: mteb's result and the effective prompt; or the reason for a refusal."""

    key: tuple[str, str]
    result: Any = None
    effective: str = ""
    revision: str = ""
    versions: str = ""
    refused: str = ""


def evaluate_instructions(
    study: Study,
    *,
    models: Sequence[str] = (),
    include_unaccepted: bool = False,
    cluster: str = "",
    load: Loader = ModelHost.load,
) -> PromptRunOutcome:
    """Write `instructions/scores.parquet`; `models` names some.

    `cluster` is the address of a Ray cluster (docs/howto/ray.md); empty for this machine. `include_unaccepted` also
    scores wordings that people did not accept, to show the gate's effect; rows carry the label. Raises DataError
    without wordings or verdicts, StudyError for a model that the study lacks. Errors of models are in the outcome's
    `failures`. Existing scores are kept, and each text is encoded once.

    Source: arXiv 2605.22544, section 2; the default is scored anew instead of taken from a leaderboard.
    """
    host = ModelHost.of(study)
    chosen = [Model.of(host, spec) for spec in host.chosen(models)]
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        units = plan(study, include_unaccepted=include_unaccepted)
        results = PromptResults(StudyRecords.open(study), units, Model.all_of(host))
        todo = {model.name: results.todo(model) for model in chosen}
        n_all = len(chosen) * sum(not unit.reason for unit in units)
        outcome = PromptRunOutcome(units=units, kept=n_all - sum(map(len, todo.values())))
        jobs = [
            ModelJob(
                model,
                [partial(_score, study.evaluation, unit, model.spec.instruction_template) for unit in todo[model.name]],
            )
            for model in chosen
            if todo[model.name]
        ]
        try:
            with (
                tqdm(total=sum(map(len, todo.values())), unit="score", desc="evaluating") as bar,
                contextlib.closing(run_jobs(host, jobs, load, cluster if jobs else "")) as stream,
            ):
                _take(results, stream, outcome, bar)
        finally:
            results.write()
    return outcome


def _take(results: PromptResults, stream: Iterator[tuple[ModelJob, Any]], outcome: PromptRunOutcome, bar: Any) -> None:
    """Save results in the order in which they come."""
    units = {unit.place: unit for unit in results.units}
    for job, result in stream:
        model = job.model
        if isinstance(result, ModelEnd):
            outcome.end(model, result)
            if result.failure:
                results.fail(model, result.failure)
            continue
        unit = units[result.key]
        if result.refused:
            rows = results.unscored(model, unit, result.refused, unit_id=results.unit_id(unit, model))
        else:
            rows = list(_rows(results, model, unit, result))
        results.save(model, unit, rows)
        outcome.made += 1
        bar.update()


def _score(evaluation: EvaluationSpec, unit: PromptUnit, template: str, model: Encoder) -> UnitResult:
    """Score a data set under a prompt: a piece of `evaluation.work`."""
    refused = model.model.refuses() if unit.wanted.text is not None else ""
    if refused:
        return UnitResult(unit.place, refused=refused)
    under = PromptedEncoder(model, unit.wanted.text, template)
    result = evaluate_task(unit.dataset, under, evaluation.protocol, evaluation.batch_size)
    return UnitResult(unit.place, result, under.effective, model.revision, versions(model.engines))


def _rows(results: PromptResults, model: Model, unit: PromptUnit, result: UnitResult) -> Iterator[InstructionScore]:
    """Yield a row for each subset that mteb scored."""
    ((split, subsets),) = result.result.scores.items()
    for subset in subsets:
        value = subset[METRICS[unit.dataset.task]]
        score = math.nan if value is None else float(value)
        yield results.row(
            model,
            unit,
            revision=model.revision or result.revision or "unknown",
            split=split,
            subset=subset["hf_subset"],
            effective=result.effective,
            score=score,
            reason=UNDEFINED if math.isnan(score) else "",
            mteb_version=str(result.result.mteb_version or ""),
            unit_id=results.unit_id(unit, model),
            versions=result.versions,
        )


def forecast(study: Study, *, models: Sequence[str] = (), include_unaccepted: bool = False) -> str:
    """Return for each model and data set the prompts, scores left, and the texts and characters to encode at most.

    Documents of searches are counted once, other texts once a prompt. Texts encoded already are counted too.
    """
    host = ModelHost.of(study)
    chosen = [Model.of(host, spec) for spec in host.chosen(models)]
    units = plan(study, include_unaccepted=include_unaccepted)
    results = PromptResults(StudyRecords.open(study), units, chosen)
    rows, totals = [], [0, 0, 0]
    for model in chosen:
        todo = results.todo(model)
        for name in dict.fromkeys(unit.dataset.name for unit in units):
            of_dataset = [unit for unit in todo if unit.dataset.name == name]
            every = sum(unit.dataset.name == name and not unit.reason for unit in units)
            texts, signs = _cost(of_dataset)
            totals = [a + b for a, b in zip(totals, (len(of_dataset), texts, signs), strict=True)]
            rows.append([model.name, name, str(every), str(len(of_dataset)), f"{texts:,}", f"{signs / 1e6:.2f}"])
    table = columns(["Model", "Data set", "Prompts", "Left", "Texts", "Million characters"], rows)
    scores, texts, signs = totals
    cost = f"{texts:,} texts, {signs / 1e6:.2f} million characters, to encode"
    return f"{table}\n\n{study.name}: {count(scores, 'score')} left; {cost}"


def _cost(units: Sequence[PromptUnit]) -> tuple[int, int]:
    """Return the texts and characters that these units of one data set encode."""
    if not units:
        return 0, 0
    dataset = units[0].dataset
    prompted = {text.text for text in dataset.texts() if text.field != "passage"}
    documents = _documents(dataset)
    signs = sum(map(len, prompted))
    prompts = sum(len(unit.wanted.text or "") for unit in units)
    return (
        len(units) * len(prompted) + len(documents),
        len(units) * signs + len(prompted) * prompts + sum(map(len, documents)),
    )


def _documents(dataset: Dataset) -> set[str]:
    """Return the distinct searched passages."""
    if isinstance(dataset, TableDataset) and dataset.task == "retrieval":
        return set(dataset.corpus.values())
    if isinstance(dataset, MtebTask) and dataset.task in SEARCHES:
        parts = [parts[dataset.loaded.split]["corpus"] for parts in dataset.loaded.task.dataset.values()]
        return {text for part in parts for text in part["text"]}
    return {text for query in dataset.passages_of() for text in (*query.relevant, *query.others)}


def score_wordings(options: argparse.Namespace) -> int:
    """Run the command: score a study's models under wordings, and print the result."""
    study = cli.study_of(options)
    chosen = {"models": options.models, "include_unaccepted": options.include_unaccepted}
    inputs = [study.folder / name for name in ("looks.json", "pairs.parquet", "ratings.parquet", INSTRUCTIONS)]
    models = ModelHost.of(study).chosen(options.models)
    with quiet(study.datasets, models):
        if options.dry_run:
            print(forecast(study, **chosen))
            return 0
        with stage(study, "instruction_scores", inputs, [study.folder / SCORES]):
            outcome = evaluate_instructions(study, **chosen, cluster=options.ray)
    print(f"{study.name}: {outcome.line(study.folder / SCORES)}")
    for line in _about_wordings(outcome, include_unaccepted=options.include_unaccepted):
        print(f"  {line}")
    if study.acceptance.min_raters < 2 and not unlabelled(study.folder):
        print("  one rater's label decides each wording, so there is no agreement to report")
    outcome.refuse_failures(len(models))
    return 0


def _about_wordings(outcome: PromptRunOutcome, *, include_unaccepted: bool) -> Iterator[str]:
    wordings = {unit.wanted.prompt_id: unit for unit in outcome.units if unit.wanted.text}
    reasons = Counter(unit.reason for unit in wordings.values() if unit.reason)
    yield f"wordings: {len(wordings) - reasons.total()} scored, {reasons.total()} not scored"
    yield from (f"  {number}: {reason}" for reason, number in reasons.most_common())
    if include_unaccepted:
        unaccepted = sum(unit.wanted.label != "acceptable" for unit in wordings.values())
        yield f"scored although unaccepted: {count(unaccepted, 'wording')}; the rows show the labels"
    if any(unit.wanted.simulated for unit in wordings.values()):
        yield "labels are simulated and say nothing about the wordings"

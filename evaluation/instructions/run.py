"""Score models under wordings of an instruction: each data set under the model's own prompt, none, and all accepted.

The default is scored in the same run, on the same data, as the wordings compared with it. Only models with work left
are loaded; one that fails is reported, and the others go on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluation.cluster import run_jobs, save_results
from evaluation.instructions.units import PromptResults, PromptUnit, plan, unlabelled
from evaluation.measures import Fields
from evaluation.models.embeddings import Embeddings
from evaluation.models.encoder import Encoder, ModelHost
from evaluation.score_frames import SCORES
from evaluation.tasks.protocols import METRICS
from evaluation.tasks.scoring import evaluate_task
from evaluation.units import UNDEFINED, Model
from evaluation.work import JobOutcome, Loader, ModelJob, ScoringOptions, quiet, versions
from generation.datasets.dataset import Dataset
from generation.datasets.local import TableDataset
from generation.datasets.mteb_tasks import MtebTask
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
        results = PromptResults(StudyRecords(study), units, Model.all_of(host))
        todo = {model.name: results.todo(model) for model in chosen}
        n_all = len(chosen) * sum(not unit.reason for unit in units)
        n_todo = sum(map(len, todo.values()))
        outcome = PromptRunOutcome(units=units, kept=n_all - n_todo)
        jobs = [
            ModelJob(
                model,
                [partial(_scored, study.evaluation, model.spec.instruction_template, unit) for unit in units_left],
            )
            for model in chosen
            if (units_left := todo[model.name])
        ]
        by_key = {unit.key: unit for unit in units}

        def save(job: ModelJob, result: tuple[tuple[str, str], list[Fields]]) -> bool:
            key, rows = result
            results.save(job.model, by_key[key], rows)
            return True

        try:
            save_results(run_jobs(host, jobs, load, cluster if jobs else ""), save, outcome, n_todo, results.fail)
        finally:
            results.write()
    return outcome


def _scored(
    evaluation: EvaluationSpec, template: str, unit: PromptUnit, model: Encoder
) -> tuple[tuple[str, str], list[Fields]]:
    """Score a data set under a prompt: a piece of `evaluation.work`. Return the unit's key and its rows' fields."""
    if unit.text is not None and (refused := model.model.refuses()):
        return unit.key, unit.unscored(refused)
    under = PromptedEncoder(model, unit.text, template)
    result = evaluate_task(unit.dataset, under, evaluation.protocol, evaluation.batch_size)
    ((split, subsets),) = result.scores.items()
    rows: list[Fields] = []
    for subset in subsets:
        value = subset[METRICS[unit.dataset.task]]
        score = math.nan if value is None else float(value)
        rows.append(
            {
                "revision": model.revision, "split": split, "subset": subset["hf_subset"],
                "effective": under.effective, "score": score, "reason": UNDEFINED if math.isnan(score) else "",
                "mteb_version": str(result.mteb_version or ""), "versions": versions(model.engines),
            }
        )  # fmt: skip
    return unit.key, rows


def forecast(study: Study, *, models: Sequence[str] = (), include_unaccepted: bool = False) -> str:
    """Return for each model and data set the prompts, scores left, and the texts and characters to encode at most.

    Documents of searches are counted once, other texts once a prompt. Texts encoded already are counted too.
    """
    host = ModelHost.of(study)
    chosen = [Model.of(host, spec) for spec in host.chosen(models)]
    units = plan(study, include_unaccepted=include_unaccepted)
    results = PromptResults(StudyRecords(study), units, chosen)
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
    prompts = sum(len(unit.text or "") for unit in units)
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
    return {text for search in dataset.searches() for text in search.passages.values()}


def score_wordings(*, options: ScoringOptions, include_unaccepted: bool = False) -> None:
    """Score models under the wordings that people accepted.

    The study's models are also scored under the model's own prompt and under no prompt. You can stop it at any time;
    run it again to continue.

    Example: plumbline sensitivity --study studies/instructions.yaml --dry-run

    Args:
        options: The study, and its models to score.
        include_unaccepted: Also score wordings that people did not accept; their rows show the label.
    """
    study, models = options.load(), options.models
    inputs = [study.folder / name for name in ("looks.json", "pairs.parquet", "ratings.parquet", INSTRUCTIONS)]
    specs = ModelHost.of(study).chosen(models)
    with quiet(study.datasets, specs):
        if options.dry_run:
            print(forecast(study, models=models, include_unaccepted=include_unaccepted))
            return
        with stage(study, "instruction_scores", inputs, [study.folder / SCORES]):
            outcome = evaluate_instructions(
                study, models=models, include_unaccepted=include_unaccepted, cluster=options.ray
            )
    print(f"{study.name}: {outcome.line(study.folder / SCORES)}")
    for line in _about_wordings(outcome, include_unaccepted=include_unaccepted):
        print(f"  {line}")
    if study.acceptance.min_raters < 2 and not unlabelled(study.folder):
        print("  one rater's label decides each wording, so there is no agreement to report")
    outcome.refuse_failures(len(specs))


def _about_wordings(outcome: PromptRunOutcome, *, include_unaccepted: bool) -> Iterator[str]:
    wordings = {unit.prompt_id: unit for unit in outcome.units if unit.text}
    reasons = Counter(unit.reason for unit in wordings.values() if unit.reason)
    yield f"wordings: {len(wordings) - reasons.total()} scored, {reasons.total()} not scored"
    yield from (f"  {number}: {reason}" for reason, number in reasons.most_common())
    if include_unaccepted:
        unaccepted = sum(unit.label != "acceptable" for unit in wordings.values())
        yield f"scored although unaccepted: {count(unaccepted, 'wording')}; the rows show the labels"
    if any(unit.simulated for unit in wordings.values()):
        yield "labels are simulated and say nothing about the wordings"

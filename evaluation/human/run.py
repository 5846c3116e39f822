"""`plumbline evaluate` on a human study: score models on the items that people did, and compare all scorers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.human.records import ANSWERS, ITEMS, MODEL_ANSWERS, TASKS
from annotation.verdicts.conclusion import known_verdicts
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.tables import SIMULATED
from evaluation.display import hundred
from evaluation.human.compare import TaskPart, compare
from evaluation.human.models import ModelScores, score_models
from evaluation.human.mteb_results import write_results
from evaluation.human.records import FILES, JUDGE, HumanRecords, HumanTables
from evaluation.human.standing import with_ami
from evaluation.models.encoder import ModelHost
from evaluation.units import Model
from evaluation.work import JobOutcome, Loader, quiet
from plumbline.manifest import stage
from plumbline.store import only_one
from plumbline.study import Study
from plumbline.words import count

REPORT = "human-report"
INPUTS = (TASKS, ITEMS, ANSWERS, MODEL_ANSWERS)


@dataclass(frozen=True)
class HumanEvaluation:
    """The outcome of models, and the tables of a run."""

    outcome: JobOutcome
    compared: HumanTables


def evaluate_human(
    study: Study, *, models: Sequence[str] = (), cluster: str = "", load: Loader = ModelHost.load
) -> HumanEvaluation:
    """Write scores, agreement, differences and item scores of a human study, and mteb's result files.

    `models` names some of the study's; models scored before stay in the tables. `cluster` is the address of a Ray
    cluster; empty for this machine. Raises DataError before people's answers were accepted, and if data sets or records
    were changed; StudyError for a model that the study lacks; ServiceError if there is no cluster. Errors of models are
    in the outcome's `failures`.

    Source: HUME, 3; docs/method/human_ceiling.md lists the differences.
    """
    host, records = ModelHost.of(study), HumanRecords(study)
    chosen = [Model.of(host, spec) for spec in host.chosen(models)] if study.evaluation.models else []
    people, annotators, named = records.answers, records.model_answers, records.subject.models
    with only_one(study.scratch / ".evaluation.lock", f"another run is evaluating {study.name!r}"):
        outcome = score_models(host, records.samples, chosen, load, cluster)
        embedding, scores = Model.all_of(host), ModelScores.of(host)
        parts = []
        for sample in records.samples:
            results = {model.name: result for model in embedding if (result := scores.stored(model, sample))}
            parts.append(TaskPart(sample, people, annotators, results))
        compared = compare(parts, seed=study.sample.seed)
        silent = [spec.called for spec in named if spec.called not in set(annotators["rater_id"])]
        notes = [
            *(
                f"task {verdict.transformation} ({verdict.language}) is {verdict.decision} but was scored nevertheless:"
                f" {'; '.join(verdict.reasons)}"
                for verdict in known_verdicts(Evidence(study))
                if verdict.decision != "accepted"
            ),
            *(
                f"annotator {name} lacks answers: run `{study.command(JUDGE)}`, which queries it or reports why no"
                " answer could be read"
                for name in silent
            ),
            *compared.notes,
        ]
        compared = dataclasses.replace(compared, notes=tuple(notes))
        records.write(compared)
        write_results(study.folder, parts, compared)
    return HumanEvaluation(outcome, compared)


def command(study: Study, models: Sequence[str], cluster: str = "") -> None:
    """Run the command: evaluate, and print the result. Raises ServiceError if a model failed."""
    chosen = ModelHost.of(study).chosen(models) if study.evaluation.models else []
    inputs, outputs = ([study.folder / name for name in names] for names in (INPUTS, FILES))
    with quiet(study.datasets, chosen), stage(study, "evaluation", inputs, outputs):
        done = evaluate_human(study, models=models, cluster=cluster)
        outcome = done.outcome
        for line in lines_of(done.compared):
            print(line)
        print(f"\n{study.name}: {outcome.line(outputs[0])}\nfor tables and figures, run `{study.command(REPORT)}`")
        outcome.refuse_failures(len(chosen))


def lines_of(compared: HumanTables) -> list[str]:
    """Return a line for each task and language with people's and the best model's scores, then the omissions."""
    lines = [SIMULATED] if compared.scores["simulated"].any() else []
    for (task, subset, language), every in with_ami(compared.scores, ["task", "subset", "language"]):
        compared_rows = every[every["compared"]]
        by_kind = dict(zip(compared_rows["scorer_kind"], compared_rows["score"], strict=True))
        line = f"people {hundred(by_kind.get('raters_mean', math.nan))}"
        if not math.isnan(together := by_kind.get("aggregate", math.nan)):
            line += f" (together {hundred(together)})"
        for kind, words in (("model", "best model"), ("llm", "best language model")):
            scored = compared_rows[(compared_rows["scorer_kind"] == kind) & compared_rows["score"].notna()]
            best = scored.sort_values("score", ascending=False, kind="stable").head(1)
            named = zip(best["score"].tolist(), best["scorer"], strict=True)
            line += "".join(f", {words} {hundred(value)} ({name})" for value, name in named)
        languages = ", ".join(filter(None, (str(language), str(subset))))
        items = max(compared_rows["n_items"], default=0)
        lines.append(f"{task} ({languages}), {every['metric'].iloc[0]} times 100 over {count(items, 'item')}: {line}")
    return [*lines, *compared.notes]

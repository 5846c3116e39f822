"""What work is paid, in whole cents: batches by assumed time, bonuses by observed time, and the platforms' fees.

Pay is by METHOD: at least 24 dollars an hour at 30 s for a pair, 25% more for expansion, 10% for summarised expansion;
where people turn out to need longer, a bonus makes up the difference (HTEB, Ethical Considerations). Every amount is
rounded up to a cent, in favour of the worker or of the plan.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

from plumbline.errors import StudyError
from plumbline.study.crowd import CrowdSpec, PaySpec, PlatformName

# MTurk's fees on rewards and bonuses (its pricing page): at least a cent; the higher one for HITs of ten and more.
MTURK_FEE, MTURK_FEE_FROM_TEN = Decimal("0.20"), Decimal("0.40")


def reward(transformations: Iterable[str], pay: PaySpec) -> int:
    """Cents for a batch whose pairs are of these transformations, one name a pair; controls are paid like pairs."""
    seconds = sum((_seconds(name, pay) for name in transformations), Decimal(0))
    return _cents(seconds * _hourly(pay) / 3600)


def assumed_hours(transformations: Iterable[str], pay: PaySpec) -> float:
    """The hours that `reward` pays for."""
    return float(sum((_seconds(name, pay) for name in transformations), Decimal(0)) / 3600)


def owed_bonus(paid: int, seconds: Sequence[float], pay: PaySpec) -> int:
    """Cents that each worker of a batch is owed beside the reward `paid`, by the times that its workers took.

    The median counts, in whole seconds: one who went for a coffee raises nobody's pay, one who rushed lowers nobody's.
    0 where the reward reaches the hourly wage, or where no time is known.
    """
    if not seconds:
        return 0
    fair = _cents(round(statistics.median(seconds)) * _hourly(pay) / 3600)
    return max(0, fair - paid)


def hourly(paid: int, seconds: float) -> float:
    """Dollars an hour that so many cents are for so many seconds; NaN for no time."""
    return paid * 36 / seconds if seconds > 0 else float("nan")


def fee(platform: PlatformName, cents: int, places: int, crowd: CrowdSpec) -> int:
    """Cents that a platform takes for one payment of so many cents; `places` is how many workers a batch is for.

    Raises StudyError where Prolific's share is not said.
    """
    if platform == "mturk":
        share = MTURK_FEE if places < 10 else MTURK_FEE_FROM_TEN
        return max(1, _up(share * cents))
    if crowd.prolific_fee is None:
        raise StudyError("crowd.prolific_fee is not said; add the share that your contract has, such as 0.333")
    return _up(Decimal(str(crowd.prolific_fee)) * cents)


def cost(platform: PlatformName, reward_cents: int, places: int, crowd: CrowdSpec) -> int:
    """Cents for a batch by so many workers, with fees."""
    return places * (reward_cents + fee(platform, reward_cents, places, crowd))


def dollars(cents: int) -> str:
    """As people read it: $1,234.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}${abs(cents) // 100:,}.{abs(cents) % 100:02d}"


def _seconds(transformation: str, pay: PaySpec) -> Decimal:
    return Decimal(str(pay.seconds)) * (1 + Decimal(str(pay.extra.get(transformation, 0.0))))


def _hourly(pay: PaySpec) -> Decimal:
    return Decimal(str(pay.hourly))


def _cents(amount: Decimal) -> int:
    """Dollars in cents, rounded up."""
    return _up(amount * 100)


def _up(cents: Decimal) -> int:
    return int(cents.to_integral_value(ROUND_CEILING))

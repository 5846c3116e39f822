"""Pay, in whole cents, against arithmetic that is shown."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from annotation.crowd import pay
from annotation.crowd.platform import platform_class
from plumbline.errors import StudyError
from plumbline.study.crowd import CrowdSpec, PaySpec

PAY = PaySpec()


def test_a_pair_is_twenty_cents_and_longer_texts_more() -> None:
    # $24.00 an hour at 30 s a pair: 24 x 30 / 3600 = $0.20 (HTEB, Ethical Considerations)
    assert pay.reward(["paraphrasing"] * 50, PAY) == 1000
    assert pay.reward(["expansion"] * 50, PAY) == 1250  # 25% more
    assert pay.reward(["summarised_expansion"] * 50, PAY) == 1100  # 10% more
    assert pay.reward(["paraphrasing", "expansion", "summarised_expansion"], PAY) == 67  # 20 + 25 + 22
    # PTEB: $0.25 at 25 s is $36 an hour
    assert pay.reward(["paraphrasing"], PaySpec(hourly=36, seconds=25)) == 25


def test_rounding_is_in_the_workers_favour() -> None:
    # $24.00 an hour at 25 s: 16 2/3 cents a pair; three pairs are 50, one is 17
    assert pay.reward(["paraphrasing"], PaySpec(seconds=25)) == 17
    assert pay.reward(["paraphrasing"] * 3, PaySpec(seconds=25)) == 50


def test_fees_are_twenty_percent_and_forty_from_the_tenth_worker() -> None:
    crowd = CrowdSpec(fee=0.333)
    assert platform_class("mturk").cost(1000, 3, crowd) == 3 * 1200
    assert platform_class("mturk").cost(1000, 9, crowd) == 9 * 1200
    assert platform_class("mturk").cost(1000, 10, crowd) == 10 * 1400
    assert platform_class("mturk").fee(1, 3, crowd) == 1  # a fifth of a cent: the least fee is a cent
    assert platform_class("prolific").fee(1000, 3, crowd) == 333
    with pytest.raises(StudyError, match=r"crowd.fee is missing: add Prolific's share"):
        platform_class("prolific").fee(1000, 3, CrowdSpec())


def test_the_bonus_is_what_the_median_worker_lacks_to_the_hourly_wage() -> None:
    # A batch of $10.00 pays 25 min at $24 an hour; the median of 20, 30 and 55 min is 30: $12.00 were fair
    assert pay.owed_bonus(1000, [20 * 60, 30 * 60, 55 * 60], PAY) == 200
    assert pay.owed_bonus(1000, [20 * 60, 25 * 60, 55 * 60], PAY) == 0  # exactly fair
    assert pay.owed_bonus(1000, [], PAY) == 0
    # With a bonus of $2.00 the median worker has $12.00 for half an hour
    assert pay.hourly(1200, 30 * 60) == pytest.approx(24.0)
    assert math.isnan(pay.hourly(1200, 0))


@given(
    st.integers(1, 5000),
    st.lists(st.integers(1, 7200), min_size=1, max_size=9),
    st.floats(24, 100).map(lambda x: round(x, 2)),
)
def test_with_its_bonus_the_median_worker_never_earns_less_than_the_wage(
    paid: int, seconds: list[int], hourly: float
) -> None:
    spec = PaySpec(hourly=hourly)
    bonus = pay.owed_bonus(paid, seconds, spec)
    middle = statistics.median(seconds)
    assert pay.hourly(paid + bonus, middle) >= hourly - 1e-9
    if bonus:
        assert pay.hourly(paid + bonus - 1, math.ceil(middle)) < hourly  # and not a cent more


def test_half_a_second_of_the_median_is_paid() -> None:
    assert pay.owed_bonus(100, [300, 301], PAY) == 101  # 300.5 s are 301: $2.0067 at $24 an hour
    assert pay.owed_bonus(100, [300.2], PAY) == 101


def test_a_rehearsal_takes_the_fee_of_the_study() -> None:
    for name in ("rehearsal", "link", "prolific"):
        assert platform_class(name).fee(1000, 3, CrowdSpec(fee=0.333)) == 333
    nameless = (CrowdSpec(), CrowdSpec(platform="prolific"), CrowdSpec(platform="rehearsal"))
    assert [platform_class("rehearsal").fee(1000, 3, crowd) for crowd in nameless] == [0, 0, 0]
    assert platform_class("rehearsal").fee(1000, 3, CrowdSpec(platform="mturk", fee=0.333)) == 200  # MTurk's own
    assert platform_class("link").fee(1000, 3, CrowdSpec()) == 0


def test_countries_are_checked_and_known_for_the_languages_of_pteb() -> None:
    crowd = CrowdSpec(countries={"eng": ("US", "GB")})
    assert crowd.countries_of("en") == ("US", "GB")
    assert crowd.countries_of("tr") == ("TR",)  # PTEB, appendix B
    with pytest.raises(StudyError, match=r"crowd.countries has no countries for 'da'"):
        crowd.countries_of("da")
    with pytest.raises(ValidationError, match=r"no country has the code 'UK'.*the United Kingdom is GB"):
        CrowdSpec(countries={"en": ("UK",)})
    with pytest.raises(ValidationError, match="no country has the code 'USA'"):
        CrowdSpec(countries={"en": ("USA",)})


def test_less_than_is_fair_is_said() -> None:
    assert PaySpec(hourly=9.5).below_fair == "The pay is less than HTEB's $24 an hour."
    assert PaySpec().below_fair == ""


def test_dollars_as_people_read_them() -> None:
    assert [pay.dollars(cents) for cents in (5, 123450, -207)] == ["$0.05", "$1,234.50", "-$2.07"]

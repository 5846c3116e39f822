"""What is asked of the database: the same statements on SQLite and PostgreSQL, and no name or value in their text."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from servers import PACKAGE, ended, interpreter

from argilla_embedded.arrivals import Arrivals

PROGRAM = r"""
import json, sys
from uuid import UUID
from argilla_embedded.imports import leave_out_the_unused
leave_out_the_unused()
from argilla_server.models import User
from argilla_server.search_engine import (
    MetadataFilterScope, RangeFilter, RecordFilterScope, ResponseFilterScope, SuggestionFilterScope, TermsFilter)
from sqlalchemy.dialects import postgresql, sqlite
from argilla_embedded import arrivals, predicates, reading

odd, dataset, user = "odd' \" -- name", UUID(int=1), User(id=UUID(int=2))
def record(name): return RecordFilterScope(property=name)
leaves = [
    TermsFilter(ResponseFilterScope(property="status", user=user), ["pending", "submitted", odd]),
    TermsFilter(ResponseFilterScope(property="status"), ["draft"]),
    TermsFilter(ResponseFilterScope(property="status"), [odd]),
    TermsFilter(record("status"), ["completed", odd]), TermsFilter(record("status"), [odd]),
    TermsFilter(record("id"), [str(dataset), odd]), TermsFilter(record("external_id"), [odd, "\0", "\ud800"]),
    TermsFilter(record("inserted_at"), ["2026-01-31"]),
    RangeFilter(record("updated_at"), ge="2026-01-31", le="2026-01-31T12:00:00Z"),
    RangeFilter(record("inserted_at"), le="2026-01-31"),
]
statements = [reading.moments(dataset, [predicates.condition(leaf)]) for leaf in leaves] + [
    reading.moments(dataset, ()), reading.answers(dataset, user.id, True), reading.answers(dataset, None, False),
    reading.hints(dataset, odd),
]
unsaid = [predicates.condition(TermsFilter(scope, [odd])) for scope in (
    MetadataFilterScope(odd), SuggestionFilterScope(odd, "value"), ResponseFilterScope(question=odd, user=user))]
ids = [UUID(int=i).hex for i in range(50)]
json.dump({
    "sqlite": [str(one.compile(dialect=sqlite.dialect())) for one in statements],
    "postgresql": [str(one.compile(dialect=postgresql.dialect())) for one in statements],
    "unsaid": unsaid,
    "dates": [str(predicates.date(one, end)) for one, end in (
        ("2026-01-31T12:00:00+02:00", False), ("2026-01-31", True), ("2026-01-31", False), (0, False))],
    "shuffled": [arrivals.shuffled(ids, UUID(int=i)) for i in (1, 1, 2)],
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Any:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE),
                 "ARGILLA_HOME_PATH": str(tmp_path_factory.mktemp("argilla"))}  # fmt: skip
    done = ended([interpreter(), "-c", PROGRAM], variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_statements_are_the_same_for_both_databases_and_hold_no_values(said: Any) -> None:
    assert len(said["sqlite"]) == len(said["postgresql"]) == 14
    for sqlite, postgresql in zip(said["sqlite"], said["postgresql"], strict=True):
        assert "odd" not in sqlite and "odd" not in postgresql and "json" not in postgresql.lower()
        assert sqlite.split("WHERE")[0].replace('"', "").split() == postgresql.split("WHERE")[0].split()
    assert said["unsaid"] == [None, None, None]  # decided on the values, in Python


def test_moments_are_read_in_utc_and_a_last_day_is_whole(said: Any) -> None:
    assert said["dates"] == ["2026-01-31 10:00:00", "2026-01-31 23:59:59.999999", "2026-01-31 00:00:00",
                             "1970-01-01 00:00:00"]  # fmt: skip


def test_each_user_has_a_shuffle_of_everything(said: Any) -> None:
    first, again, other = said["shuffled"]
    assert first == again != other and sorted(first) == sorted(other) != first


@pytest.mark.parametrize("sizes", [(number,) for number in [3, 5, *range(6, 61)]] + [(6, 9), (30, 3, 12)])
def test_equal_records_lie_a_third_of_what_came_together_apart(sizes: tuple[int, ...]) -> None:
    """With one record that comes twice, some, and as many as can."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for share in (1 / 60, 1 / 5, 1 / 2):
        rows, parts = [], []
        for number, size in enumerate(sizes):
            twice, came = max(int(size * share), 1), start + timedelta(hours=number)
            texts = [f"{number} {index}" for index in range(size - twice)]
            part = [(UUID(int=(number + 1) * 1000 + index).hex, came, {"text": text})
                    for index, text in enumerate([*texts, *texts[:twice]])]  # fmt: skip
            rows += part
            parts.append({id_: fields["text"] for id_, _, fields in part})
        for user in range(5):
            order = Arrivals.of(rows).own_order(UUID(int=user + 1))
            assert sorted(order) == sorted(id_ for id_, *_ in rows)
            for part in parts:
                own, order = order[: len(part)], order[len(part) :]
                assert set(own) == set(part)  # what came first is shown first
                texts = [part[id_] for id_ in own]
                for place, text in enumerate(texts):
                    assert text not in texts[place + 1 : place + 1 + -(-len(part) // 3)], (sizes, share)


def test_the_rest_of_an_upload_that_was_cut_off_belongs_to_it() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [(UUID(int=1000 + n).hex, start + timedelta(hours=n // 15), {"text": n % 25}) for n in range(30)]
    for user in range(5):
        order = Arrivals.of(rows).own_order(UUID(int=user + 1))
        assert min(abs(order.index(rows[n][0]) - order.index(rows[n + 25][0])) - 1 for n in range(5)) >= 10


@pytest.mark.parametrize("same", [False, True])
def test_groups_stay_whole_and_equal_ones_apart_each_user_with_orders_of_their_own(same: bool) -> None:
    """Of nine groups of two, three come twice; all outputs of a group may be the same, and one came later."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows, groups = [], {}
    for n in range(24):
        group, id_ = n // 2, UUID(int=1000 + n).hex
        rows.append((id_, start + timedelta(hours=n == 23), {"text": f"{group % 9} {0 if same else n % 2}"}))
        groups[id_] = UUID(int=10 + group).hex
    arrived, firsts, orders = Arrivals.of(rows), set[tuple[str, bool]](), set[tuple[str, ...]]()
    for user in range(20):
        order = arrived.own_order(UUID(int=user + 1), groups)
        assert sorted(order) == sorted(groups)
        pages = [groups[id_] for id_ in order[::2]]
        assert pages == [groups[id_] for id_ in order[1::2]] and len(set(pages)) == 12
        for n in range(3):
            once, again = pages.index(UUID(int=10 + n).hex), pages.index(UUID(int=10 + n + 9).hex)
            assert abs(once - again) - 1 >= 4
        firsts |= {(page, one < other) for page, one, other in zip(pages, order[::2], order[1::2], strict=True)}
        orders.add(tuple(pages))
    assert len(firsts) == 24 and len(orders) == 20

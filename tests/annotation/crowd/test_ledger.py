"""The ledger: intentions before calls, outcomes after them, nothing twice, modes apart."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from annotation.campaign.offering import Mode, ledgers
from annotation.crowd.ledger import Ledger, Operation
from annotation.crowd.platform import RefusedError, UncertainError
from plumbline.errors import DataError


def opened(tmp_path: Path, mode: Mode = "sandbox") -> Ledger:
    return Ledger(tmp_path / "crowd.sqlite", "demo", "mturk", mode)


def never(one: Operation) -> str | None:
    raise AssertionError(f"{one} was looked for")


class Bank:
    """Where payments take effect, or not."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.trouble: Exception | None = None
        self.after = False

    def do(self, one: Operation) -> str:
        if self.trouble is not None and not self.after:
            raise self.trouble
        self.paid.append(one.token)
        if self.trouble is not None:
            raise self.trouble
        return "paid"

    def find(self, one: Operation) -> str | None:
        return "paid" if one.token in self.paid else None


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    bank = Bank()
    for _ in range(3):
        with opened(tmp_path) as ledger:
            assert ledger.once(("bonus", "A1", 100), {"why": "time"}, never, bank.do) == "paid"
            assert ledger.spent() == 100
    assert len(bank.paid) == 1


@pytest.mark.parametrize("after", [False, True])
def test_an_uncertain_call_is_looked_for_and_then_done_with_the_same_token(tmp_path: Path, after: bool) -> None:
    bank = Bank()
    bank.trouble, bank.after = UncertainError("the connection broke"), after
    with opened(tmp_path) as ledger:
        with pytest.raises(UncertainError):
            ledger.once(("bonus", "A1", 100), {}, never, bank.do)
        assert ledger.spent() == 100  # it may have been paid
        token = ledger.operations()[0].token
    bank.trouble = None
    with opened(tmp_path) as ledger:
        assert ledger.once(("bonus", "A1", 100), {}, bank.find, bank.do) == "paid"
    assert bank.paid == [token]


def test_a_refused_call_costs_nothing_and_may_be_meant_again(tmp_path: Path) -> None:
    bank = Bank()
    bank.trouble = RefusedError("the balance is too low")
    with opened(tmp_path) as ledger:
        with pytest.raises(RefusedError):
            ledger.once(("bonus", "A1", 100), {}, never, bank.do)
        assert ledger.spent() == 0
        (refused,) = ledger.operations()
        assert (refused.state, refused.outcome) == ("refused", "the balance is too low")
        bank.trouble = None
        ledger.once(("bonus", "A1", 120), {}, never, bank.do)  # nothing to look for: it had no effect
        assert ledger.spent() == 120


def test_a_rejection_gives_back_only_when_it_is_done(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        ledger.once(("post", "b1", 300), {}, never, lambda _: "H1")
        with pytest.raises(UncertainError):
            ledger.once(("reject", "A1", -100), {}, never, _uncertain)
        assert ledger.spent() == 300
        ledger.once(("reject", "A1", -100), {}, lambda _: None, lambda _: "rejected")
        assert ledger.spent() == 200


def _uncertain(_: Operation) -> str:
    raise UncertainError("no answer")


def test_sandbox_and_live_share_nothing(tmp_path: Path) -> None:
    tokens = []
    for mode in ("sandbox", "live"):
        with opened(tmp_path, mode) as ledger:
            assert ledger.operations() == []
            ledger.once(("bonus", "A1", 100), {}, never, lambda one: tokens.append(one.token) or "paid")
            assert ledger.spent() == 100
    assert len(set(tokens)) == 2


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with opened(tmp_path):
        assert (tmp_path / "crowd.sqlite").stat().st_mode & 0o777 == 0o600
    assert ledgers(tmp_path / "crowd.sqlite") == []
    assert ledgers(tmp_path / "none.sqlite") == []


def test_another_version_another_study_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path):
        pass
    with pytest.raises(DataError, match="the ledger belongs to study 'demo', not to 'other'"):
        Ledger(tmp_path / "crowd.sqlite", "other", "mturk", "live")
    with sqlite3.connect(tmp_path / "crowd.sqlite") as database:
        database.execute("PRAGMA user_version = 9")
    with pytest.raises(
        DataError, match="the ledger has version 9, but this program reads version 1; use the program that wrote it"
    ):
        opened(tmp_path)
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database at all, but long enough to look like one" * 20)
    with pytest.raises(DataError, match="cannot be read as a ledger .* without it nobody knows what was paid"):
        Ledger(broken, "demo", "mturk", "live")


def _die_in_the_call(path: Path) -> None:
    def die(_: Operation) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    Ledger(path, "demo", "mturk", "live").once(("bonus", "A1", 100), {"cents": 100}, never, die)


def test_an_intention_survives_kill_9(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_die_in_the_call, args=(tmp_path / "crowd.sqlite",))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with opened(tmp_path, "live") as ledger:
        (left,) = ledger.operations("bonus")
        assert (left.state, left.subject, left.cents, left.details) == ("intended", "A1", 100, {"cents": 100})
        assert ledger.spent() == 100

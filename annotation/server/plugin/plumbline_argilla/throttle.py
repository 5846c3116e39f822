"""How long a password's check waits after wrong ones.

Waiting, not locking: nobody can keep an account's owner out by guessing. Three wrong passwords are free; then each
further one for an account from the same address waits twice as long, up to 8 seconds. Who guesses at many accounts
from one address, or at one account from many addresses, waits as well; but an address from which the account has been
signed in to does not wait for what others do. A quarter of an hour without a wrong password, or a right one, ends it.
Addresses of this machine stand for nobody: behind a proxy that does not pass them on, everybody has the same.
"""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

FREE, MOST_SECONDS = 3, 8.0
FREE_OF_MANY, MANY_SECONDS = 20, 4.0  #: for one account from everywhere, or one address on all accounts
FORGET_SECONDS = 900.0
KEPT = 20_000  #: accounts and addresses; the oldest are forgotten first
AT_ONCE, AT_ONCE_OF_ADDRESS = 4, 16  #: checks that may wait
HERE = frozenset({"", "127.0.0.1", "::1"})

Key = tuple[str, ...]
T = TypeVar("T")


@dataclass
class Throttle:
    """Wrong passwords, remembered for a while; `now` is a clock in seconds."""

    now: Callable[[], float]
    wrong: OrderedDict[Key, tuple[int, float]] = field(default_factory=OrderedDict)  #: number, time of the last
    trusted: OrderedDict[Key, None] = field(default_factory=OrderedDict)  #: account and address that signed in
    waiting: Counter[Key] = field(default_factory=Counter)

    def seconds(self, account: str, address: str) -> float:
        """How long the next check of this account's password waits."""
        after = self.number(("pair", account, address)) - FREE
        found = [min(MOST_SECONDS, 2.0 ** min(after, 10)) if after >= 0 else 0.0]
        if ("pair", account, address) not in self.trusted and self.number(("account", account)) >= FREE_OF_MANY:
            found.append(MANY_SECONDS)
        if address not in HERE and self.number(("address", address)) >= FREE_OF_MANY:
            found.append(MANY_SECONDS)
        return max(found)

    def number(self, key: Key) -> int:
        """Wrong passwords that are not forgotten yet."""
        number, last = self.wrong.get(key, (0, 0.0))
        return number if self.now() - last < FORGET_SECONDS else 0

    def note(self, account: str, address: str, right: bool) -> None:
        """Remember how a check ended."""
        pair: Key = ("pair", account, address)
        if right:
            self.wrong.pop(pair, None)
            if address not in HERE:
                keep(self.trusted, pair, None)
            return
        for key in (pair, ("account", account), ("address", address)):
            keep(self.wrong, key, (self.number(key) + 1, self.now()))

    @contextlib.contextmanager
    def place(self, account: str, address: str) -> Iterator[bool]:
        """A place among the checks that wait; whether there is one."""
        keys: dict[Key, int] = {("pair", account, address): AT_ONCE}
        if address not in HERE:
            keys["address", address] = AT_ONCE_OF_ADDRESS
        free = all(self.waiting[key] < most for key, most in keys.items())
        self.waiting.update(keys.keys() if free else ())
        try:
            yield free
        finally:
            self.waiting.subtract(keys.keys() if free else ())
            for key in keys:
                if self.waiting[key] <= 0:
                    del self.waiting[key]


def keep(kept: OrderedDict[Key, T], key: Key, value: T) -> None:
    """Remember as the newest, and forget the oldest where there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)

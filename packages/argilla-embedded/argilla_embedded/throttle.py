"""The wait before a password's check after wrong ones.

Accounts are slowed and not locked, so nobody can keep an account's owner out by guessing. Three wrong passwords are
free; then each further one for an account from the same address waits twice as long, up to 8 seconds. Guesses at many
accounts from one address, or at one account from many addresses, wait as well; but an address from which the account
has signed in does not wait because of others. A quarter of an hour without a wrong password, or a right one, ends the
wait. Addresses of this machine are ignored: behind a proxy that does not forward addresses, everybody has the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from .recent import Key, Recent

FREE, MOST_SECONDS = 3, 8.0
FREE_OF_MANY, MANY_SECONDS = 20, 4.0  #: for one account from everywhere, or one address on all accounts
FORGET_SECONDS = 900.0
TRUST_SECONDS = 365 * 86400.0
AT_ONCE, AT_ONCE_OF_ADDRESS = 4, 16  #: checks that may wait
WAITING_SECONDS = 60.0  #: a check that took longer was cut off with its process
HERE = frozenset({"", "127.0.0.1", "::1"})


@dataclass
class Throttle:
    """Wrong passwords, remembered for a while, in all processes of the server that share `recent`."""

    recent: Recent

    def seconds(self, account: str, address: str) -> float:
        """Return the seconds that the next check of this account's password waits."""
        after = self.number(("pair", account, address)) - FREE
        found = [min(MOST_SECONDS, 2.0 ** min(after, 10)) if after >= 0 else 0.0]
        trusted = self.recent.number(("trusted", account, address), TRUST_SECONDS)
        if not trusted and self.number(("account", account)) >= FREE_OF_MANY:
            found.append(MANY_SECONDS)
        if address not in HERE and self.number(("address", address)) >= FREE_OF_MANY:
            found.append(MANY_SECONDS)
        return max(found)

    def number(self, key: Key) -> int:
        """Return the number of wrong passwords that are still remembered."""
        return self.recent.number(("wrong", *key), FORGET_SECONDS)

    def note(self, account: str, address: str, right: bool) -> None:
        """Remember the result of a check."""
        pair: Key = ("pair", account, address)
        with self.recent.changing():
            if right:
                self.recent.put(("wrong", *pair), 0)
                if address not in HERE:
                    self.recent.put(("trusted", account, address), 1)
                return
            for key in (pair, ("account", account), ("address", address)):
                self.recent.put(("wrong", *key), self.number(key) + 1)

    @contextlib.contextmanager
    def place(self, account: str, address: str) -> Iterator[bool]:
        """Take a place among the waiting checks inside the block; yields whether one was free."""
        keys: dict[Key, int] = {("waiting", "pair", account, address): AT_ONCE}
        if address not in HERE:
            keys["waiting", "address", address] = AT_ONCE_OF_ADDRESS
        with self.recent.changing():
            free = all(self.recent.number(key, WAITING_SECONDS) < most for key, most in keys.items())
            for key in keys if free else ():
                self.recent.put(key, self.recent.number(key, WAITING_SECONDS) + 1)
        try:
            yield free
        finally:
            with self.recent.changing():
                for key in keys if free else ():
                    self.recent.put(key, max(0, self.recent.number(key, WAITING_SECONDS) - 1))

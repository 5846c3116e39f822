"""The generator's replies: what is wanted, what is there, and what is left to ask.

Resume is a set difference. Replies to other messages, or of another generator, cost money, so they are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generation.instructions.calls import Call
from generation.instructions.records import REPLIES, Reply
from plumbline.journal import Journal
from plumbline.manifest import refuse_replaced_table, write_kept_table
from plumbline.store import read_records
from plumbline.study import Study

COMMAND = "generation.instructions"


class Replies:
    """A study's replies; with `again` failed calls are asked again, unanswered ones always are."""

    def __init__(self, study: Study, calls: Sequence[Call], *, again: bool = False) -> None:
        self.calls, self._study = calls, study
        self.journal = Journal((study.scratch / REPLIES).with_suffix(".journal"))
        self._again = {"failed", "unanswered"} if again else {"unanswered"}
        self._rows = {row.key: row for row in self._read()}

    def todo(self) -> list[Call]:
        """The calls that are left."""
        return [call for call in self.calls if call.key not in self._rows or self._rows[call.key].status in self._again]

    def add(self, reply: Reply) -> None:
        """Note a reply; it is in the journal when this returns."""
        self.journal.append(reply)
        self._rows[reply.key] = reply

    def settle(self) -> None:
        """Turn the journal into the table: wanted replies first, in the calls' order."""
        if (self._study.folder / REPLIES).exists() and not self.journal.path.exists():
            return
        wanted = [call.key for call in self.calls if call.key in self._rows]
        order = [*wanted, *(key for key in self._rows if key not in set(wanted))]
        write_kept_table(self._study, REPLIES, [self._rows[key] for key in order], Reply)
        self.journal.remove()

    def of(self, call: Call) -> Reply | None:
        """The reply to a call."""
        return self._rows.get(call.key)

    def _read(self) -> Iterator[Reply]:
        """What is there; later ones go before earlier ones."""
        command = self._study.command(COMMAND)
        if (self._study.folder / REPLIES).exists():
            refuse_replaced_table(self._study, REPLIES, command)
            yield from read_records(self._study.folder / REPLIES, Reply, command)
        yield from (Reply.model_validate(row) for _, row in self.journal.lines(Reply))

"""Each user's own order of a dataset's records: shuffled, and records with equal fields far apart.

Records that came at different times, such as the blocks of a campaign, keep the order of their times: who has answered
all that was there goes on with what came then, so each part by itself is in order.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

ONE_PART_SECONDS = 60  #: between two records that came together, such as two requests of one upload
MIXERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  #: of splitmix64


@dataclass(frozen=True)
class Arrivals:
    """The records of a dataset as they came."""

    parts: Sequence[Sequence[str]]  #: records that came together, the oldest first
    equals: Mapping[str, str]  #: of two records with equal fields, each by the other
    alike: Mapping[str, str]  #: records whose fields an earlier one has, each with the first of these

    @classmethod
    def of(cls, rows: Iterable[tuple[str, datetime, Any]]) -> Arrivals:
        """Read records' ids, times of insertion and fields, in the order in which they came."""
        ids, starts, before = list[str](), list[int](), None
        places, equals, alike = dict[bytes, int](), dict[str, str](), dict[str, str]()
        for place, (id_, came, fields) in enumerate(rows):
            if before is None or (came - before).total_seconds() > ONE_PART_SECONDS:
                starts.append(place)
            ids.append(id_)
            first = places.setdefault(hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).digest(), place)
            alike |= {id_: ids[first]} if first != place else {}
            if first != place and ids[first] not in equals:
                equals |= {ids[first]: id_, id_: ids[first]}
                while starts[-1] > first:  # the rest of an upload that was cut off
                    starts.pop()
            before = came
        return cls([ids[start:end] for start, end in itertools.pairwise([*starts, len(ids)])], equals, alike)

    def own_order(self, user_id: UUID, groups: Mapping[str, str] | None = None) -> list[str]:
        """Return all records in a user's order.

        With `groups`, named by 32 hexadecimal digits too, those of one group come one after another: groups are
        shuffled as records are otherwise, and each group's records. All of a group came when its first one did.
        """
        if groups is None:
            return [id_ for part in self.parts for id_ in apart(shuffled(part, user_id), self.equals)]
        members = defaultdict[str, list[str]](list)
        for id_ in shuffled([id_ for part in self.parts for id_ in part], user_id):
            members[groups[id_]].append(id_)
        return [id_ for name in self.of_groups(groups).own_order(user_id) for id_ in members[name]]

    def of_groups(self, groups: Mapping[str, str]) -> Arrivals:
        """Return the groups as they came; equal ones have equal records."""
        contents, parts = dict[str, list[str]](), list[list[str]]()
        for part in self.parts:
            parts.append(list(dict.fromkeys(groups[id_] for id_ in part if groups[id_] not in contents)))
            for id_ in part:
                contents.setdefault(groups[id_], []).append(self.alike.get(id_, id_))
        equals, first = dict[str, str](), dict[tuple[str, ...], str]()
        for name, records in contents.items():
            same = first.setdefault(tuple(sorted(records)), name)
            equals |= {same: name, name: same} if same not in equals and same != name else {}
        return Arrivals(parts, equals, {})


def apart(ids: Sequence[str], equals: Mapping[str, str]) -> list[str]:
    """Move the first of two equal records into the first third, and the second into the last; others keep their order.

    Where a third cannot hold them, all first ones come first and all second ones last, in one order. So at least a
    third of all records lies between, but where these are one record twice, or two.
    """
    place = {id_: index for index, id_ in enumerate(ids)}
    first_of = {id_: equals[id_] for id_ in ids if place.get(equals.get(id_, ""), len(ids)) < place[id_]}
    firsts = set(first_of.values())
    others = [id_ for id_ in ids if id_ not in first_of and id_ not in firsts]
    more = max(len(ids) // 3 - len(firsts), 0) if firsts else 0
    begin, middle, end = others[:more], others[more : len(others) - more], others[len(others) - more :]
    last = sorted([*first_of, *end], key=lambda id_: place[id_ if more else first_of[id_]])
    return [*sorted([*firsts, *begin], key=place.__getitem__), *middle, *last]


def shuffled(ids: Sequence[str], user_id: UUID) -> list[str]:
    """The ids in an order of its own for each user: by a hash of user and record, the same in every process."""
    if len(ids) < 2:
        return list(ids)
    halves = np.frombuffer(bytes.fromhex("".join(ids)), ">u8").astype(np.uint64).reshape(-1, 2)
    seed = np.frombuffer(user_id.bytes, ">u8").astype(np.uint64)
    keys = mixed(halves[:, 1] ^ mixed(halves[:, 0] ^ mixed(seed[:1]) ^ seed[1]))
    return [ids[i] for i in np.lexsort([halves[:, 1], halves[:, 0], keys]).tolist()]


def mixed(numbers: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A hash of each number (splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * MIXERS[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * MIXERS[1]
    return numbers ^ (numbers >> np.uint64(31))

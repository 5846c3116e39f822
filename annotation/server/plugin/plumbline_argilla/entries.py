"""The order of a list's entries, and of the records, that is drawn for each annotator.

The metadata of a dataset and of each of its records ask for it, with a seed. The records keep one order; for each
annotator the entries, and the questions or labels about them, change places on the way out. An answer names the entry
and never its place, so it means the same to every reader, and on servers that draw no orders.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from argilla_server.api.handlers.v1.datasets.questions import list_dataset_questions
from argilla_server.api.policies.v1 import DatasetPolicy, authorize
from argilla_server.api.schemas.v1.questions import Questions
from argilla_server.database import get_async_db
from argilla_server.enums import UserRole
from argilla_server.models import Dataset, Record, Response, User
from argilla_server.security import auth
from fastapi import Depends, Security
from sqlalchemy import event, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm.attributes import set_committed_value

from argilla_embedded.arrivals import Arrivals
from argilla_embedded.privacy import own_user_id
from argilla_embedded.setup import GroupName, Setup

PATH = "/datasets/{dataset_id}"
#: The drawing's key in metadata: for a dataset {seed, number, questions, options, groups}, for a record {seed, field,
#: lengths} and {group}, which names records shown together.
MARK = "drawn"
BESIDE, RIGHT = "answering", "right"  # fields of Plumbline's records, and of those in training alone


def apply(setup: Setup) -> None:
    """Give each annotator their own orders, and let owners read them. Call it once."""
    for moment in ("load", "refresh"):
        event.listen(Record, moment, in_own_order)
        event.listen(Record, moment, without_name)
    setup.grouping = grouping
    api = setup.api
    [replaced] = [route for route in api.router.routes if getattr(route, "name", "") == "list_dataset_questions"]
    api.router.routes.remove(replaced)  # must be removed, or Argilla's own route would answer before ours
    api.add_api_route(f"{PATH}/questions", questions, response_model=Questions)
    api.add_api_route(f"{PATH}/orders", orders)


def grouping(metadata: Mapping[str, Any]) -> GroupName | None:
    """Return the function that names a record's group, by the dataset's metadata; None without groups."""
    return group_of if metadata.get(MARK, {}).get("groups") else None


def group_of(record_id: str, metadata: Mapping[str, Any] | None) -> str:
    """Return the name of a record's group, 32 hexadecimal digits; its own id if it has no group."""
    return str((metadata or {}).get(MARK, {}).get("group") or record_id)


def order_of(seed: str, user_id: UUID, number: int) -> list[int]:
    """Return the entry at each place for a user, both from 0; all orders are equally likely."""
    keys = [hashlib.sha256(f"{seed}\0{user_id}\0{entry}".encode()).digest() for entry in range(number)]
    return sorted(range(number), key=keys.__getitem__)


def in_own_order(record: Record, _: object, loaded: Collection[str] | None = None) -> None:
    """Put the entries of an annotator's copy of a record into the annotator's order; it is never written back.

    `loaded` are the attributes that a refresh read, None for all: other fields have their order already.
    """
    if loaded is not None and "fields" not in loaded:
        return
    user_id, state = own_user_id(), record.__dict__
    mark = (state.get("metadata_") or {}).get(MARK, {}) if user_id is not None else {}
    if user_id is None or "lengths" not in mark or "fields" not in state:
        return
    entries = entries_of(state["fields"][mark["field"]], mark["lengths"])
    order = order_of(mark["seed"], user_id, len(entries))
    text = numbered([entries[place] for place in order])
    set_committed_value(record, "fields", {**state["fields"], mark["field"]: text})


def without_name(record: Record, *_: object) -> None:
    """Hide names from annotators, who could compute them from texts that they see, but not those of a control.

    These are a pair's id and its group's name. In training, whose pairs are all known, the rating page finds the right
    answers by the id.
    """
    fields, metadata = record.__dict__.get("fields") or {}, record.__dict__.get("metadata_") or {}
    if own_user_id() is not None and BESIDE in fields and RIGHT not in fields:
        set_committed_value(record, "external_id", None)
        if "group" in metadata.get(MARK, {}):
            rest = {name: value for name, value in metadata.items() if name != MARK}
            set_committed_value(record, "metadata_", rest)


def entries_of(text: str, lengths: Sequence[int]) -> list[str]:
    """Split a numbered list by its entries' lengths, because their text may look like a number, too."""
    found, start = list[str](), 0
    for number, length in enumerate(lengths, 1):
        start += len(f"{number}. ")
        found.append(text[start : start + length])
        start += length + len("\n\n")
    if numbered(found) != text:
        raise ValueError("a record's list does not match its metadata")
    return found


def numbered(entries: Sequence[str]) -> str:
    """Number the entries, as `plumbline.fields.plain` writes them."""
    return "\n\n".join(f"{number}. {entry}" for number, entry in enumerate(entries, 1))


async def questions(
    db: Annotated[AsyncSession, Depends(get_async_db)],
    dataset_id: UUID,
    current_user: Annotated[User, Security(auth.get_current_user)],
) -> Any:
    """Return Argilla's list of questions; for an annotator, those about entries are in the annotator's order."""
    found = await list_dataset_questions(db=db, dataset_id=dataset_id, current_user=current_user)
    dataset = await Dataset.get(db, dataset_id)
    mark = (dataset.metadata_ or {}).get(MARK, {})
    if not mark.get("number") or not current_user.is_annotator:
        return found
    return Questions(items=rearranged(found.items, mark, order_of(mark["seed"], current_user.id, mark["number"])))


def rearranged(items: Sequence[Any], mark: Mapping[str, Any], order: Sequence[int]) -> list[Any]:
    """Put the questions and labels about single entries into an order.

    The words of a place, such as "passage 2", stay at the place: only the entry behind them changes.
    """
    found = [relabelled(one, mark["options"], order) for one in items]
    places = {one.name: place for place, one in enumerate(found)}
    if not mark["questions"]:
        return found
    asked = [places[name] for name in mark["questions"][: len(order)]]
    moved = list(found)
    for at, entry in zip(asked, order, strict=True):
        words = {"title": found[at].title, "description": found[at].description}
        moved[at] = found[asked[entry]].model_copy(update=words)
    return moved


def relabelled(question: Any, options: Sequence[str], order: Sequence[int]) -> Any:
    """Put the labels of a question that name the entries into an order; return other questions as they are."""
    there = {one.value: at for at, one in enumerate(getattr(question.settings, "options", None) or [])}
    if not options or not set(options) <= set(there):
        return question
    before = question.settings.options
    moved, asked = list(before), [there[name] for name in options[: len(order)]]
    for at, entry in zip(asked, order, strict=True):
        moved[at] = before[at].model_copy(update={"value": options[entry]})
    return question.model_copy(update={"settings": question.settings.model_copy(update={"options": moved})})


async def orders(
    db: Annotated[AsyncSession, Depends(get_async_db)],
    dataset_id: UUID,
    current_user: Annotated[User, Security(auth.get_current_user)],
) -> dict[str, Any]:
    """Return the orders of each annotator who answered: the entries in order, and each answered record's turn.

    A record in a group also has its place there. All numbers are from 1; a dataset without drawn orders has none.
    """
    dataset = await Dataset.get_or_raise(db, dataset_id)
    await authorize(current_user, DatasetPolicy.list_records_with_all_responses(dataset))
    mark = (dataset.metadata_ or {}).get(MARK)
    if mark is None:
        return {"orders": {}, "turns": {}, "places": {}}
    every = select(Record.id, Record.inserted_at, Record.fields, Record.external_id, Record.metadata_)
    every = every.where(Record.dataset_id == dataset_id).order_by(Record.inserted_at, Record.id)
    rows = [(record_id.hex, *row) for record_id, *row in await db.execute(every)]
    arrived, names = Arrivals.of(row[:3] for row in rows), {record: name for record, _, _, name, _ in rows}
    groups = {record: group_of(record, metadata) for record, *_, metadata in rows} if mark.get("groups") else None
    answered = defaultdict[tuple[UUID, UserRole], set[str]](set)
    given = select(Response.user_id, User.role, Response.record_id).join(Record).where(Record.dataset_id == dataset_id)
    for user_id, role, record_id in await db.execute(given.join(User, Response.user_id == User.id)):
        answered[user_id, role].add(record_id.hex)
    found: dict[str, dict[str, Any]] = {"orders": {}, "turns": {}, "places": {}}
    for (user_id, role), own in answered.items():
        queue, reader = arrived.own_order(user_id, groups), str(user_id)
        found["turns"][reader] = {names[one]: turn for turn, one in enumerate(queue, 1) if one in own}
        if groups is not None:
            found["places"][reader] = {names[one]: place for one, place in places(queue, groups).items() if one in own}
        if number := mark.get("number", 0):  # owners and admins see the records' own order
            order = order_of(mark["seed"], user_id, number) if role == UserRole.annotator else range(number)
            found["orders"][reader] = [entry + 1 for entry in order]
    return found


def places(queue: Sequence[str], groups: Mapping[str, str]) -> dict[str, int]:
    """Return the place of each record in its group, from 1."""
    found, met = dict[str, int](), Counter[str]()
    for record in queue:
        met[groups[record]] += 1
        found[record] = met[groups[record]]
    return found

"""Rows of files as items and answers: equal texts are one item, whoever rates it, and nothing is lost.

Rows that cannot be placed are listed with the reason. One id with two texts, or one key with two values, is an error
that shows both rows, since it is unknown which was rated.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotation.imports.columns import Proposal, left_out, without_role
from annotation.imports.preferences import shows_two, side_of
from annotation.imports.tables import CellTable, UnplacedRow, coded, merged, renamed
from annotation.imports.times import as_seconds, as_times, month_unsure
from annotation.questions.wordings import packaged
from plumbline.errors import DataError
from plumbline.words import count, count_words, printable_line

TEXTS = ("original", "output", "text")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_STATUSES = packaged("imports/words.yaml")["statuses"]
# Roles that another file's facts have.
_OF_ITEMS = (*TEXTS, "truth", "language", "beside", "compared", "system", "item")
_KEYS = ("item", "system", "question", *TEXTS)  # roles of columns by which another file's facts are joined
_UNNAMED = ("the file does not name raters, so each answer to an item counts as a different rater's, and the number of"
            " raters is unknown")  # fmt: skip
_PER_FILE = " (add --raters-per-file if each file is from one rater)"
_TOGETHER = (["line", "rater"], ["submission"], ["rater"], ["rater", "at"])  # what one submission's answers share
JOINT = " | "  # between the parts of an item's id


@dataclass(frozen=True)
class Material:
    """The content of files: items, a row each, and answers about them, a row each."""

    items: pd.DataFrame  #: system, item, original, output, text, language, truth and `beside:NAME`
    answers: pd.DataFrame  #: item (row of `items`), rater, question, cell, at, seconds, comment, status, file, line
    listed: tuple[UnplacedRow, ...]
    notes: tuple[str, ...]
    has_raters: bool  #: whether the files name raters
    lower: frozenset[str] = frozenset()  #: questions where less is better
    without_role: tuple[str, ...] = ()  #: columns that are left out because nothing shows what they are
    shows_two: bool = False  #: whether a row shows two outputs of which one may be chosen


def match(
    tables: Sequence[CellTable],
    proposals: Sequence[Proposal],
    *,
    raters_per_file: bool = False,
    wanted: Collection[str] = (),
) -> Material:
    """Return the items and answers of tables whose columns are as proposed. Raises DataError for ambiguous rows.

    With `raters_per_file` an id that occurs in two files is two people's. Questions about raters themselves are left
    out, unless they are `wanted`.
    """
    both = list(zip(tables, proposals, strict=True))
    rated = [(table, proposal) for table, proposal in both if proposal.has_answers]
    lookups = [(table, proposal) for table, proposal in both if not proposal.has_answers]
    notes, listed = list[str](), [entry for table in tables for entry in table.listed]
    parts = []
    for (table, proposal), file in zip(rated, _file_names([table.path for table, _ in rated]), strict=True):
        frame = _rows(table, proposal, file, wanted, notes)
        for lookup in lookups:
            frame = _with_lookup(frame, table, proposal, *lookup, notes)
        parts.append(_with_file(frame) if raters_per_file else frame)
    notes += [] if raters_per_file else _shared_raters(parts)
    frame = _stacked(parts) if len(parts) > 1 else parts[0]
    frame = _in_one_case(frame[~frame["left_out"]].reset_index(drop=True), notes)
    frame = by_side(_without_empty(frame, listed))
    _refuse_originals_alone(frame, rated)
    items, numbers = _items(frame)
    frame = frame.assign(item=numbers, seconds=_of_answers(frame.assign(item=numbers), notes))
    columns = ["rater", "question", "cell", "at", "seconds", "comment", "status", "file", "line", "item"]
    has_raters = not frame["unnamed"].any()
    notes += [] if has_raters else [_UNNAMED + (_PER_FILE if len(rated) > 1 else "")]
    return Material(
        items, frame[columns], tuple(listed), tuple(dict.fromkeys(notes)), has_raters,
        lower=frozenset(itertools.chain.from_iterable(table.lower for table in tables)),
        without_role=tuple(dict.fromkeys(itertools.chain.from_iterable(map(without_role, proposals)))),
        shows_two=any(shows_two(proposal.roles) for proposal in proposals),
    )  # fmt: skip


def _file_names(paths: Sequence[Path]) -> list[str]:
    """Return the files' names, with as many folders as tell apart files of one name."""
    for parts in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [path.name for path in paths]


def _of_answers(frame: pd.DataFrame, notes: list[str]) -> np.ndarray:
    """Return the seconds that each answer took; those of a whole submission are no answer's, and are left out.

    They are a whole submission's if a row of the file has one time for several items, or if each submission, each
    rater, or each rater at one moment, has one time for all of several items.
    """
    seconds, timed = frame["seconds"].to_numpy(float), frame[frame["seconds"].notna()]
    whole = np.zeros(len(timed), bool)
    for keys in _TOGETHER if len(timed) else ():
        groups = timed.groupby(["file", *keys], observed=True)
        several = (groups["item"].transform("max") > groups["item"].transform("min")).to_numpy()
        times = timed["seconds"][several]
        one_each = (times == groups["seconds"].transform("min")[several]).all()
        if one_each and ("line" in keys or times.nunique() > 1):
            whole |= several
    if whole.any():
        notes.append(
            f"{count(int(whole.sum()), 'answer has', 'answers have')} only the time of a whole submission with several"
            " items, which is no answer's time and is left out"
        )
    return np.where(frame.index.isin(timed.index[whole]), np.nan, seconds)


def _refuse_originals_alone(frame: pd.DataFrame, rated: Sequence[tuple[CellTable, Proposal]]) -> None:
    """Raise DataError if rows have an original, but neither the text that was made of it nor an id."""
    compares = any(proposal.named("compared") for _, proposal in rated)
    others = frame[["output", "text", "item"]].notna().any(axis=None)
    if frame["original"].notna().any() and not others and not compares:
        table, proposal = next((table, proposal) for table, proposal in rated if proposal.first("original"))
        name = proposal.first("original")
        raise DataError(f"{table.path}: {name!r} is the original, but no column holds the text that was rated; name it"
                        f" with --column output=NAME, or with --column text={name} if that is {name!r}")  # fmt: skip


def _in_one_case(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the rows with one spelling of raters, and of questions, that differ in capitals only."""
    raters, questions, names, titles = frame["rater"].array, frame["question"].array, dict[str, str](), dict[str, str]()
    people = renamed(raters, [names.setdefault(rater.casefold(), rater) for rater in raters.categories])
    if merged := len(raters.categories) - len(people.categories):
        differ = count(merged, "rater id differs", "rater ids differ")
        notes.append(f"{differ} from another only in capitals; such ids count as the same person")
    spelt = [titles.setdefault(title.casefold(), title) for title in questions.categories]
    return frame.assign(rater=people, question=renamed(questions, spelt))


def _with_file(frame: pd.DataFrame) -> pd.DataFrame:
    """Put the file's name before raters' ids; a file without raters counts as one rater's."""
    array, name = frame["rater"].array, frame["file"].iloc[0]
    if frame["unnamed"].any():
        return frame.assign(rater=coded(np.zeros(len(frame), np.int8), [name]), unnamed=False)
    return frame.assign(rater=coded(array.codes, [f"{name} {rater}" for rater in array.categories]))


def _shared_raters(parts: Sequence[pd.DataFrame]) -> list[str]:
    """Return a line if raters' ids occur in several files."""
    names = [set(part["rater"].array.categories) for part in parts]
    shared = {name for first, second in itertools.combinations(names, 2) for name in first & second}
    if not shared:
        return []
    occur = count(len(shared), "rater id occurs", "rater ids occur")
    return [f"{occur} in several files; each counts as one person (if this is wrong, add --raters-per-file)"]


def _rows(table: CellTable, proposal: Proposal, file: str, wanted: Collection[str], notes: list[str]) -> pd.DataFrame:
    """Return a table's answers, a row each, with the facts on item and rater."""
    cells, single, number = table.cells, proposal.first, len(table.cells)
    base = pd.DataFrame({"file": _constant(file, number), "line": table.lines})
    for role in (*TEXTS, "language", "truth", "comment"):
        column = single(role)
        base[role] = _texts(cells[column], notes) if column and role in TEXTS else _plain(cells, column)
    base["system"], base["item"] = _joined(cells, proposal.named("system")), _joined(cells, proposal.named("item"))
    for column in proposal.named("beside"):
        base[f"beside:{column}"] = _texts(cells[column], notes)
    for column in proposal.named("compared"):
        base[f"compared:{column}"] = _plain(cells, column)
    base["submission"] = _plain(cells, single("submission"))
    base["status"] = _statuses(cells, single("status"), notes)
    base["at"], base["seconds"] = _times(table, proposal, notes)
    base["unnamed"] = not single("rater")
    base["rater"] = _plain(cells, single("rater")) if single("rater") else _each_row(file, number)
    base["left_out"] = False
    if single("question") and not proposal.has_wide_answers:
        questions = _plain(cells, single("question"))
        without = [title not in wanted and bool(left_out(title)) for title in questions.categories]
        base["left_out"] = np.array([*without, False])[questions.codes]
        notes += [
            f"{title!r} {left_out(title)}, so its answers are left out (--scale {title}=labels brings them in)"
            for title, kept_out in zip(questions.categories, without, strict=True) if kept_out
        ]  # fmt: skip
        return base.assign(question=questions, cell=_plain(cells, single("answer")))
    questions = _plain(cells, single("question")) if single("question") else _constant("rating", number)
    return _stacked(
        [
            base.assign(question=_constant(question, number) if question else questions, cell=cells[column], **facts)
            for column, question, facts in _wide_answers(table, proposal, file)
        ]
    )


def _wide_answers(table: CellTable, proposal: Proposal, file: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each column of answers of a table: its question, if it names one, and what it says of rater or item."""
    number = len(table.cells)
    by_rater, by_item = (*proposal.named("by_rater"), *proposal.named("slot")), proposal.named("by_item")
    for column in by_rater:
        question, rater = proposal.raters.get(column, ("", column))
        unnamed = proposal.roles[column] == "slot"
        ids = _each_row(f"{file} {rater}", number) if unnamed else _constant(rater, number)
        yield column, question, {"rater": ids, "unnamed": unnamed}
    for column in () if by_rater else by_item:
        match = re.fullmatch(r"(?s)(?P<question>.*?)\s*\[(?P<item>.+)\]\s*", column)
        question, item = (match["question"], match["item"]) if match else ("", column)
        role = "text" if match or count_words(item) > 2 else "item"
        yield column, question, {role: _constant(item, number)}
    for column in () if by_rater or by_item else proposal.named("answer"):
        yield column, column, {"left_out": table.copies[column]} if column in table.copies else {}


def _each_row(text: str, number: int) -> pd.Categorical[Any]:
    return coded(np.arange(number, dtype=np.int32), [f"{text} {row}" for row in range(number)])


def _constant(text: str, number: int) -> pd.Categorical[Any]:
    return coded(np.zeros(number, np.int8), [text])


def _stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate frames; columns of categories stay so, and a column that a frame lacks is empty there."""
    names = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    columns: dict[str, Any] = {}
    for name in names:
        parts = [frame[name] if name in frame else pd.Series(_nothing(len(frame))) for frame in frames]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(parts)
        else:
            columns[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns)


def _nothing(number: int) -> pd.Categorical[Any]:
    return coded(np.full(number, -1, np.int8), [])


def _plain(cells: pd.DataFrame, column: str) -> pd.Categorical[Any]:
    if not column:
        return _nothing(len(cells))
    column_cells: pd.Categorical[Any] = cells[column].array
    return column_cells


def _texts(column: pd.Series, notes: list[str]) -> pd.Categorical[Any]:
    """Return a column of texts with HTML's entities replaced by their characters."""
    texts = list(column.cat.categories)
    with_entities = sum(bool(_ENTITY.search(text)) for text in texts)
    if with_entities:
        notes.append(f"{column.name}: HTML entities in {count(with_entities, 'text')} are replaced by their characters")
        texts = [html.unescape(text).replace("\xa0", " ").strip() for text in texts]
    if with_tags := sum(bool(_TAG.search(text)) for text in texts):
        notes.append(f"{column.name}: HTML tags in {count(with_tags, 'text')} are kept")
    return renamed(column.array, texts)


def _joined(cells: pd.DataFrame, columns: Sequence[str]) -> pd.Categorical[Any]:
    """Join several columns to one id."""
    if len(columns) < 2:
        return _plain(cells, columns[0] if columns else "")
    numbers, first = group_numbers([cells[column].array for column in columns])
    rows = cells[list(columns)].astype(object).fillna("").iloc[first]
    texts = [JOINT.join(row) for row in rows.itertuples(index=False, name=None)]
    return coded(numbers, texts)


def group_numbers(columns: Sequence[pd.Categorical[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each row, and the first row of each number; rows equal in all columns share a number."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        numbers = pd.factorize(numbers * (len(column.categories) + 1) + column.codes + 1)[0].astype(np.int64)
    _, first = np.unique(numbers, return_index=True)
    return numbers, first


def _statuses(cells: pd.DataFrame, column: str, notes: list[str]) -> pd.Categorical[Any]:
    names = ["submitted", "draft", "discarded"]
    if not column:
        return coded(np.zeros(len(cells), np.int8), names)
    array = cells[column].array
    words = [text.casefold().replace("_", " ") for text in array.categories]
    codes = np.array(
        [2 if word in _STATUSES["discarded"] else 1 if word in _STATUSES["draft"] else 0 for word in words] + [0],
        np.int8,
    )
    counts = {text: names[code] for text, word, code in zip(array.categories, words, codes, strict=False)
              if word not in ("", names[code])}  # fmt: skip
    if counts:
        notes.append(f"{column}: {', '.join(f'{text} counts as {name}' for text, name in counts.items())}")
    return coded(codes[array.codes], names)


def _times(table: CellTable, proposal: Proposal, notes: list[str]) -> tuple[pd.Series, np.ndarray]:
    """Return when each row was answered, and how long that took."""
    nothing = pd.Series(pd.NaT, index=range(len(table.cells)), dtype="datetime64[us, UTC]")
    column, started = proposal.first("time"), proposal.first("started")
    at = _moments(table, column, notes) if column else nothing
    seconds = np.full(len(at), np.nan)
    if name := proposal.first("seconds"):
        array = table.cells[name].array
        values = as_seconds(list(array.categories))
        if re.search(r"(?i)(^|[^a-z])ms$|milli", name):
            values = values / 1000
        if re.search(r"(?i)minutes|(^|[^a-z])mins?$", name):
            values = values * 60
        seconds = np.append(values, np.nan)[array.codes]
    elif started and column:
        seconds = (at - _moments(table, started, notes)).dt.total_seconds().to_numpy()
        seconds = np.where(seconds > 0, seconds, np.nan)
    return at, seconds


def _moments(table: CellTable, column: str, notes: list[str]) -> pd.Series:
    array = table.cells[column].array
    moments = as_times(texts := table.values(column), f"{table.path}, {column}")
    if unknown := int(np.append(moments.isna(), False)[array.codes].sum()):
        notes.append(
            f"{column}: {count(unknown, 'cell is not a time and counts', 'cells are not times and count')} as unknown"
        )
    if month_unsure(texts):
        notes.append(
            f"{column}: the order of day and month is unclear in times such as {texts[0]}; the first"
            " number is read as the month (if that is wrong, write times as 2026-03-01)"
        )
    return moments.reindex(range(len(moments) + 1)).take(array.codes).reset_index(drop=True)


def _with_lookup(
    frame: pd.DataFrame, table: CellTable, proposal: Proposal, lookup: CellTable, of_lookup: Proposal, notes: list[str]
) -> pd.DataFrame:
    """Join another file's facts about items to the rows, by the columns that both files have."""
    keys = _shared_keys(proposal, lookup, of_lookup)
    if not keys:
        return _with_people(frame, table, proposal, lookup, of_lookup, notes)
    numbers, first = group_numbers([lookup.cells[name].array for name in keys])
    found_at = _positions(table, lookup, keys, first)
    at = np.tile(found_at, len(frame) // max(len(found_at), 1))
    facts = {name: role for name, role in of_lookup.roles.items() if role in _OF_ITEMS and name not in keys}
    for name, role in facts.items():
        _refuse_ambiguous(lookup, numbers, keys, name)
        array = _texts(lookup.cells[name], notes) if role in (*TEXTS, "beside") else lookup.cells[name].array
        brought = coded(np.append(array.codes[first], -1)[at], list(array.categories))
        target = f"{role}:{name}" if role in ("beside", "compared") else role
        frame[target] = _filled(frame, target, brought, lookup, name, notes)
    if unmatched := int((found_at < 0).sum()):
        notes.append(f"{lookup.path.name}: has no row for {count(unmatched, 'row')} of {table.path.name}")
    return frame


def _shared_keys(proposal: Proposal, lookup: CellTable, of_lookup: Proposal) -> list[str]:
    """Return the columns by which another file's facts are joined: texts only where ids do not tell its rows apart."""
    used = {name for name, role in of_lookup.roles.items() if role != "unused"}
    keys = {name: role for name, role in proposal.roles.items() if name in used and role in _KEYS}
    ids, texts = ([name for name, role in keys.items() if (role in TEXTS) == of_texts] for of_texts in (False, True))
    if "item" not in keys.values() or not texts:
        return list(keys)
    numbers, _ = group_numbers([lookup.cells[name].array for name in ids])
    return list(keys) if len(_contradicting(numbers, [lookup.cells[name].array for name in texts])) else ids


def _filled(
    frame: pd.DataFrame, target: str, brought: pd.Categorical[Any], lookup: CellTable, name: str, notes: list[str]
) -> pd.Categorical[Any]:
    """Return a column with another file's values where it has none. Raises DataError where both have different ones."""
    mine: pd.Categorical[Any] = frame[target].array if target in frame else _nothing(len(frame))
    if (mine.codes < 0).all():
        return brought
    if target in ("item", "system"):
        notes.append(f"{lookup.path.name}: {name!r} is not used, since the rows with answers have their own {target}")
        return mine
    texts, others = (np.array([*column.categories, ""], object)[column.codes] for column in (mine, brought))
    if len(different := np.flatnonzero((texts != "") & (others != "") & (texts != others))):
        row = different[0]
        first, second = (repr(printable_line(str(column[row]))[:60]) for column in (texts, others))
        raise DataError(
            f"{frame['file'].iloc[row]}, line {frame['line'].iloc[row]}: the {target} is {first}, but {second} in"
            f" {name!r} of {lookup.path.name} (so for {count(len(different), 'answer')}); set one of these columns to"
            f" unused (--column 'unused={lookup.path.name}:{name}')"
        )
    codes, index = pd.factorize(np.where(texts == "", others, texts))
    return merged(codes.astype(np.int32), list(index))


def _with_people(
    frame: pd.DataFrame, table: CellTable, proposal: Proposal, lookup: CellTable, of_lookup: Proposal, notes: list[str]
) -> pd.DataFrame:
    """Add to each row whether its submission counts by a list of them; if unlisted, whether any of its rater's does."""
    names = {role: of_lookup.first(role) for role in ("submission", "rater") if proposal.first(role)}
    shared = {role: name for role, name in names.items() if name}
    if not shared:
        raise DataError(f"{lookup.path}: has no answers and shares no column of items with {table.path.name}; rename"
                        " its columns to match")  # fmt: skip
    statuses = _statuses(lookup.cells, of_lookup.first("status"), notes).astype(object)
    brought = np.full(len(frame), "", object)
    for role, column in shared.items():
        ids = lookup.cells[column].astype(str).str.casefold().to_numpy()
        counting, others = set(ids[statuses == "submitted"]), set(ids[statuses != "submitted"])
        by_id = dict(zip(ids, statuses, strict=True)) | dict.fromkeys(counting, "submitted")
        array = frame[role].array
        of_rows = np.array([*(by_id.get(name.casefold(), "") for name in array.categories), ""], object)[array.codes]
        open_ids = {array.categories[code].casefold() for code in np.unique(array.codes[brought == ""]) if code >= 0}
        if role == "rater" and (mixed := len(counting & others & open_ids)):
            notes.append(
                f"{lookup.path.name}: {count(mixed, 'rater has', 'raters have')} submissions that count and others that"
                " do not, and no column says whose an answer is, so all answers of theirs count (name the column with"
                " --column submission=NAME)"
            )
        brought = np.where(brought == "", of_rows, brought)
    if unknown := int(frame["rater"][brought == ""].nunique()):
        notes.append(f"{lookup.path.name}: has no row for {count(unknown, 'rater')}")
    brought = np.where((brought == "") | (brought == "submitted"), frame["status"].astype(object), brought)
    return frame.assign(status=pd.Categorical(brought, frame["status"].cat.categories))


def _positions(table: CellTable, lookup: CellTable, keys: Sequence[str], first: np.ndarray) -> np.ndarray:
    """Return for each row of a table the number of its keys in a lookup; -1 if they are not there."""
    mine = [table.cells[name].astype(object).fillna("").to_numpy() for name in keys]
    theirs = [lookup.cells[name].astype(object).fillna("").to_numpy()[first] for name in keys]
    index = {row: number for number, row in enumerate(zip(*theirs, strict=True))}
    return np.fromiter((index.get(row, -1) for row in zip(*mine, strict=True)), np.int64, len(table.cells))


def _refuse_ambiguous(table: CellTable, numbers: np.ndarray, keys: Sequence[str], column: str) -> None:
    """Raise DataError if rows with the same keys, which share a number, have two values of a column."""
    rows = _contradicting(numbers, [table.cells[column].array])
    if not len(rows):
        return
    first, second = (
        f"line {table.lines[row]}: {printable_line(str(table.cells[column].iloc[row]))[:80]!r}" for row in rows
    )
    about = ", ".join(f"{name} {table.cells[name].iloc[rows[0]]!r:.40}" for name in keys)
    raise DataError(f"{table.path}: {about} has two values of {column!r}; {first}; {second}; correct the file, or name"
                    " the column that tells them apart with --column item=NAME")  # fmt: skip


def _contradicting(numbers: np.ndarray, columns: Sequence[pd.Categorical[Any]]) -> np.ndarray:
    """Return two rows that share a number, from 0 on, and differ in a column; none if there are none."""
    names = list(map(str, range(int(numbers.max(initial=-1)) + 1)))
    _, rows = group_numbers([coded(numbers, names), *columns])
    of_rows = pd.Series(numbers[rows])
    twice = of_rows[of_rows.duplicated(keep=False) & (of_rows >= 0)]
    return rows[(of_rows == twice.iloc[0]).to_numpy()][:2] if len(twice) else rows[:0]


def _without_empty(frame: pd.DataFrame, listed: list[UnplacedRow]) -> pd.DataFrame:
    """Return the rows with an answer about an item, and list the others."""
    cell = frame["cell"]
    about = np.zeros(len(frame), bool)
    for name in (*TEXTS, "item"):
        about |= frame[name].notna().to_numpy()
    has_pairs = bool(frame["original"].notna().any() and frame["output"].notna().any())
    reasons = {
        "no answer": cell.isna().to_numpy(),
        "no rater": frame["rater"].isna().to_numpy(),
        "no item": ~about,
        "no question": frame["question"].isna().to_numpy(),
        "no original": (frame["original"].isna() & has_pairs).to_numpy(),
        "no output": (frame["output"].isna() & has_pairs).to_numpy(),
    }
    if not has_pairs and (text_columns := [name for name in ("text", "output") if frame[name].notna().any()]):
        reasons["no text"] = frame[text_columns[0]].isna().to_numpy()
    stays = np.ones(len(frame), bool)
    for name in frame.columns[frame.columns.str.startswith("compared:")]:
        reasons["no system"] = reasons.get("no system", ~stays) | frame[name].isna().to_numpy()
    for reason, absent in reasons.items():
        mask = absent & stays
        if mask.any():
            places = frame.loc[mask, ["file", "line"]].itertuples(index=False, name=None)
            questions = frame.loc[mask, "question"].astype(object).fillna("")
            for (file, line), question in zip(places, questions, strict=True):
                listed.append(UnplacedRow(str(file), int(line), reason, str(question)))
            stays &= ~mask
    return frame if stays.all() else frame[stays].reset_index(drop=True)


def by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Return answers that name the preferred system as its side's letter, unless systems have names of sides (A, 2)."""
    columns = [name for name in frame.columns if name.startswith("compared:")]
    names = {str(name) for column in columns for name in frame[column].cat.categories}
    if not columns or any(side_of(name) is not None for name in names):
        return frame
    cell, answer = frame["cell"].astype(object), frame["cell"].astype(str).str.casefold()
    for side, column in enumerate(columns):
        cell = cell.where(frame[column].astype(str).str.casefold() != answer, chr(ord("A") + side))
    codes, texts = pd.factorize(cell)
    return frame.assign(cell=coded(codes.astype(np.int32), list(texts)))


def _items(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the items, and each row's item number: items are told apart by texts if there are any, else by ids."""
    texts = [name for name in TEXTS if frame[name].notna().any()]
    compared = [name for name in frame.columns if name.startswith("compared:")]
    context = [*(name for name in frame.columns if name.startswith("beside:")), *compared]
    has_ids = frame["item"].notna().any()
    keys = ["system", *(["item"] if has_ids else []), *texts]
    if texts and has_ids:
        _refuse_two_texts(frame, texts)
    if compared or (texts and context and not {"original", "output"} <= set(texts)):
        keys += context
    numbers, first = group_numbers([frame[name].array for name in keys])
    if context and not set(context) <= set(keys):
        frame = frame.drop(columns=context)
        context = []
    columns = ["system", "item", *TEXTS, "language", "truth", *context, "file", "line"]
    return frame[columns].iloc[first].reset_index(drop=True), numbers


def _refuse_two_texts(frame: pd.DataFrame, texts: Sequence[str]) -> None:
    """Raise DataError if one id of a system has two texts."""
    ids, _ = group_numbers([frame["system"].array, frame["item"].array])
    rows = _contradicting(np.where(frame["item"].notna(), ids, -1), [frame[name].array for name in texts])
    if len(rows):
        quotes = list[str]()
        for row in rows:
            cells = frame.iloc[row]
            text = " / ".join(printable_line(str(cells[name]))[:60] for name in texts)
            quotes.append(f"{cells['file']}, line {cells['line']}: {text!r}")
        item = frame["item"].iloc[rows[0]]
        raise DataError(
            f"item {item!r} has two texts; {'; '.join(quotes)}; correct one of them, or name the column that tells them"
            " apart with --column system=NAME or --column item=NAME"
        )


def without_repeats(answers: pd.DataFrame, listed: list[UnplacedRow]) -> pd.DataFrame:
    """Return each rater's first answer that counts to each question about each item; others are listed."""
    keys = ["item", "rater", "question"]
    order = answers.sort_values("at", kind="stable", na_position="last") if answers["at"].notna().any() else answers
    if (uncounted := order["status"] != "submitted").any():
        order = pd.concat([order[~uncounted], order[uncounted]])
    again = order.duplicated(keys)
    if not again.any():
        return answers
    first = order[~again].set_index(keys)[["line", "file", "cell"]]
    repeats = order[again]
    earlier = first.loc[pd.MultiIndex.from_frame(repeats[keys])]
    for (file, line, question, cell), (line_before, file_before, cell_before) in zip(
        repeats[["file", "line", "question", "cell"]].itertuples(index=False, name=None),
        earlier.itertuples(index=False, name=None),
        strict=True,
    ):
        repeated = "the same answer" if cell == cell_before else "another answer"
        location = f"line {line_before}" + (f" of {file_before}" if file != file_before else "")
        listed.append(
            UnplacedRow(
                str(file), int(line), f"{repeated} of the same rater to the same item is in {location}", str(question)
            )
        )
    return order[~again].sort_index()

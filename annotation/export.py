"""Ratings for a paper or another tool: CSV files, an Excel file, or a folder for `datasets.load_dataset`.

`answers` has a row for each rater and pair and a column for each question, the form that `collect --csv` takes, here
and in another study on the same pairs. `ratings` and `pairs` have every column of the records. Texts that raters wrote
themselves may hold names, so they are left out unless they are asked for.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from annotation.campaign.counting import counting_ratings, dated_words, untimed
from annotation.campaign.records import ITEM_IDS, RATINGS, CampaignData
from annotation.crowd.summary import whole_tally
from annotation.csv_answers import KINDS
from annotation.questions.question import Question
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preregistration import asked_rubric
from annotation.verdicts.tables import SIMULATED
from plumbline.errors import DataError
from plumbline.exhibits.table import csv_bytes, write_files
from plumbline.exhibits.templates import markdown
from plumbline.importing import openpyxl
from plumbline.records import SOURCES, Pair, Rating, Record
from plumbline.resources import missing_package
from plumbline.statistics.agreement import number_of_raters
from plumbline.study import Study
from plumbline.study.subject import ItemNames
from plumbline.words import readable

FOLDER = "export"
FormName = Literal["csv", "xlsx", "datasets"]
_OF_SUBJECTS = ("fields", "expected", "queue")  # columns of other subjects than pairs
_MORE = {
    "control": "kind of check on the rater (positive, negative, known, repeat); empty for the sample",
    "source": "source of the answer: argilla, mturk, prolific, link, simulated, REHEARSAL (a made-up crowd), or file"
    " (without the file's name, which may name a person)",
    "submitted_at": "when the answer last changed, UTC; empty if its file has no times",
    "item_id": "the item's id in the imported files",
    "withdrawn": "the reason why a person withdrew the pair; empty if nobody did",
    "counts": "whether the rating counts in the verdicts: submitted, on a pair of the sample, and not excluded,"
    " withdrawn or surplus",
}
_OF_ANSWERS = {
    "pair": "the pair's `pair_id`, also of controls and repeats",
    "rater": "the rater's `rater_id`",
    "item_id": _MORE["item_id"],
    "item_kind": "pair (of the sample), control or repeat",
    "time": "when the answer last changed, UTC",
    "comment": "what the rater wrote beside the answer",
    "counts": "whether the answer's ratings count, as in `ratings`",
}


def export(study: Study, *, form: FormName = "csv", licence: str = "", words: bool = False) -> Path:
    """Write the answers, ratings and pairs with a codebook to the study's `export/`; returns the folder.

    `form` is `csv` (`answers.csv`, `ratings.csv`, `pairs.csv`, `codebook.md`), `xlsx` (`xlsx/ratings.xlsx`, a sheet for
    each table) or `datasets` (`datasets/`, Parquet files that `datasets.load_dataset` reads). `licence` is a line for
    the codebook; `words` adds comments and answers in words. Raises DataError where nobody has answered yet, and for
    more rows than a sheet can hold; StudyError without the package that writes Excel files.
    """
    records = Evidence(study)
    collected, rubric = records.collected, asked_rubric(records)
    if collected.ratings.empty:
        raise DataError(f"{study.folder}: there are no ratings yet; run `{RATINGS.command(study)}` first")
    free = [question.name for question in rubric.asked() if question.free_text]  # may contain names
    ratings = _ratings(collected, study.raters.per_pair, [] if words else free, words=words)
    pairs = collected.pairs.astype(dict.fromkeys(collected.pairs.select_dtypes("category"), str))
    pairs = pairs.drop(columns=[name for name in _OF_SUBJECTS if (pairs[name] == "").all()])
    pairs["withdrawn"] = [collected.withdrawn.get(pair_id, "") for pair_id in pairs["pair_id"]]
    _add_item_ids(study, ratings, pairs)
    answers, sample = _answers(ratings, rubric.asked(), words=words), pairs["control"] == ""
    kinds = pairs.set_index("pair_id")["control"].map(lambda control: KINDS.get(control, "control"))
    answers.insert(list(answers).index("rater"), "item_kind", answers["pair"].map(kinds))
    questions = [question for question in rubric.questions if question.name in answers]
    titles = {question.name: question.title["en"] for question in questions}
    names = ["pair", "rater", *(question.name for question in questions)]
    names += [name for name in ("time", "comment") if name in answers]
    facts = {
        "study": study,
        "licence": licence.strip() or "none is named: ask those who ran the study before you share this",
        "simulated": SIMULATED if ratings["simulated"].any() else "",
        "sample": int(sample.sum()),
        "withdrawn": int((sample & (pairs["withdrawn"] != "")).sum()),
        "controls": int((~sample).sum()),
        "asked": whole_tally(records).kinds.total() if records.offered else int((~sample).sum()),
        "raters": number_of_raters(ratings["rater_id"]),
        "answers": len(answers),
        "ratings": len(ratings),
        "counting": int(ratings["counts"].sum()),
        "dated": dated_words(collected.plain_ratings),
        "rubric": rubric.name,
        "questions": questions,
        "columns": shlex.quote(",".join(f"{name}={name}" for name in names)),
        "tables": {
            "answers": {str(name): (titles | _OF_ANSWERS)[str(name)] for name in answers},
            "ratings": _meanings(ratings, Rating, study.called),
            "pairs": _meanings(pairs, Pair, study.called),
        },
    }
    tables = {"answers": answers, "ratings": ratings, "pairs": pairs}
    folder = study.folder / FOLDER / ("" if form == "csv" else form)
    write_files(folder, _FORMS[form](tables, facts))
    return folder


def _csv(tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> dict[str, bytes]:
    files = {f"{name}.csv": csv_bytes(frame) for name, frame in tables.items()}
    return files | {"codebook.md": _codebook(facts, files)}


def _datasets(tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """Return Parquet files, and the card by which `load_dataset` finds the tables."""
    files = {f"{name}.parquet": frame.to_parquet(index=False) for name, frame in tables.items()}
    configs = "".join(f"- config_name: {name}\n  data_files: {name}.parquet\n" for name in tables)
    return files | {"README.md": f"---\nconfigs:\n{configs}---\n\n".encode() + _codebook(facts, files)}


def _codebook(facts: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    hashes = {name: sha256(content).hexdigest() for name, content in files.items()}
    return markdown("annotation/codebook.jinja", {**facts, "hashes": hashes}).encode()


_MOST_ROWS, _LONGEST = 2**20 - 1, 2**15 - 1  # rows below the head, and characters of a cell, that Excel can hold
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")  # Excel reads `_x0041_` as the letter A


def _xlsx(tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """Return an Excel file with a sheet for each table and one for the codebook; texts are never formulas."""
    described = [("study", name, str(facts[name] or "no")) for name in ("licence", "simulated")]
    described += [
        ("question", question.name, "; ".join([question.title["en"], *_answer_words(question)]))
        for question in facts["questions"]
    ]
    described += [(name, *row) for name, meanings in facts["tables"].items() for row in meanings.items()]
    sheets = {**tables, "codebook": pd.DataFrame(described, columns=["table", "column", "meaning"])}
    if long := next((name for name, frame in sheets.items() if len(frame) > _MOST_ROWS), ""):
        raise DataError(f"{long}: {len(sheets[long]):,} rows are more than Excel can hold; export with --form csv")
    texts = (value for frame in sheets.values() for value in frame.to_numpy().flat if isinstance(value, str))
    if (longest := max(map(len, texts), default=0)) > _LONGEST:
        raise DataError(f"a text of {longest:,} characters is longer than Excel's cells can be; export with --form csv")
    try:
        book = openpyxl.Workbook(write_only=True)
        for name, frame in sheets.items():
            sheet = book.create_sheet(name)
            sheet.freeze_panes = "A2"
            for row in [tuple(frame.columns), *frame.itertuples(index=False)]:
                sheet.append([_excel_cell(sheet, value) for value in row])
    except ModuleNotFoundError as error:
        raise missing_package("an Excel file", error, "excel") from None
    file = io.BytesIO()
    book.save(file)
    return {"ratings.xlsx": file.getvalue()}


def _answer_words(question: Any) -> list[str]:
    return [f"{answer}: {words['en']}" for answer, words in (question.points or question.labels).items()]


def _excel_cell(sheet: Any, value: Any) -> Any:
    """Return a value as Excel holds it: times and words as texts, which no letter makes a formula."""
    if pd.isna(value):
        return None
    if isinstance(value, (bool, int, float, np.generic)):
        return value.item() if isinstance(value, np.generic) else value
    cell = openpyxl.cell.WriteOnlyCell(sheet, value=_ESCAPE.sub("_x005F_", readable(str(value))))
    cell.data_type = "s"
    return cell


_FORMS: Mapping[FormName, Callable[[Mapping[str, pd.DataFrame], Mapping[str, Any]], dict[str, bytes]]] = {
    "csv": _csv,
    "xlsx": _xlsx,
    "datasets": _datasets,
}


def _ratings(collected: CampaignData, per_pair: int, left_out: Sequence[str], *, words: bool) -> pd.DataFrame:
    """All ratings, of controls too, with whether they count."""
    plain = collected.plain_ratings
    counting = counting_ratings(collected.sample_ratings, per_pair).index
    kinds = collected.pairs.astype({"control": str}).set_index("pair_id")["control"]
    sources = plain["source"].where(plain["source"].isin(SOURCES), "file")
    table = plain.assign(
        source=sources,
        submitted_at=plain["submitted_at"].mask(untimed(plain)),
        control=plain["pair_id"].map(kinds).fillna(""),
        counts=plain.index.isin(counting),
    )
    table = table[~table["question"].isin(left_out)]
    return table if words else table.drop(columns="comment")


def _add_item_ids(study: Study, *tables: pd.DataFrame) -> None:
    """Give tables of the texts that an import wrote, also in another study, the files' own ids of items."""
    files = dict.fromkeys(path.parent / ITEM_IDS for path in study.data_files())
    if parts := [pd.read_parquet(io.BytesIO(file.read_bytes())) for file in files if file.exists()]:
        by_pair = pd.concat(parts).drop_duplicates("pair_id").set_index("pair_id")["item_id"]
        for table in tables:
            table.insert(1, "item_id", table["pair_id"].astype(str).map(by_pair).fillna(""))


def _answers(ratings: pd.DataFrame, questions: Sequence[Question], *, words: bool) -> pd.DataFrame:
    """Return the submitted answers, a row for each rater and pair, a column for each question in `ratings`."""
    submitted = ratings[ratings["status"] == "submitted"]
    answer = submitted["value"].astype("string").fillna("") + submitted["answer"].astype("string")
    keys = ["pair_id", *(["item_id"] if "item_id" in ratings else []), "rater_id"]
    wide = submitted.assign(given=answer).pivot(index=keys, columns="question", values="given").fillna("")
    wide = wide[[question.name for question in questions if question.name in wide]]
    for question in questions:
        if question.has_points and question.name in wide:
            wide[question.name] = pd.to_numeric(wide[question.name].astype(object)).convert_dtypes()
    once = submitted.groupby(keys)
    if submitted["submitted_at"].notna().all():
        wide["time"] = once["submitted_at"].max().map(lambda at: at.isoformat())
    if words:
        wide["comment"] = once["comment"].first()
    wide["counts"] = once["counts"].any()
    return wide.reset_index().rename(columns={"pair_id": "pair", "rater_id": "rater"})


def _meanings(frame: pd.DataFrame, record: type[Record], called: ItemNames) -> dict[str, str]:
    meanings = {name: field.description or "" for name, field in record.model_fields.items()} | _MORE
    meanings["transformation"] = f"the {called.item}'s {called.judged}"
    return {str(name): meanings[str(name)] for name in frame}

"""A campaign's ratings for a paper or for another tool: CSV files that anyone reads, and what stands in them.

`answers.csv` has a row for each rater and pair, a column a question: the form that `collect --csv` takes, here and in
another study on the same pairs. `ratings.csv` and `pairs.csv` have every column of the records. What raters wrote in
their own words may hold names, so it is left out unless it is asked for.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from annotation.campaign_records import RATINGS, CampaignData, CampaignRecords
from annotation.questions import QuestionScale
from annotation.ratings.ratings import counting_ratings
from annotation.rubric import Rubric
from annotation.verdicts.preregistration import asked_rubric
from annotation.verdicts.tables import SIMULATED
from plumbline.commands import as_called
from plumbline.errors import DataError
from plumbline.exhibits.files import csv_bytes, write_files
from plumbline.records import Pair, Rating, Record
from plumbline.study import Study
from plumbline.words import trim

FOLDER = "export"
NO_LICENCE = "No licence is named: ask those who ran the study before you share this."
SAME_SAMPLE = (
    "A study whose sample has every pair, control and repeat that was answered here takes it in with the"
    " following command, with its own file for YOUR_STUDY.yaml; one that lacks any of them refuses the whole. A sample"
    " has them that was drawn from the same outputs with the same rubric and the same `sample`, and extended alike."
)
_SOURCES = ("argilla", "mturk", "prolific")
_OF_SUBJECTS = ("fields", "expected", "queue")  # columns of other subjects than pairs
_MORE = {
    "control": "kind of check on the rater that the pair is (positive, negative, known, repeat); suggested: shown with"
    " judges' scores, in an experiment; empty for the sample",
    "source": "where it was given: argilla, mturk, prolific, or file (a file's name may hold a person's)",
    "withdrawn": "why a person withdrew the pair; empty if nobody did",
    "counts": "whether it counts in the verdicts: submitted, of the sample, not excluded, withdrawn or surplus",
}


def export(study: Study, *, licence: str = "", words: bool = False) -> Path:
    """Write `answers.csv`, `ratings.csv`, `pairs.csv` and `codebook.md` to the study's `export/`; returns the folder.

    `licence` is a line for the codebook; `words` says that comments and answers in words are wanted too. Raises
    DataError where nobody has answered yet.
    """
    records = CampaignRecords.open(study)
    collected, rubric = records.collected, asked_rubric(records)
    refuse_unrated(records, collected.ratings)
    ratings = _ratings(collected, study.raters.per_pair, [] if words else text_questions(rubric), words=words)
    pairs = collected.pairs.astype(dict.fromkeys(collected.pairs.select_dtypes("category"), str))
    pairs = pairs.drop(columns=[name for name in _OF_SUBJECTS if (pairs[name] == "").all()])
    pairs["withdrawn"] = [collected.withdrawn.get(pair_id, "") for pair_id in pairs["pair_id"]]
    tables = {
        "answers.csv": _answers(ratings, rubric.asked(), words=words),
        "ratings.csv": ratings,
        "pairs.csv": pairs,
    }
    files = {name: csv_bytes(frame) for name, frame in tables.items()}
    title = [f"# Ratings of the study {study.name}", _line(study.description)]
    files["codebook.md"] = _codebook(title, rubric, tables, files, licence).encode()
    write_files(study.folder / FOLDER, files)
    return study.folder / FOLDER


def refuse_unrated(records: CampaignRecords, ratings: pd.DataFrame) -> None:
    """Raise DataError where there is no rating to export."""
    if ratings.empty:
        raise DataError(
            f"{records.study.folder}: there are no ratings yet; run `{RATINGS.command(records.study)}` first"
        )


def text_questions(rubric: Rubric) -> list[str]:
    """The questions that are answered in words, which may hold names."""
    return [question.name for question in rubric.asked() if question.kind == "text"]


def _ratings(collected: CampaignData, per_pair: int, left_out: Sequence[str], *, words: bool) -> pd.DataFrame:
    """All ratings, of controls too, with whether they count."""
    plain = collected.plain_ratings
    counting = counting_ratings(collected.sample_ratings, per_pair).index
    kinds = collected.pairs.astype({"control": str}).set_index("pair_id")["control"]
    sources = plain["source"].where(plain["source"].isin(_SOURCES), "file")
    table = plain.assign(
        source=sources, control=plain["pair_id"].map(kinds).fillna(""), counts=plain.index.isin(counting)
    )
    table = table[~table["question"].isin(left_out)]
    return table if words else table.drop(columns="comment")


def _answers(ratings: pd.DataFrame, questions: Sequence[QuestionScale], *, words: bool) -> pd.DataFrame:
    """Submitted answers, a row a rater and pair, with a column for each question that is in `ratings`."""
    submitted = ratings[ratings["status"] == "submitted"]
    answer = submitted["value"].astype("string").fillna("") + submitted["answer"].astype("string")
    keys = ["pair_id", "rater_id"]
    wide = submitted.assign(given=answer).pivot(index=keys, columns="question", values="given").fillna("")
    wide = wide[[question.name for question in questions if question.name in wide]]
    once = submitted.groupby(keys)
    wide["time"] = once["submitted_at"].max().map(lambda at: at.isoformat())
    if words:
        wide["comment"] = once["comment"].first()
    return wide.reset_index().rename(columns={"pair_id": "pair", "rater_id": "rater"})


def _codebook(
    title: Sequence[str], rubric: Rubric, tables: dict[str, pd.DataFrame], files: dict[str, bytes], licence: str
) -> str:
    answers, ratings = tables["answers.csv"], tables["ratings.csv"]
    questions = [question for question in rubric.asked() if question.name in answers]
    dates = [f"{ratings['submitted_at'].agg(end):%Y-%m-%d}" for end in ("min", "max")]
    sample = tables["pairs.csv"]["control"] == ""
    out = int((sample & (tables["pairs.csv"]["withdrawn"] != "")).sum())
    withdrawn = f" ({out} of them withdrawn: their answers are here, and do not count)" if out else ""
    names = [
        "pair",
        "rater",
        *(question.name for question in questions),
        "time",
        *(["comment"] if "comment" in answers else []),
    ]
    columns = ",".join(f"{name}={name}" for name in names)
    command = f"{taken_in()} --csv answers.csv --columns {shlex.quote(columns)}"
    parts = [
        *title,
        licence_line(licence),
        *([f"**{SIMULATED}**"] if ratings["simulated"].any() else []),
        f"{int(sample.sum())} pairs of the sample{withdrawn} and {int((~sample).sum())} controls and repeats;"
        f" {ratings['rater_id'].nunique()} raters, under pseudonyms; {len(answers)} submitted answers, {len(ratings)}"
        f" ratings, of which {int(ratings['counts'].sum())} count; {dates[0]} to {dates[1]}, UTC.",
        "A text that a spreadsheet would take for a formula has an apostrophe before it.",
        questions_text(rubric, [question.name for question in questions]),
        "## answers.csv",
        "A row for each rater and pair that was submitted, a column for each question.",
        f"{SAME_SAMPLE}\n\n    {command}",
        "## ratings.csv",
        _columns(ratings, Rating),
        "## pairs.csv",
        _columns(tables["pairs.csv"], Pair),
    ]
    return codebook(parts, files)


def codebook(parts: Sequence[str], files: Mapping[str, bytes]) -> str:
    """A codebook of parts in Markdown, the empty ones left out, with the hashes of the files that it is about."""
    hashes = [f"- {name}: SHA-256 {hashlib.sha256(content).hexdigest()}" for name, content in files.items()]
    return "\n\n".join([*filter(None, parts), "## Files", "\n".join(hashes)]) + "\n"


def taken_in() -> str:
    """The command by which another study takes an export in, up to the export's name."""
    return as_called("python -m annotation collect --study YOUR_STUDY.yaml")


def licence_line(licence: str) -> str:
    """The codebook's line on the licence."""
    return f"Licence: {_line(licence) or NO_LICENCE}"


def questions_text(rubric: Rubric, names: Sequence[str]) -> str:
    """What was asked, in English, with what each answer means."""
    parts = [f"## Questions (rubric {rubric.name})"]
    for question in rubric.questions:
        if question.name in names:
            meant = question.points or question.labels
            lines = [f"- {answer}: {_line(words['en'])}" for answer, words in meant.items()]
            parts.append("\n".join([f"**{question.name}** ({question.kind}): {_line(question.title['en'])}\n", *lines]))
    return "\n\n".join(parts)


def _columns(frame: pd.DataFrame, record: type[Record]) -> str:
    """The columns of a table, each with its meaning."""
    meanings = {name: field.description or "" for name, field in record.model_fields.items()} | _MORE
    return "\n".join(["| column | meaning |", "|---|---|", *(f"| {name} | {meanings[str(name)]} |" for name in frame)])


def _line(text: str) -> str:
    return trim(" ".join(text.split()))

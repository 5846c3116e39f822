"""A campaign's ratings in Argilla's own files, which `rg.Dataset.from_disk` and other studies can read.

A folder for each queue, as `rg.Dataset.to_disk` writes it: settings, dataset, records with their responses. Responses
name accounts: here by ids made from pseudonyms, which do not reveal the server's accounts. Facts that Argilla's files
have no place for (pseudonyms, times) are in a file beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pandas as pd

from annotation import server
from annotation.argilla.dataset import COMMENT, Words, record_of
from annotation.argilla.publish import settings_of
from annotation.campaign_records import CampaignRecords
from annotation.csv_answers import (
    SAME_SAMPLE,
    answers_in,
    codebook,
    licence_line,
    questions_text,
    refuse_unrated,
    rubric_to_rate,
    taken_in,
    text_questions,
)
from annotation.names import named_pseudonym, pseudonym_key
from annotation.offering import alone
from annotation.questions import QuestionScale
from annotation.ratings.answers import Answer, SourcePart, keep
from annotation.rubric import Rubric
from annotation.sampling.queues import queues_of
from annotation.verdicts.preregistration import asked_rubric
from annotation.verdicts.tables import SIMULATED
from plumbline.errors import DataError
from plumbline.exhibits.table import write_files
from plumbline.identity import identity
from plumbline.reading import read_json
from plumbline.records import Pair
from plumbline.scales import as_number
from plumbline.study import Study

FOLDER = "export-argilla"
RECORDS, SETTINGS, DATASET = "records.json", ".argilla/settings.json", ".argilla/dataset.json"  # Argilla's own names
BESIDE = "raters.json"
_KINDS: dict[str, type[Any]] = {"rating": int, "label": str, "text": str, "multi_label": list, "ranking": list}


def export_argilla(study: Study, *, licence: str = "", words: bool = False) -> Path:
    """Write submitted answers to the study's `export-argilla/`, a folder for each queue; returns it.

    `licence` is a line for the codebook; `words` adds comments and answers in words. Raises
    DataError where nobody has answered yet.
    """
    campaign = CampaignRecords.open(study)
    rubric, plain = asked_rubric(campaign), campaign.collected.plain_ratings
    ratings = plain[plain["status"] == "submitted"]
    refuse_unrated(campaign, ratings)
    if not words:
        ratings = ratings[~ratings["question"].isin(text_questions(rubric))].assign(comment="")
    accounts = {rater: _account(study.name, rater) for rater in sorted(ratings["rater_id"].unique())}
    responses = _responses(ratings, rubric, accounts)
    files: dict[str, bytes] = {}
    for queue, pairs in queues_of(campaign.shown).items():
        name, worded = queue.dataset(study.name), Words.of(rubric, queue)
        records = [_record(pair, worded.beside, responses.get(pair.pair_id, {})) for pair in pairs]
        files |= {
            f"{name}/{SETTINGS}": _json(_settings(worded, study.raters_of(queue.pool), words=words)),
            f"{name}/{DATASET}": _json({"name": name}),
            f"{name}/{RECORDS}": _json(records),
        }
    times = ratings.groupby(["pair_id", "rater_id"], as_index=False)["submitted_at"].max()
    beside: dict[str, Any] = {"raters": {account: rater for rater, account in accounts.items()}, "times": {}}
    for pair_id, rater, at in times.itertuples(index=False, name=None):
        beside["times"].setdefault(pair_id, {})[accounts[rater]] = at.isoformat()
    files[BESIDE] = _json(beside)
    files["codebook.md"] = _codebook(study.name, rubric, ratings, files, licence).encode()
    write_files(study.folder / FOLDER, files)
    return study.folder / FOLDER


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, default=str).encode()


def _account(study_name: str, rater: str) -> str:
    """Return an account's id that no server has, equal at each export."""
    return str(UUID(hex=identity("argilla-export-v1", study_name, rater)[:32], version=4))


def _responses(
    ratings: pd.DataFrame, rubric: Rubric, accounts: Mapping[str, str]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The responses of each pair, by question, as Argilla's files have them."""
    scales = {question.name: question for question in rubric.asked()}
    responses: dict[str, dict[str, list[dict[str, Any]]]] = {}

    def add(pair_id: str, question: str, rater: str, value: Any) -> None:
        response = {"value": value, "user_id": accounts[rater], "status": "submitted"}
        responses.setdefault(pair_id, {}).setdefault(question, []).append(response)

    columns = ["pair_id", "question", "rater_id", "value", "answer"]
    for pair_id, question, rater, value, answer in ratings[columns].itertuples(index=False, name=None):
        add(pair_id, question, rater, scales[question].given(answer if pd.isna(value) else as_number(value)))
    once = ratings.drop_duplicates(["pair_id", "rater_id"])
    for pair_id, rater, comment in once.loc[once["comment"] != "", ["pair_id", "rater_id", "comment"]].itertuples(
        index=False, name=None
    ):
        add(pair_id, COMMENT, rater, comment)
    return responses


def _record(pair: Pair, beside: Mapping[str, str], responses: Mapping[str, Any]) -> dict[str, Any]:
    """A pair as `rg.Record.from_dict` takes it."""
    record = record_of(pair, beside)
    empty: dict[str, Any] = {"suggestions": {}, "vectors": {}}
    return {
        "id": pair.pair_id,
        "fields": record["fields"],
        "metadata": record["metadata"],
        "responses": responses,
    } | empty


def _settings(worded: Words, raters: int, *, words: bool) -> dict[str, Any]:
    """The dataset's settings; answers in words that are left out cannot be required."""
    nowhere = SimpleNamespace(api=SimpleNamespace(fields=None, questions=None, metadata=None))  # no server is asked
    settings: dict[str, Any] = settings_of(worded, raters, nowhere).serialize()
    for question in settings["questions"]:
        question["required"] &= words or question["type"] != "text"
    return settings


def _codebook(study_name: str, rubric: Rubric, ratings: pd.DataFrame, files: Mapping[str, bytes], licence: str) -> str:
    command = f"{taken_in()} --argilla {FOLDER}"
    answers = len(ratings.drop_duplicates(["pair_id", "rater_id"]))
    parts = [
        f"# Ratings of the study {study_name}, as Argilla's files",
        licence_line(licence),
        *([f"**{SIMULATED}**"] if ratings["simulated"].any() else []),
        f"{answers} submitted answers of {ratings['rater_id'].nunique()} raters, including controls, repeats"
        f" and answers that do not count; the CSV export shows which count. {BESIDE} maps the raters' ids in"
        " these records to their pseudonyms, and has the times of their answers.",
        f"{SAME_SAMPLE}\n\n    {command}",
        "Argilla 2.8 reads each folder with `rg.Dataset.from_disk` if its server has an account with each id:",
        "    import json, secrets\n    import argilla as rg\n\n"
        "    client = rg.Argilla(api_url=..., api_key=...)\n"
        f'    for user_id, name in json.load(open("{BESIDE}"))["raters"].items():\n'
        "        rg.User(username=name, id=user_id, password=secrets.token_hex(16), client=client).create()\n"
        '    rg.Dataset.from_disk("FOLDER", workspace="WORKSPACE", client=client)',
        questions_text(rubric, [name for name in rubric.question_names() if name in set(ratings["question"])]),
    ]
    return codebook(parts, files)


def collect_files(study: Study, home: server.Home, folder: Path, *, replace: bool = False) -> pd.DataFrame:
    """Add an export's answers to the ratings of other sources; return the sample's ratings.

    Its name is their source: collected again, it replaces its earlier answers. Raters get pseudonyms of this study.
    Without times beside them, answers have the time of their file. Raises DataError with file and record for what is
    no rating of this study.
    """
    with alone(study):
        records = CampaignRecords.open(study)
        rubric = rubric_to_rate(records)
        reading = _ExportReading(study, rubric, records.shown_by_id, folder, pseudonym_key(home), _beside(folder))
        answers = answers_in(reading.answers(), records, rubric)
        if not answers:
            raise DataError(f"{folder}: has no answers; name a folder that `annotation export --argilla` wrote")
        state = hashlib.sha256(b"".join(file.read_bytes() for file in reading.files())).hexdigest()
        source = f"{folder.resolve().name}/{RECORDS}"
        return keep(records, source, {source: SourcePart(state, answers)}, replace=replace)


def _beside(folder: Path) -> dict[str, Any]:
    """Read pseudonyms and times, if there are any. Raises DataError for a file that is not ours."""
    try:
        content = read_json(folder / BESIDE)
    except FileNotFoundError:
        return {"raters": {}, "times": {}}
    if not isinstance(content, dict) or not all(isinstance(content.get(name), dict) for name in ("raters", "times")):
        raise DataError(f"{folder / BESIDE}: does not map ids to raters and times; restore the exported file")
    return content


@dataclass(frozen=True)
class _ExportReading:
    """An export, and the settings to read it with."""

    study: Study
    rubric: Rubric
    pairs: Mapping[str, Pair]
    folder: Path
    key: bytes
    beside: Mapping[str, Any]

    def files(self) -> list[Path]:
        """The records of each queue; of one, where the folder is a queue's. Raises DataError where there are none."""
        files = sorted([*self.folder.glob(RECORDS), *self.folder.glob(f"*/{RECORDS}")])
        if not files:
            raise DataError(f"{self.folder}: has no {RECORDS}, nor has any folder in it; correct --argilla")
        return files

    def answers(self) -> Iterator[tuple[Path, str, Answer]]:
        """Each answer with its file and place. Raises DataError for a record that is not one."""
        for file in self.files():
            records = read_json(file)
            if not isinstance(records, list):
                raise DataError(f"{file}: is not a list of records; restore the file that Argilla or Plumbline wrote")
            for number, record in enumerate(records, 1):
                for account, values in self._by_account(record, f"{file}, record {number}").items():
                    yield file, f"record {number}", self._answer(str(record["id"]), account, values, file)

    def _by_account(self, record: Any, where: str) -> dict[str, dict[str, Any]]:
        """A record's values by account and question."""
        by_account: dict[str, dict[str, Any]] = {}
        try:
            for question, responses in (record["responses"] or {}).items():
                for response in responses:
                    if response.get("status") != "submitted":
                        raise DataError(
                            f"{where}: a response lacks the status `submitted` (Argilla's own export has no status,"
                            " so drafts look like answers); export with `annotation export --argilla`"
                        )
                    by_account.setdefault(str(response["user_id"]), {})[question] = response["value"]
            str(record["id"])
        except (KeyError, TypeError, AttributeError):
            raise DataError(f"{where}: is not an Argilla record (id, responses with value and user_id)") from None
        return by_account

    def _answer(self, pair_id: str, account: str, values: Mapping[str, Any], file: Path) -> Answer:
        pair = self.pairs.get(pair_id)
        where, scales = f"{file}, pair {pair_id}", {question.name: question for question in self.rubric.asked()}
        names = [question.name for question in self.rubric.asked(pair.pool if pair else None)]
        named = dict.fromkeys([*names, *(name for name in values if name != COMMENT)])
        at = self.beside["times"].get(pair_id, {}).get(account)
        try:
            time = datetime.fromisoformat(at) if at else datetime.fromtimestamp(file.stat().st_mtime, UTC)
        except (TypeError, ValueError):
            raise DataError(f"{self.folder / BESIDE}: {at!r} is not a time; restore the exported file") from None
        return Answer(
            pair_id=pair_id,
            rater_id=named_pseudonym(self.key, self.study.name, str(self.beside["raters"].get(account, account))),
            values={name: _kept(scales.get(name), values.get(name), where) for name in named},
            comment=str(values.get(COMMENT) or ""),
            submitted_at=time.astimezone(UTC).isoformat(),
        )


def _kept(scale: QuestionScale | None, value: Any, where: str) -> Any:
    """Return a value in its stored form; an unreadable one is returned as it is, and refused later."""
    if scale is None or value is None:
        return value if value is None else str(value)
    fits = isinstance(value, _KINDS[scale.kind]) and not isinstance(value, bool)
    if not fits:
        raise DataError(
            f"{where}, {scale.name}: {str(value)[:60]!r} is not a {scale.kind.replace('multi_label', 'list of labels')}"
        )
    if scale.kind == "ranking" and all(
        isinstance(label, str) for label in value
    ):  # Argilla's own: in order, without ties
        value = [{"value": label, "rank": rank} for rank, label in enumerate(value, 1)]
    try:
        return scale.kept(value)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(f"{where}, {scale.name}: {str(value)[:60]!r} is not a ranking") from None

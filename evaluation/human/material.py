"""What the report on people and models is made of: the tables of an evaluated human study, and the items' texts."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from annotation.human.records import ITEMS, HumanItem, HumanTask
from annotation.human.tasks import COMMAND as SAMPLE
from annotation.human.tasks import read_tasks
from evaluation.display import short_names
from evaluation.human.records import (
    AGREEMENT,
    ANNOTATORS,
    COMMAND,
    DIFFERENCES,
    DIFFICULTY,
    ITEM_SCORES,
    NOTES,
    SCORES,
    HumanAgreement,
    HumanAnnotator,
    HumanDifference,
    HumanDifficulty,
    HumanItemScore,
    HumanNote,
    HumanScore,
)
from evaluation.human.standing import gaps, pairs_by_scorer
from plumbline.errors import DataError
from plumbline.manifest import read_kept, read_kept_frame
from plumbline.records import Pair
from plumbline.study import Study

PLACE = ["task", "subset", "language"]
PEOPLE = "raters_mean"
EMBEDS, ANSWERS_TOO = "model", "llm"
MODELS = (ANSWERS_TOO, EMBEDS)


@dataclass(frozen=True)
class HumanMaterial:
    """The tables, each with a column `where` (a task, with language and subset where it has several), and more.

    `texts` is what raters read of an item, by task and item; `notes` say what was left out.
    """

    tasks: Mapping[str, HumanTask]
    scores: pd.DataFrame
    agreement: pd.DataFrame
    differences: pd.DataFrame
    items: pd.DataFrame
    annotators: pd.DataFrame
    difficulty: pd.DataFrame
    texts: Mapping[tuple[str, str], str]
    notes: tuple[str, ...]

    @property
    def main(self) -> pd.DataFrame:
        """Scores by the tasks' own metrics."""
        return self.scores[self.scores["main"]]

    @property
    def compared(self) -> pd.DataFrame:
        """Those that rest on the same items in each task: without who answered too few to be compared with others."""
        return self.main[self.main["compared"]]

    @property
    def simulated(self) -> bool:
        """Whether a program answered in the place of people."""
        return bool(self.scores["simulated"].any())

    @property
    def models(self) -> list[str]:
        """Embedding models, in the order of the tables."""
        return list(self.main.loc[self.main["scorer_kind"] == EMBEDS, "scorer"].unique())

    @functools.cached_property
    def wide(self) -> pd.DataFrame:
        """Raters' mean and embedding models: scores by task, of the tasks that all of them have."""
        own = self.compared[self.compared["scorer_kind"].isin((PEOPLE, EMBEDS)) & self.compared["score"].notna()]
        return pairs_by_scorer(own.assign(task=own["where"]))

    @functools.cached_property
    def gaps(self) -> pd.DataFrame:
        """People beside the embedding models on each task that all have (`standing.gaps`); empty without models."""
        wide = self.wide
        return gaps(wide, PEOPLE) if len(wide) and {PEOPLE} < set(wide) else pd.DataFrame()


def read_material(study: Study) -> HumanMaterial:
    """The records of an evaluated human study. Raises DataError before it is evaluated, and for edited tables."""
    made = study.command(COMMAND)
    scores = read_kept_frame(study, SCORES, HumanScore, made)
    if scores.empty:
        raise DataError(f"{study.folder / SCORES} has no scores; run `{made}` again")
    names = _names(scores)
    models = short_names(set(scores.loc[scores["scorer_kind"].isin(MODELS), "scorer"]))

    def named(frame: pd.DataFrame) -> pd.DataFrame:
        keys = zip(*(frame[column] for column in PLACE), strict=True)
        own = frame.assign(where=pd.Series([names[key] for key in keys], index=frame.index, dtype=object))
        for column in {"scorer", "model"} & set(own):
            own[column] = [models.get(name, name) for name in own[column]]
        return own

    return HumanMaterial(
        {one.task: one for one in read_tasks(study)},
        named(scores),
        named(read_kept_frame(study, AGREEMENT, HumanAgreement, made)),
        named(read_kept_frame(study, DIFFERENCES, HumanDifference, made)),
        named(read_kept_frame(study, ITEM_SCORES, HumanItemScore, made)),
        named(read_kept_frame(study, ANNOTATORS, HumanAnnotator, made)),
        read_kept_frame(study, DIFFICULTY, HumanDifficulty, made),
        _texts(study),
        tuple(one.text for one in read_kept(study, NOTES, HumanNote, made)),
    )


def _names(scores: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """What each task in one language and subset is called: its name alone where it is in one."""
    places = list(dict.fromkeys(zip(*(scores[column] for column in PLACE), strict=True)))
    tasks = [task for task, _, _ in places]
    return {
        place: place[0]
        if tasks.count(place[0]) == 1
        else f"{place[0]} ({', '.join(filter(None, dict.fromkeys((place[2], place[1]))))})"
        for place in places
    }


def _texts(study: Study) -> dict[tuple[str, str], str]:
    """What raters read of each item, in one line."""
    pairs = read_kept_frame(study, "pairs.parquet", Pair, study.command(SAMPLE))
    read = dict(zip(pairs["pair_id"], pairs["fields"], strict=True))
    items = read_kept_frame(study, ITEMS, HumanItem, study.command(SAMPLE))
    found = {}
    for row in items.to_dict(orient="records"):
        record = row["pair_id"] or next(iter(row["records"]), "")
        found[row["task"], row["item"]] = _line(read.get(record, "{}"))
    return found


def _line(fields: str) -> str:
    """The fields of a record as a line of text; of a list so many entries as it has."""
    values = json.loads(fields or "{}").values()
    texts = [value if isinstance(value, str) else f"({len(value)} texts)" for value in values]
    return " | ".join(" ".join(text.split()) for text in texts)

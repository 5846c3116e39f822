"""The material of the report on people and models: the tables of an evaluated human study, and items' texts."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from annotation.human.records import HumanTask
from annotation.verdicts.tables import SIMULATED
from evaluation.display import short_names
from evaluation.human.agreement import PEOPLE, flag
from evaluation.human.records import COMMAND, SCORES, TABLES, HumanRecords, HumanTables
from evaluation.human.standing import gaps, pairs_by_scorer, rank
from plumbline.errors import DataError
from plumbline.exhibits.table import UNDEFINED
from plumbline.words import count

PLACE = ["task", "subset", "language"]
EMBEDS, ANSWERS_TOO = "model", "llm"
MODELS = (ANSWERS_TOO, EMBEDS)


@dataclass(frozen=True)
class HumanMaterial(HumanTables):
    """The tables, each with a column `where` (the task, with language and subset if it has several), and more.

    `texts` are the texts that raters read, by task and item.
    """

    tasks: Mapping[str, HumanTask]
    texts: Mapping[tuple[str, str], str]

    @property
    def main(self) -> pd.DataFrame:
        """Scores by the tasks' own metrics."""
        return self.scores[self.scores["main"]]

    @property
    def compared(self) -> pd.DataFrame:
        """The main scores on the same items in each task: without scorers who answered too few."""
        return self.main[self.main["compared"]]

    @property
    def simulated(self) -> bool:
        """True if a program answered instead of people."""
        return bool(self.scores["simulated"].any())

    @functools.cached_property
    def wide(self) -> pd.DataFrame:
        """Scores of the raters' mean and the embedding models by task, for tasks that all of them have."""
        scored = self.compared[self.compared["scorer_kind"].isin((PEOPLE, EMBEDS)) & self.compared["score"].notna()]
        return pairs_by_scorer(scored.assign(task=scored["where"]))

    @functools.cached_property
    def gaps(self) -> pd.DataFrame:
        """People and embedding models on each task that all have (`standing.gaps`); empty without models."""
        wide = self.wide
        return gaps(wide, PEOPLE) if len(wide) and {PEOPLE} < set(wide) else pd.DataFrame()


def read_material(records: HumanRecords) -> HumanMaterial:
    """Read an evaluated human study. Raises DataError before it is evaluated, and for edited tables."""
    tables, study = records.tables, records.study
    if tables.scores.empty:
        raise DataError(f"{study.folder / SCORES} has no scores; run `{study.command(COMMAND)}` again")
    names = _names(tables.scores)
    models = short_names(set(tables.scores.loc[tables.scores["scorer_kind"].isin(MODELS), "scorer"]))

    def named(frame: pd.DataFrame) -> pd.DataFrame:
        if not set(PLACE) <= set(frame):
            return frame
        keys = zip(*(frame[column] for column in PLACE), strict=True)
        short = {column: frame[column].replace(models) for column in ("scorer", "model") if column in frame}
        return frame.assign(where=pd.Series([names[key] for key in keys], frame.index, dtype=object), **short)

    fields = {pair.pair_id: pair.fields for pair in records.pairs}
    texts = {(item.task, item.item): _line(fields.get(item.records[0], "{}")) for item in records.items}
    tasks = {task.task: task for task in records.tasks}
    frames = {field: named(getattr(tables, field)) for field in TABLES}
    return HumanMaterial(**frames, notes=tables.notes, tasks=tasks, texts=texts)


def _names(scores: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """Return the displayed name of each task, with language and subset if it has several."""
    places = list(dict.fromkeys(zip(*(scores[column] for column in PLACE), strict=True)))
    tasks = [task for task, _, _ in places]
    return {
        key: key[0]
        if tasks.count(key[0]) == 1
        else f"{key[0]} ({', '.join(filter(None, dict.fromkeys((key[2], key[1]))))})"
        for key in places
    }


def _line(fields: str) -> str:
    values = json.loads(fields or "{}").values()
    texts = [value if isinstance(value, str) else f"({len(value)} texts)" for value in values]
    return " | ".join(" ".join(text.split()) for text in texts)


def first_of(agreement: pd.DataFrame, task_name: str) -> pd.Series | None:
    """Return the first measure of a task's agreement."""
    rows = agreement[agreement["where"] == task_name]
    return rows.iloc[0] if len(rows) else None


SIGNIFICANT = 0.05
_LOW_AGREEMENT = " Where they agree too little, a model far above people fits the labels, not the meaning."
_FEW_ITEMS, _FEW_RATERS = 30, 2


def headline(material: HumanMaterial) -> tuple[str, ...]:
    """Return people's rank, the tasks on which they differ significantly from a model, and their agreement."""
    return tuple(filter(None, (_stand(material), _differ(material), _agree(material))))


def _stand(material: HumanMaterial) -> str:
    people = material.main[material.main["scorer_kind"] == PEOPLE].dropna(subset="score")
    if people.empty:
        return "People have no score on any task."
    average = (
        f"On {count(len(people), 'task')} people score {100 * people['score'].mean():.1f} on average (raters' mean)"
    )
    if material.gaps.empty:
        return f"{average}; no embedding model was scored on the same items."
    position, of = rank(material.wide, PEOPLE)
    above = int((material.gaps["over_best"] > 0).sum())
    return (
        f"{average} and have rank {position} of {of} when ranked with {count(of - 1, 'embedding model')} on the same"
        f" items; on {above} of {count(len(material.gaps), 'task')} they are above the best model."
    )


def _differ(material: HumanMaterial) -> str:
    differences = material.differences[material.differences["people"] == PEOPLE]
    tested = differences[differences["p_holm"].notna()]
    if tested.empty:
        return ""
    sure = tested[tested["p_holm"] < SIGNIFICANT]
    up, down = int((sure["difference"] > 0).sum()), int((sure["difference"] < 0).sum())
    return (
        f"In {count(len(tested), 'comparison')} with a model on a task, people score significantly higher in {up} and"
        f" lower in {down} (paired bootstrap over items, Holm over tasks, p < {SIGNIFICANT:g})."
    )


def _agree(material: HumanMaterial) -> str:
    first = [first_of(material.agreement, str(task_name)) for task_name in material.main["where"].unique()]
    flags = [flag(row["measure"], row["value"]) for row in first if row is not None]
    if not flags:
        return ""
    low = flags.count("problematic")
    sentence = f"By HUME's bounds raters agree reliably on {flags.count('reliable')} of {count(len(flags), 'task')}"
    return f"{sentence} and too little on {low}." + _LOW_AGREEMENT * bool(low)


def doubts(material: HumanMaterial) -> list[str]:
    """Return a line for each reason to doubt the numbers."""
    lines = [SIMULATED.rstrip(".")] if material.simulated else []
    people = material.main[material.main["scorer_kind"] == PEOPLE]
    few = people[people["n_items"] < _FEW_ITEMS]
    if len(few):
        lines.append(
            f"{len(few)} of {count(len(people), 'task')} {'has' if len(few) == 1 else 'have'} fewer than {_FEW_ITEMS}"
            " items and therefore wide intervals"
        )
    raters = material.main[material.main["scorer_kind"] == "rater"].groupby("where")["scorer"].nunique()
    if single_raters := [
        str(task_name) for task_name in material.main["where"].unique() if raters.get(task_name, 0) < _FEW_RATERS
    ]:
        lines.append(
            f"tasks with only one rater, so that people's score is that of one person: {', '.join(single_raters)}"
        )
    by_task = material.main[material.main["scorer_kind"].isin(("trivial", PEOPLE))].pivot_table(
        "score", "where", "scorer_kind", "max"
    )
    by_task = by_task.reindex(columns=["trivial", PEOPLE])
    if below := list(by_task.index[by_task["trivial"] >= by_task[PEOPLE]]):
        lines.append(f"answers without reading score at least as high as people on {', '.join(below)}")
    return [*lines, *material.notes]


def differing(material: HumanMaterial, task_name: str, items: pd.DataFrame) -> pd.DataFrame:
    """Return a task's items by people's mean score minus its best embedding model's, without equal ones.

    Columns: where, item, text, right, said, best_model, people, model, apart.
    """
    shared = material.compared
    scores = shared[(shared["where"] == task_name) & (shared["scorer_kind"] == "model") & shared["score"].notna()]
    people = items[items["scorer_kind"] == "rater"]
    if scores.empty or people.empty:
        return pd.DataFrame()
    best = str(scores["scorer"].iloc[int(scores["score"].to_numpy().argmax())])
    model = items[(items["scorer_kind"] == "model") & (items["scorer"] == best)].set_index("item")["score"]
    gold = items[items["scorer_kind"] == "gold"].set_index("item")["answer"]
    table = pd.DataFrame({"people": people.groupby("item")["score"].mean(), "model": model}).dropna()
    table["apart"] = table["people"] - table["model"]
    table = table[table["apart"].abs() > 1e-9].rename_axis("item").reset_index()
    table = table.sort_values(["apart", "item"], ascending=[False, True], kind="stable", ignore_index=True)
    votes = people.groupby("item")["answer"].agg(_votes)
    task, names = str(items["task"].iloc[0]), table["item"]
    facts = {
        "where": task_name, "item": names, "text": [material.texts.get((task, str(item)), "") for item in names],
        "right": names.map(gold), "said": names.map(votes), "best_model": best,
    }  # fmt: skip
    return pd.DataFrame(facts).join(table[["people", "model", "apart"]])


def _votes(answers: pd.Series) -> str:
    counts = answers[answers != ""].value_counts()
    return (
        "; ".join(f"{answer} ({number})" if number > 1 else str(answer) for answer, number in counts.items())
        or UNDEFINED
    )

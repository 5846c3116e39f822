"""People and models on the same items as tables that people read; each is a file too."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from annotation.verdicts.tables import SIMULATED
from evaluation.human.material import ANSWERS_TOO, EMBEDS, MODELS, NONE, PEOPLE, HumanMaterial, differing, first_of
from evaluation.human.standing import (
    AGGREGATED,
    V_MEASURE,
    by_group,
    by_type,
    in_languages,
    pairs_by_scorer,
    rank,
    relative,
    table_8,
    wins,
    with_ami,
)
from plumbline.exhibits.table import Exhibit, reasons

LONGEST = 160  # characters of an item's text in a table
OF_N_ITEMS = (
    "An interval of a V-measure is of what so many items give on average, which is more than what all items would give:"
    " simulated, it holds the first in 88 to 99 studies of 100 and the second in 0 to 63. AMI comes first, as its"
    " interval holds the value of all items in 78 to 97"
)


def on_clusters(scores: pd.DataFrame) -> list[str]:
    """What has to be said of intervals of a V-measure, where there is one."""
    return [OF_N_ITEMS] if (scores["metric"] == V_MEASURE).any() else []


def estimate(value: float, low: float, high: float) -> str:
    """A score times 100 with its interval."""
    score = f"{100 * value:.1f}" if not math.isnan(value) else NONE
    return score if math.isnan(low) else f"{score} [{100 * low:.1f}, {100 * high:.1f}]"


def row_of(scores: pd.DataFrame, kind: str) -> pd.Series | None:
    """The row of a kind of scorer; None where there is none."""
    rows = scores[scores["scorer_kind"] == kind]
    return rows.iloc[0] if len(rows) else None


def top(scores: pd.DataFrame) -> pd.Series[Any] | None:
    """The row with the highest score, the first of several; None where there is none."""
    return scores.iloc[int(scores["score"].to_numpy().argmax())] if len(scores) else None


def value_of(row: pd.Series | None, name: str = "score") -> float:
    """A number of a row; NaN without one."""
    return math.nan if row is None else float(row[name])


def said(row: pd.Series | None) -> str:
    """A score times 100 with its interval."""
    return NONE if row is None else estimate(row["score"], row["low"], row["high"])


def hundredfold(row: pd.Series | None) -> str:
    """A score times 100."""
    return NONE if row is None else f"{100 * row['score']:.1f}"


def agreed(row: pd.Series | None) -> str:
    """A measure of agreement with its value, ! where HUME calls it problematic."""
    if row is None or math.isnan(row["value"]):
        return NONE
    return f"{row['measure']} {row['value']:.2f}{' !' if row['flag'] == 'problematic' else ''}"


def difference_of(row: Mapping[Hashable, Any] | None) -> str:
    """Points between people and a model, with their interval."""
    if row is None or math.isnan(float(row["difference"])):
        return NONE
    value, low, high = (float(row[name]) for name in ("difference", "low", "high"))
    return f"{100 * value:+.1f}" + ("" if math.isnan(low) else f" [{100 * low:+.1f}, {100 * high:+.1f}]")


def p_of(row: Mapping[Hashable, Any] | None) -> str:
    """Holm's p as papers print it."""
    p = math.nan if row is None else float(row["p_holm"])
    return NONE if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def ends(value: float, low: float, high: float) -> str:
    """A value with its interval."""
    if math.isnan(value):
        return NONE
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def percent(value: float) -> str:
    """A share in percent."""
    return NONE if math.isnan(value) else f"{100 * value:.0f}%"


def short(text: str) -> str:
    """A text cut to a table's width."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def table(
    material: HumanMaterial, name: str, caption: str, frame: pd.DataFrame | Sequence[Mapping[str, object]],
    rows: Sequence[Mapping[str, str]], notes: Iterable[str],
) -> Exhibit:  # fmt: skip
    """`frame` with all digits and `rows` as printed; answers that a program gave are said to be simulated."""
    simulated, table = [SIMULATED] if material.simulated else [], pd.DataFrame(frame)
    clusters = on_clusters(table) if {"metric", "low"} <= set(table) else []
    return Exhibit(name, caption, table, pd.DataFrame(rows), (*simulated, *clusters, *filter(None, notes)))


_ALIKE = (
    "Agreement is the mean over raters of the model and each, beside raters two by two, whatever is right. Clusters and"
    " orders of a model have no test: they are on no common scale with people's"
)
_TEST = (
    "The alternative annotator test (Calderon, Reichart and Dror, ACL 2025) holds a model against each rater in turn,"
    " by the other raters' answers: winning is the share of raters whom it is as good as, less a tolerance of 0.1, and"
    " a half passes; advantage is how often it is as close. Passing says that it answers as one more rater would, not"
    " that it is right. With few items no model passes"
)
_HARD = (
    "Spearman's rho of the raters' mean score and the model's over tasks, with a bootstrap over these (HUME, Table 13)"
)


def annotators(material: HumanMaterial) -> Exhibit:
    """Each task and language model: agreement with people, and whether it could stand in for a rater."""
    frame = material.annotators
    rows = [
        {"Task": row["where"], "Model": row["model"], "Measure": row["measure"]}
        | {"With raters [95%]": ends(row["value"], row["low"], row["high"]), "Items": str(row["n"])}
        | {"Among raters": NONE if math.isnan(row["among_people"]) else f"{row['among_people']:.2f}"}
        | {"Winning": NONE if math.isnan(row["winning_rate"]) else f"{row['winning_rate']:.2f}"}
        | {"Advantage": NONE if math.isnan(row["advantage"]) else f"{row['advantage']:.2f}"}
        | {"Passes": NONE if math.isnan(row["winning_rate"]) else "yes" if row["passes"] else "no"}
        for row in frame.to_dict(orient="records")
    ]
    notes = [_ALIKE, _TEST, *reasons(frame["where"] + ", " + frame["model"], frame["reason"])]
    return table(material, "annotators", "Language models that did the tasks, beside raters", frame, rows, notes)


def difficulty(material: HumanMaterial) -> Exhibit:
    """Whether what is hard for people is hard for each language model."""
    frame = material.difficulty
    rows = [
        {"Model": row["model"], "rho [95%]": ends(row["rho"], row["low"], row["high"])}
        | {"p": NONE if math.isnan(row["p"]) else f"{row['p']:.3f}", "Tasks": str(row["n"])}
        for row in frame.to_dict(orient="records")
    ]
    notes = [_HARD, *reasons(frame["model"], frame["reason"])]
    return table(
        material, "difficulty", "Whether tasks are hard for people and language models alike", frame, rows, notes
    )


MOST_ITEMS = 5  # of a task on the page, that people and the best model see most differently
_SHARED = "All scores of a row rest on the same items: those that every compared scorer has an answer to"
_HOLM = "p: two-sided, of the same resamples of items; Holm's correction is over tasks, for each model"


def all_exhibits(material: HumanMaterial) -> dict[str, Exhibit]:
    """The tables by name, in the page's order; those without rows are left away."""
    writers = (ceiling, models, by_groups, standing, gap_table, raters, agreement, other_metrics, as_hume, apart,
               annotators, by_types, difficulty, tasks)  # fmt: skip
    exhibits = (write(material) for write in writers)
    return {exhibit.name: exhibit for exhibit in exhibits if len(exhibit.frame)}


def ceiling(material: HumanMaterial) -> Exhibit:
    """Each task: people, the models' best and median, what needs no reading, and how far raters agree."""
    rows, frame = [], []
    answering = bool((material.main["scorer_kind"] == ANSWERS_TOO).any())
    for where, every in with_ami(material.scores, "where"):
        compared = every[every["compared"]]
        people = row_of(compared, PEOPLE)
        together, alike = row_of(compared, "aggregate"), first_of(material.agreement, str(where))
        embedding = compared[(compared["scorer_kind"] == EMBEDS) & compared["score"].notna()]
        annotators = compared[(compared["scorer_kind"] == ANSWERS_TOO) & compared["score"].notna()]
        lines = compared[(compared["scorer_kind"] == "trivial") & compared["score"].notna()]
        best = top(embedding)
        line = top(lines)
        n_raters = int((every["scorer_kind"] == "rater").sum())
        n_items = int(compared["n_items"].max()) if len(compared) else 0
        rows.append(
            {"Task": str(where), "Metric": every["metric"].iloc[0], "Items": str(n_items)}
            | {"Raters": str(n_raters), "Raters' mean [95%]": said(people), "Together [95%]": said(together)}
            | {"Best model": hundredfold(best), "Which": str(best["scorer"]) if best is not None else NONE}
            | {"Median model": f"{100 * embedding['score'].median():.1f}" if len(embedding) else NONE}
            | ({"Best language model": hundredfold(top(annotators))} if answering else {})
            | {"Without reading": hundredfold(line), "Agreement": agreed(alike)}
        )
        frame.append(
            {"where": where, "metric": every["metric"].iloc[0], "n_items": n_items, "raters": n_raters}
            | {"raters_mean": value_of(people), "low": value_of(people, "low"), "high": value_of(people, "high")}
            | {
                "aggregate": value_of(together),
                "best": value_of(best),
                "best_model": "" if best is None else best["scorer"],
            }
            | {"median": float(embedding["score"].median()) if len(embedding) else math.nan}
            | {"best_language_model": value_of(top(annotators))}
            | {"trivial": value_of(line), "trivial_line": "" if line is None else line["scorer"]}
            | {"agreement": value_of(alike, "value"), "agreement_flag": "" if alike is None else alike["flag"]}
        )
    notes = [
        _SHARED,
        "Raters' mean is what one person reaches; together is the vote or the mean of all, an ensemble, which no single"
        " model is: models are compared with both",
        "Best and median model: of embedding models; language models answered as people do, under the same instructions"
        if answering
        else "",
        "Without reading: the best of answers that need no reading, such as one cluster an item or the most frequent"
        " label; a score says only what it has above that",
        "Agreement: the first measure of the table on agreement; ! where HUME calls it problematic (kappa below .4, rho"
        " below .6)",
        *_undefined(material),
        *material.notes,
    ]
    return table(material, "ceiling", "People and models on the same items, scores times 100", frame, rows, notes)


def models(material: HumanMaterial) -> Exhibit:
    """Each task and model: score, and people less the model."""
    if material.differences.empty:
        return table(material, "models", "", [], [], [])
    rows = []
    scored = material.main[material.main["scorer_kind"].isin(MODELS)]
    own_score = scored[["where", "scorer", "scorer_kind", "score", "low", "high"]].rename(
        columns={"scorer": "model", "low": "score_low", "high": "score_high"}
    )
    frame = material.differences.merge(own_score, on=["where", "model"])
    for (where, model), of_model in frame.groupby(["where", "model"], sort=False):
        by = {row["people"]: row for row in of_model.to_dict(orient="records")}
        mean, together = by.get(PEOPLE), by.get("aggregate")
        first = of_model.iloc[0]
        kind = {"llm": "answers as people do", "model": "embeds"}[first["scorer_kind"]]
        rows.append(
            {"Task": str(where), "Model": str(model), "Kind": kind}
            | {"Score [95%]": estimate(first["score"], first["score_low"], first["score_high"])}
            | {"Raters' mean less model [95%]": difference_of(mean), "p (Holm)": p_of(mean)}
            | {"Together less model [95%]": difference_of(together), "p (Holm) ": p_of(together)}
        )
    notes = [
        _SHARED,
        _HOLM,
        *on_clusters(material.main),
        *reasons(frame["where"] + ", " + frame["model"], frame["reason"]),
    ]
    caption = "People less each model in points, on the same items (paired bootstrap over items, 95%)"
    return table(material, "models", caption, frame, rows, notes)


def standing(material: HumanMaterial) -> Exhibit:
    """Where people stand among models, over all tasks and by type."""
    if material.gaps.empty:
        return table(material, "standing", "", [], [], [])
    wide = material.wide
    rank_of_people, of = rank(wide, PEOPLE)
    named = material.main.drop_duplicates("where").set_index("where").loc[wide.index.get_level_values("task")]
    split = in_languages(named["task"], named["language"])
    groups: dict[str, str | list[str]] = {by: by for by in ("", "task_type", "language")}
    groups |= {"languages": split} if len(set(split)) > 1 else {}
    frame = pd.concat([wins(wide, PEOPLE, by=by).assign(by=name) for name, by in groups.items()])
    rows = [
        {"Tasks": row["group"].replace("_", " ") or "all", "Against": f"{row['against']} model"}
        | {"Wins": f"{row['wins']} of {row['n']}", "Ties": str(row["ties"]), "Share": f"{100 * row['share']:.0f}%"}
        for row in frame.to_dict(orient="records")
    ]
    n_left_out = wide.attrs.get("left_out", 0)
    notes = [
        f"By the mean over {len(wide)} tasks the raters' mean has rank {rank_of_people} of {of}; tasks are not drawn at"
        " random, so that neither ranks nor wins have an interval",
        "In several languages: tasks whose items are in several, the English ones among them, as HUME splits its wins"
        if "languages" in groups
        else "",
        f"{n_left_out} tasks are left out, which not all models have a score on" if n_left_out else "",
    ]
    return table(material, "standing", "On how many tasks the raters' mean is above the models", frame, rows, notes)


def gap_table(material: HumanMaterial) -> Exhibit:
    """How hard each task is for people, and how far models are from them."""
    frame, rows = material.gaps, []
    lines = material.main[material.main["scorer_kind"] == "trivial"].groupby("where")["score"].max()
    for row in frame.to_dict(orient="records"):
        plain, above = relative(row["best"], row["people"], float(lines.get(row["task"], math.nan)))
        rows.append(
            {"Task": row["task"], "People": f"{100 * row['people']:.1f}", "For people": row["difficulty"]}
            | {"Worst": f"{100 * row['worst']:.1f}", "Median": f"{100 * row['median']:.1f}"}
            | {"Best": f"{100 * row['best']:.1f}", "Best / people": percent(plain), "Above trivial": percent(above)}
        )
    notes = [
        "For people: easy from 70 on, hard below 50 (HUME's bands). Above trivial: the same share after what needs no"
        " reading is taken off both; – where people are not above it"
    ]
    caption = "How hard tasks are for people, and models beside them, scores times 100"
    return table(material, "gaps", caption, frame, rows, notes)


def raters(material: HumanMaterial) -> Exhibit:
    """Each rater, and the raters without each."""
    kinds = {"rater": "alone", "leave_one_out": "all others together"}
    frame = material.main[material.main["scorer_kind"].isin(kinds)]
    rows = [
        {"Task": row["where"], "Rater": row["scorer"], "Who": kinds[row["scorer_kind"]]}
        | {"Score [95%]": estimate(row["score"], row["low"], row["high"]), "Items": str(row["n_items"])}
        | {"Cannot tell": str(row["n_abstained"]) if row["scorer_kind"] == "rater" else NONE}
        for row in frame.to_dict(orient="records")
    ]
    where = (
        frame["where"] + ", " + frame["scorer"] + frame["scorer_kind"].map({"leave_one_out": " left out"}).fillna("")
    )
    notes = reasons(where, frame["reason"])
    return table(material, "raters", "Each rater, and what the others say together, times 100", frame, rows, notes)


def agreement(material: HumanMaterial) -> Exhibit:
    """How far raters agree."""
    frame = material.agreement
    rows = [
        {"Task": row["where"], "Measure": row["measure"]}
        | {"Value [95%]": ends(row["value"], row["low"], row["high"]), "Items": str(row["n"])}
        | {"HUME's word": row["band"] or NONE, "HUME's flag": row["flag"] or NONE}
        for row in frame.to_dict(orient="records")
    ]
    notes = [
        "Words and flags are HUME's, of the value and not of its interval, a convention: kappas and correlations are"
        " on no common scale, and so few items do not tell them to a tenth",
        *reasons(frame["where"] + ", " + frame["measure"], frame["reason"]),
    ]
    return table(material, "agreement", "How far raters agree with each other, whatever is right", frame, rows, notes)


def other_metrics(material: HumanMaterial) -> Exhibit:
    """Other metrics of the same answers."""
    frame = material.scores[~material.scores["main"]]
    rows = [
        {"Task": row["where"], "Scorer": row["scorer"].replace("_", " "), "Metric": row["metric"]}
        | {"Score [95%]": estimate(row["score"], row["low"], row["high"]), "Items": str(row["n_items"])}
        for row in frame.to_dict(orient="records")
    ]
    notes = [
        "The V-measure rewards many clusters: AMI and ARI take off what chance gives. Average precision and nDCG of"
        " tied candidates are the mean over all orders of them; scikit-learn's puts a tied group at its end",
        "A model's F1 is the mean of its classifier's runs. Models say no yes and no, so have no accuracy of pairs",
        *reasons(frame["where"] + ", " + frame["scorer"] + ", " + frame["metric"], frame["reason"]),
    ]
    return table(material, "other_metrics", "The same answers by other metrics, times 100", frame, rows, notes)


def apart(material: HumanMaterial) -> Exhibit:
    """Items that people and the best model see most differently."""
    rows, frames = [], []
    for where, items in material.items.groupby("where", sort=False):
        differences = differing(material, str(where), items)
        frames.append(differences)
        for row in pd.concat([differences.head(MOST_ITEMS), differences.iloc[MOST_ITEMS:].tail(MOST_ITEMS)]).to_dict(
            orient="records"
        ):
            rows.append(
                {"Task": str(where), "Item": row["item"], "Text": short(row["text"]), "Right": row["right"] or NONE}
                | {"People said": row["said"], "People": f"{row['people']:.2f}", "Best model": f"{row['model']:.2f}"}
                | {"Apart": f"{row['apart']:+.2f}"}
            )
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    notes = [
        "From 0 (wrong) to 1 (right): the item's share of the score where that is a mean over items, else how near the"
        " answer's rank is to the right one's, or of how many other items it is rightly said whether they lie in one"
        " cluster. The best model is the task's own. An item's right answer may be wrong: look where people agree",
    ]
    caption = f"Items that people and the best model see most differently, up to {MOST_ITEMS} either way for each task"
    return table(material, "items", caption, frame, rows, notes)


def tasks(material: HumanMaterial) -> Exhibit:
    """What was asked, of which items."""
    rows = [
        {"Task": task.task, "Data": task.source, "Type": task.task_type.replace("_", " "), "Asked": task.asked}
        | {"Items": str(task.n_items), "Languages": ", ".join(task.languages), "Items' hash": task.content_hash[:12]}
        | {"Candidates": str(task.candidates or NONE), "Cut to": f"{task.cut} characters" if task.cut else "whole"}
        for task in material.tasks.values()
    ]
    cut = [
        f"{task.task}: {task.n_cut} texts were shown to people cut to {task.cut} characters; models read them whole,"
        " or as far as they read"
        for task in material.tasks.values()
        if task.n_cut
    ]
    absent = [task.task for task in material.tasks.values() if task.relevant_in == "maybe_absent"]
    notes = [*cut, f"A right candidate may be absent: {', '.join(absent)}" if absent else ""]
    frame = [
        {"task": task.task, "content_hash": task.content_hash, "n_items": task.n_items}
        for task in material.tasks.values()
    ]
    return table(material, "tasks", "What people were asked to do", frame, rows, notes)


def _undefined(material: HumanMaterial) -> tuple[str, ...]:
    of_people = material.main[material.main["scorer_kind"].isin((PEOPLE, "aggregate"))]
    return reasons(of_people["where"] + ", " + of_people["scorer"].str.replace("_", " "), of_people["reason"])


_TABLE_8 = (
    "As HUME has them (its Table 8), for comparison alone: Wilson's interval of accuracies, Fisher's of correlations,"
    " else the range of raters, and a star where the best model lies outside. A range claims no coverage, and a best of"
    " several models lies outside by chance too: the paired differences are the test. Votes without a winner count by"
    " their chance here, where HUME gives them to the alphabet"
)
_TABLE_1 = (
    "As HUME's Table 1, with the raters' mean for people: means over the tasks of a type in a language, in brackets how"
    " many; the last column is the mean over all of these, not over groups"
)
_TABLE_2 = (
    "As HUME's Table 2, with the raters' mean for people, which is what one person reaches: means over tasks in a"
    " language that people, all these language models and all embedding models have; the last row is the mean over all"
    " of these, not over types"
)


def as_hume(material: HumanMaterial) -> Exhibit:
    """Scores of people, intervals, agreement and stars exactly as HUME has them."""
    alone = (material.main["scorer_kind"] == "rater") & ~material.main.index.isin(material.compared.index)
    counted = alone & material.main["task_type"].isin(AGGREGATED)  # whose answers are in what people say together
    shared = material.main[material.main.index.isin(material.compared.index) | counted]
    paper = table_8(shared, material.agreement)
    names = {tuple(row[:3]): row[3] for row in material.main[["task", "subset", "language", "where"]].to_numpy()}
    frame = paper.assign(
        where=[names[key] for key in zip(paper["task"], paper["subset"], paper["language"], strict=True)]
    )
    rows = [
        {"Task": row["where"], "Language": row["language"], "Items": str(row["n"]), "Raters": str(row["raters"])}
        | {"Answers": str(row["answers"]), "People [95%]": estimate(row["people"], row["low"], row["high"])}
        | {"Interval": row["interval"], "Agreement": _agreed(row["measure"], row["agreement"])}
        | {"Best model": NONE if math.isnan(row["best"]) else f"{100 * row['best']:.1f}{'*' if row['star'] else ''}"}
        for row in frame.to_dict(orient="records")
    ]
    out = ", ".join(material.main.loc[alone & ~counted, "where"].unique())
    excluded = (
        f"Raters who answered too few items to be compared are in no mean and no range here: of {out}" if out else ""
    )
    notes = (_TABLE_8, excluded, *reasons(frame["where"], frame["reason"]))
    return table(material, "as_hume", "People, intervals, agreement and stars as HUME has them", frame, rows, notes)


def by_types(material: HumanMaterial) -> Exhibit:
    """People, each language model and the best embedding model by type of task."""
    caption = "People and language models by type of task, scores times 100"
    shared = material.compared
    scored = shared[shared["scorer_kind"].isin((PEOPLE, ANSWERS_TOO, EMBEDS)) & shared["score"].notna()]
    kinds = dict(zip(scored["scorer"], scored["scorer_kind"], strict=True))
    answering = [name for name, kind in kinds.items() if kind == ANSWERS_TOO]
    wide = pairs_by_scorer(scored.assign(task=scored["where"])) if answering and PEOPLE in kinds else pd.DataFrame()
    if wide.empty:
        return table(material, "annotators_by_type", caption, pd.DataFrame(), [], ())
    means = by_type(wide)
    embedding = means.loc[[name for name in means.index if kinds[name] == EMBEDS]]
    rows, frame = [], []
    for name, number in means.attrs["pairs"].items():
        best = str(embedding[name].idxmax()) if len(embedding) else ""
        top = float(embedding.loc[best, name]) if best else math.nan
        by_model = {model: float(means.loc[model, name]) for model in answering}
        frame.append({"type": name, "n": number, "people": float(means.loc[PEOPLE, name]), **by_model,
                      "best_model": best, "best": top})  # fmt: skip
        rows.append(
            {"Type": "all" if name == "overall" else str(name).replace("_", " "), "Tasks": str(number)}
            | {"People": f"{100 * means.loc[PEOPLE, name]:.1f}"}
            | {model: f"{100 * value:.1f}" for model, value in by_model.items()}
            | {"Best embedding model": f"{100 * top:.1f} ({best})" if best else NONE}
        )
    n_left_out = wide.attrs["left_out"]
    notes = (_TABLE_2, f"{n_left_out} tasks are left out, on which somebody has no score" if n_left_out else "")
    return table(material, "annotators_by_type", caption, pd.DataFrame(frame), rows, notes)


def by_groups(material: HumanMaterial) -> Exhibit:
    """The raters' mean and each embedding model in each group of tasks, the best first."""
    caption = "People and embedding models by type of task and language, scores times 100"
    if material.gaps.empty:
        return table(material, "groups", caption, pd.DataFrame(), [], ())
    means = by_group(material.wide)
    pairs: dict[str, int] = {_named(*key): number for key, number in means.attrs["pairs"].items()}
    named = means.set_axis(list(pairs), axis=1).rename_axis("scorer").reset_index()
    frame = named.sort_values("all", ascending=False, kind="stable", ignore_index=True)
    rows = [
        {"Scorer": "raters' mean" if row["scorer"] == PEOPLE else str(row["scorer"])}
        | {f"{name} ({number})": f"{100 * row[name]:.1f}" for name, number in pairs.items()}
        for row in frame.to_dict(orient="records")
    ]
    n_left_out = material.wide.attrs.get("left_out", 0)
    notes = (_TABLE_1, f"{n_left_out} tasks are left out, which not all models have a score on" if n_left_out else "")
    return table(material, "groups", caption, frame, rows, notes)


def _named(task_type: str, language: str) -> str:
    return f"{task_type.replace('_', ' ')}, {language}" if language else "all"


def _agreed(measure: str, value: float) -> str:
    return NONE if math.isnan(value) else f"{measure} {value:.2f}"

"""People and models on the same items as tables that people read; each is a file too."""

from __future__ import annotations

import math

import pandas as pd

from evaluation.human.cells import (
    NONE,
    agreed,
    difference_of,
    ends,
    estimate,
    first_of,
    hundredfold,
    on_clusters,
    p_of,
    percent,
    row_of,
    said,
    short,
    table,
    top,
    value_of,
    with_ami,
)
from evaluation.human.headline import differing
from evaluation.human.hume import as_hume, by_groups, by_types
from evaluation.human.material import ANSWERS_TOO, EMBEDS, MODELS, PEOPLE, HumanMaterial
from evaluation.human.standing import in_languages, rank, relative, wins
from plumbline.exhibits.table import Exhibit, reasons

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


def annotators(one: HumanMaterial) -> Exhibit:
    """Each task and language model: agreement with people, and whether it could stand in for a rater."""
    frame = one.annotators
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
    return table(one, "annotators", "Language models that did the tasks, beside raters", frame, rows, notes)


def difficulty(one: HumanMaterial) -> Exhibit:
    """Whether what is hard for people is hard for each language model."""
    frame = one.difficulty
    rows = [
        {"Model": row["model"], "rho [95%]": ends(row["rho"], row["low"], row["high"])}
        | {"p": NONE if math.isnan(row["p"]) else f"{row['p']:.3f}", "Tasks": str(row["n"])}
        for row in frame.to_dict(orient="records")
    ]
    notes = [_HARD, *reasons(frame["model"], frame["reason"])]
    return table(one, "difficulty", "Whether tasks are hard for people and language models alike", frame, rows, notes)


MOST_ITEMS = 5  # of a task on the page, that people and the best model see most differently
_SHARED = "All scores of a row rest on the same items: those that every compared scorer has an answer to"
_HOLM = "p: two-sided, of the same resamples of items; Holm's correction is over tasks, for each model"


def all_exhibits(one: HumanMaterial) -> dict[str, Exhibit]:
    """The tables by name, in the page's order; those without rows are left away."""
    made = [ceiling(one), models(one), by_groups(one), standing(one), gap_table(one), raters(one), agreement(one),
            other_metrics(one), as_hume(one), apart(one), annotators(one), by_types(one), difficulty(one),
            tasks(one)]  # fmt: skip
    return {table.name: table for table in made if len(table.frame)}


def ceiling(one: HumanMaterial) -> Exhibit:
    """Each task: people, the models' best and median, what needs no reading, and how far raters agree."""
    rows, frame = [], []
    answering = bool((one.main["scorer_kind"] == ANSWERS_TOO).any())
    for where, every in with_ami(one.scores, "where"):
        own = every[every["compared"]]
        people = row_of(own, PEOPLE)
        together, alike = row_of(own, "aggregate"), first_of(one.agreement, str(where))
        found = own[(own["scorer_kind"] == EMBEDS) & own["score"].notna()]
        annotators = own[(own["scorer_kind"] == ANSWERS_TOO) & own["score"].notna()]
        lines = own[(own["scorer_kind"] == "trivial") & own["score"].notna()]
        best = top(found)
        line = top(lines)
        n_raters, n_items = int((every["scorer_kind"] == "rater").sum()), int(own["n_items"].max()) if len(own) else 0
        rows.append(
            {"Task": str(where), "Metric": every["metric"].iloc[0], "Items": str(n_items)}
            | {"Raters": str(n_raters), "Raters' mean [95%]": said(people), "Together [95%]": said(together)}
            | {"Best model": hundredfold(best), "Which": str(best["scorer"]) if best is not None else NONE}
            | {"Median model": f"{100 * found['score'].median():.1f}" if len(found) else NONE}
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
            | {"median": float(found["score"].median()) if len(found) else math.nan}
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
        *_undefined(one),
        *one.notes,
    ]
    return table(one, "ceiling", "People and models on the same items, scores times 100", frame, rows, notes)


def models(one: HumanMaterial) -> Exhibit:
    """Each task and model: score, and people less the model."""
    if one.differences.empty:
        return table(one, "models", "", [], [], [])
    rows = []
    scored = one.main[one.main["scorer_kind"].isin(MODELS)]
    own_score = scored[["where", "scorer", "scorer_kind", "score", "low", "high"]].rename(
        columns={"scorer": "model", "low": "score_low", "high": "score_high"}
    )
    frame = one.differences.merge(own_score, on=["where", "model"])
    for (where, model), own in frame.groupby(["where", "model"], sort=False):
        by = {row["people"]: row for row in own.to_dict(orient="records")}
        mean, together = by.get(PEOPLE), by.get("aggregate")
        first = own.iloc[0]
        kind = {"llm": "answers as people do", "model": "embeds"}[first["scorer_kind"]]
        rows.append(
            {"Task": str(where), "Model": str(model), "Kind": kind}
            | {"Score [95%]": estimate(first["score"], first["score_low"], first["score_high"])}
            | {"Raters' mean less model [95%]": difference_of(mean), "p (Holm)": p_of(mean)}
            | {"Together less model [95%]": difference_of(together), "p (Holm) ": p_of(together)}
        )
    notes = [_SHARED, _HOLM, *on_clusters(one.main), *reasons(frame["where"] + ", " + frame["model"], frame["reason"])]
    caption = "People less each model in points, on the same items (paired bootstrap over items, 95%)"
    return table(one, "models", caption, frame, rows, notes)


def standing(one: HumanMaterial) -> Exhibit:
    """Where people stand among models, over all tasks and by type."""
    if one.gaps.empty:
        return table(one, "standing", "", [], [], [])
    wide = one.wide
    place, of = rank(wide, PEOPLE)
    named = one.main.drop_duplicates("where").set_index("where").loc[wide.index.get_level_values("task")]
    split = in_languages(named["task"], named["language"])
    groups: dict[str, str | list[str]] = {by: by for by in ("", "task_type", "language")}
    groups |= {"languages": split} if len(set(split)) > 1 else {}
    frame = pd.concat([wins(wide, PEOPLE, by=by).assign(by=name) for name, by in groups.items()])
    rows = [
        {"Tasks": row["group"].replace("_", " ") or "all", "Against": f"{row['against']} model"}
        | {"Wins": f"{row['wins']} of {row['n']}", "Ties": str(row["ties"]), "Share": f"{100 * row['share']:.0f}%"}
        for row in frame.to_dict(orient="records")
    ]
    left = wide.attrs.get("left_out", 0)
    notes = [
        f"By the mean over {len(wide)} tasks the raters' mean has rank {place} of {of}; tasks are not drawn at random,"
        " so that neither ranks nor wins have an interval",
        "In several languages: tasks whose items are in several, the English ones among them, as HUME splits its wins"
        if "languages" in groups
        else "",
        f"{left} tasks are left out, which not all models have a score on" if left else "",
    ]
    return table(one, "standing", "On how many tasks the raters' mean is above the models", frame, rows, notes)


def gap_table(one: HumanMaterial) -> Exhibit:
    """How hard each task is for people, and how far models are from them."""
    frame, rows = one.gaps, []
    lines = one.main[one.main["scorer_kind"] == "trivial"].groupby("where")["score"].max()
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
    return table(one, "gaps", caption, frame, rows, notes)


def raters(one: HumanMaterial) -> Exhibit:
    """Each rater, and the raters without each."""
    kinds = {"rater": "alone", "leave_one_out": "all others together"}
    frame = one.main[one.main["scorer_kind"].isin(kinds)]
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
    return table(one, "raters", "Each rater, and what the others say together, times 100", frame, rows, notes)


def agreement(one: HumanMaterial) -> Exhibit:
    """How far raters agree."""
    frame = one.agreement
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
    return table(one, "agreement", "How far raters agree with each other, whatever is right", frame, rows, notes)


def other_metrics(one: HumanMaterial) -> Exhibit:
    """Other metrics of the same answers."""
    frame = one.scores[~one.scores["main"]]
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
    return table(one, "other_metrics", "The same answers by other metrics, times 100", frame, rows, notes)


def apart(one: HumanMaterial) -> Exhibit:
    """Items that people and the best model see most differently."""
    rows, frames = [], []
    for where, own in one.items.groupby("where", sort=False):
        made = differing(one, str(where), own)
        frames.append(made)
        for row in pd.concat([made.head(MOST_ITEMS), made.iloc[MOST_ITEMS:].tail(MOST_ITEMS)]).to_dict(
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
    return table(one, "items", caption, frame, rows, notes)


def tasks(one: HumanMaterial) -> Exhibit:
    """What was asked, of which items."""
    rows = [
        {"Task": task.task, "Data": task.source, "Type": task.task_type.replace("_", " "), "Asked": task.asked}
        | {"Items": str(task.n_items), "Languages": ", ".join(task.languages), "Items' hash": task.content_hash[:12]}
        | {"Candidates": str(task.candidates or NONE), "Cut to": f"{task.cut} characters" if task.cut else "whole"}
        for task in one.tasks.values()
    ]
    cut = [
        f"{task.task}: {task.n_cut} texts were shown to people cut to {task.cut} characters; models read them whole,"
        " or as far as they read"
        for task in one.tasks.values()
        if task.n_cut
    ]
    absent = [task.task for task in one.tasks.values() if task.relevant_in == "maybe_absent"]
    notes = [*cut, f"A right candidate may be absent: {', '.join(absent)}" if absent else ""]
    frame = [
        {"task": task.task, "content_hash": task.content_hash, "n_items": task.n_items} for task in one.tasks.values()
    ]
    return table(one, "tasks", "What people were asked to do", frame, rows, notes)


def _undefined(one: HumanMaterial) -> tuple[str, ...]:
    own = one.main[one.main["scorer_kind"].isin((PEOPLE, "aggregate"))]
    return reasons(own["where"] + ", " + own["scorer"].str.replace("_", " "), own["reason"])

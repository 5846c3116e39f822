"""The tables of the report on people and models; each is also written as files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

import pandas as pd

from annotation.verdicts.tables import SIMULATED
from evaluation.human.agreement import PEOPLE, band, flag
from evaluation.human.material import ANSWERS_TOO, EMBEDS, MODELS, HumanMaterial, differing, first_of
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
from evaluation.report.paper_tables import p_cell
from plumbline.exhibits.table import (
    UNDEFINED,
    Cell,
    Exhibit,
    Row,
    cell,
    estimates,
    number,
    numbers,
    printed,
    reasons,
    spaced,
    word,
)
from plumbline.words import count

LONGEST = 160  # most characters of an item's text in a table
MOST_ITEMS = 5  # of a task, in each direction, that people and the best model answer most differently
OF_N_ITEMS = (
    "On few items the V-measure is higher on average than on all items. Its interval covered the expected V-measure of"
    " this many items in 88% to 99% of simulated studies, but the V-measure of all items only in 0% to 63%. AMI comes"
    " first, because its interval covered the AMI of all items in 78% to 97%"
)
_SHARED = "All scores of a row use the same items: those that every compared scorer answered"


hundred = partial(number, digits=1, times=100)
hundredfold = partial(numbers, digits=1, times=100)  # a column of scores times 100
hundredfold_with_ends = partial(estimates, form=hundred)


def best_model(row: Row) -> str:
    """Return the best model's score in HUME's Table 8, with its star."""
    return hundred(row["best"]) + ("*" if row["star"] and not math.isnan(row["best"]) else "")


def _agreement(row: Row) -> str:
    return UNDEFINED if math.isnan(row["agreement"]) else f"{row['measure']} {number(row['agreement'])}"


def _exhibit(
    material: HumanMaterial, name: str, caption: str, frame: pd.DataFrame, columns: Mapping[str, Cell] | pd.DataFrame,
    notes: Iterable[str] = (),
) -> Exhibit:  # fmt: skip
    """Return the table with all digits and as printed; simulated answers get a note."""
    simulated = [SIMULATED] if material.simulated else []
    clusters = _on_clusters(frame) if {"metric", "low"} <= set(frame) else []
    return Exhibit.of(name, caption, frame, columns, (*simulated, *clusters, *notes))


def _on_clusters(scores: pd.DataFrame) -> list[str]:
    """Return the note on intervals of a V-measure, if there is one."""
    return [OF_N_ITEMS] if (scores["metric"] == V_MEASURE).any() else []


def _left_out(wide: pd.DataFrame, reason: str) -> str:
    number = wide.attrs.get("left_out", 0)
    return f"{count(number, 'task')} {'is' if number == 1 else 'are'} left out, {reason}" if number else ""


def all_exhibits(material: HumanMaterial) -> dict[str, Exhibit]:
    """Return the tables by name, in the page's order, without empty ones."""
    exhibits = [ceiling(material)]
    exhibits += [models(material)] if len(material.differences) else []
    exhibits += [by_groups(material), standing(material), gap_table(material)] if len(material.gaps) else []
    exhibits += [agreement(material), other_metrics(material), as_hume(material), disagreements(material)]
    exhibits += [*by_types(material), difficulty(material), tasks(material)]
    return {exhibit.name: exhibit for exhibit in exhibits if len(exhibit.frame)}


def ceiling(material: HumanMaterial) -> Exhibit:
    """Return for each task the scores of people, models and trivial answers, and the raters' agreement."""
    answering = bool((material.main["scorer_kind"] == ANSWERS_TOO).any())
    table = pd.DataFrame([_ceiling_row(material, *task) for task in with_ami(material.scores, "where")])
    columns: dict[str, Cell] = {
        "Task": "where", "Metric": "metric", "Items": "n_items", "Raters": "raters",
        "Raters' mean [95%]": hundredfold_with_ends("raters_mean"),
        "Together [95%]": hundredfold_with_ends("aggregate", "together_low", "together_high"),
        "Best model": hundredfold("best"), "Which": cell("best_model", word), "Median model": hundredfold("median"),
        **({"Best language model": hundredfold("best_language_model")} if answering else {}),
        "Without reading": hundredfold("trivial"),
        "Agreement": lambda row: _agreement(row) + " !" * (row["agreement_flag"] == "problematic"),
    }  # fmt: skip
    of_people = material.main[material.main["scorer_kind"].isin((PEOPLE, "aggregate"))]
    notes = [
        _SHARED,
        "Raters' mean: the mean of the raters' own scores. Together: the score of their joint vote or mean, which is an"
        " ensemble, unlike a single model. Models are compared with both",
        "Best and median model: among the embedding models; language models answered as people do, by the same"
        " instructions"
        if answering
        else "",
        "Without reading: the best score of answers that need no reading, such as one cluster per item or the"
        " most frequent label; only the part of a score above it is informative",
        "Agreement: the first measure in the table on agreement; ! marks values that HUME calls problematic (kappa"
        " below .4, rho below .6)",
        *reasons(of_people["where"] + ", " + of_people["scorer"].str.replace("_", " "), of_people["reason"]),
        *material.notes,
    ]
    caption = "People and models on the same items, scores times 100"
    return _exhibit(material, "ceiling", caption, table, columns, notes)


def _ceiling_row(material: HumanMaterial, task_name: str, every: pd.DataFrame) -> dict[str, object]:
    """Return the numbers of one task by one metric."""
    compared = every[every["compared"]]
    scored = compared[compared["score"].notna()]
    embedding = scored[scored["scorer_kind"] == EMBEDS]
    people, together = (compared[compared["scorer_kind"] == kind] for kind in (PEOPLE, "aggregate"))
    best, line, annotator = (
        scored[scored["scorer_kind"] == kind].sort_values("score", ascending=False, kind="stable")
        for kind in (EMBEDS, "trivial", ANSWERS_TOO)
    )

    def value(rows: pd.DataFrame, name: str = "score") -> float:
        return float(rows[name].iloc[0]) if len(rows) else math.nan

    agreed = first_of(material.agreement, task_name)
    return {
        "where": task_name, "metric": every["metric"].iloc[0],
        "n_items": int(compared["n_items"].max()) if len(compared) else 0,
        "raters": int((every["scorer_kind"] == "rater").sum()), "raters_mean": value(people),
        "low": value(people, "low"), "high": value(people, "high"), "aggregate": value(together), "best": value(best),
        "best_model": best["scorer"].iloc[0] if len(best) else "",
        "median": float(embedding["score"].median()) if len(embedding) else math.nan,
        "best_language_model": value(annotator), "trivial": value(line),
        "trivial_line": line["scorer"].iloc[0] if len(line) else "",
        "agreement": math.nan if agreed is None else float(agreed["value"]),
        "agreement_flag": "" if agreed is None else flag(agreed["measure"], agreed["value"]),
        "together_low": value(together, "low"), "together_high": value(together, "high"),
        "measure": "" if agreed is None else agreed["measure"],
    }  # fmt: skip


def models(material: HumanMaterial) -> Exhibit:
    """Return for each task and model its score, and people's score minus the model's."""
    scored = material.main[material.main["scorer_kind"].isin(MODELS)]
    scored = scored[["where", "scorer", "scorer_kind", "score", "low", "high"]]
    names = {"scorer": "model", "low": "score_low", "high": "score_high"}
    frame = material.differences.merge(scored.rename(columns=names), on=["where", "model"])
    kinds, keys = {"llm": "answers as people do", "model": "embeds"}, ["where", "model"]
    columns: dict[str, Cell] = {
        "Task": "where", "Model": "model", "Kind": cell("scorer_kind", lambda kind: kinds[kind]),
        "Score [95%]": hundredfold_with_ends("score", "score_low", "score_high"),
    }  # fmt: skip
    by_model = frame.drop_duplicates(keys)
    for people, head, p in ((PEOPLE, "Raters' mean", "p (Holm)"), ("aggregate", "Together", "p (Holm) ")):
        of_people = frame[frame["people"] == people].set_index(keys)[["difference", "low", "high", "p_holm"]]
        difference, low, high, p_holm = names_of = [f"{name}_{people}" for name in of_people]
        by_model = by_model.join(of_people.set_axis(names_of, axis=1), on=keys)
        columns |= {f"{head} minus model [95%]": estimates(difference, low, high, partial(hundred, sign="+"))}
        columns |= {p: cell(p_holm, p_cell)}
    notes = [
        _SHARED,
        "p: two-sided, with people and the model resampled on the same items, and Holm's correction over tasks for each"
        " model",
        *_on_clusters(material.main),
        *reasons(frame["where"] + ", " + frame["model"], frame["reason"]),
    ]
    caption = "People's score minus each model's in points, on the same items (paired bootstrap over items, 95%)"
    return _exhibit(material, "models", caption, frame, printed(by_model, columns), notes)


def standing(material: HumanMaterial) -> Exhibit:
    """Return people's wins against the models, over all tasks and by type."""
    wide = material.wide
    position, of = rank(wide, PEOPLE)
    named = material.main.drop_duplicates("where").set_index("where").loc[wide.index.get_level_values("task")]
    split = in_languages(named["task"], named["language"])
    groups: dict[str, str | list[str]] = {by: by for by in ("", "task_type", "language")}
    groups |= {"languages": split} if len(set(split)) > 1 else {}
    frame = pd.concat([wins(wide, PEOPLE, by=by).assign(by=name) for name, by in groups.items()])
    notes = [
        f"By its mean over {count(len(wide), 'task')} the raters' mean has rank {position} of {of}; tasks are not"
        " drawn at random, so ranks and wins have no intervals",
        "In several languages: tasks with items in several languages, including their English items, as in HUME's"
        " count of wins"
        if "languages" in groups
        else "",
        _left_out(wide, "as not all models have a score there"),
    ]
    columns: dict[str, Cell] = {
        "Tasks": lambda row: row["group"].replace("_", " ") or "all", "Against": lambda row: f"{row['against']} model",
        "Wins": lambda row: f"{row['wins']} of {row['n']}", "Ties": "ties",
        "Share": lambda row: f"{100 * row['share']:.0f}%",
    }  # fmt: skip
    caption = "Number of tasks on which the raters' mean is above the models"
    return _exhibit(material, "standing", caption, frame, columns, notes)


def gap_table(material: HumanMaterial) -> Exhibit:
    """Return how hard each task is for people, and how far models are from them."""
    frame = material.gaps
    lines = material.main[material.main["scorer_kind"] == "trivial"].groupby("where")["score"].max()
    shares = [
        relative(best, people, float(lines.get(task, math.nan)))
        for task, people, best in frame[["task", "people", "best"]].itertuples(index=False)
    ]
    plain, above = zip(*shares, strict=True)
    columns: dict[str, Cell] = {
        "Task": "task", "People": hundredfold("people"), "For people": "difficulty", "Worst": hundredfold("worst"),
        "Median": hundredfold("median"), "Best": hundredfold("best"),
        "Best / people": numbers("plain", 0, times=100, unit="%"),
        "Above trivial": numbers("above", 0, times=100, unit="%"),
    }  # fmt: skip
    notes = [
        "For people: easy from 70, hard below 50 (HUME's bands). Best / people: the best model's score as a share of"
        " people's. Above trivial: the same after subtracting the score without reading from both; – if people are"
        " not above that score"
    ]
    caption = "Difficulty of tasks for people, and models' scores, times 100"
    return _exhibit(material, "gaps", caption, frame, printed(frame.assign(plain=plain, above=above), columns), notes)


def agreement(material: HumanMaterial) -> Exhibit:
    """Return the raters' agreement."""
    pairs = list(zip(material.agreement["measure"], material.agreement["value"], strict=True))
    words_of = {"band": [band(*pair) for pair in pairs], "flag": [flag(*pair) for pair in pairs]}
    frame = material.agreement.assign(**words_of)
    columns: dict[str, Cell] = {
        "Task": "where", "Measure": "measure", "Value [95%]": estimates("value"),
        "Items": "n", "HUME's word": cell("band", spaced), "HUME's flag": cell("flag", spaced),
    }  # fmt: skip
    notes = [
        "Words and flags are HUME's and ignore the interval. They are a convention: kappas and correlations have no"
        " common scale, and with so few items neither is accurate to 0.1",
        *reasons(frame["where"] + ", " + frame["measure"], frame["reason"]),
    ]
    caption = "Agreement of raters with each other, regardless of gold"
    return _exhibit(material, "agreement", caption, frame, columns, notes)


def other_metrics(material: HumanMaterial) -> Exhibit:
    """Return scores of the same answers by metrics other than the main one."""
    frame = material.scores[~material.scores["main"]]
    columns: dict[str, Cell] = {
        "Task": "where",
        "Scorer": lambda row: row["scorer"] if row["scorer_kind"] in ("rater", *MODELS) else spaced(row["scorer"]),
        "Metric": "metric", "Score [95%]": hundredfold_with_ends("score"), "Items": "n_items",
    }  # fmt: skip
    notes = [
        "The V-measure rewards many clusters; AMI and ARI correct for chance. For tied candidates, average precision"
        " and nDCG are means over all orders of the tie; scikit-learn's average precision uses the end of the tie",
        "A model's F1 is the mean over its classifier's runs. Models do not answer yes or no, so they have no accuracy"
        " on pairs",
        *reasons(frame["where"] + ", " + frame["scorer"] + ", " + frame["metric"], frame["reason"]),
    ]
    caption = "Scores by metrics other than the task's main one, times 100"
    return _exhibit(material, "other_metrics", caption, frame, columns, notes)


def disagreements(material: HumanMaterial) -> Exhibit:
    """Return the items that people and the best model answer most differently."""
    frames = [
        differing(material, str(task_name), items) for task_name, items in material.items.groupby("where", sort=False)
    ]
    ends = [part for rows in frames for part in (rows.head(MOST_ITEMS), rows.iloc[MOST_ITEMS:].tail(MOST_ITEMS))]
    columns: dict[str, Cell] = {
        "Task": "where", "Item": "item",
        "Text": lambda row: text if len(text := row["text"]) <= LONGEST else f"{text[: LONGEST - 3]}...",
        "Right": cell("right", word), "People said": "said", "People": numbers("people"),
        "Best model": numbers("model"), "Apart": numbers("apart", sign="+"),
    }  # fmt: skip
    frame, extremes = (pd.concat(parts, ignore_index=True) if parts else pd.DataFrame() for parts in (frames, ends))
    notes = [
        "Scores are from 0 (wrong) to 1 (right): the item's own score if the task's score is a mean over items;"
        " otherwise how close the answer's rank is to gold's, or the share of the other items that are correctly put"
        " together with this item or apart from it. Best model: the best on the task. Gold may be wrong:"
        " check items on which people agree"
    ]
    caption = f"Items that people and the best model answer most differently, up to {MOST_ITEMS} in each direction"
    return _exhibit(material, "items", caption, frame, printed(extremes, columns), notes)


def difficulty(material: HumanMaterial) -> Exhibit:
    """Return whether tasks hard for people are hard for each language model."""
    frame = material.difficulty
    columns: dict[str, Cell] = {
        "Model": "model", "rho [95%]": estimates("rho"), "p": cell("p", p_cell), "Tasks": "n"
    }  # fmt: skip
    notes = [
        "Spearman's rho over tasks between the raters' mean score and the model's, with a bootstrap over tasks (HUME,"
        " Table 13)",
        *reasons(frame["model"], frame["reason"]),
    ]
    caption = "Correlation of tasks' difficulty for people and for language models"
    return _exhibit(material, "difficulty", caption, frame, columns, notes)


def tasks(material: HumanMaterial) -> Exhibit:
    """Return the questions and items of each task."""
    n_items = Counter(task for task, _ in material.texts)
    table = pd.DataFrame(
        [{**task.model_dump(), "asked": task.asked, "n_items": n_items[task.task]} for task in material.tasks.values()]
    )
    columns: dict[str, Cell] = {
        "Task": "task", "Data": "source", "Type": cell("task_type", spaced), "Asked": "asked", "Items": "n_items",
        "Languages": lambda row: ", ".join(row["languages"]), "Items' hash": lambda row: row["content_hash"][:12],
        "Candidates": lambda row: str(row["candidates"] or UNDEFINED),
    }  # fmt: skip
    frame = table[["task", "content_hash", "n_items"]]
    caption = "Tasks that people did: questions, items and candidates"
    return _exhibit(material, "tasks", caption, frame, printed(table, columns))


def as_hume(material: HumanMaterial) -> Exhibit:
    """Return people's scores, intervals, agreement and stars exactly as HUME computes them."""
    main = material.main
    single_raters = (main["scorer_kind"] == "rater") & ~main.index.isin(material.compared.index)
    counted = single_raters & main["task_type"].isin(AGGREGATED)  # whose answers are part of the joint score
    paper = table_8(main[main.index.isin(material.compared.index) | counted], material.agreement)
    keys = ["task", "subset", "language"]
    frame = paper.merge(main[[*keys, "where"]].drop_duplicates(keys), on=keys, how="left")
    columns: dict[str, Cell] = {
        "Task": "where", "Language": "language", "Items": numbers("n", 0), "Raters": "raters", "Answers": "answers",
        "People [interval]": hundredfold_with_ends("people"), "Interval": "interval",
        "Agreement": _agreement, "Best model": best_model,
    }  # fmt: skip
    out = ", ".join(main.loc[single_raters & ~counted, "where"].unique())
    notes = (
        "As in HUME's Table 8, only for comparison: Wilson's interval for accuracies, Fisher's for correlations,"
        " otherwise the range of raters; a star if the best model's score lies outside this interval or range."
        " A range is not a confidence interval, and the best of several models' scores may lie outside by chance: the"
        " paired differences are the test. A tied vote counts by its chance of being right; HUME takes the"
        " alphabetically first label",
        f"Means and ranges leave out raters who answered too few items to be compared: {out}" if out else "",
        *reasons(frame["where"], frame["reason"]),
    )
    caption = "People's scores, intervals, agreement and stars as in HUME"
    return _exhibit(material, "as_hume", caption, frame, columns, notes)


def by_types(material: HumanMaterial) -> list[Exhibit]:
    """Return scores of people, language models and the best embedding model by type of task, if all exist."""
    shared = material.compared
    scored = shared[shared["scorer_kind"].isin((PEOPLE, ANSWERS_TOO, EMBEDS)) & shared["score"].notna()]
    kinds = dict(zip(scored["scorer"], scored["scorer_kind"], strict=True))
    answering = [name for name, kind in kinds.items() if kind == ANSWERS_TOO]
    wide = pairs_by_scorer(scored.assign(task=scored["where"])) if answering and PEOPLE in kinds else pd.DataFrame()
    if wide.empty:
        return []
    means = by_type(wide)
    embedding = means.loc[[name for name in means.index if kinds[name] == EMBEDS]]
    frame = pd.DataFrame({"type": list(means), "n": list(means.attrs["pairs"].values())})
    frame = frame.assign(people=means.loc[PEOPLE].to_numpy())
    for model in answering:
        frame[model] = means.loc[model].to_numpy()
    frame["best_model"] = list(embedding.idxmax()) if len(embedding) else ""
    frame["best"] = embedding.max().to_numpy() if len(embedding) else math.nan
    columns: dict[str, Cell] = {
        "Type": lambda row: "all" if row["type"] == "overall" else row["type"].replace("_", " "), "Tasks": "n",
        "People": hundredfold("people"), **{model: hundredfold(model) for model in answering},
        "Best embedding model": lambda row: (
            f"{hundred(row['best'])} ({row['best_model']})" if row["best_model"] else UNDEFINED
        ),
    }  # fmt: skip
    notes = (
        "Like HUME's Table 2, but with the raters' mean (the mean of their own scores) for people. Means are over the"
        " tasks in each language on which people, all these language models and all embedding models have scores; the"
        " last row is the mean over all those tasks, not over types",
        _left_out(wide, "as at least one scorer has no score there"),
    )
    caption = "People and language models by type of task, scores times 100"
    return [_exhibit(material, "annotators_by_type", caption, frame, columns, notes)]


def by_groups(material: HumanMaterial) -> Exhibit:
    """Return the raters' mean and each embedding model in each group of tasks, the best first."""
    means = by_group(material.wide)
    counts: dict[tuple[str, str], int] = means.attrs["pairs"]
    names = [f"{kind.replace('_', ' ')}, {language}" if language else "all" for kind, language in counts]
    frame = means.set_axis(names, axis=1).rename_axis("scorer").reset_index()
    frame = frame.sort_values("all", ascending=False, kind="stable", ignore_index=True)
    columns: dict[str, Cell] = {
        "Scorer": lambda row: "raters' mean" if row["scorer"] == PEOPLE else str(row["scorer"]),
        **{f"{name} ({number})": hundredfold(name) for name, number in zip(names, counts.values(), strict=True)},
    }
    notes = (
        "Like HUME's Table 1, but with the raters' mean for people: means over the tasks of a type in a language (their"
        " number in brackets); the last column is the mean over all tasks, not over groups",
        _left_out(material.wide, "as not all models have a score there"),
    )
    caption = "People and embedding models by type of task and language, scores times 100"
    return _exhibit(material, "groups", caption, frame, columns, notes)

"""Systems side by side in a study: its own transformations, or groups, compared on the originals that they share."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import pandas as pd

from annotation.statistics.summaries import Design
from annotation.statistics.systems import DIFFERENCES, SHARES, SYSTEMS, SideBySide, side_by_side
from annotation.verdicts.tables import display
from plumbline.exhibits.table import Cell, Exhibit, Row, cell, interval, number, numbers, reasons, word
from plumbline.fields import fields_of
from plumbline.languages import language_name
from plumbline.records import Pair
from plumbline.statistics.estimates import CONFIDENCE
from plumbline.study.subject import PAIRS, ItemNames, Subject
from plumbline.study.transformations import EIGHT

NONE = SideBySide(
    *(pd.DataFrame(columns=["language", *columns, "reason"]) for columns in (SYSTEMS, (*DIFFERENCES, *SHARES)))
)


def compared(ratings: pd.DataFrame, pairs: Sequence[Pair], design: Design, judging: Subject) -> SideBySide:
    """Return a study's systems side by side, over all languages (language "") and, if there are several, for each.

    `ratings` are those that count, of pairs with enough raters. Systems are what gets verdicts, without HTEB's
    transformations, which are no alternatives to one another. Originals are texts, or what stands beside a text. A
    label is compared by its share, if a rule of the study has it. There are no rows without a common original, nor with
    `raters.blocks`: each system stops at a look of its own, for which these intervals and p do not allow.
    """
    if design.blocks:
        return NONE
    originals = {pair.pair_id: original_of(pair, judging) for pair in pairs if pair.transformation not in EIGHT}
    rows = ratings.assign(original=ratings["pair_id"].map(originals)).dropna(subset="original")
    rows = rows[rows["original"] != ""].astype({"transformation": str, "language": str, "question": str})
    several = rows.groupby("original")["transformation"].nunique()
    rows = rows[rows["original"].isin(several.index[several > 1])]
    parts = [
        of_question.assign(question=asked(name, label), value=design.asked(name).numbers(of_question, label))
        for name, label in questions_of(design)
        if len(of_question := rows[rows["question"] == name])
    ]
    answers = pd.concat(parts) if parts else rows.head(0)
    higher = {asked(rule.question, rule.label) for rule in design.rule.rules if rule.at_least is not None}
    lower = {asked(rule.question, rule.label) for rule in design.rule.rules if rule.at_least is None} - higher
    by_language = dict(iter(answers.groupby("language")))
    tables = []
    for language, part in {"": answers, **(by_language if len(by_language) > 1 else {})}.items():
        done = side_by_side(part, over=design.rule.interval, lower_is_better=lower, system="transformation")
        tables.append([frame.assign(language=language) for frame in (done.systems, done.differences)])
    systems, differences = (pd.concat(frames, ignore_index=True) for frames in zip(*tables, strict=True))
    return SideBySide(systems, differences)


def questions_of(design: Design) -> list[tuple[str, str]]:
    """Return what systems are compared by: questions with points, and labels of rules."""
    rules = [(rule.question, rule.label) for rule in design.rule.rules if rule.label]
    return [*((name, "") for name in design.rated), *dict.fromkeys(rules)]


def asked(question: str, label: str) -> str:
    """Return the name of a question, or of a label in it, in tables."""
    return f"{label} in {question}" if label else question


def original_of(pair: Pair, judging: Subject) -> str:
    """Return what a pair shares with other systems' pairs; empty if nothing tells."""
    if not pair.fields:
        return f"{pair.language}: {pair.original}"
    context = [field.text for field in fields_of(pair) if field.name in judging.beside]
    return "\n".join([f"{pair.language}: ", *context]) if context else ""


def answers(done: SideBySide) -> Iterator[str]:
    """Yield a clause for each question, over all languages: which system is best, and how surely."""
    overall, differences = (frame[frame["language"] == ""] for frame in (done.systems, done.differences))
    for question, systems in overall.groupby("question", sort=False):
        best = systems.iloc[0]
        if math.isnan(best["mean"]):  # no original has ratings for all, so the order is of different originals
            continue
        others = differences[(differences["question"] == question) & (differences["system"] == best["system"])]
        alike = [_named(name) for name in others.loc[~(others["p_holm"] < 1 - CONFIDENCE), "other"]]
        apart = f"not told apart from {' and '.join(alike)}" if alike else "told apart from all others"
        if len(systems) == 2:
            outcome, row = "not told apart" if alike else "told apart", others.iloc[0]
            apart = f"{outcome} from {_named(row['other'])}, difference {_difference(row)}"
        yield f"{_named(best['system'])} has the best {question} ({number(best['mean'])}, {apart})"


def _difference(row: Row) -> str:
    return interval(row["difference"], row["low"], row["high"], functools.partial(number, sign="+"))


def systems_exhibit(done: SideBySide, called: ItemNames = PAIRS) -> Exhibit:
    """Return a row for each question and system: its mean over the originals that all have, and its rank."""
    columns: dict[str, Cell] = {
        "Question": "question",
        **_languages(done.systems),
        called.judged.capitalize(): cell("system", _named),
        "Mean": numbers("mean"),
        "Originals": "n",
        "Rank [95%]": lambda row: f"{word(row['rank'])} [{row['rank_low']}, {row['rank_high']}]",
        "Group": "group",
    }
    notes = [
        "means are over the originals that all have ratings for; those that share a letter (Group) are not told apart",
        *reasons(_places(done.systems), done.systems["reason"]),
    ]
    caption = f"{called.judged.capitalize()}s side by side, on the same originals"
    return Exhibit.of("side_by_side", caption, done.systems, columns, notes)


def differences_exhibit(done: SideBySide, called: ItemNames = PAIRS) -> Exhibit:
    """Return a row for each question and two systems: their paired difference."""
    columns: dict[str, Cell] = {
        "Question": "question",
        **_languages(done.differences),
        called.judged.capitalize(): cell("system", _named),
        "Other": cell("other", _named),
        "Difference [95%]": _difference,
        "p (Holm)": lambda row: "<0.0001" if row["p_holm"] < 0.0001 else number(row["p_holm"], 4),
        "Better / equal / worse": lambda row: " / ".join(f"{row[name]:.0%}" for name in SHARES),
        "Originals": "n",
    }
    systems = done.differences["system"].map(_named) + " and " + done.differences["other"].map(_named)
    notes = [
        "differences of means over the originals that both have ratings for, by the paired t-test; p is corrected by"
        " Holm for all differences of a question",
        *reasons(_places(done.differences) + ", " + systems, done.differences["reason"]),
    ]
    caption = f"Differences between {called.judged}s on the same originals"
    return Exhibit.of("differences", caption, done.differences, columns, notes)


def _named(name: object) -> str:
    return display(str(name), pooled=False)


def _places(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the question of each row, with its language if it is about one."""
    return frame["question"] + frame["language"].map(lambda code: f" ({language_name(code)})" if code else "")


def _languages(frame: pd.DataFrame) -> dict[str, Cell]:
    """Return the column of languages, if there are several."""
    several = (frame["language"] != "").any()
    return {"Language": cell("language", lambda code: language_name(code) if code else "all")} if several else {}

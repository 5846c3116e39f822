"""Systems by preference in a study: choices between outputs of one text, and rankings of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from annotation.statistics.preferences import CHOICES, COUNTS, SYSTEMS, bradley_terry
from annotation.statistics.summaries import Design
from annotation.statistics.systems import SHARES, SideBySide
from annotation.verdicts.systems import (
    apart_words,
    by_language,
    by_test,
    difference_words,
    excluded_note,
    from_next,
    in_languages,
    languages,
    p_words,
    places_of,
    rank_words,
    scope_of,
)
from plumbline.exhibits.table import Cell, Exhibit, Row, interval, number, reasons
from plumbline.fields import fields_of, systems_of
from plumbline.records import Pair
from plumbline.study.subject import TEXT
from plumbline.words import count, printable_line

NO_CHOICES = SideBySide(
    pd.DataFrame(columns=["language", *SYSTEMS, "reason"]), pd.DataFrame(columns=["language", *CHOICES, "reason"])
)
_COLUMNS = ("system", "opponent", "preferred", "original", "rater_id", "question", "language")


def preferred(ratings: pd.DataFrame, pairs: Sequence[Pair], design: Design) -> SideBySide:
    """Return a study's systems by preference, over all languages (language "") and, if there are several, for each.

    `ratings` are those that count, of pairs with enough raters. Choices of the best and of the worst output are one
    question if the rubric says so (`worst_of`). There are no rows without pairs that name the systems behind labels
    (`subject.systems`).
    """
    choices = pd.DataFrame(_choices(ratings, pairs, design), columns=list(_COLUMNS))
    if choices.empty:
        return NO_CHOICES
    several = (pair for pair in pairs if systems_of(pair))
    compare = functools.partial(bradley_terry, over=design.rule.interval)
    return by_language(choices, compare, several, design.rule.min_raters)


def _choices(ratings: pd.DataFrame, pairs: Sequence[Pair], design: Design) -> Iterator[tuple[str, ...]]:
    """Yield a row for each two systems that a rater compared on a text; contradicting answers make them equal."""
    compared = {pair.pair_id: (pair, systems) for pair in pairs if (systems := systems_of(pair))}
    texts = {
        pair_id: next((field.text for field in fields_of(pair) if field.name == TEXT), "")
        for pair_id, (pair, _) in compared.items()
    }
    titles, signs = _asked(design, [systems for _, systems in compared.values()])
    gains = dict[tuple[str, str, str], dict[tuple[str, str], int]]()
    rows = ratings[ratings["pair_id"].isin(compared.keys()) & ratings["question"].isin(titles.keys())]
    columns = rows[["question", "pair_id", "rater_id", "answer"]].astype(str)
    for name, pair_id, rater, answer in columns.itertuples(index=False, name=None):
        question, (_, systems) = design.asked(name), compared[pair_id]
        of_rater = gains.setdefault((titles[name], pair_id, rater), {})
        for label, rival, gain in question.preferences(answer, [name for name in question.labels if name in systems]):
            first, second = sorted((systems[label], systems[rival]))
            turned = signs[name] if first == systems[label] else -signs[name]
            of_rater[first, second] = of_rater.get((first, second), 0) + turned * gain
    for (title, pair_id, rater), of_rater in gains.items():
        language = compared[pair_id][0].language
        for (first, second), gain in of_rater.items():
            if first != second:
                chosen = first if gain > 0 else second if gain < 0 else ""
                yield first, second, chosen, f"{language}: {texts[pair_id]}", rater, title, language


def _asked(design: Design, systems: Collection[Mapping[str, str]]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the questions that compare systems: the title of each in tables, and 1 if it asks for the best, else -1.

    Of several systems a label may be the best or the worst: without the rubric or a rule that says which, the question
    compares nothing. `systems` are those behind the labels of each pair.
    """
    questions, titles, signs = [design.asked(name) for name in design.questions], dict[str, str](), dict[str, int]()
    worst_by_best = {question.worst_of: question.name for question in questions if question.worst_of}
    labels, several = set().union(*systems), any(len(set(by_label.values())) > 2 for by_label in systems)
    for question in questions:
        best, is_worst = question.worst_of or question.name, question.lower_is_better
        if is_worst is None and question.picks_one and several and best not in worst_by_best:
            rules = [rule for rule in design.rule.rules if rule.question == question.name and rule.label in labels]
            if not rules:
                continue
            is_worst = all(rule.at_least is None for rule in rules)
        titles[question.name] = f"{best} and {worst_by_best[best]}" if best in worst_by_best else best
        signs[question.name] = -1 if is_worst else 1
    return titles, signs


def answers(done: SideBySide) -> Iterator[str]:
    """Yield a clause for each question, over all languages: which system is preferred, and how surely."""
    overall, choices = (frame[frame["language"] == ""] for frame in (done.systems, done.differences))
    for question, systems in overall.groupby("question", sort=False):
        best, score = systems.iloc[0], systems.iloc[0]["score"]
        if best["rank"] != 1:
            why = "not all were compared" if math.isnan(best["rank"]) else "to each another is preferred"
            yield f"No system is preferred most in {question}: {why}"
            continue
        others = choices[(choices["question"] == question) & (choices["system"] == best["system"])]
        if len(systems) == 2:
            by = f"difference of shares {difference_words(others.iloc[0])}"
        else:
            by = f"shares of choices: {from_next(others, systems['system'].iloc[1], _named)}"
        counts = [count(best["wins"], "win"), count(best["ties"], "tie"), count(best["losses"], "loss", "losses")]
        strength = "" if math.isnan(score) else f", Bradley-Terry score {number(score, sign='+')}"
        of_best = (done.systems["question"] == question) & (done.systems["system"] == best["system"])
        texts = f"; texts: {parts}" if (parts := in_languages(done.systems[of_best])) else ""
        most = f"{_named(best['system'])} is preferred most ({question}: {', '.join(counts)}{strength}{texts})"
        yield f"{most}. It is {apart_words(others, _named)} ({by})"


def preferences_exhibit(done: SideBySide) -> Exhibit:
    """Return a row for each question and system: its wins, its Bradley-Terry score, and its rank."""
    columns: dict[str, Cell] = {
        "Question": "question",
        **languages(done.systems),
        "System": lambda row: _named(row["system"]),
        "Wins / ties / losses": _counts,
        "Score [95%]": lambda row: interval(row["score"], row["low"], row["high"]),
        "Texts": "n",
        "Rank [95%]": rank_words,
        "Letters": "group",
    }
    notes = [
        "Scores are Bradley and Terry's, with a tie as half a win for either: 0 is the mean system, and at a difference"
        " of 1 the better one is preferred 73% of the time; those that share a letter are not told apart",
        "Ranks, their intervals and letters are by the differences between each two, and need not follow the scores",
        *excluded_note(done),
        *reasons(places_of(done.systems), done.systems["reason"]),
    ]
    return Exhibit.of("preferences", "Systems by preference", done.systems, columns, notes)


def choices_exhibit(done: SideBySide) -> Exhibit:
    """Return a row for each question and two systems: the choices between them, and the difference of their shares."""
    columns: dict[str, Cell] = {
        "Question": "question",
        **languages(done.differences),
        "System": lambda row: _named(row["system"]),
        "Other": lambda row: _named(row["other"]),
        "Wins / ties / losses": _counts,
        "Shares": lambda row: " / ".join(number(row[name], 0, times=100, unit="%") for name in SHARES),
        "Difference [95%]": difference_words,
        "p (Holm)": p_words,
        "Texts": "n",
    }
    systems = done.differences["system"].map(_named) + " and " + done.differences["other"].map(_named)
    notes = [
        "Differences are of the share of choices for the system and of that for the other, the mean over texts,"
        f" {by_test(done)}; an interval is of one difference alone, p and letters are corrected by Holm for all"
        f" differences of {scope_of(done)}",
        *excluded_note(done),
        *reasons(places_of(done.differences) + ", " + systems, done.differences["reason"]),
    ]
    return Exhibit.of("choices", "Choices between systems", done.differences, columns, notes)


def _counts(row: Row) -> str:
    return " / ".join(str(row[name]) for name in COUNTS)


def _named(name: object) -> str:
    return printable_line(str(name))

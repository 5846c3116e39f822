"""Systems by preference in a study: choices between outputs of one text, and rankings of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from annotation.statistics.preferences import CHOICES, COUNTS, SYSTEMS, bradley_terry
from annotation.statistics.summaries import Design
from annotation.statistics.systems import SHARES, SideBySide
from annotation.verdicts.systems import difference_words, languages, p_words, places_of, rank_words
from plumbline.exhibits.table import Cell, Exhibit, Row, interval, number, reasons
from plumbline.fields import fields_of, systems_of
from plumbline.records import Pair
from plumbline.statistics.estimates import CONFIDENCE
from plumbline.study.subject import TEXT
from plumbline.words import count, printable_line

NO_CHOICES = SideBySide(
    pd.DataFrame(columns=["language", *SYSTEMS, "reason"]), pd.DataFrame(columns=["language", *CHOICES, "reason"])
)
_COLUMNS = ("system", "opponent", "preferred", "original", "rater_id", "question", "language")


def preferred(ratings: pd.DataFrame, pairs: Sequence[Pair], design: Design) -> SideBySide:
    """Return a study's systems by preference, over all languages (language "") and, if there are several, for each.

    `ratings` are those that count, of pairs with enough raters. There are no rows without pairs that name the systems
    behind labels (`subject.systems`), nor with `raters.blocks`.
    """
    choices = pd.DataFrame([] if design.blocks else _choices(ratings, pairs, design), columns=list(_COLUMNS))
    if choices.empty:
        return NO_CHOICES
    by_language = dict(iter(choices.groupby("language")))
    tables = []
    for language, part in {"": choices, **(by_language if len(by_language) > 1 else {})}.items():
        done = bradley_terry(part, over=design.rule.interval)
        tables.append([frame.assign(language=language) for frame in (done.systems, done.differences)])
    systems, differences = (pd.concat(frames, ignore_index=True) for frames in zip(*tables, strict=True))
    return SideBySide(systems, differences)


def _choices(ratings: pd.DataFrame, pairs: Sequence[Pair], design: Design) -> Iterator[tuple[str, ...]]:
    """Yield a row for each two systems that an answer compares."""
    compared = {pair.pair_id: (pair, systems) for pair in pairs if (systems := systems_of(pair))}
    texts = {
        pair_id: next((field.text for field in fields_of(pair) if field.name == TEXT), "")
        for pair_id, (pair, _) in compared.items()
    }
    answers = ratings[ratings["pair_id"].isin(compared.keys())]
    for name, of_question in answers.groupby("question", sort=False, observed=True):
        question = design.asked(str(name))
        columns = of_question[["pair_id", "rater_id", "answer"]].astype(str)
        for pair_id, rater, answer in columns.itertuples(index=False, name=None):
            pair, systems = compared[pair_id]
            labels = [label for label in question.labels if label in systems]
            of_several = question.picks_one and len({systems[label] for label in labels}) > 2
            sign = _sign(design, str(name), labels) if of_several else 1
            if not sign:
                continue
            twos = {
                (systems[first], systems[second], gain) for first, second, gain in question.preferences(answer, labels)
            }
            for first, second, gain in twos:
                if first != second:
                    chosen = {1: first, 0: "", -1: second}[gain * sign]
                    yield first, second, chosen, f"{pair.language}: {texts[pair_id]}", rater, str(name), pair.language


def _sign(design: Design, question: str, labels: Sequence[str]) -> int:
    """Return 1 if the rules on labels want many answers, as for the best of several, -1 if few, 0 without a rule."""
    rules = [rule for rule in design.rule.rules if rule.question == question and rule.label in labels]
    return (1 if any(rule.at_least is not None for rule in rules) else -1) if rules else 0


def answers(done: SideBySide) -> Iterator[str]:
    """Yield a clause for each question, over all languages: which system is preferred, and how surely."""
    overall, choices = (frame[frame["language"] == ""] for frame in (done.systems, done.differences))
    for question, systems in overall.groupby("question", sort=False):
        best, score = systems.iloc[0], systems.iloc[0]["score"]
        others = choices[(choices["question"] == question) & (choices["system"] == best["system"])]
        # Not compared with all, or another is preferred to it by the mean over texts: it may not be the best.
        if (math.isnan(score) and not others["n"].all()) or best["rank_low"] > 1:
            continue
        alike = list(map(_named, others.loc[~(others["p_holm"] < 1 - CONFIDENCE), "other"]))
        apart = f"not told apart from {' and '.join(alike)}" if alike else "told apart from all others"
        if len(systems) == 2:
            apart += f", difference of shares {difference_words(others.iloc[0])}"
        counts = [count(best["wins"], "win"), count(best["ties"], "tie"), count(best["losses"], "loss", "losses")]
        strength = "" if math.isnan(score) else f", Bradley-Terry score {number(score, sign='+')}"
        yield f"{_named(best['system'])} is preferred most ({question}: {', '.join(counts)}{strength}, {apart})"


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
        "scores are Bradley and Terry's, with a tie as half a win for either: 0 is the mean system, and at a difference"
        " of 1 the better one is preferred 73% of the time; those that share a letter are not told apart",
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
        "differences are of the share of choices for the system and of that for the other, the mean over texts, by the"
        " paired t-test; p is corrected by Holm for all differences of a question",
        *reasons(places_of(done.differences) + ", " + systems, done.differences["reason"]),
    ]
    return Exhibit.of("choices", "Choices between systems", done.differences, columns, notes)


def _counts(row: Row) -> str:
    return " / ".join(str(row[name]) for name in COUNTS)


def _named(name: object) -> str:
    return printable_line(str(name))

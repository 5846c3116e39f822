"""Frames for people to read: words for names, two digits. The only number computed is a mean minus its threshold.

Streamlit puts this folder first on the import path, so no module here may have the name of a package that others
import (PyTables is called `tables`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from annotation.records import Look, Verdict
from annotation.status.progress import PEOPLE_REPORT, Stage
from annotation.verdicts.tables import AT_LEAST, at_least, display, number, rated, scoped, with_interval
from generation.output_tables import OVERALL, RATES
from plumbline.error_types import LABELS
from plumbline.exhibits.palette import GAIN, LOSS
from plumbline.statistics.estimates import Estimate
from plumbline.study.subject import ItemNames

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

# A mark, a word and a tint that can be read on a light and on a dark page: never colour alone.
DECISIONS = {"accepted": "✔ accepted", "rejected": "✘ rejected", "undecided": "? undecided"}
STATES = {"done": "✔ done", "stale": "⚠ stale", "under way": "… running", "not yet": "– not yet"}
_TINTS = {"accepted": f"{GAIN}40", "rejected": f"{LOSS}66", "undecided": "#99999940"}


_STAGES = {
    "texts": "the data sets' distinct texts",
    "transformations": "the generator's outputs for these texts",
    "sample": "pairs of original and transformed text, drawn for raters",
    "published": "the pairs in Argilla, where raters see them",
    "collected": "raters' answers, fetched into the study",
    "verdicts": "which transformations people accept",
    "report": "a page on the campaign",
    "scores": "models' scores on original and on accepted transformed texts",
}
# For a subject other than pairs.
_OF_ITEMS = _STAGES | {
    "texts": "the texts in the study's files or data sets",
    "sample": "the items drawn for raters",
    "published": "the sample in Argilla, where raters see it",
    "verdicts": "which groups people accept",
    PEOPLE_REPORT: "a page on people and models on the same items",
}


def stage_frame(stages: Mapping[str, Stage], *, items: bool = False) -> pd.DataFrame:
    """Return the study's stages, a row each; `items`: the subject is not pairs."""
    meanings = _OF_ITEMS if items else _STAGES
    rows = [
        {
            "Stage": stage.name,
            "State": STATES[stage.state],
            "What it is": meanings[stage.name],
            "Last ended": f"{stage.at:%Y-%m-%d %H:%M} UTC" if stage.at else "",
            "Note": stage.note,
        }
        for stage in stages.values()
        if stage.wanted
    ]
    return pd.DataFrame(rows)


def look_frame(looks: Sequence[Look]) -> pd.DataFrame:
    """Looks at results, a row each: time, number of ratings, verdicts and rule."""
    rows = [
        {
            "When": f"{look.at:%Y-%m-%d %H:%M} UTC",
            "Ratings": look.n_ratings,
            "Verdicts": ", ".join(f"{n} {name}" for name, n in look.decisions.items()),
            "Rule": look.rule_id[:8],
        }
        for look in looks
    ]
    return pd.DataFrame(rows)


def coverage_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of scores, a row for each transformation, a column for each status."""
    words = {"evaluated": "Evaluated", "included_rejected": "Included, not accepted", "left_out": "Left out"} | {
        "failed": "Model failed"
    }
    statuses = [status for status in words if status in set(table["status"])]
    wide = table.pivot(index="transformation", columns="status", values="n").fillna(0).astype(int)
    wide = wide.loc[list(table["transformation"].drop_duplicates()), statuses].rename(columns=words)
    wide.insert(0, "Transformation", [display(str(name), pooled=False) for name in wide.index])
    return wide.reset_index(drop=True)


def progress_frame(table: pd.DataFrame, called: ItemNames) -> pd.DataFrame:
    """`annotation.status.progress.by_transformation` in words."""
    items = f"{called.item}s".capitalize()
    heads = {
        "verdict": "Verdict",
        "language": "Language",
        "pairs": items,
        "enough": f"{items} with enough raters",
        "complete": f"{items} with all raters",
        "counting": "Answers that count",
        "wanted": "Wanted",
        "open": "Answers still open",
        "drafts": "Drafts",
        "discarded": "Discarded",
        "surplus": "Surplus",
        "excluded": "Excluded",
        "withdrawn": f"{items} withdrawn",
    }
    shown = table.rename(columns=heads)[list(heads.values())]
    shown.insert(0, called.judged.capitalize(), [display(name, pooled=False) for name in table["transformation"]])
    return shown


def rater_frame(table: pd.DataFrame) -> pd.DataFrame:
    """`annotation.status.progress.by_rater` in words."""
    heads = {
        "rater_id": "Pseudonym",
        "who": "Who",
        "answers": "Answers",
        "open": "Left to answer",
        "drafts": "Drafts",
        "discarded": "Discarded",
        "last": "Last answer (UTC)",
        "behind": "Reason for being behind",
        "signs": "Signs",
        "excluded": "Excluded",
        "out": "Removed",
    }
    shown = table.assign(
        who=table["simulated"].map({True: "simulated", False: "person"}),
        open=["" if pd.isna(n) else str(int(n)) for n in table["open"]],  # unknown if the study names no raters
        last=[f"{at:%Y-%m-%d %H:%M}" if pd.notna(at) else "" for at in table["last"]],
        excluded=table["excluded"].map({True: "excluded", False: ""}),
        out=table["out"].map({True: "removed", False: ""}),
    )
    return shown.rename(columns=heads)[list(heads.values())]


def to_read_frame(table: pd.DataFrame, called: ItemNames) -> pd.DataFrame:
    """`annotation.ratings.review.pairs_to_read` in words."""
    pairs, items = called.item == "pair", called.item.capitalize()
    heads = {
        "language": "Language",
        "question": "Question",
        "lowest": "Lowest",
        "highest": "Highest",
        "mean": "Mean",
        "n_ratings": "Ratings",
        "comments": "Comments",
        **({"original": "Original", "transformed": "Transformed"} if pairs else {"original": items}),
    }
    shown = table.assign(mean=[number(value) for value in table["mean"]]).rename(columns=heads)[list(heads.values())]
    shown.insert(0, called.judged.capitalize(), [display(name, pooled=False) for name in table["transformation"]])
    return shown


def verdict_frame(table: pd.DataFrame, verdicts: Sequence[Verdict], called: ItemNames) -> Styler:
    """`verdicts.tables.verdict_table` for the page: decision first, means and agreement with intervals."""
    rows = []
    for row, verdict in zip(table.to_dict(orient="records"), verdicts, strict=True):
        shown = {
            called.judged.capitalize(): display(row["transformation"], pooled=False),
            "Language": f"{row['language']} {row['task_type']}".strip(),
            "Decision": DECISIONS[row["decision"]],
            **({"People alone": DECISIONS[verdict.alone]} if verdict.decision_people else {}),
        }
        for summary in rated(verdict.questions):
            name, mean = summary.question, summary.mean
            shown[f"{name.capitalize()} [95% interval]"] = with_interval(
                Estimate(value=mean, low=summary.low, high=summary.high)
            )
            if not verdict.rules:
                shown[f"{name.capitalize()} − {verdict.threshold:g}"] = signed(mean - verdict.threshold)
            for word, coefficient in (("AC2", summary.ac2), ("alpha", summary.alpha)):
                shown[f"{word} ({name}) [95% interval]"] = with_interval(coefficient)
            shown[f"{AT_LEAST} ({name})"] = at_least(summary)
        shown |= {
            f"{called.item}s".capitalize(): row["n_pairs"],
            "Ratings": row["n_ratings"],
            "Reasons": row["reasons"],
        }
        shown["Raters"] = "simulated" if row["simulated"] else "people"
        rows.append(shown)
    return tinted(pd.DataFrame(rows), "Decision")


def turned_frame(now: pd.DataFrame, then: pd.DataFrame, called: ItemNames) -> Styler:
    """Decisions at the study's threshold and at another, from frames of `threshold_decisions`; changed ones first."""
    keys = ["transformation", "language", "task_type"]
    both = now.merge(then, on=keys, suffixes=("_now", "_then"))
    both = both.assign(turned=both["decision_now"] != both["decision_then"]).sort_values(
        "turned", ascending=False, kind="stable"
    )
    rows = [
        {
            called.judged.capitalize(): display(row["transformation"], pooled=False),
            "Language": f"{row['language']} {row['task_type']}".strip(),
            f"At {row['threshold_now']:g} (the study's)": DECISIONS[row["decision_now"]],
            f"At {row['threshold_then']:g}": DECISIONS[row["decision_then"]],
            "Change": "changed" if row["turned"] else "",
        }
        for row in both.to_dict(orient="records")
    ]
    frame = pd.DataFrame(rows)
    return tinted(frame, *frame.columns[2:4])


def rescored_frame(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Scores times 100 at thresholds, from `threshold_table`: a row a model and threshold."""
    from evaluation.report.charts import series_name  # noqa: PLC0415 (the first page goes without)

    rows = [
        {"Model": row["model"], "Threshold": f"{row['threshold']:g}", "Original": number(100 * row["original"])}
        | {series_name(name): number(100 * row[name]) for name in names}
        | {"Accepted": row["n_scopes"], "What is missing": row["reason"]}
        for row in table.to_dict(orient="records")
    ]
    return pd.DataFrame(rows)


def quality_frame(table: pd.DataFrame) -> Styler:
    """`evaluation.benchmarks check`'s table in words, each verdict with a mark and a tint."""
    words = {"pass": "✔ pass", "look": "? look", "fail": "✘ fail"}
    tints = dict(zip(words.values(), (_TINTS["accepted"], _TINTS["undecided"], _TINTS["rejected"]), strict=True))
    shown = pd.DataFrame(
        {
            "Task": table["task"],
            "Check": table["check"].str.replace("_", " "),
            "Verdict": table["verdict"].map(lambda name: words.get(name, name)),
            "Reason": table["reason"],
            "Value": ["" if pd.isna(value) else f"{value:g}" for value in table["value"]],
            "Threshold": table["threshold"],
            "Rows": table["rows_file"],
        }
    )
    return shown.style.map(
        lambda value: f"background-color: {tints[value]}" if value in tints else "", subset=["Verdict"]
    )


def refusals(table: pd.DataFrame) -> list[str]:
    """Return a line for each verdict of `verdict_table` that does not accept, with its reasons."""
    return [
        f"{scoped(row['transformation'], row['language'], row['task_type'])}, {row['decision']}: {row['reasons']}"
        for row in table[table["decision"] != "accepted"].to_dict(orient="records")
    ]


def tinted(frame: pd.DataFrame, *columns: str) -> Styler:
    """A frame whose columns of decisions have their tints."""
    tints = {DECISIONS[name]: f"background-color: {tint}" for name, tint in _TINTS.items()}
    return frame.style.map(lambda value: tints.get(value, ""), subset=list(columns))


def signed(value: float) -> str:
    """A difference with its sign; an undefined one is a dash."""
    return number(value) if math.isnan(value) else f"{value:+.2f}".replace("-", "−")


def error_frame(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """`generation.output_tables.error_rates` in words, rates in % with two digits."""
    heads = {str(flag): label.removesuffix(" Rate") for flag, label in LABELS.items()} | {RATES[-1]: "Total"}
    shown = table.rename(columns={"generator": "Generator", by: by.capitalize()} | heads)
    if by == "transformation":
        shown["Transformation"] = [display(name, pooled=False) for name in table[by]]
    for head in heads.values():
        shown[head] = [number(value) for value in shown[head]]
    shown["language_told"] = [number(value) for value in table["language_told"]]
    counts = {"n": "Outputs", "failed": "Failed", "unanswered": "Unanswered", "language_told": "Language detected, %"}
    return shown.rename(columns=counts)


def length_frame(table: pd.DataFrame) -> pd.DataFrame:
    """`generation.output_tables.length_table` in words, two digits; differences are to the first generator."""
    heads = {
        "generator": "Generator",
        "datasets": "Data sets",
        "texts": "Texts",
        "original": "Words before",
        "words": "Words after",
        "ratio": "Ratio",
        "distance": "Edit distance",
        "failed": "Failed, %",
        "unanswered": "Unanswered, %",
    }
    exact = {"generator", "datasets", "texts"}
    shown = pd.DataFrame({"Of": [_length_name(row) for row in table.to_dict(orient="records")]})
    for name, head in heads.items():
        for column, title in ((name, head), (f"{name}_difference", f"{head}: difference")):
            if column in table:
                shown[title] = list(table[column]) if name in exact else [number(value) for value in table[column]]
    return shown


def _length_name(row: Mapping[Hashable, Any]) -> str:
    """A transformation, indented below its axis."""
    name = str(row["name"])
    if name == OVERALL:
        return "Overall"
    return display(name) if name == row["axis"] else f"  {display(name, pooled=False)}"

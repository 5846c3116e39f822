"""`plumbline ratings-report`: one HTML page for readers and reviewers, and its tables as CSV, in `report/`.

Raters are in it by pseudonym. Their comments are not: people write names into them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.judges.check import PEOPLE_DECIDE
from annotation.records import P_IS
from annotation.report import exhibits
from annotation.report.charts import looks_charts, mean_intervals, means_in_words, rating_shares, shares_in_words
from annotation.report.exhibits import shares_frame, stamp
from annotation.report.material import CampaignMaterial, read_material
from annotation.report.methods import INTERVALS, P_BY, methods
from annotation.status.status import Status, read_status
from annotation.status.text import headline
from annotation.verdicts.doubts import looked_for
from annotation.verdicts.evidence import Evidence
from annotation.verdicts.preferences import choices_exhibit, preferences_exhibit
from annotation.verdicts.preregistration import amendment_lines, fixed_text
from annotation.verdicts.rules import late_lines, unchecked
from annotation.verdicts.systems import best_first, differences_exhibit, systems_exhibit
from annotation.verdicts.tables import (
    CARDS,
    SIMULATED,
    agreement_exhibit,
    cards,
    display,
    joined,
    legend_of,
    looks_exhibit,
    looks_frame,
    means_frame,
    rule_chances,
    unbiased_exhibit,
)
from plumbline.exhibits.page import Figure, Part, Section, write_page
from plumbline.exhibits.table import Exhibit, csv_bytes, write_files
from plumbline.exhibits.templates import blocks
from plumbline.fields import fields_of
from plumbline.study import Study
from plumbline.words import sentence

EACH = 3  # pairs of each kind
_LONGEST = 300  # characters of a text on the page; the CSV file has all
_COLUMNS = ["why", "pair_id", "transformation", "language", "question", "mean", "sd", "n_ratings", "texts"]


def examples_exhibit(material: CampaignMaterial) -> Exhibit:
    """Return the pairs with the highest and lowest means and with the largest differences, a row each.

    They are chosen by the first question with a scale, among pairs with at least `acceptance.min_raters` ratings; among
    equal pairs the first by id. A pair appears under one heading only.
    """
    caption = f"Examples: the best, the worst and the most disputed {material.study.called.item}s"
    frame = examples(material)
    printed = pd.DataFrame(
        {
            "Example": frame["why"],
            material.study.called.judged.capitalize(): [
                display(name, pooled=False) for name in frame["transformation"]
            ],
            "Mean": frame["mean"].map("{:.2f}".format),
            "SD": frame["sd"].map("{:.2f}".format),
            "Ratings": frame["n_ratings"].map(str),
            "Texts": [
                "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in text.splitlines())
                for text in frame["texts"]
            ],
        }
    )
    return Exhibit("examples", caption, frame, printed)


def examples(material: CampaignMaterial) -> pd.DataFrame:
    """Return the examples with whole texts: why, pair_id, transformation, language, question, mean, sd, ...

    `sd` is the sample standard deviation of the pair's ratings; `texts` is what raters read, field by field.
    """
    if not material.questions:
        return pd.DataFrame(columns=_COLUMNS)
    question = material.questions[0]
    ratings = material.counting[(material.counting["question"] == question) & material.counting["value"].notna()]
    rated = ratings.groupby("pair_id", observed=True)["value"].agg(["mean", "std", "size"]).astype(float).reset_index()
    rated = rated[rated["size"] >= max(2, material.study.acceptance.min_raters)]
    rated.columns = pd.Index(["pair_id", "mean", "sd", "n_ratings"])
    kinds = (
        ("most disputed", ["sd", "pair_id"], [False, True]),
        ("best", ["mean", "pair_id"], [False, True]),
        ("worst", ["mean", "pair_id"], [True, True]),
    )
    parts = {}
    for kind, by, ascending in kinds:
        some = rated[rated["sd"] > 0] if kind == "most disputed" else rated
        parts[kind] = some.sort_values(by, ascending=ascending).head(EACH).assign(why=kind)
        rated = rated[~rated["pair_id"].isin(parts[kind]["pair_id"])]
    chosen = pd.concat([parts["best"], parts["worst"], parts["most disputed"]])
    pairs = {pair.pair_id: pair for pair in material.pairs}
    example_pairs = [pairs[pair_id] for pair_id in chosen["pair_id"]]
    return chosen.assign(
        question=question,
        n_ratings=chosen["n_ratings"].astype(int),
        transformation=[pair.transformation for pair in example_pairs],
        language=[pair.language for pair in example_pairs],
        texts=["\n".join(f"{field.name}: {field.text}" for field in fields_of(pair)) for pair in example_pairs],
    )[_COLUMNS].reset_index(drop=True)


FOLDER = "report"
SIDE_BY_SIDE = ("side_by_side", "differences", "preferences", "choices")
#: Headings with the names of their parts: blocks of `page.jinja`, lists of lines, tables, and figures.
OUTLINE = {
    # Before the details, so that nobody reads these without it.
    "What is doubtful": ("doubts", "nothing_doubtful"),
    "What was decided": ("counted", "unchecked", "amended", "unknown", "of_verdicts", "verdicts"),
    "Side by side": SIDE_BY_SIDE,
    "Judges beside people": ("of_judges", "judges", "related", "judges_simulated", "judges_means"),
    "Examples": ("of_examples", "examples"),
    "Methods": ("methods",),
    "Ratings and agreement": ("no_ratings", "ratings_by_point", "table_2", "agreement", "labels"),
    "What people answered": ("of_answers", "answers"),
    "Looks after blocks": ("paths", "looks_after_blocks", "unbiased_means"),
    "Reliability": ("of_reliability", "reliability"),
    "Known labels": ("of_truth", "truth"),
    "Raters": ("of_raters", "asked", "raters", "training", "no_signs", "signs", "unlooked"),
    "Decisions and exclusions": ("of_decisions", "decisions", "exclusions"),
    "Crowd work": ("crowd_campaigns",),
    "Rules": ("fixed", "unchanged", "amendments", "rules", "wording"),
    "This report": ("description", "about", "privacy"),
}
_OPEN = {"What is doubtful", "What was decided", "Side by side", "Examples", "What people answered"}
SHARES, MEANS = "ratings_by_point", "means"  # files with the numbers of the figures


def write_report(study: Study, at: datetime | None = None) -> tuple[Path, Status]:
    """Write `report/index.html`, its tables and figures as CSV, and tables of systems as LaTeX too.

    Returns the page, and the study's status. Raises DataError before there are verdicts, and for verdicts that no
    longer follow from what is on disk.
    """
    evidence = Evidence(study)
    material = read_material(evidence, at)
    tables, drawn = all_tables(material), dict[str, pd.DataFrame]()
    ordered = best_first(material.verdicts, material.side_by_side)
    if material.questions:
        drawn = {SHARES: shares_frame(material), MEANS: means_frame(ordered)}
    folder = study.folder / FOLDER
    frames = {table.name: table.frame for table in tables.values()} | drawn
    files = {f"{name}.csv": csv_bytes(frame) for name, frame in frames.items()}
    for name in filter(tables.keys().__contains__, SIDE_BY_SIDE):
        files |= replace(tables[name], questions=_facts(tables[name], material)).files("")
    write_files(folder, files)
    page = folder / "index.html"
    title = f"What people decided: study {study.name}"
    status = read_status(evidence, material.read_at, material.verdicts)
    sentences = headline(status, material.verdicts, material.side_by_side, material.preferred, reported=True)
    shown = cards(ordered, material.rubric, study.called)
    figures = _figures(material, drawn) if drawn else dict[str, list[Figure]]()
    short = Section("In short", [*sentences, *shown, *legend_of(shown), *figures.pop(MEANS, ())])
    warning = " ".join([*([SIMULATED] if material.simulated else []), *late_lines(material.verdicts)])
    write_page(page, title, warning, [short, *sections(material, tables, figures)])
    return page, status


def _facts(table: Exhibit, material: CampaignMaterial) -> dict[str, str]:
    """Return what a paper's caption says of each question: its scale, and how many originals or texts were compared."""
    facts, noun = dict[str, str](), "originals" if table.name in SIDE_BY_SIDE[:2] else "texts"
    for name, n in table.frame.groupby("question", sort=False)["n"]:
        ends = material.rubric.scale_of(str(name)) if name in material.questions else ()
        scale = f"scale {ends[0]:g} to {ends[-1]:g}, " if ends else ""
        facts[str(name)] = f"{scale}n = {' to '.join(dict.fromkeys((f'{n.min():,}', f'{n.max():,}')))} {noun}"
    return facts


def all_tables(material: CampaignMaterial) -> dict[str, Exhibit]:
    """Return the tables by name, in the page's order; some may be empty."""
    verdicts, called = material.verdicts, material.study.called
    compared = (material.side_by_side, called)
    candidates = [
        exhibits.verdicts_exhibit(material),
        examples_exhibit(material),
        exhibits.table_two_exhibit(material),
        agreement_exhibit(material.groups, called),
        systems_exhibit(*compared),
        differences_exhibit(*compared),
        preferences_exhibit(material.preferred),
        choices_exhibit(material.preferred),
        exhibits.labels_exhibit(material),
        looks_exhibit(looks_frame(verdicts), called),
        unbiased_exhibit(verdicts, called),
        exhibits.reliability_exhibit(material),
        exhibits.truth_exhibit(material),
        exhibits.raters_exhibit(material),
        exhibits.signs_exhibit(material),
        exhibits.decisions_exhibit(material),
        *([exhibits.asked_exhibit(material.asked_for)] if material.asked_for else []),
        exhibits.exclusions_exhibit(material),
        exhibits.rules_exhibit(material),
        exhibits.wording_exhibit(material),
        exhibits.amendments_exhibit(material),
        *([exhibits.training_exhibit(material)] if material.trained else []),
        *([exhibits.campaigns_exhibit(material)] if material.crowd else []),
        *([exhibits.means_exhibit(material, material.judges)] if material.judges is not None else []),
    ]
    tables = {table.name: table for table in candidates}
    # Leave out tables of labels if all questions have scales, and tables of ratings if none has.
    some = ("looks_after_blocks", "unbiased_means", "labels", "examples", "reliability", "truth", *SIDE_BY_SIDE)
    out = {name for name in some if not len(tables[name].frame)}
    out |= set() if material.questions else {"table_2", "agreement"}
    return {name: table for name, table in tables.items() if name not in out}


def sections(
    material: CampaignMaterial, tables: Mapping[str, Exhibit], figures: Mapping[str, Sequence[Figure]]
) -> list[Section]:
    """Return the page's sections in order; an empty table is not on the page, and a heading without parts neither."""
    shown = {name: [table.table()] for name, table in tables.items() if len(table.frame)}
    if material.holds is None:
        del shown["wording"]
    words = blocks("annotation/report/page.jinja", page_facts(material, shown))
    parts: dict[str, Sequence[Part]] = {
        **{name: [paragraph] for name, paragraph in words.items()},
        "description": [material.study.description],
        "doubts": [tuple(map(sentence, material.doubts))],
        "unchecked": [unchecked(material.verdicts)],
        "amended": amendment_lines(material.rules, material.first),
        "unknown": [
            *dict.fromkeys(
                f"No P of {rule}: {chance.reason}."
                for verdict in material.verdicts
                for rule, chance in rule_chances(verdict)
                if chance.reason
            )
        ],
        "methods": methods(material),
        **shown,
        **figures,
    }
    if material.study.judging.does_tasks and material.groups:
        parts |= {"answers": shown.get("labels", []), "labels": [], "table_2": [], "agreement": [], SHARES: []}
    parts_by_heading = {
        heading: [part for name in names for part in parts.get(name, ()) if part] for heading, names in OUTLINE.items()
    }
    return [Section(heading, some, heading not in _OPEN) for heading, some in parts_by_heading.items() if some]


def page_facts(material: CampaignMaterial, tables: Collection[str]) -> dict[str, Any]:
    """Return what the page says, by the names in its template; `tables` are those that it shows."""
    study, outcome, holds = material.study, material.judges, material.holds
    counts = Counter(verdict.decision for verdict in material.verdicts)
    return {
        "study": study,
        "item": study.called.item,
        "tables": tables,
        "read_at": stamp(material.read_at),
        "doubts": material.doubts,
        "looked_for": looked_for(study.judging),
        "verdicts": material.verdicts,
        "decided": [f"{counts[name]} {name}" for name in ("accepted", "rejected", "undecided") if counts[name]],
        "p_is": f"{P_IS} {P_BY['blocks' if study.raters.blocks else study.acceptance.interval]}",
        "judges_left_out": material.judges_left_out,
        "outcome": outcome,
        "judges": exhibits.judges_of(outcome) if outcome else [],
        "simulated": SIMULATED,
        "people_decide": PEOPLE_DECIDE,
        "rated": bool(material.groups),
        "unlooked": material.unlooked,
        "fixed": fixed_text(material.rules, material.every) if holds else "",
    }


def _figures(material: CampaignMaterial, drawn: Mapping[str, pd.DataFrame]) -> dict[str, list[Figure]]:
    """Return figures for each question: means against the threshold, shares of points, paths of means over looks."""
    paths = [
        Figure(chart, caption, f"{caption} The table below has the numbers.")
        for chart, caption in looks_charts(looks_frame(material.verdicts), material.rubric)
    ]
    figures = {MEANS: list[Figure](), SHARES: [], "paths": paths}
    for question in material.questions:
        scale, title = material.rubric.scale_of(question), question.capitalize()
        means = drawn[MEANS][drawn[MEANS]["question"] == question]
        if len(means) and len(joined(material.verdicts)) > CARDS:
            dashes = "; the dashed line is the threshold" if means["threshold"].notna().any() else ""
            caption = (
                f"{title}: mean of the ratings that each verdict rests on, with its 95% interval{dashes}."
                f" Intervals are {INTERVALS[means['interval'].iloc[0]]} ({MEANS}.csv)."
            )
            figures[MEANS].append(Figure(mean_intervals(means, scale), caption, f"{title}. {means_in_words(means)}"))
        if len(shares := drawn[SHARES][drawn[SHARES]["question"] == question]):
            caption = (
                f"{title}: shares of the points {scale[0]} to {scale[-1]} by {material.study.called.judged}; n counts"
                f" single ratings ({SHARES}.csv)."
            )
            figures[SHARES].append(Figure(rating_shares(shares, scale), caption, f"{title}. {shares_in_words(shares)}"))
    return figures
